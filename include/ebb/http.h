/* ebb/http.h - HTTP/2 and HTTP/1.1, server and client, where a closed stream cancels everything behind it.
 *
 *     static ebb_status hello(ebb_cx *cx, ebb_http *x, void *arg) {
 *         return ebb_http_text(cx, x, 200, "hello, world\n");
 *     }
 *     ...
 *     st = ebb_http_listen(cx, &(ebb_http_server_opts){.address = {"127.0.0.1", 8080}}, &server);
 *     st = ebb_http_on(server, "GET", "/", hello, NULL);
 *
 * An *exchange* (ebb_http) is one request and its response, seen from one side. What holds:
 *
 *  - A connection is a region, and each of its exchanges a region below it, in which the handler runs. A
 *    stream that the peer resets cancels that region with EBB_CANCEL_DISCONNECT, within one turn of the loop;
 *    a connection that is lost, or ends with an error, cancels all of them; what takes too long is cancelled
 *    with EBB_CANCEL_TIMEOUT. The reason's message has the peer's error code. A closed server region lets what
 *    is in flight finish, takes the requests that clients sent before they were told (GOAWAY, Connection: close),
 *    for a second at most, and nothing else.
 *  - A handler that is cancelled can't write any more: whatever it tries says EBB_ERR_CLOSED. Its cleanups
 *    run, and its exchange stays until its region has closed, not shorter and not longer. The stream's slot of
 *    its connection is taken until then.
 *  - Bytes that you give to a read or write must stay until its future has ended, as in ebb/loop.h. What is
 *    given to other functions is copied.
 *  - Texts that are returned are the exchange's, 0-terminated, and go with it.
 *  - Threads: everything belongs to the thread of its loop.
 *
 * HTTP/2 is spoken over TLS (by ALPN) and in plain text to clients that know it beforehand; HTTP/1.1 to all
 * others. Nothing here needs the headers of nghttp2 or OpenSSL. */
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
    const char *name; /* lower case */
    const char *value;
} ebb_http_field;

/* ---- what is bounded ------------------------------------------------------------------------------------ */

/* For body_rate and write_rate: no rate is asked for. */
#define EBB_HTTP_NO_RATE UINT32_MAX

