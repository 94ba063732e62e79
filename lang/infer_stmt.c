/* lang/infer_stmt.c - statements, blocks, and what a function gives back. */
#include "lang/body.h"
#include "lang/infer_call.h"
#include "lang/parse.h"

static ebb__span span_of(const ebb__body *b, uint32_t node) {
    return ebb__node_span(b->s, node);
}

static const ebb__syntax *at(const ebb__body *b, uint32_t node) {
    return ebb__syntax_at(b->s, node);
}

static ebb__ir *unit(ebb__body *b, ebb__span span) {
    return ebb__ir_new(b, EBB__OP_UNIT, EBB__TY_UNIT, span, 0);
}

ebb__span ebb__end_of(const ebb__body *b, uint32_t node) {
    ebb__span s = span_of(b, node);
    return (ebb__span){s.source, s.n > 0 ? s.at + s.n - 1 : s.at, s.n > 0};
}

/* ---- giving back ---- */

static void undeclared_target(ebb__body *b, ebb__ir *x) {
    const ebb__type *of;
    uint32_t n = ebb__type_members(b->c, &x->type, &of);
    for (uint32_t i = 0; i < n; i++) {
        const ebb__type_info *t = ebb__type_at(b->c, of[i]);
        if (t->kind != EBB__TY_STATE || ebb__type_has(b->c, b->result, of[i])) continue;
        const ebb__state *st = t->decl->typestate->states[t->index];
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0410, x->span, "goes to %n", st->name);
        uint32_t targets = b->handler->targets_node;
        if (targets == 0) {
            ebb__diag_label(b->c, d, b->handler->span, "a handler without -> stays");
            uint32_t block = ebb__child_of(b->s, b->handler->node, EBB__S_BLOCK);
            ebb__diag_help(b->c, d, "declare it: -> stay | %n", st->name);
            if (block != 0)
                ebb__diag_edit(b->c, d, (ebb__span){b->s->id, span_of(b, block).at, 0}, "-> stay | %n ",
                               st->name);
        } else {
            ebb__span end = span_of(b, targets);
            ebb__diag_label(b->c, d, end, "the declared targets");
            ebb__diag_help(b->c, d, "declare it: | %n", st->name);
            ebb__diag_edit(b->c, d, (ebb__span){end.source, end.at + end.n, 0}, " | %n", st->name);
        }
        return;
    }
    (void)ebb__coerce(b, x, b->result);
}

static bool has_own_state(const ebb__body *b, ebb__type t) {
    const ebb__type *of;
    uint32_t n = ebb__type_members(b->c, &t, &of);
    for (uint32_t i = 0; i < n; i++) {
        const ebb__type_info *x = ebb__type_at(b->c, of[i]);
        if (x->kind == EBB__TY_STATE && b->ts != NULL && x->decl == b->ts->decl) return true;
    }
    return false;
}

/* RETURN of a value; the code behind it is dead. */
static ebb__ir *give_back(ebb__body *b, ebb__ir *x, ebb__span span, ebb__span before) {
    bool fits = ebb__type_fit(b->c, x->type, b->result) != EBB__FIT_NOT;
    bool state = has_own_state(b, x->type);
    if (!fits && state && (b->fn->kind == EBB__FN_ENTRY || b->fn->kind == EBB__FN_EXIT)) {
        (void)ebb__diag_report(b->c, EBB__E0411, x->span,
                               "this is already on the way from one state to the next");
    } else if (!fits && state && b->handler != NULL) {
        undeclared_target(b, x);
    } else {
        ebb__flow_exit(b, EBB__EXIT_RETURN, x->type, span, before);
        x = ebb__coerce(b, x, b->result);
    }
    b->dead = true;
    return ebb__ir_1(b, EBB__OP_RETURN, EBB__TY_NEVER, span, x);
}

