/* lang/body.c - the bodies of a program: functions, methods, handlers, timers, entry and exit, invariants, constants. */
#include "lang/body.h"

static const ebb__syntax *at(const ebb__source *s, uint32_t node) {
    return ebb__syntax_at(s, node);
}

/* ---- beginning and ending ---- */

static ebb__body body_begin(ebb_lang *c, ebb__source *s, ebb__typestate *ts, ebb__ir_fn *fn,
                            ebb__fn_kind kind, ebb__type result) {
    ebb__body b = {.c = c, .s = s, .w = {s, ts}, .fn = fn, .ts = ts, .result = result};
    b.locals.size = sizeof(ebb__local);
    b.slots.size = sizeof(ebb__type);
    fn->kind = (uint8_t)kind;
    fn->result = result;
    if (ts != NULL && ts->spec) {
        b.pure = true;
        b.pure_why = "a spec";
    }
    return b;
}

static void body_end(ebb__body *b) {
    ebb__type *slots = ebb__lang_array(b->c, b->slots.n + 1, sizeof *slots);
    for (uint32_t i = 0; slots != NULL && i < b->slots.n; i++)
        slots[i] = *EBB__VEC_AT(&b->slots, ebb__type, i);
    b->fn->slots = slots;
    b->fn->n_slots = slots == NULL ? 0 : b->slots.n;
    ebb__vec_free(b->c, &b->locals);
    ebb__vec_free(b->c, &b->slots);
}

static ebb__ir_fn *fn_new(ebb_lang *c, const char *name, ebb__span span) {
    ebb__ir_fn *fn = EBB__NEW(c, ebb__ir_fn);
    *fn = (ebb__ir_fn){.id = c->check->fns.n, .name = name, .span = span};
    ebb__ir_fn **slot = ebb__vec_push(c, &c->check->fns);
    if (slot != NULL) *slot = fn;
    return fn;
}

static void self_fields(ebb__body *b) {
    for (uint32_t i = 0; b->state != NULL && i < b->state->n_fields; i++) {
        const ebb__field *f = &b->state->fields[i];
        if (!ebb__type_at(b->c, f->type)->moves) continue;
        ebb__local_add(b, EBB__L_SELF_FIELD, f->name, f->type, f->span)->slot = i;
    }
}

static void run(ebb__body *b, uint32_t block) {
    b->fn->body = ebb__infer_block(b, block, 0, true);
    ebb__scope_end(b, 0, ebb__end_of(b, block));
    body_end(b);
}

/* ---- functions ---- */

static void check_fn(ebb_lang *c, ebb__decl *d) {
    uint32_t block = ebb__child_of(d->source, d->node, EBB__S_BLOCK);
    if (d->fn == NULL || block == 0) return;
    bool make = d->typestate != NULL && d->name == EBB__N_new && d->state == NULL,
         method = d->typestate != NULL && !make;
    ebb__body b = body_begin(c, d->source, d->typestate, d->fn,
                             make     ? EBB__FN_NEW
                             : method ? EBB__FN_METHOD
                                      : EBB__FN_PLAIN,
                             d->type);
    d->fn->span = d->span;
    d->fn->name = d->state != NULL
                      ? ebb__format(c, "%n.%n.%n", d->typestate->decl->name, d->state->name, d->name)
                  : d->typestate != NULL ? ebb__format(c, "%n.%n", d->typestate->decl->name, d->name)
                                         : ebb__name_text(c, d->name);
    b.decl = d;
    b.state = d->state;
    b.self_owned = d->consumes && d->state != NULL;
    if (make) {
        b.pure = true;
        b.pure_why = "`new`";
    }
    if (method) {
        ebb__type self = d->state != NULL
                             ? ebb__type_decl(c, EBB__TY_STATE, d->typestate->decl, d->state->index)
                             : (ebb__type)EBB__TY_ERROR;
        (void)ebb__slot_new(&b, self);
        if (b.self_owned) (void)ebb__local_add(&b, EBB__L_SELF, EBB__N_self, self, d->span);
    }
    for (uint32_t i = 0; i < d->n_fields; i++) {
        ebb__local *l =
            ebb__local_add(&b, EBB__L_VAR, d->fields[i].name, d->fields[i].type, d->fields[i].span);
        l->quiet = true;
    }
    d->fn->n_params = d->n_fields + method;
    if (b.self_owned) self_fields(&b);
    run(&b, block);
}

