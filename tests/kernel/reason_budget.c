/* Reasons and budgets: the algebra they obey, and what becomes of messages. */
#include "tests/support/world.h"

enum { TRIPLES = 1000 * 1000 };

static uint64_t random_state;

static uint64_t random_u64(void) { /* splitmix64 */
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint32_t below(uint32_t n) {
    return (uint32_t)(random_u64() % n);
}

/* Few different values, so that ties on every field come up. */
static ebb_reason any_reason(void) {
    ebb_reason r = {0};
    r.kind = (uint8_t)below(EBB_CANCEL_KINDS);
    if (r.kind == EBB_CANCEL_NONE) return r;
    r.severity = (uint8_t)ebb_cancel_kind_severity((ebb_cancel_kind)r.kind);
    if (r.severity == 0) r.severity = (uint8_t)(1 + below(3));
    r.runtime = (uint8_t)below(2);
    r.origin = below(2);
    r.sequence = below(3);
    r.message[0] = (char)('a' + below(2));
    return r;
}

static bool same_reason(const ebb_reason *a, const ebb_reason *b) {
    return a->kind == b->kind && a->severity == b->severity && a->runtime == b->runtime &&
           a->origin == b->origin && a->sequence == b->sequence &&
           memcmp(a->message, b->message, sizeof a->message) == 0;
}

static void strengthen_is_commutative_associative_idempotent_and_total(void **state) {
    (void)state;
    random_state = 1;
    for (uint32_t i = 0; i < TRIPLES; i++) {
        ebb_reason a = any_reason(), b = any_reason(), c = any_reason();
        ebb_reason ab = ebb_reason_strengthen(&a, &b), ba = ebb_reason_strengthen(&b, &a);
        ebb_reason bc = ebb_reason_strengthen(&b, &c), aa = ebb_reason_strengthen(&a, &a);
        ebb_reason left = ebb_reason_strengthen(&ab, &c), right = ebb_reason_strengthen(&a, &bc);
        bool total = same_reason(&ab, &a) || same_reason(&ab, &b);
        bool stronger = ab.severity >= a.severity && ab.severity >= b.severity;
        if (same_reason(&ab, &ba) && same_reason(&left, &right) && same_reason(&aa, &a) && total &&
            stronger) {
            continue;
        }
        fail_msg("triple %u: kinds %u, %u, %u", i, a.kind, b.kind, c.kind);
    }
}

static void the_earlier_of_two_equally_severe_reasons_stands(void **state) {
    (void)state;
    ebb_reason a = {.kind = EBB_CANCEL_TIMEOUT, .severity = EBB_SEVERITY_URGENT, .sequence = 2};
    ebb_reason b = {.kind = EBB_CANCEL_BUDGET, .severity = EBB_SEVERITY_URGENT, .sequence = 1};
    assert_int_equal(ebb_reason_strengthen(&a, &b).kind, EBB_CANCEL_BUDGET);
    ebb_reason forced = {.kind = EBB_CANCEL_SHUTDOWN, .severity = EBB_SEVERITY_FORCED, .sequence = 9};
    assert_int_equal(ebb_reason_strengthen(&b, &forced).kind, EBB_CANCEL_SHUTDOWN);
    ebb_reason none = {0};
    assert_int_equal(ebb_reason_strengthen(&none, &a).kind, EBB_CANCEL_TIMEOUT);
    assert_int_equal(ebb_reason_strengthen(&a, &none).kind, EBB_CANCEL_TIMEOUT);
}

static ebb_budget any_budget(void) {
    ebb_budget b = {below(4), below(4), (uint8_t)below(4)};
    if (below(4) == 0) b.deadline = EBB_FOREVER;
    if (below(4) == 0) b.polls = EBB_POLLS_UNBOUNDED;
    return b;
}

static bool same_budget(ebb_budget a, ebb_budget b) {
    return a.deadline == b.deadline && a.polls == b.polls && a.priority == b.priority;
}

static void combine_is_commutative_associative_idempotent_and_never_widens(void **state) {
    (void)state;
    random_state = 2;
    for (uint32_t i = 0; i < TRIPLES; i++) {
        ebb_budget a = any_budget(), b = any_budget(), c = any_budget();
        ebb_budget ab = ebb_budget_combine(a, b);
        bool tighter = ab.deadline <= a.deadline && ab.polls <= a.polls && ab.priority >= a.priority;
        if (same_budget(ab, ebb_budget_combine(b, a)) && same_budget(ebb_budget_combine(a, a), a) &&
            tighter &&
            same_budget(ebb_budget_combine(ab, c), ebb_budget_combine(a, ebb_budget_combine(b, c)))) {
            continue;
        }
        fail_msg("triple %u", i);
    }
}

static void every_kind_has_its_name_and_severity(void **state) {
    (void)state;
    static const struct {
        ebb_cancel_kind kind;
        const char *name;
        int severity;
    } table[] = {
        {EBB_CANCEL_NONE, "NONE", 0},
        {EBB_CANCEL_USER, "USER", EBB_SEVERITY_POLITE},
        {EBB_CANCEL_RACE_LOST, "RACE_LOST", EBB_SEVERITY_POLITE},
        {EBB_CANCEL_DISCONNECT, "DISCONNECT", EBB_SEVERITY_POLITE},
        {EBB_CANCEL_TIMEOUT, "TIMEOUT", EBB_SEVERITY_URGENT},
        {EBB_CANCEL_BUDGET, "BUDGET", EBB_SEVERITY_URGENT},
        {EBB_CANCEL_SIBLING_FAILED, "SIBLING_FAILED", EBB_SEVERITY_URGENT},
        {EBB_CANCEL_LEASE_LOST, "LEASE_LOST", EBB_SEVERITY_URGENT},
        {EBB_CANCEL_RESOURCE, "RESOURCE", EBB_SEVERITY_URGENT},
        {EBB_CANCEL_SHUTDOWN, "SHUTDOWN", EBB_SEVERITY_FORCED},
        {EBB_CANCEL_PARENT, "PARENT", 0},
    };
    assert_int_equal(sizeof table / sizeof *table, EBB_CANCEL_KINDS);
    for (int i = 0; i < EBB_CANCEL_KINDS; i++) {
        assert_int_equal(table[i].kind, i);
        assert_string_equal(ebb_cancel_kind_name(table[i].kind), table[i].name);
        assert_int_equal(ebb_cancel_kind_severity(table[i].kind), table[i].severity);
    }
    assert_non_null(ebb_cancel_kind_name((ebb_cancel_kind)99));
    assert_int_equal(ebb_cancel_kind_severity((ebb_cancel_kind)99), 0);
    assert_int_equal(ebb_cancel_kind_severity((ebb_cancel_kind)-1), 0);
}

/* ---- messages ----------------------------------------------------------------------------------- */

static void assert_cut(const char *given, const char *kept) {
    size_t n = strlen(given);
    if (n <= EBB_MESSAGE_MAX) {
        assert_string_equal(kept, given);
        return;
    }
    assert_int_equal(strlen(kept), EBB_MESSAGE_MAX);
    assert_memory_equal(kept, given, EBB_MESSAGE_MAX - 3);
    assert_string_equal(kept + EBB_MESSAGE_MAX - 3, "...");
}

static void a_message_that_is_too_long_is_cut_with_a_mark(void **state) {
    world *w = *state;
    char text[64];
    for (size_t n = 0; n < sizeof text; n++) {
        memset(text, 'x', sizeof text);
        text[n] = 0;
        ebb_region r = open_region(w, w->root);
        puppet *of_region = puppet_start(w, r, IGNORING), *own = puppet_start(w, w->root, IGNORING);
        ebb_region_cancel(w->host, r, EBB_CANCEL_USER, text);
        ebb_task_cancel(w->host, own->id, EBB_CANCEL_USER, text);
        assert_cut(text, info_of(w, of_region->id).reason.message);
        assert_cut(text, info_of(w, own->id).reason.message);
        world_settle(w);
    }
}

static void a_message_is_not_cut_inside_a_character(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, IGNORING);
    /* 43 bytes, a character of three that would go on past the 44th, and more */
    const char *text = "0123456789012345678901234567890123456789012\xe2\x98\x83 and so on";
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, text);
    assert_string_equal(info_of(w, p->id).reason.message, "0123456789012345678901234567890123456789012...");
}

