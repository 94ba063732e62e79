/* Cases of nodes and leases: what lapses, what a renewal extends and what it says is gone. */
#include "durable/suite_case.h"

static ebb_status test_work_is_given_again_after_its_lease(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w, *again;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LEASE, 1, &w));
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 0, &again));
    ebb__t_lapse(s);
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 1, &again));
    SAME(s, again->attempts, 2);
    CHECK(s, !ebb__token_is(again->token, w->token));
    ASK(s, ebb__t_done(s, 0, w, "late"), EBB_ERR_GONE);
    ASK(s, ebb__t_done(s, 1, again, "charged"), EBB_OK);
    return ebb__t_has(s, &x, 0, 0, 1);
}

static ebb_status test_an_ack_after_the_lease_is_refused_though_nobody_has_claimed(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LEASE, 1, &w));
    ebb__t_lapse(s);
    ASK(s, ebb__t_done(s, 0, w, "late"), EBB_ERR_GONE);
    return ebb__t_has(s, &x, 1, 0, 0);
}

static ebb_status test_a_lapsed_claim_is_not_counted_as_claimed(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    ebb_provider_outstanding_call *o;
    TRY(ebb__t_begin(s, "a", 2, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LEASE, 2, &w));
    TRY(ebb__t_left(s, &x, &o));
    SAME(s, o->claimed, 2);
    ebb__t_lapse(s);
    TRY(ebb__t_left(s, &x, &o));
    SAME(s, o->claimed, 0);
    SAME(s, o->work, 2);
    return EBB_OK;
}

static ebb_status test_a_renewal_extends_work(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w, *none;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LEASE, 1, &w));
    for (int i = 0; i < 4; i++) {
        ebb__t_wait(s, EBB__T_LEASE / 2);
        ebb_provider_renew_call *c = ebb__t_renew(s, 0, &w->token, 1, i < 3 ? 2 * EBB__T_LEASE : EBB__T_LONG);
        ASK(s, c, EBB_OK);
        SAME(s, c->gone_n, 0);
    }
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 0, &none));
    ASK(s, ebb__t_done(s, 0, w, "charged"), EBB_OK);
    return EBB_OK;
}

static ebb_status test_a_renewal_revives_work_that_nobody_has_claimed(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w, *none;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LEASE, 1, &w));
    ebb__t_lapse(s);
    ebb_provider_renew_call *c = ebb__t_renew(s, 0, &w->token, 1, EBB__T_LONG);
    ASK(s, c, EBB_OK);
    SAME(s, c->gone_n, 0);
    SAME(s, c->lost, false);
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 0, &none));
    ASK(s, ebb__t_done(s, 0, w, "charged"), EBB_OK);
    return EBB_OK;
}

static ebb_status test_work_that_another_has_claimed_is_gone_for_its_first_owner(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w, *again;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LEASE, 1, &w));
    ebb__t_lapse(s);
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 1, &again));
    ebb_provider_renew_call *c = ebb__t_renew(s, 0, &w->token, 1, EBB__T_LONG);
    ASK(s, c, EBB_OK);
    SAME(s, c->gone_n, 1);
    CHECK(s, ebb__token_is(c->gone[0], w->token));
    ASK(s, ebb__t_done(s, 1, again, "charged"), EBB_OK); /* the renewal took nothing from it */
    return EBB_OK;
}

static ebb_status test_a_renewal_returns_exactly_what_is_gone(ebb__suite *s) {
    enum { MANY = 30 };
    ebb__t_instance x;
    ebb_provider_work_item *w;
    ebb_provider_token tokens[MANY];
    TRY(ebb__t_begin(s, "a", MANY, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, MANY, &w));
    for (size_t i = 0; i < MANY; i++) tokens[i] = w[i].token;
    for (size_t i = 0; i < MANY; i += 3) ASK(s, ebb__t_done(s, 0, &w[i], "charged"), EBB_OK);
    ebb_provider_renew_call *c = ebb__t_renew(s, 0, tokens, MANY, EBB__T_LONG);
    ASK(s, c, EBB_OK);
    SAME(s, c->gone_n, MANY / 3);
    for (size_t i = 0; i < c->gone_n; i++) {
        bool found = false;
        for (size_t k = 0; k < MANY; k += 3) found = found || ebb__token_is(c->gone[i], tokens[k]);
        CHECK(s, found);
    }
    return EBB_OK;
}

