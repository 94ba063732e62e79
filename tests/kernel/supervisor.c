/* Drain supervisors by themselves: when they are woken, what does not reach them, and that their region waits for
 * them. */
#include "tests/support/world.h"

#include "kernel/layer.h"

/* A supervisor that counts its polls and returns when it is told to. */
typedef struct watcher {
    uint32_t polls;
    uint32_t signal; /* of its cx at the last poll */
    bool over;
    bool quiet; /* sets its alarm off at every poll */
    ebb__supervisor s;
    uint32_t closed;
    ebb_region_report report;
} watcher;

static ebb_status keep(ebb_cx *cx, void *state) {
    watcher *k = state;
    k->polls++;
    k->signal = cx->signal;
    if (k->quiet) ebb__supervisor_alarm(cx, k->s.task, EBB_FOREVER);
    return k->over ? EBB_OK : EBB_PENDING;
}

static void note_closed(void *arg, const ebb_region_report *report) {
    watcher *k = arg;
    k->closed++;
    k->report = *report;
}

static watcher *watcher_new(world *w, ebb_region r) {
    watcher *k = world_keep(w, sizeof *k);
    k->s = ebb__supervisor_new(w->host, r, keep, k, NULL, "supervisor.c:1");
    assert_int_equal(ebb_id_status(k->s.task.id), EBB_OK);
    assert_int_equal(ebb_id_status(k->s.region.id), EBB_OK);
    world_settle(w);
    assert_int_equal(k->polls, 1);
    return k;
}

/* It lets its region end: what a supervisor has to do before it returns. */
static void dismiss(world *w, watcher *k) {
    k->over = true;
    ebb__region_joining(w->host, k->s.region);
    (void)ebb_task_wake(w->host, k->s.task);
    world_settle(w);
}

/* ---- waking ---------------------------------------------------------------------------------- */

static void closing_and_cancelling_wake_it_and_do_not_reach_it(void **state) {
    world *w = *state;
    ebb_region parent = open_region(w, w->root), r = open_region(w, parent);
    watcher *k = watcher_new(w, r);
    (void)puppet_start(w, r, IGNORING);
    world_settle(w);
    ebb_region_close(w->host, parent);
    world_settle(w);
    assert_int_equal(k->polls, 2);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, "x");
    world_settle(w);
    assert_int_equal(k->polls, 3);
    ebb_region_cancel(w->host, parent, EBB_CANCEL_SHUTDOWN, "x");
    world_settle(w);
    assert_int_equal(k->polls, 4);
    assert_int_equal(k->signal, 0);
    assert_int_equal(state_of(w, k->s.region), EBB_REGION_OPEN);
    dismiss(w, k);
}

static void force_reaches_it_and_it_is_polled_before_it_is_abandoned(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    watcher *k = watcher_new(w, r);
    k->over = true;
    ebb_region_force(w->host, r);
    world_settle(w);
    assert_int_equal(k->polls, 2);
    assert_true(k->signal & EBB_CX_CANCEL);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(report_of(w, r).abandoned, 0);
}

static void it_is_woken_when_nothing_but_its_region_is_left(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    watcher *k = watcher_new(w, r);
    puppet *a = puppet_start(w, r, IGNORING), *b = puppet_start(w, r, IGNORING);
    ebb_region child = open_region(w, r);
    world_settle(w);
    ebb_region_close(w->host, r);
    world_settle(w);
    uint32_t polls = k->polls;
    a->returns = b->returns = EBB_OK;
    (void)ebb_task_wake(w->host, a->id);
    world_settle(w);
    assert_int_equal(k->polls, polls);
    (void)ebb_region_join(w->host, child);
    world_settle(w);
    assert_int_equal(k->polls, polls);
    (void)ebb_task_wake(w->host, b->id);
    world_settle(w);
    assert_int_equal(k->polls, polls + 1);
    assert_int_equal(state_of(w, r), EBB_REGION_DRAINING); /* it waits for the supervisor */
    dismiss(w, k);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
}

static void it_is_woken_when_nothing_but_itself_is_left_in_its_region_that_is_to_close(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    watcher *k = watcher_new(w, r);
    puppet *helper = puppet_start(w, k->s.region, IGNORING);
    world_settle(w);
    ebb__region_joining(w->host, k->s.region);
    world_settle(w);
    uint32_t polls = k->polls;
    helper->returns = EBB_OK;
    (void)ebb_task_wake(w->host, helper->id);
    world_settle(w);
    assert_int_equal(k->polls, polls + 1);
    dismiss(w, k);
    ebb_region_close(w->host, r);
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
}

