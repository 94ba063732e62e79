/* ebb_go: the end of its task is the future's and not the region's, whatever the options say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ebb/ebb.h>

typedef struct world {
    ebb_runtime *rt;
    ebb_cx *host;
    ebb_region region;
    ebb_task task;     /* that ebb_go started */
    ebb_status joined; /* what joining it said */
    bool may_end;
} world;

static void begin(world *w) {
    *w = (world){.joined = EBB_PENDING};
    assert_int_equal(ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_libc_allocator()}, &w->rt), EBB_OK);
    w->host = ebb_runtime_host(w->rt);
    w->region = ebb_region_open(w->host, NULL);
}

static void pump(world *w) {
    while (ebb_runtime_pump(w->rt, 100) == EBB_PENDING) continue;
}

static ebb_status fails_in_the_end(ebb_cx *cx, void *state) {
    world *w = state;
    w->task = ebb_cx_task(cx);
    if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
    return w->may_end ? EBB_FAILED : EBB_PENDING;
}

static ebb_status joins(ebb_cx *cx, void *state) {
    world *w = state;
    w->joined = ebb_task_join(cx, w->task);
    return w->joined == EBB_PENDING ? EBB_PENDING : EBB_OK;
}

static void a_task_of_ebb_go_is_never_kept(void **state) {
    world w;
    (void)state;
    begin(&w);
    ebb_future *f =
        ebb_future_keep(ebb_go(w.host, w.region, fails_in_the_end, &w, &(ebb_task_opts){.keep = true}));
    pump(&w);
    ebb_spawn(w.host, ebb_runtime_root(w.rt), joins, &w);
    pump(&w);
    assert_int_equal(w.joined, EBB_ERR_INVALID);
    w.may_end = true;
    assert_int_equal(ebb_task_wake(w.host, w.task), EBB_OK);
    pump(&w);
    assert_int_equal(ebb_future_status_of(f), EBB_FAILED);
    ebb_region_close(w.host, w.region);
    pump(&w);
    assert_int_equal(ebb_region_join(w.host, w.region), EBB_OK); /* the failure was the future's */
    ebb_runtime_free(w.rt);
}

static void options_of_ebb_go_are_those_of_its_task(void **state) {
    world w;
    (void)state;
    begin(&w);
    ebb_task_opts opts = {.deadline = 5 * EBB_MS};
    ebb_future *f = ebb_future_keep(ebb_go(w.host, w.region, fails_in_the_end, &w, &opts));
    pump(&w);
    assert_int_equal(ebb_future_status_of(f), EBB_PENDING);
    ebb_runtime_advance(w.rt, 10 * EBB_MS);
    pump(&w);
    assert_int_equal(ebb_future_status_of(f), EBB_CANCELLED);
    ebb_runtime_free(w.rt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_of_ebb_go_is_never_kept),
        cmocka_unit_test(options_of_ebb_go_are_those_of_its_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