/* Every limit of a server; 0 is the default. A limit is the last that is allowed. */
typedef struct ebb_http_limits {
    /* An eighth more are answered 503; the next wait to be accepted. Of RLIMIT_NOFILE (the soft one) an eighth, at
     * least 16 and at most 512, is a reserve for files, logs and the pool. The default is half of the rest, at most
     * 10,000. A value that the rest does not allow is lowered to 8/9 of it: see ebb_http_server_limits_of. */
    uint32_t connections;
    uint32_t
        streams; /* of a connection, open or with work that has not ended: 100. Past it: REFUSED_STREAM; a
                             * new stream waits for the work of one that is closed */
    uint32_t requests;     /* of a connection: 2^30. After the last GOAWAY, or Connection: close */
    uint32_t headers;      /* fields of a request: 100. Past it: 431 */
    uint32_t header_bytes; /* their names and values, and 32 each: 16 KiB. Past it: 431 */
    uint32_t
        block_bytes; /* a header block as it is sent: 32 KiB; of HTTP/1 80 KiB at most. Past it the connection ends */
    uint64_t body_bytes; /* of a request: 16 MiB. Past it: 413 */
    uint32_t
        write_bytes; /* that wait for one connection's peer to read them: 64 KiB, the most; at least 17 KiB.
                      * 3/4 of it more may wait before they are framed, of writes that have ended */
    /* Of the whole server: 512 MiB. It counts connections, exchanges with what handlers get from them, the
     * protocols, and what the loop has come to take since the server was made for stacks of fibers, tasks, regions
     * and futures. Other memory of handlers is not counted. From 6/8 on stalled exchanges are ended, from 7/8 on
     * every request is 503. At least 1 MiB: EBB_ERR_INVALID, and ebb_http_error says so. */
    uint64_t memory_bytes;
    uint64_t idle_ns;   /* a connection with no request: 60 s */
    uint64_t header_ns; /* from the first byte of a head, or of the handshake, to its last: 10 s */
    /* How long a handler may wait for the peer to send a body, and ready bytes of a response for the peer to take
     * them, its window closed or not: 30 s. Past it: 408, or the stream is reset. Only such waits count, those of
     * one exchange together, and each byte that passes takes 1/rate of a second off again. So a peer that passes
     * `rate` bytes a second is never late, and a byte now and then brings nothing. */
    uint64_t body_ns;
    uint64_t write_ns;
    /* Bytes a second of one exchange, up and down: 500. That is a tenth of what a modem passes, and enough to end
     * whoever holds a stack, and perhaps a file, for a byte a second. EBB_HTTP_NO_RATE: any byte takes all off. */
    uint32_t body_rate;
    uint32_t write_rate;
    /* Exchanges of one peer address (IPv6: of one /64) that wait for their peer as above, or have started less
     * than 250 ms ago: 2,048, and with few descriptors an eighth of RLIMIT_NOFILE less its reserve. Handlers that
     * wait for something of their own do not count. At the limit a new request takes the place of the exchange
     * that has stalled longest: whose peer has kept it waiting for 500 ms, or for longer if it had passed bytes,
     * up to 5 s for 5 times the rate. If none has stalled the request waits; eight times as many may wait, the
     * next is REFUSED_STREAM. A connection that holds none of these may always start one. */
    uint32_t stalled;
    uint32_t resets; /* streams that a connection, or its address, may end before the first byte of */
    uint32_t
        resets_second; /* their response: 200 at once, and 50 a second. Past it: ENHANCE_YOUR_CALM. A stream */
                       /* that ends later, and before its last byte, counts a 32nd */
    uint32_t
        frames; /* that ask for nothing (PING, empty DATA and the like; SETTINGS count 8): 250 at once, */
    uint32_t frames_second; /* and 200 a second. Past it: ENHANCE_YOUR_CALM */
} ebb_http_limits;

/* ---- TLS -------------------------------------------------------------------------------------------------- */

/* TLS 1.3, and 1.2 if the other side has no better. Files are PEM. */
typedef struct ebb_tls_opts {
    uint32_t size;         /* sizeof(ebb_tls_opts) of the caller; 0: this one */
    const char *cert_file; /* the certificate with its chain. A server needs it; a client may have one */
    const char *key_file;
    const char
        *ca_file; /* whom a client trusts. NULL: the system's. For a server: clients need a certificate */
} ebb_tls_opts;

/* ---- server ------------------------------------------------------------------------------------------------- */

typedef struct ebb_http_server_opts {
    uint32_t size; /* sizeof(ebb_http_server_opts) of the caller; 0: this one */
    ebb_address address;
    const ebb_tls_opts *tls; /* NULL: plain text */
    ebb_http_limits limits;
    /* The access log: one line a request, with its newline, when its work has ended. NULL: none. */
    void (*access)(void *ctx, const char *line, size_t n);
    void *ctx;
} ebb_http_server_opts;

/* Listens, in a region of its own below that of cx; it is gone when that has closed. It takes connections from
 * the next turn of the loop on. Errors, and nothing is left behind: EBB_ERR_INVALID, EBB_ERR_VERSION,
 * EBB_ERR_CLOSED, EBB_ERR_NOMEM, EBB_ERR_TLS (a file is not there, or not right: the text says why, see
 * ebb_http_error), what listening says. */
ebb_status ebb_http_listen(ebb_cx *cx, const ebb_http_server_opts *opts, ebb_http_server **out);
/* To close, cancel or force it alone. */
ebb_region ebb_http_server_region(const ebb_http_server *s);
/* With the port that the system chose. */
ebb_status ebb_http_server_address(ebb_cx *cx, const ebb_http_server *s, ebb_address *out);
/* What went wrong last on this thread with TLS, or with a limit that ebb_http_listen refused, in words; "" if nothing
 * did. */
const char *ebb_http_error(void);

