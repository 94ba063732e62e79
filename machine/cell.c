/* Message cells: 64 bytes with 24 of payload; a larger payload has a block of its own. */
#include "machine/machine.h"

#include "base/alloc.h"

/* ---- pools --------------------------------------------------------------------------------------------------- */

enum { CHUNK = 16384, LINE = 64 };

void ebb__cells_init(ebb__cells *p, size_t size) {
    *p = (ebb__cells){.size = (uint32_t)((size + 15) / 16 * 16)};
    p->a_chunk = p->size == 0 ? 0 : (CHUNK - LINE) / p->size;
    if (p->a_chunk < 8) p->a_chunk = 8;
}

static size_t chunk_bytes(const ebb__cells *p) {
    return LINE + sizeof(void *) * 2 + (size_t)p->size * p->a_chunk;
}

void ebb__cells_free(ebb__cells *p, const ebb_allocator *a) {
    while (p->chunks != NULL) {
        void *chunk = p->chunks;
        memcpy(&p->chunks, chunk, sizeof p->chunks);
        ebb__free(a, chunk, chunk_bytes(p));
    }
    p->free = NULL;
    p->used = 0;
}

/* The records of a chunk begin at a cache line, and are taken in the order of their addresses. */
void *ebb__cells_grow(ebb__cells *p, const ebb_allocator *a) {
    char *chunk = ebb__alloc(a, chunk_bytes(p));
    if (chunk == NULL) return NULL;
    memcpy(chunk, &p->chunks, sizeof p->chunks);
    p->chunks = chunk;
    uintptr_t at = (uintptr_t)(chunk + sizeof(void *));
    char *first = chunk + sizeof(void *) + (LINE - at % LINE) % LINE;
    for (uint32_t i = p->a_chunk; i-- > 0;) {
        memcpy(first + (size_t)i * p->size, &p->free, sizeof p->free);
        p->free = first + (size_t)i * p->size;
    }
    return p->free;
}

/* ---- cells --------------------------------------------------------------------------------------------------- */

static ebb_status charge(ebb_machines *ms, size_t size) {
    if (size > EBB_MACHINE_MESSAGE_MAX) return EBB_ERR_LIMIT;
    uint32_t bytes = ms->staged_bytes + (uint32_t)(sizeof(ebb__cell) + size);
    if (bytes > EBB_MACHINE_DISPATCH_MAX) return EBB_ERR_LIMIT;
    ms->staged_bytes = bytes;
    return EBB_OK;
}

static ebb_status check(ebb_machines *ms, uint16_t kind, const void *payload, size_t size) {
    if (kind >= ms->opts.n_kinds || (payload == NULL && size > 0)) return EBB_ERR_INVALID;
    return charge(ms, size);
}

static ebb_status fill(ebb_machines *ms, ebb__cell *c, uint16_t kind, const void *payload, size_t size) {
    c->what = EBB__MESSAGE;
    c->kind = kind;
    c->flags = 0;
    c->size = (uint32_t)size;
    if (size > EBB__CELL_BYTES) {
        void *block = ebb__alloc(&ms->allocator, size);
        if (block == NULL) {
            c->size = 0;
            return EBB_ERR_NOMEM;
        }
        memcpy(block, payload, size);
        c->body.block = block;
        c->flags = EBB__BLOCK;
    } else if (size == sizeof(uint64_t)) {
        memcpy(c->body.bytes, payload, sizeof(uint64_t));
    } else if (size > 0) {
        memcpy(c->body.bytes, payload, size);
    }
    return EBB_OK;
}

ebb_status ebb__cell_fill(ebb_machines *ms, ebb__cell *c, uint16_t kind, const void *payload, size_t size) {
    uint32_t staged = ms->staged_bytes;
    ebb_status st = check(ms, kind, payload, size);
    if (st == EBB_OK) st = fill(ms, c, kind, payload, size);
    if (st == EBB_OK) return EBB_OK;
    c->what = EBB__FAILED;
    ms->staged_bytes = staged;
    return st;
}

ebb__cell *ebb__cell_new(ebb_machines *ms, uint16_t kind, const void *payload, size_t size, ebb_status *st) {
    uint32_t staged = ms->staged_bytes;
    *st = check(ms, kind, payload, size);
    if (EBB__UNLIKELY(*st != EBB_OK)) return NULL;
    ebb__cell *c = ebb__cells_take(&ms->cells, &ms->allocator);
    *st = EBB__LIKELY(c != NULL) ? fill(ms, c, kind, payload, size) : EBB_ERR_NOMEM;
    if (EBB__LIKELY(*st == EBB_OK)) return c;
    if (c != NULL) ebb__cells_give(&ms->cells, c);
    ms->staged_bytes = staged;
    return NULL;
}

void ebb__cell_empty(ebb_machines *ms, ebb__cell *c) {
    const ebb_machine_kind *k = ebb_machines_kind(ms, c->kind);
    if (k != NULL && k->drop != NULL && c->what <= EBB__NOBODY && c->kind != EBB_MACHINE_REQUEST_FAILED)
        k->drop(ebb__cell_payload(c));
    if (c->flags & EBB__BLOCK) ebb__free(&ms->allocator, c->body.block, c->size);
    c->flags &= (uint8_t)~EBB__BLOCK;
    c->size = 0;
}

void ebb__cell_free_slow(ebb_machines *ms, ebb__cell *c) {
    ebb__cell_empty(ms, c);
    ebb__cells_give(&ms->cells, c);
}
