/* A server's exchange: how a request gets its handler, and how the end of one leads to the end of the other.
 *
 * The region of an exchange is opened when the head is complete. When the stream ends, the region is closed if the
 * response was complete, and cancelled if the stream was lost. The exchange is freed when the region has closed and
 * the stream has ended. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>

#include "fiber/fiber.h"
#include "http/http.h"

/* ---- admission ---------------------------------------------------------------------------------------------- */

/* Only open streams count. Closed streams whose handler still runs delay later requests. */
bool ebb__server_admits(ebb__conn *c) {
    ebb_http_server *s = c->server;
    bool open = c->open < s->limits.streams && c->state <= EBB__CONN_CLOSING;
    if (open && ebb__address_may_queue(c)) return true;
    s->stats.refused++;
    return false;
}

ebb__rate_limit *ebb__server_rate_limit(ebb__conn *c) {
    if (c->address == NULL) c->address = ebb__rate_limit_of(&c->server->rate_limits, c->peer.ip);
    return c->address;
}

/* A reset after the first byte has cost us more work, but the client is likely to be honest: its user has left a page.
 *  */
enum { LATE_RESETS = 32 };

static bool take_reset(ebb__conn *c, ebb__bucket *b, bool early) {
    const ebb_http_limits *limits = &c->server->limits;
    return ebb__bucket_take_parts(b, ebb__now(c->loop->rt), limits->resets, limits->resets_second,
                                  early ? EBB_SECOND : EBB_SECOND / LATE_RESETS);
}

/* Once the budget of an address is used up, each of its connections may reset one stream, and one more for each
 * complete answer. So an attacker with many connections gets no more than with one, and an honest client of the same
 * address is still served. */
bool ebb__server_reset(ebb__conn *c, bool early) {
    bool all = take_reset(c, &ebb__server_rate_limit(c)->resets, early);
    bool own = take_reset(c, &c->resets, early);
    if (all) return own;
    if (c->earned > 0) c->earned--;
    else if (c->excused) return false;
    else c->excused = true;
    return own;
}

void ebb__server_lost(ebb__conn *c, bool early) {
    if (!take_reset(c, &ebb__server_rate_limit(c)->resets, early)) ebb__server_delay_address(c);
}

void ebb__server_delay_address(ebb__conn *c) {
    if (c->delayed_address) return;
    c->delayed_address = true;
    ebb__rate_limit_add_delay(ebb__server_rate_limit(c), ebb__now(c->loop->rt));
}

void ebb__server_delay_reads(ebb__conn *c) {
    uint64_t until = ebb__server_rate_limit(c)->quiet_until;
    if (until <= ebb__now(c->loop->rt) || ebb__raw_stream_read(&c->raw, false) != EBB_OK) return;
    ebb__reads_step(c, EBB__READS_ARE_DELAYED);
    c->read_at = until;
    ebb__conn_task_at(c, until);
}

bool ebb__server_frame(ebb__conn *c, uint32_t n) {
    const ebb_http_limits *limits = &c->server->limits;
    return ebb__bucket_take(&c->frames, ebb__now(c->loop->rt), limits->frames, limits->frames_second, n);
}

/* A connection has no more handlers at once than it could reset streams: each may start in vain. */
static bool could_reset(ebb__conn *c) {
    const ebb_http_limits *limits = &c->server->limits;
    if (c->working <= c->earned) return true;
    uint64_t now = ebb__now(c->loop->rt);
    return c->working <= c->earned + ebb__bucket_left(&ebb__server_rate_limit(c)->resets, now, limits->resets,
                                                      limits->resets_second);
}

bool ebb__server_may_start(ebb__conn *c) {
    return c->working < c->server->limits.streams && could_reset(c) && ebb__address_has_room(c);
}

/* The stream has ended and the handler has returned: the slot is free for an exchange that waits to start. */
static void rest(const ebb_http *x) {
    if (!ebb__exchange_is_lost(x)) x->conn->earned++;
    x->conn->working--;
    if (x->conn->starts != NULL) ebb__conn_touch(x->conn);
}

/* ---- the end of the handler ----------------------------------------------------------------------------------- */

static bool is_on_stack(const uint8_t *at) {
    const ebb__fiber *f = ebb__fiber_here();
    const char *p = (const char *)at;
    return f != NULL && p >= f->base && p < f->base + f->all->stack_bytes;
}

/* A write that the handler did not await goes on, unless its bytes are on the fiber's stack, which is about to be
 * freed. That holds however the handler has ended: the futures of a cancelled region end only later, in the pump. */
static void cut_stack_bytes(ebb_http *x) {
    if (ebb__exchange_writer(x) != NULL && is_on_stack(ebb__exchange_unsent(x))) ebb__exchange_cut(x);
}

