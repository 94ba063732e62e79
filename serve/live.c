/* What lives in the loop of the server: its tree, as `ebb top` shows it, its workflows, and the server itself. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "durable/worker.h"
#include "http/http.h"
#include "kernel/layer.h"
#include "serve/live.h"
#include "workflow/workflow.h"

enum { EXPLAIN_MOST = 65536, LINES = 50 }; /* bytes: a line for each task may be a million */
#define READY EBB_SECOND

/* ---- answers that are written as text ------------------------------------------------------------------------------ */

static ebb__inspect_text text_of(const ebb__ask *a) {
    return (ebb__inspect_text){.allocator = ebb__rt_allocator(ebb__rt_of(a->cx))};
}

static ebb_status answer_text(ebb__ask *a, ebb__inspect_text *t) {
    ebb_status st = t->failed ? ebb__answer_failure(a, EBB_ERR_NOMEM, NULL)
                              : ebb_http_reply(a->cx, a->x, 200, "application/json", t->at, t->n);
    ebb__inspect_text_free(t);
    return st;
}

/* ---- health ------------------------------------------------------------------------------------------------------ */

/* Whoever gets an answer knows that the loop turns. */
ebb_status ebb__serve_health(ebb__ask *a) {
    return ebb__answer(a, 200, json_pack("{s:s,s:s}", "status", "ok", "version", ebb_version()));
}

bool ebb__service_stops(const ebb__ask *a) {
    ebb_workflow_report report;
    ebb_workflow wf = ebb_workflow_of(a->cx);
    return wf.id != 0 && ebb_workflow_report_of(a->cx, wf, &report) == EBB_OK &&
           report.state != EBB_WORKFLOW_IDLE;
}

/* At most once in READY. Who comes while it is asked gets the answer before, if there is one. */
static ebb_status ask_store(ebb__ask *a) {
    const ebb_instance_filter filter = {.most = 1};
    ebb__dashboard *d = a->dash;
    ebb_value v;
    if (d->store == NULL) return EBB_OK;
    if (d->answered != EBB_PENDING && ebb_now(a->cx) - d->asked < READY) return d->answered;
    d->asked = ebb_now(a->cx);
    ebb_status st = ebb_await(
        a->cx, ebb_within(a->cx, ebb_instance_list(a->cx, a->dash->store, &filter), 2 * EBB_SECOND), &v);
    if (st == EBB_OK) ebb_value_discard(a->cx, v);
    if (st != EBB_CANCELLED) d->answered = st;
    return st;
}

static bool is_stopping(const ebb__ask *a) {
    return ebb_stopping(a->cx) || ebb__service_stops(a);
}

