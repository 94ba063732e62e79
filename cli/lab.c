/* cli/lab.c - `ebb lab`: run, explore and replay scenarios. */
#include "cli/cli.h"
#include "cli/help.h"

#include <inttypes.h>
#include <string.h>

#include "cli/case.h"

const ebb__help ebb__help_lab = {
    .name = "lab",
    .what = "run and explore scenarios, replay what failed",
    .text =
        "Runs the built-in scenarios in virtual time. FILE gets the trace or journal of the first runtime, "
        "FILE.1 that of the second, and so on.",
    .forms = (const ebb__help_form[]){{"list", "", "Lists the scenarios."},
                                      {"run", "SCENARIO", "One schedule."},
                                      {"explore", "SCENARIO",
                                       "Many schedules. A failure is cut down and written to a file."},
                                      {"replay", "FILE", "Runs the file that explore wrote."},
                                      {0}},
    .options =
        (const ebb__help_option[]){
            {"--seed", "N", "run explore", 0, "The seed of the run, or the first one; default 1."},
            {"--events", "N", "run", 0, "Repeats the run until that many events were traced."},
            {"--schedules", "N", "explore", 0,
             "How many schedules, or at most how many with --dfs; default 1000."},
            {"--dfs", "DEPTH", "explore", 0, "Every way that the first DEPTH (1 to 64) decisions can go."},
            {"--out", "FILE", "explore", 0, "Where a failure goes; default SCENARIO.lab."},
            {"--trace", "FILE", "run replay", 0, "Writes the trace."},
            {"--journal", "FILE", "run replay", 0, "Writes the journal."},
            {"--progress", NULL, NULL, 0, "Shows progress, also if stderr is not a terminal."},
            {0}},
    .exits =
        (const ebb__help_row[]){
            {"0", "success"}, {"1", "a run failed"}, {"2", "wrong arguments or files"}, {0}},
};

enum { MAX_DEPTH = 64 }; /* decisions that --dfs may vary */

typedef struct request {
    const char *subject; /* a scenario or a file */
    uint64_t seed, schedules, events, depth;
    const char *trace, *journal, *out;
    bool progress, help;
} request;

/* ---- arguments ---------------------------------------------------------------------------------- */

/* Parses the value of an option; NULL is an error. */
static bool parse_option(request *q, const char *option, const char *value) {
    static const char *const known[] = {"--seed",  "--schedules", "--events", "--dfs",
                                        "--trace", "--journal",   "--out"};
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) found |= strcmp(option, known[i]) == 0;
    if (found && value == NULL) {
        ebb__cli_error("%s needs a value", option);
        return false;
    }
    if (strcmp(option, "--seed") == 0) return ebb__cli_number(option, value, 0, UINT64_MAX, &q->seed);
    if (strcmp(option, "--schedules") == 0)
        return ebb__cli_number(option, value, 1, UINT64_MAX, &q->schedules);
    if (strcmp(option, "--events") == 0) return ebb__cli_number(option, value, 1, UINT64_MAX, &q->events);
    if (strcmp(option, "--dfs") == 0) return ebb__cli_number(option, value, 1, MAX_DEPTH, &q->depth);
    if (strcmp(option, "--trace") == 0) q->trace = value;
    else if (strcmp(option, "--journal") == 0) q->journal = value;
    else if (strcmp(option, "--out") == 0) q->out = value;
    else {
        ebb__cli_error("unknown option '%s'", option);
        return false;
    }
    return true;
}

static bool parse(request *q, int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            q->help = true;
        } else if (strcmp(arg, "--progress") == 0) {
            q->progress = true;
        } else if (arg[0] == '-') {
            if (!parse_option(q, arg, i + 1 < argc ? argv[i + 1] : NULL)) return false;
            i++;
        } else if (q->subject == NULL) {
            q->subject = arg;
        } else {
            ebb__cli_error("unexpected argument '%s'", arg);
            return false;
        }
    }
    return true;
}

static const ebb_lab_scenario *scenario_of(const char *name) {
    for (size_t i = 0; ebb_lab_scenario_at(i) != NULL; i++) {
        if (strcmp(name, ebb_lab_scenario_at(i)->name) == 0) return ebb_lab_scenario_at(i);
    }
    ebb__cli_error("unknown scenario '%s'; `ebb lab list` lists them", name);
    return NULL;
}

/* ---- the subcommands ---------------------------------------------------------------------------- */

