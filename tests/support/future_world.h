/* A world for futures: what the heap is told is done wrong is noted, its verifier runs after every
 * collection, and at the end nothing may be left.
 *
 * With EBB_TEST_GC=1 in the environment the heap is collected before every allocation, and consumed handles
 * are kept to be told. Tests of crowds are smaller then. */
#ifndef EBB_TESTS_FUTURE_WORLD_H
#define EBB_TESTS_FUTURE_WORLD_H

#include "tests/support/world.h"

typedef struct future_world {
    world *world;
    ebb_runtime *rt;
    ebb_cx *host;
    ebb_region root;
    ebb_failing *memory;
    uint32_t misuses; /* that no test has expected */
    ebb_status misuse;
    char what[160], site[160]; /* of the last */
    uint8_t fds[256];          /* how often, by word */
} future_world;

bool future_test_gc(void);
/* n, or `few` if every allocation collects. */
size_t future_crowd(size_t n, size_t few);
/* The options of this run. `misuse` and `ctx` are set by whoever makes the heap. */
ebb_heap_opts future_heap_opts(void);

/* A world with these options of its heap; NULL: future_heap_opts. */
future_world *future_world_new(bool traced, const ebb_heap_opts *opts);
void future_world_end(future_world *fw);
int future_world_up(void **state);
int future_world_up_untraced(void **state);
int future_world_down(void **state);
#define IN_FUTURES(test) cmocka_unit_test_setup_teardown(test, future_world_up, future_world_down)
#define IN_UNTRACED_FUTURES(test)                                                                            \
    cmocka_unit_test_setup_teardown(test, future_world_up_untraced, future_world_down)

/* Takes in what others sent, and pumps until there is nothing to do at this time. */
void future_settle(future_world *fw);
void future_pass(future_world *fw, uint64_t span);
void future_verify(future_world *fw);
/* Collects, runs what that has queued, and collects again. */
void future_collect(future_world *fw);
ebb_heap_stats future_stats(const future_world *fw);
/* Exactly one thing was done wrong since the last of these. */
void future_expect_misuse(future_world *fw, ebb_status st);

/* A word that is let go of once: `fd` below 256. */
ebb_value future_fd(future_world *fw, uint32_t fd);
/* How often it was. */
uint32_t future_fd_freed(const future_world *fw, uint32_t fd);

/* ---- probes ---------------------------------------------------------------------------------------- */

/* What was heard of a future by its callbacks. */
typedef struct probe {
    uint32_t done, cancels, cleanups;
    ebb_status status;
    ebb_cancel_kind kind;
    int64_t value;
    ebb_value seen; /* only its type and address may be looked at */
} probe;
/* Attaches all three callbacks; returns f. */
ebb_future *probe_on(probe *p, ebb_future *f);
/* One end, told once, and its cleanup once. */
void probe_completed(const probe *p, int64_t value);
void probe_failed(const probe *p, ebb_status st);
void probe_cancelled(const probe *p, ebb_cancel_kind kind);
void probe_pending(const probe *p);

#endif
