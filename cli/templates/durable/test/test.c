/* test.c - the orchestration in virtual time, with the test's answers in the place of activities. Each test runs it
 * again evicted, crashed and cancelled after every turn. */
#include <stdio.h>
#include <string.h>

#include "app.h"

typedef struct answers {
    const char *fails; /* the activity that fails for good */
    int paid_back;
} answers;

static void answer(void *arg, ebb_test_call *call) {
    answers *a = arg;
    a->paid_back += strcmp(call->name, "pay-back") == 0;
    call->output = ebb_blob_text("\"sent\"");
    if (a->fails == NULL || strcmp(call->name, a->fails) != 0) return;
    call->status = EBB_FAILED;
    call->failure = (ebb_failure){.code = "broken", .message = "the test has broken it", .final = true};
}

static bool test(const char *fails, ebb_instance_state wanted, bool pays_back) {
    answers a = {.fails = fails};
    ebb_orch_test_result r;
    const ebb_orch_test_opts opts = {.allocator = ebb_libc_allocator(),
                                     .fn = order,
                                     .input = ebb_blob_text("{\"seat\":4}"),
                                     .answer = answer,
                                     .arg = &a};
    const ebb_status st = ebb_orch_test(&opts, &r);
    const bool paid_back = strstr(r.history != NULL ? r.history : "", "pay-back") != NULL;
    const bool ok = st == EBB_OK && r.state == wanted && paid_back == pays_back;
    printf("%s %s: %s in %d runs %s\n", ok ? "ok  " : "FAIL", fails != NULL ? fails : "nothing fails",
           ebb_instance_state_name(r.state), (int)r.runs, r.difference != NULL ? r.difference : "");
    ebb_orch_test_free(&opts, &r);
    return ok;
}

int main(void) {
    bool ok = test(NULL, EBB_INSTANCE_COMPLETED, false);
    ok &= test("charge", EBB_INSTANCE_FAILED, false);
    ok &= test("send", EBB_INSTANCE_FAILED, true);
    return ok ? 0 : 1;
}
