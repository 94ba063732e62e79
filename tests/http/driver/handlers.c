/* Handlers that do random things: fibers, poll functions, functions that return futures. The dice of a handler follow
 * from the id of its request alone. */
#include "tests/http/driver/driver.h"

enum { PIECE = 9000, LATE = 50 };

/* ---- one handler -------------------------------------------------------------------------------------------- */

typedef struct job {
    EBB_TASK_STATE;
    world *w;
    ebb_http *x;
    request *r;
    dice d;
    size_t at, n;   /* of the response */
    size_t read;    /* of the body of the request */
    size_t piece;   /* bytes that these are */
    uint8_t *bytes; /* of the exchange */
    ebb_future *wait;
    ebb_value got;
    bool left; /* it returns while bytes of its stack may be written: it may not wait any more */
} job;

static request *request_of(world *w, const ebb_http *x) {
    const char *text = ebb_http_param(x, "id");
    uint32_t id = text == NULL ? UINT32_MAX : (uint32_t)strtoul(text, NULL, 10);
    return id < w->requests_n ? &w->requests[id] : NULL;
}

static job *begin(ebb_http *x, world *w) {
    job *j = ebb_http_state(x, sizeof *j);
    if (j == NULL || j->x != NULL) return j;
    j->r = request_of(w, x);
    if (j->r == NULL) return NULL;
    j->x = x;
    j->w = w;
    j->d = dice_of(w, 100000 + j->r->id);
    j->n = size_of_body(&j->d);
    if (j->r->runs++ == 0) j->r->body_n = (uint32_t)j->n;
    must(w, j->r->runs == 1 || j->r->raw, "the handler of a request runs once", j->r->id);
    driver_tally.handlers++;
    return j;
}

/* Whoever is cancelled can't write. */
static void cancelled(ebb_cx *cx, job *j) {
    bool was = j->r->ended;
    ebb_status st = ebb_http_reply(cx, j->x, 200, NULL, "late", 4);
    must(j->w, st == EBB_ERR_CLOSED || (was && st == EBB_ERR_BUSY), "reply after a cancel", (uint64_t)-st);
    st = ebb_http_start(cx, j->x, 200);
    must(j->w, st == EBB_ERR_CLOSED || (was && st == EBB_ERR_BUSY), "start after a cancel", (uint64_t)-st);
    ebb_future *late = ebb_http_write(cx, j->x, "late", 4);
    st = ebb_future_status_of(late);
    must(j->w, st == EBB_ERR_CLOSED || st == EBB_ERR_NOMEM || st == EBB_CANCELLED, "write after a cancel",
         (uint64_t)-st);
    ebb_future_drop(late);
    st = ebb_http_end(cx, j->x);
    must(j->w, st == EBB_ERR_CLOSED || (was && st == EBB_ERR_BUSY), "end after a cancel", (uint64_t)-st);
    j->r->cancelled = true;
    driver_tally.cancelled++;
}

static bool region_is_cancelled(ebb_cx *cx) {
    ebb_region_cause chain[1];
    uint32_t n = 0;
    bool truncated;
    return ebb_region_causes(cx, ebb_cx_region(cx), chain, 1, &n, &truncated) == EBB_OK && n > 0 &&
           chain[0].reason.kind != EBB_CANCEL_NONE;
}

/* A body that the handler leaves short. */
static ebb_status over(ebb_cx *cx, job *j, ebb_status st) {
    talk("handler of %u returns %d, at %zu of %zu\n", j->r->id, (int)st, j->at, j->n);
    if (st != EBB_OK && !j->r->ended && j->at < j->n) j->r->cut = true;
    if (st == EBB_CANCELLED && region_is_cancelled(cx)) cancelled(cx, j);
    return st;
}

/* ---- parts of fibers ---------------------------------------------------------------------------------------- */

static ebb_status read_some(ebb_cx *cx, job *j) {
    for (uint32_t left = roll(&j->d, 3) == 0 ? roll(&j->d, 5) : UINT32_MAX; left > 0; left--) {
        size_t room = size_of_piece(&j->d);
        uint8_t *bytes = grab(j->w, room);
        ebb_value v = ebb_value_none();
        ebb_future *f = ebb_http_read(cx, j->x, bytes, room);
        if (chance(&j->d, 10) && ebb_future_cancel(f, EBB_CANCEL_USER)) {
            release(bytes);
            ebb_future_drop(f);
            continue;
        }
        ebb_status st = ebb_await(cx, f, &v);
        if (st == EBB_OK && !j->r->raw)
            must(j->w, fits(bytes, j->r->id, 1, j->read, v.as.u), "bytes of a request", j->read);
        if (st == EBB_OK) j->read += v.as.u;
        release(bytes);
        if (st == EBB_ERR_EOF && !j->r->raw) must(j->w, j->read == j->r->sent_n, "a whole request", j->read);
        if (st != EBB_OK) return st == EBB_ERR_EOF ? EBB_OK : st;
        if (chance(&j->d, 20)) (void)nap(cx, roll(&j->d, 2000) * EBB_US);
    }
    return EBB_OK;
}

