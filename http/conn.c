/* Connections: from the raw stream to a protocol and back, and how they end.
 *
 * A connection ends in steps. A server's connection that is *closing* has notified its peer, and still takes the
 * requests that the peer sent before it knew. A connection that is *draining* takes no new exchanges and ends with its
 * last one. A connection that is *ending* has no exchange left and sends its last bytes. A server then shuts down its
 * sending side, and drops received bytes for a moment: if it closed at once, unread bytes would make the system send a
 * reset, which could overtake the last bytes. A connection that has *ended* has no raw stream. */
#define _POSIX_C_SOURCE 200809L
#include "http/http.h"

#include <assert.h>

#include "base/alloc.h"

/* A write to the socket is a little less than 64 KiB, the most that the system puts into one segment, whatever its unit on
 * the network: a write of 64 KiB would be a large segment and a tiny one, and that costs half as much again. */
enum { OUT_MOST = 64000, FILLS = 16, FORGETS = 65536, HANDSHAKE_MOST = 65536, LEAST_RECORD = 4096 };

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
_Static_assert(sizeof preface - 1 == sizeof((ebb__conn *)0)->greeting, "a whole one fits");

const ebb__bounds *ebb__conn_bounds(const ebb__conn *c) {
    return c->server != NULL ? &c->server->bounds : ebb__client_bounds(c);
}

/* ---- receiving ---------------------------------------------------------------------------------------------- */

static ebb_status set_proto(ebb__conn *c, bool h2) {
    ebb_status st;
    if (c->server != NULL) st = h2 ? ebb__h2_server_new(c) : ebb__h1_server_new(c);
    else st = h2 ? ebb__h2_client_new(c) : ebb__h1_client_new(c);
    if (st != EBB_OK) return st;
    if (c->state == EBB__CONN_NEW) ebb__conn_step(c, EBB__CONN_OPENS);
    if (c->client != NULL) ebb__client_ready(c);
    else if (c->state == EBB__CONN_CLOSING) c->proto->notice(c);
    else if (c->state == EBB__CONN_DRAINING) c->proto->drain(c);
    return EBB_OK;
}

static void choose(ebb__conn *c, bool h2) {
    ebb_status st = set_proto(c, h2);
    if (st != EBB_OK) ebb__conn_drop(c, st, EBB_CANCEL_RESOURCE, "no memory");
}

/* The first bytes of a client without TLS identify the protocol. Returns how many of `bytes` were examined. */
static size_t greet(ebb__conn *c, const uint8_t *bytes, size_t n) {
    size_t i = 0;
    while (i < n && c->greeting_n < sizeof c->greeting && bytes[i] == (uint8_t)preface[c->greeting_n]) {
        c->greeting[c->greeting_n++] = bytes[i++];
    }
    if (c->greeting_n == sizeof c->greeting) choose(c, true);
    else if (i < n) choose(c, false);
    return i;
}

static void feed(ebb__conn *c, const uint8_t *bytes, size_t n) {
    if (c->proto == NULL) {
        size_t used = greet(c, bytes, n);
        bytes += used;
        n -= used;
        if (c->proto == NULL || ebb__conn_is_ending(c)) return;
        c->proto->feed(c, c->greeting, c->greeting_n);
    }
    if (n > 0 && !ebb__conn_is_ending(c)) c->proto->feed(c, bytes, n);
}

static void shake_hands(ebb__conn *c, size_t n) {
    c->handshake += (uint32_t)n;
    if (ebb__tls_is_ready(c->tls)) {
        if (c->server != NULL) (void)ebb__server_charge(c, EBB__TLS_BYTES);
        choose(c, ebb__tls_is_h2(c->tls));
    } else if (c->handshake > HANDSHAKE_MOST) {
        ebb__conn_drop(c, EBB_ERR_TLS, EBB_CANCEL_DISCONNECT, "the TLS handshake is too long");
    }
}