static void no_message_is_an_empty_one(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, IGNORING);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
    assert_string_equal(info_of(w, p->id).reason.message, "");
}

static void without_room_a_task_is_cancelled_all_the_same_and_only_the_message_is_lost(void **state) {
    world *w = *state;
    enum { CROWD = 200 };
    puppet *p[CROWD];
    uint32_t kept = 0;
    for (int i = 0; i < CROWD; i++) p[i] = puppet_start(w, w->root, IGNORING);
    world_settle(w);
    w->memory.fail_at = w->memory.calls + 1;
    w->memory.fail_after = true;
    for (int i = 0; i < CROWD; i++) ebb_task_cancel(w->host, p[i]->id, EBB_CANCEL_DISCONNECT, "gone");
    for (int i = 0; i < CROWD; i++) {
        ebb_task_info info = info_of(w, p[i]->id);
        assert_int_equal(info.phase, EBB_TASK_CANCEL_REQUESTED);
        assert_int_equal(info.reason.kind, EBB_CANCEL_DISCONNECT);
        assert_int_equal(info.reason.severity, EBB_SEVERITY_POLITE);
        assert_int_equal(info.budget.deadline, 5000 * EBB_MS);
        bool has = strcmp(info.reason.message, "gone") == 0;
        assert_true(has || info.reason.message[0] == 0);
        kept += has;
    }
    assert_in_range(kept, 16, CROWD - 1);
    assert_int_equal(w->memory.failures, 0); /* a cancel does not even ask for memory */
    w->memory.fail_at = 0;
    world_settle(w); /* the pump makes room again */
    puppet *later = puppet_start(w, w->root, IGNORING);
    ebb_task_cancel(w->host, later->id, EBB_CANCEL_USER, "later");
    assert_string_equal(info_of(w, later->id).reason.message, "later");
}

static void the_origin_and_order_of_a_reason_are_kept(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, IGNORING), *q = puppet_start(w, w->root, IGNORING);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
    ebb_task_cancel(w->host, q->id, EBB_CANCEL_USER, NULL);
    ebb_reason a = info_of(w, p->id).reason, b = info_of(w, q->id).reason;
    assert_int_equal(a.origin, 0);
    assert_true(a.sequence < b.sequence);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strengthen_is_commutative_associative_idempotent_and_total),
        cmocka_unit_test(the_earlier_of_two_equally_severe_reasons_stands),
        cmocka_unit_test(combine_is_commutative_associative_idempotent_and_never_widens),
        cmocka_unit_test(every_kind_has_its_name_and_severity),
        IN_WORLD(a_message_that_is_too_long_is_cut_with_a_mark),
        IN_WORLD(a_message_is_not_cut_inside_a_character),
        IN_WORLD(no_message_is_an_empty_one),
        IN_WORLD(without_room_a_task_is_cancelled_all_the_same_and_only_the_message_is_lost),
        IN_WORLD(the_origin_and_order_of_a_reason_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
