/* Cases of work: the row is the activity. Claimed by a token, ended by its row, cancelled by its deletion. */
#include "durable/suite_case.h"

static ebb_status test_ack_work_item_none_deletes_without_enqueue(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    ASK(s, ebb__t_done(s, 0, w, NULL), EBB_OK);
    TRY(ebb__t_has(s, &x, 0, 0, 0));
    return ebb__t_idle(s, &x);
}

static ebb_status test_ack_orchestration_item_deletes_cancelled_activities(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    const ebb_provider_cancelled gone[] = {{1, EBB_CANCEL_RACE_LOST}, {3, EBB_CANCEL_RACE_LOST}};
    TRY(ebb__t_begin(s, "a", 3, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->cancelled = gone;
    c->cancelled_n = 2;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_has(s, &x, 1, 0, 0));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    SAME(s, w->activity, 2);
    return EBB_OK;
}

static ebb_status cancel_one(ebb__suite *s, ebb__t_instance *x, uint64_t activity) {
    const ebb_provider_cancelled gone = {activity, EBB_CANCEL_RACE_LOST};
    TRY(ebb__t_poke(s, x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
    c->cancelled = &gone;
    c->cancelled_n = 1;
    return ebb__t_commit(s, x, c);
}

static ebb_status renews(ebb__suite *s, size_t node, ebb_provider_token token, bool gone) {
    ebb_provider_renew_call *c = ebb__t_renew(s, node, &token, 1, EBB__T_LONG);
    ASK(s, c, EBB_OK);
    SAME(s, c->lost, false);
    SAME(s, c->gone_n, gone);
    if (gone) CHECK(s, ebb__token_is(c->gone[0], token));
    return EBB_OK;
}

static ebb_status test_cancellation_of_locked_activity_causes_renewal_failure(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 2, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 2, &w));
    TRY(cancel_one(s, &x, w[0].activity));
    TRY(renews(s, 0, w[0].token, true));
    return renews(s, 0, w[1].token, false);
}

static ebb_status test_cancellation_of_unlocked_activity_removes_from_queue(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(cancel_one(s, &x, 1));
    TRY(ebb__t_has(s, &x, 0, 0, 0));
    return ebb__t_claim(s, 0, EBB__T_LONG, 0, &w);
}

static ebb_status test_ack_work_item_fails_on_cancelled_row(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    TRY(cancel_one(s, &x, 1));
    ASK(s, ebb__t_done(s, 0, w, "late"), EBB_ERR_GONE);
    TRY(ebb__t_has(s, &x, 0, 0, 0));
    return ebb__t_idle(s, &x);
}

static ebb_status test_ack_work_item_succeeds_if_row_exists(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    ebb_provider_ack_work_call *c = ebb__t_done(s, 0, w, "charged");
    ASK(s, c, EBB_OK);
    SAME(s, c->dropped, false);
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->messages_n, 1);
    SAME(s, x.item->messages[0].at.kind, EBB_PROVIDER_MESSAGE_ACTIVITY);
    SAME(s, x.item->messages[0].step, 1);
    SAME(s, x.item->messages[0].execution, 1);
    SAME_BLOB(s, x.item->messages[0].body, ebb_blob_text("charged"));
    return EBB_OK;
}

static ebb_status cancel_mass(ebb__suite *s, size_t n, bool by_name) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", n, &x));
    TRY(ebb__t_has(s, &x, n, 0, 0));
    ebb_provider_cancelled *gone = ebb__arena_alloc(&s->arena, n * sizeof *gone);
    CHECK(s, gone != NULL);
    for (size_t i = 0; i < n; i++) gone[i] = (ebb_provider_cancelled){i + 1, EBB_CANCEL_USER};
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->cancelled = by_name ? gone : NULL;
    c->cancelled_n = by_name ? n : 0;
    c->all_work = !by_name;
    c->cause = EBB_CANCEL_USER;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_has(s, &x, 0, 0, 0));
    return ebb__t_claim(s, 0, EBB__T_LONG, 0, &w);
}

