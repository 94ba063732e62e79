/* The PostgreSQL provider: a store opened and closed, and calls put into their lane. */
#define _POSIX_C_SOURCE 200809L
#include "durable/postgres.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* ---- answers -------------------------------------------------------------------------------------------------- */

void ebb__postgres_say(ebb__postgres_member *m, ebb_status st, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(m->text, sizeof m->text, format, args);
    va_end(args);
    m->status = st;
}

void ebb__postgres_nomem(ebb__postgres_member *m) {
    ebb__postgres_say(m, EBB_ERR_NOMEM, "no memory for the call or its answer");
}

static const ebb_status outcomes[] = {EBB_OK,         EBB_ERR_FENCED,           EBB_ERR_GONE,
                                      EBB_ERR_EXISTS, EBB_ERR_UNKNOWN_INSTANCE, EBB_ERR_LIMIT};

bool ebb__postgres_outcome(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    bool whole = true;
    (void)s;
    if (PQntuples(r) == 0) { /* the instance was removed between two statements */
        ebb__postgres_say(m, EBB_ERR_UNAVAILABLE, "the instance was changed meanwhile");
        return false;
    }
    const uint64_t code = ebb__postgres_get_number(r, 0, 0);
    m->status = code < sizeof outcomes / sizeof outcomes[0] ? outcomes[code] : EBB_ERR_STORE;
    if (PQnfields(r) > 1) {
        m->hints = ebb__postgres_get_text(m->call, r, 0, 1, &whole);
        if (!whole) m->hints = "l\n";
    }
    return m->status == EBB_OK;
}

void ebb__postgres_claim_new(ebb__postgres *s, ebb__postgres_member *m, ebb__postgres_args *a, uint64_t node,
                             uint32_t most) {
    const uint32_t n = most < EBB__POSTGRES_CLAIMS ? most : EBB__POSTGRES_CLAIMS;
    ebb__postgres_claim *c = ebb__alloc(&s->allocator, sizeof *c + n * sizeof c->token[0]);
    if (c == NULL) {
        a->failed = true;
        return;
    }
    *c = (ebb__postgres_claim){.node = node, .op = m->call->op, .n = n};
    for (uint32_t i = 0; i < n; i++) c->token[i] = ebb__token_new(s->host);
    m->claim = c;
    ebb__postgres_tokens(a, c->token, n);
}

enum { POLL_MS = 1000, POLL_DEAF_MS = 100 };

void ebb__postgres_times(ebb__postgres *s, const PGresult *r, uint64_t *now, uint64_t *again,
                         bool *suspects) {
    const uint64_t t = ebb__postgres_get_number(r, 0, 0);
    const uint64_t poll = (s->listener.ready ? POLL_MS : POLL_DEAF_MS) * EBB_MS;
    if (t > s->seen) s->seen = t;
    *now = s->seen;
    *again = PQgetisnull(r, 0, 1) ? poll : ebb__postgres_get_number(r, 0, 1);
    if (*again > poll) *again = poll;
    *suspects = ebb__postgres_get_bool(r, 0, 2);
}

/* ---- floors --------------------------------------------------------------------------------------------------- */

#define FLOOR_AGE (5 * EBB_SECOND)

/* The place of an id, or the one that was used longest ago. */
static ebb__postgres_floor *floor_of(ebb__postgres *s, uint64_t id) {
    ebb__postgres_floor *oldest = &s->floor[0];
    for (size_t i = 0; i < EBB__POSTGRES_FLOORS; i++) {
        ebb__postgres_floor *f = &s->floor[i];
        if (f->id == id) return f;
        if (f->seen < oldest->seen) oldest = f;
    }
    return oldest;
}

void ebb__postgres_put_floor(ebb__postgres *s, ebb__postgres_member *m, ebb__postgres_args *a, uint64_t id,
                             bool any) {
    const ebb__postgres_floor *f = floor_of(s, id);
    const bool known = f->id == id && s->listener.ready && s->host->boot(s->host->ctx) - f->seen < FLOOR_AGE;
    m->floors = any && !known ? s->floors : 0;
    ebb__postgres_number(a, any && known ? f->at : 0);
}

