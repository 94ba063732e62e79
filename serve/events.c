/* Server-sent events: the numbers every now and then, the tree whenever it changes, and a page of instances whenever it is
 * another one. A store that is slow is asked for one page at a time, and does not hold the rest up.
 *
 * A reader that does not take an event in SHED is shed: its stream is reset. At most STREAMS readers are served; each has
 * a fiber. Nothing that is allocated outside of the exchange lives across an await, but what a reader knows of the tree: it is
 * freed by a finalizer. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/layer.h"
#include "serve/instance.h"
#include "serve/live.h"
#include "serve/tree.h"

enum { STREAMS = 16, EVERY_MS = 1000 };
/* Between two looks at the tree: at least TREE_MS, and so long that a visit of all that lives stays below a percent of the
 * time of the loop; MORE_MS if a look has left something over. */
enum { TREE_MS = 250, MORE_MS = 100, VISIT_NS = 20000 };
#define SHED       (2 * EBB_SECOND)
#define PAGE_WAITS (500 * EBB_MS) /* of what is live, for a page of instances */

/* One reader. */
typedef struct stream {
    ebb__ask *a;
    ebb__tree tree;
    ebb_future *page;          /* of instances, that was asked for and has not come; NULL: none */
    uint8_t last[EBB__DIGEST]; /* of the page that was sent last */
} stream;

static ebb_status stream_ended(ebb_cx *cx, void *arg) {
    stream *s = arg;
    (void)cx;
    ebb__tree_free(&s->tree);
    s->a->dash->streams--;
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

static ebb_status send_text(ebb__ask *a, const char *name, ebb__inspect_text *t) {
    ebb_future *f = t->failed ? NULL : send_event(a, name, t->at, t->n);
    const bool failed = t->failed;
    ebb__inspect_text_free(t);
    return failed ? EBB_ERR_NOMEM : await_event(a, f);
}

static ebb_status send_live(ebb__ask *a) {
    ebb__inspect_text t;
    ebb__live_numbers(a, &t);
    return send_text(a, "live", &t);
}

static ebb_status send_tree(stream *s) {
    ebb__inspect_text t = {.allocator = s->tree.allocator};
    if (ebb__tree_say(&s->tree, &t, s->a->cx) || t.failed) return send_text(s->a, "tree", &t);
    ebb__inspect_text_free(&t);
    return EBB_OK;
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

/* A page that has not come is waited for the next time. A store that can't be reached now may be later. */
static ebb_status send_instances(stream *s) {
    ebb__ask *a = s->a;
    ebb_value v;
    if (s->page == NULL) s->page = ebb_future_shield(ebb__instance_page(a));
    ebb_future *two[] = {ebb_future_keep(s->page), ebb_after(a->cx, PAGE_WAITS)};
    ebb_status st = ebb_await(a->cx, ebb_race(a->cx, 2, two), NULL);
    if (ebb_future_status_of(s->page) == EBB_PENDING) return st;
    st = ebb_await(a->cx, s->page, &v);
    s->page = NULL;
    if (st == EBB_OK) return send_page(a, &v, s->last);
    return st == EBB_CANCELLED || st == EBB_ERR_CLOSED ? st : EBB_OK;
}

/* False: the service closes. */
static bool wait_until(ebb__ask *a, uint64_t when) {
    const uint64_t now = ebb_now(a->cx);
    ebb_future *two[] = {ebb_closing(a->cx), ebb_after(a->cx, when > now ? when - now : 0)};
    return ebb_await(a->cx, ebb_race(a->cx, 2, two), NULL) == EBB_OK && !ebb_stopping(a->cx);
}

static uint64_t tree_due(const stream *s) {
    const uint64_t gap = (s->tree.more ? MORE_MS : TREE_MS) * EBB_MS,
                   cost = (uint64_t)s->tree.visited * VISIT_NS;
    return ebb_now(s->a->cx) + (gap > cost ? gap : cost);
}

static ebb_status send_all(stream *s, uint64_t span) {
    ebb__ask *a = s->a;
    uint64_t live_at = ebb_now(a->cx), tree_at = live_at;
    ebb_status st = EBB_OK;
    do {
        const uint64_t now = ebb_now(a->cx);
        const bool is_live = now >= live_at;
        if (is_live) live_at = now + span;
        if (is_live) st = send_live(a);
        if (st == EBB_OK && now >= tree_at) {
            st = send_tree(s);
            tree_at = tree_due(s);
        }
        if (st == EBB_OK && is_live && a->dash->store != NULL) st = send_instances(s);
    } while (st == EBB_OK && wait_until(a, live_at < tree_at ? live_at : tree_at));
    if (st == EBB_OK) st = send_live(a); /* how it ended */
    return st;
}

ebb_status ebb__serve_events(ebb__ask *a) {
    const ebb__given *every = ebb__given_of(a, "every_ms");
    if (strcmp(ebb_http_method(a->x), "HEAD") == 0)
        return ebb_http_reply(a->cx, a->x, 200, "text/event-stream", "", 0);
    if (a->dash->streams == STREAMS)
        return ebb__answer_refusal(a, 503, "busy", "%d readers have a stream of events already", STREAMS);
    stream *s = ebb_http_alloc(a->x, sizeof *s);
    if (s == NULL) return EBB_ERR_NOMEM;
    *s = (stream){.a = a, .tree = {.allocator = ebb__rt_allocator(ebb__rt_of(a->cx))}};
    ebb_status st = ebb_defer(a->cx, stream_ended, s);
    if (st != EBB_OK) return st;
    a->dash->streams++;
    st = send_all(s, (every->is ? every->number : EVERY_MS) * EBB_MS);
    if (s->page != NULL) {
        (void)ebb_future_cancel(s->page, EBB_CANCEL_USER);
        ebb_future_drop(s->page);
    }
    return st;
}
