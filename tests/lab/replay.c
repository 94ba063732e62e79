/* A journal, replayed, gives the trace of the recorded run byte for byte. */
#include "tests/support/replay_run.h"

/* ---- a program with everything in it ------------------------------------------------------------ */

typedef struct rich {
    run r;
    ebb_chan *chan;
    ebb_sem sem;
    ebb_region group, late;
    ebb_task kept, sleeper, loser;
    ebb_obligation held;
    uint64_t seen;
} rich;

typedef struct actor {
    EBB_TASK_STATE;
    rich *w;
    ebb_sleeper nap;
    ebb_wait wait;
    uint64_t item;
    ebb_obligation permit;
    ebb_region scope;
    ebb_timer timer;
    int n;
} actor;

static void hook_wakes(void *arg) {
    rich *w = arg;
    (void)ebb_task_wake(w->r.host, w->sleeper);
}

static ebb_status produces(ebb_cx *cx, void *state) {
    actor *a = state;
    ebb_status st;
    EBB_BEGIN(a);
    for (a->n = 0; a->n < 6; a->n++) {
        a->item = (uint64_t)a->n;
        EBB_AWAIT(a, st, ebb_chan_send(cx, a->w->chan, &a->wait, &a->item));
        if (st != EBB_OK) return st;
    }
    EBB_AWAIT(a, st, ebb_chan_reserve(cx, a->w->chan, &a->wait, &a->permit));
    if (st != EBB_OK) return st;
    (void)ebb_obligation_abort(cx, a->permit); /* its hook hands the place on */
    EBB_AWAIT(a, st, ebb_chan_reserve(cx, a->w->chan, &a->wait, &a->permit));
    return EBB_OK; /* and leaks it */
    EBB_END(a);
}

static ebb_status consumes(ebb_cx *cx, void *state) {
    actor *a = state;
    ebb_status st;
    EBB_BEGIN(a);
    for (;;) {
        EBB_AWAIT(a, st, ebb_sem_acquire(cx, &a->w->sem, &a->wait));
        if (st != EBB_OK) return st;
        EBB_AWAIT(a, st, ebb_chan_recv(cx, a->w->chan, &a->wait, &a->item));
        ebb_sem_release(cx, &a->w->sem);
        if (st != EBB_OK) return st;
        a->w->seen += a->item;
        EBB_YIELD(cx, a);
    }
    EBB_END(a);
}

static ebb_status cleans_slowly(ebb_cx *cx, void *arg) {
    actor *a = arg;
    ebb_status st;
    EBB_BEGIN(a);
    a->scope = ebb_region_open(cx, &(ebb_region_opts){.cleanup = true});
    (void)ebb_spawn(cx, a->scope, ends_at_once, NULL);
    EBB_AWAIT(a, st, ebb_region_join(cx, a->scope));
    EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, 3 * EBB_MS));
    EBB_END(a);
}

static ebb_status sleeps_masked(ebb_cx *cx, void *state) {
    actor *a = state;
    ebb_status st;
    EBB_BEGIN(a);
    (void)ebb_defer(cx, cleans_slowly, a + 1);
    (void)ebb_mask(cx);
    EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, 20 * EBB_MS));
    (void)ebb_unmask(cx);
    (void)ebb_unmask(cx); /* one too many */
    EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, EBB_SECOND));
    return st;
    EBB_END(a);
}

