/* lang/host_dispatch.c - what the rules of a program's machines do. A dispatch is body, exit, entry with timers, check
 * (invariants, specs, sealing), settle; each part is one of the functions below, on one `run`. */
#include "lang/host.h"

#include <assert.h>
#include <string.h>

/* ---- the run of a dispatch ---- */

static ebb__run *begin(ebb_program *p, ebb_machines *ms, const ebb_message *m) {
    ebb__run *run = &p->run;
    if (p->dispatching) return run;
    p->dispatching = true;
    *run = (ebb__run){.program = p,
                      .shapes = p->image.shapes,
                      .ms = ms,
                      .message = m,
                      .self = m->self.id,
                      .budget = p->budget};
    p->printed_n = 0;
    return run;
}

ebb_status ebb__host_fault(ebb_program *p) {
    const ebb__trap *t = &p->run.trap;
    const ebb_message *m = p->run.message;
    size_t n = 0;
    p->fault = *t;
    p->fault_on_start = m != NULL && m->kind == EBB_MACHINE_REQUEST_FAILED && m->failure == 0;
    if (t->text != NULL) {
        n = t->text->n < EBB__WHY_MAX - 1 ? t->text->n : EBB__WHY_MAX - 1;
        memcpy(p->fault_text, ebb__object_bytes(t->text), n);
    }
    p->fault_text[n] = 0;
    p->fault.text = NULL;
    return t->kind == EBB__TRAP_NO_MEMORY ? EBB_ERR_NOMEM
           : t->kind == EBB__TRAP_ERROR   ? EBB_FAILED
                                          : EBB_ERR_TRAP;
}

static bool call(ebb__run *run, const ebb__ir_fn *fn, const ebb__value *args, ebb__value *out) {
    const ebb__exec *x = &run->program->exec;
    return x->call(x->ctx, run, fn->id, args, out);
}

static ebb__object *self_object(void *fields, const ebb__host_state *state) {
    ebb__object *self = fields;
    const ebb__shape *s = &state->of->program->image.shapes[state->type];
    self->type = (uint16_t)state->type;
    self->flags = 0;
    self->n_refs = self->words_at = s->n_refs;
    self->n = s->n_words;
    return self;
}

/* ---- messages ---- */

ebb__object *ebb__host_payload(ebb_program *p, uint32_t kind, const void *payload) {
    const ebb__shape *s = &p->image.shapes[p->image.ir->kinds[kind].type];
    ebb__object *o;
    if (s->constant != NULL) return s->constant;
    if (s->n_refs == 0) return (ebb__object *)(uintptr_t)payload;
    memcpy(&o, payload, sizeof o);
    return o;
}

static ebb__object *payload_of(ebb_program *p, const ebb_message *m) {
    return m->kind == EBB_MACHINE_REQUEST_FAILED ? p->failures[m->failure]
                                                 : ebb__host_payload(p, m->kind, m->payload);
}

/* The handler for this origin: one that names request and label, else the request, else none. */
static const ebb__ir_entry *choose(const ebb__host_rule *r, const ebb_message *m) {
    const ebb__ir_entry *any = NULL, *request = NULL;
    for (uint32_t i = 0; i < r->n; i++) {
        const ebb__ir_entry *e = &r->entries[i];
        if (e->origin_kind == 0) any = e;
        if (e->origin_kind == 0 || e->origin_kind != m->origin_kind) continue;
        if (e->origin_label == m->label) return e;
        if (e->origin_label == 0) request = e;
    }
    return request != NULL ? request : any;
}

/* ---- results ---- */

static bool go_to(ebb__run *run, ebb__object *self, ebb__object *state) {
    uint32_t to = run->shapes[state->type].state;
    (void)ebb_machine_become(run->ms, to, state == self ? NULL : state);
    return true;
}

static bool take_result(ebb__run *run, const ebb__ir_fn *fn, ebb__object *self, ebb__value result) {
    const ebb__shape *s = &run->shapes[fn->result];
    if (!s->is_ref) return true;
    s = &run->shapes[result.ref->type];
    if (s->kind == EBB__TY_STATE) return go_to(run, self, result.ref);
    if (s->kind == EBB__TY_UNIT) return true;
    run->trap.text = ebb__object_text(run, result.ref);
    return ebb__run_trap(run, EBB__TRAP_ERROR, fn->span);
}

