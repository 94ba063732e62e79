/* Time on a loop: spans begin when they are armed, not with the turn; and libuv never sleeps while there is
 * something to do. Where the clock is the real one, only what may not happen too early is looked at. */
#include "tests/support/http_client_world.h"

#include "loop/loop.h"

/* ---- spans ---------------------------------------------------------------------------------------------- */

static void works(uint64_t span) {
    for (uint64_t began = uv_hrtime(); uv_hrtime() - began < span;) continue;
}

static ebb_status arms_late(ebb_cx *cx, void *arg) {
    ebb_sleeper nap = {0};
    (void)arg;
    assert_int_equal(ebb_await(cx, ebb_after(cx, 1), NULL), EBB_OK);
    works(60 * EBB_MS);
    uint64_t began = uv_hrtime();
    assert_int_equal(ebb_await(cx, ebb_after(cx, 100 * EBB_MS), NULL), EBB_OK);
    assert_true(uv_hrtime() - began >= 100 * EBB_MS);
    works(60 * EBB_MS);
    began = uv_hrtime();
    assert_int_equal(ebb_sleep(cx, &nap, 100 * EBB_MS), EBB_OK);
    assert_true(uv_hrtime() - began >= 100 * EBB_MS);
    works(60 * EBB_MS);
    began = uv_hrtime();
    assert_int_equal(ebb_await(cx, ebb_within(cx, ebb_future_never(cx), 100 * EBB_MS), NULL), EBB_TIMEOUT);
    assert_true(uv_hrtime() - began >= 100 * EBB_MS);
    works(20 * EBB_MS);
    assert_true(ebb_now(cx) - began >= 120 * EBB_MS);
    return EBB_OK;
}

static void a_span_begins_when_it_is_armed(void **state) {
    assert_int_equal(run_fiber(*state, arms_late, NULL), EBB_OK);
}

/* ---- a recorded loop --------------------------------------------------------------------------------------- */

typedef struct bytes {
    char *p;
    size_t n, room;
} bytes;

static void bytes_add(void *ctx, const void *more, size_t n) {
    bytes *b = ctx;
    if (b->n + n > b->room) {
        b->room = 2 * (b->n + n);
        b->p = realloc(b->p, b->room);
        assert_non_null(b->p);
    }
    memcpy(b->p + b->n, more, n);
    b->n += n;
}

static void start_recording(loop_world *w) {
    assert_int_equal(ebb_trace_start(w->rt, 1 << 22), EBB_OK);
    assert_int_equal(ebb_journal_start(w->rt, 1 << 22), EBB_OK);
}

static ebb_status never_stops(ebb_cx *cx, void *arg) {
    (void)arg;
    (void)ebb_await(cx, ebb_future_never(cx), NULL);
    works(3 * EBB_MS);
    (void)ebb_mask(cx);
    (void)ebb_await(cx, ebb_after(cx, 20 * EBB_MS), NULL);
    return EBB_OK;
}

static ebb_status works_then_fails(ebb_cx *cx, void *arg) {
    (void)arg;
    (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    works(5 * EBB_MS);
    return EBB_FAILED;
}

static ebb_status is_recorded(ebb_cx *cx, void *arg) {
    (void)arg;
    ebb_region r = ebb_region_open(cx, NULL);
    (void)ebb_fiber_spawn(cx, r, never_stops, NULL);
    (void)ebb_fiber_spawn(cx, r, works_then_fails, NULL);
    works(2 * EBB_MS);
    (void)ebb_await(cx, ebb_after(cx, 2 * EBB_MS), NULL);
    return ebb_region_join(cx, r);
}

/* What was done before this: the root is not new, so the world's region may not be either. */
static void a_journal_of_a_loop_replays(void **state) {
    bytes trace = {0}, journal = {0}, again = {0};
    ebb_journal_replay_result result;
    ebb_loop *l;
    uv_loop_t uv;
    fiber_run r = {is_recorded, NULL, EBB_PENDING, false};
    (void)state;
    assert_int_equal(uv_loop_init(&uv), 0);
    assert_int_equal(
        ebb_loop_attach(&uv, &(ebb_loop_opts){.runtime = {.allocator = ebb_libc_allocator()}}, &l), EBB_OK);
    loop_world w = {.loop = l, .rt = ebb_loop_runtime(l)};
    start_recording(&w);
    (void)ebb_fiber_spawn(ebb_loop_cx(l), ebb_runtime_root(w.rt), fiber_run_main, &r);
    while (!r.over) {
        (void)ebb_loop_cx(l);
        uv_run(&uv, UV_RUN_ONCE);
    }
    assert_int_equal(r.status, EBB_FAILED);
    ebb_trace_take(w.rt, true, bytes_add, &trace);
    ebb_journal_take(w.rt, true, bytes_add, &journal);
    ebb_status st =
        ebb_journal_replay(ebb_libc_allocator(), journal.p, journal.n, bytes_add, &again, &result);
    if (st != EBB_OK) fail_msg("%s: %s", ebb_status_name(st), result.message);
    assert_int_equal(again.n, trace.n);
    assert_memory_equal(again.p, trace.p, trace.n);
    free(trace.p);
    free(journal.p);
    free(again.p);
    assert_int_equal(ebb_loop_close(l, NULL, 0, NULL), EBB_OK);
    uv_run(&uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&uv), 0);
}

