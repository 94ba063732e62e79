/* ebb/dashboard.h - one line that gives a service an API and a page for its operators: what lives in it, what it waits
 * for, its drains, counters for Prometheus, and its durable instances.
 *
 *     st = ebb_http_listen(cx, &(ebb_http_server_opts){.address = {"127.0.0.1", 8080}}, &server);
 *     st = ebb_dashboard_mount(cx, server, &(ebb_dashboard_opts){.store = store});
 *
 * The page is /ebb/, and GET /ebb/openapi.json describes every path (docs/serve.md). The rules:
 *
 *  - *Who may ask.* A server that listens on a loopback address answers whoever reaches it; the paths that change
 *    something need the token. On any other address all paths but the page, health, readiness and openapi.json need it: as
 *    "authorization: Bearer TOKEN". Without a token file nothing can be changed, and nothing but loopback is served.
 *  - *Which names.* A request whose host is neither an address, nor localhost, nor one of `hosts` is refused, and so is
 *    one that a page of another origin has sent.
 *  - *What it shows* is the loop of the server: with several loops, mount it on the server of each, and each shows its
 *    own.
 *  - *Threads*: everything belongs to the thread of the loop, as in ebb/loop.h. */
#ifndef EBB_DASHBOARD_H
#define EBB_DASHBOARD_H

#include <ebb/durable.h>
#include <ebb/http.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ebb_dashboard_opts {
    uint32_t size; /* sizeof(ebb_dashboard_opts) of the caller; 0: this one */
    /* What all paths begin with: "/ops". At most 64 bytes, with a "/" first and none last. "": nothing. NULL: "/ebb". */
    const char *prefix;
    /* A file whose first line is the token: 16 to 256 printable characters without a space. Only its owner may have a
     * right to it (0600). It is read in this call. NULL: none. */
    const char *token_file;
    /* Names by which the server is reached, without the port; NULL after the last. At most 16. Copied. NULL: none. */
    const char *const *hosts;
    ebb_store *store;   /* whose instances it serves; must be open as long as the server. NULL: none */
    ebb_worker *worker; /* whose counters /metrics has; of the same loop. NULL: none */
    /* Rate limits, of reads and of changes apart. A read of the whole tree counts as 500 and one of many instances as 50,
     * others as one; a second's worth may come at once. Past it: 429. 0: 10,000 each. */
    uint32_t reads_second;
    uint32_t changes_second;
} ebb_dashboard_opts;

/* Adds the API to a server of the loop of cx. It is freed with the server. `opts` may be NULL. An error leaves the paths
 * that were added; they are served all the same. EBB_ERR_INVALID: an option is not valid, or the server listens on
 * something else than a loopback address and there is no token file; ebb_dashboard_error has the text. EBB_ERR_BUSY: a
 * handler of the server has one of the paths. EBB_ERR_VERSION, EBB_ERR_NOMEM; EBB_ERR_CLOSED: the server is closed;
 * EBB_ERRNO(errno): of the token file. */
ebb_status ebb_dashboard_mount(ebb_cx *cx, ebb_http_server *s, const ebb_dashboard_opts *opts);
/* The text of the last failure of ebb_dashboard_mount on this thread, with the thing, the value and the limit. "" if
 * there was none. */
const char *ebb_dashboard_error(void);

#ifdef __cplusplus
}
#endif
#endif
