/* Clients: start, signal, status, values, cancel. */
#include "durable/client.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "durable/run.h"

/* ---- infos ------------------------------------------------------------------------------------------------------- */

typedef struct info_value {
    ebb_instance_info info;
    ebb_provider_call *call;
} info_value;

static void info_free(void *p) {
    ebb__call_free(((info_value *)p)->call);
}

static const ebb_type info_type = {"instance", 0, NULL, info_free, 0};

const ebb_instance_info *ebb_instance_info_of(const ebb_value *v) {
    return v->type == &info_type ? &((const info_value *)v->as.p)->info : NULL;
}

static const char *text_of(ebb_provider_call *c, ebb__event_text t, const char *otherwise, bool *failed) {
    if (t.n == 0) return otherwise;
    const char *copy = ebb_provider_copy(c, t.at, t.n);
    if (copy == NULL) *failed = true;
    return copy != NULL ? copy : "";
}

static ebb_status read_result(ebb_provider_call *c, const ebb_provider_instance_row *row,
                              ebb_instance_info *out) {
    ebb__event_reader r;
    ebb__event e;
    bool failed = false;
    if (row->result.n == 0) return EBB_OK;
    ebb__event_reader_list(&r, row->result);
    ebb_status st = ebb__event_read(&r, &e);
    if (st != EBB_OK) return ebb__durable_say(EBB_ERR_CORRUPT, "the result of %s is damaged", row->id);
    if (e.kind == EBB__EVENT_COMPLETED) out->output = e.body;
    if (e.kind != EBB__EVENT_FAILED) return EBB_OK;
    out->failure.code = text_of(c, e.code, ebb_status_name(e.status), &failed);
    out->failure.message = text_of(c, e.text, ebb_status_text(e.status), &failed);
    out->failure.details = e.details;
    return failed ? EBB_ERR_NOMEM : EBB_OK;
}

ebb_status ebb__client_info(ebb_provider_call *c, const ebb_provider_instance_row *row,
                            ebb_instance_info *out) {
    *out = (ebb_instance_info){.id = row->id,
                               .name = row->name,
                               .parent = row->parent,
                               .version = row->version,
                               .semantics = row->semantics,
                               .state = row->state,
                               .unserved = row->unserved,
                               .execution = row->execution,
                               .turn = row->turn,
                               .started = row->started,
                               .ended = row->ended,
                               .input = row->input,
                               .text = row->text != NULL ? row->text : "",
                               .custom = row->custom};
    return read_result(c, row, out);
}

ebb_status ebb__client_info_value(ebb_provider_call *c, const ebb_provider_instance_row *row,
                                  ebb_value *out) {
    info_value *v = ebb_provider_alloc(c, sizeof *v);
    ebb_status st = v != NULL ? ebb__client_info(c, row, &v->info) : EBB_ERR_NOMEM;
    if (st != EBB_OK) {
        ebb__call_free(c);
        return st;
    }
    v->call = c;
    *out = ebb_value_owned(&info_type, v);
    return EBB_OK;
}

/* ---- calls ---------------------------------------------------------------------------------------------------------- */

/* The call of a borrowed value, which is the caller's from now on; NULL: *st is how it failed. */
static ebb_provider_call *take_call(ebb_cx *cx, ebb_value *v, ebb_status *st) {
    const ebb_value own = ebb_value_take(cx, v);
    ebb_provider_call *c = ebb__call_of(&own);
    *st = c->status;
    if (c->status == EBB_OK) return c;
    (void)ebb__durable_say(c->status, "%s", *c->text != 0 ? c->text : ebb_status_text(c->status));
    ebb__call_free(c);
    return NULL;
}

static ebb_future *done(ebb_cx *cx, ebb_value *v, void *arg) {
    ebb_status st;
    (void)arg;
    ebb_provider_call *c = take_call(cx, v, &st);
    if (c == NULL) return ebb__durable_future_failed(cx, st, EBB_SITE);
    ebb__call_free(c);
    return ebb_future_ready(cx, ebb_value_none());
}

ebb_future *ebb__client_done(ebb_cx *cx, ebb_provider_call *c, const char *site) {
    return ebb_then_site(cx, ebb__call_begin(cx, c, site), done, NULL, site);
}

static ebb_future *info_future(ebb_cx *cx, ebb_provider_call *c, const ebb_provider_instance_row *row) {
    ebb_value v;
    const ebb_status st = ebb__client_info_value(c, row, &v);
    return st == EBB_OK ? ebb_future_ready(cx, v) : ebb__durable_future_failed(cx, st, EBB_SITE);
}

