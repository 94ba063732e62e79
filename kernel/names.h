/* kernel/names.h - names of the kernel's enumerations, for dumps, traces and reports. All strings are static; "?"
 * for an unknown number. */
#ifndef EBB_KERNEL_NAMES_H
#define EBB_KERNEL_NAMES_H

#include <stdint.h>

const char *ebb__phase_name(uint32_t phase);          /* "CancelRequested" */
const char *ebb__region_state_name(uint32_t state);   /* "Draining" */
const char *ebb__severity_name(uint32_t severity);    /* "urgent" */
const char *ebb__lane_name(uint32_t lane);            /* "cancel" */
const char *ebb__obligation_kind_name(uint32_t kind); /* "lease" */

#endif
