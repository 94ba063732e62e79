/* Programs in a network of the lab: the same decisions give the same run, faults stay within their limits, and what goes
 * wrong is found, kept and replayed. */
#include <errno.h>
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

/* A task that is cancelled before it begins is never called, so it owns nothing: its argument is the id of the stream. */
static ebb_status echo_one(ebb_cx *cx, void *arg) {
    ebb_stream stream = {(uint64_t)(uintptr_t)arg};
    char bytes[PIECE];
    ebb_value n;
    ebb_status st;
    while ((st = ebb_await(cx, ebb_stream_read(cx, stream, bytes, sizeof bytes), &n)) == EBB_OK) {
        st = ebb_await(cx, ebb_stream_write(cx, stream, bytes, n.as.u), NULL);
        if (st != EBB_OK) break;
    }
    (void)ebb_stream_close(cx, stream);
    return st == EBB_ERR_EOF ? EBB_OK : st;
}

static ebb_status echo(ebb_cx *cx, void *arg) {
    ebb_listener l = ebb_tcp_listen(cx, &(ebb_address){"10.0.0.1", *(uint16_t *)arg});
    ebb_status st = ebb_id_status(l.id);
    ebb_value v;
    while (st == EBB_OK && (st = ebb_await(cx, ebb_listener_accept(cx, l), &v)) == EBB_OK)
        (void)ebb_fiber_spawn(cx, ebb_cx_region(cx), echo_one, (void *)(uintptr_t)ebb_stream_of(v).id);
    return st == EBB_ERR_CLOSED ? EBB_OK : st; /* the service stops */
}

static int echo_main(int argc, char **argv) {
    uint16_t port = argc > 1 ? (uint16_t)atoi(argv[1]) : 7;
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator()};
    return ebb_service_run(&opts, echo, &port);
}

/* Who has no answer after a while leaves: an injected cancel may have ended what would answer. */
static ebb_status bounded(ebb_cx *cx, ebb_future *f, ebb_value *out) {
    return ebb_await(cx, ebb_within(cx, f, 200 * EBB_SECOND), out);
}

static ebb_status read_all(ebb_cx *cx, ebb_stream s, char *to, size_t n) {
    ebb_status st = EBB_OK;
    ebb_value got;
    for (size_t at = 0; at < n && st == EBB_OK; at += st == EBB_OK ? got.as.u : 0)
        st = bounded(cx, ebb_stream_read(cx, s, to + at, n - at), &got);
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
        st = bounded(cx, ebb_stream_write(cx, s, out, sizeof out), NULL);
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
        bytes one[EBB_LAB_RUNTIMES] = {{.p = NULL}}, two[EBB_LAB_RUNTIMES] = {{.p = NULL}};
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

/* ---- faults -------------------------------------------------------------------------------------------- */

static int came;

/* Runs a scenario of two echo clients with other limits. */
static ebb_lab_result play_with(ebb_lab_network net, uint64_t seed) {
    net.programs = echo_programs;
    net.n = 3;
    ebb_lab_scenario s = echo_scenario;
    s.network = &net;
    return play(&(ebb_lab_case){.scenario = &s, .seed = seed}, NULL);
}

static void faults_happen_and_the_service_bears_them(void **state) {
    (void)state;
    const ebb_lab_network kinds[] = {
        {.resets = 2}, {.refusals = 2}, {.losses = 5}, {.partitions = 2}, {.accept_errors = 3}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (uint64_t seed = 1; seed <= 50; seed++) {
            ebb_lab_result r = play_with(kinds[k], seed);
            must_hold(&r);
        }
    }
}

/* Counts what a client sees. */
static ebb_status counting(ebb_cx *cx, void *arg) {
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_tcp_connect(cx, &(ebb_address){"10.0.0.1", 7}), &v);
    if (st == EBB_OK) st = ebb_await(cx, ebb_stream_write(cx, ebb_stream_of(v), "x", 1), NULL);
    char byte;
    if (st == EBB_OK) st = ebb_await(cx, ebb_stream_read(cx, ebb_stream_of(v), &byte, 1), &v);
    if (st == *(const ebb_status *)arg) came++;
    return EBB_OK;
}

