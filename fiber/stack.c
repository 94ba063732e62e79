#define _DEFAULT_SOURCE /* mmap's flags */
#include "fiber/stack.h"

#include <sys/mman.h>
#include <unistd.h>

size_t ebb__stack_round(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

char *ebb__stack_map(size_t bytes) {
    size_t all = EBB__GUARD_BYTES + bytes;
    char *low = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (low == MAP_FAILED) return NULL;
    if (mprotect(low + EBB__GUARD_BYTES, bytes, PROT_READ | PROT_WRITE) != 0) {
        (void)munmap(low, all);
        return NULL;
    }
    return low + EBB__GUARD_BYTES;
}

void ebb__stack_unmap(char *base, size_t bytes) {
    (void)munmap(base - EBB__GUARD_BYTES, EBB__GUARD_BYTES + bytes);
}
