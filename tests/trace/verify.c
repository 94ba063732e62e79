/* The checker: a run that keeps every rule passes, and each doctored one fails with the name of the
 * rule, the event and what was expected. */
#include "tests/support/trace_build.h"

typedef struct verdict {
    ebb_status status;
    ebb_violation violation;
    uint64_t events;
} verdict;

static verdict judge_with(const story *s, bool quiescent, ebb_allocator a) {
    verdict v = {.status = EBB_ERR_NOMEM};
    bytes b = file_of(s->r, s->n, false);
    ebb_trace_reader reader;
    ebb_event ev;
    assert_int_equal(ebb_trace_reader_open(&reader, b.p, b.n), EBB_OK);
    ebb_checker *c = ebb_checker_new(a);
    if (c != NULL) {
        v.status = EBB_OK;
        while (v.status == EBB_OK && ebb_trace_reader_next(&reader, &ev) == EBB_OK) {
            v.status = ebb_checker_event(c, &ev);
        }
        if (v.status == EBB_OK) v.status = ebb_checker_end(c, quiescent);
        if (ebb_checker_violation(c) != NULL) v.violation = *ebb_checker_violation(c);
        v.events = ebb_checker_events(c);
        ebb_checker_free(c);
    }
    free(b.p);
    return v;
}

static verdict judge(const story *s, bool quiescent) {
    return judge_with(s, quiescent, libc_allocator());
}

/* ---- doctored traces -------------------------------------------------------------------------- */

typedef struct doctored {
    const char *name;
    void (*doctor)(story *s);
    ebb_oracle oracle;
    const char *text; /* part of what it has to say */
} doctored;

static void no_turn(story *s) {
    drop(s, EBB_EV_TURN, 0);
}
static void turn_of_zero(story *s) {
    nth(s, EBB_EV_TURN, 0)->task = 0;
}
static void batch_of_zero(story *s) {
    nth(s, EBB_EV_TURN, 0)->region = 0;
}
static void no_task(story *s) {
    nth(s, EBB_EV_CANCEL_ACKED, 0)->task = 0;
}
static void no_region(story *s) {
    nth(s, EBB_EV_CANCEL_REQUESTED, 0)->region = 0;
}
static void no_epoch(story *s) {
    nth(s, EBB_EV_CANCEL_REQUESTED, 0)->epoch = CANCEL(1, 0);
}
static void no_kind(story *s) {
    nth(s, EBB_EV_CANCEL_REQUESTED, 0)->kind = 0;
}
static void no_phase(story *s) {
    nth(s, EBB_EV_FINALIZED, 0)->phase = 0;
}
static void no_severity(story *s) {
    nth(s, EBB_EV_FINALIZED, 0)->epoch = CANCEL(0, 1);
}
static void kind_of_eleven(story *s) {
    nth(s, EBB_EV_CANCEL_REQUESTED, 0)->kind = 11;
}
static void unknown_event(story *s) {
    nth(s, EBB_EV_IDLE, 0)->type = 79;
}
static void time_goes_back(story *s) {
    nth(s, EBB_EV_TIME, 1)->other = 999;
}
static void a_gap(story *s) {
    *nth(s, EBB_EV_IDLE, 0) = (ebb_record){.type = EBB_EV_GAP, .other = 12};
}
static void text_of_25(story *s) {
    nth(s, EBB_EV_TEXT, 0)->value = 25;
}
static void unknown_task(story *s) {
    nth(s, EBB_EV_TASK_POLLED, 0)->task = ID(99, 1);
}
static void unknown_region(story *s) {
    nth(s, EBB_EV_TASK_SPAWNED, 0)->region = ID(99, 1);
}
static void task_in_another_region(story *s) {
    nth(s, EBB_EV_TASK_POLLED, 0)->region = INNER;
}
static void id_used_twice(story *s) {
    nth(s, EBB_EV_TASK_SPAWNED, 1)->task = POLITE;
}
static void slot_used_twice(story *s) {
    nth(s, EBB_EV_TASK_SPAWNED, 1)->task = ID(1, 2);
}
static void old_generation(story *s) {
    nth(s, EBB_EV_TASK_SPAWNED, 5)->task = HOLDER;
}
static void error_id(story *s) {
    nth(s, EBB_EV_TASK_SPAWNED, 1)->task = ID(9, 0);
}
static void second_root(story *s) {
    nth(s, EBB_EV_REGION_OPENED, 1)->other = 0;
}
static void joined_unkept(story *s) {
    nth(s, EBB_EV_TASK_JOINED, 0)->task = STRICT;
}
static void joined_twice(story *s) {
    insert_at(s, where(s, EBB_EV_TASK_JOINED, 0), *nth(s, EBB_EV_TASK_JOINED, 0));
}
static void mask_skips(story *s) {
    nth(s, EBB_EV_MASKED, 0)->value = 2;
}
static void unmask_twice(story *s) {
    insert_at(s, where(s, EBB_EV_UNMASKED, 0), *nth(s, EBB_EV_UNMASKED, 0));
}
static void mask_33(story *s) {
    ebb_record r = *nth(s, EBB_EV_MASKED, 0);
    size_t at = where(s, EBB_EV_MASKED, 0);
    for (uint32_t depth = 2; depth <= 33; depth++) {
        r.value = depth;
        insert_at(s, ++at, r);
    }
}

static void ack_without_request(story *s) {
    drop(s, EBB_EV_CANCEL_REQUESTED, 1);
}
static void ack_twice(story *s) {
    insert_at(s, where(s, EBB_EV_CANCEL_ACKED, 0), *nth(s, EBB_EV_CANCEL_ACKED, 0));
}
static void request_twice(story *s) {
    insert_at(s, where(s, EBB_EV_CANCEL_REQUESTED, 0), *nth(s, EBB_EV_CANCEL_REQUESTED, 0));
}
static void finalized_from_cancelling(story *s) {
    drop(s, EBB_EV_CLEANUP_DONE, 0);
}
static void phase_goes_back(story *s) {
    nth(s, EBB_EV_TASK_POLLED, 10)->phase = EBB_TASK_RUNNING;
}
static void completed_from_cancelling(story *s) {
    *nth(s, EBB_EV_CLEANUP_DONE, 1) =
        (ebb_record){EBB_EV_COMPLETED, EBB_TASK_COMPLETED, .task = STRICT, .region = OUTER};
}
static void wake_after_the_end(story *s) {
    ebb_record r = *nth(s, EBB_EV_TASK_WOKEN, 1);
    insert_at(s, where(s, EBB_EV_FINALIZED, 0) + 1, r);
}
static void fault_is_hidden(story *s) {
    nth(s, EBB_EV_COMPLETED, 1)->value = STATUS(EBB_CANCELLED);
}
static void finalized_with_ok(story *s) {
    nth(s, EBB_EV_FINALIZED, 0)->value = STATUS(EBB_OK);
}
static void abandoned_unforced(story *s) {
    drop(s, EBB_EV_TASK_FORCED, 0);
}
static void forced_twice(story *s) {
    insert_at(s, where(s, EBB_EV_TASK_FORCED, 0), *nth(s, EBB_EV_TASK_FORCED, 0));
}
static void returned_unpolled(story *s) {
    drop(s, EBB_EV_TASK_POLLED, 13);
}
static void region_skips_closing(story *s) {
    drop(s, EBB_EV_REGION_CLOSING, 2);
}
static void region_skips_finalizing(story *s) {
    drop(s, EBB_EV_REGION_FINALIZING, 1);
}
static void cancelled_while_open(story *s) {
    drop(s, EBB_EV_REGION_CLOSING, 0);
}
static void closes_twice(story *s) {
    insert_at(s, where(s, EBB_EV_REGION_CLOSING, 1), *nth(s, EBB_EV_REGION_CLOSING, 1));
}
static void committed_twice(story *s) {
    insert_at(s, where(s, EBB_EV_OBLIGATION_COMMITTED, 0), *nth(s, EBB_EV_OBLIGATION_COMMITTED, 0));
}
static void committed_after_leak(story *s) {
    nth(s, EBB_EV_OBLIGATION_ABORTED, 1)->type = EBB_EV_OBLIGATION_COMMITTED;
}
static void joined_before_closed(story *s) {
    move(s, where(s, EBB_EV_REGION_JOINED, 0), where(s, EBB_EV_REGION_CLOSED, 0));
}

