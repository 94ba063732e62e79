/* Cases of operators: lists, marks, resets, deletions. */
#include "durable/suite_case.h"

/* ---- lists -------------------------------------------------------------------------------------------------------- */

static ebb_status list(ebb__suite *s, const ebb_instance_filter *f, size_t expected,
                       const ebb_provider_instance_row **rows) {
    ebb_provider_list_call *c = ebb__t_new(s, EBB_PROVIDER_LIST);
    c->filter = f;
    ASK(s, c, EBB_OK);
    if (rows != NULL) *rows = c->rows;
    return ebb__t_same(s, "instances listed", c->rows_n, expected, EBB_SITE);
}

static ebb_instance_filter all_of(ebb__suite *s) {
    return (ebb_instance_filter){
        .size = sizeof(ebb_instance_filter), .prefix = ebb__t_id(s, ""), .most = 100};
}

static ebb_status start_many(ebb__suite *s, size_t n) {
    ebb__t_instance x;
    for (size_t i = n; i-- > 0;) {
        const char what[] = {(char)('a' + i / 26), (char)('a' + i % 26), 0};
        TRY(ebb__t_start(s, what, &x));
    }
    return EBB_OK;
}

static ebb_status test_a_list_is_ordered_by_id(ebb__suite *s) {
    const ebb_provider_instance_row *rows;
    TRY(start_many(s, 10));
    const ebb_instance_filter f = all_of(s);
    TRY(list(s, &f, 10, &rows));
    for (size_t i = 1; i < 10; i++) CHECK(s, strcmp(rows[i - 1].id, rows[i].id) < 0);
    return EBB_OK;
}

static ebb_status test_a_list_is_read_in_pages(ebb__suite *s) {
    const ebb_provider_instance_row *rows;
    ebb_instance_filter f = all_of(s);
    TRY(start_many(s, 25));
    f.most = 10;
    for (int page = 0; page < 3; page++) {
        TRY(list(s, &f, page < 2 ? 10 : 5, &rows));
        if (page > 0) CHECK(s, strcmp(rows[0].id, f.after) > 0);
        f.after = rows[page < 2 ? 9 : 4].id;
    }
    return list(s, &f, 0, NULL);
}

static ebb_status test_a_page_begins_behind_an_id_that_is_gone(ebb__suite *s) {
    ebb_instance_filter f = all_of(s);
    TRY(start_many(s, 5));
    f.after = ebb__t_id(s, "ab-was-deleted");
    return list(s, &f, 3, NULL);
}

static ebb_status test_a_list_is_bounded_without_a_bound(ebb__suite *s) {
    ebb_instance_filter f = all_of(s);
    TRY(start_many(s, 110));
    f.most = 0;
    return list(s, &f, 100, NULL);
}

static ebb_status test_a_list_filters_by_name(ebb__suite *s) {
    ebb_instance_filter f = all_of(s);
    TRY(start_many(s, 3));
    ebb_provider_start_call *c = ebb__t_start_call(s, "other");
    c->name = "suite-other";
    ASK(s, c, EBB_OK);
    f.name = "suite-other";
    TRY(list(s, &f, 1, NULL));
    f.name = "suite-othe";
    TRY(list(s, &f, 0, NULL));
    f.name = s->name;
    return list(s, &f, 3, NULL);
}

static ebb_status test_a_prefix_is_no_pattern(ebb__suite *s) {
    const char *const what[] = {"a%b", "a_b", "axb", "A%b"};
    ebb__t_instance x;
    for (size_t i = 0; i < 4; i++) TRY(ebb__t_start(s, what[i], &x));
    ebb_instance_filter f = all_of(s);
    f.prefix = ebb__t_id(s, "a%");
    TRY(list(s, &f, 1, NULL));
    f.prefix = ebb__t_id(s, "a_");
    TRY(list(s, &f, 1, NULL));
    f.prefix = ebb__t_id(s, "a");
    TRY(list(s, &f, 3, NULL));
    f.prefix = ebb__t_id(s, "axb-longer");
    return list(s, &f, 0, NULL);
}

