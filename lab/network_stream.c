/* Connections. The bytes of one direction are in the ring of the side that receives them; segments say how many of them
 * have arrived, and when. A segment arrives after those that were sent before it. */
#define _POSIX_C_SOURCE 200809L
#include "lab/network.h"

#include <assert.h>
#include <errno.h>

enum {
    READS = 32, /* of a stream in one poll phase, as libuv's */
    ALTERNATIVES = 8,
    RETRY_MS = 200, /* a lost segment is sent again after this */
    ROOM = 65536,
    ROOM_SMALL = 4096,
    ROOM_LEAST = 512,
};

static ebb_lab *lab_of(const ebb__net_socket *s) {
    return s->net->lab;
}

/* ---- sockets ------------------------------------------------------------------------------------------- */

/* Connections with little room make senders wait. */
static size_t choose_room(ebb_lab *lab) {
    uint32_t which = ebb__choose(lab, ALTERNATIVES);
    return which == ALTERNATIVES - 1 ? ROOM_LEAST : which == ALTERNATIVES - 2 ? ROOM_SMALL : ROOM;
}

ebb__net_socket *ebb__net_socket_new(ebb__net_program *p) {
    ebb__net_socket *s = ebb_lab_alloc(p->net->lab, sizeof *s);
    if (s == NULL) return NULL;
    s->net = p->net;
    s->program = p;
    s->room = choose_room(p->net->lab);
    s->ring = ebb_lab_alloc(p->net->lab, s->room);
    return s->ring == NULL ? NULL : s;
}

uint64_t ebb__net_latency(ebb__net *net) {
    uint64_t least = net->limits->latency, most = net->limits->slowest;
    if (least == 0) least = 100 * EBB_US;
    if (most == 0) most = 50 * EBB_MS;
    if (most < least) most = least;
    switch (ebb__choose(net->lab, ALTERNATIVES)) {
    case ALTERNATIVES - 1: return most;
    case ALTERNATIVES - 2: return least + (most - least) / 16;
    case ALTERNATIVES - 3: return least + (most - least) / 256;
    default: return least;
    }
}

/* ---- arriving ------------------------------------------------------------------------------------------ */

static void send_segment(ebb__net_socket *to, ebb__net_segment_kind kind, size_t n);

/* This side ends, and the peer gets a reset: bytes arrived after the close, or the connection was never accepted. */
void ebb__net_socket_abort(ebb__net_socket *s) {
    if (s->error == 0) send_segment(s->peer, EBB__NET_RST, 0);
    s->error = ECONNRESET;
    ebb__net_socket_close(s);
}

static void arrive(ebb__net_socket *s, const ebb__net_segment *g) {
    if (g->kind == EBB__NET_RST) {
        if (s->error == 0) s->error = ECONNRESET;
    } else if (g->kind == EBB__NET_FIN) {
        s->end = true;
    } else if (s->state == EBB__NET_CLOSED) {
        ebb__net_socket_abort(s);
    } else {
        assert(g->n <= s->coming_n);
        s->here += g->n;
        s->coming_n -= g->n;
    }
}

static void on_segment(ebb__net *net, void *socket) {
    ebb__net_socket *s = socket;
    uint64_t cut = ebb__net_cut_until(net, s->program->index, s->peer->program->index);
    if (s->coming == NULL) return;
    if (cut != 0) { /* it is sent again when segments pass again */
        s->coming->at = cut == EBB_FOREVER ? cut : cut + RETRY_MS * EBB_MS;
        ebb__net_later(net, s->coming->at, on_segment, s);
        return;
    }
    while (s->coming != NULL && s->coming->at <= net->lab->now) {
        ebb__net_segment *g = s->coming;
        s->coming = g->next;
        if (s->coming == NULL) s->coming_last = NULL;
        arrive(s, g);
        g->next = net->spare_segments;
        net->spare_segments = g;
    }
}

static ebb__net_segment *segment_new(ebb__net *net) {
    ebb__net_segment *g = net->spare_segments;
    if (g == NULL) return ebb_lab_alloc(net->lab, sizeof *g);
    net->spare_segments = g->next;
    return g;
}

