/* Child processes and signals. */
#include "loop/loop.h"
#include "tests/support/loop_world.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

static ebb_process_opts shell(const char *const *args) {
    return (ebb_process_opts){.file = "/bin/sh", .args = args};
}

/* A shell that runs this, with a pipe for each descriptor. */
static ebb_process run_shell(loop_world *w, ebb_cx *cx, const char *script, ebb_stream pipes[3]) {
    const char *args[] = {"sh", "-c", script, NULL};
    ebb_process_opts opts = shell(args);
    (void)w;
    for (int i = 0; i < 3; i++) opts.stdio[i] = EBB_PROCESS_STDIO_PIPE;
    ebb_process p = ebb_process_spawn(cx, pipes, &opts);
    assert_int_equal(ebb_id_status(p.id), EBB_OK);
    return p;
}

static bool is_alive(int pid) {
    return kill(pid, 0) == 0;
}

/* ---- processes ------------------------------------------------------------------------------------------- */

typedef struct conversation {
    loop_world *world;
    char out[64], err[64];
    ebb_value exit;
} conversation;

static ebb_status read_to_end(ebb_cx *cx, ebb_stream s, char *into, size_t room) {
    size_t n = 0;
    for (;;) {
        ebb_value v;
        ebb_status st = ebb_await(cx, ebb_stream_read(cx, s, into + n, room - n), &v);
        if (st == EBB_ERR_EOF) return EBB_OK;
        if (st != EBB_OK) return st;
        n += v.as.u;
    }
}

static ebb_status converse(ebb_cx *cx, void *arg) {
    conversation *c = arg;
    ebb_stream io[3];
    ebb_process p = run_shell(c->world, cx, "read line; echo got $line; echo oops >&2; exit 3", io);
    ebb_status st = ebb_await(cx, ebb_stream_write(cx, io[0], "hello\n", 6), NULL);
    if (st == EBB_OK) st = read_to_end(cx, io[1], c->out, sizeof c->out);
    if (st == EBB_OK) st = read_to_end(cx, io[2], c->err, sizeof c->err);
    if (st == EBB_OK) st = ebb_await(cx, ebb_process_wait(cx, p), &c->exit);
    return st;
}

static void a_process_is_talked_to_and_waited_for(void **state) {
    conversation c = {.world = *state};
    assert_int_equal(run_fiber(*state, converse, &c), EBB_OK);
    assert_string_equal(c.out, "got hello\n");
    assert_string_equal(c.err, "oops\n");
    assert_int_equal(ebb_process_exit_code(c.exit), 3);
    assert_int_equal(ebb_process_exit_signal(c.exit), 0);
}

static void an_end_may_be_waited_for_later_and_only_once(void **state) {
    loop_world *w = *state;
    ebb_stream io[3];
    ebb_value v;
    char byte;
    ebb_process p = run_shell(w, w->cx, "exit 7", io);
    int pid = ebb_process_pid(w->cx, p);
    assert_true(pid > 0);
    assert_int_equal(loop_await(w, ebb_stream_read(w->cx, io[1], &byte, 1), NULL), EBB_ERR_EOF);
    while (is_alive(pid)) loop_turns(w, 1); /* until it is reaped */
    assert_int_equal(ebb_process_kill(w->cx, p, SIGTERM), EBB_ERRNO(ESRCH));
    assert_int_equal(loop_await(w, ebb_process_wait(w->cx, p), &v), EBB_OK);
    assert_int_equal(ebb_process_exit_code(v), 7);
    assert_int_equal(status_now(ebb_process_wait(w->cx, p)), EBB_ERR_CLOSED);
    assert_int_equal(ebb_process_kill(w->cx, p, SIGTERM), EBB_ERR_CLOSED);
    assert_int_equal(ebb_process_pid(w->cx, p), 0);
}

static void a_signal_ends_it_and_is_told(void **state) {
    loop_world *w = *state;
    ebb_stream io[3];
    ebb_value v;
    ebb_process p = run_shell(w, w->cx, "exec sleep 1000", io);
    ebb_future *f = ebb_process_wait(w->cx, p);
    assert_int_equal(status_now(ebb_process_wait(w->cx, p)), EBB_ERR_BUSY);
    assert_int_equal(ebb_process_kill(w->cx, p, SIGKILL), EBB_OK);
    assert_int_equal(loop_await(w, f, &v), EBB_OK);
    assert_int_equal(ebb_process_exit_signal(v), SIGKILL);
}

