/* workflow/inspect.c - the socket at which `ebb top` looks at a running service.
 *
 * All of this runs on the first loop, in callbacks of libuv, beside the runtime: no task waits here. A *round* takes
 * one snapshot of each loop and answers all readers that have asked. The first loop's is taken at once; each other
 * loop is asked by a message, and a round waits for them no longer than ROUND_MS. A loop that has not answered is in
 * the answer all the same, and is not asked again before it has answered. Rounds begin GAP_MS after each other at least:
 * readers that ask all the time cost no more than one that asks ten times a second.
 *
 * A reader that does not take its answer in READER_MS is dropped, and so is one that asks nothing for IDLE_MS. */
#define _DEFAULT_SOURCE
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "workflow/inspect.h"
#include "workflow/service.h"

enum {
    READERS = 8,
    TICK_MS = 100,
    GAP_MS = 100,
    ROUND_MS = 1000,
    READER_MS = 5000,
    IDLE_MS = 60000,
    BACKLOG = 16
};
enum { REQUEST_BYTES = sizeof EBB__INSPECT_REQUEST - 1 };

typedef enum reader_state { FREE, READING, WAITING, WRITING, CLOSING } reader_state;

typedef struct reader {
    uv_poll_t poll;
    ebb__inspect *inspect;
    reader_state state;
    int fd;
    uint64_t since; /* when the state began */
    char request[REQUEST_BYTES];
    size_t got;
    bool last; /* dropped after this answer */
    char *answer;
    size_t n, sent;
} reader;

/* `lock` is for what branches write: `loop[].text` and `.fresh` of the loops after the first, and `closed`. */
struct ebb__inspect {
    ebb__service *service;
    const ebb_allocator *allocator;
    const ebb__platform *os;
    uv_poll_t poll;
    uv_timer_t timer;
    uv_async_t async;
    uv_mutex_t lock;
    int fd;
    bool ticking, paused; /* paused: no descriptor was left for an accept */
    char path[EBB__INSPECT_PATH];
    dev_t device; /* the socket's place; another process may have replaced it */
    ino_t inode;
    reader readers[READERS];
    bool round;
    bool closed;
    uint64_t round_at; /* when the last round began */
    uint32_t loops;
    struct {
        ebb__inspect_text text;
        bool fresh; /* written in this round */
    } loop[];
};

static uint64_t now_of(const ebb__inspect *i) {
    return i->os->hrtime();
}

/* ---- readers ------------------------------------------------------------------------------------------- */

static void on_ready(uv_poll_t *poll, int status, int events);

static void reader_closed(uv_handle_t *h) {
    reader *r = h->data;
    (void)close(r->fd);
    r->state = FREE;
}

static void answer_free(reader *r) {
    ebb__free(r->inspect->allocator, r->answer, r->n);
    r->answer = NULL;
}

static void drop(reader *r) {
    answer_free(r);
    r->state = CLOSING;
    r->inspect->os->close((uv_handle_t *)&r->poll, reader_closed);
}

static void move(reader *r, reader_state to, int events) {
    r->state = to;
    r->since = now_of(r->inspect);
    if (r->inspect->os->poll_start(&r->poll, events | UV_DISCONNECT, on_ready) != 0) drop(r);
}

static void write_some(reader *r) {
    while (r->sent < r->n) {
        ssize_t n = send(r->fd, r->answer + r->sent, r->n - r->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n <= 0) {
            drop(r);
            return;
        }
        r->sent += (size_t)n;
    }
    answer_free(r);
    if (r->last) drop(r);
    else move(r, READING, UV_READABLE);
}

/* Without memory for the answer the reader is dropped. */
static void answer(reader *r, const char *text, size_t n) {
    r->answer = ebb__alloc(r->inspect->allocator, n);
    if (r->answer == NULL) {
        drop(r);
        return;
    }
    memcpy(r->answer, text, n);
    r->n = n;
    r->sent = 0;
    r->got = 0;
    move(r, WRITING, UV_WRITABLE);
    if (r->state == WRITING) write_some(r);
}

static void refuse(reader *r, const char *why) {
    char line[128];
    int n = snprintf(line, sizeof line, "{\"ebb_inspect\":1,\"error\":\"%s\"}\n", why);
    r->last = true;
    answer(r, line, (size_t)n);
}

/* ---- rounds -------------------------------------------------------------------------------------------- */

