/* Programs at random, without errors: types first, then functions, then machines that send, ask, publish, change their
 * states and fault. Expressions contain blocks that assign, so that the order of evaluation shows. What may be negative,
 * too large or not there is left to chance: a trap is part of a trace. */
#include "tests/lang/reference/reference.h"

enum { I64, U64, BOOL, STR, DUR, BYTES, LIST, MAP, TUPLE, RECORD, UNION };
enum {
    TYPES = 24,
    SCALARS = 6,
    RECORDS = 4,
    FIELDS = 3,
    MESSAGES = 4,
    FNS = 6,
    VARS = 512,
    MACHINES = 3,
    STATES = 3
};

typedef struct type {
    int kind, a, b; /* elements; of a record its number */
    char name[64];
} type;

typedef struct var {
    char name[24];
    int type;
    bool mut;
} var;

typedef struct fn {
    int result, params[3], n;
    bool fails; /* | Bad */
} fn;

typedef struct gen {
    uint64_t seed;
    lang_text out;
    type types[TYPES];
    int n_types, records[RECORDS][FIELDS], messages[MESSAGES][FIELDS];
    var vars[VARS];
    int n_vars, names;
    fn fns[FNS];
    int n_fns;
    int loops;      /* around here: BREAK and CONTINUE may stand */
    bool propagate; /* `?` of Bad may stand */
    bool pure;      /* no effect may stand */
    int holes;      /* of f-strings, around here: they stand in one line */
} gen;

static uint64_t next(gen *g) {
    g->seed ^= g->seed << 13;
    g->seed ^= g->seed >> 7;
    g->seed ^= g->seed << 17;
    return g->seed;
}

static int below(gen *g, int n) {
    return (int)((next(g) >> 11) % (uint64_t)n);
}

static bool chance(gen *g, int percent) {
    return below(g, 100) < percent;
}

