/* ebb/loop.h - a runtime on a libuv loop: time, sockets, files, names, processes, signals, a thread pool.
 *
 * Every operation is a future of the region of `cx`; cancelling it frees whoever waits at once. What holds:
 *
 *  - *Handles* (streams, listeners, files, processes, signals) are ids. They belong to a region and are
 *    closed when that has ended its tasks and futures; it does not close before they are gone. So a cleanup
 *    may still use them (a finalizer of the region only if it was added after its first handle). An id of a
 *    handle that is closed says EBB_ERR_CLOSED, one of another loop EBB_ERR_FOREIGN, one of another kind
 *    EBB_ERR_INVALID. A function that can't make a handle returns an id that carries the error
 *    (ebb_id_status), and everything done with it fails so.
 *  - *Bytes* that you give to an operation must stay until its future has ended, or all that you made of it,
 *    and not longer: after the end, cancelled or not, nothing is read from there or written to it. So what
 *    you do not await you cancel before its bytes go. One that another thread cancels has ended here when the
 *    loop has taken that in.
 *  - *What libuv can't stop* (a name that is looked up, a file operation, a function in the pool) runs on
 *    after a cancel. Its future is cancelled at once; the region waits for it, unless it is forced. The
 *    memory that it needs is the loop's own.
 *  - *What comes too late is disposed of*: a connection that was accepted for a future which is cancelled is
 *    closed, a file that was opened for one too.
 *  - *Failures* of the system have the status EBB_ERRNO(errno).
 *  - Threads: a loop belongs to its thread; elsewhere its functions say EBB_ERR_THREAD, where they don't say
 *    otherwise. A `cx` whose runtime has no loop: EBB_ERR_INVALID.
 *
 * libuv's own types are not needed here. A host that has a libuv loop includes <uv.h> by itself. */
#ifndef EBB_LOOP_H
#define EBB_LOOP_H

#include <ebb/fiber.h>
#include <ebb/future.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uv_loop_s; /* uv_loop_t */

/* ---- loops ---------------------------------------------------------------------------------------- */

typedef struct ebb_loop ebb_loop;

typedef struct ebb_loop_opts {
    uint32_t size;             /* sizeof(ebb_loop_opts) of the caller; 0: this one */
    ebb_runtime_opts runtime;  /* its allocator is needed; `now` and `clock` are the loop's business */
    const ebb_heap_opts *heap; /* NULL: the defaults, and a clock for the pauses */
    uint32_t polls;            /* of tasks, before sockets are looked at again. 0: 1024 */
} ebb_loop_opts;

/* Joins a libuv loop that the host has and runs: a new runtime, whose thread is this one. It keeps uv_run
 * going as long as there is a task, or an operation that somebody produces, and not longer: neither open
 * handles nor what other threads may send do. A runtime_id that another loop of the process has:
 * EBB_ERR_BUSY; 0 gets one that none has (EBB_ERR_LIMIT: there are 255). SIGPIPE is blocked on this thread: a
 * write to who has left fails, and does not end the process. EBB_ERR_NOMEM and libuv's failures leave nothing
 * behind. */
ebb_status ebb_loop_attach(struct uv_loop_s *uv, const ebb_loop_opts *opts, ebb_loop **out);

/* The host's context, with the time brought up to date: ask for it whenever you come from a callback of
 * libuv. NULL on another thread. */
ebb_cx *ebb_loop_cx(ebb_loop *l);
ebb_runtime *ebb_loop_runtime(const ebb_loop *l);
/* Its runtime for others: for ebb_peer_run and bridges. Any thread. It is the loop's, until that is closed or
 * joined: ebb_peer_keep, to have it longer. */
ebb_peer *ebb_loop_peer(const ebb_loop *l);

/* What is still open: a handle, an operation, a task. */
typedef struct ebb_loop_leftover {
    const char *what; /* "tcp stream", "write", "task" */
    const char *site; /* where it was opened, begun, spawned */
    uint64_t id;      /* of the handle or task; 0 for an operation */
    ebb_region region;
} ebb_loop_leftover;

