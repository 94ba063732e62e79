/* lang/resolve.c - modules and names: what each item declares, and what a name means where it stands. */
#include <string.h>

#include "lang/check.h"
#include "lang/source.h"
#include "lang/std.h"

enum { IMPORT_DEPTH = 100 };

/* ---- scopes ---- */

static ebb__decl *scope_find(const ebb__scope *scope, ebb__name name) {
    ebb__decl **d = name == 0 || scope == NULL ? NULL : ebb__map_find(&scope->map, name);
    return d == NULL ? NULL : *d;
}

static void scope_add(ebb_lang *c, ebb__scope *scope, ebb__decl *d) {
    if (d->name == 0) return;
    ebb__decl *other = scope_find(scope, d->name);
    if (other != NULL) {
        ebb__diag *diag = ebb__diag_report(c, EBB__E0202, d->span, "%n is declared twice", d->name);
        ebb__diag_label(c, diag, other->span, "first here");
        other->ambiguous = d->used = true;
        return;
    }
    ebb__decl **slot = ebb__map_put(&scope->map, d->name);
    if (slot != NULL) *slot = d;
    else c->oom = true;
}

static ebb__decl *decl_new(ebb_lang *c, ebb__source *s, uint32_t node, ebb__decl_kind kind) {
    ebb__decl *d = EBB__NEW(c, ebb__decl);
    const ebb__syntax *x = ebb__syntax_at(s, node);
    *d = (ebb__decl){.kind = (uint8_t)kind, .source = s, .node = node};
    d->pub = (x->flags & EBB__FLAG_PUB) != 0;
    d->broken = (x->flags & EBB__FLAG_BROKEN) != 0;
    d->span = x->tok != 0 ? ebb__token_span(s, x->tok) : ebb__node_span(s, node);
    d->name = x->tok != 0 ? ebb__token_at(s, x->tok)->name : 0;
    ebb__decl **slot = ebb__vec_push(c, &c->check->decls);
    if (slot != NULL) *slot = d;
    return d;
}

/* ---- built in ---- */

static ebb__decl *builtin(ebb_lang *c, ebb__name name, bool is_error) {
    ebb__decl *d = EBB__NEW(c, ebb__decl);
    *d = (ebb__decl){.kind = EBB__D_TYPE, .pub = true, .builtin = true, .used = true, .is_error = is_error};
    d->name = name;
    d->step = EBB__RESOLVED;
    d->type = ebb__type_decl(c, EBB__TY_RECORD, d, 0);
    scope_add(c, &c->check->builtins, d);
    return d;
}

static void builtin_named(ebb_lang *c, ebb__name name, ebb__type type) {
    ebb__decl *d = builtin(c, name, false);
    d->type = type;
}

void ebb__builtins_init(ebb_lang *c) {
    struct ebb__check *k = c->check;
    ebb__map_init(&k->builtins.map, c->allocator, sizeof(ebb__decl *));
    static const struct {
        ebb__name name;
        ebb__type type;
    } scalars[] = {{EBB__N_bool, EBB__TY_BOOL},
                   {EBB__N_i64, EBB__TY_I64},
                   {EBB__N_u64, EBB__TY_U64},
                   {EBB__N_string, EBB__TY_STRING},
                   {EBB__N_bytes, EBB__TY_BYTES},
                   {EBB__N_duration, EBB__TY_DURATION},
                   {EBB__N_RequestId, EBB__TY_REQUEST_ID}};
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
        builtin_named(c, scalars[i].name, scalars[i].type);
    ebb__type errors[] = {builtin(c, EBB__N_MailboxFull, true)->type,
                          builtin(c, EBB__N_NotRunning, true)->type, builtin(c, EBB__N_Unknown, true)->type};
    k->machine_error = ebb__type_union(c, errors, 3);
    builtin_named(c, EBB__N_MachineError, k->machine_error);
    ebb__type why[] = {builtin(c, EBB__N_Timeout, false)->type, builtin(c, EBB__N_Stopped, false)->type,
                       builtin(c, EBB__N_Faulted, false)->type, builtin(c, EBB__N_Unhandled, false)->type};
    ebb__decl *failed = builtin(c, EBB__N_RequestFailed, false);
    failed->fields = EBB__NEW(c, ebb__field);
    failed->fields[0] = (ebb__field){.name = EBB__N_why, .type = ebb__type_union(c, why, 4)};
    failed->n_fields = 1;
    k->request_failed = failed->type;
    k->none = builtin(c, EBB__N_None, false)->type;
}