static void its_region_admits_work_while_the_region_around_it_does_not(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    watcher *k = watcher_new(w, r);
    ebb_region_cancel(w->host, r, EBB_CANCEL_SHUTDOWN, "x");
    puppet *helper = puppet_start(w, k->s.region, HEEDING); /* fails the test if that is refused */
    world_settle(w);
    assert_int_equal(helper->seen, EBB_OK);
    helper->returns = EBB_OK;
    (void)ebb_task_wake(w->host, helper->id);
    world_settle(w);
    dismiss(w, k);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
}

/* ---- alarms ---------------------------------------------------------------------------------- */

static void an_alarm_wakes_it_once_at_its_time(void **state) {
    world *w = *state;
    watcher *k = watcher_new(w, open_region(w, w->root));
    ebb__supervisor_alarm(w->host, k->s.task, world_now(w) + 50 * EBB_MS);
    world_pass(w, 49 * EBB_MS);
    assert_int_equal(k->polls, 1);
    world_pass(w, 2 * EBB_MS);
    assert_int_equal(k->polls, 2);
    world_pass(w, EBB_SECOND);
    assert_int_equal(k->polls, 2);
    dismiss(w, k);
}

static void a_later_alarm_replaces_the_one_before_and_for_ever_is_none(void **state) {
    world *w = *state;
    watcher *k = watcher_new(w, open_region(w, w->root));
    ebb__supervisor_alarm(w->host, k->s.task, world_now(w) + 50 * EBB_MS);
    ebb__supervisor_alarm(w->host, k->s.task, world_now(w) + 200 * EBB_MS);
    world_pass(w, 199 * EBB_MS);
    assert_int_equal(k->polls, 1);
    ebb__supervisor_alarm(w->host, k->s.task, EBB_FOREVER);
    world_pass(w, EBB_SECOND);
    assert_int_equal(k->polls, 1);
    ebb__supervisor_alarm(w->host, k->s.task, world_now(w)); /* already due */
    world_pass(w, EBB_MS);
    assert_int_equal(k->polls, 2);
    dismiss(w, k);
}

static void an_alarm_cancels_nothing_though_its_region_has_a_timer_now(void **state) {
    world *w = *state;
    watcher *k = watcher_new(w, open_region(w, w->root));
    puppet *helper = puppet_start(w, k->s.region, HEEDING);
    ebb__supervisor_alarm(w->host, k->s.task, world_now(w) + EBB_MS);
    world_pass(w, EBB_SECOND);
    assert_int_equal(helper->seen, EBB_OK);
    assert_int_equal(state_of(w, k->s.region), EBB_REGION_OPEN);
    helper->returns = EBB_OK;
    (void)ebb_task_wake(w->host, helper->id);
    world_settle(w);
    dismiss(w, k);
}

static void an_alarm_for_what_is_no_supervisor_is_ignored(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    watcher *k = watcher_new(w, r);
    puppet *p = puppet_start(w, r, IGNORING);
    world_settle(w);
    ebb__supervisor_alarm(w->host, p->id, world_now(w) + EBB_MS);
    world_pass(w, EBB_SECOND);
    assert_int_equal(p->polls, 1);
    dismiss(w, k);
    ebb__supervisor_alarm(w->host, k->s.task, world_now(w) + EBB_MS); /* stale by now */
    world_pass(w, EBB_SECOND);
    assert_int_equal(k->polls, 2);
    assert_int_equal(state_of(w, r), EBB_REGION_OPEN);
}

static ebb_status add_finalizer(ebb_cx *cx, void *state) {
    puppet *p = state;
    if (p->polls++ == 0) (void)ebb_defer(cx, puppet_poll, p->arg);
    return EBB_PENDING;
}

static void an_alarm_after_a_force_does_not_take_the_time_of_that_away(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    watcher *k = watcher_new(w, r);
    puppet *helper = puppet_new(w, (puppet){.arg = puppet_new(w, IGNORING)});
    (void)ebb_spawn(w->host, k->s.region, add_finalizer, helper);
    world_settle(w);
    k->quiet = k->over = true;
    ebb_region_force(w->host, k->s.region);
    world_pass(w, 10 * EBB_SECOND);
    assert_int_equal(stats_of(w).abandoned, 2); /* the helper and its finalizer */
    ebb_region_close(w->host, r);
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
}

/* ---- making one ------------------------------------------------------------------------------ */

