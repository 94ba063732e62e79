/* ebb/http.h - HTTP/2 and HTTP/1.1, server and client. The end of a stream cancels all work that was started for it.
 *
 *     static ebb_status hello(ebb_cx *cx, ebb_http *x, void *arg) {
 *         return ebb_http_text(cx, x, 200, "hello, world\n");
 *     }
 *     ...
 *     st = ebb_http_listen(cx, &(ebb_http_server_opts){.address = {"127.0.0.1", 8080}}, &server);
 *     st = ebb_http_on(server, "GET", "/", hello, NULL);
 *
 * An *exchange* (ebb_http) is one request and its response, seen from one side. The rules:
 *
 *  - A connection is a region. Each of its exchanges is a region below it, in which the handler runs.
 *  - If the peer resets a stream, the exchange is cancelled with EBB_CANCEL_DISCONNECT, within one turn of the loop. If
 *    the connection is lost or ends with an error, all its exchanges are. An exchange that takes too long is cancelled
 *    with EBB_CANCEL_TIMEOUT. The message of the reason has the peer's error code.
 *  - When the region of a server is closed, exchanges in flight finish. For a second at most, the server accepts
 *    requests that clients sent before they learned of the close (GOAWAY, Connection: close), and nothing else.
 *  - A cancelled handler can't write: its calls return EBB_ERR_CLOSED. Its cleanups run. The exchange lives exactly
 *    until its region has closed. It counts against limits.streams until its handler has returned.
 *  - Bytes that you pass to a read or a write must stay valid until its future has ended, as in ebb/loop.h. Other
 *    functions copy their arguments.
 *  - Returned texts are 0-terminated. They belong to the exchange and are freed with it.
 *  - Threads: everything belongs to the thread of its loop.
 *
 * HTTP/2 is used over TLS (by ALPN), and in plain text with clients that start with it (prior knowledge). All other
 * clients get HTTP/1.1. This header needs no headers of nghttp2 or OpenSSL. */
#ifndef EBB_HTTP_H
#define EBB_HTTP_H

#include <ebb/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ebb_http ebb_http; /* an exchange */
typedef struct ebb_http_server ebb_http_server;
typedef struct ebb_http_client ebb_http_client;

typedef struct ebb_http_field {
    const char *name;  /* lower case */
    const char *value; /* 0-terminated */
} ebb_http_field;

/* ---- limits --------------------------------------------------------------------------------------------- */

/* For body_rate and write_rate: there is no least rate. */
#define EBB_HTTP_NO_RATE UINT32_MAX

