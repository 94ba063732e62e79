/* Counted handles of futures, and the stack of messages by which other threads reach a runtime. There is no lock and
 * no fence: a push releases and the taking acquires, so the receiver sees what the sender wrote before the push. */
#include "future/remote.h"

#include "base/alloc.h"
#include "future/peer.h"
#include "future/promise.h"

/* ---- the stack -------------------------------------------------------------------------------------------- */

bool ebb__post(ebb__heap *h, ebb__message *m) {
    /* Acquire, here and below: a sender that finds the stack closed frees memory that the runtime's end has read
     * before. */
    ebb__message *head = atomic_load_explicit(&h->inbound, memory_order_acquire);
    do {
        if (head == EBB__INBOUND_CLOSED) return false;
        m->next = head;
        /* Release: the receiver sees the message and all data written before. */
    } while (!atomic_compare_exchange_weak_explicit(&h->inbound, &head, m, memory_order_release,
                                                    memory_order_acquire));
    if (head != NULL) return true;
    if (h->wake != NULL) h->wake(h->wake_ctx);
    /* Release: the runtime's end waits for this count, and only then frees what `wake` needs. */
    atomic_fetch_add_explicit(&h->woken, 1, memory_order_release);
    return true;
}

/* Restores the order in which messages were pushed. */
static ebb__message *reversed(ebb__message *m) {
    ebb__message *first = NULL;
    while (m != NULL) {
        ebb__message *next = m->next;
        m->next = first;
        first = m;
        m = next;
    }
    return first;
}

static void take_all(ebb_runtime *rt, ebb__message *messages) {
    ebb__message *next;
    for (ebb__message *m = reversed(messages); m != NULL; m = next) {
        next = m->next;
        m->take(rt, m);
    }
}

void ebb_inbox_receive(ebb_runtime *rt) {
    ebb__heap *h = ebb__heap_at(rt);
    if (h == NULL || atomic_load_explicit(&h->inbound, memory_order_relaxed) == NULL) return;
    h->taken++;
    /* Acquire: sees what senders wrote before they pushed. */
    take_all(rt, atomic_exchange_explicit(&h->inbound, NULL, memory_order_acquire));
}

ebb_status ebb_inbox_on_wake(ebb_runtime *rt, void (*wake)(void *ctx), void *ctx) {
    ebb__heap *h = ebb__heap_get(rt);
    if (h == NULL) return EBB_ERR_NOMEM;
    h->wake = wake;
    h->wake_ctx = ctx;
    return EBB_OK;
}

/* ---- handles ---------------------------------------------------------------------------------------------- */

static void remote_free(ebb_remote *r) {
    ebb__free(&r->heap->allocator, r, sizeof *r);
}

/* The last reference was dropped. Runs on the runtime's thread, unless the runtime was freed. */
static void remote_released(ebb_runtime *rt, ebb__message *m) {
    ebb_remote *r = (ebb_remote *)(void *)m; /* the message is the first member */
    if (rt != NULL) {
        if (r->prev != NULL) r->prev->next = r->next;
        else r->heap->exports = r->next;
        if (r->next != NULL) r->next->prev = r->prev;
        ebb__shade(r->heap, r->future);
    }
    remote_free(r);
}

/* The producer has ended without settling the future. Runs on the runtime's thread, as if the producer were there. */
static void producer_done(ebb_runtime *rt, ebb__message *m) {
    ebb_remote *r = (ebb_remote *)(void *)((char *)m - offsetof(ebb_remote, done));
    ebb_future *f = r->future;
    if (rt != NULL && (f->flags & (EBB__F_PRODUCED | EBB__F_SETTLED)) == EBB__F_PRODUCED) {
        f->flags |= EBB__F_SETTLED;
        ebb__produced(f);
    }
    ebb_remote_release(r);
}

/* The future was ended through this handle. */
static void take_ended(ebb_runtime *rt, ebb__message *m) {
    ebb_remote *r = (ebb_remote *)(void *)((char *)m - offsetof(ebb_remote, ended));
    if (rt != NULL) ebb__ended_elsewhere(r->future);
    else { /* a word that was settled too late for any reader; last_values must not find it again */
        ebb_value v = r->future->value;
        r->future->value = ebb_value_none();
        ebb__dispose(v);
    }
    ebb_remote_release(r);
}

