/* Cases of starts and signals: ids, inputs, dedup ids and the limit of signals. */
#include "durable/suite_case.h"

static ebb_status test_a_start_answers_with_its_instance(ebb__suite *s) {
    ebb_provider_start_call *c = ebb__t_start_call(s, "a");
    ASK(s, c, EBB_OK);
    SAME(s, c->existed, false);
    CHECK(s, c->row.key != 0);
    CHECK(s, strcmp(c->row.id, c->id) == 0);
    CHECK(s, strcmp(c->row.name, s->name) == 0);
    CHECK(s, strcmp(c->row.parent, "") == 0);
    SAME(s, c->row.version, 1);
    SAME(s, c->row.semantics, 0);
    SAME(s, c->row.execution, 1);
    SAME(s, c->row.turn, 0);
    SAME(s, c->row.state, EBB_INSTANCE_RUNNING);
    SAME(s, c->row.ended, 0);
    CHECK(s, c->row.started > UINT64_C(1500000000) * EBB_SECOND);
    SAME_BLOB(s, c->row.input, ebb_blob_text("{}"));
    return EBB_OK;
}

static ebb_status test_the_same_start_twice_is_one_instance(ebb__suite *s) {
    ebb_provider_start_call *a = ebb__t_start_call(s, "a"), *b = ebb__t_start_call(s, "a");
    ASK(s, a, EBB_OK);
    ASK(s, b, EBB_OK);
    SAME(s, b->existed, true);
    SAME(s, b->row.key, a->row.key);
    const ebb__t_instance x = {.id = a->id};
    return ebb__t_has(s, &x, 0, 0, 1);
}

static ebb_status test_starts_at_once_are_one_instance(ebb__suite *s) {
    enum { MANY = 8 };
    ebb_provider_start_call *c[MANY];
    ebb_provider_call *calls[MANY];
    uint32_t made = 0;
    for (int i = 0; i < MANY; i++) {
        c[i] = ebb__t_start_call(s, "a");
        calls[i] = &c[i]->call;
    }
    ASK_ALL(s, calls, MANY, EBB_OK);
    for (int i = 0; i < MANY; i++) {
        made += !c[i]->existed;
        SAME(s, c[i]->row.key, c[0]->row.key);
    }
    SAME(s, made, 1);
    const ebb__t_instance x = {.id = c[0]->id};
    return ebb__t_has(s, &x, 0, 0, 1);
}

static ebb_status test_a_start_with_another_name_exists(ebb__suite *s) {
    ebb_provider_start_call *c = ebb__t_start_call(s, "a");
    ASK(s, c, EBB_OK);
    c = ebb__t_start_call(s, "a");
    c->name = "another";
    ASK(s, c, EBB_ERR_EXISTS);
    CHECK(s, c->call.text[0] != 0);
    return EBB_OK;
}

static ebb_status test_a_start_with_another_input_exists(ebb__suite *s) {
    ebb_provider_start_call *c = ebb__t_start_call(s, "a");
    ASK(s, c, EBB_OK);
    c = ebb__t_start_call(s, "a");
    c->input = ebb_blob_text("{ }");
    ASK(s, c, EBB_ERR_EXISTS);
    c = ebb__t_start_call(s, "a");
    c->input = (ebb_blob){NULL, 0};
    ASK(s, c, EBB_ERR_EXISTS);
    return EBB_OK;
}

static ebb_status test_keys_are_not_used_again(ebb__suite *s) {
    ebb_provider_start_call *c = ebb__t_start_call(s, "a");
    ASK(s, c, EBB_OK);
    const uint64_t key = c->row.key;
    ebb_provider_remove_call *r = ebb__t_new(s, EBB_PROVIDER_REMOVE);
    r->keys = &key;
    r->keys_n = 1;
    r->force = true;
    ASK(s, r, EBB_OK);
    c = ebb__t_start_call(s, "a");
    ASK(s, c, EBB_OK);
    SAME(s, c->existed, false);
    CHECK(s, c->row.key != key);
    SAME(s, c->row.execution, 1);
    return EBB_OK;
}

/* ---- ids and inputs -------------------------------------------------------------------------------------------------- */

