/* Clients that make random calls, and leave them in random ways. */
#include "tests/http/driver/driver.h"

typedef struct caller {
    world *w;
    dice d;
    ebb_http_client *client;
    char url[96];
    bool foreign; /* the last url is not one of our servers */
} caller;

/* ---- what a call may say ---------------------------------------------------------------------------------- */

static bool documented(const caller *c, ebb_status st) {
    switch ((int)st) {
    case EBB_OK:
    case EBB_TIMEOUT:
    case EBB_CANCELLED:
    case EBB_ERR_HTTP_RETRY:
    case EBB_ERR_HTTP_RESET:
    case EBB_ERR_HTTP_CONNECT:
    case EBB_ERR_HTTP_REDIRECT:
    case EBB_ERR_LIMIT: return true;
    case EBB_ERR_TLS: return c->w->starved || c->w->stopped;
    case EBB_ERR_HTTP_PROTOCOL: return c->foreign || c->w->starved;
    case EBB_ERR_CLOSED: return c->w->stopped || c->w->starved;
    case EBB_ERR_NOMEM:
    case EBB_ERR_NOT_AWAITED: return c->w->starved;
    default: return st < -2000;
    }
}

static ebb_status seen(caller *c, ebb_status st) {
    if (!documented(c, st)) fprintf(stderr, "%s: %s\n", c->url, ebb_status_name(st));
    must(c->w, documented(c, st), "a status of a call that is documented", (uint64_t)-st);
    talk("%s: %s\n", c->url, ebb_status_name(st));
    if (st != EBB_OK) driver_tally.failed++;
    return st;
}

static void call_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    request *r = arg;
    (void)cx;
    (void)st;
    (void)v;
    r->ends++;
}

static void call_cancelled(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    request *r = arg;
    (void)cx;
    (void)kind;
    r->ends++;
}

static ebb_future *counted(request *r, ebb_future *f) {
    driver_tally.calls++;
    if (ebb_future_status_of(f) != EBB_PENDING) return f;
    if (ebb_future_on_done(f, call_done, r) != EBB_OK) return f;
    r->calls++;
    if (ebb_future_on_cancel(f, call_cancelled, r) != EBB_OK) r->calls = r->ends = 1000; /* not known */
    return f;
}

/* ---- making calls ------------------------------------------------------------------------------------------- */

static void aim(caller *c, const request *r) {
    char kind = "ffpu"[roll(&c->d, 4)];
    bool tls = c->w->servers[1] != NULL && chance(&c->d, 3);
    c->foreign = c->w->bad_port != 0 && chance(&c->d, 8);
    uint16_t port = c->foreign ? c->w->bad_port : c->w->ports[tls];
    if (c->foreign) tls = false;
    c->client = c->w->clients[roll(&c->d, CLIENTS)];
    snprintf(c->url, sizeof c->url, "%s://127.0.0.1:%u/%c/%u", tls ? "https" : "http", port, kind, r->id);
    talk("client %d calls %s\n", c->client == c->w->clients[1], c->url);
}

static uint8_t *body_of(caller *c, request *r) {
    r->sent_n = chance(&c->d, 2) ? 0 : size_of_body(&c->d);
    uint8_t *bytes = grab(c->w, r->sent_n + 1u);
    fill(bytes, r->id, 1, 0, r->sent_n);
    return bytes;
}

static void check_response(caller *c, request *r, const ebb_http_response *a) {
    const char *moved = ebb_http_response_header(a, "location");
    if (c->foreign) return;
    must(c->w, a->status >= 200 && a->status < 600, "a status of a response", (uint64_t)a->status);
    if (a->status != 200 || moved != NULL) return;
    r->whole = true;
    r->got_n = (uint32_t)a->body_n;
    driver_tally.whole++;
    if (r->runs > 0) must(c->w, answers(r, a->body, 0, a->body_n), "bytes of a response", r->id);
}

