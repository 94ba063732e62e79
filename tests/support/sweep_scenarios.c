/* The scenarios of the sweeps. Each uses a few things of the API in the ordinary way: it checks every
 * status, gives back what it holds and returns when it is told to; the stubborn ones say so. */
#include "kernel/layer.h"
#include "tests/support/sweep_world.h"

static const ebb_region nowhere = {0};
static const ebb_task_opts plain = {0};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static ebb_region home(const sweep_world *w) {
    return ebb_runtime_root(w->rt);
}

static ebb_status sleeper(ebb_cx *cx, sweep_actor *a) {
    return sweep_saw(a->w, ebb_sleep(cx, &a->nap, a->span), "sleep");
}

static ebb_task spawn_sleeper(ebb_cx *cx, sweep_world *w, ebb_region region, uint64_t span) {
    sweep_actor *a;
    ebb_task t = sweep_spawn(cx, w, region, "sleeper", sleeper, plain, &a);
    a->span = span;
    return t;
}

/* Waits for its region and passes on how that ended. */
static ebb_status join_region(ebb_cx *cx, sweep_actor *a) {
    return ebb_region_join(cx, a->region);
}

/* ---- sleeps --------------------------------------------------------------------------------------- */

static ebb_status napper(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    for (a->i = 0; a->i < 3; a->i++) {
        EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, (uint64_t)(a->number + 1) * 7 * EBB_MS));
        if (st != EBB_OK) return sweep_saw(a->w, st, "nap");
        EBB_YIELD(cx, a);
    }
    EBB_END(a);
}

static ebb_status masked_napper(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    (void)sweep_saw(a->w, ebb_mask(cx), "mask");
    EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, 30 * EBB_MS));
    (void)sweep_saw(a->w, st, "masked nap");
    (void)sweep_saw(a->w, ebb_unmask(cx), "unmask");
    if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
    EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, 30 * EBB_MS));
    return sweep_saw(a->w, st, "nap");
    EBB_END(a);
}

static void start_sleeps(sweep_world *w) {
    for (int i = 0; i < 3; i++) (void)sweep_spawn(w->host, w, home(w), "napper", napper, plain, NULL);
    (void)sweep_spawn(w->host, w, home(w), "masked napper", masked_napper, plain, NULL);
}

/* ---- channels ------------------------------------------------------------------------------------- */

static ebb_status producer(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    for (a->i = 0; a->i < 5; a->i++) {
        a->item = (uint32_t)(a->number * 100 + a->i);
        EBB_AWAIT(a, st, ebb_chan_send(cx, a->w->chan[0], &a->wait, &a->item));
        if (st != EBB_OK) return sweep_saw(a->w, st, "send");
        a->w->sent++;
    }
    EBB_END(a);
}

/* Reserves a place, takes its time, and sends or gives the place back. */
static ebb_status careful_producer(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    for (a->i = 0; a->i < 4; a->i++) {
        EBB_AWAIT(a, st, ebb_chan_reserve(cx, a->w->chan[0], &a->wait, &a->owed));
        if (st != EBB_OK) return sweep_saw(a->w, st, "reserve a place");
        EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, 3 * EBB_MS));
        if (st != EBB_OK || a->i == 2) {
            (void)sweep_saw(a->w, ebb_obligation_abort(cx, a->owed), "abort");
            if (st != EBB_OK) return sweep_saw(a->w, st, "nap");
            continue;
        }
        a->item = (uint32_t)a->i;
        st = ebb_chan_send_reserved(cx, a->w->chan[0], a->owed, &a->item);
        if (st == EBB_OK) a->w->sent++;
        if (st != EBB_OK) (void)ebb_obligation_abort(cx, a->owed);
        if (st != EBB_OK) return sweep_saw(a->w, st, "send");
    }
    EBB_END(a);
}

static ebb_status consumer(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    for (;;) {
        EBB_AWAIT(a, st, ebb_chan_recv(cx, a->w->chan[0], &a->wait, &a->item));
        if (st == EBB_ERR_CLOSED) return EBB_OK;
        if (st != EBB_OK) return sweep_saw(a->w, st, "receive");
        a->w->received++;
        EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, 1 * EBB_MS));
        if (st != EBB_OK) return sweep_saw(a->w, st, "nap");
    }
    EBB_END(a);
}

