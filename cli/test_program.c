/* cli/test_program.c - a program of typestate machines as a scenario of the lab. */
#include "cli/test_program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHOWN = 60,           /* bytes of a line in a message */
    OUTPUT_MAX = 16 << 20 /* what a run may say, in bytes */
};

/* ---- lines ---- */

/* The line at `*at`, without its newline. False: there is none. */
static bool next_line(const ebb__buffer *b, size_t *at, const char **line, size_t *n) {
    if (*at >= b->n) return false;
    const char *stop = memchr(b->bytes + *at, '\n', b->n - *at);
    *line = b->bytes + *at;
    *n = stop == NULL ? b->n - *at : (size_t)(stop - *line);
    *at += *n + 1;
    return true;
}

static void add_line(ebb__buffer *b, const char *line, size_t n) {
    ebb__buffer_add(b, line, n);
    ebb__buffer_add(b, "\n", 1);
}

/* Adds the rest of the lines of a source that begin with a mark and a blank. Returns how many there are. */
static uint32_t collect(const ebb__buffer *source, const char *mark, ebb__buffer *out) {
    const char *line;
    uint32_t lines = 0;
    for (size_t at = 0, n; next_line(source, &at, &line, &n);) {
        if (n > 0 && line[n - 1] == '\r') n--;
        if (n < 3 || memcmp(line, mark, 3) != 0 || (n > 3 && line[3] != ' ')) continue;
        if (n == 3) add_line(out, "", 0);
        else add_line(out, line + 4, n - 4);
        lines++;
    }
    return lines;
}

static bool is_expected(const ebb__test_program *t, const char *text, size_t length) {
    const char *line;
    for (size_t at = 0, n; next_line(&t->expected, &at, &line, &n);)
        if (n == length && memcmp(line, text, n) == 0) return true;
    return false;
}

/* ---- what the program says ---- */

/* Ends the run. */
static void fail(ebb__test_program *t, const char *failure, const char *text) {
    t->judged = true;
    ebb_lab_fail_as(t->lab, failure, text);
}

static void say(ebb__test_program *t, const char *line, size_t n) {
    if (n < OUTPUT_MAX - t->said.n) add_line(&t->said, line, n);
    else fail(t, "output", "it says more than 16 MiB");
}

static void print(void *ctx, const char *text, size_t n) {
    ebb__test_program *t = ctx;
    if (!t->judged) say(t, text, n);
}

static void fail_by_fault(ebb__test_program *t, const ebb_program_event *e) {
    char place[256] = "", text[512];
    if (e->file[0] != 0)
        (void)snprintf(place, sizeof place, "%s:%" PRIu32 ":%" PRIu32 ": ", e->file, e->line, e->column);
    (void)snprintf(text, sizeof text, "%s%s faulted%s%s: %s%s%s", place,
                   e->name[0] == 0 ? "a machine that is gone" : e->name, e->kind[0] == 0 ? "" : " on ",
                   e->kind, e->why, e->text[0] == 0 ? "" : ": ", e->text);
    fail(t, e->broken[0] != 0 ? e->broken : "fault", text);
}

static void report(void *ctx, const ebb_program_event *e) {
    static const char *const what[] = {"", "fault", "dead", "full"};
    ebb__test_program *t = ctx;
    char line[1024];
    if (e->what == EBB_PROGRAM_LIMIT) ebb__compiled_limit(e);
    if (e->what == EBB_PROGRAM_LIMIT || t->judged) return;
    int n = snprintf(line, sizeof line, "! %s %s %s: %s%s%s", what[e->what], e->name[0] == 0 ? "-" : e->name,
                     e->kind[0] == 0 ? "-" : e->kind, e->why, e->text[0] == 0 ? "" : ": ", e->text);
    if (n < 0) return;
    size_t length = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    say(t, line, length);
    bool wrong = e->what == EBB_PROGRAM_FAULT && (!e->goes_on || e->broken[0] != 0);
    if (wrong && !is_expected(t, line, length)) fail_by_fault(t, e);
}

/* ---- how it has ended ---- */

