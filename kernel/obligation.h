/* Unresolved obligations and finalizers of tasks and regions. */
#ifndef EBB__OBLIGATION_H
#define EBB__OBLIGATION_H

#include "kernel/rt.h"

/* ---- obligation.c ---- */

/* Adds a record to the list of its owner; task 0: the region. The caller has reserved memory. Kind 0: a finalizer. */
ebb__obligation *ebb__obligation_new(ebb_runtime *rt, uint32_t task, uint32_t region, uint8_t kind, void *arg,
                                     const char *site);
void ebb__obligation_unlink(ebb_runtime *rt, ebb__obligation *d);
void ebb__obligation_free(ebb_runtime *rt, ebb__obligation *d);
void ebb__obligation_emit(ebb_runtime *rt, uint8_t type, const ebb__obligation *d, uint32_t value);
/* The same for the event that makes it, with its site. */
void ebb__obligation_emit_new(ebb_runtime *rt, uint8_t type, const ebb__obligation *d, uint32_t value);
/* Calls the `leaked` hooks of the layers. */
void ebb__obligation_leaked(ebb_runtime *rt, ebb__leak_kind what, const ebb__obligation *d);
/* How the journal writes a region argument: 0 there means the caller's own, so an id of 0 is written as an invalid
 * id. */
uint64_t ebb__journal_region(const ebb_runtime *rt, ebb_region region);

/* ---- finalizer.c ---- */

/* The next finalizer of a task whose body has returned (for a closer: of its region); NULL: none. */
ebb__obligation *ebb__next_finalizer(ebb_runtime *rt, ebb__task *t);
/* Polls a finalizer once. True if it has ended or was abandoned; false if it is pending. */
bool ebb__run_finalizer(ebb_runtime *rt, ebb__task *t, ebb__obligation *d);

/* ---- obligation.c ---- */

/* Reports, traces, aborts and counts obligations that are still reserved. Runs hooks. */
void ebb__leak_all(ebb_runtime *rt, ebb__task *t);
void ebb__leak_region(ebb_runtime *rt, ebb__region *r);

/* Keeps the site of an abandoned operation for the region's report. EBB_ERR_NOMEM, EBB_ERR_LIMIT. */
ebb_status ebb__operation_keep(ebb_runtime *rt, ebb__region *r, const char *site);

#endif