/* Opens a region for the producers, and closes the channel when they have ended. */
static ebb_status channel_owner(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    a->region = sweep_open(cx, a->w, (ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    for (a->i = 0; a->i < 2; a->i++) {
        (void)sweep_spawn(cx, a->w, a->region, "producer", producer, plain, NULL);
    }
    (void)sweep_spawn(cx, a->w, a->region, "careful producer", careful_producer, plain, NULL);
    EBB_AWAIT(a, st, join_region(cx, a));
    ebb_chan_close(cx, a->w->chan[0]);
    return sweep_saw(a->w, st, "join");
    EBB_END(a);
}

static void start_channels(sweep_world *w) {
    if (sweep_saw(w, ebb_chan_new(w->rt, 2, sizeof(uint32_t), &w->chan[0]), "channel") != EBB_OK) return;
    (void)sweep_spawn(w->host, w, home(w), "channel owner", channel_owner, plain, NULL);
    (void)sweep_spawn(w->host, w, home(w), "consumer", consumer, plain, NULL);
}

/* ---- semaphore ------------------------------------------------------------------------------------ */

static ebb_status visitor(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    for (a->i = 0; a->i < 2; a->i++) {
        EBB_AWAIT(a, st, ebb_sem_acquire(cx, &a->w->sem, &a->wait));
        if (st != EBB_OK) return sweep_saw(a->w, st, "acquire");
        EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, 2 * EBB_MS));
        ebb_sem_release(cx, &a->w->sem);
        if (st != EBB_OK) return sweep_saw(a->w, st, "nap");
    }
    EBB_END(a);
}

static void start_semaphore(sweep_world *w) {
    w->permits = 2;
    ebb_sem_init(&w->sem, w->permits);
    for (int i = 0; i < 5; i++) (void)sweep_spawn(w->host, w, home(w), "visitor", visitor, plain, NULL);
}

/* ---- nested regions ------------------------------------------------------------------------------- */

/* On each level a region with a sleeper and the next level. Cleans up in a cleanup scope, masked. */
static ebb_status level(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    if (a->item > 0) {
        sweep_actor *below;
        a->region = sweep_open(cx, a->w, (ebb_region_opts){0});
        (void)spawn_sleeper(cx, a->w, a->region, 20 * EBB_MS);
        (void)sweep_spawn(cx, a->w, a->region, "level", level, plain, &below);
        below->item = a->item - 1;
        EBB_AWAIT(a, st, join_region(cx, a));
    } else {
        EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, 50 * EBB_MS));
    }
    a->outcome = sweep_saw(a->w, st, "level");
    if (st != EBB_CANCELLED || !ebb_cancelled(cx)) return a->outcome;
    (void)sweep_saw(a->w, ebb_mask(cx), "mask");
    a->other_region = sweep_open(cx, a->w, (ebb_region_opts){.cleanup = true});
    (void)spawn_sleeper(cx, a->w, a->other_region, 10 * EBB_MS);
    EBB_AWAIT(a, st, ebb_region_join(cx, a->other_region));
    (void)sweep_saw(a->w, st, "join of the cleanup scope");
    (void)sweep_saw(a->w, ebb_unmask(cx), "unmask");
    return a->outcome;
    EBB_END(a);
}

static void start_nested(sweep_world *w) {
    sweep_actor *a;
    (void)sweep_spawn(w->host, w, home(w), "level", level, plain, &a);
    a->item = 3;
}

/* Returns while its regions are still open: they have to be cancelled and joined for it. */
static ebb_status careless(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    a->region = sweep_open(cx, a->w, (ebb_region_opts){0});
    a->other_region = sweep_open(cx, a->w, (ebb_region_opts){.parent = a->region});
    (void)spawn_sleeper(cx, a->w, a->region, EBB_SECOND);
    (void)sweep_spawn(cx, a->w, a->other_region, "masked napper", masked_napper, plain, NULL);
    EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, 5 * EBB_MS));
    return sweep_saw(a->w, st, "nap");
    EBB_END(a);
}

static void start_careless(sweep_world *w) {
    for (int i = 0; i < 2; i++) (void)sweep_spawn(w->host, w, home(w), "careless", careless, plain, NULL);
}

/* ---- finalizers ------------------------------------------------------------------------------------ */

