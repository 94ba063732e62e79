/* The platform: what the loop layer and the layers above need of libuv and of the system, as one table.
 *
 * There are two: libuv with the system (uv_platform.c), and the lab's, which keeps everything in memory and in virtual
 * time (lab/). An entry without a comment is libuv's function of that name, and behaves like it; the lab's has the
 * same contract, so that all the rest of this layer is the same code in both. A loop takes the platform of the thread
 * that makes it and keeps it. Libuv's records are the records of both: the lab's platform keeps its own state in the
 * fields that libuv reserves.
 *
 * Locks and semaphores are not here: where several loops share one thread, nothing waits inside a lock. */
#ifndef EBB__LOOP_PLATFORM_H
#define EBB__LOOP_PLATFORM_H

#include <sys/socket.h>
#include <time.h>

#ifndef _POSIX_C_SOURCE
#error "uv.h needs POSIX: define _POSIX_C_SOURCE before the first header"
#endif
#include <uv.h>

#include <ebb/kernel.h>

struct ebb_loop;
struct ebb__listen_address;

typedef struct ebb__platform {
    /* Time and chance. */
    uint64_t (*hrtime)(void);
    void (*wall_clock)(struct timespec *out); /* the time of day */
    void (*random)(void *out, size_t n);      /* bytes that a client can't guess */
    unsigned (*available_parallelism)(void);
    uint32_t (*descriptors)(void); /* how many this process may open; UINT32_MAX: no limit is known */

    /* Loops. */
    int (*loop_init)(uv_loop_t *loop);
    int (*loop_close)(uv_loop_t *loop);
    int (*run)(uv_loop_t *loop, uv_run_mode mode);
    void (*stop)(uv_loop_t *loop);
    uint64_t (*now)(const uv_loop_t *loop);
    /* A loop has its runtime, and is about to free it. NULL: nobody wants to know. */
    void (*attached)(struct ebb_loop *l);
    void (*detaching)(struct ebb_loop *l);
    int (*thread_create)(uv_thread_t *thread, uv_thread_cb entry, void *arg);

    /* Handles. */
    void (*close)(uv_handle_t *handle, uv_close_cb closed);
    void (*ref)(uv_handle_t *handle);
    void (*unref)(uv_handle_t *handle);
    int (*is_active)(const uv_handle_t *handle);
    int (*fileno)(const uv_handle_t *handle, uv_os_fd_t *fd);
    int (*async_init)(uv_loop_t *loop, uv_async_t *async, uv_async_cb callback);
    int (*async_send)(uv_async_t *async);
    int (*timer_init)(uv_loop_t *loop, uv_timer_t *timer);
    int (*timer_start)(uv_timer_t *timer, uv_timer_cb callback, uint64_t after_ms, uint64_t every_ms);
    int (*prepare_init)(uv_loop_t *loop, uv_prepare_t *prepare);
    int (*prepare_start)(uv_prepare_t *prepare, uv_prepare_cb callback);
    int (*check_init)(uv_loop_t *loop, uv_check_t *check);
    int (*check_start)(uv_check_t *check, uv_check_cb callback);
    int (*idle_init)(uv_loop_t *loop, uv_idle_t *idle);
    int (*idle_start)(uv_idle_t *idle, uv_idle_cb callback);
    int (*idle_stop)(uv_idle_t *idle);
    int (*poll_init)(uv_loop_t *loop, uv_poll_t *poll, int fd);
    int (*poll_start)(uv_poll_t *poll, int events, uv_poll_cb callback);
    int (*poll_stop)(uv_poll_t *poll);
    int (*signal_init)(uv_loop_t *loop, uv_signal_t *signal);
    int (*signal_start)(uv_signal_t *signal, uv_signal_cb callback, int signum);

    /* Streams. */
    uv_handle_type (*guess_handle)(uv_file fd);
    int (*tcp_init)(uv_loop_t *loop, uv_tcp_t *tcp);
    int (*tcp_open)(uv_tcp_t *tcp, uv_os_sock_t fd);
    int (*tcp_connect)(uv_connect_t *request, uv_tcp_t *tcp, const struct sockaddr *to,
                       uv_connect_cb callback);
    int (*tcp_getpeername)(const uv_tcp_t *tcp, struct sockaddr *out, int *n);
    int (*tcp_nodelay)(uv_tcp_t *tcp, int on);
    int (*pipe_init)(uv_loop_t *loop, uv_pipe_t *pipe, int ipc);
    int (*pipe_open)(uv_pipe_t *pipe, uv_file fd);
    void (*pipe_connect)(uv_connect_t *request, uv_pipe_t *pipe, const char *path, uv_connect_cb callback);
    int (*read_start)(uv_stream_t *stream, uv_alloc_cb alloc, uv_read_cb callback);
    int (*read_stop)(uv_stream_t *stream);
    int (*try_write)(uv_stream_t *stream, const uv_buf_t bufs[], unsigned n);
    int (*write)(uv_write_t *request, uv_stream_t *stream, const uv_buf_t bufs[], unsigned n,
                 uv_write_cb callback);
    int (*shutdown)(uv_shutdown_t *request, uv_stream_t *stream, uv_shutdown_cb callback);
    int (*peek)(const uv_stream_t *stream); /* 1: a byte can be read. 0: the end. Or a code below 0 */
    void (*shut_writing)(const uv_stream_t *stream); /* ends the bytes to the peer at once */

    /* Listening: see listen_address.h. */
    ebb_status (*listen_open)(struct ebb_loop *l, const struct sockaddr_storage *at, int *fd,
                              struct ebb__listen_address **out);
    uint32_t (*listen_drain)(struct ebb__listen_address *p, int fd, bool *notice);
    void (*listen_close)(struct ebb_loop *l, struct ebb__listen_address *p, int fd);
    int (*listen_name)(int fd, struct sockaddr_storage *out); /* 0, or a code below 0 */
    int (*accept)(int fd);                                    /* a descriptor, or a code below 0 */
    void (*close_descriptor)(int fd);                         /* one that accept or pipe_pair has returned */

    /* Requests. */
    int (*cancel)(uv_req_t *request);
    int (*queue_work)(uv_loop_t *loop, uv_work_t *request, uv_work_cb work, uv_after_work_cb after);
    int (*getaddrinfo)(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb callback,
                       const char *node, const char *service, const struct addrinfo *hints);
    void (*freeaddrinfo)(struct addrinfo *found);
    int (*fs_open)(uv_loop_t *loop, uv_fs_t *request, const char *path, int flags, int mode,
                   uv_fs_cb callback);
    int (*fs_close)(uv_loop_t *loop, uv_fs_t *request, uv_file file, uv_fs_cb callback);
    int (*fs_read)(uv_loop_t *loop, uv_fs_t *request, uv_file file, const uv_buf_t bufs[], unsigned n,
                   int64_t offset, uv_fs_cb callback);
    int (*fs_write)(uv_loop_t *loop, uv_fs_t *request, uv_file file, const uv_buf_t bufs[], unsigned n,
                    int64_t offset, uv_fs_cb callback);
    int (*fs_fsync)(uv_loop_t *loop, uv_fs_t *request, uv_file file, uv_fs_cb callback);
    int (*fs_rename)(uv_loop_t *loop, uv_fs_t *request, const char *from, const char *to, uv_fs_cb callback);
    int (*fs_unlink)(uv_loop_t *loop, uv_fs_t *request, const char *path, uv_fs_cb callback);
    int (*fs_stat)(uv_loop_t *loop, uv_fs_t *request, const char *path, uv_fs_cb callback);
    void (*fs_req_cleanup)(uv_fs_t *request);

    /* Processes. */
    int (*spawn)(uv_loop_t *loop, uv_process_t *process, const uv_process_options_t *options);
    int (*process_kill)(uv_process_t *process, int signum);
    int (*group_kill)(int group, int signum); /* all processes of a group; 0, or a code below 0 */
    int (*pipe_pair)(uv_file fds[2], int read_flags, int write_flags); /* uv_pipe */
} ebb__platform;

extern const ebb__platform ebb__uv_platform;

/* The platform of this thread: libuv's, unless ebb__platform_set has set another. */
const ebb__platform *ebb__platform_here(void);
/* NULL: libuv's again. Returns what was set before. */
const ebb__platform *ebb__platform_set(const ebb__platform *p);

#endif
