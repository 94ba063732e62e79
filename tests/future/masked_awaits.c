/* A mask holds for futures too: what a masked task awaits is not cancelled with the region, nor what that waits
 * for, until the budget is over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <ebb/ebb.h>

typedef struct job {
    EBB_TASK_STATE;
    bool masked;
    ebb_future *f, *other;
    ebb_value v;
    ebb_status st;
    int ended;
} job;

static ebb_value plus_one(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)arg;
    return ebb_value_int(v->as.i + 1);
}

static ebb_future *all_of_two(ebb_cx *cx, uint64_t span) {
    ebb_future *two[] = {ebb_map(cx, ebb_after(cx, span), plus_one, NULL), ebb_after(cx, span)};
    return ebb_all(cx, 2, two);
}

static ebb_status waits(ebb_cx *cx, void *state) {
    job *j = state;
    EBB_BEGIN(j);
    if (j->masked) (void)ebb_mask(cx);
    j->other = ebb_after(cx, 20 * EBB_MS); /* awaited by nobody */
    j->f = ebb_within(cx, all_of_two(cx, 20 * EBB_MS), EBB_SECOND);
    EBB_AWAIT(j, j->st, ebb_await(cx, j->f, &j->v));
    ebb_value_discard(cx, j->v);
    j->ended++;
    if (j->masked) (void)ebb_unmask(cx);
    j->f = ebb_after(cx, EBB_MS);
    EBB_AWAIT(j, j->st, ebb_await(cx, j->f, NULL)); /* now it hears of it */
    j->ended++;
    EBB_END(j);
}

static void advance_to(ebb_runtime *rt, uint64_t ms) {
    ebb_runtime_advance(rt, ms * EBB_MS);
    while (ebb_runtime_pump(rt, 1000) == EBB_PENDING) continue;
}

static ebb_runtime *runtime(void) {
    ebb_runtime *rt;
    assert_int_equal(ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_libc_allocator()}, &rt), EBB_OK);
    return rt;
}

/* At 5 ms; what it awaits is due at 20. */
static ebb_runtime *cancelled_while_it_waits(job *j, ebb_region *r) {
    ebb_runtime *rt = runtime();
    *r = ebb_region_open(ebb_runtime_host(rt), NULL);
    ebb_spawn(ebb_runtime_host(rt), *r, waits, j);
    advance_to(rt, 5);
    ebb_region_cancel(ebb_runtime_host(rt), *r, EBB_CANCEL_USER, "stop");
    return rt;
}

static void a_masked_await_outlives_the_cancel_of_its_region(void **state) {
    (void)state;
    ebb_region r;
    job j = {.masked = true};
    ebb_runtime *rt = cancelled_while_it_waits(&j, &r);
    ebb_cx *host = ebb_runtime_host(rt);
    advance_to(rt, 24);
    assert_int_equal(ebb_future_state_of(j.f), EBB_FUTURE_PENDING);
    assert_int_equal(ebb_future_state_of(j.other), EBB_FUTURE_CANCELLED);
    assert_int_equal(j.ended, 0);
    advance_to(rt, 26);
    assert_int_equal(j.ended, 2);
    assert_int_equal(j.st, EBB_CANCELLED);
    assert_int_equal(ebb_region_join(host, r), EBB_CANCELLED);
    ebb_runtime_free(rt);
}

static void an_unmasked_await_does_not(void **state) {
    (void)state;
    ebb_region r;
    job j = {.masked = false};
    ebb_runtime *rt = cancelled_while_it_waits(&j, &r);
    ebb_cx *host = ebb_runtime_host(rt);
    advance_to(rt, 6);
    assert_int_equal(j.ended, 2);
    assert_int_equal(ebb_region_join(host, r), EBB_CANCELLED);
    ebb_runtime_free(rt);
}

static void a_masked_await_ends_when_the_region_is_forced(void **state) {
    (void)state;
    ebb_region r;
    job j = {.masked = true};
    ebb_runtime *rt = cancelled_while_it_waits(&j, &r);
    ebb_cx *host = ebb_runtime_host(rt);
    advance_to(rt, 6);
    ebb_region_force(host, r);
    advance_to(rt, 7);
    assert_int_equal(j.ended, 2);
    assert_int_equal(ebb_region_join(host, r), EBB_CANCELLED);
    ebb_runtime_free(rt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_masked_await_outlives_the_cancel_of_its_region),
        cmocka_unit_test(an_unmasked_await_does_not),
        cmocka_unit_test(a_masked_await_ends_when_the_region_is_forced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