static ebb_status slow_finalizer(ebb_cx *cx, sweep_actor *a) {
    return sweep_saw(a->w, ebb_sleep(cx, &a->nap, a->span), "finalizer");
}

static ebb_status scoped_finalizer(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    a->region = sweep_open(cx, a->w, (ebb_region_opts){.cleanup = true});
    (void)spawn_sleeper(cx, a->w, a->region, a->span);
    EBB_AWAIT(a, st, join_region(cx, a));
    return sweep_saw(a->w, st, "join");
    EBB_END(a);
}

static ebb_status deferring(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    (void)sweep_defer(cx, a->w, nowhere, "slow finalizer", slow_finalizer, 4 * EBB_MS);
    (void)sweep_defer(cx, a->w, nowhere, "scoped finalizer", scoped_finalizer, 6 * EBB_MS);
    EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, 15 * EBB_MS));
    return sweep_saw(a->w, st, "nap");
    EBB_END(a);
}

static ebb_status finalizers_owner(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    a->region = sweep_open(cx, a->w, (ebb_region_opts){0});
    (void)sweep_defer(cx, a->w, a->region, "slow finalizer", slow_finalizer, 3 * EBB_MS);
    (void)sweep_defer(cx, a->w, a->region, "scoped finalizer", scoped_finalizer, 5 * EBB_MS);
    (void)sweep_spawn(cx, a->w, a->region, "deferring", deferring, plain, NULL);
    EBB_AWAIT(a, st, join_region(cx, a));
    return sweep_saw(a->w, st, "join");
    EBB_END(a);
}

static void start_finalizers(sweep_world *w) {
    (void)sweep_defer(w->host, w, home(w), "slow finalizer", slow_finalizer, 2 * EBB_MS);
    (void)sweep_spawn(w->host, w, home(w), "deferring", deferring, plain, NULL);
    (void)sweep_spawn(w->host, w, home(w), "finalizers' owner", finalizers_owner, plain, NULL);
}

/* ---- kept tasks ------------------------------------------------------------------------------------ */

static ebb_status kept_owner(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    for (a->i = 0; a->i < 3; a->i++) {
        sweep_actor *kid;
        a->kid[a->i] =
            sweep_spawn(cx, a->w, ebb_cx_region(cx), "kept", sleeper, (ebb_task_opts){.keep = true}, &kid);
        kid->span = (uint64_t)(3 - a->i) * 4 * EBB_MS;
    }
    for (a->i = 0; a->i < 3; a->i++) {
        EBB_AWAIT(a, st, ebb_task_join(cx, a->kid[a->i]));
        if (st != EBB_OK) return sweep_saw(a->w, st, "join");
    }
    EBB_END(a);
}

static void start_kept(sweep_world *w) {
    (void)sweep_spawn(w->host, w, home(w), "kept owner", kept_owner, plain, NULL);
    (void)sweep_spawn(w->host, w, home(w), "kept, not joined", napper, (ebb_task_opts){.keep = true}, NULL);
}

/* ---- obligations ----------------------------------------------------------------------------------- */

static ebb_status holder(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    for (a->i = 0; a->i < 3; a->i++) {
        a->owed = sweep_reserve(cx, a->w, nowhere, (ebb_obligation_kind)(EBB_OBLIGATION_ACK + a->i));
        EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, 5 * EBB_MS));
        if (ebb_id_status(a->owed.id) != EBB_OK) return ebb_id_status(a->owed.id);
        if (st != EBB_OK || a->i == 1) {
            (void)sweep_saw(a->w, ebb_obligation_abort(cx, a->owed), "abort");
        } else {
            (void)sweep_commit(cx, a->w, a->owed);
        }
        if (st != EBB_OK) return sweep_saw(a->w, st, "nap");
    }
    EBB_END(a);
}

/* ---- discards --------------------------------------------------------------------------------------- */

static ebb_status one_item(ebb_cx *cx, sweep_actor *a) {
    return sweep_saw(a->w, ebb_chan_recv(cx, a->w->chan[0], &a->wait, &a->item), "receive");
}

