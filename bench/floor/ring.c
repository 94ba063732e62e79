/* The floor for machines: the same layout in bare C. A record of a cache line with fields behind it, cells of 64
 * bytes from a free list, a table of rules, an intrusive ready queue; no ids, no checks, no log. */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

enum { MILLION = 1000000 };

typedef struct cell {
    struct cell *next;
    uint64_t number, from;
    uint32_t to, kind;
    uint64_t payload[4];
} cell;

typedef struct actor actor;
typedef void (*rule)(actor *a, cell *c);
struct actor {
    const rule *table;
    struct fields *fields;
    cell *first, **last;
    actor *queue_next;
    uint32_t state, queued;
    uint64_t pad[2];
};
typedef struct fields {
    actor *peer;
    uint64_t n;
} fields;

static actor *queue_head, **queue_tail = &queue_head;
static cell *free_list;

__attribute__((noinline)) static void send(actor *to, uint64_t value) {
    cell *c = free_list;
    if (c != NULL) free_list = c->next;
    else c = malloc(sizeof *c);
    c->next = NULL;
    c->kind = 1;
    c->payload[0] = value;
    *to->last = c;
    to->last = &c->next;
    if (to->queued) return;
    to->queued = 1;
    to->queue_next = NULL;
    *queue_tail = to;
    queue_tail = &to->queue_next;
}

__attribute__((noinline)) static void pass_on(actor *a, cell *c) {
    fields copy = *a->fields;
    copy.n++;
    if (c->payload[0] > 0) send(copy.peer, c->payload[0] - 1);
    *a->fields = copy;
}

static const rule table[2] = {NULL, pass_on};

static void run(void) {
    while (queue_head != NULL) {
        actor *a = queue_head;
        queue_head = a->queue_next;
        if (queue_head == NULL) queue_tail = &queue_head;
        cell *c = a->first;
        a->first = c->next;
        if (a->first == NULL) a->last = &a->first;
        a->queued = 0;
        a->table[a->state * 2 + c->kind](a, c);
        c->next = free_list;
        free_list = c;
        if (a->first == NULL || a->queued) continue;
        a->queued = 1;
        a->queue_next = NULL;
        *queue_tail = a;
        queue_tail = &a->queue_next;
    }
}

static double ring(uint32_t n) {
    actor *a = aligned_alloc(64, n * sizeof *a);
    fields *f = calloc(n, sizeof *f);
    for (uint32_t i = 0; i < n; i++) {
        a[i] = (actor){.table = table, .fields = &f[i], .last = &a[i].first};
        f[i].peer = &a[(i + 1) % n];
    }
    double t0 = bench_cpu_ns();
    send(a, 2 * MILLION);
    run();
    double ns = (bench_cpu_ns() - t0) / (2 * MILLION);
    free(f);
    free(a);
    return ns;
}

double floor_machine_message(void) {
    return ring(2);
}

double floor_machine_ring_100k(void) {
    return ring(100000);
}
