/* cli/lab.c - `ebb lab`: run, explore and replay scenarios. */
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <ebb/lab.h>

#include "cli/line.h"

static const char usage[] =
    "usage: ebb lab list\n"
    "       ebb lab run SCENARIO [--seed N] [--events N] [--trace FILE] [--journal FILE]\n"
    "       ebb lab explore SCENARIO [--schedules N] [--dfs DEPTH] [--seed N] [--out FILE]\n"
    "       ebb lab replay FILE [--trace FILE] [--journal FILE]\n"
    "\n"
    "run      one schedule; with --events, repeated until N events were traced\n"
    "explore  many schedules: seeds from --seed (1) on, --schedules (1000) of them; or with --dfs every\n"
    "         way that the first DEPTH (1 to 64) decisions can go, at most --schedules of them. A failure "
    "is\n"
    "         shrunk and written to --out (SCENARIO.lab)\n"
    "replay   runs the file that explore wrote\n"
    "\n"
    "FILE gets the trace or journal of the first runtime, FILE.1 that of the second, and so on.\n"
    "--progress shows progress even if stderr is not a terminal.\n"
    "Exit code 0: success; 1: a run failed; 2: wrong arguments or files.\n";

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

/* ---- files -------------------------------------------------------------------------------------- */

/* Where the traces and journals of a run go. A file is opened with its first bytes. */
typedef struct sinks {
    const char *path[2]; /* trace, journal; NULL: not wanted */
    FILE *file[2][EBB_LAB_RUNTIMES];
    bool failed;
} sinks;

static FILE *open_sink(sinks *s, int which, uint32_t runtime) {
    char name[4096];
    const char *path = s->path[which];
    int n = runtime == 0 ? snprintf(name, sizeof name, "%s", path)
                         : snprintf(name, sizeof name, "%s.%" PRIu32, path, runtime);
    FILE *f = n > 0 && (size_t)n < sizeof name ? fopen(name, "wb") : NULL;
    if (f == NULL) ebb__cli_error("can't write %s: %s", path, strerror(errno));
    return f;
}

static void sink_write(sinks *s, int which, uint32_t runtime, const void *bytes, size_t n) {
    FILE **f = &s->file[which][runtime];
    if (s->failed) return;
    if (*f == NULL) *f = open_sink(s, which, runtime);
    if (*f == NULL || fwrite(bytes, 1, n, *f) != n) s->failed = true;
}

static void trace_sink(void *ctx, uint32_t runtime, const void *bytes, size_t n) {
    sink_write(ctx, 0, runtime, bytes, n);
}

static void journal_sink(void *ctx, uint32_t runtime, const void *bytes, size_t n) {
    sink_write(ctx, 1, runtime, bytes, n);
}

static bool sinks_close(sinks *s) {
    for (int which = 0; which < 2; which++) {
        for (uint32_t i = 0; i < EBB_LAB_RUNTIMES; i++) {
            if (s->file[which][i] != NULL && fclose(s->file[which][i]) != 0) s->failed = true;
        }
    }
    if (s->failed) ebb__cli_error("can't write the trace or journal: %s", strerror(errno));
    return !s->failed;
}

static void write_file(void *ctx, const void *bytes, size_t n) {
    (void)fwrite(bytes, 1, n, ctx);
}

static bool save_case(const ebb_lab_case *c, const char *path) {
    FILE *f = fopen(path, "wb");
    bool ok = f != NULL;
    if (ok) {
        ebb_lab_save(c, write_file, f);
        ok = ferror(f) == 0;
        ok &= fclose(f) == 0;
    }
    if (!ok) ebb__cli_error("can't write %s: %s", path, strerror(errno));
    return ok;
}

/* ---- printing ----------------------------------------------------------------------------------- */

static void print_failure(const ebb_lab_case *c, const ebb_lab_result *r) {
    printf("%s, seed %" PRIu64 ": %s: %s\n", c->scenario->name, c->seed, r->failure, r->text);
    if (r->event.type == 0) return;
    ebb__line line = {.event = r->event};
    memcpy(line.text, r->event.text, sizeof r->event.text);
    printf("  runtime %" PRIu32 ", event %" PRIu64 ": ", r->runtime, r->event.decision_seq);
    ebb__line_print(stdout, &line);
    putchar('\n');
}

/* The exit code of a run. */
static int exit_of(const ebb_lab_case *c, const ebb_lab_result *r) {
    if (r->status == EBB_OK) return EBB__EXIT_OK;
    if (r->failure[0] == 0) {
        ebb__cli_error("%s: %s", c->scenario->name, ebb_status_text(r->status));
        return EBB__EXIT_USAGE;
    }
    print_failure(c, r);
    return EBB__EXIT_BAD;
}