/* The limits of a server. 0 is the default. A limit is the largest value that is allowed. */
typedef struct ebb_http_limits {
    /* Connections. Past it a new connection takes the place of one that has been idle for a second or longer. If there
     * is none, an eighth more and one are accepted, and their requests answered 503. Further ones wait to be accepted.
     * Of RLIMIT_NOFILE (the soft limit) an eighth, at least 16 and at most 512, is a reserve for files, logs and the
     * pool. The default is half of the rest, 10,000 at most. A value above 8/9 of the rest is lowered to that:
     * see ebb_http_server_limits_of. On several loops each server gets its share of the descriptors. */
    uint32_t connections;
    /* Streams of a connection that are open: 100. Past it: REFUSED_STREAM. A closed stream whose handler still runs
     * delays later requests: at most so many handlers of a connection run. */
    uint32_t streams;
    uint32_t requests;     /* of a connection: 2^30. After the last: GOAWAY, or Connection: close */
    uint32_t headers;      /* fields of a request, with its trailers: 100. Past it: 431 */
    uint32_t header_bytes; /* of their names and values, and 32 for each field: 16 KiB. Past it: 431 */
    /* Bytes of a header block as sent: 32 KiB; of HTTP/1 80 KiB at most. Past it the connection ends: HTTP/2 with
     * ENHANCE_YOUR_CALM, HTTP/1 with 431. */
    uint32_t block_bytes;
    uint64_t body_bytes; /* of a request: 16 MiB. Past it: 413 */
    /* Bytes of one connection that wait for its peer to read them: 64 KiB, which is the most; the least is 17 KiB. 3/4
     * of it more may wait to be framed, of writes that have ended. Past it writes wait: that is the backpressure. */
    uint32_t write_bytes;
    /* Memory of the server: 512 MiB. At least 1 MiB: EBB_ERR_INVALID, and ebb_http_error has the text. It counts
     * connections, exchanges with the memory that handlers get from them, the protocols, and the growth of the loop
     * since the server was made (stacks of fibers, tasks, regions, futures). Other memory of handlers is not counted.
     * From 6/8 on stalled exchanges are ended and idle connections closed. From 7/8 on every request is answered 503,
     * and no connection is accepted while the server has one. */
    uint64_t memory_bytes;
    uint64_t idle_ns;   /* time of a connection without a request: 60 s. Past it the connection ends */
    uint64_t header_ns; /* from the first byte of a head, or of the handshake, to its last: 10 s */
    /* Time that a handler waits for its peer to send the body: 30 s. Past it: 408, or if the response was begun, the
     * stream is reset. The waits of one exchange add up. Each byte that arrives takes 1/body_rate of a second off
     * the sum. So a peer that sends body_rate bytes a second is never late, and a byte now and then does not help. */
    uint64_t body_ns;
    /* Time that bytes of a response are ready and the peer does not take them, whether its window is closed or not:
     * 30 s. Past it the stream is reset. Waits and bytes count as for body_ns, with write_rate. */
    uint64_t write_ns;
    /* Least rate of a request body, bytes a second of one exchange: 500. That is a tenth of a modem's rate; a peer
     * that holds a stack, and perhaps a file, for a byte a second is below it. EBB_HTTP_NO_RATE: any byte takes the
     * whole sum off. */
    uint32_t body_rate;
    uint32_t write_rate; /* least rate of a response, as body_rate: 500 */
    /* Exchanges of one peer address (IPv6: of one /64) that wait for their peer as above, or started less than 250 ms
     * ago: 2,048, or a quarter of RLIMIT_NOFILE less its reserve if that is fewer. A handler that waits for anything
     * else does not count. At the limit a new request takes the place of the exchange that has stalled longest. An
     * exchange has stalled when its peer has kept it waiting for 500 ms; if bytes have passed, for the time that they
     * take at the least rate, up to 5 s. If none has stalled, the request waits. Eight times `stalled` requests may
     * wait; the next is REFUSED_STREAM. A connection without such an exchange may always start one. */
    uint32_t stalled;
    /* Rate limit of resets, of a connection and of its address: 200 at once. A reset is a stream that the peer ends
     * before the first byte of its response. One that it ends later, before the last byte, counts a 32nd.
     * Past it: ENHANCE_YOUR_CALM. */
    uint32_t resets;
    uint32_t resets_second; /* how many `resets` are regained in a second: 50 */
    /* Rate limit of frames that ask for nothing (PING, empty DATA and the like; SETTINGS count 8), of a connection:
     * 250 at once. Past it: ENHANCE_YOUR_CALM. */
    uint32_t frames;
    uint32_t frames_second; /* how many `frames` are regained in a second: 200 */
} ebb_http_limits;

/* ---- TLS -------------------------------------------------------------------------------------------------- */

/* TLS 1.3, or 1.2 if the peer does not have 1.3. Files are PEM. */
typedef struct ebb_tls_opts {
    uint32_t size;         /* sizeof(ebb_tls_opts) of the caller; 0: this one */
    const char *cert_file; /* the certificate with its chain. A server needs it; a client may have one */
    const char *key_file;  /* the private key of the certificate */
    /* The authorities that a client trusts. NULL: the system's. On a server: clients need a certificate of these. NULL:
     * clients need none. */
    const char *ca_file;
} ebb_tls_opts;

/* ---- server ------------------------------------------------------------------------------------------------- */

typedef struct ebb_http_server_opts {
    uint32_t size;           /* sizeof(ebb_http_server_opts) of the caller; 0: this one */
    ebb_address address;     /* port 0: the system chooses, see ebb_http_server_address */
    const ebb_tls_opts *tls; /* NULL: plain text */
    ebb_http_limits limits;  /* 0: the defaults */
    /* The access log: called with one line for each request, with its newline, when its work has ended. NULL: none. */
    void (*access)(void *ctx, const char *line, size_t n);
    void *ctx; /* of `access` */
} ebb_http_server_opts;