/* The plaintext overwrites the received bytes: OpenSSL has a copy of these. */
static void feed_tls(ebb__conn *c, char *bytes, size_t n) {
    ebb_status st = ebb__tls_input(c->tls, bytes, n);
    if (st == EBB_OK && c->proto == NULL) shake_hands(c, n);
    while (st == EBB_OK && !ebb__conn_is_ending(c)) {
        size_t k = 0;
        st = ebb__tls_read(c->tls, bytes, EBB__RAW_STREAM_PIECE, &k);
        if (st != EBB_OK || k == 0) break;
        if (c->proto != NULL) c->proto->feed(c, (uint8_t *)bytes, k);
    }
    if (st == EBB_ERR_EOF && c->reads != EBB__READS_BROKEN) ebb__reads_step(c, EBB__READS_END);
    if (st == EBB_ERR_EOF && c->proto != NULL && !ebb__conn_is_ending(c)) c->proto->eof(c);
    else if (st == EBB_ERR_EOF) ebb__conn_finish(c);
    else if (st != EBB_OK) ebb__conn_fail(c, EBB__PROTOCOL_ERROR, st, EBB_CANCEL_DISCONNECT, "TLS failed");
}

/* Starts the exchanges whose head is complete. One that was reset by the same bytes never starts: cancelling it would
 * be wasted work. */
static void start_all(ebb__conn *c) {
    ebb_http **at = &c->starts, *x;
    while ((x = *at) != NULL) {
        if (!ebb__exchange_is_gone(x) && !ebb__server_may_start(c)) {
            at = &x->waits;
            continue;
        }
        *at = x->waits;
        ebb__serve(x);
    }
    c->starts_last = at;
    if (c->starts != NULL) ebb__conn_task_at(c, ebb__loop_now(c->loop) + EBB__RETRY_MS * EBB_MS);
}

/* Drops bytes that are received while the connection ends, up to a bound. Past it a peer that broke a rule is cut off.
 * Any other peer, which may be in the middle of a body, has the linger time to read our last bytes: a close that
 * discards unread bytes may make the system discard these too. */
static void forget(ebb__conn *c, size_t n) {
    c->forgets -= n < c->forgets ? n : c->forgets;
    if (c->forgets > 0) return;
    if (c->failed) ebb__raw_stream_close(&c->raw);
    else (void)ebb__raw_stream_read(&c->raw, false);
}

static bool is_crowded(const ebb__conn *c) {
    return c->server != NULL && c->slots / 2 >= c->server->limits.streams;
}

/* Closed streams whose handler still runs are as many as may be open: nothing is read until there are fewer. */
static void hold_back(ebb__conn *c) {
    if (ebb__conn_is_ending(c) || c->proto == NULL || c->proto->version < 20 || !is_crowded(c)) return;
    if (c->reads == EBB__READS_FREELY && ebb__raw_stream_read(&c->raw, false) == EBB_OK)
        ebb__reads_step(c, EBB__READS_ARE_HELD);
}

static char *on_place(void *ctx, size_t *n) {
    const ebb__conn *c = ctx;
    if (c->tls != NULL || c->proto == NULL || c->proto->place == NULL || ebb__conn_is_ending(c)) return NULL;
    return (char *)c->proto->place(c, n);
}

static void on_bytes(void *ctx, char *bytes, size_t n) {
    ebb__conn *c = ctx;
    if (c->server != NULL) c->server->stats.bytes_in += n;
    if (ebb__conn_is_ending(c)) {
        forget(c, n);
        return;
    }
    uint64_t bodies = c->bodies;
    if (c->tls != NULL) feed_tls(c, bytes, n);
    else feed(c, (uint8_t *)bytes, n);
    c->raw.bulk = c->bodies - bodies >= n / 2;
    start_all(c);
    hold_back(c);
    ebb__conn_touch(c);
}

/* The protocol of a client decides which calls may be sent again. */
static void lost(ebb__conn *c) {
    ebb__reads_step(c, EBB__READS_BREAK);
    if (c->client != NULL && c->proto != NULL && !ebb__conn_is_ending(c)) c->proto->eof(c);
    else ebb__conn_drop(c, EBB_ERR_HTTP_RESET, EBB_CANCEL_DISCONNECT, "connection lost");
}

static void on_ended(void *ctx, ebb_status st) {
    ebb__conn *c = ctx;
    if (ebb__conn_has_last_bytes(c)) ebb__raw_stream_close(&c->raw);
    else if (c->reads == EBB__READS_NOTIFIED && st == EBB_ERR_EOF)
        return; /* TLS has reported the end before */
    else if (st == EBB_ERR_EOF && c->proto != NULL && c->tls == NULL) c->proto->eof(c);
    else lost(c);
    start_all(c);
    ebb__conn_touch(c);
}

/* ---- sending ------------------------------------------------------------------------------------------------ */