/* ---- modules ---- */

static void load_imports(ebb_lang *c, ebb__source *s);

/* "net::auth" as "net/auth". */
static const char *module_path(ebb_lang *c, const ebb__source *s, uint32_t path) {
    const ebb__syntax *x = ebb__syntax_at(s, path);
    const char *text = "";
    for (uint32_t tok = x->first; tok < x->end; tok++) {
        const ebb__token *t = ebb__token_at(s, tok);
        if (t->kind == EBB__T_COLONS) text = ebb__format(c, "%s/", text);
        else text = ebb__format(c, "%s%n", text, t->name);
    }
    return text;
}

static ebb__source *module_loaded(const ebb_lang *c, const char *module) {
    for (uint32_t i = 0; i < c->sources.n; i++) {
        ebb__source *s = ebb__source_at(c, i);
        if (strcmp(s->module, module) == 0) return s;
    }
    return NULL;
}

static ebb__source *module_load(ebb_lang *c, const char *module, ebb__span at) {
    const char *text = NULL;
    size_t n = 0;
    ebb_status st = EBB_OK;
    text = ebb__std_module(module, &n);
    if (text == NULL)
        st = c->opts.load == NULL ? EBB_ERR_INVALID : c->opts.load(c->opts.load_ctx, module, &text, &n);
    if (st != EBB_OK) {
        (void)ebb__diag_report(c, EBB__E0208, at, "there is no %s.ebb", module);
        return NULL;
    }
    ebb__source *s = ebb__source_add(c, ebb__format(c, "%s.ebb", module), module, text, n);
    if (s != NULL) load_imports(c, s);
    return s;
}

static ebb__source *import_module(ebb_lang *c, ebb__source *from, uint32_t path) {
    const char *module = module_path(c, from, path);
    ebb__span at = ebb__node_span(from, path);
    ebb__source *s = module_loaded(c, module);
    if (s != NULL && s->loading) {
        (void)ebb__diag_report(c, EBB__E0203, at, "%s is being read: it imports this file, directly or not",
                               module);
        return NULL;
    }
    if (s != NULL) return s;
    if (c->check->import_depth == IMPORT_DEPTH) {
        (void)ebb__diag_report(c, EBB__E0109, at, "imports are nested more than %d deep",
                               (int64_t)IMPORT_DEPTH);
        return NULL;
    }
    c->check->import_depth++;
    s = module_load(c, module, at);
    c->check->import_depth--;
    return s;
}

static void declare_import(ebb_lang *c, ebb__source *s, uint32_t node) {
    uint32_t path = ebb__child_of(s, node, EBB__S_PATH), name = ebb__child_of(s, node, EBB__S_NAME);
    if (path == 0 || (ebb__syntax_at(s, node)->flags & EBB__FLAG_BROKEN) != 0) return;
    ebb__decl *d = decl_new(c, s, node, EBB__D_IMPORT);
    d->name = name != 0 ? ebb__token_at(s, ebb__syntax_at(s, name)->tok)->name : ebb__path_name(s, path);
    d->span = ebb__node_span(s, name != 0 ? name : path);
    d->module = import_module(c, s, path);
    d->broken = d->module == NULL;
    scope_add(c, s->scope, d);
}

