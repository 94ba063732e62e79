/* A payment that is cancelled at the worst moment.
 *
 * Three tools, one for each question:
 *   mask         what must not be cut in two?        the talk with the bank
 *   obligation   what is promised and still open?    the hold on the customer's money
 *   finalizer    what is to be undone in any case?   the connection
 *
 * Run twice: cancelled while the bank is being asked, and cancelled before that. */
#include <ebb/ebb.h>
#include <stdio.h>

typedef struct payment {
    EBB_TASK_STATE;
    ebb_sleeper nap;
    ebb_obligation hold;
    bool held, charged, connected;
} payment;

static void say(ebb_cx *cx, const char *what) {
    printf("  %2d ms  %s\n", (int)(ebb_now(cx) / EBB_MS % 100), what);
}

/* Runs when the promise is aborted, whoever aborts it: here, or the runtime if it is forgotten. */
static void release_hold(void *arg) {
    payment *p = arg;
    p->held = false;
}

/* A finalizer is polled like a task and may wait. It runs masked, after the body, last added first. */
static ebb_status hang_up(ebb_cx *cx, void *arg) {
    payment *p = arg;
    ebb_status st = ebb_sleep(cx, &p->nap, 3 * EBB_MS);
    if (st == EBB_PENDING) return st;
    p->connected = false;
    say(cx, "finalizer: hung up");
    return EBB_OK;
}

static ebb_status payment_poll(ebb_cx *cx, void *state) {
    payment *p = state;
    ebb_status st;
    EBB_BEGIN(p);
    p->connected = true;
    if (ebb_defer(cx, hang_up, p) != EBB_OK) return EBB_ERR_NOMEM;
    p->hold = ebb_obligation_reserve(cx, EBB_OBLIGATION_TRANSACTION, release_hold, p);
    if (ebb_id_status(p->hold.id) != EBB_OK) return ebb_id_status(p->hold.id);
    p->held = true;

    EBB_AWAIT(p, st, ebb_sleep(cx, &p->nap, 10 * EBB_MS)); /* the customer types the code */
    if (st != EBB_OK) {
        say(cx, "told to stop: the hold is released");
        (void)ebb_obligation_abort(cx, p->hold);
        return st;
    }

    (void)ebb_mask(cx);                                    /* from here to the unmask: all or nothing */
    EBB_AWAIT(p, st, ebb_sleep(cx, &p->nap, 20 * EBB_MS)); /* the bank thinks */
    if (st == EBB_OK) {
        p->charged = true;
        (void)ebb_obligation_commit(cx, p->hold);
        say(cx, "charged, the hold is committed");
    } else {
        (void)ebb_obligation_abort(cx, p->hold); /* masked or not: the budget is over */
    }
    (void)ebb_unmask(cx);
    if (ebb_checkpoint(cx) != EBB_OK) say(cx, "now it hears that it was told to stop");
    EBB_END(p);
}

static void run(ebb_runtime *rt, uint64_t until) {
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING || ebb_runtime_next_due(rt) < until) {
        ebb_runtime_advance(rt, ebb_runtime_next_due(rt));
    }
    if (until != EBB_FOREVER) ebb_runtime_advance(rt, until);
}

/* True if it ended cancelled, with nothing open: no hold without a charge, no connection. */
static bool pay(ebb_runtime *rt, uint64_t start, unsigned cancel_ms, bool charged) {
    ebb_cx *host = ebb_runtime_host(rt);
    payment p = {0};
    ebb_runtime_advance(rt, start);
    printf("cancelled at %u ms\n", cancel_ms);
    ebb_task task = ebb_spawn(host, ebb_runtime_root(rt), payment_poll, &p,
                              &(ebb_task_opts){.keep = true}); /* keeps the outcome */
    run(rt, start + cancel_ms * EBB_MS);
    ebb_task_cancel(host, task, EBB_CANCEL_DISCONNECT, "the customer closed the page");
    run(rt, EBB_FOREVER);
    ebb_status st = ebb_task_join(host, task);
    printf("         %s\n", ebb_status_text(st));
    return st == EBB_CANCELLED && !p.connected && p.charged == charged && p.held == charged;
}

int main(void) {
    ebb_runtime *rt;
    if (ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_libc_allocator()}, &rt) != EBB_OK) return 1;
    bool ok = pay(rt, 0, 15, true);
    ok = pay(rt, 100 * EBB_MS, 5, false) && ok;
    ebb_runtime_stats stats;
    ebb_runtime_stats_of(rt, &stats);
    ebb_runtime_free(rt);
    return ok && stats.leaks == 0 && stats.obligations == 0 ? 0 : 1;
}
