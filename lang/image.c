/* lang/image.c - the memory of an image, and how it is made. */
#include "lang/image.h"

#include <string.h>

#include "base/alloc.h"
#include "lang/check.h"

enum { CHUNK = 16 << 10 };

void *ebb__image_new(ebb__image *m, size_t n) {
    return ebb__arena_zero(&m->arena, n);
}

ebb_status ebb__image_limit(ebb__image *m, const char *of, const char *limit) {
    m->limit_of = of;
    m->limit = limit;
    return EBB_ERR_LIMIT;
}

const char *ebb__image_text(ebb__image *m, const char *s, size_t n) {
    char *p = ebb__image_new(m, n + 1);
    if (p != NULL) memcpy(p, s, n);
    return p;
}

/* ---- whose fields `self` has in each function, and in which state ---- */

typedef struct owner {
    ebb__image *m;
    uint32_t machine; /* 1 + its number */
    uint32_t state;   /* a type, or 0 */
} owner;

static void set_owner(owner o, const ebb__ir_fn *fn) {
    if (fn == NULL) return;
    o.m->self_of[fn->id].machine = o.machine;
    o.m->self_of[fn->id].state = o.state;
}

static void set_owners(owner o, const ebb__vec *fns, const ebb__vec *handlers, const ebb__vec *invariants) {
    for (uint32_t k = 0; k < fns->n; k++) set_owner(o, ebb__decl_at(fns, k)->fn);
    for (uint32_t k = 0; k < handlers->n; k++) {
        set_owner(o, ebb__handler_at(handlers, k)->fn);
        set_owner(o, ebb__handler_at(handlers, k)->time);
    }
    for (uint32_t k = 0; k < invariants->n; k++) set_owner(o, *EBB__VEC_AT(invariants, ebb__ir_fn *, k));
}

static uint32_t state_type(const ebb__image *m, uint32_t machine, uint32_t state) {
    for (uint32_t i = 0; i < m->n_shapes; i++) {
        const ebb__shape *s = &m->shapes[i];
        if (s->kind == EBB__TY_STATE && s->typestate == machine && s->state == state) return i;
    }
    return 0;
}

static bool find_owners(ebb__image *m) {
    m->self_of = ebb__image_new(m, (m->ir->n_fns + 1) * sizeof *m->self_of);
    if (m->self_of == NULL) return false;
    for (uint32_t i = 0; i < m->ir->n_machines; i++) {
        const ebb__typestate *ts = m->ir->machines[i].decl->typestate;
        set_owners((owner){m, i + 1, 0}, &ts->fns, &ts->handlers, &ts->invariants);
        for (uint32_t s = 0; s < ts->n_states; s++) {
            const ebb__state *st = ts->states[s];
            owner o = {m, i + 1, state_type(m, i, s)};
            set_owners(o, &st->methods, &st->handlers, &st->invariants);
            set_owner(o, st->entry_fn);
            set_owner(o, st->exit_fn);
        }
    }
    return true;
}

ebb_status ebb__image_make(ebb_lang *c, ebb_allocator a, ebb__image *out) {
    *out = (ebb__image){.lang = c, .ir = ebb__lang_program(c), .allocator = a};
    ebb__arena_init(&out->arena, a, CHUNK);
    if (out->ir == NULL) return EBB_ERR_INVALID;
    ebb_status st = ebb__shapes_build(out);
    if (st == EBB_OK && !find_owners(out)) st = EBB_ERR_NOMEM;
    return st;
}

void ebb__image_free(ebb__image *m) {
    ebb__free(&m->allocator, m->constants, m->constants_room * sizeof *m->constants);
    ebb__free(&m->allocator, m->words, m->words_room * sizeof *m->words);
    ebb__arena_free(&m->arena);
}
