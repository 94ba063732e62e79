/* The counters of a loop and its server in the text format of Prometheus, and those of the server as JSON. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "kernel/layer.h"
#include "machine/machine.h"
#include "serve/serve.h"
#include "workflow/inspect.h"
#include "workflow/workflow.h"

typedef enum kind { U32, U64, SIZE } kind;

/* One sample. Rows of one family stand together, and the first of them has its help. */
typedef struct row {
    const char *family, *type, *help, *labels;
    kind kind;
    size_t at;
} row;

#define COUNTER(family, help, kind, at)                                                                      \
    { family, "counter", help, "", kind, at }
#define GAUGE(family, help, kind, at)                                                                        \
    { family, "gauge", help, "", kind, at }
#define SAMPLE(family, type, help, labels, kind, at)                                                         \
    { family, type, help, labels, kind, at }

#define AT(field) offsetof(ebb_runtime_stats, field)
static const row runtime_rows[] = {
    GAUGE("ebb_tasks", "Tasks alive.", U32, AT(tasks)),
    GAUGE("ebb_regions", "Regions that are not closed.", U32, AT(regions)),
    GAUGE("ebb_obligations", "Obligations that are not resolved.", U32, AT(obligations)),
    GAUGE("ebb_timers", "Timers armed.", U32, AT(timers)),
    GAUGE("ebb_runnable_tasks", "Tasks in run queues.", U32, AT(runnable)),
    COUNTER("ebb_polls_total", "Polls of tasks.", U64, AT(polls)),
    COUNTER("ebb_tasks_spawned_total", "Tasks started.", U64, AT(spawned)),
    COUNTER("ebb_tasks_ended_total", "Tasks ended.", U64, AT(ended)),
    COUNTER("ebb_leaks_total", "Obligations that nobody resolved.", U64, AT(leaks)),
    COUNTER("ebb_abandoned_total", "Tasks, finalizers and operations that were abandoned.", U64,
            AT(abandoned)),
    COUNTER("ebb_trace_lost_total", "Events that a full trace buffer has lost.", U64, AT(trace_lost)),
};
#undef AT

#define AT(field) offsetof(ebb_fiber_stats, field)
static const row fiber_rows[] = {
    GAUGE("ebb_fibers", "Fibers alive.", U32, AT(alive)),
    GAUGE("ebb_fiber_stack_bytes", "Memory of the stacks of fibers, alive and pooled.", U64, AT(bytes)),
};
#undef AT

#define AT(field) offsetof(ebb_heap_stats, field)
static const row heap_rows[] = {
    GAUGE("ebb_heap_objects", "Objects of the heap of futures.", SIZE, AT(live)),
    GAUGE("ebb_heap_bytes", "Bytes of the heap of futures.", SIZE, AT(bytes)),
    COUNTER("ebb_heap_collections_total", "Collections of the heap of futures.", U64, AT(collections)),
};
#undef AT

#define AT(field) offsetof(ebb_http_server_stats, field)
#define ANSWERED(help, class, i)                                                                             \
    SAMPLE("ebb_http_responses_total", "counter", help, "class=\"" class "\"", U64,                          \
           AT(answered) + (i) * sizeof(uint64_t))
static const row http_rows[] = {
    GAUGE("ebb_http_connections", "Connections that are open, or have work that has not ended.", U32,
          AT(connections)),
    GAUGE("ebb_http_exchanges", "Requests whose work has not ended.", U32, AT(exchanges)),
    GAUGE("ebb_http_memory_bytes", "Memory of the server.", U64, AT(memory)),
    COUNTER("ebb_http_accepted_total", "Connections accepted.", U64, AT(accepted)),
    COUNTER("ebb_http_requests_total", "Requests received.", U64, AT(requests)),
    ANSWERED("Whole responses, by the first digit of the status.", "2xx", 2),
    ANSWERED(NULL, "3xx", 3),
    ANSWERED(NULL, "4xx", 4),
    ANSWERED(NULL, "5xx", 5),
    COUNTER("ebb_http_unanswered_total", "Requests without a whole response.", U64, AT(answered)),
    COUNTER("ebb_http_cancelled_total", "Requests whose region was cancelled.", U64, AT(cancelled)),
    COUNTER("ebb_http_refused_total", "Streams and requests refused for a limit.", U64, AT(refused)),
    COUNTER("ebb_http_rate_limited_total", "Connections ended by a rate limit.", U64, AT(rate_limited)),
    COUNTER("ebb_http_timed_out_total", "Requests and connections that took too long.", U64, AT(timed_out)),
    COUNTER("ebb_http_evicted_total", "Stalled requests that were ended for others.", U64, AT(evicted)),
    COUNTER("ebb_http_received_bytes_total", "Bytes received.", U64, AT(bytes_in)),
    COUNTER("ebb_http_sent_bytes_total", "Bytes sent.", U64, AT(bytes_out)),
    COUNTER("ebb_http_bad_traces_total", "Requests whose traceparent was not valid.", U64, AT(bad_traces)),
};
#undef AT

