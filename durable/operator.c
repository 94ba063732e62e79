/* Operators: terminate, resume, reset, delete. Each reads what it needs, and writes once; a turn that is committed in
 * between makes it read again. */
#include <stdio.h>
#include <string.h>

#include "durable/client.h"
#include "durable/history.h"
#include "durable/run.h"

enum { TRIES = 100 };

typedef struct operation {
    ebb__client_op op;
    const char *reason;
    uint64_t event;
    bool force;
} operation;

static ebb_status read_instance(ebb_cx *cx, ebb__client_op *op, ebb_provider_instance_call **out) {
    ebb_status st = EBB_ERR_NOMEM;
    ebb_provider_instance_call *c = ebb__call_new(ebb__store_gate(op->store), EBB_PROVIDER_INSTANCE);
    *out = NULL;
    if (c == NULL) return st;
    c->id = ebb__call_text(&c->call, op->id);
    *out = ebb__client_ask(cx, &c->call, &st);
    return st;
}

static bool has_ended(const ebb_provider_instance_row *row) {
    return row->state != EBB_INSTANCE_RUNNING && row->state != EBB_INSTANCE_SUSPENDED;
}

static ebb_future *begin(ebb_cx *cx, ebb_store *s, const char *id, const operation *with,
                         ebb_status (*run)(ebb_cx *cx, ebb__client_op *op), const char *site) {
    const ebb_status st = ebb__client_check_id(id);
    if (st != EBB_OK) return ebb__durable_future_failed(cx, st, site);
    operation *o = ebb__client_op_new(s, sizeof *o);
    if (o == NULL) return ebb__durable_future_failed(cx, EBB_ERR_NOMEM, site);
    o->event = with->event;
    o->force = with->force;
    o->op.run = run;
    o->op.id = ebb__client_op_text(&o->op, id);
    o->reason = with->reason != NULL ? ebb__client_op_text(&o->op, with->reason) : "";
    if (o->op.id != NULL && o->reason != NULL) return ebb__client_op_begin(cx, o, site);
    ebb__client_op_free(o);
    return ebb__durable_future_failed(cx, EBB_ERR_NOMEM, site);
}

/* ---- outgoing messages --------------------------------------------------------------------------------------------- */

static ebb_blob encoded(ebb__client_op *op, ebb_provider_call *c, const ebb__event *e) {
    const ebb_blob body = ebb__event_encode(&op->arena, e);
    if (body.at == NULL) ebb__call_nomem(c); /* the begin fails with EBB_ERR_NOMEM */
    return body.at != NULL ? ebb__call_blob(c, body) : body;
}

static const char *text_of(ebb_provider_call *c, ebb__event_text t) {
    char *to = ebb__call_room(c, t.n + 1);
    if (to == NULL) return "";
    if (t.n != 0) memcpy(to, t.at, t.n);
    to[t.n] = 0;
    return to;
}

static ebb_provider_outgoing cancel_of(ebb__client_op *op, ebb_provider_call *c, ebb__event_text child) {
    const ebb__event e = {.kind = EBB__EVENT_CANCEL_REQUESTED,
                          .text = ebb__text_of("its parent was ended by an operator")};
    return (ebb_provider_outgoing){
        .id = text_of(c, child), .kind = EBB_PROVIDER_MESSAGE_CANCEL, .body = encoded(op, c, &e)};
}

/* The parent knows the child by its id. */
static ebb_provider_outgoing end_of(ebb__client_op *op, ebb_provider_call *c, const char *parent) {
    const ebb__event e = {.kind = EBB__EVENT_CHILD_FAILED,
                          .id = ebb__text_of(op->id),
                          .status = EBB_CANCELLED,
                          .text = ebb__text_of("it was terminated")};
    return (ebb_provider_outgoing){
        .id = ebb__call_text(c, parent), .kind = EBB_PROVIDER_MESSAGE_CHILD, .body = encoded(op, c, &e)};
}

/* ---- terminate --------------------------------------------------------------------------------------------------------- */