static ebb_status test_a_renewal_without_tokens_is_ok(ebb__suite *s) {
    ebb_provider_renew_call *c = ebb__t_renew(s, 0, NULL, 0, EBB__T_LONG);
    ASK(s, c, EBB_OK);
    SAME(s, c->gone_n, 0);
    SAME(s, c->lost, false);
    return EBB_OK;
}

static ebb_status test_a_token_never_given_is_gone(ebb__suite *s) {
    const ebb_provider_token tokens[] = {ebb__t_token(s), {0, 0}};
    ebb_provider_renew_call *c = ebb__t_renew(s, 0, tokens, 2, EBB__T_LONG);
    ASK(s, c, EBB_OK);
    SAME(s, c->gone_n, 2);
    return EBB_OK;
}

static ebb_status test_abandoned_work_is_gone_for_its_owner(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w, *again;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    TRY(ebb__t_abandon(s, 0, w->token, 0));
    ebb_provider_renew_call *c = ebb__t_renew(s, 0, &w->token, 1, EBB__T_LONG);
    ASK(s, c, EBB_OK);
    SAME(s, c->gone_n, 1);
    return ebb__t_claim(s, 1, EBB__T_LONG, 1, &again);
}

/* ---- nodes -------------------------------------------------------------------------------------------------------- */

static ebb_status test_nodes_are_all_different(ebb__suite *s) {
    size_t a, b;
    TRY(ebb__t_join(s, EBB__T_LONG, &a));
    TRY(ebb__t_join(s, EBB__T_LONG, &b));
    for (size_t i = 0; i < s->nodes; i++) {
        CHECK(s, s->node[i].id != 0);
        for (size_t k = 0; k < i; k++)
            CHECK(s, s->node[i].id != s->node[k].id || s->node[i].epoch != s->node[k].epoch);
    }
    return EBB_OK;
}

static ebb_status test_a_node_that_left_is_lost(ebb__suite *s) {
    size_t n;
    const ebb_provider_token token = ebb__t_token(s);
    TRY(ebb__t_join(s, EBB__T_LONG, &n));
    TRY(ebb__t_leave(s, n));
    ebb_provider_renew_call *c = ebb__t_renew(s, n, &token, 1, EBB__T_LONG);
    ASK(s, c, EBB_OK);
    SAME(s, c->lost, true);
    return EBB_OK;
}

static ebb_status test_a_node_that_left_claims_nothing(ebb__suite *s) {
    size_t n;
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_join(s, EBB__T_LONG, &n));
    TRY(ebb__t_leave(s, n));
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, n, EBB__T_LONG, 0, &w));
    TRY(ebb__t_send(s, &x, "poke"));
    ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, n, &x);
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 0);
    return EBB_OK;
}

static ebb_status test_a_node_leaves_twice(ebb__suite *s) {
    size_t n;
    TRY(ebb__t_join(s, EBB__T_LONG, &n));
    TRY(ebb__t_leave(s, n));
    TRY(ebb__t_leave(s, n));
    ebb_provider_leave_call *c = ebb__t_new(s, EBB_PROVIDER_LEAVE);
    c->node = (ebb_provider_node){s->node[0].id + 1000000, 1};
    return ebb__t_ask(s, c, EBB_OK, EBB_SITE);
}

static ebb_status test_a_node_that_leaves_lets_its_work_go(ebb__suite *s) {
    size_t n;
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_join(s, EBB__T_LONG, &n));
    TRY(ebb__t_begin(s, "a", 2, &x));
    TRY(ebb__t_claim(s, n, EBB__T_LONG, 2, &w));
    const ebb_provider_work_item old = *w;
    TRY(ebb__t_leave(s, n));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 2, &w));
    SAME(s, w[0].attempts, 1);
    SAME(s, w[1].attempts, 1);
    ASK(s, ebb__t_done(s, n, &old, "late"), EBB_ERR_GONE);
    return EBB_OK;
}

