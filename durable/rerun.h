/* durable/rerun.h - a history run again with the code as it is now: no worker runs, and nothing is written. */
#ifndef EBB_DURABLE_RERUN_H
#define EBB_DURABLE_RERUN_H

#include "durable/client.h"
#include "durable/worker.h"

typedef struct ebb__rerun {
    char name[EBB_DURABLE_ID + 1]; /* of the orchestration */
    uint32_t version;              /* of the code that ran */
    uint64_t execution,
        turns;      /* the last execution of the instance; how many turns came out as they are recorded */
    char text[700]; /* why it failed: both sides of a difference */
} ebb__rerun;

/* Runs the last execution of an instance with what is registered on `w`, on this fiber. EBB_ERR_NONDETERMINISM: the code
 * does something else. EBB_ERR_UNKNOWN_INSTANCE. EBB_ERR_INVALID: nothing is registered for it. EBB_ERR_CORRUPT,
 * EBB_ERR_VERSION: of a turn; EBB_ERR_NOMEM, and those of the store. */
ebb_status ebb__rerun_instance(ebb_cx *cx, ebb_store *s, const ebb_worker *w, const char *id,
                               ebb__rerun *out);

#endif
