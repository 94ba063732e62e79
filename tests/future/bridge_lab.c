/* Bridges in the lab: every order in which the two sides run, their messages arrive, tasks are cancelled and
 * either side closes. Items arrive once, in the order in which they were sent, and nobody waits for ever. */
#include "tests/future/peer_lab.h"

enum { SENDERS = 3, RECEIVERS = 3, EACH = 3, CAPACITY = 2, STEPS = 4 };

typedef struct crossing crossing;

typedef struct walker {
    EBB_TASK_STATE;
    crossing *x;
    ebb_task id;
    ebb_wait wait;
    uint32_t i;
    uint64_t item;
    bool ended;
    bool victim; /* of a step */
} walker;

struct crossing {
    ebb_lab *lab;
    lab_peer peers[2];
    ebb_bridge *bridge;
    walker sender[SENDERS], receiver[RECEIVERS];
    uint32_t sending; /* senders that are not done; the last closes, if no step does */
    uint64_t sent[SENDERS * EACH];
    uint32_t sent_n, received_n;
    bool stormy;  /* steps close it and cancel tasks */
    bool closed;  /* by a step */
    bool drained; /* a receiver was told that it is over */
};

/* The lab cancels what is left when nothing happens any more. */
static void walker_ended(ebb_cx *cx, walker *w) {
    w->ended = true;
    if (ebb_cancelled(cx) && !w->victim) ebb_lab_fail(w->x->lab, "a task waited for ever");
}

static ebb_status send_all(ebb_cx *cx, void *state) {
    walker *w = state;
    crossing *x = w->x;
    ebb_status st = EBB_OK;
    EBB_BEGIN(w);
    for (w->i = 0; w->i < EACH; w->i++) {
        w->item = (uint64_t)(w - x->sender) << 32 | w->i;
        EBB_AWAIT(w, st, ebb_bridge_send(cx, x->bridge, &w->wait, &w->item));
        if (st != EBB_OK) break;
        x->sent[x->sent_n++] = w->item;
        if (w->i == 1) EBB_YIELD(cx, w);
    }
    if (st == EBB_ERR_CLOSED && !x->closed) ebb_lab_fail(x->lab, "closed, but nobody has closed it");
    walker_ended(cx, w);
    if (--x->sending == 0 && !x->stormy) (void)ebb_bridge_close(cx, x->bridge);
    return st == EBB_CANCELLED ? st : EBB_OK;
    EBB_END(w);
}

static ebb_status receive_all(ebb_cx *cx, void *state) {
    walker *w = state;
    crossing *x = w->x;
    ebb_status st;
    EBB_BEGIN(w);
    for (;;) {
        EBB_AWAIT(w, st, ebb_bridge_recv(cx, x->bridge, &w->wait, &w->item));
        if (st != EBB_OK) break;
        if (x->drained) ebb_lab_fail(x->lab, "an item came after the end");
        if (w->item != x->sent[x->received_n]) ebb_lab_fail(x->lab, "items came in another order");
        x->received_n++;
    }
    if (st == EBB_ERR_CLOSED) x->drained = true;
    if (st == EBB_ERR_CLOSED && x->received_n != x->sent_n) {
        ebb_lab_fail(x->lab, "it was over before the last item was received");
    }
    walker_ended(cx, w);
    return st == EBB_CANCELLED ? st : EBB_OK;
    EBB_END(w);
}

static ebb_status flow_setup(ebb_lab *lab) {
    crossing *x = ebb_lab_state(lab);
    x->lab = lab;
    x->sending = SENDERS;
    ebb_status st = lab_peers(lab, x->peers, 2);
    if (st == EBB_OK) {
        st = ebb_bridge_new(x->peers[0].peer, x->peers[1].peer, CAPACITY, sizeof(uint64_t), &x->bridge);
    }
    for (uint32_t i = 0; i < SENDERS + RECEIVERS && st == EBB_OK; i++) {
        uint32_t to = i < SENDERS ? 0 : 1;
        walker *w = to == 0 ? &x->sender[i] : &x->receiver[i - SENDERS];
        w->x = x;
        w->id = ebb_spawn(ebb_runtime_host(ebb_lab_runtime(lab, to)), ebb_lab_region(lab, to),
                          to == 0 ? send_all : receive_all, w);
        st = ebb_id_status(w->id.id);
    }
    return st;
}

static ebb_status storm_setup(ebb_lab *lab) {
    ((crossing *)ebb_lab_state(lab))->stormy = true;
    return flow_setup(lab);
}

static void cancel_somebody(ebb_lab *lab, crossing *x) {
    uint32_t which = ebb_lab_choose(lab, SENDERS + RECEIVERS);
    uint32_t to = which < SENDERS ? 0 : 1;
    walker *w = to == 0 ? &x->sender[which] : &x->receiver[which - SENDERS];
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, to));
    if (w->ended) return;
    w->victim = true;
    if (ebb_lab_choose(lab, 3) == 0) ebb_task_force(host, w->id);
    else ebb_task_cancel(host, w->id, EBB_CANCEL_USER, "a step");
}

/* The last step closes it in any case: so whoever is left has to end. */
static void crossing_step(ebb_lab *lab, uint32_t n) {
    crossing *x = ebb_lab_state(lab);
    bool close = n + 1 == STEPS || ebb_lab_choose(lab, STEPS) == 0;
    if (!close) {
        cancel_somebody(lab, x);
        return;
    }
    x->closed = true;
    (void)ebb_bridge_close(ebb_runtime_host(ebb_lab_runtime(lab, ebb_lab_choose(lab, 2))), x->bridge);
}

static void crossing_check(ebb_lab *lab) {
    crossing *x = ebb_lab_state(lab);
    if (x->received_n > x->sent_n) ebb_lab_fail(lab, "more was received than sent");
    if (!x->stormy && x->received_n != SENDERS * EACH) ebb_lab_fail(lab, "an item was lost");
}

static void crossing_teardown(ebb_lab *lab) {
    crossing *x = ebb_lab_state(lab);
    ebb_bridge_release(x->bridge);
    lab_peers_release(x->peers, 2);
}

static const ebb_lab_scenario flow = {.name = "bridge_flow",
                                      .about = "three senders, three receivers, nobody is disturbed",
                                      .runtimes = 2,
                                      .state_size = sizeof(crossing),
                                      .setup = flow_setup,
                                      .received = lab_take_in,
                                      .check = crossing_check,
                                      .teardown = crossing_teardown};

static const ebb_lab_scenario storm = {.name = "bridge_storm",
                                       .about = "the same, while tasks are cancelled and either side closes",
                                       .runtimes = 2,
                                       .steps = STEPS,
                                       .state_size = sizeof(crossing),
                                       .setup = storm_setup,
                                       .step = crossing_step,
                                       .received = lab_take_in,
                                       .check = crossing_check,
                                       .teardown = crossing_teardown};

static void items_arrive_once_and_in_order_whatever_the_schedule(void **state) {
    (void)state;
    lab_explore(&flow, 4000, 14, 4000, NULL);
}

static void cancels_and_closes_lose_nothing_that_was_sent(void **state) {
    (void)state;
    lab_explore(&storm, 6000, 10, 6000, NULL);
}

static void each_runtime_replays_alone(void **state) {
    (void)state;
    lab_replays(&storm, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_arrive_once_and_in_order_whatever_the_schedule),
        cmocka_unit_test(cancels_and_closes_lose_nothing_that_was_sent),
        cmocka_unit_test(each_runtime_replays_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
