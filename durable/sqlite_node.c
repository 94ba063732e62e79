/* Nodes: joined, renewed, ended. They are in memory, and so are their leases. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "durable/sqlite.h"

ebb__sqlite_node *ebb__sqlite_node_alive(ebb__sqlite_file *f, ebb_provider_node n) {
    ebb__sqlite_node *at = ebb__sqlite_node_find(&f->ready, n);
    return at != NULL && at->until > f->now ? at : NULL;
}

ebb_status ebb__sqlite_join(ebb__sqlite_file *f, ebb_provider_join_call *c) {
    ebb__sqlite_node *n = ebb__sqlite_node_new(&f->ready, c, ebb__sqlite_number(f), f->now);
    if (n == NULL) return EBB_ERR_NOMEM;
    c->node.id = n->id;
    c->node.epoch = n->epoch;
    ebb__sqlite_hint(f, &(ebb_provider_hint){.kind = EBB_PROVIDER_HINT_TURNS, .queue = ""});
    return EBB_OK;
}

/* ---- the end of a node ------------------------------------------------------------------------------------------ */

static void charge(void *arg, ebb__sqlite_entry *e) {
    ebb__sqlite_file *f = arg;
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INST_CHARGE, "i", e->key);
    e->attempts++;
    ebb__sqlite_lock_release(&f->claims, e->slot);
    e->slot = 0;
}

static void refund(void *arg, ebb__sqlite_entry *e) {
    ebb__sqlite_file *f = arg;
    ebb__sqlite_lock_release(&f->claims, e->slot);
    e->slot = 0;
}

void ebb__sqlite_disown_lapsed(ebb__sqlite_file *f) {
    for (const ebb__sqlite_node *n = f->ready.nodes; n != NULL; n = n->next)
        if (n->until <= f->now) (void)ebb__sqlite_run(&f->db, EBB__SQL_WORK_DISOWN, "i", n->id);
}

/* The rows of a node's sessions are free before the node is gone. False: they could not be written. */
static bool forget_sessions(ebb__sqlite_file *f, uint64_t node) {
    (void)ebb__sqlite_run(&f->db, EBB__SQL_WORK_DISOWN, "i", node);
    if (f->db.failed != 0) return false;
    if (f->ready.nodes != NULL && f->ready.nodes->next != NULL) return true;
    ebb__map_free(&f->sessions); /* the last node that could have one */
    ebb__map_init(&f->sessions, ebb__sqlite_heap(), sizeof(uint64_t));
    return true;
}

/* After the commit: entries and rows are visible to others in the same moment. */
void ebb__sqlite_node_left(ebb__sqlite_file *f, uint64_t id) {
    for (ebb__sqlite_node *n = f->ready.nodes; n != NULL; n = n->next) {
        if (n->id != id) continue;
        ebb__sqlite_node_end(&f->ready, n, refund, f);
        return;
    }
}

/* Nodes that have lapsed end as soon as somebody else looks for work. One that holds nothing may renew for a while. */
void ebb__sqlite_lapse_nodes(ebb__sqlite_file *f) {
    for (ebb__sqlite_node *n = f->ready.nodes, *next; n != NULL; n = next) {
        next = n->next;
        if (n->until > f->now || (n->held == NULL && f->now - n->until < 10 * n->lease)) continue;
        if (!forget_sessions(f, n->id)) break;
        ebb__sqlite_node_end(&f->ready, n, charge, f);
    }
    ebb__sqlite_forgive(&f->db); /* a charge that could not be written is lost, and no turn waits for it */
}

/* What the commit that ends the node has claimed for it before: not in `held` until that commit. */
static void free_claimed_now(ebb__sqlite_file *f, uint64_t node) {
    const size_t n = f->effects_n;
    for (size_t i = 0; i < n; i++) {
        const ebb__sqlite_effect e = f->effects[i]; /* a copy: freeing adds effects */
        if (e.kind != EBB__EFFECT_HELD || e.node != node) continue;
        const ebb__sqlite_held h = {e.token, e.key, e.execution, e.activity, e.node, e.at, e.charged};
        ebb__sqlite_held_free(f, &h);
    }
}

ebb_status ebb__sqlite_leave(ebb__sqlite_file *f, ebb_provider_leave_call *c) {
    const ebb__sqlite_node *n = ebb__sqlite_node_find(&f->ready, c->node);
    if (n == NULL) return EBB_OK;
    size_t at = 0;
    for (const ebb__sqlite_held *h; (h = ebb__map_next(&f->held, &at)) != NULL;)
        if (h->node == n->id) ebb__sqlite_held_free(f, h);
    free_claimed_now(f, n->id);
    (void)forget_sessions(f, n->id);
    ebb__sqlite_effect_add(f, EBB__EFFECT_LEFT, 0)->node = n->id;
    return ebb__sqlite_status(&f->db);
}

/* ---- renewal ------------------------------------------------------------------------------------------------------ */

/* A claim that has lapsed but that nobody has taken is as good as a live one. */
static bool renew_one(ebb__sqlite_file *f, const ebb__sqlite_node *n, ebb_provider_token t, uint64_t lease) {
    ebb__sqlite_held *h = ebb__sqlite_held_any(f, t);
    if (h != NULL && h->node == n->id) {
        h->until = f->now + lease;
        return true;
    }
    for (const ebb__sqlite_entry *e = n->held; e != NULL; e = e->held_next)
        if (ebb__token_is(e->token, t)) return true;
    return false;
}

ebb_status ebb__sqlite_renew(ebb__sqlite_file *f, ebb_provider_renew_call *c) {
    ebb__sqlite_node *n = ebb__sqlite_node_find(&f->ready, c->node);
    c->gone = ebb_provider_alloc(&c->call, (c->tokens_n + 1) * sizeof *c->gone);
    if (c->gone == NULL) return EBB_ERR_NOMEM;
    c->lost = n == NULL;
    for (size_t i = 0; i < c->tokens_n; i++)
        if (n == NULL || !renew_one(f, n, c->tokens[i], c->lease)) c->gone[c->gone_n++] = c->tokens[i];
    if (n == NULL) return EBB_OK;
    (void)pthread_mutex_lock(&f->lock);
    n->until = f->now + c->lease;
    (void)pthread_mutex_unlock(&f->lock);
    return EBB_OK;
}
