/* Cells and pages, what is freed and when, limits and statistics. */
#include "tests/future/heap_world.h"

/* Types of any size; objects refer to theirs. */
static const ebb_type *type_of(size_t size) {
    static ebb_type types[40000];
    types[size] = (ebb_type){"any", size, NULL, NULL, 0};
    return &types[size];
}

/* ---- where cells are ----------------------------------------------------------------------------------- */

/* Every byte of every cell leads to that cell. */
static void check_page(const ebb__page *p) {
    assert_true(p->cells > 0 && p->cells <= EBB__MARK_WORDS * 64);
    assert_true(p->first >= sizeof *p && p->first + (size_t)p->cells * p->cell_size <= EBB__PAGE_SIZE);
    for (uint32_t at = p->first; at < p->first + p->cells * p->cell_size; at++) {
        uint32_t i = ebb__cell_index(p, (const char *)p + at);
        if (i != (at - p->first) / p->cell_size) fail_msg("size %u, byte %u: cell %u", p->cell_size, at, i);
    }
}

static void every_byte_of_a_cell_of_any_size_leads_to_it(void **state) {
    (void)state;
    heap_world w;
    heap_world_begin(&w, (ebb_heap_opts){0});
    uint32_t pages = 0;
    for (uint32_t i = 1; i < EBB__SIZES; i++) {
        const ebb__class *k = &w.heap->classes[EBB__SIZES + i];
        if (i > 1 && k->size == k[-1].size) continue;
        size_t n = k->size - sizeof(ebb__cell);
        char *object = ebb_gc_new(w.host, type_of(n));
        assert_non_null(object);
        const ebb__page *p = ebb__page_of(object);
        assert_int_equal(p->cell_size, k->size);
        assert_ptr_equal(ebb__cell_of(object + n - 1), object - sizeof(ebb__cell));
        check_page(p);
        pages++;
        ebb_value_discard(w.host, ebb_value_object(object));
    }
    assert_true(pages > 60);
    heap_collect(&w);
    heap_world_end(&w);
}

static void an_object_of_any_size_is_zeroed_aligned_and_its_own(void **state) {
    (void)state;
    heap_world w;
    heap_world_begin(&w, (ebb_heap_opts){0});
    for (int round = 0; round < 2; round++) { /* the second time in cells that were used */
        for (size_t n = 1; n < 40000; n += n < 700 ? 1 : 389) {
            unsigned char *a = ebb_gc_new(w.host, type_of(n)), *b = ebb_gc_new(w.host, type_of(n));
            assert_true(a != NULL && b != NULL);
            assert_int_equal((uintptr_t)a % (n % 16 == 0 ? 16 : 8), 0);
            for (size_t i = 0; i < n; i++) assert_int_equal(a[i], 0);
            memset(a, 0x5a, n);
            for (size_t i = 0; i < n; i++) assert_int_equal(b[i], 0);
            memset(b, 0xa5, n);
            for (size_t i = 0; i < n; i++) assert_int_equal(a[i], 0x5a);
            ebb_value_discard(w.host, ebb_value_object(a));
            ebb_value_discard(w.host, ebb_value_object(b));
        }
        heap_collect(&w);
    }
    assert_int_equal(heap_stats(&w).live, 0);
    heap_world_end(&w);
}

/* ---- what is freed ------------------------------------------------------------------------------------- */

static void an_object_lives_as_long_as_something_refers_to_it(void **state) {
    (void)state;
    heap_world w;
    uint32_t freed[3] = {0};
    heap_world_begin(&w, (ebb_heap_opts){0});
    heap_object *a = heap_object_new(w.host, &freed[0]);
    heap_object *b = heap_object_below(w.host, a, &freed[1]);
    heap_object *c = heap_object_below(w.host, b, &freed[2]);
    heap_collect(&w);
    heap_object_is_there(c);
    b->link[0] = NULL;
    heap_collect(&w);
    assert_int_equal(freed[2], 1);
    ebb_value_discard(w.host, ebb_value_object(a));
    heap_collect(&w);
    assert_int_equal(freed[0] + freed[1] + freed[2], 3);
    heap_world_end(&w);
}

