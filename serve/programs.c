/* Programs of typestate machines: which messages System may send, and the sending. */
#include "serve/program_value.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "durable/info_json.h"
#include "future/machine.h"
#include "workflow/inspect.h"

enum { WITHIN_MS = 30000, LOOK = 100000 };

/* ---- what they take ----------------------------------------------------------------------------------------------- */

static json_t *fields_json(const ebb__shape *shapes, const ebb__shape *s) {
    json_t *all = json_array();
    for (uint32_t i = 0; i < s->n && all != NULL; i++) {
        json_t *j = json_object();
        bool ok = j != NULL;
        ebb__json_put(&ok, j, "name", ebb__text_json(s->names[i]));
        ebb__json_put(&ok, j, "type", ebb__text_json(shapes[s->of[i]].name));
        if (!ok) json_decref(j);
        if (ok && json_array_append_new(all, j) == 0) continue;
        json_decref(all);
        all = NULL;
    }
    return all;
}

static json_t *replies_json(const ebb_program *p, uint32_t responses) {
    const ebb__shape *s = &p->image.shapes[responses];
    json_t *all = json_array();
    const uint32_t n = responses == 0 ? 0 : s->kind == EBB__TY_UNION ? s->n : 1;
    for (uint32_t i = 0; i < n && all != NULL; i++) {
        const uint32_t member = s->kind == EBB__TY_UNION ? s->of[i] : responses;
        if (json_array_append_new(all, ebb__text_json(p->image.shapes[member].name)) == 0) continue;
        json_decref(all);
        all = NULL;
    }
    return all;
}

static json_t *message_json(const ebb_program *p, uint32_t kind, const char *protocol) {
    const ebb__ir_kind *k = &p->image.ir->kinds[kind];
    json_t *j = json_object();
    bool ok = j != NULL;
    ebb__json_put(&ok, j, "message", ebb__text_json(p->image.shapes[k->type].name));
    ebb__json_put(&ok, j, "protocol", ebb__text_json(protocol));
    ebb__json_put(&ok, j, "request", json_boolean(k->responses != 0));
    ebb__json_put(&ok, j, "replies", replies_json(p, k->responses));
    ebb__json_put(&ok, j, "fields", fields_json(p->image.shapes, &p->image.shapes[k->type]));
    if (ok) return j;
    json_decref(j);
    return NULL;
}

static json_t *messages_json(const ebb_program *p) {
    json_t *all = json_array();
    for (uint32_t k = 1; k < p->image.ir->n_kinds && all != NULL; k++) {
        const char *protocol = ebb__system_protocol(p, k);
        if (protocol == NULL || json_array_append_new(all, message_json(p, k, protocol)) == 0) continue;
        json_decref(all);
        all = NULL;
    }
    return all;
}

static json_t *program_json(const ebb_program *p) {
    ebb_machines_stats s;
    json_t *j = json_object();
    bool ok = j != NULL;
    ebb_machines_stats_of(p->ms, &s);
    ebb__json_put(&ok, j, "name", ebb__text_json(ebb__machines_name(p->ms)));
    ebb__json_put(&ok, j, "machines", json_integer(s.machines));
    ebb__json_put(&ok, j, "queued", json_integer(s.queued));
    ebb__json_put(&ok, j, "pending", json_integer(s.pending));
    ebb__json_put(&ok, j, "faults", json_integer((json_int_t)s.faults));
    ebb__json_put(&ok, j, "dead_letters", json_integer((json_int_t)s.dead));
    ebb__json_put(&ok, j, "messages", messages_json(p));
    if (ok) return j;
    json_decref(j);
    return NULL;
}

ebb_status ebb__serve_programs(ebb__ask *a) {
    json_t *all = json_array(), *j = json_object();
    bool ok = all != NULL && j != NULL;
    for (ebb_machines *ms = NULL; ok && (ms = ebb__machines_next(ebb__rt_of(a->cx), ms)) != NULL;) {
        const ebb_program *p = ebb__program_of(ms);
        if (p != NULL) ok = json_array_append_new(all, program_json(p)) == 0;
    }
    ebb__json_put(&ok, j, "programs", all);
    if (!ok) json_decref(j);
    return ebb__answer(a, 200, ok ? j : NULL);
}

/* ---- a message ---------------------------------------------------------------------------------------------------- */

/* What a request sends: to whom, and as what. */
typedef struct call {
    ebb__ask *a;
    ebb_program *p;
    const char *message; /* its name */
    uint32_t type, kind;
    ebb_machine to;
    ebb_region region; /* of its machines: no later program has the same */
} call;

