/* ebb/loop.h - a runtime on a libuv loop: time, sockets, files, names, processes, signals, a thread pool.
 *
 * Every operation is a future of the region of `cx`. A cancel ends the wait for it at once. The rules:
 *
 *  - *Handles* (streams, listeners, files, processes, signals) are ids. A handle belongs to a region. The region
 *    closes its handles after its tasks and futures have ended, and is not closed before they are. So a cleanup may
 *    still use them; a finalizer of the region may if it was added after the region's first handle.
 *    The id of a closed handle gives EBB_ERR_CLOSED, of another loop EBB_ERR_FOREIGN, of another kind EBB_ERR_INVALID.
 *    A function that can't make a handle returns an id that carries the error (ebb_id_status). Every call with that
 *    id fails with the same error.
 *  - *Bytes* that you pass to an operation must stay valid until its future, and every future made of it, has ended.
 *    After the end, cancelled or not, the loop neither reads nor writes them. So cancel an operation that you do not
 *    await before its bytes go. If another thread cancels it, it ends when the loop has received the cancel.
 *  - *What libuv can't stop* (a name lookup, a file operation, a function in the pool) runs on after a cancel. Its
 *    future is cancelled at once. The region waits for the operation, unless the region is forced. The memory that
 *    the operation uses belongs to the loop.
 *  - *Late results are disposed of*: a connection accepted, or a file opened, for a cancelled future is closed.
 *  - *Failures* of the system have the status EBB_ERRNO(errno).
 *  - Threads: a loop belongs to its thread. On other threads its functions return EBB_ERR_THREAD, unless documented
 *    otherwise. A `cx` whose runtime has no loop gives EBB_ERR_INVALID.
 *
 * This header needs no types of libuv. A host that has a libuv loop includes <uv.h> itself. */
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
    uint32_t size;                /* sizeof(ebb_loop_opts) of the caller; 0: this one */
    ebb_runtime_opts runtime;     /* needs an allocator; the loop sets `now` and `clock` */
    const ebb_heap_opts *heap;    /* NULL: the defaults, with a clock that measures pauses */
    uint32_t polls;               /* most polls of tasks before the loop checks its sockets again. 0: 1024 */
    const ebb_fiber_opts *fibers; /* stacks of its fibers, the first one's too. NULL: the defaults */
    /* Files for the loop's trace and journal, from its first event (docs/trace.md, Recording). They are truncated when
     * the loop is made and complete when it is freed; after a crash they can be read to the last whole block. A thread
     * writes them. If it can't keep up with runtime.trace.bytes (0: 4 MiB), events are lost and counted, and the loop
     * does not wait. NULL: no file. EBB_ERR_INVALID: both are the same. EBB_ERRNO(EBUSY): something records to the file
     * already. In a service, loop N after the first appends ".N" to these names. */
    const char *trace_file, *journal_file;
    /* Set when the loop is freed to why a file is incomplete (no space, for one); left alone otherwise. NULL: not
     * reported. Loops of a service share it. */
    ebb_status *recording;
} ebb_loop_opts;

/* Attaches a new runtime to a libuv loop that the host runs. This thread becomes the loop's thread.
 * The runtime keeps uv_run going while there is a task or a pending operation. Open handles and messages that other
 * threads may send do not keep uv_run going. SIGPIPE is blocked on this thread: a write to a peer that has left fails
 * and does not end the process. Free the loop by ebb_loop_close.
 * EBB_ERR_INVALID: no `uv` or no allocator. EBB_ERR_VERSION: unknown options. EBB_ERR_BUSY: another loop of the
 * process has this runtime_id. With the id 0 the loop takes a free one; EBB_ERR_LIMIT: all 255 are taken.
 * EBB_ERR_NOMEM, failures of libuv, and of the system to open a file. Nothing is left behind after an error. */
ebb_status ebb_loop_attach(struct uv_loop_s *uv, const ebb_loop_opts *opts, ebb_loop **out);

/* The host's context, with the time brought up to date. Call it in every callback of libuv that uses the loop.
 * NULL on another thread. */
ebb_cx *ebb_loop_cx(ebb_loop *l);
/* The loop's runtime. It belongs to the loop. */
ebb_runtime *ebb_loop_runtime(const ebb_loop *l);
/* The loop's runtime as a peer, for ebb_peer_run and bridges. Any thread may call it. The peer belongs to the loop
 * until the loop is closed or joined; call ebb_peer_keep to have it longer. */