/* A store that commits several calls at once may have all three in one commit. */
static ebb_status test_a_node_that_leaves_lets_work_go_that_it_has_just_claimed(ebb__suite *s) {
    size_t n;
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_join(s, EBB__T_LONG, &n));
    TRY(ebb__t_take_by(s, n, &x));
    const ebb_provider_work *row = ebb__t_work(s, 1, 1);
    ebb_provider_work *claimed = ebb__arena_zero(&s->arena, sizeof *claimed);
    CHECK(s, row != NULL && claimed != NULL);
    *claimed = *row;
    claimed->token = ebb__t_token(s);
    ebb_provider_send_call *before = ebb__t_send_call(s, x.id, "poke"); /* keeps the store busy */
    ebb_provider_ack_turn_call *turn = ebb__t_turn(s, &x);
    ebb_provider_leave_call *leave = ebb__t_new(s, EBB_PROVIDER_LEAVE);
    turn->work = claimed;
    turn->work_n = 1;
    turn->lease = EBB__T_LONG;
    leave->node = s->node[n];
    ebb_provider_call *const all[] = {&before->call, &turn->call, &leave->call};
    ASK_ALL(s, all, 3, EBB_OK);
    return ebb__t_claim(s, 0, EBB__T_LONG, 1, &w);
}

static ebb_status test_a_node_that_leaves_lets_its_instances_go(ebb__suite *s) {
    size_t n;
    ebb__t_instance x;
    TRY(ebb__t_join(s, EBB__T_LONG, &n));
    TRY(ebb__t_take_by(s, n, &x));
    TRY(ebb__t_idle(s, &x));
    TRY(ebb__t_leave(s, n));
    TRY(ebb__t_take(s, &x));
    CHECK(s, x.node != n);
    SAME(s, x.item->attempts, 1);
    return EBB_OK;
}

