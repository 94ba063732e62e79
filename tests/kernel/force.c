/* Force: what does not end by itself ends at the end of its budget, by name, and nothing else suffers. */
#include "tests/support/world.h"

enum { SITE_ROOM = 300 };

/* Nobody may touch the state of an abandoned task any more. */
typedef struct stubborn {
    world *w;
    char before[16];
    uint32_t polls;
    uint32_t gives_up_at; /* 0: never */
    bool masked, heeds, acked;
    ebb_status how;
    puppet *hook, *fin, *fin_below; /* the one below is added first, so it runs last */
    char after[16];
} stubborn;

static ebb_status stubborn_poll(ebb_cx *cx, void *state) {
    stubborn *s = state;
    s->polls++;
    if (s->polls == 1) {
        if (s->masked) (void)ebb_mask(cx);
        if (s->hook != NULL)
            (void)ebb_obligation_reserve(cx, EBB_OBLIGATION_TRANSACTION, puppet_abort, s->hook);
        if (s->fin_below != NULL) (void)ebb_defer(cx, puppet_poll, s->fin_below);
        if (s->fin != NULL) (void)ebb_defer(cx, puppet_poll, s->fin);
    }
    if (s->heeds && ebb_checkpoint(cx) == EBB_CANCELLED) s->acked = true;
    return s->gives_up_at != 0 && s->polls >= s->gives_up_at ? s->how : EBB_PENDING;
}

static stubborn *stubborn_new(world *w, stubborn s) {
    stubborn *copy = world_keep(w, sizeof *copy);
    *copy = s;
    copy->w = w;
    copy->hook = puppet_new(w, (puppet){.says = "aborted"});
    copy->fin = puppet_new(w, (puppet){.says = "finalized"});
    return copy;
}

static void assert_closes_inside(world *w, ebb_region r, uint64_t start, uint64_t budget) {
    world_finish(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_true(event_of(w, EBB_EV_REGION_CLOSED, r.id).time <= start + budget + budget / 10);
}

/* ---- a task ------------------------------------------------------------------------------------- */

static void what_ignores_a_cancel_is_abandoned_by_name_after_8_more_polls(void **state) {
    world *w = *state;
    static const struct {
        ebb_cancel_kind kind;
        uint64_t ms;
        bool masked;
    } cases[] = {{EBB_CANCEL_USER, 5000, false},
                 {EBB_CANCEL_USER, 5000, true},
                 {EBB_CANCEL_LEASE_LOST, 2000, false},
                 {EBB_CANCEL_SHUTDOWN, 500, true}};
    for (size_t i = 0; i < 4; i++) {
        w->log[0] = 0;
        ebb_region r = open_region(w, w->root);
        stubborn *s = stubborn_new(w, (stubborn){.masked = cases[i].masked});
        const char *site = "the stubborn one, in a file with a long name.c:1234";
        ebb_task t = ebb_spawn_site(w->host, r, stubborn_poll, s, site);
        world_settle(w);
        uint64_t start = world_now(w);
        ebb_region_cancel(w->host, r, cases[i].kind, NULL);
        world_settle(w);
        uint32_t polls = s->polls;
        stubborn before = *s;
        before.polls += 8;
        assert_closes_inside(w, r, start, cases[i].ms * EBB_MS);
        assert_int_equal(s->polls, polls + 8);
        assert_memory_equal(&before, s, sizeof before);
        assert_string_equal(w->log, "finalized aborted ");
        assert_int_equal(report_of(w, r).abandoned, 1);
        assert_int_equal(report_of(w, r).leaked, 0); /* aborted: it could not resolve it */
        ebb_work who;
        assert_int_equal(ebb_region_abandoned_at(w->host, r, 0, &who), EBB_OK);
        assert_int_equal(who.id, t.id);
        assert_string_equal(who.site, site);
        assert_int_equal(ebb_region_abandoned_at(w->host, r, 1, &who), EBB_ERR_INVALID);
        char text[SITE_ROOM];
        text_of(w, EBB_EV_ABANDONED, t.id, text, sizeof text);
        assert_string_equal(text, site);
        assert_int_equal((int32_t)event_of(w, EBB_EV_COMPLETED, t.id).value, EBB_CANCELLED);
        assert_int_equal(event_of(w, EBB_EV_TASK_FORCED, t.id).value, 8);
        assert_int_equal(ebb_task_wake(w->host, t), EBB_ERR_STALE);
        assert_int_equal(ebb_region_join(w->host, r), EBB_CANCELLED);
    }
    assert_int_equal(stats_of(w).abandoned, 4);
}

static void a_task_that_returns_within_its_8_polls_is_not_abandoned(void **state) {
    world *w = *state;
    for (uint32_t extra = 1; extra <= 9; extra++) {
        ebb_region r = open_region(w, w->root);
        /* One poll to start, one when it is told, then the extra ones. */
        stubborn *s = stubborn_new(w, (stubborn){.gives_up_at = 2 + extra, .how = EBB_OK});
        ebb_task t = ebb_spawn(w->host, r, stubborn_poll, s, &(ebb_task_opts){.keep = true});
        world_settle(w);
        ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
        world_finish(w);
        assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
        assert_int_equal(report_of(w, r).abandoned, extra <= 8 ? 0 : 1);
        assert_int_equal(info_of(w, t).status, extra <= 8 ? EBB_OK : EBB_CANCELLED);
        assert_int_equal(s->polls, extra <= 8 ? 2 + extra : 10);
    }
}

static void at_the_deadline_a_masked_task_sees_the_cancel_too(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    stubborn *s = stubborn_new(w, (stubborn){.masked = true, .heeds = true, .gives_up_at = 3, .how = EBB_OK});
    ebb_task t = ebb_spawn(w->host, r, stubborn_poll, s);
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    world_pass(w, 3999 * EBB_MS);
    assert_false(s->acked);
    world_pass(w, 2 * EBB_MS);
    assert_true(s->acked);
    assert_int_equal(report_of(w, r).abandoned, 0);
    assert_int_equal((int32_t)event_of(w, EBB_EV_FINALIZED, t.id).value, EBB_CANCELLED);
}

static void a_task_may_be_forced_by_hand_at_once(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, IGNORING), *q = puppet_start(w, w->root, IGNORING);
    world_settle(w);
    ebb_task_force(w->host, p->id);
    ebb_task_force(w->host, p->id); /* again: changes nothing */
    world_settle(w);
    assert_int_equal(p->polls, 1 + 8);
    assert_int_equal(info_of(w, p->id).status, EBB_CANCELLED);
    assert_int_equal(event_of(w, EBB_EV_CANCEL_REQUESTED, p->id.id).cancel_kind, EBB_CANCEL_BUDGET);
    assert_int_equal(phase_of(w, q->id), EBB_TASK_RUNNING);
}

