#include "base/slab.h"

#include <string.h>

enum { LINE = 64 };

void ebb__slab_init(ebb__slab *s, uint32_t hot, uint32_t cold, uint32_t shift, uint32_t limit) {
    *s = (ebb__slab){.hot = hot, .cold = cold, .shift = shift, .used = 1};
    s->limit = limit == 0 || limit > EBB__SLAB_MAX_INDEX ? EBB__SLAB_MAX_INDEX : limit;
}

static size_t chunk_bytes(const ebb__slab *s) {
    return LINE + (((size_t)s->hot + s->cold) << s->shift);
}

void ebb__slab_fini(ebb__slab *s, const ebb_allocator *a) {
    for (uint32_t i = 0; i < s->chunks; i++) ebb__free(a, s->raw[i], chunk_bytes(s));
    ebb__free(a, (void *)s->base, s->room * sizeof *s->base);
    ebb__free(a, (void *)s->raw, s->room * sizeof *s->raw);
    s->chunks = s->room = 0;
    s->base = s->raw = NULL;
}

static ebb_status grow_directory(ebb__slab *s, const ebb_allocator *a) {
    uint32_t room = s->room == 0 ? 8 : s->room * 2;
    char **base = ebb__alloc(a, room * sizeof *base);
    char **raw = ebb__alloc(a, room * sizeof *raw);
    if (base == NULL || raw == NULL) {
        ebb__free(a, (void *)base, room * sizeof *base);
        ebb__free(a, (void *)raw, room * sizeof *raw);
        return EBB_ERR_NOMEM;
    }
    if (s->chunks > 0) {
        memcpy((void *)base, (void *)s->base, s->chunks * sizeof *base);
        memcpy((void *)raw, (void *)s->raw, s->chunks * sizeof *raw);
    }
    ebb__free(a, (void *)s->base, s->room * sizeof *s->base);
    ebb__free(a, (void *)s->raw, s->room * sizeof *s->raw);
    s->base = base;
    s->raw = raw;
    s->room = room;
    return EBB_OK;
}

ebb_status ebb__slab_reserve(ebb__slab *s, const ebb_allocator *a) {
    if (ebb__slab_ready(s)) return EBB_OK;
    if (s->live >= s->limit || s->used > EBB__SLAB_MAX_INDEX) return EBB_ERR_LIMIT;
    return ebb__slab_grow(s, a);
}

ebb_status ebb__slab_grow(ebb__slab *s, const ebb_allocator *a) {
    if (s->chunks == s->room && grow_directory(s, a) != EBB_OK) return EBB_ERR_NOMEM;
    char *raw = ebb__alloc(a, chunk_bytes(s));
    if (raw == NULL) return EBB_ERR_NOMEM;
    char *base = raw + (LINE - (uintptr_t)raw % LINE) % LINE;
    memset(base, 0, chunk_bytes(s) - LINE);
    s->raw[s->chunks] = raw;
    s->base[s->chunks++] = base;
    return EBB_OK;
}
