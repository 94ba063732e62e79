/* Raw streams: streams whose bytes go to a layer above as they arrive, without a future for each read and write.
 *
 * A raw stream is part of the layer's own record. It has a handle of a region, so it is closed with the region like
 * every stream. Its callbacks are called from libuv's phases and at the end of a turn, never from inside the pump;
 * they may do what the host may do. Invariants: libuv has at most one write; its bytes stay valid until `written`;
 * nothing is called after `closed`.
 *
 * A raw stream reads at most EBB__RAW_STREAM_PIECE bytes a turn, so that a busy one does not delay the others. If
 * its layer sets `bulk`, because its bytes are cheap to process, it reads up to EBB__RAW_STREAM_BULK, provided that
 * at most EBB__RAW_STREAM_CROWD raw streams had something to read the last time. It is flushed at most
 * EBB__RAW_STREAM_ROUNDS times before another one has its turn. */
#ifndef EBB__LOOP_RAW_STREAM_H
#define EBB__LOOP_RAW_STREAM_H

#include "loop/handle.h"

enum { EBB__RAW_STREAM_PIECE = 16384, EBB__RAW_STREAM_BULK = 65536, EBB__RAW_STREAM_CROWD = 4 };
enum { EBB__RAW_STREAM_ROUNDS = 8 };

typedef struct ebb__raw_stream_ops {
    /* Where the next bytes are read to, and how many at most. NULL: to a buffer of the loop. May be NULL. */
    char *(*place)(void *ctx, size_t *n);
    void (*bytes)(void *ctx, char *bytes, size_t n); /* the bytes are valid until this returns */
    void (*ended)(void *ctx, ebb_status st);         /* nothing more can be read: EBB_ERR_EOF or a failure */
    void (*written)(void *ctx, ebb_status st);       /* libuv's write has ended, with this status */
    /* Requested by ebb__raw_stream_touch. True: it has woken a task that may write more, which the system may take. */
    bool (*flush)(void *ctx);
    /* The stream is closing, by the layer or with its region. */
    void (*stopped)(void *ctx);
    void (*closed)(void *ctx); /* libuv has released the stream */
} ebb__raw_stream_ops;

typedef struct ebb__raw_stream {
    ebb__handle *handle; /* NULL: closed, or not initialized */
    const ebb__raw_stream_ops *ops;
    void *ctx;
    struct ebb__raw_stream *next;   /* in the list of dirty raw streams */
    struct ebb__raw_stream **where; /* the pointer to this one in that list; NULL: not dirty */
    bool reading, filled, writing;
    bool bulk; /* set by the layer: most bytes are only passed on */
    uv_write_t write;
} ebb__raw_stream;

/* Makes a raw stream of an open stream that has no reads or writes. It does not read yet. EBB_ERR_BUSY. */
ebb_status ebb__raw_stream_init(ebb__raw_stream *w, ebb_cx *cx, ebb_stream s, const ebb__raw_stream_ops *ops,
                                void *ctx);
/* Switches reading on or off. Returns libuv's failure. */
ebb_status ebb__raw_stream_read(ebb__raw_stream *w, bool on);
/* The first sends what the system takes at once: *sent of the n bytes. The second gives the rest to libuv; the
 * caller keeps the bytes valid until `written`. Neither may be called while libuv has a write. */
ebb_status ebb__raw_stream_try(ebb__raw_stream *w, const char *from, size_t n, size_t *sent);
ebb_status ebb__raw_stream_write(ebb__raw_stream *w, char *rest, size_t n);
/* `flush` is called at the end of this turn, or of the next. */
void ebb__raw_stream_touch(ebb__raw_stream *w);
/* Closes the stream. */
void ebb__raw_stream_close(ebb__raw_stream *w);

/* The stream is closing: called by loop/stream.c. */
void ebb__raw_stream_stopped(ebb__raw_stream *w);

#endif
