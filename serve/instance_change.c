/* Durable instances: what changes them. */
#include <jansson.h>

#include "serve/instance.h"
#include "serve/live.h"

static const char *text_of(const ebb__ask *a, const char *name) {
    const ebb__given *g = ebb__given_of(a, name);
    return g->is ? g->text : NULL;
}

/* A store says of a change that there is no such instance, or that it has ended. If it is there, it has ended. */
static ebb_status answer_unknown(ebb__ask *a, const char *id) {
    ebb_value v;
    ebb_status st = ebb__instance_await(a, ebb_instance_status(a->cx, a->dash->store, id), &v);
    if (st != EBB_OK) return ebb__instance_failure(a, st);
    const ebb_instance_state state = ebb_instance_info_of(&v)->state;
    ebb_value_discard(a->cx, v);
    if (state == EBB_INSTANCE_RUNNING || state == EBB_INSTANCE_SUSPENDED)
        return ebb__answer_refusal(a, 409, "fenced", "%.*s was started again just now", EBB_DURABLE_ID, id);
    return ebb__answer_refusal(a, 409, "has_ended", "%.*s has ended: %s", EBB_DURABLE_ID, id,
                               ebb_instance_state_name(state));
}

static ebb_status change(ebb__ask *a, const char *id, ebb_future *f) {
    const ebb_status st = ebb__instance_await(a, f, NULL);
    if (st == EBB_ERR_UNKNOWN_INSTANCE) return answer_unknown(a, id);
    if (st != EBB_OK) return ebb__instance_failure(a, st);
    return ebb__answer(a, 202, json_pack("{s:b}", "accepted", 1));
}

/* The operators' server goes on while the service drains, and lets nothing new begin. A server that stops itself has
 * admitted this request before. */
static bool admits_no_start(const ebb__ask *a) {
    return ebb__service_stops(a) && !ebb_stopping(a->cx);
}

ebb_status ebb__serve_start(ebb__ask *a) {
    const ebb_start_opts opts = {.id = text_of(a, "id"),
                                 .name = text_of(a, "name"),
                                 .version = (uint32_t)ebb__given_of(a, "version")->number,
                                 .input = ebb__given_of(a, "input")->json,
                                 .reuse = ebb__given_of(a, "reuse")->flag};
    ebb_value v;
    if (a->dash->store == NULL)
        return ebb__answer_refusal(a, 404, "no_store", "this server has no store of instances");
    if (admits_no_start(a))
        return ebb__answer_refusal(a, 503, "stopping", "the service is stopping: it starts nothing new");
    ebb_status st = ebb__instance_await(a, ebb_instance_start(a->cx, a->dash->store, &opts), &v);
    return ebb__instance_answer(a, 201, st, &v);
}

ebb_status ebb__serve_signal(ebb__ask *a) {
    ebb_signal_opts opts = {
        .name = text_of(a, "name"), .body = ebb__given_of(a, "body")->json, .dedup = text_of(a, "dedup")};
    ebb_status st;
    if (!ebb__instance_take(a, &opts.id, &st)) return st;
    return change(a, opts.id, ebb_instance_signal(a->cx, a->dash->store, &opts));
}

ebb_status ebb__serve_cancel(ebb__ask *a) {
    const char *id;
    ebb_status st;
    if (!ebb__instance_take(a, &id, &st)) return st;
    return change(a, id, ebb_instance_cancel(a->cx, a->dash->store, id, text_of(a, "reason")));
}

ebb_status ebb__serve_terminate(ebb__ask *a) {
    const char *id;
    ebb_status st;
    if (!ebb__instance_take(a, &id, &st)) return st;
    return change(a, id, ebb_instance_terminate(a->cx, a->dash->store, id, text_of(a, "reason")));
}

ebb_status ebb__serve_resume(ebb__ask *a) {
    const char *id;
    ebb_status st;
    if (!ebb__instance_take(a, &id, &st)) return st;
    return change(a, id, ebb_instance_resume(a->cx, a->dash->store, id));
}

ebb_status ebb__serve_reset(ebb__ask *a) {
    const char *id;
    ebb_status st;
    if (!ebb__instance_take(a, &id, &st)) return st;
    return change(a, id, ebb_instance_reset(a->cx, a->dash->store, id, ebb__given_of(a, "event")->number));
}

/* ---- many -------------------------------------------------------------------------------------------------------- */

/* A body that forgets its filter, or has one that every instance passes, must not cancel everything. */
static bool is_filtered(const ebb__ask *a) {
    static const char *const names[] = {"name", "prefix", "parent", "state", "started_after", "ended_before"};
    bool any = ebb__given_of(a, "all")->flag;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const ebb__given *g = ebb__given_of(a, names[i]);
        any |= g->is && ((g->text != NULL && *g->text != 0) || g->number != 0);
    }
    return any;
}

/* Page by page, for as long as the client waits. */
ebb_status ebb__serve_cancel_all(ebb__ask *a) {
    const ebb_bulk_opts opts = {.reason = text_of(a, "reason"), .dry_run = ebb__given_of(a, "dry_run")->flag};
    ebb_instance_filter f = {0};
    ebb_value v;
    if (a->dash->store == NULL)
        return ebb__answer_refusal(a, 404, "no_store", "this server has no store of instances");
    if (!is_filtered(a)) {
        (void)ebb__problem_set(a, 400, "no_filter", "body", "a filter, or \"all\": true",
                               "the body has no filter");
        return ebb__answer_problem(a);
    }
    ebb__instance_filter(a, &f);
    ebb_status st = ebb_await(a->cx, ebb_instance_cancel_all(a->cx, a->dash->store, &f, &opts), &v);
    if (st != EBB_OK) return ebb__instance_failure(a, st);
    return ebb__answer(a, 200,
                       json_pack("{s:I,s:b}", "cancelled", (json_int_t)v.as.i, "dry_run", opts.dry_run));
}
