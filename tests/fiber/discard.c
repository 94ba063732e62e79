/* Fibers that are discarded: the stack is back in the pool at once and serves the next fiber, nothing of the old one
 * runs again. And confined fibers, which can always be discarded: they wait by one means only, and are refused every
 * other. */
#include "tests/support/world.h"

#include <stdlib.h>

#include "fiber/fiber.h"
#include "fiber/sanitizer.h"

static ebb_fiber_stats fibers_of(world *w) {
    ebb_fiber_stats s;
    ebb_fiber_stats_of(w->rt, &s);
    return s;
}

static ebb_status discard(world *w, ebb_task t) {
    return ebb__task_discard(w->host, t);
}

static const ebb_task_opts kept = {.keep = true};

/* ---- the stack ----------------------------------------------------------------------------------- */

typedef struct spot {
    world *w;
    uintptr_t stack; /* an address on its stack */
    ebb_status seen;
} spot;

static ebb_status sleeps_long(ebb_cx *cx, void *arg) {
    spot *s = arg;
    char here[512];
    memset(here, 0x77, sizeof here);
    s->stack = (uintptr_t)here;
    ebb_sleeper nap = {.due = 0};
    s->seen = ebb_sleep(cx, &nap, EBB_SECOND);
    world_say(s->w, "ran on");
    return here[17] == 0x77 ? s->seen : EBB_FAULTED;
}

static ebb_status looks_at_its_stack(ebb_cx *cx, void *arg) {
    spot *s = arg;
    char here[512]; /* what the old frames had poisoned here would be reported */
    (void)cx;
    memset(here, 0x11, sizeof here);
    s->stack = (uintptr_t)here;
    return here[17] == 0x11 ? EBB_OK : EBB_FAULTED;
}

static bool near(uintptr_t x, uintptr_t y) {
    return (x > y ? x - y : y - x) < EBB_FIBER_STACK_BYTES;
}

static void a_discarded_fiber_gives_its_stack_to_the_next_at_once(void **state) {
    world *w = *state;
    spot old = {.w = w}, next = {.w = w};
    ebb_task t = ebb_fiber_spawn(w->host, w->root, sleeps_long, &old, &kept);
    world_settle(w);
    uint64_t bytes = fibers_of(w).bytes;
    assert_int_equal(fibers_of(w).pooled, 0);
    assert_int_equal(discard(w, t), EBB_OK);
    assert_int_equal(fibers_of(w).alive, 0);
    assert_int_equal(fibers_of(w).pooled, 1);
    assert_int_equal(fibers_of(w).bytes, bytes);
    ebb_task u = ebb_fiber_spawn(w->host, w->root, looks_at_its_stack, &next, &kept);
    assert_int_equal(fibers_of(w).pooled, 0);
    world_pass(w, 2 * EBB_SECOND);
    assert_int_equal(ebb_task_join(w->host, u), EBB_OK);
    assert_int_equal(ebb_task_join(w->host, t), EBB_DISCARDED);
    if (!EBB__ASAN) assert_true(near(old.stack, next.stack)); /* its locals may be elsewhere */
    assert_string_equal(w->log, "");
}

static void a_fiber_that_never_ran_gives_its_stack_back_too(void **state) {
    world *w = *state;
    spot s = {.w = w};
    for (int keep = 0; keep < 2; keep++) {
        ebb_task_opts o = {.keep = keep != 0};
        ebb_task t = keep ? ebb_fiber_spawn(w->host, w->root, sleeps_long, &s, &o)
                          : ebb_fiber_spawn(w->host, w->root, sleeps_long, &s);
        assert_int_equal(fibers_of(w).alive, 1);
        assert_int_equal(discard(w, t), EBB_OK);
        assert_int_equal(fibers_of(w).alive, 0);
        assert_int_equal(fibers_of(w).pooled, 1);
    }
    world_settle(w);
    assert_int_equal(s.stack, 0);
}

