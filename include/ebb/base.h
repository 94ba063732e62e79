/* ebb/base.h - what every layer shares: status codes, the host's allocator, units of time.
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

/* The version of these headers. CMake, pkg-config and the soname take theirs from here. */
#define EBB_VERSION_MAJOR 0
#define EBB_VERSION_MINOR 2
#define EBB_VERSION_PATCH 0

/* The version of the library that runs: "0.2.0". The string is static. */
const char *ebb_version(void);

/* The contract that this build implements. It stands in every trace, journal and fixture. */
#define EBB_CONTRACT "ebb-cancel-v2"

/* Time is a count of nanoseconds on a clock the host chooses; the kernel never reads a clock. */
#define EBB_US      UINT64_C(1000)
#define EBB_MS      UINT64_C(1000000)
#define EBB_SECOND  UINT64_C(1000000000)
#define EBB_FOREVER UINT64_MAX /* a deadline that never comes */

/* Zero is success, EBB_PENDING is "poll again", and every negative value is an end that is not success. A program's own
 * statuses are -1001 to -1999; a task may return them. Failures of the system are below -2000: see EBB_ERRNO. */
typedef enum ebb_status {
#define EBB_STATUS(name, value, text) name = (value),
#include <ebb/status.def>
#undef EBB_STATUS
    EBB_STATUS_USER = -1000,
    EBB_STATUS_SYSTEM = -2000
} ebb_status;

/* A failure of the system as a status: EBB_ERRNO(EADDRINUSE). */
#define EBB_ERRNO(e) ((ebb_status)(EBB_STATUS_SYSTEM - (e)))

/* The name of a status, "EBB_ERR_CLOSED" or "EADDRINUSE", and its meaning in one line. Never NULL. A program's own status
 * is named "EBB_USER", an unknown failure of the system "EBB_SYSTEM". The strings are static. */
const char *ebb_status_name(ebb_status st);
const char *ebb_status_text(ebb_status st);

/* The host's allocator, one function: `new_size` 0 frees and returns NULL; `ptr` NULL allocates;
 * otherwise resizes. `old_size` is what was asked for. A NULL return for `new_size` > 0 means that
 * there is no memory: every function of Ebb that can meet this says what it does then. Memory must
 * be aligned for any type. */
typedef struct ebb_allocator {
    void *(*fn)(void *ctx, void *ptr, size_t old_size, size_t new_size);
    void *ctx;
} ebb_allocator;

/* For tests: passes on to `inner`, counts, and fails the n-th allocation from now on. `fail_at` 0
 * never fails; with `fail_after` every later one fails too. Give `ebb_failing_allocator(&state)` to
 * whatever is tested; `live` is back to 0 when it has freed everything. */
typedef struct ebb_failing {
    ebb_allocator inner;
    uint64_t calls;    /* allocations and growths asked for so far */
    uint64_t fail_at;  /* the number of the one that fails, counted as `calls`; 0: none */
    bool fail_after;   /* and all that follow */
    uint64_t failures; /* how many were refused */
    int64_t live;      /* blocks that are allocated and not freed */
    int64_t live_bytes;
} ebb_failing;

ebb_allocator ebb_failing_allocator(ebb_failing *state);

#ifdef __cplusplus
}
#endif
#endif
