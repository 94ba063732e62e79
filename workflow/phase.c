#include "workflow/phase.h"

#define IN(state) (1u << EBB_WORKFLOW_##state)

enum {
    STOPPING = IN(CANCEL_REQUESTED) | IN(DRAINING) | IN(DRAIN_COMPLETE) | IN(DRAIN_TIMEOUT) | IN(FINALIZING),
    FINAL = IN(FINALIZED) | IN(LEAK_DETECTED),
    ANY = IN(IDLE) | STOPPING | FINAL
};

static const ebb__wf_move moves[] = {
    {IN(IDLE), EBB__T_ADD_HANDLER, 0, EBB__WE_NONE},
    {IN(IDLE), EBB__T_COMPLETE, 0, EBB__WE_COMPLETED},
    {IN(IDLE), EBB__T_REQUEST, EBB_WORKFLOW_CANCEL_REQUESTED, EBB__WE_REQUESTED},
    {STOPPING, EBB__T_REQUEST, 0, EBB__WE_ABSORBED},
    {IN(CANCEL_REQUESTED), EBB__T_START_DRAIN, EBB_WORKFLOW_DRAINING, EBB__WE_DRAIN_STARTED},
    {IN(DRAINING), EBB__T_CANCEL_AT, 0, EBB__WE_DRAIN_CANCELLED},
    {IN(DRAINING), EBB__T_DRAINED, EBB_WORKFLOW_DRAIN_COMPLETE, EBB__WE_DRAIN_COMPLETED},
    {IN(DRAINING), EBB__T_TIMEOUT, EBB_WORKFLOW_DRAIN_TIMEOUT, EBB__WE_DRAIN_TIMEOUT},
    {IN(DRAINING), EBB__T_OVERDUE, 0, EBB__WE_DRAIN_TIMEOUT},
    {IN(DRAINING), EBB__T_EXTEND, 0, EBB__WE_EXTENDED},
    {IN(DRAINING), EBB__T_FORCE, EBB_WORKFLOW_DRAIN_TIMEOUT, EBB__WE_DRAIN_FORCED},
    {IN(DRAIN_COMPLETE) | IN(DRAIN_TIMEOUT), EBB__T_FINALIZE, EBB_WORKFLOW_FINALIZING, EBB__WE_FINALIZING},
    {IN(FINALIZING), EBB__T_FORCE, 0, EBB__WE_FINALIZE_FORCED},
    {IN(FINALIZING), EBB__T_FINISH, EBB_WORKFLOW_FINALIZED, EBB__WE_FINALIZED},
    {IN(FINALIZING), EBB__T_LEAK, EBB_WORKFLOW_LEAK_DETECTED, EBB__WE_LEAK_DETECTED},
};

ebb_status ebb__wf_step(ebb_workflow_state from, ebb__trigger trigger, const ebb__wf_move **out) {
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        if (moves[i].trigger != trigger || !(moves[i].from >> from & 1)) continue;
        *out = &moves[i];
        return EBB_OK;
    }
    bool late = ebb__wf_is_final(from) && trigger == EBB__T_REQUEST;
    return late ? EBB_ERR_CANCEL_ALREADY_FINAL : EBB_ERR_CANCEL_INVALID_PHASE;
}

/* Lines that do not change the state, and the states in which they may appear. A forced workflow may report
 * abandoned work until its end. */
static const uint16_t remarks[EBB__WF_EVENTS] = {
    [EBB__WE_OPENED] = IN(IDLE),
    [EBB__WE_EVIDENCE] = IN(DRAINING) | IN(FINALIZING),
    [EBB__WE_HANDLER_DONE] = IN(DRAINING) | IN(FINALIZING),
    [EBB__WE_LEAK] = IN(IDLE) | STOPPING,
    [EBB__WE_REFUSED] = ANY,
    [EBB__WE_INTERRUPTED] = IN(IDLE) | STOPPING,
};

