/* Child processes, for the loop's turns. */
#ifndef EBB__LOOP_PROCESS_H
#define EBB__LOOP_PROCESS_H

#include "loop/loop.h"

/* Kills the processes whose grace period is over, and computes when the next one's is. */
void ebb__processes_kill(ebb_loop *l);

#endif