/* There was no descriptor left: the client may try again. */
static bool is_overload(ebb_status st) {
    return st == EBB_ERRNO(EMFILE) || st == EBB_ERRNO(ENFILE);
}

/* The task of the handler was cancelled, and its region was not. Nobody else would end the exchange. */
static void cancelled_alone(ebb_cx *cx, const ebb_http *x) {
    if (x->out == EBB__OUT_ENDED) return;
    ebb_region_cancel(cx, x->region, EBB_CANCEL_USER, "its handler was cancelled");
}

void ebb__serve_abandoned(ebb_http *x) {
    if (!ebb__exchange_is_abandoned(x) || ebb__region_is_cancelled(x->loop->rt, x->region)) return;
    x->verdict = 500;
    ebb_region_cancel(ebb_runtime_host(x->loop->rt), x->region, EBB_CANCEL_RESOURCE,
                      "its handler was abandoned");
}

/* Ends a response that the handler has begun, or answers for it. If the handler was cancelled, the end of the region
 * decides. */
static ebb_status handled(ebb_cx *cx, ebb_http *x, ebb_status st) {
    ebb__work_step(x, EBB__WORK_RETURNS);
    if (ebb__exchange_is_gone(x)) {
        rest(x);
        return st;
    }
    cut_stack_bytes(x);
    if (!ebb__exchange_is_writable(x)) return st;
    if (st == EBB_CANCELLED && ebb_cancelled(cx)) {
        cancelled_alone(cx, x);
        return st;
    }
    if (x->out == EBB__OUT_NONE) ebb__exchange_refuse(x, is_overload(st) ? 503 : 500);
    else if (st != EBB_OK && ebb__exchange_is_open(x)) ebb__exchange_reset(x);
    else if (ebb__exchange_is_open(x) && ebb__exchange_writer(x) == NULL) (void)ebb_http_end(cx, x);
    else if (x->out == EBB__OUT_OPEN) ebb__out_step(x, EBB__OUT_RETURNS);
    return st;
}

static ebb_status run_plain(ebb_cx *cx, void *arg) {
    ebb_http *x = arg;
    ebb_status st = x->handler->as.fn(cx, x, x->handler->arg);
    return st == EBB_PENDING ? st : handled(cx, x, st);
}

static ebb_status run_future(ebb_cx *cx, void *arg) {
    ebb_http *x = arg;
    if (x->answer == NULL) x->answer = x->handler->as.future(cx, x, x->handler->arg);
    ebb_status st = x->answer == NULL ? EBB_ERR_INVALID : ebb_await(cx, x->answer, NULL);
    return st == EBB_PENDING ? st : handled(cx, x, st);
}

/* ---- the region ----------------------------------------------------------------------------------------------- */

static void note_end(const ebb_http *x) {
    ebb_http_server *s = x->conn->server;
    bool whole = x->out == EBB__OUT_ENDED && !ebb__exchange_is_lost(x);
    s->stats.answered[whole ? x->status / 100 % 6 : 0]++;
    uint64_t now = x->loop->os->hrtime();
    if (whole && x->started != 0 && now >= x->started) s->stats.latency[ebb__time_class(now - x->started)]++;
    if (ebb__exchange_is_lost(x) || x->report == EBB_CANCELLED) s->stats.cancelled++;
    if (s->access != NULL) ebb__access_line(x);
}

/* Frees the exchange if neither stream nor region uses it. */
static void settle(ebb_http *x) {
    bool free = x->work != EBB__WORK_QUEUED && !ebb__exchange_has_region(x);
    if (ebb__exchange_is_gone(x) && free) ebb__exchange_free(x);
}

/* The region was cancelled for another reason than its stream: a deadline or a shutdown. */
static void end_stream(ebb_http *x, bool failed) {
    if (x->out == EBB__OUT_NONE) ebb__exchange_refuse(x, failed ? 500 : x->verdict != 0 ? x->verdict : 503);
    else if (ebb__exchange_is_open(x) && x->out != EBB__OUT_RESETS) x->conn->proto->reset(x, EBB__CANCEL);
}

static void region_closed(void *arg, const ebb_region_report *report) {
    ebb_http *x = arg;
    bool returned = x->work == EBB__WORK_RETURNED;
    ebb__work_step(x, EBB__WORK_CLOSES);
    ebb__address_left(x);
    if (ebb__exchange_is_gone(x) && !returned) rest(x);
    x->report = report->status;
    x->conn->server->stats.exchanges--;
    if (!ebb__exchange_is_gone(x)) {
        bool late = x->deadline != 0 && ebb__now(x->loop->rt) >= x->deadline;
        if (late) x->conn->server->stats.timed_out++;
        if (late && x->verdict == 0) x->verdict = 504;
        end_stream(x, report->status != EBB_OK && report->status != EBB_CANCELLED);
        return;
    }
    note_end(x);
    settle(x);
}

