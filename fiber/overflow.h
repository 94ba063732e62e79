/* Distinguishes a stack overflow from other faults. */
#ifndef EBB__OVERFLOW_H
#define EBB__OVERFLOW_H

/* From here on an overflow on this thread prints a line that names the fiber. If the system refuses the alternate
 * stack, the process ends without that line. */
void ebb__overflow_watch(void);

#endif
