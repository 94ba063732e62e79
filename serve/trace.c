/* Captures: a trace of the loop on demand. One at a time, with a bound for its events and its time; the last one can be
 * read until the next begins. Names and sizes of payloads stand in it, so reading needs the token too.
 *
 * The buffer is allocated at the start and never grows, so a capture that nobody ends has a bound. A fiber in the region of
 * the server ends it when its time is over or the service closes. */
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "kernel/layer.h"
#include "serve/serve.h"

enum { SECONDS = 10, EVENTS = 100000, BLOCK_EVENTS = 127, BLOCK_BYTES = 4096, PIECE = 65536 };

/* ---- the end ------------------------------------------------------------------------------------------------------- */

static void drop(ebb__dashboard *d) {
    ebb__capture *c = &d->capture;
    ebb__free(d->allocator, c->bytes, c->room);
    c->bytes = NULL;
    c->n = c->room = 0;
}

static void count(void *size, const void *bytes, size_t n) {
    (void)bytes;
    *(size_t *)size += n;
}

static void append(void *capture, const void *bytes, size_t n) {
    ebb__capture *c = capture;
    if (n > c->room - c->n) n = c->room - c->n; /* it was allocated for all */
    memcpy(c->bytes + c->n, bytes, n);
    c->n += n;
}

/* The events stay readable, in the memory that was allocated at the start. */
static void end(ebb_runtime *rt, ebb__dashboard *d) {
    ebb__capture *c = &d->capture;
    if (!c->running) return;
    c->running = false;
    c->events = ebb__capture_events(rt, &c->full);
    ebb__capture_end(rt, append, c);
}

void ebb__capture_free(ebb_runtime *rt, ebb__dashboard *d) {
    if (d->capture.running) ebb__capture_end(rt, count, &(size_t){0});
    d->capture.running = false;
    drop(d);
}

/* ---- the time ------------------------------------------------------------------------------------------------------ */

static ebb_status time_over(ebb_cx *cx, void *dash) {
    ebb__dashboard *d = dash;
    const uint64_t number = d->capture.number;
    ebb_future *two[] = {ebb_closing(cx), ebb_after(cx, d->capture.span)};
    const ebb_status st = ebb_await(cx, ebb_race(cx, 2, two), NULL);
    if (d->capture.number == number) {
        d->capture.sleeper.id = 0;
        end(ebb__rt_of(cx), d);
    }
    return st == EBB_CANCELLED ? st : EBB_OK;
}

/* ---- start and stop ------------------------------------------------------------------------------------------------ */

static uint64_t given_or(const ebb__ask *a, const char *name, uint64_t otherwise) {
    const ebb__given *g = ebb__given_of(a, name);
    return g->is ? g->number : otherwise;
}

static ebb_status begin(ebb__ask *a, uint64_t events, uint64_t seconds) {
    ebb__dashboard *d = a->dash;
    ebb__capture *c = &d->capture;
    const size_t blocks = (size_t)(events + BLOCK_EVENTS - 1) / BLOCK_EVENTS + 1;
    drop(d);
    c->room = blocks * BLOCK_BYTES + 64; /* with the head of the file */
    c->bytes = ebb__alloc(d->allocator, c->room);
    ebb_status st = c->bytes != NULL ? EBB_OK : EBB_ERR_NOMEM;
    c->span = seconds * EBB_SECOND;
    c->number++;
    if (st == EBB_OK) {
        c->sleeper = ebb_fiber_spawn(a->cx, ebb_http_server_region(d->server), time_over, d);
        st = ebb_id_status(c->sleeper.id);
    }
    if (st == EBB_OK) st = ebb__capture_start(ebb__rt_of(a->cx), blocks * BLOCK_BYTES);
    c->running = st == EBB_OK;
    if (st == EBB_OK) return st;
    if (c->sleeper.id != 0) (void)ebb_task_cancel(a->cx, c->sleeper, EBB_CANCEL_USER, "no capture");
    c->number++;
    c->sleeper.id = 0;
    drop(d);
    return st;
}

ebb_status ebb__serve_trace_start(ebb__ask *a) {
    ebb__capture *c = &a->dash->capture;
    const uint64_t seconds = given_or(a, "seconds", SECONDS), events = given_or(a, "events", EVENTS);
    if (c->running) return ebb__answer_refusal(a, 409, "is_recording", "a capture is being recorded");
    if (c->readers > 0) return ebb__answer_refusal(a, 409, "is_read", "the last capture is being read");
    const ebb_status st = begin(a, events, seconds);
    if (st == EBB_ERR_BUSY)
        return ebb__answer_refusal(a, 409, "is_recorded", "the service records its trace to a file");
    if (st != EBB_OK) return ebb__answer_failure(a, st, NULL);
    return ebb__answer(a, 202,
                       json_pack("{s:I,s:I}", "seconds", (json_int_t)seconds, "events", (json_int_t)events));
}

ebb_status ebb__serve_trace_stop(ebb__ask *a) {
    ebb__dashboard *d = a->dash;
    ebb__capture *c = &d->capture;
    if (!c->running && c->bytes == NULL)
        return ebb__answer_refusal(a, 404, "no_trace", "no capture was started");
    end(ebb__rt_of(a->cx), d);
    if (c->sleeper.id != 0)
        (void)ebb_task_cancel(a->cx, c->sleeper, EBB_CANCEL_USER, "the capture was stopped");
    c->number++;
    c->sleeper.id = 0;
    return ebb__answer(a, 200,
                       json_pack("{s:I,s:I,s:b}", "events", (json_int_t)c->events, "bytes", (json_int_t)c->n,
                                 "full", c->full));
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

static ebb_status was_read(ebb_cx *cx, void *dash) {
    (void)cx;
    ((ebb__dashboard *)dash)->capture.readers--;
    return EBB_OK;
}

/* The bytes stay as they are while anybody reads them. */
ebb_status ebb__serve_trace(ebb__ask *a) {
    ebb__capture *c = &a->dash->capture;
    char size[24];
    if (c->running)
        return ebb__answer_refusal(a, 409, "is_recording", "the capture is being recorded: stop it");
    if (c->bytes == NULL) return ebb__answer_refusal(a, 404, "no_trace", "no capture was started");
    ebb_status st = ebb_defer(a->cx, was_read, a->dash);
    if (st != EBB_OK) return st;
    c->readers++;
    (void)snprintf(size, sizeof size, "%zu", c->n);
    st = ebb_http_set_header(a->x, "content-type", "application/octet-stream");
    if (st == EBB_OK) st = ebb_http_set_header(a->x, "content-length", size);
    if (st == EBB_OK) st = ebb_http_start(a->cx, a->x, 200);
    for (size_t at = 0; at < c->n && st == EBB_OK; at += PIECE) {
        const size_t n = c->n - at < PIECE ? c->n - at : PIECE;
        st = ebb_await(a->cx, ebb_http_write(a->cx, a->x, c->bytes + at, n), NULL);
    }
    return st;
}
