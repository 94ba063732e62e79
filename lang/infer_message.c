/* lang/infer_message.c - send, request, reply and the life of machines. */
#include "lang/infer_call.h"

static ebb__span span_of(const ebb__body *b, uint32_t node) {
    return ebb__node_span(b->s, node);
}

static const ebb__syntax *at(const ebb__body *b, uint32_t node) {
    return ebb__syntax_at(b->s, node);
}

/* ---- receivers and messages ---- */

static bool is_handle(ebb__body *b, const ebb__ir *x) {
    uint8_t kind = ebb__type_kind_of(b->c, x->type);
    if (kind == EBB__TY_MACHINE || kind == EBB__TY_ROLE) return true;
    if (kind == EBB__TY_STATE) {
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0301, x->span, "this is a direct value, not a handle");
        ebb__diag_help(b->c, d, "make it a machine with spawn");
    } else if (kind != EBB__TY_ERROR) {
        (void)ebb__diag_report(b->c, EBB__E0301, x->span, "expected a Machine<..>, found %t", x->type);
    }
    return false;
}

/* A message: a record that can be copied. */
static bool is_message(ebb__body *b, const ebb__ir *x) {
    const ebb__type_info *t = ebb__type_at(b->c, x->type);
    if (t->kind == EBB__TY_ERROR) return false;
    if (t->kind == EBB__TY_REPLY_CAP) {
        (void)ebb__diag_report(b->c, EBB__E0508, x->span, "a capability is not sent");
        return false;
    }
    if (t->moves) {
        (void)ebb__diag_report(b->c, EBB__E0313, x->span, "a %t has one owner and is not copied", x->type);
        return false;
    }
    if (t->kind != EBB__TY_RECORD) {
        (void)ebb__diag_report(b->c, t->kind == EBB__TY_REQUEST_ID ? EBB__E0806 : EBB__E0301, x->span,
                               "a message is a record, this is %t", x->type);
        return false;
    }
    for (uint32_t i = 0; i < t->decl->n_fields; i++) {
        if (!ebb__type_has(b->c, t->decl->fields[i].type, EBB__TY_REQUEST_ID)) continue;
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0806, x->span, "the message has a RequestId in it");
        ebb__diag_label(b->c, d, t->decl->fields[i].span, "the field");
        return false;
    }
    return true;
}

static ebb__role *bound_role(const ebb__body *b, const ebb__ir *handle) {
    if (handle->op == EBB__OP_AS_ROLE) handle = handle->args[0];
    if (handle->op != EBB__OP_SELF_FIELD || b->ts == NULL) return NULL;
    const ebb__field *fields = b->state != NULL ? b->state->fields : b->ts->fields;
    uint32_t n = b->state != NULL ? b->state->n_fields : b->ts->n_fields;
    return handle->a < n ? fields[handle->a].role : NULL;
}

static void record_sent(ebb__body *b, const ebb__ir *to, const ebb__ir *message, bool request,
                        ebb__name label, ebb__span span) {
    ebb__sent *s = b->handler == NULL ? NULL : ebb__vec_push(b->c, &b->handler->sent);
    if (s != NULL) *s = (ebb__sent){message->type, to->type, bound_role(b, to), label, request, span};
    if (request && b->ts != NULL && b->ts->first_request.source == UINT32_MAX) b->ts->first_request = span;
}

static ebb__type responses_of(const ebb__body *b, const ebb__ir *to, ebb__type payload) {
    const ebb__req *req = ebb__req_to(b->c, to->type, payload);
    if (req != NULL) return req->responses;
    const ebb__type_info *t = ebb__type_at(b->c, to->type);
    return t->kind == EBB__TY_MACHINE ? ebb__explicit_responses(t->decl->typestate, payload) : 0;
}

