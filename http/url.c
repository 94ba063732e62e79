/* URLs: the part of RFC 3986 that a client needs; and the authority of a request. */
#define _POSIX_C_SOURCE 200809L
#include "http/url.h"

#include <arpa/inet.h>
#include <string.h>

#include "http/fields.h"

enum { URL_BYTES = EBB__URL_BYTES, HOST_BYTES = 255, HTTP_PORT = 80, HTTPS_PORT = 443 };

/* The end of a printable text within the length limit; NULL: it is not one. */
static const char *end_of(const char *text) {
    size_t n = 0;
    for (; text[n] != 0; n++) {
        if (n == URL_BYTES || text[n] <= ' ' || text[n] > '~') return NULL;
    }
    return text + n;
}

static const char *after_scheme(const char *text, size_t n, bool *tls) {
    *tls = n >= 8 && ebb__same_name(text, 8, "https://", 8);
    if (*tls) return text + 8;
    return n >= 7 && ebb__same_name(text, 7, "http://", 7) ? text + 7 : NULL;
}

static bool is_host_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
}

static bool is_name(const char *at, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!is_host_char(at[i])) return false;
    }
    return n > 0 && n <= HOST_BYTES;
}

static bool is_ipv6(const char *at, size_t n) {
    char text[INET6_ADDRSTRLEN];
    struct in6_addr into;
    if (n >= sizeof text) return false;
    memcpy(text, at, n);
    text[n] = 0;
    return inet_pton(AF_INET6, text, &into) == 1;
}

/* Sets the host. Returns the text after it up to `end`, or NULL. */
static const char *take_host(ebb__url *u, const char *at, const char *end) {
    bool bracketed = at < end && *at == '[';
    if (bracketed) at++;
    const char *stop = memchr(at, bracketed ? ']' : ':', (size_t)(end - at));
    if (stop == NULL && bracketed) return NULL;
    if (stop == NULL) stop = end;
    u->host = at;
    u->host_n = (size_t)(stop - at);
    if (!bracketed) return is_name(at, u->host_n) ? stop : NULL;
    return is_ipv6(at, u->host_n) ? stop + 1 : NULL;
}

/* "", ":" and ":8080". */
static bool take_port(ebb__url *u, const char *at, const char *end) {
    uint64_t port;
    u->port = u->tls ? HTTPS_PORT : HTTP_PORT;
    if (at == end) return true;
    if (*at != ':') return false;
    if (++at == end) return true;
    if (!ebb__parse_u64(at, (size_t)(end - at), &port) || port == 0 || port > UINT16_MAX) return false;
    u->port = (uint16_t)port;
    return true;
}

static bool take_authority(ebb__url *u, const char *at, const char *end) {
    const char *port = take_host(u, at, end);
    if (port == NULL || !take_port(u, port, end)) return false;
    u->authority = at;
    u->authority_n = (size_t)((end - port == 1 ? port : end) - at); /* without a ":" that no port follows */
    return true;
}

static void take_path(ebb__url *u, const char *at) {
    u->path = at;
    u->path_n = strcspn(at, "#");
    if (u->path_n > 0) return;
    u->path = "/";
    u->path_n = 1;
}

bool ebb__url_parse(const char *text, ebb__url *out) {
    const char *end = text != NULL ? end_of(text) : NULL;
    *out = (ebb__url){0};
    if (end == NULL) return false;
    const char *at = after_scheme(text, (size_t)(end - text), &out->tls);
    if (at == NULL) return false;
    const char *path = at + strcspn(at, "/?#");
    take_path(out, path);
    return take_authority(out, at, path);
}

/* ---- authorities -------------------------------------------------------------------------------------------- */

static bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* A reg-name of RFC 3986, section 3.2.2, without the comma, which would make a list of a host field. */
static bool is_reg_name(const char *at, size_t n) {
    static const char marks[] = "~!$&'()*+;=";
    for (size_t i = 0; i < n; i++) {
        if (at[i] == '%') {
            if (n - i < 3 || !is_hex(at[i + 1]) || !is_hex(at[i + 2])) return false;
            i += 2;
        } else if (!is_host_char(at[i]) && memchr(marks, at[i], sizeof marks - 1) == NULL) {
            return false;
        }
    }
    return n > 0;
}

/* The length of the host; 0: it is invalid. */
static size_t host_length(const char *at, size_t n) {
    if (n > 0 && at[0] == '[') {
        const char *stop = memchr(at, ']', n);
        return stop != NULL && is_ipv6(at + 1, (size_t)(stop - at) - 1) ? (size_t)(stop - at) + 1 : 0;
    }
    const char *stop = memchr(at, ':', n);
    size_t host_n = stop != NULL ? (size_t)(stop - at) : n;
    return is_reg_name(at, host_n) ? host_n : 0;
}

