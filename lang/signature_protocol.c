/* lang/signature_protocol.c - protocols: messages, requests, roles and their transitions. */
#include "lang/signature.h"

static uint32_t next_of(const ebb__source *s, uint32_t node, uint8_t kind) {
    while (node != 0 && ebb__syntax_at(s, node)->kind != kind) node = ebb__syntax_at(s, node)->next;
    return node;
}

/* ---- declaring ---- */

/* `msg X` beside `type X` is that type. */
static ebb__decl *message_decl(ebb_lang *c, ebb__protocol *p, uint32_t node) {
    ebb__source *s = p->decl->source;
    ebb__name name = ebb__node_name(s, node);
    ebb__decl **type = name == 0 ? NULL : ebb__map_find(&s->scope->map, name);
    if (type != NULL && (*type)->kind == EBB__D_TYPE) {
        (*type)->used = true;
        return *type;
    }
    ebb__decl *d = EBB__NEW(c, ebb__decl);
    *d = (ebb__decl){
        .kind = EBB__D_TYPE, .pub = p->decl->pub, .source = s, .node = node, .name = name, .used = true};
    d->span = ebb__name_span(s, node);
    d->broken = p->decl->broken;
    d->protocol = p;
    ebb__decl **slot = ebb__vec_push(c, &c->check->decls);
    if (slot != NULL) *slot = d;
    return d;
}

static void declare_message(ebb_lang *c, ebb__protocol *p, uint32_t node) {
    ebb__name name = ebb__node_name(p->decl->source, node);
    for (uint32_t i = 0; i < p->n_msgs; i++) {
        if (p->msgs[i]->name != name || name == 0) continue;
        (void)ebb__diag_report(c, EBB__E0202, ebb__name_span(p->decl->source, node),
                               "the message %n is declared twice", name);
        return;
    }
    p->msgs[p->n_msgs++] = message_decl(c, p, node);
}

static void declare_states(ebb_lang *c, ebb__role *r) {
    const ebb__source *s = r->protocol->decl->source;
    r->states = ebb__lang_array(c, ebb__children_of(s, r->node, EBB__S_RSTATE) + 1, sizeof *r->states);
    for (uint32_t x = ebb__syntax_at(s, r->node)->child; r->states != NULL && x != 0;
         x = ebb__syntax_at(s, x)->next) {
        if (ebb__syntax_at(s, x)->kind != EBB__S_RSTATE) continue;
        ebb__rstate *st = &r->states[r->n_states++];
        *st = (ebb__rstate){.name = ebb__node_name(s, x), .role = r, .node = x, .span = ebb__name_span(s, x)};
        for (uint32_t i = 0; i + 1 < r->n_states; i++) {
            if (r->states[i].name == st->name && st->name != 0)
                (void)ebb__diag_report(c, EBB__E0202, st->span, "the state %n is declared twice", st->name);
        }
    }
}

static void declare_role(ebb_lang *c, ebb__protocol *p, uint32_t node) {
    ebb__role *r = EBB__NEW(c, ebb__role);
    *r = (ebb__role){
        .name = ebb__node_name(p->decl->source, node), .protocol = p, .index = p->n_roles, .node = node};
    r->span = ebb__name_span(p->decl->source, node);
    if (r->name != 0 && ebb__role_named(p, r->name) != NULL)
        (void)ebb__diag_report(c, EBB__E0202, r->span, "the role %n is declared twice", r->name);
    p->roles[p->n_roles++] = r;
    declare_states(c, r);
}

