/* The main of a program that has scenarios of its own: run, explore, inject and replay from a command line. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ebb/lab.h>

enum { OK, BAD, USAGE, PATH = 4096 };

static const char usage[] =
    "list | run SCENARIO [--seed N] [--trace FILE] [--journal FILE] "
    "| explore SCENARIO [--schedules N] [--seed N] [--out FILE] | inject SCENARIO [--every N] [--out FILE] "
    "| replay FILE [--trace FILE] [--journal FILE]";

typedef struct request {
    const char *program, *verb, *subject, *out, *trace, *journal;
    uint64_t seed, schedules, every;
    bool seeded;
    const ebb_lab_scenario *const *scenarios;
    ebb_lab *lab;
} request;

static int complain(const request *q, const char *what, const char *about) {
    fprintf(stderr, "%s: %s%s%s\n", q->program, what, about[0] != 0 ? ": " : "", about);
    return USAGE;
}

/* ---- arguments ----------------------------------------------------------------------------------------- */

static bool number(const request *q, const char *option, const char *text, uint64_t least, uint64_t *out) {
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0 && *out >= least) return true;
    fprintf(stderr, "%s: %s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'\n", q->program,
            option, least, UINT64_MAX, text);
    return false;
}

static bool take_option(request *q, const char *option, const char *value) {
    if (value == NULL) return false;
    if (strcmp(option, "--out") == 0) q->out = value;
    else if (strcmp(option, "--trace") == 0) q->trace = value;
    else if (strcmp(option, "--journal") == 0) q->journal = value;
    else if (strcmp(option, "--seed") == 0) return q->seeded = number(q, option, value, 0, &q->seed);
    else if (strcmp(option, "--schedules") == 0) return number(q, option, value, 1, &q->schedules);
    else if (strcmp(option, "--every") == 0) return number(q, option, value, 1, &q->every);
    else return false;
    return true;
}

static bool parse(request *q, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-' && !take_option(q, argv[i], i + 1 < argc ? argv[i + 1] : NULL)) return false;
        if (argv[i][0] == '-') i++;
        else if (q->verb == NULL) q->verb = argv[i];
        else if (q->subject == NULL) q->subject = argv[i];
        else return false;
    }
    return q->verb != NULL;
}

static const ebb_lab_scenario *scenario_of(const request *q) {
    const ebb_lab_scenario *const *s = q->scenarios;
    while (*s != NULL && strcmp((*s)->name, q->subject) != 0) s++;
    return *s;
}

/* ---- files --------------------------------------------------------------------------------------------- */

static void write_file(void *ctx, const void *bytes, size_t n) {
    (void)fwrite(bytes, 1, n, ctx);
}

static bool save(const ebb_lab_case *c, const char *path) {
    FILE *f = fopen(path, "wb");
    if (f == NULL) return false;
    ebb_lab_save(c, write_file, f);
    bool good = ferror(f) == 0;
    return fclose(f) == 0 && good;
}

static char *read_file(const char *path, size_t *n) {
    enum { MOST = 1 << 24 };
    FILE *f = fopen(path, "rb");
    char *bytes = f == NULL ? NULL : malloc(MOST);
    if (bytes != NULL) *n = fread(bytes, 1, MOST, f);
    if (f != NULL) (void)fclose(f);
    return bytes;
}

/* The traces and journals of a run: FILE has those of the first runtime, FILE.1 of the second, and so on. */
typedef struct records {
    const char *path[2];
    FILE *file[2][EBB_LAB_RUNTIMES];
    int error; /* 0: none */
} records;

static void take(records *r, int which, uint32_t runtime, const void *bytes, size_t n) {
    FILE **f = &r->file[which][runtime];
    char path[PATH];
    if (r->error != 0) return;
    if (runtime == 0) (void)snprintf(path, sizeof path, "%s", r->path[which]);
    else (void)snprintf(path, sizeof path, "%s.%" PRIu32, r->path[which], runtime);
    if (*f == NULL) *f = fopen(path, "wb");
    if (*f == NULL || fwrite(bytes, 1, n, *f) != n) r->error = errno != 0 ? errno : EIO;
}

static void take_trace(void *ctx, uint32_t runtime, const void *bytes, size_t n) {
    take(ctx, 0, runtime, bytes, n);
}

static void take_journal(void *ctx, uint32_t runtime, const void *bytes, size_t n) {
    take(ctx, 1, runtime, bytes, n);
}

static int records_close(const request *q, records *r) {
    for (int which = 0; which < 2; which++) {
        for (uint32_t i = 0; i < EBB_LAB_RUNTIMES; i++) {
            if (r->file[which][i] != NULL && fclose(r->file[which][i]) != 0 && r->error == 0)
                r->error = errno;
        }
    }
    return r->error == 0 ? OK : complain(q, "can't write the traces or journals", strerror(r->error));
}

/* ---- verbs --------------------------------------------------------------------------------------------- */

static int list(const request *q) {
    for (const ebb_lab_scenario *const *s = q->scenarios; *s != NULL; s++)
        printf("%-16s %s\n", (*s)->name, (*s)->about == NULL ? "" : (*s)->about);
    return OK;
}

