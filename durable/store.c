/* A store: opened and closed with its region, and what a provider is given of its host.
 *
 *     OPENING -> OPEN -> CLOSING -> CLOSED
 *           \______________/
 *
 * CLOSING: no call is begun any more. When the last has ended, the provider is closed, and then the record is freed. The
 * region's stores are in one list with one finalizer. Invariants: `anchor` is NULL only when the region was forced before the
 * store was closed; then nobody waits for the store, and it ends with its last call. */
#define _DEFAULT_SOURCE
#include "durable/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/opts.h"
#include "future/peer.h"
#include "kernel/layer.h"
#include "loop/handle.h"
#include "loop/loop.h"

#define EPOCH UINT64_C(1700000000000000000) /* where virtual time begins in days of people */

typedef enum state { OPENING = 1, OPEN, CLOSING, CLOSED } state;

/* The stores of a region. */
typedef struct anchor {
    ebb_runtime *runtime;
    ebb_store *first;
    ebb_task closer; /* runs the finalizer; 0: not yet */
} anchor;

struct ebb_store {
    ebb__call_gate gate;
    ebb__hints hints;
    state state;
    anchor *anchor; /* NULL: the region was forced */
    ebb_store *next, *prev;
    ebb_allocator allocator;
    ebb_region region;
    ebb_loop *loop; /* NULL: the runtime has none */
    ebb_store_opts opts;
    ebb_provider_host host;
    uint64_t random; /* the state of random numbers without a loop */
    uint32_t held;
    ebb__awaited *awaited;
    bool unwanted;                 /* is to be closed when nobody holds it */
    bool asked;                    /* the provider was asked to close */
    ebb_provider_call *close;      /* allocated with the store, so that a close can't fail */
    ebb_future *opening, *closing; /* to be settled; NULL: none */
    ebb_status failed;             /* of the open */
    char text[512];
};

static void store_close(ebb_store *s);

/* ---- what a provider is given -------------------------------------------------------------------------------- */

static uint64_t ns_of(const struct timespec *t) {
    return (uint64_t)t->tv_sec * EBB_SECOND + (uint64_t)t->tv_nsec;
}

static bool is_virtual(const ebb_store *s) {
    return s->loop == NULL || s->loop->os != &ebb__uv_platform;
}

static uint64_t host_wall(void *ctx) {
    ebb_store *s = ctx;
    struct timespec t;
    if (s->loop == NULL) return EPOCH + ebb_now(ebb_runtime_host(s->gate.runtime));
    s->loop->os->wall_clock(&t);
    return ns_of(&t);
}

static uint64_t host_boot(void *ctx) {
    ebb_store *s = ctx;
    struct timespec t;
    if (s->loop == NULL) return ebb_now(ebb_runtime_host(s->gate.runtime));
    if (is_virtual(s)) return s->loop->os->hrtime();
    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return ns_of(&t);
}

/* Without a loop time is virtual, and so is chance: the same in each run, and different in each store. */
static void host_random(void *ctx, void *into, size_t n) {
    ebb_store *s = ctx;
    uint8_t *at = into;
    if (s->loop != NULL) {
        s->loop->os->random(into, n);
        return;
    }
    for (size_t i = 0; i < n; i++) at[i] = (uint8_t)ebb__hash_word(++s->random);
}

static void host_hint(void *ctx, const ebb_provider_hint *h) {
    ebb_store *s = ctx;
    ebb__hints_add(&s->hints, h);
}

static void host_fill(ebb_store *s) {
    ebb_heap_stats stats;
    ebb_heap_stats_of(s->gate.runtime, &stats);
    s->random = ebb__hash_word((uint64_t)ebb__rt_id(s->gate.runtime) << 40 ^ stats.allocated << 8 ^
                               ebb_now(ebb_runtime_host(s->gate.runtime)));
    s->host = (ebb_provider_host){.allocator = s->allocator,
                                  .runtime = s->gate.runtime,
                                  .region = s->region,
                                  .hint = host_hint,
                                  .wall = host_wall,
                                  .boot = host_boot,
                                  .random = host_random,
                                  .ctx = s};
}

