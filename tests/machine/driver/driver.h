/* tests/machine/driver/driver.h - machines among everything else: fibers, tasks, futures that ask machines, a channel,
 * units and other regions that are closed or cancelled, memory that is refused, hooks that call back.
 *
 * A run is one seed. Everything that has a turn does random operations of the public API and keeps its rules, nothing
 * else. What must hold all the same: the rules of the trace; every call is answered once, unless it was forgotten; every
 * reference in a payload or in fields is dropped once; a close that waits for nothing ends; no memory is left. */
#ifndef EBB_TESTS_MACHINE_DRIVER_H
#define EBB_TESTS_MACHINE_DRIVER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ebb/ebb.h>

enum { KINDS = 8, TYPES = 3, STATES = 4, IDS = 32, UNITS = 6, HANDLES = 8 };

/* A call from outside. */
typedef struct call {
    struct call *next;
    ebb_request id;
    uint32_t answers;
    bool made, forgotten;
} call;

typedef struct payload {
    uint32_t magic, n;
    unsigned char more[504]; /* not all of it is sent */
} payload;

typedef struct fields {
    uint64_t reference; /* 0: none */
    uint64_t turns;
    ebb_request held;
    ebb_request asked;
} fields;

typedef struct drive {
    uint64_t seed, dice, now, number;
    uint32_t energy;
    bool ending, in_handler, replaced;
    uint64_t memory_dice;
    uint32_t refuse_one_in;
    int64_t live_blocks;
    int64_t references;
    ebb_runtime *rt;
    ebb_cx *host;
    ebb_machines *ms;
    ebb_region service, unit[UNITS];
    ebb_machine machine[IDS];
    uint32_t n_machines;
    ebb_request held[IDS];
    uint32_t n_held;
    ebb_future *handle[HANDLES]; /* kept uses, of asks made in the root */
    ebb_chan *chan;
    call *calls;
    uint8_t *trace;
    size_t trace_n, trace_room;
    bool traced;
} drive;

extern drive d; /* handlers have no other way to it */

typedef struct totals {
    uint64_t seeds, dispatched, rolled_back, requests, dead, refused, cancelled;
} totals;
extern totals all;

_Noreturn void failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint32_t pick(uint32_t n);
static inline bool one_in(uint32_t n) {
    return pick(n) == 0;
}

/* ---- play.c: what has a turn ---- */

ebb_status open_machines(void);
void host_op(ebb_cx *cx);
void answer_held(void);
void drop_handles(bool cancel);

/* ---- run.c ---- */

void run(uint64_t seed);

#endif
