/* Runs the typed IR as lang/ir_op.def says it: from left to right, one expression at a time. */
#include "tests/lang/reference/reference.h"

#include "lang/check.h"

typedef enum way { ON, LEAVE, BREAK, CONTINUE, TRAPPED } way;

/* A call of a function. */
typedef struct frame {
    reference *r;
    const rv **slots;
    const rv **self;  /* where the state is that self stands for; NULL: there is none */
    const rv *result; /* set by who returns LEAVE */
} frame;

static way eval(frame *f, const ebb__ir *x, const rv **out);

static way trap(frame *f, const ebb__ir *x, ebb__trap_kind kind) {
    (void)ebb__run_trap(f->r->run, kind, x->span);
    return TRAPPED;
}

static way done(frame *f, const ebb__ir *x, bool ok) {
    if (ok) return ON;
    ebb__trap *t = &f->r->run->trap; /* what was asked of the adapter traps here */
    if (t->span.n == 0 && t->span.at == 0) t->span = x->span;
    return TRAPPED;
}

static way spend(frame *f, const ebb__ir *x) {
    return --f->r->run->budget < 0 ? trap(f, x, EBB__TRAP_BUDGET) : ON;
}

static uint8_t kind_of(const frame *f, uint32_t type) {
    return f->r->shapes[type].kind;
}

static const rv *word(frame *f, uint32_t type, uint64_t value) {
    return rv_word(f->r, type, value);
}

static bool is_a(const frame *f, uint32_t type, uint32_t member) {
    const ebb__shape *s = &f->r->shapes[member];
    bool found = type == member;
    for (uint32_t i = 0; s->kind == EBB__TY_UNION && i < s->n; i++) found = found || s->of[i] == type;
    return found;
}

static ebb__object *object(frame *f, uint32_t type, const rv *x) {
    ebb__value v = {0};
    return rv_to(f->r, type, x, &v) ? v.ref : NULL;
}

/* ---- patterns: true if the value matches ---- */

static bool matches(frame *f, const ebb__ir_pattern *p, const rv *x) {
    const rv *wanted;
    switch (p->op) {
    case EBB__PAT_BIND: f->slots[p->slot] = x; return true;
    case EBB__PAT_IS: return is_a(f, x->type, p->member) && (p->n == 0 || matches(f, p->of[0], x));
    case EBB__PAT_EQUAL: return eval(f, p->value, &wanted) == ON && rv_order(f->r, x, wanted) == 0;
    case EBB__PAT_TUPLE:
    case EBB__PAT_RECORD:
        for (uint32_t i = 0; i < p->n; i++) {
            if (!matches(f, p->of[i], x->of[i])) return false;
        }
        return true;
    default: return true;
    }
}

/* ---- numbers ---- */

typedef __int128 wide;

static bool fits(bool u, wide x) {
    return u ? x >= 0 && x <= (wide)UINT64_MAX : x >= INT64_MIN && x <= INT64_MAX;
}

static way arithmetic(frame *f, const ebb__ir *x, const rv *a, const rv *b, const rv **out) {
    bool u = kind_of(f, a->type) == EBB__TY_U64;
    wide l = u ? (wide)a->word : (wide)(int64_t)a->word, r = u ? (wide)b->word : (wide)(int64_t)b->word,
         y = 0;
    if ((x->op == EBB__OP_SHL || x->op == EBB__OP_SHR) && b->word > 63) return trap(f, x, EBB__TRAP_SHIFT);
    if (x->op == EBB__OP_DIV || x->op == EBB__OP_REM) {
        if (r == 0 || !fits(u, l / r)) return trap(f, x, EBB__TRAP_DIVIDE);
    }
    switch (x->op) {
    case EBB__OP_ADD: y = l + r; break;
    case EBB__OP_SUB: y = l - r; break;
    case EBB__OP_MUL: y = l * r; break;
    case EBB__OP_DIV: y = l / r; break;
    case EBB__OP_REM: y = l % r; break;
    case EBB__OP_AND: *out = word(f, x->type, a->word & b->word); return ON;
    case EBB__OP_OR: *out = word(f, x->type, a->word | b->word); return ON;
    case EBB__OP_XOR: *out = word(f, x->type, a->word ^ b->word); return ON;
    case EBB__OP_SHL: *out = word(f, x->type, a->word << b->word); return ON;
    default: *out = word(f, x->type, (uint64_t)(l >> b->word)); return ON;
    }
    if (!fits(u, y)) return trap(f, x, EBB__TRAP_OVERFLOW);
    *out = word(f, x->type, (uint64_t)y);
    return ON;
}

