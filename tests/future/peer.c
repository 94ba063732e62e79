/* Handles to runtimes, and futures of one runtime that another waits for. */
#include "tests/support/two_worlds.h"

/* A future of b, and what the other side may have of it. */
typedef struct export {
    ebb_future *source;
    ebb_remote *remote;
}
export;

static export exported(two *t, ebb_future *f) {
    export e = {f, NULL};
    assert_int_equal(ebb_remote_new(f, &e.remote), EBB_OK);
    (void)t;
    return e;
}

static export pending(two *t) {
    return exported(t, ebb_promise_new(t->b->host, NULL, NULL));
}

static reader *import_all(two *t, export *e) {
    return reader_start(t->a, t->a->root, ebb_remote_import(t->a->host, e->remote));
}

/* ---- words that somebody owns ------------------------------------------------------------------------- */

static uint32_t freed[8];

static void free_word(void *p) {
    freed[(uintptr_t)p]++;
}

static const ebb_type word_type = {"word", 0, NULL, free_word, 0};

static ebb_value word(uintptr_t i) {
    freed[i] = 0;
    return ebb_value_owned(&word_type, (void *)i);
}

/* ---- peers ---------------------------------------------------------------------------------------------- */

static void a_peer_outlives_its_runtime(void **state) {
    (void)state;
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    ebb_runtime *rt;
    ebb_peer *p;
    assert_int_equal(ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_failing_allocator(&memory)}, &rt),
                     EBB_OK);
    assert_int_equal(ebb_peer_of(rt, &p), EBB_OK);
    assert_ptr_equal(ebb_peer_keep(p), p);
    ebb_runtime_free(rt);
    ebb_peer_release(p);
    assert_true(memory.live > 0);
    ebb_peer_release(p);
    ebb_peer_release(NULL);
    assert_int_equal(memory.live, 0);
}

static void a_peer_of_a_runtime_without_memory_is_refused(void **state) {
    (void)state;
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    ebb_runtime *rt;
    ebb_peer *p;
    assert_int_equal(ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_failing_allocator(&memory)}, &rt),
                     EBB_OK);
    memory.fail_at = memory.calls + 1;
    assert_int_equal(ebb_peer_of(rt, &p), EBB_ERR_NOMEM);
    assert_null(p);
    ebb_runtime_free(rt);
    assert_int_equal(memory.live, 0);
}

/* ---- how imports end ------------------------------------------------------------------------------------ */

static void an_import_completes_as_its_source_does(void **state) {
    two *t = *state;
    export e = pending(t);
    reader *r = import_all(t, &e);
    meet(t);
    assert_int_equal(r->st, EBB_PENDING);
    (void)ebb_promise_settle(e.source, ebb_value_int(42));
    turn(t->b);
    assert_int_equal(r->st, EBB_PENDING);
    turn(t->a);
    assert_int_equal(r->st, EBB_OK);
    assert_int_equal(r->value.as.i, 42);
}

static void an_import_of_what_has_ended_ends_at_once(void **state) {
    two *t = *state;
    export e = pending(t);
    (void)ebb_promise_settle(e.source, ebb_value_int(42));
    turn(t->b);
    reader *r = import_all(t, &e);
    meet(t);
    assert_int_equal(r->st, EBB_OK);
    assert_int_equal(r->value.as.i, 42);
}

static void an_import_fails_as_its_source_does(void **state) {
    two *t = *state;
    export e = pending(t);
    reader *r = import_all(t, &e);
    (void)ebb_promise_reject(e.source, EBB_TIMEOUT);
    meet(t);
    assert_int_equal(r->st, EBB_TIMEOUT);
}

static void an_import_is_cancelled_as_its_source_is(void **state) {
    two *t = *state;
    export e = pending(t);
    ebb_future *f = ebb_remote_import(t->a->host, e.remote);
    (void)ebb_future_cancel(e.source, EBB_CANCEL_LEASE_LOST);
    meet(t);
    assert_int_equal(ebb_future_state_of(f), EBB_FUTURE_CANCELLED);
    assert_int_equal(ebb_future_cancel_kind_of(f), EBB_CANCEL_LEASE_LOST);
}

static void a_remote_of_ones_own_runtime_can_be_imported(void **state) {
    two *t = *state;
    ebb_future *f = ebb_promise_new(t->a->host, NULL, NULL);
    export e = exported(t, f);
    reader *r = import_all(t, &e);
    (void)ebb_promise_settle(f, ebb_value_int(1));
    meet(t);
    assert_int_equal(r->st, EBB_OK);
}

