/* cli/modules.h - the files of a .ebb program, and their compilation. */
#ifndef EBB_CLI_MODULES_H
#define EBB_CLI_MODULES_H

#include "cli/cli.h"
#include <ebb/program.h>

/* Modules are files below the directory of the program's first file. What was read is freed with the program. */
typedef struct ebb__modules {
    char *directory;
    ebb__cli_file *files;
    size_t n;
} ebb__modules;

bool ebb__modules_open(ebb__modules *m, const char *path);
void ebb__modules_free(ebb__modules *m);
ebb_status ebb__modules_load(void *ctx, const char *module, const char **out,
                             size_t *n); /* ebb_lang_load_fn */

/* The diagnostics of a compilation. Returns how many are errors. */
size_t ebb__cli_show(const ebb_lang *c, FILE *out, bool json);

/* The text of a file; never NULL. */
const char *ebb__cli_text(const ebb__cli_file *f);

/* A program that compiles. */
typedef struct ebb__compiled {
    const char *path;
    ebb__cli_file file;
    ebb__modules modules;
    ebb_lang *lang;
} ebb__compiled;
/* Reads and compiles a program, and shows what the compiler says. Returns the exit code; after each, close it. */
int ebb__compiled_open(ebb__compiled *c, const char *path);
void ebb__compiled_close(ebb__compiled *c);
/* Makes a program of it. Returns the exit code; an error was printed. */
/* In the report of the program's `opts`: what EBB_PROGRAM_LIMIT says. */
void ebb__compiled_limit(const ebb_program_event *e);
int ebb__compiled_program(const ebb__compiled *c, const ebb_program_opts *opts, ebb_program **out);

#endif