/* ---- freed ------------------------------------------------------------------------------------------------------ */

static size_t text_room(const char *text) {
    return text != NULL ? strlen(text) + 1 : 0;
}

static void free_text(ebb_store *s, const char *text) {
    union {
        const char *from;
        void *to;
    } u = {text};
    ebb__free(&s->allocator, u.to, text_room(text));
}

static void store_free(ebb_store *s) {
    ebb_allocator a = s->allocator;
    free_text(s, s->opts.url);
    free_text(s, s->opts.listen_url);
    ebb__call_free(s->close);
    ebb__call_gate_fini(&s->gate);
    ebb__heap_release(s->gate.heap);
    ebb__free(&a, s, sizeof *s);
}

static void hints_freed(ebb__hints *h) {
    store_free((ebb_store *)(void *)((char *)h - offsetof(ebb_store, hints)));
}

static void unlink_store(ebb_store *s) {
    anchor *a = s->anchor;
    if (a == NULL) return;
    if (s->prev != NULL) s->prev->next = s->next;
    else a->first = s->next;
    if (s->next != NULL) s->next->prev = s->prev;
    s->anchor = NULL;
    if (a->first == NULL && a->closer.id != 0) (void)ebb_task_wake(ebb_runtime_host(a->runtime), a->closer);
}

/* The store is not to be used when this returns. */
static void store_end(ebb_store *s) {
    ebb_future *opening = s->opening, *closing = s->closing;
    unlink_store(s);
    if (opening != NULL)
        (void)ebb__promise_reject_because(opening, s->failed != EBB_OK ? s->failed : EBB_CANCELLED, s->text);
    if (closing != NULL) (void)ebb_promise_settle(closing, ebb_value_none());
    ebb__hints_end(&s->hints);
}

/* ---- closed ------------------------------------------------------------------------------------------------------- */

static void closed(void *arg, ebb_provider_call *c) {
    ebb_store *s = arg;
    (void)c;
    s->state = CLOSED;
}

/* What is to be done when no call is in flight. */
static void idle(ebb__call_gate *g) {
    ebb_store *s = (ebb_store *)(void *)g;
    if (s->state == CLOSED) store_end(s);
    else if (s->state == CLOSING && !s->asked) {
        ebb_provider_call *c = s->close;
        s->close = NULL;
        s->asked = true;
        ebb__call_ask(c, closed, s);
    }
}

static void store_close(ebb_store *s) {
    if (s->state != OPEN) return;
    s->state = CLOSING;
    s->gate.closed = true;
    ebb__hints_tell_closed(&s->hints);
    ebb__call_gate_wake(&s->gate);
    ebb__call_gate_rest(&s->gate);
}

/* The value of an open was discarded: by its reader, or since there is none. */
static void value_free(void *p) {
    ebb_store *s = p;
    s->unwanted = true;
    if (s->held == 0) store_close(s);
}

static const ebb_type store_value = {"store", 0, NULL, value_free, EBB__TYPE_AT_HOME};

ebb_store *ebb_store_of(const ebb_value *v) {
    return v->type == &store_value ? v->as.p : NULL;
}

/* ---- the region ------------------------------------------------------------------------------------------------------ */

/* The region was forced: stores end when the provider lets them, and nobody waits for that. */
static void abandon(ebb_cx *cx, anchor *a) {
    ebb_store *next;
    for (ebb_store *s = a->first; s != NULL; s = next) {
        next = s->next;
        s->anchor = NULL;
        s->opening = s->closing = NULL;
        ebb__operation_abandoned(cx, s->region, "store", s->gate.provider->scheme, "ebb_store_open", 0);
    }
    a->first = NULL;
}