static void a_fault_during_cleanup_is_a_fault_and_no_abandonment(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    stubborn *s = stubborn_new(w, (stubborn){.heeds = true, .gives_up_at = 2, .how = EBB_FAULTED});
    ebb_task t = ebb_spawn(w->host, r, stubborn_poll, s);
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_SHUTDOWN, NULL);
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_true(s->acked);
    assert_string_equal(w->log, "finalized aborted ");
    assert_int_equal(report_of(w, r).status, EBB_FAULTED);
    assert_int_equal(report_of(w, r).failed.id, t.id);
    assert_int_equal(report_of(w, r).abandoned, 0);
}

static void acquires(ebb_cx *cx, puppet *p) {
    if (p->polls == 1) (void)ebb_sem_acquire(cx, p->arg, &p->wait);
}

static void cancelled_waiters_of_an_abandoned_task_are_taken_out_of_their_queues(void **state) {
    world *w = *state;
    ebb_sem *sem = world_keep(w, sizeof *sem);
    ebb_sem_init(sem, 0);
    ebb_region r = open_region(w, w->root);
    puppet *p = puppet_start(w, r, (puppet){.act = acquires, .arg = sem, .returns = EBB_PENDING});
    world_settle(w);
    assert_ptr_equal(sem->first, &p->wait);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    world_finish(w);
    assert_null(sem->first);
    assert_int_equal(report_of(w, r).abandoned, 1);
}

/* ---- finalizers --------------------------------------------------------------------------------- */

/* The text that follows an event. */
static void text_after(world *w, const ebb_event *ev, char *out, size_t room) {
    ebb_trace_reader r;
    ebb_event next;
    size_t n = 0;
    out[0] = 0;
    assert_int_equal(ebb_trace_reader_open(&r, w->trace, w->trace_n), EBB_OK);
    do assert_int_equal(ebb_trace_reader_next(&r, &next), EBB_OK);
    while (next.decision_seq < ev->decision_seq);
    while (ebb_trace_reader_next(&r, &next) == EBB_OK && next.type == EBB_EV_TEXT) {
        assert_true(n + strlen(next.text) < room);
        memcpy(out + n, next.text, strlen(next.text) + 1);
        n += strlen(next.text);
    }
}