static void say_loops(ebb__inspect *i, ebb__inspect_text *t) {
    uv_mutex_lock(&i->lock);
    for (uint32_t l = 0; l < i->loops; l++) {
        const ebb__inspect_text *one = &i->loop[l].text;
        bool fresh = i->loop[l].fresh && !one->failed;
        if (l > 0) ebb__inspect_say(t, ",");
        if (!fresh)
            ebb__inspect_say(t, "{\"loop\":%" PRIu32 ",\"error\":\"%s\"}", l,
                             i->loop[l].fresh ? "no memory for its snapshot" : "does not answer");
        if (fresh) ebb__inspect_add(t, one->at, one->n);
        ebb__inspect_text_free(&i->loop[l].text);
        i->loop[l].fresh = false;
    }
    uv_mutex_unlock(&i->lock);
}

static void round_end(ebb__inspect *i) {
    ebb__inspect_text t = {.allocator = i->allocator};
    ebb__inspect_say(&t, "{\"ebb_inspect\":1,\"pid\":%ld,\"version\":", (long)getpid());
    ebb__inspect_string(&t, ebb_version());
    ebb__inspect_say(&t, ",\"loops\":[");
    say_loops(i, &t);
    ebb__inspect_say(&t, "]}\n");
    i->round = false;
    for (int k = 0; k < READERS; k++) {
        reader *r = &i->readers[k];
        if (r->state != WAITING) continue;
        if (t.failed) refuse(r, "out of memory");
        else answer(r, t.at, t.n);
    }
    ebb__inspect_text_free(&t);
}

static bool round_is_complete(ebb__inspect *i) {
    bool all = true;
    uv_mutex_lock(&i->lock);
    for (uint32_t l = 0; l < i->loops; l++) all &= i->loop[l].fresh;
    uv_mutex_unlock(&i->lock);
    return all;
}

static void round_begin(ebb__inspect *i) {
    ebb__service *s = i->service;
    ebb_cx *cx = ebb_loop_cx(s->loop);
    i->round = true;
    i->round_at = now_of(i);
    i->loop[0].text = (ebb__inspect_text){.allocator = i->allocator};
    ebb__inspect_loop(&i->loop[0].text, cx, s->shutdown, 0);
    i->loop[0].fresh = true;
    ebb__branches_inspect(s, cx);
    if (round_is_complete(i)) round_end(i);
}

/* Begins a round if a reader waits for one, and it is time. */
static void round_if_due(ebb__inspect *i) {
    bool wanted = false;
    for (int k = 0; k < READERS; k++) wanted |= i->readers[k].state == WAITING;
    if (wanted && !i->round && now_of(i) - i->round_at >= GAP_MS * EBB_MS) round_begin(i);
}

void ebb__inspect_answer(ebb__inspect *i, ebb_cx *cx, ebb_workflow wf, uint32_t position) {
    ebb__inspect_text text = {.allocator = i->allocator};
    ebb__inspect_loop(&text, cx, wf, position);
    uv_mutex_lock(&i->lock);
    ebb__inspect_text_free(&i->loop[position].text);
    i->loop[position].text = text;
    i->loop[position].fresh = true;
    if (!i->closed) (void)i->os->async_send(&i->async);
    uv_mutex_unlock(&i->lock);
}

static void on_answer(uv_async_t *async) {
    ebb__inspect *i = async->data;
    if (i->round && round_is_complete(i)) round_end(i);
}

/* ---- events -------------------------------------------------------------------------------------------- */