/* "", ":" and ":8080". -1: invalid. */
static int64_t port_of(const char *at, size_t n, bool tls) {
    uint64_t port = tls ? HTTPS_PORT : HTTP_PORT;
    if (n > 0 && at[0] != ':') return -1;
    if (n > 1 && (!ebb__parse_u64(at + 1, n - 1, &port) || port > UINT16_MAX)) return -1;
    return (int64_t)port;
}

bool ebb__is_authority(const char *at, size_t n) {
    if (n == 0) return true;
    size_t host_n = host_length(at, n);
    return host_n > 0 && port_of(at + host_n, n - host_n, false) >= 0;
}

bool ebb__same_authority(const char *a, const char *b, bool tls) {
    size_t a_n = strlen(a), b_n = strlen(b), a_host = host_length(a, a_n), b_host = host_length(b, b_n);
    return ebb__same_name(a, a_host, b, b_host) &&
           port_of(a + a_host, a_n - a_host, tls) == port_of(b + b_host, b_n - b_host, tls);
}

/* ---- references ----------------------------------------------------------------------------------------------- */

typedef struct text {
    char *at;
    size_t n;
    bool full;
} text;

static void put(text *t, const char *from, size_t n) {
    t->full = t->full || n > EBB__URL_BYTES - t->n;
    if (t->full) return;
    memcpy(t->at + t->n, from, n);
    t->n += n;
}

/* The length of a scheme ("http:", "mailto:"); 0: none. */
static size_t scheme_of(const char *at) {
    size_t n = strcspn(at, ":/?#");
    bool letter = (at[0] >= 'a' && at[0] <= 'z') || (at[0] >= 'A' && at[0] <= 'Z');
    return letter && at[n] == ':' ? n + 1 : 0;
}

static void pop_segment(text *t, size_t root) {
    while (t->n > root && t->at[--t->n] != '/') continue;
}

/* Copies the segments of a path, each with its "/", and resolves "." and "..". Nothing goes above `root`, where paths
 * start. */
static void put_path(text *t, size_t root, const char *at, size_t n) {
    const char *end = at + n;
    while (at < end) {
        size_t k = at[0] == '/' ? 1 : 0;
        while (at + k < end && at[k] != '/') k++;
        const char *name = at + (at[0] == '/');
        size_t name_n = k - (size_t)(name - at);
        bool last = at + k == end, up = name_n == 2 && name[0] == '.' && name[1] == '.';
        if (up) pop_segment(t, root);
        if (!up && !(name_n == 1 && name[0] == '.')) {
            put(t, "/", 1);
            put(t, name, name_n);
        } else if (last) {
            put(t, "/", 1);
        }
        at += k;
    }
}

static size_t path_end(const char *at, size_t n) {
    size_t k = 0;
    while (k < n && at[k] != '?') k++;
    return k;
}

/* Path and query of the reference, after the authority. */
static void put_rest(text *t, const ebb__url *base, const char *ref, bool authority) {
    size_t root = t->n, path_n = strcspn(ref, "?#"), base_n = path_end(base->path, base->path_n);
    if (path_n == 0 && !authority) {
        bool query = ref[0] == '?';
        put(t, base->path, query ? base_n : base->path_n);
    } else if (ref[0] == '/' || authority) {
        put_path(t, root, ref, path_n);
        if (t->n == root) put(t, "/", 1);
    } else {
        while (base_n > 0 && base->path[base_n - 1] != '/') base_n--;
        put_path(t, root, base->path, base_n > 0 ? base_n - 1 : 0);
        put_path(t, root, ref, path_n);
    }
    const char *query = ref + path_n;
    if (query[0] == '?') put(t, query, strcspn(query, "#"));
}

bool ebb__url_resolve(const ebb__url *base, const char *ref, char *to) {
    text t = {.at = to};
    size_t scheme = scheme_of(ref);
    bool authority = scheme > 0 || (ref[0] == '/' && ref[1] == '/');
    if (scheme > 0) put(&t, ref, scheme);
    else put(&t, base->tls ? "https:" : "http:", base->tls ? 6 : 5);
    ref += scheme;
    size_t slashes = ref[0] == '/' && ref[1] == '/' ? 2 : 0;
    size_t n = authority && slashes > 0 ? 2 + strcspn(ref + 2, "/?#") : 0;
    put(&t, authority ? ref : "//", authority ? n : 2);
    if (!authority) put(&t, base->authority, base->authority_n);
    put_rest(&t, base, ref + n, authority);
    to[t.n] = 0;
    return !t.full;
}
