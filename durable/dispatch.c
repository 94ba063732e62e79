/* Turns: instances are fetched, each gets a fiber that feeds its run and commits what it has asked for. */
#include "durable/worker.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "durable/run.h"

enum { POISONED_AT = 10 }; /* claims of an instance without an end, after which it is suspended */
#define RETRY_PAUSE (100 * EBB_MS)

/* One claim. The item points into `fetched`, which the turns of one fetch share. */
typedef struct fetched {
    ebb_provider_fetch_turns_call *call;
    uint32_t uses;
} fetched;

/* Of work that a turn makes: it is claimed for this worker, which keeps a place for it until the commit is known. */
typedef struct place {
    ebb_provider_token token; /* 0: it is not claimed */
    ebb__registered_activity *of;
} place;

typedef struct turn {
    ebb_worker *worker;
    fetched *from; /* NULL: the turn was not fetched, but takes ends of activities that ran here */
    ebb_provider_turn_item own; /* without `from` */
    ebb__ended ended;           /* what it takes */
    const ebb_provider_turn_item *item;
    ebb__hot *hot;
    bool alone;
    place *places; /* in the order of the ack's work; NULL: nothing starts here */
    size_t places_n;
} turn;

static void unuse(fetched *f, const ebb_allocator *a) {
    if (--f->uses > 0) return;
    ebb__call_free(&f->call->call);
    ebb__free(a, f, sizeof *f);
}

/* ---- ends without a commit --------------------------------------------------------------------------------------- */

/* A claim could not be given back: only a new node ends it. */
static void claim_stays(ebb_worker *w, ebb_status st) {
    if (st == EBB_OK || st == EBB_CANCELLED) return;
    w->turns_unknown = true;
    ebb__worker_wake(w, &w->main);
}

static void abandon(ebb_cx *cx, ebb_worker *w, ebb_provider_token token) {
    ebb_status st = EBB_ERR_NOMEM;
    if (w->left) return;
    ebb_provider_abandon_turns_call *c = ebb__call_new(w->gate, EBB_PROVIDER_ABANDON_TURNS);
    if (c == NULL) {
        claim_stays(w, st);
        return;
    }
    ebb_provider_token *copy = ebb__call_room(&c->call, sizeof *copy);
    if (copy != NULL) *copy = token;
    c->node = w->turn_node.node;
    c->tokens = copy;
    c->tokens_n = copy != NULL;
    c = ebb__worker_insist(cx, w, &c->call, &st);
    if (c != NULL) ebb__call_free(&c->call);
    claim_stays(w, st);
}

static void suspend(ebb_cx *cx, turn *t, const char *why) {
    ebb_worker *w = t->worker;
    ebb_status st = EBB_ERR_NOMEM;
    ebb_provider_mark_call *c = ebb__call_new(w->gate, EBB_PROVIDER_MARK);
    if (c != NULL) {
        c->key = t->item->key;
        c->execution = t->item->execution;
        c->turn = t->item->turn;
        c->state = EBB_INSTANCE_SUSPENDED;
        c->text = ebb__call_text(&c->call, why);
        c = ebb__worker_insist(cx, w, &c->call, &st);
    }
    if (c != NULL) ebb__call_free(&c->call);
    claim_stays(w, st);
    if (st != EBB_OK) return;
    w->stats.suspended++;
    ebb__worker_log(w, EBB_DURABLE_ERROR, t->item->id, "suspended: %s", why);
}

static bool is_for_good(ebb_status st) {
    return st == EBB_ERR_NONDETERMINISM || st == EBB_ERR_LIMIT || st == EBB_ERR_CORRUPT ||
           st == EBB_ERR_VERSION;
}

/* Another has run the turn, or the work that it would end is another's. */
static bool was_late(ebb_status st) {
    return st == EBB_ERR_FENCED || st == EBB_ERR_GONE;
}

