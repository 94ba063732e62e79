/* The tree as one reader of a stream is told it: everything once, then only what changes. */
#include "tests/support/serve_world.h"

#include "kernel/layer.h"
#include "serve/tree.h"

typedef struct telling {
    serve_world *s;
    ebb__tree tree;
    json_t *last; /* what the last round has told; NULL: nothing */
} telling;

static telling telling_of(serve_world *s) {
    return (telling){.s = s, .tree = {.allocator = ebb__rt_allocator(ebb__rt_of(ebb_loop_cx(s->w->loop)))}};
}

static void telling_end(telling *t) {
    json_decref(t->last);
    ebb__tree_free(&t->tree);
}

/* One round. Returns how many nodes it has told. */
static size_t tell(telling *t) {
    ebb__inspect_text text = {.allocator = t->tree.allocator};
    json_decref(t->last);
    t->last = NULL;
    if (ebb__tree_say(&t->tree, &text, ebb_loop_cx(t->s->w->loop))) {
        t->last = json_loadb(text.at, text.n, 0, NULL);
        assert_non_null(t->last);
    }
    assert_false(text.failed);
    ebb__inspect_text_free(&text);
    return json_array_size(member(t->last, "nodes"));
}

static void tell_all(telling *t) {
    do (void)tell(t);
    while (t->tree.more);
}

static ebb_region open_one(serve_world *s) {
    const ebb_region_opts opts = {.parent = s->w->region, .policy = EBB_FAIL_COLLECT};
    ebb_region r = ebb_region_open(ebb_loop_cx(s->w->loop), &opts);
    assert_int_equal(ebb_id_status(r.id), EBB_OK);
    return r;
}

static void until_closed(serve_world *s, ebb_region r) {
    while (!region_is_closed(s->w, r)) loop_turns(s->w, 1);
}

static void a_round_without_a_change_tells_nothing(void **state) {
    telling t = telling_of(*state);
    assert_in_range(tell(&t), 3, 100);
    assert_true(json_is_true(member(t.last, "first")));
    assert_int_equal(tell(&t), 0);
    assert_null(t.last);
    telling_end(&t);
}

static void a_region_is_told_when_it_comes_changes_and_goes(void **state) {
    telling t = telling_of(*state);
    tell_all(&t);
    ebb_region r = open_one(t.s);
    assert_int_equal(tell(&t), 2); /* and the one that it is in, which has a child more */
    const json_t *child = member(t.last, "nodes.1");
    assert_string_equal(json_string_value(member(child, "state")), "Open");
    assert_string_equal(json_string_value(member(child, "in")),
                        json_string_value(member(t.last, "nodes.0.region")));
    char *id = strdup(json_string_value(member(child, "region")));
    ebb_region_close(ebb_loop_cx(t.s->w->loop), r);
    until_closed(t.s, r);
    (void)tell(&t);
    assert_string_equal(json_string_value(member(t.last, "gone.0.region")), id);
    assert_null(member(t.last, "gone.1"));
    assert_int_equal(tell(&t), 0);
    free(id);
    telling_end(&t);
}

/* Whether all that the nodes are in has been told before. */
static void note_told(json_t *told, const json_t *nodes) {
    size_t i;
    json_t *node;
    json_array_foreach(nodes, i, node) {
        const char *in = json_string_value(member(node, "in")),
                   *region = json_string_value(member(node, "region"));
        assert_true(in == NULL || json_object_get(told, in) != NULL);
        if (region != NULL) assert_int_equal(json_object_set_new(told, region, json_true()), 0);
    }
}

static void ten_thousand_regions_come_in_steps_each_after_its_parent(void **state) {
    telling t = telling_of(*state);
    json_t *told = json_object();
    size_t rounds = 0, nodes = 0;
    for (int i = 0; i < 10000; i++) (void)open_one(t.s);
    do {
        size_t n = tell(&t);
        assert_in_range(n, 1, EBB__TREE_STEP);
        note_told(told, member(t.last, "nodes"));
        nodes += n;
        rounds++;
    } while (t.tree.more);
    assert_in_range(json_object_size(told), 10000, 10100);
    assert_in_range(nodes, 10000, 10200);
    assert_in_range(rounds, 10000 / EBB__TREE_STEP, 10000 / EBB__TREE_STEP + 1);
    assert_int_equal(tell(&t), 0);
    json_decref(told);
    telling_end(&t);
}

/* Twice as many as it visits: the rest is counted, and told when there is room. */
static void what_is_left_out_is_counted(void **state) {
    telling t = telling_of(*state);
    ebb_region most = open_one(t.s);
    const ebb_region_opts in = {.parent = most, .policy = EBB_FAIL_COLLECT};
    for (int i = 0; i < EBB__TREE_NODES; i++) {
        ebb_region r = ebb_region_open(ebb_loop_cx(t.s->w->loop), &in);
        assert_int_equal(ebb_id_status(r.id), EBB_OK);
    }
    assert_int_equal(tell(&t), EBB__TREE_STEP);
    assert_in_range(json_integer_value(member(t.last, "left_out.regions")), 1, 100);
    tell_all(&t);
    assert_in_range(t.tree.n, EBB__TREE_NODES - 100, EBB__TREE_NODES);
    ebb_region_close(ebb_loop_cx(t.s->w->loop), most);
    until_closed(t.s, most);
    tell_all(&t);
    assert_int_equal(json_integer_value(member(t.last, "left_out.regions")), 0);
    assert_in_range(t.tree.n, 3, 100);
    telling_end(&t);
}

static void without_memory_a_round_fails_and_nothing_is_lost(void **state) {
    serve_world *s = *state;
    size_t n = 0;
    bool failed = true;
    for (int i = 0; i < 1000; i++) (void)open_one(s);
    while (failed) {
        telling t = telling_of(s);
        ebb__inspect_text text = {.allocator = t.tree.allocator};
        s->w->memory.fail_at = s->w->memory.calls + ++n;
        (void)ebb__tree_say(&t.tree, &text, ebb_loop_cx(s->w->loop));
        s->w->memory.fail_at = 0;
        failed = text.failed;
        ebb__inspect_text_free(&text);
        telling_end(&t);
    }
    assert_in_range(n, 5, 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(a_round_without_a_change_tells_nothing),
        SERVED(a_region_is_told_when_it_comes_changes_and_goes),
        SERVED(ten_thousand_regions_come_in_steps_each_after_its_parent),
        SERVED(what_is_left_out_is_counted),
        SERVED(without_memory_a_round_fails_and_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
