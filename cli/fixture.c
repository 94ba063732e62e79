/* cli/fixture.c - `ebb fixture`: lists and runs the fixtures of the cancel contract. */
#include "cli/fixture.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/help.h"

const ebb__help ebb__help_fixture = {
    .name = "fixture",
    .what = "run the fixtures of the cancel contract",
    .text =
        "Fixtures are scripts of the cancel contract with what has to come of them.\n\n"
        "With a seed that is not the fixture's own the phases, outcomes, closure, results and chains must "
        "still be the same; the order of events and the fingerprint need not.",
    .forms =
        (const ebb__help_form[]){
            {"list", "[DIR]", "Lists them."},
            {"run", "[ID...]", "Runs the named fixtures, or all; checks every oracle and every witness."},
            {"show", "ID", "Runs one and prints the result as JSON, in the form of a fixture's 'expect'."},
            {0}},
    .options =
        (const ebb__help_option[]){
            {"--dir", "DIR", NULL, 0,
             "Their directory; default: $EBB_FIXTURES, fixtures/cancel, or the installed one."},
            {"--seed", "N", "run show", 0,
             "The order among equals: 0 first come, first served; otherwise random by this seed."},
            {"--trace-dir", "DIR", "run", 0, "Writes the trace of each run to DIR/ID.trace."},
            {0}},
    .exits = (const ebb__help_row[]){{"0", "all hold"},
                                     {"1", "one does not"},
                                     {"2", "wrong arguments, or files that can't be read"},
                                     {0}},
};

typedef struct options {
    const char *dir, *trace_dir;
    bool has_seed;
    uint64_t seed;
    char **ids;
    int n_ids;
    bool help;
} options;

/* ---- the directory ---------------------------------------------------------------------------- */

static bool is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The directory of an installed program: share/ebb/fixtures next to the bin of bin/ebb. */
static bool installed_dir(char out[PATH_MAX]) {
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) return false;
    exe[n] = 0;
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(exe, '/');
        if (slash == NULL) return false;
        *slash = 0;
    }
    n = snprintf(out, PATH_MAX, "%s/share/ebb/fixtures/cancel", exe);
    return n < PATH_MAX && is_dir(out);
}

static const char *find_dir(const char *option) {
    static char installed[PATH_MAX];
    const char *given = option != NULL ? option : getenv("EBB_FIXTURES");
    if (given != NULL) {
        if (is_dir(given)) return given;
        ebb__cli_error("%s is not a directory (%s)", given, option != NULL ? "--dir" : "$EBB_FIXTURES");
        return NULL;
    }
    if (is_dir("fixtures/cancel")) return "fixtures/cancel";
    if (installed_dir(installed)) return installed;
    ebb__cli_error("no fixtures: neither ./fixtures/cancel nor an installed directory exists; use --dir");
    return NULL;
}

/* ---- the list of fixtures --------------------------------------------------------------------- */

typedef struct ids {
    char **item;
    size_t n;
} ids;

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void ids_free(ids *all) {
    for (size_t i = 0; i < all->n; i++) free(all->item[i]);
    free(all->item);
}

static bool ids_add(ids *all, const char *file) {
    size_t n = strlen(file), ending = strlen(".json");
    if (n <= ending || strcmp(file + n - ending, ".json") != 0) return true;
    char **more = realloc(all->item, (all->n + 1) * sizeof *more);
    if (more == NULL) return false;
    all->item = more;
    more[all->n] = strndup(file, n - ending);
    return more[all->n++] != NULL;
}

static bool ids_of(const char *dir, ids *out) {
    *out = (ids){NULL, 0};
    DIR *d = opendir(dir);
    if (d == NULL) {
        ebb__cli_error("can't read %s: %s", dir, strerror(errno));
        return false;
    }
    bool ok = true;
    for (struct dirent *e; ok && (e = readdir(d)) != NULL;) ok = ids_add(out, e->d_name);
    closedir(d);
    if (!ok) ebb__cli_error("out of memory");
    else if (out->n == 0) ebb__cli_error("no fixtures (*.json) in %s", dir);
    if (ok && out->n > 0) {
        qsort(out->item, out->n, sizeof *out->item, by_text);
        return true;
    }
    ids_free(out);
    return false;
}

