/* close, cancel, force: the same worker, stopped in three ways; and one that does not listen. */
#include "tour.h"

typedef struct worker {
    EBB_TASK_STATE;
    ebb_sleeper nap;
    int items;
    bool put_back;
} worker;

static ebb_status worker_poll(ebb_cx *cx, void *state) {
    worker *w = state;
    ebb_status st;
    EBB_BEGIN(w);
    do {
        EBB_AWAIT(w, st, ebb_sleep(cx, &w->nap, 10 * EBB_MS)); /* an item */
        if (st == EBB_OK) w->items++;
        if (st == EBB_OK && ebb_stopping(cx)) return EBB_OK; /* closed: take nothing new */
    } while (st == EBB_OK);
    (void)ebb_mask(cx); /* cancelled: put back what is half done */
    EBB_AWAIT(w, st, ebb_sleep(cx, &w->nap, 15 * EBB_MS));
    w->put_back = st == EBB_OK; /* forced: there is no time left even for this */
    (void)ebb_unmask(cx);
    EBB_END(w);
}

/* Waits for something that never comes, and does not ask whether it should stop. */
static ebb_status deaf_poll(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_PENDING;
}

static ebb_region employ(stage *s, ebb_poll_fn poll, worker *w, const char *name) {
    ebb_region r = ebb_region_open(stage_host(s), NULL);
    stage_show_task(s, ebb_spawn(stage_host(s), r, poll, w), name);
    return r;
}

static void play(stage *s) {
    ebb_cx *host = stage_host(s);
    worker w[4] = {{0}};
    ebb_region a = employ(s, worker_poll, &w[0], "close");
    ebb_region b = employ(s, worker_poll, &w[1], "cancel");
    ebb_region c = employ(s, worker_poll, &w[2], "force");
    ebb_region d = employ(s, deaf_poll, &w[3], "force, deaf");

    stage_run_to(s, 25);
    ebb_region_close(host, a);
    ebb_region_cancel(host, b, EBB_CANCEL_USER, "that is enough");
    ebb_region_force(host, c);
    ebb_region_force(host, d);
    stage_run_out(s);

    ebb_region_report deaf;
    ebb_status known = ebb_region_report_of(host, d, &deaf);
    stage_expect(s, ebb_region_join(host, a) == EBB_OK && w[0].items == 3,
                 "close: it finished its third item");
    stage_expect(s, ebb_region_join(host, b) == EBB_CANCELLED && w[1].items == 2 && w[1].put_back,
                 "cancel: it stopped in its third item and put it back");
    stage_expect(s, ebb_region_join(host, c) == EBB_CANCELLED && w[2].items == 2 && !w[2].put_back,
                 "force: masked or not, every wait said cancelled at once");
    stage_expect(s, known == EBB_OK && deaf.abandoned == 1,
                 "force: after 8 polls the deaf one was abandoned, and its region closed");
}

const chapter verbs = {"verbs", "Close against cancel against force, all at 25 ms", play};
