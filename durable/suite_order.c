/* Cases of order and visibility: messages, timers, work, and who waits longest. */
#include "durable/suite_case.h"

static ebb_status bodies_are(ebb__suite *s, const ebb__t_instance *x, const char *const *bodies, size_t n) {
    SAME(s, x->item->messages_n, n);
    for (size_t i = 0; i < n; i++) SAME_BLOB(s, x->item->messages[i].body, ebb_blob_text(bodies[i]));
    return EBB_OK;
}

static const char *const five[] = {"1", "2", "3", "4", "5"};

static ebb_status test_signals_come_in_the_order_of_their_calls(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    for (int i = 0; i < 5; i++) TRY(ebb__t_send(s, &x, five[i]));
    TRY(ebb__t_take(s, &x));
    return bodies_are(s, &x, five, 5);
}

static ebb_status test_signals_of_two_stores_come_in_the_order_of_their_calls(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    for (int i = 0; i < 5; i++) {
        ebb_provider_send_call *c =
            i % 2 == 0 ? ebb__t_new(s, EBB_PROVIDER_SEND) : ebb__t_new_other(s, EBB_PROVIDER_SEND);
        c->id = x.id;
        c->kind = EBB_PROVIDER_MESSAGE_SIGNAL;
        c->dedup = "";
        c->body = ebb_blob_text(five[i]);
        ASK(s, c, EBB_OK);
    }
    TRY(ebb__t_take(s, &x));
    return bodies_are(s, &x, five, 5);
}

static ebb_status test_signals_sent_at_once_all_come_once(ebb__suite *s) {
    enum { MANY = 64 };
    ebb__t_instance x;
    ebb_provider_call *calls[MANY];
    uint8_t body[MANY];
    bool seen[MANY] = {false};
    TRY(ebb__t_begin(s, "a", 0, &x));
    for (int i = 0; i < MANY; i++) {
        ebb_provider_send_call *c = ebb__t_send_call(s, x.id, "");
        body[i] = (uint8_t)i;
        c->body = (ebb_blob){&body[i], 1};
        calls[i] = &c->call;
    }
    ASK_ALL(s, calls, MANY, EBB_OK);
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, MANY);
    for (int i = 0; i < MANY; i++) {
        const uint8_t n = *(const uint8_t *)x.item->messages[i].body.at;
        CHECK(s, n < MANY && !seen[n]);
        seen[n] = true;
        for (int k = 0; k < i; k++) CHECK(s, x.item->messages[i].at.seq != x.item->messages[k].at.seq);
    }
    return EBB_OK;
}

static ebb_status test_the_start_comes_before_signals(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_send(s, &x, "early"));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 2);
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_START);
    SAME(s, x.item->messages[1].at.kind, EBB_PROVIDER_MESSAGE_SIGNAL);
    return EBB_OK;
}

static ebb_status test_an_abandoned_item_comes_again_in_the_same_order(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    for (int i = 0; i < 4; i++) TRY(ebb__t_send(s, &x, five[i]));
    TRY(ebb__t_take(s, &x));
    const uint64_t first = x.item->messages[0].at.seq;
    TRY(ebb__t_abandon_turn(s, x.node, x.item->token));
    TRY(ebb__t_send(s, &x, five[4]));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages[0].at.seq, first);
    return bodies_are(s, &x, five, 5);
}

static ebb_status test_ends_of_work_come_in_the_order_of_their_acks(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 4, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 4, &w));
    for (size_t i = 4; i-- > 0;) ASK(s, ebb__t_done(s, 0, &w[i], five[3 - i]), EBB_OK);
    TRY(ebb__t_take(s, &x));
    TRY(bodies_are(s, &x, five, 4));
    SAME(s, x.item->messages[0].step, w[3].activity);
    return EBB_OK;
}

