/* Guide: processes that start others, descriptors of other libraries, dates. */
#include <ebb/ebb.h>
#include <stdio.h>
#include <unistd.h>

/* What the script has started ends with it. Standard error goes into the same pipe as standard output. */
static ebb_status run_script(ebb_cx *cx, int *code) {
    const char *args[] = {"sh", "-c", "sleep 1000 & echo said; echo warned >&2; exit 3", NULL};
    ebb_process_opts opts = {.file = "sh", .args = args, .group = true};
    opts.stdio[1] = EBB_PROCESS_STDIO_PIPE;
    opts.stdio[2] = EBB_PROCESS_STDIO_STDOUT;
    ebb_stream io[3];
    ebb_value exit;
    ebb_process p = ebb_process_spawn(cx, io, &opts);
    ebb_status st = ebb_await(cx, ebb_process_wait(cx, p), &exit);
    if (st == EBB_OK) *code = ebb_process_exit_code(exit);
    return st;
}

/* A descriptor of another library's. The value says what it is ready for. */
static ebb_status wait_for_fd(ebb_cx *cx, int fd) {
    return ebb_await(cx, ebb_within(cx, ebb_fd_ready(cx, fd, EBB_FD_READABLE), EBB_SECOND), NULL);
}

static ebb_status run(ebb_cx *cx, void *arg) {
    int code = 0, fd[2];
    (void)arg;
    ebb_status st = run_script(cx, &code);
    printf("script: %s %d\n", ebb_status_name(st), code);
    if (pipe(fd) != 0 || write(fd[1], "x", 1) != 1) return EBB_FAILED;
    printf("descriptor: %s\n", ebb_status_name(wait_for_fd(cx, fd[0])));
    (void)close(fd[0]);
    (void)close(fd[1]);
    uint64_t seconds = ebb_wall_now(cx) / EBB_SECOND; /* since 1970 */
    printf("%s\n", seconds > 1600000000 ? "a date" : "no clock");
    return EBB_OK;
}

int main(void) {
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    ebb_loop *loop;
    ebb_status st = ebb_loop_new(&opts, run, NULL, &loop);
    if (st == EBB_OK) st = ebb_loop_join(loop);
    return st == EBB_OK ? 0 : 1;
}
