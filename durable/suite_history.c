/* Cases of histories and ends: what was committed is read as it was, in pages; how an instance ends. */
#include "durable/suite_case.h"

/* ---- histories ------------------------------------------------------------------------------------------------------------ */

static ebb_status body_of(ebb__suite *s, size_t n) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    const ebb_blob body = ebb__t_bytes(s, n);
    CHECK(s, body.at != NULL);
    c->body = body;
    TRY(ebb__t_commit(s, &x, c));
    ebb_provider_history_call *h = ebb__t_new(s, EBB_PROVIDER_HISTORY);
    h->id = x.id;
    h->most = 10;
    ASK(s, h, EBB_OK);
    SAME(s, h->turns_n, 1);
    SAME_BLOB(s, h->turns[0].body, body);
    return EBB_OK;
}

static ebb_status test_a_turn_of_no_bytes_is_kept(ebb__suite *s) {
    return body_of(s, 0);
}
static ebb_status test_a_turn_of_one_byte_of_0_is_kept(ebb__suite *s) {
    return body_of(s, 1);
}
static ebb_status test_a_turn_of_64_kib_is_kept(ebb__suite *s) {
    return body_of(s, 65536);
}
static ebb_status test_a_turn_of_4_mib_is_kept(ebb__suite *s) {
    return body_of(s, 4u << 20);
}

static ebb_status many_turns(ebb__suite *s, ebb__t_instance *x, uint64_t n) {
    TRY(ebb__t_start(s, "a", x));
    TRY(ebb__t_take(s, x));
    while (x->turn < n) {
        ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
        c->body = ebb__t_bytes(s, 100 + (size_t)x->turn);
        c->at = 5000 + x->turn;
        TRY(ebb__t_commit(s, x, c));
    }
    return EBB_OK;
}

static ebb_provider_history_call *history(ebb__suite *s, const ebb__t_instance *x, uint64_t after,
                                          uint32_t most, uint64_t bytes) {
    ebb_provider_history_call *h = ebb__t_new(s, EBB_PROVIDER_HISTORY);
    h->key = x->key;
    h->after = after;
    h->most = most;
    h->bytes = bytes;
    return h;
}

static ebb_status test_a_history_is_read_in_pages(ebb__suite *s) {
    ebb__t_instance x;
    uint64_t after = 0;
    TRY(many_turns(s, &x, 25));
    for (int page = 0; page < 3; page++) {
        ebb_provider_history_call *h = history(s, &x, after, 10, 0);
        h->bytes = 1u << 30;
        ASK(s, h, EBB_OK);
        SAME(s, h->turns_n, page < 2 ? 10 : 5);
        SAME(s, h->more, page < 2);
        for (size_t i = 0; i < h->turns_n; i++) {
            SAME(s, h->turns[i].turn, ++after);
            SAME(s, h->turns[i].execution, 1);
            SAME(s, h->turns[i].at, 5000 + after - 1);
            SAME(s, h->turns[i].body.n, 100 + after - 1);
        }
    }
    return EBB_OK;
}

static ebb_status test_a_page_of_history_is_bounded_in_bytes(ebb__suite *s) {
    ebb__t_instance x;
    TRY(many_turns(s, &x, 10));
    ebb_provider_history_call *h = history(s, &x, 0, 100, 350);
    ASK(s, h, EBB_OK);
    CHECK(s, h->turns_n >= 1 && h->turns_n <= 5);
    SAME(s, h->more, true);
    h = history(s, &x, 0, 100, 1);
    ASK(s, h, EBB_OK);
    SAME(s, h->turns_n, 1);
    return EBB_OK;
}

static ebb_status test_a_history_behind_its_end_is_empty(ebb__suite *s) {
    ebb__t_instance x;
    TRY(many_turns(s, &x, 2));
    ebb_provider_history_call *h = history(s, &x, 2, 10, 1u << 20);
    ASK(s, h, EBB_OK);
    SAME(s, h->turns_n, 0);
    SAME(s, h->more, false);
    return EBB_OK;
}