static void read_request(reader *r) {
    ssize_t n = recv(r->fd, r->request + r->got, REQUEST_BYTES - r->got, 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (n <= 0) {
        drop(r);
        return;
    }
    r->got += (size_t)n;
    if (memcmp(r->request, EBB__INSPECT_REQUEST, r->got) != 0) {
        refuse(r, "the request is not 'snapshot 1'");
    } else if (r->got == REQUEST_BYTES) {
        move(r, WAITING, 0);
        round_if_due(r->inspect);
    }
}

static void on_ready(uv_poll_t *poll, int status, int events) {
    reader *r = poll->data;
    if (r->state == CLOSING) return;
    if (status < 0 || (events & UV_DISCONNECT && !(events & UV_READABLE))) drop(r);
    else if (r->state == READING && events & UV_READABLE) read_request(r);
    else if (r->state == WRITING && events & UV_WRITABLE) write_some(r);
}

static void look_at(reader *r) {
    static const uint64_t most_ms[] = {[READING] = IDLE_MS, [WAITING] = READER_MS, [WRITING] = READER_MS};
    if (r->state == FREE || r->state == CLOSING) return;
    if (now_of(r->inspect) - r->since > most_ms[r->state] * EBB_MS) drop(r);
}

static void on_tick(uv_timer_t *timer);

static void tick_later(ebb__inspect *i) {
    bool any = i->paused;
    for (int k = 0; k < READERS; k++) any |= i->readers[k].state != FREE;
    if (any && !i->ticking) i->ticking = i->os->timer_start(&i->timer, on_tick, TICK_MS, 0) == 0;
}

static reader *free_reader(ebb__inspect *i) {
    for (int k = 0; k < READERS; k++) {
        if (i->readers[k].state == FREE) return &i->readers[k];
    }
    return NULL;
}

/* One reader more than there are places for learns why it gets no answer: its connection ends. */
static void turn_away(int fd) {
    char line[96];
    int n = snprintf(line, sizeof line, "{\"ebb_inspect\":1,\"error\":\"%d readers look at it already\"}\n",
                     READERS);
    (void)send(fd, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void admit(ebb__inspect *i, int fd) {
    reader *r = free_reader(i);
    if (r == NULL) turn_away(fd);
    bool ready = r != NULL && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
    if (!ready || i->os->poll_init(&i->service->uv, &r->poll, fd) != 0) {
        (void)close(fd);
        return;
    }
    *r = (reader){.poll = r->poll, .inspect = i, .fd = fd};
    r->poll.data = r;
    i->os->unref((uv_handle_t *)&r->poll);
    move(r, READING, UV_READABLE);
}

static void on_connection(uv_poll_t *poll, int status, int events) {
    ebb__inspect *i = poll->data;
    (void)events;
    int fd = status < 0 ? -1 : accept(i->fd, NULL, NULL);
    if (fd >= 0) {
        admit(i, fd);
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        i->paused = i->os->poll_stop(&i->poll) == 0;
    }
    tick_later(i);
}

static void on_tick(uv_timer_t *timer) {
    ebb__inspect *i = timer->data;
    i->ticking = false;
    if (i->paused) i->paused = i->os->poll_start(&i->poll, UV_READABLE, on_connection) != 0;
    if (i->round && now_of(i) - i->round_at > ROUND_MS * EBB_MS) round_end(i);
    round_if_due(i);
    for (int k = 0; k < READERS; k++) look_at(&i->readers[k]);
    tick_later(i);
}

/* ---- the socket ---------------------------------------------------------------------------------------- */

static bool place_of(char out[EBB__INSPECT_PATH]) {
    const char *run = getenv("XDG_RUNTIME_DIR");
    bool has = run != NULL && run[0] == '/';
    int n = has ? snprintf(out, EBB__INSPECT_PATH, "%s/ebb", run)
                : snprintf(out, EBB__INSPECT_PATH, "/tmp/ebb-%lu", (unsigned long)geteuid());
    return n > 0 && n < EBB__INSPECT_PATH;
}

bool ebb__inspect_path(uint64_t pid, char out[EBB__INSPECT_PATH]) {
    char place[EBB__INSPECT_PATH];
    if (!place_of(place)) return false;
    int n = snprintf(out, EBB__INSPECT_PATH, "%s/%" PRIu64 ".sock", place, pid);
    return n > 0 && n < EBB__INSPECT_PATH;
}

/* Nobody else may own the directory, or put a socket there. */
static ebb_status make_place(void) {
    char place[EBB__INSPECT_PATH];
    struct stat is;
    if (!place_of(place)) return EBB_ERRNO(ENAMETOOLONG);
    if (mkdir(place, 0700) != 0 && errno != EEXIST) return EBB_ERRNO(errno);
    if (lstat(place, &is) != 0) return EBB_ERRNO(errno);
    return S_ISDIR(is.st_mode) && is.st_uid == geteuid() && (is.st_mode & 022) == 0 ? EBB_OK
                                                                                    : EBB_ERRNO(EACCES);
}

static bool is_dead(const struct sockaddr_un *at) {
    struct stat is;
    if (lstat(at->sun_path, &is) != 0 || !S_ISSOCK(is.st_mode)) return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool dead = fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof *at) != 0 && errno == ECONNREFUSED;
    if (fd >= 0) (void)close(fd);
    return dead;
}

/* The rights of the descriptor are those of the socket from its first moment on. */
static ebb_status listen_at(ebb__inspect *i) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct stat is;
    memcpy(at.sun_path, i->path, sizeof at.sun_path);
    i->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (i->fd < 0 || fchmod(i->fd, 0600) != 0) return EBB_ERRNO(errno);
    if (bind(i->fd, (const struct sockaddr *)&at, sizeof at) != 0) {
        if (errno != EADDRINUSE) return EBB_ERRNO(errno);
        if (!is_dead(&at)) return EBB_ERRNO(EADDRINUSE);
        (void)unlink(i->path);
        if (bind(i->fd, (const struct sockaddr *)&at, sizeof at) != 0) return EBB_ERRNO(errno);
    }
    if (lstat(i->path, &is) != 0) return EBB_ERRNO(errno);
    i->device = is.st_dev;
    i->inode = is.st_ino;
    return listen(i->fd, BACKLOG) == 0 ? EBB_OK : EBB_ERRNO(errno);
}

static void unlink_own(const ebb__inspect *i) {
    struct stat is;
    if (i->inode != 0 && lstat(i->path, &is) == 0 && is.st_dev == i->device && is.st_ino == i->inode)
        (void)unlink(i->path);
}

static size_t bytes_of(uint32_t loops) {
    ebb__inspect *i;
    return sizeof *i + loops * sizeof i->loop[0];
}

static ebb_status watch(ebb__inspect *i, uv_loop_t *uv) {
    int code = i->os->poll_init(uv, &i->poll, i->fd);
    if (code != 0) return EBB_UV(code);
    (void)i->os->timer_init(uv, &i->timer);
    code = i->os->async_init(uv, &i->async, on_answer);
    if (code != 0) {
        i->os->close((uv_handle_t *)&i->poll, NULL);
        i->os->close((uv_handle_t *)&i->timer, NULL);
        return EBB_UV(code);
    }
    i->poll.data = i->timer.data = i->async.data = i;
    i->os->unref((uv_handle_t *)&i->poll);
    i->os->unref((uv_handle_t *)&i->timer);
    i->os->unref((uv_handle_t *)&i->async);
    i->service->inspect = i;
    code = i->os->poll_start(&i->poll, UV_READABLE, on_connection);
    return code == 0 ? EBB_OK : EBB_UV(code);
}

/* In the lab there is nobody to look. */
ebb_status ebb__inspect_open(ebb__service *s, const char *path) {
    if (path == NULL || s->os != &ebb__uv_platform) return EBB_OK;
    const ebb_allocator *a = &s->opts.loop.runtime.allocator;
    bool well_known = path[0] == 0;
    if (strlen(path) >= EBB__INSPECT_PATH) return EBB_ERRNO(ENAMETOOLONG);
    ebb_status st = well_known ? make_place() : EBB_OK;
    if (st != EBB_OK) return st;
    ebb__inspect *i = ebb__alloc(a, bytes_of(s->n + 1));
    if (i == NULL) return EBB_ERR_NOMEM;
    memset(i, 0, bytes_of(s->n + 1));
    i->service = s;
    i->allocator = a;
    i->os = s->os;
    i->loops = s->n + 1;
    i->fd = -1;
    for (uint32_t l = 0; l < i->loops; l++) i->loop[l].text.allocator = a;
    if (!well_known) memcpy(i->path, path, strlen(path) + 1);
    else if (!ebb__inspect_path((uint64_t)getpid(), i->path)) st = EBB_ERRNO(ENAMETOOLONG);
    if (uv_mutex_init(&i->lock) != 0) {
        ebb__free(a, i, bytes_of(s->n + 1));
        return EBB_ERR_NOMEM;
    }
    if (st == EBB_OK) st = listen_at(i);
    if (st == EBB_OK) st = watch(i, &s->uv);
    if (s->inspect == NULL) { /* no handle has the record */
        unlink_own(i);
        if (i->fd >= 0) (void)close(i->fd);
        uv_mutex_destroy(&i->lock);
        ebb__free(a, i, bytes_of(s->n + 1));
    }
    return st;
}

void ebb__inspect_close(ebb__inspect *i) {
    if (i == NULL) return;
    uv_mutex_lock(&i->lock);
    i->closed = true;
    uv_mutex_unlock(&i->lock);
    unlink_own(i);
    for (int k = 0; k < READERS; k++) {
        if (i->readers[k].state != FREE && i->readers[k].state != CLOSING) drop(&i->readers[k]);
    }
    i->os->close((uv_handle_t *)&i->poll, NULL);
    i->os->close((uv_handle_t *)&i->timer, NULL);
    i->os->close((uv_handle_t *)&i->async, NULL);
}

void ebb__inspect_free(ebb__inspect *i) {
    if (i == NULL) return;
    const ebb_allocator *a = i->allocator;
    for (uint32_t l = 0; l < i->loops; l++) ebb__inspect_text_free(&i->loop[l].text);
    (void)close(i->fd);
    uv_mutex_destroy(&i->lock);
    ebb__free(a, i, bytes_of(i->loops));
}
