/* all, all_settled, race, any, select, traverse, retry: what they end as, what becomes of the others. */
#include "tests/support/future_world.h"

enum { N = 4 };

static void promises(future_world *fw, ebb_future **fs, size_t n) {
    for (size_t i = 0; i < n; i++) fs[i] = ebb_promise_new(fw->host, NULL, NULL);
}

static void probed(future_world *fw, ebb_future **fs, probe *p, size_t n) {
    promises(fw, fs, n);
    for (size_t i = 0; i < n; i++) (void)probe_on(&p[i], fs[i]);
}

static ebb_value awaited(future_world *fw, ebb_future *f) {
    ebb_value v;
    assert_int_equal(ebb_await(fw->host, f, &v), EBB_OK);
    return v;
}

/* ---- all ------------------------------------------------------------------------------------------------ */

static void all_completes_with_the_outcomes_in_the_order_of_the_inputs(void **state) {
    future_world *fw = *state;
    ebb_future *fs[N];
    promises(fw, fs, N);
    ebb_future *all = ebb_all(fw->host, N, fs);
    for (int i = N; i-- > 0;) {
        future_settle(fw);
        assert_int_equal(ebb_future_state_of(all), EBB_FUTURE_PENDING);
        assert_int_equal(ebb_promise_settle(fs[i], ebb_value_int(10 + i)), EBB_OK);
    }
    future_settle(fw);
    ebb_value v = awaited(fw, all);
    size_t n = 0;
    ebb_outcome *o = ebb_outcomes_of(&v, &n);
    assert_int_equal(n, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(o[i].status, EBB_OK);
        assert_int_equal(o[i].value.as.i, 10 + i);
    }
    ebb_value_discard(fw->host, v);
}

static void all_fails_at_the_first_failure_and_cancels_the_others(void **state) {
    future_world *fw = *state;
    ebb_future *fs[N];
    probe p[N], result;
    probed(fw, fs, p, N);
    ebb_future *all = probe_on(&result, ebb_all(fw->host, N, fs));
    assert_int_equal(ebb_promise_settle(fs[2], future_fd(fw, 2)), EBB_OK);
    future_settle(fw);
    assert_int_equal(ebb_promise_reject(fs[1], EBB_ERR_LIMIT), EBB_OK);
    future_settle(fw);
    probe_failed(&result, EBB_ERR_LIMIT);
    probe_failed(&p[1], EBB_ERR_LIMIT);
    probe_cancelled(&p[0], EBB_CANCEL_SIBLING_FAILED);
    probe_cancelled(&p[3], EBB_CANCEL_SIBLING_FAILED);
    assert_int_equal(p[2].status, EBB_OK);
    assert_int_equal(future_fd_freed(fw, 2), 1); /* what was noted is disposed of at once */
    ebb_future_drop(all);
}

static void all_is_cancelled_with_an_input_and_cancels_the_others(void **state) {
    future_world *fw = *state;
    ebb_future *fs[N];
    probe p[N], result;
    probed(fw, fs, p, N);
    ebb_future *all = probe_on(&result, ebb_all(fw->host, N, fs));
    assert_int_equal(ebb_promise_reject(fs[3], EBB_CANCELLED), EBB_OK);
    future_settle(fw);
    probe_cancelled(&result, EBB_CANCEL_USER);
    for (int i = 0; i < 3; i++) probe_cancelled(&p[i], EBB_CANCEL_SIBLING_FAILED);
    ebb_future_drop(all);
}

static void cancelling_an_all_cancels_its_inputs_for_the_same_reason(void **state) {
    future_world *fw = *state;
    ebb_future *fs[N];
    probe p[N], result;
    probed(fw, fs, p, N);
    ebb_future *all = probe_on(&result, ebb_all(fw->host, N, fs));
    assert_int_equal(ebb_promise_settle(fs[0], future_fd(fw, 0)), EBB_OK);
    future_settle(fw);
    assert_true(ebb_future_cancel(all, EBB_CANCEL_DISCONNECT));
    assert_true(ebb_future_is_cancelled(all));
    future_settle(fw);
    probe_cancelled(&result, EBB_CANCEL_DISCONNECT);
    for (int i = 1; i < N; i++) probe_cancelled(&p[i], EBB_CANCEL_DISCONNECT);
    assert_int_equal(future_fd_freed(fw, 0), 1);
    ebb_future_drop(all);
}

