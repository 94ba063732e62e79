/* The close of a region, as futures hear of it: ebb_closing, which completes then, and operations that wait
 * for new work and are told once. */
#include "tests/support/future_world.h"

#include <stdlib.h>

/* ---- people ------------------------------------------------------------------------------------ */

enum { SEVERAL = 33 };

/* An operation that counts what it is told, and does something when its region is closed. */
typedef struct operation {
    ebb_future *f, *other;
    void (*at_close)(ebb_cx *cx, struct operation *o);
    uint32_t closes, cancels;
    ebb_status rejected;
    probe p;
    struct operation *all; /* of its region, SEVERAL of them */
} operation;

static void told_to_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    operation *o = arg;
    (void)cx;
    o->cancels++;
    (void)ebb_promise_reject(f, EBB_CANCELLED);
}

static void told_of_the_close(ebb_cx *cx, ebb_future *f, void *arg) {
    operation *o = arg;
    o->closes++;
    assert_ptr_equal(f, o->f);
    if (o->at_close != NULL) o->at_close(cx, o);
}

static const ebb_operation op = {"wait for work", told_to_cancel, told_of_the_close};

static ebb_future *begin(ebb_cx *cx, operation *o) {
    o->f = ebb_promise_new(cx, &op, o);
    return probe_on(&o->p, o->f);
}

/* A task that does what it is told at its next poll, and lives until it is told to end. */
typedef struct person {
    void (*act)(ebb_cx *cx, struct person *p);
    bool over;
    ebb_task id;
    ebb_region region;
    ebb_future *f[3];
    probe p[3];
    operation o[SEVERAL];
    ebb_future_state seen;
    size_t crowd;
} person;

static ebb_status person_poll(ebb_cx *cx, void *state) {
    person *p = state;
    void (*act)(ebb_cx *, person *) = p->act;
    p->act = NULL;
    if (act != NULL) act(cx, p);
    if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
    return p->over ? EBB_OK : EBB_PENDING;
}

static void tell(future_world *fw, person *p, void (*act)(ebb_cx *cx, person *p)) {
    p->act = act;
    (void)ebb_task_wake(fw->host, p->id);
    future_settle(fw);
    assert_null(p->act);
}

static void finish(future_world *fw, person *p) {
    p->over = true;
    (void)ebb_task_wake(fw->host, p->id);
    future_settle(fw);
}

/* In a region of its own, below `parent`. Lives as long as the world: futures of it may. */
static person *person_below(future_world *fw, ebb_region parent, void (*act)(ebb_cx *cx, person *p)) {
    person *p = world_keep(fw->world, sizeof *p);
    p->region = open_region(fw->world, parent);
    p->id = ebb_spawn(fw->host, p->region, person_poll, p);
    assert_int_equal(ebb_id_status(p->id.id), EBB_OK);
    if (act != NULL) tell(fw, p, act);
    return p;
}

static person *person_new(future_world *fw, void (*act)(ebb_cx *cx, person *p)) {
    return person_below(fw, fw->root, act);
}

static void close_region(future_world *fw, ebb_region r) {
    ebb_region_close(fw->host, r);
    future_settle(fw);
}

static bool has_closed(future_world *fw, const person *p) {
    return state_of(fw->world, p->region) == EBB_REGION_CLOSED;
}

/* ---- ebb_closing ------------------------------------------------------------------------------- */

static void waits_for_the_close(ebb_cx *cx, person *p) {
    p->f[0] = probe_on(&p->p[0], ebb_closing(cx));
    p->seen = ebb_future_state_of(p->f[0]);
}

static void closing_completes_when_its_region_is_closed_and_not_before(void **state) {
    future_world *fw = *state;
    person *p = person_new(fw, waits_for_the_close), *other = person_new(fw, waits_for_the_close);
    future_pass(fw, EBB_SECOND);
    future_collect(fw);
    probe_pending(&p->p[0]);
    close_region(fw, p->region);
    probe_completed(&p->p[0], 0);
    probe_pending(&other->p[0]);
    assert_false(has_closed(fw, p)); /* what is in flight goes on */
    finish(fw, p);
    assert_true(has_closed(fw, p));
    assert_int_equal(ebb_region_join(fw->host, p->region), EBB_OK);
    finish(fw, other);
}

static void closing_a_region_reaches_those_below_and_not_those_around(void **state) {
    future_world *fw = *state;
    person *around = person_new(fw, waits_for_the_close);
    person *middle = person_below(fw, around->region, NULL);
    person *below = person_below(fw, middle->region, waits_for_the_close);
    close_region(fw, middle->region);
    probe_completed(&below->p[0], 0);
    probe_pending(&around->p[0]);
    close_region(fw, around->region);
    probe_completed(&around->p[0], 0);
}

