/* Activities: claimed for free places, run by a fiber in a region of their own, ended by an ack. A supervisor waits for that
 * region and acks; the body may be cancelled or forced meanwhile, the supervisor goes on. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "durable/event.h"
#include "durable/run.h"
#include "durable/worker.h"

enum { CHUNK = 1024 };

/* ---- what a body knows ------------------------------------------------------------------------------------------- */

void *ebb_activity_arg(const ebb_activity *a) {
    return a->of->arg;
}
const char *ebb_activity_instance(const ebb_activity *a) {
    return a->instance;
}
const char *ebb_activity_name(const ebb_activity *a) {
    return a->name;
}
const char *ebb_activity_key(const ebb_activity *a) {
    return a->id_key;
}
uint32_t ebb_activity_attempt(const ebb_activity *a) {
    return a->attempt;
}
uint32_t ebb_activity_claim(const ebb_activity *a) {
    return a->claim;
}

/* The task's own reason is PARENT if a region above was cancelled. */
ebb_reason ebb_activity_reason(const ebb_activity *a) {
    const ebb_runtime *rt = a->worker->rt;
    ebb_reason none = {0};
    ebb__region *r;
    if (a->region.id == 0 || ebb__region_get(rt, a->region, &r) != EBB_OK) return none;
    return ebb__region_reason(rt, ebb__region_cause(rt, r));
}

void *ebb_activity_alloc(ebb_activity *a, size_t n) {
    return ebb__arena_zero(&a->arena, n != 0 ? n : 1);
}

static const char *keep(ebb_activity *a, const char *text, bool *failed) {
    const size_t n = text != NULL ? strlen(text) + 1 : 0;
    if (text == NULL) return NULL;
    char *to = ebb__arena_alloc(&a->arena, n);
    if (to == NULL) *failed = true;
    else memcpy(to, text, n);
    return to;
}

static ebb_blob keep_blob(ebb_activity *a, ebb_blob b, bool *failed) {
    void *to = b.n != 0 ? ebb__arena_alloc(&a->arena, b.n) : NULL;
    if (b.n == 0) return (ebb_blob){NULL, 0};
    if (to == NULL) *failed = true;
    else memcpy(to, b.at, b.n);
    return (ebb_blob){to, to != NULL ? b.n : 0};
}

ebb_status ebb_activity_fail(ebb_activity *a, const ebb_failure *why) {
    bool failed = false;
    if (why->details.n > EBB_DURABLE_PAYLOAD)
        return ebb__durable_say(EBB_ERR_LIMIT, "details of a failure: %zu bytes (%d)", why->details.n,
                                EBB_DURABLE_PAYLOAD);
    const ebb_failure copy = {keep(a, why->code, &failed), keep(a, why->message, &failed),
                              keep_blob(a, why->details, &failed), why->final};
    if (failed) return EBB_ERR_NOMEM;
    a->why = copy;
    a->failed_by_name = true;
    return EBB_FAILED;
}

/* ---- places ---------------------------------------------------------------------------------------------------------- */

ebb__registered_activity *ebb__handler_of(const ebb_worker *w, const char *name, size_t n) {
    ebb__registered_activity *r = w->handlers;
    while (r != NULL && (strlen(r->name) != n || memcmp(r->name, name, n) != 0)) r = r->next;
    return r;
}

static uint32_t places_of(const ebb_worker *w, const ebb__registered_activity *r) {
    const uint32_t most = w->opts.activities - w->stats.running;
    if (r->opts.at_once == 0) return most;
    const uint32_t own = r->opts.at_once > r->running ? r->opts.at_once - r->running : 0;
    return own < most ? own : most;
}

bool ebb__worker_has_place(const ebb_worker *w, const ebb__registered_activity *r) {
    return w->stats.running < w->opts.activities && places_of(w, r) > 0;
}

/* A worker may have 10,000 of them, and all may be cancelled at once. */
static ebb_activity **list_of(ebb_worker *w, uint64_t key, uint64_t execution, uint64_t number) {
    const uint64_t hash = ebb__hash_word(ebb__hash_word(key ^ execution << 48) ^ number);
    return &w->activities_by_number[hash % EBB__ACTIVITY_LISTS];
}

