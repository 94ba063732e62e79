/* The floor for messages: two actors with intrusive mailboxes on an intrusive run queue. */
#include "bench/bench.h"

#include <stdlib.h>

enum { MILLION = 1000000 };

typedef struct message {
    struct message *next;
    long value;
} message;

typedef struct actor {
    struct actor *queue_next;
    message *first, **last;
    void (*receive)(struct actor *a, message *m);
    struct actor *peer;
    int queued;
} actor;

static actor *queue_head, **queue_tail = &queue_head;
static message *free_list;
static long left;

__attribute__((noinline)) static void send(actor *to, message *m) {
    m->next = NULL;
    *to->last = m;
    to->last = &m->next;
    if (to->queued) return;
    to->queued = 1;
    to->queue_next = NULL;
    *queue_tail = to;
    queue_tail = &to->queue_next;
}

static message *message_new(void) {
    message *m = free_list;
    if (m == NULL) return malloc(sizeof *m);
    free_list = m->next;
    return m;
}

__attribute__((noinline)) static void pong(actor *a, message *m) {
    long value = m->value;
    m->next = free_list;
    free_list = m;
    if (--left <= 0) return;
    message *answer = message_new();
    answer->value = value + 1;
    send(a->peer, answer);
}

double floor_channel_msg(void) {
    actor a = {.receive = pong}, b = {.receive = pong, .peer = &a};
    a.peer = &b;
    a.last = &a.first;
    b.last = &b.first;
    left = MILLION;
    message *m = message_new();
    m->value = 0;
    double t0 = bench_cpu_ns();
    send(&a, m);
    while (queue_head != NULL) {
        actor *next = queue_head;
        queue_head = next->queue_next;
        if (queue_head == NULL) queue_tail = &queue_head;
        message *got = next->first;
        next->first = got->next;
        if (next->first == NULL) {
            next->last = &next->first;
            next->queued = 0;
        } else {
            next->queue_next = NULL;
            *queue_tail = next;
            queue_tail = &next->queue_next;
        }
        next->receive(next, got);
    }
    return (bench_cpu_ns() - t0) / MILLION;
}
