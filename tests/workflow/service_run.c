/* ebb_service_run by itself: signals, exit statuses, what it reports and what it leaves. Each service runs in
 * a process of its own, so that its signals and threads are nobody else's. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <ebb/ebb.h>
#include <ebb/workflow.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "tests/support/forked.h"

enum { ALARM_S = 60, SERVICES = 4 };

/* What the process has seen, in memory that it shares with the test. */
typedef struct seen {
    int exit[SERVICES];
    ebb_workflow_report report[SERVICES];
    uint64_t took_ms[SERVICES];
    uint64_t cpu_ms;
    int64_t live[SERVICES]; /* blocks that were left */
    int fds[SERVICES];      /* descriptors after each */
    int n;
    ebb_status fn;   /* what the first fiber has seen */
    char text[4096]; /* what its log got */
    uint32_t told;   /* calls of on_overdue */
} seen;

static seen *saw;
static ebb_failing memory;
static const ebb_workflow_type short_stop = {"short_stop", 300 * EBB_MS, EBB_CANCEL_NONE};

/* ---- in the process ---------------------------------------------------------------------------- */

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int open_descriptors(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d != NULL && readdir(d) != NULL) n++;
    if (d != NULL) closedir(d);
    return n;
}

static ebb_service_opts options(void) {
    memory = (ebb_failing){.inner = ebb_libc_allocator()};
    ebb_service_opts o = {.shutdown = {.type = &short_stop}};
    o.loop.runtime.allocator = ebb_failing_allocator(&memory);
    return o;
}

/* For those that stop in time, on a busy machine too. What is left at cancel_at is cancelled; 0: late. */
static ebb_service_opts with_time(uint64_t cancel_at) {
    ebb_service_opts o = options();
    o.shutdown.budget = 40 * EBB_SECOND;
    o.shutdown.cancel_at = cancel_at;
    return o;
}

static void run(ebb_service_opts o, ebb_fiber_fn fn, void *arg) {
    int i = saw->n++;
    uint64_t began = now_ms();
    memset(&saw->report[i], 0x55, sizeof saw->report[i]); /* as a variable that nobody has set */
    o.report = &saw->report[i];
    saw->exit[i] = ebb_service_run(&o, fn, arg);
    saw->took_ms[i] = now_ms() - began;
    saw->live[i] = memory.live;
    saw->fds[i] = open_descriptors();
}

static ebb_status ends_at_once(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return EBB_OK;
}

static ebb_status sleeps(ebb_cx *cx) {
    ebb_sleeper s = {0};
    return ebb_sleep(cx, &s, 3600 * EBB_SECOND);
}

/* ---- from outside ------------------------------------------------------------------------------ */

/* Runs it in a process that must end by itself. */
static void in_a_process(void (*body)(void)) {
    *saw = (seen){.fn = EBB_PENDING};
    forked_run(body, ALARM_S);
}

static void left_nothing(int i) {
    assert_int_equal(saw->live[i], 0);
}

/* ---- ends without a signal --------------------------------------------------------------------- */

static void run_one_that_ends_at_once(void) {
    run(options(), ends_at_once, NULL);
}

static void a_service_whose_first_fiber_returns_at_once_has_ended(void **state) {
    (void)state;
    in_a_process(run_one_that_ends_at_once);
    assert_int_equal(saw->exit[0], EBB_SERVICE_OK);
    assert_int_equal(saw->report[0].state, EBB_WORKFLOW_IDLE);
    assert_int_equal(saw->report[0].status, EBB_OK);
    assert_int_equal(saw->report[0].leaks, 0);
    left_nothing(0);
}

static ebb_status fails(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return EBB_FAILED;
}

/* More than a stack has by default. */
static ebb_status uses_much_stack(ebb_cx *cx, void *arg) {
    volatile char bytes[2 * EBB_FIBER_STACK_BYTES];
    (void)arg;
    for (size_t i = 0; i < sizeof bytes; i += 4096) bytes[i] = 1;
    return bytes[0] == 1 ? ebb_fiber_yield(cx) : EBB_FAILED;
}

static void run_one_with_large_stacks(void) {
    ebb_fiber_opts large = {.stack_bytes = 4 * EBB_FIBER_STACK_BYTES};
    ebb_service_opts o = options();
    o.loop.fibers = &large;
    run(o, uses_much_stack, NULL);
    large.stack_bytes = 1; /* less than the least */
    o = options();
    o.loop.fibers = &large;
    run(o, uses_much_stack, NULL);
}

