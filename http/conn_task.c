/* The connection task of a server's connection: the one task of its region that runs no handler. It learns of a close
 * or a cancel, and keeps the timers.
 *
 * Events only move a time stamp (idle_since, out_pace and others). The timer is armed for the earliest known deadline,
 * and the task checks all of them when it expires. So a request costs no timer. */
#define _POSIX_C_SOURCE 200809L
#include "http/http.h"

enum { LINGER_MS = 1000 };

/* The timer may have expired. */
static void disarm(ebb__conn *c) {
    if (c->timer_at != EBB_FOREVER) (void)ebb_timer_disarm(ebb_runtime_host(c->loop->rt), c->timer);
    c->timer_at = EBB_FOREVER;
}

void ebb__conn_task_at(ebb__conn *c, uint64_t due) {
    if (due >= c->timer_at || c->task.id == 0) return;
    disarm(c);
    c->timer = ebb_timer_arm(ebb_runtime_host(c->loop->rt), c->task, due);
    c->timer_at = ebb_id_status(c->timer.id) == EBB_OK ? due : EBB_FOREVER;
}

void ebb__conn_task_wake(ebb__conn *c) {
    (void)ebb_task_wake(ebb_runtime_host(c->loop->rt), c->task);
}

/* The time at which half of the cleanup budget that is left has passed, or EBB_FOREVER. */
static uint64_t half_left(const ebb__conn *c) {
    uint64_t now = ebb__now(c->loop->rt);
    if (c->budget_end == EBB_FOREVER || !ebb__conn_is_cancelled(c)) return EBB_FOREVER;
    return c->budget_end > now ? now + (c->budget_end - now) / 2 : now;
}

void ebb__conn_task_linger(ebb__conn *c) {
    uint64_t until = ebb__loop_now(c->loop) + LINGER_MS * EBB_MS, half = half_left(c);
    c->linger_until = until < half ? until : half;
    ebb__conn_task_at(c, c->linger_until);
}

/* ---- time ----------------------------------------------------------------------------------------------------- */

/* Whether `span` has passed since `since`; 0: the clock does not run. Otherwise lowers *next to when it will have
 * passed. */
static bool has_expired(uint64_t now, uint64_t since, uint64_t span, uint64_t *next) {
    if (since == 0) return false;
    uint64_t due = since + span;
    if (now >= due) return true;
    if (due < *next) *next = due;
    return false;
}

/* The region is cancelled before the stream is reset, so that the reason is the timeout and not a disconnect. A late
 * body is answered with 408 when the handler has cleaned up. */
void ebb__conn_task_late(ebb_http *x, const char *message) {
    bool sends = x->out_pace.since != 0;
    ebb__address_late(x);
    ebb__pacing_end(x);
    x->conn->server->stats.timed_out++;
    if (ebb__exchange_has_region(x))
        ebb_region_cancel(ebb_runtime_host(x->loop->rt), x->region, EBB_CANCEL_TIMEOUT, message);
    if (!sends) x->verdict = 408;
    else x->conn->proto->reset(x, EBB__ENHANCE_YOUR_CALM);
    ebb__conn_touch(x->conn);
}

bool ebb__conn_task_is_choked(const ebb__conn *c) {
    return c->proto->version == 20 && ebb__h2_is_choked(c);
}

/* The clock of a body stands still while the peer can't send it. */
static bool body_is_late(ebb_http *x, uint64_t now, uint64_t *next) {
    if (x->reader == NULL || !ebb__exchange_has_region(x) || x->place >= EBB__PLACE_LATE) return false;
    if (ebb__conn_task_is_choked(x->conn)) x->in_pace.since = now;
    return has_expired(now, x->in_pace.since, x->conn->server->limits.body_ns, next);
}

/* Nothing else notices that a handler was abandoned. */
static void check_handler(ebb_http *x, uint64_t now, uint64_t *next) {
    uint64_t again = now + x->conn->server->limits.header_ns;
    ebb__serve_abandoned(x);
    if (again < *next) *next = again;
}

