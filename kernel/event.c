/* kernel/event.c - names of events, phases, lanes and oracles. */
#include "kernel/event.h"

#define COUNT(names)      (sizeof(names) / sizeof *(names))
#define NAME_IN(names, i) ((i) < COUNT(names) && (names)[i] != NULL ? (names)[i] : "?")

static const char *const event_names[EBB_EV_MAX] = {
#define EBB_EVENT(name, value, text, is_cancel) [value] = (text),
#include <ebb/event.def>
#undef EBB_EVENT
};

static const bool cancel_events[EBB_EV_MAX] = {
#define EBB_EVENT(name, value, text, is_cancel) [value] = (is_cancel) != 0,
#include <ebb/event.def>
#undef EBB_EVENT
};

static const char *const oracle_names[EBB_ORACLES] = {
#define EBB_ORACLE(name, text) [name] = (text),
#include <ebb/oracle.def>
#undef EBB_ORACLE
};

const char *ebb_event_name(uint32_t type) {
    return type < EBB_EV_MAX ? event_names[type] : NULL;
}

bool ebb_event_is_cancel(uint32_t type) {
    return type < EBB_EV_MAX && cancel_events[type];
}

const char *ebb_oracle_name(ebb_oracle o) {
    return NAME_IN(oracle_names, (size_t)o);
}

const char *ebb__phase_name(uint32_t phase) {
    static const char *const names[] = {"none",       "Created",    "Running",  "CancelRequested",
                                        "Cancelling", "Finalizing", "Completed"};
    return NAME_IN(names, phase);
}

const char *ebb__region_state_name(uint32_t state) {
    static const char *const names[] = {"none", "Open", "Closing", "Draining", "Finalizing", "Closed"};
    return NAME_IN(names, state);
}

const char *ebb__severity_name(uint32_t severity) {
    static const char *const names[] = {"none", "polite", "urgent", "forced"};
    return NAME_IN(names, severity);
}

const char *ebb__lane_name(uint32_t lane) {
    static const char *const names[] = {"none", "cancel", "timed", "ready"};
    return NAME_IN(names, lane);
}

const char *ebb__obligation_kind_name(uint32_t kind) {
    static const char *const names[] = {"none", "permit", "ack", "lease", "fence", "io", "transaction"};
    return NAME_IN(names, kind);
}

ebb__event_value ebb__event_value_of(uint32_t type) {
    static const uint8_t values[EBB_EV_MAX] = {
        [EBB_EV_REGION_OPENED] = EBB__VALUE_FLAGS,
        [EBB_EV_REGION_CANCELLED] = EBB__VALUE_POLLS,
        [EBB_EV_REGION_CLOSED] = EBB__VALUE_STATUS,
        [EBB_EV_REGION_JOINED] = EBB__VALUE_STATUS,
        [EBB_EV_CHAIN_TRUNCATED] = EBB__VALUE_NUMBER,
        [EBB_EV_TASK_SPAWNED] = EBB__VALUE_FLAGS,
        [EBB_EV_TASK_POLLED] = EBB__VALUE_LANE,
        [EBB_EV_TASK_WOKEN] = EBB__VALUE_LANE,
        [EBB_EV_CANCEL_REQUESTED] = EBB__VALUE_POLLS,
        [EBB_EV_CANCEL_STRENGTHENED] = EBB__VALUE_POLLS,
        [EBB_EV_CANCEL_ACKED] = EBB__VALUE_POLLS,
        [EBB_EV_TASK_FORCED] = EBB__VALUE_POLLS,
        [EBB_EV_FINALIZED] = EBB__VALUE_STATUS,
        [EBB_EV_COMPLETED] = EBB__VALUE_STATUS,
        [EBB_EV_MASKED] = EBB__VALUE_DEPTH,
        [EBB_EV_UNMASKED] = EBB__VALUE_DEPTH,
        [EBB_EV_REFUSED] = EBB__VALUE_STATUS,
        [EBB_EV_ILLEGAL] = EBB__VALUE_NUMBER,
        [EBB_EV_TASK_JOINED] = EBB__VALUE_STATUS,
        [EBB_EV_OBLIGATION_RESERVED] = EBB__VALUE_OBLIGATION,
        [EBB_EV_OBLIGATION_COMMITTED] = EBB__VALUE_OBLIGATION,
        [EBB_EV_OBLIGATION_ABORTED] = EBB__VALUE_OBLIGATION,
        [EBB_EV_OBLIGATION_LEAKED] = EBB__VALUE_OBLIGATION,
        [EBB_EV_FINALIZER_DONE] = EBB__VALUE_STATUS,
        [EBB_EV_RECEIVED] = EBB__VALUE_NUMBER,
        [EBB_EV_WORKFLOW] = EBB__VALUE_NUMBER,
    };
    return type < EBB_EV_MAX ? (ebb__event_value)values[type] : EBB__VALUE_NONE;
}

bool ebb__event_is_region(uint32_t type) {
    return type >= EBB_EV_REGION_OPENED && type <= EBB_EV_REGION_STOPPING;
}