static void severity_weakens(story *s) {
    nth(s, EBB_EV_CANCEL_ACKED, 1)->epoch = CANCEL(2, 1);
}
static void strengthened_weaker(story *s) {
    ebb_record weak = *nth(s, EBB_EV_CANCEL_STRENGTHENED, 1);
    weak.kind = EBB_CANCEL_USER;
    weak.epoch = CANCEL(1, 2);
    insert_at(s, where(s, EBB_EV_CANCEL_STRENGTHENED, 1) + 1, weak);
}
static void epoch_starts_at_two(story *s) {
    nth(s, EBB_EV_CANCEL_REQUESTED, 0)->epoch = CANCEL(1, 2);
}
static void epoch_stays(story *s) {
    nth(s, EBB_EV_CANCEL_STRENGTHENED, 1)->epoch = CANCEL(3, 1);
}
static void epoch_rises_alone(story *s) {
    nth(s, EBB_EV_CANCEL_STRENGTHENED, 0)->epoch = CANCEL(1, 2);
}
static void user_is_forced(story *s) {
    nth(s, EBB_EV_CANCEL_REQUESTED, 1)->epoch = CANCEL(3, 1);
}
static void region_weakens(story *s) {
    nth(s, EBB_EV_REGION_CANCELLED, 0)->epoch = CANCEL(3, 1);
    nth(s, EBB_EV_REGION_CANCELLED, 0)->kind = EBB_CANCEL_SHUTDOWN;
    nth(s, EBB_EV_REGION_CANCELLED, 2)->epoch = CANCEL(1, 1);
}

static void deadline_later(story *s) {
    nth(s, EBB_EV_CANCEL_STRENGTHENED, 1)->other = 7001;
}
static void more_polls(story *s) {
    nth(s, EBB_EV_CANCEL_STRENGTHENED, 1)->value = 65;
}
static void ack_widens(story *s) {
    nth(s, EBB_EV_CANCEL_ACKED, 0)->other = 7001;
}
static void region_widens(story *s) {
    nth(s, EBB_EV_REGION_CANCELLED, 2)->other = 7001;
}
static void nine_more_polls(story *s) {
    nth(s, EBB_EV_TASK_FORCED, 0)->value = 9;
}

static void spawn_after_close(story *s) {
    insert_at(s, where(s, EBB_EV_REGION_CANCELLED, 0),
              (ebb_record){EBB_EV_TASK_SPAWNED, EBB_TASK_CREATED, .task = ID(9, 1), .region = OUTER});
}
static void reserve_after_close(story *s) {
    insert_at(s, where(s, EBB_EV_REGION_DRAINING, 0),
              (ebb_record){EBB_EV_OBLIGATION_RESERVED, .other = ID(9, 1), .region = OUTER, .value = 1});
}
static void open_after_close(story *s) {
    nth(s, EBB_EV_REGION_OPENED, 3)->value = 0;
}
static void early_closer(story *s) {
    move(s, where(s, EBB_EV_TASK_SPAWNED, 5), where(s, EBB_EV_REGION_FINALIZING, 2));
}

static void child_first(story *s) {
    move(s, where(s, EBB_EV_REGION_CANCELLED, 1), where(s, EBB_EV_REGION_CANCELLED, 0));
    move(s, where(s, EBB_EV_REGION_CLOSING, 1), where(s, EBB_EV_REGION_CANCELLED, 0));
}
static void child_stronger(story *s) {
    nth(s, EBB_EV_REGION_CANCELLED, 1)->epoch = CANCEL(2, 1);
}
static void task_before_region(story *s) {
    move(s, where(s, EBB_EV_CANCEL_REQUESTED, 3), where(s, EBB_EV_REGION_CANCELLED, 1));
}
static void ack_masked(story *s) {
    drop(s, EBB_EV_UNMASKED, 0);
}

static void finalizer_never_runs(story *s) {
    drop(s, EBB_EV_FINALIZER_DONE, 1);
}
static void finalizer_runs_twice(story *s) {
    insert_at(s, where(s, EBB_EV_FINALIZER_DONE, 0), *nth(s, EBB_EV_FINALIZER_DONE, 0));
}
static void finalizers_in_order(story *s) {
    nth(s, EBB_EV_FINALIZER_DONE, 0)->other = FIRST_DEFERRED;
    nth(s, EBB_EV_FINALIZER_DONE, 1)->other = SECOND_DEFERRED;
}
static void region_finalizer_lost(story *s) {
    drop(s, EBB_EV_FINALIZER_DONE, 2);
}
static void finalizer_added_twice(story *s) {
    insert_at(s, where(s, EBB_EV_FINALIZER_ADDED, 0), *nth(s, EBB_EV_FINALIZER_ADDED, 0));
}
static void finalizer_of_another(story *s) {
    nth(s, EBB_EV_FINALIZER_DONE, 0)->task = STRICT;
}

static void wake_is_lost(story *s) {
    drop(s, EBB_EV_TASK_POLLED, 4);
}
static void spawn_is_lost(story *s) {
    insert_at(s, where(s, EBB_EV_IDLE, 0),
              (ebb_record){EBB_EV_TASK_SPAWNED, EBB_TASK_CREATED, .task = ID(9, 1), .region = OUTER});
}
static void request_is_lost(story *s) {
    insert_at(s, where(s, EBB_EV_CANCEL_ACKED, 0), (ebb_record){.type = EBB_EV_IDLE});
}
static void unfair_ready(story *s) {
    nth(s, EBB_EV_TASK_POLLED, 0)->other = 10;
}
static void unfair_cancel(story *s) {
    nth(s, EBB_EV_TASK_POLLED, 5)->other = 3;
}
static void woken_in_the_wrong_lane(story *s) {
    nth(s, EBB_EV_TASK_WOKEN, 1)->value = EBB_LANE_READY;
}

static void ends_holding(story *s) {
    drop(s, EBB_EV_OBLIGATION_COMMITTED, 0);
}
static void leak_is_not_aborted(story *s) {
    drop(s, EBB_EV_OBLIGATION_ABORTED, 1);
}
static void region_holds(story *s) {
    insert_at(s, where(s, EBB_EV_IDLE, 0),
              (ebb_record){EBB_EV_OBLIGATION_RESERVED, .other = ID(9, 1), .region = INNER, .value = 1});
}
static void obligation_of_another(story *s) {
    nth(s, EBB_EV_OBLIGATION_COMMITTED, 0)->task = STRICT;
}

static void closes_with_a_task(story *s) {
    drop(s, EBB_EV_COMPLETED, 3);
}
static void finalizes_with_a_task(story *s) {
    drop(s, EBB_EV_COMPLETED, 0);
}
static void finalizes_with_a_child(story *s) {
    drop(s, EBB_EV_REGION_CLOSED, 1);
}
static void drains_nothing(story *s) {
    ebb_record r = {EBB_EV_REGION_DRAINING, EBB_REGION_DRAINING, .region = SCOPE};
    insert_at(s, where(s, EBB_EV_REGION_FINALIZING, 0), r);
}
static void loser_lives(story *s) {
    insert_at(s, where(s, EBB_EV_REGION_DRAINING, 0),
              (ebb_record){EBB_EV_REGION_JOINED, EBB_REGION_CLOSED, .region = OUTER});
}

