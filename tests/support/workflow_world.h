/* A world for workflows: a world with an audit log in memory. At the end the log is verified. */
#ifndef EBB_TESTS_WORKFLOW_WORLD_H
#define EBB_TESTS_WORKFLOW_WORLD_H

#include "tests/support/world.h"

#define MS(n) ((uint64_t)(n)*EBB_MS)

typedef struct workflow_world {
    world *world;
    ebb_runtime *rt;
    ebb_cx *host;
    ebb_audit *audit;
    char *log; /* all lines, 0-terminated */
    size_t log_n, log_room;
    ebb_status sink_fails; /* what the next appends say instead of taking a line; EBB_OK: they take it */
    bool broken;           /* the log is not to be verified: lines were lost on purpose */
} workflow_world;

int workflow_world_up(void **state);
int workflow_world_down(void **state);
#define IN_WORKFLOWS(test) cmocka_unit_test_setup_teardown(test, workflow_world_up, workflow_world_down)

/* A workflow that `cx` opens, with the world's log unless the options have one. Fails the test if it can't
 * be. */
ebb_workflow workflow_open(workflow_world *ww, ebb_cx *cx, const ebb_workflow_opts *opts);
/* The same for the host: in the root region, unless the options name another. */
ebb_workflow workflow_new(workflow_world *ww, const ebb_workflow_opts *opts);
/* Asks it to stop, as USER "enough", and pumps. */
void workflow_stop(workflow_world *ww, ebb_workflow wf);
/* A puppet at work in its region; and one that is told to return. */
puppet *workflow_work(workflow_world *ww, ebb_workflow wf, puppet p);
void workflow_finish(workflow_world *ww, puppet *p);
ebb_workflow_state workflow_state(workflow_world *ww, ebb_workflow wf); /* 0: stale */
ebb_workflow_report workflow_report(workflow_world *ww, ebb_workflow wf);

/* The events of one workflow in the log, "opened requested drain_started". In memory of the world's. */
const char *workflow_story(workflow_world *ww, uint64_t number);
/* The nth line (from 0) of that event; NULL: there is none. In memory of the world's. */
const char *workflow_line(workflow_world *ww, const char *event, uint32_t nth);
uint32_t workflow_lines(workflow_world *ww, const char *event);
/* Fails the test, with both, if the text does not have this in it. */
void workflow_says(const char *text, const char *part);
/* What ebb_workflow_explain prints. In memory of the world's. */
const char *workflow_explained(workflow_world *ww, ebb_workflow wf);

/* ---- drainers: handlers that do as they are told --------------------------------------------- */

typedef struct drainer {
    const char *says;                                          /* goes to the world's log at every poll */
    void (*act)(ebb_cx *cx, ebb_drain *d, struct drainer *me); /* at every poll, before what follows */
    uint64_t sleeps;                                           /* so long; then it returns `returns` */
    ebb_status returns;
    bool stays; /* EBB_PENDING for ever, whatever `returns` is */
    void *arg;
    /* what is seen from outside */
    world *world;
    uint32_t polls;
    ebb_status slept;
    ebb_sleeper nap;
    ebb_task task;
} drainer;

/* Adds a copy of it, in the world's memory, as a handler of that name: a poll function, or a fiber. */
drainer *drainer_add(workflow_world *ww, ebb_workflow wf, const char *name, drainer d);
drainer *drainer_add_fiber(workflow_world *ww, ebb_workflow wf, const char *name, drainer d);
ebb_status drainer_run(ebb_cx *cx, ebb_drain *d, void *drainer);

#endif
