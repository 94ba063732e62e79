/* lang/signature.c - types as they are written, records, functions, and what the checks ask about declarations. */
#include "lang/signature.h"

#include "lang/source.h"

enum { ALIAS_DEPTH = 200 };

/* ---- reading types ---- */

static ebb__type type_args(ebb_lang *c, ebb__where w, uint32_t node, ebb__type_kind kind) {
    uint32_t arg = ebb__syntax_at(w.source, ebb__syntax_at(w.source, node)->child)->next;
    if (arg == 0 || ebb__syntax_at(w.source, arg)->next != 0) {
        (void)ebb__diag_report(c, EBB__E0302, ebb__node_span(w.source, node), "this type takes one argument");
        return EBB__TY_ERROR;
    }
    ebb__type of = ebb__read_type(c, w, arg);
    return ebb__type_of(c, kind, &of, 1);
}

/* Machine<T> and Machine<P::R>. */
static ebb__type machine_type(ebb_lang *c, ebb__where w, uint32_t node) {
    uint32_t arg = ebb__syntax_at(w.source, ebb__syntax_at(w.source, node)->child)->next;
    uint32_t path = arg == 0 ? 0 : ebb__child_of(w.source, arg, EBB__S_PATH);
    if (path == 0) {
        (void)ebb__diag_report(c, EBB__E0302, ebb__node_span(w.source, node),
                               "Machine takes a typestate or a role, as in Machine<Server>");
        return EBB__TY_ERROR;
    }
    ebb__ref r = ebb__lookup_path(c, (ebb__where){w.source, NULL}, path);
    if (r.kind == EBB__R_DECL && r.decl->kind == EBB__D_TYPESTATE)
        return ebb__type_decl(c, EBB__TY_MACHINE, r.decl, 0);
    if (r.kind == EBB__R_ROLE) return ebb__type_decl(c, EBB__TY_ROLE, r.role->protocol->decl, r.role->index);
    if (r.kind == EBB__R_NONE) ebb__unknown(c, w, path, "the typestate or role");
    else if (r.kind != EBB__R_REPORTED)
        (void)ebb__diag_report(c, EBB__E0301, ebb__node_span(w.source, path), "this is no typestate or role");
    return EBB__TY_ERROR;
}

static ebb__type path_type(ebb_lang *c, ebb__where w, uint32_t node) {
    uint32_t path = ebb__syntax_at(w.source, node)->child;
    const ebb__syntax *x = ebb__syntax_at(w.source, path);
    ebb__name name = x->end - x->first == 1 ? ebb__path_name(w.source, path) : 0;
    if (name == EBB__N_Machine) return machine_type(c, w, node);
    if (name == EBB__N_Pending) return type_args(c, w, node, EBB__TY_PENDING);
    if (name == EBB__N_ReplyCap) return type_args(c, w, node, EBB__TY_REPLY_CAP);
    ebb__ref r = ebb__lookup_path(c, w, path);
    switch (r.kind) {
    case EBB__R_STATE: return ebb__type_decl(c, EBB__TY_STATE, r.state->typestate->decl, r.state->index);
    case EBB__R_DECL:
        if (r.decl->kind == EBB__D_TYPE) return ebb__decl_type(c, r.decl);
        if (r.decl->kind == EBB__D_TYPESTATE)
            (void)ebb__diag_report(
                c, EBB__E0301, ebb__node_span(w.source, node),
                "a typestate is no type: use %n::STATE for a direct value, Machine<%n> for a handle",
                r.decl->name, r.decl->name);
        else
            (void)ebb__diag_report(c, EBB__E0301, ebb__node_span(w.source, node), "%n is no type",
                                   r.decl->name);
        return EBB__TY_ERROR;
    case EBB__R_NONE: ebb__unknown(c, w, path, "the type"); return EBB__TY_ERROR;
    case EBB__R_ROLE:
        (void)ebb__diag_report(c, EBB__E0301, ebb__node_span(w.source, node),
                               "a role is no type: use Machine<%n::%n>", r.role->protocol->decl->name,
                               r.role->name);
        return EBB__TY_ERROR;
    default: return EBB__TY_ERROR;
    }
}

