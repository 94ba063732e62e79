/* Hooks: code that runs when a region has closed or an obligation was aborted. They may do a lot, but not
 * harm what they hang on, nor keep it from ending. */
#include "tests/support/world.h"

typedef struct hook {
    world *world;
    void (*act)(struct hook *h);
    ebb_region region, other;
    ebb_cx *cx; /* of the task that it hangs on */
    ebb_obligation obligation;
    ebb_status got;
    uint32_t runs;
    bool before; /* what else had happened by then */
    ebb_region_cause chain[4];
    uint32_t links;
    const struct hook *peer;
} hook;

static hook *hook_new(world *w, void (*act)(hook *h)) {
    hook *h = world_keep(w, sizeof *h);
    h->world = w;
    h->act = act;
    return h;
}

static void run(void *arg) {
    hook *h = arg;
    h->runs++;
    if (h->act != NULL) h->act(h);
}

static void run_closed(void *arg, const ebb_region_report *report) {
    hook *h = arg;
    h->region = report->region;
    run(arg);
}

static ebb_region open_hooked(hook *h, ebb_region parent) {
    ebb_region r = ebb_region_open(h->world->host,
                                   &(ebb_region_opts){.parent = parent, .on_closed = run_closed, .arg = h});
    assert_int_equal(ebb_id_status(r.id), EBB_OK);
    return r;
}

static bool same_slot(uint64_t a, uint64_t b) {
    return a >> 32 == b >> 32;
}

/* ---- on_closed ----------------------------------------------------------------------------------- */

static void a_parent_is_not_joined_before_the_hook_of_its_child_was_called(void **state) {
    world *w = *state;
    hook *h = hook_new(w, NULL);
    ebb_region parent = open_region(w, w->root), child = open_hooked(h, parent);
    ebb_region_close(w->host, child);
    assert_int_equal(ebb_region_join(w->host, parent), EBB_PENDING);
    assert_int_equal(h->runs, 0);
    assert_int_not_equal(state_of(w, parent), EBB_REGION_CLOSED);
    world_settle(w);
    assert_int_equal(h->runs, 1);
    assert_int_equal(state_of(w, child), 0);
    assert_int_equal(ebb_region_join(w->host, parent), EBB_OK);
}

static void looks_at_its_parent(hook *h) {
    h->before = state_of(h->world, h->other) == EBB_REGION_CLOSED;
}

static void the_hooks_of_all_below_are_called_before_a_region_closes(void **state) {
    world *w = *state;
    hook *inner = hook_new(w, looks_at_its_parent), *outer = hook_new(w, looks_at_its_parent);
    ebb_region top = open_region(w, w->root), middle = open_hooked(outer, top);
    (void)open_hooked(inner, middle);
    inner->other = middle;
    outer->other = top;
    ebb_region_close(w->host, top);
    world_settle(w);
    assert_int_equal(inner->runs, 1);
    assert_int_equal(outer->runs, 1);
    assert_false(inner->before || outer->before);
    assert_int_equal(state_of(w, top), EBB_REGION_CLOSED);
}

static void joins_the_other_and_takes_a_slot(hook *h) {
    world *w = h->world;
    h->before = h->peer->runs > 0;
    h->got = ebb_region_join(w->host, h->other);
    ebb_region next = open_region(w, w->root);
    (void)puppet_start(w, next, IGNORING);
    ebb_region_cancel(w->host, next, EBB_CANCEL_SHUTDOWN, "another story");
}

static void reads_its_causes(hook *h) {
    bool truncated;
    h->got = ebb_region_causes(h->world->host, h->region, h->chain, 4, &h->links, &truncated);
}

static void a_hook_of_another_region_can_not_join_the_parent_away_from_under_a_child(void **state) {
    world *w = *state;
    hook *of_child = hook_new(w, reads_its_causes);
    hook *of_other = hook_new(w, joins_the_other_and_takes_a_slot);
    ebb_region parent = open_region(w, w->root);
    (void)open_hooked(of_child, parent);
    ebb_region other = open_hooked(of_other, w->root);
    of_other->other = parent;
    of_other->peer = of_child;
    ebb_region_cancel(w->host, parent, EBB_CANCEL_USER, "the real one");
    ebb_region_close(w->host, other);
    world_settle(w);
    assert_int_equal(of_other->runs, 1);
    assert_int_equal(of_other->got, of_other->before ? EBB_OK : EBB_PENDING);
    assert_int_equal(of_child->runs, 1);
    assert_int_equal(of_child->got, EBB_OK);
    assert_int_equal(of_child->links, 2);
    assert_int_equal(of_child->chain[1].region.id, parent.id);
    assert_int_equal(of_child->chain[1].reason.kind, EBB_CANCEL_USER);
    assert_string_equal(of_child->chain[1].reason.message, "the real one");
}

