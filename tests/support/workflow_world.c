#include "tests/support/workflow_world.h"

#include <inttypes.h>
#include <stdlib.h>

#include "kernel/rt.h"

static ebb_status append(void *ctx, const char *line, size_t n) {
    workflow_world *ww = ctx;
    if (ww->sink_fails != EBB_OK) return ww->sink_fails;
    if (ww->log_n + n + 1 > ww->log_room) {
        ww->log_room = 2 * (ww->log_n + n + 1);
        ww->log = realloc(ww->log, ww->log_room);
        assert_non_null(ww->log);
    }
    memcpy(ww->log + ww->log_n, line, n);
    ww->log_n += n;
    ww->log[ww->log_n] = 0;
    return EBB_OK;
}

int workflow_world_up(void **state) {
    workflow_world *ww = calloc(1, sizeof *ww);
    assert_non_null(ww);
    ww->world = world_new(NULL, true);
    ww->rt = ww->world->rt;
    ww->host = ww->world->host;
    assert_int_equal(ebb_audit_new(ebb_libc_allocator(), &(ebb_audit_sink){append, NULL, ww}, &ww->audit),
                     EBB_OK);
    *state = ww;
    return 0;
}

/* Whoever waits for a stop and is not counted as work any more would keep a loop from ending, or end it
 * early. */
static void nobody_stands_by(workflow_world *ww) {
    if (ebb_runtime_pump(ww->rt, 0) == EBB_ERR_REENTERED) return; /* a test has failed inside of a poll */
    if (state_of(ww->world, ww->world->root) != EBB_REGION_CLOSED) {
        ebb_region_cancel(ww->host, ww->world->root, EBB_CANCEL_SHUTDOWN, "the test is over");
        world_pass(ww->world, MS(550));
    }
    assert_int_equal(ww->rt->standby, 0);
}

int workflow_world_down(void **state) {
    workflow_world *ww = *state;
    nobody_stands_by(ww);
    world_end(ww->world);
    ebb_audit_verdict verdict;
    ebb_status st = ebb_audit_verify(ebb_libc_allocator(), ww->log, ww->log_n, &verdict);
    if (st != EBB_OK && !ww->broken) {
        print_error("line %" PRIu64 ": %s: %s\n%s", verdict.line, verdict.invariant, verdict.text, ww->log);
        fail();
    }
    ebb_audit_close(ww->audit);
    free(ww->log);
    free(ww);
    return 0;
}

ebb_workflow workflow_open(workflow_world *ww, ebb_cx *cx, const ebb_workflow_opts *opts) {
    ebb_workflow_opts o = *opts;
    if (o.audit == NULL) o.audit = ww->audit;
    ebb_workflow wf = ebb_workflow_open(cx, &o);
    assert_int_equal(ebb_id_status(wf.id), EBB_OK);
    return wf;
}

ebb_workflow workflow_new(workflow_world *ww, const ebb_workflow_opts *opts) {
    return workflow_open(ww, ww->host, opts);
}

void workflow_stop(workflow_world *ww, ebb_workflow wf) {
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "enough"), EBB_OK);
    world_settle(ww->world);
}

puppet *workflow_work(workflow_world *ww, ebb_workflow wf, puppet p) {
    puppet *started = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), p);
    world_settle(ww->world);
    return started;
}

void workflow_finish(workflow_world *ww, puppet *p) {
    p->returns = EBB_OK;
    (void)ebb_task_wake(ww->host, p->id);
    world_settle(ww->world);
}

ebb_workflow_report workflow_report(workflow_world *ww, ebb_workflow wf) {
    ebb_workflow_report r = {0};
    (void)ebb_workflow_report_of(ww->host, wf, &r);
    return r;
}

ebb_workflow_state workflow_state(workflow_world *ww, ebb_workflow wf) {
    return workflow_report(ww, wf).state;
}

/* ---- the log --------------------------------------------------------------------------------- */

static const char *end_of_line(const char *line) {
    return strchr(line, '\n');
}

