/* Which handler answers a request: a trie of path segments. */
#ifndef EBB__HTTP_ROUTE_H
#define EBB__HTTP_ROUTE_H

#include <ebb/http.h>

#include "base/arena.h"

typedef enum ebb__handler_kind { EBB__FIBER = 0, EBB__POLL, EBB__FUTURE } ebb__handler_kind;

typedef struct ebb__handler {
    ebb__handler_kind kind;
    union {
        ebb_http_handler_fn fn;
        ebb_http_future_fn future;
    } as;
    void *arg;
    const char *site; /* "GET /users/:id", for reports; kept by pointer */
} ebb__handler;

typedef struct ebb__routes ebb__routes;

ebb__routes *ebb__routes_new(ebb_allocator a); /* NULL: no memory */
void ebb__routes_free(ebb__routes *r);         /* NULL is allowed */
/* As ebb_http_on. EBB_ERR_INVALID also for a duplicate name in a pattern, a method that is no token, and
 * bytes that no path has ("?", "#", spaces, control characters). EBB_ERR_LIMIT: see EBB__PARAMS. A pattern that was
 * not added changes nothing. Handlers that were found before stay valid. */
ebb_status ebb__routes_add(ebb__routes *r, const char *method, const char *pattern, ebb__handler handler);

/* A name of the pattern and its value in the path, not decoded. */
typedef struct ebb__param {
    const char *name;
    const char *value;
    uint32_t value_n;
    const char *text; /* decoded; NULL: not decoded yet */
} ebb__param;
enum { EBB__PARAMS = 16 }; /* of one pattern; more: EBB_ERR_LIMIT from ebb__routes_add */

typedef struct ebb__match {
    const ebb__handler *handler; /* NULL: none */
    bool path_known;             /* a pattern matches; without a handler only for other methods: 405 */
    char allow[128];             /* these methods, for the allow header: "GET, HEAD, PUT", as many as fit */
    ebb__param params[EBB__PARAMS];
    uint32_t params_n;
} ebb__match;
/* `path` is without its query, and compared byte by byte as it was sent. A "/" at its end is an empty last segment,
 * which "*name" matches and ":name" does not. If the best pattern lacks the method, the next pattern that has it
 * answers. Neither allocates nor recurses, and visits no node twice. */
void ebb__routes_find(const ebb__routes *r, const char *method, const char *path, size_t path_n,
                      ebb__match *out);

/* Decodes %xx. `to` holds n + 1 bytes. Returns the length without the final 0; SIZE_MAX: an invalid escape, or a 0. */
size_t ebb__percent_decode(char *to, const char *from, size_t n);

#endif