static void a_ring_of_objects_and_futures_is_freed(void **state) {
    (void)state;
    heap_world w;
    uint32_t freed[2] = {0};
    heap_world_begin(&w, (ebb_heap_opts){0});
    heap_object *a = heap_object_new(w.host, &freed[0]), *b = heap_object_below(w.host, a, &freed[1]);
    b->link[0] = a;
    ebb_future *f = ebb_future_ready(w.host, ebb_value_object(a));
    b->link[1] = f;
    heap_collect(&w);
    assert_int_equal(freed[0] + freed[1], 0);
    ebb_future_drop(f);
    heap_collect(&w);
    assert_int_equal(freed[0], 1);
    assert_int_equal(freed[1], 1);
    assert_int_equal(heap_stats(&w).live, 0);
    heap_world_end(&w);
}

static void a_large_object_is_freed_once_and_its_memory_given_back(void **state) {
    (void)state;
    heap_world w;
    uint32_t freed = 0;
    ebb_type large = heap_counted;
    large.size = 100000;
    heap_world_begin(&w, (ebb_heap_opts){0});
    heap_object *o = heap_object_of(w.host, &large, &freed), *kept = heap_object_of(w.host, &large, &freed);
    kept->link[0] = o;
    ebb_value_discard(w.host, ebb_value_object(o));
    heap_collect(&w);
    heap_object_is_there(o);
    size_t bytes = heap_stats(&w).bytes;
    assert_true(bytes > 200000);
    kept->link[0] = NULL;
    heap_collect(&w);
    assert_int_equal(freed, 1);
    assert_true(heap_stats(&w).bytes <= bytes - 100000);
    heap_world_end(&w);
    assert_int_equal(freed, 2);
}

/* What is made and freed must not depend on which was made first. */
static void memory_that_is_free_is_used_again_and_given_back(void **state) {
    (void)state;
    heap_world w;
    heap_world_begin(&w, (ebb_heap_opts){.trigger = 1 << 20});
    for (int i = 0; i < 100000; i++) (void)heap_object_new(w.host, NULL);
    size_t most = heap_stats(&w).bytes;
    ebb_region_cancel(w.host, ebb_runtime_root(w.rt), EBB_CANCEL_USER, "all of it");
    heap_pump(&w);
    heap_collect(&w);
    assert_int_equal(heap_stats(&w).live, 0);
    assert_true(heap_stats(&w).bytes < most / 2);
    heap_world_end(&w);
}

static void memory_stays_flat_while_garbage_comes_and_goes(void **state) {
    (void)state;
    heap_world w;
    size_t most = 0;
    heap_world_begin(&w, (ebb_heap_opts){.trigger = 1 << 20});
    for (int i = 0; i < 300000; i++) {
        ebb_value_discard(w.host, ebb_value_object(heap_object_new(w.host, NULL)));
        ebb_future_drop(ebb_future_never(w.host));
        if (i % 64 == 0) heap_pump(&w);
        if (heap_stats(&w).bytes > most) most = heap_stats(&w).bytes;
    }
    assert_true(heap_stats(&w).collections >= 10);
    assert_true(most <= 8 << 20);
    heap_world_end(&w);
}

static void what_is_freed_is_poisoned(void **state) {
    (void)state;
    heap_world w;
    heap_world_begin(&w, (ebb_heap_opts){.every_time = true});
    heap_object *o = heap_object_new(w.host, NULL), *kept = heap_object_new(w.host, NULL);
    (void)kept; /* so that the page stays */
    ebb_value_discard(w.host, ebb_value_object(o));
    assert_int_equal(ebb_gc_collect(w.rt), EBB_OK);
    assert_true(heap_is_free((ebb__cell *)(void *)o - 1));
    assert_true(o->magic == UINT64_C(0xebebebebebebebeb));
    heap_world_end(&w);
}

/* ---- user code and collections ------------------------------------------------------------------------- */

typedef struct watcher {
    heap_world *w;
    bool pumping;
    uint32_t called;
} watcher;
static watcher *the_watcher; /* type->free gets the object only */

static void watch(watcher *o) {
    assert_true(o->pumping);
    assert_false(o->w->heap->collecting);
    o->called++;
}

static void watched_free(void *object) {
    (void)object;
    watch(the_watcher);
}

