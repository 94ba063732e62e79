/* fuzz/fuzz_http1_client.c - bytes of any kind as the answer to a request of our client in HTTP/1.
 *
 * The first byte of an input decides what is asked, and how the rest, which is the answer, is cut into pieces.
 * Then the server goes, and the call must have ended in one of the ways that there are. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <ebb/ebb.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MOST = 65536, TURNS = 1000 };

typedef struct world {
    uv_loop_t uv;
    ebb_loop *loop;
    ebb_http_client *client;
    int fd; /* listens */
    char url[64];
} world;

static void require(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void listen_on(world *w) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t n = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    w->fd = socket(AF_INET, SOCK_STREAM, 0);
    require(w->fd >= 0 && bind(w->fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(w->fd, 8) == 0,
            "no socket");
    require(getsockname(w->fd, (struct sockaddr *)&at, &n) == 0, "no name");
    (void)fcntl(w->fd, F_SETFL, O_NONBLOCK);
    snprintf(w->url, sizeof w->url, "http://127.0.0.1:%d/", ntohs(at.sin_port));
}

static world *world_get(void) {
    static world w;
    ebb_http_client_opts opts = {.headers = 16, .header_bytes = 2048, .body_bytes = 4096};
    ebb_loop_opts loop = {.runtime.allocator = ebb_libc_allocator()};
    if (w.client != NULL) return &w;
    listen_on(&w);
    require(uv_loop_init(&w.uv) == 0 && ebb_loop_attach(&w.uv, &loop, &w.loop) == EBB_OK, "no loop");
    require(ebb_http_client_new(ebb_loop_cx(w.loop), &opts, &w.client) == EBB_OK, "no client");
    return &w;
}

static void turn(world *w) {
    (void)ebb_loop_cx(w->loop);
    (void)uv_run(&w->uv, UV_RUN_NOWAIT);
}

/* The connection of a call, once the request is there. */
static int meet(world *w) {
    char bytes[4096];
    int fd = -1;
    for (int i = 0; i < TURNS && fd < 0; i++) {
        turn(w);
        fd = accept(w->fd, NULL, NULL);
    }
    require(fd >= 0, "it does not connect");
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    for (int i = 0; i < TURNS && read(fd, bytes, sizeof bytes) <= 0; i++) turn(w);
    return fd;
}

static void answer(world *w, int fd, const uint8_t *data, size_t n, size_t piece) {
    for (size_t at = 0; at < n;) {
        size_t k = n - at < piece ? n - at : piece;
        ssize_t sent = send(fd, data + at, k, MSG_NOSIGNAL);
        turn(w);
        if (sent <= 0) break;
        at += (size_t)sent;
    }
    close(fd);
}

static bool is_expected(ebb_status st) {
    return st == EBB_OK || st == EBB_ERR_HTTP_RESET || st == EBB_ERR_HTTP_PROTOCOL || st == EBB_ERR_LIMIT;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char *const methods[] = {"GET", "HEAD", "POST", "OPTIONS"};
    if (n == 0 || n > MOST) return 0;
    world *w = world_get();
    size_t piece = data[0] >> 2;
    ebb_http_call call = {.method = methods[data[0] & 3], .url = w->url};
    ebb_future *f = ebb_http_fetch(ebb_loop_cx(w->loop), w->client, &call);
    int fd = meet(w);
    answer(w, fd, data + 1, n - 1, piece == 0 ? SIZE_MAX : piece * 4);
    for (int i = 0; i < TURNS && ebb_future_status_of(f) == EBB_PENDING; i++) turn(w);
    require(is_expected(ebb_future_status_of(f)), ebb_status_name(ebb_future_status_of(f)));
    ebb_future_drop(f);
    for (int i = 0; i < 4; i++) turn(w); /* the client hears that its connection has ended */
    return 0;
}