void ebb__declare_protocol(ebb_lang *c, ebb__decl *d) {
    const ebb__source *s = d->source;
    ebb__protocol *p = EBB__NEW(c, ebb__protocol);
    *p = (ebb__protocol){.decl = d};
    p->msgs = ebb__lang_array(c, ebb__children_of(s, d->node, EBB__S_MSG) + 1, sizeof *p->msgs);
    p->roles = ebb__lang_array(c, ebb__children_of(s, d->node, EBB__S_ROLE) + 1, sizeof *p->roles);
    ebb__protocol **slot = ebb__vec_push(c, &c->check->protocols);
    if (p->msgs == NULL || p->roles == NULL || slot == NULL) {
        if (slot != NULL) c->check->protocols.n--;
        return;
    }
    *slot = d->protocol = p;
    for (uint32_t x = ebb__syntax_at(s, d->node)->child; x != 0; x = ebb__syntax_at(s, x)->next) {
        uint8_t kind = ebb__syntax_at(s, x)->kind;
        if (kind == EBB__S_MSG) declare_message(c, p, x);
        if (kind == EBB__S_ROLE) declare_role(c, p, x);
        if (kind == EBB__S_HOLE)
            (void)ebb__diag_report(c, EBB__E0107, ebb__node_span(s, x),
                                   "a part of the protocol is still to be written");
    }
}

/* ---- reading ---- */

/* Names in a protocol: its own messages first. */
static ebb__type message_in(ebb_lang *c, const ebb__protocol *p, uint32_t path) {
    const ebb__source *s = p->decl->source;
    const ebb__syntax *x = ebb__syntax_at(s, path);
    ebb__name name = ebb__path_name(s, path);
    for (uint32_t i = 0; x->end - x->first == 1 && i < p->n_msgs; i++) {
        if (p->msgs[i]->name == name) return ebb__decl_type(c, p->msgs[i]);
    }
    return ebb__read_message(c, (ebb__where){p->decl->source, NULL}, path);
}

static ebb__type choice_in(ebb_lang *c, const ebb__protocol *p, uint32_t choice) {
    const ebb__source *s = p->decl->source;
    ebb__type all = EBB__TY_NEVER;
    for (uint32_t x = ebb__syntax_at(s, choice)->child; x != 0; x = ebb__syntax_at(s, x)->next)
        all = ebb__type_join(c, all, message_in(c, p, x));
    return all;
}

static ebb__role *role_at(ebb_lang *c, const ebb__protocol *p, uint32_t node) {
    ebb__name names[64], name = ebb__node_name(p->decl->source, node);
    ebb__role *r = ebb__role_named(p, name);
    if (r != NULL || name == 0) return r;
    uint32_t n = 0;
    for (; n < p->n_roles && n < 64; n++) names[n] = p->roles[n]->name;
    ebb__diag *d = ebb__diag_report(c, EBB__E0701, ebb__name_span(p->decl->source, node), "%n has no role %n",
                                    p->decl->name, name);
    ebb__name close = ebb__closest(c, name, names, n);
    if (close == 0) return NULL;
    ebb__diag_help(c, d, "did you mean %n?", close);
    ebb__diag_edit(c, d, ebb__name_span(p->decl->source, node), "%n", close);
    return NULL;
}

static void read_req(ebb_lang *c, ebb__protocol *p, uint32_t node) {
    const ebb__source *s = p->decl->source;
    ebb__req *r = &p->reqs[p->n_reqs];
    uint32_t from = ebb__child_of(s, node, EBB__S_NAME);
    uint32_t to = from == 0 ? 0 : next_of(s, ebb__syntax_at(s, from)->next, EBB__S_NAME);
    uint32_t path = ebb__child_of(s, node, EBB__S_PATH), choice = ebb__child_of(s, node, EBB__S_CHOICE);
    uint32_t within = ebb__child_of(s, node, EBB__S_LITERAL);
    if (to == 0 || path == 0 || choice == 0) return;
    bool u, i;
    *r = (ebb__req){
        role_at(c, p, from),    role_at(c, p, to), message_in(c, p, path), choice_in(c, p, choice), 0,
        ebb__node_span(s, path)};
    if (within != 0)
        (void)ebb__token_number(s, ebb__token_at(s, ebb__syntax_at(s, within)->tok), &r->within_ms, &u, &i);
    if (r->from == NULL || r->to == NULL)
        p->decl->broken = true; /* what follows from the request is not known */
    if (r->from == NULL || r->to == NULL || r->payload == EBB__TY_ERROR || r->responses == EBB__TY_ERROR)
        return;
    for (uint32_t k = 0; k < p->n_reqs; k++) {
        if (p->reqs[k].payload != r->payload || p->reqs[k].to != r->to || p->reqs[k].from != r->from)
            continue;
        ebb__diag *d = ebb__diag_report(c, EBB__E0707, r->span, "%n to %n is declared twice", r->from->name,
                                        r->to->name);
        ebb__diag_label(c, d, p->reqs[k].span, "first here");
        return;
    }
    p->n_reqs++;
}

