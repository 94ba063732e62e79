/* ebb/ebb.h - includes all headers of Ebb and provides malloc as an allocator. */
#ifndef EBB_EBB_H
#define EBB_EBB_H

#include <stdlib.h>

#include <ebb/app.h>
#include <ebb/base.h>
#include <ebb/dashboard.h>
#include <ebb/durable.h>
#include <ebb/fiber.h>
#include <ebb/future.h>
#include <ebb/http.h>
#include <ebb/kernel.h>
#include <ebb/lab.h>
#include <ebb/lang.h>
#include <ebb/loop.h>
#include <ebb/machine.h>
#include <ebb/program.h>
#include <ebb/provider.h>
#include <ebb/sched.h>
#include <ebb/trace.h>
#include <ebb/workflow.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The function of ebb_libc_allocator. */
static inline void *ebb_libc_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx;
    (void)old_size;
    if (new_size != 0) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* Returns an allocator that calls realloc and free. */
static inline ebb_allocator ebb_libc_allocator(void) {
    ebb_allocator a = {ebb_libc_realloc, NULL};
    return a;
}

#ifdef __cplusplus
}
#endif

#endif
