#ifndef EBB__PUMP_H
#define EBB__PUMP_H

#include <ebb/kernel.h>

/* Sets a function that chooses which of n tasks near the head of a lane is polled next. NULL: the head. */
void ebb__set_chooser(ebb_runtime *rt, uint32_t (*fn)(void *ctx, uint32_t n), void *ctx);

#endif
