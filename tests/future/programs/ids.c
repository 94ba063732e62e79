/* The tests that the source of the futures names: UT-01 to UT-12, AS-03 to AS-05.
 *
 * usage: future.ids [ID] */
#include "tests/support/future_world.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MILLION = 1000 * 1000, STACK_BYTES = 256 * 1024 };

static ebb_value add_one(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    if (arg != NULL) ++*(size_t *)arg;
    return ebb_value_int(v->as.i + 1);
}

static ebb_future *add_one_later(ebb_cx *cx, ebb_value *v, void *arg) {
    if (arg != NULL) ++*(size_t *)arg;
    return ebb_future_ready(cx, ebb_value_int(v->as.i + 1));
}

static ebb_future *map(future_world *fw, ebb_future *f, size_t *calls) {
    return ebb_map(fw->host, f, add_one, calls);
}

/* ---- UT-01 to UT-09 ------------------------------------------------------------------------------------------ */

static void cancelling_a_pending_future_shows_at_once(void **state) {
    future_world *fw = *state;
    ebb_future *f = ebb_promise_new(fw->host, NULL, NULL);
    assert_int_equal(ebb_future_state_of(f), EBB_FUTURE_PENDING);
    assert_int_equal(ebb_future_status_of(f), EBB_PENDING);
    assert_false(ebb_future_is_cancelled(f));
    assert_true(ebb_future_cancel(f, EBB_CANCEL_TIMEOUT));
    assert_int_equal(ebb_future_state_of(f), EBB_FUTURE_CANCELLED);
    assert_int_equal(ebb_future_status_of(f), EBB_CANCELLED);
    assert_int_equal(ebb_future_cancel_kind_of(f), EBB_CANCEL_TIMEOUT);
    assert_true(ebb_future_is_cancelled(f));
    assert_false(ebb_future_cancel(f, EBB_CANCEL_USER));
    assert_int_equal(ebb_future_cancel_kind_of(f), EBB_CANCEL_TIMEOUT);
    ebb_future_drop(f);
}

static void cancelling_a_then_cancels_its_source(void **state) {
    future_world *fw = *state;
    size_t calls = 0;
    probe p[4];
    ebb_future *f = probe_on(&p[0], ebb_promise_new(fw->host, NULL, NULL));
    f = probe_on(&p[1], ebb_then(fw->host, f, add_one_later, &calls));
    f = probe_on(&p[2], map(fw, f, &calls));
    f = probe_on(&p[3], ebb_then(fw->host, f, add_one_later, &calls));
    assert_true(ebb_future_cancel(f, EBB_CANCEL_DISCONNECT));
    future_settle(fw);
    for (int i = 0; i < 4; i++) probe_cancelled(&p[i], EBB_CANCEL_DISCONNECT);
    assert_int_equal(calls, 0);
    ebb_future_drop(f);
}

static void cancelling_one_of_several_inputs_cancels(void **state, bool race) {
    future_world *fw = *state;
    probe p[5], inner[2];
    ebb_future *fs[5];
    for (int i = 0; i < 3; i++) fs[i] = probe_on(&p[i], ebb_promise_new(fw->host, NULL, NULL));
    ebb_future *two[] = {probe_on(&inner[0], ebb_promise_new(fw->host, NULL, NULL)),
                         probe_on(&inner[1], ebb_after(fw->host, EBB_SECOND))};
    fs[3] = probe_on(&p[3], race ? ebb_all(fw->host, 2, two) : ebb_race(fw->host, 2, two));
    fs[4] = probe_on(&p[4], ebb_after(fw->host, EBB_SECOND));
    ebb_future *f = race ? ebb_race(fw->host, 5, fs) : ebb_all(fw->host, 5, fs);
    future_settle(fw);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_SHUTDOWN));
    future_settle(fw);
    for (int i = 0; i < 5; i++) probe_cancelled(&p[i], EBB_CANCEL_SHUTDOWN);
    for (int i = 0; i < 2; i++) probe_cancelled(&inner[i], EBB_CANCEL_SHUTDOWN);
    assert_int_equal(ebb_runtime_next_due(fw->rt), EBB_FOREVER); /* no timer is left */
    ebb_future_drop(f);
}

