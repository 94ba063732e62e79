/* The record of a workflow, and how its parts work together:
 *
 * workflow.c   its life: open, join, the end
 *   step.c       the one function that changes its state, with its line in the log
 *   stop.c       request, extend, force
 *   supervisor.c the drain supervisor's poll: the steps between the request and the finalizers
 *   in_flight.c  what is in flight
 *   drain.c      handlers
 *   leaks.c      what was abandoned or leaked
 *   explain.c    what it waits for, as text
 *
 * The supervisor (kernel/supervisor.h) and the handlers live in the drain region of the workflow's region. When the
 * region and the drain region have nothing else left, the drain is complete: the supervisor returns, the region runs
 * its finalizers, and its on_closed hook ends the workflow. So the record lives until that hook has run and a task
 * has joined the workflow, or none can any more. */
#ifndef EBB__WORKFLOW_H
#define EBB__WORKFLOW_H

#include <assert.h>

#include "base/text.h"
#include "kernel/layer.h"
#include "workflow/audit.h"

typedef struct ebb__wf ebb__wf;

#define EBB__WF_MOST (EBB_FOREVER / 4) /* the longest budget in ns: sums with it do not wrap */

/* A handler: a task that waits for the drain to start. */
struct ebb_drain {
    ebb_drain *next;
    ebb__wf *wf;
    ebb_drain_fn fn;
    void *arg;
    const char *name, *site;
    ebb_task task;
    uint64_t done, total;
    bool ended;
    ebb_status status;
};

/* What is in flight, as the last walk counted it. */
typedef struct ebb__wf_count {
    uint64_t n, at;           /* at: the time of the walk */
    bool stored;              /* stored by the walk of an outer workflow */
    ebb__wf *around;          /* during the walk: the next outer workflow */
    const ebb__region *scope; /* and the outermost unit or cleanup scope that contains it; NULL: none */
} ebb__wf_count;

struct ebb__wf {
    uint32_t link, generation; /* the slab's */
    uint32_t index;            /* 0: the slot is free */
    ebb_runtime *rt;
    const ebb_workflow_type *type;
    char name[EBB_MESSAGE_MAX + 1];
    const char *site;
    uint64_t number, parent; /* in the log; parent: of the workflow whose work it is, 0: none */
    ebb_region region, drain_region, around; /* around: where it was opened; 0: in the root */
    ebb__region *region_record;              /* of `region`, valid until `ended`: see ebb__wf_region */
    ebb_region operators;                    /* 0: no operators were requested */
    ebb_task supervisor;                     /* stale once the supervisor has returned */
    ebb_workflow_state state;

    /* Set at open. */
    uint64_t own_budget, own_cancel_at; /* cancel_at 0: a part of the budget */
    bool no_force, is_root;
    ebb_audit *audit;
    uint64_t log_at; /* where its first line is in the file of the log */
    void (*on_state)(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to);
    void (*on_overdue)(void *arg, ebb_workflow wf);
    /* For a service, which extends its other loops. May be NULL. */
    void (*on_extended)(void *arg, uint64_t more);
    void (*on_forced)(void *arg);
    void *arg;

    /* Since the request. */
    uint64_t requested_at, cancel_at, end, ended_at; /* absolute */
    ebb_reason reason;
    ebb_reason root; /* the root cause; as `reason`, unless that is the parent's cancel */
    uint8_t epoch;
    uint32_t absorbed;
    uint64_t in_flight; /* at the last step */
    uint64_t inside;    /* work that units have begun inside themselves since the request */
    uint64_t refused;   /* work that was refused since the request */
    ebb__wf_count count;
    bool cancelled;           /* the work in flight was cancelled */
    bool overdue;             /* the budget is used up, and an operator has to extend or force */
    uint64_t overdue_call_at; /* when on_overdue is called again */
    bool timed_out, forced;

    bool released;   /* the operators were closed, and have to end too */
    bool completing; /* its work has ended without a request */
    bool ended;      /* the region has closed: only the record remains */
    ebb_status status, audit_status;
    ebb_drain *handlers, **handlers_end;
    ebb_workflow_leak *leaks;
    uint32_t leaks_n, leaks_room, leak_count; /* leak_count: since the request, logged or not */
    ebb_wait joiner;
    char refusal[320];
};

typedef struct ebb__workflows {
    ebb_runtime *rt;
    ebb__slab slab;
    uint64_t number; /* of the last workflow without a log */
    uint32_t swept;  /* the last record that the sweep looked at */
} ebb__workflows;

/* The slot of this layer's record. */
enum { EBB__WORKFLOW_SLOT = 2 };

/* ---- workflow.c ---- */

ebb_status ebb__wf_find(ebb_cx *cx, ebb_workflow id, ebb__wf **out);
/* As ebb_workflow_open, for a workflow that is work of a workflow of another runtime. `number` is that one's number
 * in the same log; 0: none. */
ebb_workflow ebb__workflow_open_under(ebb_cx *cx, const ebb_workflow_opts *given, uint64_t number,
                                      const char *site);
ebb_workflow ebb__wf_id(const ebb__wf *wf);
/* Calls `each` with every workflow of a runtime that can still be named, until it returns false. */
void ebb__wf_each(const ebb_runtime *rt, bool (*each)(void *ctx, ebb__wf *wf), void *ctx);
/* The innermost workflow that contains a region, or whose region it is; NULL: none. */
ebb__wf *ebb__wf_around(const ebb_runtime *rt, const ebb__region *r);
/* The next outer workflow; NULL: none. */
ebb__wf *ebb__wf_parent(const ebb__wf *wf);
/* Wakes the joiner, which looks again. */
void ebb__wf_wake_joiner(ebb__wf *wf);
/* on_closed of its region: the last step. */
void ebb__wf_closed(void *arg, const ebb_region_report *report);
/* Frees the record of a workflow that has ended, or was never opened. */
void ebb__wf_free(ebb__wf *wf);