/* A sleeper, one that waits for an item, one that owes something and refuses, and one that never ran. */
static ebb_status evicts(ebb_cx *cx, sweep_actor *a) {
    static const sweep_body bodies[] = {sleeper, one_item, holder, sleeper};
    static const int order[] = {0, 1, 3, 2};
    ebb_status st;
    EBB_BEGIN(a);
    for (a->i = 0; a->i < 4; a->i++) {
        sweep_actor *kid;
        if (a->i == 3) EBB_YIELD(cx, a);
        a->kid[a->i] = sweep_spawn(cx, a->w, ebb_cx_region(cx), "evicted", bodies[a->i],
                                   (ebb_task_opts){.keep = true}, &kid);
        kid->span = 9 * EBB_MS;
    }
    for (a->i = 0; a->i < 4; a->i++) {
        st = ebb__task_discard(cx, a->kid[order[a->i]]);
        if (st != EBB_ERR_OWES && st != EBB_ERR_STALE) (void)sweep_saw(a->w, st, "discard");
        EBB_AWAIT(a, st, ebb_task_join(cx, a->kid[order[a->i]]));
        if (st != EBB_OK && st != EBB_DISCARDED) return sweep_saw(a->w, st, "join");
    }
    EBB_END(a);
}

static void start_discards(sweep_world *w) {
    if (sweep_saw(w, ebb_chan_new(w->rt, 2, sizeof(uint32_t), &w->chan[0]), "channel") != EBB_OK) return;
    for (int i = 0; i < 2; i++) (void)sweep_spawn(w->host, w, home(w), "evicts", evicts, plain, NULL);
}

/* A region's own obligation, resolved by the region's finalizer. */
static ebb_status resolver(ebb_cx *cx, sweep_actor *a) {
    return sweep_commit(cx, a->w, a->owed);
}

static ebb_status transaction(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    a->region = sweep_open(cx, a->w, (ebb_region_opts){0});
    a->owed = sweep_reserve(cx, a->w, a->region, EBB_OBLIGATION_TRANSACTION);
    if (ebb_id_status(a->owed.id) == EBB_OK) {
        st = sweep_defer(cx, a->w, a->region, "resolver", resolver, 0);
        if (st == EBB_OK) a->w->actor[a->w->actors - 1].owed = a->owed;
        if (st != EBB_OK) (void)sweep_saw(a->w, ebb_obligation_abort(cx, a->owed), "abort");
    }
    (void)sweep_spawn(cx, a->w, a->region, "holder", holder, plain, NULL);
    EBB_AWAIT(a, st, join_region(cx, a));
    return sweep_saw(a->w, st, "join");
    EBB_END(a);
}

static void start_obligations(sweep_world *w) {
    (void)sweep_spawn(w->host, w, home(w), "holder", holder, plain, NULL);
    (void)sweep_spawn(w->host, w, home(w), "transaction", transaction, plain, NULL);
}

static ebb_status forgetful(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    (void)sweep_reserve(cx, a->w, nowhere, EBB_OBLIGATION_LEASE);
    (void)sweep_reserve(cx, a->w, ebb_cx_region(cx), EBB_OBLIGATION_IO);
    EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, 5 * EBB_MS));
    return sweep_saw(a->w, st, "nap");
    EBB_END(a);
}

static void start_leaks(sweep_world *w) {
    ebb_region r = sweep_open(w->host, w, (ebb_region_opts){.on_closed = sweep_note_closed});
    (void)sweep_spawn(w->host, w, r, "forgetful", forgetful, plain, NULL);
    (void)sweep_spawn(w->host, w, home(w), "holder", holder, plain, NULL);
    ebb_region_close(w->host, r);
}

/* ---- deadlines ------------------------------------------------------------------------------------- */

static ebb_status spinner(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    for (;;) {
        st = ebb_checkpoint(cx);
        if (st != EBB_OK) return sweep_saw(a->w, st, "spin");
        EBB_YIELD(cx, a);
    }
    EBB_END(a);
}

static ebb_status deadline_owner(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    a->region = sweep_open(cx, a->w, (ebb_region_opts){.deadline = ebb_now(cx) + 12 * EBB_MS});
    (void)spawn_sleeper(cx, a->w, a->region, EBB_SECOND);
    (void)sweep_spawn(cx, a->w, a->region, "masked napper", masked_napper, plain, NULL);
    EBB_AWAIT(a, st, join_region(cx, a));
    return sweep_saw(a->w, st, "join");
    EBB_END(a);
}

