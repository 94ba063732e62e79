/* The futures' rows of the cost table. By the public API, but for the rows about the heap itself, which call
 * what that API calls. */
#include "bench/bench.h"

#include <ebb/ebb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/floor/future.h"
#include "future/heap.h"

enum { MILLION = 1000000, SHORT = 16, BATCH = 7900 };

static ebb_value one_more(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)arg;
    return ebb_value_int(v->as.i + 1);
}

static ebb_future *one_more_later(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)arg;
    return ebb_future_ready(cx, ebb_value_int(v->as.i + 1));
}

/* n nodes that wait for `first`, one for the other; the last. */
static ebb_future *chain(ebb_cx *cx, ebb_future *first, int n) {
    ebb_future *f = first;
    for (int i = 0; i < n; i++) f = ebb_map(cx, f, one_more, NULL);
    return f;
}

/* ---- nodes ------------------------------------------------------------------------------------------------ */

static double bytes(void) {
    long before = bench_rss_bytes();
    ebb_runtime *rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_future *last = chain(host, ebb_promise_new(host, NULL, NULL), MILLION);
    bench_pump_all(rt);
    double each = (double)(bench_rss_bytes() - before) / MILLION;
    bench_must(ebb_future_status_of(last) == EBB_PENDING);
    ebb_runtime_free(rt);
    return each;
}

/* From making it to its end and its memory back, in chains of 16: what a promise and an await add is a
 * sixteenth of them. */
static double short_chains(ebb_runtime *rt) {
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_heap_stats before, after;
    ebb_value v;
    ebb_heap_stats_of(rt, &before);
    double t0 = bench_cpu_ns();
    for (int i = 0; i < MILLION / SHORT; i++) {
        ebb_future *p = ebb_promise_new(host, NULL, NULL), *last = chain(host, p, SHORT);
        (void)ebb_promise_settle(p, ebb_value_int(0));
        (void)ebb_runtime_pump(rt, UINT32_MAX);
        bench_must(ebb_await(host, last, &v) == EBB_OK && v.as.i == SHORT);
    }
    double ns = (bench_cpu_ns() - t0) / MILLION;
    ebb_heap_stats_of(rt, &after);
    bench_must(after.live == before.live && after.collections == before.collections);
    return ns;
}

static double map_nodes(void) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = bench_runtime();
    return short_chains(rt);
}

/* An item through a channel: received by a future that is awaited, and plainly. Nobody has to wait. */
static double channel_recv_future(void) {
    ebb_runtime *rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_chan *ch = NULL;
    ebb_value v;
    uint64_t item = 1;
    bench_must(ebb_chan_new(rt, 1, sizeof item, &ch) == EBB_OK);
    double t0 = bench_cpu_ns();
    for (int i = 0; i < MILLION; i++) {
        bench_must(ebb_chan_try_send(host, ch, &item) == EBB_OK);
        ebb_future *f = ebb_chan_recv_future(host, ch);
        bench_must(ebb_await(host, f, &v) == EBB_OK && ebb_chan_take(host, &v, &item) == EBB_OK);
        if (i % SHORT == 0) (void)ebb_runtime_pump(rt, UINT32_MAX);
    }
    double ns = (bench_cpu_ns() - t0) / MILLION;
    bench_pump_all(rt);
    ebb_chan_free(ch);
    ebb_runtime_free(rt);
    return ns;
}

static double channel_recv_plain(void) {
    ebb_runtime *rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_chan *ch = NULL;
    ebb_wait w = {0};
    uint64_t item = 1;
    bench_must(ebb_chan_new(rt, 1, sizeof item, &ch) == EBB_OK);
    double t0 = bench_cpu_ns();
    for (int i = 0; i < MILLION; i++) {
        bench_must(ebb_chan_try_send(host, ch, &item) == EBB_OK);
        bench_must(ebb_chan_recv(host, ch, &w, &item) == EBB_OK);
    }
    double ns = (bench_cpu_ns() - t0) / MILLION;
    ebb_chan_free(ch);
    ebb_runtime_free(rt);
    return ns;
}

