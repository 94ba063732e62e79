/* The main fiber of a worker: it joins the store, renews what the worker holds, and in the end gives it back.
 *
 * A renewal that fails says nothing about any token. It is repeated until the lease would have lapsed, counted by the
 * host's boot clock from before the last good renewal was sent; only then all is lost. */
#include <string.h>

#include "durable/run.h"
#include "durable/worker.h"

static uint64_t boot(const ebb_worker *w) {
    const ebb_provider_host *h = ebb__store_host(w->store);
    return h->boot(h->ctx);
}

/* ---- close -------------------------------------------------------------------------------------------------------- */

static void give_back(ebb_cx *cx, ebb_worker *w, ebb_activity *a) {
    ebb_provider_abandon_work_call *c = ebb__call_new(w->gate, EBB_PROVIDER_ABANDON_WORK);
    if (c == NULL) return; /* its lease lapses */
    ebb_provider_token *token = ebb__call_room(&c->call, sizeof *token);
    c->node = w->node;
    c->tokens = token;
    c->tokens_n = token != NULL;
    if (token != NULL) *token = a->token;
    ebb__worker_tell(cx, &c->call);
}

static void hand_over(ebb_cx *cx, ebb_worker *w) {
    for (ebb_activity *a = w->activities; a != NULL; a = a->next) {
        if (!a->of->opts.handover || a->gone) continue;
        a->handed_over = true;
        give_back(cx, w, a);
        ebb__activity_cancel(a, EBB_CANCEL_SHUTDOWN, "the worker is closing");
    }
}

static void on_closing(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    ebb_worker *w = arg;
    (void)cx;
    (void)st;
    (void)v;
    w->closing = true;
    ebb__worker_wake(w, &w->main);
    ebb__worker_wake(w, &w->dispatcher);
    ebb__worker_wake(w, &w->claimer);
}

static bool is_done(const ebb_worker *w) {
    return w->closing && w->dispatcher.task.id == 0 && w->claimer.task.id == 0 && w->turns == 0 &&
           w->activities == NULL;
}

/* ---- joined ---------------------------------------------------------------------------------------------------------- */

static ebb_provider_join_call *join_call(ebb_worker *w) {
    ebb_provider_join_call *c = ebb__call_new(w->gate, EBB_PROVIDER_JOIN);
    if (c == NULL) return NULL;
    ebb_provider_runs *runs = w->orchs_n != 0 ? ebb__call_room(&c->call, w->orchs_n * sizeof *runs) : NULL;
    for (size_t i = 0; runs != NULL && i < w->orchs_n; i++)
        runs[i] = (ebb_provider_runs){ebb__call_text(&c->call, w->orchs[i].name), w->orchs[i].version};
    c->name = ebb__call_text(&c->call, w->name);
    c->lease = w->opts.lease;
    c->runs = runs;
    c->runs_n = w->orchs_n;
    return c;
}

/* False: this task is cancelled. */
static bool join(ebb_cx *cx, ebb_worker *w) {
    while (!w->joined) {
        const uint64_t sent = boot(w);
        ebb_provider_join_call *c = join_call(w);
        ebb_status st = EBB_ERR_NOMEM;
        if (c != NULL) c = ebb__worker_insist(cx, w, &c->call, &st);
        if (c != NULL && st == EBB_OK) {
            w->node = c->node;
            w->lease_until = sent + w->opts.lease;
            w->joined = w->look_for_turns = w->look_for_work = true;
        } else if (c != NULL) {
            ebb__worker_log(w, EBB_DURABLE_ERROR, "", "it can't join its store: %s", c->call.text);
        }
        if (c != NULL) ebb__call_free(&c->call);
        if (w->joined) break;
        if (!ebb__worker_nap(cx, &w->main, ebb_now(cx) + EBB_SECOND) || w->closing) return false;
    }
    ebb__worker_wake(w, &w->dispatcher);
    ebb__worker_wake(w, &w->claimer);
    return true;
}

static void lose_all(ebb_cx *cx, ebb_worker *w) {
    w->joined = false;
    for (ebb_activity *a = w->activities; a != NULL; a = a->next)
        ebb__activity_cancel(a, EBB_CANCEL_LEASE_LOST, "the lease of the worker was lost");
    ebb__hot_free_all(cx, w);
    ebb__worker_log(w, EBB_DURABLE_WARNING, "", "its lease was lost; it joins again");
}