/* Leaves the host's loop and frees the runtime. EBB_OK: it is gone; libuv lets go of the memory in its next
 * turn. EBB_ERR_BUSY: something is still open: the first `room` of these stand in `open` (may be NULL), *n
 * (may be NULL) is how many there are. Close or cancel them, or ebb_region_cancel(cx, ebb_runtime_root(rt), ...),
 * and run the loop. EBB_ERR_REENTERED from inside the pump; EBB_ERR_INVALID for a loop of ebb_loop_new. */
ebb_status ebb_loop_close(ebb_loop *l, ebb_loop_leftover *open, size_t room, size_t *n);

/* A loop on a thread of its own. `fn` is its first task, a fiber (where there are none, a plain poll
 * function), in a region of its own below the root; EBB_FAIL_FAST. When that region has ended, the loop
 * ends. EBB_ERR_NOMEM, EBB_ERR_LIMIT and libuv's failures leave nothing behind. The allocator is used on
 * both threads, one after the other. */
ebb_status ebb_loop_new(const ebb_loop_opts *opts, ebb_fiber_fn fn, void *arg, ebb_loop **out);
/* From the thread that made it: waits for its end, frees it, and returns the status of its first region.
 * EBB_ERR_THREAD on the loop's own thread; EBB_ERR_INVALID for one that was attached. */
ebb_status ebb_loop_join(ebb_loop *l);
/* The same, but cancels its root with EBB_CANCEL_SHUTDOWN first. */
ebb_status ebb_loop_stop(ebb_loop *l);

/* ---- statuses --------------------------------------------------------------------------------------- */

/* A failure of libuv as a status: EBB_UV(UV_EADDRINUSE) is EBB_ERRNO(EADDRINUSE). The end of a stream is EBB_ERR_EOF, no
 * memory is EBB_ERR_NOMEM. */
#define EBB_UV(code) ((ebb_status)(EBB_STATUS_SYSTEM + (code)))

/* ---- streams ------------------------------------------------------------------------------------------ */

typedef struct ebb_stream {
    uint64_t id;
} ebb_stream;
typedef struct ebb_listener {
    uint64_t id;
} ebb_listener;

/* A number, not a name: "127.0.0.1", "::1", "fe80::1%eth0". (ebb_address){"127.0.0.1", 80} is one. */
typedef struct ebb_address {
    char ip[64];
    uint16_t port;
} ebb_address;

/* Listens. Port 0: the system chooses, and ebb_listener_address tells. EBB_ERR_INVALID: no such address. */
#define ebb_tcp_listen(cx, ...)    ebb_tcp_listen_site((cx), (__VA_ARGS__), EBB_SITE)
#define ebb_pipe_listen(cx, path)  ebb_pipe_listen_site((cx), (path), EBB_SITE) /* a Unix socket */
#define ebb_listener_accept(cx, l) ebb_listener_accept_site((cx), (l), EBB_SITE)
ebb_listener ebb_tcp_listen_site(ebb_cx *cx, const ebb_address *address, const char *site);
ebb_listener ebb_pipe_listen_site(ebb_cx *cx, const char *path, const char *site);
ebb_status ebb_listener_address(ebb_cx *cx, ebb_listener l, ebb_address *out);
/* The next connection, as a stream of the region of cx; see ebb_stream_of. One at a time: EBB_ERR_BUSY. A
 * cancelled one takes no connection; it waits for the next accept. It is new work: EBB_ERR_CLOSED once the
 * region of cx is closed, for one that is pending too. The listener stays open then: an accept in a region
 * that admits work still gets who comes, until ebb_listener_close or the end of the listener's region. */
ebb_future *ebb_listener_accept_site(ebb_cx *cx, ebb_listener l, const char *site);
/* Closes it now; a pending accept fails with EBB_ERR_CLOSED. Connections that nobody has accepted are reset.
 * EBB_ERR_CLOSED the second time. */
ebb_status ebb_listener_close(ebb_cx *cx, ebb_listener l);
/* Closes it politely: no new connection is taken in, and those that clients have established already can still be
 * accepted, in a closed region too. When there are none left, which on TCP is not before 100 ms have passed, the
 * accept fails with EBB_ERR_CLOSED and the listener is closed. A client that asks for a connection meanwhile gets
 * no answer, and a refusal when it asks again. Where the system can't refuse new connections a TCP drain also ends after
 * 512 accepts, which is as many as were queued at its begin. Go on accepting after it: a drain that nobody accepts does not
 * end before its region does. EBB_OK, the second time too; EBB_ERR_CLOSED: it is closed. */
