/* What becomes of a region's futures when their callback runner ends before they do: it was forced and abandoned,
 * or it has returned and runs what callbacks have deferred. */
#include <stdlib.h>

#include "tests/support/two_worlds.h"

/* ---- ended by another thread, while the runner is abandoned -------------------------------------------------- */

static const ebb_operation stubborn = {"stubborn", NULL, NULL};

typedef struct maker {
    bool op;
    uint32_t cleaned;
    ebb_future *f;
} maker;

static void count_cleanup(ebb_cx *cx, void *arg) {
    (void)cx;
    ++*(uint32_t *)arg;
}

static ebb_status make_promise(ebb_cx *cx, void *state) {
    maker *m = state;
    m->f = ebb_promise_new(cx, m->op ? &stubborn : NULL, NULL);
    return ebb_future_on_cleanup(m->f, count_cleanup, &m->cleaned);
}

static ebb_value plus_one(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)arg;
    return ebb_value_int(v->as.i + 1);
}

enum { SETTLES, REJECTS, CANCELS, DOES_NOTHING, REMOTES };

static void by_remote(ebb_remote *r, int how) {
    if (how == SETTLES) assert_int_equal(ebb_remote_settle(r, ebb_value_int(41)), EBB_OK);
    if (how == REJECTS) assert_int_equal(ebb_remote_reject(r, EBB_ERR_LIMIT), EBB_OK);
    if (how == CANCELS) assert_true(ebb_remote_cancel(r, EBB_CANCEL_USER));
}

static void heard(const reader *r, int how, int64_t value) {
    const ebb_status ends[] = {EBB_OK, EBB_ERR_LIMIT, EBB_CANCELLED, EBB_CANCELLED};
    assert_int_equal(r->st, ends[how]);
    if (how == SETTLES) assert_int_equal(r->value.as.i, value);
}

/* A future of a region that is forced in the same pump. A task of another region awaits it, another one what was
 * made of it, and so does another runtime: before the end, or after it. Its own callback runs, though the message that
 * tells of the end comes too late for that. */
static void those_elsewhere_hear_of_an_end_that_comes_with_the_force(void **state) {
    two *t = *state;
    for (int k = 0; k < 4 * REMOTES; k++) {
        int how = k % REMOTES;
        maker m = {.op = k / REMOTES & 1};
        bool late = k / REMOTES & 2;
        ebb_remote *remote;
        ebb_region region = ebb_region_open(t->b->host, NULL);
        ebb_spawn(t->b->host, region, make_promise, &m);
        turn(t->b);
        assert_int_equal(ebb_remote_new(m.f, &remote), EBB_OK);
        (void)ebb_future_share(ebb_future_keep(m.f));
        reader *plain = reader_start(t->b, t->b->root, m.f);
        reader *mapped = reader_start(t->b, t->b->root, ebb_map(t->b->host, m.f, plus_one, NULL));
        reader *far = NULL;
        if (!late)
            far = reader_start(t->a, t->a->root, ebb_remote_import(t->a->host, ebb_remote_keep(remote)));
        meet(t);
        ebb_inbox_receive(t->b->rt); /* as it should be, before the pump */
        ebb_region_force(t->b->host, region);
        by_remote(remote, how); /* as another thread may at any time */
        world_settle(t->b);
        world_pass(t->b, EBB_SECOND);
        assert_int_equal(state_of(t->b, region), EBB_REGION_CLOSED);
        assert_int_equal(m.cleaned, 1);
        if (late)
            far = reader_start(t->a, t->a->root, ebb_remote_import(t->a->host, ebb_remote_keep(remote)));
        meet(t);
        heard(plain, how, 41);
        heard(mapped, how, 42);
        heard(far, how, 41);
        assert_int_equal(m.cleaned, 1);
        if (m.op && (how == CANCELS || how == DOES_NOTHING)) {
            assert_int_equal(ebb_remote_reject(remote, EBB_CANCELLED), EBB_CANCELLED);
        }
        ebb_remote_release(remote);
        meet(t);
        assert_int_equal(ebb_gc_collect(t->b->rt), EBB_OK);
        assert_int_equal(ebb_heap_verify(t->b->rt, NULL, 0), EBB_OK);
    }
}

/* ---- a journal of it --------------------------------------------------------------------------------------------- */

typedef struct bytes {
    char *at;
    size_t n;
} bytes;