static ebb_status read_whole(ebb_cx *cx, job *j) {
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_http_body(cx, j->x, chance(&j->d, 4) ? 1000 : 1 << 20), &v);
    if (st != EBB_OK) return st;
    const ebb_http_bytes *b = ebb_http_body_of(&v);
    if (!j->r->raw) {
        must(j->w, b->n + j->read == j->r->sent_n, "a whole body of a request", b->n);
        must(j->w, fits(b->at, j->r->id, 1, j->read, b->n), "bytes of a whole request", b->n);
    }
    j->read += b->n;
    return EBB_OK;
}

static ebb_status sibling(ebb_cx *cx, void *arg) {
    dice d = {(uint64_t)(uintptr_t)arg};
    ebb_status st = nap(cx, roll(&d, 3000) * EBB_US);
    return chance(&d, 10) ? EBB_FAILED : st;
}

static void spawn_siblings(ebb_cx *cx, job *j) {
    for (uint32_t n = roll(&j->d, 3); n > 0; n--)
        (void)ebb_fiber_spawn(cx, ebb_cx_region(cx), sibling, (void *)(uintptr_t)(1 + roll(&j->d, 1 << 30)));
}

/* Asks its own server. */
static void call_back(ebb_cx *cx, job *j) {
    request *r = request_new(j->w);
    char url[96];
    ebb_value v;
    if (r == NULL || j->w->inner == NULL) return; /* its region may have ended before this one */
    snprintf(url, sizeof url, "http://127.0.0.1:%u/u/%u", j->w->ports[0], r->id);
    ebb_future *f = ebb_within(cx, ebb_http_get(cx, j->w->inner, url), 20 * EBB_MS);
    if (ebb_await(cx, f, &v) == EBB_OK) ebb_value_discard(cx, v);
}

/* The next piece, on the heap, on the stack or of the exchange; it is awaited. */
static ebb_status write_piece(ebb_cx *cx, job *j) {
    uint8_t here[2000];
    size_t n = size_of_piece(&j->d);
    if (n > j->n - j->at) n = j->n - j->at;
    bool on_stack = n <= sizeof here && chance(&j->d, 2);
    uint8_t *bytes = on_stack ? here : grab(j->w, n + 1);
    fill(bytes, j->r->id, 0, j->at, n);
    talk("handler of %u writes %zu at %zu%s\n", j->r->id, n, j->at, on_stack ? " of its stack" : "");
    ebb_status st = ebb_await(cx, ebb_http_write(cx, j->x, bytes, n), NULL);
    memset(bytes, 'X', n);
    if (!on_stack) release(bytes);
    if (st == EBB_OK) j->at += n;
    return st;
}

/* Returns while the last piece is still being written. */
static ebb_status leave_the_rest(ebb_cx *cx, job *j) {
    size_t n = j->n - j->at;
    bool on_stack = n <= PIECE && chance(&j->d, 2);
    /* Of the stack itself: AddressSanitizer keeps plain locals elsewhere, where the server does not find them. */
    uint8_t *bytes = on_stack ? __builtin_alloca(n + 1) : ebb_http_alloc(j->x, n + 1);
    if (bytes == NULL) return EBB_ERR_NOMEM;
    fill(bytes, j->r->id, 0, j->at, n);
    ebb_future *f = ebb_http_write(cx, j->x, bytes, n);
    ebb_status st = ebb_future_status_of(f);
    ebb_future_drop(f);
    j->left = true;
    talk("handler of %u leaves %zu at %zu%s: %d\n", j->r->id, n, j->at, on_stack ? " of its stack" : "",
         (int)st);
    if (st == EBB_PENDING && on_stack) j->r->cut = true;
    return st == EBB_PENDING ? EBB_OK : st;
}