static void cancelling_an_all_cancels_all_inputs(void **state) {
    cancelling_one_of_several_inputs_cancels(state, false);
}

static void cancelling_a_race_cancels_all_inputs(void **state) {
    cancelling_one_of_several_inputs_cancels(state, true);
}

typedef struct worker {
    ebb_future *f;
    uint32_t steps;
} worker;

/* One that looks whether it still should, as an operation that polls does. */
static ebb_status work_on(ebb_cx *cx, void *state) {
    worker *w = state;
    if (ebb_future_is_cancelled(w->f)) {
        (void)ebb_promise_settle(w->f, ebb_value_none());
        return EBB_OK;
    }
    w->steps++;
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

static const ebb_operation polling = {"polling", NULL, NULL};

static void a_timer_and_a_worker_that_are_cancelled_stop_early(void **state) {
    future_world *fw = *state;
    size_t calls = 0;
    probe p;
    ebb_future *f = probe_on(&p, map(fw, ebb_after(fw->host, EBB_SECOND), &calls));
    future_pass(fw, EBB_MS);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    future_settle(fw);
    assert_int_equal(ebb_runtime_next_due(fw->rt), EBB_FOREVER);
    future_pass(fw, 2 * EBB_SECOND);
    probe_cancelled(&p, EBB_CANCEL_USER);
    assert_int_equal(calls, 0);
    assert_int_equal(ebb_runtime_next_due(fw->rt), EBB_FOREVER);
    worker w = {.f = ebb_promise_new(fw->host, &polling, NULL)};
    (void)ebb_spawn(fw->host, fw->root, work_on, &w);
    (void)ebb_runtime_pump(fw->rt, 10);
    uint32_t steps = w.steps;
    assert_true(steps > 0);
    assert_true(ebb_future_cancel(w.f, EBB_CANCEL_USER));
    future_settle(fw);
    assert_int_equal(w.steps, steps);
    ebb_future_drop(w.f);
    ebb_future_drop(f);
}

typedef struct order {
    int n, at[8];
} order;

typedef struct said {
    order *o;
    int number;
} said;

static void note(said *s) {
    s->o->at[s->o->n++] = s->number;
}
static void on_cancel(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    (void)cx;
    if (kind == EBB_CANCEL_BUDGET) note(arg);
}
static void on_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)cx;
    (void)st;
    (void)v;
    note(arg);
}
static void on_cleanup(ebb_cx *cx, void *arg) {
    (void)cx;
    note(arg);
}

static void on_cancel_is_called_once_in_order_and_not_in_the_call(void **state) {
    future_world *fw = *state;
    order o = {.n = 0};
    said s[4];
    ebb_future *f = ebb_promise_new(fw->host, NULL, NULL);
    for (int i = 0; i < 4; i++) {
        s[i] = (said){&o, i};
        assert_int_equal(i == 1 ? ebb_future_on_done(f, on_done, &s[i])
                                : ebb_future_on_cancel(f, on_cancel, &s[i]),
                         EBB_OK);
    }
    assert_true(ebb_future_cancel(f, EBB_CANCEL_BUDGET));
    assert_int_equal(o.n, 0);
    future_settle(fw);
    assert_int_equal(o.n, 3); /* FR-9: on_done is not called */
    assert_int_equal(o.at[0], 0);
    assert_int_equal(o.at[1], 2);
    assert_int_equal(o.at[2], 3);
    assert_int_equal(ebb_future_on_cancel(f, on_cancel, &s[1]), EBB_OK); /* late: soon */
    assert_int_equal(o.n, 3);
    future_settle(fw);
    assert_int_equal(o.n, 4);
    ebb_future_drop(f);
}

static void cleanups_run_on_every_end_the_last_first(void **state) {
    future_world *fw = *state;
    for (int how = 0; how < 3; how++) {
        order o = {.n = 0};
        said s[3];
        ebb_future *f = ebb_promise_new(fw->host, NULL, NULL);
        for (int i = 0; i < 3; i++) {
            s[i] = (said){&o, i};
            assert_int_equal(ebb_future_on_cleanup(f, on_cleanup, &s[i]), EBB_OK);
        }
        if (how == 0) assert_int_equal(ebb_promise_settle(f, ebb_value_none()), EBB_OK);
        if (how == 1) assert_int_equal(ebb_promise_reject(f, EBB_FAILED), EBB_OK);
        if (how == 2) assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
        assert_int_equal(o.n, 0);
        future_settle(fw);
        assert_int_equal(o.n, 3);
        for (int i = 0; i < 3; i++) assert_int_equal(o.at[i], 2 - i);
        ebb_future_drop(f);
    }
}

