/* durable/suite.h - the conformance suite: cases by name, run by a fiber against a store.
 *
 * A case is one function. It gets a suite with the store open, two nodes that have joined, and helpers that make a call,
 * wait for it and check it. Cases share one store and use ids that begin with their own name, so they run in any order
 * and on a store that is in use. A check that fails ends the case by a return, with expected and found in the text. */
#ifndef EBB_DURABLE_SUITE_H
#define EBB_DURABLE_SUITE_H

#include "durable/store.h"

typedef struct ebb__suite ebb__suite;
typedef ebb_status (*ebb__suite_fn)(ebb__suite *s);

typedef struct ebb__suite_case {
    const char *name;  /* "test_ack_work_item_fails_on_cancelled_row"; one word */
    const char *about; /* what it holds, one line */
    ebb__suite_fn run;
} ebb__suite_case;

/* One array a file: durable/suite_*.c. `run` of the last is NULL. */
extern const ebb__suite_case ebb__suite_activities[], ebb__suite_turns[], ebb__suite_histories[],
    ebb__suite_claims[], ebb__suite_leases[], ebb__suite_order[], ebb__suite_cancels[], ebb__suite_poison[],
    ebb__suite_executions[], ebb__suite_starts[], ebb__suite_errors[], ebb__suite_operators[],
    ebb__suite_values[], ebb__suite_sessions[], ebb__suite_versions[], ebb__suite_hints[];

#endif
