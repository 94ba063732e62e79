/* Runs of an orchestration as rows: started, some turns with calls and the ends of earlier ones, ended. `members` runs go in
 * step, and each of their steps is a commit. */
#include "bench/durable.h"
#include "bench/bench.h"

#include <time.h>

static double now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void start(const floor_store *s, void *self, uint64_t lo, uint64_t hi) {
    s->begin(self);
    s->start(self, lo, hi);
    s->commit(self);
}

/* Turn number n + 1, with the ends of the calls before it. */
static void turn(const floor_store *s, void *self, uint64_t lo, uint64_t hi, const durable_shape *shape,
                 unsigned n) {
    const unsigned last = shape->turns - 1, before = n > 0 ? shape->calls * (n - 1) / last : 0;
    const unsigned calls = shape->parallel ? (n == 0 ? shape->calls : 0) : n < shape->calls;
    s->begin(self);
    for (unsigned i = before; i < shape->calls * n / last; i++) s->done(self, lo, hi, i);
    s->turn(self, lo, hi, n + 1, n, calls);
    if (n == last) s->end(self, lo, hi);
    s->commit(self);
}

static void runs(const floor_store *s, void *self, uint64_t lo, uint64_t hi, const durable_shape *shape) {
    start(s, self, lo, hi);
    for (unsigned n = 0; n < shape->turns; n++) turn(s, self, lo, hi, shape, n);
}

double floor_durable(const floor_store *s, void *self, const durable_shape *shape) {
    static uint64_t key = 1;
    const unsigned step = shape->members < shape->runs ? shape->members : shape->runs;
    unsigned done = 0;
    const double from = now_ns();
    for (; done < shape->runs; done += step, key += step) runs(s, self, key, key + step, shape);
    return (now_ns() - from) / done;
}