/* ---- cancels ---------------------------------------------------------------------------------------------- */

static void cancelling_an_import_cancels_its_source_at_once(void **state) {
    two *t = *state;
    export e = pending(t);
    ebb_remote *look = ebb_remote_keep(e.remote);
    ebb_future *f = ebb_remote_import(t->a->host, e.remote);
    (void)ebb_future_cancel(f, EBB_CANCEL_RACE_LOST);
    assert_int_equal(ebb_future_state_of(f), EBB_FUTURE_CANCELLED);
    turn(t->a);
    assert_int_equal(ebb_remote_state(look), EBB_FUTURE_CANCELLED);
    assert_int_equal(ebb_future_cancel_kind_of(e.source), EBB_CANCEL_RACE_LOST);
    ebb_remote_release(look);
}

static void the_region_waits_until_the_other_runtime_has_answered(void **state) {
    two *t = *state;
    export e = pending(t);
    (void)import_all(t, &e);
    turn(t->a);
    ebb_region_cancel(t->a->host, t->a->root, EBB_CANCEL_USER, "over");
    turn(t->a);
    assert_int_not_equal(state_of(t->a, t->a->root), EBB_REGION_CLOSED);
    turn(t->b);
    turn(t->a);
    assert_int_equal(state_of(t->a, t->a->root), EBB_REGION_CLOSED);
}

static void a_shared_source_goes_with_its_last_owner_only(void **state) {
    two *t = *state;
    ebb_future *f = ebb_future_share(ebb_promise_new(t->b->host, NULL, NULL));
    export one = exported(t, f), other = exported(t, f);
    ebb_future_drop(f);
    ebb_remote *look = ebb_remote_keep(one.remote);
    ebb_future *first = ebb_remote_import(t->a->host, one.remote),
               *second = ebb_remote_import(t->a->host, other.remote);
    meet(t);
    (void)ebb_future_cancel(first, EBB_CANCEL_USER);
    meet(t);
    assert_int_equal(ebb_remote_state(look), EBB_FUTURE_PENDING);
    (void)ebb_future_cancel(second, EBB_CANCEL_USER);
    meet(t);
    assert_int_equal(ebb_remote_state(look), EBB_FUTURE_CANCELLED);
    ebb_remote_release(look);
}

static void a_shielded_source_outlives_its_import(void **state) {
    two *t = *state;
    export e = exported(t, ebb_future_shield(ebb_promise_new(t->b->host, NULL, NULL)));
    ebb_future *f = ebb_remote_import(t->a->host, e.remote);
    (void)ebb_future_cancel(f, EBB_CANCEL_USER);
    meet(t);
    ebb_region_close(t->a->host, t->a->root);
    meet(t);
    assert_int_equal(state_of(t->a, t->a->root), EBB_REGION_CLOSED);
    assert_int_equal(ebb_future_state_of(e.source), EBB_FUTURE_PENDING);
}

static void a_dropped_import_is_cancelled_by_a_collection(void **state) {
    two *t = *state;
    export e = pending(t);
    ebb_future_drop(ebb_remote_import(t->a->host, e.remote));
    assert_int_equal(ebb_gc_collect(t->a->rt), EBB_OK);
    meet(t);
    assert_int_equal(ebb_future_cancel_kind_of(e.source), EBB_CANCEL_DROPPED);
}

/* a waits for b, which waits for a. */
static void a_cycle_between_runtimes_ends_with_its_region(void **state) {
    two *t = *state;
    ebb_future *mine = ebb_promise_new(t->a->host, NULL, NULL);
    export first = exported(t, mine);
    ebb_future *theirs = ebb_remote_import(t->b->host, first.remote);
    export second = exported(t, theirs);
    (void)ebb_promise_settle(mine, ebb_value_future(ebb_remote_import(t->a->host, second.remote)));
    meet(t);
    assert_int_equal(ebb_future_state_of(mine), EBB_FUTURE_PENDING);
    ebb_region_cancel(t->a->host, t->a->root, EBB_CANCEL_USER, "over");
    meet(t);
    assert_int_equal(state_of(t->a, t->a->root), EBB_REGION_CLOSED);
    assert_int_equal(ebb_future_state_of(theirs), EBB_FUTURE_CANCELLED);
}

/* ---- values ------------------------------------------------------------------------------------------------ */