static void ack_of_another_epoch(story *s) {
    nth(s, EBB_EV_CANCEL_ACKED, 0)->epoch = CANCEL(1, 2);
}
static void ack_of_another_kind(story *s) {
    nth(s, EBB_EV_CANCEL_ACKED, 0)->kind = EBB_CANCEL_DISCONNECT;
}
static void abandoned_twice(story *s) {
    insert_at(s, where(s, EBB_EV_ABANDONED, 0), *nth(s, EBB_EV_ABANDONED, 0));
}
static void unmask_skips(story *s) {
    ebb_record r = *nth(s, EBB_EV_MASKED, 0);
    r.value = 2;
    insert_at(s, where(s, EBB_EV_MASKED, 0) + 1, r);
}
static void completed_pending(story *s) {
    nth(s, EBB_EV_COMPLETED, 0)->value = STATUS(EBB_PENDING);
}
static void spawned_running(story *s) {
    nth(s, EBB_EV_TASK_SPAWNED, 0)->phase = EBB_TASK_RUNNING;
}
static void opened_closing(story *s) {
    nth(s, EBB_EV_REGION_OPENED, 1)->phase = EBB_REGION_CLOSING;
}
static void opened_by_an_ended_task(story *s) {
    insert_at(s, where(s, EBB_EV_FINALIZED, 0) + 1,
              (ebb_record){EBB_EV_REGION_OPENED, EBB_REGION_OPEN, .region = ID(9, 1), .other = ROOT,
                           .task = POLITE});
}
static void reserved_by_an_ended_task(story *s) {
    insert_at(s, where(s, EBB_EV_FINALIZED, 0) + 1,
              (ebb_record){EBB_EV_OBLIGATION_RESERVED, .region = ROOT, .other = ID(9, 1), .task = POLITE,
                           .value = 1});
}
static void closes_with_a_child(story *s) {
    insert_at(s, where(s, EBB_EV_REGION_CLOSED, 2),
              (ebb_record){EBB_EV_REGION_OPENED, EBB_REGION_OPEN, .region = ID(9, 1), .other = OUTER,
                           .value = CLEANUP});
}
static void region_joined_twice(story *s) {
    insert_at(s, where(s, EBB_EV_REGION_JOINED, 0), *nth(s, EBB_EV_REGION_JOINED, 0));
}
static void committed_in_another_region(story *s) {
    nth(s, EBB_EV_OBLIGATION_COMMITTED, 0)->region = INNER;
}
static void committed_as_another_kind(story *s) {
    nth(s, EBB_EV_OBLIGATION_COMMITTED, 0)->value = EBB_OBLIGATION_IO;
}
static void unknown_obligation(story *s) {
    nth(s, EBB_EV_OBLIGATION_COMMITTED, 0)->other = ID(99, 1);
}
static void finalizer_without_id(story *s) {
    nth(s, EBB_EV_FINALIZER_ADDED, 0)->other = 0;
}
static void turn_goes_back_to_none(story *s) {
    nth(s, EBB_EV_TURN, 1)->task = 0;
}
static void batch_goes_back_to_none(story *s) {
    nth(s, EBB_EV_TURN, 1)->region = 0;
}
static void closed_with_a_failure_of_nobody(story *s) {
    nth(s, EBB_EV_REGION_CLOSED, 1)->value = STATUS(EBB_FAILED);
}
static void closed_as_if_nothing_was_cancelled(story *s) {
    nth(s, EBB_EV_REGION_CLOSED, 1)->value = STATUS(EBB_OK);
}
static void closed_with_its_failure_hidden(story *s) {
    nth(s, EBB_EV_REGION_CLOSED, 0)->value = STATUS(EBB_CANCELLED);
    nth(s, EBB_EV_REGION_JOINED, 0)->value = STATUS(EBB_CANCELLED);
}
static void closed_with_another_failure(story *s) {
    nth(s, EBB_EV_REGION_CLOSED, 0)->value = STATUS(EBB_FAILED);
}
static void closed_with_the_failure_of_a_joined_child(story *s) {
    nth(s, EBB_EV_REGION_CLOSED, 2)->value = STATUS(EBB_FAULTED);
}
static void closed_by_a_refusal_that_is_not_told(story *s) {
    nth(s, EBB_EV_REGION_CLOSED, 1)->value = STATUS(EBB_ERR_LIMIT);
}
static void closed_by_the_refusal_of_another(story *s) {
    nth(s, EBB_EV_REGION_CLOSED, 1)->value = STATUS(EBB_ERR_LIMIT);
    insert_at(s, where(s, EBB_EV_REGION_CLOSED, 1),
              (ebb_record){EBB_EV_REFUSED, .region = INNER, .value = STATUS(EBB_ERR_NOMEM)});
}
static void a_leak_too_many(story *s) {
    nth(s, EBB_EV_REGION_CLOSED, 2)->other = 2;
}
static void a_leak_too_few(story *s) {
    nth(s, EBB_EV_REGION_CLOSED, 2)->other = 0;
}
static void an_abandoned_one_too_many(story *s) {
    nth(s, EBB_EV_REGION_CLOSED, 1)->other = ID(2, 0);
}
static void an_abandoned_one_too_few(story *s) {
    nth(s, EBB_EV_REGION_CLOSED, 1)->other = 0;
}
static void an_abandoned_finalizer_is_not_counted(story *s) {
    nth(s, EBB_EV_FINALIZER_DONE, 2)->type = EBB_EV_FINALIZER_ABANDONED;
}
static void region_joined_with_another_status(story *s) {
    nth(s, EBB_EV_REGION_JOINED, 0)->value = STATUS(EBB_OK);
}
static void task_joined_with_another_status(story *s) {
    nth(s, EBB_EV_TASK_JOINED, 0)->value = STATUS(EBB_OK);
}
static void finalizer_of_another_region(story *s) {
    nth(s, EBB_EV_FINALIZER_DONE, 0)->region = INNER;
}
static void finalizer_added_in_another_region(story *s) {
    nth(s, EBB_EV_FINALIZER_ADDED, 0)->region = INNER;
}

/* A timer for `armed_for` that fires for `fires_for`, as often as is said. */
static void add_timer(story *s, uint64_t armed_for, uint64_t fires_for, int times) {
    size_t at = where(s, EBB_EV_IDLE, 0);
    for (int i = 0; i < times; i++) {
        insert_at(s, at, (ebb_record){EBB_EV_TIMER_FIRED, .task = fires_for, .other = ID(1, 1)});
    }
    if (armed_for == 0) return;
    insert_at(s, at,
              (ebb_record){EBB_EV_TIMER_ARMED, EBB_TASK_RUNNING, .task = armed_for, .region = OUTER,
                           .other = ID(1, 1)});
}
static void timer_never_armed(story *s) {
    add_timer(s, 0, POLITE, 1);
}
static void timer_fires_twice(story *s) {
    add_timer(s, POLITE, POLITE, 2);
}
static void timer_fires_for_another(story *s) {
    add_timer(s, POLITE, STRICT, 1);
}
static void timer_fires_for_the_dead(story *s) {
    add_timer(s, POLITE, POLITE, 1);
    move(s, where(s, EBB_EV_TIMER_FIRED, 0), where(s, EBB_EV_FINALIZED, 0) + 1);
}
static void timer_armed_for_nobody(story *s) {
    add_timer(s, ID(99, 1), ID(99, 1), 1);
}
static void timer_of_an_old_generation(story *s) {
    add_timer(s, POLITE, POLITE, 1);
    ebb_record again = *nth(s, EBB_EV_TIMER_ARMED, 0);
    insert_at(s, where(s, EBB_EV_TIMER_FIRED, 0) + 1, again);
}
static void timer_armed_in_a_slot_in_use(story *s) {
    add_timer(s, POLITE, POLITE, 1);
    ebb_record again = *nth(s, EBB_EV_TIMER_ARMED, 0);
    again.other = ID(1, 2);
    insert_at(s, where(s, EBB_EV_TIMER_FIRED, 0), again);
}
static void timer_fires_when_disarmed(story *s) {
    add_timer(s, POLITE, POLITE, 1);
    insert_at(s, where(s, EBB_EV_TIMER_FIRED, 0), (ebb_record){EBB_EV_TIMER_DISARMED, .other = ID(1, 1)});
}
static void lane_of_four(story *s) {
    nth(s, EBB_EV_TASK_POLLED, 0)->value = 4;
}

