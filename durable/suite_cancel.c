/* Cases of cancel sets: what a turn deletes with its commit, and the message that asks an instance to cancel. */
#include "durable/suite_case.h"

static ebb_status test_a_cancel_set_is_gone_with_its_commit(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 5, &x));
    TRY(ebb__t_poke(s, &x));
    const ebb_provider_cancelled gone[] = {{2, EBB_CANCEL_RACE_LOST}, {4, EBB_CANCEL_RACE_LOST}};
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->cancelled = gone;
    c->cancelled_n = 2;
    c->work = ebb__t_work(s, 10, 1);
    c->work_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    ebb_provider_outstanding_call *o = ebb__t_new_other(s, EBB_PROVIDER_OUTSTANDING);
    o->id = x.id;
    ASK(s, o, EBB_OK);
    SAME(s, o->work, 4);
    return EBB_OK;
}

static ebb_status test_a_cancel_of_claimed_work_reads_no_lease(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w, *none;
    TRY(ebb__t_begin(s, "a", 2, &x));
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 2, &w));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->all_work = true;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_has(s, &x, 0, 0, 0));
    TRY(ebb__t_abandon(s, 1, w[0].token, 0)); /* it brings nothing back */
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 0, &none));
    ASK(s, ebb__t_done(s, 1, &w[1], "late"), EBB_ERR_GONE);
    return ebb__t_has(s, &x, 0, 0, 0);
}

static ebb_status test_all_work_takes_that_of_this_turn_too(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *none;
    TRY(ebb__t_begin(s, "a", 2, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->work = ebb__t_work(s, 10, 3);
    c->work_n = 3;
    c->all_work = true;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_has(s, &x, 0, 0, 0));
    return ebb__t_claim(s, 0, EBB__T_LONG, 0, &none);
}

static ebb_status test_a_cancel_set_leaves_other_instances(ebb__suite *s) {
    ebb__t_instance x, y;
    const ebb_provider_cancelled gone = {1, EBB_CANCEL_USER};
    TRY(ebb__t_begin(s, "x", 2, &x));
    TRY(ebb__t_begin(s, "y", 2, &y));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->cancelled = &gone;
    c->cancelled_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_poke(s, &x));
    c = ebb__t_turn(s, &x);
    c->all_work = c->all_timers = true;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_has(s, &x, 0, 0, 0));
    return ebb__t_has(s, &y, 2, 0, 0);
}

static ebb_status test_a_cancel_of_unknown_work_is_ignored(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_cancelled gone[] = {{77, EBB_CANCEL_USER}, {1, EBB_CANCEL_USER}, {1, EBB_CANCEL_USER}};
    TRY(ebb__t_begin(s, "a", 2, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->cancelled = gone;
    c->cancelled_n = 3;
    TRY(ebb__t_commit(s, &x, c));
    return ebb__t_has(s, &x, 1, 0, 0);
}

static ebb_status test_a_loser_and_a_winner_go_in_one_turn(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 2, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 2, &w));
    TRY(ebb__t_poke(s, &x));
    const ebb_provider_work_done won = {1, w[0].activity, w[0].token};
    const ebb_provider_cancelled lost = {w[1].activity, EBB_CANCEL_RACE_LOST};
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->done = &won;
    c->done_n = 1;
    c->cancelled = &lost;
    c->cancelled_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_has(s, &x, 0, 0, 0));
    ASK(s, ebb__t_done(s, 0, &w[1], "late"), EBB_ERR_GONE);
    return EBB_OK;
}

static ebb_status test_the_end_of_work_that_came_before_its_cancel_stays(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    const ebb_provider_cancelled gone = {1, EBB_CANCEL_RACE_LOST};
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    TRY(ebb__t_poke(s, &x));
    ASK(s, ebb__t_done(s, 0, w, "just in time"), EBB_OK);
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->cancelled = &gone;
    c->cancelled_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_take(s, &x));
    SAME_BLOB(s, x.item->messages[0].body, ebb_blob_text("just in time"));
    return EBB_OK;
}

static ebb_status test_work_can_be_made_again_after_its_cancel(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    const ebb_provider_cancelled gone = {1, EBB_CANCEL_TIMEOUT};
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->cancelled = &gone;
    c->cancelled_n = 1;
    c->work = ebb__t_work(s, 2, 1); /* the next attempt */
    c->work_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    SAME(s, w->activity, 2);
    return EBB_OK;
}