/* Sends to the side `to`; the segment arrives after all earlier ones. */
static void send_segment(ebb__net_socket *to, ebb__net_segment_kind kind, size_t n) {
    ebb__net *net = to->net;
    ebb__net_segment *g = segment_new(net);
    if (g == NULL) return;
    uint64_t at = net->lab->now + ebb__net_latency(net);
    if (ebb__net_fault_now(net, EBB__NET_LOSS)) at += RETRY_MS * EBB_MS << ebb__choose(net->lab, 4);
    if (at < to->coming_at) at = to->coming_at;
    to->coming_at = at;
    *g = (ebb__net_segment){kind, at, n, NULL};
    if (to->coming_last != NULL) to->coming_last->next = g;
    else to->coming = g;
    to->coming_last = g;
    ebb__net_later(net, at, on_segment, to);
}

/* Both sides get a reset. */
static void reset(ebb__net_socket *s) {
    send_segment(s, EBB__NET_RST, 0);
    if (s->peer != NULL) send_segment(s->peer, EBB__NET_RST, 0);
}

void ebb__net_reset_all(ebb__net_program *p) {
    for (ebb__net_socket *s = p->net->sockets; s != NULL; s = s->next) {
        if (s->program == p && s->state == EBB__NET_CONNECTED && s->peer != NULL) reset(s);
    }
}

/* ---- closing ------------------------------------------------------------------------------------------- */

/* A close with unread bytes sends a reset, as on Linux. */
void ebb__net_socket_close(ebb__net_socket *s) {
    if (s->state == EBB__NET_CLOSED) return;
    bool open = s->state == EBB__NET_CONNECTED && s->error == 0;
    if (s->fd != 0) ebb__net_fd_close(s->program, s->fd);
    s->fd = 0;
    s->state = EBB__NET_CLOSED;
    s->handle = NULL;
    if (!open || s->peer == NULL) return;
    if (s->here > 0) ebb__net_socket_abort(s);
    else if (!s->shut) send_segment(s->peer, EBB__NET_FIN, 0);
    s->shut = true;
}

void ebb__net_stream_close(ebb__net_handle *h) {
    ebb__net_stream *t = &h->as.stream;
    t->reading = false;
    if (t->socket != NULL) ebb__net_socket_close(t->socket);
    t->socket = NULL;
}

static void write_ended(ebb__net_handle *h) {
    ebb__net_write *w = h->as.stream.first;
    assert(w->n == 0 || w->code != 0); /* all is sent, or an error says why not */
    h->as.stream.first = w->next;
    if (w->next == NULL) h->as.stream.last = NULL;
    h->loop->requests--;
    h->as.stream.written(w->request, w->code);
}

static void connect_ended(ebb__net_handle *h, int code) {
    assert(h->as.stream.connecting != NULL && h->loop->requests > 0);
    uv_connect_t *request = h->as.stream.connecting;
    h->as.stream.connecting = NULL;
    h->loop->requests--;
    h->as.stream.connected(request, code);
}

static void shutdown_ended(ebb__net_handle *h, int code) {
    assert(h->as.stream.shutting != NULL && h->loop->requests > 0);
    uv_shutdown_t *request = h->as.stream.shutting;
    h->as.stream.shutting = NULL;
    h->loop->requests--;
    h->as.stream.shut(request, code);
}