static ebb_status joins_all(ebb_cx *cx, void *state) {
    actor *a = state;
    ebb_status st;
    EBB_BEGIN(a);
    a->scope = ebb_region_open(cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT, .deadline = 900 * EBB_MS});
    (void)ebb_spawn(cx, a->scope, ends_at_once, NULL);
    a->w->late = ebb_region_open(cx, NULL); /* left open: goes with this task */
    (void)ebb_spawn(cx, a->w->late, never_ends, NULL, &(ebb_task_opts){.polls = 4, .priority = 2});
    EBB_AWAIT(a, st, ebb_region_join(cx, a->scope));
    EBB_AWAIT(a, st, ebb_task_join(cx, a->w->kept));
    a->timer = ebb_timer_arm(cx, ebb_cx_task(cx), ebb_now(cx) + 5 * EBB_MS);
    (void)ebb_timer_disarm(cx, a->timer);
    (void)ebb_timer_disarm(cx, a->timer);
    (void)ebb_timer_arm(cx, (ebb_task){0}, 1);
    ebb_task_cancel(cx, a->w->loser, EBB_CANCEL_RACE_LOST, "the other one won");
    return EBB_FAULTED;
    EBB_END(a);
}

static void spawns_again(void *arg, const ebb_region_report *report) {
    rich *w = arg;
    w->seen += (uint64_t)report->abandoned;
    (void)ebb_spawn(w->r.host, ebb_runtime_root(w->r.rt), ends_at_once, NULL);
}

static void play_rich(rich *w, actor *a) {
    ebb_cx *h = w->r.host;
    ebb_runtime *rt = w->r.rt;
    for (int i = 0; i < 12; i++) a[i].w = w;
    ebb_runtime_set_turn(rt, 5, 1);
    w->group = ebb_region_open(h, &(ebb_region_opts){.on_closed = spawns_again, .arg = w, .priority = 1});
    w->sleeper = ebb_spawn(h, w->group, sleeps_masked, &a[0]);
    w->kept = ebb_spawn(h, ebb_runtime_root(rt), consumes, &a[2], &(ebb_task_opts){.keep = true});
    w->loser = ebb_spawn(h, w->group, consumes, &a[3]);
    (void)ebb_spawn(h, ebb_runtime_root(rt), produces, &a[4]);
    (void)ebb_spawn(h, ebb_runtime_root(rt), joins_all, &a[5]);
    w->held = ebb_region_reserve(h, w->group, EBB_OBLIGATION_LEASE, hook_wakes, w);
    (void)ebb_region_reserve(h, (ebb_region){0}, EBB_OBLIGATION_LEASE, NULL, NULL);
    (void)ebb_obligation_reserve(h, (ebb_obligation_kind)257, NULL, NULL);
    (void)ebb_region_defer(h, (ebb_region){0}, cleans_slowly, &a[6]);
    (void)ebb_region_defer(h, w->group, cleans_slowly, &a[6]);
    (void)ebb_region_open(h, &(ebb_region_opts){.cleanup = true});
    at_pump(&w->r, 2 * EBB_MS);
    ebb_runtime_set_turn(rt, 6, 2);
    ebb_region_cancel_within(h, w->group, EBB_CANCEL_LEASE_LOST,
                             "a reason that goes on and on, past what is kept of it",
                             (ebb_budget){700 * EBB_MS, 40, 3});
    (void)ebb_spawn(h, w->group, ends_at_once, NULL); /* refused */
    at_pump(&w->r, 25 * EBB_MS);
    (void)ebb_obligation_abort(h, w->held);
    (void)ebb_obligation_commit(h, w->held); /* resolved already */
    ebb_chan_close(h, w->chan);
    at_pump(&w->r, 30 * EBB_MS);
    ebb_msg wake = {.verb = EBB_MSG_WAKE, .target = w->sleeper.id, .word = 42};
    (void)ebb_msg_deliver(rt, &wake); /* it may be late */
    ebb_region stuck = ebb_region_open(h, NULL);
    (void)ebb_spawn(h, stuck, never_ends, NULL);
    (void)ebb_region_join(h, stuck);
    ebb_msg force = {.verb = EBB_MSG_FORCE, .target = stuck.id, .to_region = true};
    (void)ebb_msg_deliver(rt, &force);
    at_pump(&w->r, 31 * EBB_MS);
    (void)ebb_region_join(h, stuck);
    (void)ebb_region_join(h, stuck); /* stale */
    at_pump(&w->r, 2 * EBB_SECOND);
    ebb_region_cancel(h, ebb_runtime_root(rt), EBB_CANCEL_SHUTDOWN, NULL);
    for (uint64_t t = 0; t < 20; t++) at_pump(&w->r, 3 * EBB_SECOND + t * 100 * EBB_MS);
    (void)ebb_task_wake(h, w->kept);
}