static void what_can_not_be_started_is_named(void **state) {
    loop_world *w = *state;
    ebb_stream io[3];
    char byte;
    ebb_process_opts none = {.file = "/nowhere/at/all", .stdio = {EBB_PROCESS_STDIO_PIPE}};
    ebb_process p = ebb_process_spawn(w->cx, io, &none);
    assert_int_equal(ebb_id_status(p.id), EBB_ERRNO(ENOENT));
    assert_int_equal(status_now(ebb_process_wait(w->cx, p)), EBB_ERRNO(ENOENT));
    assert_int_equal(status_now(ebb_stream_read(w->cx, io[0], &byte, 1)), EBB_ERRNO(ENOENT));
    assert_int_equal(status_now(ebb_stream_read(w->cx, io[1], &byte, 1)), EBB_ERRNO(ENOENT));
    assert_int_equal(ebb_id_status(ebb_process_spawn(w->cx, io, NULL).id), EBB_ERR_INVALID);
    ebb_process_opts bad = {.size = 1, .file = "true"};
    assert_int_equal(ebb_id_status(ebb_process_spawn(w->cx, io, &bad).id), EBB_ERR_VERSION);
    bad = (ebb_process_opts){.file = NULL};
    assert_int_equal(ebb_id_status(ebb_process_spawn(w->cx, io, &bad).id), EBB_ERR_INVALID);
    bad = (ebb_process_opts){.file = "true", .stdio = {EBB_PROCESS_STDIO_PIPE}};
    assert_int_equal(ebb_id_status(ebb_process_spawn(w->cx, NULL, &bad).id), EBB_ERR_INVALID);
    bad = (ebb_process_opts){.file = "true", .stdio = {(ebb_process_stdio)9}};
    assert_int_equal(ebb_id_status(ebb_process_spawn(w->cx, io, &bad).id), EBB_ERR_INVALID);
}

static void environment_and_directory_are_the_callers_choice(void **state) {
    loop_world *w = *state;
    const char *args[] = {"sh", "-c", "test \"$WHO\" = ebb && test \"$(pwd)\" = /", NULL};
    const char *env[] = {"WHO=ebb", "PATH=/bin:/usr/bin", NULL};
    ebb_process_opts opts = shell(args);
    opts.env = env;
    opts.cwd = "/";
    opts.stdio[2] = EBB_PROCESS_STDIO_INHERIT;
    ebb_value v;
    ebb_process p = ebb_process_spawn(w->cx, NULL, &opts);
    assert_int_equal(loop_await(w, ebb_process_wait(w->cx, p), &v), EBB_OK);
    assert_int_equal(ebb_process_exit_code(v), 0);
    p = ebb_process_spawn(w->cx, NULL, &(ebb_process_opts){.file = "true"}); /* from PATH, by itself */
    assert_int_equal(loop_await(w, ebb_process_wait(w->cx, p), &v), EBB_OK);
    assert_int_equal(ebb_process_exit_code(v), 0);
}

/* ---- groups, and standard error ------------------------------------------------------------------------------------ */

/* A shell that leaves a grandchild behind, which heeds no signal that can be ignored and holds standard output. */
#define FAMILY "(trap '' TERM INT HUP; echo stays; while :; do sleep 0.02; done) & "

typedef struct family {
    const char *script;
    int how; /* 0: it ends by itself. 1: its wait is cancelled. 2: it is killed. 3: its whole group is, from outside */
    ebb_value exit;
} family;

static ebb_status raise_family(ebb_cx *cx, void *arg) {
    family *m = arg;
    const char *args[] = {"sh", "-c", m->script, NULL};
    ebb_process_opts opts = shell(args);
    ebb_stream io[3];
    char bytes[64];
    opts.stdio[1] = EBB_PROCESS_STDIO_PIPE;
    opts.group = true;
    ebb_process p = ebb_process_spawn(cx, io, &opts);
    ebb_status st = ebb_await(cx, ebb_stream_read(cx, io[1], bytes, sizeof bytes), NULL);
    if (st == EBB_ERR_EOF && m->how == 0)
        st = EBB_OK; /* the grandchild was killed before it could say a word */
    if (st != EBB_OK) return st;
    if (m->how == 1) (void)ebb_await(cx, ebb_within(cx, ebb_process_wait(cx, p), EBB_MS), NULL);
    if (m->how == 2) st = ebb_process_kill(cx, p, SIGINT);
    ebb_future *wait = m->how == 3 ? ebb_process_wait(cx, p) : NULL;
    if (m->how == 3) {
        assert_int_equal(kill(-ebb_process_pid(cx, p), SIGKILL), 0);
        return ebb_await(cx, wait, &m->exit);
    }
    if (st == EBB_OK) st = ebb_await(cx, ebb_process_wait(cx, p), &m->exit);
    if (st != EBB_OK) return st;
    return read_to_end(cx, io[1], bytes, sizeof bytes); /* not before the grandchild has ended */
}

