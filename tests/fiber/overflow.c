/* What a fiber that runs out of stack leaves as its last words, and faults that are somebody else's.
 * Each happens in a child process, which has had no fiber before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ebb/ebb.h>
#include <ebb/fiber.h>

enum { OLD_HANDLER = 7, SURVIVED = 9 };

typedef struct last_words {
    int status;
    char text[4096];
} last_words;

/* Runs it in a child and reads what that says on stderr. */
static last_words run(void (*fn)(void)) {
    last_words l = {.status = 0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGSEGV, SIG_DFL); /* the test program has one of its own */
        (void)dup2(ends[1], STDERR_FILENO);
        fn();
        _exit(SURVIVED);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; (got = read(ends[0], l.text + n, sizeof l.text - 1 - n)) > 0;) n += (size_t)got;
    close(ends[0]);
    char *emulator = strstr(l.text, "qemu: uncaught target signal"); /* its own last words */
    if (EBB_EMULATED && emulator != NULL) *emulator = 0;
    assert_int_equal(waitpid(child, &l.status, 0), child);
    return l;
}

static ebb_status yields(ebb_cx *cx, void *arg) {
    (void)arg;
    return ebb_fiber_yield(cx);
}

/* A fiber as the second of a runtime with the id 5: it is task 5.2.1. */
static void run_fiber(ebb_fiber_fn fn, const char *site) {
    ebb_runtime_opts o = {.allocator = ebb_libc_allocator(), .runtime_id = 5};
    ebb_runtime *rt;
    if (ebb_runtime_new(&o, &rt) != EBB_OK) _exit(1);
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_fiber_spawn(host, ebb_runtime_root(rt), yields, NULL);
    ebb_fiber_spawn_site(host, ebb_runtime_root(rt), fn, NULL, NULL, site);
    while (ebb_runtime_pump(rt, 10) == EBB_PENDING) {}
    ebb_runtime_free(rt);
}

/* ---- overflows ------------------------------------------------------------------------------------- */

static int __attribute__((noinline)) recurse(volatile int *depth) {
    volatile char frame[64] = {0};
    if (++*depth == 1 << 30) return 0;
    return recurse(depth) + frame[*depth & 63];
}

static ebb_status overflows(ebb_cx *cx, void *arg) {
    volatile int depth = 0;
    (void)arg;
    (void)ebb_fiber_yield(cx);
    return recurse(&depth) == 1 ? EBB_OK : EBB_FAILED;
}

static ebb_status has_a_large_frame(ebb_cx *cx, void *arg) {
    char frame[100 * 1024];
    char *volatile end = frame; /* 36 KiB below the stack */
    (void)arg;
    *end = 1;
    (void)ebb_fiber_yield(cx);
    return *end == 1 ? EBB_OK : EBB_FAILED;
}

static void overflow(void) {
    run_fiber(overflows, "kitchen.c:12");
}

static void overflow_by_a_large_frame(void) {
    run_fiber(has_a_large_frame, "kitchen.c:12");
}

static void *on_thread(void *arg) {
    (void)arg;
    overflow();
    return NULL;
}

static void overflow_on_another_thread(void) {
    pthread_t t;
    run_fiber(yields, "here.c:1");
    if (pthread_create(&t, NULL, on_thread, NULL) == 0) (void)pthread_join(t, NULL);
}

static void old_handler(int sig) {
    (void)sig;
    _exit(OLD_HANDLER);
}

static void overflow_under_a_handler(void) {
    (void)signal(SIGSEGV, old_handler);
    overflow();
}

static void overflow_is_told(void (*how)(void)) {
    last_words l = run(how);
    assert_non_null(strstr(l.text,
                           "ebb: stack overflow in fiber 5.2.1, spawned at kitchen.c:12, with a stack "
                           "of 65536 bytes\n"));
    assert_true(WIFSIGNALED(l.status));
    assert_int_equal(WTERMSIG(l.status), SIGSEGV);
}

