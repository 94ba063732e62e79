/* Whether the result of an operation is still wanted.
 *
 * A cancel is visible at once, but the inputs of the cancelled future are cancelled in the next pump. In between, an
 * operation must not touch the memory that it was given: the code that cancelled may have freed it. So the operation
 * looks from its future to the owners. A *doomed* future is pending, but will be cancelled when the pump processes
 * its owners. One owner that has ended or is doomed suffices. A shared future is doomed only if all of its owners
 * have ended or are doomed, and nothing holds it. An owner never dooms a shielded future. */
#include "base/alloc.h"
#include "future/future.h"

/* Flags in cell.region of a future, during a lookup. */
#define SEEN   (UINT32_C(1) << 31)
#define DOOMED (UINT32_C(1) << 30)

enum { FEW = 64 };

/* The future in question, and the pending futures that wait for it, directly or not. */
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
    if (f->cell.region & SEEN || ebb__has_ended(f)) return true;
    if (l->n == l->room && !grow(h, l)) return false;
    f->cell.region |= SEEN;
    l->at[l->n++] = f;
    return true;
}

/* The node of an edge. NULL: a task or another runtime waits, which drops the future itself. */
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
        bool ends = owner != NULL && (ebb__has_ended(owner) || owner->cell.region & DOOMED);
        if (ends != shared) return ends;
    } while (e != last);
    return shared;
}

/* Owners are mostly listed after their inputs, so one pass from the end finds nearly all. */
static void find_doomed(lookup *l) {
    bool more = true;
    while (more) {
        more = false;
        for (size_t i = l->n; i > 0; i--) {
            ebb_future *f = l->at[i - 1];
            if (f->cell.region & DOOMED || !is_doomed(f)) continue;
            f->cell.region |= DOOMED;
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
    bool wanted = all && !(f->cell.region & DOOMED);
    for (size_t i = 0; i < l.n; i++) l.at[i]->cell.region &= ~(SEEN | DOOMED);
    if (l.at != l.few) ebb__free(&h->allocator, (void *)l.at, l.room * sizeof(ebb_future *));
    return wanted;
}

/* The usual case is a chain with one owner each, which needs no memory. */
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
