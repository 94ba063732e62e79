/* cli/daemon_programs.c - programs of typestate machines in the daemon: each file of a folder, in the runtime of the
 * service, under the name of its file. What they print goes to stdout behind that name. */
#define _DEFAULT_SOURCE /* scandir */
#include "cli/daemon_programs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/line.h"
#include "cli/modules.h"

enum {
    PROGRAMS_MOST = EBB_MACHINES_MAX - 1,
    LINE_MOST = 4096
}; /* one is left for a library's own machines */

typedef struct program {
    ebb__programs *set;
    char path[PATH_MAX], name[NAME_MAX + 1];
    ebb__compiled compiled;
    ebb_program *p; /* NULL: it has no main, so it is a module of others */
} program;

struct ebb__programs {
    program *all;
    size_t n;
    bool begun;       /* the daemon has said where it listens */
    ebb__buffer held; /* what was printed before that */
};

/* ---- what they say -------------------------------------------------------------------------------------------------- */

/* What a client sends may be in it, so it is made plain. */
static void print(void *ctx, const char *text, size_t n) {
    const program *of = ctx;
    char line[LINE_MOST + 1];
    const size_t shown = n < LINE_MOST ? n : LINE_MOST;
    for (size_t i = 0; i < shown; i++) line[i] = text[i] != 0 ? text[i] : '?';
    line[shown] = 0;
    ebb__make_plain(line);
    char whole[sizeof line + sizeof of->name + 16];
    const int end = snprintf(whole, sizeof whole, "%s: %s%s\n", of->name, line, shown < n ? " ..." : "");
    if (!of->set->begun) {
        ebb__buffer_add(&of->set->held, whole, (size_t)end);
        return;
    }
    fputs(whole, stdout);
    (void)fflush(stdout);
}

/* Dead letters and full mailboxes are counted by the dashboard. */
static void report(void *ctx, const ebb_program_event *e) {
    (void)ctx;
    if (e->what == EBB_PROGRAM_LIMIT) ebb__compiled_limit(e);
    if (e->what != EBB_PROGRAM_FAULT) return;
    char text[LINE_MOST];
    (void)snprintf(text, sizeof text, "%s:%u:%u: %s faulted%s%s: %s%s%s", e->file, (unsigned)e->line,
                   (unsigned)e->column, e->name, e->kind[0] != 0 ? " on " : "", e->kind, e->why,
                   e->text[0] != 0 ? ": " : "", e->text);
    ebb__make_plain(text);
    fprintf(stderr, "%s\n", e->file[0] != 0 ? text : text + sizeof ":0:0: " - 1);
}

/* ---- compiling ------------------------------------------------------------------------------------------------------ */

static int compile(program *of) {
    const ebb_program_opts opts = {
        .allocator = ebb__cli_allocator(), .print = print, .report = report, .ctx = of, .name = of->name};
    int code = ebb__compiled_open(&of->compiled, of->path);
    if (code != EBB__EXIT_OK) return code;
    ebb_status st = ebb_program_new(of->compiled.lang, &opts, &of->p);
    if (st == EBB_OK || st == EBB_ERR_INVALID) return EBB__EXIT_OK; /* INVALID: without main */
    if (st != EBB_ERR_LIMIT) ebb__cli_error("%s: %s", of->path, ebb_status_text(st));
    return EBB__EXIT_BAD;
}

static int is_program(const struct dirent *entry) {
    const size_t n = strlen(entry->d_name), end = sizeof ".ebb" - 1;
    return n > end && entry->d_name[0] != '.' && strcmp(entry->d_name + n - end, ".ebb") == 0;
}

static bool set_names(program *of, const char *directory, const char *file) {
    const int n = snprintf(of->path, sizeof of->path, "%s/%s", directory, file);
    (void)snprintf(of->name, sizeof of->name, "%.*s", (int)(strlen(file) - (sizeof ".ebb" - 1)), file);
    if (n > 0 && (size_t)n < sizeof of->path) return true;
    ebb__cli_error("the path of %s has more than %zu bytes", file, sizeof of->path - 1);
    return false;
}