ebb_status ebb_listener_drain(ebb_cx *cx, ebb_listener l);
/* Why it is paused: EBB_ERRNO(EMFILE), EBB_ERRNO(ENFILE), EBB_ERRNO(ENOBUFS) or EBB_ERR_NOMEM. EBB_OK: it is not.
 * When the system has no descriptor for a connection, the accept stays pending and the listener pauses: for 10 ms,
 * each time twice as long as before, 1 s at most, and not longer than until this loop has closed a descriptor. */
ebb_status ebb_listener_trouble(ebb_cx *cx, ebb_listener l);

/* Connects: the value is a stream of the region of cx. A cancel gives the attempt up. */
#define ebb_tcp_connect(cx, ...)   ebb_tcp_connect_site((cx), (__VA_ARGS__), EBB_SITE)
#define ebb_pipe_connect(cx, path) ebb_pipe_connect_site((cx), (path), EBB_SITE)
ebb_future *ebb_tcp_connect_site(ebb_cx *cx, const ebb_address *address, const char *site);
ebb_future *ebb_pipe_connect_site(ebb_cx *cx, const char *path, const char *site);
/* A socket or a pipe that is open already. It is the stream's from now on, and set to not block. On failure
 * it stays the caller's. EBB_ERR_INVALID: neither of the two. */
#define ebb_stream_adopt(cx, fd) ebb_stream_adopt_site((cx), (fd), EBB_SITE)
ebb_stream ebb_stream_adopt_site(ebb_cx *cx, int fd, const char *site);

/* The stream that an accept or a connect gave. The region has it: the value need not be kept, but what
 * discards it closes the stream. */
static inline ebb_stream ebb_stream_of(ebb_value v) {
    ebb_stream s = {v.as.u};
    return s;
}
/* It is the region's from now on, and closed with that. EBB_ERR_CLOSED: the region admits nothing. */
ebb_status ebb_stream_move(ebb_cx *cx, ebb_stream s, ebb_region region);
/* The address at the other end. EBB_ERR_INVALID for a pipe. */
ebb_status ebb_stream_peer(ebb_cx *cx, ebb_stream s, ebb_address *out);
/* Small writes leave at once. EBB_ERR_INVALID for a pipe. */
ebb_status ebb_stream_nodelay(ebb_cx *cx, ebb_stream s, bool on);

/* Reads what is there, at least one byte and at most n, into `into`; as.u is how many. EBB_ERR_EOF at the
 * end. One at a time: EBB_ERR_BUSY. A cancelled read takes no bytes out of the stream. EBB_ERR_INVALID: n is
 * 0, or 2^63 and more. It goes on when the region is closed: ebb_select with ebb_closing(cx), for a client
 * that has nothing in flight. */
#define ebb_stream_read(cx, s, into, n) ebb_stream_read_site((cx), (s), (into), (n), EBB_SITE)
ebb_future *ebb_stream_read_site(ebb_cx *cx, ebb_stream s, void *into, size_t n, const char *site);
/* Writes all n bytes, and ends when the system has them. Several are sent one after the other. A write that
 * is cancelled stops where it is: if it was not the last of several, or what was sent matters, close the
 * stream. EBB_ERR_INVALID: n is 2^63 and more. */
#define ebb_stream_write(cx, s, from, n) ebb_stream_write_site((cx), (s), (from), (n), EBB_SITE)
ebb_future *ebb_stream_write_site(ebb_cx *cx, ebb_stream s, const void *from, size_t n, const char *site);
/* After what was written the other end reads the end of the stream. Reading goes on. */
#define ebb_stream_shutdown(cx, s) ebb_stream_shutdown_site((cx), (s), EBB_SITE)
ebb_future *ebb_stream_shutdown_site(ebb_cx *cx, ebb_stream s, const char *site);
/* Closes it now. What is pending on it fails with EBB_ERR_CLOSED. EBB_ERR_CLOSED the second time. */
ebb_status ebb_stream_close(ebb_cx *cx, ebb_stream s);