static ebb_status test_a_list_filters_by_state(ebb__suite *s) {
    ebb__t_instance x;
    ebb_instance_filter f = all_of(s);
    const ebb_provider_instance_row *rows;
    TRY(ebb__t_begin(s, "done", 0, &x));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_COMPLETED));
    TRY(ebb__t_begin(s, "failed", 0, &x));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_FAILED));
    TRY(ebb__t_begin(s, "runs", 0, &x));
    f.states = 1u << EBB_INSTANCE_COMPLETED;
    TRY(list(s, &f, 1, &rows));
    SAME(s, rows[0].state, EBB_INSTANCE_COMPLETED);
    f.states = 1u << EBB_INSTANCE_FAILED | 1u << EBB_INSTANCE_RUNNING;
    TRY(list(s, &f, 2, NULL));
    f.states = 1u << EBB_INSTANCE_SUSPENDED;
    return list(s, &f, 0, NULL);
}

static ebb_status test_a_list_filters_by_time(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_instance_row *row;
    ebb_instance_filter f = all_of(s);
    TRY(ebb__t_begin(s, "first", 0, &x));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_COMPLETED));
    TRY(ebb__t_row(s, &x, &row));
    const uint64_t started = row->started, ended = row->ended;
    ebb__t_wait(s, 20 * EBB_MS);
    TRY(ebb__t_begin(s, "second", 0, &x));
    f.started_after = started;
    TRY(list(s, &f, 1, NULL));
    f.started_after = started - 1;
    TRY(list(s, &f, 2, NULL));
    f.started_after = 0;
    f.ended_before = ended + 1;
    TRY(list(s, &f, 1, NULL));
    f.ended_before = ended;
    return list(s, &f, 0, NULL);
}

static ebb_status test_a_list_leaves_out_inputs_and_results(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_instance_row *rows;
    const ebb_instance_filter f = all_of(s);
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_COMPLETED));
    TRY(list(s, &f, 1, &rows));
    SAME(s, rows[0].input.n, 0);
    SAME(s, rows[0].result.n, 0);
    SAME(s, rows[0].key, x.key);
    SAME(s, rows[0].turn, 2);
    return EBB_OK;
}

/* root -> (a, b), a -> (a/1) */
static ebb_status make_tree(ebb__suite *s, ebb__t_instance *root) {
    const char *const below[] = {"b", "a"};
    ebb__t_instance a;
    ebb_provider_outgoing out[2];
    for (int i = 0; i < 2; i++)
        out[i] = (ebb_provider_outgoing){.id = ebb__t_id(s, below[i]),
                                         .kind = EBB_PROVIDER_MESSAGE_START,
                                         .step = 1,
                                         .name = s->name,
                                         .version = 1};
    TRY(ebb__t_begin(s, "root", 0, root));
    TRY(ebb__t_poke(s, root));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, root);
    c->outgoing = out;
    c->outgoing_n = 2;
    TRY(ebb__t_commit(s, root, c));
    const ebb_provider_instance_row *row;
    a = (ebb__t_instance){.id = ebb__t_id(s, "a")};
    TRY(ebb__t_row(s, &a, &row));
    a.key = row->key;
    TRY(ebb__t_take(s, &a));
    out[0].id = ebb__t_id(s, "0-leaf"); /* before its parents by its id */
    c = ebb__t_turn(s, &a);
    c->outgoing = out;
    c->outgoing_n = 1;
    return ebb__t_commit(s, &a, c);
}

static ebb_status test_a_list_of_children(ebb__suite *s) {
    ebb__t_instance root;
    const ebb_provider_instance_row *rows;
    TRY(make_tree(s, &root));
    ebb_instance_filter f = {.size = sizeof f, .parent = root.id, .most = 10};
    TRY(list(s, &f, 2, &rows));
    CHECK(s, strcmp(rows[0].id, ebb__t_id(s, "a")) == 0);
    CHECK(s, strcmp(rows[0].parent, root.id) == 0);
    f.parent = ebb__t_id(s, "b");
    return list(s, &f, 0, NULL);
}

