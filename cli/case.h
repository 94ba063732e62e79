/* cli/case.h - cases of the lab: run with traces, printed, kept in files. What `ebb lab` and `ebb test` share. */
#ifndef EBB_CLI_CASE_H
#define EBB_CLI_CASE_H

#include <ebb/lab.h>

/* Where the trace and the journal of a run go; NULL: nowhere. A second runtime's go to FILE.1, and so on. */
typedef struct ebb__case_files {
    const char *trace, *journal;
} ebb__case_files;

/* Runs a case, prints a failure, and returns the exit code. `events`: as ebb_lab_opts.min_events. */
int ebb__case_run(ebb_lab *lab, const ebb_lab_case *c, const ebb__case_files *files, uint64_t events,
                  ebb_lab_result *out);
/* Prints a failure, and returns the exit code of a run. */
int ebb__case_exit(const ebb_lab_case *c, const ebb_lab_result *r);

/* Writes a case that fails to `path`, twice: as it is, in case that shrinking is interrupted, and then shrunk. A file of
 * that name is replaced at once by a whole one, or stays. Prints how to run it again, by `ebb test` if it is of a
 * program (NULL: by `ebb lab`). Returns the exit code. */
int ebb__case_keep(ebb_lab *lab, ebb_lab_case *c, const char *path, const char *program, bool progress);

/* Reads a case. On failure an error is printed, and false is returned. `own`: as for ebb_lab_load. With `only_own` a
 * case of another scenario is an error. */
bool ebb__case_load(ebb_lab *lab, const char *path, const ebb_lab_scenario *own, bool only_own,
                    ebb_lab_case *out);
/* Runs a case that was read, and says whether it fails as it did when it was written. Returns the exit code. */
int ebb__case_replay(ebb_lab *lab, const char *path, const ebb_lab_case *c, const ebb__case_files *files);

/* Explores from `c`, shows progress, prints a failure, and returns the exit code. */
int ebb__case_explore(ebb_lab *lab, ebb_lab_case *c, uint64_t schedules, uint32_t depth, bool progress,
                      ebb_lab_explore_result *out);

#endif