static void append(void *ctx, const void *from, size_t n) {
    bytes *b = ctx;
    b->at = realloc(b->at, b->n + n);
    assert_non_null(b->at);
    memcpy(b->at + b->n, from, n);
    b->n += n;
}

typedef struct late {
    ebb_future *stubborn, *made;
} late;

static void make_late(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    (void)kind;
    ((late *)arg)->made = ebb_future_never(cx);
}

static ebb_status make_stubborn(ebb_cx *cx, void *state) {
    late *l = state;
    l->stubborn = ebb_promise_new(cx, &stubborn, NULL);
    return ebb_future_on_cancel(l->stubborn, make_late, l);
}

static void a_journal_of_an_abandoned_runner_replays(void **state) {
    (void)state;
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    ebb_runtime *rt;
    late l = {NULL, NULL};
    bytes journal = {NULL, 0};
    ebb_journal_replay_result result;
    assert_int_equal(ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_failing_allocator(&memory)}, &rt),
                     EBB_OK);
    assert_int_equal(ebb_journal_start(rt, 1 << 20), EBB_OK);
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_region region = ebb_region_open(host, NULL);
    ebb_spawn(host, region, make_stubborn, &l);
    (void)ebb_runtime_pump(rt, 100);
    ebb_region_force(host, region);
    while (l.made == NULL) (void)ebb_runtime_pump(rt, 1);
    ebb_future *mapped = ebb_map(host, l.made, plus_one, NULL);
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING) continue;
    assert_int_equal(ebb_future_status_of(mapped), EBB_CANCELLED);
    assert_int_equal(ebb_promise_reject(l.stubborn, EBB_CANCELLED), EBB_CANCELLED);
    ebb_region_cancel(host, ebb_runtime_root(rt), EBB_CANCEL_USER, "the end");
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING) continue;
    ebb_journal_take(rt, true, append, &journal);
    ebb_status st = ebb_journal_replay(ebb_libc_allocator(), journal.at, journal.n, NULL, NULL, &result);
    if (st != EBB_OK) fail_msg("%s: %s", ebb_status_name(st), result.message);
    ebb_runtime_free(rt);
    free(journal.at);
    assert_int_equal(memory.live, 0);
}

/* Whether there was memory to keep the operation for the report, or not: what comes after it has the same ids. */
static ebb_status finalize_nothing(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return EBB_OK;
}

static void a_journal_of_an_operation_that_could_not_be_kept_replays(void **state) {
    (void)state;
    for (uint64_t n = 0; n < 4; n++) {
        ebb_failing memory = {.inner = ebb_libc_allocator()};
        ebb_runtime *rt;
        maker m = {.op = true};
        bytes journal = {NULL, 0};
        ebb_journal_replay_result result;
        assert_int_equal(
            ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_failing_allocator(&memory)}, &rt), EBB_OK);
        assert_int_equal(ebb_journal_start(rt, 1 << 20), EBB_OK);
        ebb_cx *host = ebb_runtime_host(rt);
        ebb_region region = ebb_region_open(host, NULL);
        ebb_spawn(host, region, make_promise, &m);
        (void)ebb_runtime_pump(rt, 100);
        ebb_region_force(host, region);
        if (n > 0) memory.fail_at = memory.calls + n;
        while (ebb_runtime_pump(rt, 100) == EBB_PENDING) continue;
        assert_int_equal(ebb_region_join(host, region), EBB_CANCELLED);
        memory.fail_at = 0;
        assert_int_equal(ebb_defer(host, finalize_nothing, NULL), EBB_OK);
        ebb_region_close(host, ebb_runtime_root(rt));
        while (ebb_runtime_pump(rt, 100) == EBB_PENDING) continue;
        ebb_journal_take(rt, true, append, &journal);
        ebb_status st = ebb_journal_replay(ebb_libc_allocator(), journal.at, journal.n, NULL, NULL, &result);
        if (st != EBB_OK) fail_msg("%s: %s", ebb_status_name(st), result.message);
        (void)ebb_promise_reject(m.f, EBB_CANCELLED);
        ebb_runtime_free(rt);
        free(journal.at);
    }
}

/* ---- what a callback has deferred -------------------------------------------------------------------------------- */

typedef struct deferred {
    bool waits; /* until its callback has run */
    bool takes_time;
    uint32_t polls, done, cleaned, over;
    ebb_status made, attached;
    ebb_cx *host;
} deferred;

static void note_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)cx;
    (void)v;
    ((deferred *)arg)->done += st == EBB_OK;
}

