/* tests/support/world.h - a runtime to test with: memory is counted, time is virtual, everything is
 * traced, and at the end the whole trace is checked against every rule.
 *
 * At teardown the world is shut down: whatever a test left behind must end inside the budget of a
 * SHUTDOWN plus 10 %, break no rule of the trace and free all memory. So each test also proves that. */
#ifndef EBB_TESTS_WORLD_H
#define EBB_TESTS_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <ebb/ebb.h>

typedef struct world {
    ebb_runtime *rt;
    ebb_cx *host;
    ebb_region root;
    ebb_failing memory;
    ebb_allocator allocator; /* counts, and fails on demand by `memory` */
    bool traced;
    uint8_t *trace;
    size_t trace_n, trace_room;
    void **kept; /* blocks that live as long as the world */
    size_t kept_n;
    char log[4096]; /* what puppets say, each followed by a space */
    uint32_t aborts;
} world;

/* A world with these options (NULL: the defaults); the allocator is filled in. */
world *world_new(const ebb_runtime_opts *opts, bool traced);
/* Shuts down in good order, checks, frees. */
void world_end(world *w);

/* For cmocka: a traced world, and one for crowds that is not. */
int world_up(void **state);
int world_up_untraced(void **state);
int world_down(void **state);
#define IN_WORLD(test)          cmocka_unit_test_setup_teardown(test, world_up, world_down)
#define IN_UNTRACED_WORLD(test) cmocka_unit_test_setup_teardown(test, world_up_untraced, world_down)

/* Zeroed memory that lives as long as the world: for the states of tasks. */
void *world_keep(world *w, size_t n);

/* Pumps until there is nothing to do at this time. */
void world_settle(world *w);
/* Lets `span` pass, stopping at every time at which something is due. */
void world_pass(world *w, uint64_t span);
/* Pumps, and lets time pass, until nothing will ever happen by itself. */
void world_finish(world *w);
uint64_t world_now(const world *w);

void world_say(world *w, const char *word);

/* ---- puppets: tasks, finalizers and hooks that do as they are told ------------------------------ */

typedef struct puppet {
    const char *says;                          /* goes to the log at every poll */
    void (*act)(ebb_cx *cx, struct puppet *p); /* runs at every poll, before what follows */
    bool heeds;                                /* takes a checkpoint at every poll */
    ebb_status on_cancel; /* with that: what it returns when the checkpoint says EBB_CANCELLED */
    ebb_status returns;   /* what it returns otherwise */
    bool spins;           /* wakes itself at every poll */
    void *arg;
    uint64_t number;
    /* what is seen from outside */
    world *world;
    ebb_task id;
    uint32_t polls;
    ebb_status seen; /* at the last checkpoint */
    ebb_sleeper nap;
    ebb_wait wait;
} puppet;

ebb_status puppet_poll(ebb_cx *cx, void *state); /* also as a finalizer */
void puppet_abort(void *state);                  /* as an abort hook: says and counts */

/* A copy of the puppet, in the world's memory. */
puppet *puppet_new(world *w, puppet p);
/* The same as a kept task of a region, spawned by the host. */
puppet *puppet_start(world *w, ebb_region r, puppet p);
puppet *puppet_start_with(world *w, ebb_region r, puppet p, ebb_task_opts opts);

/* Puppets that come up often. PARKED ignores a cancel as long as nothing wakes it, and then too. */
#define HEEDING  ((puppet){.heeds = true, .on_cancel = EBB_CANCELLED, .returns = EBB_PENDING})
#define IGNORING ((puppet){.returns = EBB_PENDING})

/* ---- looking ----------------------------------------------------------------------------------- */

ebb_task_phase phase_of(world *w, ebb_task t);     /* 0: stale */
ebb_region_state state_of(world *w, ebb_region r); /* 0: stale */
ebb_task_info info_of(world *w, ebb_task t);
ebb_region_report report_of(world *w, ebb_region r);
ebb_runtime_stats stats_of(world *w);
ebb_region open_region(world *w, ebb_region parent);

/* The nth event of a type (from 0) that is about this id; 0: any. The id is a region's for what happens
 * to regions, an obligation's or a timer's for those, else a task's. */
bool find_event(world *w, uint32_t type, uint64_t id, uint32_t nth, ebb_event *out);
uint32_t count_events(world *w, uint32_t type, uint64_t id);
ebb_event event_of(world *w, uint32_t type, uint64_t id); /* the first, which there must be */
/* The text that follows the first such event. */
void text_of(world *w, uint32_t type, uint64_t id, char *out, size_t room);

#endif