static ebb_status test_a_tree_has_parents_first(ebb__suite *s) {
    ebb__t_instance root;
    const ebb_provider_instance_row *rows;
    TRY(make_tree(s, &root));
    ebb_instance_filter f = {.size = sizeof f, .parent = root.id, .tree = true, .most = 10};
    TRY(list(s, &f, 4, &rows));
    CHECK(s, strcmp(rows[0].id, root.id) == 0);
    size_t a = 9, leaf = 9;
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(rows[i].id, ebb__t_id(s, "a")) == 0) a = i;
        if (strcmp(rows[i].id, ebb__t_id(s, "0-leaf")) == 0) leaf = i;
    }
    CHECK(s, a < leaf && leaf < 4);
    f.parent = ebb__t_id(s, "none");
    return list(s, &f, 0, NULL);
}

static ebb_status test_a_tree_is_read_in_pages(ebb__suite *s) {
    ebb__t_instance root;
    const ebb_provider_instance_row *rows;
    TRY(make_tree(s, &root));
    ebb_instance_filter f = {.size = sizeof f, .parent = root.id, .tree = true, .most = 3};
    TRY(list(s, &f, 3, &rows));
    f.after = rows[2].id;
    return list(s, &f, 1, NULL);
}

/* ---- marks ---------------------------------------------------------------------------------------------------------- */

static ebb_status mark(ebb__suite *s, const ebb__t_instance *x, uint64_t execution, uint64_t turn,
                       ebb_instance_state state, ebb_status expected) {
    ebb_provider_mark_call *m = ebb__t_new(s, EBB_PROVIDER_MARK);
    m->key = x->key;
    m->execution = execution;
    m->turn = turn;
    m->state = state;
    m->text = "differs at pay.c:31";
    return ebb__t_ask(s, m, expected, EBB_SITE);
}

static ebb_status test_a_mark_suspends_and_resumes(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_instance_row *row;
    TRY(ebb__t_begin(s, "a", 1, &x));
    TRY(mark(s, &x, 1, 1, EBB_INSTANCE_SUSPENDED, EBB_OK));
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->state, EBB_INSTANCE_SUSPENDED);
    SAME(s, row->turn, 1);
    SAME(s, row->ended, 0);
    CHECK(s, strcmp(row->text, "differs at pay.c:31") == 0);
    TRY(ebb__t_has(s, &x, 1, 0, 0)); /* it deletes nothing */
    TRY(mark(s, &x, 1, 1, EBB_INSTANCE_RUNNING, EBB_OK));
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->state, EBB_INSTANCE_RUNNING);
    return ebb__t_poke(s, &x);
}

static ebb_status test_a_late_mark_is_fenced(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_instance_row *row;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(mark(s, &x, 1, 0, EBB_INSTANCE_SUSPENDED, EBB_ERR_FENCED));
    TRY(mark(s, &x, 1, 2, EBB_INSTANCE_SUSPENDED, EBB_ERR_FENCED));
    TRY(mark(s, &x, 2, 1, EBB_INSTANCE_SUSPENDED, EBB_ERR_FENCED));
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->state, EBB_INSTANCE_RUNNING);
    x.key += 1000000;
    return mark(s, &x, 1, 1, EBB_INSTANCE_SUSPENDED, EBB_ERR_FENCED);
}

static ebb_status test_an_instance_is_suspended_before_its_first_turn(ebb__suite *s) {
    ebb__t_instance x;
    TRY(ebb__t_start(s, "a", &x));
    TRY(mark(s, &x, 1, 0, EBB_INSTANCE_SUSPENDED, EBB_OK));
    return ebb__t_idle(s, &x);
}

/* ---- resets ------------------------------------------------------------------------------------------------------------ */

static ebb_provider_reset_call *reset(ebb__suite *s, const ebb__t_instance *x, uint64_t keep) {
    ebb_provider_reset_call *c = ebb__t_new(s, EBB_PROVIDER_RESET);
    c->key = x->key;
    c->execution = x->execution;
    c->turn = x->turn;
    c->keep = keep;
    return c;
}

/* Three turns with one row of work each. */
static ebb_status begin_three(ebb__suite *s, ebb__t_instance *x) {
    TRY(ebb__t_begin(s, "a", 1, x));
    for (uint64_t n = 2; n <= 3; n++) {
        TRY(ebb__t_poke(s, x));
        ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
        const ebb_provider_timer timer = {n, UINT64_C(1) << 61};
        const ebb_provider_value value = {n == 2 ? "two" : "three", ebb_blob_text("value")};
        c->body = n == 2 ? ebb_blob_text("second") : ebb_blob_text("third");
        c->work = ebb__t_work(s, n, 1);
        c->work_n = 1;
        c->timers = &timer;
        c->timers_n = 1;
        c->values = &value;
        c->values_n = 1;
        TRY(ebb__t_commit(s, x, c));
    }
    return EBB_OK;
}

