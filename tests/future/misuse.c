/* Bad use: each is a named error, what was wrong is told, and nothing leaks. */
#include "tests/support/future_world.h"

#include <pthread.h>

static ebb_future *then_fn(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    (void)arg;
    return ebb_future_ready(cx, ebb_value_none());
}
static ebb_value map_fn(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)v;
    (void)arg;
    return ebb_value_none();
}
static ebb_future *catch_fn(ebb_cx *cx, ebb_status st, void *arg) {
    (void)st;
    (void)arg;
    return ebb_future_ready(cx, ebb_value_none());
}
static ebb_future *make_fn(ebb_cx *cx, void *arg) {
    (void)arg;
    return ebb_future_ready(cx, ebb_value_none());
}
static ebb_future *repeat_fn(ebb_cx *cx, uint64_t n, void *arg) {
    (void)n;
    return make_fn(cx, arg);
}
static ebb_future *attempt_fn(ebb_cx *cx, uint32_t n, void *arg) {
    (void)n;
    return make_fn(cx, arg);
}
static ebb_future *each_fn(ebb_cx *cx, size_t i, void *arg) {
    (void)i;
    return make_fn(cx, arg);
}
static void on_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)cx;
    (void)st;
    (void)v;
    (void)arg;
}

static const ebb_retry_opts thrice = {.attempts = 3};

/* The combinators of one input and of several, by number. */
typedef ebb_future *many_fn(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site);
static many_fn *const many[] = {ebb_all_site, ebb_all_settled_site, ebb_race_site, ebb_any_site,
                                ebb_select_site};
enum { MANY = 5, SINGLES = 6 };

static ebb_future *single(ebb_cx *cx, int which, ebb_future *f) {
    switch (which) {
    case 0: return ebb_then(cx, f, then_fn, NULL);
    case 1: return ebb_map(cx, f, map_fn, NULL);
    case 2: return ebb_catch(cx, f, catch_fn, NULL);
    case 3: return ebb_finally(cx, f, make_fn, NULL);
    case 4: return ebb_within(cx, f, EBB_MS);
    default: return ebb_bracket(cx, f, then_fn, then_fn, NULL);
    }
}

static void is_failed(ebb_future *f, ebb_status st) {
    assert_non_null(f);
    if (ebb_future_status_of(f) != st) {
        fail_msg("%s, not %s", ebb_status_name(ebb_future_status_of(f)), ebb_status_name(st));
    }
    ebb_future_drop(f);
}

/* ---- awaits ------------------------------------------------------------------------------------------------ */

typedef struct awaits {
    ebb_future *f;
    ebb_status st;
    ebb_status collected;
} awaits;

static ebb_future *awaits_in_callback(ebb_cx *cx, ebb_value *v, void *arg) {
    awaits *a = arg;
    (void)v;
    a->st = ebb_await(cx, a->f, NULL);
    return ebb_future_ready(cx, ebb_value_none());
}

static void an_await_in_a_callback_is_refused_and_consumes_nothing(void **state) {
    future_world *fw = *state;
    for (int ended = 0; ended < 2; ended++) {
        awaits a = {.f = ended ? ebb_future_ready(fw->host, ebb_value_none())
                               : ebb_promise_new(fw->host, NULL, NULL)};
        future_settle(fw);
        ebb_future *f =
            ebb_then(fw->host, ebb_future_ready(fw->host, ebb_value_none()), awaits_in_callback, &a);
        future_settle(fw);
        assert_int_equal(a.st, EBB_ERR_NOT_TASK);
        future_expect_misuse(fw, EBB_ERR_NOT_TASK);
        assert_int_equal(ebb_await(fw->host, f, NULL), EBB_OK);
        if (!ended) assert_int_equal(ebb_promise_settle(a.f, ebb_value_none()), EBB_OK);
        future_settle(fw);
        assert_int_equal(ebb_await(fw->host, a.f, NULL), EBB_OK);
    }
}

