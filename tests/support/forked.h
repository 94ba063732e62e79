/* A test's body in a process of its own. */
#ifndef EBB_TESTS_FORKED_H
#define EBB_TESTS_FORKED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs it in a process that must end by itself, and within `alarm_s`. */
static inline void forked_run(void (*body)(void), unsigned alarm_s) {
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(alarm_s);
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) fail_msg("the process has died of signal %d", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#endif
