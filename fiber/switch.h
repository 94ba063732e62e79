/* The switch from one stack to another. */
#ifndef EBB__SWITCH_H
#define EBB__SWITCH_H

#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__LP64__)
#define EBB__SWITCHES 1

/* Saves the callee-saved registers on the current stack, stores the stack pointer in *from, and continues where `to`
 * was left. Returns when another switch goes to *from. */
void ebb__switch(void **from, void *to);

/* Prepares a stack that ends below `top` (aligned to 16). Returns the stack pointer to switch to, so that main(arg)
 * is called there. main starts with the caller's floating point modes and must not return. */
void *ebb__switch_start(char *top, void (*main)(void *arg), void *arg);

/* The code of the outermost frame of every fiber. */
extern const char ebb__switch_entry[];

#else
#define EBB__SWITCHES 0 /* not written for this machine: the limit of fibers is 0, and nothing switches */

static inline void ebb__switch(void **from, void *to) {
    (void)from;
    (void)to;
    __builtin_trap();
}

static inline void *ebb__switch_start(char *top, void (*main)(void *arg), void *arg) {
    (void)top;
    (void)main;
    (void)arg;
    __builtin_trap();
}
#endif

#endif