static bool post_ended(ebb_remote *r) {
    if (ebb__post(r->heap, &ebb_remote_keep(r)->ended)) return true;
    ebb_remote_release(r);
    return false;
}

ebb_status ebb_remote_new(ebb_future *f, ebb_remote **out) {
    *out = NULL;
    ebb_status st = ebb__usable(f);
    if (st != EBB_OK) return st;
    if (ebb__is_static(f)) return EBB_ERR_INVALID;
    ebb__heap *h = ebb__heap_of(f);
    ebb_remote *r = ebb__alloc(&h->allocator, sizeof *r);
    if (r == NULL) return EBB_ERR_NOMEM;
    *r = (ebb_remote){.released = {NULL, remote_released},
                      .ended = {NULL, take_ended},
                      .done = {NULL, producer_done},
                      .future = f,
                      .heap = h,
                      .next = h->exports};
    r->spared = (f->flags & (EBB__F_SHARED | EBB__F_SHIELDED)) != 0;
    atomic_init(&r->refs, 1);
    atomic_flag_clear(&r->is_done);
    if (h->exports != NULL) h->exports->prev = r;
    h->exports = r;
    atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed); /* the caller has one already */
    f->flags |= EBB__F_EXPORTED;
    *out = r;
    return EBB_OK;
}

ebb_remote *ebb_remote_keep(ebb_remote *r) {
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed); /* the caller has one already */
    return r;
}

void ebb_remote_release(ebb_remote *r) {
    if (r == NULL) return;
    /* Release: the thread that frees it sees what was done with the handle. Acquire: for that thread. */
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1) return;
    ebb__heap *h = r->heap; /* the heap's reference is dropped after the push, which still uses the heap */
    if (!ebb__post(h, &r->released)) remote_free(r);
    ebb__heap_release(h);
}

/* ---- from any thread -------------------------------------------------------------------------------------- */

bool ebb_remote_cancel(ebb_remote *r, ebb_cancel_kind kind) {
    if (kind == EBB_CANCEL_NONE) kind = EBB_CANCEL_USER;
    if (!ebb__claim(r->future, EBB_FUTURE_CANCELLED | (uint32_t)kind << 8)) return false;
    (void)post_ended(r);
    return true;
}

static ebb_status lost(ebb_remote *r) {
    if (ebb__state_of(r->future) != EBB_FUTURE_CANCELLED) return EBB_ERR_RESOLVED;
    /* Relaxed: only the first caller posts; the push orders the rest. */
    if (!atomic_flag_test_and_set_explicit(&r->is_done, memory_order_relaxed)) {
        if (!ebb__post(r->heap, &ebb_remote_keep(r)->done)) ebb_remote_release(r);
    }
    return EBB_CANCELLED;
}

static ebb_status settle(ebb_remote *r, ebb_value v, uint32_t to) {
    ebb_future *f = r->future;
    uint32_t pending = EBB_FUTURE_PENDING; /* and not taken */
    /* Release and acquire: as ebb__claim. */
    if (!atomic_compare_exchange_strong_explicit(&f->state, &pending, EBB_FUTURE_SETTLING,
                                                 memory_order_acq_rel, memory_order_acquire)) {
        ebb__dispose(v);
        return lost(r);
    }
    f->value = v;
    /* Release: a reader that sees the end sees the value. */
    atomic_store_explicit(&f->state, to, memory_order_release);
    if (post_ended(r)) return EBB_OK;
    ebb__dispose(v); /* the runtime is gone */
    return EBB_ERR_CLOSED;
}

/* Another thread may settle only a future without inputs to drop. */
static bool is_promise(const ebb_remote *r) {
    return r->future->cell.type == &ebb__promise_kind.type;
}

ebb_status ebb_remote_settle(ebb_remote *r, ebb_value v) {
    if (v.type != NULL && v.type->size != 0) return EBB_ERR_INVALID;
    if (!is_promise(r)) {
        ebb__dispose(v);
        return EBB_ERR_INVALID;
    }
    return settle(r, v, EBB_FUTURE_COMPLETED);
}

