/* Handles of runtimes, and the list of ties of a runtime. */
#include "future/peer.h"

ebb_status ebb_peer_of(ebb_runtime *rt, ebb_peer **out) {
    ebb__heap *h = ebb__heap_get(rt);
    if (h != NULL && h->thread != ebb__this_thread()) {
        *out = NULL;
        return EBB_ERR_THREAD;
    }
    *out = h == NULL ? NULL : (ebb_peer *)(void *)ebb__heap_keep(h);
    return h == NULL ? EBB_ERR_NOMEM : EBB_OK;
}

ebb_peer *ebb_peer_keep(ebb_peer *p) {
    (void)ebb__heap_keep(ebb__peer_heap(p));
    return p;
}

void ebb_peer_release(ebb_peer *p) {
    if (p != NULL) ebb__heap_release(ebb__peer_heap(p));
}

void ebb__tie_add(ebb__heap *h, ebb__tie *tie) {
    tie->next = h->ties;
    tie->at = &h->ties;
    if (tie->next != NULL) tie->next->at = &tie->next;
    h->ties = tie;
}

void ebb__tie_remove(ebb__tie *tie) {
    if (tie->at == NULL) return;
    *tie->at = tie->next;
    if (tie->next != NULL) tie->next->at = tie->at;
    tie->at = NULL;
}

void ebb__ties_cut(ebb__heap *h) {
    while (h->ties != NULL) {
        ebb__tie *tie = h->ties;
        ebb__tie_remove(tie);
        tie->gone(tie);
    }
}