static void a_program_with_everything_gives_the_same_trace(void **state) {
    (void)state;
    rich w = {.seen = 0};
    actor actors[12] = {{0}};
    ebb_runtime_opts opts = {
        .runtime_id = 9, .now = 12345, .cleanup[EBB_SEVERITY_FORCED] = {300 * EBB_MS, 30}};
    w.r = record(&opts);
    assert_int_equal(ebb_chan_new(w.r.rt, 2, sizeof(uint64_t), &w.chan), EBB_OK);
    ebb_sem_init(&w.sem, 1);
    play_rich(&w, actors);
    ebb_region_state root;
    assert_int_equal(ebb_region_state_of(w.r.host, ebb_runtime_root(w.r.rt), &root), EBB_OK);
    assert_int_equal(root, EBB_REGION_CLOSED);
    ebb_chan_free(w.chan);
    stop(&w.r);
    static const uint8_t shown[] = {
        EBB_EV_REGION_FORCED,  EBB_EV_REGION_JOINED,
        EBB_EV_TASK_JOINED,    EBB_EV_CANCEL_STRENGTHENED,
        EBB_EV_CANCEL_ACKED,   EBB_EV_TASK_FORCED,
        EBB_EV_FINALIZED,      EBB_EV_FAULTED,
        EBB_EV_ABANDONED,      EBB_EV_STALE_WAKE,
        EBB_EV_MASKED,         EBB_EV_UNMASKED,
        EBB_EV_REFUSED,        EBB_EV_OBLIGATION_LEAKED,
        EBB_EV_FINALIZER_DONE, EBB_EV_TIMER_FIRED,
        EBB_EV_RECEIVED,       EBB_EV_IDLE,
    };
    for (size_t i = 0; i < sizeof shown; i++) {
        if (count(&w.r.trace, shown[i]) == 0) fail_msg("no %s", ebb_event_name(shown[i]));
    }
    assert_replays(&w.r.journal, &w.r.trace);
    forget(&w.r);
}

/* ---- random programs ---------------------------------------------------------------------------- */

static void two_hundred_random_programs_give_the_same_traces(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        bytes trace = {NULL, 0, 0}, journal = {NULL, 0, 0};
        program_opts o = {.src = {.seed = seed * 77777}, .max_ops = 400, .allocator = ebb_libc_allocator()};
        assert_true(run_program(&o, &trace, &journal));
        assert_int_equal(count(&trace, EBB_EV_GAP) + count(&journal, EBB_EV_GAP), 0);
        assert_replays(&journal, &trace);
        free(trace.p);
        free(journal.p);
    }
}

/* Memory that ends some allocations after the recording has begun. */
typedef struct scarce {
    ebb_failing f;
    uint64_t nth;
} scarce;

static void count_from_now(void *ctx) {
    scarce *s = ctx;
    s->f.fail_at = s->f.calls + s->nth;
}

static void a_run_that_met_the_end_of_memory_gives_the_same_trace(void **state) {
    (void)state;
    uint64_t refused = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        for (int after = 0; after < 2; after++) {
            bytes trace = {NULL, 0, 0}, journal = {NULL, 0, 0};
            scarce s = {.f = {.inner = ebb_libc_allocator(), .fail_after = after != 0}, .nth = 1 + seed % 14};
            program_opts o = {.src = {.seed = seed},
                              .max_ops = 300,
                              .allocator = ebb_failing_allocator(&s.f),
                              .started = count_from_now,
                              .ctx = &s};
            assert_true(run_program(&o, &trace, &journal));
            refused += s.f.failures;
            assert_int_equal(s.f.live, 0);
            assert_replays(&journal, &trace);
            free(trace.p);
            free(journal.p);
        }
    }
    assert_true(refused > 200);
}