static void all_settled_notes_every_end(void **state) {
    future_world *fw = *state;
    ebb_future *fs[N];
    promises(fw, fs, N);
    ebb_future *all = ebb_all_settled(fw->host, N, fs);
    assert_int_equal(ebb_promise_reject(fs[0], EBB_ERR_LIMIT), EBB_OK);
    assert_int_equal(ebb_promise_reject(fs[1], EBB_CANCELLED), EBB_OK);
    assert_int_equal(ebb_promise_settle(fs[2], ebb_value_int(7)), EBB_OK);
    future_settle(fw);
    assert_int_equal(ebb_future_state_of(all), EBB_FUTURE_PENDING);
    assert_int_equal(ebb_promise_settle(fs[3], future_fd(fw, 3)), EBB_OK);
    future_settle(fw);
    ebb_value v = awaited(fw, all);
    size_t n = 0;
    ebb_outcome *o = ebb_outcomes_of(&v, &n);
    assert_int_equal(n, N);
    const ebb_status expected[N] = {EBB_ERR_LIMIT, EBB_CANCELLED, EBB_OK, EBB_OK};
    for (int i = 0; i < N; i++) assert_int_equal(o[i].status, expected[i]);
    assert_int_equal(o[2].value.as.i, 7);
    ebb_value fd = ebb_value_take(fw->host, &o[3].value);
    ebb_value_discard(fw->host, v);
    future_collect(fw);
    assert_int_equal(future_fd_freed(fw, 3), 0);
    ebb_value_discard(fw->host, fd);
    assert_int_equal(future_fd_freed(fw, 3), 1);
}

static void a_list_that_nobody_keeps_disposes_of_its_values(void **state) {
    future_world *fw = *state;
    ebb_future *fs[2];
    promises(fw, fs, 2);
    ebb_future *all = ebb_all(fw->host, 2, fs);
    for (uint32_t i = 0; i < 2; i++) assert_int_equal(ebb_promise_settle(fs[i], future_fd(fw, i)), EBB_OK);
    future_settle(fw);
    ebb_value_discard(fw->host, awaited(fw, all));
    future_collect(fw);
    assert_int_equal(future_fd_freed(fw, 0), 1);
    assert_int_equal(future_fd_freed(fw, 1), 1);
}

typedef struct node {
    struct node *next;
    int number;
} node;

static void trace_node(void *object, ebb_gc_marker *t) {
    ebb_gc_mark(t, ((node *)object)->next);
}

static const ebb_type node_type = {"node", sizeof(node), trace_node, NULL, 0};

static node *node_new(future_world *fw, int number) {
    node *n = ebb_gc_new(fw->host, &node_type);
    assert_non_null(n);
    n->number = number;
    return n;
}

static void objects_in_a_pending_list_are_reachable(void **state) {
    future_world *fw = *state;
    ebb_future *fs[2];
    promises(fw, fs, 2);
    ebb_future *all = ebb_all(fw->host, 2, fs);
    for (int i = 0; i < 2; i++) {
        node *n = node_new(fw, i);
        assert_int_equal(ebb_promise_settle(fs[i], ebb_value_object(n)), EBB_OK);
        future_settle(fw);
        future_collect(fw);
    }
    ebb_value v = awaited(fw, all);
    ebb_outcome *o = ebb_outcomes_of(&v, NULL);
    for (int i = 0; i < 2; i++) assert_int_equal(((node *)o[i].value.as.p)->number, i);
    ebb_value first = ebb_value_take(fw->host, &o[0].value);
    ebb_value_discard(fw->host, v);
    future_collect(fw);
    assert_int_equal(((node *)first.as.p)->number, 0);
    ebb_value_discard(fw->host, first);
}

