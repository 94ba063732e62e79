/* What changes while a collection is under way: nothing that can be reached may be lost, wherever it is moved
 * between two steps. */
#include "tests/future/heap_world.h"

/* Members that a collection looks at before those that were made earlier: so it is still at its roots. */
static void crowd(heap_world *w) {
    for (int i = 0; i < 200; i++) (void)ebb_future_never(w->host);
}

/* A collection has begun, and has looked at the last member only. */
static void begin_steps(heap_world *w) {
    crowd(w);
    heap_step(w);
    assert_int_equal(w->heap->phase, EBB__GC_ROOTS);
}

static void end_steps(heap_world *w) {
    while (w->heap->phase != EBB__GC_IDLE) heap_step(w);
    heap_verify(w);
}

static void count_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)cx;
    (void)v;
    assert_int_equal(st, EBB_OK);
    ++*(uint32_t *)arg;
}

static void count_cleanup(ebb_cx *cx, void *arg) {
    (void)cx;
    ++*(uint32_t *)arg;
}

static ebb_value one_more(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)arg;
    return ebb_value_int(v->as.i + 1);
}

static ebb_value as_it_came(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)arg;
    return *v;
}

static void a_callback_that_is_added_hides_no_earlier_one(void **state) {
    (void)state;
    heap_world w;
    uint32_t done = 0, cleanups = 0;
    heap_world_begin(&w, (ebb_heap_opts){.step = 1});
    ebb_future *f = ebb_promise_new(w.host, NULL, NULL);
    assert_int_equal(ebb_future_on_done(f, count_done, &done), EBB_OK);
    assert_int_equal(ebb_future_on_cleanup(f, count_cleanup, &cleanups), EBB_OK);
    begin_steps(&w);
    assert_int_equal(ebb_future_on_done(f, count_done, &done), EBB_OK);
    assert_int_equal(ebb_future_on_cleanup(f, count_cleanup, &cleanups), EBB_OK);
    end_steps(&w);
    assert_int_equal(ebb_promise_settle(f, ebb_value_none()), EBB_OK);
    heap_pump(&w);
    assert_int_equal(done, 2);
    assert_int_equal(cleanups, 2);
    heap_world_end(&w);
}

static void an_object_that_moves_from_value_to_value_is_not_lost(void **state) {
    (void)state;
    heap_world w;
    uint32_t freed = 0;
    ebb_value v;
    heap_world_begin(&w, (ebb_heap_opts){.step = 1});
    heap_object *o = heap_object_new(w.host, &freed);
    ebb_future *f = ebb_future_ready(w.host, ebb_value_object(o));
    heap_pump(&w);
    begin_steps(&w);
    ebb_future *g = ebb_within(w.host, ebb_map(w.host, f, as_it_came, NULL), EBB_FOREVER);
    for (int i = 0; i < 8; i++)
        (void)ebb_runtime_pump(w.rt, 1); /* each poll of the callback runner is a step, too */
    end_steps(&w);
    heap_pump(&w);
    assert_int_equal(ebb_await(w.host, g, &v), EBB_OK);
    assert_ptr_equal(v.as.p, o);
    heap_object_is_there(o);
    assert_int_equal(freed, 0);
    heap_world_end(&w);
}

static ebb_future *the_release;
static ebb_future *release_later(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return ebb_future_keep(the_release);
}

/* finally remembers the value of an input that others read, too. These let go of it before it is marked. */
static void a_value_that_is_remembered_is_not_lost_with_its_future(void **state) {
    (void)state;
    heap_world w;
    uint32_t freed = 0;
    ebb_value v;
    heap_world_begin(&w, (ebb_heap_opts){.step = 1});
    heap_object *o = heap_object_new(w.host, &freed);
    ebb_future *f = ebb_future_ready(w.host, ebb_value_object(o));
    the_release = ebb_promise_new(w.host, NULL, NULL);
    heap_pump(&w);
    begin_steps(&w);
    ebb_future *g = ebb_finally(w.host, ebb_future_keep(f), release_later, NULL);
    (void)ebb_runtime_pump(w.rt, 2);
    (void)ebb_map(w.host, f, one_more, NULL);
    (void)ebb_runtime_pump(w.rt, 2);
    assert_int_not_equal(w.heap->phase, EBB__GC_IDLE);
    end_steps(&w);
    assert_int_equal(ebb_promise_settle(the_release, ebb_value_none()), EBB_OK);
    heap_pump(&w);
    assert_int_equal(freed, 0);
    assert_int_equal(ebb_await(w.host, g, &v), EBB_OK);
    assert_ptr_equal(v.as.p, o);
    heap_object_is_there(o);
    heap_world_end(&w);
}