ebb_status ebb__client_check_id(const char *id) {
    if (ebb__name_is_valid(id)) return EBB_OK;
    return ebb__durable_say(EBB_ERR_INVALID, "no valid id of an instance");
}

static ebb_status check_payload(const char *what, ebb_blob b) {
    if (b.n <= EBB_DURABLE_PAYLOAD) return EBB_OK;
    return ebb__durable_say(EBB_ERR_LIMIT, "%s of %zu bytes (%d)", what, b.n, EBB_DURABLE_PAYLOAD);
}

/* The body of a message, in the call. */
static ebb_blob encoded(ebb_provider_call *c, ebb_allocator a, const ebb__event *e) {
    ebb__arena arena;
    ebb__arena_init(&arena, a, 1024);
    const ebb_blob body = ebb__event_encode(&arena, e);
    ebb_blob copy = {NULL, 0};
    if (body.at != NULL) copy = ebb__call_blob(c, body);
    else ebb__call_nomem(c); /* the begin fails with EBB_ERR_NOMEM */
    ebb__arena_free(&arena);
    return copy;
}

/* ---- start ------------------------------------------------------------------------------------------------------------- */

static ebb_status check_start(const ebb_start_opts *given, ebb_start_opts *o) {
    if (given == NULL) return ebb__durable_say(EBB_ERR_INVALID, "a start needs the name of an orchestration");
    ebb_status st = EBB__DURABLE_OPTS(o, given);
    if (st == EBB_OK && o->id != NULL && !ebb__id_may_start(o->id))
        st = ebb__durable_say(EBB_ERR_INVALID, "no valid id of an instance");
    if (st == EBB_OK && !ebb__name_is_valid(o->name))
        st = ebb__durable_say(EBB_ERR_INVALID, "a start needs the name of an orchestration");
    return st == EBB_OK ? check_payload("an input", o->input) : st;
}

static void fill_start(ebb_store *s, ebb_provider_call *c, ebb_provider_start_call *to,
                       const ebb_start_opts *o) {
    const ebb_provider_host *host = ebb__store_host(s);
    char uuid[37];
    uint64_t random[2];
    host->random(host->ctx, random, sizeof random);
    ebb__uuid_say(random[0], random[1], uuid);
    ebb__event e = {
        .kind = EBB__EVENT_STARTED, .name = ebb__text_of(o->name), .version = o->version, .body = o->input};
    host->random(host->ctx, e.seed.at, sizeof e.seed.at);
    to->id = ebb__call_text(c, o->id != NULL ? o->id : uuid);
    to->name = ebb__call_text(c, o->name);
    to->version = o->version;
    to->input = ebb__call_blob(c, o->input);
    to->message = encoded(c, ebb__store_gate(s)->allocator, &e);
    to->reuse = o->reuse;
}

static ebb_future *started(ebb_cx *cx, ebb_value *v, void *arg) {
    ebb_status st;
    (void)arg;
    ebb_provider_call *c = take_call(cx, v, &st);
    if (c == NULL) return ebb__durable_future_failed(cx, st, EBB_SITE);
    return info_future(cx, c, &((ebb_provider_start_call *)c)->row);
}

ebb_future *ebb_instance_start_site(ebb_cx *cx, ebb_store *s, const ebb_start_opts *opts, const char *site) {
    ebb_start_opts o;
    ebb_status st = check_start(opts, &o);
    ebb_provider_start_call *c = st == EBB_OK ? ebb__call_new(ebb__store_gate(s), EBB_PROVIDER_START) : NULL;
    if (c == NULL) return ebb__durable_future_failed(cx, st != EBB_OK ? st : EBB_ERR_NOMEM, site);
    fill_start(s, &c->call, c, &o);
    return ebb_then_site(cx, ebb__call_begin(cx, &c->call, site), started, NULL, site);
}

/* ---- signals and cancels -------------------------------------------------------------------------------------------------- */

static ebb_status check_signal(const ebb_signal_opts *given, ebb_signal_opts *o, ebb_start_opts *start) {
    if (given == NULL) return ebb__durable_say(EBB_ERR_INVALID, "a signal needs a name");
    ebb_status st = EBB__DURABLE_OPTS(o, given);
    if (st == EBB_OK && o->start != NULL) st = check_start(o->start, start);
    if (st == EBB_OK && o->id == NULL && o->start != NULL) o->id = start->id;
    if (st == EBB_OK) st = ebb__client_check_id(o->id);
    if (st == EBB_OK && !ebb__name_is_valid(o->name))
        st = ebb__durable_say(EBB_ERR_INVALID, "a signal needs a name");
    if (st == EBB_OK && o->dedup != NULL && !ebb__name_is_valid(o->dedup))
        st = ebb__durable_say(EBB_ERR_INVALID, "the dedup id of a signal is not valid");
    return st == EBB_OK ? check_payload("a signal", o->body) : st;
}