#define AT(field) offsetof(ebb_worker_stats, field)
#define ACTIVITIES(help, end, field)                                                                         \
    SAMPLE("ebb_worker_activities_total", "counter", help, "end=\"" end "\"", U64, AT(field))
static const row worker_rows[] = {
    COUNTER("ebb_worker_turns_total", "Turns of instances committed.", U64, AT(turns)),
    COUNTER("ebb_worker_replays_total", "Executions that were run again from their history.", U64,
            AT(replays)),
    COUNTER("ebb_worker_evictions_total", "Instances that lost their fiber to the limits of the cache.", U64,
            AT(evictions)),
    COUNTER("ebb_worker_fenced_total", "Turns that another worker had committed before.", U64, AT(fenced)),
    ACTIVITIES("Activities ended, by how.", "completed", completed),
    ACTIVITIES(NULL, "failed", failed),
    ACTIVITIES(NULL, "cancelled", cancelled),
    COUNTER("ebb_worker_lease_lost_total", "Activities cancelled because their lease was lost.", U64,
            AT(lease_lost)),
    COUNTER("ebb_worker_late_acks_total", "Activities that ended after their row was gone.", U64,
            AT(late_acks)),
    COUNTER("ebb_worker_suspended_total", "Instances suspended.", U64, AT(suspended)),
    COUNTER("ebb_worker_retried_total", "Operations of the store that failed for a time and were repeated.",
            U64, AT(retried)),
    GAUGE("ebb_worker_hot_instances", "Instances on their fiber.", U32, AT(hot)),
    GAUGE("ebb_worker_hot_bytes", "Memory of the instances on their fiber.", U64, AT(hot_bytes)),
    GAUGE("ebb_worker_running_activities", "Activities that run.", U32, AT(running)),
};
#undef AT

#define AT(field) offsetof(ebb_machines_stats, field)
static const row machine_rows[] = {
    GAUGE("ebb_machines", "Machines that have not stopped.", U32, AT(machines)),
    GAUGE("ebb_machine_queued", "Messages in the mailboxes of machines.", U32, AT(queued)),
    GAUGE("ebb_machine_pending", "Requests to machines that have not ended.", U32, AT(pending)),
    COUNTER("ebb_machine_dispatches_total", "Messages that machines took from their mailboxes.", U64,
            AT(dispatched)),
    COUNTER("ebb_machine_rolled_back_total", "Handlers of machines that were rolled back.", U64,
            AT(rolled_back)),
    COUNTER("ebb_machine_faults_total", "Machines that ended by a fault.", U64, AT(faults)),
    COUNTER("ebb_machine_dead_letters_total", "Messages that no machine handled.", U64, AT(dead)),
    COUNTER("ebb_machine_mailbox_full_total", "Messages and requests refused by a full mailbox.", U64,
            AT(full)),
};
#undef AT

/* ---- text -------------------------------------------------------------------------------------------------------- */

static uint64_t value_of(const row *r, const void *stats) {
    const char *at = (const char *)stats + r->at;
    switch (r->kind) {
    case U32: return *(const uint32_t *)(const void *)at;
    case U64: return *(const uint64_t *)(const void *)at;
    case SIZE: return *(const size_t *)(const void *)at;
    }
    return 0;
}

static void say_head(ebb__inspect_text *t, const char *family, const char *type, const char *help) {
    ebb__inspect_say(t, "# HELP %s %s\n# TYPE %s %s\n", family, help, family, type);
}

static void say_rows(ebb__inspect_text *t, const row *rows, size_t n, const void *stats) {
    for (size_t i = 0; i < n; i++) {
        const row *r = &rows[i];
        bool labelled = r->labels[0] != 0;
        if (r->help != NULL) say_head(t, r->family, r->type, r->help);
        ebb__inspect_say(t, "%s%s%s%s %" PRIu64 "\n", r->family, labelled ? "{" : "", r->labels,
                         labelled ? "}" : "", value_of(r, stats));
    }
}
#define SAY_ROWS(t, rows, stats) say_rows((t), (rows), sizeof(rows) / sizeof *(rows), (stats))

static bool count_state(void *ctx, ebb__wf *wf) {
    uint64_t *states = ctx;
    states[wf->state]++;
    return true;
}

static void say_workflows(ebb__inspect_text *t, const ebb_runtime *rt) {
    uint64_t states[EBB__WF_STATES] = {0};
    ebb__wf_each(rt, count_state, states);
    say_head(t, "ebb_workflows", "gauge", "Workflows, by their state.");
    for (ebb_workflow_state s = EBB_WORKFLOW_IDLE; s <= EBB_WORKFLOW_LEAK_DETECTED; s++) {
        ebb__inspect_say(t, "ebb_workflows{state=\"%s\"} %" PRIu64 "\n", ebb_workflow_state_name(s),
                         states[s]);
    }
}

