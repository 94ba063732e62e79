/* Joining a host's loop: who keeps it going, who gets a turn, and how one leaves. */
#include "tests/support/loop_world.h"

static ebb_loop_opts plain_opts(ebb_failing *memory) {
    memory->inner = ebb_libc_allocator();
    return (ebb_loop_opts){.runtime = {.allocator = ebb_failing_allocator(memory)}};
}

/* ---- what keeps uv_run going -------------------------------------------------------------------------------- */

static void nothing_goes_on_and_uv_run_returns(void **state) {
    loop_world *w = *state;
    loop_run(w);
    assert_int_equal(uv_run(&w->uv, UV_RUN_DEFAULT), 0);
    assert_false(uv_loop_alive(&w->uv));
}

static void a_sleep_keeps_uv_run_going_until_it_is_over(void **state) {
    loop_world *w = *state;
    uint64_t from = uv_hrtime();
    ebb_future *f = ebb_after(ebb_loop_cx(w->loop), 20 * EBB_MS);
    uv_run(&w->uv, UV_RUN_DEFAULT);
    assert_true(uv_hrtime() - from >= 20 * EBB_MS);
    assert_int_equal(status_now(f), EBB_OK);
}

static void a_sleep_that_was_cancelled_does_not(void **state) {
    loop_world *w = *state;
    ebb_future *f = ebb_after(ebb_loop_cx(w->loop), 3600 * EBB_SECOND);
    loop_turns(w, 1);
    assert_true(uv_loop_alive(&w->uv));
    ebb_future_cancel(f, EBB_CANCEL_USER);
    loop_run(w);
    assert_int_equal(status_now(f), EBB_CANCELLED);
}

static ebb_status waits_for_a_message(ebb_cx *cx, void *arg) {
    ebb_wait wait = {0};
    int item;
    return ebb_chan_recv(cx, arg, &wait, &item);
}

static void a_task_keeps_it_going_whatever_it_waits_for(void **state) {
    loop_world *w = *state;
    ebb_chan *ch;
    assert_int_equal(ebb_chan_new(w->rt, 1, sizeof(int), &ch), EBB_OK);
    ebb_fiber_spawn(w->cx, w->region, waits_for_a_message, ch);
    loop_turns(w, 3);
    assert_true(uv_loop_alive(&w->uv));
    ebb_chan_close(w->cx, ch);
    loop_run(w);
    assert_false(uv_loop_alive(&w->uv));
    ebb_chan_free(ch);
}

static void an_open_handle_does_not(void **state) {
    loop_world *w = *state;
    int fd;
    ebb_stream s = stream_pair(w, &fd);
    char byte;
    ebb_listener l = ebb_tcp_listen(w->cx, &(ebb_address){"127.0.0.1", 0});
    ebb_signal g = ebb_signal_open(w->cx, SIGUSR2);
    send_text(fd, "x");
    assert_int_equal(loop_await(w, ebb_stream_read(w->cx, s, &byte, 1), NULL), EBB_OK);
    loop_run(w); /* it is still switched on for reading */
    assert_false(uv_loop_alive(&w->uv));
    ebb_future *f = ebb_stream_read(ebb_loop_cx(w->loop), s, &byte, 1);
    loop_turns(w, 2);
    assert_true(uv_loop_alive(&w->uv));
    ebb_stream_close(w->cx, s);
    loop_run(w);
    assert_int_equal(status_now(f), EBB_ERR_CLOSED);
    ebb_listener_close(w->cx, l);
    ebb_signal_close(w->cx, g);
    close(fd);
}

