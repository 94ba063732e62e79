/* app.c - what the worker runs: an order is charged and sent; what can't be sent is paid back.
 *
 * An orchestration decides, and its decisions are in its history: after a crash it goes on where it was. It may not look
 * at clocks, files or random numbers. What it does to the world are activities, which may run more than once. */
#include "app.h"

/* Three attempts, with a pause of 1 s, then 2 s. */
static const ebb_call_opts thrice = {.attempts = 3, .backoff = EBB_BACKOFF_EXPONENTIAL, .pause = EBB_SECOND};

ebb_status order(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "charge", in, &thrice), NULL);
    if (st != EBB_OK) return st;
    st = ebb_orch_await(o, ebb_orch_call(o, "send", in, &thrice), out);
    if (st != EBB_OK) (void)ebb_orch_await(o, ebb_orch_call(o, "pay-back", in, NULL), NULL);
    return st == EBB_FAILED ? ebb_orch_fail(o, ebb_orch_failure(o)) : st;
}

/* An activity gets a key that is the same for each attempt: give it to whoever must not do the thing twice. */
static ebb_status act(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    (void)cx;
    (void)a;
    (void)in;
    *out = ebb_blob_text("\"done\"");
    return EBB_OK;
}

ebb_status ebb_app(ebb_cx *cx, ebb_worker *w) {
    (void)cx;
    ebb_status st = ebb_worker_orch(w, "order", 1, order);
    if (st == EBB_OK) st = ebb_worker_activity(w, "charge", act, NULL, NULL);
    if (st == EBB_OK) st = ebb_worker_activity(w, "send", act, NULL, NULL);
    if (st == EBB_OK) st = ebb_worker_activity(w, "pay-back", act, NULL, NULL);
    return st;
}