static void note_cleanup(ebb_cx *cx, void *arg) {
    (void)cx;
    ((deferred *)arg)->cleaned++;
}

static ebb_status finalize(ebb_cx *cx, void *arg) {
    deferred *d = arg;
    if (d->polls++ == 0) {
        ebb_future *f = d->takes_time ? ebb_after(cx, 10 * EBB_MS) : ebb_future_ready(cx, ebb_value_int(1));
        d->attached = ebb_future_on_done(f, note_done, d);
        if (d->attached == EBB_OK) d->attached = ebb_future_on_cleanup(f, note_cleanup, d);
    }
    if (d->waits && d->done == 0) return EBB_PENDING;
    d->over++;
    return EBB_OK;
}

static void defer_it(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)st;
    (void)v;
    ((deferred *)arg)->made = ebb_defer(cx, finalize, arg);
}

static ebb_status make_callback(ebb_cx *cx, void *state) {
    return ebb_future_on_done(ebb_future_ready(cx, ebb_value_none()), defer_it, state);
}

static void futures_of_a_deferred_callback_are_served(void **state) {
    world *w = *state;
    for (int k = 0; k < 8; k++) {
        deferred d = {.waits = k & 1, .takes_time = k & 2, .made = EBB_PENDING, .attached = EBB_PENDING};
        ebb_region r = ebb_region_open(w->host, NULL);
        ebb_spawn(w->host, r, make_callback, &d);
        world_settle(w);
        assert_int_equal(d.made, EBB_OK);
        assert_int_equal(d.polls, 0);
        if (k & 4) ebb_region_cancel(w->host, r, EBB_CANCEL_USER, "enough");
        else ebb_region_close(w->host, r);
        world_pass(w, 20 * EBB_MS);
        assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
        assert_int_equal(d.attached, EBB_OK);
        assert_int_equal(d.done, 1);
        assert_int_equal(d.cleaned, 1);
        assert_int_equal(d.over, 1);
    }
}

/* One that never ends holds the region for as long as its budget, and no longer. */
static ebb_status never_ends(ebb_cx *cx, void *arg) {
    deferred *d = arg;
    if (d->polls++ == 0)
        d->attached = ebb_future_on_cleanup(ebb_after(cx, 3600 * EBB_SECOND), note_cleanup, d);
    return EBB_PENDING;
}

static void defer_for_ever(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)st;
    (void)v;
    ((deferred *)arg)->made = ebb_defer(cx, never_ends, arg);
}

static ebb_status make_stuck(ebb_cx *cx, void *state) {
    return ebb_future_on_done(ebb_future_ready(cx, ebb_value_none()), defer_for_ever, state);
}

static void a_deferred_callback_that_never_ends_is_forced(void **state) {
    world *w = *state;
    deferred d = {.made = EBB_PENDING};
    ebb_region r = ebb_region_open(w->host, NULL);
    ebb_spawn(w->host, r, make_stuck, &d);
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, "enough");
    world_pass(w, 4 * EBB_SECOND);
    assert_int_not_equal(state_of(w, r), EBB_REGION_CLOSED);
    world_pass(w, 2 * EBB_SECOND);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(d.attached, EBB_OK);
}

/* Nothing is left but a future that nobody ends: it is cancelled by the force, and its callbacks run. */
static ebb_status leaves_an_operation(ebb_cx *cx, void *arg) {
    deferred *d = arg;
    ebb_future *f = ebb_map(cx, ebb_promise_new(cx, &stubborn, NULL), plus_one, NULL);
    d->attached = ebb_future_on_cleanup(f, note_cleanup, d);
    return EBB_OK;
}

static void defer_an_operation(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)st;
    (void)v;
    ((deferred *)arg)->made = ebb_defer(cx, leaves_an_operation, arg);
}

static ebb_status make_leaver(ebb_cx *cx, void *state) {
    return ebb_future_on_done(ebb_future_ready(cx, ebb_value_none()), defer_an_operation, state);
}

static void force_reaches_the_futures_of_a_deferred_callback(void **state) {
    world *w = *state;
    deferred d = {.made = EBB_PENDING, .attached = EBB_PENDING};
    ebb_region r = ebb_region_open(w->host, NULL);
    ebb_region_report report;
    ebb_spawn(w->host, r, make_leaver, &d);
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, "enough");
    world_pass(w, 4 * EBB_SECOND);
    assert_int_equal(d.attached, EBB_OK);
    assert_int_not_equal(state_of(w, r), EBB_REGION_CLOSED);
    world_pass(w, 2 * EBB_SECOND);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(d.cleaned, 1);
    assert_int_equal(ebb_region_report_of(w->host, r, &report), EBB_OK);
    assert_int_equal(report.abandoned, 1); /* the operation */
}

