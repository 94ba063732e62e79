/* cli/run.c - `ebb run`: a program of typestate machines, on a loop of its own, until nothing is left to do. */
#include "cli/cli.h"
#include "cli/help.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/modules.h"
#include <ebb/ebb.h>

enum { EXIT_FAULTED = 6, LINE_MAX_BYTES = 32 << 10 };

const ebb__help ebb__help_run = {
    .name = "run",
    .what = "run a program of typestate machines (.ebb)",
    .text = "Runs main, then the machines that it has started, until no message, request or timer is left. A "
            "program that imports std/console also gets the lines of stdin, until its end.\n\n"
            "Ctrl-C closes: messages and requests are still handled, timers are not waited for. A second one "
            "ends "
            "it at once.",
    .forms = (const ebb__help_form[]){{NULL, "FILE", ""}, {0}},
    .options =
        (const ebb__help_option[]){
            {"--trace", "FILE", NULL, 0,
             "Records the run; `ebb trace verify --strict --quiescent FILE` checks it."},
            {"--quiet", NULL, NULL, 0, "No lines on stderr about dead letters and full mailboxes."},
            {0}},
    .exits =
        (const ebb__help_row[]){
            {"0", "it has ended"},
            {"1",
             "it does not compile, main failed, machines wait for each other for ever, or a spec is hot"},
            {"2", "wrong arguments, or a file can't be read"},
            {"3-5", "as of any service, see docs/workflow.md"},
            {"6", "a machine has faulted"},
            {0}},
};

typedef struct program {
    const char *path, *trace;
    bool quiet, stuck;
    bool reads; /* stdin is read, and has not ended */
    ebb_program *p;
    ebb_future *done; /* settled when the program is quiet; NULL: nobody waits */
    ebb_status started;
} program;

/* ---- what it says ---- */

static void print(void *ctx, const char *text, size_t n) {
    (void)ctx;
    fwrite(text, 1, n, stdout);
    fputc('\n', stdout);
}

static void report(void *ctx, const ebb_program_event *e) {
    const program *r = ctx;
    if (e->what == EBB_PROGRAM_LIMIT) {
        ebb__compiled_limit(e);
        return;
    }
    if (e->what != EBB_PROGRAM_FAULT && r->quiet) return;
    if (e->file[0] != 0) fprintf(stderr, "%s:%" PRIu32 ":%" PRIu32 ": ", e->file, e->line, e->column);
    const char *name = e->name[0] == 0 ? "a machine that is gone" : e->name;
    if (e->machine.id == 0 && e->name[0] == 0) name = "nobody";
    if (e->what == EBB_PROGRAM_FAULT) fprintf(stderr, "%s faulted", name);
    else fprintf(stderr, "%s did not get %s", name, e->kind);
    if (e->what == EBB_PROGRAM_FAULT && e->kind[0] != 0) fprintf(stderr, " on %s", e->kind);
    fprintf(stderr, ": %s%s%s\n", e->why, e->text[0] != 0 ? ": " : "", e->text);
}

static void became_quiet(void *ctx) {
    program *r = ctx;
    if (r->reads) return; /* a line may come */
    if (r->done != NULL) (void)ebb_promise_settle(r->done, (ebb_value){0});
    r->done = NULL;
}

/* ---- the console: what std/console promises ---- */

/* A full mailbox delays the next line. */
static ebb_status publish_line(ebb_cx *cx, program *r, const char *line, size_t n) {
    ebb_program_field text = {.name = "text", .bytes = line, .n = n};
    ebb_status st;
    while (!ebb_machines_is_idle(ebb_program_machines(r->p))) {
        st = ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
        if (st != EBB_OK) return st;
    }
    st = ebb_program_publish(r->p, "std/console::Line", "console", &text, 1);
    if (st == EBB_ERR_INVALID) ebb__cli_error("a line of stdin is not UTF-8; it was left out");
    return st == EBB_ERR_INVALID ? EBB_OK : st;
}

/* Publishes the lines that are complete; the rest stays. */
static ebb_status publish_lines(ebb_cx *cx, program *r, char *bytes, size_t *n, bool all) {
    ebb_status st = EBB_OK;
    size_t from = 0;
    for (size_t at = 0; st == EBB_OK && at < *n; at++) {
        if (bytes[at] != '\n') continue;
        st = publish_line(cx, r, bytes + from, at - from);
        from = at + 1;
    }
    if (st == EBB_OK && all && from < *n) {
        st = publish_line(cx, r, bytes + from, *n - from);
        from = *n;
    }
    memmove(bytes, bytes + from, *n - from);
    *n -= from;
    return st;
}

/* False: there is no more, or the service closes. A file is always ready. */
static bool wait_for_input(ebb_cx *cx) {
    ebb_future *two[2] = {ebb_closing(cx), ebb_fd_ready(cx, STDIN_FILENO, EBB_FD_READABLE)};
    ebb_status st = ebb_await(cx, ebb_race(cx, 2, two), NULL);
    return (st == EBB_OK || st == EBB_ERRNO(EPERM)) && !ebb_stopping(cx);
}