static ebb_lab_result count(ebb_status what, ebb_lab_network net, uint64_t seeds) {
    const ebb_lab_program programs[] = {echo_programs[0],
                                        {.name = "one", .ip = "10.0.0.2", .fn = counting, .arg = &what}};
    net.programs = programs;
    net.n = 2;
    ebb_lab_scenario s = {.name = "count", .play = ebb_lab_network_play, .network = &net};
    ebb_lab_result r = {.status = EBB_OK};
    came = 0;
    for (uint64_t seed = 1; seed <= seeds && r.status == EBB_OK; seed++)
        r = play(&(ebb_lab_case){.scenario = &s, .seed = seed}, NULL);
    return r;
}

static void each_fault_has_the_error_of_the_system(void **state) {
    (void)state;
    const struct {
        ebb_status seen;
        ebb_lab_network net;
    } all[] = {{EBB_ERRNO(ECONNRESET), {.resets = 3}},
               {EBB_ERRNO(ECONNREFUSED), {.refusals = 1}},
               {EBB_ERRNO(ETIMEDOUT), {.refusals = 1}}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ebb_lab_result r = count(all[i].seen, all[i].net, 300);
        must_hold(&r);
        if (came == 0) fail_msg("%s was not seen", ebb_status_name(all[i].seen));
        r = count(all[i].seen, (ebb_lab_network){.latency = 0}, 300);
        must_hold(&r);
        if (came > 0) fail_msg("%s was seen without a fault", ebb_status_name(all[i].seen));
    }
}

/* Connects again and again; counts the refusals of this run. */
static ebb_status knock(ebb_cx *cx, void *arg) {
    int refused = 0;
    ebb_value v;
    (void)arg;
    for (int i = 0; i < 40; i++) {
        ebb_status st = ebb_await(cx, ebb_tcp_connect(cx, &(ebb_address){"10.0.0.1", 7}), &v);
        if (st == EBB_OK) (void)ebb_stream_close(cx, ebb_stream_of(v));
        else refused++;
    }
    if (refused > 2) ebb_lab_fail(ebb_lab_here(), "more refusals than allowed");
    came += refused == 2;
    return EBB_OK;
}

static void a_fault_happens_no_more_often_than_allowed(void **state) {
    (void)state;
    const ebb_lab_program programs[] = {echo_programs[0], {.name = "one", .ip = "10.0.0.2", .fn = knock}};
    const ebb_lab_network net = {.programs = programs, .n = 2, .refusals = 2};
    const ebb_lab_scenario s = {.name = "knock", .play = ebb_lab_network_play, .network = &net};
    came = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        ebb_lab_result r = play(&(ebb_lab_case){.scenario = &s, .seed = seed}, NULL);
        must_hold(&r);
    }
    assert_true(came > 0);
}

/* ---- scripted faults ------------------------------------------------------------------------------------- */

static void cut_off(ebb_lab *lab, uint32_t n) {
    (void)n;
    assert_int_equal(ebb_lab_partition(lab, "echo", "one", 30 * EBB_SECOND), EBB_OK);
    assert_int_equal(ebb_lab_partition(lab, "echo", "nobody", 1), EBB_ERR_INVALID);
    assert_int_equal(ebb_lab_signal(lab, "nobody", 15), EBB_ERR_INVALID);
    assert_int_equal(ebb_lab_reset(lab, "nobody"), EBB_ERR_INVALID);
    assert_true(ebb_lab_disturbed(lab));
}

static uint64_t waited;

/* Asks once a second, a minute long. How long the longest answer took. */
static ebb_status patient(ebb_cx *cx, void *arg) {
    ebb_value v;
    char byte;
    (void)arg;
    waited = 0;
    ebb_status st = ebb_await(cx, ebb_tcp_connect(cx, &(ebb_address){"10.0.0.1", 7}), &v);
    ebb_stream s = ebb_stream_of(v);
    for (int i = 0; i < 60 && st == EBB_OK; i++) {
        uint64_t since = ebb_now(cx);
        st = ebb_await(cx, ebb_stream_write(cx, s, "x", 1), NULL);
        if (st == EBB_OK) st = ebb_await(cx, ebb_stream_read(cx, s, &byte, 1), &v);
        if (ebb_now(cx) - since > waited) waited = ebb_now(cx) - since;
        if (st == EBB_OK) st = ebb_await(cx, ebb_after(cx, EBB_SECOND), NULL);
    }
    if (st != EBB_OK) ebb_lab_fail(ebb_lab_here(), ebb_status_name(st));
    return EBB_OK;
}

