/* Calls: a request of a client, from the check of its options to the end of its future and its stream.
 *
 * A fetch collects the body as it is received, so that the peer's window stays open, in the block that becomes its
 * value. An open gives its exchange to the user, as a handle of the region, and does not read the body itself. */
#define _POSIX_C_SOURCE 200809L
#include "http/client.h"

#include "base/alloc.h"
#include "base/opts.h"
#include "base/text.h"

enum { ARENA_CHUNK = 2048, BODY_LEAST = 4096, BODY_TRUSTED = 1024 * 1024 };

/* ---- the end -------------------------------------------------------------------------------------------------- */

static void reject(ebb__call *c, ebb_future **f, ebb_status st) {
    ebb_future *of = *f;
    *f = NULL;
    if (of != NULL) ebb__reject(c->x.loop, of, st);
}

static void end_futures(ebb__call *c, ebb_status st) {
    reject(c, &c->future, st);
    reject(c, &c->answered, st);
}

static void call_free(ebb__call *c) {
    ebb_allocator a = c->x.arena.allocator;
    if (c->handle != NULL) ebb__handle_free(c->handle);
    if (c->answer != NULL) ebb__block_free(c->answer);
    ebb__free(&a, c->x.body, c->x.body_room);
    ebb__free(&a, c->x.whole, c->x.whole_room);
    ebb__arena_free(&c->x.arena);
    ebb__free(&a, c, sizeof *c);
}

bool ebb__call_is_given(const ebb__call *c) {
    return c->handle != NULL && c->handle->state == EBB__HANDLE_OPEN && c->future == NULL;
}

/* The user keeps the exchange. */
static void lose(ebb__call *c, ebb_status st) {
    ebb_http *x = &c->x;
    reject(c, &c->answered, st);
    if (x->conn != NULL) {
        ebb__exchange_in_end(x, st);
        x->conn->proto->reset(x, EBB__CANCEL);
        return;
    }
    if (c->where != NULL) ebb__origin_remove(c);
    c->origin = NULL;
    if (!ebb__exchange_is_gone(x)) ebb__exchange_gone(x, st, EBB_CANCEL_DISCONNECT, "");
}

/* Gives up a call in any state. A call in flight is freed with the end of its stream. */
static void give_up(ebb__call *c, ebb_status st) {
    end_futures(c, st);
    if (c->x.conn != NULL) {
        if (c->handle != NULL) ebb__exchange_end_waits(&c->x, st);
        c->x.conn->proto->reset(&c->x, EBB__CANCEL);
        return;
    }
    if (c->where != NULL) ebb__origin_remove(c);
    c->origin = NULL;
    if (ebb__exchange_is_gone(&c->x)) call_free(c);
    else ebb__exchange_gone(&c->x, st, EBB_CANCEL_USER, ""); /* ends reads and writes, and frees the call */
}

void ebb__call_fail(ebb__call *c, ebb_status st) {
    if (ebb__call_is_given(c)) {
        lose(c, st);
        return;
    }
    end_futures(c, st);
    if (c->handle != NULL) ebb__handle_close(c->handle);
    else give_up(c, st);
}

/* The handle of an exchange is closed: by its user, with the region, or because nobody took the value. */
static void exchange_stop(void *ctx) {
    give_up(ctx, EBB_ERR_CLOSED);
}

static void call_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    (void)cx;
    (void)f;
    ebb__call_fail(arg, EBB_CANCELLED);
}

static const ebb_operation fetch_op = {"http fetch", call_cancel, NULL};
static const ebb_operation open_op = {"http open", call_cancel, NULL};

void ebb__client_gone(ebb_http *x, ebb_status st) {
    ebb__call *c = x->call;
    ebb__origin *o = c->origin;
    ebb__client_conn *k = c->client_conn;
    bool given = ebb__call_is_given(c);
    c->origin = NULL;
    c->client_conn = NULL;
    end_futures(c, st == EBB_OK ? EBB_ERR_HTTP_RESET : st);
    if (!given) call_free(c); /* else the user may still read what was received */
    if (k != NULL) ebb__origin_left(o, k);
}