static void report_not_accepted(ebb__body *b, const ebb__ir *to, const ebb__ir *message) {
    const ebb__decl *d = ebb__type_at(b->c, to->type)->decl;
    ebb__diag *diag = ebb__diag_report(b->c, EBB__E0801, message->span, "%t has no handler for %t", to->type,
                                       message->type);
    ebb__diag_label(b->c, diag, d->span, "declared here");
}

/* The span of the word `from` in the call, for a fix that puts another word there. */
static ebb__span word_at(const ebb__body *b, uint32_t node, ebb__name word) {
    for (uint32_t tok = at(b, node)->first; tok < at(b, node)->end; tok++) {
        if (ebb__token_at(b->s, tok)->name == word) return ebb__token_span(b->s, tok);
    }
    return (ebb__span){0};
}

static ebb__ir *make_send(ebb__body *b, uint32_t node, ebb__ir *to, ebb__ir *message) {
    ebb__type result = ebb__type_join(b->c, EBB__TY_UNIT, b->c->check->machine_error);
    ebb__effect_at(b, span_of(b, node), "send");
    if (!is_handle(b, to) || !is_message(b, message)) return ebb__ir_invalid(b, span_of(b, node));
    if (responses_of(b, to, message->type) != 0) {
        ebb__span word = word_at(b, node, EBB__N_send);
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0804, message->span,
                                        "%t is a request: the receiver owes a reply", message->type);
        if (b->in_machine && word.n > 0) {
            ebb__diag_help(b->c, d, "request it");
            ebb__diag_edit(b->c, d, word, "request");
        }
    } else if (!ebb__type_accepts(b->c, to->type, message->type)) {
        report_not_accepted(b, to, message);
    }
    record_sent(b, to, message, false, 0, message->span);
    return ebb__ir_2(b, EBB__OP_SEND, result, span_of(b, node), to, message);
}

static ebb__ir *make_request(ebb__body *b, uint32_t node, ebb__op op, ebb__name label, ebb__ir *to,
                             ebb__ir *message) {
    ebb__span span = span_of(b, node);
    ebb__effect_at(b, span, "request");
    if (!is_handle(b, to) || !is_message(b, message)) return ebb__ir_invalid(b, span);
    ebb__type responses = responses_of(b, to, message->type), value = EBB__TY_REQUEST_ID;
    if (!b->in_machine && !b->pure) {
        (void)ebb__diag_report(
            b->c, EBB__E0807, span,
            "only handlers, timers, entry and exit request: the response is their machine's");
        if (b->ts != NULL) b->ts->misplaced = true;
    } else if (responses == 0 && !ebb__type_accepts(b->c, to->type, message->type)) {
        report_not_accepted(b, to, message);
    } else if (responses == 0) {
        ebb__span word = word_at(b, node, EBB__N_request);
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0805, message->span, "no `req` declares %t for %t",
                                        message->type, to->type);
        if (word.n > 0 && label == 0) {
            ebb__diag_help(b->c, d, "send it");
            ebb__diag_edit(b->c, d, word, "send");
        }
        return ebb__ir_invalid(b, span);
    }
    if (responses == 0) return ebb__ir_invalid(b, span);
    record_sent(b, to, message, true, label, message->span);
    if (op == EBB__OP_EMIT_REQUEST) value = ebb__type_of(b->c, EBB__TY_PENDING, &responses, 1);
    ebb__ir *x = ebb__ir_2(b, op, ebb__type_join(b->c, value, b->c->check->machine_error), span, to, message);
    x->a = label;
    return x;
}

static ebb__ir *send_or_request(ebb__body *b, uint32_t node, ebb__op op, ebb__name label, const char *usage) {
    uint32_t args[2];
    if (!ebb__args_count(b, node, ebb__args_of(b, node, args, 2), 2, 2, usage))
        return ebb__ir_invalid(b, span_of(b, node));
    ebb__ir *to = ebb__infer_borrowed(b, args[0]), *message = ebb__infer(b, args[1], 0);
    return op == EBB__OP_SEND ? make_send(b, node, to, message)
                              : make_request(b, node, op, label, to, message);
}

