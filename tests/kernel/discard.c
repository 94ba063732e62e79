/* Discard: a task that owes nothing ends without running again, as nobody's failure; any other is refused. */
#include "tests/support/world.h"

#include "kernel/layer.h"

static ebb_status discard(world *w, ebb_task t) {
    return ebb__task_discard(w->host, t);
}

/* ---- what it does -------------------------------------------------------------------------------- */

static void a_parked_task_ends_without_another_poll(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, IGNORING);
    world_settle(w);
    ebb_witness before, after;
    assert_int_equal(ebb_task_witness(w->host, p->id, &before), EBB_OK);
    assert_int_equal(discard(w, p->id), EBB_OK);
    assert_int_equal(ebb_task_witness(w->host, p->id, &after), EBB_OK);
    assert_int_equal(ebb_witness_check(&before, &after), EBB_OK);
    assert_int_equal(ebb_witness_check(&after, &before), EBB_ERR_WITNESS_PHASE);
    ebb_task_info info = info_of(w, p->id);
    assert_int_equal(info.phase, EBB_TASK_COMPLETED);
    assert_int_equal(info.status, EBB_DISCARDED);
    assert_int_equal(info.epoch, 0);
    world_settle(w);
    assert_int_equal(p->polls, 1);
    ebb_event ev = event_of(w, EBB_EV_DISCARDED, p->id.id);
    assert_int_equal((int32_t)ev.value, EBB_DISCARDED);
    assert_int_equal(ev.phase, EBB_TASK_COMPLETED);
    assert_int_equal(count_events(w, EBB_EV_COMPLETED, p->id.id), 0);
    assert_int_equal(stats_of(w).illegal, 0);
    assert_int_equal(ebb_task_join(w->host, p->id), EBB_DISCARDED);
    assert_int_equal((int32_t)event_of(w, EBB_EV_TASK_JOINED, p->id.id).value, EBB_DISCARDED);
    assert_int_equal(phase_of(w, p->id), 0);
}

static void a_task_that_was_never_polled_or_is_about_to_be_leaves_its_lane(void **state) {
    world *w = *state;
    for (uint32_t crowd = 1; crowd <= 3; crowd++) {
        for (uint32_t victim = 0; victim < crowd; victim++) {
            for (int woken = 0; woken < 2; woken++) {
                puppet *p[3];
                for (uint32_t i = 0; i < crowd; i++) p[i] = puppet_start(w, w->root, IGNORING);
                if (woken) world_settle(w);
                for (uint32_t i = 0; woken && i < crowd; i++) (void)ebb_task_wake(w->host, p[i]->id);
                assert_int_equal(stats_of(w).runnable, crowd);
                assert_int_equal(discard(w, p[victim]->id), EBB_OK);
                assert_int_equal(stats_of(w).runnable, crowd - 1);
                world_settle(w);
                for (uint32_t i = 0; i < crowd; i++) {
                    assert_int_equal(p[i]->polls, (uint32_t)woken + (i == victim ? 0 : 1));
                    if (i != victim) assert_int_equal(discard(w, p[i]->id), EBB_OK);
                }
            }
        }
    }
}

static void a_slot_is_free_at_once_if_nobody_keeps_the_outcome(void **state) {
    world *w = *state;
    puppet *p = puppet_start_with(w, w->root, IGNORING, (ebb_task_opts){.keep = false});
    assert_int_equal(discard(w, p->id), EBB_OK);
    assert_int_equal(phase_of(w, p->id), 0);
    uint64_t stale = stats_of(w).stale_wakes;
    assert_int_equal(discard(w, p->id), EBB_ERR_STALE);
    assert_int_equal(stats_of(w).stale_wakes, stale + 1);
    puppet *q = puppet_start(w, w->root, IGNORING);
    assert_int_equal((uint32_t)(q->id.id >> 32), (uint32_t)(p->id.id >> 32)); /* the same slot */
    assert_int_equal(discard(w, p->id), EBB_ERR_STALE);
    assert_int_equal(phase_of(w, q->id), EBB_TASK_CREATED);
}