/* Control reaches the end of a block in tail position. */
ebb__ir *ebb__infer_fall_off(ebb__body *b, ebb__span end) {
    if (b->dead) return NULL;
    if (b->result != EBB__TY_ERROR && ebb__type_fit(b->c, EBB__TY_UNIT, b->result) == EBB__FIT_NOT) {
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0309, end, "expected %t here", b->result);
        const ebb__type_info *t = ebb__type_at(b->c, b->result);
        if (b->handler != NULL && t->kind == EBB__TY_STATE &&
            t->decl->typestate->states[t->index]->n_fields == t->decl->typestate->n_fields) {
            ebb__diag_help(b->c, d, "go to %n", t->decl->typestate->states[t->index]->name);
            ebb__diag_edit(b->c, d, (ebb__span){end.source, end.at, 0}, "%n ",
                           t->decl->typestate->states[t->index]->name);
        }
        b->dead = true;
        return NULL;
    }
    return give_back(b, unit(b, end), end, (ebb__span){end.source, end.at, 0});
}

ebb__ir *ebb__infer_tail(ebb__body *b, uint32_t node) {
    switch (at(b, node)->kind) {
    case EBB__S_BLOCK: return ebb__infer_block(b, node, 0, true);
    case EBB__S_IF: return ebb__infer_if(b, node, 0, true);
    case EBB__S_MATCH: return ebb__infer_match(b, node, 0, true);
    default: break;
    }
    ebb__span span = span_of(b, node);
    ebb__ir *x = ebb__infer(b, node, b->result);
    if (b->dead) return x;
    return give_back(b, x, span, (ebb__span){span.source, span.at, 0});
}

/* ---- statements ---- */

static ebb__ir *infer_return(ebb__body *b, uint32_t node) {
    uint32_t value = at(b, node)->child;
    ebb__span span = span_of(b, node), before = {span.source, span.at, 0};
    if (value != 0) {
        ebb__ir *x = ebb__infer(b, value, b->result);
        return b->dead ? x : give_back(b, x, span, before);
    }
    if (b->result != EBB__TY_ERROR && ebb__type_fit(b->c, EBB__TY_UNIT, b->result) == EBB__FIT_NOT) {
        (void)ebb__diag_report(b->c, EBB__E0309, span, "expected a value: %t", b->result);
        b->dead = true;
        return ebb__ir_invalid(b, span);
    }
    return give_back(b, unit(b, span), span, before);
}

static ebb__ir *infer_let(ebb__body *b, uint32_t node) {
    uint32_t pattern = at(b, node)->child, x = pattern == 0 ? 0 : at(b, pattern)->next, type = 0;
    if (x != 0 && ebb__is_type(at(b, x)->kind)) type = x, x = at(b, x)->next;
    if (x == 0) return ebb__ir_invalid(b, span_of(b, node));
    uint32_t otherwise = at(b, x)->next;
    ebb__type t = type == 0 ? 0 : ebb__read_type(b->c, b->w, type);
    ebb__ir *value = t == 0 ? ebb__infer(b, x, 0) : ebb__infer_as(b, x, t), *leave = NULL;
    if (otherwise != 0) {
        ebb__flow *holds = ebb__flow_save(b);
        leave = ebb__infer_block(b, otherwise, 0, false);
        if (!b->dead)
            (void)ebb__diag_report(b->c, EBB__E0306, ebb__end_of(b, otherwise),
                                   "this block has to leave: return, break or continue");
        ebb__flow_load(b, holds);
    }
    ebb__ir *let = ebb__ir_new(b, EBB__OP_LET, EBB__TY_UNIT, span_of(b, node), leave != NULL ? 2 : 1);
    let->pattern = ebb__infer_pattern(b, pattern, t == 0 ? value->type : t);
    if (let->n > 0) let->args[0] = value;
    if (let->n > 1) let->args[1] = leave;
    if (otherwise == 0 && value->type != EBB__TY_ERROR && ebb__pattern_fails(b->c, let->pattern))
        (void)ebb__diag_report(b->c, EBB__E0306, span_of(b, pattern), "not every %t matches this",
                               value->type);
    return let;
}

