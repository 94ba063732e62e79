/* What is made of the trace of this instance: oracles and fingerprint. */
#ifndef EBB__WEB_LAB_JUDGE_H
#define EBB__WEB_LAB_JUDGE_H

#include <ebb/trace.h>

ebb_status judge_begin(void);

#endif
