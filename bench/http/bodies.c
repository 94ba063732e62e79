/* Large bodies, out and in, by a fiber, a poll function and a future. */
#include "bodies.h"

#include <ebb/ebb.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 10000, READ = 65536 };

static const char piece[PIECE];

/* The state of a poll or future handler. */
typedef struct body {
    EBB_TASK_STATE;
    ebb_http *x;
    uint64_t left, got;
    ebb_future *wait;
    ebb_value value;
    char *into;
} body;

static uint64_t asked(ebb_http *x) {
    const char *n = ebb_http_param(x, "n");
    return n == NULL ? 0 : strtoull(n, NULL, 10);
}

static size_t next_piece(uint64_t left) {
    return left < PIECE ? (size_t)left : PIECE;
}

static ebb_status start(ebb_cx *cx, ebb_http *x) {
    ebb_status st = ebb_http_set_header(x, "content-length", ebb_http_param(x, "n"));
    return st == EBB_OK ? ebb_http_start(cx, x, 200) : st;
}

static ebb_status tell(ebb_cx *cx, ebb_http *x, uint64_t got) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64 "\n", got);
    return ebb_http_text(cx, x, 200, text);
}

/* ---- fibers -------------------------------------------------------------------------------------------- */

static ebb_status send_fiber(ebb_cx *cx, ebb_http *x, void *arg) {
    uint64_t left = asked(x);
    (void)arg;
    ebb_status st = start(cx, x);
    for (; st == EBB_OK && left > 0; left -= next_piece(left)) {
        st = ebb_await(cx, ebb_http_write(cx, x, piece, next_piece(left)), NULL);
    }
    return st;
}

static ebb_status take_fiber(ebb_cx *cx, ebb_http *x, void *arg) {
    uint64_t got = 0;
    ebb_value v;
    char *into = ebb_http_alloc(x, READ);
    (void)arg;
    ebb_status st = into == NULL ? EBB_ERR_NOMEM : EBB_OK;
    while (st == EBB_OK) {
        st = ebb_await(cx, ebb_http_read(cx, x, into, READ), &v);
        if (st == EBB_OK) got += v.as.u;
    }
    return st == EBB_ERR_EOF ? tell(cx, x, got) : st;
}

/* ---- poll functions ------------------------------------------------------------------------------------ */

static ebb_status send_poll(ebb_cx *cx, ebb_http *x, void *arg) {
    body *b = ebb_http_state(x, sizeof *b);
    ebb_status st;
    (void)arg;
    if (b == NULL) return EBB_ERR_NOMEM;
    EBB_BEGIN(b);
    b->left = asked(x);
    st = start(cx, x);
    if (st != EBB_OK) return st;
    for (; b->left > 0; b->left -= next_piece(b->left)) {
        b->wait = ebb_http_write(cx, x, piece, next_piece(b->left));
        EBB_AWAIT(b, st, ebb_await(cx, b->wait, NULL));
        if (st != EBB_OK) return st;
    }
    return EBB_OK;
    EBB_END(b);
}

static ebb_status take_poll(ebb_cx *cx, ebb_http *x, void *arg) {
    body *b = ebb_http_state(x, sizeof *b);
    ebb_status st;
    (void)arg;
    if (b == NULL) return EBB_ERR_NOMEM;
    EBB_BEGIN(b);
    b->into = ebb_http_alloc(x, READ);
    if (b->into == NULL) return EBB_ERR_NOMEM;
    for (;;) {
        b->wait = ebb_http_read(cx, x, b->into, READ);
        EBB_AWAIT(b, st, ebb_await(cx, b->wait, &b->value));
        if (st == EBB_ERR_EOF) return tell(cx, x, b->got);
        if (st != EBB_OK) return st;
        b->got += b->value.as.u;
    }
    EBB_END(b);
}

/* ---- futures ------------------------------------------------------------------------------------------- */

static ebb_future *as_future(ebb_cx *cx, ebb_status st) {
    return st == EBB_OK ? ebb_future_ready(cx, ebb_value_none()) : ebb_future_failed(cx, st);
}

static ebb_future *send_next(ebb_cx *cx, ebb_value *v, void *arg) {
    body *b = arg;
    size_t n = next_piece(b->left);
    (void)v;
    if (n == 0) return as_future(cx, ebb_http_end(cx, b->x));
    b->left -= n;
    return ebb_then(cx, ebb_http_write(cx, b->x, piece, n), send_next, b);
}

static ebb_future *send_future(ebb_cx *cx, ebb_http *x, void *arg) {
    body *b = ebb_http_state(x, sizeof *b);
    (void)arg;
    if (b == NULL) return ebb_future_failed(cx, EBB_ERR_NOMEM);
    b->x = x;
    b->left = asked(x);
    ebb_status st = start(cx, x);
    return st == EBB_OK ? send_next(cx, NULL, b) : ebb_future_failed(cx, st);
}

static ebb_future *take_next(ebb_cx *cx, ebb_value *v, void *arg) {
    body *b = arg;
    if (v != NULL) b->got += v->as.u;
    return ebb_then(cx, ebb_http_read(cx, b->x, b->into, READ), take_next, b);
}

static ebb_future *take_end(ebb_cx *cx, ebb_status st, void *arg) {
    body *b = arg;
    return as_future(cx, st == EBB_ERR_EOF ? tell(cx, b->x, b->got) : st);
}

static ebb_future *take_future(ebb_cx *cx, ebb_http *x, void *arg) {
    body *b = ebb_http_state(x, sizeof *b);
    (void)arg;
    if (b != NULL) b->into = ebb_http_alloc(x, READ);
    if (b == NULL || b->into == NULL) return ebb_future_failed(cx, EBB_ERR_NOMEM);
    b->x = x;
    return ebb_catch(cx, take_next(cx, NULL, b), take_end, b);
}

ebb_status bodies_routes(ebb_http_server *s) {
    ebb_status st = ebb_http_on(s, "GET", "/body/fiber/:n", send_fiber, NULL);
    if (st == EBB_OK) st = ebb_http_on_poll(s, "GET", "/body/poll/:n", send_poll, NULL);
    if (st == EBB_OK) st = ebb_http_on_future(s, "GET", "/body/future/:n", send_future, NULL);
    if (st == EBB_OK) st = ebb_http_on(s, "POST", "/upload/fiber", take_fiber, NULL);
    if (st == EBB_OK) st = ebb_http_on_poll(s, "POST", "/upload/poll", take_poll, NULL);
    if (st == EBB_OK) st = ebb_http_on_future(s, "POST", "/upload/future", take_future, NULL);
    return st;
}