static ebb_status give_up(ebb_cx *cx, job *j) {
    switch (roll(&j->d, 4)) {
    case 0: ebb_region_cancel(cx, ebb_cx_region(cx), EBB_CANCEL_USER, "by itself"); break;
    case 1: ebb_region_close(cx, ebb_cx_region(cx)); return EBB_OK;
    case 2:
        if (j->at < j->n) j->r->cut = true;
        return EBB_FAILED;
    default:
        if (j->at < j->n) j->r->cut = true;
        return EBB_FAULTED;
    }
    return ebb_checkpoint(cx);
}

static ebb_status write_all(ebb_cx *cx, job *j) {
    char text[24];
    ebb_status st = EBB_OK;
    snprintf(text, sizeof text, "%zu", j->n);
    if (chance(&j->d, 3)) st = ebb_http_set_header(j->x, "content-length", text);
    if (st == EBB_OK && chance(&j->d, 3)) st = ebb_http_set_trailer(j->x, "x-end", "end");
    if (st == EBB_OK && (j->n == 0 || chance(&j->d, 2))) st = ebb_http_start(cx, j->x, 200);
    bool masked = chance(&j->d, 6) && ebb_mask(cx) == EBB_OK;
    while (st == EBB_OK && j->at < j->n) {
        if (chance(&j->d, 15)) st = nap(cx, roll(&j->d, 2000) * EBB_US);
        if (st == EBB_OK && chance(&j->d, 25)) st = give_up(cx, j);
        if (st == EBB_OK && chance(&j->d, 12)) {
            st = leave_the_rest(cx, j);
            j->at = j->n;
        } else if (st == EBB_OK) st = write_piece(cx, j);
    }
    if (masked) (void)ebb_unmask(cx);
    if (st == EBB_OK && !j->r->cut && chance(&j->d, 2)) {
        st = ebb_http_end(cx, j->x);
        j->r->ended = st == EBB_OK;
    }
    return st;
}

static ebb_status send_events(ebb_cx *cx, job *j) {
    char text[600];
    ebb_status st = EBB_OK;
    j->r->events = true;
    for (uint32_t n = 1 + roll(&j->d, 20); st == EBB_OK && n > 0; n--) {
        size_t k = 1 + roll(&j->d, sizeof text - 1);
        memset(text, chance(&j->d, 5) ? '\n' : 'e', k);
        ebb_http_event e = {.data = text, .data_n = k, .id = "1", .event = chance(&j->d, 2) ? "tick" : NULL};
        st = ebb_await(cx, ebb_http_send_event(cx, j->x, &e), NULL);
        if (st == EBB_OK && chance(&j->d, 5)) st = nap(cx, roll(&j->d, 1000) * EBB_US);
    }
    return st;
}

static ebb_status reply_whole(ebb_cx *cx, job *j) {
    uint8_t *bytes = grab(j->w, j->n + 1);
    fill(bytes, j->r->id, 0, 0, j->n);
    ebb_status st = ebb_http_reply(cx, j->x, 200, "text/plain", bytes, j->n);
    release(bytes);
    j->at = j->n;
    if (st == EBB_OK) j->r->ended = true;
    return st;
}

static ebb_status redirect(ebb_cx *cx, job *j) {
    static const int codes[] = {301, 302, 303, 307, 308};
    request *r = request_new(j->w);
    char to[64];
    if (r == NULL) return EBB_OK;
    r->sent_n = UINT32_MAX; /* with a body or without: not known here */
    r->raw = true;
    snprintf(to, sizeof to, "/%c/%u", "fpu"[roll(&j->d, 3)], r -> id);
    ebb_status st = ebb_http_set_header(j->x, "location", to);
    return st == EBB_OK ? ebb_http_text(cx, j->x, codes[roll(&j->d, 5)], "there") : st;
}

/* The request's body comes back as it is received. */
static ebb_status echo(ebb_cx *cx, job *j) {
    size_t room = size_of_piece(&j->d);
    uint8_t *bytes = grab(j->w, room);
    ebb_value v;
    j->r->echo = j->r->cut = true;
    ebb_status st = ebb_http_start(cx, j->x, 200);
    while (st == EBB_OK) {
        st = ebb_await(cx, ebb_http_read(cx, j->x, bytes, room), &v);
        if (st != EBB_OK) break;
        must(j->w, fits(bytes, j->r->id, 1, j->read, v.as.u), "bytes to echo", j->read);
        j->read += v.as.u;
        st = ebb_await(cx, ebb_http_write(cx, j->x, bytes, v.as.u), NULL);
        memset(bytes, 'X', room);
    }
    release(bytes);
    if (st != EBB_ERR_EOF) return st;
    must(j->w, j->read == j->r->sent_n, "a whole request to echo", j->read);
    j->r->cut = false;
    j->r->body_n = (uint32_t)(j->at = j->n = j->read);
    return EBB_OK;
}

