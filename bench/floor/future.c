/* The floor for futures: a node with a callback, an input and those that wait for it, from a free list, told
 * through a queue. No types, no regions, no counts of holders, no errors. */
#include "bench/floor/future.h"
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

enum { MILLION = 1000000, SHORT = 16, BATCH = 7900 };

typedef struct node node;
struct node {
    node *queue_next;
    node *waiters, *next; /* those that wait for it; the next that waits for the same */
    node *input;
    long (*fn)(long value, void *arg);
    void *arg;
    long value;
    int state; /* 0 pending, 1 completed, 2 cancelled */
    char pad[128 - 5 * sizeof(void *) - 2 * sizeof(long) - sizeof(long)];
};
_Static_assert(sizeof(node) == 128, "as large as ours");

static node *queue_head, **queue_tail = &queue_head, *free_list;
static long freed;

static void more_nodes(void) {
    enum { CHUNK = 4096 };
    node *chunk = malloc(CHUNK * sizeof *chunk);
    if (chunk == NULL) abort();
    for (int i = CHUNK - 1; i >= 0; i--) {
        chunk[i].queue_next = free_list;
        free_list = &chunk[i];
    }
}

static node *node_new(long (*fn)(long, void *), void *arg, node *input) {
    if (free_list == NULL) more_nodes();
    node *n = free_list;
    free_list = n->queue_next;
    memset(n, 0, sizeof *n);
    n->fn = fn;
    n->arg = arg;
    n->input = input;
    if (input != NULL) {
        n->next = input->waiters;
        input->waiters = n;
    }
    return n;
}

static void node_free(node *n) {
    n->queue_next = free_list;
    free_list = n;
    freed++;
}

static void node_end(node *n, int state, long value) {
    if (n->state != 0) return;
    n->state = state;
    n->value = value;
    n->queue_next = NULL;
    *queue_tail = n;
    queue_tail = &n->queue_next;
}

__attribute__((noinline)) static void queue_run(void) {
    while (queue_head != NULL) {
        node *n = queue_head;
        queue_head = n->queue_next;
        if (queue_head == NULL) queue_tail = &queue_head;
        if (n->state == 2 && n->input != NULL) node_end(n->input, 2, 0);
        for (node *w = n->waiters, *next; w != NULL; w = next) {
            next = w->next;
            w->input = NULL;
            if (w->state == 0) node_end(w, n->state, n->state == 1 ? w->fn(n->value, w->arg) : 0);
        }
        node_free(n);
    }
}

__attribute__((noinline)) static long one_more(long value, void *arg) {
    (void)arg;
    return value + 1;
}

static node *chain_new(int n, node **first) {
    node *last = *first = node_new(NULL, NULL, NULL);
    for (int i = 0; i < n; i++) last = node_new(one_more, NULL, last);
    return last;
}

double floor_future_bytes(void) {
    long before = bench_rss_bytes();
    node **all = malloc(MILLION * sizeof *all);
    if (all == NULL) abort();
    for (int i = 0; i < MILLION; i++) {
        all[i] = malloc(sizeof(node));
        memset(all[i], 0, sizeof(node));
    }
    double bytes = (double)(bench_rss_bytes() - before) / MILLION;
    for (int i = 0; i < MILLION; i++) free(all[i]);
    free(all);
    return bytes;
}

static double short_chains(int n) {
    node *first;
    double t0 = bench_cpu_ns();
    for (int i = 0; i < n / SHORT; i++) {
        (void)chain_new(SHORT, &first);
        node_end(first, 1, 0);
        queue_run();
    }
    return (bench_cpu_ns() - t0) / n;
}

double floor_future_then(void) {
    return short_chains(MILLION);
}

/* The memory of a million lies between; nothing has to be collected. */
double floor_future_then_1m(void) {
    static node **live;
    if (live == NULL) {
        live = malloc(MILLION * sizeof *live);
        for (int i = 0; i < MILLION; i++) live[i] = node_new(one_more, NULL, NULL);
    }
    return short_chains(3 * MILLION);
}

double floor_future_resolve_chain(void) {
    node *first;
    (void)chain_new(MILLION, &first);
    double t0 = bench_cpu_ns();
    node_end(first, 1, 0);
    queue_run();
    return (bench_cpu_ns() - t0) / MILLION;
}

double floor_future_cancel_chain(void) {
    node *first, *last = chain_new(MILLION, &first);
    double t0 = bench_cpu_ns();
    node_end(last, 2, 0);
    queue_run();
    return (bench_cpu_ns() - t0) / MILLION;
}

double floor_future_cancel_fan(void) {
    node *source = node_new(NULL, NULL, NULL);
    for (int i = 0; i < MILLION; i++) (void)node_new(one_more, NULL, source);
    double t0 = bench_cpu_ns();
    node_end(source, 2, 0);
    queue_run();
    return (bench_cpu_ns() - t0) / MILLION;
}

/* ---- allocation ------------------------------------------------------------------------------------------ */

double floor_bump(void) {
    static char *buffer;
    if (buffer == NULL) buffer = malloc((size_t)BATCH * 128);
    double ns = 0;
    for (int round = 0; round < MILLION / BATCH; round++) {
        char *cur = buffer;
        double t0 = bench_cpu_ns();
        for (int i = 0; i < BATCH; i++) {
            memset(cur, 0, 128);
            *(void **)(void *)cur = buffer;
            cur += 128;
            __asm__ volatile("" ::"r"(cur) : "memory");
        }
        ns += bench_cpu_ns() - t0;
    }
    return ns / (MILLION / BATCH * BATCH);
}

double floor_malloc_free(void) {
    double t0 = bench_cpu_ns();
    for (int i = 0; i < MILLION; i++) {
        void *p = malloc(128);
        if (p == NULL) abort();
        memset(p, 0, 128);
        __asm__ volatile("" ::"r"(p) : "memory");
        free(p);
    }
    return (bench_cpu_ns() - t0) / MILLION;
}