/* ---- handlers ---- */

static ebb__type handler_result(ebb_lang *c, const ebb__typestate *ts, const ebb__handler *h) {
    ebb__type t = h->bad_target ? (ebb__type)EBB__TY_ERROR : h->errors;
    for (uint32_t i = 0; i < h->n_targets; i++)
        t = ebb__type_join(c, t, ebb__type_decl(c, EBB__TY_STATE, ts->decl, h->targets[i]->index));
    if (!h->stays) return t;
    t = ebb__type_join(c, t, EBB__TY_UNIT);
    if (h->state != NULL)
        t = ebb__type_join(c, t, ebb__type_decl(c, EBB__TY_STATE, ts->decl, h->state->index));
    return t;
}

static ebb__local *param(ebb__body *b, uint32_t node, ebb__type t) {
    const ebb__syntax *x = at(b->s, node);
    if (x->tok == 0) return NULL;
    return ebb__local_add(b, EBB__L_VAR, ebb__token_at(b->s, x->tok)->name, t, ebb__token_span(b->s, x->tok));
}

/* Slots: the payload, the origin if there is `for`, the capability if it is bound. */
static void handler_params(ebb__body *b, ebb__handler *h) {
    uint32_t params = ebb__child_of(b->s, h->node, EBB__S_PARAMS),
             origin = ebb__child_of(b->s, h->node, EBB__S_ORIGIN);
    uint32_t first = params == 0 ? 0 : at(b->s, params)->child,
             second = first == 0 ? 0 : at(b->s, first)->next;
    uint32_t binding = origin == 0 ? 0 : ebb__child_of(b->s, origin, EBB__S_NAME);
    ebb__local *l = first == 0 ? NULL : param(b, first, h->selector);
    if (l == NULL) (void)ebb__slot_new(b, h->selector);
    else if (second == 0) l->drop = ebb__node_span(b->s, params);
    if (origin != 0) {
        l = binding == 0 ? NULL : param(b, binding, h->origin);
        if (l == NULL) (void)ebb__slot_new(b, h->origin);
        else {
            ebb__span end = ebb__node_span(b->s, origin), name = l->span;
            uint32_t open = name.at;
            while (b->s->text[open] != '(') open--;
            l->drop = (ebb__span){end.source, open, end.at + end.n - open};
        }
    }
    if (second != 0 && h->responses != 0)
        (void)param(b, second, ebb__type_of(b->c, EBB__TY_REPLY_CAP, &h->responses, 1));
    b->fn->n_params = b->slots.n;
}

static void check_handler(ebb_lang *c, ebb__typestate *ts, ebb__handler *h) {
    uint32_t block = ebb__child_of(ts->decl->source, h->node, EBB__S_BLOCK);
    if (block == 0) return;
    const char *where = h->state == NULL ? "*" : ebb__name_text(c, h->state->name);
    h->fn =
        fn_new(c,
               h->kind == EBB__H_AFTER ? ebb__format(c, "%n.%s.after", ts->decl->name, where)
                                       : ebb__format(c, "%n.%s.on %t", ts->decl->name, where, h->selector),
               h->span);
    ebb__body b =
        body_begin(c, ts->decl->source, ts, h->fn, h->kind == EBB__H_AFTER ? EBB__FN_TIMER : EBB__FN_HANDLER,
                   handler_result(c, ts, h));
    b.handler = h;
    b.state = h->state;
    b.in_machine = true;
    if (h->kind == EBB__H_ON) handler_params(&b, h);
    self_fields(&b);
    if (h->responses == 0 && h->req != NULL) {
        b.responses = h->req->responses;
        h->fn->has_implicit_cap = true;
        ebb__local_add(&b, EBB__L_REPLY, 0, EBB__TY_UNIT, h->span)->slot = 0;
    }
    run(&b, block);
}

