/* Cases of executions and children: continue-as-new, an id that is used again, messages between instances. */
#include "durable/suite_case.h"

static const ebb_blob next_start = {"start 2", 7};

/* A turn that ends the execution and begins the next. */
static ebb_provider_ack_turn_call *next_turn(ebb__suite *s, const ebb__t_instance *x) {
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
    c->next = &next_start;
    c->next_version = 1;
    c->next_input = ebb_blob_text("input 2");
    return c;
}

static ebb_status test_the_next_execution_begins(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_instance_row *row;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_poke(s, &x));
    TRY(ebb__t_commit(s, &x, next_turn(s, &x)));
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->state, EBB_INSTANCE_RUNNING);
    SAME(s, row->execution, 2);
    SAME(s, row->turn, 0);
    SAME_BLOB(s, row->input, ebb_blob_text("input 2"));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.execution, 2);
    SAME(s, x.turn, 0);
    SAME(s, x.item->messages_n, 1);
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_START);
    SAME(s, x.item->messages[0].execution, 2);
    SAME_BLOB(s, x.item->messages[0].body, next_start);
    return ebb__t_commit(s, &x, ebb__t_turn(s, &x));
}

static ebb_status test_signals_go_over_to_the_next_execution(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_poke(s, &x));
    TRY(ebb__t_send(s, &x, "meanwhile"));
    TRY(ebb__t_commit(s, &x, next_turn(s, &x)));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 2);
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_START);
    SAME(s, x.item->messages[1].at.kind, EBB_PROVIDER_MESSAGE_SIGNAL);
    SAME_BLOB(s, x.item->messages[1].body, ebb_blob_text("meanwhile"));
    return EBB_OK;
}

static ebb_status test_messages_of_the_old_execution_are_dropped(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    TRY(ebb__t_poke(s, &x));
    ASK(s, ebb__t_done(s, 0, w, "too late"), EBB_OK);
    TRY(ebb__t_commit(s, &x, next_turn(s, &x)));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 1);
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_START);
    return EBB_OK;
}

static ebb_status test_work_of_the_old_execution_is_dropped_when_acked(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    TRY(ebb__t_poke(s, &x));
    TRY(ebb__t_commit(s, &x, next_turn(s, &x))); /* a shielded call: its row stays */
    TRY(ebb__t_has(s, &x, 1, 0, 1));
    ebb_provider_ack_work_call *c = ebb__t_done(s, 0, w, "late");
    ASK(s, c, EBB_OK);
    SAME(s, c->dropped, true);
    return ebb__t_has(s, &x, 0, 0, 1);
}

static ebb_status test_equal_numbers_of_two_executions_are_two_rows(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_poke(s, &x));
    TRY(ebb__t_commit(s, &x, next_turn(s, &x)));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->work = ebb__t_work(s, 1, 1);
    c->work_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_has(s, &x, 2, 0, 0));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 2, &w));
    CHECK(s, w[0].execution != w[1].execution);
    TRY(ebb__t_poke(s, &x));
    c = ebb__t_turn(s, &x);
    c->all_work = true; /* of the execution that the ack is of */
    TRY(ebb__t_commit(s, &x, c));
    return ebb__t_has(s, &x, 1, 0, 0);
}

static ebb_status test_a_cancel_set_goes_with_the_old_execution(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_timer timer = {9, UINT64_C(1) << 61};
    TRY(ebb__t_begin(s, "a", 5, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->timers = &timer;
    c->timers_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_poke(s, &x));
    c = next_turn(s, &x);
    c->all_work = c->all_timers = true;
    TRY(ebb__t_commit(s, &x, c));
    return ebb__t_has(s, &x, 0, 0, 1);
}

static ebb_status test_a_next_turn_repeated_is_ok(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = next_turn(s, &x), *again = next_turn(s, &x);
    again->ack_id = c->ack_id;
    TRY(ebb__t_commit(s, &x, c));
    ASK(s, again, EBB_OK);
    const ebb_provider_instance_row *row;
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->execution, 2);
    return ebb__t_has(s, &x, 0, 0, 1);
}

static ebb_status test_the_next_execution_has_another_version(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_instance_row *row;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = next_turn(s, &x);
    c->next_version = 3;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->version, 3);
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->version, 3);
    return EBB_OK;
}

static ebb_status turns_of(ebb__suite *s, const ebb__t_instance *x, uint64_t execution, size_t expected) {
    ebb_provider_history_call *h = ebb__t_new(s, EBB_PROVIDER_HISTORY);
    h->id = x->id;
    h->execution = execution;
    h->most = 100;
    ASK(s, h, EBB_OK);
    SAME(s, h->turns_n, expected);
    return EBB_OK;
}

