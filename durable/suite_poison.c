/* Cases of poison: claims charge an attempt, acks and abandons take it back, suspects come alone. */
#include "durable/suite_case.h"

static ebb_status test_the_first_claim_is_attempt_one(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->attempts, 1);
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->work = ebb__t_work(s, 1, 1);
    c->work_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    SAME(s, w->attempts, 1);
    return EBB_OK;
}

static ebb_status test_an_abandon_of_a_turn_takes_the_attempt_back(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    for (int i = 0; i < 5; i++) {
        TRY(ebb__t_take(s, &x));
        SAME(s, x.item->attempts, 1);
        TRY(ebb__t_abandon_turn(s, x.node, x.item->token));
    }
    return EBB_OK;
}

static ebb_status test_an_abandon_of_work_takes_the_attempt_back(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    for (int i = 0; i < 5; i++) {
        TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
        SAME(s, w->attempts, 1);
        TRY(ebb__t_abandon(s, 0, w->token, 0));
    }
    return EBB_OK;
}

static ebb_status lapse_work(ebb__suite *s, size_t times) {
    ebb_provider_work_item *w;
    for (size_t i = 0; i < times; i++) {
        TRY(ebb__t_claim(s, 0, EBB__T_LEASE, 1, &w));
        SAME(s, w->attempts, i + 1);
        ebb__t_lapse(s);
    }
    return EBB_OK;
}

static ebb_status test_a_lapse_of_work_charges_an_attempt(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(lapse_work(s, 1));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    SAME(s, w->attempts, 2);
    TRY(ebb__t_abandon(s, 0, w->token, 0)); /* takes back its own attempt only */
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    SAME(s, w->attempts, 2);
    return EBB_OK;
}

static ebb_status test_suspect_work_is_not_given_unasked(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(lapse_work(s, 2));
    ebb_provider_fetch_work_call *c = ebb__t_work_call(s, 0, EBB__T_LONG, 10);
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 0);
    SAME(s, c->suspects_wait, true);
    c = ebb__t_work_call(s, 0, EBB__T_LONG, 10);
    c->suspects = true;
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 1);
    SAME(s, c->items[0].attempts, 3);
    w = &c->items[0];
    ASK(s, ebb__t_done(s, 0, w, "at last"), EBB_OK);
    return EBB_OK;
}

static ebb_status test_suspect_work_comes_alone_and_blocks_nobody(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(lapse_work(s, 2));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *t = ebb__t_turn(s, &x);
    t->work = ebb__t_work(s, 10, 3);
    t->work_n = 3;
    TRY(ebb__t_commit(s, &x, t));
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 3, &w)); /* the suspect is older, and they pass it */
    for (int i = 0; i < 3; i++) TRY(ebb__t_abandon(s, 1, w[i].token, 0));
    bool alone = false;
    for (int i = 0; i < 5 && !alone; i++) {
        ebb_provider_fetch_work_call *c = ebb__t_work_call(s, 0, EBB__T_LONG, 10);
        c->suspects = true;
        ASK(s, c, EBB_OK);
        for (size_t k = 0; k < c->items_n; k++) {
            if (c->items[k].activity != 1) continue;
            SAME(s, c->items_n, 1);
            alone = true;
        }
    }
    CHECK(s, alone);
    return EBB_OK;
}

static ebb_status test_a_lapse_of_a_node_charges_an_attempt(ebb__suite *s) {
    ebb__t_instance x;
    size_t n;
    TRY(ebb__t_join(s, EBB__T_LEASE, &n));
    TRY(ebb__t_take_by(s, n, &x));
    ebb__t_lapse(s);
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->attempts, 2);
    TRY(ebb__t_commit(s, &x, ebb__t_turn(s, &x)));
    TRY(ebb__t_poke(s, &x));
    SAME(s, x.item->attempts, 1);
    return EBB_OK;
}

