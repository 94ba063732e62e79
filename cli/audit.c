/* cli/audit.c - `ebb audit show | verify`. */
#include "cli/cli.h"
#include "cli/help.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "workflow/audit_read.h"

const ebb__help ebb__help_audit = {
    .name = "audit",
    .what = "show and verify audit logs of workflows",
    .text = "Reads the audit log of a service's workflows.\n\n"
            "The rules that `verify` checks:\n\n"
            "  three-phase     every workflow goes through request, drain and\n"
            "                  finalize, in order\n"
            "  no-new-work     after the request nothing is added to what is in flight\n"
            "  drain-bounded   no drain is longer than its budget without CAN-004\n"
            "  finalize-clean  CAN-005 only without leaks; CAN-006 only if each leak\n"
            "                  is named\n"
            "  idempotent      a second request is absorbed and weakens nothing\n"
            "  audit-complete  no line is missing, edited or swapped, and none is\n"
            "                  malformed",
    .forms =
        (const ebb__help_form[]){{"show", "FILE",
                                  "One line each: number, time, workflow, event, code, from -> to, "
                                  "elapsed/budget, epoch, what is in flight, reason, evidence."},
                                 {"verify", "FILE",
                                  "Checks the hashes, and that every workflow kept the protocol, from the "
                                  "file alone. What is wrong is printed as FILE:LINE: the broken rule: what "
                                  "was expected and what was found."},
                                 {0}},
    .exits = (const ebb__help_row[]){{"0", "the log can be read, and it keeps every rule"},
                                     {"1", "a line can't be read, or a rule is broken"},
                                     {"2", "wrong arguments, or a file that can't be read"},
                                     {0}},
    .examples = (const ebb__help_row[]){{"ebb audit verify .ebb/audit.jsonl",
                                         "Proves that each stop of the daemon went by the protocol."},
                                        {0}},
};

/* ---- printing ------------------------------------------------------------------------------------- */

/* Text from a log must not control the reader's terminal. So bytes below a space are escaped, and C1 controls, which
 * UTF-8 encodes as C2 80 to C2 9F. */
static void print_text(FILE *out, const char *text) {
    for (const unsigned char *s = (const unsigned char *)text; *s != 0; s++) {
        bool c1 = *s == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0;
        if (c1) fprintf(out, "\\u%04x", *++s);
        else if (*s < 0x20 || *s == 0x7f) fprintf(out, "\\u%04x", *s);
        else fputc(*s, out);
    }
}

static void print_ms(FILE *out, uint64_t ns) {
    fprintf(out, "%" PRIu64 ".%03u", ns / EBB_MS, (unsigned)(ns % EBB_MS / EBB_US));
}

static void print_reasons(FILE *out, const ebb__audit_line *line) {
    ebb_reason r;
    for (size_t i = 0; ebb__audit_reason(line, i, &r); i++) {
        fprintf(out, "%s%s", i == 0 ? "  " : " < ", ebb_cancel_kind_name((ebb_cancel_kind)r.kind));
        if (r.message[0] == 0) continue;
        fputs(": ", out);
        print_text(out, r.message);
    }
}

static void print_evidence(FILE *out, const ebb__audit_line *line) {
    const char *key;
    json_t *fact;
    json_object_foreach(line->evidence, key, fact) {
        fputs("  ", out);
        print_text(out, key);
        fputc('=', out);
        if (json_is_integer(fact)) fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(fact));
        else print_text(out, json_string_value(fact));
    }
    if (line->lost > 0) fprintf(out, "  lost=%" PRIu64, line->lost);
}

static void print_title(FILE *out, const char *type, uint64_t number, const char *name) {
    print_text(out, type);
    fprintf(out, "#%" PRIu64 "%s", number, name[0] == 0 ? "" : " ");
    print_text(out, name);
}

