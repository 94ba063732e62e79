/* The state of a run in the lab. Shared by the files of the lab; scenarios use ebb/lab.h. */
#ifndef EBB__LAB_H
#define EBB__LAB_H

#include <ebb/lab.h>

/* What another process sees of the decisions, even if this one dies. */
typedef struct ebb__decisions {
    size_t n;
    struct {
        uint16_t taken, of;
    } at[];
} ebb__decisions;

/* The source of decisions, and the decisions taken. All of them go through ebb__choose. */
typedef struct ebb__chooser {
    uint64_t random; /* the generator's state */
    bool recorded;
    const uint16_t *given; /* recorded decisions; after them every decision is 0 */
    size_t n_given;
    uint16_t *taken, *of; /* each decision, and the number of possibilities */
    size_t n, room;
    ebb__decisions *shown; /* NULL: to nobody */
    size_t shown_room;
} ebb__chooser;

typedef struct ebb__lab_runtime {
    ebb_runtime *rt; /* NULL: none, or it is not watched any more */
    ebb_lab *lab;
    ebb_region region; /* of this round */
    ebb_checker *check;
    ebb_trace_reader reader;
    uint8_t *bytes; /* part of the trace that is not read yet */
    size_t n, room;
    uint64_t turn;
    bool started;    /* the reader has seen the header */
    uint64_t polled; /* the task of the last poll in the trace */
} ebb__lab_runtime;

/* A message in flight. The bag is in the order of sending. */
typedef struct ebb__flying {
    uint32_t from, to;
    ebb_msg msg;
} ebb__flying;

typedef struct ebb__lab_block ebb__lab_block; /* of ebb_lab_alloc */

/* Keeps large blocks of runtimes for those of the next run. */
typedef struct ebb__lab_pool ebb__lab_pool;

struct ebb_lab {
    ebb_allocator allocator;
    const ebb_lab_case *c;
    ebb_lab_opts opts;
    ebb_lab_result result; /* status EBB_OK while the run goes on */
    ebb__chooser chooser;
    ebb__lab_runtime runtime[EBB_LAB_RUNTIMES];
    uint32_t runtimes;
    uint64_t now;
    ebb__flying *bag;
    size_t bag_n, bag_room;
    void *state;
    ebb__lab_block *blocks;  /* of this round */
    ebb__lab_block *strings; /* of this run */
    ebb__lab_pool *pool;
    uint32_t steps, next_step; /* of the scenario in this round */
    uint64_t round_steps;      /* decisions in this round so far */
    uint32_t since_advance;    /* turns since the time last advanced */
    bool ending;               /* everything was requested to end */
    bool winding_down;         /* the run has failed and only ends: every decision is 0 and is not recorded */
    void *network;             /* of a run in a network: lab/network.h; else NULL */
    char *script;              /* of the last run, if its scenario uses one */
    size_t script_n, script_room;
};

uint32_t ebb__choose(ebb_lab *lab, uint32_t n);
/* Takes over a decision that another process has taken. */
void ebb__chosen(ebb_lab *lab, uint16_t taken, uint16_t of);

void ebb__lab_blocks_free(ebb_lab *lab, ebb__lab_block **blocks);
ebb__lab_pool *ebb__lab_pool_new(ebb_allocator a); /* NULL: no memory */
/* The allocator for runtimes. It works until all memory is given back, also after the lab has left. */
ebb_allocator ebb__lab_pool_allocator(ebb__lab_pool *p);
/* The lab is freed: gives back what is kept. */
void ebb__lab_pool_leave(ebb__lab_pool *p);

/* A copy of a text that lives until the run has ended; the same one for equal texts. NULL: no memory, and the run ends. */
const char *ebb__lab_string(ebb_lab *lab, const char *text);

/* The generator: SplitMix64. Every value of `state` is valid. */
uint64_t ebb__random(uint64_t *state);

/* The offset of the first `c` in a text; `n` if there is none. */
static inline size_t ebb__find_byte(const char *text, size_t n, char c) {
    size_t i = 0;
    while (i < n && text[i] != c) i++;
    return i;
}

/* Ends the run. Only the first call counts; `text` may be NULL. */
void ebb__lab_stop(ebb_lab *lab, ebb_status st, const char *failure, const char *text);

/* Makes room for `n` items of `size`; false: no memory, and a current run is stopped. */
bool ebb__lab_grow(ebb_lab *lab, void **items, size_t *room, size_t n, size_t size);

/* The lab watches a runtime: it chooses which task is polled, and the oracles check its trace. The runtime is the i-th,
 * in order; it need not be made by the lab. After ebb__lab_unwatch it may be freed. */
ebb_status ebb__lab_watch(ebb_lab *lab, uint32_t i, ebb_runtime *rt);
void ebb__lab_unwatch(ebb_lab *lab, uint32_t i);
/* Takes the traces of all watched runtimes and checks the new events. */
void ebb__lab_take_all(ebb_lab *lab, bool flush);
/* Everything in a runtime should have ended. */
void ebb__lab_check_quiet(ebb_lab *lab, uint32_t i);

extern const ebb_lab_scenario ebb__scenario_pingpong2;
extern const ebb_lab_scenario ebb__scenario_storm;

#endif
