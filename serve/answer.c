/* Answers: JSON, and refusals that say what, where and what was expected. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/serve.h"

/* ---- problems ---------------------------------------------------------------------------------------------------- */

static void say(ebb__problem *p, const char *format, va_list args) {
    (void)vsnprintf(p->message, sizeof p->message, format, args);
}

bool ebb__problem_set(ebb__ask *a, int status, const char *code, const char *where, const char *expected,
                      const char *format, ...) {
    va_list args;
    a->problem = (ebb__problem){.status = status, .code = code};
    (void)snprintf(a->problem.where, sizeof a->problem.where, "%s", where != NULL ? where : "");
    (void)snprintf(a->problem.expected, sizeof a->problem.expected, "%s", expected != NULL ? expected : "");
    va_start(args, format);
    say(&a->problem, format, args);
    va_end(args);
    return false;
}

/* What a request has sent may be cut in the middle of a character. */
static json_t *text_json(const char *s) {
    json_t *j = json_string(s);
    return j != NULL ? j : json_string("(not UTF-8)");
}

static json_t *problem_json(const ebb__problem *p) {
    json_t *e = json_object(), *j = json_object();
    bool ok = e != NULL && j != NULL;
    ok = ok && json_object_set_new(e, "code", json_string(p->code)) == 0;
    ok = ok && json_object_set_new(e, "message", text_json(p->message)) == 0;
    if (p->where[0] != 0) ok = ok && json_object_set_new(e, "where", text_json(p->where)) == 0;
    if (p->expected[0] != 0) ok = ok && json_object_set_new(e, "expected", text_json(p->expected)) == 0;
    if (p->fault != NULL) ok = ok && json_object_set_new(e, "fault", json_string(p->fault)) == 0;
    if (p->line != 0) ok = ok && json_object_set_new(e, "line", json_integer(p->line)) == 0;
    if (p->line != 0) ok = ok && json_object_set_new(e, "column", json_integer(p->column)) == 0;
    ok = ok && json_object_set(j, "error", e) == 0;
    json_decref(e);
    if (!ok) json_decref(j);
    return ok ? j : NULL;
}

static ebb_status set_problem_headers(ebb__ask *a) {
    ebb_status st = EBB_OK;
    int status = a->problem.status;
    if (status == 401) st = ebb_http_set_header(a->x, "www-authenticate", "Bearer");
    if (status == 429 || status == 503) st = ebb_http_set_header(a->x, "retry-after", "1");
    return st;
}

ebb_status ebb__answer_problem(ebb__ask *a) {
    ebb_status st = set_problem_headers(a);
    return st == EBB_OK ? ebb__answer(a, a->problem.status, problem_json(&a->problem)) : st;
}

ebb_status ebb__answer_refusal(ebb__ask *a, int status, const char *code, const char *format, ...) {
    va_list args;
    a->problem = (ebb__problem){.status = status, .code = code};
    va_start(args, format);
    say(&a->problem, format, args);
    va_end(args);
    return ebb__answer_problem(a);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* How a failure of the API is told to the client. Others are 500. */
static const struct failure {
    ebb_status st;
    int status;
    const char *code;
} failures[] = {
    {EBB_ERR_UNKNOWN_INSTANCE, 404, "no_such_instance"},
    {EBB_ERR_STALE, 404, "gone"},
    {EBB_ERR_FOREIGN, 404, "gone"},
    {EBB_ERR_INVALID, 400, "invalid"},
    {EBB_ERR_EXISTS, 409, "exists"},
    {EBB_ERR_FENCED, 409, "fenced"},
    {EBB_ERR_SUSPENDED, 409, "suspended"},
    {EBB_ERR_CANCEL_INVALID_PHASE, 409, "wrong_state"},
    {EBB_ERR_CANCEL_ALREADY_FINAL, 409, "has_ended"},
    {EBB_ERR_LIMIT, 413, "limit"},
    {EBB_ERR_BUSY, 503, "busy"},
    {EBB_ERR_CLOSED, 503, "closed"},
    {EBB_ERR_NOMEM, 503, "no_memory"},
    {EBB_ERR_UNAVAILABLE, 503, "store_unavailable"},
    {EBB_ERR_STORE, 502, "store_refused"},
    {EBB_TIMEOUT, 504, "timeout"},
    {EBB_ERR_UNKNOWN_MACHINE, 404, "no_such_machine"},
    {EBB_ERR_NOT_RUNNING, 410, "stopped"},
    {EBB_ERR_UNHANDLED, 409, "unhandled"},
    {EBB_ERR_MAILBOX_FULL, 503, "mailbox_full"},
    {EBB_FAULTED, 500, "faulted"},
};

ebb_status ebb__answer_failure(ebb__ask *a, ebb_status st, const char *text) {
    const struct failure *f = NULL;
    if (st == EBB_CANCELLED) return st;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        if (failures[i].st == st) f = &failures[i];
    }
    if (text == NULL || text[0] == 0) text = ebb_status_text(st);
    return ebb__answer_refusal(a, f != NULL ? f->status : 500, f != NULL ? f->code : "failed", "%s", text);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

ebb_status ebb__answer(ebb__ask *a, int status, json_t *j) {
    char *text = j != NULL ? json_dumps(j, JSON_COMPACT) : NULL;
    json_decref(j);
    if (text == NULL) return ebb_http_text(a->cx, a->x, 503, "no memory\n");
    ebb_status st = ebb_http_reply(a->cx, a->x, status, "application/json", text, strlen(text));
    free(text);
    return st;
}
