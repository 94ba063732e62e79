#define _POSIX_C_SOURCE 200809L
#define _GNU_SOURCE     /* SO_REUSEPORT, SO_ATTACH_FILTER */
#include "loop/listen_address.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/filter.h>
#endif

#include "base/alloc.h"

enum { BACKLOG = 511 };

struct ebb__listen_address {
    ebb__listen_address *next;
    ebb__share *share; /* NULL: used by one loop alone */
    ebb_allocator allocator;
    struct sockaddr_storage requested; /* unused bytes are 0 */
    in_port_t port;                    /* chosen by the system, if port 0 was asked for */
    uint64_t loops[4];                 /* the loops that listen here: a bit for each runtime id */
    uint32_t users;
    int socket; /* a shared Unix socket, of which the loops have duplicates; -1: none */
    bool removed;
};

/* ---- sharing -------------------------------------------------------------------------------------------- */

ebb_status ebb__share_init(ebb__share *s, ebb_allocator a, uint32_t loops) {
    *s = (ebb__share){.allocator = a, .loops = loops};
    int code = uv_mutex_init(&s->lock);
    return code == 0 ? EBB_OK : ebb__uv_status(code);
}

void ebb__share_fini(ebb__share *s) {
    uv_mutex_destroy(&s->lock);
}

static void lock(ebb__share *s) {
    if (s != NULL) uv_mutex_lock(&s->lock);
}

static void unlock(ebb__share *s) {
    if (s != NULL) uv_mutex_unlock(&s->lock);
}

static bool has(const ebb__listen_address *p, uint8_t loop) {
    return p->loops[loop / 64] >> (loop % 64) & 1;
}

static void mark(ebb__listen_address *p, uint8_t loop) {
    p->loops[loop / 64] ^= UINT64_C(1) << (loop % 64);
}

/* The first address where another loop of the service listens and this one does not. So the n-th listener of each
 * loop at an address with port 0 gets the same port. */
static ebb__listen_address *find(const ebb_loop *l, const struct sockaddr_storage *at) {
    ebb__listen_address *p = l->share == NULL ? NULL : l->share->first;
    while (p != NULL && (has(p, l->id) || p->removed || memcmp(&p->requested, at, sizeof *at) != 0))
        p = p->next;
    return p;
}

static ebb__listen_address *address_new(ebb_loop *l, const struct sockaddr_storage *at) {
    const ebb_allocator *a = l->share != NULL ? &l->share->allocator : &l->allocator;
    ebb__listen_address *p = ebb__alloc(a, sizeof *p);
    if (p == NULL) return NULL;
    *p = (ebb__listen_address){.share = l->share, .allocator = *a, .requested = *at, .socket = -1};
    if (p->share != NULL) {
        ebb__listen_address **last = &p->share->first;
        while (*last != NULL) last = &(*last)->next;
        *last = p;
    }
    return p;
}

static void address_free(ebb__listen_address *p) {
    ebb_allocator a = p->allocator;
    if (p->socket >= 0) (void)close(p->socket);
    if (p->share != NULL) {
        ebb__listen_address **at = &p->share->first;
        while (*at != p) at = &(*at)->next;
        *at = p->next;
    }
    ebb__free(&a, p, sizeof *p);
}

/* ---- sockets -------------------------------------------------------------------------------------------- */

static socklen_t size_of(const struct sockaddr_storage *at) {
    switch (at->ss_family) {
    case AF_INET: return sizeof(struct sockaddr_in);
    case AF_INET6: return sizeof(struct sockaddr_in6);
    default: return sizeof(struct sockaddr_un);
    }
}

/* At the same offset in both families. */
static in_port_t *port_of(struct sockaddr_storage *at) {
    _Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port), "");
    return &((struct sockaddr_in *)(void *)at)->sin_port;
}

static bool set(int fd, int level, int option, int value) {
    return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

/* The first socket is bound without SO_REUSEPORT, so that a port of another process is refused. The option is set
 * afterwards, for the sockets of the other loops. */
static bool bind_tcp(int fd, ebb__listen_address *p, bool first) {
    struct sockaddr_storage at = p->requested;
    socklen_t n = sizeof at;
    bool shared = p->share != NULL;
    if (!first) *port_of(&at) = p->port;
    if (!set(fd, SOL_SOCKET, SO_REUSEADDR, 1)) return false;
    if (at.ss_family == AF_INET6 && !set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0)) return false;
    if (!first && !set(fd, SOL_SOCKET, SO_REUSEPORT, 1)) return false;
    if (bind(fd, (struct sockaddr *)&at, size_of(&at)) != 0) return false;
    if (first && shared && !set(fd, SOL_SOCKET, SO_REUSEPORT, 1)) return false;
    if (listen(fd, BACKLOG) != 0 || getsockname(fd, (struct sockaddr *)&at, &n) != 0) return false;
    p->port = *port_of(&at);
    return true;
}

