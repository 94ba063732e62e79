/* lang/image.c - the memory of an image, and how it is made. */
#include "lang/image.h"

#include <string.h>

#include "base/alloc.h"
#include "lang/check.h"

enum { CHUNK = 16 << 10 };

void *ebb__image_new(ebb__image *m, size_t n) {
    return ebb__arena_zero(&m->arena, n);
}

const char *ebb__image_text(ebb__image *m, const char *s, size_t n) {
    char *p = ebb__image_new(m, n + 1);
    if (p != NULL) memcpy(p, s, n);
    return p;
}

/* Whose fields `self` has in each function. */
static void set_owner(ebb__image *m, const ebb__ir_fn *fn, uint32_t machine) {
    if (fn != NULL) m->typestate_of[fn->id] = machine + 1;
}

static void set_owners(ebb__image *m, uint32_t i) {
    const ebb__typestate *ts = m->ir->machines[i].decl->typestate;
    for (uint32_t k = 0; k < ts->fns.n; k++) set_owner(m, ebb__decl_at(&ts->fns, k)->fn, i);
    for (uint32_t s = 0; s < ts->n_states; s++) {
        const ebb__ir_state *st = &m->ir->machines[i].states[s];
        const ebb__vec *methods = &ts->states[s]->methods;
        for (uint32_t k = 0; k < methods->n; k++) set_owner(m, ebb__decl_at(methods, k)->fn, i);
        for (uint32_t k = 0; k < st->n_entries; k++) set_owner(m, st->entries[k].fn, i);
        for (uint32_t k = 0; k < st->n_timers; k++) {
            set_owner(m, st->timers[k].fn, i);
            set_owner(m, st->timers[k].time, i);
        }
        for (uint32_t k = 0; k < st->n_invariants; k++) set_owner(m, st->invariants[k], i);
        set_owner(m, st->entry, i);
        set_owner(m, st->exit, i);
    }
}

static ebb_status find_owners(ebb__image *m) {
    m->typestate_of = ebb__image_new(m, (m->ir->n_fns + 1) * sizeof *m->typestate_of);
    if (m->typestate_of == NULL) return EBB_ERR_NOMEM;
    for (uint32_t i = 0; i < m->ir->n_machines; i++) set_owners(m, i);
    return EBB_OK;
}

ebb_status ebb__image_make(ebb_lang *c, ebb_allocator a, ebb__image *out) {
    *out = (ebb__image){.lang = c, .ir = ebb__lang_program(c), .allocator = a};
    ebb__arena_init(&out->arena, a, CHUNK);
    if (out->ir == NULL) return EBB_ERR_INVALID;
    ebb_status st = ebb__shapes_build(out);
    if (st == EBB_OK) st = find_owners(out);
    return st;
}

void ebb__image_free(ebb__image *m) {
    ebb__free(&m->allocator, m->constants, m->constants_room * sizeof *m->constants);
    ebb__free(&m->allocator, m->words, m->words_room * sizeof *m->words);
    ebb__arena_free(&m->arena);
}
