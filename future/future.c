/* Making, connecting and ending futures. */
#include "future/future.h"

#include <assert.h>

/* Stage of the first future in a queue. */
enum { STAGE_BEGIN = 0, STAGE_HOOKS, STAGE_WAITERS };

/* ---- static failed futures -------------------------------------------------------------------------------- */

static const ebb__kind failed_kind = {
    .type = {"failed", sizeof(ebb_future), NULL, NULL, EBB__TYPE_OWN | EBB__TYPE_FUTURE}};

enum {
#define EBB_STATUS(name, value, text) INDEX_OF_##name,
#include <ebb/status.def>
#undef EBB_STATUS
    STATUSES
};

static ebb_future failed[STATUSES] = {
#define EBB_STATUS(name, number, text)                                                                       \
    [INDEX_OF_##name] = {.cell = {.type = &failed_kind.type},                                                \
                         .state = (number) == EBB_CANCELLED ? EBB_FUTURE_CANCELLED : EBB_FUTURE_FAILED,      \
                         .flags = EBB__F_STATIC | EBB__F_FINISHED,                                           \
                         .holds = UINT16_MAX,                                                                \
                         .value = {NULL, {.i = (number)}},                                                   \
                         .site = #name},
#include <ebb/status.def>
#undef EBB_STATUS
};

ebb_future *ebb__failed(ebb_status st) {
    for (size_t i = 0; i < STATUSES; i++) {
        if (failed[i].value.as.i == (int64_t)st) return &failed[i];
    }
    return &failed[INDEX_OF_EBB_FAILED];
}

bool ebb__is_static(const void *cell) {
    return (uintptr_t)cell - (uintptr_t)failed < sizeof failed;
}

/* ---- making ----------------------------------------------------------------------------------------------- */

const ebb_type ebb__dead_type = {"dead", sizeof(ebb__cell), NULL, NULL, EBB__TYPE_OWN};

ebb_future *ebb__future_new(ebb_cx *cx, const ebb__kind *kind, const char *site, ebb_status *st) {
    ebb__region_futures *s = ebb__region_futures_get(cx, st);
    if (EBB__UNLIKELY(s == NULL)) return NULL;
    if (EBB__UNLIKELY(s->shut)) {
        *st = EBB_ERR_CLOSED;
        return NULL;
    }
    ebb__heap *h = s->heap;
    ebb_future *f = ebb__heap_alloc(h, &kind->type, kind->type.size);
    if (EBB__UNLIKELY(f == NULL)) {
        *st = ebb__refusal(h);
        ebb__region_futures_wake(s); /* at the limit a collection may free memory */
        return NULL;
    }
    ebb__member_add(s, &f->cell);
    f->holds = 1;
    f->site = site;
    if (ebb__is_recorded(h->rt)) ebb__note_future_made(cx, s, f);
    if (EBB__UNLIKELY(ebb__wants_step(h))) ebb__region_futures_wake(s);
    return f;
}

ebb_status ebb__usable(const ebb_future *f) {
    if (EBB__UNLIKELY(f == NULL)) return EBB_ERR_INVALID;
    if (EBB__UNLIKELY(ebb__is_static(f))) return EBB_OK;
    ebb__heap *h = ebb__heap_of(f);
    if (EBB__UNLIKELY(h->thread != ebb__this_thread())) {
        ebb__misuse(h, EBB_ERR_THREAD, "a future was used on another thread than its runtime's", NULL);
        return EBB_ERR_THREAD;
    }
    if (EBB__LIKELY(f->holds > 0)) return EBB_OK;
    ebb__misuse(h, EBB_ERR_CONSUMED, "a future was used after it was consumed", f->site);
    return EBB_ERR_CONSUMED;
}

ebb_status ebb__usable_in(const ebb__heap *h, const ebb_future *f) {
    ebb_status st = ebb__usable(f);
    if (st != EBB_OK || ebb__is_static(f)) return st;
    return ebb__heap_of(f) == h ? EBB_OK : EBB_ERR_FOREIGN;
}

/* All waiters are notified, and no producer will settle it. */
static bool is_done(const ebb_future *f) {
    return (f->flags & (EBB__F_FINISHED | EBB__F_QUEUED | EBB__F_PRODUCED)) == EBB__F_FINISHED;
}

static void unhold(ebb__heap *h, ebb_future *f) {
    ebb__region_futures *s = ebb__region_futures_of_cell(h, &f->cell);
    ebb__shade(h, f);
    s->members[f->cell.member - 1] &= ~(uintptr_t)1;
    if (is_done(f)) ebb__member_remove(s, &f->cell);
}

void ebb__consume(ebb_future *f, const char *site) {
    if (ebb__is_static(f) || f->holds == UINT16_MAX) return;
    ebb__heap *h = ebb__heap_of(f);
    assert(f->holds > 0);
    if (--f->holds > 0) return;
    if (EBB__UNLIKELY(h->opts.debug)) f->site = site;
    unhold(h, f);
}

/* An owner of f ends. `last`: there is no other owner and no holder. */
static void owner_ends(ebb_future *f, bool last, ebb_cancel_kind kind) {
    bool spared = f->flags & EBB__F_SHIELDED || (f->flags & EBB__F_SHARED && !last);
    if (!spared) (void)ebb__cancel_as(f, kind);
}

void ebb__let_go_of(ebb_future *f, ebb_cancel_kind kind, const char *site) {
    if (f == NULL || ebb__is_static(f) || ebb__usable(f) != EBB_OK) return;
    owner_ends(f, f->owners == 0 && f->holds == 1, kind);
    ebb__consume(f, site);
    ebb__maybe_free(ebb__heap_of(f), f);
}

void ebb__consume_failed(ebb_future *f, const char *site) {
    ebb__let_go_of(f, EBB_CANCEL_RESOURCE, site);
}

void ebb__hold_again(ebb_future *f) {
    if (f->holds == UINT16_MAX) return;
    if (f->holds++ > 0) return;
    ebb__heap *h = ebb__heap_of(f);
    ebb__region_futures *s = ebb__region_futures_of_cell(h, &f->cell);
    ebb__shade(h, f);
    s->members[f->cell.member - 1] |= 1;
}

ebb_future *ebb_future_keep(ebb_future *f) {
    ebb_status st = ebb__usable(f);
    if (st != EBB_OK) return ebb__failed(st);
    if (!ebb__is_static(f) && f->holds < UINT16_MAX) f->holds++;
    return f;
}

void ebb_future_drop(ebb_future *f) {
    if (ebb__usable(f) != EBB_OK || ebb__is_static(f)) return;
    f->flags |= EBB__F_LOOSE;
    ebb__consume(f, "ebb_future_drop");
    ebb__maybe_free(ebb__heap_of(f), f);
}

ebb_future *ebb_future_share(ebb_future *f) {
    ebb_status st = ebb__usable(f);
    if (st != EBB_OK) return ebb__failed(st);
    if (!ebb__is_static(f)) f->flags |= EBB__F_SHARED;
    return f;
}

ebb_future *ebb_future_shield(ebb_future *f) {
    ebb_status st = ebb__usable(f);
    if (st != EBB_OK) return ebb__failed(st);
    if (!ebb__is_static(f)) f->flags |= EBB__F_SHIELDED;
    return f;
}

/* ---- queue ------------------------------------------------------------------------------------------------ */

void ebb__enqueue_future(ebb_future *f) {
    if (f->flags & EBB__F_QUEUED) return;
    ebb__heap *h = ebb__heap_of(f);
    ebb__region_futures *s = ebb__region_futures_of_cell(h, &f->cell);
    f->flags |= EBB__F_QUEUED;
    ebb__shade(h, f);
    f->local_next = NULL;
    if (s->last != NULL) s->last->local_next = f;
    else s->first = f;
    s->last = f;
    if (!s->running) ebb__region_futures_wake(s);
}

static void dequeue(ebb__region_futures *s, ebb_future *f) {
    s->first = f->local_next;
    if (s->first == NULL) s->last = NULL;
    f->local_next = NULL;
    f->flags = (uint16_t)(f->flags & ~EBB__F_QUEUED);
    s->stage = STAGE_BEGIN;
}

/* ---- ending ----------------------------------------------------------------------------------------------- */

void ebb__dispose_word(ebb_value v) {
    if (v.type != NULL && v.type->size == 0 && v.type->free != NULL) v.type->free(v.as.p);
}

void ebb__dispose(ebb_value v) {
    if (v.type == NULL || v.type->free == NULL) return;
    bool list = v.type == &ebb__outcomes_type || v.type == &ebb__selected_type;
    if (list && v.as.p != NULL) {
        const ebb__cell *c = (const ebb__cell *)v.as.p - 1;
        if (c->member == 0 && !(c->region & EBB__CELL_FLAGS)) v.type->free(v.as.p);
    } else if (v.type->size == 0) {
        v.type->free(v.as.p);
    }
}

/* The caller that changes PENDING has ended the future: to SETTLING if a value has to be written first, which end()
 * publishes, or to the final state. A future that other threads cannot refer to needs no atomic exchange. */
static bool claim(ebb_future *f, uint32_t to) {
    assert(f != NULL);
    if (EBB__LIKELY(!(f->flags & EBB__F_EXPORTED))) {
        return (atomic_load_explicit(&f->state, memory_order_relaxed) & 0xff) == EBB_FUTURE_PENDING;
    }
    return ebb__claim(f, to);
}

static void end(ebb_future *f, uint32_t state) {
    atomic_store_explicit(&f->state, state, memory_order_release);
    if (ebb__is_recorded(ebb__heap_of(f)->rt)) ebb__note_future_ended(f);
    ebb__enqueue_future(f);
}

void ebb__object_let_go(ebb__cell *c) {
    if (c == NULL || ebb__is_static(c) || c->type->reserved & EBB__TYPE_FUTURE) return;
    ebb__heap *h = ebb__heap_of(c);
    ebb__shade(h, c);
    /* With several holders it is unknown whose hold this is: then the object stays until their regions close. */
    if (c->member != 0 && !(c->region & EBB__CELL_SHARED))
        ebb__member_remove(ebb__region_futures_of_cell(h, c), c);
}

void ebb__refuse_value(ebb_value v) {
    if (v.type == &ebb__nested_type) ebb__consume_failed(v.as.p, "ebb_promise_settle");
    else ebb__object_let_go(ebb__value_cell(&v));
    ebb__dispose(v);
}

/* From here on nobody else can settle f. False: it has ended. */
static bool take_pending(ebb_future *f) {
    if (!claim(f, EBB_FUTURE_PENDING | EBB__STATE_TAKEN)) return false;
    if (f->flags & EBB__F_EXPORTED) return true;
    atomic_store_explicit(&f->state, EBB_FUTURE_PENDING | EBB__STATE_TAKEN, memory_order_relaxed);
    return true;
}

/* f, which is pending, will end as `inner` does. */
static bool flatten(ebb_future *f, ebb_future *inner) {
    if (inner == f) { /* f would wait for itself */
        bool failed_now = ebb__fail_with(f, EBB_ERR_INVALID);
        ebb__consume(inner, f->site);
        return failed_now;
    }
    if (!take_pending(f)) {
        ebb__consume_failed(inner, f->site);
        return false;
    }
    if (ebb__kind_of(f)->type.reserved & EBB__TYPE_SINGLE) {
        f->flags |= EBB__F_FORWARD;
        ebb__become(f, &((ebb__single *)(void *)f)->edge, inner);
    } else {
        ebb__promise_adopt(f, inner);
    }
    return true;
}

bool ebb__complete(ebb_future *f, ebb_value v) {
    if (EBB__UNLIKELY(v.type == &ebb__nested_type)) return flatten(f, v.as.p);
    if (!claim(f, EBB_FUTURE_SETTLING)) {
        ebb__dispose(v);
        return false;
    }
    if (EBB__UNLIKELY(v.type != NULL)) ebb__shade_value(ebb__heap_of(f), &v);
    f->value = v;
    end(f, EBB_FUTURE_COMPLETED);
    return true;
}

bool ebb__fail_as(ebb_future *f, ebb_value failure) {
    if (!claim(f, EBB_FUTURE_SETTLING)) return false;
    if (EBB__UNLIKELY(failure.type != NULL)) {
        ebb__shade_value(ebb__heap_of(f), &failure);
        ebb__value_cell(&failure)->region |= EBB__CELL_COPIED;
    }
    f->value = failure;
    end(f, EBB_FUTURE_FAILED);
    return true;
}

bool ebb__fail_with(ebb_future *f, ebb_status st) {
    if (st == EBB_CANCELLED) return ebb__cancel_as(f, EBB_CANCEL_USER);
    return ebb__fail_as(f, ebb_value_int(st));
}

bool ebb__cancel_as(ebb_future *f, ebb_cancel_kind kind) {
    uint32_t cancelled = EBB_FUTURE_CANCELLED | (uint32_t)kind << 8;
    if (f->flags & EBB__F_STATIC || !claim(f, cancelled)) return false;
    end(f, cancelled);
    return true;
}

bool ebb_future_cancel(ebb_future *f, ebb_cancel_kind kind) {
    if (ebb__usable(f) != EBB_OK || f->flags & EBB__F_CLEANUP) return false;
    return ebb__cancel_as(f, kind == EBB_CANCEL_NONE ? EBB_CANCEL_USER : kind);
}

ebb_status ebb__status_of(const ebb_future *f) {
    switch (ebb__state_of(f)) {
    case EBB_FUTURE_COMPLETED: return EBB_OK;
    case EBB_FUTURE_FAILED: return ebb__failure_status(&f->value);
    case EBB_FUTURE_CANCELLED: return EBB_CANCELLED;
    default: return EBB_PENDING;
    }
}

/* The caller is the only one that can still read the value, so it may be moved. */
static bool is_last_reader(const ebb_future *f) {
    return f->owners <= 1 && f->hooks == NULL && f->holds == 0 && !(f->flags & EBB__F_STATIC);
}

ebb_value ebb__value_from(ebb_future *input) {
    ebb_value v = input->value;
    if (v.type != NULL) ebb__shade_value(ebb__heap_of(input), &v);
    if (is_last_reader(input)) {
        if (EBB__LIKELY(!(input->flags & EBB__F_EXPORTED))) input->value = ebb_value_none();
        else if (v.type != NULL) input->value = (ebb_value){&ebb__moved_type, {NULL}};
    } else if (v.type != NULL && v.type->size == 0) {
        v.type = NULL; /* a word with another owner: borrowed */
    } else if (ebb__value_cell(&v) != NULL) {
        /* Two futures refer to it: only a collection finds out when neither does. */
        ebb__value_cell(&v)->region |= EBB__CELL_COPIED;
    }
    return v;
}

void ebb__end_as(ebb_future *f, ebb_future *input) {
    switch (ebb__state_of(input)) {
    case EBB_FUTURE_COMPLETED: (void)ebb__complete(f, ebb__value_from(input)); break;
    case EBB_FUTURE_CANCELLED: (void)ebb__cancel_as(f, ebb__kind_of_cancel(input)); break;
    default: (void)ebb__fail_as(f, input->value); break;
    }
}

void ebb__become(ebb_future *f, ebb__edge *e, ebb_future *input) {
    ebb_status st = ebb__usable_in(ebb__heap_of(f), input);
    ebb__edge_attach(f, e, st == EBB_OK ? input : ebb__failed(st), EBB__EDGE_NODE, f->site);
}

void ebb__count_as_work(ebb_future *f) {
    f->flags |= EBB__F_WORK;
    ebb__region_futures_of(f)->producers++;
    if (ebb__is_recorded(ebb__heap_of(f)->rt)) ebb__note_operation(f, true);
}

void ebb__produced(ebb_future *f) {
    ebb__heap *h = ebb__heap_of(f);
    /* NULL: its region is closed */
    ebb__region_futures *s = f->cell.member != 0 ? ebb__region_futures_of_cell(h, &f->cell) : NULL;
    bool work = (f->flags & EBB__F_WORK) != 0;
    f->flags = (uint16_t)(f->flags & ~(EBB__F_PRODUCED | EBB__F_WORK));
    if (work && ebb__is_recorded(h->rt)) ebb__note_operation(f, false);
    if (s != NULL && is_done(f) && f->holds == 0) ebb__member_remove(s, &f->cell);
    ebb__maybe_free(h, f);
    if (!work || s == NULL || --s->producers > 0 || s->ending) return;
    if (s->cx == NULL) ebb__region_futures_maybe_free(s);
    else ebb__region_futures_wake(s);
}

void ebb__maybe_free(ebb__heap *h, ebb_future *f) {
    const uint32_t held = EBB__F_STATIC | EBB__F_QUEUED | EBB__F_PRODUCED | EBB__F_EXPORTED;
    if ((f->flags & (held | EBB__F_FINISHED)) != EBB__F_FINISHED) return;
    if (f->holds > 0 || f->owners > 0 || f->cell.member != 0) return;
    ebb_value v = f->value;
    if (v.type != NULL) ebb__shade_value(h, &v);
    f->value = ebb_value_none(); /* no reader is left */
    if (!(f->flags & EBB__F_LOOSE)) ebb__heap_free_cell(h, &f->cell);
    if (EBB__UNLIKELY(v.type != NULL)) ebb__dispose(v);
}

/* ---- edges ------------------------------------------------------------------------------------------------ */

static void ring_add(ebb_future *f, ebb__edge *e) {
    ebb__edge *last = f->waiters;
    if (last == NULL) {
        e->next = e->prev = e;
    } else {
        e->prev = last;
        e->next = last->next;
        last->next->prev = e;
        last->next = e;
    }
    f->waiters = e;
}

static void ring_remove(ebb_future *f, ebb__edge *e) {
    assert(e->next != NULL && e->prev != NULL);
    if (e->next == e) {
        f->waiters = NULL;
    } else {
        e->prev->next = e->next;
        e->next->prev = e->prev;
        if (f->waiters == e) f->waiters = e->prev;
    }
    e->next = e->prev = NULL;
}

/* The input had ended before the edge was attached, or belongs to another region: the node's own callback runner
 * processes the end. The ready edges of a node with several inputs are linked by `prev`. */
static void make_ready(ebb_future *node, ebb__edge *e) {
    if (e->input & EBB__EDGE_MANY) {
        ebb__many *m = (ebb__many *)(void *)node;
        *m->ready_tail = e;
        m->ready_tail = &e->prev;
    }
    node->flags |= EBB__F_READY;
    ebb__enqueue_future(node);
}

ebb_future *ebb__edge_node(const ebb__edge *e) {
    if (!(e->input & EBB__EDGE_MANY)) {
        return (ebb_future *)(void *)((char *)(uintptr_t)e - offsetof(ebb__single, edge));
    }
    const ebb__item *item = (const ebb__item *)(const void *)e;
    const ebb__item *first = item - item->slot;
    return ((const ebb__edges *)(const void *)((const char *)first - offsetof(ebb__edges, item)))->node;
}

void ebb__edge_attach(ebb_future *node, ebb__edge *e, ebb_future *f, unsigned belongs, const char *site) {
    e->input = (uintptr_t)f | belongs;
    e->next = e->prev = NULL;
    if (!ebb__is_static(f)) f->owners++;
    if (!(f->flags & EBB__F_FINISHED)) ring_add(f, e);
    else if (!(belongs & EBB__EDGE_AWAIT)) make_ready(node, e);
    else ebb__edge_rejoin(e);
    ebb__consume(f, site);
}

void ebb__edge_rejoin(ebb__edge *e) {
    ebb_future *f = ebb__edge_input(e);
    if (f->hooks != NULL && e->next == NULL) ring_add(f, e);
}

void ebb__edge_drop(ebb__heap *h, ebb__edge *e) {
    ebb_future *f = ebb__edge_input(e);
    e->input = 0;
    if (f == NULL || ebb__is_static(f)) return;
    ebb__shade(h, f);
    if (e->next != NULL) ring_remove(f, e);
    f->owners--;
    ebb__maybe_free(h, f);
}

void ebb__edge_cancel(ebb__heap *h, ebb__edge *e, ebb_cancel_kind kind) {
    ebb_future *f = ebb__edge_input(e);
    if (f == NULL) return;
    owner_ends(f, f->owners <= 1 && f->holds == 0, kind);
    ebb__edge_drop(h, e);
}

/* ---- finishing -------------------------------------------------------------------------------------------- */

/* Notifies a waiter that is not a future of this heap. */
static void notify_outside(ebb__edge *e) {
    if ((e->input & EBB__EDGE_MASK) == EBB__EDGE_IMPORT) ebb__import_ended(e);
    else ebb__await_ended(e);
}

static void notify(ebb__region_futures *s, ebb__edge *e) {
    if (e->input & EBB__EDGE_AWAIT) {
        notify_outside(e);
        return;
    }
    ebb_future *node = ebb__edge_node(e);
    if (ebb__has_ended(node)) return; /* an ended node drops its inputs itself */
    if (EBB__LIKELY(node->cell.region == s->index)) {
        ebb__shade(s->heap, node);
        ebb__watch_callback(s, node);
        ebb__kind_of(node)->input_ended(s, node, e);
    } else {
        make_ready(node, e);
    }
}

static bool notify_waiters(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    while (f->waiters != NULL) {
        if (*work == 0) return false;
        --*work;
        ebb__edge *e = f->waiters->next;
        ring_remove(f, e);
        notify(s, e);
    }
    return true;
}

static bool lets_go(const ebb_future *f) {
    return ebb__state_of(f) == EBB_FUTURE_CANCELLED || ebb__kind_of(f)->type.reserved & EBB__TYPE_LETS_GO;
}

/* Its producer was on another thread, and has settled it. */
static bool settled_elsewhere(const ebb_future *f) {
    return (f->flags & (EBB__F_PRODUCED | EBB__F_SETTLED)) == EBB__F_PRODUCED &&
           ebb__state_of(f) != EBB_FUTURE_CANCELLED;
}

/* Finishes a future that has ended: drops its inputs, runs its callbacks, notifies its waiters. False: `work` is used
 * up, and the next call continues. */
static bool finish(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    if (s->stage == STAGE_BEGIN) {
        if (EBB__UNLIKELY(settled_elsewhere(f))) {
            f->flags |= EBB__F_SETTLED;
            ebb__produced(f);
        }
        const ebb__kind *kind = ebb__kind_of(f);
        bool first = !(f->flags & EBB__F_FINISHED);
        if (first && lets_go(f) && kind->cancelled != NULL && !kind->cancelled(s, f, work)) {
            return false;
        }
        s->stage = STAGE_HOOKS;
    }
    if (s->stage == STAGE_HOOKS) {
        if (f->hooks != NULL && !ebb__future_hooks_run(s, f, work)) return false;
        f->flags |= EBB__F_FINISHED; /* edges attached from now on are ready at once */
        s->stage = STAGE_WAITERS;
    }
    if (!notify_waiters(s, f, work)) return false;
    dequeue(s, f);
    if (f->hooks != NULL) { /* a hook was added while waiters were notified */
        ebb__enqueue_future(f);
        return true;
    }
    if (EBB__UNLIKELY(f->flags & EBB__F_CLEANUP)) {
        f->flags = (uint16_t)(f->flags & ~EBB__F_CLEANUP);
        if (f->holds != UINT16_MAX) f->holds--;
    }
    if (f->holds == 0 && is_done(f)) ebb__member_remove(s, &f->cell);
    ebb__maybe_free(s->heap, f);
    return true;
}

/* Takes f out of the queue and passes it the inputs that have ended. */
static void run_ready(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    const ebb__kind *kind = ebb__kind_of(f);
    dequeue(s, f);
    f->flags = (uint16_t)(f->flags & ~EBB__F_READY);
    ebb__shade(s->heap, f);
    if (!(kind->type.reserved & EBB__TYPE_MANY)) {
        kind->input_ended(s, f, &((ebb__single *)(void *)f)->edge);
        return;
    }
    ebb__many *m = (ebb__many *)(void *)f;
    for (; m->ready != NULL && !ebb__has_ended(f); --*work) {
        if (*work == 0) { /* other futures of the queue come first */
            f->flags |= EBB__F_READY;
            ebb__enqueue_future(f);
            return;
        }
        ebb__edge *e = m->ready;
        m->ready = e->prev;
        if (m->ready == NULL) m->ready_tail = &m->ready;
        e->prev = NULL;
        kind->input_ended(s, f, e);
    }
}

bool ebb__run_queue(ebb__region_futures *s, uint32_t *work) {
    while (s->first != NULL) {
        ebb_future *f = s->first;
        if (*work == 0) return false;
        --*work;
        ebb__watch_callback(s, f);
        if (ebb__has_ended(f)) {
            f->flags = (uint16_t)(f->flags & ~EBB__F_READY);
            if (!finish(s, f, work)) return false;
        } else {
            run_ready(s, f, work);
        }
    }
    return true;
}

/* Does the work of the kind's `cancelled`, without running user code. */
static void let_go_quietly(ebb__region_futures *s, ebb_future *f) {
    const ebb__kind *kind = ebb__kind_of(f);
    /* else it let go of its inputs at an end of its own, as a won race does */
    bool cancelled = ebb__state_of(f) == EBB_FUTURE_CANCELLED;
    ebb_cancel_kind why = cancelled ? ebb__kind_of_cancel(f) : EBB_CANCEL_RACE_LOST;
    if (kind->type.reserved & EBB__TYPE_SINGLE) {
        ebb__edge_cancel(s->heap, &((ebb__single *)(void *)f)->edge, why);
    } else if (kind->type.reserved & EBB__TYPE_MANY) {
        for (ebb__edges *p = ((ebb__many *)(void *)f)->edges; p != NULL; p = p->next) {
            for (uint32_t i = 0; i < p->n; i++) ebb__edge_cancel(s->heap, &p->item[i].edge, why);
        }
    }
    if (kind->leave != NULL) kind->leave(f);
    /* a timer is its own producer */
    if (kind->fired != NULL && f->flags & EBB__F_PRODUCED) ebb__produced(f);
}

/* Waiters in other regions are queued there; those in this region are cancelled. */
static void notify_quietly(ebb__region_futures *s, ebb_future *f) {
    while (f->waiters != NULL) {
        ebb__edge *e = f->waiters->next;
        ring_remove(f, e);
        if (e->input & EBB__EDGE_AWAIT) {
            notify_outside(e);
            continue;
        }
        ebb_future *node = ebb__edge_node(e);
        if (ebb__has_ended(node)) continue;
        if (node->cell.region == s->index) (void)ebb__cancel_as(node, EBB_CANCEL_PARENT);
        else make_ready(node, e);
    }
}

void ebb__abandon_queue(ebb__region_futures *s) {
    while (s->first != NULL) {
        ebb_future *f = s->first;
        if (!ebb__has_ended(f)) (void)ebb__cancel_as(f, EBB_CANCEL_PARENT);
        if (!(f->flags & EBB__F_FINISHED)) let_go_quietly(s, f);
        f->hooks = NULL;
        f->flags |= EBB__F_FINISHED;
        notify_quietly(s, f);
        dequeue(s, f);
    }
}

void ebb__ended_elsewhere(ebb_future *f) {
    ebb__heap *h = ebb__heap_of(f);
    if (ebb__is_recorded(h->rt)) ebb__note_future_ended(f);
    if (f->cell.member == 0 || f->flags & EBB__F_FINISHED) return; /* all waiters were notified */
    ebb__region_futures *s = ebb__region_futures_of_cell(h, &f->cell);
    ebb__enqueue_future(f);
    if (s->cx != NULL) return;
    s->ending = true;
    s->expected--;
    ebb__abandon_queue(s);
    if (settled_elsewhere(f)) {
        f->flags |= EBB__F_SETTLED;
        ebb__produced(f);
    }
    bool done = s->let_go ? !(f->flags & EBB__F_WORK) : f->holds == 0 && is_done(f);
    if (f->cell.member != 0 && done) ebb__member_remove(s, &f->cell);
    s->ending = false;
    ebb__region_futures_maybe_free(s);
}

/* ---- state ------------------------------------------------------------------------------------------------ */

ebb_future_state ebb_future_state_of(const ebb_future *f) {
    return f == NULL ? EBB_FUTURE_FAILED : ebb__state_of(f);
}

ebb_status ebb_future_status_of(const ebb_future *f) {
    return f == NULL ? EBB_ERR_INVALID : ebb__status_of(f);
}

ebb_cancel_kind ebb_future_cancel_kind_of(const ebb_future *f) {
    return ebb_future_is_cancelled(f) ? ebb__kind_of_cancel(f) : EBB_CANCEL_NONE;
}

bool ebb_future_is_cancelled(const ebb_future *f) {
    return f != NULL && ebb__state_of(f) == EBB_FUTURE_CANCELLED;
}

/* ---- tracing ---------------------------------------------------------------------------------------------- */

void ebb__trace_future(void *object, ebb_gc_marker *t) {
    const ebb_future *f = object;
    /* Another thread may write the value until the future has ended. */
    if (!(f->flags & EBB__F_EXPORTED) || ebb__has_ended(f)) ebb_gc_mark_value(t, &f->value);
    ebb__trace_cell(t, f->hooks);
}

void ebb__trace_single(void *object, ebb_gc_marker *t) {
    const ebb__single *n = object;
    ebb__trace_future(object, t);
    ebb__trace_edge(t, &n->edge);
}
