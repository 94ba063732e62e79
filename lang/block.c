/* lang/block.c - blocks: what messages and the fields of machines refer to. One block is one allocation, so letting go
 * of it never recurses. */
#include "lang/host.h"

#include <string.h>

#include "base/alloc.h"

typedef struct block {
    ebb_program *program;
    uint32_t count, bytes; /* `bytes` of the object and all behind it */
    uint64_t object[];
} block;

static block *block_at(ebb__object *o) {
    return (block *)(void *)((char *)o - offsetof(block, object));
}

static bool has_bytes(const ebb__object *o) {
    return o->type == EBB__TY_STRING || o->type == EBB__TY_BYTES;
}

static size_t own_size(const ebb__object *o) {
    return sizeof *o +
           (has_bytes(o) ? ((size_t)o->n + 7) / 8 * 8 : ((size_t)o->n_refs + o->n) * sizeof(ebb__value));
}

/* ---- size ---- */

static size_t size_of(const ebb__object *o, size_t limit, uint32_t depth) {
    size_t size = own_size(o);
    if (depth == 0) return SIZE_MAX;
    for (uint32_t i = 0; i < o->n_refs && size <= limit; i++) {
        const ebb__object *of = o->slots[i].ref;
        size_t inside = of == NULL ? 0 : size_of(of, limit - size, depth - 1);
        if (inside == SIZE_MAX) return SIZE_MAX;
        size += inside;
    }
    return size;
}

size_t ebb__value_size(const ebb__object *o, size_t limit) {
    return size_of(o, limit, EBB__VALUE_DEPTH);
}

size_t ebb__block_size(const ebb__object *o) {
    if (!(o->flags & EBB__COUNTED)) return ebb__value_size(o, EBB_MACHINE_FIELDS_MAX);
    return block_at((ebb__object *)(uintptr_t)o)->bytes;
}

/* ---- copying ---- */

static ebb__object *copy_into(char **at, const ebb__object *o) {
    ebb__object *c = (ebb__object *)(void *)*at;
    *at += own_size(o);
    *c = (ebb__object){
        .type = o->type, .flags = EBB__FROZEN, .n_refs = o->n_refs, .n = o->n, .words_at = o->n_refs};
    if (has_bytes(o)) {
        memcpy(c->slots, o->slots, own_size(o) - sizeof *o);
        return c;
    }
    memcpy(c->slots + c->words_at, o->slots + o->words_at, o->n * sizeof *o->slots);
    for (uint32_t i = 0; i < o->n_refs; i++) {
        ebb__object *of = o->slots[i].ref;
        c->slots[i].ref = of == NULL || of->flags & EBB__CONSTANT ? of : copy_into(at, of);
    }
    return c;
}

ebb__object *ebb__block_of(ebb_program *p, ebb__object *o, size_t limit, ebb_status *st) {
    *st = EBB_OK;
    if (o->flags & (EBB__CONSTANT | EBB__COUNTED)) {
        if (ebb__block_size(o) > limit) *st = EBB_ERR_LIMIT;
        else ebb__block_keep(o);
        return *st == EBB_OK ? o : NULL;
    }
    size_t size = ebb__value_size(o, limit);
    *st = size == SIZE_MAX ? EBB_ERR_INVALID : size > limit ? EBB_ERR_LIMIT : EBB_ERR_NOMEM;
    block *b = size > limit ? NULL : ebb__alloc(&p->allocator, sizeof *b + size);
    if (b == NULL) return NULL;
    *b = (block){.program = p, .count = 1, .bytes = (uint32_t)size};
    char *at = (char *)b->object;
    ebb__object *c = copy_into(&at, o);
    c->flags |= EBB__COUNTED;
    *st = EBB_OK;
    p->blocks++;
    return c;
}

void ebb__block_keep(ebb__object *o) {
    if (o->flags & EBB__COUNTED) block_at(o)->count++;
}

void ebb__block_drop(ebb__object *o) {
    if (o == NULL || !(o->flags & EBB__COUNTED)) return;
    block *b = block_at(o);
    if (--b->count > 0) return;
    b->program->blocks--;
    ebb__free(&b->program->allocator, b, sizeof *b + b->bytes);
}