/* ---- the value of a fetch ------------------------------------------------------------------------------------- */

static const ebb_type response_type = {"http response", 0, NULL, ebb__block_free, 0};

const ebb_http_response *ebb_http_response_of(const ebb_value *v) {
    return v->type == &response_type ? v->as.p : NULL;
}

const char *ebb_http_response_header(const ebb_http_response *r, const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; i < r->headers_n; i++) {
        const ebb_http_field *f = &r->headers[i];
        if (ebb__same_name(f->name, strlen(f->name), name, n)) return f->value;
    }
    return NULL;
}

static size_t head_size(const ebb__fields *f) {
    size_t n = sizeof(ebb_http_response) + f->n * sizeof(ebb_http_field);
    for (uint32_t i = 0; i < f->n; i++) n += f->at[i].name_n + f->at[i].value_n + 2;
    return n;
}

static char *put_text(char *at, const char *from, size_t n, const char **where) {
    *where = at;
    memcpy(at, from, n);
    at[n] = 0;
    return at + n + 1;
}

/* The head is written last: the block may move until then. */
static void put_head(ebb__call *c) {
    const ebb__fields *f = &c->x.fields;
    ebb_http_response *r = (ebb_http_response *)(void *)c->answer;
    ebb_http_field *fields = (ebb_http_field *)(r + 1);
    char *at = (char *)(fields + f->n), *body = c->answer + c->head_n;
    for (uint32_t i = 0; i < f->n; i++) {
        at = put_text(at, f->at[i].name, f->at[i].name_n, &fields[i].name);
        at = put_text(at, f->at[i].value, f->at[i].value_n, &fields[i].value);
    }
    body[c->body_n] = 0;
    *r = (ebb_http_response){c->x.status, fields, f->n, body, c->body_n};
}

static ebb_status make_room(ebb__call *c, size_t body_n) {
    if (c->answer != NULL && body_n <= c->body_room) return EBB_OK;
    size_t room = c->body_room;
    while (room < body_n) room = room == 0 ? BODY_LEAST : room * 2;
    char *at = ebb__block_new(&c->x.arena.allocator, c->head_n + room + 1);
    if (at == NULL) return EBB_ERR_NOMEM;
    if (c->answer != NULL) {
        memcpy(at + c->head_n, c->answer + c->head_n, c->body_n);
        ebb__block_free(c->answer);
    }
    c->answer = at;
    c->body_room = room;
    return EBB_OK;
}

/* An announced length is trusted up to a bound, and allocated at once. */
static ebb_status fetch_head(ebb__call *c) {
    uint64_t n;
    const ebb__field *f = ebb__fields_find(&c->x.fields, "content-length", 14);
    c->head_n = head_size(&c->x.fields);
    if (f == NULL || c->x.head || !ebb__parse_u64(f->value, f->value_n, &n)) return EBB_OK;
    if (n > c->body_most) return EBB_ERR_LIMIT;
    c->body_room = n < BODY_TRUSTED ? (size_t)n : BODY_TRUSTED;
    return make_room(c, c->body_room);
}

static ebb_status fetch_more(ebb__call *c) {
    size_t n = c->x.body_n;
    if (n == 0) return EBB_OK;
    if (c->body_n + n > c->body_most) return EBB_ERR_LIMIT;
    ebb_status st = make_room(c, c->body_n + n);
    if (st != EBB_OK) return st;
    c->body_n += ebb__exchange_read(&c->x, (uint8_t *)c->answer + c->head_n + c->body_n, n);
    return EBB_OK;
}