static ebb_status test_each_execution_has_its_history(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_poke(s, &x));
    TRY(ebb__t_commit(s, &x, next_turn(s, &x)));
    TRY(turns_of(s, &x, 0, 0));
    TRY(ebb__t_take(s, &x));
    TRY(ebb__t_commit(s, &x, ebb__t_turn(s, &x)));
    TRY(turns_of(s, &x, 1, 2));
    TRY(turns_of(s, &x, 2, 1));
    TRY(turns_of(s, &x, 0, 1));
    return turns_of(s, &x, 3, 0);
}

static ebb_status test_an_instance_has_many_executions(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    for (uint64_t n = 1; n <= 10; n++) {
        TRY(ebb__t_take(s, &x));
        SAME(s, x.execution, n);
        TRY(ebb__t_commit(s, &x, next_turn(s, &x)));
    }
    return EBB_OK;
}

static ebb_status dedup(ebb__suite *s, const ebb__t_instance *x, const char *id) {
    ebb_provider_send_call *c = ebb__t_send_call(s, x->id, "signal");
    c->dedup = id;
    return ebb__t_ask(s, c, EBB_OK, EBB_SITE);
}

static ebb_status test_dedup_ids_go_with_the_execution(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(dedup(s, &x, "one"));
    TRY(ebb__t_take(s, &x));
    TRY(dedup(s, &x, "one"));
    TRY(ebb__t_commit(s, &x, next_turn(s, &x)));
    TRY(ebb__t_has(s, &x, 0, 0, 1));
    TRY(dedup(s, &x, "one"));
    return ebb__t_has(s, &x, 0, 0, 2);
}

/* ---- used again --------------------------------------------------------------------------------------------------- */

static ebb_status start_again(ebb__suite *s, const ebb__t_instance *x, const char *input, ebb_status expected,
                              ebb_provider_start_call **out) {
    ebb_provider_start_call *c = *out = ebb__t_start_call(s, "a");
    c->id = x->id;
    c->input = ebb_blob_text(input);
    c->reuse = true;
    return ebb__t_ask(s, c, expected, EBB_SITE);
}

static ebb_status test_an_ended_id_is_used_again(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_start_call *c;
    const ebb_provider_instance_row *row;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_FAILED));
    TRY(start_again(s, &x, "other", EBB_OK, &c));
    SAME(s, c->existed, false);
    SAME(s, c->row.key, x.key);
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->state, EBB_INSTANCE_RUNNING);
    SAME(s, row->execution, 2);
    SAME(s, row->turn, 0);
    SAME(s, row->ended, 0);
    SAME(s, row->result.n, 0);
    SAME_BLOB(s, row->input, ebb_blob_text("other"));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.execution, 2);
    TRY(ebb__t_commit(s, &x, ebb__t_turn(s, &x)));
    return turns_of(s, &x, 1, 2);
}

static ebb_status test_a_running_id_is_not_used_again(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_start_call *c;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(start_again(s, &x, "other", EBB_ERR_EXISTS, &c));
    TRY(start_again(s, &x, "{}", EBB_OK, &c));
    SAME(s, c->existed, true);
    SAME(s, c->row.execution, 1);
    return ebb__t_has(s, &x, 0, 0, 0);
}

static ebb_status test_an_id_used_again_has_no_messages(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_start_call *c;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_poke(s, &x));
    TRY(ebb__t_send(s, &x, "too late for the last turn"));
    ebb_provider_ack_turn_call *t = ebb__t_turn(s, &x);
    t->ends = EBB_INSTANCE_COMPLETED;
    t->text = "";
    TRY(ebb__t_commit(s, &x, t));
    TRY(start_again(s, &x, "{}", EBB_OK, &c));
    return ebb__t_has(s, &x, 0, 0, 1); /* the start */
}

static ebb_status test_an_id_used_again_has_no_values(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_start_call *c;
    const ebb_provider_instance_row *row;
    const ebb_provider_value value = {"key", ebb_blob_text("value")};
    const ebb_blob custom = ebb_blob_text("half");
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *t = ebb__t_turn(s, &x);
    t->values = &value;
    t->values_n = 1;
    t->custom = &custom;
    TRY(ebb__t_commit(s, &x, t));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_COMPLETED));
    TRY(start_again(s, &x, "{}", EBB_OK, &c));
    ebb_provider_value_call *v = ebb__t_new(s, EBB_PROVIDER_VALUE);
    v->id = x.id;
    v->key = "key";
    ASK(s, v, EBB_OK);
    CHECK(s, v->value.at == NULL);
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->custom.n, 0);
    return EBB_OK;
}

static ebb_status test_an_ended_id_is_not_used_again_unasked(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_COMPLETED));
    ebb_provider_start_call *c = ebb__t_start_call(s, "a");
    ASK(s, c, EBB_OK);
    SAME(s, c->existed, true);
    SAME(s, c->row.state, EBB_INSTANCE_COMPLETED);
    SAME(s, c->row.execution, 1);
    return ebb__t_idle(s, &x);
}