/* A new task that is polled and discarded, before the first idle. */
enum { EVICTED_SLOT = 40 };
#define EVICTED ID(EVICTED_SLOT, 1)
static void add_discard(story *s) {
    size_t at = where(s, EBB_EV_IDLE, 0);
    insert_at(
        s, at++,
        (ebb_record){EBB_EV_TASK_SPAWNED, EBB_TASK_CREATED, .task = EVICTED, .region = OUTER, .value = 1});
    insert_at(s, at++,
              (ebb_record){EBB_EV_TASK_POLLED, EBB_TASK_RUNNING, .task = EVICTED, .region = OUTER,
                           .value = EBB_LANE_READY});
    insert_at(s, at++,
              (ebb_record){EBB_EV_DISCARDED, EBB_TASK_COMPLETED, .task = EVICTED, .region = OUTER,
                           .value = STATUS(EBB_DISCARDED)});
    insert_at(s, at,
              (ebb_record){EBB_EV_TASK_JOINED, EBB_TASK_COMPLETED, .task = EVICTED, .region = OUTER,
                           .value = STATUS(EBB_DISCARDED)});
}
static void before_the_discard(story *s, ebb_record r) {
    add_discard(s);
    insert_at(s, where(s, EBB_EV_DISCARDED, 0), r);
}
static void discarded_as_ok(story *s) {
    add_discard(s);
    nth(s, EBB_EV_DISCARDED, 0)->value = STATUS(EBB_OK);
}
static void discarded_twice(story *s) {
    add_discard(s);
    insert_at(s, where(s, EBB_EV_DISCARDED, 0), *nth(s, EBB_EV_DISCARDED, 0));
}
static void discarded_masked(story *s) {
    before_the_discard(
        s, (ebb_record){EBB_EV_MASKED, EBB_TASK_RUNNING, .task = EVICTED, .region = OUTER, .value = 1});
}
static void discarded_holding(story *s) {
    before_the_discard(s, (ebb_record){EBB_EV_OBLIGATION_RESERVED, .task = EVICTED, .region = OUTER,
                                       .other = ID(EVICTED_SLOT, 1), .value = 1});
}
static void discarded_with_a_finalizer(story *s) {
    before_the_discard(s, (ebb_record){EBB_EV_FINALIZER_ADDED, .task = EVICTED, .region = OUTER,
                                       .other = ID(EVICTED_SLOT, 1)});
}
static void discarded_under_a_request(story *s) {
    before_the_discard(s, (ebb_record){EBB_EV_CANCEL_REQUESTED, EBB_TASK_CANCEL_REQUESTED, EBB_CANCEL_USER,
                                       CANCEL(1, 1), 8, EVICTED, OUTER, 9000});
}
static void discarded_after_a_fault(story *s) {
    before_the_discard(s, (ebb_record){EBB_EV_FAULTED, EBB_TASK_RUNNING, .task = EVICTED, .region = OUTER});
}
static void discarded_and_polled(story *s) {
    add_discard(s);
    insert_at(s, where(s, EBB_EV_DISCARDED, 0) + 1, *nth(s, EBB_EV_TASK_POLLED, 0));
    nth(s, EBB_EV_DISCARDED, 0)[1].task = EVICTED;
}
static void discarded_and_joined_as_cancelled(story *s) {
    add_discard(s);
    nth(s, EBB_EV_DISCARDED, 0)[1].value = STATUS(EBB_CANCELLED);
}
static void a_closer_is_discarded(story *s) {
    size_t at = where(s, EBB_EV_COMPLETED, 3);
    while (s->r[at].task != CLOSES) at++;
    s->r[at].type = EBB_EV_DISCARDED;
    s->r[at].value = STATUS(EBB_DISCARDED);
}