static void fail_by_line(ebb__test_program *t, uint32_t number, const char *expected, size_t expected_n,
                         const char *found, size_t found_n) {
    char want[SHOWN + 16] = "no more", got[SHOWN + 16] = "no more", text[200];
    if (expected != NULL)
        (void)snprintf(want, sizeof want, "'%.*s'", (int)(expected_n < SHOWN ? expected_n : SHOWN), expected);
    if (found != NULL)
        (void)snprintf(got, sizeof got, "'%.*s'", (int)(found_n < SHOWN ? found_n : SHOWN), found);
    (void)snprintf(text, sizeof text, "line %" PRIu32 " of the output: expected %s, found %s", number, want,
                   got);
    fail(t, "output", text);
}

static void compare(ebb__test_program *t) {
    const char *want, *got;
    size_t want_at = 0, got_at = 0, want_n = 0, got_n = 0;
    for (uint32_t number = 1;; number++) {
        bool wants = next_line(&t->expected, &want_at, &want, &want_n);
        bool has = next_line(&t->said, &got_at, &got, &got_n);
        if (!wants && !has) return;
        if (wants && has && want_n == got_n && memcmp(want, got, got_n) == 0) continue;
        fail_by_line(t, number, wants ? want : NULL, want_n, has ? got : NULL, got_n);
        return;
    }
}

static void fail_by_waiting(ebb__test_program *t, const ebb_program_end *end) {
    char text[160];
    (void)snprintf(text, sizeof text,
                   "it waits for ever: %" PRIu32 " requests without a reply, %" PRIu32
                   " messages that nobody takes",
                   end->waiting, end->queued);
    ebb_machines_dump(ebb_program_machines(t->program), ebb__buffer_add, &t->machines);
    fail(t, "stuck", text);
}

/* Nothing will happen any more. */
static void judge(ebb__test_program *t) {
    ebb_program_end end;
    char text[200];
    if (t->reads || t->judged) return;
    ebb_program_end_of(t->program, &end);
    if (end.waiting > 0 || end.queued > 0) fail_by_waiting(t, &end);
    else if (end.hot > 0) {
        (void)snprintf(text, sizeof text, "the spec %s is in the hot state %s", end.hot_spec, end.hot_state);
        fail(t, "hot", text);
    } else if (t->compares && t->expects) {
        compare(t);
    }
    t->judged = true;
}

static void became_quiet(void *ctx) {
    judge(ctx);
}

/* ---- the console ---- */

static ebb_status wait_for_line(ebb_cx *cx, const ebb__test_program *t) {
    if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
    return t->read < t->typed ? EBB_OK : EBB_PENDING;
}

/* The next line that was typed; the end behind the last. */
static ebb_status publish(ebb__test_program *t) {
    const char *line;
    size_t n;
    if (next_line(&t->input, &t->read_to, &line, &n)) {
        ebb_program_field text = {.name = "text", .bytes = line, .n = n};
        return ebb_program_publish(t->program, "std/console::Line", "console", &text, 1);
    }
    if (!ebb_program_has(t->program, "std/console::End")) return EBB_OK;
    return ebb_program_publish(t->program, "std/console::End", "console", NULL, 0);
}

/* As `ebb run` does: a line is published when no machine has anything to do. */
static ebb_status console_poll(ebb_cx *cx, void *state) {
    ebb__test_program *t = state;
    ebb_status st;
    EBB_BEGIN(t);
    for (; t->read < t->scenario.steps; t->read++) {
        EBB_AWAIT(t, st, wait_for_line(cx, t));
        while (st == EBB_OK && !ebb_machines_is_idle(ebb_program_machines(t->program)))
            EBB_AWAIT(t, st, ebb_sleep(cx, &t->nap, EBB_MS));
        if (st == EBB_OK) st = publish(t);
        if (st == EBB_ERR_MAILBOX_FULL) st = EBB_OK; /* it was reported */
        if (st != EBB_OK) return st;
    }
    t->reads = false;
    if (ebb_program_is_quiet(t->program)) judge(t);
    EBB_END(t);
}

/* A line is typed. */
static void step(ebb_lab *lab, uint32_t n) {
    ebb__test_program *t = ebb_lab_arg(lab);
    t->typed = n + 1;
    (void)ebb_task_wake(ebb_runtime_host(ebb_lab_runtime(lab, 0)), t->console);
}

/* ---- a run ---- */