static void nobody_counts_it_as_failed_cancelled_or_abandoned(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root); /* fails fast */
    puppet *p = puppet_start(w, r, IGNORING), *sibling = puppet_start(w, r, HEEDING);
    world_settle(w);
    assert_int_equal(discard(w, p->id), EBB_OK);
    world_settle(w);
    assert_int_equal(phase_of(w, sibling->id), EBB_TASK_RUNNING);
    assert_int_equal(state_of(w, r), EBB_REGION_OPEN);
    sibling->returns = EBB_OK;
    (void)ebb_task_wake(w->host, sibling->id);
    world_settle(w);
    ebb_region_close(w->host, r);
    ebb_region_report report = report_of(w, r);
    assert_int_equal(report.status, EBB_OK);
    assert_int_equal(report.failed.id, 0);
    assert_int_equal(report.abandoned, 0);
    assert_int_equal(stats_of(w).abandoned, 0);
    assert_int_equal(ebb_region_join(w->host, r), EBB_OK);
}

/* It is only an outcome: a body may pass on that of another, and that is a failure of its own. */
static void a_body_that_returns_the_status_has_failed(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *p = puppet_start(w, r, (puppet){.returns = EBB_DISCARDED});
    world_settle(w);
    assert_int_equal((int32_t)event_of(w, EBB_EV_COMPLETED, p->id.id).value, EBB_DISCARDED);
    assert_int_equal(report_of(w, r).status, EBB_DISCARDED);
    assert_int_equal(report_of(w, r).failed.id, p->id.id);
}

static void the_last_task_of_a_closing_region_lets_it_close(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *p = puppet_start(w, r, IGNORING);
    puppet *fin = puppet_new(w, (puppet){.says = "finalizer"});
    assert_int_equal(ebb_region_defer(w->host, r, puppet_poll, fin), EBB_OK);
    world_settle(w);
    ebb_region_close(w->host, r);
    assert_int_equal(state_of(w, r), EBB_REGION_DRAINING);
    assert_int_equal(discard(w, p->id), EBB_OK);
    assert_string_equal(w->log, ""); /* user code runs in the pump */
    world_settle(w);
    assert_string_equal(w->log, "finalizer ");
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(report_of(w, r).status, EBB_OK);
}

static void says_closed(void *arg, const ebb_region_report *report) {
    puppet *p = arg;
    assert_int_equal(report->status, EBB_OK);
    world_say(p->world, "closed");
}

static void the_hook_of_its_region_waits_for_the_pump(void **state) {
    world *w = *state;
    puppet *hook = puppet_new(w, IGNORING);
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.on_closed = says_closed, .arg = hook});
    puppet *p = puppet_start(w, r, IGNORING);
    ebb_region_close(w->host, r);
    assert_int_equal(discard(w, p->id), EBB_OK);
    assert_string_equal(w->log, "");
    world_settle(w);
    assert_string_equal(w->log, "closed ");
}

static void joins(ebb_cx *cx, puppet *p) {
    p->returns = ebb_task_join(cx, (ebb_task){p->number});
    p->seen = p->returns;
    if (p->returns != EBB_PENDING) p->returns = EBB_OK;
}

static void who_joins_it_is_woken_and_told(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, IGNORING);
    puppet *joiner = puppet_start(w, w->root, (puppet){.act = joins, .number = p->id.id});
    world_settle(w);
    assert_int_equal(joiner->seen, EBB_PENDING);
    assert_int_equal(discard(w, p->id), EBB_OK);
    world_settle(w);
    assert_int_equal(joiner->seen, EBB_DISCARDED);
}

static void a_joiner_that_is_discarded_leaves_room_for_another(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, IGNORING);
    puppet *first = puppet_start(w, w->root, (puppet){.act = joins, .number = p->id.id});
    world_settle(w);
    assert_int_equal(discard(w, first->id), EBB_OK);
    puppet *second = puppet_start(w, w->root, (puppet){.act = joins, .number = p->id.id});
    world_settle(w);
    assert_int_equal(second->seen, EBB_PENDING);
    assert_int_equal(discard(w, p->id), EBB_OK);
    world_settle(w);
    assert_int_equal(second->seen, EBB_DISCARDED);
    assert_int_equal(first->polls, 1);
}

static void a_future_of_its_end_completes(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, IGNORING);
    ebb_future *end = ebb_task_ended(w->host, p->id);
    world_settle(w);
    assert_int_equal(ebb_future_status_of(end), EBB_PENDING);
    assert_int_equal(discard(w, p->id), EBB_OK);
    world_settle(w);
    assert_int_equal(ebb_future_status_of(end), EBB_OK);
    ebb_future_drop(end);
}

