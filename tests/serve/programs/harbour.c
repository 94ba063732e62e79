/* harbour: a service with a dashboard, for tests of its page.
 *
 * usage: harbour TOKEN_FILE BERTHS
 *
 * A region "quay" with BERTHS regions in it, every tenth with a task; a region "fleet" of three ships, whose crews take
 * 200 ms to clean up; and a rollout "v42", whose drain never ends by itself and which waits for an operator.
 * It prints "port N", and stops as every service does. */
#include <ebb/dashboard.h>
#include <ebb/ebb.h>
#include <ebb/workflow.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHIPS = 3, CREW = 4, CLEANUP_MS = 200, BUDGET_MS = 2000 };

typedef struct setup {
    const char *token_file;
    int berths;
} setup;

static ebb_status moored(ebb_cx *cx, void *arg) {
    (void)arg;
    return ebb_await(cx, ebb_future_never(cx), NULL);
}

static ebb_status sails(ebb_cx *cx, void *arg) {
    ebb_sleeper nap = {0};
    (void)arg;
    ebb_status st = ebb_await(cx, ebb_future_never(cx), NULL);
    if (st == EBB_CANCELLED && ebb_mask(cx) == EBB_OK) {
        (void)ebb_sleep(cx, &nap, CLEANUP_MS * EBB_MS);
        (void)ebb_unmask(cx);
    }
    return st;
}

static ebb_status region_in(ebb_cx *cx, ebb_region parent, ebb_region *out) {
    *out = ebb_region_open(cx, &(ebb_region_opts){.parent = parent, .policy = EBB_FAIL_COLLECT});
    return ebb_id_status(out->id);
}

static ebb_status task_in(ebb_cx *cx, ebb_region region, ebb_fiber_fn fn) {
    return ebb_id_status(ebb_fiber_spawn(cx, region, fn, NULL).id);
}

static ebb_status fill_quay(ebb_cx *cx, int berths) {
    ebb_region quay, berth;
    ebb_status st = region_in(cx, (ebb_region){0}, &quay);
    for (int i = 0; i < berths && st == EBB_OK; i++) {
        st = region_in(cx, quay, &berth);
        if (st == EBB_OK && i % 10 == 0) st = task_in(cx, berth, moored);
    }
    return st;
}

static ebb_status fill_fleet(ebb_cx *cx) {
    ebb_region fleet, ship;
    ebb_status st = region_in(cx, (ebb_region){0}, &fleet);
    for (int i = 0; i < SHIPS && st == EBB_OK; i++) {
        st = region_in(cx, fleet, &ship);
        for (int k = 0; k < CREW && st == EBB_OK; k++) st = task_in(cx, ship, sails);
    }
    return st;
}

static ebb_status never_done(ebb_cx *cx, ebb_drain *d, void *arg) {
    (void)cx;
    (void)arg;
    ebb_drain_progress(d, 3, 7);
    return EBB_PENDING;
}

static ebb_status open_rollout(ebb_cx *cx) {
    const ebb_workflow_opts opts = {
        .type = &ebb_workflow_rollout_cancel, .name = "v42", .budget = BUDGET_MS * EBB_MS, .no_force = true};
    ebb_workflow wf = ebb_workflow_open(cx, &opts);
    ebb_status st = ebb_id_status(wf.id);
    return st == EBB_OK ? ebb_workflow_on_drain(cx, wf, "crane", never_done, NULL) : st;
}

static ebb_status serve(ebb_cx *cx, void *arg) {
    const setup *s = arg;
    ebb_http_server_opts opts = {.address = {"127.0.0.1", 0}};
    ebb_http_server *server;
    ebb_status st = fill_fleet(cx); /* first, and so at the top of the page */
    if (st == EBB_OK) st = ebb_http_listen(cx, &opts, &server);
    if (st == EBB_OK)
        st =
            ebb_dashboard_mount(cx, server, &(ebb_dashboard_opts){.prefix = "", .token_file = s->token_file});
    if (st == EBB_OK) st = open_rollout(cx);
    if (st == EBB_OK) st = fill_quay(cx, s->berths);
    if (st == EBB_OK) st = ebb_http_server_address(cx, server, &opts.address);
    if (st != EBB_OK) return st;
    printf("port %u\n", opts.address.port);
    fflush(stdout);
    return moored(cx, NULL);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: harbour TOKEN_FILE BERTHS\n");
        return 2;
    }
    setup s = {argv[1], atoi(argv[2])};
    ebb_service_opts opts = {.loop = {.runtime.allocator = ebb_libc_allocator()}};
    return ebb_service_run(&opts, serve, &s);
}
