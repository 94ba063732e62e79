/* URLs of stores: "scheme:path" and "scheme://user:password@host:port/path?a=b&c=d". */
#include <stdio.h>
#include <string.h>

#include "durable/provider.h"

enum { OPTIONS = sizeof((ebb__store_url *)0)->option / sizeof((ebb__store_url *)0)->option[0] };

typedef struct parser {
    ebb__arena *arena;
    char *text; /* of the failure */
    size_t room;
    ebb_status status;
} parser;

static void refuse(parser *p, const char *part, const char *why) {
    if (p->status != EBB_OK) return;
    p->status = EBB_ERR_INVALID;
    (void)snprintf(p->text, p->room, "the URL of a store: %s %s", part, why);
}

static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Copies [from, to) without its %xx. A byte 0 is in no part. */
static const char *decoded(parser *p, const char *part, const char *from, const char *to) {
    char *out = ebb__arena_alloc(p->arena, (size_t)(to - from) + 1);
    if (out == NULL) {
        if (p->status == EBB_OK) p->status = EBB_ERR_NOMEM;
        return "";
    }
    char *at = out;
    while (from < to) {
        if (*from != '%') {
            *at++ = *from++;
            continue;
        }
        const int high = to - from > 2 ? hex(from[1]) : -1;
        const int low = high >= 0 ? hex(from[2]) : -1;
        if (low < 0 || high + low == 0) {
            refuse(p, part, "has a % that is not followed by two hex digits of a byte");
            break;
        }
        *at++ = (char)(high << 4 | low);
        from += 3;
    }
    *at = 0;
    return out;
}

static const char *find(const char *from, const char *to, char c) {
    const char *at = from < to ? memchr(from, c, (size_t)(to - from)) : NULL;
    return at != NULL ? at : to;
}

static uint16_t port_of(parser *p, const char *from, const char *to) {
    uint32_t n = 0;
    for (const char *at = from; at < to; at++) {
        if (*at < '0' || *at > '9' || (n = n * 10 + (uint32_t)(*at - '0')) > 65535) {
            refuse(p, "its port", "is not a number up to 65535");
            return 0;
        }
    }
    return (uint16_t)n;
}

static void read_host(parser *p, ebb__store_url *u, const char *from, const char *to) {
    const char *end = find(from, to, ':');
    if (from < to && *from == '[') {
        const char *close = find(from, to, ']');
        if (close == to) {
            refuse(p, "its host", "has no ']'");
            return;
        }
        end = close + 1;
        if (end < to && *end != ':') refuse(p, "its host", "goes on behind the ']'");
        u->host = decoded(p, "its host", from + 1, close);
    } else {
        u->host = decoded(p, "its host", from, end);
    }
    if (end < to) u->port = port_of(p, end + 1, to);
}

/* What stands between "//" and the path. The last '@' ends the user, so that a password may have one. */
static void read_authority(parser *p, ebb__store_url *u, const char *from, const char *to) {
    const char *at = to;
    while (at > from && at[-1] != '@') at--;
    if (at > from) {
        const char *colon = find(from, at - 1, ':');
        u->user = decoded(p, "its user", from, colon);
        if (colon < at - 1) u->password = decoded(p, "its password", colon + 1, at - 1);
        from = at;
    }
    read_host(p, u, from, to);
}

static void read_options(parser *p, ebb__store_url *u, const char *from, const char *to) {
    while (from < to) {
        const char *end = find(from, to, '&'), *equals = find(from, end, '=');
        if (u->options == OPTIONS) {
            refuse(p, "it", "has more than 16 options");
            return;
        }
        if (equals == from) refuse(p, "an option", "has no name");
        u->option[u->options].name = decoded(p, "an option", from, equals);
        u->option[u->options].value = equals < end ? decoded(p, "an option", equals + 1, end) : "";
        u->options++;
        from = end < to ? end + 1 : to;
    }
}

ebb_status ebb__store_url_parse(ebb__arena *arena, const char *url, ebb__store_url *out, char *text,
                                size_t room) {
    parser p = {arena, text, room, EBB_OK};
    const char *end = url + strlen(url), *colon = find(url, end, ':');
    memset(out, 0, sizeof *out);
    out->scheme = out->user = out->password = out->host = out->path = "";
    if (colon == url || colon == end) refuse(&p, "it", "has no scheme, as \"sqlite:\"");
    if (p.status != EBB_OK) return p.status;
    const char *path = colon + 1, *query = find(path, end, '?');
    out->scheme = decoded(&p, "its scheme", url, colon);
    if (query - path >= 2 && path[0] == '/' && path[1] == '/') {
        const char *slash = find(path + 2, query, '/');
        read_authority(&p, out, path + 2, slash);
        path = slash;
    }
    out->path = decoded(&p, "its path", path, query);
    if (query < end) read_options(&p, out, query + 1, end);
    return p.status;
}

void ebb__store_url_say(const char *url, char *out, size_t room) {
    const char *end = url + strlen(url), *slashes = strstr(url, "://");
    const char *from = slashes != NULL ? slashes + 3 : end;
    const char *to = from + strcspn(from, "/?"), *at = to;
    while (at > from && at[-1] != '@') at--;
    const char *colon = at > from ? find(from, at - 1, ':') : end;
    if (at == from || colon == at - 1) (void)snprintf(out, room, "%s", url);
    else (void)snprintf(out, room, "%.*s:***@%s", (int)(colon - url), url, at);
}

const char *ebb__store_url_option(const ebb__store_url *u, const char *name) {
    for (size_t i = 0; i < u->options; i++) {
        if (strcmp(u->option[i].name, name) == 0) return u->option[i].value;
    }
    return NULL;
}