ebb__ir *ebb__infer_request(ebb__body *b, uint32_t node) {
    return send_or_request(b, node, EBB__OP_REQUEST, ebb__token_at(b->s, at(b, node)->tok)->name,
                           "request:label(machine, message)");
}

ebb__ir *ebb__infer_emit(ebb__body *b, uint32_t node) {
    bool send = ebb__token_at(b->s, at(b, node)->tok)->name == EBB__N_Send;
    return send_or_request(b, node, send ? EBB__OP_SEND : EBB__OP_EMIT_REQUEST, 0,
                           send ? "emit Send(machine, message)" : "emit Request(machine, message)");
}

/* ---- replies ---- */

static ebb__ir *response(ebb__body *b, uint32_t node, ebb__type allowed) {
    ebb__ir *x = ebb__infer(b, node, 0);
    if (x->type == EBB__TY_ERROR || allowed == EBB__TY_ERROR) return x;
    if (ebb__type_fit(b->c, x->type, allowed) == EBB__FIT_NOT) {
        ebb__diag *d =
            ebb__diag_report(b->c, EBB__E0802, x->span, "%t is no response of this request", x->type);
        ebb__diag_note(b->c, d, "it allows %t", allowed);
        if (b->handler != NULL) ebb__diag_label(b->c, d, b->handler->span, "the request");
        return ebb__ir_invalid(b, x->span);
    }
    return x;
}

static ebb__ir *reply_to(ebb__body *b, uint32_t node, const uint32_t *args) {
    ebb__ir *cap = ebb__infer(b, args[0], 0);
    const ebb__type_info *t = ebb__type_at(b->c, cap->type);
    if (t->kind != EBB__TY_REPLY_CAP) {
        if (t->kind != EBB__TY_ERROR)
            (void)ebb__diag_report(b->c, EBB__E0301, cap->span, "expected a ReplyCap, found %t", cap->type);
        (void)ebb__infer(b, args[1], 0);
        return ebb__ir_invalid(b, span_of(b, node));
    }
    return ebb__ir_2(b, EBB__OP_REPLY_TO, EBB__TY_UNIT, span_of(b, node), cap,
                     response(b, args[1], t->of[0]));
}

static ebb__ir *reply_here(ebb__body *b, uint32_t node, uint32_t arg) {
    ebb__local *cap = ebb__local_reply(b);
    ebb__span span = span_of(b, node);
    if (cap == NULL) {
        ebb__ir *x = ebb__infer(b, arg, 0);
        bool bound = b->handler != NULL && b->handler->responses != 0;
        if (bound) {
            ebb__diag *d =
                ebb__diag_report(b->c, EBB__E0511, span, "the capability of this request is bound");
            ebb__diag_label(b->c, d, b->handler->span, "its second parameter");
            for (uint32_t i = 0; i < b->locals.n; i++) {
                ebb__local *l = ebb__local_at(b, i);
                if (l->kind != EBB__L_VAR || ebb__type_kind_of(b->c, l->type) != EBB__TY_REPLY_CAP) continue;
                ebb__diag_help(b->c, d, "reply(%n, ...)", l->name);
                ebb__diag_edit(b->c, d, (ebb__span){x->span.source, x->span.at, 0}, "%n, ", l->name);
                l->flow = EBB__MOVED; /* as the fix does */
                break;
            }
        } else if (x->type != EBB__TY_ERROR) {
            (void)ebb__diag_report(b->c, EBB__E0803, span, "no request is being handled here");
        }
        return ebb__ir_invalid(b, span);
    }
    ebb__ir *x = response(b, arg, b->responses);
    ebb__flow_move(b, cap, span);
    return ebb__ir_1(b, EBB__OP_REPLY, EBB__TY_UNIT, span, x);
}