/* Each request gets its callback before the stream gets its own. */
void ebb__net_stream_closed(ebb__net_handle *h) {
    ebb__net_stream *t = &h->as.stream;
    if (t->connecting != NULL) connect_ended(h, UV_ECANCELED);
    while (t->first != NULL) {
        if (t->first->n > 0) t->first->code = UV_ECANCELED;
        write_ended(h);
    }
    if (t->shutting != NULL) shutdown_ended(h, UV_ECANCELED);
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static size_t room_of(const ebb__net_socket *s) {
    const ebb__net_socket *to = s->peer;
    if (to == NULL || to->state == EBB__NET_CLOSED) return ROOM; /* the peer answers with a reset */
    return to->room - to->here - to->coming_n;
}

static void put(ebb__net_socket *to, const char *from, size_t n) {
    assert(to->here + to->coming_n + n <= to->room);
    size_t at = (to->at + to->here + to->coming_n) % to->room, first = to->room - at < n ? to->room - at : n;
    memcpy(to->ring + at, from, first);
    memcpy(to->ring, from + first, n - first);
    to->coming_n += n;
}

/* A system may take less than there is room for. */
static size_t choose_piece(ebb_lab *lab, size_t n) {
    if (n < 2) return n;
    switch (ebb__choose(lab, ALTERNATIVES)) {
    case ALTERNATIVES - 1: return 1;
    case ALTERNATIVES - 2: return (n + 1) / 2;
    default: return n;
    }
}

/* The bytes taken, 0 if there is no room, or a code. After a reset the first write returns UV_ECONNRESET, and the
 * others UV_EPIPE. */
static int send_bytes(ebb__net_socket *s, const char *from, size_t n) {
    if (s->error != 0) {
        int code = s->error;
        s->error = EPIPE;
        s->end = true;
        return -code;
    }
    if (s->shut) return UV_EPIPE;
    size_t room = room_of(s);
    if (n > room) n = room;
    if (n == 0) return 0;
    if (ebb__net_fault_now(s->net, EBB__NET_RESET)) {
        reset(s);
        return (int)n;
    }
    n = choose_piece(lab_of(s), n);
    if (s->peer->state != EBB__NET_CLOSED) put(s->peer, from, n);
    send_segment(s->peer, EBB__NET_DATA, n);
    return (int)n;
}

int ebb__net_try_write(uv_stream_t *stream, const uv_buf_t bufs[], unsigned n) {
    const ebb__net_stream *t = &ebb__net_handle_of(stream)->as.stream;
    if (t->connecting != NULL || t->first != NULL) return UV_EAGAIN;
    if (t->socket == NULL || n != 1) return UV_EBADF;
    int sent = send_bytes(t->socket, bufs[0].base, bufs[0].len);
    return sent == 0 ? UV_EAGAIN : sent;
}

int ebb__net_write_to(uv_write_t *request, uv_stream_t *stream, const uv_buf_t bufs[], unsigned n,
                      uv_write_cb callback) {
    ebb__net_handle *h = ebb__net_handle_of(stream);
    ebb__net_stream *t = &h->as.stream;
    if (t->socket == NULL || n != 1) return UV_EBADF;
    ebb__net_write *w = ebb_lab_alloc(lab_of(t->socket), sizeof *w);
    if (w == NULL) return UV_ENOMEM;
    *w = (ebb__net_write){.request = request, .from = bufs[0].base, .n = bufs[0].len};
    request->handle = stream;
    if (t->last != NULL) t->last->next = w;
    else t->first = w;
    t->last = w;
    t->written = callback;
    h->loop->requests++;
    return 0;
}

/* The first write goes on. True: it has ended. */
static bool go_on_writing(ebb__net_handle *h) {
    ebb__net_write *w = h->as.stream.first;
    int sent = w->n == 0 ? 0 : send_bytes(h->as.stream.socket, w->from, w->n);
    if (sent < 0) {
        w->code = sent;
        w->n = 0;
    } else {
        w->from += sent;
        w->n -= (size_t)sent;
    }
    return w->n == 0;
}

int ebb__net_shutdown(uv_shutdown_t *request, uv_stream_t *stream, uv_shutdown_cb callback) {
    ebb__net_handle *h = ebb__net_handle_of(stream);
    if (h->as.stream.socket == NULL || h->as.stream.shutting != NULL) return UV_ENOTCONN;
    request->handle = stream;
    h->as.stream.shutting = request;
    h->as.stream.shut = callback;
    h->loop->requests++;
    return 0;
}

static int shut(ebb__net_socket *s) {
    if (s->error != 0 || s->state != EBB__NET_CONNECTED) return UV_ENOTCONN;
    if (!s->shut) send_segment(s->peer, EBB__NET_FIN, 0);
    s->shut = true;
    return 0;
}

void ebb__net_shut_writing(const uv_stream_t *stream) {
    ebb__net_socket *s = ebb__net_handle_of(stream)->as.stream.socket;
    if (s != NULL) (void)shut(s);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

int ebb__net_read_start(uv_stream_t *stream, uv_alloc_cb alloc, uv_read_cb callback) {
    ebb__net_handle *h = ebb__net_handle_of(stream);
    if (h->closing || h->as.stream.socket == NULL) return UV_EINVAL;
    h->as.stream.alloc = alloc;
    h->as.stream.read = callback;
    h->as.stream.reading = h->active = true;
    return 0;
}

int ebb__net_read_stop(uv_stream_t *stream) {
    ebb__net_handle *h = ebb__net_handle_of(stream);
    h->as.stream.reading = h->active = false;
    return 0;
}

int ebb__net_peek(const uv_stream_t *stream) {
    const ebb__net_socket *s = ebb__net_handle_of(stream)->as.stream.socket;
    if (s == NULL) return UV_EBADF;
    if (s->here > 0) return 1;
    if (s->error != 0) return -s->error;
    return s->end ? 0 : UV_EAGAIN;
}

static bool can_read(const ebb__net_socket *s) {
    return s->here > 0 || s->error != 0 || s->end;
}

/* As recv: bytes, 0 at the end, or a code. */
static ssize_t receive(ebb__net_socket *s, char *into, size_t n) {
    if (s->here == 0) return s->end ? 0 : s->error != 0 ? -s->error : UV_EAGAIN;
    if (n > s->here) n = s->here;
    n = choose_piece(lab_of(s), n);
    size_t first = s->room - s->at < n ? s->room - s->at : n;
    memcpy(into, s->ring + s->at, first);
    memcpy(into + first, s->ring, n - first);
    s->at = (s->at + n) % s->room;
    s->here -= n;
    return (ssize_t)n;
}

/* One read of libuv's. False: it does not read again at once. */
static bool read_once(ebb__net_handle *h) {
    ebb__net_stream *t = &h->as.stream;
    uv_stream_t *stream = (uv_stream_t *)h->uv;
    uv_buf_t buf = {.base = NULL};
    t->alloc(h->uv, ROOM, &buf);
    if (buf.base == NULL || buf.len == 0) {
        t->read(stream, UV_ENOBUFS, &buf);
        return false;
    }
    ssize_t n = receive(t->socket, buf.base, buf.len);
    if (n == UV_EAGAIN) {
        t->read(stream, 0, &buf);
        return false;
    }
    if (n <= 0) (void)ebb__net_read_stop(stream);
    t->read(stream, n == 0 ? UV_EOF : n, &buf);
    return n > 0 && (size_t)n == buf.len;
}

/* ---- polling ------------------------------------------------------------------------------------------- */

static bool is_connected(const ebb__net_stream *t) {
    return t->connect_code != 0 || (t->socket != NULL && t->socket->state == EBB__NET_CONNECTED) ||
           (t->socket != NULL && t->socket->error != 0);
}

static bool can_write(const ebb__net_stream *t) {
    const ebb__net_write *w = t->first;
    if (w == NULL) return false;
    return w->n == 0 || t->socket->error != 0 || t->socket->shut || room_of(t->socket) > 0;
}

bool ebb__net_stream_is_ready(const ebb__net_handle *h) {
    const ebb__net_stream *t = &h->as.stream;
    if (t->connecting != NULL) return is_connected(t);
    if (t->socket == NULL) return false;
    return can_write(t) || (t->first == NULL && t->shutting != NULL) || (t->reading && can_read(t->socket));
}

/* Reads come before writes, as in libuv. */
void ebb__net_stream_poll(ebb__net_handle *h) {
    ebb__net_stream *t = &h->as.stream;
    if (t->connecting != NULL) {
        int code = t->connect_code != 0 ? t->connect_code : -t->socket->error;
        connect_ended(h, code);
        return;
    }
    for (int i = 0; i < READS && t->reading && (i > 0 || can_read(t->socket)) && read_once(h);) i++;
    if (t->socket == NULL) return;
    if (can_write(t) && go_on_writing(h)) write_ended(h);
    if (t->first == NULL && t->shutting != NULL && t->socket != NULL) shutdown_ended(h, shut(t->socket));
}
