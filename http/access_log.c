/* The access log. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>

#include "http/http.h"

enum { LINE = 512, PATH = 256 };

/* Bytes of a client must not start a new line or end the quotes. */
static void put_clean(char *to, size_t room, const char *from) {
    size_t n = 0;
    for (; *from != 0 && n + 1 < room; from++) {
        unsigned char ch = (unsigned char)*from;
        to[n++] = ch < 0x20 || ch >= 0x7f || ch == '"' || ch == '\\' ? '?' : (char)ch;
    }
    to[n] = 0;
}

static const char *how(const ebb_http *x) {
    if (ebb__exchange_is_lost(x)) return "lost";
    if (x->report == EBB_CANCELLED) return "cancelled";
    return x->report == EBB_OK ? "ok" : ebb_status_name(x->report); /* the handler's status */
}

void ebb__access_line(const ebb_http *x) {
    const ebb_http_server *s = x->conn->server;
    char line[LINE], path[PATH], method[32];
    put_clean(path, sizeof path, x->path);
    put_clean(method, sizeof method, x->method);
    uint64_t us = (ebb__now(x->loop->rt) - x->began) / EBB_US;
    int n = snprintf(line, sizeof line,
                     "%s \"%s %s HTTP/%d.%d\" %d in=%" PRIu64 " out=%" PRIu64 " us=%" PRIu64 " %s\n",
                     x->conn->peer.ip, method, path, x->version / 10, x->version % 10, x->status, x->in_bytes,
                     x->out_bytes, us, how(x));
    s->access(s->ctx, line, n < LINE ? (size_t)n : LINE - 1);
}
