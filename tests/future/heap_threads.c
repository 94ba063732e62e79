/* Four runtimes on four threads, each with its own heap, which they collect while they cancel, settle and let
 * go of each other's futures. For Clang's ThreadSanitizer: there is no suppression for any of this. */
#include "tests/future/heap_world.h"
#include "tests/support/share.h"

#include <pthread.h>
#include <sched.h>

enum { LOOPS = 4, SLOTS = 64, COLLECTIONS = 100 / SHARE(1, 5) };

typedef struct loop loop;

/* Where a loop leaves a remote handle for another one to take. */
typedef _Atomic(ebb_remote *) slot;

struct loop {
    int index;
    loop *all;
    heap_world w;
    pthread_t thread;
    slot offered[LOOPS][SLOTS]; /* by whom they are meant for */
    uint64_t random;
    uint32_t made, ended;
};

static uint32_t below(loop *l, uint32_t n) {
    l->random ^= l->random << 13;
    l->random ^= l->random >> 7;
    l->random ^= l->random << 17;
    return (uint32_t)(l->random >> 11) % n;
}

/* ---- words that other threads settle with ---------------------------------------------------------------- */

static void word_free(void *p) {
    free(p);
}

static const ebb_type word = {"word", 0, NULL, word_free, 0};

static ebb_value word_new(void) {
    return ebb_value_owned(&word, malloc(24)); /* leaks and double frees are the sanitizer's to find */
}

/* ---- what a loop does -------------------------------------------------------------------------------------- */

static void heard_end(ebb_cx *cx, void *arg) {
    (void)cx;
    ((loop *)arg)->ended++;
}

static ebb_value keep_word(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)arg;
    return ebb_value_take(cx, v);
}

static const ebb_operation operation = {"elsewhere", NULL, NULL};

static void offer(loop *l, ebb_remote *r) {
    slot *s = &l->offered[below(l, LOOPS)][below(l, SLOTS)];
    /* Release: the taker sees the handle. Acquire: what was there was another offer's. */
    ebb_remote *before = atomic_exchange_explicit(s, r, memory_order_acq_rel);
    ebb_remote_release(before);
}

/* A future that others may end, one that waits for it, and garbage. */
static void make_some(loop *l) {
    ebb_cx *host = l->w.host;
    ebb_remote *r;
    bool op = below(l, 3) == 0;
    ebb_future *f = ebb_promise_new(host, op ? &operation : NULL, NULL), *node;
    assert_int_equal(ebb_remote_new(f, &r), EBB_OK);
    if (below(l, 4) == 0) offer(l, ebb_remote_keep(r));
    offer(l, r);
    node = ebb_map(host, f, keep_word, NULL);
    assert_int_equal(ebb_future_on_cleanup(node, heard_end, l), EBB_OK);
    l->made++;
    ebb_future_drop(node);
    ebb_value_discard(host, ebb_value_object(heap_object_new(host, NULL)));
}

static void end_one(loop *l) {
    slot *s = &l->all[below(l, LOOPS)].offered[l->index][below(l, SLOTS)];
    ebb_remote *r = atomic_exchange_explicit(s, NULL, memory_order_acq_rel); /* as above */
    if (r == NULL) return;
    (void)ebb_remote_state(r);
    uint32_t what = below(l, 4);
    if (what == 0) (void)ebb_remote_cancel(r, EBB_CANCEL_USER);
    if (what == 1) (void)ebb_remote_reject(r, EBB_FAILED);
    if (what >= 1) (void)ebb_remote_settle(r, word_new());
    ebb_remote_release(r);
}

static void *run(void *arg) {
    loop *l = arg;
    assert_int_equal(ebb_runtime_adopt(l->w.rt), EBB_OK);
    while (heap_stats(&l->w).collections < COLLECTIONS) {
        for (int i = 0; i < 20; i++) make_some(l);
        for (int i = 0; i < 30; i++) end_one(l);
        ebb_inbox_receive(l->w.rt);
        (void)ebb_runtime_pump(l->w.rt, 10 + below(l, 50));
        if (below(l, 32) == 0) heap_verify(&l->w);
        if (below(l, 16) == 0) assert_int_equal(ebb_gc_collect(l->w.rt), EBB_OK);
    }
    return NULL;
}

/* ---- the end ------------------------------------------------------------------------------------------------- */

static void release_offers(loop *l) {
    for (int i = 0; i < LOOPS; i++) {
        for (int k = 0; k < SLOTS; k++) {
            ebb_remote_release(atomic_exchange_explicit(&l->offered[i][k], NULL, memory_order_acq_rel));
        }
    }
}

/* Half of them go while others still have handles to their futures, and use these. */
static void *end_run(void *arg) {
    loop *l = arg;
    assert_int_equal(ebb_runtime_adopt(l->w.rt), EBB_OK);
    for (int i = 0; i < 200; i++) {
        end_one(l);
        ebb_inbox_receive(l->w.rt);
        (void)ebb_runtime_pump(l->w.rt, 10);
        if (i == 100 && l->index % 2 == 0) break;
    }
    ebb_runtime_free(l->w.rt);
    for (int i = 0; i < 200; i++) end_one(l);
    return NULL;
}

