/* A service on several loops: it runs on each, stops as one, and leaves nothing. Each service runs in a process of
 * its own, so that its signals and threads are nobody else's. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ebb/ebb.h>
#include <ebb/workflow.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/forked.h"

enum { ALARM_S = 100, LOOPS = 3, LONG_MS = 3600000 };

/* What the process has seen, in memory that it shares with the test. */
typedef struct seen {
    int exit;
    ebb_workflow_report report;
    int64_t live; /* blocks that were left */
    _Atomic uint32_t ran, on[LOOPS], cancelled, drained, accepted;
    uint16_t ports[LOOPS][2];
    uint64_t failures; /* of memory */
    ebb_status verified;
    uint64_t workflows, stopped, unfinished; /* in the log */
    char verdict[256];
    char text[16384]; /* what its log got: one writes at a time */
    _Atomic bool all_explained;
    _Atomic uint32_t overdue;
} seen;

static seen *saw;

/* ---- in the process ------------------------------------------------------------------------------ */

/* As ebb_failing, for several threads. */
static ebb_failing memory;
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

static void *locked(void *ctx, void *p, size_t old_n, size_t n) {
    ebb_allocator a = ebb_failing_allocator(ctx);
    pthread_mutex_lock(&memory_lock);
    void *at = a.fn(a.ctx, p, old_n, n);
    pthread_mutex_unlock(&memory_lock);
    return at;
}

typedef struct lines {
    char *text;
    size_t n;
} lines;

static ebb_status append(void *ctx, const char *line, size_t n) {
    lines *l = ctx;
    l->text = realloc(l->text, l->n + n);
    memcpy(l->text + l->n, line, n);
    l->n += n;
    return EBB_OK;
}

static void to_text(void *ctx, const char *text, size_t n) {
    size_t at = strlen(saw->text);
    (void)ctx;
    if (at + n < sizeof saw->text) memcpy(saw->text + at, text, n);
    if (strstr(saw->text, "loop 1 is DRAINING") != NULL && strstr(saw->text, "loop 2 is DRAINING") != NULL)
        saw->all_explained = true;
}

static ebb_service_opts options(void) {
    return (ebb_service_opts){.loop.runtime.allocator = {locked, &memory},
                              .shutdown = {.budget = 40 * EBB_SECOND},
                              .report = &saw->report,
                              .log = to_text,
                              .loops = LOOPS};
}

/* Runs it with a log, and has that verified. */
static void run_with(ebb_service_opts o, ebb_fiber_fn fn, void *arg, uint64_t fail_at) {
    lines log = {0};
    ebb_audit_verdict verdict;
    ebb_audit *audit = NULL;
    memory = (ebb_failing){.inner = ebb_libc_allocator()};
    if (ebb_audit_new(ebb_libc_allocator(), &(ebb_audit_sink){.append = append, .ctx = &log}, &audit) !=
        EBB_OK)
        _exit(9);
    o.shutdown.audit = audit;
    memory.fail_at = fail_at;
    saw->exit = ebb_service_run(&o, fn, arg);
    saw->failures = memory.failures;
    saw->live = memory.live;
    ebb_audit_close(audit);
    saw->verified = ebb_audit_verify(ebb_libc_allocator(), log.text, log.n, &verdict);
    saw->workflows = verdict.workflows;
    saw->stopped = verdict.stopped;
    saw->unfinished = verdict.unfinished;
    snprintf(saw->verdict, sizeof saw->verdict, "line %d: %.200s", (int)verdict.line, verdict.text);
    free(log.text);
}

static void run(ebb_service_opts o, ebb_fiber_fn fn, void *arg) {
    run_with(o, fn, arg, 0);
}

static ebb_status sleeps(ebb_cx *cx) {
    ebb_status st = ebb_await(cx, ebb_after(cx, LONG_MS * EBB_MS), NULL);
    saw->cancelled += st == EBB_CANCELLED;
    return st;
}

/* The last of them does it when all are there. */
static bool is_last(void) {
    return atomic_fetch_add(&saw->ran, 1) + 1 == LOOPS;
}

/* ---- from outside --------------------------------------------------------------------------------- */

static void in_a_process(void (*body)(void)) {
    memset(saw, 0, sizeof *saw);
    forked_run(body, ALARM_S);
}

