/* URLs, as far as a client needs them. */
#ifndef EBB__HTTP_URL_H
#define EBB__HTTP_URL_H

#include <ebb/base.h>

/* Parts of the text that was parsed; nothing is copied. */
typedef struct ebb__url {
    bool tls;
    const char *host; /* without brackets */
    size_t host_n;
    const char *authority; /* "example.org:8080", "[::1]:80", as it stands there, without a last ":" */
    size_t authority_n;
    uint16_t port; /* 80, 443 */
    const char *
        path; /* with the query, without the fragment; "/" if there is none; "?..." if only a query is there */
    size_t path_n;
} ebb__url;

/* http: and https: only. No user names, no blanks or control characters, nothing past ASCII; at most 8
 * KiB. A host is a name of letters, digits, "-", "." and "_", at most 255 bytes, or an address without a
 * zone. False: it is none. */
bool ebb__url_parse(const char *text, ebb__url *out);

/* The authority of a request: a name or an address, and perhaps a port, which is a number up to 65535 or empty. An IPv6
 * address stands in brackets. No user info, no commas. An empty one is right: HTTP/1 has requests without. */
bool ebb__is_authority(const char *at, size_t n);
/* Two that are right name the same host and port, without regard to case; `tls` says which port is the default. */
bool ebb__same_authority(const char *a, const char *b, bool tls);

enum { EBB__URL_BYTES = 8192 };

/* What a reference ("../a?b", "//host/", "https://host/") stands for in a document at `base`, of which the scheme, the
 * authority and the path are used: RFC 3986, 5.2. `to` has room for EBB__URL_BYTES + 1 and gets an absolute URL without a
 * fragment, which is still to be parsed. False: it is too long. */
bool ebb__url_resolve(const ebb__url *base, const char *reference, char *to);

#endif
