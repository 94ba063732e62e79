/* Cases of values and of the custom status: written with a turn, read from outside. */
#include "durable/suite_case.h"

static ebb_status set(ebb__suite *s, ebb__t_instance *x, const ebb_provider_value *values, size_t n) {
    if (x->item == NULL) TRY(ebb__t_poke(s, x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
    c->values = values;
    c->values_n = n;
    return ebb__t_commit(s, x, c);
}

static ebb_status is(ebb__suite *s, const ebb__t_instance *x, const char *key, const char *expected) {
    ebb_provider_value_call *c = ebb__t_new(s, EBB_PROVIDER_VALUE);
    c->id = x->id;
    c->key = key;
    ASK(s, c, EBB_OK);
    if (expected == NULL) {
        CHECK(s, c->value.at == NULL);
        return EBB_OK;
    }
    CHECK(s, c->value.at != NULL);
    SAME_BLOB(s, c->value, ebb_blob_text(expected));
    return EBB_OK;
}

static ebb_status test_a_value_is_set_and_replaced(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_value one = {"key", ebb_blob_text("one")}, two = {"key", ebb_blob_text("two")};
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(is(s, &x, "key", NULL));
    TRY(set(s, &x, &one, 1));
    TRY(is(s, &x, "key", "one"));
    TRY(set(s, &x, &two, 1));
    return is(s, &x, "key", "two");
}

static ebb_status test_a_value_is_removed(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_value values[] = {{"a", ebb_blob_text("1")}, {"b", ebb_blob_text("2")}};
    const ebb_provider_value gone[] = {{"a", {NULL, 0}}, {"never", {NULL, 0}}};
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(set(s, &x, values, 2));
    TRY(set(s, &x, gone, 2));
    TRY(is(s, &x, "a", NULL));
    return is(s, &x, "b", "2");
}

static ebb_status test_an_empty_value_is_a_value(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_value value = {"key", {"", 0}};
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(set(s, &x, &value, 1));
    return is(s, &x, "key", "");
}

static ebb_status test_values_of_one_turn_apply_in_order(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_value values[] = {{"key", ebb_blob_text("1")},
                                         {"key", {NULL, 0}},
                                         {"key", ebb_blob_text("3")},
                                         {"other", ebb_blob_text("1")},
                                         {"other", {NULL, 0}}};
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(set(s, &x, values, 5));
    TRY(is(s, &x, "key", "3"));
    return is(s, &x, "other", NULL);
}

static ebb_status test_values_are_of_one_instance(ebb__suite *s) {
    ebb__t_instance x, y;
    const ebb_provider_value value = {"key", ebb_blob_text("x")};
    TRY(ebb__t_begin(s, "x", 0, &x));
    TRY(ebb__t_begin(s, "y", 0, &y));
    TRY(set(s, &x, &value, 1));
    return is(s, &y, "key", NULL);
}

static ebb_status test_keys_are_compared_byte_by_byte(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_value value = {"key", ebb_blob_text("x")};
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(set(s, &x, &value, 1));
    TRY(is(s, &x, "Key", NULL));
    TRY(is(s, &x, "key ", NULL));
    TRY(is(s, &x, "ke", NULL));
    return is(s, &x, "%", NULL);
}

static ebb_status test_a_large_value_of_every_byte_is_kept(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_value value = {"key", ebb__t_bytes(s, 262000)};
    CHECK(s, value.value.at != NULL);
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(set(s, &x, &value, 1));
    ebb_provider_value_call *c = ebb__t_new_other(s, EBB_PROVIDER_VALUE);
    c->id = x.id;
    c->key = "key";
    ASK(s, c, EBB_OK);
    SAME_BLOB(s, c->value, value.value);
    return EBB_OK;
}

static ebb_status test_a_thousand_values_are_set_in_one_turn(ebb__suite *s) {
    enum { MANY = EBB_DURABLE_VALUES };
    ebb__t_instance x;
    ebb_provider_value *values = ebb__arena_alloc(&s->arena, MANY * sizeof *values);
    char *keys = ebb__arena_alloc(&s->arena, MANY * 5);
    CHECK(s, values != NULL && keys != NULL);
    for (size_t i = 0; i < MANY; i++) {
        char *key = keys + 5 * i;
        for (size_t k = 0, n = i; k < 4; k++, n /= 10) key[3 - k] = (char)('0' + n % 10);
        key[4] = 0;
        values[i] = (ebb_provider_value){key, ebb_blob_text(key)};
    }
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(set(s, &x, values, MANY));
    TRY(is(s, &x, "0000", "0000"));
    return is(s, &x, "1023", "1023");
}

static ebb_status test_values_outlive_the_execution_and_the_end(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_value value = {"key", ebb_blob_text("kept")};
    const ebb_blob start = ebb_blob_text("start");
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(set(s, &x, &value, 1));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->next = &start;
    TRY(ebb__t_commit(s, &x, c));
    TRY(is(s, &x, "key", "kept"));
    TRY(ebb__t_take(s, &x));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_COMPLETED));
    return is(s, &x, "key", "kept");
}

