/* Who has subscribed to a kind and key. A topic exists while it has a subscription, or one is staged. */
#include "machine/machine.h"

#include "base/hash.h"

#include <assert.h>

/* ---- topics ----------------------------------------------------------------------------------------------------- */

static ebb__topic *topic_at(const ebb_machines *ms, uint32_t i) {
    return ebb__slab_at(&ms->topics, i);
}

static ebb__subscription *subscription_at(const ebb_machines *ms, uint32_t i) {
    return ebb__slab_at(&ms->subscriptions, i);
}

/* Different topics may have the same key of the map; 0 is none. */
static uint64_t map_key(uint16_t kind, uint64_t key) {
    uint64_t h = ebb__hash_word(key + ((uint64_t)kind << 48) + kind);
    return h == 0 ? 1 : h;
}

static uint32_t find_topic(const ebb_machines *ms, uint16_t kind, uint64_t key) {
    const uint32_t *first = ebb__map_find(&ms->topic_of, map_key(kind, key));
    uint32_t i = first == NULL ? 0 : *first;
    while (i != 0 && (topic_at(ms, i)->kind != kind || topic_at(ms, i)->key != key))
        i = topic_at(ms, i)->next;
    return i;
}

static uint32_t new_topic(ebb_machines *ms, uint16_t kind, uint64_t key, ebb_status *st) {
    *st = ebb__slab_reserve(&ms->topics, &ms->allocator);
    if (*st != EBB_OK) return 0;
    uint32_t *first = ebb__map_put(&ms->topic_of, map_key(kind, key));
    if (first == NULL) {
        *st = EBB_ERR_NOMEM;
        return 0;
    }
    uint32_t i = ebb__slab_take(&ms->topics);
    ebb__topic *t = topic_at(ms, i);
    *t = (ebb__topic){.generation = t->generation, .next = *first, .key = key, .kind = kind};
    *first = i;
    return i;
}

static void maybe_free_topic(ebb_machines *ms, uint32_t i) {
    ebb__topic *t = topic_at(ms, i);
    if (t->first != 0 || t->staged > 0) return;
    uint64_t key = map_key(t->kind, t->key);
    uint32_t *at = ebb__map_find(&ms->topic_of, key);
    uint32_t first = *at == i ? t->next : *at;
    for (uint32_t k = first; k != 0; k = topic_at(ms, k)->next) {
        if (topic_at(ms, k)->next == i) topic_at(ms, k)->next = t->next;
    }
    *at = first;
    if (first == 0) ebb__map_remove(&ms->topic_of, key);
    ebb__slab_give(&ms->topics, i);
}

/* ---- subscriptions ------------------------------------------------------------------------------------------------ */

/* A machine may have many topics, and a topic many machines: the shorter list decides how long it takes. */
static uint32_t find_subscription(const ebb_machines *ms, uint32_t topic, uint32_t machine) {
    const ebb__machine_more *more = ebb__machine_at(ms, machine)->more;
    uint32_t i = topic_at(ms, topic)->first, k = more == NULL ? 0 : more->subscriptions;
    while (i != 0 && k != 0) {
        const ebb__subscription *s = subscription_at(ms, i), *own = subscription_at(ms, k);
        if (s->machine == machine) return i;
        if (own->topic == topic) return k;
        i = s->next;
        k = own->own_next;
    }
    return 0;
}

static void remove_subscription(ebb_machines *ms, uint32_t i) {
    ebb__subscription *s = subscription_at(ms, i);
    ebb__topic *t = topic_at(ms, s->topic);
    ebb__machine_more *more = ebb__machine_at(ms, s->machine)->more;
    if (s->prev != 0) subscription_at(ms, s->prev)->next = s->next;
    else t->first = s->next;
    if (s->next != 0) subscription_at(ms, s->next)->prev = s->prev;
    else t->last = s->prev;
    if (s->own_prev != 0) subscription_at(ms, s->own_prev)->own_next = s->own_next;
    else more->subscriptions = s->own_next;
    if (s->own_next != 0) subscription_at(ms, s->own_next)->own_prev = s->own_prev;
    more->n_subscriptions--;
    ebb__machine_note(ms, EBB_EV_MACHINE_UNSUBSCRIBED, ebb__machine_id(ms, s->machine), 0, t->kind, t->key);
    uint32_t topic = s->topic;
    ebb__slab_give(&ms->subscriptions, i);
    maybe_free_topic(ms, topic);
}