static void left_nothing(void) {
    assert_int_equal(saw->live, 0);
    if (saw->verified != EBB_OK) fail_msg("%s", saw->verdict);
    assert_int_equal(saw->workflows, LOOPS);
    assert_int_equal(saw->unfinished, 0);
}

/* ---- running -------------------------------------------------------------------------------------- */

static ebb_status notes_its_loop(ebb_cx *cx, void *arg) {
    (void)arg;
    saw->on[ebb_service_loop(cx)]++;
    saw->ran++;
    return ebb_await(cx, ebb_after(cx, 20 * EBB_MS), NULL);
}

static void run_one_that_ends(void) {
    run(options(), notes_its_loop, NULL);
}

static void the_function_runs_on_each_loop_and_a_service_whose_loops_have_ended_ends(void **state) {
    (void)state;
    in_a_process(run_one_that_ends);
    assert_int_equal(saw->exit, EBB_SERVICE_OK);
    assert_int_equal(saw->report.state, EBB_WORKFLOW_IDLE);
    for (int i = 0; i < LOOPS; i++) assert_int_equal(saw->on[i], 1);
    assert_int_equal(saw->stopped, 0);
    left_nothing();
}

static void run_one_a_core(void) {
    ebb_service_opts o = options();
    o.loops = EBB_SERVICE_LOOPS_ALL;
    run(o, notes_its_loop, NULL);
}

static void there_can_be_one_a_core(void **state) {
    (void)state;
    in_a_process(run_one_a_core);
    assert_int_equal(saw->exit, EBB_SERVICE_OK);
    assert_in_range(saw->ran, 1, 255);
    assert_int_equal(saw->workflows, saw->ran);
    assert_int_equal(saw->live, 0);
}

static void run_too_many(void) {
    ebb_service_opts o = options();
    o.loops = 256;
    run(o, notes_its_loop, NULL);
}

static void more_than_255_loops_are_refused(void **state) {
    (void)state;
    in_a_process(run_too_many);
    assert_int_equal(saw->exit, EBB_SERVICE_FAILED);
    assert_int_equal(saw->report.status, EBB_ERR_LIMIT);
    assert_int_equal(saw->ran, 0);
    assert_int_equal(saw->live, 0);
}

/* ---- stopping ------------------------------------------------------------------------------------- */

static ebb_status drained(ebb_cx *cx, ebb_drain *d, void *arg) {
    (void)cx;
    (void)d;
    (void)arg;
    saw->drained++;
    return EBB_OK;
}

static ebb_status is_signalled(ebb_cx *cx, void *arg) {
    const int *signals = arg;
    ebb_status st = ebb_workflow_on_drain(cx, ebb_workflow_of(cx), "count", drained, NULL);
    if (st != EBB_OK) return st;
    if (is_last()) {
        for (; *signals != 0; signals++) (void)kill(getpid(), *signals);
    }
    return sleeps(cx);
}

static int one_signal[] = {SIGTERM, 0};

static void run_one_that_is_stopped(void) {
    ebb_service_opts o = options();
    o.shutdown.cancel_at = 100 * EBB_MS;
    run(o, is_signalled, one_signal);
}

static void one_signal_stops_all_loops_and_their_handlers_run(void **state) {
    (void)state;
    in_a_process(run_one_that_is_stopped);
    assert_int_equal(saw->exit, EBB_SERVICE_OK);
    assert_int_equal(saw->report.state, EBB_WORKFLOW_FINALIZED);
    assert_true(saw->report.cancelled);
    assert_false(saw->report.drain_timed_out);
    assert_string_equal(saw->report.reason.message, "SIGTERM");
    assert_int_equal(saw->cancelled, LOOPS);
    assert_int_equal(saw->drained, LOOPS);
    assert_int_equal(saw->stopped, LOOPS);
    left_nothing();
}

/* The second one, when the first has reached all. */
static ebb_status is_forced(ebb_cx *cx, void *arg) {
    (void)arg;
    if (is_last()) (void)kill(getpid(), SIGTERM);
    (void)ebb_await(cx, ebb_closing(cx), NULL);
    if (atomic_fetch_add(&saw->drained, 1) + 1 == LOOPS) (void)kill(getpid(), SIGINT);
    return sleeps(cx);
}

