/* The states of a type of machines, and what leads from one to another, for a diagram. Of a typestate the compiler knows
 * the targets; of a type in C only its table is known: what each state handles, but not where that leads. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "durable/info_json.h"
#include "lang/decl.h"
#include "serve/machines.h"

enum { TARGETS = 64, TRANSITIONS = 4096 };

/* ---- one transition ------------------------------------------------------------------------------------------------ */

typedef struct drawing {
    const ebb_machines *ms;
    const ebb_machine_type *type;
    json_t *transitions;
    bool ok, cut;
} drawing;

static json_t *state_name(const ebb_machine_type *t, uint32_t i) {
    char number[24];
    (void)snprintf(number, sizeof number, "%u", (unsigned)i);
    return ebb__text_json(t->states[i].name != NULL ? t->states[i].name : number);
}

/* `to` NULL: it is not known. */
static void add(drawing *d, uint32_t from, const char *on, const char *what, json_t *to, bool stays) {
    json_t *j = json_object();
    bool ok = j != NULL;
    d->cut |= json_array_size(d->transitions) == TRANSITIONS;
    if (d->cut || !d->ok) {
        json_decref(j);
        json_decref(to);
        return;
    }
    ebb__json_put(&ok, j, "from", state_name(d->type, from));
    ebb__json_put(&ok, j, "on", ebb__text_json(on));
    ebb__json_put(&ok, j, "what", json_string(what));
    ebb__json_put(&ok, j, "to", to != NULL ? to : json_null());
    ebb__json_put(&ok, j, "stays", json_boolean(stays));
    if (!ok) json_decref(j);
    d->ok = ok && json_array_append_new(d->transitions, j) == 0;
}

static json_t *targets_json(const drawing *d, const uint32_t *states, uint32_t n) {
    json_t *all = json_array();
    for (uint32_t i = 0; i < n && all != NULL; i++) {
        if (json_array_append_new(all, state_name(d->type, states[i])) == 0) continue;
        json_decref(all);
        all = NULL;
    }
    return all;
}

/* ---- typestates ---------------------------------------------------------------------------------------------------- */

/* A state that leads to itself is not left. */
static void add_function(drawing *d, const ebb_program *p, uint32_t from, const char *on,
                         const ebb__ir_fn *fn) {
    uint32_t states[TARGETS], n = 0;
    bool stays;
    const uint32_t found = ebb__targets_of(p, fn, states, TARGETS, &stays);
    for (uint32_t i = 0; i < found; i++) {
        if (states[i] == from) stays = true;
        else states[n++] = states[i];
    }
    json_t *to = targets_json(d, states, n);
    d->ok = d->ok && to != NULL;
    add(d, from, on, "handle", to, stays || n == 0);
}

static void draw_typestate(drawing *d, const ebb__host_type *t) {
    static const char *const what[] = {
        [EBB__H_ON] = "handle", [EBB__H_DEFER] = "defer", [EBB__H_IGNORE] = "ignore"};
    char name[24];
    for (uint32_t s = 0; s < t->ir->n_states; s++) {
        const ebb__ir_state *st = &t->ir->states[s];
        for (uint32_t e = 0; e < st->n_entries; e++) {
            const ebb__ir_entry *x = &st->entries[e];
            const char *on = x->kind == 0 ? "RequestFailed" : ebb__kind_name(d->ms, (uint16_t)x->kind, name);
            if (x->action == EBB__H_ON) add_function(d, t->program, s, on, x->fn);
            else add(d, s, on, what[x->action], json_array(), true);
        }
        for (uint32_t i = 0; i < st->n_timers; i++) add_function(d, t->program, s, "after", st->timers[i].fn);
    }
}

static json_t *initial_json(const drawing *d, const ebb__host_type *t) {
    uint32_t states[TARGETS];
    bool stays;
    if (t == NULL || t->ir->make == NULL) return json_array();
    return targets_json(d, states, ebb__targets_of(t->program, t->ir->make, states, TARGETS, &stays));
}

/* ---- types in C ---------------------------------------------------------------------------------------------------- */