static ebb_status test_a_message_is_seen_by_the_other_store_at_once(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_send(s, &x, "1"));
    ebb_provider_outstanding_call *c = ebb__t_new_other(s, EBB_PROVIDER_OUTSTANDING);
    c->id = x.id;
    ASK(s, c, EBB_OK);
    SAME(s, c->messages, 1);
    return EBB_OK;
}

static ebb_status test_a_burst_keeps_no_other_instance_away(ebb__suite *s) {
    enum { OTHERS = 5 };
    ebb__t_instance busy, x[OTHERS];
    char what[] = "a";
    TRY(ebb__t_begin(s, "busy", 0, &busy));
    for (int i = 0; i < 100; i++) TRY(ebb__t_send(s, &busy, "burst"));
    uint64_t keys[OTHERS + 1] = {busy.key};
    for (int i = 0; i < OTHERS; i++, what[0]++) {
        TRY(ebb__t_start(s, what, &x[i]));
        keys[i + 1] = x[i].key;
    }
    size_t given = 0;
    for (int i = 0; i < 50 && given <= OTHERS; i++) {
        ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, (size_t)i % 2, &busy);
        c->only = keys;
        c->only_n = OTHERS + 1;
        c->messages = 10;
        ASK(s, c, EBB_OK);
        for (size_t k = 0; k < c->items_n; k++) CHECK(s, c->items[k].messages_n <= 10);
        given += c->items_n;
        if (i % 2 == 1) ebb__t_wait(s, 10 * EBB_MS);
    }
    SAME(s, given, OTHERS + 1);
    return EBB_OK;
}

static ebb_status test_who_waits_longest_comes_first(ebb__suite *s) {
    enum { MANY = 5 };
    ebb__t_instance x[MANY];
    uint64_t keys[MANY];
    for (int i = 0; i < MANY; i++) {
        const char what[] = {(char)('z' - i), 0};
        TRY(ebb__t_begin(s, what, 0, &x[i]));
        keys[i] = x[i].key;
    }
    for (int i = MANY - 1; i >= 0; i--) {
        TRY(ebb__t_send(s, &x[i], "poke"));
        ebb__t_wait(s, 20 * EBB_MS);
    }
    size_t given = 0;
    for (int n = 0; n < 100 && given < MANY; n++) {
        ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, (size_t)n % 2, &x[0]);
        c->only = keys;
        c->only_n = MANY;
        ASK(s, c, EBB_OK);
        for (size_t k = 1; k < c->items_n; k++) CHECK(s, c->items[k].key < c->items[k - 1].key);
        given += c->items_n;
        if (n % 2 == 1) ebb__t_wait(s, 10 * EBB_MS);
    }
    SAME(s, given, MANY);
    return EBB_OK;
}

static ebb_status test_the_oldest_work_comes_first(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 6, &x));
    for (uint64_t first = 1; first <= 6; first += 2) {
        ebb_provider_fetch_work_call *c = ebb__t_work_call(s, first % 4 == 1, EBB__T_LONG, 2);
        ASK(s, c, EBB_OK);
        SAME(s, c->items_n, 2);
        SAME(s, c->items[0].activity, first);
        SAME(s, c->items[1].activity, first + 1);
    }
    return EBB_OK;
}

static ebb_status test_a_full_queue_keeps_no_other_away(ebb__suite *s) {
    ebb__t_instance x;
    char other[160];
    (void)strcpy(other, s->queue);
    (void)strcat(other, "-b");
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_work rows[41];
    const ebb_provider_work *from = ebb__t_work(s, 1, 41);
    CHECK(s, from != NULL);
    memcpy(rows, from, sizeof rows);
    rows[40].queue = other;
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->work = rows;
    c->work_n = 41;
    TRY(ebb__t_commit(s, &x, c));
    const ebb_provider_queue queues[] = {{s->queue, 100}, {other, 100}};
    ebb_provider_fetch_work_call *w = ebb__t_work_call(s, 0, EBB__T_LONG, 10);
    w->queues = queues;
    w->queues_n = 2;
    ASK(s, w, EBB_OK);
    SAME(s, w->items_n, 10);
    bool found = false;
    for (size_t i = 0; i < 10; i++) found = found || w->items[i].activity == 41;
    CHECK(s, found);
    return EBB_OK;
}

