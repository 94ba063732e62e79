/* ebb/base.h - shared by all layers: status codes, the host's allocator, units of time.
 *
 * Nothing here keeps state. All functions may be called from any thread. */
#ifndef EBB_BASE_H
#define EBB_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers. CMake, pkg-config and the soname read it from here. */
#define EBB_VERSION_MAJOR 0
#define EBB_VERSION_MINOR 2
#define EBB_VERSION_PATCH 0

/* Returns the version of the linked library: "0.2.0". The string is static. */
const char *ebb_version(void);

/* The contract that this build implements. Every trace, journal and fixture contains it. */
#define EBB_CONTRACT "ebb-cancel-v2"

/* Time is a count of nanoseconds on a clock that the host chooses. The kernel reads no clock but the one that the host
 * passes in ebb_runtime_opts. */
#define EBB_US      UINT64_C(1000)
#define EBB_MS      UINT64_C(1000000)
#define EBB_SECOND  UINT64_C(1000000000)
#define EBB_FOREVER UINT64_MAX /* a deadline that never passes */

/* 0 is success. EBB_PENDING means "poll again". A negative value is a failure or a cancel. The range -1001 to -1999 is
 * for the program's own statuses; a task may return them. System errors are below -2000: see EBB_ERRNO. */
typedef enum ebb_status
#ifdef __cplusplus
    : int /* else the statuses of programs and of the system are out of the range of the enum */
#endif
{
#define EBB_STATUS(name, value, text) name = (value),
#include <ebb/status.def>
#undef EBB_STATUS
    EBB_STATUS_USER = -1000,
    EBB_STATUS_SYSTEM = -2000
} ebb_status;

/* A system error as a status: EBB_ERRNO(EADDRINUSE). */
#define EBB_ERRNO(e) ((ebb_status)(EBB_STATUS_SYSTEM - (e)))

/* Return the name of a status, "EBB_ERR_CLOSED" or "EADDRINUSE", and its meaning in one line. Never NULL; the strings
 * are static. An unknown system error is named "EBB_SYSTEM". Any other unknown number is named "EBB_USER". */
const char *ebb_status_name(ebb_status st);
const char *ebb_status_text(ebb_status st);

/* The host's allocator. */
typedef struct ebb_allocator {
    /* If `new_size` is 0, frees `ptr` and returns NULL. Else, if `ptr` is NULL, allocates. Else resizes. `old_size` is
     * the size that was requested for `ptr`. NULL for a `new_size` above 0 means out of memory: every function of Ebb
     * that allocates documents what it does then. The memory must be aligned for any type. */
    void *(*fn)(void *ctx, void *ptr, size_t old_size, size_t new_size);
    void *ctx; /* the first argument of `fn` */
} ebb_allocator;

/* An allocator for tests. It calls `inner`, counts, and refuses the allocation that `fail_at` names. */
typedef struct ebb_failing {
    ebb_allocator inner; /* provides the memory */
    uint64_t calls;      /* allocations and growths requested so far */
    uint64_t fail_at;    /* the value of `calls` at which a request fails; 0: never */
    bool fail_after;     /* all requests after `fail_at` fail too */
    uint64_t failures;   /* requests refused so far */
    int64_t live;        /* blocks allocated and not freed; 0 once the tested code has freed everything */
    int64_t live_bytes;  /* the bytes of these blocks */
} ebb_failing;

/* Returns an allocator on `state`, which must stay valid as long as the allocator is used. */
ebb_allocator ebb_failing_allocator(ebb_failing *state);

#ifdef __cplusplus
}
#endif
#endif
