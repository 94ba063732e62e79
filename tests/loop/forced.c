/* What a forced region leaves behind: the operation is named, with the line where it began, and never a task of
 * the runtime's own. What ends in time is not left behind. */
#include "tests/support/loop_world.h"

#include <ebb/workflow.h>

enum { BLOCKING = 1, PROCESS, STUBBORN };

typedef struct scene {
    loop_world *w;
    int what;
    bool ready;
    int pid;
    char site[64];
    uv_sem_t go;
    ebb_region region;
} scene;

static ebb_status blocks(void *arg, ebb_value *v) {
    scene *s = arg;
    (void)v;
    uv_sem_wait(&s->go);
    return EBB_OK;
}

static ebb_status waits_for_it(ebb_cx *cx, void *arg) {
    scene *s = arg;
    const char *script = s->what == STUBBORN ? "trap '' TERM; echo ready; while :; do sleep 0.05; done"
                                             : "echo ready; exec sleep 1000";
    const char *args[] = {"sh", "-c", script, NULL};
    ebb_process_opts o = {.file = "/bin/sh", .args = args, .stdio[1] = EBB_PROCESS_STDIO_PIPE};
    ebb_stream io[3];
    char bytes[8];
    if (s->what == BLOCKING) {
        ebb_future *f = ebb_pool_run(cx, blocks, s);
        snprintf(s->site, sizeof s->site, "tests/loop/forced.c:%d", __LINE__ - 1);
        s->ready = true;
        return ebb_await(cx, f, NULL);
    }
    ebb_process p = ebb_process_spawn(cx, io, &o);
    s->pid = ebb_process_pid(cx, p);
    assert_int_equal(ebb_await(cx, ebb_stream_read(cx, io[1], bytes, sizeof bytes), NULL), EBB_OK);
    s->ready = true;
    return ebb_await(cx, ebb_process_wait(cx, p), NULL);
}

static bool scene_closed(void *arg) {
    scene *s = arg;
    return region_is_closed(s->w, s->region);
}

static void play(scene *s, ebb_region region) {
    s->region = region;
    assert_int_equal(uv_sem_init(&s->go, 0), 0);
    (void)ebb_fiber_spawn(ebb_loop_cx(s->w->loop), region, waits_for_it, s);
    while (!s->ready) loop_turns(s->w, 1);
    loop_turns(s->w, 2);
}

static void curtain(scene *s) {
    uv_sem_post(&s->go);
    loop_run(s->w);
    uv_sem_destroy(&s->go);
}

/* ---- the report and the trace ------------------------------------------------------------------------------ */

typedef struct bytes {
    char *p;
    size_t n;
} bytes;

static void bytes_add(void *ctx, const void *more, size_t n) {
    bytes *b = ctx;
    b->p = realloc(b->p, b->n + n);
    assert_non_null(b->p);
    memcpy(b->p + b->n, more, n);
    b->n += n;
}

/* How many events of this type; the text of the last in `text`. */
static int traced(ebb_runtime *rt, uint32_t type, char *text, size_t room) {
    bytes b = {0};
    ebb_trace_reader in;
    ebb_event ev;
    int n = 0;
    bool here = false;
    ebb_trace_take(rt, true, bytes_add, &b);
    assert_int_equal(ebb_trace_reader_open(&in, b.p, b.n), EBB_OK);
    while (ebb_trace_reader_next(&in, &ev) == EBB_OK) {
        if (ev.type == EBB_EV_TEXT && here) strncat(text, ev.text, room - strlen(text) - 1);
        else if (ev.type != EBB_EV_TEXT) here = ev.type == type;
        n += ev.type == type;
    }
    free(b.p);
    return n;
}

