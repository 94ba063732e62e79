/* A network in memory, from inside: programs, each on a stack of its own, over a platform that keeps the time, the
 * sockets and the files. One thread runs all of it.
 *
 *   network.c           a run: programs take turns, time advances, the end
 *   network_program.c   a program's stack and its end
 *   network_loop.c      loops and handles as libuv has them: phases, timers, wake-ups, signals
 *   network_stream.c    connections
 *   network_listen.c    listeners, and connecting to them
 *   network_file.c      files
 *   network_request.c   requests: files, names, the pool
 *   network_fork.c      a run in a process of its own
 *   network_inject.c    many runs, each with another action injected
 *
 * A program runs until its loop polls. There it yields, and the chooser decides who goes on. What happens later (a
 * segment arrives, a file operation has finished) is an event with a time. Events of the same time happen in the order
 * in which they were made. Time stands still while a program runs. All records live until the end of the run. */
#ifndef EBB__LAB_NETWORK_H
#define EBB__LAB_NETWORK_H

#include "fiber/sanitizer.h"
#include "lab/lab.h"
#include "loop/loop.h"

enum { EBB__NET_FDS = 1024, EBB__NET_FIRST_FD = 3 };

typedef struct ebb__net ebb__net;
typedef struct ebb__net_program ebb__net_program;
typedef struct ebb__net_loop ebb__net_loop;
typedef struct ebb__net_handle ebb__net_handle;
typedef struct ebb__net_event ebb__net_event;
typedef struct ebb__net_socket ebb__net_socket;
typedef struct ebb__net_request ebb__net_request;
typedef struct ebb__net_open_file ebb__net_open_file;
typedef struct ebb__net_file ebb__net_file;

/* ---- faults -------------------------------------------------------------------------------------------- */

typedef enum ebb__net_fault {
    EBB__NET_RESET,
    EBB__NET_REFUSAL,
    EBB__NET_LOSS,
    EBB__NET_PARTITION,
    EBB__NET_NAME_ERROR,
    EBB__NET_FILE_ERROR,
    EBB__NET_ACCEPT_ERROR,
    EBB__NET_FAULTS
} ebb__net_fault;

/* ---- events -------------------------------------------------------------------------------------------- */

struct ebb__net_event {
    uint64_t at, number;
    void (*happens)(ebb__net *net, void *arg);
    void *arg;
    ebb__net_event *next;
};

/* ---- handles ------------------------------------------------------------------------------------------- */

typedef struct ebb__net_write {
    uv_write_t *request;
    const char *from;
    size_t n;
    int code;
    struct ebb__net_write *next;
} ebb__net_write;

typedef struct ebb__net_stream {
    ebb__net_socket *socket; /* NULL: not connected */
    uv_connect_t *connecting;
    uv_shutdown_t *shutting;
    uv_connect_cb connected;
    uv_shutdown_cb shut;
    uv_alloc_cb alloc;
    uv_read_cb read;
    bool reading;
    int connect_code; /* the error of an attempt to connect that failed before it began; 0: none */
    ebb__net_write *first, *last;
    uv_write_cb written; /* of all writes: there is one caller */
} ebb__net_stream;

/* The state of a libuv handle. `active`: it is started. A handle that is closing waits for the closing phase. */
struct ebb__net_handle {
    uv_handle_t *uv;
    ebb__net_loop *loop;
    ebb__net_handle *next, *prev; /* in the loop's list, in the order of their making */
    ebb__net_handle *next_closing;
    uv_close_cb closed;
    bool active, unreferenced, closing;
    uint64_t round; /* the poll phase that has looked at it last */
    union {
        struct {
            uint64_t due_ms, number;
            uv_timer_cb expired;
        } timer;
        struct {
            uv_async_cb woken;
            bool pending;
        } async;
        union {
            uv_prepare_cb prepare;
            uv_check_cb check;
            uv_idle_cb idle;
        } phase;
        struct {
            uv_poll_cb readable;
            int fd;
        } poll;
        struct {
            uv_signal_cb caught;
            int signum;
            uint32_t times; /* how often it was raised and not taken */
        } signal;
        ebb__net_stream stream;
    } as;
};

