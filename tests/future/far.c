/* Regions with a child on another runtime. */
#include "tests/support/two_worlds.h"

/* A region of a with a task in it that opens a far region and awaits it. */
typedef struct family {
    ebb_region region; /* on a */
    puppet *child;     /* on b */
    ebb_peer *peer;
    ebb_future *future;
    ebb_status st;
    ebb_value value;
} family;

static ebb_status be_parent(ebb_cx *cx, void *state) {
    family *f = state;
    if (f->future == NULL) f->future = ebb_peer_run(cx, f->peer, puppet_poll, f->child);
    f->st = ebb_await(cx, f->future, &f->value);
    return f->st == EBB_PENDING || f->st == EBB_CANCELLED ? f->st : EBB_OK;
}

static family *family_in(two *t, ebb_region parent, puppet child) {
    family *f = world_keep(t->a, sizeof *f);
    ebb_region_opts o = {.parent = parent, .policy = EBB_FAIL_COLLECT};
    f->region = ebb_region_open(t->a->host, &o);
    f->child = puppet_new(t->b, child);
    f->peer = t->to_b;
    f->st = EBB_PENDING;
    assert_int_equal(ebb_id_status(ebb_spawn(t->a->host, f->region, be_parent, f).id), EBB_OK);
    turn(t->a);
    return f;
}

static family *family_of(two *t, puppet child) {
    return family_in(t, t->a->root, child);
}

static ebb_event last_received(world *w, uint32_t verb) {
    ebb_event ev, found = {0};
    for (uint32_t i = 0; find_event(w, EBB_EV_RECEIVED, 0, i, &ev); i++) {
        if (ev.value == verb) found = ev;
    }
    assert_int_equal(found.value, verb);
    return found;
}

static uint64_t far_region(two *t) {
    ebb_event ev;
    assert_true(find_event(t->b, EBB_EV_REGION_OPENED, 0, 1, &ev)); /* the first is the root */
    return ev.region_id;
}

/* ---- how they end ---------------------------------------------------------------------------------------- */

static void a_far_body_runs_there_and_its_end_comes_back(void **state) {
    two *t = *state;
    family *f = family_of(t, (puppet){.returns = EBB_OK});
    assert_int_equal(f->child->polls, 0);
    turn(t->b);
    assert_int_equal(f->child->polls, 1);
    assert_int_equal(f->st, EBB_PENDING);
    turn(t->a);
    assert_int_equal(f->st, EBB_OK);
    ebb_region_close(t->a->host, f->region);
    turn(t->a);
    assert_int_equal(ebb_region_join(t->a->host, f->region), EBB_OK);
}

static void a_far_failure_comes_back(void **state) {
    two *t = *state;
    family *f = family_of(t, (puppet){.returns = EBB_FAILED});
    meet(t);
    assert_int_equal(f->st, EBB_FAILED);
}

static void spawn_one_more(ebb_cx *cx, puppet *p) {
    puppet *other = p->arg;
    if (p->polls == 1) other->id = ebb_spawn(cx, ebb_cx_region(cx), puppet_poll, other);
}

static void a_far_region_ends_with_the_last_of_its_tasks(void **state) {
    two *t = *state;
    puppet *other = puppet_new(t->b, HEEDING);
    family *f = family_of(t, (puppet){.act = spawn_one_more, .arg = other, .returns = EBB_OK});
    meet(t);
    assert_int_equal(f->st, EBB_PENDING);
    other->returns = EBB_OK;
    (void)ebb_task_wake(t->b->host, other->id);
    meet(t);
    assert_int_equal(f->st, EBB_OK);
}

static void a_far_region_on_ones_own_runtime_works_too(void **state) {
    two *t = *state;
    puppet *p = puppet_new(t->a, (puppet){.returns = EBB_OK});
    reader *r = reader_start(t->a, t->a->root, ebb_peer_run(t->a->host, t->to_a, puppet_poll, p));
    meet(t);
    assert_int_equal(r->st, EBB_OK);
}