/* ---- race, any, select ------------------------------------------------------------------------------------ */

static void race_ends_as_the_first_and_cancels_the_others(void **state) {
    future_world *fw = *state;
    for (int failing = 0; failing < 2; failing++) {
        ebb_future *fs[N];
        probe p[N], result;
        probed(fw, fs, p, N);
        ebb_future *race = probe_on(&result, ebb_race(fw->host, N, fs));
        ebb_status st =
            failing ? ebb_promise_reject(fs[1], EBB_TIMEOUT) : ebb_promise_settle(fs[1], ebb_value_int(11));
        assert_int_equal(st, EBB_OK);
        future_settle(fw);
        if (failing) probe_failed(&result, EBB_TIMEOUT);
        else probe_completed(&result, 11);
        for (int i = 0; i < N; i++) {
            if (i != 1) probe_cancelled(&p[i], EBB_CANCEL_RACE_LOST);
        }
        ebb_future_drop(race);
    }
}

static void race_skips_the_cancelled_and_ends_with_the_last_of_them(void **state) {
    future_world *fw = *state;
    ebb_future *fs[3];
    probe result;
    promises(fw, fs, 3);
    ebb_future *race = probe_on(&result, ebb_race(fw->host, 3, fs));
    for (int i = 0; i < 3; i++) {
        probe_pending(&result);
        assert_int_equal(ebb_promise_reject(fs[i], EBB_CANCELLED), EBB_OK);
        future_settle(fw);
    }
    probe_cancelled(&result, EBB_CANCEL_USER);
    ebb_future_drop(race);
}

static void race_of_inputs_that_were_cancelled_before_ends(void **state) {
    future_world *fw = *state;
    ebb_future *(*const make[])(ebb_cx *, size_t, ebb_future *const *,
                                const char *) = {ebb_race_site, ebb_any_site, ebb_select_site};
    for (int i = 0; i < 3; i++) {
        ebb_future *fs[] = {ebb_future_failed(fw->host, EBB_CANCELLED),
                            ebb_future_failed(fw->host, EBB_CANCELLED)};
        probe result;
        if (i == 1) future_settle(fw); /* also if they have been told on */
        ebb_future *race = probe_on(&result, make[i](fw->host, 2, fs, EBB_SITE));
        future_settle(fw);
        probe_cancelled(&result, EBB_CANCEL_USER);
        ebb_future_drop(race);
    }
}

static void of_several_that_have_ended_race_takes_the_first_to_have_done_so(void **state) {
    future_world *fw = *state;
    ebb_future *fs[N];
    probe p[N], result;
    probed(fw, fs, p, N);
    assert_int_equal(ebb_promise_settle(fs[2], ebb_value_int(2)), EBB_OK);
    assert_int_equal(ebb_promise_settle(fs[0], ebb_value_int(0)), EBB_OK);
    ebb_future *race = probe_on(&result, ebb_race(fw->host, N, fs));
    future_settle(fw);
    probe_completed(&result, 2);
    ebb_future_drop(race);
    ebb_future *ended[] = {ebb_future_ready(fw->host, ebb_value_int(5)),
                           ebb_future_ready(fw->host, ebb_value_int(6))};
    future_settle(fw); /* nobody knows the order any more: by place */
    race = probe_on(&result, ebb_race(fw->host, 2, ended));
    future_settle(fw);
    probe_completed(&result, 5);
    ebb_future_drop(race);
}

static void any_skips_failures_until_one_completes(void **state) {
    future_world *fw = *state;
    ebb_future *fs[N];
    probe p[N], result;
    probed(fw, fs, p, N);
    ebb_future *any = probe_on(&result, ebb_any(fw->host, N, fs));
    assert_int_equal(ebb_promise_reject(fs[0], EBB_TIMEOUT), EBB_OK);
    assert_int_equal(ebb_promise_reject(fs[1], EBB_CANCELLED), EBB_OK);
    future_settle(fw);
    probe_pending(&result);
    assert_int_equal(ebb_promise_settle(fs[3], ebb_value_int(33)), EBB_OK);
    future_settle(fw);
    probe_completed(&result, 33);
    probe_cancelled(&p[2], EBB_CANCEL_RACE_LOST);
    ebb_future_drop(any);
}

