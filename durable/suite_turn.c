/* Cases of turns: (instance, execution, turn) is inserted once, and what stands in the ack is committed with it or not at
 * all. */
#include "durable/suite_case.h"

/* ---- fencing ------------------------------------------------------------------------------------------------------ */

static ebb_status test_a_turn_is_committed_once(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 1, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->turn = 1;
    c->body = ebb_blob_text("another");
    c->work = ebb__t_work(s, 50, 1);
    c->work_n = 1;
    ASK(s, c, EBB_ERR_FENCED);
    ebb_provider_history_call *h = ebb__t_new(s, EBB_PROVIDER_HISTORY);
    h->id = x.id;
    h->most = 10;
    ASK(s, h, EBB_OK);
    SAME(s, h->turns_n, 1);
    SAME_BLOB(s, h->turns[0].body, ebb_blob_text("turn"));
    return ebb__t_has(s, &x, 1, 0, 0);
}

static ebb_status test_a_turn_repeated_with_its_ack_id_is_ok(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_token id = ebb__t_token(s);
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    for (int i = 0; i < 3; i++) {
        ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
        c->ack_id = id;
        c->work = ebb__t_work(s, 1, 2);
        c->work_n = 2;
        ASK(s, c, EBB_OK);
    }
    return ebb__t_has(s, &x, 2, 0, 0);
}

static ebb_status test_a_repeated_turn_is_ok_after_later_ones(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *first = ebb__t_turn(s, &x);
    TRY(ebb__t_commit(s, &x, first));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_COMPLETED));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->turn = 1;
    c->ack_id = first->ack_id;
    ASK(s, c, EBB_OK);
    const ebb_provider_instance_row *row;
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->turn, 2);
    return EBB_OK;
}

static ebb_status fenced(ebb__suite *s, const ebb__t_instance *x, uint64_t execution, uint64_t turn) {
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
    c->execution = execution;
    c->turn = turn;
    return ebb__t_ask(s, c, EBB_ERR_FENCED, EBB_SITE);
}

static ebb_status test_a_turn_after_a_gap_is_fenced(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(fenced(s, &x, 1, 3));
    TRY(fenced(s, &x, 1, 1000000));
    return fenced(s, &x, 1, 0);
}

static ebb_status test_a_turn_of_another_execution_is_fenced(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(fenced(s, &x, 2, 1));
    TRY(fenced(s, &x, 2, 2));
    return fenced(s, &x, 0, 2);
}

static ebb_status test_a_turn_of_an_unknown_instance_is_fenced(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    x.key += 1000000;
    return fenced(s, &x, 1, 2);
}

static ebb_status test_a_turn_of_an_ended_instance_is_fenced(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_FAILED));
    return fenced(s, &x, 1, 3);
}

static ebb_status test_a_turn_of_a_deleted_instance_is_fenced(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    ebb_provider_remove_call *r = ebb__t_new(s, EBB_PROVIDER_REMOVE);
    r->keys = &x.key;
    r->keys_n = 1;
    r->force = true;
    ASK(s, r, EBB_OK);
    return fenced(s, &x, 1, 2);
}

static ebb_status test_of_two_owners_one_commits(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    for (int i = 0; i < 5; i++) {
        ebb_provider_ack_turn_call *a = ebb__t_turn(s, &x), *b = ebb__t_turn(s, &x);
        b->acked_n = 0;
        ebb_provider_call *both[] = {&a->call, &b->call};
        TRY(ebb__t_ask_each(s, both, 2));
        CHECK(s, (a->call.status == EBB_OK) != (b->call.status == EBB_OK));
        CHECK(s, a->call.status == EBB_ERR_FENCED || b->call.status == EBB_ERR_FENCED);
        x.turn++;
        x.item = NULL;
    }
    return EBB_OK;
}

static ebb_status test_a_token_plays_no_part_in_a_commit(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->token = ebb__t_token(s);
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_has(s, &x, 0, 0, 0));
    return EBB_OK;
}

