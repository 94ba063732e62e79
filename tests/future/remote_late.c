/* A value that was settled through a remote handle, and whose message nobody has received when the runtime is freed, is
 * freed once, also if the future's region has closed meanwhile. */
#include "tests/support/world.h"

static int frees;

static void count(void *p) {
    (void)p;
    frees++;
}

static const ebb_type counted = {"counted", 0, NULL, count, 0};

static void a_value_that_nobody_received_is_freed_once(void **state) {
    (void)state;
    for (int closes = 0; closes < 2; closes++) {
        static int word;
        ebb_failing memory = {.inner = ebb_libc_allocator()};
        ebb_runtime *rt;
        assert_int_equal(
            ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_failing_allocator(&memory)}, &rt), EBB_OK);
        ebb_cx *host = ebb_runtime_host(rt);
        ebb_remote *r;
        frees = 0;
        static const ebb_operation op = {"late", NULL, NULL};
        ebb_future *f = ebb_future_shield(ebb_promise_new(host, &op, NULL));
        assert_int_equal(ebb_remote_new(f, &r), EBB_OK);
        ebb_future_drop(f);
        assert_int_equal(ebb_remote_settle(r, ebb_value_owned(&counted, &word)), EBB_OK);
        ebb_remote_release(r);
        if (closes) ebb_region_cancel(host, ebb_runtime_root(rt), EBB_CANCEL_SHUTDOWN, "");
        ebb_runtime_advance(rt, EBB_SECOND);
        while (ebb_runtime_pump(rt, 100) == EBB_PENDING) continue;
        ebb_runtime_free(rt);
        assert_int_equal(frees, 1);
        assert_int_equal(memory.live, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_that_nobody_received_is_freed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