static void the_stacks_of_its_fibers_can_be_chosen(void **state) {
    (void)state;
    in_a_process(run_one_with_large_stacks);
    assert_int_equal(saw->exit[0], EBB_SERVICE_OK);
    assert_int_equal(saw->exit[1], EBB_SERVICE_FAILED);
    assert_int_equal(saw->report[1].status, EBB_ERR_INVALID);
    for (int i = 0; i < 2; i++) left_nothing(i);
}

static void run_one_that_fails(void) {
    run(options(), fails, NULL);
}

static void a_first_fiber_that_fails_is_the_failure_of_the_service(void **state) {
    (void)state;
    in_a_process(run_one_that_fails);
    assert_int_equal(saw->exit[0], EBB_SERVICE_FAILED);
    assert_int_equal(saw->report[0].status, EBB_FAILED);
    left_nothing(0);
}

static ebb_status joins_itself(ebb_cx *cx, void *arg) {
    (void)arg;
    return ebb_workflow_join(cx, ebb_workflow_of(cx), NULL);
}

static void run_one_that_joins_itself(void) {
    run(options(), joins_itself, NULL);
}

static void a_first_fiber_can_not_wait_for_its_own_end(void **state) {
    (void)state;
    in_a_process(run_one_that_joins_itself);
    assert_int_equal(saw->exit[0], EBB_SERVICE_FAILED);
    assert_int_equal(saw->report[0].status, EBB_ERR_INVALID);
}

static ebb_status leaves_an_obligation(ebb_cx *cx, void *arg) {
    (void)arg;
    ebb_obligation o = ebb_region_reserve(cx, ebb_cx_region(cx), EBB_OBLIGATION_LEASE, NULL, NULL);
    if (ebb_id_status(o.id) != EBB_OK) return ebb_id_status(o.id);
    (void)raise(SIGTERM);
    return EBB_OK;
}

/* ---- signals ----------------------------------------------------------------------------------- */

static ebb_status is_signalled(ebb_cx *cx, void *arg) {
    const int *signals = arg;
    for (; *signals != 0; signals++) (void)raise(*signals);
    saw->fn = sleeps(cx);
    return saw->fn;
}

static void run_with_sigterm_and_with_sigint(void) {
    static int term[] = {SIGTERM, 0}, interrupt[] = {SIGINT, 0};
    run(with_time(50 * EBB_MS), is_signalled, term);
    run(with_time(50 * EBB_MS), is_signalled, interrupt);
}

static void one_signal_stops_it_in_order(void **state) {
    static const char *const names[] = {"SIGTERM", "SIGINT"};
    (void)state;
    in_a_process(run_with_sigterm_and_with_sigint);
    assert_int_equal(saw->fn, EBB_CANCELLED);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(saw->exit[i], EBB_SERVICE_OK);
        assert_int_equal(saw->report[i].state, EBB_WORKFLOW_FINALIZED);
        assert_true(saw->report[i].cancelled); /* at cancel_at: it did not look before */
        assert_false(saw->report[i].drain_timed_out);
        assert_int_equal(saw->report[i].reason.kind, EBB_CANCEL_USER);
        assert_string_equal(saw->report[i].reason.message, names[i]);
        left_nothing(i);
    }
    assert_int_equal(saw->fds[1], saw->fds[0]);
}

static void run_with_two_signals(void) {
    static int both[] = {SIGTERM, SIGINT, 0};
    ebb_service_opts o = options();
    o.shutdown.budget = 3600 * EBB_SECOND;
    run(o, is_signalled, both);
}

static void a_second_signal_forces_it(void **state) {
    (void)state;
    in_a_process(run_with_two_signals);
    assert_int_equal(saw->exit[0], EBB_SERVICE_FORCED);
    assert_true(saw->report[0].forced);
    assert_true(saw->report[0].drain_timed_out);
    left_nothing(0);
}

static ebb_status ignores_all(ebb_cx *cx, void *arg) {
    (void)arg;
    (void)raise(SIGTERM);
    while (ebb_fiber_park(cx) != EBB_FAULTED) {} /* that is never */
    return EBB_OK;
}

