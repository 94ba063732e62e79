/* lang/host_send.c - what the host sends and spawns: values of the program are made of the fields that it gives. */
#include "lang/host.h"

#include <string.h>

#include "base/alloc.h"
#include "lang/check.h"
#include "lang/literal.h"

/* Where the name of the message begins behind that of its protocol or module, or 0. */
static size_t split_at(const char *name) {
    size_t at = 0;
    while (name[at] != 0 && !(name[at] == ':' && name[at + 1] == ':')) at++;
    return name[at] == 0 ? 0 : at + 2;
}

/* "Toggle", "Auth::IncomingRequest", or "std/console::Line". */
static bool is_named(const ebb_program *p, uint32_t type, const char *name) {
    const ebb__decl *d = ebb__type_at(p->image.lang, type)->decl;
    size_t split = split_at(name);
    if (split == 0) return strcmp(name, ebb__name_text(p->image.lang, d->name)) == 0;
    const char *protocol = d->protocol != NULL ? ebb__name_text(p->image.lang, d->protocol->decl->name)
                           : d->source != NULL ? d->source->module
                                               : "";
    return strlen(protocol) == split - 2 && memcmp(protocol, name, split - 2) == 0 &&
           strcmp(name + split, ebb__name_text(p->image.lang, d->name)) == 0;
}

uint32_t ebb__message_named(const ebb_program *p, const char *name) {
    uint32_t found = 0, n = 0;
    for (uint32_t k = 1; k < p->image.ir->n_kinds; k++) {
        if (!is_named(p, p->image.ir->kinds[k].type, name)) continue;
        found = p->image.ir->kinds[k].type;
        n++;
    }
    return n == 1 ? found : 0;
}

static const ebb_program_field *find_field(const ebb_program_field *fields, size_t n, const char *name) {
    const ebb_program_field *found = NULL;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(fields[i].name, name) != 0) continue;
        if (found != NULL) return NULL;
        found = &fields[i];
    }
    return found;
}

static bool is_utf8(const char *s, size_t n) {
    for (size_t at = 0, step; at < n; at += step) {
        step = ebb__utf8_length(s + at, n - at > UINT32_MAX ? UINT32_MAX : (uint32_t)(n - at));
        if (step == 0) return false;
    }
    return true;
}

/* Whether the machine has the role that the type asks for. */
static bool has_role(const ebb__decl *typestate, const ebb__type_info *role) {
    const ebb__typestate *ts = typestate->typestate;
    for (uint32_t i = 0; i < ts->n_roles; i++) {
        if (ts->roles[i].role->protocol->decl == role->decl && ts->roles[i].role->index == role->index)
            return true;
    }
    return false;
}

bool ebb__handle_fits(const ebb_program *p, uint32_t type, uint64_t id) {
    const ebb__type_info *x = ebb__type_at(p->image.lang, type);
    ebb_machine_info info;
    if (ebb_machine_info_of(p->ms, (ebb_machine){id}, &info) != EBB_OK || info.type == NULL) return false;
    const ebb__decl *of = ((const ebb__host_type *)(const void *)info.type)->ir->decl;
    return x->kind == EBB__TY_MACHINE ? of == x->decl : has_role(of, x);
}

static bool set_field(ebb__run *run, uint32_t type, const ebb_program_field *f, ebb__value *out) {
    switch (run->shapes[type].kind) {
    case EBB__TY_I64:
    case EBB__TY_DURATION: out->word = (uint64_t)f->i64; return true;
    case EBB__TY_U64: out->word = f->u64; return true;
    case EBB__TY_BOOL: out->word = f->boolean; return true;
    case EBB__TY_STRING:
        if (!is_utf8(f->bytes, f->n)) return false;
        return (out->ref = ebb__bytes_new(run, type, f->bytes, f->n)) != NULL;
    case EBB__TY_BYTES: return (out->ref = ebb__bytes_new(run, type, f->bytes, f->n)) != NULL;
    case EBB__TY_MACHINE:
    case EBB__TY_ROLE: out->word = f->u64; return ebb__handle_fits(run->program, type, f->u64);
    default: return false;
    }
}

static ebb__object *make_message(ebb__run *run, uint32_t type, const ebb_program_field *fields, size_t n) {
    const ebb__shape *s = &run->shapes[type];
    ebb__object *o = n != s->n ? NULL : s->constant != NULL ? s->constant : ebb__object_make(run, type);
    for (uint32_t i = 0; o != NULL && i < s->n; i++) {
        const ebb_program_field *f = find_field(fields, n, s->names[i]);
        if (f == NULL || !set_field(run, s->of[i], f, &o->slots[s->at[i]])) return NULL;
    }
    return o;
}

bool ebb_program_has(const ebb_program *p, const char *kind) {
    return ebb__message_named(p, kind) != 0;
}

/* ---- the work of the host on values ---- */

ebb__run ebb__host_begin(ebb_program *p) {
    return (ebb__run){.program = p, .shapes = p->image.shapes, .ms = p->ms, .budget = p->budget};
}

void ebb__host_end(ebb_program *p) {
    ebb__arena_reset(&p->arena);
    p->main_bytes = 0;
}