static void pool_work_is_named(void **state) {
    scene s = {.w = *state, .what = BLOCKING};
    ebb_region_report report;
    ebb_work who;
    char text[200] = "", expected[200];
    assert_int_equal(ebb_trace_start(s.w->rt, 1 << 20), EBB_OK);
    play(&s, ebb_region_open(s.w->cx, NULL));
    ebb_region_force(s.w->cx, s.region);
    while (!scene_closed(&s)) loop_turns(s.w, 1);
    assert_int_equal(ebb_region_report_of(s.w->cx, s.region, &report), EBB_OK);
    assert_int_equal(report.abandoned, 1);
    assert_int_equal(ebb_region_abandoned_at(s.w->cx, s.region, 0, &who), EBB_OK);
    assert_string_equal(who.site, s.site);
    assert_int_equal(who.id, 0);
    assert_int_equal(ebb_region_abandoned_at(s.w->cx, s.region, 1, &who), EBB_ERR_INVALID);
    assert_int_equal(ebb_region_leaked_at(s.w->cx, s.region, 0, &who), EBB_ERR_INVALID);
    assert_int_equal(traced(s.w->rt, EBB_EV_OPERATION_ABANDONED, text, sizeof text), 1);
    snprintf(expected, sizeof expected, "blocking, begun at %s", s.site);
    assert_string_equal(text, expected);
    assert_int_equal(ebb_trace_start(s.w->rt, 0), EBB_OK);
    curtain(&s);
    assert_int_equal(ebb_region_join(s.w->cx, s.region), EBB_CANCELLED);
}

static void a_process_that_can_be_ended_is_not_left_behind(void **state) {
    for (int what = PROCESS; what <= STUBBORN; what++) {
        scene s = {.w = *state, .what = what};
        ebb_region_report report;
        play(&s, ebb_region_open(s.w->cx, NULL));
        ebb_region_force(s.w->cx, s.region);
        while (!scene_closed(&s)) loop_turns(s.w, 1);
        assert_int_equal(kill(s.pid, 0), -1);
        assert_int_equal(ebb_region_report_of(s.w->cx, s.region, &report), EBB_OK);
        assert_int_equal(report.abandoned, 0);
        assert_int_equal(ebb_region_join(s.w->cx, s.region), EBB_CANCELLED);
        curtain(&s);
    }
}

/* Without any time for its finalizers a region can't wait until the system has ended the process. */
static void a_process_that_there_is_no_time_for_is_named(void **state) {
    scene s = {.w = *state, .what = STUBBORN};
    char text[200] = "";
    ebb_region_report report;
    play(&s, ebb_region_open(s.w->cx, NULL));
    assert_int_equal(ebb_trace_start(s.w->rt, 1 << 20), EBB_OK);
    ebb_region_cancel_within(s.w->cx, s.region, EBB_CANCEL_USER, "at once", (ebb_budget){1, 64, 0});
    while (!scene_closed(&s)) loop_turns(s.w, 1);
    assert_int_equal(ebb_region_report_of(s.w->cx, s.region, &report), EBB_OK);
    assert_int_equal(traced(s.w->rt, EBB_EV_OPERATION_ABANDONED, text, sizeof text), 1);
    assert_non_null(strstr(text, "process /bin/sh, begun at tests/loop/forced.c:"));
    assert_int_equal(report.abandoned, 1);
    assert_int_equal(ebb_trace_start(s.w->rt, 0), EBB_OK);
    assert_int_equal(ebb_region_join(s.w->cx, s.region), EBB_CANCELLED);
    curtain(&s);
}

/* ---- workflows ------------------------------------------------------------------------------------------------ */

typedef struct found {
    ebb_runtime *rt;
    uint32_t n;
    ebb_workflow_leak first;
} found;

static void on_state(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    found *f = arg;
    (void)from;
    if (to != EBB_WORKFLOW_LEAK_DETECTED) return;
    ebb_workflow_leak leak;
    while (ebb_workflow_leak_at(ebb_runtime_host(f->rt), wf, f->n, &leak) == EBB_OK) {
        if (f->n++ == 0) f->first = leak;
    }
}