__attribute__((format(printf, 2, 3))) static void w(gen *g, const char *format, ...) {
    char line[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    assert_true(n >= 0 && n < (int)sizeof line);
    for (int i = 0; g->holes > 0 && i < n; i++) {
        if (line[i] == '\n') line[i] = ' ';
    }
    lang_write(&g->out, line, (size_t)n);
}

/* ---- types ---- */

static int add_type(gen *g, type t) {
    for (int i = 0; i < g->n_types; i++) {
        if (strcmp(g->types[i].name, t.name) == 0) return i;
    }
    if (g->n_types == TYPES) return I64;
    g->types[g->n_types] = t;
    return g->n_types++;
}

static const char *name_of(const gen *g, int t) {
    return g->types[t].name;
}

/* Mostly of what is there already, so that values are shared and changed deep inside. */
static int compose(gen *g) {
    type t = {.a = below(g, g->n_types), .b = below(g, g->n_types)};
    if (g->n_types > SCALARS && chance(g, 50)) t.a = t.b = SCALARS + below(g, g->n_types - SCALARS);
    static const int keys[] = {I64, U64, STR, BOOL, DUR, BYTES};
    if (strlen(name_of(g, t.a)) + strlen(name_of(g, t.b)) > 40) return t.a;
    switch (below(g, 5)) {
    case 0:
    case 1:
    case 2:
        t.kind = LIST;
        snprintf(t.name, sizeof t.name, "[%s]", name_of(g, t.a));
        break;
    case 3:
        t.kind = MAP;
        t.a = keys[below(g, 6)];
        snprintf(t.name, sizeof t.name, "[%s: %s]", name_of(g, t.a), name_of(g, t.b));
        break;
    default: t.kind = TUPLE; snprintf(t.name, sizeof t.name, "(%s, %s)", name_of(g, t.a), name_of(g, t.b));
    }
    return add_type(g, t);
}

static int any_type(gen *g) {
    return chance(g, 30) ? below(g, SCALARS) : below(g, g->n_types);
}

static void declare_types(gen *g) {
    static const char *const scalars[] = {"i64", "u64", "bool", "string", "duration", "bytes"};
    for (int i = 0; i < SCALARS; i++) {
        type t = {.kind = i};
        snprintf(t.name, sizeof t.name, "%s", scalars[i]);
        (void)add_type(g, t);
    }
    for (int i = 0; i < RECORDS; i++) {
        (void)compose(g);
        type t = {.kind = RECORD, .a = i};
        snprintf(t.name, sizeof t.name, "R%d", i);
        w(g, "type R%d = {", i);
        for (int k = 0; k < FIELDS; k++) {
            g->records[i][k] = k == 0 ? compose(g) : any_type(g);
            w(g, "%s f%d: %s", k == 0 ? "" : ",", k, name_of(g, g->records[i][k]));
        }
        w(g, " }\n");
        (void)add_type(g, t);
    }
    w(g, "type E = {}\ntype U = R0 | R1 | E\n@error type Bad = { why: i64 }\n");
    (void)add_type(g, (type){.kind = UNION, .name = "U"});
    for (int i = 0; i < 4; i++) (void)compose(g);
    for (int i = 0; i < MESSAGES; i++) {
        w(g, "type G%d = {", i);
        for (int k = 0; k < FIELDS; k++) {
            g->messages[i][k] = any_type(g);
            w(g, "%s f%d: %s", k == 0 ? "" : ",", k, name_of(g, g->messages[i][k]));
        }
        w(g, " }\n");
    }
    for (int i = 0; i < g->n_types; i++)
        w(g, "fn id%d(x: %s) -> %s { x }\n", i, name_of(g, i), name_of(g, i));
}

/* ---- variables ---- */

static var *add_var(gen *g, int t, bool mut) {
    assert_true(g->n_vars < VARS);
    var *v = &g->vars[g->n_vars++];
    *v = (var){.type = t, .mut = mut};
    snprintf(v->name, sizeof v->name, "v%d", g->names++);
    return v;
}

/* Whether a variable is a list or map, with elements of type `of` (-1: any). */
static bool holds(const gen *g, const var *v, int of) {
    const type *x = &g->types[v->type];
    if (x->kind != LIST && x->kind != MAP) return false;
    return of < 0 || (x->kind == LIST ? x->a : x->b) == of;
}

/* One of a type, or of any (-1); NULL: there is none. */
static const var *some_var(gen *g, int t, bool mut) {
    const var *found = NULL;
    int n = 0;
    for (int i = 0; i < g->n_vars; i++) {
        const var *v = &g->vars[i];
        if ((t >= 0 && v->type != t) || (mut && !v->mut)) continue;
        n++;
        if (below(g, n) < 1 + (n > 3)) found = v; /* rather a young one */
    }
    return found;
}

static const var *some_container(gen *g, int of) {
    const var *found = NULL;
    int n = 0;
    for (int i = 0; i < g->n_vars; i++) {
        if (holds(g, &g->vars[i], of) && below(g, ++n) == 0) found = &g->vars[i];
    }
    return found;
}

/* ---- expressions ---- */

static void expr(gen *g, int t, int depth);
static void stmts(gen *g, int n, int depth);

static void literal(gen *g, int t) {
    static const char *const ints[] = {"0", "1", "2", "0",  "1",    "2",
                                       "3", "5", "7", "64", "(-1)", "9223372036854775807"};
    static const char *const texts[] = {"\"\"", "\"a\"", "\"b\"", "\"abc\"", "\"\\n\\\"\"", "\"\xc3\xa9\""};
    static const char *const spans[] = {"0ms", "1ms", "1500ms", "2s", "3min", "1h"};
    static const char *const bytes[] = {"b\"\"", "b\"\\x00\"", "b\"ab\"", "b\"\\xff\""};
    switch (t) {
    case I64: w(g, "%s", ints[below(g, chance(g, 80) ? 6 : 12)]); break;
    case U64: w(g, "%du64", below(g, 5) == 0 ? 70 : below(g, 4)); break;
    case BOOL: w(g, "%s", chance(g, 50) ? "true" : "false"); break;
    case STR: w(g, "%s", texts[below(g, 6)]); break;
    case DUR: w(g, "%s", spans[below(g, 6)]); break;
    default: w(g, "%s", bytes[below(g, 4)]);
    }
}

/* Something that is no constant, and whose type is known from itself. */
static void typed(gen *g, int t, int depth) {
    const var *v = chance(g, 60) ? some_var(g, t, false) : NULL;
    if (v != NULL) w(g, "%s", v->name);
    else {
        w(g, "id%d(", t);
        expr(g, t, depth - 1);
        w(g, ")");
    }
}

static void record(gen *g, const char *name, int number, const int *fields, int depth) {
    w(g, "%s%d { ", name, number);
    for (int i = 0; i < FIELDS; i++) {
        w(g, "%sf%d: ", i == 0 ? "" : ", ", i);
        expr(g, fields[i], depth - 1);
    }
    w(g, " }");
}

static void composite(gen *g, int t, int depth) {
    const type *x = &g->types[t];
    int n = below(g, depth > 0 ? 4 : 2), chosen;
    switch (x->kind) {
    case LIST:
        w(g, "[");
        for (int i = 0; i < n; i++) {
            if (i > 0) w(g, ", ");
            expr(g, x->a, depth - 1);
        }
        w(g, "]");
        break;
    case MAP:
        w(g, n == 0 ? "[:" : "[");
        for (int i = 0; i < n; i++) {
            if (i > 0) w(g, ", ");
            expr(g, x->a, depth - 1);
            w(g, ": ");
            expr(g, x->b, depth - 1);
        }
        w(g, "]");
        break;
    case TUPLE:
        w(g, "(");
        expr(g, x->a, depth - 1);
        w(g, ", ");
        expr(g, x->b, depth - 1);
        w(g, ")");
        break;
    case RECORD: record(g, "R", x->a, g->records[x->a], depth); break;
    default:
        chosen = below(g, 3);
        if (chosen == 2) w(g, "E");
        else record(g, "R", chosen, g->records[chosen], depth);
    }
}

static void leaf(gen *g, int t, int depth) {
    const var *v = chance(g, 70) ? some_var(g, t, false) : NULL;
    if (v != NULL) w(g, "%s", v->name);
    else if (t < SCALARS) literal(g, t);
    else composite(g, t, depth > 0 ? depth : 0);
}

/* The second operand of an operator: what always traps is an error of the program, so a constant is harmless. */
static void operand(gen *g, int t, const char *op, int depth) {
    bool divides = op[0] == '/' || op[0] == '%', shifts = strcmp(op, "<<") == 0 || strcmp(op, ">>") == 0;
    if ((divides || shifts) && chance(g, 60)) w(g, "%d%s", 1 + below(g, 9), t == U64 ? "u64" : "");
    else typed(g, t, depth - 1);
}

static void operate(gen *g, int t, const char *op, int right, int depth) {
    w(g, "(");
    typed(g, t, depth - 1);
    w(g, " %s ", op);
    operand(g, right, op, depth);
    w(g, ")");
}

static void arithmetic(gen *g, int t, int depth) {
    static const char *const ops[] = {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"};
    if (t == DUR) {
        int n = below(g, 3);
        operate(g, DUR, n == 2 ? "*" : ops[n], n == 2 ? I64 : DUR, depth);
        return;
    }
    if (t == I64 && chance(g, 10)) {
        static const char *const signs[] = {"/", "%", ">>", "&"};
        w(g, "(id0(-%d) %s ", below(g, 100), signs[below(g, 4)]);
        operand(g, I64, "<<", depth);
        w(g, ")");
        return;
    }
    operate(g, t, ops[below(g, 10)], t, depth);
}

static void boolean(gen *g, int depth) {
    static const char *const orders[] = {"<", "<=", ">", ">=", "==", "!="};
    int t = below(g, g->n_types);
    switch (below(g, 4)) {
    case 0: operate(g, BOOL, chance(g, 50) ? "&&" : "||", BOOL, depth); break;
    case 1:
        w(g, "!");
        typed(g, BOOL, depth - 1);
        break;
    default:
        if (t == BOOL || t >= SCALARS) operate(g, t, orders[4 + below(g, 2)], t, depth);
        else operate(g, t, orders[below(g, 6)], t, depth);
    }
}

static void texts(gen *g, int depth) {
    int t = any_type(g);
    switch (below(g, 3)) {
    case 0: operate(g, STR, "+", STR, depth); break;
    case 1:
        w(g, "str(");
        typed(g, t, depth - 1);
        w(g, ")");
        break;
    default:
        w(g, "f\"<{");
        g->holes++;
        typed(g, t, depth - 1);
        w(g, "} {");
        typed(g, any_type(g), depth - 1);
        g->holes--;
        w(g, "}>\"");
    }
}

/* A list or map somewhere that has elements of the type; -1: none. */
static int container(gen *g, int t, int kind) {
    int found = -1, n = 0;
    for (int i = SCALARS; i < g->n_types; i++) {
        const type *x = &g->types[i];
        if (x->kind == kind && (kind == LIST ? x->a : x->b) == t && below(g, ++n) == 0) found = i;
    }
    return found;
}

static void element_of(gen *g, int t, const char *name, int of, int depth) {
    int key = g->types[of].kind == LIST ? I64 : g->types[of].a, mark = g->n_vars;
    bool index = chance(g, 25);
    if (!index) w(g, "(match ");
    if (name != NULL) w(g, "%s", name);
    else typed(g, of, depth - 1);
    w(g, index ? "[" : ".get(");
    expr(g, key, depth - 1);
    if (index) {
        w(g, "]");
        return;
    }
    w(g, ") { None => ");
    leaf(g, t, depth - 1);
    const var *v = add_var(g, t, false);
    w(g, ", %s: %s => ", v->name, name_of(g, t));
    expr(g, t, depth - 1);
    w(g, " })");
    g->n_vars = mark;
}

static void part(gen *g, int t, int depth) {
    const var *v = some_container(g, t);
    int of = v != NULL ? v->type : container(g, t, chance(g, 50) ? LIST : MAP);
    if (of < 0) leaf(g, t, depth);
    else element_of(g, t, v == NULL ? NULL : v->name, of, depth);
}

static void block(gen *g, int t, int depth) {
    int mark = g->n_vars, loops = g->loops;
    g->loops = 0;
    w(g, "{ ");
    stmts(g, 1 + below(g, 2), depth - 1);
    expr(g, t, depth - 1);
    w(g, " }");
    g->n_vars = mark;
    g->loops = loops;
}

static void conditional(gen *g, int t, int depth) {
    w(g, "(if ");
    typed(g, BOOL, depth - 1);
    w(g, " ");
    block(g, t, depth - 1);
    w(g, " else ");
    block(g, t, depth - 1);
    w(g, ")");
}

static void choose(gen *g, int t, int depth) {
    int mark = g->n_vars;
    const var *v;
    w(g, "(match ");
    switch (below(g, 4)) {
    case 0:
        typed(g, I64, depth - 1);
        w(g, " { 0 | 2 => ");
        expr(g, t, depth - 1);
        v = add_var(g, I64, false);
        w(g, ", %s if %s > 5 => ", v->name, v->name);
        expr(g, t, depth - 1);
        break;
    case 1:
        typed(g, STR, depth - 1);
        w(g, " { \"a\" => ");
        expr(g, t, depth - 1);
        break;
    case 2:
        typed(g, BOOL, depth - 1);
        w(g, " { true => ");
        expr(g, t, depth - 1);
        break;
    default: {
        int u = 0;
        while (g->types[u].kind != UNION) u++;
        int r = 0;
        while (g->types[r].kind != RECORD || g->types[r].a != 1) r++;
        typed(g, u, depth - 1);
        v = add_var(g, g->records[0][1], false);
        w(g, " { R0 { f1: %s } => ", v->name);
        expr(g, t, depth - 1);
        g->n_vars = mark;
        v = add_var(g, r, false);
        w(g, ", R1(%s) => ", v->name);
        expr(g, t, depth - 1);
    }
    }
    g->n_vars = mark;
    w(g, ", _ => ");
    expr(g, t, depth - 1);
    w(g, " })");
}

static void call(gen *g, int t, int depth) {
    for (int i = g->pure ? FNS : below(g, FNS + 1); i < g->n_fns; i++) {
        const fn *f = &g->fns[i];
        if (f->result != t) continue;
        bool passes = f->fails && g->propagate && chance(g, 50);
        if (f->fails && !passes) w(g, "(match ");
        w(g, "fun%d(", i);
        for (int k = 0; k < f->n; k++) {
            if (k > 0) w(g, ", ");
            expr(g, f->params[k], depth - 1);
        }
        w(g, passes ? ")?" : ")");
        if (!f->fails || passes) return;
        int mark = g->n_vars;
        const var *v = add_var(g, t, false);
        w(g, " { %s: %s => %s, Bad(_) => ", v->name, name_of(g, t), v->name);
        g->n_vars = mark;
        leaf(g, t, 0);
        w(g, " })");
        return;
    }
    leaf(g, t, depth);
}

/* A list or map: a variable, or if there is none, any type. */
static int some_collection(gen *g) {
    const var *v = chance(g, 80) ? some_container(g, -1) : NULL;
    int t = v != NULL ? v->type : below(g, g->n_types);
    while (g->types[t].kind != LIST && g->types[t].kind != MAP) t = (t + 1) % g->n_types;
    return t;
}

static void measure(gen *g, int depth) {
    int t = chance(g, 20) ? STR : some_collection(g);
    typed(g, t, depth - 1);
    w(g, ".len()");
}

static void membership(gen *g, int depth) {
    int t = some_collection(g);
    typed(g, t, depth - 1);
    w(g, ".has(");
    expr(g, g->types[t].a, depth - 1);
    w(g, ")");
}

/* A map with such keys; -1: there is none. */
static int map_of(const gen *g, int key) {
    for (int i = 0; i < g->n_types; i++) {
        if (g->types[i].kind == MAP && g->types[i].a == key) return i;
    }
    return -1;
}

static void of_its_own(gen *g, int t, int depth) {
    const type *x = &g->types[t];
    switch (x->kind) {
    case I64:
        if (chance(g, 15)) measure(g, depth);
        else if (chance(g, 10)) w(g, "i64("), typed(g, chance(g, 50) ? U64 : DUR, depth - 1), w(g, ")");
        else if (chance(g, 10)) w(g, "(-"), typed(g, I64, depth - 1), w(g, ")");
        else if (chance(g, 10)) typed(g, STR, depth - 1), w(g, "["), expr(g, I64, depth - 1), w(g, "]");
        else if (chance(g, 10)) w(g, "~"), typed(g, I64, depth - 1);
        else arithmetic(g, t, depth);
        break;
    case U64:
        if (chance(g, 20)) w(g, "u64("), typed(g, I64, depth - 1), w(g, ")");
        else arithmetic(g, t, depth);
        break;
    case BOOL:
        if (chance(g, 15)) membership(g, depth);
        else boolean(g, depth);
        break;
    case STR: texts(g, depth); break;
    case DUR: arithmetic(g, t, depth); break;
    case BYTES: operate(g, t, "+", t, depth); break;
    case LIST:
        if (chance(g, 30)) operate(g, t, "+", t, depth);
        else if (chance(g, 30) && map_of(g, x->a) >= 0) typed(g, map_of(g, x->a), depth - 1), w(g, ".keys()");
        else composite(g, t, depth);
        break;
    default: composite(g, t, depth);
    }
}

static void expr(gen *g, int t, int depth) {
    if (depth <= 0 || g->out.n > 20000) {
        leaf(g, t, 0);
        return;
    }
    switch (below(g, 12)) {
    case 0: part(g, t, depth); break;
    case 1:
        w(g, "(");
        block(g, t, depth);
        w(g, ")");
        break;
    case 2: conditional(g, t, depth); break;
    case 3: choose(g, t, depth); break;
    case 4:
    case 5: call(g, t, depth); break;
    case 6:
    case 7: leaf(g, t, depth); break;
    default: of_its_own(g, t, depth);
    }
}

/* ---- statements ---- */

/* A place inside of a variable: its text, and its type as the result. */
static int descend(gen *g, int t, int depth) {
    const type *x = &g->types[t];
    if (depth == 0 || chance(g, 25)) return t;
    switch (x->kind) {
    case LIST:
        w(g, "[");
        if (chance(g, 60)) w(g, "0");
        else expr(g, I64, depth - 1);
        w(g, "]");
        return descend(g, x->a, depth - 1);
    case MAP:
        w(g, "[");
        expr(g, x->a, depth - 1);
        w(g, "]");
        return descend(g, x->b, depth - 1);
    case RECORD: {
        int i = below(g, FIELDS);
        w(g, ".f%d", i);
        return descend(g, g->records[x->a][i], depth - 1);
    }
    default: return t;
    }
}

/* Changes a variable, or something inside of it. */
static void mutate(gen *g, const var *v, int depth) {
    w(g, "%s", v->name);
    int t = descend(g, v->type, 3);
    bool number = t == I64 || t == U64 || t == DUR,
         joins = t == STR || t == BYTES || g->types[t].kind == LIST;
    if (g->types[t].kind == LIST && chance(g, 50)) {
        w(g, ".push(");
        expr(g, g->types[t].a, depth - 1);
        w(g, ");\n");
        return;
    }
    if (g->types[t].kind == MAP && chance(g, 40)) {
        w(g, ".remove(");
        expr(g, g->types[t].a, depth - 1);
        w(g, ");\n");
        return;
    }
    w(g, " %s ",
      number && chance(g, 50)  ? (chance(g, 50) ? "+=" : "-=")
      : joins && chance(g, 50) ? "+="
                               : "=");
    expr(g, t, depth - 1);
    w(g, ";\n");
}

static void assign(gen *g, int depth) {
    const var *v = some_var(g, -1, true);
    if (v != NULL) mutate(g, v, depth);
}

/* A second name for a value, so that it is shared. */
static void alias(gen *g) {
    const var *v = some_container(g, -1);
    if (v == NULL) v = some_var(g, -1, false);
    if (v == NULL) return;
    int t = v->type;
    w(g, "var v%d = %s;\n", g->names, v->name);
    (void)add_var(g, t, true);
}

static void observe(gen *g) {
    if (g->pure || g->n_vars == 0) return;
    w(g, "print(f\"");
    for (int i = 0; i < 3; i++) w(g, "{%s} ", some_var(g, -1, false)->name);
    w(g, "\");\n");
}

static const var *some_mutable(gen *g, int kind) {
    const var *found = NULL;
    int n = 0;
    for (int i = 0; i < g->n_vars; i++) {
        const var *v = &g->vars[i];
        if (v->mut && g->types[v->type].kind == kind && below(g, ++n) == 0) found = v;
    }
    return found;
}

/* A value is taken from a variable, one of the two is changed, and both are looked at: nothing may be shared that shows. */
static void entangle(gen *g) {
    static const int kinds[] = {LIST, LIST, MAP, RECORD};
    const var *at = some_mutable(g, kinds[below(g, 4)]);
    if (g->pure || at == NULL) return;
    const var v = *at;
    const type *x = &g->types[v.type];
    var a = {.type = v.type, .mut = true};
    int mark = g->n_vars, how = below(g, 5), of = x->kind == MAP ? x->a : I64,
        field = chance(g, 60) ? 0 : below(g, FIELDS);
    snprintf(a.name, sizeof a.name, "v%d", g->names++);
    if (x->kind == RECORD) {
        var part = {.type = g->records[x->a][field]};
        w(g, "let R%d { f%d: %s } = %s;\n", x->a, field, a.name, v.name);
        assert_true(snprintf(part.name, sizeof part.name, "%s.f%d", v.name, field) < (int)sizeof part.name);
        mutate(g, &part, 1);
    } else if (how == 0 && x->kind == LIST) {
        w(g, "for %s in %s {\n", a.name, v.name);
        mutate(g, &v, 1);
        w(g, "print(f\"{%s} {%s}\");\n}\n", a.name, v.name);
        return;
    } else if (how == 1) {
        bool has = chance(g, 50), index = !has && chance(g, 50);
        w(g, "let %s = %s%s{ ", a.name, v.name, has ? ".has(" : index ? "[" : ".get(");
        mutate(g, &v, 1);
        if (!has && x->kind == LIST) w(g, "0");
        else expr(g, has && x->kind == LIST ? x->a : of, 0);
        w(g, index ? " }];\n" : " });\n");
    } else {
        w(g, how == 2 && x->kind == LIST ? "var %s = %s + %s;\n" : "var %s = %s;\n", a.name, v.name, v.name);
        mutate(g, chance(g, 70) ? &a : &v, 1);
        mutate(g, chance(g, 50) ? &a : &v, 1);
    }
    w(g, "print(f\"{%s} {%s}\");\n", a.name, v.name);
    g->n_vars = mark;
}

static void declare(gen *g, int depth) {
    int t = any_type(g);
    bool mut = chance(g, 70);
    w(g, "%s v%d: %s = ", mut ? "var" : "let", g->names, name_of(g, t));
    int name = g->names++;
    expr(g, t, depth - 1);
    w(g, ";\n");
    var *v = add_var(g, t, mut);
    snprintf(v->name, sizeof v->name, "v%d", name);
}

static void body(gen *g, int depth) {
    int mark = g->n_vars;
    w(g, "{\n");
    g->loops++;
    stmts(g, 1 + below(g, 2), depth - 1);
    if (chance(g, 20)) {
        w(g, "if ");
        typed(g, BOOL, 0);
        w(g, " { %s; }\n", chance(g, 50) ? "break" : "continue");
    }
    g->loops--;
    w(g, "}\n");
    g->n_vars = mark;
}

static void repeat(gen *g, int depth) {
    int mark = g->n_vars, t = some_collection(g);
    switch (below(g, 4)) {
    case 0: {
        const var *v = add_var(g, I64, false);
        w(g, "for %s in 0..%d ", v->name, below(g, 4));
        break;
    }
    case 1: {
        int name = g->names++;
        w(g, "var v%d = 0;\nwhile v%d < %d {\nv%d += 1;\n", name, name, below(g, 4), name);
        body(g, depth);
        w(g, "}\n");
        g->n_vars = mark;
        return;
    }
    default: {
        const type *x = &g->types[t];
        bool map = x->kind == MAP;
        int from = g->names;
        w(g, map ? "for (v%d, v%d) in " : "for v%d in ", from, from + 1);
        g->names += 2;
        typed(g, t, depth - 1);
        w(g, " ");
        snprintf(add_var(g, x->a, false)->name, sizeof g->vars->name, "v%d", from);
        if (map) snprintf(add_var(g, x->b, false)->name, sizeof g->vars->name, "v%d", from + 1);
    }
    }
    body(g, depth);
    g->n_vars = mark;
}

static void stmt(gen *g, int depth) {
    int mark = g->n_vars;
    if (depth <= 0 || g->out.n > 20000) {
        assign(g, 1);
        return;
    }
    switch (below(g, 14)) {
    case 0:
    case 1: declare(g, depth); return;
    case 2: alias(g); return;
    case 3: observe(g); return;
    case 4:
    case 5:
    case 6: entangle(g); return;
    case 12: assign(g, depth); return;
    case 7:
        w(g, "if ");
        typed(g, BOOL, depth - 1);
        w(g, " {\n");
        stmts(g, 1 + below(g, 2), depth - 1);
        w(g, "}\n");
        g->n_vars = mark;
        return;
    case 8:
    case 9: repeat(g, depth); return;
    case 10:
        w(g, "assert(");
        typed(g, BOOL, depth - 1);
        w(g, " || id%d(true), \"never\");\n", BOOL);
        return;
    default: assign(g, depth);
    }
}

static void stmts(gen *g, int n, int depth) {
    while (n-- > 0) stmt(g, depth);
}

/* ---- functions ---- */

static void declare_fn(gen *g) {
    fn f = {.result = any_type(g), .n = below(g, 4)};
    f.fails = g->types[f.result].kind != UNION && chance(g, 30);
    g->n_vars = 0;
    g->propagate = f.fails;
    w(g, "fn fun%d(", g->n_fns);
    for (int i = 0; i < f.n; i++) {
        f.params[i] = any_type(g);
        const var *v = add_var(g, f.params[i], false);
        w(g, "%s%s: %s", i == 0 ? "" : ", ", v->name, name_of(g, f.params[i]));
    }
    w(g, ") -> %s%s {\n", name_of(g, f.result), f.fails ? " | Bad" : "");
    stmts(g, 2 + below(g, 3), 3);
    if (f.fails) {
        w(g, "if ");
        typed(g, BOOL, 1);
        w(g, " { return Bad { why: ");
        expr(g, I64, 1);
        w(g, " }; }\n");
    }
    observe(g);
    expr(g, f.result, 3);
    w(g, "\n}\n");
    g->fns[g->n_fns++] = f;
    g->propagate = false;
}

/* ---- machines ---- */

/* What the body of a handler does to the world. `self`: the machine has a peer and an oracle. */
static void effects(gen *g, int machine) {
    int m = below(g, MESSAGES);
    switch (below(g, 9)) {
    case 7:
        w(g, "%s(emit Request(self.oracle, P::Ask { q: \"\", n: ", chance(g, 50) ? "forget" : "cancel");
        expr(g, I64, 1);
        w(g, " })?);\n");
        break;
    case 8:
        w(g, "if ");
        typed(g, BOOL, 2);
        w(g, " { %s }\n", chance(g, 20) ? "stop(self);" : "trap(\"by chance\");");
        break;
    case 0:
        if (machine + 1 < MACHINES)
            w(g, "send(self.peer, "), record(g, "G", m, g->messages[m], 2), w(g, ")?;\n");
        break;
    case 1:
        w(g, "match send(self, ");
        record(g, "G", m, g->messages[m], 1);
        w(g, ") { () => print(\"sent\"), x: MachineError => print(f\"{x}\") }\n");
        break;
    case 2:
        w(g, "request(self.oracle, P::Ask { q: ");
        expr(g, STR, 2);
        w(g, ", n: ");
        expr(g, I64, 2);
        w(g, " })?;\n");
        break;
    case 3: w(g, "publish("), record(g, "G", m, g->messages[m], 1), w(g, ", \"k%d\");\n", below(g, 2)); break;
    case 4:
        w(g, "%s(G%d, \"k%d\");\n", chance(g, 60) ? "subscribe" : "unsubscribe", below(g, MESSAGES),
          below(g, 2));
        break;
    default:
        w(g, "print(f\"{self} {now()} {");
        g->holes++;
        typed(g, any_type(g), 2);
        g->holes--;
        w(g, "}\");\n");
    }
}

static void to_state(gen *g, int machine, int state, int own) {
    (void)machine;
    w(g, "S%d", state);
    if (state == 0) return;
    w(g, " { own: ");
    expr(g, own, 2);
    w(g, " }");
}

static void handler_body(gen *g, int machine, int own, int self_type, int targets) {
    w(g, "{\n");
    g->propagate = true;
    for (int n = 1 + below(g, 3); n > 0; n--) {
        stmts(g, 2, 3);
        if (chance(g, 50)) {
            w(g, "var v%d = self.peek();\n", g->names);
            mutate(g, add_var(g, self_type, true), 1);
        }
        observe(g);
        effects(g, machine);
    }
    g->propagate = false;
    if (targets >= 0 && chance(g, 60)) {
        w(g, "if ");
        typed(g, BOOL, 2);
        w(g, " { return ");
        to_state(g, machine, targets, own);
        w(g, "; }\n");
    }
    w(g, "}\n");
}

/* The fields of self, as variables that may be assigned. */
static void use_fields(gen *g, const int *fields, int n, int own) {
    g->n_vars = 0;
    for (int i = 0; i < n; i++)
        snprintf(add_var(g, fields[i], true)->name, sizeof g->vars->name, "self.x%d", i);
    if (own >= 0) snprintf(add_var(g, own, true)->name, sizeof g->vars->name, "self.own");
}

static void on_message(gen *g, int machine, const char *head, int payload, const int *fields, int own_here,
                       int own) {
    int target = below(g, STATES + 1) - 1;
    use_fields(g, fields, 3, own_here);
    w(g, "on %s", head);
    if (payload >= 0) {
        int at = g->names++;
        w(g, "(v%d)", at);
        for (int i = 0; i < FIELDS; i++)
            snprintf(add_var(g, g->messages[payload][i], false)->name, sizeof g->vars->name, "v%d.f%d", at,
                     i);
    }
    w(g, " -> stay | MachineError | Bad");
    if (target >= 0) w(g, " | S%d", target);
    w(g, " ");
    handler_body(g, machine, own, fields[0], target);
}

static void declare_state(gen *g, int machine, int state, const int *fields, int own) {
    w(g, "state S%d {\n", state);
    if (state > 0) w(g, "fields { own: %s }\n", name_of(g, own));
    use_fields(g, fields, 3, state > 0 ? own : -1);
    if (chance(g, 50)) {
        w(g, "entry {\n");
        stmts(g, 1, 2);
        w(g, "print(f\"{self} enters S%d\");\n}\n", state);
    }
    if (chance(g, 30)) {
        use_fields(g, fields, 3, state > 0 ? own : -1);
        w(g, "exit {\n");
        stmts(g, 1, 2);
        w(g, "}\n");
    }
    for (int m = 0; m < MESSAGES; m++) {
        char head[16];
        snprintf(head, sizeof head, "G%d", m);
        if (chance(g, 70)) on_message(g, machine, head, m, fields, state > 0 ? own : -1, own);
        else if (chance(g, 40)) w(g, "%s G%d;\n", chance(g, 50) ? "defer" : "ignore", m);
    }
    if (chance(g, 60)) on_message(g, machine, "P::Yes", -1, fields, state > 0 ? own : -1, own);
    if (chance(g, 30)) {
        use_fields(g, fields, 3, -1);
        w(g, "after %dms -> S0 | MachineError | Bad {\n", 1 + below(g, 5));
        g->propagate = true;
        stmts(g, 1, 2);
        g->propagate = false;
        effects(g, machine);
        w(g, "S0\n}\n");
    }
    w(g, "}\n");
}

static void declare_machine(gen *g, int machine) {
    int fields[3] = {any_type(g), any_type(g), I64}, own = any_type(g);
    w(g, "typestate M%d {\nfields { oracle: Machine<P::B>", machine);
    if (machine + 1 < MACHINES) w(g, ", peer: Machine<M%d>", machine + 1);
    for (int i = 0; i < 3; i++) w(g, ", x%d: %s", i, name_of(g, fields[i]));
    w(g, " }\nfn new(oracle: Machine<P::B>");
    if (machine + 1 < MACHINES) w(g, ", peer: Machine<M%d>", machine + 1);
    g->n_vars = 0;
    g->pure = true;
    w(g, ") -> S0 {\nS0 { oracle%s", machine + 1 < MACHINES ? ", peer" : "");
    for (int i = 0; i < 3; i++) {
        w(g, ", x%d: ", i);
        expr(g, fields[i], 2);
    }
    w(g, " }\n}\n");
    g->pure = false;
    w(g, "fn peek() -> %s { self.x0 }\n", name_of(g, fields[0]));
    for (int s = 0; s < STATES; s++) declare_state(g, machine, s, fields, own);
    on_message(g, machine, "P::No", -1, fields, -1, own);
    on_message(g, machine, "G0", 0, fields, -1, own);
    for (int m = 1; m < MESSAGES; m++) w(g, "on G%d(m) { print(f\"{m.f0}\"); }\n", m);
    w(g, "on RequestFailed(f) { print(f\"{f.why}\"); }\n");
    if (chance(g, 50)) w(g, "invariant self.x2 < 1000;\n");
    if (chance(g, 80)) w(g, "fault -> S0;\n");
    if (chance(g, 50)) w(g, "mailbox %d;\n", 1 + below(g, 4));
    w(g, "}\n");
}

static void declare_oracle(gen *g) {
    bool explicit = chance(g, 40);
    w(g,
      "protocol P {\nmsg Ask = { q: string, n: i64 }\nmsg Yes\nmsg No\n"
      "req A -> B: Ask => Yes | No%s\nrole A;\nrole B { state On { on Ask@A { effects: [reply Yes | No] } } "
      "}\n}\n",
      chance(g, 50) ? " within 3ms" : "");
    w(g,
      "typestate B : P::B {\nfields { seen: [string] }\nfn new() -> On { On { seen: [] } }\nstate On {\n"
      "on Ask(a%s) -> stay | Bad {\nself.seen.push(a.q);\n",
      explicit ? ", cap: ReplyCap<Yes | No>" : "");
    g->n_vars = 0;
    snprintf(add_var(g, STR, false)->name, sizeof g->vars->name, "a.q");
    snprintf(add_var(g, I64, false)->name, sizeof g->vars->name, "a.n");
    g->propagate = true;
    stmts(g, 2, 3);
    w(g, "if ");
    typed(g, BOOL, 2);
    w(g, explicit ? " { reply(cap, Yes); } else { reply(cap, No); }\n"
                  : " { reply(Yes); } else { reply(No); }\n");
    w(g, "}\n}\n%s}\n", chance(g, 50) ? "fault -> On;\n" : "");
    g->propagate = false;
}

/* A typestate whose values are used directly. */
static void declare_valve(gen *g) {
    int t = any_type(g);
    w(g, "typestate V {\nfields { x0: %s, n: i64 }\nfn new(x0: %s) -> Shut { Shut { x0, n: 0 } }\n",
      name_of(g, t), name_of(g, t));
    w(g, "fn count() -> i64 { self.n * 2 }\nstate Shut {\nfn open(by: i64) -> Open {\n");
    g->n_vars = 0;
    snprintf(add_var(g, t, true)->name, sizeof g->vars->name, "self.x0");
    snprintf(add_var(g, I64, true)->name, sizeof g->vars->name, "self.n");
    snprintf(add_var(g, I64, false)->name, sizeof g->vars->name, "by");
    stmts(g, 2, 2);
    w(g, "self.n += by;\nOpen { by }\n}\n}\n@final state Open {\nfields { by: i64 }\nfn read() -> string "
         "{ f\"{self.x0} {self.by} {self.count()}\" }\n}\n}\n");
    w(g, "fn valve(by: i64) -> string {\nlet v = V::new(");
    g->n_vars = 0;
    expr(g, t, 2);
    w(g, ");\nlet c = v.count();\nlet o = v.open(by);\nf\"{c} {o.read()} {o.count()}\"\n}\n");
}

static void declare_main(gen *g) {
    w(g, "fn main() -> () | MachineError {\nlet oracle = B::spawn();\nstart(oracle);\n");
    for (int i = MACHINES - 1; i >= 0; i--) {
        w(g, i + 1 < MACHINES ? "let m%d = M%d::spawn(oracle, m%d);\n" : "let m%d = M%d::spawn(oracle);\n", i,
          i, i + 1);
        w(g, "start(m%d);\n", i);
    }
    g->n_vars = 0;
    for (int i = 0; i < 6; i++) {
        int m = below(g, MESSAGES);
        w(g, "match send(m%d, ", below(g, MACHINES));
        record(g, "G", m, g->messages[m], 2);
        w(g, ") { () => {}, x: MachineError => print(f\"{x}\") }\n");
    }
    w(g, "print(valve(3));\n");
    stmts(g, 6, 4);
    observe(g);
    w(g, "}\n");
}

lang_text generate(uint64_t seed) {
    gen g = {.seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1, .out = lang_empty()};
    for (int i = 0; i < 8; i++) (void)next(&g);
    declare_types(&g);
    for (int i = 0; i < FNS; i++) declare_fn(&g);
    declare_valve(&g);
    declare_oracle(&g);
    for (int i = 0; i < MACHINES; i++) declare_machine(&g, i);
    declare_main(&g);
    return g.out;
}