static const rv *joined(frame *f, const rv *a, const rv *b) {
    if (kind_of(f, a->type) == EBB__TY_LIST) {
        for (uint32_t i = 0; i < b->n; i++) a = rv_push(f->r, a, b->of[i]);
        return a;
    }
    uint8_t *bytes = rv_alloc(f->r, (size_t)a->n + b->n + 1);
    if (a->n > 0) memcpy(bytes, a->bytes, a->n);
    if (b->n > 0) memcpy(bytes + a->n, b->bytes, b->n);
    return rv_bytes(f->r, a->type, bytes, (size_t)a->n + b->n);
}

static way binary(frame *f, const ebb__ir *x, const rv **out) {
    const rv *a, *b;
    way w = eval(f, x->args[0], &a);
    if (w == ON) w = eval(f, x->args[1], &b);
    if (w != ON) return w;
    uint8_t kind = kind_of(f, a->type);
    if (x->op >= EBB__OP_EQ && x->op <= EBB__OP_GE) {
        int o = rv_order(f->r, a, b);
        bool yes = x->op == EBB__OP_EQ   ? o == 0
                   : x->op == EBB__OP_NE ? o != 0
                   : x->op == EBB__OP_LT ? o < 0
                   : x->op == EBB__OP_LE ? o <= 0
                   : x->op == EBB__OP_GT ? o > 0
                                         : o >= 0;
        *out = word(f, EBB__TY_BOOL, yes);
        return ON;
    }
    if (kind != EBB__TY_LIST && kind != EBB__TY_STRING && kind != EBB__TY_BYTES)
        return arithmetic(f, x, a, b, out);
    *out = joined(f, a, b);
    return ON;
}

static way unary(frame *f, const ebb__ir *x, const rv **out) {
    const rv *a;
    way w = eval(f, x->args[0], &a);
    if (w != ON) return w;
    uint64_t y = a->word;
    switch (x->op) {
    case EBB__OP_NEG:
        if ((int64_t)y == INT64_MIN) return trap(f, x, EBB__TRAP_OVERFLOW);
        y = 0 - y;
        break;
    case EBB__OP_NOT: y = !y; break;
    case EBB__OP_BIT_NOT: y = ~y; break;
    default: /* of a number that may be too large for an i64, or negative */
        if (kind_of(f, a->type) != EBB__TY_DURATION && (int64_t)y < 0) return trap(f, x, EBB__TRAP_CONVERT);
    }
    *out = word(f, x->type, y);
    return ON;
}

/* ---- places ---- */

enum { KEYS = 32 };

typedef struct place {
    const ebb__ir *at[KEYS];
    const rv *key[KEYS];
    uint32_t n;
} place;

static way eval_keys(frame *f, const ebb__ir *x, place *p) {
    if (x->op != EBB__OP_FIELD && x->op != EBB__OP_INDEX) return ON;
    way w = eval_keys(f, x->args[0], p);
    if (w != ON || x->op == EBB__OP_FIELD) return w;
    assert_true(p->n < KEYS);
    p->at[p->n] = x;
    return eval(f, x->args[1], &p->key[p->n++]);
}

static const rv *key_at(const place *p, const ebb__ir *x) {
    uint32_t i = 0;
    while (p->at[i] != x) i++;
    return p->key[i];
}

/* Which part of a list or map an element is. */
static way locate(frame *f, const ebb__ir *x, const rv *of, const rv *key, uint32_t *at) {
    if (kind_of(f, of->type) == EBB__TY_MAP) {
        if (!rv_find(f->r, of, key, at)) return trap(f, x, EBB__TRAP_INDEX);
        ++*at;
        return ON;
    }
    if (key->word >= of->n) return trap(f, x, EBB__TRAP_INDEX);
    *at = (uint32_t)key->word;
    return ON;
}