static void joins_its_parent(hook *h) {
    h->got = ebb_region_join(h->world->host, h->other);
}

static void closes_its_parent(hook *h) {
    ebb_region_close(h->world->host, h->other);
    h->got = state_of(h->world, h->other) == EBB_REGION_CLOSED ? EBB_OK : EBB_PENDING;
}

/* The slots of both are taken once each afterwards: neither was freed twice. */
static void what_a_hook_does_to_its_parent_waits_until_the_hook_is_over(void **state) {
    world *w = *state;
    static void (*const acts[])(hook * h) = {joins_its_parent, closes_its_parent};
    for (size_t i = 0; i < 2; i++) {
        hook *h = hook_new(w, acts[i]);
        ebb_region parent = open_region(w, w->root), child = open_hooked(h, parent);
        h->other = parent;
        ebb_region_close(w->host, child);
        world_settle(w);
        assert_int_equal(h->runs, 1);
        assert_int_equal(h->got, EBB_PENDING);
        assert_int_equal(state_of(w, parent), EBB_REGION_CLOSED);
        assert_int_equal(ebb_region_join(w->host, parent), EBB_OK);
        ebb_region a = open_region(w, w->root), b = open_region(w, w->root), c = open_region(w, w->root);
        assert_true(a.id != b.id && b.id != c.id && a.id != c.id);
    }
}

static void goes_on_for_ever(hook *h) {
    world *w = h->world;
    if (h->runs < 1000 * 1000 && state_of(w, w->root) == EBB_REGION_OPEN) {
        ebb_region_close(w->host, open_hooked(h, w->root));
    }
}

static void hooks_that_make_work_for_hooks_do_not_keep_the_pump_from_returning(void **state) {
    world *w = *state;
    hook *h = hook_new(w, goes_on_for_ever);
    ebb_region_close(w->host, open_hooked(h, w->root));
    assert_int_equal(ebb_runtime_pump(w->rt, 0), EBB_PENDING);
    uint32_t once = h->runs;
    assert_true(once > 0 && once < 1000 * 1000);
    assert_int_equal(ebb_runtime_pump(w->rt, 100), EBB_PENDING);
    assert_true(h->runs > once && h->runs < 1000 * 1000);
    h->runs = 1000 * 1000; /* the next one is the last */
    world_settle(w);
}

/* ---- abort hooks --------------------------------------------------------------------------------- */

static void opens_with_the_task(hook *h) {
    h->other = ebb_region_open(h->cx, NULL);
    h->got = ebb_id_status(h->other.id);
}

static void reserves_with_the_task(hook *h) {
    if (h->runs > 1000) return;
    h->got = ebb_id_status(ebb_obligation_reserve(h->cx, EBB_OBLIGATION_LEASE, run, h).id);
}

static void leaks(ebb_cx *cx, puppet *p) {
    hook *h = p->arg;
    h->cx = cx;
    assert_int_equal(ebb_id_status(ebb_obligation_reserve(cx, EBB_OBLIGATION_LEASE, run, h).id), EBB_OK);
}

static void an_abort_hook_can_not_add_to_what_an_ended_task_has_to_do(void **state) {
    world *w = *state;
    static void (*const acts[])(hook * h) = {opens_with_the_task, reserves_with_the_task};
    for (size_t i = 0; i < 2; i++) {
        ebb_region r = open_region(w, w->root);
        hook *h = hook_new(w, acts[i]);
        puppet *p = puppet_start(w, r, (puppet){.act = leaks, .arg = h, .returns = EBB_OK});
        world_settle(w);
        assert_int_equal(h->runs, 1);
        assert_int_equal(h->got, EBB_ERR_CLOSED);
        assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
        assert_int_equal(stats_of(w).obligations, 0);
        ebb_region_close(w->host, r);
        world_settle(w);
        assert_int_equal(report_of(w, r).leaked, 1);
    }
}