ebb_future *ebb_instance_signal_site(ebb_cx *cx, ebb_store *s, const ebb_signal_opts *opts,
                                     const char *site) {
    ebb_signal_opts o;
    ebb_start_opts start;
    ebb_status st = check_signal(opts, &o, &start);
    ebb_provider_send_call *c = st == EBB_OK ? ebb__call_new(ebb__store_gate(s), EBB_PROVIDER_SEND) : NULL;
    if (c == NULL) return ebb__durable_future_failed(cx, st != EBB_OK ? st : EBB_ERR_NOMEM, site);
    const ebb__event e = {.kind = EBB__EVENT_SIGNALLED,
                          .name = ebb__text_of(o.name),
                          .body = o.body,
                          .key = o.dedup != NULL ? ebb__text_of(o.dedup) : (ebb__event_text){NULL, 0}};
    c->kind = EBB_PROVIDER_MESSAGE_SIGNAL;
    c->id = ebb__call_text(&c->call, o.id);
    c->dedup = ebb__call_text(&c->call, o.dedup);
    c->body = encoded(&c->call, ebb__store_gate(s)->allocator, &e);
    ebb_provider_start_call *first = o.start != NULL ? ebb__call_room(&c->call, sizeof *first) : NULL;
    if (first != NULL) {
        memset(first, 0, sizeof *first);
        start.id = o.id;
        fill_start(s, &c->call, first, &start);
        c->start = first;
    }
    return ebb__client_done(cx, &c->call, site);
}

ebb_future *ebb_instance_cancel_site(ebb_cx *cx, ebb_store *s, const char *id, const char *reason,
                                     const char *site) {
    ebb_status st = ebb__client_check_id(id);
    if (st == EBB_OK && reason != NULL) st = check_payload("a reason", ebb_blob_text(reason));
    ebb_provider_send_call *c = st == EBB_OK ? ebb__call_new(ebb__store_gate(s), EBB_PROVIDER_SEND) : NULL;
    if (c == NULL) return ebb__durable_future_failed(cx, st != EBB_OK ? st : EBB_ERR_NOMEM, site);
    const ebb__event e = {.kind = EBB__EVENT_CANCEL_REQUESTED,
                          .text = ebb__text_of(reason != NULL ? reason : "")};
    c->kind = EBB_PROVIDER_MESSAGE_CANCEL;
    c->id = ebb__call_text(&c->call, id);
    c->dedup = "";
    c->body = encoded(&c->call, ebb__store_gate(s)->allocator, &e);
    return ebb__client_done(cx, &c->call, site);
}

/* ---- read ------------------------------------------------------------------------------------------------------------------- */

static ebb_future *read_status(ebb_cx *cx, ebb_value *v, void *arg) {
    ebb_status st;
    (void)arg;
    ebb_provider_call *c = take_call(cx, v, &st);
    if (c == NULL) return ebb__durable_future_failed(cx, st, EBB_SITE);
    return info_future(cx, c, &((ebb_provider_instance_call *)c)->row);
}

ebb_future *ebb_instance_status_site(ebb_cx *cx, ebb_store *s, const char *id, const char *site) {
    const ebb_status st = ebb__client_check_id(id);
    ebb_provider_instance_call *c =
        st == EBB_OK ? ebb__call_new(ebb__store_gate(s), EBB_PROVIDER_INSTANCE) : NULL;
    if (c == NULL) return ebb__durable_future_failed(cx, st != EBB_OK ? st : EBB_ERR_NOMEM, site);
    c->id = ebb__call_text(&c->call, id);
    return ebb_then_site(cx, ebb__call_begin(cx, &c->call, site), read_status, NULL, site);
}

static void blob_free(void *p) {
    ebb__call_free(p);
}

static const ebb_type blob_type = {"value of an instance", 0, NULL, blob_free, 0};

ebb_blob ebb_blob_of(const ebb_value *v) {
    const ebb_blob none = {NULL, 0};
    return v->type == &blob_type ? ((const ebb_provider_value_call *)v->as.p)->value : none;
}

