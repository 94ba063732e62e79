/* lang/shape.c - shapes of the types of a compilation. */
#include "lang/image.h"

#include <string.h>

#include "base/text.h"
#include "lang/check.h"

bool ebb__shape_has(const ebb__shape *whole, uint32_t whole_type, uint32_t member) {
    if (whole->kind != EBB__TY_UNION) return whole_type == member;
    for (uint32_t i = 0; i < whole->n; i++) {
        if (whole->of[i] == member) return true;
    }
    return false;
}

static bool is_reference(uint8_t kind) {
    static const bool refs[] = {[EBB__TY_ERROR] = true, /* self of a helper: a state object */
                                [EBB__TY_STRING] = true, [EBB__TY_BYTES] = true, [EBB__TY_LIST] = true,
                                [EBB__TY_MAP] = true,    [EBB__TY_TUPLE] = true, [EBB__TY_RECORD] = true,
                                [EBB__TY_UNION] = true,  [EBB__TY_STATE] = true, [EBB__TY_REPLY_CAP] = false};
    return refs[kind];
}

static const char *name_of(ebb__image *m, uint32_t type, const ebb__type_info *t) {
    char room[256];
    ebb__text text = ebb__text_in(room, sizeof room);
    if (t->kind == EBB__TY_RECORD) return ebb__name_text(m->lang, t->decl->name);
    if (t->kind == EBB__TY_STATE) return ebb__name_text(m->lang, t->decl->typestate->states[t->index]->name);
    ebb__type_print(m->lang, &text, type);
    return ebb__image_text(m, room, text.n);
}

/* ---- layout ---- */

static bool set_fields(ebb__image *m, ebb__shape *s, const ebb__field *fields, uint32_t n) {
    uint32_t *of = ebb__image_new(m, (n + 1) * sizeof *of);
    const char **names = ebb__image_new(m, (n + 1) * sizeof *names);
    if (of == NULL || names == NULL) return false;
    for (uint32_t i = 0; i < n; i++) {
        of[i] = fields[i].type;
        names[i] = ebb__name_text(m->lang, fields[i].name);
    }
    s->n = n;
    s->of = of;
    s->names = names;
    return true;
}

static void count_slots(const ebb__image *m, const ebb__shape *s, uint32_t *refs, uint32_t *words) {
    for (uint32_t i = 0; i < s->n; i++) {
        if (m->shapes[s->of[i]].is_ref) ++*refs;
        else ++*words;
    }
}

/* References from slot 0, words behind `s->n_refs`. */
static bool place(ebb__image *m, ebb__shape *s) {
    uint16_t *at = ebb__image_new(m, (s->n + 1) * sizeof *at);
    uint32_t ref = 0, word = s->n_refs;
    if (at == NULL) return false;
    for (uint32_t i = 0; i < s->n; i++) at[i] = (uint16_t)(m->shapes[s->of[i]].is_ref ? ref++ : word++);
    s->at = at;
    return true;
}

/* States of one typestate have as many slots as the largest of them. */
static void widen_state(const ebb__image *m, const ebb__type_info *t, ebb__shape *s) {
    const ebb__typestate *ts = t->decl->typestate;
    for (uint32_t i = 0; i < ts->n_states; i++) {
        uint32_t refs = 0, words = 0;
        for (uint32_t f = 0; f < ts->states[i]->n_fields; f++) {
            if (m->shapes[ts->states[i]->fields[f].type].is_ref) refs++;
            else words++;
        }
        if (refs > s->n_refs) s->n_refs = refs;
        if (words > s->n_words) s->n_words = words;
    }
}

static bool lay_out(ebb__image *m, uint32_t type) {
    const ebb__type_info *t = ebb__type_at(m->lang, type);
    ebb__shape *s = &m->shapes[type];
    switch (t->kind) {
    case EBB__TY_RECORD:
        if (!set_fields(m, s, t->decl->fields, t->decl->n_fields)) return false;
        break;
    case EBB__TY_STATE: {
        const ebb__state *st = t->decl->typestate->states[t->index];
        if (!set_fields(m, s, st->fields, st->n_fields)) return false;
        widen_state(m, t, s);
        return place(m, s);
    }
    case EBB__TY_TUPLE: break;
    default: return true;
    }
    count_slots(m, s, &s->n_refs, &s->n_words);
    return place(m, s);
}

static bool add_constant(ebb__image *m, uint32_t type) {
    ebb__shape *s = &m->shapes[type];
    bool unit = type == EBB__TY_UNIT;
    if (!unit && (s->kind != EBB__TY_RECORD || s->n > 0)) return true;
    ebb__object *o = ebb__image_new(m, sizeof *o + sizeof(ebb__value));
    if (o == NULL) return false;
    o->type = (uint16_t)type;
    o->flags = EBB__FROZEN | EBB__CONSTANT;
    o->n = unit;
    s->constant = o;
    return true;
}

static uint32_t machine_of(const ebb__image *m, const struct ebb__decl *d) {
    for (uint32_t i = 0; i < m->ir->n_machines; i++) {
        if (m->ir->machines[i].decl == d) return i;
    }
    return UINT32_MAX;
}

ebb_status ebb__shapes_build(ebb__image *m) {
    const ebb_lang *c = m->lang;
    m->n_shapes = c->check->types.n;
    if (m->n_shapes > UINT16_MAX) return ebb__image_limit(m, "the program", "more than 65,535 types");
    m->shapes = ebb__image_new(m, m->n_shapes * sizeof *m->shapes);
    if (m->shapes == NULL) return EBB_ERR_NOMEM;
    for (uint32_t i = 0; i < m->n_shapes; i++) {
        const ebb__type_info *t = ebb__type_at(c, i);
        m->shapes[i] = (ebb__shape){.kind = t->kind,
                                    .is_ref = is_reference(t->kind),
                                    .is_error = t->is_error,
                                    .n = t->n,
                                    .of = t->of,
                                    .name = name_of(m, i, t),
                                    .kind_id = t->kind_id,
                                    .typestate = UINT32_MAX};
        if (t->kind == EBB__TY_STATE) {
            m->shapes[i].typestate = machine_of(m, t->decl);
            m->shapes[i].state = t->index;
        }
    }
    for (uint32_t i = 0; i < m->n_shapes; i++) {
        if (!lay_out(m, i) || !add_constant(m, i) || m->shapes[i].name == NULL) return EBB_ERR_NOMEM;
        if (m->shapes[i].n > UINT16_MAX)
            return ebb__image_limit(m, m->shapes[i].name, "more than 65,535 members");
    }
    return EBB_OK;
}