static void thousands_that_are_discarded_leave_no_more_than_the_pool_keeps(void **state) {
    world *w = *state;
    enum { CROWD = 1500, ROUNDS = 4 };
    spot *s = world_keep(w, CROWD * sizeof *s);
    ebb_task *t = world_keep(w, CROWD * sizeof *t);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CROWD; i++) {
            s[i].w = w;
            t[i] = ebb_fiber_spawn(w->host, w->root, sleeps_long, &s[i]);
        }
        if (round % 2 == 0) world_settle(w);
        for (int i = 0; i < CROWD; i++) assert_int_equal(discard(w, t[(i * 7) % CROWD]), EBB_OK);
        assert_int_equal(fibers_of(w).alive, 0);
        assert_true(fibers_of(w).pooled <= 1024 + 256);
    }
    assert_int_equal(stats_of(w).abandoned, 0);
    assert_int_equal(stats_of(w).timers, 0);
    assert_string_equal(w->log, "");
}

typedef struct queueing {
    ebb_chan *ch;
    int got;
} queueing;

static ebb_status takes_one(ebb_cx *cx, void *arg) {
    queueing *q = arg;
    ebb_wait wait = {.cx = NULL};
    int item;
    ebb_status st = ebb_chan_recv(cx, q->ch, &wait, &item);
    if (st == EBB_OK) q->got = item;
    return st;
}

/* The wait lies on the stack that the next fiber gets. */
static void a_wait_on_its_stack_leaves_the_queue_first(void **state) {
    world *w = *state;
    queueing a = {0}, b = {0};
    assert_int_equal(ebb_chan_new(w->rt, 1, sizeof(int), &a.ch), EBB_OK);
    b.ch = a.ch;
    ebb_task t = ebb_fiber_spawn(w->host, w->root, takes_one, &a);
    world_settle(w);
    assert_int_equal(discard(w, t), EBB_OK);
    ebb_fiber_spawn(w->host, w->root, takes_one, &b);
    world_settle(w);
    ebb_wait wait = {.cx = NULL};
    int item = 5;
    assert_int_equal(ebb_chan_send(w->host, a.ch, &wait, &item), EBB_OK);
    world_settle(w);
    assert_int_equal(a.got, 0);
    assert_int_equal(b.got, 5);
    ebb_chan_free(a.ch);
}

static ebb_status awaits(ebb_cx *cx, void *arg) {
    return ebb_await(cx, arg, NULL);
}

static void the_future_that_it_awaits_is_let_go_of(void **state) {
    world *w = *state;
    ebb_future *f = ebb_after(w->host, EBB_SECOND);
    ebb_task t = ebb_fiber_spawn(w->host, w->root, awaits, f);
    world_settle(w);
    assert_int_equal(ebb_future_status_of(f), EBB_PENDING);
    assert_int_equal(discard(w, t), EBB_OK);
    world_settle(w);
    assert_int_equal(ebb_future_status_of(f), EBB_CANCELLED);
    assert_int_equal(fibers_of(w).alive, 0);
}

static void the_fiber_of_a_future_is_refused_and_goes_on(void **state) {
    world *w = *state;
    spot s = {.w = w};
    ebb_future *f = ebb_fiber_go(w->host, w->root, sleeps_long, &s);
    world_settle(w);
    ebb_event ev;
    assert_true(find_event(w, EBB_EV_FINALIZER_ADDED, 0, 0, &ev));
    assert_int_equal(discard(w, (ebb_task){ev.task_id}), EBB_ERR_OWES);
    world_pass(w, EBB_SECOND);
    assert_int_equal(ebb_future_status_of(f), EBB_OK);
    assert_string_equal(w->log, "ran on ");
}

typedef struct killer {
    ebb_task victim;
    ebb_status seen;
} killer;

static ebb_status discards(ebb_cx *cx, void *arg) {
    killer *k = arg;
    k->seen = ebb__task_discard(cx, k->victim);
    return ebb__task_discard(cx, ebb_cx_task(cx)) == EBB_ERR_BUSY ? EBB_OK : EBB_FAILED;
}

static void a_fiber_may_discard_another_but_not_itself(void **state) {
    world *w = *state;
    spot s = {.w = w};
    killer k = {.victim = ebb_fiber_spawn(w->host, w->root, sleeps_long, &s, &kept)};
    world_settle(w);
    ebb_task t = ebb_fiber_spawn(w->host, w->root, discards, &k, &kept);
    world_settle(w);
    assert_int_equal(k.seen, EBB_OK);
    assert_int_equal(ebb_task_join(w->host, t), EBB_OK);
    assert_int_equal(ebb_task_join(w->host, k.victim), EBB_DISCARDED);
    assert_int_equal(fibers_of(w).alive, 0);
}