/* Makes a server, in a region of its own below that of cx. The server is freed when that region has closed. It accepts
 * connections from the next turn of the loop on. After an error nothing is left behind: EBB_ERR_INVALID: no options, or
 * a limit that is out of range (see ebb_http_error); EBB_ERR_VERSION; EBB_ERR_CLOSED: the region of cx is closed;
 * EBB_ERR_NOMEM; EBB_ERR_TLS: a file is missing or not valid (see ebb_http_error); the errors of ebb_tcp_listen. */
ebb_status ebb_http_listen(ebb_cx *cx, const ebb_http_server_opts *opts, ebb_http_server **out);
/* The region of the server, to close, cancel or force the server alone. */
ebb_region ebb_http_server_region(const ebb_http_server *s);
/* Writes the server's address to *out, with the port that the system chose. Returns EBB_OK. */
ebb_status ebb_http_server_address(ebb_cx *cx, const ebb_http_server *s, ebb_address *out);
/* The text of the last error of TLS, of a limit that ebb_http_listen refused, or of EBB_ERR_HTTP_STATE, on this thread.
 * "" if there was none. */
const char *ebb_http_error(void);

/* A handler. It answers by ebb_http_reply and the like. Its return ends the exchange:
 *   EBB_OK                                  a response that was begun ends; without a response: 500
 *   EBB_ERRNO(EMFILE) or EBB_ERRNO(ENFILE)  503; if a response was begun and has not ended, the stream is reset
 *   anything else                           500; if a response was begun and has not ended, the stream is reset */
typedef ebb_status (*ebb_http_handler_fn)(ebb_cx *cx, ebb_http *x, void *arg);
/* A handler that returns a future, whose end ends the exchange as above. It is called once and may not wait itself. */
typedef ebb_future *(*ebb_http_future_fn)(ebb_cx *cx, ebb_http *x, void *arg);

/* Adds a handler for requests of a method ("*": any) to the paths of a pattern: a fiber, a poll function (see
 * ebb_http_state), or a function that returns a future. Handlers may be added while the server runs. A segment
 * ":name" of the pattern matches any one segment that is not empty; a last segment "*name" matches the rest of the
 * path: see ebb_http_param. A literal segment goes before ":name", which goes before "*name". GET answers HEAD too.
 * A path without a handler is 404, a method without one 405. EBB_ERR_INVALID: the pattern does not start with "/",
 * has an empty name, the same name twice, a "*" that is not last, bytes that no path has, or another name for a
 * segment than an earlier pattern; or the method is no token. EBB_ERR_LIMIT: more than 16 names. EBB_ERR_BUSY: there
 * is such a handler already. EBB_ERR_NOMEM. */
ebb_status ebb_http_on(ebb_http_server *s, const char *method, const char *pattern, ebb_http_handler_fn fn,
                       void *arg);
ebb_status ebb_http_on_poll(ebb_http_server *s, const char *method, const char *pattern,
                            ebb_http_handler_fn fn, void *arg);
ebb_status ebb_http_on_future(ebb_http_server *s, const char *method, const char *pattern,
                              ebb_http_future_fn fn, void *arg);

typedef struct ebb_http_server_stats {
    uint32_t connections;  /* that are open, or have work that has not ended */
    uint32_t exchanges;    /* whose work has not ended */
    uint64_t memory;       /* bytes, as limits.memory_bytes counts them */
    uint64_t accepted;     /* connections so far */
    uint64_t requests;     /* received so far */
    uint64_t answered[6];  /* whole responses, by the first digit of the status; [0]: exchanges without one */
    uint64_t cancelled;    /* exchanges whose region was cancelled */
    uint64_t refused;      /* for a limit: streams refused, and requests answered 503 */
    uint64_t rate_limited; /* connections ended by a rate limit, or because the peer reads nothing */
    uint64_t timed_out;    /* exchanges and connections that took too long; includes `evicted` */
    uint64_t evicted;      /* stalled exchanges that were ended because others needed their place */
    uint64_t bytes_in, bytes_out; /* received, sent */
    uint64_t bad_traces;          /* requests whose traceparent was not valid, and so was ignored */
    /* Entry i: whole responses that ended less than 2^i ns after their handler had started, and not less than half of that. */
    uint64_t latency[32];
} ebb_http_server_stats;
/* Writes the statistics of the server to *out. */
void ebb_http_server_stats_of(const ebb_http_server *s, ebb_http_server_stats *out);
/* Writes the limits in force to *out: with the defaults, and with the `connections` that the descriptors allow. */
void ebb_http_server_limits_of(const ebb_http_server *s, ebb_http_limits *out);

