/* The API of a dashboard, and how its parts work together:
 *
 * dashboard.c   ebb_dashboard_mount: makes the record, adds the routes
 *   token.c       the token file
 * routes.c      the table of routes, from which dispatch, limits and the test of openapi.json follow
 * dispatch.c    one request: gate, arguments, handler
 *   gate.c        who may ask: host, origin, token, rate
 *   given.c       the query or the body, by the rules of the route
 *   answer.c      JSON answers, and refusals that say what, where and what was expected
 * page.c        the page and its files, from memory (assets.h)
 * live.c        the tree, drains, counters, health
 * metrics.c     the counters as Prometheus reads them
 * events.c      numbers, tree and instances as server-sent events
 *   tree.c        what one reader has to be told of the tree
 * trace.c       captures of the trace
 *   trace_chrome.c  as JSON for viewers: line.c, story.c, chrome.c, chrome_flow.c
 * instances.c, instance_change.c   durable instances: reads, changes
 * machines.c, machine_types.c      the machines of the runtime, and the states of their types
 * programs.c, program_value.c      programs of typestate machines: what their hosts may ask of them, as JSON
 *
 * No JSON value of jansson lives across an await: a handler that is forced would leak it. What a request gives is copied
 * into the memory of its exchange. */
#ifndef EBB__SERVE_H
#define EBB__SERVE_H

#include <stdarg.h>

#include <ebb/dashboard.h>

#include "http/rate_limit.h"

struct json_t;
typedef struct ebb__ask ebb__ask;
typedef struct ebb__dashboard ebb__dashboard;

/* ---- routes ----------------------------------------------------------------------------------------------------- */

typedef enum ebb__access {
    EBB__OPEN = 1, /* anybody: nothing in it is worth a secret */
    EBB__READ,     /* needs the token on a server that is not on a loopback address */
    EBB__CHANGE    /* always needs the token */
} ebb__access;

typedef enum ebb__rule_type {
    EBB__TEXT = 1,
    EBB__NUMBER, /* whole */
    EBB__FLAG,
    EBB__JSON,  /* any value */
    EBB__STATES /* of instances, separated by commas */
} ebb__rule_type;

/* What a route takes: parameters of the query (GET), or members of the body. */
typedef struct ebb__rule {
    const char *name;
    ebb__rule_type type;
    bool required;
    uint64_t least, most; /* of a number, or of the bytes of a text */
} ebb__rule;

enum { EBB__RULES = 12, EBB__COST_TREE = 500, EBB__COST_MANY = 50, EBB__COST_ONE = 1 };

typedef ebb_status (*ebb__route_fn)(ebb__ask *a);
typedef struct ebb__route {
    const char *method, *pattern; /* without the prefix */
    ebb__access access;
    uint32_t cost; /* tokens of its rate limit */
    ebb__route_fn fn;
    const ebb__rule *rules;
    size_t rules_n;
} ebb__route;

/* All routes. */
const ebb__route *ebb__routes_of_dashboard(size_t *n);
enum { EBB__ROUTES_MOST = 40 };

/* ---- the dashboard ---------------------------------------------------------------------------------------------- */

enum { EBB__TOKEN_LEAST = 16, EBB__TOKEN_MOST = 256, EBB__HOSTS = 16, EBB__DIGEST = 32, EBB__PREFIX = 64 };

typedef enum ebb__gate_refusal {
    EBB__BAD_HOST,
    EBB__BAD_ORIGIN,
    EBB__BAD_TOKEN,
    EBB__TOO_OFTEN,
    EBB__REFUSALS
} ebb__gate_refusal;
extern const char *const ebb__refusal_names[EBB__REFUSALS]; /* "host" */

/* What a handler of the server gets. */
typedef struct ebb__binding {
    ebb__dashboard *dash;
    const ebb__route *route;
} ebb__binding;

/* The trace of the loop, on demand: trace.c. `bytes` has room for all events that may come, from the start on. */
typedef struct ebb__capture {
    bool running, full; /* full: it ended before its time, or was about to */
    uint32_t readers;   /* that are being sent `bytes` */
    uint64_t number;    /* rises with each start and stop: a fiber that is late knows it by that */
    ebb_task sleeper;   /* ends it; id 0: none */
    uint64_t span;      /* how long it lasts at most */
    uint8_t *bytes;     /* of the last one; NULL: none */
    size_t n, room;
    uint64_t events;
} ebb__capture;
enum { EBB__CAPTURE_EVENTS = 500000, EBB__CAPTURE_SECONDS = 600 };

