/* bench-http-storm [-c CONNECTIONS] [-m STREAMS] [-n RESETS | -s SECONDS] [-k RESETS] [-r RATE] PORT PATH
 *
 * Opens streams to a handler that is slow to answer, and resets them: what a server pays for work that is
 * cancelled while it runs. Each of its connections (-c, 10) takes turns with itself:
 *
 *   open   asks -m times (100) for PATH, sends a PING and waits for its answer: the server has read all of it
 *   reset  resets all of them (CANCEL), sends a PING and waits again: their slots are free
 *
 * until -n streams (100,000) were reset, or until -s seconds are over. So that no server has reason to defend
 * itself, a connection is closed and replaced after -k resets (900; 0: never), and makes at most -r of them a
 * second (0: as many as it can).
 *
 * Prints "streams N seconds S". A stream that the server answers or refuses, or a connection that it ends,
 * was no live work: that is an error. */
#include <arpa/inet.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* 100 streams are what nghttp2 opens at once before it knows the server's own limit. */
enum { MAX_CONNECTIONS = 1000, MAX_STREAMS = 100, SILENCE_MS = 10000, NS_PER_S = 1000000000 };

typedef enum phase { OPENING, RESETTING, RESTING } phase;

/* `streams` are those of its turn. An `fd` of -1: it has ended. */
typedef struct connection {
    nghttp2_session *session;
    int fd;
    phase phase;
    bool answered; /* the PING of this phase */
    uint64_t due;  /* when the next turn may begin */
    uint64_t resets;
    int32_t streams[MAX_STREAMS];
} connection;

static struct {
    uint64_t connections, streams, resets, seconds, replace_after, rate;
    uint16_t port;
    const char *path;
} opts = {.connections = 10, .streams = 100, .resets = 100000, .replace_after = 900};

static connection connections[MAX_CONNECTIONS];
static nghttp2_session_callbacks *callbacks;
static uint64_t opened, started_at;

static void fail(const char *what, const char *detail) {
    fprintf(stderr, "bench-http-storm: %s%s\n", what, detail);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* ---- what nghttp2 tells ------------------------------------------------------------------------------ */

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    connection *c = user;
    (void)session;
    if (frame->hd.type == NGHTTP2_PING) c->answered = true;
    if (frame->hd.type == NGHTTP2_HEADERS) fail("the server has answered a stream of ", opts.path);
    if (frame->hd.type == NGHTTP2_RST_STREAM)
        fail("the server has refused a stream: ", nghttp2_http2_strerror(frame->rst_stream.error_code));
    if (frame->hd.type == NGHTTP2_GOAWAY)
        fail("the server has ended a connection: ", nghttp2_http2_strerror(frame->goaway.error_code));
    return 0;
}

/* ---- a connection ------------------------------------------------------------------------------------ */

static void send_all(connection *c) {
    const uint8_t *bytes;
    char out[65536];
    size_t used = 0;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(c->session, &bytes)) > 0) {
        if (used + (size_t)n > sizeof out) fail("a turn has too many bytes: take fewer streams", "");
        memcpy(out + used, bytes, (size_t)n);
        used += (size_t)n;
    }
    for (size_t at = 0; at < used; at += (size_t)n) {
        n = send(c->fd, out + at, used - at, MSG_NOSIGNAL);
        if (n <= 0) fail("the server has closed a connection", "");
    }
}

static void receive(connection *c) {
    uint8_t in[65536];
    ssize_t n = recv(c->fd, in, sizeof in, 0);
    if (n <= 0) fail("the server has closed a connection", "");
    if (nghttp2_session_mem_recv(c->session, in, (size_t)n) != n) fail("what came is not HTTP/2", "");
}

static void connection_open(connection *c) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(opts.port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0) perror("connect"), exit(1);
    if (nghttp2_session_client_new(&c->session, callbacks, c) != 0) fail("no memory", "");
    nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, NULL, 0);
    c->resets = 0;
}

static void connection_close(connection *c) {
    nghttp2_session_terminate_session(c->session, NGHTTP2_NO_ERROR);
    send_all(c);
    nghttp2_session_del(c->session);
    close(c->fd);
    c->fd = -1;
}

/* ---- a turn ------------------------------------------------------------------------------------------ */

static nghttp2_nv field(const char *name, const char *value) {
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

static void phase_begin(connection *c, phase next) {
    c->phase = next;
    c->answered = false;
    nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL);
    send_all(c);
}

static void turn_open(connection *c) {
    const nghttp2_nv head[] = {field(":method", "GET"), field(":scheme", "http"),
                               field(":authority", "localhost"), field(":path", opts.path)};
    for (uint64_t i = 0; i < opts.streams; i++)
        c->streams[i] = nghttp2_submit_request(c->session, NULL, head, 4, NULL, NULL);
    c->due = now_ns() + (opts.rate == 0 ? 0 : opts.streams * NS_PER_S / opts.rate);
    opened += opts.streams;
    phase_begin(c, OPENING);
}