/* ---- confined fibers ----------------------------------------------------------------------------- */

typedef struct step {
    world *w;
    ebb_wait wait;
    int rounds, dropped;
    bool ready;
    uint64_t tried; /* what it was not refused, as bits */
    ebb_future *future;
    ebb_chan *ch;
    ebb_cx *other; /* some other caller */
    int depth;
} step;

static void step_dropped(ebb_wait *wait) {
    ((step *)wait->on)->dropped++;
}
static const ebb_wait_kind stepping = {"a step", step_dropped};

static ebb_status steps(ebb_cx *cx, void *arg) {
    step *s = arg;
    while (s->rounds < 3) {
        while (!s->ready) {
            ebb_status st = ebb__fiber_wait(cx, &s->wait, &stepping, s);
            if (st != EBB_OK) return st;
            assert_ptr_equal(s->wait.cx, NULL);
        }
        s->ready = false;
        s->rounds++;
    }
    return EBB_OK;
}

static ebb_task confined(world *w, ebb_region r, ebb_fiber_fn fn, void *arg) {
    return ebb__fiber_spawn_confined(w->host, r, fn, arg, EBB__UNPAINTED, &kept, EBB_SITE);
}

static void a_confined_fiber_waits_and_goes_on(void **state) {
    world *w = *state;
    step s = {.w = w};
    ebb_task t = confined(w, w->root, steps, &s);
    world_settle(w);
    assert_int_equal(ebb_task_wake(w->host, t), EBB_OK); /* for nothing */
    world_settle(w);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(s.rounds, i);
        s.ready = true;
        ebb__waiter_wake(&s.wait);
        world_settle(w);
    }
    assert_int_equal(ebb_task_join(w->host, t), EBB_OK);
    assert_int_equal(s.dropped, 0);
    assert_int_equal(fibers_of(w).alive, 0);
}

static void a_confined_fiber_is_discarded_while_it_waits(void **state) {
    world *w = *state;
    step s = {.w = w};
    ebb_task t = confined(w, w->root, steps, &s);
    world_settle(w);
    assert_int_equal(discard(w, t), EBB_OK);
    assert_int_equal(s.dropped, 1);
    assert_ptr_equal(s.wait.cx, NULL);
    assert_int_equal(fibers_of(w).alive, 0);
    assert_int_equal(fibers_of(w).pooled, 1);
    assert_int_equal(ebb_task_join(w->host, t), EBB_DISCARDED);
}

static void a_cancel_ends_a_confined_fiber_without_running_it(void **state) {
    world *w = *state;
    for (int ran = 0; ran < 2; ran++) {
        for (int force = 0; force < 2; force++) {
            step s = {.w = w, .ready = ran == 0};
            ebb_region r = open_region(w, w->root);
            ebb_task t = confined(w, r, steps, &s);
            if (ran) world_settle(w);
            if (force) ebb_region_force(w->host, r);
            else ebb_region_cancel(w->host, r, EBB_CANCEL_SHUTDOWN, NULL);
            world_settle(w);
            assert_int_equal(info_of(w, t).status, EBB_CANCELLED);
            assert_int_equal(s.rounds, 0);
            assert_int_equal(s.dropped, ran);
            assert_int_equal(fibers_of(w).alive, 0);
            assert_int_equal(report_of(w, r).abandoned, 0);
            assert_int_equal(report_of(w, r).status, EBB_CANCELLED);
        }
    }
}

static ebb_status returns_ok(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return EBB_OK;
}

/* Notes each attempt that was not refused by its name. */
static void attempt(step *s, ebb_status st) {
    if (st != EBB_ERR_DURABLE_CONTEXT) s->tried |= UINT64_C(1) << s->depth;
    s->depth++;
}