bool ebb__wf_legal(ebb_workflow_state from, ebb__wf_event event, ebb_workflow_state to) {
    if (remarks[event] != 0) return from == to && remarks[event] >> from & 1;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        if (moves[i].event != event || !(moves[i].from >> from & 1)) continue;
        if (to == (moves[i].to == 0 ? from : (ebb_workflow_state)moves[i].to)) return true;
    }
    return false;
}

const ebb__wf_event_info ebb__wf_events[EBB__WF_EVENTS] = {
    [EBB__WE_NONE] = {"", ""},
    [EBB__WE_STARTED] = {"started", ""},
    [EBB__WE_OPENED] = {"opened", ""},
    [EBB__WE_REQUESTED] = {"requested", "CAN-001"},
    [EBB__WE_ABSORBED] = {"absorbed", "CAN-001"},
    [EBB__WE_DRAIN_STARTED] = {"drain_started", "CAN-002"},
    [EBB__WE_EVIDENCE] = {"evidence", ""},
    [EBB__WE_HANDLER_DONE] = {"handler_done", ""},
    [EBB__WE_DRAIN_CANCELLED] = {"drain_cancelled", ""},
    [EBB__WE_DRAIN_COMPLETED] = {"drain_completed", "CAN-003"},
    [EBB__WE_DRAIN_TIMEOUT] = {"drain_timeout", "CAN-004"},
    [EBB__WE_DRAIN_FORCED] = {"drain_forced", "CAN-004"},
    [EBB__WE_EXTENDED] = {"extended", ""},
    [EBB__WE_FINALIZING] = {"finalizing", ""},
    [EBB__WE_LEAK] = {"left", ""},
    [EBB__WE_FINALIZED] = {"finalized", "CAN-005"},
    [EBB__WE_LEAK_DETECTED] = {"leak_detected", "CAN-006"},
    [EBB__WE_COMPLETED] = {"completed", ""},
    [EBB__WE_REFUSED] = {"refused", ""},
    [EBB__WE_INTERRUPTED] = {"interrupted", ""},
    [EBB__WE_FINALIZE_FORCED] = {"finalize_forced", ""},
};

const char *ebb_workflow_state_name(ebb_workflow_state s) {
    static const char *const names[EBB__WF_STATES] = {
        [EBB_WORKFLOW_IDLE] = "IDLE",
        [EBB_WORKFLOW_CANCEL_REQUESTED] = "CANCEL_REQUESTED",
        [EBB_WORKFLOW_DRAINING] = "DRAINING",
        [EBB_WORKFLOW_DRAIN_COMPLETE] = "DRAIN_COMPLETE",
        [EBB_WORKFLOW_DRAIN_TIMEOUT] = "DRAIN_TIMEOUT",
        [EBB_WORKFLOW_FINALIZING] = "FINALIZING",
        [EBB_WORKFLOW_FINALIZED] = "FINALIZED",
        [EBB_WORKFLOW_LEAK_DETECTED] = "LEAK_DETECTED",
    };
    return (unsigned)s < EBB__WF_STATES && names[s] != NULL ? names[s] : "?";
}

const char *ebb__trigger_name(ebb__trigger t) {
    static const char *const names[EBB__TRIGGERS] = {
        [EBB__T_ADD_HANDLER] = "add a drain handler",
        [EBB__T_REQUEST] = "request",
        [EBB__T_START_DRAIN] = "start the drain",
        [EBB__T_CANCEL_AT] = "cancel what is in flight",
        [EBB__T_DRAINED] = "complete the drain",
        [EBB__T_TIMEOUT] = "time out",
        [EBB__T_OVERDUE] = "time out without force",
        [EBB__T_EXTEND] = "extend",
        [EBB__T_FORCE] = "force",
        [EBB__T_FINALIZE] = "finalize",
        [EBB__T_FINISH] = "finish",
        [EBB__T_LEAK] = "report a leak",
        [EBB__T_COMPLETE] = "complete",
    };
    return (unsigned)t < EBB__TRIGGERS && names[t] != NULL ? names[t] : "?";
}