ebb_activity *ebb__activity_find(ebb_worker *w, uint64_t key, uint64_t execution, uint64_t number) {
    ebb_activity *a = *list_of(w, key, execution, number);
    while (a != NULL && (a->key != key || a->execution != execution || a->number != number)) a = a->next_like;
    return a;
}

/* ---- cancelled ---------------------------------------------------------------------------------------------------------- */

void ebb__activity_cancel(ebb_activity *a, ebb_cancel_kind kind, const char *why) {
    ebb_worker *w = a->worker;
    ebb_cx *host = ebb_runtime_host(w->rt);
    if (a->gone) return;
    a->gone = true;
    if (kind == EBB_CANCEL_LEASE_LOST) w->stats.lease_lost++;
    else if (kind != EBB_CANCEL_SHUTDOWN) w->stats.cancelled++;
    if (a->region.id == 0) return; /* the supervisor sees it before it starts the body */
    const ebb_budget budget = {ebb_now(host) + a->of->opts.grace, EBB_POLLS_UNBOUNDED, 0};
    ebb_region_cancel_within(host, a->region, kind, why, budget);
}

/* ---- the body ------------------------------------------------------------------------------------------------------------ */

static ebb_status body(ebb_cx *cx, void *arg) {
    ebb_activity *a = arg;
    ebb_blob out = {NULL, 0};
    bool failed = false;
    ebb_status st = a->of->fn(cx, a, a->input, &out);
    if (st == EBB_OK && out.n > EBB_DURABLE_PAYLOAD)
        st = ebb__durable_say(EBB_ERR_LIMIT, "output of %s: %zu bytes (%d)", a->name, out.n,
                              EBB_DURABLE_PAYLOAD);
    if (st == EBB_OK) a->output = keep_blob(a, out, &failed);
    a->status = failed ? EBB_ERR_NOMEM : st == EBB_PENDING ? EBB_ERR_INVALID : st;
    a->returned = true;
    return EBB_OK;
}

/* ---- acked -------------------------------------------------------------------------------------------------------------------- */

static ebb_blob message_of(ebb_activity *a) {
    ebb__event e = {.kind = EBB__EVENT_ACTIVITY_COMPLETED, .step = a->number, .body = a->output};
    if (a->status == EBB_OK) return ebb__event_encode(&a->arena, &e);
    e = (ebb__event){.kind = EBB__EVENT_ACTIVITY_FAILED, .step = a->number, .status = a->status};
    if (a->failed_by_name && a->status == EBB_FAILED) {
        if (a->why.code != NULL) e.code = ebb__text_of(a->why.code);
        if (a->why.message != NULL) e.text = ebb__text_of(a->why.message);
        e.details = a->why.details;
        e.flags = a->why.final ? EBB__FLAG_FINAL : 0;
    } else if (a->status == EBB_ERR_POISONED) {
        e.flags = EBB__FLAG_FINAL;
    }
    return ebb__event_encode(&a->arena, &e);
}

static void was_late(ebb_activity *a) {
    ebb_worker *w = a->worker;
    w->stats.late_acks++;
    if (a->gone)
        ebb__worker_log(w, EBB_DURABLE_INFO, a->instance, "activity %s #%llu ended after its cancel", a->name,
                        (unsigned long long)a->number);
    else
        ebb__worker_log(w, EBB_DURABLE_WARNING, a->instance, "activity %s #%llu ended, but its row was gone",
                        a->name, (unsigned long long)a->number);
    if (!a->gone) w->stats.cancelled++;
}