static int run_case(ebb_lab *lab, const request *q, const ebb_lab_case *c, ebb_lab_result *r) {
    sinks s = {.path = {q->trace, q->journal}};
    ebb_lab_opts o = {.min_events = q->events,
                      .trace = q->trace != NULL ? trace_sink : NULL,
                      .journal = q->journal != NULL ? journal_sink : NULL,
                      .ctx = &s};
    (void)ebb_lab_run(lab, c, &o, r);
    int code = exit_of(c, r);
    return sinks_close(&s) ? code : EBB__EXIT_USAGE;
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
    int code = run_case(lab, q, &c, &r);
    if (code == EBB__EXIT_OK) {
        printf("%s, seed %" PRIu64 ": %" PRIu64 " events, %" PRIu64 " steps, %zu choices, %" PRIu32
               " rounds, ok, every oracle holds\n",
               c.scenario->name, c.seed, r.events, r.steps, r.choices, r.rounds);
    }
    return code;
}

static void show_progress(void *ctx, uint64_t done, uint64_t of) {
    ebb__progress_step(ctx, done, of);
}

static size_t lines_of(const ebb_lab_case *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->script_n; i++) n += c->script[i] == '\n';
    return n;
}

/* Writes the case twice: as it was found, in case that shrinking is interrupted, and then shrunk. */
static int keep_failure(ebb_lab *lab, const request *q, ebb_lab_case *c) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s%s", q->out != NULL ? q->out : c->scenario->name,
                 q->out != NULL ? "" : ".lab") >= (int)sizeof path) {
        ebb__cli_error("the name of the file is too long");
        return EBB__EXIT_USAGE;
    }
    if (!save_case(c, path)) return EBB__EXIT_USAGE;
    size_t lines = lines_of(c), choices = c->n_choices;
    ebb__progress p = ebb__progress_begin("cutting down", q->progress);
    ebb_status st = ebb_lab_shrink(lab, c, 0, show_progress, &p);
    ebb__progress_end(&p);
    if (st != EBB_OK) {
        ebb__cli_error("can't shrink the case: %s",
                       st == EBB_ERR_INVALID ? "it does not fail again" : ebb_status_text(st));
    }
    if (!save_case(c, path)) return EBB__EXIT_USAGE;
    printf("shrunk from %zu lines and %zu choices to %zu and %zu\n", lines, choices, lines_of(c),
           c->n_choices);
    printf("replay with: ebb lab replay %s\n", path);
    return EBB__EXIT_BAD;
}

static int lab_explore(ebb_lab *lab, const request *q) {
    ebb_lab_case c = {.scenario = scenario_of(q->subject), .seed = q->seed};
    if (c.scenario == NULL) return EBB__EXIT_USAGE;
    ebb__progress p = ebb__progress_begin("exploring", q->progress);
    ebb_lab_explore_opts o = {
        .schedules = q->schedules, .depth = (uint32_t)q->depth, .progress = show_progress, .ctx = &p};
    ebb_lab_explore_result r;
    (void)ebb_lab_explore(lab, &c, &o, &r);
    ebb__progress_end(&p);
    int code = exit_of(&c, &r.failure);
    printf("%s: %" PRIu64 " schedules%s%s\n", c.scenario->name, r.schedules,
           q->depth == 0 ? ""
           : r.exhausted ? ", all there are to this depth"
                         : ", there are more to this depth",
           code == EBB__EXIT_OK ? ", nothing failed" : "");
    if (code == EBB__EXIT_BAD) code = keep_failure(lab, q, &c);
    ebb_lab_case_free(lab, &c);
    return code;
}

static int replay_case(ebb_lab *lab, const request *q, const ebb_lab_case *c) {
    ebb_lab_result r;
    if (c->plant != 0) {
        printf("this build does not contain the planted bug %s\n", ebb_oracle_name((ebb_oracle)c->plant));
    }
    int code = run_case(lab, q, c, &r);
    if (code == EBB__EXIT_OK)
        printf("%s: it does not fail%s\n", q->subject, c->failure[0] != 0 ? " any more" : "");
    if (code == EBB__EXIT_BAD && c->failure[0] != 0 && strcmp(c->failure, r.failure) != 0) {
        printf("%s: it failed with %s when it was written\n", q->subject, c->failure);
    }
    return code;
}

static int lab_replay(ebb_lab *lab, const request *q) {
    ebb__cli_file f;
    ebb_lab_case c;
    ebb_lab_error error;
    if (!ebb__cli_read(q->subject, &f)) return EBB__EXIT_USAGE;
    int code = EBB__EXIT_USAGE;
    ebb_status st = ebb_lab_load(lab, (const char *)f.bytes, f.n, NULL, &c, &error);
    if (st == EBB_OK) {
        code = replay_case(lab, q, &c);
        ebb_lab_case_free(lab, &c);
    } else if (st == EBB_ERR_NOMEM) {
        ebb__cli_error("%s: %s", q->subject, ebb_status_text(st));
    } else {
        ebb__cli_error("%s:%" PRIu32 ": %s", q->subject, error.line, error.text);
    }
    free(f.bytes);
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
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        fputs(usage, stdout);
        return EBB__EXIT_OK;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(name, verbs[i].name) != 0) continue;
        if (!parse(&q, argc - 2, argv + 2)) return EBB__EXIT_USAGE;
        if (!q.help) return run_verb(i, &q);
        fputs(usage, stdout);
        return EBB__EXIT_OK;
    }
    if (argc > 1) ebb__cli_error("unknown lab command '%s': expected list, run, explore or replay", name);
    fputs(usage, stderr);
    return EBB__EXIT_USAGE;
}
