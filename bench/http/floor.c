/* bench-http-floor: an HTTP/2 server on libuv and nghttp2 with nothing between the two, as the least that any
 * server on these libraries costs. It has no limits, no timeouts, no errors, and dies of what it does not
 * expect.
 *
 *   GET /       "ok"
 *   GET /slow   an answer in a minute; a stream that is reset stops its timer
 *   GET /count  how many of the slow ones were begun, and how many of these were reset
 *
 * It prints its port and serves until it is killed. */
#include <nghttp2/nghttp2.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { IN_BYTES = 65536, OUT_BYTES = 65536, FRAME_BYTES = 16384 + 9, SLOW_MS = 60000 };

/* Where a connection has not sent all, `unsent` is with libuv, and nothing more is taken from nghttp2 until
 * that is gone. */
typedef struct connection {
    uv_tcp_t tcp;
    uv_write_t write;
    nghttp2_session *session;
    char *unsent;
    int slow; /* streams with a timer, which would have no connection when it fires */
} connection;

/* A stream of /slow. Its timer outlives it by the turn that libuv takes to close one. */
typedef struct slow {
    uv_timer_t timer;
    connection *connection;
    int32_t stream;
} slow;

static char in[IN_BYTES], out[OUT_BYTES];
static nghttp2_session_callbacks *callbacks;
static nghttp2_option *options;
static unsigned long begun, reset;

static void flush(connection *c);

static void must(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "bench-http-floor: %s\n", what);
    exit(1);
}

/* ---- answers ----------------------------------------------------------------------------------------- */

#define FIELD(name, value)                                                                                   \
    {                                                                                                        \
        (uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), sizeof(name) - 1, sizeof(value) - 1,    \
            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE                                     \
    }

static ssize_t read_ok(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room, uint32_t *flags,
                       nghttp2_data_source *source, void *user) {
    (void)session, (void)stream, (void)room, (void)source, (void)user;
    to[0] = 'o';
    to[1] = 'k';
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    return 2;
}

static void answer_ok(connection *c, int32_t stream) {
    static const nghttp2_nv head[] = {FIELD(":status", "200"), FIELD("content-type", "text/plain"),
                                      FIELD("content-length", "2")};
    static const nghttp2_data_provider body = {.read_callback = read_ok};
    must(nghttp2_submit_response(c->session, stream, head, 3, &body) == 0, "no response");
}

static ssize_t read_count(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room, uint32_t *flags,
                          nghttp2_data_source *source, void *user) {
    (void)session, (void)stream, (void)source, (void)user;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    return snprintf((char *)to, room, "%lu %lu\n", begun, reset);
}

static void answer_count(connection *c, int32_t stream) {
    static const nghttp2_nv head[] = {FIELD(":status", "200")};
    static const nghttp2_data_provider body = {.read_callback = read_count};
    must(nghttp2_submit_response(c->session, stream, head, 1, &body) == 0, "no response");
}

/* ---- slow ones --------------------------------------------------------------------------------------- */

static void on_slow_closed(uv_handle_t *timer) {
    free(timer);
}

static void on_slow_due(uv_timer_t *timer) {
    slow *s = (slow *)timer;
    answer_ok(s->connection, s->stream);
    flush(s->connection);
}

static void begin_slow(connection *c, int32_t stream) {
    slow *s = malloc(sizeof *s);
    must(s != NULL, "no memory");
    s->connection = c;
    s->stream = stream;
    uv_timer_init(c->tcp.loop, &s->timer);
    uv_timer_start(&s->timer, on_slow_due, SLOW_MS, 0);
    nghttp2_session_set_stream_user_data(c->session, stream, s);
    c->slow++;
    begun++;
}

/* ---- what nghttp2 tells ------------------------------------------------------------------------------ */

enum { ROOT, SLOW, COUNT };

