/* Bad input: every one is an error with a name, and nothing changes by it. */
#include "tests/support/world.h"

/* ---- ids ---------------------------------------------------------------------------------------- */

typedef ebb_status attempt(world *w, uint64_t id);

static ebb_status spawn_in(world *w, uint64_t id) {
    return ebb_id_status(ebb_spawn(w->host, (ebb_region){id}, puppet_poll, NULL).id);
}
static ebb_status spawn_with_in(world *w, uint64_t id) {
    return ebb_id_status(
        ebb_spawn(w->host, (ebb_region){id}, puppet_poll, NULL, &(ebb_task_opts){.keep = true}).id);
}
static ebb_status open_in(world *w, uint64_t id) {
    if (id == 0) return EBB_ERR_INVALID; /* 0 is the asker's own region here */
    return ebb_id_status(ebb_region_open(w->host, &(ebb_region_opts){.parent = {id}}).id);
}
static ebb_status join_region(world *w, uint64_t id) {
    return ebb_region_join(w->host, (ebb_region){id});
}
static ebb_status look_at_region(world *w, uint64_t id) {
    ebb_region_state s;
    return ebb_region_state_of(w->host, (ebb_region){id}, &s);
}
static ebb_status report_region(world *w, uint64_t id) {
    ebb_region_report r;
    return ebb_region_report_of(w->host, (ebb_region){id}, &r);
}
static ebb_status abandoned_at(world *w, uint64_t id) {
    ebb_work b;
    return ebb_region_abandoned_at(w->host, (ebb_region){id}, 0, &b);
}
static ebb_status leaked_at(world *w, uint64_t id) {
    ebb_work b;
    return ebb_region_leaked_at(w->host, (ebb_region){id}, 0, &b);
}
static ebb_status chain_of(world *w, uint64_t id) {
    ebb_region_cause chain[2];
    uint32_t n;
    bool cut;
    return ebb_region_causes(w->host, (ebb_region){id}, chain, 2, &n, &cut);
}
static ebb_status reserve_in(world *w, uint64_t id) {
    return ebb_id_status(ebb_region_reserve(w->host, (ebb_region){id}, EBB_OBLIGATION_IO, NULL, NULL).id);
}
static ebb_status defer_in(world *w, uint64_t id) {
    return ebb_region_defer(w->host, (ebb_region){id}, puppet_poll, NULL);
}
static ebb_status wake_task(world *w, uint64_t id) {
    return ebb_task_wake(w->host, (ebb_task){id});
}
static ebb_status join_task(world *w, uint64_t id) {
    return ebb_task_join(w->host, (ebb_task){id});
}
static ebb_status look_at_task(world *w, uint64_t id) {
    ebb_task_info info;
    return ebb_task_info_of(w->host, (ebb_task){id}, &info);
}
static ebb_status witness_task(world *w, uint64_t id) {
    ebb_witness x;
    return ebb_task_witness(w->host, (ebb_task){id}, &x);
}
static ebb_status arm_for(world *w, uint64_t id) {
    return ebb_id_status(ebb_timer_arm(w->host, (ebb_task){id}, 5).id);
}
static ebb_status disarm(world *w, uint64_t id) {
    return ebb_timer_disarm(w->host, (ebb_timer){id});
}
static ebb_status commit(world *w, uint64_t id) {
    return ebb_obligation_commit(w->host, (ebb_obligation){id});
}
static ebb_status resolve_by_abort(world *w, uint64_t id) {
    return ebb_obligation_abort(w->host, (ebb_obligation){id});
}

typedef enum noun { REGION, TASK, OBLIGATION, TIMER, NOUNS } noun;

static const struct {
    const char *name;
    attempt *try;
    noun of;
} functions[] = {
    {"ebb_spawn", spawn_in, REGION},
    {"ebb_spawn with options", spawn_with_in, REGION},
    {"ebb_region_open", open_in, REGION},
    {"ebb_region_join", join_region, REGION},
    {"ebb_region_state_of", look_at_region, REGION},
    {"ebb_region_report_of", report_region, REGION},
    {"ebb_region_abandoned_at", abandoned_at, REGION},
    {"ebb_region_leaked_at", leaked_at, REGION},
    {"ebb_region_causes", chain_of, REGION},
    {"ebb_region_reserve", reserve_in, REGION},
    {"ebb_region_defer", defer_in, REGION},
    {"ebb_task_wake", wake_task, TASK},
    {"ebb_task_join", join_task, TASK},
    {"ebb_task_info_of", look_at_task, TASK},
    {"ebb_task_witness", witness_task, TASK},
    {"ebb_timer_arm", arm_for, TASK},
    {"ebb_timer_disarm", disarm, TIMER},
    {"ebb_obligation_commit", commit, OBLIGATION},
    {"ebb_obligation_abort", resolve_by_abort, OBLIGATION},
};