ebb_peer *ebb_loop_peer(const ebb_loop *l);

/* A handle, an operation or a task that is still open. */
typedef struct ebb_loop_leftover {
    const char *what;  /* "tcp stream", "write", "task" */
    const char *site;  /* where it was opened, begun or spawned */
    uint64_t id;       /* of the handle or task; 0 for an operation */
    ebb_region region; /* the region that it belongs to */
} ebb_loop_leftover;

/* Detaches from the host's loop and frees the runtime. EBB_OK: the loop is gone; libuv releases its memory in the
 * next turn. EBB_ERR_BUSY: something is still open. `open` (may be NULL) gets the first `room` leftovers, *n (may be
 * NULL) their number. Close or cancel them, or call ebb_region_cancel(cx, ebb_runtime_root(rt), ...), and run the loop.
 * If *n is 0, only the root region has not closed yet. EBB_ERR_REENTERED: called inside the pump. EBB_ERR_INVALID: a
 * loop of ebb_loop_new. */
ebb_status ebb_loop_close(ebb_loop *l, ebb_loop_leftover *open, size_t room, size_t *n);

/* Makes a loop on a thread of its own. `fn` is its first task: a fiber, or a plain poll function where there are no
 * fibers. It runs in a region of its own below the root, with EBB_FAIL_FAST. The loop ends when that region has closed.
 * The allocator is used on both threads, one after the other. Free the loop by ebb_loop_join or ebb_loop_stop.
 * EBB_ERR_NOMEM, EBB_ERR_LIMIT, failures of libuv and the other errors of ebb_loop_attach; EBB_ERR_INVALID: no `fn`.
 * Nothing is left behind after an error. */
ebb_status ebb_loop_new(const ebb_loop_opts *opts, ebb_fiber_fn fn, void *arg, ebb_loop **out);
/* Waits until the loop has ended, frees it, and returns the status of its first region. Call it on the thread that
 * made the loop. EBB_ERR_THREAD: on the loop's own thread. EBB_ERR_INVALID: the loop was attached. */
ebb_status ebb_loop_join(ebb_loop *l);
/* Cancels the root region of the loop with EBB_CANCEL_SHUTDOWN, then does what ebb_loop_join does. */
ebb_status ebb_loop_stop(ebb_loop *l);

/* ---- statuses --------------------------------------------------------------------------------------- */

/* The status of an error code of libuv: EBB_UV(UV_EADDRINUSE) is EBB_ERRNO(EADDRINUSE). Operations report the end of a
 * stream as EBB_ERR_EOF and a lack of memory as EBB_ERR_NOMEM. */
#define EBB_UV(code) ((ebb_status)(EBB_STATUS_SYSTEM + (code)))

/* ---- streams ------------------------------------------------------------------------------------------ */

typedef struct ebb_stream {
    uint64_t id;
} ebb_stream;
typedef struct ebb_listener {
    uint64_t id;
} ebb_listener;

/* A numeric address, as (ebb_address){"127.0.0.1", 80}. Names are not looked up. */
typedef struct ebb_address {
    char ip[64];   /* "127.0.0.1", "::1", "fe80::1%eth0" */
    uint16_t port; /* in the byte order of the host */
} ebb_address;

/* Listens on a TCP address. Port 0: the system chooses a port, which ebb_listener_address returns. The listener belongs
 * to the region of cx. Its id carries an error: EBB_ERR_INVALID: no such address. EBB_ERR_CLOSED: the region is closed.
 * EBB_ERR_NOMEM, EBB_ERRNO(errno). */
#define ebb_tcp_listen(cx, ...)    ebb_tcp_listen_site((cx), (__VA_ARGS__), EBB_SITE)
#define ebb_pipe_listen(cx, path)  ebb_pipe_listen_site((cx), (path), EBB_SITE) /* a Unix socket; see below */
#define ebb_listener_accept(cx, l) ebb_listener_accept_site((cx), (l), EBB_SITE)
ebb_listener ebb_tcp_listen_site(ebb_cx *cx, const ebb_address *address, const char *site);
/* Listens on a Unix socket. The path is removed when the listener is closed. Errors as of ebb_tcp_listen, and
 * EBB_ERR_INVALID: an empty path. EBB_ERRNO(ENAMETOOLONG): the system has no room for the path. */
