/* What goes between sides: remotes, imports, far regions, bridges. */
#include "tests/driver/program/driver.h"

static ebb_remote *take_remote(side *s) {
    hub *h = s->hub;
    uint32_t i = pick(s, REMOTES);
    pthread_mutex_lock(&h->lock);
    ebb_remote *r = h->remote[i];
    h->remote[i] = NULL;
    pthread_mutex_unlock(&h->lock);
    return r;
}

void put_remote(side *s, ebb_remote *r) {
    hub *h = s->hub;
    uint32_t i = pick(s, REMOTES);
    pthread_mutex_lock(&h->lock);
    ebb_remote *old = h->remote[i];
    h->remote[i] = r;
    pthread_mutex_unlock(&h->lock);
    ebb_remote_release(old);
}

static ebb_future *far_some(side *s, ebb_cx *cx) {
    side *other = &s->hub->side[pick(s, s->hub->sides)];
    if (other->peer == NULL) return NULL;
    node *n = fresh(s->hub, sizeof *n); /* in no list: it is the other side's */
    n->s = other;
    n->kind = TASK;
    ebb_peer *peer = ebb_peer_keep(other->peer);
    ebb_future *f = ebb_peer_run(cx, peer, poll_node, n);
    ebb_peer_release(peer);
    return f;
}

static void bridge_some(side *s) {
    hub *h = s->hub;
    uint32_t to = pick(s, h->sides), i = pick(s, BRIDGES), room = 1 + pick(s, 3);
    ebb_bridge *b = NULL;
    if (s->peer == NULL || h->side[to].peer == NULL || to == s->number) return;
    if (ebb_bridge_new(s->peer, h->side[to].peer, room, sizeof(uint64_t), &b) != EBB_OK) return;
    pthread_mutex_lock(&h->lock);
    bool taken = h->bridge[i] != NULL;
    if (!taken) {
        h->bridge[i] = b;
        h->bridge_from[i] = s->number;
    }
    pthread_mutex_unlock(&h->lock);
    if (taken) ebb_bridge_release(b);
}

/* They are all kept until the run is over. */
ebb_bridge *some_bridge(side *s, bool from) {
    hub *h = s->hub;
    uint32_t i = pick(s, BRIDGES);
    pthread_mutex_lock(&h->lock);
    ebb_bridge *b = h->bridge[i];
    if (b != NULL && (h->bridge_from[i] == s->number) != from) b = NULL;
    pthread_mutex_unlock(&h->lock);
    return b;
}

static void end_remote(side *s, ebb_remote *r) {
    switch (pick(s, 4)) {
    case 0: (void)ebb_remote_cancel(r, EBB_CANCEL_DISCONNECT); break;
    case 1: (void)ebb_remote_settle(r, one_in(s, 2) ? some_word(s->hub) : ebb_value_int(1)); break;
    case 2: (void)ebb_remote_reject(r, EBB_FAILED); break;
    default: (void)ebb_remote_state(r); break;
    }
}

ebb_future *remote_op(side *s, ebb_cx *cx) {
    if (one_in(s, 4)) return far_some(s, cx);
    if (one_in(s, 6)) bridge_some(s);
    if (one_in(s, 20)) {
        ebb_bridge *b = some_bridge(s, one_in(s, 2));
        if (b != NULL) (void)ebb_bridge_close(cx, ebb_bridge_keep(b));
        ebb_bridge_release(b);
    }
    ebb_remote *r = take_remote(s);
    if (r == NULL) return NULL;
    if (one_in(s, 3)) put_remote(s, ebb_remote_keep(r));
    if (one_in(s, 2)) return ebb_remote_import(cx, r);
    end_remote(s, r);
    ebb_remote_release(r);
    return NULL;
}

/* When all runtimes are gone. */
void close_hub(hub *h) {
    for (uint32_t i = 0; i < REMOTES; i++) ebb_remote_release(h->remote[i]);
    for (uint32_t i = 0; i < BRIDGES; i++) ebb_bridge_release(h->bridge[i]);
    for (uint32_t i = 0; i < h->sides; i++) {
        ebb_peer_release(h->side[i].peer);
        ebb_audit_close(h->side[i].audit);
        h->side[i].audit = NULL;
    }
}