static ebb_status test_mass_cancellation_deletes_all_activities(ebb__suite *s) {
    return cancel_mass(s, 1000, true);
}

static ebb_status test_ten_thousand_activities_are_cancelled_in_one_ack(ebb__suite *s) {
    return cancel_mass(s, EBB_DURABLE_ACTIONS, false);
}

static ebb_status test_work_carries_what_was_asked(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    const ebb_provider_work work = {.activity = 77,
                                    .queue = s->queue,
                                    .session = "",
                                    .name = "mail@night",
                                    .attempt = 3,
                                    .input = ebb__t_bytes(s, 300)};
    c->work = &work;
    c->work_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    SAME(s, w->key, x.key);
    SAME(s, w->execution, 1);
    SAME(s, w->activity, 77);
    SAME(s, w->attempt, 3);
    SAME(s, w->attempts, 1);
    CHECK(s, strcmp(w->name, "mail@night") == 0);
    CHECK(s, strcmp(w->id, x.id) == 0);
    SAME_BLOB(s, w->input, work.input);
    return EBB_OK;
}

static ebb_status test_work_is_given_once(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 3, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 3, &w));
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 0, &w));
    return ebb__t_claim(s, 0, EBB__T_LONG, 0, &w);
}

static ebb_status test_work_of_two_fetches_at_once_is_given_once(ebb__suite *s) {
    ebb__t_instance x;
    enum { ROWS = 20 };
    TRY(ebb__t_begin(s, "a", ROWS, &x));
    ebb_provider_fetch_work_call *a = ebb__t_work_call(s, 0, EBB__T_LONG, 15);
    ebb_provider_fetch_work_call *b = ebb__t_work_call(s, 1, EBB__T_LONG, 15);
    ebb_provider_call *both[] = {&a->call, &b->call};
    ASK_ALL(s, both, 2, EBB_OK);
    for (size_t i = 0; i < a->items_n; i++)
        for (size_t k = 0; k < b->items_n; k++) CHECK(s, a->items[i].activity != b->items[k].activity);
    CHECK(s, a->items_n + b->items_n <= ROWS);
    CHECK(s, a->items_n > 0 || b->items_n > 0);
    return EBB_OK;
}

static ebb_status test_work_tokens_are_all_different(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 10, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 10, &w));
    for (size_t i = 0; i < 10; i++) {
        CHECK(s, !ebb__token_is_none(w[i].token));
        for (size_t k = 0; k < i; k++) CHECK(s, !ebb__token_is(w[i].token, w[k].token));
    }
    return EBB_OK;
}

/* One claimed row, whose ack is changed by `spoil` and has to be refused; the right one is taken afterwards. */
static ebb_status refused(ebb__suite *s, void (*spoil)(ebb__suite *s, ebb_provider_ack_work_call *c)) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    ebb_provider_ack_work_call *c = ebb__t_done(s, 0, w, "charged");
    spoil(s, c);
    ASK(s, c, EBB_ERR_GONE);
    TRY(ebb__t_has(s, &x, 1, 0, 0));
    ASK(s, ebb__t_done(s, 0, w, "charged"), EBB_OK);
    return ebb__t_has(s, &x, 0, 0, 1);
}

static void guess_token(ebb__suite *s, ebb_provider_ack_work_call *c) {
    c->token = ebb__t_token(s);
}
static void no_token(ebb__suite *s, ebb_provider_ack_work_call *c) {
    (void)s;
    c->token = (ebb_provider_token){0, 0};
}
static void half_token(ebb__suite *s, ebb_provider_ack_work_call *c) {
    (void)s;
    c->token.lo ^= 1;
}
static void other_half_token(ebb__suite *s, ebb_provider_ack_work_call *c) {
    (void)s;
    c->token.hi ^= 1;
}
static void other_activity(ebb__suite *s, ebb_provider_ack_work_call *c) {
    (void)s;
    c->activity++;
}
static void other_execution(ebb__suite *s, ebb_provider_ack_work_call *c) {
    (void)s;
    c->execution++;
}
static void other_instance(ebb__suite *s, ebb_provider_ack_work_call *c) {
    (void)s;
    c->key += 1000000;
}