static void the_host_can_not_wait(void **state) {
    future_world *fw = *state;
    ebb_future *f = ebb_promise_new(fw->host, NULL, NULL);
    assert_int_equal(ebb_await(fw->host, f, NULL), EBB_ERR_NOT_TASK);
    assert_int_equal(ebb_promise_settle(f, ebb_value_int(1)), EBB_OK);
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, f, NULL), EBB_OK);
    assert_int_equal(ebb_await(fw->host, NULL, NULL), EBB_ERR_INVALID);
}

static ebb_future *collects(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    ((awaits *)arg)->collected = ebb_gc_collect(ebb_cx_runtime(cx));
    return ebb_future_ready(cx, ebb_value_none());
}

static void a_collection_in_a_callback_is_allowed(void **state) {
    future_world *fw = *state;
    awaits a = {.collected = EBB_PENDING};
    ebb_future_drop(ebb_then(fw->host, ebb_future_ready(fw->host, ebb_value_none()), collects, &a));
    future_settle(fw);
    assert_int_equal(a.collected, EBB_OK);
}

/* ---- consumed handles --------------------------------------------------------------------------------------- */

static int debug_up(void **state) {
    ebb_heap_opts o = future_heap_opts();
    o.debug = true;
    *state = future_world_new(true, &o);
    return 0;
}

/* What can be done with a handle. */
static ebb_status use_of(future_world *fw, int which, ebb_future *f) {
    ebb_future *fs[] = {f};
    ebb_remote *r = NULL;
    switch (which) {
    case 0: return ebb_await(fw->host, f, NULL);
    case 1: return ebb_future_status_of(ebb_future_keep(f));
    case 2: return ebb_future_status_of(ebb_future_share(f));
    case 3: return ebb_future_status_of(ebb_future_shield(f));
    case 4: return ebb_future_on_done(f, on_done, NULL);
    case 5: return ebb_remote_new(f, &r);
    case 6: return ebb_future_status_of(ebb_then(fw->host, f, then_fn, NULL));
    case 7: return ebb_future_status_of(ebb_race(fw->host, 1, fs));
    case 8: return ebb_future_status_of(ebb_all(fw->host, 1, fs));
    default: return EBB_OK;
    }
}

static void a_handle_used_after_it_was_consumed_is_told_with_its_place(void **state) {
    future_world *fw = *state;
    ebb_future *f = ebb_promise_new(fw->host, NULL, NULL);
    ebb_future *m = ebb_map(fw->host, f, map_fn, NULL);
    const char *here = EBB_SITE;
    for (int i = 0; i < 9; i++) {
        assert_int_equal(use_of(fw, i, f), EBB_ERR_CONSUMED);
        assert_true(fw->misuses >= 1);
        assert_int_equal(fw->misuse, EBB_ERR_CONSUMED);
        size_t file = strcspn(here, ":");
        if (strncmp(fw->site, here, file) != 0) fail_msg("consumed at %s, it says", fw->site);
        fw->misuses = 0;
    }
    assert_false(ebb_future_cancel(f, EBB_CANCEL_USER));
    future_expect_misuse(fw, EBB_ERR_CONSUMED);
    ebb_future_drop(f);
    future_expect_misuse(fw, EBB_ERR_CONSUMED);
    assert_int_equal(ebb_future_state_of(m), EBB_FUTURE_PENDING);
    assert_int_equal(ebb_promise_settle(f, ebb_value_none()), EBB_OK); /* which is its producer's right */
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, m, NULL), EBB_OK);
    assert_int_equal(ebb_await(fw->host, m, NULL), EBB_ERR_CONSUMED);
    assert_string_equal(fw->site, "ebb_await");
    future_expect_misuse(fw, EBB_ERR_CONSUMED);
}

static void one_future_twice_in_a_list_without_a_keep_is_told(void **state) {
    future_world *fw = *state;
    for (int i = 0; i < MANY; i++) {
        probe p, other;
        ebb_future *f = probe_on(&p, ebb_promise_new(fw->host, NULL, NULL));
        ebb_future *fs[] = {f, f, probe_on(&other, ebb_promise_new(fw->host, NULL, NULL))};
        is_failed(many[i](fw->host, 3, fs, EBB_SITE), EBB_ERR_CONSUMED);
        assert_true(fw->misuses >= 1);
        fw->misuses = 0;
        future_settle(fw);
        probe_cancelled(&p, EBB_CANCEL_RESOURCE);
        probe_cancelled(&other, EBB_CANCEL_RESOURCE);
    }
}

