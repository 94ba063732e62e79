/* lang/type.c - types: interning, unions, what fits where. */
#include "lang/type.h"

#include <string.h>

#include "lang/check.h"
#include "lang/decl.h"

ebb__type_info *ebb__type_at(const ebb_lang *c, ebb__type t) {
    return EBB__VEC_AT(&c->check->types, ebb__type_info, t);
}

static uint64_t hash_of(const ebb__type_info *x) {
    uint64_t h = x->kind * UINT64_C(0x9e3779b97f4a7c15) + x->index;
    h = (h ^ (uintptr_t)x->decl) * UINT64_C(0xff51afd7ed558ccd);
    for (uint32_t i = 0; i < x->n; i++) h = (h ^ x->of[i]) * UINT64_C(0xff51afd7ed558ccd);
    return h | 1; /* 0 is no key */
}

static bool same(const ebb__type_info *a, const ebb__type_info *b) {
    return a->kind == b->kind && a->index == b->index && a->decl == b->decl && a->n == b->n &&
           (a->n == 0 || memcmp(a->of, b->of, a->n * sizeof *a->of) == 0);
}

static bool has_one_owner(const ebb_lang *c, const ebb__type_info *x) {
    if (x->kind == EBB__TY_STATE || x->kind == EBB__TY_PENDING || x->kind == EBB__TY_REPLY_CAP) return true;
    for (uint32_t i = 0; i < x->n; i++) {
        if (ebb__type_at(c, x->of[i])->moves) return true;
    }
    return false;
}

static ebb__type intern(ebb_lang *c, ebb__type_info x) {
    uint32_t *head = ebb__map_put(&c->check->type_of, hash_of(&x));
    if (head == NULL) {
        c->oom = true;
        return EBB__TY_ERROR;
    }
    for (ebb__type t = *head; t != 0; t = ebb__type_at(c, t)->next) {
        if (same(ebb__type_at(c, t), &x)) return t;
    }
    ebb__type *of = x.n == 0 ? NULL : ebb__lang_array(c, x.n, sizeof *of);
    if (x.n > 0 && of == NULL) return EBB__TY_ERROR;
    if (x.n > 0) memcpy(of, x.of, x.n * sizeof *of);
    x.of = of;
    x.moves = has_one_owner(c, &x);
    x.is_error = x.kind == EBB__TY_RECORD && x.decl->is_error;
    x.next = *head;
    ebb__type_info *slot = ebb__vec_push(c, &c->check->types);
    if (slot == NULL) return EBB__TY_ERROR;
    *slot = x;
    return *head = c->check->types.n - 1;
}

void ebb__types_init(ebb_lang *c) {
    c->check->types.size = sizeof(ebb__type_info);
    ebb__map_init(&c->check->type_of, c->allocator, sizeof(uint32_t));
    for (uint8_t kind = 0; kind <= EBB__TY_REQUEST_ID; kind++) {
        ebb__type_info *x = ebb__vec_push(c, &c->check->types);
        if (x != NULL) x->kind = kind;
    }
}

ebb__type ebb__type_of(ebb_lang *c, ebb__type_kind kind, const ebb__type *of, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (of[i] == EBB__TY_ERROR) return EBB__TY_ERROR;
    }
    return intern(c, (ebb__type_info){.kind = (uint8_t)kind, .n = n, .of = of});
}

ebb__type ebb__type_decl(ebb_lang *c, ebb__type_kind kind, ebb__decl *decl, uint32_t index) {
    return intern(c, (ebb__type_info){.kind = (uint8_t)kind, .decl = decl, .index = index});
}

/* ---- unions ---- */

uint32_t ebb__type_members(const ebb_lang *c, const ebb__type *t, const ebb__type **out) {
    const ebb__type_info *x = ebb__type_at(c, *t);
    *out = x->kind == EBB__TY_UNION ? x->of : t;
    return x->kind == EBB__TY_UNION ? x->n : 1;
}

bool ebb__type_has(const ebb_lang *c, ebb__type whole, ebb__type member) {
    const ebb__type *of;
    uint32_t n = ebb__type_members(c, &whole, &of);
    for (uint32_t i = 0; i < n; i++) {
        if (of[i] == member) return true;
    }
    return false;
}

static void insert(ebb__type *all, uint32_t *n, ebb__type t) {
    uint32_t at = *n;
    for (uint32_t i = 0; i < *n; i++) {
        if (all[i] == t) return;
    }
    for (; at > 0 && all[at - 1] > t; at--) all[at] = all[at - 1];
    all[at] = t;
    ++*n;
}

ebb__type ebb__type_union(ebb_lang *c, const ebb__type *of, uint32_t n) {
    uint32_t most = 0, all_n = 0;
    const ebb__type *members;
    for (uint32_t i = 0; i < n; i++) {
        if (of[i] == EBB__TY_ERROR) return EBB__TY_ERROR;
        most += ebb__type_members(c, &of[i], &members);
    }
    ebb__type *all = ebb__lang_array(c, most + 1, sizeof *all);
    if (all == NULL) return EBB__TY_ERROR;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t m = ebb__type_members(c, &of[i], &members);
        for (uint32_t j = 0; j < m; j++) {
            if (members[j] != EBB__TY_NEVER) insert(all, &all_n, members[j]);
        }
    }
    if (all_n <= 1) return all_n == 0 ? (ebb__type)EBB__TY_NEVER : all[0];
    return ebb__type_of(c, EBB__TY_UNION, all, all_n);
}

ebb__type ebb__type_join(ebb_lang *c, ebb__type a, ebb__type b) {
    return a == b || b == EBB__TY_NEVER ? a
           : a == EBB__TY_NEVER         ? b
                                        : ebb__type_union(c, (ebb__type[]){a, b}, 2);
}

