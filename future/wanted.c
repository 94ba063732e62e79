/* Whether anybody still wants what an operation produces.
 *
 * A cancel is seen at once, but what the cancelled future owns is let go of in the next pump. In between an
 * operation must not touch the bytes that it was given: whoever has cancelled may have freed them. So it looks
 * up, from its future to those that wait for it. One that is *doomed* is pending, but will be cancelled when
 * the pump comes to its owners: any one of them that has ended or is doomed will do, for a shared one all of
 * them together, and nobody holds it. No owner dooms a shielded one. */
#include "base/alloc.h"
#include "future/future.h"

/* In cell.scope of a future, while it is looked at. */
#define SEEN   (UINT32_C(1) << 31)
#define DOOMED (UINT32_C(1) << 30)

enum { FEW = 64 };

/* The future in question and what waits for it, directly or not, and is pending. */
typedef struct lookup {
    ebb_future **at;
    size_t n, room;
    ebb_future *few[FEW];
} lookup;

static bool grow(ebb__heap *h, lookup *l) {
    size_t bytes = l->room * sizeof(ebb_future *);
    bool few = l->at == l->few;
    ebb_future **at = ebb__resize(&h->allocator, few ? NULL : (void *)l->at, few ? 0 : bytes, 2 * bytes);
    if (at == NULL) return false;
    if (few) memcpy((void *)at, (const void *)l->few, bytes);
    l->at = at;
    l->room *= 2;
    return true;
}

static bool add(ebb__heap *h, lookup *l, ebb_future *f) {
    if (f->cell.scope & SEEN || ebb__has_ended(f)) return true;
    if (l->n == l->room && !grow(h, l)) return false;
    f->cell.scope |= SEEN;
    l->at[l->n++] = f;
    return true;
}

/* The node of an edge, or NULL: a task or another runtime waits, which lets go by itself. */
static ebb_future *owner_of(const ebb__edge *e) {
    return e->input & EBB__EDGE_AWAIT ? NULL : ebb__edge_node(e);
}

static bool add_owners(ebb__heap *h, lookup *l, const ebb_future *f) {
    const ebb__edge *last = f->waiters, *e = last;
    if (last == NULL || f->flags & EBB__F_SHIELDED) return true;
    do {
        e = e->next;
        ebb_future *owner = owner_of(e);
        if (owner != NULL && !add(h, l, owner)) return false;
    } while (e != last);
    return true;
}

static bool is_doomed(const ebb_future *f) {
    const ebb__edge *last = f->waiters, *e = last;
    bool shared = f->flags & EBB__F_SHARED;
    if (last == NULL || f->flags & EBB__F_SHIELDED || (shared && f->holds > 0)) return false;
    do {
        e = e->next;
        const ebb_future *owner = owner_of(e);
        bool ends = owner != NULL && (ebb__has_ended(owner) || owner->cell.scope & DOOMED);
        if (ends != shared) return ends;
    } while (e != last);
    return shared;
}

/* Owners stand behind what they own, mostly: one pass from the end finds nearly all. */
static void find_doomed(lookup *l) {
    bool more = true;
    while (more) {
        more = false;
        for (size_t i = l->n; i > 0; i--) {
            ebb_future *f = l->at[i - 1];
            if (f->cell.scope & DOOMED || !is_doomed(f)) continue;
            f->cell.scope |= DOOMED;
            more = true;
        }
    }
}

static bool look_up(ebb__heap *h, ebb_future *f) {
    lookup l = {.room = FEW};
    l.at = l.few;
    bool all = add(h, &l, f);
    for (size_t i = 0; all && i < l.n; i++) all = add_owners(h, &l, l.at[i]);
    if (all) find_doomed(&l);
    bool wanted = all && !(f->cell.scope & DOOMED);
    for (size_t i = 0; i < l.n; i++) l.at[i]->cell.scope &= ~(SEEN | DOOMED);
    if (l.at != l.few) ebb__free(&h->allocator, (void *)l.at, l.room * sizeof(ebb_future *));
    return wanted;
}

/* Nearly always there is one owner, and one of that. */
bool ebb__is_wanted(ebb_future *f) {
    const ebb_future *at = f;
    for (uint32_t i = 0; i < FEW; i++) {
        const ebb__edge *e = at->waiters;
        if (ebb__has_ended(at)) return false;
        if (e == NULL || at->flags & EBB__F_SHIELDED) return true;
        if (e->next != e) break;
        if (e->input & EBB__EDGE_AWAIT) return true;
        if (at->flags & EBB__F_SHARED && at->holds > 0) return true;
        at = ebb__edge_node(e);
    }
    return look_up(ebb__heap_of(f), f);
}
