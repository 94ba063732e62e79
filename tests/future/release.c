/* finally and bracket: they release on every path, once, and wait for it; a cancel may come at any step. */
#include "tests/support/future_world.h"

typedef struct scene {
    future_world *fw;
    uint32_t uses, releases;
    bool slow; /* what the callbacks return is settled from outside */
    ebb_future *using, *releasing;
    probe use, release;
    bool resource_seen; /* by release */
    bool takes;         /* release takes the resource */
} scene;

static ebb_future *slowly(ebb_cx *cx, probe *p, ebb_future **out) {
    *out = probe_on(p, ebb_promise_new(cx, NULL, NULL));
    return *out;
}

static ebb_future *at_last(ebb_cx *cx, void *arg) {
    scene *s = arg;
    s->releases++;
    return s->slow ? slowly(cx, &s->release, &s->releasing) : NULL;
}

static ebb_future *use(ebb_cx *cx, ebb_value *v, void *arg) {
    scene *s = arg;
    (void)v;
    s->uses++;
    return slowly(cx, &s->use, &s->using);
}

static ebb_future *release(ebb_cx *cx, ebb_value *v, void *arg) {
    scene *s = arg;
    s->resource_seen = v->type != NULL;
    if (s->takes) ebb_value_discard(cx, ebb_value_take(cx, v));
    return at_last(cx, arg);
}

/* How an input ends. */
enum { COMPLETES, FAILS, IS_CANCELLED, ENDS };

static void end(ebb_future *f, int how, ebb_value v) {
    ebb_status st = how == COMPLETES ? ebb_promise_settle(f, v)
                                     : ebb_promise_reject(f, how == FAILS ? EBB_ERR_LIMIT : EBB_CANCELLED);
    assert_int_equal(st, EBB_OK);
}

static void ended(const probe *p, int how, int64_t value) {
    if (how == COMPLETES) probe_completed(p, value);
    else if (how == FAILS) probe_failed(p, EBB_ERR_LIMIT);
    else probe_cancelled(p, EBB_CANCEL_USER);
}

/* ---- finally --------------------------------------------------------------------------------------------- */

static void finally_runs_after_every_end_and_keeps_it(void **state) {
    future_world *fw = *state;
    for (int how = 0; how < ENDS; how++) {
        for (int slow = 0; slow < 2; slow++) {
            scene s = {.fw = fw, .slow = slow};
            probe result;
            ebb_future *p = ebb_promise_new(fw->host, NULL, NULL);
            ebb_future *f = probe_on(&result, ebb_finally(fw->host, p, at_last, &s));
            future_settle(fw);
            assert_int_equal(s.releases, 0);
            end(p, how, ebb_value_int(5));
            future_settle(fw);
            assert_int_equal(s.releases, 1);
            if (slow) {
                probe_pending(&result); /* it is waited for */
                end(s.releasing, COMPLETES, ebb_value_int(99));
                future_settle(fw);
            }
            ended(&result, how, 5);
            assert_int_equal(s.releases, 1);
            ebb_future_drop(f);
        }
    }
}

static void a_finally_that_fails_hides_a_completion_but_no_failure(void **state) {
    future_world *fw = *state;
    for (int how = 0; how < ENDS; how++) {
        for (int then = FAILS; then < ENDS; then++) {
            scene s = {.fw = fw, .slow = true};
            probe result;
            ebb_future *p = ebb_promise_new(fw->host, NULL, NULL);
            ebb_future *f = probe_on(&result, ebb_finally(fw->host, p, at_last, &s));
            uint32_t fd = (uint32_t)(how * ENDS + then);
            end(p, how, future_fd(fw, fd));
            future_settle(fw);
            assert_int_equal(ebb_promise_reject(s.releasing, then == FAILS ? EBB_TIMEOUT : EBB_CANCELLED),
                             EBB_OK);
            future_settle(fw);
            if (how != COMPLETES) ended(&result, how, 0);
            else if (then == FAILS) probe_failed(&result, EBB_TIMEOUT);
            else probe_cancelled(&result, EBB_CANCEL_USER);
            if (how == COMPLETES) assert_int_equal(future_fd_freed(fw, fd), 1);
            ebb_future_drop(f);
        }
    }
}

