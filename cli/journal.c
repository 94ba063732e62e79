/* cli/journal.c - `ebb journal show | replay`. */
#include "cli/cli.h"
#include "cli/help.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <ebb/lab.h>

#include "serve/line.h"
#include "trace/journal.h"

const ebb__help ebb__help_journal = {
    .name = "journal",
    .what = "show and replay journals",
    .text = "A journal has every input of a runtime; a replay drives a new runtime with them.",
    .forms =
        (const ebb__help_form[]){
            {"show", "FILE", "One line an operation: number, name, requester, arguments and result."},
            {"replay", "FILE", "Repeats all operations; the tasks are replayed without their code."},
            {0}},
    .options = (const ebb__help_option[]){{"--trace", "FILE", "replay", 0, "Writes the trace of the replay."},
                                          {"--compare", "FILE", "replay", 0,
                                           "Compares its events with those of this trace."},
                                          {0}},
    .exits = (const ebb__help_row[]){{"0", "success"},
                                     {"1", "the replay diverged, the trace differs or the file is damaged"},
                                     {"2", "wrong arguments or files"},
                                     {0}},
};

typedef struct request {
    const char *file, *trace, *compare;
    bool help;
} request;

static bool parse(request *q, int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i], **value = NULL;
        if (strcmp(arg, "--trace") == 0) value = &q->trace;
        if (strcmp(arg, "--compare") == 0) value = &q->compare;
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            q->help = true;
        } else if (value != NULL) {
            if (++i == argc) {
                ebb__cli_error("%s needs a value", arg);
                return false;
            }
            *value = argv[i];
        } else if (arg[0] == '-' && arg[1] != 0) {
            ebb__cli_error("unknown option '%s'", arg);
            return false;
        } else if (q->file != NULL) {
            ebb__cli_error("unexpected argument '%s'", arg);
            return false;
        } else {
            q->file = arg;
        }
    }
    return true;
}

/* ---- show --------------------------------------------------------------------------------------- */

static void print_id(const char *name, uint64_t id) {
    if (id == 0) return;
    printf("  %s ", name);
    if ((uint32_t)id == 0) fputs(ebb_status_name(ebb_id_status(id)), stdout);
    else ebb__print_id(stdout, id);
}

/* The requester, where it is not obvious: outside of calls it is the host, inside the task that is polled. */
static void print_requester(const ebb__journal_op *op, uint32_t depth) {
    if (op->asker != 0) print_id("by", op->asker);
    else if (op->rec.phase != 0 && depth > 0) fputs("  by the host", stdout);
}

static const char *value_name(uint8_t type) {
    switch (type) {
    case J_START: return "used";
    case J_LIMITS: return "tasks";
    case J_CLEANUP:
    case J_PUMP: return "polls";
    case J_OPEN:
    case J_SPAWN: return "flags";
    case J_RESERVE: return "hook";
    case J_RECEIVE: return "verb";
    case J_CHOICE: return "took";
    case J_CHAIN: return "room";
    default: return "number";
    }
}

static const char *number_name(uint8_t type) {
    switch (type) {
    case J_LIMITS: return "tick";
    case J_RECEIVE: return "word";
    case J_CHOICE: return "of";
    case J_ALARM:
    case J_RELEASE: return "due";
    case J_NOTE: return "other";
    default: return "now";
    }
}

static void print_fields(const ebb_record *r) {
    uint32_t fields = ebb__op_fields(r->type);
    if (fields & EBB__OP_TASK) print_id("task", r->task);
    if (fields & EBB__OP_REGION) print_id("region", r->region);
    if (fields & EBB__OP_TURN) printf("  turn %" PRIu64 "/%" PRIu64, r->task, r->region);
    if (fields & EBB__OP_DUE) printf("  due %" PRIu64, r->region);
    if (fields & EBB__OP_KIND) printf("  %s", ebb_cancel_kind_name((ebb_cancel_kind)r->kind));
    if (fields & EBB__OP_VALUE) printf("  %s %" PRIu32, value_name(r->type), r->value);
    if (fields & EBB__OP_NUMBER) printf("  %s %" PRIu64, number_name(r->type), r->other);
    if (fields & EBB__OP_OTHER) print_id("->", r->other);
    if (fields & EBB__OP_RESULT) printf("  %s", ebb_status_name((ebb_status)(int32_t)r->value));
    if (r->type == J_CALL) {
        printf("  %s", ebb__call_name(r->value));
        if (r->value == EBB__CALL_WAIT) printf("  number %" PRIu64, r->other);
        else print_id("of", r->other);
    }
    if (r->type == J_LIMITS) {
        printf("  regions %" PRIu64 "  chain %" PRIu64 "/%" PRIu64, r->region, r->task >> 32,
               r->task & UINT32_MAX);
    }
    if (r->type == J_CLEANUP) printf("  severity %u  time %" PRIu64, r->kind, r->task);
}

