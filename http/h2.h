/* What both sides of HTTP/2 share. A session is nghttp2's, with its memory counted by the connection's
 * allocator. Its callbacks find the connection as user data, and exchanges as data of their streams; they do
 * nothing any more once the connection is over. */
#ifndef EBB__HTTP_H2_H
#define EBB__HTTP_H2_H

#include <nghttp2/nghttp2.h>

#include "http/h2_closed.h"
#include "http/http.h"

enum { EBB__H2_AUTHORITY = 64 }; /* bytes; a longer one is checked each time */

typedef struct ebb__h2 {
    nghttp2_session *session;
    nghttp2_mem mem;
    const uint8_t *left; /* of a frame that did not fit: nghttp2's, until it is asked for the next */
    size_t left_n;
    uint8_t *to; /* while it is filled: where to, how much has room there, and how much is there */
    size_t to_room, to_n;
    uint64_t block_since; /* a header block is not whole since then; 0: none is open */
    uint32_t block_bytes; /* of that, so far */
    uint32_t block_cost;  /* what it has cost of the budget for frames */
    uint64_t updates;     /* WINDOW_UPDATEs that the peer owes us nothing for: two for each DATA we sent */
    ebb__h2_past past;    /* of a server */
    uint32_t late;        /* bytes of DATA that may still come for streams that we have reset */
    uint32_t ignored;     /* frames of DATA that came and that nghttp2 has not taken, and their bytes */
    uint32_t ignored_bytes;
    uint8_t head[9]; /* of the frame that comes, head_n bytes of it; once whole: */
    uint8_t head_n;
    uint32_t payload_left;
    bool block_open;  /* the last frame of a header block has not begun */
    bool block_frame; /* the frame that comes is one of a header block */
    ebb_http *last;   /* the exchange that was looked up last; NULL: none, or its stream has closed */
    char authority[EBB__H2_AUTHORITY]; /* of a server: the :authority that was found valid last */
    uint8_t authority_n;
    uint64_t read; /* bytes of bodies that handlers have read, until there were enough */
    bool greeted;  /* a server's first SETTINGS are on their way */
    bool stopped;     /* nothing is asked of nghttp2 any more: it does not know that its exchanges are gone */
    bool reset_failed;     /* there was no memory to reset a stream: the connection can't go on */
    bool peer_error;  /* a server has sent a GOAWAY with an error of the peer's */
    bool our_error;   /* nghttp2 has sent one with an error of ours: it had no memory for a header block */
    bool broken;   /* nghttp2 has met an error that it can't go on from */
} ebb__h2;

enum { EBB__H2_WINDOW = 65535, EBB__H2_CONNECTION_WINDOW = 1 << 20 };

static inline ebb__h2 *ebb__h2_of(const ebb__conn *c) {
    return c->session;
}

/* We reset a stream: the peer may have filled its window before it knows. Twice that, since frames have a head. */
static inline void ebb__h2_expect_late(ebb__h2 *h) {
    if (h->late < EBB__H2_CONNECTION_WINDOW) h->late += 2 * EBB__H2_WINDOW;
}

/* Callbacks that both sides have. */
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
/* NULL: there is none. */
ebb_http *ebb__h2_exchange(const ebb__conn *c, int32_t stream);
/* Its stream has closed, or is nobody's any more: it is not found from now on. */
void ebb__h2_forget(ebb__h2 *h, int32_t stream);

/* An array of fields for nghttp2, which does not copy them: `first` of them are free for pseudo fields. NULL:
 * no memory. */
nghttp2_nv *ebb__h2_fields(ebb_http *x, const ebb__fields *f, size_t first, size_t more, size_t *n);
nghttp2_nv ebb__h2_field(const char *name, size_t name_n, const char *value, size_t value_n);
/* The source of an exchange's body. */
nghttp2_data_provider ebb__h2_source(ebb_http *x);
/* "CANCEL", or its number. */
const char *ebb__h2_code_name(uint32_t code);

#endif