/* ENOENT becomes EACCES, as libuv reports it on every system. */
static bool bind_pipe(int fd, const ebb__listen_address *p) {
    if (bind(fd, (const struct sockaddr *)&p->requested, size_of(&p->requested)) != 0) {
        if (errno == ENOENT) errno = EACCES;
        return false;
    }
    return listen(fd, BACKLOG) == 0;
}

static const char *path_of(const ebb__listen_address *p) {
    return ((const struct sockaddr_un *)(const void *)&p->requested)->sun_path;
}

static int dup_of(int fd) {
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* -1: see errno. */
static int open_pipe(ebb__listen_address *p, bool first, int fd) {
    if (!first) return dup_of(p->socket);
    if (!bind_pipe(fd, p)) return -1;
    if (p->share != NULL && (p->socket = dup_of(fd)) < 0) {
        (void)unlink(path_of(p));
        return -1;
    }
    return fd;
}

static int open_at(ebb__listen_address *p, bool first) {
    bool pipe = p->requested.ss_family == AF_UNIX;
    int fd = -1, got;
    if (!pipe || first) fd = socket(p->requested.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 && (!pipe || first)) return -1;
    if (pipe) got = open_pipe(p, first, fd);
    else got = bind_tcp(fd, p, first) ? fd : -1;
    if (got < 0 && fd >= 0) {
        int error = errno;
        (void)close(fd);
        errno = error;
    }
    return got;
}

ebb_status ebb__listen_address_open(ebb_loop *l, const struct sockaddr_storage *at, int *fd,
                                    ebb__listen_address **out) {
    ebb_status st = EBB_OK;
    lock(l->share);
    ebb__listen_address *p = find(l, at);
    bool first = p == NULL;
    if (first) p = address_new(l, at);
    if (p == NULL) st = EBB_ERR_NOMEM;
    else if ((*fd = open_at(p, first)) < 0) st = ebb__uv_status(-errno);
    if (st == EBB_OK) {
        assert(!has(p, l->id) || p->share == NULL);
        mark(p, l->id);
        p->users++;
        *out = p;
    } else if (first && p != NULL) {
        address_free(p);
    }
    unlock(l->share);
    return st;
}

/* ---- the end -------------------------------------------------------------------------------------------- */

/* Drops segments that ask for a new connection and nothing else: a SYN without an ACK. Their sender tries again a
 * second later. A half-open connection can still be established. */
static bool drop_new(int fd) {
#if defined(__linux__)
    enum { FLAGS_AT = 13, SYN = 0x02, SYN_ACK = 0x12 };
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS_AT),   BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN_ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
#else
    (void)fd;
    return false;
#endif
}

/* The path is removed once: another listener may have it afterwards. */
static void remove_path(ebb__listen_address *p) {
    if (!p->removed) (void)unlink(path_of(p));
    p->removed = true;
}

uint32_t ebb__listen_address_drain(ebb__listen_address *p, int fd, bool *notice) {
    *notice = false;
    if (p->requested.ss_family != AF_UNIX) {
        *notice = drop_new(fd);
        return *notice ? UINT32_MAX : BACKLOG + 1; /* Linux queues one more than the backlog */
    }
    lock(p->share);
    bool last = p->users == 1;
    if (last) {
        remove_path(p);
        (void)shutdown(fd, SHUT_RD); /* queued connections stay */
    }
    unlock(p->share);
    return last ? UINT32_MAX : 0;
}

void ebb__listen_address_close(ebb_loop *l, ebb__listen_address *p, int fd) {
    ebb__share *share = p->share;
    lock(share);
    assert(p->users > 0 && has(p, l->id));
    (void)close(fd);
    mark(p, l->id);
    if (--p->users == 0) {
        if (p->requested.ss_family == AF_UNIX) remove_path(p);
        address_free(p);
    }
    unlock(share);
}
