/* Dialling several addresses: see dial.h. */
#define _POSIX_C_SOURCE 200809L
#include "loop/dial.h"

#include <assert.h>

#include "base/alloc.h"

typedef struct attempt {
    ebb__dial *dial;
    ebb__handle *handle; /* NULL: not begun, or ended */
    uv_connect_t uv;
    struct sockaddr_storage to;
} attempt;

struct ebb__dial {
    ebb_loop *loop;
    ebb_allocator allocator;
    ebb_region region;
    const ebb__dial_ops *ops;
    void *ctx;
    const char *site;
    uv_timer_t timer;
    uint64_t limit_at,
        step_at;        /* by the platform's clock: the time limit, and the start of the next attempt */
    uint32_t n, next;   /* addresses, and the first that was not tried */
    uint32_t under_way; /* attempts whose callback has not been called */
    uint32_t room;      /* of `attempts` */
    uint32_t parts;     /* references of libuv: the timer, and each attempt until its callback has returned */
    bool won;           /* one has connected */
    bool ended;         /* the owner gets no more callbacks */
    ebb_status last;    /* the status of the last attempt */
    attempt *attempts;
};

static void part_gone(ebb__dial *d) {
    ebb_allocator a = d->allocator;
    if (--d->parts > 0) return;
    ebb__free(&a, d->attempts, d->room * sizeof *d->attempts);
    ebb__free(&a, d, sizeof *d);
}

static void on_timer(uv_timer_t *uv);

/* libuv's clock stands at the start of its turn, so the timer may expire early. It is then set again. */
static void arm(ebb__dial *d) {
    bool steps = !d->won && d->next < d->n;
    uint64_t due = steps && d->step_at < d->limit_at ? d->step_at : d->limit_at, now = d->loop->os->hrtime();
    uint64_t left = due > now ? due - now : 0;
    (void)d->loop->os->timer_start(&d->timer, on_timer, left / EBB_MS + (left % EBB_MS != 0), 0);
}

static void close_attempts(ebb__dial *d) {
    for (uint32_t i = 0; i < d->next; i++) {
        /* on_connect is called later */
        if (d->attempts[i].handle != NULL) ebb__handle_close(d->attempts[i].handle);
    }
}

static void on_connect(uv_connect_t *uv, int code);

static ebb_status try_one(ebb__dial *d, attempt *a) {
    ebb_status st;
    ebb__handle *h = ebb__stream_new(d->loop, d->region, EBB__TCP, d->site, &st);
    if (h == NULL) return st;
    a->uv.data = a;
    int code = d->loop->os->tcp_connect(&a->uv, &h->uv.tcp, (const struct sockaddr *)&a->to, on_connect);
    if (code != 0) {
        ebb__handle_close(h);
        return ebb__uv_status(code);
    }
    a->handle = h;
    d->under_way++;
    d->parts++;
    return EBB_OK;
}

/* Starts the next attempt that can be started. If none can and none is under way: the status of the last one. */
static ebb_status start_next(ebb__dial *d) {
    ebb_status st = EBB_PENDING;
    while (d->next < d->n && st != EBB_OK) {
        st = try_one(d, &d->attempts[d->next++]);
        if (st != EBB_OK) d->last = st;
    }
    d->step_at = d->loop->os->hrtime() + EBB__DIAL_STEP_MS * EBB_MS;
    arm(d);
    return d->under_way > 0 ? EBB_OK : d->last;
}

static void tell_failure(ebb__dial *d, ebb_status st) {
    d->next = d->n;
    d->ops->failed(d->ctx, st);
}

/* The owner may call ebb__dial_end in this callback, and in the next. */
static void attempt_won(ebb__dial *d, ebb__handle *h) {
    assert(!d->won && !d->ended);
    d->won = true;
    close_attempts(d);
    arm(d);
    d->ops->connected(d->ctx, h);
}

static void on_timer(uv_timer_t *uv) {
    ebb__dial *d = uv->data;
    uint64_t now = d->loop->os->hrtime();
    ebb_status st = EBB_OK;
    (void)ebb_loop_cx(d->loop);
    if (now >= d->limit_at) st = EBB_TIMEOUT;
    else if (!d->won && d->next < d->n && now >= d->step_at) st = start_next(d);
    else arm(d);
    if (st != EBB_OK) tell_failure(d, st);
}

