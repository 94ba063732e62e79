/* cli/case.c - cases of the lab: run with traces, printed, kept in files. */
#include "cli/case.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "serve/line.h"

/* ---- traces and journals ---- */

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

/* ---- running ---- */

static void print_failure(const ebb_lab_case *c, const ebb_lab_result *r) {
    bool plain = c->recorded && c->n_choices == 0;
    if (plain) printf("%s, the plain schedule: %s: %s\n", c->scenario->name, r->failure, r->text);
    else printf("%s, seed %" PRIu64 ": %s: %s\n", c->scenario->name, c->seed, r->failure, r->text);
    if (r->event.type == 0) return;
    ebb__line line = {.event = r->event};
    memcpy(line.text, r->event.text, sizeof r->event.text);
    printf("  runtime %" PRIu32 ", event %" PRIu64 ": ", r->runtime, r->event.decision_seq);
    ebb__line_print(stdout, &line);
    putchar('\n');
}

int ebb__case_exit(const ebb_lab_case *c, const ebb_lab_result *r) {
    if (r->status == EBB_OK) return EBB__EXIT_OK;
    if (r->failure[0] == 0) {
        ebb__cli_error("%s: %s", c->scenario->name, ebb_status_text(r->status));
        return EBB__EXIT_USAGE;
    }
    print_failure(c, r);
    return EBB__EXIT_BAD;
}

int ebb__case_run(ebb_lab *lab, const ebb_lab_case *c, const ebb__case_files *files, uint64_t events,
                  ebb_lab_result *out) {
    sinks s = {.path = {files->trace, files->journal}};
    ebb_lab_opts o = {.min_events = events,
                      .trace = files->trace != NULL ? trace_sink : NULL,
                      .journal = files->journal != NULL ? journal_sink : NULL,
                      .ctx = &s};
    (void)ebb_lab_run(lab, c, &o, out);
    int code = ebb__case_exit(c, out);
    return sinks_close(&s) ? code : EBB__EXIT_USAGE;
}

static void show_progress(void *ctx, uint64_t done, uint64_t of) {
    ebb__progress_step(ctx, done, of);
}

int ebb__case_explore(ebb_lab *lab, ebb_lab_case *c, uint64_t schedules, uint32_t depth, bool progress,
                      ebb_lab_explore_result *out) {
    ebb__progress p = ebb__progress_begin("exploring", progress);
    ebb_lab_explore_opts o = {.schedules = schedules, .depth = depth, .progress = show_progress, .ctx = &p};
    (void)ebb_lab_explore(lab, c, &o, out);
    ebb__progress_end(&p);
    return ebb__case_exit(c, &out->failure);
}

/* ---- writing ---- */

/* Writes beside the file and renames, so that nobody ever reads a part. */
static bool replace_file(const char *path, const ebb__buffer *b) {
    char beside[4096];
    if (snprintf(beside, sizeof beside, "%s.new", path) >= (int)sizeof beside) {
        errno = ENAMETOOLONG;
        return false;
    }
    FILE *f = fopen(beside, "wb");
    if (f == NULL) return false;
    bool ok = fwrite(b->bytes, 1, b->n, f) == b->n;
    int error = errno;
    if (fclose(f) != 0) {
        if (ok) error = errno;
        ok = false;
    }
    if (ok && rename(beside, path) == 0) return true;
    if (ok) error = errno;
    (void)remove(beside);
    errno = error;
    return false;
}

static void add_bytes(void *ctx, const void *bytes, size_t n) {
    ebb__buffer_add(ctx, bytes, n);
}

static bool save(const ebb_lab_case *c, const char *path) {
    ebb__buffer b = {0};
    ebb_lab_save(c, add_bytes, &b);
    if (b.failed) errno = ENOMEM;
    bool ok = !b.failed && replace_file(path, &b);
    if (!ok) ebb__cli_error("can't write %s: %s", path, strerror(errno));
    free(b.bytes);
    return ok;
}

static size_t lines_of(const ebb_lab_case *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->script_n; i++) n += c->script[i] == '\n';
    return n;
}

static void print_sizes(const ebb_lab_case *c, size_t lines, size_t choices) {
    if (lines == 0) printf("shrunk from %zu choices to %zu\n", choices, c->n_choices);
    else
        printf("shrunk from %zu lines and %zu choices to %zu and %zu\n", lines, choices, lines_of(c),
               c->n_choices);
}