/* ---- children and messages ----------------------------------------------------------------------------------------- */

static ebb_provider_outgoing child(ebb__suite *s, const char *what, uint64_t step) {
    return (ebb_provider_outgoing){.id = ebb__t_id(s, what),
                                   .kind = EBB_PROVIDER_MESSAGE_START,
                                   .step = step,
                                   .body = ebb_blob_text("start child"),
                                   .name = s->name,
                                   .version = 2,
                                   .input = ebb_blob_text("child in"),
                                   .exists = ebb_blob_text("exists")};
}

static ebb_status send_out(ebb__suite *s, ebb__t_instance *x, const ebb_provider_outgoing *out, size_t n,
                           uint32_t dropped) {
    if (x->item == NULL) TRY(ebb__t_poke(s, x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
    c->outgoing = out;
    c->outgoing_n = n;
    TRY(ebb__t_commit(s, x, c));
    SAME(s, c->dropped, dropped);
    return EBB_OK;
}

static ebb_status find(ebb__suite *s, const char *what, ebb__t_instance *x,
                       const ebb_provider_instance_row **row) {
    memset(x, 0, sizeof *x);
    x->id = ebb__t_id(s, what);
    TRY(ebb__t_row(s, x, row));
    x->key = (*row)->key;
    x->execution = (*row)->execution;
    return EBB_OK;
}

static ebb_status test_a_child_is_started_with_the_turn(ebb__suite *s) {
    ebb__t_instance x, y;
    const ebb_provider_instance_row *row;
    const ebb_provider_outgoing out = child(s, "child", 4);
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(send_out(s, &x, &out, 1, 0));
    TRY(find(s, "child", &y, &row));
    SAME(s, row->version, 2);
    SAME(s, row->execution, 1);
    SAME(s, row->state, EBB_INSTANCE_RUNNING);
    CHECK(s, strcmp(row->parent, x.id) == 0);
    CHECK(s, strcmp(row->name, s->name) == 0);
    SAME_BLOB(s, row->input, ebb_blob_text("child in"));
    TRY(ebb__t_take(s, &y));
    SAME(s, y.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_START);
    SAME_BLOB(s, y.item->messages[0].body, ebb_blob_text("start child"));
    return ebb__t_idle(s, &x);
}

static ebb_status test_a_child_whose_id_exists_is_a_message_to_its_parent(ebb__suite *s) {
    ebb__t_instance x, y;
    const ebb_provider_outgoing out = child(s, "taken", 4);
    TRY(ebb__t_begin(s, "taken", 0, &y));
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(send_out(s, &x, &out, 1, 0));
    TRY(ebb__t_has(s, &y, 0, 0, 0));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 1);
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_CHILD);
    SAME(s, x.item->messages[0].step, 4);
    SAME_BLOB(s, x.item->messages[0].body, ebb_blob_text("exists"));
    return EBB_OK;
}

static ebb_status test_two_children_of_one_id_are_one(ebb__suite *s) {
    ebb__t_instance x, y;
    const ebb_provider_instance_row *row;
    const ebb_provider_outgoing out[] = {child(s, "child", 4), child(s, "child", 5)};
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(send_out(s, &x, out, 2, 0));
    TRY(find(s, "child", &y, &row));
    TRY(ebb__t_has(s, &y, 0, 0, 1));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 1);
    SAME(s, x.item->messages[0].step, 5);
    return EBB_OK;
}

static ebb_status test_the_end_of_a_child_comes_to_its_parent(ebb__suite *s) {
    ebb__t_instance x, y;
    const ebb_provider_instance_row *row;
    const ebb_provider_outgoing start = child(s, "child", 4);
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(send_out(s, &x, &start, 1, 0));
    TRY(find(s, "child", &y, &row));
    TRY(ebb__t_take(s, &y));
    const ebb_provider_outgoing end = {
        .id = x.id, .kind = EBB_PROVIDER_MESSAGE_CHILD, .step = 4, .body = ebb_blob_text("ended")};
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &y);
    c->outgoing = &end;
    c->outgoing_n = 1;
    c->ends = EBB_INSTANCE_COMPLETED;
    c->text = "";
    TRY(ebb__t_commit(s, &y, c));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_CHILD);
    SAME(s, x.item->messages[0].step, 4);
    SAME_BLOB(s, x.item->messages[0].body, ebb_blob_text("ended"));
    return EBB_OK;
}