/* A handler. It answers by ebb_http_reply and the like, and its end is the exchange's: a response that was
 * begun ends if it returns EBB_OK. If it returns anything else, or EBB_OK without an answer, that is 500, or
 * the stream is reset if the answer was begun. EBB_ERRNO(EMFILE) and EBB_ERRNO(ENFILE) are 503 instead of 500. */
typedef ebb_status (*ebb_http_handler_fn)(ebb_cx *cx, ebb_http *x, void *arg);
/* It may also be a function that returns a future, whose end is the exchange's. It is called once, and may not
 * wait by itself. */
typedef ebb_future *(*ebb_http_future_fn)(ebb_cx *cx, ebb_http *x, void *arg);

/* Answers requests of a method ("*": any) to a path by a handler: a fiber, a poll function (see
 * ebb_http_state), or a function that returns a future. A segment ":name" of the pattern stands for any one
 * segment that is not empty, a last segment "*name" for the rest: see ebb_http_param. A literal segment
 * goes before ":", that
 * before "*". GET answers HEAD too. A path without a handler is 404, a method without one 405.
 * EBB_ERR_INVALID: the pattern does not start with "/", has an empty name, one twice, a "*" that is not last, bytes
 * that no path has, or another name for a place than one before; or the method is no token. EBB_ERR_LIMIT: more
 * than 16 names. EBB_ERR_BUSY: there is one already. EBB_ERR_NOMEM. */
ebb_status ebb_http_on(ebb_http_server *s, const char *method, const char *pattern, ebb_http_handler_fn fn,
                       void *arg);
ebb_status ebb_http_on_poll(ebb_http_server *s, const char *method, const char *pattern,
                            ebb_http_handler_fn fn, void *arg);
ebb_status ebb_http_on_future(ebb_http_server *s, const char *method, const char *pattern,
                              ebb_http_future_fn fn, void *arg);

typedef struct ebb_http_server_stats {
    uint32_t connections;  /* open, or with work that has not ended */
    uint32_t exchanges;    /* whose work has not ended */
    uint64_t memory;       /* bytes, as limits.memory_bytes counts them */
    uint64_t accepted;     /* connections so far */
    uint64_t requests;     /* that came so far */
    uint64_t answered[6];  /* responses that ended, by the first digit of their status; [0]: without one */
    uint64_t cancelled;    /* exchanges whose region was cancelled */
    uint64_t refused;      /* streams that were refused, and requests that were answered 503, for a limit */
    uint64_t rate_limited; /* connections that were ended for what they did to us */
    uint64_t timed_out;    /* exchanges and connections that took too long, those below included */
    uint64_t evicted;      /* stalled exchanges that were ended because others needed their place */
    uint64_t bytes_in, bytes_out;
} ebb_http_server_stats;
void ebb_http_server_stats_of(const ebb_http_server *s, ebb_http_server_stats *out);
/* The limits in force: defaults are filled in, and `connections` is what the descriptors allow. */
void ebb_http_server_limits_of(const ebb_http_server *s, ebb_http_limits *out);

/* ---- what came ------------------------------------------------------------------------------------------------ */

const char *ebb_http_method(const ebb_http *x);    /* "GET" */
const char *ebb_http_path(const ebb_http *x);      /* as it was sent, without the query */
const char *ebb_http_query(const ebb_http *x);     /* after the "?"; "" */
const char *ebb_http_authority(const ebb_http *x); /* "example.org:8080"; "" */
/* What a name of the pattern stands for, decoded. NULL: there is none of that name, or no memory. */
const char *ebb_http_param(const ebb_http *x, const char *name);
/* The first header of a name, which is compared without regard to case; NULL: there is none. Those of the
 * request on a server, of the response on a client. */