static ebb_blob last_turn(ebb__client_op *op, const ebb__outstanding *o, const ebb__event *end) {
    ebb__event_writer w = {.arena = &op->arena, .first = o->event + 1};
    for (size_t i = 0; i < o->n; i++) {
        const ebb__event e = {
            .kind = EBB__EVENT_STEP_CANCELLED, .step = o->steps[i].number, .cause = EBB_CANCEL_USER};
        if (o->steps[i].kind != EBB__EVENT_EVENT_AWAITED) (void)ebb__event_write(&w, &e);
    }
    (void)ebb__event_write(&w, end);
    return ebb__event_turn(&w, EBB__SEMANTICS);
}

static ebb_provider_ack_turn_call *last_ack(operation *o, const ebb_provider_instance_row *row,
                                            const ebb__outstanding *had) {
    const ebb_provider_host *host = ebb__store_host(o->op.store);
    const ebb__event end = {.kind = EBB__EVENT_TERMINATED, .text = ebb__text_of(o->reason)};
    ebb_provider_ack_turn_call *a = ebb__call_new(ebb__store_gate(o->op.store), EBB_PROVIDER_ACK_TURN);
    if (a == NULL) return NULL;
    const uint64_t wall = host->wall(host->ctx);
    a->ack_id = ebb__token_new(host);
    a->key = row->key;
    a->execution = row->execution;
    a->turn = row->turn + 1;
    a->at = wall > had->at ? wall : had->at;
    a->body = ebb__call_blob(&a->call, last_turn(&o->op, had, &end));
    a->name = ebb__call_text(&a->call, row->name);
    a->version = row->version;
    a->semantics = EBB__SEMANTICS;
    a->all_work = a->all_timers = true;
    a->cause = EBB_CANCEL_USER;
    a->ends = EBB_INSTANCE_TERMINATED;
    a->result = encoded(&o->op, &a->call, &end);
    a->text = ebb__call_text(&a->call, o->reason);
    ebb_provider_outgoing *outgoing = ebb__call_room(&a->call, (had->n + 1) * sizeof *outgoing);
    a->outgoing = outgoing;
    for (size_t i = 0; outgoing != NULL && i < had->n; i++) {
        if (had->steps[i].kind == EBB__EVENT_CHILD_STARTED)
            outgoing[a->outgoing_n++] = cancel_of(&o->op, &a->call, had->steps[i].id);
    }
    if (outgoing != NULL && *row->parent != 0)
        outgoing[a->outgoing_n++] = end_of(&o->op, &a->call, row->parent);
    if (a->body.at == NULL) ebb__call_nomem(&a->call);
    return a;
}

static ebb_status terminate_once(ebb_cx *cx, operation *o) {
    ebb_provider_instance_call *i;
    ebb__outstanding had = {.arena = &o->op.arena};
    ebb_status st = read_instance(cx, &o->op, &i);
    if (st != EBB_OK) return st;
    if (has_ended(&i->row)) st = ebb__durable_say(EBB_ERR_UNKNOWN_INSTANCE, "%s has ended", o->op.id);
    if (st == EBB_OK) st = ebb__history_read(cx, &o->op, &i->row, i->row.turn, &had, NULL, NULL);
    ebb_provider_ack_turn_call *a = st == EBB_OK ? last_ack(o, &i->row, &had) : NULL;
    if (st == EBB_OK && a == NULL) st = EBB_ERR_NOMEM;
    if (a != NULL) a = ebb__client_ask(cx, &a->call, &st);
    if (a != NULL) ebb__call_free(&a->call);
    ebb__call_free(&i->call);
    return st;
}

static ebb_status terminate(ebb_cx *cx, ebb__client_op *op) {
    ebb_status st = EBB_ERR_FENCED;
    for (int n = 0; n < TRIES && st == EBB_ERR_FENCED; n++) st = terminate_once(cx, (operation *)(void *)op);
    return st;
}

ebb_future *ebb_instance_terminate_site(ebb_cx *cx, ebb_store *s, const char *id, const char *reason,
                                        const char *site) {
    return begin(cx, s, id, &(operation){.reason = reason}, terminate, site);
}