/* ---- what could go wrong, one by one ------------------------------------------------------------ */

static void more_events_than_any_buffer_holds_are_all_there(void **state) {
    (void)state;
    run r = record(NULL);
    ebb_region region = ebb_region_open(r.host, NULL);
    for (int i = 0; i < 5000; i++) (void)ebb_spawn(r.host, region, never_ends, NULL);
    at_pump(&r, 1);
    ebb_region_cancel(r.host, region, EBB_CANCEL_USER, "all at once");
    ebb_region_force(r.host, region);
    for (int i = 0; i < 9; i++) at_pump(&r, EBB_MS);
    stop_and_compare(&r);
}

static ebb_status joins_the_finalizing(ebb_cx *cx, void *state) {
    actor *a = state;
    if (a->n++ == 0) {
        a->scope = ebb_region_open(cx, NULL);
        (void)ebb_region_defer(cx, a->scope, never_ends, NULL);
        (void)ebb_task_wake(cx, ebb_cx_task(cx));
        ebb_region_close(cx, a->scope);
        ebb_task_cancel(cx, ebb_cx_task(cx), EBB_CANCEL_USER, NULL);
        return EBB_PENDING;
    }
    /* Moves the region on and acknowledges, in this order: one operation in the journal. */
    return ebb_region_join(cx, a->scope);
}

static void a_join_that_is_a_checkpoint_is_one_operation(void **state) {
    (void)state;
    run r = record(NULL);
    actor a = {.n = 0};
    (void)ebb_spawn(r.host, ebb_runtime_root(r.rt), joins_the_finalizing, &a);
    for (uint64_t t = 1; t < 9; t++) at_pump(&r, t * EBB_SECOND);
    stop(&r);
    assert_int_equal(count(&r.journal, J_CHECKPOINT), 0);
    assert_true(count(&r.journal, J_REGION_JOIN) > 0);
    assert_int_equal(count(&r.trace, EBB_EV_CANCEL_ACKED), 1);
    assert_replays(&r.journal, &r.trace);
    forget(&r);
}

static ebb_cx *captured;

static void wakes_with_a_captured_context(void *arg) {
    ebb_task *other = arg;
    (void)ebb_task_wake(captured, *other);
    ebb_region_cancel(captured, ebb_cx_region(captured), EBB_CANCEL_USER, "from a hook");
}

static ebb_status leaks(ebb_cx *cx, void *state) {
    captured = cx;
    (void)ebb_obligation_reserve(cx, EBB_OBLIGATION_LEASE, wakes_with_a_captured_context, state);
    return EBB_OK;
}

static void who_asks_is_known_outside_of_polls_too(void **state) {
    (void)state;
    run r = record(NULL);
    ebb_region region = ebb_region_open(r.host, NULL);
    ebb_task other = ebb_spawn(r.host, region, never_ends, NULL);
    at_pump(&r, 1);
    (void)ebb_spawn(r.host, region, leaks, &other);
    at_pump(&r, 2);
    stop(&r);
    assert_int_equal(count(&r.journal, J_ASKER), 2);
    assert_replays(&r.journal, &r.trace);
    forget(&r);
}

static void assert_every_rule_holds(const bytes *trace) {
    ebb_trace_reader in;
    ebb_event ev;
    ebb_checker *check = ebb_checker_new(ebb_libc_allocator());
    assert_int_equal(ebb_trace_reader_open(&in, trace->p, trace->n), EBB_OK);
    while (ebb_trace_reader_next(&in, &ev) == EBB_OK) assert_int_equal(ebb_checker_event(check, &ev), EBB_OK);
    assert_int_equal(ebb_checker_end(check, false), EBB_OK);
    ebb_checker_free(check);
}