/* An expression of a type: an invariant, the time of a timer. */
static ebb__ir_fn *check_expr(ebb_lang *c, ebb__typestate *ts, ebb__state *st, uint32_t expr,
                              ebb__fn_kind kind, ebb__type t, const char *why) {
    ebb__ir_fn *fn =
        fn_new(c, ebb__format(c, "%n.%s", ts->decl->name, kind == EBB__FN_TIME ? "after" : "invariant"),
               ebb__node_span(ts->decl->source, expr));
    ebb__body b = body_begin(c, ts->decl->source, ts, fn, kind, t);
    b.state = st;
    b.in_machine = b.pure = true;
    b.pure_why = why;
    ebb__ir *x = ebb__infer_as(&b, expr, t);
    fn->body = ebb__ir_1(&b, EBB__OP_RETURN, EBB__TY_NEVER, x->span, x);
    body_end(&b);
    return fn;
}

static ebb__ir_fn *check_action(ebb_lang *c, ebb__state *st, uint32_t node, ebb__fn_kind kind) {
    ebb__typestate *ts = st->typestate;
    uint32_t block = ebb__child_of(ts->decl->source, node, EBB__S_BLOCK);
    if (node == 0 || block == 0) return NULL;
    ebb__ir_fn *fn = fn_new(
        c, ebb__format(c, "%n.%n.%s", ts->decl->name, st->name, kind == EBB__FN_ENTRY ? "entry" : "exit"),
        ebb__node_span(ts->decl->source, node));
    ebb__body b = body_begin(c, ts->decl->source, ts, fn, kind, EBB__TY_UNIT);
    b.state = st;
    b.in_machine = true;
    run(&b, block);
    return fn;
}

static void check_invariants(ebb_lang *c, ebb__typestate *ts, ebb__state *st, uint32_t node, ebb__vec *out) {
    const ebb__source *s = ts->decl->source;
    for (uint32_t x = at(s, node)->child; x != 0; x = at(s, x)->next) {
        if (at(s, x)->kind != EBB__S_INVARIANT || at(s, x)->child == 0) continue;
        ebb__ir_fn **slot = ebb__vec_push(c, out);
        if (slot != NULL)
            *slot = check_expr(c, ts, st, at(s, x)->child, EBB__FN_INVARIANT, EBB__TY_BOOL, "an invariant");
    }
}

static void check_handlers(ebb_lang *c, ebb__typestate *ts, ebb__vec *handlers) {
    for (uint32_t i = 0; i < handlers->n && !c->oom; i++) {
        ebb__handler *h = ebb__handler_at(handlers, i);
        uint32_t expr = h->kind == EBB__H_AFTER ? at(ts->decl->source, h->node)->child : 0;
        if (expr != 0) {
            h->time = check_expr(c, ts, h->state, expr, EBB__FN_TIME, EBB__TY_DURATION, "a timer's time");
            const ebb__ir *t = h->time->body->n > 0 ? h->time->body->args[0] : NULL;
            if (t != NULL && t->op == EBB__OP_INT) h->time_ms = (uint64_t)t->i;
        }
        if (h->kind == EBB__H_ON || h->kind == EBB__H_AFTER) check_handler(c, ts, h);
    }
}

static void check_typestate(ebb_lang *c, ebb__typestate *ts) {
    check_invariants(c, ts, NULL, ts->decl->node, &ts->invariants);
    check_handlers(c, ts, &ts->handlers);
    for (uint32_t i = 0; i < ts->n_states && !c->oom; i++) {
        ebb__state *st = ts->states[i];
        check_invariants(c, ts, st, st->node, &st->invariants);
        check_handlers(c, ts, &st->handlers);
        st->entry_fn = check_action(c, st, st->entry, EBB__FN_ENTRY);
        st->exit_fn = check_action(c, st, st->exit, EBB__FN_EXIT);
    }
}