/* What is said of the round's own overrun: whose it was, when, and where it was added. */
static void assert_overrun(world *w, uint32_t round, uint64_t task, ebb_region r, uint64_t start, int line) {
    ebb_event ev;
    char site[SITE_ROOM], end[32];
    assert_int_equal(count_events(w, EBB_EV_FINALIZER_ABANDONED, 0), round + 1);
    assert_true(find_event(w, EBB_EV_FINALIZER_ABANDONED, 0, round, &ev));
    assert_int_equal(ev.task_id, task);
    assert_int_equal(ev.region_id, r.id);
    assert_in_range(ev.time, start + 5000 * EBB_MS, start + 5500 * EBB_MS);
    text_after(w, &ev, site, sizeof site);
    (void)snprintf(end, sizeof end, "kernel/force.c:%d", line);
    assert_non_null(strstr(site, line == 0 ? "kernel/force.c:" : end));
}

static void a_finalizer_that_overruns_is_abandoned_and_the_next_one_runs(void **state) {
    world *w = *state;
    for (int of_region = 0; of_region < 2; of_region++) {
        w->log[0] = 0;
        uint64_t start = world_now(w);
        ebb_region r = open_region(w, w->root);
        puppet *stuck = puppet_new(w, (puppet){.returns = EBB_PENDING});
        stubborn *s = stubborn_new(w, (stubborn){.heeds = true, .gives_up_at = 2, .how = EBB_OK});
        puppet *first = s->fin;
        int line = 0; /* a task's own is added elsewhere */
        if (of_region) {
            (void)ebb_region_defer(w->host, r, puppet_poll, first);
            (void)ebb_region_defer(w->host, r, puppet_poll, stuck);
            line = __LINE__ - 1;
        }
        s->fin_below = of_region ? NULL : first;
        s->fin = of_region ? NULL : stuck;
        ebb_task t = ebb_spawn(w->host, r, stubborn_poll, s);
        world_settle(w);
        ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
        world_settle(w);
        assert_int_equal(stuck->polls, 1);
        world_pass(w, 4500 * EBB_MS);
        assert_true(stuck->polls <= 2); /* the tasks' part is over, the finalizers' is not */
        assert_int_not_equal(state_of(w, r), EBB_REGION_CLOSED);
        assert_closes_inside(w, r, start, 5000 * EBB_MS);
        assert_in_range(stuck->polls, 9, 10);
        assert_int_equal(report_of(w, r).abandoned, 1);
        assert_overrun(w, (uint32_t)of_region, of_region ? 0 : t.id, r, start, line);
        assert_int_equal(first->polls, 1);
        assert_string_equal(w->log, of_region ? "aborted finalized " : "finalized aborted ");
        assert_int_equal((int32_t)event_of(w, EBB_EV_FINALIZED, t.id).value, EBB_CANCELLED);
    }
}

static void a_waiting_finalizer_of_a_task_that_was_forced_by_hand_ends_too(void **state) {
    world *w = *state;
    for (int how = 0; how < 2; how++) {
        uint64_t start = world_now(w);
        ebb_region r = open_region(w, w->root);
        stubborn *s = stubborn_new(w, (stubborn){.heeds = how == 1});
        s->fin->returns = EBB_PENDING;
        ebb_task t = ebb_spawn(w->host, r, stubborn_poll, s, &(ebb_task_opts){.keep = true});
        world_settle(w);
        if (how == 0) {
            ebb_task_force(w->host, t);
        } else { /* its polls are used up before its time is */
            ebb_task_cancel(w->host, t, EBB_CANCEL_TIMEOUT, NULL);
            for (int i = 0; i < 300; i++) {
                (void)ebb_task_wake(w->host, t);
                (void)ebb_runtime_pump(w->rt, 1);
            }
        }
        world_settle(w);
        assert_int_equal(report_of(w, r).abandoned, 1);
        ebb_region_close(w->host, r);
        assert_closes_inside(w, r, start, 2000 * EBB_MS);
        assert_int_equal(report_of(w, r).abandoned, 2);
    }
}

/* ---- regions ------------------------------------------------------------------------------------ */

static void a_forced_region_ends_its_whole_subtree_and_says_how_many(void **state) {
    world *w = *state;
    enum { DEPTH = 40 };
    ebb_region r[DEPTH];
    for (int i = 0; i < DEPTH; i++) {
        r[i] = open_region(w, i == 0 ? w->root : r[i - 1]);
        stubborn *s = stubborn_new(w, (stubborn){.masked = i % 2 == 0});
        (void)ebb_spawn(w->host, r[i], stubborn_poll, s);
        (void)ebb_spawn(w->host, r[i], stubborn_poll, stubborn_new(w, (stubborn){.heeds = true}));
    }
    world_settle(w);
    uint64_t start = world_now(w);
    ebb_region_force(w->host, r[0]);
    world_settle(w);
    assert_int_equal(state_of(w, r[0]), EBB_REGION_CLOSED);
    assert_int_equal(world_now(w), start);
    assert_int_equal(stats_of(w).abandoned, 2 * DEPTH);
    assert_int_equal(stats_of(w).leaks, 0);
    assert_int_equal(w->aborts, 2 * DEPTH);
    uint64_t counted = 0;
    for (uint32_t i = 0; i < DEPTH; i++) counted += event_of(w, EBB_EV_REGION_CLOSED, r[i].id).other >> 32;
    assert_int_equal(counted, 2 * DEPTH);
    assert_int_equal(event_of(w, EBB_EV_REGION_CANCELLED, r[0].id).cancel_kind, EBB_CANCEL_BUDGET);
}