static void an_owned_word_is_moved_if_nobody_there_holds_it(void **state) {
    two *t = *state;
    export e = pending(t);
    ebb_remote *again = ebb_remote_keep(e.remote);
    reader *r = import_all(t, &e);
    (void)ebb_promise_settle(e.source, word(1));
    ebb_future_drop(e.source);
    meet(t);
    assert_int_equal(r->st, EBB_OK);
    assert_ptr_equal(r->value.type, &word_type);
    assert_int_equal(freed[1], 0);
    ebb_value_discard(t->a->host, r->value);
    assert_int_equal(freed[1], 1);
    reader *late = reader_start(t->a, t->a->root, ebb_remote_import(t->a->host, again));
    meet(t);
    assert_int_equal(late->st, EBB_ERR_CONSUMED);
}

static void an_owned_word_is_borrowed_while_somebody_there_holds_it(void **state) {
    two *t = *state;
    export e = pending(t);
    reader *r = import_all(t, &e);
    (void)ebb_promise_settle(e.source, word(2));
    meet(t);
    assert_int_equal(r->st, EBB_OK);
    assert_null(r->value.type);
    assert_int_equal(r->value.as.u, 2);
    ebb_value_discard(t->a->host, r->value);
    assert_int_equal(freed[2], 0);
    ebb_future_drop(e.source);
    (void)ebb_gc_collect(t->b->rt);
    ebb_future_drop(ebb_future_ready(t->b->host, ebb_value_none())); /* the dead are buried in the pump */
    world_settle(t->b);
    assert_int_equal(freed[2], 1);
}

static void a_word_that_comes_after_a_cancel_is_disposed_of_here(void **state) {
    two *t = *state;
    export e = pending(t);
    ebb_future *f = ebb_remote_import(t->a->host, e.remote);
    turn(t->b);
    (void)ebb_promise_settle(e.source, word(3));
    ebb_future_drop(e.source);
    turn(t->b);
    (void)ebb_future_cancel(f, EBB_CANCEL_USER);
    assert_int_equal(freed[3], 0);
    turn(t->a);
    assert_int_equal(freed[3], 1);
    meet(t);
    assert_int_equal(freed[3], 1);
}

static void an_object_of_a_heap_can_not_cross(void **state) {
    static const ebb_type type = {"object", 16, NULL, NULL, 0};
    two *t = *state;
    export e = pending(t);
    reader *r = import_all(t, &e);
    (void)ebb_promise_settle(e.source, ebb_value_object(ebb_gc_new(t->b->host, &type)));
    meet(t);
    assert_int_equal(r->st, EBB_ERR_INVALID);
}

static const ebb_type object_type = {"object", 16, NULL, NULL, 0};

static ebb_value other_heaps_object(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)v;
    return ebb_value_object(arg);
}

static void an_object_of_another_heap_is_refused(void **state) {
    two *t = *state;
    void *object = ebb_gc_new(t->a->host, &object_type);
    ebb_value v = ebb_value_object(object);
    ebb_future *f = ebb_promise_new(t->b->host, NULL, NULL);
    assert_int_equal(ebb_promise_settle(f, v), EBB_ERR_FOREIGN);
    assert_int_equal(ebb_future_status_of(f), EBB_PENDING); /* it can still be settled */
    assert_int_equal(ebb_future_hold(f, object), EBB_ERR_FOREIGN);
    assert_int_equal(ebb_future_status_of(ebb_future_ready(t->b->host, v)), EBB_ERR_FOREIGN);
    ebb_value taken = v;
    assert_null(ebb_value_take(t->b->host, &taken).type);
    assert_ptr_equal(taken.as.p, object);
    ebb_future *mapped = ebb_map(t->b->host, f, other_heaps_object, object);
    assert_int_equal(ebb_promise_settle(f, ebb_value_int(1)), EBB_OK);
    turn(t->b);
    assert_int_equal(ebb_future_status_of(mapped), EBB_ERR_FOREIGN);
    for (int i = 0; i < 2; i++) { /* it is its own heap's, as before */
        world *w = i == 0 ? t->b : t->a;
        assert_int_equal(ebb_gc_collect(w->rt), EBB_OK);
        assert_int_equal(ebb_heap_verify(w->rt, NULL, 0), EBB_OK);
    }
    ebb_future *home = ebb_future_ready(t->a->host, v);
    assert_int_equal(ebb_future_status_of(home), EBB_OK);
    ebb_future_drop(home);
}

/* ---- the end of a runtime ------------------------------------------------------------------------------------ */