static void attempts(step *s, ebb_cx *cx) {
    ebb_wait wait = {.cx = NULL};
    ebb_sleeper nap = {.due = 0};
    ebb_region root = ebb_runtime_root(s->w->rt);
    int item = 1;
    ebb_value v;
    attempt(s, ebb_sleep(cx, &nap, EBB_MS));
    attempt(s, ebb_await(cx, s->future, &v));
    attempt(s, ebb_chan_send(cx, s->ch, &wait, &item));
    attempt(s, ebb_chan_recv(cx, s->ch, &wait, &item));
    attempt(s, ebb_region_join(cx, root));
    attempt(s, ebb_task_join(cx, ebb_cx_task(cx)));
    attempt(s, ebb_wait_begin(cx, &wait, &stepping, s));
    attempt(s, ebb_id_status(ebb_spawn(cx, root, returns_ok, NULL).id));
    attempt(s, ebb_id_status(ebb_spawn(cx, root, returns_ok, NULL, &kept).id));
    attempt(s, ebb_id_status(ebb_fiber_spawn(cx, root, returns_ok, NULL).id));
    attempt(s, ebb_future_status_of(ebb_go(cx, root, returns_ok, NULL)));
    attempt(s, ebb_future_status_of(ebb_fiber_go(cx, root, returns_ok, NULL)));
    attempt(s, ebb_id_status(ebb_region_open(cx, NULL).id));
    attempt(s, ebb_defer(cx, returns_ok, NULL));
    attempt(s, ebb_region_defer(cx, root, returns_ok, NULL));
    attempt(s, ebb_id_status(ebb_obligation_reserve(cx, EBB_OBLIGATION_IO, NULL, NULL).id));
    attempt(s, ebb_id_status(ebb_region_reserve(cx, root, EBB_OBLIGATION_IO, NULL, NULL).id));
    attempt(s, ebb__admit_operation(cx));
    attempt(s, ebb__admit_inbound(cx));
}

static ebb_status tries_everything(ebb_cx *cx, void *arg) {
    step *s = arg;
    attempts(s, cx);
    attempt(s, ebb_mask(cx));
    attempt(s, ebb_unmask(cx));
    attempt(s, ebb_fiber_park(cx));
    attempt(s, ebb_fiber_yield(cx));
    attempts(s, s->other);
    attempts(s, ebb_runtime_host(s->w->rt));
    while (!s->ready) (void)ebb__fiber_wait(cx, &s->wait, &stepping, s);
    attempt(s, ebb_fiber_yield(cx)); /* it is confined after a wait too */
    return EBB_OK;
}

static void a_confined_fiber_is_refused_every_other_wait_and_all_work_whatever_it_calls_with(void **state) {
    world *w = *state;
    step s = {.w = w, .future = ebb_future_ready(w->host, ebb_value_none())};
    assert_int_equal(ebb_chan_new(w->rt, 1, sizeof(int), &s.ch), EBB_OK);
    puppet *other = puppet_start(w, w->root, IGNORING);
    world_settle(w);
    s.other = ebb__task_cx(w->rt, other->id, NULL);
    ebb_runtime_stats before = stats_of(w);
    ebb_task t = confined(w, w->root, tries_everything, &s);
    world_settle(w);
    assert_int_equal(s.tried, 0);
    assert_int_equal(s.depth, 3 * 19 + 4);
    ebb_runtime_stats after = stats_of(w);
    assert_int_equal(after.spawned, before.spawned + 1);
    assert_int_equal(after.regions, before.regions);
    assert_int_equal(after.obligations, before.obligations);
    assert_int_equal(after.timers, before.timers);
    if (w->traced) assert_int_equal(count_events(w, EBB_EV_REFUSED, 0), 0);
    assert_int_equal(info_of(w, t).mask_depth, 0);
    assert_int_equal(report_of(w, w->root).status, EBB_OK);
    /* While it waits, others are as free as ever. */
    assert_int_equal(ebb_await(w->host, s.future, NULL), EBB_OK);
    assert_int_equal(ebb_id_status(ebb_spawn(w->host, w->root, returns_ok, NULL).id), EBB_OK);
    s.ready = true;
    ebb__waiter_wake(&s.wait);
    world_settle(w);
    assert_int_equal(s.tried, 0);
    assert_int_equal(ebb_task_join(w->host, t), EBB_OK);
    ebb_chan_free(s.ch);
}

static ebb_status of_another_caller(ebb_cx *cx, void *arg) {
    step *s = arg;
    assert_int_equal(ebb__fiber_wait(s->other, &s->wait, &stepping, s), EBB_ERR_INVALID);
    assert_int_equal(ebb__fiber_wait(ebb_runtime_host(s->w->rt), &s->wait, &stepping, s), EBB_ERR_INVALID);
    ebb_wait twice = {.cx = cx};
    assert_int_equal(ebb__fiber_wait(cx, &twice, &stepping, s), EBB_ERR_BUSY);
    return EBB_OK;
}

