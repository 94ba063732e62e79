/* The one runtime of this instance, and who asks it. */
#ifndef EBB__WEB_HOST_H
#define EBB__WEB_HOST_H

#include <ebb/sched.h>

#include "kernel/rt.h"

extern ebb_rt *web_rt; /* NULL: not started */

/* The context of a task that is alive, or of the host for 0; NULL: there is no such task. */
ebb_cx *web_cx(uint64_t asker);

void web_task_over(ebb__task *t, ebb_status status);

#endif
