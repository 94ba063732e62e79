/* kernel/event.h - names of what stands in events. All strings are static and never NULL. */
#ifndef EBB_KERNEL_EVENT_H
#define EBB_KERNEL_EVENT_H

#include <ebb/kernel.h>

const char *ebb__phase_name(uint32_t phase);          /* "CancelRequested" */
const char *ebb__region_state_name(uint32_t state);   /* "Draining" */
const char *ebb__severity_name(uint32_t severity);    /* "urgent" */
const char *ebb__lane_name(uint32_t lane);            /* "cancel" */
const char *ebb__obligation_kind_name(uint32_t kind); /* "lease" */

/* What the phase and value fields of an event of this type hold. */
typedef enum ebb__event_value {
    EBB__VALUE_NONE,
    EBB__VALUE_STATUS,
    EBB__VALUE_LANE,
    EBB__VALUE_POLLS,
    EBB__VALUE_DEPTH,
    EBB__VALUE_OBLIGATION,
    EBB__VALUE_FLAGS,
    EBB__VALUE_NUMBER
} ebb__event_value;

ebb__event_value ebb__event_value_of(uint32_t type);
bool ebb__event_is_region(uint32_t type); /* the phase is a region's */

#endif