static ebb_status test_a_reset_begins_with_a_copy(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_instance_row *row;
    TRY(begin_three(s, &x));
    ebb_provider_reset_call *c = reset(s, &x, 2);
    const ebb_provider_message message = {.at.kind = EBB_PROVIDER_MESSAGE_SIGNAL, .body = {"again", 5}};
    const ebb_provider_timer timer = {7, UINT64_C(1) << 61};
    const ebb_provider_value value = {"two", ebb_blob_text("new")};
    c->messages = &message;
    c->messages_n = 1;
    c->timers = &timer;
    c->timers_n = 1;
    c->values = &value;
    c->values_n = 1;
    c->work = ebb__t_work(s, 1, 2);
    c->work_n = 2;
    ASK(s, c, EBB_OK);
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->execution, 2);
    SAME(s, row->turn, 2);
    SAME(s, row->state, EBB_INSTANCE_RUNNING);
    TRY(ebb__t_has(s, &x, 2, 1, 1));
    ebb_provider_history_call *h = ebb__t_new(s, EBB_PROVIDER_HISTORY);
    h->id = x.id;
    h->most = 10;
    ASK(s, h, EBB_OK);
    SAME(s, h->turns_n, 2);
    SAME(s, h->turns[0].execution, 2);
    SAME_BLOB(s, h->turns[1].body, ebb_blob_text("second"));
    TRY(ebb__t_take(s, &x));
    SAME(s, x.turn, 2);
    SAME_BLOB(s, x.item->messages[0].body, ebb_blob_text("again"));
    ebb_provider_ack_turn_call *t = ebb__t_turn(s, &x);
    SAME(s, t->turn, 3);
    return ebb__t_commit(s, &x, t);
}

static ebb_status test_a_reset_replaces_the_values(ebb__suite *s) {
    ebb__t_instance x;
    TRY(begin_three(s, &x));
    ASK(s, reset(s, &x, 1), EBB_OK);
    const char *const keys[] = {"two", "three"};
    for (int i = 0; i < 2; i++) {
        ebb_provider_value_call *v = ebb__t_new(s, EBB_PROVIDER_VALUE);
        v->id = x.id;
        v->key = keys[i];
        ASK(s, v, EBB_OK);
        CHECK(s, v->value.at == NULL);
    }
    return ebb__t_has(s, &x, 0, 0, 0);
}

static ebb_status test_a_reset_revives_an_ended_instance(ebb__suite *s) {
    ebb__t_instance x;
    const ebb_provider_instance_row *row;
    TRY(ebb__t_begin(s, "a", 0, &x));
    TRY(ebb__t_end(s, &x, EBB_INSTANCE_FAILED));
    ASK(s, reset(s, &x, 1), EBB_OK);
    TRY(ebb__t_row(s, &x, &row));
    SAME(s, row->state, EBB_INSTANCE_RUNNING);
    SAME(s, row->ended, 0);
    SAME(s, row->result.n, 0);
    return ebb__t_poke(s, &x);
}

static ebb_status test_a_late_reset_is_fenced(ebb__suite *s) {
    ebb__t_instance x;
    TRY(begin_three(s, &x));
    ebb_provider_reset_call *c = reset(s, &x, 1);
    c->turn = 2;
    ASK(s, c, EBB_ERR_FENCED);
    c = reset(s, &x, 1);
    c->execution = 2;
    ASK(s, c, EBB_ERR_FENCED);
    return ebb__t_has(s, &x, 3, 2, 0);
}

static ebb_status test_a_reset_fences_the_turn_in_flight(ebb__suite *s) {
    ebb__t_instance x;
    TRY(begin_three(s, &x));
    TRY(ebb__t_poke(s, &x));
    ebb_provider_ack_turn_call *late = ebb__t_turn(s, &x);
    ASK(s, reset(s, &x, 2), EBB_OK);
    ASK(s, late, EBB_ERR_FENCED);
    TRY(ebb__t_take(s, &x)); /* the signal was for no execution: it stays */
    SAME(s, x.execution, 2);
    return EBB_OK;
}