static void report_no_value(ebb__body *b, uint32_t node, ebb__type t) {
    static const struct {
        ebb__type type;
        const char *text;
    } zeros[] = {{EBB__TY_I64, "0"},       {EBB__TY_U64, "0"},       {EBB__TY_BOOL, "false"},
                 {EBB__TY_STRING, "\"\""}, {EBB__TY_BYTES, "b\"\""}, {EBB__TY_DURATION, "0ms"}};
    ebb__span name = ebb__token_span(b->s, at(b, node)->tok), all = span_of(b, node);
    ebb__diag *d = ebb__diag_report(b->c, EBB__E0310, name, "%n has no first value",
                                    ebb__token_at(b->s, at(b, node)->tok)->name);
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        if (zeros[i].type != t) continue;
        ebb__diag_help(b->c, d, "give it one: = %s", zeros[i].text);
        ebb__diag_edit(b->c, d, (ebb__span){all.source, all.at + all.n - 1, 0}, " = %s", zeros[i].text);
    }
}

static ebb__ir *infer_var(ebb__body *b, uint32_t node) {
    uint32_t x = at(b, node)->child;
    ebb__type t = 0;
    if (at(b, node)->tok == 0) return ebb__ir_invalid(b, span_of(b, node));
    if (x != 0 && ebb__is_type(at(b, x)->kind)) t = ebb__read_type(b->c, b->w, x), x = at(b, x)->next;
    ebb__ir *value = x == 0   ? ebb__ir_invalid(b, span_of(b, node))
                     : t == 0 ? ebb__infer(b, x, 0)
                              : ebb__infer_as(b, x, t);
    if (x == 0) report_no_value(b, node, t);
    ebb__span span = ebb__token_span(b->s, at(b, node)->tok);
    ebb__local *l = ebb__local_add(b, EBB__L_VAR, ebb__token_at(b->s, at(b, node)->tok)->name,
                                   t == 0 ? value->type : t, span);
    l->mut = true;
    ebb__ir *let = ebb__ir_1(b, EBB__OP_LET, EBB__TY_UNIT, span_of(b, node), value);
    let->pattern = EBB__NEW(b->c, ebb__ir_pattern);
    *let->pattern = (ebb__ir_pattern){.op = EBB__PAT_BIND, .type = l->type, .slot = l->slot, .span = span};
    return let;
}

/* ---- assignment ---- */

static bool both_states(const ebb__body *b, ebb__type x, ebb__type y) {
    const ebb__type_info *s = ebb__type_at(b->c, x), *t = ebb__type_at(b->c, y);
    return s->kind == EBB__TY_STATE && t->kind == EBB__TY_STATE && s->decl == t->decl;
}

static ebb__ir *assign_local(ebb__body *b, ebb__local *l, uint32_t right, ebb__span place, ebb__span span) {
    ebb__type declared = l->type;
    uint32_t index = (uint32_t)(l - ebb__local_at(b, 0));
    ebb__ir *value = ebb__infer(b, right, declared);
    l = ebb__local_at(b, index);
    if (!l->mut) {
        ebb__ir target = {.op = EBB__OP_LOCAL, .a = l->slot, .span = place, .type = l->type};
        (void)ebb__is_place(b, &target);
        return ebb__ir_invalid(b, span);
    }
    bool live = (l->flow & EBB__LIVE) != 0;
    if (live && !b->dead && !ebb__type_drops(b->c, l->type))
        (void)ebb__diag_report(b->c, EBB__E0504, place, "%n, a %t, is overwritten here", l->name, l->type);
    if (both_states(b, declared, value->type))
        l->type = value->type; /* a variable has one state at each point */
    else value = ebb__coerce(b, value, l->type);
    l->flow = EBB__LIVE;
    ebb__ir *x = ebb__ir_1(b, EBB__OP_SET_LOCAL, EBB__TY_UNIT, span, value);
    x->a = l->slot;
    return x;
}

