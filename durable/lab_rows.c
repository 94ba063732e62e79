/* The rows of the lab provider: made, found, inserted, deleted. */
#include "durable/lab_rows.h"

#include "base/alloc.h"
#include "base/hash.h"

/* ---- lists ---------------------------------------------------------------------------------------------------- */

void ebb__lab_insert(ebb__lab_list *l, ebb__lab_links *at, ebb__lab_links *before) {
    ebb__lab_links *prev = before != NULL ? before->prev : l->last;
    at->next = before;
    at->prev = prev;
    if (prev != NULL) prev->next = at;
    else l->first = at;
    if (before != NULL) before->prev = at;
    else l->last = at;
    l->n++;
}

void ebb__lab_append(ebb__lab_list *l, ebb__lab_links *at) {
    ebb__lab_insert(l, at, NULL);
}

void ebb__lab_unlink(ebb__lab_list *l, ebb__lab_links *at) {
    if (at->prev != NULL) at->prev->next = at->next;
    else l->first = at->next;
    if (at->next != NULL) at->next->prev = at->prev;
    else l->last = at->prev;
    at->next = at->prev = NULL;
    l->n--;
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

typedef struct ebb__lab_block {
    struct ebb__lab_block *next; /* of a batch */
    size_t size;
    ebb__widest at[];
} block;

void *ebb__lab_make(ebb__lab_batch *b, size_t n) {
    const size_t size = sizeof(block) + n;
    block *k = b->failed ? NULL : ebb__alloc(&b->data->allocator, size);
    if (k == NULL) {
        b->failed = true;
        return NULL;
    }
    memset(k, 0, size);
    k->size = size;
    k->next = b->made;
    b->made = k;
    return k->at;
}

void ebb__lab_free(ebb__lab_data *d, void *at) {
    block *k = at != NULL ? EBB__LAB_OF(block, at, at) : NULL;
    if (k != NULL) ebb__free(&d->allocator, k, k->size);
}

void ebb__lab_undo(ebb__lab_batch *b) {
    block *next;
    for (block *k = b->made; k != NULL; k = next) {
        next = k->next;
        ebb__free(&b->data->allocator, k, k->size);
    }
    b->made = NULL;
}

void ebb__lab_free_list(ebb__lab_data *d, ebb__lab_list *l, size_t links) {
    ebb__lab_links *next;
    for (ebb__lab_links *at = l->first; at != NULL; at = next) {
        next = at->next;
        ebb__lab_free(d, (char *)at - links);
    }
    memset(l, 0, sizeof *l);
}

/* ---- made --------------------------------------------------------------------------------------------------------- */

/* Puts a copy of a blob at *end, which moves behind it and a 0. */
static ebb_blob put(char **end, ebb_blob from) {
    ebb_blob to = {*end, from.n};
    if (from.n != 0) memcpy(*end, from.at, from.n);
    *end += from.n + 1;
    return to;
}

static ebb_blob text_of(const char *text) {
    return text != NULL ? ebb_blob_text(text) : (ebb_blob){"", 0};
}

ebb__lab_turn *ebb__lab_turn_new(ebb__lab_batch *b, ebb_blob body) {
    ebb__lab_turn *t = ebb__lab_make(b, sizeof *t + body.n + 1);
    char *end = (char *)(t + 1);
    if (t != NULL) t->body = put(&end, body);
    return t;
}

ebb__lab_message *ebb__lab_message_new(ebb__lab_batch *b, ebb_provider_message_kind kind, ebb_blob body) {
    ebb__lab_message *m = ebb__lab_make(b, sizeof *m + body.n + 1);
    char *end = (char *)(m + 1);
    if (m == NULL) return NULL;
    m->kind = kind;
    m->body = put(&end, body);
    return m;
}

ebb__lab_timer *ebb__lab_timer_new(ebb__lab_batch *b) {
    return ebb__lab_make(b, sizeof(ebb__lab_timer));
}

static ebb__lab_queue *queue_of(ebb__lab_batch *b, const char *name) {
    ebb__lab_queue *q = b->data->queues;
    while (q != NULL && strcmp(q->name, name) != 0) q = q->next;
    if (q != NULL) return q;
    ebb__lab_batch apart = {.data = b->data}; /* it stays, whatever becomes of the call */
    q = ebb__lab_make(&apart, sizeof *q + strlen(name) + 1);
    b->failed |= apart.failed;
    if (q == NULL) return NULL;
    strcpy(q->name, name);
    q->next = b->data->queues;
    b->data->queues = q;
    return q;
}

ebb__lab_work *ebb__lab_work_new(ebb__lab_batch *b, const ebb_provider_work *from) {
    const ebb_blob name = text_of(from->name), session = text_of(from->session);
    ebb__lab_queue *q = queue_of(b, from->queue != NULL ? from->queue : "");
    ebb__lab_work *w = ebb__lab_make(b, sizeof *w + name.n + session.n + from->input.n + 3);
    char *end = (char *)(w + 1);
    if (w == NULL) return NULL;
    w->queue = q;
    w->activity = from->activity;
    w->attempt = from->attempt;
    w->name = put(&end, name).at;
    w->session = put(&end, session).at;
    w->input = put(&end, from->input);
    return w;
}

ebb__lab_value *ebb__lab_value_new(ebb__lab_batch *b, const ebb_provider_value *from) {
    const ebb_blob key = text_of(from->key);
    ebb__lab_value *v = ebb__lab_make(b, sizeof *v + key.n + from->value.n + 2);
    if (v == NULL) return NULL;
    char *end = v->key;
    (void)put(&end, key);
    if (from->value.at != NULL) v->value = put(&end, from->value);
    return v;
}

ebb__lab_dedup *ebb__lab_dedup_new(ebb__lab_batch *b, const char *id) {
    ebb__lab_dedup *d = ebb__lab_make(b, sizeof *d + strlen(id) + 1);
    if (d != NULL) strcpy(d->id, id);
    return d;
}

ebb__lab_bytes *ebb__lab_bytes_new(ebb__lab_batch *b, ebb_blob from) {
    ebb__lab_bytes *to = ebb__lab_make(b, sizeof *to + from.n + 1);
    if (to == NULL) return NULL;
    to->n = from.n;
    if (from.n != 0) memcpy(to->at, from.at, from.n);
    return to;
}

enum { SEQ_FIRST = 1 << 30 }; /* messages that are put at the front have lower ones */

ebb__lab_instance *ebb__lab_instance_new(ebb__lab_batch *b, const char *id, const char *name,
                                         const char *parent, ebb_blob input) {
    ebb__lab_instance *i = ebb__lab_make(b, sizeof *i);
    ebb__lab_bytes *of[] = {ebb__lab_bytes_new(b, text_of(id)), ebb__lab_bytes_new(b, text_of(name)),
                            ebb__lab_bytes_new(b, text_of(parent)), ebb__lab_bytes_new(b, input)};
    if (b->failed) return NULL;
    i->id = of[0];
    i->name = of[1];
    i->parent = of[2];
    i->input = of[3];
    i->execution = 1;
    i->state = EBB_INSTANCE_RUNNING;
    i->first_seq = i->next_seq = SEQ_FIRST;
    return i;
}

void ebb__lab_bytes_set(ebb__lab_data *d, ebb__lab_bytes **at, ebb__lab_bytes *to) {
    ebb__lab_free(d, *at);
    *at = to;
}

/* ---- hash tables: one that can't grow is slow, and no failure ------------------------------------------------------ */

static uint64_t hash_of(const char *id) {
    ebb__hash h = ebb__hash_start(1);
    for (; *id != 0; id++) h = ebb__hash_mix(h, (unsigned char)*id);
    return ebb__hash_finish(h).lo;
}

static uint64_t work_hash(uint64_t key, uint64_t execution, uint64_t activity) {
    return ebb__hash_word(key ^ ebb__hash_word(execution ^ ebb__hash_word(activity)));
}

static void enter(ebb__lab_instance **ids, size_t room, ebb__lab_instance *i) {
    ebb__lab_instance **by_id = &ids[i->hash & (room - 1)];
    ebb__lab_instance **by_key = &ids[room + (ebb__hash_word(i->key) & (room - 1))];
    i->same_id = *by_id;
    *by_id = i;
    i->same_key = *by_key;
    *by_key = i;
}

static void grow_ids(ebb__lab_data *d) {
    const size_t room = 2 * d->ids_room;
    ebb__lab_instance **to = ebb__alloc(&d->allocator, 2 * room * sizeof(void *));
    if (to == NULL) return;
    memset((void *)to, 0, 2 * room * sizeof(void *));
    for (ebb__lab_links *at = d->instances.first; at != NULL; at = at->next)
        enter(to, room, EBB__LAB_OF(ebb__lab_instance, links, at));
    ebb__free(&d->allocator, (void *)d->ids, 2 * d->ids_room * sizeof(void *));
    d->ids = to;
    d->ids_room = room;
}

static void move_work(ebb__lab_work **to, size_t room, ebb__lab_work *w) {
    const uint64_t h = work_hash(w->instance->key, w->execution, w->activity) & (room - 1);
    w->same_hash = to[h];
    to[h] = w;
}

static void grow_work(ebb__lab_data *d) {
    const size_t room = 2 * d->by_work_room;
    ebb__lab_work *next, **to = ebb__alloc(&d->allocator, room * sizeof(void *));
    if (to == NULL) return;
    memset((void *)to, 0, room * sizeof(void *));
    for (size_t i = 0; i < d->by_work_room; i++) {
        for (ebb__lab_work *w = d->by_work[i]; w != NULL; w = next) {
            next = w->same_hash;
            move_work(to, room, w);
        }
    }
    ebb__free(&d->allocator, (void *)d->by_work, d->by_work_room * sizeof(void *));
    d->by_work = to;
    d->by_work_room = room;
}

/* ---- the store's data ----------------------------------------------------------------------------------------- */

enum { FIRST_ROOM = 64 };

ebb_status ebb__lab_data_init(ebb__lab_data *d) {
    const size_t ids = 2 * FIRST_ROOM * sizeof(void *), work = FIRST_ROOM * sizeof(void *);
    d->ids = ebb__alloc(&d->allocator, ids);
    d->by_work = ebb__alloc(&d->allocator, work);
    d->ids_room = d->by_work_room = FIRST_ROOM;
    if (d->ids == NULL || d->by_work == NULL) return EBB_ERR_NOMEM;
    memset((void *)d->ids, 0, ids);
    memset((void *)d->by_work, 0, work);
    return EBB_OK;
}

void ebb__lab_data_fini(ebb__lab_data *d) {
    ebb__lab_self nobody = {.data = d};
    ebb__lab_queue *next;
    while (d->instances.first != NULL)
        ebb__lab_delete_instance(&nobody, EBB__LAB_OF(ebb__lab_instance, links, d->instances.first));
    for (ebb__lab_queue *q = d->queues; q != NULL; q = next) {
        next = q->next;
        ebb__lab_free(d, q);
    }
    for (ebb__lab_links *at = d->nodes.first; at != NULL; at = at->next)
        ebb__lab_free(d, EBB__LAB_OF(ebb__lab_node, links, at)->runs);
    ebb__lab_free_list(d, &d->nodes, offsetof(ebb__lab_node, links));
    ebb__lab_free_list(d, &d->sessions, offsetof(ebb__lab_session, links));
    ebb__free(&d->allocator, (void *)d->ids, 2 * d->ids_room * sizeof(void *));
    ebb__free(&d->allocator, (void *)d->by_work, d->by_work_room * sizeof(void *));
}

/* ---- found ---------------------------------------------------------------------------------------------------------- */

ebb__lab_instance *ebb__lab_find(const ebb__lab_data *d, const char *id) {
    ebb__lab_instance *i = d->ids[hash_of(id) & (d->ids_room - 1)];
    while (i != NULL && strcmp(i->id->at, id) != 0) i = i->same_id;
    return i;
}

ebb__lab_instance *ebb__lab_find_key(const ebb__lab_data *d, uint64_t key) {
    ebb__lab_instance *i = d->ids[d->ids_room + (ebb__hash_word(key) & (d->ids_room - 1))];
    while (i != NULL && i->key != key) i = i->same_key;
    return i;
}

ebb__lab_work *ebb__lab_find_work(const ebb__lab_data *d, uint64_t key, uint64_t execution,
                                  uint64_t activity) {
    ebb__lab_work *w = d->by_work[work_hash(key, execution, activity) & (d->by_work_room - 1)];
    while (w != NULL && (w->instance->key != key || w->execution != execution || w->activity != activity))
        w = w->same_hash;
    return w;
}

ebb__lab_message *ebb__lab_find_message(const ebb__lab_instance *i, uint64_t seq) {
    for (ebb__lab_links *at = i->messages.first; at != NULL; at = at->next) {
        ebb__lab_message *m = EBB__LAB_OF(ebb__lab_message, links, at);
        if (m->seq >= seq) return m->seq == seq ? m : NULL;
    }
    return NULL;
}

ebb__lab_value *ebb__lab_find_value(const ebb__lab_instance *i, const char *key) {
    for (ebb__lab_links *at = i->values.first; at != NULL; at = at->next) {
        ebb__lab_value *v = EBB__LAB_OF(ebb__lab_value, links, at);
        if (strcmp(v->key, key) == 0) return v;
    }
    return NULL;
}

ebb__lab_node *ebb__lab_find_node(const ebb__lab_data *d, ebb_provider_node node) {
    for (ebb__lab_links *at = d->nodes.first; at != NULL; at = at->next) {
        ebb__lab_node *n = EBB__LAB_OF(ebb__lab_node, links, at);
        if (n->id == node.id && n->epoch == node.epoch) return n;
    }
    return NULL;
}

bool ebb__lab_is_live(const ebb__lab_data *d, ebb_provider_node node) {
    const ebb__lab_node *n = ebb__lab_find_node(d, node);
    return n != NULL && n->until > d->now;
}

/* ---- hints ------------------------------------------------------------------------------------------------------------ */

static void hint_all(ebb__lab_self *s, const ebb_provider_hint *h) {
    for (ebb__lab_links *at = s->data->stores.first; at != NULL; at = at->next) {
        const ebb_provider_host *to = EBB__LAB_OF(ebb__lab_self, links, at)->host;
        ebb_provider_hint copy = *h;
        copy.committed = to->boot(to->ctx);
        to->hint(to->ctx, &copy);
    }
}

void ebb__lab_hint(ebb__lab_self *s, ebb_provider_hint_kind kind, const ebb__lab_instance *i) {
    hint_all(s, &(ebb_provider_hint){.kind = kind, .key = i->key, .execution = i->execution, .queue = ""});
}

void ebb__lab_hint_work(ebb__lab_self *s, const char *queue) {
    hint_all(s, &(ebb_provider_hint){.kind = EBB_PROVIDER_HINT_WORK, .queue = queue});
}

static void hint_gone(ebb__lab_self *s, const ebb__lab_work *w, ebb_cancel_kind cause) {
    hint_all(s, &(ebb_provider_hint){.kind = EBB_PROVIDER_HINT_GONE,
                                     .cause = cause,
                                     .key = w->instance->key,
                                     .execution = w->execution,
                                     .activity = w->activity,
                                     .queue = w->queue->name});
}

/* ---- inserted ----------------------------------------------------------------------------------------------------------- */

void ebb__lab_add_instance(ebb__lab_self *s, ebb__lab_instance *i) {
    ebb__lab_data *d = s->data;
    if (d->instances.n >= d->ids_room) grow_ids(d);
    i->key = ++d->last_key;
    i->started = d->now;
    i->hash = hash_of(i->id->at);
    enter(d->ids, d->ids_room, i);
    ebb__lab_append(&d->instances, &i->links);
}

void ebb__lab_add_turn(ebb__lab_instance *i, ebb__lab_turn *t) {
    ebb__lab_append(&i->turns, &t->links);
}

static void make_ready(ebb__lab_self *s, ebb__lab_instance *i) {
    if (i->messages.n == 0) {
        i->waits_since = s->data->now;
        ebb__lab_append(&s->data->ready, &i->ready_links);
    }
    if (i->state == EBB_INSTANCE_RUNNING) ebb__lab_hint(s, EBB_PROVIDER_HINT_TURNS, i);
}

void ebb__lab_add_message(ebb__lab_self *s, ebb__lab_instance *i, ebb__lab_message *m, bool front) {
    make_ready(s, i);
    m->at = s->data->now;
    m->seq = front ? --i->first_seq : i->next_seq++;
    ebb__lab_insert(&i->messages, &m->links, front ? i->messages.first : NULL);
}

void ebb__lab_add_timer(ebb__lab_self *s, ebb__lab_instance *i, ebb__lab_timer *t) {
    ebb__lab_list *due = &s->data->due;
    ebb__lab_links *after = due->last;
    while (after != NULL && EBB__LAB_OF(ebb__lab_timer, due_links, after)->due > t->due) after = after->prev;
    ebb__lab_insert(due, &t->due_links, after != NULL ? after->next : due->first);
    t->instance = i;
    ebb__lab_append(&i->timers, &t->links);
    ebb__lab_hint(s, EBB_PROVIDER_HINT_TURNS, i); /* who sleeps until a later one has to know */
}

/* Idle work stands in the order in which it was made, also after a claim. */
static void make_idle(ebb__lab_work *w) {
    ebb__lab_list *l = &w->queue->idle;
    ebb__lab_links *after = l->last;
    while (after != NULL && EBB__LAB_OF(ebb__lab_work, queue_links, after)->number > w->number)
        after = after->prev;
    ebb__lab_insert(l, &w->queue_links, after != NULL ? after->next : l->first);
}

void ebb__lab_add_work(ebb__lab_self *s, ebb__lab_instance *i, ebb__lab_work *w) {
    ebb__lab_data *d = s->data;
    if (d->by_work_n++ >= d->by_work_room) grow_work(d);
    w->instance = i;
    w->number = ++d->last_number;
    w->visible = d->now;
    move_work(d->by_work, d->by_work_room, w);
    ebb__lab_append(&i->work, &w->links);
    make_idle(w);
}

void ebb__lab_add_value(ebb__lab_data *d, ebb__lab_instance *i, ebb__lab_value *v) {
    ebb__lab_value *old = ebb__lab_find_value(i, v->key);
    if (old != NULL) {
        ebb__lab_unlink(&i->values, &old->links);
        ebb__lab_free(d, old);
    }
    if (v->value.at != NULL) ebb__lab_append(&i->values, &v->links);
    else ebb__lab_free(d, v);
}

/* ---- deleted ------------------------------------------------------------------------------------------------------------- */

void ebb__lab_delete_message(ebb__lab_data *d, ebb__lab_instance *i, ebb__lab_message *m) {
    ebb__lab_unlink(&i->messages, &m->links);
    ebb__lab_free(d, m);
    ebb__lab_unlink(&d->ready, &i->ready_links);
    if (i->messages.n == 0) return;
    /* its place among the others is that of its oldest message */
    i->waits_since = EBB__LAB_OF(ebb__lab_message, links, i->messages.first)->at;
    ebb__lab_links *after = d->ready.last;
    while (after != NULL && EBB__LAB_OF(ebb__lab_instance, ready_links, after)->waits_since > i->waits_since)
        after = after->prev;
    ebb__lab_insert(&d->ready, &i->ready_links, after != NULL ? after->next : d->ready.first);
}

void ebb__lab_delete_timer(ebb__lab_data *d, ebb__lab_timer *t) {
    ebb__lab_unlink(&d->due, &t->due_links);
    ebb__lab_unlink(&t->instance->timers, &t->links);
    ebb__lab_free(d, t);
}

void ebb__lab_delete_work(ebb__lab_self *s, ebb__lab_work *w, ebb_cancel_kind cause) {
    ebb__lab_data *d = s->data;
    ebb__lab_work **at =
        &d->by_work[work_hash(w->instance->key, w->execution, w->activity) & (d->by_work_room - 1)];
    while (*at != w) at = &(*at)->same_hash;
    *at = w->same_hash;
    d->by_work_n--;
    if (cause != EBB_CANCEL_NONE && !ebb__token_is_none(w->claim.token)) hint_gone(s, w, cause);
    ebb__lab_unlink(ebb__token_is_none(w->claim.token) ? &w->queue->idle : &w->queue->claimed,
                    &w->queue_links);
    ebb__lab_unlink(&w->instance->work, &w->links);
    ebb__lab_free(d, w);
}

void ebb__lab_delete_values(ebb__lab_data *d, ebb__lab_instance *i) {
    ebb__lab_free_list(d, &i->values, offsetof(ebb__lab_value, links));
}

void ebb__lab_delete_dedups(ebb__lab_data *d, ebb__lab_instance *i) {
    ebb__lab_free_list(d, &i->dedups, offsetof(ebb__lab_dedup, links));
}

void ebb__lab_drop_messages(ebb__lab_self *s, ebb__lab_instance *i, uint64_t execution) {
    ebb__lab_links *next;
    for (ebb__lab_links *at = i->messages.first; at != NULL; at = next) {
        ebb__lab_message *m = EBB__LAB_OF(ebb__lab_message, links, at);
        next = at->next;
        if (m->execution != execution) continue;
        s->stats.dropped++;
        ebb__lab_delete_message(s->data, i, m);
    }
}

static void leave_tables(ebb__lab_data *d, ebb__lab_instance *i) {
    ebb__lab_instance **at = &d->ids[i->hash & (d->ids_room - 1)];
    while (*at != i) at = &(*at)->same_id;
    *at = i->same_id;
    at = &d->ids[d->ids_room + (ebb__hash_word(i->key) & (d->ids_room - 1))];
    while (*at != i) at = &(*at)->same_key;
    *at = i->same_key;
}

static void free_instance(ebb__lab_data *d, ebb__lab_instance *i) {
    ebb__lab_bytes *of[] = {i->id, i->name, i->parent, i->input, i->result, i->custom, i->text};
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++) ebb__lab_free(d, of[k]);
    ebb__lab_free(d, i);
}