static ebb_status test_a_reset_drops_messages_of_the_old_execution(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(ebb__t_begin(s, "a", 2, &x));
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 2, &w));
    ASK(s, ebb__t_done(s, 0, &w[0], "old"), EBB_OK);
    TRY(ebb__t_send(s, &x, "stays"));
    ASK(s, reset(s, &x, 1), EBB_OK);
    TRY(ebb__t_has(s, &x, 0, 0, 1));
    ASK(s, ebb__t_done(s, 0, &w[1], "late"), EBB_ERR_GONE);
    return EBB_OK;
}

static ebb_status test_a_reset_sends_its_messages(ebb__suite *s) {
    ebb__t_instance x, y;
    TRY(ebb__t_begin(s, "y", 0, &y));
    TRY(ebb__t_begin(s, "x", 0, &x));
    const ebb_provider_outgoing out = {
        .id = y.id, .kind = EBB_PROVIDER_MESSAGE_CANCEL, .body = ebb_blob_text("reset")};
    ebb_provider_reset_call *c = reset(s, &x, 1);
    c->outgoing = &out;
    c->outgoing_n = 1;
    ASK(s, c, EBB_OK);
    return ebb__t_has(s, &y, 0, 0, 1);
}

/* ---- deletions ------------------------------------------------------------------------------------------------------------ */

static ebb_status test_a_running_instance_is_not_deleted(ebb__suite *s) {
    ebb__t_instance x, y;
    TRY(ebb__t_begin(s, "x", 1, &x));
    TRY(ebb__t_begin(s, "y", 1, &y));
    TRY(ebb__t_end(s, &y, EBB_INSTANCE_COMPLETED));
    const uint64_t keys[] = {x.key, y.key, y.key + 1000000};
    ebb_provider_remove_call *r = ebb__t_new(s, EBB_PROVIDER_REMOVE);
    r->keys = keys;
    r->keys_n = 3;
    ASK(s, r, EBB_OK);
    SAME(s, r->removed, 1);
    TRY(ebb__t_has(s, &x, 1, 0, 0));
    ebb_provider_instance_call *c = ebb__t_new(s, EBB_PROVIDER_INSTANCE);
    c->id = y.id;
    return ebb__t_ask(s, c, EBB_ERR_UNKNOWN_INSTANCE, EBB_SITE);
}

static ebb_status test_a_deleted_instance_leaves_nothing(ebb__suite *s) {
    ebb__t_instance x;
    ebb_provider_work_item *w;
    TRY(begin_three(s, &x));
    TRY(ebb__t_send(s, &x, "signal"));
    ebb_provider_remove_call *r = ebb__t_new(s, EBB_PROVIDER_REMOVE);
    r->keys = &x.key;
    r->keys_n = 1;
    r->force = true;
    ASK(s, r, EBB_OK);
    SAME(s, r->removed, 1);
    TRY(ebb__t_claim(s, 0, EBB__T_LONG, 0, &w));
    TRY(ebb__t_idle(s, &x));
    ebb_provider_start_call *c = ebb__t_start_call(s, "a"); /* the id is free, and clean */
    ASK(s, c, EBB_OK);
    x = (ebb__t_instance){.id = c->id, .key = c->row.key};
    TRY(ebb__t_has(s, &x, 0, 0, 1));
    ebb_provider_history_call *h = ebb__t_new(s, EBB_PROVIDER_HISTORY);
    h->id = x.id;
    h->most = 10;
    ASK(s, h, EBB_OK);
    SAME(s, h->turns_n, 0);
    ebb_provider_value_call *v = ebb__t_new(s, EBB_PROVIDER_VALUE);
    v->id = x.id;
    v->key = "two";
    ASK(s, v, EBB_OK);
    CHECK(s, v->value.at == NULL);
    return EBB_OK;
}

static ebb_status test_children_of_a_deleted_instance_stay(ebb__suite *s) {
    ebb__t_instance root;
    TRY(make_tree(s, &root));
    ebb_provider_remove_call *r = ebb__t_new(s, EBB_PROVIDER_REMOVE);
    r->keys = &root.key;
    r->keys_n = 1;
    r->force = true;
    ASK(s, r, EBB_OK);
    const ebb_instance_filter f = all_of(s);
    return list(s, &f, 3, NULL);
}

