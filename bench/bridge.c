/* The rows of messages between loops: two threads, each with a runtime, and a bridge or a proxy between them. The times
 * are wall-clock times, not CPU times as in other rows: what counts is how many messages a second two cores
 * carry. The floor of the bridge is a ring of words between two threads that spin; that of the proxy is the bridge. */
#include "bench/bench.h"

#include <ebb/ebb.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MESSAGES = 4000000, CAPACITY = 1024 };

static double wall_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- ours ---------------------------------------------------------------------------------------- */

/* A thread with a runtime, which sleeps when there is nothing to do. */
typedef struct end {
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool rung;
    ebb_runtime *rt;
    ebb_peer *peer;
    ebb_bridge *bridge;
    ebb_wait wait;
    uint64_t n, sum;
    bool done;
} end;

static void end_wake(void *ctx) {
    end *e = ctx;
    pthread_mutex_lock(&e->lock);
    e->rung = true;
    pthread_cond_signal(&e->woken);
    pthread_mutex_unlock(&e->lock);
}

static void end_sleep(end *e) {
    pthread_mutex_lock(&e->lock);
    while (!e->rung) pthread_cond_wait(&e->woken, &e->lock);
    e->rung = false;
    pthread_mutex_unlock(&e->lock);
}

static void end_new(end *e) {
    ebb_runtime_opts opts = {.allocator = ebb_libc_allocator()};
    *e = (end){.n = 0};
    bench_must(pthread_mutex_init(&e->lock, NULL) == 0 && pthread_cond_init(&e->woken, NULL) == 0);
    bench_must(ebb_runtime_new(&opts, &e->rt) == EBB_OK);
    bench_must(ebb_inbox_on_wake(e->rt, end_wake, e) == EBB_OK && ebb_peer_of(e->rt, &e->peer) == EBB_OK);
}

static void end_free(end *e) {
    ebb_peer_release(e->peer);
    ebb_runtime_free(e->rt);
    pthread_cond_destroy(&e->woken);
    pthread_mutex_destroy(&e->lock);
}

static ebb_status send_all(ebb_cx *cx, void *state) {
    end *e = state;
    for (; e->n < MESSAGES; e->n++) {
        ebb_status st = ebb_bridge_send(cx, e->bridge, &e->wait, &e->n);
        if (st != EBB_OK) return st;
    }
    e->done = true;
    return ebb_bridge_close(cx, e->bridge);
}

static ebb_status receive_all(ebb_cx *cx, void *state) {
    end *e = state;
    uint64_t item;
    ebb_status st;
    while ((st = ebb_bridge_recv(cx, e->bridge, &e->wait, &item)) == EBB_OK) {
        e->sum += item;
        e->n++;
    }
    e->done = st == EBB_ERR_CLOSED;
    return e->done ? EBB_OK : st;
}

static void run(end *e, ebb_poll_fn task) {
    bench_must(ebb_runtime_adopt(e->rt) == EBB_OK);
    ebb_spawn(ebb_runtime_host(e->rt), ebb_runtime_root(e->rt), task, e);
    for (;;) {
        ebb_inbox_receive(e->rt);
        while (ebb_runtime_pump(e->rt, UINT32_MAX) == EBB_PENDING) {}
        if (e->done) return;
        end_sleep(e);
    }
}

static void *run_sender(void *arg) {
    run(arg, send_all);
    return NULL;
}

static double loop_message(void) {
    end from, to;
    pthread_t thread;
    end_new(&from);
    end_new(&to);
    bench_must(ebb_bridge_new(from.peer, to.peer, CAPACITY, sizeof(uint64_t), &from.bridge) == EBB_OK);
    to.bridge = from.bridge;
    double t0 = wall_ns();
    bench_must(pthread_create(&thread, NULL, run_sender, &from) == 0);
    run(&to, receive_all);
    double ns = (wall_ns() - t0) / MESSAGES;
    pthread_join(thread, NULL);
    bench_must(to.n == MESSAGES && to.sum == (uint64_t)MESSAGES * (MESSAGES - 1) / 2);
    ebb_bridge_release(from.bridge);
    end_free(&from);
    end_free(&to);
    return ns;
}

/* ---- a proxy ------------------------------------------------------------------------------------- */

enum { GO = 1, WORD, ASK, ANSWER, KINDS };
enum { WINDOW = 256, WINDOWS = 3, PROXY_MESSAGES = 4000 * WINDOW };

typedef struct sender {
    ebb_machine proxy;
    uint64_t n;
} sender;

/* The last message of a window is a request, whose answer begins another one: so no credit is ever missing. */
static ebb_status send_window(ebb_machines *ms, sender *s) {
    if (s->n == PROXY_MESSAGES) return EBB_OK;
    for (uint64_t last = s->n + WINDOW - 1; s->n < last; s->n++) {
        ebb_status st = ebb_machine_send(ms, s->proxy, WORD, &s->n, sizeof s->n);
        if (st != EBB_OK) return st;
    }
    s->n++;
    return ebb_id_status(ebb_machine_request(ms, s->proxy, ASK, &(uint64_t){s->n - 1}, sizeof s->n, 0, 0).id);
}

static ebb_status on_go(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)m;
    for (uint32_t i = 0; i < WINDOWS; i++) bench_must(send_window(ms, self) == EBB_OK);
    return EBB_OK;
}

static ebb_status on_answer(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)m;
    return send_window(ms, self);
}

static ebb_status on_word(ebb_machines *ms, void *self, const ebb_message *m) {
    end *e = *(end **)self;
    (void)ms;
    e->sum += *(const uint64_t *)m->payload;
    e->done = ++e->n == PROXY_MESSAGES;
    return EBB_OK;
}

