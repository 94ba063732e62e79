/* What the driver of the model test shares between its files: the kernel, the model, and which id is
 * which number. */
#ifndef EBB_TESTS_MODEL_DRIVER_H
#define EBB_TESTS_MODEL_DRIVER_H

#include <ebb/ebb.h>

#include "tests/kernel/model/model.h"

enum { HISTORY = 20, LINE = 160 };

typedef struct puppet {
    struct driver *d;
    int number; /* of a task, an obligation, a finalizer or a region, as its use says */
} puppet;

typedef struct driver {
    ebb_runtime *rt;
    model *m;
    uint64_t seed, random;
    uint64_t episode;
    int profile; /* how often things go wrong */
    bool traced, draining;
    ebb_task task[M_TASKS];
    ebb_region region[M_REGIONS];
    ebb_obligation owed[M_OWED];
    ebb_timer timer[M_TIMERS];
    bool task_gone[M_TASKS], region_gone[M_REGIONS]; /* both agree; that can't change any more */
    puppet task_puppet[M_TASKS], owed_puppet[M_OWED], region_puppet[M_REGIONS];
    int seen[M_LOG], seen_n; /* hooks and notes that the kernel called */
    char history[HISTORY][LINE];
    uint64_t ops;
    unsigned char *trace;
    size_t trace_n, trace_room;
} driver;

/* One operation, chosen at random, by `who` (0: the host) with its context. */
void driver_operate(driver *d, ebb_cx *cx, int who);
uint32_t driver_random(driver *d, uint32_t below);
bool driver_chance(driver *d, uint32_t percent);

/* The code of all tasks, finalizers, hooks and notes. */
ebb_status model_puppet_poll(ebb_cx *cx, void *state);
ebb_status model_puppet_finalize(ebb_cx *cx, void *state);
void model_puppet_abort(void *arg);
void model_puppet_closed(void *arg, const ebb_region_report *report);

/* Compares everything that both know; a difference fails the test with both views. */
void driver_compare(driver *d);
/* The end of the test, with the operations that led there. */
void driver_fail(driver *d, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
/* Remembers what is done next. */
void driver_note(driver *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