/* A peer that takes no bytes of any response loses its connection. */
static void check_exchanges(ebb__conn *c, uint64_t now, uint64_t *next) {
    const ebb_http_limits *l = &c->server->limits;
    uint32_t late = 0, moving = 0;
    for (ebb_http *x = c->first; x != NULL; x = x->next) {
        if (ebb__exchange_is_gone(x)) continue;
        if (x->work == EBB__WORK_RUNNING) check_handler(x, now, next);
        if (body_is_late(x, now, next)) ebb__conn_task_late(x, "the body took too long");
        if (has_expired(now, x->sent_since, EBB__LATE_BODY_MS * EBB_MS, next)) {
            x->sent_since = 0;
            c->proto->reset(x, EBB__NO_ERROR);
        }
        if (x->out_pace.since == 0) continue;
        if (!has_expired(now, x->out_pace.since, l->write_ns, next)) {
            moving++;
            continue;
        }
        if (x->from_n > 0)
            late++; /* else only the end is missing, which nghttp2 does not send into a closed window */
        ebb__conn_task_late(x, "the peer does not read");
    }
    if (late > 0 && moving == 0) {
        c->server->stats.rate_limited++;
        ebb__conn_fail(c, EBB__ENHANCE_YOUR_CALM, EBB_ERR_HTTP_RESET, EBB_CANCEL_TIMEOUT,
                       "the peer does not read");
    }
}

static void too_late(ebb__conn *c, uint32_t code, const char *message) {
    c->server->stats.timed_out++;
    ebb__conn_fail(c, code, EBB_ERR_HTTP_RESET, EBB_CANCEL_TIMEOUT, message);
}

/* HTTP/2 waits for the answer to its PING. An HTTP/1 client that has read a response without "connection: close" may
 * be sending the next request. */
static bool notice_has_expired(const ebb__conn *c, uint64_t now, uint64_t head, uint64_t *next) {
    if (c->state != EBB__CONN_CLOSING) return false;
    uint64_t since = c->closing_since;
    if (c->proto != NULL && c->proto->version < 20) {
        if (c->slots > 0 || head != 0) return false;
        if (c->idle_since > since) since = c->idle_since;
    }
    return has_expired(now, since, EBB__NOTICE_MS * EBB_MS, next);
}

static void end_delay(ebb__conn *c, uint64_t now, uint64_t *next) {
    if (c->reads != EBB__READS_DELAYED || ebb__conn_is_ending(c)) return;
    if (now < c->read_at) {
        if (c->read_at < *next) *next = c->read_at;
        return;
    }
    ebb__reads_step(c, EBB__READS_GO_ON);
    if (ebb__raw_stream_read(&c->raw, true) != EBB_OK)
        ebb__conn_drop(c, EBB_ERR_CLOSED, EBB_CANCEL_RESOURCE, "the connection can't be read");
}

/* How long the system may take for the bytes that libuv has: each adds as much time as a byte of a response. */
static uint64_t write_span(const ebb__conn *c) {
    const ebb_http_limits *l = &c->server->limits;
    return l->write_ns + (l->write_rate == EBB_HTTP_NO_RATE ? 0 : c->rest_n * EBB_SECOND / l->write_rate);
}

/* The connection task does not yet await the close of its region, and has neither learned of it nor of a cancel. */
static bool wants_close(const ebb__conn *c) {
    return c->closing == NULL && c->state < EBB__CONN_CLOSING && c->unit == EBB__UNIT_RUNS;
}

static void check_time(ebb__conn *c) {
    const ebb_http_limits *l = &c->server->limits;
    uint64_t now = ebb__now(c->loop->rt), next = EBB_FOREVER;
    disarm(c);
    uint64_t head = c->proto != NULL ? c->proto->head_since(c) : c->born;
    uint64_t idle = c->slots == 0 && (c->proto == NULL || head == 0) ? c->idle_since : 0;
    if (ebb__conn_has_last_bytes(c)) {
        if (has_expired(now, c->linger_until, 0, &next) ||
            has_expired(now, c->write_since, l->write_ns, &next)) {
            ebb__raw_stream_close(&c->raw);
            return;
        }
    } else if (has_expired(now, c->write_since, write_span(c), &next)) {
        ebb__conn_drop(c, EBB_ERR_HTTP_RESET, EBB_CANCEL_TIMEOUT, "the peer does not read");
        c->server->stats.timed_out++;
    } else if (has_expired(now, head, l->header_ns, &next)) {
        too_late(c, EBB__ENHANCE_YOUR_CALM, "the head took too long");
    } else if (has_expired(now, idle, l->idle_ns, &next)) {
        too_late(c, EBB__NO_ERROR, "idle");
    } else {
        if (notice_has_expired(c, now, head, &next)) ebb__conn_drain(c);
        if (c->proto != NULL) check_exchanges(c, now, &next);
    }
    end_delay(c, now, &next);
    if (c->starts != NULL) ebb__conn_touch(c); /* its address may have a larger budget by now */
    bool again = c->starts != NULL || wants_close(c);
    if (again && now + EBB__RETRY_MS * EBB_MS < next) next = now + EBB__RETRY_MS * EBB_MS;
    if (c->stop_at != 0 && c->stop_at < next) next = c->stop_at;
    if (c->state < EBB__CONN_ENDED) ebb__conn_task_at(c, next != EBB_FOREVER ? next : now + l->header_ns);
}