/* ---- received ------------------------------------------------------------------------------------------------- */

const char *ebb_http_method(const ebb_http *x);    /* "GET" */
const char *ebb_http_path(const ebb_http *x);      /* as sent, without the query */
const char *ebb_http_query(const ebb_http *x);     /* the text after the "?"; "": none */
const char *ebb_http_authority(const ebb_http *x); /* "example.org:8080"; "": none */
/* The part of the path that matched a name of the pattern, decoded. NULL: there is no such name, or no memory. */
const char *ebb_http_param(const ebb_http *x, const char *name);
/* The first header of a name, whatever its case; NULL: there is none. On a server the headers of the request, on a
 * client those of the response. */
const char *ebb_http_header(const ebb_http *x, const char *name);
/* Writes the i-th header to *out. False: past the last. */
bool ebb_http_header_at(const ebb_http *x, size_t i, ebb_http_field *out);
/* The first trailer of a name, whatever its case, once the body has ended; NULL: there is none. */
const char *ebb_http_trailer(const ebb_http *x, const char *name);
/* Writes the i-th trailer to *out. False: past the last, or before the end of the body. */
bool ebb_http_trailer_at(const ebb_http *x, size_t i, ebb_http_field *out);
/* Whether the message has a body, or may still have one. False: it was only a head. Any method may have a body. */
bool ebb_http_has_body(const ebb_http *x);
int ebb_http_status(const ebb_http *x);              /* of the response; 0: there is none yet */
int ebb_http_version(const ebb_http *x);             /* 20, 11 or 10 */
const ebb_address *ebb_http_peer(const ebb_http *x); /* the other end; empty without a connection */

/* The trace context of a request, from its header traceparent; NULL: it has none that is valid. It belongs to the
 * exchange. What runs in the region of the exchange has it too: ebb_cx_traceparent. On a client it is NULL. */
const ebb_traceparent *ebb_http_trace(const ebb_http *x);

/* Reads the bytes of the body that are there, at least one and at most n. The value's as.u is their number.
 * EBB_ERR_EOF: the end of the body. EBB_ERR_BUSY: another read is pending. EBB_ERR_INVALID: n is 0, or 2^63 and
 * more. EBB_ERR_CLOSED: the stream is gone. EBB_ERR_LIMIT: the body is longer than limits.body_bytes. Flow control
 * keeps unread bytes with the sender. The first read sends "100 Continue" to a client that waits for it. A cancelled
 * read takes no bytes. */
#define ebb_http_read(cx, x, into, n) ebb_http_read_site((cx), (x), (into), (n), EBB_SITE)
ebb_future *ebb_http_read_site(ebb_cx *cx, ebb_http *x, void *into, size_t n, const char *site);

/* Reads the whole body of a request (on a server) or of a response (on a client). The value: ebb_http_body_of. An
 * empty body is 0 bytes. EBB_ERR_BUSY: a read or another ebb_http_body is pending. EBB_ERR_LIMIT: the body has more
 * than `most` bytes; the stream is then not read any further. Other errors as of ebb_http_read. Bytes that
 * ebb_http_read took before are not part of it. A call that is cancelled or fails keeps its bytes: the next call
 * goes on from there. After the end a call returns the same bytes again. */
#define ebb_http_body(cx, x, most) ebb_http_body_site((cx), (x), (most), EBB_SITE)
ebb_future *ebb_http_body_site(ebb_cx *cx, ebb_http *x, size_t most, const char *site);
typedef struct ebb_http_bytes {
    const char *at; /* the bytes, with a 0 after the last */
    size_t n;       /* without that 0 */
} ebb_http_bytes;
/* The bytes of a body. They belong to the exchange and are freed with it. NULL: another value. */
const ebb_http_bytes *ebb_http_body_of(const ebb_value *v);