static ebb__type keep(ebb_lang *c, ebb__type whole, bool (*wanted)(ebb_lang *, ebb__type, ebb__type),
                      ebb__type arg) {
    const ebb__type *of;
    uint32_t n = ebb__type_members(c, &whole, &of), kept_n = 0;
    ebb__type *kept = ebb__lang_array(c, n, sizeof *kept);
    if (kept == NULL) return EBB__TY_ERROR;
    for (uint32_t i = 0; i < n; i++) {
        if (wanted(c, of[i], arg)) kept[kept_n++] = of[i];
    }
    return kept_n == n ? whole : ebb__type_union(c, kept, kept_n);
}

static bool is_outside(ebb_lang *c, ebb__type t, ebb__type part) {
    return !ebb__type_has(c, part, t);
}

static bool is_error(ebb_lang *c, ebb__type t, ebb__type errors) {
    return ebb__type_at(c, t)->is_error == (errors != 0);
}

ebb__type ebb__type_without(ebb_lang *c, ebb__type whole, ebb__type part) {
    return keep(c, whole, is_outside, part);
}

ebb__type ebb__type_errors(ebb_lang *c, ebb__type t, bool errors) {
    return keep(c, t, is_error, errors);
}

/* ---- what fits ---- */

static bool plays(const ebb_lang *c, ebb__type from, ebb__type to) {
    const ebb__type_info *m = ebb__type_at(c, from), *r = ebb__type_at(c, to);
    if (m->kind != EBB__TY_MACHINE || r->kind != EBB__TY_ROLE) return false;
    const ebb__typestate *ts = m->decl->typestate;
    for (uint32_t i = 0; i < ts->n_roles; i++) {
        if (ts->roles[i].role->protocol->decl == r->decl && ts->roles[i].role->index == r->index) return true;
    }
    return false;
}

ebb__fit ebb__type_fit(const ebb_lang *c, ebb__type from, ebb__type to) {
    if (from == to || from == EBB__TY_ERROR || to == EBB__TY_ERROR || from == EBB__TY_NEVER)
        return EBB__FIT_SAME;
    if (plays(c, from, to)) return EBB__FIT_ROLE;
    if (ebb__type_kind_of(c, to) != EBB__TY_UNION) return EBB__FIT_NOT;
    const ebb__type *of;
    uint32_t n = ebb__type_members(c, &from, &of);
    for (uint32_t i = 0; i < n; i++) {
        if (!ebb__type_has(c, to, of[i])) return EBB__FIT_NOT;
    }
    return EBB__FIT_WIDEN;
}

bool ebb__type_drops(const ebb_lang *c, ebb__type t) {
    const ebb__type_info *x = ebb__type_at(c, t);
    if (!x->moves) return true;
    if (x->kind == EBB__TY_PENDING || x->kind == EBB__TY_REPLY_CAP) return false;
    if (x->kind == EBB__TY_STATE)
        return !x->decl->typestate->linear || x->decl->typestate->states[x->index]->final;
    for (uint32_t i = 0; i < x->n; i++) {
        if (!ebb__type_drops(c, x->of[i])) return false;
    }
    return true;
}

/* ---- printing ---- */

static void print_all(ebb_lang *c, ebb__text *t, const ebb__type_info *x, const char *between) {
    for (uint32_t i = 0; i < x->n; i++) {
        if (i > 0) ebb__text_str(t, between);
        ebb__type_print(c, t, x->of[i]);
    }
}

static void print_named(ebb_lang *c, ebb__text *t, const ebb__type_info *x) {
    const char *name = ebb__name_text(c, x->decl->name);
    if (x->kind == EBB__TY_RECORD) {
        ebb__text_str(t, name);
        return;
    }
    ebb__text_str(t, x->kind == EBB__TY_STATE ? "" : "Machine<");
    ebb__text_str(t, name);
    if (x->kind == EBB__TY_MACHINE) {
        ebb__text_str(t, ">");
        return;
    }
    ebb__text_str(t, "::");
    ebb__text_str(t, ebb__name_text(c, x->kind == EBB__TY_STATE ? x->decl->typestate->states[x->index]->name
                                                                : x->decl->protocol->roles[x->index]->name));
    if (x->kind == EBB__TY_ROLE) ebb__text_str(t, ">");
}

static void print_around(ebb_lang *c, ebb__text *t, const ebb__type_info *x, const char *open,
                         const char *between, const char *close) {
    ebb__text_str(t, open);
    print_all(c, t, x, between);
    ebb__text_str(t, close);
}

void ebb__type_print(ebb_lang *c, ebb__text *t, ebb__type type) {
    static const char *const simple[] = {"?",   "never",  "()",    "bool",     "i64",
                                         "u64", "string", "bytes", "duration", "RequestId"};
    const ebb__type_info *x = ebb__type_at(c, type);
    switch (x->kind) {
    case EBB__TY_LIST: print_around(c, t, x, "[", "", "]"); break;
    case EBB__TY_MAP: print_around(c, t, x, "[", ": ", "]"); break;
    case EBB__TY_TUPLE: print_around(c, t, x, "(", ", ", ")"); break;
    case EBB__TY_UNION: print_all(c, t, x, " | "); break;
    case EBB__TY_PENDING: print_around(c, t, x, "Pending<", "", ">"); break;
    case EBB__TY_REPLY_CAP: print_around(c, t, x, "ReplyCap<", "", ">"); break;
    case EBB__TY_RECORD:
    case EBB__TY_STATE:
    case EBB__TY_MACHINE:
    case EBB__TY_ROLE: print_named(c, t, x); break;
    default: ebb__text_str(t, simple[x->kind]);
    }
}
