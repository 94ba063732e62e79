/* A store that asks the process that owns the file, over its socket: one thread, one call at a time. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "durable/sqlite.h"
#include "durable/sqlite_codec.h"

enum { SLOW_S = 30 };

struct ebb__sqlite_remote {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t asked;
    ebb__call_queue queue;
    bool stopping;
    struct sockaddr_un at;
    int fd; /* -1: not connected. The thread's */
};

static bool reach(ebb__sqlite_remote *r) {
    const struct timeval slow = {SLOW_S, 0};
    if (r->fd >= 0) return true;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &slow, sizeof slow);
    if (connect(fd, (const struct sockaddr *)&r->at, sizeof r->at) == 0) r->fd = fd;
    else (void)close(fd);
    return r->fd >= 0;
}

static void leave(ebb__sqlite_remote *r) {
    if (r->fd >= 0) (void)close(r->fd);
    r->fd = -1;
}

static bool exchange(ebb__sqlite_remote *r, ebb_provider_call *c, ebb_status *st, const char **text) {
    ebb__sqlite_codec asked = {.writes = true}, answered = {.writes = false};
    ebb_provider_op op = (ebb_provider_op)0;
    ebb__sqlite_codec_ask(&asked, c);
    const ebb__sqlite_line line = {r->fd, -1, SLOW_S * 1000};
    bool whole = ebb__sqlite_frame_write(&line, &asked, c->op) &&
                 ebb__sqlite_frame_read(&line, &answered, &op) && op == c->op;
    answered.into = c;
    if (whole) ebb__sqlite_codec_answer(&answered, c, st, text);
    free(asked.at);
    free(answered.at);
    return whole && !answered.failed;
}

static void ask(ebb__sqlite_remote *r, ebb_provider_call *c) {
    ebb_status st = EBB_OK;
    const char *text = NULL;
    if (reach(r) && exchange(r, c, &st, &text)) {
        ebb_provider_done(c, st, text);
        return;
    }
    leave(r); /* the next call tries again: perhaps another process owns the file then */
    ebb__provider_fail(c, EBB_ERR_UNAVAILABLE, "the owner of the file does not answer at %.100s",
                       r->at.sun_path);
}

static void *run(void *remote) {
    ebb__sqlite_remote *r = remote;
    (void)pthread_mutex_lock(&r->lock);
    while (!r->stopping || r->queue.first != NULL) {
        ebb_provider_call *c = ebb__call_queue_pop(&r->queue);
        if (c == NULL) {
            (void)pthread_cond_wait(&r->asked, &r->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&r->lock);
        ask(r, c);
        (void)pthread_mutex_lock(&r->lock);
    }
    (void)pthread_mutex_unlock(&r->lock);
    leave(r);
    return NULL;
}

static void remote_free(ebb__sqlite_remote *r) {
    leave(r);
    (void)pthread_mutex_destroy(&r->lock);
    (void)pthread_cond_destroy(&r->asked);
    free(r);
}

ebb_status ebb__sqlite_remote_open(ebb__sqlite_store *s, ebb__sqlite_wish *w) {
    char path[PATH_MAX];
    ebb__sqlite_remote *r = calloc(1, sizeof *r);
    if (r == NULL) return EBB_ERR_NOMEM;
    r->fd = -1;
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->asked, NULL);
    const bool reached = realpath(w->path, path) != NULL && ebb__sqlite_socket_name(path, &r->at) && reach(r);
    if (reached && pthread_create(&r->thread, NULL, run, r) == 0) {
        s->remote = r;
        w->text[0] = 0;
        return EBB_OK;
    }
    remote_free(r);
    return EBB_ERR_BUSY; /* with the text that names the owner */
}

void ebb__sqlite_remote_close(ebb__sqlite_store *s) {
    ebb__sqlite_remote *r = s->remote;
    (void)pthread_mutex_lock(&r->lock);
    r->stopping = true;
    (void)pthread_cond_signal(&r->asked);
    (void)pthread_mutex_unlock(&r->lock);
    (void)pthread_join(r->thread, NULL);
    remote_free(r);
    s->remote = NULL;
}

static bool reads(ebb_provider_op op) {
    return op >= EBB_PROVIDER_HISTORY && op <= EBB_PROVIDER_OUTSTANDING;
}

void ebb__sqlite_remote_queue(ebb__sqlite_store *s, ebb_provider_call *c) {
    ebb__sqlite_remote *r = s->remote;
    if (s->read_only && !reads(c->op)) {
        ebb_provider_done(c, EBB_ERR_CLOSED, "the store is open for reading only");
        return;
    }
    if (!ebb__sqlite_codec_has(c->op)) {
        ebb_provider_done(c, EBB_ERR_CLOSED, "a store that asks another process has no workers");
        return;
    }
    (void)pthread_mutex_lock(&r->lock);
    ebb__call_queue_push(&r->queue, c);
    (void)pthread_cond_signal(&r->asked);
    (void)pthread_mutex_unlock(&r->lock);
}
