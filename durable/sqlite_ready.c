/* Which instances have messages, and who holds them. */
#define _POSIX_C_SOURCE 200809L
#include "durable/sqlite_ready.h"

#include <stdlib.h>
#include <string.h>

static void *on_heap(void *ctx, void *p, size_t old_n, size_t n) {
    (void)ctx;
    (void)old_n;
    if (n != 0) return realloc(p, n);
    free(p);
    return NULL;
}

ebb_allocator ebb__sqlite_heap(void) {
    return (ebb_allocator){on_heap, NULL};
}

void ebb__sqlite_ready_init(ebb__sqlite_ready *r, pthread_mutex_t *lock) {
    memset(r, 0, sizeof *r);
    r->lock = lock;
    ebb__map_init(&r->entries, ebb__sqlite_heap(), sizeof(ebb__sqlite_entry *));
}

/* ---- lists ---------------------------------------------------------------------------------------------------- */

void ebb__sqlite_entry_take(ebb__sqlite_entry *e) {
    if (e->in == NULL) return;
    if (e->prev != NULL) e->prev->next = e->next;
    else e->in->first = e->next;
    if (e->next != NULL) e->next->prev = e->prev;
    else e->in->last = e->prev;
    e->prev = e->next = NULL;
    e->in = NULL;
}

/* Looks for the place from both ends: new messages come last, what is given back comes first. */
static void put(ebb__sqlite_list *l, ebb__sqlite_entry *e) {
    ebb__sqlite_entry *before = l->last, *after = l->first;
    while (before != NULL && before->seq > e->seq && after != NULL && after->seq <= e->seq) {
        before = before->prev;
        after = after->next;
    }
    if (before == NULL || before->seq <= e->seq) after = before != NULL ? before->next : l->first;
    else before = after != NULL ? after->prev : l->last;
    e->prev = before;
    e->next = after;
    if (before != NULL) before->next = e;
    else l->first = e;
    if (after != NULL) after->prev = e;
    else l->last = e;
    e->in = l;
}

/* ---- types ---------------------------------------------------------------------------------------------------- */

static void type_unuse(ebb__sqlite_ready *r, ebb__sqlite_type *t) {
    if (t == NULL || --t->used != 0) return;
    ebb__sqlite_type **at = &r->types;
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    free(t);
}

/* NULL: no memory; the entry is looked at again then. */
static ebb__sqlite_type *type_of(ebb__sqlite_ready *r, const char *name, uint32_t version) {
    for (ebb__sqlite_type *t = r->types; t != NULL; t = t->next)
        if (t->version == version && strcmp(t->name, name) == 0) return t;
    const size_t n = strlen(name) + 1;
    ebb__sqlite_type *t = calloc(1, sizeof *t + n);
    if (t == NULL) return NULL;
    memcpy(t->name, name, n);
    t->version = version;
    t->next = r->types;
    r->types = t;
    return t;
}

void ebb__sqlite_entry_type(ebb__sqlite_ready *r, ebb__sqlite_entry *e, const char *name, uint32_t version) {
    ebb__sqlite_type *before = e->type;
    const bool listed = before != NULL && e->in == &before->list;
    if (listed) ebb__sqlite_entry_take(e);
    e->type = name != NULL ? type_of(r, name, version) : NULL;
    if (e->type != NULL) e->type->used++;
    type_unuse(r, before);
    if (listed) ebb__sqlite_entry_place(r, e);
}

/* ---- entries -------------------------------------------------------------------------------------------------- */

ebb__sqlite_entry *ebb__sqlite_entry_find(const ebb__sqlite_ready *r, uint64_t key) {
    ebb__sqlite_entry **at = key != 0 ? ebb__map_find(&r->entries, key) : NULL;
    return at != NULL ? *at : NULL;
}

void ebb__sqlite_entry_unknow(const ebb__sqlite_ready *r, uint64_t key) {
    ebb__sqlite_entry *e = ebb__sqlite_entry_find(r, key);
    if (e != NULL) e->known = false;
}