static void an_operation_of_somebody_elses_does(void **state) {
    loop_world *w = *state;
    static const ebb_operation op = {"from elsewhere", NULL, NULL};
    ebb_future *f = ebb_promise_new(ebb_loop_cx(w->loop), &op, NULL);
    loop_turns(w, 2);
    assert_true(uv_loop_alive(&w->uv));
    assert_int_equal(ebb_promise_settle(f, ebb_value_none()), EBB_OK);
    loop_run(w);
    ebb_future_drop(f);
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

typedef struct spinner {
    bool stop;
    uint64_t polls;
} spinner;

static ebb_status spin(ebb_cx *cx, void *arg) {
    spinner *s = arg;
    s->polls++;
    if (s->stop) return EBB_OK;
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

static void a_task_that_never_rests_does_not_starve_sockets_or_timers(void **state) {
    loop_world *w = *state;
    spinner s = {0};
    int fd;
    char byte;
    ebb_stream stream = stream_pair(w, &fd);
    ebb_spawn(w->cx, w->region, spin, &s);
    ebb_future *f = ebb_stream_read(w->cx, stream, &byte, 1);
    ebb_future *g = ebb_after(w->cx, 5 * EBB_MS);
    probe p;
    probe_watch(&p, f);
    loop_turns(w, 3);
    assert_in_range(s.polls, 1, 6 * 1024); /* two pumps a turn */
    send_text(fd, "x");
    loop_until(w, is_true, &p.over);
    ebb_future_drop(f);
    assert_int_equal(loop_await(w, g, NULL), EBB_OK);
    s.stop = true;
    loop_run(w);
    close(fd);
}

static void work_is_not_slept_over(void **state) {
    loop_world *w = *state;
    spinner s = {0};
    assert_int_equal(uv_loop_configure(&w->uv, UV_METRICS_IDLE_TIME), 0);
    ebb_spawn(ebb_loop_cx(w->loop), w->region, spin, &s);
    uv_run(&w->uv, UV_RUN_NOWAIT);
    uint64_t slept = uv_metrics_idle_time(&w->uv);
    for (int i = 0; i < 50; i++) uv_run(&w->uv, UV_RUN_ONCE);
    assert_int_equal(uv_metrics_idle_time(&w->uv), slept);
    s.stop = true;
    loop_run(w);
}

static void tick(uv_timer_t *timer) {
    int *ticks = timer->data;
    if (++*ticks == 3) uv_timer_stop(timer);
}

static void the_hosts_own_handles_go_on_beside_it(void **state) {
    loop_world *w = *state;
    int ticks = 0;
    uv_timer_t timer;
    uv_timer_init(&w->uv, &timer);
    timer.data = &ticks;
    uv_timer_start(&timer, tick, 1, 1);
    spinner s = {0};
    ebb_spawn(ebb_loop_cx(w->loop), w->region, spin, &s);
    while (ticks < 3) uv_run(&w->uv, UV_RUN_ONCE);
    s.stop = true;
    uv_run(&w->uv, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&timer, NULL);
    loop_run(w);
}

typedef struct late {
    loop_world *world;
    uv_async_t async;
    uint64_t from;
    ebb_future *nap;
} late;

/* libuv calls it before the loop has its turn: its time is still that from before the sleep. */
static void after_a_long_sleep(uv_async_t *async) {
    late *l = async->data;
    l->from = uv_hrtime();
    l->nap = ebb_after(ebb_loop_cx(l->world->loop), 20 * EBB_MS);
    uv_unref((uv_handle_t *)async);
}

static void wake_it_later(void *arg) {
    late *l = arg;
    uv_sleep(40); /* longer than what is slept then */
    uv_async_send(&l->async);
}

static void time_is_up_to_date_in_a_callback_of_the_hosts(void **state) {
    loop_world *w = *state;
    late l = {.world = w};
    uv_thread_t thread;
    uv_async_init(&w->uv, &l.async, after_a_long_sleep);
    l.async.data = &l;
    assert_int_equal(uv_thread_create(&thread, wake_it_later, &l), 0);
    uv_run(&w->uv, UV_RUN_DEFAULT);
    assert_true(uv_hrtime() - l.from >= 20 * EBB_MS);
    assert_int_equal(status_now(l.nap), EBB_OK);
    uv_thread_join(&thread);
    uv_close((uv_handle_t *)&l.async, NULL);
    loop_run(w);
}

static void settle_from_afar(void *arg) {
    ebb_remote *r = arg;
    (void)ebb_remote_settle(r, ebb_value_int(42));
    ebb_remote_release(r);
}

static void another_thread_wakes_a_loop_that_sleeps(void **state) {
    loop_world *w = *state;
    static const ebb_operation op = {"from afar", NULL, NULL};
    for (int round = 0; round < 100; round++) {
        ebb_remote *r;
        ebb_value v;
        uv_thread_t thread;
        ebb_future *f = ebb_promise_new(ebb_loop_cx(w->loop), &op, NULL);
        assert_int_equal(ebb_remote_new(f, &r), EBB_OK);
        assert_int_equal(uv_thread_create(&thread, settle_from_afar, r), 0);
        assert_int_equal(loop_await(w, f, &v), EBB_OK);
        assert_int_equal(v.as.i, 42);
        uv_thread_join(&thread);
    }
}

/* ---- leaving ------------------------------------------------------------------------------------------------------- */

static const ebb_loop_leftover *find_left(const ebb_loop_leftover *left, size_t n, const char *what) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(left[i].what, what) == 0) return &left[i];
    }
    fail_msg("no %s is left", what);
    return NULL;
}