/* nghttp2 keeps a stream back that is over the server's limit. */
static void must_be_open(connection *c) {
    uint32_t most = nghttp2_session_get_remote_settings(c->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    if (most < opts.streams) fail("the server allows fewer streams than -m", "");
}

static void turn_reset(connection *c) {
    must_be_open(c);
    for (uint64_t i = 0; i < opts.streams; i++)
        nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, c->streams[i], NGHTTP2_CANCEL);
    c->resets += opts.streams;
    phase_begin(c, RESETTING);
}

static bool is_over(void) {
    return opts.seconds > 0 ? now_ns() - started_at >= opts.seconds * NS_PER_S : opened >= opts.resets;
}

static void turn_next(connection *c) {
    if (opts.replace_after > 0 && c->resets + opts.streams > opts.replace_after) {
        connection_close(c);
        connection_open(c);
    }
    turn_open(c);
}

/* ---- all of them ------------------------------------------------------------------------------------- */

/* One more step of a connection whose PING was answered, or whose rest is over. */
static void advance(connection *c) {
    if (c->phase == OPENING && c->answered) turn_reset(c);
    else if (c->phase == RESETTING && c->answered) c->phase = RESTING;
    if (c->phase != RESTING) return;
    if (is_over()) connection_close(c);
    else if (now_ns() >= c->due) turn_next(c);
}

/* How long until the first that rests may go on. */
static int patience_ms(void) {
    uint64_t now = now_ns(), least = (uint64_t)SILENCE_MS * 1000000;
    for (uint64_t i = 0; i < opts.connections; i++) {
        const connection *c = &connections[i];
        if (c->fd < 0 || c->phase != RESTING) continue;
        uint64_t rest = c->due > now ? c->due - now : 0;
        if (rest < least) least = rest;
    }
    return (int)((least + 999999) / 1000000);
}

/* Returns how many connections are left. */
static int step(void) {
    struct pollfd fds[MAX_CONNECTIONS];
    int left = 0, ms = patience_ms();
    for (uint64_t i = 0; i < opts.connections; i++) fds[i] = (struct pollfd){connections[i].fd, POLLIN, 0};
    if (poll(fds, opts.connections, ms) == 0 && ms == SILENCE_MS) fail("the server does not answer PING", "");
    for (uint64_t i = 0; i < opts.connections; i++) {
        if (fds[i].revents != 0) receive(&connections[i]);
        if (connections[i].fd >= 0) advance(&connections[i]);
        left += connections[i].fd >= 0;
    }
    return left;
}

static void usage(void) {
    fprintf(stderr, "usage: bench-http-storm [-c CONNECTIONS] [-m STREAMS] [-n RESETS | -s SECONDS]\n"
                    "                        [-k RESETS] [-r RATE] PORT PATH\n");
    exit(2);
}

/* A number from `least` to `most`. */
static uint64_t number(const char *text, uint64_t least, uint64_t most) {
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == 0 && n >= least && n <= most) return n;
    fprintf(stderr, "bench-http-storm: %s is not a number from %llu to %llu\n", text,
            (unsigned long long)least, (unsigned long long)most);
    exit(2);
}

static void parse(int argc, char **argv) {
    const uint64_t most = 1000000000;
    for (int option; (option = getopt(argc, argv, "c:m:n:s:k:r:")) != -1;) {
        if (option == 'c') opts.connections = number(optarg, 1, MAX_CONNECTIONS);
        else if (option == 'm') opts.streams = number(optarg, 1, MAX_STREAMS);
        else if (option == 'n') opts.resets = number(optarg, 1, most);
        else if (option == 's') opts.seconds = number(optarg, 1, 86400);
        else if (option == 'k') opts.replace_after = number(optarg, 0, most);
        else if (option == 'r') opts.rate = number(optarg, 0, most);
        else usage();
    }
    if (argc - optind != 2) usage();
    opts.port = (uint16_t)number(argv[optind], 1, UINT16_MAX);
    opts.path = argv[optind + 1];
}

int main(int argc, char **argv) {
    parse(argc, argv);
    if (nghttp2_session_callbacks_new(&callbacks) != 0) fail("no memory", "");
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    started_at = now_ns();
    for (uint64_t i = 0; i < opts.connections; i++) {
        connection_open(&connections[i]);
        turn_open(&connections[i]);
    }
    while (step() > 0) {}
    printf("streams %llu seconds %.3f\n", (unsigned long long)opened,
           (double)(now_ns() - started_at) / NS_PER_S);
    nghttp2_session_callbacks_del(callbacks);
    return 0;
}
