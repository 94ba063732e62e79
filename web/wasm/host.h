/* The one runtime of this instance, and who asks it. */
#ifndef EBB__WEB_HOST_H
#define EBB__WEB_HOST_H

#include <ebb/sched.h>

#include "kernel/layer.h"

extern ebb_runtime *web_rt; /* NULL: not started */

/* The context of a task that is alive, or of the host for 0; NULL: there is no such task. */
ebb_cx *web_cx(uint64_t asker);

/* Why there is no context: EBB_ERR_FOREIGN, EBB_ERR_STALE, or what the id carries. */
ebb_status web_missing(uint64_t asker);

/* What the kernel calls for a slot of the host. */
void *web_slot_state(int32_t slot);
ebb_status web_finalize(ebb_cx *cx, void *state);
void web_aborted(void *state);

void web_task_ended(ebb_cx *cx, ebb_status status);

#endif