static ebb_status test_work_ack_with_a_token_never_given_is_gone(ebb__suite *s) {
    return refused(s, guess_token);
}
static ebb_status test_work_ack_without_a_token_is_gone(ebb__suite *s) {
    return refused(s, no_token);
}
static ebb_status test_work_ack_compares_the_low_half_of_a_token(ebb__suite *s) {
    return refused(s, half_token);
}
static ebb_status test_work_ack_compares_the_high_half_of_a_token(ebb__suite *s) {
    return refused(s, other_half_token);
}
static ebb_status test_work_ack_of_another_activity_is_gone(ebb__suite *s) {
    return refused(s, other_activity);
}
static ebb_status test_work_ack_of_another_execution_is_gone(ebb__suite *s) {
    return refused(s, other_execution);
}
static ebb_status test_work_ack_of_another_instance_is_gone(ebb__suite *s) {
    return refused(s, other_instance);
}

static ebb_status test_work_ack_of_an_unclaimed_row_is_gone(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 1, &x));
    const ebb_provider_work_item row = {.key = x.key, .execution = 1, .activity = 1};
    ASK(s, ebb__t_done(s, 0, &row, "charged"), EBB_ERR_GONE);
    return ebb__t_has(s, &x, 1, 0, 0);
}

static ebb_status test_work_ack_again_with_another_ack_id_is_gone(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    ASK(s, ebb__t_done(s, 0, w, "charged"), EBB_OK);
    ASK(s, ebb__t_done(s, 0, w, "charged"), EBB_ERR_GONE);
    return ebb__t_has(s, &x, 0, 0, 1);
}

static ebb_status repeat(ebb__suite *s, const ebb_provider_work_item *w, const char *message,
                         ebb_provider_token id, ebb_status expected) {
    ebb_provider_ack_work_call *c = ebb__t_done(s, 0, w, message);
    c->ack_id = id;
    return ebb__t_ask(s, c, expected, EBB_SITE);
}

static ebb_status test_work_ack_repeated_with_its_ack_id_is_ok(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    const ebb_provider_token id = ebb__t_token(s);
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    TRY(repeat(s, w, "charged", id, EBB_OK));
    TRY(repeat(s, w, "charged", id, EBB_OK));
    return ebb__t_has(s, &x, 0, 0, 1);
}

static ebb_status test_work_ack_repeated_after_its_message_was_read_is_gone(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    const ebb_provider_token id = ebb__t_token(s);
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    TRY(repeat(s, w, "charged", id, EBB_OK));
    TRY(ebb__t_take(s, &x));
    TRY(ebb__t_commit(s, &x, ebb__t_turn(s, &x)));
    TRY(repeat(s, w, "charged", id, EBB_ERR_GONE));
    return ebb__t_has(s, &x, 0, 0, 0);
}

static ebb_status test_work_ack_without_a_message_repeated_is_gone(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    const ebb_provider_token id = ebb__t_token(s);
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    TRY(repeat(s, w, NULL, id, EBB_OK));
    return repeat(s, w, NULL, id, EBB_ERR_GONE);
}

static ebb_status test_work_of_an_ended_instance_is_dropped_when_acked(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_COMPLETED)); /* a shielded call: its row stays */
    ebb_provider_ack_work_call *c = ebb__t_done(s, 0, w, "late");
    ASK(s, c, EBB_OK);
    SAME(s, c->dropped, true);
    return ebb__t_has(s, &x, 0, 0, 0);
}