static const doctored cases[] = {
    {"discarded_as_ok", discarded_as_ok, EBB_ORACLE_PHASE, "expected EBB_DISCARDED, found EBB_OK"},
    {"discarded_twice", discarded_twice, EBB_ORACLE_PHASE,
     "discarded needs phase Created or Running, found Completed"},
    {"discarded_masked", discarded_masked, EBB_ORACLE_PHASE,
     "mask depth when it was discarded: expected 0, found 1"},
    {"discarded_holding", discarded_holding, EBB_ORACLE_OBLIGATION_LEAK, "still holds obligation 0.40.1"},
    {"discarded_with_a_finalizer", discarded_with_a_finalizer, EBB_ORACLE_FINALIZERS_ONCE,
     "ended without running finalizer 0.40.1"},
    {"discarded_under_a_request", discarded_under_a_request, EBB_ORACLE_PHASE,
     "discarded needs phase Created or Running, found CancelRequested"},
    {"discarded_after_a_fault", discarded_after_a_fault, EBB_ORACLE_PHASE, "discarded after a fault"},
    {"discarded_and_polled", discarded_and_polled, EBB_ORACLE_PHASE, "task_polled needs phase"},
    {"discarded_and_joined_as_cancelled", discarded_and_joined_as_cancelled, EBB_ORACLE_FORMAT,
     "status at its join: expected EBB_DISCARDED, found EBB_CANCELLED"},
    {"a_closer_is_discarded", a_closer_is_discarded, EBB_ORACLE_PHASE, "runs its region's finalizers"},
    {"turn_goes_back_to_none", turn_goes_back_to_none, EBB_ORACLE_FORMAT, "host_turn_id, never back"},
    {"batch_goes_back_to_none", batch_goes_back_to_none, EBB_ORACLE_FORMAT, "microtask_batch_id, never back"},
    {"closed_with_a_failure_of_nobody", closed_with_a_failure_of_nobody, EBB_ORACLE_FORMAT,
     "region 0.3.1: status of what was in it: expected EBB_CANCELLED, found EBB_FAILED"},
    {"closed_as_if_nothing_was_cancelled", closed_as_if_nothing_was_cancelled, EBB_ORACLE_FORMAT,
     "expected EBB_CANCELLED, found EBB_OK"},
    {"closed_with_its_failure_hidden", closed_with_its_failure_hidden, EBB_ORACLE_FORMAT,
     "region 0.4.1: status of what was in it: expected EBB_FAULTED, found EBB_CANCELLED"},
    {"closed_with_another_failure", closed_with_another_failure, EBB_ORACLE_FORMAT,
     "expected EBB_FAULTED, found EBB_FAILED"},
    {"closed_with_the_failure_of_a_joined_child", closed_with_the_failure_of_a_joined_child,
     EBB_ORACLE_FORMAT, "region 0.2.1: status of what was in it: expected EBB_CANCELLED, found EBB_FAULTED"},
    {"closed_by_a_refusal_that_is_not_told", closed_by_a_refusal_that_is_not_told, EBB_ORACLE_FORMAT,
     "region 0.3.1: closed as if something was refused"},
    {"closed_by_the_refusal_of_another", closed_by_the_refusal_of_another, EBB_ORACLE_FORMAT,
     "region 0.3.1: closed as if something was refused"},
    {"a_leak_too_many", a_leak_too_many, EBB_ORACLE_FORMAT,
     "leaked obligations in its report: expected 1, found 2"},
    {"a_leak_too_few", a_leak_too_few, EBB_ORACLE_FORMAT,
     "leaked obligations in its report: expected 1, found 0"},
    {"an_abandoned_one_too_many", an_abandoned_one_too_many, EBB_ORACLE_FORMAT,
     "abandoned ones in its report: expected 1, found 2"},
    {"an_abandoned_one_too_few", an_abandoned_one_too_few, EBB_ORACLE_FORMAT,
     "abandoned ones in its report: expected 1, found 0"},
    {"an_abandoned_finalizer_is_not_counted", an_abandoned_finalizer_is_not_counted, EBB_ORACLE_FORMAT,
     "region 0.2.1: abandoned ones in its report: expected 1, found 0"},
    {"region_joined_with_another_status", region_joined_with_another_status, EBB_ORACLE_FORMAT,
     "region 0.4.1: status at its join: expected EBB_FAULTED, found EBB_OK"},
    {"task_joined_with_another_status", task_joined_with_another_status, EBB_ORACLE_FORMAT,
     "task 0.1.1: status at its join: expected EBB_CANCELLED, found EBB_OK"},
    {"finalizer_of_another_region", finalizer_of_another_region, EBB_ORACLE_FINALIZERS_ONCE,
     "has another owner"},
    {"finalizer_added_in_another_region", finalizer_added_in_another_region, EBB_ORACLE_FORMAT,
     "task 0.1.1: is not in the region named, but in 0.2.1"},
    {"timer_never_armed", timer_never_armed, EBB_ORACLE_FORMAT, "timer 0.1.1: was never created"},
    {"timer_fires_twice", timer_fires_twice, EBB_ORACLE_FORMAT,
     "timer 0.1.1: has fired or was disarmed before"},
    {"timer_armed_in_a_slot_in_use", timer_armed_in_a_slot_in_use, EBB_ORACLE_FORMAT,
     "slot that still has 0.1.1"},
    {"timer_fires_when_disarmed", timer_fires_when_disarmed, EBB_ORACLE_FORMAT,
     "timer 0.1.1: has fired or was disarmed before"},
    {"timer_fires_for_another", timer_fires_for_another, EBB_ORACLE_FORMAT, "armed for, 0.1.1"},
    {"timer_fires_for_the_dead", timer_fires_for_the_dead, EBB_ORACLE_FORMAT, "has ended, 0.1.1"},
    {"timer_armed_for_nobody", timer_armed_for_nobody, EBB_ORACLE_FORMAT, "task 0.99.1: was never created"},
    {"timer_of_an_old_generation", timer_of_an_old_generation, EBB_ORACLE_FORMAT,
     "its generation is not above 0.1.1"},
    {"ack_of_another_epoch", ack_of_another_epoch, EBB_ORACLE_SEVERITY,
     "epoch as requested: expected 1, found 2"},
    {"ack_of_another_kind", ack_of_another_kind, EBB_ORACLE_FORMAT, "expected USER, found DISCONNECT"},
    {"abandoned_twice", abandoned_twice, EBB_ORACLE_PHASE, "abandoned twice"},
    {"unmask_skips", unmask_skips, EBB_ORACLE_FORMAT, "mask depth: expected 1, found 0"},
    {"completed_pending", completed_pending, EBB_ORACLE_FORMAT, "EBB_PENDING"},
    {"spawned_running", spawned_running, EBB_ORACLE_PHASE,
     "phase of a new task: expected Created, found Running"},
    {"opened_closing", opened_closing, EBB_ORACLE_PHASE,
     "state of a new region: expected Open, found Closing"},
    {"opened_by_an_ended_task", opened_by_an_ended_task, EBB_ORACLE_FORMAT, "has ended and opens a region"},
    {"reserved_by_an_ended_task", reserved_by_an_ended_task, EBB_ORACLE_FORMAT,
     "has ended and reserves obligation 0.9.1"},
    {"closes_with_a_child", closes_with_a_child, EBB_ORACLE_QUIESCENCE,
     "children when it closed: expected 0, found 1"},
    {"region_joined_twice", region_joined_twice, EBB_ORACLE_FORMAT, "region 0.4.1: was joined twice"},
    {"committed_in_another_region", committed_in_another_region, EBB_ORACLE_FORMAT, "but in 0.2.1"},
    {"committed_as_another_kind", committed_as_another_kind, EBB_ORACLE_FORMAT, "expected ack, found io"},
    {"unknown_obligation", unknown_obligation, EBB_ORACLE_FORMAT, "obligation 0.99.1: was never created"},
    {"finalizer_without_id", finalizer_without_id, EBB_ORACLE_FORMAT, "is not an id"},
    {"lane_of_four", lane_of_four, EBB_ORACLE_FORMAT, "found 4"},
    {"no_turn", no_turn, EBB_ORACLE_FORMAT, "starts with its turn"},
    {"turn_of_zero", turn_of_zero, EBB_ORACLE_FIELDS, "cancel_requested lacks host_turn_id"},
    {"batch_of_zero", batch_of_zero, EBB_ORACLE_FIELDS, "lacks microtask_batch_id"},
    {"no_task", no_task, EBB_ORACLE_FIELDS, "cancel_acked lacks task_id"},
    {"no_region", no_region, EBB_ORACLE_FIELDS, "lacks region_id"},
    {"no_epoch", no_epoch, EBB_ORACLE_FIELDS, "lacks cancel_epoch"},
    {"no_kind", no_kind, EBB_ORACLE_FIELDS, "lacks cancel_kind"},
    {"kind_of_eleven", kind_of_eleven, EBB_ORACLE_FIELDS, "lacks cancel_kind"},
    {"no_phase", no_phase, EBB_ORACLE_FIELDS, "finalized lacks cancel_phase"},
    {"no_severity", no_severity, EBB_ORACLE_FIELDS, "lacks severity"},
    {"unknown_event", unknown_event, EBB_ORACLE_FORMAT, "event type"},
    {"time_goes_back", time_goes_back, EBB_ORACLE_FORMAT, "expected at least 1000, found 999"},
    {"a_gap", a_gap, EBB_ORACLE_FORMAT, "gap of 12 events"},
    {"text_of_25", text_of_25, EBB_ORACLE_FORMAT, "found 25"},
    {"unknown_task", unknown_task, EBB_ORACLE_FORMAT, "task 0.99.1: was never created"},
    {"unknown_region", unknown_region, EBB_ORACLE_FORMAT, "region 0.99.1: was never created"},
    {"task_in_another_region", task_in_another_region, EBB_ORACLE_FORMAT, "but in 0.2.1"},
    {"id_used_twice", id_used_twice, EBB_ORACLE_FORMAT, "still has 0.1.1"},
    {"slot_used_twice", slot_used_twice, EBB_ORACLE_FORMAT,
     "task 0.1.2: is new in a slot that still has 0.1.1"},
    {"old_generation", old_generation, EBB_ORACLE_FORMAT, "not above 0.4.1"},
    {"error_id", error_id, EBB_ORACLE_FORMAT, "generation is 0"},
    {"second_root", second_root, EBB_ORACLE_FORMAT, "the root is 0.1.1"},
    {"joined_unkept", joined_unkept, EBB_ORACLE_FORMAT, "not kept"},
    {"joined_twice", joined_twice, EBB_ORACLE_FORMAT, "joined twice"},
    {"mask_skips", mask_skips, EBB_ORACLE_FORMAT, "expected 1, found 2"},
    {"unmask_twice", unmask_twice, EBB_ORACLE_FORMAT, "without a mask"},
    {"mask_33", mask_33, EBB_ORACLE_FORMAT, "found 33"},
    {"ack_without_request", ack_without_request, EBB_ORACLE_PHASE,
     "phase after the event: expected Running, found CancelRequested"},
    {"ack_twice", ack_twice, EBB_ORACLE_PHASE, "cancel_acked needs phase CancelRequested, found Cancelling"},
    {"request_twice", request_twice, EBB_ORACLE_PHASE,
     "needs phase Created or Running, found CancelRequested"},
    {"finalized_from_cancelling", finalized_from_cancelling, EBB_ORACLE_PHASE,
     "finalized needs phase Finalizing"},
    {"phase_goes_back", phase_goes_back, EBB_ORACLE_PHASE, "found Running"},
    {"completed_from_cancelling", completed_from_cancelling, EBB_ORACLE_PHASE,
     "task 0.2.1: completed needs phase"},
    {"wake_after_the_end", wake_after_the_end, EBB_ORACLE_PHASE, "task_woken needs phase"},
    {"fault_is_hidden", fault_is_hidden, EBB_ORACLE_PHASE, "expected EBB_FAULTED, found EBB_CANCELLED"},
    {"finalized_with_ok", finalized_with_ok, EBB_ORACLE_PHASE, "expected EBB_CANCELLED, found EBB_OK"},
    {"abandoned_unforced", abandoned_unforced, EBB_ORACLE_PHASE, "never forced"},
    {"forced_twice", forced_twice, EBB_ORACLE_PHASE, "forced twice"},
    {"returned_unpolled", returned_unpolled, EBB_ORACLE_PHASE, "outcome of a task that never ran"},
    {"region_skips_closing", region_skips_closing, EBB_ORACLE_PHASE,
     "needs phase Closing or Draining, found Open"},
    {"region_skips_finalizing", region_skips_finalizing, EBB_ORACLE_PHASE,
     "region_closed needs phase Finalizing"},
    {"cancelled_while_open", cancelled_while_open, EBB_ORACLE_PHASE, "region_cancelled needs phase"},
    {"closes_twice", closes_twice, EBB_ORACLE_PHASE, "region_closing needs phase Open"},
    {"committed_twice", committed_twice, EBB_ORACLE_PHASE, "expected reserved, found committed"},
    {"committed_after_leak", committed_after_leak, EBB_ORACLE_PHASE, "expected reserved, found leaked"},
    {"joined_before_closed", joined_before_closed, EBB_ORACLE_PHASE, "region_joined needs phase Closed"},
    {"severity_weakens", severity_weakens, EBB_ORACLE_SEVERITY, "expected polite, found urgent"},
    {"strengthened_weaker", strengthened_weaker, EBB_ORACLE_SEVERITY, "expected forced, found polite"},
    {"epoch_starts_at_two", epoch_starts_at_two, EBB_ORACLE_SEVERITY, "expected 1, found 2"},
    {"epoch_stays", epoch_stays, EBB_ORACLE_SEVERITY, "expected 2, found 1"},
    {"epoch_rises_alone", epoch_rises_alone, EBB_ORACLE_SEVERITY, "expected 1, found 2"},
    {"user_is_forced", user_is_forced, EBB_ORACLE_SEVERITY,
     "severity of the kind: expected polite, found forced"},
    {"region_weakens", region_weakens, EBB_ORACLE_SEVERITY, "region 0.2.1: severity, never weaker"},
    {"deadline_later", deadline_later, EBB_ORACLE_BUDGET, "deadline: expected at most 7000, found 7001"},
    {"more_polls", more_polls, EBB_ORACLE_BUDGET, "polls: expected at most 64, found 65"},
    {"ack_widens", ack_widens, EBB_ORACLE_BUDGET, "found 7001"},
    {"region_widens", region_widens, EBB_ORACLE_BUDGET, "region 0.2.1: cleanup deadline"},
    {"nine_more_polls", nine_more_polls, EBB_ORACLE_BUDGET, "expected 8, found 9"},
    {"spawn_after_close", spawn_after_close, EBB_ORACLE_NO_NEW_WORK,
     "state at a spawn: expected Open, found Closing"},
    {"reserve_after_close", reserve_after_close, EBB_ORACLE_NO_NEW_WORK, "found Closing"},
    {"open_after_close", open_after_close, EBB_ORACLE_NO_NEW_WORK, "found Draining"},
    {"early_closer", early_closer, EBB_ORACLE_NO_NEW_WORK, "closer is spawned: expected Finalizing"},
    {"child_first", child_first, EBB_ORACLE_PARENT_FIRST,
     "region 0.3.1: severity requested of its parent before: expected polite, found none"},
    {"child_stronger", child_stronger, EBB_ORACLE_PARENT_FIRST, "expected urgent, found polite"},
    {"task_before_region", task_before_region, EBB_ORACLE_PARENT_FIRST, "task 0.3.1"},
    {"ack_masked", ack_masked, EBB_ORACLE_ACK_UNMASKED, "expected 0, found 1"},
    {"finalizer_never_runs", finalizer_never_runs, EBB_ORACLE_FINALIZERS_ONCE,
     "without running finalizer 0.1.1"},
    {"finalizer_runs_twice", finalizer_runs_twice, EBB_ORACLE_FINALIZERS_ONCE, "has already run"},
    {"finalizers_in_order", finalizers_in_order, EBB_ORACLE_FINALIZERS_ONCE, "last added is 0.2.1"},
    {"region_finalizer_lost", region_finalizer_lost, EBB_ORACLE_FINALIZERS_ONCE,
     "region 0.2.1: closed without"},
    {"finalizer_added_twice", finalizer_added_twice, EBB_ORACLE_FINALIZERS_ONCE, "added twice"},
    {"finalizer_of_another", finalizer_of_another, EBB_ORACLE_FINALIZERS_ONCE, "has another owner"},
    {"wake_is_lost", wake_is_lost, EBB_ORACLE_LOST_WAKE, "task 0.1.1"},
    {"spawn_is_lost", spawn_is_lost, EBB_ORACLE_LOST_WAKE, "task 0.9.1"},
    {"request_is_lost", request_is_lost, EBB_ORACLE_LOST_WAKE, "not polled before the runtime went idle"},
    {"unfair_ready", unfair_ready, EBB_ORACLE_FAIRNESS, "at most 9, found 10"},
    {"unfair_cancel", unfair_cancel, EBB_ORACLE_FAIRNESS, "at most 2, found 3"},
    {"woken_in_the_wrong_lane", woken_in_the_wrong_lane, EBB_ORACLE_FAIRNESS, "expected cancel, found ready"},
    {"ends_holding", ends_holding, EBB_ORACLE_OBLIGATION_LEAK,
     "task 0.1.1: ended and still holds obligation 0.4.1"},
    {"leak_is_not_aborted", leak_is_not_aborted, EBB_ORACLE_OBLIGATION_LEAK,
     "region 0.2.1: closed with the unresolved obligation 0.5.1"},
    {"region_holds", region_holds, EBB_ORACLE_OBLIGATION_LEAK,
     "region 0.3.1: closed with the unresolved obligation 0.9.1"},
    {"obligation_of_another", obligation_of_another, EBB_ORACLE_FORMAT, "but by 0.1.1"},
    {"closes_with_a_task", closes_with_a_task, EBB_ORACLE_QUIESCENCE,
     "live tasks when it closed: expected 0, found 1"},
    {"finalizes_with_a_task", finalizes_with_a_task, EBB_ORACLE_QUIESCENCE, "live tasks when it finalizes"},
    {"finalizes_with_a_child", finalizes_with_a_child, EBB_ORACLE_QUIESCENCE, "children when it finalizes"},
    {"drains_nothing", drains_nothing, EBB_ORACLE_QUIESCENCE, "neither a task nor a child"},
    {"loser_lives", loser_lives, EBB_ORACLE_LOSERS_DRAINED, "loser ended: task 0.6.1"},
};

