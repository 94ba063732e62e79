/* Runs the conformance suite in a world of virtual time. */
#ifndef EBB_TESTS_SUITE_RUN_H
#define EBB_TESTS_SUITE_RUN_H

#include "tests/support/store_world.h"

typedef struct suite_run {
    const char *url, *match;
    const ebb_provider *provider;
    bool stops; /* at the first failure */
    bool shows; /* failures are printed */
    ebb_status status;
    uint32_t passed, failed;
    char first[96]; /* the first case that has failed */
    char text[500];
    ebb_task task;
    world *world;
} suite_run;

static inline void suite_result(void *arg, const char *name, ebb_status st, const char *text) {
    suite_run *r = arg;
    if (st == EBB_OK) return;
    if (r->shows) print_message("%s: %s\n", name, text);
    if (r->first[0] != 0) return;
    snprintf(r->first, sizeof r->first, "%s", name);
    snprintf(r->text, sizeof r->text, "%s", text);
    if (r->stops) ebb_task_cancel(r->world->host, r->task, EBB_CANCEL_USER, "enough");
}

static inline ebb_status suite_body(ebb_cx *cx, void *arg) {
    suite_run *r = arg;
    const ebb_provider_test_opts opts = {.size = sizeof opts,
                                         .url = r->url,
                                         .provider = r->provider,
                                         .match = r->match,
                                         .result = suite_result,
                                         .arg = r};
    r->status = ebb_provider_test(cx, &opts, &r->passed, &r->failed);
    return EBB_OK;
}

static inline void run_suite(world *w, suite_run *r) {
    r->world = w;
    r->task = ebb_fiber_spawn(w->host, w->root, suite_body, r);
    for (;;) {
        store_settle(w);
        const uint64_t due = ebb_runtime_next_due(w->rt);
        if (due == EBB_FOREVER) break;
        ebb_runtime_advance(w->rt, due);
    }
}

#endif