static bool refuse(ebb__ask *a, int status, const char *code, const char *what, const char *name) {
    return ebb__problem_set(a, status, code, NULL, NULL, "%s '%.60s'", what, name);
}

static bool find_message(call *c) {
    const char *program = ebb_http_param(c->a->x, "program");
    c->message = ebb_http_param(c->a->x, "message");
    if (program == NULL || c->message == NULL)
        return ebb__problem_set(c->a, 503, "no_memory", NULL, NULL, "no memory for the request");
    c->p = ebb_program_find(c->a->cx, program);
    if (c->p == NULL) return refuse(c->a, 404, "no_such_program", "there is no program", program);
    c->type = ebb__message_named(c->p, c->message);
    c->kind = c->type != 0 ? c->p->image.shapes[c->type].kind_id : 0;
    c->region = ebb_machines_region(c->p->ms);
    if (c->kind != 0 && ebb__system_protocol(c->p, c->kind) != NULL) return true;
    return refuse(c->a, 404, "no_such_message", "no role takes from System a message", c->message);
}

/* Whether some state of its type handles, or defers, the message. */
static bool takes(const ebb_machine_type *t, uint32_t kind) {
    return t->column != NULL && t->column[kind] != 0;
}

static bool find_given(call *c, const char *text) {
    ebb_machine_info info;
    if (!ebb__id_of(text, &c->to.id))
        return ebb__problem_set(c->a, 400, "bad_value", "/machine", "three numbers, as 1.5.2",
                                "'%.40s' is no id", text);
    if (ebb_machine_info_of(c->p->ms, c->to, &info) != EBB_OK)
        return refuse(c->a, 404, "no_such_machine", "the program has no machine", text);
    if (info.type == NULL || info.lifecycle >= EBB_MACHINE_FAULTED)
        return ebb__problem_set(c->a, 410, "stopped", "/machine", NULL, "machine %.40s has %s", text,
                                info.type == NULL ? "stopped" : "faulted");
    if (takes(info.type, c->kind)) return true;
    return ebb__problem_set(c->a, 409, "unhandled", "/machine", NULL, "%s %.40s never takes %.60s",
                            info.type->name, text, c->message);
}

/* The only machine that takes it. */
static bool find_only(call *c) {
    const ebb_machines *ms = c->p->ms;
    uint32_t found = 0, n = 0, left = LOOK;
    for (uint32_t i = ms->youngest; i != 0 && n < 2 && left > 0; left--) {
        const ebb__machine *m = ebb__machine_at(ms, i);
        if (m->lifecycle <= EBB_MACHINE_RUNNING && takes(&m->type->t, c->kind)) {
            found = i;
            n++;
        }
        i = m->older;
    }
    if (n == 1 && left > 0) {
        c->to.id = ebb__machine_id(ms, found);
        return true;
    }
    if (n == 0 && left > 0) return refuse(c->a, 410, "no_machine", "no machine that runs takes", c->message);
    return ebb__problem_set(c->a, 400, "bad_value", "/machine", "the id of a machine, as \"1.5.2\"",
                            "'machine' is missing: more than one may take %.60s", c->message);
}

/* ---- answers ------------------------------------------------------------------------------------------------------ */

/* Whether the program that was asked is still there. It may have ended since it gave its answer, or have been freed. */
static bool is_there(const call *c) {
    const ebb_machines *ms = ebb__machines_in(ebb__rt_of(c->a->cx), c->region);
    return ms != NULL && ebb__program_of(ms) == c->p;
}

static void say_json(void *ctx, const char *text, size_t n) {
    ebb__inspect_say(ctx, "%.*s", (int)n, text);
}

static ebb_status answer_reply(call *c, ebb_value v) {
    const ebb_machine_answer *r = v.as.p;
    ebb__inspect_text t = {.allocator = ebb__rt_allocator(ebb__rt_of(c->a->cx))};
    ebb__inspect_say(&t, "{\"reply\":");
    ebb__inspect_string(&t, c->p->kinds[r->kind].name);
    ebb__inspect_say(&t, ",\"fields\":");
    ebb_status st = ebb_program_json(c->p, r->kind, r->payload, say_json, &t);
    ebb__inspect_say(&t, "}");
    ebb_value_discard(c->a->cx, v);
    if (st == EBB_OK && t.failed) st = EBB_ERR_NOMEM;
    if (st == EBB_OK) st = ebb_http_reply(c->a->cx, c->a->x, 200, "application/json", t.at, t.n);
    else st = ebb__answer_failure(c->a, st, "the reply is nested too deep, or there is no memory for it");
    ebb__inspect_text_free(&t);
    return st;
}