static void segments_wait_for_the_end_of_a_partition(void **state) {
    (void)state;
    const ebb_lab_program programs[] = {echo_programs[0], {.name = "one", .ip = "10.0.0.2", .fn = patient}};
    const ebb_lab_network net = {.programs = programs, .n = 2};
    ebb_lab_scenario s = {.name = "cut", .play = ebb_lab_network_play, .network = &net};
    ebb_lab_result r = play(&(ebb_lab_case){.scenario = &s, .recorded = true}, NULL);
    must_hold(&r);
    assert_true(waited < 10 * EBB_MS);
    s.steps = 1;
    s.step = cut_off;
    uint64_t longest = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        r = play(&(ebb_lab_case){.scenario = &s, .seed = seed}, NULL);
        must_hold(&r);
        if (waited > longest) longest = waited;
    }
    assert_true(longest > 25 * EBB_SECOND && longest < 32 * EBB_SECOND);
}

/* Many short partitions, and one that lasts: none of them ends it. */
static void cut_off_for_ever(ebb_lab *lab, uint32_t n) {
    (void)n;
    assert_int_equal(ebb_lab_partition(lab, "echo", "one", EBB_FOREVER), EBB_OK);
    for (int i = 0; i < 40; i++) assert_int_equal(ebb_lab_partition(lab, "one", "echo", EBB_MS), EBB_OK);
}

static void a_partition_may_last_for_ever(void **state) {
    (void)state;
    const ebb_lab_program programs[] = {echo_programs[0], {.name = "one", .ip = "10.0.0.2", .fn = patient}};
    const ebb_lab_network net = {.programs = programs, .n = 2};
    ebb_lab_scenario s = {
        .name = "cut", .play = ebb_lab_network_play, .network = &net, .steps = 1, .step = cut_off_for_ever};
    uint32_t stuck = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        ebb_lab_result r = play(&(ebb_lab_case){.scenario = &s, .seed = seed}, NULL);
        stuck += strcmp(r.failure, "stuck") == 0;
    }
    assert_true(stuck > 0);
}

/* ---- names, and what there is not ----------------------------------------------------------------------- */

static ebb_status saw; /* what a client wants its test to see */

static ebb_lab_result play_alone(ebb_status (*fn)(ebb_cx *, void *), ebb_lab_network net, uint64_t seed) {
    const ebb_lab_program programs[] = {{.name = "alone", .ip = "10.0.0.2", .fn = fn}};
    net.programs = programs;
    net.n = 1;
    ebb_lab_scenario s = {.name = "alone", .play = ebb_lab_network_play, .network = &net};
    return play(&(ebb_lab_case){.scenario = &s, .seed = seed}, NULL);
}

static ebb_status block(void *arg, ebb_value *out) {
    (void)arg;
    *out = ebb_value_int(42);
    return EBB_OK;
}

static ebb_status idle(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return EBB_OK;
}

static ebb_status use_the_rest(ebb_cx *cx, void *arg) {
    ebb_loop *loop;
    ebb_value v;
    size_t n = 0;
    (void)arg;
    saw = ebb_await(cx, ebb_dns_resolve(cx, "alone", 80), &v);
    const ebb_address *found = saw == EBB_OK ? ebb_dns_addresses_of(&v, &n) : NULL;
    if (n != 1 || strcmp(found->ip, "10.0.0.2") != 0 || found->port != 80) saw = EBB_FAILED;
    ebb_value_discard(cx, v);
    if (ebb_await(cx, ebb_dns_resolve(cx, "nobody", 80), NULL) == EBB_OK) saw = EBB_FAILED;
    if (ebb_await(cx, ebb_pool_run(cx, block, NULL), &v) != EBB_OK || v.as.u != 42) saw = EBB_FAILED;
    ebb_process p = ebb_process_spawn(cx, NULL, &(ebb_process_opts){.file = "/bin/true"});
    if (ebb_id_status(p.id) != EBB_ERRNO(ENOSYS)) saw = EBB_FAILED;
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    if (ebb_loop_new(&opts, idle, NULL, &loop) != EBB_ERRNO(ENOSYS)) saw = EBB_FAILED;
    return EBB_OK;
}

static void names_and_the_pool_are_there_and_processes_and_threads_are_not(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 50; seed++) {
        ebb_lab_result r = play_alone(use_the_rest, (ebb_lab_network){.latency = 0}, seed);
        must_hold(&r);
        assert_int_equal(saw, EBB_OK);
    }
}

static ebb_status nothing(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return EBB_OK;
}

