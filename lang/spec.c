/* lang/spec.c - monitors. A spec sees each message of its kinds when a machine has handled it, in the dispatch that
 * does so: if the spec does not hold, the dispatch is a fault. It is no machine; its handlers are pure. */
#include "lang/host.h"

#include <string.h>

#include "lang/decl.h"

/* The first value of a spec's fields: zero, empty, and so on down. */
static ebb__object *first_value(ebb__run *run, uint32_t type, uint32_t depth);

static bool set_first(ebb__run *run, ebb__object *o, uint32_t depth) {
    const ebb__shape *s = &run->shapes[o->type];
    for (uint32_t i = 0; i < s->n; i++) {
        if (!run->shapes[s->of[i]].is_ref) continue;
        ebb__object *x = first_value(run, s->of[i], depth + 1);
        if (x == NULL) return false;
        o->slots[s->at[i]].ref = x;
    }
    return true;
}

static ebb__object *first_value(ebb__run *run, uint32_t type, uint32_t depth) {
    const ebb__shape *s = &run->shapes[type];
    ebb__object *o;
    if (depth > EBB__VALUE_DEPTH) return NULL;
    switch (s->kind) {
    case EBB__TY_UNION: return first_value(run, s->of[0], depth + 1);
    case EBB__TY_STRING:
    case EBB__TY_BYTES: return ebb__bytes_new(run, type, NULL, 0);
    case EBB__TY_LIST: return ebb__array_new(run, type, 0);
    case EBB__TY_MAP: return ebb__dict_new(run, type, 0);
    case EBB__TY_RECORD:
    case EBB__TY_TUPLE:
    case EBB__TY_STATE:
        o = ebb__object_make(run, type);
        return o != NULL && set_first(run, o, depth) ? o : NULL;
    default: return ebb__object_box(run, type, 0);
    }
}

static uint32_t state_type(const ebb_program *p, const ebb__ir_machine *ir, uint32_t state) {
    uint32_t machine = (uint32_t)(ir - p->image.ir->machines);
    for (uint32_t i = 0; i < p->image.n_shapes; i++) {
        const ebb__shape *s = &p->image.shapes[i];
        if (s->kind == EBB__TY_STATE && s->typestate == machine && s->state == state) return i;
    }
    return 0;
}

static ebb_status make_spec(ebb_program *p, ebb__spec *s, const ebb__ir_machine *ir) {
    ebb_status st = EBB_ERR_NOMEM;
    ebb__run run = {.program = p, .shapes = p->image.shapes};
    ebb__object *first = ir->n_states == 0 ? NULL : first_value(&run, state_type(p, ir, 0), 0);
    *s = (ebb__spec){.ir = ir};
    if (first != NULL) s->fields = ebb__block_of(p, first, EBB_MACHINE_FIELDS_MAX, &st);
    ebb__arena_reset(&p->arena);
    p->main_bytes = 0;
    return st;
}

ebb_status ebb__specs_make(ebb_program *p) {
    const ebb__program *ir = p->image.ir;
    ebb_status st = EBB_OK;
    p->specs = ebb__image_new(&p->image, (ir->n_machines + 1) * sizeof *p->specs);
    if (p->specs == NULL) return EBB_ERR_NOMEM;
    for (uint32_t i = 0; st == EBB_OK && i < ir->n_machines; i++) {
        if (ir->machines[i].spec) st = make_spec(p, &p->specs[p->n_specs++], &ir->machines[i]);
    }
    return st;
}

void ebb__specs_free(ebb_program *p) {
    for (uint32_t i = 0; i < p->n_specs; i++) ebb__block_drop(p->specs[i].fields);
    p->n_specs = 0;
}

/* ---- observing ---- */

static bool fails(ebb__run *run, const ebb__spec *s, ebb__span at, ebb__object *why) {
    ebb__builder b = ebb__builder_begin(run);
    ebb__builder_bytes(&b, s->ir->name, strlen(s->ir->name));
    if (why != NULL) {
        ebb__builder_bytes(&b, ": ", 2);
        ebb__builder_bytes(&b, ebb__object_bytes(why), why->n);
    }
    if (run->trap.kind != EBB__TRAP_NONE) at = run->trap.span;
    run->trap = (ebb__trap){.text = ebb__builder_end(&b)};
    return ebb__run_trap(run, EBB__TRAP_SPEC, at);
}

/* A copy of the fields that the handler may change. */
static ebb__object *open_fields(ebb__run *run, const ebb__spec *s) {
    ebb__object *o = ebb__object_make(run, s->fields->type);
    if (o == NULL) return NULL;
    memcpy(o->slots, s->fields->slots, (o->n_refs + (size_t)o->n) * sizeof *o->slots);
    return o;
}

static bool run_handler(ebb__run *run, ebb__spec *s, const ebb__ir_fn *fn, ebb__object *payload) {
    const ebb__exec *x = &run->program->exec;
    ebb__object *self = open_fields(run, s);
    ebb__value args[2] = {{.ref = self}, {.ref = payload}}, out = {0};
    ebb_status st;
    if (self == NULL) return false;
    if (!x->call(x->ctx, run, fn->id, args, &out))
        return fails(run, s, fn->span, (ebb__object *)(uintptr_t)run->trap.text);
    ebb__object *next = self;
    if (run->shapes[fn->result].is_ref) {
        if (run->shapes[out.ref->type].kind == EBB__TY_STATE) next = out.ref;
        else if (run->shapes[out.ref->type].is_error)
            return fails(run, s, fn->span, ebb__object_text(run, out.ref));
    }
    uint32_t state = run->shapes[next->type].state;
    for (uint32_t i = 0; i < s->ir->states[state].n_invariants; i++) {
        const ebb__ir_fn *invariant = s->ir->states[state].invariants[i];
        args[0].ref = next;
        if (!x->call(x->ctx, run, invariant->id, args, &out)) return false;
        if (!out.word) return fails(run, s, invariant->span, NULL);
    }
    ebb__object *fields = ebb__block_of(run->program, next, EBB_MACHINE_FIELDS_MAX, &st);
    if (fields == NULL) return ebb__block_trap(run, st, EBB__TRAP_STATE_SIZE, fn->span);
    ebb__block_drop(s->fields);
    s->fields = fields;
    s->state = state;
    return true;
}

bool ebb__specs_observe(ebb_program *p, uint32_t kind, ebb__object *payload) {
    for (uint32_t i = 0; i < p->n_specs; i++) {
        ebb__spec *s = &p->specs[i];
        const ebb__ir_state *st = &s->ir->states[s->state];
        for (uint32_t e = 0; e < st->n_entries; e++) {
            if (st->entries[e].kind != kind || st->entries[e].action != EBB__H_ON) continue;
            if (!run_handler(&p->run, s, st->entries[e].fn, payload)) return false;
            break;
        }
    }
    return true;
}

void ebb__specs_hot(const ebb_program *p, ebb_program_end *out) {
    for (uint32_t i = 0; i < p->n_specs; i++) {
        const ebb__spec *s = &p->specs[i];
        if (!s->ir->states[s->state].hot || out->hot++ > 0) continue;
        out->hot_spec = s->ir->name;
        out->hot_state = s->ir->states[s->state].name;
    }
}