static ebb_status starts_apart(ebb__suite *s, const char *const *what, size_t n) {
    uint64_t key[8];
    for (size_t i = 0; i < n; i++) {
        ebb_provider_start_call *c = ebb__t_start_call(s, what[i]);
        ASK(s, c, EBB_OK);
        SAME(s, c->existed, false);
        CHECK(s, strcmp(c->row.id, c->id) == 0);
        key[i] = c->row.key;
        for (size_t k = 0; k < i; k++) CHECK(s, key[k] != key[i]);
    }
    for (size_t i = 0; i < n; i++) {
        const ebb__t_instance x = {.id = ebb__t_id(s, what[i])};
        const ebb_provider_instance_row *row;
        TRY(ebb__t_row(s, &x, &row));
        SAME(s, row->key, key[i]);
    }
    return EBB_OK;
}

static ebb_status test_ids_differ_in_case(ebb__suite *s) {
    const char *const ids[] = {"order", "Order", "ORDER"};
    return starts_apart(s, ids, 3);
}

static ebb_status test_ids_differ_in_blanks(ebb__suite *s) {
    const char *const ids[] = {"order", "order ", " order", "order  "};
    return starts_apart(s, ids, 4);
}

static ebb_status test_ids_with_signs_of_sql_are_only_ids(ebb__suite *s) {
    const char *const ids[] = {"';drop table inst;--", "%", "_", "\\", "a\"b", "$1", "?1", ":x@y"};
    return starts_apart(s, ids, 8);
}

static ebb_status test_ids_are_bytes_of_utf_8(ebb__suite *s) {
    const char *const ids[] = {"caf\xc3\xa9", "cafe\xcc\x81", "\xf0\x9f\x8c\x8a", "\xe6\xb3\xa2"};
    return starts_apart(s, ids, 4);
}

static ebb_status test_an_id_of_255_bytes_is_kept(ebb__suite *s) {
    char long_id[EBB_DURABLE_ID + 1], other[EBB_DURABLE_ID + 1];
    const char *begin = ebb__t_id(s, "");
    memset(long_id, 'x', EBB_DURABLE_ID);
    memcpy(long_id, begin, strlen(begin));
    long_id[EBB_DURABLE_ID] = 0;
    memcpy(other, long_id, sizeof other);
    other[EBB_DURABLE_ID - 1] = 'y';
    ebb_provider_start_call *a = ebb__t_start_call(s, "a"), *b = ebb__t_start_call(s, "a");
    a->id = long_id;
    b->id = other;
    ASK(s, a, EBB_OK);
    ASK(s, b, EBB_OK);
    SAME(s, b->existed, false);
    CHECK(s, strcmp(a->row.id, long_id) == 0);
    return EBB_OK;
}

static ebb_status input_of(ebb__suite *s, size_t n) {
    const ebb_provider_instance_row *row;
    ebb__t_instance x;
    ebb_provider_start_call *c = ebb__t_start_call(s, "a");
    const ebb_blob bytes = ebb__t_bytes(s, n);
    CHECK(s, bytes.at != NULL);
    c->input = c->message = bytes;
    ASK(s, c, EBB_OK);
    x = (ebb__t_instance){.id = c->id, .key = c->row.key};
    TRY(ebb__t_row(s, &x, &row));
    SAME_BLOB(s, row->input, bytes);
    TRY(ebb__t_take(s, &x));
    SAME_BLOB(s, x.item->messages[0].body, bytes);
    return EBB_OK;
}

static ebb_status test_an_input_of_no_bytes_is_kept(ebb__suite *s) {
    return input_of(s, 0);
}
static ebb_status test_an_input_of_one_byte_of_0_is_kept(ebb__suite *s) {
    return input_of(s, 1);
}
static ebb_status test_an_input_of_every_byte_is_kept(ebb__suite *s) {
    return input_of(s, 70000);
}
static ebb_status test_an_input_of_2_mib_is_kept(ebb__suite *s) {
    return input_of(s, EBB_DURABLE_PAYLOAD);
}

/* ---- signals ------------------------------------------------------------------------------------------------------------ */

static ebb_status signal_of(ebb__suite *s, size_t n) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    ebb_provider_send_call *c = ebb__t_send_call(s, x.id, "");
    const ebb_blob body = ebb__t_bytes(s, n);
    CHECK(s, body.at != NULL);
    c->body = body;
    ASK(s, c, EBB_OK);
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_SIGNAL);
    SAME(s, x.item->messages[0].step, 0);
    SAME_BLOB(s, x.item->messages[0].body, body);
    return EBB_OK;
}

static ebb_status test_a_signal_of_no_bytes_is_kept(ebb__suite *s) {
    return signal_of(s, 0);
}
static ebb_status test_a_signal_of_2_mib_is_kept(ebb__suite *s) {
    return signal_of(s, EBB_DURABLE_PAYLOAD);
}