static void its_wait_is_for_the_running_fiber_and_once_at_a_time(void **state) {
    world *w = *state;
    puppet *other = puppet_start(w, w->root, IGNORING);
    step s = {.w = w, .other = ebb__task_cx(w->rt, other->id, NULL)};
    assert_int_equal(ebb__fiber_wait(s.other, &s.wait, &stepping, &s), EBB_ERR_INVALID);
    ebb_task t = confined(w, w->root, of_another_caller, &s);
    world_settle(w);
    assert_int_equal(ebb_task_join(w->host, t), EBB_OK);
}

static void a_confined_fiber_whose_outcome_nobody_keeps_ends_by_a_cancel_too(void **state) {
    world *w = *state;
    step s = {.w = w};
    for (int ran = 0; ran < 2; ran++) {
        ebb_region r = open_region(w, w->root);
        ebb__fiber_spawn_confined(w->host, r, steps, &s, EBB__UNPAINTED, NULL, EBB_SITE);
        if (ran) world_settle(w);
        ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
        world_settle(w);
        assert_int_equal(fibers_of(w).alive, 0);
        assert_int_equal(s.dropped, ran);
    }
}

static void a_record_that_was_confined_serves_a_free_fiber(void **state) {
    world *w = *state;
    step s = {.w = w};
    spot free = {.w = w};
    assert_int_equal(discard(w, confined(w, w->root, steps, &s)), EBB_OK);
    ebb_task t = ebb_fiber_spawn(w->host, w->root, sleeps_long, &free, &kept);
    world_pass(w, EBB_SECOND);
    assert_int_equal(ebb_task_join(w->host, t), EBB_OK);
    assert_string_equal(w->log, "ran on ");
}

static void a_confined_fiber_without_memory_or_above_the_limit_is_refused_by_name(void **state) {
    world *w = *state;
    step s = {.w = w};
    assert_int_equal(ebb_fiber_setup(w->rt, &(ebb_fiber_opts){.max = 1}), EBB_OK);
    ebb_task t = confined(w, w->root, steps, &s);
    ebb_region r = open_region(w, w->root);
    assert_int_equal(ebb_id_status(confined(w, r, steps, &s).id), EBB_ERR_LIMIT);
    assert_int_equal(discard(w, t), EBB_OK);
    ebb__fibers_trim(w->rt);
    for (uint64_t n = 1;; n++) {
        r = open_region(w, w->root);
        w->memory.calls = 0;
        w->memory.fail_at = n;
        t = confined(w, r, steps, &s);
        w->memory.fail_at = 0;
        if (ebb_id_status(t.id) == EBB_OK) break;
        assert_int_equal(ebb_id_status(t.id), EBB_ERR_NOMEM);
        assert_int_equal(fibers_of(w).alive, 0);
    }
    assert_int_equal(fibers_of(w).alive, 1);
    assert_int_equal(discard(w, t), EBB_OK);
}

/* ---- paint --------------------------------------------------------------------------------------- */

/* Reads the stack below its own frame, as code with an uninitialised local does. */
__attribute__((noinline, no_sanitize("address"))) static size_t painted_below(uint8_t paint) {
    const volatile uint8_t *at = __builtin_frame_address(0);
    size_t n = 0;
    for (at -= 8192; n < 4096 && at[n] == paint; n++) {}
    return n;
}

typedef struct painted {
    uint8_t paint;
    size_t found;
} painted;

static ebb_status looks_for_paint(ebb_cx *cx, void *arg) {
    painted *p = arg;
    (void)cx;
    p->found = painted_below(p->paint);
    return EBB_OK;
}

__attribute__((noinline, no_sanitize("address"))) static void overwrite_below(uint8_t paint) {
    volatile uint8_t *at = __builtin_frame_address(0);
    at -= 12288;
    for (size_t n = 0; n < 10240; n++) at[n] = paint;
}

/* Leaves what a later fiber finds, unless its stack is painted. */
static ebb_status overwrites_and_looks(ebb_cx *cx, void *arg) {
    overwrite_below(((painted *)arg)->paint);
    return looks_for_paint(cx, arg);
}

