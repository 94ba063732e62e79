/* Types as they are used: checked and copied when the first machine of the type is spawned. */
#include "machine/machine.h"

#include "base/alloc.h"
#include "base/opts.h"

static bool rules_are_valid(const ebb_machine_type *t) {
    uint32_t n = (uint32_t)t->n_states * t->columns;
    for (uint32_t i = 0; i < n; i++) {
        if (t->table[i].what > EBB_MACHINE_IGNORE) return false;
        if (t->table[i].what == EBB_MACHINE_HANDLE && t->table[i].fn == NULL) return false;
    }
    return true;
}

static bool columns_are_valid(const ebb_machines *ms, const ebb_machine_type *t) {
    for (uint32_t k = 0; t->column != NULL && k < ms->opts.n_kinds; k++) {
        if (t->column[k] > t->columns) return false;
    }
    return true;
}

static bool is_valid(const ebb_machines *ms, const ebb_machine_type *t) {
    return t->n_states > 0 && t->states != NULL && t->fields <= EBB_MACHINE_FIELDS_MAX &&
           t->fault_state <= t->n_states && (t->table != NULL || t->columns == 0) && rules_are_valid(t) &&
           columns_are_valid(ms, t);
}

static bool is_plain(const ebb_machine_type *t) {
    for (uint32_t i = 0; i < t->n_states; i++) {
        const ebb_machine_state *s = &t->states[i];
        if (s->entry != NULL || s->exit != NULL || s->invariant != NULL) return false;
    }
    return t->settle == NULL;
}

/* The copy of the fields that handlers work on is as large as those of the largest type. A dispatch keeps the copy
 * that it has begun with. */
static bool reserve_shadow(ebb_machines *ms, size_t size) {
    if (size <= ms->shadow_size) return true;
    unsigned char *p = ebb__alloc(&ms->allocator, size);
    if (p == NULL) return false;
    if (ms->running != NULL && ms->shadow_old == NULL) {
        ms->shadow_old = ms->shadow;
        ms->shadow_old_size = ms->shadow_size;
    } else {
        ebb__free(&ms->allocator, ms->shadow, ms->shadow_size);
    }
    ms->shadow = p;
    ms->shadow_size = size;
    return true;
}

static ebb__machine_type *add(ebb_machines *ms, const ebb_machine_type *type, ebb_status *st) {
    ebb__machine_type *mt = ebb__alloc(&ms->allocator, sizeof *mt);
    *st = EBB_ERR_NOMEM;
    if (mt == NULL) return NULL;
    *mt = (ebb__machine_type){.given = type, .next = ms->types, .number = ms->n_types + 1};
    *st = EBB__OPTS_COPY(&mt->t, type);
    if (*st == EBB_OK && !is_valid(ms, &mt->t)) *st = EBB_ERR_INVALID;
    if (*st == EBB_OK && !reserve_shadow(ms, mt->t.fields)) *st = EBB_ERR_NOMEM;
    if (*st != EBB_OK) {
        ebb__free(&ms->allocator, mt, sizeof *mt);
        return NULL;
    }
    mt->plain = is_plain(&mt->t);
    if (mt->t.mailbox == 0) mt->t.mailbox = EBB_MACHINE_MAILBOX;
    ebb__cells_init(&mt->fields, mt->t.fields);
    ms->types = mt;
    ms->n_types++;
    return mt;
}

ebb__machine_type *ebb__machine_type_of(ebb_machines *ms, const ebb_machine_type *type, ebb_status *st) {
    *st = type == NULL ? EBB_ERR_INVALID : EBB_OK;
    if (type == NULL) return NULL;
    for (ebb__machine_type *t = ms->types; t != NULL; t = t->next)
        if (t->given == type) return t;
    return add(ms, type, st);
}

void ebb__machine_types_free(ebb_machines *ms) {
    while (ms->types != NULL) {
        ebb__machine_type *t = ms->types;
        ms->types = t->next;
        ebb__cells_free(&t->fields, &ms->allocator);
        ebb__free(&ms->allocator, t, sizeof *t);
    }
}