/* ---- constants ---- */

enum { CONSTANT_MAX = 1000 };

static bool is_constant(const ebb__ir *x) {
    switch (x->op) {
    case EBB__OP_CALL:
    case EBB__OP_LOCAL:
    case EBB__OP_BLOCK:
    case EBB__OP_IF:
    case EBB__OP_MATCH:
    case EBB__OP_NOW:
    case EBB__OP_TRY:
    case EBB__OP_TEXT:
    case EBB__OP_SELF: return false;
    default: break;
    }
    if (x->op > EBB__OP_MAP && x->op != EBB__OP_INVALID) return false;
    for (uint32_t i = 0; i < x->n; i++) {
        if (!is_constant(x->args[i])) return false;
    }
    return true;
}

static void read_constant(ebb_lang *c, ebb__decl *d) {
    uint32_t x = at(d->source, d->node)->child;
    while (x != 0 && !ebb__is_expr(at(d->source, x)->kind)) x = at(d->source, x)->next;
    ebb__ir_fn fn = {.name = "const"};
    ebb__body b = body_begin(c, d->source, NULL, &fn, EBB__FN_PLAIN, d->type);
    b.pure = true;
    b.pure_why = "a constant";
    d->step = EBB__RESOLVING;
    uint32_t outer = c->check->names;
    c->check->names = 0;
    d->value = x == 0 ? ebb__ir_invalid(&b, d->span) : ebb__infer_as(&b, x, d->type);
    d->names = d->value->n == 0 ? 0 : c->check->names; /* a number that was computed is one value */
    c->check->names = outer;
    d->step = EBB__RESOLVED;
    if (d->names > CONSTANT_MAX) {
        (void)ebb__diag_report(c, EBB__E0316, d->span, "it names more than %d others", (int64_t)CONSTANT_MAX);
        d->value = ebb__ir_invalid(&b, d->span);
        d->names = 0;
    }
    if (d->value->op != EBB__OP_INVALID && !is_constant(d->value))
        (void)ebb__diag_report(c, EBB__E0314, d->value->span, "this is computed when the program runs");
    body_end(&b);
}

ebb__ir *ebb__constant(ebb_lang *c, ebb__decl *d, ebb__span span) {
    ebb__ir *x = EBB__NEW(c, ebb__ir);
    bool deep = c->check->alias_depth > 50;
    if (d->step == EBB__RESOLVING || deep) {
        (void)ebb__diag_report(c, deep ? EBB__E0109 : EBB__E0207, d->span,
                               deep ? "constants are nested more than 50 deep" : "%n is made of itself",
                               d->name);
        *x = (ebb__ir){.op = EBB__OP_INVALID, .type = EBB__TY_ERROR, .span = span};
        return x;
    }
    c->check->alias_depth++;
    if (d->step == EBB__UNRESOLVED) read_constant(c, d);
    c->check->alias_depth--;
    c->check->names += 1 + d->names;
    if (c->check->names > CONSTANT_MAX) c->check->names = CONSTANT_MAX + 1;
    *x = *d->value;
    x->span = span;
    return x;
}

void ebb__bodies(ebb_lang *c) {
    struct ebb__check *k = c->check;
    for (uint32_t i = 0; i < k->decls.n && !c->oom; i++) {
        ebb__decl *d = ebb__decl_at(&k->decls, i);
        if (d->kind == EBB__D_CONST && d->step == EBB__UNRESOLVED) read_constant(c, d);
    }
    for (uint32_t i = 0; i < k->decls.n && !c->oom; i++) {
        if (ebb__decl_at(&k->decls, i)->kind == EBB__D_FN) check_fn(c, ebb__decl_at(&k->decls, i));
    }
    for (uint32_t i = 0; i < k->typestates.n && !c->oom; i++)
        check_typestate(c, *EBB__VEC_AT(&k->typestates, ebb__typestate *, i));
}