static void owns_a_region(ebb_cx *cx, puppet *p) {
    hook *h = p->arg;
    if (p->polls > 1) {
        p->returns = EBB_OK;
        return;
    }
    h->region = ebb_region_open(cx, NULL);
    assert_int_equal(ebb_id_status(ebb_spawn(cx, h->region, puppet_poll, puppet_new(p->world, HEEDING)).id),
                     EBB_OK);
}

/* The next task in its slot: what it opened must end with it, and nothing else is its own. */
static void what_an_abort_hook_tried_does_not_fall_to_the_next_task_in_the_slot(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    hook *h = hook_new(w, opens_with_the_task), *next = hook_new(w, NULL);
    puppet *first =
        puppet_start_with(w, r, (puppet){.act = leaks, .arg = h, .returns = EBB_OK}, (ebb_task_opts){0});
    world_settle(w);
    assert_int_equal(h->got, EBB_ERR_CLOSED);
    puppet *second = puppet_start_with(
        w, r, (puppet){.act = owns_a_region, .arg = next, .returns = EBB_PENDING}, (ebb_task_opts){0});
    assert_true(same_slot(first->id.id, second->id.id));
    world_settle(w);
    assert_int_equal(state_of(w, next->region), EBB_REGION_OPEN);
    (void)ebb_task_wake(w->host, second->id);
    world_settle(w);
    assert_int_equal(phase_of(w, second->id), 0);
    assert_int_equal(state_of(w, next->region), 0);
    ebb_region_close(w->host, r);
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
}

static void joins_and_opens_another(hook *h) {
    world *w = h->world;
    h->got = ebb_region_join(w->host, h->region);
    h->other = open_region(w, w->root);
    h->obligation =
        ebb_region_reserve(w->host, h->other, EBB_OBLIGATION_LEASE, puppet_abort, puppet_new(w, (puppet){0}));
}

static void the_hook_of_the_last_leak_may_join_its_region_and_use_the_slot_again(void **state) {
    world *w = *state;
    hook *h = hook_new(w, joins_and_opens_another);
    h->region = open_region(w, w->root);
    assert_int_equal(ebb_id_status(ebb_region_reserve(w->host, h->region, EBB_OBLIGATION_LEASE, run, h).id),
                     EBB_OK);
    ebb_region_force(w->host, h->region);
    world_settle(w);
    assert_int_equal(h->runs, 1);
    assert_int_equal(h->got, EBB_OK);
    assert_true(same_slot(h->region.id, h->other.id));
    assert_int_equal(state_of(w, h->region), 0);
    assert_int_equal(state_of(w, h->other), EBB_REGION_OPEN);
    assert_int_equal(w->aborts, 0);
    assert_int_equal(stats_of(w).leaks, 1);
    assert_int_equal(ebb_obligation_commit(w->host, h->obligation), EBB_OK);
}

/* ---- waits --------------------------------------------------------------------------------------- */

static void wait_cancel(ebb_wait *wait) {
    (void)wait;
}

static const ebb_wait_kind waiting = {"test", wait_cancel};

static void begins_twice(ebb_cx *cx, puppet *p) {
    assert_int_equal(ebb_wait_begin(cx, &p->wait, &waiting, NULL), EBB_OK);
    p->number = (uint64_t)-ebb_wait_begin(cx, &p->wait, &waiting, NULL);
    ebb_wait_end(&p->wait);
    assert_int_equal(ebb_wait_begin(cx, &p->wait, &waiting, NULL), EBB_OK); /* and is free again */
    ebb_wait_end(&p->wait);
}

static void waits_with_the_task(hook *h) {
    static ebb_wait wait;
    h->got = ebb_wait_begin(h->cx, &wait, &waiting, NULL);
    h->before = wait.cx != NULL;
}

static void only_a_task_that_is_not_over_can_wait_and_a_wait_is_for_one_thing(void **state) {
    world *w = *state;
    ebb_wait wait = {0};
    ebb_sleeper nap = {{0}, {0}, 0};
    assert_int_equal(ebb_wait_begin(w->host, &wait, &waiting, NULL), EBB_ERR_NOT_TASK);
    assert_null(wait.cx);
    assert_int_equal(ebb_sleep(w->host, &nap, 0), EBB_ERR_NOT_TASK);
    assert_int_equal(stats_of(w).timers, 0);
    puppet *p = puppet_start(w, w->root, (puppet){.act = begins_twice, .returns = EBB_OK});
    hook *h = hook_new(w, waits_with_the_task);
    (void)puppet_start(w, w->root, (puppet){.act = leaks, .arg = h, .returns = EBB_OK});
    world_settle(w);
    assert_int_equal(p->number, -EBB_ERR_BUSY);
    assert_int_equal(h->got, EBB_ERR_CLOSED);
    assert_false(h->before);
}