static ebb_status busy_thread(void *arg, ebb_value *v) {
    (void)v;
    uv_sem_wait(arg);
    return EBB_OK;
}

static void closing_with_open_handles_says_which_and_where(void **state) {
    loop_world *w = *state;
    ebb_loop_leftover left[8];
    size_t n;
    int fd;
    uv_sem_t sem;
    uv_sem_init(&sem, 0);
    ebb_stream s = stream_pair(w, &fd);
    const int line = __LINE__ + 1;
    ebb_listener l = ebb_tcp_listen(w->cx, &(ebb_address){"127.0.0.1", 0});
    ebb_future *f = ebb_pool_run(w->cx, busy_thread, &sem);
    spinner sp = {0};
    ebb_task t = ebb_spawn(w->cx, w->region, spin, &sp);
    loop_turns(w, 1);
    assert_int_equal(ebb_loop_close(w->loop, left, 8, &n), EBB_ERR_BUSY);
    assert_int_equal(n, 4);
    char where[64];
    snprintf(where, sizeof where, "tests/loop/attach.c:%d", line);
    assert_non_null(strstr(find_left(left, n, "tcp listener")->site, where));
    assert_int_equal(find_left(left, n, "tcp listener")->id, l.id);
    assert_int_equal(find_left(left, n, "tcp listener")->region.id, ebb_runtime_root(w->rt).id);
    assert_int_equal(find_left(left, n, "pipe")->id, s.id);
    assert_int_equal(find_left(left, n, "task")->id, t.id);
    assert_int_equal(find_left(left, n, "task")->region.id, w->region.id);
    assert_non_null(strstr(find_left(left, n, "blocking")->site, "loop/attach.c"));
    assert_int_equal(ebb_loop_close(w->loop, left, 1, &n), EBB_ERR_BUSY); /* counts what does not fit */
    assert_int_equal(n, 4);
    assert_int_equal(ebb_loop_close(w->loop, NULL, 0, NULL), EBB_ERR_BUSY);
    sp.stop = true;
    uv_sem_post(&sem);
    assert_int_equal(loop_await(w, f, NULL), EBB_OK);
    uv_sem_destroy(&sem);
    close(fd);
}

typedef struct closer {
    ebb_loop *loop;
    ebb_status seen;
} closer;

static ebb_status close_in_a_poll(ebb_cx *cx, void *arg) {
    closer *c = arg;
    (void)cx;
    c->seen = ebb_loop_close(c->loop, NULL, 0, NULL);
    return EBB_OK;
}

static void close_elsewhere(void *arg) {
    closer *c = arg;
    c->seen = ebb_loop_close(c->loop, NULL, 0, NULL);
}

