/* Who may ask. The order matters: a name or an origin that is not ours is refused before anything else, so that a page
 * of another site learns nothing; and who has no token takes nothing of the rate of those who have it. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <string.h>
#include <strings.h>

#include "http/http.h"
#include "serve/serve.h"

enum { HOST_ROOM = 256, WRONG_TOKENS = 20, WRONG_TOKENS_SECOND = 1 };

const char *const ebb__refusal_names[EBB__REFUSALS] = {"host", "origin", "token", "rate"};

/* ---- host and origin --------------------------------------------------------------------------------------------- */

/* Names can be pointed at a loopback address by whoever owns them; addresses can't. */
static bool is_address(const char *host) {
    struct in6_addr any;
    return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

/* The host of "host:port", "[v6]:port". False: it is none. */
static bool host_of(const char *authority, char host[HOST_ROOM]) {
    bool v6 = authority[0] == '[';
    const char *at = authority + v6, *end = at + strcspn(at, v6 ? "]" : ":");
    const char *port = v6 && *end == ']' ? end + 1 : end;
    size_t n = (size_t)(end - at);
    if (n == 0 || n >= HOST_ROOM || (v6 && *end != ']')) return false;
    if (*port != 0 && (*port != ':' || port[1 + strspn(port + 1, "0123456789")] != 0)) return false;
    memcpy(host, at, n);
    host[n] = 0;
    return true;
}

bool ebb__host_is_plain(const char *authority) {
    char host[HOST_ROOM];
    return host_of(authority, host) && (is_address(host) || strcasecmp(host, "localhost") == 0);
}

bool ebb__host_is_ours(const ebb__dashboard *d, const char *authority) {
    char host[HOST_ROOM];
    if (ebb__host_is_plain(authority)) return true;
    if (!host_of(authority, host)) return false;
    for (size_t i = 0; i < d->hosts_n; i++) {
        if (strcasecmp(host, d->hosts[i]) == 0) return true;
    }
    return false;
}

static bool host_is_right(ebb__ask *a) {
    const char *authority = ebb_http_authority(a->x);
    if (ebb__host_is_ours(a->dash, authority)) return true;
    a->dash->refused[EBB__BAD_HOST]++;
    return ebb__problem_set(a, 421, "wrong_host", "header 'host'",
                            "an address, localhost or a host of the options",
                            "'%.80s' is no name of this server", authority);
}

/* Browsers send an origin with every request that a page of another one can make them send, other than a plain GET. That
 * page can't read the answer, but it could use up the rate, or have events streamed: sec-fetch-site tells. Links lead to
 * what is open. */
static bool site_is_right(ebb__ask *a) {
    const char *site = ebb_http_header(a->x, "sec-fetch-site");
    if (a->route->access == EBB__OPEN || site == NULL) return true;
    if (strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0) return true;
    a->dash->refused[EBB__BAD_ORIGIN]++;
    return ebb__problem_set(a, 403, "wrong_origin", "header 'sec-fetch-site'", "same-origin or none",
                            "a page of another origin ('%.60s') has sent this", site);
}

static bool origin_is_right(ebb__ask *a) {
    const char *origin = ebb_http_header(a->x, "origin"), *at;
    if (origin == NULL) return site_is_right(a);
    at = strncasecmp(origin, "https://", 8) == 0  ? origin + 8
         : strncasecmp(origin, "http://", 7) == 0 ? origin + 7
                                                  : NULL;
    if (at != NULL && strcasecmp(at, ebb_http_authority(a->x)) == 0) return site_is_right(a);
    a->dash->refused[EBB__BAD_ORIGIN]++;
    return ebb__problem_set(a, 403, "wrong_origin", "header 'origin'", "the origin of this server",
                            "'%.80s' is another origin", origin);
}

/* ---- token ------------------------------------------------------------------------------------------------------- */

static bool bearer_of(const char *header, const char **token) {
    if (header == NULL || strncasecmp(header, "bearer ", 7) != 0) return false;
    *token = header + 7 + strspn(header + 7, " ");
    return true;
}

/* The time depends on the length of what was sent, and on nothing else. */
static bool is_the_token(const ebb__dashboard *d, const char *token) {
    uint8_t digest[EBB__DIGEST];
    return ebb__token_digest(token, strlen(token), digest) &&
           CRYPTO_memcmp(digest, d->digest, EBB__DIGEST) == 0;
}

static bool needs_token(const ebb__ask *a) {
    return a->route->access == EBB__CHANGE || (a->route->access == EBB__READ && !a->dash->loopback);
}

static ebb__bucket *wrong_tokens_of(const ebb__ask *a) {
    ebb__rate_limits *limits = &a->dash->server->rate_limits;
    return &a->dash->wrong_tokens[ebb__rate_limit_of(limits, ebb_http_peer(a->x)->ip) - limits->address];
}

/* An address that has sent many wrong tokens is told nothing of the next one. */
static bool may_try(ebb__ask *a) {
    const uint64_t now = ebb_now(a->cx);
    if (ebb__bucket_left(wrong_tokens_of(a), now, WRONG_TOKENS, WRONG_TOKENS_SECOND) > 0) return true;
    a->dash->refused[EBB__TOO_OFTEN]++;
    return ebb__problem_set(
        a, 429, "too_many_tokens", "header 'authorization'", NULL,
        "more than %d wrong tokens from this address, and then %d a second: none is compared", WRONG_TOKENS,
        WRONG_TOKENS_SECOND);
}

static bool token_is_right(ebb__ask *a) {
    const char *token = NULL;
    if (!needs_token(a)) return true;
    bool sent = bearer_of(ebb_http_header(a->x, "authorization"), &token) && a->dash->has_token;
    if (sent && !may_try(a)) return false;
    if (sent && is_the_token(a->dash, token)) return true;
    if (sent)
        (void)ebb__bucket_take(wrong_tokens_of(a), ebb_now(a->cx), WRONG_TOKENS, WRONG_TOKENS_SECOND, 1);
    a->dash->refused[EBB__BAD_TOKEN]++;
    if (!a->dash->has_token)
        return ebb__problem_set(a, 403, "read_only", NULL, NULL,
                                "this server was started without a token file: nothing can be changed");
    return ebb__problem_set(a, 401, sent ? "wrong_token" : "no_token", "header 'authorization'",
                            "Bearer TOKEN",
                            sent ? "the token is not that of this server" : "there is no token");
}

/* ---- rate -------------------------------------------------------------------------------------------------------- */

static bool rate_is_right(ebb__ask *a) {
    ebb__dashboard *d = a->dash;
    bool change = a->route->access == EBB__CHANGE;
    uint32_t rate = change ? d->changes_second : d->reads_second;
    uint32_t cost = a->route->cost < rate ? a->route->cost : rate;
    ebb__bucket *b = &d->buckets[a->route->access];
    if (ebb__bucket_left(b, ebb_now(a->cx), rate, rate) >= cost)
        return ebb__bucket_take(b, ebb_now(a->cx), rate, rate, cost);
    d->refused[EBB__TOO_OFTEN]++;
    return ebb__problem_set(a, 429, "too_many_requests", NULL, NULL,
                            "more than %u %s a second, of which this one counts as %u", rate,
                            change ? "changes" : "reads", cost);
}

bool ebb__gate(ebb__ask *a) {
    a->dash->requests++;
    return host_is_right(a) && origin_is_right(a) && token_is_right(a) && rate_is_right(a);
}
