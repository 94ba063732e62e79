/* lang/match.c - whether the arms of a match cover every value, and whether each is needed.
 *
 * Maranget's usefulness: a row of patterns is useful if some row of values matches it and none of the rows before. A
 * match is exhaustive if a row of `_` is not useful; the values found on the way are the witness. The work is bounded:
 * behind STEPS the match counts as covered, and its arms as needed. */
#include "lang/body.h"

enum { STEPS = 20000, DEPTH = 100 };

/* A witness for each column. */
typedef struct witness {
    const char *text;
    struct witness *next;
} witness;

typedef struct matrix {
    ebb__ir_pattern ***rows;
    uint32_t n, columns;
    const ebb__type *types;
} matrix;

typedef struct search {
    ebb_lang *c;
    uint32_t steps, depth;
} search;

/* A constructor of a type: which member of a union, true or false, or the only one; constants are told by value. */
typedef struct constructor {
    ebb__type type, member; /* `member` of a union */
    uint32_t arity;
    const ebb__type *of;
    const ebb__ir *value;
} constructor;

static const ebb__ir_pattern *plain(const ebb__ir_pattern *p) {
    return p->op == EBB__PAT_BIND || p->op == EBB__PAT_ANY || p->type == EBB__TY_ERROR ? NULL : p;
}

static ebb__ir_pattern *wild(search *s, ebb__type t) {
    ebb__ir_pattern *p = EBB__NEW(s->c, ebb__ir_pattern);
    *p = (ebb__ir_pattern){.op = EBB__PAT_ANY, .type = t == EBB__TY_ERROR ? (ebb__type)EBB__TY_UNIT : t};
    return p;
}

static bool same_value(const ebb__ir *x, const ebb__ir *y) {
    if (x->op != y->op) return false;
    if (x->op == EBB__OP_INT || x->op == EBB__OP_BOOL) return x->i == y->i;
    if (x->n_bytes != y->n_bytes) return false;
    for (uint32_t i = 0; i < x->n_bytes; i++) {
        if (x->bytes[i] != y->bytes[i]) return false;
    }
    return true;
}

/* Whether `p` matches some value made by `k`. */
static bool may_match(const search *s, const ebb__ir_pattern *p, const constructor *k) {
    const ebb__ir_pattern *x = plain(p);
    if (x == NULL) return true;
    if (x->op == EBB__PAT_EQUAL) return k->value != NULL && same_value(k->value, x->value);
    return x->op != EBB__PAT_IS || ebb__type_has(s->c, x->member, k->member);
}

/* What `p`, which may match, looks at inside of a value made by `k`. */
static void specialize(search *s, const ebb__ir_pattern *p, const constructor *k, ebb__ir_pattern **out) {
    for (uint32_t i = 0; i < k->arity; i++) out[i] = wild(s, k->of[i]);
    const ebb__ir_pattern *x = plain(p);
    if (x == NULL || x->op == EBB__PAT_EQUAL) return;
    if (x->op == EBB__PAT_IS) {
        if (x->n > 0 && x->member == k->member) out[0] = x->of[0];
        return;
    }
    for (uint32_t i = 0; i < k->arity && i < x->n; i++) out[i] = x->of[i];
}

/* A row without its first pattern, and before it what that looks at. */
static ebb__ir_pattern **specialize_row(search *s, ebb__ir_pattern **from, uint32_t columns,
                                        const constructor *k) {
    ebb__ir_pattern **row = ebb__lang_array(s->c, columns + k->arity + 1, sizeof *row);
    if (row == NULL) return NULL;
    specialize(s, from[0], k, row);
    for (uint32_t i = 1; i < columns; i++) row[k->arity + i - 1] = from[i];
    return row;
}

/* Takes memory for the rows that may match only: a match has thousands of others. */
static matrix specialize_all(search *s, const matrix *m, const constructor *k) {
    uint32_t columns = m->columns - 1 + k->arity, n = 0;
    matrix out = {.columns = columns};
    ebb__type *types = ebb__lang_array(s->c, columns + 1, sizeof *types);
    for (uint32_t r = 0; r < m->n; r++) n += may_match(s, m->rows[r][0], k);
    out.rows = ebb__lang_array(s->c, n + 1, sizeof *out.rows);
    if (types == NULL || out.rows == NULL) return (matrix){0};
    for (uint32_t i = 0; i < columns; i++) types[i] = i < k->arity ? k->of[i] : m->types[i - k->arity + 1];
    out.types = types;
    for (uint32_t r = 0; r < m->n; r++) {
        if (!may_match(s, m->rows[r][0], k)) continue;
        out.rows[out.n] = specialize_row(s, m->rows[r], m->columns, k);
        if (out.rows[out.n++] == NULL) return (matrix){0};
    }
    return out;
}