static void in_a_region_that_is_closed_it_has_completed(void **state) {
    future_world *fw = *state;
    person *p = person_new(fw, NULL), *had = person_new(fw, waits_for_the_close);
    future_settle(fw);
    close_region(fw, p->region);
    close_region(fw, had->region);
    tell(fw, p, waits_for_the_close);
    assert_int_equal(p->seen, EBB_FUTURE_COMPLETED);
    probe_completed(&p->p[0], 0);
    had->p[0] = (probe){0};
    tell(fw, had, waits_for_the_close);
    assert_int_equal(had->seen, EBB_FUTURE_COMPLETED);
    probe_completed(&had->p[0], 0);
}

static void it_is_cancelled_with_its_region(void **state) {
    future_world *fw = *state;
    person *p = person_new(fw, waits_for_the_close);
    person *below = person_below(fw, p->region, waits_for_the_close);
    ebb_region_cancel(fw->host, p->region, EBB_CANCEL_DISCONNECT, "gone");
    future_settle(fw);
    probe_cancelled(&p->p[0], EBB_CANCEL_DISCONNECT);
    probe_cancelled(&below->p[0], EBB_CANCEL_PARENT);
    assert_true(has_closed(fw, p));
}

/* One end only, however it comes: what is joined is not closed by anybody. */
static void it_does_not_hold_a_region_that_is_joined(void **state) {
    future_world *fw = *state;
    person *p = person_new(fw, waits_for_the_close);
    assert_int_equal(ebb_region_join(fw->host, p->region), EBB_PENDING);
    future_settle(fw);
    probe_pending(&p->p[0]);
    finish(fw, p);
    assert_int_equal(p->p[0].done + p->p[0].cancels, 1);
    assert_int_equal(ebb_region_join(fw->host, p->region), EBB_OK);
}

static void drops_one(ebb_cx *cx, person *p) {
    (void)p;
    ebb_future_drop(ebb_closing(cx));
}

static void one_that_nobody_holds_is_collected(void **state) {
    future_world *fw = *state;
    person *p = person_new(fw, drops_one);
    for (int i = 0; i < 50; i++) tell(fw, p, drops_one);
    future_collect(fw);
    assert_int_equal(future_stats(fw).dropped, 51);
    finish(fw, p);
}

/* ---- in a select ------------------------------------------------------------------------------- */

typedef struct chooser {
    operation o;
    size_t index;
    ebb_status status;
    ebb_task id;
} chooser;

/* As servers wait: for the next piece of work, or for the end. */
static ebb_status choose(ebb_cx *cx, void *state) {
    chooser *c = state;
    ebb_value v = ebb_value_none();
    ebb_future *two[] = {begin(cx, &c->o), ebb_closing(cx)};
    c->status = ebb_await(cx, ebb_select(cx, 2, two), &v);
    const ebb_selected *s = ebb_selected_of(&v);
    if (s != NULL) c->index = s->index;
    ebb_value_discard(cx, v);
    return c->status;
}

static chooser *chooser_new(future_world *fw, ebb_region r) {
    chooser *c = world_keep(fw->world, sizeof *c);
    c->index = 9;
    c->id = ebb_fiber_spawn(fw->host, r, choose, c);
    future_settle(fw);
    assert_int_equal(c->index, 9);
    return c;
}

static void in_a_select_the_close_wins_and_the_other_is_cancelled(void **state) {
    future_world *fw = *state;
    ebb_region r = open_region(fw->world, fw->root);
    chooser *c = chooser_new(fw, r);
    close_region(fw, r);
    assert_int_equal(c->status, EBB_OK);
    assert_int_equal(c->index, 1);
    probe_cancelled(&c->o.p, ebb_future_cancel_kind_of(c->o.f));
    assert_int_equal(c->o.cancels, 1);
    assert_int_equal(c->o.closes, 1);
    assert_int_equal(state_of(fw->world, r), EBB_REGION_CLOSED);
    assert_int_equal(ebb_region_join(fw->host, r), EBB_OK);
}

static void in_a_select_the_other_may_win(void **state) {
    future_world *fw = *state;
    ebb_region r = open_region(fw->world, fw->root);
    chooser *c = chooser_new(fw, r);
    assert_int_equal(ebb_promise_settle(c->o.f, ebb_value_int(7)), EBB_OK);
    future_settle(fw);
    assert_int_equal(c->index, 0);
    close_region(fw, r);
    assert_int_equal(c->o.closes, 0);
    assert_int_equal(state_of(fw->world, r), EBB_REGION_CLOSED);
}

