/* cli/daemon_config.h - the file of `ebb serve --config`: options as lines.
 *
 *     # where operators reach it
 *     listen = 127.0.0.1:7070
 *     activity = charge=sleep 1; echo '"paid"'
 *
 * A name is that of an option without its dashes. A value is the rest of the line, without the spaces around it. A line
 * that is empty, or begins with '#', is none. */
#ifndef EBB_CLI_DAEMON_CONFIG_H
#define EBB_CLI_DAEMON_CONFIG_H

#include "cli/cli.h"

enum { EBB__CONFIG_MOST = 65536 }; /* bytes of a file */

/* Reads a file; *lines is how many it has. free(out->bytes). False: an error was printed. */
bool ebb__config_read(const char *path, ebb__cli_file *out, size_t *lines);
/* Calls `take` for each setting, in order, until it returns false. The texts are in the file's bytes, which are changed.
 * False: an error was printed, here or by `take`. */
bool ebb__config_each(ebb__cli_file *file,
                      bool (*take)(void *ctx, const char *name, const char *value, unsigned line), void *ctx);

#endif