/* A runtime with a million pending futures. */
static ebb_runtime *runtime_1m(void) {
    ebb_runtime *rt = bench_runtime();
    for (int i = 0; i < MILLION; i++) (void)ebb_future_never(ebb_runtime_host(rt));
    if (ebb_gc_collect(rt) != EBB_OK) abort();
    bench_pump_all(rt);
    return rt;
}

/* A million others are alive; what is consumed is freed without a collection. */
static double map_nodes_1m(void) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = runtime_1m();
    return short_chains(rt);
}

/* The same where each callback makes a future of its own for its value. */
static double then_nodes(void) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_value v;
    double t0 = bench_cpu_ns();
    for (int i = 0; i < MILLION / SHORT; i++) {
        ebb_future *p = ebb_promise_new(host, NULL, NULL), *last = p;
        for (int k = 0; k < SHORT; k++) last = ebb_then(host, last, one_more_later, NULL);
        (void)ebb_promise_settle(p, ebb_value_int(0));
        (void)ebb_runtime_pump(rt, UINT32_MAX);
        bench_must(ebb_await(host, last, &v) == EBB_OK && v.as.i == SHORT);
    }
    return (bench_cpu_ns() - t0) / MILLION;
}

/* The same where every node is held once more and then dropped, so that only a collection frees it: the
 * worst there is. */
static double then_1m(void) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = runtime_1m();
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_heap_stats before, after;
    ebb_heap_stats_of(rt, &before);
    double t0 = bench_cpu_ns();
    for (int i = 0; i < 3 * MILLION / SHORT; i++) {
        ebb_future *f[SHORT + 1];
        f[0] = ebb_promise_new(host, NULL, NULL);
        ebb_future *p = f[0];
        for (int k = 1; k <= SHORT; k++) f[k] = ebb_future_keep(ebb_map(host, f[k - 1], one_more, NULL));
        (void)ebb_promise_settle(p, ebb_value_int(0));
        (void)ebb_runtime_pump(rt, UINT32_MAX);
        for (int k = 1; k <= SHORT; k++) ebb_future_drop(f[k]);
        ebb_future_drop(f[SHORT]);
    }
    bench_pump_all(rt);
    double ns = (bench_cpu_ns() - t0) / (3 * MILLION);
    ebb_heap_stats_of(rt, &after);
    bench_must(after.collections > before.collections && after.swept > before.swept);
    return ns;
}

/* ---- chains and fans ---------------------------------------------------------------------------------------- */

static double resolve_chain(void) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_value v;
    ebb_future *p = ebb_promise_new(host, NULL, NULL), *last = chain(host, p, MILLION);
    bench_pump_all(rt);
    double t0 = bench_cpu_ns();
    (void)ebb_promise_settle(p, ebb_value_int(0));
    bench_pump_all(rt);
    double ns = (bench_cpu_ns() - t0) / MILLION;
    bench_must(ebb_await(host, last, &v) == EBB_OK && v.as.i == MILLION);
    return ns;
}

/* As the peers do it: from the making of the first link to the end of the last. */
static double then_chain_1m(void) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_value v;
    double t0 = bench_cpu_ns();
    ebb_future *p = ebb_promise_new(host, NULL, NULL), *last = chain(host, p, MILLION);
    (void)ebb_promise_settle(p, ebb_value_int(0));
    bench_pump_all(rt);
    bench_must(ebb_await(host, last, &v) == EBB_OK && v.as.i == MILLION);
    return (bench_cpu_ns() - t0) / MILLION;
}

static void *cancel_it(void *arg) {
    bench_must(ebb_remote_cancel(arg, EBB_CANCEL_USER));
    return NULL;
}