/* ---- crowds ------------------------------------------------------------------------------------ */

typedef struct counts {
    uint64_t done, cancels;
} counts;

static void one_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)cx;
    (void)v;
    if (st == EBB_OK) ((counts *)arg)->done++;
}

static void one_cancelled(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    (void)cx;
    (void)kind;
    ((counts *)arg)->cancels++;
}

static counts counted;

static void waits_often(ebb_cx *cx, person *p) {
    for (size_t i = 0; i < p->crowd; i++) {
        ebb_future *f = ebb_closing(cx);
        assert_int_equal(ebb_future_on_done(f, one_done, &counted), EBB_OK);
        assert_int_equal(ebb_future_on_cancel(f, one_cancelled, &counted), EBB_OK);
    }
}

static person *crowd_new(future_world *fw) {
    person *p = person_new(fw, NULL);
    p->crowd = future_crowd(1000 * 1000, 300);
    counted = (counts){0};
    tell(fw, p, waits_often);
    return p;
}

static void a_million_hear_of_one_close(void **state) {
    future_world *fw = *state;
    person *p = crowd_new(fw);
    close_region(fw, p->region);
    assert_int_equal(counted.done, p->crowd);
    assert_int_equal(counted.cancels, 0);
    finish(fw, p);
    assert_true(has_closed(fw, p));
}

static void a_million_are_cancelled_with_their_region(void **state) {
    future_world *fw = *state;
    person *p = crowd_new(fw);
    ebb_region_cancel(fw->host, p->region, EBB_CANCEL_USER, "stop");
    future_settle(fw);
    assert_int_equal(counted.done, 0);
    assert_int_equal(counted.cancels, p->crowd);
    assert_true(has_closed(fw, p));
}

/* ---- operations that listen -------------------------------------------------------------------- */

static void begins(ebb_cx *cx, person *p) {
    (void)begin(cx, &p->o[0]);
}

static void an_operation_is_told_once_that_its_region_is_closed(void **state) {
    future_world *fw = *state;
    person *p = person_new(fw, begins);
    assert_int_equal(p->o[0].closes, 0);
    for (int i = 0; i < 3; i++) close_region(fw, p->region);
    finish(fw, p);
    assert_int_equal(p->o[0].closes, 1);
    probe_pending(&p->o[0].p); /* it was only told */
    assert_false(has_closed(fw, p));
    assert_int_equal(ebb_promise_settle(p->o[0].f, ebb_value_int(5)), EBB_OK);
    future_settle(fw);
    probe_completed(&p->o[0].p, 5);
    assert_int_equal(p->o[0].cancels, 0);
    assert_true(has_closed(fw, p));
}

static ebb_value same(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)arg;
    return ebb_value_take(cx, v);
}

static void begins_below_a_map(ebb_cx *cx, person *p) {
    p->f[0] = probe_on(&p->p[0], ebb_map(cx, begin(cx, &p->o[0]), same, NULL));
    ebb_future_drop(p->f[0]); /* a callback is attached: it goes on */
}

static void rejects(ebb_cx *cx, operation *o) {
    (void)cx;
    o->rejected = ebb_promise_reject(o->f, EBB_ERR_CLOSED);
}

static void an_operation_that_was_consumed_is_told_too(void **state) {
    future_world *fw = *state;
    person *p = person_new(fw, begins_below_a_map);
    p->o[0].at_close = rejects;
    close_region(fw, p->region);
    assert_int_equal(p->o[0].closes, 1);
    probe_failed(&p->o[0].p, EBB_ERR_CLOSED);
    finish(fw, p);
    assert_true(has_closed(fw, p));
}

static void begins_three(ebb_cx *cx, person *p) {
    for (int i = 0; i < 3; i++) (void)begin(cx, &p->o[i]);
}

static void those_that_have_ended_are_not_told(void **state) {
    future_world *fw = *state;
    person *p = person_new(fw, begins_three);
    assert_int_equal(ebb_promise_settle(p->o[0].f, ebb_value_int(1)), EBB_OK);
    assert_true(ebb_future_cancel(p->o[1].f, EBB_CANCEL_USER));
    future_settle(fw);
    assert_int_equal(ebb_promise_settle(p->o[2].f, ebb_value_int(3)), EBB_OK);
    close_region(fw, p->region); /* the third has ended, and nobody has been told yet */
    for (int i = 0; i < 3; i++) assert_int_equal(p->o[i].closes, 0);
    probe_completed(&p->o[0].p, 1);
    probe_cancelled(&p->o[1].p, EBB_CANCEL_USER);
    probe_completed(&p->o[2].p, 3);
    finish(fw, p);
    assert_true(has_closed(fw, p));
}

