/* cli/trace.c - `ebb trace show | verify | diff | export | summary`. */
#include "cli/cli.h"
#include "cli/export.h"
#include "cli/summary.h"
#include "cli/together.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/help.h"

const ebb__help ebb__help_trace = {
    .name = "trace",
    .what = "show, verify, compare and export traces",
    .text = "Reads traces. Several files are of runtimes that sent each other messages, as the loops of a "
            "service "
            "do: each is checked, and what holds between them.",
    .forms =
        (const ebb__help_form[]){
            {"show", "FILE",
             "One line an event: number, time, turn/batch, event, subject, phase, reason, text."},
            {"verify", "FILE...", "Checks checksums and structure."},
            {"diff", "FILE FILE", "The first event that differs."},
            {"export", "FILE...", "Writes the events for other programs."},
            {"summary", "FILE...",
             "Who ran longest, who waited longest and for what, what drains waited for, counts."},
            {0}},
    .options =
        (const ebb__help_option[]){
            {"--strict", NULL, "verify", 0, "Also checks every rule of the contract, from the events alone."},
            {"--quiescent", NULL, "verify", 0, "Also checks that only the root region is open at the end."},
            {"--format", "jsonl|chrome", "export", EBB__HELP_NEEDED, "JSON lines, or what Perfetto reads."},
            {"-o", "FILE", "export", 0, "Where it is written to; otherwise to stdout."},
            {"--json", NULL, "summary", 0, "As JSON."},
            {"--progress", NULL, NULL, 0, "Shows progress, also if stderr is not a terminal."},
            {0}},
    .exits =
        (const ebb__help_row[]){
            {"0", "success"},
            {"1", "the file is damaged or truncated, a rule is broken, or the files differ"},
            {"2", "wrong arguments, or a file that is no trace"},
            {0}},
    .examples =
        (const ebb__help_row[]){
            {"ebb trace verify --strict run.trace", "Checks every rule of the contract."},
            {"ebb trace export --format chrome -o run.json run.trace", "For https://ui.perfetto.dev."},
            {0}},
};

enum { FILES_MOST = 256 }; /* there are 256 runtime ids */

/* The command line. */
typedef struct request {
    const char *files[FILES_MOST];
    size_t n_files;
    const char *format, *out;
    bool strict, quiescent, progress, json, help;
} request;

/* The field of an option that takes a value, or NULL. */
static const char **value_option(request *q, const char *arg) {
    if (strcmp(arg, "--format") == 0) return &q->format;
    if (strcmp(arg, "-o") == 0) return &q->out;
    return NULL;
}

static bool *flag_option(request *q, const char *arg) {
    if (strcmp(arg, "--strict") == 0) return &q->strict;
    if (strcmp(arg, "--quiescent") == 0) return &q->quiescent;
    if (strcmp(arg, "--progress") == 0) return &q->progress;
    if (strcmp(arg, "--json") == 0) return &q->json;
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) return &q->help;
    return NULL;
}

static bool parse(request *q, int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        const char **value = value_option(q, argv[i]);
        bool *flag = flag_option(q, argv[i]);
        if (flag != NULL) {
            *flag = true;
        } else if (value != NULL) {
            if (++i == argc) {
                ebb__cli_error("%s needs a value", argv[i - 1]);
                return false;
            }
            *value = argv[i];
        } else if (argv[i][0] == '-' && argv[i][1] != 0) {
            ebb__cli_error("unknown option '%s'", argv[i]);
            return false;
        } else if (q->n_files == FILES_MOST) {
            ebb__cli_error("unexpected argument '%s'", argv[i]);
            return false;
        } else {
            q->files[q->n_files++] = argv[i];
        }
    }
    return true;
}

/* ---- reading ---------------------------------------------------------------------------------- */

static void report_damage(const ebb__cli_file *f, const ebb_trace_reader *r, ebb_status st, uint64_t events) {
    ebb__cli_error("%s: offset %zu: %s: expected %s; %" PRIu64 " events before it can be read", f->path,
                   r->error_offset, ebb_status_text(st), r->error, events);
}

