/* cli/lang.c - `ebb check`, `ebb fmt`, `ebb explain`: the compiler of .ebb files. */
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/modules.h"

#include <ebb/lang.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- check ---- */

const ebb__help ebb__help_check = {
    .name = "check",
    .what = "check programs of typestate machines (.ebb)",
    .text = "Checks each file, and what it imports, as a program.",
    .forms = (const ebb__help_form[]){{NULL, "FILE...", ""}, {0}},
    .options =
        (const ebb__help_option[]){
            {"--json", NULL, NULL, 0, "One JSON object a line for each diagnostic, on stdout."}, {0}},
    .exits = (const ebb__help_row[]){{"0", "no file has an error"},
                                     {"1", "a file has an error"},
                                     {"2", "wrong arguments, or a file that can't be read"},
                                     {0}},
};

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
static int each_file(int argc, char **argv, const char *flag, const ebb__help *help,
                     int (*each)(const char *, bool)) {
    bool on = false, files = false;
    int worst = EBB__EXIT_OK;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return ebb__help_show(help);
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
    return ebb__help_refuse(help);
}

int ebb__cmd_check(int argc, char **argv) {
    return each_file(argc, argv, "--json", &ebb__help_check, check_file);
}

/* ---- fmt ---- */

const ebb__help ebb__help_fmt = {
    .name = "fmt",
    .what = "format .ebb files",
    .text = "Formats the files in place. One with a syntax error stays as it is.",
    .forms = (const ebb__help_form[]){{NULL, "FILE...", ""}, {0}},
    .options =
        (const ebb__help_option[]){
            {"--check", NULL, NULL, 0, "Writes nothing; names the files that would change."}, {0}},
    .exits = (const ebb__help_row[]){{"0", "all files are formatted"},
                                     {"1", "a file has a syntax error, or with --check would change"},
                                     {"2", "wrong arguments, or a file that can't be read or written"},
                                     {0}},
};

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
    return each_file(argc, argv, "--check", &ebb__help_fmt, fmt_file);
}

/* ---- explain ---- */

const ebb__help ebb__help_explain = {
    .name = "explain",
    .what = "what a diagnostic of the compiler means",
    .text = "Says what a diagnostic means and what to do; without a code it lists them.",
    .forms = (const ebb__help_form[]){{NULL, "[CODE]", ""}, {0}},
    .exits = (const ebb__help_row[]){{"0", "it was printed"}, {"2", "there is no such code"}, {0}},
    .examples = (const ebb__help_row[]){{"ebb explain E0506", "What E0506 means."}, {0}},
};

int ebb__cmd_explain(int argc, char **argv) {
    const ebb_lang_code *code;
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return ebb__help_show(&ebb__help_explain);
    if (argc > 2) return ebb__help_refuse(&ebb__help_explain);
    for (size_t i = 0; argc == 1 && (code = ebb_lang_code_at(i)) != NULL; i++)
        printf("%s  %s\n", code->code, code->title);
    if (argc == 1) return EBB__EXIT_OK;
    code = ebb_lang_explain(argv[1]);
    if (code == NULL) {
        ebb__cli_error("there is no code '%s'; `ebb explain` lists them", argv[1]);
        return EBB__EXIT_USAGE;
    }
    printf("%s  %s\n\n", code->code, code->title);
    ebb__help_wrap(stdout, code->text, 0);
    return EBB__EXIT_OK;
}