static void start_deadlines(sweep_world *w) {
    uint64_t now = ebb_now(w->host);
    sweep_actor *a;
    (void)sweep_spawn(w->host, w, home(w), "deadline owner", deadline_owner, plain, NULL);
    (void)sweep_spawn(w->host, w, home(w), "late", sleeper,
                      (ebb_task_opts){.deadline = now + 9 * EBB_MS, .priority = 3}, &a);
    a->span = EBB_SECOND;
    (void)sweep_spawn(w->host, w, home(w), "spinner", spinner, (ebb_task_opts){.polls = 6}, NULL);
    (void)sweep_spawn(w->host, w, home(w), "in time", napper, (ebb_task_opts){.deadline = now + EBB_SECOND},
                      NULL);
}

/* ---- failures -------------------------------------------------------------------------------------- */

static ebb_status failing(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    EBB_BEGIN(a);
    EBB_AWAIT(a, st, ebb_sleep(cx, &a->nap, 6 * EBB_MS));
    if (st != EBB_OK) return sweep_saw(a->w, st, "nap");
    return a->outcome;
    EBB_END(a);
}

static bool is_planned(ebb_status st) {
    return st == EBB_FAILED || st == EBB_FAULTED;
}

static ebb_status failures_owner(ebb_cx *cx, sweep_actor *a) {
    ebb_status st;
    sweep_actor *kid;
    EBB_BEGIN(a);
    a->region = sweep_open(cx, a->w, (ebb_region_opts){.policy = (ebb_failure_policy)a->item});
    (void)sweep_spawn(cx, a->w, a->region, "failing", failing, plain, &kid);
    kid->outcome = a->item == EBB_FAIL_COLLECT ? EBB_FAULTED : EBB_FAILED;
    (void)sweep_spawn(cx, a->w, a->region, "napper", napper, plain, NULL);
    (void)sweep_spawn(cx, a->w, a->region, "masked napper", masked_napper, plain, NULL);
    EBB_AWAIT(a, st, join_region(cx, a));
    return is_planned(st) ? EBB_OK : sweep_saw(a->w, st, "join");
    EBB_END(a);
}

static void start_failures(sweep_world *w) {
    for (uint32_t policy = EBB_FAIL_FAST; policy <= EBB_FAIL_COLLECT; policy++) {
        sweep_actor *a;
        (void)sweep_spawn(w->host, w, home(w), "failures' owner", failures_owner, plain, &a);
        a->item = policy;
    }
}

/* ---- on_closed ------------------------------------------------------------------------------------- */

static void start_notes(sweep_world *w) {
    for (int i = 0; i < 3; i++) {
        ebb_region r = sweep_open(w->host, w, (ebb_region_opts){.on_closed = sweep_note_closed});
        ebb_region inner =
            sweep_open(w->host, w, (ebb_region_opts){.parent = r, .on_closed = sweep_note_closed});
        (void)spawn_sleeper(w->host, w, r, 4 * EBB_MS);
        (void)sweep_spawn(w->host, w, inner, "napper", napper, plain, NULL);
        if (i != 1) ebb_region_close(w->host, inner);
        if (i != 1) ebb_region_close(w->host, r);
    }
}

/* ---- messages -------------------------------------------------------------------------------------- */

static ebb_status addressee(ebb_cx *cx, sweep_actor *a) {
    if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
    return a->i++ < 2 ? EBB_PENDING : EBB_OK;
}

static void start_messages(sweep_world *w) {
    ebb_region r = sweep_open(w->host, w, (ebb_region_opts){.on_closed = sweep_note_closed});
    (void)sweep_spawn(w->host, w, home(w), "addressee", addressee, plain, NULL);
    (void)sweep_spawn(w->host, w, r, "addressee", addressee, plain, NULL);
    (void)sweep_spawn(w->host, w, home(w), "addressee", addressee, plain, NULL);
}

