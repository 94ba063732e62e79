/* cli/daemon.h - `ebb serve`: its arguments, and the directory with what it keeps. */
#ifndef EBB_CLI_DAEMON_H
#define EBB_CLI_DAEMON_H

#include <limits.h>

#include "cli/daemon_config.h"
#include "cli/service.h"

/* What an option was given that may be given more than once. */
typedef struct ebb__daemon_list {
    const char **at; /* NULL after the last */
    size_t n;
} ebb__daemon_list;

typedef struct ebb__daemon {
    /* As given, or by default. */
    const char *dir, *url, *listen, *app_listen, *load, *config;
    const char *programs_dir;    /* NULL: none */
    ebb__daemon_list activities; /* NAME=COMMAND */
    ebb__daemon_list hosts;
    ebb__cli_file file; /* that of `config`; texts above are in it */

    char store[3 * PATH_MAX]; /* the URL of the store in `dir` */
    char token[PATH_MAX];     /* the path of the token file */
    char log[PATH_MAX];       /* and that of the audit log */
    ebb_address address, app_address;
    ebb_app_fn app;                 /* NULL: none */
    ebb_app_http_fn app_http;       /* NULL: it has no routes */
    struct ebb__programs *programs; /* NULL: none */

    ebb_store *open_store;
    ebb_worker *worker; /* NULL: there is nothing to run */
    ebb__cli_service run;
} ebb__daemon;

/* Reads the arguments, and the file of --config. The lists are freed by ebb__daemon_free in any case. False: an error was printed. */
bool ebb__daemon_parse(ebb__daemon *d, int argc, char **argv);
void ebb__daemon_free(ebb__daemon *d);

/* Makes the directory, for its user alone, and in it a token if there is none. False: an error was printed. */
bool ebb__daemon_prepare(ebb__daemon *d);

#endif