static ebb_status test_work_of_a_suspended_instance_is_enqueued(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    ebb_provider_mark_call *m = ebb__t_new(s, EBB_PROVIDER_MARK);
    m->key = x.key;
    m->execution = 1;
    m->turn = 1;
    m->state = EBB_INSTANCE_SUSPENDED;
    m->text = "stop";
    ASK(s, m, EBB_OK);
    ebb_provider_ack_work_call *c = ebb__t_done(s, 0, w, "charged");
    ASK(s, c, EBB_OK);
    SAME(s, c->dropped, false);
    return ebb__t_has(s, &x, 0, 0, 1);
}

static ebb_status test_work_of_a_deleted_instance_is_gone(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 2, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 2, &w));
    ebb_provider_remove_call *r = ebb__t_new(s, EBB_PROVIDER_REMOVE);
    r->keys = &x.key;
    r->keys_n = 1;
    r->force = true;
    ASK(s, r, EBB_OK);
    ASK(s, ebb__t_done(s, 0, &w[0], "late"), EBB_ERR_GONE);
    return renews(s, 0, w[1].token, true);
}

static ebb_status test_abandoned_work_is_visible_at_once(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    const ebb_provider_token old = w->token;
    TRY(ebb__t_abandon(s, 0, old, 0));
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 1, &w));
    CHECK(s, !ebb__token_is(w->token, old));
    SAME(s, w->attempts, 1);
    return EBB_OK;
}

static ebb_status test_abandoned_work_is_visible_after_its_delay(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    TRY(ebb__t_abandon(s, 0, w->token, EBB__T_LEASE));
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 0, &w));
    ebb__t_lapse(s);
    return ebb__t_claim(s, 1, EBB__T_LONG, 1, &w);
}

static ebb_status test_abandoned_work_cannot_be_acked(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    TRY(ebb__t_abandon(s, 0, w->token, 0));
    ASK(s, ebb__t_done(s, 0, w, "late"), EBB_ERR_GONE);
    return ebb__t_has(s, &x, 1, 0, 0);
}

static ebb_status test_abandon_of_unknown_work_tokens_is_ignored(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 1, &w));
    TRY(ebb__t_abandon(s, 0, ebb__t_token(s), 0));
    TRY(ebb__t_abandon(s, 0, (ebb_provider_token){0, 0}, 0));
    return ebb__t_claim(s, 1, EBB__T_LONG, 0, &w);
}

static ebb_status test_a_fetch_of_work_gives_no_more_than_asked(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 10, &x));
    ebb_provider_fetch_work_call *c = ebb__t_work_call(s, 0, EBB__T_LONG, 4);
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 4);
    c = ebb__t_work_call(s, 0, EBB__T_LONG, 100);
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 6);
    return EBB_OK;
}

static ebb_status test_a_queue_gives_no_more_than_its_part(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_begin(s, "a", 10, &x));
    ebb_provider_fetch_work_call *c = ebb__t_work_call(s, 0, EBB__T_LONG, 3);
    c->most = 100;
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 3);
    return EBB_OK;
}

static ebb_status test_a_fetch_of_an_unknown_queue_is_empty(ebb__suite *s) {
    ebb_provider_work_item *w;
    return ebb__t_claim(s, 0, EBB__T_LONG, 0, &w);
}

static ebb_status test_a_fetch_of_work_keeps_to_its_instances(ebb__suite *s) {
    ebb__t_instance a, b;
    TRY(ebb__t_begin(s, "a", 2, &a));
    TRY(ebb__t_begin(s, "b", 2, &b));
    ebb_provider_fetch_work_call *c = ebb__t_work_call(s, 0, EBB__T_LONG, 100);
    c->only = &b.key;
    c->only_n = 1;
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 2);
    SAME(s, c->items[0].key, b.key);
    SAME(s, c->items[1].key, b.key);
    return EBB_OK;
}

/* ---- made as claimed --------------------------------------------------------------------------------------------- */