/* `st` is why the turn could not be committed. */
static void give_up(ebb_cx *cx, turn *t, ebb_status st, const ebb__orch_run *of) {
    char why[700];
    if (st == EBB_CANCELLED) return; /* the claim ends with the node */
    if (!is_for_good(st)) {
        ebb_sleeper pause = {0};
        if (!was_late(st)) (void)ebb_sleep(cx, &pause, RETRY_PAUSE);
        abandon(cx, t->worker, t->item->token);
        return;
    }
    const char *difference = of != NULL ? ebb__orch_run_difference(of) : "";
    (void)snprintf(why, sizeof why, "%s%s",
                   of != NULL && ebb__orch_run_is_exact(of) ? "a second run differs: " : "",
                   *difference != 0 ? difference : ebb_durable_error());
    suspend(cx, t, why);
}

/* ---- the ack ---------------------------------------------------------------------------------------------------------- */

static void copy_outgoing(ebb_provider_call *c, ebb_provider_outgoing *o) {
    o->id = ebb__call_text(c, o->id);
    o->body = ebb__call_blob(c, o->body);
    o->name = ebb__call_text(c, o->name);
    o->input = ebb__call_blob(c, o->input);
    o->exists = ebb__call_blob(c, o->exists);
}

static void *copy_array(ebb_provider_call *c, const void *at, size_t n, size_t size) {
    void *to = n != 0 ? ebb__call_room(c, n * size) : NULL;
    if (to != NULL) memcpy(to, at, n * size);
    return to;
}

static const ebb_blob *copy_one(ebb_provider_call *c, const ebb_blob *b) {
    ebb_blob *to = b != NULL ? ebb__call_room(c, sizeof *to) : NULL;
    if (to != NULL) *to = ebb__call_blob(c, *b);
    return to;
}

/* The call may outlive the run: a forced worker waits for no store. */
static void copy_ack(ebb_provider_ack_turn_call *a, const place *places) {
    ebb_provider_call *c = &a->call;
    ebb_provider_work *work = copy_array(c, a->work, a->work_n, sizeof *work);
    ebb_provider_outgoing *outgoing = copy_array(c, a->outgoing, a->outgoing_n, sizeof *outgoing);
    ebb_provider_value *values = copy_array(c, a->values, a->values_n, sizeof *values);
    for (size_t i = 0; work != NULL && i < a->work_n; i++) {
        work[i].queue = ebb__call_text(c, work[i].queue);
        work[i].session = ebb__call_text(c, work[i].session);
        work[i].name = ebb__call_text(c, work[i].name);
        work[i].input = ebb__call_blob(c, work[i].input);
        if (places != NULL) work[i].token = places[i].token;
    }
    for (size_t i = 0; outgoing != NULL && i < a->outgoing_n; i++) copy_outgoing(c, &outgoing[i]);
    for (size_t i = 0; values != NULL && i < a->values_n; i++) {
        values[i].key = ebb__call_text(c, values[i].key);
        values[i].value = ebb__call_blob(c, values[i].value);
    }
    a->work = work;
    a->outgoing = outgoing;
    a->values = values;
    a->timers = copy_array(c, a->timers, a->timers_n, sizeof *a->timers);
    a->cancelled = copy_array(c, a->cancelled, a->cancelled_n, sizeof *a->cancelled);
    a->timers_cancelled =
        copy_array(c, a->timers_cancelled, a->timers_cancelled_n, sizeof *a->timers_cancelled);
    a->body = ebb__call_blob(c, a->body);
    a->result = ebb__call_blob(c, a->result);
    a->next_input = ebb__call_blob(c, a->next_input);
    a->name = ebb__call_text(c, a->name);
    a->text = ebb__call_text(c, a->text);
    a->custom = copy_one(c, a->custom);
    a->next = copy_one(c, a->next);
}