static void draw_table(drawing *d) {
    static const char *const what[] = {"none", "handle", "defer", "ignore"};
    const ebb_machine_type *t = d->type;
    char name[24];
    for (uint32_t kind = 0; kind < d->ms->opts.n_kinds; kind++) {
        uint32_t column = t->column == NULL ? kind : t->column[kind] - 1u;
        if (column >= t->columns) continue;
        for (uint32_t s = 0; s < t->n_states; s++) {
            uint8_t is = t->table[(size_t)s * t->columns + column].what;
            if (is == EBB_MACHINE_NONE || is > EBB_MACHINE_IGNORE) continue;
            add(d, s, ebb__kind_name(d->ms, (uint16_t)kind, name), what[is], NULL, is != EBB_MACHINE_HANDLE);
        }
    }
}

/* ---- a type -------------------------------------------------------------------------------------------------------- */

static const ebb_machine_type *type_in(const ebb_machines *ms, const char *name) {
    const ebb_program *p = ebb__program_of(ms);
    for (uint32_t i = 0; p != NULL && i < p->image.ir->n_machines; i++) {
        if (!p->image.ir->machines[i].spec && strcmp(p->image.ir->machines[i].name, name) == 0)
            return &p->types[i].type;
    }
    for (const ebb__machine_type *t = ms->types; t != NULL; t = t->next) {
        if (t->t.name != NULL && strcmp(t->t.name, name) == 0) return &t->t;
    }
    return NULL;
}

/* NULL: there is none of that name. */
static const ebb_machine_type *find_type(const ebb__ask *a, const char *name, ebb_machines **ms) {
    const ebb__given *program = ebb__given_of(a, "program");
    for (*ms = NULL; (*ms = ebb__machines_next(ebb__rt_of(a->cx), *ms)) != NULL;) {
        if (program->is && strcmp(program->text, ebb__machines_name(*ms)) != 0) continue;
        const ebb_machine_type *t = type_in(*ms, name);
        if (t != NULL) return t;
    }
    return NULL;
}

static json_t *states_json(const ebb_machine_type *t) {
    json_t *all = json_array();
    for (uint32_t i = 0; i < t->n_states && all != NULL; i++) {
        json_t *j = json_object();
        bool ok = j != NULL;
        ebb__json_put(&ok, j, "name", state_name(t, i));
        ebb__json_put(&ok, j, "final", json_boolean(t->states[i].final));
        ebb__json_put(&ok, j, "on_fault", json_boolean(t->fault_state == i + 1));
        if (!ok) json_decref(j);
        if (ok && json_array_append_new(all, j) == 0) continue;
        json_decref(all);
        all = NULL;
    }
    return all;
}

ebb_status ebb__serve_machine_type(ebb__ask *a) {
    const char *name = ebb_http_param(a->x, "type");
    ebb_machines *ms = NULL;
    const ebb_machine_type *t = name != NULL ? find_type(a, name, &ms) : NULL;
    if (name == NULL) return ebb__answer_failure(a, EBB_ERR_NOMEM, NULL);
    if (t == NULL)
        return ebb__answer_refusal(a, 404, "no_such_type", "no machine has the type '%.60s'", name);
    const ebb__host_type *typestate = ebb__typestate_of(t);
    drawing d = {.ms = ms, .type = t, .transitions = json_array()};
    d.ok = d.transitions != NULL;
    if (typestate != NULL) draw_typestate(&d, typestate);
    else draw_table(&d);
    json_t *j = json_object();
    bool ok = d.ok && j != NULL;
    ebb__json_put(&ok, j, "type", ebb__text_json(name));
    ebb__json_put(&ok, j, "program", ebb__text_json(ebb__machines_name(ms)));
    ebb__json_put(&ok, j, "mailbox", json_integer(t->mailbox != 0 ? t->mailbox : EBB_MACHINE_MAILBOX));
    ebb__json_put(&ok, j, "initial", initial_json(&d, typestate));
    ebb__json_put(&ok, j, "states", states_json(t));
    ebb__json_put(&ok, j, "targets_known", json_boolean(typestate != NULL));
    ebb__json_put(&ok, j, "transitions", d.transitions);
    ebb__json_put(&ok, j, "cut", json_boolean(d.cut));
    if (!ok) json_decref(j);
    return ebb__answer(a, 200, ok ? j : NULL);
}