static void watched_cleanup(ebb_cx *cx, void *arg) {
    (void)cx;
    watch(arg);
}

static void watched_cancel(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    (void)cx;
    assert_int_equal(kind, EBB_CANCEL_DROPPED);
    watch(arg);
}

static void pump_watched(watcher *o) {
    o->pumping = true;
    heap_pump(o->w);
    o->pumping = false;
}

static void the_end_of_an_object_is_told_once_in_the_pump(void **state) {
    (void)state;
    heap_world w;
    watcher o = {.w = &w};
    the_watcher = &o;
    ebb_type type = {"watched", 64, NULL, watched_free, 0};
    ebb_type word = {"word", 0, NULL, watched_free, 0};
    heap_world_begin(&w, (ebb_heap_opts){0});
    pump_watched(&o);
    for (int i = 0; i < 100; i++) {
        ebb_value_discard(w.host, ebb_value_object(ebb_gc_new(w.host, &type)));
        ebb_future_drop(ebb_future_ready(w.host, ebb_value_owned(&word, &o)));
    }
    pump_watched(&o);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ebb_gc_collect(w.rt), EBB_OK); /* before anybody buries them */
    assert_int_equal(o.called, 100);                    /* the words: those need no collection */
    pump_watched(&o);
    assert_int_equal(o.called, 200);
    heap_world_end(&w);
    assert_int_equal(o.called, 200);
}

static void the_end_that_makes_something_new_is_told_once(void **state);

static ebb_runtime *maker_rt;
static uint32_t made_at_the_end;
static void make_at_the_end(void *object) {
    (void)object;
    made_at_the_end++;
    ebb_cx *host = ebb_runtime_host(maker_rt);
    for (int i = 0; i < 5; i++) ebb_value_discard(host, ebb_value_object(heap_object_new(host, NULL)));
}

static void the_end_that_makes_something_new_is_told_once(void **state) {
    (void)state;
    heap_world w;
    ebb_type type = {"maker", sizeof(heap_object), NULL, make_at_the_end, 0};
    heap_world_begin(&w, (ebb_heap_opts){.every_time = true});
    maker_rt = w.rt;
    made_at_the_end = 0;
    for (int i = 0; i < 20; i++) ebb_value_discard(w.host, ebb_value_object(ebb_gc_new(w.host, &type)));
    heap_collect(&w);
    heap_collect(&w);
    assert_int_equal(made_at_the_end, 20);
    heap_world_end(&w);
    assert_int_equal(made_at_the_end, 20);
}

static void a_dropped_pending_future_is_cleaned_up_once_in_the_pump(void **state) {
    (void)state;
    for (uint32_t step = 0; step < 3; step++) {
        heap_world w;
        watcher o = {.w = &w};
        heap_world_begin(&w, (ebb_heap_opts){.step = step});
        for (int i = 0; i < 50; i++) {
            ebb_future *f = ebb_future_never(w.host);
            assert_int_equal(ebb_future_on_cleanup(f, watched_cleanup, &o), EBB_OK);
            assert_int_equal(ebb_future_on_cancel(f, watched_cancel, &o), EBB_OK);
            ebb_future_drop(f);
        }
        pump_watched(&o);
        if (step == 0) assert_int_equal(ebb_gc_collect(w.rt), EBB_OK);
        else heap_steps_until(&w, EBB__GC_IDLE);
        assert_int_equal(o.called, 0);
        assert_int_equal(heap_stats(&w).dropped, 50);
        pump_watched(&o);
        assert_int_equal(o.called, 100);
        pump_watched(&o);
        heap_collect(&w);
        assert_int_equal(o.called, 100);
        assert_int_equal(heap_stats(&w).live, 0);
        heap_world_end(&w);
    }
}

static void trace_that_collects(void *object, ebb_gc_marker *t) {
    (void)t;
    ebb_runtime *rt = *(ebb_runtime **)object;
    assert_true(ebb__heap_at(rt)->collecting);
    assert_int_equal(ebb_gc_collect(rt), EBB_ERR_REENTERED);
}

