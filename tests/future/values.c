/* Values: who lets go of them when a completion loses, when somebody else looks, when nobody takes them; and
 * futures as values, which are flattened wherever they come from. */
#include "tests/support/future_world.h"

static ebb_value awaited(future_world *fw, ebb_future *f) {
    ebb_value v;
    assert_int_equal(ebb_await(fw->host, f, &v), EBB_OK);
    return v;
}

/* ---- completions that lose ------------------------------------------------------------------------------ */

static void a_completion_that_loses_to_a_cancel_disposes_its_value(void **state) {
    future_world *fw = *state;
    probe p;
    ebb_future *f = probe_on(&p, ebb_promise_new(fw->host, NULL, NULL));
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    assert_int_equal(ebb_promise_settle(f, future_fd(fw, 1)), EBB_CANCELLED);
    assert_int_equal(future_fd_freed(fw, 1), 1);
    future_settle(fw);
    probe_cancelled(&p, EBB_CANCEL_USER);
    ebb_future_drop(f);
}

static int open_fds, most_fds;

static void close_one(void *p) {
    (void)p;
    open_fds--;
}

static const ebb_type socket_type = {"socket", 0, NULL, close_one, 0};

static ebb_value accept_one(void) {
    if (++open_fds > most_fds) most_fds = open_fds;
    return ebb_value_owned(&socket_type, &open_fds);
}

static const ebb_operation accept_op = {"accept", NULL, NULL};

static void a_hundred_thousand_accepts_that_come_too_late_leave_no_descriptor(void **state) {
    future_world *fw = *state;
    size_t n = future_crowd(100000, 300);
    open_fds = most_fds = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        ebb_future *f = ebb_promise_new(fw->host, &accept_op, NULL);
        ebb_future *late = ebb_within(fw->host, f, EBB_MS);
        ebb_runtime_advance(fw->rt, ebb_now(fw->host) + 2 * EBB_MS);
        (void)ebb_runtime_pump(fw->rt, 16);
        assert_int_equal(ebb_await(fw->host, late, NULL), EBB_TIMEOUT);
        assert_int_equal(ebb_promise_settle(f, accept_one()), EBB_CANCELLED);
        if (i == 100) bytes = future_stats(fw).bytes;
    }
    assert_int_equal(open_fds, 0);
    assert_int_equal(most_fds, 1);
    assert_int_equal(future_stats(fw).bytes, bytes);
}

static void the_value_of_a_loser_that_has_ended_is_disposed_of(void **state) {
    future_world *fw = *state;
    ebb_future *fs[3];
    for (uint32_t i = 0; i < 3; i++) fs[i] = ebb_promise_new(fw->host, NULL, NULL);
    ebb_future *race = ebb_race(fw->host, 3, fs);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(ebb_promise_settle(fs[i], future_fd(fw, i)), EBB_OK);
    future_settle(fw);
    ebb_value v = awaited(fw, race);
    future_collect(fw);
    assert_int_equal(future_fd_freed(fw, 0), 0);
    assert_int_equal(future_fd_freed(fw, 1), 1);
    assert_int_equal(future_fd_freed(fw, 2), 1);
    ebb_value_discard(fw->host, v);
    assert_int_equal(future_fd_freed(fw, 0), 1);
}

static void a_result_that_nobody_awaits_disposes_its_value(void **state) {
    future_world *fw = *state;
    ebb_future *f = ebb_future_ready(fw->host, future_fd(fw, 1));
    future_settle(fw);
    ebb_future_drop(f);
    future_collect(fw);
    assert_int_equal(future_fd_freed(fw, 1), 1);
    f = ebb_future_ready(fw->host, future_fd(fw, 2));
    assert_int_equal(ebb_await(fw->host, f, NULL), EBB_OK);
    future_collect(fw);
    assert_int_equal(future_fd_freed(fw, 2), 1);
    (void)ebb_future_ready(fw->host, future_fd(fw, 3)); /* with the runtime, at the latest */
}