void ebb__postgres_get_floor(ebb__postgres *s, const ebb__postgres_member *m, const PGresult *r, int column,
                             uint64_t id) {
    const int64_t at = (int64_t)ebb__postgres_get_number(r, 0, column);
    if (at < 0) ebb__postgres_floors_reset(s);
    else if (m->floors == s->floors)
        *floor_of(s, id) = (ebb__postgres_floor){id, (uint64_t)at, s->host->boot(s->host->ctx)};
}

void ebb__postgres_floors_reset(ebb__postgres *s) {
    memset(s->floor, 0, sizeof s->floor);
    s->floors++;
}

/* ---- calls ---------------------------------------------------------------------------------------------------- */

const ebb__postgres_op *ebb__postgres_op_of(ebb_provider_op op) {
    if (op <= EBB_PROVIDER_LEAVE) return &ebb__postgres_node_ops[op];
    if (op <= EBB_PROVIDER_ABANDON_TURNS) return &ebb__postgres_turn_ops[op];
    if (op <= EBB_PROVIDER_ABANDON_WORK) return &ebb__postgres_work_ops[op];
    return op <= EBB_PROVIDER_OUTSTANDING ? &ebb__postgres_client_ops[op] : &ebb__postgres_operator_ops[op];
}

static void on_kick(uv_timer_t *uv) {
    ebb__postgres *s = uv->data;
    s->kicked = false;
    s->loop->entered = true;
    if (s->closed) return;
    ebb__postgres_lane_kick(&s->writer);
    ebb__postgres_lane_kick(&s->reader);
}

void ebb__postgres_kick(ebb__postgres *s) {
    if (s->kicked || s->closed) return;
    s->kicked = true;
    (void)s->loop->os->timer_start(&s->kick, on_kick, 0, 0);
}

bool ebb__postgres_ends_claims(ebb_provider_op op) {
    return op == EBB_PROVIDER_LEAVE || op == EBB_PROVIDER_ABANDON_TURNS || op == EBB_PROVIDER_ABANDON_WORK;
}

static void ask(void *self, ebb_provider_call *c) {
    ebb__postgres *s = self;
    const bool writes = ebb__postgres_op_of(c->op)->writes;
    ebb__postgres_lane *l = writes ? &s->writer : &s->reader;
    if (s->closed) ebb_provider_done(c, EBB_ERR_CLOSED, "the store is closed");
    else if (writes && s->read_only)
        ebb_provider_done(c, EBB_ERR_CLOSED, "the store was opened for reading only");
    else if (s->refused != EBB_OK && !ebb__postgres_ends_claims(c->op))
        ebb_provider_done(c, s->refused, s->text);
    else if (l->conn.state == EBB__CONN_DOWN && !l->ready)
        ebb_provider_done(c, EBB_ERR_UNAVAILABLE, l->conn.text);
    else {
        ebb__call_queue_push(&l->queue, c);
        ebb__postgres_kick(s);
    }
}

#define ASK(fn)                                                                                              \
    static void on_##fn(void *self, ebb_provider_##fn##_call *c) {                                           \
        ask(self, &c->call);                                                                                 \
    }
ASK(join)
ASK(renew)
ASK(leave)
ASK(fetch_turns)
ASK(ack_turn)
ASK(abandon_turns)
ASK(fetch_work)
ASK(ack_work)
ASK(abandon_work)
ASK(start)
ASK(send)
ASK(history)
ASK(instance)
ASK(list)
ASK(value)
ASK(outstanding)
ASK(mark)
ASK(reset)
ASK(remove)

static void on_stats(const void *self, ebb_provider_stats *out) {
    *out = ((const ebb__postgres *)self)->stats;
}

/* ---- close ---------------------------------------------------------------------------------------------------- */

static void store_free(ebb__postgres *s) {
    ebb_allocator a = s->allocator;
    ebb__postgres_lane_fini(&s->writer);
    ebb__postgres_lane_fini(&s->reader);
    ebb__postgres_args_free(&s->args);
    ebb__free(&a, s->notify, s->notify_room);
    ebb__arena_free(&s->arena);
    ebb__free(&a, s, sizeof *s);
}