const char *ebb_http_header(const ebb_http *x, const char *name);
/* The i-th. False past the last. */
bool ebb_http_header_at(const ebb_http *x, size_t i, ebb_http_field *out);
/* As ebb_http_header, of what follows the body, once that has ended. */
const char *ebb_http_trailer(const ebb_http *x, const char *name);
/* The i-th. False past the last, and before the end of the body. */
bool ebb_http_trailer_at(const ebb_http *x, size_t i, ebb_http_field *out);
/* Whether a body came, or may still come, with what came: false if its head was all of it. Any method may have one. */
bool ebb_http_has_body(const ebb_http *x);
int ebb_http_status(const ebb_http *x);              /* of the response; 0: there is none yet */
int ebb_http_version(const ebb_http *x);             /* 20, 11 or 10 */
const ebb_address *ebb_http_peer(const ebb_http *x); /* who is at the other end */

/* Reads what is there of the body, at least one byte and at most n; as.u is how many. EBB_ERR_EOF at its end.
 * One at a time: EBB_ERR_BUSY. What is not read stays with the sender, by flow control. A client that waits
 * for "100 Continue" gets it with the first read. EBB_ERR_CLOSED: the stream is gone; EBB_ERR_LIMIT: it is
 * longer than limits.body_bytes. */
#define ebb_http_read(cx, x, into, n) ebb_http_read_site((cx), (x), (into), (n), EBB_SITE)
ebb_future *ebb_http_read_site(ebb_cx *cx, ebb_http *x, void *into, size_t n, const char *site);

/* The whole body of a request (on a server) or of a response (on a client): the value is ebb_http_body_of. It waits as a
 * read does; so one at a time, and not beside a read: EBB_ERR_BUSY. EBB_ERR_LIMIT: it has more than `most` bytes, and
 * then the stream is not read any further. Else errors as of ebb_http_read, but for the end: an empty body is one of 0
 * bytes. What ebb_http_read took before is not part of it. A call that is cancelled or fails keeps what came so far,
 * and another one goes on from there; after the end it gives the same bytes again. */
#define ebb_http_body(cx, x, most) ebb_http_body_site((cx), (x), (most), EBB_SITE)
ebb_future *ebb_http_body_site(ebb_cx *cx, ebb_http *x, size_t most, const char *site);
typedef struct ebb_http_bytes {
    const char *at; /* a 0 follows them */
    size_t n;
} ebb_http_bytes;
/* They belong to the exchange and go with it. NULL if it is no such value. */
const ebb_http_bytes *ebb_http_body_of(const ebb_value *v);

/* ---- what goes ------------------------------------------------------------------------------------------------ */

/* Sets a header of a response that is not sent yet; one of the same name is replaced. On a client
 * see ebb_http_call. EBB_ERR_INVALID: not a name or value that HTTP allows, or one that is ours to set
 * (transfer-encoding, connection, date and the like); EBB_ERR_BUSY: the head was sent;
 * EBB_ERR_NOMEM. A content-length is for a body that is written piece by piece: a write past it is EBB_ERR_LIMIT,
 * an end before it resets the stream. */
ebb_status ebb_http_set_header(ebb_http *x, const char *name, const char *value);
/* The same, beside those of the same name: for set-cookie and the like. */
ebb_status ebb_http_add_header(ebb_http *x, const char *name, const char *value);
/* Sets a trailer, until the end. Errors as above. */
ebb_status ebb_http_set_trailer(ebb_http *x, const char *name, const char *value);

/* A whole response. `type` (may be NULL) is its content-type. EBB_ERR_BUSY: there was one; EBB_ERR_CLOSED:
 * the stream is gone; EBB_ERR_INVALID: a status below 200 or over 999; EBB_ERR_NOMEM. */
ebb_status ebb_http_reply(ebb_cx *cx, ebb_http *x, int status, const char *type, const void *body, size_t n);
ebb_status ebb_http_text(ebb_cx *cx, ebb_http *x, int status, const char *text);

/* The head of a response whose body is written piece by piece. Errors as above. */
ebb_status ebb_http_start(ebb_cx *cx, ebb_http *x, int status);
/* Writes all n bytes, and ends when they are on their way: sent, or copied to the connection's write queue, which
 * limits.write_bytes bounds. So a write ends at once while there is room, and waits for the peer when there is
 * none; one of at most 12 KiB that completes a content-length ends at once if the server has memory. Bytes of a
 * write that has ended are sent before a later failure of the handler resets the stream. One at a time:
 * EBB_ERR_BUSY. On a server it starts a response of 200 if there is none. EBB_ERR_CLOSED: the stream is gone, or
 * has ended; EBB_CANCELLED: the task is, and is not masked. One that is cancelled leaves the body cut: the stream
 * is reset at its end; so it is if a fiber returns while bytes of its stack are being written. */