static ebb_status test_a_signal_to_nobody_is_an_error(ebb__suite *s) {
    ebb_provider_send_call *c = ebb__t_send_call(s, ebb__t_id(s, "none"), "signal");
    ASK(s, c, EBB_ERR_UNKNOWN_INSTANCE);
    CHECK(s, c->call.text[0] != 0);
    return EBB_OK;
}

static ebb_status test_a_signal_to_an_ended_instance_is_an_error(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_CANCELLED));
    ASK(s, ebb__t_send_call(s, x.id, "signal"), EBB_ERR_UNKNOWN_INSTANCE);
    return ebb__t_has(s, &x, 0, 0, 0);
}

static ebb_status dedup(ebb__suite *s, const ebb__t_instance *x, const char *id, ebb_status expected) {
    ebb_provider_send_call *c = ebb__t_send_call(s, x->id, "signal");
    c->dedup = id;
    return ebb__t_ask(s, c, expected, EBB_SITE);
}

static ebb_status test_a_signal_with_a_known_dedup_id_is_not_enqueued(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(dedup(s, &x, "one", EBB_OK));
    TRY(dedup(s, &x, "one", EBB_OK));
    TRY(ebb__t_has(s, &x, 0, 0, 1));
    TRY(ebb__t_take(s, &x));
    TRY(ebb__t_commit(s, &x, ebb__t_turn(s, &x)));
    TRY(dedup(s, &x, "one", EBB_OK)); /* also after it was taken */
    return ebb__t_has(s, &x, 0, 0, 0);
}

static ebb_status test_dedup_ids_are_compared_as_a_whole(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(dedup(s, &x, "one", EBB_OK));
    TRY(dedup(s, &x, "On", EBB_OK));
    TRY(dedup(s, &x, "ONE", EBB_OK));
    TRY(dedup(s, &x, "", EBB_OK));
    TRY(dedup(s, &x, "", EBB_OK)); /* no dedup id */
    return ebb__t_has(s, &x, 0, 0, 5);
}

static ebb_status test_dedup_ids_are_of_one_instance(ebb__suite *s) {
    ebb__t_instance x, y;
    TRY(ebb__t_begin(s, "x", 0, &x));
    TRY(ebb__t_begin(s, "y", 0, &y));
    TRY(dedup(s, &x, "one", EBB_OK));
    TRY(dedup(s, &y, "one", EBB_OK));
    return ebb__t_has(s, &y, 0, 0, 1);
}

static ebb_status test_equal_signals_at_once_are_one(ebb__suite *s) {
    enum { MANY = 8 };
    ebb__t_instance x;
    ebb_provider_call *calls[MANY];
    TRY(ebb__t_begin(s, "a", 0, &x));
    for (int i = 0; i < MANY; i++) {
        ebb_provider_send_call *c = ebb__t_send_call(s, x.id, "signal");
        c->dedup = "one";
        calls[i] = &c->call;
    }
    ASK_ALL(s, calls, MANY, EBB_OK);
    return ebb__t_has(s, &x, 0, 0, 1);
}

static ebb_status test_a_signal_past_the_limit_is_refused(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->unread = EBB_DURABLE_SIGNALS - 2;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_send(s, &x, "last but one"));
    TRY(ebb__t_send(s, &x, "last"));
    TRY(dedup(s, &x, "new", EBB_ERR_LIMIT));
    TRY(ebb__t_take(s, &x));
    c = ebb__t_turn(s, &x);
    c->unread = 0; /* it has taken them */
    TRY(ebb__t_commit(s, &x, c));
    TRY(dedup(s, &x, "new", EBB_OK)); /* the refused one has left nothing behind */
    return ebb__t_has(s, &x, 0, 0, 1);
}

/* ---- a signal that starts ------------------------------------------------------------------------------------------------ */

static ebb_provider_send_call *send_start(ebb__suite *s, const ebb_provider_start_call *start) {
    ebb_provider_send_call *c = ebb__t_send_call(s, start->id, "signal");
    c->start = start;
    return c;
}

/* Its inputs: it is no call of its own. */
static ebb_provider_start_call inputs(ebb__suite *s, const char *what, bool reuse) {
    return (ebb_provider_start_call){.id = ebb__t_id(s, what),
                                     .name = s->name,
                                     .version = 1,
                                     .input = ebb_blob_text("{}"),
                                     .message = ebb_blob_text("start"),
                                     .reuse = reuse};
}