/* ---- what is kept, and what is not --------------------------------------------------------------- */

static void count_bytes(void *ctx, const void *bytes, size_t n) {
    (void)bytes;
    *(size_t *)ctx += n;
}

static void a_restart_of_a_recording_that_fails_keeps_what_was_recorded(void **state) {
    world *w = *state;
    assert_int_equal(ebb_journal_start(w->rt, 1 << 16), EBB_OK);
    ebb_region r = open_region(w, w->root);
    assert_int_equal(ebb_trace_start(w->rt, SIZE_MAX), EBB_ERR_INVALID);
    assert_int_equal(ebb_journal_start(w->rt, SIZE_MAX), EBB_ERR_INVALID);
    for (uint64_t nth = 1; nth <= 2; nth++) { /* the recorder, its buffers */
        w->memory.fail_at = w->memory.calls + nth;
        assert_int_equal(ebb_trace_start(w->rt, 1 << 20), EBB_ERR_NOMEM);
        w->memory.fail_at = w->memory.calls + nth;
        assert_int_equal(ebb_journal_start(w->rt, 1 << 20), EBB_ERR_NOMEM);
    }
    w->memory.fail_at = 0;
    ebb_region after = open_region(w, w->root);
    assert_int_equal(count_events(w, EBB_EV_REGION_OPENED, r.id), 1);
    assert_int_equal(count_events(w, EBB_EV_REGION_OPENED, after.id), 1);
    size_t n = 0;
    ebb_journal_take(w->rt, true, count_bytes, &n);
    assert_true(n > 0);
    assert_int_equal(ebb_journal_start(w->rt, 0), EBB_OK);
}

static void assert_silent(const ebb_reason *reason) {
    for (size_t i = 0; i < sizeof reason->message; i++) assert_int_equal(reason->message[i], 0);
}

static void a_reason_carries_nothing_of_the_message_of_who_had_the_slot_before(void **state) {
    world *w = *state;
    ebb_region former = open_region(w, w->root);
    ebb_region_cancel(w->host, former, EBB_CANCEL_USER, "password=secret");
    world_settle(w);
    assert_int_equal(ebb_region_join(w->host, former), EBB_OK);
    ebb_region r = open_region(w, w->root);
    assert_true(same_slot(former.id, r.id));
    puppet *p = puppet_start(w, r, IGNORING);
    world_settle(w);
    ebb_region_cancel(w->host, w->root, EBB_CANCEL_USER, "r");
    ebb_region_cause chain[4];
    uint32_t n;
    bool truncated;
    assert_int_equal(ebb_region_causes(w->host, r, chain, 4, &n, &truncated), EBB_OK);
    assert_int_equal(n, 2);
    assert_int_equal(chain[0].reason.kind, EBB_CANCEL_PARENT);
    assert_silent(&chain[0].reason);
    assert_string_equal(chain[1].reason.message, "r");
    assert_null(strstr(info_of(w, p->id).reason.message + 2, "word")); /* behind the end of "r" too */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_parent_is_not_joined_before_the_hook_of_its_child_was_called),
        IN_WORLD(the_hooks_of_all_below_are_called_before_a_region_closes),
        IN_WORLD(a_hook_of_another_region_can_not_join_the_parent_away_from_under_a_child),
        IN_WORLD(what_a_hook_does_to_its_parent_waits_until_the_hook_is_over),
        IN_UNTRACED_WORLD(hooks_that_make_work_for_hooks_do_not_keep_the_pump_from_returning),
        IN_WORLD(an_abort_hook_can_not_add_to_what_an_ended_task_has_to_do),
        IN_WORLD(what_an_abort_hook_tried_does_not_fall_to_the_next_task_in_the_slot),
        IN_WORLD(the_hook_of_the_last_leak_may_join_its_region_and_use_the_slot_again),
        IN_WORLD(only_a_task_that_is_not_over_can_wait_and_a_wait_is_for_one_thing),
        IN_WORLD(a_restart_of_a_recording_that_fails_keeps_what_was_recorded),
        IN_WORLD(a_reason_carries_nothing_of_the_message_of_who_had_the_slot_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