/* ---- sent ----------------------------------------------------------------------------------------------------- */

/* Sets a header of a response that was not sent yet, in place of one of the same name. A content-length is for a
 * body that is written piece by piece: a write past it is EBB_ERR_LIMIT, an end before it resets the stream.
 * EBB_ERR_INVALID: HTTP does not allow the name or value, or Ebb sets this header itself (transfer-encoding,
 * connection, date and the like). EBB_ERR_BUSY: the head was sent, or a client's exchange: see ebb_http_call.
 * EBB_ERR_NOMEM. */
ebb_status ebb_http_set_header(ebb_http *x, const char *name, const char *value);
/* Adds a header and keeps those of the same name, for set-cookie and the like. Errors as above. */
ebb_status ebb_http_add_header(ebb_http *x, const char *name, const char *value);
/* Sets a trailer of a response or of a client's request. EBB_ERR_BUSY: it has ended. Other errors as above. */
ebb_status ebb_http_set_trailer(ebb_http *x, const char *name, const char *value);

/* Sends a whole response. `type` (may be NULL) is its content-type. EBB_ERR_BUSY: there was one. EBB_ERR_CLOSED: the
 * stream is gone, or the exchange is cancelled. EBB_ERR_INVALID: a status below 200 or over 999, or a client's
 * exchange. EBB_ERR_NOMEM. */
ebb_status ebb_http_reply(ebb_cx *cx, ebb_http *x, int status, const char *type, const void *body, size_t n);
/* The same for a 0-terminated text: text/plain in UTF-8. Errors as of ebb_http_reply. */
ebb_status ebb_http_text(ebb_cx *cx, ebb_http *x, int status, const char *text);

/* Sends the head of a response whose body is written piece by piece. Errors as of ebb_http_reply. */
ebb_status ebb_http_start(ebb_cx *cx, ebb_http *x, int status);
/* Writes all n bytes of a body. The future ends when the bytes are sent, or copied to the connection's write queue,
 * which limits.write_bytes bounds. So a write ends at once while there is room, and waits for the peer otherwise. A
 * write of at most 12 KiB that completes a content-length ends at once if the server has memory. The value's as.u is
 * n. On a server the first write starts a response of 200 if there is none. Bytes of a write that has ended are sent
 * before a later failure of the handler resets the stream. A cancelled write leaves the body cut: the stream is
 * reset at its end. The same happens if a fiber returns while bytes of its stack are being written. If a handler is
 * abandoned, its pending write is cancelled and the stream is reset. EBB_ERR_BUSY:
 * another write is pending. EBB_ERR_CLOSED: the stream is gone, or has ended. EBB_ERR_LIMIT: more than the
 * content-length. EBB_CANCELLED: the task is cancelled and not masked. */
#define ebb_http_write(cx, x, from, n) ebb_http_write_site((cx), (x), (from), (n), EBB_SITE)
ebb_future *ebb_http_write_site(ebb_cx *cx, ebb_http *x, const void *from, size_t n, const char *site);
/* Ends the body of a response, or of a client's request. EBB_ERR_INVALID: no response was begun. EBB_ERR_BUSY: the
 * body has ended already, or a write is pending. EBB_ERR_CLOSED: the stream is gone, the exchange is cancelled, or
 * the body is cut or shorter than its content-length: then the stream is reset. */
ebb_status ebb_http_end(ebb_cx *cx, ebb_http *x);

/* A server-sent event. */
typedef struct ebb_http_event {
    const char *data;  /* may have several lines */
    const char *event; /* its type, one line. NULL: none */
    const char *id;    /* one line. NULL: none */
    uint32_t retry_ms; /* 0: none */
    size_t data_n;     /* bytes of `data`, which then needs no 0 at its end; 0: up to its 0 */
} ebb_http_event;
/* Sends an event. The first one starts a response of text/event-stream, with cache-control: no-store, if there is none.
 * The event is copied. The rest is as of ebb_http_write. EBB_ERR_INVALID: `event` or `id` has several lines. */
