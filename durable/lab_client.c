/* What clients ask of the lab provider: start, send, and reads of one instance; and messages that instances send. */
#include "durable/lab_rows.h"

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const char *text_of(ebb_provider_call *c, const ebb__lab_bytes *b, bool *whole) {
    const char *to = b != NULL ? ebb_provider_copy(c, b->at, b->n) : "";
    *whole = *whole && to != NULL;
    return to;
}

static ebb_blob blob_of(ebb_provider_call *c, const ebb__lab_bytes *b, bool *whole) {
    ebb_blob to = {NULL, 0};
    if (b == NULL) return to;
    to.at = ebb_provider_copy(c, b->at, b->n);
    to.n = b->n;
    *whole = *whole && to.at != NULL;
    return to;
}

bool ebb__lab_row(ebb__lab_self *s, ebb_provider_call *c, const ebb__lab_instance *i, bool whole,
                  ebb_provider_instance_row *out) {
    bool copied = true;
    *out = (ebb_provider_instance_row){.key = i->key,
                                       .version = i->version,
                                       .semantics = i->semantics,
                                       .execution = i->execution,
                                       .turn = i->turn,
                                       .state = i->state,
                                       .started = i->started,
                                       .ended = i->ended,
                                       .unserved = ebb__lab_is_unserved(s->data, i)};
    out->id = text_of(c, i->id, &copied);
    out->name = text_of(c, i->name, &copied);
    out->parent = text_of(c, i->parent, &copied);
    out->text = text_of(c, i->text, &copied);
    out->custom = blob_of(c, i->custom, &copied);
    if (whole) out->input = blob_of(c, i->input, &copied);
    if (whole) out->result = blob_of(c, i->result, &copied);
    return copied;
}

static void fail_unknown(ebb_provider_call *c, const char *id) {
    ebb__provider_fail(c, EBB_ERR_UNKNOWN_INSTANCE, "instance '%s' is not there, or has ended", id);
}

/* ---- start --------------------------------------------------------------------------------------------------------- */

typedef struct starting {
    ebb__lab_instance *instance; /* that there is; NULL: a new one */
    ebb__lab_instance *new;
    ebb__lab_message *message;
    ebb__lab_bytes *name, *input; /* of an instance that is used again */
    bool existed;
} starting;

static bool is_same(const ebb__lab_instance *i, const ebb_provider_start_call *c) {
    return strcmp(i->name->at, c->name) == 0 && i->input->n == c->input.n &&
           (c->input.n == 0 || memcmp(i->input->at, c->input.at, c->input.n) == 0);
}

/* Looks, and makes what a start inserts. */
static ebb_status start_make(ebb__lab_batch *b, const ebb_provider_start_call *c, starting *t) {
    memset(t, 0, sizeof *t);
    t->instance = ebb__lab_find(b->data, c->id);
    const bool again = t->instance != NULL && c->reuse && ebb__lab_has_ended(t->instance);
    if (t->instance != NULL && !again) {
        t->existed = true;
        return is_same(t->instance, c) ? EBB_OK : EBB_ERR_EXISTS;
    }
    t->message = ebb__lab_message_new(b, EBB_PROVIDER_MESSAGE_START, c->message);
    if (again) {
        t->name = ebb__lab_bytes_new(b, ebb_blob_text(c->name));
        t->input = ebb__lab_bytes_new(b, c->input);
    } else t->new = ebb__lab_instance_new(b, c->id, c->name, NULL, c->input);
    return b->failed ? EBB_ERR_NOMEM : EBB_OK;
}

static void use_again(ebb__lab_self *s, const starting *t, uint32_t version) {
    ebb__lab_instance *i = t->instance;
    ebb__lab_drop_messages(s, i, 0); /* signals and a cancel that came with its end */
    ebb__lab_next_execution(s, i, version);
    ebb__lab_bytes_set(s->data, &i->name, t->name);
    ebb__lab_bytes_set(s->data, &i->input, t->input);
    ebb__lab_bytes_set(s->data, &i->result, NULL);
    ebb__lab_bytes_set(s->data, &i->custom, NULL);
    ebb__lab_bytes_set(s->data, &i->text, NULL);
    ebb__lab_delete_values(s->data, i);
    i->state = EBB_INSTANCE_RUNNING;
    i->started = s->data->now;
    i->ended = 0;
    i->semantics = i->unread = 0;
}