/* ---- arguments ------------------------------------------------------------------------------------------------ */

static void no_inputs_is_defined_for_each(void **state) {
    future_world *fw = *state;
    ebb_value v;
    size_t n = 9;
    for (int i = 0; i < 2; i++) {
        ebb_future *f = many[i](fw->host, 0, NULL, EBB_SITE);
        assert_int_equal(ebb_await(fw->host, f, &v), EBB_OK);
        assert_non_null(ebb_outcomes_of(&v, &n));
        assert_int_equal(n, 0);
        ebb_value_discard(fw->host, v);
    }
    for (int i = 2; i < MANY; i++) {
        probe p;
        ebb_future *f = probe_on(&p, many[i](fw->host, 0, NULL, EBB_SITE));
        future_settle(fw);
        probe_cancelled(&p, EBB_CANCEL_USER);
        ebb_future_drop(f);
    }
    ebb_future *f = ebb_traverse(fw->host, 0, 1, each_fn, NULL);
    assert_int_equal(ebb_await(fw->host, f, &v), EBB_OK);
    assert_non_null(ebb_outcomes_of(&v, &n));
    assert_int_equal(n, 0);
    ebb_value_discard(fw->host, v);
    is_failed(ebb_traverse(fw->host, 3, 0, each_fn, NULL), EBB_ERR_INVALID);
    is_failed(ebb_retry(fw->host, &(ebb_retry_opts){.attempts = 0}, attempt_fn, NULL), EBB_ERR_INVALID);
    is_failed(ebb_retry(fw->host, NULL, attempt_fn, NULL), EBB_ERR_INVALID);
    is_failed(ebb_traverse(fw->host, SIZE_MAX, 1, each_fn, NULL), EBB_ERR_LIMIT);
}

static void a_negative_time_is_invalid_and_for_ever_is_not(void **state) {
    future_world *fw = *state;
    const uint64_t negative = (uint64_t)-5 * EBB_MS;
    probe p;
    is_failed(ebb_after(fw->host, negative), EBB_ERR_INVALID);
    is_failed(ebb_future_delay(fw->host, negative, make_fn, NULL), EBB_ERR_INVALID);
    is_failed(ebb_future_repeat(fw->host, negative, repeat_fn, NULL), EBB_ERR_INVALID);
    is_failed(ebb_future_repeat(fw->host, 0, repeat_fn, NULL), EBB_ERR_INVALID);
    is_failed(ebb_within(fw->host, probe_on(&p, ebb_future_never(fw->host)), negative), EBB_ERR_INVALID);
    future_settle(fw);
    assert_int_equal(p.cancels, 1);
    ebb_retry_opts o = {.attempts = 2, .pause = negative};
    is_failed(ebb_retry(fw->host, &o, attempt_fn, NULL), EBB_ERR_INVALID);
    o = (ebb_retry_opts){.attempts = 2, .max_pause = negative};
    is_failed(ebb_retry(fw->host, &o, attempt_fn, NULL), EBB_ERR_INVALID);
    ebb_future *f = probe_on(&p, ebb_after(fw->host, EBB_FOREVER));
    future_settle(fw);
    probe_pending(&p);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    ebb_future_drop(f);
    o = (ebb_retry_opts){.attempts = 2, .pause = EBB_FOREVER};
    f = ebb_retry(fw->host, &o, attempt_fn, NULL);
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, f, NULL), EBB_OK);
}