static ebb_status test_a_deletion_of_nothing_is_ok(ebb__suite *s) {
    ebb_provider_remove_call *r = ebb__t_new(s, EBB_PROVIDER_REMOVE);
    ASK(s, r, EBB_OK);
    SAME(s, r->removed, 0);
    return EBB_OK;
}

static ebb_status test_many_instances_are_deleted_in_one_call(ebb__suite *s) {
    enum { MANY = 200 };
    uint64_t *keys = ebb__arena_alloc(&s->arena, MANY * sizeof *keys);
    ebb_provider_call **calls = ebb__arena_alloc(&s->arena, MANY * sizeof(void *));
    char what[8] = "aaa";
    CHECK(s, keys != NULL && calls != NULL);
    for (int i = 0; i < MANY; i++) {
        what[0] = (char)('a' + i / 26);
        what[1] = (char)('a' + i % 26);
        calls[i] = &ebb__t_start_call(s, what)->call;
    }
    ASK_ALL(s, calls, MANY, EBB_OK);
    for (int i = 0; i < MANY; i++) keys[i] = ((ebb_provider_start_call *)calls[i])->row.key;
    ebb_provider_remove_call *r = ebb__t_new(s, EBB_PROVIDER_REMOVE);
    r->keys = keys;
    r->keys_n = MANY;
    r->force = true;
    ASK(s, r, EBB_OK);
    SAME(s, r->removed, MANY);
    const ebb_instance_filter f = all_of(s);
    return list(s, &f, 0, NULL);
}

const ebb__suite_case ebb__suite_operators[] = {
    CASE(test_a_list_is_ordered_by_id, "a page is in the order of ids"),
    CASE(test_a_list_is_read_in_pages, "pages follow each other without a gap"),
    CASE(test_a_page_begins_behind_an_id_that_is_gone, "`after` need not exist"),
    CASE(test_a_list_is_bounded_without_a_bound, "a page of 0 is one of 100"),
    CASE(test_a_list_filters_by_name, "the name of the orchestration, as a whole"),
    CASE(test_a_prefix_is_no_pattern, "wildcards in a prefix are letters, and case counts"),
    CASE(test_a_list_filters_by_state, "a set of states"),
    CASE(test_a_list_filters_by_time, "started after, ended before"),
    CASE(test_a_list_leaves_out_inputs_and_results, "a list has no payloads"),
    CASE(test_a_list_of_children, "the children of an instance"),
    CASE(test_a_tree_has_parents_first, "all below an instance and itself, parents first"),
    CASE(test_a_tree_is_read_in_pages, "pages of a tree"),
    CASE(test_a_mark_suspends_and_resumes, "suspend and resume, without a turn"),
    CASE(test_a_late_mark_is_fenced, "EBB_ERR_FENCED, and nothing is changed"),
    CASE(test_an_instance_is_suspended_before_its_first_turn, "turn 0 can be marked"),
    CASE(test_a_reset_begins_with_a_copy, "the next execution has the kept turns and what the call gives it"),
    CASE(test_a_reset_replaces_the_values, "a reset without rows deletes work, timers and values"),
    CASE(test_a_reset_revives_an_ended_instance, "an instance that has ended runs again"),
    CASE(test_a_late_reset_is_fenced, "EBB_ERR_FENCED, and nothing is changed"),
    CASE(test_a_reset_fences_the_turn_in_flight, "who had the instance can't commit"),
    CASE(test_a_reset_drops_messages_of_the_old_execution, "those of no execution stay, claimed work goes"),
    CASE(test_a_reset_sends_its_messages, "outgoing messages of a reset"),
    CASE(test_a_running_instance_is_not_deleted,
         "without force only ended instances are deleted and counted"),
    CASE(test_a_deleted_instance_leaves_nothing, "no row of it is left, and its id is free"),
    CASE(test_children_of_a_deleted_instance_stay, "a deletion takes one instance"),
    CASE(test_a_deletion_of_nothing_is_ok, "no keys"),
    CASE(test_many_instances_are_deleted_in_one_call, "200 keys"),
    LAST,
};