/* The response is complete. The rest of a request that the peer has not waited for is not sent. */
static ebb_status fetch_end(ebb__call *c) {
    ebb_http *x = &c->x;
    ebb_status st = make_room(c, c->body_n);
    if (st != EBB_OK) return st;
    put_head(c);
    ebb_future *f = c->future;
    void *answer = c->answer;
    bool unsent = x->out != EBB__OUT_ENDED || x->from_n > 0;
    c->future = NULL;
    c->answer = NULL;
    x->from_n = 0;
    if (unsent && !ebb__exchange_is_gone(x)) x->conn->proto->reset(x, EBB__CANCEL);
    (void)ebb__settle(x->loop, f, ebb_value_owned(&response_type, answer));
    return EBB_OK;
}

/* ---- receiving ------------------------------------------------------------------------------------------------ */

/* The value belongs to the user: disposing of it closes the exchange. */
static void give(ebb__call *c) {
    ebb_future *f = c->future;
    c->future = NULL;
    (void)ebb__settle(c->x.loop, f, ebb__handle_value(c->handle));
}

/* The body belonged to the caller until now: the unsent rest is copied. */
static ebb_status keep_rest(ebb_http *x) {
    if (x->from_n == 0) return EBB_OK;
    uint8_t *at = ebb__arena_alloc(&x->arena, x->from_n);
    if (at == NULL) return EBB_ERR_NOMEM;
    x->from = memcpy(at, x->from, x->from_n);
    return EBB_OK;
}

static ebb_status answered(ebb__call *c) {
    if (c->handle == NULL) return fetch_head(c);
    if (c->future == NULL) return EBB_OK;
    return ebb__is_wanted(c->future) ? keep_rest(&c->x) : EBB_CANCELLED;
}

void ebb__client_answered(ebb_http *x) {
    ebb__call *c = x->call;
    if (c->handle == NULL && c->future == NULL) return;
    /* What is read is handled before timers are, so a server that ends at the same deadline could be first. */
    bool late = ebb__loop_now(x->loop) >= c->limit;
    ebb_status st = late ? EBB_TIMEOUT : x->too_large ? EBB_ERR_LIMIT : ebb__call_redirect(c);
    if (st == EBB_OK && c->redirected) return;
    if (st == EBB_OK) st = answered(c);
    if (st != EBB_OK) {
        ebb__call_fail(c, st);
        return;
    }
    ebb_future *f = c->answered;
    c->answered = NULL;
    if (f != NULL) (void)ebb__settle(x->loop, f, ebb_value_none());
    if (c->handle != NULL && c->future != NULL) give(c);
}

/* A fetch that has failed drops the bytes that are still received. */
void ebb__client_body(ebb_http *x) {
    ebb__call *c = x->call;
    if (c->redirected) {
        ebb__call_drop_body(c);
        return;
    }
    if (c->handle != NULL || c->future == NULL) return;
    ebb_status st = fetch_more(c);
    if (st == EBB_OK && x->in == EBB__IN_ENDED)
        st = x->in_status == EBB_ERR_EOF ? fetch_end(c) : x->in_status;
    if (st == EBB_OK) return;
    if (ebb__exchange_is_gone(x)) reject(c, &c->future, st);
    else ebb__call_fail(c, st);
}

bool ebb__client_wants(const ebb_http *x) {
    const ebb__call *c = x->call;
    return c->future != NULL ? ebb__is_wanted(c->future) : c->handle != NULL;
}

/* ---- the start ------------------------------------------------------------------------------------------------ */

/* Sends the time that is left, for the region of the server. */
static ebb_status add_deadline(ebb__call *c) {
    static const char name[] = "ebb-deadline-ms";
    uint64_t now = ebb__now(c->x.loop->rt);
    char text[24];
    ebb__text t = ebb__text_in(text, sizeof text);
    if (c->deadline == EBB_FOREVER) return EBB_OK;
    uint64_t left = c->deadline > now ? c->deadline - now : 1;
    ebb__text_u64(&t, left / EBB_MS + (left % EBB_MS != 0));
    ebb__fields_remove(&c->x.out_fields, name, sizeof name - 1);
    return ebb__fields_add(&c->x.out_fields, &c->x.arena, name, sizeof name - 1, text, t.n);
}