/* An id of each noun that names nothing any more. */
static void make_stale(world *w, uint64_t stale[NOUNS]) {
    ebb_region r = open_region(w, w->root);
    stale[REGION] = r.id;
    ebb_region_close(w->host, r);
    world_settle(w);
    assert_int_equal(ebb_region_join(w->host, r), EBB_OK);
    ebb_obligation o = ebb_obligation_reserve(w->host, EBB_OBLIGATION_IO, NULL, NULL);
    stale[OBLIGATION] = o.id;
    assert_int_equal(ebb_obligation_commit(w->host, o), EBB_OK);
    puppet *p = puppet_start(w, w->root, IGNORING);
    stale[TASK] = p->id.id;
    ebb_timer t = ebb_timer_arm(w->host, p->id, EBB_SECOND);
    stale[TIMER] = t.id;
    assert_int_equal(ebb_timer_disarm(w->host, t), EBB_OK);
    p->returns = EBB_OK;
    world_settle(w);
    assert_int_equal(ebb_task_join(w->host, p->id), EBB_OK);
}

static void expect(world *w, size_t f, uint64_t id, ebb_status expected) {
    ebb_status st = functions[f].try(w, id);
    if (st == expected) return;
    fail_msg("%s(%016llx) says %s, expected %s", functions[f].name, (unsigned long long)id,
             ebb_status_name(st), ebb_status_name(expected));
}

static void every_function_names_what_is_wrong_with_an_id(void **state) {
    (void)state;
    ebb_runtime_opts o = {.size = sizeof o, .runtime_id = 3};
    world *w = world_new(&o, true);
    uint64_t stale[NOUNS];
    make_stale(w, stale);
    ebb_runtime_stats before = stats_of(w);
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        noun of = functions[f].of;
        ebb_status gone = of == OBLIGATION ? EBB_ERR_RESOLVED : EBB_ERR_STALE;
        expect(w, f, 0, EBB_ERR_INVALID);
        expect(w, f, stale[of], gone);
        expect(w, f, (stale[of] & ~UINT64_C(0xffffffff)) | 0xffffffff, gone); /* a generation to come */
        expect(w, f, UINT64_C(3) << 56 | UINT64_C(0xffffff) << 32 | 1, gone); /* a slot that never was */
        expect(w, f, UINT64_C(3) << 56 | 1, gone);                            /* the slot that is none */
        expect(w, f, UINT64_C(4) << 56 | (stale[of] & ((UINT64_C(1) << 56) - 1)), EBB_ERR_FOREIGN);
        /* Error ids are passed on. */
        ebb_region closed = {UINT64_C(3) << 56 | (uint64_t)-EBB_ERR_CLOSED << 32};
        assert_int_equal(ebb_id_status(closed.id), EBB_ERR_CLOSED);
        expect(w, f, closed.id, EBB_ERR_CLOSED);
        expect(w, f, UINT64_C(3) << 56 | (uint64_t)-EBB_ERR_NOMEM << 32, EBB_ERR_NOMEM);
    }
    ebb_runtime_stats after = stats_of(w);
    assert_int_equal(after.tasks, before.tasks);
    assert_int_equal(after.regions, before.regions);
    assert_int_equal(after.obligations, before.obligations);
    assert_int_equal(after.timers, before.timers);
    world_end(w);
}

static void the_verbs_count_stale_ids_and_ignore_foreign_and_erroneous_ones(void **state) {
    world *w = *state;
    uint64_t stale[NOUNS];
    make_stale(w, stale);
    uint64_t counted = stats_of(w).stale_wakes;
    ebb_region r = {stale[REGION]}, foreign = {UINT64_C(9) << 56 | 1 << 24 | 1};
    ebb_task t = {stale[TASK]}, foreign_task = {foreign.id};
    ebb_region_close(w->host, r);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    ebb_region_cancel_within(w->host, r, EBB_CANCEL_USER, NULL, (ebb_budget){1, 1, 1});
    ebb_region_force(w->host, r);
    ebb_task_cancel(w->host, t, EBB_CANCEL_USER, NULL);
    ebb_task_force(w->host, t);
    assert_int_equal(stats_of(w).stale_wakes, counted + 6);
    uint64_t others[] = {0, foreign.id, (uint64_t)-EBB_ERR_NOMEM << 32};
    for (int i = 0; i < 3; i++) {
        ebb_region x = {others[i]};
        ebb_task y = {others[i]};
        ebb_region_close(w->host, x);
        ebb_region_cancel(w->host, x, EBB_CANCEL_USER, NULL);
        ebb_region_cancel_within(w->host, x, EBB_CANCEL_USER, NULL, (ebb_budget){1, 1, 1});
        ebb_region_force(w->host, x);
        ebb_task_cancel(w->host, y, EBB_CANCEL_USER, NULL);
        ebb_task_force(w->host, y);
    }
    assert_int_equal(ebb_task_wake(w->host, foreign_task), EBB_ERR_FOREIGN);
    assert_int_equal(stats_of(w).stale_wakes, counted + 6);
    assert_int_equal(state_of(w, w->root), EBB_REGION_OPEN);
}