static void a_function_that_is_null_is_invalid_and_the_input_is_cancelled(void **state) {
    future_world *fw = *state;
    ebb_cx *cx = fw->host;
    probe p[6];
    ebb_future *f[6];
    for (int i = 0; i < 6; i++) f[i] = probe_on(&p[i], ebb_promise_new(cx, NULL, NULL));
    is_failed(ebb_then(cx, f[0], NULL, NULL), EBB_ERR_INVALID);
    is_failed(ebb_map(cx, f[1], NULL, NULL), EBB_ERR_INVALID);
    is_failed(ebb_catch(cx, f[2], NULL, NULL), EBB_ERR_INVALID);
    is_failed(ebb_finally(cx, f[3], NULL, NULL), EBB_ERR_INVALID);
    is_failed(ebb_bracket(cx, f[4], NULL, then_fn, NULL), EBB_ERR_INVALID);
    is_failed(ebb_bracket(cx, f[5], then_fn, NULL, NULL), EBB_ERR_INVALID);
    future_settle(fw);
    for (int i = 0; i < 6; i++) probe_cancelled(&p[i], EBB_CANCEL_RESOURCE);
    is_failed(ebb_future_delay(cx, 0, NULL, NULL), EBB_ERR_INVALID);
    is_failed(ebb_future_repeat(cx, EBB_MS, NULL, NULL), EBB_ERR_INVALID);
    is_failed(ebb_retry(cx, &thrice, NULL, NULL), EBB_ERR_INVALID);
    is_failed(ebb_traverse(cx, 1, 1, NULL, NULL), EBB_ERR_INVALID);
    is_failed(ebb_go(cx, fw->root, NULL, NULL), EBB_ERR_INVALID);
    ebb_future *g = ebb_promise_new(cx, NULL, NULL);
    assert_int_equal(ebb_future_on_done(g, NULL, NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_future_on_cancel(g, NULL, NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_future_on_cleanup(g, NULL, NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_future_hold(g, NULL), EBB_ERR_INVALID);
    ebb_future_drop(g);
}

static void a_future_that_is_null_is_invalid_and_the_others_are_cancelled(void **state) {
    future_world *fw = *state;
    for (int i = 0; i < SINGLES; i++) is_failed(single(fw->host, i, NULL), EBB_ERR_INVALID);
    for (int i = 0; i < MANY; i++) {
        probe p[2];
        ebb_future *fs[] = {probe_on(&p[0], ebb_promise_new(fw->host, NULL, NULL)), NULL,
                            probe_on(&p[1], ebb_promise_new(fw->host, NULL, NULL))};
        is_failed(many[i](fw->host, 3, fs, EBB_SITE), EBB_ERR_INVALID);
        future_settle(fw);
        probe_cancelled(&p[0], EBB_CANCEL_RESOURCE);
        probe_cancelled(&p[1], EBB_CANCEL_RESOURCE);
        is_failed(many[i](fw->host, 3, NULL, EBB_SITE), EBB_ERR_INVALID);
    }
    assert_false(ebb_future_cancel(NULL, EBB_CANCEL_USER));
    assert_int_equal(ebb_promise_settle(NULL, future_fd(fw, 1)), EBB_ERR_INVALID);
    assert_int_equal(future_fd_freed(fw, 1), 1);
    assert_int_equal(ebb_promise_reject(NULL, EBB_FAILED), EBB_ERR_INVALID);
    is_failed(ebb_future_keep(NULL), EBB_ERR_INVALID);
    ebb_future_drop(NULL);
}

static void a_future_of_another_runtime_is_foreign_and_all_are_cancelled(void **state) {
    future_world *fw = *state;
    future_world *other = future_world_new(true, NULL);
    for (int i = 0; i < SINGLES; i++) {
        probe p;
        is_failed(single(fw->host, i, probe_on(&p, ebb_promise_new(other->host, NULL, NULL))),
                  EBB_ERR_FOREIGN);
        future_settle(other);
        assert_int_equal(p.cancels, 1);
    }
    for (int i = 0; i < MANY; i++) {
        probe p[3];
        ebb_future *fs[] = {probe_on(&p[0], ebb_promise_new(fw->host, NULL, NULL)),
                            probe_on(&p[1], ebb_promise_new(other->host, NULL, NULL)),
                            probe_on(&p[2], ebb_promise_new(fw->host, NULL, NULL))};
        is_failed(many[i](fw->host, 3, fs, EBB_SITE), EBB_ERR_FOREIGN);
        future_settle(fw);
        future_settle(other);
        for (int k = 0; k < 3; k++) probe_cancelled(&p[k], EBB_CANCEL_RESOURCE);
    }
    ebb_future *f = ebb_promise_new(other->host, NULL, NULL);
    assert_int_equal(ebb_await(fw->host, f, NULL), EBB_ERR_FOREIGN);
    ebb_future_drop(f);
    future_world_end(other);
}

typedef struct foreigner {
    ebb_future *f;
} foreigner;

static ebb_future *returns_it(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)v;
    return ((foreigner *)arg)->f;
}

static ebb_future *makes_it(ebb_cx *cx, size_t i, void *arg) {
    (void)i;
    return returns_it(cx, NULL, arg);
}

static void a_callback_that_returns_nothing_or_something_foreign_fails_the_result(void **state) {
    future_world *fw = *state;
    future_world *other = future_world_new(true, NULL);
    for (int foreign = 0; foreign < 2; foreign++) {
        foreigner a = {foreign ? ebb_promise_new(other->host, NULL, NULL) : NULL};
        ebb_status st = foreign ? EBB_ERR_FOREIGN : EBB_ERR_INVALID;
        probe p[3];
        ebb_future *f[] = {
            ebb_then(fw->host, ebb_future_ready(fw->host, ebb_value_none()), returns_it, &a),
            ebb_bracket(fw->host, ebb_future_ready(fw->host, ebb_value_none()), returns_it, then_fn, &a),
            ebb_traverse(fw->host, 3, 2, makes_it, &a),
        };
        for (int i = 0; i < 3; i++) (void)probe_on(&p[i], f[i]);
        future_settle(fw);
        for (int i = 0; i < 3; i++) {
            probe_failed(&p[i], st);
            ebb_future_drop(f[i]);
        }
    }
    future_world_end(other);
}

static void only_a_promise_can_be_settled_and_only_with_an_end(void **state) {
    future_world *fw = *state;
    ebb_future *m = ebb_map(fw->host, ebb_promise_new(fw->host, NULL, NULL), map_fn, NULL);
    assert_int_equal(ebb_promise_settle(m, future_fd(fw, 1)), EBB_ERR_INVALID);
    assert_int_equal(future_fd_freed(fw, 1), 1);
    assert_int_equal(ebb_promise_reject(m, EBB_FAILED), EBB_ERR_INVALID);
    ebb_remote *r;
    assert_int_equal(ebb_remote_new(m, &r), EBB_OK);
    assert_int_equal(ebb_remote_settle(r, future_fd(fw, 2)), EBB_ERR_INVALID);
    assert_int_equal(future_fd_freed(fw, 2), 1);
    assert_int_equal(ebb_remote_reject(r, EBB_FAILED), EBB_ERR_INVALID);
    ebb_remote_release(r);
    future_settle(fw);
    assert_int_equal(ebb_future_state_of(m), EBB_FUTURE_PENDING);
    ebb_future *p = ebb_promise_new(fw->host, NULL, NULL);
    assert_int_equal(ebb_promise_reject(p, EBB_OK), EBB_ERR_INVALID);
    assert_int_equal(ebb_promise_reject(p, EBB_PENDING), EBB_ERR_INVALID);
    is_failed(ebb_future_failed(fw->host, EBB_OK), EBB_ERR_INVALID);
    is_failed(ebb_future_failed(fw->host, EBB_PENDING), EBB_ERR_INVALID);
    assert_int_equal(ebb_promise_reject(p, EBB_STATUS_USER - 7), EBB_OK); /* any status of the user's own */
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, p, NULL), EBB_STATUS_USER - 7);
    assert_int_equal(ebb_promise_settle(ebb_future_failed(fw->host, EBB_OK), ebb_value_none()),
                     EBB_ERR_INVALID);
    ebb_future_drop(m);
}

