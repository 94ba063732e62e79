/* lang/run.c - a program from the outside: made, opened, started, looked at, freed. */
#include "lang/host.h"

#include <string.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "lang/check.h"
#include "lang/diag.h"
#include "lang/source.h"
#include "lang/vm.h"

enum { CHUNK = 64 << 10 };

/* ---- making ---- */

static ebb__object *constant_named(ebb_program *p, ebb__type whole, const char *name) {
    const ebb__shape *u = &p->image.shapes[whole];
    for (uint32_t i = 0; i < u->n; i++) {
        const ebb__shape *s = &p->image.shapes[u->of[i]];
        if (strcmp(s->name, name) == 0) return s->constant;
    }
    return NULL;
}

static ebb__object *failure(ebb_program *p, const char *why) {
    const ebb__shape *s = &p->image.shapes[p->image.lang->check->request_failed];
    ebb__object *o = ebb__image_new(&p->image, sizeof *o + (s->n_refs + s->n_words) * sizeof(ebb__value));
    if (o == NULL) return NULL;
    *o = (ebb__object){.type = (uint16_t)p->image.lang->check->request_failed,
                       .flags = EBB__FROZEN | EBB__CONSTANT,
                       .n_refs = s->n_refs,
                       .n = s->n_words,
                       .words_at = s->n_refs};
    if (s->n > 0) o->slots[s->at[0]].ref = constant_named(p, s->of[0], why);
    return o;
}

static bool make_constants(ebb_program *p) {
    static const char *const why[] = {[EBB_REQUEST_TIMEOUT] = "Timeout",
                                      [EBB_REQUEST_STOPPED] = "Stopped",
                                      [EBB_REQUEST_FAULTED] = "Faulted",
                                      [EBB_REQUEST_UNHANDLED] = "Unhandled"};
    ebb__type errors = p->image.lang->check->machine_error;
    p->unit = p->image.shapes[EBB__TY_UNIT].constant;
    p->mailbox_full = constant_named(p, errors, "MailboxFull");
    p->not_running = constant_named(p, errors, "NotRunning");
    p->unknown = constant_named(p, errors, "Unknown");
    for (uint32_t i = EBB_REQUEST_TIMEOUT; i <= EBB_REQUEST_UNHANDLED; i++) {
        if ((p->failures[i] = failure(p, why[i])) == NULL) return false;
    }
    return true;
}

static ebb_status make(ebb_lang *c, ebb_program *p, const ebb__exec *exec) {
    ebb__arena_init(&p->arena, p->allocator, CHUNK);
    ebb_status st = ebb__image_make(c, p->allocator, &p->image);
    if (st == EBB_OK && p->image.ir->main == NULL) st = EBB_ERR_INVALID;
    if (st == EBB_OK && !make_constants(p)) st = EBB_ERR_NOMEM;
    if (st == EBB_OK) st = ebb__host_types_make(p);
    if (st == EBB_OK) st = ebb__specs_make(p);
    if (exec != NULL) p->exec = *exec;
    else if (st == EBB_OK) st = ebb__vm_make(p);
    return st;
}

static void set_place(const ebb_program *p, ebb_program_event *e, ebb__span span) {
    if (span.n == 0 && span.at == 0) return;
    const ebb__source *s = ebb__source_at(p->image.lang, span.source);
    e->file = s->path;
    ebb__source_place(s, span.at, &e->line, &e->column);
}

static void report_limit(const ebb_program *p) {
    ebb_program_event e = {.what = EBB_PROGRAM_LIMIT,
                           .name = p->image.limit_of,
                           .kind = "",
                           .why = p->image.limit,
                           .text = "",
                           .file = "",
                           .broken = ""};
    set_place(p, &e, p->image.limit_at);
    if (p->opts.report != NULL) p->opts.report(p->opts.ctx, &e);
}

static void free_program(ebb_program *p) {
    ebb_allocator a = p->allocator;
    ebb__specs_free(p);
    ebb__vm_free(p);
    ebb__arena_free(&p->arena);
    ebb__image_free(&p->image);
    ebb__free(&a, p->printed, p->printed_room);
    ebb__free(&a, p, sizeof *p);
}

ebb_status ebb__program_new(ebb_lang *c, const ebb_program_opts *given, const ebb__exec *exec,
                            ebb_program **out) {
    ebb_program_opts opts;
    ebb_status st = EBB__OPTS_COPY(&opts, given);
    *out = NULL;
    if (st != EBB_OK) return st;
    if (opts.allocator.fn == NULL) return EBB_ERR_INVALID;
    ebb_program *p = ebb__alloc(&opts.allocator, sizeof *p);
    if (p == NULL) return EBB_ERR_NOMEM;
    memset(p, 0, sizeof *p);
    p->opts = opts;
    p->allocator = opts.allocator;
    p->budget = EBB__DISPATCH_BUDGET;
    st = make(c, p, exec);
    if (st == EBB_OK) {
        *out = p;
        return EBB_OK;
    }
    if (st == EBB_ERR_LIMIT) report_limit(p);
    free_program(p);
    return st;
}

