/* Child processes, for the loop's turns. */
#ifndef EBB__LOOP_PROCESS_H
#define EBB__LOOP_PROCESS_H

#include "loop/loop.h"

/* Kills those whose time is over, and notes when the next one's is. */
void ebb__processes_kill(ebb_loop *l);

#endif