/* ---- close, cancel, force --------------------------------------------------------------------------------------- */

/* The exchanges are cancelled by their regions, and answered when they have cleaned up. They have half of the budget
 * that is left. */
static void cancelled(ebb_cx *cx, ebb__conn *c) {
    if (c->unit != EBB__UNIT_RUNS) return;
    ebb__unit_step(c, EBB__UNIT_IS_CANCELLED);
    c->budget_end = ebb__region_force_at(ebb__region_of(cx));
    c->stop_at = half_left(c);
    if (ebb__conn_has_last_bytes(c) && (c->linger_until == 0 || c->stop_at < c->linger_until)) {
        c->linger_until = c->stop_at;
    }
    ebb__conn_drain(c);
    ebb__conn_task_at(c, c->stop_at);
}

/* Answers the exchanges that are left, without waiting for their handlers. */
static void answer_all(ebb__conn *c) {
    for (ebb_http *x = c->first; x != NULL; x = x->next) {
        if (ebb__exchange_is_gone(x)) continue;
        if (x->out == EBB__OUT_NONE) ebb__exchange_refuse(x, 503);
        else if (ebb__exchange_is_open(x)) c->proto->reset(x, EBB__CANCEL);
    }
    ebb__conn_touch(c);
}

/* In two steps, since the peer may not read the answers. */
static void stop(ebb__conn *c) {
    bool again = c->unit == EBB__UNIT_STOPPING;
    if (!again) ebb__unit_step(c, EBB__UNIT_STOPS);
    c->stop_at = again ? 0 : half_left(c);
    if (ebb__conn_is_ending(c)) { /* the peer may not read the last bytes */
        if (again && ebb__conn_has_last_bytes(c) && c->linger_until == 0) ebb__conn_task_linger(c);
        return;
    }
    if (!again && c->proto != NULL) {
        answer_all(c);
        return;
    }
    ebb__conn_fail(c, EBB__NO_ERROR, EBB_ERR_CLOSED, EBB_CANCEL_SHUTDOWN, "the server stops");
    ebb__conn_task_linger(c);
}

/* Without memory for the future, check_time retries. */
static void await_close(ebb_cx *cx, ebb__conn *c) {
    if (wants_close(c)) c->closing = ebb_closing(cx);
    if (c->closing == NULL) return;
    ebb_status st = ebb_await(cx, c->closing, NULL);
    if (st == EBB_PENDING) return;
    c->closing = NULL;
    if (st == EBB_OK) ebb__conn_close(c);
}

ebb_status ebb__conn_task_poll(ebb_cx *cx, void *arg) {
    ebb__conn *c = arg;
    await_close(cx, c);
    if (ebb__is_overdue(cx)) {
        ebb__conn_drop(c, EBB_ERR_CLOSED, EBB_CANCEL_SHUTDOWN, "the server was forced to stop");
        return EBB_OK;
    }
    if (ebb_checkpoint(cx) != EBB_OK) cancelled(cx, c);
    if (c->stop_at != 0 && ebb_now(cx) >= c->stop_at) stop(c);
    if (c->state < EBB__CONN_ENDED) check_time(c);
    if (c->state == EBB__CONN_RELEASED) {
        disarm(c);
        return EBB_OK;
    }
    return EBB_PENDING;
}