static void what_has_ended_can_not_be_cancelled(void **state, bool failed) {
    future_world *fw = *state;
    for (int told = 0; told < 2; told++) {
        probe p;
        ebb_future *f = probe_on(&p, ebb_promise_new(fw->host, NULL, NULL));
        assert_int_equal(
            failed ? ebb_promise_reject(f, EBB_TIMEOUT) : ebb_promise_settle(f, ebb_value_int(2)), EBB_OK);
        if (told) future_settle(fw);
        assert_false(ebb_future_cancel(f, EBB_CANCEL_USER));
        assert_int_equal(ebb_future_state_of(f), failed ? EBB_FUTURE_FAILED : EBB_FUTURE_COMPLETED);
        assert_int_equal(ebb_future_cancel_kind_of(f), EBB_CANCEL_NONE);
        future_settle(fw);
        if (failed) probe_failed(&p, EBB_TIMEOUT);
        else probe_completed(&p, 2);
        ebb_future_drop(f);
    }
}

static void cancelling_a_completed_future_returns_false(void **state) {
    what_has_ended_can_not_be_cancelled(state, false);
}

static void cancelling_a_failed_future_returns_false(void **state) {
    what_has_ended_can_not_be_cancelled(state, true);
}

/* ---- UT-10, UT-12: on a small stack ---------------------------------------------------------------------------- */

/* What runs there may not use cmocka, which jumps: it says what is wrong, NULL if nothing is. */
typedef const char *on_small_stack(future_world *fw, size_t n);

typedef struct job {
    on_small_stack *run;
    future_world *fw;
    size_t n;
    const char *wrong;
} job;

static void *run_job(void *arg) {
    job *j = arg;
    j->wrong = ebb_runtime_adopt(j->fw->rt) == EBB_OK ? j->run(j->fw, j->n) : "the thread can't have it";
    return NULL;
}

static void run_on_small_stack(future_world *fw, on_small_stack *run) {
    job j = {run, fw, future_crowd(MILLION, 200), NULL};
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attr, run_job, &j), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_attr_destroy(&attr);
    assert_int_equal(ebb_runtime_adopt(fw->rt), EBB_OK);
    if (j.wrong != NULL) fail_msg("%s", j.wrong);
}

/* In turns of one poll each, none of which may do more than a bounded part of a large job. */
static bool pump_all(future_world *fw, size_t *turns) {
    *turns = 0;
    for (size_t i = 0; i < 100000; i++, ++*turns) {
        if (ebb_runtime_pump(fw->rt, 1) == EBB_OK) return true;
    }
    return false;
}

static const char *all_in_turns(future_world *fw, size_t n) {
    size_t turns;
    if (!pump_all(fw, &turns)) return "the pump does not end";
    return turns < n / 8192 ? "a turn has no bound" : NULL;
}

static ebb_future *chain(future_world *fw, size_t n, ebb_future **source, size_t *calls) {
    ebb_future *f = *source = ebb_future_keep(ebb_promise_new(fw->host, NULL, NULL));
    for (size_t i = 0; i < n; i++) f = map(fw, f, calls);
    return f;
}

