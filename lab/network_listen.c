/* Listeners, and connecting to them. */
#define _POSIX_C_SOURCE 200809L
#include "lab/network.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/un.h>

enum { BACKLOG = 511, FIRST_PORT = 32768, SYN_RETRY_MS = 1000, TIMED_OUT_S = 127 };

/* ---- addresses ----------------------------------------------------------------------------------------- */

static in_port_t *port_of(struct sockaddr_storage *at) {
    return &((struct sockaddr_in *)(void *)at)->sin_port; /* at the same offset in both families */
}

static in_port_t port_at(const struct sockaddr_storage *at) {
    return ((const struct sockaddr_in *)(const void *)at)->sin_port;
}

static const uint8_t *ip_of(const struct sockaddr_storage *at, size_t *n) {
    *n = at->ss_family == AF_INET ? 4 : 16;
    if (at->ss_family == AF_INET)
        return (const uint8_t *)&((const struct sockaddr_in *)(const void *)at)->sin_addr;
    return (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)at)->sin6_addr;
}

static bool is_any(const struct sockaddr_storage *at) {
    size_t n;
    const uint8_t *ip = ip_of(at, &n);
    bool any = true;
    for (size_t i = 0; i < n; i++) any &= ip[i] == 0;
    return any;
}

static bool is_loopback(const struct sockaddr_storage *at) {
    static const uint8_t one[16] = {[15] = 1};
    size_t n;
    const uint8_t *ip = ip_of(at, &n);
    return n == 4 ? ip[0] == 127 : memcmp(ip, one, n) == 0;
}

static bool same_ip(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
    size_t n, m;
    const uint8_t *x = ip_of(a, &n), *y = ip_of(b, &m);
    return a->ss_family == b->ss_family && memcmp(x, y, n) == 0;
}

static bool is_path(const struct sockaddr_storage *at) {
    return at->ss_family == AF_UNIX;
}

/* Whether a program's machine has that address. */
static bool is_at(const ebb__net_program *p, const struct sockaddr_storage *at) {
    return is_loopback(at) || same_ip(&p->ip, at);
}

/* ---- listening ----------------------------------------------------------------------------------------- */

static bool serves(const ebb__net_listener *l, const ebb__net_program *from,
                   const struct sockaddr_storage *to) {
    const ebb__net_program *p = l->program;
    if (l->fd == 0 || l->draining || is_path(&l->at) != is_path(to)) return false;
    if (is_path(to)) return p->machine == from->machine && memcmp(&l->at, to, sizeof *to) == 0;
    if (port_at(&l->at) != port_at(to)) return false;
    if (is_loopback(to) && p->machine != from->machine) return false;
    if (!is_loopback(to) && !same_ip(&p->ip, to)) return false;
    return is_any(&l->at) || same_ip(&l->at, to);
}

static ebb__net_listener *listener_for(const ebb__net_program *from, const struct sockaddr_storage *to) {
    ebb__net_listener *l = from->net->listeners;
    while (l != NULL && !serves(l, from, to)) l = l->next;
    return l;
}

/* Whether somebody on the machine listens at an address that includes this one. */
static bool is_used(const ebb__net_program *p, const struct sockaddr_storage *at) {
    for (const ebb__net_listener *l = p->net->listeners; l != NULL; l = l->next) {
        if (l->fd == 0 || l->program->machine != p->machine || is_path(&l->at) != is_path(at)) continue;
        if (is_path(at)
                ? memcmp(&l->at, at, sizeof *at) == 0
                : port_at(&l->at) == port_at(at) && (is_any(&l->at) || is_any(at) || same_ip(&l->at, at)))
            return true;
    }
    return false;
}

static void choose_port(ebb__net_program *p, struct sockaddr_storage *at) {
    do *port_of(at) = htons((uint16_t)(FIRST_PORT + p->next_port++ % (65536 - FIRST_PORT)));
    while (is_used(p, at));
}