struct ebb__net_loop {
    uv_loop_t *uv;
    ebb__net_program *program;
    ebb__net_handle *first, *last, *closing;
    ebb__net_request *done, *done_last; /* requests whose callbacks are due */
    ebb_loop *watched;                  /* the runtime on it that the oracles check; NULL: none */
    uint64_t time_ms, round, timers;
    uint32_t requests; /* active ones: they keep the loop alive */
    bool stopped;
    ebb__net_loop *next;
};

/* ---- sockets ------------------------------------------------------------------------------------------- */

typedef enum ebb__net_segment_kind { EBB__NET_DATA, EBB__NET_FIN, EBB__NET_RST } ebb__net_segment_kind;

typedef struct ebb__net_segment {
    ebb__net_segment_kind kind;
    uint64_t at;
    size_t n;
    struct ebb__net_segment *next;
} ebb__net_segment;

typedef enum ebb__net_socket_state {
    EBB__NET_CONNECTING,
    EBB__NET_CONNECTED,
    EBB__NET_CLOSED /* by its program; bytes that were sent still arrive */
} ebb__net_socket_state;

/* One side of a connection. The bytes on their way to this side are in `ring` from the moment they are sent: first
 * those that have arrived, then those of the segments in `coming`, which arrive in order. */
struct ebb__net_socket {
    ebb__net *net;
    ebb__net_program *program;
    ebb__net_handle *handle; /* NULL: not accepted yet, or closed */
    ebb__net_socket *peer;
    ebb__net_socket_state state;
    int fd; /* 0: none */
    struct sockaddr_storage local, remote;
    char *ring;
    size_t room, at, here, coming_n;
    ebb__net_segment *coming, *coming_last;
    uint64_t coming_at;    /* the time of the last in `coming` */
    bool end;              /* the peer's end has arrived */
    bool shut;             /* no more is sent */
    int error;             /* of a reset or of a failed attempt; 0: none */
    ebb__net_socket *next; /* in the queue of a listener, or in the list of all */
};

typedef struct ebb__net_listener {
    ebb__net_program *program;
    struct sockaddr_storage at;
    int fd; /* 0: closed */
    bool draining;
    ebb__net_socket *first, *last;
    uint32_t n;
    struct ebb__net_listener *next;
} ebb__net_listener;

typedef struct ebb__net_descriptor {
    ebb__net_listener *listener;
    ebb__net_socket *socket;
    ebb__net_open_file *file;
} ebb__net_descriptor;

/* ---- requests ------------------------------------------------------------------------------------------ */

/* An operation that takes time and ends with a callback. `act` does its work, just before the callback. */
struct ebb__net_request {
    ebb__net_loop *loop;
    uv_req_t *uv;
    void (*act)(ebb__net_request *r);
    void (*back)(ebb__net_request *r);
    bool waits; /* it waits for a thread of the pool: it can be cancelled */
    bool begun, cancelled;
    ebb__net_request *next;
    union {
        struct {
            uv_fs_cb callback;
            int fd, flags, mode;
            char *path, *to;
            char *bytes;
            size_t n;
            int64_t offset;
        } fs;
        struct {
            uv_getaddrinfo_cb callback;
            char *name;
            int code;
            struct addrinfo *found;
        } dns;
        struct {
            uv_work_cb work;
            uv_after_work_cb after;
        } work;
    } as;
};

/* ---- programs ------------------------------------------------------------------------------------------ */

typedef enum ebb__net_program_state { EBB__NET_NEW, EBB__NET_WAITS, EBB__NET_ENDED } ebb__net_program_state;

struct ebb__net_program {
    const ebb_lab_program *what;
    ebb__net *net;
    uint32_t index, machine; /* machine: the index of the first program with its address */
    struct sockaddr_storage ip;
    ebb__net_program_state state;
    bool up;     /* it has listened, and clients may start */
    bool forced; /* the run ends without waiting for its end */
    int status;
    ebb__net_loop *loops, *polling; /* the loop that it waits in */
    uint64_t until;
    ebb_failing memory;
    ebb__net_descriptor fds[EBB__NET_FDS];
    uint32_t open;
    uint16_t next_port;
    uint64_t random, signals; /* signals: a bit for each that no handler has taken */
    uint64_t polls;
    char *stack;
    void *sp, *caller;
    ebb__notes notes;
};