static void a_collection_inside_a_collection_is_refused(void **state) {
    (void)state;
    heap_world w;
    ebb_type type = {"tracer", sizeof(ebb_runtime *), trace_that_collects, NULL, 0};
    heap_world_begin(&w, (ebb_heap_opts){0});
    *(ebb_runtime **)ebb_gc_new(w.host, &type) = w.rt;
    assert_int_equal(ebb_gc_collect(w.rt), EBB_OK);
    heap_world_end(&w);
}

/* ---- steps ----------------------------------------------------------------------------------------------- */

static void pauses_are_counted_step_by_step(void **state) {
    (void)state;
    heap_world w;
    heap_world_begin(&w, (ebb_heap_opts){.trigger = 1 << 16, .step = 100});
    for (int i = 0; i < 20000; i++) {
        ebb_future *f = ebb_future_never(w.host);
        if (i % 3 == 0) ebb_future_drop(f);
        if (i % 32 == 0) heap_pump(&w);
    }
    heap_collect(&w);
    ebb_heap_stats s = heap_stats(&w);
    uint64_t sum = 0;
    for (int i = 0; i < 32; i++) sum += s.pause[i];
    assert_true(s.steps > 100 && s.collections > 3);
    assert_int_equal(sum, s.steps);
    assert_true(s.pause_max > 0);
    assert_int_equal(s.live, s.allocated - s.freed_early - s.swept);
    heap_world_end(&w);
}

static uint32_t traced;
static void count_trace(void *object, ebb_gc_marker *t) {
    (void)object;
    (void)t;
    traced++;
}

/* One step looks at no more than it may, a page or so aside, however many there are. */
static void a_step_looks_at_a_bounded_number_of_futures(void **state) {
    (void)state;
    enum { LIVE = 50000, STEP = 1000 };
    heap_world w;
    heap_world_begin(&w, (ebb_heap_opts){.step = STEP});
    for (int i = 0; i < LIVE; i++) (void)ebb_future_never(w.host);
    heap_steps_until(&w, EBB__GC_IDLE);
    ebb_heap_stats s = heap_stats(&w);
    assert_true(s.steps >= 3 * (LIVE / STEP)); /* as roots, as gray ones, and as those that may be dropped */
    assert_true(s.steps <= 8 * (LIVE / STEP));
    heap_world_end(&w);
}

static void an_odd_step_is_no_endless_collection(void **state) {
    (void)state;
    const uint32_t steps[] = {1, 2, 3, UINT32_C(1) << 26, UINT32_C(1) << 31, UINT32_MAX};
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        heap_world w;
        heap_world_begin(&w, (ebb_heap_opts){.step = steps[k], .trigger = 1});
        w.heap->live_bytes = 1; /* as far behind as can be */
        for (int i = 0; i < 3000; i++) (void)ebb_future_never(w.host);
        uint32_t most = 20000;
        while (!ebb__collect_step(w.heap) && --most > 0) continue;
        assert_true(most > 0);
        heap_world_end(&w);
    }
}

static void users_objects_are_all_looked_at_in_the_last_step(void **state) {
    (void)state;
    heap_world w;
    ebb_type type = {"counted", 64, count_trace, NULL, 0};
    heap_world_begin(&w, (ebb_heap_opts){.step = 1});
    for (int i = 0; i < 100; i++) (void)ebb_gc_new(w.host, &type);
    traced = 0;
    heap_steps_until(&w, EBB__GC_SWEEP);
    assert_true(traced >= 100);
    heap_world_end(&w);
}

/* ---- limits and bad input -------------------------------------------------------------------------------- */

static void beyond_the_limit_is_a_named_error(void **state) {
    (void)state;
    heap_world w;
    ebb_future *f;
    uint32_t made = 0;
    heap_world_begin(&w, (ebb_heap_opts){.max_bytes = 3 << 20});
    while (ebb_future_status_of(f = ebb_future_never(w.host)) == EBB_PENDING) made++;
    assert_int_equal(ebb_future_status_of(f), EBB_ERR_LIMIT);
    assert_true(made > 8000);
    assert_true(heap_stats(&w).bytes <= 3 << 20);
    ebb_type large = {"large", 1 << 20, NULL, NULL, 0};
    assert_null(ebb_gc_new(w.host, &large));
    heap_verify(&w);
    heap_world_end(&w);
}

