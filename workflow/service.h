/* A service from inside.
 *
 *   service.c   one run: the first loop, its signals, the shutdown workflow
 *   branch.c    the loops after the first
 *
 * The first loop is the caller's thread. It has the shutdown workflow, over its root. Each loop after it, a *branch*,
 * has a thread, and there a workflow of its own in a far region of the first loop, with the same budget. A task of the
 * first loop's root stands in for the branch: the shutdown waits for it. Requests and extensions are passed on as *orders*: functions
 * that run on the branches, by ebb_peer_run. */
#ifndef EBB__SERVICE_H
#define EBB__SERVICE_H

#include "loop/listen_address.h"
#include <ebb/workflow.h>

enum { EBB__SIGNALS = 3, EBB__SERVICE_LOOPS = 255 }; /* SIGTERM, SIGINT, SIGUSR1; runtimes have 255 ids */

typedef struct ebb__service ebb__service;
typedef struct ebb__branch ebb__branch;

/* Something to be done on every branch. `body` runs there, with the branch. */
typedef struct ebb__order {
    ebb__service *service;
    ebb_poll_fn body;
} ebb__order;

struct ebb__service {
    uv_loop_t uv;
    uv_signal_t signals[EBB__SIGNALS];
    ebb_service_opts opts;
    ebb_loop *loop;
    ebb_workflow shutdown;
    bool asked, forced; /* by a signal */
    bool requested;     /* the shutdown workflow was, by whomever */
    bool told;          /* the branches were */
    int early[2];       /* signals that came while the loops were started; 0: none */
    bool starting;
    bool left; /* a thread goes on */
    /* Why it stops. Branches read it: it does not change once they are told. */
    ebb_cancel_kind kind;
    char why[EBB_MESSAGE_MAX + 1];
    ebb_fiber_fn fn;
    void *arg;

    /* With several loops. */
    ebb__branch *branches;
    uint32_t n;       /* of these */
    uint64_t number;  /* of the shutdown workflow in its log; 0: there is none */
    ebb__share share; /* where they listen */
    uv_mutex_t log;   /* one explanation at a time */
    ebb_sem go;       /* for branches that are ready, until all are */
    uint32_t ready;
    ebb_region operators; /* where orders are given */
    ebb__order stop, explain, extend;
};

/* ---- service.c ---- */

bool ebb__service_failed(ebb_status st);
/* Asks the shutdown workflow to stop, unless it was asked. */
void ebb__service_request(ebb__service *s, ebb_cx *cx, ebb_cancel_kind kind, const char *message);
/* Explains a workflow of the loop of `cx`. */
void ebb__service_explain(ebb__service *s, ebb_cx *cx, ebb_workflow wf);

/* ---- branch.c ---- */

/* Starts the loops after the first, each with a workflow that is open; they wait for ebb__branches_go. */
ebb_status ebb__branches_start(ebb__service *s, ebb_cx *cx, uint32_t n);
void ebb__branches_go(ebb__service *s, ebb_cx *cx);
/* Asks all branches to stop, and then the shutdown workflow; once. */
void ebb__branches_stop(ebb__service *s, ebb_cx *cx);
/* Has every branch do it. False: there are none, or there is no memory, or it is too late. */
bool ebb__branches_order(ebb__service *s, ebb_cx *cx, const ebb__order *o);
/* Ends their threads, adds how they ended to what the first loop reports, and frees them. False: one can't be ended;
 * they are left to the end of the process. */
bool ebb__branches_end(ebb__service *s, ebb_workflow_report *r);

#endif
