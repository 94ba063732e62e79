/* A worker: options, registrations, its begin and its end. */
#define _POSIX_C_SOURCE 200809L
#include "durable/worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "durable/run.h"

enum { TURNS = 64, ACTIVITIES = 64, CACHE = 10000, ATTEMPTS = 10, CHUNK = 1024 };
#define CACHE_BYTES (UINT64_C(256) << 20)
#define LEASE       (30 * EBB_SECOND)
#define GRACE       (5 * EBB_SECOND)

/* ---- for its fibers -------------------------------------------------------------------------------------------- */

void ebb__worker_log(ebb_worker *w, ebb_durable_level level, const char *instance, const char *format, ...) {
    char text[700];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (w->opts.log != NULL) {
        w->opts.log(w->opts.arg, level, instance, text);
        return;
    }
    if (level < EBB_DURABLE_WARNING) return;
    (void)fprintf(stderr, "ebb: worker %s: %s%s%s\n", w->name, instance, *instance != 0 ? ": " : "", text);
}

void ebb__worker_wake(ebb_worker *w, ebb__worker_fiber *f) {
    f->woken = true;
    if (f->task.id != 0) (void)ebb_task_wake(ebb_runtime_host(w->rt), f->task);
}

static ebb_timer reserve_new(ebb_cx *cx, ebb_task task) {
    const ebb_timer t = ebb_timer_arm(cx, task, EBB_FOREVER / 2);
    return ebb_id_status(t.id) == EBB_OK ? t : (ebb_timer){0};
}

static ebb_timer arm(ebb_cx *cx, ebb__worker_fiber *f, uint64_t until) {
    ebb_timer t = ebb_timer_arm(cx, ebb_cx_task(cx), until);
    if (ebb_id_status(t.id) == EBB_OK || f->reserve.id == 0) return t;
    (void)ebb_timer_disarm(cx, f->reserve);
    f->reserve.id = 0;
    return ebb_timer_arm(cx, ebb_cx_task(cx), until);
}

/* Without memory for a timer a fiber that has no reserve sleeps until it is woken: the main fiber does that with each
 * renewal. */
bool ebb__worker_nap(ebb_cx *cx, ebb__worker_fiber *f, uint64_t until) {
    const ebb_timer timer = until != EBB_FOREVER ? arm(cx, f, until) : (ebb_timer){0};
    while (!f->woken && ebb_now(cx) < until && !ebb_cancelled(cx)) (void)ebb_fiber_park(cx);
    if (timer.id != 0) (void)ebb_timer_disarm(cx, timer);
    f->woken = false;
    if (f->keeps_reserve && f->reserve.id == 0) f->reserve = reserve_new(cx, ebb_cx_task(cx));
    return ebb_checkpoint(cx) == EBB_OK;
}

bool ebb__worker_serves(const ebb_worker *w, uint64_t key) {
    return !w->closing || ebb__store_awaits(w->store, key);
}

bool ebb__worker_may_fetch(const ebb_worker *w) {
    return !w->closing || ebb__store_knows_awaited(w->store);
}

uint64_t ebb__worker_again(ebb_cx *cx, const ebb_worker *w, uint64_t again) {
    return ebb_now(cx) + (again < w->opts.lease ? again : w->opts.lease);
}

static void *asked(ebb_cx *cx, ebb_future *f, ebb_status *st) {
    ebb_value v;
    *st = ebb_await(cx, f, &v);
    if (*st != EBB_OK) return NULL;
    ebb_provider_call *c = ebb__call_of(&v);
    *st = c->status;
    return c;
}

void *ebb__worker_ask(ebb_cx *cx, ebb_provider_call *c, ebb_status *st) {
    return asked(cx, ebb__call_begin(cx, c, EBB_SITE), st);
}

void *ebb__worker_insist(ebb_cx *cx, ebb_worker *w, ebb_provider_call *c, ebb_status *st) {
    ebb_provider_call *done = asked(cx, ebb__call_insist(cx, c, EBB_FOREVER, EBB_SITE), st);
    if (done != NULL && done->attempt > 1) w->stats.retried += done->attempt - 1;
    return done;
}

void ebb__worker_tell(ebb_cx *cx, ebb_provider_call *c) {
    ebb_future_drop(ebb_future_shield(ebb__call_insist(cx, c, ebb_now(cx) + EBB_SECOND, EBB_SITE)));
}

/* ---- hints ------------------------------------------------------------------------------------------------------- */

