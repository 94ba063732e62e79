/* Handles, and the handles of a region. */
#define _POSIX_C_SOURCE 200809L
#include "loop/handle.h"

#include <assert.h>

#include "base/alloc.h"
#include "loop/region_handles.h"

/* ---- kinds -------------------------------------------------------------------------------------------- */

static const struct {
    const char *what;
    void (*stop)(ebb__handle *h);
} kinds[EBB__HANDLE_KINDS] = {
    [EBB__TCP] = {"tcp stream", ebb__stream_stop},
    [EBB__PIPE] = {"pipe", ebb__stream_stop},
    [EBB__TCP_LISTENER] = {"tcp listener", ebb__listening_stop},
    [EBB__PIPE_LISTENER] = {"pipe listener", ebb__listening_stop},
    [EBB__FILE] = {"file", ebb__file_stop},
    [EBB__PROCESS] = {"process", ebb__process_stop},
    [EBB__SIGNAL] = {"signal", ebb__signal_stop},
    [EBB__READINESS] = {"descriptor", ebb__ready_stop},
    [EBB__HANDLE_OP] = {NULL, ebb__handle_op_stop},
};

const char *ebb__handle_what(const ebb__handle *h) {
    return h->kind == EBB__HANDLE_OP ? h->as.op.what : kinds[h->kind].what;
}

uint64_t ebb__handle_id(const ebb__handle *h) {
    return ebb__id(h->loop->rt, h->index, h->generation);
}

uint64_t ebb__handle_error(const ebb_cx *cx, ebb_status st) {
    return ebb__id_error(ebb__rt_of(cx), st);
}

/* ---- handles of a region -------------------------------------------------------------------------------- */

static void region_handles_free(ebb__region_handles *n) {
    ebb__free(&n->loop->allocator, n, sizeof *n);
}

static void region_handles_link(ebb__region_handles *n, ebb__handle *h) {
    assert(h->list == NULL && h->state == EBB__HANDLE_OPEN && !n->abandoned);
    h->list = n;
    h->prev = NULL;
    h->next = n->first;
    if (n->first != NULL) n->first->prev = h;
    n->first = h;
}

static void region_handles_unlink(ebb__handle *h) {
    ebb__region_handles *n = h->list;
    assert(n != NULL && (h->prev != NULL ? h->prev->next == h : n->first == h));
    if (h->prev != NULL) h->prev->next = h->next;
    else n->first = h->next;
    if (h->next != NULL) h->next->prev = h->prev;
    h->list = NULL;
    if (n->first != NULL) return;
    if (n->abandoned) {
        assert(n->loop->pending > 0);
        n->loop->pending--;
        /* libuv closes handles after the turn: another turn has to see that all have ended. */
        n->loop->entered = true;
        region_handles_free(n);
    } else if (n->closer.id != 0) (void)ebb_task_wake(ebb_runtime_host(n->loop->rt), n->closer);
}

static const char *name_of(const ebb__handle *h) {
    return h->kind == EBB__PROCESS ? h->as.child.name : "";
}

static bool goes_on(const ebb__handle *h) {
    const ebb__handle_op *g = &h->as.op;
    if (h->kind == EBB__PROCESS) return !h->as.child.exited;
    return h->kind == EBB__HANDLE_OP && g->goes_on != NULL && g->goes_on(g->ctx);
}

/* The region is forced to close before these handles are. Only those for which code still runs are reported: libuv
 * releases the others by itself. */
static void report_abandoned(ebb_cx *cx, const ebb__region_handles *n) {
    for (const ebb__handle *h = n->first; h != NULL; h = h->next) {
        if (!goes_on(h)) continue;
        ebb__operation_abandoned(cx, n->region, ebb__handle_what(h), name_of(h), h->site, 0);
    }
}

/* The handle that was opened last is closed first. The finalizer waits for processes unless the region is forced.
 * Then closing handles stay with libuv, which has all that it needs. */
static ebb_status region_handles_finalize(ebb_cx *cx, void *arg) {
    ebb__region_handles *n = arg;
    assert(!n->abandoned); /* it returns once */
    bool forced = ebb__is_overdue(cx);
    bool kills = forced || ebb__region_is(n->loop->rt, ebb__region_of(cx), EBB__REGION_FORCED);
    if (n->closer.id == 0) ebb__map_remove(&n->loop->by_region, n->region.id);
    n->closer = ebb_cx_task(cx);
    ebb__handle *next;
    for (ebb__handle *h = n->first; h != NULL; h = next) {
        next = h->next;
        ebb__handle_close(h);
        if (kills && h->kind == EBB__PROCESS) ebb__process_force(h);
    }
    n->abandoned = n->first != NULL && forced;
    if (n->abandoned) {
        n->loop->pending++; /* uv_run has to go on until these handles are closed */
        report_abandoned(cx, n);
    }
    if (n->first != NULL) return forced ? EBB_OK : EBB_PENDING;
    region_handles_free(n);
    return EBB_OK;
}

bool ebb__region_handles_each(const ebb__obligation_view *d,
                              void (*each)(void *ctx, const char *what, const char *name, const char *site),
                              void *ctx) {
    if (d->kind != 0 || d->finalize != region_handles_finalize) return false;
    const ebb__region_handles *n = d->arg;
    for (const ebb__handle *h = n->first; h != NULL; h = h->next) {
        each(ctx, ebb__handle_what(h), name_of(h), h->site);
    }
    return true;
}