/* It lives until the region of the server runs its finalizers; no request does by then. */
struct ebb__dashboard {
    const ebb_allocator *allocator;
    ebb_http_server *server;
    ebb_store *store;   /* NULL: none */
    ebb_worker *worker; /* valid as long as worker_region is not closed */
    ebb_region worker_region;
    uint64_t since; /* when it was mounted */
    bool loopback, has_token;
    uint8_t digest[EBB__DIGEST]; /* of the token */
    char *hosts[EBB__HOSTS];
    size_t hosts_n;
    uint32_t reads_second, changes_second;
    ebb__bucket
        buckets[EBB__CHANGE + 1]; /* by access: who may ask without a token takes nothing of the others */
    ebb__bucket wrong_tokens[EBB__RATE_LIMIT_SLOTS]; /* by peer address, as the server's rate limits */
    uint64_t requests, refused[EBB__REFUSALS];
    uint64_t asked;      /* when /readyz last asked the store; 0: never */
    ebb_status answered; /* what the store said; EBB_PENDING: nothing yet */
    ebb__capture capture;
    uint32_t streams; /* of events, now */
    uint64_t shed;    /* streams that were ended because their reader was too slow */
    ebb__binding bindings[EBB__ROUTES_MOST];
};

/* Keeps a text for ebb_dashboard_error. Returns st. */
__attribute__((format(printf, 2, 3))) ebb_status ebb__dashboard_say(ebb_status st, const char *format, ...);

/* The digest of the token in a file. */
ebb_status ebb__token_read(const char *path, uint8_t digest[EBB__DIGEST]);
/* The digest of n bytes. False: no memory. */
bool ebb__token_digest(const char *at, size_t n, uint8_t digest[EBB__DIGEST]);

/* ---- a request -------------------------------------------------------------------------------------------------- */

/* One value that a request gives. Its memory is the exchange's. */
typedef struct ebb__given {
    bool is;          /* it was given */
    const char *text; /* of a text */
    uint64_t number;  /* of a number; of states: a bit for each */
    bool flag;
    ebb_blob json; /* of any value */
} ebb__given;

/* Why a request is refused. */
typedef struct ebb__problem {
    int status;
    const char *code; /* for programs: "malformed_body" */
    char message[400];
    char where[80];     /* "/input", "query parameter 'most'"; "": nowhere in particular */
    char expected[200]; /* "a number from 1 to 200"; "": nothing in particular */
    const char *fault;  /* of a machine that has faulted, its code: "DIVIDE"; else NULL */
    int line, column;   /* of a body that is not JSON; 0: none */
} ebb__problem;

struct ebb__ask {
    ebb_cx *cx;
    ebb_http *x;
    ebb__dashboard *dash;
    const ebb__route *route;
    ebb__given given[EBB__RULES]; /* by the rules of the route */
    ebb__problem problem;
};

/* The handler of every route; `arg` is its binding. */
ebb_status ebb__dispatch(ebb_cx *cx, ebb_http *x, void *arg);

/* Sets the problem. Returns false. `where` and `expected` may be NULL. */
__attribute__((format(printf, 6, 7))) bool ebb__problem_set(ebb__ask *a, int status, const char *code,
                                                            const char *where, const char *expected,
                                                            const char *format, ...);

/* Whether the request may be answered; else there is a problem. */
bool ebb__gate(ebb__ask *a);
/* Whether a host, with or without a port, is an address or localhost: no name that somebody has pointed here. */
bool ebb__host_is_plain(const char *authority);
/* Whether it is one of this server. */
bool ebb__host_is_ours(const ebb__dashboard *d, const char *authority);

