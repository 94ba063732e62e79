/* cli/fixture.h - a fixture: what its file says, what a run of it did, and how the two compare. */
#ifndef EBB_CLI_FIXTURE_H
#define EBB_CLI_FIXTURE_H

#include "cli/cli.h"

#include <jansson.h>

/* ---- the file: cli/fixture_file.c --------------------------------------------------------------- */

typedef struct ebb__fixture {
    const char *path; /* the caller's */
    json_t *json;     /* owns everything below */
    const char *id, *repro;
    uint64_t seed;
    json_t *script, *expect;
    json_t *watch; /* events listed besides those of the cancel protocol; may be NULL */
} ebb__fixture;

/* Reads and checks a file. What is wrong with it is printed, with the field and what was expected. */
bool ebb__fixture_load(const char *path, ebb__fixture *out);
void ebb__fixture_free(ebb__fixture *f);

/* ---- a run: cli/fixture_run.c ------------------------------------------------------------------- */

typedef struct ebb__fixture_run {
    json_t *actual;    /* as `expect` */
    json_t *lines;     /* the script line of each of actual's events, from 1 */
    json_t *ids;       /* what took part: "task worker 0.1.1" */
    json_t *places;    /* of each of actual's phases: [line, event as text] */
    char problem[256]; /* of an oracle or a witness; "" if there is none */
    size_t problem_line;
    uint8_t *trace;
    size_t trace_n, trace_room;
} ebb__fixture_run;

/* How it is run; the command that repeats the run needs all of it. */
typedef struct ebb__fixture_how {
    uint64_t seed;
    const char *dir; /* what --dir said; may be NULL */
    int plant;       /* the ebb_oracle that a planted bug breaks, in builds that have those; 0: none */
} ebb__fixture_how;

/* False, with a message printed, if it could not be run to its end. Free it in either case. */
bool ebb__fixture_run_it(const ebb__fixture *f, const ebb__fixture_how *how, ebb__fixture_run *out);
void ebb__fixture_run_free(ebb__fixture_run *run);

/* An event as fixtures write it: "cancel_acked(worker) USER polite epoch 1 polls 1024 deadline 5000ms".
 * cli/fixture_event.c. */
struct ebb__script;
void ebb__fixture_event(const struct ebb__script *s, const ebb_event *ev, char *out, size_t room);
/* The name of the task that an event with a task's phase is about, in `out`. */
void ebb__fixture_task_name(const struct ebb__script *s, const ebb_event *ev, char *out, size_t room);

/* ---- both: cli/fixture_compare.c ---------------------------------------------------------------- */

/* True if the run did what was expected; else the whole failure is printed. */
bool ebb__fixture_compare(const ebb__fixture *f, const ebb__fixture_how *how, const ebb__fixture_run *run,
                          FILE *out);

#endif