/* Waits, and shows whoever runs its code between polls its cx. */
static ebb_status is_run_from_outside(ebb_cx *cx, void *state) {
    ebb_cx **shown = state;
    *shown = cx;
    return ebb_cancelled(cx) ? EBB_CANCELLED : EBB_PENDING;
}

static void a_parked_task_asks_between_its_polls(void **state) {
    (void)state;
    run r = record(NULL);
    ebb_cx *cx = NULL, *child = NULL;
    ebb_region region = ebb_region_open(r.host, NULL);
    ebb_task task = ebb_spawn(r.host, region, is_run_from_outside, &cx);
    at_pump(&r, 1);
    assert_int_equal(ebb_checkpoint(cx), EBB_OK);
    ebb_obligation lease = ebb_obligation_reserve(cx, EBB_OBLIGATION_LEASE, NULL, NULL);
    assert_int_equal(ebb_defer(cx, ends_at_once, NULL), EBB_OK);
    ebb_region own = ebb_region_open(cx, NULL);
    (void)ebb_spawn(cx, own, is_run_from_outside, &child);
    assert_int_equal(ebb_mask(cx), EBB_OK);
    ebb_region_cancel(r.host, region, EBB_CANCEL_USER, "enough");
    at_pump(&r, 2);
    assert_int_equal(ebb_checkpoint(cx), EBB_OK);
    assert_int_equal(ebb_obligation_abort(cx, ebb_obligation_reserve(cx, EBB_OBLIGATION_LEASE, NULL, NULL)),
                     EBB_OK);
    assert_int_equal(ebb_id_status(ebb_spawn(cx, own, ends_at_once, NULL).id), EBB_CANCELLED);
    assert_int_equal(ebb_unmask(cx), EBB_OK);
    assert_int_equal(ebb_id_status(ebb_obligation_reserve(cx, EBB_OBLIGATION_LEASE, NULL, NULL).id),
                     EBB_CANCELLED);
    assert_int_equal(ebb_checkpoint(cx), EBB_CANCELLED);
    ebb_region_opts cleanup = {.cleanup = true};
    ebb_region scope = ebb_region_open(cx, &cleanup);
    assert_int_equal(ebb_id_status(ebb_spawn(cx, scope, ends_at_once, NULL).id), EBB_OK);
    assert_int_equal(ebb_obligation_commit(cx, lease), EBB_OK);
    (void)ebb_task_wake(r.host, task);
    at_pump(&r, 3);
    assert_int_equal(ebb_region_join(r.host, region), EBB_CANCELLED);
    stop(&r);
    assert_int_equal(count(&r.trace, EBB_EV_CANCEL_ACKED), 1);
    assert_every_rule_holds(&r.trace);
    assert_replays(&r.journal, &r.trace);
    forget(&r);
}

static void the_root_may_have_finalizers(void **state) {
    (void)state;
    run r = record(NULL);
    (void)ebb_defer(r.host, ends_at_once, NULL);
    (void)ebb_region_defer(r.host, ebb_runtime_root(r.rt), ends_at_once, NULL);
    ebb_region_close(r.host, ebb_runtime_root(r.rt));
    at_pump(&r, 1);
    stop(&r);
    assert_int_equal(count(&r.trace, EBB_EV_FINALIZER_DONE), 2);
    assert_replays(&r.journal, &r.trace);
    forget(&r);
}