#define ebb_http_write(cx, x, from, n) ebb_http_write_site((cx), (x), (from), (n), EBB_SITE)
ebb_future *ebb_http_write_site(ebb_cx *cx, ebb_http *x, const void *from, size_t n, const char *site);
/* Ends what is written: a response, or a client's request. Errors as of ebb_http_reply. */
ebb_status ebb_http_end(ebb_cx *cx, ebb_http *x);

/* A server-sent event: starts a response of text/event-stream if there is none, and writes as above. */
typedef struct ebb_http_event {
    const char *data;  /* may have several lines */
    const char *event; /* its type. NULL: none */
    const char *id;    /* NULL: none */
    uint32_t retry_ms; /* 0: none */
    size_t data_n;     /* of `data`, which need not end with a 0 then; 0: up to its 0 */
} ebb_http_event;
#define ebb_http_send_event(cx, x, ...) ebb_http_send_event_site((cx), (x), (__VA_ARGS__), EBB_SITE)
ebb_future *ebb_http_send_event_site(ebb_cx *cx, ebb_http *x, const ebb_http_event *e, const char *site);

/* ---- memory of an exchange ------------------------------------------------------------------------------------ */

/* Memory that goes with the exchange. NULL: there is none. */
void *ebb_http_alloc(ebb_http *x, size_t n);
/* The state of a poll function: the first call makes it, zeroed, and all later ones return the same. NULL: no
 * memory. */
void *ebb_http_state(ebb_http *x, size_t n);

/* ---- client --------------------------------------------------------------------------------------------------- */

typedef struct ebb_http_client_opts {
    uint32_t size; /* sizeof(ebb_http_client_opts) of the caller; 0: this one */
    ebb_tls_opts tls;
    bool prior_knowledge;           /* http: URLs are HTTP/2 too */
    uint32_t connections;           /* to one origin, if it has no HTTP/2: 8 */
    uint32_t headers, header_bytes; /* of a response: 100, 16 KiB */
    uint64_t body_bytes;            /* of a response that is taken as a whole: 16 MiB */
    uint64_t idle_ns;               /* a connection that is idle for so long is closed: 60 s */
    /* For a new connection, from the lookup of its name to the end of the TLS handshake: 10 s. Calls that wait for it
     * fail with EBB_ERR_HTTP_CONNECT then, unless another connection can still serve them. */
    uint64_t connect_ns;
} ebb_http_client_opts;

/* A client with the connections that it keeps. It is a handle of the region of cx: it serves until that has
 * ended its tasks and futures. EBB_ERR_INVALID, EBB_ERR_VERSION, EBB_ERR_NOMEM, EBB_ERR_TLS. Files that `tls` names
 * are read here and now. The system's certificates are read in the pool, for the first call that wants TLS; calls
 * wait for that, and fail with EBB_ERR_TLS if it fails. */
ebb_status ebb_http_client_new(ebb_cx *cx, const ebb_http_client_opts *opts, ebb_http_client **out);

typedef struct ebb_http_call {
    uint32_t size;      /* sizeof(ebb_http_call) of the caller; 0: this one */
    const char *method; /* NULL: GET */
    const char *url;    /* "https://example.org:8443/path?query" */
    const ebb_http_field *headers;
    size_t headers_n;
    const void *body; /* must stay until the future has ended */
    size_t body_n;
    bool streams; /* for ebb_http_open: the body is written by ebb_http_write, up to ebb_http_end */
    /* Absolute, as ebb_now(cx) + 2 * EBB_SECOND; the future fails with EBB_TIMEOUT then. 0: none but the region's. */
    uint64_t deadline;
    /* Redirects (301, 302, 303, 307, 308 with a location) that are followed, at most; 0: none, they are responses like
     * any other. See ebb_http_fetch. */
    uint32_t redirects;
} ebb_http_call;