/* Each is an error that says what is wrong, whatever is done with the case. */
static void a_network_that_can_not_be_played_is_refused(void **state) {
    (void)state;
    const ebb_lab_program nameless = {.fn = nothing}, idle = {.name = "idle"},
                          nowhere = {.name = "nowhere", .ip = "10.0.0", .fn = nothing};
    const ebb_lab_program many[EBB_LAB_RUNTIMES + 1] = {{.name = "one", .fn = nothing}};
    const ebb_lab_network nets[] = {{.programs = many, .n = 0},
                                    {.programs = many, .n = EBB_LAB_RUNTIMES + 1},
                                    {.programs = &nameless, .n = 1},
                                    {.programs = &idle, .n = 1},
                                    {.programs = &nowhere, .n = 1}};
    const char *const says[] = {"the scenario has no network",
                                "a network has 1 to 8 programs, not 0",
                                "a network has 1 to 8 programs, not 9",
                                "program 0 needs a name, and main or fn",
                                "program 0 needs a name, and main or fn",
                                "program nowhere: '10.0.0' is no address"};
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    for (int i = 0; i < 6; i++) {
        ebb_lab_scenario s = {
            .name = "bad", .play = ebb_lab_network_play, .network = i == 0 ? NULL : &nets[i - 1]};
        ebb_lab_case c = {.scenario = &s, .seed = 1};
        ebb_lab_result run;
        ebb_lab_explore_result explored;
        assert_int_equal(ebb_lab_run(lab, &c, NULL, &run), EBB_ERR_INVALID);
        assert_string_equal(run.text, says[i]);
        assert_int_equal(ebb_lab_explore(lab, &c, &(ebb_lab_explore_opts){.schedules = 3}, &explored),
                         EBB_ERR_INVALID);
        assert_int_equal(explored.schedules, 1);
        ebb_lab_inject_result injected;
        assert_int_equal(ebb_lab_inject(lab, &c, NULL, &injected), EBB_ERR_INVALID);
        assert_string_equal(injected.failure.text, says[i]);
        ebb_lab_case_free(lab, &c);
    }
    ebb_lab_free(lab);
}

static void outside_of_a_run_there_is_no_lab(void **state) {
    (void)state;
    assert_null(ebb_lab_here());
}

/* ---- failures ------------------------------------------------------------------------------------------ */

static ebb_status wait_for_ever(ebb_cx *cx, void *arg) {
    ebb_wait w = {0};
    ebb_sem never;
    (void)arg;
    ebb_sem_init(&never, 0);
    return ebb_sem_acquire(cx, &never, &w);
}

static ebb_status spin(ebb_cx *cx, void *arg) {
    ebb_status st;
    (void)arg;
    do st = ebb_fiber_yield(cx);
    while (st == EBB_OK);
    return st;
}

static ebb_status break_down(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return EBB_FAILED;
}

static ebb_status forget(ebb_cx *cx, void *arg) {
    ebb_chan *forgotten;
    (void)arg;
    return ebb_chan_new(ebb_cx_runtime(cx), 1, 1, &forgotten);
}

static ebb_status crash(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    abort();
}

static void a_failure_says_which_program_and_why(void **state) {
    (void)state;
    const struct {
        ebb_status (*fn)(ebb_cx *cx, void *arg);
        const char *failure, *text;
        bool forks;
    } all[] = {{wait_for_ever, "stuck", "alone has not ended: nothing will wake it", false},
               {spin, "livelock", "alone has not ended after 1000001 decisions", false},
               {break_down, "exit", "alone ended with the exit status 1", false},
               {forget, "leak", "alone ended and left", true},
               {crash, "crash", "the run has died of signal 6", true}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ebb_lab_network net = {.forks = all[i].forks, .patience = 10 * EBB_SECOND};
        ebb_lab_result r = play_alone(all[i].fn, net, 1);
        assert_string_equal(r.failure, all[i].failure);
        if (strstr(r.text, all[i].text) == NULL) fail_msg("expected '%s' in '%s'", all[i].text, r.text);
    }
}