/* Work for which this worker has a free place is made as claimed, and starts without a fetch. */
static void claim_here(turn *t, const ebb_provider_ack_turn_call *a) {
    ebb_worker *w = t->worker;
    if (a->work_n == 0 || w->closing || w->work_alone || a->all_work || a->node.id == 0) return;
    t->places = ebb__alloc(&w->allocator, a->work_n * sizeof *t->places);
    if (t->places == NULL) return;
    memset(t->places, 0, a->work_n * sizeof *t->places);
    t->places_n = a->work_n;
    for (size_t i = 0; i < a->work_n; i++) {
        const ebb_provider_work *work = &a->work[i];
        ebb__registered_activity *r = ebb__handler_of(w, work->queue, strlen(work->queue));
        if (r == NULL || *work->session != 0 || !ebb__worker_has_place(w, r)) continue;
        t->places[i] = (place){ebb__token_new(ebb__store_host(w->store)), r};
        r->running++;
        w->stats.running++;
    }
}

/* The messages it was fetched with, or the work whose ends it takes. */
static void put_inputs(const turn *t, ebb_provider_ack_turn_call *a) {
    const size_t n = t->item->messages_n;
    ebb_provider_message_key *acked = NULL;
    ebb_provider_work_done *done = NULL;
    if (t->from != NULL) a->acked = acked = ebb__call_room(&a->call, n * sizeof *acked);
    else a->done = done = ebb__call_room(&a->call, n * sizeof *done);
    for (size_t i = 0; acked != NULL && i < n; i++) acked[i] = t->item->messages[i].at;
    a->acked_n = acked != NULL ? n : 0;
    for (const ebb_activity *x = t->ended.first; done != NULL && x != NULL; x = x->next_ended)
        done[a->done_n++] = (ebb_provider_work_done){x->execution, x->number, x->token};
}

static ebb_provider_ack_turn_call *ack_call(ebb_cx *cx, turn *t, ebb_status *st) {
    ebb_worker *w = t->worker;
    (void)cx;
    ebb_provider_ack_turn_call *a = ebb__call_new(w->gate, EBB_PROVIDER_ACK_TURN);
    *st = a != NULL ? ebb__orch_run_commit(t->hot->run, a) : EBB_ERR_NOMEM;
    if (*st != EBB_OK) return a;
    a->node = w->work_node.node; /* that of the work it claims */
    a->token = t->item->token;
    a->ack_id = ebb__token_new(ebb__store_host(w->store));
    a->lease = w->opts.lease;
    a->keep = w->opts.cache > 0 && !w->closing && !ebb__orch_run_has_ended(t->hot->run);
    put_inputs(t, a);
    return a;
}

/* ---- after the commit ------------------------------------------------------------------------------------------------------ */

static void give_place_back(ebb_worker *w, const place *p) {
    p->of->running--;
    w->stats.running--;
}

/* It was not committed, or nobody knows; others may have the places. */
static void start_nothing(turn *t) {
    ebb_worker *w = t->worker;
    for (size_t i = 0; i < t->places_n; i++)
        if (t->places[i].of != NULL) give_place_back(w, &t->places[i]);
    if (t->places_n == 0) return;
    w->look_for_work = true;
    ebb__worker_wake(w, &w->claimer);
}

static void start_here(ebb_cx *cx, turn *t, const ebb_provider_ack_turn_call *a) {
    ebb_worker *w = t->worker;
    for (size_t i = 0; i < t->places_n; i++) {
        const ebb_provider_work *work = &a->work[i];
        const place *p = &t->places[i];
        if (p->of == NULL) continue;
        give_place_back(w, p);
        const ebb_provider_work_item item = {.token = p->token,
                                             .key = a->key,
                                             .id = t->hot->id,
                                             .execution = a->execution,
                                             .activity = work->activity,
                                             .name = work->name,
                                             .attempt = work->attempt,
                                             .attempts = 1,
                                             .input = work->input};
        ebb__activity_start(cx, w, p->of, &item);
    }
}