static ebb_workflow_state forced_state(scene *s, found *f) {
    ebb_workflow_opts o = {
        .type = &ebb_workflow_publish_abort, .parent = s->w->region, .on_state = on_state, .arg = f};
    ebb_workflow_report report = {0};
    f->rt = s->w->rt;
    ebb_workflow wf = ebb_workflow_open(ebb_loop_cx(s->w->loop), &o);
    play(s, ebb_workflow_region(s->w->cx, wf));
    assert_int_equal(ebb_workflow_request(s->w->cx, wf, EBB_CANCEL_USER, "stop"), EBB_OK);
    assert_int_equal(ebb_workflow_force(s->w->cx, wf, "now"), EBB_OK);
    while (ebb_workflow_join(ebb_loop_cx(s->w->loop), wf, &report) == EBB_PENDING) {
        uv_run(&s->w->uv, UV_RUN_ONCE);
    }
    curtain(s);
    return report.state;
}

static void a_workflow_names_the_operation(void **state) {
    scene s = {.w = *state, .what = BLOCKING};
    found f = {.n = 0};
    assert_int_equal(forced_state(&s, &f), EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(f.n, 1);
    assert_string_equal(f.first.what, "operation");
    assert_string_equal(f.first.kind, "blocking");
    assert_string_equal(f.first.site, s.site);
    assert_string_equal(f.first.name, "");
}

static void or_nothing(void **state) {
    for (int what = PROCESS; what <= STUBBORN; what++) {
        scene s = {.w = *state, .what = what};
        found f = {.n = 0};
        assert_int_equal(forced_state(&s, &f), EBB_WORKFLOW_FINALIZED);
        assert_int_equal(f.n, 0);
        assert_int_equal(kill(s.pid, 0), -1);
    }
}

static void add_text(void *ctx, const char *text, size_t n) {
    strncat(ctx, text, n);
}

/* Nobody waits for it: the region has it, and its own finalizer is nothing that a user knows of. */
static ebb_status starts_it(ebb_cx *cx, void *arg) {
    scene *s = arg;
    const char *args[] = {"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done", NULL};
    ebb_process_opts o = {
        .file = "/bin/sh", .args = args, .stdio[1] = EBB_PROCESS_STDIO_PIPE, .grace = 100 * EBB_SECOND};
    ebb_stream io[3];
    char heard[8];
    ebb_process p = ebb_process_spawn(cx, io, &o);
    snprintf(s->site, sizeof s->site, "tests/loop/forced.c:%d", __LINE__ - 1);
    s->pid = ebb_process_pid(cx, p);
    assert_int_equal(ebb_await(cx, ebb_stream_read(cx, io[1], heard, sizeof heard), NULL), EBB_OK);
    s->ready = true;
    return EBB_OK;
}

static void what_a_region_still_has_open_is_explained(void **state) {
    scene s = {.w = *state};
    char text[2000] = "", expected[200];
    ebb_workflow_opts o = {.type = &ebb_workflow_publish_abort, .parent = s.w->region, .no_force = true};
    ebb_workflow wf = ebb_workflow_open(ebb_loop_cx(s.w->loop), &o);
    (void)ebb_fiber_spawn(s.w->cx, ebb_workflow_region(s.w->cx, wf), starts_it, &s);
    while (!s.ready) loop_turns(s.w, 1);
    assert_int_equal(ebb_workflow_request(ebb_loop_cx(s.w->loop), wf, EBB_CANCEL_USER, "stop"), EBB_OK);
    loop_turns(s.w, 10);
    assert_int_equal(ebb_workflow_explain(s.w->cx, wf, add_text, text), EBB_OK);
    snprintf(expected, sizeof expected, "  process /bin/sh, opened at %s\n", s.site);
    assert_non_null(strstr(text, expected));
    assert_null(strstr(text, "handles"));
    assert_int_equal(kill(s.pid, SIGKILL), 0);
    while (ebb_workflow_join(ebb_loop_cx(s.w->loop), wf, NULL) == EBB_PENDING) uv_run(&s.w->uv, UV_RUN_ONCE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(pool_work_is_named),
        ON_A_LOOP(a_process_that_can_be_ended_is_not_left_behind),
        ON_A_LOOP(a_process_that_there_is_no_time_for_is_named),
        ON_A_LOOP(a_workflow_names_the_operation),
        ON_A_LOOP(or_nothing),
        ON_A_LOOP(what_a_region_still_has_open_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
