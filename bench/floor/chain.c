/* The floor for a chain of a million nested regions with one parked task each, cancelled at the top:
 * marks each level going down, then ends each task. */
#include "bench/bench.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum { MILLION = 1000000, CHUNK = 1024 };

typedef struct task task;
typedef struct region region;
struct region {
    task *first;
    long live;
    region *parent, *child, *sibling;
    _Atomic uint32_t cancelled;
    task *waiter;
};
struct task {
    task *queue_next, *prev, *next;
    region *region;
    int (*step)(task *t);
    _Atomic uint32_t state;
    uint32_t index;
    uint64_t pad[2];
};

static task *queue_head, **queue_tail = &queue_head, *free_list;
static long ended;

static void queue_push(task *t) {
    t->queue_next = NULL;
    *queue_tail = t;
    queue_tail = &t->queue_next;
}

__attribute__((noinline)) static int parked(task *t) {
    if (atomic_load_explicit(&t->region->cancelled, memory_order_relaxed)) return 0;
    t->state = 1;
    return 1;
}

__attribute__((noinline)) static void cancel(region *top) {
    for (region *r = top;;) {
        atomic_store_explicit(&r->cancelled, 1, memory_order_release);
        for (task *t = r->first; t != NULL; t = t->next) {
            if (t->state == 1) {
                t->state = 0;
                queue_push(t);
            }
        }
        if (r->child != NULL) {
            r = r->child;
            continue;
        }
        while (r != top && r->sibling == NULL) r = r->parent;
        if (r == top) return;
        r = r->sibling;
    }
}

static task *queue_pop(void) {
    task *t = queue_head;
    if (t == NULL) return NULL;
    queue_head = t->queue_next;
    if (queue_head == NULL) queue_tail = &queue_head;
    return t;
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

double floor_cancel_chain_1m(void) {
    static region *regions;
    static task *tasks;
    if (regions == NULL) {
        regions = malloc(MILLION * sizeof *regions);
        tasks = malloc(MILLION * sizeof *tasks);
    }
    for (int i = 0; i < MILLION; i++) {
        /* As from a free list that was filled a chunk at a time: the last of a chunk first. */
        int end = i / CHUNK * CHUNK + CHUNK < MILLION ? i / CHUNK * CHUNK + CHUNK : MILLION;
        task *t = &tasks[end - 1 - i % CHUNK];
        regions[i].first = t;
        regions[i].live = 1;
        regions[i].parent = i > 0 ? &regions[i - 1] : NULL;
        regions[i].child = i + 1 < MILLION ? &regions[i + 1] : NULL;
        regions[i].sibling = NULL;
        regions[i].cancelled = 0;
        t->prev = t->next = NULL;
        t->region = &regions[i];
        t->step = parked;
        t->step(t);
    }
    ended = 0;
    double t0 = bench_cpu_ns();
    cancel(&regions[0]);
    for (task *t; (t = queue_pop()) != NULL;) {
        if (t->step(t) == 0) finish(t);
    }
    double ns = (bench_cpu_ns() - t0) / MILLION;
    return ended == MILLION ? ns : -1;
}

double floor_cancelled_check(void) {
    static region r;
    const long n = 100000000;
    region *p = &r;
    long seen = 0;
    double t0 = bench_cpu_ns();
    for (long i = 0; i < n; i++) {
        if (__builtin_expect(atomic_load_explicit(&p->cancelled, memory_order_acquire) != 0, 0)) seen++;
    }
    return (bench_cpu_ns() - t0) / (double)n + (double)seen;
}
