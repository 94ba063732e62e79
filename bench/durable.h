/* Durable orchestrations under load, and what their stores can do at most: what the rows of bench/durable.c are made of. */
#ifndef EBB_BENCH_DURABLE_H
#define EBB_BENCH_DURABLE_H

#include <ebb/ebb.h>

enum { DURABLE_INPUT = 64, DURABLE_SAMPLES = 4096 };

/* An orchestration, and how it is driven. */
typedef struct durable_load {
    const char *url;
    ebb_durability durability;
    bool parallel; /* five activities at once; else ten, one after the other */
    unsigned runs;
    unsigned at_once; /* clients, each of which starts a run and waits for its end */
    double
        rate; /* runs begun a second, whatever becomes of them; 0: each client begins one after the other */
} durable_load;

typedef struct durable_outcome {
    double seconds;
    double turns, calls; /* a run */
    double statements;   /* that a run has for each of its activities more than one that has none */
    double members;      /* of a commit */
    uint64_t
        latency[DURABLE_SAMPLES]; /* of `runs`, sorted: from the start to the end, as its client sees it */
} durable_outcome;

void durable_run(const durable_load *load, durable_outcome *out);

/* ns from a signal to the end of an instance whose history has 1,000 events, `cold`: which has to be run again from it. */
double durable_replay(const char *url, bool cold);
/* Memory of an instance that waits on its fiber. */
double durable_hot_bytes(const char *url);

/* ---- floors ---------------------------------------------------------------------------------------------------- */

/* The rows that the runs of a load make and delete, written by bare statements without checks, `members` of them in a commit.
 * All runs of a commit are in step. */
typedef struct durable_shape {
    unsigned runs, members, turns, calls;
    bool parallel;
    size_t body; /* of a turn, bytes */
} durable_shape;

/* Writers of rows: each function does it for the runs from `lo` up to `hi`, within a transaction. */
typedef struct floor_store {
    void (*begin)(void *self);
    void (*start)(void *self, uint64_t lo, uint64_t hi);
    /* Makes work for as many calls from `call` on. Turn 1 takes the message of the start. */
    void (*turn)(void *self, uint64_t lo, uint64_t hi, unsigned turn, unsigned call, unsigned calls);
    void (*done)(void *self, uint64_t lo, uint64_t hi, unsigned call); /* of the same commit as a turn */
    void (*end)(void *self, uint64_t lo, uint64_t hi);
    void (*commit)(void *self);
} floor_store;

/* ns a run. */
double floor_durable(const floor_store *s, void *self, const durable_shape *shape);
/* On tables that a store has made. */
double floor_durable_sqlite(const char *path, ebb_durability d, const durable_shape *shape);
double floor_durable_postgres(const char *conninfo, const durable_shape *shape);

#endif