static void any_of_which_none_completes_ends_as_the_last_failure(void **state) {
    future_world *fw = *state;
    const ebb_status ends[] = {EBB_TIMEOUT, EBB_ERR_LIMIT, EBB_CANCELLED};
    ebb_future *fs[3];
    probe result;
    promises(fw, fs, 3);
    ebb_future *any = probe_on(&result, ebb_any(fw->host, 3, fs));
    for (int i = 0; i < 3; i++) {
        probe_pending(&result);
        assert_int_equal(ebb_promise_reject(fs[i], ends[i]), EBB_OK);
        future_settle(fw);
    }
    probe_failed(&result, EBB_ERR_LIMIT);
    ebb_future_drop(any);
}

static void select_tells_which_it_was(void **state) {
    future_world *fw = *state;
    ebb_future *fs[N];
    probe p[N];
    probed(fw, fs, p, N);
    ebb_future *select = ebb_select(fw->host, N, fs);
    assert_int_equal(ebb_promise_settle(fs[3], future_fd(fw, 3)), EBB_OK);
    future_settle(fw);
    for (int i = 0; i < 3; i++) probe_cancelled(&p[i], EBB_CANCEL_RACE_LOST);
    ebb_value v = awaited(fw, select);
    ebb_selected *s = ebb_selected_of(&v);
    assert_non_null(s);
    assert_int_equal(s->index, 3);
    future_collect(fw);
    assert_int_equal(future_fd_freed(fw, 3), 0);
    ebb_value_discard(fw->host, v);
    future_collect(fw);
    assert_int_equal(future_fd_freed(fw, 3), 1);
}

static void select_that_ends_otherwise_has_no_value(void **state) {
    future_world *fw = *state;
    ebb_future *fs[2];
    probe result;
    promises(fw, fs, 2);
    ebb_future *select = probe_on(&result, ebb_select(fw->host, 2, fs));
    assert_int_equal(ebb_promise_reject(fs[1], EBB_TIMEOUT), EBB_OK);
    future_settle(fw);
    probe_failed(&result, EBB_TIMEOUT);
    ebb_future_drop(select);
    promises(fw, fs, 2);
    select = probe_on(&result, ebb_select(fw->host, 2, fs));
    assert_true(ebb_future_cancel(select, EBB_CANCEL_USER));
    future_settle(fw);
    probe_cancelled(&result, EBB_CANCEL_USER);
    ebb_future_drop(select);
}

static void a_value_is_only_what_it_is(void **state) {
    future_world *fw = *state;
    (void)fw;
    size_t n = 5;
    ebb_value v = ebb_value_int(3);
    assert_null(ebb_outcomes_of(&v, &n));
    assert_int_equal(n, 0);
    assert_null(ebb_outcomes_of(NULL, NULL));
    assert_null(ebb_selected_of(&v));
    assert_null(ebb_selected_of(NULL));
}

/* ---- within -------------------------------------------------------------------------------------------------- */

static void what_ended_in_time_is_not_late_because_the_pump_was(void **state) {
    future_world *fw = *state;
    for (int remote = 0; remote < 2; remote++) {
        ebb_remote *r = NULL;
        probe result;
        ebb_future *p = ebb_promise_new(fw->host, NULL, NULL);
        if (remote) assert_int_equal(ebb_remote_new(p, &r), EBB_OK);
        ebb_future *f = probe_on(&result, ebb_within(fw->host, p, 5 * EBB_MS));
        future_settle(fw);
        assert_int_equal(remote ? ebb_remote_settle(r, ebb_value_int(3))
                                : ebb_promise_settle(p, ebb_value_int(3)),
                         EBB_OK);
        ebb_runtime_advance(fw->rt, ebb_now(fw->host) + 6 * EBB_MS);
        future_settle(fw);
        probe_completed(&result, 3);
        ebb_remote_release(r);
        ebb_future_drop(f);
    }
}