/* Produces as many TLS records as fit. */
static size_t produce_tls(ebb__conn *c, uint8_t *to, size_t room) {
    uint8_t *plain = (uint8_t *)c->loop->raw_buffer; /* free: nothing is being read now */
    size_t all = ebb__tls_output(c->tls, to, room), n, made;
    if (c->proto == NULL) return all;
    while (room - all >= LEAST_RECORD && ebb__tls_is_ready(c->tls) && ebb__tls_pending(c->tls) == 0) {
        size_t most = room - all - EBB__TLS_EXTRA;
        n = c->proto->fill(c, plain, most < EBB__TLS_PLAIN ? most : EBB__TLS_PLAIN);
        if (n == 0) break;
        if (ebb__tls_write_to(c->tls, plain, n, to + all, room - all, &made) != EBB_OK) {
            ebb__conn_drop(c, EBB_ERR_TLS, EBB_CANCEL_RESOURCE, "TLS failed");
            return 0;
        }
        all += made;
    }
    return all;
}

static size_t produce(ebb__conn *c, uint8_t *to, size_t room) {
    if (c->tls != NULL) return produce_tls(c, to, room);
    return c->proto != NULL ? c->proto->fill(c, to, room) : 0;
}

/* libuv writes the bytes that the system did not take, from a buffer of the connection. */
static ebb_status keep_rest(ebb__conn *c, const uint8_t *from, size_t n) {
    c->rest = ebb__alloc(&c->allocator, n);
    if (c->rest == NULL) return EBB_ERR_NOMEM;
    memcpy(c->rest, from, n);
    c->rest_n = n;
    c->write_since = ebb__now(c->loop->rt);
    if (c->server != NULL) ebb__conn_task_at(c, c->write_since + c->server->limits.write_ns);
    return ebb__raw_stream_write(&c->raw, c->rest, n);
}

static void rest_free(ebb__conn *c) {
    ebb__free(&c->allocator, c->rest, c->rest_n);
    c->rest = NULL;
    c->rest_n = 0;
}

static void tail_free(ebb__conn *c) {
    ebb__free(&c->allocator, c->tail, c->tail_n);
    c->tail = NULL;
    c->tail_n = 0;
}

/* EBB_PENDING: the peer has to read first. */
static ebb_status send_bytes(ebb__conn *c, const uint8_t *from, size_t n) {
    size_t sent;
    ebb_status st = ebb__raw_stream_try(&c->raw, (const char *)from, n, &sent);
    c->taken += sent;
    if (c->server != NULL) c->server->stats.bytes_out += n;
    if (st == EBB_OK && sent < n) {
        c->taken += n - sent; /* libuv may send them whatever happens here */
        st = keep_rest(c, from + sent, n - sent);
        if (st == EBB_OK) return EBB_PENDING;
    }
    return st;
}

static size_t out_room(const ebb__conn *c) {
    bool less = c->server != NULL && c->server->limits.write_bytes < OUT_MOST;
    return less ? c->server->limits.write_bytes : OUT_MOST;
}

static size_t take_tail(ebb__conn *c, uint8_t *to) {
    size_t n = c->tail_n;
    if (n == 0) return 0;
    memcpy(to, c->tail, n);
    tail_free(c);
    return n;
}

/* A few bytes after full buffers, while writes have ended whose handlers are about to go on: they are sent with the
 * next bytes, in this turn or the next. So sixteen bodies at once cost no small write to the socket each round. */
static bool keep_tail(ebb__conn *c, const uint8_t *from, size_t n) {
    if (n > out_room(c) / 4 || ebb__conn_is_ending(c)) return false;
    c->tail = ebb__alloc(&c->allocator, n);
    if (c->tail == NULL) return false;
    memcpy(c->tail, from, n);
    c->tail_n = n;
    ebb__conn_touch(c);
    return true;
}

/* EBB_OK: everything is sent. EBB_PENDING: there may be more. */
static ebb_status send_all(ebb__conn *c) {
    uint8_t out[OUT_MOST];
    c->settled = 0;
    for (int i = 0; i < FILLS; i++) {
        size_t tail = take_tail(c, out), n = tail + produce(c, out + tail, out_room(c) - tail);
        if (c->state >= EBB__CONN_ENDED) return EBB_PENDING;
        if (n == 0) return EBB_OK;
        if (i > 0 && c->settled > 1 && keep_tail(c, out, n)) return EBB_PENDING;
        ebb_status st = send_bytes(c, out, n);
        if (st != EBB_OK) return st;
    }
    ebb__conn_touch(c);
    return EBB_PENDING;
}

