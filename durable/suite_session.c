/* Cases of sessions and of queues with tags. */
#include "durable/suite_case.h"

/* An instance with these rows of work: sessions by index. */
static ebb_status begin_sessions(ebb__suite *s, const char *const *sessions, size_t n, ebb__t_instance *x) {
    ebb_provider_work rows[8];
    const ebb_provider_work *from = ebb__t_work(s, 1, n);
    CHECK(s, from != NULL && n <= 8);
    memcpy(rows, from, n * sizeof *rows);
    for (size_t i = 0; i < n; i++) rows[i].session = sessions[i];
    TRY(ebb__t_start(s, "a", x));
    TRY(ebb__t_take(s, x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
    c->work = rows;
    c->work_n = n;
    return ebb__t_commit(s, x, c);
}

static ebb_status test_a_session_stays_with_its_node(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    const char *name = ebb__t_id(s, "gpu");
    const char *const sessions[] = {name, name, name};
    TRY(begin_sessions(s, sessions, 3, &x));
    ebb_provider_fetch_work_call *c = ebb__t_work_call(s, 0, EBB__T_LONG, 1);
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 1);
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 0, &w));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 2, &w));
    return EBB_OK;
}

static ebb_status test_a_session_stays_after_its_work(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    const char *name = ebb__t_id(s, "gpu");
    const char *const sessions[] = {name};
    TRY(begin_sessions(s, sessions, 1, &x));
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 1, &w));
    ASK(s, ebb__t_done(s, 1, w, "done"), EBB_OK);
    TRY(ebb__t_take(s, &x));
    ebb_provider_work row = *ebb__t_work(s, 9, 1);
    row.session = name;
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->work = &row;
    c->work_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 0, &w));
    return ebb__t_claim(s, 1, EBB__T_LONG, 1, &w);
}

static ebb_status test_a_session_of_a_node_that_left_goes_to_another(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    size_t n;
    const char *name = ebb__t_id(s, "gpu");
    const char *const sessions[] = {name, name};
    TRY(ebb__t_join(s, EBB__T_LONG, &n));
    TRY(begin_sessions(s, sessions, 2, &x));
    ebb_provider_fetch_work_call *c = ebb__t_work_call(s, n, EBB__T_LONG, 1);
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 1);
    TRY(ebb__t_leave(s, n));
    return ebb__t_claim(s, 0, EBB__T_LONG, 2, &w);
}

static ebb_status test_a_session_of_a_lapsed_node_goes_to_another(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    size_t n;
    const char *name = ebb__t_id(s, "gpu");
    const char *const sessions[] = {name, name};
    TRY(ebb__t_join(s, EBB__T_LEASE, &n));
    TRY(begin_sessions(s, sessions, 2, &x));
    ebb_provider_fetch_work_call *c = ebb__t_work_call(s, n, EBB__T_LEASE, 1);
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 1);
    ebb__t_lapse(s);
    return ebb__t_claim(s, 1, EBB__T_LONG, 2, &w);
}

static ebb_status test_work_without_a_session_goes_to_anybody(ebb__suite *s) {
    ebb__t_instance x;
    const char *const sessions[] = {ebb__t_id(s, "gpu"), "", ""};
    TRY(begin_sessions(s, sessions, 3, &x));
    ebb_provider_fetch_work_call *c = ebb__t_work_call(s, 0, EBB__T_LONG, 1);
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, 1);
    ebb_provider_work_item *w;
    return ebb__t_claim(s, 1, EBB__T_LONG, 2, &w);
}

static ebb_status test_a_held_session_delays_nobody_behind_it(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    const char *name = ebb__t_id(s, "gpu"), *other = ebb__t_id(s, "other");
    const char *const sessions[] = {name, name, name, other, ""};
    TRY(begin_sessions(s, sessions, 5, &x));
    ebb_provider_fetch_work_call *c = ebb__t_work_call(s, 0, EBB__T_LONG, 1);
    ASK(s, c, EBB_OK);
    TRY(ebb__t_claim(s, 1, EBB__T_LONG, 2, &w));
    SAME(s, w[0].activity, 4);
    SAME(s, w[1].activity, 5);
    return EBB_OK;
}

/* ---- queues ----------------------------------------------------------------------------------------------------------- */

static ebb_status fetch_queue(ebb__suite *s, const char *queue, size_t expected) {
    const ebb_provider_queue q = {queue, 10};
    ebb_provider_fetch_work_call *c = ebb__t_work_call(s, 0, EBB__T_LONG, 10);
    c->queues = &q;
    c->queues_n = 1;
    ASK(s, c, EBB_OK);
    SAME(s, c->items_n, expected);
    return EBB_OK;
}

static ebb_status test_a_tag_is_a_part_of_the_queue(ebb__suite *s) {
    ebb__t_instance x;
    const char *tagged = ebb__t_id(s, "mail@gpu");
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_work row = *ebb__t_work(s, 1, 1);
    row.queue = tagged;
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->work = &row;
    c->work_n = 1;
    TRY(ebb__t_commit(s, &x, c));
    TRY(fetch_queue(s, ebb__t_id(s, "mail"), 0));
    TRY(fetch_queue(s, ebb__t_id(s, "mail@"), 0));
    TRY(fetch_queue(s, ebb__t_id(s, "mail@GPU"), 0));
    TRY(fetch_queue(s, ebb__t_id(s, "mail@gpu2"), 0));
    return fetch_queue(s, tagged, 1);
}

static ebb_status test_a_fetch_names_many_queues(ebb__suite *s) {
    enum { MANY = 20 };
    ebb__t_instance x;
    ebb_provider_queue queues[MANY];
    ebb_provider_work rows[MANY];
    char what[] = "qa";
    const ebb_provider_work *from = ebb__t_work(s, 1, MANY);
    CHECK(s, from != NULL);
    memcpy(rows, from, sizeof rows);
    for (int i = 0; i < MANY; i++, what[1]++) {
        queues[i] = (ebb_provider_queue){ebb__t_id(s, what), 10};
        rows[i].queue = queues[i].name;
    }
    TRY(ebb__t_start(s, "a", &x));
    TRY(ebb__t_take(s, &x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, &x);
    c->work = rows;
    c->work_n = MANY;
    TRY(ebb__t_commit(s, &x, c));
    ebb_provider_fetch_work_call *w = ebb__t_work_call(s, 0, EBB__T_LONG, 100);
    w->queues = queues;
    w->queues_n = MANY;
    ASK(s, w, EBB_OK);
    SAME(s, w->items_n, MANY);
    return EBB_OK;
}

const ebb__suite_case ebb__suite_sessions[] = {
    CASE(test_a_session_stays_with_its_node, "rows of one session go to one live node"),
    CASE(test_a_session_stays_after_its_work, "a session outlives its rows, as long as its node lives"),
    CASE(test_a_session_of_a_node_that_left_goes_to_another, "a leave frees sessions"),
    CASE(test_a_session_of_a_lapsed_node_goes_to_another, "a lapse frees sessions"),
    CASE(test_work_without_a_session_goes_to_anybody, "no session, no affinity"),
    CASE(test_a_held_session_delays_nobody_behind_it, "rows of another's session are passed"),
    CASE(test_a_tag_is_a_part_of_the_queue, "\"NAME@TAG\" is another queue than \"NAME\""),
    CASE(test_a_fetch_names_many_queues, "20 queues in one fetch"),
    LAST,
};