/* Those of this worker are requested to cancel now; the hint comes too late to matter. */
static void cancel_here(const turn *t, const ebb_provider_ack_turn_call *a) {
    ebb_worker *w = t->worker;
    for (size_t i = 0; i < a->cancelled_n; i++) {
        ebb_activity *of = ebb__activity_find(w, a->key, a->execution, a->cancelled[i].activity);
        if (of != NULL)
            ebb__activity_cancel(of, a->cancelled[i].cause, "its orchestration does not need it any more");
    }
    if (!a->all_work) return;
    for (ebb_activity *of = w->activities; of != NULL; of = of->next) {
        if (of->key == a->key && of->execution == a->execution)
            ebb__activity_cancel(of, a->cause, "its orchestration has ended");
    }
}

/* One whose commit failed otherwise is fenced as well: nothing of it counts. */
static void note_ended(const turn *t, const ebb_provider_ack_turn_call *a, ebb_status st) {
    ebb_runtime *rt = t->worker->rt;
    ebb__note_event(rt, st == EBB_OK ? EBB_EV_DURABLE_TURN_COMMITTED : EBB_EV_DURABLE_TURN_FENCED,
                    .task = t->hot->task.id, .other = ebb__instance_name(a->key, a->turn),
                    .value = ebb__orch_run_actions(t->hot->run));
    if (st == EBB_OK && ebb__orch_run_has_ended(t->hot->run))
        ebb__note_event(rt, EBB_EV_DURABLE_INSTANCE_ENDED, .other = ebb__instance_name(a->key, 0));
}

static void commit_ended(ebb_cx *cx, turn *t, const ebb_provider_ack_turn_call *a, ebb_status st) {
    ebb_worker *w = t->worker;
    note_ended(t, a, st);
    t->hot->token = st == EBB_OK && a->keep ? t->item->token : (ebb_provider_token){0, 0};
    if (st == EBB_OK) {
        w->stats.turns++;
        ebb__ended_settle(&t->ended, true);
        cancel_here(t, a);
        start_here(cx, t, a);
        return;
    }
    start_nothing(t);
    if (was_late(st)) w->stats.fenced++;
    else
        ebb__worker_log(w, EBB_DURABLE_ERROR, t->hot->id, "turn %llu was not committed: %s",
                        (unsigned long long)a->turn, a->call.text);
}

static ebb_status commit(ebb_cx *cx, turn *t) {
    ebb_worker *w = t->worker;
    ebb_status st;
    ebb_provider_ack_turn_call *a = ack_call(cx, t, &st);
    if (st == EBB_OK && t->hot->shadow != NULL) st = ebb__double_run(cx, t->hot, a);
    if (st != EBB_OK) {
        if (a != NULL) ebb__call_free(&a->call);
        return st;
    }
    claim_here(t, a);
    copy_ack(a, t->places);
    a = ebb__worker_insist(cx, w, &a->call, &st);
    if (a != NULL) commit_ended(cx, t, a, st);
    else start_nothing(t);
    if (a != NULL) ebb__call_free(&a->call);
    ebb__free(&w->allocator, t->places, t->places_n * sizeof *t->places);
    return st;
}

/* ---- one turn ------------------------------------------------------------------------------------------------------------------ */

const ebb__registered_orch *ebb__orch_of(const ebb_worker *w, const char *name, uint32_t version) {
    const ebb__registered_orch *best = NULL;
    for (size_t i = 0; i < w->orchs_n; i++) {
        const ebb__registered_orch *o = &w->orchs[i];
        if (strcmp(o->name, name) != 0 || (version != 0 && o->version != version)) continue;
        if (best == NULL || o->version > best->version) best = o;
    }
    return best;
}

static bool is_hot(const turn *t) {
    const ebb__hot *h = t->hot;
    return h->run != NULL && h->execution == t->item->execution &&
           ebb__orch_run_turns(h->run) == t->item->turn;
}

/* A run that has seen all turns that are committed. */
static ebb_status warm(ebb_cx *cx, turn *t, const ebb__registered_orch *of) {
    ebb__hot *h = t->hot;
    if (is_hot(t)) return EBB_OK;
    ebb__hot_discard(cx, h);
    h->execution = t->item->execution;
    h->name = of->name;
    h->version = of->version;
    h->run = ebb__hot_run_new(cx, h, of, false);
    if (h->run == NULL) return EBB_ERR_NOMEM;
    if (t->item->turn > 0) t->worker->stats.replays++;
    return ebb__hot_replay(cx, h, h->run, t->item->turn);
}

