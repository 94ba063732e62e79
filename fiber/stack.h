/* Stacks, mapped from the system, each with a guard below it that faults on any access.
 *
 * The guard is as large as the default stack, so that a function with a frame of up to 64 KiB cannot step over it
 * into another stack. The guard costs address space but no memory. A stack takes two of the process's maps. */
#ifndef EBB__STACK_H
#define EBB__STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EBB__GUARD_BYTES = 65536 };

/* Rounded up to whole pages. */
size_t ebb__stack_round(size_t bytes);

/* Returns the lowest byte of the stack, above the guard. NULL: the system refuses, for lack of memory or of maps. */
char *ebb__stack_map(size_t bytes);
void ebb__stack_unmap(char *base, size_t bytes);
/* Bytes of the stack that have memory. If the system does not say, `depth` rounded up: the bytes known to be in use. */
size_t ebb__stack_touched(char *base, size_t bytes, size_t depth);

static inline bool ebb__stack_guards(const char *base, const void *address) {
    return (uintptr_t)base - (uintptr_t)address - 1 < EBB__GUARD_BYTES;
}

#endif