static ebb_status read_console(ebb_cx *cx, void *arg) {
    program *r = arg;
    static char bytes[LINE_MAX_BYTES];
    size_t n = 0;
    int flags = fcntl(STDIN_FILENO, F_GETFL);
    ebb_status st = EBB_OK;
    while (st == EBB_OK && wait_for_input(cx)) {
        ssize_t got = read(STDIN_FILENO, bytes + n, sizeof bytes - n);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (got > 0) n += (size_t)got;
        st = publish_lines(cx, r, bytes, &n, got <= 0 || n == sizeof bytes);
        if (got <= 0) break;
    }
    if (flags >= 0) (void)fcntl(STDIN_FILENO, F_SETFL, flags); /* other processes share this terminal */
    bool tells = st == EBB_OK && !ebb_stopping(cx) && ebb_program_has(r->p, "std/console::End");
    if (tells) st = ebb_program_publish(r->p, "std/console::End", "console", NULL, 0);
    r->reads = false;
    if (ebb_program_is_quiet(r->p)) became_quiet(r);
    return st == EBB_ERR_CLOSED || st == EBB_ERR_MAILBOX_FULL || st == EBB_CANCELLED ? EBB_OK : st;
}

/* ---- the service ---- */

/* True: nothing is left to do. False: the service closes. */
static bool wait_until_quiet(ebb_cx *cx, program *r) {
    ebb_future *two[2] = {ebb_closing(cx), NULL};
    two[1] = r->done = ebb_promise_new(cx, NULL, NULL);
    ebb_status st = ebb_await(cx, ebb_race(cx, 2, two), NULL);
    r->done = NULL;
    return st == EBB_OK && !ebb_stopping(cx);
}

/* Machines that wait for each other would hold a close for ever. */
static void end(ebb_cx *cx, program *r) {
    ebb_program_end e;
    ebb_region region = ebb_machines_region(ebb_program_machines(r->p));
    ebb_program_end_of(r->p, &e);
    r->stuck = e.waiting > 0 || e.queued > 0;
    if (r->stuck || e.main != EBB_OK)
        ebb_region_cancel(cx, region, EBB_CANCEL_USER, r->stuck ? "it waits for ever" : "main failed");
    else (void)ebb_region_close(cx, region);
}

static ebb_status run_program(ebb_cx *cx, void *arg) {
    program *r = arg;
    r->started = ebb_program_open(cx, r->p);
    if (r->started != EBB_OK) return r->started;
    ebb_status main_status = ebb_program_start(r->p);
    r->reads = main_status == EBB_OK && ebb_program_has(r->p, "std/console::Line");
    if (r->reads) (void)ebb_fiber_spawn(cx, ebb_cx_region(cx), read_console, r);
    if (main_status != EBB_OK || wait_until_quiet(cx, r)) end(cx, r);
    return EBB_OK;
}

static int exit_code(const program *r, int service) {
    ebb_program_end e;
    ebb_program_end_of(r->p, &e);
    if (r->stuck)
        ebb__cli_error("%s waits for ever: %" PRIu32 " requests without a reply, %" PRIu32
                       " messages that nobody takes",
                       r->path, e.waiting, e.queued);
    if (e.hot > 0)
        ebb__cli_error("%s ended with %" PRIu32 " specs in a hot state, as %s in %s", r->path, e.hot,
                       e.hot_spec, e.hot_state);
    if (service != EBB_SERVICE_OK) return service;
    if (e.main != EBB_OK || r->stuck || e.hot > 0) return EBB__EXIT_BAD;
    return e.faults > 0 ? EXIT_FAULTED : EBB__EXIT_OK;
}

static int serve(program *r) {
    ebb_status recording = EBB_OK;
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* a reader sees each line when it was printed */
    ebb_service_opts opts = {.loop.runtime.allocator = ebb__cli_allocator(),
                             .loop.trace_file = r->trace,
                             .loop.recording = &recording};
    int code = ebb_service_run(&opts, run_program, r);
    fflush(stdout);
    code = exit_code(r, code);
    if (recording == EBB_OK) return code;
    ebb__cli_error("can't write %s: %s", r->trace, ebb_status_text(recording));
    return EBB__EXIT_USAGE;
}

/* ---- the program ---- */

static int run_file(program *r) {
    ebb__compiled c;
    ebb_program_opts opts = {
        .allocator = ebb__cli_allocator(), .print = print, .report = report, .quiet = became_quiet, .ctx = r};
    int code = ebb__compiled_open(&c, r->path);
    if (code == EBB__EXIT_OK) code = ebb__compiled_program(&c, &opts, &r->p);
    if (code == EBB__EXIT_OK) code = serve(r);
    (void)ebb_program_free(r->p);
    ebb__compiled_close(&c);
    return code;
}

/* ---- arguments ---- */

static bool parse(program *r, int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0) {
            if (++i == argc) {
                ebb__cli_error("--trace needs a file");
                return false;
            }
            r->trace = argv[i];
        } else if (strcmp(argv[i], "--quiet") == 0) {
            r->quiet = true;
        } else if (argv[i][0] == '-') {
            ebb__cli_error("unknown option '%s'", argv[i]);
            return false;
        } else if (r->path != NULL) {
            ebb__cli_error("run takes one file: %s or %s", r->path, argv[i]);
            return false;
        } else {
            r->path = argv[i];
        }
    }
    if (r->path == NULL) ebb__cli_error("run takes a file");
    return r->path != NULL;
}

int ebb__cmd_run(int argc, char **argv) {
    program r = {0};
    if (ebb__help_wanted(argc, argv)) return ebb__help_show(&ebb__help_run);
    if (argc == 1) return ebb__help_refuse(&ebb__help_run);
    return parse(&r, argc - 1, argv + 1) ? run_file(&r) : EBB__EXIT_USAGE;
}