static void it_starts_where_the_recording_started(void **state) {
    (void)state;
    enum { TIMERS = 3000 }; /* moved and fired in one turn of the wheel, or in two if it stands behind */
    ebb_runtime_opts opts = {
        .allocator = ebb_libc_allocator(), .now = 70 * EBB_MS, .max_tasks = 2, .max_regions = 2};
    run r = {.rt = NULL};
    assert_int_equal(ebb_runtime_new(&opts, &r.rt), EBB_OK);
    r.host = ebb_runtime_host(r.rt);
    ebb_runtime_advance(r.rt, 100 * EBB_SECOND); /* the timer wheel stays behind */
    ebb_runtime_set_turn(r.rt, 31, 7);
    assert_int_equal(ebb_journal_start(r.rt, 1 << 20), EBB_OK);
    assert_int_equal(ebb_trace_start(r.rt, 1 << 20), EBB_OK);
    ebb_region region = ebb_region_open(r.host, NULL);
    assert_int_equal(ebb_id_status(ebb_region_open(r.host, NULL).id), EBB_ERR_LIMIT);
    for (int i = 0; i < 2; i++) {
        ebb_task t = ebb_spawn(r.host, region, never_ends, NULL);
        for (int k = 0; k < TIMERS / 2; k++) (void)ebb_timer_arm(r.host, t, 100 * EBB_SECOND + 3 * EBB_MS);
    }
    assert_int_equal(ebb_id_status(ebb_spawn(r.host, region, never_ends, NULL).id), EBB_ERR_LIMIT);
    at_pump(&r, 101 * EBB_SECOND);
    stop_and_compare(&r);
}

static uint32_t the_last(void *ctx, uint32_t n) {
    (void)ctx;
    return n - 1;
}

static void choices_are_made_again(void **state) {
    (void)state;
    run r = record(NULL);
    ebb__set_chooser(r.rt, the_last, NULL);
    for (int i = 0; i < 9; i++) (void)ebb_spawn(r.host, ebb_runtime_root(r.rt), ends_at_once, NULL);
    at_pump(&r, 1);
    stop(&r);
    assert_int_equal(count(&r.journal, J_CHOICE), 8);
    assert_replays(&r.journal, &r.trace);
    forget(&r);
}

static void a_long_site_comes_back_whole(void **state) {
    (void)state;
    char site[3000];
    memset(site, 'x', sizeof site - 1);
    site[sizeof site - 1] = 0;
    run r = record(NULL);
    ebb_region region = ebb_region_open(r.host, NULL);
    (void)ebb_spawn_site(r.host, region, never_ends, NULL, site);
    at_pump(&r, 1);
    ebb_region_force(r.host, region);
    at_pump(&r, 2);
    stop(&r);
    assert_int_equal(count(&r.trace, EBB_EV_TEXT),
                     2 * 125 + 3); /* as a string and where it is reported; root, region, "forced" */
    assert_replays(&r.journal, &r.trace);
    forget(&r);
}

/* The buffers are full many times: what they have is written then, and the rest when the runtime is freed. */
static void the_options_of_a_runtime_record_it_from_its_first_event(void **state) {
    (void)state;
    enum { TASKS = 500, ROOM = 8192 };
    bytes trace = {NULL, 0, 0}, journal = {NULL, 0, 0};
    ebb_runtime_opts opts = {.allocator = ebb_libc_allocator(),
                             .runtime_id = 3,
                             .trace = {.bytes = ROOM, .write = bytes_add, .ctx = &trace},
                             .journal = {.bytes = ROOM, .write = bytes_add, .ctx = &journal}};
    run r = {.rt = NULL};
    ebb_trace_reader reader;
    ebb_event ev;
    assert_int_equal(ebb_runtime_new(&opts, &r.rt), EBB_OK);
    r.host = ebb_runtime_host(r.rt);
    for (int i = 0; i < TASKS; i++) (void)ebb_spawn(r.host, ebb_runtime_root(r.rt), ends_at_once, NULL);
    at_pump(&r, 1);
    assert_true(trace.n > ROOM && journal.n > ROOM);
    ebb_region_close(r.host, ebb_runtime_root(r.rt));
    at_pump(&r, 2);
    ebb_runtime_free(r.rt);
    ebb_checker *check = ebb_checker_new(ebb_libc_allocator());
    assert_int_equal(ebb_trace_reader_open(&reader, trace.p, trace.n), EBB_OK);
    while (ebb_trace_reader_next(&reader, &ev) == EBB_OK)
        assert_int_equal(ebb_checker_event(check, &ev), EBB_OK);
    assert_int_equal(ebb_checker_end(check, true), EBB_OK);
    ebb_checker_free(check);
    assert_int_equal(count(&trace, EBB_EV_COMPLETED), TASKS);
    assert_int_equal(count(&trace, EBB_EV_REGION_CLOSED), 1);
    assert_replays(&journal, &trace);
    free(trace.p);
    free(journal.p);
}