static void cancelling_a_finally_runs_it_and_lets_what_it_returned_go_on(void **state) {
    future_world *fw = *state;
    scene s = {.fw = fw, .slow = true};
    probe input, result;
    ebb_future *p = probe_on(&input, ebb_promise_new(fw->host, NULL, NULL));
    ebb_future *f = probe_on(&result, ebb_finally(fw->host, p, at_last, &s));
    assert_true(ebb_future_cancel(f, EBB_CANCEL_DISCONNECT));
    future_settle(fw);
    probe_cancelled(&input, EBB_CANCEL_DISCONNECT);
    probe_cancelled(&result, EBB_CANCEL_DISCONNECT);
    assert_int_equal(s.releases, 1);
    future_collect(fw); /* nobody waits for it, but it is not dropped */
    probe_pending(&s.release);
    assert_int_equal(ebb_promise_settle(s.releasing, future_fd(fw, 1)), EBB_OK);
    future_settle(fw);
    assert_int_equal(s.release.status, EBB_OK);
    assert_int_equal(ebb_promise_reject(p, EBB_CANCELLED), EBB_CANCELLED);
    ebb_future_drop(f);
    future_collect(fw);
    assert_int_equal(future_fd_freed(fw, 1), 1);
    assert_int_equal(future_stats(fw).live, 0);
}

static void cancelling_a_finally_that_is_releasing_lets_it_go_on(void **state) {
    future_world *fw = *state;
    scene s = {.fw = fw, .slow = true};
    probe result;
    ebb_future *p = ebb_promise_new(fw->host, NULL, NULL);
    ebb_future *f = probe_on(&result, ebb_finally(fw->host, p, at_last, &s));
    end(p, COMPLETES, future_fd(fw, 1));
    future_settle(fw);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    future_settle(fw);
    probe_cancelled(&result, EBB_CANCEL_USER);
    assert_int_equal(future_fd_freed(fw, 1), 1);
    future_collect(fw);
    probe_pending(&s.release);
    end(s.releasing, COMPLETES, ebb_value_none());
    future_settle(fw);
    assert_int_equal(s.releases, 1);
    ebb_future_drop(f);
}

static void finallys_around_each_other_run_from_the_inside_out(void **state) {
    future_world *fw = *state;
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        scene s[3];
        ebb_future *p = ebb_promise_new(fw->host, NULL, NULL), *f = p;
        for (int i = 0; i < 3; i++) {
            s[i] = (scene){.fw = fw, .slow = true};
            f = ebb_finally(fw->host, f, at_last, &s[i]);
        }
        if (cancelled) {
            assert_true(ebb_future_cancel(
                f, EBB_CANCEL_USER)); /* a cancel goes the other way, and waits for nobody */
            future_settle(fw);
            for (int i = 0; i < 3; i++) assert_int_equal(s[i].releases, 1);
            for (int i = 0; i < 3; i++) end(s[i].releasing, COMPLETES, ebb_value_none());
        } else {
            end(p, COMPLETES, ebb_value_none());
            for (int i = 0; i < 3; i++) {
                future_settle(fw);
                for (int k = 0; k < 3; k++) assert_int_equal(s[k].releases, k <= i);
                end(s[i].releasing, COMPLETES, ebb_value_none());
            }
        }
        future_settle(fw);
        ebb_future_drop(f);
    }
}

/* ---- bracket ------------------------------------------------------------------------------------------------ */

static void bracket_releases_after_every_end_of_its_use(void **state) {
    future_world *fw = *state;
    uint32_t fd = 0;
    for (int how = 0; how < ENDS; how++) {
        for (int slow = 0; slow < 2; slow++) {
            for (int takes = 0; takes < 2; takes++, fd++) {
                scene s = {.fw = fw, .slow = slow, .takes = takes};
                probe result;
                ebb_future *p = ebb_promise_new(fw->host, NULL, NULL);
                ebb_future *f = probe_on(&result, ebb_bracket(fw->host, p, use, release, &s));
                end(p, COMPLETES, future_fd(fw, fd));
                future_settle(fw);
                assert_int_equal(s.uses, 1);
                assert_int_equal(s.releases, 0);
                end(s.using, how, ebb_value_int(6));
                future_settle(fw);
                assert_int_equal(s.releases, 1);
                assert_true(s.resource_seen);
                if (slow) {
                    probe_pending(&result);
                    end(s.releasing, COMPLETES, ebb_value_none());
                    future_settle(fw);
                }
                ended(&result, how, 6);
                assert_int_equal(s.releases, 1);
                assert_int_equal(future_fd_freed(fw, fd), 1);
                ebb_future_drop(f);
            }
        }
    }
}

static void bracket_that_acquires_nothing_runs_nothing(void **state) {
    future_world *fw = *state;
    for (int how = FAILS; how < ENDS; how++) {
        scene s = {.fw = fw};
        probe result;
        ebb_future *p = ebb_promise_new(fw->host, NULL, NULL);
        ebb_future *f = probe_on(&result, ebb_bracket(fw->host, p, use, release, &s));
        end(p, how, ebb_value_none());
        future_settle(fw);
        ended(&result, how, 0);
        assert_int_equal(s.uses + s.releases, 0);
        ebb_future_drop(f);
    }
}

