/* HTTP/1, shared by server and client: how messages are read and written.
 *
 * http-parser parses heads, each as a whole. It accepts more than RFC 9112 allows, and requests are smuggled where two
 * readers disagree about the end of a message. So every line is checked before, and the framing of bodies is parsed
 * here, strictly. */
#ifndef EBB__HTTP_H1_H
#define EBB__HTTP_H1_H

#include "http/http.h"

/* ---- receiving: h1_in.c ------------------------------------------------------------------------------------- */

enum {
    EBB__H1_LINE_BYTES = 8192,        /* first line of a head: 414 past it */
    EBB__H1_CHUNK_EXTRA_BYTES = 4096, /* extensions of all chunks of a body: 400 past it */
    EBB__H1_HELD_BYTES = 16384,       /* of the next message, before the connection is not read any more */
    EBB__H1_WINDOW_BYTES = 65536      /* unread bytes of a body, before no more are taken */
};

/* In place of a status: the bytes are not HTTP, and get no answer. */
enum { EBB__H1_NO_HTTP = 1 };

typedef enum ebb__h1_state {
    EBB__H1_HEAD = 0,
    EBB__H1_SIZED,    /* `left` bytes of body */
    EBB__H1_ENDLESS,  /* the body ends with the connection */
    EBB__H1_SIZE,     /* the size of a chunk: its digits */
    EBB__H1_EXTRA,    /* the extensions after the digits */
    EBB__H1_SIZE_LF,  /* the LF of its line */
    EBB__H1_DATA,     /* `left` bytes of a chunk */
    EBB__H1_DATA_CR,  /* the CR after a chunk */
    EBB__H1_DATA_LF,  /* the LF after a chunk */
    EBB__H1_TRAILERS, /* lines after the last chunk */
    EBB__H1_WHOLE,    /* the message has ended: the next one is parsed after ebb__h1_next */
    EBB__H1_SHUT      /* received bytes are dropped */
} ebb__h1_state;

typedef struct ebb__h1_in ebb__h1_in;

typedef struct ebb__h1_side {
    /* Checks the first line of a head. False: there is a fault. */
    bool (*line)(ebb__h1_in *in, const char *line, size_t n);
    /* Takes a complete head with checked lines. Sets `x` and the state, or the fault. */
    void (*head)(ebb__h1_in *in, const char *text, size_t n);
} ebb__h1_side;

/* A reader of messages. Invariants:
 *  - `held` are received bytes that were not taken; NULL if there are none. In a head or in trailers they start with
 *    its first byte, and [0, line) of them are checked lines.
 *  - `x` is the exchange whose body is being received. It is not NULL in the states from SIZED to TRAILERS.
 *  - After a fault no byte is parsed. */
struct ebb__h1_in {
    ebb__conn *c;
    const ebb__h1_side *side;
    ebb_http *x;
    uint8_t state;  /* ebb__h1_state */
    bool closed;    /* no more bytes will be received */
    bool blank;     /* an empty line preceded this head: one is allowed */
    bool digits;    /* the size of the chunk has a digit */
    bool named;     /* the extension of the chunk has a semicolon */
    uint16_t fault; /* the status for the error, or EBB__H1_NO_HTTP; 0: no error */
    const char *why;
    uint8_t *held;
    size_t held_at, held_n, held_room;
    size_t line, seen;   /* where the current line starts, and how far it was examined */
    size_t head_bytes;   /* limit for a head */
    uint64_t left;       /* bytes left of the body or the chunk */
    uint32_t extra;      /* bytes of extensions so far */
    uint64_t head_since; /* when the first byte of an incomplete head was received; 0: none */
};

void ebb__h1_in_init(ebb__h1_in *in, ebb__conn *c, const ebb__h1_side *side, size_t head_bytes);
void ebb__h1_in_free(ebb__h1_in *in);
/* Takes as many bytes as it can now, and holds the others. */
void ebb__h1_take(ebb__h1_in *in, const uint8_t *bytes, size_t n);
/* Parses held bytes again, because something has changed. */
void ebb__h1_again(ebb__h1_in *in);
/* The buffer for the next bytes of the body, of the handler that waits for them, and its size in *n. NULL: none, or
 * too small to be worth a read of its own. */
uint8_t *ebb__h1_place(const ebb__h1_in *in, size_t *n);
/* Ends a body that ends with the connection. */
void ebb__h1_closed(ebb__h1_in *in);
/* The exchange of the last message has ended: parses the next message. */
void ebb__h1_next(ebb__h1_in *in);
/* Bytes of a body are held until its reader takes some. */
bool ebb__h1_is_full(const ebb__h1_in *in);
/* Drops held bytes and all that will be received. */
void ebb__h1_shut(ebb__h1_in *in);
/* Reads the connection, or stops reading it, depending on the room for bytes. */
void ebb__h1_steer(ebb__h1_in *in);
/* Sets the fault; `status` is how a server reports it. Always false. */
bool ebb__h1_fault(ebb__h1_in *in, int status, const char *why);

/* The framing of a message, from its head. */
typedef struct ebb__h1_head {
    const char *target; /* of a request */
    size_t target_n;
    int method; /* as http-parser numbers them */
    int status;
    int minor; /* HTTP/1.minor */
    bool sized, chunked;
    uint64_t length;
    uint32_t hosts; /* number of host fields, and the value of the last */
    const char *host;
    size_t host_n;
} ebb__h1_head;

/* Parses a head. False: there is a fault. */
bool ebb__h1_parse(ebb__h1_in *in, bool request, const char *text, size_t n, ebb__h1_head *out);
/* Adds the fields to x. Returns whether the connection may be used again after this message. */
bool ebb__h1_fields(ebb_http *x, const char *text, size_t n, int minor);

/* ---- sending: h1_out.c -------------------------------------------------------------------------------------- */

/* How the end of a sent body is marked. */
typedef enum ebb__h1_frame {
    EBB__H1_NO_BODY = 0,
    EBB__H1_BY_LENGTH,
    EBB__H1_BY_CHUNKS,
    EBB__H1_BY_CLOSE /* to a client of HTTP/1.0 */
} ebb__h1_frame;
ebb__h1_frame ebb__h1_frame_of(const ebb_http *x);

/* A writer of one message. Invariant: `text` is sent first, then the body of `x`, until `text` is its end. */
typedef struct ebb__h1_out {
    ebb_http *x;      /* NULL: no message */
    const char *text; /* a head, or the end of a chunked body; in the arena of x, or static */
    size_t text_n;
    bool chunked;
    bool ends;   /* the text is the end of the message */
    bool failed; /* no memory for the end: the message can only be cut */
} ebb__h1_out;

/* Starts a message. `first` are its first lines, each with its CRLF, and `last` its last ones; the fields that frame
 * the body are added. EBB_ERR_NOMEM: nothing is started. */
ebb_status ebb__h1_begin(ebb__h1_out *out, ebb_http *x, const char *first, const char *last);
/* Writes at most `room` bytes; room >= 256. *done: the message is complete. */
size_t ebb__h1_put(ebb__h1_out *out, uint8_t *to, size_t room, bool *done);

/* Of both protocols: the next flush looks at what has changed. */
void ebb__h1_more(ebb_http *x);
void ebb__h1_consumed(ebb_http *x, size_t n);
void ebb__h1_drain(ebb__conn *c);

#endif