static void the_unused_stack_has_the_paint_that_was_asked_for(void **state) {
    world *w = *state;
    uint64_t bytes = 0;
    for (int paint = 0; paint <= UINT8_MAX; paint += 51) {
        painted p = {.paint = (uint8_t)paint};
        ebb_task t = ebb__fiber_spawn_confined(w->host, w->root, looks_for_paint, &p, paint, &kept, EBB_SITE);
        world_settle(w);
        assert_int_equal(ebb_task_join(w->host, t), EBB_OK);
        assert_int_equal(p.found, 4096);
        if (paint == 0) bytes = fibers_of(w).bytes;
        assert_true(bytes >= EBB_FIBER_STACK_BYTES); /* all of it has memory, and is counted */
        assert_int_equal(fibers_of(w).bytes, bytes);
    }
    /* Nor does the record remember its paint, whoever makes a fiber of it. */
    painted p = {.paint = 0xee}, q = {.paint = UINT8_MAX};
    ebb_fiber_spawn(w->host, w->root, looks_for_paint, &p);
    world_settle(w);
    assert_true(p.found < 4096);
    step s = {.w = w};
    ebb_task t = ebb__fiber_spawn_confined(w->host, w->root, steps, &s, 0x11, &kept, EBB_SITE);
    world_settle(w);
    assert_int_equal(discard(w, t), EBB_OK);
    ebb_future *f = ebb_fiber_go(w->host, w->root, overwrites_and_looks, &q);
    world_settle(w);
    assert_int_equal(ebb_future_status_of(f), EBB_OK);
    f = ebb_fiber_go(w->host, w->root, looks_for_paint, &q);
    world_settle(w);
    assert_int_equal(q.found, 4096); /* as the fiber before has left it */
    ebb_future_drop(f);
}

static void painted_stacks_do_not_fill_the_pool_beyond_its_bytes(void **state) {
    world *w = *state;
    enum { CROWD = 400 };
    step *s = world_keep(w, CROWD * sizeof *s);
    ebb_task t[CROWD];
    for (int i = 0; i < CROWD; i++) {
        s[i].w = w;
        t[i] = ebb__fiber_spawn_confined(w->host, w->root, steps, &s[i], 0xa5, NULL, EBB_SITE);
    }
    world_settle(w);
    assert_true(fibers_of(w).bytes >= (uint64_t)CROWD * EBB_FIBER_STACK_BYTES);
    for (int i = 0; i < CROWD; i++) assert_int_equal(discard(w, t[i]), EBB_OK);
    assert_true(fibers_of(w).bytes <= 8 << 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_discarded_fiber_gives_its_stack_to_the_next_at_once),
        IN_WORLD(a_fiber_that_never_ran_gives_its_stack_back_too),
        IN_WORLD(thousands_that_are_discarded_leave_no_more_than_the_pool_keeps),
        IN_WORLD(a_wait_on_its_stack_leaves_the_queue_first),
        IN_WORLD(the_future_that_it_awaits_is_let_go_of),
        IN_WORLD(the_fiber_of_a_future_is_refused_and_goes_on),
        IN_WORLD(a_fiber_may_discard_another_but_not_itself),
        IN_WORLD(a_confined_fiber_waits_and_goes_on),
        IN_WORLD(a_confined_fiber_is_discarded_while_it_waits),
        IN_WORLD(a_cancel_ends_a_confined_fiber_without_running_it),
        IN_WORLD(a_confined_fiber_is_refused_every_other_wait_and_all_work_whatever_it_calls_with),
        IN_UNTRACED_WORLD(a_confined_fiber_is_refused_every_other_wait_and_all_work_whatever_it_calls_with),
        IN_WORLD(a_confined_fiber_whose_outcome_nobody_keeps_ends_by_a_cancel_too),
        IN_WORLD(its_wait_is_for_the_running_fiber_and_once_at_a_time),
        IN_WORLD(a_record_that_was_confined_serves_a_free_fiber),
        IN_WORLD(a_confined_fiber_without_memory_or_above_the_limit_is_refused_by_name),
        IN_WORLD(the_unused_stack_has_the_paint_that_was_asked_for),
        IN_WORLD(painted_stacks_do_not_fill_the_pool_beyond_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