/* The rows whose first pattern says nothing, without it. */
static matrix rest_of(search *s, const matrix *m) {
    matrix out = {.columns = m->columns - 1, .types = m->types + 1};
    out.rows = ebb__lang_array(s->c, m->n + 1, sizeof *out.rows);
    if (out.rows == NULL) return (matrix){0};
    for (uint32_t r = 0; r < m->n; r++) {
        if (plain(m->rows[r][0]) == NULL) out.rows[out.n++] = m->rows[r] + 1;
    }
    return out;
}

static witness *cons(search *s, const char *text, witness *next) {
    witness *w = EBB__NEW(s->c, witness);
    *w = (witness){text, next};
    return w;
}

static const char *name_of(search *s, ebb__type t) {
    return ebb__format(s->c, "%t", t);
}

/* Puts the first `arity` texts of a witness into one for a value of `k`. */
static witness *assemble(search *s, const constructor *k, witness *w) {
    const ebb__type_info *t = ebb__type_at(s->c, k->type);
    const char *text = "", *inner = w == NULL ? "_" : w->text;
    if (k->value != NULL) return cons(s, k->value->i != 0 ? "true" : "false", w);
    if (t->kind == EBB__TY_UNION) {
        bool record = ebb__type_kind_of(s->c, k->member) == EBB__TY_RECORD ||
                      ebb__type_kind_of(s->c, k->member) == EBB__TY_STATE;
        text = inner[0] != '_' ? inner
               : record        ? name_of(s, k->member)
                               : ebb__format(s->c, k->member == EBB__TY_UNIT ? "()" : "_: %t", k->member);
        return cons(s, text, w == NULL ? NULL : w->next);
    }
    bool tuple = t->kind == EBB__TY_TUPLE;
    for (uint32_t i = 0; i < k->arity && w != NULL; i++, w = w->next) {
        if (tuple) text = ebb__format(s->c, i == 0 ? "%s%s" : "%s, %s", text, w->text);
        else
            text =
                ebb__format(s->c, i == 0 ? "%s%n: %s" : "%s, %n: %s", text,
                            t->kind == EBB__TY_RECORD ? t->decl->fields[i].name
                                                      : t->decl->typestate->states[t->index]->fields[i].name,
                            w->text);
    }
    return cons(s, tuple ? ebb__format(s->c, "(%s)", text) : ebb__format(s->c, "%t { %s }", k->type, text),
                w);
}

/* The constructors of a type, if they can be listed. `out` has room for as many as the type has members, or two. */
static uint32_t constructors(search *s, ebb__type type, constructor *out) {
    static const ebb__ir truth[2] = {{.op = EBB__OP_BOOL, .type = EBB__TY_BOOL},
                                     {.op = EBB__OP_BOOL, .type = EBB__TY_BOOL, .i = 1}};
    const ebb__type_info *t = ebb__type_at(s->c, type);
    switch (t->kind) {
    case EBB__TY_BOOL:
        for (uint32_t i = 0; i < 2; i++) out[i] = (constructor){.type = type, .value = &truth[1 - i]};
        return 2;
    case EBB__TY_UNION:
        for (uint32_t i = 0; i < t->n; i++)
            out[i] = (constructor){.type = type, .member = t->of[i], .arity = 1, .of = &t->of[i]};
        return t->n;
    case EBB__TY_TUPLE: out[0] = (constructor){.type = type, .arity = t->n, .of = t->of}; return 1;
    case EBB__TY_RECORD:
    case EBB__TY_STATE: {
        const ebb__state *st = t->kind == EBB__TY_STATE ? t->decl->typestate->states[t->index] : NULL;
        uint32_t n = st != NULL ? st->n_fields : t->decl->n_fields;
        const ebb__field *fields = st != NULL ? st->fields : t->decl->fields;
        ebb__type *of = ebb__lang_array(s->c, n + 1, sizeof *of);
        for (uint32_t i = 0; of != NULL && i < n; i++) of[i] = fields[i].type;
        out[0] = (constructor){.type = type, .arity = of == NULL ? 0 : n, .of = of};
        return 1;
    }
    default: return 0;
    }
}