/* ---- traverse ------------------------------------------------------------------------------------------------ */

typedef struct tour {
    future_world *fw;
    ebb_future *made[32];
    size_t calls, out_of_order;
    size_t n, pending, most;
    size_t null_at, fail_at;
} tour;

static void one_less(ebb_cx *cx, void *arg) {
    (void)cx;
    ((tour *)arg)->pending--;
}

static ebb_future *visit(ebb_cx *cx, size_t i, void *arg) {
    tour *t = arg;
    if (i != t->calls++) t->out_of_order++;
    if (i == t->null_at) return NULL;
    if (i == t->fail_at) return ebb_future_failed(cx, EBB_ERR_LIMIT);
    ebb_future *f = ebb_promise_new(cx, NULL, NULL);
    (void)ebb_future_on_cleanup(f, one_less, t);
    t->made[t->n++] = ebb_future_keep(f);
    if (++t->pending > t->most) t->most = t->pending;
    return f;
}

static void traverse_has_at_most_so_many_pending(void **state) {
    future_world *fw = *state;
    enum { ALL = 20, AT_ONCE = 3 };
    tour t = {.fw = fw, .null_at = ALL, .fail_at = ALL};
    ebb_future *f = ebb_traverse(fw->host, ALL, AT_ONCE, visit, &t);
    assert_int_equal(t.n, 0); /* not in the call that makes it */
    future_settle(fw);
    assert_int_equal(t.n, AT_ONCE);
    for (size_t i = 0; i < ALL; i++) {
        size_t last = t.n - 1; /* not in order */
        while (ebb_future_state_of(t.made[last]) != EBB_FUTURE_PENDING) last--;
        assert_int_equal(ebb_promise_settle(t.made[last], ebb_value_int((int64_t)last * 2)), EBB_OK);
        future_settle(fw);
    }
    assert_int_equal(t.most, AT_ONCE);
    assert_int_equal(t.out_of_order, 0);
    ebb_value v = awaited(fw, f);
    size_t n = 0;
    ebb_outcome *o = ebb_outcomes_of(&v, &n);
    assert_int_equal(n, ALL);
    for (size_t i = 0; i < ALL; i++) {
        assert_int_equal(o[i].value.as.i, 2 * i);
        ebb_future_drop(t.made[i]);
    }
    ebb_value_discard(fw->host, v);
}

static void traverse_that_fails_makes_no_more_and_cancels_what_is_pending(void **state) {
    future_world *fw = *state;
    tour t = {.fw = fw, .null_at = 99, .fail_at = 5};
    probe result, p[4];
    ebb_future *f = probe_on(&result, ebb_traverse(fw->host, 9, 4, visit, &t));
    future_settle(fw);
    for (int i = 0; i < 4; i++) (void)probe_on(&p[i], t.made[i]);
    assert_int_equal(ebb_promise_settle(t.made[1], future_fd(fw, 1)), EBB_OK);
    future_settle(fw);
    assert_int_equal(ebb_promise_settle(t.made[2], future_fd(fw, 2)), EBB_OK);
    future_settle(fw);
    probe_failed(&result, EBB_ERR_LIMIT);
    assert_int_equal(t.n, 5);
    assert_int_equal(t.pending, 0);
    probe_cancelled(&p[0], EBB_CANCEL_SIBLING_FAILED);
    probe_cancelled(&p[3], EBB_CANCEL_SIBLING_FAILED);
    for (size_t i = 0; i < t.n; i++) ebb_future_drop(t.made[i]);
    ebb_future_drop(f);
}