static void a_deadline_goes_with_the_task(void **state) {
    world *w = *state;
    for (int polled = 0; polled < 2; polled++) {
        puppet *p =
            puppet_start_with(w, w->root, IGNORING, (ebb_task_opts){.deadline = world_now(w) + 10 * EBB_MS});
        if (polled) world_settle(w);
        assert_int_equal(discard(w, p->id), EBB_OK);
        world_settle(w);
        assert_int_equal(ebb_runtime_next_due(w->rt), EBB_FOREVER);
        world_pass(w, 20 * EBB_MS);
        assert_int_equal(p->polls, (uint32_t)polled);
    }
    assert_int_equal(count_events(w, EBB_EV_CANCEL_REQUESTED, 0), 0);
}

static void it_needs_no_memory(void **state) {
    world *w = *state;
    puppet *p[64];
    for (int i = 0; i < 64; i++) p[i] = puppet_start(w, w->root, IGNORING);
    world_settle(w);
    w->memory.fail_at = 1;
    w->memory.fail_after = true;
    w->memory.calls = 0;
    for (int i = 0; i < 64; i++) assert_int_equal(discard(w, p[i]->id), EBB_OK);
    assert_int_equal(w->memory.calls, 0);
    w->memory.fail_at = 0;
    w->memory.fail_after = false;
}

/* ---- waits --------------------------------------------------------------------------------------- */

typedef struct hooked {
    world *w;
    ebb_task task;
    ebb_wait wait[2];
    void (*act)(struct hooked *h);
} hooked;

static void hook(ebb_wait *wait) {
    hooked *h = wait->on;
    world_say(h->w, wait == &h->wait[0] ? "first" : "second");
    if (h->act != NULL) h->act(h);
}
static const ebb_wait_kind hooking = {"test", hook};

static void waits_for_both(ebb_cx *cx, puppet *p) {
    hooked *h = p->arg;
    if (p->polls > 1) return;
    for (int i = 0; i < 2; i++) assert_int_equal(ebb_wait_begin(cx, &h->wait[i], &hooking, h), EBB_OK);
}

static hooked *parked_with_hooks(world *w, void (*act)(hooked *h)) {
    hooked *h = world_keep(w, sizeof *h);
    puppet *p = puppet_start(w, w->root, (puppet){.act = waits_for_both, .returns = EBB_PENDING, .arg = h});
    *h = (hooked){.w = w, .task = p->id, .act = act};
    world_settle(w);
    return h;
}

static void its_waits_leave_through_their_own_hooks(void **state) {
    world *w = *state;
    hooked *h = parked_with_hooks(w, NULL);
    assert_int_equal(discard(w, h->task), EBB_OK);
    assert_string_equal(w->log, "second first ");
    for (int i = 0; i < 2; i++) assert_ptr_equal(h->wait[i].cx, NULL);
    assert_int_equal(info_of(w, h->task).status, EBB_DISCARDED);
}

static void wakes_and_starts_work(hooked *h) {
    ebb_cx *cx = ebb__task_cx(h->w->rt, h->task, NULL);
    ebb_wait other = {.cx = NULL};
    assert_int_equal(ebb_task_wake(h->w->host, h->task), EBB_OK);
    assert_int_equal(ebb_wait_begin(cx, &other, &hooking, h), EBB_ERR_CLOSED);
    assert_int_equal(ebb_defer(cx, puppet_poll, NULL), EBB_ERR_CLOSED);
    assert_int_equal(ebb_id_status(ebb_obligation_reserve(cx, EBB_OBLIGATION_ACK, NULL, NULL).id),
                     EBB_ERR_CLOSED);
    assert_int_equal(ebb__task_discard(h->w->host, h->task), EBB_ERR_OWES);
}

static void a_hook_may_wake_the_task_but_start_nothing_in_its_name(void **state) {
    world *w = *state;
    hooked *h = parked_with_hooks(w, wakes_and_starts_work);
    assert_int_equal(discard(w, h->task), EBB_OK);
    assert_int_equal(info_of(w, h->task).status, EBB_DISCARDED);
    assert_int_equal(stats_of(w).runnable, 0);
    world_settle(w);
    assert_int_equal(count_events(w, EBB_EV_TASK_POLLED, h->task.id), 1);
}

static void cancels(hooked *h) {
    ebb_task_cancel(h->w->host, h->task, EBB_CANCEL_USER, "in a hook");
}