static void an_id_of_another_runtime_is_never_taken_for_ones_own(void **state) {
    (void)state;
    ebb_runtime_opts a_opts = {.runtime_id = 1}, b_opts = {.runtime_id = 2};
    world *a = world_new(&a_opts, true), *b = world_new(&b_opts, true);
    puppet *p = puppet_start(a, a->root, IGNORING);
    (void)puppet_start(b, b->root, IGNORING); /* the same slot there */
    assert_int_equal(ebb_task_wake(b->host, p->id), EBB_ERR_FOREIGN);
    ebb_region_cancel(b->host, a->root, EBB_CANCEL_USER, NULL);
    assert_int_equal(state_of(b, b->root), EBB_REGION_OPEN);
    assert_int_equal(state_of(a, a->root), EBB_REGION_OPEN);
    world_end(a);
    world_end(b);
}

/* ---- arguments ---------------------------------------------------------------------------------- */

static void structs_of_another_version_are_refused(void **state) {
    world *w = *state;
    ebb_runtime *rt = (ebb_runtime *)1;
    ebb_runtime_opts o = {.size = sizeof o - 1, .allocator = w->allocator};
    assert_int_equal(ebb_runtime_new(&o, &rt), EBB_ERR_VERSION);
    assert_null(rt);
    assert_int_equal(ebb_runtime_new(NULL, &rt), EBB_ERR_INVALID);
    o = (ebb_runtime_opts){.size = sizeof o};
    assert_int_equal(ebb_runtime_new(&o, &rt), EBB_ERR_INVALID); /* no allocator */
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.size = 3});
    assert_int_equal(ebb_id_status(r.id), EBB_ERR_VERSION);
    ebb_task t = ebb_spawn(w->host, w->root, puppet_poll, NULL, &(ebb_task_opts){.size = 3});
    assert_int_equal(ebb_id_status(t.id), EBB_ERR_VERSION);
    ebb_runtime_free(NULL);
}

static void what_makes_no_sense_is_invalid(void **state) {
    world *w = *state;
    assert_int_equal(ebb_id_status(ebb_spawn(w->host, w->root, NULL, w).id), EBB_ERR_INVALID);
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.policy = (ebb_failure_policy)7});
    assert_int_equal(ebb_id_status(r.id), EBB_ERR_INVALID);
    assert_int_equal(ebb_region_defer(w->host, w->root, NULL, NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_defer(w->host, NULL, NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_region_join(w->host, w->root), EBB_ERR_INVALID); /* the root ends with the runtime */
    ebb_sleeper nap = {{0}, {0}, 0};
    assert_int_not_equal(ebb_sleep(w->host, &nap, 5), EBB_PENDING); /* the host can't wait */
}

static void an_unknown_kind_of_cancel_counts_as_the_users(void **state) {
    world *w = *state;
    static const int kinds[] = {-1, EBB_CANCEL_NONE, EBB_CANCEL_PARENT, EBB_CANCEL_KINDS, 255, 1000};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        ebb_region r = open_region(w, w->root);
        puppet *p = puppet_start(w, r, HEEDING), *q = puppet_start(w, w->root, HEEDING);
        ebb_region_cancel(w->host, r, (ebb_cancel_kind)kinds[i], NULL);
        ebb_task_cancel(w->host, q->id, (ebb_cancel_kind)kinds[i], NULL);
        assert_int_equal(info_of(w, p->id).reason.kind, EBB_CANCEL_USER);
        assert_int_equal(info_of(w, q->id).reason.kind, EBB_CANCEL_USER);
    }
}

typedef struct stranger {
    ebb_region region;
    ebb_task task;
    ebb_status region_join, task_join;
} stranger;