/* Operations inside a call are indented. */
static void print_op(const ebb__journal_op *op, uint32_t depth) {
    printf("%8" PRIu64 "  %*s%s", op->number, (int)(depth < 20 ? depth * 2 : 40), "",
           ebb__op_name(op->rec.type));
    print_requester(op, depth);
    print_fields(&op->rec);
    if (op->args.type != 0) {
        printf("  deadline %" PRIu64 " polls %" PRIu32 " priority %u", op->args.task, op->args.value,
               op->args.kind);
    }
    if (op->text != NULL) {
        fputs("  ", stdout);
        ebb__print_json_string(stdout, op->text);
    }
    fputc('\n', stdout);
}

static int show(const request *q, const ebb__cli_file *f) {
    (void)q;
    ebb__journal_reader j;
    ebb__journal_op op;
    uint32_t depth = 0;
    ebb_status st = ebb__journal_open(&j, ebb__cli_allocator(), f->bytes, f->n);
    while (st == EBB_OK && (st = ebb__journal_next(&j, &op)) == EBB_OK) {
        if (op.rec.type == J_RETURN && depth > 0) depth--;
        print_op(&op, depth);
        if (op.rec.type == J_CALL) depth++;
    }
    if (st == EBB_ERR_NOMEM) {
        ebb__cli_error("%s: %s", f->path, ebb_status_text(st));
    } else if (st != EBB_PENDING) {
        ebb__cli_error("%s: offset %zu: %s: expected %s; %" PRIu64 " operations before it can be read",
                       f->path, j.in.error_offset, ebb_status_text(st), j.in.error, j.operations);
    }
    ebb__journal_close(&j);
    return st == EBB_PENDING ? EBB__EXIT_OK : EBB__EXIT_BAD;
}

/* ---- replay ------------------------------------------------------------------------------------- */

typedef struct buffer {
    uint8_t *bytes;
    size_t n, room;
    bool failed;
} buffer;

static void append(void *ctx, const void *bytes, size_t n) {
    buffer *b = ctx;
    if (b->failed) return;
    if (b->room - b->n < n) {
        size_t room = (b->n + n) * 2;
        uint8_t *bigger = realloc(b->bytes, room);
        if (bigger == NULL) {
            b->failed = true;
            return;
        }
        b->bytes = bigger;
        b->room = room;
    }
    memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
}

static bool write_file(const char *path, const buffer *b) {
    FILE *out = fopen(path, "wb");
    bool ok = out != NULL && (b->n == 0 || fwrite(b->bytes, 1, b->n, out) == b->n);
    if (out != NULL) ok &= fclose(out) == 0;
    if (!ok) ebb__cli_error("can't write %s: %s", path, strerror(errno));
    return ok;
}

static bool same_event(const ebb_event *a, const ebb_event *b) {
    ebb_record x = ebb_event_record(a), y = ebb_event_record(b);
    return memcmp(&x, &y, sizeof x) == 0 && a->decision_seq == b->decision_seq && a->time == b->time &&
           a->host_turn_id == b->host_turn_id && a->microtask_batch_id == b->microtask_batch_id;
}

static void print_side(const char *whose, ebb_status st, const ebb_event *ev) {
    fprintf(stderr, "  %s ", whose);
    if (st == EBB_OK) {
        ebb__line line = {.event = *ev};
        memcpy(line.text, ev->text, sizeof ev->text);
        ebb__line_print(stderr, &line);
    } else {
        fputs(st == EBB_PENDING ? "(the end)" : ebb_status_text(st), stderr);
    }
    fputc('\n', stderr);
}