static void a_task_that_a_hook_cancels_ends_cancelled_and_runs_no_more(void **state) {
    world *w = *state;
    hooked *h = parked_with_hooks(w, cancels);
    assert_int_equal(discard(w, h->task), EBB_OK);
    assert_int_equal(phase_of(w, h->task), EBB_TASK_CANCEL_REQUESTED);
    world_settle(w);
    assert_int_equal(info_of(w, h->task).status, EBB_CANCELLED);
    assert_int_equal(count_events(w, EBB_EV_DISCARDED, 0), 0);
    assert_string_equal(w->log, "second first ");
}

static void receives(ebb_cx *cx, puppet *p) {
    int item;
    p->returns = ebb_chan_recv(cx, p->arg, &p->wait, &item);
    if (p->returns != EBB_OK) return;
    world_say(p->world, item == 7 ? "seven" : "other");
}

static void an_item_that_was_on_its_way_to_it_stays_in_the_channel(void **state) {
    world *w = *state;
    ebb_chan *ch;
    assert_int_equal(ebb_chan_new(w->rt, 1, sizeof(int), &ch), EBB_OK);
    puppet *p = puppet_start(w, w->root, (puppet){.act = receives, .arg = ch});
    world_settle(w);
    ebb_wait wait = {.cx = NULL};
    int item = 7;
    assert_int_equal(ebb_chan_send(w->host, ch, &wait, &item), EBB_OK);
    assert_int_equal(stats_of(w).runnable, 1);
    assert_int_equal(discard(w, p->id), EBB_OK);
    puppet *q = puppet_start(w, w->root, (puppet){.act = receives, .arg = ch});
    world_settle(w);
    assert_string_equal(w->log, "seven ");
    assert_int_equal(phase_of(w, q->id), EBB_TASK_COMPLETED);
    ebb_chan_free(ch);
}

static void sleeps(ebb_cx *cx, puppet *p) {
    p->returns = ebb_sleep(cx, &p->nap, EBB_SECOND);
}

static void the_timer_of_a_sleep_is_disarmed(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.act = sleeps});
    world_settle(w);
    assert_int_equal(stats_of(w).timers, 1);
    assert_int_equal(discard(w, p->id), EBB_OK);
    assert_int_equal(stats_of(w).timers, 0);
    assert_int_equal(ebb_runtime_next_due(w->rt), EBB_FOREVER);
}

/* ---- what is refused ----------------------------------------------------------------------------- */

static void refused(world *w, ebb_task t, ebb_status why) {
    ebb_task_info before = info_of(w, t);
    uint32_t n = count_events(w, EBB_EV_REFUSED, 0);
    assert_int_equal(discard(w, t), why);
    ebb_task_info after = info_of(w, t);
    assert_int_equal(after.phase, before.phase);
    assert_int_equal(after.lane, before.lane);
    ebb_event ev;
    assert_true(find_event(w, EBB_EV_REFUSED, 0, n, &ev));
    assert_int_equal((int32_t)ev.value, why);
    assert_int_equal(ev.region_id, before.region.id);
    assert_int_equal(ev.task_id, 0);
    assert_int_equal(count_events(w, EBB_EV_DISCARDED, t.id), 0);
    assert_int_equal(stats_of(w).illegal, 0);
}

/* Wakes it so that it returns, and then nothing is refused any more. */
static void ends(world *w, puppet *p, ebb_status st) {
    p->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_finish(w);
    assert_int_equal(info_of(w, p->id).status, st);
}

static void reserves(ebb_cx *cx, puppet *p) {
    if (p->number == 0) p->number = ebb_obligation_reserve(cx, EBB_OBLIGATION_ACK, NULL, NULL).id;
}

static void a_task_with_an_obligation_is_refused_until_it_is_resolved(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.act = reserves, .returns = EBB_PENDING});
    world_settle(w);
    refused(w, p->id, EBB_ERR_OWES);
    assert_int_equal(ebb_obligation_commit(w->host, (ebb_obligation){p->number}), EBB_OK);
    assert_int_equal(discard(w, p->id), EBB_OK);
}

static void defers(ebb_cx *cx, puppet *p) {
    if (p->polls == 1) assert_int_equal(ebb_defer(cx, puppet_poll, p->arg), EBB_OK);
}