ebb_status ebb__serve_ready(ebb__ask *a) {
    ebb_status st = is_stopping(a) ? EBB_OK : ask_store(a);
    if (st == EBB_CANCELLED) return st;
    if (is_stopping(a)) return ebb__answer_refusal(a, 503, "stopping", "the service is stopping");
    if (st != EBB_OK) return ebb__answer_refusal(a, 503, "store_unavailable", "the store does not answer");
    return ebb__answer(a, 200, json_pack("{s:s}", "status", "ready"));
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

static void begin(const ebb__ask *a, ebb__inspect_text *t) {
    *t = text_of(a);
    ebb__inspect_say(t, "{\"ebb_inspect\":1,\"pid\":%ld,\"version\":", (long)getpid());
    ebb__inspect_string(t, ebb_version());
    ebb__inspect_say(t, ",\"loops\":[");
}

static void say_http(ebb__inspect_text *t, const ebb__ask *a) {
    ebb_http_server_stats s;
    ebb_http_server_stats_of(a->dash->server, &s);
    ebb__inspect_say(t,
                     ",\"http\":{\"connections\":%" PRIu32 ",\"exchanges\":%" PRIu32 ",\"requests\":%" PRIu64
                     ",\"answered_5xx\":%" PRIu64 ",\"times\":",
                     s.connections, s.exchanges, s.requests, s.answered[5]);
    ebb__inspect_times(t, s.latency);
    ebb__inspect_say(t, "}");
}

static void say_worker(ebb__inspect_text *t, const ebb__ask *a) {
    ebb_worker_stats s;
    if (!ebb__worker_stats(a, &s)) return;
    ebb__inspect_say(t,
                     ",\"worker\":{\"turns\":%" PRIu64 ",\"completed\":%" PRIu64 ",\"failed\":%" PRIu64
                     ",\"cancelled\":%" PRIu64 ",\"hot\":%" PRIu32 ",\"running\":%" PRIu32
                     ",\"cancel_times\":",
                     s.turns, s.completed, s.failed, s.cancelled, s.hot, s.running);
    ebb__inspect_times(t, s.cancel_latency);
    ebb__inspect_say(t, "}");
}

void ebb__live_numbers(const ebb__ask *a, ebb__inspect_text *t) {
    begin(a, t);
    ebb__inspect_say(t, "{");
    ebb__inspect_numbers(t, a->cx, ebb_workflow_of(a->cx), ebb_service_loop(a->cx));
    say_http(t, a);
    say_worker(t, a);
    ebb__inspect_say(t, "}]}");
}

void ebb__live_say(const ebb__ask *a, ebb__inspect_text *t) {
    begin(a, t);
    ebb__inspect_loop(t, a->cx, ebb_workflow_of(a->cx), ebb_service_loop(a->cx));
    ebb__inspect_say(t, "]}");
}

ebb_status ebb__serve_live(ebb__ask *a) {
    ebb__inspect_text t;
    ebb__live_say(a, &t);
    return answer_text(a, &t);
}

bool ebb__id_of(const char *text, uint64_t *out) {
    static const uint64_t most[] = {UINT8_MAX, 0xffffff, UINT32_MAX};
    static const unsigned shift[] = {56, 32, 0};
    uint64_t id = 0;
    for (size_t i = 0; i < 3; i++) {
        size_t n = strspn(text, "0123456789");
        uint64_t part = n > 0 && n <= 10 ? strtoull(text, NULL, 10) : UINT64_MAX;
        if (part > most[i] || text[n] != (i < 2 ? '.' : 0)) return false;
        id |= part << shift[i];
        text += n + 1;
    }
    *out = id;
    return (uint32_t)id != 0; /* else it carries a status */
}

bool ebb__ask_id(ebb__ask *a, const char *name, uint64_t *id, ebb_status *st) {
    const char *text = ebb_http_param(a->x, name);
    if (text != NULL && ebb__id_of(text, id)) return true;
    (void)ebb__problem_set(a, 400, "bad_value", name, "three numbers, as 1.5.2", "'%.60s' is no id",
                           text != NULL ? text : "");
    *st = ebb__answer_problem(a);
    return false;
}

static const char *given_text(const ebb__ask *a, const char *name, const char *otherwise) {
    const ebb__given *g = ebb__given_of(a, name);
    return g->is ? g->text : otherwise;
}

/* Whether `r` is the region `inner`, or around it. */
static bool is_around(const ebb_runtime *rt, const ebb__region *r, const ebb__region *inner) {
    while (inner != NULL && inner != r) inner = ebb__region_parent(rt, inner);
    return inner != NULL;
}

/* One that has this exchange in it, or the task that accepts connections: nobody could ask or be answered any more. */
static bool has_the_server(const ebb__ask *a, const ebb__region *r) {
    ebb_runtime *rt = ebb__rt_of(a->cx);
    ebb_task_info acceptor;
    ebb__region *in;
    if (is_around(rt, r, ebb__region_of(a->cx))) return true;
    if (ebb_task_info_of(a->cx, a->dash->server->acceptor, &acceptor) != EBB_OK) return false;
    return ebb__region_get(rt, acceptor.region, &in) == EBB_OK && is_around(rt, r, in);
}

/* One that has the worker in it. What the worker runs is in regions of its own below, which may be cancelled. */
static bool has_the_worker(const ebb__ask *a, const ebb__region *r) {
    const ebb__dashboard *d = a->dash;
    ebb_runtime *rt = ebb__rt_of(a->cx);
    ebb_region_state state;
    ebb__region *in;
    if (d->worker == NULL || ebb_region_state_of(a->cx, d->worker_region, &state) != EBB_OK) return false;
    if (state == EBB_REGION_CLOSED) return false; /* it is freed */
    const ebb_region inner = d->worker->unit.id != 0 ? d->worker->unit : d->worker_region;
    return ebb__region_get(rt, inner, &in) == EBB_OK && is_around(rt, r, in);
}

/* The supervisor and the handlers of a drain end by the calls of their workflow. */
static bool is_of_a_drain(const ebb_runtime *rt, const ebb__region *r) {
    for (; r != NULL; r = ebb__region_parent(rt, r)) {
        const ebb__wf *wf = ebb__wf_around(rt, r);
        if (wf != NULL && wf->drain_region.id == ebb__region_name(rt, r).id) return true;
    }
    return false;
}

ebb_status ebb__serve_region_cancel(ebb__ask *a) {
    ebb__region *r;
    ebb_region region;
    ebb_status st;
    if (!ebb__ask_id(a, "region", &region.id, &st)) return st;
    st = ebb__region_get(ebb__rt_of(a->cx), region, &r);
    if (st == EBB_OK && ebb__region_state(r) == EBB_REGION_CLOSED) st = EBB_ERR_STALE;
    if (st != EBB_OK) return ebb__answer_failure(a, st, NULL);
    if (has_the_server(a, r))
        return ebb__answer_refusal(a, 409, "has_this_server",
                                   "the region has this server in it: request its workflow to stop");
    if (has_the_worker(a, r))
        return ebb__answer_refusal(a, 409, "has_the_worker",
                                   "the region has the worker in it: request its workflow to stop");
    if (is_of_a_drain(ebb__rt_of(a->cx), r))
        return ebb__answer_refusal(a, 409, "is_of_a_drain",
                                   "the region is that of a drain: extend or force its workflow");
    ebb_region_cancel(a->cx, region, EBB_CANCEL_USER, given_text(a, "message", "cancelled by the operator"));
    return ebb__answer(a, 202, json_pack("{s:b}", "accepted", 1));
}

/* ---- workflows --------------------------------------------------------------------------------------------------- */

ebb_status ebb__serve_workflows(ebb__ask *a) {
    ebb__inspect_text t = text_of(a);
    ebb__inspect_say(&t, "{\"loop\":%" PRIu32, ebb_service_loop(a->cx));
    ebb__inspect_workflows(&t, ebb__rt_of(a->cx));
    ebb__inspect_say(&t, "}");
    return answer_text(a, &t);
}

/* The lines of an explanation, cut at EXPLAIN_MOST. */
typedef struct lines {
    ebb__inspect_text *t;
    char line[512];
    size_t n, lines;
    bool cut;
} lines;

static void end_line(lines *l) {
    l->line[l->n] = 0;
    ebb__inspect_say(l->t, "%s", l->lines++ == 0 ? "" : ",");
    ebb__inspect_string(l->t, l->line);
    l->n = 0;
}

static void write_lines(void *ctx, const char *text, size_t n) {
    lines *l = ctx;
    for (size_t i = 0; i < n; i++) {
        l->cut |= l->t->n > EXPLAIN_MOST;
        if (l->cut) return;
        if (text[i] == '\n') end_line(l);
        else if (l->n < sizeof l->line - 1) l->line[l->n++] = text[i];
    }
}

ebb_status ebb__serve_workflow(ebb__ask *a) {
    ebb__inspect_text t = text_of(a);
    lines l = {.t = &t};
    ebb_workflow id;
    ebb__wf *wf = NULL;
    ebb_status st;
    if (!ebb__ask_id(a, "workflow", &id.id, &st)) return st;
    st = ebb__wf_find(a->cx, id, &wf);
    if (st != EBB_OK) return ebb__answer_failure(a, st, NULL);
    ebb__inspect_say(&t, "{\"workflow\":");
    ebb__inspect_workflow(&t, wf);
    ebb__inspect_say(&t, ",\"explain\":[");
    (void)ebb_workflow_explain(a->cx, id, write_lines, &l);
    ebb__inspect_say(&t, "],\"explain_cut\":%s}", l.cut ? "true" : "false");
    return answer_text(a, &t);
}

/* A line of the log is a JSON object. */
static void write_line(void *ctx, const char *line, size_t n) {
    ebb__inspect_text *t = ctx;
    ebb__inspect_say(t, t->n > 0 && t->at[t->n - 1] == '[' ? "" : ",");
    ebb__inspect_add(t, line, n);
}

/* The lines of its audit log, from the first or from a `next` on. */
ebb_status ebb__serve_workflow_audit(ebb__ask *a) {
    const ebb__given *after = ebb__given_of(a, "after"), *most = ebb__given_of(a, "most");
    ebb__inspect_text t = text_of(a);
    ebb_workflow id;
    ebb__wf *wf = NULL;
    ebb_status st;
    if (!ebb__ask_id(a, "workflow", &id.id, &st)) return st;
    st = ebb__wf_find(a->cx, id, &wf);
    if (st != EBB_OK) return ebb__answer_failure(a, st, NULL);
    if (wf->audit == NULL || wf->audit->fd < 0)
        return ebb__answer_refusal(a, 404, "no_log", "the workflow has no audit log in a file");
    ebb__audit_page page = {.number = wf->number,
                            .at = after->is ? after->number : wf->log_at,
                            .most = most->is ? (uint32_t)most->number : LINES,
                            .line = write_line,
                            .ctx = &t};
    ebb__inspect_say(&t, "{\"lines\":[");
    st = ebb__audit_lines(wf->audit, &page);
    if (st != EBB_OK) ebb__inspect_text_free(&t);
    if (st != EBB_OK)
        return ebb__answer_failure(a, st, st == EBB_ERR_INVALID ? "'after' is no 'next' of this log" : NULL);
    if (page.end) ebb__inspect_say(&t, "],\"next\":null}");
    else ebb__inspect_say(&t, "],\"next\":%" PRIu64 "}", page.at);
    return answer_text(a, &t);
}

static ebb_status answer_verb(ebb__ask *a, ebb_workflow wf, ebb_status st) {
    if (st != EBB_OK)
        return ebb__answer_failure(a, st, st == EBB_ERR_STALE ? NULL : ebb_workflow_refusal(a->cx, wf));
    return ebb__answer(a, 202, json_pack("{s:b}", "accepted", 1));
}

ebb_status ebb__serve_workflow_request(ebb__ask *a) {
    ebb_workflow wf;
    ebb_status st;
    if (!ebb__ask_id(a, "workflow", &wf.id, &st)) return st;
    const char *message = given_text(a, "message", "requested by the operator");
    return answer_verb(a, wf, ebb_workflow_request(a->cx, wf, EBB_CANCEL_USER, message));
}

ebb_status ebb__serve_workflow_extend(ebb__ask *a) {
    ebb_workflow wf;
    ebb_status st;
    if (!ebb__ask_id(a, "workflow", &wf.id, &st)) return st;
    return answer_verb(a, wf, ebb_workflow_extend(a->cx, wf, ebb__given_of(a, "ms")->number * EBB_MS));
}

ebb_status ebb__serve_workflow_force(ebb__ask *a) {
    ebb_workflow wf;
    ebb_status st;
    if (!ebb__ask_id(a, "workflow", &wf.id, &st)) return st;
    return answer_verb(a, wf, ebb_workflow_force(a->cx, wf, given_text(a, "message", NULL)));
}