static void run_one_that_ignores_all(void) {
    run(options(), ignores_all, NULL);
}

static void one_that_does_not_stop_is_over_with_its_budget(void **state) {
    (void)state;
    in_a_process(run_one_that_ignores_all);
    assert_int_equal(saw->exit[0], EBB_SERVICE_TIMEOUT);
    assert_true(saw->report[0].drain_timed_out);
    assert_false(saw->report[0].forced);
    assert_in_range(saw->report[0].elapsed, 300 * EBB_MS, 20 * EBB_SECOND);
}

/* It is waited for until the budget is over. */
static void run_one_that_leaves_an_obligation(void) {
    ebb_service_opts o = options();
    o.shutdown.budget = 3 * EBB_SECOND;
    run(o, leaves_an_obligation, NULL);
}

static void one_that_stops_in_time_and_leaves_something_says_so(void **state) {
    (void)state;
    in_a_process(run_one_that_leaves_an_obligation);
    assert_int_equal(saw->exit[0], EBB_SERVICE_LEAK);
    assert_int_equal(saw->report[0].leaks, 1);
    left_nothing(0);
}

static ebb_status never_ends(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return EBB_PENDING;
}

static ebb_status leaves_a_finalizer_that_never_ends(ebb_cx *cx, void *arg) {
    (void)arg;
    ebb_status st = ebb_region_defer(cx, ebb_cx_region(cx), never_ends, NULL);
    (void)raise(SIGTERM); /* heard of when its work has ended, and its finalizers run */
    return st;
}

static void run_one_whose_finalizer_never_ends(void) {
    run(options(), leaves_a_finalizer_that_never_ends, NULL);
}

static void a_signal_bounds_the_finalizers_of_one_that_has_ended_by_itself(void **state) {
    (void)state;
    in_a_process(run_one_whose_finalizer_never_ends);
    assert_int_equal(saw->exit[0], EBB_SERVICE_LEAK);
    assert_int_equal(saw->report[0].leaks, 1);
    assert_in_range(saw->took_ms[0], 0, 20000);
    left_nothing(0);
}

/* ---- what it says ------------------------------------------------------------------------------ */

static void log_text(void *ctx, const char *text, size_t n) {
    size_t have = strlen(saw->text);
    if (ctx == saw && have + n < sizeof saw->text) memcpy(saw->text + have, text, n);
}

static bool has_said(const char *part) {
    return strstr(saw->text, part) != NULL;
}

/* A signal is heard when the loop turns. */
static ebb_status until_said(ebb_cx *cx, const char *part) {
    ebb_status st = EBB_OK;
    while (st == EBB_OK && !has_said(part)) {
        ebb_sleeper s = {0};
        st = ebb_sleep(cx, &s, EBB_MS);
    }
    return st;
}

static ebb_status asks_what_it_is_at(ebb_cx *cx, void *arg) {
    (void)arg;
    (void)raise(SIGUSR1);
    ebb_status st = until_said(cx, "is IDLE");
    (void)raise(SIGTERM);
    while (st == EBB_OK && !ebb_stopping(cx)) {
        ebb_sleeper s = {0};
        st = ebb_sleep(cx, &s, EBB_MS);
    }
    (void)raise(SIGUSR1);
    if (st == EBB_OK) st = until_said(cx, "is DRAINING");
    saw->fn = st;
    return st;
}

static void run_one_that_is_asked_what_it_is_at(void) {
    ebb_service_opts o = with_time(0);
    o.log = log_text;
    o.log_ctx = saw;
    run(o, asks_what_it_is_at, NULL);
}

static void sigusr1_explains_it_at_any_time(void **state) {
    (void)state;
    in_a_process(run_one_that_is_asked_what_it_is_at);
    assert_int_equal(saw->fn, EBB_OK);
    assert_true(has_said("short_stop#1 is IDLE, 1 in flight\n  task "));
    assert_true(has_said("spawned at the first fiber of the service"));
    assert_true(has_said("short_stop#1 is DRAINING, "));
    assert_int_equal(saw->exit[0], EBB_SERVICE_OK); /* and does not stop it */
}

static int ends[2]; /* of the pipe that is the standard error of the process */

