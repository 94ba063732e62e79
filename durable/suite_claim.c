/* Cases of claims: an instance is with one live node at a time. */
#include "durable/suite_case.h"

static ebb_status test_a_held_instance_is_given_to_nobody(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    TRY(ebb__t_idle(s, &x));
    TRY(ebb__t_send(s, &x, "more"));
    return ebb__t_idle(s, &x);
}

static ebb_status test_two_fetches_at_once_give_an_instance_once(ebb__suite *s) {
    ebb__t_instance x;
    for (int i = 0; i < 5; i++) {
        const char what[] = {(char)('a' + i), 0};
        TRY(ebb__t_start(s, what, &x));
        ebb_provider_fetch_turns_call *c[] = {ebb__t_fetch_call(s, 0, &x), ebb__t_fetch_call(s, 1, &x),
                                              ebb__t_fetch_call(s, 0, &x), ebb__t_fetch_call(s, 1, &x)};
        ebb_provider_call *all[] = {&c[0]->call, &c[1]->call, &c[2]->call, &c[3]->call};
        ASK_ALL(s, all, 4, EBB_OK);
        CHECK(s, c[0]->items_n + c[1]->items_n + c[2]->items_n + c[3]->items_n <= 1);
    }
    return EBB_OK;
}

static ebb_status test_an_abandoned_instance_is_given_at_once(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    const ebb_provider_token old = x.item->token;
    TRY(ebb__t_abandon_turn(s, x.node, old));
    TRY(ebb__t_take(s, &x));
    CHECK(s, !ebb__token_is(old, x.item->token));
    SAME(s, x.item->turn, 0);
    SAME(s, x.item->messages_n, 1);
    return EBB_OK;
}

static ebb_status test_an_abandon_of_unknown_tokens_is_ignored(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    TRY(ebb__t_abandon_turn(s, x.node, ebb__t_token(s)));
    TRY(ebb__t_abandon_turn(s, x.node, (ebb_provider_token){0, 0}));
    return ebb__t_idle(s, &x);
}

static ebb_status test_an_abandon_after_the_ack_is_ignored(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    const ebb_provider_token old = x.item->token;
    const size_t node = x.node;
    TRY(ebb__t_commit(s, &x, ebb__t_turn(s, &x)));
    TRY(ebb__t_poke(s, &x));
    TRY(ebb__t_abandon_turn(s, node, old));
    return ebb__t_idle(s, &x);
}

static ebb_status test_an_ack_lets_the_instance_go(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_idle(s, &x)); /* it has nothing to do */
    TRY(ebb__t_poke(s, &x));
    SAME(s, x.item->turn, 1);
    return EBB_OK;
}

static ebb_status test_a_fenced_ack_lets_nothing_go(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->turn = 7;
    ASK(s, c, EBB_ERR_FENCED);
    return ebb__t_idle(s, &x);
}

static ebb_status test_a_repeated_ack_lets_the_instance_go(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x), *again = ebb__t_turn(s, &x);
    again->ack_id = c->ack_id;
    TRY(ebb__t_send(s, &x, "more"));
    ASK(s, c, EBB_OK);
    ASK(s, again, EBB_OK);
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 1);
    return EBB_OK;
}

static ebb_status test_a_fetch_gives_no_more_instances_than_asked(ebb__suite *s) {
    enum { MANY = 6 };
    uint64_t key[MANY];
    size_t given = 0;
    for (int i = 0; i < MANY; i++) {
        ebb__t_instance x;
        const char what[] = {(char)('a' + i), 0};
        TRY(ebb__t_start(s, what, &x));
        key[i] = x.key;
    }
    for (int i = 0; i < 100 && given < MANY; i++) {
        ebb_provider_fetch_turns_call *c = ebb__t_new(s, EBB_PROVIDER_FETCH_TURNS);
        c->node = s->node[i % 2];
        c->only = key;
        c->only_n = MANY;
        c->most = 2;
        c->messages = 10;
        ASK(s, c, EBB_OK);
        CHECK(s, c->items_n <= 2);
        given += c->items_n;
        if (c->items_n == 0) ebb__t_wait(s, 10 * EBB_MS);
    }
    SAME(s, given, MANY);
    return EBB_OK;
}