static ebb_status answer_fault(call *c) {
    ebb_program_event e;
    if (!is_there(c) || !ebb_program_fault_of(c->p, c->to, &e))
        return ebb__answer_failure(c->a, EBB_FAULTED, NULL);
    char text[sizeof c->a->problem.message], place[sizeof c->a->problem.where];
    ebb__fault_say(&e, text, sizeof text);
    ebb__fault_place(&e, place, sizeof place);
    (void)ebb__problem_set(c->a, 500, "faulted", place, NULL, "%s", text);
    c->a->problem.fault = e.code;
    return ebb__answer_problem(c->a);
}

static const char *failure_text(ebb_status st) {
    switch (st) {
    case EBB_ERR_MAILBOX_FULL: return "the mailbox of the machine is full; the message was not sent";
    case EBB_ERR_NOT_RUNNING: return "the machine has stopped";
    case EBB_ERR_UNHANDLED: return "the machine does not take the message in its state";
    case EBB_TIMEOUT: return "the machine has not replied in time";
    case EBB_ERR_LIMIT: return "the message has more than 65536 bytes";
    default: return NULL;
    }
}

static ebb_status answer_status(call *c, ebb_status st) {
    if (st == EBB_OK) return ebb__answer(c->a, 202, json_pack("{s:b}", "accepted", 1));
    return st == EBB_FAULTED ? answer_fault(c) : ebb__answer_failure(c->a, st, failure_text(st));
}

/* ---- sending ------------------------------------------------------------------------------------------------------ */

/* The body's fields, or none. NULL: there is a problem. */
static json_t *given_fields(ebb__ask *a) {
    const ebb__given *g = ebb__given_of(a, "fields");
    json_t *j =
        g->is ? json_loadb(g->json.at, g->json.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : json_object();
    if (j == NULL) (void)ebb__problem_set(a, 503, "no_memory", NULL, NULL, "no memory for the request");
    return j;
}

/* Makes the message. False: there is a problem, or *st. */
static bool make(call *c, ebb__run *run, ebb__parcel *x, ebb_status *st) {
    json_t *fields = given_fields(c->a);
    ebb__object *o = fields != NULL ? ebb__program_message(c->a, run, c->type, fields) : NULL;
    json_decref(fields);
    if (o == NULL) return false;
    *st = ebb__parcel_make(run, o, x);
    return *st == EBB_OK;
}

/* Sends it. `*reply`: what is to come; NULL: nothing. */
static ebb_status dispatch(call *c, const ebb__parcel *x, ebb_future **reply) {
    const ebb__given *within = ebb__given_of(c->a, "within_ms");
    const uint64_t ms = within->is ? within->number : WITHIN_MS;
    *reply = NULL;
    if (c->p->image.ir->kinds[c->kind].responses == 0) return ebb__host_send(c->p, c->to, x);
    *reply = ebb__program_ask(c->a->cx, c->p, c->to, x, ms * EBB_MS, EBB_SITE);
    return EBB_OK;
}

static ebb_status send_message(call *c) {
    ebb__run run = ebb__host_begin(c->p);
    ebb__parcel x;
    ebb_future *reply = NULL;
    ebb_value v;
    ebb_status st = EBB_OK;
    bool made = make(c, &run, &x, &st);
    if (made) st = dispatch(c, &x, &reply);
    ebb__host_end(c->p);
    if (!made && st == EBB_OK) return ebb__answer_problem(c->a);
    if (reply == NULL) return answer_status(c, st);
    st = ebb_await(c->a->cx, reply, &v);
    if (st != EBB_OK) return answer_status(c, st);
    if (is_there(c)) return answer_reply(c, v);
    ebb_value_discard(c->a->cx, v);
    return ebb__answer_failure(c->a, EBB_ERR_CLOSED, "the program has ended");
}

ebb_status ebb__serve_program_message(ebb__ask *a) {
    const ebb__given *machine = ebb__given_of(a, "machine");
    call *c = ebb_http_alloc(a->x, sizeof *c);
    if (c == NULL) return ebb__answer_failure(a, EBB_ERR_NOMEM, NULL);
    *c = (call){.a = a};
    bool found = find_message(c);
    if (found) found = machine->is ? find_given(c, machine->text) : find_only(c);
    return found ? send_message(c) : ebb__answer_problem(a);
}
