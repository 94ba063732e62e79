/* The protocol as a table: the next state for each state and trigger, and the name of the event in the audit log.
 * Pure. */
#ifndef EBB__PHASE_H
#define EBB__PHASE_H

#include <ebb/workflow.h>

enum { EBB__WF_STATES = EBB_WORKFLOW_LEAK_DETECTED + 1 };

typedef enum ebb__trigger {
    EBB__T_ADD_HANDLER = 1,
    EBB__T_REQUEST,
    EBB__T_START_DRAIN,
    EBB__T_CANCEL_AT,
    EBB__T_DRAINED,
    EBB__T_TIMEOUT,
    EBB__T_OVERDUE, /* a timeout that does not force */
    EBB__T_EXTEND,
    EBB__T_FORCE,
    EBB__T_FINALIZE,
    EBB__T_FINISH,
    EBB__T_LEAK,
    EBB__T_COMPLETE, /* the work has ended without a request */
    EBB__TRIGGERS
} ebb__trigger;

/* Every kind of line in an audit log. Traces contain these numbers. */
typedef enum ebb__wf_event {
    EBB__WE_NONE = 0,
    EBB__WE_STARTED = 1, /* of the log itself: a process has opened it */
    EBB__WE_OPENED,
    EBB__WE_REQUESTED,
    EBB__WE_ABSORBED,
    EBB__WE_DRAIN_STARTED,
    EBB__WE_EVIDENCE,
    EBB__WE_HANDLER_DONE,
    EBB__WE_DRAIN_CANCELLED,
    EBB__WE_DRAIN_COMPLETED,
    EBB__WE_DRAIN_TIMEOUT,
    EBB__WE_DRAIN_FORCED,
    EBB__WE_EXTENDED,
    EBB__WE_FINALIZING,
    EBB__WE_LEAK, /* a leak, or abandoned work */
    EBB__WE_FINALIZED,
    EBB__WE_LEAK_DETECTED,
    EBB__WE_COMPLETED,
    EBB__WE_REFUSED,
    EBB__WE_INTERRUPTED, /* found unfinished by the next process */
    EBB__WE_FINALIZE_FORCED,
    EBB__WF_EVENTS
} ebb__wf_event;

typedef struct ebb__wf_event_info {
    const char *name; /* "drain_started" */
    const char *code; /* "CAN-002"; "": no code */
} ebb__wf_event_info;
extern const ebb__wf_event_info ebb__wf_events[EBB__WF_EVENTS];

/* One row of the table. */
typedef struct ebb__wf_move {
    uint16_t from; /* a bit for each state */
    uint8_t trigger;
    uint8_t to;    /* 0: unchanged */
    uint8_t event; /* ebb__wf_event; NONE: no line */
} ebb__wf_move;

/* EBB_OK and the row; EBB_ERR_CANCEL_ALREADY_FINAL; EBB_ERR_CANCEL_INVALID_PHASE. */
ebb_status ebb__wf_step(ebb_workflow_state from, ebb__trigger trigger, const ebb__wf_move **out);

/* Whether a line of this kind may lead from one state to the other. */
bool ebb__wf_legal(ebb_workflow_state from, ebb__wf_event event, ebb_workflow_state to);

const char *ebb__trigger_name(ebb__trigger t);

static inline bool ebb__wf_is_final(ebb_workflow_state s) {
    return s >= EBB_WORKFLOW_FINALIZED;
}

#endif
