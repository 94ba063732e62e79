/* lang/signature_typestate.c - typestates: fields, states, methods, and what each handler says before its body. */
#include "lang/signature.h"

/* ---- declaring ---- */

static void declare_state(ebb_lang *c, ebb__typestate *ts, uint32_t node) {
    const ebb__source *s = ts->decl->source;
    if (ts->n_states == EBB__STATES_MAX) {
        (void)ebb__diag_report(c, EBB__E0209, ebb__name_span(s, node),
                               "the first behind the limit of %d states", (int64_t)EBB__STATES_MAX);
        c->muted = true;
        return;
    }
    ebb__state *st = EBB__NEW(c, ebb__state);
    *st = (ebb__state){.name = ebb__node_name(s, node), .index = ts->n_states, .node = node, .typestate = ts};
    st->span = ebb__name_span(s, node);
    st->role_state = st->name;
    st->methods.size = st->handlers.size = st->invariants.size = sizeof(void *);
    st->hot = (ebb__syntax_at(s, node)->flags & EBB__FLAG_HOT) != 0;
    for (uint32_t x = ebb__syntax_at(s, node)->child; x != 0; x = ebb__syntax_at(s, x)->next) {
        if (ebb__syntax_at(s, x)->kind == EBB__S_ATTR && ebb__check_attr(c, s, x, EBB__N_final))
            st->final = ts->linear = true;
        if (ebb__syntax_at(s, x)->kind == EBB__S_PATH) st->role_state = ebb__path_name(s, x);
    }
    ebb__state *other = st->name == 0 ? NULL : ebb__state_named(ts, st->name);
    if (other != NULL) {
        ebb__diag *d = ebb__diag_report(c, EBB__E0202, st->span, "the state %n is declared twice", st->name);
        ebb__diag_label(c, d, other->span, "first here");
        return;
    }
    ts->states[ts->n_states++] = st;
}

void ebb__declare_typestate(ebb_lang *c, ebb__decl *d) {
    const ebb__source *s = d->source;
    ebb__typestate *ts = EBB__NEW(c, ebb__typestate);
    *ts = (ebb__typestate){.decl = d, .spec = d->kind == EBB__D_SPEC, .first_request = {UINT32_MAX, 0, 0}};
    ts->fns.size = ts->handlers.size = ts->invariants.size = sizeof(void *);
    ts->invariant_nodes.size = sizeof(uint32_t);
    ts->states = ebb__lang_array(c, ebb__children_of(s, d->node, EBB__S_STATE) + 1, sizeof *ts->states);
    ebb__typestate **slot = ebb__vec_push(c, &c->check->typestates);
    d->typestate = ts;
    if (slot == NULL || ts->states == NULL) {
        if (slot != NULL) c->check->typestates.n--;
        return;
    }
    *slot = ts;
    for (uint32_t x = ebb__syntax_at(s, d->node)->child; x != 0; x = ebb__syntax_at(s, x)->next) {
        if (ebb__syntax_at(s, x)->kind == EBB__S_STATE) declare_state(c, ts, x);
    }
}

void ebb__read_roles(ebb_lang *c, ebb__typestate *ts) {
    ebb__source *s = ts->decl->source;
    ts->roles = ebb__lang_array(c, ebb__children_of(s, ts->decl->node, EBB__S_PATH) + 1, sizeof *ts->roles);
    for (uint32_t x = ebb__syntax_at(s, ts->decl->node)->child; ts->roles != NULL && x != 0;
         x = ebb__syntax_at(s, x)->next) {
        if (ebb__syntax_at(s, x)->kind != EBB__S_PATH) continue;
        ebb__ref r = ebb__lookup_path(c, (ebb__where){s, NULL}, x);
        ebb__span at = ebb__node_span(s, x);
        if (r.kind == EBB__R_ROLE) ts->roles[ts->n_roles++] = (ebb__implements){r.role, at};
        else ts->lost_role = true;
        if (r.kind != EBB__R_ROLE && r.kind != EBB__R_REPORTED)
            (void)ebb__diag_report(c, EBB__E0701, at, "there is no role %n here", ebb__path_name(s, x));
    }
}