static ebb_status test_a_history_is_seen_by_the_other_store(ebb__suite *s) {
    ebb__t_instance x;
    TRY(many_turns(s, &x, 3));
    ebb_provider_history_call *h = ebb__t_new_other(s, EBB_PROVIDER_HISTORY);
    h->id = x.id;
    h->most = 10;
    ASK(s, h, EBB_OK);
    SAME(s, h->turns_n, 3);
    return EBB_OK;
}

static ebb_status test_a_hundred_turns_follow_each_other(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_instance_row *row;
    TRY(many_turns(s, &x, 100));
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->turn, 100);
    return EBB_OK;
}

/* ---- ends ------------------------------------------------------------------------------------------------------------------- */

static ebb_status ends(ebb__suite *s, ebb_instance_state state) {
    ebb__t_instance x;
    const ebb_provider_instance_row *row;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    const ebb_blob result = ebb__t_bytes(s, 100);
    c->ends = state;
    c->result = result;
    c->text = "because";
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->state, state);
    SAME_BLOB(s, row->result, result);
    CHECK(s, strcmp(row->text, "because") == 0);
    CHECK(s, row->ended >= row->started && row->started > 0);
    ASK(s, ebb__t_send_call(s, x.id, "late"), EBB_ERR_UNKNOWN_INSTANCE);
    return ebb__t_idle(s, &x);
}

static ebb_status test_an_instance_completes(ebb__suite *s) {
    return ends(s, EBB_INSTANCE_COMPLETED);
}
static ebb_status test_an_instance_fails(ebb__suite *s) {
    return ends(s, EBB_INSTANCE_FAILED);
}
static ebb_status test_an_instance_is_cancelled(ebb__suite *s) {
    return ends(s, EBB_INSTANCE_CANCELLED);
}
static ebb_status test_an_instance_is_terminated(ebb__suite *s) {
    return ends(s, EBB_INSTANCE_TERMINATED);
}

static ebb_status test_messages_of_an_ended_instance_are_not_given(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_poke(s, &x));
    TRY(ebb__t_send(s, &x, "meanwhile"));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_COMPLETED));
    return ebb__t_idle(s, &x);
}

static ebb_status test_the_first_turn_chooses_a_version(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_instance_row *row;
    ebb_provider_start_call *start = ebb__t_start_call(s, "a");
    start->version = 0;
    ASK(s, start, EBB_OK);
    SAME(s, start->row.version, 0);
    x = (ebb__t_instance){.id = start->id, .key = start->row.key};
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->version, 0);
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->name = s->name;
    c->version = 2;
    c->semantics = 7;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->version, 2);
    SAME(s, row->semantics, 7);
    return EBB_OK;
}

const ebb__suite_case ebb__suite_histories[] = {
    CASE(test_a_turn_of_no_bytes_is_kept, "a body of 0 bytes"),
    CASE(test_a_turn_of_one_byte_of_0_is_kept, "a body of one byte, which is 0"),
    CASE(test_a_turn_of_64_kib_is_kept, "a body of 64 KiB with every byte in it"),
    CASE(test_a_turn_of_4_mib_is_kept, "a body of 4 MiB"),
    CASE(test_a_history_is_read_in_pages, "pages follow each other, in order and whole"),
    CASE(test_a_page_of_history_is_bounded_in_bytes, "a page ends near its bytes, and has at least one turn"),
    CASE(test_a_history_behind_its_end_is_empty, "a page behind the last turn is empty"),
    CASE(test_a_history_is_seen_by_the_other_store, "a commit is visible to every store on the data"),
    CASE(test_a_hundred_turns_follow_each_other, "an instance has 100 turns"),
    CASE(test_an_instance_completes, "the end Completed, with result and text"),
    CASE(test_an_instance_fails, "the end Failed, with result and text"),
    CASE(test_an_instance_is_cancelled, "the end Cancelled, with result and text"),
    CASE(test_an_instance_is_terminated, "the end Terminated, with result and text"),
    CASE(test_messages_of_an_ended_instance_are_not_given, "an ended instance has no turns"),
    CASE(test_the_first_turn_chooses_a_version, "an instance without a version gets that of its first turn"),
    LAST,
};