/* All of them, so that one start shows all mistakes. */
static bool compile_all(ebb__programs *ps, const char *directory, struct dirent **files, size_t n) {
    size_t bad = 0, run = 0;
    for (size_t i = 0; i < n; i++) {
        program *of = &ps->all[ps->n];
        of->set = ps;
        if (!set_names(of, directory, files[i]->d_name)) return false;
        ps->n++;
        bad += compile(of) != EBB__EXIT_OK;
        run += of->p != NULL;
    }
    if (run > PROGRAMS_MOST)
        ebb__cli_error("%s has %zu programs; a daemon runs at most %d", directory, run, PROGRAMS_MOST);
    else if (bad == 0 && run == 0) ebb__cli_error("%s has no program: no file *.ebb with a main", directory);
    return bad == 0 && run > 0 && run <= PROGRAMS_MOST;
}

ebb__programs *ebb__programs_compile(const char *directory) {
    struct dirent **files = NULL;
    const int n = scandir(directory, &files, is_program, alphasort);
    ebb__programs *ps = calloc(1, sizeof *ps);
    bool ok = n >= 0 && ps != NULL;
    if (n < 0) ebb__cli_error("can't read the directory %s: %s", directory, strerror(errno));
    if (ok) ok = (ps->all = calloc((size_t)n + 1, sizeof *ps->all)) != NULL;
    if (n >= 0 && !ok) ebb__cli_error("no memory");
    if (ok) ok = compile_all(ps, directory, files, (size_t)n);
    for (int i = 0; i < n; i++) free(files[i]);
    free(files);
    if (ok) return ps;
    ebb__programs_free(ps);
    return NULL;
}

/* ---- running -------------------------------------------------------------------------------------------------------- */

ebb_status ebb__programs_begin(ebb_cx *cx, ebb__programs *ps) {
    for (size_t i = 0; ps != NULL && i < ps->n; i++) {
        program *of = &ps->all[i];
        if (of->p == NULL) continue;
        ebb_status st = ebb_program_open(cx, of->p);
        if (st == EBB_OK) st = ebb_program_start(of->p);
        if (st == EBB_OK) continue;
        if (st != EBB_FAILED) ebb__cli_error("%s: %s", of->path, ebb_status_text(st));
        return st;
    }
    return EBB_OK;
}

static void show_held(ebb__programs *ps) {
    if (ps->held.n > 0) (void)fwrite(ps->held.bytes, 1, ps->held.n, stdout);
    (void)fflush(stdout);
    ps->held.n = 0;
    ps->begun = true;
}

/* What would be cancelled if the fiber just returned. */
static void drain(ebb_cx *cx, ebb__programs *ps) {
    for (size_t i = 0; i < ps->n; i++) {
        if (ps->all[i].p != NULL)
            (void)ebb_region_close(cx, ebb_machines_region(ebb_program_machines(ps->all[i].p)));
    }
    for (size_t i = 0; i < ps->n; i++) {
        if (ps->all[i].p != NULL)
            (void)ebb_region_join(cx, ebb_machines_region(ebb_program_machines(ps->all[i].p)));
    }
}

void ebb__programs_wait(ebb_cx *cx, ebb__programs *ps) {
    if (ps == NULL) return;
    show_held(ps);
    (void)ebb_await(cx, ebb_closing(cx), NULL);
    drain(cx, ps);
}

void ebb__programs_free(ebb__programs *ps) {
    if (ps == NULL) return;
    show_held(ps);
    for (size_t i = 0; i < ps->n; i++) {
        (void)ebb_program_free(ps->all[i].p);
        ebb__compiled_close(&ps->all[i].compiled);
    }
    free(ps->held.bytes);
    free(ps->all);
    free(ps);
}