/* ---- resume and delete --------------------------------------------------------------------------------------------------- */

static ebb_status resume(ebb_cx *cx, ebb__client_op *op) {
    ebb_provider_instance_call *i;
    ebb_status st = read_instance(cx, op, &i);
    if (st != EBB_OK) return st;
    ebb_provider_mark_call *c = NULL;
    if (has_ended(&i->row)) st = ebb__durable_say(EBB_ERR_UNKNOWN_INSTANCE, "%s has ended", op->id);
    else if (i->row.state != EBB_INSTANCE_SUSPENDED)
        st = ebb__durable_say(EBB_ERR_INVALID, "%s is %s, not suspended", op->id,
                              ebb_instance_state_name(i->row.state));
    else c = ebb__call_new(ebb__store_gate(op->store), EBB_PROVIDER_MARK);
    if (st == EBB_OK && c == NULL) st = EBB_ERR_NOMEM;
    if (c != NULL) {
        c->key = i->row.key;
        c->execution = i->row.execution;
        c->turn = i->row.turn;
        c->state = EBB_INSTANCE_RUNNING;
        c->text = "";
        c = ebb__client_ask(cx, &c->call, &st);
    }
    if (c != NULL) ebb__call_free(&c->call);
    ebb__call_free(&i->call);
    return st;
}

ebb_future *ebb_instance_resume_site(ebb_cx *cx, ebb_store *s, const char *id, const char *site) {
    return begin(cx, s, id, &(operation){.event = 0}, resume, site);
}

static ebb_status delete (ebb_cx *cx, ebb__client_op *op) {
    const operation *o = (const operation *)(void *)op;
    ebb_provider_instance_call *i;
    ebb_status st = read_instance(cx, op, &i);
    if (st != EBB_OK) return st;
    ebb_provider_remove_call *c = NULL;
    if (!has_ended(&i->row) && !o->force) st = ebb__durable_say(EBB_ERR_BUSY, "%s has not ended", op->id);
    else c = ebb__call_new(ebb__store_gate(op->store), EBB_PROVIDER_REMOVE);
    if (st == EBB_OK && c == NULL) st = EBB_ERR_NOMEM;
    if (c != NULL) {
        uint64_t *key = ebb__call_room(&c->call, sizeof *key);
        if (key != NULL) *key = i->row.key;
        c->keys = key;
        c->keys_n = 1;
        c->force = o->force;
        c = ebb__client_ask(cx, &c->call, &st);
    }
    if (c != NULL && c->removed == 0) st = ebb__durable_say(EBB_ERR_BUSY, "%s runs again", op->id);
    if (c != NULL) ebb__call_free(&c->call);
    ebb__call_free(&i->call);
    return st;
}

ebb_future *ebb_instance_delete_site(ebb_cx *cx, ebb_store *s, const char *id, bool force, const char *site) {
    return begin(cx, s, id, &(operation){.force = force}, delete, site);
}

/* ---- reset ------------------------------------------------------------------------------------------------------------------ */

/* What the later turns had: signals and ends of children, which are delivered again, and children, which are cancelled. */
typedef struct later {
    operation *o;
    ebb_provider_call *call;
    uint64_t keep; /* turns */
    bool ends;     /* the last kept turn has an end */
    const ebb__outstanding *had;
    ebb_provider_message *messages;
    ebb_provider_outgoing *outgoing;
    ebb_provider_value *values;
    size_t messages_n, outgoing_n, values_n, room, outgoing_room, values_room;
} later;

static void *grown(later *l, void *at, size_t n, size_t *room_n, size_t size) {
    if (at != NULL && n < *room_n) return at;
    const size_t room = *room_n != 0 ? 2 * *room_n : 64;
    void *to = ebb__call_room(l->call, room * size);
    if (to == NULL) return NULL;
    if (n != 0) memcpy(to, at, n * size);
    *room_n = room;
    return to;
}