bool ebb__check_attr(ebb_lang *c, const ebb__source *s, uint32_t attr, ebb__name allowed) {
    uint32_t tok = ebb__syntax_at(s, attr)->tok;
    ebb__name name = tok == 0 ? 0 : ebb__token_at(s, tok)->name;
    if (name == allowed || name == 0) return name != 0;
    ebb__diag *d =
        ebb__diag_report(c, EBB__E0201, ebb__node_span(s, attr), "there is no attribute @%n here", name);
    if (allowed == 0) return false;
    ebb__diag_help(c, d, "@%n may stand here", allowed);
    return false;
}

/* Types may be @error, typestates @strict. */
static bool read_attrs(ebb_lang *c, const ebb__source *s, uint32_t node) {
    uint8_t kind = ebb__syntax_at(s, node)->kind;
    ebb__name allowed = kind == EBB__S_TYPEDECL ? EBB__N_error : kind == EBB__S_TYPESTATE ? EBB__N_strict : 0;
    bool found = false;
    for (uint32_t child = ebb__syntax_at(s, node)->child; child != 0;
         child = ebb__syntax_at(s, child)->next) {
        if (ebb__syntax_at(s, child)->kind == EBB__S_ATTR && ebb__check_attr(c, s, child, allowed))
            found = true;
    }
    return found;
}

static void declare_item(ebb_lang *c, ebb__source *s, uint32_t node) {
    static const struct {
        uint8_t syntax, decl;
    } kinds[] = {
        {EBB__S_TYPEDECL, EBB__D_TYPE},       {EBB__S_CONST, EBB__D_CONST},       {EBB__S_FN, EBB__D_FN},
        {EBB__S_TYPESTATE, EBB__D_TYPESTATE}, {EBB__S_PROTOCOL, EBB__D_PROTOCOL}, {EBB__S_SPEC, EBB__D_SPEC}};
    uint8_t kind = ebb__syntax_at(s, node)->kind;
    if (kind == EBB__S_IMPORT) declare_import(c, s, node);
    if (kind == EBB__S_HOLE)
        (void)ebb__diag_report(c, EBB__E0107, ebb__node_span(s, node), "an item is still to be written");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].syntax != kind) continue;
        ebb__decl *d = decl_new(c, s, node, kinds[i].decl);
        d->is_error = read_attrs(c, s, node) && d->kind == EBB__D_TYPE;
        scope_add(c, s->scope, d);
    }
}

static void load_imports(ebb_lang *c, ebb__source *s) {
    s->loading = true;
    s->scope = EBB__NEW(c, ebb__scope);
    ebb__map_init(&s->scope->map, c->allocator, sizeof(ebb__decl *));
    for (uint32_t item = ebb__syntax_at(s, s->root)->child; item != 0 && !c->oom;
         item = ebb__syntax_at(s, item)->next) {
        declare_item(c, s, item);
    }
    s->loading = false;
}

void ebb__resolve(ebb_lang *c, ebb__source *root) {
    load_imports(c, root);
}

/* ---- names in context ---- */

ebb__name ebb__path_name(const ebb__source *s, uint32_t path) {
    const ebb__syntax *x = ebb__syntax_at(s, path);
    return x->end == x->first ? 0 : ebb__token_at(s, x->end - 1)->name;
}

ebb__state *ebb__state_named(const ebb__typestate *ts, ebb__name name) {
    for (uint32_t i = 0; i < ts->n_states; i++) {
        if (ts->states[i]->name == name) return ts->states[i];
    }
    return NULL;
}

ebb__role *ebb__role_named(const ebb__protocol *p, ebb__name name) {
    for (uint32_t i = 0; i < p->n_roles; i++) {
        if (p->roles[i]->name == name) return p->roles[i];
    }
    return NULL;
}

static ebb__decl *message_named(const ebb__protocol *p, ebb__name name) {
    for (uint32_t i = 0; i < p->n_msgs; i++) {
        if (p->msgs[i]->name == name) return p->msgs[i];
    }
    return NULL;
}