static void a_future_that_could_not_be_made_can_be_used_like_any_other(void **state) {
    future_world *fw = *state;
    ebb_future *bad = ebb_after(fw->host, (uint64_t)-1 - 1);
    for (int i = 0; i < SINGLES; i++) {
        probe p;
        ebb_future *f = probe_on(&p, single(fw->host, i, ebb_future_keep(bad)));
        future_settle(fw);
        if (i == 2) probe_completed(&p, 0);
        else probe_failed(&p, EBB_ERR_INVALID);
        ebb_future_drop(f);
    }
    for (int i = 0; i < MANY; i++) {
        probe p;
        ebb_future *fs[] = {bad, ebb_future_share(bad), ebb_future_shield(bad)};
        ebb_future *f = probe_on(&p, many[i](fw->host, 3, fs, EBB_SITE));
        future_settle(fw);
        if (i == 1) assert_int_equal(p.status, EBB_OK);
        else probe_failed(&p, EBB_ERR_INVALID);
        ebb_future_drop(f);
    }
    assert_false(ebb_future_cancel(bad, EBB_CANCEL_USER));
    assert_int_equal(ebb_future_on_done(bad, on_done, NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_await(fw->host, bad, NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_await(fw->host, bad, NULL), EBB_ERR_INVALID);
    ebb_future_drop(bad);
}

static void more_keeps_than_can_be_counted_hold_it_until_its_region_closes(void **state) {
    future_world *fw = *state;
    ebb_future *f = ebb_promise_new(fw->host, NULL, NULL);
    for (int i = 0; i < 70000; i++) (void)ebb_future_keep(f);
    for (int i = 0; i < 70010; i++) ebb_future_drop(f);
    future_collect(fw);
    assert_int_equal(ebb_future_state_of(f), EBB_FUTURE_PENDING);
    assert_int_equal(ebb_promise_settle(f, ebb_value_none()), EBB_OK);
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, f, NULL), EBB_OK);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

typedef struct stranger {
    future_world *fw;
    ebb_future *f;
    ebb_status made[4], settled, awaited, collected, verified;
    bool cancelled;
} stranger;

static void *meddles(void *arg) {
    stranger *s = arg;
    ebb_future *fs[] = {s->f};
    s->made[0] = ebb_future_status_of(ebb_promise_new(s->fw->host, NULL, NULL));
    s->made[1] = ebb_future_status_of(ebb_then(s->fw->host, s->f, then_fn, NULL));
    s->made[2] = ebb_future_status_of(ebb_race(s->fw->host, 1, fs));
    s->made[3] = ebb_future_status_of(ebb_traverse(s->fw->host, 1, 1, each_fn, NULL));
    s->settled = ebb_promise_settle(s->f, future_fd(s->fw, 1));
    s->cancelled = ebb_future_cancel(s->f, EBB_CANCEL_USER);
    s->awaited = ebb_await(s->fw->host, s->f, NULL);
    s->collected = ebb_gc_collect(s->fw->rt);
    s->verified = ebb_heap_verify(s->fw->rt, NULL, 0);
    ebb_future_drop(s->f);
    return NULL;
}

static void another_thread_is_told_that_it_is_another(void **state) {
    future_world *fw = *state;
    stranger s = {.fw = fw, .f = ebb_promise_new(fw->host, NULL, NULL)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, meddles, &s), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int i = 0; i < 4; i++) assert_int_equal(s.made[i], EBB_ERR_THREAD);
    assert_int_equal(s.settled, EBB_ERR_THREAD);
    assert_int_equal(future_fd_freed(fw, 1), 0); /* it stays the caller's: nobody knows whose thread it is */
    assert_false(s.cancelled);
    assert_int_equal(s.awaited, EBB_ERR_THREAD);
    assert_int_equal(s.collected, EBB_ERR_THREAD);
    assert_int_equal(s.verified, EBB_ERR_THREAD);
    assert_true(fw->misuses >= 7);
    assert_int_equal(fw->misuse, EBB_ERR_THREAD);
    fw->misuses = 0;
    assert_int_equal(ebb_future_state_of(s.f), EBB_FUTURE_PENDING);
    assert_int_equal(ebb_promise_settle(s.f, ebb_value_none()), EBB_OK);
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, s.f, NULL), EBB_OK);
}

