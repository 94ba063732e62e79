/* Ends of activities whose instance is hot here: its turn takes them as they are and deletes their rows in its commit, so an end
 * needs no commit of its own and no fetch. The supervisor of the activity offers the end and waits. If it is not taken, or
 * the turn is not committed, the supervisor acks as if nothing had been offered.
 *
 * Invariants: an end that was offered is in `ended` of the worker, in `ended` of an instance with a turn in flight, or in such a
 * turn; and it is settled once. Nothing is offered when the dispatcher is not there to take it. */
#include "durable/run.h"
#include "durable/worker.h"

static void append(ebb__ended *to, ebb_activity *a) {
    a->next_ended = NULL;
    if (to->last != NULL) to->last->next_ended = a;
    else to->first = a;
    to->last = a;
}

static ebb_activity *pop(ebb__ended *from) {
    ebb_activity *a = from->first;
    from->first = a->next_ended;
    if (from->first == NULL) from->last = NULL;
    a->next_ended = NULL;
    return a;
}

/* A suspect gets its turn alone, and a worker that closes lets go of what it keeps. */
static bool takes_ends(const ebb_worker *w) {
    return w->dispatcher.task.id != 0 && !w->closing && !w->left && !w->turns_alone && !w->turn_suspects;
}

/* Also one with a turn in flight, after which it is seen whether it still is. A row that is gone would have the turn refused. */
static ebb__hot *hot_for(const ebb_activity *a) {
    ebb__hot *h = a->gone ? NULL : ebb__hot_find(a->worker, a->key);
    if (h == NULL || h->run == NULL || h->execution != a->execution || ebb__token_is_none(h->token))
        return NULL;
    return h;
}

static void settle(ebb_activity *a, bool committed) {
    a->offer = committed ? EBB__OFFER_COMMITTED : EBB__OFFER_REFUSED;
    a->gone |= committed; /* its row: it is renewed no more */
    (void)ebb_task_wake(ebb_runtime_host(a->worker->rt), a->supervisor);
}

void ebb__ended_settle(ebb__ended *ends, bool committed) {
    while (ends->first != NULL) settle(pop(ends), committed);
}

bool ebb__ended_offer(ebb_cx *cx, ebb_activity *a) {
    ebb_worker *w = a->worker;
    if (!takes_ends(w) || hot_for(a) == NULL) return false;
    a->offer = EBB__OFFER_OPEN;
    append(&w->ended, a);
    ebb__worker_wake(w, &w->dispatcher);
    while (a->offer == EBB__OFFER_OPEN) (void)ebb_fiber_park(cx);
    return a->offer == EBB__OFFER_COMMITTED;
}

ebb__hot *ebb__ended_gather(ebb_worker *w) {
    ebb__hot *idle = NULL, **last = &idle;
    while (w->ended.first != NULL) {
        ebb_activity *a = pop(&w->ended);
        ebb__hot *h = takes_ends(w) ? hot_for(a) : NULL;
        if (h == NULL) {
            settle(a, false);
            continue;
        }
        if (h->task.id == 0 && h->ended.first == NULL) {
            h->next_ended = NULL;
            *last = h;
            last = &h->next_ended;
        }
        append(&h->ended, a);
    }
    return idle;
}

ebb__ended ebb__ended_take(ebb__hot *h, size_t most, size_t *n) {
    ebb__ended taken = {NULL, NULL};
    for (*n = 0; *n < most && h->ended.first != NULL; ++*n) append(&taken, pop(&h->ended));
    return taken;
}

void ebb__ended_put_back(ebb__hot *h) {
    ebb_worker *w = h->worker;
    if (!takes_ends(w)) ebb__ended_settle(&h->ended, false); /* the dispatcher may have ended */
    while (h->ended.first != NULL) append(&w->ended, pop(&h->ended));
}