static void settling_twice_disposes_of_the_second_value_and_is_told(void **state) {
    future_world *fw = *state;
    ebb_future *f = ebb_promise_new(fw->host, NULL, NULL);
    assert_int_equal(ebb_promise_settle(f, future_fd(fw, 1)), EBB_OK);
    assert_int_equal(ebb_promise_settle(f, future_fd(fw, 2)), EBB_ERR_RESOLVED);
    future_expect_misuse(fw, EBB_ERR_RESOLVED);
    assert_int_equal(ebb_promise_reject(f, EBB_TIMEOUT), EBB_ERR_RESOLVED);
    future_expect_misuse(fw, EBB_ERR_RESOLVED);
    assert_int_equal(future_fd_freed(fw, 2), 1);
    assert_int_equal(future_fd_freed(fw, 1), 0);
    assert_int_equal(ebb_await(fw->host, f, NULL), EBB_OK);
    assert_int_equal(future_fd_freed(fw, 1), 1);
}

/* ---- callbacks and values ----------------------------------------------------------------------------------- */

static ebb_value look(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)arg;
    return ebb_value_int(v->type != NULL);
}

static ebb_value pass_on(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)arg;
    return *v;
}

static ebb_value take(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)arg;
    return ebb_value_take(cx, v);
}

static void a_word_that_a_callback_only_looks_at_goes_with_its_future(void **state) {
    future_world *fw = *state;
    ebb_future *m = ebb_map(fw->host, ebb_future_ready(fw->host, future_fd(fw, 1)), look, NULL);
    future_settle(fw);
    assert_int_equal(awaited(fw, m).as.i, 1);
    future_collect(fw);
    assert_int_equal(future_fd_freed(fw, 1), 1);
}

static void a_word_that_a_callback_takes_or_returns_moves_on(void **state) {
    future_world *fw = *state;
    ebb_map_fn fns[] = {take, pass_on};
    for (uint32_t i = 0; i < 2; i++) {
        ebb_future *m = ebb_map(fw->host, ebb_future_ready(fw->host, future_fd(fw, i)), fns[i], NULL);
        future_settle(fw);
        ebb_value v = awaited(fw, m);
        future_collect(fw);
        assert_int_equal(future_fd_freed(fw, i), 0);
        ebb_value_discard(fw->host, v);
        assert_int_equal(future_fd_freed(fw, i), 1);
    }
}

typedef struct box {
    ebb_value inner;
    ebb_future *future;
} box;

static uint32_t boxes_freed;

static void trace_box(void *object, ebb_gc_marker *t) {
    const box *b = object;
    ebb_gc_mark_value(t, &b->inner);
    ebb_gc_mark(t, b->future);
}

static void free_box(void *object) {
    (void)object;
    boxes_freed++;
}

static const ebb_type box_type = {"box", sizeof(box), trace_box, free_box, 0};

static void an_object_lives_as_long_as_somebody_refers_to_it(void **state) {
    future_world *fw = *state;
    boxes_freed = 0;
    box *a = ebb_gc_new(fw->host, &box_type), *b = ebb_gc_new(fw->host, &box_type);
    a->inner = ebb_value_object(b);
    ebb_value_discard(fw->host, ebb_value_object(b)); /* only a refers to it now */
    ebb_future *f = ebb_future_ready(fw->host, ebb_value_object(a));
    future_collect(fw);
    assert_int_equal(boxes_freed, 0);
    ebb_value v = awaited(fw, f);
    future_collect(fw);
    assert_int_equal(boxes_freed, 0);
    assert_ptr_equal(((box *)v.as.p)->inner.as.p, b);
    ebb_value_discard(fw->host, v);
    future_collect(fw);
    assert_int_equal(boxes_freed, 2);
}

static void a_future_that_an_object_refers_to_is_not_dropped(void **state) {
    future_world *fw = *state;
    boxes_freed = 0;
    probe p;
    box *a = ebb_gc_new(fw->host, &box_type);
    a->future = probe_on(&p, ebb_promise_new(fw->host, NULL, NULL));
    ebb_future_drop(a->future);
    future_collect(fw);
    probe_pending(&p);
    ebb_value_discard(fw->host, ebb_value_object(a));
    future_collect(fw);
    probe_cancelled(&p, EBB_CANCEL_DROPPED);
    assert_int_equal(boxes_freed, 1);
}