/* Another thread cancels f while its owner is busy; what the owner does about it is timed. */
static double cancelled_elsewhere(ebb_runtime *rt, ebb_future *f) {
    ebb_remote *r;
    pthread_t thread = 0;
    bench_must(ebb_remote_new(f, &r) == EBB_OK);
    if (pthread_create(&thread, NULL, cancel_it, r) != 0) abort();
    pthread_join(thread, NULL);
    double t0 = bench_cpu_ns();
    ebb_inbox_receive(rt);
    bench_pump_all(rt);
    double ns = (bench_cpu_ns() - t0) / MILLION;
    ebb_remote_release(r);
    ebb_inbox_receive(rt);
    return ns;
}

static double cancel_chain(void) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_future *p = ebb_promise_new(host, NULL, NULL), *last = chain(host, p, MILLION);
    bench_pump_all(rt);
    double ns = cancelled_elsewhere(rt, last);
    bench_must(ebb_future_is_cancelled(p) && ebb_await(host, last, NULL) == EBB_CANCELLED);
    (void)ebb_promise_settle(p, ebb_value_none());
    return ns;
}

/* A million wait for one. */
static double cancel_fan(void) {
    static ebb_runtime *rt;
    static ebb_future **nodes;
    if (rt == NULL) {
        rt = bench_runtime();
        nodes = malloc(MILLION * sizeof *nodes);
        bench_must(nodes != NULL);
    }
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_future *source = ebb_future_share(ebb_promise_new(host, NULL, NULL));
    for (int i = 0; i < MILLION; i++) nodes[i] = ebb_map(host, ebb_future_keep(source), one_more, NULL);
    bench_pump_all(rt);
    double ns = cancelled_elsewhere(rt, source);
    for (int i = 0; i < MILLION; i++) bench_must(ebb_await(host, nodes[i], NULL) == EBB_CANCELLED);
    (void)ebb_promise_settle(source, ebb_value_none());
    ebb_future_drop(source);
    return ns;
}

/* One waits for a million, and owns them. */
static double cancel_all(void) {
    static ebb_runtime *rt;
    static ebb_future **inputs;
    if (rt == NULL) {
        rt = bench_runtime();
        inputs = malloc(MILLION * sizeof *inputs);
        bench_must(inputs != NULL);
    }
    ebb_cx *host = ebb_runtime_host(rt);
    for (int i = 0; i < MILLION; i++) inputs[i] = ebb_future_never(host);
    ebb_future *all = ebb_all(host, MILLION, inputs);
    bench_pump_all(rt);
    double ns = cancelled_elsewhere(rt, all);
    bench_must(ebb_await(host, all, NULL) == EBB_CANCELLED);
    ebb_heap_stats s;
    (void)ebb_gc_collect(rt);
    bench_pump_all(rt);
    (void)ebb_gc_collect(rt);
    ebb_heap_stats_of(rt, &s);
    bench_must(s.live == 0);
    return ns;
}

/* ---- allocation --------------------------------------------------------------------------------------------- */

static const ebb_type cell_type = {"cell", 128, NULL, NULL, EBB__TYPE_OWN};

/* The collections that free them are not timed: see future.then_1m. */
static double alloc(void) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = bench_runtime();
    ebb__heap *h = ebb__heap_get(rt);
    double ns = 0;
    for (int round = 0; round < MILLION / BATCH; round++) {
        double t0 = bench_cpu_ns();
        for (int i = 0; i < BATCH; i++) {
            void *p = ebb__heap_alloc(h, &cell_type, 128);
            __asm__ volatile("" ::"r"(p) : "memory");
        }
        ns += bench_cpu_ns() - t0;
        if (ebb_gc_collect(rt) != EBB_OK) abort();
    }
    return ns / (MILLION / BATCH * BATCH);
}