/* The C library's memory: the last handle to a future may go on any thread. */
static void loop_begin(loop *l, loop *all, int index) {
    *l = (loop){.index = index, .all = all, .random = (uint64_t)index * 7919 + 1};
    ebb_runtime_opts opts = {.allocator = ebb_libc_allocator(), .runtime_id = (uint8_t)index};
    ebb_heap_opts heap = {
        .step = 64, .trigger = 1 << 16, .verify = index == 0, .misuse = heap_misuse, .ctx = &l->w};
    assert_int_equal(ebb_runtime_new(&opts, &l->w.rt), EBB_OK);
    assert_int_equal(ebb_heap_setup(l->w.rt, &heap), EBB_OK);
    l->w.host = ebb_runtime_host(l->w.rt);
    l->w.heap = ebb__heap_at(l->w.rt);
}

static void in_threads(loop *loops, void *(*fn)(void *)) {
    for (int i = 0; i < LOOPS; i++)
        assert_int_equal(pthread_create(&loops[i].thread, NULL, fn, &loops[i]), 0);
    for (int i = 0; i < LOOPS; i++) assert_int_equal(pthread_join(loops[i].thread, NULL), 0);
}

static void loops_collect_while_they_end_each_others_futures(void **state) {
    (void)state;
    static loop loops[LOOPS];
    for (int i = 0; i < LOOPS; i++) loop_begin(&loops[i], loops, i);
    in_threads(loops, run);
    for (int i = 0; i < LOOPS; i++) {
        ebb_heap_stats s = heap_stats(&loops[i].w);
        assert_true(s.collections >= COLLECTIONS && s.swept > 0 && loops[i].ended > 0);
        assert_true(loops[i].ended <= loops[i].made);
    }
    in_threads(loops, end_run);
    for (int i = 0; i < LOOPS; i++) release_offers(&loops[i]);
}

/* ---- a cancel here, a settle there ------------------------------------------------------------------------- */

enum { RACES = 400 / SHARE(1, 5), PROMISES = 64 };

typedef struct race {
    ebb_future *here[PROMISES];
    ebb_remote *there[PROMISES];
    _Atomic int at, taken; /* both go from one to the next together */
} race;

/* Spins, to be there at the same moment, but not for ever: there may be fewer cores than threads. */
static void wait_for(_Atomic int *at, int i) {
    for (int spins = 0; atomic_load_explicit(at, memory_order_relaxed) < i; spins++) {
        if (spins > 20000) sched_yield();
    }
}

static ebb_status begin_race(ebb_cx *cx, void *arg) {
    race *r = arg;
    for (int i = 0; i < PROMISES; i++) {
        r->here[i] = ebb_promise_new(cx, &operation, NULL);
        assert_int_equal(ebb_remote_new(r->here[i], &r->there[i]), EBB_OK);
    }
    return EBB_OK;
}

static void *settle_all(void *arg) {
    race *r = arg;
    for (int i = 0; i < PROMISES; i++) {
        atomic_store_explicit(&r->taken, i, memory_order_relaxed);
        wait_for(&r->at, i);
        (void)ebb_remote_settle(r->there[i], word_new());
        ebb_remote_release(r->there[i]);
    }
    return NULL;
}

static void race_once(heap_world *w) {
    race r = {.at = -1, .taken = -1};
    pthread_t thread;
    ebb_region_state now = EBB_REGION_OPEN;
    ebb_region region = ebb_region_open(w->host, NULL);
    ebb_spawn(w->host, region, begin_race, &r);
    heap_pump(w);
    assert_int_equal(pthread_create(&thread, NULL, settle_all, &r), 0);
    for (int i = 0; i < PROMISES; i++) {
        wait_for(&r.taken, i);
        atomic_store_explicit(&r.at, i, memory_order_relaxed);
        (void)ebb_future_cancel(r.here[i], EBB_CANCEL_USER);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    ebb_region_close(w->host, region);
    heap_pump(w);
    assert_int_equal(ebb_region_state_of(w->host, region, &now), EBB_OK);
    assert_int_equal(now, EBB_REGION_CLOSED);
    assert_int_equal(ebb_region_join(w->host, region), EBB_OK);
}

/* Whoever was first, the producer has ended, and its region does not wait for it for ever. */
static void a_region_closes_after_every_race_of_cancel_and_settle(void **state) {
    (void)state;
    loop l;
    loop_begin(&l, &l, 0);
    (void)ebb_future_never(l.w.host); /* so that somebody is there to bury words that nobody took */
    for (int i = 0; i < RACES; i++) race_once(&l.w);
    heap_collect(&l.w);
    assert_int_equal(heap_stats(&l.w).live, 1);
    ebb_runtime_free(l.w.rt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_collect_while_they_end_each_others_futures),
        cmocka_unit_test(a_region_closes_after_every_race_of_cancel_and_settle),
    };
    return cmocka_run_group_tests_name("heap_threads", tests, NULL, NULL);
}