/* Opens a trace. Returns the exit code on failure. */
static int open_trace(const ebb__cli_file *f, ebb_trace_reader *r) {
    ebb_status st = ebb_trace_reader_open(r, f->bytes, f->n);
    if (st != EBB_OK) {
        report_damage(f, r, st, 0);
        return ebb__cli_is_other_kind(st, r) ? EBB__EXIT_USAGE : EBB__EXIT_BAD;
    }
    if (r->journal) {
        ebb__cli_error("%s is a journal, not a trace", f->path);
        return EBB__EXIT_USAGE;
    }
    return EBB__EXIT_OK;
}

static void print_hash(FILE *out, ebb_status st, ebb_hash h) {
    if (st == EBB_OK) {
        fprintf(out, "%016" PRIx64 "%016" PRIx64, h.hi, h.lo);
    } else {
        fputs(st == EBB_ERR_INVALID ? "none: the trace has a gap" : ebb_status_text(st), out);
    }
}

/* ---- show and export -------------------------------------------------------------------------- */

static void show_line(FILE *out, ebb__story *s, const ebb__line *line, bool first) {
    (void)first;
    if (line == NULL) return;
    ebb__line_print(out, line);
    ebb__story_take(s, line);
    if (line->event.what != 0) fprintf(out, "  %s", ebb__story_string(s, line->event.what));
    if (line->event.site != 0) fprintf(out, "  at %s", ebb__story_string(s, line->event.site));
    fputc('\n', out);
}

/* The whole file was read. */
static int complete(const ebb__cli_file *f, const ebb__story *story) {
    if (!story->no_memory) return EBB__EXIT_OK;
    ebb__cli_error("%s: no memory for all names, tasks and regions: what was written lacks some", f->path);
    return EBB__EXIT_USAGE;
}

static int each_line(const ebb__cli_file *f, ebb_trace_reader *r, FILE *out, ebb__export_fn *fn,
                     ebb__story *story, bool progress) {
    ebb__progress p = ebb__progress_begin(f->path, progress);
    ebb__line line;
    ebb_status st;
    uint64_t events = 0;
    fn(out, story, NULL, true);
    while ((st = ebb__line_next(r, &line)) == EBB_OK) {
        fn(out, story, &line, false);
        events++;
        ebb__progress_step(&p, r->offset, r->n);
    }
    fn(out, story, NULL, false);
    ebb__progress_end(&p);
    if (st == EBB_PENDING) return complete(f, story);
    report_damage(f, r, st, r->seq - 1);
    return EBB__EXIT_BAD;
}

/* The lines of a file, with a story of its own. */
static int each_of(const ebb__cli_file *f, FILE *out, ebb__export_fn *fn, ebb__story *story, bool progress) {
    ebb_trace_reader r;
    int code = open_trace(f, &r);
    if (code != EBB__EXIT_OK) return code;
    bool first_file = story->first_file, last_file = story->last_file;
    const ebb__map *stamps = story->stamps;
    const uint32_t before = story->process;
    ebb__story_begin(story, r.runtime_id, ebb__cli_allocator());
    story->process += before;
    story->first_file = first_file;
    story->last_file = last_file;
    story->stamps = stamps;
    code = each_line(f, &r, out, fn, story, progress);
    ebb__story_end(story);
    return code;
}

static int run_show(const request *q, const ebb__cli_file *f) {
    ebb__story story = {.runtime_id = 0};
    return each_of(&f[0], stdout, show_line, &story, q->progress);
}

/* The stamps of the messages that came, in all files. */
static void collect_stamps(const ebb__cli_file *f, ebb__map *stamps) {
    ebb_trace_reader r;
    ebb_event ev;
    if (ebb_trace_reader_open(&r, f->bytes, f->n) != EBB_OK) return;
    while (ebb_trace_reader_next(&r, &ev) == EBB_OK) {
        if (ev.type == EBB_EV_RECEIVED && ev.other >> 56 != 0) (void)ebb__map_put(stamps, ev.other);
    }
}

/* What keeps the tracks of two processes apart whose runtimes have the same number. */
static uint32_t others_before(const ebb__cli_file *f, size_t i) {
    enum { AT_RUNTIME = 12, EACH = 256 };
    uint32_t n = 0;
    for (size_t k = 0; k < i; k++) n += f[k].bytes[AT_RUNTIME] == f[i].bytes[AT_RUNTIME];
    return n * EACH;
}