static void receive_next(sweep_world *w) {
    if (w->tasks == 0 || w->regions == 0) {
        w->host_step = -1;
        return;
    }
    const ebb_msg mail[] = {
        {.verb = EBB_MSG_WAKE, .target = w->task[0].id},
        {.verb = EBB_MSG_WORD, .target = w->task[0].id, .word = 17},
        {.verb = EBB_MSG_CLOSE, .target = w->region[0].id, .to_region = true},
        {.verb = EBB_MSG_CANCEL,
         .kind = EBB_CANCEL_DISCONNECT,
         .target = w->region[0].id,
         .to_region = true,
         .message = "the peer is gone"},
        {.verb = EBB_MSG_CANCEL, .kind = EBB_CANCEL_LEASE_LOST, .target = w->task[w->tasks - 1].id},
        {.verb = EBB_MSG_FORCE, .target = w->region[0].id, .to_region = true},
        {.verb = EBB_MSG_WAKE, .target = w->task[0].id},
    };
    if (w->host_step == (int)LENGTH(mail)) {
        w->host_step = -1;
        return;
    }
    ebb_status st = ebb_msg_deliver(w->rt, &mail[w->host_step++]);
    if (st != EBB_ERR_STALE) (void)sweep_saw(w, st, "receive");
}

/* ---- many ------------------------------------------------------------------------------------------- */

static void start_many(sweep_world *w) {
    ebb_region r = sweep_open(w->host, w, (ebb_region_opts){.on_closed = sweep_note_closed});
    for (uint64_t i = 0; i < 40; i++) (void)spawn_sleeper(w->host, w, r, (i % 5 + 1) * EBB_MS);
    ebb_region_close(w->host, r);
}

/* ---- stubborn --------------------------------------------------------------------------------------- */

static ebb_status deaf(ebb_cx *cx, sweep_actor *a) {
    (void)cx;
    (void)a;
    return EBB_PENDING;
}

/* It acknowledges, so that its polls are counted, and goes on all the same. */
static ebb_status restless(ebb_cx *cx, sweep_actor *a) {
    (void)a;
    (void)ebb_checkpoint(cx);
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

static ebb_status deaf_with_obligations(ebb_cx *cx, sweep_actor *a) {
    if (a->i++ == 0) {
        (void)sweep_reserve(cx, a->w, nowhere, EBB_OBLIGATION_FENCE);
        (void)sweep_defer(cx, a->w, nowhere, "deaf finalizer", deaf, 0);
        (void)sweep_defer(cx, a->w, nowhere, "slow finalizer", slow_finalizer, 2 * EBB_MS);
    }
    return EBB_PENDING;
}

static ebb_status deaf_napper(ebb_cx *cx, sweep_actor *a) {
    ebb_status st = sweep_saw(a->w, ebb_sleep(cx, &a->nap, 40 * EBB_MS), "sleep");
    return st == EBB_OK ? EBB_OK : EBB_PENDING;
}

static void start_stubborn(sweep_world *w) {
    ebb_region r = sweep_open(w->host, w, (ebb_region_opts){.on_closed = sweep_note_closed});
    (void)sweep_spawn(w->host, w, r, "deaf", deaf, plain, NULL);
    (void)sweep_spawn(w->host, w, r, "deaf with obligations", deaf_with_obligations, plain, NULL);
    (void)sweep_spawn(w->host, w, home(w), "deaf napper", deaf_napper, plain, NULL);
    (void)sweep_spawn(w->host, w, r, "restless", restless, (ebb_task_opts){.polls = 20}, NULL);
    (void)sweep_defer(w->host, w, r, "deaf finalizer", deaf, 0);
}

const sweep_scenario sweep_scenarios[] = {
    {.name = "sleeps", .start = start_sleeps},
    {.name = "channels", .start = start_channels},
    {.name = "semaphore", .start = start_semaphore},
    {.name = "nested", .start = start_nested},
    {.name = "careless", .start = start_careless},
    {.name = "finalizers", .start = start_finalizers},
    {.name = "kept", .start = start_kept},
    {.name = "discards", .start = start_discards},
    {.name = "obligations", .start = start_obligations},
    {.name = "leaks", .start = start_leaks, .leaks = true},
    {.name = "deadlines", .start = start_deadlines},
    {.name = "failures", .start = start_failures},
    {.name = "notes", .start = start_notes},
    {.name = "messages", .start = start_messages, .at_time = receive_next},
    {.name = "many", .start = start_many},
    {.name = "stubborn", .start = start_stubborn, .leaks = true, .stubborn = true},
};
const size_t sweep_scenario_count = LENGTH(sweep_scenarios);