static ebb_status begin_claimed(ebb__suite *s, uint64_t lease, ebb__t_instance *x, ebb_provider_work *work) {
    TRY(ebb__t_start(s, "a", x));
    TRY(ebb__t_take(s, x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
    *work = *ebb__t_work(s, 1, 1);
    work->token = ebb__t_token(s);
    c->work = work;
    c->work_n = 1;
    c->lease = lease;
    return ebb__t_commit(s, x, c);
}

static ebb_status test_work_made_as_claimed_is_not_given(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work work;
    ebb_provider_work_item *w;
    ebb_provider_outstanding_call *o;
    TRY(begin_claimed(s, EBB__T_LONG, &x, &work));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 0, &w));
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 0, &w));
    TRY(ebb__t_left(s, &x, &o));
    SAME(s, o->work, 1);
    SAME(s, o->claimed, 1);
    return EBB_OK;
}

static ebb_status test_work_made_as_claimed_is_acked_by_its_token(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work work;
    TRY(begin_claimed(s, EBB__T_LONG, &x, &work));
    const ebb_provider_work_item row = {
        .token = work.token, .key = x.key, .execution = 1, .activity = work.activity};
    ASK(s, ebb__t_done(s, x.node, &row, "charged"), EBB_OK);
    return ebb__t_has(s, &x, 0, 0, 1);
}

static ebb_status test_work_made_as_claimed_charges_nothing_and_lapses(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work work;
    ebb_provider_work_item *w;
    TRY(begin_claimed(s, EBB__T_LEASE, &x, &work));
    ebb__t_lapse(s);
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 1, &w));
    SAME(s, w->attempts, 1);
    return EBB_OK;
}

/* ---- ended in a turn ------------------------------------------------------------------------------------------------- */

static ebb_status end_in_turn(ebb__suite *s, ebb__t_instance *x, const ebb_provider_work_done *done, size_t n,
                              ebb_status expected, size_t gone_at) {
    TRY(ebb__t_poke(s, x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
    c->done = done;
    c->done_n = n;
    c->work = ebb__t_work(s, 100, 1);
    c->work_n = 1;
    ASK(s, c, expected);
    if (expected != EBB_OK) SAME(s, c->gone_at, gone_at);
    return EBB_OK;
}

static ebb_status test_a_turn_ends_work(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 3, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 3, &w));
    const ebb_provider_work_done done[] = {{1, w[0].activity, w[0].token}, {1, w[2].activity, w[2].token}};
    TRY(end_in_turn(s, &x, done, 2, EBB_OK, 0));
    TRY(ebb__t_has(s, &x, 2, 0, 0));
    return renews(s, 0, w[1].token, false);
}

static ebb_status test_a_turn_that_ends_gone_work_changes_nothing(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 2, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 2, &w));
    const ebb_provider_work_done done[] = {{1, w[0].activity, w[0].token},
                                           {1, w[1].activity, ebb__t_token(s)}};
    TRY(end_in_turn(s, &x, done, 2, EBB_ERR_GONE, 1));
    TRY(ebb__t_has(s, &x, 2, 0, 1));
    return renews(s, 0, w[0].token, false);
}

static ebb_status test_a_turn_cannot_end_work_whose_lease_is_over(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LEASE, 1, &w));
    ebb__t_lapse(s);
    const ebb_provider_work_done done = {1, w->activity, w->token};
    TRY(end_in_turn(s, &x, &done, 1, EBB_ERR_GONE, 0));
    return ebb__t_has(s, &x, 1, 0, 1);
}