static ebb__lab_instance *start_commit(ebb__lab_self *s, const ebb_provider_start_call *c,
                                       const starting *t) {
    ebb__lab_instance *i = t->new != NULL ? t->new : t->instance;
    if (t->existed) return i;
    if (t->new != NULL) {
        i->version = c->version;
        ebb__lab_add_instance(s, i);
    } else use_again(s, t, c->version);
    t->message->execution = i->execution;
    ebb__lab_add_message(s, i, t->message, true);
    return i;
}

void ebb__lab_start(ebb__lab_self *s, ebb_provider_start_call *c) {
    ebb__lab_batch b = {.data = s->data};
    starting t;
    (void)ebb__lab_now(s);
    const ebb_status st = start_make(&b, c, &t);
    if (st == EBB_ERR_NOMEM) ebb__lab_undo(&b);
    if (st == EBB_ERR_EXISTS)
        ebb__provider_fail(&c->call, st, "instance '%s' exists with another name or input", c->id);
    else if (st != EBB_OK) ebb_provider_done(&c->call, st, "no memory for an instance");
    else {
        const ebb__lab_instance *i = start_commit(s, c, &t);
        c->existed = t.existed;
        /* what is committed is committed: the caller asks again, and finds it */
        if (ebb__lab_row(s, &c->call, i, true, &c->row)) ebb__lab_done(s, &c->call);
        else ebb_provider_done(&c->call, EBB_ERR_NOMEM, "no memory for the answer");
    }
}

/* ---- send ------------------------------------------------------------------------------------------------------------ */

static uint64_t count(const ebb__lab_instance *i, ebb_provider_message_kind kind) {
    uint64_t n = 0;
    for (ebb__lab_links *at = i->messages.first; at != NULL; at = at->next)
        n += EBB__LAB_OF(ebb__lab_message, links, at)->kind == kind;
    return n;
}

static bool was_sent(const ebb__lab_instance *i, const char *dedup) {
    for (ebb__lab_links *at = i->dedups.first; at != NULL; at = at->next)
        if (strcmp(EBB__LAB_OF(ebb__lab_dedup, links, at)->id, dedup) == 0) return true;
    return false;
}

static bool is_repeated(const ebb__lab_instance *i, const ebb_provider_send_call *c) {
    if (c->kind == EBB_PROVIDER_MESSAGE_CANCEL) return count(i, EBB_PROVIDER_MESSAGE_CANCEL) > 0;
    return c->dedup != NULL && *c->dedup != 0 && was_sent(i, c->dedup);
}

static void send_to(ebb__lab_self *s, ebb_provider_send_call *c, ebb__lab_instance *i, ebb__lab_message *m,
                    ebb__lab_dedup *dedup) {
    if (dedup != NULL) ebb__lab_append(&i->dedups, &dedup->links);
    ebb__lab_add_message(s, i, m, false);
    ebb__lab_done(s, &c->call);
}

/* The instance as it will be after `start`; one that is new or used again has no signals and no dedup ids. */
void ebb__lab_send(ebb__lab_self *s, ebb_provider_send_call *c) {
    ebb__lab_batch b = {.data = s->data};
    starting t = {.existed = true};
    (void)ebb__lab_now(s);
    ebb_status st = EBB_OK;
    const bool has_dedup = c->kind == EBB_PROVIDER_MESSAGE_SIGNAL && c->dedup != NULL && *c->dedup != 0;
    ebb__lab_instance *i = ebb__lab_find(s->data, c->id);
    const bool missing = i == NULL || ebb__lab_has_ended(i);
    if (missing && c->start != NULL) st = start_make(&b, c->start, &t);
    else if (missing) st = EBB_ERR_UNKNOWN_INSTANCE;
    if (st == EBB_OK && missing && t.existed) st = EBB_ERR_UNKNOWN_INSTANCE;
    const bool repeated = st == EBB_OK && !missing && is_repeated(i, c);
    if (st == EBB_OK && !missing && !repeated && c->kind == EBB_PROVIDER_MESSAGE_SIGNAL &&
        count(i, EBB_PROVIDER_MESSAGE_SIGNAL) + i->unread >= EBB_DURABLE_SIGNALS)
        st = EBB_ERR_LIMIT;
    ebb__lab_message *m = st == EBB_OK && !repeated ? ebb__lab_message_new(&b, c->kind, c->body) : NULL;
    ebb__lab_dedup *d = m != NULL && has_dedup ? ebb__lab_dedup_new(&b, c->dedup) : NULL;
    if (b.failed) st = EBB_ERR_NOMEM;
    if (st != EBB_OK) ebb__lab_undo(&b);
    if (st == EBB_ERR_UNKNOWN_INSTANCE) fail_unknown(&c->call, c->id);
    else if (st == EBB_ERR_LIMIT)
        ebb__provider_fail(&c->call, st, "instance '%s' has %d signals that it has not taken (%d)", c->id,
                           EBB_DURABLE_SIGNALS, EBB_DURABLE_SIGNALS);
    else if (st != EBB_OK) ebb__provider_fail(&c->call, st, "a message to instance '%s' was not sent", c->id);
    else if (repeated) ebb__lab_read(&c->call);
    else send_to(s, c, missing ? start_commit(s, c->start, &t) : i, m, d);
}