/* ---- the message -------------------------------------------------------------------------------------------------- */

static ebb_status cancel(ebb__suite *s, const char *id, const char *reason, ebb_status expected) {
    ebb_provider_send_call *c = ebb__t_send_call(s, id, reason);
    c->kind = EBB_PROVIDER_MESSAGE_CANCEL;
    return ebb__t_ask(s, c, expected, EBB_SITE);
}

static ebb_status test_a_cancel_is_a_message(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 2, &x));
    TRY(cancel(s, x.id, "because", EBB_OK));
    TRY(ebb__t_has(s, &x, 2, 0, 1)); /* it deletes nothing by itself */
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 1);
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_CANCEL);
    SAME_BLOB(s, x.item->messages[0].body, ebb_blob_text("because"));
    return EBB_OK;
}

static ebb_status test_a_second_cancel_in_the_inbox_changes_nothing(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(cancel(s, x.id, "first", EBB_OK));
    TRY(cancel(s, x.id, "second", EBB_OK));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 1);
    SAME_BLOB(s, x.item->messages[0].body, ebb_blob_text("first"));
    return EBB_OK;
}

static ebb_status test_a_cancel_of_an_unknown_instance_is_an_error(ebb__suite *s) {
    return cancel(s, ebb__t_id(s, "none"), "", EBB_ERR_UNKNOWN_INSTANCE);
}

static ebb_status test_a_cancel_of_an_ended_instance_is_an_error(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_COMPLETED));
    return cancel(s, x.id, "", EBB_ERR_UNKNOWN_INSTANCE);
}

static ebb_status test_a_suspended_instance_takes_signals_and_cancels(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    ebb_provider_mark_call *m = ebb__t_new(s, EBB_PROVIDER_MARK);
    m->key = x.key;
    m->execution = m->turn = 1;
    m->state = EBB_INSTANCE_SUSPENDED;
    m->text = "";
    ASK(s, m, EBB_OK);
    TRY(cancel(s, x.id, "", EBB_OK));
    TRY(ebb__t_send(s, &x, "signal"));
    return ebb__t_has(s, &x, 0, 0, 2);
}

static ebb_status test_a_cancel_is_not_limited_by_signals(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->unread = EBB_DURABLE_SIGNALS;
    TRY(ebb__t_commit(s, &x, c));
    ASK(s, ebb__t_send_call(s, x.id, "one too many"), EBB_ERR_LIMIT);
    return cancel(s, x.id, "", EBB_OK);
}

const ebb__suite_case ebb__suite_cancels[] = {
    CASE(test_a_cancel_set_is_gone_with_its_commit,
         "another store sees no cancelled row once the ack is done"),
    CASE(test_a_cancel_of_claimed_work_reads_no_lease,
         "claimed work is deleted like any, and nothing brings it back"),
    CASE(test_all_work_takes_that_of_this_turn_too, "`all_work` takes what the same ack inserts"),
    CASE(test_a_cancel_set_leaves_other_instances, "equal numbers of other instances stay"),
    CASE(test_a_cancel_of_unknown_work_is_ignored, "cancelling what is not there, or twice, is no failure"),
    CASE(test_a_loser_and_a_winner_go_in_one_turn, "`done` and `cancelled` in one ack"),
    CASE(test_the_end_of_work_that_came_before_its_cancel_stays,
         "an end that was committed first is a message"),
    CASE(test_work_can_be_made_again_after_its_cancel, "a cancel and the next attempt in one ack"),
    CASE(test_a_cancel_is_a_message, "a cancel of an instance is a message, and deletes nothing"),
    CASE(test_a_second_cancel_in_the_inbox_changes_nothing, "one cancel waits at a time"),
    CASE(test_a_cancel_of_an_unknown_instance_is_an_error, "EBB_ERR_UNKNOWN_INSTANCE"),
    CASE(test_a_cancel_of_an_ended_instance_is_an_error, "EBB_ERR_UNKNOWN_INSTANCE"),
    CASE(test_a_suspended_instance_takes_signals_and_cancels, "a suspended instance has an inbox"),
    CASE(test_a_cancel_is_not_limited_by_signals, "a cancel is never refused for a full inbox"),
    LAST,
};
