/* HTTP/1: how messages are written. */
#define _POSIX_C_SOURCE 200809L
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "http/h1.h"

/* The line with a chunk's size, the CRLF after the chunk, and the end of the body. */
enum { CHUNK_ROOM = 32 };

/* ---- heads -------------------------------------------------------------------------------------------------- */

static size_t fields_bytes(const ebb__fields *f) {
    size_t n = 0;
    for (uint32_t i = 0; i < f->n; i++) n += f->at[i].name_n + f->at[i].value_n + 4u;
    return n;
}

static char *put(char *to, const char *text, size_t n) {
    memcpy(to, text, n);
    return to + n;
}

static char *put_fields(char *to, const ebb__fields *f) {
    for (uint32_t i = 0; i < f->n; i++) {
        to = put(to, f->at[i].name, f->at[i].name_n);
        to = put(to, ": ", 2);
        to = put(to, f->at[i].value, f->at[i].value_n);
        to = put(to, "\r\n", 2);
    }
    return to;
}

/* A request without a body has no length. Trailers need chunks. */
ebb__h1_frame ebb__h1_frame_of(const ebb_http *x) {
    bool chunks = x->client || x->version > 10;
    bool empty = x->out == EBB__OUT_ENDED && !x->out_sized && x->out_trailers.n == 0;
    if (x->bodyless || (x->client && empty)) return EBB__H1_NO_BODY;
    if (x->out_sized && (x->out_trailers.n == 0 || !chunks)) return EBB__H1_BY_LENGTH;
    return chunks ? EBB__H1_BY_CHUNKS : EBB__H1_BY_CLOSE;
}

/* The response to HEAD has the length that GET would get. */
static size_t framing(const ebb_http *x, char *to, size_t room) {
    ebb__h1_frame frame = ebb__h1_frame_of(x);
    bool sized = frame == EBB__H1_BY_LENGTH ||
                 (x->head && !x->client && x->out_sized && x->status != 204 && x->status != 304);
    ebb__text t = ebb__text_in(to, room);
    if (sized) {
        ebb__text_str(&t, "content-length: ");
        ebb__text_u64(&t, x->out_size);
        ebb__text_str(&t, "\r\n");
    } else if (frame == EBB__H1_BY_CHUNKS) {
        ebb__text_str(&t, "transfer-encoding: chunked\r\n");
    }
    return t.n;
}

ebb_status ebb__h1_begin(ebb__h1_out *out, ebb_http *x, const char *first, const char *last) {
    char frame[64];
    size_t first_n = strlen(first), last_n = strlen(last), frame_n = framing(x, frame, sizeof frame);
    size_t n = first_n + fields_bytes(&x->out_fields) + frame_n + last_n + 2;
    char *text = ebb__arena_alloc(&x->arena, n);
    if (text == NULL) return EBB_ERR_NOMEM;
    char *to = put(text, first, first_n);
    to = put_fields(to, &x->out_fields);
    to = put(to, frame, frame_n);
    to = put(to, last, last_n);
    to = put(to, "\r\n", 2);
    assert(to == text + n);
    (void)to;
    *out =
        (ebb__h1_out){.x = x, .text = text, .text_n = n, .chunked = ebb__h1_frame_of(x) == EBB__H1_BY_CHUNKS};
    return EBB_OK;
}

/* ---- bodies ------------------------------------------------------------------------------------------------- */

static size_t put_text(ebb__h1_out *out, uint8_t *to, size_t room) {
    size_t n = out->text_n < room ? out->text_n : room;
    if (n == 0) return 0;
    memcpy(to, out->text, n);
    out->text += n;
    out->text_n -= n;
    return n;
}

/* The last chunk, and the trailers. */
static void end_chunks(ebb__h1_out *out) {
    const ebb__fields *f = &out->x->out_trailers;
    size_t n = fields_bytes(f) + 5;
    char *text = ebb__arena_alloc(&out->x->arena, n);
    if (text == NULL) {
        out->failed = true;
        return;
    }
    (void)put(put_fields(put(text, "0\r\n", 3), f), "\r\n", 2);
    out->text = text;
    out->text_n = n;
    out->ends = true;
}

static size_t put_chunk(ebb__h1_out *out, uint8_t *to, size_t room) {
    bool ended;
    size_t n = ebb__exchange_ready(out->x, &ended), line = 0;
    if (room < CHUNK_ROOM) return 0;
    if (n > room - CHUNK_ROOM) n = room - CHUNK_ROOM;
    if (n > 0) line = (size_t)snprintf((char *)to, CHUNK_ROOM, "%zx\r\n", n);
    n = ebb__exchange_take(out->x, to + line, n, &ended);
    if (ended) end_chunks(out);
    if (n == 0) return 0;
    n += line;
    to[n++] = '\r';
    to[n++] = '\n';
    return n;
}

static size_t put_plain(ebb__h1_out *out, uint8_t *to, size_t room) {
    return ebb__exchange_take(out->x, to, room, &out->ends);
}

size_t ebb__h1_put(ebb__h1_out *out, uint8_t *to, size_t room, bool *done) {
    size_t n = put_text(out, to, room);
    if (n > 0 && out->x != NULL) ebb__exchange_sent(out->x);
    if (out->text_n == 0 && out->x != NULL && !out->ends) {
        n += out->chunked ? put_chunk(out, to + n, room - n) : put_plain(out, to + n, room - n);
        n += put_text(out, to + n, room - n);
    }
    *done = out->x != NULL && out->ends && out->text_n == 0;
    return n;
}

/* ---- notifications ------------------------------------------------------------------------------------------ */

void ebb__h1_more(ebb_http *x) {
    ebb__conn_touch(x->conn);
}

void ebb__h1_consumed(ebb_http *x, size_t n) {
    (void)n;
    ebb__conn_touch(x->conn);
}

void ebb__h1_drain(ebb__conn *c) {
    ebb__conn_touch(c);
}
