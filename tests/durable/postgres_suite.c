/* The conformance suite on PostgreSQL, on a real server. */
#include "tests/durable/postgres_server.h"
#include "tests/support/loop_world.h"

#include <ebb/provider.h>

static pg_server server;

static int server_up(void **state) {
    (void)state;
    return pg_server_begin(&server, false) ? 0 : -1;
}

static int server_down(void **state) {
    (void)state;
    pg_server_end(&server);
    return 0;
}

static void print_case(void *arg, const char *name, ebb_status st, const char *text) {
    (void)arg;
    if (st != EBB_OK) print_error("%s: %s: %s\n", name, ebb_status_text(st), text);
}

static ebb_status suite_main(ebb_cx *cx, void *arg) {
    uint32_t passed = 0, failed = 0;
    const ebb_provider_test_opts opts = {
        .size = sizeof opts, .url = server.url, .match = getenv("EBB_TEST_CASE"), .result = print_case};
    (void)arg;
    const ebb_status st = ebb_provider_test(cx, &opts, &passed, &failed);
    print_message("%u cases passed, %u failed\n", passed, failed);
    return st;
}

static void every_case_of_the_suite_passes(void **state) {
    alarm(240);
    assert_int_equal(run_fiber(*state, suite_main, NULL), EBB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {ON_A_LOOP(every_case_of_the_suite_passes)};
    return cmocka_run_group_tests(tests, server_up, server_down);
}