static heap_object *the_keeper;
static void move_to_keeper(ebb_cx *cx, void *arg) {
    heap_object *from = arg;
    (void)cx;
    the_keeper->link[0] = from->link[0];
    from->link[0] = NULL;
}

/* The object that keeps it was looked at before the future was found to be dropped. */
static void what_a_dropped_future_hands_on_is_not_lost(void **state) {
    (void)state;
    heap_world w;
    uint32_t freed = 0;
    heap_world_begin(&w, (ebb_heap_opts){.step = 1});
    the_keeper = heap_object_new(w.host, NULL);
    heap_object *from = heap_object_new(w.host, NULL), *o = heap_object_below(w.host, from, &freed);
    ebb_future *f = ebb_future_never(w.host);
    assert_int_equal(ebb_future_on_cleanup(f, move_to_keeper, from), EBB_OK);
    assert_int_equal(ebb_future_hold(f, from), EBB_OK);
    crowd(&w);
    ebb_future_drop(f);
    heap_steps_until(&w, EBB__GC_DROPS);
    while (heap_stats(&w).dropped == 0) heap_step(&w);
    (void)ebb_runtime_pump(w.rt, 4); /* its cleanup runs, before the users' objects are looked at for good */
    assert_ptr_equal(the_keeper->link[0], o);
    end_steps(&w);
    heap_pump(&w);
    assert_int_equal(freed, 0);
    heap_object_is_there(o);
    heap_world_end(&w);
}

/* The dead wait for their end to be told; what they refer to is gone, and nobody may look at it. */
static void collections_before_the_dead_are_buried_do_not_follow_them(void **state) {
    (void)state;
    heap_world w;
    uint32_t freed[2] = {0};
    ebb_type large = heap_counted;
    large.size = 20000;
    large.free = NULL;
    heap_world_begin(&w, (ebb_heap_opts){0});
    heap_object *dead = heap_object_new(w.host, &freed[0]);
    heap_object *below = heap_object_of(w.host, &large, &freed[1]);
    dead->link[0] = below;
    ebb_value_discard(w.host, ebb_value_object(below));
    ebb_value_discard(w.host, ebb_value_object(dead));
    for (int i = 0; i < 3; i++) {
        ebb_future_drop(
            ebb_future_never(w.host)); /* revives something, so that users' objects are looked at again */
        assert_int_equal(ebb_gc_collect(w.rt), EBB_OK);
    }
    heap_pump(&w);
    assert_int_equal(freed[0], 1);
    heap_world_end(&w);
}

/* The dead are marked until they are buried; a new object may get such a cell in the same collection. */
static void an_object_in_a_cell_that_was_marked_is_looked_at(void **state) {
    (void)state;
    heap_world w;
    uint32_t freed = 0;
    heap_world_begin(&w, (ebb_heap_opts){.step = 1});
    heap_object *from = heap_object_new(w.host, NULL), *o = heap_object_below(w.host, from, &freed);
    heap_object *dead = heap_object_new(w.host, &freed);
    ebb_value_discard(w.host, ebb_value_object(dead));
    heap_pump(&w);
    assert_int_equal(ebb_gc_collect(w.rt), EBB_OK);
    begin_steps(&w);
    (void)ebb_runtime_pump(w.rt, 2);
    assert_int_equal(freed, 1); /* buried */
    assert_int_equal(w.heap->phase, EBB__GC_ROOTS);
    heap_object *again = heap_object_new(w.host, NULL);
    assert_ptr_equal(again, dead);
    again->link[0] = o;
    from->link[0] = NULL;
    end_steps(&w);
    heap_pump(&w);
    assert_int_equal(freed, 1);
    heap_object_is_there(o);
    heap_world_end(&w);
}

