/* The conformance suite on SQLite, with both durabilities. */
#include "tests/support/world.h"

#include <ebb/provider.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct suite_run {
    ebb_provider_test_opts opts;
    ebb_status status;
    uint32_t passed, failed;
    char error[512];
} suite_run;

static void report(void *arg, const char *name, ebb_status st, const char *text) {
    (void)arg;
    if (st != EBB_OK) print_message("%s: %s: %s\n", name, ebb_status_name(st), text);
}

static ebb_status body(ebb_cx *cx, void *arg) {
    suite_run *r = arg;
    r->status = ebb_provider_test(cx, &r->opts, &r->passed, &r->failed);
    (void)snprintf(r->error, sizeof r->error, "%s", ebb_durable_error());
    return EBB_OK;
}

static void run_suite(const char *durability) {
    char dir[] = "/tmp/ebb-suite-XXXXXX", url[128], name[64];
    static const char *const files[] = {"a.db", "a.db-wal", "a.db-shm", "a.db.lock", "a.db.ballast"};
    suite_run r;
    ebb_loop *loop = NULL;
    memset(&r, 0, sizeof r);
    assert_non_null(mkdtemp(dir));
    (void)snprintf(url, sizeof url, "sqlite:%s/a.db?durability=%s", dir, durability);
    r.opts.url = url;
    r.opts.match = getenv("EBB_SUITE_MATCH");
    r.opts.result = report;
    const ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    assert_int_equal(ebb_loop_new(&opts, body, &r, &loop), EBB_OK);
    assert_int_equal(ebb_loop_join(loop), EBB_OK);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(name, sizeof name, "%s/%s", dir, files[i]);
        (void)unlink(name);
    }
    (void)rmdir(dir);
    print_message("sqlite, durability %s: %u passed, %u failed\n", durability, r.passed, r.failed);
    if (r.status != EBB_OK) fail_msg("%s: %s", ebb_status_name(r.status), r.error);
    assert_int_equal(r.failed, 0);
}

static void all_cases_pass_with_full_durability(void **state) {
    (void)state;
    run_suite("full");
}

static void all_cases_pass_with_normal_durability(void **state) {
    (void)state;
    run_suite("normal");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_cases_pass_with_normal_durability),
        cmocka_unit_test(all_cases_pass_with_full_durability),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