void ebb__subscriptions_end(ebb_machines *ms, ebb__machine *m) {
    while (m->more->subscriptions != 0) remove_subscription(ms, m->more->subscriptions);
}

static ebb_status stage_subscription(ebb_machines *ms, uint16_t kind, uint64_t key) {
    ebb_status st = ebb__slab_reserve(&ms->subscriptions, &ms->allocator);
    if (st == EBB_OK && ebb__machine_more_of(ms, ms->running) == NULL) st = EBB_ERR_NOMEM;
    ebb__cell *c = st == EBB_OK ? ebb__cell_new(ms, kind, NULL, 0, &st) : NULL;
    if (c == NULL) return st;
    uint32_t topic = find_topic(ms, kind, key);
    if (topic == 0) topic = new_topic(ms, kind, key, &st);
    if (topic == 0) {
        c->what = EBB__SUBSCRIBE;
        ebb__cell_free(ms, c);
        return st;
    }
    topic_at(ms, topic)->staged++;
    uint32_t i = ebb__slab_take(&ms->subscriptions);
    ebb__subscription *s = subscription_at(ms, i);
    *s = (ebb__subscription){.generation = s->generation, .machine = ms->running_index, .topic = topic};
    c->ref = i;
    ebb__stage(ms, c, EBB__SUBSCRIBE, ms->running_index);
    return EBB_OK;
}

ebb_status ebb_machine_subscribe(ebb_machines *ms, uint16_t kind, uint64_t key) {
    if (ms->running == NULL) return EBB_ERR_NOT_TASK;
    if (kind == EBB_MACHINE_REQUEST_FAILED) return EBB_ERR_INVALID;
    return stage_subscription(ms, kind, key);
}

ebb_status ebb_machine_unsubscribe(ebb_machines *ms, uint16_t kind, uint64_t key) {
    ebb_status st;
    if (ms->running == NULL) return EBB_ERR_NOT_TASK;
    if (kind == EBB_MACHINE_REQUEST_FAILED) return EBB_ERR_INVALID;
    ebb__cell *c = ebb__cell_new(ms, kind, NULL, 0, &st);
    if (c == NULL) return st;
    c->body.key = key;
    ebb__stage(ms, c, EBB__UNSUBSCRIBE, ms->running_index);
    return EBB_OK;
}

void ebb__subscribe_rollback(ebb_machines *ms, ebb__cell *c) {
    uint32_t topic = subscription_at(ms, c->ref)->topic;
    ebb__slab_give(&ms->subscriptions, c->ref);
    topic_at(ms, topic)->staged--;
    maybe_free_topic(ms, topic);
}

void ebb__subscribe_commit(ebb_machines *ms, ebb__cell *c) {
    ebb__subscription *s = subscription_at(ms, c->ref);
    ebb__topic *t = topic_at(ms, s->topic);
    ebb__machine *m = ebb__machine_at(ms, s->machine);
    if (m->lifecycle > EBB_MACHINE_RUNNING || find_subscription(ms, s->topic, s->machine) != 0) {
        ebb__subscribe_rollback(ms, c);
        return;
    }
    t->staged--;
    s->prev = t->last;
    if (t->last != 0) subscription_at(ms, t->last)->next = c->ref;
    else t->first = c->ref;
    t->last = c->ref;
    s->own_next = m->more->subscriptions;
    if (s->own_next != 0) subscription_at(ms, s->own_next)->own_prev = c->ref;
    m->more->subscriptions = c->ref;
    m->more->n_subscriptions++;
    ebb__machine_note(ms, EBB_EV_MACHINE_SUBSCRIBED, ebb__machine_id(ms, s->machine), 0, t->kind, t->key);
}