static ebb__ir *call_reply(ebb__body *b, uint32_t node) {
    uint32_t args[2], n = ebb__args_of(b, node, args, 2);
    ebb__effect_at(b, span_of(b, node), "reply");
    if (!ebb__args_count(b, node, n, 1, 2, "reply(response) or reply(capability, response)"))
        return ebb__ir_invalid(b, span_of(b, node));
    return n == 2 ? reply_to(b, node, args) : reply_here(b, node, args[0]);
}

/* ---- the life of machines ---- */

static ebb__ir *call_spawn(ebb__body *b, uint32_t node) {
    uint32_t arg;
    ebb__span span = span_of(b, node);
    ebb__effect_at(b, span, "spawn");
    if (!ebb__args_count(b, node, ebb__args_of(b, node, &arg, 1), 1, 1, "spawn(value)"))
        return ebb__ir_invalid(b, span);
    ebb__ir *x = ebb__infer(b, arg, 0);
    const ebb__type_info *t = ebb__type_at(b->c, x->type);
    if (t->kind == EBB__TY_STATE)
        return ebb__ir_1(b, EBB__OP_SPAWN, ebb__type_decl(b->c, EBB__TY_MACHINE, t->decl, 0), span, x);
    if (t->kind != EBB__TY_ERROR)
        (void)ebb__diag_report(b->c, EBB__E0301, x->span, "spawn takes a direct value, this is %t", x->type);
    return ebb__ir_invalid(b, span);
}

static ebb__ir *start_or_stop(ebb__body *b, uint32_t node, ebb__name name) {
    uint32_t arg;
    ebb__effect_at(b, span_of(b, node), name == EBB__N_start ? "start" : "stop");
    if (!ebb__args_count(b, node, ebb__args_of(b, node, &arg, 1), 1, 1,
                         name == EBB__N_start ? "start(machine)" : "stop(machine)"))
        return ebb__ir_invalid(b, span_of(b, node));
    ebb__ir *x = ebb__infer_borrowed(b, arg);
    if (!is_handle(b, x)) return ebb__ir_invalid(b, span_of(b, node));
    return ebb__ir_1(b, name == EBB__N_start ? EBB__OP_START : EBB__OP_STOP, EBB__TY_UNIT, span_of(b, node),
                     x);
}

static ebb__ir *end_pending(ebb__body *b, uint32_t node, ebb__name name) {
    uint32_t arg;
    ebb__effect_at(b, span_of(b, node), "end a request");
    if (!ebb__args_count(b, node, ebb__args_of(b, node, &arg, 1), 1, 1,
                         name == EBB__N_forget ? "forget(pending)" : "cancel(pending)"))
        return ebb__ir_invalid(b, span_of(b, node));
    ebb__ir *x = ebb__infer(b, arg, 0);
    uint8_t kind = ebb__type_kind_of(b->c, x->type);
    if (kind != EBB__TY_PENDING && kind != EBB__TY_ERROR)
        (void)ebb__diag_report(b->c, EBB__E0301, x->span, "expected a Pending, found %t", x->type);
    return ebb__ir_1(b, name == EBB__N_forget ? EBB__OP_FORGET : EBB__OP_CANCEL, EBB__TY_UNIT,
                     span_of(b, node), x);
}

static ebb__ir *call_publish(ebb__body *b, uint32_t node) {
    uint32_t args[2];
    ebb__effect_at(b, span_of(b, node), "publish");
    if (!ebb__args_count(b, node, ebb__args_of(b, node, args, 2), 2, 2, "publish(message, key)"))
        return ebb__ir_invalid(b, span_of(b, node));
    ebb__ir *x = ebb__infer(b, args[0], 0), *key = ebb__infer_as(b, args[1], EBB__TY_STRING);
    if (!is_message(b, x)) return ebb__ir_invalid(b, span_of(b, node));
    return ebb__ir_2(b, EBB__OP_PUBLISH, EBB__TY_UNIT, span_of(b, node), x, key);
}