/* ---- outgoing ----------------------------------------------------------------------------------------------------------- */

void ebb__lab_outbox_make(ebb__lab_batch *b, ebb_provider_call *c, const ebb__lab_instance *from,
                          const ebb_provider_outgoing *outgoing, size_t n, ebb__lab_outbox *box) {
    *box = (ebb__lab_outbox){.outgoing = outgoing,
                             .n = n,
                             .messages = ebb__lab_array(b, c, n),
                             .exist = ebb__lab_array(b, c, n),
                             .children = ebb__lab_array(b, c, n)};
    for (size_t k = 0; k < n && !b->failed; k++) {
        const ebb_provider_outgoing *o = &outgoing[k];
        const bool child = o->kind == EBB_PROVIDER_MESSAGE_START;
        box->messages[k] = ebb__lab_message_new(b, o->kind, o->body);
        box->exist[k] = child ? ebb__lab_message_new(b, EBB_PROVIDER_MESSAGE_CHILD, o->exists) : NULL;
        box->children[k] = child ? ebb__lab_instance_new(b, o->id, o->name, from->id->at, o->input) : NULL;
    }
}

static void instance_free(ebb__lab_data *d, ebb__lab_instance *i) {
    ebb__lab_bytes_set(d, &i->id, NULL);
    ebb__lab_bytes_set(d, &i->name, NULL);
    ebb__lab_bytes_set(d, &i->parent, NULL);
    ebb__lab_bytes_set(d, &i->input, NULL);
    ebb__lab_free(d, i);
}

/* Two children of one id in one ack: the second finds the first. */
static void start_child(ebb__lab_self *s, ebb__lab_instance *from, uint64_t execution, ebb__lab_outbox *box,
                        size_t k) {
    const ebb_provider_outgoing *o = &box->outgoing[k];
    const bool exists = ebb__lab_find(s->data, o->id) != NULL;
    ebb__lab_message *m = exists ? box->exist[k] : box->messages[k];
    ebb__lab_free(s->data, exists ? box->messages[k] : box->exist[k]);
    if (!exists) {
        box->children[k]->version = o->version;
        ebb__lab_add_instance(s, box->children[k]);
        m->execution = 1;
        ebb__lab_add_message(s, box->children[k], m, false);
        return;
    }
    instance_free(s->data, box->children[k]);
    m->step = o->step;
    m->execution = execution;
    if (ebb__lab_has_ended(from) || from->execution != execution) ebb__lab_free(s->data, m);
    else ebb__lab_add_message(s, from, m, false);
}

uint32_t ebb__lab_outbox_deliver(ebb__lab_self *s, ebb__lab_instance *from, uint64_t execution,
                                 ebb__lab_outbox *box) {
    uint32_t dropped = 0;
    for (size_t k = 0; k < box->n; k++) {
        const ebb_provider_outgoing *o = &box->outgoing[k];
        ebb__lab_message *m = box->messages[k];
        if (o->kind == EBB_PROVIDER_MESSAGE_START) {
            start_child(s, from, execution, box, k);
            continue;
        }
        ebb__lab_instance *to = ebb__lab_find(s->data, o->id);
        m->execution = o->execution;
        m->step = o->step;
        if (to == NULL || ebb__lab_has_ended(to) || (o->execution != 0 && o->execution != to->execution)) {
            ebb__lab_free(s->data, m);
            dropped++;
        } else ebb__lab_add_message(s, to, m, false);
    }
    s->stats.dropped += dropped;
    return dropped;
}