static const char *chains(future_world *fw, size_t n) {
    size_t calls = 0;
    ebb_value v;
    ebb_future *source, *f = chain(fw, n, &source, &calls);
    if (ebb_promise_settle(source, ebb_value_int(0)) != EBB_OK) return "it can't be settled";
    const char *wrong = all_in_turns(fw, n);
    if (wrong != NULL) return wrong;
    if (ebb_await(fw->host, f, &v) != EBB_OK || v.as.i != (int64_t)n) return "the value is another";
    if (calls != n) return "not every callback ran once";
    ebb_future_drop(source);

    f = chain(fw, n, &source, &calls); /* from the end: down to the source */
    if (!ebb_future_cancel(f, EBB_CANCEL_USER)) return "it can't be cancelled";
    if ((wrong = all_in_turns(fw, n)) != NULL) return wrong;
    if (ebb_future_cancel_kind_of(source) != EBB_CANCEL_USER) return "the cancel has not reached the source";
    (void)ebb_promise_reject(source, EBB_CANCELLED);
    ebb_future_drop(source);
    ebb_future_drop(f);

    f = chain(fw, n, &source, &calls); /* from the source: up to the end */
    if (ebb_promise_reject(source, EBB_TIMEOUT) != EBB_OK) return "it can't be rejected";
    if ((wrong = all_in_turns(fw, n)) != NULL) return wrong;
    if (ebb_await(fw->host, f, NULL) != EBB_TIMEOUT) return "the failure has not reached the end";
    if (calls != n) return "a callback ran after a cancel or a failure";
    ebb_future_drop(source);

    f = ebb_future_ready(fw->host, ebb_value_int(0)); /* futures that are nested as deep */
    for (size_t i = 0; i < n; i++) f = ebb_future_ready(fw->host, ebb_value_future(f));
    if ((wrong = all_in_turns(fw, n)) != NULL) return wrong;
    return ebb_await(fw->host, f, NULL) == EBB_OK ? NULL : "the nested ones have not ended";
}

static const char *dropped_chain(future_world *fw, size_t n) {
    size_t calls = 0, turns;
    ebb_future *source;
    ebb_future_drop(chain(fw, n, &source, &calls));
    ebb_future_drop(source);
    if (ebb_gc_collect(fw->rt) != EBB_OK || !pump_all(fw, &turns)) return "the pump does not end";
    if (ebb_promise_settle(source, ebb_value_none()) != EBB_CANCELLED) return "it was not dropped";
    if (ebb_gc_collect(fw->rt) != EBB_OK) return "it can't be collected";
    return future_stats(fw).live == 0 ? NULL : "something is left";
}

static void a_deep_graph_is_processed_without_recursion(void **state) {
    run_on_small_stack(*state, chains);
    run_on_small_stack(*state, dropped_chain);
    assert_int_equal(future_stats(*state).live, 0);
}

typedef ebb_future *many_fn(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site);

/* A million inputs of one, ended in every way. */
static const char *fan_in(future_world *fw, size_t n, many_fn *make, ebb_future **fs) {
    const char *wrong;
    for (int how = 0; how < 4; how++) {
        for (size_t i = 0; i < n; i++) fs[i] = ebb_future_never(fw->host);
        ebb_future_drop(fs[n / 2]);
        ebb_future *one = fs[n / 2] = ebb_promise_new(fw->host, NULL, NULL);
        ebb_future *last = ebb_future_keep(fs[n - 1]), *f = make(fw->host, n, fs, EBB_SITE);
        if (how == 0) (void)ebb_future_cancel(f, EBB_CANCEL_USER);
        (void)(how < 2 ? ebb_promise_settle(one, ebb_value_none())
                       : ebb_promise_reject(one, how == 2 ? EBB_TIMEOUT : EBB_CANCELLED));
        (void)ebb_runtime_pump(fw->rt, 1);
        if (n > 10000 && ebb_future_state_of(last) != EBB_FUTURE_PENDING)
            return "one turn lets go of all inputs";
        if ((wrong = all_in_turns(fw, how == 0 ? n : 0)) != NULL) return wrong;
        if (how == 0 && ebb_future_cancel_kind_of(last) != EBB_CANCEL_USER)
            return "the last was not cancelled";
        if (ebb_future_state_of(f) == EBB_FUTURE_PENDING) (void)ebb_future_cancel(f, EBB_CANCEL_USER);
        if ((wrong = all_in_turns(fw, 0)) != NULL) return wrong;
        if (ebb_future_state_of(last) != EBB_FUTURE_CANCELLED) return "one is left";
        ebb_future_drop(last);
        ebb_future_drop(f);
    }
    for (size_t i = 0; i < n; i++) fs[i] = ebb_future_ready(fw->host, ebb_value_int((int64_t)i));
    if ((wrong = all_in_turns(fw, n)) != NULL) return wrong;
    ebb_future *f = make(fw->host, n, fs, EBB_SITE);
    (void)ebb_runtime_pump(fw->rt, 1);
    bool early = ebb_future_state_of(f) != EBB_FUTURE_PENDING;
    if ((wrong = all_in_turns(fw, 0)) != NULL) return wrong;
    ebb_value v;
    if (ebb_await(fw->host, f, &v) != EBB_OK) return "it has not completed";
    if (n > 10000 && early && ebb_outcomes_of(&v, NULL) != NULL) return "one turn hears of all inputs";
    size_t many = 0;
    const ebb_outcome *o = ebb_outcomes_of(&v, &many);
    for (size_t i = 0; i < many; i++) {
        if (o[i].value.as.i != (int64_t)i) return "a value is another";
    }
    ebb_value_discard(fw->host, v);
    return NULL;
}