static void an_import_of_a_runtime_that_is_freed_is_closed(void **state) {
    two *t = *state;
    export subscribed = pending(t), under_way = pending(t), late = pending(t);
    reader *first = import_all(t, &subscribed);
    meet(t);
    reader *second = import_all(t, &under_way);
    doom(t->b);
    reader *third = import_all(t, &late);
    turn(t->a);
    assert_int_equal(first->st, EBB_ERR_CLOSED);
    assert_int_equal(second->st, EBB_ERR_CLOSED);
    assert_int_equal(third->st, EBB_ERR_CLOSED);
}

static void a_runtime_that_is_freed_cancels_what_it_imported(void **state) {
    two *t = *state;
    export e = pending(t), shielded = exported(t, ebb_future_shield(ebb_promise_new(t->b->host, NULL, NULL)));
    (void)import_all(t, &e);
    (void)import_all(t, &shielded);
    meet(t);
    doom(t->a);
    assert_int_equal(ebb_future_cancel_kind_of(e.source), EBB_CANCEL_DISCONNECT);
    turn(t->b);
    assert_int_equal(ebb_future_state_of(shielded.source), EBB_FUTURE_PENDING);
}

/* It is said once that nobody here wants it, though the cancel and the end of the runtime both mean that. */
static void an_import_that_was_cancelled_lets_go_once_if_its_runtime_is_freed(void **state) {
    two *t = *state;
    export e[] = {exported(t, ebb_future_share(ebb_promise_new(t->b->host, NULL, NULL))),
                  exported(t, ebb_future_shield(ebb_promise_new(t->b->host, NULL, NULL)))};
    for (int i = 0; i < 2; i++) {
        ebb_future *f = ebb_remote_import(t->a->host, e[i].remote);
        meet(t);
        assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    }
    world_settle(t->a); /* the messages are posted, and b has not taken them */
    doom(t->a);
    turn(t->b);
    for (int i = 0; i < 2; i++) assert_int_equal(ebb_future_state_of(e[i].source), EBB_FUTURE_PENDING);
}

static void what_is_settled_in_a_freed_runtime_is_disposed_of(void **state) {
    two *t = *state;
    export e = pending(t);
    doom(t->b);
    assert_int_equal(ebb_remote_state(e.remote), EBB_FUTURE_CANCELLED);
    assert_int_equal(ebb_remote_settle(e.remote, word(4)), EBB_CANCELLED);
    assert_int_equal(freed[4], 1);
    ebb_remote_release(e.remote);
}

/* ---- beside those at home ---------------------------------------------------------------------------------------- */

/* A future that is awaited at home: the value stays for others, unless it was moved out. */
static void an_import_after_an_await_at_home(void **state) {
    two *t = *state;
    for (int owned = 0; owned < 2; owned++) {
        export e = pending(t);
        reader *home = reader_start(t->b, t->b->root, e.source);
        turn(t->b);
        assert_int_equal(ebb_promise_settle(e.source, owned ? word(5) : ebb_value_int(42)), EBB_OK);
        turn(t->b);
        assert_int_equal(home->st, EBB_OK);
        assert_int_equal(home->value.as.i, owned ? 5 : 42);
        reader *late = import_all(t, &e);
        meet(t);
        assert_int_equal(late->st, owned ? EBB_ERR_CONSUMED : EBB_OK);
        assert_int_equal(late->value.as.i, owned ? 0 : 42);
        assert_int_equal(freed[5], 0);
        ebb_value_discard(t->b->host, home->value);
        assert_int_equal(freed[5], owned);
    }
}

static ebb_status await_nothing(ebb_cx *cx, void *state) {
    return ebb_await(cx, *(ebb_future **)state, NULL);
}

static void an_await_of_an_exported_word_that_wants_no_value_disposes_of_it(void **state) {
    two *t = *state;
    export e = pending(t);
    (void)ebb_spawn(t->b->host, t->b->root, await_nothing, &e.source);
    turn(t->b);
    assert_int_equal(ebb_promise_settle(e.source, word(6)), EBB_OK);
    turn(t->b);
    assert_int_equal(freed[6], 1);
    ebb_remote_release(e.remote);
}

