/* Machines by C roles: a message, a ring, requests with few and many pending, an idle machine, and the trace. */
#include "bench/bench.h"

#include <ebb/ebb.h>
#include <stdlib.h>

enum { MILLION = 1000000 };
enum { STEP = 1, PEER, ASK, ANSWER, KINDS };

typedef struct node {
    ebb_machine peer;
    uint64_t n;
} node;

static ebb_status on_step(ebb_machines *ms, void *self, const ebb_message *m) {
    node *n = self;
    uint64_t left = *(const uint64_t *)m->payload;
    n->n++;
    if (left == 0) return EBB_OK;
    left--;
    return ebb_machine_send(ms, n->peer, STEP, &left, sizeof left);
}

static ebb_status on_peer(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    ((node *)self)->peer = *(const ebb_machine *)m->payload;
    return EBB_OK;
}

static ebb_status ask(ebb_machines *ms, node *n) {
    n->n--;
    return ebb_id_status(ebb_machine_request(ms, n->peer, ASK, &n->n, sizeof n->n, 0, 0).id);
}
static ebb_status on_ask(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    return ebb_machine_reply(ms, (ebb_request){0}, ANSWER, m->payload, m->size);
}
static ebb_status on_answer(ebb_machines *ms, void *self, const ebb_message *m) {
    node *n = self;
    (void)m;
    return n->n == 0 ? EBB_OK : ask(ms, n);
}
/* Begins with so many requests pending. */
static ebb_status on_begin(ebb_machines *ms, void *self, const ebb_message *m) {
    node *n = self;
    for (uint64_t i = *(const uint64_t *)m->payload; i > 0; i--)
        if (ask(ms, n) != EBB_OK) return EBB_FAILED;
    return EBB_OK;
}

static const ebb_machine_rule ring_table[KINDS] = {{0}, {on_step, NULL, 1}, {on_peer, NULL, 1}, {0}, {0}};
static const ebb_machine_rule asker_table[KINDS] = {
    {0}, {on_begin, NULL, 1}, {0}, {on_ask, NULL, 1}, {on_answer, NULL, 1}};
static const ebb_machine_state state = {.name = "Only"};
static const ebb_machine_type ring_type = {.name = "Ring",
                                           .states = &state,
                                           .table = ring_table,
                                           .fields = sizeof(node),
                                           .n_states = 1,
                                           .columns = KINDS};
static const ebb_machine_type asker_type = {.name = "Asker",
                                            .states = &state,
                                            .table = asker_table,
                                            .fields = sizeof(node),
                                            .n_states = 1,
                                            .columns = KINDS,
                                            .mailbox = 2000};

static ebb_machines *open_machines(ebb_runtime *rt) {
    ebb_machines *ms;
    bench_must(ebb_machines_open(ebb_runtime_host(rt), &ms, &(ebb_machines_opts){.n_kinds = KINDS}) ==
               EBB_OK);
    return ms;
}

static ebb_machine make(ebb_machines *ms, const ebb_machine_type *type, node n) {
    ebb_machine m = ebb_machine_spawn(ms, type, 0, &n);
    bench_must(ebb_machine_start(ms, m) == EBB_OK);
    return m;
}

static void close_machines(ebb_runtime *rt, ebb_machines *ms) {
    ebb_region_close(ebb_runtime_host(rt), ebb_machines_region(ms));
    bench_pump_all(rt);
    bench_must(ebb_machines_free(ms) == EBB_OK);
    ebb_runtime_free(rt);
}

static void drop_trace(void *ctx, const void *bytes, size_t n) {
    (void)ctx;
    (void)bytes;
    (void)n;
}

static double ring(uint32_t n, bool traced) {
    ebb_runtime *rt = bench_runtime();
    ebb_machines *ms = open_machines(rt);
    ebb_machine *m = malloc(n * sizeof *m);
    uint64_t steps = 2 * MILLION;
    for (uint32_t i = 0; i < n; i++) m[i] = make(ms, &ring_type, (node){0});
    for (uint32_t i = 0; i < n; i++) ebb_machine_send(ms, m[i], PEER, &m[(i + 1) % n], sizeof *m);
    bench_pump_all(rt);
    if (traced) bench_must(ebb_trace_start(rt, 16u << 20) == EBB_OK);
    ebb_machine_send(ms, m[0], STEP, &steps, sizeof steps);
    double t0 = bench_cpu_ns();
    while (ebb_runtime_pump(rt, 1024) == EBB_PENDING)
        if (traced) ebb_trace_take(rt, false, drop_trace, NULL);
    double ns = (bench_cpu_ns() - t0) / (2 * MILLION);
    ebb_machines_stats s;
    ebb_machines_stats_of(ms, &s);
    bench_must(s.committed == 2 * MILLION + n + 1);
    free(m);
    close_machines(rt, ms);
    return ns;
}

static double message(void) {
    return ring(2, false);
}
static double ring_100k(void) {
    return ring(100000, false);
}
static double traced(void) {
    return ring(2, true);
}

/* Ten machines, each with a tenth of `pending` requests at a time to the next one. */
static double requests(uint32_t pending) {
    enum { ASKERS = 10 };
    ebb_runtime *rt = bench_runtime();
    ebb_machines *ms = open_machines(rt);
    ebb_machine m[ASKERS], last = {0};
    uint32_t askers = pending < ASKERS ? 1 : ASKERS;
    uint64_t each = pending / askers, n = MILLION / askers;
    ebb_machine first = make(ms, &asker_type, (node){0});
    last = first;
    for (uint32_t i = 0; i < askers; i++) last = m[i] = make(ms, &asker_type, (node){last, n});
    for (uint32_t i = 0; i < askers; i++)
        bench_must(ebb_machine_send(ms, m[i], STEP, &each, sizeof each) == EBB_OK);
    double t0 = bench_cpu_ns();
    bench_pump_all(rt);
    double ns = (bench_cpu_ns() - t0) / MILLION;
    ebb_machines_stats s;
    ebb_machines_stats_of(ms, &s);
    bench_must(s.requests == MILLION && s.pending == 0);
    close_machines(rt, ms);
    return ns;
}
static double request_1(void) {
    return requests(1);
}
static double request_10k(void) {
    return requests(10000);
}

/* Without the fields. Counted, since the memory of earlier rounds may still be resident. */
static double idle_bytes(void) {
    ebb_failing count = {.inner = ebb_libc_allocator()};
    ebb_runtime_opts opts = {.allocator = ebb_failing_allocator(&count)};
    ebb_runtime *rt;
    bench_must(ebb_runtime_new(&opts, &rt) == EBB_OK);
    ebb_machines *ms = open_machines(rt);
    int64_t before = count.live_bytes;
    for (uint32_t i = 0; i < MILLION; i++) make(ms, &ring_type, (node){0});
    bench_pump_all(rt);
    double bytes = (double)(count.live_bytes - before) / MILLION - sizeof(node);
    close_machines(rt, ms);
    return bytes;
}

const bench_row bench_machine_rows[] = {
    {"machine.message", "ns", message, floor_machine_message, 35, 22},
    {"machine.ring_100k", "ns", ring_100k, floor_machine_ring_100k, 0, 0},
    {"machine.message_traced", "ns", traced, message, 60 + 35, 35},
    {"machine.request_1", "ns", request_1, NULL, 0, 0},
    {"machine.request_10k", "ns", request_10k, request_1, 1.5, 1},
    {"machine.idle_bytes", "bytes", idle_bytes, NULL, 192, 0},
};
const size_t bench_machine_count = sizeof bench_machine_rows / sizeof *bench_machine_rows;