void ebb__postgres_released(ebb__postgres *s) {
    if (--s->open > 0) return;
    ebb_provider_call *c = s->closing;
    const ebb_status st = s->closing_status;
    char text[sizeof s->text];
    memcpy(text, s->text, sizeof text);
    s->loop->entered = true;
    if (s->op != NULL) ebb__handle_free(s->op);
    s->op = NULL;
    if (c == NULL) return; /* the region was forced: its close has still to come */
    store_free(s);
    ebb_provider_done(c, st, text);
}

static void on_kick_closed(uv_handle_t *uv) {
    ebb__postgres_released(uv->data);
}

static void release(ebb__postgres *s) {
    if (s->closed) return;
    s->closed = true;
    ebb__postgres_lane_farewell(&s->writer);
    s->writer.ready = s->reader.ready = s->listener.ready = false;
    if (s->writer.conn.handles > 0) ebb__postgres_conn_close(&s->writer.conn);
    if (s->reader.conn.handles > 0) ebb__postgres_conn_close(&s->reader.conn);
    if (s->listener.conn.handles > 0) ebb__postgres_conn_close(&s->listener.conn);
    s->loop->os->close((uv_handle_t *)&s->kick, on_kick_closed);
}

static void on_close(void *self, ebb_provider_close_call *c) {
    ebb__postgres *s = self;
    s->closing = &c->call;
    s->closing_status = EBB_OK;
    s->text[0] = 0;
    if (s->closed && s->open == 0) {
        store_free(s);
        ebb_provider_done(&c->call, EBB_OK, NULL);
    } else release(s);
}

/* The region was forced: nobody waits for the calls any more. */
static void op_stop(void *ctx) {
    ebb__postgres *s = ctx;
    ebb_provider_open_call *opening = s->opening;
    s->opening = NULL;
    release(s);
    if (opening != NULL) {
        s->closing = &opening->call;
        s->closing_status = EBB_ERR_CLOSED;
    }
    ebb__postgres_lane_fail(&s->writer, EBB_ERR_UNAVAILABLE, "the region of the store was forced");
    ebb__postgres_lane_fail(&s->reader, EBB_ERR_UNAVAILABLE, "the region of the store was forced");
}

/* ---- open ----------------------------------------------------------------------------------------------------- */

void ebb__postgres_opened(ebb__postgres *s) {
    ebb_provider_open_call *c = s->opening;
    s->opening = NULL;
    ebb__postgres_conn_begin(&s->reader.conn);
    ebb__postgres_conn_begin(&s->listener.conn);
    c->self = s;
    ebb_provider_done(&c->call, EBB_OK, NULL);
}

void ebb__postgres_open_failed(ebb__postgres *s, ebb_status st, const char *text) {
    (void)snprintf(s->text, sizeof s->text, "%s", text);
    s->closing = &s->opening->call;
    s->closing_status = st;
    s->opening = NULL;
    release(s);
}

/* Those of libpq, and one of ours. */
static ebb_status check_options(const ebb__store_url *u, char *text, size_t room) {
    PQconninfoOption *known = PQconndefaults();
    ebb_status st = known != NULL ? EBB_OK : EBB_ERR_NOMEM;
    for (size_t i = 0; i < u->options && st == EBB_OK; i++) {
        const PQconninfoOption *o = known;
        while (o->keyword != NULL && strcmp(o->keyword, u->option[i].name) != 0) o++;
        if (o->keyword != NULL || strcmp(u->option[i].name, "synchronous_commit") == 0) continue;
        st = EBB_ERR_INVALID;
        (void)snprintf(text, room, "the URL of a store: PostgreSQL has no option '%s'", u->option[i].name);
    }
    if (known != NULL) PQconninfoFree(known);
    return st;
}

/* A host as an option is looked up like one before the path; libpq would wait for its name. */
static void take_host(ebb__store_url *u) {
    const char *host = ebb__store_url_option(u, "host");
    if (host != NULL && *host != '/') u->host = host;
}