ebb_listener ebb_pipe_listen_site(ebb_cx *cx, const char *path, const char *site);
/* Writes the address of a TCP listener to *out. EBB_ERR_INVALID for a Unix socket. */
ebb_status ebb_listener_address(ebb_cx *cx, ebb_listener l, ebb_address *out);
/* Accepts the next connection. The value is a stream of the region of cx; see ebb_stream_of. One accept at a time:
 * EBB_ERR_BUSY. A cancelled accept takes no connection; the connection waits for the next accept. An accept is new
 * work: once the region of cx is closed, a pending and a new accept fail with EBB_ERR_CLOSED. The listener stays open
 * then. An accept in a region that admits work still gets connections, until ebb_listener_close or the end of the
 * listener's region. */
ebb_future *ebb_listener_accept_site(ebb_cx *cx, ebb_listener l, const char *site);
/* Closes the listener now. A pending accept fails with EBB_ERR_CLOSED. Connections that were not accepted are reset.
 * EBB_ERR_CLOSED the second time. */
ebb_status ebb_listener_close(ebb_cx *cx, ebb_listener l);
/* Drains the listener: it takes no new connections. Connections that clients have established can still be accepted,
 * in a closed region too. When none is left, the accept fails with EBB_ERR_CLOSED and the listener is closed. On TCP
 * that is 100 ms after the call at the earliest: a client that asks for a connection meanwhile gets no answer, and is
 * refused when it asks again. Where the system can't drop such requests, a TCP drain does not wait 100 ms, and ends
 * after 512 accepts at the latest: as many connections as the queue holds when the drain begins.
 * A Unix socket that several loops share is drained by the loop that drains last; on the others the drain is a close.
 * Go on accepting after the call: without accepts the drain ends only with its region.
 * EBB_OK, the second time too. EBB_ERR_CLOSED: the listener is closed. */
ebb_status ebb_listener_drain(ebb_cx *cx, ebb_listener l);
/* Why the listener is paused: EBB_ERRNO(EMFILE), EBB_ERRNO(ENFILE), EBB_ERRNO(ENOBUFS) or EBB_ERR_NOMEM. EBB_OK: it is
 * not paused. When the system has no descriptor for a connection, the accept stays pending and the listener pauses for
 * 10 ms. Each further pause is twice as long, 1 s at most. A pause ends early when this loop closes a descriptor. */
ebb_status ebb_listener_trouble(ebb_cx *cx, ebb_listener l);

/* Connects to a TCP address or a Unix socket. The value is a stream of the region of cx. A cancel gives up the attempt.
 * EBB_ERR_INVALID: no such address, or an empty path. EBB_ERRNO(ENAMETOOLONG): the system has no room for the path. */
#define ebb_tcp_connect(cx, ...)   ebb_tcp_connect_site((cx), (__VA_ARGS__), EBB_SITE)
#define ebb_pipe_connect(cx, path) ebb_pipe_connect_site((cx), (path), EBB_SITE)
ebb_future *ebb_tcp_connect_site(ebb_cx *cx, const ebb_address *address, const char *site);
ebb_future *ebb_pipe_connect_site(ebb_cx *cx, const char *path, const char *site);
/* Makes a stream of an open socket or pipe. The stream owns the descriptor from now on and makes it non-blocking. On
 * failure the descriptor stays the caller's. EBB_ERR_INVALID: neither a socket nor a pipe. */
#define ebb_stream_adopt(cx, fd) ebb_stream_adopt_site((cx), (fd), EBB_SITE)
ebb_stream ebb_stream_adopt_site(ebb_cx *cx, int fd, const char *site);

/* The stream in the value of an accept or a connect. The region owns the stream, so the value need not be kept; but
 * discarding the value closes the stream. */
static inline ebb_stream ebb_stream_of(ebb_value v) {
    ebb_stream s = {v.as.u};
    return s;
}
/* Moves the stream to `region`, which closes it from now on. EBB_ERR_CLOSED: the region admits nothing. */
ebb_status ebb_stream_move(ebb_cx *cx, ebb_stream s, ebb_region region);
/* Writes the address of the other end to *out. EBB_ERR_INVALID for a pipe. */
ebb_status ebb_stream_peer(ebb_cx *cx, ebb_stream s, ebb_address *out);
/* Turns TCP_NODELAY on or off. While it is on, small writes are sent at once. EBB_ERR_INVALID for a pipe. */
ebb_status ebb_stream_nodelay(ebb_cx *cx, ebb_stream s, bool on);