static way read_place(frame *f, const ebb__ir *x, const place *p, const rv **out) {
    const rv *of;
    uint32_t at = x->a;
    if (x->op == EBB__OP_LOCAL) *out = f->slots[x->a];
    else if (x->op == EBB__OP_SELF_FIELD) *out = (*f->self)->of[x->a];
    else {
        way w = read_place(f, x->args[0], p, &of);
        if (w == ON && x->op == EBB__OP_INDEX) w = locate(f, x, of, key_at(p, x), &at);
        if (w != ON) return w;
        *out = of->of[at];
    }
    return ON;
}

static way write_place(frame *f, const ebb__ir *x, const place *p, const rv *value) {
    const rv *of;
    uint32_t at = x->a;
    if (x->op == EBB__OP_LOCAL) {
        f->slots[x->a] = value;
        return ON;
    }
    if (x->op == EBB__OP_SELF_FIELD) {
        *f->self = rv_with(f->r, *f->self, x->a, value);
        return ON;
    }
    way w = read_place(f, x->args[0], p, &of);
    if (w != ON) return w;
    if (x->op == EBB__OP_INDEX && kind_of(f, of->type) == EBB__TY_MAP)
        return write_place(f, x->args[0], p, rv_put(f->r, of, key_at(p, x), value));
    if (x->op == EBB__OP_INDEX) w = locate(f, x, of, key_at(p, x), &at);
    return w == ON ? write_place(f, x->args[0], p, rv_with(f->r, of, at, value)) : w;
}

/* SET_PLACE, PUSH, REMOVE. */
static way change(frame *f, const ebb__ir *x, const rv **out) {
    place p = {.n = 0};
    const rv *value, *old;
    uint32_t at;
    bool found = true;
    way w = eval_keys(f, x->args[0], &p);
    if (w == ON) w = eval(f, x->args[1], &value);
    if (w == ON && x->op != EBB__OP_SET_PLACE) w = read_place(f, x->args[0], &p, &old);
    if (w != ON) return w;
    if (x->op == EBB__OP_PUSH) value = rv_push(f->r, old, value);
    if (x->op == EBB__OP_REMOVE) {
        found = rv_find(f->r, old, value, &at);
        value = found ? rv_remove(f->r, old, at) : old;
    }
    *out = word(f, x->type, x->op == EBB__OP_REMOVE && found);
    return write_place(f, x->args[0], &p, value);
}

/* ---- lists, maps, records ---- */

static way eval_all(frame *f, const ebb__ir *x, const rv **of) {
    for (uint32_t i = 0; i < x->n; i++) {
        way w = eval(f, x->args[i], &of[i]);
        if (w != ON) return w;
    }
    return ON;
}

static way make(frame *f, const ebb__ir *x, const rv **out) {
    const rv **of = rv_alloc(f->r, (x->n + 1) * sizeof *of);
    way w = eval_all(f, x, of);
    if (w != ON) return w;
    *out = rv_of(f->r, x->type, of, x->op == EBB__OP_MAP ? 0 : x->n);
    for (uint32_t i = 0; x->op == EBB__OP_MAP && i < x->n; i += 2)
        *out = rv_put(f->r, *out, of[i], of[i + 1]);
    return ON;
}

static bool contains(frame *f, const rv *of, const rv *x) {
    uint32_t at;
    if (kind_of(f, of->type) == EBB__TY_MAP) return rv_find(f->r, of, x, &at);
    for (uint32_t i = 0; i < of->n; i++) {
        if (rv_order(f->r, of->of[i], x) == 0) return true;
    }
    return false;
}