static int export_all(const request *q, const ebb__cli_file *f, FILE *out, ebb__export_fn *fn) {
    ebb__map stamps;
    int code = EBB__EXIT_OK;
    ebb__map_init(&stamps, ebb__cli_allocator(), sizeof(uint64_t));
    for (size_t i = 0; i < q->n_files; i++) collect_stamps(&f[i], &stamps);
    for (size_t i = 0; code == EBB__EXIT_OK && i < q->n_files; i++) {
        ebb__story story = {.first_file = i == 0,
                            .last_file = i + 1 == q->n_files,
                            .process = others_before(f, i),
                            .stamps = &stamps};
        code = each_of(&f[i], out, fn, &story, q->progress);
    }
    ebb__map_free(&stamps);
    return code;
}

static int run_export(const request *q, const ebb__cli_file *f) {
    ebb__export_fn *fn = q->format == NULL ? NULL : ebb__export_format(q->format);
    if (fn == NULL) {
        ebb__cli_error("export needs --format jsonl or --format chrome");
        return EBB__EXIT_USAGE;
    }
    ebb_trace_reader r;
    for (size_t i = 0; i < q->n_files; i++) {
        int code = open_trace(&f[i], &r);
        if (code != EBB__EXIT_OK) return code;
    }
    FILE *out = q->out == NULL ? stdout : fopen(q->out, "wb");
    if (out == NULL) {
        ebb__cli_error("can't write %s: %s", q->out, strerror(errno));
        return EBB__EXIT_USAGE;
    }
    int code = export_all(q, f, out, fn);
    if (q->out == NULL) return code;
    bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed) return code;
    ebb__cli_error("can't write %s: %s", q->out, strerror(errno));
    return EBB__EXIT_USAGE;
}

/* ---- summary ---------------------------------------------------------------------------------- */

static int sum_up(const request *q, const ebb__cli_file *f, ebb__summary *m) {
    ebb_trace_reader r;
    ebb__line line;
    ebb__story story;
    int code = open_trace(f, &r);
    if (code != EBB__EXIT_OK) return code;
    ebb__progress p = ebb__progress_begin(f->path, q->progress);
    ebb_status st;
    ebb__story_begin(&story, r.runtime_id, ebb__cli_allocator());
    while ((st = ebb__line_next(&r, &line)) == EBB_OK) {
        ebb__summary_take(m, &story, &line);
        ebb__progress_step(&p, r.offset, r.n);
    }
    ebb__summary_file(m, &story);
    ebb__story_end(&story);
    ebb__progress_end(&p);
    if (st == EBB_PENDING) return complete(f, &story);
    report_damage(f, &r, st, r.seq - 1);
    return EBB__EXIT_BAD;
}

static int run_summary(const request *q, const ebb__cli_file *f) {
    ebb__summary *m = ebb__summary_new();
    int code = m == NULL ? EBB__EXIT_USAGE : EBB__EXIT_OK;
    if (m == NULL) ebb__cli_error("no memory");
    for (size_t i = 0; code != EBB__EXIT_USAGE && i < q->n_files; i++) {
        int one = sum_up(q, &f[i], m);
        if (one != EBB__EXIT_OK) code = one;
    }
    if (code != EBB__EXIT_USAGE) ebb__summary_print(stdout, m, q->json);
    ebb__summary_free(m);
    return code;
}

/* ---- verify ----------------------------------------------------------------------------------- */

static void report_violation(const ebb__cli_file *f, const ebb_violation *v) {
    if (v->event.type == 0) {
        ebb__cli_error("%s: %s: at the end: %s", f->path, ebb_oracle_name(v->oracle), v->text);
        return;
    }
    ebb__cli_error("%s: %s: event %" PRIu64 ", offset %zu: %s", f->path, ebb_oracle_name(v->oracle),
                   v->event.decision_seq, v->event.offset, v->text);
    ebb__line line = {.event = v->event};
    memcpy(line.text, v->event.text, sizeof v->event.text);
    ebb__line_print(stderr, &line);
    fputc('\n', stderr);
}

/* Reads the whole trace; `c` is NULL without --strict. Returns the status that ended the reading. */
static ebb_status verify_events(ebb_trace_reader *r, ebb_checker *c, ebb_fingerprint *h, bool progress,
                                uint64_t *events) {
    ebb__progress p = ebb__progress_begin("verifying", progress);
    ebb_event ev;
    ebb_status st;
    while ((st = ebb_trace_reader_next(r, &ev)) == EBB_OK) {
        ++*events;
        ebb_fingerprint_event(h, &ev);
        if (c != NULL && (st = ebb_checker_event(c, &ev)) != EBB_OK) break;
        ebb__progress_step(&p, r->offset, r->n);
    }
    ebb__progress_end(&p);
    return st;
}