bool ebb__worker_stats(const ebb__ask *a, ebb_worker_stats *out) {
    ebb_region_state state;
    if (a->dash->worker == NULL) return false;
    ebb_status st = ebb_region_state_of(a->cx, a->dash->worker_region, &state);
    if (st != EBB_OK || state == EBB_REGION_CLOSED) return false; /* it is freed */
    ebb_worker_stats_of(a->dash->worker, out);
    return true;
}

static void say_worker(ebb__inspect_text *t, const ebb__ask *a) {
    ebb_worker_stats stats;
    if (ebb__worker_stats(a, &stats)) SAY_ROWS(t, worker_rows, &stats);
}

static void say_dashboard(ebb__inspect_text *t, const ebb__ask *a) {
    const ebb__dashboard *d = a->dash;
    say_head(t, "ebb_build_info", "gauge", "The version of Ebb.");
    ebb__inspect_say(t, "ebb_build_info{version=\"%s\",contract=\"%s\"} 1\n", ebb_version(), EBB_CONTRACT);
    say_head(t, "ebb_mounted_seconds", "gauge", "Time since the dashboard was mounted.");
    ebb__inspect_say(t, "ebb_mounted_seconds %.3f\n",
                     (double)(ebb_now(a->cx) - d->since) / (double)EBB_SECOND);
    say_head(t, "ebb_dashboard_requests_total", "counter", "Requests to the dashboard.");
    ebb__inspect_say(t, "ebb_dashboard_requests_total %" PRIu64 "\n", d->requests);
    say_head(t, "ebb_dashboard_refused_total", "counter",
             "Requests to the dashboard that were refused, by why.");
    for (int i = 0; i < EBB__REFUSALS; i++) {
        ebb__inspect_say(t, "ebb_dashboard_refused_total{why=\"%s\"} %" PRIu64 "\n", ebb__refusal_names[i],
                         d->refused[i]);
    }
    say_head(t, "ebb_dashboard_streams", "gauge", "Streams of events.");
    ebb__inspect_say(t, "ebb_dashboard_streams %" PRIu32 "\n", d->streams);
    say_head(t, "ebb_dashboard_shed_total", "counter", "Streams of events whose reader was too slow.");
    ebb__inspect_say(t, "ebb_dashboard_shed_total %" PRIu64 "\n", d->shed);
}

static void say_all(ebb__inspect_text *t, const ebb__ask *a) {
    ebb_runtime *rt = ebb__rt_of(a->cx);
    ebb_runtime_stats runtime;
    ebb_fiber_stats fibers;
    ebb_heap_stats heap;
    ebb_http_server_stats server;
    ebb_machines_stats machines;
    ebb_runtime_stats_of(rt, &runtime);
    ebb_fiber_stats_of(rt, &fibers);
    ebb_heap_stats_of(rt, &heap);
    ebb_http_server_stats_of(a->dash->server, &server);
    say_dashboard(t, a);
    SAY_ROWS(t, runtime_rows, &runtime);
    SAY_ROWS(t, fiber_rows, &fibers);
    SAY_ROWS(t, heap_rows, &heap);
    say_workflows(t, rt);
    SAY_ROWS(t, http_rows, &server);
    say_worker(t, a);
    ebb__machines_total(rt, &machines);
    SAY_ROWS(t, machine_rows, &machines);
}

ebb_status ebb__serve_metrics(ebb__ask *a) {
    ebb__inspect_text t = {.allocator = ebb__rt_allocator(ebb__rt_of(a->cx))};
    say_all(&t, a);
    ebb_status st =
        t.failed ? ebb__answer_failure(a, EBB_ERR_NOMEM, NULL)
                 : ebb_http_reply(a->cx, a->x, 200, "text/plain; version=0.0.4; charset=utf-8", t.at, t.n);
    ebb__inspect_text_free(&t);
    return st;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

ebb_status ebb__serve_http(ebb__ask *a) {
    ebb_http_server_stats s;
    json_t *j = json_object();
    bool ok = j != NULL;
    ebb_http_server_stats_of(a->dash->server, &s);
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        {"connections", s.connections},   {"exchanges", s.exchanges},      {"memory", s.memory},
        {"accepted", s.accepted},         {"requests", s.requests},        {"answered_2xx", s.answered[2]},
        {"answered_3xx", s.answered[3]},  {"answered_4xx", s.answered[4]}, {"answered_5xx", s.answered[5]},
        {"unanswered", s.answered[0]},    {"cancelled", s.cancelled},      {"refused", s.refused},
        {"rate_limited", s.rate_limited}, {"timed_out", s.timed_out},      {"evicted", s.evicted},
        {"bytes_in", s.bytes_in},         {"bytes_out", s.bytes_out},      {"bad_traces", s.bad_traces}};
    for (size_t i = 0; i < sizeof counters / sizeof *counters && ok; i++) {
        ok = json_object_set_new(j, counters[i].name, json_integer((json_int_t)counters[i].value)) == 0;
    }
    if (!ok) json_decref(j);
    return ebb__answer(a, 200, ok ? j : NULL);
}
