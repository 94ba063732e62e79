/* The table of routes. openapi.json describes each of them, and no other: tests/serve/openapi.c compares the two. */
#include "serve/serve.h"

enum { MESSAGE = EBB_MESSAGE_MAX, PAGE = 200, TURNS = 1000 };

static const ebb__rule message[] = {{"message", EBB__TEXT, false, 0, MESSAGE}};
static const ebb__rule reason[] = {{"reason", EBB__TEXT, false, 0, 1024}};
static const ebb__rule audit[] = {
    {"after", EBB__NUMBER, false, 0, INT64_MAX},
    {"most", EBB__NUMBER, false, 1, PAGE},
};
static const ebb__rule extend[] = {{"ms", EBB__NUMBER, true, 1, 86400000}};

/* Of instances. */
#define FILTER                                                                                               \
    {"name", EBB__TEXT, false, 1, EBB_DURABLE_ID}, {"prefix", EBB__TEXT, false, 1, EBB_DURABLE_ID},          \
        {"parent", EBB__TEXT, false, 1, EBB_DURABLE_ID}, {"state", EBB__STATES, false, 0, 0},                \
        {"started_after", EBB__NUMBER, false, 0, INT64_MAX}, {                                               \
        "ended_before", EBB__NUMBER, false, 0, INT64_MAX                                                     \
    }
static const ebb__rule list[] = {
    FILTER,
    {"after", EBB__TEXT, false, 1, EBB_DURABLE_ID},
    {"most", EBB__NUMBER, false, 1, PAGE},
};
static const ebb__rule events[] = {
    {"every_ms", EBB__NUMBER, false, 500, 60000},
    FILTER,
    {"most", EBB__NUMBER, false, 1, PAGE},
};
static const ebb__rule children[] = {
    {"tree", EBB__FLAG, false, 0, 0},
    {"state", EBB__STATES, false, 0, 0},
    {"after", EBB__TEXT, false, 1, EBB_DURABLE_ID},
    {"most", EBB__NUMBER, false, 1, PAGE},
};
static const ebb__rule history[] = {
    {"execution", EBB__NUMBER, false, 1, INT64_MAX},
    {"after", EBB__NUMBER, false, 0, INT64_MAX},
    {"most", EBB__NUMBER, false, 1, TURNS},
};
static const ebb__rule start[] = {
    {"name", EBB__TEXT, true, 1, EBB_DURABLE_ID},
    {"id", EBB__TEXT, false, 1, EBB_DURABLE_ID},
    {"version", EBB__NUMBER, false, 1, UINT32_MAX},
    {"input", EBB__JSON, false, 0, 0},
    {"reuse", EBB__FLAG, false, 0, 0},
};
static const ebb__rule give_signal[] = {
    {"name", EBB__TEXT, true, 1, EBB_DURABLE_ID},
    {"body", EBB__JSON, false, 0, 0},
    {"dedup", EBB__TEXT, false, 1, EBB_DURABLE_ID},
};
static const ebb__rule reset[] = {{"event", EBB__NUMBER, true, 1, INT64_MAX}};
static const ebb__rule cancel_all[] = {
    FILTER,
    {"tree", EBB__FLAG, false, 0, 0},
    {"all", EBB__FLAG, false, 0, 0},
    {"reason", EBB__TEXT, false, 0, 1024},
    {"dry_run", EBB__FLAG, false, 0, 0},
};
static const ebb__rule machines[] = {
    {"program", EBB__TEXT, false, 1, 255}, {"type", EBB__TEXT, false, 1, 255},
    {"state", EBB__TEXT, false, 1, 255},   {"after", EBB__TEXT, false, 3, 32},
    {"most", EBB__NUMBER, false, 1, PAGE},
};
static const ebb__rule machine_type[] = {{"program", EBB__TEXT, false, 1, 255}};
static const ebb__rule program_message[] = {
    {"machine", EBB__TEXT, false, 5, 32},
    {"fields", EBB__JSON, false, 0, 0},
    {"within_ms", EBB__NUMBER, false, 1, 30000},
};

static const ebb__rule capture[] = {
    {"seconds", EBB__NUMBER, false, 1, EBB__CAPTURE_SECONDS},
    {"events", EBB__NUMBER, false, 1000, EBB__CAPTURE_EVENTS},
};

