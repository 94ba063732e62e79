/* Channels, bridges and semaphores as futures in the lab: actors send, receive and acquire, plainly and as futures that
 * race others, while steps cancel tasks, end the rivals, collect, and close. Items arrive once and in the order in which
 * they were sent, or are still there; so are permits.
 *
 * usage: future.claims_lab [SCHEDULES [SEED]] */
#include "tests/future/peer_lab.h"

enum { SENDERS = 3, RECEIVERS = 3, TAKERS = 3, ACTORS = SENDERS + RECEIVERS + TAKERS };
enum { ROUNDS = 4, CAPACITY = 2, PERMITS = 2, STEPS = 8 };

typedef struct market market;

typedef struct actor {
    EBB_TASK_STATE;
    market *p;
    uint32_t number, round;
    ebb_task id;
    ebb_wait wait;
    ebb_future *f, *rival;
    ebb_value v;
    uint64_t item;
    ebb_status st;
    bool selects, has, ended;
} actor;

struct market {
    ebb_lab *lab;
    bool far; /* a bridge from runtime 0 to 1; else a channel of 0 */
    lab_peer peers[2];
    ebb_bridge *bridge;
    ebb_chan *chan;
    ebb_sem sem;
    actor actor[ACTORS];
    uint64_t sent[SENDERS * ROUNDS];
    uint32_t sent_n, received_n, holders;
    bool closed;
};

static bool sends(const actor *a) {
    return a->number < SENDERS;
}

static bool receives(const actor *a) {
    return !sends(a) && a->number < SENDERS + RECEIVERS;
}

static uint32_t home(const actor *a) {
    return a->p->far && receives(a) ? 1 : 0;
}

/* ---- what actors do --------------------------------------------------------------------------------------- */

static ebb_future *begin(ebb_cx *cx, const actor *a) {
    market *p = a->p;
    if (sends(a)) return p->far ? ebb_bridge_send_future(cx, p->bridge) : ebb_chan_send_future(cx, p->chan);
    if (receives(a))
        return p->far ? ebb_bridge_recv_future(cx, p->bridge) : ebb_chan_recv_future(cx, p->chan);
    return ebb_sem_acquire_future(cx, &p->sem);
}

static void sent(actor *a) {
    market *p = a->p;
    p->sent[p->sent_n++] = a->item;
}

static void received(actor *a, uint64_t item) {
    market *p = a->p;
    if (p->received_n >= p->sent_n) ebb_lab_fail(p->lab, "an item came that was not sent");
    else if (item != p->sent[p->received_n]) ebb_lab_fail(p->lab, "items came in another order, or twice");
    p->received_n++;
}

static void acquired(actor *a) {
    a->has = true;
    if (++a->p->holders > PERMITS) ebb_lab_fail(a->p->lab, "there are more permits than there were");
}

/* Uses a claim, or gives it back. */
static void use(ebb_cx *cx, actor *a, ebb_value *claim) {
    market *p = a->p;
    ebb_status st = EBB_OK;
    uint64_t item = 0;
    if (!sends(a) && !receives(a)) {
        acquired(a);
        return;
    }
    if (ebb_lab_choose(p->lab, 4) == 0) {
        ebb_value_discard(cx, ebb_value_take(cx, claim));
        return;
    }
    if (sends(a)) {
        st = p->far ? ebb_bridge_put(cx, claim, &a->item) : ebb_chan_put(cx, claim, &a->item);
        if (st == EBB_OK) sent(a);
    } else {
        st = p->far ? ebb_bridge_take(cx, claim, &item) : ebb_chan_take(cx, claim, &item);
        if (st == EBB_OK) received(a, item);
    }
    if (st != EBB_OK && !(st == EBB_ERR_CLOSED && p->closed)) ebb_lab_fail(p->lab, "a claim was not usable");
}

static void awaited(ebb_cx *cx, actor *a) {
    ebb_selected *s = ebb_selected_of(&a->v);
    if (!a->selects) use(cx, a, &a->v);
    else if (s != NULL && s->index == 0) use(cx, a, &s->value);
}