static ebb__sqlite_entry *entry_new(ebb__sqlite_ready *r, uint64_t key) {
    ebb__sqlite_entry *e = calloc(1, sizeof *e);
    ebb__sqlite_entry **at = e != NULL ? ebb__map_put(&r->entries, key) : NULL;
    if (at == NULL) {
        free(e);
        r->lost = true;
        return NULL;
    }
    *at = e;
    e->key = key;
    return e;
}

static void let_go(ebb__sqlite_entry *e) {
    if (e->node == NULL) return;
    if (e->held_prev != NULL) e->held_prev->held_next = e->held_next;
    else e->node->held = e->held_next;
    if (e->held_next != NULL) e->held_next->held_prev = e->held_prev;
    e->held_prev = e->held_next = NULL;
    e->node = NULL;
    e->token = (ebb_provider_token){0, 0};
}

void ebb__sqlite_entry_free(ebb__sqlite_ready *r, ebb__sqlite_entry *e) {
    ebb__sqlite_entry_take(e);
    let_go(e);
    ebb__sqlite_entry_type(r, e, NULL, 0);
    ebb__map_remove(&r->entries, e->key);
    free(e);
}

void ebb__sqlite_entry_place(ebb__sqlite_ready *r, ebb__sqlite_entry *e) {
    ebb__sqlite_entry_take(e);
    if (e->node != NULL) put(&e->node->own, e);
    else if (e->attempts >= 2 && e->type != NULL) put(&r->suspects, e);
    else if (e->type != NULL) put(&e->type->list, e);
    else put(&r->fresh, e);
}

void ebb__sqlite_entry_wake(ebb__sqlite_ready *r, uint64_t key, uint64_t seq, bool due) {
    ebb__sqlite_entry *e = ebb__sqlite_entry_find(r, key);
    if (e == NULL) e = entry_new(r, key);
    if (e == NULL) return;
    e->due |= due;
    if (e->running) {
        e->again = true;
        return;
    }
    if (e->in != NULL) return;
    e->seq = seq;
    ebb__sqlite_entry_place(r, e);
}

void ebb__sqlite_entry_claim(ebb__sqlite_entry *e, ebb__sqlite_node *n, ebb_provider_token token) {
    ebb__sqlite_entry_take(e);
    let_go(e);
    e->node = n;
    e->held_next = n->held;
    if (n->held != NULL) n->held->held_prev = e;
    n->held = e;
    e->token = token;
    e->running = true;
    e->again = false;
}

void ebb__sqlite_entry_release(ebb__sqlite_ready *r, ebb__sqlite_entry *e, bool keep) {
    const bool ready = e->again || e->in != NULL;
    e->running = e->again = false;
    e->given = 0;
    if (!keep) let_go(e);
    if (ready) ebb__sqlite_entry_place(r, e);
    else if (!keep) ebb__sqlite_entry_free(r, e);
}

/* ---- nodes ---------------------------------------------------------------------------------------------------- */

static ebb_provider_runs *runs_copy(const ebb_provider_runs *from, size_t n) {
    size_t bytes = 1;
    for (size_t i = 0; i < n; i++) bytes += sizeof *from + strlen(from[i].name) + 1;
    ebb_provider_runs *to = malloc(bytes);
    if (to == NULL) return NULL;
    char *at = (char *)(to + n);
    for (size_t i = 0; i < n; i++) {
        const size_t length = strlen(from[i].name) + 1;
        to[i] = from[i];
        to[i].name = memcpy(at, from[i].name, length);
        at += length;
    }
    return to;
}

ebb__sqlite_node *ebb__sqlite_node_new(ebb__sqlite_ready *r, const ebb_provider_join_call *c, uint64_t id,
                                       uint64_t now) {
    ebb__sqlite_node *n = calloc(1, sizeof *n);
    ebb_provider_runs *runs = n != NULL ? runs_copy(c->runs, c->runs_n) : NULL;
    if (runs == NULL) {
        free(n);
        return NULL;
    }
    n->id = id;
    n->epoch = 1;
    n->lease = c->lease;
    n->until = now + c->lease;
    n->runs = runs;
    n->runs_n = c->runs_n;
    (void)pthread_mutex_lock(r->lock);
    n->next = r->nodes;
    r->nodes = n;
    (void)pthread_mutex_unlock(r->lock);
    return n;
}