/* ---- fields ---- */

/* `as Server`: a role of a protocol that the typestate implements, or a path. */
static ebb__role *field_role(ebb_lang *c, ebb__typestate *ts, uint32_t path) {
    ebb__source *s = ts->decl->source;
    ebb__name name = ebb__path_name(s, path);
    ebb__span at = ebb__node_span(s, path);
    if (ebb__syntax_at(s, path)->end - ebb__syntax_at(s, path)->first > 1) {
        ebb__ref r = ebb__lookup_path(c, (ebb__where){s, NULL}, path);
        if (r.kind == EBB__R_ROLE) return r.role;
    }
    for (uint32_t i = 0; i < ts->n_roles; i++) {
        ebb__role *r = ebb__role_named(ts->roles[i].role->protocol, name);
        if (r != NULL) return r;
    }
    if (name != 0 && !ts->lost_role)
        (void)ebb__diag_report(c, EBB__E0701, at, "no protocol of this typestate has a role %n", name);
    return NULL;
}

static void check_binding(ebb_lang *c, const ebb__field *f) {
    if (f->role == NULL || f->type == EBB__TY_ERROR) return;
    ebb__type role = ebb__type_decl(c, EBB__TY_ROLE, f->role->protocol->decl, f->role->index);
    uint8_t kind = ebb__type_kind_of(c, f->type);
    if (kind != EBB__TY_MACHINE && kind != EBB__TY_ROLE) {
        (void)ebb__diag_report(c, EBB__E0301, f->span, "only a Machine plays a role; this is %t", f->type);
    } else if (ebb__type_fit(c, f->type, role) == EBB__FIT_NOT) {
        (void)ebb__diag_report(c, EBB__E0709, f->span, "%t does not play %n", f->type, f->role->name);
    }
}

/* Appends the fields of `node`, a typestate or state, to those in `*fields`. */
static void read_fields(ebb_lang *c, ebb__typestate *ts, uint32_t node, ebb__field **fields, uint32_t *n) {
    ebb__source *s = ts->decl->source;
    uint32_t group = ebb__child_of(s, node, EBB__S_FIELDS), own_n, carried = *n;
    ebb__field *own = NULL, *old = *fields;
    if (group == 0) return;
    bool fits = ebb__read_fields(c, (ebb__where){s, ts}, group, EBB__S_TFIELD, &own, &own_n);
    if (!fits || !ebb__check_parts(c, ebb__node_span(s, group), carried + own_n)) ts->decl->broken = true;
    *fields = ebb__lang_array(c, carried + own_n + 1, sizeof **fields);
    if (own == NULL || *fields == NULL) {
        *fields = old;
        return;
    }
    for (uint32_t i = 0; i < carried; i++) (*fields)[i] = old[i];
    uint32_t x = ebb__syntax_at(s, group)->child;
    for (uint32_t i = 0; i < own_n && x != 0; x = ebb__syntax_at(s, x)->next) {
        if (ebb__syntax_at(s, x)->tok == 0) continue;
        uint32_t path = ebb__child_of(s, x, EBB__S_PATH);
        if (path != 0) own[i].role = field_role(c, ts, path);
        check_binding(c, &own[i]);
        bool shadows = false;
        for (uint32_t j = 0; j < carried; j++) shadows = shadows || old[j].name == own[i].name;
        if (shadows)
            (void)ebb__diag_report(c, EBB__E0405, own[i].span, "the typestate has a field %n", own[i].name);
        else (*fields)[(*n)++] = own[i];
        i++;
    }
}

/* ---- handlers ---- */

static void add_target(ebb_lang *c, ebb__handler *h, ebb__state *to, ebb__span at) {
    for (uint32_t i = 0; i < h->n_targets; i++) {
        if (h->targets[i] != to) continue;
        (void)ebb__diag_report(c, EBB__E0404, at, "%n is listed twice", to->name);
        return;
    }
    if (h->state != NULL && h->state->final && to != h->state)
        (void)ebb__diag_report(c, EBB__E0412, at, "%n is final", h->state->name);
    h->targets[h->n_targets++] = to;
}