/* Before the turn, so that the code of both runs sees the same memory around it. */
static ebb_status make_shadow(ebb_cx *cx, turn *t, const ebb__registered_orch *of) {
    const uint32_t every = t->worker->opts.double_run;
    ebb__hot *h = t->hot;
    if (every == 0 || (t->item->turn + 1) % every != 0) return EBB_OK;
    if (h->shadow == NULL) h->shadow = ebb__hot_run_new(cx, h, of, true);
    return h->shadow != NULL ? EBB_OK : EBB_ERR_NOMEM;
}

static void note_begun(const turn *t) {
    const ebb_provider_turn_item *item = t->item;
    ebb_runtime *rt = t->worker->rt;
    const uint64_t name = ebb__instance_name(item->key, item->turn + 1);
    if (item->turn == 0)
        ebb__note_event(rt, EBB_EV_DURABLE_INSTANCE_STARTED, .other = ebb__instance_name(item->key, 0),
                        .value = (uint32_t)item->execution, .text = item->id);
    ebb__note_event(rt, EBB_EV_DURABLE_TURN_BEGUN, .task = t->hot->task.id, .other = name,
                    .value = (uint32_t)item->messages_n, .text = item->id);
}

static ebb_status take_turn(ebb_cx *cx, turn *t) {
    ebb__hot *h = t->hot;
    const ebb_provider_turn_item *item = t->item;
    const ebb__registered_orch *of = ebb__orch_of(t->worker, item->name, item->version);
    if (of == NULL) return EBB_ERR_UNAVAILABLE; /* the store has given what was not asked for */
    ebb_status st = warm(cx, t, of);
    if (st == EBB_OK) st = make_shadow(cx, t, of);
    if (st != EBB_OK) return st;
    const uint64_t now = t->worker->clock + (ebb_now(cx) - t->worker->clock_at);
    h->parked = false;
    note_begun(t);
    st =
        ebb__hot_parked(cx, h, h->run, ebb__orch_run_turn(cx, h->run, now, item->messages, item->messages_n));
    return st == EBB_OK ? commit(cx, t) : st;
}

static void poisoned(ebb_cx *cx, turn *t) {
    char why[160];
    (void)snprintf(why, sizeof why, "poisoned: its turn %llu was claimed %u times without an end (%d)",
                   (unsigned long long)t->item->turn + 1, t->item->attempts, POISONED_AT);
    suspend(cx, t, why);
}

static void turn_over(ebb_cx *cx, turn *t) {
    ebb_worker *w = t->worker;
    ebb__hot *h = t->hot;
    while (!ebb__token_is_none(h->later)) { /* while one is given back, another may come */
        const ebb_provider_token later = h->later;
        h->later = (ebb_provider_token){0, 0};
        abandon(cx, w, later);
    }
    h->task.id = 0;
    if (w->opts.double_run != 1 && h->shadow != NULL) {
        ebb__orch_run_free(cx, h->shadow);
        h->shadow = NULL;
    }
    const bool goes_on = h->run != NULL && !ebb__orch_run_has_ended(h->run) && !ebb__token_is_none(h->token);
    ebb__ended_settle(&t->ended, false);
    ebb__ended_put_back(h);
    if (goes_on && !w->left) ebb__hot_idle(cx, h);
    else ebb__hot_free(cx, h);
    w->look_for_turns |= t->from != NULL || w->turns == w->opts.turns;
    if (t->from != NULL) unuse(t->from, &w->allocator);
    w->turns--;
    if (t->alone) w->turns_alone = false;
    ebb__worker_wake(w, &w->dispatcher);
    ebb__worker_wake(w, &w->main);
    ebb__free(&w->allocator, t, sizeof *t);
}

