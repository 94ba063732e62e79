/* The owner's side of clients in other processes: a thread that listens at PATH.sock, takes one call at a time from its
 * clients, and passes it on as a store of its own. It has a runtime, since calls are futures. Only the user who owns the file's
 * process can connect. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "durable/sqlite.h"
#include "durable/sqlite_codec.h"
#include "durable/store.h"

enum { CLIENTS = 16, SLOW_MS = 5000, NO_DESCRIPTORS_MS = 20 };

struct ebb__sqlite_server {
    pthread_t thread;
    struct sockaddr_un at;
    int listener, stop[2]; /* stop: a pipe whose end closes */
    ebb__sqlite_store store;
    ebb__call_gate gate;
    ebb_runtime *rt;
    sem_t woken;
    int clients[CLIENTS];
    uint32_t clients_n;
};

bool ebb__sqlite_socket_name(const char *path, struct sockaddr_un *at) {
    memset(at, 0, sizeof *at);
    at->sun_family = AF_UNIX;
    const int n = snprintf(at->sun_path, sizeof at->sun_path, "%s.sock", path);
    return n > 0 && (size_t)n < sizeof at->sun_path;
}

/* ---- one call -------------------------------------------------------------------------------------------------- */

static void on_wake(void *woken) {
    (void)sem_post(woken);
}

static void wait_for(ebb__sqlite_server *s, ebb_future *f) {
    while (ebb_future_state_of(f) == EBB_FUTURE_PENDING) {
        (void)sem_wait(&s->woken);
        ebb_inbox_receive(s->rt);
        while (ebb_runtime_pump(s->rt, UINT32_MAX) == EBB_PENDING) {}
    }
}

/* An answer that is too long for a frame is one of its own. */
static bool send_answer(const ebb__sqlite_line *l, ebb_provider_call *c) {
    ebb__sqlite_codec k = {.writes = true};
    ebb_status st = c->status;
    const char *text = c->text;
    char too_long[120];
    ebb__sqlite_codec_answer(&k, c, &st, &text);
    if (k.n > EBB__SQLITE_FRAME_MOST) {
        (void)snprintf(too_long, sizeof too_long, "the answer has %zu bytes (%d): ask for less at a time",
                       k.n, EBB__SQLITE_FRAME_MOST);
        st = EBB_ERR_LIMIT;
        text = too_long;
        k.n = 0;
        ebb__sqlite_codec_answer(&k, c, &st, &text);
    }
    const bool sent = ebb__sqlite_frame_write(l, &k, c->op);
    free(k.at);
    return sent;
}

static bool reply(ebb__sqlite_server *s, const ebb__sqlite_line *l, ebb_future *f) {
    ebb_value v;
    const ebb_status st = ebb_await(ebb_runtime_host(s->rt), f, &v);
    if (st != EBB_OK) return false;
    ebb_provider_call *c = ebb__call_of(&v);
    const bool sent = send_answer(l, c);
    ebb__call_free(c);
    return sent;
}

/* False: the client has left, or is not understood. */
static bool serve_one(ebb__sqlite_server *s, int fd) {
    ebb__sqlite_codec k;
    ebb_provider_op op;
    const ebb__sqlite_line line = {fd, s->stop[0], SLOW_MS};
    bool goes_on = ebb__sqlite_frame_read(&line, &k, &op) && ebb__sqlite_codec_has(op);
    k.into = goes_on ? ebb__call_new(&s->gate, op) : NULL;
    goes_on = k.into != NULL;
    if (goes_on) ebb__sqlite_codec_ask(&k, k.into);
    if (goes_on && k.failed) {
        ebb__call_free(k.into);
        goes_on = false;
    }
    free(k.at);
    if (!goes_on) return false;
    ebb_future *f = ebb__call_begin(ebb_runtime_host(s->rt), k.into, EBB_SITE);
    wait_for(s, f);
    return reply(s, &line, f);
}

/* ---- the thread ---------------------------------------------------------------------------------------------------- */

static void accept_one(ebb__sqlite_server *s) {
    const int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) { /* without descriptors it stays ready: a pause, so that the thread does not spin */
        const struct timespec pause = {0, NO_DESCRIPTORS_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
        return;
    }
    if (s->clients_n == CLIENTS) {
        (void)close(fd);
        return;
    }
    s->clients[s->clients_n++] = fd;
}