static void a_loop_is_closed_on_its_thread_and_outside_of_the_pump(void **state) {
    loop_world *w = *state;
    closer c = {w->loop, EBB_OK};
    uv_thread_t thread;
    ebb_spawn(w->cx, w->region, close_in_a_poll, &c);
    loop_run(w);
    assert_int_equal(c.seen, EBB_ERR_REENTERED);
    assert_int_equal(uv_thread_create(&thread, close_elsewhere, &c), 0);
    uv_thread_join(&thread);
    assert_int_equal(c.seen, EBB_ERR_THREAD);
    assert_int_equal(ebb_loop_close(NULL, NULL, 0, NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_loop_join(w->loop), EBB_ERR_INVALID);
    assert_int_equal(ebb_loop_stop(w->loop), EBB_ERR_INVALID);
    assert_int_equal(ebb_loop_join(NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_loop_stop(NULL), EBB_ERR_INVALID);
}

typedef struct trespasser {
    loop_world *world;
    ebb_stream stream;
    ebb_status seen[14];
    ebb_cx *cx;
} trespasser;

static void touch_everything(void *arg) {
    trespasser *t = arg;
    ebb_cx *cx = t->world->cx;
    char byte;
    int i = 0;
    t->cx = ebb_loop_cx(t->world->loop);
    t->seen[i++] = ebb_future_status_of(ebb_stream_read(cx, t->stream, &byte, 1));
    t->seen[i++] = ebb_future_status_of(ebb_stream_write(cx, t->stream, &byte, 1));
    t->seen[i++] = ebb_stream_close(cx, t->stream);
    t->seen[i++] = ebb_id_status(ebb_tcp_listen(cx, &(ebb_address){"127.0.0.1", 0}).id);
    t->seen[i++] = ebb_future_status_of(ebb_tcp_connect(cx, &(ebb_address){"127.0.0.1", 1}));
    t->seen[i++] = ebb_future_status_of(ebb_pipe_connect(cx, "/nowhere"));
    t->seen[i++] = ebb_future_status_of(ebb_file_open(cx, "/dev/null", O_RDONLY, 0));
    t->seen[i++] = ebb_future_status_of(ebb_file_unlink(cx, "/nowhere"));
    t->seen[i++] = ebb_future_status_of(ebb_dns_resolve(cx, "localhost", 1));
    t->seen[i++] = ebb_id_status(ebb_process_spawn(cx, NULL, &(ebb_process_opts){.file = "true"}).id);
    t->seen[i++] = ebb_future_status_of(ebb_signal_wait(cx, SIGUSR1));
    t->seen[i++] = ebb_id_status(ebb_signal_open(cx, SIGUSR1).id);
    t->seen[i++] = ebb_future_status_of(ebb_pool_run(cx, busy_thread, NULL));
    t->seen[i++] = ebb_id_status(ebb_stream_adopt(cx, 0).id);
}

static void a_loop_is_for_its_own_thread(void **state) {
    loop_world *w = *state;
    trespasser t = {.world = w};
    int fd;
    uv_thread_t thread;
    t.stream = stream_pair(w, &fd);
    assert_int_equal(uv_thread_create(&thread, touch_everything, &t), 0);
    uv_thread_join(&thread);
    assert_null(t.cx);
    for (size_t i = 0; i < sizeof t.seen / sizeof *t.seen; i++) assert_int_equal(t.seen[i], EBB_ERR_THREAD);
    w->told = 0;
    close(fd);
}

static void a_runtime_without_a_loop_has_no_io(void **state) {
    (void)state;
    ebb_runtime *rt;
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    assert_int_equal(ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_failing_allocator(&memory)}, &rt),
                     EBB_OK);
    ebb_cx *cx = ebb_runtime_host(rt);
    char byte;
    assert_int_equal(ebb_future_status_of(ebb_stream_read(cx, (ebb_stream){0}, &byte, 1)), EBB_ERR_INVALID);
    ebb_future_drop(ebb_future_never(cx)); /* and once it has a heap */
    assert_int_equal(ebb_future_status_of(ebb_dns_resolve(cx, "localhost", 1)), EBB_ERR_INVALID);
    ebb_runtime_free(rt);
    assert_int_equal(memory.live, 0);
}

/* ---- attaching --------------------------------------------------------------------------------------------------------- */

static void bad_options_are_refused(void **state) {
    (void)state;
    uv_loop_t uv;
    ebb_loop *l;
    ebb_failing memory = {.calls = 0};
    ebb_loop_opts good = plain_opts(&memory), bad = good;
    ebb_heap_opts heap = {.size = 3};
    assert_int_equal(uv_loop_init(&uv), 0);
    assert_int_equal(ebb_loop_attach(NULL, &good, &l), EBB_ERR_INVALID);
    assert_int_equal(ebb_loop_attach(&uv, NULL, &l), EBB_ERR_INVALID);
    bad.size = 1;
    assert_int_equal(ebb_loop_attach(&uv, &bad, &l), EBB_ERR_VERSION);
    bad = good;
    bad.runtime.allocator.fn = NULL;
    assert_int_equal(ebb_loop_attach(&uv, &bad, &l), EBB_ERR_INVALID);
    bad = good;
    bad.runtime.size = 1;
    assert_int_equal(ebb_loop_attach(&uv, &bad, &l), EBB_ERR_VERSION);
    bad = good;
    bad.heap = &heap;
    assert_int_equal(ebb_loop_attach(&uv, &bad, &l), EBB_ERR_VERSION);
    assert_null(l);
    assert_int_equal(uv_loop_close(&uv), 0); /* nothing was left in it */
    assert_int_equal(memory.live, 0);
}

static void two_runtimes_of_a_thread_need_different_ids(void **state) {
    (void)state;
    uv_loop_t uv;
    ebb_loop *a, *b, *c;
    ebb_failing memory = {.calls = 0};
    ebb_loop_opts opts = plain_opts(&memory);
    assert_int_equal(uv_loop_init(&uv), 0);
    opts.runtime.runtime_id = 200;
    assert_int_equal(ebb_loop_attach(&uv, &opts, &a), EBB_OK);
    assert_int_equal(ebb_loop_attach(&uv, &opts, &b), EBB_ERR_BUSY);
    opts.runtime.runtime_id = 201;
    assert_int_equal(ebb_loop_attach(&uv, &opts, &b), EBB_OK);
    ebb_future *f = ebb_after(ebb_loop_cx(a), EBB_MS), *g = ebb_after(ebb_loop_cx(b), EBB_MS);
    uv_run(&uv, UV_RUN_DEFAULT);
    assert_int_equal(status_now(f), EBB_OK);
    assert_int_equal(status_now(g), EBB_OK);
    assert_int_equal(ebb_loop_close(a, NULL, 0, NULL), EBB_OK);
    opts.runtime.runtime_id = 0;
    assert_int_equal(ebb_loop_attach(&uv, &opts, &c), EBB_OK); /* the id is free again */
    assert_int_equal(ebb_loop_close(b, NULL, 0, NULL), EBB_OK);
    assert_int_equal(ebb_loop_close(c, NULL, 0, NULL), EBB_OK);
    uv_run(&uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&uv), 0);
    assert_int_equal(memory.live, 0);
}