/* The lab has no shared listen addresses: a service has one loop. */
ebb_status ebb__net_listen_open(ebb_loop *loop, const struct sockaddr_storage *at, int *fd,
                                struct ebb__listen_address **out) {
    ebb__net_program *p = ebb__net_running();
    (void)loop;
    *out = NULL;
    if (!is_path(at) && !is_any(at) && !is_at(p, at)) return EBB_ERRNO(EADDRNOTAVAIL);
    if ((is_path(at) || port_at(at) != 0) && is_used(p, at)) return EBB_ERRNO(EADDRINUSE);
    ebb__net_listener *l = ebb_lab_alloc(p->net->lab, sizeof *l);
    if (l == NULL) return EBB_ERR_NOMEM;
    l->program = p;
    l->at = *at;
    if (!is_path(at) && port_at(at) == 0) choose_port(p, &l->at);
    int got = ebb__net_fd_new(p, (ebb__net_descriptor){.listener = l});
    if (got < 0) return EBB_ERRNO(-got);
    l->fd = *fd = got;
    p->up = true;
    l->next = p->net->listeners;
    p->net->listeners = l;
    *out = (struct ebb__listen_address *)(void *)l;
    return EBB_OK;
}

uint32_t ebb__net_listen_drain(struct ebb__listen_address *p, int fd, bool *notice) {
    ebb__net_listener *l = (ebb__net_listener *)(void *)p;
    (void)fd;
    *notice = !is_path(&l->at);
    l->draining = true;
    return UINT32_MAX;
}

void ebb__net_listener_close(ebb__net_listener *l) {
    ebb__net_fd_close(l->program, l->fd);
    l->fd = 0;
    for (ebb__net_socket *s = l->first; s != NULL; s = s->next) ebb__net_socket_abort(s);
    l->first = l->last = NULL;
}

void ebb__net_listen_close(ebb_loop *loop, struct ebb__listen_address *p, int fd) {
    (void)loop;
    (void)fd;
    ebb__net_listener_close((ebb__net_listener *)(void *)p);
}

int ebb__net_listen_name(int fd, struct sockaddr_storage *out) {
    const ebb__net_descriptor *d = ebb__net_fd(ebb__net_running(), fd);
    if (d == NULL || d->listener == NULL) return UV_EBADF;
    *out = d->listener->at;
    return 0;
}

int ebb__net_accept(int fd) {
    ebb__net_program *p = ebb__net_running();
    const ebb__net_descriptor *d = ebb__net_fd(p, fd);
    if (d == NULL || d->listener == NULL) return UV_EBADF;
    ebb__net_listener *l = d->listener;
    ebb__net_socket *s = l->first;
    if (s == NULL) return UV_EAGAIN;
    if (ebb__net_fault_now(p->net, EBB__NET_ACCEPT_ERROR)) return UV_EMFILE;
    int got = ebb__net_fd_new(p, (ebb__net_descriptor){.socket = s});
    if (got < 0) return got;
    assert(s->fd == 0 && l->n > 0);
    s->fd = got;
    l->first = s->next;
    if (l->first == NULL) l->last = NULL;
    l->n--;
    s->next = p->net->sockets;
    p->net->sockets = s;
    return got;
}

void ebb__net_close_descriptor(int fd) {
    const ebb__net_descriptor *d = ebb__net_fd(ebb__net_running(), fd);
    if (d != NULL && d->socket != NULL) ebb__net_socket_close(d->socket);
}

int ebb__net_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd) {
    const ebb__net_descriptor *d = ebb__net_fd(ebb__net_running(), fd);
    if (d == NULL || d->listener == NULL) return UV_EBADF;
    int code = ebb__net_handle_new(loop, poll, UV_POLL);
    if (code == 0) ebb__net_handle_of(poll)->as.poll.fd = fd;
    return code;
}