/* Settled with another future it is settled, for everybody. */
static void a_promise_that_waits_for_another_can_not_be_settled_again(void **state) {
    two *t = *state;
    for (int exported_late = 0; exported_late < 2; exported_late++) {
        ebb_future *f = ebb_promise_new(t->b->host, NULL, NULL);
        ebb_future *inner = ebb_future_keep(ebb_promise_new(t->b->host, NULL, NULL));
        export e = {f, NULL};
        if (!exported_late) e = exported(t, f);
        assert_int_equal(ebb_promise_settle(f, ebb_value_future(inner)), EBB_OK);
        if (exported_late) e = exported(t, f);
        assert_int_equal(ebb_promise_settle(f, ebb_value_int(1)), EBB_ERR_RESOLVED);
        assert_int_equal(ebb_remote_settle(e.remote, word(7)), EBB_ERR_RESOLVED);
        assert_int_equal(freed[7], 1);
        assert_int_equal(ebb_remote_reject(e.remote, EBB_FAILED), EBB_ERR_RESOLVED);
        assert_int_equal(ebb_remote_state(e.remote), EBB_FUTURE_PENDING);
        turn(t->b);
        assert_int_equal(ebb_promise_settle(inner, ebb_value_int(42)), EBB_OK);
        reader *r = import_all(t, &e);
        meet(t);
        assert_int_equal(r->st, EBB_OK);
        assert_int_equal(r->value.as.i, 42);
        ebb_future_drop(inner);
        ebb_future_drop(f);
    }
}

/* But it can be cancelled, from there too, and what it waits for with it. */
static void a_promise_that_waits_for_another_can_be_cancelled_by_a_remote(void **state) {
    two *t = *state;
    export e = pending(t);
    ebb_future *inner = ebb_future_keep(ebb_promise_new(t->b->host, NULL, NULL));
    assert_int_equal(ebb_promise_settle(e.source, ebb_value_future(inner)), EBB_OK);
    assert_true(ebb_remote_cancel(e.remote, EBB_CANCEL_TIMEOUT));
    assert_false(ebb_remote_cancel(e.remote, EBB_CANCEL_USER));
    turn(t->b);
    assert_int_equal(ebb_future_cancel_kind_of(e.source), EBB_CANCEL_TIMEOUT);
    assert_int_equal(ebb_future_cancel_kind_of(inner), EBB_CANCEL_TIMEOUT);
    assert_int_equal(ebb_promise_reject(inner, EBB_CANCELLED), EBB_CANCELLED);
    ebb_future_drop(inner);
    ebb_future_drop(e.source);
    ebb_remote_release(e.remote);
}

/* What comes first wins: a promise that was cancelled by a remote takes no other future. */
static void a_promise_that_a_remote_has_ended_takes_no_other(void **state) {
    two *t = *state;
    export e = pending(t);
    ebb_future *inner = ebb_future_keep(ebb_promise_new(t->b->host, NULL, NULL));
    assert_int_equal(ebb_remote_settle(e.remote, ebb_value_int(3)), EBB_OK);
    assert_int_equal(ebb_promise_settle(e.source, ebb_value_future(inner)), EBB_ERR_RESOLVED);
    turn(t->b);
    assert_int_equal(ebb_future_status_of(e.source), EBB_OK);
    assert_int_equal(ebb_future_cancel_kind_of(inner), EBB_CANCEL_RESOURCE);
    assert_int_equal(ebb_promise_reject(inner, EBB_CANCELLED), EBB_CANCELLED);
    ebb_future_drop(inner);
    ebb_future_drop(e.source);
    ebb_remote_release(e.remote);
}

/* ---- bad use, no memory ---------------------------------------------------------------------------------------- */

static void what_can_not_be_imported_is_a_failed_future(void **state) {
    two *t = *state;
    assert_int_equal(ebb_future_status_of(ebb_remote_import(t->a->host, NULL)), EBB_ERR_INVALID);
    export e = pending(t);
    ebb_region_close(t->a->host, t->a->root);
    turn(t->a);
    assert_int_equal(ebb_future_status_of(ebb_remote_import(t->a->host, e.remote)), EBB_ERR_CLOSED);
    turn(t->b);
    assert_int_equal(ebb_future_cancel_kind_of(e.source), EBB_CANCEL_RESOURCE);
}

static void nothing_is_allocated_once_an_import_was_made(void **state) {
    two *t = *state;
    export done = pending(t),
           cancelled = exported(t, ebb_future_shield(ebb_promise_new(t->b->host, NULL, NULL)));
    reader *r = import_all(t, &done);
    ebb_future *f = ebb_remote_import(t->a->host, cancelled.remote);
    turn(t->a);
    uint64_t calls = t->a->memory.calls + t->b->memory.calls;
    (void)ebb_promise_settle(done.source, ebb_value_int(1));
    (void)ebb_future_cancel(f, EBB_CANCEL_USER);
    meet(t);
    assert_int_equal(r->st, EBB_OK);
    assert_int_equal(t->a->memory.calls + t->b->memory.calls, calls);
}