static ebb_status refused(world *w, ebb_region r,
                          void (*on_closed)(void *arg, const ebb_region_report *report)) {
    watcher *k = world_keep(w, sizeof *k);
    ebb__supervisor s = ebb__supervisor_new(w->host, r, keep, k, on_closed, "supervisor.c:2");
    assert_int_equal(ebb_id_status(s.task.id), ebb_id_status(s.region.id));
    return ebb_id_status(s.task.id);
}

static void a_region_has_one_and_one_that_is_closed_has_none(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root), closed = open_region(w, w->root);
    watcher *k = watcher_new(w, r);
    ebb_runtime_stats before = stats_of(w);
    assert_int_equal(refused(w, r, NULL), EBB_ERR_BUSY);
    assert_int_equal(refused(w, closed, note_closed), EBB_ERR_INVALID); /* that is for the root */
    (void)puppet_start(w, closed, IGNORING);
    ebb_region_close(w->host, closed);
    assert_int_equal(refused(w, closed, NULL), EBB_ERR_CLOSED);
    assert_int_equal(refused(w, (ebb_region){0x0700000100000001}, NULL), EBB_ERR_FOREIGN);
    assert_int_equal(stats_of(w).tasks, before.tasks + 1);
    assert_int_equal(stats_of(w).regions, before.regions);
    dismiss(w, k);
}

static void a_supervisor_that_finds_no_memory_leaves_nothing(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    for (uint64_t n = 1; n < 20; n++) {
        ebb_runtime_stats before = stats_of(w);
        w->memory.fail_at = w->memory.calls + n;
        watcher *k = world_keep(w, sizeof *k);
        k->s = ebb__supervisor_new(w->host, r, keep, k, NULL, "supervisor.c:3");
        w->memory.fail_at = 0;
        if (ebb_id_status(k->s.task.id) == EBB_OK) {
            dismiss(w, k);
            return;
        }
        assert_int_equal(ebb_id_status(k->s.task.id), EBB_ERR_NOMEM);
        assert_int_equal(stats_of(w).tasks, before.tasks);
        assert_int_equal(stats_of(w).regions, before.regions);
    }
    fail_msg("there never is one");
}

static void one_that_has_returned_leaves_the_place_to_the_next(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    dismiss(w, watcher_new(w, r));
    assert_int_equal(state_of(w, r), EBB_REGION_OPEN);
    watcher *k = watcher_new(w, r);
    ebb_region_close(w->host, r);
    dismiss(w, k);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
}

static void the_root_tells_its_supervisor_when_it_has_closed(void **state) {
    world *w = *state;
    watcher *k = world_keep(w, sizeof *k);
    k->s = ebb__supervisor_new(w->host, w->root, keep, k, note_closed, "supervisor.c:4");
    assert_int_equal(ebb_id_status(k->s.task.id), EBB_OK);
    puppet *p = puppet_start(w, w->root, (puppet){.returns = EBB_FAILED});
    world_settle(w);
    ebb_region_close(w->host, w->root);
    world_settle(w);
    assert_int_equal(k->closed, 0);
    dismiss(w, k);
    assert_int_equal(k->closed, 1);
    assert_int_equal(k->report.region.id, w->root.id);
    assert_int_equal(k->report.status, EBB_FAILED);
    assert_int_equal(k->report.failed.id, p->id.id);
    assert_int_equal(state_of(w, w->root), EBB_REGION_CLOSED);
}

/* ---- joining, notes, leaks ------------------------------------------------------------------- */

static void a_region_that_is_to_close_does_so_once_nothing_lives_in_it(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *p = puppet_start(w, r, IGNORING);
    world_settle(w);
    ebb__region_joining(w->host, r);
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_OPEN);
    p->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    ebb__region_joining(w->host, r); /* and again: nothing */
    assert_int_equal(ebb_region_join(w->host, r), EBB_OK);
    ebb__region_joining(w->host, r);
}

static void a_note_stands_in_the_trace_as_it_was_given(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    ebb__note_event(w->rt, EBB_EV_WORKFLOW, .region = r.id, .value = 0x030102, .other = 77);
    ebb_event ev = event_of(w, EBB_EV_WORKFLOW, 0);
    assert_int_equal(ev.region_id, r.id);
    assert_int_equal(ev.value, 0x030102);
    assert_int_equal(ev.other, 77);
}

/* What the kernel has told of. */
static ebb__leak told[8];
static uint32_t told_n;

static void note_leak(ebb_runtime *rt, const ebb__leak *g) {
    (void)rt;
    assert_true(told_n < 8);
    told[told_n++] = *g;
}