static way element(frame *f, const ebb__ir *x, const rv **out) {
    const rv *of, *key;
    uint32_t at;
    way w = eval(f, x->args[0], &of);
    if (w == ON) w = eval(f, x->args[1], &key);
    if (w != ON) return w;
    bool bytes = of->bytes != NULL, map = kind_of(f, of->type) == EBB__TY_MAP;
    if (x->op == EBB__OP_HAS) {
        *out = word(f, EBB__TY_BOOL, contains(f, of, key));
        return ON;
    }
    if (x->op == EBB__OP_GET) {
        bool there = map ? rv_find(f->r, of, key, &at) : key->word < of->n;
        *out = !there ? rv_of(f->r, f->r->none, NULL, 0) : of->of[map ? at + 1 : key->word];
        return ON;
    }
    if ((w = locate(f, x, of, key, &at)) != ON) return w;
    *out = bytes ? word(f, x->type, of->bytes[at]) : of->of[at];
    return ON;
}

static way keys(frame *f, const ebb__ir *x, const rv **out) {
    const rv *of, *list = rv_of(f->r, x->type, NULL, 0);
    way w = eval(f, x->args[0], &of);
    for (uint32_t i = 0; w == ON && i < of->n; i += 2) list = rv_push(f->r, list, of->of[i]);
    *out = list;
    return w;
}

static way len(frame *f, const ebb__ir *x, const rv **out) {
    const rv *of;
    way w = eval(f, x->args[0], &of);
    if (w == ON) *out = word(f, x->type, kind_of(f, of->type) == EBB__TY_MAP ? of->n / 2 : of->n);
    return w;
}

static way text(frame *f, const ebb__ir *x, const rv **out) {
    const rv *all = rv_bytes(f->r, EBB__TY_STRING, NULL, 0), *part;
    for (uint32_t i = 0; i < x->n; i++) {
        way w = eval(f, x->args[i], &part);
        if (w != ON) return w;
        all = joined(f, all, rv_text(f->r, part));
    }
    *out = all;
    return ON;
}

/* ---- branches and loops ---- */

static way block(frame *f, const ebb__ir *x, const rv **out) {
    const rv *last = word(f, EBB__TY_UNIT, 0);
    for (uint32_t i = 0; i < x->n; i++) {
        way w = eval(f, x->args[i], &last);
        if (w != ON) return w;
    }
    *out = x->flags & EBB__IR_DISCARD || x->n == 0 ? word(f, EBB__TY_UNIT, 0) : last;
    return ON;
}

static way branch(frame *f, const ebb__ir *x, const rv **out) {
    const rv *holds;
    uint32_t i = 0;
    for (; i + 1 < x->n; i += 2) {
        way w = eval(f, x->args[i], &holds);
        if (w != ON) return w;
        if (!holds->word) continue;
        w = eval(f, x->args[i + 1], out);
        if (w == ON && x->n % 2 == 0) *out = word(f, EBB__TY_UNIT, 0);
        return w;
    }
    *out = word(f, EBB__TY_UNIT, 0);
    return i < x->n ? eval(f, x->args[i], out) : ON;
}

static way match(frame *f, const ebb__ir *x, const rv **out) {
    const rv *value, *guard;
    way w = eval(f, x->args[0], &value);
    if (w != ON) return w;
    f->slots[x->a] = value;
    for (uint32_t i = 1; i < x->n; i++) {
        const ebb__ir *arm = x->args[i];
        if (!matches(f, arm->pattern, value)) continue;
        if (arm->n == 2) {
            if ((w = eval(f, arm->args[1], &guard)) != ON) return w;
            if (!guard->word) continue;
        }
        return eval(f, arm->args[0], out);
    }
    fail_msg("no arm matches");
    return TRAPPED;
}

static way let(frame *f, const ebb__ir *x, const rv **out) {
    const rv *value;
    way w = eval(f, x->args[0], &value);
    if (w != ON || matches(f, x->pattern, value)) return w;
    assert_int_equal(x->n, 2);
    return eval(f, x->args[1], out);
}

/* The end of a turn: ON goes on with the next, BREAK ends the loop, anything else leaves. */
static way turn(frame *f, const ebb__ir *x, const ebb__ir *body, const rv **out) {
    way w = eval(f, body, out);
    return w == ON || w == CONTINUE ? spend(f, x) : w;
}