static ebb_status test_work_says_how_long_it_waited(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    ebb__t_wait(s, 100 * EBB_MS);
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    CHECK(s, w->waited >= 80 * EBB_MS && w->waited < 60 * EBB_SECOND);
    return EBB_OK;
}

/* ---- timers ------------------------------------------------------------------------------------------------------- */

static ebb_status store_now(ebb__suite *s, uint64_t *now) {
    ebb_provider_fetch_work_call *c = ebb__t_work_call(s, 0, EBB__T_LONG, 1);
    ASK(s, c, EBB_OK);
    *now = c->now;
    return EBB_OK;
}

/* An instance with timers at these spans from now. */
static ebb_status begin_timers(ebb__suite *s, const uint64_t *span, size_t n, ebb__t_instance *x) {
    uint64_t now;
    ebb_provider_timer timers[8];
    TRY(ebb__t_start(s, "a", x));
    TRY(ebb__t_take(s, x));
    TRY(store_now(s, &now));
    for (size_t i = 0; i < n; i++) timers[i] = (ebb_provider_timer){i + 1, now + span[i]};
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
    c->timers = timers;
    c->timers_n = n;
    return ebb__t_commit(s, x, c);
}

static ebb_status test_a_timer_comes_when_it_is_due(ebb__suite *s) {
    ebb__t_instance x;
    const uint64_t span = EBB__T_LEASE;
    TRY(begin_timers(s, &span, 1, &x));
    TRY(ebb__t_has(s, &x, 0, 1, 0));
    TRY(ebb__t_idle(s, &x));
    ebb__t_lapse(s);
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 1);
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_TIMER);
    SAME(s, x.item->messages[0].at.seq, 1);
    SAME(s, x.item->messages[0].step, 1);
    SAME(s, x.item->messages[0].execution, 1);
    SAME(s, x.item->messages[0].body.n, 0);
    TRY(ebb__t_commit(s, &x, ebb__t_turn(s, &x)));
    TRY(ebb__t_has(s, &x, 0, 0, 0));
    return ebb__t_idle(s, &x);
}

static ebb_status test_a_timer_in_the_past_comes_at_once(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    const ebb_provider_timer timer = {1, 1};
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->timers = &timer;
    c->timers_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    return ebb__t_take(s, &x);
}

static ebb_status test_timers_come_by_their_time_behind_messages(ebb__suite *s) {
    ebb__t_instance x;
    const uint64_t span[] = {50 * EBB_MS, 10 * EBB_MS, 30 * EBB_MS};
    TRY(begin_timers(s, span, 3, &x));
    TRY(ebb__t_send(s, &x, "signal"));
    ebb__t_wait(s, 120 * EBB_MS);
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 4);
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_SIGNAL);
    SAME(s, x.item->messages[1].step, 2);
    SAME(s, x.item->messages[2].step, 3);
    SAME(s, x.item->messages[3].step, 1);
    return EBB_OK;
}