static ebb_status test_an_operator_ends_an_instance_that_is_held(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 3, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *late = ebb__t_turn(s, &x);
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->node = (ebb_provider_node){0, 0};
    c->token = (ebb_provider_token){0, 0};
    c->acked_n = 0;
    c->all_work = c->all_timers = true;
    c->cause = EBB_CANCEL_USER;
    c->ends = EBB_INSTANCE_TERMINATED;
    c->text = "by hand";
    ASK(s, c, EBB_OK);
    ASK(s, late, EBB_ERR_FENCED);
    const ebb_provider_instance_row *row;
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->state, EBB_INSTANCE_TERMINATED);
    CHECK(s, strcmp(row->text, "by hand") == 0);
    ebb_provider_outstanding_call *o;
    TRY(ebb__t_left(s, &x, &o));
    SAME(s, o->work, 0);
    return ebb__t_idle(s, &x);
}

static ebb_status test_a_suspended_instance_can_be_ended(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 1, &x));
    ebb_provider_mark_call *m = ebb__t_new(s, EBB_PROVIDER_MARK);
    m->key = x.key;
    m->execution = m->turn = 1;
    m->state = EBB_INSTANCE_SUSPENDED;
    m->text = "stop";
    ASK(s, m, EBB_OK);
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->node = (ebb_provider_node){0, 0};
    c->all_work = true;
    c->ends = EBB_INSTANCE_TERMINATED;
    c->text = "";
    ASK(s, c, EBB_OK);
    return ebb__t_has(s, &x, 0, 0, 0);
}

/* ---- all or nothing ------------------------------------------------------------------------------------------------- */

static const ebb_provider_timer two_timers[] = {{20, UINT64_C(1) << 61}, {21, UINT64_C(1) << 61}};
static const ebb_blob custom = {"half", 4};

/* A turn with rows of every kind; the receiver of its messages is `to`. */
static ebb_provider_ack_turn_call *full_turn(ebb__suite *s, const ebb__t_instance *x,
                                             const ebb__t_instance *to, ebb_provider_value *value,
                                             ebb_provider_outgoing *out) {
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
    *value = (ebb_provider_value){"key", ebb_blob_text("value")};
    out[0] = (ebb_provider_outgoing){
        .id = to->id, .kind = EBB_PROVIDER_MESSAGE_CANCEL, .body = ebb_blob_text("cancel")};
    out[1] = (ebb_provider_outgoing){.id = ebb__t_id(s, "child"),
                                     .kind = EBB_PROVIDER_MESSAGE_START,
                                     .step = 30,
                                     .name = s->name,
                                     .version = 1,
                                     .body = ebb_blob_text("start"),
                                     .input = ebb_blob_text("in"),
                                     .exists = ebb_blob_text("exists")};
    c->work = ebb__t_work(s, 10, 2);
    c->work_n = 2;
    c->timers = two_timers;
    c->timers_n = 2;
    c->values = value;
    c->values_n = 1;
    c->custom = &custom;
    c->outgoing = out;
    c->outgoing_n = 2;
    return c;
}

static ebb_status value_is(ebb__suite *s, const ebb__t_instance *x, ebb_blob expected) {
    ebb_provider_value_call *c = ebb__t_new(s, EBB_PROVIDER_VALUE);
    c->id = x->id;
    c->key = "key";
    ASK(s, c, EBB_OK);
    SAME_BLOB(s, c->value, expected);
    return EBB_OK;
}

static ebb_status child_is(ebb__suite *s, ebb_status expected) {
    ebb_provider_instance_call *c = ebb__t_new(s, EBB_PROVIDER_INSTANCE);
    c->id = ebb__t_id(s, "child");
    return ebb__t_ask(s, c, expected, EBB_SITE);
}

static ebb_status test_a_turn_commits_all_its_rows(ebb__suite *s) {
    ebb__t_instance x, to;
    ebb_provider_value value;
    ebb_provider_outgoing out[2];
    const ebb_provider_instance_row *row;
    TRY(ebb__t_begin(s, "to", 0, &to));
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = full_turn(s, &x, &to, &value, out);
    c->all_work = false;
    TRY(ebb__t_commit(s, &x, c));
    SAME(s, c->dropped, 0);
    TRY(ebb__t_has(s, &x, 3, 2, 0));
    TRY(ebb__t_has(s, &to, 0, 0, 1));
    TRY(value_is(s, &x, ebb_blob_text("value")));
    TRY(child_is(s, EBB_OK));
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->turn, 2);
    SAME_BLOB(s, row->custom, custom);
    return EBB_OK;
}