static ebb_status test_a_signal_starts_its_instance(ebb__suite *s) {
    ebb_provider_start_call start = inputs(s, "a", false);
    ASK(s, send_start(s, &start), EBB_OK);
    ebb__t_instance x = {.id = start.id};
    const ebb_provider_instance_row *row;
    TRY(ebb__t_row(s, &x, &row));
    x.key = row->key;
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 2);
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_START);
    SAME_BLOB(s, x.item->messages[1].body, ebb_blob_text("signal"));
    return EBB_OK;
}

static ebb_status test_a_signal_starts_nothing_that_runs(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    ebb_provider_start_call start = inputs(s, "a", true);
    ASK(s, send_start(s, &start), EBB_OK);
    TRY(ebb__t_take(s, &x));
    SAME(s, x.execution, 1);
    SAME(s, x.item->messages_n, 1);
    return EBB_OK;
}

static ebb_status test_a_signal_starts_an_ended_instance_again(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_COMPLETED));
    ebb_provider_start_call start = inputs(s, "a", false);
    ASK(s, send_start(s, &start), EBB_ERR_UNKNOWN_INSTANCE);
    start.reuse = true;
    ASK(s, send_start(s, &start), EBB_OK);
    TRY(ebb__t_take(s, &x));
    SAME(s, x.execution, 2);
    SAME(s, x.item->messages_n, 2);
    return EBB_OK;
}

static ebb_status test_a_signal_that_starts_has_its_dedup_id(ebb__suite *s) {
    ebb_provider_start_call start = inputs(s, "a", false);
    const ebb__t_instance x = {.id = start.id};
    for (int i = 0; i < 2; i++) {
        ebb_provider_send_call *c = send_start(s, &start);
        c->dedup = "one";
        ASK(s, c, EBB_OK);
    }
    return ebb__t_has(s, &x, 0, 0, 2);
}

const ebb__suite_case ebb__suite_starts[] = {
    CASE(test_a_start_answers_with_its_instance, "every field of a new instance"),
    CASE(test_the_same_start_twice_is_one_instance, "id, name and input make a start idempotent"),
    CASE(test_starts_at_once_are_one_instance, "equal starts at the same time make one instance"),
    CASE(test_a_start_with_another_name_exists, "EBB_ERR_EXISTS, with a text"),
    CASE(test_a_start_with_another_input_exists, "EBB_ERR_EXISTS, with a text"),
    CASE(test_keys_are_not_used_again, "the id of a deleted instance is free, its key is not"),
    CASE(test_ids_differ_in_case, "ids are compared byte by byte: case"),
    CASE(test_ids_differ_in_blanks, "ids are compared byte by byte: blanks"),
    CASE(test_ids_with_signs_of_sql_are_only_ids, "quotes, wildcards and parameters in ids"),
    CASE(test_ids_are_bytes_of_utf_8, "ids are not normalised"),
    CASE(test_an_id_of_255_bytes_is_kept, "the longest id, to its last byte"),
    CASE(test_an_input_of_no_bytes_is_kept, "an input of 0 bytes"),
    CASE(test_an_input_of_one_byte_of_0_is_kept, "an input of one byte, which is 0"),
    CASE(test_an_input_of_every_byte_is_kept, "an input with every byte in it"),
    CASE(test_an_input_of_2_mib_is_kept, "the largest input"),
    CASE(test_a_signal_of_no_bytes_is_kept, "a signal of 0 bytes"),
    CASE(test_a_signal_of_2_mib_is_kept, "the largest signal"),
    CASE(test_a_signal_to_nobody_is_an_error, "EBB_ERR_UNKNOWN_INSTANCE, with a text"),
    CASE(test_a_signal_to_an_ended_instance_is_an_error, "EBB_ERR_UNKNOWN_INSTANCE, and nothing is enqueued"),
    CASE(test_a_signal_with_a_known_dedup_id_is_not_enqueued, "a dedup id holds for the whole execution"),
    CASE(test_dedup_ids_are_compared_as_a_whole, "dedup ids are compared byte by byte; \"\" is none"),
    CASE(test_dedup_ids_are_of_one_instance, "two instances have their own dedup ids"),
    CASE(test_equal_signals_at_once_are_one, "equal signals at the same time are one"),
    CASE(test_a_signal_past_the_limit_is_refused,
         "10,000 signals, those that were read but not taken included"),
    CASE(test_a_signal_starts_its_instance, "`start` and the signal are one transaction"),
    CASE(test_a_signal_starts_nothing_that_runs, "`start` of an instance that runs is not used"),
    CASE(test_a_signal_starts_an_ended_instance_again, "`start` of an ended instance needs `reuse`"),
    CASE(test_a_signal_that_starts_has_its_dedup_id,
         "the dedup id counts for the execution that was started"),
    LAST,
};