static void unknown_state(ebb_lang *c, const ebb__typestate *ts, ebb__name name, ebb__span at) {
    ebb__name names[64];
    uint32_t n = 0;
    for (; n < ts->n_states && n < 64; n++) names[n] = ts->states[n]->name;
    ebb__diag *d = ebb__diag_report(c, EBB__E0403, at, "%n has no state %n", ts->decl->name, name);
    ebb__name close = ebb__closest(c, name, names, n);
    if (close == 0) return;
    ebb__diag_help(c, d, "did you mean %n?", close);
    ebb__diag_edit(c, d, at, "%n", close);
}

static void read_target(ebb_lang *c, ebb__typestate *ts, ebb__handler *h, uint32_t path) {
    ebb__source *s = ts->decl->source;
    ebb__name name = ebb__path_name(s, path);
    ebb__span at = ebb__node_span(s, path);
    ebb__state *to = ebb__state_named(ts, name);
    if (name == EBB__N_stay) {
        h->stays = true;
        return;
    }
    if (to != NULL) {
        add_target(c, h, to, at);
        return;
    }
    ebb__ref r = ebb__lookup_path(c, (ebb__where){s, ts}, path);
    if (r.kind == EBB__R_REPORTED) return;
    ebb__type t = r.kind == EBB__R_DECL && r.decl->kind == EBB__D_TYPE ? ebb__decl_type(c, r.decl)
                                                                       : (ebb__type)EBB__TY_NEVER;
    if (t == EBB__TY_ERROR) return;
    h->bad_target = t == EBB__TY_NEVER || ebb__type_errors(c, t, false) != EBB__TY_NEVER;
    if (h->bad_target) unknown_state(c, ts, name, at);
    else h->errors = ebb__type_join(c, h->errors, t);
}

static void read_targets(ebb_lang *c, ebb__typestate *ts, ebb__handler *h) {
    ebb__source *s = ts->decl->source;
    uint32_t node = ebb__child_of(s, h->node, EBB__S_TARGETS);
    h->errors = EBB__TY_NEVER;
    h->targets_node = node;
    if (node == 0) {
        h->stays = true;
        return;
    }
    h->targets = ebb__lang_array(c, ebb__children_of(s, node, EBB__S_PATH) + 1, sizeof *h->targets);
    for (uint32_t x = ebb__syntax_at(s, node)->child; h->targets != NULL && x != 0;
         x = ebb__syntax_at(s, x)->next)
        read_target(c, ts, h, x);
}

static void read_payload(ebb_lang *c, ebb__typestate *ts, ebb__handler *h) {
    ebb__source *s = ts->decl->source;
    uint32_t params = ebb__child_of(s, h->node, EBB__S_PARAMS);
    uint32_t first = params == 0 ? 0 : ebb__syntax_at(s, params)->child;
    uint32_t second = first == 0 ? 0 : ebb__syntax_at(s, first)->next;
    ebb__where w = {s, ts};
    uint32_t type = first == 0 ? 0 : ebb__syntax_at(s, first)->child;
    if (type != 0 && h->selector != EBB__TY_ERROR) {
        ebb__type t = ebb__read_type(c, w, type);
        if (t != h->selector && t != EBB__TY_ERROR) {
            ebb__span at = ebb__node_span(s, type), name = ebb__name_span(s, first);
            ebb__diag *d =
                ebb__diag_report(c, EBB__E0610, at, "the handler is for %t, this is %t", h->selector, t);
            ebb__diag_help(c, d, "leave the type out");
            ebb__diag_edit(c, d, (ebb__span){s->id, name.at + name.n, at.at + at.n - name.at - name.n}, "");
        }
    }
    if (second == 0) return;
    uint32_t cap = ebb__syntax_at(s, second)->child;
    ebb__type t = cap == 0 ? (ebb__type)EBB__TY_ERROR : ebb__read_type(c, w, cap);
    if (cap == 0 || (t != EBB__TY_ERROR && ebb__type_kind_of(c, t) != EBB__TY_REPLY_CAP)) {
        (void)ebb__diag_report(c, EBB__E0302, ebb__node_span(s, second),
                               "the second parameter is a ReplyCap<..>, with its type");
    } else if (t != EBB__TY_ERROR) {
        h->responses = ebb__type_at(c, t)->of[0];
    }
    if (ebb__syntax_at(s, second)->next != 0)
        (void)ebb__diag_report(c, EBB__E0302, ebb__node_span(s, ebb__syntax_at(s, second)->next),
                               "a handler has the message and at most its capability");
}