static ebb_status on_ask(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)on_word(ms, self, m);
    return ebb_machine_reply(ms, m->request, ANSWER, NULL, 0);
}

static const ebb_machine_rule sender_table[KINDS] = {
    [GO] = {on_go, NULL, EBB_MACHINE_HANDLE}, [ANSWER] = {on_answer, NULL, EBB_MACHINE_HANDLE}};
static const ebb_machine_rule word_table[KINDS] = {
    [WORD] = {on_word, NULL, EBB_MACHINE_HANDLE}, [ASK] = {on_ask, NULL, EBB_MACHINE_HANDLE}};
static const ebb_machine_state only = {.name = "Only"};
static const ebb_machine_type sender_type = {.name = "Sender",
                                             .states = &only,
                                             .table = sender_table,
                                             .fields = sizeof(sender),
                                             .n_states = 1,
                                             .columns = KINDS};
static const ebb_machine_type word_type = {.name = "Words",
                                           .states = &only,
                                           .table = word_table,
                                           .fields = sizeof(end *),
                                           .n_states = 1,
                                           .columns = KINDS,
                                           .mailbox = CAPACITY};

static ebb_machines *machines_of(end *e) {
    ebb_machines *ms;
    bench_must(ebb_machines_open(ebb_runtime_host(e->rt), &ms, &(ebb_machines_opts){.n_kinds = KINDS}) ==
               EBB_OK);
    return ms;
}

static ebb_machine started(ebb_machines *ms, const ebb_machine_type *type, const void *fields) {
    ebb_machine m = ebb_machine_spawn(ms, type, 0, fields);
    bench_must(ebb_machine_start(ms, m) == EBB_OK);
    return m;
}

/* Until the machines have ended. */
static void *run_machines(void *arg) {
    end *e = arg;
    ebb_region_state state;
    bench_must(ebb_runtime_adopt(e->rt) == EBB_OK);
    for (;;) {
        ebb_inbox_receive(e->rt);
        ebb_status st = ebb_runtime_pump(e->rt, 64);
        if (e->done) ebb_region_close(ebb_runtime_host(e->rt), ebb_runtime_root(e->rt));
        bench_must(ebb_region_state_of(ebb_runtime_host(e->rt), ebb_runtime_root(e->rt), &state) == EBB_OK);
        if (state == EBB_REGION_CLOSED) return NULL;
        if (st != EBB_PENDING) end_sleep(e);
    }
}

static double proxy_message(void) {
    end from, to, *home = &to;
    pthread_t thread;
    ebb_machine_remote *remote;
    end_new(&from);
    end_new(&to);
    ebb_machines *here = machines_of(&from), *there = machines_of(&to);
    ebb_machine words = started(there, &word_type, &home);
    ebb_machine_remote_opts o = {.credits = CAPACITY, .message = sizeof(uint64_t)};
    bench_must(ebb_machine_remote_new(there, words, &o, &remote) == EBB_OK);
    sender s = {.proxy = ebb_machine_remote_import(here, remote)};
    bench_must(ebb_machine_send(here, started(here, &sender_type, &s), GO, NULL, 0) == EBB_OK);
    from.done = true; /* its machines end when all is sent */
    double t0 = wall_ns();
    bench_must(pthread_create(&thread, NULL, run_machines, &from) == 0);
    (void)run_machines(&to);
    double ns = (wall_ns() - t0) / PROXY_MESSAGES;
    pthread_join(thread, NULL);
    bench_must(to.n == PROXY_MESSAGES && to.sum == (uint64_t)PROXY_MESSAGES * (PROXY_MESSAGES - 1) / 2);
    bench_must(ebb_machines_free(here) == EBB_OK && ebb_machines_free(there) == EBB_OK);
    end_free(&from);
    end_free(&to);
    return ns;
}

/* ---- floor ---------------------------------------------------------------------------------------- */

typedef struct ring {
    _Atomic uint32_t tail;
    char apart[60];
    _Atomic uint32_t head;
    char apart_too[60];
    uint64_t items[CAPACITY];
} ring;

/* Another thread may need the core. */
static void pause_a_little(uint32_t *tries) {
    if (++*tries % 1024 == 0) sched_yield();
}

static void *floor_send(void *arg) {
    ring *r = arg;
    uint32_t head = 0, tries = 0;
    for (uint32_t n = 0; n < MESSAGES; n++) {
        while (n - head == CAPACITY) {
            head = atomic_load_explicit(&r->head, memory_order_acquire);
            pause_a_little(&tries);
        }
        r->items[n % CAPACITY] = n;
        atomic_store_explicit(&r->tail, n + 1, memory_order_release);
    }
    return NULL;
}

static double floor_ring(void) {
    ring *r = calloc(1, sizeof *r);
    uint32_t tail = 0, tries = 0;
    uint64_t sum = 0;
    pthread_t thread;
    double t0 = wall_ns();
    bench_must(pthread_create(&thread, NULL, floor_send, r) == 0);
    for (uint32_t n = 0; n < MESSAGES; n++) {
        while (tail == n) {
            tail = atomic_load_explicit(&r->tail, memory_order_acquire);
            pause_a_little(&tries);
        }
        sum += r->items[n % CAPACITY];
        atomic_store_explicit(&r->head, n + 1, memory_order_release);
    }
    double ns = (wall_ns() - t0) / MESSAGES;
    pthread_join(thread, NULL);
    bench_must(sum == (uint64_t)MESSAGES * (MESSAGES - 1) / 2);
    free(r);
    return ns;
}

const bench_row bench_bridge_rows[] = {
    {"loop.message", "ns", loop_message, floor_ring, 200, 0},
    {"machine.proxy_message", "ns", proxy_message, loop_message, 0, 0},
};
const size_t bench_bridge_count = sizeof bench_bridge_rows / sizeof bench_bridge_rows[0];