ebb_status ebb_program_new(ebb_lang *c, const ebb_program_opts *opts, ebb_program **out) {
    return ebb__program_new(c, opts, NULL, out);
}

ebb_status ebb_program_free(ebb_program *p) {
    if (p == NULL) return EBB_OK;
    ebb_status st = ebb_machines_free(p->ms);
    if (st != EBB_OK) return st;
    p->ms = NULL;
    if (p->blocks > p->n_specs) return EBB_ERR_BUSY;
    free_program(p);
    return EBB_OK;
}

const ebb__program *ebb__program_ir(const ebb_program *p) {
    return p->image.ir;
}

ebb_machines *ebb_program_machines(const ebb_program *p) {
    return p->ms;
}

/* ---- reports ---- */

static const char *const trap_texts[] = {
#define EBB_TRAP(name, text) text,
#include "lang/trap.def"
#undef EBB_TRAP
};

static const char *const trap_names[] = {
#define EBB_TRAP(name, text) #name,
#include "lang/trap.def"
#undef EBB_TRAP
};

static void remember(ebb_program *p, const ebb_program_event *e) {
    ebb__past_fault *past = &p->faults[p->n_faults++ % EBB__FAULTS_KEPT];
    size_t n = strlen(e->text); /* of fault_text */
    past->event = *e;
    memcpy(past->text, e->text, n + 1);
    past->event.text = past->text;
}

bool ebb_program_fault_of(const ebb_program *p, ebb_machine machine, ebb_program_event *out) {
    uint64_t kept = p->n_faults < EBB__FAULTS_KEPT ? p->n_faults : EBB__FAULTS_KEPT;
    for (uint64_t i = 1; i <= kept; i++) {
        *out = p->faults[(p->n_faults - i) % EBB__FAULTS_KEPT].event;
        if (out->machine.id == machine.id) return true;
    }
    return false;
}

static const char *broken_by(uint32_t trap) {
    switch (trap) {
    case EBB__TRAP_ASSERT: return "assert";
    case EBB__TRAP_INVARIANT: return "invariant";
    case EBB__TRAP_SPEC: return "spec";
    default: return "";
    }
}

void ebb__host_report_fault(ebb_program *p, ebb_machine machine, const char *name, const char *kind,
                            bool goes_on, ebb_status st) {
    ebb_program_event e = {.what = EBB_PROGRAM_FAULT,
                           .machine = machine,
                           .name = name,
                           .kind = kind,
                           .text = "",
                           .file = "",
                           .goes_on = goes_on};
    bool trapped = p->fault.kind != EBB__TRAP_NONE;
    if (trapped && p->fault_on_start) e.kind = "";
    e.why = trapped ? trap_texts[p->fault.kind] : ebb_status_text(st);
    e.code = trapped ? trap_names[p->fault.kind] : ebb_status_name(st);
    e.broken = broken_by(p->fault.kind);
    if (trapped) {
        e.text = p->fault_text;
        set_place(p, &e, p->fault.span);
    }
    p->fault.kind = EBB__TRAP_NONE;
    remember(p, &e);
    if (p->opts.report != NULL) p->opts.report(p->opts.ctx, &e);
}

static const char *kind_name(const ebb_program *p, uint16_t kind) {
    return kind < p->n_kinds ? p->kinds[kind].name : "";
}

static const char *machine_name(const ebb_program *p, ebb_machine m) {
    ebb_machine_info info;
    if (m.id == 0 || ebb_machine_info_of(p->ms, m, &info) != EBB_OK || info.type == NULL) return "";
    return info.type->name;
}

static void on_dead_letter(void *arg, const ebb_dead_letter *d) {
    static const char *const why[] = {[EBB_DEAD_UNHANDLED] = "no handler in this state",
                                      [EBB_DEAD_STOPPED] = "the machine has stopped",
                                      [EBB_DEAD_FAULTED] = "the machine has faulted",
                                      [EBB_DEAD_LATE] = "nobody waits for this reply any more",
                                      [EBB_DEAD_NOBODY] = "nobody has subscribed"};
    ebb_program *p = arg;
    ebb_program_event e = {.what = EBB_PROGRAM_DEAD,
                           .machine = d->to,
                           .name = machine_name(p, d->to),
                           .kind = kind_name(p, d->kind),
                           .why = why[d->reason],
                           .text = "",
                           .file = "",
                           .broken = ""};
    p->end.dead++;
    if (p->opts.report != NULL) p->opts.report(p->opts.ctx, &e);
}