static void each_doctored_trace_breaks_its_rule(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        story *s = good_story();
        cases[i].doctor(s);
        verdict v = judge(s, true);
        if (v.status != EBB_ERR_ORACLE || v.violation.oracle != cases[i].oracle ||
            strstr(v.violation.text, cases[i].text) == NULL) {
            wrong++;
            print_error("%s: expected %s with \"%s\", found %d %s: %s (event %llu)\n", cases[i].name,
                        ebb_oracle_name(cases[i].oracle), cases[i].text, (int)v.status,
                        ebb_oracle_name(v.violation.oracle), v.violation.text,
                        (unsigned long long)v.violation.event.decision_seq);
        }
        assert_true(v.violation.event.decision_seq == v.events);
        free(s);
    }
    assert_int_equal(wrong, 0);
}

static void every_oracle_has_a_doctored_trace(void **state) {
    (void)state;
    for (int o = 0; o < EBB_ORACLES; o++) {
        /* These two are decided when the trace is over; they have tests of their own. */
        bool found = o == EBB_ORACLE_TASK_LEAK || o == EBB_ORACLE_REGION_LEAK;
        found |= o >= EBB_ORACLE_MAILBOX_FIFO; /* tests/trace/machines.c has those of machines */
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) found |= (int)cases[i].oracle == o;
        if (!found) fail_msg("no doctored trace for %s", ebb_oracle_name((ebb_oracle)o));
    }
}