/* Sends a request and takes the whole response. The deadline of the region of cx, or the call's if that is
 * earlier, travels along as ebb-deadline-ms. Cancelling it resets the stream (CANCEL), or closes an HTTP/1
 * connection. Fails with
 *   EBB_ERR_HTTP_RETRY     the server has not processed it: it may be sent again, later. The client has done so up to
 *                          three times itself (REFUSED_STREAM, past the last stream of a GOAWAY, or nothing of it was
 *                          sent), within the deadline
 *   EBB_ERR_HTTP_RESET     the server, or the network, has broken it off
 *   EBB_ERR_HTTP_PROTOCOL  what came is not HTTP
 *   EBB_ERR_LIMIT          the response is larger than a limit
 *   EBB_ERR_TLS            no TLS, or not with whom we wanted
 *   EBB_ERR_HTTP_CONNECT   no connection within connect_ns
 *   EBB_ERR_HTTP_REDIRECT  one redirect more than `redirects`, or one to what is not an http URL
 *   EBB_TIMEOUT            the deadline of the call
 *   and what looking a name up and connecting say. EBB_ERR_INVALID: not a URL, method or header.
 * A redirect that is followed: 303 becomes GET, and so does POST for 301 and 302, without its body; else the request is
 * sent as it was, body included. authorization, cookie and proxy-authorization do not go to another origin. */
#define ebb_http_fetch(cx, client, ...) ebb_http_fetch_site((cx), (client), (__VA_ARGS__), EBB_SITE)
#define ebb_http_get(cx, client, url)   ebb_http_get_site((cx), (client), (url), EBB_SITE)
ebb_future *ebb_http_fetch_site(ebb_cx *cx, ebb_http_client *c, const ebb_http_call *what, const char *site);
ebb_future *ebb_http_get_site(ebb_cx *cx, ebb_http_client *c, const char *url, const char *site);

/* The value of a fetch; it goes with that. NULL if it is no such value. */
typedef struct ebb_http_response {
    int status;
    const ebb_http_field *headers;
    size_t headers_n;
    const char *body; /* a 0 follows it */
    size_t body_n;
} ebb_http_response;
const ebb_http_response *ebb_http_response_of(const ebb_value *v);
/* The first header of a name; NULL: there is none. */
const char *ebb_http_response_header(const ebb_http_response *r, const char *name);

/* Sends a request (a deadline of the call is the future's alone); the value is an exchange of the region
 * of cx, once the head of its response is there or, if
 * the call `streams`, once it may be written to. ebb_http_status is 0 until the head came: ebb_http_read waits
 * for that. It is closed by ebb_http_close, with the region, or by whoever discards the value.
 * Redirects are followed, and what was not processed is sent again, as above. A call that `streams` is not redirected;
 * it is sent again only as long as no byte of its body was taken, and if that fails, reads and writes do, and the
 * exchange stays until it is closed. */
#define ebb_http_open(cx, client, ...) ebb_http_open_site((cx), (client), (__VA_ARGS__), EBB_SITE)
ebb_future *ebb_http_open_site(ebb_cx *cx, ebb_http_client *c, const ebb_http_call *what, const char *site);
/* The exchange; NULL: it was closed. */
ebb_http *ebb_http_of(ebb_cx *cx, ebb_value v);
/* Waits for the head of the response. One at a time: EBB_ERR_BUSY. */
#define ebb_http_response_head(cx, x) ebb_http_response_head_site((cx), (x), EBB_SITE)
ebb_future *ebb_http_response_head_site(ebb_cx *cx, ebb_http *x, const char *site);
/* Ends a client's exchange: what has not ended is reset. Reads, writes and waits for its head that are pending end at
 * once with EBB_ERR_CLOSED; their bytes are the caller's again. `x` is gone: what may have been closed before is asked for
 * by ebb_http_of again. NULL is allowed. */
void ebb_http_close(ebb_cx *cx, ebb_http *x);

#ifdef __cplusplus
}
#endif
#endif
