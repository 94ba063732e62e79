/* A service from inside.
 *
 * service.c        one run: the first loop, its signals, the shutdown workflow
 *   service_loop.c   the loops after the first
 *   inspect.c        the socket at which somebody may look at it
 *
 * The first loop is the caller's thread. It has the shutdown workflow, over its root. Each loop after it, a
 * *branch*, has a thread, and there a workflow of its own in a far region of the first loop, with the same budget. A
 * task of the first loop's root stands in for the branch: the shutdown waits for that task. Requests and extensions
 * are sent to the branches as *orders*: functions that run on the branches, by ebb_peer_run. */
#ifndef EBB__SERVICE_H
#define EBB__SERVICE_H

#include "loop/listen_address.h"
#include "workflow/inspect.h"
#include <ebb/workflow.h>

enum { EBB__SIGNALS = 3, EBB__SERVICE_LOOPS = 255 }; /* SIGTERM, SIGINT, SIGUSR1; there are 255 runtime ids */

typedef struct ebb__service ebb__service;
typedef struct ebb__branch ebb__branch;

/* A function to run on every branch, with the branch as argument. */
typedef struct ebb__order {
    ebb__service *service;
    ebb_poll_fn body;
} ebb__order;

struct ebb__service {
    const ebb__platform *os;
    uv_loop_t uv;
    uv_signal_t signals[EBB__SIGNALS];
    ebb_service_opts opts;
    ebb_loop *loop;
    ebb_workflow shutdown;
    bool signalled, forced; /* by a signal */
    bool requested;         /* the shutdown workflow was requested to stop, by a signal or by the program */
    bool stop_sent;         /* the branches were requested to stop */
    int early[2];           /* signals that arrived while the loops were started; 0: none */
    bool starting;
    bool abandoned; /* a thread still runs and uses the loop */
    /* Why it stops. Branches read this: it does not change once they are requested to stop. */
    ebb_cancel_kind kind;
    char why[EBB_MESSAGE_MAX + 1];
    ebb__inspect *inspect; /* NULL: nobody can look */
    ebb_fiber_fn fn;
    void *arg;

    /* With several loops. */
    ebb__branch *branches;
    uint32_t n;       /* number of branches */
    uint64_t number;  /* of the shutdown workflow in its log; 0: none */
    ebb__share share; /* listen addresses of the loops */
    uv_mutex_t log;   /* taken for one explanation at a time */
    ebb_sem go;       /* branches that are ready wait here until all are */
    uint32_t ready;
    ebb_region operators; /* region of the tasks that send orders */
    ebb__order stop, explain, extend;
};

/* ---- service.c ---- */

bool ebb__service_failed(ebb_status st);
/* Requests the shutdown workflow to stop, unless it was requested before. */
void ebb__service_request(ebb__service *s, ebb_cx *cx, ebb_cancel_kind kind, const char *message);
/* Logs the explanation of a workflow of the loop of `cx`. */
void ebb__service_explain(ebb__service *s, ebb_cx *cx, ebb_workflow wf);

/* ---- service_loop.c ---- */

/* Starts the loops after the first, each with an open workflow. They wait for ebb__branches_go. */
ebb_status ebb__branches_start(ebb__service *s, ebb_cx *cx, uint32_t n);
void ebb__branches_go(ebb__service *s, ebb_cx *cx);
/* Requests all branches to stop, and then the shutdown workflow; only once. */
void ebb__branches_stop(ebb__service *s, ebb_cx *cx);
/* Runs an order on every branch. False: no branches, no memory, or the service has ended. */
bool ebb__branches_order(ebb__service *s, ebb_cx *cx, const ebb__order *o);
/* Asks each branch for its snapshot, but those that have not answered before. */
void ebb__branches_inspect(ebb__service *s, ebb_cx *cx);
/* Ends the threads, adds their outcome to the report of the first loop, and frees the branches. False: a thread
 * can't be ended; the branches are not freed. */
bool ebb__branches_end(ebb__service *s, ebb_workflow_report *r);

#endif