static ebb_status is_asked_early(ebb_cx *cx, void *arg) {
    int waiting = 0;
    ebb_status st = EBB_OK;
    (void)arg;
    (void)raise(SIGUSR1);
    while (st == EBB_OK && ioctl(ends[0], FIONREAD, &waiting) == 0 && waiting == 0) {
        ebb_sleeper s = {0};
        st = ebb_sleep(cx, &s, EBB_MS);
    }
    return st;
}

static void run_one_without_a_log(void) {
    if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) _exit(1);
    run(options(), is_asked_early, NULL);
    if (read(ends[0], saw->text, sizeof saw->text - 1) < 0) _exit(1);
}

static void without_a_log_it_says_so_on_standard_error(void **state) {
    (void)state;
    in_a_process(run_one_without_a_log);
    assert_true(has_said("short_stop#1 is IDLE, 1 in flight\n"));
}

static ebb_runtime *serving;

static void force_at_last(void *arg, ebb_workflow wf) {
    if (arg == &serving) saw->told++;
    if (ebb_workflow_force(ebb_runtime_host(serving), wf, "enough") != EBB_OK) _exit(1);
}

static ebb_status holds_it_up(ebb_cx *cx, void *arg) {
    serving = ebb_cx_runtime(cx);
    return ignores_all(cx, arg);
}

static void run_one_that_is_overdue(void) {
    ebb_service_opts o = options();
    o.shutdown.no_force = true;
    o.shutdown.on_overdue = force_at_last;
    o.shutdown.arg = &serving;
    o.log = log_text;
    o.log_ctx = saw;
    run(o, holds_it_up, NULL);
}

static void an_overdue_shutdown_explains_itself_in_the_log(void **state) {
    (void)state;
    in_a_process(run_one_that_is_overdue);
    assert_true(has_said("over its budget: extend or force it, 1 in flight\n"));
    assert_true(has_said("spawned at the first fiber of the service"));
    assert_int_equal(saw->told, 1); /* the hook of the caller too, with its own argument */
    assert_true(saw->report[0].forced);
    assert_int_equal(saw->exit[0], EBB_SERVICE_TIMEOUT);
}

/* ---- the thread pool --------------------------------------------------------------------------- */

static sem_t held;

static ebb_status does_not_end(void *arg, ebb_value *v) {
    (void)arg;
    (void)v;
    while (sem_wait(&held) != 0 && errno == EINTR) {}
    return EBB_OK;
}

static ebb_status waits_for_the_pool(ebb_cx *cx, void *arg) {
    (void)arg;
    ebb_future *f = ebb_pool_run(cx, does_not_end, NULL);
    (void)raise(SIGTERM);
    return ebb_await(cx, f, NULL);
}

/* As late as a signal can come and still reach the loop: right when it has ended. */
static void signal_at_the_end(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    (void)arg;
    (void)wf;
    (void)from;
    if (to == EBB_WORKFLOW_FINALIZED || to == EBB_WORKFLOW_LEAK_DETECTED) (void)raise(SIGTERM);
}

static void run_with_a_pool_function_that_does_not_end(void) {
    (void)sem_init(&held, 0, 0);
    ebb_service_opts o = options();
    o.shutdown.on_state = signal_at_the_end;
    run(o, waits_for_the_pool, NULL);
}

static void a_pool_function_that_does_not_end_holds_nobody_up(void **state) {
    (void)state;
    in_a_process(run_with_a_pool_function_that_does_not_end);
    assert_int_equal(saw->exit[0], EBB_SERVICE_TIMEOUT);
    assert_false(saw->report[0].forced);
    assert_true(saw->report[0].drain_timed_out);
    assert_in_range(saw->took_ms[0], 300, 20000);
}

static void run_one_more_beside_the_remains(void) {
    run_with_a_pool_function_that_does_not_end();
    run(options(), ends_at_once, NULL);
}

static void another_service_may_run_beside_what_was_left(void **state) {
    (void)state;
    in_a_process(run_one_more_beside_the_remains);
    assert_int_equal(saw->exit[0], EBB_SERVICE_TIMEOUT);
    assert_int_equal(saw->exit[1], EBB_SERVICE_OK);
    left_nothing(1);
    assert_int_equal(saw->fds[1], saw->fds[0]);
}

static ebb_status ends_soon(void *arg, ebb_value *v) {
    (void)arg;
    *v = ebb_value_int(7);
    return EBB_OK;
}