static bool binds_capability(const ebb__run *run, const ebb__ir_fn *fn) {
    return fn->n_params > 0 && run->shapes[fn->slots[fn->n_params - 1]].kind == EBB__TY_REPLY_CAP;
}

/* A capability that was bound and not used for a reply was moved into a field: it is held. */
static bool hold_capability(ebb__run *run) {
    ebb_request held = ebb_machine_hold(run->ms);
    ebb_status st = ebb_id_status(held.id);
    if (st == EBB_OK || st == EBB_ERR_REPLIED) return true;
    return ebb__run_trap(run, st == EBB_ERR_NOMEM ? EBB__TRAP_NO_MEMORY : EBB__TRAP_CAPABILITY,
                         (ebb__span){0});
}

static bool handle(ebb__run *run, const ebb__ir_entry *e, ebb__object *self) {
    const ebb_message *m = run->message;
    ebb_program *p = run->program;
    ebb__value args[4] = {{.ref = self}, {.ref = payload_of(p, m)}}, out = {0};
    uint32_t n = 2;
    if (e->origin_kind != 0) args[n++].ref = ebb__host_payload(p, m->origin_kind, m->origin);
    bool bound = binds_capability(run, e->fn);
    if (bound) args[n++].word = m->request.id;
    assert(n == e->fn->n_params + 1);
    return call(run, e->fn, args, &out) && take_result(run, e->fn, self, out) &&
           (!bound || hold_capability(run));
}

/* No handler names the origin of this response: it is a dead letter, and the machine goes on. */
static ebb_status unhandled(ebb_program *p, const ebb__host_rule *r, const ebb_message *m) {
    p->end.dead++;
    ebb_program_event e = {.what = EBB_PROGRAM_DEAD,
                           .machine = m->self,
                           .name = r->state->of->ir->name,
                           .kind = p->kinds[m->kind].name,
                           .why = "no handler for this request's response",
                           .text = "",
                           .file = "",
                           .broken = ""};
    if (p->opts.report != NULL) p->opts.report(p->opts.ctx, &e);
    return EBB_OK;
}

ebb_status ebb__host_on_message(ebb_machines *ms, void *fields, const ebb_message *m) {
    const ebb__host_rule *r = m->arg;
    ebb_program *p = r->state->of->program;
    ebb__run *run = begin(p, ms, m);
    const ebb__ir_entry *e = choose(r, m);
    ebb__object *self = self_object(fields, r->state);
    if (e == NULL) return unhandled(p, r, m);
    return handle(run, e, self) ? EBB_OK : ebb__host_fault(p);
}

ebb_status ebb__host_on_timer(ebb_machines *ms, void *fields, const ebb_message *m) {
    const ebb__host_rule *r = m->arg;
    ebb_program *p = r->state->of->program;
    ebb__run *run = begin(p, ms, m);
    ebb__value self = {.ref = self_object(fields, r->state)}, out = {0};
    bool ok = call(run, r->timer, &self, &out) && take_result(run, r->timer, self.ref, out);
    return ok ? EBB_OK : ebb__host_fault(p);
}

/* ---- the parts of a transition ---- */

static bool arm(ebb__run *run, const ebb__host_state *state, uint32_t i, ebb__value self) {
    ebb__value ms = {0};
    if (!call(run, state->ir->timers[i].time, &self, &ms)) return false;
    uint64_t span = (int64_t)ms.word <= 0            ? 0
                    : ms.word > EBB_FOREVER / EBB_MS ? EBB_FOREVER
                                                     : ms.word * EBB_MS;
    ebb_status st = ebb_machine_after(run->ms, span, (uint16_t)(run->program->image.ir->n_kinds + i));
    if (st == EBB_OK) return true;
    return ebb__run_trap(run, st == EBB_ERR_LIMIT ? EBB__TRAP_TIMERS : EBB__TRAP_NO_MEMORY,
                         state->ir->timers[i].fn->span);
}

ebb_status ebb__host_on_entry(ebb_machines *ms, void *fields, const ebb_message *m) {
    const ebb__host_state *state = m->arg;
    ebb_program *p = state->of->program;
    ebb__run *run = begin(p, ms, m);
    ebb__value self = {.ref = self_object(fields, state)}, out = {0};
    bool ok = state->ir->entry == NULL || call(run, state->ir->entry, &self, &out);
    for (uint32_t i = 0; ok && i < state->ir->n_timers; i++) ok = arm(run, state, i, self);
    return ok ? EBB_OK : ebb__host_fault(p);
}