static void a_group_ends_with_its_leader(void **state) {
    loop_world *w = *state;
    family ends = {.script = FAMILY "exit 4"}, cancelled = {.script = FAMILY "wait", .how = 1},
           killed = {.script = FAMILY "wait", .how = 2};
    assert_int_equal(run_fiber(w, raise_family, &ends), EBB_OK);
    assert_int_equal(ebb_process_exit_code(ends.exit), 4);
    assert_int_equal(run_fiber(w, raise_family, &cancelled), EBB_OK);
    assert_int_equal(ebb_process_exit_signal(cancelled.exit), SIGTERM);
    assert_int_equal(run_fiber(w, raise_family, &killed), EBB_OK);
    assert_int_equal(ebb_process_exit_signal(killed.exit), SIGINT);
    family shot = {.script = FAMILY "wait", .how = 3};
    assert_int_equal(run_fiber(w, raise_family, &shot), EBB_OK);
    assert_int_equal(ebb_process_exit_signal(shot.exit), SIGKILL);
}

/* A signal reaches the grandchild too, which says so and ends the leader by ending. */
static ebb_status signal_group(ebb_cx *cx, void *arg) {
    family *m = arg;
    const char *args[] = {"sh", "-c",
                          "trap : USR1; (trap 'exit 5' USR1; echo ready; while :; do sleep 0.02; done) & "
                          "wait; wait $!; exit $?",
                          NULL};
    ebb_process_opts opts = shell(args);
    ebb_stream io[3];
    char bytes[64];
    opts.stdio[1] = EBB_PROCESS_STDIO_PIPE;
    opts.group = true;
    ebb_process p = ebb_process_spawn(cx, io, &opts);
    ebb_status st = ebb_await(cx, ebb_stream_read(cx, io[1], bytes, sizeof bytes), NULL);
    if (st == EBB_OK) st = ebb_process_kill(cx, p, SIGUSR1);
    return st != EBB_OK ? st : ebb_await(cx, ebb_process_wait(cx, p), &m->exit);
}

static void a_signal_reaches_the_whole_group(void **state) {
    family m = {.how = 0};
    assert_int_equal(run_fiber(*state, signal_group, &m), EBB_OK);
    assert_int_equal(ebb_process_exit_code(m.exit), 5);
}

static ebb_status hear_both(ebb_cx *cx, void *arg) {
    conversation *c = arg;
    const char *args[] = {"sh", "-c", "echo one; echo two >&2; echo three; exit 2", NULL};
    ebb_process_opts opts = shell(args);
    ebb_stream io[3];
    opts.stdio[1] = EBB_PROCESS_STDIO_PIPE;
    opts.stdio[2] = EBB_PROCESS_STDIO_STDOUT;
    ebb_process p = ebb_process_spawn(cx, io, &opts);
    assert_int_equal(ebb_id_status(io[2].id), EBB_ERR_INVALID); /* it has no stream of its own */
    ebb_status st = read_to_end(cx, io[1], c->out, sizeof c->out);
    return st != EBB_OK ? st : ebb_await(cx, ebb_process_wait(cx, p), &c->exit);
}

