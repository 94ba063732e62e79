/* The floor for timers: a hashed wheel of 4096 slots, intrusive lists. */
#include "bench/bench.h"

#include <stdint.h>
#include <stdlib.h>

enum { MILLION = 1000000, SLOTS = 4096 };

typedef struct timer {
    struct timer *next, *prev;
    uint64_t due;
    void (*fire)(struct timer *t);
} timer;

static timer wheel[SLOTS];

double floor_timer_arm_cancel_1m(void) {
    static timer *timers;
    static uint32_t *due;
    uint64_t seed = 88172645463325252u;
    if (timers == NULL) {
        timers = calloc(MILLION, sizeof *timers);
        due = malloc(MILLION * sizeof *due);
        for (int i = 0; i < MILLION; i++) due[i] = (uint32_t)(bench_random(&seed) % 1000000);
    }
    for (int i = 0; i < SLOTS; i++) wheel[i].next = wheel[i].prev = &wheel[i];
    double t0 = bench_cpu_ns();
    for (int i = 0; i < MILLION; i++) {
        timer *t = &timers[i], *slot = &wheel[due[i] % SLOTS];
        t->due = due[i];
        t->next = slot;
        t->prev = slot->prev;
        slot->prev->next = t;
        slot->prev = t;
    }
    for (int i = 0; i < MILLION; i++) {
        timer *t = &timers[i];
        t->prev->next = t->next;
        t->next->prev = t->prev;
        t->next = NULL;
    }
    return (bench_cpu_ns() - t0) / MILLION;
}
