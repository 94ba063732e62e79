/* cli/init.c - `ebb init`: a project that builds, with a test, from a template. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/help.h"

/* A file of a template; each @name@ in it is the project's. */
typedef struct template_file {
    const char *template, *path, *text;
} template_file;

#include "templates.inc" /* files[], from cli/templates */

const ebb__help ebb__help_init = {
    .name = "init",
    .what = "make a project that builds, with a test",
    .text = "Makes DIR, or takes it if it is empty, and puts a project there: a Makefile that finds the "
            "library by "
            "pkg-config, sources, a test, and a README. The last part of DIR is its name: a letter, then at "
            "most 62 "
            "letters, digits, - or _, in lower case; not all, clean, run, src or test.",
    .forms = (const ebb__help_form[]){{NULL, "DIR", ""}, {0}},
    .options =
        (const ebb__help_option[]){
            {"--template", "service|durable", NULL, 0,
             "service, the default: an HTTP service, tested with its clients and their "
             "network in the lab. durable: orchestrations for `ebb serve` and `ebb worker`, "
             "tested by crashes and cancels after every turn."},
            {0}},
    .exits =
        (const ebb__help_row[]){
            {"0", "it is there"},
            {"2", "wrong arguments, or a directory that is not empty or can't be written"},
            {0}},
    .examples =
        (const ebb__help_row[]){{"ebb init greeter && make -C greeter test", "A service, and its test."},
                                {0}},
};

/* ---- names ------------------------------------------------------------------------------------------- */

enum { NAME_MOST = 63 };

/* The program of a service has the name of its project, beside the targets of its Makefile and its directories. */
static bool is_free(const char *s) {
    static const char *const taken[] = {"all", "clean", "run", "src", "test"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        if (strcmp(s, taken[i]) == 0) return false;
    }
    return true;
}

static bool is_name(const char *s) {
    static const char all[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
    const size_t n = strlen(s);
    return n > 0 && n <= NAME_MOST && s[0] >= 'a' && s[0] <= 'z' && strspn(s, all) == n;
}

/* The last part of a path, without slashes behind it; of one that is there, as the system calls it ("."). */
static bool name_of(const char *dir, char name[NAME_MOST + 1]) {
    char path[PATH_MAX];
    if (realpath(dir, path) == NULL && snprintf(path, sizeof path, "%s", dir) >= (int)sizeof path)
        path[0] = 0;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') path[--n] = 0;
    const char *slash = strrchr(path, '/'), *last = slash != NULL ? slash + 1 : path;
    if (!is_free(last)) {
        ebb__cli_error("'%s' is a target or a directory of each project; choose another name", last);
        return false;
    }
    if (is_name(last)) {
        memcpy(name, last, strlen(last) + 1);
        return true;
    }
    ebb__cli_error(
        "'%s' is no name for a project: a letter, then at most %d letters, digits, - or _, in lower case",
        last, NAME_MOST - 1);
    return false;
}

/* ---- files ------------------------------------------------------------------------------------------- */

static bool is_empty(const char *dir) {
    DIR *d = opendir(dir);
    const struct dirent *e;
    bool empty = true;
    if (d == NULL) {
        ebb__cli_error("can't use %s: %s", dir, strerror(errno));
        return false;
    }
    while (empty && (e = readdir(d)) != NULL)
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    if (!empty) ebb__cli_error("%s is not empty", dir);
    closedir(d);
    return empty;
}

static void put(FILE *out, const char *text, const char *name) {
    static const char mark[] = "@name@";
    for (const char *at; (at = strstr(text, mark)) != NULL; text = at + sizeof mark - 1)
        fprintf(out, "%.*s%s", (int)(at - text), text, name);
    fputs(text, out);
}

/* A template has directories of one level. */
static bool write_file(const char *dir, const template_file *f, const char *name) {
    char path[PATH_MAX];
    const char *slash = strchr(f->path, '/');
    bool ok = slash == NULL || (snprintf(path, sizeof path, "%s/%.*s", dir, (int)(slash - f->path), f->path) <
                                    (int)sizeof path &&
                                (mkdir(path, 0777) == 0 || errno == EEXIST));
    ok = ok && snprintf(path, sizeof path, "%s/%s", dir, f->path) < (int)sizeof path;
    FILE *out = ok ? fopen(path, "wx") : NULL;
    if (out != NULL) put(out, f->text, name);
    ok = out != NULL && ferror(out) == 0;
    if (out != NULL && fclose(out) != 0) ok = false;
    if (!ok) ebb__cli_error("can't write %s/%s: %s", dir, f->path, strerror(errno));
    return ok;
}

static bool write_all(const char *dir, const char *template, const char *name) {
    bool ok = true;
    for (size_t i = 0; i < sizeof files / sizeof *files && ok; i++) {
        if (strcmp(files[i].template, template) == 0) ok = write_file(dir, &files[i], name);
    }
    return ok;
}

static int make_project(const char *dir, const char *template) {
    char name[NAME_MOST + 1];
    if (!name_of(dir, name)) return EBB__EXIT_USAGE;
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        ebb__cli_error("can't make %s: %s", dir, strerror(errno));
        return EBB__EXIT_USAGE;
    }
    if (!is_empty(dir) || !write_all(dir, template, name)) return EBB__EXIT_USAGE;
    printf("%s is there. Its test: make -C ", name);
    ebb__cli_quote(stdout, dir);
    puts(" test");
    return EBB__EXIT_OK;
}

/* ---- arguments --------------------------------------------------------------------------------------- */

static bool is_template(const char *name) {
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (strcmp(files[i].template, name) == 0) return true;
    }
    ebb__cli_error("--template takes service or durable, not '%s'", name);
    return false;
}

static bool parse(int argc, char **argv, const char **dir, const char **template) {
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--template") == 0 && i + 1 < argc) {
            *template = argv[++i];
        } else if (argv[i][0] != '-' && *dir == NULL) {
            *dir = argv[i];
        } else {
            if (strcmp(argv[i], "--template") == 0) ebb__cli_error("--template needs a value");
            else ebb__cli_error("unexpected argument '%s'", argv[i]);
            return false;
        }
    }
    if (*dir == NULL) ebb__cli_error("init takes a directory");
    return *dir != NULL && is_template(*template);
}

int ebb__cmd_init(int argc, char **argv) {
    const char *dir = NULL, *template = "service";
    if (ebb__help_wanted(argc, argv)) return ebb__help_show(&ebb__help_init);
    if (argc == 1) return ebb__help_refuse(&ebb__help_init);
    return parse(argc - 1, argv + 1, &dir, &template) ? make_project(dir, template) : EBB__EXIT_USAGE;
}