/* ---- renewed ---------------------------------------------------------------------------------------------------------- */

static ebb_provider_renew_call *renew_call(ebb_worker *w) {
    size_t n = 0;
    ebb_provider_renew_call *c = ebb__call_new(w->gate, EBB_PROVIDER_RENEW);
    if (c == NULL) return NULL;
    for (const ebb_activity *a = w->activities; a != NULL; a = a->next) n += !a->gone;
    ebb_provider_token *tokens = n != 0 ? ebb__call_room(&c->call, n * sizeof *tokens) : NULL;
    c->node = w->node;
    c->lease = w->opts.lease;
    c->tokens = tokens;
    for (const ebb_activity *a = w->activities; tokens != NULL && a != NULL; a = a->next) {
        if (!a->gone) tokens[c->tokens_n++] = a->token;
    }
    return c;
}

static void lose(ebb_worker *w, ebb_provider_token token) {
    for (ebb_activity *a = w->activities; a != NULL; a = a->next) {
        if (!ebb__token_is(a->token, token)) continue;
        ebb__activity_cancel(a, EBB_CANCEL_LEASE_LOST, "its row is gone, or claimed by another");
        return;
    }
}

/* False: it has failed, and is to be repeated. */
static bool renew(ebb_cx *cx, ebb_worker *w) {
    const uint64_t sent = boot(w);
    ebb_status st = EBB_ERR_NOMEM;
    ebb_provider_renew_call *c = renew_call(w);
    if (c != NULL) c = ebb__worker_ask(cx, &c->call, &st);
    if (c != NULL && st == EBB_OK) {
        w->lease_until = sent + w->opts.lease;
        for (size_t i = 0; i < c->gone_n; i++) lose(w, c->gone[i]);
        if (c->lost) lose_all(cx, w);
    }
    if (c != NULL) ebb__call_free(&c->call);
    if (st == EBB_OK) return true;
    w->stats.retried++;
    if (boot(w) < w->lease_until) return false;
    lose_all(cx, w);
    return true;
}

/* ---- main --------------------------------------------------------------------------------------------------------------- */

static ebb_status begin(ebb_cx *cx, ebb_worker *w) {
    w->dispatcher.task = ebb_fiber_spawn(cx, w->unit, ebb__dispatcher, w);
    ebb_status st = ebb_id_status(w->dispatcher.task.id);
    if (st != EBB_OK) w->dispatcher.task.id = 0;
    if (st != EBB_OK) return st;
    w->claimer.task = ebb_fiber_spawn(cx, w->unit, ebb__claimer, w);
    st = ebb_id_status(w->claimer.task.id);
    if (st != EBB_OK) w->claimer.task.id = 0;
    return st;
}

static void serve(ebb_cx *cx, ebb_worker *w) {
    uint64_t next = ebb_now(cx) + w->opts.lease / 3;
    bool handed = false;
    while (!is_done(w)) {
        if (!ebb__worker_nap(cx, &w->main, w->renew_now ? ebb_now(cx) : next)) return;
        if (w->closing && !handed) hand_over(cx, w);
        handed = w->closing;
        if (ebb_now(cx) < next && !w->renew_now) continue;
        w->renew_now = false;
        const uint64_t pause = w->opts.lease / 3 < EBB_SECOND ? w->opts.lease / 3 : EBB_SECOND;
        next = ebb_now(cx) + (renew(cx, w) ? w->opts.lease / 3 : pause);
        if (!w->joined && !join(cx, w)) return;
    }
}

static void leave(ebb_cx *cx, ebb_worker *w) {
    ebb_status st;
    w->left = true;
    ebb__hot_free_all(cx, w);
    ebb_provider_leave_call *c = w->joined ? ebb__call_new(w->gate, EBB_PROVIDER_LEAVE) : NULL;
    if (c == NULL) return;
    c->node = w->node;
    c = ebb__worker_insist(cx, w, &c->call, &st);
    if (c != NULL) ebb__call_free(&c->call);
}

ebb_status ebb__worker_main(ebb_cx *cx, void *worker) {
    ebb_worker *w = worker;
    (void)ebb_future_on_done(ebb_closing(cx), on_closing, w);
    if (join(cx, w) && begin(cx, w) == EBB_OK) serve(cx, w);
    (void)ebb_mask(cx);
    leave(cx, w);
    (void)ebb_unmask(cx);
    w->main.task.id = 0;
    return EBB_OK;
}
