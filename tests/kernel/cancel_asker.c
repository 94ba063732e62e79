/* Who cancelled: the task of a region_cancelled event is the one that asked, in every region below too; 0 is the
 * host, or the clock. */
#include "tests/support/world.h"

enum { LEVELS = 4 };

typedef struct tree {
    world *w;
    ebb_region r[LEVELS];
    puppet *leaf;
} tree;

static tree tree_new(world *w) {
    tree t = {.w = w};
    for (int i = 0; i < LEVELS; i++) {
        ebb_region_opts o = {.parent = i == 0 ? w->root : t.r[i - 1]};
        t.r[i] = ebb_region_open(w->host, &o);
        assert_int_equal(ebb_id_status(t.r[i].id), EBB_OK);
    }
    t.leaf = puppet_start(w, t.r[LEVELS - 1], IGNORING);
    world_settle(w);
    return t;
}

/* What was told last to each of them was told by this one. */
static void told_by(const tree *t, ebb_task who, uint32_t times) {
    for (int i = 0; i < LEVELS; i++) {
        assert_int_equal(count_events(t->w, EBB_EV_REGION_CANCELLED, t->r[i].id), times);
        ebb_event ev = {0};
        assert_true(find_event(t->w, EBB_EV_REGION_CANCELLED, t->r[i].id, times - 1, &ev));
        if (ev.task_id != who.id) fail_msg("level %d was cancelled by another", i);
    }
}

typedef struct verb {
    const tree *t;
    void (*does)(ebb_cx *cx, const tree *t);
} verb;

static void cancels(ebb_cx *cx, const tree *t) {
    ebb_region_cancel(cx, t->r[0], EBB_CANCEL_USER, "enough");
}

static void cancels_within(ebb_cx *cx, const tree *t) {
    ebb_region_cancel_within(cx, t->r[0], EBB_CANCEL_USER, "enough",
                             (ebb_budget){ebb_now(cx) + EBB_SECOND, EBB_POLLS_UNBOUNDED, 0});
}

static void cancels_harder(ebb_cx *cx, const tree *t) {
    ebb_region_cancel(cx, t->r[0], EBB_CANCEL_SHUTDOWN, "now");
}

static void forces(ebb_cx *cx, const tree *t) {
    ebb_region_force(cx, t->r[0]);
}

static void act(ebb_cx *cx, puppet *p) {
    const verb *v = p->arg;
    v->does(cx, v->t);
}

/* A task outside of the tree that says it. */
static ebb_task task_does(world *w, const tree *t, void (*does)(ebb_cx *cx, const tree *t)) {
    verb v = {t, does};
    puppet *p = puppet_start(w, w->root, (puppet){.act = act, .arg = &v});
    world_settle(w);
    return p->id;
}

static void a_task_that_cancels_is_named_in_every_region_below(void **state) {
    static void (*const verbs[])(ebb_cx * cx, const tree *t) = {cancels, cancels_within, forces};
    world *w = *state;
    for (size_t i = 0; i < 3; i++) {
        tree t = tree_new(w);
        told_by(&t, task_does(w, &t, verbs[i]), 1);
    }
}

static void who_strengthens_it_is_named_there(void **state) {
    world *w = *state;
    tree t = tree_new(w);
    ebb_task first = task_does(w, &t, cancels);
    told_by(&t, first, 1);
    ebb_task second = task_does(w, &t, cancels_harder);
    assert_int_not_equal(first.id, second.id);
    told_by(&t, second, 2);
}

static void the_host_is_0(void **state) {
    world *w = *state;
    tree t = tree_new(w), other = tree_new(w);
    cancels(w->host, &t);
    told_by(&t, (ebb_task){0}, 1);
    forces(w->host, &other);
    told_by(&other, (ebb_task){0}, 1);
}

static void the_clock_is_0(void **state) {
    world *w = *state;
    tree t = {.w = w};
    for (int i = 0; i < LEVELS; i++) {
        ebb_region_opts o = {.parent = i == 0 ? w->root : t.r[i - 1], .deadline = i == 0 ? EBB_SECOND : 0};
        t.r[i] = ebb_region_open(w->host, &o);
    }
    t.leaf = puppet_start(w, t.r[LEVELS - 1], IGNORING);
    world_pass(w, EBB_SECOND);
    told_by(&t, (ebb_task){0}, 1);
}

static void a_task_that_fails_is_who_cancels_its_siblings(void **state) {
    world *w = *state;
    tree t = tree_new(w);
    puppet *p = puppet_start(w, t.r[0], (puppet){.returns = EBB_FAILED});
    world_settle(w);
    told_by(&t, p->id, 1);
}

static void opens(ebb_cx *cx, puppet *p) {
    tree *t = p->arg;
    for (int i = 0; i < LEVELS; i++) {
        ebb_region_opts o = {.parent = i == 0 ? t->w->root : t->r[i - 1]};
        t->r[i] = ebb_region_open(cx, &o);
        if (i == LEVELS - 1) (void)ebb_spawn(cx, t->r[i], puppet_poll, t->leaf);
    }
}

static void a_task_that_returns_is_who_cancels_its_regions(void **state) {
    world *w = *state;
    tree t = {.w = w, .leaf = puppet_new(w, IGNORING)};
    puppet *p = puppet_start(w, w->root, (puppet){.act = opens, .arg = &t});
    world_settle(w);
    for (int i = 0; i < LEVELS; i++)
        assert_int_equal(event_of(w, EBB_EV_REGION_CANCELLED, t.r[i].id).task_id, p->id.id);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_task_that_cancels_is_named_in_every_region_below),
        IN_WORLD(who_strengthens_it_is_named_there),
        IN_WORLD(the_host_is_0),
        IN_WORLD(the_clock_is_0),
        IN_WORLD(a_task_that_fails_is_who_cancels_its_siblings),
        IN_WORLD(a_task_that_returns_is_who_cancels_its_regions),
    };
    return cmocka_run_group_tests_name("cancel_asker", tests, NULL, NULL);
}