static void what_a_future_holds_lives_until_it_has_ended(void **state) {
    future_world *fw = *state;
    boxes_freed = 0;
    ebb_future *f = ebb_promise_new(fw->host, NULL, NULL);
    assert_int_equal(ebb_future_hold(f, ebb_gc_new(fw->host, &box_type)), EBB_OK);
    future_collect(fw);
    assert_int_equal(boxes_freed, 0);
    assert_int_equal(ebb_promise_settle(f, ebb_value_none()), EBB_OK);
    future_settle(fw);
    future_collect(fw);
    assert_int_equal(boxes_freed, 1);
    ebb_future_drop(f);
}

static void bytes_of_a_region_that_is_closed_are_not_read(void **state) {
    future_world *fw = *state;
    ebb_value v;
    void *p;
    size_t n;
    assert_int_equal(ebb_bytes_new(fw->host, 100, &v, &p), EBB_OK);
    memset(p, 7, 100);
    ebb_future *f = ebb_future_ready(fw->host, v);
    future_collect(fw);
    v = awaited(fw, f);
    assert_int_equal(ebb_bytes_of(fw->host, &v, &p, &n), EBB_OK);
    assert_int_equal(n, 100);
    assert_int_equal(((char *)p)[99], 7);
    ebb_value no = ebb_value_int(1);
    assert_int_equal(ebb_bytes_of(fw->host, &no, &p, &n), EBB_ERR_INVALID);
    ebb_region_close(fw->host, fw->root);
    future_settle(fw);
    assert_int_equal(ebb_bytes_of(fw->host, &v, &p, &n), EBB_ERR_CLOSED);
    assert_null(p);
}

/* ---- flattening ------------------------------------------------------------------------------------------------ */

/* Ways to a future that was given another one as its value. */
typedef struct flat {
    ebb_future *inner;
} flat;

static ebb_value as_value(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)v;
    return ebb_value_future(((flat *)arg)->inner);
}

static ebb_future *as_future(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)v;
    return ((flat *)arg)->inner;
}

static ebb_future *pure_nested(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    return ebb_future_ready(cx, ebb_value_future(((flat *)arg)->inner));
}

static ebb_future *caught(ebb_cx *cx, ebb_status st, void *arg) {
    (void)cx;
    (void)st;
    return ((flat *)arg)->inner;
}

static ebb_future *delayed(ebb_cx *cx, void *arg) {
    (void)cx;
    return ((flat *)arg)->inner;
}

static ebb_future *nothing(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)v;
    (void)arg;
    return NULL;
}

static ebb_future *attempt(ebb_cx *cx, uint32_t n, void *arg) {
    (void)n;
    return delayed(cx, arg);
}

static ebb_future *flattened(future_world *fw, int way, flat *a) {
    ebb_cx *cx = fw->host;
    ebb_future *p;
    switch (way) {
    case 0:
        p = ebb_promise_new(cx, NULL, NULL);
        assert_int_equal(ebb_promise_settle(p, ebb_value_future(a->inner)), EBB_OK);
        return p;
    case 1: return ebb_future_ready(cx, ebb_value_future(a->inner));
    case 2: return ebb_map(cx, ebb_future_ready(cx, ebb_value_none()), as_value, a);
    case 3: return ebb_then(cx, ebb_future_ready(cx, ebb_value_none()), as_future, a);
    case 4: return ebb_then(cx, ebb_future_ready(cx, ebb_value_none()), pure_nested, a);
    case 5: return ebb_catch(cx, ebb_future_failed(cx, EBB_FAILED), caught, a);
    case 6: return ebb_future_ready(cx, ebb_value_future(ebb_future_ready(cx, ebb_value_future(a->inner))));
    case 7: return ebb_future_delay(cx, 0, delayed, a);
    case 8: return ebb_bracket(cx, ebb_future_ready(cx, ebb_value_none()), as_future, nothing, a);
    case 9: return ebb_retry(cx, &(ebb_retry_opts){.attempts = 1}, attempt, a);
    default: return NULL;
    }
}

enum { WAYS = 10 };