static void what_is_made_in_a_collection_outlives_it(void **state) {
    (void)state;
    for (int phase = EBB__GC_ROOTS; phase <= EBB__GC_SWEEP; phase++) {
        heap_world w;
        uint32_t freed = 0;
        ebb_value v;
        heap_world_begin(&w, (ebb_heap_opts){.step = 1});
        crowd(&w);
        for (int i = 0; i < 50; i++)
            ebb_value_discard(w.host, ebb_value_object(heap_object_new(w.host, NULL)));
        heap_steps_until(&w, (ebb__phase_of_collection)phase);
        heap_object *a = heap_object_new(w.host, &freed), *b = heap_object_below(w.host, a, &freed);
        ebb_future *p = ebb_promise_new(w.host, NULL, NULL), *f = ebb_map(w.host, p, as_it_came, NULL);
        assert_int_equal(ebb_promise_settle(p, ebb_value_object(a)), EBB_OK);
        end_steps(&w);
        heap_pump(&w);
        assert_int_equal(ebb_await(w.host, f, &v), EBB_OK);
        heap_object_is_there(a);
        heap_object_is_there(b);
        assert_int_equal(freed, 0);
        heap_world_end(&w);
    }
}

/* ---- who holds an object --------------------------------------------------------------------------------- */

typedef struct reader {
    ebb_future *of;
    ebb_value value;
    ebb_status st;
    bool discards; /* when it is woken after this was set */
    ebb_task task;
} reader;

static ebb_status read_it(ebb_cx *cx, void *arg) {
    reader *r = arg;
    if (r->of != NULL) {
        ebb_status st = ebb_await(cx, r->of, &r->value);
        if (st == EBB_PENDING) return EBB_PENDING;
        r->st = st;
        r->of = NULL;
    }
    if (r->discards) ebb_value_discard(cx, r->value);
    r->discards = false;
    return ebb_stopping(cx) ? EBB_OK : EBB_PENDING;
}

static void each_region_that_was_given_an_object_holds_it(void **state) {
    (void)state;
    for (int first = 0; first < 2; first++) {
        for (int discards = 0; discards < 2; discards++) {
            heap_world w;
            uint32_t freed = 0;
            heap_world_begin(&w, (ebb_heap_opts){0});
            ebb_future *f = ebb_future_share(ebb_promise_new(w.host, NULL, NULL)), *p = f;
            reader readers[2] = {{.of = ebb_future_keep(f)}, {.of = f}};
            readers[first].discards = discards;
            ebb_region regions[2];
            for (int i = 0; i < 2; i++) {
                regions[i] = ebb_region_open(w.host, NULL);
                ebb_spawn(w.host, regions[i], read_it, &readers[i]);
            }
            heap_pump(&w);
            heap_object *o = heap_object_new(w.host, &freed);
            assert_int_equal(ebb_promise_settle(p, ebb_value_object(o)), EBB_OK);
            heap_pump(&w);
            assert_ptr_equal(readers[0].value.as.p, o);
            assert_ptr_equal(readers[1].value.as.p, o);
            ebb_region_cancel(w.host, regions[first], EBB_CANCEL_USER, "gone");
            heap_pump(&w);
            heap_collect(&w);
            assert_int_equal(freed, 0);
            heap_object_is_there(o);
            ebb_region_cancel(w.host, regions[1 - first], EBB_CANCEL_USER, "gone too");
            heap_pump(&w);
            heap_collect(&w);
            assert_int_equal(freed, 1);
            heap_world_end(&w);
        }
    }
}

static void start(heap_world *w, reader *r) {
    r->task = ebb_spawn(w->host, ebb_region_open(w->host, NULL), read_it, r);
    heap_pump(w);
}

static void let_go(heap_world *w, reader *r) {
    r->discards = true;
    assert_int_equal(ebb_task_wake(w->host, r->task), EBB_OK);
    heap_pump(w);
}

/* The first lets go of it, a third comes, the second lets go: the third still has it. */
static void who_comes_last_holds_it_as_the_others(void **state) {
    (void)state;
    heap_world w;
    uint32_t freed = 0;
    heap_world_begin(&w, (ebb_heap_opts){0});
    ebb_future *f = ebb_future_ready(w.host, ebb_value_object(heap_object_new(w.host, &freed)));
    heap_pump(&w);
    reader r[3] = {{.of = ebb_future_keep(f)}, {.of = ebb_future_keep(f)}, {.of = f}};
    start(&w, &r[0]);
    start(&w, &r[1]);
    let_go(&w, &r[0]);
    start(&w, &r[2]);
    let_go(&w, &r[1]);
    heap_collect(&w);
    assert_int_equal(freed, 0);
    heap_object_is_there(r[2].value.as.p);
    let_go(&w, &r[2]);
    heap_collect(&w);
    assert_int_equal(freed, 1);
    heap_world_end(&w);
}