static void cancelling_a_traverse_cancels_what_is_pending_and_makes_no_more(void **state) {
    future_world *fw = *state;
    tour t = {.fw = fw, .null_at = 99, .fail_at = 99};
    probe result;
    ebb_future *f = probe_on(&result, ebb_traverse(fw->host, 9, 2, visit, &t));
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER)); /* before anything was made */
    future_settle(fw);
    assert_int_equal(t.n, 0);
    ebb_future_drop(f);
    f = probe_on(&result, ebb_traverse(fw->host, 9, 2, visit, &t));
    future_settle(fw);
    assert_int_equal(t.n, 2);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_TIMEOUT));
    future_settle(fw);
    probe_cancelled(&result, EBB_CANCEL_TIMEOUT);
    assert_int_equal(t.n, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(ebb_future_cancel_kind_of(t.made[i]), EBB_CANCEL_TIMEOUT);
        ebb_future_drop(t.made[i]);
    }
    ebb_future_drop(f);
}

static void traverse_whose_callback_returns_nothing_is_invalid(void **state) {
    future_world *fw = *state;
    tour t = {.fw = fw, .null_at = 1, .fail_at = 99};
    probe result;
    ebb_future *f = probe_on(&result, ebb_traverse(fw->host, 9, 9, visit, &t));
    future_settle(fw);
    probe_failed(&result, EBB_ERR_INVALID);
    assert_int_equal(t.calls, 2);
    assert_int_equal(t.pending, 0);
    for (size_t i = 0; i < t.n; i++) ebb_future_drop(t.made[i]);
    ebb_future_drop(f);
}

static ebb_future *square(ebb_cx *cx, size_t i, void *arg) {
    (void)arg;
    return ebb_future_ready(cx, ebb_value_int((int64_t)(i * i)));
}

static void traverse_of_a_crowd_takes_a_bounded_number_of_steps_a_turn(void **state) {
    future_world *fw = *state;
    size_t n = future_crowd(100000, 150);
    ebb_future *f = ebb_traverse(fw->host, n, n, square, NULL);
    uint32_t polls = 0;
    while (ebb_future_state_of(f) == EBB_FUTURE_PENDING) {
        (void)ebb_runtime_pump(fw->rt, 1);
        polls++;
    }
    if (n > 4096) assert_true(polls >= n / 4096);
    future_settle(fw);
    ebb_value v = awaited(fw, f);
    ebb_outcome *o = ebb_outcomes_of(&v, NULL);
    for (size_t i = 0; i < n; i++) assert_int_equal(o[i].value.as.i, i * i);
    ebb_value_discard(fw->host, v);
}

/* ---- retry ---------------------------------------------------------------------------------------------------- */

typedef struct tries {
    future_world *fw;
    uint64_t at[16];
    uint32_t n, asked, completes_at, cancelled_at, null_at, out_of_order;
    bool later;
} tries;

static ebb_future *try_it(ebb_cx *cx, uint32_t attempt, void *arg) {
    tries *t = arg;
    if (attempt != t->n) t->out_of_order++;
    t->at[t->n++] = ebb_now(cx);
    if (attempt == t->null_at) return NULL;
    if (attempt == t->cancelled_at) return ebb_future_failed(cx, EBB_CANCELLED);
    if (attempt == t->completes_at) return ebb_future_ready(cx, ebb_value_int(attempt));
    if (t->later) return ebb_within(cx, ebb_future_never(cx), EBB_MS);
    return ebb_future_failed(cx, attempt % 2 == 0 ? EBB_ERR_LIMIT : EBB_FAILED);
}

enum { NEVER = 1000 };

static void retry_tries_until_one_completes(void **state) {
    future_world *fw = *state;
    tries t = {.fw = fw, .completes_at = 3, .cancelled_at = NEVER, .null_at = NEVER};
    probe result;
    ebb_retry_opts opts = {.attempts = 9, .pause = 0};
    ebb_future *f = probe_on(&result, ebb_retry(fw->host, &opts, try_it, &t));
    assert_int_equal(t.n, 0); /* not in the call that makes it */
    future_settle(fw);
    probe_completed(&result, 3);
    assert_int_equal(t.n, 4);
    assert_int_equal(t.out_of_order, 0);
    ebb_future_drop(f);
}