void ebb__unsubscribe_commit(ebb_machines *ms, const ebb__cell *c) {
    uint32_t topic = find_topic(ms, c->kind, c->body.key);
    uint32_t i = topic == 0 ? 0 : find_subscription(ms, topic, c->to);
    if (i != 0) remove_subscription(ms, i);
}

/* ---- publishing ---------------------------------------------------------------------------------------------------- */

static ebb_status check_room(ebb_machines *ms, uint32_t topic, uint16_t kind) {
    for (uint32_t i = topic_at(ms, topic)->first; i != 0; i = subscription_at(ms, i)->next) {
        uint32_t machine = subscription_at(ms, i)->machine;
        const ebb__machine *m = ebb__machine_at(ms, machine);
        if (m->places == m->mailbox)
            return ebb__refuse(ms, (ebb_machine){ebb__machine_id(ms, machine)}, kind, EBB_ERR_MAILBOX_FULL);
    }
    return EBB_OK;
}

static ebb_status stage_all(ebb_machines *ms, uint32_t topic, uint16_t kind, const void *payload,
                            size_t size) {
    const ebb_machine_kind *k = ms->opts.kinds == NULL ? NULL : &ms->opts.kinds[kind];
    bool first = true;
    for (uint32_t i = topic_at(ms, topic)->first; i != 0; i = subscription_at(ms, i)->next) {
        ebb_status st;
        ebb__cell *c = ebb__cell_new(ms, kind, payload, size, &st);
        if (c == NULL) return st;
        if (!first && k != NULL && k->keep != NULL) k->keep(ebb__cell_payload(c));
        first = false;
        c->flags |= EBB__PLACE;
        ebb__machine_at(ms, subscription_at(ms, i)->machine)->places++;
        ebb__stage(ms, c, EBB__MESSAGE, subscription_at(ms, i)->machine);
    }
    return EBB_OK;
}

/* Nobody has subscribed. */
static ebb_status stage_nobody(ebb_machines *ms, uint16_t kind, const void *payload, size_t size) {
    ebb_status st;
    ebb__cell *c = ebb__cell_new(ms, kind, payload, size, &st);
    if (c != NULL) ebb__stage(ms, c, EBB__NOBODY, 0);
    return st;
}

/* If staging fails in the middle, the payload's references stay the caller's: the first copy is let go without
 * `drop`, since it counts none. */
static void undo(ebb_machines *ms, ebb__cell **from, uint32_t effects, uint32_t staged_bytes) {
    ebb__cell *c = *from;
    if (c != NULL) {
        *from = c->next;
        ebb__machine_at(ms, c->to)->places--;
        c->what = EBB__UNSUBSCRIBE;
        ebb__cell_free(ms, c);
    }
    ebb__log_undo(ms, from);
    ms->effects = effects;
    ms->staged_bytes = staged_bytes;
}

ebb_status ebb_machine_publish(ebb_machines *ms, uint16_t kind, uint64_t key, const void *payload,
                               size_t size) {
    ebb_status st = ebb__stage_enter(ms, false);
    if (st != EBB_OK) return st;
    if (kind == EBB_MACHINE_REQUEST_FAILED || kind >= ms->opts.n_kinds) return EBB_ERR_INVALID;
    uint32_t topic = find_topic(ms, kind, key), effects = ms->effects, staged_bytes = ms->staged_bytes;
    ebb__cell **from = ms->log_end;
    if (topic == 0 || topic_at(ms, topic)->first == 0) {
        st = stage_nobody(ms, kind, payload, size);
    } else {
        st = check_room(ms, topic, kind);
        if (st == EBB_OK && (st = stage_all(ms, topic, kind, payload, size)) != EBB_OK)
            undo(ms, from, effects, staged_bytes);
    }
    ebb__stage_leave(ms);
    return st;
}