/* One has awaited it; others pass the same value on, and let go of it. */
static void passing_a_value_on_takes_it_from_nobody(void **state) {
    (void)state;
    heap_world w;
    uint32_t freed = 0;
    ebb_value v;
    heap_world_begin(&w, (ebb_heap_opts){0});
    ebb_future *f = ebb_future_ready(w.host, ebb_value_object(heap_object_new(w.host, &freed)));
    for (int i = 0; i < 3; i++) (void)ebb_future_keep(f);
    heap_pump(&w);
    assert_int_equal(ebb_await(w.host, f, &v), EBB_OK);
    the_release = ebb_future_ready(w.host, ebb_value_none());
    ebb_future_drop(ebb_within(w.host, f, EBB_FOREVER));
    ebb_future_drop(ebb_map(w.host, f, as_it_came, NULL));
    ebb_future_drop(ebb_finally(w.host, f, release_later, NULL));
    heap_pump(&w);
    heap_collect(&w);
    assert_int_equal(freed, 0);
    heap_object_is_there(v.as.p);
    ebb_value_discard(w.host, v);
    heap_collect(&w);
    assert_int_equal(freed, 1);
    heap_world_end(&w);
}

static void a_settle_that_comes_too_late_lets_go_of_its_object(void **state) {
    (void)state;
    heap_world w;
    uint32_t freed = 0;
    heap_world_begin(&w, (ebb_heap_opts){0});
    for (int i = 0; i < 10; i++) {
        ebb_future *f = ebb_promise_new(w.host, NULL, NULL);
        assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
        assert_int_equal(ebb_promise_settle(f, ebb_value_object(heap_object_new(w.host, &freed))),
                         EBB_CANCELLED);
        assert_int_equal(ebb_promise_settle(f, ebb_value_object(heap_object_new(w.host, &freed))),
                         EBB_ERR_RESOLVED);
        w.misuses = 0; /* that was told */
        ebb_future_drop(f);
    }
    heap_collect(&w);
    assert_int_equal(freed, 20);
    heap_world_end(&w);
}

/* The one that has it moves it on, though another future has the same value: nobody else holds it. */
static void what_was_read_twice_can_be_moved_on(void **state) {
    (void)state;
    heap_world w;
    uint32_t freed = 0;
    ebb_value v;
    heap_world_begin(&w, (ebb_heap_opts){0});
    ebb_future *f = ebb_future_ready(w.host, ebb_value_object(heap_object_new(w.host, &freed)));
    heap_pump(&w);
    assert_int_equal(ebb_await(w.host, ebb_future_keep(f), &v), EBB_OK);
    ebb_future *g = ebb_future_ready(w.host, v);
    ebb_future_drop(f);
    heap_pump(&w);
    heap_collect(&w);
    assert_int_equal(freed, 0);
    ebb_future_drop(g);
    heap_collect(&w);
    assert_int_equal(freed, 1);
    heap_world_end(&w);
}

static void count_word(void *p) {
    ++*(uint32_t *)p;
}

static const ebb_type counted_word = {"word", 0, NULL, count_word, 0};

/* A list in a list in a list: each is a cell with an end of its own, and none is looked at after its end. */
static void lists_of_lists_end_once(void **state) {
    (void)state;
    for (int way = 0; way < 4; way++) {
        heap_world w;
        uint32_t freed = 0;
        heap_world_begin(&w, (ebb_heap_opts){.verify = true});
        ebb_future *f = ebb_future_ready(w.host, ebb_value_owned(&counted_word, &freed));
        for (int i = 0; i < 50000; i++) {
            f = i % 2 == 0 ? ebb_all(w.host, 1, &f) : ebb_select(w.host, 1, &f);
        }
        heap_pump(&w);
        if (way == 0) ebb_future_drop(f);
        if (way == 1) assert_int_equal(ebb_await(w.host, f, NULL), EBB_OK);
        ebb_value v = ebb_value_none();
        if (way == 3) (void)ebb_future_keep(f); /* then two have the list, and only a collection ends it */
        if (way >= 2) assert_int_equal(ebb_await(w.host, f, &v), EBB_OK);
        ebb_value_discard(w.host, v);
        if (way == 3) ebb_future_drop(f);
        for (int i = 0; i < 2; i++) assert_int_equal(ebb_gc_collect(w.rt), EBB_OK);
        heap_collect(&w);
        assert_int_equal(freed, 1);
        assert_int_equal(heap_stats(&w).live, 0);
        heap_world_end(&w);
    }
}

/* ---- handles that are let go of at odd moments -------------------------------------------------------------- */