static int lab_list(ebb_lab *lab, const request *q) {
    (void)lab;
    (void)q;
    for (size_t i = 0; ebb_lab_scenario_at(i) != NULL; i++) {
        printf("%-12s %s\n", ebb_lab_scenario_at(i)->name, ebb_lab_scenario_at(i)->about);
    }
    return EBB__EXIT_OK;
}

static int lab_run(ebb_lab *lab, const request *q) {
    ebb_lab_case c = {.scenario = scenario_of(q->subject), .seed = q->seed};
    ebb_lab_result r;
    if (c.scenario == NULL) return EBB__EXIT_USAGE;
    int code = ebb__case_run(lab, &c, &(ebb__case_files){q->trace, q->journal}, q->events, &r);
    if (code == EBB__EXIT_OK) {
        printf("%s, seed %" PRIu64 ": %" PRIu64 " events, %" PRIu64 " steps, %zu choices, %" PRIu32
               " rounds, ok, every oracle holds\n",
               c.scenario->name, c.seed, r.events, r.steps, r.choices, r.rounds);
    }
    return code;
}

/* What explore has found goes to --out, or to a file that is called like the scenario. */
static int keep_failure(ebb_lab *lab, const request *q, ebb_lab_case *c) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s%s", q->out != NULL ? q->out : c->scenario->name,
                 q->out != NULL ? "" : ".lab") >= (int)sizeof path) {
        ebb__cli_error("the name of the file is too long");
        return EBB__EXIT_USAGE;
    }
    return ebb__case_keep(lab, c, path, NULL, q->progress);
}

static int lab_explore(ebb_lab *lab, const request *q) {
    ebb_lab_case c = {.scenario = scenario_of(q->subject), .seed = q->seed};
    if (c.scenario == NULL) return EBB__EXIT_USAGE;
    ebb_lab_explore_result r;
    int code = ebb__case_explore(lab, &c, q->schedules, (uint32_t)q->depth, q->progress, &r);
    printf("%s: %" PRIu64 " schedules%s%s\n", c.scenario->name, r.schedules,
           q->depth == 0 ? ""
           : r.exhausted ? ", all there are to this depth"
                         : ", there are more to this depth",
           code == EBB__EXIT_OK ? ", nothing failed" : "");
    if (code == EBB__EXIT_BAD) code = keep_failure(lab, q, &c);
    ebb_lab_case_free(lab, &c);
    return code;
}

static int lab_replay(ebb_lab *lab, const request *q) {
    ebb_lab_case c;
    if (!ebb__case_load(lab, q->subject, NULL, false, &c)) return EBB__EXIT_USAGE;
    int code = ebb__case_replay(lab, q->subject, &c, &(ebb__case_files){q->trace, q->journal});
    ebb_lab_case_free(lab, &c);
    return code;
}

/* ---- dispatch ----------------------------------------------------------------------------------- */

static const struct {
    const char *name, *takes; /* takes NULL: no argument */
    int (*run)(ebb_lab *lab, const request *q);
} verbs[] = {
    {"list", NULL, lab_list},
    {"run", "a scenario", lab_run},
    {"explore", "a scenario", lab_explore},
    {"replay", "a file", lab_replay},
};

static int run_verb(size_t verb, const request *q) {
    if ((q->subject == NULL) != (verbs[verb].takes == NULL)) {
        ebb__cli_error("lab %s takes %s", verbs[verb].name,
                       verbs[verb].takes == NULL ? "nothing" : verbs[verb].takes);
        return EBB__EXIT_USAGE;
    }
    ebb_lab *lab = ebb_lab_new(ebb__cli_allocator());
    if (lab == NULL) {
        ebb__cli_error("%s", ebb_status_text(EBB_ERR_NOMEM));
        return EBB__EXIT_USAGE;
    }
    int code = verbs[verb].run(lab, q);
    ebb_lab_free(lab);
    return code;
}

int ebb__cmd_lab(int argc, char **argv) {
    request q = {.seed = 1};
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return ebb__help_show(&ebb__help_lab);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(name, verbs[i].name) != 0) continue;
        if (!parse(&q, argc - 2, argv + 2)) return EBB__EXIT_USAGE;
        if (!q.help) return run_verb(i, &q);
        return ebb__help_show(&ebb__help_lab);
    }
    if (argc > 1) ebb__cli_error("unknown lab command '%s': expected list, run, explore or replay", name);
    return ebb__help_refuse(&ebb__help_lab);
}