ebb_status ebb__host_on_exit(ebb_machines *ms, void *fields, const ebb_message *m) {
    const ebb__host_state *state = m->arg;
    ebb_program *p = state->of->program;
    ebb__run *run = begin(p, ms, m);
    ebb__value self = {.ref = self_object(fields, state)}, out = {0};
    return call(run, state->ir->exit, &self, &out) ? EBB_OK : ebb__host_fault(p);
}

/* ---- the end of a dispatch ---- */

static bool invariants_hold(ebb__run *run, const ebb__host_state *state, ebb__object *self) {
    for (uint32_t i = 0; i < state->ir->n_invariants; i++) {
        ebb__value arg = {.ref = self}, holds = {0};
        const ebb__ir_fn *fn = state->ir->invariants[i];
        if (!call(run, fn, &arg, &holds)) return false;
        if (!holds.word) return ebb__run_trap(run, EBB__TRAP_INVARIANT, fn->span);
    }
    return true;
}

static bool specs_hold(ebb_program *p, const ebb_message *m) {
    if (p->n_specs == 0 || m->kind >= p->image.ir->n_kinds || m->payload == NULL) return true;
    if (m->kind == EBB_MACHINE_REQUEST_FAILED) return true;
    return ebb__specs_observe(p, m->kind, payload_of(p, m));
}

ebb_status ebb__host_seal(ebb_program *p, ebb__object *o, uint32_t n_refs) {
    size_t left = EBB_MACHINE_FIELDS_MAX - (sizeof *o + (o->n_refs + (size_t)o->n) * sizeof(ebb__value));
    ebb_status st = EBB_OK;
    uint32_t i = 0;
    for (; i < n_refs && st == EBB_OK; i++) {
        ebb__object *ref = o->slots[i].ref, *counted = ref == NULL ? NULL : ebb__block_of(p, ref, left, &st);
        if (st != EBB_OK) break;
        if (counted != NULL) left -= ebb__block_size(counted);
        o->slots[i].ref = counted;
    }
    if (st == EBB_OK) {
        o->flags |= EBB__SEALED;
        return EBB_OK;
    }
    while (i-- > 0) ebb__block_drop(o->slots[i].ref);
    return st;
}

void ebb__host_unseal(ebb__object *o, uint32_t n_refs) {
    for (uint32_t i = 0; i < n_refs; i++) ebb__block_drop(o->slots[i].ref);
}

ebb_status ebb__host_check(ebb_machines *ms, void *fields, const ebb_message *m) {
    const ebb__host_state *state = m->arg;
    ebb_program *p = state->of->program;
    ebb__run *run = begin(p, ms, m);
    ebb__object *self = self_object(fields, state);
    if (!invariants_hold(run, state, self)) return ebb__host_fault(p);
    ebb_status st = ebb__host_seal(p, self, state->of->n_refs);
    if (st == EBB_OK) return specs_hold(p, m) ? EBB_OK : ebb__host_fault(p);
    (void)ebb__block_trap(run, st, EBB__TRAP_STATE_SIZE, (ebb__span){0});
    return ebb__host_fault(p);
}

static void show_printed(ebb_program *p) {
    for (size_t at = 0; at < p->printed_n;) {
        uint32_t n;
        memcpy(&n, p->printed + at, sizeof n);
        at += sizeof n;
        if (p->opts.print != NULL) p->opts.print(p->opts.ctx, p->printed + at, n);
        at += n;
    }
    p->printed_n = 0;
}

void ebb__host_settle(const ebb_machine_type *type, bool committed, uint32_t old_state, void *old,
                      uint32_t now_state, void *now) {
    const ebb__host_type *t = (const ebb__host_type *)(const void *)type;
    ebb__object *was = old, *is = now;
    (void)old_state;
    (void)now_state;
    if (is == NULL) {
        ebb__host_unseal(was, t->n_refs);
        return;
    }
    if (committed) {
        ebb__host_unseal(was, t->n_refs);
        show_printed(t->program);
    } else {
        if (is->flags & EBB__SEALED) ebb__host_unseal(is, t->n_refs);
        t->program->printed_n = 0;
    }
    is->flags = 0;
    t->program->dispatching = false;
}