static ebb_future *the_source;
static ebb_value drop_source(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)arg;
    ebb_future_drop(the_source);
    return ebb_value_int(v->as.i + 1);
}

static void a_callback_may_drop_the_future_that_it_hears_of(void **state) {
    (void)state;
    heap_world w;
    ebb_value v;
    heap_world_begin(&w, (ebb_heap_opts){0});
    the_source = ebb_promise_new(w.host, NULL, NULL);
    ebb_future *f = ebb_map(w.host, ebb_future_keep(the_source), drop_source, NULL);
    assert_int_equal(ebb_promise_settle(the_source, ebb_value_int(1)), EBB_OK);
    heap_pump(&w);
    assert_int_equal(ebb_await(w.host, f, &v), EBB_OK);
    assert_int_equal(v.as.i, 2);
    heap_collect(&w);
    assert_int_equal(heap_stats(&w).live, 0);
    heap_world_end(&w);
}

static void a_future_that_has_ended_may_be_dropped_while_a_late_callback_waits(void **state) {
    (void)state;
    heap_world w;
    uint32_t done = 0;
    heap_world_begin(&w, (ebb_heap_opts){0});
    ebb_future *f = ebb_future_ready(w.host, ebb_value_none());
    heap_pump(&w);
    assert_int_equal(ebb_future_on_done(f, count_done, &done), EBB_OK);
    ebb_future_drop(f);
    heap_verify(&w);
    heap_pump(&w);
    assert_int_equal(done, 1);
    heap_collect(&w);
    assert_int_equal(heap_stats(&w).live, 0);
    heap_world_end(&w);
}

static void add_another(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    count_done(cx, st, v, arg);
    assert_int_equal(ebb_future_on_done(the_source, count_done, arg), EBB_OK); /* every_time: this collects */
}

static void a_callback_that_collects_is_freed_once(void **state) {
    (void)state;
    heap_world w;
    uint32_t done = 0;
    heap_world_begin(&w, (ebb_heap_opts){.every_time = true, .verify = true});
    the_source = ebb_promise_new(w.host, NULL, NULL);
    for (int i = 0; i < 5; i++) assert_int_equal(ebb_future_on_done(the_source, add_another, &done), EBB_OK);
    assert_int_equal(ebb_promise_settle(the_source, ebb_value_none()), EBB_OK);
    heap_pump(&w);
    assert_int_equal(done, 10);
    heap_verify(&w);
    heap_world_end(&w);
}

static void a_nested_future_is_held_until_it_is_settled_with(void **state) {
    (void)state;
    heap_world w;
    ebb_value v;
    heap_world_begin(&w, (ebb_heap_opts){.every_time = true, .verify = true});
    ebb_future *inner = ebb_promise_new(w.host, NULL, NULL),
               *node = ebb_map(w.host, ebb_future_keep(inner), one_more, NULL);
    ebb_future *outer = ebb_future_ready(w.host, ebb_value_future(node));
    assert_int_equal(ebb_promise_settle(inner, ebb_value_int(1)), EBB_OK);
    heap_pump(&w);
    assert_int_equal(ebb_await(w.host, outer, &v), EBB_OK);
    assert_int_equal(v.as.i, 2);
    heap_world_end(&w);
}

static void a_promise_that_is_settled_with_itself_fails_and_goes(void **state) {
    (void)state;
    heap_world w;
    heap_world_begin(&w, (ebb_heap_opts){0});
    ebb_future *f = ebb_promise_new(w.host, NULL, NULL);
    (void)ebb_promise_settle(f, ebb_value_future(ebb_future_keep(f)));
    heap_pump(&w);
    assert_int_equal(ebb_await(w.host, f, NULL), EBB_ERR_INVALID);
    heap_collect(&w);
    assert_int_equal(heap_stats(&w).live, 0);
    heap_world_end(&w);
}

/* ---- the end of regions ------------------------------------------------------------------------------------- */

static const ebb_operation stuck = {"stuck", NULL, NULL};
static ebb_future *the_stuck, *the_late, *the_node;
static ebb_cx *the_other;

static void make_more(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    (void)kind;
    (void)arg;
    the_late = ebb_promise_new(cx, NULL, NULL);
    the_node = ebb_map(the_other, the_late, one_more, NULL);
}

static ebb_status begin_stuck(ebb_cx *cx, void *arg) {
    (void)arg;
    the_stuck = ebb_promise_new(cx, &stuck, NULL);
    assert_int_equal(ebb_future_on_cancel(the_stuck, make_more, NULL), EBB_OK);
    return EBB_OK;
}