/* ---- reads --------------------------------------------------------------------------------------------------------------- */

static bool put_turn(ebb_provider_history_call *c, const ebb__lab_turn *t) {
    const void *body = ebb_provider_copy(&c->call, t->body.at, t->body.n);
    c->turns[c->turns_n++] = (ebb_provider_turn_row){t->execution, t->turn, t->at, {body, t->body.n}};
    return body != NULL;
}

static bool read_turns(ebb_provider_history_call *c, const ebb__lab_instance *i, uint64_t execution) {
    const uint64_t most = c->most != 0 && c->most < i->turns.n ? c->most : i->turns.n;
    uint64_t bytes = 0;
    bool whole = true;
    c->turns_n = 0;
    c->turns = ebb_provider_alloc(&c->call, ((size_t)most + 1) * sizeof *c->turns);
    if (c->turns == NULL) return false;
    for (ebb__lab_links *at = i->turns.first; at != NULL && whole && !c->more; at = at->next) {
        const ebb__lab_turn *t = EBB__LAB_OF(ebb__lab_turn, links, at);
        if (t->execution != execution || t->turn <= c->after) continue;
        c->more = c->turns_n == most || (c->turns_n > 0 && c->bytes != 0 && bytes + t->body.n > c->bytes);
        if (!c->more) whole = put_turn(c, t);
        bytes += t->body.n;
    }
    return whole;
}

void ebb__lab_history(ebb__lab_self *s, ebb_provider_history_call *c) {
    const ebb__lab_instance *i =
        c->key != 0 ? ebb__lab_find_key(s->data, c->key) : ebb__lab_find(s->data, c->id);
    c->more = false;
    if (i == NULL) fail_unknown(&c->call, c->id != NULL ? c->id : "");
    else if (!read_turns(c, i, c->execution != 0 ? c->execution : i->execution))
        ebb_provider_done(&c->call, EBB_ERR_NOMEM, "no memory for the history");
    else ebb__lab_read(&c->call);
}

void ebb__lab_instance_of(ebb__lab_self *s, ebb_provider_instance_call *c) {
    (void)ebb__lab_now(s);
    const ebb__lab_instance *i = ebb__lab_find(s->data, c->id);
    if (i == NULL) fail_unknown(&c->call, c->id);
    else if (!ebb__lab_row(s, &c->call, i, true, &c->row))
        ebb_provider_done(&c->call, EBB_ERR_NOMEM, "no memory for the instance");
    else ebb__lab_read(&c->call);
}

void ebb__lab_value_of(ebb__lab_self *s, ebb_provider_value_call *c) {
    const ebb__lab_instance *i = ebb__lab_find(s->data, c->id);
    const ebb__lab_value *v = i != NULL ? ebb__lab_find_value(i, c->key) : NULL;
    c->value = (ebb_blob){NULL, 0};
    if (v != NULL) c->value = (ebb_blob){ebb_provider_copy(&c->call, v->value.at, v->value.n), v->value.n};
    if (i == NULL) fail_unknown(&c->call, c->id);
    else if (v != NULL && c->value.at == NULL)
        ebb_provider_done(&c->call, EBB_ERR_NOMEM, "no memory for the value");
    else ebb__lab_read(&c->call);
}

void ebb__lab_outstanding(ebb__lab_self *s, ebb_provider_outstanding_call *c) {
    const uint64_t now = ebb__lab_now(s);
    const ebb__lab_instance *i = ebb__lab_find(s->data, c->id);
    if (i == NULL) {
        fail_unknown(&c->call, c->id);
        return;
    }
    c->work = i->work.n;
    c->timers = i->timers.n;
    c->messages = i->messages.n;
    c->claimed = 0;
    for (ebb__lab_links *at = i->work.first; at != NULL; at = at->next)
        c->claimed += EBB__LAB_OF(ebb__lab_work, links, at)->until > now;
    ebb__lab_read(&c->call);
}