static void a_run_that_keeps_every_rule_passes(void **state) {
    (void)state;
    story *s = good_story();
    verdict v = judge(s, true);
    assert_string_equal(v.violation.text, "");
    assert_int_equal(v.status, EBB_OK);
    assert_int_equal(v.events, s->n);
    free(s);
}

static void every_prefix_of_a_good_run_passes_unless_it_must_be_over(void **state) {
    (void)state;
    story *s = good_story();
    for (size_t n = s->n; n > 0; n--) {
        s->n = n;
        assert_int_equal(judge(s, false).status, EBB_OK);
    }
    free(s);
}

static void a_task_that_lives_at_the_end_is_a_leak(void **state) {
    (void)state;
    story s;
    begin_story(&s);
    spawn(&s, POLITE, OUTER, 0);
    verdict v = judge(&s, true);
    assert_int_equal(v.violation.oracle, EBB_ORACLE_TASK_LEAK);
    assert_int_equal(v.violation.event.type, 0);
    assert_string_equal(v.violation.text, "task 0.1.1: phase at the end: expected Completed, found Created");
}

static void a_region_that_is_open_at_the_end_is_a_leak_unless_it_is_the_root(void **state) {
    (void)state;
    story s;
    begin_story(&s);
    verdict v = judge(&s, true);
    assert_int_equal(v.violation.oracle, EBB_ORACLE_REGION_LEAK);
    assert_string_equal(v.violation.text, "region 0.2.1: state at the end: expected Closed, found Open");
    s.n--;
    assert_int_equal(judge(&s, true).status, EBB_OK);
}

static void a_forced_task_may_acknowledge_while_masked(void **state) {
    (void)state;
    story *s = good_story();
    ebb_record force = *nth(s, EBB_EV_CANCEL_ACKED, 1);
    force.type = EBB_EV_TASK_FORCED;
    force.phase = EBB_TASK_CANCEL_REQUESTED;
    force.value = 8;
    insert_at(s, where(s, EBB_EV_TASK_POLLED, 6), force);
    drop(s, EBB_EV_UNMASKED, 0);
    verdict v = judge(s, true);
    assert_string_equal(v.violation.text, "");
    free(s);
}

static void a_slot_may_be_used_again_after_its_task_has_ended(void **state) {
    (void)state;
    story *s = good_story();
    nth(s, EBB_EV_TASK_SPAWNED, 5)->task = ID(4, 2);
    nth(s, EBB_EV_TASK_POLLED, 13)->task = ID(4, 2);
    nth(s, EBB_EV_COMPLETED, 3)->task = ID(4, 2);
    assert_string_equal(judge(s, true).violation.text, "");
    nth(s, EBB_EV_TASK_POLLED, 13)->task = HOLDER;
    assert_string_equal(judge(s, true).violation.text,
                        "task 0.4.1: has ended long ago, its slot belongs to 0.4.2");
    free(s);
}

static void a_discarded_task_ends_and_changes_no_status_of_its_region(void **state) {
    (void)state;
    story *s = good_story();
    add_discard(s);
    assert_string_equal(judge(s, true).violation.text, "");
    drop_at(s, where(s, EBB_EV_DISCARDED, 0) - 1); /* nor need it ever have run */
    assert_string_equal(judge(s, true).violation.text, "");
    free(s);
}

static void a_region_may_close_with_what_it_was_refused(void **state) {
    (void)state;
    story *s = good_story();
    nth(s, EBB_EV_REGION_CLOSED, 1)->value = STATUS(EBB_ERR_LIMIT);
    ebb_record refused = {EBB_EV_REFUSED, .region = INNER, .value = STATUS(EBB_ERR_LIMIT)};
    insert_at(s, where(s, EBB_EV_REGION_CLOSED, 1) + 1, refused); /* as the kernel does if that closes it */
    assert_string_equal(judge(s, true).violation.text, "");
    move(s, where(s, EBB_EV_REFUSED, 0), where(s, EBB_EV_REGION_CLOSED, 1));
    assert_string_equal(judge(s, true).violation.text, "");
    free(s);
}

static void a_region_may_close_with_the_failure_of_a_child_that_nobody_joined(void **state) {
    (void)state;
    story *s = good_story();
    nth(s, EBB_EV_REGION_CLOSED, 2)->value = STATUS(EBB_FAULTED);
    nth(s, EBB_EV_REGION_JOINED, 1)->value = STATUS(EBB_FAULTED);
    drop(s, EBB_EV_REGION_JOINED, 0);
    assert_string_equal(judge(s, true).violation.text, "");
    free(s);
}

static void a_timer_fires_for_nobody_once_its_task_has_ended(void **state) {
    (void)state;
    story *s = good_story();
    add_timer(s, POLITE, POLITE, 1);
    assert_string_equal(judge(s, true).violation.text, "");
    move(s, where(s, EBB_EV_TIMER_FIRED, 0), where(s, EBB_EV_FINALIZED, 0) + 1);
    nth(s, EBB_EV_TIMER_FIRED, 0)->task = 0;
    assert_string_equal(judge(s, true).violation.text, "");
    free(s);
}