static int verify_one(const request *q, const ebb__cli_file *f) {
    ebb_trace_reader r;
    int code = open_trace(&f[0], &r);
    if (code != EBB__EXIT_OK) return code;
    bool strict = q->strict || q->quiescent;
    ebb_checker *c = strict ? ebb_checker_new(ebb__cli_allocator()) : NULL;
    ebb_fingerprint *h = ebb_fingerprint_new(ebb__cli_allocator());
    uint64_t events = 0;
    ebb_status st = EBB_ERR_NOMEM;
    if (h != NULL && (c != NULL || !strict)) st = verify_events(&r, c, h, q->progress, &events);
    if (st == EBB_PENDING && c != NULL) {
        ebb_status end = ebb_checker_end(c, q->quiescent);
        if (end != EBB_OK) st = end;
    }
    code = st == EBB_PENDING ? EBB__EXIT_OK : st == EBB_ERR_NOMEM ? EBB__EXIT_USAGE : EBB__EXIT_BAD;
    if (st == EBB_PENDING) {
        ebb_hash hash;
        ebb_status got = ebb_fingerprint_end(h, &hash);
        printf("%" PRIu64 " events, fingerprint ", events);
        print_hash(stdout, got, hash);
        fputs(strict ? ", ok, every rule holds\n" : ", ok\n", stdout);
    } else if (st == EBB_ERR_ORACLE) {
        report_violation(&f[0], ebb_checker_violation(c));
    } else if (st == EBB_ERR_NOMEM) {
        ebb__cli_error("%s: %s", f[0].path, ebb_status_text(st));
    } else {
        report_damage(&f[0], &r, st, events);
    }
    ebb_fingerprint_free(h);
    ebb_checker_free(c);
    return code;
}

static int run_verify(const request *q, const ebb__cli_file *f) {
    int code = EBB__EXIT_OK;
    for (size_t i = 0; code == EBB__EXIT_OK && i < q->n_files; i++) {
        if (q->n_files > 1) printf("%s: ", f[i].path);
        fflush(stdout);
        code = verify_one(q, &f[i]);
    }
    bool strict = q->strict || q->quiescent;
    if (code != EBB__EXIT_OK || q->n_files == 1 || !strict) return code;
    if (!ebb__verify_together(f, q->n_files)) return EBB__EXIT_BAD;
    printf("%zu runtimes, ok, every rule between them holds\n", q->n_files);
    return EBB__EXIT_OK;
}

/* ---- diff ------------------------------------------------------------------------------------- */

enum { CONTEXT = 3 };

static bool same_line(const ebb__line *a, const ebb__line *b) {
    const ebb_event *x = &a->event, *y = &b->event;
    return x->type == y->type && x->decision_seq == y->decision_seq && x->host_turn_id == y->host_turn_id &&
           x->microtask_batch_id == y->microtask_batch_id && x->time == y->time && x->task_id == y->task_id &&
           x->region_id == y->region_id && x->other == y->other && x->value == y->value &&
           x->phase == y->phase && x->cancel_kind == y->cancel_kind && x->cancel_epoch == y->cancel_epoch &&
           x->severity == y->severity && strcmp(a->text, b->text) == 0;
}

static ebb_status print_fingerprint(const ebb__cli_file *f, ebb_hash *hash) {
    ebb_trace_reader r;
    ebb_event ev;
    ebb_status st = EBB_ERR_NOMEM;
    ebb_fingerprint *h = ebb_fingerprint_new(ebb__cli_allocator());
    if (h != NULL && ebb_trace_reader_open(&r, f->bytes, f->n) == EBB_OK) {
        while (ebb_trace_reader_next(&r, &ev) == EBB_OK) ebb_fingerprint_event(h, &ev);
        st = ebb_fingerprint_end(h, hash);
    }
    ebb_fingerprint_free(h);
    printf("fingerprint ");
    print_hash(stdout, st, *hash);
    printf("  %s\n", f->path);
    return st;
}