/* Passes the response of another request on, piece by piece. */
static ebb_status pass_on(ebb_cx *cx, job *j, ebb_http *from, request *r) {
    size_t room = size_of_piece(&j->d);
    uint8_t *bytes = grab(j->w, room);
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_http_response_head(cx, from), NULL);
    if (st == EBB_OK) st = ebb_http_start(cx, j->x, 201);
    while (st == EBB_OK) {
        st = ebb_await(cx, ebb_http_read(cx, from, bytes, room), &v);
        if (st != EBB_OK) break;
        if (ebb_http_status(from) == 200)
            must(j->w, answers(r, bytes, r->got_n, v.as.u), "bytes to pass on", r->got_n);
        r->got_n += (uint32_t)v.as.u;
        st = ebb_await(cx, ebb_http_write(cx, j->x, bytes, v.as.u), NULL);
    }
    release(bytes);
    r->whole = st == EBB_ERR_EOF && ebb_http_status(from) == 200;
    return st == EBB_ERR_EOF ? EBB_OK : st;
}

static ebb_status proxy(ebb_cx *cx, job *j) {
    request *r = request_new(j->w);
    char url[96];
    ebb_value v;
    j->r->events = true;
    if (r == NULL || j->w->inner == NULL) return EBB_OK;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/%c/%u", j->w->ports[0], "fpu"[roll(&j->d, 3)], r -> id);
    ebb_http_call call = {.url = url, .deadline = ebb_now(cx) + (1 + roll(&j->d, 200)) * EBB_MS};
    ebb_status st = ebb_await(cx, ebb_http_open(cx, j->w->inner, &call), &v);
    if (st != EBB_OK) return st;
    st = pass_on(cx, j, ebb_http_of(cx, v), r);
    ebb_value_discard(cx, v);
    return st;
}

static ebb_status answer(ebb_cx *cx, job *j) {
    switch (roll(&j->d, 12)) {
    case 0: return send_events(cx, j);
    case 1:
    case 2:
    case 3: return reply_whole(cx, j);
    case 4: return chance(&j->d, 2) ? EBB_OK : EBB_FAILED; /* 500 */
    case 5: return redirect(cx, j);
    default: return write_all(cx, j);
    }
}

/* Reads every text that the exchange has. */
static void look_at(const job *j) {
    const ebb_http *x = j->x;
    ebb_http_field f;
    size_t n = strlen(ebb_http_method(x)) + strlen(ebb_http_path(x)) + strlen(ebb_http_query(x)) +
               strlen(ebb_http_authority(x)) + strlen(ebb_http_peer(x)->ip);
    for (size_t i = 0; ebb_http_header_at(x, i, &f); i++) n += strlen(f.name) + strlen(f.value);
    for (size_t i = 0; ebb_http_trailer_at(x, i, &f); i++) n += strlen(f.name) + strlen(f.value);
    must(j->w, n > 0, "an exchange has texts", n);
    (void)ebb_http_has_body(x); /* one that was reset before its first byte has none */
}

static ebb_status by_fiber(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin(x, arg);
    ebb_status st = EBB_OK;
    if (j == NULL) return EBB_ERR_NOMEM;
    if (chance(&j->d, 3)) st = nap(cx, roll(&j->d, 3000) * EBB_US);
    if (st == EBB_OK && chance(&j->d, 2)) st = read_some(cx, j);
    if (st == EBB_OK && chance(&j->d, 3)) st = read_whole(cx, j);
    if (st == EBB_OK && chance(&j->d, 6)) spawn_siblings(cx, j);
    if (st == EBB_OK && chance(&j->d, 6)) call_back(cx, j);
    look_at(j);
    if (st == EBB_OK && j->read == 0 && !j->r->raw && chance(&j->d, 6)) st = echo(cx, j);
    else if (st == EBB_OK) st = chance(&j->d, 8) ? proxy(cx, j) : answer(cx, j);
    if (chance(&j->d, 4)) look_at(j);
    if (st == EBB_OK && !j->left && chance(&j->d, 5)) (void)nap(cx, roll(&j->d, 3000) * EBB_US);
    return over(cx, j, st);
}

/* ---- a poll function ---------------------------------------------------------------------------------------- */