#define TAKES(rules) (rules), sizeof(rules) / sizeof *(rules)
#define NOTHING      NULL, 0
static const ebb__route routes[] = {
    {"GET", "/", EBB__OPEN, EBB__COST_ONE, ebb__serve_page, NOTHING},
    {"GET", "/assets/:file", EBB__OPEN, EBB__COST_ONE, ebb__serve_asset, NOTHING},
    {"GET", "/healthz", EBB__OPEN, EBB__COST_ONE, ebb__serve_health, NOTHING},
    {"GET", "/readyz", EBB__OPEN, EBB__COST_ONE, ebb__serve_ready, NOTHING},
    {"GET", "/openapi.json", EBB__OPEN, EBB__COST_MANY, ebb__serve_openapi, NOTHING},
    {"GET", "/metrics", EBB__READ, EBB__COST_MANY, ebb__serve_metrics, NOTHING},
    {"GET", "/api/v1/live", EBB__READ, EBB__COST_TREE, ebb__serve_live, NOTHING},
    {"GET", "/api/v1/events", EBB__READ, EBB__COST_TREE, ebb__serve_events, TAKES(events)},
    {"GET", "/api/v1/http", EBB__READ, EBB__COST_ONE, ebb__serve_http, NOTHING},
    {"GET", "/api/v1/workflows", EBB__READ, EBB__COST_MANY, ebb__serve_workflows, NOTHING},
    {"GET", "/api/v1/workflows/:workflow", EBB__READ, EBB__COST_TREE, ebb__serve_workflow, NOTHING},
    {"GET", "/api/v1/workflows/:workflow/audit", EBB__READ, EBB__COST_MANY, ebb__serve_workflow_audit,
     TAKES(audit)},
    {"POST", "/api/v1/workflows/:workflow/request", EBB__CHANGE, EBB__COST_ONE, ebb__serve_workflow_request,
     TAKES(message)},
    {"POST", "/api/v1/workflows/:workflow/extend", EBB__CHANGE, EBB__COST_ONE, ebb__serve_workflow_extend,
     TAKES(extend)},
    {"POST", "/api/v1/workflows/:workflow/force", EBB__CHANGE, EBB__COST_ONE, ebb__serve_workflow_force,
     TAKES(message)},
    {"POST", "/api/v1/regions/:region/cancel", EBB__CHANGE, EBB__COST_ONE, ebb__serve_region_cancel,
     TAKES(message)},
    {"POST", "/api/v1/trace/start", EBB__CHANGE, EBB__COST_MANY, ebb__serve_trace_start, TAKES(capture)},
    {"POST", "/api/v1/trace/stop", EBB__CHANGE, EBB__COST_ONE, ebb__serve_trace_stop, NOTHING},
    {"GET", "/api/v1/trace", EBB__CHANGE, EBB__COST_MANY, ebb__serve_trace, NOTHING},
    {"GET", "/api/v1/instances", EBB__READ, EBB__COST_MANY, ebb__serve_instances, TAKES(list)},
    {"POST", "/api/v1/instances", EBB__CHANGE, EBB__COST_ONE, ebb__serve_start, TAKES(start)},
    {"GET", "/api/v1/instances/:id", EBB__READ, EBB__COST_ONE, ebb__serve_instance, NOTHING},
    {"GET", "/api/v1/instances/:id/history", EBB__READ, EBB__COST_MANY, ebb__serve_history, TAKES(history)},
    {"GET", "/api/v1/instances/:id/children", EBB__READ, EBB__COST_MANY, ebb__serve_children,
     TAKES(children)},
    {"POST", "/api/v1/instances/:id/signal", EBB__CHANGE, EBB__COST_ONE, ebb__serve_signal,
     TAKES(give_signal)},
    {"POST", "/api/v1/instances/:id/cancel", EBB__CHANGE, EBB__COST_ONE, ebb__serve_cancel, TAKES(reason)},
    {"POST", "/api/v1/instances/:id/terminate", EBB__CHANGE, EBB__COST_ONE, ebb__serve_terminate,
     TAKES(reason)},
    {"POST", "/api/v1/instances/:id/resume", EBB__CHANGE, EBB__COST_ONE, ebb__serve_resume, NOTHING},
    {"POST", "/api/v1/instances/:id/reset", EBB__CHANGE, EBB__COST_ONE, ebb__serve_reset, TAKES(reset)},
    {"GET", "/api/v1/machines", EBB__READ, EBB__COST_MANY, ebb__serve_machines, TAKES(machines)},
    {"GET", "/api/v1/machines/types/:type", EBB__READ, EBB__COST_MANY, ebb__serve_machine_type,
     TAKES(machine_type)},
    {"GET", "/api/v1/machines/:machine", EBB__READ, EBB__COST_MANY, ebb__serve_machine, NOTHING},
    {"POST", "/api/v1/machines/:machine/stop", EBB__CHANGE, EBB__COST_ONE, ebb__serve_machine_stop, NOTHING},
    {"GET", "/api/v1/programs", EBB__READ, EBB__COST_MANY, ebb__serve_programs, NOTHING},
    {"POST", "/api/v1/programs/:program/:message", EBB__CHANGE, EBB__COST_ONE, ebb__serve_program_message,
     TAKES(program_message)},
    {"POST", "/api/v1/cancel", EBB__CHANGE, EBB__COST_MANY, ebb__serve_cancel_all, TAKES(cancel_all)},
};
_Static_assert(sizeof routes / sizeof *routes <= EBB__ROUTES_MOST, "bindings of a dashboard");

const ebb__route *ebb__routes_of_dashboard(size_t *n) {
    *n = sizeof routes / sizeof *routes;
    return routes;
}