/* The value of "event", which every line has. */
static size_t event_of_line(const char *line, const char **event) {
    static const char key[] = "\"event\":\"";
    *event = strstr(line, key) + sizeof key - 1;
    return (size_t)(strchr(*event, '"') - *event);
}

static bool is_about(const char *line, uint64_t number) {
    char id[40];
    snprintf(id, sizeof id, "\"id\":%" PRIu64 ",", number);
    const char *at = strstr(line, id);
    return at != NULL && at < end_of_line(line);
}

const char *workflow_story(workflow_world *ww, uint64_t number) {
    char *story = world_keep(ww->world, ww->log_n + 1);
    size_t n = 0;
    for (const char *line = ww->log; *line != 0; line = end_of_line(line) + 1) {
        const char *event;
        size_t length = event_of_line(line, &event);
        if (!is_about(line, number)) continue;
        if (n > 0) story[n++] = ' ';
        memcpy(story + n, event, length);
        n += length;
    }
    return story;
}

const char *workflow_line(workflow_world *ww, const char *wanted, uint32_t nth) {
    for (const char *line = ww->log; *line != 0; line = end_of_line(line) + 1) {
        const char *event;
        size_t n = event_of_line(line, &event), length = (size_t)(end_of_line(line) - line);
        if (n != strlen(wanted) || memcmp(event, wanted, n) != 0 || nth-- > 0) continue;
        char *copy = world_keep(ww->world, length + 1);
        memcpy(copy, line, length);
        return copy;
    }
    return NULL;
}

uint32_t workflow_lines(workflow_world *ww, const char *event) {
    uint32_t n = 0;
    while (workflow_line(ww, event, n) != NULL) n++;
    return n;
}

void workflow_says(const char *text, const char *part) {
    assert_non_null(text);
    if (strstr(text, part) == NULL) fail_msg("expected \"%s\" in\n%s", part, text);
}

/* ---- words ----------------------------------------------------------------------------------- */

enum { EXPLAINED_MAX = 8192 };

static void add_text(void *ctx, const char *text, size_t n) {
    char *out = ctx;
    size_t have = strlen(out);
    assert_true(have + n < EXPLAINED_MAX);
    memcpy(out + have, text, n);
}

const char *workflow_explained(workflow_world *ww, ebb_workflow wf) {
    char *out = world_keep(ww->world, EXPLAINED_MAX);
    assert_int_equal(ebb_workflow_explain(ww->host, wf, add_text, out), EBB_OK);
    return out;
}

/* ---- drainers -------------------------------------------------------------------------------- */

ebb_status drainer_run(ebb_cx *cx, ebb_drain *d, void *arg) {
    drainer *me = arg;
    me->polls++;
    me->task = ebb_cx_task(cx);
    if (me->says != NULL) world_say(me->world, me->says);
    if (me->act != NULL) me->act(cx, d, me);
    if (me->sleeps > 0) {
        me->slept = ebb_sleep(cx, &me->nap, me->sleeps);
        if (me->slept == EBB_PENDING) return EBB_PENDING;
    }
    if (!me->stays) return me->returns;
    while (ebb_fiber_park(cx) == EBB_OK) {} /* a fiber waits in place */
    return EBB_PENDING;
}

static drainer *drainer_new(world *w, drainer d) {
    drainer *copy = world_keep(w, sizeof *copy);
    *copy = d;
    copy->world = w;
    return copy;
}

drainer *drainer_add(workflow_world *ww, ebb_workflow wf, const char *name, drainer d) {
    drainer *copy = drainer_new(ww->world, d);
    assert_int_equal(ebb_workflow_on_drain(ww->host, wf, name, drainer_run, copy), EBB_OK);
    return copy;
}

drainer *drainer_add_fiber(workflow_world *ww, ebb_workflow wf, const char *name, drainer d) {
    drainer *copy = drainer_new(ww->world, d);
    assert_int_equal(ebb_workflow_on_drain_fiber(ww->host, wf, name, drainer_run, copy), EBB_OK);
    return copy;
}