/* Its site is kept for the report where obligations are, or is not: those that come later have other ids then. */
static void an_operation_that_there_was_no_memory_to_keep_replays(void **state) {
    (void)state;
    for (int scarce_at = 0; scarce_at < 2; scarce_at++) {
        ebb_failing f = {.inner = ebb_libc_allocator()};
        run r = record(&(ebb_runtime_opts){.allocator = ebb_failing_allocator(&f)});
        ebb_region region = ebb_region_open(r.host, NULL);
        (void)ebb_spawn(r.host, region, never_ends, NULL);
        ebb_region_force(r.host, region);
        do {
            (void)ebb_obligation_reserve(r.host, EBB_OBLIGATION_PERMIT, NULL, NULL);
        } while (ebb__slab_ready(&r.rt->obligations));
        if (scarce_at != 0) f.fail_at = f.calls + 1;
        ebb__operation_abandoned(r.host, region, "blocking", NULL, "some.c:1", 7);
        f.fail_at = 0;
        (void)ebb_obligation_reserve(r.host, EBB_OBLIGATION_PERMIT, NULL, NULL);
        at_pump(&r, 5 * EBB_SECOND);
        stop_and_compare(&r);
    }
}

static void a_run_with_other_limits_of_a_cause_chain_replays(void **state) {
    (void)state;
    run r = record(&(ebb_runtime_opts){.chain_depth = 40, .chain_bytes = 33 * 32});
    ebb_region in = ebb_runtime_root(r.rt);
    ebb_region_cause chain[50];
    uint32_t n;
    bool cut;
    for (int i = 0; i < 50; i++) in = ebb_region_open(r.host, &(ebb_region_opts){.parent = in});
    (void)ebb_spawn(r.host, in, never_ends, NULL);
    ebb_region_cancel(r.host, ebb_runtime_root(r.rt), EBB_CANCEL_SHUTDOWN, "");
    assert_int_equal(ebb_region_causes(r.host, in, chain, 50, &n, &cut), EBB_OK);
    assert_int_equal(n, 33);
    assert_true(cut);
    at_pump(&r, 5 * EBB_SECOND);
    stop(&r);
    assert_int_equal(count(&r.trace, EBB_EV_CHAIN_TRUNCATED), 1);
    assert_replays(&r.journal, &r.trace);
    forget(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_with_everything_gives_the_same_trace),
        cmocka_unit_test(two_hundred_random_programs_give_the_same_traces),
        cmocka_unit_test(a_run_that_met_the_end_of_memory_gives_the_same_trace),
        cmocka_unit_test(more_events_than_any_buffer_holds_are_all_there),
        cmocka_unit_test(a_join_that_is_a_checkpoint_is_one_operation),
        cmocka_unit_test(who_asks_is_known_outside_of_polls_too),
        cmocka_unit_test(a_parked_task_asks_between_its_polls),
        cmocka_unit_test(the_root_may_have_finalizers),
        cmocka_unit_test(it_starts_where_the_recording_started),
        cmocka_unit_test(choices_are_made_again),
        cmocka_unit_test(a_long_site_comes_back_whole),
        cmocka_unit_test(the_options_of_a_runtime_record_it_from_its_first_event),
        cmocka_unit_test(an_operation_that_there_was_no_memory_to_keep_replays),
        cmocka_unit_test(a_run_with_other_limits_of_a_cause_chain_replays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
