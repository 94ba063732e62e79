/* Cleanup scopes: the only place where new work is admitted while everything around it is cancelled. */
#include "tests/support/world.h"

typedef struct scope {
    ebb_region id;
    puppet *worker;
    puppet plan; /* of the worker */
    ebb_status opened, joined, spawned, reserved;
    bool early; /* tried before any cancel */
    bool stays; /* is not joined */
    uint64_t deadline;
} scope;

static void open_scope(ebb_cx *cx, puppet *p) {
    scope *s = p->arg;
    s->id = ebb_region_open(cx, &(ebb_region_opts){.cleanup = true, .deadline = s->deadline});
    s->opened = ebb_id_status(s->id.id);
    if (s->opened != EBB_OK) return;
    s->worker = puppet_new(p->world, s->plan);
    s->worker->id = ebb_spawn(cx, s->id, puppet_poll, s->worker, &(ebb_task_opts){.keep = true});
    s->spawned = ebb_id_status(s->worker->id.id);
    ebb_obligation o = ebb_region_reserve(cx, s->id, EBB_OBLIGATION_IO, NULL, NULL);
    s->reserved = ebb_id_status(o.id);
    (void)ebb_obligation_commit(cx, o);
}

/* Under request, it opens a scope, masked, and joins it. */
static void cleans_in_a_scope(ebb_cx *cx, puppet *p) {
    scope *s = p->arg;
    if (!ebb_cancelled(cx) && s->id.id == 0 && !s->early) return;
    if (s->id.id == 0) {
        (void)ebb_checkpoint(cx);
        (void)ebb_mask(cx);
        open_scope(cx, p);
    }
    s->joined = s->stays ? EBB_OK : ebb_region_join(cx, s->id);
    p->returns = s->joined == EBB_PENDING ? EBB_PENDING : EBB_OK;
}

static scope *scope_new(world *w, puppet plan) {
    scope *s = world_keep(w, sizeof *s);
    s->plan = plan;
    return s;
}

static puppet *cleaner(world *w, ebb_region r, scope *s) {
    return puppet_start(w, r, (puppet){.act = cleans_in_a_scope, .arg = s, .returns = EBB_PENDING});
}

static void the_host_and_a_task_that_nobody_cancelled_may_not_open_one(void **state) {
    world *w = *state;
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.cleanup = true});
    assert_int_equal(ebb_id_status(r.id), EBB_ERR_NOT_CLEANING);
    scope *s = scope_new(w, IGNORING);
    s->early = true;
    puppet *p = cleaner(w, w->root, s);
    world_settle(w);
    assert_int_equal(s->opened, EBB_ERR_NOT_CLEANING);
    assert_int_equal(p->polls, 1);
}

static void a_task_under_request_may_open_one_and_work_in_it(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    scope *s = scope_new(w, (puppet){.says = "cleaned"});
    puppet *p = cleaner(w, r, s);
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(s->opened, EBB_OK);
    assert_int_equal(s->spawned, EBB_OK);
    assert_int_equal(s->reserved, EBB_OK);
    assert_int_equal(s->joined, EBB_OK);
    assert_string_equal(w->log, "cleaned ");
    assert_int_equal(info_of(w, p->id).status, EBB_CANCELLED);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
}

static void a_cancel_from_above_does_not_reach_into_it_but_one_of_its_own_does(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    scope *s = scope_new(w, HEEDING);
    puppet *p = cleaner(w, r, s);
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_TIMEOUT, "more urgent");
    ebb_region_close(w->host, r);
    world_settle(w);
    assert_int_equal(phase_of(w, s->worker->id), EBB_TASK_RUNNING);
    assert_int_equal(state_of(w, s->id), EBB_REGION_OPEN);
    ebb_region_cancel(w->host, s->id, EBB_CANCEL_USER, "the scope itself");
    world_settle(w);
    assert_int_equal(s->joined, EBB_CANCELLED);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
}

static void force_reaches_into_it(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    scope *s = scope_new(w, IGNORING);
    puppet *p = cleaner(w, r, s);
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(s->joined, EBB_PENDING);
    ebb_region_force(w->host, r);
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(s->worker->polls, 1 + 8);
    assert_int_equal(event_of(w, EBB_EV_ABANDONED, s->worker->id.id).cancel_kind, EBB_CANCEL_PARENT);
    assert_int_equal(s->joined, EBB_CANCELLED); /* at force every await says so, masked or not */
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
}

static void its_budget_is_what_is_left_of_its_owners(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    scope *s = scope_new(w, IGNORING);
    puppet *p = cleaner(w, r, s);
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL); /* until 5000, forced at 4000 */
    world_pass(w, 3000 * EBB_MS);
    assert_int_equal(s->joined, EBB_PENDING);
    assert_true(info_of(w, s->worker->id).budget.polls <= 1024);             /* the owner's polls, each */
    ebb_region_cancel(w->host, s->id, EBB_CANCEL_USER, "no more than that"); /* not until 8000 */
    assert_true(info_of(w, s->worker->id).budget.deadline <= 5000 * EBB_MS);
    world_pass(w, 2500 * EBB_MS);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_true(event_of(w, EBB_EV_REGION_CLOSED, r.id).time <= 5500 * EBB_MS);
}