static ebb_status plainly(ebb_cx *cx, actor *a) {
    market *p = a->p;
    if (sends(a)) {
        return p->far ? ebb_bridge_send(cx, p->bridge, &a->wait, &a->item)
                      : ebb_chan_send(cx, p->chan, &a->wait, &a->item);
    }
    if (receives(a)) {
        return p->far ? ebb_bridge_recv(cx, p->bridge, &a->wait, &a->item)
                      : ebb_chan_recv(cx, p->chan, &a->wait, &a->item);
    }
    return ebb_sem_acquire(cx, &p->sem, &a->wait);
}

static void choose_future(ebb_cx *cx, actor *a) {
    uint32_t how = ebb_lab_choose(a->p->lab, 4);
    a->selects = how >= 2;
    a->f = begin(cx, a);
    if (how == 1) a->f = ebb_within(cx, a->f, EBB_MS);
    if (!a->selects) return;
    ebb_future *fs[2] = {a->f, how == 2 ? ebb_promise_new(cx, NULL, NULL) : ebb_after(cx, EBB_MS)};
    if (how == 2) a->rival = ebb_future_keep(fs[1]);
    a->f = ebb_select(cx, 2, fs);
}

static void let_go(ebb_cx *cx, actor *a) {
    if (a->rival != NULL) ebb_future_drop(a->rival);
    a->rival = NULL;
    if (a->has) a->p->holders--;
    if (a->has && a->v.type == NULL && !a->selects) ebb_sem_release(cx, &a->p->sem);
    a->has = false;
    ebb_value_discard(cx, a->v);
    a->v = ebb_value_none();
}

static ebb_status act(ebb_cx *cx, void *state) {
    actor *a = state;
    EBB_BEGIN(a);
    for (a->round = 0; a->round < ROUNDS; a->round++) {
        a->item = (uint64_t)a->number << 32 | a->round;
        if (ebb_lab_choose(a->p->lab, 4) == 0) {
            a->selects = false;
            EBB_AWAIT(a, a->st, plainly(cx, a));
            if (a->st == EBB_OK && sends(a)) sent(a);
            else if (a->st == EBB_OK && receives(a)) received(a, a->item);
            else if (a->st == EBB_OK) acquired(a);
        } else {
            choose_future(cx, a);
            EBB_AWAIT(a, a->st, ebb_await(cx, a->f, &a->v));
            if (a->st == EBB_OK) awaited(cx, a);
        }
        if (a->st == EBB_OK) EBB_YIELD(cx, a);
        let_go(cx, a);
        if (a->st == EBB_CANCELLED || a->st == EBB_ERR_CLOSED) break;
    }
    a->ended = true;
    return a->st == EBB_CANCELLED ? a->st : EBB_OK;
    EBB_END(a);
}

/* ---- the scenario ----------------------------------------------------------------------------------------- */

static ebb_status setup(ebb_lab *lab) {
    market *p = ebb_lab_state(lab);
    p->lab = lab;
    p->far = ebb_lab_choose(lab, 2) == 0;
    ebb_sem_init(&p->sem, PERMITS);
    ebb_status st = lab_peers(lab, p->peers, 2);
    if (st == EBB_OK && p->far)
        st = ebb_bridge_new(p->peers[0].peer, p->peers[1].peer, CAPACITY, sizeof(uint64_t), &p->bridge);
    else if (st == EBB_OK) st = ebb_chan_new(ebb_lab_runtime(lab, 0), CAPACITY, sizeof(uint64_t), &p->chan);
    for (uint32_t i = 0; i < ACTORS && st == EBB_OK; i++) {
        actor *a = &p->actor[i];
        a->p = p;
        a->number = i;
        ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, home(a)));
        a->id = ebb_spawn(host, ebb_lab_region(lab, home(a)), act, a);
        st = ebb_id_status(a->id.id);
    }
    return st;
}

