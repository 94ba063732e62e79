/* cli/daemon_args.c - the arguments of `ebb serve`. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/app.h"
#include "cli/cli.h"
#include "cli/daemon.h"

static const char default_listen[] = "127.0.0.1:7070", default_dir[] = ".ebb";

static bool is_ip(const char *ip) {
    struct in6_addr any;
    return inet_pton(AF_INET, ip, &any) == 1 || inet_pton(AF_INET6, ip, &any) == 1;
}

/* "127.0.0.1:7070", "[::1]:7070". */
static bool read_address(const char *text, ebb_address *out) {
    bool v6 = text[0] == '[';
    const char *at = text + v6, *end = strrchr(text, ':'), *last = end != NULL && v6 ? end - 1 : end;
    bool valid = last != NULL && last > at && (size_t)(last - at) < sizeof out->ip && (!v6 || *last == ']');
    char *rest;
    if (valid) {
        (void)snprintf(out->ip, sizeof out->ip, "%.*s", (int)(last - at), at);
        unsigned long port = strtoul(end + 1, &rest, 10);
        valid = end[1] >= '0' && end[1] <= '9' && *rest == 0 && port <= UINT16_MAX;
        valid = valid && is_ip(out->ip) && v6 == (strchr(out->ip, ':') != NULL);
        out->port = (uint16_t)port;
    }
    if (!valid) ebb__cli_error("--listen takes ADDRESS:PORT as 127.0.0.1:7070 or [::1]:7070, not '%s'", text);
    return valid;
}

static bool set_once(const char **to, const char *option, const char *value) {
    if (*to != NULL) ebb__cli_error("%s is given twice", option);
    else *to = value;
    return *to == value;
}

static bool set(ebb__daemon *d, const char *option, const char *value) {
    const struct {
        const char *name;
        const char **to;
    } once[] = {{"--store", &d->url},
                {"--listen", &d->listen},
                {"--load", &d->load},
                {"--dir", &d->dir},
                {"--programs", &d->programs_dir}};
    for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
        if (strcmp(option, once[i].name) == 0) return set_once(once[i].to, option, value);
    }
    if (strcmp(option, "--host") == 0) {
        d->hosts[d->hosts_n++] = value;
        return true;
    }
    d->activities[d->activities_n++] = value;
    return ebb__app_is_command(value);
}

static bool is_option(const char *text) {
    static const char *const options[] = {"--store", "--listen",   "--load",    "--dir",
                                          "--host",  "--activity", "--programs"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strcmp(text, options[i]) == 0) return true;
    }
    ebb__cli_error("unexpected argument '%s'%s", text,
                   text[0] == '-' ? "" : "; `ebb files DIR` serves files");
    return false;
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
    (void)snprintf(d->store, sizeof d->store, "sqlite:%s/ebb.db", d->dir);
    if (d->url == NULL) d->url = d->store;
    return true;
}

bool ebb__daemon_parse(ebb__daemon *d, int argc, char **argv) {
    d->activities = calloc((size_t)argc + 1, sizeof *d->activities);
    d->hosts = calloc((size_t)argc + 1, sizeof *d->hosts);
    if (d->activities == NULL || d->hosts == NULL) {
        ebb__cli_error("no memory");
        return false;
    }
    for (int i = 0; i < argc; i += 2) {
        if (!is_option(argv[i])) return false;
        if (i + 1 == argc) ebb__cli_error("%s needs a value", argv[i]);
        if (i + 1 == argc || !set(d, argv[i], argv[i + 1])) return false;
    }
    if (d->dir == NULL) d->dir = default_dir;
    return read_address(d->listen != NULL ? d->listen : default_listen, &d->address) && set_paths(d);
}

void ebb__daemon_free(ebb__daemon *d) {
    free(d->activities);
    free(d->hosts);
}