ebb_status ebb_remote_reject(ebb_remote *r, ebb_status st) {
    if (st >= EBB_OK || !is_promise(r)) return EBB_ERR_INVALID;
    if (st != EBB_CANCELLED) return settle(r, ebb_value_int(st), EBB_FUTURE_FAILED);
    if (!ebb_remote_cancel(r, EBB_CANCEL_USER)) return lost(r);
    (void)lost(r); /* a reject is the producer's end */
    return EBB_OK;
}

ebb_future_state ebb_remote_state(const ebb_remote *r) {
    return ebb__state_of(r->future);
}

/* ---- the end of a runtime --------------------------------------------------------------------------------- */

/* Another thread is settling the future, or has: it disposes of the value itself, or its message was received. */
static bool is_elsewhere(const ebb__cell *c) {
    const ebb_future *f = (const ebb_future *)(const void *)c;
    return c->type->reserved & EBB__TYPE_FUTURE && f->flags & EBB__F_EXPORTED &&
           !(f->flags & (EBB__F_FINISHED | EBB__F_QUEUED));
}

/* Disposes of the values that are left. No other user code runs. */
static void last_values(ebb__heap *h, ebb__page *b) {
    for (; b != NULL; b = b->next) {
        uint32_t n = b->cls == NULL ? 1 : b->cells;
        for (uint32_t i = 0; i < n; i++) {
            ebb__cell *c = ebb__cell_at(b, i);
            if (b->cls != NULL && b == b->cls->page && (char *)c >= b->cls->cur) break;
            if (c->type == NULL) continue;
            if (is_elsewhere(c)) ebb__kept_end(c);
            else ebb__cell_end(c);
        }
    }
    (void)h;
}

/* What futures wait for may outlive the runtime. */
static void leave_queues(ebb__heap *h) {
    for (uint32_t i = 1; i < h->regions_n; i++) {
        const ebb__region_futures *s = ebb__region_futures_at(h, i);
        for (uint32_t m = 0; s != NULL && m < s->members_n; m++) {
            ebb__cell *c = ebb__member_cell(s->members[m]);
            ebb_future *f = (ebb_future *)(void *)c;
            if (c->type == NULL || !(c->type->reserved & EBB__TYPE_FUTURE))
                continue; /* NULL: a broken heap */
            if (ebb__kind_of(f)->leave != NULL) ebb__kind_of(f)->leave(f);
        }
    }
}

void ebb__futures_free(ebb_runtime *rt) {
    ebb__heap *h = ebb__heap_at(rt);
    leave_queues(h);
    ebb__map_free(&h->ends);
    ebb__ties_cut(h);
    for (ebb_remote *r = h->exports; r != NULL; r = r->next)
        (void)ebb__claim(r->future, EBB_FUTURE_CANCELLED);
    /* Acquire: as ebb_inbox_receive. Release: from here on senders free by themselves what was read above. */
    ebb__message *messages = atomic_exchange_explicit(&h->inbound, EBB__INBOUND_CLOSED, memory_order_acq_rel);
    if (messages != NULL) h->taken++;
    /* Acquire: what `wake` needs may be freed after this loop. The loop lasts as long as a running call of `wake`. */
    while (atomic_load_explicit(&h->woken, memory_order_acquire) != h->taken) continue;
    take_all(NULL, messages);
    for (uint32_t i = 1; i < EBB__CLASSES; i++) {
        const ebb__class *k = &h->classes[i];
        last_values(h, k->pages);
        last_values(h, k->unswept);
        if (k->page != NULL && !k->page->unswept) last_values(h, k->page);
    }
    last_values(h, h->large);
    for (uint32_t i = 1; i < h->regions_n; i++) {
        if (ebb__region_futures_at(h, i) != NULL) ebb__region_futures_free(ebb__region_futures_at(h, i));
    }
    ebb__layer_remove(rt, &ebb__future_layer);
    h->rt = NULL;
    ebb__heap_release(h);
}