static void print_workflow(FILE *out, const ebb__audit_line *line) {
    const char *from = ebb_workflow_state_name(line->from), *to = ebb_workflow_state_name(line->to);
    if (line->from == line->to) fprintf(out, "  %s  ", to);
    else fprintf(out, "  %s -> %s  ", from, to);
    print_ms(out, line->elapsed);
    fputc('/', out);
    print_ms(out, line->budget);
    fprintf(out, " ms  epoch %" PRIu64 "  in flight %" PRIu64, line->epoch, line->in_flight);
    if (line->inside > 0) fprintf(out, "  begun inside %" PRIu64, line->inside);
    if (line->refused > 0) fprintf(out, "  refused %" PRIu64, line->refused);
    print_reasons(out, line);
}

static void print_line(FILE *out, const ebb__audit_line *line) {
    fprintf(out, "%6" PRIu64 "  %s  ", line->seq, line->at);
    if (line->number != 0) {
        print_title(out, line->type, line->number, line->name);
        fputs("  ", out);
    }
    fputs(ebb__wf_events[line->event].name, out);
    if (line->code != NULL) {
        fputc(' ', out);
        print_text(out, line->code);
    }
    if (line->number != 0) print_workflow(out, line);
    print_evidence(out, line);
    fputc('\n', out);
}

/* ---- lines ---------------------------------------------------------------------------------------- */

/* The part of a file that was not read yet. */
typedef struct rest {
    const char *at;
    size_t n;
    uint64_t line; /* number of the last line that was read */
} rest;

/* The next complete line, without its newline. False: there is none. */
static bool next_line(rest *r, const char **line, size_t *n) {
    const char *stop = r->n == 0 ? NULL : memchr(r->at, '\n', r->n);
    if (stop == NULL) return false;
    *line = r->at;
    *n = (size_t)(stop - r->at);
    r->at = stop + 1;
    r->n -= *n + 1;
    r->line++;
    return true;
}

static rest all_of(const ebb__cli_file *f) {
    return (rest){(const char *)f->bytes, f->n, 0};
}

static int no_memory(const ebb__cli_file *f) {
    ebb__cli_error("%s: %s", f->path, ebb_status_text(EBB_ERR_NOMEM));
    return EBB__EXIT_USAGE;
}

/* ---- show ----------------------------------------------------------------------------------------- */

static int run_show(const ebb__cli_file *f) {
    rest r = all_of(f);
    const char *bytes;
    size_t n;
    int code = EBB__EXIT_OK;
    while (next_line(&r, &bytes, &n)) {
        char why[EBB__AUDIT_WHY];
        ebb__audit_line line;
        ebb_status st = ebb__audit_line_read(bytes, n, &line, why);
        if (st == EBB_ERR_NOMEM) return no_memory(f);
        if (st == EBB_OK) {
            print_line(stdout, &line);
            ebb__audit_line_free(&line);
            continue;
        }
        fprintf(stderr, "%s:%" PRIu64 ": ", f->path, r.line);
        print_text(stderr, why);
        fputc('\n', stderr);
        code = EBB__EXIT_BAD;
    }
    if (r.n > 0)
        fprintf(stderr, "%s: the last line is incomplete: %zu bytes without a newline\n", f->path, r.n);
    return code;
}

/* ---- verify --------------------------------------------------------------------------------------- */

/* Prints the line that breaks a rule, if it can be read at all. */
static void print_nth(const ebb__cli_file *f, uint64_t nth) {
    rest r = all_of(f);
    const char *bytes;
    size_t n;
    char why[EBB__AUDIT_WHY];
    ebb__audit_line line;
    while (next_line(&r, &bytes, &n)) {
        if (r.line < nth) continue;
        if (ebb__audit_line_read(bytes, n, &line, why) != EBB_OK) return;
        print_line(stderr, &line);
        ebb__audit_line_free(&line);
        return;
    }
}

/* The last line of each open workflow of a log that is in order: there `id` counts them. An end removes the entry. */
typedef struct last_line {
    const char *bytes;
    size_t n;
} last_line;

