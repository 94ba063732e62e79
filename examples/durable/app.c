/* An order as a program of `ebb worker`: the seat is reserved by C, the payment is whatever the shell does, and a person
 * may call the order off.
 *
 *     ebb worker --store sqlite:orders.db --load ./app.so --activity charge='sleep 1; echo \"paid\"' &
 *     ebb durable start order --id order-7 --input '{"seat":4}' --store sqlite:orders.db
 *     ebb durable signal order-7 hurry --store sqlite:orders.db
 *     ebb durable wait order-7 --store sqlite:orders.db */
#include <ebb/durable.h>
#include <ebb/ebb.h>

static ebb_status reserve(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    (void)cx;
    (void)a;
    (void)in;
    *out = ebb_blob_text("\"reserved\"");
    return EBB_OK;
}

/* The seat is given back, also after a cancel. */
static ebb_status release(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    (void)cx;
    (void)a;
    (void)in;
    (void)out;
    return EBB_OK;
}

static ebb_status order(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    size_t won;
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "reserve", in, NULL), NULL);
    if (st == EBB_OK) st = ebb_orch_set_status(o, ebb_blob_text("\"waits for the hurry of its buyer\""));
    if (st != EBB_OK) return st;
    ebb_step race[] = {ebb_orch_event(o, "hurry"), ebb_orch_timer(o, 3600 * EBB_SECOND)};
    st = ebb_orch_select(o, 2, race, &won);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_call(o, "charge", in, NULL), out);
    if (st != EBB_OK) (void)ebb_orch_await(o, ebb_orch_call(o, "release", in, NULL), NULL);
    return st == EBB_FAILED ? ebb_orch_fail(o, ebb_orch_failure(o)) : st;
}

/* One order for each seat of a row, as children. */
static ebb_status row(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    enum { SEATS = 3 };
    ebb_step seats[SEATS];
    (void)out;
    for (size_t i = 0; i < SEATS; i++) seats[i] = ebb_orch_child(o, "order", in, NULL);
    return ebb_orch_join(o, SEATS, seats);
}

ebb_status ebb_app(ebb_cx *cx, ebb_worker *w); /* `ebb worker` looks for it by this name */
ebb_status ebb_app(ebb_cx *cx, ebb_worker *w) {
    (void)cx;
    ebb_status st = ebb_worker_orch(w, "order", 1, order);
    if (st == EBB_OK) st = ebb_worker_orch(w, "row", 1, row);
    if (st == EBB_OK) st = ebb_worker_activity(w, "reserve", reserve, NULL, NULL);
    if (st == EBB_OK) st = ebb_worker_activity(w, "release", release, NULL, NULL);
    return st;
}