static ebb_status changed_nothing(ebb__suite *s, const ebb__t_instance *x, const ebb__t_instance *to) {
    const ebb_provider_instance_row *row;
    TRY(ebb__t_has(s, x, 1, 0, 1));
    TRY(ebb__t_has(s, to, 0, 0, 0));
    TRY(value_is(s, x, (ebb_blob){NULL, 0}));
    TRY(child_is(s, EBB_ERR_UNKNOWN_INSTANCE));
    TRY(ebb__t_row(s, x, &row));
    SAME(s, row->turn, 1);
    SAME(s, row->state, EBB_INSTANCE_RUNNING);
    SAME(s, row->custom.n, 0);
    return EBB_OK;
}

static ebb_status test_a_fenced_turn_changes_nothing(ebb__suite *s) {
    ebb__t_instance x, to;
    ebb_provider_value value;
    ebb_provider_outgoing out[2];
    const ebb_provider_cancelled gone = {1, EBB_CANCEL_USER};
    TRY(ebb__t_begin(s, "to", 0, &to));
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = full_turn(s, &x, &to, &value, out);
    c->turn = 3;
    c->cancelled = &gone;
    c->cancelled_n = 1;
    c->ends = EBB_INSTANCE_COMPLETED;
    c->text = "";
    ASK(s, c, EBB_ERR_FENCED);
    return changed_nothing(s, &x, &to);
}

static ebb_status test_a_turn_that_is_gone_changes_nothing(ebb__suite *s) {
    ebb__t_instance x, to;
    ebb_provider_value value;
    ebb_provider_outgoing out[2];
    const ebb_provider_cancelled gone = {1, EBB_CANCEL_USER};
    const ebb_provider_work_done done = {1, 1, ebb__t_token(s)};
    TRY(ebb__t_begin(s, "to", 0, &to));
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = full_turn(s, &x, &to, &value, out);
    c->cancelled = &gone;
    c->cancelled_n = 1;
    c->done = &done;
    c->done_n = 1;
    ASK(s, c, EBB_ERR_GONE);
    TRY(changed_nothing(s, &x, &to));
    c = ebb__t_turn(s, &x); /* the claim holds, and the turn is still to be had */
    return ebb__t_commit(s, &x, c);
}

static ebb_status test_turns_of_a_batch_fail_alone(ebb__suite *s) {
    enum { MANY = 20 };
    ebb__t_instance x[MANY];
    ebb_provider_call *calls[MANY];
    char what[8] = "a";
    for (int i = 0; i < MANY; i++) {
        what[1] = (char)('a' + i);
        TRY(ebb__t_start(s, what, &x[i]));
        TRY(ebb__t_take(s, &x[i]));
    }
    for (int i = 0; i < MANY; i++) {
        ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x[i]);
        c->turn += i % 3 == 1;
        c->work = ebb__t_work(s, 1, 1);
        c->work_n = 1;
        calls[i] = &c->call;
    }
    TRY(ebb__t_ask_each(s, calls, MANY));
    for (int i = 0; i < MANY; i++) {
        SAME(s, calls[i]->status, i % 3 == 1 ? EBB_ERR_FENCED : EBB_OK);
        TRY(ebb__t_has(s, &x[i], i % 3 != 1, 0, i % 3 == 1));
    }
    return EBB_OK;
}

/* ---- messages ----------------------------------------------------------------------------------------------------------- */

static ebb_status test_a_message_between_fetch_and_ack_stays(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    TRY(ebb__t_send(s, &x, "meanwhile"));
    TRY(ebb__t_commit(s, &x, ebb__t_turn(s, &x)));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 1);
    SAME_BLOB(s, x.item->messages[0].body, ebb_blob_text("meanwhile"));
    return EBB_OK;
}