static ebb__region_handles *region_handles_new(ebb_loop *l, ebb_region region, ebb_status *st) {
    ebb__region_handles *n = ebb__alloc(&l->allocator, sizeof *n);
    ebb__region_handles **slot = n == NULL ? NULL : ebb__map_put(&l->by_region, region.id);
    *st = EBB_ERR_NOMEM;
    if (slot != NULL) {
        *n = (ebb__region_handles){.loop = l, .region = region};
        *slot = n;
        *st = ebb__region_defer_apart(ebb_runtime_host(l->rt), region, region_handles_finalize, n, "handles");
        if (*st == EBB_OK) return n;
        ebb__map_remove(&l->by_region, region.id);
    }
    ebb__free(&l->allocator, n, sizeof *n);
    return NULL;
}

static ebb__region_handles *region_handles_of(ebb_loop *l, ebb_region region, ebb_status *st) {
    ebb__region_handles **slot = ebb__map_find(&l->by_region, region.id);
    if (slot != NULL) return *slot;
    ebb__region *r;
    *st = ebb__region_get(l->rt, region, &r);
    if (*st == EBB_ERR_STALE) *st = EBB_ERR_CLOSED;
    return *st == EBB_OK ? region_handles_new(l, region, st) : NULL;
}

void ebb__handle_op_stop(ebb__handle *h) {
    h->as.op.stop(h->as.op.ctx);
}

/* ---- life --------------------------------------------------------------------------------------------------- */

ebb__handle *ebb__handle_new(ebb_loop *l, ebb_region region, ebb__handle_kind kind, const char *site,
                             ebb_status *st) {
    *st = ebb__slab_reserve(&l->handles, &l->allocator);
    ebb__region_handles *n = *st == EBB_OK ? region_handles_of(l, region, st) : NULL;
    if (n == NULL) return NULL;
    uint32_t i = ebb__slab_take(&l->handles);
    ebb__handle *h = ebb__slab_at(&l->handles, i);
    uint32_t generation = h->generation;
    memset(h, 0, sizeof *h);
    h->generation = generation;
    h->index = i;
    h->kind = (uint8_t)kind;
    h->state = EBB__HANDLE_OPEN;
    h->loop = l;
    h->site = site;
    region_handles_link(n, h);
    return h;
}

void ebb__handle_ready(ebb__handle *h) {
    h->uv.any.data = h;
    h->loop->os->unref(&h->uv.any);
}

void ebb__handle_free(ebb__handle *h) {
    ebb_loop *l = h->loop;
    assert(h->state != EBB__HANDLE_FREE);
    region_handles_unlink(h);
    if (EBB__UNLIKELY(l->listeners != NULL)) { /* a listener may wait for a descriptor, and one is free now */
        l->descriptor_freed = l->entered = true;
        l->listen_at = 0;
    }
    h->state = EBB__HANDLE_FREE;
    ebb__slab_give(&h->loop->handles, h->index);
}

static void on_closed(uv_handle_t *uv) {
    ebb__handle_free(uv->data);
}

void ebb__handle_let_go(ebb__handle *h) {
    assert(h->state != EBB__HANDLE_FREE);
    h->state = EBB__HANDLE_CLOSING;
    h->loop->os->close(&h->uv.any, on_closed);
}

void ebb__handle_close(ebb__handle *h) {
    if (h->state != EBB__HANDLE_OPEN) return;
    h->state = EBB__HANDLE_CLOSING;
    kinds[h->kind].stop(h);
}

ebb_status ebb__handle_move(ebb__handle *h, ebb_region region) {
    assert(h->state == EBB__HANDLE_OPEN);
    ebb__region *r;
    ebb_status st = ebb__region_get(h->loop->rt, region, &r);
    if (st == EBB_ERR_STALE || (st == EBB_OK && ebb__region_state(r) != EBB_REGION_OPEN))
        return EBB_ERR_CLOSED;
    ebb__region_handles *n = st == EBB_OK ? region_handles_of(h->loop, region, &st) : NULL;
    if (n == NULL) return st;
    region_handles_unlink(h);
    region_handles_link(n, h);
    return EBB_OK;
}

/* ---- ids ------------------------------------------------------------------------------------------------------ */

static ebb_status find(const ebb_loop *l, uint64_t id, ebb__handle **out) {
    ebb__handle *h = ebb__record_of(l->rt, &l->handles, id, EBB__HANDLE_SHIFT, sizeof *h);
    if (EBB__UNLIKELY(h == NULL)) {
        ebb_status st = ebb__lookup_failed(l->rt, id);
        assert(st != EBB_OK);
        return st == EBB_ERR_STALE ? EBB_ERR_CLOSED : st;
    }
    *out = h;
    return h->state == EBB__HANDLE_OPEN ? EBB_OK : EBB_ERR_CLOSED;
}

ebb_status ebb__handle_find(const ebb_cx *cx, uint64_t id, ebb__handle_kind kind, ebb__handle_kind or_kind,
                            ebb__handle **out) {
    ebb_loop *l;
    *out = NULL;
    ebb_status st = ebb__loop_of(cx, &l);
    if (st == EBB_OK) st = find(l, id, out);
    if (st != EBB_OK) return st;
    return (*out)->kind == kind || (*out)->kind == or_kind ? EBB_OK : EBB_ERR_INVALID;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Runs on the loop's thread, like all callbacks of its futures. */
static void dispose(void *word) {
    uint64_t id = (uintptr_t)word;
    ebb_loop *l = ebb__loop_here((uint8_t)(id >> 56));
    ebb__handle *h;
    if (l != NULL && find(l, id, &h) == EBB_OK) ebb__handle_close(h);
}

static const ebb_type handle_type = {"handle", 0, NULL, dispose, EBB__TYPE_AT_HOME};

ebb_value ebb__handle_value(const ebb__handle *h) {
    return (ebb_value){&handle_type, {.u = ebb__handle_id(h)}};
}