#define ebb_http_send_event(cx, x, ...) ebb_http_send_event_site((cx), (x), (__VA_ARGS__), EBB_SITE)
ebb_future *ebb_http_send_event_site(ebb_cx *cx, ebb_http *x, const ebb_http_event *e, const char *site);

/* ---- memory of an exchange ------------------------------------------------------------------------------------ */

/* Allocates n bytes that are freed with the exchange. NULL: no memory. */
void *ebb_http_alloc(ebb_http *x, size_t n);
/* The state of a poll function: the first call allocates n zeroed bytes, and later calls return the same. They are
 * freed with the exchange. NULL: no memory. */
void *ebb_http_state(ebb_http *x, size_t n);

/* ---- client --------------------------------------------------------------------------------------------------- */

typedef struct ebb_http_client_opts {
    uint32_t size;        /* sizeof(ebb_http_client_opts) of the caller; 0: this one */
    ebb_tls_opts tls;     /* for https: URLs */
    bool prior_knowledge; /* http: URLs use HTTP/2 too */
    uint32_t connections; /* to one origin: 8. With HTTP/2 one more is opened only when all are full */
    /* headers: fields of a response: 100. header_bytes: of their names and values, and 32 for each field: 16 KiB. Past
     * either: EBB_ERR_LIMIT. */
    uint32_t headers, header_bytes;
    uint64_t body_bytes; /* of a response that ebb_http_fetch reads: 16 MiB. Past it: EBB_ERR_LIMIT */
    uint64_t idle_ns;    /* after which an idle connection is closed: 60 s */
    /* For a new connection, from the lookup of its name to the end of the TLS handshake: 10 s. Then the calls that wait
     * for it fail with EBB_ERR_HTTP_CONNECT, unless another connection can still serve them. */
    uint64_t connect_ns;
} ebb_http_client_opts;

/* Makes a client, which keeps connections for later calls. It is a handle of the region of cx: it serves until the
 * region has ended its tasks and futures, and is freed then. Files that `tls` names are read in this call. The
 * system's certificates are read in the pool for the first call that needs TLS: calls wait for them, and fail with
 * EBB_ERR_TLS if they can't be read. EBB_ERR_INVALID, EBB_ERR_VERSION, EBB_ERR_NOMEM, EBB_ERR_TLS (see
 * ebb_http_error). */
ebb_status ebb_http_client_new(ebb_cx *cx, const ebb_http_client_opts *opts, ebb_http_client **out);

typedef struct ebb_http_call {
    uint32_t size;                 /* sizeof(ebb_http_call) of the caller; 0: this one */
    const char *method;            /* NULL: GET */
    const char *url;               /* "https://example.org:8443/path?query" */
    const ebb_http_field *headers; /* of the request; copied */
    size_t headers_n;              /* how many */
    const void *body;              /* must stay valid until the future has ended */
    size_t body_n;                 /* 0: no body */
    bool streams; /* for ebb_http_open: ebb_http_write writes the body, ebb_http_end ends it */
    /* Absolute time, as ebb_now(cx) + 2 * EBB_SECOND. The future fails with EBB_TIMEOUT then. 0: only that of the
     * region. */
    uint64_t deadline;
    /* The most redirects (301, 302, 303, 307, 308 with a location) that are followed; see ebb_http_fetch. 0: redirects
     * are responses like any other. */
    uint32_t redirects;
} ebb_http_call;