static ebb_status finalize(ebb_cx *cx, void *arg) {
    anchor *a = arg;
    ebb_store *next;
    a->closer = (ebb_task){0}; /* a store that ends here wakes nobody */
    for (ebb_store *s = a->first; s != NULL; s = next) {
        next = s->next;
        store_close(s);
    }
    if (a->first != NULL && ebb__is_overdue(cx)) abandon(cx, a);
    if (a->first != NULL) {
        a->closer = ebb_cx_task(cx);
        return EBB_PENDING;
    }
    ebb__free(ebb__rt_allocator(a->runtime), a, sizeof *a);
    return EBB_OK;
}

static void look_for_anchor(void *ctx, const ebb__obligation_view *o) {
    if (o->kind == 0 && o->finalize == finalize) *(anchor **)ctx = o->arg;
}

/* The finalizer of a region's handles has to run after that of its stores, and so to be added before: providers have
 * handles there. */
static ebb_status make_handles_first(ebb_store *s) {
    ebb_status st;
    if (s->loop == NULL) return EBB_OK;
    ebb__handle *h = ebb__handle_new(s->loop, s->region, EBB__HANDLE_OP, "ebb_store_open", &st);
    if (h == NULL) return st;
    ebb__handle_free(h);
    return EBB_OK;
}

static ebb_status anchor_new(ebb_cx *cx, ebb_store *s, anchor **out) {
    ebb_runtime *rt = s->gate.runtime;
    const ebb_allocator *allocator = ebb__rt_allocator(rt);
    ebb_status st = make_handles_first(s);
    if (st != EBB_OK) return st;
    anchor *a = ebb__alloc(allocator, sizeof *a);
    if (a == NULL) return EBB_ERR_NOMEM;
    *a = (anchor){.runtime = rt};
    st = ebb__region_defer_apart(cx, s->region, finalize, a, "stores");
    if (st != EBB_OK) ebb__free(allocator, a, sizeof *a);
    *out = a;
    return st;
}

static ebb_status anchor_store(ebb_cx *cx, ebb_store *s) {
    anchor *a = NULL;
    ebb__region *r;
    ebb_status st = ebb__region_get(s->gate.runtime, s->region, &r);
    if (st != EBB_OK) return st;
    ebb__region_obligations(s->gate.runtime, r, look_for_anchor, &a);
    if (a == NULL) st = anchor_new(cx, s, &a);
    if (st != EBB_OK) return st;
    s->anchor = a;
    s->next = a->first;
    if (a->first != NULL) a->first->prev = s;
    a->first = s;
    return EBB_OK;
}

/* ---- opened ------------------------------------------------------------------------------------------------------------ */

static void opened(void *arg, ebb_provider_call *c) {
    ebb_store *s = arg;
    if (c->status != EBB_OK) {
        s->failed = c->status;
        (void)snprintf(s->text, sizeof s->text, "%s", c->text);
        s->gate.closed = true;
        s->state = CLOSED;
        return;
    }
    s->gate.self = ((ebb_provider_open_call *)c)->self;
    s->state = OPEN;
    ebb_future *f = s->opening;
    s->opening = NULL;
    if (f == NULL) store_close(s);
    else (void)ebb_promise_settle(f, ebb_value_owned(&store_value, s));
}

static const ebb_operation open_op = {"open of a store", NULL, NULL};
static const ebb_operation close_op = {"close of a store", NULL, NULL};

static ebb_status copy_text(ebb_store *s, const char **text) {
    const size_t n = text_room(*text);
    if (n == 0) return EBB_OK;
    char *to = ebb__alloc(&s->allocator, n);
    if (to != NULL) memcpy(to, *text, n);
    *text = to;
    return to != NULL ? EBB_OK : EBB_ERR_NOMEM;
}

static void gate_fill(ebb_store *s) {
    const uint32_t most = s->opts.queued != 0 ? s->opts.queued : EBB_DURABLE_QUEUED;
    s->gate.allocator = s->allocator;
    s->gate.most = most;
    s->gate.reserve = most / 8 != 0 ? most / 8 : 1;
    s->gate.idle = idle;
}

/* Both texts are copied or NULL, whatever happens. */
static ebb_status copy_texts(ebb_store *s) {
    const char *listen = s->opts.listen_url;
    s->opts.listen_url = NULL;
    ebb_status st = copy_text(s, &s->opts.url);
    if (st != EBB_OK) return st;
    s->opts.listen_url = listen;
    return copy_text(s, &s->opts.listen_url);
}

