/* The web rows' work, natively: `web-native WORK N` prints the ns of one operation. */
#include "web/bench/work.h"

#include <ebb/ebb.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double once(bench_work work, uint32_t n) {
    if (bench_prepare(work, n, ebb_libc_allocator()) != EBB_OK) exit(1);
    double begun = now_ns();
    uint64_t done = bench_run();
    return (now_ns() - begun) / (double)done;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: web-native WORK N\n");
        return 2;
    }
    bench_work work = (bench_work)atoi(argv[1]);
    uint32_t n = (uint32_t)atoi(argv[2]);
    (void)once(work, n); /* warm */
    printf("%.3f\n", once(work, n));
    return 0;
}
