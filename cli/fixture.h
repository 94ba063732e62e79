/* cli/fixture.h - a fixture: its file, a run of it, and their comparison. */
#ifndef EBB_CLI_FIXTURE_H
#define EBB_CLI_FIXTURE_H

#include "cli/cli.h"

#include <jansson.h>

/* ---- the file: cli/fixture_file.c --------------------------------------------------------------- */

typedef struct ebb__fixture {
    const char *path; /* belongs to the caller */
    json_t *json;     /* owns everything below */
    const char *id, *repro;
    uint64_t seed;
    json_t *script, *expect;
    json_t *watch; /* events listed besides those of the cancel protocol; may be NULL */
} ebb__fixture;

/* Reads and checks a file. On failure an error is printed with the field and the expected value. */
bool ebb__fixture_load(const char *path, ebb__fixture *out);
void ebb__fixture_free(ebb__fixture *f);

/* ---- a run: cli/fixture_run.c ------------------------------------------------------------------- */

typedef struct ebb__fixture_run {
    json_t *actual;    /* in the form of `expect` */
    json_t *lines;     /* the script line of each of actual's events, from 1 */
    json_t *ids;       /* tasks, regions and obligations of the run: "task worker 0.1.1" */
    json_t *positions; /* for each of actual's phases: [line, event as text] */
    char problem[256]; /* reported by an oracle or a witness; "": none */
    size_t problem_line;
    uint8_t *trace;
    size_t trace_n, trace_room;
} ebb__fixture_run;

/* The parameters of a run. The command that repeats the run needs all of them. */
typedef struct ebb__fixture_how {
    uint64_t seed;
    const char *dir; /* the value of --dir; may be NULL */
} ebb__fixture_how;

/* False, with an error printed: the run did not complete. Free `out` in either case. */
bool ebb__fixture_run_it(const ebb__fixture *f, const ebb__fixture_how *how, ebb__fixture_run *out);
void ebb__fixture_run_free(ebb__fixture_run *run);

/* An event as fixtures write it: "cancel_acked(worker) USER polite epoch 1 polls 1024 deadline 5000ms".
 * cli/fixture_event.c. */
struct ebb__script;
void ebb__fixture_event(const struct ebb__script *s, const ebb_event *ev, char *out, size_t room);
/* Writes the name of an event's task to `out`. The event must have a task's phase. */
void ebb__fixture_task_name(const struct ebb__script *s, const ebb_event *ev, char *out, size_t room);

/* ---- the comparison: cli/fixture_compare.c ------------------------------------------------------ */

/* True if the run matches the expectation; otherwise the whole failure is printed. */
bool ebb__fixture_compare(const ebb__fixture *f, const ebb__fixture_how *how, const ebb__fixture_run *run,
                          FILE *out);

#endif
