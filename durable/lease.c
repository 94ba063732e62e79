/* The main fiber of a worker: it joins the store, renews what the worker holds, and in the end gives it back.
 *
 * A renewal that fails says nothing about any token. It is repeated until the lease would have lapsed, counted by the
 * host's boot clock from before the last good renewal was sent; only then all is lost. */
#include <string.h>

#include "durable/run.h"
#include "durable/worker.h"

#define LOOK (20 * EBB_MS) /* while it is closing: for the end of units of work, of which nothing tells */

static uint64_t boot(const ebb_worker *w) {
    const ebb_provider_host *h = ebb__store_host(w->store);
    return h->boot(h->ctx);
}

/* ---- close -------------------------------------------------------------------------------------------------------- */

static void give_back(ebb_cx *cx, ebb_worker *w, ebb_activity *a) {
    ebb_provider_abandon_work_call *c = ebb__call_new(w->gate, EBB_PROVIDER_ABANDON_WORK);
    if (c == NULL) return; /* its lease lapses */
    ebb_provider_token *token = ebb__call_room(&c->call, sizeof *token);
    c->node = w->work_node.node;
    c->tokens = token;
    c->tokens_n = token != NULL;
    if (token != NULL) *token = a->token;
    ebb__worker_tell(cx, &c->call);
}