bool ebb__check_parts(ebb_lang *c, ebb__span at, uint32_t n) {
    if (n <= EBB__FIELDS_MAX) return true;
    (void)ebb__diag_report(c, EBB__E0209, at, "%d; the limit is %d", (int64_t)n, (int64_t)EBB__FIELDS_MAX);
    return false;
}

static ebb__type compound(ebb_lang *c, ebb__where w, uint32_t node, ebb__type_kind kind) {
    uint32_t n = 0, i = 0;
    for (uint32_t t = ebb__syntax_at(w.source, node)->child; t != 0; t = ebb__syntax_at(w.source, t)->next)
        n++;
    ebb__type *of = ebb__lang_array(c, n + 1, sizeof *of);
    if (of == NULL) return EBB__TY_ERROR;
    for (uint32_t t = ebb__syntax_at(w.source, node)->child; t != 0; t = ebb__syntax_at(w.source, t)->next) {
        of[i++] = ebb__read_type(c, w, t);
    }
    uint32_t least = kind == EBB__TY_LIST ? 1 : kind == EBB__TY_MAP ? 2 : 0;
    if (n < least) return EBB__TY_ERROR; /* the parser has said what is missing */
    if (kind == EBB__TY_TUPLE && !ebb__check_parts(c, ebb__node_span(w.source, node), n))
        return EBB__TY_ERROR;
    if (kind == EBB__TY_UNION) return ebb__type_union(c, of, n);
    if (kind == EBB__TY_TUPLE && n <= 1) return n == 0 ? (ebb__type)EBB__TY_UNIT : of[0];
    return ebb__type_of(c, kind, of, n);
}

static bool is_key(const ebb_lang *c, ebb__type t) {
    uint8_t kind = ebb__type_kind_of(c, t);
    return kind <= EBB__TY_DURATION && kind != EBB__TY_NEVER && kind != EBB__TY_UNIT;
}

ebb__type ebb__read_type(ebb_lang *c, ebb__where w, uint32_t node) {
    switch (ebb__syntax_at(w.source, node)->kind) {
    case EBB__S_TYPE_PATH: return path_type(c, w, node);
    case EBB__S_TYPE_UNION: return compound(c, w, node, EBB__TY_UNION);
    case EBB__S_TYPE_TUPLE: return compound(c, w, node, EBB__TY_TUPLE);
    case EBB__S_TYPE_LIST: return compound(c, w, node, EBB__TY_LIST);
    case EBB__S_TYPE_MAP: {
        ebb__type map = compound(c, w, node, EBB__TY_MAP);
        if (map == EBB__TY_ERROR || is_key(c, ebb__type_at(c, map)->of[0])) return map;
        (void)ebb__diag_report(c, EBB__E0301, ebb__node_span(w.source, ebb__syntax_at(w.source, node)->child),
                               "keys are bool, i64, u64, duration, string or bytes");
        return EBB__TY_ERROR;
    }
    case EBB__S_HOLE:
        (void)ebb__diag_report(c, EBB__E0107, ebb__node_span(w.source, node),
                               "a type is still to be written");
        return EBB__TY_ERROR;
    default: return EBB__TY_ERROR;
    }
}

/* ---- records and aliases ---- */

static bool has_field(const ebb__field *fields, uint32_t n, ebb__name name) {
    for (uint32_t i = 0; i < n; i++) {
        if (fields[i].name == name) return true;
    }
    return false;
}

bool ebb__read_fields(ebb_lang *c, ebb__where w, uint32_t node, uint8_t kind, ebb__field **out, uint32_t *n) {
    const ebb__source *s = w.source;
    ebb__field *fields = ebb__lang_array(c, ebb__children_of(s, node, (ebb__kind)kind) + 1, sizeof *fields);
    *out = fields;
    *n = 0;
    for (uint32_t x = ebb__syntax_at(s, node)->child; fields != NULL && x != 0;
         x = ebb__syntax_at(s, x)->next) {
        const ebb__syntax *f = ebb__syntax_at(s, x);
        if (f->kind != kind || f->tok == 0) continue;
        ebb__name name = ebb__token_at(s, f->tok)->name;
        ebb__span at = ebb__token_span(s, f->tok);
        if (*n == EBB__FIELDS_MAX) {
            (void)ebb__diag_report(c, EBB__E0209, at, "the first behind the limit of %d",
                                   (int64_t)EBB__FIELDS_MAX);
            return false;
        }
        if (has_field(fields, *n, name))
            (void)ebb__diag_report(c, EBB__E0202, at, "%n is there already", name);
        fields[(*n)++] = (ebb__field){.name = name, .type = ebb__read_type(c, w, f->child), .span = at};
    }
    return true;
}

