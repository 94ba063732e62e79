/* HTTP/1 as its server and its client share it: how messages are read, and how they are written.
 *
 * Heads are parsed by http-parser, as a whole. It takes more than RFC 9112 allows, and two readers who
 * disagree about where a message ends are how requests are smuggled: so every line is checked before, and the
 * framing of bodies is read here, to the letter. */
#ifndef EBB__HTTP_H1_H
#define EBB__HTTP_H1_H

#include "http/http.h"

/* ---- what comes: h1_in.c ------------------------------------------------------------------------------------ */

enum {
    EBB__H1_LINE_BYTES = 8192,        /* the first line of a head: 414 past it */
    EBB__H1_CHUNK_EXTRA_BYTES = 4096, /* extensions of all chunks of a body together: 400 past it */
    EBB__H1_HELD_BYTES = 16384,       /* of the next message, before no more is read */
    EBB__H1_WINDOW_BYTES = 65536      /* of a body that nobody has read yet, before no more is taken */
};

/* In place of a status: what came is not HTTP, and is not answered. */
enum { EBB__H1_NO_HTTP = 1 };

typedef enum ebb__h1_state {
    EBB__H1_HEAD = 0,
    EBB__H1_SIZED,    /* `left` bytes of body */
    EBB__H1_ENDLESS,  /* the body ends with the connection */
    EBB__H1_SIZE,     /* the size of a chunk: its digits */
    EBB__H1_EXTRA,    /* and what follows them */
    EBB__H1_SIZE_LF,  /* the LF of its line */
    EBB__H1_DATA,     /* `left` bytes of a chunk */
    EBB__H1_DATA_CR,  /* its CR */
    EBB__H1_DATA_LF,  /* its LF */
    EBB__H1_TRAILERS, /* lines after the last chunk */
    EBB__H1_WHOLE,    /* the message has ended: the next one is not looked at before ebb__h1_next */
    EBB__H1_SHUT      /* nothing more is wanted: what comes is dropped */
} ebb__h1_state;

typedef struct ebb__h1_in ebb__h1_in;

typedef struct ebb__h1_side {
    /* The first line of a head is right; or there is a fault. */
    bool (*line)(ebb__h1_in *in, const char *line, size_t n);
    /* A whole head, its lines checked. Sets `x` and the state, or the fault. */
    void (*head)(ebb__h1_in *in, const char *text, size_t n);
} ebb__h1_side;

/* A reader of messages. What holds:
 *  - `held` are bytes that came and that were not taken; it is NULL if there are none. In a head, or in
 *    trailers, they start with its first byte, and [0, line) of them are lines that were checked.
 *  - `x` is whose body comes, and is not NULL in the states from SIZED to TRAILERS.
 *  - After a fault nothing is looked at any more. */
struct ebb__h1_in {
    ebb__conn *c;
    const ebb__h1_side *side;
    ebb_http *x;
    uint8_t state;  /* ebb__h1_state */
    bool closed;    /* nothing more comes */
    bool blank;     /* an empty line stood before this head: one is allowed */
    bool digits;    /* the size of a chunk has one */
    bool named;     /* its extension has a semicolon */
    uint16_t fault; /* the status that says what is wrong, or EBB__H1_NO_HTTP; 0: nothing is */
    const char *why;
    uint8_t *held;
    size_t held_at, held_n, held_room;
    size_t line, seen;   /* where the line in hand starts, and how far it was looked at */
    size_t head_bytes;   /* the most that a head may have */
    uint64_t left;       /* of the body, or of a chunk */
    uint32_t extra;      /* bytes of extensions so far */
    uint64_t head_since; /* when the first byte of a head came that is not whole; 0: there is none */
};

void ebb__h1_in_init(ebb__h1_in *in, ebb__conn *c, const ebb__h1_side *side, size_t head_bytes);
void ebb__h1_in_free(ebb__h1_in *in);
/* Takes bytes as far as it can now, and holds the others. */
void ebb__h1_take(ebb__h1_in *in, const uint8_t *bytes, size_t n);
/* Something has changed: looks at those that are held again. */
void ebb__h1_again(ebb__h1_in *in);
/* Where the bytes of the body in hand that come next belong, and how many at most: with the handler that waits for
 * them. NULL: nowhere yet, or they are too few to be worth a read of their own. */
uint8_t *ebb__h1_place(const ebb__h1_in *in, size_t *n);
/* A body that ends with the connection has ended. */
void ebb__h1_closed(ebb__h1_in *in);
/* The message that ended is done with: on to the next. */
void ebb__h1_next(ebb__h1_in *in);
/* Bytes of a body are held, and wait for whoever reads it. */
bool ebb__h1_is_full(const ebb__h1_in *in);
/* Drops what is held, and what comes. */
void ebb__h1_shut(ebb__h1_in *in);
/* Reads the wire, or does not, as there is room. */
void ebb__h1_steer(ebb__h1_in *in);
/* Something is wrong, and `status` is how a server says so. Always false. */
bool ebb__h1_fault(ebb__h1_in *in, int status, const char *why);

/* What a head says about itself. */
typedef struct ebb__h1_head {
    const char *target; /* of a request */
    size_t target_n;
    int method; /* http-parser's */
    int status;
    int minor; /* HTTP/1.minor */
    bool sized, chunked;
    uint64_t length;
    uint32_t hosts; /* fields of that name, and the value of the last */
    const char *host;
    size_t host_n;
} ebb__h1_head;

/* Parses a head. False: there is a fault. */
bool ebb__h1_parse(ebb__h1_in *in, bool request, const char *text, size_t n, ebb__h1_head *out);
/* Gives its fields to x, and says whether the connection may live on after this message. */
bool ebb__h1_fields(ebb_http *x, const char *text, size_t n, int minor);

/* ---- what goes: h1_out.c ------------------------------------------------------------------------------------ */

/* How a body that goes is told from what follows it. */
typedef enum ebb__h1_frame {
    EBB__H1_NO_BODY = 0,
    EBB__H1_BY_LENGTH,
    EBB__H1_BY_CHUNKS,
    EBB__H1_BY_CLOSE /* to a client of HTTP/1.0 */
} ebb__h1_frame;
ebb__h1_frame ebb__h1_frame_of(const ebb_http *x);

/* A writer of one message. What holds: `text` goes first, then the body of `x`, until `text` is its end. */
typedef struct ebb__h1_out {
    ebb_http *x;      /* NULL: there is no message */
    const char *text; /* a head, or the end of a chunked body; in the arena of x, or for ever */
    size_t text_n;
    bool chunked;
    bool ends;   /* the text is the last of it */
    bool failed; /* there was no memory for its end: it can only be cut */
} ebb__h1_out;

/* The head: `first` is its first lines, each with its CRLF, and `last` its last ones, without the fields
 * that frame the body. EBB_ERR_NOMEM: nothing is begun. */
ebb_status ebb__h1_begin(ebb__h1_out *out, ebb_http *x, const char *first, const char *last);
/* At most `room` bytes; room >= 256. *done: with these all of the message has gone. */
size_t ebb__h1_put(ebb__h1_out *out, uint8_t *to, size_t room, bool *done);

#endif