static void fetch(ebb_cx *cx, caller *c) {
    request *r = request_new(c->w);
    ebb_value v;
    if (r == NULL) return;
    aim(c, r);
    uint8_t *body = body_of(c, r);
    r->head = r->sent_n == 0 && chance(&c->d, 10);
    ebb_http_call call = {.method = r->sent_n > 0 ? "POST"
                                    : r->head     ? "HEAD"
                                                  : "GET",
                          .url = c->url,
                          .body = body,
                          .body_n = r->sent_n};
    if (chance(&c->d, 6)) call.deadline = ebb_now(cx) + roll(&c->d, 10000) * EBB_US;
    if (chance(&c->d, 3)) call.redirects = roll(&c->d, 3);
    ebb_future *f = counted(r, ebb_http_fetch(cx, c->client, &call));
    ebb_status st = EBB_PENDING;
    if (chance(&c->d, 4)) { /* given up: the bytes go at once */
        if (chance(&c->d, 2)) st = nap(cx, roll(&c->d, 4000) * EBB_US);
        ebb_future_cancel(f, EBB_CANCEL_USER);
        memset(body, 'X', r->sent_n);
        release(body);
        ebb_future_drop(f);
        return;
    }
    if (chance(&c->d, 5)) f = ebb_within(cx, f, roll(&c->d, 8000) * EBB_US);
    st = seen(c, ebb_await(cx, f, &v));
    memset(body, 'X', r->sent_n);
    release(body);
    if (st != EBB_OK) return;
    if (call.redirects == 0) check_response(c, r, ebb_http_response_of(&v));
    ebb_value_discard(cx, v);
}

static void fetch_many(ebb_cx *cx, caller *c) {
    ebb_future *all[6];
    uint32_t n = 2 + roll(&c->d, 5);
    ebb_value v;
    for (uint32_t i = 0; i < n; i++) {
        request *r = request_new(c->w);
        if (r == NULL) n = i;
        if (r == NULL) break;
        aim(c, r);
        all[i] = counted(r, ebb_http_get(cx, c->client, c->url));
    }
    c->foreign = true;
    ebb_future *f = chance(&c->d, 2) ? ebb_race(cx, n, all) : ebb_all_settled(cx, n, all);
    if (chance(&c->d, 10)) ebb_future_drop(f);
    else if (seen(c, ebb_await(cx, f, &v)) == EBB_OK) ebb_value_discard(cx, v);
}

/* ---- exchanges ------------------------------------------------------------------------------------------------ */

static ebb_status send_body(ebb_cx *cx, caller *c, ebb_http *x, const request *r, size_t at) {
    ebb_status st = EBB_OK;
    while (st == EBB_OK && at < r->sent_n) {
        size_t n = size_of_piece(&c->d);
        if (n > r->sent_n - at) n = r->sent_n - at;
        uint8_t *bytes = grab(c->w, n);
        fill(bytes, r->id, 1, at, n);
        ebb_future *f = ebb_http_write(cx, x, bytes, n);
        if (chance(&c->d, 30) && ebb_future_cancel(f, EBB_CANCEL_USER)) {
            st = EBB_CANCELLED;
            ebb_future_drop(f);
        } else st = ebb_await(cx, f, NULL);
        memset(bytes, 'X', n);
        release(bytes);
        at += n;
    }
    return st == EBB_OK && !chance(&c->d, 20) ? ebb_http_end(cx, x) : st;
}

static void read_response(ebb_cx *cx, caller *c, ebb_http *x, request *r) {
    size_t at = r->got_n;
    uint32_t pieces = chance(&c->d, 3) ? roll(&c->d, 6) : UINT32_MAX;
    ebb_status st = EBB_OK;
    while (st == EBB_OK && pieces-- > 0) {
        size_t room = size_of_piece(&c->d);
        uint8_t *bytes = grab(c->w, room);
        ebb_value v;
        st = ebb_await(cx, ebb_http_read(cx, x, bytes, room), &v);
        if (st == EBB_OK && ebb_http_status(x) == 200 && !c->foreign)
            must(c->w, answers(r, bytes, at, v.as.u), "bytes of a piece of a response", at);
        if (st == EBB_OK) r->got_n = (uint32_t)(at += v.as.u);
        release(bytes);
        if (st == EBB_OK && chance(&c->d, 10)) st = nap(cx, roll(&c->d, 2000) * EBB_US);
    }
    if (st != EBB_ERR_EOF || ebb_http_status(x) != 200 || c->foreign) return;
    talk("client of %u heard the end after %zu, version %d\n", r->id, at, ebb_http_version(x));
    r->whole = true;
}

static void take_body(ebb_cx *cx, caller *c, ebb_http *x, request *r) {
    ebb_value v;
    size_t most = chance(&c->d, 4) ? 100 : 1 << 20;
    if (ebb_await(cx, ebb_http_body(cx, x, most), &v) != EBB_OK) return;
    const ebb_http_bytes *b = ebb_http_body_of(&v);
    if (ebb_http_status(x) != 200 || c->foreign) return;
    r->whole = true;
    r->got_n += (uint32_t)b->n;
    talk("client of %u has a body of %zu, version %d\n", r->id, b->n, ebb_http_version(x));
    must(c->w, answers(r, b->at, r->got_n - b->n, b->n), "bytes of a whole response", b->n);
}