static ebb_status test_messages_to_nobody_are_dropped_and_counted(ebb__suite *s) {
    ebb__t_instance x, gone, other;
    TRY(ebb__t_begin(s, "gone", 0, &gone));
    TRY(ebb__t_end(s, &gone, EBB_INSTANCE_COMPLETED));
    TRY(ebb__t_begin(s, "other", 0, &other));
    TRY(ebb__t_begin(s, "a", 0, &x));
    const ebb_provider_outgoing out[] = {{.id = ebb__t_id(s, "unknown"), .kind = EBB_PROVIDER_MESSAGE_CANCEL},
                                         {.id = gone.id, .kind = EBB_PROVIDER_MESSAGE_CHILD},
                                         {.id = other.id, .execution = 7, .kind = EBB_PROVIDER_MESSAGE_CHILD},
                                         {.id = other.id, .execution = 1, .kind = EBB_PROVIDER_MESSAGE_CHILD},
                                         {.id = other.id, .kind = EBB_PROVIDER_MESSAGE_CANCEL}};
    TRY(send_out(s, &x, out, 5, 3));
    return ebb__t_has(s, &other, 0, 0, 2);
}

static ebb_status test_an_instance_sends_to_itself(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    const ebb_provider_outgoing out = {
        .id = x.id, .kind = EBB_PROVIDER_MESSAGE_CANCEL, .body = ebb_blob_text("self")};
    TRY(send_out(s, &x, &out, 1, 0));
    TRY(ebb__t_take(s, &x));
    SAME_BLOB(s, x.item->messages[0].body, ebb_blob_text("self"));
    return EBB_OK;
}

static ebb_status test_a_thousand_children_start_in_one_turn(ebb__suite *s) {
    enum { MANY = 1000 };
    ebb__t_instance x;
    char what[16];
    ebb_provider_outgoing *out = ebb__arena_alloc(&s->arena, MANY * sizeof *out);
    CHECK(s, out != NULL);
    for (unsigned i = 0; i < MANY; i++) {
        for (size_t k = 0, n = i; k < 4; k++, n /= 10) what[3 - k] = (char)('0' + n % 10);
        what[4] = 0;
        out[i] = child(s, what, i + 1);
    }
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(send_out(s, &x, out, MANY, 0));
    const ebb_instance_filter f = {.size = sizeof f, .parent = x.id, .most = 1000};
    ebb_provider_list_call *l = ebb__t_new(s, EBB_PROVIDER_LIST);
    l->filter = &f;
    ASK(s, l, EBB_OK);
    SAME(s, l->rows_n, MANY);
    return EBB_OK;
}

const ebb__suite_case ebb__suite_executions[] = {
    CASE(test_the_next_execution_begins, "`next` ends an execution and begins another, with its start first"),
    CASE(test_signals_go_over_to_the_next_execution, "messages of no execution stay, behind the start"),
    CASE(test_messages_of_the_old_execution_are_dropped, "messages of the old execution are dropped"),
    CASE(test_work_of_the_old_execution_is_dropped_when_acked, "work that went on is dropped when it ends"),
    CASE(test_equal_numbers_of_two_executions_are_two_rows, "work is keyed by its execution too"),
    CASE(test_a_cancel_set_goes_with_the_old_execution, "`all_work` and `all_timers` with `next`"),
    CASE(test_a_next_turn_repeated_is_ok, "a repeated ack with `next` begins nothing twice"),
    CASE(test_the_next_execution_has_another_version, "`next_version` is that of the next execution"),
    CASE(test_each_execution_has_its_history, "turns of every execution can be read"),
    CASE(test_an_instance_has_many_executions, "ten executions in a row"),
    CASE(test_dedup_ids_go_with_the_execution, "a dedup id holds for one execution"),
    CASE(test_an_ended_id_is_used_again, "`reuse` of an ended id is the next execution of its row"),
    CASE(test_a_running_id_is_not_used_again, "`reuse` of a running id is an ordinary start"),
    CASE(test_an_id_used_again_has_no_messages,
         "what an ended instance has not read does not outlive `reuse`"),
    CASE(test_an_id_used_again_has_no_values, "values and status do not outlive `reuse`"),
    CASE(test_an_ended_id_is_not_used_again_unasked, "a start without `reuse` finds the ended instance"),
    CASE(test_a_child_is_started_with_the_turn, "a START makes the child, with its parent"),
    CASE(test_a_child_whose_id_exists_is_a_message_to_its_parent,
         "a START of an id that exists comes back as CHILD"),
    CASE(test_two_children_of_one_id_are_one, "the second START of an id in one ack comes back"),
    CASE(test_the_end_of_a_child_comes_to_its_parent, "a CHILD message with its step"),
    CASE(test_messages_to_nobody_are_dropped_and_counted, "unknown, ended, another execution: dropped"),
    CASE(test_an_instance_sends_to_itself, "a sender may be the receiver"),
    CASE(test_a_thousand_children_start_in_one_turn, "1,000 children in one ack"),
    LAST,
};
