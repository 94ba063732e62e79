/* Stack overflows, told from other faults. */
#ifndef EBB__OVERFLOW_H
#define EBB__OVERFLOW_H

/* Makes an overflow on this thread end with a message that names the fiber. Where the system does not give
 * what that needs it ends without one. */
void ebb__overflow_watch(void);

#endif