static ebb__ir *operate(ebb__body *b, uint32_t node, ebb__ir *place, ebb__ir *value) {
    uint8_t tok = ebb__token_at(b->s, at(b, node)->tok)->kind;
    ebb__op op = tok == EBB__T_PLUSEQ ? EBB__OP_ADD : tok == EBB__T_MINUSEQ ? EBB__OP_SUB : EBB__OP_MUL;
    uint8_t kind = ebb__type_kind_of(b->c, place->type);
    bool number =
        kind == EBB__TY_I64 || kind == EBB__TY_U64 || (kind == EBB__TY_DURATION && op != EBB__OP_MUL);
    bool joins =
        op == EBB__OP_ADD && (kind == EBB__TY_STRING || kind == EBB__TY_BYTES || kind == EBB__TY_LIST);
    if (!number && !joins && kind != EBB__TY_ERROR)
        (void)ebb__diag_report(b->c, EBB__E0301, ebb__token_span(b->s, at(b, node)->tok),
                               "this operator does not take %t", place->type);
    return ebb__ir_2(b, op, place->type, span_of(b, node), place, value);
}

static ebb__local *plain_local(const ebb__body *b, uint32_t node) {
    if (at(b, node)->kind != EBB__S_PATH_EXPR) return NULL;
    uint32_t path = at(b, node)->child;
    if (at(b, path)->end - at(b, path)->first != 1) return NULL;
    return ebb__local_find(b, ebb__path_name(b->s, path));
}

static ebb__ir *set_self_field(ebb__body *b, ebb__ir *place, ebb__ir *value, ebb__span span) {
    ebb__local *l = ebb__local_field(b, place->a);
    if (l != NULL && (l->flow & EBB__LIVE) != 0 && !ebb__type_drops(b->c, l->type))
        (void)ebb__diag_report(
            b->c, ebb__type_kind_of(b->c, l->type) == EBB__TY_REPLY_CAP ? EBB__E0509 : EBB__E0504,
            place->span, "self.%n is overwritten here", l->name);
    if (l != NULL) l->flow = EBB__LIVE;
    ebb__ir *x = ebb__ir_1(b, EBB__OP_SET_SELF_FIELD, EBB__TY_UNIT, span, value);
    x->a = place->a;
    return x;
}

/* Where a field of self itself is written, that it has been moved out of does not matter. */
static ebb__ir *infer_place(ebb__body *b, uint32_t node) {
    bool dead = b->dead;
    if (at(b, node)->kind == EBB__S_FIELD_OF && at(b, at(b, node)->child)->kind == EBB__S_SELF)
        b->dead = true; /* no report about a moved field */
    ebb__ir *x = ebb__infer_borrowed(b, node);
    b->dead = dead;
    return x;
}

/* The keys of a place that is read and then written, in variables of their own: each is evaluated once. Adds a LET for
 * each key to `lets`, the outermost first. */
static void keep_keys(ebb__body *b, ebb__ir *place, ebb__ir *lets) {
    if (place->op != EBB__OP_FIELD && place->op != EBB__OP_INDEX) return;
    keep_keys(b, place->args[0], lets);
    if (place->op != EBB__OP_INDEX) return;
    ebb__ir *key = place->args[1], *let = ebb__ir_1(b, EBB__OP_LET, EBB__TY_UNIT, key->span, key);
    ebb__ir *kept = ebb__ir_new(b, EBB__OP_LOCAL, key->type, key->span, 0);
    kept->a = ebb__slot_new(b, key->type);
    let->pattern = EBB__NEW(b->c, ebb__ir_pattern);
    *let->pattern =
        (ebb__ir_pattern){.op = EBB__PAT_BIND, .type = key->type, .slot = kept->a, .span = key->span};
    place->args[1] = kept;
    lets->args[lets->n++] = let;
}

static uint32_t count_keys(const ebb__ir *place) {
    uint32_t n = 0;
    for (; place->op == EBB__OP_FIELD || place->op == EBB__OP_INDEX; place = place->args[0])
        n += place->op == EBB__OP_INDEX;
    return n;
}

/* PLACE op= value, where the place is not only a variable or field of self. */
static ebb__ir *operate_on_place(ebb__body *b, uint32_t node, ebb__ir *place, ebb__ir *value) {
    ebb__span span = span_of(b, node);
    uint32_t n = count_keys(place) + 1;
    ebb__ir *all = ebb__ir_new(b, EBB__OP_BLOCK, EBB__TY_UNIT, span, n);
    if (all->n == 0) return ebb__ir_invalid(b, span);
    all->flags |= EBB__IR_DISCARD;
    all->n = 0;
    keep_keys(b, place, all);
    all->args[all->n++] =
        ebb__ir_2(b, EBB__OP_SET_PLACE, EBB__TY_UNIT, span, place, operate(b, node, place, value));
    return all;
}

