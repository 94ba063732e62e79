/* Cases of versions: an instance goes to nodes that list its name and version. */
#include "durable/suite_case.h"

static ebb_status start_as(ebb__suite *s, const char *what, const char *name, uint32_t version,
                           ebb__t_instance *x) {
    ebb_provider_start_call *c = ebb__t_start_call(s, what);
    c->name = name;
    c->version = version;
    ASK(s, c, EBB_OK);
    *x = (ebb__t_instance){.id = c->id, .key = c->row.key, .execution = 1};
    return EBB_OK;
}

static ebb_status test_a_node_is_given_only_versions_that_it_lists(ebb__suite *s) {
    ebb__t_instance x;
    size_t n;
    const ebb_provider_runs runs[] = {{s->name, 9}};
    TRY(start_as(s, "a", s->name, 9, &x));
    TRY(ebb__t_idle(s, &x));
    TRY(ebb__t_join_runs(s, EBB__T_LONG, runs, 1, &n));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.node, n);
    SAME(s, x.item->version, 9);
    SAME(s, x.item->attempts, 1); /* what nobody could run was not charged */
    return EBB_OK;
}

static ebb_status test_a_node_is_given_only_names_that_it_lists(ebb__suite *s) {
    ebb__t_instance x;
    TRY(start_as(s, "a", "suite-nobody-runs-this", 1, &x));
    return ebb__t_idle(s, &x);
}

static ebb_status test_names_and_versions_are_listed_in_pairs(ebb__suite *s) {
    ebb__t_instance x;
    size_t n;
    const char *a = ebb__t_id(s, "name-a"), *b = ebb__t_id(s, "name-b");
    const ebb_provider_runs runs[] = {{a, 1}, {b, 2}};
    TRY(ebb__t_join_runs(s, EBB__T_LONG, runs, 2, &n));
    TRY(start_as(s, "x", a, 2, &x));
    TRY(ebb__t_idle(s, &x));
    TRY(start_as(s, "y", b, 1, &x));
    TRY(ebb__t_idle(s, &x));
    TRY(start_as(s, "z", b, 2, &x));
    return ebb__t_take(s, &x);
}

static ebb_status test_an_instance_without_a_version_goes_by_its_name(ebb__suite *s) {
    ebb__t_instance x;
    TRY(start_as(s, "a", s->name, 0, &x));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.item->version, 0);
    return EBB_OK;
}

static ebb_status test_what_nobody_can_run_delays_nobody(ebb__suite *s) {
    ebb__t_instance x[11];
    char what[] = "a";
    uint64_t keys[11];
    for (int i = 0; i < 11; i++, what[0]++) {
        TRY(start_as(s, what, i < 10 ? "suite-nobody-runs-this" : s->name, 1, &x[i]));
        keys[i] = x[i].key;
    }
    for (int i = 0; i < 100; i++) {
        ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, (size_t)i % 2, &x[10]);
        c->only = keys;
        c->only_n = 11;
        c->most = 1;
        ASK(s, c, EBB_OK);
        if (c->items_n == 1) {
            SAME(s, c->items[0].key, x[10].key);
            return EBB_OK;
        }
        if (i % 2 == 1) ebb__t_wait(s, 10 * EBB_MS);
    }
    return ebb__t_fail(s, "ten instances that nobody can run keep another away");
}

static ebb_status is_unserved(ebb__suite *s, const ebb__t_instance *x, bool expected) {
    const ebb_provider_instance_row *row;
    TRY(ebb__t_row(s, x, &row));
    SAME(s, row->unserved, expected);
    return EBB_OK;
}

static ebb_status test_what_nobody_can_run_is_shown(ebb__suite *s) {
    ebb__t_instance x, y;
    size_t n;
    const ebb_provider_runs runs[] = {{s->name, 9}};
    TRY(start_as(s, "x", s->name, 9, &x));
    TRY(is_unserved(s, &x, true));
    TRY(ebb__t_start(s, "y", &y));
    TRY(is_unserved(s, &y, false));
    TRY(ebb__t_join_runs(s, EBB__T_LONG, runs, 1, &n));
    TRY(is_unserved(s, &x, false));
    TRY(ebb__t_leave(s, n));
    return is_unserved(s, &x, true);
}