void ebb__lab_delete_instance(ebb__lab_self *s, ebb__lab_instance *i) {
    ebb__lab_data *d = s->data;
    while (i->work.first != NULL)
        ebb__lab_delete_work(s, EBB__LAB_OF(ebb__lab_work, links, i->work.first), EBB_CANCEL_USER);
    while (i->timers.first != NULL)
        ebb__lab_delete_timer(d, EBB__LAB_OF(ebb__lab_timer, links, i->timers.first));
    if (i->messages.n > 0) ebb__lab_unlink(&d->ready, &i->ready_links);
    ebb__lab_free_list(d, &i->messages, offsetof(ebb__lab_message, links));
    ebb__lab_free_list(d, &i->turns, offsetof(ebb__lab_turn, links));
    ebb__lab_delete_values(d, i);
    ebb__lab_delete_dedups(d, i);
    leave_tables(d, i);
    ebb__lab_unlink(&d->instances, &i->links);
    free_instance(d, i);
}

/* ---- claims ------------------------------------------------------------------------------------------------------------------ */

void ebb__lab_claim_work(ebb__lab_work *w, ebb_provider_node node, ebb_provider_token token, uint64_t until) {
    if (ebb__token_is_none(w->claim.token)) {
        ebb__lab_unlink(&w->queue->idle, &w->queue_links);
        ebb__lab_append(&w->queue->claimed, &w->queue_links);
    }
    w->claim = (ebb__lab_claim){token, node};
    w->until = until;
}