static ebb__ir *infer_assign(ebb__body *b, uint32_t node) {
    uint32_t left = at(b, node)->child, right = left == 0 ? 0 : at(b, left)->next;
    ebb__span span = span_of(b, node);
    if (right == 0) return ebb__ir_invalid(b, span);
    bool plain = ebb__token_at(b->s, at(b, node)->tok)->kind == EBB__T_EQ;
    ebb__local *l = plain ? plain_local(b, left) : NULL;
    if (l != NULL) return assign_local(b, l, right, span_of(b, left), span);
    ebb__ir *place = plain ? infer_place(b, left) : ebb__infer_borrowed(b, left);
    ebb__ir *value = ebb__infer_as(b, right, place->type);
    if (place->type == EBB__TY_ERROR || !ebb__is_place(b, place)) return ebb__ir_invalid(b, span);
    if (place->op == EBB__OP_FIELD && ebb__type_kind_of(b->c, place->args[0]->type) == EBB__TY_STATE) {
        (void)ebb__diag_report(b->c, EBB__E0311, place->span,
                               "only the methods of a direct value change its fields");
        return ebb__ir_invalid(b, span);
    }
    bool whole = place->op == EBB__OP_SELF_FIELD || place->op == EBB__OP_LOCAL;
    if (!plain && !whole) return operate_on_place(b, node, place, value);
    if (!plain) value = operate(b, node, place, value);
    if (place->op == EBB__OP_SELF_FIELD) return set_self_field(b, place, value, span);
    if (place->op == EBB__OP_LOCAL) {
        ebb__ir *x = ebb__ir_1(b, EBB__OP_SET_LOCAL, EBB__TY_UNIT, span, value);
        x->a = place->a;
        return x;
    }
    return ebb__ir_2(b, EBB__OP_SET_PLACE, EBB__TY_UNIT, span, place, value);
}

/* ---- loops ---- */

static void loop_begin(ebb__body *b, ebb__loop *loop) {
    *loop = (ebb__loop){.outer = b->loop, .head = ebb__flow_save(b), .locals = b->locals.n};
    b->loop = loop;
}

/* `ends`: the loop can end at its head, not only by break. */
static void loop_end(ebb__body *b, ebb__loop *loop, bool ends, ebb__span span) {
    ebb__flow_back(b, loop->head, span);
    b->loop = loop->outer;
    if (ends) {
        ebb__flow_load(b, loop->head);
        if (loop->out != NULL) ebb__flow_merge(b, loop->out, span);
    } else if (loop->out != NULL) {
        ebb__flow_load(b, loop->out);
    } else {
        b->dead = true;
    }
}

static ebb__ir *infer_while(ebb__body *b, uint32_t node) {
    uint32_t head = at(b, node)->child, body = head == 0 ? 0 : at(b, head)->next;
    if (body == 0) return ebb__ir_invalid(b, span_of(b, node));
    ebb__loop loop;
    loop_begin(b, &loop);
    ebb__ir *x = ebb__infer_as(b, head, EBB__TY_BOOL);
    bool forever = x->op == EBB__OP_BOOL && x->i != 0;
    ebb__ir *block = ebb__infer_block(b, body, EBB__TY_UNIT, false);
    loop_end(b, &loop, !forever, ebb__end_of(b, body));
    return ebb__ir_2(b, EBB__OP_WHILE, forever ? EBB__TY_NEVER : EBB__TY_UNIT, span_of(b, node), x, block);
}

static ebb__type elements_of(ebb__body *b, const ebb__ir *x) {
    const ebb__type_info *t = ebb__type_at(b->c, x->type);
    if (t->kind == EBB__TY_LIST) return t->of[0];
    if (t->kind == EBB__TY_MAP) return ebb__type_of(b->c, EBB__TY_TUPLE, t->of, 2);
    if (t->kind != EBB__TY_ERROR)
        (void)ebb__diag_report(b->c, EBB__E0301, x->span, "expected a list, a map or a range, found %t",
                               x->type);
    return EBB__TY_ERROR;
}

