/* See many.h. */
#include "future/many.h"

#include "future/promise.h"

void ebb__trace_many(void *object, ebb_gc_marker *t) {
    const ebb__many *m = object;
    ebb__trace_future(object, t);
    ebb__trace_cell(t, m->edges);
}

ebb__many *ebb__many_new(ebb_cx *cx, const ebb__kind *kind, size_t n, ebb_future *const *fs, const char *site,
                         ebb_status *st) {
    if (n > UINT32_MAX) *st = EBB_ERR_LIMIT;
    else if (n > 0 && fs == NULL) *st = EBB_ERR_INVALID;
    if (*st != EBB_OK) return NULL;
    ebb__many *m = (ebb__many *)(void *)ebb__future_new(cx, kind, site, st);
    if (m == NULL) return NULL;
    m->ready_tail = &m->ready;
    m->future.spare = (uint32_t)n;
    return m;
}

ebb_future *ebb__many_refused(size_t n, ebb_future *const *fs, ebb_status st, const char *site) {
    for (size_t i = 0; fs != NULL && i < n; i++) ebb__consume_failed(fs[i], site);
    return ebb__failed(st);
}

/* Appends a piece. */
static ebb__edges *add_piece(ebb__many *m, ebb__edges *last, uint32_t n) {
    ebb__edges *piece = ebb__edges_new(ebb__heap_of(m), &m->future, n);
    if (last != NULL) last->next = piece;
    else m->edges = piece;
    return piece;
}

static uint32_t piece_size(size_t left) {
    return left < EBB__EDGES_A_PIECE ? (uint32_t)left : EBB__EDGES_A_PIECE;
}

ebb_status ebb__many_reserve(ebb__many *m, uint32_t n) {
    ebb__edges *last = NULL;
    for (uint32_t size; n > 0; n -= size) {
        size = piece_size(n);
        last = add_piece(m, last, size);
        if (last == NULL) return ebb__refusal(ebb__heap_of(m));
    }
    return EBB_OK;
}

/* EBB_OK, or why the node cannot wait for fs[*i]. */
static ebb_status attach_all(ebb__many *m, size_t n, ebb_future *const *fs, size_t *i, const char *site) {
    ebb__edges *piece = NULL;
    for (*i = 0; *i < n; ++*i) {
        uint32_t slot = (uint32_t)(*i % EBB__EDGES_A_PIECE);
        if (slot == 0) piece = add_piece(m, piece, piece_size(n - *i));
        if (piece == NULL) return ebb__refusal(ebb__heap_of(m));
        ebb_status st = ebb__usable_in(ebb__heap_of(m), fs[*i]);
        if (st != EBB_OK) return st;
        piece->item[slot].index = (uint32_t)*i;
        ebb__edge_attach(&m->future, &piece->item[slot].edge, fs[*i], EBB__EDGE_MANY, site);
    }
    return EBB_OK;
}

void ebb__many_wait(ebb__many *m, size_t n, ebb_future *const *fs, ebb_status st, const char *site) {
    size_t i = 0;
    uint32_t all = UINT32_MAX;
    if (st == EBB_OK) st = attach_all(m, n, fs, &i, site);
    if (st == EBB_OK) return;
    (void)ebb__fail_with(&m->future, st);
    (void)ebb__many_let_go(ebb__heap_of(m), m, EBB_CANCEL_RESOURCE, &all);
    (void)ebb__many_refused(n - i, fs + i, st, site);
}

bool ebb__many_let_go(ebb__heap *h, ebb__many *m, ebb_cancel_kind kind, uint32_t *work) {
    while (m->edges != NULL) {
        ebb__edges *piece = m->edges;
        if (*work == 0) return false;
        *work -= *work < piece->n ? *work : piece->n;
        for (uint32_t i = 0; i < piece->n; i++) ebb__edge_cancel(h, &piece->item[i].edge, kind);
        m->edges = piece->next;
        ebb__shade(h, piece->next);
        ebb__heap_free_cell(h, &piece->cell);
    }
    return true;
}