static bool useful(search *s, const matrix *m, ebb__ir_pattern **q, witness **w);

static bool useful_with(search *s, const matrix *m, const constructor *k, ebb__ir_pattern **q, witness **w) {
    ebb__ir_pattern **row = may_match(s, q[0], k) ? specialize_row(s, q, m->columns, k) : NULL;
    if (row == NULL) return false;
    matrix inner = specialize_all(s, m, k);
    if (inner.rows == NULL || !useful(s, &inner, row, w)) return false;
    *w = assemble(s, k, *w);
    return true;
}

static bool any_tests(const matrix *m) {
    for (uint32_t r = 0; r < m->n; r++) {
        if (plain(m->rows[r][0]) != NULL) return true;
    }
    return false;
}

static bool useful_wild(search *s, const matrix *m, ebb__ir_pattern **q, witness **w) {
    if (any_tests(m)) {
        constructor *all = ebb__lang_array(s->c, ebb__type_at(s->c, m->types[0])->n + 2, sizeof *all);
        uint32_t n = all == NULL ? 0 : constructors(s, m->types[0], all);
        for (uint32_t i = 0; i < n; i++) {
            if (useful_with(s, m, &all[i], q, w)) return true;
        }
        if (n > 0) return false;
    }
    matrix rest = rest_of(s, m);
    if (rest.rows == NULL || !useful(s, &rest, q + 1, w)) return false;
    *w = cons(s, "_", *w);
    return true;
}

/* Whether some value matches `q` and no row of `m`; then `w` shows it. */
static bool useful(search *s, const matrix *m, ebb__ir_pattern **q, witness **w) {
    *w = NULL;
    if (m->columns == 0) return m->n == 0;
    if (s->depth == DEPTH) s->steps = 0;
    if (s->steps == 0 || s->c->oom) return false;
    s->steps--;
    s->depth++;
    const ebb__ir_pattern *first = plain(q[0]);
    bool found;
    if (first == NULL) {
        found = useful_wild(s, m, q, w);
    } else if (first->op == EBB__PAT_EQUAL) {
        constructor k = {.type = m->types[0], .value = first->value};
        found = useful_with(s, m, &k, q, w);
    } else if (first->op == EBB__PAT_IS) {
        const ebb__type *of;
        uint32_t n = ebb__type_members(s->c, &first->member, &of);
        found = false;
        for (uint32_t i = 0; i < n && !found; i++) {
            constructor k = {.type = m->types[0], .member = of[i], .arity = 1, .of = &of[i]};
            found = useful_with(s, m, &k, q, w);
        }
    } else {
        constructor k; /* a tuple, record or state has one */
        found = constructors(s, m->types[0], &k) == 1 && useful_with(s, m, &k, q, w);
    }
    s->depth--;
    return found;
}

void ebb__check_arms(ebb__body *b, ebb__type t, ebb__ir_pattern **arms, const bool *guarded, uint32_t n,
                     ebb__span at, ebb__span end) {
    search s = {.c = b->c, .steps = STEPS};
    witness *w;
    matrix m = {.columns = 1, .types = &t};
    m.rows = ebb__lang_array(b->c, n + 1, sizeof *m.rows);
    if (m.rows == NULL) return;
    for (uint32_t i = 0; i < n; i++) {
        if (arms[i]->type == EBB__TY_ERROR) return;
        if (!useful(&s, &m, &arms[i], &w) && s.steps > 0)
            (void)ebb__diag_report(b->c, EBB__W0906, arms[i]->span,
                                   "the arms before this one match all of it");
        if (!guarded[i]) m.rows[m.n++] = &arms[i];
    }
    ebb__ir_pattern *all = wild(&s, t);
    if (!useful(&s, &m, &all, &w)) return;
    ebb__diag *d = ebb__diag_report(b->c, EBB__E0305, at, "%s is not matched", w == NULL ? "_" : w->text);
    ebb__diag_note(b->c, d, "the value is %t", t);
    ebb__diag_help(b->c, d, "add an arm: %s => ...", w == NULL ? "_" : w->text);
    (void)end;
}

bool ebb__pattern_fails(ebb_lang *c, const ebb__ir_pattern *p) {
    if (p->op == EBB__PAT_EQUAL) return p->type != EBB__TY_ERROR;
    if (p->op == EBB__PAT_IS) return true;
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->of[i] != NULL && ebb__pattern_fails(c, p->of[i])) return true;
    }
    return false;
}
