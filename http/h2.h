/* Shared by both sides of HTTP/2. A session is nghttp2's, with its memory counted by the connection's allocator. Its
 * callbacks get the connection as user data, and exchanges as user data of their streams. They do nothing once the
 * connection is ending. */
#ifndef EBB__HTTP_H2_H
#define EBB__HTTP_H2_H

#include <nghttp2/nghttp2.h>

#include "http/h2_closed.h"
#include "http/http.h"

enum { EBB__H2_AUTHORITY = 64 }; /* bytes; a longer one is checked each time */

typedef struct ebb__h2 {
    nghttp2_session *session;
    nghttp2_mem mem;
    const uint8_t *left; /* frames of nghttp2 that did not fit; valid until it makes the next */
    size_t left_n;
    uint8_t *to; /* during a fill: the buffer, its size, and the bytes in it */
    size_t to_room, to_n;
    uint64_t block_since; /* since when a header block has been incomplete; 0: none is open */
    uint32_t block_bytes; /* of the open block, so far */
    uint32_t block_cost;  /* cost of the open block, in frames of the budget */
    uint64_t updates;     /* WINDOW_UPDATEs that are free: two for each DATA frame that we sent */
    ebb__h2_past past;    /* server only */
    uint32_t late;        /* bytes of DATA that may still be received for streams that we have reset */
    uint32_t ignored;     /* received DATA frames that nghttp2 has not processed, and their bytes */
    uint32_t ignored_bytes;
    uint8_t head[9]; /* the head of the frame that is being received, head_n bytes of it */
    uint8_t head_n;
    uint32_t payload_left;
    bool block_open;                   /* the last frame of a header block has not begun */
    bool block_frame;                  /* the frame that is being received belongs to a header block */
    ebb_http *last;                    /* cache of the last lookup; NULL: empty. See ebb__h2_exchange */
    char authority[EBB__H2_AUTHORITY]; /* server only: the last :authority that was valid */
    uint8_t authority_n;
    uint64_t read;     /* bytes of bodies that handlers have read, until the window was enlarged */
    bool greeted;      /* server only: the first SETTINGS are sent */
    bool stopped;      /* nghttp2 is not called any more: it still refers to exchanges that have ended */
    bool reset_failed; /* no memory to reset a stream: the connection must end */
    bool peer_error;   /* a server has sent a GOAWAY for an error of the peer */
    bool our_error;    /* nghttp2 has sent a GOAWAY for an error of ours: no memory for a header block */
    bool broken;       /* nghttp2 has failed for good */
} ebb__h2;

/* The first windows of a stream and of a server's connection. A body of 100 KB needs no WINDOW_UPDATE in its middle,
 * which would cost both sides a system call and a wake-up; and one that nobody reads leaves 64 KiB for the others. */
enum {
    EBB__H2_WINDOW = 131070,
    EBB__H2_FIRST_CONNECTION_WINDOW = EBB__H2_WINDOW / 2 * 3,
    EBB__H2_CONNECTION_WINDOW = 1 << 20
};

static inline ebb__h2 *ebb__h2_of(const ebb__conn *c) {
    return c->session;
}

/* We reset a stream: the peer may have filled the stream's window before it knows. Counts twice that, since frames
 * have heads. */
static inline void ebb__h2_expect_late(ebb__h2 *h) {
    if (h->late < EBB__H2_CONNECTION_WINDOW) h->late += 2 * EBB__H2_WINDOW;
}

/* Callbacks of both sides. */
nghttp2_session_callbacks *ebb__h2_callbacks(void); /* NULL: no memory */
nghttp2_option *ebb__h2_options(void);              /* NULL: no memory */
/* A session without its nghttp2 part. NULL: no memory. */
ebb__h2 *ebb__h2_new(ebb__conn *c);
void ebb__h2_free(ebb__conn *c);

void ebb__h2_feed(ebb__conn *c, const uint8_t *bytes, size_t n);
void ebb__h2_eof(ebb__conn *c);
size_t ebb__h2_fill(ebb__conn *c, uint8_t *to, size_t room);
void ebb__h2_more(ebb_http *x);
void ebb__h2_consumed(ebb_http *x, size_t n);
void ebb__h2_reset(ebb_http *x, uint32_t code);
/* Resets a stream that may have no exchange. Without memory for that the connection ends at the next fill. */
void ebb__h2_submit_reset(ebb__h2 *h, int32_t stream, uint32_t code);
void ebb__h2_terminate(ebb__conn *c, uint32_t code);
uint64_t ebb__h2_head_since(const ebb__conn *c);
/* The exchange of a stream. NULL: none. */
ebb_http *ebb__h2_exchange(const ebb__conn *c, int32_t stream);
/* The stream has closed, or its exchange ends: the exchange is not found any more. Must be called before the exchange
 * ends, unless the connection is ending. */
void ebb__h2_forget(ebb__h2 *h, int32_t stream);

/* An array of fields for nghttp2, which does not copy them. The first `first` entries are left for pseudo fields, and
 * `more` entries are left at the end. NULL: no memory. */
nghttp2_nv *ebb__h2_fields(ebb_http *x, const ebb__fields *f, size_t first, size_t more, size_t *n);
nghttp2_nv ebb__h2_field(const char *name, size_t name_n, const char *value, size_t value_n);
/* The source of an exchange's body. */
nghttp2_data_provider ebb__h2_source(ebb_http *x);
/* "CANCEL", or its number. */
const char *ebb__h2_code_name(uint32_t code);

#endif
