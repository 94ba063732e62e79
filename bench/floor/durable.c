/* Runs of an orchestration as rows: started, some turns with calls and the messages of their ends, ended. `members` runs go in
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

static void ack(const floor_store *s, void *self, uint64_t lo, uint64_t hi, unsigned call) {
    s->begin(self);
    s->ack(self, lo, hi, call);
    s->commit(self);
}

static void turn(const floor_store *s, void *self, uint64_t lo, uint64_t hi, const durable_shape *shape,
                 unsigned n) {
    const unsigned last = shape->turns - 1, after = n > 0 ? n - 1 : 0;
    const unsigned from = n > 0 ? 1 + shape->calls * after / last : 0, to = 1 + shape->calls * n / last;
    const unsigned calls = shape->parallel ? (n == 0 ? shape->calls : 0) : n < shape->calls;
    s->begin(self);
    s->turn(self, lo, hi, n + 1, from, to, n, calls);
    if (n == last) s->end(self, lo, hi);
    s->commit(self);
}

static void runs(const floor_store *s, void *self, uint64_t lo, uint64_t hi, const durable_shape *shape) {
    unsigned acked = 0;
    start(s, self, lo, hi);
    for (unsigned n = 0; n < shape->turns; n++) {
        const unsigned needed = n > 0 ? shape->calls * n / (shape->turns - 1) : 0;
        for (; acked < needed; acked++) ack(s, self, lo, hi, acked);
        turn(s, self, lo, hi, shape, n);
    }
}

double floor_durable(const floor_store *s, void *self, const durable_shape *shape) {
    static uint64_t key = 1;
    const unsigned step = shape->members < shape->runs ? shape->members : shape->runs;
    unsigned done = 0;
    const double from = now_ns();
    for (; done < shape->runs; done += step, key += step) runs(s, self, key, key + step, shape);
    return (now_ns() - from) / done;
}