static void close_it(market *p) {
    uint32_t side = p->far ? ebb_lab_choose(p->lab, 2) : 0;
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(p->lab, side));
    p->closed = true;
    if (p->far) (void)ebb_bridge_close(host, p->bridge);
    else ebb_chan_close(host, p->chan);
}

static void market_step(ebb_lab *lab, uint32_t n) {
    market *p = ebb_lab_state(lab);
    actor *a = &p->actor[ebb_lab_choose(lab, ACTORS)];
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, home(a)));
    (void)n;
    switch (ebb_lab_choose(lab, 8)) {
    case 0:
        if (!a->ended) ebb_task_cancel(host, a->id, EBB_CANCEL_USER, "a step");
        break;
    case 1:
        if (!a->ended && ebb_lab_choose(lab, 2) == 0) ebb_task_force(host, a->id);
        break;
    case 2: (void)ebb_gc_collect(ebb_lab_runtime(lab, home(a))); break;
    case 3:
        if (ebb_lab_choose(lab, 3) == 0) close_it(p);
        break;
    default:
        if (a->rival != NULL) (void)ebb_promise_settle(a->rival, ebb_value_none());
        break;
    }
}

/* Everything has ended: what was not received is still there. */
static void check(ebb_lab *lab) {
    market *p = ebb_lab_state(lab);
    ebb_cx *here = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    ebb_cx *there = ebb_runtime_host(ebb_lab_runtime(lab, p->far ? 1 : 0));
    uint64_t item;
    for (;;) {
        ebb_status st =
            p->far ? ebb_bridge_try_recv(there, p->bridge, &item) : ebb_chan_try_recv(here, p->chan, &item);
        if (st != EBB_OK) break;
        received(&p->actor[0], item);
    }
    if (p->received_n != p->sent_n) ebb_lab_fail(lab, "an item was lost");
    if (p->holders == 0 && p->sem.free != PERMITS) ebb_lab_fail(lab, "a permit was lost");
    for (uint32_t i = 0; i < CAPACITY && !p->closed; i++) {
        ebb_status st =
            p->far ? ebb_bridge_try_send(here, p->bridge, &item) : ebb_chan_try_send(here, p->chan, &item);
        if (st != EBB_OK) ebb_lab_fail(lab, "a place was lost");
    }
}

static uint64_t all_sent, all_received;

static void teardown(ebb_lab *lab) {
    market *p = ebb_lab_state(lab);
    all_sent += p->sent_n;
    all_received += p->received_n;
    ebb_chan_free(p->chan);
    ebb_bridge_release(p->bridge);
    lab_peers_release(p->peers, 2);
}

static const ebb_lab_scenario claims = {.name = "claims",
                                        .about = "claims of a channel or bridge and of a semaphore, raced",
                                        .runtimes = 2,
                                        .steps = STEPS,
                                        .state_size = sizeof(market),
                                        .setup = setup,
                                        .step = market_step,
                                        .received = lab_take_in,
                                        .check = check,
                                        .teardown = teardown};

static uint64_t schedules = 8000 / SHARE(10, 5), seed = 1;

static void whatever_the_schedule_nothing_is_lost(void **state) {
    (void)state;
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    assert_non_null(lab);
    ebb_lab_case c = {.scenario = &claims, .seed = seed};
    ebb_lab_explore_result r;
    (void)ebb_lab_explore(lab, &c, &(ebb_lab_explore_opts){.schedules = schedules}, &r);
    if (r.failure.status != EBB_OK) {
        fail_msg("seed %llu: %s: %s", (unsigned long long)c.seed, r.failure.failure, r.failure.text);
    }
    print_message("%llu schedules, %llu items sent, %llu received\n", (unsigned long long)r.schedules,
                  (unsigned long long)all_sent, (unsigned long long)all_received);
    assert_true(all_sent > 2 * schedules);
    ebb_lab_case_free(lab, &c);
    ebb_lab_free(lab);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(whatever_the_schedule_nothing_is_lost)};
    if (argc > 1) schedules = strtoull(argv[1], NULL, 10);
    if (argc > 2) seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
