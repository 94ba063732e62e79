/* A runtime is freed at any moment, in the lab, while another imports from it, has a region on it, sends to
 * it and receives from it, and it does the same. Whoever waits for it hears of its end; nothing is leaked. */
#include "tests/future/peer_lab.h"

/* The runtime that is freed is not the lab's: the scenario's steps run it. */
enum { STEPS = 14, FREED = 9 };

typedef struct doom doom;

/* A task of the runtime that lives on. All of them have to end by themselves. */
typedef struct survivor {
    doom *d;
    ebb_future *future;
    ebb_wait wait;
    ebb_value value;
} survivor;

struct doom {
    ebb_lab *lab;
    lab_peer peers[1];
    ebb_runtime *doomed;
    ebb_peer *there;
    ebb_failing memory;
    ebb_remote *to_import, *to_give;
    ebb_future *source; /* on the one that is freed */
    ebb_bridge *in, *out;
    survivor importer, parent, sender, receiver, giver;
    ebb_future *taken; /* by the doomed */
    ebb_wait sends, receives;
    uint32_t left; /* survivors that have not ended */
    bool orphan_began, orphan_ended;
};

static void ends(doom *d, ebb_status st) {
    if (st == EBB_CANCELLED) ebb_lab_fail(d->lab, "a survivor waited for ever");
    else if (st != EBB_OK && st != EBB_ERR_CLOSED) ebb_lab_fail(d->lab, ebb_status_name(st));
    d->left--;
}

/* ---- on the runtime that is freed ------------------------------------------------------------------------ */

static ebb_status far_body(ebb_cx *cx, void *state) {
    (void)state;
    if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
    return EBB_PENDING;
}

static ebb_status short_body(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_OK;
}

/* Waits for its parent, which goes away. */
static ebb_status orphan(ebb_cx *cx, void *state) {
    doom *d = state;
    d->orphan_began = true;
    if (ebb_checkpoint(cx) == EBB_OK) return EBB_PENDING;
    ebb_task_info info;
    (void)ebb_task_info_of(cx, ebb_cx_task(cx), &info);
    if (info.reason.kind != EBB_CANCEL_DISCONNECT) ebb_lab_fail(d->lab, "an orphan was told another reason");
    d->orphan_ended = true;
    return EBB_CANCELLED;
}