/* Everything is sent, and the connection is ending. */
static void last_is_sent(ebb__conn *c) {
    if (c->state == EBB__CONN_LINGERING) return;
    if (c->tls != NULL && c->state == EBB__CONN_ENDING) {
        ebb__conn_step(c, EBB__CONN_NOTIFIES);
        ebb__tls_close(c->tls);
        ebb__conn_touch(c);
        return;
    }
    if (c->client != NULL) {
        ebb__raw_stream_close(&c->raw);
        return;
    }
    ebb__conn_step(c, EBB__CONN_LINGERS);
    c->loop->os->shut_writing(&c->raw.handle->uv.stream);
    if (ebb__raw_stream_read(&c->raw, true) != EBB_OK) ebb__raw_stream_close(&c->raw);
    else ebb__conn_task_linger(c);
}

static void flush(ebb__conn *c) {
    if (c->raw.handle == NULL) return;
    if (c->illegal) {
        ebb__conn_drop(c, EBB_ERR_HTTP_STATE, EBB_CANCEL_RESOURCE, "a bug in Ebb: an illegal transition");
        return;
    }
    if (c->raw.writing) {
        if (c->client != NULL && ebb__conn_has_last_bytes(c)) { /* the last bytes can't be sent */
            ebb__conn_drop(c, EBB_ERR_CLOSED, EBB_CANCEL_DISCONNECT, "connection closed");
        } else if (c->proto != NULL && c->proto->stuck != NULL) {
            c->proto->stuck(c);
        }
        return;
    }
    ebb_status st = send_all(c);
    start_all(c); /* HTTP/1 parses the next request when the previous exchange has ended */
    if (st == EBB_PENDING) return;
    if (st == EBB_ERR_NOMEM && c->server != NULL) { /* not the peer's fault: its address is not charged */
        ebb__conn_drop(c, st, EBB_CANCEL_RESOURCE, "no memory");
    } else if (st != EBB_OK) {
        lost(c);
    } else if (c->state == EBB__CONN_DRAINING && (c->slots == 0 || c->unit == EBB__UNIT_STOPPING)) {
        ebb__conn_finish(c);
    } else if (ebb__conn_has_last_bytes(c)) {
        last_is_sent(c);
    }
}

/* The handler of an only exchange may go on at once. Several would take memory for their bytes, each of them, before the
 * peer has shown that it takes any. */
static bool on_flush(void *ctx) {
    const ebb__conn *c = ctx;
    flush(ctx);
    ebb__pacing_flushed(ctx);
    return c->settled > 0 && c->slots == 1 && !c->raw.writing && c->raw.handle != NULL;
}

static void on_written(void *ctx, ebb_status st) {
    ebb__conn *c = ctx;
    rest_free(c);
    c->write_since = 0;
    if (st == EBB_OK) ebb__conn_touch(c);
    else lost(c);
}

/* ---- the end ------------------------------------------------------------------------------------------------ */

/* No exchange in flight will be answered, including those that wait to start. */
static void all_gone(ebb__conn *c, ebb_status st, ebb_cancel_kind kind, const char *message) {
    ebb_http *next;
    for (ebb_http *x = c->first; x != NULL; x = next) {
        next = x->next;
        if (ebb__exchange_is_gone(x)) continue;
        if (c->server != NULL && kind == EBB_CANCEL_DISCONNECT)
            ebb__server_lost(c, x->sent == EBB__SENT_NOTHING);
        ebb__exchange_gone(x, st, kind, message);
    }
}

static void proto_free(ebb__conn *c) {
    if (c->proto != NULL && c->session != NULL) c->proto->free(c);
    c->session = NULL;
}

void ebb__conn_fail(ebb__conn *c, uint32_t code, ebb_status st, ebb_cancel_kind kind, const char *message) {
    if (ebb__conn_is_ending(c)) return;
    if (c->proto != NULL) c->proto->terminate(c, code);
    ebb__conn_step(c, EBB__CONN_ENDS);
    c->forgets = FORGETS;
    c->failed = code == EBB__ENHANCE_YOUR_CALM || st == EBB_ERR_HTTP_PROTOCOL || st == EBB_ERR_TLS;
    if (c->failed && c->server != NULL) ebb__server_delay_address(c);
    all_gone(c, st, kind, message);
    (void)ebb__raw_stream_read(&c->raw, false);
    if (c->client != NULL) ebb__client_ended(c, st);
    /* The last bytes have less time than bytes of a response. */
    if (c->server != NULL && c->write_since != 0)
        ebb__conn_task_at(c, c->write_since + c->server->limits.write_ns);
    ebb__conn_touch(c);
}