/* Closes it in the middle of a read, which ends then. */
static void close_while_reading(ebb_cx *cx, caller *c, ebb_http *x) {
    uint8_t *bytes = grab(c->w, 5000);
    ebb_value v;
    ebb_future *f = ebb_http_read(cx, x, bytes, 5000);
    if (chance(&c->d, 2)) (void)nap(cx, roll(&c->d, 1000) * EBB_US);
    ebb_http_close(cx, x);
    (void)ebb_await(cx, f, &v);
    release(bytes);
}

/* A task of its own writes while this one reads. */
typedef struct duplex {
    caller c;
    ebb_value v;
    const request *r;
} duplex;

static ebb_status write_side(ebb_cx *cx, void *arg) {
    duplex *x = arg;
    ebb_http *of = ebb_http_of(cx, x->v);
    if (of != NULL) (void)send_body(cx, &x->c, of, x->r, 0);
    return EBB_OK;
}

static ebb_status converse(ebb_cx *cx, caller *c, ebb_value v, request *r) {
    duplex writer = {*c, v, r};
    ebb_region both = ebb_region_open(cx, NULL);
    (void)ebb_fiber_spawn(cx, both, write_side, &writer);
    ebb_http *x = ebb_http_of(cx, v);
    if (x != NULL) read_response(cx, c, x, r);
    if (chance(&c->d, 4)) ebb_region_cancel(cx, both, EBB_CANCEL_USER, NULL);
    (void)ebb_mask(cx);
    ebb_status st = ebb_region_join(cx, both);
    (void)ebb_unmask(cx);
    return st;
}

static void leave(ebb_cx *cx, caller *c, ebb_value v) {
    ebb_http *x = ebb_http_of(cx, v);
    switch (roll(&c->d, 4)) {
    case 0: ebb_value_discard(cx, v); break;
    case 1:
        if (!c->w->still) return; /* with the region; till then it may keep others from their turn */
        ebb_http_close(cx, x);
        break;
    case 2:
        if (x != NULL) close_while_reading(cx, c, x);
        break;
    default: ebb_http_close(cx, x);
    }
    must(c->w, ebb_http_of(cx, v) == NULL, "what was closed is not found", 0);
}

static void open_one(ebb_cx *cx, caller *c) {
    request *r = request_new(c->w);
    ebb_value v;
    if (r == NULL) return;
    aim(c, r);
    bool streams = chance(&c->d, 2);
    uint8_t *body = body_of(c, r);
    ebb_http_call call = {
        .method = r->sent_n > 0 || streams ? "POST" : "GET", .url = c->url, .streams = streams};
    if (!streams) call.body = body, call.body_n = r->sent_n;
    if (chance(&c->d, 8)) call.deadline = ebb_now(cx) + roll(&c->d, 10000) * EBB_US;
    ebb_future *f = counted(r, ebb_http_open(cx, c->client, &call));
    ebb_status st;
    if (chance(&c->d, 8)) {
        (void)nap(cx, roll(&c->d, 3000) * EBB_US);
        (void)ebb_future_cancel(f, EBB_CANCEL_USER);
        ebb_future_drop(f);
        st = EBB_CANCELLED;
    } else st = seen(c, ebb_await(cx, f, &v));
    memset(body, 'X', r->sent_n);
    release(body);
    if (st == EBB_OK && ebb_http_of(cx, v) != NULL) {
        ebb_http *x = ebb_http_of(cx, v);
        if (streams && chance(&c->d, 2)) (void)converse(cx, c, v, r);
        else if (streams) (void)send_body(cx, c, x, r, 0);
        x = ebb_http_of(cx, v);
        if (x != NULL && chance(&c->d, 3)) (void)ebb_await(cx, ebb_http_response_head(cx, x), NULL);
        x = ebb_http_of(cx, v);
        if (x != NULL && chance(&c->d, 2)) take_body(cx, c, x, r);
        else if (x != NULL && chance(&c->d, 2)) read_response(cx, c, x, r);
        leave(cx, c, v);
    }
}

ebb_status client_main(ebb_cx *cx, void *arg) {
    actor *a = arg;
    caller c = {.w = a->world, .d = dice_of(a->world, a->number)};
    for (uint32_t n = 1 + roll(&c.d, 6); n > 0 && !ebb_cancelled(cx); n--) {
        switch (roll(&c.d, 5)) {
        case 0: fetch_many(cx, &c); break;
        case 1:
        case 2: open_one(cx, &c); break;
        default: fetch(cx, &c);
        }
        if (chance(&c.d, 4)) (void)nap(cx, roll(&c.d, 3000) * EBB_US);
    }
    a->world->actors--;
    return EBB_OK;
}
