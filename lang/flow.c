/* lang/flow.c - where linear values are: moves, joins, loops, and ways out. */
#include "lang/body.h"

#include <string.h>

ebb__local *ebb__local_at(const ebb__body *b, uint32_t i) {
    return EBB__VEC_AT(&b->locals, ebb__local, i);
}

uint32_t ebb__slot_new(ebb__body *b, ebb__type type) {
    ebb__type *slot = ebb__vec_push(b->c, &b->slots);
    if (slot == NULL) return 0;
    *slot = type;
    return b->slots.n - 1;
}

ebb__local *ebb__local_add(ebb__body *b, ebb__local_kind kind, ebb__name name, ebb__type type, ebb__span at) {
    bool fits = b->locals.n < EBB__LOCALS_MAX;
    if (!fits) {
        (void)ebb__diag_report(b->c, EBB__E0209, at, "the first behind the limit of %d variables",
                               (int64_t)EBB__LOCALS_MAX);
        b->c->muted = true; /* what follows is about names that are not there */
    }
    ebb__local *l = fits ? ebb__vec_push(b->c, &b->locals) : NULL;
    if (l == NULL) l = EBB__NEW(b->c, ebb__local);
    *l = (ebb__local){.kind = (uint8_t)kind, .flow = EBB__LIVE, .name = name, .type = type, .span = at};
    const char *text = ebb__name_text(b->c, name);
    if (kind == EBB__L_VAR) l->slot = ebb__slot_new(b, type);
    l->quiet = kind != EBB__L_VAR || text[0] == '_';
    return l;
}

ebb__local *ebb__local_find(const ebb__body *b, ebb__name name) {
    for (uint32_t i = b->locals.n; i-- > 0;) {
        ebb__local *l = ebb__local_at(b, i);
        if (l->kind == EBB__L_VAR && l->name == name) return l;
    }
    return NULL;
}

static ebb__local *find_kind(const ebb__body *b, uint8_t kind, uint32_t slot) {
    for (uint32_t i = 0; i < b->locals.n; i++) {
        ebb__local *l = ebb__local_at(b, i);
        if (l->kind == kind && l->slot == slot) return l;
    }
    return NULL;
}

ebb__local *ebb__local_reply(const ebb__body *b) {
    return find_kind(b, EBB__L_REPLY, 0);
}

ebb__local *ebb__local_field(const ebb__body *b, uint32_t field) {
    return find_kind(b, EBB__L_SELF_FIELD, field);
}

static const char *called(const ebb__body *b, const ebb__local *l) {
    if (l->kind == EBB__L_SELF) return "self";
    return ebb__name_text(b->c, l->name);
}

static bool is_cap(const ebb__body *b, const ebb__local *l) {
    return l->kind == EBB__L_REPLY || ebb__type_kind_of(b->c, l->type) == EBB__TY_REPLY_CAP;
}

/* ---- use ---- */

static void report_moved(ebb__body *b, const ebb__local *l, ebb__span at) {
    bool cap = is_cap(b, l), maybe = (l->flow & EBB__LIVE) != 0;
    ebb__diag *d;
    if (cap) {
        d = ebb__diag_report(b->c, EBB__E0507, at,
                             maybe ? "a reply may have been made already" : "a reply was made already");
    } else if (maybe) {
        d = ebb__diag_report(b->c, EBB__E0502, at, "%s is used here, but one branch has consumed it",
                             called(b, l));
    } else {
        d = ebb__diag_report(b->c, EBB__E0501, at, "%s is not there any more", called(b, l));
    }
    ebb__diag_label(b->c, d, l->moved, cap ? "the first reply" : "consumed here");
}

void ebb__flow_borrow(ebb__body *b, ebb__local *l, ebb__span at) {
    l->used = true;
    if ((l->flow & EBB__MOVED) == 0 || b->dead) return;
    report_moved(b, l, at);
    l->flow = EBB__LIVE;
}

void ebb__flow_move(ebb__body *b, ebb__local *l, ebb__span at) {
    ebb__flow_borrow(b, l, at);
    if (l->kind == EBB__L_VAR && !ebb__type_at(b->c, l->type)->moves) return;
    l->flow = EBB__MOVED;
    l->moved = at;
}

/* ---- joins ---- */

ebb__flow *ebb__flow_save(ebb__body *b) {
    ebb__flow *f = EBB__NEW(b->c, ebb__flow);
    f->cells = ebb__lang_array(b->c, b->locals.n + 1, sizeof *f->cells);
    f->dead = b->dead;
    if (f->cells == NULL) return f;
    f->n = b->locals.n;
    for (uint32_t i = 0; i < f->n; i++) {
        const ebb__local *l = ebb__local_at(b, i);
        f->cells[i] = (ebb__cell){l->type, l->flow, l->moved};
    }
    return f;
}

void ebb__flow_load(ebb__body *b, const ebb__flow *f) {
    for (uint32_t i = 0; i < f->n && i < b->locals.n; i++) {
        ebb__local *l = ebb__local_at(b, i);
        l->type = f->cells[i].type;
        l->flow = f->cells[i].flow;
        l->moved = f->cells[i].moved;
    }
    b->dead = f->dead;
}

