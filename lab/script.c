/* Creating and freeing a script, its names, and the lines that the host executes. */
#include "lab/script.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "lab/script_op.h"

enum { CHUNK_BYTES = 16384 };

/* ---- names --------------------------------------------------------------------------------------------- */

/* Never 0, which is no valid key of a map. */
static uint64_t hash_of(const char *text, size_t n) {
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) h = ebb__hash_word(h ^ (unsigned char)text[i]);
    return h | 1;
}

static ebb__script_word *look_up(const ebb__script *s, const char *text, size_t n) {
    ebb__script_word **first = ebb__map_find(&s->names, hash_of(text, n));
    ebb__script_word *w = first == NULL ? NULL : *first;
    while (w != NULL && (strlen(w->text) != n || memcmp(w->text, text, n) != 0)) w = w->next;
    return w;
}

ebb__script_word *ebb__script_intern(ebb__script *s, const char *text, size_t n) {
    ebb__script_word *w = look_up(s, text, n);
    if (w != NULL) return w;
    w = ebb__arena_zero(&s->arena, sizeof *w + n + 1);
    if (w == NULL) return NULL;
    ebb__script_word **first = ebb__map_put(&s->names, hash_of(text, n));
    if (first == NULL) return NULL;
    memcpy(w->text, text, n);
    w->next = *first;
    *first = w;
    return w;
}

void ebb__script_keep_sites(ebb__script *s, ebb__script_keep_fn *keep, void *ctx) {
    s->keep = keep;
    s->keep_ctx = ctx;
}

const char *ebb__script_site(const ebb__script *s, ebb__script_word *name) {
    if (s->keep == NULL) return name->text;
    if (name->site == NULL) name->site = s->keep(s->keep_ctx, name->text);
    return name->site;
}

ebb_status ebb__script_thing(ebb__script *s, ebb__thing **out) {
    *out = NULL;
    if (s->things == EBB__SCRIPT_THINGS) return EBB_ERR_LIMIT;
    *out = ebb__arena_zero(&s->arena, sizeof **out);
    if (*out == NULL) return EBB_ERR_NOMEM;
    s->things++;
    return EBB_OK;
}

ebb_status ebb__script_bind(ebb__script *s, ebb__script_word *name, ebb__thing *thing, ebb__thing_kind kind,
                            uint64_t id) {
    name->id = id;
    name->kind = kind;
    ebb_status st = ebb_id_status(id);
    if (st != EBB_OK) return st;
    thing->name = name->text;
    thing->id = id;
    thing->kind = kind;
    if (s->last == NULL) s->first = thing;
    else s->last->next = thing;
    s->last = thing;
    ebb__thing **slot = ebb__map_put(&s->ids[kind], id);
    if (slot == NULL) return EBB_ERR_NOMEM;
    *slot = thing;
    return EBB_OK;
}

ebb_status ebb__script_find(const ebb__script_word *name, ebb__thing_kind kind, uint64_t *id) {
    *id = name->id;
    return name->kind == kind ? EBB_OK : EBB_ERR_INVALID;
}

uint64_t ebb__script_id(const ebb__script *s, const char *name) {
    const ebb__script_word *w = look_up(s, name, strlen(name));
    return w == NULL ? 0 : w->id;
}

const char *ebb__script_name(const ebb__script *s, ebb__thing_kind kind, uint64_t id) {
    if (id == 0 || kind < EBB__TASK || kind > EBB__OBLIGATION) return NULL;
    ebb__thing **slot = ebb__map_find(&s->ids[kind], id);
    return slot == NULL ? NULL : (*slot)->name;
}

const ebb__thing *ebb__script_things(const ebb__script *s) {
    return s->first;
}

/* ---- creating and freeing ------------------------------------------------------------------------------ */

static ebb_status name_root(ebb__script *s) {
    ebb__thing *thing;
    ebb__script_word *root = ebb__script_intern(s, "root", strlen("root"));
    if (root == NULL || ebb__script_thing(s, &thing) != EBB_OK) return EBB_ERR_NOMEM;
    return ebb__script_bind(s, root, thing, EBB__REGION, ebb_runtime_root(s->rt).id);
}