static ebb__rstate *target_at(ebb_lang *c, ebb__role *r, uint32_t path) {
    const ebb__source *s = r->protocol->decl->source;
    ebb__name name = ebb__path_name(s, path);
    for (uint32_t i = 0; i < r->n_states; i++) {
        if (r->states[i].name == name) return &r->states[i];
    }
    ebb__diag *d =
        ebb__diag_report(c, EBB__E0702, ebb__node_span(s, path), "%n has no state %n", r->name, name);
    const ebb__syntax *x = ebb__syntax_at(s, r->node);
    ebb__span end = ebb__token_span(s, x->end - 1);
    if (ebb__token_at(s, x->end - 1)->kind != EBB__T_RBRACE) return NULL;
    ebb__diag_help(c, d, "declare it: state %n;", name);
    ebb__diag_edit(c, d, (ebb__span){s->id, end.at, 0}, "    state %n;\n    ", name);
    return NULL;
}

static void read_targets(ebb_lang *c, ebb__role *r, ebb__rtrans *t, uint32_t choice) {
    const ebb__source *s = r->protocol->decl->source;
    if (choice == 0) return;
    t->targets = ebb__lang_array(c, ebb__children_of(s, choice, EBB__S_PATH) + 1, sizeof *t->targets);
    for (uint32_t x = ebb__syntax_at(s, choice)->child; t->targets != NULL && x != 0;
         x = ebb__syntax_at(s, x)->next) {
        ebb__rstate *to = target_at(c, r, x);
        if (to != NULL) t->targets[t->n_targets++] = to;
    }
}

static void read_effects(ebb_lang *c, ebb__role *r, ebb__rtrans *t, uint32_t node) {
    const ebb__source *s = r->protocol->decl->source;
    t->effects = ebb__lang_array(c, ebb__children_of(s, node, EBB__S_EFFECT) + 1, sizeof *t->effects);
    for (uint32_t x = ebb__syntax_at(s, node)->child; t->effects != NULL && x != 0;
         x = ebb__syntax_at(s, x)->next) {
        if (ebb__syntax_at(s, x)->kind != EBB__S_EFFECT) continue;
        uint32_t choice = ebb__child_of(s, x, EBB__S_CHOICE), to = ebb__child_of(s, x, EBB__S_NAME);
        ebb__role *role = to == 0 ? NULL : role_at(c, r->protocol, to);
        if (choice == 0 || (to != 0 && role == NULL)) continue;
        t->effects[t->n_effects++] =
            (ebb__effect){choice_in(c, r->protocol, choice), role, ebb__node_span(s, x)};
    }
}

static void read_trans(ebb_lang *c, ebb__rstate *st, uint32_t node) {
    ebb__role *r = st->role;
    const ebb__source *s = r->protocol->decl->source;
    ebb__rtrans *t = &st->trans[st->n_trans];
    uint32_t path = ebb__child_of(s, node, EBB__S_PATH), peer = ebb__child_of(s, node, EBB__S_NAME);
    if (path == 0) return;
    *t = (ebb__rtrans){
        .trigger = message_in(c, r->protocol, path), .node = node, .span = ebb__node_span(s, path)};
    if (peer != 0 && ebb__node_name(s, peer) != EBB__N_System && role_at(c, r->protocol, peer) != NULL)
        t->peer = ebb__node_name(s, peer);
    read_targets(c, r, t, ebb__child_of(s, node, EBB__S_CHOICE));
    read_effects(c, r, t, node);
    for (uint32_t i = 0; i < st->n_trans; i++) {
        if (st->trans[i].trigger == t->trigger && st->trans[i].peer == t->peer && t->trigger != EBB__TY_ERROR)
            (void)ebb__diag_report(c, EBB__E0601, t->span, "%n has a transition on this message already",
                                   st->name);
    }
    if (t->trigger != EBB__TY_ERROR) st->n_trans++;
}