/* By an operator, or another worker: its fiber is of no use. */
static void ended(ebb_worker *w, uint64_t key) {
    ebb__hot *h = ebb__hot_find(w, key);
    if (h != NULL && h->task.id == 0) ebb__hot_free(ebb_runtime_host(w->rt), h);
}

static void count_latency(ebb_worker *w, uint64_t committed) {
    const ebb_provider_host *h = ebb__store_host(w->store);
    const uint64_t now = h->boot(h->ctx);
    size_t i = 0;
    if (committed == 0 || now < committed) return;
    while (i + 1 < sizeof w->stats.cancel_latency / sizeof w->stats.cancel_latency[0] &&
           now - committed >= UINT64_C(1) << i)
        i++;
    w->stats.cancel_latency[i]++;
}

static void on_hint(void *arg, const ebb_provider_hint *h) {
    ebb_worker *w = arg;
    ebb_activity *a;
    switch (h->kind) {
    case EBB_PROVIDER_HINT_TURNS: w->look_for_turns = true; break;
    case EBB_PROVIDER_HINT_WORK: w->look_for_work = true; break;
    case EBB_PROVIDER_HINT_LOST: w->look_for_turns = w->look_for_work = w->renew_now = true; break;
    case EBB_PROVIDER_HINT_GONE:
        a = ebb__activity_find(w, h->key, h->execution, h->activity);
        if (a == NULL || a->gone) break;
        ebb__activity_cancel(a, h->cause != EBB_CANCEL_NONE ? h->cause : EBB_CANCEL_LEASE_LOST,
                             "its row was deleted");
        count_latency(w, h->committed);
        break;
    case EBB_PROVIDER_HINT_ENDED: ended(w, h->key); break;
    }
    if (w->look_for_turns) ebb__worker_wake(w, &w->dispatcher);
    if (w->look_for_work) ebb__worker_wake(w, &w->claimer);
    if (w->renew_now) ebb__worker_wake(w, &w->main);
}

/* A worker that is closing goes on with what units of work wait for. */
static void on_awaited(void *arg) {
    ebb_worker *w = arg;
    if (!w->closing) return;
    w->look_for_turns = w->look_for_work = true;
    ebb__worker_wake(w, &w->dispatcher);
    ebb__worker_wake(w, &w->claimer);
    ebb__worker_wake(w, &w->main);
}

/* ---- opened and closed --------------------------------------------------------------------------------------------- */

static void worker_free(ebb_worker *w) {
    ebb_allocator a = w->allocator;
    ebb__hot_free_all(ebb_runtime_host(w->rt), w);
    ebb__activity_free_all(w);
    ebb__map_free(&w->instances);
    ebb__arena_free(&w->arena);
    ebb__free(&a, w->orchs, w->orchs_room * sizeof *w->orchs);
    ebb__free(&a, w, sizeof *w);
}

static void worker_closed(void *arg, const ebb_region_report *report) {
    ebb_worker *w = arg;
    (void)report;
    ebb__store_unlisten(w->store, &w->listener);
    ebb__store_unhold(w->store);
    worker_free(w);
}

bool ebb__worker_has_unit(ebb_runtime *rt, ebb_region unit) {
    ebb__region *r;
    if (ebb__region_get(rt, unit, &r) != EBB_OK) return false;
    const ebb__region *above = ebb__region_parent(rt, r);
    return above != NULL && ebb__region_hook_arg(above, worker_closed) != NULL;
}

static void on_away(void *arg, const char *text, uint64_t span) {
    ebb_worker *w = arg;
    if (text != NULL) ebb__worker_log(w, EBB_DURABLE_WARNING, "", "its store is away: %s", text);
    else
        ebb__worker_log(w, EBB_DURABLE_WARNING, "", "its store is back after %llu.%llu s",
                        (unsigned long long)(span / EBB_SECOND),
                        (unsigned long long)(span % EBB_SECOND / (EBB_SECOND / 10)));
}

static const char *keep(ebb_worker *w, const char *text) {
    const size_t n = strlen(text) + 1;
    char *to = ebb__arena_alloc(&w->arena, n);
    if (to != NULL) memcpy(to, text, n);
    return to;
}

static ebb_status keep_tags(ebb_worker *w, const char *const *tags) {
    size_t n = 0;
    while (tags != NULL && tags[n] != NULL) n++;
    if (n == 0) return EBB_OK;
    w->tags = ebb__arena_alloc(&w->arena, n * sizeof *w->tags);
    if (w->tags == NULL) return EBB_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        if (!ebb__name_is_valid(tags[i]))
            return ebb__durable_say(EBB_ERR_INVALID, "tag %zu of a worker is not valid", i);
        w->tags[i] = keep(w, tags[i]);
        if (w->tags[i] == NULL) return EBB_ERR_NOMEM;
    }
    w->tags_n = n;
    return EBB_OK;
}

