/* Handles: what is open, whose it is, and how it is closed.
 *
 * A handle is a record of the loop's slab, so its id can't dangle. It lies in the *nest* of a region: a
 * finalizer of that region closes all that lie there and waits until libuv has let go of the last. Closing
 * has two steps: a handle that is CLOSING has ended what was pending on it and admits nothing; its slot is
 * free when libuv, and for a process the system, is done with it. */
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
    bool left;       /* the finalizer was forced to leave: the last handle frees the nest */
} ebb__region_handles;

/* One reader at a time. Reading stays switched on in libuv between two reads, since switching costs more
 * than reading; when bytes come and nobody wants them it is switched off. */
typedef struct ebb__stream {
    ebb_future *reader; /* NULL: none */
    char *into;         /* the reader's */
    size_t room;
    char *kept; /* bytes that were read for a future which another thread had just cancelled */
    size_t kept_at, kept_n, kept_room;
    ebb_status ended; /* why there is nothing more to read; EBB_OK: there may be */
    bool reading;     /* switched on */
    bool filled;      /* the last read filled its room: libuv asks once more in the same breath */
    ebb__uv_request *first, *last; /* writes and shutdowns that wait for their turn; the first is in hand */
    char *chunk;                   /* bytes of the first that libuv has; NULL: none */
    size_t chunk_n;
    uv_write_t write;
    struct ebb__raw_stream *wire; /* whom the bytes are for, without futures; NULL: nobody */
} ebb__stream;

/* Paused, `trouble` says why and `look_at` until when. */
typedef struct ebb__listening {
    int fd;
    int kept; /* a connection for which there was no memory; -1 */
    struct ebb__listen_address *place;
    ebb_future *acceptor; /* NULL: none */
    ebb_region region;    /* the acceptor's */
    const char *site;
    bool watched;
    bool draining;
    uint32_t burst; /* connections that may be taken before the socket is watched again; 0: it is empty */
    uint32_t pause_ms;
    ebb_status trouble;
    uint64_t drain_until; /* a drain ends when the queue is empty after this */
    uint32_t drain_left;  /* connections that a drain may still take; UINT32_MAX: all that are queued */
    uint64_t look_at;     /* EBB_FOREVER: it is not in the loop's list */
    ebb__handle *next;    /* in that list */
} ebb__listening;

/* Its descriptor may not be closed while a thread works with it: that would be another file's by then. */
typedef struct ebb__open_file {
    uv_file fd;           /* -1: not open yet */
    uint32_t busy;        /* operations that use it, opening it included */
    ebb_future *closer;   /* waits for its close */
    ebb__uv_request *own; /* what it was opened with, kept for its close: that may not fail for want of one */
} ebb__open_file;

typedef struct ebb__child {
    ebb_future *waiter;
    uint64_t grace, kill_at;
    uint64_t exit; /* the value of a wait, once `over` */
    bool over, asked;
    char name[EBB_MESSAGE_MAX + 1]; /* of the program, cut if it is long */
} ebb__child;

typedef struct ebb__watch {
    ebb_future *waiter;
    uint64_t count; /* that came since the last wait */
    bool once;
} ebb__watch;

/* What a layer above has open in a region. It has no part of libuv. */
typedef struct ebb__handle_op {
    const char *what;
    void (*stop)(void *ctx); /* it is to close: ends by ebb__handle_free, now or later */
    void *ctx;
    bool (*goes_on)(const void *ctx); /* stopped, it still has somebody work for it. NULL: never */
} ebb__handle_op;

struct ebb__handle {
    uint32_t link, generation; /* the slab's */
    uint32_t index;
    uint8_t kind, state;
    ebb_loop *loop;
    ebb__region_handles *nest;
    ebb__handle *next, *prev; /* in the nest */
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
        ebb__handle_op guest;
    } as;
};

/* What each kind does when it is to close: ends what is pending, and calls ebb__handle_let_go, now or later.
 * Each is in the file of its kind. */
void ebb__stream_stop(ebb__handle *h);
void ebb__listening_stop(ebb__handle *h);
void ebb__file_stop(ebb__handle *h);
void ebb__process_stop(ebb__handle *h);
void ebb__signal_stop(ebb__handle *h);
void ebb__handle_op_stop(ebb__handle *h);
/* The region is forced: do not wait any longer. */
void ebb__process_force(ebb__handle *h);

const char *ebb__handle_what(const ebb__handle *h);
uint64_t ebb__handle_id(const ebb__handle *h);

/* A new handle of a region, zeroed but for what all have; the caller makes libuv's part. NULL and *st. */
ebb__handle *ebb__handle_new(ebb_loop *l, ebb_region region, ebb__handle_kind kind, const char *site,
                             ebb_status *st);
/* Libuv's part is made: it knows the record from now on, and does not count as work. */
void ebb__handle_ready(ebb__handle *h);
/* Libuv has nothing of it: the slot is free. */
void ebb__handle_free(ebb__handle *h);
/* Closes it, if it is open. */
void ebb__handle_close(ebb__handle *h);
/* Makes libuv close its part, and then frees it. */
void ebb__handle_let_go(ebb__handle *h);
ebb_status ebb__handle_move(ebb__handle *h, ebb_region region);

/* An open handle by its id, for a caller on the loop's thread; `kind` and, if it is not 0, `or_kind` are
 * what it may be. EBB_ERR_CLOSED, EBB_ERR_FOREIGN, EBB_ERR_INVALID, EBB_ERR_THREAD. */
ebb_status ebb__handle_find(const ebb_cx *cx, uint64_t id, ebb__handle_kind kind, ebb__handle_kind or_kind,
                            ebb__handle **out);
/* As a value that closes the handle when nobody takes it. */
ebb_value ebb__handle_value(const ebb__handle *h);
/* An id that carries an error. */
uint64_t ebb__handle_error(const ebb_cx *cx, ebb_status st);

#endif