static void the_region_here_waits_for_the_far_one(void **state) {
    two *t = *state;
    family *f = family_of(t, HEEDING);
    meet(t);
    ebb_region_cancel(t->a->host, f->region, EBB_CANCEL_USER, "enough");
    turn(t->a);
    assert_int_equal(state_of(t->a, f->region), EBB_REGION_DRAINING);
    turn(t->b);
    turn(t->a);
    assert_int_equal(state_of(t->a, f->region), EBB_REGION_CLOSED);
    assert_int_equal(f->st, EBB_CANCELLED);
}

/* ---- what is said on --------------------------------------------------------------------------------------- */

static void a_close_is_said_on(void **state) {
    two *t = *state;
    family *f = family_of(t, HEEDING);
    meet(t);
    ebb_region_close(t->a->host, f->region);
    turn(t->a);
    turn(t->b);
    assert_int_equal(state_of(t->b, (ebb_region){far_region(t)}), EBB_REGION_DRAINING);
    assert_int_equal(last_received(t->b, EBB_MSG_CLOSE).region_id, far_region(t));
    assert_int_equal(count_events(t->b, EBB_EV_REGION_CANCELLED, far_region(t)), 0);
}

static void a_cancel_is_said_on_with_its_kind_and_message(void **state) {
    two *t = *state;
    family *f = family_of(t, IGNORING);
    meet(t);
    ebb_region_cancel(t->a->host, f->region, EBB_CANCEL_LEASE_LOST, "the row is gone");
    turn(t->a);
    turn(t->b);
    ebb_event ev = event_of(t->b, EBB_EV_REGION_CANCELLED, far_region(t));
    char text[EBB_MESSAGE_MAX + 1];
    text_of(t->b, EBB_EV_REGION_CANCELLED, far_region(t), text, sizeof text);
    assert_int_equal(ev.cancel_kind, EBB_CANCEL_LEASE_LOST);
    assert_string_equal(text, "the row is gone");
}

static void the_root_cause_is_said_on(void **state) {
    two *t = *state;
    ebb_region outer = open_region(t->a, t->a->root);
    (void)family_in(t, open_region(t->a, outer), IGNORING);
    meet(t);
    ebb_region_cancel(t->a->host, outer, EBB_CANCEL_TIMEOUT, "too slow");
    turn(t->a);
    turn(t->b);
    ebb_event ev = event_of(t->b, EBB_EV_REGION_CANCELLED, far_region(t));
    char text[EBB_MESSAGE_MAX + 1];
    text_of(t->b, EBB_EV_REGION_CANCELLED, far_region(t), text, sizeof text);
    assert_int_equal(ev.cancel_kind, EBB_CANCEL_TIMEOUT);
    assert_int_equal(ev.severity, EBB_SEVERITY_URGENT);
    assert_string_equal(text, "too slow");
}

static void a_force_is_said_on(void **state) {
    two *t = *state;
    family *f = family_of(t, IGNORING);
    meet(t);
    ebb_region_force(t->a->host, f->region);
    turn(t->a);
    turn(t->b);
    assert_int_equal(count_events(t->b, EBB_EV_REGION_FORCED, far_region(t)), 1);
}

static void a_second_cancel_only_strengthens(void **state) {
    two *t = *state;
    family *f = family_of(t, IGNORING);
    meet(t);
    ebb_region_cancel(t->a->host, f->region, EBB_CANCEL_USER, "please");
    meet(t);
    ebb_region_cancel(t->a->host, f->region, EBB_CANCEL_USER, "please again");
    meet(t);
    assert_int_equal(count_events(t->b, EBB_EV_REGION_CANCELLED, far_region(t)), 1);
    ebb_region_cancel(t->a->host, f->region, EBB_CANCEL_SHUTDOWN, "now");
    meet(t);
    assert_int_equal(count_events(t->b, EBB_EV_REGION_CANCELLED, far_region(t)), 2);
}

