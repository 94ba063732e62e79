/* What `ebb worker` loads in tests: the order of examples/durable/app.c by a later hand, which calls something else; a
 * crowd of instances; and a parent. With EBB_TEST_APP=fails its registration fails. */
#include <ebb/durable.h>
#include <ebb/ebb.h>

#include <stdlib.h>
#include <string.h>

enum { CROWD = 130 };

static ebb_status book(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    (void)cx;
    (void)a;
    (void)in;
    (void)out;
    return EBB_OK;
}

static ebb_status order(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "book", in, NULL), out);
}

static ebb_status idle(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)in;
    return ebb_orch_await(o, ebb_orch_event(o, "go"), out);
}

static ebb_status crowd(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step all[CROWD];
    (void)out;
    for (size_t i = 0; i < CROWD; i++) all[i] = ebb_orch_child(o, "idle", in, NULL);
    return ebb_orch_join(o, CROWD, all);
}

static ebb_status kin(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = ebb_orch_await(o, ebb_orch_timer(o, EBB_MS), NULL);
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_child(o, "order", in, NULL), out) : st;
}

ebb_status ebb_app(ebb_cx *cx, ebb_worker *w);
ebb_status ebb_app(ebb_cx *cx, ebb_worker *w) {
    const char *how = getenv("EBB_TEST_APP");
    (void)cx;
    ebb_status st = ebb_worker_orch(w, "order", 1, order);
    if (st == EBB_OK) st = ebb_worker_orch(w, "idle", 1, idle);
    if (st == EBB_OK) st = ebb_worker_orch(w, "crowd", 1, crowd);
    if (st == EBB_OK) st = ebb_worker_orch(w, "kin", 1, kin);
    if (st == EBB_OK) st = ebb_worker_activity(w, "book", book, NULL, NULL);
    if (st == EBB_OK && how != NULL && strcmp(how, "fails") == 0) st = ebb_worker_orch(w, "idle", 1, idle);
    return st;
}
