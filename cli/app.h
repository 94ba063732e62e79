/* cli/app.h - programs of orchestrations and activities as shared libraries: what `ebb worker` and `ebb durable replay`
 * load. */
#ifndef EBB_CLI_APP_H
#define EBB_CLI_APP_H

#include <ebb/durable.h>

/* Loads a library and finds its `ebb_app`. NULL: an error was printed. It is never unloaded. */
ebb_app_fn ebb__app_load(const char *path);
/* Has it register on a worker. Not EBB_OK: an error was printed. */
ebb_status ebb__app_register(ebb_cx *cx, ebb_worker *w, const char *path, ebb_app_fn app);

/* Prints an error of the durable layer: what it was about, and its text, or that of the status. */
void ebb__durable_print_error(const char *what, ebb_status st);

#endif