int ebb__net_poll_start(uv_poll_t *poll, int events, uv_poll_cb callback) {
    ebb__net_handle *h = ebb__net_handle_of(poll);
    (void)events;
    h->active = true;
    h->as.poll.readable = callback;
    return 0;
}

int ebb__net_poll_stop(uv_poll_t *poll) {
    ebb__net_handle_of(poll)->active = false;
    return 0;
}

bool ebb__net_listener_is_ready(const ebb__net_handle *h) {
    const ebb__net_descriptor *d = ebb__net_fd(h->loop->program, h->as.poll.fd);
    return h->active && d != NULL && d->listener != NULL && d->listener->first != NULL;
}

/* ---- streams ------------------------------------------------------------------------------------------- */

/* Descriptors of the host can't be adopted. */
uv_handle_type ebb__net_guess_handle(uv_file fd) {
    (void)fd;
    return UV_UNKNOWN_HANDLE;
}

int ebb__net_tcp_init(uv_loop_t *loop, uv_tcp_t *tcp) {
    return ebb__net_handle_new(loop, tcp, UV_TCP);
}

int ebb__net_pipe_init(uv_loop_t *loop, uv_pipe_t *pipe, int ipc) {
    (void)ipc;
    return ebb__net_handle_new(loop, pipe, UV_NAMED_PIPE);
}

static int open_stream(ebb__net_handle *h, int fd) {
    const ebb__net_descriptor *d = ebb__net_fd(ebb__net_running(), fd);
    if (d == NULL || d->socket == NULL) return UV_EBADF;
    h->as.stream.socket = d->socket;
    d->socket->handle = h;
    return 0;
}

int ebb__net_tcp_open(uv_tcp_t *tcp, uv_os_sock_t fd) {
    return open_stream(ebb__net_handle_of(tcp), fd);
}

int ebb__net_pipe_open(uv_pipe_t *pipe, uv_file fd) {
    return open_stream(ebb__net_handle_of(pipe), fd);
}

int ebb__net_tcp_nodelay(uv_tcp_t *tcp, int on) {
    (void)on;
    return ebb__net_handle_of(tcp)->as.stream.socket == NULL ? UV_EBADF : 0;
}

int ebb__net_tcp_getpeername(const uv_tcp_t *tcp, struct sockaddr *out, int *n) {
    const ebb__net_socket *s = ebb__net_handle_of(tcp)->as.stream.socket;
    if (s == NULL) return UV_EBADF;
    if (s->state != EBB__NET_CONNECTED || s->error != 0) return UV_ENOTCONN;
    memcpy(out, &s->remote, sizeof s->remote);
    *n = (int)sizeof s->remote;
    return 0;
}

/* ---- connecting ---------------------------------------------------------------------------------------- */

static void on_refused(ebb__net *net, void *socket) {
    ebb__net_socket *s = socket;
    (void)net;
    if (s->state == EBB__NET_CONNECTING) s->error = ECONNREFUSED;
}

static void on_timed_out(ebb__net *net, void *socket) {
    ebb__net_socket *s = socket;
    (void)net;
    if (s->state == EBB__NET_CONNECTING) s->error = ETIMEDOUT;
}

static void on_established(ebb__net *net, void *socket) {
    ebb__net_socket *s = socket;
    (void)net;
    if (s->state == EBB__NET_CONNECTING) s->state = EBB__NET_CONNECTED;
    else ebb__net_socket_abort(s); /* the attempt was given up meanwhile */
}

static void join_queue(ebb__net_listener *l, ebb__net_socket *s) {
    s->next = NULL;
    if (l->last != NULL) l->last->next = s;
    else l->first = s;
    l->last = s;
    l->n++;
}

/* The request for a connection arrives. A listener that drains or is partitioned does not answer: the request is sent again,
 * and given up as on Linux. */
