/* Wires: streams whose bytes go to a layer above as they come, without a future for each read and write.
 *
 * A wire stands in the layer's own record and has a handle of a region's nest, so it is closed with that as
 * every stream is. Its callbacks come from libuv's phases and from the end of a turn, never from inside the
 * pump; they may do what the host may. What holds: at most one write is with libuv; its bytes are the
 * layer's until `written`; after `closed` nothing comes any more.
 *
 * A wire reads at most EBB__RAW_STREAM_PIECE bytes a turn, so that one that has much to say does not keep others
 * waiting. One that its layer says is `bulk`, because its bytes cost little, reads up to EBB__RAW_STREAM_BULK if at most
 * EBB__RAW_STREAM_CROWD wires had something to read the last time. */
#ifndef EBB__LOOP_RAW_STREAM_H
#define EBB__LOOP_RAW_STREAM_H

#include "loop/handle.h"

enum { EBB__RAW_STREAM_PIECE = 16384, EBB__RAW_STREAM_BULK = 65536, EBB__RAW_STREAM_CROWD = 4 };

typedef struct ebb__raw_stream_ops {
    /* Where the next bytes are read to, and how many at most; NULL: to memory of the loop's. May be NULL. */
    char *(*place)(void *ctx, size_t *n);
    void (*bytes)(void *ctx, char *bytes, size_t n); /* they are there, or the loop's: until this returns */
    void (*ended)(void *ctx, ebb_status st);         /* nothing more comes: EBB_ERR_EOF or a failure */
    void (*written)(void *ctx, ebb_status st);       /* what libuv had is sent, or never will be */
    void (*flush)(void *ctx);                        /* asked for by ebb__raw_stream_touch */
    void (*stopped)(void *ctx);                      /* it is closed from now on, by us or with its region */
    void (*closed)(void *ctx);                       /* libuv has let go of it */
} ebb__raw_stream_ops;

typedef struct ebb__raw_stream {
    ebb__handle *handle; /* NULL: closed, or not there yet */
    const ebb__raw_stream_ops *ops;
    void *ctx;
    struct ebb__raw_stream *next;   /* among the dirty */
    struct ebb__raw_stream **where; /* what points to this one there; NULL: it is not dirty */
    bool reading, filled, writing;
    bool bulk; /* set by the layer: what it reads are mostly bytes that are only handed on */
    uv_write_t write;
} ebb__raw_stream;

/* Makes a wire of an open stream that nobody reads from or writes to. It does not read yet. EBB_ERR_BUSY. */
ebb_status ebb__raw_stream_init(ebb__raw_stream *w, ebb_cx *cx, ebb_stream s, const ebb__raw_stream_ops *ops,
                                void *ctx);
/* Reads, or not, from now on. What libuv says if it can't. */
ebb_status ebb__raw_stream_read(ebb__raw_stream *w, bool on);
/* Sends what the system takes at once: *sent of the n bytes. What is left goes to libuv by the second, and stays the
 * caller's to keep until `written`. Neither while one is with libuv. */
ebb_status ebb__raw_stream_try(ebb__raw_stream *w, const char *from, size_t n, size_t *sent);
ebb_status ebb__raw_stream_write(ebb__raw_stream *w, char *rest, size_t n);
/* Has `flush` called at the end of this turn, or of the next. */
void ebb__raw_stream_touch(ebb__raw_stream *w);
/* Closes it. */
void ebb__raw_stream_close(ebb__raw_stream *w);

/* The stream of a wire is being closed: for loop/stream.c. */
void ebb__raw_stream_stopped(ebb__raw_stream *w);

#endif