static ebb__type alias_type(ebb_lang *c, ebb__decl *d, uint32_t node) {
    if (c->check->alias_depth == ALIAS_DEPTH) {
        (void)ebb__diag_report(c, EBB__E0109, d->span, "types stand for types more than %d deep",
                               (int64_t)ALIAS_DEPTH);
        return EBB__TY_ERROR;
    }
    c->check->alias_depth++;
    ebb__type t = ebb__read_type(c, (ebb__where){d->source, NULL}, node);
    c->check->alias_depth--;
    return t;
}

ebb__type ebb__decl_type(ebb_lang *c, ebb__decl *d) {
    if (d->step == EBB__RESOLVED) return d->type;
    if (d->step == EBB__RESOLVING) {
        (void)ebb__diag_report(c, EBB__E0207, d->span, "%n stands for itself", d->name);
        return d->type = EBB__TY_ERROR;
    }
    uint32_t node = ebb__syntax_at(d->source, d->node)->child;
    while (node != 0 && !ebb__is_type(ebb__syntax_at(d->source, node)->kind))
        node = ebb__syntax_at(d->source, node)->next;
    bool record = node == 0 || ebb__syntax_at(d->source, node)->kind == EBB__S_RECORD;
    d->step = EBB__RESOLVING;
    ebb__type t = d->broken && node == 0 ? (ebb__type)EBB__TY_ERROR
                  : record               ? ebb__type_decl(c, EBB__TY_RECORD, d, 0)
                                         : alias_type(c, d, node);
    if (d->step == EBB__RESOLVING) d->type = t;
    d->step = EBB__RESOLVED;
    return d->type;
}

static void read_record(ebb_lang *c, ebb__decl *d) {
    (void)ebb__decl_type(c, d);
    uint32_t record = ebb__child_of(d->source, d->node, EBB__S_RECORD);
    if (record == 0) return;
    ebb__where w = {d->source, NULL};
    if (!ebb__read_fields(c, w, record, EBB__S_FIELD, &d->fields, &d->n_fields)) d->broken = true;
    for (uint32_t i = 0; i < d->n_fields; i++) {
        if (!ebb__type_at(c, d->fields[i].type)->moves) continue;
        bool cap = ebb__type_kind_of(c, d->fields[i].type) == EBB__TY_REPLY_CAP;
        (void)ebb__diag_report(c, cap ? EBB__E0508 : EBB__E0313, d->fields[i].span,
                               "a record is a plain value, and a %t has one owner", d->fields[i].type);
        d->fields[i].type = EBB__TY_ERROR;
    }
}

/* ---- infinite types ---- */

static bool is_finite(const ebb_lang *c, ebb__type t) {
    const ebb__type_info *x = ebb__type_at(c, t);
    if (x->kind == EBB__TY_RECORD)
        return x->decl->builtin || x->decl->effects; /* `effects` of a type: found finite */
    if (x->kind != EBB__TY_UNION && x->kind != EBB__TY_TUPLE) return true;
    bool all = true, any = false;
    for (uint32_t i = 0; i < x->n; i++) {
        bool finite = is_finite(c, x->of[i]);
        all = all && finite;
        any = any || finite;
    }
    return x->kind == EBB__TY_UNION ? any : all;
}

static bool fields_finite(const ebb_lang *c, const ebb__decl *d) {
    for (uint32_t i = 0; i < d->n_fields; i++) {
        if (!is_finite(c, d->fields[i].type)) return false;
    }
    return true;
}

