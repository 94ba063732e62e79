#define _DEFAULT_SOURCE /* mmap's flags, mincore */
#include "fiber/stack.h"

#include <sys/mman.h>
#include <unistd.h>

size_t ebb__stack_round(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

enum { PAGES_A_CALL = 64 };

size_t ebb__stack_touched(char *base, size_t bytes, size_t depth) {
    unsigned char resident[PAGES_A_CALL];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), all = 0;
    for (size_t at = 0; at < bytes; at += PAGES_A_CALL * page) {
        size_t n = bytes - at < PAGES_A_CALL * page ? bytes - at : PAGES_A_CALL * page;
        if (mincore(base + at, n, resident) != 0) return ebb__stack_round(depth);
        for (size_t i = 0; i < n / page; i++) all += resident[i] & 1 ? page : 0;
    }
    return all;
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
