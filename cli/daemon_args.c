/* cli/daemon_args.c - the arguments of `ebb serve`. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/app.h"
#include "cli/daemon.h"
#include "cli/line.h"

static const char default_listen[] = "127.0.0.1:7070", default_app_listen[] = "127.0.0.1:7071",
                  default_dir[] = ".ebb";

static bool is_ip(const char *ip) {
    struct in6_addr any;
    return inet_pton(AF_INET, ip, &any) == 1 || inet_pton(AF_INET6, ip, &any) == 1;
}

/* Where a value comes from. */
typedef struct origin {
    const char *file; /* NULL: the command line */
    unsigned line;
} origin;

/* "FILE:LINE: listen ..." or "--listen ...". Returns false. */
__attribute__((format(printf, 3, 4))) static bool refuse(origin from, const char *name, const char *format,
                                                         ...) {
    char why[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    ebb__make_plain(why);
    if (from.file != NULL) ebb__cli_error("%s:%u: %s %s", from.file, from.line, name, why);
    else ebb__cli_error("--%s %s", name, why);
    return false;
}

/* "127.0.0.1:7070", "[::1]:7070". */
static bool is_address(const char *text, ebb_address *out) {
    bool v6 = text[0] == '[';
    const char *at = text + v6, *end = strrchr(text, ':'), *last = end != NULL && v6 ? end - 1 : end;
    char *rest;
    if (last == NULL || last <= at || (size_t)(last - at) >= sizeof out->ip || (v6 && *last != ']'))
        return false;
    (void)snprintf(out->ip, sizeof out->ip, "%.*s", (int)(last - at), at);
    unsigned long port = strtoul(end + 1, &rest, 10);
    out->port = (uint16_t)port;
    return end[1] >= '0' && end[1] <= '9' && *rest == 0 && port <= UINT16_MAX && is_ip(out->ip) &&
           v6 == (strchr(out->ip, ':') != NULL);
}

/* ---- options ----------------------------------------------------------------------------------------- */

/* `at`: of a text in ebb__daemon; `list`: of a list there, for options that may be given more than once. */
static const struct {
    const char *name;
    size_t at, list;
} options[] = {
    {"store", offsetof(ebb__daemon, url), 0},
    {"listen", offsetof(ebb__daemon, listen), 0},
    {"load", offsetof(ebb__daemon, load), 0},
    {"dir", offsetof(ebb__daemon, dir), 0},
    {"config", offsetof(ebb__daemon, config), 0},
    {"host", 0, offsetof(ebb__daemon, hosts)},
    {"activity", 0, offsetof(ebb__daemon, activities)},
    {"app-listen", offsetof(ebb__daemon, app_listen), 0},
    {"programs", offsetof(ebb__daemon, programs_dir), 0},
};
enum { OPTIONS = sizeof options / sizeof *options, ARGUMENT = UINT_MAX };

typedef struct arguments {
    ebb__daemon *d;
    const char *file;
    unsigned set[OPTIONS]; /* the line that has it; ARGUMENT: the command line; 0: not given */
} arguments;

static bool check(ebb__daemon *d, size_t i, const char *value, origin from) {
    const char *name = options[i].name;
    ebb_address *address = strcmp(name, "listen") == 0       ? &d->address
                           : strcmp(name, "app-listen") == 0 ? &d->app_address
                                                             : NULL;
    if (address != NULL && !is_address(value, address))
        return refuse(from, name, "takes ADDRESS:PORT as 127.0.0.1:7070 or [::1]:7070, not '%s'", value);
    if (strcmp(name, "activity") == 0 && !ebb__app_is_command(value))
        return refuse(from, name, "takes NAME=COMMAND, not '%s'", value);
    return true;
}

static void add(ebb__daemon_list *list, const char *value) {
    list->at[list->n++] = value;
}

/* The command line is taken first, and wins: of a list too. */
static bool set(arguments *a, size_t i, const char *value, origin from) {
    char *at = (char *)a->d;
    const unsigned by = from.file != NULL ? from.line : ARGUMENT, before = a->set[i];
    if (before == ARGUMENT && by != ARGUMENT) return true;
    if (options[i].list == 0 && before == ARGUMENT) return refuse(from, options[i].name, "is given twice");
    if (options[i].list == 0 && before != 0)
        return refuse(from, options[i].name, "is given twice: line %u has it", before);
    if (!check(a->d, i, value, from)) return false;
    a->set[i] = by;
    if (options[i].list == 0) *(const char **)(void *)(at + options[i].at) = value;
    else add((ebb__daemon_list *)(void *)(at + options[i].list), value);
    return true;
}

/* OPTIONS: there is none. */
static size_t option_of(const char *name) {
    size_t i = 0;
    while (i < OPTIONS && strcmp(options[i].name, name) != 0) i++;
    return i;
}

/* ---- the command line, and the file ------------------------------------------------------------------- */

static bool set_arguments(arguments *a, int argc, char **argv) {
    for (int i = 0; i < argc; i += 2) {
        const bool dashes = strncmp(argv[i], "--", 2) == 0;
        const size_t option = dashes ? option_of(argv[i] + 2) : OPTIONS;
        if (option == OPTIONS)
            ebb__cli_error("unexpected argument '%s'%s", argv[i],
                           argv[i][0] == '-' ? "" : "; `ebb files DIR` serves files");
        else if (i + 1 == argc) ebb__cli_error("%s needs a value", argv[i]);
        if (option == OPTIONS || i + 1 == argc || !set(a, option, argv[i + 1], (origin){NULL, 0}))
            return false;
    }
    return true;
}

static bool set_line(void *ctx, const char *name, const char *value, unsigned line) {
    arguments *a = ctx;
    const size_t option = option_of(name);
    if (option < OPTIONS && strcmp(name, "config") != 0)
        return set(a, option, value, (origin){a->file, line});
    ebb__cli_error("%s:%u: '%.60s' is not known; expected activity, app-listen, dir, host, listen, load, "
                   "programs or store",
                   a->file, line, name);
    return false;
}

/* A path may have what ends one in a URL. */
static void write_url(ebb__daemon *d) {
    char *at = d->store + snprintf(d->store, sizeof d->store, "sqlite:");
    for (const char *from = d->dir; *from != 0; from++) {
        if (strchr("%?#", *from) == NULL) *at++ = *from;
        else at += sprintf(at, "%%%02x", (unsigned char)*from);
    }
    memcpy(at, "/ebb.db", sizeof "/ebb.db");
}

static bool set_paths(ebb__daemon *d) {
    static const char *const names[] = {"token", "audit.jsonl"};
    char *const paths[] = {d->token, d->log};
    for (size_t i = 0; i < 2; i++) {
        int n = snprintf(paths[i], PATH_MAX, "%s/%s", d->dir, names[i]);
        if (n > 0 && n < PATH_MAX) continue;
        ebb__cli_error("--dir has more than %d bytes", PATH_MAX);
        return false;
    }
    write_url(d);
    if (d->url == NULL) d->url = d->store;
    return true;
}

/* Room for what the arguments and the lines of the file may have. */
static bool lists_new(ebb__daemon *d, size_t most) {
    d->activities.at = calloc(most + 1, sizeof *d->activities.at);
    d->hosts.at = calloc(most + 1, sizeof *d->hosts.at);
    if (d->activities.at != NULL && d->hosts.at != NULL) return true;
    ebb__cli_error("no memory");
    return false;
}

/* The value of --config; NULL: none. */
static const char *config_in(int argc, char **argv) {
    for (int i = 0; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--config") == 0) return argv[i + 1];
    }
    return NULL;
}

bool ebb__daemon_parse(ebb__daemon *d, int argc, char **argv) {
    const char *config = config_in(argc, argv);
    arguments a = {.d = d, .file = config};
    size_t lines = 0;
    (void)is_address(default_listen, &d->address);
    (void)is_address(default_app_listen, &d->app_address);
    if (config != NULL && !ebb__config_read(config, &d->file, &lines)) return false;
    if (!lists_new(d, (size_t)argc + lines) || !set_arguments(&a, argc, argv)) return false;
    if (config != NULL && !ebb__config_each(&d->file, set_line, &a)) return false;
    if (d->dir == NULL) d->dir = default_dir;
    return set_paths(d);
}

void ebb__daemon_free(ebb__daemon *d) {
    free(d->activities.at);
    free(d->hosts.at);
    free(d->file.bytes);
}