/* The hook of what a callback has reserved for itself runs when that leaks, at the very end of the runner. */
static void make_in_hook(void *arg) {
    deferred *d = arg;
    d->attached = ebb_future_on_cleanup(ebb_future_ready(d->host, ebb_value_none()), note_cleanup, d);
}

static void reserve_it(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)st;
    (void)v;
    ((deferred *)arg)->made =
        ebb_id_status(ebb_obligation_reserve(cx, EBB_OBLIGATION_LEASE, make_in_hook, arg).id);
}

static void the_futures_of_a_hook_are_served(void **state) {
    world *w = *state;
    deferred d = {.made = EBB_PENDING, .attached = EBB_PENDING, .host = w->host};
    assert_int_equal(ebb_future_on_done(ebb_future_ready(w->host, ebb_value_none()), reserve_it, &d), EBB_OK);
    world_settle(w);
    assert_int_equal(d.made, EBB_OK);
    ebb_region_close(w->host, w->root);
    world_settle(w);
    assert_int_equal(state_of(w, w->root), EBB_REGION_CLOSED);
    assert_int_equal(d.attached, EBB_OK);
    assert_int_equal(d.cleaned, 1);
}

/* ---- what callbacks make under force ----------------------------------------------------------------------------- */

typedef struct chain {
    bool op;
    uint32_t made, told, refused;
} chain;

/* Makes another one whenever it is told of the end of the last. */
static void make_another(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    chain *c = arg;
    (void)kind;
    c->told++;
    ebb_future *f = ebb_promise_new(cx, c->op ? &stubborn : NULL, NULL);
    if (ebb_future_on_cancel(f, make_another, c) == EBB_OK) c->made++;
    else c->refused++;
}

static ebb_status begin_chain(ebb_cx *cx, void *state) {
    chain *c = state;
    c->told--;
    make_another(cx, EBB_CANCEL_NONE, state);
    return EBB_OK;
}

static void whatever_is_made_under_force_is_told_of_its_end(void **state) {
    world *w = *state;
    for (int k = 0; k < 2; k++) {
        chain c = {.op = k & 1};
        ebb_region r = ebb_region_open(w->host, NULL);
        ebb_spawn(w->host, r, begin_chain, &c);
        world_settle(w);
        ebb_region_force(w->host, r);
        world_settle(w);
        assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
        assert_true(c.made > 1);
        assert_int_equal(c.told, c.made);
        assert_int_equal(c.refused, 1);
    }
}

static void a_journal_of_a_deferred_callback_replays(void **state) {
    (void)state;
    ebb_runtime *rt;
    bytes journal = {NULL, 0};
    ebb_journal_replay_result result;
    deferred d = {.waits = true};
    assert_int_equal(ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_libc_allocator()}, &rt), EBB_OK);
    assert_int_equal(ebb_journal_start(rt, 1 << 20), EBB_OK);
    ebb_region r = ebb_region_open(ebb_runtime_host(rt), NULL);
    ebb_spawn(ebb_runtime_host(rt), r, make_callback, &d);
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING) continue;
    ebb_region_close(ebb_runtime_host(rt), r);
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING) continue;
    assert_int_equal(d.over, 1);
    ebb_journal_take(rt, true, append, &journal);
    ebb_status st = ebb_journal_replay(ebb_libc_allocator(), journal.at, journal.n, NULL, NULL, &result);
    if (st != EBB_OK) fail_msg("%s: %s", ebb_status_name(st), result.message);
    ebb_runtime_free(rt);
    free(journal.at);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_TWO_WORLDS(those_elsewhere_hear_of_an_end_that_comes_with_the_force),
        cmocka_unit_test(a_journal_of_an_abandoned_runner_replays),
        cmocka_unit_test(a_journal_of_an_operation_that_could_not_be_kept_replays),
        IN_WORLD(futures_of_a_deferred_callback_are_served),
        IN_WORLD(a_deferred_callback_that_never_ends_is_forced),
        IN_WORLD(force_reaches_the_futures_of_a_deferred_callback),
        IN_WORLD(the_futures_of_a_hook_are_served),
        IN_WORLD(whatever_is_made_under_force_is_told_of_its_end),
        cmocka_unit_test(a_journal_of_a_deferred_callback_replays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