static ebb_status turn_body(ebb_cx *cx, void *arg) {
    turn *t = arg;
    ebb__hot *h = t->hot;
    ebb_status st = EBB_OK;
    if (t->item->attempts > POISONED_AT) poisoned(cx, t);
    else st = take_turn(cx, t);
    if (t->item->attempts > POISONED_AT || st != EBB_OK) {
        const bool doubled = h->shadow != NULL && ebb__orch_run_outcome(h->shadow) != EBB_OK;
        h->token = (ebb_provider_token){0, 0};
        if (st != EBB_OK) give_up(cx, t, st, doubled ? h->shadow : h->run);
        ebb__hot_discard(cx, h);
    }
    turn_over(cx, t);
    return EBB_OK;
}

/* ---- the dispatcher --------------------------------------------------------------------------------------------------------------- */

/* The item is given back if there is no memory for its turn. */
static void dispatch(ebb_cx *cx, ebb_worker *w, fetched *f, const ebb_provider_turn_item *item, bool alone) {
    ebb__hot *h = ebb__hot_find(w, item->key);
    if (h != NULL &&
        h->task.id != 0) { /* the lease was lost while its turn was on the way, and is had again */
        h->later = item->token;
        return;
    }
    turn *t = ebb__alloc(&w->allocator, sizeof *t);
    h = t != NULL ? ebb__hot_of(w, item) : NULL;
    if (h == NULL) {
        ebb__free(&w->allocator, t, sizeof *t);
        abandon(cx, w, item->token);
        return;
    }
    *t = (turn){.worker = w, .from = f, .item = item, .hot = h, .alone = alone};
    ebb__hot_take(h);
    h->token = item->token;
    f->uses++;
    w->turns++;
    w->turns_alone |= alone;
    h->task = ebb_fiber_spawn(cx, w->unit, turn_body, t);
    if (ebb_id_status(h->task.id) == EBB_OK) return;
    abandon(cx, w, item->token);
    ebb__hot_discard(cx, h);
    turn_over(cx, t);
}

static void ended_message(const ebb_activity *a, ebb_provider_message *to) {
    *to = (ebb_provider_message){.at = {EBB_PROVIDER_MESSAGE_ACTIVITY, 0},
                                 .execution = a->execution,
                                 .step = a->number,
                                 .body = a->message};
}

/* As if they had been fetched. The list of messages is of the first activity, which waits for the turn. */
static bool put_own(turn *t) {
    const ebb__hot *h = t->hot;
    size_t n, i = 0;
    t->ended = ebb__ended_take(t->hot, EBB_DURABLE_BATCH, &n);
    ebb_provider_message *messages = ebb_activity_alloc(t->ended.first, n * sizeof *messages);
    t->own = (ebb_provider_turn_item){.token = h->token,
                                      .key = h->key,
                                      .id = h->id,
                                      .name = h->name,
                                      .version = h->version,
                                      .execution = h->execution,
                                      .turn = ebb__orch_run_turns(h->run),
                                      .attempts = 1,
                                      .messages = messages,
                                      .messages_n = n};
    for (const ebb_activity *a = t->ended.first; messages != NULL && a != NULL; a = a->next_ended)
        ended_message(a, &messages[i++]);
    return messages != NULL;
}

/* An instance that is idle, and has ends of activities. Without memory they are acked. */
static void dispatch_ended(ebb_cx *cx, ebb_worker *w, ebb__hot *h) {
    turn *t = ebb__alloc(&w->allocator, sizeof *t);
    if (t == NULL) {
        ebb__ended_settle(&h->ended, false);
        return;
    }
    *t = (turn){.worker = w, .hot = h};
    t->item = &t->own;
    ebb__hot_take(h);
    w->turns++;
    if (put_own(t)) h->task = ebb_fiber_spawn(cx, w->unit, turn_body, t);
    if (h->task.id != 0 && ebb_id_status(h->task.id) == EBB_OK) return;
    turn_over(cx, t);
}

