/* Instances that wait on their fiber, so that their next message needs no replay; the ones that were used longest ago are
 * evicted. An eviction discards the fiber and lets the claim go: no code of the program runs. */
#include "durable/worker.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

/* Claims that one call gives back, so that none keeps the other calls waiting for long. */
enum { LET_GO_MOST = 1000 };

ebb__hot *ebb__hot_find(const ebb_worker *w, uint64_t key) {
    ebb__hot **at = ebb__map_find(&w->instances, key);
    return at != NULL ? *at : NULL;
}

ebb__hot *ebb__hot_of(ebb_worker *w, const ebb_provider_turn_item *item) {
    ebb__hot *h = ebb__hot_find(w, item->key);
    if (h != NULL) return h;
    const size_t n = strlen(item->id) + 1;
    h = ebb__alloc(&w->allocator, sizeof *h);
    char *id = ebb__alloc(&w->allocator, n);
    ebb__hot **at = h != NULL && id != NULL ? ebb__map_put(&w->instances, item->key) : NULL;
    if (at == NULL) {
        ebb__free(&w->allocator, h, sizeof *h);
        ebb__free(&w->allocator, id, n);
        return NULL;
    }
    memset(h, 0, sizeof *h);
    memcpy(id, item->id, n);
    h->worker = w;
    h->key = item->key;
    h->id = id;
    *at = h;
    return h;
}

static bool is_idle(const ebb__hot *h) {
    return h->newer != NULL || h->older != NULL || h->worker->newest == h;
}

static void unlink_idle(ebb__hot *h) {
    ebb_worker *w = h->worker;
    if (!is_idle(h)) return;
    if (h->newer != NULL) h->newer->older = h->older;
    else w->newest = h->older;
    if (h->older != NULL) h->older->newer = h->newer;
    else w->oldest = h->newer;
    h->newer = h->older = NULL;
    w->stats.hot--;
    w->stats.hot_bytes -= h->bytes;
    h->bytes = 0;
}

void ebb__hot_take(ebb__hot *h) {
    unlink_idle(h);
}

void ebb__hot_discard(ebb_cx *cx, ebb__hot *h) {
    ebb__orch_run_free(cx, h->run);
    ebb__orch_run_free(cx, h->shadow);
    h->run = h->shadow = NULL;
}

void ebb__hot_let_go(ebb_cx *cx, ebb_worker *w, ebb_provider_token of) {
    if (ebb__token_is_none(of) || w->left || w->turn_node.node.id == 0) return;
    ebb_provider_abandon_turns_call *c = ebb__call_new(w->gate, EBB_PROVIDER_ABANDON_TURNS);
    if (c == NULL) return; /* the store gives it to this node as before */
    ebb_provider_token *token = ebb__call_room(&c->call, sizeof *token);
    if (token != NULL) *token = of;
    c->node = w->turn_node.node;
    c->tokens = token;
    c->tokens_n = token != NULL;
    ebb__worker_tell(cx, &c->call);
}

void ebb__hot_free(ebb_cx *cx, ebb__hot *h) {
    ebb_worker *w = h->worker;
    unlink_idle(h);
    ebb__hot_discard(cx, h);
    ebb__map_remove(&w->instances, h->key);
    ebb__free(&w->allocator, h->id, strlen(h->id) + 1);
    ebb__free(&w->allocator, h, sizeof *h);
}

/* For as many as one call takes. NULL: no memory. */
static ebb_provider_abandon_turns_call *let_go_call(ebb_worker *w, ebb_provider_token **tokens) {
    const size_t n = w->stats.hot < LET_GO_MOST ? w->stats.hot : LET_GO_MOST;
    ebb_provider_abandon_turns_call *c = ebb__call_new(w->gate, EBB_PROVIDER_ABANDON_TURNS);
    if (c == NULL) return NULL;
    c->node = w->turn_node.node;
    c->tokens = *tokens = ebb__call_room(&c->call, n * sizeof **tokens);
    if (c->tokens != NULL) return c;
    ebb__call_free(&c->call);
    return NULL;
}

void ebb__hot_let_go_all(ebb_cx *cx, ebb_worker *w) {
    if (w->left || w->turn_node.node.id == 0) {
        ebb__hot_free_all(cx, w);
        return;
    }
    while (w->oldest != NULL) {
        ebb_provider_token *tokens;
        ebb_provider_abandon_turns_call *c = let_go_call(w, &tokens);
        for (size_t n = 0; w->oldest != NULL && n < LET_GO_MOST; n++) {
            if (c != NULL) tokens[c->tokens_n++] = w->oldest->token;
            else ebb__hot_let_go(cx, w, w->oldest->token);
            ebb__hot_free(cx, w->oldest);
        }
        if (c != NULL) ebb__worker_tell(cx, &c->call);
    }
}

static void evict(ebb_cx *cx, ebb_worker *w) {
    if (w->closing) ebb__hot_let_go_all(cx, w);
    while (w->oldest != NULL && (w->stats.hot > w->opts.cache || w->stats.hot_bytes > w->opts.cache_bytes)) {
        ebb__hot_let_go(cx, w, w->oldest->token);
        ebb__hot_free(cx, w->oldest);
        w->stats.evictions++;
    }
}

void ebb__hot_idle(ebb_cx *cx, ebb__hot *h) {
    ebb_worker *w = h->worker;
    assert(h->run != NULL && !is_idle(h));
    h->older = w->newest;
    if (w->newest != NULL) w->newest->newer = h;
    else w->oldest = h;
    w->newest = h;
    h->bytes = ebb__orch_run_bytes(h->run);
    w->stats.hot++;
    w->stats.hot_bytes += h->bytes;
    evict(cx, w);
}

/* Those that are idle: a turn frees its own. */
void ebb__hot_free_all(ebb_cx *cx, ebb_worker *w) {
    while (w->oldest != NULL) ebb__hot_free(cx, w->oldest);
}