void ebb__flow_merge(ebb__body *b, const ebb__flow *f, ebb__span at) {
    if (f->dead) return;
    if (b->dead) {
        ebb__flow_load(b, f);
        return;
    }
    for (uint32_t i = 0; i < f->n && i < b->locals.n; i++) {
        ebb__local *l = ebb__local_at(b, i);
        const ebb__cell *x = &f->cells[i];
        if (l->type != x->type && (l->flow & x->flow & EBB__LIVE) != 0 && x->type != EBB__TY_ERROR) {
            ebb__diag *d =
                ebb__diag_report(b->c, EBB__E0502, at, "%s is %t on one branch and %t on the other",
                                 called(b, l), x->type, l->type);
            ebb__diag_label(b->c, d, l->span, "declared here");
            l->type = EBB__TY_ERROR;
        } else if ((l->flow & EBB__LIVE) == 0) {
            l->type = x->type;
        }
        if ((x->flow & EBB__MOVED) != 0 && (l->flow & EBB__MOVED) == 0) l->moved = x->moved;
        l->flow |= x->flow;
    }
}

void ebb__flow_back(ebb__body *b, ebb__flow *head, ebb__span at) {
    if (b->dead) return;
    for (uint32_t i = 0; i < head->n && i < b->locals.n; i++) {
        ebb__local *l = ebb__local_at(b, i);
        ebb__cell *x = &head->cells[i];
        if ((l->flow & EBB__MOVED) != 0 && (x->flow & EBB__MOVED) == 0) {
            if (is_cap(b, l)) {
                (void)ebb__diag_report(b->c, EBB__E0507, l->moved, "the loop may reply more than once");
            } else {
                ebb__diag *d = ebb__diag_report(b->c, EBB__E0503, l->moved,
                                                "the next turn of the loop does not have %s", called(b, l));
                ebb__diag_label(b->c, d, l->span, "declared outside of the loop");
                x->type = EBB__TY_ERROR;
            }
        } else if (l->type != x->type && x->type != EBB__TY_ERROR && l->type != EBB__TY_ERROR) {
            ebb__diag *d =
                ebb__diag_report(b->c, EBB__E0503, at, "%s is %t at the head of the loop and %t here",
                                 called(b, l), x->type, l->type);
            ebb__diag_label(b->c, d, l->span, "declared here");
        }
    }
}

/* ---- ends ---- */

static void report_lost(ebb__body *b, ebb__local *l, ebb__span at) {
    ebb__type t = l->type;
    uint8_t kind = ebb__type_kind_of(b->c, t);
    bool both = (l->flow & EBB__MOVED) != 0;
    ebb__diag *d;
    if (kind == EBB__TY_REPLY_CAP) {
        d = ebb__diag_report(b->c, EBB__E0506, at, "leaves without a reply to %s", called(b, l));
    } else if (both) {
        d = ebb__diag_report(b->c, EBB__E0502, at, "%s is consumed on one branch only", called(b, l));
        ebb__diag_label(b->c, d, l->moved, "consumed here");
    } else if (kind == EBB__TY_PENDING) {
        d = ebb__diag_report(b->c, EBB__E0510, l->span, "%s is neither forgotten, cancelled nor kept",
                             called(b, l));
        ebb__diag_help(b->c, d, "call forget(%s) or cancel(%s)", called(b, l), called(b, l));
        return;
    } else {
        d = ebb__diag_report(b->c, EBB__E0504, at, "%s, a %t, is dropped here", called(b, l), t);
    }
    ebb__diag_label(b->c, d, l->span, "declared here");
}

static bool is_lost(const ebb__body *b, const ebb__local *l) {
    if ((l->flow & EBB__LIVE) == 0 || l->kind == EBB__L_SELF_FIELD) return false;
    return l->kind == EBB__L_VAR && !ebb__type_drops(b->c, l->type);
}

static void report_unused(ebb__body *b, const ebb__local *l) {
    if (l->used || l->quiet || l->name == 0 || b->c->muted) return;
    ebb__diag *d = ebb__diag_report(b->c, EBB__W0905, l->span, "%n is never used", l->name);
    if (l->drop.n > 0) {
        ebb__diag_help(b->c, d, "leave it out");
        ebb__diag_edit(b->c, d, l->drop, "");
    } else {
        ebb__diag_help(b->c, d, "call it _%n", l->name);
        ebb__diag_edit(b->c, d, (ebb__span){l->span.source, l->span.at, 0}, "_");
    }
}

void ebb__scope_end(ebb__body *b, uint32_t from, ebb__span at) {
    for (uint32_t i = from; i < b->locals.n; i++) {
        ebb__local *l = ebb__local_at(b, i);
        if (!b->dead && is_lost(b, l)) report_lost(b, l, at);
        report_unused(b, l);
    }
    if (b->locals.n > from) b->locals.n = from;
}