/* What cleanup code makes while its region is forced ends with the region, for those in other regions too. */
static void what_a_forced_region_leaves_is_ended(void **state) {
    (void)state;
    heap_world w;
    heap_world_begin(&w, (ebb_heap_opts){0});
    the_other = w.host;
    the_node = NULL;
    ebb_region r = ebb_region_open(w.host, NULL);
    ebb_spawn(w.host, r, begin_stuck, NULL);
    heap_pump(&w);
    ebb_region_force(w.host, r);
    heap_pump(&w);
    (void)ebb_region_join(w.host, r);
    assert_non_null(the_node);
    assert_int_equal(ebb_future_state_of(the_node), EBB_FUTURE_CANCELLED);
    heap_collect(&w);
    assert_int_equal(ebb_promise_settle(the_stuck, ebb_value_none()),
                     EBB_CANCELLED); /* abandoned, but owned until now */
    heap_pump(&w);
    heap_collect(&w);
    heap_world_end(&w);
}

static ebb_remote *the_remote;
static uint32_t cancels;

static void count_cancel(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    (void)cx;
    (void)kind;
    (void)arg;
    cancels++;
}

static ebb_status export_one(ebb_cx *cx, void *arg) {
    (void)arg;
    ebb_future *f = ebb_promise_new(cx, NULL, NULL);
    assert_int_equal(ebb_future_on_cancel(f, count_cancel, NULL), EBB_OK);
    assert_int_equal(ebb_remote_new(f, &the_remote), EBB_OK);
    return EBB_OK;
}

/* Another thread has cancelled it, and the runtime has not taken that in when the region closes. */
static void a_region_tells_what_has_ended_elsewhere_before_its_letter_comes(void **state) {
    (void)state;
    heap_world w;
    ebb_region_state now;
    heap_world_begin(&w, (ebb_heap_opts){0});
    cancels = 0;
    ebb_region r = ebb_region_open(w.host, NULL);
    ebb_spawn(w.host, r, export_one, NULL);
    heap_pump(&w);
    assert_true(ebb_remote_cancel(the_remote, EBB_CANCEL_USER));
    ebb_region_close(w.host, r);
    while (ebb_runtime_pump(w.rt, UINT32_MAX) == EBB_PENDING) continue;
    assert_int_equal(cancels, 1);
    assert_int_equal(ebb_region_state_of(w.host, r, &now), EBB_OK);
    assert_int_equal(now, EBB_REGION_CLOSED);
    heap_pump(&w); /* the message comes, and says nothing new */
    assert_int_equal(cancels, 1);
    ebb_remote_release(the_remote);
    heap_collect(&w);
    heap_world_end(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_callback_that_is_added_hides_no_earlier_one),
        cmocka_unit_test(an_object_that_moves_from_value_to_value_is_not_lost),
        cmocka_unit_test(a_value_that_is_remembered_is_not_lost_with_its_future),
        cmocka_unit_test(what_a_dropped_future_hands_on_is_not_lost),
        cmocka_unit_test(collections_before_the_dead_are_buried_do_not_follow_them),
        cmocka_unit_test(an_object_in_a_cell_that_was_marked_is_looked_at),
        cmocka_unit_test(what_is_made_in_a_collection_outlives_it),
        cmocka_unit_test(each_region_that_was_given_an_object_holds_it),
        cmocka_unit_test(who_comes_last_holds_it_as_the_others),
        cmocka_unit_test(passing_a_value_on_takes_it_from_nobody),
        cmocka_unit_test(a_settle_that_comes_too_late_lets_go_of_its_object),
        cmocka_unit_test(what_was_read_twice_can_be_moved_on),
        cmocka_unit_test(lists_of_lists_end_once),
        cmocka_unit_test(a_callback_may_drop_the_future_that_it_hears_of),
        cmocka_unit_test(a_future_that_has_ended_may_be_dropped_while_a_late_callback_waits),
        cmocka_unit_test(a_callback_that_collects_is_freed_once),
        cmocka_unit_test(a_nested_future_is_held_until_it_is_settled_with),
        cmocka_unit_test(a_promise_that_is_settled_with_itself_fails_and_goes),
        cmocka_unit_test(what_a_forced_region_leaves_is_ended),
        cmocka_unit_test(a_region_tells_what_has_ended_elsewhere_before_its_letter_comes),
    };
    return cmocka_run_group_tests_name("heap_steps", tests, NULL, NULL);
}
