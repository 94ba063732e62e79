/* A job runner: runs shell commands, two at a time, each for at most 2 s, and says how they ended.
 *
 *   build/release/examples/jobs 'make -C a' 'make -C b' 'sleep 60'
 *
 * Ctrl-C begins no further command. Those that run may finish within a second; then everything that they have started
 * is ended with them. */
#include <ebb/ebb.h>
#include <stdio.h>

enum { AT_ONCE = 2 };

static ebb_sem slots;
static int failed; /* commands that did not end with 0 */

static ebb_status run(ebb_cx *cx, const char *command, int *code) {
    const char *args[] = {"sh", "-c", command, NULL};
    ebb_process_opts opts = {.file = "sh", .args = args, .group = true, .grace = EBB_SECOND};
    opts.stdio[1] = opts.stdio[2] = EBB_PROCESS_STDIO_INHERIT;
    ebb_value exit;
    ebb_process p = ebb_process_spawn(cx, NULL, &opts);
    ebb_status st = ebb_await(cx, ebb_within(cx, ebb_process_wait(cx, p), 2 * EBB_SECOND), &exit);
    if (st == EBB_OK) *code = ebb_process_exit_code(exit);
    return st;
}

static ebb_status work(ebb_cx *cx, void *arg) {
    const char *command = arg;
    ebb_wait turn = {0};
    int code = 1;
    ebb_status st = ebb_sem_acquire(cx, &slots, &turn);
    if (st != EBB_OK) return st;
    st = run(cx, command, &code); /* EBB_ERR_CLOSED: after Ctrl-C */
    ebb_sem_release(cx, &slots);
    if (st == EBB_OK) printf("%s: exit code %d\n", command, code);
    else printf("%s: %s\n", command, ebb_status_text(st));
    failed += code != 0;
    return st == EBB_CANCELLED ? st : EBB_OK; /* a command that fails does not end the others */
}

static ebb_status run_all(ebb_cx *cx, void *arg) {
    ebb_sem_init(&slots, AT_ONCE);
    ebb_region jobs = ebb_region_open(cx, NULL);
    for (char **command = arg; *command != NULL; command++) ebb_fiber_spawn(cx, jobs, work, *command);
    ebb_status st = ebb_region_join(cx, jobs);
    return st == EBB_OK && failed > 0 ? EBB_FAILED : st;
}

int main(int argc, char **argv) {
    (void)argc;
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator(),
                             .shutdown = {.budget = 3 * EBB_SECOND, .cancel_at = EBB_SECOND}};
    return ebb_service_run(&opts, run_all, argv + 1);
}
