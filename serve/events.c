/* Server-sent events: the live tree every now and then, and a page of instances whenever it is another one. A store that
 * is slow is asked for one page at a time, and does not hold the tree up.
 *
 * A reader that does not take an event in SHED is shed: its stream is reset. At most STREAMS readers are served; each has
 * a fiber. Nothing that is allocated outside of the exchange lives across an await. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/layer.h"
#include "serve/instance.h"
#include "serve/live.h"

enum { STREAMS = 16, EVERY_MS = 1000 };
#define SHED       (2 * EBB_SECOND)
#define PAGE_WAITS (500 * EBB_MS) /* of what is live, for a page of instances */

static ebb_status stream_ended(ebb_cx *cx, void *dash) {
    (void)cx;
    ((ebb__dashboard *)dash)->streams--;
    return EBB_OK;
}

/* The event is copied: the caller's text may go before the await. */
static ebb_future *send_event(ebb__ask *a, const char *name, const char *text, size_t n) {
    const ebb_http_event e = {.event = name, .data = text, .data_n = n};
    return ebb_within(a->cx, ebb_http_send_event(a->cx, a->x, &e), SHED);
}

static ebb_status await_event(ebb__ask *a, ebb_future *f) {
    const ebb_status st = ebb_await(a->cx, f, NULL);
    a->dash->shed += st == EBB_TIMEOUT;
    return st;
}

static ebb_status send_live(ebb__ask *a) {
    ebb__inspect_text t;
    ebb__live_say(a, &t);
    if (t.failed) {
        ebb__inspect_text_free(&t);
        return EBB_ERR_NOMEM;
    }
    ebb_future *f = send_event(a, "live", t.at, t.n);
    ebb__inspect_text_free(&t);
    return await_event(a, f);
}

static ebb_status send_page(ebb__ask *a, ebb_value *v, uint8_t last[EBB__DIGEST]) {
    uint8_t digest[EBB__DIGEST];
    json_t *page = ebb__instance_page_json(a, v);
    char *text = page != NULL ? json_dumps(page, JSON_COMPACT) : NULL;
    json_decref(page);
    if (text == NULL) return EBB_ERR_NOMEM;
    bool fresh = ebb__token_digest(text, strlen(text), digest) && memcmp(digest, last, EBB__DIGEST) != 0;
    ebb_future *f = fresh ? send_event(a, "instances", text, strlen(text)) : NULL;
    free(text);
    if (!fresh) return EBB_OK;
    memcpy(last, digest, EBB__DIGEST);
    return await_event(a, f);
}

/* A page that has not come stays in *page for the next time. A store that can't be reached now may be later. */
static ebb_status send_instances(ebb__ask *a, ebb_future **page, uint8_t last[EBB__DIGEST]) {
    ebb_value v;
    if (*page == NULL) *page = ebb_future_shield(ebb__instance_page(a));
    ebb_future *two[] = {ebb_future_keep(*page), ebb_after(a->cx, PAGE_WAITS)};
    ebb_status st = ebb_await(a->cx, ebb_race(a->cx, 2, two), NULL);
    if (ebb_future_status_of(*page) == EBB_PENDING) return st;
    st = ebb_await(a->cx, *page, &v);
    *page = NULL;
    if (st == EBB_OK) return send_page(a, &v, last);
    return st == EBB_CANCELLED || st == EBB_ERR_CLOSED ? st : EBB_OK;
}

/* False: the service closes. */
static bool wait_for_next(ebb__ask *a, uint64_t span) {
    ebb_future *two[] = {ebb_closing(a->cx), ebb_after(a->cx, span)};
    return ebb_await(a->cx, ebb_race(a->cx, 2, two), NULL) == EBB_OK && !ebb_stopping(a->cx);
}

static ebb_status stream(ebb__ask *a, uint64_t span) {
    uint8_t last[EBB__DIGEST] = {0};
    ebb_future *page = NULL;
    ebb_status st = EBB_OK;
    do {
        st = send_live(a);
        if (st == EBB_OK && a->dash->store != NULL) st = send_instances(a, &page, last);
    } while (st == EBB_OK && wait_for_next(a, span));
    if (st == EBB_OK) st = send_live(a); /* how it ended */
    if (page != NULL) {
        (void)ebb_future_cancel(page, EBB_CANCEL_USER);
        ebb_future_drop(page);
    }
    return st;
}

ebb_status ebb__serve_events(ebb__ask *a) {
    const ebb__given *every = ebb__given_of(a, "every_ms");
    if (strcmp(ebb_http_method(a->x), "HEAD") == 0)
        return ebb_http_reply(a->cx, a->x, 200, "text/event-stream", "", 0);
    if (a->dash->streams == STREAMS)
        return ebb__answer_refusal(a, 503, "busy", "%d readers have a stream of events already", STREAMS);
    ebb_status st = ebb_defer(a->cx, stream_ended, a->dash);
    if (st != EBB_OK) return st;
    a->dash->streams++;
    return stream(a, (every->is ? every->number : EVERY_MS) * EBB_MS);
}