static void a_run_of_its_own_process_is_the_same_run(void **state) {
    (void)state;
    ebb_lab_network net = echo_network;
    ebb_lab_scenario s = echo_scenario;
    net.forks = true;
    s.network = &net;
    for (uint64_t seed = 1; seed < 10; seed++) {
        bytes one[EBB_LAB_RUNTIMES] = {{.p = NULL}}, two[EBB_LAB_RUNTIMES] = {{.p = NULL}};
        ebb_lab_result r = play(&(ebb_lab_case){.scenario = &echo_scenario, .seed = seed}, one);
        ebb_lab_result apart = play(&(ebb_lab_case){.scenario = &s, .seed = seed}, two);
        must_hold(&apart);
        assert_int_equal(r.choices, apart.choices);
        assert_int_equal(r.polls, apart.polls);
        for (int i = 0; i < EBB_LAB_RUNTIMES; i++) {
            assert_int_equal(one[i].n, two[i].n);
            if (one[i].n > 0) assert_memory_equal(one[i].p, two[i].p, one[i].n);
            free(one[i].p);
            free(two[i].p);
        }
    }
}

/* ---- injection ----------------------------------------------------------------------------------------- */

static void every_action_at_every_point_holds(void **state) {
    (void)state;
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    ebb_lab_case c = {.scenario = &echo_scenario, .recorded = true};
    ebb_lab_scenario s = echo_scenario;
    ebb_lab_inject_result r;
    s.check = NULL; /* a client that was cancelled does not come to its end */
    c.scenario = &s;
    (void)ebb_lab_inject(lab, &c, NULL, &r);
    must_hold(&r.failure);
    assert_true(r.points > 20);
    assert_int_equal(r.runs, 1 + r.points * (EBB_LAB_ACTIONS - 1));
    ebb_lab_free(lab);
}

static void write_bytes(void *ctx, const void *p, size_t n) {
    append(ctx, p, n);
}

/* Fails when it is cancelled in its second sleep. */
static ebb_status sleeper(ebb_cx *cx, void *arg) {
    (void)arg;
    ebb_status st = ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    if (st != EBB_OK) return st;
    st = ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    if (st != EBB_OK) ebb_lab_fail(ebb_lab_here(), "cancelled in its second sleep");
    return st;
}

static void a_failing_injection_is_saved_and_replayed_alone(void **state) {
    (void)state;
    const ebb_lab_program programs[] = {{.name = "alone", .fn = sleeper}};
    const ebb_lab_network net = {.programs = programs, .n = 1};
    const ebb_lab_scenario s = {.name = "sleeper", .play = ebb_lab_network_play, .network = &net};
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    ebb_lab_case c = {.scenario = &s, .recorded = true}, again;
    ebb_lab_inject_result r;
    ebb_lab_error error;
    ebb_lab_result alone;
    bytes file = {.p = NULL};
    ebb_lab_inject_opts only_cancel = {.actions = 1 << EBB_LAB_CANCEL};
    assert_int_equal(ebb_lab_inject(lab, &c, &only_cancel, &r), EBB_FAILED);
    assert_string_equal(r.failure.text, "cancelled in its second sleep");
    assert_int_equal(c.action, EBB_LAB_CANCEL);
    assert_true(c.point > 1 && r.runs == 1 + c.point);
    ebb_lab_save(&c, write_bytes, &file);
    assert_int_equal(ebb_lab_load(lab, file.p, file.n, &s, &again, &error), EBB_OK);
    assert_int_equal(again.point, c.point);
    assert_int_equal(ebb_lab_run(lab, &again, NULL, &alone), EBB_FAILED);
    assert_string_equal(alone.text, r.failure.text);
    again.point--; /* in its first sleep */
    assert_int_equal(ebb_lab_run(lab, &again, NULL, &alone), EBB_OK);
    ebb_lab_case_free(lab, &again);
    ebb_lab_case_free(lab, &c);
    ebb_lab_free(lab);
    free(file.p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plain_story_holds),
        cmocka_unit_test(the_same_seed_gives_the_same_traces),
        cmocka_unit_test(faults_happen_and_the_service_bears_them),
        cmocka_unit_test(a_fault_happens_no_more_often_than_allowed),
        cmocka_unit_test(each_fault_has_the_error_of_the_system),
        cmocka_unit_test(segments_wait_for_the_end_of_a_partition),
        cmocka_unit_test(a_partition_may_last_for_ever),
        cmocka_unit_test(names_and_the_pool_are_there_and_processes_and_threads_are_not),
        cmocka_unit_test(outside_of_a_run_there_is_no_lab),
        cmocka_unit_test(a_network_that_can_not_be_played_is_refused),
        cmocka_unit_test(a_failure_says_which_program_and_why),
        cmocka_unit_test(a_run_of_its_own_process_is_the_same_run),
        cmocka_unit_test(every_action_at_every_point_holds),
        cmocka_unit_test(a_failing_injection_is_saved_and_replayed_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