static way loop(frame *f, const ebb__ir *x, const rv **out) {
    const rv *holds, *from, *to;
    way w = ON;
    if (x->op == EBB__OP_WHILE) {
        while ((w = eval(f, x->args[0], &holds)) == ON && holds->word) {
            if ((w = turn(f, x, x->args[1], out)) != ON) break;
        }
    } else if (x->op == EBB__OP_FOR_RANGE) {
        w = eval(f, x->args[0], &from);
        if (w == ON) w = eval(f, x->args[1], &to);
        bool u = w == ON && kind_of(f, from->type) == EBB__TY_U64;
        for (uint64_t i = w == ON ? from->word : 0; w == ON; i++) {
            if (u ? i >= to->word : (int64_t)i >= (int64_t)to->word) break;
            f->slots[x->a] = word(f, from->type, i);
            w = turn(f, x, x->args[2], out);
        }
    } else {
        w = eval(f, x->args[0], &from);
        bool map = w == ON && kind_of(f, from->type) == EBB__TY_MAP;
        for (uint32_t i = 0; w == ON && i < from->n; i += 1 + map) {
            const rv *next = map ? rv_of(f->r, x->pattern->type, &from->of[i], 2) : from->of[i];
            if (!matches(f, x->pattern, next)) fail_msg("an element does not match");
            w = turn(f, x, x->args[1], out);
        }
    }
    *out = word(f, EBB__TY_UNIT, 0);
    return w == BREAK ? ON : w;
}

/* ---- calls ---- */

static way run_fn(reference *r, const ebb__ir_fn *fn, const rv **self, const rv *const *args, uint32_t n,
                  const rv **out) {
    frame f = {r, rv_alloc(r, (fn->n_slots + 1) * sizeof *f.slots), self, NULL};
    const rv *value;
    for (uint32_t i = 0; i < n; i++) f.slots[i] = args[i];
    way w = eval(&f, fn->body, &value);
    *out = f.result;
    if (w != LEAVE && w != TRAPPED) fail_msg("%s does not return", fn->name);
    return w;
}

/* The receiver of a method is where it stands, so that the method changes it. */
static way call(frame *f, const ebb__ir *x, const rv **out) {
    const rv **args = rv_alloc(f->r, (x->n + 1) * sizeof *args), **self = NULL;
    const ebb__ir *first = x->n > 0 ? x->args[0] : NULL;
    const rv *temporary = NULL;
    uint32_t i = 0;
    way w = ON;
    if (x->fn->kind == EBB__FN_METHOD && first != NULL) {
        i = 1;
        self = first->op == EBB__OP_SELF    ? f->self
               : first->op == EBB__OP_LOCAL ? &f->slots[first->a]
                                            : &temporary;
        if (self == &temporary) w = eval(f, first, &temporary);
        if (w != ON) return w;
        args[0] = *self;
    }
    for (; i < x->n; i++) {
        if ((w = eval(f, x->args[i], &args[i])) != ON) return w;
    }
    if ((w = spend(f, x)) != ON) return w;
    if (f->r->depth + 1 == EBB__CALL_DEPTH) return trap(f, x, EBB__TRAP_DEPTH);
    f->r->depth++;
    w = run_fn(f->r, x->fn, self, args, x->n, out);
    f->r->depth--;
    return w == LEAVE ? ON : w;
}

static way try(frame *f, const ebb__ir *x, const rv **out) {
    way w = eval(f, x->args[0], out);
    if (w != ON || !f->r->shapes[(*out)->type].is_error) return w;
    f->result = *out;
    return LEAVE;
}

/* ---- effects ---- */

/* The type of the token that a request gives. */
static uint32_t token(const frame *f, uint32_t type) {
    const ebb__shape *s = &f->r->shapes[type];
    uint32_t i = 0;
    while (f->r->shapes[s->of[i]].is_error) i++;
    return s->of[i];
}