static void read_rstate(ebb_lang *c, ebb__rstate *st) {
    const ebb__source *s = st->role->protocol->decl->source;
    st->trans = ebb__lang_array(c, ebb__children_of(s, st->node, EBB__S_RTRANS) + 1, sizeof *st->trans);
    for (uint32_t x = ebb__syntax_at(s, st->node)->child; st->trans != NULL && x != 0;
         x = ebb__syntax_at(s, x)->next) {
        uint8_t kind = ebb__syntax_at(s, x)->kind;
        if (kind == EBB__S_ATTR) st->final = ebb__check_attr(c, s, x, EBB__N_final);
        if (kind == EBB__S_RTRANS) read_trans(c, st, x);
        if (kind == EBB__S_HOLE)
            (void)ebb__diag_report(c, EBB__E0107, ebb__node_span(s, x),
                                   "a transition is still to be written");
    }
}

static bool same_fields(ebb_lang *c, const ebb__decl *type, ebb__where w, uint32_t record) {
    ebb__field *fields;
    uint32_t n;
    if (!ebb__read_fields(c, w, record, EBB__S_FIELD, &fields, &n)) return true;
    if (n != type->n_fields) return false;
    for (uint32_t i = 0; i < n; i++) {
        if (fields[i].name != type->fields[i].name || fields[i].type != type->fields[i].type) return false;
    }
    return true;
}

static void check_message(ebb_lang *c, ebb__protocol *p, uint32_t node) {
    const ebb__source *s = p->decl->source;
    uint32_t record = ebb__child_of(s, node, EBB__S_RECORD);
    for (uint32_t i = 0; record != 0 && i < p->n_msgs; i++) {
        ebb__decl *d = p->msgs[i];
        if (d->name != ebb__node_name(s, node) || d->node == node) continue;
        if (same_fields(c, d, (ebb__where){p->decl->source, NULL}, record)) return;
        ebb__diag *diag = ebb__diag_report(c, EBB__E0206, ebb__name_span(s, node),
                                           "the message has other fields than the type");
        ebb__diag_label(c, diag, d->span, "the type of the same name");
        ebb__span at = ebb__name_span(s, node), all = ebb__node_span(s, node);
        ebb__diag_help(c, diag, "leave the fields out: the message is the type");
        ebb__diag_edit(c, diag, (ebb__span){at.source, at.at + at.n, all.at + all.n - at.at - at.n}, "");
        return;
    }
}

void ebb__read_protocol(ebb_lang *c, ebb__protocol *p) {
    const ebb__source *s = p->decl->source;
    p->reqs = ebb__lang_array(c, ebb__children_of(s, p->decl->node, EBB__S_REQ) + 1, sizeof *p->reqs);
    for (uint32_t x = ebb__syntax_at(s, p->decl->node)->child; p->reqs != NULL && x != 0;
         x = ebb__syntax_at(s, x)->next) {
        if (ebb__syntax_at(s, x)->kind == EBB__S_REQ) read_req(c, p, x);
        if (ebb__syntax_at(s, x)->kind == EBB__S_MSG) check_message(c, p, x);
    }
    for (uint32_t i = 0; i < p->n_roles; i++) {
        for (uint32_t j = 0; j < p->roles[i]->n_states; j++) read_rstate(c, &p->roles[i]->states[j]);
    }
}