/* What layers record, at a place where nothing else happens. `text` NULL: all rules hold. */
#define FUTURE(t, ...)                                                                                       \
    { EBB_EV_FUTURE_##t, .other = 1025, __VA_ARGS__ }
#define OPERATION(t)                                                                                         \
    { EBB_EV_OPERATION_##t, .other = 1025 }
#define CONNECTION(t, n)                                                                                     \
    { EBB_EV_CONNECTION_##t, .other = (n) }
#define EXCHANGE(t, n)                                                                                       \
    { EBB_EV_EXCHANGE_##t, .other = (uint64_t)(n) << 32 | 1 }
#define PROCESS(t)                                                                                           \
    { EBB_EV_PROCESS_##t, .other = ID(1, 1) }
static const struct {
    ebb_record r[6];
    ebb_oracle oracle;
    const char *text;
} of_layers[] = {
    {{FUTURE(MADE), FUTURE(AWAITED, .task = POLITE), FUTURE(SETTLED), FUTURE(MADE), FUTURE(DROPPED)},
     0,
     NULL},
    {{FUTURE(SETTLED)}, EBB_ORACLE_FORMAT, "was never made"},
    {{FUTURE(MADE), FUTURE(SETTLED), FUTURE(SETTLED)}, EBB_ORACLE_PHASE, "ends twice"},
    {{FUTURE(MADE), FUTURE(CANCELLED), FUTURE(SETTLED)}, EBB_ORACLE_PHASE, "ends twice"},
    {{FUTURE(MADE), FUTURE(SETTLED), FUTURE(DROPPED)}, EBB_ORACLE_PHASE, "ends twice"},
    {{FUTURE(MADE), FUTURE(MADE)}, EBB_ORACLE_PHASE, "made where one is pending"},
    {{FUTURE(MADE), FUTURE(AWAITED, .task = ID(99, 1))}, EBB_ORACLE_FORMAT, "task 0.99.1: was never created"},
    {{{.type = EBB_EV_FUTURE_MADE}}, EBB_ORACLE_FORMAT, "has no number"},
    {{FUTURE(MADE), {EBB_EV_RACE_WON, .other = 1025}, FUTURE(SETTLED)}, 0, NULL},
    {{FUTURE(MADE), FUTURE(SETTLED), {EBB_EV_RACE_WON, .other = 1025}}, EBB_ORACLE_PHASE, "but has ended"},
    {{FUTURE(MADE), OPERATION(BEGUN), FUTURE(CANCELLED), OPERATION(ENDED)}, 0, NULL},
    {{FUTURE(MADE), OPERATION(ENDED)}, EBB_ORACLE_PHASE, "never began"},
    {{FUTURE(MADE), OPERATION(BEGUN), OPERATION(BEGUN)}, EBB_ORACLE_PHASE, "begins twice"},
    {{FUTURE(MADE), OPERATION(BEGUN), OPERATION(ENDED), OPERATION(ENDED)}, EBB_ORACLE_PHASE, "ends twice"},
    {{FUTURE(MADE), OPERATION(BEGUN), FUTURE(CANCELLED)}, EBB_ORACLE_QUIESCENCE, "neither ended nor was it"},
    {{FUTURE(MADE), OPERATION(BEGUN), FUTURE(CANCELLED), FUTURE(MADE)}, EBB_ORACLE_PHASE, "has not ended"},
    {{CONNECTION(OPENED, 1), EXCHANGE(BEGUN, 2), EXCHANGE(ENDED, 2), CONNECTION(CLOSED, 1)}, 0, NULL},
    {{EXCHANGE(BEGUN, 2)}, EBB_ORACLE_PHASE, "outside of an open connection"},
    {{CONNECTION(OPENED, 1), EXCHANGE(BEGUN, 2), CONNECTION(CLOSED, 1)},
     EBB_ORACLE_PHASE,
     "before what is inside"},
    {{CONNECTION(OPENED, 1), CONNECTION(CLOSED, 1), EXCHANGE(BEGUN, 2)}, EBB_ORACLE_PHASE, "outside of"},
    {{CONNECTION(OPENED, 1), CONNECTION(OPENED, 1)}, EBB_ORACLE_PHASE, "begins twice"},
    {{CONNECTION(OPENED, 1)}, EBB_ORACLE_QUIESCENCE, "is open at the end"},
    {{CONNECTION(OPENED, 1), EXCHANGE(BEGUN, 2), EXCHANGE(ENDED, 2), EXCHANGE(ENDED, 2)},
     EBB_ORACLE_PHASE,
     "is not open"},
    {{PROCESS(STARTED), PROCESS(EXITED)}, 0, NULL},
    {{PROCESS(EXITED)}, EBB_ORACLE_PHASE, "is not open"},
    {{PROCESS(STARTED)}, EBB_ORACLE_QUIESCENCE, "is open at the end"},
    {{{EBB_EV_STRING, .value = 1}, {EBB_EV_NAMED, .task = POLITE, .value = 1u << 22}}, 0, NULL},
    {{{EBB_EV_NAMED, .task = POLITE, .value = 1u << 22}}, EBB_ORACLE_FORMAT, "number of a string"},
    {{{EBB_EV_STRING, .value = 2}}, EBB_ORACLE_FORMAT, "number of a new string"},
    {{{EBB_EV_NAMED, .task = ID(99, 1)}}, EBB_ORACLE_FORMAT, "task 0.99.1: was never created"},
    {{{EBB_EV_POLL_ENDED, .task = ID(99, 1), .other = 1}}, EBB_ORACLE_FORMAT, "the last that was polled is"},
    {{{EBB_EV_WAITING, .task = ID(99, 1)}}, EBB_ORACLE_FORMAT, "was never created"},
};

static void what_layers_record_begins_and_ends_once(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof of_layers / sizeof *of_layers; i++) {
        story *s = good_story();
        size_t at = where(s, EBB_EV_IDLE, 0);
        for (size_t k = 0; k < 6 && of_layers[i].r[k].type != 0; k++) insert_at(s, at + k, of_layers[i].r[k]);
        verdict v = judge(s, true);
        const char *text = of_layers[i].text;
        bool holds = text == NULL ? v.status == EBB_OK
                                  : v.status == EBB_ERR_ORACLE && v.violation.oracle == of_layers[i].oracle &&
                                        strstr(v.violation.text, text) != NULL;
        if (!holds) print_error("%zu: expected %s, found %s\n", i, text, v.violation.text);
        wrong += !holds;
        free(s);
    }
    assert_int_equal(wrong, 0);
}

static void the_first_violation_sticks(void **state) {
    (void)state;
    ebb_checker *c = ebb_checker_new(libc_allocator());
    ebb_event bad = {.type = 79, .decision_seq = 1}, good = {.type = EBB_EV_TURN, .decision_seq = 2};
    assert_int_equal(ebb_checker_event(c, &bad), EBB_ERR_ORACLE);
    assert_int_equal(ebb_checker_event(c, &good), EBB_ERR_ORACLE);
    assert_int_equal(ebb_checker_end(c, false), EBB_ERR_ORACLE);
    assert_int_equal(ebb_checker_violation(c)->event.type, 79);
    assert_int_equal(ebb_checker_events(c), 1);
    ebb_checker_free(c);
}

static void numbers_that_do_not_rise_are_noticed(void **state) {
    (void)state;
    ebb_checker *c = ebb_checker_new(libc_allocator());
    ebb_event turn = {.type = EBB_EV_TURN, .decision_seq = 5};
    assert_int_equal(ebb_checker_event(c, &turn), EBB_OK);
    assert_int_equal(ebb_checker_event(c, &turn), EBB_ERR_ORACLE);
    assert_string_equal(ebb_checker_violation(c)->text, "decision_seq: expected more than 5, found 5");
    ebb_checker_free(c);
    c = ebb_checker_new(libc_allocator());
    ebb_event ack = {.type = EBB_EV_CANCEL_ACKED,
                     .task_id = POLITE,
                     .region_id = OUTER,
                     .cancel_epoch = 1,
                     .phase = 4,
                     .cancel_kind = 1,
                     .severity = 1,
                     .host_turn_id = 1,
                     .microtask_batch_id = 1};
    assert_int_equal(ebb_checker_event(c, &ack), EBB_ERR_ORACLE);
    assert_string_equal(ebb_checker_violation(c)->text, "cancel_acked lacks decision_seq");
    ebb_checker_free(c);
}

static void the_checker_survives_each_allocation_that_fails(void **state) {
    (void)state;
    story *s = good_story();
    for (uint64_t n = 1;; n++) {
        ebb_failing failing = {.inner = libc_allocator(), .fail_at = n};
        verdict v = judge_with(s, true, ebb_failing_allocator(&failing));
        assert_int_equal(failing.live, 0);
        if (failing.failures == 0) {
            assert_int_equal(v.status, EBB_OK);
            assert_true(n > 4);
            break;
        }
        assert_int_equal(v.status, EBB_ERR_NOMEM);
    }
    free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_keeps_every_rule_passes),
        cmocka_unit_test(every_prefix_of_a_good_run_passes_unless_it_must_be_over),
        cmocka_unit_test(each_doctored_trace_breaks_its_rule),
        cmocka_unit_test(every_oracle_has_a_doctored_trace),
        cmocka_unit_test(a_task_that_lives_at_the_end_is_a_leak),
        cmocka_unit_test(a_region_that_is_open_at_the_end_is_a_leak_unless_it_is_the_root),
        cmocka_unit_test(a_forced_task_may_acknowledge_while_masked),
        cmocka_unit_test(a_slot_may_be_used_again_after_its_task_has_ended),
        cmocka_unit_test(a_discarded_task_ends_and_changes_no_status_of_its_region),
        cmocka_unit_test(a_region_may_close_with_what_it_was_refused),
        cmocka_unit_test(a_region_may_close_with_the_failure_of_a_child_that_nobody_joined),
        cmocka_unit_test(a_timer_fires_for_nobody_once_its_task_has_ended),
        cmocka_unit_test(what_layers_record_begins_and_ends_once),
        cmocka_unit_test(the_first_violation_sticks),
        cmocka_unit_test(numbers_that_do_not_rise_are_noticed),
        cmocka_unit_test(the_checker_survives_each_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