const ebb__suite_case ebb__suite_activities[] = {
    CASE(test_ack_work_item_none_deletes_without_enqueue, "an ack without a message deletes the row alone"),
    CASE(test_ack_orchestration_item_deletes_cancelled_activities,
         "the work in `cancelled` of a turn is gone with its commit, and no other"),
    CASE(test_cancellation_of_locked_activity_causes_renewal_failure,
         "the token of claimed work that was cancelled is gone at the next renewal"),
    CASE(test_cancellation_of_unlocked_activity_removes_from_queue, "cancelled work is given to nobody"),
    CASE(test_ack_work_item_fails_on_cancelled_row,
         "the ack of cancelled work is EBB_ERR_GONE and enqueues nothing"),
    CASE(test_ack_work_item_succeeds_if_row_exists, "the ack of held work enqueues its message"),
    CASE(test_mass_cancellation_deletes_all_activities, "one turn cancels 1,000 rows by name"),
    CASE(test_ten_thousand_activities_are_cancelled_in_one_ack, "one turn cancels 10,000 rows by all_work"),
    CASE(test_work_carries_what_was_asked, "work has its name, input, attempt, instance and number"),
    CASE(test_work_is_given_once, "claimed work is given to no other node, nor again to its own"),
    CASE(test_work_of_two_fetches_at_once_is_given_once, "two fetches at the same time share the rows"),
    CASE(test_work_tokens_are_all_different, "no two claims have one token, and none is 0"),
    CASE(test_work_ack_with_a_token_never_given_is_gone, "a guessed token ends nothing"),
    CASE(test_work_ack_without_a_token_is_gone, "a token of 0 ends nothing"),
    CASE(test_work_ack_compares_the_low_half_of_a_token, "all 128 bits count: the low ones"),
    CASE(test_work_ack_compares_the_high_half_of_a_token, "all 128 bits count: the high ones"),
    CASE(test_work_ack_of_another_activity_is_gone, "a token is for its activity alone"),
    CASE(test_work_ack_of_another_execution_is_gone, "a token is for its execution alone"),
    CASE(test_work_ack_of_another_instance_is_gone, "a token is for its instance alone"),
    CASE(test_work_ack_of_an_unclaimed_row_is_gone, "work that nobody has claimed can't be ended"),
    CASE(test_work_ack_again_with_another_ack_id_is_gone, "work ends once"),
    CASE(test_work_ack_repeated_with_its_ack_id_is_ok,
         "an ack with an unknown outcome may be repeated, and enqueues once"),
    CASE(test_work_ack_repeated_after_its_message_was_read_is_gone,
         "a repeated ack whose message was taken enqueues nothing"),
    CASE(test_work_ack_without_a_message_repeated_is_gone, "a repeated ack without a message finds no row"),
    CASE(test_work_of_an_ended_instance_is_dropped_when_acked,
         "the end of work for an ended instance is dropped"),
    CASE(test_work_of_a_suspended_instance_is_enqueued, "a suspended instance gets the ends of its work"),
    CASE(test_work_of_a_deleted_instance_is_gone, "deleting an instance deletes its claimed work"),
    CASE(test_abandoned_work_is_visible_at_once, "abandoned work is given at once, with a new token"),
    CASE(test_abandoned_work_is_visible_after_its_delay, "abandoned work with a delay is given after it"),
    CASE(test_abandoned_work_cannot_be_acked, "an abandon uses the token up"),
    CASE(test_abandon_of_unknown_work_tokens_is_ignored, "an abandon of unknown tokens does nothing"),
    CASE(test_a_fetch_of_work_gives_no_more_than_asked, "`most` bounds a fetch"),
    CASE(test_a_queue_gives_no_more_than_its_part, "the `most` of a queue bounds its part"),
    CASE(test_a_fetch_of_an_unknown_queue_is_empty, "a queue that nobody has named is empty"),
    CASE(test_a_fetch_of_work_keeps_to_its_instances, "`only` bounds a fetch to instances"),
    CASE(test_work_made_as_claimed_is_not_given, "work made with a token needs no fetch and gets none"),
    CASE(test_work_made_as_claimed_is_acked_by_its_token, "work made with a token is ended by it"),
    CASE(test_work_made_as_claimed_charges_nothing_and_lapses,
         "work made with a token lapses, and its first fetch is the first attempt"),
    CASE(test_a_turn_ends_work, "the work in `done` of a turn is gone with its commit"),
    CASE(test_a_turn_that_ends_gone_work_changes_nothing,
         "a turn with gone work is EBB_ERR_GONE, names it, and changes nothing"),
    CASE(test_a_turn_cannot_end_work_whose_lease_is_over, "a turn ends work only within its lease"),
    LAST,
};