/* One message at a time, however much is said while it is under way; and then all of it is heard. */
static void verbs_coalesce_while_a_letter_is_under_way(void **state) {
    two *t = *state;
    family *f = family_of(t, IGNORING);
    meet(t);
    t->woken_b = 0;
    uint64_t calls = t->a->memory.calls;
    ebb_region_close(t->a->host, f->region);
    turn(t->a);
    ebb_region_cancel(t->a->host, f->region, EBB_CANCEL_USER, "please");
    turn(t->a);
    ebb_region_cancel(t->a->host, f->region, EBB_CANCEL_SHUTDOWN, "now");
    turn(t->a);
    assert_int_equal(t->woken_b, 1);
    assert_int_equal(t->a->memory.calls, calls);
    turn(t->b);
    ebb_event first, second;
    assert_true(find_event(t->b, EBB_EV_REGION_CANCELLED, far_region(t), 0, &first));
    assert_true(find_event(t->b, EBB_EV_REGION_CANCELLED, far_region(t), 1, &second));
    assert_int_equal(first.cancel_kind, EBB_CANCEL_USER);
    assert_int_equal(second.cancel_kind, EBB_CANCEL_SHUTDOWN);
    ebb_event closed = last_received(t->b, EBB_MSG_CLOSE);
    assert_true(closed.decision_seq < first.decision_seq);
}

static void what_was_said_before_the_region_opened_is_heard_by_it(void **state) {
    two *t = *state;
    family *f = family_of(t, HEEDING);
    ebb_region_cancel(t->a->host, f->region, EBB_CANCEL_USER, "never mind");
    turn(t->a);
    turn(t->b);
    turn(t->a);
    assert_int_equal(f->child->polls, 1);
    assert_int_equal(state_of(t->a, f->region), EBB_REGION_CLOSED);
}

static void nothing_is_said_to_a_region_that_has_closed(void **state) {
    two *t = *state;
    family *f = family_of(t, (puppet){.returns = EBB_OK});
    turn(t->b);
    ebb_region_cancel(t->a->host, f->region, EBB_CANCEL_USER, "too late");
    world_settle(t->a); /* which has not taken in that it has closed */
    meet(t);
    assert_int_equal(stats_of(t->b).stale_wakes, 0);
    assert_int_equal(stats_of(t->a).stale_wakes, 0);
    assert_int_equal(state_of(t->a, f->region), EBB_REGION_CLOSED);
}

static void cancelling_the_future_cancels_the_far_region(void **state) {
    two *t = *state;
    puppet *p = puppet_new(t->b, HEEDING);
    ebb_future *f = ebb_peer_run(t->a->host, t->to_b, puppet_poll, p);
    meet(t);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_RACE_LOST));
    meet(t);
    assert_int_equal(event_of(t->b, EBB_EV_REGION_CANCELLED, far_region(t)).cancel_kind,
                     EBB_CANCEL_RACE_LOST);
    assert_int_equal(p->seen, EBB_CANCELLED);
    assert_int_equal(stats_of(t->b).regions, 1);
}

#define STAMP ((UINT64_C(1) << 56) - 1) /* below the id of the sender */

/* The message says how far the parent's trace was: its cancel stands before that. */
static void the_parent_is_cancelled_before_its_child_in_the_traces(void **state) {
    two *t = *state;
    family *f = family_of(t, HEEDING);
    meet(t);
    ebb_region_cancel(t->a->host, f->region, EBB_CANCEL_USER, "enough");
    meet(t);
    ebb_event parent = event_of(t->a, EBB_EV_REGION_CANCELLED, f->region.id);
    ebb_event message = last_received(t->b, EBB_MSG_CANCEL);
    ebb_event child = event_of(t->b, EBB_EV_REGION_CANCELLED, far_region(t));
    assert_int_equal(message.other >> 56, parent.task_id >> 56 | parent.region_id >> 56);
    assert_true(parent.decision_seq < (message.other & STAMP));
    assert_true(message.decision_seq < child.decision_seq);
    ebb_event closed = event_of(t->b, EBB_EV_REGION_CLOSED, far_region(t));
    ebb_event back = last_received(t->a, EBB_MSG_WAKE);
    assert_true(closed.decision_seq < (back.other & STAMP));
    assert_true(back.decision_seq < event_of(t->a, EBB_EV_REGION_CLOSED, f->region.id).decision_seq);
}