/* Among the protocols whose roles the typestate implements. */
static ebb__decl *open_message(ebb_lang *c, const ebb__typestate *ts, ebb__name name, ebb__span at) {
    ebb__decl *found = NULL;
    ebb__name protocol = 0;
    for (uint32_t i = 0; i < ts->n_roles; i++) {
        const ebb__protocol *p = ts->roles[i].role->protocol;
        ebb__decl *d = message_named(p, name);
        if (d == NULL || d == found) continue;
        if (found != NULL) {
            ebb__diag *diag = ebb__diag_report(c, EBB__E0205, at, "%n and %n both have a message %n",
                                               protocol, p->decl->name, name);
            ebb__diag_help(c, diag, "write %n::%n", protocol, name);
            ebb__diag_edit(c, diag, at, "%n::%n", protocol, name);
            return found;
        }
        found = d;
        protocol = p->decl->name;
    }
    return found;
}

static ebb__ref ref_to(ebb__decl *d) {
    d->used = true;
    bool reported = d->ambiguous || (d->broken && d->kind == EBB__D_IMPORT);
    return (ebb__ref){.kind = reported ? EBB__R_REPORTED : EBB__R_DECL, .decl = d};
}

ebb__ref ebb__name_lookup(ebb_lang *c, ebb__where w, ebb__name name, ebb__span at) {
    ebb__state *state = w.typestate == NULL ? NULL : ebb__state_named(w.typestate, name);
    if (state != NULL) return (ebb__ref){.kind = EBB__R_STATE, .state = state};
    ebb__decl *d = scope_find(w.source->scope, name);
    if (d == NULL && w.typestate != NULL) d = open_message(c, w.typestate, name, at);
    if (d == NULL) d = scope_find(&c->check->builtins, name);
    return d != NULL ? ref_to(d) : (ebb__ref){.kind = EBB__R_NONE};
}

static ebb__ref in_module(ebb_lang *c, ebb__where w, ebb__source *module, ebb__name name, ebb__span at) {
    ebb__decl *d = scope_find(module->scope, name);
    if (d == NULL || d->kind == EBB__D_IMPORT) return (ebb__ref){.kind = EBB__R_NONE};
    if (!d->pub && module != w.source) {
        ebb__diag *diag = ebb__diag_report(c, EBB__E0204, at, "%n is private to its module", name);
        ebb__diag_label(c, diag, d->span, "declare it `pub`");
    }
    return ref_to(d);
}

static ebb__ref member_of(ebb_lang *c, ebb__where w, ebb__ref in, ebb__name name, ebb__span at) {
    ebb__ref none = {.kind = EBB__R_NONE};
    if (in.kind != EBB__R_DECL) return in.kind == EBB__R_REPORTED ? in : none;
    switch (in.decl->kind) {
    case EBB__D_IMPORT: return in_module(c, w, in.decl->module, name, at);
    case EBB__D_PROTOCOL: {
        if (in.decl->protocol == NULL) return none;
        ebb__decl *msg = message_named(in.decl->protocol, name);
        if (msg != NULL) return ref_to(msg);
        ebb__role *role = ebb__role_named(in.decl->protocol, name);
        return role == NULL ? none : (ebb__ref){.kind = EBB__R_ROLE, .role = role};
    }
    case EBB__D_TYPESTATE: {
        ebb__state *state = in.decl->typestate == NULL ? NULL : ebb__state_named(in.decl->typestate, name);
        return state == NULL ? none : (ebb__ref){.kind = EBB__R_STATE, .state = state};
    }
    default: return none;
    }
}