static ebb_status doomed_task(ebb_cx *cx, void *state) {
    doom *d = state;
    uint64_t item = 1;
    ebb_status st = EBB_OK;
    if (d->taken == NULL) {
        d->taken = ebb_remote_import(cx, d->to_give);
        d->to_give = NULL;
        ebb_future_drop(ebb_peer_run(cx, d->peers[0].peer, orphan, d));
    }
    if (ebb_lab_choose(d->lab, 4) == 1 && d->source != NULL) {
        (void)ebb_promise_settle(d->source, ebb_value_int(7));
        d->source = NULL;
    }
    for (int i = 0; i < 2 && st == EBB_OK; i++) st = ebb_bridge_send(cx, d->in, &d->sends, &item);
    st = ebb_bridge_recv(cx, d->out, &d->receives, &item);
    if (st == EBB_OK) (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

static void free_it(doom *d) {
    ebb_runtime_free(d->doomed);
    d->doomed = NULL;
}

static void doom_step(ebb_lab *lab, uint32_t n) {
    doom *d = ebb_lab_state(lab);
    uint32_t what = ebb_lab_choose(lab, 4);
    if (d->doomed == NULL) return;
    if (n + 1 == STEPS || what == 3) {
        free_it(d);
        return;
    }
    if (what != 2) ebb_inbox_receive(d->doomed);
    if (what != 1) (void)ebb_runtime_pump(d->doomed, 1 + ebb_lab_choose(lab, 3));
}

/* ---- on the one that lives on ------------------------------------------------------------------------------ */

static ebb_status await_it(ebb_cx *cx, void *state) {
    survivor *s = state;
    ebb_status st = ebb_await(cx, s->future, &s->value);
    if (st == EBB_PENDING) return st;
    ends(s->d, st);
    return EBB_OK;
}

static ebb_status import_it(ebb_cx *cx, void *state) {
    survivor *s = state;
    if (s->future == NULL) {
        s->future = ebb_remote_import(cx, s->d->to_import);
        s->d->to_import = NULL;
    }
    return await_it(cx, s);
}

static ebb_status be_parent(ebb_cx *cx, void *state) {
    survivor *s = state;
    if (s->future == NULL) {
        s->future = ebb_peer_run(cx, s->d->there, ebb_lab_choose(s->d->lab, 2) ? far_body : short_body, NULL);
    }
    return await_it(cx, s);
}

/* What the other imports is cancelled with it, so this one is not told that it is closed. */
static ebb_status give(ebb_cx *cx, void *state) {
    survivor *s = state;
    ebb_status st = ebb_await(cx, s->future, &s->value);
    if (st == EBB_PENDING) return st;
    if (st != EBB_CANCELLED) ebb_lab_fail(s->d->lab, "what was imported ended in another way");
    s->d->left--;
    return EBB_OK;
}

static ebb_status send_on(ebb_cx *cx, void *state) {
    survivor *s = state;
    uint64_t item = 2;
    ebb_status st;
    while ((st = ebb_bridge_send(cx, s->d->out, &s->wait, &item)) == EBB_OK) continue;
    if (st != EBB_PENDING) ends(s->d, st);
    return st == EBB_PENDING ? st : EBB_OK;
}

static ebb_status receive_on(ebb_cx *cx, void *state) {
    survivor *s = state;
    uint64_t item = 0;
    ebb_status st;
    while ((st = ebb_bridge_recv(cx, s->d->in, &s->wait, &item)) == EBB_OK) {
        if (item != 1) ebb_lab_fail(s->d->lab, "another item came");
    }
    if (st != EBB_PENDING) ends(s->d, st);
    return st == EBB_PENDING ? st : EBB_OK;
}

static ebb_status start_doomed(doom *d) {
    ebb_cx *host = ebb_runtime_host(d->doomed);
    ebb_status st = ebb_peer_of(d->doomed, &d->there);
    if (st != EBB_OK) return st;
    d->source = ebb_promise_new(host, NULL, NULL);
    st = ebb_remote_new(d->source, &d->to_import);
    if (st == EBB_OK) st = ebb_bridge_new(d->there, d->peers[0].peer, 2, sizeof(uint64_t), &d->in);
    if (st == EBB_OK) st = ebb_bridge_new(d->peers[0].peer, d->there, 2, sizeof(uint64_t), &d->out);
    if (st != EBB_OK) return st;
    return ebb_id_status(ebb_spawn(host, ebb_runtime_root(d->doomed), doomed_task, d).id);
}

static ebb_status doom_setup(ebb_lab *lab) {
    doom *d = ebb_lab_state(lab);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    d->lab = lab;
    d->memory.inner = ebb_libc_allocator();
    const ebb_runtime_opts opts = {.allocator = ebb_failing_allocator(&d->memory), .runtime_id = FREED};
    ebb_status st = lab_peers(lab, d->peers, 1);
    if (st == EBB_OK) st = ebb_runtime_new(&opts, &d->doomed);
    if (st == EBB_OK) st = start_doomed(d);
    d->giver.future = ebb_promise_new(host, NULL, NULL);
    if (st == EBB_OK) st = ebb_remote_new(d->giver.future, &d->to_give);
    struct {
        survivor *s;
        ebb_poll_fn poll;
    } all[] = {{&d->importer, import_it},
               {&d->parent, be_parent},
               {&d->giver, give},
               {&d->sender, send_on},
               {&d->receiver, receive_on}};
    for (size_t i = 0; i < sizeof all / sizeof all[0] && st == EBB_OK; i++) {
        all[i].s->d = d;
        d->left++;
        st = ebb_id_status(ebb_spawn(host, ebb_lab_region(lab, 0), all[i].poll, all[i].s).id);
    }
    return st;
}

static void doom_check(ebb_lab *lab) {
    doom *d = ebb_lab_state(lab);
    if (d->orphan_began && !d->orphan_ended) ebb_lab_fail(lab, "an orphan was not cancelled");
}

/* Of what the doomed one has allocated, bridges may still be there: the last side frees them. */
static void doom_teardown(ebb_lab *lab) {
    doom *d = ebb_lab_state(lab);
    if (d->doomed != NULL) free_it(d);
    ebb_remote_release(d->to_import);
    ebb_remote_release(d->to_give);
    ebb_bridge_release(d->in);
    ebb_bridge_release(d->out);
    ebb_peer_release(d->there);
    lab_peers_release(d->peers, 1);
    ebb_inbox_receive(ebb_lab_runtime(lab, 0));
    if (d->memory.live != 0) ebb_lab_fail(lab, "something of the freed runtime was leaked");
}

static const ebb_lab_scenario scenario = {.name = "freed",
                                          .about =
                                              "a runtime is freed while another waits for it in every way",
                                          .runtimes = 1,
                                          .steps = STEPS,
                                          .state_size = sizeof(doom),
                                          .setup = doom_setup,
                                          .step = doom_step,
                                          .received = lab_take_in,
                                          .check = doom_check,
                                          .teardown = doom_teardown};

static void whoever_waits_for_a_freed_runtime_hears_of_it(void **state) {
    (void)state;
    lab_explore(&scenario, 12000, 10, 12000, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_waits_for_a_freed_runtime_hears_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