static ebb_status send_head(ebb_http *x, ebb__conn *conn) {
    ebb__exchange_link(x, conn);
    x->version = (uint8_t)conn->proto->version;
    x->began = ebb__loop_now(x->loop);
    x->call->taken = conn->taken;
    ebb_status st = conn->proto->head(x);
    if (st == EBB_OK) {
        ebb__exchange_more(x);
        return EBB_OK;
    }
    ebb__exchange_unlink(x);
    return st;
}

void ebb__call_start(ebb__call *c, ebb__client_conn *k) {
    ebb_status st = add_deadline(c);
    if (st == EBB_OK) st = send_head(&c->x, &k->conn);
    if (st != EBB_OK) {
        ebb__call_fail(c, st);
        return;
    }
    c->client_conn = k;
    if (c->streams && c->future != NULL) give(c);
}

/* ---- the options of a call ------------------------------------------------------------------------------------ */

static bool is_length(const ebb_http_field *f) {
    return ebb__same_name(f->name, strlen(f->name), "content-length", 14);
}

/* Of the fields that we set, a caller may set only the length of a streamed body, which we can't know. */
static bool is_right(const ebb_http_field *f, bool streams) {
    uint64_t length;
    if (f->name == NULL || f->value == NULL) return false;
    size_t n = strlen(f->name), value_n = strlen(f->value);
    if (!ebb__is_token(f->name, n) || !ebb__is_field_value(f->value, value_n)) return false;
    if (streams && is_length(f)) return ebb__parse_u64(f->value, value_n, &length);
    return !ebb__field_is_ours(f->name, n);
}

static ebb_status check_fields(const ebb_http_call *call) {
    if (call->headers == NULL && call->headers_n > 0) return EBB_ERR_INVALID;
    for (size_t i = 0; i < call->headers_n; i++) {
        if (!is_right(&call->headers[i], call->streams)) return EBB_ERR_INVALID;
    }
    return EBB_OK;
}

static ebb_status check(const ebb_http_call *call, bool opens, ebb__url *url) {
    if (call->method != NULL && !ebb__is_token(call->method, strlen(call->method))) return EBB_ERR_INVALID;
    if (call->body == NULL && call->body_n > 0) return EBB_ERR_INVALID;
    if (call->streams && (!opens || call->body_n > 0)) return EBB_ERR_INVALID;
    if (!ebb__url_parse(call->url, url)) return EBB_ERR_INVALID;
    return check_fields(call);
}

/* The deadline of the region, or of the call if that is earlier. The deadline of a cancelled region is the end of its
 * cleanup, and does not count. */
static uint64_t deadline_of(ebb_cx *cx, const ebb_http_call *call) {
    const ebb__region *r = ebb__region_of(cx);
    uint64_t at = call->deadline != 0 ? call->deadline : EBB_FOREVER;
    return ebb__region_request(r) == 0 && ebb__region_deadline(r) < at ? ebb__region_deadline(r) : at;
}

const char *ebb__call_copy(ebb_http *x, const char *from, size_t n) {
    char *at = ebb__arena_alloc(&x->arena, n + 1);
    if (at == NULL) return NULL;
    memcpy(at, from, n);
    at[n] = 0;
    return at;
}

static ebb_status fill_fields(ebb_http *x, const ebb_http_call *call) {
    ebb_status st = EBB_OK;
    for (size_t i = 0; i < call->headers_n && st == EBB_OK; i++) {
        const ebb_http_field *f = &call->headers[i];
        size_t name_n = strlen(f->name), value_n = strlen(f->value);
        if (is_length(f)) x->out_sized = ebb__parse_u64(f->value, value_n, &x->out_size);
        else st = ebb__fields_add(&x->out_fields, &x->arena, f->name, name_n, f->value, value_n);
    }
    return st;
}

