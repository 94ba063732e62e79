/* lang/emit_effect.c - what a program does to the world: messages, machines, time, print. */
#include "lang/emit.h"

/* An instruction with one operand that is read. */
static void one(ebb__emitter *e, const ebb__ir *x, ebb__vm_op op) {
    uint32_t a = ebb__emit_value(e, x->args[0]);
    e->span = x->span;
    (void)ebb__emit(e, op, a, 0, 0);
}

static void two(ebb__emitter *e, const ebb__ir *x, ebb__vm_op op) {
    uint32_t a = ebb__emit_first(e, x->args[0], x->args[1]), b = ebb__emit_value(e, x->args[1]);
    e->span = x->span;
    (void)ebb__emit(e, op, a, b, 0);
}

static void send(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    uint32_t a = ebb__emit_first(e, x->args[0], x->args[1]), b = ebb__emit_value(e, x->args[1]);
    e->span = x->span;
    (void)ebb__emit(e, x->op == EBB__OP_SEND ? EBB__VM_SEND : EBB__VM_REQUEST, to, a, b);
    ebb__emit_extra(e, x->type);
    if (x->op != EBB__OP_SEND) ebb__emit_extra(e, x->a);
}

static void subscribe(ebb__emitter *e, const ebb__ir *x) {
    uint32_t key = ebb__emit_value(e, x->args[0]);
    e->span = x->span;
    ebb__emit_wide(e, x->op == EBB__OP_SUBSCRIBE ? EBB__VM_SUBSCRIBE : EBB__VM_UNSUBSCRIBE, key, x->b);
}

static void spawn(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    uint32_t state = ebb__emit_value(e, x->args[0]);
    e->span = x->span;
    (void)ebb__emit(e, EBB__VM_SPAWN, to, state, 0);
}

/* True: it gives a value. */
static bool effect(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    switch (x->op) {
    case EBB__OP_SEND:
    case EBB__OP_REQUEST:
    case EBB__OP_EMIT_REQUEST: send(e, x, to); return true;
    case EBB__OP_SPAWN: spawn(e, x, to); return true;
    case EBB__OP_NOW: (void)ebb__emit(e, EBB__VM_NOW, to, 0, 0); return true;
    case EBB__OP_REPLY: one(e, x, EBB__VM_REPLY); break;
    case EBB__OP_REPLY_TO: two(e, x, EBB__VM_REPLY_TO); break;
    case EBB__OP_FORGET:
    case EBB__OP_CANCEL: one(e, x, EBB__VM_FORGET); break;
    case EBB__OP_START: one(e, x, EBB__VM_START); break;
    case EBB__OP_STOP: one(e, x, EBB__VM_STOP); break;
    case EBB__OP_PUBLISH: two(e, x, EBB__VM_PUBLISH); break;
    case EBB__OP_SUBSCRIBE:
    case EBB__OP_UNSUBSCRIBE: subscribe(e, x); break;
    case EBB__OP_PRINT: one(e, x, EBB__VM_PRINT); break;
    case EBB__OP_ASSERT:
        if (x->n == 2) two(e, x, EBB__VM_ASSERT_TEXT);
        else one(e, x, EBB__VM_ASSERT);
        break;
    case EBB__OP_TRAP: one(e, x, EBB__VM_TRAP); break;
    default: (void)ebb__emit(e, EBB__VM_UNREACHABLE, 0, 0, 0);
    }
    return false;
}

void ebb__emit_effect(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    if (!effect(e, x, to) && x->type == EBB__TY_UNIT) ebb__emit_int(e, to, 0);
    ebb__emit_end(e, mark);
}