static void standard_error_goes_where_standard_output_goes(void **state) {
    loop_world *w = *state;
    conversation c = {.world = w};
    assert_int_equal(run_fiber(w, hear_both, &c), EBB_OK);
    assert_string_equal(c.out, "one\ntwo\nthree\n");
    assert_int_equal(ebb_process_exit_code(c.exit), 2);
    ebb_stream io[3];
    ebb_process_opts bad = {.file = "/nowhere/at/all",
                            .stdio = {0, EBB_PROCESS_STDIO_PIPE, EBB_PROCESS_STDIO_STDOUT}};
    assert_int_equal(ebb_id_status(ebb_process_spawn(w->cx, io, &bad).id), EBB_ERRNO(ENOENT));
    bad = (ebb_process_opts){.file = "true", .stdio = {0, EBB_PROCESS_STDIO_STDOUT}};
    assert_int_equal(ebb_id_status(ebb_process_spawn(w->cx, io, &bad).id), EBB_ERR_INVALID);
    ebb_value v;
    ebb_process_opts quiet = {.file = "true", .stdio = {0, 0, EBB_PROCESS_STDIO_STDOUT}};
    assert_int_equal(loop_await(w, ebb_process_wait(w->cx, ebb_process_spawn(w->cx, NULL, &quiet)), &v),
                     EBB_OK);
    assert_int_equal(ebb_process_exit_code(v), 0);
}

/* ---- descriptors --------------------------------------------------------------------------------------- */

enum { NUMBERS = 32 };

/* The flag orders nothing, so ThreadSanitizer has to know by itself that the numbers were given back. */
static void *open_many(void *closed) {
    int fds[NUMBERS];
    while (!atomic_load_explicit((atomic_bool *)closed, memory_order_relaxed)) (void)sched_yield();
    for (int i = 0; i < NUMBERS; i++) fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < NUMBERS; i++) (void)close(fds[i]);
    return NULL;
}

static void numbers_of_its_pipes_are_free_for_other_threads(void **state) {
    conversation c = {.world = *state};
    atomic_bool closed = false;
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, open_many, &closed), 0);
    assert_int_equal(run_fiber(*state, converse, &c), EBB_OK);
    atomic_store_explicit(&closed, true, memory_order_relaxed);
    assert_int_equal(pthread_join(other, NULL), 0);
}

/* ---- cancels ---------------------------------------------------------------------------------------------------- */

/* Starts a shell that says "ready" when its traps are set. */
typedef struct child {
    loop_world *world;
    const char *script;
    uint64_t grace;
    ebb_process process;
    int pid;
    bool ready;
    ebb_region region;
} child;

static ebb_status start_child(ebb_cx *cx, void *arg) {
    child *c = arg;
    const char *args[] = {"sh", "-c", c->script, NULL};
    ebb_process_opts opts = shell(args);
    ebb_stream io[3];
    char bytes[8];
    opts.stdio[1] = EBB_PROCESS_STDIO_PIPE;
    opts.grace = c->grace;
    c->process = ebb_process_spawn(cx, io, &opts);
    c->pid = ebb_process_pid(cx, c->process);
    ebb_status st = ebb_await(cx, ebb_stream_read(cx, io[1], bytes, sizeof bytes), NULL);
    c->ready = true;
    return st;
}

static void make_child(loop_world *w, child *c) {
    c->world = w;
    c->region = ebb_region_open(w->cx, NULL);
    ebb_fiber_spawn(w->cx, c->region, start_child, c);
    loop_until(w, is_true, &c->ready);
    assert_true(c->pid > 0);
}

static bool child_region_closed(void *arg) {
    child *c = arg;
    return region_is_closed(c->world, c->region);
}

#define OBEDIENT "echo ready; exec sleep 1000"
#define STUBBORN "trap '' TERM; echo ready; while :; do sleep 0.05; done"

static void cancelling_the_wait_ends_the_process(void **state) {
    loop_world *w = *state;
    child c = {.script = OBEDIENT, .grace = 100 * EBB_SECOND};
    make_child(w, &c);
    ebb_future *f = ebb_process_wait(w->cx, c.process);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    loop_turns(w, 1);
    assert_int_equal(status_now(f), EBB_CANCELLED);
    while (is_alive(c.pid)) uv_run(&w->uv, UV_RUN_ONCE);
    loop_turns(w, 2);
    assert_int_equal(ebb_process_kill(w->cx, c.process, 0), EBB_ERRNO(ESRCH));
}