void ebb__lab_release_work(ebb__lab_self *s, ebb__lab_work *w, uint64_t visible) {
    ebb__lab_unlink(&w->queue->claimed, &w->queue_links);
    memset(&w->claim, 0, sizeof w->claim);
    w->until = 0;
    w->visible = visible;
    make_idle(w);
    ebb__lab_hint_work(s, w->queue->name);
}

void ebb__lab_release_instance(ebb__lab_self *s, ebb__lab_instance *i) {
    memset(&i->claim, 0, sizeof i->claim);
    i->kept = false;
    if (i->messages.n > 0) ebb__lab_hint(s, EBB_PROVIDER_HINT_TURNS, i);
}

static bool is_of(const ebb__lab_claim *c, const ebb__lab_node *n) {
    return !ebb__token_is_none(c->token) && c->node.id == n->id && c->node.epoch == n->epoch;
}

static void end_claimed_work(ebb__lab_self *s, const ebb__lab_node *n, bool refund) {
    ebb__lab_links *next;
    for (ebb__lab_queue *q = s->data->queues; q != NULL; q = q->next) {
        for (ebb__lab_links *at = q->claimed.first; at != NULL; at = next) {
            ebb__lab_work *w = EBB__LAB_OF(ebb__lab_work, queue_links, at);
            next = at->next;
            if (!is_of(&w->claim, n)) continue;
            if (refund && w->attempts > 0) w->attempts--;
            ebb__lab_release_work(s, w, s->data->now);
        }
    }
}

void ebb__lab_end_node(ebb__lab_self *s, ebb__lab_node *n, bool refund) {
    for (ebb__lab_links *at = s->data->instances.first; at != NULL; at = at->next) {
        ebb__lab_instance *i = EBB__LAB_OF(ebb__lab_instance, links, at);
        if (!is_of(&i->claim, n)) continue;
        if (refund && !i->kept && i->attempts > 0) i->attempts--;
        ebb__lab_release_instance(s, i);
    }
    if (refund) end_claimed_work(s, n, true);
    n->epoch = 0;
}