static ebb__ir *infer_for(ebb__body *b, uint32_t node) {
    uint32_t pattern = at(b, node)->child, from = pattern == 0 ? 0 : at(b, pattern)->next;
    uint32_t to = from == 0 ? 0 : at(b, from)->next, body = to == 0 ? 0 : at(b, to)->next;
    bool range = body != 0;
    if (!range) body = to;
    if (body == 0) return ebb__ir_invalid(b, span_of(b, node));
    ebb__ir *first = ebb__infer(b, from, 0), *last = range ? ebb__infer_as(b, to, first->type) : NULL;
    uint32_t mark = b->locals.n;
    ebb__loop loop;
    if (range && first->type != EBB__TY_I64 && first->type != EBB__TY_U64 && first->type != EBB__TY_ERROR)
        (void)ebb__diag_report(b->c, EBB__E0301, first->span, "a range goes over i64 or u64, this is %t",
                               first->type);
    ebb__type element = range ? first->type : elements_of(b, first);
    loop_begin(b, &loop);
    ebb__ir *x = ebb__ir_new(b, range ? EBB__OP_FOR_RANGE : EBB__OP_FOR_EACH, EBB__TY_UNIT, span_of(b, node),
                             range ? 3 : 2);
    ebb__ir_pattern *p = ebb__infer_pattern(b, pattern, element);
    if (element != EBB__TY_ERROR && ebb__pattern_fails(b->c, p))
        (void)ebb__diag_report(b->c, EBB__E0306, span_of(b, pattern), "not every %t matches this", element);
    ebb__ir *block = ebb__infer_block(b, body, EBB__TY_UNIT, false);
    ebb__scope_end(b, mark, ebb__end_of(b, body));
    loop_end(b, &loop, true, ebb__end_of(b, body));
    if (x->n == 0) return x;
    x->args[0] = first;
    if (range) x->args[1] = last;
    x->args[x->n - 1] = block;
    if (range) x->a = p->op == EBB__PAT_BIND ? p->slot : ebb__slot_new(b, element);
    else x->pattern = p;
    return x;
}

static ebb__ir *infer_jump(ebb__body *b, uint32_t node, bool leaves) {
    ebb__span span = span_of(b, node);
    if (b->loop == NULL) {
        (void)ebb__diag_report(b->c, EBB__E0315, span, "there is no loop around this");
        return ebb__ir_invalid(b, span);
    }
    if (leaves && !b->dead) {
        ebb__flow *here = ebb__flow_save(b);
        if (b->loop->out != NULL) ebb__flow_merge(b, b->loop->out, span);
        b->loop->out = ebb__flow_save(b);
        ebb__flow_load(b, here);
    } else if (!b->dead) {
        ebb__flow_back(b, b->loop->head, span);
    }
    b->dead = true;
    return ebb__ir_new(b, leaves ? EBB__OP_BREAK : EBB__OP_CONTINUE, EBB__TY_NEVER, span, 0);
}

/* ---- expressions as statements ---- */

static void check_discarded(ebb__body *b, const ebb__ir *x) {
    ebb__type lost = ebb__type_without(b->c, x->type, b->c->check->machine_error);
    bool delivery = (x->op == EBB__OP_SEND || x->op == EBB__OP_REQUEST) && lost != x->type;
    if (delivery) {
        ebb__diag *d = ebb__diag_report(b->c, EBB__W0901, x->span, "the result, %t, is not looked at",
                                        ebb__type_join(b->c, b->c->check->machine_error, EBB__TY_NEVER));
        bool fits = ebb__type_fit(b->c, b->c->check->machine_error, b->result) != EBB__FIT_NOT;
        ebb__type errors = ebb__type_without(b->c, b->c->check->machine_error, b->result);
        bool fixed = fits || ebb__help_errors(b, d, errors);
        if (fits) ebb__diag_help(b->c, d, "pass the error on with `?`");
        else if (fixed) ebb__diag_help(b->c, d, "declare the error, MachineError, and pass it on with `?`");
        if (fixed) ebb__diag_edit(b->c, d, (ebb__span){x->span.source, x->span.at + x->span.n, 0}, "?");
        return;
    }
    if (ebb__type_drops(b->c, x->type) || x->op == EBB__OP_LOCAL) return;
    const ebb__type *of;
    uint32_t n = ebb__type_members(b->c, &x->type, &of);
    for (uint32_t i = 0; i < n; i++) {
        if (ebb__type_drops(b->c, of[i])) continue;
        bool pending = ebb__type_kind_of(b->c, of[i]) == EBB__TY_PENDING;
        (void)ebb__diag_report(b->c, pending ? EBB__E0510 : EBB__E0504, x->span, "this %t is dropped at once",
                               of[i]);
        return;
    }
}

