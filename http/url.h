/* URLs for a client. */
#ifndef EBB__HTTP_URL_H
#define EBB__HTTP_URL_H

#include <ebb/base.h>

/* Parts of the parsed text; nothing is copied. */
typedef struct ebb__url {
    bool tls;
    const char *host; /* without brackets */
    size_t host_n;
    const char *authority; /* "example.org:8080", "[::1]:80", as written, without a final ":" */
    size_t authority_n;
    uint16_t port; /* 80, 443 */
    const char *
        path; /* with the query, without the fragment; "/" if there is none; "?..." if only a query is there */
    size_t path_n;
} ebb__url;

/* Accepts http: and https: only, without user names, spaces, control characters or bytes past ASCII, up to 8 KiB. A
 * host is a name of letters, digits, "-", "." and "_", up to 255 bytes, or an address without a zone. False: the text
 * is invalid. */
bool ebb__url_parse(const char *text, ebb__url *out);

/* The authority of a request: a name or an address, and optionally a port, which is a number up to 65535 or empty. An
 * IPv6 address is in brackets. No user info, no commas. An empty authority is valid: HTTP/1 has requests without one.
 *  */
bool ebb__is_authority(const char *at, size_t n);
/* Whether two valid authorities name the same host and port, ignoring case. `tls` selects the default port. */
bool ebb__same_authority(const char *a, const char *b, bool tls);

enum { EBB__URL_BYTES = 8192 };

/* Resolves a reference ("../a?b", "//host/", "https://host/") against the document at `base`, of which the scheme, the
 * authority and the path are used: RFC 3986, section 5.2. `to` has room for EBB__URL_BYTES + 1 and gets an absolute
 * URL without a fragment, which is not parsed yet. False: it is too long. */
bool ebb__url_resolve(const ebb__url *base, const char *reference, char *to);

#endif