static way effect(frame *f, const ebb__ir *x, const rv **out) {
    ebb__run *run = f->r->run;
    const rv *a[2] = {NULL, NULL};
    ebb__object *object_of[2] = {NULL, NULL}, *result = NULL;
    uint64_t machine = 0;
    way w = ON;
    for (uint32_t i = 0; w == ON && i < x->n; i++) w = eval(f, x->args[i], &a[i]);
    if (w != ON) return w;
    for (uint32_t i = 0; i < x->n; i++) {
        if (!f->r->shapes[a[i]->type].is_ref) continue;
        object_of[i] = object(f, a[i]->type, a[i]);
        if (object_of[i] == NULL) return done(f, x, false);
    }
    bool ok = true;
    *out = word(f, EBB__TY_UNIT, 0);
    switch (x->op) {
    case EBB__OP_SEND: ok = ebb__do_send(run, a[0]->word, object_of[1], &result); break;
    case EBB__OP_REQUEST:
    case EBB__OP_EMIT_REQUEST:
        ok = ebb__do_request(run, a[0]->word, object_of[1], x->a, token(f, x->type), &result);
        break;
    case EBB__OP_REPLY: ok = ebb__do_reply(run, 0, object_of[0]); break;
    case EBB__OP_REPLY_TO: ok = ebb__do_reply(run, a[0]->word, object_of[1]); break;
    case EBB__OP_FORGET:
    case EBB__OP_CANCEL: ok = ebb__do_forget(run, a[0]->word); break;
    case EBB__OP_SPAWN:
        ok = ebb__do_spawn(run, object_of[0], &machine);
        *out = word(f, x->type, machine);
        break;
    case EBB__OP_START: ok = ebb__do_start(run, a[0]->word); break;
    case EBB__OP_STOP: ok = ebb__do_stop(run, a[0]->word); break;
    case EBB__OP_PUBLISH: ok = ebb__do_publish(run, object_of[0], object_of[1]); break;
    case EBB__OP_SUBSCRIBE: ok = ebb__do_subscribe(run, x->b, object_of[0], true); break;
    case EBB__OP_UNSUBSCRIBE: ok = ebb__do_subscribe(run, x->b, object_of[0], false); break;
    case EBB__OP_NOW: *out = word(f, x->type, ebb__do_now(run)); break;
    case EBB__OP_PRINT: ok = ebb__do_print(run, object_of[0]); break;
    case EBB__OP_ASSERT:
        ok = a[0]->word != 0;
        if (!ok) run->trap.text = object_of[1];
        if (!ok) return trap(f, x, EBB__TRAP_ASSERT);
        break;
    case EBB__OP_TRAP: run->trap.text = object_of[0]; return trap(f, x, EBB__TRAP_EXPLICIT);
    default: fail_msg("operation %u", x->op);
    }
    if (ok && result != NULL) *out = rv_from(f->r, x->type, (ebb__value){.ref = result});
    return done(f, x, ok);
}

/* ---- all ---- */

static way logic(frame *f, const ebb__ir *x, const rv **out) {
    way w = eval(f, x->args[0], out);
    if (w != ON || !(*out)->word == (x->op == EBB__OP_AND_ALSO)) return w;
    return eval(f, x->args[1], out);
}

