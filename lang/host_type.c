/* lang/host_type.c - the tables that typestates become: for each state and kind a rule. */
#include "lang/host.h"

#include <assert.h>

#include "lang/check.h"

_Static_assert(EBB__MAILBOX_MAX == EBB_MACHINE_MAILBOX_MAX, "the compiler refuses larger ones");

/* ---- kinds ---- */

static uint32_t timers_of(const ebb__program *ir) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < ir->n_machines; i++) {
        for (uint32_t s = 0; s < ir->machines[i].n_states; s++) {
            if (ir->machines[i].states[s].n_timers > most) most = ir->machines[i].states[s].n_timers;
        }
    }
    return most;
}

static ebb_status make_kinds(ebb_program *p) {
    const ebb__program *ir = p->image.ir;
    p->n_kinds = ir->n_kinds + timers_of(ir);
    if (p->n_kinds > UINT16_MAX)
        return ebb__image_limit(&p->image, "the program", "more than 65,534 messages and timers of a state");
    p->kinds = ebb__image_new(&p->image, p->n_kinds * sizeof *p->kinds);
    if (p->kinds == NULL) return EBB_ERR_NOMEM;
    p->kinds[0].name = "RequestFailed";
    for (uint32_t k = 1; k < p->n_kinds; k++) {
        const ebb__shape *s = k < ir->n_kinds ? &p->image.shapes[ir->kinds[k].type] : NULL;
        p->kinds[k].name = s == NULL ? "after" : s->name;
        if (s == NULL || s->n_refs == 0) continue;
        p->kinds[k].keep = ebb__host_keep;
        p->kinds[k].drop = ebb__host_drop;
    }
    return EBB_OK;
}

/* The kind of RequestFailed is 0 in the runtime, whatever its number in the program. */
static uint32_t runtime_kind(const ebb_program *p, uint32_t kind) {
    return p->image.ir->kinds[kind].type == p->image.lang->check->request_failed ? 0 : kind;
}

/* ---- one typestate ---- */

/* The columns of the kinds that some state handles. Returns how many. */
static uint32_t make_columns(ebb_program *p, const ebb__ir_machine *ir, uint16_t *column) {
    uint32_t n = 0;
    for (uint32_t s = 0; s < ir->n_states; s++) {
        const ebb__ir_state *st = &ir->states[s];
        for (uint32_t e = 0; e < st->n_entries; e++) {
            uint32_t kind = runtime_kind(p, st->entries[e].kind);
            if (column[kind] == 0) column[kind] = (uint16_t)++n;
        }
        for (uint32_t t = 0; t < st->n_timers; t++) {
            uint32_t kind = p->image.ir->n_kinds + t;
            if (column[kind] == 0) column[kind] = (uint16_t)++n;
        }
    }
    return n;
}

static ebb_machine_what what_of(const ebb__ir_entry *e) {
    return e->action == EBB__H_DEFER    ? EBB_MACHINE_DEFER
           : e->action == EBB__H_IGNORE ? EBB_MACHINE_IGNORE
                                        : EBB_MACHINE_HANDLE;
}

static bool set_rule(ebb_program *p, ebb_machine_rule *rule, ebb__host_rule given) {
    ebb__host_rule *r = ebb__image_new(&p->image, sizeof *r);
    if (r == NULL) return false;
    *r = given;
    *rule = (ebb_machine_rule){given.timer != NULL ? ebb__host_on_timer : ebb__host_on_message, r,
                               (uint8_t)(given.timer != NULL ? EBB_MACHINE_HANDLE : what_of(given.entries))};
    return true;
}

static bool make_rules(ebb_program *p, const ebb__host_state *state, const uint16_t *column,
                       ebb_machine_rule *row) {
    const ebb__ir_state *st = state->ir;
    for (uint32_t e = 0, n; e < st->n_entries; e += n) {
        n = 1;
        while (e + n < st->n_entries && st->entries[e + n].kind == st->entries[e].kind) n++;
        ebb__host_rule rule = {.state = state, .entries = &st->entries[e], .n = n};
        if (!set_rule(p, &row[column[runtime_kind(p, st->entries[e].kind)] - 1], rule)) return false;
    }
    for (uint32_t t = 0; t < st->n_timers; t++) {
        ebb__host_rule rule = {.state = state, .timer = st->timers[t].fn};
        if (!set_rule(p, &row[column[p->image.ir->n_kinds + t] - 1], rule)) return false;
    }
    return true;
}

