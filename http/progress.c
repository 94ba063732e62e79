/* Progress of exchanges: the clocks of both directions, and the functions that move them. */
#define _POSIX_C_SOURCE 200809L
#include "http/progress.h"

#include "http/http.h"

/* ---- the clock -------------------------------------------------------------------------------------------- */

void ebb__pace_wait(ebb__pace *p, uint64_t now) {
    if (p->since != 0) return;
    p->since = now > p->shown ? now - p->shown : 1;
}

void ebb__pace_rest(ebb__pace *p, uint64_t now) {
    if (p->since == 0) return;
    p->shown = ebb__pace_late(p, now);
    p->since = 0;
}

/* The time that n bytes are worth. More than an hour makes no difference. */
static uint64_t worth(uint64_t n, uint32_t rate) {
    if (rate == EBB_HTTP_NO_RATE || n >= rate * UINT64_C(3600)) return EBB_FOREVER / 4;
    return n * EBB_SECOND / rate;
}

bool ebb__pace_bytes(ebb__pace *p, uint64_t now, uint64_t n, uint32_t rate) {
    uint64_t back = n == 0 ? 0 : worth(n, rate), shown = p->since != 0 ? ebb__pace_late(p, now) : p->shown;
    shown = shown > back ? shown - back : 0;
    if (p->since != 0) p->since = now > shown ? now - shown : 1;
    else p->shown = shown;
    return shown == 0;
}

/* ---- exchanges -------------------------------------------------------------------------------------------- */

/* The one place that adds an exchange to the list of those that wait for their peer, or removes it. `moves`: its clock
 * shows zero. */
static void update(ebb_http *x, bool moves) {
    bool waits = (x->out_pace.since != 0 || x->in_pace.since != 0) && x->place < EBB__PLACE_LATE;
    if (!waits) ebb__address_let_go(x);
    else if (moves || x->place != EBB__PLACE_WAITING) ebb__address_hold(x);
}

static void out_waits(ebb_http *x, uint64_t now) {
    if (x->out_pace.since != 0) return;
    ebb__pace_wait(&x->out_pace, now);
    x->conn->sending++;
    ebb__pace_wait(&x->conn->pace, now);
}

static void out_rests(ebb_http *x, uint64_t now) {
    if (x->out_pace.since == 0) return;
    ebb__pace_rest(&x->out_pace, now);
    if (--x->conn->sending == 0) x->conn->pace = (ebb__pace){0};
}

/* Most responses are taken whole by the flush that follows: they need no clock. So bytes that are ready are only noted,
 * in the connection's list `fresh`. Its order becomes that of the address's list, whose first has waited longest. */
void ebb__pacing_ready(ebb_http *x) {
    if (x->client || x->out_pace.since != 0 || x->fresh_at != NULL) return;
    ebb__conn *c = x->conn;
    x->fresh = NULL;
    x->fresh_at = c->fresh_last;
    *c->fresh_last = x;
    c->fresh_last = &x->fresh;
}

static void not_fresh(ebb_http *x) {
    if (x->fresh_at == NULL) return;
    *x->fresh_at = x->fresh;
    if (x->fresh != NULL) x->fresh->fresh_at = x->fresh_at;
    else x->conn->fresh_last = x->fresh_at;
    x->fresh_at = NULL;
}

/* Handlers may have computed for long: the time is read. It is read anyway before bytes are received or sent. */
void ebb__pacing_flushed(ebb__conn *c) {
    if (c->fresh == NULL) return;
    uint64_t now = ebb__loop_now(c->loop);
    for (ebb_http *x; (x = c->fresh) != NULL;) {
        not_fresh(x);
        out_waits(x, now);
        ebb__conn_task_at(c, x->out_pace.since + c->server->limits.write_ns);
        update(x, false);
    }
}

static bool has_clock(const ebb_http *x) {
    const ebb__pace *own = &x->out_pace, *all = &x->conn->pace;
    return (own->since | own->shown | x->in_pace.since | all->since | all->shown) != 0;
}

void ebb__pacing_took(ebb_http *x, size_t n) {
    if (x->client) return;
    if (x->from_n == 0) not_fresh(x);
    if (!has_clock(x)) return;
    uint64_t now = ebb__now(x->loop->rt);
    uint32_t rate = x->conn->server->limits.write_rate;
    bool moves = n > 0 && ebb__pace_bytes(&x->out_pace, now, n, rate);
    (void)ebb__pace_bytes(&x->conn->pace, now, n, rate);
    if (x->from_n == 0) out_rests(x, now);
    update(x, moves);
}

void ebb__pacing_cut(ebb_http *x) {
    if (x->client) return;
    not_fresh(x);
    out_rests(x, ebb__now(x->loop->rt));
    update(x, false);
}

void ebb__pacing_reads(ebb_http *x) {
    if (x->client) return;
    uint64_t now = ebb__loop_now(x->loop); /* the handler may have computed for long */
    ebb__pace_wait(&x->in_pace, now);
    ebb__conn_task_at(x->conn, x->in_pace.since + x->conn->server->limits.body_ns);
    update(x, false);
}

void ebb__pacing_came(ebb_http *x, size_t n) {
    if (x->client) return;
    uint64_t now = ebb__now(x->loop->rt);
    bool moves = n > 0 && ebb__pace_bytes(&x->in_pace, now, n, x->conn->server->limits.body_rate);
    if (x->reader == NULL) ebb__pace_rest(&x->in_pace, now);
    update(x, moves);
}

void ebb__pacing_end(ebb_http *x) {
    if (x->client) return;
    not_fresh(x);
    out_rests(x, ebb__now(x->loop->rt));
    x->in_pace.since = 0;
    ebb__address_let_go(x);
}

/* ---- stalls ----------------------------------------------------------------------------------------------- */

enum { STALL_MS = 500, STALL_MOST_MS = 5000 };

/* How long a pause may be before the exchange counts as stalled: as long as its bytes so far are worth, within bounds.
 * A peer that has taken many bytes may have a slow network; one that has taken none gets the least. */
static uint64_t patience(uint64_t bytes, uint32_t rate) {
    uint64_t ns = worth(bytes, rate);
    if (ns < STALL_MS * EBB_MS) return STALL_MS * EBB_MS;
    return ns < STALL_MOST_MS * EBB_MS ? ns : STALL_MOST_MS * EBB_MS;
}

static bool is_past(const ebb__pace *p, uint64_t now, uint64_t bytes, uint32_t rate) {
    return p->since != 0 && ebb__pace_late(p, now) >= patience(bytes, rate);
}

/* A stream with an open window waits for its turn on its connection, if the connection makes progress. */
static bool has_its_turn(const ebb_http *x, uint64_t now) {
    bool open = x->version < 20 || ebb__h2_has_window(x, 1);
    return open && ebb__pace_late(&x->conn->pace, now) < STALL_MS * EBB_MS;
}

bool ebb__pacing_is_stalled(const ebb_http *x, uint64_t now) {
    const ebb_http_limits *l = &x->conn->server->limits;
    return (is_past(&x->out_pace, now, x->out_bytes, l->write_rate) && !has_its_turn(x, now)) ||
           (is_past(&x->in_pace, now, x->in_bytes, l->body_rate) && !ebb__conn_task_is_choked(x->conn));
}
