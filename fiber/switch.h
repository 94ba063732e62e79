/* From one stack to another. */
#ifndef EBB__SWITCH_H
#define EBB__SWITCH_H

#if defined(__x86_64__) && defined(__LP64__)
#define EBB__SWITCHES 1
#else
#define EBB__SWITCHES 0 /* nobody has written it for this machine: there are no fibers */
#endif

/* Leaves what a call must preserve on the stack in use, its stack pointer in *from, and goes on where `to`
 * was left. Returns when somebody switches to *from. */
void ebb__switch(void **from, void *to);

/* For a stack that ends below `top` (aligned to 16): what to switch to so that main(arg) is called there. It
 * starts with the caller's floating point modes, and may not return. */
void *ebb__switch_start(char *top, void (*main)(void *arg), void *arg);

#endif