static double alloc_free(void) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = bench_runtime();
    ebb__heap *h = ebb__heap_get(rt);
    double t0 = bench_cpu_ns();
    for (int i = 0; i < MILLION; i++) {
        ebb__cell *p = ebb__heap_alloc(h, &cell_type, 128);
        __asm__ volatile("" ::"r"(p) : "memory");
        ebb__heap_free_cell(h, p);
    }
    return (bench_cpu_ns() - t0) / MILLION;
}

/* ---- pauses --------------------------------------------------------------------------------------------------- */

/* Promises and nodes over them, in chains of ten; every tenth chain is dropped. */
static void populate(ebb_cx *cx, int n) {
    for (int i = 0; i < n; i += 10) {
        ebb_future *last = chain(cx, ebb_future_never(cx), 9);
        if (i % 100 == 0) ebb_future_drop(last);
    }
}

/* The longest step of a collection, in us. */
static double pause(int n) {
    ebb_runtime *rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    double longest = 0, t0;
    if (ebb_heap_setup(rt, &(ebb_heap_opts){.trigger = SIZE_MAX / 2}) != EBB_OK) abort(); /* not before */
    populate(host, n);
    bench_pump_all(rt);
    for (bool over = false; !over;) {
        t0 = bench_cpu_ns();
        over = ebb__collect_step(ebb__heap_at(rt));
        double us = (bench_cpu_ns() - t0) / 1000;
        if (us > longest) longest = us;
    }
    ebb_heap_stats s;
    ebb_heap_stats_of(rt, &s);
    bench_must(s.collections == 1 && s.dropped == (uint64_t)n / 10);
    ebb_runtime_free(rt);
    return longest;
}

static double pause_200k(void) {
    return pause(200000);
}

static double pause_1m(void) {
    return pause(MILLION);
}

static double pause_2m(void) {
    return pause(2 * MILLION);
}

#ifdef EBB_BENCH_LIBGC
#define LIBGC(fn) fn
#define ALLOC_LIBGC                                                                                          \
    { "future.alloc_libgc", "ns", alloc, floor_gc_malloc, 0.5, 1 }
#else
#define LIBGC(fn) NULL
#define ALLOC_LIBGC                                                                                          \
    { "future.alloc_libgc (skipped)", "ns", alloc, NULL, 0, 0 }
#endif

const bench_row bench_future_rows[] = {
    {"future.bytes", "bytes", bytes, floor_future_bytes, 128, 0},
    {"future.then", "ns", map_nodes, floor_future_then, 45, 20},
    {"future.then_with_future", "ns", then_nodes, NULL, 0, 0},
    {"future.then_1m_early", "ns", map_nodes_1m, floor_future_then_1m, 90, 20},
    {"future.then_1m", "ns", then_1m, floor_future_then_1m, 90, 20},
    {"future.then_chain_1m", "ns", then_chain_1m, NULL, 0, 0},
    {"future.resolve_chain", "ns", resolve_chain, floor_future_resolve_chain, 25, 0},
    {"future.cancel_chain", "ns", cancel_chain, floor_future_cancel_chain, 60, 0},
    {"future.cancel_fan", "ns", cancel_fan, floor_future_cancel_fan, 60, 0},
    {"future.cancel_all", "ns", cancel_all, NULL, 60, 0},
    {"future.alloc", "ns", alloc, floor_bump, 1.5, 1},
    ALLOC_LIBGC,
    {"future.alloc_malloc", "ns", alloc_free, floor_malloc_free, 0, 0},
    {"future.pause_200k", "us", pause_200k, LIBGC(floor_gc_pause_200k), 5000, 0},
    {"future.pause_1m", "us", pause_1m, LIBGC(floor_gc_pause_1m), 2000, 0},
    {"future.pause_2m", "us", pause_2m, LIBGC(floor_gc_pause_2m), 0, 0},
    {"future.channel_recv", "ns", channel_recv_future, channel_recv_plain, 0, 0},
};
const size_t bench_future_count = sizeof bench_future_rows / sizeof *bench_future_rows;