static void read_origin(ebb_lang *c, ebb__typestate *ts, ebb__handler *h) {
    ebb__source *s = ts->decl->source;
    uint32_t node = ebb__child_of(s, h->node, EBB__S_ORIGIN);
    uint32_t path = node == 0 ? 0 : ebb__child_of(s, node, EBB__S_PATH);
    if (path == 0) return;
    uint32_t label = ebb__child_of(s, node, EBB__S_LABEL);
    h->origin = ebb__read_message(c, (ebb__where){s, ts}, path);
    h->origin_span = ebb__node_span(s, path);
    if (label != 0) h->label = ebb__node_name(s, label);
}

static ebb__handler *add_handler(ebb_lang *c, ebb__vec *to, ebb__state *st, uint32_t node,
                                 ebb__handler_kind kind) {
    ebb__handler *h = EBB__NEW(c, ebb__handler);
    *h = (ebb__handler){.kind = (uint8_t)kind, .node = node, .state = st, .errors = EBB__TY_NEVER};
    h->sent.size = sizeof(ebb__sent);
    ebb__handler **slot = ebb__vec_push(c, to);
    if (slot != NULL) *slot = h;
    return h;
}

static void read_handler(ebb_lang *c, ebb__typestate *ts, ebb__vec *to, ebb__state *st, uint32_t node) {
    ebb__source *s = ts->decl->source;
    uint32_t path = ebb__child_of(s, node, EBB__S_PATH);
    if (path == 0) return;
    ebb__handler *h = add_handler(c, to, st, node, EBB__H_ON);
    h->span = ebb__node_span(s, path);
    h->selector = ebb__read_message(c, (ebb__where){s, ts}, path);
    h->req = ebb__req_of(ts, h->selector);
    read_payload(c, ts, h);
    read_origin(c, ts, h);
    read_targets(c, ts, h);
    if (h->req == NULL || h->responses == 0 || h->responses == h->req->responses) return;
    (void)ebb__diag_report(c, EBB__E0301, h->span,
                           "the capability is a ReplyCap<%t>, but the request allows %t", h->responses,
                           h->req->responses);
}

static void read_after(ebb_lang *c, ebb__typestate *ts, ebb__state *st, uint32_t node) {
    ebb__handler *h = add_handler(c, &st->handlers, st, node, EBB__H_AFTER);
    h->span = ebb__node_span(ts->decl->source, ebb__syntax_at(ts->decl->source, node)->child);
    read_targets(c, ts, h);
}

static void read_kinds(ebb_lang *c, ebb__typestate *ts, ebb__vec *to, ebb__state *st, uint32_t node,
                       ebb__handler_kind kind) {
    ebb__source *s = ts->decl->source;
    uint32_t choice = ebb__child_of(s, node, EBB__S_CHOICE);
    for (uint32_t x = choice == 0 ? 0 : ebb__syntax_at(s, choice)->child; x != 0;
         x = ebb__syntax_at(s, x)->next) {
        ebb__handler *h = add_handler(c, to, st, node, kind);
        h->span = ebb__node_span(s, x);
        h->selector = ebb__read_message(c, (ebb__where){s, ts}, x);
        h->stays = true;
        if (kind != EBB__H_IGNORE || ebb__req_of(ts, h->selector) == NULL) continue;
        ebb__diag *d = ebb__diag_report(c, EBB__E0608, h->span,
                                        "%t is a request: who asked waits for a reply", h->selector);
        const ebb__token *word = ebb__token_at(s, ebb__syntax_at(s, node)->first);
        ebb__diag_help(c, d, "defer it");
        ebb__diag_edit(c, d, (ebb__span){s->id, word->at, word->n}, "defer");
    }
}

/* ---- members ---- */