/* The steps of a bracket at which a cancel may come. */
enum { ACQUIRING, ACQUIRED, USING, USED, RELEASING, STEPS };

static void cancelling_a_bracket_at_each_step_releases_once_if_it_was_acquired(void **state) {
    future_world *fw = *state;
    uint32_t fd = 0;
    for (int step = 0; step < STEPS; step++) {
        for (int slow = 0; slow < 2; slow++, fd++) {
            if (step == RELEASING && !slow) continue;
            scene s = {.fw = fw, .slow = slow};
            probe input, result;
            ebb_future *p = probe_on(&input, ebb_promise_new(fw->host, NULL, NULL));
            ebb_future *f = probe_on(&result, ebb_bracket(fw->host, p, use, release, &s));
            if (step >= ACQUIRED) end(p, COMPLETES, future_fd(fw, fd));
            if (step >= USING) future_settle(fw);
            if (step >= USED) end(s.using, COMPLETES, ebb_value_none());
            if (step >= RELEASING) future_settle(fw);
            assert_true(ebb_future_cancel(f, EBB_CANCEL_DISCONNECT));
            future_settle(fw);
            probe_cancelled(&result, EBB_CANCEL_DISCONNECT);
            if (step == ACQUIRING) {
                probe_cancelled(&input, EBB_CANCEL_DISCONNECT);
                assert_int_equal(s.releases, 0);
            } else {
                assert_int_equal(s.releases, 1);
                assert_true(s.resource_seen);
                assert_int_equal(future_fd_freed(fw, fd), 1);
            }
            if (step == USING) probe_cancelled(&s.use, EBB_CANCEL_DISCONNECT);
            if (s.releasing != NULL) {
                future_collect(fw);
                probe_pending(&s.release);
                end(s.releasing, COMPLETES, ebb_value_none());
            }
            future_settle(fw);
            assert_int_equal(s.releases, step == ACQUIRING ? 0 : 1);
            if (step == ACQUIRING) assert_int_equal(ebb_promise_settle(p, ebb_value_none()), EBB_CANCELLED);
            if (step == USING) assert_int_equal(ebb_promise_settle(s.using, ebb_value_none()), EBB_CANCELLED);
            ebb_future_drop(f);
            future_collect(fw);
            assert_int_equal(future_stats(fw).live, 0);
        }
    }
}

static void a_region_that_is_cancelled_in_a_bracket_waits_for_the_release(void **state) {
    future_world *fw = *state;
    scene s = {.fw = fw, .slow = true};
    ebb_future *p = ebb_future_ready(fw->host, future_fd(fw, 1));
    (void)ebb_bracket(fw->host, p, use, release, &s);
    future_settle(fw);
    ebb_region_cancel(fw->host, fw->root, EBB_CANCEL_USER, "enough");
    future_settle(fw);
    assert_int_equal(s.releases, 1);
    /* made by cleanup code: it is not cancelled with the region, but nobody produces it */
    assert_int_equal(s.release.done + s.release.cancels, s.release.cleanups);
    future_pass(fw, 500 * EBB_MS);
    assert_int_equal(s.release.cleanups, 1);
    assert_int_equal(future_fd_freed(fw, 1), 1);
}

static ebb_future *release_in_time(ebb_cx *cx, ebb_value *v, void *arg) {
    scene *s = arg;
    (void)v;
    s->releases++;
    return probe_on(&s->release, ebb_after(cx, 10 * EBB_MS));
}

static void a_release_that_takes_time_is_waited_for_by_a_cancelled_region(void **state) {
    future_world *fw = *state;
    scene s = {.fw = fw};
    (void)ebb_bracket(fw->host, ebb_future_ready(fw->host, ebb_value_none()), use, release_in_time, &s);
    future_settle(fw);
    ebb_region_cancel(fw->host, fw->root, EBB_CANCEL_USER, "enough");
    future_pass(fw, 9 * EBB_MS);
    assert_int_equal(s.releases, 1);
    assert_int_not_equal(state_of(fw->world, fw->root), EBB_REGION_CLOSED);
    probe_pending(&s.release);
    future_pass(fw, 2 * EBB_MS);
    probe_completed(&s.release, 0);
    assert_int_equal(state_of(fw->world, fw->root), EBB_REGION_CLOSED);
}

/* ---- words that were acquired, when nothing of it can run any more ----------------------------------------------- */