/* Types whose fields are all known to be finite are finite; what is never found is not. */
static void check_finite(ebb_lang *c) {
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t i = c->check->decls.n; i-- > 0;) {
            ebb__decl *d = ebb__decl_at(&c->check->decls, i);
            if (d->kind != EBB__D_TYPE || d->effects || !fields_finite(c, d)) continue;
            d->effects = changed = true;
        }
    }
    for (uint32_t i = 0; i < c->check->decls.n; i++) {
        ebb__decl *d = ebb__decl_at(&c->check->decls, i);
        if (d->kind != EBB__D_TYPE || d->effects) continue;
        ebb__diag *diag = ebb__diag_report(c, EBB__E0207, d->span, "no value of %n would be finite", d->name);
        ebb__diag_help(c, diag, "put a list, a map or a union with another member in between");
        d->n_fields = 0;
    }
}

/* ---- functions ---- */

static uint32_t type_child(const ebb__source *s, uint32_t node) {
    uint32_t x = ebb__syntax_at(s, node)->child;
    while (x != 0 && !ebb__is_type(ebb__syntax_at(s, x)->kind) && ebb__syntax_at(s, x)->kind != EBB__S_HOLE)
        x = ebb__syntax_at(s, x)->next;
    return x;
}

void ebb__read_fn(ebb_lang *c, ebb__decl *d) {
    ebb__where w = {d->source, d->typestate};
    uint32_t params = ebb__child_of(d->source, d->node, EBB__S_PARAMS),
             result = type_child(d->source, d->node);
    if (params != 0 && !ebb__read_fields(c, w, params, EBB__S_PARAM, &d->fields, &d->n_fields))
        d->broken = true;
    for (uint32_t x = params == 0 ? 0 : ebb__syntax_at(d->source, params)->child, i = 0; x != 0;
         x = ebb__syntax_at(d->source, x)->next, i++) {
        if (ebb__syntax_at(d->source, x)->child == 0 && !d->broken)
            (void)ebb__diag_report(c, EBB__E0105, ebb__node_span(d->source, x),
                                   "a parameter of a function needs a type");
    }
    d->type = result == 0 ? (ebb__type)EBB__TY_UNIT : ebb__read_type(c, w, result);
    d->fn = EBB__NEW(c, ebb__ir_fn);
    d->fn->id = c->check->fns.n;
    ebb__ir_fn **slot = ebb__vec_push(c, &c->check->fns);
    if (slot != NULL) *slot = d->fn;
}

void ebb__signatures(ebb_lang *c) {
    struct ebb__check *k = c->check;
    uint32_t n = k->decls.n; /* messages and methods come behind */
    for (uint32_t i = 0; i < n; i++) {
        ebb__decl *d = ebb__decl_at(&k->decls, i);
        if (d->kind == EBB__D_TYPESTATE || d->kind == EBB__D_SPEC) ebb__declare_typestate(c, d);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (ebb__decl_at(&k->decls, i)->kind == EBB__D_PROTOCOL)
            ebb__declare_protocol(c, ebb__decl_at(&k->decls, i));
    }
    for (uint32_t i = 0; i < k->decls.n; i++) {
        if (ebb__decl_at(&k->decls, i)->kind == EBB__D_TYPE) read_record(c, ebb__decl_at(&k->decls, i));
    }
    check_finite(c);
    for (uint32_t i = 0; i < k->protocols.n; i++)
        ebb__read_protocol(c, *EBB__VEC_AT(&k->protocols, ebb__protocol *, i));
    for (uint32_t i = 0; i < k->typestates.n; i++)
        ebb__read_roles(c, *EBB__VEC_AT(&k->typestates, ebb__typestate *, i));
    for (uint32_t i = 0; i < k->typestates.n; i++) {
        ebb__read_typestate(c, *EBB__VEC_AT(&k->typestates, ebb__typestate *, i));
    }
    for (uint32_t i = 0; i < n; i++) {
        ebb__decl *d = ebb__decl_at(&k->decls, i);
        if (d->kind == EBB__D_FN) ebb__read_fn(c, d);
        if (d->kind == EBB__D_CONST)
            d->type = ebb__read_type(c, (ebb__where){d->source, NULL}, type_child(d->source, d->node));
    }
}

/* ---- messages ---- */