ebb__sqlite_node *ebb__sqlite_node_find(const ebb__sqlite_ready *r, ebb_provider_node n) {
    for (ebb__sqlite_node *at = r->nodes; at != NULL; at = at->next)
        if (at->id == n.id && at->epoch == n.epoch) return at;
    return NULL;
}

bool ebb__sqlite_node_runs(const ebb__sqlite_node *n, const char *name, uint64_t version) {
    for (size_t i = 0; i < n->runs_n; i++) {
        if (n->runs[i].version == 0 || (version != 0 && n->runs[i].version != version)) continue;
        if (strcmp(n->runs[i].name, name) == 0) return true;
    }
    return false;
}

static bool fetches_from(const ebb__sqlite_node *n, const char *queue) {
    size_t i = 0;
    while (i < n->runs_n && (n->runs[i].version != 0 || strcmp(n->runs[i].name, queue) != 0)) i++;
    return i < n->runs_n;
}

bool ebb__sqlite_served(ebb__sqlite_ready *r, const char *name, uint64_t version, uint64_t now) {
    bool served = false;
    (void)pthread_mutex_lock(r->lock);
    for (const ebb__sqlite_node *n = r->nodes; n != NULL && !served; n = n->next)
        served = n->until > now && ebb__sqlite_node_runs(n, name, version);
    (void)pthread_mutex_unlock(r->lock);
    return served;
}

bool ebb__sqlite_fetched(ebb__sqlite_ready *r, const char *queue, uint64_t now) {
    bool fetched = false;
    (void)pthread_mutex_lock(r->lock);
    for (const ebb__sqlite_node *n = r->nodes; n != NULL && !fetched; n = n->next)
        fetched = n->until > now && fetches_from(n, queue);
    (void)pthread_mutex_unlock(r->lock);
    return fetched;
}

void ebb__sqlite_node_end(ebb__sqlite_ready *r, ebb__sqlite_node *n,
                          void (*charge)(void *arg, ebb__sqlite_entry *e), void *arg) {
    while (n->held != NULL) {
        ebb__sqlite_entry *e = n->held;
        if (e->running) {
            e->again = true; /* what it was given stands there still */
            if (charge != NULL) charge(arg, e);
        }
        ebb__sqlite_entry_release(r, e, false);
    }
    (void)pthread_mutex_lock(r->lock);
    for (ebb__sqlite_node **at = &r->nodes; *at != NULL; at = &(*at)->next) {
        if (*at != n) continue;
        *at = n->next;
        break;
    }
    (void)pthread_mutex_unlock(r->lock);
    free(n->runs);
    free(n);
}

void ebb__sqlite_ready_fini(ebb__sqlite_ready *r) {
    while (r->nodes != NULL) ebb__sqlite_node_end(r, r->nodes, NULL, NULL);
    size_t at = 0;
    for (ebb__sqlite_entry **e; (e = ebb__map_next(&r->entries, &at)) != NULL;) {
        ebb__sqlite_entry_take(*e);
        ebb__sqlite_entry_type(r, *e, NULL, 0);
        free(*e);
    }
    ebb__map_free(&r->entries);
}

/* ---- the first of the ready ones ------------------------------------------------------------------------------ */

static void earlier(ebb__sqlite_entry **first, const ebb__sqlite_list *l) {
    if (l->first != NULL && (*first == NULL || l->first->seq < (*first)->seq)) *first = l->first;
}

ebb__sqlite_entry *ebb__sqlite_ready_first(ebb__sqlite_ready *r, ebb__sqlite_node *n) {
    ebb__sqlite_entry *first = NULL;
    earlier(&first, &n->own);
    earlier(&first, &r->fresh);
    for (const ebb__sqlite_type *t = r->types; t != NULL; t = t->next)
        if (t->list.first != NULL && ebb__sqlite_node_runs(n, t->name, t->version)) earlier(&first, &t->list);
    return first;
}

ebb__sqlite_entry *ebb__sqlite_ready_suspect(ebb__sqlite_ready *r, const ebb__sqlite_node *n) {
    for (ebb__sqlite_entry *e = r->suspects.first; e != NULL; e = e->next)
        if (e->type != NULL && ebb__sqlite_node_runs(n, e->type->name, e->type->version)) return e;
    return NULL;
}
