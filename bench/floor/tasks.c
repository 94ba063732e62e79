/* The floor for tasks: 64-byte records, a free list, an intrusive run queue; and for the cancel of a
 * million that lie scattered in memory, arrays of pointers with prefetch. */
#include "bench/bench.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MILLION = 1000000, CHUNK = 1024, AHEAD = 16 };

typedef struct task task;
typedef struct region {
    task *first;
    long live;
} region;
struct task {
    task *queue_next, *prev, *next;
    region *region;
    int (*step)(task *t);
    void *arg;
    _Atomic uint32_t state; /* as a runtime whose tasks are woken by other threads would have it */
    uint32_t index;
    uint64_t pad;
};

static task *queue_head, **queue_tail = &queue_head, *free_list;
static _Atomic uint32_t cancelled;
static long ended;

static void queue_push(task *t) {
    t->queue_next = NULL;
    *queue_tail = t;
    queue_tail = &t->queue_next;
}

static task *queue_pop(void) {
    task *t = queue_head;
    if (t == NULL) return NULL;
    queue_head = t->queue_next;
    if (queue_head == NULL) queue_tail = &queue_head;
    return t;
}

static task *task_new(void) {
    if (free_list == NULL) {
        task *chunk = malloc(CHUNK * sizeof *chunk);
        for (int i = 0; i < CHUNK; i++) {
            chunk[i].queue_next = free_list;
            free_list = &chunk[i];
        }
    }
    task *t = free_list;
    free_list = t->queue_next;
    return t;
}

__attribute__((noinline)) static void spawn(region *r, int (*step)(task *)) {
    task *t = task_new();
    t->step = step;
    t->arg = NULL;
    t->region = r;
    t->state = 0;
    t->index = 0;
    t->prev = NULL;
    t->next = r->first;
    if (r->first != NULL) r->first->prev = t;
    r->first = t;
    r->live++;
    queue_push(t);
}

__attribute__((noinline)) static void finish(task *t) {
    region *r = t->region;
    if (t->prev != NULL) t->prev->next = t->next;
    else r->first = t->next;
    if (t->next != NULL) t->next->prev = t->prev;
    r->live--;
    ended++;
    t->queue_next = free_list;
    free_list = t;
}

__attribute__((noinline)) static void run(void) {
    for (task *t; (t = queue_pop()) != NULL;) {
        if (t->step(t) == 0) finish(t);
    }
}

__attribute__((noinline)) static int end_at_once(task *t) {
    (void)t;
    return 0;
}

__attribute__((noinline)) static int until_cancelled(task *t) {
    (void)t;
    return atomic_load_explicit(&cancelled, memory_order_relaxed) ? 0 : 1;
}

double floor_spawn_end_seq(void) {
    region r = {0};
    double t0 = bench_cpu_ns();
    for (int i = 0; i < MILLION; i++) {
        spawn(&r, end_at_once);
        run();
    }
    return (bench_cpu_ns() - t0) / MILLION;
}

double floor_spawn_end_1m(void) {
    region r = {0};
    double t0 = bench_cpu_ns();
    for (int i = 0; i < MILLION; i++) spawn(&r, end_at_once);
    run();
    return (bench_cpu_ns() - t0) / MILLION;
}

double floor_task_bytes(void) {
    return sizeof(task);
}

double floor_cancel_fan_1m(void) {
    static task *memory, **member, **queue;
    uint64_t seed = 88172645463325252u;
    if (memory == NULL) {
        memory = aligned_alloc(64, MILLION * sizeof *memory);
        memset(memory, 0, MILLION * sizeof *memory);
        member = malloc(MILLION * sizeof(task *));
        queue = malloc(MILLION * sizeof(task *));
        memset((void *)queue, 1, MILLION * sizeof(task *));
        for (int i = 0; i < MILLION; i++) member[i] = &memory[i];
        for (int i = MILLION - 1; i > 0; i--) {
            uint64_t j = bench_random(&seed) % (uint64_t)(i + 1);
            task *t = member[i];
            member[i] = member[j];
            member[j] = t;
        }
    }
    cancelled = 0;
    for (int i = 0; i < MILLION; i++) {
        member[i]->step = until_cancelled;
        member[i]->index = (uint32_t)i;
        atomic_store_explicit(&member[i]->state, 1, memory_order_relaxed);
    }
    long live = MILLION, n = 0;
    task *freed = NULL;
    double t0 = bench_cpu_ns();
    cancelled = 1;
    for (long i = MILLION - 1; i >= 0; i--) {
        if (i >= AHEAD) __builtin_prefetch(member[i - AHEAD], 1);
        atomic_store_explicit(&member[i]->state, 0, memory_order_relaxed);
        queue[n++] = member[i];
    }
    for (long i = 0; i < n; i++) {
        if (i + AHEAD < n) __builtin_prefetch(queue[i + AHEAD], 1);
        task *t = queue[i];
        if (t->step(t) != 0) continue;
        long at = t->index;
        if (at != live - 1) {
            task *last = member[live - 1];
            member[at] = last;
            last->index = (uint32_t)at;
        }
        live--;
        ended++;
        t->queue_next = freed;
        freed = t;
    }
    double ns = (bench_cpu_ns() - t0) / MILLION;
    for (long i = 0; i < n; i++) member[i] = queue[i];
    return live == 0 ? ns : -1;
}