static void a_deadline_of_its_own_may_be_earlier_than_its_owners_but_not_later(void **state) {
    world *w = *state;
    static const struct { uint64_t asked, cancelled_at; } cases[] = {{100, 100}, {60000, 4000}};
    for (size_t i = 0; i < 2; i++) {
        uint64_t start = world_now(w);
        ebb_region r = open_region(w, w->root);
        scope *s = scope_new(w, HEEDING);
        s->deadline = start + cases[i].asked * EBB_MS;
        (void)cleaner(w, r, s);
        world_settle(w);
        ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
        world_finish(w);
        ebb_event ev = event_of(w, EBB_EV_REGION_CANCELLED, s->id.id);
        assert_in_range(ev.time, start + cases[i].cancelled_at * EBB_MS,
                        start + (cases[i].cancelled_at + 2) * EBB_MS);
        assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    }
}

static void one_that_is_left_open_is_cancelled_and_joined_within_its_owners_budget(void **state) {
    world *w = *state;
    for (int own = 0; own < 2; own++) {
        uint64_t start = world_now(w);
        ebb_region r = open_region(w, w->root);
        puppet stubborn = {.returns = EBB_PENDING};
        scope *s = scope_new(w, stubborn);
        s->stays = true;
        puppet *p = cleaner(w, r, s);
        world_settle(w);
        if (own) ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
        else ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
        world_settle(w);
        assert_int_equal(event_of(w, EBB_EV_REGION_CANCELLED, s->id.id).other, start + 5000 * EBB_MS);
        ebb_region_close(w->host, r);
        world_finish(w);
        assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
        assert_true(event_of(w, EBB_EV_REGION_CLOSED, r.id).time <= start + 5500 * EBB_MS);
        assert_int_equal(s->worker->polls, 1 + 8);
    }
}

static void returns_after_3_s(ebb_cx *cx, puppet *p) {
    scope *s = p->arg;
    if (s->id.id == 0) s->id = ebb_region_open(cx, NULL);
    if (s->worker == NULL) {
        s->worker = puppet_new(p->world, IGNORING);
        s->worker->id = ebb_spawn(cx, s->id, puppet_poll, s->worker, &(ebb_task_opts){.keep = true});
        puppet *waits = puppet_new(p->world, IGNORING);
        (void)ebb_region_defer(cx, s->id, puppet_poll, waits);
    }
    p->returns = ebb_now(cx) >= 3000 * EBB_MS ? EBB_OK : EBB_PENDING;
}

static void a_region_left_behind_late_in_the_budget_gets_only_what_is_left(void **state) {
    world *w = *state;
    scope *s = scope_new(w, IGNORING);
    puppet *p = puppet_start(w, w->root, (puppet){.act = returns_after_3_s, .arg = s});
    world_settle(w);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL); /* until 5000 */
    world_pass(w, 3000 * EBB_MS);
    (void)ebb_task_wake(w->host, p->id);
    world_finish(w);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
    assert_true(event_of(w, EBB_EV_REGION_CLOSED, s->id.id).time <= 5500 * EBB_MS);
}

static void a_finalizer_may_open_one_though_nothing_is_cancelled(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    scope *s = scope_new(w, (puppet){.says = "scope"});
    s->early = true;
    puppet *fin = puppet_new(w, (puppet){.act = cleans_in_a_scope, .arg = s});
    assert_int_equal(ebb_region_defer(w->host, r, puppet_poll, fin), EBB_OK);
    ebb_region_close(w->host, r);
    world_settle(w);
    assert_int_equal(s->opened, EBB_OK);
    assert_int_equal(s->joined, EBB_OK);
    assert_string_equal(w->log, "scope ");
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
}

static void opens_plain(ebb_cx *cx, puppet *p) {
    scope *s = p->arg;
    if (!ebb_cancelled(cx)) return;
    s->opened = ebb_id_status(ebb_region_open(cx, NULL).id);
    s->spawned = ebb_id_status(ebb_spawn(cx, ebb_cx_region(cx), puppet_poll, p).id);
    s->reserved = ebb_id_status(ebb_obligation_reserve(cx, EBB_OBLIGATION_ACK, NULL, NULL).id);
    p->returns = EBB_OK;
}

static void outside_of_one_a_task_under_request_is_refused(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    scope *s = scope_new(w, IGNORING);
    (void)puppet_start(w, r, (puppet){.act = opens_plain, .arg = s, .returns = EBB_PENDING});
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(s->opened, EBB_CANCELLED);
    assert_int_equal(s->spawned, EBB_CANCELLED);
    assert_int_equal(s->reserved, EBB_CANCELLED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(the_host_and_a_task_that_nobody_cancelled_may_not_open_one),
        IN_WORLD(a_task_under_request_may_open_one_and_work_in_it),
        IN_WORLD(a_cancel_from_above_does_not_reach_into_it_but_one_of_its_own_does),
        IN_WORLD(force_reaches_into_it),
        IN_WORLD(its_budget_is_what_is_left_of_its_owners),
        IN_WORLD(a_deadline_of_its_own_may_be_earlier_than_its_owners_but_not_later),
        IN_WORLD(one_that_is_left_open_is_cancelled_and_joined_within_its_owners_budget),
        IN_WORLD(a_region_left_behind_late_in_the_budget_gets_only_what_is_left),
        IN_WORLD(a_finalizer_may_open_one_though_nothing_is_cancelled),
        IN_WORLD(outside_of_one_a_task_under_request_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