static ebb_status poll_write(ebb_cx *cx, job *j) {
    if (j->piece == 0) j->piece = size_of_piece(&j->d);
    size_t n = 1 + roll(&j->d, (uint32_t)j->piece);
    if (n > j->n - j->at) n = j->n - j->at;
    if (j->bytes == NULL) j->bytes = ebb_http_alloc(j->x, j->piece);
    if (j->bytes == NULL) return EBB_ERR_NOMEM;
    fill(j->bytes, j->r->id, 0, j->at, n);
    j->at += n;
    j->wait = ebb_http_write(cx, j->x, j->bytes, n);
    return EBB_OK;
}

static ebb_status by_poll(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin(x, arg);
    ebb_status st;
    if (j == NULL) return EBB_ERR_NOMEM;
    EBB_BEGIN(j);
    if (chance(&j->d, 2)) {
        j->wait = ebb_http_body(cx, x, 1 << 20);
        EBB_AWAIT(j, st, ebb_await(cx, j->wait, &j->got));
        if (st != EBB_OK) return over(cx, j, st);
        if (!j->r->raw) must(j->w, ebb_http_body_of(&j->got)->n == j->r->sent_n, "a body, polled", j->r->id);
    }
    if (chance(&j->d, 3)) {
        j->wait = ebb_after(cx, roll(&j->d, 3000) * EBB_US);
        EBB_AWAIT(j, st, ebb_await(cx, j->wait, NULL));
        if (st != EBB_OK) return over(cx, j, st);
    }
    st = ebb_http_start(cx, x, 200);
    if (st != EBB_OK) return over(cx, j, st);
    while (j->at < j->n) {
        st = poll_write(cx, j);
        if (st != EBB_OK) return over(cx, j, st);
        st = ebb_future_status_of(j->wait);
        if (st == EBB_PENDING && j->at == j->n && chance(&j->d, 4))
            return EBB_OK; /* it is still being written */
        EBB_AWAIT(j, st, ebb_await(cx, j->wait, NULL));
        if (st != EBB_OK) return over(cx, j, st);
        if (chance(&j->d, 30)) return over(cx, j, j->at < j->n ? EBB_FAILED : EBB_OK);
    }
    EBB_END(j);
}

/* ---- futures ------------------------------------------------------------------------------------------------- */

static ebb_future *next_piece(ebb_cx *cx, ebb_value *v, void *arg) {
    job *j = arg;
    (void)v;
    if (j->at == j->n) {
        ebb_status st = ebb_http_end(cx, j->x);
        j->r->ended = st == EBB_OK;
        return st == EBB_OK ? ebb_future_ready(cx, ebb_value_none()) : ebb_future_failed(cx, st);
    }
    if (chance(&j->d, 30)) {
        j->r->cut = true;
        return chance(&j->d, 3) ? NULL : ebb_future_failed(cx, EBB_FAILED);
    }
    if (poll_write(cx, j) != EBB_OK) return ebb_future_failed(cx, EBB_ERR_NOMEM);
    return ebb_then(cx, j->wait, next_piece, j);
}

static ebb_future *took_body(ebb_cx *cx, ebb_value *v, void *arg) {
    job *j = arg;
    if (!j->r->raw) must(j->w, ebb_http_body_of(v)->n == j->r->sent_n, "a body of a future", j->r->id);
    return next_piece(cx, NULL, j);
}

static ebb_future *begin_answer(ebb_cx *cx, ebb_value *v, void *arg) {
    job *j = arg;
    ebb_status st = ebb_http_start(cx, j->x, 200);
    if (st != EBB_OK) return ebb_future_failed(cx, st);
    if (chance(&j->d, 2)) return next_piece(cx, v, j);
    return ebb_then(cx, ebb_http_body(cx, j->x, 1 << 20), took_body, j);
}

static ebb_future *by_future(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin(x, arg);
    if (j == NULL) return ebb_future_failed(cx, EBB_ERR_NOMEM);
    if (chance(&j->d, 20)) return ebb_future_failed(cx, EBB_FAILED);
    ebb_future *f = chance(&j->d, 3)
                        ? ebb_then(cx, ebb_after(cx, roll(&j->d, 2000) * EBB_US), begin_answer, j)
                        : begin_answer(cx, NULL, j);
    return chance(&j->d, 8) ? ebb_within(cx, f, roll(&j->d, 3000) * EBB_US) : f;
}

ebb_status add_routes(world *w, ebb_http_server *s) {
    ebb_status st = ebb_http_on(s, "*", "/f/:id", by_fiber, w);
    if (st == EBB_OK) st = ebb_http_on_poll(s, "*", "/p/:id", by_poll, w);
    if (st == EBB_OK) st = ebb_http_on_future(s, "*", "/u/:id", by_future, w);
    return st;
}