/* ---- files --------------------------------------------------------------------------------------------- */

typedef struct ebb_file {
    uint64_t id;
} ebb_file;

/* One operation moves at most so many bytes at a time. */
#define EBB_FILE_PIECE 262144
#define EBB_FILE_HERE  UINT64_MAX /* an offset: where the last operation without one has ended */

/* All in libuv's thread pool. Flags and mode as in open(2). The value is a file of the region of cx. */
#define ebb_file_open(cx, path, flags, mode) ebb_file_open_site((cx), (path), (flags), (mode), EBB_SITE)
ebb_future *ebb_file_open_site(ebb_cx *cx, const char *path, int flags, int mode, const char *site);
static inline ebb_file ebb_file_of(ebb_value v) {
    ebb_file f = {v.as.u};
    return f;
}
/* Reads at most n bytes, and at most EBB_FILE_PIECE; as.u is how many. EBB_ERR_EOF at the end. */
#define ebb_file_read(cx, f, into, n, offset) ebb_file_read_site((cx), (f), (into), (n), (offset), EBB_SITE)
ebb_future *ebb_file_read_site(ebb_cx *cx, ebb_file f, void *into, size_t n, uint64_t offset,
                               const char *site);
/* Writes all n bytes, piece by piece. A cancel stops it after the piece in hand. */
#define ebb_file_write(cx, f, from, n, offset) ebb_file_write_site((cx), (f), (from), (n), (offset), EBB_SITE)
ebb_future *ebb_file_write_site(ebb_cx *cx, ebb_file f, const void *from, size_t n, uint64_t offset,
                                const char *site);
/* fsync(2): what was written is on the disk. */
#define ebb_file_sync(cx, f) ebb_file_sync_site((cx), (f), EBB_SITE)
ebb_future *ebb_file_sync_site(ebb_cx *cx, ebb_file f, const char *site);
/* Closes it, after what is pending on it. Whether that worked is the future's end; cancelling that only
 * stops the wait. EBB_ERR_CLOSED the second time. */
#define ebb_file_close(cx, f) ebb_file_close_site((cx), (f), EBB_SITE)
ebb_future *ebb_file_close_site(ebb_cx *cx, ebb_file f, const char *site);

#define ebb_file_rename(cx, from, to) ebb_file_rename_site((cx), (from), (to), EBB_SITE)
#define ebb_file_unlink(cx, path)     ebb_file_unlink_site((cx), (path), EBB_SITE)
#define ebb_file_stat(cx, path)       ebb_file_stat_site((cx), (path), EBB_SITE)
ebb_future *ebb_file_rename_site(ebb_cx *cx, const char *from, const char *to, const char *site);
ebb_future *ebb_file_unlink_site(ebb_cx *cx, const char *path, const char *site);
ebb_future *ebb_file_stat_site(ebb_cx *cx, const char *path, const char *site);
typedef struct ebb_file_info {
    uint64_t size;
    uint64_t modified; /* ns since 1970 */
    uint32_t mode;     /* as st_mode of stat(2) */
} ebb_file_info;
const ebb_file_info *ebb_file_info_of(const ebb_value *v); /* the value of a stat; NULL if it is none */

/* ---- names --------------------------------------------------------------------------------------------- */

/* Looks a host name up; what it finds has the port. A running lookup can't be stopped. */
#define ebb_dns_resolve(cx, name, port) ebb_dns_resolve_site((cx), (name), (port), EBB_SITE)
ebb_future *ebb_dns_resolve_site(ebb_cx *cx, const char *name, uint16_t port, const char *site);
/* What it found, the best first; they are the value's. NULL if it is no such value. */
const ebb_address *ebb_dns_addresses_of(const ebb_value *v, size_t *n);

/* ---- child processes ----------------------------------------------------------------------------------- */

typedef struct ebb_process {
    uint64_t id;
} ebb_process;

typedef enum ebb_process_stdio {
    EBB_PROCESS_STDIO_NONE = 0,    /* /dev/null */
    EBB_PROCESS_STDIO_INHERIT = 1, /* ours */
    EBB_PROCESS_STDIO_PIPE = 2     /* a stream for us */
} ebb_process_stdio;

