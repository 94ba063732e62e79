/* cli/daemon.h - `ebb serve`: its arguments, and the directory with what it keeps. */
#ifndef EBB_CLI_DAEMON_H
#define EBB_CLI_DAEMON_H

#include <limits.h>

#include <ebb/ebb.h>

typedef struct ebb__daemon {
    /* As given, or by default. */
    const char *dir, *url, *listen, *load;
    const char *programs_dir; /* NULL: none */
    const char **activities;  /* NAME=COMMAND */
    size_t activities_n;
    const char **hosts; /* NULL after the last */
    size_t hosts_n;

    char store[PATH_MAX + 16]; /* the URL of the store in `dir` */
    char token[PATH_MAX];      /* the path of the token file */
    char log[PATH_MAX];        /* and that of the audit log */
    ebb_address address;
    ebb_app_fn app;                 /* NULL: none */
    struct ebb__programs *programs; /* NULL: none */
    bool begun;
} ebb__daemon;

/* Reads the arguments. The arrays are freed by ebb__daemon_free in any case. False: an error was printed. */
bool ebb__daemon_parse(ebb__daemon *d, int argc, char **argv);
void ebb__daemon_free(ebb__daemon *d);

/* Makes the directory, for its user alone, and in it a token if there is none. False: an error was printed. */
bool ebb__daemon_prepare(ebb__daemon *d);

#endif