static ebb_future *read_value(ebb_cx *cx, ebb_value *v, void *arg) {
    ebb_status st;
    (void)arg;
    ebb_provider_call *c = take_call(cx, v, &st);
    return c != NULL ? ebb_future_ready(cx, ebb_value_owned(&blob_type, c))
                     : ebb__durable_future_failed(cx, st, EBB_SITE);
}

ebb_future *ebb_instance_get_site(ebb_cx *cx, ebb_store *s, const char *id, const char *key,
                                  const char *site) {
    ebb_status st = ebb__client_check_id(id);
    if (st == EBB_OK && !ebb__name_is_valid(key))
        st = ebb__durable_say(EBB_ERR_INVALID, "the key of a value is not valid");
    ebb_provider_value_call *c = st == EBB_OK ? ebb__call_new(ebb__store_gate(s), EBB_PROVIDER_VALUE) : NULL;
    if (c == NULL) return ebb__durable_future_failed(cx, st != EBB_OK ? st : EBB_ERR_NOMEM, site);
    c->id = ebb__call_text(&c->call, id);
    c->key = ebb__call_text(&c->call, key);
    return ebb_then_site(cx, ebb__call_begin(cx, &c->call, site), read_value, NULL, site);
}

/* ---- operations of several calls ------------------------------------------------------------------------------------------------ */

void *ebb__client_ask(ebb_cx *cx, ebb_provider_call *c, ebb_status *st) {
    ebb_value v;
    *st = ebb_await(cx, ebb__call_begin(cx, c, EBB_SITE), &v);
    if (*st != EBB_OK) return NULL;
    ebb_provider_call *answered = ebb__call_of(&v);
    *st = answered->status;
    if (*st == EBB_OK) return answered;
    (void)ebb__durable_say(*st, "%s", *answered->text != 0 ? answered->text : ebb_status_text(*st));
    ebb__call_free(answered);
    return NULL;
}

void *ebb__client_op_new(ebb_store *s, size_t bytes) {
    ebb__call_gate *g = ebb__store_gate(s);
    ebb__client_op *op = ebb__alloc(&g->allocator, bytes);
    if (op == NULL) return NULL;
    memset(op, 0, bytes);
    op->store = s;
    op->allocator = g->allocator;
    op->bytes = bytes;
    ebb__arena_init(&op->arena, g->allocator, 4096);
    return op;
}

void ebb__client_op_free(void *p) {
    ebb__client_op *op = p;
    ebb_allocator a = op->allocator;
    if (op->refs > 1) {
        op->refs--;
        return;
    }
    ebb__arena_free(&op->arena);
    ebb__free(&a, op, op->bytes);
}

const char *ebb__client_op_text(ebb__client_op *op, const char *text) {
    const size_t n = text != NULL ? strlen(text) + 1 : 0;
    char *to = n != 0 ? ebb__arena_alloc(&op->arena, n) : NULL;
    if (to != NULL) memcpy(to, text, n);
    return to;
}

static ebb_status op_body(ebb_cx *cx, void *arg) {
    ebb__client_op *op = arg;
    const ebb_status st = op->run(cx, op);
    if (st != EBB_OK && st != EBB_ERR_NOMEM)
        (void)snprintf(op->text, sizeof op->text, "%s", ebb_durable_error());
    ebb__client_op_free(op);
    return st;
}

static ebb_value op_value(ebb_cx *cx, ebb_value *v, void *arg) {
    ebb__client_op *op = arg;
    (void)v;
    return op->value != NULL ? op->value(cx, op) : ebb_value_none();
}

static ebb_future *op_failed(ebb_cx *cx, ebb_status st, void *arg) {
    const ebb__client_op *op = arg;
    return ebb__future_failed_because(cx, st, op->text, EBB_SITE);
}

static void op_over(ebb_cx *cx, void *arg) {
    ebb__client_op *op = arg;
    (void)cx;
    if (!op->kept) ebb__client_op_free(op);
}

/* The fiber may go on after the future was cancelled. */
ebb_future *ebb__client_op_begin(ebb_cx *cx, void *p, const char *site) {
    ebb__client_op *op = p;
    ebb_future *f = ebb_fiber_go_site(cx, ebb_cx_region(cx), op_body, op, NULL, site);
    if (ebb_future_status_of(f) != EBB_PENDING) {
        ebb__client_op_free(op);
        return f;
    }
    op->refs = 2;
    f = ebb_map_site(cx, ebb_catch_site(cx, f, op_failed, op, site), op_value, op, site);
    if (ebb_future_on_cleanup(f, op_over, op) != EBB_OK) op_over(cx, op);
    return f;
}
