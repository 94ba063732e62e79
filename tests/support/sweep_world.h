/* A small world in which a scenario runs to its end in virtual time, again and again, with one thing
 * going wrong each time: an allocation that fails, or a verb at the n-th suspension point. The world
 * counts what the scenario did, so that any ending can be checked. */
#ifndef EBB_TESTS_SWEEP_WORLD_H
#define EBB_TESTS_SWEEP_WORLD_H

#include <ebb/ebb.h>

typedef struct sweep_world sweep_world;
typedef struct sweep_actor sweep_actor;
typedef ebb_status (*sweep_body)(ebb_cx *cx, sweep_actor *a);

/* The state of a task or finalizer. One shape for all scenarios: what a body needs, it finds here. */
struct sweep_actor {
    EBB_TASK_STATE;
    sweep_world *w;
    sweep_body body;
    const char *name;
    int number; /* which of its kind it is */
    int i;
    ebb_status st, outcome;
    bool masked;
    uint64_t span;
    ebb_sleeper nap;
    ebb_wait wait;
    ebb_region region, other_region;
    ebb_task kid[4];
    ebb_obligation owed;
    uint32_t item;
};

typedef struct sweep_scenario {
    const char *name;
    void (*start)(sweep_world *w);
    void (*at_time)(sweep_world *w); /* the host's own part, whenever nothing is runnable; may be NULL */
    bool leaks;                      /* it means to leave obligations unresolved */
    bool stubborn;                   /* it means not to return when asked */
} sweep_scenario;

extern const sweep_scenario sweep_scenarios[];
extern const size_t sweep_scenario_count;

enum { SWEEP_ACTORS = 256, SWEEP_IDS = 256, SWEEP_CHANS = 1 };

struct sweep_world {
    const sweep_scenario *scenario;
    ebb_failing failing;
    ebb_runtime *rt;
    ebb_cx *host;
    sweep_actor actor[SWEEP_ACTORS];
    uint32_t actors;
    ebb_chan *chan[SWEEP_CHANS];
    ebb_sem sem;
    uint32_t permits;
    int host_step;

    /* Every region that was opened and every task that was spawned, in order. */
    ebb_region region[SWEEP_IDS];
    ebb_task task[SWEEP_IDS];
    uint32_t regions, tasks;

    /* What happened, by its own account. */
    uint64_t points; /* polls that returned EBB_PENDING */
    uint64_t reserved, committed, hooks;
    uint64_t deferred, finalized;
    uint64_t sent, received;
    uint64_t wanted_notes, notes; /* on_closed */
    uint64_t no_memory;           /* operations that said EBB_ERR_NOMEM */
    uint64_t odd;                 /* statuses that nothing in the scenario explains */
    ebb_status odd_status;
    const char *odd_where;

    /* What goes wrong. `act` is called once, after or within the `act_at`-th suspension. */
    uint64_t act_at;
    void (*act)(sweep_world *w, ebb_cx *cx);
    bool act_within, acted, act_due;
    uint64_t acted_time;
    ebb_cancel_kind kind;
    uint32_t victim;
    bool discarded; /* the victim was, with the permit that it may have had */
    uint64_t limit; /* the time by which `over` has to say so; EBB_FOREVER: none */
    bool (*over)(sweep_world *w);
    bool late;

    unsigned char *trace;
    size_t trace_n, trace_room;
    bool traced;
};

/* ---- for scenarios ---------------------------------------------------------------------------- */

ebb_region sweep_open(ebb_cx *cx, sweep_world *w, ebb_region_opts opts);
/* `actor` receives the new actor; may be NULL. */
ebb_task sweep_spawn(ebb_cx *cx, sweep_world *w, ebb_region region, const char *name, sweep_body body,
                     ebb_task_opts opts, sweep_actor **actor);
ebb_status sweep_defer(ebb_cx *cx, sweep_world *w, ebb_region region, const char *name, sweep_body body,
                       uint64_t span);
ebb_obligation sweep_reserve(ebb_cx *cx, sweep_world *w, ebb_region region, ebb_obligation_kind kind);
ebb_status sweep_commit(ebb_cx *cx, sweep_world *w, ebb_obligation ob);
void sweep_note_closed(void *world, const ebb_region_report *report);
/* Remembers a status that is not success; returns it. */
ebb_status sweep_saw(sweep_world *w, ebb_status st, const char *where);

/* ---- for sweeps ------------------------------------------------------------------------------- */

/* A new world with its scenario started. `w` must be all zero but for what goes wrong and
 * `failing.fail_*`. False: no memory for the runtime itself. */
bool sweep_begin(sweep_world *w, const sweep_scenario *s);
/* Pumps and lets time pass until nothing more happens by itself. False: it never stops. */
bool sweep_run(sweep_world *w);
/* Frees the runtime and the channels. Allocations that are left are in w->failing.live. */
void sweep_end(sweep_world *w);

bool sweep_closed(sweep_world *w, ebb_region region); /* or not there any more */
bool sweep_ended(sweep_world *w, ebb_task task);
/* NULL if the run kept every rule, else what it broke, in static memory. */
const char *sweep_judge(sweep_world *w, bool quiescent);

#endif