/* How it ended can be asked again after a wait that was cancelled, before the process is gone and after. */
static void an_end_is_kept_for_the_next_wait(void **state) {
    loop_world *w = *state;
    for (int late = 0; late < 2; late++) {
        child c = {.script = OBEDIENT, .grace = 100 * EBB_SECOND};
        ebb_value v;
        make_child(w, &c);
        ebb_future *f = ebb_process_wait(w->cx, c.process);
        assert_int_equal(status_now(ebb_process_wait(w->cx, c.process)), EBB_ERR_BUSY);
        assert_int_equal(loop_await(w, ebb_within(ebb_loop_cx(w->loop), f, EBB_MS), NULL), EBB_TIMEOUT);
        while (late && is_alive(c.pid)) loop_turns(w, 1);
        assert_int_equal(loop_await(w, ebb_process_wait(w->cx, c.process), &v), EBB_OK);
        assert_int_equal(ebb_process_exit_signal(v), SIGTERM);
        assert_int_equal(status_now(ebb_process_wait(w->cx, c.process)), EBB_ERR_CLOSED);
        ebb_region_close(w->cx, c.region);
        loop_until(w, child_region_closed, &c);
        assert_int_equal(ebb_region_join(w->cx, c.region), EBB_OK);
    }
}

/* The first wait hears of its cancel after the second has begun. */
static void a_wait_may_follow_a_cancel_at_once(void **state) {
    loop_world *w = *state;
    child c = {.script = OBEDIENT, .grace = 100 * EBB_SECOND};
    ebb_value v;
    make_child(w, &c);
    ebb_future *f = ebb_process_wait(w->cx, c.process);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    ebb_future_drop(f);
    assert_int_equal(loop_await(w, ebb_process_wait(w->cx, c.process), &v), EBB_OK);
    assert_int_equal(ebb_process_exit_signal(v), SIGTERM);
}

static ebb_status busy(ebb_cx *cx, void *arg) {
    int *left = arg;
    if (--*left == 0) return EBB_OK;
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

/* Whoever waited is cancelled, and the pump has not come to the wait itself when the process ends. */
static void an_end_that_meets_a_cancel_is_kept(void **state) {
    loop_world *w = *state;
    child c = {.script = OBEDIENT};
    ebb_value v;
    int left = 20;
    siginfo_t info;
    make_child(w, &c);
    ebb_future *f = ebb_within(w->cx, ebb_process_wait(w->cx, c.process), 100 * EBB_SECOND);
    loop_turns(w, 2);
    assert_int_equal(ebb_process_kill(w->cx, c.process, SIGKILL), EBB_OK);
    assert_int_equal(waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT), 0);
    w->loop->polls = 1;
    (void)ebb_spawn(w->cx, w->region, busy, &left);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    ebb_future_drop(f);
    while (left > 0) loop_turns(w, 1);
    assert_int_equal(loop_await(w, ebb_process_wait(w->cx, c.process), &v), EBB_OK);
    assert_int_equal(ebb_process_exit_signal(v), SIGKILL);
}

static void a_stubborn_process_is_killed_after_its_grace(void **state) {
    loop_world *w = *state;
    child c = {.script = STUBBORN, .grace = 100 * EBB_MS};
    make_child(w, &c);
    uint64_t from = uv_hrtime();
    ebb_future *f = ebb_process_wait(w->cx, c.process);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    ebb_future_drop(f);
    while (is_alive(c.pid)) {
        (void)ebb_loop_cx(w->loop);
        uv_run(&w->uv, UV_RUN_ONCE);
    }
    assert_true(uv_hrtime() - from >= 100 * EBB_MS);
}

static void a_process_ends_with_its_region(void **state) {
    loop_world *w = *state;
    child c = {.script = OBEDIENT, .grace = 100 * EBB_SECOND};
    make_child(w, &c);
    ebb_region_close(w->cx, c.region);
    loop_until(w, child_region_closed, &c);
    assert_false(is_alive(c.pid));
    assert_int_equal(ebb_region_join(w->cx, c.region), EBB_OK);
}

static void a_stubborn_process_is_killed_when_the_budget_of_its_region_is_over(void **state) {
    loop_world *w = *state;
    child c = {.script = STUBBORN, .grace = 100 * EBB_SECOND};
    make_child(w, &c);
    ebb_budget budget = {ebb_now(ebb_loop_cx(w->loop)) + 100 * EBB_MS, EBB_POLLS_UNBOUNDED, 0};
    ebb_region_cancel_within(w->cx, c.region, EBB_CANCEL_USER, NULL, budget);
    loop_until(w, child_region_closed, &c);
    loop_run(w); /* should it have been left to the system, that is quick */
    assert_false(is_alive(c.pid));
    (void)ebb_region_join(w->cx, c.region);
}

static ebb_status wait_for_child(ebb_cx *cx, void *arg) {
    child *c = arg;
    return ebb_await(cx, ebb_process_wait(cx, c->process), NULL);
}