struct ebb__net {
    ebb_lab *lab;
    const ebb_lab_network *limits;
    ebb__net_program *program[EBB_LAB_RUNTIMES];
    uint32_t n, last; /* last: who ran last */
    ebb__net_program *running;
    ebb__net_event *events, *spare_events;
    ebb__net_segment *spare_segments;
    uint64_t number; /* of the next event */
    ebb__net_listener *listeners;
    ebb__net_socket *sockets;
    ebb__net_file *files;
    uint64_t cut_until[EBB_LAB_RUNTIMES][EBB_LAB_RUNTIMES]; /* nothing passes between the two until then */
    uint32_t faults_left[EBB__NET_FAULTS];
    bool disturbed, acted, stopping;
    uint64_t polls, turns, stopping_since;
};

/* ---- network.c ---- */

extern const ebb__platform ebb__net_platform;

/* The network of the program that runs, and that program. */
ebb__net *ebb__net_here(void);
ebb__net_program *ebb__net_running(void);
/* A fault, if the chooser wants one and the scenario allows it. */
bool ebb__net_fault_now(ebb__net *net, ebb__net_fault kind);
/* Makes something happen later. Without memory the run fails. */
void ebb__net_later(ebb__net *net, uint64_t at, void (*happens)(ebb__net *net, void *arg), void *arg);
/* When the partition between the two ends; 0: there is none. */
uint64_t ebb__net_cut_until(const ebb__net *net, uint32_t a, uint32_t b);
/* A program has polled tasks: injects what is due. */
void ebb__net_polled(ebb__net_loop *l);
ebb__net_program *ebb__net_program_named(const ebb__net *net, const char *name);

/* Plays a run in this process. */
void ebb__net_play(ebb_lab *lab);

/* ---- network_fork.c ---- */

/* Plays a run in a process of its own. */
void ebb__net_play_apart(ebb_lab *lab);

/* ---- network_program.c ---- */

ebb_status ebb__net_program_start(ebb__net_program *p);
void ebb__net_program_resume(ebb__net_program *p);
/* On the program's stack: waits until an event, or that time. */
void ebb__net_program_wait(ebb__net_program *p, ebb__net_loop *in, uint64_t until);
/* Frees the stack; a program that has not ended is abandoned. */
void ebb__net_program_free(ebb__net_program *p);
/* The lowest free descriptor; -EMFILE. */
int ebb__net_fd_new(ebb__net_program *p, ebb__net_descriptor d);
ebb__net_descriptor *ebb__net_fd(ebb__net_program *p, int fd);
void ebb__net_fd_close(ebb__net_program *p, int fd);

/* ---- network_loop.c ---- */

/* The state of a handle. */
static inline ebb__net_handle *ebb__net_handle_of(const void *uv) {
    return ((const uv_handle_t *)uv)->u.reserved[0];
}
/* Makes the state of a handle. UV_ENOMEM, UV_EINVAL: the loop is not the lab's. */
int ebb__net_handle_new(uv_loop_t *loop, void *uv, uv_handle_type type);
ebb__net_loop *ebb__net_loop_of(const uv_loop_t *uv);
/* Whether a loop has something to do in its poll phase. */
bool ebb__net_loop_is_ready(const ebb__net_loop *l);
void ebb__net_signal_raise(ebb__net_program *p, int signum);

/* ---- network_stream.c ---- */

bool ebb__net_stream_is_ready(const ebb__net_handle *h);
void ebb__net_stream_poll(ebb__net_handle *h);
/* The handle closes: its callbacks, and the socket's end. */
void ebb__net_stream_close(ebb__net_handle *h);
void ebb__net_stream_closed(ebb__net_handle *h);
ebb__net_socket *ebb__net_socket_new(ebb__net_program *p);
void ebb__net_socket_close(ebb__net_socket *s);
void ebb__net_socket_abort(ebb__net_socket *s);
/* The delay of a segment. */
uint64_t ebb__net_latency(ebb__net *net);
void ebb__net_reset_all(ebb__net_program *p);

/* ---- network_listen.c ---- */

bool ebb__net_listener_is_ready(const ebb__net_handle *h);
void ebb__net_listener_close(ebb__net_listener *l);

/* ---- network_request.c ---- */

/* Calls the callbacks of finished requests; false: there is none. */
bool ebb__net_request_finish(ebb__net_loop *l);
/* A new request, which finishes later. NULL: no memory. */
ebb__net_request *ebb__net_request_new(uv_loop_t *loop, void *uv, void (*act)(ebb__net_request *r),
                                       void (*back)(ebb__net_request *r));