static ebb_status parse(ebb__postgres *s, const ebb_store_opts *o, char *text, size_t room) {
    ebb_status st = ebb__store_url_parse(&s->arena, o->url, &s->url, text, room);
    if (st != EBB_OK) return st;
    st = check_options(&s->url, text, room);
    if (st != EBB_OK) return st;
    s->synchronous = ebb__store_url_option(&s->url, "synchronous_commit");
    take_host(&s->url);
    if (o->listen_url == NULL) {
        s->listen_url = s->url;
        return EBB_OK;
    }
    st = ebb__store_url_parse(&s->arena, o->listen_url, &s->listen_url, text, room);
    take_host(&s->listen_url);
    return st == EBB_OK ? check_options(&s->listen_url, text, room) : st;
}

static ebb_status begin(ebb__postgres *s) {
    uint64_t id;
    ebb_status st;
    s->host->random(s->host->ctx, &id, sizeof id);
    (void)snprintf(s->sender, sizeof s->sender, "%016" PRIx64, id);
    s->op = ebb__handle_new(s->loop, s->host->region, EBB__HANDLE_OP, "ebb_store_open", &st);
    if (s->op == NULL) return st;
    s->op->as.op = (ebb__handle_op){.what = "connections to PostgreSQL", .stop = op_stop, .ctx = s};
    if (s->loop->os->timer_init(s->loop->uv, &s->kick) != 0) {
        ebb__handle_free(s->op);
        return EBB_ERR_NOMEM;
    }
    s->kick.data = s;
    s->loop->os->unref((uv_handle_t *)&s->kick);
    s->open = 1;
    s->writer.writes = true;
    s->floors = 1;
    return EBB_OK;
}

void ebb__postgres_open(ebb_provider_open_call *c, const ebb__postgres_schema *schema) {
    ebb_loop *loop = NULL;
    char text[256] = "no memory for a store";
    if (ebb__loop_of(ebb_runtime_host(c->host->runtime), &loop) != EBB_OK || loop->os != &ebb__uv_platform) {
        ebb_provider_done(&c->call, EBB_ERR_INVALID, "PostgreSQL needs a loop of libuv");
        return;
    }
    ebb_allocator a = c->host->allocator;
    ebb__postgres *s = ebb__alloc(&a, sizeof *s);
    if (s == NULL) {
        ebb_provider_done(&c->call, EBB_ERR_NOMEM, text);
        return;
    }
    memset(s, 0, sizeof *s);
    s->loop = loop;
    s->host = c->host;
    s->allocator = a;
    s->schema = schema;
    s->args.allocator = &s->allocator;
    s->read_only = c->opts->read_only;
    s->no_create = c->opts->no_create;
    ebb__arena_init(&s->arena, a, 1024);
    ebb_status st = parse(s, c->opts, text, sizeof text);
    if (st == EBB_OK) st = begin(s);
    if (st != EBB_OK) {
        store_free(s);
        ebb_provider_done(&c->call, st, text);
        return;
    }
    s->opening = c;
    if (!ebb__postgres_lane_init(s, &s->writer, &s->url) ||
        !ebb__postgres_lane_init(s, &s->reader, &s->url) ||
        !ebb__postgres_lane_init(s, &s->listener, &s->listen_url))
        ebb__postgres_open_failed(s, EBB_ERR_NOMEM, text);
    else ebb__postgres_conn_begin(&s->writer.conn);
}

static void on_open(ebb_provider_open_call *c) {
    ebb__postgres_open(c, &ebb__postgres_schema_own);
}

const ebb_provider ebb__provider_postgres = {
    .size = sizeof(ebb_provider),
    .scheme = "postgres",
    .about = "PostgreSQL, by libpq",
    .open = on_open,
    .close = on_close,
    .join = on_join,
    .renew = on_renew,
    .leave = on_leave,
    .fetch_turns = on_fetch_turns,
    .ack_turn = on_ack_turn,
    .abandon_turns = on_abandon_turns,
    .fetch_work = on_fetch_work,
    .ack_work = on_ack_work,
    .abandon_work = on_abandon_work,
    .start = on_start,
    .send = on_send,
    .history = on_history,
    .instance = on_instance,
    .list = on_list,
    .value = on_value,
    .outstanding = on_outstanding,
    .mark = on_mark,
    .reset = on_reset,
    .remove = on_remove,
    .stats = on_stats,
};
