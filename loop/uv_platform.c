/* The platform of libuv and the system. */
#define _POSIX_C_SOURCE 200809L
#define _GNU_SOURCE     /* accept4, getrandom */
#include <errno.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loop/listen_address.h"
#include "loop/platform.h"

static _Thread_local const ebb__platform *here;

const ebb__platform *ebb__platform_here(void) {
    return here != NULL ? here : &ebb__uv_platform;
}

const ebb__platform *ebb__platform_set(const ebb__platform *p) {
    const ebb__platform *before = here;
    here = p;
    return before;
}

/* ---- what libuv does not have ---------------------------------------------------------------------------- */

static void wall_clock(struct timespec *out) {
    if (clock_gettime(CLOCK_REALTIME, out) != 0) *out = (struct timespec){0};
}

/* If the system has none, the time is better than nothing. */
static void random_bytes(void *out, size_t n) {
    uint64_t now = uv_hrtime();
    if (getrandom(out, n, 0) >= 0) return;
    memset(out, 0, n);
    memcpy(out, &now, n < sizeof now ? n : sizeof now);
}

static uint32_t descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= UINT32_MAX) return UINT32_MAX;
    return (uint32_t)limit.rlim_cur;
}

static int peek(const uv_stream_t *stream) {
    uv_os_fd_t fd;
    char byte;
    int code = uv_fileno((const uv_handle_t *)stream, &fd);
    if (code != 0) return code;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 ? -errno : (int)n;
}

static void shut_writing(const uv_stream_t *stream) {
    uv_os_fd_t fd;
    if (uv_fileno((const uv_handle_t *)stream, &fd) == 0) (void)shutdown(fd, SHUT_WR);
}

static int group_kill(int group, int signum) {
    return uv_kill(-group, signum);
}

static int listen_name(int fd, struct sockaddr_storage *out) {
    socklen_t n = sizeof *out;
    return getsockname(fd, (struct sockaddr *)out, &n) == 0 ? 0 : -errno;
}

static int accept_from(int fd) {
    int got = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return got >= 0 ? got : -errno;
}

static void close_descriptor(int fd) {
    (void)close(fd);
}

const ebb__platform ebb__uv_platform = {
    .hrtime = uv_hrtime,
    .wall_clock = wall_clock,
    .random = random_bytes,
    .available_parallelism = uv_available_parallelism,
    .descriptors = descriptors,
    .loop_init = uv_loop_init,
    .loop_close = uv_loop_close,
    .run = uv_run,
    .stop = uv_stop,
    .now = uv_now,
    .thread_create = uv_thread_create,
    .close = uv_close,
    .ref = uv_ref,
    .unref = uv_unref,
    .is_active = uv_is_active,
    .fileno = uv_fileno,
    .async_init = uv_async_init,
    .async_send = uv_async_send,
    .timer_init = uv_timer_init,
    .timer_start = uv_timer_start,
    .prepare_init = uv_prepare_init,
    .prepare_start = uv_prepare_start,
    .check_init = uv_check_init,
    .check_start = uv_check_start,
    .idle_init = uv_idle_init,
    .idle_start = uv_idle_start,
    .idle_stop = uv_idle_stop,
    .poll_init = uv_poll_init,
    .poll_start = uv_poll_start,
    .poll_stop = uv_poll_stop,
    .signal_init = uv_signal_init,
    .signal_start = uv_signal_start,
    .guess_handle = uv_guess_handle,
    .tcp_init = uv_tcp_init,
    .tcp_open = uv_tcp_open,
    .tcp_connect = uv_tcp_connect,
    .tcp_getpeername = uv_tcp_getpeername,
    .tcp_nodelay = uv_tcp_nodelay,
    .pipe_init = uv_pipe_init,
    .pipe_open = uv_pipe_open,
    .pipe_connect = uv_pipe_connect,
    .read_start = uv_read_start,
    .read_stop = uv_read_stop,
    .try_write = uv_try_write,
    .write = uv_write,
    .shutdown = uv_shutdown,
    .peek = peek,
    .shut_writing = shut_writing,
    .listen_open = ebb__listen_address_open,
    .listen_drain = ebb__listen_address_drain,
    .listen_close = ebb__listen_address_close,
    .listen_name = listen_name,
    .accept = accept_from,
    .close_descriptor = close_descriptor,
    .cancel = uv_cancel,
    .queue_work = uv_queue_work,
    .getaddrinfo = uv_getaddrinfo,
    .freeaddrinfo = uv_freeaddrinfo,
    .fs_open = uv_fs_open,
    .fs_close = uv_fs_close,
    .fs_read = uv_fs_read,
    .fs_write = uv_fs_write,
    .fs_fsync = uv_fs_fsync,
    .fs_rename = uv_fs_rename,
    .fs_unlink = uv_fs_unlink,
    .fs_stat = uv_fs_stat,
    .fs_req_cleanup = uv_fs_req_cleanup,
    .spawn = uv_spawn,
    .process_kill = uv_process_kill,
    .group_kill = group_kill,
    .pipe_pair = uv_pipe,
};
