/* Cases of errors: what is not there, and what a failure means for its caller. */
#include "durable/suite_case.h"

static ebb_status test_statuses_have_their_classes(ebb__suite *s) {
    SAME(s, ebb_provider_class_of(EBB_OK), EBB_PROVIDER_OK);
    SAME(s, ebb_provider_class_of(EBB_ERR_UNAVAILABLE), EBB_PROVIDER_RETRYABLE);
    SAME(s, ebb_provider_class_of(EBB_ERR_BUSY), EBB_PROVIDER_RETRYABLE);
    SAME(s, ebb_provider_class_of(EBB_ERR_NOMEM), EBB_PROVIDER_RETRYABLE);
    const ebb_status permanent[] = {EBB_ERR_GONE,    EBB_ERR_FENCED, EBB_ERR_STORE,
                                    EBB_ERR_EXISTS,  EBB_ERR_LIMIT,  EBB_ERR_UNKNOWN_INSTANCE,
                                    EBB_ERR_CORRUPT, EBB_ERR_SCHEMA, EBB_ERR_CLOSED};
    for (size_t i = 0; i < sizeof permanent / sizeof permanent[0]; i++)
        SAME(s, ebb_provider_class_of(permanent[i]), EBB_PROVIDER_PERMANENT);
    return EBB_OK;
}

static ebb_status test_an_unknown_instance_can_not_be_read(ebb__suite *s) {
    ebb_provider_instance_call *c = ebb__t_new(s, EBB_PROVIDER_INSTANCE);
    c->id = ebb__t_id(s, "none");
    ASK(s, c, EBB_ERR_UNKNOWN_INSTANCE);
    CHECK(s, strstr(c->call.text, "none") != NULL);
    return EBB_OK;
}

static ebb_status test_a_value_of_an_unknown_instance_is_an_error(ebb__suite *s) {
    ebb_provider_value_call *c = ebb__t_new(s, EBB_PROVIDER_VALUE);
    c->id = ebb__t_id(s, "none");
    c->key = "key";
    return ebb__t_ask(s, c, EBB_ERR_UNKNOWN_INSTANCE, EBB_SITE);
}

static ebb_status test_a_count_of_an_unknown_instance_is_an_error(ebb__suite *s) {
    ebb_provider_outstanding_call *c = ebb__t_new(s, EBB_PROVIDER_OUTSTANDING);
    c->id = ebb__t_id(s, "none");
    return ebb__t_ask(s, c, EBB_ERR_UNKNOWN_INSTANCE, EBB_SITE);
}

static ebb_status test_a_history_of_an_unknown_instance_is_an_error(ebb__suite *s) {
    ebb_provider_history_call *c = ebb__t_new(s, EBB_PROVIDER_HISTORY);
    c->id = ebb__t_id(s, "none");
    c->most = 10;
    return ebb__t_ask(s, c, EBB_ERR_UNKNOWN_INSTANCE, EBB_SITE);
}

static ebb_status test_a_failure_has_a_text(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->turn = 9;
    ASK(s, c, EBB_ERR_FENCED);
    CHECK(s, c->call.text[0] != 0);
    const ebb_provider_work_item row = {
        .token = ebb__t_token(s), .key = x.key, .execution = 1, .activity = 1};
    ebb_provider_ack_work_call *w = ebb__t_done(s, 0, &row, "late");
    ASK(s, w, EBB_ERR_GONE);
    CHECK(s, w->call.text[0] != 0);
    return EBB_OK;
}

static ebb_status test_a_success_has_no_text(ebb__suite *s) {
    ebb_provider_start_call *c = ebb__t_start_call(s, "a");
    ASK(s, c, EBB_OK);
    CHECK(s, c->call.text[0] == 0);
    return EBB_OK;
}

static ebb_status test_a_text_has_no_payload(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->turn = 9;
    c->body = ebb_blob_text("four0four1secret");
    ASK(s, c, EBB_ERR_FENCED);
    CHECK(s, strstr(c->call.text, "secret") == NULL);
    ebb_provider_start_call *start = ebb__t_start_call(s, "a");
    start->input = ebb_blob_text("four0four1secret");
    ASK(s, start, EBB_ERR_EXISTS);
    CHECK(s, strstr(start->call.text, "secret") == NULL);
    return EBB_OK;
}

static ebb_status test_failures_leave_the_store_usable(ebb__suite *s) {
    ebb__t_instance x;
    for (int i = 0; i < 50; i++) {
        ebb_provider_send_call *c = ebb__t_send_call(s, ebb__t_id(s, "none"), "signal");
        ASK(s, c, EBB_ERR_UNKNOWN_INSTANCE);
    }
    return ebb__t_begin(s, "a", 1, &x);
}

static ebb_status test_failures_and_successes_at_once_keep_apart(ebb__suite *s) {
    enum { MANY = 40 };
    ebb__t_instance x;
    ebb_provider_call *calls[MANY];
    TRY(ebb__t_begin(s, "a", 0, &x));
    for (int i = 0; i < MANY; i++)
        calls[i] = &ebb__t_send_call(s, i % 2 == 0 ? x.id : ebb__t_id(s, "none"), "signal")->call;
    TRY(ebb__t_ask_each(s, calls, MANY));
    for (int i = 0; i < MANY; i++) SAME(s, calls[i]->status, i % 2 == 0 ? EBB_OK : EBB_ERR_UNKNOWN_INSTANCE);
    return ebb__t_has(s, &x, 0, 0, MANY / 2);
}

static ebb_status test_a_fetch_takes_no_payload_by_itself(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    TRY(ebb__t_has(s, &x, 0, 0, 1)); /* it stays until it is acked */
    return EBB_OK;
}

const ebb__suite_case ebb__suite_errors[] = {
    CASE(test_statuses_have_their_classes, "which statuses are worth another attempt"),
    CASE(test_an_unknown_instance_can_not_be_read, "EBB_ERR_UNKNOWN_INSTANCE, and the text has the id"),
    CASE(test_a_value_of_an_unknown_instance_is_an_error, "EBB_ERR_UNKNOWN_INSTANCE"),
    CASE(test_a_count_of_an_unknown_instance_is_an_error, "EBB_ERR_UNKNOWN_INSTANCE"),
    CASE(test_a_history_of_an_unknown_instance_is_an_error, "EBB_ERR_UNKNOWN_INSTANCE"),
    CASE(test_a_failure_has_a_text, "a refused ack says what was refused"),
    CASE(test_a_success_has_no_text, "a call that is OK has no text"),
    CASE(test_a_text_has_no_payload, "no text has bytes of a body or an input"),
    CASE(test_failures_leave_the_store_usable, "50 failures, and work goes on"),
    CASE(test_failures_and_successes_at_once_keep_apart, "of 40 signals at the same time half are refused"),
    CASE(test_a_fetch_takes_no_payload_by_itself, "messages stay in the inbox until their ack"),
    LAST,
};