/* ---- step.c ---- */

/* Makes the step, with its line in the log and its event in the trace, or refuses it with a named status. `facts`
 * are the line's evidence: at most EBB__AUDIT_FACTS, and none is required. */
ebb_status ebb__wf_do(ebb_cx *cx, ebb__wf *wf, ebb__trigger trigger, const ebb__fact *facts, size_t n);
/* Writes a line that does not change the state. */
void ebb__wf_remark(ebb__wf *wf, ebb__wf_event event, const ebb__fact *facts, size_t n);
/* The root cause of a request with this reason. */
ebb_reason ebb__wf_root_cause(const ebb__wf *wf, const ebb_reason *why);
/* "rollout_cancel#3 v42". Returns out. */
enum { EBB__WF_TITLE = 160 };
const char *ebb__wf_title(const ebb__wf *wf, char out[EBB__WF_TITLE]);
/* Refuses a trigger: logs a line and writes an explanation, to which `why` is added. Returns st. */
ebb_status ebb__wf_refuse(ebb__wf *wf, ebb__trigger trigger, ebb_status st, const char *why);
/* Without the prefix, as the log writes it: "ERR_CANCEL_LEAK". */
const char *ebb__wf_error_name(ebb_status st);

/* ---- stop.c ---- */

/* IDLE -> CANCEL_REQUESTED -> DRAINING, if it is IDLE; else the reason is absorbed. */
ebb_status ebb__wf_request(ebb_cx *cx, ebb__wf *wf, const ebb_reason *why);
/* Sets the end to the earlier of the workflow's own budget and that of its surroundings. */
void ebb__wf_meet(ebb__wf *wf);
/* Ends the drain by force, DRAINING -> DRAIN_TIMEOUT -> FINALIZING. */
void ebb__wf_force(ebb_cx *cx, ebb__wf *wf, ebb__trigger trigger, const char *by);
/* Cancels what is in flight, with the rest of the budget to clean up. */
void ebb__wf_cancel(ebb_cx *cx, ebb__wf *wf);
/* After the drain: the finalizers' part of the budget. */
void ebb__wf_bound(ebb_cx *cx, ebb__wf *wf);

/* Closes the operators' region. Operators may finish what they do; after some time the rest is cancelled. */
void ebb__wf_release(ebb_cx *cx, ebb__wf *wf);

/* ---- supervisor.c ---- */

ebb_status ebb__wf_supervise(ebb_cx *cx, void *state);
/* Makes the steps that are due before the supervisor's next poll, so that a caller does not act before a timeout
 * that has passed. */
void ebb__wf_catch_up(ebb__wf *wf);

/* ---- in_flight.c ---- */

/* Units, and tasks outside of units, that are in flight in the region and below. */
uint64_t ebb__wf_in_flight(ebb__wf *wf);
/* The same for a step: reuses the number that an outer workflow has stored at this time. */
uint64_t ebb__wf_in_flight_now(ebb__wf *wf);
/* A step is due by the clock, and the supervisor has not made it yet. */
bool ebb__wf_is_due(const ebb__wf *wf);

/* Called by the kernel: work was refused in a closing region, or begun inside a unit there. Every enclosing workflow
 * that was requested to stop counts it. */
void ebb__wf_admission(ebb_runtime *rt, const ebb__region *r, bool refused);

/* ---- drain.c, leaks.c ---- */

/* Starts the handlers; if the workflow has completed, releases them. */
void ebb__wf_handlers_wake(ebb_cx *cx, ebb__wf *wf);
void ebb__wf_handlers_free(ebb__wf *wf);
/* A hook: logs a leak in every enclosing workflow. */
void ebb__wf_leaked(ebb_runtime *rt, const ebb__leak *g);

/* Its region; NULL: the workflow has ended. */
static inline ebb__region *ebb__wf_region(const ebb__wf *wf) {
    if (wf->ended) return NULL;
    assert(ebb__region_name(wf->rt, wf->region_record).id == wf->region.id);
    return wf->region_record;
}

/* The workflow whose region this is; NULL: none. */
static inline ebb__wf *ebb__wf_of_region(const ebb__region *r) {
    return ebb__region_hook_arg(r, ebb__wf_closed);
}

/* A time plus a span, at most the last time. */
static inline uint64_t ebb__wf_after(uint64_t time, uint64_t span) {
    return span < EBB_FOREVER - 1 - time ? time + span : EBB_FOREVER - 1;
}

/* The budget is used up, and an operator has to extend or force. */
static inline bool ebb__wf_is_overdue(const ebb__wf *wf) {
    return wf->overdue && wf->state == EBB_WORKFLOW_DRAINING;
}

static inline uint64_t ebb__wf_elapsed(const ebb__wf *wf) {
    if (wf->state == EBB_WORKFLOW_IDLE) return 0;
    return (ebb__wf_is_final(wf->state) ? wf->ended_at : ebb__now(wf->rt)) - wf->requested_at;
}

static inline uint64_t ebb__wf_budget(const ebb__wf *wf) {
    return wf->state == EBB_WORKFLOW_IDLE ? wf->own_budget : wf->end - wf->requested_at;
}

#endif