static const char *fans(future_world *fw, size_t n) {
    many_fn *const makes[] = {ebb_all_site, ebb_all_settled_site, ebb_race_site, ebb_any_site,
                              ebb_select_site};
    ebb_future **fs = calloc(n, sizeof(void *));
    const char *wrong = NULL;
    for (int i = 0; i < 5 && wrong == NULL; i++) wrong = fan_in(fw, n, makes[i], fs);
    free((void *)fs);
    return wrong;
}

/* A million that wait for one. */
static const char *fan_out(future_world *fw, size_t n) {
    ebb_future **fs = calloc(n, sizeof(void *));
    const char *wrong = NULL;
    size_t calls = 0;
    for (int how = 0; how < 2; how++) {
        ebb_future *f = ebb_future_share(ebb_promise_new(fw->host, NULL, NULL));
        for (size_t i = 0; i < n; i++) fs[i] = map(fw, ebb_future_keep(f), &calls);
        if (how == 0) (void)ebb_promise_settle(f, ebb_value_int(1));
        else (void)ebb_future_cancel(f, EBB_CANCEL_USER);
        wrong = all_in_turns(fw, n);
        for (size_t i = 0; i < n && wrong == NULL; i++) {
            ebb_status st = ebb_await(fw->host, fs[i], NULL);
            if (st != (how == 0 ? EBB_OK : EBB_CANCELLED)) wrong = "one was not told";
        }
        if (how == 1) (void)ebb_promise_reject(f, EBB_CANCELLED);
        ebb_future_drop(f);
        if (wrong != NULL) break;
    }
    free((void *)fs);
    return wrong != NULL || calls == n ? wrong : "not every callback ran once";
}

static void the_queue_holds_graphs_of_any_size(void **state) {
    run_on_small_stack(*state, fans);
    run_on_small_stack(*state, fan_out);
    future_collect(*state);
    assert_int_equal(future_stats(*state).live, 0);
}

/* ---- UT-11, AS-05: threads ------------------------------------------------------------------------------------------ */

enum { THREADS = 3, REMOTES = 64 };

typedef struct shared {
    ebb_remote *remote[REMOTES];
    uint32_t n;
    _Atomic uint32_t wins, gone_back, start;
    bool settles;
} shared;

static bool is_end(ebb_future_state s) {
    return s >= EBB_FUTURE_COMPLETED;
}

/* Reads, cancels or settles, reads again: an end that is seen once is seen for ever. */
static void *meddle(void *arg) {
    shared *s = arg;
    uint32_t me = atomic_fetch_add(&s->start, 1);
    while (atomic_load(&s->start) < THREADS) continue;
    for (uint32_t k = 0; k < s->n; k++) {
        ebb_remote *r = s->remote[(k * 7 + me) % s->n];
        ebb_future_state before = ebb_remote_state(r);
        bool won = s->settles && me == 0 ? ebb_remote_settle(r, ebb_value_int(k)) == EBB_OK
                                         : ebb_remote_cancel(r, EBB_CANCEL_USER);
        ebb_future_state after = ebb_remote_state(r);
        if (won) atomic_fetch_add(&s->wins, 1);
        if (won && is_end(before)) atomic_fetch_add(&s->gone_back, 1);
        if (is_end(before) && after != before) atomic_fetch_add(&s->gone_back, 1);
        if (after == EBB_FUTURE_PENDING) atomic_fetch_add(&s->gone_back, 1);
    }
    for (uint32_t k = 0; k < s->n; k++) ebb_remote_release(ebb_remote_keep(s->remote[k]));
    return NULL;
}

static void run_threads(shared *s, pthread_t *t) {
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, meddle, s), 0);
}