/* The kind is a name, not a value. */
static ebb__ir *call_subscribe(ebb__body *b, uint32_t node, ebb__name name) {
    uint32_t args[2];
    ebb__span span = span_of(b, node);
    ebb__effect_at(b, span, "subscribe");
    if (!ebb__args_count(b, node, ebb__args_of(b, node, args, 2), 2, 2,
                         name == EBB__N_subscribe ? "subscribe(Kind, key)" : "unsubscribe(Kind, key)"))
        return ebb__ir_invalid(b, span);
    ebb__ir *key = ebb__infer_as(b, args[1], EBB__TY_STRING);
    if (at(b, args[0])->kind != EBB__S_PATH_EXPR) {
        (void)ebb__diag_report(b->c, EBB__E0301, span_of(b, args[0]), "expected the name of a message");
        return ebb__ir_invalid(b, span);
    }
    ebb__type kind = ebb__read_message(b->c, b->w, at(b, args[0])->child);
    if (!b->in_machine) (void)ebb__diag_report(b->c, EBB__E0807, span, "only a machine subscribes");
    if (kind == EBB__TY_ERROR || !b->in_machine) return ebb__ir_invalid(b, span);
    ebb__ir *self = ebb__ir_new(b, EBB__OP_SELF, ebb__type_decl(b->c, EBB__TY_MACHINE, b->ts->decl, 0),
                                span_of(b, args[0]), 0);
    ebb__ir *message = ebb__ir_new(b, EBB__OP_INVALID, kind, span_of(b, args[0]), 0);
    if (!ebb__type_accepts(b->c, self->type, kind)) report_not_accepted(b, self, message);
    ebb__ir *x = ebb__ir_1(b, name == EBB__N_subscribe ? EBB__OP_SUBSCRIBE : EBB__OP_UNSUBSCRIBE,
                           EBB__TY_UNIT, span, key);
    x->a = kind;
    return x;
}

ebb__ir *ebb__infer_message(ebb__body *b, uint32_t node, ebb__name name) {
    switch (name) {
    case EBB__N_send: return send_or_request(b, node, EBB__OP_SEND, 0, "send(machine, message)");
    case EBB__N_request: return send_or_request(b, node, EBB__OP_REQUEST, 0, "request(machine, message)");
    case EBB__N_reply: return call_reply(b, node);
    case EBB__N_spawn: return call_spawn(b, node);
    case EBB__N_start:
    case EBB__N_stop: return start_or_stop(b, node, name);
    case EBB__N_forget:
    case EBB__N_cancel: return end_pending(b, node, name);
    case EBB__N_publish: return call_publish(b, node);
    case EBB__N_subscribe:
    case EBB__N_unsubscribe: return call_subscribe(b, node, name);
    default: return NULL;
    }
}

ebb__ir *ebb__infer_handle_method(ebb__body *b, uint32_t node, ebb__ir *handle, ebb__name name) {
    uint32_t arg, n = ebb__args_of(b, node, &arg, 1);
    ebb__span span = span_of(b, node);
    switch (name) {
    case EBB__N_send:
        if (!ebb__args_count(b, node, n, 1, 1, "machine.send(message)")) return ebb__ir_invalid(b, span);
        return make_send(b, node, handle, ebb__infer(b, arg, 0));
    case EBB__N_request:
        if (!ebb__args_count(b, node, n, 1, 1, "machine.request(message)")) return ebb__ir_invalid(b, span);
        return make_request(b, node, EBB__OP_REQUEST, 0, handle, ebb__infer(b, arg, 0));
    case EBB__N_start:
    case EBB__N_stop:
        if (!ebb__args_count(b, node, n, 0, 0, "machine.start() or machine.stop()"))
            return ebb__ir_invalid(b, span);
        ebb__effect_at(b, span, name == EBB__N_start ? "start" : "stop");
        return ebb__ir_1(b, name == EBB__N_start ? EBB__OP_START : EBB__OP_STOP, EBB__TY_UNIT, span, handle);
    default: return NULL;
    }
}