static void tries_to_join(ebb_cx *cx, puppet *p) {
    stranger *s = p->arg;
    s->region_join = ebb_region_join(cx, s->region);
    if (s->task.id != 0) s->task_join = ebb_task_join(cx, s->task);
}

static void only_who_opened_a_region_may_join_it_and_only_once(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    stranger *s = world_keep(w, sizeof *s);
    s->region = r;
    (void)puppet_start(w, w->root, (puppet){.act = tries_to_join, .arg = s});
    world_settle(w);
    assert_int_equal(s->region_join, EBB_ERR_BUSY);
    ebb_region_close(w->host, r);
    world_settle(w);
    assert_int_equal(ebb_region_join(w->host, r), EBB_OK);
    assert_int_equal(ebb_region_join(w->host, r), EBB_ERR_STALE);
}

static void a_task_has_one_joiner_and_is_joined_once_and_not_by_itself(void **state) {
    world *w = *state;
    puppet *target = puppet_start(w, w->root, IGNORING);
    stranger *one = world_keep(w, sizeof *one), *two = world_keep(w, sizeof *two);
    one->task = two->task = target->id;
    puppet *first =
        puppet_start(w, w->root, (puppet){.act = tries_to_join, .arg = one, .returns = EBB_PENDING});
    world_settle(w);
    assert_int_equal(one->task_join, EBB_PENDING);
    (void)puppet_start(w, w->root, (puppet){.act = tries_to_join, .arg = two});
    world_settle(w);
    assert_int_equal(two->task_join, EBB_ERR_BUSY);
    assert_int_equal(ebb_task_join(w->host, target->id), EBB_ERR_BUSY);
    target->returns = EBB_OK;
    (void)ebb_task_wake(w->host, target->id);
    world_settle(w);
    assert_int_equal(one->task_join, EBB_OK);
    assert_int_equal(ebb_task_join(w->host, target->id), EBB_ERR_STALE);
    first->returns = EBB_OK;
    stranger *self = world_keep(w, sizeof *self);
    puppet *narcissus = puppet_start(w, w->root, (puppet){.act = tries_to_join, .arg = self});
    self->task = narcissus->id;
    world_settle(w);
    assert_int_equal(self->task_join, EBB_ERR_INVALID);
    puppet *unkept = puppet_new(w, IGNORING);
    ebb_task t = ebb_spawn(w->host, w->root, puppet_poll, unkept);
    assert_int_equal(ebb_task_join(w->host, t), EBB_ERR_INVALID); /* its outcome is not kept */
}

static void a_joiner_that_has_turned_to_something_else_is_in_nobodys_way(void **state) {
    world *w = *state;
    puppet *target = puppet_start(w, w->root, IGNORING);
    stranger *one = world_keep(w, sizeof *one);
    one->task = target->id;
    puppet *first =
        puppet_start(w, w->root, (puppet){.act = tries_to_join, .arg = one, .returns = EBB_PENDING});
    world_settle(w);
    assert_int_equal(one->task_join, EBB_PENDING);
    first->act = NULL;
    (void)ebb_task_wake(w->host, first->id);
    world_settle(w);
    assert_int_equal(ebb_task_join(w->host, target->id), EBB_PENDING);
}

/* ---- limits ------------------------------------------------------------------------------------- */

static void the_limit_of_tasks_is_reached_exactly_and_sticks_to_the_region(void **state) {
    (void)state;
    ebb_runtime_opts o = {.max_tasks = 5, .max_regions = 3};
    world *w = world_new(&o, true);
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    puppet *p[5];
    for (int i = 0; i < 5; i++) p[i] = puppet_start(w, r, IGNORING);
    ebb_task sixth = ebb_spawn(w->host, r, puppet_poll, p[0]);
    assert_int_equal(ebb_id_status(sixth.id), EBB_ERR_LIMIT);
    assert_int_equal(ebb_task_wake(w->host, sixth), EBB_ERR_LIMIT);
    assert_int_equal(stats_of(w).tasks, 5);
    world_settle(w);
    p[0]->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p[0]->id);
    world_settle(w);
    assert_int_equal(ebb_id_status(ebb_spawn(w->host, r, puppet_poll, p[0]).id),
                     EBB_ERR_LIMIT); /* it is kept */
    assert_int_equal(ebb_task_join(w->host, p[0]->id), EBB_OK);
    assert_int_equal(ebb_id_status(ebb_spawn(w->host, r, puppet_poll, p[0]).id), EBB_OK);
    assert_int_equal(report_of(w, r).status, EBB_ERR_LIMIT);
    world_end(w);
}