static void run_one_that_is_forced(void) {
    ebb_service_opts o = options();
    o.shutdown.budget = 3600 * EBB_SECOND;
    run(o, is_forced, NULL);
}

static void a_second_signal_forces_all_loops(void **state) {
    (void)state;
    in_a_process(run_one_that_is_forced);
    assert_int_equal(saw->exit, EBB_SERVICE_FORCED);
    assert_true(saw->report.forced);
    assert_int_equal(saw->cancelled, LOOPS);
    left_nothing();
}

/* Both may come before the loops have confirmed, or have even started. */
static void run_with_two_signals(void) {
    static int both[] = {SIGTERM, SIGINT, 0};
    ebb_service_opts o = options();
    o.shutdown.budget = 3600 * EBB_SECOND;
    run(o, is_signalled, both);
}

static void a_second_signal_may_come_at_once(void **state) {
    (void)state;
    in_a_process(run_with_two_signals);
    assert_int_equal(saw->exit, EBB_SERVICE_FORCED);
    left_nothing();
}

static ebb_status fails_on_one(ebb_cx *cx, void *arg) {
    bool last = is_last();
    if (!last) (void)sleeps(cx);
    else
        while (saw->ran < LOOPS) (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    (void)arg;
    return last ? EBB_FAILED : EBB_OK;
}

static void run_one_that_fails(void) {
    ebb_service_opts o = options();
    o.shutdown.cancel_at = 100 * EBB_MS;
    run(o, fails_on_one, NULL);
}

static void the_failure_on_one_loop_stops_all(void **state) {
    (void)state;
    in_a_process(run_one_that_fails);
    assert_int_equal(saw->exit, EBB_SERVICE_FAILED);
    assert_int_equal(saw->report.status, EBB_FAILED);
    assert_int_equal(saw->report.reason.kind, EBB_CANCEL_SIBLING_FAILED);
    assert_string_equal(saw->report.reason.message, "EBB_FAILED");
    assert_int_equal(saw->cancelled, LOOPS - 1);
    left_nothing();
}

static ebb_status leaks_on_the_last(ebb_cx *cx, void *arg) {
    (void)arg;
    if (ebb_service_loop(cx) == LOOPS - 1)
        (void)ebb_region_reserve(cx, ebb_cx_region(cx), EBB_OBLIGATION_LEASE, NULL, NULL);
    if (is_last()) (void)kill(getpid(), SIGTERM);
    return ebb_await(cx, ebb_closing(cx), NULL);
}

static void run_one_that_leaks(void) {
    ebb_service_opts o = options();
    o.shutdown.budget = EBB_SECOND; /* most of it is waited for the lease */
    run(o, leaks_on_the_last, NULL);
}

static void what_one_loop_leaves_behind_is_the_services(void **state) {
    (void)state;
    in_a_process(run_one_that_leaks);
    assert_int_equal(saw->exit, EBB_SERVICE_LEAK);
    assert_int_equal(saw->report.leaks, 1);
    assert_int_equal(saw->report.state, EBB_WORKFLOW_LEAK_DETECTED);
    left_nothing();
}

/* ---- operators ------------------------------------------------------------------------------------ */

/* It is told of when all loops have explained themselves. */
static void more_time(void *arg, ebb_workflow wf) {
    (void)arg;
    (void)wf;
    saw->overdue++;
}

static ebb_status waits_for_the_explanation(ebb_cx *cx, void *arg) {
    (void)arg;
    if (is_last()) (void)kill(getpid(), SIGTERM);
    (void)ebb_mask(cx);
    while (!saw->all_explained || saw->overdue == 0) (void)ebb_await(cx, ebb_after(cx, 5 * EBB_MS), NULL);
    return EBB_OK;
}

static void run_one_that_is_overdue(void) {
    ebb_service_opts o = options();
    o.shutdown.budget = 200 * EBB_MS;
    o.shutdown.no_force = true;
    o.shutdown.on_overdue = more_time;
    run(o, waits_for_the_explanation, NULL);
}

static void one_that_is_overdue_explains_all_loops_and_waits(void **state) {
    (void)state;
    in_a_process(run_one_that_is_overdue);
    assert_int_equal(saw->exit, EBB_SERVICE_TIMEOUT);
    assert_int_equal(saw->overdue, 1);
    left_nothing();
}

static ebb_workflow shutdown_of_first;

/* The first loop asks for more time while all drain. */
static ebb_status needs_more_time(ebb_cx *cx, void *arg) {
    (void)arg;
    if (is_last()) (void)kill(getpid(), SIGTERM);
    (void)ebb_await(cx, ebb_closing(cx), NULL);
    if (ebb_service_loop(cx) == 0) {
        shutdown_of_first = ebb_workflow_of(cx);
        ebb_status st = ebb_workflow_extend(cx, shutdown_of_first, 60 * EBB_SECOND);
        if (st != EBB_OK) return st;
    }
    ebb_status st = ebb_await(cx, ebb_after(cx, 900 * EBB_MS), NULL);
    saw->cancelled += st != EBB_OK;
    return EBB_OK;
}

static void run_one_that_is_extended(void) {
    ebb_service_opts o = options();
    o.shutdown.budget = 1000 * EBB_MS; /* without more, what is in flight is cancelled at 600 ms */
    run(o, needs_more_time, NULL);
}

static void more_time_for_the_shutdown_is_more_time_for_all(void **state) {
    (void)state;
    in_a_process(run_one_that_is_extended);
    assert_int_equal(saw->exit, EBB_SERVICE_OK);
    assert_int_equal(saw->cancelled, 0);
    assert_false(saw->report.cancelled);
    left_nothing();
}

/* ---- what can't be stopped ------------------------------------------------------------------------ */

static ebb_status blocks(void *arg, ebb_value *v) {
    (void)v;
    (void)sem_post(arg);
    for (;;) (void)pause();
    return EBB_OK;
}

static sem_t in_the_pool;

static ebb_status blocks_on_the_last(ebb_cx *cx, void *arg) {
    (void)arg;
    if (ebb_service_loop(cx) != LOOPS - 1) return sleeps(cx);
    ebb_future *f = ebb_pool_run(cx, blocks, &in_the_pool);
    while (sem_trywait(&in_the_pool) != 0) (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    (void)kill(getpid(), SIGTERM);
    return ebb_await(cx, f, NULL);
}

static void run_one_that_blocks(void) {
    ebb_service_opts o = options();
    (void)sem_init(&in_the_pool, 0, 0);
    o.shutdown.budget = 3 * EBB_SECOND;
    run(o, blocks_on_the_last, NULL);
}

static void a_function_in_the_pool_that_does_not_return_is_left_behind(void **state) {
    (void)state;
    in_a_process(run_one_that_blocks);
    assert_int_equal(saw->exit, EBB_SERVICE_TIMEOUT);
    assert_int_equal(saw->report.leaks, 1);
    if (saw->verified != EBB_OK) fail_msg("%s", saw->verdict);
    assert_true(saw->live > 0);
}

/* ---- listening ------------------------------------------------------------------------------------ */

static char socket_path[64];

/* Each accepts one, and the last to do so stops the service. */
static ebb_status shares_a_socket(ebb_cx *cx, void *arg) {
    ebb_value v;
    (void)arg;
    ebb_listener l = ebb_pipe_listen(cx, socket_path);
    ebb_status st = ebb_id_status(l.id);
    if (st != EBB_OK) return st;
    if (is_last()) {
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        memcpy(to.sun_path, socket_path, strlen(socket_path));
        for (int i = 0; i < LOOPS; i++) {
            int fd = socket(AF_UNIX, SOCK_STREAM, 0);
            if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) return EBB_FAILED;
        }
    }
    st = ebb_await(cx, ebb_listener_accept(cx, l), &v);
    if (st == EBB_OK) saw->accepted++;
    if (st == EBB_OK && ebb_id_status(ebb_pipe_listen(cx, socket_path).id) != EBB_ERRNO(EADDRINUSE))
        return EBB_FAILED;
    while (saw->accepted < LOOPS && st == EBB_OK) st = ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    return st;
}

static void run_on_a_unix_socket(void) {
    snprintf(socket_path, sizeof socket_path, "/tmp/ebb-loops-%d", (int)getpid());
    run(options(), shares_a_socket, NULL);
    if (access(socket_path, F_OK) == 0) _exit(8);
}

static void loops_share_the_queue_of_a_unix_socket(void **state) {
    (void)state;
    in_a_process(run_on_a_unix_socket);
    assert_int_equal(saw->report.status, EBB_OK);
    assert_int_equal(saw->exit, EBB_SERVICE_OK);
    assert_int_equal(saw->accepted, LOOPS);
    left_nothing();
}

/* Two listeners at port 0, as of a service and of its metrics: which is which must not depend on the loop. */
static ebb_status listens_twice(ebb_cx *cx, void *arg) {
    ebb_address at[2];
    (void)arg;
    for (int i = 0; i < 2; i++) {
        ebb_listener l = ebb_tcp_listen(cx, &(ebb_address){"127.0.0.1", 0});
        ebb_status st = ebb_listener_address(cx, l, &at[i]);
        if (st != EBB_OK) return st;
    }
    for (int i = 0; i < 2; i++) saw->ports[ebb_service_loop(cx)][i] = at[i].port;
    saw->ran++; /* they listen until all do, or the others would get new ports */
    while (saw->ran < LOOPS) (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    return EBB_OK;
}

static void run_with_two_ports(void) {
    run(options(), listens_twice, NULL);
}

static void the_nth_listener_of_each_loop_has_the_same_port(void **state) {
    (void)state;
    in_a_process(run_with_two_ports);
    assert_int_equal(saw->exit, EBB_SERVICE_OK);
    assert_int_not_equal(saw->ports[0][0], saw->ports[0][1]);
    for (int i = 1; i < LOOPS; i++) {
        for (int k = 0; k < 2; k++) assert_int_equal(saw->ports[i][k], saw->ports[0][k]);
    }
    left_nothing();
}

/* ---- memory --------------------------------------------------------------------------------------- */

static ebb_status listens_and_ends(ebb_cx *cx, void *arg) {
    (void)arg;
    ebb_listener l = ebb_tcp_listen(cx, &(ebb_address){"127.0.0.1", 0});
    ebb_status st = ebb_id_status(l.id);
    return st == EBB_OK ? ebb_listener_close(cx, l) : st;
}

static uint64_t failing_call;

static void run_without_memory(void) {
    ebb_service_opts o = options();
    o.shutdown.budget = 2 * EBB_SECOND;
    run_with(o, listens_and_ends, NULL, failing_call);
}

static void a_service_without_memory_says_so_and_leaves_nothing(void **state) {
    uint64_t runs = 0;
    (void)state;
    for (failing_call = 1; runs == 0 || saw->failures > 0; failing_call++, runs++) {
        in_a_process(run_without_memory);
        if (saw->live != 0) fail_msg("allocation %d: %d blocks left", (int)failing_call, (int)saw->live);
        if (saw->exit == EBB_SERVICE_OK && saw->failures == 0) break;
        if (saw->exit != EBB_SERVICE_OK && saw->report.status != EBB_ERR_NOMEM)
            fail_msg("allocation %d: %s", (int)failing_call, ebb_status_name(saw->report.status));
        if (saw->verified != EBB_OK) fail_msg("allocation %d: %s", (int)failing_call, saw->verdict);
    }
    assert_in_range(runs, 30, 2000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_function_runs_on_each_loop_and_a_service_whose_loops_have_ended_ends),
        cmocka_unit_test(there_can_be_one_a_core),
        cmocka_unit_test(more_than_255_loops_are_refused),
        cmocka_unit_test(one_signal_stops_all_loops_and_their_handlers_run),
        cmocka_unit_test(a_second_signal_forces_all_loops),
        cmocka_unit_test(a_second_signal_may_come_at_once),
        cmocka_unit_test(the_failure_on_one_loop_stops_all),
        cmocka_unit_test(what_one_loop_leaves_behind_is_the_services),
        cmocka_unit_test(one_that_is_overdue_explains_all_loops_and_waits),
        cmocka_unit_test(more_time_for_the_shutdown_is_more_time_for_all),
        cmocka_unit_test(a_function_in_the_pool_that_does_not_return_is_left_behind),
        cmocka_unit_test(loops_share_the_queue_of_a_unix_socket),
        cmocka_unit_test(the_nth_listener_of_each_loop_has_the_same_port),
        cmocka_unit_test(a_service_without_memory_says_so_and_leaves_nothing),
    };
    saw = mmap(NULL, sizeof *saw, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (saw == MAP_FAILED) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