/* The similarity of two ids: the length of their longest common substring. */
static size_t similarity(const char *a, const char *b) {
    size_t best = 0;
    for (const char *x = a; *x != 0; x++) {
        for (const char *y = b; *y != 0; y++) {
            size_t n = 0;
            while (x[n] != 0 && x[n] == y[n]) n++;
            if (n > best) best = n;
        }
    }
    return best;
}

static void say_unknown(const char *id, const char *dir, const ids *all) {
    size_t best = 0;
    for (size_t i = 0; i < all->n; i++) {
        size_t like = similarity(id, all->item[i]);
        if (like > best) best = like;
    }
    ebb__cli_error("unknown fixture '%s' in %s; %s:", id, dir, best >= 4 ? "similar ids" : "known ids");
    for (size_t i = 0; i < all->n; i++) {
        if (best < 4 || similarity(id, all->item[i]) + 2 >= best) fprintf(stderr, "  %s\n", all->item[i]);
    }
}

static bool is_known(const char *id, const char *dir, const ids *all) {
    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->item[i], id) == 0) return true;
    }
    say_unknown(id, dir, all);
    return false;
}

/* ---- running ---------------------------------------------------------------------------------- */

static bool join_path(char out[PATH_MAX], const char *dir, const char *id, const char *ending) {
    if (snprintf(out, PATH_MAX, "%s/%s%s", dir, id, ending) < PATH_MAX) return true;
    ebb__cli_error("%s/%s%s is too long for a path", dir, id, ending);
    return false;
}

static bool write_trace(const char *dir, const char *id, const ebb__fixture_run *run) {
    char path[PATH_MAX];
    if (!join_path(path, dir, id, ".trace")) return false;
    FILE *out = fopen(path, "wb");
    bool ok = out != NULL && fwrite(run->trace, 1, run->trace_n, out) == run->trace_n;
    if (out != NULL && fclose(out) != 0) ok = false;
    if (!ok) ebb__cli_error("can't write %s: %s", path, strerror(errno));
    return ok;
}

static ebb__fixture_how how_of(const options *o, const ebb__fixture *f) {
    return (ebb__fixture_how){.seed = o->has_seed ? o->seed : f->seed, .dir = o->dir};
}

/* With another seed the order is not compared, and the output says so. */
static void print_ok(const ebb__fixture *f, const ebb__fixture_how *how) {
    if (how->seed == f->seed) printf("ok %s\n", f->id);
    else printf("ok %s (seed %" PRIu64 ", not its own)\n", f->id, how->seed);
}

static int run_one(const options *o, const char *dir, const char *id) {
    char path[PATH_MAX];
    ebb__fixture f;
    ebb__fixture_run run;
    if (!join_path(path, dir, id, ".json") || !ebb__fixture_load(path, &f)) return EBB__EXIT_USAGE;
    ebb__fixture_how how = how_of(o, &f);
    int code = EBB__EXIT_USAGE;
    if (ebb__fixture_run_it(&f, &how, &run)) {
        code = ebb__fixture_compare(&f, &how, &run, stdout) ? EBB__EXIT_OK : EBB__EXIT_BAD;
        if (code == EBB__EXIT_OK) print_ok(&f, &how);
        if (o->trace_dir != NULL && !write_trace(o->trace_dir, id, &run)) code = EBB__EXIT_USAGE;
    }
    ebb__fixture_run_free(&run);
    ebb__fixture_free(&f);
    return code;
}

static int run_all(const options *o, const char *dir, const ids *all) {
    size_t n = o->n_ids > 0 ? (size_t)o->n_ids : all->n, good = 0;
    int worst = EBB__EXIT_OK;
    for (int i = 0; i < o->n_ids; i++) {
        if (!is_known(o->ids[i], dir, all)) return EBB__EXIT_USAGE;
    }
    for (size_t i = 0; i < n; i++) {
        int code = run_one(o, dir, o->n_ids > 0 ? o->ids[i] : all->item[i]);
        good += code == EBB__EXIT_OK;
        if (code > worst) worst = code;
    }
    printf("%zu of %zu\n", good, n);
    return worst;
}