static ebb_status reserve_and_stay(ebb_cx *cx, void *state) {
    puppet *p = state;
    if (p->polls++ == 0)
        p->number = ebb_obligation_reserve_site(cx, EBB_OBLIGATION_LEASE, NULL, NULL, "lease.c:2").id;
    return p->returns;
}

static ebb_status stay(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_PENDING;
}

static void each_that_does_not_end_as_it_should_is_told_when_it_happens(void **state) {
    world *w = *state;
    told_n = 0;
    static const ebb__layer layer = {.slot = 7, .hooks = {.leaked = note_leak}};
    assert_int_equal(ebb__layer_add(w->rt, &layer, told), EBB_OK);
    ebb_region r = open_region(w, w->root);
    puppet *forgets = puppet_new(w, (puppet){.returns = EBB_OK}), *stays = puppet_new(w, IGNORING);
    ebb_task a = ebb_spawn_site(w->host, r, reserve_and_stay, forgets, "forgets.c:1");
    ebb_task b = ebb_spawn_site(w->host, r, reserve_and_stay, stays, "stays.c:1");
    assert_int_equal(ebb_region_defer_site(w->host, r, stay, NULL, "finalizer.c:3"), EBB_OK);
    world_settle(w);
    assert_int_equal(told_n, 1);
    assert_int_equal(told[0].what, EBB__LEAK_OBLIGATION);
    assert_int_equal(told[0].kind, EBB_OBLIGATION_LEASE);
    assert_int_equal(told[0].id, forgets->number);
    assert_int_equal(told[0].owner, a.id);
    assert_string_equal(told[0].site, "lease.c:2");
    ebb_region_force(w->host, r);
    world_pass(w, EBB_SECOND);
    assert_int_equal(told_n, 4);
    assert_int_equal(told[1].what, EBB__LEAK_TASK);
    assert_int_equal(told[1].id, b.id);
    assert_string_equal(told[1].site, "stays.c:1");
    assert_int_equal(told[2].what, EBB__LEAK_ABORTED);
    assert_int_equal(told[2].id, stays->number);
    assert_int_equal(told[2].owner, b.id);
    assert_int_equal(told[3].what, EBB__LEAK_FINALIZER);
    assert_string_equal(told[3].site, "finalizer.c:3");
}

static void add_text(void *ctx, const char *text, size_t n) {
    char *out = ctx;
    size_t have = strlen(out);
    assert_true(have + n < 4096);
    memcpy(out + have, text, n);
    out[have + n] = 0;
}

static void a_dump_tells_the_supervisor_and_its_region_from_others(void **state) {
    world *w = *state;
    char text[4096] = "";
    watcher *k = watcher_new(w, open_region(w, w->root));
    ebb_runtime_dump(w->rt, add_text, text);
    assert_non_null(strstr(text, "drain region "));
    assert_non_null(strstr(text, "drain supervisor "));
    dismiss(w, k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(closing_and_cancelling_wake_it_and_do_not_reach_it),
        IN_WORLD(force_reaches_it_and_it_is_polled_before_it_is_abandoned),
        IN_WORLD(it_is_woken_when_nothing_but_its_region_is_left),
        IN_WORLD(it_is_woken_when_nothing_but_itself_is_left_in_its_region_that_is_to_close),
        IN_WORLD(its_region_admits_work_while_the_region_around_it_does_not),
        IN_WORLD(an_alarm_wakes_it_once_at_its_time),
        IN_WORLD(a_later_alarm_replaces_the_one_before_and_for_ever_is_none),
        IN_WORLD(an_alarm_cancels_nothing_though_its_region_has_a_timer_now),
        IN_WORLD(an_alarm_for_what_is_no_supervisor_is_ignored),
        IN_WORLD(an_alarm_after_a_force_does_not_take_the_time_of_that_away),
        IN_WORLD(a_region_has_one_and_one_that_is_closed_has_none),
        IN_WORLD(a_supervisor_that_finds_no_memory_leaves_nothing),
        IN_WORLD(one_that_has_returned_leaves_the_place_to_the_next),
        IN_WORLD(the_root_tells_its_supervisor_when_it_has_closed),
        IN_WORLD(a_region_that_is_to_close_does_so_once_nothing_lives_in_it),
        IN_WORLD(a_note_stands_in_the_trace_as_it_was_given),
        IN_WORLD(each_that_does_not_end_as_it_should_is_told_when_it_happens),
        IN_WORLD(a_dump_tells_the_supervisor_and_its_region_from_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