static ebb_status uses_the_pool(ebb_cx *cx, void *arg) {
    ebb_value v;
    (void)arg;
    ebb_status st = ebb_await(cx, ebb_pool_run(cx, ends_soon, NULL), &v);
    return st == EBB_OK && v.as.i != 7 ? EBB_FAILED : st;
}

static ebb_status uses_a_listener(ebb_cx *cx, void *arg) {
    (void)arg;
    ebb_listener l = ebb_tcp_listen(cx, &(ebb_address){"127.0.0.1", 0});
    ebb_future *f = ebb_listener_accept(cx, l);
    (void)raise(SIGTERM);
    saw->fn = ebb_await(cx, f, NULL);
    return saw->fn == EBB_ERR_CLOSED ? EBB_OK : saw->fn;
}

static void run_several(void) {
    run(options(), uses_the_pool, NULL); /* what libuv opens once and keeps is there now */
    run(with_time(0), uses_a_listener, NULL);
    run(options(), uses_the_pool, NULL);
    run(with_time(0), uses_a_listener, NULL);
}

static void services_run_one_after_the_other_and_leave_nothing(void **state) {
    (void)state;
    in_a_process(run_several);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(saw->exit[i], EBB_SERVICE_OK);
        left_nothing(i);
    }
    assert_int_equal(saw->fds[2], saw->fds[0]);
    assert_int_equal(saw->fds[3], saw->fds[1]);
    assert_int_equal(saw->fn, EBB_ERR_CLOSED);
    assert_false(saw->report[1].cancelled); /* an accept ends with the request */
}

/* ---- what can't start -------------------------------------------------------------------------- */

static void run_those_without_what_they_need(void) {
    ebb_service_opts o = options();
    run(o, NULL, NULL);
    o.loop.runtime.allocator.fn = NULL;
    run(o, ends_at_once, NULL);
    o = options();
    o.shutdown.budget = UINT64_MAX;
    run(o, ends_at_once, NULL);
    o = options();
    memory.fail_at = 1;
    run(o, ends_at_once, NULL);
}

static void could_not_start(int i, ebb_status why) {
    assert_int_equal(saw->exit[i], EBB_SERVICE_FAILED);
    assert_int_equal(saw->report[i].status, why);
    assert_int_equal(saw->report[i].leaks, 0);
    left_nothing(i);
}

static void the_report_says_why_it_could_not_start(void **state) {
    (void)state;
    in_a_process(run_those_without_what_they_need);
    for (int i = 0; i < 3; i++) could_not_start(i, EBB_ERR_INVALID);
    could_not_start(3, EBB_ERR_NOMEM);
}

static void run_those_without_room(void) {
    struct rlimit old, none;
    uv_loop_t uv;
    ebb_loop *other;
    ebb_service_opts o = options();
    run(o, ends_at_once, NULL);
    o.loop.runtime.max_tasks = 1;
    run(o, ends_at_once, NULL);
    (void)getrlimit(RLIMIT_NOFILE, &old);
    none = (struct rlimit){3, old.rlim_max};
    (void)setrlimit(RLIMIT_NOFILE, &none);
    run(options(), ends_at_once, NULL);
    (void)setrlimit(RLIMIT_NOFILE, &old);
    o = options();
    o.loop.runtime.runtime_id = 9;
    if (uv_loop_init(&uv) != 0 || ebb_loop_attach(&uv, &o.loop, &other) != EBB_OK) _exit(9);
    int64_t live = memory.live;
    run(o, ends_at_once, NULL);
    saw->live[3] -= live;
}

static void the_report_says_what_it_had_no_room_for(void **state) {
    (void)state;
    in_a_process(run_those_without_room);
    assert_int_equal(saw->exit[0], EBB_SERVICE_OK);
    could_not_start(1, EBB_ERR_LIMIT);
    could_not_start(2, EBB_ERRNO(EMFILE));
    could_not_start(3, EBB_ERR_BUSY);
}

static void run_those_of_another_version(void) {
    ebb_service_opts o = options();
    o.size = sizeof o + 1;
    run(o, ends_at_once, NULL);
    saw->exit[1] = ebb_service_run(NULL, ends_at_once, NULL);
    o = options();
    saw->exit[2] = ebb_service_run(&o, NULL, NULL); /* nobody asks why */
}