static void a_nested_future_is_flattened_on_every_path_and_to_every_end(void **state) {
    future_world *fw = *state;
    for (int way = 0; way < WAYS; way++) {
        for (int ended = 0; ended < 2; ended++) {
            for (int end = 0; end < 3; end++) {
                flat a = {ebb_promise_new(fw->host, NULL, NULL)};
                ebb_future *inner = a.inner;
                probe result;
                const ebb_status st = end == 1 ? EBB_TIMEOUT : EBB_CANCELLED;
                if (ended) {
                    assert_int_equal(end == 0 ? ebb_promise_settle(inner, ebb_value_int(42))
                                              : ebb_promise_reject(inner, st),
                                     EBB_OK);
                    future_settle(fw);
                }
                ebb_future *f = probe_on(&result, flattened(fw, way, &a));
                future_pass(fw, EBB_MS);
                if (!ended) {
                    probe_pending(&result);
                    assert_int_equal(end == 0 ? ebb_promise_settle(inner, ebb_value_int(42))
                                              : ebb_promise_reject(inner, st),
                                     EBB_OK);
                    future_settle(fw);
                }
                if (end == 0) probe_completed(&result, 42);
                else if (end == 1) probe_failed(&result, EBB_TIMEOUT);
                else probe_cancelled(&result, EBB_CANCEL_USER);
                ebb_future_drop(f);
                future_collect(fw);
                if (future_stats(fw).live != 0) fail_msg("way %d leaves something", way);
            }
        }
    }
}

static void cancelling_the_outer_future_cancels_the_nested_one(void **state) {
    future_world *fw = *state;
    for (int way = 0; way < WAYS; way++) {
        flat a = {ebb_promise_new(fw->host, NULL, NULL)};
        probe inner, result;
        (void)probe_on(&inner, a.inner);
        ebb_future *f = probe_on(&result, flattened(fw, way, &a));
        future_pass(fw, EBB_MS);
        assert_true(ebb_future_cancel(f, EBB_CANCEL_DISCONNECT));
        future_settle(fw);
        probe_cancelled(&result, EBB_CANCEL_DISCONNECT);
        probe_cancelled(&inner, EBB_CANCEL_DISCONNECT);
        ebb_future_drop(f);
    }
}

static void a_nested_future_that_comes_too_late_is_cancelled(void **state) {
    future_world *fw = *state;
    probe inner;
    ebb_future *f = ebb_promise_new(fw->host, NULL, NULL);
    ebb_future *late = probe_on(&inner, ebb_promise_new(fw->host, NULL, NULL));
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    assert_int_equal(ebb_promise_settle(f, ebb_value_future(late)), EBB_CANCELLED);
    future_settle(fw);
    assert_int_equal(inner.cancels, 1);
    assert_int_equal(inner.cleanups, 1);
    ebb_future_drop(f);
}

static void a_future_nested_in_itself_is_told(void **state) {
    future_world *fw = *state;
    probe result;
    ebb_future *f = probe_on(&result, ebb_promise_new(fw->host, NULL, NULL));
    ebb_status st = ebb_promise_settle(ebb_future_keep(f), ebb_value_future(f));
    future_settle(fw);
    /* it waits for itself: nobody will ever end it, but a cancel can */
    if (st == EBB_OK && ebb_future_state_of(f) == EBB_FUTURE_PENDING) {
        assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
        future_settle(fw);
    }
    assert_true(result.done + result.cancels == 1);
    assert_int_equal(result.cleanups, 1);
    ebb_future_drop(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FUTURES(a_completion_that_loses_to_a_cancel_disposes_its_value),
        IN_UNTRACED_FUTURES(a_hundred_thousand_accepts_that_come_too_late_leave_no_descriptor),
        IN_FUTURES(the_value_of_a_loser_that_has_ended_is_disposed_of),
        IN_FUTURES(a_result_that_nobody_awaits_disposes_its_value),
        IN_FUTURES(settling_twice_disposes_of_the_second_value_and_is_told),
        IN_FUTURES(a_word_that_a_callback_only_looks_at_goes_with_its_future),
        IN_FUTURES(a_word_that_a_callback_takes_or_returns_moves_on),
        IN_FUTURES(an_object_lives_as_long_as_somebody_refers_to_it),
        IN_FUTURES(a_future_that_an_object_refers_to_is_not_dropped),
        IN_FUTURES(what_a_future_holds_lives_until_it_has_ended),
        IN_FUTURES(bytes_of_a_region_that_is_closed_are_not_read),
        IN_FUTURES(a_nested_future_is_flattened_on_every_path_and_to_every_end),
        IN_FUTURES(cancelling_the_outer_future_cancels_the_nested_one),
        IN_FUTURES(a_nested_future_that_comes_too_late_is_cancelled),
        IN_FUTURES(a_future_nested_in_itself_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