static void the_limit_of_regions_counts_the_root_and_what_is_not_joined(void **state) {
    (void)state;
    ebb_runtime_opts o = {.max_regions = 3};
    world *w = world_new(&o, true);
    ebb_region a = open_region(w, w->root), b = open_region(w, a);
    ebb_region c = ebb_region_open(w->host, NULL);
    assert_int_equal(ebb_id_status(c.id), EBB_ERR_LIMIT);
    assert_int_equal(ebb_region_join(w->host, c), EBB_ERR_LIMIT);
    assert_int_equal(ebb_id_status(ebb_spawn(w->host, c, puppet_poll, NULL).id), EBB_ERR_LIMIT);
    ebb_region_close(w->host, b);
    world_settle(w);
    assert_int_equal(ebb_id_status(ebb_region_open(w->host, NULL).id), EBB_ERR_LIMIT);
    assert_int_equal(ebb_region_join(w->host, b), EBB_OK);
    assert_int_equal(ebb_id_status(ebb_region_open(w->host, NULL).id), EBB_OK);
    world_end(w);
}

static void messages_of_other_runtimes_are_checked_like_calls(void **state) {
    (void)state;
    ebb_runtime_opts o = {.runtime_id = 3};
    world *w = world_new(&o, true);
    puppet *p = puppet_start(w, w->root, HEEDING);
    world_settle(w);
    ebb_msg wake = {.verb = EBB_MSG_WAKE, .target = p->id.id}, m;
    m = wake, m.target = UINT64_C(4) << 56 | 1;
    assert_int_equal(ebb_msg_deliver(w->rt, &m), EBB_ERR_FOREIGN);
    m = wake, m.target = UINT64_C(3) << 56;
    assert_int_equal(ebb_msg_deliver(w->rt, &m), EBB_ERR_INVALID);
    m = wake, m.verb = (ebb_msg_verb)0;
    assert_int_equal(ebb_msg_deliver(w->rt, &m), EBB_ERR_INVALID);
    m.verb = (ebb_msg_verb)6;
    assert_int_equal(ebb_msg_deliver(w->rt, &m), EBB_ERR_INVALID);
    m = wake, m.to_region = true;
    assert_int_equal(ebb_msg_deliver(w->rt, &m), EBB_ERR_INVALID);
    m = wake, m.verb = EBB_MSG_CLOSE;
    assert_int_equal(ebb_msg_deliver(w->rt, &m), EBB_ERR_INVALID);
    uint32_t polls = p->polls;
    world_settle(w);
    assert_int_equal(p->polls, polls);
    assert_int_equal(ebb_msg_deliver(w->rt, &wake), EBB_OK);
    m = wake, m.verb = EBB_MSG_WORD, m.to_region = true, m.target = w->root.id;
    assert_int_equal(ebb_msg_deliver(w->rt, &m), EBB_OK); /* wakes nobody */
    world_settle(w);
    assert_int_equal(p->polls, polls + 1);
    m = wake, m.verb = EBB_MSG_CANCEL, m.kind = EBB_CANCEL_DISCONNECT;
    assert_int_equal(ebb_msg_deliver(w->rt, &m), EBB_OK);
    world_settle(w);
    assert_int_equal(info_of(w, p->id).status, EBB_CANCELLED);
    assert_int_equal(ebb_msg_deliver(w->rt, &m), EBB_OK); /* too late: counted */
    assert_int_equal(stats_of(w).stale_wakes, 1);
    world_end(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_names_what_is_wrong_with_an_id),
        IN_WORLD(the_verbs_count_stale_ids_and_ignore_foreign_and_erroneous_ones),
        cmocka_unit_test(an_id_of_another_runtime_is_never_taken_for_ones_own),
        IN_WORLD(structs_of_another_version_are_refused),
        IN_WORLD(what_makes_no_sense_is_invalid),
        IN_WORLD(an_unknown_kind_of_cancel_counts_as_the_users),
        IN_WORLD(only_who_opened_a_region_may_join_it_and_only_once),
        IN_WORLD(a_task_has_one_joiner_and_is_joined_once_and_not_by_itself),
        IN_WORLD(a_joiner_that_has_turned_to_something_else_is_in_nobodys_way),
        cmocka_unit_test(the_limit_of_tasks_is_reached_exactly_and_sticks_to_the_region),
        cmocka_unit_test(the_limit_of_regions_counts_the_root_and_what_is_not_joined),
        cmocka_unit_test(messages_of_other_runtimes_are_checked_like_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