/* Drops a request for which there is not enough memory. Returns UV_ENOMEM. */
int ebb__net_request_drop(ebb__net_request *r);
char *ebb__net_copy(ebb__net *net, const char *text);

/* ---- the operations of the platform, each in the file of its subject ---- */

int ebb__net_cancel(uv_req_t *request);
int ebb__net_queue_work(uv_loop_t *loop, uv_work_t *request, uv_work_cb work, uv_after_work_cb after);
int ebb__net_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb callback,
                         const char *node, const char *service, const struct addrinfo *hints);
void ebb__net_freeaddrinfo(struct addrinfo *list);
int ebb__net_fs_open(uv_loop_t *loop, uv_fs_t *request, const char *path, int flags, int mode,
                     uv_fs_cb callback);
int ebb__net_fs_close(uv_loop_t *loop, uv_fs_t *request, uv_file file, uv_fs_cb callback);
int ebb__net_fs_read(uv_loop_t *loop, uv_fs_t *request, uv_file file, const uv_buf_t bufs[], unsigned n,
                     int64_t offset, uv_fs_cb callback);
int ebb__net_fs_write(uv_loop_t *loop, uv_fs_t *request, uv_file file, const uv_buf_t bufs[], unsigned n,
                      int64_t offset, uv_fs_cb callback);
int ebb__net_fs_fsync(uv_loop_t *loop, uv_fs_t *request, uv_file file, uv_fs_cb callback);
int ebb__net_fs_rename(uv_loop_t *loop, uv_fs_t *request, const char *from, const char *to,
                       uv_fs_cb callback);
int ebb__net_fs_unlink(uv_loop_t *loop, uv_fs_t *request, const char *path, uv_fs_cb callback);
int ebb__net_fs_stat(uv_loop_t *loop, uv_fs_t *request, const char *path, uv_fs_cb callback);
void ebb__net_fs_req_cleanup(uv_fs_t *request);
uv_handle_type ebb__net_guess_handle(uv_file fd);
int ebb__net_tcp_init(uv_loop_t *loop, uv_tcp_t *tcp);
int ebb__net_tcp_open(uv_tcp_t *tcp, uv_os_sock_t fd);
int ebb__net_tcp_connect(uv_connect_t *request, uv_tcp_t *tcp, const struct sockaddr *to,
                         uv_connect_cb callback);
int ebb__net_tcp_getpeername(const uv_tcp_t *tcp, struct sockaddr *out, int *n);
int ebb__net_tcp_nodelay(uv_tcp_t *tcp, int on);
int ebb__net_pipe_init(uv_loop_t *loop, uv_pipe_t *pipe, int ipc);
int ebb__net_pipe_open(uv_pipe_t *pipe, uv_file fd);
void ebb__net_pipe_connect(uv_connect_t *request, uv_pipe_t *pipe, const char *path, uv_connect_cb callback);
int ebb__net_read_start(uv_stream_t *stream, uv_alloc_cb alloc, uv_read_cb callback);
int ebb__net_read_stop(uv_stream_t *stream);
int ebb__net_try_write(uv_stream_t *stream, const uv_buf_t bufs[], unsigned n);
int ebb__net_write_to(uv_write_t *request, uv_stream_t *stream, const uv_buf_t bufs[], unsigned n,
                      uv_write_cb callback);
int ebb__net_shutdown(uv_shutdown_t *request, uv_stream_t *stream, uv_shutdown_cb callback);
int ebb__net_peek(const uv_stream_t *stream);
void ebb__net_shut_writing(const uv_stream_t *stream);
ebb_status ebb__net_listen_open(ebb_loop *l, const struct sockaddr_storage *at, int *fd,
                                struct ebb__listen_address **out);
uint32_t ebb__net_listen_drain(struct ebb__listen_address *p, int fd, bool *notice);
void ebb__net_listen_close(ebb_loop *l, struct ebb__listen_address *p, int fd);
int ebb__net_listen_name(int fd, struct sockaddr_storage *out);
int ebb__net_accept(int fd);
void ebb__net_close_descriptor(int fd);
int ebb__net_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd);
int ebb__net_poll_start(uv_poll_t *poll, int events, uv_poll_cb callback);
int ebb__net_poll_stop(uv_poll_t *poll);

#endif