/* False: the file is being closed. */
static bool serve_ready(ebb__sqlite_server *s) {
    struct pollfd fds[CLIENTS + 2] = {{s->stop[0], POLLIN, 0}, {s->listener, POLLIN, 0}};
    for (uint32_t i = 0; i < s->clients_n; i++) fds[i + 2] = (struct pollfd){s->clients[i], POLLIN, 0};
    const uint32_t n = s->clients_n;
    if (poll(fds, n + 2, -1) < 0) return errno == EINTR;
    if (fds[0].revents != 0) return false;
    for (uint32_t i = n; i > 0; i--) {
        if (fds[i + 1].revents == 0 || serve_one(s, s->clients[i - 1])) continue;
        (void)close(s->clients[i - 1]);
        s->clients[i - 1] = s->clients[--s->clients_n];
    }
    if (fds[1].revents != 0) accept_one(s);
    return true;
}

static bool runtime_open(ebb__sqlite_server *s) {
    const ebb_runtime_opts opts = {.allocator = ebb__sqlite_heap()};
    if (ebb_runtime_new(&opts, &s->rt) != EBB_OK) return false;
    (void)ebb_future_failed(ebb_runtime_host(s->rt), EBB_FAILED); /* the heap is made with the first future */
    s->gate.provider = &ebb__provider_sqlite;
    s->gate.self = &s->store;
    s->gate.heap = ebb__heap_at(s->rt);
    s->gate.allocator = ebb__sqlite_heap();
    s->gate.most = CLIENTS;
    return s->gate.heap != NULL && ebb_inbox_on_wake(s->rt, on_wake, &s->woken) == EBB_OK;
}

static void runtime_close(ebb__sqlite_server *s) {
    if (s->rt == NULL) return;
    (void)ebb_region_close(ebb_runtime_host(s->rt), ebb_runtime_root(s->rt));
    while (ebb_runtime_pump(s->rt, UINT32_MAX) == EBB_PENDING) {}
    ebb_runtime_free(s->rt);
}

static void *serve(void *server) {
    ebb__sqlite_server *s = server;
    if (runtime_open(s))
        while (serve_ready(s)) {}
    for (uint32_t i = 0; i < s->clients_n; i++) (void)close(s->clients[i]);
    runtime_close(s);
    return NULL;
}

/* ---- started and stopped --------------------------------------------------------------------------------------------- */

static bool listen_at(ebb__sqlite_server *s) {
    s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listener < 0) return false;
    (void)unlink(s->at.sun_path); /* of an owner that has died: the file is ours */
    return bind(s->listener, (const struct sockaddr *)&s->at, sizeof s->at) == 0 &&
           chmod(s->at.sun_path, 0600) == 0 && /* nobody can connect before the listen */
           listen(s->listener, CLIENTS) == 0 && pipe2(s->stop, O_CLOEXEC) == 0;
}

static void server_free(ebb__sqlite_server *s) {
    if (s->listener >= 0) (void)close(s->listener);
    if (s->stop[0] >= 0) (void)close(s->stop[0]);
    if (s->stop[1] >= 0) (void)close(s->stop[1]);
    (void)sem_destroy(&s->woken);
    free(s);
}

void ebb__sqlite_server_start(ebb__sqlite_file *f) {
    ebb__sqlite_server *s = calloc(1, sizeof *s);
    if (s == NULL) return;
    s->listener = s->stop[0] = s->stop[1] = -1;
    s->store.file = f;
    (void)sem_init(&s->woken, 0, 0);
    if (ebb__sqlite_socket_name(f->path, &s->at) && listen_at(s) &&
        pthread_create(&s->thread, NULL, serve, s) == 0)
        f->server = s;
    else server_free(s);
}

void ebb__sqlite_server_stop(ebb__sqlite_file *f) {
    ebb__sqlite_server *s = f->server;
    if (s == NULL) return;
    (void)unlink(s->at.sun_path);
    (void)close(s->stop[1]);
    s->stop[1] = -1;
    (void)pthread_join(s->thread, NULL);
    server_free(s);
    f->server = NULL;
}