/* One that has its end is about to be stored. */
static void hand_over(ebb_cx *cx, ebb_worker *w) {
    for (ebb_activity *a = w->activities; a != NULL; a = a->next) {
        if (!a->of->opts.handover || a->gone || a->message.n != 0) continue;
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

static bool is_needed(ebb_worker *w) {
    return ebb__store_is_awaited(w->store) || ebb__units_wait(ebb__store_units(w->store), w->region);
}

/* It ends when nothing runs, and no unit of work waits for an instance or may do so again. What the last fetches have
 * claimed still runs. */
static bool is_done(ebb_worker *w) {
    if (!w->closing || w->turns != 0 || w->activities != NULL) return false;
    if (!w->over && !is_needed(w)) {
        w->over = true;
        ebb__worker_wake(w, &w->dispatcher);
        ebb__worker_wake(w, &w->claimer);
    }
    return w->over && w->dispatcher.task.id == 0 && w->claimer.task.id == 0;
}

/* Only units of work that do not wait now keep it from its end. */
static bool is_held(const ebb_worker *w) {
    return w->closing && !w->over && w->turns == 0 && w->activities == NULL &&
           !ebb__store_is_awaited(w->store);
}

/* ---- joined ---------------------------------------------------------------------------------------------------------- */

static bool is_joined(const ebb__membership *m) {
    return m->node.id != 0;
}

static void list_orchs(const ebb_worker *w, ebb_provider_join_call *c) {
    ebb_provider_runs *runs = ebb__call_room(&c->call, (w->orchs_n + 1) * sizeof *runs);
    c->runs = runs;
    for (size_t i = 0; runs != NULL && i < w->orchs_n; i++)
        runs[c->runs_n++] =
            (ebb_provider_runs){ebb__call_text(&c->call, w->orchs[i].name), w->orchs[i].version};
}

static void list_queues(const ebb_worker *w, ebb_provider_join_call *c) {
    size_t names = 0;
    for (const ebb__registered_activity *r = w->handlers; r != NULL; r = r->next) names++;
    ebb_provider_runs *runs = ebb__call_room(&c->call, (names * (w->tags_n + 1) + 1) * sizeof *runs);
    c->runs = runs;
    for (const ebb__registered_activity *r = w->handlers; runs != NULL && r != NULL; r = r->next) {
        for (size_t i = 0; i <= w->tags_n; i++)
            runs[c->runs_n++].name = ebb__queue_of(&c->call, r->name, i > 0 ? w->tags[i - 1] : NULL);
    }
    for (size_t i = 0; i < c->runs_n; i++) runs[i].version = 0;
}

static ebb_provider_join_call *join_call(ebb_worker *w, const ebb__membership *m) {
    ebb_provider_join_call *c = ebb__call_new(w->gate, EBB_PROVIDER_JOIN);
    if (c == NULL) return NULL;
    if (m == &w->turn_node) list_orchs(w, c);
    else list_queues(w, c);
    c->name = ebb__call_text(&c->call, w->name);
    c->lease = w->opts.lease;
    return c;
}

/* While it waits for one node, nobody renews the other. */
static void *ask_in_time(ebb_cx *cx, ebb_provider_call *c, uint64_t span, ebb_status *st) {
    ebb_value v;
    *st = ebb_await(cx, ebb_within(cx, ebb__call_begin(cx, c, EBB_SITE), span), &v);
    if (*st != EBB_OK) return NULL;
    c = ebb__call_of(&v);
    *st = c->status;
    return c;
}

/* A join whose answer comes too late has made a node that lapses. */
static void join(ebb_cx *cx, ebb_worker *w, ebb__membership *m) {
    ebb_status st = EBB_ERR_NOMEM;
    if (is_joined(m)) return;
    const uint64_t sent = boot(w);
    ebb_provider_join_call *c = join_call(w, m);
    if (c != NULL) c = ask_in_time(cx, &c->call, w->opts.lease / 3, &st);
    if (c != NULL && st == EBB_OK) {
        m->node = c->node;
        m->until = sent + w->opts.lease;
    } else if (c != NULL && ebb_provider_class_of(st) == EBB_PROVIDER_PERMANENT) {
        ebb__worker_log(w, EBB_DURABLE_ERROR, "", "it can't join its store: %s", c->call.text);
    } else {
        w->stats.retried++;
    }
    if (c != NULL) ebb__call_free(&c->call);
    w->look_for_turns = w->look_for_work = true;
    ebb__worker_wake(w, &w->dispatcher);
    ebb__worker_wake(w, &w->claimer);
}

static void leave(ebb_cx *cx, ebb_worker *w, ebb__membership *m) {
    ebb_provider_leave_call *c = is_joined(m) ? ebb__call_new(w->gate, EBB_PROVIDER_LEAVE) : NULL;
    if (c == NULL) return; /* its lease lapses */
    c->node = m->node;
    m->node.id = 0;
    ebb__worker_tell(cx, &c->call);
}

/* What the node had is others'. */
static void lose_all(ebb_cx *cx, ebb_worker *w, ebb__membership *m) {
    m->node.id = 0;
    if (m == &w->turn_node) ebb__hot_free_all(cx, w);
    for (ebb_activity *a = w->activities; m == &w->work_node && a != NULL; a = a->next)
        ebb__activity_cancel(a, EBB_CANCEL_LEASE_LOST, "the lease of the worker was lost");
    ebb__worker_log(w, EBB_DURABLE_WARNING, "", "its lease of %s was lost; it joins again",
                    m == &w->turn_node ? "instances" : "activities");
}

/* ---- renewed ---------------------------------------------------------------------------------------------------------- */

static ebb_provider_renew_call *renew_call(ebb_worker *w, const ebb__membership *m) {
    size_t n = 0;
    ebb_provider_renew_call *c = ebb__call_new(w->gate, EBB_PROVIDER_RENEW);
    if (c == NULL) return NULL;
    const ebb_activity *first = m == &w->work_node ? w->activities : NULL;
    for (const ebb_activity *a = first; a != NULL; a = a->next) n += !a->gone;
    ebb_provider_token *tokens = n != 0 ? ebb__call_room(&c->call, n * sizeof *tokens) : NULL;
    c->node = m->node;
    c->lease = w->opts.lease;
    c->tokens = tokens;
    for (const ebb_activity *a = first; tokens != NULL && a != NULL; a = a->next) {
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

/* A store that does not answer is not waited for longer than the lease lasts. One that has lapsed already, as in a process
 * that was stopped, has a third of it: perhaps nobody has taken what it held. */
static uint64_t patience(const ebb_worker *w, const ebb__membership *m, uint64_t now) {
    const uint64_t least = w->opts.lease / 3, left = m->until > now ? m->until - now : 0;
    return left > least ? left : least;
}

/* When to renew next, without a hint. 0: it has failed, and is to be repeated. */
static uint64_t renew(ebb_cx *cx, ebb_worker *w, ebb__membership *m) {
    const uint64_t sent = boot(w), third = w->opts.lease / 3;
    uint64_t next = third;
    ebb_status st = EBB_ERR_NOMEM;
    if (!is_joined(m)) return next;
    ebb_provider_renew_call *c = renew_call(w, m);
    if (c != NULL) c = ask_in_time(cx, &c->call, patience(w, m, sent), &st);
    if (c != NULL && st == EBB_OK) {
        m->until = sent + w->opts.lease;
        for (size_t i = 0; i < c->gone_n; i++) lose(w, c->gone[i]);
        if (c->lost) lose_all(cx, w, m);
        if (c->again != 0 && c->again < third) next = c->again;
    }
    if (c != NULL) ebb__call_free(&c->call);
    if (st == EBB_OK) return next;
    w->stats.retried++;
    if (boot(w) < m->until) return 0;
    lose_all(cx, w, m);
    return third;
}

/* ---- main --------------------------------------------------------------------------------------------------------------- */

/* Without memory it is tried again. */
static bool begin(ebb_cx *cx, ebb_worker *w, ebb__worker_fiber *f, ebb_fiber_fn fn) {
    if (f->begun || w->over) return true;
    f->task = ebb_fiber_spawn(cx, w->unit, fn, w);
    f->begun = ebb_id_status(f->task.id) == EBB_OK;
    if (!f->begun) f->task.id = 0;
    return f->begun;
}

static void serve(ebb_cx *cx, ebb_worker *w) {
    const uint64_t third = w->opts.lease / 3, pause = third < EBB_SECOND ? third : EBB_SECOND;
    uint64_t next = ebb_now(cx) + third;
    bool handed = false;
    while (!is_done(w)) {
        if (w->turns_unknown) leave(cx, w, &w->turn_node);
        w->turns_unknown &= is_joined(&w->turn_node); /* there was no memory to leave: again later */
        join(cx, w, &w->work_node);
        join(cx, w, &w->turn_node);
        bool whole = is_joined(&w->work_node) && is_joined(&w->turn_node);
        whole &= begin(cx, w, &w->dispatcher, ebb__dispatcher);
        whole &= begin(cx, w, &w->claimer, ebb__claimer);
        const uint64_t soon = ebb_now(cx) + (is_held(w) ? LOOK : whole ? third : pause);
        if (!ebb__worker_nap(cx, &w->main, soon < next ? soon : next)) return;
        if (ebb_stopping(cx) && !w->closing)
            on_closing(cx, EBB_OK, NULL, w); /* there was no memory for the callback */
        if (w->closing && !handed) {
            hand_over(cx, w);
            ebb__hot_let_go_all(cx, w);
        }
        handed = w->closing;
        if (ebb_now(cx) < next && !w->renew_now) continue;
        w->renew_now = false;
        ebb__worker_wake(w, &w->dispatcher); /* for want of memory they may have no timers */
        ebb__worker_wake(w, &w->claimer);
        const uint64_t work = renew(cx, w, &w->work_node), turns = renew(cx, w, &w->turn_node);
        next = ebb_now(cx) + (work != 0 && turns != 0 ? work : pause);
    }
}

static void leave_all(ebb_cx *cx, ebb_worker *w) {
    ebb_provider_leave_call *c;
    ebb_status st;
    w->left = true;
    ebb__hot_free_all(cx, w);
    leave(cx, w, &w->turn_node);
    c = is_joined(&w->work_node) ? ebb__call_new(w->gate, EBB_PROVIDER_LEAVE) : NULL;
    if (c == NULL) return;
    c->node = w->work_node.node;
    c = ebb__worker_insist(cx, w, &c->call, &st);
    if (c != NULL) ebb__call_free(&c->call);
}

ebb_status ebb__worker_main(ebb_cx *cx, void *worker) {
    ebb_worker *w = worker;
    (void)ebb_future_on_done(ebb_closing(cx), on_closing, w);
    serve(cx, w);
    (void)ebb_mask(cx);
    leave_all(cx, w);
    (void)ebb_unmask(cx);
    if (w->main.reserve.id != 0) (void)ebb_timer_disarm(cx, w->main.reserve);
    w->main.task.id = 0;
    return EBB_OK;
}