/* Prints the lines from `r` on: `before` common lines, then the first that differs. */
static void print_side(const ebb__cli_file *f, ebb_trace_reader r, size_t before) {
    printf("%s:\n", f->path);
    for (size_t i = 0; i <= before + CONTEXT; i++) {
        ebb__line line;
        ebb_status st = ebb__line_next(&r, &line);
        fputs(i == before ? "> " : "  ", stdout);
        if (st != EBB_OK) {
            printf("%s\n", st == EBB_PENDING ? "(the end)" : ebb_status_text(st));
            return;
        }
        ebb__line_print(stdout, &line);
        putchar('\n');
    }
}

static int run_diff(const request *q, const ebb__cli_file *f) {
    ebb_trace_reader r[2], recent[2][CONTEXT + 1]; /* where the last lines began, by line number */
    for (int i = 0; i < 2; i++) {
        int code = open_trace(&f[i], &r[i]);
        if (code != EBB__EXIT_OK) return code;
    }
    ebb__progress p = ebb__progress_begin("comparing", q->progress);
    ebb_status st[2];
    ebb__line line[2];
    size_t n = 0;
    for (;; n++) {
        for (int i = 0; i < 2; i++) {
            recent[i][n % (CONTEXT + 1)] = r[i];
            st[i] = ebb__line_next(&r[i], &line[i]);
        }
        if (st[0] != EBB_OK || st[1] != EBB_OK || !same_line(&line[0], &line[1])) break;
        ebb__progress_step(&p, r[0].offset, r[0].n);
    }
    ebb__progress_end(&p);
    ebb_hash hash[2] = {{0, 0}, {0, 0}};
    bool same = st[0] == EBB_PENDING && st[1] == EBB_PENDING;
    size_t before = n < CONTEXT ? n : CONTEXT;
    if (!same) {
        const ebb__line *first = &line[st[0] == EBB_OK ? 0 : 1];
        if (st[0] != EBB_OK && st[1] != EBB_OK) printf("the first difference comes after the last event\n");
        else printf("event %" PRIu64 " differs\n", first->event.decision_seq);
    }
    for (int i = 0; i < 2; i++) {
        if (!same) print_side(&f[i], recent[i][(n - before) % (CONTEXT + 1)], before);
    }
    ebb_status got = print_fingerprint(&f[0], &hash[0]);
    bool agree = print_fingerprint(&f[1], &hash[1]) == EBB_OK && got == EBB_OK && hash[0].hi == hash[1].hi &&
                 hash[0].lo == hash[1].lo;
    if (same) {
        puts("the traces are the same");
    } else {
        puts(agree ? "the runs differ only in the order of independent steps, or in what the host decides"
                   : "the runs differ in what they did");
    }
    return same ? EBB__EXIT_OK : EBB__EXIT_BAD;
}

/* ---- dispatch --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t files, most;
    int (*run)(const request *q, const ebb__cli_file *f);
} verbs[] = {
    {"show", 1, 1, run_show},
    {"verify", 1, FILES_MOST, run_verify},
    {"diff", 2, 2, run_diff},
    {"export", 1, FILES_MOST, run_export},
    {"summary", 1, FILES_MOST, run_summary},
};

static int run_verb(size_t verb, const request *q) {
    assert(q->n_files > 0);
    ebb__cli_file *files = calloc(q->n_files, sizeof *files);
    int code = EBB__EXIT_USAGE;
    bool ok = files != NULL;
    for (size_t i = 0; ok && i < q->n_files; i++) ok = ebb__cli_read(q->files[i], &files[i]);
    if (ok) code = verbs[verb].run(q, files);
    for (size_t i = 0; files != NULL && i < q->n_files; i++) free(files[i].bytes);
    free(files);
    return code;
}

int ebb__cmd_trace(int argc, char **argv) {
    request q = {.n_files = 0};
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return ebb__help_show(&ebb__help_trace);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(name, verbs[i].name) != 0) continue;
        if (!parse(&q, argc - 2, argv + 2)) return EBB__EXIT_USAGE;
        if (q.help) return ebb__help_show(&ebb__help_trace);
        if (q.n_files >= verbs[i].files && q.n_files <= verbs[i].most) return run_verb(i, &q);
        ebb__cli_error("trace %s takes %zu file%s, not %zu", name, verbs[i].files,
                       verbs[i].files == 1 ? "" : "s", q.n_files);
        return EBB__EXIT_USAGE;
    }
    if (argc > 1)
        ebb__cli_error("unknown trace command '%s': expected show, verify, diff, export or summary", name);
    return ebb__help_refuse(&ebb__help_trace);
}