static ebb_status test_a_lapsed_node_serves_nothing(ebb__suite *s) {
    ebb__t_instance x;
    size_t n;
    const ebb_provider_runs runs[] = {{s->name, 9}};
    TRY(ebb__t_join_runs(s, EBB__T_LEASE, runs, 1, &n));
    TRY(start_as(s, "x", s->name, 9, &x));
    TRY(is_unserved(s, &x, false));
    ebb__t_lapse(s);
    return is_unserved(s, &x, true);
}

static ebb_status test_an_instance_without_messages_is_not_unserved(ebb__suite *s) {
    ebb__t_instance x;
    size_t n;
    const ebb_provider_runs runs[] = {{s->name, 9}};
    TRY(ebb__t_join_runs(s, EBB__T_LONG, runs, 1, &n));
    TRY(start_as(s, "x", s->name, 9, &x));
    TRY(ebb__t_take(s, &x));
    TRY(ebb__t_commit(s, &x, ebb__t_turn(s, &x)));
    TRY(ebb__t_leave(s, n));
    TRY(is_unserved(s, &x, false));
    TRY(ebb__t_send(s, &x, "signal"));
    return is_unserved(s, &x, true);
}

static ebb_status test_work_that_nobody_fetches_is_shown(ebb__suite *s) {
    ebb__t_instance x;
    size_t a, b, c;
    TRY(ebb__t_begin(s, "x", 1, &x));
    const char *const queue = ebb__t_work(s, 1, 1)->queue;
    const ebb_provider_runs orch[] = {{queue, 1}}, queues[] = {{queue, 0}};
    TRY(ebb__t_join_runs(s, EBB__T_LONG, orch, 1, &a)); /* an orchestration of that name */
    TRY(is_unserved(s, &x, true));
    TRY(ebb__t_join_runs(s, EBB__T_LONG, queues, 1, &b));
    TRY(is_unserved(s, &x, false));
    ebb_provider_work_item *w;
    TRY(ebb__t_claim(s, b, EBB__T_LONG, 1, &w));
    TRY(ebb__t_join_runs(s, EBB__T_LEASE, queues, 1, &c));
    TRY(is_unserved(s, &x, false));
    TRY(ebb__t_leave(s, b)); /* what it had waits again */
    TRY(is_unserved(s, &x, false));
    ebb__t_lapse(s);
    return is_unserved(s, &x, true);
}

static ebb_status test_a_queue_is_no_orchestration(ebb__suite *s) {
    ebb__t_instance x;
    size_t n;
    const ebb_provider_runs queues[] = {{"suite-nobody-runs-this", 0}};
    TRY(start_as(s, "x", "suite-nobody-runs-this", 0, &x));
    TRY(ebb__t_join_runs(s, EBB__T_LONG, queues, 1, &n));
    TRY(is_unserved(s, &x, true));
    ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, n, &x);
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 0);
    return EBB_OK;
}

static ebb_status test_a_node_without_orchestrations_is_given_work_only(ebb__suite *s) {
    ebb__t_instance x;
    size_t n;
    ebb_provider_work_item *w;
    TRY(ebb__t_join_runs(s, EBB__T_LONG, NULL, 0, &n));
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(ebb__t_send(s, &x, "signal"));
    ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, n, &x);
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 0);
    return ebb__t_claim(s, n, EBB__T_LONG, 1, &w);
}

const ebb__suite_case ebb__suite_versions[] = {
    CASE(test_a_node_is_given_only_versions_that_it_lists,
         "an instance waits, uncharged, for a node with its version"),
    CASE(test_a_node_is_given_only_names_that_it_lists, "an instance waits for a node with its name"),
    CASE(test_names_and_versions_are_listed_in_pairs, "a name and a version of two entries are no match"),
    CASE(test_an_instance_without_a_version_goes_by_its_name, "version 0 goes to whoever has the name"),
    CASE(test_what_nobody_can_run_delays_nobody, "ten older instances that nobody can run are passed"),
    CASE(test_what_nobody_can_run_is_shown, "`unserved` follows nodes that join and leave"),
    CASE(test_a_lapsed_node_serves_nothing, "`unserved` looks at live nodes"),
    CASE(test_an_instance_without_messages_is_not_unserved, "`unserved` is about messages that wait"),
    CASE(test_work_that_nobody_fetches_is_shown, "`unserved` looks at the queues of works that wait"),
    CASE(test_a_queue_is_no_orchestration, "an entry with version 0 is a queue and nothing else"),
    CASE(test_a_node_without_orchestrations_is_given_work_only, "a node that lists nothing"),
    LAST,
};