/* A query without a path belongs to "/". */
static const char *copy_path(ebb_http *x, const ebb__url *url) {
    size_t root = url->path[0] == '?' ? 1 : 0;
    char *at = ebb__arena_alloc(&x->arena, root + url->path_n + 1);
    if (at == NULL) return NULL;
    at[0] = '/';
    memcpy(at + root, url->path, url->path_n);
    at[root + url->path_n] = 0;
    x->path_n = (uint32_t)(root + url->path_n);
    return at;
}

static ebb_status fill_head(ebb_http *x, const ebb_http_call *call, const ebb__url *url) {
    const char *method = call->method != NULL ? call->method : "GET";
    x->method = ebb__call_copy(x, method, strlen(method));
    x->path = copy_path(x, url);
    x->authority = ebb__call_copy(x, url->authority, url->authority_n);
    if (x->method == NULL || x->path == NULL || x->authority == NULL) return EBB_ERR_NOMEM;
    x->head = strcmp(method, "HEAD") == 0;
    return fill_fields(x, call);
}

/* Requests of these methods have a length even if the body is empty: RFC 9110, section 8.6. */
static bool expects_body(const char *method) {
    return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0;
}

void ebb__call_set_body(ebb__call *c) {
    ebb_http *x = &c->x;
    if (c->streams) return;
    x->from = c->body;
    x->from_n = x->out_size = c->body_size;
    x->out_sized = c->body_size > 0 || expects_body(x->method);
}

static ebb__call *call_new(ebb_http_client *client) {
    ebb__call *c = ebb__alloc(&client->allocator, sizeof *c);
    if (c == NULL) return NULL;
    memset(c, 0, sizeof *c);
    ebb__arena_init(&c->x.arena, client->allocator, ARENA_CHUNK);
    ebb__exchange_init(&c->x);
    c->x.loop = client->loop;
    c->x.client = true;
    c->x.call = c;
    c->body_most = client->body_bytes;
    return c;
}

static ebb_status call_fill(ebb__call *c, ebb_cx *cx, const ebb_http_call *call, const ebb__url *url) {
    ebb_status st = fill_head(&c->x, call, url);
    if (st == EBB_OK) st = ebb__call_give_trace(c, cx);
    if (st != EBB_OK) return st;
    c->streams = call->streams;
    c->body = call->body;
    c->body_size = call->body_n;
    ebb__out_step(&c->x, c->streams ? EBB__OUT_STARTS : EBB__OUT_ENDS);
    ebb__call_set_body(c);
    c->redirects = call->redirects;
    c->follows = call->redirects > 0 && !call->streams;
    c->deadline = deadline_of(cx, call);
    c->limit = call->deadline != 0 ? call->deadline : EBB_FOREVER;
    return c->deadline > ebb_now(cx) ? EBB_OK : EBB_TIMEOUT;
}

static ebb_status call_open(ebb__call *c, ebb_cx *cx, const char *site) {
    ebb_status st;
    c->handle = ebb__handle_new(c->x.loop, ebb_cx_region(cx), EBB__HANDLE_OP, site, &st);
    if (c->handle == NULL) return st;
    c->handle->as.op = (ebb__handle_op){"http exchange", exchange_stop, c, NULL};
    return EBB_OK;
}

/* The last step that may fail; after it the future owns the call. NULL: *failed is what to return. */
static ebb_future *call_begin(ebb__call *c, ebb_cx *cx, ebb__origin *o, bool opens, const char *site,
                              ebb_future **failed) {
    ebb_status st = opens ? call_open(c, cx, site) : EBB_OK;
    if (st != EBB_OK) {
        *failed = ebb__loop_failed(cx, st, site);
        return NULL;
    }
    c->future = ebb__begin(c->x.loop, cx, opens ? &open_op : &fetch_op, c, site, failed);
    c->origin = o;
    return c->future;
}

static ebb_status client_check(const ebb_cx *cx, const ebb_http_client *client) {
    ebb_loop *l;
    ebb_status st = client == NULL ? EBB_ERR_INVALID : ebb__loop_of(cx, &l);
    if (st != EBB_OK) return st;
    if (l != client->loop) return EBB_ERR_FOREIGN;
    return client->stopped ? EBB_ERR_CLOSED : EBB_OK;
}

