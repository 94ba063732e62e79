/* What libgc takes for the same: Debian's libgc-dev, if it was there when the build was configured. */
#ifdef EBB_BENCH_LIBGC
#include "bench/bench.h"
#include "bench/floor/future.h"

#include <gc.h>
#include <stdlib.h>

enum { MILLION = 1000000, BATCH = 7900 };

static void begin(void) {
    static int begun;
    if (!begun) GC_INIT();
    begun = 1;
}

/* Garbage is collected between the batches, as ours is, and is not timed. */
double floor_gc_malloc(void) {
    double ns = 0;
    begin();
    for (int round = 0; round < MILLION / BATCH; round++) {
        GC_disable();
        double t0 = bench_cpu_ns();
        for (int i = 0; i < BATCH; i++) {
            void *p = GC_malloc(128);
            __asm__ volatile("" ::"r"(p) : "memory");
        }
        ns += bench_cpu_ns() - t0;
        GC_enable();
        GC_gcollect();
    }
    return ns / (MILLION / BATCH * BATCH);
}

/* As many objects as there are handles in ours, each but a tenth referring to the one before it. */
static double pause(long n) {
    begin();
    void **table = GC_malloc((size_t)n * sizeof *table);
    if (table == NULL) abort();
    for (long i = 0; i < n; i++) {
        void **p = GC_malloc(128);
        p[1] = i % 10 != 0 && i > 0 ? table[i - 1] : NULL;
        table[i] = p;
    }
    double t0 = bench_cpu_ns();
    GC_gcollect();
    double us = (bench_cpu_ns() - t0) / 1000;
    __asm__ volatile("" ::"r"(table) : "memory");
    for (long i = 0; i < n; i++) table[i] = NULL;
    GC_gcollect();
    return us;
}

double floor_gc_pause_200k(void) {
    return pause(200000);
}

double floor_gc_pause_1m(void) {
    return pause(MILLION);
}

double floor_gc_pause_2m(void) {
    return pause(2 * MILLION);
}
#else
typedef int no_libgc; /* ISO C wants something in a file */
#endif