static void retry_ends_as_the_last_attempt(void **state) {
    future_world *fw = *state;
    for (uint32_t attempts = 1; attempts < 5; attempts++) {
        tries t = {.fw = fw, .completes_at = NEVER, .cancelled_at = NEVER, .null_at = NEVER};
        probe result;
        ebb_retry_opts opts = {.attempts = attempts, .pause = EBB_MS};
        ebb_future *f = probe_on(&result, ebb_retry(fw->host, &opts, try_it, &t));
        future_pass(fw, EBB_SECOND);
        probe_failed(&result, attempts % 2 == 1 ? EBB_ERR_LIMIT : EBB_FAILED);
        assert_int_equal(t.n, attempts);
        ebb_future_drop(f);
    }
}

static bool not_failed(ebb_status st, void *arg) {
    tries *t = arg;
    t->asked++;
    return st != EBB_FAILED;
}

static void retry_ends_when_another_attempt_is_not_worth_it(void **state) {
    future_world *fw = *state;
    tries t = {.fw = fw, .completes_at = NEVER, .cancelled_at = NEVER, .null_at = NEVER};
    probe result;
    ebb_retry_opts opts = {.attempts = 9, .again = not_failed};
    ebb_future *f = probe_on(&result, ebb_retry(fw->host, &opts, try_it, &t));
    future_settle(fw);
    probe_failed(&result, EBB_FAILED); /* of the second attempt */
    assert_true(t.n == 2 && t.asked == 2);
    ebb_future_drop(f);
}

static void retry_pauses_longer_each_time_up_to_the_longest(void **state) {
    future_world *fw = *state;
    tries t = {.fw = fw, .completes_at = 6, .cancelled_at = NEVER, .null_at = NEVER, .later = true};
    probe result;
    ebb_retry_opts opts = {.attempts = 10, .factor = 3, .pause = 2 * EBB_MS, .max_pause = 30 * EBB_MS};
    ebb_future *f = probe_on(&result, ebb_retry(fw->host, &opts, try_it, &t));
    future_pass(fw, EBB_SECOND);
    probe_completed(&result, 6);
    const uint64_t pauses[] = {2, 6, 18, 30, 30, 30};
    for (int i = 0; i < 6; i++) assert_int_equal(t.at[i + 1] - t.at[i], (1 + pauses[i]) * EBB_MS);
    ebb_future_drop(f);
}

static void retry_with_pauses_that_grow_past_all_time_does_not_overflow(void **state) {
    future_world *fw = *state;
    tries t = {.fw = fw, .completes_at = NEVER, .cancelled_at = NEVER, .null_at = NEVER};
    probe result;
    ebb_retry_opts opts = {.attempts = 10, .factor = UINT32_MAX, .pause = INT64_MAX / 2};
    ebb_future *f = probe_on(&result, ebb_retry(fw->host, &opts, try_it, &t));
    future_settle(fw);
    ebb_runtime_advance(fw->rt, INT64_MAX / 2 + EBB_SECOND);
    future_settle(fw);
    assert_int_equal(t.n, 2);
    probe_pending(&result);
    ebb_runtime_advance(fw->rt, INT64_MAX);
    future_settle(fw);
    assert_int_equal(t.n, 2);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    future_settle(fw);
    probe_cancelled(&result, EBB_CANCEL_USER);
    ebb_future_drop(f);
}

static void retry_is_cancelled_with_an_attempt(void **state) {
    future_world *fw = *state;
    tries t = {.fw = fw, .completes_at = NEVER, .cancelled_at = 2, .null_at = NEVER};
    probe result;
    ebb_retry_opts opts = {.attempts = 9};
    ebb_future *f = probe_on(&result, ebb_retry(fw->host, &opts, try_it, &t));
    future_settle(fw);
    probe_cancelled(&result, EBB_CANCEL_USER);
    assert_int_equal(t.n, 3);
    ebb_future_drop(f);
}