static void dispatch_all_ended(ebb_cx *cx, ebb_worker *w) {
    if (w->ended.first == NULL || w->turns >= w->opts.turns) return;
    for (ebb__hot *h = ebb__ended_gather(w), *next; h != NULL; h = next) {
        next = h->next_ended;
        if (w->turns < w->opts.turns) dispatch_ended(cx, w, h);
        else ebb__ended_put_back(h);
    }
}

static ebb_provider_fetch_turns_call *fetch_call(ebb_worker *w) {
    ebb_provider_fetch_turns_call *c = ebb__call_new(w->gate, EBB_PROVIDER_FETCH_TURNS);
    if (c == NULL) return NULL;
    c->node = w->turn_node.node;
    c->most = w->opts.turns - w->turns;
    c->messages = EBB_DURABLE_BATCH;
    c->suspects = w->turn_suspects && w->turns == 0;
    if (!w->closing) return c;
    c->only_n = ebb__store_awaited(w->store, &c->call, &c->only);
    if (c->only_n != 0) return c;
    ebb__call_free(&c->call);
    return NULL;
}

/* Returns when to look again. A failure: not before `*pause`, either. */
static uint64_t look(ebb_cx *cx, ebb_worker *w, uint64_t *pause) {
    ebb_status st = EBB_ERR_NOMEM;
    const uint64_t later = ebb_now(cx) + EBB_SECOND;
    *pause = ebb_now(cx) + RETRY_PAUSE;
    fetched *f = ebb__alloc(&w->allocator, sizeof *f);
    ebb_provider_fetch_turns_call *c = f != NULL ? fetch_call(w) : NULL;
    if (c != NULL) c = ebb__worker_ask(cx, &c->call, &st);
    if (c == NULL || st != EBB_OK) {
        if (c != NULL) ebb__call_free(&c->call);
        ebb__free(&w->allocator, f, sizeof *f);
        if (st == EBB_CANCELLED) return later;
        w->stats.retried++;
        if (st != EBB_ERR_UNAVAILABLE) return later;
        w->turns_unknown = true; /* claims that nobody knows: a new node */
        ebb__worker_wake(w, &w->main);
        return later;
    }
    *pause = 0;
    *f = (fetched){c, 1};
    w->clock = c->now;
    w->clock_at = ebb_now(cx);
    const bool alone = c->suspects && c->items_n == 1 && c->items[0].attempts > 1;
    w->turn_suspects = c->suspects_wait && !c->suspects;
    if (w->turn_suspects || c->items_n == c->most) w->look_for_turns = true;
    for (size_t i = 0; i < c->items_n; i++) dispatch(cx, w, f, &c->items[i], alone);
    const uint64_t again = ebb__worker_again(cx, w, c->again);
    unuse(f, &w->allocator);
    return again;
}

/* A suspect gets its turn alone: nothing else is claimed until all others are over. */
static bool may_look(const ebb_worker *w) {
    if (w->turn_node.node.id == 0 || w->turns_alone || w->turns >= w->opts.turns) return false;
    if (!ebb__worker_may_fetch(w)) return false;
    return !w->turn_suspects || w->turns == 0;
}

ebb_status ebb__dispatcher(ebb_cx *cx, void *worker) {
    ebb_worker *w = worker;
    uint64_t next = 0, pause = 0;
    while (!w->over && w->orchs_n != 0) {
        dispatch_all_ended(cx, w);
        const bool may = may_look(w);
        const uint64_t from = w->look_for_turns ? pause : next;
        if (may && ebb_now(cx) >= from) {
            w->look_for_turns = false;
            next = look(cx, w, &pause);
        } else if (!ebb__worker_nap(cx, &w->dispatcher, may ? from : EBB_FOREVER)) {
            break;
        }
        if (ebb_checkpoint(cx) != EBB_OK) break;
    }
    w->dispatcher.task.id = 0;
    ebb__ended_settle(&w->ended, false);
    ebb__worker_wake(w, &w->main);
    return EBB_OK;
}