static ebb_program_opts opts_of(ebb__test_program *t, ebb_region parent) {
    return (ebb_program_opts){.allocator = ebb__cli_allocator(),
                              .parent = parent,
                              .print = print,
                              .report = report,
                              .quiet = became_quiet,
                              .ctx = t};
}

/* The program of the last run; its runtime is gone. */
static void forget_run(ebb__test_program *t) {
    (void)ebb_program_free(t->program);
    t->program = NULL;
    t->said.n = t->machines.n = 0;
    t->judged = false;
    t->typed = t->read = 0;
    t->read_to = 0;
    t->ebb_line = 0;
    t->nap = (ebb_sleeper){0};
    t->reads = t->scenario.steps > 0;
}

static ebb_status setup(ebb_lab *lab) {
    ebb__test_program *t = ebb_lab_arg(lab);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    ebb_region region = ebb_lab_region(lab, 0);
    forget_run(t);
    t->lab = lab;
    ebb_program_opts opts = opts_of(t, region);
    ebb_status st = ebb_program_new(t->compiled.lang, &opts, &t->program);
    if (st == EBB_OK) st = ebb_program_open(host, t->program);
    if (st != EBB_OK) return st;
    (void)ebb_program_start(t->program); /* that it fails is reported */
    if (!t->reads) return EBB_OK;
    t->console = ebb_spawn(host, region, console_poll, t, &(ebb_task_opts){.name = "console"});
    return ebb_id_status(t->console.id);
}

static void check(ebb_lab *lab) {
    const ebb__test_program *t = ebb_lab_arg(lab);
    if (t->said.failed || t->machines.failed) ebb_lab_fail(lab, ebb_status_text(EBB_ERR_NOMEM));
    else if (!t->judged) ebb_lab_fail(lab, "the program has not become quiet");
}

/* ---- opening ---- */

static void set_name(ebb__test_program *t) {
    const char *slash = strrchr(t->compiled.path, '/');
    (void)snprintf(t->name, sizeof t->name, "%s", slash == NULL ? t->compiled.path : slash + 1);
    for (char *c = t->name; *c != 0; c++) /* it is one line of a file */
        if (*c == '\n' || *c == '\r') *c = '?';
}

/* What the comments of the program's file say. */
static int read_marks(ebb__test_program *t, uint32_t *lines) {
    ebb__buffer source = {.bytes = (char *)t->compiled.file.bytes, .n = t->compiled.file.n};
    t->expects = collect(&source, "//>", &t->expected) > 0;
    *lines = collect(&source, "//<", &t->input);
    if (!t->expected.failed && !t->input.failed) return EBB__EXIT_OK;
    ebb__cli_error("%s: %s", t->compiled.path, ebb_status_text(EBB_ERR_NOMEM));
    return EBB__EXIT_USAGE;
}

static int set_scenario(ebb__test_program *t, uint32_t lines) {
    ebb_program_opts opts = opts_of(t, (ebb_region){0});
    int code = ebb__compiled_program(&t->compiled, &opts, &t->program);
    if (code != EBB__EXIT_OK) return code;
    bool console = ebb_program_has(t->program, "std/console::Line");
    if (!console && lines > 0) {
        ebb__cli_error("%s: there are lines '//<' for std::console, but no machine gets its Line",
                       t->compiled.path);
        return EBB__EXIT_BAD;
    }
    t->scenario = (ebb_lab_scenario){.name = t->name,
                                     .about = t->compiled.path,
                                     .steps = console ? lines + 1 : 0,
                                     .setup = setup,
                                     .step = step,
                                     .check = check,
                                     .until_quiet = true,
                                     .arg = t};
    return EBB__EXIT_OK;
}

int ebb__test_program_open(ebb__test_program *t, const char *path) {
    uint32_t lines = 0;
    *t = (ebb__test_program){0};
    int code = ebb__compiled_open(&t->compiled, path);
    if (code == EBB__EXIT_OK) code = read_marks(t, &lines);
    set_name(t);
    return code == EBB__EXIT_OK ? set_scenario(t, lines) : code;
}

void ebb__test_program_close(ebb__test_program *t) {
    (void)ebb_program_free(t->program);
    ebb__compiled_close(&t->compiled);
    free(t->expected.bytes);
    free(t->input.bytes);
    free(t->said.bytes);
    free(t->machines.bytes);
}