static void set_value(later *l, const ebb__event *e) {
    size_t i = 0;
    while (i < l->values_n && !ebb__same_text(ebb__text_of(l->values[i].key), e->key)) i++;
    ebb_provider_value *at = grown(l, l->values, l->values_n, &l->values_room, sizeof *at);
    if (at == NULL) return;
    l->values = at;
    if (i == l->values_n) at[l->values_n++].key = text_of(l->call, e->key);
    at[i].value = ebb__call_blob(l->call, e->body);
    if (e->flags & EBB__FLAG_REMOVED) at[i] = at[--l->values_n];
}

static void kept_event(later *l, const ebb__event *e) {
    ebb__event_reader r;
    ebb__event v;
    if (e->kind == EBB__EVENT_VALUE_SET) set_value(l, e);
    if (ebb__event_class_of(e->kind) == EBB__CLASS_END) l->ends = true;
    if (e->kind != EBB__EVENT_STARTED) return;
    ebb__event_reader_list(&r, e->values);
    while (ebb__event_read(&r, &v) == EBB_OK) set_value(l, &v);
}

/* The first input of the new execution: what it makes from here on has other ids and random numbers than before. */
static void begin_anew(later *l, uint64_t execution) {
    const ebb_provider_host *host = ebb__store_host(l->o->op.store);
    ebb_provider_message *at = grown(l, NULL, 0, &l->room, sizeof *at);
    ebb__event e = {.kind = EBB__EVENT_RESET};
    host->random(host->ctx, e.seed.at, sizeof e.seed.at);
    l->messages = at;
    if (at == NULL) return; /* the begin fails with EBB_ERR_NOMEM */
    at[l->messages_n++] = (ebb_provider_message){.at = {EBB_PROVIDER_MESSAGE_START, 0},
                                                 .execution = execution,
                                                 .body = encoded(&l->o->op, l->call, &e)};
}

static bool was_started(const later *l, ebb__event_text child) {
    for (size_t i = 0; i < l->had->n; i++) {
        if (l->had->steps[i].kind == EBB__EVENT_CHILD_STARTED && ebb__same_text(l->had->steps[i].id, child))
            return true;
    }
    return false;
}

static void give_again(later *l, const ebb__event *e, ebb_provider_message_kind kind) {
    ebb__event body = *e;
    size_t room = l->room;
    ebb_provider_message *at = grown(l, l->messages, l->messages_n, &room, sizeof *at);
    body.number = 0;
    if (at == NULL) return;
    l->messages = at;
    l->room = room;
    at[l->messages_n++] = (ebb_provider_message){
        .at = {(uint8_t)kind, 0}, .step = e->step, .body = encoded(&l->o->op, l->call, &body)};
}

static void cancel_child(later *l, ebb__event_text child) {
    ebb_provider_outgoing *at = grown(l, l->outgoing, l->outgoing_n, &l->outgoing_room, sizeof *at);
    if (at == NULL) return;
    l->outgoing = at;
    at[l->outgoing_n++] = cancel_of(&l->o->op, l->call, child);
}

static void later_event(void *arg, const ebb_provider_turn_row *row, const ebb__event *e) {
    later *l = arg;
    if (row->turn <= l->keep) {
        kept_event(l, e);
        return;
    }
    switch (e->kind) {
    case EBB__EVENT_SIGNALLED: give_again(l, e, EBB_PROVIDER_MESSAGE_SIGNAL); break;
    case EBB__EVENT_CHILD_COMPLETED:
    case EBB__EVENT_CHILD_FAILED:
        if (was_started(l, e->id)) give_again(l, e, EBB_PROVIDER_MESSAGE_CHILD);
        break;
    case EBB__EVENT_CHILD_STARTED:
        if (!(e->flags & EBB__FLAG_DETACHED)) cancel_child(l, e->id);
        break;
    default: break;
    }
}