static ebb_status test_a_node_that_leaves_lets_kept_instances_go(ebb__suite *s) {
    size_t n;
    ebb__t_instance x;
    TRY(ebb__t_join(s, EBB__T_LONG, &n));
    TRY(ebb__t_take_by(s, n, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->keep = true;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_leave(s, n));
    TRY(ebb__t_poke(s, &x));
    CHECK(s, x.node != n);
    return EBB_OK;
}

static ebb_status test_an_instance_of_a_lapsed_node_is_given_to_another(ebb__suite *s) {
    size_t n;
    ebb__t_instance x;
    TRY(ebb__t_join(s, EBB__T_LEASE, &n));
    TRY(ebb__t_take_by(s, n, &x));
    const ebb_provider_token old = x.item->token;
    ebb__t_lapse(s);
    TRY(ebb__t_take(s, &x));
    CHECK(s, x.node != n);
    CHECK(s, !ebb__token_is(old, x.item->token));
    SAME(s, x.item->attempts, 2);
    return EBB_OK;
}

static ebb_status test_a_kept_instance_of_a_lapsed_node_is_given_to_another(ebb__suite *s) {
    size_t n;
    ebb__t_instance x;
    TRY(ebb__t_join(s, EBB__T_LEASE, &n));
    TRY(ebb__t_take_by(s, n, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->keep = true;
    TRY(ebb__t_commit(s, &x, c));
    ebb__t_lapse(s);
    TRY(ebb__t_poke(s, &x));
    CHECK(s, x.node != n);
    return EBB_OK;
}

static ebb_status test_the_first_of_two_owners_commits_though_it_lapsed(ebb__suite *s) {
    size_t n;
    ebb__t_instance x;
    TRY(ebb__t_join(s, EBB__T_LEASE, &n));
    TRY(ebb__t_take_by(s, n, &x));
    ebb_provider_ack_turn_call *first = ebb__t_turn(s, &x);
    ebb__t_lapse(s);
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *second = ebb__t_turn(s, &x);
    ASK(s, first, EBB_OK);
    ASK(s, second, EBB_ERR_FENCED);
    return ebb__t_has(s, &x, 0, 0, 0);
}

static ebb_status test_the_second_of_two_owners_commits(ebb__suite *s) {
    size_t n;
    ebb__t_instance x;
    TRY(ebb__t_join(s, EBB__T_LEASE, &n));
    TRY(ebb__t_take_by(s, n, &x));
    ebb_provider_ack_turn_call *first = ebb__t_turn(s, &x);
    ebb__t_lapse(s);
    TRY(ebb__t_take(s, &x));
    TRY(ebb__t_commit(s, &x, ebb__t_turn(s, &x)));
    ASK(s, first, EBB_ERR_FENCED);
    return EBB_OK;
}

static ebb_status test_a_renewal_keeps_the_instances_of_a_node(ebb__suite *s) {
    size_t n;
    ebb__t_instance x;
    TRY(ebb__t_join(s, 2 * EBB__T_LEASE, &n));
    TRY(ebb__t_take_by(s, n, &x));
    for (int i = 0; i < 6; i++) {
        ebb__t_wait(s, EBB__T_LEASE / 2);
        ebb_provider_renew_call *c = ebb__t_renew(s, n, NULL, 0, 2 * EBB__T_LEASE);
        ASK(s, c, EBB_OK);
        SAME(s, c->lost, false);
    }
    return ebb__t_idle(s, &x);
}

static ebb_status test_a_node_whose_instance_was_taken_is_lost(ebb__suite *s) {
    size_t n;
    ebb__t_instance x;
    TRY(ebb__t_join(s, EBB__T_LEASE, &n));
    TRY(ebb__t_take_by(s, n, &x));
    ebb__t_lapse(s);
    TRY(ebb__t_take(s, &x));
    const ebb_provider_token token = ebb__t_token(s);
    ebb_provider_renew_call *c = ebb__t_renew(s, n, &token, 1, EBB__T_LONG);
    ASK(s, c, EBB_OK);
    SAME(s, c->lost, true);
    SAME(s, c->gone_n, 1);
    TRY(ebb__t_idle(s, &x)); /* the renewal takes nothing back */
    return EBB_OK;
}

static ebb_status test_the_clock_of_the_store_goes_on(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    ebb_provider_fetch_turns_call *a = ebb__t_fetch_call(s, 0, &x);
    ASK(s, a, EBB_OK);
    ebb__t_wait(s, 50 * EBB_MS);
    ebb_provider_fetch_work_call *b = ebb__t_work_call(s, 1, EBB__T_LONG, 1);
    ASK(s, b, EBB_OK);
    CHECK(s, a->now > UINT64_C(1500000000) * EBB_SECOND);
    CHECK(s, b->now >= a->now + 30 * EBB_MS);
    CHECK(s, b->now < a->now + 60 * EBB_SECOND);
    return EBB_OK;
}

const ebb__suite_case ebb__suite_leases[] = {
    CASE(test_work_is_given_again_after_its_lease,
         "lapsed work has a new owner, and the old one's ack is refused"),
    CASE(test_an_ack_after_the_lease_is_refused_though_nobody_has_claimed, "an ack needs an unexpired lease"),
    CASE(test_a_lapsed_claim_is_not_counted_as_claimed, "only live claims are claims"),
    CASE(test_a_renewal_extends_work, "renewed work stays with its node"),
    CASE(test_a_renewal_revives_work_that_nobody_has_claimed, "lapsed work is extended if nobody took it"),
    CASE(test_work_that_another_has_claimed_is_gone_for_its_first_owner,
         "a renewal takes nothing from a new owner"),
    CASE(test_a_renewal_returns_exactly_what_is_gone, "of 30 tokens the 10 that are gone"),
    CASE(test_a_renewal_without_tokens_is_ok, "a node renews alone"),
    CASE(test_a_token_never_given_is_gone, "unknown tokens are gone"),
    CASE(test_abandoned_work_is_gone_for_its_owner, "an abandoned token is gone"),
    CASE(test_nodes_are_all_different, "no two nodes have one id and epoch"),
    CASE(test_a_node_that_left_is_lost, "the renewal of a node that left says lost"),
    CASE(test_a_node_that_left_claims_nothing, "a node that left is given nothing"),
    CASE(test_a_node_leaves_twice, "a leave of no node is OK"),
    CASE(test_a_node_that_leaves_lets_its_work_go, "a leave makes work visible and charges nothing"),
    CASE(test_a_node_that_leaves_lets_work_go_that_it_has_just_claimed, "in the commit of its leave, too"),
    CASE(test_a_node_that_leaves_lets_its_instances_go,
         "a leave makes instances visible and charges nothing"),
    CASE(test_a_node_that_leaves_lets_kept_instances_go, "a leave ends kept claims"),
    CASE(test_an_instance_of_a_lapsed_node_is_given_to_another,
         "instances of a lapsed node have a new owner"),
    CASE(test_a_kept_instance_of_a_lapsed_node_is_given_to_another, "a kept claim ends with its node"),
    CASE(test_the_first_of_two_owners_commits_though_it_lapsed,
         "a lapsed owner may commit first; then the other is fenced"),
    CASE(test_the_second_of_two_owners_commits, "the new owner may commit first; then the old one is fenced"),
    CASE(test_a_renewal_keeps_the_instances_of_a_node, "a node that renews keeps what it has"),
    CASE(test_a_node_whose_instance_was_taken_is_lost,
         "a node that was taken over is told so by its renewal"),
    CASE(test_the_clock_of_the_store_goes_on, "`now` is a time of this century that goes on"),
    LAST,
};