static void on_overflow(void *arg, ebb_machine to, uint16_t kind) {
    ebb_program *p = arg;
    ebb_program_event e = {.what = EBB_PROGRAM_FULL,
                           .machine = to,
                           .name = machine_name(p, to),
                           .kind = kind_name(p, kind),
                           .why = "the mailbox is full",
                           .text = "",
                           .file = "",
                           .broken = ""};
    if (p->opts.report != NULL) p->opts.report(p->opts.ctx, &e);
}

static void on_fault(void *arg, ebb_machine machine, uint16_t kind, ebb_status st) {
    ebb_program *p = arg;
    ebb_machine_info info = {0};
    (void)ebb_machine_info_of(p->ms, machine, &info);
    bool goes_on = info.lifecycle == EBB_MACHINE_RUNNING;
    if (goes_on) p->end.recovered++;
    else p->end.faults++;
    ebb__host_report_fault(p, machine, machine_name(p, machine), kind_name(p, kind), goes_on, st);
}

/* ---- running ---- */

static void on_idle(void *arg) {
    ebb_program *p = arg;
    ebb_machines_stats stats;
    if (!ebb_program_is_quiet(p)) return;
    ebb_machines_stats_of(p->ms, &stats);
    p->end.waiting = stats.pending;
    p->end.queued = stats.queued;
    if (p->opts.quiet != NULL) p->opts.quiet(p->opts.ctx);
}

ebb_status ebb_program_open(ebb_cx *cx, ebb_program *p) {
    if (p->ms != NULL) return EBB_ERR_RESOLVED;
    ebb_machines_opts opts = {.parent = p->opts.parent,
                              .kinds = p->kinds,
                              .n_kinds = p->n_kinds,
                              .dead_letter = on_dead_letter,
                              .overflow = on_overflow,
                              .fault = on_fault,
                              .arg = p,
                              .idle = on_idle,
                              .name = p->opts.name};
    ebb_status st = ebb_machines_open(cx, &p->ms, &opts);
    p->end.main = EBB_PENDING;
    return st;
}

ebb_program *ebb__program_of(const ebb_machines *ms) {
    return ms->opts.fault == on_fault ? ms->opts.arg : NULL;
}

ebb_program *ebb_program_find(ebb_cx *cx, const char *name) {
    const ebb_runtime *rt = ebb__rt_of(cx);
    for (ebb_machines *ms = NULL; (ms = ebb__machines_next(rt, ms)) != NULL;) {
        ebb_program *p = ebb__program_of(ms);
        if (p != NULL && p->opts.name != NULL && strcmp(p->opts.name, name) == 0) return p;
    }
    return NULL;
}

static bool run_main(ebb_program *p, ebb__run *run) {
    const ebb__ir_fn *fn = p->image.ir->main;
    ebb__value out = {0};
    if (!p->exec.call(p->exec.ctx, run, fn->id, NULL, &out)) return false;
    if (!run->shapes[fn->result].is_ref || !run->shapes[out.ref->type].is_error) return true;
    run->trap.text = ebb__object_text(run, out.ref);
    return ebb__run_trap(run, EBB__TRAP_ERROR, fn->span);
}

ebb_status ebb_program_start(ebb_program *p) {
    if (p->ms == NULL) return EBB_ERR_INVALID;
    if (p->end.main != EBB_PENDING) return EBB_ERR_RESOLVED;
    p->run = (ebb__run){
        .program = p, .shapes = p->image.shapes, .ms = p->ms, .budget = EBB__MAIN_FACTOR * p->budget};
    bool ok = run_main(p, &p->run);
    p->end.main = ok ? EBB_OK : EBB_FAILED;
    if (!ok) {
        ebb_status st = ebb__host_fault(p);
        ebb__host_report_fault(p, (ebb_machine){0}, "main", "", false, st);
    }
    ebb__arena_reset(&p->arena);
    p->main_bytes = 0;
    return p->end.main;
}

bool ebb_program_is_quiet(const ebb_program *p) {
    uint64_t armed = 0;
    if (p->ms == NULL || p->end.main == EBB_PENDING || !ebb_machines_is_idle(p->ms)) return p->ms == NULL;
    for (uint32_t i = 0; i < EBB__WHEEL_LEVELS; i++) armed |= p->ms->wheel.pending[i];
    return armed == 0;
}

void ebb_program_end_of(const ebb_program *p, ebb_program_end *out) {
    *out = p->end;
    out->hot_spec = out->hot_state = "";
    ebb__specs_hot(p, out);
}
