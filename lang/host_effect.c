/* lang/host_effect.c - what the code of a program asks for: messages, requests, replies, the life of machines, print. */
#include "lang/host.h"

#include <string.h>

#include "base/alloc.h"

bool ebb__run_trap(ebb__run *run, ebb__trap_kind kind, ebb__span at) {
    if (run->trap.kind != EBB__TRAP_NONE) return false;
    run->trap.kind = (uint8_t)kind;
    run->trap.span = at;
    return false;
}

bool ebb__block_trap(ebb__run *run, ebb_status st, uint8_t large, ebb__span at) {
    ebb__trap_kind kind = st == EBB_ERR_INVALID ? EBB__TRAP_DEPTH
                          : st == EBB_ERR_LIMIT ? (ebb__trap_kind)large
                                                : EBB__TRAP_NO_MEMORY;
    return ebb__run_trap(run, kind, at);
}

static bool trap(ebb__run *run, ebb__trap_kind kind) {
    return ebb__run_trap(run, kind, (ebb__span){0});
}

/* A status that is no value of the language. */
static bool trap_status(ebb__run *run, ebb_status st) {
    switch (st) {
    case EBB_ERR_LIMIT: return trap(run, EBB__TRAP_MEMORY);
    case EBB_ERR_CLOSED: return trap(run, EBB__TRAP_CLOSED);
    case EBB_ERR_INVALID:
    case EBB_ERR_REPLIED: return trap(run, EBB__TRAP_CAPABILITY);
    default: return trap(run, EBB__TRAP_NO_MEMORY);
    }
}

/* ---- payloads ---- */

void ebb__host_keep(void *payload) {
    ebb__object *o;
    memcpy(&o, payload, sizeof o);
    ebb__block_keep(o);
}

void ebb__host_drop(void *payload) {
    ebb__object *o;
    memcpy(&o, payload, sizeof o);
    ebb__block_drop(o);
}

/* A record without references: the object itself, as one that never changes. */
static ebb_status parcel_words(ebb__run *run, const ebb__object *message, ebb__parcel *out) {
    size_t size = sizeof *message + message->n * sizeof(ebb__value);
    ebb__object *copy = (ebb__object *)(void *)out->room;
    if (size > EBB_MACHINE_MESSAGE_MAX) return EBB_ERR_LIMIT;
    if (size > sizeof out->room && (copy = ebb__run_alloc(run, size)) == NULL) return EBB_ERR_NOMEM;
    memcpy(copy, message, size);
    copy->flags = EBB__FROZEN;
    out->payload = copy;
    out->size = size;
    return EBB_OK;
}

ebb_status ebb__parcel_make(ebb__run *run, ebb__object *message, ebb__parcel *out) {
    const ebb__shape *s = &run->shapes[message->type];
    ebb_status st;
    out->payload = NULL;
    out->size = 0;
    out->block = NULL;
    out->kind = (uint16_t)s->kind_id;
    if (s->constant != NULL) return EBB_OK;
    if (s->n_refs == 0) return parcel_words(run, message, out);
    out->block = ebb__block_of(run->program, message, EBB_MACHINE_MESSAGE_MAX, &st);
    out->payload = &out->block;
    out->size = sizeof out->block;
    return st;
}

static bool parcel(ebb__run *run, ebb__object *message, ebb__parcel *out) {
    ebb_status st = ebb__parcel_make(run, message, out);
    if (st == EBB_OK) return true;
    return ebb__block_trap(run, st, EBB__TRAP_MESSAGE_SIZE, (ebb__span){0});
}

static uint16_t kind_of(const ebb__run *run, const ebb__object *message) {
    return (uint16_t)run->shapes[message->type].kind_id;
}

/* ---- send and request ---- */

/* The error of the language that a status is, or NULL. */
static ebb__object *machine_error(const ebb_program *p, ebb_status st) {
    switch (st) {
    case EBB_ERR_MAILBOX_FULL:
    case EBB_ERR_PENDING_FULL: return p->mailbox_full;
    case EBB_ERR_NOT_RUNNING:
    case EBB_ERR_CLOSED: return p->not_running;
    case EBB_ERR_UNKNOWN_MACHINE: return p->unknown;
    default: return NULL;
    }
}

bool ebb__do_send(ebb__run *run, uint64_t to, ebb__object *message, ebb__object **out) {
    ebb__parcel x;
    if (!parcel(run, message, &x)) return false;
    ebb_status st = ebb_machine_send(run->ms, (ebb_machine){to}, kind_of(run, message), x.payload, x.size);
    *out = run->program->unit;
    if (EBB__LIKELY(st == EBB_OK)) return true;
    ebb__block_drop(x.block);
    *out = machine_error(run->program, st);
    return *out != NULL || trap_status(run, st);
}

bool ebb__do_request(ebb__run *run, uint64_t to, ebb__object *message, uint32_t label, uint32_t token,
                     ebb__object **out) {
    ebb_program *p = run->program;
    uint16_t kind = kind_of(run, message);
    uint64_t within = p->image.ir->kinds[kind].within_ms;
    ebb__parcel x;
    if (run->message == NULL) return trap(run, EBB__TRAP_CAPABILITY);
    if (!parcel(run, message, &x)) return false;
    within = within > EBB_FOREVER / EBB_MS ? EBB_FOREVER : within * EBB_MS;
    ebb_request id = ebb_machine_request(run->ms, (ebb_machine){to}, kind, x.payload, x.size, within, label);
    ebb_status st = ebb_id_status(id.id);
    if (EBB__LIKELY(st == EBB_OK)) return (*out = ebb__object_box(run, token, id.id)) != NULL;
    ebb__block_drop(x.block);
    *out = machine_error(p, st);
    return *out != NULL || trap_status(run, st);
}