void ebb__serve_gone(ebb_http *x, ebb_cancel_kind kind, const char *message) {
    ebb_cx *host = ebb_runtime_host(x->loop->rt);
    if (x->work == EBB__WORK_RETURNED || x->work == EBB__WORK_CLOSED) rest(x);
    if (ebb__exchange_has_region(x)) {
        if (ebb__exchange_is_lost(x)) ebb_region_cancel(host, x->region, kind, message);
        else ebb_region_close(host, x->region);
        return;
    }
    if (x->work != EBB__WORK_QUEUED) note_end(x);
    settle(x);
}

/* ---- starting --------------------------------------------------------------------------------------------------- */

static ebb_task spawn(ebb_cx *cx, ebb_http *x) {
    const ebb__handler *h = x->handler;
    if (h->kind == EBB__FIBER) return ebb_fiber_spawn_site(cx, x->region, run_plain, x, NULL, h->site);
    return ebb_spawn_site(cx, x->region, h->kind == EBB__POLL ? run_plain : run_future, x, h->site);
}

/* An exchange is work of its connection, which is a unit of work: the connection task opens its region. */
static ebb_cx *task_cx(const ebb__conn *c) {
    ebb_cx *cx = ebb__task_cx(c->loop->rt, c->task, NULL);
    return cx != NULL ? cx : ebb_runtime_host(c->loop->rt);
}

/* Returns 503 if there is no room for the handler. */
static int start(ebb_http *x) {
    ebb_cx *cx = task_cx(x->conn);
    ebb_region_opts opts = {.parent = x->conn->region,
                            .deadline = x->deadline,
                            .unit = true,
                            .on_closed = region_closed,
                            .arg = x};
    x->region = ebb__region_open_apart(cx, &opts, x->handler->site);
    if (ebb_id_status(x->region.id) != EBB_OK) return 503;
    ebb__work_step(x, EBB__WORK_STARTS);
    ebb__server_crowd(x->conn->server);
    if (EBB__UNLIKELY(ebb__fields_may_have(&x->fields, EBB__TRACEPARENT_N))) ebb__exchange_take_trace(x);
    x->task = spawn(cx, x);
    if (ebb_id_status(x->task.id) == EBB_OK) {
        x->started = ebb__now(x->loop->rt);
        ebb__address_started(x);
        return 0;
    }
    x->verdict = 503;
    return 503;
}

static bool keep_params(ebb_http *x, const ebb__match *m) {
    if (m->params_n == 0) return true;
    x->params = ebb__arena_alloc(&x->arena, m->params_n * sizeof *x->params);
    if (x->params == NULL) return false;
    memcpy(x->params, m->params, m->params_n * sizeof *x->params);
    x->params_n = m->params_n;
    return true;
}

static int no_route(ebb_http *x, const ebb__match *m) {
    if (!m->path_known) return 404;
    size_t n = strlen(m->allow) + 1;
    char *allow = ebb__arena_alloc(&x->arena, n);
    if (allow != NULL) x->allow = memcpy(allow, m->allow, n);
    return 405;
}

static bool body_is_too_large(const ebb_http *x) {
    uint64_t n;
    const ebb__field *f = ebb__fields_find(&x->fields, "content-length", 14);
    return f != NULL && (!ebb__parse_u64(f->value, f->value_n, &n) || n > x->conn->server->bounds.body_bytes);
}

/* Returns the status of a refusal; 0: the handler runs. */
static int route(ebb_http *x) {
    ebb__conn *c = x->conn;
    ebb__match m;
    bool refused = c->overflow;
    if (ebb__server_is_short(c->server, 6)) {
        ebb__server_shed(c->server);
        ebb__address_evict_any(c->server, EBB__EVICT);
        refused = refused || ebb__server_is_short(c->server, 7);
    }
    if (refused) {
        c->server->stats.refused++;
        return 503;
    }
    if (x->too_large) return 431;
    if (body_is_too_large(x)) return 413;
    ebb__routes_find(c->server->routes, x->method, x->path, x->path_n, &m);
    if (m.handler == NULL) return no_route(x, &m);
    x->handler = m.handler;
    return keep_params(x, &m) ? start(x) : 503;
}

void ebb__serve(ebb_http *x) {
    x->conn->server->stats.requests++;
    bool gone = ebb__exchange_is_gone(x);   /* reset by the same bytes */
    bool refused = x->out != EBB__OUT_NONE; /* while it waited */
    int status = gone || refused ? 0 : route(x);
    if (!gone && !refused && ebb__is_recorded(x->loop->rt)) ebb__note_exchange_begun(x);
    if (x->work == EBB__WORK_QUEUED) ebb__work_step(x, EBB__WORK_IS_SKIPPED);
    if (status != 0) ebb__exchange_refuse(x, status);
    if (!gone) return;
    note_end(x);
    settle(x);
}