/* Garbage does not count for long: whoever is refused finds room soon after. */
static void at_the_limit_garbage_makes_room(void **state) {
    (void)state;
    heap_world w;
    heap_world_begin(&w, (ebb_heap_opts){.max_bytes = 3 << 20});
    uint32_t refused = 0;
    for (int i = 0; i < 200000; i++) {
        ebb_future *f = ebb_future_never(w.host);
        refused += ebb_future_status_of(f) == EBB_ERR_LIMIT;
        ebb_future_drop(f);
        if (i % 50 == 0) heap_pump(&w);
    }
    assert_true(refused < 2000);
    assert_true(heap_stats(&w).collections > 2);
    heap_world_end(&w);
}

static void bad_options_and_types_are_named_errors(void **state) {
    (void)state;
    heap_world w;
    heap_world_begin(&w, (ebb_heap_opts){0});
    assert_int_equal(ebb_heap_setup(w.rt, NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_heap_setup(w.rt, &(ebb_heap_opts){.size = 3}), EBB_ERR_VERSION);
    ebb_type none = {"none", 0, NULL, NULL, 0}, own = {"own", 64, NULL, NULL, 1};
    ebb_type huge = {"huge", SIZE_MAX - 8, NULL, NULL, 0};
    assert_null(ebb_gc_new(w.host, NULL));
    assert_null(ebb_gc_new(w.host, &none));
    assert_null(ebb_gc_new(w.host, &own));
    assert_null(ebb_gc_new(w.host, &huge));
    (void)ebb_future_never(w.host);
    assert_int_equal(ebb_heap_setup(w.rt, &(ebb_heap_opts){0}), EBB_ERR_BUSY);
    heap_world_end(&w);
}

/* An object that is not there is a value like any other, also while a collection runs. */
static void a_null_object_is_no_object(void **state) {
    (void)state;
    heap_world w;
    ebb_value v;
    heap_world_begin(&w, (ebb_heap_opts){.step = 1});
    ebb_future *f = ebb_promise_new(w.host, NULL, NULL), *g = ebb_within(w.host, f, EBB_FOREVER);
    heap_step(&w);
    assert_int_equal(ebb_promise_settle(f, ebb_value_owned(&heap_plain, NULL)), EBB_OK);
    heap_pump(&w);
    assert_int_equal(ebb_await(w.host, g, &v), EBB_OK);
    assert_null(v.as.p);
    ebb_value_discard(w.host, v);
    ebb_value_discard(w.host, ebb_value_take(w.host, &v));
    assert_null(ebb_value_object(NULL).type);
    heap_world_end(&w);
}

/* Everything that a heap allocates, refused once, for each. */
static void without_memory_nothing_is_lost(void **state) {
    (void)state;
    for (uint64_t at = 1;; at++) {
        heap_world w;
        uint32_t freed = 0, made = 0;
        ebb_type large = heap_counted;
        large.size = 20000;
        heap_world_begin(&w, (ebb_heap_opts){.verify = true});
        w.memory.fail_at = w.memory.calls + at;
        for (int i = 0; i < 40; i++) {
            heap_object *o = ebb_gc_new(w.host, i % 8 == 0 ? &large : &heap_counted);
            if (o == NULL) continue;
            *o = (heap_object){.magic = HEAP_MAGIC, .freed = &freed};
            made++;
            (void)ebb_future_ready(w.host, ebb_value_object(o));
            (void)ebb_after(w.host, EBB_MS);
        }
        heap_pump(&w);
        heap_collect(&w);
        uint64_t failures = w.memory.failures;
        heap_world_end(&w);
        assert_int_equal(freed, made);
        if (failures == 0) break;
    }
}

/* ---- bytes -------------------------------------------------------------------------------------------- */

typedef struct maker {
    ebb_value bytes;
    ebb_status st;
    bool stays;
} maker;

static ebb_status make_bytes(ebb_cx *cx, void *arg) {
    maker *m = arg;
    void *at;
    size_t n;
    if (m->bytes.type == NULL) {
        m->st = ebb_bytes_new(cx, 1000, &m->bytes, &at);
        if (m->st == EBB_OK) memset(at, 7, 1000);
        assert_int_equal(ebb_bytes_of(cx, &m->bytes, &at, &n), EBB_OK);
        assert_true(n == 1000 && ((char *)at)[999] == 7);
    }
    return m->stays && !ebb_cancelled(cx) ? EBB_PENDING : EBB_OK;
}

static void bytes_of_a_closed_region_are_an_error(void **state) {
    (void)state;
    for (int way = 0; way < 3; way++) {
        heap_world w;
        void *at;
        size_t n;
        maker m = {.stays = way > 0};
        heap_world_begin(&w, (ebb_heap_opts){0});
        ebb_future *f = ebb_promise_new(w.host, NULL, NULL);
        ebb_region r = ebb_region_open(w.host, NULL);
        ebb_spawn(w.host, r, make_bytes, &m);
        heap_pump(&w);
        assert_int_equal(m.st, EBB_OK);
        assert_int_equal(ebb_promise_settle(f, m.bytes), EBB_OK); /* the value outlives its region */
        heap_pump(&w);
        assert_int_equal(ebb_bytes_of(w.host, &m.bytes, &at, &n), EBB_OK);
        if (way < 2) ebb_region_close(w.host, r);
        if (way == 1) ebb_region_cancel(w.host, r, EBB_CANCEL_USER, "enough");
        if (way == 2) ebb_region_force(w.host, r);
        heap_pump(&w);
        assert_int_equal(ebb_bytes_of(w.host, &m.bytes, &at, &n), EBB_ERR_CLOSED);
        assert_true(at == NULL && n == 0);
        (void)ebb_region_join(w.host, r);
        ebb_region other = ebb_region_open(w.host, NULL); /* the slot may be used again */
        maker m2 = {.stays = true};
        ebb_spawn(w.host, other, make_bytes, &m2);
        heap_pump(&w);
        ebb_value v;
        assert_int_equal(ebb_await(w.host, f, &v), EBB_OK);
        assert_int_equal(ebb_bytes_of(w.host, &v, &at, &n), EBB_ERR_CLOSED);
        assert_int_equal(ebb_bytes_of(w.host, &m2.bytes, &at, &n), EBB_OK);
        ebb_value other_kind = ebb_value_int(3);
        assert_int_equal(ebb_bytes_of(w.host, &other_kind, &at, &n), EBB_ERR_INVALID);
        heap_collect(&w);
        assert_int_equal(ebb_bytes_of(w.host, &v, &at, &n), EBB_ERR_CLOSED);
        heap_world_end(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_of_a_cell_of_any_size_leads_to_it),
        cmocka_unit_test(an_object_of_any_size_is_zeroed_aligned_and_its_own),
        cmocka_unit_test(an_object_lives_as_long_as_something_refers_to_it),
        cmocka_unit_test(a_ring_of_objects_and_futures_is_freed),
        cmocka_unit_test(a_large_object_is_freed_once_and_its_memory_given_back),
        cmocka_unit_test(memory_that_is_free_is_used_again_and_given_back),
        cmocka_unit_test(memory_stays_flat_while_garbage_comes_and_goes),
        cmocka_unit_test(what_is_freed_is_poisoned),
        cmocka_unit_test(the_end_of_an_object_is_told_once_in_the_pump),
        cmocka_unit_test(the_end_that_makes_something_new_is_told_once),
        cmocka_unit_test(a_dropped_pending_future_is_cleaned_up_once_in_the_pump),
        cmocka_unit_test(a_collection_inside_a_collection_is_refused),
        cmocka_unit_test(pauses_are_counted_step_by_step),
        cmocka_unit_test(a_step_looks_at_a_bounded_number_of_futures),
        cmocka_unit_test(an_odd_step_is_no_endless_collection),
        cmocka_unit_test(users_objects_are_all_looked_at_in_the_last_step),
        cmocka_unit_test(beyond_the_limit_is_a_named_error),
        cmocka_unit_test(at_the_limit_garbage_makes_room),
        cmocka_unit_test(bad_options_and_types_are_named_errors),
        cmocka_unit_test(a_null_object_is_no_object),
        cmocka_unit_test(without_memory_nothing_is_lost),
        cmocka_unit_test(bytes_of_a_closed_region_are_an_error),
    };
    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