/* As a child here would have; its clock may show another time. */
static void a_far_region_has_what_is_left_of_its_parents_budget(void **state) {
    two *t = *state;
    family *f = family_of(t, HEEDING);
    meet(t);
    ebb_runtime_advance(t->b->rt, 700 * EBB_SECOND);
    ebb_budget budget = {world_now(t->a) + 90 * EBB_SECOND, 77, 0};
    ebb_region_cancel_within(t->a->host, f->region, EBB_CANCEL_SHUTDOWN, "enough", budget);
    meet(t);
    ebb_event child = event_of(t->b, EBB_EV_REGION_CANCELLED, far_region(t));
    assert_int_equal(child.other, 790 * EBB_SECOND);
    assert_int_equal(child.value, 77);
}

static void a_far_region_of_a_parent_without_bounds_has_none(void **state) {
    two *t = *state;
    family *f = family_of(t, HEEDING);
    meet(t);
    ebb_budget budget = {EBB_FOREVER, EBB_POLLS_UNBOUNDED, 0};
    ebb_region_cancel_within(t->a->host, f->region, EBB_CANCEL_SHUTDOWN, "enough", budget);
    meet(t);
    assert_int_equal(event_of(t->b, EBB_EV_REGION_CANCELLED, far_region(t)).other, EBB_FOREVER);
}

/* ---- force ---------------------------------------------------------------------------------------------------- */

static void a_forced_parent_does_not_wait_but_owns_what_it_left(void **state) {
    two *t = *state;
    family *f = family_of(t, HEEDING);
    meet(t);
    ebb_region_force(t->a->host, f->region);
    turn(t->a);
    assert_int_equal(state_of(t->a, f->region), EBB_REGION_CLOSED);
    assert_int_equal(report_of(t->a, f->region).abandoned, 1);
    int64_t bytes = t->a->memory.live_bytes;
    meet(t);
    assert_true(t->a->memory.live_bytes < bytes);
    assert_int_equal(stats_of(t->a).stale_wakes, 0);
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static void a_peer_that_is_gone_refuses(void **state) {
    two *t = *state;
    puppet *p = puppet_new(t->b, HEEDING);
    reader *under_way = reader_start(t->a, t->a->root, ebb_peer_run(t->a->host, t->to_b, puppet_poll, p));
    turn(t->a);
    doom(t->b);
    reader *late = reader_start(t->a, t->a->root, ebb_peer_run(t->a->host, t->to_b, puppet_poll, p));
    turn(t->a);
    assert_int_equal(under_way->st, EBB_ERR_CLOSED);
    assert_int_equal(late->st, EBB_ERR_CLOSED);
}

static void a_peer_that_is_freed_later_closes_its_far_regions(void **state) {
    two *t = *state;
    family *f = family_of(t, HEEDING);
    meet(t);
    doom(t->b);
    turn(t->a);
    assert_int_equal(f->st, EBB_ERR_CLOSED);
}

static void a_peer_whose_root_is_closed_refuses(void **state) {
    two *t = *state;
    ebb_region_close(t->b->host, t->b->root);
    turn(t->b);
    family *f = family_of(t, HEEDING);
    meet(t);
    assert_int_equal(f->st, EBB_ERR_CLOSED);
}

static void a_peer_without_memory_refuses(void **state) {
    for (uint64_t n = 1;; n++) {
        (void)state;
        void *s;
        two_up(&s);
        two *t = s;
        family *f = family_of(t, (puppet){.returns = EBB_OK});
        t->b->memory.fail_at = t->b->memory.calls + n;
        turn(t->b);
        bool failed = t->b->memory.failures > 0;
        t->b->memory.fail_at = 0;
        meet(t);
        assert_int_equal(f->st, failed ? EBB_ERR_NOMEM : EBB_OK);
        two_down(&s);
        if (!failed) return;
    }
}

static void a_far_region_survives_the_nth_allocation_failing_here(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        void *s;
        two_up(&s);
        two *t = s;
        puppet *p = puppet_new(t->b, (puppet){.returns = EBB_OK});
        t->a->memory.fail_at = t->a->memory.calls + n;
        ebb_future *f = ebb_peer_run(t->a->host, t->to_b, puppet_poll, p);
        bool failed = t->a->memory.failures > 0;
        t->a->memory.fail_at = 0;
        meet(t);
        assert_int_equal(ebb_future_status_of(f), failed ? EBB_ERR_NOMEM : EBB_OK);
        assert_int_equal(p->polls, failed ? 0 : 1);
        two_down(&s);
        if (!failed) return;
    }
}