static void ack(ebb_cx *cx, ebb_activity *a) {
    ebb_worker *w = a->worker;
    ebb_status st = EBB_ERR_NOMEM;
    const ebb_blob message = message_of(a);
    ebb_provider_ack_work_call *c = message.at != NULL ? ebb__call_new(w->gate, EBB_PROVIDER_ACK_WORK) : NULL;
    if (c == NULL) return; /* its lease lapses, and it runs again */
    ebb_blob *copy = ebb__call_room(&c->call, sizeof *copy);
    if (copy != NULL) *copy = ebb__call_blob(&c->call, message);
    c->node = w->work_node.node;
    c->token = a->token;
    c->ack_id = ebb__token_new(ebb__store_host(w->store));
    c->key = a->key;
    c->execution = a->execution;
    c->activity = a->number;
    c->message = copy;
    c = ebb__worker_insist(cx, w, &c->call, &st);
    if (c == NULL) return;
    if (st == EBB_OK && a->status == EBB_OK) w->stats.completed++;
    else if (st == EBB_OK) w->stats.failed++;
    else if (st == EBB_ERR_GONE) was_late(a);
    else
        ebb__worker_log(w, EBB_DURABLE_ERROR, a->instance, "the end of %s was not stored: %s", a->name,
                        c->call.text);
    ebb__call_free(&c->call);
}

static void give_back(ebb_cx *cx, ebb_activity *a) {
    ebb_worker *w = a->worker;
    ebb_status st;
    ebb_provider_abandon_work_call *c = ebb__call_new(w->gate, EBB_PROVIDER_ABANDON_WORK);
    if (c == NULL) return;
    ebb_provider_token *token = ebb__call_room(&c->call, sizeof *token);
    if (token != NULL) *token = a->token;
    c->node = w->work_node.node;
    c->tokens = token;
    c->tokens_n = token != NULL;
    c = ebb__worker_insist(cx, w, &c->call, &st);
    if (c != NULL) ebb__call_free(&c->call);
}

/* What it returns after a cancel is dropped. One that returned in time is acked, even if the row may be gone. */
static void finish(ebb_cx *cx, ebb_activity *a) {
    ebb_worker *w = a->worker;
    if (w->left || a->handed_over) return;
    if (a->gone) {
        if (a->returned) was_late(a);
        return;
    }
    if (a->returned && !ebb__region_is_cancelled(w->rt, w->unit)) ack(cx, a);
    else give_back(cx, a);
}

/* ---- the supervisor ------------------------------------------------------------------------------------------------------------------- */

static void link_activity(ebb_activity *a) {
    ebb_worker *w = a->worker;
    ebb_activity **like = list_of(w, a->key, a->execution, a->number);
    a->next = w->activities;
    if (a->next != NULL) a->next->prev = a;
    w->activities = a;
    a->next_like = *like;
    if (a->next_like != NULL) a->next_like->prev_like = a;
    *like = a;
}

static void unlink_activity(ebb_activity *a) {
    ebb_worker *w = a->worker;
    if (a->prev != NULL) a->prev->next = a->next;
    else w->activities = a->next;
    if (a->next != NULL) a->next->prev = a->prev;
    if (a->prev_like != NULL) a->prev_like->next_like = a->next_like;
    else *list_of(w, a->key, a->execution, a->number) = a->next_like;
    if (a->next_like != NULL) a->next_like->prev_like = a->prev_like;
}

static void activity_free(ebb_activity *a) {
    ebb_allocator allocator = a->worker->allocator;
    ebb__arena_free(&a->arena);
    ebb__free(&allocator, a, sizeof *a);
}

void ebb__activity_free_all(ebb_worker *w) {
    while (w->activities != NULL) {
        ebb_activity *a = w->activities;
        unlink_activity(a);
        activity_free(a);
    }
}

static void activity_over(ebb_activity *a) {
    ebb_worker *w = a->worker;
    unlink_activity(a);
    a->of->running--;
    w->stats.running--;
    /* Its place is worth a look only if one may have been missing. */
    w->look_for_work |= a->of->opts.at_once != 0 || w->work_suspects || w->work_alone;
    w->work_alone &= w->stats.running > 0;
    ebb__worker_wake(w, &w->claimer);
    ebb__worker_wake(w, &w->main);
    activity_free(a);
}

