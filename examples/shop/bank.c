/* The bank that takes a minute and can't be called back. Whoever waits for it is free as soon as it is cancelled; what is
 * left at the bank is a workflow. It is requested to stop, has a budget, and when that is over it waits for an operator:
 * the dashboard shows who holds it up, and extends or forces it. */
#include <stdio.h>
#include <stdlib.h>

#include "shop.h"

static const uint64_t bank_takes = 60 * EBB_SECOND;
static const ebb_workflow_type payment_abort = {.name = "payment_abort", .budget = 20 * EBB_SECOND};

/* Masked: it learns nothing of a cancel until it is forced. */
static ebb_status at_the_bank(ebb_cx *cx, void *arg) {
    ebb_sleeper nap = {0};
    (void)arg;
    (void)ebb_mask(cx);
    ebb_status st = ebb_sleep(cx, &nap, bank_takes);
    (void)ebb_unmask(cx);
    return st;
}

/* Joins the workflow, so that it is not kept after its end. One that is over its budget is waited for on and on. */
static ebb_status see_it_end(ebb_cx *cx, void *arg) {
    const ebb_workflow wf = {(uint64_t)(uintptr_t)arg};
    ebb_status st = ebb_await(cx, ebb_workflow_ended(cx, wf), NULL);
    if (st == EBB_OK) (void)ebb_workflow_join(cx, wf, NULL);
    return st;
}

static ebb_workflow open_payment(ebb_cx *host, const shop *s, const char *order) {
    const ebb_workflow_opts opts = {
        .type = &payment_abort, .name = order, .no_force = true, .parent = s->region};
    const ebb_workflow wf = ebb_workflow_open(host, &opts);
    if (ebb_id_status(wf.id) == EBB_OK)
        ebb_fiber_spawn(host, s->region, see_it_end, (void *)(uintptr_t)wf.id);
    return wf;
}

ebb_status shop_slow_bank(ebb_cx *cx, shop *s, const char *order) {
    ebb_cx *host = ebb_runtime_host(ebb_cx_runtime(cx)); /* the workflow outlives this task */
    const ebb_workflow wf = open_payment(host, s, order);
    ebb_status st = ebb_id_status(wf.id);
    if (st != EBB_OK) return st;
    ebb_fiber_spawn(host, ebb_workflow_region(host, wf), at_the_bank, NULL);
    st = ebb_await(cx, ebb_workflow_ended(cx, wf), NULL);
    if (st != EBB_OK) (void)ebb_workflow_request(cx, wf, EBB_CANCEL_USER, "the order does not wait for it");
    return st;
}