/* Compares events, not bytes: a host that flushed in the middle has other block boundaries. */
static int compare(const buffer *replayed, const ebb__cli_file *recorded) {
    ebb_trace_reader r[2];
    ebb_event ev[2];
    ebb_status st[2];
    st[0] = ebb_trace_reader_open(&r[0], recorded->bytes, recorded->n);
    st[1] = ebb_trace_reader_open(&r[1], replayed->bytes, replayed->n);
    if (st[0] != EBB_OK || st[1] != EBB_OK || r[0].journal) {
        ebb__cli_error("%s is not a trace", recorded->path);
        return EBB__EXIT_USAGE;
    }
    do {
        for (int i = 0; i < 2; i++) st[i] = ebb_trace_reader_next(&r[i], &ev[i]);
    } while (st[0] == EBB_OK && st[1] == EBB_OK && same_event(&ev[0], &ev[1]));
    if (st[0] == EBB_PENDING && st[1] == EBB_PENDING) {
        bool bytes = recorded->n == replayed->n && memcmp(recorded->bytes, replayed->bytes, replayed->n) == 0;
        printf("the trace is the same as %s, %s\n", recorded->path,
               bytes ? "byte for byte" : "event for event; the block boundaries differ");
        return EBB__EXIT_OK;
    }
    ebb__cli_error("the trace differs from %s", recorded->path);
    print_side("recorded", st[0], &ev[0]);
    print_side("replayed", st[1], &ev[1]);
    return EBB__EXIT_BAD;
}

static int replay(const request *q, const ebb__cli_file *f) {
    buffer trace = {NULL, 0, 0, false};
    ebb__cli_file recorded = {.path = q->compare};
    ebb_journal_replay_result result;
    if (q->compare != NULL && !ebb__cli_read(q->compare, &recorded)) return EBB__EXIT_USAGE;
    bool wanted = q->trace != NULL || q->compare != NULL;
    ebb_status st =
        ebb_journal_replay(ebb__cli_allocator(), f->bytes, f->n, wanted ? append : NULL, &trace, &result);
    int code = EBB__EXIT_OK;
    if (trace.failed) st = EBB_ERR_NOMEM;
    if (q->trace != NULL && !write_file(q->trace, &trace)) code = EBB__EXIT_USAGE;
    if (st != EBB_OK) {
        ebb__cli_error("%s: %s: %s", f->path, ebb_status_name(st),
                       trace.failed ? ebb_status_text(st) : result.message);
        code = EBB__EXIT_BAD;
    } else {
        printf("%" PRIu64 " operations replayed\n", result.operations);
        if (q->compare != NULL && code == EBB__EXIT_OK) code = compare(&trace, &recorded);
    }
    free(trace.bytes);
    free(recorded.bytes);
    return code;
}

/* ---- dispatch ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(const request *q, const ebb__cli_file *f);
} verbs[] = {{"show", show}, {"replay", replay}};

/* Whether the file is a journal, complete or damaged. */
static bool is_journal(const ebb__cli_file *f) {
    ebb_trace_reader r;
    ebb_status st = ebb_trace_reader_open(&r, f->bytes, f->n);
    if (st == EBB_OK && !r.journal) ebb__cli_error("%s is a trace, not a journal", f->path);
    else if (ebb__cli_is_other_kind(st, &r))
        ebb__cli_error("%s is not a journal: expected %s", f->path, r.error);
    else return true;
    return false;
}

static int run_verb(size_t verb, int argc, char **argv) {
    request q = {.file = NULL};
    if (!parse(&q, argc, argv)) return EBB__EXIT_USAGE;
    if (q.help) return ebb__help_show(&ebb__help_journal);
    if (q.file == NULL) {
        ebb__cli_error("journal %s takes a file", verbs[verb].name);
        return EBB__EXIT_USAGE;
    }
    ebb__cli_file f;
    if (!ebb__cli_read(q.file, &f)) return EBB__EXIT_USAGE;
    int code = is_journal(&f) ? verbs[verb].run(&q, &f) : EBB__EXIT_USAGE;
    free(f.bytes);
    return code;
}

int ebb__cmd_journal(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return ebb__help_show(&ebb__help_journal);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(name, verbs[i].name) == 0) return run_verb(i, argc - 2, argv + 2);
    }
    if (argc > 1) ebb__cli_error("unknown journal command '%s': expected show or replay", name);
    return ebb__help_refuse(&ebb__help_journal);
}