static void an_overflow_names_the_fiber_and_ends_the_process(void **state) {
    (void)state;
    overflow_is_told(overflow);
}

static void an_overflow_by_one_large_frame_does_not_reach_the_next_stack(void **state) {
    (void)state;
    overflow_is_told(overflow_by_a_large_frame);
}

static void an_overflow_on_another_thread_is_told_too(void **state) {
    (void)state;
    overflow_is_told(overflow_on_another_thread);
}

static void an_overflow_is_fatal_whatever_handler_there_was(void **state) {
    (void)state;
    overflow_is_told(overflow_under_a_handler);
}

/* ---- other faults ---------------------------------------------------------------------------------- */

static ebb_status faults(ebb_cx *cx, void *arg) {
    static int *volatile nowhere = (int *)64;
    (void)cx;
    (void)arg;
    *nowhere = 1;
    return EBB_OK;
}

static ebb_status is_sent_a_fault(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    (void)raise(SIGSEGV);
    return EBB_OK;
}

static void knowing_handler(int sig, siginfo_t *info, void *context) {
    _exit(sig == SIGSEGV && info->si_addr == (void *)64 && context != NULL ? OLD_HANDLER : 1);
}

static void fault(void) {
    run_fiber(faults, "x.c:1");
}

static void fault_under_a_handler(void) {
    (void)signal(SIGSEGV, old_handler);
    fault();
}

static void fault_under_a_handler_with_info(void) {
    struct sigaction a = {.sa_sigaction = knowing_handler, .sa_flags = SA_SIGINFO};
    (void)sigaction(SIGSEGV, &a, NULL);
    fault();
}

static void fault_outside_of_fibers(void) {
    (void)signal(SIGSEGV, old_handler);
    run_fiber(yields, "x.c:1");
    (void)faults(NULL, NULL);
}

static void fault_that_is_ignored(void) {
    (void)signal(SIGSEGV, SIG_IGN);
    fault();
}

static void sent(void) {
    run_fiber(is_sent_a_fault, "x.c:1");
}

static void sent_and_ignored(void) {
    (void)signal(SIGSEGV, SIG_IGN);
    sent();
}

static void expect_exit(void (*how)(void), int code) {
    last_words l = run(how);
    assert_string_equal(l.text, "");
    assert_true(WIFEXITED(l.status));
    assert_int_equal(WEXITSTATUS(l.status), code);
}

static void expect_death(void (*how)(void)) {
    last_words l = run(how);
    assert_string_equal(l.text, "");
    assert_true(WIFSIGNALED(l.status));
    assert_int_equal(WTERMSIG(l.status), SIGSEGV);
}

static void a_fault_that_is_no_overflow_goes_to_the_handler_that_was_there(void **state) {
    (void)state;
    expect_exit(fault_under_a_handler, OLD_HANDLER);
    expect_exit(fault_under_a_handler_with_info, OLD_HANDLER);
    expect_exit(fault_outside_of_fibers, OLD_HANDLER);
}

static void without_a_handler_it_ends_the_process_as_ever(void **state) {
    (void)state;
    expect_death(fault);
    expect_death(fault_that_is_ignored);
    expect_death(sent);
}

static void a_signal_that_was_sent_and_is_ignored_stays_ignored(void **state) {
    (void)state;
    expect_exit(sent_and_ignored, SURVIVED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_overflow_names_the_fiber_and_ends_the_process),
        cmocka_unit_test(an_overflow_by_one_large_frame_does_not_reach_the_next_stack),
        cmocka_unit_test(an_overflow_on_another_thread_is_told_too),
        cmocka_unit_test(an_overflow_is_fatal_whatever_handler_there_was),
        cmocka_unit_test(a_fault_that_is_no_overflow_goes_to_the_handler_that_was_there),
        cmocka_unit_test(without_a_handler_it_ends_the_process_as_ever),
        cmocka_unit_test(a_signal_that_was_sent_and_is_ignored_stays_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