static void forcing_a_parent_also_ends_a_child_that_was_cancelled_before(void **state) {
    world *w = *state;
    ebb_region a = open_region(w, w->root), b = open_region(w, a);
    stubborn *s = stubborn_new(w, (stubborn){.heeds = true, .gives_up_at = 2, .how = EBB_OK});
    s->fin->returns = EBB_PENDING;
    (void)ebb_spawn(w->host, b, stubborn_poll, s);
    world_settle(w);
    ebb_region_cancel(w->host, b, EBB_CANCEL_USER, NULL); /* until 5000, of which 1000 for finalizers */
    world_pass(w, 100 * EBB_MS);
    ebb_region_force(w->host, a);
    assert_closes_inside(w, a, 0, 1100 * EBB_MS);
}

static void a_region_is_forced_at_four_fifths_and_its_finalizers_at_the_end(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *fin = puppet_new(w, IGNORING);
    (void)ebb_region_defer(w->host, r, puppet_poll, fin);
    (void)puppet_start(w, r, IGNORING);
    ebb_region_cancel_within(w->host, r, EBB_CANCEL_USER, NULL, (ebb_budget){1000 * EBB_MS, 50, 0});
    world_finish(w);
    assert_in_range(event_of(w, EBB_EV_REGION_FORCED, r.id).time, 800 * EBB_MS, 801 * EBB_MS);
    assert_in_range(event_of(w, EBB_EV_FINALIZER_ABANDONED, 0).time, 1000 * EBB_MS, 1001 * EBB_MS);
    assert_in_range(event_of(w, EBB_EV_REGION_CLOSED, r.id).time, 1000 * EBB_MS, 1001 * EBB_MS);
}

static void cancels_region(ebb_cx *cx, puppet *p) {
    ebb_region *r = p->arg;
    ebb_region_cancel(cx, *r, EBB_CANCEL_RESOURCE, "the transaction is gone");
}

static void a_hook_that_cancels_its_region_does_not_keep_the_task_alive(void **state) {
    world *w = *state;
    ebb_region *r = world_keep(w, sizeof *r);
    *r = open_region(w, w->root);
    for (int i = 0; i < 3; i++) {
        stubborn *s = stubborn_new(w, (stubborn){.gives_up_at = 1, .how = EBB_OK});
        s->hook->act = cancels_region;
        s->hook->arg = r;
        (void)ebb_spawn(w->host, *r, stubborn_poll, s);
    }
    puppet *q = puppet_start(w, *r, HEEDING);
    world_settle(w);
    assert_int_equal(w->aborts, 1); /* the others were refused: their region was closing */
    assert_int_equal(stats_of(w).runnable, 0);
    assert_int_equal(state_of(w, *r), EBB_REGION_CLOSED);
    assert_int_equal(q->seen, EBB_CANCELLED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(what_ignores_a_cancel_is_abandoned_by_name_after_8_more_polls),
        IN_WORLD(a_task_that_returns_within_its_8_polls_is_not_abandoned),
        IN_WORLD(at_the_deadline_a_masked_task_sees_the_cancel_too),
        IN_WORLD(a_task_may_be_forced_by_hand_at_once),
        IN_WORLD(a_fault_during_cleanup_is_a_fault_and_no_abandonment),
        IN_WORLD(cancelled_waiters_of_an_abandoned_task_are_taken_out_of_their_queues),
        IN_WORLD(a_finalizer_that_overruns_is_abandoned_and_the_next_one_runs),
        IN_WORLD(a_waiting_finalizer_of_a_task_that_was_forced_by_hand_ends_too),
        IN_WORLD(a_forced_region_ends_its_whole_subtree_and_says_how_many),
        IN_WORLD(forcing_a_parent_also_ends_a_child_that_was_cancelled_before),
        IN_WORLD(a_region_is_forced_at_four_fifths_and_its_finalizers_at_the_end),
        IN_WORLD(a_hook_that_cancels_its_region_does_not_keep_the_task_alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
