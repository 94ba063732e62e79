/* cli/modules.h - the files of a .ebb program. */
#ifndef EBB_CLI_MODULES_H
#define EBB_CLI_MODULES_H

#include "cli/cli.h"
#include <ebb/lang.h>

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

#endif