/* "ebb lab replay storm.lab", or "ebb test light.ebb --replay light.lab" */
static void print_replay(const char *path, const char *program) {
    fputs(program == NULL ? "replay with: ebb lab replay " : "replay with: ebb test ", stdout);
    if (program != NULL) {
        ebb__cli_quote(stdout, program);
        fputs(" --replay ", stdout);
    }
    ebb__cli_quote(stdout, path);
    putchar('\n');
}

int ebb__case_keep(ebb_lab *lab, ebb_lab_case *c, const char *path, const char *program, bool progress) {
    if (!save(c, path)) return EBB__EXIT_USAGE;
    size_t lines = lines_of(c), choices = c->n_choices;
    ebb__progress p = ebb__progress_begin("cutting down", progress);
    ebb_status st = ebb_lab_shrink(lab, c, 0, show_progress, &p);
    ebb__progress_end(&p);
    if (st != EBB_OK) {
        ebb__cli_error("can't shrink the case: %s",
                       st == EBB_ERR_INVALID ? "it does not fail again" : ebb_status_text(st));
    }
    if (!save(c, path)) return EBB__EXIT_USAGE;
    print_sizes(c, lines, choices);
    print_replay(path, program);
    return EBB__EXIT_BAD;
}

/* ---- replaying ---- */

/* The first line "scenario NAME" of a case: its number, from 1; 0: there is none. */
static uint32_t scenario_line(const char *bytes, size_t n, const char **name, size_t *length) {
    static const char word[] = "scenario ";
    uint32_t line = 1;
    for (size_t at = 0; at < n; line++) {
        const char *stop = memchr(bytes + at, '\n', n - at);
        size_t end = stop == NULL ? n : (size_t)(stop - bytes);
        if (end - at >= sizeof word - 1 && memcmp(bytes + at, word, sizeof word - 1) == 0) {
            *name = bytes + at + sizeof word - 1;
            *length = end - at - (sizeof word - 1);
            return line;
        }
        at = end + 1;
    }
    return 0;
}

/* True: the case is of another scenario; an error was printed. */
static bool is_of_another(const ebb__cli_file *f, const char *own, uint32_t error_line) {
    const char *name = NULL;
    size_t n = 0;
    uint32_t line = scenario_line((const char *)f->bytes, f->n, &name, &n);
    bool other = line > 0 && (n != strlen(own) || memcmp(name, own, n) != 0);
    if (!other || (error_line != 0 && error_line < line)) return false;
    ebb__cli_error("%s:%" PRIu32 ": expected a case of %s, found one of %.*s", f->path, line, own, (int)n,
                   name);
    return true;
}

bool ebb__case_load(ebb_lab *lab, const char *path, const ebb_lab_scenario *own, bool only_own,
                    ebb_lab_case *out) {
    ebb__cli_file f;
    ebb_lab_error error = {0};
    if (!ebb__cli_read(path, &f)) return false;
    ebb_status st = ebb_lab_load(lab, (const char *)f.bytes, f.n, own, out, &error);
    uint32_t line = st == EBB_OK ? 0 : error.line;
    bool other = only_own && st != EBB_ERR_NOMEM && is_of_another(&f, own->name, line);
    if (other && st == EBB_OK) ebb_lab_case_free(lab, out);
    else if (!other && st == EBB_ERR_NOMEM) ebb__cli_error("%s: %s", path, ebb_status_text(st));
    else if (!other && st != EBB_OK) ebb__cli_error("%s:%" PRIu32 ": %s", path, error.line, error.text);
    free(f.bytes);
    return st == EBB_OK && !other;
}

int ebb__case_replay(ebb_lab *lab, const char *path, const ebb_lab_case *c, const ebb__case_files *files) {
    ebb_lab_result r;
    if (c->plant != 0) {
        printf("this build does not contain the planted bug %s\n", ebb_oracle_name((ebb_oracle)c->plant));
    }
    int code = ebb__case_run(lab, c, files, 0, &r);
    if (code == EBB__EXIT_OK) printf("%s: it does not fail%s\n", path, c->failure[0] != 0 ? " any more" : "");
    if (code == EBB__EXIT_BAD && c->failure[0] != 0 && strcmp(c->failure, r.failure) != 0) {
        printf("%s: it failed with %s when it was written\n", path, c->failure);
    }
    return code;
}