static void schedule_again(ebb_provider_reset_call *c, const ebb__outstanding *had) {
    ebb_provider_work *work = ebb__call_room(&c->call, (had->n + 1) * sizeof *work);
    ebb_provider_timer *timers = ebb__call_room(&c->call, (had->n + 1) * sizeof *timers);
    for (size_t i = 0; work != NULL && timers != NULL && i < had->n; i++) {
        const ebb__event *e = &had->steps[i];
        if (e->kind == EBB__EVENT_TIMER_CREATED)
            timers[c->timers_n++] = (ebb_provider_timer){e->number, e->due};
        if (e->kind != EBB__EVENT_ACTIVITY_SCHEDULED) continue;
        const char *name = text_of(&c->call, e->name);
        const size_t room = e->name.n + e->tag.n + 2;
        char *queue = ebb__call_room(&c->call, room);
        if (queue == NULL) return;
        (void)snprintf(queue, room, "%s%s%.*s", name, e->tag.n != 0 ? "@" : "", (int)e->tag.n, e->tag.at);
        work[c->work_n++] = (ebb_provider_work){.activity = e->number,
                                                .queue = queue,
                                                .session = text_of(&c->call, e->session),
                                                .name = name,
                                                .attempt = (uint32_t)e->attempt,
                                                .input = ebb__call_blob(&c->call, e->body)};
    }
    c->work = work;
    c->timers = timers;
}

/* The number of the turn that has the event; 0: none. */
typedef struct place {
    uint64_t event, turn;
} place;

static void find_place(void *arg, const ebb_provider_turn_row *row, const ebb__event *e) {
    place *p = arg;
    if (e->number == p->event) p->turn = row->turn;
}

static ebb_status reset_call(ebb_cx *cx, operation *o, const ebb_provider_instance_row *row, uint64_t keep,
                             ebb_provider_reset_call *c) {
    ebb__outstanding had = {.arena = &o->op.arena};
    later l = {.o = o, .call = &c->call, .keep = keep, .had = &had};
    begin_anew(&l, row->execution + 1);
    ebb_status st = ebb__history_read(cx, &o->op, row, keep, &had, NULL, NULL);
    if (st == EBB_OK) st = ebb__history_read(cx, &o->op, row, row->turn, NULL, later_event, &l);
    if (st == EBB_OK && l.ends)
        st = ebb__durable_say(EBB_ERR_INVALID, "%s ends in turn %llu", o->op.id, (unsigned long long)keep);
    if (st != EBB_OK) return st;
    c->key = row->key;
    c->execution = row->execution;
    c->turn = row->turn;
    c->keep = keep;
    schedule_again(c, &had);
    c->messages = l.messages;
    c->messages_n = l.messages_n;
    c->values = l.values;
    c->values_n = l.values_n;
    c->outgoing = l.outgoing;
    c->outgoing_n = l.outgoing_n;
    return EBB_OK;
}

static ebb_status reset(ebb_cx *cx, ebb__client_op *op) {
    operation *o = (operation *)(void *)op;
    place at = {o->event, 0};
    ebb_provider_instance_call *i;
    ebb_status st = read_instance(cx, op, &i);
    if (st != EBB_OK) return st;
    st = ebb__history_read(cx, op, &i->row, i->row.turn, NULL, find_place, &at);
    if (st == EBB_OK && at.turn == 0)
        st = ebb__durable_say(EBB_ERR_INVALID, "%s has no event %llu", op->id, (unsigned long long)o->event);
    ebb_provider_reset_call *c =
        st == EBB_OK ? ebb__call_new(ebb__store_gate(op->store), EBB_PROVIDER_RESET) : NULL;
    if (st == EBB_OK && c == NULL) st = EBB_ERR_NOMEM;
    if (st == EBB_OK) st = reset_call(cx, o, &i->row, at.turn, c);
    if (st == EBB_OK) c = ebb__client_ask(cx, &c->call, &st);
    if (c != NULL) ebb__call_free(&c->call);
    ebb__call_free(&i->call);
    return st;
}

ebb_future *ebb_instance_reset_site(ebb_cx *cx, ebb_store *s, const char *id, uint64_t event,
                                    const char *site) {
    return begin(cx, s, id, &(operation){.event = event}, reset, site);
}