/* Reads the bytes that are there, at least one and at most n, into `into`. The value's as.u is their number.
 * EBB_ERR_EOF: the end of the stream. EBB_ERR_BUSY: another read is pending. EBB_ERR_INVALID: n is 0, or 2^63 and more.
 * A cancelled read takes no bytes out of the stream. A read goes on when the region is closed: await it with
 * ebb_select and ebb_closing(cx) if the client may have nothing in flight. */
#define ebb_stream_read(cx, s, into, n) ebb_stream_read_site((cx), (s), (into), (n), EBB_SITE)
ebb_future *ebb_stream_read_site(ebb_cx *cx, ebb_stream s, void *into, size_t n, const char *site);
/* Writes all n bytes, and ends when the system has taken them. The value's as.u is n. Several writes are sent one after
 * the other. A cancelled write stops where it is, perhaps after a part of its bytes; close the stream then, unless it
 * was the last write and its bytes do not matter. EBB_ERR_INVALID: n is 2^63 and more. */
#define ebb_stream_write(cx, s, from, n) ebb_stream_write_site((cx), (s), (from), (n), EBB_SITE)
ebb_future *ebb_stream_write_site(ebb_cx *cx, ebb_stream s, const void *from, size_t n, const char *site);
/* Ends the sending side after all writes: the other end then reads the end of the stream. Reading goes on. A cancel
 * can't undo a shutdown that was sent. */
#define ebb_stream_shutdown(cx, s) ebb_stream_shutdown_site((cx), (s), EBB_SITE)
ebb_future *ebb_stream_shutdown_site(ebb_cx *cx, ebb_stream s, const char *site);
/* Closes the stream now. Pending operations on it fail with EBB_ERR_CLOSED. EBB_ERR_CLOSED the second time. */
ebb_status ebb_stream_close(ebb_cx *cx, ebb_stream s);

/* ---- files --------------------------------------------------------------------------------------------- */

typedef struct ebb_file {
    uint64_t id;
} ebb_file;

/* The most bytes that an operation moves at a time. */
#define EBB_FILE_PIECE 262144
#define EBB_FILE_HERE  UINT64_MAX /* an offset: where the last operation with this offset ended */

/* Opens a file. Flags and mode are those of open(2). The value is a file of the region of cx; see ebb_file_of. All
 * file operations run in libuv's thread pool. */
#define ebb_file_open(cx, path, flags, mode) ebb_file_open_site((cx), (path), (flags), (mode), EBB_SITE)
ebb_future *ebb_file_open_site(ebb_cx *cx, const char *path, int flags, int mode, const char *site);
/* The file in the value of an open. Discarding the value closes the file. */
static inline ebb_file ebb_file_of(ebb_value v) {
    ebb_file f = {v.as.u};
    return f;
}
/* Reads at most n bytes, and at most EBB_FILE_PIECE. The value's as.u is their number. EBB_ERR_EOF: the end of the
 * file. EBB_ERR_INVALID: n is 0, or n or the offset is 2^63 and more. */
#define ebb_file_read(cx, f, into, n, offset) ebb_file_read_site((cx), (f), (into), (n), (offset), EBB_SITE)
ebb_future *ebb_file_read_site(ebb_cx *cx, ebb_file f, void *into, size_t n, uint64_t offset,
                               const char *site);
/* Writes all n bytes, piece by piece. The value's as.u is n. A cancel stops the write after the current piece.
 * EBB_ERR_INVALID as for a read. */
#define ebb_file_write(cx, f, from, n, offset) ebb_file_write_site((cx), (f), (from), (n), (offset), EBB_SITE)
ebb_future *ebb_file_write_site(ebb_cx *cx, ebb_file f, const void *from, size_t n, uint64_t offset,
                                const char *site);
/* fsync(2): ends when all bytes written before are on the disk. */
#define ebb_file_sync(cx, f) ebb_file_sync_site((cx), (f), EBB_SITE)
ebb_future *ebb_file_sync_site(ebb_cx *cx, ebb_file f, const char *site);
/* Closes the file after its pending operations. The future ends with the status of the close. A cancel stops only the
 * wait. EBB_ERR_CLOSED the second time. */
#define ebb_file_close(cx, f) ebb_file_close_site((cx), (f), EBB_SITE)
ebb_future *ebb_file_close_site(ebb_cx *cx, ebb_file f, const char *site);

