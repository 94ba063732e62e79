/* The wall clock, moved: see shifted_clock.h. Clocks that count what has passed are left alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/durable/shifted_clock.h"

#define SECOND INT64_C(1000000000)

static _Atomic int64_t *shift; /* NULL: none. Written before there are threads */

static bool use(const char *file, int flags) {
    const int fd = open(file, flags | O_CLOEXEC, 0644);
    const int protection = (flags & O_RDWR) != 0 ? PROT_READ | PROT_WRITE : PROT_READ;
    if (fd < 0 || ((flags & O_CREAT) != 0 && ftruncate(fd, sizeof *shift) != 0)) return false;
    void *at = mmap(NULL, sizeof *shift, protection, MAP_SHARED, fd, 0);
    (void)close(fd);
    shift = at != MAP_FAILED ? at : NULL;
    return shift != NULL;
}

bool shifted_clock_make(const char *file) {
    return use(file, O_RDWR | O_CREAT);
}

void shifted_clock_set(int64_t ns) {
    atomic_store(shift, ns);
}

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv(SHIFTED_CLOCK_FILE);
    if (file != NULL && !use(file, O_RDONLY)) abort();
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    const long failed = syscall(SYS_clock_gettime, clock, out);
    if (failed != 0 || shift == NULL || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return (int)failed;
    const int64_t ns = out->tv_sec * SECOND + out->tv_nsec + atomic_load(shift);
    *out = (struct timespec){ns / SECOND, ns % SECOND};
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec t;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    *out = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out) {
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    if (out != NULL) *out = t.tv_sec;
    return t.tv_sec;
}
