/* trace/event.h - the meaning of the fields of an event, by its type. */
#ifndef EBB_TRACE_EVENT_H
#define EBB_TRACE_EVENT_H

#include <ebb/trace.h>

/* The meaning of the phase and value fields of an event of this type. */
typedef enum ebb__event_value {
    EBB__VALUE_NONE,
    EBB__VALUE_STATUS,
    EBB__VALUE_LANE,
    EBB__VALUE_POLLS,
    EBB__VALUE_DEPTH,
    EBB__VALUE_OBLIGATION,
    EBB__VALUE_FLAGS,
    EBB__VALUE_NUMBER,
    EBB__VALUE_KIND /* ebb_cancel_kind */
} ebb__event_value;

ebb__event_value ebb__event_value_of(uint32_t type);
bool ebb__event_is_region(uint32_t type);  /* the phase is a region's */
bool ebb__event_is_machine(uint32_t type); /* of machines, and not of the kernel */
bool ebb__event_is_durable(uint32_t type); /* of durable orchestrations */

#endif