static bool returns_state(const ebb_lang *c, const ebb__typestate *ts, ebb__type t, bool all) {
    const ebb__type *of;
    uint32_t n = ebb__type_members(c, &t, &of), found = 0;
    for (uint32_t i = 0; i < n; i++) {
        const ebb__type_info *x = ebb__type_at(c, of[i]);
        found += x->kind == EBB__TY_STATE && x->decl == ts->decl;
    }
    return all ? found == n : found > 0;
}

static void read_method(ebb_lang *c, ebb__typestate *ts, ebb__vec *to, ebb__state *st, uint32_t node) {
    ebb__source *s = ts->decl->source;
    ebb__decl *d = EBB__NEW(c, ebb__decl);
    *d = (ebb__decl){.kind = EBB__D_FN,
                     .source = s,
                     .node = node,
                     .name = ebb__node_name(s, node),
                     .typestate = ts,
                     .state = st};
    d->span = ebb__name_span(s, node);
    d->broken = ts->decl->broken;
    d->used = true;
    for (uint32_t i = 0; i < to->n; i++) {
        if (ebb__decl_at(to, i)->name == d->name && d->name != 0)
            (void)ebb__diag_report(c, EBB__E0404, d->span, "there is a method %n here already", d->name);
    }
    ebb__read_fn(c, d);
    d->consumes = returns_state(c, ts, d->type, false) && d->name != EBB__N_new;
    if (st != NULL && st->final && d->consumes)
        (void)ebb__diag_report(c, EBB__E0412, d->span, "%n is final", st->name);
    ebb__decl **slot = ebb__vec_push(c, to), **all = ebb__vec_push(c, &c->check->decls);
    if (slot != NULL) *slot = d;
    if (all != NULL) *all = d;
    if (st != NULL || d->name != EBB__N_new) return;
    ts->make = d;
    if (d->type != EBB__TY_ERROR && !returns_state(c, ts, d->type, true))
        (void)ebb__diag_report(c, EBB__E0402, d->span, "this returns %t", d->type);
}

static void once_fields(ebb_lang *c, const ebb__typestate *ts, uint32_t owner, uint32_t node) {
    uint32_t first = ebb__child_of(ts->decl->source, owner, EBB__S_FIELDS);
    if (first == node) return;
    ebb__diag *d =
        ebb__diag_report(c, EBB__E0202, ebb__node_span(ts->decl->source, node), "there are fields already");
    ebb__diag_label(c, d, ebb__node_span(ts->decl->source, first), "first here");
}

static void read_state_member(ebb_lang *c, ebb__state *st, uint32_t node) {
    ebb__typestate *ts = st->typestate;
    uint32_t *slot;
    switch (ebb__syntax_at(ts->decl->source, node)->kind) {
    case EBB__S_FN: read_method(c, ts, &st->methods, st, node); break;
    case EBB__S_HANDLER: read_handler(c, ts, &st->handlers, st, node); break;
    case EBB__S_AFTER: read_after(c, ts, st, node); break;
    case EBB__S_DEFER: read_kinds(c, ts, &st->handlers, st, node, EBB__H_DEFER); break;
    case EBB__S_IGNORE: read_kinds(c, ts, &st->handlers, st, node, EBB__H_IGNORE); break;
    case EBB__S_FIELDS: once_fields(c, ts, st->node, node); break;
    case EBB__S_ENTRY: slot = &st->entry; goto once;
    case EBB__S_EXIT: slot = &st->exit; goto once;
    case EBB__S_HOLE:
        (void)ebb__diag_report(c, EBB__E0107, ebb__node_span(ts->decl->source, node),
                               "a member is still to be written");
        break;
    default: break;
    }
    return;
once:
    if (*slot != 0)
        (void)ebb__diag_report(c, EBB__E0202, ebb__node_span(ts->decl->source, node), "%n has one already",
                               st->name);
    *slot = node;
}

static void read_fault(ebb_lang *c, ebb__typestate *ts, uint32_t node) {
    ebb__source *s = ts->decl->source;
    uint32_t name = ebb__child_of(s, node, EBB__S_NAME);
    if (name == 0) return;
    ts->fault = ebb__state_named(ts, ebb__node_name(s, name));
    if (ts->fault == NULL) unknown_state(c, ts, ebb__node_name(s, name), ebb__name_span(s, name));
    else if (ts->fault->n_fields > ts->n_fields)
        (void)ebb__diag_report(c, EBB__E0414, ebb__name_span(s, name), "%n has fields of its own",
                               ts->fault->name);
}

