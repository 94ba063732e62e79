/* A region that is closed takes no connections any more: accepts of its tasks end, those of others go on. */
#include "tests/support/loop_world.h"

/* A server as most are: it accepts until that fails. */
typedef struct server {
    ebb_listener listener;
    ebb_region region; /* its own */
    ebb_status ended, again;
    uint32_t accepted;
    bool over;
    bool asks_again; /* once it has been refused */
} server;

static ebb_status serve(ebb_cx *cx, void *arg) {
    server *s = arg;
    ebb_value v;
    while ((s->ended = ebb_await(cx, ebb_listener_accept(cx, s->listener), &v)) == EBB_OK) {
        s->accepted++;
        assert_int_equal(ebb_stream_close(cx, ebb_stream_of(v)), EBB_OK);
    }
    if (s->asks_again) s->again = status_now(ebb_listener_accept(cx, s->listener));
    s->over = true;
    return EBB_OK;
}

static ebb_listener listen_here(loop_world *w) {
    ebb_listener l = ebb_pipe_listen(w->cx, path_in(w, "socket"));
    assert_int_equal(ebb_id_status(l.id), EBB_OK);
    return l;
}

static server server_of(loop_world *w, ebb_listener l) {
    return (server){.listener = l, .region = ebb_region_open(w->cx, NULL), .ended = EBB_PENDING};
}

static void start(loop_world *w, server *s) {
    ebb_task t = ebb_fiber_spawn(ebb_loop_cx(w->loop), s->region, serve, s);
    assert_int_equal(ebb_id_status(t.id), EBB_OK);
    loop_turns(w, 3);
    assert_int_equal(s->ended, EBB_PENDING);
}

static void close_region(loop_world *w, ebb_region r) {
    ebb_region_close(ebb_loop_cx(w->loop), r);
}

/* Somebody comes, and the accept gets them. */
static void expect_connection(loop_world *w, ebb_future *accept) {
    ebb_value v;
    int fd = connect_to(path_in(w, "socket"));
    assert_int_equal(loop_await(w, accept, &v), EBB_OK);
    assert_int_equal(ebb_stream_close(w->cx, ebb_stream_of(v)), EBB_OK);
    close(fd);
}

static void a_plain_accept_loop_ends_by_itself_when_its_region_is_closed(void **state) {
    loop_world *w = *state;
    server s = server_of(w, listen_here(w));
    start(w, &s);
    int fd = connect_to(path_in(w, "socket"));
    while (s.accepted == 0) loop_turns(w, 1);
    close_region(w, s.region);
    loop_run(w); /* nothing keeps it going */
    assert_true(s.over);
    assert_int_equal(s.ended, EBB_ERR_CLOSED);
    assert_int_equal(s.accepted, 1);
    assert_true(region_is_closed(w, s.region));
    assert_int_equal(ebb_region_join(w->cx, s.region), EBB_OK);
    close(fd);
}

static void the_close_of_a_region_around_ends_it_too(void **state) {
    loop_world *w = *state;
    server s = server_of(w, listen_here(w));
    ebb_region around = s.region;
    s.region = ebb_region_open(w->cx, &(ebb_region_opts){.parent = around});
    start(w, &s);
    close_region(w, around);
    loop_run(w);
    assert_int_equal(s.ended, EBB_ERR_CLOSED);
    assert_true(region_is_closed(w, around));
}

static void a_new_accept_is_refused_in_a_region_that_is_closed(void **state) {
    loop_world *w = *state;
    server s = server_of(w, listen_here(w));
    s.asks_again = true;
    s.again = EBB_PENDING;
    start(w, &s);
    close_region(w, s.region);
    loop_run(w);
    assert_true(s.over);
    assert_int_equal(s.again, EBB_ERR_CLOSED); /* at once */
    assert_int_equal(s.accepted, 0);
}

static void the_listener_stays_open_for_others(void **state) {
    loop_world *w = *state;
    ebb_listener l = listen_here(w);
    server s = server_of(w, l);
    start(w, &s);
    close_region(w, s.region);
    loop_run(w);
    int fd = connect_to(path_in(w, "socket"));
    expect_connection(w, ebb_listener_accept(w->cx, l)); /* the one that waits */
    expect_connection(w, ebb_listener_accept(w->cx, l));
    assert_int_equal(ebb_listener_close(w->cx, l), EBB_OK);
    close(fd);
}

static void an_accept_of_an_open_region_is_not_pushed_aside(void **state) {
    loop_world *w = *state;
    ebb_listener l = listen_here(w);
    server s = server_of(w, l);
    start(w, &s);
    assert_int_equal(status_now(ebb_listener_accept(w->cx, l)), EBB_ERR_BUSY);
    assert_int_equal(s.ended, EBB_PENDING);
    close_region(w, s.region);
    loop_run(w);
    assert_int_equal(s.ended, EBB_ERR_CLOSED);
}

/* The pending one has not heard of it yet. */
static void one_of_an_open_region_takes_over_from_one_whose_region_is_closed(void **state) {
    loop_world *w = *state;
    ebb_listener l = listen_here(w);
    server old = server_of(w, l);
    start(w, &old);
    close_region(w, old.region);
    ebb_future *f = ebb_listener_accept(w->cx, l);
    assert_int_equal(ebb_future_status_of(f), EBB_PENDING);
    expect_connection(w, f);
    assert_int_equal(old.ended, EBB_ERR_CLOSED);
    assert_int_equal(old.accepted, 0);
    assert_true(region_is_closed(w, old.region));
}

static void a_region_that_is_cancelled_cancels_its_accept(void **state) {
    loop_world *w = *state;
    server s = server_of(w, listen_here(w));
    start(w, &s);
    ebb_region_cancel(ebb_loop_cx(w->loop), s.region, EBB_CANCEL_USER, "stop");
    loop_run(w);
    assert_int_equal(s.ended, EBB_CANCELLED);
}

/* Several listeners and servers of one region, as a service has them. */
static void all_accepts_of_a_region_end_at_once(void **state) {
    enum { N = 12 };
    loop_world *w = *state;
    server s[N];
    ebb_region r = ebb_region_open(w->cx, NULL);
    ebb_address any = {"127.0.0.1", 0};
    for (int i = 0; i < N; i++) {
        s[i] = (server){.listener = ebb_tcp_listen(w->cx, &any), .region = r, .ended = EBB_PENDING};
        start(w, &s[i]);
    }
    close_region(w, r);
    loop_run(w);
    for (int i = 0; i < N; i++) assert_int_equal(s[i].ended, EBB_ERR_CLOSED);
    assert_true(region_is_closed(w, r));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(a_plain_accept_loop_ends_by_itself_when_its_region_is_closed),
        ON_A_LOOP(the_close_of_a_region_around_ends_it_too),
        ON_A_LOOP(a_new_accept_is_refused_in_a_region_that_is_closed),
        ON_A_LOOP(the_listener_stays_open_for_others),
        ON_A_LOOP(an_accept_of_an_open_region_is_not_pushed_aside),
        ON_A_LOOP(one_of_an_open_region_takes_over_from_one_whose_region_is_closed),
        ON_A_LOOP(a_region_that_is_cancelled_cancels_its_accept),
        ON_A_LOOP(all_accepts_of_a_region_end_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