/* Reads what the route takes. False: there is a problem. */
bool ebb__given_query(ebb__ask *a);
bool ebb__given_body(ebb__ask *a, const char *at, size_t n);
/* The value of a rule of the route. */
const ebb__given *ebb__given_of(const ebb__ask *a, const char *name);
/* "1.5.2" as an id of a region, a workflow or a machine. False: it is none. */
bool ebb__id_of(const char *text, uint64_t *out);
/* The id in the path, "1.5.2". False: answered already, with *st. */
bool ebb__ask_id(ebb__ask *a, const char *name, uint64_t *id, ebb_status *st);
/* What a JSON value is, for people: "an object". */
const char *ebb__json_type(const struct json_t *j);
/* What a rule takes, for people. */
const char *ebb__rule_say(const ebb__rule *r, char *out, size_t room);

/* ---- answers ---------------------------------------------------------------------------------------------------- */

/* Answers with a JSON value, which it frees. NULL: there was no memory for it. */
ebb_status ebb__answer(ebb__ask *a, int status, struct json_t *j);
/* Answers with the problem. */
ebb_status ebb__answer_problem(ebb__ask *a);
/* Sets a problem and answers with it. */
__attribute__((format(printf, 4, 5))) ebb_status
ebb__answer_refusal(ebb__ask *a, int status, const char *code, const char *format, ...);
/* Answers with a failure of the API of Ebb. `text` may be NULL or "". EBB_CANCELLED is returned: nobody reads. */
ebb_status ebb__answer_failure(ebb__ask *a, ebb_status st, const char *text);

/* The counters of the worker. False: there is none, or no more. */
bool ebb__worker_stats(const ebb__ask *a, ebb_worker_stats *out);

/* ---- handlers --------------------------------------------------------------------------------------------------- */

ebb_status ebb__serve_page(ebb__ask *a);
ebb_status ebb__serve_asset(ebb__ask *a);
ebb_status ebb__serve_health(ebb__ask *a);
ebb_status ebb__serve_ready(ebb__ask *a);
ebb_status ebb__serve_openapi(ebb__ask *a);
ebb_status ebb__serve_metrics(ebb__ask *a);
ebb_status ebb__serve_live(ebb__ask *a);
ebb_status ebb__serve_events(ebb__ask *a);
ebb_status ebb__serve_http(ebb__ask *a);
ebb_status ebb__serve_workflows(ebb__ask *a);
ebb_status ebb__serve_workflow(ebb__ask *a);
ebb_status ebb__serve_workflow_audit(ebb__ask *a);
ebb_status ebb__serve_workflow_request(ebb__ask *a);
ebb_status ebb__serve_workflow_extend(ebb__ask *a);
ebb_status ebb__serve_workflow_force(ebb__ask *a);
ebb_status ebb__serve_region_cancel(ebb__ask *a);
ebb_status ebb__serve_trace_start(ebb__ask *a);
ebb_status ebb__serve_trace_stop(ebb__ask *a);
ebb_status ebb__serve_trace(ebb__ask *a);
ebb_status ebb__serve_trace_chrome(ebb__ask *a);
ebb_status ebb__serve_instances(ebb__ask *a);
ebb_status ebb__serve_instance(ebb__ask *a);
ebb_status ebb__serve_history(ebb__ask *a);
ebb_status ebb__serve_children(ebb__ask *a);
ebb_status ebb__serve_start(ebb__ask *a);
ebb_status ebb__serve_signal(ebb__ask *a);
ebb_status ebb__serve_cancel(ebb__ask *a);
ebb_status ebb__serve_terminate(ebb__ask *a);
ebb_status ebb__serve_resume(ebb__ask *a);
ebb_status ebb__serve_reset(ebb__ask *a);
ebb_status ebb__serve_cancel_all(ebb__ask *a);
ebb_status ebb__serve_machines(ebb__ask *a);
ebb_status ebb__serve_machine(ebb__ask *a);
ebb_status ebb__serve_machine_stop(ebb__ask *a);
ebb_status ebb__serve_machine_type(ebb__ask *a);
ebb_status ebb__serve_programs(ebb__ask *a);
ebb_status ebb__serve_program_message(ebb__ask *a);

/* Ends a capture, and frees its memory. */
void ebb__capture_free(ebb_runtime *rt, ebb__dashboard *d);

/* How long an operation of the store may take before its request is answered 504. */
#define EBB__STORE_PATIENCE (30 * EBB_SECOND)

#endif
