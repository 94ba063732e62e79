/* Mounting: the options, the record, the routes. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "kernel/layer.h"
#include "serve/serve.h"

enum { RATE = 10000, PATTERN = 160, HOST_MOST = 253 };

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static _Thread_local char error[512];

const char *ebb_dashboard_error(void) {
    return error;
}

ebb_status ebb__dashboard_say(ebb_status st, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error, sizeof error, format, args);
    va_end(args);
    return st;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static ebb_status check_prefix(const char *prefix) {
    size_t n = strlen(prefix);
    bool valid = n <= EBB__PREFIX && strpbrk(prefix, ":*?#%") == NULL && strstr(prefix, "//") == NULL;
    valid = valid && (n == 0 || (n > 1 && prefix[0] == '/' && prefix[n - 1] != '/'));
    if (valid) return EBB_OK;
    return ebb__dashboard_say(EBB_ERR_INVALID,
                              "prefix '%.80s' is not valid: at most %d bytes, with a '/' first and none last",
                              prefix, EBB__PREFIX);
}

static bool is_loopback(const char *ip) {
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, ip, &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, ip, &v6) != 1) return false;
    return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

static ebb_status take_address(ebb_cx *cx, ebb__dashboard *d, const ebb_dashboard_opts *o) {
    ebb_address at;
    ebb_status st = ebb_http_server_address(cx, d->server, &at);
    if (st != EBB_OK) return st;
    d->loopback = is_loopback(at.ip);
    if (d->loopback || o->token_file != NULL) return EBB_OK;
    return ebb__dashboard_say(
        EBB_ERR_INVALID, "the server listens on %s, which is not a loopback address: it needs a token file",
        at.ip);
}

static ebb_status take_hosts(ebb__dashboard *d, const char *const *hosts) {
    for (size_t i = 0; hosts != NULL && hosts[i] != NULL; i++) {
        size_t n = strlen(hosts[i]);
        if (i == EBB__HOSTS) return ebb__dashboard_say(EBB_ERR_INVALID, "more than %d hosts", EBB__HOSTS);
        if (n == 0 || n > HOST_MOST || strpbrk(hosts[i], ":/@ ") != NULL)
            return ebb__dashboard_say(EBB_ERR_INVALID, "host '%.80s' is not valid: a name without a port",
                                      hosts[i]);
        d->hosts[i] = ebb__alloc(d->allocator, n + 1);
        if (d->hosts[i] == NULL) return EBB_ERR_NOMEM;
        memcpy(d->hosts[i], hosts[i], n + 1);
        d->hosts_n = i + 1;
    }
    return EBB_OK;
}

static ebb_status take(ebb_cx *cx, ebb__dashboard *d, const ebb_dashboard_opts *o) {
    d->since = ebb_now(cx);
    d->store = o->store;
    d->worker = o->worker;
    if (o->worker != NULL) d->worker_region = ebb_worker_region(o->worker);
    d->reads_second = o->reads_second != 0 ? o->reads_second : RATE;
    d->changes_second = o->changes_second != 0 ? o->changes_second : RATE;
    ebb_status st = take_address(cx, d, o);
    if (st == EBB_OK && o->token_file != NULL) st = ebb__token_read(o->token_file, d->digest);
    d->has_token = o->token_file != NULL;
    return st == EBB_OK ? take_hosts(d, o->hosts) : st;
}

/* ---- the record -------------------------------------------------------------------------------------------------- */

static void dashboard_free(ebb__dashboard *d) {
    for (size_t i = 0; i < d->hosts_n; i++) ebb__free(d->allocator, d->hosts[i], strlen(d->hosts[i]) + 1);
    ebb__free(d->allocator, d, sizeof *d);
}

static ebb_status server_ended(ebb_cx *cx, void *dash) {
    ebb__capture_free(ebb__rt_of(cx), dash);
    dashboard_free(dash);
    return EBB_OK;
}

static ebb_status add_routes(ebb__dashboard *d, const char *prefix) {
    size_t n;
    const ebb__route *routes = ebb__routes_of_dashboard(&n);
    ebb_status st = EBB_OK;
    for (size_t i = 0; i < n && st == EBB_OK; i++) {
        char pattern[PATTERN];
        (void)snprintf(pattern, sizeof pattern, "%s%s", prefix, routes[i].pattern);
        d->bindings[i] = (ebb__binding){d, &routes[i]};
        st = ebb_http_on(d->server, routes[i].method, pattern, ebb__dispatch, &d->bindings[i]);
        if (st == EBB_ERR_BUSY)
            (void)ebb__dashboard_say(st, "the server has a handler for %s %s already", routes[i].method,
                                     pattern);
    }
    return st;
}

ebb_status ebb_dashboard_mount(ebb_cx *cx, ebb_http_server *s, const ebb_dashboard_opts *opts) {
    ebb_dashboard_opts o;
    error[0] = 0;
    if (s == NULL) return ebb__dashboard_say(EBB_ERR_INVALID, "no server");
    ebb_status st = EBB__OPTS_COPY(&o, opts);
    if (st != EBB_OK) return st;
    if (o.prefix == NULL) o.prefix = "/ebb";
    st = check_prefix(o.prefix);
    if (st != EBB_OK) return st;
    const ebb_allocator *a = ebb__rt_allocator(ebb__rt_of(cx));
    ebb__dashboard *d = ebb__alloc(a, sizeof *d);
    if (d == NULL) return EBB_ERR_NOMEM;
    memset(d, 0, sizeof *d); /* it is too large for a fiber's stack */
    d->allocator = a;
    d->server = s;
    d->answered = EBB_PENDING;
    st = take(cx, d, &o);
    if (st == EBB_OK) st = ebb_region_defer(cx, ebb_http_server_region(s), server_ended, d);
    if (st != EBB_OK) {
        dashboard_free(d);
        return st;
    }
    return add_routes(d, o.prefix);
}