/* A response without fields that a fix may send. */
static ebb__name unit_response(const ebb__body *b) {
    const ebb__type *of;
    ebb__name found = 0;
    uint32_t n = ebb__type_members(b->c, &b->responses, &of);
    for (uint32_t i = 0; i < n; i++) {
        const ebb__type_info *x = ebb__type_at(b->c, of[i]);
        if (x->kind == EBB__TY_RECORD && x->decl->n_fields == 0) found = x->decl->name;
    }
    return found;
}

static void report_no_reply(ebb__body *b, const ebb__local *l, ebb__span at, ebb__span before) {
    ebb__diag *d = ebb__diag_report(b->c, EBB__E0506, at, "leaves without a reply");
    const char *who =
        b->handler->req == NULL ? "the requester" : ebb__name_text(b->c, b->handler->req->from->name);
    ebb__diag_label(b->c, d, b->handler->span, "%s waits for %t", who, b->responses);
    if ((l->flow & EBB__MOVED) != 0) ebb__diag_label(b->c, d, l->moved, "only this path replies");
    ebb__name unit = unit_response(b);
    bool both = (l->flow & EBB__MOVED) != 0;
    if (unit == 0) return;
    ebb__diag_help(b->c, d, "reply(%n); before %s", unit, b->s->text[at.at] == 'r' ? "return" : "the end");
    if (!both) ebb__diag_edit(b->c, d, before, "reply(%n); ", unit);
}

/* Whether a handler that leaves with `t` stays in its state, goes to another one, or faults. */
enum { STAYS = 1, LEAVES = 2 };

static unsigned where_to(const ebb__body *b, ebb__type t) {
    const ebb__type *of;
    uint32_t n = ebb__type_members(b->c, &t, &of);
    unsigned to = 0;
    for (uint32_t i = 0; i < n; i++) {
        const ebb__type_info *x = ebb__type_at(b->c, of[i]);
        if (x->kind == EBB__TY_STATE)
            to |= LEAVES; /* also for its own state: the literal carries what it keeps */
        else if (!x->is_error && of[i] != EBB__TY_NEVER && of[i] != EBB__TY_ERROR) to |= STAYS;
    }
    return to;
}

static bool gives_state(const ebb__body *b, ebb__type t) {
    const ebb__type *of;
    uint32_t n = ebb__type_members(b->c, &t, &of);
    for (uint32_t i = 0; i < n; i++) {
        if (ebb__type_kind_of(b->c, of[i]) == EBB__TY_STATE && ebb__type_at(b->c, of[i])->decl == b->ts->decl)
            return true;
    }
    return t == EBB__TY_NEVER;
}

static void exit_self_field(ebb__body *b, ebb__local *l, unsigned to, ebb__span at) {
    uint8_t kind = ebb__type_kind_of(b->c, l->type);
    if ((to & LEAVES) != 0 && (l->flow & EBB__LIVE) != 0 && !ebb__type_drops(b->c, l->type)) {
        ebb__code code = kind == EBB__TY_REPLY_CAP ? EBB__E0509
                         : kind == EBB__TY_PENDING ? EBB__E0510
                                                   : EBB__E0504;
        ebb__diag *d = ebb__diag_report(b->c, code, at, "leaves %n, and self.%n is neither used nor kept",
                                        b->state->name, l->name);
        ebb__diag_label(b->c, d, l->span, "the field");
    } else if (to == STAYS && (l->flow & EBB__MOVED) != 0) {
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0501, at, "stays in %n, which has self.%n no more",
                                        b->state->name, l->name);
        ebb__diag_label(b->c, d, l->moved, "consumed here");
    }
}

void ebb__flow_exit(ebb__body *b, ebb__exit_kind kind, ebb__type t, ebb__span at, ebb__span before) {
    if (b->dead || t == EBB__TY_ERROR) return;
    unsigned to = b->handler != NULL ? where_to(b, t) : 0;
    bool rolls_back =
        b->in_machine && (kind == EBB__EXIT_TRY || (b->handler != NULL && to == 0 && t != EBB__TY_NEVER));
    if (rolls_back) return;
    for (uint32_t i = 0; i < b->locals.n; i++) {
        ebb__local *l = ebb__local_at(b, i);
        if (l->kind == EBB__L_REPLY && (l->flow & EBB__LIVE) != 0) report_no_reply(b, l, at, before);
        if (l->kind == EBB__L_SELF_FIELD) exit_self_field(b, l, to, at);
        if (l->kind == EBB__L_SELF && (l->flow & EBB__LIVE) != 0 && !ebb__type_drops(b->c, l->type) &&
            !gives_state(b, t))
            (void)ebb__diag_report(b->c, EBB__E0504, at, "self, a %t, is dropped here", l->type);
        bool cap = ebb__type_kind_of(b->c, l->type) == EBB__TY_REPLY_CAP;
        if (is_lost(b, l) && !(kind == EBB__EXIT_TRY && cap)) report_lost(b, l, at);
    }
}