static void on_request(ebb__net *net, void *socket) {
    ebb__net_socket *s = socket, *there;
    if (s->state != EBB__NET_CONNECTING) return;
    ebb__net_listener *l = listener_for(s->program, &s->remote);
    uint64_t cut = l == NULL ? 0 : ebb__net_cut_until(net, s->program->index, l->program->index);
    if (cut != 0 && cut - net->lab->now > TIMED_OUT_S * EBB_SECOND) {
        ebb__net_later(net, net->lab->now + TIMED_OUT_S * EBB_SECOND, on_timed_out, s);
        return;
    }
    if (cut != 0 || (l != NULL && l->n > BACKLOG)) {
        ebb__net_later(net, (cut != 0 ? cut : net->lab->now) + SYN_RETRY_MS * EBB_MS, on_request, s);
        return;
    }
    if (l == NULL || (there = ebb__net_socket_new(l->program)) == NULL) {
        ebb__net_later(net, net->lab->now + ebb__net_latency(net), on_refused, s);
        return;
    }
    there->state = EBB__NET_CONNECTED;
    there->peer = s;
    there->local = s->remote;
    there->remote = s->local;
    s->peer = there;
    join_queue(l, there);
    s->coming_at = net->lab->now + ebb__net_latency(net);
    ebb__net_later(net, s->coming_at, on_established, s);
}

/* The address that the peer sees: the machine's own, or the loopback. */
static void set_local(ebb__net_socket *s) {
    ebb__net_program *p = s->program;
    s->local = is_loopback(&s->remote) ? s->remote : p->ip;
    *port_of(&s->local) = htons((uint16_t)(FIRST_PORT + p->next_port++ % (65536 - FIRST_PORT)));
}

static int connect_to(ebb__net_handle *h, const struct sockaddr_storage *to) {
    ebb__net_program *p = ebb__net_running();
    ebb__net *net = p->net;
    ebb__net_socket *s = ebb__net_socket_new(p);
    if (s == NULL) return UV_ENOMEM;
    int fd = ebb__net_fd_new(p, (ebb__net_descriptor){.socket = s});
    if (fd < 0) return fd;
    s->fd = fd;
    s->remote = *to;
    s->handle = h;
    s->next = net->sockets;
    net->sockets = s;
    if (!is_path(to)) set_local(s);
    h->as.stream.socket = s;
    uint64_t now = net->lab->now, at = now + ebb__net_latency(net);
    if (!ebb__net_fault_now(net, EBB__NET_REFUSAL)) ebb__net_later(net, at, on_request, s);
    else if (ebb__choose(net->lab, 2) == 0) ebb__net_later(net, at, on_refused, s);
    else ebb__net_later(net, now + TIMED_OUT_S * EBB_SECOND, on_timed_out, s);
    return 0;
}

static void connecting(ebb__net_handle *h, uv_connect_t *request, uv_connect_cb callback) {
    request->handle = (uv_stream_t *)h->uv;
    h->as.stream.connecting = request;
    h->as.stream.connected = callback;
    h->loop->requests++;
}

int ebb__net_tcp_connect(uv_connect_t *request, uv_tcp_t *tcp, const struct sockaddr *to,
                         uv_connect_cb callback) {
    struct sockaddr_storage at = {.ss_family = AF_INET};
    ebb__net_handle *h = ebb__net_handle_of(tcp);
    memcpy(&at, to, to->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    int code = connect_to(h, &at);
    if (code == 0) connecting(h, request, callback);
    return code;
}

void ebb__net_pipe_connect(uv_connect_t *request, uv_pipe_t *pipe, const char *path, uv_connect_cb callback) {
    struct sockaddr_storage at = {.ss_family = AF_UNIX};
    ebb__net_handle *h = ebb__net_handle_of(pipe);
    memcpy(((struct sockaddr_un *)(void *)&at)->sun_path, path, strlen(path));
    h->as.stream.connect_code = connect_to(h, &at);
    connecting(h, request, callback);
}