static void an_import_survives_the_nth_allocation_failing(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        void *s;
        two_up(&s);
        two *t = s;
        export e = pending(t);
        t->a->memory.fail_at = t->a->memory.calls + n;
        ebb_future *f = ebb_remote_import(t->a->host, e.remote);
        bool failed = t->a->memory.failures > 0;
        t->a->memory.fail_at = 0;
        if (failed) assert_int_equal(ebb_future_status_of(f), EBB_ERR_NOMEM);
        (void)ebb_promise_settle(e.source, ebb_value_int(1));
        meet(t);
        if (failed) assert_int_equal(ebb_future_cancel_kind_of(e.source), EBB_CANCEL_RESOURCE);
        else assert_int_equal(ebb_future_status_of(f), EBB_OK);
        two_down(&s);
        if (!failed) return;
    }
}

/* The region is forced: the import is given up, but its record stays until the answer comes. */
static void a_forced_import_stays_owned_until_it_is_answered(void **state) {
    two *t = *state;
    export e = pending(t);
    (void)import_all(t, &e);
    turn(t->a);
    ebb_region_force(t->a->host, t->a->root);
    turn(t->a);
    assert_int_equal(state_of(t->a, t->a->root), EBB_REGION_CLOSED);
    int64_t live = t->a->memory.live;
    meet(t);
    assert_true(t->a->memory.live < live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_outlives_its_runtime),
        cmocka_unit_test(a_peer_of_a_runtime_without_memory_is_refused),
        IN_TWO_WORLDS(an_import_completes_as_its_source_does),
        IN_TWO_WORLDS(an_import_of_what_has_ended_ends_at_once),
        IN_TWO_WORLDS(an_import_fails_as_its_source_does),
        IN_TWO_WORLDS(an_import_is_cancelled_as_its_source_is),
        IN_TWO_WORLDS(a_remote_of_ones_own_runtime_can_be_imported),
        IN_TWO_WORLDS(cancelling_an_import_cancels_its_source_at_once),
        IN_TWO_WORLDS(the_region_waits_until_the_other_runtime_has_answered),
        IN_TWO_WORLDS(a_shared_source_goes_with_its_last_owner_only),
        IN_TWO_WORLDS(a_shielded_source_outlives_its_import),
        IN_TWO_WORLDS(a_dropped_import_is_cancelled_by_a_collection),
        IN_TWO_WORLDS(a_cycle_between_runtimes_ends_with_its_region),
        IN_TWO_WORLDS(an_owned_word_is_moved_if_nobody_there_holds_it),
        IN_TWO_WORLDS(an_owned_word_is_borrowed_while_somebody_there_holds_it),
        IN_TWO_WORLDS(a_word_that_comes_after_a_cancel_is_disposed_of_here),
        IN_TWO_WORLDS(an_object_of_a_heap_can_not_cross),
        IN_TWO_WORLDS(an_object_of_another_heap_is_refused),
        IN_TWO_WORLDS(an_import_of_a_runtime_that_is_freed_is_closed),
        IN_TWO_WORLDS(a_runtime_that_is_freed_cancels_what_it_imported),
        IN_TWO_WORLDS(an_import_that_was_cancelled_lets_go_once_if_its_runtime_is_freed),
        IN_TWO_WORLDS(what_is_settled_in_a_freed_runtime_is_disposed_of),
        IN_TWO_WORLDS(an_import_after_an_await_at_home),
        IN_TWO_WORLDS(an_await_of_an_exported_word_that_wants_no_value_disposes_of_it),
        IN_TWO_WORLDS(a_promise_that_waits_for_another_can_not_be_settled_again),
        IN_TWO_WORLDS(a_promise_that_waits_for_another_can_be_cancelled_by_a_remote),
        IN_TWO_WORLDS(a_promise_that_a_remote_has_ended_takes_no_other),
        IN_TWO_WORLDS(what_can_not_be_imported_is_a_failed_future),
        IN_TWO_WORLDS(nothing_is_allocated_once_an_import_was_made),
        cmocka_unit_test(an_import_survives_the_nth_allocation_failing),
        IN_TWO_WORLDS(a_forced_import_stays_owned_until_it_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