/* The path is told apart by its length; until its request has ended it stands where /slow keeps its timer. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                     const uint8_t *value, size_t value_n, uint8_t flags, void *user) {
    static char paths[] = {ROOT, SLOW, COUNT};
    (void)value, (void)flags, (void)user;
    if (name_n != 5 || memcmp(name, ":path", 5) != 0 || value_n == 1) return 0;
    char *path = &paths[value_n == 5 ? SLOW : COUNT];
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, path);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    connection *c = user;
    if (frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
    int32_t stream = frame->hd.stream_id;
    const char *path = nghttp2_session_get_stream_user_data(session, stream);
    if (path == NULL) answer_ok(c, stream);
    else if (*path == SLOW) begin_slow(c, stream);
    else answer_count(c, stream);
    if (path != NULL && *path == COUNT) nghttp2_session_set_stream_user_data(session, stream, NULL);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t code, void *user) {
    slow *s = nghttp2_session_get_stream_user_data(session, stream);
    (void)user;
    if (s == NULL) return 0;
    s->connection->slow--;
    if (code != NGHTTP2_NO_ERROR) reset++;
    uv_close((uv_handle_t *)&s->timer, on_slow_closed);
    return 0;
}

/* ---- connections ------------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *tcp) {
    connection *c = (connection *)tcp;
    must(c->slow == 0, "a connection was closed with streams that nobody has reset");
    nghttp2_session_del(c->session);
    free(c->unsent);
    free(c);
}

static void on_written(uv_write_t *write, int status) {
    connection *c = write->data;
    free(c->unsent);
    c->unsent = NULL;
    if (status == 0) flush(c);
}

static void write_later(connection *c, const char *from, size_t n) {
    c->unsent = malloc(n);
    must(c->unsent != NULL, "no memory");
    memcpy(c->unsent, from, n);
    uv_buf_t buf = uv_buf_init(c->unsent, (unsigned)n);
    c->write.data = c;
    if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &buf, 1, on_written) == 0) return;
    free(c->unsent);
    c->unsent = NULL;
}

static void write_out(connection *c, size_t n) {
    uv_buf_t buf = uv_buf_init(out, (unsigned)n);
    int sent = uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);
    size_t gone = sent > 0 ? (size_t)sent : 0;
    if (gone < n && (sent >= 0 || sent == UV_EAGAIN)) write_later(c, out + gone, n - gone);
}

/* As many frames as surely fit, and how many bytes they are. */
static size_t collect(connection *c) {
    const uint8_t *frame;
    size_t used = 0;
    ssize_t n;
    while (used + FRAME_BYTES <= OUT_BYTES && (n = nghttp2_session_mem_send(c->session, &frame)) > 0) {
        memcpy(out + used, frame, (size_t)n);
        used += (size_t)n;
    }
    return used;
}

static void flush(connection *c) {
    size_t n;
    while (c->unsent == NULL && (n = collect(c)) > 0) write_out(c, n);
}

static void on_alloc(uv_handle_t *tcp, size_t suggested, uv_buf_t *buf) {
    (void)tcp, (void)suggested;
    *buf = uv_buf_init(in, IN_BYTES);
}

static void on_read(uv_stream_t *tcp, ssize_t n, const uv_buf_t *buf) {
    connection *c = (connection *)tcp;
    (void)buf;
    if (n == 0) return;
    bool alive = n > 0 && nghttp2_session_mem_recv(c->session, (const uint8_t *)in, (size_t)n) == n;
    if (alive) flush(c);
    if (!alive || !(nghttp2_session_want_read(c->session) || nghttp2_session_want_write(c->session)))
        uv_close((uv_handle_t *)tcp, on_closed);
}

static connection *connection_new(uv_loop_t *loop) {
    static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100},
                                                      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}};
    connection *c = calloc(1, sizeof *c);
    must(c != NULL, "no memory");
    must(nghttp2_session_server_new2(&c->session, callbacks, c, options) == 0, "no session");
    must(nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, 2) == 0, "no settings");
    must(uv_tcp_init(loop, &c->tcp) == 0, "no socket");
    return c;
}

static void on_connection(uv_stream_t *listener, int status) {
    must(status == 0, "no connection");
    connection *c = connection_new(listener->loop);
    must(uv_accept(listener, (uv_stream_t *)&c->tcp) == 0, "no connection");
    uv_tcp_nodelay(&c->tcp, 1);
    uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
    flush(c);
}

/* The limiter of resets is off: what is measured is their cost. */
static void set_up(void) {
    must(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&options) == 0, "no memory");
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_option_set_no_closed_streams(options, 1);
    nghttp2_option_set_stream_reset_rate_limit(options, UINT64_MAX, UINT64_MAX);
}

static unsigned port_of(const uv_tcp_t *listener) {
    struct sockaddr_in at;
    int n = sizeof at;
    must(uv_tcp_getsockname(listener, (struct sockaddr *)&at, &n) == 0, "no address");
    return ntohs(at.sin_port);
}

int main(void) {
    uv_loop_t *loop = uv_default_loop();
    uv_tcp_t listener;
    struct sockaddr_in at;
    set_up();
    signal(SIGPIPE, SIG_IGN);
    uv_ip4_addr("127.0.0.1", 0, &at);
    uv_tcp_init(loop, &listener);
    must(uv_tcp_bind(&listener, (struct sockaddr *)&at, 0) == 0, "can't bind to a port of 127.0.0.1");
    must(uv_listen((uv_stream_t *)&listener, 1024, on_connection) == 0, "can't listen");
    printf("%u\n", port_of(&listener));
    fflush(stdout);
    return uv_run(loop, UV_RUN_DEFAULT);
}