static way eval(frame *f, const ebb__ir *x, const rv **out) {
    way w;
    f->r->ops++;
    f->r->seen[x->op]++;
    switch (x->op) {
    case EBB__OP_UNIT: *out = word(f, EBB__TY_UNIT, 0); return ON;
    case EBB__OP_INT:
    case EBB__OP_BOOL: *out = word(f, x->type, (uint64_t)x->i); return ON;
    case EBB__OP_STRING:
    case EBB__OP_BYTES: *out = rv_bytes(f->r, x->type, x->bytes, x->n_bytes); return ON;
    case EBB__OP_LOCAL: *out = f->slots[x->a]; return ON;
    case EBB__OP_SET_LOCAL:
    case EBB__OP_SET_SELF_FIELD:
        if ((w = eval(f, x->args[0], out)) != ON) return w;
        if (x->op == EBB__OP_SET_LOCAL) f->slots[x->a] = *out;
        else *f->self = rv_with(f->r, *f->self, x->a, *out);
        *out = word(f, EBB__TY_UNIT, 0);
        return ON;
    case EBB__OP_SELF_FIELD: *out = (*f->self)->of[x->a]; return ON;
    case EBB__OP_SELF:
        *out = f->r->shapes[x->type].is_ref ? *f->self : word(f, x->type, f->r->run->self);
        return ON;
    case EBB__OP_FIELD:
        if ((w = eval(f, x->args[0], out)) == ON) *out = (*out)->of[x->a];
        return w;
    case EBB__OP_SET_PLACE:
    case EBB__OP_PUSH:
    case EBB__OP_REMOVE: return change(f, x, out);
    case EBB__OP_INDEX:
    case EBB__OP_HAS:
    case EBB__OP_GET: return element(f, x, out);
    case EBB__OP_NEG:
    case EBB__OP_NOT:
    case EBB__OP_BIT_NOT:
    case EBB__OP_TO_I64:
    case EBB__OP_TO_U64: return unary(f, x, out);
    case EBB__OP_AND_ALSO:
    case EBB__OP_OR_ELSE: return logic(f, x, out);
    case EBB__OP_WIDEN: return eval(f, x->args[0], out);
    case EBB__OP_AS_ROLE:
        if ((w = eval(f, x->args[0], out)) == ON) *out = word(f, x->type, (*out)->word);
        return w;
    case EBB__OP_RECORD:
    case EBB__OP_STATE:
    case EBB__OP_TUPLE:
    case EBB__OP_LIST:
    case EBB__OP_MAP: return make(f, x, out);
    case EBB__OP_TEXT:
    case EBB__OP_STR: return text(f, x, out);
    case EBB__OP_BLOCK: return block(f, x, out);
    case EBB__OP_IF: return branch(f, x, out);
    case EBB__OP_MATCH: return match(f, x, out);
    case EBB__OP_LET: return let(f, x, out);
    case EBB__OP_WHILE:
    case EBB__OP_FOR_RANGE:
    case EBB__OP_FOR_EACH: return loop(f, x, out);
    case EBB__OP_BREAK: return BREAK;
    case EBB__OP_CONTINUE: return CONTINUE;
    case EBB__OP_RETURN: return (w = eval(f, x->args[0], &f->result)) == ON ? LEAVE : w;
    case EBB__OP_TRY: return try(f, x, out);
    case EBB__OP_CALL: return call(f, x, out);
    case EBB__OP_LEN: return len(f, x, out);
    case EBB__OP_KEYS: return keys(f, x, out);
    default:
        if (x->op >= EBB__OP_ADD && x->op <= EBB__OP_GE) return binary(f, x, out);
        return effect(f, x, out);
    }
}

/* ---- as a way of executing ---- */

/* Self goes back as a state whose values are new. */
static bool put_self(reference *r, const rv *self, ebb__object *o) {
    const ebb__shape *s = &r->shapes[self->type];
    for (uint32_t i = 0; i < s->n; i++) {
        if (!rv_to(r, s->of[i], self->of[i], &o->slots[s->at[i]])) return false;
    }
    return true;
}

bool reference_call(void *ctx, ebb__run *run, uint32_t id, const ebb__value *args, ebb__value *out) {
    reference *r = ctx;
    const ebb_program *p = run->program;
    const ebb__ir_fn *fn = p->image.ir->fns[id];
    const rv *of[8], *self = NULL, *result = NULL;
    bool has_self = fn->kind >= EBB__FN_HANDLER;
    r->run = run;
    r->ir = p->image.ir;
    r->shapes = run->shapes;
    r->none = p->image.lang->check->none;
    r->depth = 0;
    if (has_self) self = rv_from(r, args[0].ref->type, args[0]);
    for (uint32_t i = 0; i < fn->n_params; i++) of[i] = rv_from(r, fn->slots[i], args[i + has_self]);
    bool ok = run_fn(r, fn, has_self ? &self : NULL, of, fn->n_params, &result) == LEAVE;
    ok = ok && rv_to(r, fn->result, result, out) && (!has_self || put_self(r, self, args[0].ref));
    rv_free_all(r);
    return ok;
}