static void the_region_waits_for_a_process_that_is_waited_for(void **state) {
    loop_world *w = *state;
    child c = {.script = STUBBORN, .grace = 50 * EBB_MS};
    make_child(w, &c);
    ebb_fiber_spawn(w->cx, c.region, wait_for_child, &c);
    loop_turns(w, 2);
    ebb_region_cancel(w->cx, c.region, EBB_CANCEL_USER, NULL);
    loop_turns(w, 2);
    assert_false(child_region_closed(&c));
    loop_until(w, child_region_closed, &c);
    assert_false(is_alive(c.pid));
    assert_int_equal(ebb_region_join(w->cx, c.region), EBB_CANCELLED);
}

static void a_budget_is_enough_for_a_stubborn_process_that_is_waited_for(void **state) {
    loop_world *w = *state;
    child c = {.script = STUBBORN, .grace = 100 * EBB_SECOND};
    ebb_region_report report;
    make_child(w, &c);
    ebb_fiber_spawn(w->cx, c.region, wait_for_child, &c);
    loop_turns(w, 2);
    ebb_budget budget = {ebb_now(ebb_loop_cx(w->loop)) + 2 * EBB_SECOND, EBB_POLLS_UNBOUNDED, 0};
    ebb_region_cancel_within(w->cx, c.region, EBB_CANCEL_USER, NULL, budget);
    loop_until(w, child_region_closed, &c);
    assert_int_equal(ebb_region_report_of(w->cx, c.region, &report), EBB_OK);
    assert_int_equal(report.abandoned, 0); /* killed when the part of tasks was over: the wait has ended */
    assert_false(is_alive(c.pid));
    assert_int_equal(ebb_region_join(w->cx, c.region), EBB_CANCELLED);
}

static void a_process_of_a_forced_region_is_killed(void **state) {
    loop_world *w = *state;
    child c = {.script = STUBBORN, .grace = 100 * EBB_SECOND};
    make_child(w, &c);
    ebb_region_force(w->cx, c.region);
    loop_until(w, child_region_closed, &c);
    loop_run(w);
    while (is_alive(c.pid)) loop_turns(w, 1);
    (void)ebb_region_join(w->cx, c.region);
}

/* ---- signals -------------------------------------------------------------------------------------------------------- */

