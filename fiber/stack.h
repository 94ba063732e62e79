/* Stacks: memory of the system's own, with a guard below that nobody may touch.
 *
 * The guard is as large as the default stack, so that a function with a frame of up to 64 KiB can't step over
 * it into the stack of somebody else. It costs addresses, no memory. A stack is two maps of the process. */
#ifndef EBB__STACK_H
#define EBB__STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EBB__GUARD_BYTES = 65536 };

/* Rounded up to whole pages. */
size_t ebb__stack_round(size_t bytes);

/* Its lowest byte, above the guard. NULL: the system gives none, for lack of memory or of maps. */
char *ebb__stack_map(size_t bytes);
void ebb__stack_unmap(char *base, size_t bytes);
/* Bytes of it that have pages of memory. `depth`, what is known to be in use, if the system does not tell. */
size_t ebb__stack_touched(char *base, size_t bytes, size_t depth);

static inline bool ebb__stack_guards(const char *base, const void *address) {
    return (uintptr_t)base - (uintptr_t)address - 1 < EBB__GUARD_BYTES;
}

#endif