static void a_cancel_that_comes_first_is_all_that_they_hear(void **state) {
    future_world *fw = *state;
    for (int close_too = 0; close_too < 2; close_too++) {
        person *p = person_new(fw, begins_three);
        if (close_too) ebb_region_close(fw->host, p->region); /* both are known at the next poll */
        ebb_region_cancel(fw->host, p->region, EBB_CANCEL_USER, "stop");
        close_region(fw, p->region);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(p->o[i].closes, 0);
            assert_int_equal(p->o[i].cancels, 1);
            probe_cancelled(&p->o[i].p, EBB_CANCEL_USER);
        }
        assert_true(has_closed(fw, p));
    }
}

static void a_close_and_then_a_cancel_are_two_things(void **state) {
    future_world *fw = *state;
    person *p = person_new(fw, begins_three);
    close_region(fw, p->region);
    ebb_region_cancel(fw->host, p->region, EBB_CANCEL_USER, "stop");
    future_settle(fw);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(p->o[i].closes, 1);
        assert_int_equal(p->o[i].cancels, 1);
    }
    assert_true(has_closed(fw, p));
}

/* ---- what they do then ------------------------------------------------------------------------- */

static void begins_several(ebb_cx *cx, person *p) {
    for (int i = 0; i < SEVERAL; i++) {
        p->o[i].all = p->o;
        (void)begin(cx, &p->o[i]);
    }
}

static person *several(future_world *fw, void (*at_close)(ebb_cx *cx, operation *o)) {
    person *p = person_new(fw, begins_several);
    for (int i = 0; i < SEVERAL; i++) p->o[i].at_close = at_close;
    close_region(fw, p->region);
    return p;
}

static void several_that_reject_all_fail_so_and_the_region_closes(void **state) {
    future_world *fw = *state;
    person *p = several(fw, rejects);
    for (int i = 0; i < SEVERAL; i++) {
        assert_int_equal(p->o[i].closes, 1);
        assert_int_equal(p->o[i].rejected, EBB_OK);
        probe_failed(&p->o[i].p, EBB_ERR_CLOSED);
    }
    finish(fw, p);
    assert_true(has_closed(fw, p));
    assert_int_equal(ebb_region_join(fw->host, p->region), EBB_OK);
}

static void rejects_all(ebb_cx *cx, operation *o) {
    for (int i = 0; i < SEVERAL; i++) rejects(cx, &o->all[i]);
}

static void one_may_end_all_the_others_which_are_not_told_then(void **state) {
    future_world *fw = *state;
    person *p = several(fw, rejects_all);
    uint32_t told = 0;
    for (int i = 0; i < SEVERAL; i++) {
        told += p->o[i].closes;
        probe_failed(&p->o[i].p, EBB_ERR_CLOSED);
    }
    assert_int_equal(told, 1);
    finish(fw, p);
    assert_true(has_closed(fw, p));
}

static void cancels_the_region(ebb_cx *cx, operation *o) {
    (void)o;
    ebb_region_cancel(cx, ebb_cx_region(cx), EBB_CANCEL_USER, "stop");
}

static void one_may_cancel_the_region(void **state) {
    future_world *fw = *state;
    person *p = several(fw, cancels_the_region);
    for (int i = 0; i < SEVERAL; i++) {
        assert_true(p->o[i].closes <= 1);
        assert_int_equal(p->o[i].cancels, 1);
        probe_cancelled(&p->o[i].p, EBB_CANCEL_USER);
    }
    assert_true(has_closed(fw, p));
}

static void holds_some_that_have_ended(ebb_cx *cx, person *p) {
    for (int i = 0; i < SEVERAL; i++) p->o[i].other = ebb_future_ready(cx, ebb_value_int(i));
    begins_several(cx, p);
}

static void lets_go_of_another(ebb_cx *cx, operation *o) {
    (void)cx;
    if (o->other != NULL) ebb_future_drop(o->other);
    o->other = NULL;
}