static ebb_status store_new(ebb_cx *cx, const ebb_store_opts *opts, const ebb_provider *p, ebb_store **out) {
    ebb_runtime *rt = ebb_cx_runtime(cx);
    const ebb_allocator *a = ebb__rt_allocator(rt);
    ebb__heap *heap = ebb__heap_get(rt);
    ebb_store *s = heap != NULL ? ebb__alloc(a, sizeof *s) : NULL;
    if (s == NULL) return EBB_ERR_NOMEM;
    memset(s, 0, sizeof *s);
    s->allocator = *a;
    s->opts = *opts;
    s->state = OPENING;
    s->region = ebb_cx_region(cx);
    s->gate.provider = p;
    s->gate.runtime = rt;
    s->gate.heap = ebb__heap_keep(heap);
    gate_fill(s);
    if (ebb__loop_of(cx, &s->loop) != EBB_OK) s->loop = NULL;
    ebb_status st = copy_texts(s);
    if (st == EBB_OK) s->close = ebb__call_new(&s->gate, EBB_PROVIDER_CLOSE);
    if (st == EBB_OK && s->close == NULL) st = EBB_ERR_NOMEM;
    if (st == EBB_OK) st = ebb__hints_init(&s->hints, *a, heap, hints_freed);
    if (st != EBB_OK) store_free(s);
    else *out = s;
    return st;
}

static ebb_status check(const ebb_store_opts *given, ebb_store_opts *o, const ebb_provider **p) {
    char shown[256];
    ebb_status st = EBB__DURABLE_OPTS(o, given);
    if (st != EBB_OK) return st;
    if (o->url == NULL) return ebb__durable_say(EBB_ERR_INVALID, "a store needs a URL");
    *p = o->provider != NULL ? o->provider : ebb__provider_of(o->url);
    ebb__store_url_say(o->url, shown, sizeof shown);
    if (*p == NULL) return ebb__durable_say(EBB_ERR_INVALID, "no provider has the scheme of '%s'", shown);
    if ((*p)->size != sizeof(ebb_provider))
        return ebb__durable_say(EBB_ERR_VERSION, "the provider of '%s' has %u bytes; this library's has %zu",
                                shown, (*p)->size, sizeof(ebb_provider));
    return EBB_OK;
}

/* Consumes `s`. */
static ebb_future *begin_open(ebb_cx *cx, ebb_store *s, const char *site) {
    ebb_provider_open_call *c = ebb__call_new(&s->gate, EBB_PROVIDER_OPEN);
    ebb_status st = c != NULL ? anchor_store(cx, s) : EBB_ERR_NOMEM;
    ebb_future *f = st == EBB_OK ? ebb_promise_new_site(cx, &open_op, NULL, site)
                                 : ebb__durable_future_failed(cx, st, site);
    if (st != EBB_OK || ebb_future_status_of(f) != EBB_PENDING) {
        if (c != NULL) ebb__call_free(&c->call);
        store_end(s);
        return f;
    }
    host_fill(s);
    c->host = &s->host;
    c->opts = &s->opts;
    s->opening = f;
    ebb__call_ask(&c->call, opened, s);
    return f;
}

ebb_future *ebb_store_open_site(ebb_cx *cx, const ebb_store_opts *opts, const char *site) {
    ebb_store_opts o;
    ebb_store *s;
    const ebb_provider *p = NULL;
    ebb_status st = check(opts, &o, &p);
    if (st == EBB_OK) st = store_new(cx, &o, p, &s);
    return st == EBB_OK ? begin_open(cx, s, site) : ebb__durable_future_failed(cx, st, site);
}