static uint32_t words_freed;

static void free_word(void *p) {
    (void)p;
    words_freed++;
}

static const ebb_type word_type = {"word", 0, NULL, free_word, 0};

static ebb_future *use_for_ever(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    (void)arg;
    return ebb_future_never(cx);
}

static ebb_future *release_for_ever(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    (void)arg;
    return ebb_future_never(cx);
}

static ebb_future *never_over(ebb_cx *cx, void *arg) {
    (void)arg;
    return ebb_future_never(cx);
}

static ebb_future *pure_word(ebb_cx *cx) {
    return ebb_future_ready(cx, ebb_value_owned(&word_type, &words_freed));
}

static ebb_future *use_word(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    (void)arg;
    return pure_word(cx);
}

/* One that has such a word, in each of the places where it can be. */
static ebb_future *keeps_a_word(ebb_cx *cx, int where) {
    if (where == 0) return ebb_bracket(cx, pure_word(cx), use_for_ever, release_for_ever, NULL);
    if (where == 1)
        return ebb_bracket(cx, ebb_future_ready(cx, ebb_value_none()), use_word, release_for_ever, NULL);
    return ebb_finally(cx, pure_word(cx), never_over, NULL);
}

static void a_runtime_that_is_freed_lets_go_of_what_was_acquired(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        ebb_failing memory = {.inner = ebb_libc_allocator()};
        ebb_runtime *rt;
        ebb_remote *remote = NULL;
        words_freed = 0;
        assert_int_equal(
            ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_failing_allocator(&memory)}, &rt), EBB_OK);
        ebb_future *f = keeps_a_word(ebb_runtime_host(rt), i % 3);
        if (i >= 3) assert_int_equal(ebb_remote_new(f, &remote), EBB_OK);
        while (ebb_runtime_pump(rt, 100) == EBB_PENDING) continue;
        assert_int_equal(words_freed, 0);
        ebb_runtime_free(rt);
        assert_int_equal(words_freed, 1);
        ebb_remote_release(remote);
        assert_int_equal(memory.live, 0);
        assert_int_equal(words_freed, 1);
    }
}

static const ebb_operation stubborn = {"stubborn", NULL, NULL};

static void acquire_late(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    (void)kind;
    (void)keeps_a_word(cx, *(int *)arg);
}

typedef struct forced {
    ebb_future *f;
    int where;
} forced;

static ebb_status make_stubborn(ebb_cx *cx, void *state) {
    forced *s = state;
    s->f = ebb_promise_new(cx, &stubborn, NULL);
    return ebb_future_on_cancel(s->f, acquire_late, &s->where);
}

/* Made by cleanup code, when the callback runner is about to be abandoned because a producer does not end. */
static void a_forced_region_lets_go_of_what_was_acquired(void **state) {
    future_world *fw = *state;
    for (int where = 0; where < 3; where++) {
        forced s = {.where = where};
        words_freed = 0;
        ebb_region r = ebb_region_open(fw->host, NULL);
        ebb_spawn(fw->host, r, make_stubborn, &s);
        future_settle(fw);
        ebb_region_force(fw->host, r);
        future_pass(fw, EBB_SECOND);
        assert_int_equal(state_of(fw->world, r), EBB_REGION_CLOSED);
        assert_int_equal(ebb_promise_reject(s.f, EBB_CANCELLED), EBB_CANCELLED);
        (void)ebb_future_ready(fw->host, ebb_value_none()); /* somebody has to run its free */
        future_collect(fw);
        assert_int_equal(words_freed, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FUTURES(finally_runs_after_every_end_and_keeps_it),
        IN_FUTURES(a_finally_that_fails_hides_a_completion_but_no_failure),
        IN_FUTURES(cancelling_a_finally_runs_it_and_lets_what_it_returned_go_on),
        IN_FUTURES(cancelling_a_finally_that_is_releasing_lets_it_go_on),
        IN_FUTURES(finallys_around_each_other_run_from_the_inside_out),
        IN_FUTURES(bracket_releases_after_every_end_of_its_use),
        IN_FUTURES(bracket_that_acquires_nothing_runs_nothing),
        IN_FUTURES(cancelling_a_bracket_at_each_step_releases_once_if_it_was_acquired),
        IN_FUTURES(a_region_that_is_cancelled_in_a_bracket_waits_for_the_release),
        IN_FUTURES(a_release_that_takes_time_is_waited_for_by_a_cancelled_region),
        cmocka_unit_test(a_runtime_that_is_freed_lets_go_of_what_was_acquired),
        IN_FUTURES(a_forced_region_lets_go_of_what_was_acquired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