/* What is let go of leaves its place to one that may have been told already. */
static void one_that_lets_go_of_other_futures_is_told_once_all_the_same(void **state) {
    future_world *fw = *state;
    person *p = person_new(fw, holds_some_that_have_ended);
    for (int i = 0; i < SEVERAL; i++) p->o[i].at_close = lets_go_of_another;
    close_region(fw, p->region);
    for (int i = 0; i < SEVERAL; i++) assert_int_equal(p->o[i].closes, 1);
    for (int i = 0; i < SEVERAL; i++) rejects(NULL, &p->o[i]);
    finish(fw, p);
    assert_true(has_closed(fw, p));
}

static void begins_another(ebb_cx *cx, operation *o) {
    operation *next = o + SEVERAL / 2;
    if (next < o->all + SEVERAL) (void)begin(cx, next);
}

static void begins_the_first_half(ebb_cx *cx, person *p) {
    for (int i = 0; i < SEVERAL; i++) {
        p->o[i].all = p->o;
        p->o[i].at_close = begins_another;
    }
    for (int i = 0; i < SEVERAL / 2; i++) (void)begin(cx, &p->o[i]);
}

/* The new ones are their maker's to end. */
static void operations_that_are_begun_then_do_not_make_the_others_hear_it_again(void **state) {
    future_world *fw = *state;
    person *p = person_new(fw, begins_the_first_half);
    close_region(fw, p->region);
    assert_int_equal(ebb_promise_reject(p->o[SEVERAL / 2].f, EBB_ERR_CLOSED), EBB_OK);
    future_settle(fw); /* whoever tells them is polled again */
    for (int i = 0; i < SEVERAL / 2; i++) assert_int_equal(p->o[i].closes, 1);
    for (int i = SEVERAL / 2; i < SEVERAL; i++) assert_int_equal(p->o[i].closes, 0);
    for (int i = 0; i < SEVERAL; i++) {
        bool pending = p->o[i].f != NULL && i != SEVERAL / 2;
        if (pending) assert_int_equal(ebb_promise_reject(p->o[i].f, EBB_ERR_CLOSED), EBB_OK);
    }
    finish(fw, p);
    assert_true(has_closed(fw, p));
}

static void begins_the_second(ebb_cx *cx, person *p) {
    (void)begin(cx, &p->o[1]);
}

static void an_operation_that_is_begun_after_the_close_does_not_make_others_hear_it_again(void **state) {
    future_world *fw = *state;
    person *p = person_new(fw, begins);
    close_region(fw, p->region);
    tell(fw, p, begins_the_second);
    assert_int_equal(ebb_promise_reject(p->o[1].f, EBB_ERR_CLOSED), EBB_OK);
    future_settle(fw);
    assert_int_equal(p->o[0].closes, 1);
    assert_int_equal(p->o[1].closes, 0);
    assert_int_equal(ebb_promise_reject(p->o[0].f, EBB_ERR_CLOSED), EBB_OK);
    finish(fw, p);
    assert_true(has_closed(fw, p));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FUTURES(closing_completes_when_its_region_is_closed_and_not_before),
        IN_FUTURES(closing_a_region_reaches_those_below_and_not_those_around),
        IN_FUTURES(in_a_region_that_is_closed_it_has_completed),
        IN_FUTURES(it_is_cancelled_with_its_region),
        IN_FUTURES(it_does_not_hold_a_region_that_is_joined),
        IN_FUTURES(one_that_nobody_holds_is_collected),
        IN_FUTURES(in_a_select_the_close_wins_and_the_other_is_cancelled),
        IN_FUTURES(in_a_select_the_other_may_win),
        IN_UNTRACED_FUTURES(a_million_hear_of_one_close),
        IN_UNTRACED_FUTURES(a_million_are_cancelled_with_their_region),
        IN_FUTURES(an_operation_is_told_once_that_its_region_is_closed),
        IN_FUTURES(an_operation_that_was_consumed_is_told_too),
        IN_FUTURES(those_that_have_ended_are_not_told),
        IN_FUTURES(a_cancel_that_comes_first_is_all_that_they_hear),
        IN_FUTURES(a_close_and_then_a_cancel_are_two_things),
        IN_FUTURES(several_that_reject_all_fail_so_and_the_region_closes),
        IN_FUTURES(one_may_end_all_the_others_which_are_not_told_then),
        IN_FUTURES(one_may_cancel_the_region),
        IN_FUTURES(one_that_lets_go_of_other_futures_is_told_once_all_the_same),
        IN_FUTURES(operations_that_are_begun_then_do_not_make_the_others_hear_it_again),
        IN_FUTURES(an_operation_that_is_begun_after_the_close_does_not_make_others_hear_it_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