ebb__script *ebb__script_new(ebb_runtime *rt, ebb_allocator a) {
    ebb__script *s = ebb__alloc(&a, sizeof *s);
    if (s == NULL) return NULL;
    memset(s, 0, sizeof *s);
    s->rt = rt;
    ebb__arena_init(&s->arena, a, CHUNK_BYTES);
    ebb__map_init(&s->names, a, sizeof(ebb__script_word *));
    for (int kind = EBB__TASK; kind <= EBB__OBLIGATION; kind++) {
        ebb__map_init(&s->ids[kind], a, sizeof(ebb__thing *));
    }
    if (name_root(s) == EBB_OK) return s;
    ebb__script_free(s);
    return NULL;
}

void ebb__script_free(ebb__script *s) {
    if (s == NULL) return;
    ebb_allocator a = s->arena.allocator;
    for (int kind = EBB__TASK; kind <= EBB__OBLIGATION; kind++) ebb__map_free(&s->ids[kind]);
    ebb__map_free(&s->names);
    ebb__arena_free(&s->arena);
    ebb__free(&a, s, sizeof *s);
}

/* ---- lines --------------------------------------------------------------------------------------------- */

static ebb_status take_witness(ebb__script *s, const ebb__script_op *op) {
    uint64_t id;
    ebb_witness *w = ebb__arena_alloc(&s->arena, sizeof *w);
    if (w == NULL) return EBB_ERR_NOMEM;
    ebb_status st = ebb__script_find(op->name, EBB__TASK, &id);
    if (st == EBB_OK) st = ebb_task_witness(ebb_runtime_host(s->rt), (ebb_task){id}, w);
    if (st == EBB_OK) op->other->witness = w;
    return st;
}

static ebb_status check_witnesses(const ebb__script_op *op) {
    if (op->name->witness == NULL || op->other->witness == NULL) return EBB_ERR_INVALID;
    return ebb_witness_check(op->name->witness, op->other->witness);
}

/* EBB_ERR_LIMIT if the chain was cut. */
static ebb_status read_chain(ebb__script *s, const ebb__script_op *op) {
    uint64_t id;
    bool cut = false;
    ebb_status st = ebb__script_find(op->name, EBB__REGION, &id);
    if (st == EBB_OK) {
        st = ebb_region_causes(ebb_runtime_host(s->rt), (ebb_region){id}, s->chain, EBB_CHAIN_DEPTH,
                               &s->chain_n, &cut);
    }
    return st == EBB_OK && cut ? EBB_ERR_LIMIT : st;
}

static ebb_status do_line(ebb__script *s, const ebb__script_op *op) {
    ebb_cx *host = ebb_runtime_host(s->rt);
    switch (op->verb) {
    case V_NOTHING: return EBB_OK;
    case V_BODY: op->name->body = op->body; return EBB_OK;
    case V_ADVANCE: ebb_runtime_advance(s->rt, ebb_now(host) + op->span); return EBB_OK;
    case V_TURN: ebb_runtime_set_turn(s->rt, op->number, op->second); return EBB_OK;
    case V_WITNESS: return take_witness(s, op);
    case V_CHECK: return check_witnesses(op);
    case V_CHAIN: return read_chain(s, op);
    default: return ebb__script_do(s, host, op);
    }
}

ebb_status ebb__script_line(ebb__script *s, const char *line, size_t n, char message[EBB__SCRIPT_MESSAGE]) {
    ebb__script_op op;
    s->chain_n = 0;
    ebb_status st = ebb__script_parse(s, line, n, &op, message);
    if (st != EBB_OK) return st;
    s->result = do_line(s, &op);
    return s->result == EBB_ERR_NOMEM ? EBB_ERR_NOMEM : EBB_OK;
}

ebb_status ebb__script_result(const ebb__script *s) {
    return s->result;
}

const ebb_region_cause *ebb__script_chain(const ebb__script *s, uint32_t *n) {
    *n = s->chain_n;
    return s->chain;
}