static void without_memory_nothing_is_left_behind(void **state) {
    (void)state;
    uv_loop_t uv;
    assert_int_equal(uv_loop_init(&uv), 0);
    ebb_status st = EBB_ERR_NOMEM;
    uint64_t n;
    for (n = 1; st == EBB_ERR_NOMEM; n++) {
        ebb_loop *l;
        ebb_failing memory = {.fail_at = n};
        ebb_loop_opts opts = plain_opts(&memory);
        st = ebb_loop_attach(&uv, &opts, &l);
        if (st == EBB_OK) assert_int_equal(ebb_loop_close(l, NULL, 0, NULL), EBB_OK);
        uv_run(&uv, UV_RUN_DEFAULT);
        assert_int_equal(memory.live, 0);
    }
    assert_int_equal(st, EBB_OK);
    assert_in_range(n, 5, 100);
    assert_int_equal(uv_loop_close(&uv), 0);
}

/* ---- statuses ------------------------------------------------------------------------------------------------------------ */

static void failures_of_the_system_have_names(void **state) {
    (void)state;
    assert_int_equal(EBB_ERRNO(EADDRINUSE), EBB_UV(UV_EADDRINUSE));
    assert_string_equal(ebb_status_name(EBB_ERRNO(EADDRINUSE)), "EADDRINUSE");
    assert_string_equal(ebb_status_text(EBB_ERRNO(EADDRINUSE)), "address already in use");
    assert_string_equal(ebb_status_name(EBB_UV(UV_EAI_NONAME)), "EAI_NONAME");
    assert_string_equal(ebb_status_name(EBB_ERR_EOF), "EBB_ERR_EOF");
    assert_string_equal(ebb_status_name(EBB_OK), "EBB_OK");
    assert_string_equal(ebb_status_name((ebb_status)-1234), "EBB_USER");
    assert_string_equal(ebb_status_name(EBB_UV(0)), "EBB_USER");
    assert_string_equal(ebb_status_name((ebb_status)-2999), "EBB_SYSTEM"); /* no errno is 999 */
    assert_string_equal(ebb_status_name((ebb_status)INT32_MIN), "EBB_USER");
    assert_string_equal(ebb_status_name((ebb_status)INT32_MAX), "EBB_USER");
    for (int e = 1; e < 4095; e++) { /* each that libuv knows has the same name here */
        char name[32];
        uv_err_name_r(-e, name, sizeof name);
        if (strncmp(name, "Unknown", 7) != 0 && strcmp(name, "EOF") != 0)
            assert_string_equal(ebb_status_name(EBB_UV(-e)), name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(nothing_goes_on_and_uv_run_returns),
        ON_A_LOOP(a_sleep_keeps_uv_run_going_until_it_is_over),
        ON_A_LOOP(a_sleep_that_was_cancelled_does_not),
        ON_A_LOOP(a_task_keeps_it_going_whatever_it_waits_for),
        ON_A_LOOP(an_open_handle_does_not),
        ON_A_LOOP(an_operation_of_somebody_elses_does),
        ON_A_LOOP(a_task_that_never_rests_does_not_starve_sockets_or_timers),
        ON_A_LOOP(work_is_not_slept_over),
        ON_A_LOOP(the_hosts_own_handles_go_on_beside_it),
        ON_A_LOOP(time_is_up_to_date_in_a_callback_of_the_hosts),
        ON_A_LOOP(another_thread_wakes_a_loop_that_sleeps),
        ON_A_LOOP(closing_with_open_handles_says_which_and_where),
        ON_A_LOOP(a_loop_is_closed_on_its_thread_and_outside_of_the_pump),
        ON_A_LOOP(a_loop_is_for_its_own_thread),
        cmocka_unit_test(a_runtime_without_a_loop_has_no_io),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(two_runtimes_of_a_thread_need_different_ids),
        cmocka_unit_test(without_memory_nothing_is_left_behind),
        cmocka_unit_test(failures_of_the_system_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