static ebb_status test_a_timer_that_is_not_acked_comes_again(ebb__suite *s) {
    ebb__t_instance x;
    const uint64_t span = 0;
    TRY(begin_timers(s, &span, 1, &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->acked_n = 0;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_TIMER);
    return EBB_OK;
}

static ebb_status test_a_cancelled_timer_never_comes(ebb__suite *s) {
    ebb__t_instance x;
    const uint64_t span[] = {100 * EBB_MS, 100 * EBB_MS, 100 * EBB_MS};
    const uint64_t gone[] = {1, 3, 99};
    TRY(begin_timers(s, span, 3, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->timers_cancelled = gone;
    c->timers_cancelled_n = 3;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_has(s, &x, 0, 1, 0));
    ebb__t_wait(s, 150 * EBB_MS);
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 1);
    SAME(s, x.item->messages[0].step, 2);
    return EBB_OK;
}

static ebb_status test_all_timers_go_with_the_turn(ebb__suite *s) {
    ebb__t_instance x;
    const uint64_t span[] = {0, EBB_SECOND, 3600 * EBB_SECOND};
    const ebb_provider_timer another = {9, 1};
    TRY(begin_timers(s, span, 3, &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->timers = &another; /* one that is made and lost in the same turn */
    c->timers_n = 1;
    c->all_timers = true;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_has(s, &x, 0, 0, 0));
    return ebb__t_idle(s, &x);
}

static ebb_status test_a_fetch_says_when_the_next_timer_is_due(ebb__suite *s) {
    ebb__t_instance x;
    const uint64_t span = EBB__T_LEASE;
    TRY(begin_timers(s, &span, 1, &x));
    uint64_t soonest = EBB_FOREVER;
    for (size_t n = 0; n < s->nodes; n++) {
        ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, n, &x);
        c->only = NULL;
        c->most = 0;
        ASK(s, c, EBB_OK);
        if (c->again < soonest) soonest = c->again;
    }
    CHECK(s, soonest <= EBB__T_LEASE + 20 * EBB_MS || soonest <= 2 * EBB_SECOND);
    return EBB_OK;
}

static ebb_status test_a_timer_is_due_to_the_nanosecond(ebb__suite *s) {
    ebb__t_instance x;
    const uint64_t far = (UINT64_C(1) << 62) + 12345; /* a year past 2100 */
    const ebb_provider_timer timer = {1, far};
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->timers = &timer;
    c->timers_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_has(s, &x, 0, 1, 0));
    return ebb__t_idle(s, &x);
}

const ebb__suite_case ebb__suite_order[] = {
    CASE(test_signals_come_in_the_order_of_their_calls, "an inbox is first in, first out"),
    CASE(test_signals_of_two_stores_come_in_the_order_of_their_calls, "also if they were sent by two stores"),
    CASE(test_signals_sent_at_once_all_come_once,
         "64 signals at the same time, each once, each with its own key"),
    CASE(test_the_start_comes_before_signals, "the start message is the first"),
    CASE(test_an_abandoned_item_comes_again_in_the_same_order, "an abandon changes no order and no key"),
    CASE(test_ends_of_work_come_in_the_order_of_their_acks, "ends of activities are first in, first out"),
    CASE(test_a_message_is_seen_by_the_other_store_at_once, "what is done is visible everywhere"),
    CASE(test_a_burst_keeps_no_other_instance_away, "an instance with 100 messages is one item"),
    CASE(test_who_waits_longest_comes_first, "items stand in the order in which their instances wait"),
    CASE(test_the_oldest_work_comes_first, "a queue is first in, first out"),
    CASE(test_a_full_queue_keeps_no_other_away, "a fetch is fair between queues"),
    CASE(test_work_says_how_long_it_waited, "`waited` is the time since it became visible"),
    CASE(test_a_timer_comes_when_it_is_due, "a timer is a message when it is due, and not before"),
    CASE(test_a_timer_in_the_past_comes_at_once, "a timer that is due already"),
    CASE(test_timers_come_by_their_time_behind_messages,
         "an item has messages first, then timers by their time"),
    CASE(test_a_timer_that_is_not_acked_comes_again, "a timer stays until it is acked"),
    CASE(test_a_cancelled_timer_never_comes, "cancelled timers are gone with the commit"),
    CASE(test_all_timers_go_with_the_turn, "`all_timers` takes those of this turn too"),
    CASE(test_a_fetch_says_when_the_next_timer_is_due, "`again` is not later than the next timer"),
    CASE(test_a_timer_is_due_to_the_nanosecond, "a timer may be due centuries from now"),
    LAST,
};