static void a_task_with_a_finalizer_is_refused(void **state) {
    world *w = *state;
    puppet *fin = puppet_new(w, (puppet){.says = "finalizer", .returns = EBB_PENDING});
    puppet *p = puppet_start(w, w->root, (puppet){.act = defers, .returns = EBB_PENDING, .arg = fin});
    world_settle(w);
    refused(w, p->id, EBB_ERR_OWES);
    p->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_string_equal(w->log, "finalizer ");
    refused(w, p->id, EBB_ERR_OWES); /* the finalizer waits */
    fin->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_int_equal(info_of(w, p->id).status, EBB_OK);
}

static void opens(ebb_cx *cx, puppet *p) {
    if (p->polls == 1) p->number = ebb_region_open(cx, NULL).id;
}

static void a_task_with_a_region_is_refused_until_the_region_is_joined(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.act = opens, .returns = EBB_PENDING});
    world_settle(w);
    refused(w, p->id, EBB_ERR_OWES);
    ebb_region_close(w->host, (ebb_region){p->number});
    assert_int_equal(state_of(w, (ebb_region){p->number}), EBB_REGION_CLOSED);
    refused(w, p->id, EBB_ERR_OWES);
    ends(w, p, EBB_OK);
}

static void a_task_that_waits_for_its_regions_after_its_return_is_refused(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.act = opens, .returns = EBB_PENDING});
    world_settle(w);
    puppet *in = puppet_start(w, (ebb_region){p->number}, IGNORING);
    world_settle(w);
    p->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    refused(w, p->id, EBB_ERR_OWES);
    in->returns = EBB_OK;
    (void)ebb_task_wake(w->host, in->id);
    world_settle(w);
    assert_int_equal(info_of(w, p->id).phase, EBB_TASK_COMPLETED);
}

static ebb_status never_ends(ebb_cx *cx, void *arg) {
    (void)arg;
    return ebb_checkpoint(cx) == EBB_OK ? EBB_PENDING : EBB_CANCELLED;
}

typedef struct first_task {
    ebb_task id;
} first_task;
static void see(void *ctx, const ebb__task_view *t) {
    ((first_task *)ctx)->id.id = t->id;
}

static void a_task_whose_future_would_never_end_is_refused(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    ebb_future *f = ebb_go(w->host, r, never_ends, NULL);
    world_settle(w);
    ebb__region *inside;
    first_task t = {{0}};
    assert_int_equal(ebb__region_get(w->rt, r, &inside), EBB_OK);
    ebb__tasks_each(w->rt, inside, see, &t);
    refused(w, t.id, EBB_ERR_OWES);
    ebb_future_cancel(f, EBB_CANCEL_USER);
    world_settle(w);
    assert_int_equal(ebb_future_status_of(f), EBB_CANCELLED);
    ebb_future_drop(f);
}

static void masks(ebb_cx *cx, puppet *p) {
    if (p->polls == 1) assert_int_equal(ebb_mask(cx), EBB_OK);
    if (p->polls == 2) assert_int_equal(ebb_unmask(cx), EBB_OK);
}

static void a_task_in_a_masked_section_is_refused(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.act = masks, .returns = EBB_PENDING});
    world_settle(w);
    refused(w, p->id, EBB_ERR_BUSY);
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_int_equal(discard(w, p->id), EBB_OK);
}

static void discards_itself(ebb_cx *cx, puppet *p) {
    if (p->polls == 1) p->seen = ebb__task_discard(cx, ebb_cx_task(cx));
}

static void a_task_that_is_being_polled_is_refused(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.act = discards_itself, .returns = EBB_PENDING});
    world_settle(w);
    assert_int_equal(p->seen, EBB_ERR_BUSY);
    assert_int_equal(event_of(w, EBB_EV_REFUSED, 0).task_id, p->id.id);
    assert_int_equal(discard(w, p->id), EBB_OK);
}

static void discards_another(ebb_cx *cx, puppet *p) {
    if (p->polls == 1) p->seen = ebb__task_discard(cx, (ebb_task){p->number});
}

static void a_task_may_discard_another_in_its_poll(void **state) {
    world *w = *state;
    puppet *a = puppet_start(w, w->root, IGNORING);
    puppet *p =
        puppet_start(w, w->root, (puppet){.act = discards_another, .number = a->id.id, .returns = EBB_OK});
    world_settle(w);
    assert_int_equal(p->seen, EBB_OK);
    assert_int_equal(info_of(w, a->id).status, EBB_DISCARDED);
}