/* ---- setup and limits ---------------------------------------------------------------------------------------------- */

static void the_heap_is_set_up_before_the_first_future(void **state) {
    future_world *fw = *state;
    ebb_heap_opts o = future_heap_opts();
    assert_int_equal(ebb_heap_setup(fw->rt, NULL), EBB_ERR_INVALID);
    o.size = 3;
    assert_int_equal(ebb_heap_setup(fw->rt, &o), EBB_ERR_VERSION);
    ebb_future_drop(ebb_promise_new(fw->host, NULL, NULL));
    o.size = sizeof o;
    assert_int_equal(ebb_heap_setup(fw->rt, &o), EBB_ERR_BUSY);
}

static void past_its_limit_a_heap_refuses_and_later_goes_on(void **state) {
    (void)state;
    ebb_heap_opts o = future_heap_opts();
    o.max_bytes = 3 << 20;
    future_world *fw = future_world_new(false, &o);
    enum { MOST = 64 * 1024 };
    ebb_future *held[MOST];
    size_t n = 0;
    if (!future_test_gc()) {
        while (n < MOST && ebb_future_status_of(held[n] = ebb_future_never(fw->host)) == EBB_PENDING) n++;
        assert_true(n > 1000 && n < MOST);
        is_failed(held[n], EBB_ERR_LIMIT);
    }
    is_failed(ebb_traverse(fw->host, 1 << 20, 1, each_fn, NULL), EBB_ERR_LIMIT);
    for (int i = 0; i < MANY && n > 200; i++) {
        ebb_future *fs[100];
        for (int k = 0; k < 100; k++) fs[k] = held[--n];
        is_failed(many[i](fw->host, 100, fs, EBB_SITE), EBB_ERR_LIMIT);
    }
    while (n > 0) ebb_future_drop(held[--n]);
    future_collect(fw);
    ebb_future *f = ebb_promise_new(fw->host, NULL, NULL);
    assert_int_equal(ebb_future_status_of(f), EBB_PENDING);
    future_world_end(fw);
}