static void bad_use_is_a_failed_future(void **state) {
    two *t = *state;
    assert_int_equal(ebb_future_status_of(ebb_peer_run(t->a->host, NULL, puppet_poll, NULL)),
                     EBB_ERR_INVALID);
    assert_int_equal(ebb_future_status_of(ebb_peer_run(t->a->host, t->to_b, NULL, NULL)), EBB_ERR_INVALID);
    ebb_region_close(t->a->host, t->a->root);
    turn(t->a);
    assert_int_equal(ebb_future_status_of(ebb_peer_run(t->a->host, t->to_b, puppet_poll, NULL)),
                     EBB_ERR_CLOSED);
}

static void a_runtime_that_is_freed_cancels_its_far_regions(void **state) {
    two *t = *state;
    family *f = family_of(t, HEEDING);
    puppet *child = f->child;
    meet(t);
    doom(t->a);
    turn(t->b);
    assert_int_equal(child->seen, EBB_CANCELLED);
    assert_int_equal(event_of(t->b, EBB_EV_REGION_CANCELLED, far_region(t)).cancel_kind,
                     EBB_CANCEL_DISCONNECT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_TWO_WORLDS(a_far_body_runs_there_and_its_end_comes_back),
        IN_TWO_WORLDS(a_far_failure_comes_back),
        IN_TWO_WORLDS(a_far_region_ends_with_the_last_of_its_tasks),
        IN_TWO_WORLDS(a_far_region_on_ones_own_runtime_works_too),
        IN_TWO_WORLDS(the_region_here_waits_for_the_far_one),
        IN_TWO_WORLDS(a_close_is_said_on),
        IN_TWO_WORLDS(a_cancel_is_said_on_with_its_kind_and_message),
        IN_TWO_WORLDS(the_root_cause_is_said_on),
        IN_TWO_WORLDS(a_force_is_said_on),
        IN_TWO_WORLDS(a_second_cancel_only_strengthens),
        IN_TWO_WORLDS(verbs_coalesce_while_a_letter_is_under_way),
        IN_TWO_WORLDS(what_was_said_before_the_region_opened_is_heard_by_it),
        IN_TWO_WORLDS(nothing_is_said_to_a_region_that_has_closed),
        IN_TWO_WORLDS(cancelling_the_future_cancels_the_far_region),
        IN_TWO_WORLDS(the_parent_is_cancelled_before_its_child_in_the_traces),
        IN_TWO_WORLDS(a_far_region_has_what_is_left_of_its_parents_budget),
        IN_TWO_WORLDS(a_far_region_of_a_parent_without_bounds_has_none),
        IN_TWO_WORLDS(a_forced_parent_does_not_wait_but_owns_what_it_left),
        IN_TWO_WORLDS(a_peer_that_is_gone_refuses),
        IN_TWO_WORLDS(a_peer_that_is_freed_later_closes_its_far_regions),
        IN_TWO_WORLDS(a_peer_whose_root_is_closed_refuses),
        cmocka_unit_test(a_peer_without_memory_refuses),
        cmocka_unit_test(a_far_region_survives_the_nth_allocation_failing_here),
        IN_TWO_WORLDS(bad_use_is_a_failed_future),
        IN_TWO_WORLDS(a_runtime_that_is_freed_cancels_its_far_regions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
