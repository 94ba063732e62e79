/* A control plane in small: health checks, rollouts, publishes and epoch transitions, each a workflow of
 * its own under the one that shuts the process down. All of it can be called off at any time, and none
 * of it leaves half of something behind, unless it is forced; then it says so.
 *
 *   fence.c       fencing tokens: who may change a resource
 *   operation.c   the pattern: steps forward, and a drain handler that takes them back
 *   rollout.c, publish.c, epoch.c   three of that kind: what a step does, and what undoes it
 *   health.c      a task that goes on for ever, and its drain handler
 *   service.c     what holds them together
 *   rehearse.c    all of it in virtual time, stopped at every point: ebb_inject
 *   requests.c    what can be asked of it, a line each
 *   server.c      connections over TCP
 *   operator.c    what an operator may do while it stops, over HTTP
 *   main.c        the process
 *
 * Only the last four know that there is a real clock and a network. */
#ifndef SERVICE_H
#define SERVICE_H

#include <ebb/ebb.h>

enum {
    STAGES = 3,       /* of a rollout */
    RECORDS = 4,      /* of a publish */
    PARTICIPANTS = 3, /* of an epoch */
    PROBES = 3,       /* of a health check */
    RESOURCES = 3,    /* that have a fence: one for each kind of operation */
    OPERATIONS = 64,  /* at a time */
    NAME_MAX_BYTES = 32
};

typedef struct service service;

/* ---- fencing tokens ---------------------------------------------------------------------------------- */

/* What only one operation may change at a time. Each that gets its turn has a higher token than all
 * before it. */
typedef struct resource {
    const char *name;
    ebb_sem turn;
    uint64_t last_token;
} resource;

/* The right to change a resource. It is an obligation of the kernel's: whoever forgets to give it back
 * is named. */
typedef struct fence {
    resource *resource;
    ebb_runtime *rt;
    ebb_obligation owed;
    uint64_t token; /* 0: not held */
} fence;

/* Waits for its turn. The token belongs to `region`: it has to be given back before that has closed. */
ebb_status fence_take(ebb_cx *cx, fence *f, resource *r, ebb_region region);
void fence_give_back(ebb_cx *cx, fence *f, bool done);

/* ---- operations -------------------------------------------------------------------------------------- */

typedef struct operation operation;

typedef struct operation_kind {
    const char *name; /* "rollout" */
    const ebb_workflow_type *type;
    uint32_t resource;
    uint32_t steps;
    uint64_t step_ns, undo_ns; /* what each takes */
    void (*apply)(operation *op, uint32_t step);
    void (*undo)(operation *op, uint32_t step);
    void (*commit)(operation *op); /* all steps are made: from now on there is nothing to undo */
    const char *evidence;          /* the key under which the handler says how it ended */
} operation_kind;

extern const operation_kind rollout, publish, epoch_transition;

struct operation {
    bool used;
    service *service;
    const operation_kind *kind;
    char name[NAME_MAX_BYTES];
    ebb_workflow workflow;
    ebb_task worker;
    fence fence;
    uint32_t begun; /* steps that have an effect, perhaps a partial one */
    bool committed;
    bool forced;      /* its budget was over, or somebody forced it */
    ebb_status start; /* EBB_OK, or why it could not start */
    char before[STAGES][NAME_MAX_BYTES];
};

/* Begins one, in the service's region. EBB_ERR_CLOSED: the service stops; EBB_ERR_LIMIT: there are too
 * many. Else *out has to be joined, whatever has become of it. */
ebb_status operation_begin(ebb_cx *cx, service *s, const operation_kind *kind, const char *name,
                           operation **out);
/* Waits for its end. EBB_OK: it is done. EBB_CANCELLED: it was called off, and taken back unless it was
 * forced. */
ebb_status operation_join(ebb_cx *cx, operation *op, ebb_workflow_report *report);
/* The one that has this name and runs; NULL. */
operation *operation_find(service *s, const char *name);
/* "done", "taken back", "stopped at step 2 of 3". */
void operation_state(const operation *op, char *out, size_t room);

/* ---- health ------------------------------------------------------------------------------------------ */

typedef struct health {
    ebb_workflow workflow;
    ebb_task worker;
    bool resting;        /* between two evaluations */
    uint64_t evaluation; /* which one it is at, from 1 on */
    uint64_t since, last_good, last_good_at;
    bool told; /* the last-known-good evidence is given */
} health;

ebb_status health_open(ebb_cx *cx, service *s);
void health_last_known_good(const health *h, char *out, size_t room);

/* ---- the service ------------------------------------------------------------------------------------- */

struct service {
    ebb_workflow lifecycle;
    ebb_region region;
    resource resources[RESOURCES];
    operation operations[OPERATIONS];
    health health;

    /* What the operations change. */
    char running[STAGES][NAME_MAX_BYTES]; /* which version a stage has */
    char published[NAME_MAX_BYTES];
    char staged[RECORDS][NAME_MAX_BYTES];
    uint64_t epoch, member_epoch[PARTICIPANTS];
};

/* Starts its parts under a workflow that is open already. `s` is zeroed, and outlives it. */
ebb_status service_open(ebb_cx *cx, service *s, ebb_workflow lifecycle);
/* Everything has ended: whether what is left is whole. EBB_OK, or EBB_FAILED. */
ebb_status service_check(const service *s);

/* ---- requests ---------------------------------------------------------------------------------------- */

enum { LINE_BYTES = 256 }; /* of a request, its newline included */

/* Answers a request, which it cuts into words. What the stream says of that. */
ebb_status request_answer(ebb_cx *cx, service *s, ebb_stream to, char *line);
/* Writes a line. A cancel waits until it is out. */
ebb_status say(ebb_cx *cx, ebb_stream to, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Why there is no new work. */
ebb_status say_closed(ebb_cx *cx, service *s, ebb_stream to);

/* ---- the programs ------------------------------------------------------------------------------------ */

/* Serves operators, in a region that the shutdown stops last. `o` outlives the service. What listening says. */
typedef struct operators {
    service *service;
    uint16_t port; /* 0: the system chooses */
} operators;
ebb_status operators_open(ebb_cx *cx, operators *o);

typedef struct server_opts {
    uint16_t port; /* 0: the system chooses */
    bool operated; /* it has operators, who are served on the other port */
    uint16_t operator_port;
} server_opts;

/* The first fiber of the process; `arg` is a server_opts. */
ebb_status server_run(ebb_cx *cx, void *arg);

/* Runs it again and again in virtual time, stopped at every point. An exit status. */
int rehearse(void);

#endif