static ebb__ir *infer_discard(ebb__body *b, uint32_t node) {
    uint32_t expr = at(b, node)->child;
    ebb__ir *x = ebb__is_block_like(at(b, expr)->kind) ? ebb__infer(b, expr, EBB__TY_UNIT)
                 : at(b, expr)->kind == EBB__S_PATH_EXPR || at(b, expr)->kind == EBB__S_SELF
                     ? ebb__infer_borrowed(b, expr)
                     : ebb__infer(b, expr, 0);
    check_discarded(b, x);
    return x;
}

static ebb__ir *infer_stmt(ebb__body *b, uint32_t node) {
    switch (at(b, node)->kind) {
    case EBB__S_LET: return infer_let(b, node);
    case EBB__S_VAR: return infer_var(b, node);
    case EBB__S_ASSIGN: return infer_assign(b, node);
    case EBB__S_WHILE: return infer_while(b, node);
    case EBB__S_FOR: return infer_for(b, node);
    case EBB__S_RETURN: return infer_return(b, node);
    case EBB__S_BREAK: return infer_jump(b, node, true);
    case EBB__S_CONTINUE: return infer_jump(b, node, false);
    case EBB__S_EXPR_STMT: return infer_discard(b, node);
    case EBB__S_IF:
    case EBB__S_MATCH:
    case EBB__S_BLOCK: return ebb__coerce(b, ebb__infer(b, node, EBB__TY_UNIT), EBB__TY_UNIT);
    default: return ebb__infer(b, node, 0);
    }
}

static void check_dead(ebb__body *b, uint32_t node) {
    if (!b->dead || b->warned_dead) return;
    b->warned_dead = true;
    (void)ebb__diag_report(b->c, EBB__W0907, span_of(b, node), "control never gets here");
}

ebb__ir *ebb__infer_block(ebb__body *b, uint32_t node, ebb__type expected, bool tail) {
    uint32_t n = 0, i = 0, mark = b->locals.n;
    for (uint32_t x = at(b, node)->child; x != 0; x = at(b, x)->next) n++;
    ebb__ir *block = ebb__ir_new(b, EBB__OP_BLOCK, EBB__TY_UNIT, span_of(b, node), n + tail);
    bool value = false;
    for (uint32_t x = at(b, node)->child; x != 0 && i < block->n && !b->c->oom; x = at(b, x)->next) {
        bool last = at(b, x)->next == 0 && ebb__is_expr(at(b, x)->kind);
        check_dead(b, x);
        if (last && tail) block->args[i++] = ebb__infer_tail(b, x);
        else if (last) {
            ebb__ir *y = ebb__infer(b, x, expected);
            block->args[i++] = expected == 0 ? y : ebb__coerce(b, y, expected);
            block->type = block->args[i - 1]->type;
            value = true;
        } else block->args[i++] = infer_stmt(b, x);
    }
    ebb__ir *off = tail ? ebb__infer_fall_off(b, ebb__end_of(b, node)) : NULL;
    if (off != NULL && i < block->n) block->args[i++] = off;
    block->n = i;
    if (b->dead) block->type = EBB__TY_NEVER;
    if (!value) block->flags |= EBB__IR_DISCARD;
    ebb__scope_end(b, mark, ebb__end_of(b, node));
    return block;
}