/* rename(2), unlink(2) and stat(2). EBB_ERR_INVALID: a path is NULL. The value of a stat is an ebb_file_info. */
#define ebb_file_rename(cx, from, to) ebb_file_rename_site((cx), (from), (to), EBB_SITE)
#define ebb_file_unlink(cx, path)     ebb_file_unlink_site((cx), (path), EBB_SITE)
#define ebb_file_stat(cx, path)       ebb_file_stat_site((cx), (path), EBB_SITE)
ebb_future *ebb_file_rename_site(ebb_cx *cx, const char *from, const char *to, const char *site);
ebb_future *ebb_file_unlink_site(ebb_cx *cx, const char *path, const char *site);
ebb_future *ebb_file_stat_site(ebb_cx *cx, const char *path, const char *site);
typedef struct ebb_file_info {
    uint64_t size;     /* bytes */
    uint64_t modified; /* ns since 1970 */
    uint32_t mode;     /* as st_mode of stat(2) */
} ebb_file_info;
/* The value of a stat. It belongs to the value. NULL: another value. */
const ebb_file_info *ebb_file_info_of(const ebb_value *v);

/* ---- names --------------------------------------------------------------------------------------------- */

/* Looks up a host name; see ebb_dns_addresses_of. Each address gets `port`. A lookup that runs can't be stopped. */
#define ebb_dns_resolve(cx, name, port) ebb_dns_resolve_site((cx), (name), (port), EBB_SITE)
ebb_future *ebb_dns_resolve_site(ebb_cx *cx, const char *name, uint16_t port, const char *site);
/* The addresses that a lookup found, *n of them, the best first. They belong to the value. NULL: another value. */
const ebb_address *ebb_dns_addresses_of(const ebb_value *v, size_t *n);

/* ---- child processes ----------------------------------------------------------------------------------- */

typedef struct ebb_process {
    uint64_t id;
} ebb_process;

typedef enum ebb_process_stdio {
    EBB_PROCESS_STDIO_NONE = 0,    /* /dev/null */
    EBB_PROCESS_STDIO_INHERIT = 1, /* the descriptor of this process */
    EBB_PROCESS_STDIO_PIPE = 2,    /* a pipe; this process has the other end as a stream */
    EBB_PROCESS_STDIO_STDOUT = 3   /* of standard error only: where standard output goes, in one order */
} ebb_process_stdio;

typedef struct ebb_process_opts {
    uint32_t size;              /* sizeof(ebb_process_opts) of the caller; 0: this one */
    const char *file;           /* the program; searched for in PATH */
    const char *const *args;    /* [0] is the program's name, NULL after the last. NULL: the file alone */
    const char *const *env;     /* "NAME=value", NULL after the last. NULL: the environment of this process */
    const char *cwd;            /* its working directory. NULL: that of this process */
    ebb_process_stdio stdio[3]; /* standard input, output and error */
    uint64_t grace;             /* ns between SIGTERM and SIGKILL. 0: 2 s */
    bool group;                 /* a session and process group of its own; see below */
} ebb_process_opts;

/* Starts a program. `pipes` gets a stream for each EBB_PROCESS_STDIO_PIPE; it may be NULL if there is none. When its
 * region ends, a process that still runs gets SIGTERM. It gets SIGKILL after `grace`, or when 7/8 of the rest of the
 * region's cleanup budget have passed, or when the region is forced. The region waits until the process has ended.
 * The process is in the process group of this one: a Ctrl-C of the terminal reaches it too. With `group` it leads a
 * session and a group of its own: signals, those of ebb_process_kill too, go to the whole group, and when the process
 * has ended, in whatever way, what is left of its group gets SIGKILL at once. So a shell takes along what it has
 * started, unless that has left the group. The id carries an error:
 * EBB_ERR_INVALID: no file, a stdio out of range, or a pipe without `pipes`; EBB_ERR_VERSION, EBB_ERR_CLOSED,
 * EBB_ERR_NOMEM, EBB_ERRNO(errno). */
#define ebb_process_spawn(cx, pipes, ...) ebb_process_spawn_site((cx), (pipes), (__VA_ARGS__), EBB_SITE)
ebb_process ebb_process_spawn_site(ebb_cx *cx, ebb_stream pipes[3], const ebb_process_opts *opts,
                                   const char *site);
/* Waits until the process has ended; its id is closed then. The value: ebb_process_exit_code, ebb_process_exit_signal.
 * One wait at a time: EBB_ERR_BUSY. A cancel ends the process by SIGTERM and SIGKILL as above, and the region waits for
 * that. The next wait returns how the process ended. */