/* ---- custom status -------------------------------------------------------------------------------------------------- */

static ebb_status set_custom(ebb__suite *s, ebb__t_instance *x, const ebb_blob *custom) {
    TRY(ebb__t_poke(s, x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
    c->custom = custom;
    return ebb__t_commit(s, x, c);
}

static ebb_status custom_is(ebb__suite *s, const ebb__t_instance *x, ebb_blob expected) {
    const ebb_provider_instance_row *row;
    TRY(ebb__t_row(s, x, &row));
    SAME_BLOB(s, row->custom, expected);
    return EBB_OK;
}

static ebb_status test_a_custom_status_is_set_and_stays(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_blob half = ebb_blob_text("half"), none = {"", 0};
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(custom_is(s, &x, none));
    TRY(set_custom(s, &x, &half));
    TRY(custom_is(s, &x, half));
    TRY(set_custom(s, &x, NULL)); /* as it is */
    TRY(custom_is(s, &x, half));
    TRY(set_custom(s, &x, &none));
    return custom_is(s, &x, none);
}

static ebb_status test_a_custom_status_is_in_a_list(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_blob half = ebb_blob_text("half");
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(set_custom(s, &x, &half));
    const ebb_instance_filter f = {.size = sizeof f, .prefix = x.id, .most = 10};
    ebb_provider_list_call *l = ebb__t_new(s, EBB_PROVIDER_LIST);
    l->filter = &f;
    ASK(s, l, EBB_OK);
    SAME(s, l->rows_n, 1);
    SAME_BLOB(s, l->rows[0].custom, half);
    return EBB_OK;
}

static ebb_status test_a_large_custom_status_is_kept(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_blob large = ebb__t_bytes(s, 1u << 20);
    CHECK(s, large.at != NULL);
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(set_custom(s, &x, &large));
    TRY(custom_is(s, &x, large));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_COMPLETED));
    return custom_is(s, &x, large);
}

const ebb__suite_case ebb__suite_values[] = {
    CASE(test_a_value_is_set_and_replaced, "a value is there with the commit of its turn"),
    CASE(test_a_value_is_removed, "a NULL removes a key, or nothing"),
    CASE(test_an_empty_value_is_a_value, "a value of 0 bytes is not a missing one"),
    CASE(test_values_of_one_turn_apply_in_order, "the last of a turn stands"),
    CASE(test_values_are_of_one_instance, "two instances have their own keys"),
    CASE(test_keys_are_compared_byte_by_byte, "case, blanks and prefixes"),
    CASE(test_a_large_value_of_every_byte_is_kept, "256 KiB, read by the other store"),
    CASE(test_a_thousand_values_are_set_in_one_turn, "1,024 keys"),
    CASE(test_values_outlive_the_execution_and_the_end, "continue-as-new and the end keep values"),
    CASE(test_a_custom_status_is_set_and_stays, "a turn without one leaves it"),
    CASE(test_a_custom_status_is_in_a_list, "a list has it"),
    CASE(test_a_large_custom_status_is_kept, "1 MiB, also after the end"),
    LAST,
};