static ebb_status test_an_item_has_no_more_messages_than_asked(ebb__suite *s) {
    ebb__t_instance x;
    const char *bodies[] = {"1", "2", "3", "4", "5"};
    TRY(ebb__t_begin(s, "a", 0, &x));
    for (int i = 0; i < 5; i++) TRY(ebb__t_send(s, &x, bodies[i]));
    for (int i = 0; i < 5; i += 2) {
        const size_t expected = i < 4 ? 2 : 1;
        const ebb_provider_turn_item *item = NULL;
        for (int n = 0; n < 50 && item == NULL; n++) {
            ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, (size_t)n % 2, &x);
            c->messages = 2;
            ASK(s, c, EBB_OK);
            if (c->items_n > 0) item = &c->items[0];
            if (item == NULL && n % 2 == 1) ebb__t_wait(s, 10 * EBB_MS);
            x.node = (size_t)n % 2;
        }
        CHECK(s, item != NULL);
        SAME(s, item->messages_n, expected);
        for (size_t k = 0; k < expected; k++)
            SAME_BLOB(s, item->messages[k].body, ebb_blob_text(bodies[i + (int)k]));
        x.item = item;
        TRY(ebb__t_commit(s, &x, ebb__t_turn(s, &x)));
    }
    return ebb__t_idle(s, &x);
}

static ebb_status test_a_fetch_keeps_to_its_instances(ebb__suite *s) {
    ebb__t_instance x, y;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_start(s, "b", &y));
    TRY(ebb__t_take(s, &y));
    SAME(s, y.item->key, y.key);
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->key, x.key);
    return EBB_OK;
}

static ebb_status test_an_item_describes_its_instance(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    CHECK(s, strcmp(x.item->id, x.id) == 0);
    CHECK(s, strcmp(x.item->name, s->name) == 0);
    SAME(s, x.item->version, 1);
    SAME(s, x.item->execution, 1);
    SAME(s, x.item->turn, 0);
    SAME(s, x.item->attempts, 1);
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_START);
    SAME(s, x.item->messages[0].execution, 1);
    SAME_BLOB(s, x.item->messages[0].body, ebb_blob_text("start"));
    return EBB_OK;
}

static ebb_status test_an_unknown_node_is_given_nothing(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "w", 1, &x));
    TRY(ebb__t_poke(s, &x));
    TRY(ebb__t_abandon_turn(s, x.node, x.item->token));
    ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, 0, &x);
    c->node = (ebb_provider_node){s->node[0].id + 1000000, 1};
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 0);
    ebb_provider_fetch_work_call *w = ebb__t_work_call(s, 0, EBB__T_LONG, 10);
    w->node = c->node;
    ASK(s, w, EBB_OK);
    SAME(s, w->items_n, 0);
    return EBB_OK;
}

static ebb_status test_an_old_epoch_is_given_nothing(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "w", 1, &x));
    TRY(ebb__t_send(s, &x, "poke"));
    ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, 0, &x);
    c->node.epoch += 1000;
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 0);
    ebb_provider_fetch_work_call *w = ebb__t_work_call(s, 0, EBB__T_LONG, 10);
    w->node.epoch += 1000;
    ASK(s, w, EBB_OK);
    SAME(s, w->items_n, 0);
    return EBB_OK;
}

/* ---- kept ---------------------------------------------------------------------------------------------------------- */

static ebb_status begin_kept(ebb__suite *s, ebb__t_instance *x, ebb_provider_token *token) {
    TRY(ebb__t_start(s, "a", x));
    TRY(ebb__t_take(s, x));
    *token = x->item->token;
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
    c->keep = true;
    return ebb__t_commit(s, x, c);
}

static ebb_status test_a_kept_instance_stays_with_its_node(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_token token;
    TRY(begin_kept(s, &x, &token));
    TRY(ebb__t_idle(s, &x));
    TRY(ebb__t_send(s, &x, "more"));
    ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, 1 - x.node, &x);
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 0);
    c = ebb__t_fetch_call(s, x.node, &x);
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 1);
    CHECK(s, !ebb__token_is(c->items[0].token, token));
    SAME(s, c->items[0].attempts, 1);
    return ebb__t_idle(s, &x);
}

static ebb_status test_a_kept_instance_that_has_messages_is_given_again(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    TRY(ebb__t_send(s, &x, "meanwhile"));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->keep = true;
    const size_t node = x.node;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.node, node);
    return EBB_OK;
}