bool ebb__do_reply(ebb__run *run, uint64_t cap, ebb__object *response) {
    ebb__parcel x;
    if (!parcel(run, response, &x)) return false;
    ebb_status st = ebb_machine_reply(run->ms, (ebb_request){cap}, kind_of(run, response), x.payload, x.size);
    if (EBB__LIKELY(st == EBB_OK)) return true;
    ebb__block_drop(x.block);
    return trap_status(run, st);
}

/* A request that has ended is forgotten already. */
bool ebb__do_forget(ebb__run *run, uint64_t pending) {
    ebb_status st = ebb_machine_forget(run->ms, (ebb_request){pending});
    return st == EBB_ERR_NOMEM ? trap(run, EBB__TRAP_NO_MEMORY) : true;
}

/* ---- machines ---- */

bool ebb__do_spawn(ebb__run *run, ebb__object *state, uint64_t *out) {
    ebb_program *p = run->program;
    const ebb__shape *s = &run->shapes[state->type];
    ebb__host_type *t = &p->types[s->typestate];
    ebb__object *fields = ebb__object_make(run, state->type);
    if (fields == NULL) return false;
    memcpy(fields->slots, state->slots, s->n_refs * sizeof *state->slots);
    memcpy(fields->slots + fields->words_at, state->slots + state->words_at,
           s->n_words * sizeof *state->slots);
    ebb_status st = ebb__host_seal(p, fields, t->n_refs);
    if (st != EBB_OK) return ebb__block_trap(run, st, EBB__TRAP_STATE_SIZE, (ebb__span){0});
    fields->flags = 0;
    ebb_machine m = ebb_machine_spawn(run->ms, &t->type, s->state, fields);
    *out = m.id;
    st = ebb_id_status(m.id);
    if (st == EBB_OK) return true;
    ebb__host_unseal(fields, t->n_refs);
    return trap_status(run, st);
}

/* What has started or ended already stays as it is. */
bool ebb__do_start(ebb__run *run, uint64_t machine) {
    ebb_status st = ebb_machine_start(run->ms, (ebb_machine){machine});
    return st == EBB_ERR_NOMEM ? trap(run, EBB__TRAP_NO_MEMORY) : true;
}

bool ebb__do_stop(ebb__run *run, uint64_t machine) {
    ebb_status st = ebb_machine_stop(run->ms, (ebb_machine){machine});
    return st == EBB_ERR_NOMEM ? trap(run, EBB__TRAP_NO_MEMORY) : true;
}

/* ---- subscriptions ---- */

uint64_t ebb__key_of(const void *bytes, size_t n) {
    const uint8_t *s = bytes;
    uint64_t h = UINT64_C(14695981039346656037) ^ n;
    for (size_t i = 0; i < n; i++) h = (h ^ s[i]) * UINT64_C(1099511628211);
    return h ^ h >> 29;
}

/* A full mailbox is in the trace and reported; the program goes on. */
bool ebb__do_publish(ebb__run *run, ebb__object *message, const ebb__object *key) {
    ebb__parcel x;
    if (!parcel(run, message, &x)) return false;
    ebb_status st = ebb_machine_publish(run->ms, kind_of(run, message),
                                        ebb__key_of(ebb__object_bytes(key), key->n), x.payload, x.size);
    if (st == EBB_OK) return true;
    ebb__block_drop(x.block);
    return st == EBB_ERR_MAILBOX_FULL || st == EBB_ERR_CLOSED || trap_status(run, st);
}

bool ebb__do_subscribe(ebb__run *run, uint32_t kind, const ebb__object *key, bool on) {
    uint64_t k = ebb__key_of(ebb__object_bytes(key), key->n);
    ebb_status st = on ? ebb_machine_subscribe(run->ms, (uint16_t)kind, k)
                       : ebb_machine_unsubscribe(run->ms, (uint16_t)kind, k);
    return st == EBB_OK || trap_status(run, st);
}

/* ---- the world ---- */

static bool grow_printed(ebb_program *p, size_t n) {
    size_t room = (p->printed_n + n) * 2 + 256;
    char *bytes = ebb__resize(&p->allocator, p->printed, p->printed_room, room);
    if (bytes == NULL) return false;
    p->printed = bytes;
    p->printed_room = room;
    return true;
}

bool ebb__do_print(ebb__run *run, const ebb__object *text) {
    ebb_program *p = run->program;
    if (run->message == NULL) {
        if (p->opts.print != NULL) p->opts.print(p->opts.ctx, (const char *)ebb__object_bytes(text), text->n);
        return true;
    }
    size_t n = sizeof text->n + text->n;
    if (p->printed_n + n > EBB_MACHINE_DISPATCH_MAX) return trap(run, EBB__TRAP_MEMORY);
    if (p->printed_room - p->printed_n < n && !grow_printed(p, n)) return trap(run, EBB__TRAP_NO_MEMORY);
    memcpy(p->printed + p->printed_n, &text->n, sizeof text->n);
    memcpy(p->printed + p->printed_n + sizeof text->n, ebb__object_bytes(text), text->n);
    p->printed_n += n;
    return true;
}

uint64_t ebb__do_now(ebb__run *run) {
    return ebb_machine_now(run->ms) / EBB_MS;
}