static void join_threads(pthread_t *t) {
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
}

static void whether_it_is_cancelled_is_one_atomic_word(void **state) {
    future_world *fw = *state;
    for (int round = 0; round < 20; round++) {
        shared s = {.n = REMOTES, .settles = round % 2 == 1};
        ebb_future *f[REMOTES];
        probe p[REMOTES];
        pthread_t t[THREADS];
        for (uint32_t i = 0; i < REMOTES; i++) {
            f[i] = probe_on(&p[i], ebb_promise_new(fw->host, NULL, NULL));
            assert_int_equal(ebb_remote_new(f[i], &s.remote[i]), EBB_OK);
        }
        run_threads(&s, t);
        bool all = false; /* the owner sees it at once too, before anything is taken in */
        while (!all) {
            all = true;
            for (int i = 0; i < REMOTES; i++) all = all && is_end(ebb_future_state_of(f[i]));
        }
        join_threads(t);
        assert_int_equal(s.wins, REMOTES);
        assert_int_equal(s.gone_back, 0);
        for (int i = 0; i < REMOTES; i++) probe_pending(&p[i]);
        future_settle(fw);
        for (int i = 0; i < REMOTES; i++) {
            assert_int_equal(p[i].done + p[i].cancels, 1);
            assert_int_equal(p[i].cleanups, 1);
            assert_int_equal(p[i].cancels, ebb_future_is_cancelled(f[i]));
            if (p[i].cancels == 1 && !s.settles)
                assert_int_equal(ebb_promise_settle(f[i], ebb_value_none()), EBB_CANCELLED);
            ebb_remote_release(s.remote[i]);
            ebb_future_drop(f[i]);
        }
        future_settle(fw);
    }
    future_collect(fw);
    assert_int_equal(future_stats(fw).live, 0);
}

/* The owner and another thread end the same futures at the same time, one after the other. */
typedef struct duel {
    ebb_remote **remote;
    size_t n, won;
    _Atomic size_t ready, at;
} duel;

/* Spins, but not for ever: there may be one processor only. */
static void wait_past(_Atomic size_t *at, size_t i) {
    for (unsigned n = 1; atomic_load(at) <= i; n++) {
        if (n % 4096 == 0) (void)sched_yield();
    }
}

static void *fight(void *arg) {
    duel *d = arg;
    for (size_t i = 0; i < d->n; i++) {
        atomic_store(&d->ready, i + 1);
        wait_past(&d->at, i);
        d->won += ebb_remote_cancel(d->remote[i], EBB_CANCEL_USER);
    }
    return NULL;
}

static void of_two_who_end_it_at_once_one_wins(void **state) {
    future_world *fw = *state;
    duel d = {.n = future_crowd(20000, 300)};
    ebb_future **f = calloc(d.n, sizeof(void *));
    size_t won = 0;
    pthread_t t;
    d.remote = calloc(d.n, sizeof(void *));
    for (size_t i = 0; i < d.n; i++) {
        f[i] = ebb_promise_new(fw->host, NULL, NULL);
        assert_int_equal(ebb_remote_new(f[i], &d.remote[i]), EBB_OK);
    }
    assert_int_equal(pthread_create(&t, NULL, fight, &d), 0);
    for (size_t i = 0; i < d.n; i++) {
        wait_past(&d.ready, i);
        atomic_store(&d.at, i + 1);
        for (volatile size_t k = 0; k < i % 256; k++) continue; /* not always the first */
        won += i % 2 == 0 ? ebb_promise_settle(f[i], ebb_value_int(1)) == EBB_OK
                          : ebb_future_cancel(f[i], EBB_CANCEL_TIMEOUT);
        if (i % 2 == 1) (void)ebb_promise_settle(f[i], ebb_value_none());
        if (i % 100 == 0) future_settle(fw);
    }
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(won + d.won, d.n);
    print_message("%zu : %zu\n", won, d.won);
    for (size_t i = 0; i < d.n; i++) {
        ebb_remote_release(d.remote[i]);
        ebb_future_drop(f[i]);
    }
    free((void *)d.remote);
    free((void *)f);
    future_settle(fw);
    future_collect(fw);
    assert_int_equal(future_stats(fw).live, 0);
}