static int show_one(const options *o, const char *dir, const ids *all) {
    char path[PATH_MAX];
    ebb__fixture f;
    ebb__fixture_run run;
    if (!is_known(o->ids[0], dir, all) || !join_path(path, dir, o->ids[0], ".json") ||
        !ebb__fixture_load(path, &f)) {
        return EBB__EXIT_USAGE;
    }
    ebb__fixture_how how = how_of(o, &f);
    int code = EBB__EXIT_USAGE;
    if (ebb__fixture_run_it(&f, &how, &run)) {
        json_dumpf(run.actual, stdout, JSON_INDENT(2));
        putchar('\n');
        if (run.problem[0] != 0) ebb__cli_error("%s: line %zu: %s", f.id, run.problem_line, run.problem);
        code = run.problem[0] != 0 ? EBB__EXIT_BAD : EBB__EXIT_OK;
    }
    ebb__fixture_run_free(&run);
    ebb__fixture_free(&f);
    return code;
}

static int list_all(const char *dir, const ids *all) {
    for (size_t i = 0; i < all->n; i++) {
        char path[PATH_MAX];
        ebb__fixture f;
        if (!join_path(path, dir, all->item[i], ".json") || !ebb__fixture_load(path, &f))
            return EBB__EXIT_USAGE;
        printf("%s  (seed %" PRIu64 ")\n    %s\n", f.id, f.seed,
               json_string_value(json_object_get(f.json, "about")));
        ebb__fixture_free(&f);
    }
    return EBB__EXIT_OK;
}

/* ---- arguments -------------------------------------------------------------------------------- */

static bool parse_option(options *o, const char *name, const char *value) {
    bool dir = strcmp(name, "--dir") == 0, trace = strcmp(name, "--trace-dir") == 0;
    bool seed = strcmp(name, "--seed") == 0;
    if (!dir && !trace && !seed) {
        ebb__cli_error("unknown option '%s'", name);
        return false;
    }
    if (value == NULL) {
        ebb__cli_error("%s needs a value", name);
        return false;
    }
    if (dir) o->dir = value;
    if (trace) o->trace_dir = value;
    o->has_seed |= seed;
    return !seed || ebb__cli_number(name, value, 0, UINT64_MAX, &o->seed);
}

/* Ids are moved to the front of argv. */
static bool parse(int argc, char **argv, options *o) {
    *o = (options){.ids = argv};
    for (int i = 0; i < argc; i++) {
        if (argv[i][0] != '-') {
            o->ids[o->n_ids++] = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            o->help = true;
            continue;
        }
        if (!parse_option(o, argv[i], i + 1 == argc ? NULL : argv[i + 1])) return false;
        i++;
    }
    return true;
}

int ebb__cmd_fixture(int argc, char **argv) {
    options o;
    ids all;
    const char *what = argc < 2 ? "" : argv[1];
    bool list = strcmp(what, "list") == 0, run = strcmp(what, "run") == 0, show = strcmp(what, "show") == 0;
    if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0 || strcmp(what, "help") == 0)
        return ebb__help_show(&ebb__help_fixture);
    if (!list && !run && !show) {
        if (argc > 1) ebb__cli_error("unknown fixture command '%s': expected list, run or show", what);
        return ebb__help_refuse(&ebb__help_fixture);
    }
    if (!parse(argc - 2, argv + 2, &o)) return EBB__EXIT_USAGE;
    if (o.help) return ebb__help_show(&ebb__help_fixture);
    if (show && o.n_ids != 1) {
        ebb__cli_error("fixture show takes the id of one fixture, not %d; `ebb fixture list` lists them",
                       o.n_ids);
        return EBB__EXIT_USAGE;
    }
    if (list && o.n_ids > 1) {
        ebb__cli_error("fixture list takes one directory, not %d", o.n_ids);
        return EBB__EXIT_USAGE;
    }
    const char *dir = find_dir(list && o.n_ids == 1 ? o.ids[0] : o.dir);
    if (dir == NULL || !ids_of(dir, &all)) return EBB__EXIT_USAGE;
    int code = list ? list_all(dir, &all) : show ? show_one(&o, dir, &all) : run_all(&o, dir, &all);
    ids_free(&all);
    return code;
}