static void options_that_are_not_ours_are_refused(void **state) {
    (void)state;
    in_a_process(run_those_of_another_version);
    for (int i = 0; i < 3; i++) assert_int_equal(saw->exit[i], EBB_SERVICE_FAILED);
}

static void run_with_each_allocation_failing(void) {
    static int term[] = {SIGTERM, 0};
    uint64_t n = 0;
    do {
        ebb_service_opts o = with_time(EBB_MS);
        ebb_workflow_report report;
        o.report = &report;
        memory.fail_at = ++n;
        saw->exit[0] = ebb_service_run(&o, is_signalled, term);
        saw->live[0] += memory.live;
        bool told = saw->exit[0] == EBB_SERVICE_OK || report.status == EBB_ERR_NOMEM;
        if (!told) saw->exit[1]++;
    } while (memory.calls >= n && n < 1000);
    saw->took_ms[0] = n;
}

static void a_service_without_memory_says_so_and_leaves_nothing(void **state) {
    (void)state;
    in_a_process(run_with_each_allocation_failing);
    assert_in_range(saw->took_ms[0], 5, 999);
    assert_int_equal(saw->exit[0], EBB_SERVICE_OK); /* the last one had all that it needed */
    assert_int_equal(saw->exit[1], 0);
    left_nothing(0);
}

static int share(void **state) {
    (void)state;
    saw = mmap(NULL, sizeof *saw, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return saw == MAP_FAILED ? -1 : 0;
}

static int unshare(void **state) {
    (void)state;
    return munmap(saw, sizeof *saw);
}

/* ---- waiting at the end ------------------------------------------------------------------------ */

static ebb_status leaves_a_lease(ebb_cx *cx, void *arg) {
    (void)arg;
    (void)ebb_region_reserve(cx, ebb_cx_region(cx), EBB_OBLIGATION_LEASE, NULL, NULL);
    (void)kill(getpid(), SIGTERM);
    return ebb_await(cx, ebb_closing(cx), NULL);
}

static uint64_t cpu_ms(void) {
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static void run_one_that_waits_for_a_lease(void) {
    ebb_service_opts o = options();
    o.shutdown.budget = 2 * EBB_SECOND;
    uint64_t before = cpu_ms();
    run(o, leaves_a_lease, NULL);
    saw->cpu_ms = cpu_ms() - before;
}

/* There is no task then, only a timer. */
static void to_wait_for_a_lease_costs_nothing(void **state) {
    (void)state;
    in_a_process(run_one_that_waits_for_a_lease);
    assert_int_equal(saw->exit[0], EBB_SERVICE_LEAK);
    assert_true(saw->took_ms[0] >= 1000);
    assert_true(saw->cpu_ms < saw->took_ms[0] / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_whose_first_fiber_returns_at_once_has_ended),
        cmocka_unit_test(the_stacks_of_its_fibers_can_be_chosen),
        cmocka_unit_test(a_first_fiber_that_fails_is_the_failure_of_the_service),
        cmocka_unit_test(a_first_fiber_can_not_wait_for_its_own_end),
        cmocka_unit_test(one_signal_stops_it_in_order),
        cmocka_unit_test(a_second_signal_forces_it),
        cmocka_unit_test(one_that_does_not_stop_is_over_with_its_budget),
        cmocka_unit_test(one_that_stops_in_time_and_leaves_something_says_so),
        cmocka_unit_test(sigusr1_explains_it_at_any_time),
        cmocka_unit_test(without_a_log_it_says_so_on_standard_error),
        cmocka_unit_test(an_overdue_shutdown_explains_itself_in_the_log),
        cmocka_unit_test(a_signal_bounds_the_finalizers_of_one_that_has_ended_by_itself),
        cmocka_unit_test(a_pool_function_that_does_not_end_holds_nobody_up),
        cmocka_unit_test(another_service_may_run_beside_what_was_left),
        cmocka_unit_test(services_run_one_after_the_other_and_leave_nothing),
        cmocka_unit_test(the_report_says_why_it_could_not_start),
        cmocka_unit_test(the_report_says_what_it_had_no_room_for),
        cmocka_unit_test(options_that_are_not_ours_are_refused),
        cmocka_unit_test(a_service_without_memory_says_so_and_leaves_nothing),
        cmocka_unit_test(to_wait_for_a_lease_costs_nothing),
    };
    return cmocka_run_group_tests(tests, share, unshare);
}