/* EBB_OK: it has run. Else there was no memory for its fiber. */
static ebb_status run(ebb_cx *cx, ebb_activity *a) {
    const ebb_region_opts opts = {.policy = EBB_FAIL_COLLECT, .name = "activity"};
    a->region = ebb_region_open(cx, &opts);
    ebb_status st = ebb_id_status(a->region.id);
    if (st != EBB_OK) {
        a->region.id = 0;
        return st;
    }
    const ebb_task task = ebb_fiber_spawn(cx, a->region, body, a);
    st = ebb_id_status(task.id);
    (void)ebb_region_join(cx, a->region);
    ebb_region_state state;
    a->forced = ebb_region_state_of(cx, a->region, &state) == EBB_OK && state != EBB_REGION_CLOSED;
    a->region.id = 0;
    return st;
}

static ebb_status supervisor(ebb_cx *cx, void *arg) {
    ebb_activity *a = arg;
    (void)ebb_mask(cx);
    if (a->claim > a->of->opts.attempts) {
        a->status = EBB_ERR_POISONED;
        a->returned = true;
        ebb__worker_log(a->worker, EBB_DURABLE_ERROR, a->instance,
                        "activity %s #%llu is poisoned: %u claims without an end (%u)", a->name,
                        (unsigned long long)a->number, a->claim - 1, a->of->opts.attempts);
    } else if (!a->gone) {
        (void)run(cx, a);
    }
    if (a->forced)
        return EBB_CANCELLED; /* the body may still run: the worker frees the record with its region */
    finish(cx, a);
    (void)ebb_unmask(cx);
    activity_over(a);
    return EBB_OK;
}

static ebb_activity *activity_new(ebb_worker *w, ebb__registered_activity *r,
                                  const ebb_provider_work_item *item) {
    char key[80];
    bool failed = false;
    ebb_activity *a = ebb__alloc(&w->allocator, sizeof *a);
    if (a == NULL) return NULL;
    memset(a, 0, sizeof *a);
    a->worker = w;
    a->of = r;
    ebb__arena_init(&a->arena, w->allocator, CHUNK);
    (void)snprintf(key, sizeof key, "%llx-%llu-%llu", (unsigned long long)item->key,
                   (unsigned long long)item->execution, (unsigned long long)item->activity);
    a->instance = keep(a, item->id, &failed);
    a->name = keep(a, item->name, &failed);
    a->id_key = keep(a, key, &failed);
    a->key = item->key;
    a->execution = item->execution;
    a->number = item->activity;
    a->attempt = item->attempt;
    a->claim = item->attempts;
    a->input = keep_blob(a, item->input, &failed);
    a->token = item->token;
    a->status = EBB_CANCELLED;
    if (!failed) return a;
    activity_free(a);
    return NULL;
}

static void give_token_back(ebb_cx *cx, ebb_worker *w, ebb_provider_token token) {
    ebb_provider_abandon_work_call *c = ebb__call_new(w->gate, EBB_PROVIDER_ABANDON_WORK);
    if (c == NULL) return; /* its lease lapses */
    ebb_provider_token *copy = ebb__call_room(&c->call, sizeof *copy);
    if (copy != NULL) *copy = token;
    c->node = w->work_node.node;
    c->tokens = copy;
    c->tokens_n = copy != NULL;
    ebb__worker_tell(cx, &c->call);
}

void ebb__activity_start(ebb_cx *cx, ebb_worker *w, ebb__registered_activity *r,
                         const ebb_provider_work_item *item) {
    ebb_activity *a = activity_new(w, r, item);
    if (a == NULL) {
        give_token_back(cx, w, item->token);
        return;
    }
    link_activity(a);
    r->running++;
    w->stats.running++;
    if (ebb_id_status(ebb_fiber_spawn(cx, w->unit, supervisor, a).id) == EBB_OK) return;
    give_token_back(cx, w, item->token);
    activity_over(a);
}

/* ---- the claimer -------------------------------------------------------------------------------------------------------------------- */

const char *ebb__queue_of(ebb_provider_call *c, const char *name, const char *tag) {
    char queue[2 * EBB_DURABLE_ID + 2];
    (void)snprintf(queue, sizeof queue, "%s%s%s", name, tag != NULL ? "@" : "", tag != NULL ? tag : "");
    return ebb__call_text(c, queue);
}