/* The owner goes on building, settling and collecting while others cancel. */
static void other_threads_cancel_without_a_data_race(void **state) {
    future_world *fw = *state;
    size_t rounds = future_crowd(200, 10);
    for (size_t round = 0; round < rounds; round++) {
        shared s = {.n = REMOTES, .settles = round % 3 == 0};
        ebb_future *f[REMOTES], *race[REMOTES];
        probe p[REMOTES], r[REMOTES];
        pthread_t t[THREADS];
        size_t calls = 0;
        for (uint32_t i = 0; i < REMOTES; i++) {
            f[i] = probe_on(&p[i], ebb_promise_new(fw->host, NULL, NULL));
            assert_int_equal(ebb_remote_new(f[i], &s.remote[i]), EBB_OK);
            ebb_future *two[] = {map(fw, map(fw, f[i], &calls), &calls), ebb_after(fw->host, EBB_SECOND)};
            race[i] = probe_on(&r[i], ebb_race(fw->host, 2, two));
        }
        run_threads(&s, t);
        for (uint32_t i = 0; i < REMOTES; i++) { /* it competes for some, and cancels what owns others */
            if (i % 4 == 0 && !s.settles) (void)ebb_promise_settle(f[i], ebb_value_int(i));
            if (i % 4 == 1) (void)ebb_future_cancel(race[i], EBB_CANCEL_DISCONNECT);
            ebb_inbox_receive(fw->rt);
            (void)ebb_runtime_pump(fw->rt, 2);
            if (i % 16 == 0) (void)ebb_gc_collect(fw->rt);
        }
        join_threads(t);
        future_pass(fw, EBB_MS);
        future_settle(fw);
        for (uint32_t i = 0; i < REMOTES; i++) {
            assert_int_equal(p[i].done + p[i].cancels, 1);
            assert_int_equal(p[i].cleanups, 1);
            if (!s.settles && i % 4 != 0) (void)ebb_promise_reject(f[i], EBB_CANCELLED);
            /* A race whose input was cancelled goes on with its timer. */
            if (r[i].status == EBB_PENDING) {
                assert_int_equal(p[i].cancels, 1);
                assert_true(ebb_future_cancel(race[i], EBB_CANCEL_USER));
            }
            ebb_remote_release(s.remote[i]);
        }
        future_settle(fw);
        for (uint32_t i = 0; i < REMOTES; i++) {
            assert_int_equal(r[i].done + r[i].cancels, 1);
            assert_int_equal(r[i].cleanups, 1);
            ebb_future_drop(race[i]);
        }
    }
    future_collect(fw);
    assert_int_equal(future_stats(fw).live, 0);
}

/* ---- AS-03, AS-04 --------------------------------------------------------------------------------------------------- */

static ebb_future *none_left(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return NULL;
}

static ebb_future *release_nothing(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    return none_left(cx, arg);
}

static ebb_future *never(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    (void)arg;
    return ebb_future_never(cx);
}

static ebb_future *each(ebb_cx *cx, size_t i, void *arg) {
    (void)arg;
    return i % 2 == 0 ? ebb_future_never(cx) : ebb_future_ready(cx, ebb_value_none());
}

static ebb_future *attempt(ebb_cx *cx, uint32_t i, void *arg) {
    (void)arg;
    return i == 0 ? ebb_future_failed(cx, EBB_FAILED) : ebb_future_never(cx);
}

/* A tree with every combinator in it; the number of its leaves depends on `depth`. */
static ebb_future *tree(future_world *fw, int depth, uint32_t *fd) {
    ebb_cx *cx = fw->host;
    if (depth == 0) {
        ebb_future *f = ebb_future_ready(cx, future_fd(fw, (*fd)++ % 200));
        return ebb_then(cx, f, never, NULL);
    }
    ebb_future *a = tree(fw, depth - 1, fd), *b = tree(fw, depth - 1, fd), *two[] = {a, b};
    const ebb_retry_opts o = {.attempts = 3, .pause = EBB_MS};
    switch (depth % 8) {
    case 0: return ebb_all(cx, 2, two);
    case 1: return ebb_race(cx, 2, two);
    case 2: return ebb_finally(cx, ebb_select(cx, 2, two), none_left, NULL);
    case 3: return ebb_within(cx, ebb_any(cx, 2, two), EBB_SECOND);
    case 4: return ebb_bracket(cx, ebb_all_settled(cx, 2, two), never, release_nothing, NULL);
    case 5: two[0] = ebb_traverse(cx, 5, 3, each, NULL); break;
    case 6: two[0] = ebb_retry(cx, &o, attempt, NULL); break;
    default: break;
    }
    ebb_future_drop(a);
    return ebb_all_settled(cx, 2, two);
}