/* Sends a request and reads the whole response; the value: ebb_http_response_of. The header ebb-deadline-ms carries the
 * deadline of the region of cx, or of the call if that is earlier. A cancel resets the stream (CANCEL), or closes an
 * HTTP/1 connection. The future fails with
 *   EBB_ERR_HTTP_RETRY     the server has not processed the request: it may be sent again, later. Within the deadline
 *                          the client has sent it again up to three times itself (after REFUSED_STREAM, past the last
 *                          stream of a GOAWAY, or if no byte of it was sent)
 *   EBB_ERR_HTTP_RESET     the server, or the network, broke off the exchange
 *   EBB_ERR_HTTP_PROTOCOL  the peer's bytes are not HTTP
 *   EBB_ERR_LIMIT          the response exceeds a limit
 *   EBB_ERR_TLS            the handshake failed, or the certificate is not that of the origin
 *   EBB_ERR_HTTP_CONNECT   no connection within connect_ns
 *   EBB_ERR_HTTP_REDIRECT  one redirect more than `redirects`, or a redirect to something that is no http or https URL
 *   EBB_ERR_HTTP_STATE     a bug in Ebb: see ebb_http_error
 *   EBB_TIMEOUT            the deadline of the call has passed
 *   EBB_ERR_INVALID        no valid URL, method or header; or the call `streams`
 *   EBB_ERR_CLOSED         the region of the client has ended its work
 *   and the errors of ebb_dns_resolve and ebb_tcp_connect.
 * A redirect by 303 becomes GET (HEAD stays HEAD). POST becomes GET by 301 and 302. Both lose their body. Every other
 * request is sent again as it was, with its body. authorization, cookie and proxy-authorization are not sent to another
 * origin. ebb_http_get is a fetch of a URL by GET. */
#define ebb_http_fetch(cx, client, ...) ebb_http_fetch_site((cx), (client), (__VA_ARGS__), EBB_SITE)
#define ebb_http_get(cx, client, url)   ebb_http_get_site((cx), (client), (url), EBB_SITE)
ebb_future *ebb_http_fetch_site(ebb_cx *cx, ebb_http_client *c, const ebb_http_call *what, const char *site);
ebb_future *ebb_http_get_site(ebb_cx *cx, ebb_http_client *c, const char *url, const char *site);

typedef struct ebb_http_response {
    int status;                    /* 200 */
    const ebb_http_field *headers; /* without the trailers */
    size_t headers_n;              /* how many */
    const char *body;              /* a 0 follows it */
    size_t body_n;                 /* without that 0 */
} ebb_http_response;
/* The response in the value of a fetch. It belongs to the value. NULL: another value. */
const ebb_http_response *ebb_http_response_of(const ebb_value *v);
/* The first header of a name, whatever its case; NULL: there is none. */
const char *ebb_http_response_header(const ebb_http_response *r, const char *name);

/* Sends a request and opens its exchange; the value: ebb_http_of. The future ends when the head of the response has
 * come or, if the call `streams`, when the exchange can be written to. ebb_http_status is 0 until the head has come;
 * ebb_http_read waits for the head. The call's deadline bounds this future only. The exchange belongs to the region
 * of cx. ebb_http_close closes it, and so do the end of the region and discarding the value. Errors, redirects and
 * retries as of ebb_http_fetch, but a call that `streams` is not redirected, and is sent again only as long as no
 * byte of its body was taken. If that fails, reads and writes fail, and the exchange stays until it is closed.
 * EBB_ERR_INVALID also: the call `streams` and has a body. */
#define ebb_http_open(cx, client, ...) ebb_http_open_site((cx), (client), (__VA_ARGS__), EBB_SITE)
ebb_future *ebb_http_open_site(ebb_cx *cx, ebb_http_client *c, const ebb_http_call *what, const char *site);
/* The exchange in the value of an open. NULL: it was closed, or another value. */
ebb_http *ebb_http_of(ebb_cx *cx, ebb_value v);
/* Waits for the head of the response on a client. The value is empty. EBB_ERR_BUSY: another such wait is pending.
 * EBB_ERR_CLOSED: the stream is gone. EBB_ERR_INVALID: a server's exchange. A cancel ends only the wait. */
#define ebb_http_response_head(cx, x) ebb_http_response_head_site((cx), (x), EBB_SITE)
ebb_future *ebb_http_response_head_site(ebb_cx *cx, ebb_http *x, const char *site);
/* Closes a client's exchange and resets its stream if it has not ended. Pending reads, writes and waits for its head
 * end at once with EBB_ERR_CLOSED, and their bytes are the caller's again. `x` is not valid any more: if an exchange
 * may have been closed before, get it by ebb_http_of. NULL is allowed. */
void ebb_http_close(ebb_cx *cx, ebb_http *x);

#ifdef __cplusplus
}
#endif
#endif