ebb_status ebb__host_message(ebb__run *run, const char *kind, const ebb_program_field *fields, size_t n,
                             ebb__parcel *out) {
    const ebb_program *p = run->program;
    uint32_t type = p->ms == NULL ? 0 : ebb__message_named(p, kind);
    if (type == 0 || p->dispatching) return EBB_ERR_INVALID;
    ebb__object *o = make_message(run, type, fields, n);
    if (o == NULL) return run->trap.kind != EBB__TRAP_NONE ? EBB_ERR_NOMEM : EBB_ERR_INVALID;
    return ebb__parcel_make(run, o, out);
}

/* ---- sending ---- */

typedef struct delivery {
    ebb_machine to;
    const char *key; /* NULL: a send */
} delivery;

ebb_status ebb__host_send(ebb_program *p, ebb_machine to, const ebb__parcel *x) {
    ebb_status st = ebb_machine_send(p->ms, to, x->kind, x->payload, x->size);
    if (st != EBB_OK) ebb__block_drop(x->block);
    return st;
}

static ebb_status publish(ebb_program *p, const char *key, const ebb__parcel *x) {
    ebb_status st = ebb_machine_publish(p->ms, x->kind, ebb__key_of(key, strlen(key)), x->payload, x->size);
    if (st != EBB_OK) ebb__block_drop(x->block);
    return st;
}

static ebb_status deliver(ebb_program *p, delivery d, const char *kind, const ebb_program_field *fields,
                          size_t n) {
    ebb__run run = ebb__host_begin(p);
    ebb__parcel x;
    ebb_status st = ebb__host_message(&run, kind, fields, n, &x);
    if (st == EBB_OK) st = d.key == NULL ? ebb__host_send(p, d.to, &x) : publish(p, d.key, &x);
    if (!p->dispatching) ebb__host_end(p);
    return st;
}

ebb_status ebb_program_send(ebb_program *p, ebb_machine to, const char *kind, const ebb_program_field *fields,
                            size_t n) {
    return deliver(p, (delivery){.to = to}, kind, fields, n);
}

ebb_status ebb_program_publish(ebb_program *p, const char *kind, const char *key,
                               const ebb_program_field *fields, size_t n) {
    return deliver(p, (delivery){.key = key}, kind, fields, n);
}

/* ---- spawning ---- */

static const ebb__host_type *type_named(const ebb_program *p, const char *name) {
    const ebb__host_type *found = NULL;
    for (uint32_t i = 0; i < p->image.ir->n_machines; i++) {
        const ebb__ir_machine *ir = &p->image.ir->machines[i];
        if (ir->spec || strcmp(ir->name, name) != 0) continue;
        if (found != NULL) return NULL; /* of another module: the name says not which */
        found = &p->types[i];
    }
    return found;
}

/* The arguments of `new`, in the order of its parameters. */
static bool set_arguments(ebb__run *run, const ebb__decl *make, const ebb_program_field *fields, size_t n,
                          ebb__value *out) {
    if (n != make->n_fields) return false;
    for (uint32_t i = 0; i < n; i++) {
        const char *name = ebb__name_text(run->program->image.lang, make->fields[i].name);
        const ebb_program_field *f = find_field(fields, n, name);
        if (f == NULL || !set_field(run, make->fields[i].type, f, &out[i])) return false;
    }
    return true;
}

/* A trap of `new` is reported as that of main is. */
static ebb_status spawn(ebb_program *p, const ebb__host_type *t, const ebb__value *arguments, uint64_t *id) {
    ebb__run *run = &p->run;
    ebb__value made = {0};
    bool ok = p->exec.call(p->exec.ctx, run, t->ir->make->id, arguments, &made);
    if (ok && ebb__do_spawn(run, made.ref, id)) return EBB_OK;
    if (run->trap.kind == EBB__TRAP_CLOSED) return EBB_ERR_CLOSED;
    ebb_status st = ebb__host_fault(p);
    ebb__host_report_fault(p, (ebb_machine){0}, t->ir->name, "", false, st);
    return st;
}

ebb_machine ebb_program_spawn(ebb_program *p, const char *typestate, const ebb_program_field *arguments,
                              size_t n) {
    const ebb__host_type *t = p->ms == NULL || p->dispatching ? NULL : type_named(p, typestate);
    ebb__value values[EBB__FIELDS_MAX];
    uint64_t id = 0;
    ebb_status st = EBB_ERR_INVALID;
    if (t != NULL) {
        p->run = ebb__host_begin(p);
        bool fits = set_arguments(&p->run, t->ir->decl->typestate->make, arguments, n, values);
        if (fits) st = spawn(p, t, values, &id);
        else if (p->run.trap.kind != EBB__TRAP_NONE) st = EBB_ERR_NOMEM;
        ebb__host_end(p);
    }
    return (ebb_machine){st == EBB_OK ? id : (uint64_t)(uint32_t)-st << 32};
}

/* ---- answers ---- */

ebb_status ebb_program_json(ebb_program *p, uint16_t kind, const void *payload,
                            void (*write)(void *ctx, const char *text, size_t n), void *ctx) {
    if (p->dispatching || kind == 0 || kind >= p->image.ir->n_kinds) return EBB_ERR_INVALID;
    ebb__run run = ebb__host_begin(p);
    ebb__object *text =
        ebb__object_json(&run, p->image.ir->kinds[kind].type, ebb__host_payload(p, kind, payload));
    if (text != NULL) write(ctx, (const char *)ebb__object_bytes(text), text->n);
    ebb__host_end(p);
    return text != NULL ? EBB_OK : EBB_ERR_NOMEM;
}