static ebb_provider_fetch_work_call *fetch_call(ebb_worker *w) {
    size_t names = 0;
    ebb_provider_fetch_work_call *c = ebb__call_new(w->gate, EBB_PROVIDER_FETCH_WORK);
    if (c == NULL) return NULL;
    for (const ebb__registered_activity *r = w->handlers; r != NULL; r = r->next) names++;
    ebb_provider_queue *queues = ebb__call_room(&c->call, names * (w->tags_n + 1) * sizeof *queues);
    for (const ebb__registered_activity *r = w->handlers; queues != NULL && r != NULL; r = r->next) {
        const uint32_t most = places_of(w, r);
        for (size_t i = 0; most > 0 && i <= w->tags_n; i++)
            queues[c->queues_n++] =
                (ebb_provider_queue){ebb__queue_of(&c->call, r->name, i > 0 ? w->tags[i - 1] : NULL), most};
    }
    c->node = w->work_node.node;
    c->queues = queues;
    c->most = w->opts.activities - w->stats.running;
    c->lease = w->opts.lease;
    c->suspects = w->work_suspects && w->stats.running == 0;
    if (!w->closing) return c;
    c->only_n = ebb__store_awaited(w->store, &c->call, &c->only);
    if (c->only_n != 0) return c;
    ebb__call_free(&c->call);
    return NULL;
}

static void start_all(ebb_cx *cx, ebb_worker *w, const ebb_provider_fetch_work_call *c) {
    w->stats.queue_age = 0;
    for (size_t i = 0; i < c->items_n; i++) {
        const ebb_provider_work_item *item = &c->items[i];
        ebb__registered_activity *r = ebb__handler_of(w, item->name, strlen(item->name));
        if (item->waited > w->stats.queue_age) w->stats.queue_age = item->waited;
        if (r != NULL && ebb__worker_serves(w, item->key) && ebb__worker_has_place(w, r))
            ebb__activity_start(cx, w, r, item);
        else give_token_back(cx, w, item->token);
    }
}

/* Returns when to look again. */
static uint64_t look(ebb_cx *cx, ebb_worker *w) {
    ebb_status st = EBB_ERR_NOMEM;
    ebb_provider_fetch_work_call *c = fetch_call(w);
    if (c != NULL) c = ebb__worker_ask(cx, &c->call, &st);
    if (c == NULL || st != EBB_OK) {
        if (c != NULL) ebb__call_free(&c->call);
        if (st != EBB_CANCELLED) w->stats.retried++;
        return ebb_now(cx) + EBB_SECOND;
    }
    w->work_alone = c->suspects && c->items_n == 1 && c->items[0].attempts > 1;
    w->work_suspects = c->suspects_wait && !c->suspects;
    if (w->work_suspects || c->items_n > 0) w->look_for_work = true; /* until there is nothing */
    start_all(cx, w, c);
    const uint64_t again = ebb__worker_again(cx, w, c->again);
    ebb__call_free(&c->call);
    return again;
}

static bool may_look(const ebb_worker *w) {
    if (w->work_node.node.id == 0 || w->work_alone || w->stats.running >= w->opts.activities) return false;
    if (!ebb__worker_may_fetch(w)) return false;
    return !w->work_suspects || w->stats.running == 0;
}

ebb_status ebb__claimer(ebb_cx *cx, void *worker) {
    ebb_worker *w = worker;
    uint64_t next = 0;
    while (!w->over && w->handlers != NULL) {
        const bool may = may_look(w);
        if (may && (w->look_for_work || ebb_now(cx) >= next)) {
            w->look_for_work = false;
            next = look(cx, w);
        } else if (!ebb__worker_nap(cx, &w->claimer, may ? next : EBB_FOREVER)) {
            break;
        }
        if (ebb_checkpoint(cx) != EBB_OK) break;
    }
    w->claimer.task.id = 0;
    ebb__worker_wake(w, &w->main);
    return EBB_OK;
}