static void put_name(ebb_worker *w) {
    char host[64] = "host";
    if (w->opts.name != NULL) {
        (void)snprintf(w->name, sizeof w->name, "%s", w->opts.name);
        return;
    }
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(w->name, sizeof w->name, "%s:%ld", host, (long)getpid());
}

static ebb_status put_defaults(ebb_worker_opts *o) {
    if (o->turns == 0) o->turns = TURNS;
    if (o->activities == 0) o->activities = ACTIVITIES;
    if (o->cache == 0) o->cache = CACHE;
    if (o->cache == EBB_WORKER_NO_CACHE) o->cache = 0;
    if (o->cache_bytes == 0) o->cache_bytes = CACHE_BYTES;
    if (o->lease == 0) o->lease = LEASE;
    if (o->lease >= EBB_SECOND) return EBB_OK;
    return ebb__durable_say(EBB_ERR_INVALID, "a lease of %llu ns is less than 1 s",
                            (unsigned long long)o->lease);
}

static ebb_status open_regions(ebb_cx *cx, ebb_worker *w) {
    const ebb_region_opts own = {.parent = ebb_cx_region(cx),
                                 .policy = EBB_FAIL_COLLECT,
                                 .on_closed = worker_closed,
                                 .arg = w,
                                 .name = "worker"};
    w->region = ebb__region_open_apart(cx, &own, EBB_SITE);
    return ebb_id_status(w->region.id);
}

/* Bodies of activities have a region in the unit of work of their worker. */
static bool described(ebb_runtime *rt, const ebb__region *r, char *out, size_t room) {
    const ebb__region *unit = ebb__region_parent(rt, r);
    const ebb__region *top = unit != NULL ? ebb__region_parent(rt, unit) : NULL;
    const ebb_worker *w = top != NULL ? ebb__region_hook_arg(top, worker_closed) : NULL;
    return w != NULL && ebb__activity_say(w, ebb__region_name(rt, r), out, room);
}

static const ebb__layer worker_layer = {.slot = EBB__WORKER_SLOT, .hooks = {.described = described}};

/* Its record is of no use but to be there: once for all workers of a runtime. */
static ebb_status add_layer(ebb_runtime *rt) {
    static char there;
    return ebb__layer_record(rt, EBB__WORKER_SLOT) != NULL ? EBB_OK
                                                           : ebb__layer_add(rt, &worker_layer, &there);
}

ebb_status ebb_worker_open(ebb_cx *cx, ebb_store *s, const ebb_worker_opts *opts, ebb_worker **out) {
    ebb_worker_opts o;
    *out = NULL;
    if (s == NULL) return ebb__durable_say(EBB_ERR_INVALID, "a worker needs a store");
    ebb_status st = EBB__OPTS_COPY(&o, opts);
    if (st == EBB_OK) st = put_defaults(&o);
    if (st == EBB_OK && (ebb__store_opts_of(s)->client || ebb__store_opts_of(s)->read_only))
        st = ebb__durable_say(EBB_ERR_INVALID,
                              "a worker can't be opened on a store that is for clients or reading");
    if (st != EBB_OK) return st;
    ebb_runtime *rt = ebb_cx_runtime(cx);
    const ebb_allocator a = *ebb__rt_allocator(rt);
    ebb_worker *w = ebb__alloc(&a, sizeof *w);
    if (w == NULL) return EBB_ERR_NOMEM;
    memset(w, 0, sizeof *w);
    w->rt = rt;
    w->allocator = a;
    w->store = s;
    w->gate = ebb__store_gate(s);
    w->opts = o;
    w->listener = (ebb__hint_listener){.hint = on_hint, .awaited = on_awaited, .away = on_away, .arg = w};
    ebb__arena_init(&w->arena, a, CHUNK);
    ebb__map_init(&w->instances, a, sizeof(ebb__hot *));
    put_name(w);
    st = keep_tags(w, o.tags);
    if (st == EBB_OK) st = add_layer(rt);
    if (st == EBB_OK) st = open_regions(cx, w);
    if (st != EBB_OK) {
        worker_free(w);
        return st;
    }
    ebb__store_hold(s); /* until its region has closed */
    ebb__store_listen(s, &w->listener);
    *out = w;
    return EBB_OK;
}

