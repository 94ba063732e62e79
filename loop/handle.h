/* Handles: what is open, which region owns it, and how it is closed.
 *
 * A handle is a record of the loop's slab, so its id can't dangle. It is in the list of its region's handles: a
 * finalizer of that region closes all handles in the list and waits until libuv has released the last. Closing has
 * two steps: a handle that is CLOSING has ended its pending operations and admits nothing; its slot is free when
 * libuv, and for a process the system, has released it. */
#ifndef EBB__LOOP_HANDLE_H
#define EBB__LOOP_HANDLE_H

#include "loop/loop.h"

typedef struct ebb__handle ebb__handle;
typedef struct ebb__uv_request ebb__uv_request;

typedef enum ebb__handle_kind {
    EBB__TCP = 1,
    EBB__PIPE,
    EBB__TCP_LISTENER,
    EBB__PIPE_LISTENER,
    EBB__FILE,
    EBB__PROCESS,
    EBB__SIGNAL,
    EBB__READINESS, /* of a descriptor of the host's */
    EBB__HANDLE_OP,
    EBB__HANDLE_KINDS
} ebb__handle_kind;

enum { EBB__HANDLE_SHIFT = 5 };
enum { EBB__HANDLE_FREE = 0, EBB__HANDLE_OPEN, EBB__HANDLE_CLOSING };

typedef struct ebb__region_handles {
    ebb_loop *loop;
    ebb_region region;
    ebb__handle *first;
    ebb_task closer; /* runs the finalizer; 0: not yet */
    bool abandoned;  /* the finalizer was forced to return: the last handle frees this record */
} ebb__region_handles;

/* One reader at a time. Reading stays on in libuv between two reads, since switching it costs more than reading. It
 * is switched off when bytes arrive that no reader waits for. */
typedef struct ebb__stream {
    ebb_future *reader; /* NULL: none */
    char *into;         /* where the reader wants its bytes */
    size_t room;
    char *kept; /* bytes that were read for a future which another thread had just cancelled */
    size_t kept_at, kept_n, kept_room;
    ebb_status ended;              /* why nothing more can be read; EBB_OK: more may come */
    bool reading;                  /* reading is on in libuv */
    bool filled;                   /* the last read filled its buffer: libuv asks for another at once */
    ebb__uv_request *first, *last; /* queued writes and shutdowns; the first is being sent */
    char *chunk;                   /* bytes of the first write that libuv is sending; NULL: none */
    size_t chunk_n;
    uv_write_t write;
    /* The raw stream that gets the bytes; NULL: reads and writes have futures. */
    struct ebb__raw_stream *raw;
} ebb__stream;

/* While it is paused, `trouble` says why and `look_at` until when. */
typedef struct ebb__listening {
    int fd;
    int kept; /* an accepted connection for which there was no memory; -1: none */
    struct ebb__listen_address *address;
    ebb_future *acceptor; /* NULL: none */
    ebb_region region;    /* the acceptor's */
    const char *site;
    bool watched;
    bool draining;
    uint32_t burst; /* connections to accept before the socket is watched again; 0: its queue is empty */
    uint32_t pause_ms;
    ebb_status trouble;
    uint64_t drain_until; /* a drain ends when the queue is empty after this */
    uint32_t drain_left;  /* connections that a drain may still accept; UINT32_MAX: all that are queued */
    uint64_t look_at;     /* EBB_FOREVER: not in the loop's list */
    ebb__handle *next;    /* in that list */
} ebb__listening;

/* The descriptor must not be closed while a pool thread uses it: its number could be another file's by then. */
typedef struct ebb__open_file {
    uv_file fd;           /* -1: not open yet */
    uint32_t busy;        /* operations that use the file, its open included */
    ebb_future *closer;   /* waits for the close */
    ebb__uv_request *own; /* the request of the open, kept so that the close can't fail for want of memory */
} ebb__open_file;

typedef struct ebb__child {
    ebb_future *waiter;
    uint64_t grace, kill_at;
    uint64_t exit; /* the value of a wait, once `exited` */
    bool exited, end_requested;
    int group;                      /* the process group that it leads; 0: none */
    char name[EBB_MESSAGE_MAX + 1]; /* of the program, truncated if it is long */
} ebb__child;

typedef struct ebb__watch {
    ebb_future *waiter;
    uint64_t count; /* signals since the last wait */
    bool once;
} ebb__watch;

/* An operation of a layer above that is open in a region. It has no libuv handle. */
typedef struct ebb__handle_op {
    const char *what;
    void (*stop)(void *ctx); /* close it: ends by ebb__handle_free, now or later */
    void *ctx;
    bool (*goes_on)(const void *ctx); /* after `stop`: code of the program still runs for it. NULL: never */
} ebb__handle_op;

struct ebb__handle {
    uint32_t link, generation; /* the slab's */
    uint32_t index;
    uint8_t kind, state;
    ebb_loop *loop;
    ebb__region_handles *list;
    ebb__handle *next, *prev; /* in the region's list */
    const char *site;
    union {
        uv_handle_t any;
        uv_stream_t stream;
        uv_poll_t poll;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
        uv_process_t process;
        uv_signal_t signal;
    } uv;
    union {
        ebb__stream stream;
        ebb__listening listening;
        ebb__open_file file;
        ebb__child child;
        ebb__watch watch;
        ebb__handle_op op;
    } as;
};

/* How each kind closes: ends what is pending, and calls ebb__handle_let_go, now or later. Each function is in the
 * file of its kind. */
void ebb__stream_stop(ebb__handle *h);
void ebb__listening_stop(ebb__handle *h);
void ebb__file_stop(ebb__handle *h);
void ebb__process_stop(ebb__handle *h);
void ebb__signal_stop(ebb__handle *h);
void ebb__ready_stop(ebb__handle *h);
void ebb__handle_op_stop(ebb__handle *h);
/* Kills the process at once: the region is forced. */
void ebb__process_force(ebb__handle *h);

const char *ebb__handle_what(const ebb__handle *h);
uint64_t ebb__handle_id(const ebb__handle *h);

/* A new handle of a region: common fields set, the rest zero. The caller initializes libuv's part. NULL: see *st. */
ebb__handle *ebb__handle_new(ebb_loop *l, ebb_region region, ebb__handle_kind kind, const char *site,
                             ebb_status *st);
/* libuv's part is initialized. It points to the record, and does not keep uv_run going. */
void ebb__handle_ready(ebb__handle *h);
/* Frees the slot. libuv must have released its part. */
void ebb__handle_free(ebb__handle *h);
/* Closes the handle if it is open. */
void ebb__handle_close(ebb__handle *h);
/* Closes libuv's part, and then frees the slot. */
void ebb__handle_let_go(ebb__handle *h);
ebb_status ebb__handle_move(ebb__handle *h, ebb_region region);

/* Finds an open handle by its id, for a caller on the loop's thread. It must be a `kind`, or an `or_kind` if that is
 * not 0. EBB_ERR_CLOSED, EBB_ERR_FOREIGN, EBB_ERR_INVALID, EBB_ERR_THREAD. */
ebb_status ebb__handle_find(const ebb_cx *cx, uint64_t id, ebb__handle_kind kind, ebb__handle_kind or_kind,
                            ebb__handle **out);
/* The handle as a value. Disposing of the value closes the handle. */
ebb_value ebb__handle_value(const ebb__handle *h);
/* An id that carries an error. */
uint64_t ebb__handle_error(const ebb_cx *cx, ebb_status st);

#endif