static bool note_line(last_line *last, const char *bytes, size_t n) {
    char why[EBB__AUDIT_WHY];
    ebb__audit_line line;
    if (ebb__audit_line_read(bytes, n, &line, why) != EBB_OK) return false;
    if (line.number != 0 && (line.event == EBB__WE_OPENED || last[line.number].bytes != NULL))
        last[line.number] = ebb__audit_is_end(line.event) ? (last_line){NULL, 0} : (last_line){bytes, n};
    ebb__audit_line_free(&line);
    return true;
}

static bool print_last(last_line last) {
    char why[EBB__AUDIT_WHY];
    ebb__audit_line line;
    if (last.bytes == NULL) return true;
    if (ebb__audit_line_read(last.bytes, last.n, &line, why) != EBB_OK) return false;
    fputs("  unfinished: ", stdout);
    print_title(stdout, line.type, line.number, line.name);
    printf(" is %s at line %" PRIu64 "\n", ebb_workflow_state_name(line.to), line.seq);
    ebb__audit_line_free(&line);
    return true;
}

static bool print_unfinished(const ebb__cli_file *f, uint64_t lines) {
    last_line *last = calloc((size_t)lines + 1, sizeof *last); /* a workflow has at least one line */
    rest r = all_of(f);
    const char *bytes;
    size_t n;
    bool ok = last != NULL;
    while (ok && next_line(&r, &bytes, &n)) ok = note_line(last, bytes, n);
    for (size_t i = 1; ok && i <= lines; i++) ok = print_last(last[i]);
    free(last);
    return ok;
}

static int run_verify(const ebb__cli_file *f) {
    ebb_audit_verdict v;
    ebb_status st = ebb_audit_verify(ebb__cli_allocator(), (const char *)f->bytes, f->n, &v);
    if (st == EBB_ERR_NOMEM) return no_memory(f);
    if (st != EBB_OK) {
        fprintf(stderr, "%s:%" PRIu64 ": %s: %s\n", f->path, v.line, v.invariant, v.text);
        print_nth(f, v.line);
        return EBB__EXIT_BAD;
    }
    if (v.lines == 0) {
        printf("%s: no lines%s\n", f->path, v.cut ? ", only an incomplete one" : "");
        return 0;
    }
    printf("%s: %" PRIu64 " lines, %" PRIu64 " of %" PRIu64 " workflows stopped, %" PRIu64
           " unfinished: the log keeps the protocol\n",
           f->path, v.lines, v.stopped, v.workflows, v.unfinished);
    if (v.unfinished > 0 && !print_unfinished(f, v.lines)) return no_memory(f);
    if (v.cut) puts("  the last line is incomplete: a process ended during its write");
    return EBB__EXIT_OK;
}

/* ---- dispatch ------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(const ebb__cli_file *f);
} verbs[] = {
    {"show", run_show},
    {"verify", run_verify},
};

static int run_verb(size_t verb, int argc, char **argv) {
    ebb__cli_file f;
    for (int i = 0; i < argc; i++) {
        if (argv[i][0] != '-' || argv[i][1] == 0) continue;
        ebb__cli_error("unknown option '%s'", argv[i]);
        return EBB__EXIT_USAGE;
    }
    if (argc != 1) {
        ebb__cli_error("audit %s takes 1 file, not %d", verbs[verb].name, argc);
        return EBB__EXIT_USAGE;
    }
    if (!ebb__cli_read(argv[0], &f)) return EBB__EXIT_USAGE;
    int code = verbs[verb].run(&f);
    free(f.bytes);
    return code;
}

int ebb__cmd_audit(int argc, char **argv) {
    if (ebb__help_wanted(argc, argv) || (argc > 1 && strcmp(argv[1], "help") == 0))
        return ebb__help_show(&ebb__help_audit);
    for (size_t i = 0; argc > 1 && i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(argv[1], verbs[i].name) == 0) return run_verb(i, argc - 2, argv + 2);
    }
    if (argc > 1) ebb__cli_error("unknown audit command '%s': expected show or verify", argv[1]);
    return ebb__help_refuse(&ebb__help_audit);
}