static void cancelling_a_retry_stops_it_in_a_pause_and_in_an_attempt(void **state) {
    future_world *fw = *state;
    for (uint64_t when = 0; when < 12; when++) { /* an attempt takes 1 ms, a pause 2 */
        tries t = {.fw = fw, .completes_at = NEVER, .cancelled_at = NEVER, .null_at = NEVER, .later = true};
        probe result;
        ebb_retry_opts opts = {.attempts = 9, .pause = 2 * EBB_MS};
        ebb_future *f = probe_on(&result, ebb_retry(fw->host, &opts, try_it, &t));
        if (when > 0) future_pass(fw, when * EBB_MS);
        uint32_t n = t.n;
        assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
        future_pass(fw, 20 * EBB_MS);
        probe_cancelled(&result, EBB_CANCEL_USER);
        assert_int_equal(t.n, n);
        ebb_future_drop(f);
    }
}

static void retry_whose_callback_returns_nothing_is_invalid_at_once(void **state) {
    future_world *fw = *state;
    tries t = {.fw = fw, .completes_at = NEVER, .cancelled_at = NEVER, .null_at = 1};
    probe result;
    ebb_retry_opts opts = {.attempts = 9};
    ebb_future *f = probe_on(&result, ebb_retry(fw->host, &opts, try_it, &t));
    future_settle(fw);
    probe_failed(&result, EBB_ERR_INVALID);
    assert_int_equal(t.n, 2);
    ebb_future_drop(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FUTURES(all_completes_with_the_outcomes_in_the_order_of_the_inputs),
        IN_FUTURES(all_fails_at_the_first_failure_and_cancels_the_others),
        IN_FUTURES(all_is_cancelled_with_an_input_and_cancels_the_others),
        IN_FUTURES(cancelling_an_all_cancels_its_inputs_for_the_same_reason),
        IN_FUTURES(all_settled_notes_every_end),
        IN_FUTURES(a_list_that_nobody_keeps_disposes_of_its_values),
        IN_FUTURES(objects_in_a_pending_list_are_reachable),
        IN_FUTURES(race_ends_as_the_first_and_cancels_the_others),
        IN_FUTURES(race_skips_the_cancelled_and_ends_with_the_last_of_them),
        IN_FUTURES(race_of_inputs_that_were_cancelled_before_ends),
        IN_FUTURES(of_several_that_have_ended_race_takes_the_first_to_have_done_so),
        IN_FUTURES(any_skips_failures_until_one_completes),
        IN_FUTURES(any_of_which_none_completes_ends_as_the_last_failure),
        IN_FUTURES(select_tells_which_it_was),
        IN_FUTURES(select_that_ends_otherwise_has_no_value),
        IN_FUTURES(a_value_is_only_what_it_is),
        IN_FUTURES(what_ended_in_time_is_not_late_because_the_pump_was),
        IN_FUTURES(traverse_has_at_most_so_many_pending),
        IN_FUTURES(traverse_that_fails_makes_no_more_and_cancels_what_is_pending),
        IN_FUTURES(cancelling_a_traverse_cancels_what_is_pending_and_makes_no_more),
        IN_FUTURES(traverse_whose_callback_returns_nothing_is_invalid),
        IN_FUTURES(traverse_of_a_crowd_takes_a_bounded_number_of_steps_a_turn),
        IN_FUTURES(retry_tries_until_one_completes),
        IN_FUTURES(retry_ends_as_the_last_attempt),
        IN_FUTURES(retry_ends_when_another_attempt_is_not_worth_it),
        IN_FUTURES(retry_pauses_longer_each_time_up_to_the_longest),
        IN_FUTURES(retry_with_pauses_that_grow_past_all_time_does_not_overflow),
        IN_FUTURES(retry_is_cancelled_with_an_attempt),
        IN_FUTURES(cancelling_a_retry_stops_it_in_a_pause_and_in_an_attempt),
        IN_FUTURES(retry_whose_callback_returns_nothing_is_invalid_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