static void a_region_that_is_closed_makes_no_futures(void **state) {
    future_world *fw = *state;
    ebb_region_close(fw->host, fw->root);
    future_settle(fw);
    is_failed(ebb_promise_new(fw->host, NULL, NULL), EBB_ERR_CLOSED);
    is_failed(ebb_after(fw->host, 0), EBB_ERR_CLOSED);
    is_failed(ebb_race(fw->host, 0, NULL), EBB_ERR_CLOSED);
    is_failed(ebb_traverse(fw->host, 1, 1, each_fn, NULL), EBB_ERR_CLOSED);
    is_failed(ebb_retry(fw->host, &thrice, attempt_fn, NULL), EBB_ERR_CLOSED);
    is_failed(ebb_future_ready(fw->host, future_fd(fw, 1)), EBB_ERR_CLOSED);
    assert_int_equal(future_fd_freed(fw, 1), 1);
    ebb_type t = {"t", 8, NULL, NULL, 0};
    assert_null(ebb_gc_new(fw->host, &t));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FUTURES(an_await_in_a_callback_is_refused_and_consumes_nothing),
        IN_FUTURES(the_host_can_not_wait),
        IN_FUTURES(a_collection_in_a_callback_is_allowed),
        cmocka_unit_test_setup_teardown(a_handle_used_after_it_was_consumed_is_told_with_its_place, debug_up,
                                        future_world_down),
        cmocka_unit_test_setup_teardown(one_future_twice_in_a_list_without_a_keep_is_told, debug_up,
                                        future_world_down),
        IN_FUTURES(no_inputs_is_defined_for_each),
        IN_FUTURES(a_negative_time_is_invalid_and_for_ever_is_not),
        IN_FUTURES(a_function_that_is_null_is_invalid_and_the_input_is_cancelled),
        IN_FUTURES(a_future_that_is_null_is_invalid_and_the_others_are_cancelled),
        IN_FUTURES(a_future_of_another_runtime_is_foreign_and_all_are_cancelled),
        IN_FUTURES(a_callback_that_returns_nothing_or_something_foreign_fails_the_result),
        IN_FUTURES(only_a_promise_can_be_settled_and_only_with_an_end),
        IN_FUTURES(a_future_that_could_not_be_made_can_be_used_like_any_other),
        IN_FUTURES(more_keeps_than_can_be_counted_hold_it_until_its_region_closes),
        IN_FUTURES(another_thread_is_told_that_it_is_another),
        IN_FUTURES(the_heap_is_set_up_before_the_first_future),
        cmocka_unit_test(past_its_limit_a_heap_refuses_and_later_goes_on),
        IN_FUTURES(a_region_that_is_closed_makes_no_futures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