static void the_next_signal_is_waited_for(void **state) {
    loop_world *w = *state;
    ebb_future *f = ebb_signal_wait(w->cx, SIGUSR1);
    loop_turns(w, 2);
    assert_int_equal(ebb_future_status_of(f), EBB_PENDING);
    raise(SIGUSR1);
    assert_int_equal(loop_await(w, f, NULL), EBB_OK);
    loop_run(w);
    struct sigaction now;
    assert_int_equal(sigaction(SIGUSR1, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_DFL); /* it does again what it did before */
}

static void two_may_wait_for_the_same_signal(void **state) {
    loop_world *w = *state;
    ebb_future *f = ebb_signal_wait(w->cx, SIGUSR1), *g = ebb_signal_wait(w->cx, SIGUSR1);
    raise(SIGUSR1);
    assert_int_equal(loop_await(w, f, NULL), EBB_OK);
    assert_int_equal(loop_await(w, g, NULL), EBB_OK);
}

static void a_cancelled_wait_lets_the_signal_go(void **state) {
    loop_world *w = *state;
    ebb_future *f = ebb_signal_wait(w->cx, SIGUSR1);
    ebb_future_cancel(f, EBB_CANCEL_USER);
    loop_run(w);
    struct sigaction now;
    assert_int_equal(sigaction(SIGUSR1, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_DFL);
    assert_int_equal(status_now(f), EBB_CANCELLED);
}

static void a_signal_that_meets_a_cancelled_wait_ends_it_too(void **state) {
    loop_world *w = *state;
    ebb_future *f = ebb_signal_wait(w->cx, SIGUSR1);
    loop_turns(w, 1);
    raise(SIGUSR1);
    ebb_future_cancel(f, EBB_CANCEL_USER); /* libuv hears of the signal before the pump hears of this */
    loop_run(w);
    assert_int_equal(status_now(f), EBB_CANCELLED);
    size_t n = 0;
    assert_int_equal(ebb_loop_close(w->loop, NULL, 0, &n), EBB_OK); /* its handle is gone */
    nudge_end(&w->nudge);
    uv_run(&w->uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->uv), 0);
    assert_int_equal(w->memory.live, 0);
    free(w);
    *state = loop_world_new();
}

static void none_of_many_signals_is_lost(void **state) {
    loop_world *w = *state;
    ebb_value v;
    uint64_t heard = 0;
    ebb_signal s = ebb_signal_open(w->cx, SIGUSR2);
    for (int i = 0; i < 5; i++) raise(SIGUSR2); /* nobody waits yet */
    loop_turns(w, 3);
    assert_int_equal(loop_await(w, ebb_signal_next(w->cx, s), &v), EBB_OK);
    assert_int_equal(v.as.u, 5);
    ebb_future *f = ebb_signal_next(w->cx, s);
    assert_int_equal(status_now(ebb_signal_next(w->cx, s)), EBB_ERR_BUSY);
    raise(SIGUSR2);
    raise(SIGUSR2);
    assert_int_equal(loop_await(w, f, &v), EBB_OK);
    heard = v.as.u;
    if (heard < 2) {
        assert_int_equal(loop_await(w, ebb_signal_next(w->cx, s), &v), EBB_OK);
        heard += v.as.u;
    }
    assert_int_equal(heard, 2);
    f = ebb_signal_next(w->cx, s);
    ebb_future_cancel(f, EBB_CANCEL_USER);
    raise(SIGUSR2); /* a cancelled one takes none */
    assert_int_equal(loop_await(w, ebb_signal_next(w->cx, s), &v), EBB_OK);
    ebb_future_drop(f);
    f = ebb_signal_next(w->cx, s);
    assert_int_equal(ebb_signal_close(w->cx, s), EBB_OK);
    assert_int_equal(loop_await(w, f, NULL), EBB_ERR_CLOSED);
    assert_int_equal(ebb_signal_close(w->cx, s), EBB_ERR_CLOSED);
    assert_int_equal(status_now(ebb_signal_next(w->cx, s)), EBB_ERR_CLOSED);
}

static void numbers_that_are_no_signals_are_refused(void **state) {
    loop_world *w = *state;
    const int bad[] = {0, -1, 10000, SIGKILL};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(ebb_id_status(ebb_signal_open(w->cx, bad[i]).id), EBB_ERRNO(EINVAL));
        assert_int_equal(status_now(ebb_signal_wait(w->cx, bad[i])), EBB_ERRNO(EINVAL));
    }
    loop_run(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(a_process_is_talked_to_and_waited_for),
        ON_A_LOOP(an_end_may_be_waited_for_later_and_only_once),
        ON_A_LOOP(a_signal_ends_it_and_is_told),
        ON_A_LOOP(what_can_not_be_started_is_named),
        ON_A_LOOP(environment_and_directory_are_the_callers_choice),
        ON_A_LOOP(numbers_of_its_pipes_are_free_for_other_threads),
        ON_A_LOOP(cancelling_the_wait_ends_the_process),
        ON_A_LOOP(an_end_is_kept_for_the_next_wait),
        ON_A_LOOP(a_group_ends_with_its_leader),
        ON_A_LOOP(a_signal_reaches_the_whole_group),
        ON_A_LOOP(standard_error_goes_where_standard_output_goes),
        ON_A_LOOP(an_end_that_meets_a_cancel_is_kept),
        ON_A_LOOP(a_wait_may_follow_a_cancel_at_once),
        ON_A_LOOP(a_stubborn_process_is_killed_after_its_grace),
        ON_A_LOOP(a_process_ends_with_its_region),
        ON_A_LOOP(a_stubborn_process_is_killed_when_the_budget_of_its_region_is_over),
        ON_A_LOOP(the_region_waits_for_a_process_that_is_waited_for),
        ON_A_LOOP(a_budget_is_enough_for_a_stubborn_process_that_is_waited_for),
        ON_A_LOOP(a_process_of_a_forced_region_is_killed),
        ON_A_LOOP(the_next_signal_is_waited_for),
        ON_A_LOOP(two_may_wait_for_the_same_signal),
        ON_A_LOOP(a_cancelled_wait_lets_the_signal_go),
        ON_A_LOOP(a_signal_that_meets_a_cancelled_wait_ends_it_too),
        ON_A_LOOP(none_of_many_signals_is_lost),
        ON_A_LOOP(numbers_that_are_no_signals_are_refused),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
