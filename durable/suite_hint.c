/* Cases of hints: what a commit by one store tells the other. A hint may come twice, or as LOST. */
#include "durable/suite_case.h"

static ebb_status test_a_start_is_hinted(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    return ebb__t_hear(s, &s->heard.turns, "TURNS");
}

static void forget(ebb__suite *s) {
    ebb__t_wait(s, 200 * EBB_MS); /* what has been sent has come */
    memset(&s->heard, 0, sizeof s->heard);
}

static ebb_status test_a_signal_is_hinted(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    forget(s);
    TRY(ebb__t_send(s, &x, "signal"));
    return ebb__t_hear(s, &s->heard.turns, "TURNS");
}

static ebb_status test_the_end_of_work_is_hinted(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    forget(s);
    ASK(s, ebb__t_done(s, 0, w, "charged"), EBB_OK);
    return ebb__t_hear(s, &s->heard.turns, "TURNS");
}

static ebb_status test_a_message_of_another_instance_is_hinted(ebb__suite *s) {
    ebb__t_instance x, y;
    TRY(ebb__t_begin(s, "x", 0, &x));
    TRY(ebb__t_begin(s, "y", 0, &y));
    TRY(ebb__t_poke(s, &x));
    const ebb_provider_outgoing out = {.id = y.id, .kind = EBB_PROVIDER_MESSAGE_CANCEL};
    forget(s);
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->outgoing = &out;
    c->outgoing_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    return ebb__t_hear(s, &s->heard.turns, "TURNS");
}

static ebb_status test_new_work_is_hinted(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 1, &x));
    return ebb__t_hear(s, &s->heard.work, "WORK");
}

static ebb_status test_abandoned_work_is_hinted(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    forget(s);
    TRY(ebb__t_abandon(s, 0, w->token, 0));
    return ebb__t_hear(s, &s->heard.work, "WORK");
}

static ebb_status test_an_abandoned_turn_is_hinted(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    forget(s);
    TRY(ebb__t_abandon_turn(s, x.node, x.item->token));
    return ebb__t_hear(s, &s->heard.turns, "TURNS");
}

static ebb_status test_cancelled_work_is_hinted_with_its_cause(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    const ebb_provider_cancelled gone = {1, EBB_CANCEL_RACE_LOST};
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->cancelled = &gone;
    c->cancelled_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_hear(s, &s->heard.gone, "GONE"));
    if (s->heard.gone == 0) return EBB_OK;
    SAME(s, s->heard.last_gone.key, x.key);
    SAME(s, s->heard.last_gone.execution, 1);
    SAME(s, s->heard.last_gone.activity, 1);
    CHECK(s, s->heard.last_gone.cause == EBB_CANCEL_RACE_LOST || s->heard.last_gone.cause == EBB_CANCEL_NONE);
    return EBB_OK;
}

static ebb_status test_an_end_is_hinted(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_COMPLETED));
    return ebb__t_hear(s, &s->heard.ended, "ENDED");
}

static ebb_status test_a_suspension_is_hinted(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    ebb_provider_mark_call *m = ebb__t_new(s, EBB_PROVIDER_MARK);
    m->key = x.key;
    m->execution = m->turn = 1;
    m->state = EBB_INSTANCE_SUSPENDED;
    m->text = "";
    ASK(s, m, EBB_OK);
    return ebb__t_hear(s, &s->heard.ended, "ENDED");
}

static ebb_status test_a_leave_is_hinted(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    size_t n;
    TRY(ebb__t_join(s, EBB__T_LONG, &n));
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, n, EBB__T_LONG, 1, &w));
    forget(s);
    TRY(ebb__t_leave(s, n));
    return ebb__t_hear(s, &s->heard.work, "WORK");
}

const ebb__suite_case ebb__suite_hints[] = {
    CASE(test_a_start_is_hinted, "TURNS, within a second, in another store"),
    CASE(test_a_signal_is_hinted, "TURNS"),
    CASE(test_the_end_of_work_is_hinted, "TURNS"),
    CASE(test_a_message_of_another_instance_is_hinted, "TURNS"),
    CASE(test_new_work_is_hinted, "WORK"),
    CASE(test_abandoned_work_is_hinted, "WORK"),
    CASE(test_an_abandoned_turn_is_hinted, "TURNS"),
    CASE(test_cancelled_work_is_hinted_with_its_cause, "GONE, with which work and why"),
    CASE(test_an_end_is_hinted, "ENDED"),
    CASE(test_a_suspension_is_hinted, "ENDED"),
    CASE(test_a_leave_is_hinted, "WORK"),
    LAST,
};
