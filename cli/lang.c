/* cli/lang.c - `ebb check`, `ebb fmt`, `ebb explain`: the compiler of .ebb files. */
#include "cli/cli.h"
#include "cli/modules.h"

#include <ebb/lang.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- check ---- */

static const char check_usage[] =
    "usage: ebb check [--json] FILE...\n"
    "\n"
    "  checks each file, and what it imports, as a program; exit 1 if one has an error\n"
    "  --json   one JSON object a line for each diagnostic, on stdout\n";

static int check_file(const char *path, bool json) {
    ebb__cli_file file;
    ebb__modules m;
    ebb_lang *c = NULL;
    int code = EBB__EXIT_USAGE;
    if (!ebb__cli_read_most(path, EBB_LANG_MAX_BYTES, &file)) return code;
    ebb_lang_opts opts = {.allocator = ebb__cli_allocator(), .load = ebb__modules_load, .load_ctx = &m};
    if (ebb__modules_open(&m, path) && ebb_lang_new(&opts, &c) == EBB_OK) {
        ebb_status st = ebb_lang_compile(c, path, ebb__cli_text(&file), file.n);
        (void)ebb__cli_show(c, json ? stdout : stderr, json);
        code = st == EBB_OK ? EBB__EXIT_OK : st == EBB_FAILED ? EBB__EXIT_BAD : EBB__EXIT_USAGE;
    }
    if (code == EBB__EXIT_USAGE) ebb__cli_error("%s: %s", path, ebb_status_text(EBB_ERR_NOMEM));
    ebb_lang_free(c);
    ebb__modules_free(&m);
    free(file.bytes);
    return code;
}

/* Calls `each` for the files of a command line with one flag. The worst exit code counts. */
static int each_file(int argc, char **argv, const char *flag, const char *usage,
                     int (*each)(const char *, bool)) {
    bool on = false, files = false;
    int worst = EBB__EXIT_OK;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return EBB__EXIT_OK;
        }
        if (strcmp(argv[i], flag) == 0) on = true;
        else if (argv[i][0] == '-') {
            ebb__cli_error("unknown option '%s'", argv[i]);
            return EBB__EXIT_USAGE;
        }
    }
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') continue;
        int code = each(argv[i], on);
        if (code > worst) worst = code;
        files = true;
    }
    if (files) return worst;
    fputs(usage, stderr);
    return EBB__EXIT_USAGE;
}

int ebb__cmd_check(int argc, char **argv) {
    return each_file(argc, argv, "--json", check_usage, check_file);
}

/* ---- fmt ---- */

static const char fmt_usage[] =
    "usage: ebb fmt [--check] FILE...\n"
    "\n"
    "  formats the files in place; one with a syntax error stays as it is, and the exit code is 1\n"
    "  --check  writes nothing; names the files that would change, and exits 1 if there are any\n";

static int write_file(const char *path, const ebb__buffer *t) {
    FILE *out = fopen(path, "wb");
    bool ok = out != NULL && fwrite(t->bytes, 1, t->n, out) == t->n;
    if (out != NULL && fclose(out) != 0) ok = false;
    if (ok) return EBB__EXIT_OK;
    ebb__cli_error("can't write %s: %s", path, strerror(errno));
    return EBB__EXIT_USAGE;
}

static int format_text(ebb_lang *c, const ebb__cli_file *file, bool check) {
    ebb__buffer t = {0};
    int code = EBB__EXIT_OK;
    ebb_status st = ebb_lang_format(c, file->path, ebb__cli_text(file), file->n, ebb__buffer_add, &t);
    if (st == EBB_FAILED) {
        (void)ebb__cli_show(c, stderr, false);
        code = EBB__EXIT_BAD;
    } else if (st != EBB_OK || t.failed) {
        ebb__cli_error("%s: %s", file->path, ebb_status_text(EBB_ERR_NOMEM));
        code = EBB__EXIT_USAGE;
    } else if (t.n != file->n || (t.n > 0 && memcmp(t.bytes, file->bytes, t.n) != 0)) {
        if (check) printf("%s\n", file->path);
        code = check ? EBB__EXIT_BAD : write_file(file->path, &t);
    }
    free(t.bytes);
    return code;
}

static int fmt_file(const char *path, bool check) {
    ebb__cli_file file;
    ebb_lang *c = NULL;
    ebb_lang_opts opts = {.allocator = ebb__cli_allocator()};
    if (!ebb__cli_read_most(path, EBB_LANG_MAX_BYTES, &file)) return EBB__EXIT_USAGE;
    int code = EBB__EXIT_USAGE;
    if (ebb_lang_new(&opts, &c) == EBB_OK) code = format_text(c, &file, check);
    else ebb__cli_error("%s: %s", path, ebb_status_text(EBB_ERR_NOMEM));
    ebb_lang_free(c);
    free(file.bytes);
    return code;
}

int ebb__cmd_fmt(int argc, char **argv) {
    return each_file(argc, argv, "--check", fmt_usage, fmt_file);
}

/* ---- explain ---- */

static const char explain_usage[] =
    "usage: ebb explain [CODE]\n"
    "\n"
    "  what a diagnostic means, as in `ebb explain E0506`; without a code, the list of them\n";

/* In lines of at most 80 characters. */
static void print_wrapped(const char *s) {
    size_t column = 0;
    while (*s != 0) {
        size_t n = strcspn(s, " ");
        if (column > 0 && column + 1 + n > 80) {
            fputc('\n', stdout);
            column = 0;
        }
        column += (size_t)printf("%s%.*s", column > 0 ? " " : "", (int)n, s);
        s += n + (s[n] == ' ');
    }
    fputc('\n', stdout);
}

int ebb__cmd_explain(int argc, char **argv) {
    const ebb_lang_code *code;
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(explain_usage, stdout);
        return EBB__EXIT_OK;
    }
    if (argc > 2) {
        fputs(explain_usage, stderr);
        return EBB__EXIT_USAGE;
    }
    for (size_t i = 0; argc == 1 && (code = ebb_lang_code_at(i)) != NULL; i++)
        printf("%s  %s\n", code->code, code->title);
    if (argc == 1) return EBB__EXIT_OK;
    code = ebb_lang_explain(argv[1]);
    if (code == NULL) {
        ebb__cli_error("there is no code '%s'; `ebb explain` lists them", argv[1]);
        return EBB__EXIT_USAGE;
    }
    printf("%s  %s\n\n", code->code, code->title);
    print_wrapped(code->text);
    return EBB__EXIT_OK;
}
