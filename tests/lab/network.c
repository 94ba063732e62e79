/* Programs in a network of the lab: the same decisions give the same run, faults stay within their limits, and what goes
 * wrong is found, kept and replayed. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ebb/ebb.h>
#include <ebb/lab.h>

enum { MESSAGES = 3, PIECE = 700 };

/* ---- an echo service and its client -------------------------------------------------------------------- */

typedef struct talk {
    ebb_stream stream;
    char bytes[PIECE];
} talk;

static ebb_status echo_one(ebb_cx *cx, void *arg) {
    talk *t = arg;
    ebb_value n;
    ebb_status st;
    while ((st = ebb_await(cx, ebb_stream_read(cx, t->stream, t->bytes, sizeof t->bytes), &n)) == EBB_OK) {
        st = ebb_await(cx, ebb_stream_write(cx, t->stream, t->bytes, n.as.u), NULL);
        if (st != EBB_OK) break;
    }
    (void)ebb_stream_close(cx, t->stream);
    free(t);
    return st == EBB_ERR_EOF ? EBB_OK : st;
}

static ebb_status echo(ebb_cx *cx, void *arg) {
    ebb_listener l = ebb_tcp_listen(cx, &(ebb_address){"10.0.0.1", *(uint16_t *)arg});
    ebb_status st = ebb_id_status(l.id);
    ebb_value v;
    while (st == EBB_OK && (st = ebb_await(cx, ebb_listener_accept(cx, l), &v)) == EBB_OK) {
        talk *t = malloc(sizeof *t);
        assert_non_null(t);
        t->stream = ebb_stream_of(v);
        (void)ebb_fiber_spawn(cx, ebb_cx_region(cx), echo_one, t);
    }
    return st == EBB_ERR_CLOSED ? EBB_OK : st; /* the service stops */
}

static int echo_main(int argc, char **argv) {
    uint16_t port = argc > 1 ? (uint16_t)atoi(argv[1]) : 7;
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator()};
    return ebb_service_run(&opts, echo, &port);
}

static ebb_status read_all(ebb_cx *cx, ebb_stream s, char *to, size_t n) {
    ebb_status st = EBB_OK;
    ebb_value got;
    for (size_t at = 0; at < n && st == EBB_OK; at += st == EBB_OK ? got.as.u : 0)
        st = ebb_await(cx, ebb_stream_read(cx, s, to + at, n - at), &got);
    return st;
}

static ebb_status client(ebb_cx *cx, void *arg) {
    char out[PIECE], in[PIECE];
    ebb_value v;
    (void)arg;
    ebb_status st = ebb_await(cx, ebb_tcp_connect(cx, &(ebb_address){"10.0.0.1", 7}), &v);
    ebb_stream s = ebb_stream_of(v);
    for (int i = 0; i < MESSAGES && st == EBB_OK; i++) {
        memset(out, 'a' + i, sizeof out);
        st = ebb_await(cx, ebb_stream_write(cx, s, out, sizeof out), NULL);
        if (st == EBB_OK) st = read_all(cx, s, in, sizeof in);
        if (st == EBB_OK && memcmp(in, out, sizeof in) != 0) ebb_lab_fail(ebb_lab_here(), "it is no echo");
    }
    if (st != EBB_OK && !ebb_lab_disturbed(ebb_lab_here())) ebb_lab_fail(ebb_lab_here(), ebb_status_name(st));
    (*(int *)ebb_lab_state(ebb_lab_here()))++;
    return EBB_OK;
}

static const char *const port_seven[] = {"7", NULL};
static const ebb_lab_program echo_programs[] = {
    {.name = "echo", .ip = "10.0.0.1", .main = echo_main, .args = port_seven},
    {.name = "one", .ip = "10.0.0.2", .fn = client},
    {.name = "two", .ip = "10.0.0.3", .fn = client},
};

static void both_came(ebb_lab *lab) {
    if (*(int *)ebb_lab_state(lab) != 2) ebb_lab_fail(lab, "a client has not come to its end");
}

static const ebb_lab_network echo_network = {.programs = echo_programs, .n = 3};
static const ebb_lab_scenario echo_scenario = {.name = "echo",
                                               .about = "two clients of an echo service",
                                               .state_size = sizeof(int),
                                               .check = both_came,
                                               .play = ebb_lab_network_play,
                                               .network = &echo_network};

/* ---- running it ---------------------------------------------------------------------------------------- */

typedef struct bytes {
    char *p;
    size_t n, room;
} bytes;

static void append(bytes *b, const void *p, size_t n) {
    if (b->n + n > b->room) {
        b->room = (b->n + n) * 2;
        b->p = realloc(b->p, b->room);
        assert_non_null(b->p);
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

static void keep_trace(void *ctx, uint32_t runtime, const void *p, size_t n) {
    append((bytes *)ctx + runtime, p, n);
}

static ebb_lab_result play(const ebb_lab_case *c, bytes *traces) {
    ebb_lab_result r;
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    ebb_lab_opts o = {.trace = traces != NULL ? keep_trace : NULL, .ctx = traces};
    assert_non_null(lab);
    (void)ebb_lab_run(lab, c, &o, &r);
    ebb_lab_free(lab);
    return r;
}

static void must_hold(const ebb_lab_result *r) {
    if (r->status != EBB_OK) fail_msg("%s: %s", r->failure, r->text);
}

static void the_plain_story_holds(void **state) {
    (void)state;
    ebb_lab_result r = play(&(ebb_lab_case){.scenario = &echo_scenario, .recorded = true}, NULL);
    must_hold(&r);
    assert_true(r.polls > 20);
}

static void the_same_seed_gives_the_same_traces(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 20; seed++) {
        ebb_lab_case c = {.scenario = &echo_scenario, .seed = seed};
        bytes one[EBB_LAB_RUNTIMES] = {{NULL}}, two[EBB_LAB_RUNTIMES] = {{NULL}};
        ebb_lab_result r = play(&c, one), again = play(&c, two);
        must_hold(&r);
        assert_int_equal(r.choices, again.choices);
        for (int i = 0; i < EBB_LAB_RUNTIMES; i++) {
            assert_int_equal(one[i].n, two[i].n);
            if (one[i].n > 0) assert_memory_equal(one[i].p, two[i].p, one[i].n);
            assert_true((one[i].n > 0) == (i < 3));
            free(one[i].p);
            free(two[i].p);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plain_story_holds),
        cmocka_unit_test(the_same_seed_gives_the_same_traces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
