/* trace/event.c - names of events and oracles, and the meaning of the fields of an event. */
#include "trace/event.h"

/* The module of web pages stays small: it has no connections, processes, machines and orchestrations. */
#ifdef EBB__PAGE
#define NAMED(value) ((value) < EBB_EV_CONNECTION_OPENED)
#else
#define NAMED(value) true
#endif

static const char *const event_names[EBB_EV_MAX] = {
#define EBB_EVENT(name, value, text, is_cancel) [value] = NAMED(value) ? (text) : NULL,
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
    return (size_t)o < EBB_ORACLES ? oracle_names[o] : "?";
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
        [EBB_EV_DISCARDED] = EBB__VALUE_STATUS,
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
        [EBB_EV_MACHINE_SPAWNED] = EBB__VALUE_NUMBER,
        [EBB_EV_MACHINE_STARTED] = EBB__VALUE_NUMBER,
        [EBB_EV_MACHINE_FAULTED] = EBB__VALUE_NUMBER,
        [EBB_EV_MACHINE_STOPPED] = EBB__VALUE_NUMBER,
        [EBB_EV_MACHINE_QUEUED] = EBB__VALUE_NUMBER,
        [EBB_EV_MACHINE_COMMITTED] = EBB__VALUE_NUMBER,
        [EBB_EV_MACHINE_ROLLED_BACK] = EBB__VALUE_STATUS,
        [EBB_EV_MACHINE_DEFERRED] = EBB__VALUE_NUMBER,
        [EBB_EV_MACHINE_DROPPED] = EBB__VALUE_NUMBER,
        [EBB_EV_MACHINE_REQUESTED] = EBB__VALUE_NUMBER,
        [EBB_EV_MACHINE_REQUEST_ENDED] = EBB__VALUE_NUMBER,
        [EBB_EV_MACHINE_TIMER_ARMED] = EBB__VALUE_NUMBER,
        [EBB_EV_MACHINE_SUBSCRIBED] = EBB__VALUE_NUMBER,
        [EBB_EV_MACHINE_UNSUBSCRIBED] = EBB__VALUE_NUMBER,
        [EBB_EV_MACHINE_REFUSED] = EBB__VALUE_STATUS,
        [EBB_EV_MACHINE_RECOVERED] = EBB__VALUE_NUMBER,
        [EBB_EV_DURABLE_INSTANCE_STARTED] = EBB__VALUE_NUMBER,
        [EBB_EV_DURABLE_INSTANCE_ENDED] = EBB__VALUE_STATUS,
        [EBB_EV_DURABLE_INSTANCE_SUSPENDED] = EBB__VALUE_STATUS,
        [EBB_EV_DURABLE_TURN_BEGUN] = EBB__VALUE_NUMBER,
        [EBB_EV_DURABLE_TURN_COMMITTED] = EBB__VALUE_NUMBER,
        [EBB_EV_DURABLE_TURN_FENCED] = EBB__VALUE_NUMBER,
        [EBB_EV_DURABLE_REPLAYED] = EBB__VALUE_NUMBER,
        [EBB_EV_DURABLE_EVICTED] = EBB__VALUE_NUMBER,
        [EBB_EV_DURABLE_ACTIVITY_CLAIMED] = EBB__VALUE_NUMBER,
        [EBB_EV_DURABLE_ACTIVITY_STARTED] = EBB__VALUE_NUMBER,
        [EBB_EV_DURABLE_ACTIVITY_TOLD] = EBB__VALUE_KIND,
        [EBB_EV_DURABLE_ACTIVITY_ENDED] = EBB__VALUE_STATUS,
        [EBB_EV_DURABLE_ACTIVITY_LATE_ACK] = EBB__VALUE_KIND,
        [EBB_EV_DURABLE_LEASE_RENEWED] = EBB__VALUE_NUMBER,
        [EBB_EV_DURABLE_LEASE_LOST] = EBB__VALUE_NUMBER,
        [EBB_EV_DURABLE_MESSAGE_SENT] = EBB__VALUE_NUMBER,
        [EBB_EV_TRACE_TAKEN] = EBB__VALUE_NUMBER,
        [EBB_EV_TRACE_GIVEN] = EBB__VALUE_NUMBER,
        [EBB_EV_POLL_ENDED] = EBB__VALUE_STATUS,
        [EBB_EV_FUTURE_SETTLED] = EBB__VALUE_STATUS,
        [EBB_EV_FUTURE_CANCELLED] = EBB__VALUE_KIND,
        [EBB_EV_RACE_WON] = EBB__VALUE_NUMBER,
    };
    return type < EBB_EV_MAX ? (ebb__event_value)values[type] : EBB__VALUE_NONE;
}

bool ebb__event_is_machine(uint32_t type) {
    return type >= EBB_EV_MACHINE_SPAWNED && type <= EBB_EV_MACHINE_RECOVERED;
}

bool ebb__event_is_durable(uint32_t type) {
    return type >= EBB_EV_DURABLE_INSTANCE_STARTED && type <= EBB_EV_DURABLE_MESSAGE_SENT;
}

bool ebb__event_is_region(uint32_t type) {
    return type >= EBB_EV_REGION_OPENED && type <= EBB_EV_REGION_STOPPING;
}