static ebb_future *within(ebb_cx *cx, ebb_future *f, uint64_t deadline, const char *site) {
    uint64_t left = deadline - ebb_now(cx);
    return deadline == 0 || left > INT64_MAX ? f : ebb_within_site(cx, f, left, site);
}

static ebb_future *call(ebb_cx *cx, ebb_http_client *client, const ebb_http_call *given, bool opens,
                        const char *site) {
    ebb_http_call whole, *what = &whole;
    ebb__url url;
    ebb_future *f = NULL;
    ebb_status st = client_check(cx, client);
    if (st == EBB_OK) st = ebb__admit_operation(cx);
    if (st == EBB_OK) st = EBB__OPTS_COPY(what, given);
    if (st == EBB_OK) st = check(what, opens, &url);
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    ebb__call *c = call_new(client);
    st = c == NULL ? EBB_ERR_NOMEM : call_fill(c, cx, what, &url);
    ebb__origin *o = st == EBB_OK ? ebb__origin_of(client, &url) : NULL;
    if (st == EBB_OK && o == NULL) st = EBB_ERR_NOMEM;
    if (st == EBB_OK && call_begin(c, cx, o, opens, site, &f) != NULL) {
        f = c->future;
        ebb__origin_add(o, c);
        return within(cx, f, what->deadline, site);
    }
    if (o != NULL) ebb__origin_release(o);
    if (c != NULL) call_free(c);
    return f != NULL ? f : ebb__loop_failed(cx, st, site);
}

ebb_future *ebb_http_fetch_site(ebb_cx *cx, ebb_http_client *c, const ebb_http_call *what, const char *site) {
    return call(cx, c, what, false, site);
}

ebb_future *ebb_http_get_site(ebb_cx *cx, ebb_http_client *c, const char *url, const char *site) {
    return call(cx, c, &(ebb_http_call){.url = url}, false, site);
}

/* ---- functions for an opened exchange ------------------------------------------------------------------------- */

ebb_future *ebb_http_open_site(ebb_cx *cx, ebb_http_client *c, const ebb_http_call *what, const char *site) {
    return call(cx, c, what, true, site);
}

ebb_http *ebb_http_of(ebb_cx *cx, ebb_value v) {
    ebb__handle *h;
    if (ebb__handle_find(cx, v.as.u, EBB__HANDLE_OP, EBB__HANDLE_OP, &h) != EBB_OK) return NULL;
    if (h->as.op.stop != exchange_stop) return NULL;
    ebb__call *c = h->as.op.ctx;
    return &c->x;
}

static void answered_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    ebb__call *c = arg;
    (void)cx;
    (void)f;
    reject(c, &c->answered, EBB_CANCELLED);
}

static const ebb_operation answered_op = {"http head", answered_cancel, NULL};

ebb_future *ebb_http_response_head_site(ebb_cx *cx, ebb_http *x, const char *site) {
    ebb__call *c = x != NULL ? x->call : NULL;
    ebb_future *f;
    ebb_status st = c == NULL ? EBB_ERR_INVALID : EBB_OK;
    if (st == EBB_OK && x->in != EBB__IN_HEAD && x->status != 0)
        return ebb_future_ready_site(cx, ebb_value_none(), site);
    if (st == EBB_OK && ebb__exchange_is_gone(x)) st = EBB_ERR_CLOSED;
    if (st == EBB_OK && c->answered != NULL) st = EBB_ERR_BUSY;
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    c->answered = ebb__begin(x->loop, cx, &answered_op, c, site, &f);
    return c->answered != NULL ? c->answered : f;
}

void ebb_http_close(ebb_cx *cx, ebb_http *x) {
    (void)cx;
    if (x != NULL && x->call != NULL) ebb__handle_close(x->call->handle);
}