static void read_mailbox(ebb_lang *c, ebb__typestate *ts, uint32_t node) {
    ebb__source *s = ts->decl->source;
    uint32_t literal = ebb__child_of(s, node, EBB__S_LITERAL);
    uint64_t n = 0;
    bool u, i;
    if (literal == 0) return;
    bool ok = ebb__token_number(s, ebb__token_at(s, ebb__syntax_at(s, literal)->tok), &n, &u, &i);
    if (ok && (n == 0 || n > EBB__MAILBOX_MAX))
        (void)ebb__diag_report(c, EBB__E0103, ebb__node_span(s, literal),
                               "a mailbox has from 1 to 65535 places");
    else ts->mailbox = (uint32_t)n;
}

static void read_member(ebb_lang *c, ebb__typestate *ts, uint32_t node) {
    switch (ebb__syntax_at(ts->decl->source, node)->kind) {
    case EBB__S_FN: read_method(c, ts, &ts->fns, NULL, node); break;
    case EBB__S_HANDLER: read_handler(c, ts, &ts->handlers, NULL, node); break;
    case EBB__S_DEFER: read_kinds(c, ts, &ts->handlers, NULL, node, EBB__H_DEFER); break;
    case EBB__S_IGNORE: read_kinds(c, ts, &ts->handlers, NULL, node, EBB__H_IGNORE); break;
    case EBB__S_FIELDS: once_fields(c, ts, ts->decl->node, node); break;
    case EBB__S_FAULT: read_fault(c, ts, node); break;
    case EBB__S_MAILBOX: read_mailbox(c, ts, node); break;
    case EBB__S_HOLE:
        (void)ebb__diag_report(c, EBB__E0107, ebb__node_span(ts->decl->source, node),
                               "a member is still to be written");
        break;
    default: break;
    }
}

static void check_new(ebb_lang *c, ebb__typestate *ts) {
    if (ts->spec || ts->make != NULL || ts->decl->broken || ts->n_states == 0) return;
    ebb__source *s = ts->decl->source;
    ebb__diag *d = ebb__diag_report(c, EBB__E0401, ts->decl->span, "%n has no `fn new`", ts->decl->name);
    if (ts->states[0]->n_fields > 0) return;
    ebb__diag_help(c, d, "begin in %n", ts->states[0]->name);
    ebb__span first = ebb__token_span(s, ebb__syntax_at(s, ts->states[0]->node)->first);
    ebb__diag_edit(c, d, (ebb__span){s->id, first.at, 0}, "fn new() -> %n { %n }\n    ", ts->states[0]->name,
                   ts->states[0]->name);
}

void ebb__read_typestate(ebb_lang *c, ebb__typestate *ts) {
    ebb__source *s = ts->decl->source;
    read_fields(c, ts, ts->decl->node, &ts->fields, &ts->n_fields);
    for (uint32_t i = 0; i < ts->n_states; i++) {
        ebb__state *st = ts->states[i];
        st->fields = ts->fields;
        st->n_fields = ts->n_fields;
        read_fields(c, ts, st->node, &st->fields, &st->n_fields);
    }
    uint32_t observes = ts->spec ? ebb__child_of(s, ts->decl->node, EBB__S_CHOICE) : 0;
    if (observes != 0) ts->observes = ebb__read_choice(c, (ebb__where){s, NULL}, observes);
    for (uint32_t x = ebb__syntax_at(s, ts->decl->node)->child; x != 0; x = ebb__syntax_at(s, x)->next)
        read_member(c, ts, x);
    for (uint32_t i = 0; i < ts->n_states; i++) {
        uint32_t x = ebb__syntax_at(s, ts->states[i]->node)->child;
        for (; x != 0; x = ebb__syntax_at(s, x)->next) read_state_member(c, ts->states[i], x);
    }
    check_new(c, ts);
}