static void nothing_leaks_after_a_cancel(void **state) {
    future_world *fw = *state;
    int64_t bytes = 0;
    for (int round = 0; round < 6; round++) {
        uint32_t fd = 0;
        memset(fw->fds, 0, sizeof fw->fds);
        ebb_future *f = tree(fw, 6, &fd);
        if (round % 3 > 0) future_settle(fw);
        if (round % 3 > 1) future_pass(fw, 2 * EBB_MS);
        assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
        future_settle(fw);
        ebb_future_drop(f);
        future_collect(fw);
        assert_int_equal(future_stats(fw).live, 0);
        for (uint32_t i = 0; i < fd && i < 200; i++) assert_int_equal(future_fd_freed(fw, i), 1);
        if (round == 2) bytes = fw->memory->live_bytes;
    }
    if (!fw->world->traced) assert_int_equal(fw->memory->live_bytes, bytes);
}

static void nothing_leaks_of_a_deep_graph(void **state) {
    future_world *fw = *state;
    size_t n = future_crowd(100000, 150), calls = 0;
    for (int how = 0; how < 5; how++) {
        ebb_future *source, *f = chain(fw, n, &source, &calls);
        for (size_t i = 0; i < n / 100; i++) f = ebb_finally(fw->host, f, none_left, NULL);
        if (how == 0) assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
        if (how == 1) assert_int_equal(ebb_promise_settle(source, ebb_value_int(0)), EBB_OK);
        if (how == 2) assert_int_equal(ebb_promise_reject(source, EBB_FAILED), EBB_OK);
        if (how == 3) assert_int_equal(ebb_promise_reject(source, EBB_CANCELLED), EBB_OK);
        if (how < 4) future_settle(fw);
        if (how == 0 || how == 4) (void)ebb_promise_reject(source, EBB_CANCELLED);
        ebb_future_drop(source);
        if (how == 1) assert_int_equal(ebb_await(fw->host, f, NULL), EBB_OK);
        else ebb_future_drop(f);
        future_collect(fw);
        assert_int_equal(future_stats(fw).live, 0);
    }
}

#define ID(id, test, setup)                                                                                  \
    { id " " #test, test, setup, future_world_down, NULL }

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        ID("UT-01", cancelling_a_pending_future_shows_at_once, future_world_up),
        ID("UT-02", cancelling_a_then_cancels_its_source, future_world_up),
        ID("UT-03", cancelling_an_all_cancels_all_inputs, future_world_up),
        ID("UT-04", cancelling_a_race_cancels_all_inputs, future_world_up),
        ID("UT-05", a_timer_and_a_worker_that_are_cancelled_stop_early, future_world_up),
        ID("UT-06", on_cancel_is_called_once_in_order_and_not_in_the_call, future_world_up),
        ID("UT-07", cleanups_run_on_every_end_the_last_first, future_world_up),
        ID("UT-08", cancelling_a_completed_future_returns_false, future_world_up),
        ID("UT-09", cancelling_a_failed_future_returns_false, future_world_up),
        ID("UT-10", a_deep_graph_is_processed_without_recursion, future_world_up_untraced),
        ID("UT-11", whether_it_is_cancelled_is_one_atomic_word, future_world_up),
        ID("UT-12", the_queue_holds_graphs_of_any_size, future_world_up_untraced),
        ID("AS-03", nothing_leaks_after_a_cancel, future_world_up_untraced),
        ID("AS-04", nothing_leaks_of_a_deep_graph, future_world_up_untraced),
        ID("AS-05", of_two_who_end_it_at_once_one_wins, future_world_up_untraced),
        ID("AS-05", other_threads_cancel_without_a_data_race, future_world_up_untraced),
    };
    char filter[16];
    if (argc > 1) {
        snprintf(filter, sizeof filter, "%s*", argv[1]);
        cmocka_set_test_filter(filter);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
