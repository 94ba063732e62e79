/* Obligations and finalizers that a task or a region still has. */
#ifndef EBB__OBLIGATION_H
#define EBB__OBLIGATION_H

#include "kernel/rt.h"

/* ---- obligation.c ---- */

/* A new record in the list of its owner: task 0 is the region. There is room for it. Kind 0: a finalizer. */
ebb__obligation *ebb__obligation_new(ebb_runtime *rt, uint32_t task, uint32_t region, uint8_t kind, void *arg,
                                     const char *site);
void ebb__obligation_unlink(ebb_runtime *rt, ebb__obligation *d);
void ebb__obligation_free(ebb_runtime *rt, ebb__obligation *d);
void ebb__obligation_emit(ebb_runtime *rt, uint8_t type, const ebb__obligation *d, uint32_t value);
/* Tells the layers. */
void ebb__obligation_leaked(ebb_runtime *rt, ebb__leak_kind what, const ebb__obligation *d);
/* How the journal writes a region that was named: 0 is the asker's own there, so an id of 0 is written as any
 * invalid one. */
uint64_t ebb__journal_region(const ebb_runtime *rt, ebb_region region);

/* ---- finalizer.c ---- */

/* The finalizer that runs next for a task whose body is over (for a closer: its region's); NULL: none. */
ebb__obligation *ebb__next_finalizer(ebb_runtime *rt, ebb__task *t);
/* Polls it once. True if it is over, done or abandoned; false if it waits. */
bool ebb__run_finalizer(ebb_runtime *rt, ebb__task *t, ebb__obligation *d);

/* ---- obligation.c ---- */

/* What is still reserved is a leak: traced, aborted, counted. Runs hooks. */
void ebb__leak_all(ebb_runtime *rt, ebb__task *t);
void ebb__leak_region(ebb_runtime *rt, ebb__region *r);

/* Keeps the site of an operation that was abandoned for the region's report. EBB_ERR_NOMEM, EBB_ERR_LIMIT. */
ebb_status ebb__operation_keep(ebb_runtime *rt, ebb__region *r, const char *site);

#endif