ebb_region ebb_worker_region(const ebb_worker *w) {
    return w->region;
}

void ebb_worker_stats_of(const ebb_worker *w, ebb_worker_stats *out) {
    *out = w->stats;
}

/* ---- registrations -------------------------------------------------------------------------------------------------- */

static ebb_status may_register(const ebb_worker *w, const char *name, bool fn) {
    if (w->begun) return ebb__durable_say(EBB_ERR_BUSY, "the worker has begun");
    if (!ebb__name_is_valid(name) || !fn)
        return ebb__durable_say(EBB_ERR_INVALID, "no valid name, or no function");
    return EBB_OK;
}

static bool make_room(ebb_worker *w) {
    if (w->orchs_n < w->orchs_room) return true;
    const size_t room = w->orchs_room != 0 ? 2 * w->orchs_room : 8;
    void *at =
        ebb__resize(&w->allocator, w->orchs, w->orchs_room * sizeof *w->orchs, room * sizeof *w->orchs);
    if (at == NULL) return false;
    w->orchs = at;
    w->orchs_room = room;
    return true;
}

ebb_status ebb_worker_orch(ebb_worker *w, const char *name, uint32_t version, ebb_orch_fn fn) {
    ebb_status st = may_register(w, name, fn != NULL);
    if (st == EBB_OK && version == 0)
        st = ebb__durable_say(EBB_ERR_INVALID, "orchestration %s has version 0", name);
    for (size_t i = 0; i < w->orchs_n && st == EBB_OK; i++) {
        if (w->orchs[i].version == version && strcmp(w->orchs[i].name, name) == 0)
            st = ebb__durable_say(EBB_ERR_EXISTS, "orchestration %s, version %u, is registered", name,
                                  version);
    }
    if (st != EBB_OK) return st;
    const char *copy = keep(w, name);
    if (copy == NULL || !make_room(w)) return EBB_ERR_NOMEM;
    w->orchs[w->orchs_n++] = (ebb__registered_orch){copy, version, fn};
    return EBB_OK;
}

ebb_status ebb_worker_activity(ebb_worker *w, const char *name, ebb_activity_fn fn, void *arg,
                               const ebb_activity_opts *opts) {
    ebb_activity_opts o;
    ebb_status st = may_register(w, name, fn != NULL);
    if (st == EBB_OK) st = EBB__OPTS_COPY(&o, opts);
    if (st == EBB_OK && ebb__handler_of(w, name, strlen(name)) != NULL)
        st = ebb__durable_say(EBB_ERR_EXISTS, "activity %s is registered", name);
    if (st != EBB_OK) return st;
    if (o.attempts == 0) o.attempts = ATTEMPTS;
    if (o.grace == 0) o.grace = GRACE;
    ebb__registered_activity *r = ebb__arena_zero(&w->arena, sizeof *r);
    const char *copy = keep(w, name);
    if (r == NULL || copy == NULL) return EBB_ERR_NOMEM;
    *r = (ebb__registered_activity){.next = w->handlers, .name = copy, .fn = fn, .arg = arg, .opts = o};
    w->handlers = r;
    return EBB_OK;
}

/* ---- begun ------------------------------------------------------------------------------------------------------------ */

ebb_status ebb_worker_begin(ebb_worker *w) {
    ebb_cx *host = ebb_runtime_host(w->rt);
    if (w->begun) return ebb__durable_say(EBB_ERR_BUSY, "the worker has begun");
    if (w->orchs_n == 0 && w->handlers == NULL)
        return ebb__durable_say(EBB_ERR_INVALID, "nothing is registered");
    const ebb_region_opts unit = {.parent = w->region, .policy = EBB_FAIL_COLLECT, .unit = true};
    w->unit = ebb_region_open(host, &unit);
    ebb_status st = ebb_id_status(w->unit.id);
    if (st != EBB_OK) return st == EBB_CANCELLED ? EBB_ERR_CLOSED : st;
    w->main.task = ebb_fiber_spawn(host, w->unit, ebb__worker_main, w);
    st = ebb_id_status(w->main.task.id);
    if (st == EBB_OK) w->main.reserve = reserve_new(host, w->main.task);
    if (st == EBB_OK && w->main.reserve.id == 0) st = EBB_ERR_NOMEM;
    w->main.keeps_reserve = true;
    if (st != EBB_OK) {
        w->main.task.id = 0;
        ebb_region_cancel(host, w->unit, EBB_CANCEL_RESOURCE, "the worker could not begin");
        return st;
    }
    w->begun = true;
    return EBB_OK;
}
