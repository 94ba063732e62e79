/* cli/app.h - what `ebb worker`, `ebb serve` and `ebb durable` share: opening a store, and programs of orchestrations and activities as
 * shared libraries. */
#ifndef EBB_CLI_APP_H
#define EBB_CLI_APP_H

#include <ebb/app.h>

/* Opens a store, on a fiber. A SQLite file may have a short command as its owner, or one that can't be asked yet: busy
 * files are tried for 2 s. Not EBB_OK: an error was printed, but for EBB_CANCELLED. */
ebb_status ebb__durable_open(ebb_cx *cx, const ebb_store_opts *opts, ebb_store **out);

/* Loads a library and finds its `ebb_app`. NULL: an error was printed. It is never unloaded. */
ebb_app_fn ebb__app_load(const char *path);
/* Has it register on a worker. Not EBB_OK: an error was printed. */
ebb_status ebb__app_register(ebb_cx *cx, ebb_worker *w, const char *path, ebb_app_fn app);

/* The library's `ebb_app_http`, once it is loaded. NULL: it has none. */
ebb_app_http_fn ebb__app_load_http(const char *path);
/* Makes a server at *address for the routes of an application, in the region of cx, and has the application add them.
 * Writes the port that the system chose to *address. Not EBB_OK: an error was printed. */
ebb_status ebb__app_serve(ebb_cx *cx, const char *path, ebb_app_http_fn fn, ebb_address *address,
                          ebb_store *store);

/* Whether a text is "NAME=COMMAND". */
bool ebb__app_is_command(const char *text);
/* Registers such a shell command as an activity. Not EBB_OK: an error was printed. */
ebb_status ebb__app_command(ebb_worker *w, const char *text);

/* Prints an error of the durable layer: what it was about, and its text, or that of the status. */
void ebb__durable_print_error(const char *what, ebb_status st);

#endif