typedef struct ebb_process_opts {
    uint32_t size;           /* sizeof(ebb_process_opts) of the caller; 0: this one */
    const char *file;        /* looked for in PATH */
    const char *const *args; /* [0] is its name, NULL after the last. NULL: the file alone */
    const char *const *env;  /* "NAME=value", NULL after the last. NULL: ours */
    const char *cwd;         /* NULL: ours */
    ebb_process_stdio stdio[3];
    uint64_t grace; /* ns between SIGTERM and SIGKILL. 0: 2 s */
} ebb_process_opts;

/* Starts a program. `pipes` (may be NULL if there are none) gets a stream for each EBB_PROCESS_STDIO_PIPE. When its
 * region ends, a process that still runs gets SIGTERM, and SIGKILL after `grace`, or when 7/8 of what is left
 * of the cleanup budget are over, or when the region is forced; the region waits until it is gone. It
 * is in our process group: a Ctrl-C of the terminal reaches it too. */
#define ebb_process_spawn(cx, pipes, ...) ebb_process_spawn_site((cx), (pipes), (__VA_ARGS__), EBB_SITE)
ebb_process ebb_process_spawn_site(ebb_cx *cx, ebb_stream pipes[3], const ebb_process_opts *opts,
                                   const char *site);
/* Waits for its end; after that its id is spent. One at a time: EBB_ERR_BUSY. Cancelling it ends the process
 * as above, and the region waits for that; how the process ended is kept, and the next wait tells. */
#define ebb_process_wait(cx, p) ebb_process_wait_site((cx), (p), EBB_SITE)
ebb_future *ebb_process_wait_site(ebb_cx *cx, ebb_process p, const char *site);
/* 0 too if a signal ended it: it has succeeded only if ebb_process_exit_signal is 0 as well. */
static inline int ebb_process_exit_code(ebb_value v) {
    return (int)(v.as.u & 0xffffffffu);
}
static inline int ebb_process_exit_signal(ebb_value v) { /* 0: it was none that ended it */
    return (int)(v.as.u >> 32);
}
/* Sends it a signal. EBB_ERR_CLOSED: it has ended and was waited for. EBB_ERRNO(ESRCH): it has ended. */
ebb_status ebb_process_kill(ebb_cx *cx, ebb_process p, int signum);
int ebb_process_pid(ebb_cx *cx, ebb_process p); /* 0: there is none */

/* ---- signals ------------------------------------------------------------------------------------------- */

typedef struct ebb_signal {
    uint64_t id;
} ebb_signal;

/* The next signal of a number; from now on until then it does nothing else. */
#define ebb_signal_wait(cx, signum) ebb_signal_wait_site((cx), (signum), EBB_SITE)
ebb_future *ebb_signal_wait_site(ebb_cx *cx, int signum, const char *site);

/* All of them: none is lost between one ebb_signal_next and the other. The value's as.u is how many came
 * since. One at a time: EBB_ERR_BUSY. */
#define ebb_signal_open(cx, signum) ebb_signal_open_site((cx), (signum), EBB_SITE)
#define ebb_signal_next(cx, s)      ebb_signal_next_site((cx), (s), EBB_SITE)
ebb_signal ebb_signal_open_site(ebb_cx *cx, int signum, const char *site);
ebb_future *ebb_signal_next_site(ebb_cx *cx, ebb_signal s, const char *site);
ebb_status ebb_signal_close(ebb_cx *cx, ebb_signal s);

/* ---- blocking work ------------------------------------------------------------------------------------- */

/* Calls fn(arg, &v) in libuv's thread pool and ends as it says: with v, or with the failure that it returns.
 * Like what a remote settles, v may not be an object of a heap or a future. A cancel before it has begun
 * keeps it from running; one that runs, runs on, and `arg` must live until the region has closed or fn has
 * returned. */
typedef ebb_status (*ebb_pool_fn)(void *arg, ebb_value *v);
#define ebb_pool_run(cx, fn, arg) ebb_pool_run_site((cx), (fn), (arg), EBB_SITE)
ebb_future *ebb_pool_run_site(ebb_cx *cx, ebb_pool_fn fn, void *arg, const char *site);

#ifdef __cplusplus
}
#endif
#endif