static void print_failure(const ebb_lab_case *c, const ebb_lab_result *r) {
    printf("%s, seed %" PRIu64, c->scenario->name, c->seed);
    if (c->action != EBB_LAB_NOTHING)
        printf(", %s at point %" PRIu64, ebb_lab_action_name(c->action), c->point);
    printf(": %s: %s\n", r->failure[0] != 0 ? r->failure : ebb_status_name(r->status), r->text);
}

static int run(const request *q, const ebb_lab_case *c) {
    ebb_lab_result r;
    records files = {.path = {q->trace, q->journal}};
    ebb_lab_opts opts = {.ctx = &files};
    if (q->trace != NULL) opts.trace = take_trace;
    if (q->journal != NULL) opts.journal = take_journal;
    (void)ebb_lab_run(q->lab, c, &opts, &r);
    if (r.status != EBB_OK) print_failure(c, &r);
    else
        printf("%s, seed %" PRIu64 ": %" PRIu64 " events, %" PRIu64 " steps, %zu choices: holds\n",
               c->scenario->name, c->seed, r.events, r.steps, r.choices);
    int code = records_close(q, &files);
    return code != OK ? code : r.status == EBB_OK ? OK : BAD;
}

/* Writes the failing case twice: as it was found, in case that shrinking is interrupted, and then shrunk. */
static int keep(const request *q, ebb_lab_case *c, const ebb_lab_result *r) {
    char path[PATH];
    print_failure(c, r);
    if (r->failure[0] == 0) return USAGE;
    (void)snprintf(path, sizeof path, "%s%s", q->out != NULL ? q->out : c->scenario->name,
                   q->out != NULL ? "" : ".lab");
    size_t choices = c->n_choices;
    bool saved = save(c, path);
    if (ebb_lab_shrink(q->lab, c, 0, NULL, NULL) != EBB_OK) printf("it does not fail again: not shrunk\n");
    else printf("shrunk from %zu choices to %zu\n", choices, c->n_choices);
    if (!saved || !save(c, path)) return complain(q, path, strerror(errno));
    printf("replay with: %s replay %s\n", q->program, path);
    return BAD;
}

static int explore(const request *q, ebb_lab_case *c) {
    ebb_lab_explore_result r;
    (void)ebb_lab_explore(q->lab, c, &(ebb_lab_explore_opts){.schedules = q->schedules}, &r);
    if (r.failure.status != EBB_OK) return keep(q, c, &r.failure);
    printf("%s: %" PRIu64 " schedules hold\n", c->scenario->name, r.schedules);
    return OK;
}

static int inject(const request *q, ebb_lab_case *c) {
    ebb_lab_inject_result r;
    c->recorded = !q->seeded;
    (void)ebb_lab_inject(q->lab, c, &(ebb_lab_inject_opts){.every = q->every}, &r);
    if (r.failure.status != EBB_OK) return keep(q, c, &r.failure);
    printf("%s: %" PRIu64 " points, %" PRIu64 " runs hold\n", c->scenario->name, r.points, r.runs);
    return OK;
}

static int replay(const request *q) {
    ebb_lab_case c;
    ebb_lab_error error = {.text = "no scenarios"};
    size_t n;
    char *bytes = read_file(q->subject, &n);
    if (bytes == NULL) return complain(q, q->subject, strerror(errno));
    ebb_status st = EBB_ERR_INVALID;
    for (const ebb_lab_scenario *const *s = q->scenarios; *s != NULL && st != EBB_OK; s++)
        st = ebb_lab_load(q->lab, bytes, n, *s, &c, &error);
    free(bytes);
    if (st != EBB_OK) return complain(q, q->subject, error.text);
    int code = run(q, &c);
    ebb_lab_case_free(q->lab, &c);
    return code;
}

static int with_scenario(const request *q) {
    ebb_lab_case c = {.scenario = scenario_of(q), .seed = q->seed};
    int code;
    if (c.scenario == NULL) return complain(q, "no such scenario", q->subject);
    if (strcmp(q->verb, "run") == 0) code = run(q, &c);
    else if (strcmp(q->verb, "explore") == 0) code = explore(q, &c);
    else if (strcmp(q->verb, "inject") == 0) code = inject(q, &c);
    else code = complain(q, "usage", usage);
    ebb_lab_case_free(q->lab, &c);
    return code;
}

int ebb_lab_main(ebb_allocator a, int argc, char **argv, const ebb_lab_scenario *const *scenarios) {
    request q = {.program = argc > 0 ? argv[0] : "lab", .seed = 1, .scenarios = scenarios};
    if (!parse(&q, argc, argv)) return complain(&q, "usage", usage);
    if (strcmp(q.verb, "list") == 0) return list(&q);
    if (q.subject == NULL) return complain(&q, "usage", usage);
    q.lab = ebb_lab_new(a);
    if (q.lab == NULL) return complain(&q, "no memory", "");
    int code = strcmp(q.verb, "replay") == 0 ? replay(&q) : with_scenario(&q);
    ebb_lab_free(q.lab);
    return code;
}