static void a_task_under_a_cancel_request_ends_by_that(void **state) {
    world *w = *state;
    puppet *p =
        puppet_start(w, w->root, (puppet){.heeds = true, .on_cancel = EBB_PENDING, .returns = EBB_PENDING});
    world_settle(w);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
    refused(w, p->id, EBB_CANCELLED);
    world_settle(w);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_CANCELLING);
    refused(w, p->id, EBB_CANCELLED);
    p->on_cancel = EBB_CANCELLED;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_int_equal(discard(w, p->id), EBB_ERR_STALE);
    assert_int_equal(info_of(w, p->id).status, EBB_CANCELLED);
}

static void who_has_ended_or_never_was_is_named(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.returns = EBB_OK});
    world_settle(w);
    uint64_t stale = stats_of(w).stale_wakes;
    assert_int_equal(discard(w, p->id), EBB_ERR_STALE); /* its outcome is kept */
    assert_int_equal(stats_of(w).stale_wakes, stale + 1);
    assert_int_equal(count_events(w, EBB_EV_STALE_WAKE, p->id.id), 1);
    assert_int_equal(info_of(w, p->id).status, EBB_OK);
    assert_int_equal(discard(w, (ebb_task){0}), EBB_ERR_INVALID);
    assert_int_equal(discard(w, (ebb_task){p->id.id ^ (uint64_t)1 << 56}), EBB_ERR_FOREIGN);
    ebb_region_close(w->host, w->root);
    ebb_task none = ebb_spawn(w->host, w->root, puppet_poll, p);
    assert_int_equal(discard(w, none), EBB_ERR_CLOSED);
}

static void notes_who_runs(ebb_cx *cx, puppet *p) {
    p->number = ebb_cx_task(cx).id;
}

static void a_task_of_the_kernel_is_refused(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *fin = puppet_new(w, (puppet){.act = notes_who_runs, .returns = EBB_PENDING});
    assert_int_equal(ebb_region_defer(w->host, r, puppet_poll, fin), EBB_OK);
    ebb_region_close(w->host, r);
    world_settle(w);
    refused(w, (ebb_task){fin->number}, EBB_ERR_INVALID); /* the region's closer */
    fin->returns = EBB_OK;
    (void)ebb_task_wake(w->host, (ebb_task){fin->number});
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_parked_task_ends_without_another_poll),
        IN_WORLD(a_task_that_was_never_polled_or_is_about_to_be_leaves_its_lane),
        IN_WORLD(a_slot_is_free_at_once_if_nobody_keeps_the_outcome),
        IN_WORLD(nobody_counts_it_as_failed_cancelled_or_abandoned),
        IN_WORLD(a_body_that_returns_the_status_has_failed),
        IN_WORLD(the_last_task_of_a_closing_region_lets_it_close),
        IN_WORLD(the_hook_of_its_region_waits_for_the_pump),
        IN_WORLD(who_joins_it_is_woken_and_told),
        IN_WORLD(a_joiner_that_is_discarded_leaves_room_for_another),
        IN_WORLD(a_future_of_its_end_completes),
        IN_WORLD(a_deadline_goes_with_the_task),
        IN_WORLD(it_needs_no_memory),
        IN_WORLD(its_waits_leave_through_their_own_hooks),
        IN_WORLD(a_hook_may_wake_the_task_but_start_nothing_in_its_name),
        IN_WORLD(a_task_that_a_hook_cancels_ends_cancelled_and_runs_no_more),
        IN_WORLD(an_item_that_was_on_its_way_to_it_stays_in_the_channel),
        IN_WORLD(the_timer_of_a_sleep_is_disarmed),
        IN_WORLD(a_task_with_an_obligation_is_refused_until_it_is_resolved),
        IN_WORLD(a_task_with_a_finalizer_is_refused),
        IN_WORLD(a_task_with_a_region_is_refused_until_the_region_is_joined),
        IN_WORLD(a_task_that_waits_for_its_regions_after_its_return_is_refused),
        IN_WORLD(a_task_whose_future_would_never_end_is_refused),
        IN_WORLD(a_task_in_a_masked_section_is_refused),
        IN_WORLD(a_task_that_is_being_polled_is_refused),
        IN_WORLD(a_task_may_discard_another_in_its_poll),
        IN_WORLD(a_task_under_a_cancel_request_ends_by_that),
        IN_WORLD(who_has_ended_or_never_was_is_named),
        IN_WORLD(a_task_of_the_kernel_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
