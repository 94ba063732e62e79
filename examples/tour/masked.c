/* A masked section: what must not be cut in two is not, and then the cancel is heard. */
#include "tour.h"

typedef struct payment {
    EBB_TASK_STATE;
    ebb_sleeper nap;
    ebb_obligation hold;
    bool charged, hung_up;
} payment;

/* A finalizer: runs when the task has returned, whatever it returned. It may wait. */
static ebb_status hang_up(ebb_cx *cx, void *state) {
    payment *p = state;
    ebb_status st = ebb_sleep(cx, &p->nap, 5 * EBB_MS);
    p->hung_up = st == EBB_OK;
    return st;
}

static ebb_status payment_poll(ebb_cx *cx, void *state) {
    payment *p = state;
    ebb_status st;
    EBB_BEGIN(p);
    if (ebb_defer(cx, hang_up, p) != EBB_OK) return EBB_ERR_NOMEM;
    (void)ebb_mask(cx);
    p->hold = ebb_obligation_reserve(cx, EBB_OBLIGATION_TRANSACTION, NULL,
                                     NULL);                /* a promise: commit it or abort it */
    EBB_AWAIT(p, st, ebb_sleep(cx, &p->nap, 30 * EBB_MS)); /* the bank thinks */
    p->charged = st == EBB_OK && ebb_obligation_commit(cx, p->hold) == EBB_OK;
    (void)ebb_unmask(cx);
    EBB_AWAIT(p, st, ebb_sleep(cx, &p->nap, 30 * EBB_MS)); /* the receipt: it never gets so far */
    return st;
    EBB_END(p);
}

static void play(stage *s) {
    ebb_cx *host = stage_host(s);
    payment p = {0};
    ebb_task task =
        ebb_spawn(host, ebb_runtime_root(stage_runtime(s)), payment_poll, &p, &(ebb_task_opts){.keep = true});
    stage_show_task(s, task, "payment");

    stage_run_to(s, 10);
    ebb_task_cancel(host, task, EBB_CANCEL_DISCONNECT, "the customer closed the page");
    stage_run_to(s, 29);
    ebb_task_info info;
    bool waits = ebb_task_info_of(host, task, &info) == EBB_OK && info.phase == EBB_TASK_CANCEL_REQUESTED;
    stage_run_out(s);

    stage_expect(s, waits, "19 ms later the cancel still waited at the mask");
    stage_expect(s, p.charged && p.hung_up, "the charge was made whole, and the finalizer has run");
    stage_expect(s, ebb_task_join(host, task) == EBB_CANCELLED, "the task ended cancelled");
}

const chapter masked = {"masked", "A masked section: the cancel waits until the bank has answered", play};