static ebb_status test_a_turn_acks_exactly_its_messages(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_send(s, &x, "1"));
    TRY(ebb__t_send(s, &x, "2"));
    TRY(ebb__t_send(s, &x, "3"));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 3);
    const ebb_provider_message_key acked[] = {x.item->messages[2].at, x.item->messages[0].at};
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->acked = acked;
    c->acked_n = 2;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 1);
    SAME_BLOB(s, x.item->messages[0].body, ebb_blob_text("2"));
    return EBB_OK;
}

static ebb_status test_a_turn_that_acks_nothing_leaves_all(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->acked_n = 0;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_START);
    SAME(s, x.item->turn, 1);
    return EBB_OK;
}

static ebb_status test_an_ack_of_an_unknown_message_is_ignored(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_poke(s, &x));
    const ebb_provider_message_key acked[] = {x.item->messages[0].at,
                                              {EBB_PROVIDER_MESSAGE_SIGNAL, x.item->messages[0].at.seq + 77},
                                              {EBB_PROVIDER_MESSAGE_TIMER, 99}};
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->acked = acked;
    c->acked_n = 3;
    TRY(ebb__t_commit(s, &x, c));
    return ebb__t_has(s, &x, 0, 0, 0);
}

static ebb_status test_an_ack_leaves_messages_of_other_instances(ebb__suite *s) {
    ebb__t_instance x, y;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_begin(s, "b", 0, &y));
    TRY(ebb__t_poke(s, &x));
    TRY(ebb__t_poke(s, &y));
    const ebb_provider_message_key acked[] = {x.item->messages[0].at, y.item->messages[0].at};
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->acked = acked;
    c->acked_n = x.item->messages[0].at.seq == y.item->messages[0].at.seq ? 1 : 2;
    TRY(ebb__t_commit(s, &x, c));
    return ebb__t_has(s, &y, 0, 0, 1);
}

const ebb__suite_case ebb__suite_turns[] = {
    CASE(test_a_turn_is_committed_once, "a second commit of a turn is EBB_ERR_FENCED, and the first stands"),
    CASE(test_a_turn_repeated_with_its_ack_id_is_ok, "a repeated ack is OK and changes nothing"),
    CASE(test_a_repeated_turn_is_ok_after_later_ones, "a repeated ack is OK though the instance has gone on"),
    CASE(test_a_turn_after_a_gap_is_fenced, "a turn that is not the next is EBB_ERR_FENCED"),
    CASE(test_a_turn_of_another_execution_is_fenced, "a turn of another execution is EBB_ERR_FENCED"),
    CASE(test_a_turn_of_an_unknown_instance_is_fenced, "a turn of no instance is EBB_ERR_FENCED"),
    CASE(test_a_turn_of_an_ended_instance_is_fenced, "an instance that has ended has no other turn"),
    CASE(test_a_turn_of_a_deleted_instance_is_fenced, "a deleted instance has no other turn"),
    CASE(test_of_two_owners_one_commits, "of two acks of a turn at the same time one is committed"),
    CASE(test_a_token_plays_no_part_in_a_commit, "safety is the key of the turn, not the claim"),
    CASE(test_an_operator_ends_an_instance_that_is_held, "an ack without a node ends a held instance"),
    CASE(test_a_suspended_instance_can_be_ended, "an ack without a node ends a suspended instance"),
    CASE(test_a_turn_commits_all_its_rows, "work, timers, values, status, messages and children of a turn"),
    CASE(test_a_fenced_turn_changes_nothing, "a fenced ack has none of its effects"),
    CASE(test_a_turn_that_is_gone_changes_nothing, "an ack with gone work has none of its effects"),
    CASE(test_turns_of_a_batch_fail_alone, "calls that are committed together fail one by one"),
    CASE(test_a_message_between_fetch_and_ack_stays,
         "what arrives between fetch and ack is in the next turn"),
    CASE(test_a_turn_acks_exactly_its_messages, "an ack deletes by key, not by range"),
    CASE(test_a_turn_that_acks_nothing_leaves_all, "messages that are not acked come again"),
    CASE(test_an_ack_of_an_unknown_message_is_ignored, "acking what is not there is no failure"),
    CASE(test_an_ack_leaves_messages_of_other_instances, "an ack deletes its own instance's messages"),
    LAST,
};