static uint32_t state_type(const ebb_program *p, uint32_t machine, uint32_t state) {
    for (uint32_t i = 0; i < p->image.n_shapes; i++) {
        const ebb__shape *s = &p->image.shapes[i];
        if (s->kind == EBB__TY_STATE && s->typestate == machine && s->state == state) return i;
    }
    return 0;
}

static ebb_status make_type(ebb_program *p, uint32_t i, bool checked) {
    ebb__host_type *t = &p->types[i];
    const ebb__ir_machine *ir = &p->image.ir->machines[i];
    uint16_t *column = ebb__image_new(&p->image, p->n_kinds * sizeof *column);
    ebb_machine_state *states = ebb__image_new(&p->image, (ir->n_states + 1) * sizeof *states);
    t->states = ebb__image_new(&p->image, (ir->n_states + 1) * sizeof *t->states);
    if (column == NULL || states == NULL || t->states == NULL) return EBB_ERR_NOMEM;
    uint32_t columns = make_columns(p, ir, column);
    ebb_machine_rule *table = ebb__image_new(&p->image, ((size_t)columns * ir->n_states + 1) * sizeof *table);
    if (table == NULL) return EBB_ERR_NOMEM;
    t->program = p;
    t->ir = ir;
    size_t slots = 0;
    for (uint32_t s = 0; s < ir->n_states; s++) {
        const ebb__ir_state *st = &ir->states[s];
        uint32_t type = state_type(p, i, s);
        const ebb__shape *shape = &p->image.shapes[type];
        t->states[s] = (ebb__host_state){t, st, type};
        t->n_refs = shape->n_refs > t->n_refs ? shape->n_refs : t->n_refs;
        if (shape->n_refs + shape->n_words > slots) slots = shape->n_refs + shape->n_words;
        states[s] = (ebb_machine_state){.name = st->name, .arg = &t->states[s], .final = st->final};
        if (st->exit != NULL) states[s].exit = ebb__host_on_exit;
        if (st->entry != NULL || st->n_timers > 0) states[s].entry = ebb__host_on_entry;
        if (checked || st->n_invariants > 0 || shape->n_refs > 0) states[s].invariant = ebb__host_check;
        if (!make_rules(p, &t->states[s], column, &table[(size_t)s * columns])) return EBB_ERR_NOMEM;
    }
    size_t fields = sizeof(ebb__object) + slots * sizeof(ebb__value);
    assert(fields <= EBB_MACHINE_FIELDS_MAX); /* there are EBB__FIELDS_MAX */
    t->type = (ebb_machine_type){.name = ir->name,
                                 .states = states,
                                 .table = table,
                                 .column = column,
                                 .fields = (uint32_t)fields,
                                 .n_states = (uint16_t)ir->n_states,
                                 .columns = (uint16_t)columns,
                                 .mailbox = (uint16_t)ir->mailbox,
                                 .fault_state = (uint16_t)(ir->fault == UINT32_MAX ? 0 : ir->fault + 1),
                                 .settle = ebb__host_settle};
    return EBB_OK;
}

ebb_status ebb__host_types_make(ebb_program *p) {
    const ebb__program *ir = p->image.ir;
    bool observed = false;
    ebb_status st = make_kinds(p);
    p->types = st != EBB_OK ? NULL : ebb__image_new(&p->image, (ir->n_machines + 1) * sizeof *p->types);
    if (st == EBB_OK && p->types == NULL) st = EBB_ERR_NOMEM;
    for (uint32_t i = 0; st == EBB_OK && i < ir->n_machines; i++) observed = observed || ir->machines[i].spec;
    for (uint32_t i = 0; st == EBB_OK && i < ir->n_machines; i++) {
        if (!ir->machines[i].spec) st = make_type(p, i, observed);
    }
    return st;
}