/* Two nodes that lapse one after the other have had the instance; no other node is there to take it. */
static ebb_status charge_twice(ebb__suite *s, ebb__t_instance *x) {
    size_t a, b;
    TRY(ebb__t_join(s, EBB__T_LEASE, &a));
    TRY(ebb__t_go_away(s));
    TRY(ebb__t_take_by(s, a, x));
    ebb__t_lapse(s);
    TRY(ebb__t_join(s, EBB__T_LEASE, &b));
    for (int i = 0; i < 150; i++) {
        ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, b, x);
        ASK(s, c, EBB_OK);
        if (c->items_n > 0) {
            SAME(s, c->items[0].attempts, 2);
            ebb__t_lapse(s);
            return ebb__t_come_back(s);
        }
        ebb_provider_renew_call *r = ebb__t_renew(s, b, NULL, 0, EBB__T_LEASE);
        ASK(s, r, EBB_OK);
        ebb__t_wait(s, 20 * EBB_MS);
    }
    return ebb__t_fail(s, "a node that is alone is not given %s, whose node has lapsed", x->id);
}

static ebb_status test_a_suspect_instance_is_not_given_unasked(ebb__suite *s) {
    ebb__t_instance x;
    TRY(charge_twice(s, &x));
    bool waits = false;
    for (int i = 0; i < 50 && !waits; i++) {
        TRY(ebb__t_idle(s, &x));
        for (size_t n = 0; n < 2; n++) {
            ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, n, &x);
            ASK(s, c, EBB_OK);
            waits = waits || c->suspects_wait;
        }
        if (!waits) ebb__t_wait(s, 20 * EBB_MS); /* until a node has taken over what the other has left */
    }
    CHECK(s, waits);
    TRY(ebb__t_take_suspect(s, &x));
    SAME(s, x.item->attempts, 3);
    TRY(ebb__t_commit(s, &x, ebb__t_turn(s, &x)));
    TRY(ebb__t_poke(s, &x)); /* its turn has cleared it */
    SAME(s, x.item->attempts, 1);
    return EBB_OK;
}

static ebb_status test_a_suspect_instance_blocks_nobody(ebb__suite *s) {
    ebb__t_instance x, y;
    TRY(charge_twice(s, &x));
    TRY(ebb__t_start(s, "y", &y));
    return ebb__t_take(s, &y);
}

static ebb_status test_a_resume_clears_a_suspect(ebb__suite *s) {
    ebb__t_instance x;
    TRY(charge_twice(s, &x));
    const ebb_instance_state states[] = {EBB_INSTANCE_SUSPENDED, EBB_INSTANCE_RUNNING};
    for (int i = 0; i < 2; i++) {
        ebb_provider_mark_call *m = ebb__t_new(s, EBB_PROVIDER_MARK);
        m->key = x.key;
        m->execution = 1;
        m->turn = x.turn;
        m->state = states[i];
        m->text = "poisoned";
        ASK(s, m, EBB_OK);
    }
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->attempts, 1);
    return EBB_OK;
}

const ebb__suite_case ebb__suite_poison[] = {
    CASE(test_the_first_claim_is_attempt_one, "`attempts` counts the claim itself"),
    CASE(test_an_abandon_of_a_turn_takes_the_attempt_back, "an instance that is given back is not charged"),
    CASE(test_an_abandon_of_work_takes_the_attempt_back, "work that is given back is not charged"),
    CASE(test_a_lapse_of_work_charges_an_attempt, "a claim that lapsed stays charged"),
    CASE(test_suspect_work_is_not_given_unasked,
         "work that was charged twice is given to who asks for suspects"),
    CASE(test_suspect_work_comes_alone_and_blocks_nobody,
         "a suspect comes as the only item, and delays no row"),
    CASE(test_a_lapse_of_a_node_charges_an_attempt, "a lapse charges the instance, and a turn clears it"),
    CASE(test_a_suspect_instance_is_not_given_unasked, "an instance that was charged twice is a suspect"),
    CASE(test_a_suspect_instance_blocks_nobody, "a suspect delays no instance"),
    CASE(test_a_resume_clears_a_suspect, "a resume sets the attempts to 0"),
    LAST,
};
