/* Guide: a workflow that is stopped at every suspension point, and the one run in which it fails, alone. */
#include <ebb/ebb.h>
#include <ebb/lab.h>
#include <stdio.h>

/* What is tested: a page is put up in two steps, or not at all. */
typedef struct page {
    bool text, picture;
} page;

static bool forgets; /* the bug: it does not undo the first step */

static ebb_status take_down(ebb_cx *cx, void *arg) {
    page *p = arg;
    (void)cx;
    if (!p->picture && !forgets) p->text = false;
    return EBB_OK;
}

static ebb_status publish(ebb_cx *cx, void *arg) {
    page *p = arg;
    ebb_status st = ebb_defer(cx, take_down, p);
    if (st == EBB_OK) st = ebb_await(cx, ebb_after(cx, 10 * EBB_MS), NULL);
    if (st != EBB_OK) return st;
    p->text = true;
    st = ebb_await(cx, ebb_after(cx, 10 * EBB_MS), NULL);
    if (st == EBB_OK) p->picture = true;
    return st;
}

static ebb_status open_workflow(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    *target = ebb_workflow_open(
        cx, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .name = "page", .audit = audit});
    ebb_region region = ebb_workflow_region(cx, *target);
    return ebb_id_status(ebb_fiber_spawn(cx, region, publish, state).id);
}

/* After each run. */
static ebb_status all_or_nothing(void *state, const ebb_workflow_report *report) {
    const page *p = state;
    (void)report;
    return p->text == p->picture ? EBB_OK : EBB_FAILED;
}

static ebb_status at_every_point(void) {
    ebb_injection what = {
        .name = "page", .setup = open_workflow, .check = all_or_nothing, .state_size = sizeof(page)};
    ebb_injected r, again;
    ebb_status st = ebb_inject(ebb_libc_allocator(), &what, &r);
    printf("%d points: %s %s\n", (int)r.points, ebb_status_name(st), r.text);
    if (st != EBB_ERR_ORACLE) return st;
    what.only = &r.run; /* alone, to look at it */
    st = ebb_inject(ebb_libc_allocator(), &what, &again);
    printf("that one again: %s\n", ebb_status_name(st));
    return st;
}

int main(void) {
    forgets = true;
    if (at_every_point() != EBB_ERR_ORACLE) return 1;
    forgets = false;
    return at_every_point() == EBB_OK ? 0 : 1;
}
