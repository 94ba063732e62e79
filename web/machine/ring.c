/* A ring of machines in WebAssembly, for the test of the module: what runs natively runs here too. */
#include "web/wasm/alloc.h"

#include <ebb/machine.h>

enum { STEP = 1, PEER, KINDS };

typedef struct node {
    ebb_machine peer;
    uint64_t steps;
} node;

static ebb_status on_step(ebb_machines *ms, void *self, const ebb_message *m) {
    node *n = self;
    uint32_t left = *(const uint32_t *)m->payload;
    n->steps++;
    if (left-- == 0) return EBB_OK;
    return ebb_machine_send(ms, n->peer, STEP, &left, sizeof left);
}

static ebb_status on_peer(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    ((node *)self)->peer = *(const ebb_machine *)m->payload;
    return EBB_OK;
}

static const ebb_machine_rule table[KINDS] = {
    [STEP] = {on_step, NULL, EBB_MACHINE_HANDLE}, [PEER] = {on_peer, NULL, EBB_MACHINE_HANDLE}};
static const ebb_machine_state state = {.name = "Only"};
static const ebb_machine_type type = {.name = "Node",
                                      .states = &state,
                                      .table = table,
                                      .fields = sizeof(node),
                                      .n_states = 1,
                                      .columns = KINDS};

static void pump(ebb_runtime *rt) {
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING) {}
}

static ebb_machine make(ebb_machines *ms) {
    ebb_machine m = ebb_machine_spawn(ms, &type, 0, NULL);
    (void)ebb_machine_start(ms, m);
    return m;
}

uint32_t web_ring(uint32_t n, uint32_t steps) __attribute__((export_name("ring")));

/* Passes a message on `steps` times around `n` machines. Returns how many dispatches committed; 0: something failed. */
uint32_t web_ring(uint32_t n, uint32_t steps) {
    ebb_runtime *rt;
    ebb_machines *ms;
    ebb_machines_stats s;
    ebb_runtime_opts opts = {.allocator = web_allocator()};
    if (ebb_runtime_new(&opts, &rt) != EBB_OK) return 0;
    if (ebb_machines_open(ebb_runtime_host(rt), &ms, &(ebb_machines_opts){.n_kinds = KINDS}) != EBB_OK)
        return 0;
    ebb_machine first = make(ms), last = first;
    for (uint32_t i = 1; i < n; i++) {
        ebb_machine next = make(ms);
        (void)ebb_machine_send(ms, last, PEER, &next, sizeof next);
        last = next;
    }
    (void)ebb_machine_send(ms, last, PEER, &first, sizeof first);
    pump(rt);
    (void)ebb_machine_send(ms, first, STEP, &steps, sizeof steps);
    ebb_region_close(ebb_runtime_host(rt), ebb_machines_region(ms));
    pump(rt);
    ebb_machines_stats_of(ms, &s);
    if (s.machines != 0 || ebb_machines_free(ms) != EBB_OK) return 0;
    ebb_runtime_free(rt);
    return (uint32_t)s.committed;
}