ebb_future *ebb_store_close_site(ebb_cx *cx, ebb_store *s, const char *site) {
    if (s->held > 0)
        return ebb__durable_future_failed(
            cx, ebb__durable_say(EBB_ERR_BUSY, "%u workers are open on the store", s->held), site);
    if (s->state != OPEN)
        return ebb__durable_future_failed(cx, ebb__durable_say(EBB_ERR_CLOSED, "the store is closed"), site);
    ebb_future *f = ebb_promise_new_site(cx, &close_op, NULL, site);
    if (ebb_future_status_of(f) != EBB_PENDING) return f;
    s->closing = f;
    store_close(s);
    return f;
}

/* ---- for the layers above ------------------------------------------------------------------------------------------------ */

void ebb__store_listen(ebb_store *s, ebb__hint_listener *l) {
    ebb__hints_listen(&s->hints, l);
}

void ebb__store_listen_for(ebb_store *s, ebb__hint_listener *l, uint64_t key) {
    ebb__hints_listen_for(&s->hints, l, key);
}

uint64_t ebb__store_ends(const ebb_store *s) {
    return s->hints.ends;
}

void ebb__store_unlisten(ebb_store *s, ebb__hint_listener *l) {
    ebb__hints_unlisten(&s->hints, l);
}

void ebb__store_await(ebb_store *s, ebb__awaited *a) {
    a->prev = NULL;
    a->next = s->awaited;
    if (a->next != NULL) a->next->prev = a;
    s->awaited = a;
}

void ebb__store_await_key(ebb_store *s, ebb__awaited *a, uint64_t key) {
    if (a->key == key) return;
    a->key = key;
    ebb__hints_tell_awaited(&s->hints);
}

void ebb__store_unawait(ebb_store *s, ebb__awaited *a) {
    if (a->prev != NULL) a->prev->next = a->next;
    else s->awaited = a->next;
    if (a->next != NULL) a->next->prev = a->prev;
    ebb__hints_tell_awaited(&s->hints);
}

bool ebb__store_is_awaited(const ebb_store *s) {
    return s->awaited != NULL;
}

bool ebb__store_knows_awaited(const ebb_store *s) {
    const ebb__awaited *a = s->awaited;
    while (a != NULL && a->key == 0) a = a->next;
    return a != NULL;
}

bool ebb__store_awaits(const ebb_store *s, uint64_t key) {
    const ebb__awaited *a = s->awaited;
    while (a != NULL && a->key != key) a = a->next;
    return a != NULL;
}

static int by_number(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

size_t ebb__store_awaited(const ebb_store *s, ebb_provider_call *c, const uint64_t **keys) {
    size_t n = 0, own = 0;
    for (const ebb__awaited *a = s->awaited; a != NULL; a = a->next) n += a->key != 0;
    uint64_t *all = n != 0 ? ebb__call_room(c, n * sizeof *all) : NULL;
    *keys = all;
    if (all == NULL) return 0;
    n = 0;
    for (const ebb__awaited *a = s->awaited; a != NULL; a = a->next) {
        if (a->key != 0) all[n++] = a->key;
    }
    qsort(all, n, sizeof *all, by_number);
    for (size_t i = 0; i < n; i++) {
        if (own == 0 || all[own - 1] != all[i]) all[own++] = all[i];
    }
    return own;
}

ebb__call_gate *ebb__store_gate(ebb_store *s) {
    return &s->gate;
}

const ebb_provider_host *ebb__store_host(const ebb_store *s) {
    return &s->host;
}

ebb_region ebb__store_region(const ebb_store *s) {
    return s->region;
}

const ebb_provider *ebb__store_provider(const ebb_store *s) {
    return s->gate.provider;
}

const ebb_store_opts *ebb__store_opts_of(const ebb_store *s) {
    return &s->opts;
}

void ebb__store_stats(const ebb_store *s, ebb_provider_stats *out) {
    memset(out, 0, sizeof *out);
    s->gate.provider->stats(s->gate.self, out);
}

void ebb__store_hold(ebb_store *s) {
    s->held++;
}

void ebb__store_unhold(ebb_store *s) {
    if (--s->held == 0 && s->unwanted) store_close(s);
}

void ebb__store_set_faults(ebb_store *s, const ebb__store_faults *f) {
    s->gate.faults = f;
}