/* If the region has closed the stream, the dial ends: no other stream can be opened in that region. */
static void attempt_failed(ebb__dial *d, int code) {
    d->last = code == UV_ECANCELED ? EBB_ERR_CLOSED : ebb__uv_status(code);
    if (code == UV_ECANCELED) d->next = d->n;
    ebb_status st = start_next(d);
    if (st != EBB_OK) tell_failure(d, st);
}

static void on_connect(uv_connect_t *uv, int code) {
    attempt *a = uv->data;
    ebb__dial *d = a->dial;
    ebb__handle *h = a->handle;
    bool late = d->ended || d->won;
    assert(h != NULL && d->under_way > 0 && d->under_way <= d->parts);
    a->handle = NULL;
    d->under_way--;
    if (late || code != 0) ebb__handle_close(h);
    if (!late) {
        (void)ebb_loop_cx(d->loop);
        if (code == 0) attempt_won(d, h);
        else attempt_failed(d, code);
    }
    part_gone(d);
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *uv) {
    part_gone(uv->data);
}

ebb__dial *ebb__dial_new(ebb_loop *l, ebb_region region, uint64_t limit_ns, const ebb__dial_ops *ops,
                         void *ctx, const char *site) {
    ebb__dial *d = ebb__alloc(&l->allocator, sizeof *d);
    if (d == NULL) return NULL;
    *d = (ebb__dial){
        .loop = l, .allocator = l->allocator, .region = region, .ops = ops, .ctx = ctx, .site = site};
    uint64_t now = d->loop->os->hrtime();
    d->limit_at = limit_ns < EBB_FOREVER - now ? now + limit_ns : EBB_FOREVER;
    d->last = EBB_UV(UV_EAI_NODATA);
    d->parts = 1;
    (void)l->os->timer_init(l->uv, &d->timer); /* can't fail */
    d->timer.data = d;
    l->os->unref((uv_handle_t *)&d->timer);
    arm(d);
    return d;
}

/* The family of the first address begins: the system has sorted them (RFC 6724). */
static uint32_t interleave(attempt *to, const struct addrinfo *found) {
    const struct addrinfo *at[2] = {found, found};
    int family[2] = {0, 0};
    uint32_t n = 0;
    for (const struct addrinfo *a = found; a != NULL && family[0] == 0; a = a->ai_next) {
        if (a->ai_family == AF_INET || a->ai_family == AF_INET6) family[0] = a->ai_family;
    }
    family[1] = family[0] == AF_INET6 ? AF_INET : AF_INET6;
    for (int i = 0; at[0] != NULL || at[1] != NULL; i = !i) {
        while (at[i] != NULL && at[i]->ai_family != family[i]) at[i] = at[i]->ai_next;
        if (at[i] == NULL) continue;
        memcpy(&to[n++].to, at[i]->ai_addr, at[i]->ai_addrlen);
        at[i] = at[i]->ai_next;
    }
    return n;
}

static void set_port(struct sockaddr_storage *to, uint16_t port) {
    if (to->ss_family == AF_INET) ((struct sockaddr_in *)(void *)to)->sin_port = htons(port);
    else ((struct sockaddr_in6 *)(void *)to)->sin6_port = htons(port);
}

ebb_status ebb__dial_start(ebb__dial *d, const struct addrinfo *found, uint16_t port) {
    for (const struct addrinfo *a = found; a != NULL; a = a->ai_next) d->room++;
    if (d->room > 0) d->attempts = ebb__alloc(&d->allocator, d->room * sizeof *d->attempts);
    if (d->room > 0 && d->attempts == NULL) return EBB_ERR_NOMEM;
    if (d->room > 0) memset(d->attempts, 0, d->room * sizeof *d->attempts);
    d->n = interleave(d->attempts, found);
    for (uint32_t i = 0; i < d->n; i++) {
        d->attempts[i].dial = d;
        set_port(&d->attempts[i].to, port);
    }
    return start_next(d);
}

void ebb__dial_end(ebb__dial *d) {
    if (d == NULL) return;
    assert(!d->ended);
    d->ended = true;
    close_attempts(d);
    d->loop->os->close((uv_handle_t *)&d->timer, on_timer_closed);
}