#define ebb_process_wait(cx, p) ebb_process_wait_site((cx), (p), EBB_SITE)
ebb_future *ebb_process_wait_site(ebb_cx *cx, ebb_process p, const char *site);
/* The exit code in the value of a wait. It is 0 too if a signal ended the process: the process has succeeded only if
 * ebb_process_exit_signal is 0 as well. */
static inline int ebb_process_exit_code(ebb_value v) {
    return (int)(v.as.u & 0xffffffffu);
}
static inline int ebb_process_exit_signal(ebb_value v) { /* the signal that ended the process; 0: none */
    return (int)(v.as.u >> 32);
}
/* Sends the process a signal. EBB_ERR_CLOSED: it has ended and was waited for. EBB_ERRNO(ESRCH): it has ended. */
ebb_status ebb_process_kill(ebb_cx *cx, ebb_process p, int signum);
int ebb_process_pid(ebb_cx *cx, ebb_process p); /* 0: the process has ended, or the id is not valid */

/* ---- descriptors of the host's, the wall clock ----------------------------------------------------------- */

enum { EBB_FD_READABLE = 1, EBB_FD_WRITABLE = 2 };

/* Waits until `fd`, a socket, pipe or terminal of another library, is ready for one of `events`; the value is what it
 * is ready for (ebb_value_int). An error or the end of the other side counts as ready. What is ready stays so until it
 * is read or written: the next wait then completes at once. The descriptor stays the caller's, who closes it after the
 * future has ended; one that is closed before is not noticed. It is made non-blocking. EBB_ERR_BUSY: this loop waits
 * for it already, for whatever event, or has it as a stream: ask for both events in one wait. EBB_ERRNO(EPERM): a file
 * that is always ready, as regular files are. EBB_ERRNO(EBADF): not open. EBB_ERR_INVALID: a negative descriptor, no
 * event or an unknown one. */
#define ebb_fd_ready(cx, fd, events) ebb_fd_ready_site((cx), (fd), (events), EBB_SITE)
ebb_future *ebb_fd_ready_site(ebb_cx *cx, int fd, int events, const char *site);

/* Returns the time of day: nanoseconds since 1970, UTC, without leap seconds. 0: no loop, or the wrong thread. It may
 * jump, back too, when somebody sets the clock: use it for dates, and ebb_now for spans. In a network of the lab it is
 * virtual. */
uint64_t ebb_wall_now(ebb_cx *cx);

/* ---- signals ------------------------------------------------------------------------------------------- */

typedef struct ebb_signal {
    uint64_t id;
} ebb_signal;

/* Waits for the next signal `signum`. Until the future ends, the signal's default action is off. */
#define ebb_signal_wait(cx, signum) ebb_signal_wait_site((cx), (signum), EBB_SITE)
ebb_future *ebb_signal_wait_site(ebb_cx *cx, int signum, const char *site);

/* Counts all signals `signum`, until ebb_signal_close. ebb_signal_next waits until at least one has come; the value's
 * as.u is the number since the last ebb_signal_next, so none is lost in between. One at a time: EBB_ERR_BUSY. A
 * cancelled one leaves the count to the next. ebb_signal_close ends a pending one with EBB_ERR_CLOSED; EBB_ERR_CLOSED
 * the second time. */
#define ebb_signal_open(cx, signum) ebb_signal_open_site((cx), (signum), EBB_SITE)
#define ebb_signal_next(cx, s)      ebb_signal_next_site((cx), (s), EBB_SITE)
ebb_signal ebb_signal_open_site(ebb_cx *cx, int signum, const char *site);
ebb_future *ebb_signal_next_site(ebb_cx *cx, ebb_signal s, const char *site);
ebb_status ebb_signal_close(ebb_cx *cx, ebb_signal s);

/* ---- blocking work ------------------------------------------------------------------------------------- */

/* Calls fn(arg, &v) in libuv's thread pool. The future ends with v, or with the failure that fn returns. As with
 * ebb_remote, v may not be an object of a heap or a future: EBB_ERR_INVALID. A cancel before fn has begun keeps it from
 * running. A cancel later lets fn run on: `arg` must stay valid until fn has returned or the region has closed. */
typedef ebb_status (*ebb_pool_fn)(void *arg, ebb_value *v);
#define ebb_pool_run(cx, fn, arg) ebb_pool_run_site((cx), (fn), (arg), EBB_SITE)
ebb_future *ebb_pool_run_site(ebb_cx *cx, ebb_pool_fn fn, void *arg, const char *site);

#ifdef __cplusplus
}
#endif
#endif