void ebb__conn_finish(ebb__conn *c) {
    ebb__conn_fail(c, EBB__NO_ERROR, EBB_ERR_CLOSED, EBB_CANCEL_SHUTDOWN, "connection closed");
}

void ebb__conn_drop(ebb__conn *c, ebb_status st, ebb_cancel_kind kind, const char *message) {
    if (c->state >= EBB__CONN_ENDED) return;
    bool ending = ebb__conn_is_ending(c);
    ebb__conn_step(c, EBB__CONN_DROPS);
    all_gone(c, st, kind, message);
    if (c->client != NULL && !ending) ebb__client_ended(c, st);
    ebb__raw_stream_close(&c->raw);
}

void ebb__conn_close(ebb__conn *c) {
    if (c->state >= EBB__CONN_CLOSING) return;
    ebb__conn_step(c, EBB__CONN_CLOSES);
    c->closing_since = ebb__loop_now(c->loop);
    if (c->proto != NULL) c->proto->notice(c);
    ebb__conn_task_at(c, c->closing_since + EBB__NOTICE_MS * EBB_MS);
    ebb__conn_touch(c);
}

void ebb__conn_drain(ebb__conn *c) {
    if (c->state == EBB__CONN_MADE || c->state >= EBB__CONN_DRAINING) return;
    ebb__conn_step(c, EBB__CONN_DRAINS);
    if (c->proto != NULL) c->proto->drain(c);
    ebb__conn_touch(c);
}

void ebb__conn_freed(ebb__conn *c) {
    if (c->slots == 0 && c->server != NULL) ebb__server_idle(c, true);
    if (c->reads == EBB__READS_HELD && !is_crowded(c) && !ebb__conn_is_ending(c)) {
        ebb__reads_step(c, EBB__READS_GO_ON);
        if (ebb__raw_stream_read(&c->raw, true) != EBB_OK) lost(c);
    }
    if (c->state == EBB__CONN_DRAINING || (c->proto != NULL && c->proto->version < 20)) ebb__conn_touch(c);
}

/* The raw stream was closed by us, or with the region. */
static void on_stopped(void *ctx) {
    ebb__conn_drop(ctx, EBB_ERR_HTTP_RESET, EBB_CANCEL_DISCONNECT, "connection closed");
}

static void on_closed(void *ctx) {
    ebb__conn *c = ctx;
    start_all(c); /* all streams have ended: exchanges that waited to start are freed */
    rest_free(c);
    tail_free(c);
    proto_free(c);
    ebb__tls_free(c->tls);
    c->tls = NULL;
    ebb__conn_step(c, EBB__CONN_IS_RELEASED);
    if (c->client != NULL) {
        ebb__client_closed(c);
        return;
    }
    if (c->unit == EBB__UNIT_CLOSED) {
        ebb__server_conn_free(c);
        return;
    }
    ebb_region_close(ebb_loop_cx(c->loop), c->region);
    ebb__conn_task_wake(c);
}

static const ebb__raw_stream_ops raw_ops = {on_place, on_bytes,   on_ended, on_written,
                                            on_flush, on_stopped, on_closed};

ebb_status ebb__conn_open(ebb__conn *c, ebb_cx *cx, ebb_stream s) {
    c->starts_last = &c->starts;
    c->fresh_last = &c->fresh;
    c->born = c->idle_since = ebb__now(c->loop->rt);
    bool tcp = ebb_stream_peer(cx, s, &c->peer) == EBB_OK; /* a Unix socket has neither address nor nodelay */
    ebb_status st = tcp ? ebb_stream_nodelay(cx, s, true) : EBB_OK;
    if (st == EBB_OK) st = ebb__raw_stream_init(&c->raw, cx, s, &raw_ops, c);
    if (st == EBB_OK) ebb__conn_step(c, EBB__CONN_ATTACHES);
    if (st == EBB_OK && ebb__is_recorded(c->loop->rt)) ebb__note_connection(c, true);
    if (st == EBB_OK) st = ebb__raw_stream_read(&c->raw, true);
    if (st != EBB_OK || c->client == NULL) return st;
    if (c->tls == NULL) return set_proto(c, c->h2);
    ebb__conn_touch(c);
    return ebb__tls_start(c->tls);
}