ebb__type ebb__read_message(ebb_lang *c, ebb__where w, uint32_t path) {
    ebb__ref r = ebb__lookup_path(c, w, path);
    ebb__span at = ebb__node_span(w.source, path);
    if (r.kind == EBB__R_STATE) { /* a message may be called as a state of the typestate is */
        ebb__ref outside = ebb__lookup_path(c, (ebb__where){w.source, NULL}, path);
        if (outside.kind != EBB__R_NONE) r = outside;
    }
    if (r.kind == EBB__R_NONE) ebb__unknown(c, w, path, "the message");
    if (r.kind == EBB__R_DECL && r.decl->kind == EBB__D_TYPE) {
        ebb__type t = ebb__decl_type(c, r.decl);
        if (t == EBB__TY_ERROR || ebb__type_kind_of(c, t) == EBB__TY_RECORD) return t;
        (void)ebb__diag_report(c, EBB__E0301, at, "a message is a record; %n is %t", r.decl->name, t);
    } else if (r.kind != EBB__R_NONE && r.kind != EBB__R_REPORTED) {
        (void)ebb__diag_report(c, EBB__E0301, at, "this is no message");
    }
    return EBB__TY_ERROR;
}

ebb__type ebb__read_choice(ebb_lang *c, ebb__where w, uint32_t choice) {
    ebb__type all = EBB__TY_NEVER;
    for (uint32_t x = ebb__syntax_at(w.source, choice)->child; x != 0;
         x = ebb__syntax_at(w.source, x)->next) {
        all = ebb__type_join(c, all, ebb__read_message(c, w, x));
    }
    return all;
}

/* ---- questions ---- */

const ebb__req *ebb__req_of(const ebb__typestate *ts, ebb__type payload) {
    for (uint32_t i = 0; i < ts->n_roles; i++) {
        const ebb__protocol *p = ts->roles[i].role->protocol;
        for (uint32_t j = 0; j < p->n_reqs; j++) {
            if (p->reqs[j].payload == payload && p->reqs[j].to == ts->roles[i].role) return &p->reqs[j];
        }
    }
    return NULL;
}

const ebb__req *ebb__req_to(const ebb_lang *c, ebb__type to, ebb__type payload) {
    const ebb__type_info *x = ebb__type_at(c, to);
    if (x->kind == EBB__TY_MACHINE) return ebb__req_of(x->decl->typestate, payload);
    if (x->kind != EBB__TY_ROLE) return NULL;
    const ebb__protocol *p = x->decl->protocol;
    for (uint32_t i = 0; i < p->n_reqs; i++) {
        if (p->reqs[i].payload == payload && p->reqs[i].to->index == x->index) return &p->reqs[i];
    }
    return NULL;
}

static bool handles(const ebb__handler *h, ebb__type payload) {
    return h->kind == EBB__H_ON && h->selector == payload;
}

static bool has_handler(const ebb__vec *handlers, ebb__type payload) {
    for (uint32_t i = 0; i < handlers->n; i++) {
        if (handles(ebb__handler_at(handlers, i), payload)) return true;
    }
    return false;
}

bool ebb__type_accepts(const ebb_lang *c, ebb__type to, ebb__type payload) {
    const ebb__type_info *x = ebb__type_at(c, to);
    if (x->decl->broken) return true;
    if (x->kind == EBB__TY_MACHINE) {
        const ebb__typestate *ts = x->decl->typestate;
        bool found = has_handler(&ts->handlers, payload);
        for (uint32_t i = 0; i < ts->n_states && !found; i++)
            found = has_handler(&ts->states[i]->handlers, payload);
        return found;
    }
    const ebb__role *r = x->decl->protocol->roles[x->index];
    for (uint32_t i = 0; i < r->n_states; i++) {
        for (uint32_t j = 0; j < r->states[i].n_trans; j++) {
            if (r->states[i].trans[j].trigger == payload) return true;
        }
    }
    return false;
}

static ebb__type explicit_in(const ebb__vec *handlers, ebb__type payload) {
    for (uint32_t i = 0; i < handlers->n; i++) {
        const ebb__handler *h = ebb__handler_at(handlers, i);
        if (handles(h, payload) && h->responses != 0) return h->responses;
    }
    return 0;
}

ebb__type ebb__explicit_responses(const ebb__typestate *ts, ebb__type payload) {
    ebb__type found = explicit_in(&ts->handlers, payload);
    for (uint32_t i = 0; i < ts->n_states && found == 0; i++)
        found = explicit_in(&ts->states[i]->handlers, payload);
    return found;
}