static ebb__ref lookup_tokens(ebb_lang *c, ebb__where w, uint32_t path, uint32_t end) {
    const ebb__syntax *x = ebb__syntax_at(w.source, path);
    ebb__ref ref = {.kind = EBB__R_REPORTED};
    for (uint32_t tok = x->first; tok < end; tok += 2) {
        const ebb__token *t = ebb__token_at(w.source, tok);
        if (t->name == 0) return (ebb__ref){.kind = EBB__R_REPORTED}; /* a syntax error */
        ebb__span at = ebb__token_span(w.source, tok);
        bool first = tok == x->first, plain = x->end - x->first == 1;
        ref = first ? ebb__name_lookup(c, plain ? w : (ebb__where){w.source, NULL}, t->name, at)
                    : member_of(c, w, ref, t->name, at);
        if (ref.kind == EBB__R_NONE || ref.kind == EBB__R_REPORTED) return ref;
        if (ref.kind == EBB__R_DECL && ref.decl->broken && !plain) return (ebb__ref){.kind = EBB__R_REPORTED};
    }
    return ref;
}

ebb__ref ebb__lookup_path(ebb_lang *c, ebb__where w, uint32_t path) {
    return lookup_tokens(c, w, path, ebb__syntax_at(w.source, path)->end);
}

ebb__ref ebb__lookup_prefix(ebb_lang *c, ebb__where w, uint32_t path) {
    uint32_t end = ebb__syntax_at(w.source, path)->end;
    return lookup_tokens(c, (ebb__where){w.source, NULL}, path, end >= 2 ? end - 2 : 0);
}

/* ---- suggestions ---- */

enum { NAME_MAX = 32 };

static uint32_t least_of(uint32_t a, uint32_t b, uint32_t d) {
    uint32_t m = a < b ? a : b;
    return m < d ? m : d;
}

/* Letters to add, drop or change. */
static uint32_t distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    uint32_t row[NAME_MAX + 1];
    if (n > NAME_MAX || m > NAME_MAX) return UINT32_MAX;
    for (uint32_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        uint32_t diagonal = row[0];
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= m; j++) {
            uint32_t above = row[j];
            row[j] = least_of(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[m];
}

ebb__name ebb__closest(const ebb_lang *c, ebb__name name, const ebb__name *candidates, uint32_t n) {
    const char *text = ebb__name_text(c, name);
    uint32_t best = (uint32_t)(strlen(text) / 3) + 1;
    ebb__name closest = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = candidates[i] == name ? UINT32_MAX : distance(text, ebb__name_text(c, candidates[i]));
        if (d >= best) continue;
        best = d;
        closest = candidates[i];
    }
    return closest;
}

static void collect(const ebb__scope *scope, ebb__name *out, uint32_t *n, uint32_t most) {
    size_t at = 0;
    ebb__decl **d;
    while (scope != NULL && *n < most && (d = ebb__map_next(&scope->map, &at)) != NULL)
        out[(*n)++] = (*d)->name;
}

void ebb__unknown(ebb_lang *c, ebb__where w, uint32_t path, const char *what) {
    enum { MOST = 256 };
    ebb__name names[MOST], name = ebb__path_name(w.source, path);
    uint32_t n = 0;
    const ebb__syntax *x = ebb__syntax_at(w.source, path);
    bool plain = x->end - x->first == 1;
    if (name == 0 || (plain && w.typestate != NULL && w.typestate->lost_role)) return;
    ebb__span at = ebb__token_span(w.source, x->end - 1);
    ebb__diag *d = ebb__diag_report(c, EBB__E0201, at, "%s %n is not known here", what, name);
    if (!plain) return;
    for (uint32_t i = 0; w.typestate != NULL && i < w.typestate->n_states && n < MOST; i++) {
        names[n++] = w.typestate->states[i]->name;
    }
    collect(w.source->scope, names, &n, MOST);
    collect(&c->check->builtins, names, &n, MOST);
    ebb__name close = ebb__closest(c, name, names, n);
    if (close == 0) return;
    ebb__diag_help(c, d, "did you mean %n?", close);
    ebb__diag_edit(c, d, at, "%n", close);
}