static ebb_status test_an_abandon_ends_a_kept_claim(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_token token;
    TRY(begin_kept(s, &x, &token));
    TRY(ebb__t_abandon_turn(s, x.node, token));
    TRY(ebb__t_poke(s, &x));
    SAME(s, x.item->attempts, 1);
    return EBB_OK;
}

static ebb_status test_a_kept_instance_can_end(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_token token;
    TRY(begin_kept(s, &x, &token));
    TRY(ebb__t_send(s, &x, "more"));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->keep = true;
    c->ends = EBB_INSTANCE_COMPLETED;
    c->text = "";
    TRY(ebb__t_commit(s, &x, c));
    return ebb__t_idle(s, &x);
}

/* ---- states ---------------------------------------------------------------------------------------------------------- */

static ebb_status mark(ebb__suite *s, const ebb__t_instance *x, ebb_instance_state state) {
    ebb_provider_mark_call *m = ebb__t_new(s, EBB_PROVIDER_MARK);
    m->key = x->key;
    m->execution = x->execution;
    m->turn = x->turn;
    m->state = state;
    m->text = "by hand";
    return ebb__t_ask(s, m, EBB_OK, EBB_SITE);
}

static ebb_status test_a_suspended_instance_is_given_to_nobody(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(mark(s, &x, EBB_INSTANCE_SUSPENDED));
    TRY(ebb__t_send(s, &x, "1"));
    TRY(ebb__t_idle(s, &x));
    TRY(ebb__t_has(s, &x, 0, 0, 1));
    TRY(mark(s, &x, EBB_INSTANCE_RUNNING));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 1);
    return EBB_OK;
}

static ebb_status test_a_mark_ends_the_claim(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    TRY(mark(s, &x, EBB_INSTANCE_SUSPENDED));
    TRY(mark(s, &x, EBB_INSTANCE_RUNNING));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->attempts, 1);
    return EBB_OK;
}

const ebb__suite_case ebb__suite_claims[] = {
    CASE(test_a_held_instance_is_given_to_nobody, "a claimed instance is not given again, to no node"),
    CASE(test_two_fetches_at_once_give_an_instance_once, "fetches at the same time give an instance once"),
    CASE(test_an_abandoned_instance_is_given_at_once,
         "an abandon makes the instance visible, with a new token"),
    CASE(test_an_abandon_of_unknown_tokens_is_ignored, "an abandon of unknown tokens does nothing"),
    CASE(test_an_abandon_after_the_ack_is_ignored, "a token that was used up ends no later claim"),
    CASE(test_an_ack_lets_the_instance_go, "after its turn an instance is given as soon as it has messages"),
    CASE(test_a_fenced_ack_lets_nothing_go, "a fenced ack leaves the claim as it is"),
    CASE(test_a_repeated_ack_lets_the_instance_go, "a repeated ack of a turn ends the claim too"),
    CASE(test_a_fetch_gives_no_more_instances_than_asked, "`most` bounds a fetch, and none is lost"),
    CASE(test_an_item_has_no_more_messages_than_asked,
         "`messages` bounds an item; the rest is in the next turn"),
    CASE(test_a_fetch_keeps_to_its_instances, "`only` bounds a fetch to instances"),
    CASE(test_an_item_describes_its_instance, "id, name, version, execution, turn and messages of an item"),
    CASE(test_an_unknown_node_is_given_nothing, "a node that never joined can claim nothing"),
    CASE(test_an_old_epoch_is_given_nothing, "an epoch that is not the node's can claim nothing"),
    CASE(test_a_kept_instance_stays_with_its_node, "`keep` holds the instance for its node"),
    CASE(test_a_kept_instance_that_has_messages_is_given_again,
         "a kept instance with messages is given at once"),
    CASE(test_an_abandon_ends_a_kept_claim, "an abandon of a kept token lets the instance go"),
    CASE(test_a_kept_instance_can_end, "`keep` of the last turn holds nothing"),
    CASE(test_a_suspended_instance_is_given_to_nobody, "a suspended instance keeps its messages and waits"),
    CASE(test_a_mark_ends_the_claim, "suspend and resume end a claim"),
    LAST,
};
