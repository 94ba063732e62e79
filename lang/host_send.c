/* lang/host_send.c - messages from the host: a record of the program is made of the fields that it gives. */
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

/* The type of a message; 0: there is none, or more than one. */
static uint32_t find_message(const ebb_program *p, const char *name) {
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
    return find_message(p, kind) != 0;
}

typedef struct delivery {
    ebb_machine to;
    const char *key; /* NULL: a send */
} delivery;

static ebb_status deliver(ebb_program *p, delivery d, const char *kind, const ebb_program_field *fields,
                          size_t n) {
    uint32_t type = p->ms == NULL ? 0 : find_message(p, kind);
    ebb__run run = {.program = p, .shapes = p->image.shapes, .ms = p->ms};
    ebb__parcel x;
    if (type == 0 || p->dispatching) return EBB_ERR_INVALID;
    ebb__object *o = make_message(&run, type, fields, n);
    ebb_status st = run.trap.kind != EBB__TRAP_NONE ? EBB_ERR_NOMEM : EBB_ERR_INVALID;
    if (o != NULL) st = ebb__parcel_make(&run, o, &x);
    if (st == EBB_OK) {
        uint16_t number = (uint16_t)p->image.shapes[type].kind_id;
        st = d.key == NULL
                 ? ebb_machine_send(p->ms, d.to, number, x.payload, x.size)
                 : ebb_machine_publish(p->ms, number, ebb__key_of(d.key, strlen(d.key)), x.payload, x.size);
        if (st != EBB_OK) ebb__block_drop(x.block);
    }
    ebb__arena_reset(&p->arena);
    p->main_bytes = 0;
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