/* ---- sleep --------------------------------------------------------------------------------------------------- */

static struct watch {
    uv_prepare_t
        prepare; /* started before the runtime's, so that it runs after that: right before libuv sleeps */
    loop_world *w;
    uint32_t turns, overslept;
} watch;

static void looks(uv_prepare_t *prepare) {
    const ebb_runtime *rt = watch.w->rt;
    if (rt == NULL || uv_is_closing((uv_handle_t *)prepare)) return;
    watch.turns++;
    watch.overslept += uv_backend_timeout(&watch.w->uv) != 0 && ebb_runtime_next_due(rt) <= ebb__now(rt);
}

static void watches(loop_world *w) {
    watch = (struct watch){.w = w};
    assert_int_equal(uv_prepare_init(&w->uv, &watch.prepare), 0);
    assert_int_equal(uv_prepare_start(&watch.prepare, looks), 0);
    uv_unref((uv_handle_t *)&watch.prepare);
}

static int watched_up(void **state, bool h2) {
    loop_before_attach = watches;
    int st = http_up(state, h2);
    loop_before_attach = NULL;
    return st;
}

static int watched_up_1(void **state) {
    return watched_up(state, false);
}

static int watched_up_2(void **state) {
    return watched_up(state, true);
}

static int watched_down(void **state) {
    uv_close((uv_handle_t *)&watch.prepare, NULL);
    return http_down(state);
}

static void libuv_does_not_sleep_on_a_body_in_hand(void **state) {
    http_world *h = *state;
    assert_int_equal(get_status(h, "/bytes/1000000"), EBB_OK);
    assert_true(watch.turns > 10);
    assert_int_equal(watch.overslept, 0);
}

static ebb_status naps(ebb_cx *cx, void *arg) {
    (void)arg;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(ebb_await(cx, ebb_after(cx, i % 2 == 0 ? 0 : 1), NULL), EBB_OK);
        works(i % 3 == 0 ? 2 * EBB_MS : 0); /* something else may be due by then */
    }
    return EBB_OK;
}

static void nor_on_a_timer_that_is_due(void **state) {
    http_world *h = *state;
    fiber_run other = {naps, NULL, EBB_PENDING, false};
    (void)ebb_fiber_spawn(ebb_loop_cx(h->w->loop), h->w->region, fiber_run_main, &other);
    assert_int_equal(run_fiber(h->w, naps, NULL), EBB_OK);
    loop_until(h->w, is_true, &other.over);
    assert_int_equal(watch.overslept, 0);
}

#define WATCHED(test)                                                                                        \
    {#test " (HTTP/1)", test, watched_up_1, watched_down, NULL}, {                                           \
#test " (HTTP/2)", test, watched_up_2, watched_down, NULL                                            \
    }

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(a_span_begins_when_it_is_armed),
        cmocka_unit_test(a_journal_of_a_loop_replays),
        WATCHED(libuv_does_not_sleep_on_a_body_in_hand),
        WATCHED(nor_on_a_timer_that_is_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
