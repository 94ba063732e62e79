/* lang/system.c - what a program tells about itself, see system.h. */
#include "lang/system.h"

#include "lang/check.h"

static bool role_takes(const ebb__role *r, ebb__type message) {
    for (uint32_t i = 0; i < r->n_states; i++) {
        const ebb__rstate *s = &r->states[i];
        for (uint32_t t = 0; t < s->n_trans; t++) {
            if (s->trans[t].trigger == message && s->trans[t].peer == 0) return true;
        }
    }
    return false;
}

const char *ebb__system_protocol(const ebb_program *p, uint32_t kind) {
    const ebb_lang *c = p->image.lang;
    for (uint32_t i = 0; i < c->check->protocols.n; i++) {
        const ebb__protocol *of = *EBB__VEC_AT(&c->check->protocols, ebb__protocol *, i);
        for (uint32_t r = 0; r < of->n_roles; r++) {
            if (role_takes(of->roles[r], p->image.ir->kinds[kind].type))
                return ebb__name_text(c, of->decl->name);
        }
    }
    return NULL;
}

const ebb__host_type *ebb__typestate_of(const ebb_machine_type *type) {
    return type->settle == ebb__host_settle ? (const ebb__host_type *)(const void *)type : NULL;
}

ebb__object *ebb__machine_json(ebb__run *run, const ebb_machine_info *info) {
    const ebb__host_type *t = ebb__typestate_of(info->type);
    if (t == NULL || info->fields == NULL) return NULL;
    return ebb__object_json(run, t->states[info->state].type, (ebb__object *)(uintptr_t)info->fields);
}

uint32_t ebb__targets_of(const ebb_program *p, const ebb__ir_fn *fn, uint32_t *states, uint32_t room,
                         bool *stays) {
    const ebb_lang *c = p->image.lang;
    const ebb__type *members;
    uint32_t n = ebb__type_members(c, &fn->result, &members), found = 0;
    *stays = false;
    for (uint32_t i = 0; i < n; i++) {
        const ebb__type_info *x = ebb__type_at(c, members[i]);
        if (x->kind == EBB__TY_UNIT) *stays = true;
        if (x->kind == EBB__TY_STATE && found < room) states[found++] = x->index;
    }
    return found;
}
