/* Peers that speak byte by byte, to our servers and to our clients: frames that are right, frames that are not, and
 * ends at any place. */
#include "tests/http/driver/driver.h"

enum { ROOM = 70000, STREAMS = 16 };

typedef struct raw {
    world *w;
    dice d;
    ebb_stream s;
    uint8_t out[ROOM];
    size_t n;
    uint32_t next; /* stream id */
    uint32_t open[STREAMS];
} raw;

/* ---- frames --------------------------------------------------------------------------------------------------- */

static void put(raw *p, const void *bytes, size_t n) {
    if (n > ROOM - p->n) return;
    if (n > 0) memcpy(p->out + p->n, bytes, n);
    p->n += n;
}

static void put_u32(raw *p, uint32_t v) {
    const uint8_t b[] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    put(p, b, 4);
}

static void frame(raw *p, size_t n, uint8_t type, uint8_t flags, uint32_t stream) {
    const uint8_t b[] = {(uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, type, flags};
    put(p, b, 5);
    put_u32(p, stream);
}

static uint32_t a_stream(raw *p) {
    uint32_t id = p->open[roll(&p->d, STREAMS)];
    return id == 0 || chance(&p->d, 40) ? 1 + 2 * roll(&p->d, 20) : id;
}

/* A literal field that is not indexed. */
static size_t literal(uint8_t *at, const char *name, const char *value) {
    size_t n = strlen(name), k = strlen(value), i = 0;
    at[i++] = 0;
    at[i++] = (uint8_t)n;
    memcpy(at + i, name, n);
    i += n;
    at[i++] = (uint8_t)k;
    memcpy(at + i, value, k);
    return i + k;
}

static void put_request(raw *p) {
    uint8_t block[300];
    char path[64];
    request *r = request_new(p->w);
    if (r == NULL) return;
    r->raw = true;
    size_t n = 0;
    bool post = chance(&p->d, 2);
    snprintf(path, sizeof path, "/%c/%u", "fffpu"[roll(&p->d, 5)], r -> id);
    block[n++] = post ? 0x83 : 0x82;
    block[n++] = 0x86;
    n += literal(block + n, ":path", path);
    n += literal(block + n, ":authority", "127.0.0.1");
    if (chance(&p->d, 8)) n += literal(block + n, "ebb-deadline-ms", chance(&p->d, 2) ? "1" : "5");
    if (chance(&p->d, 8)) n += literal(block + n, "content-length", chance(&p->d, 2) ? "100" : "70000");
    if (chance(&p->d, 20)) n += literal(block + n, "Bad", "name");
    if (chance(&p->d, 20)) n += literal(block + n, "expect", "100-continue");
    uint8_t flags = (uint8_t)((post && !chance(&p->d, 4) ? 0 : 1) | 4);
    frame(p, n, 1, flags, p->next);
    put(p, block, n);
    p->open[roll(&p->d, STREAMS)] = p->next;
    p->next += 2;
}

static void put_data(raw *p, uint32_t stream) {
    static const uint8_t zeros[16384];
    size_t n = chance(&p->d, 3) ? roll(&p->d, 16384) : roll(&p->d, 100);
    frame(p, n, 0, chance(&p->d, 3) ? 1 : 0, stream);
    put(p, zeros, n);
}

static void put_settings(raw *p) {
    static const uint32_t windows[] = {0, 1, 100, 65535, 1 << 20, 0x7fffffff, 0x80000000u};
    frame(p, 6, 4, 0, 0);
    put(p, "\0\4", 2);
    put_u32(p, windows[roll(&p->d, 7)]);
}

static void put_update(raw *p, uint32_t stream) {
    frame(p, 4, 8, 0, chance(&p->d, 2) ? 0 : stream);
    put_u32(p, chance(&p->d, 20)   ? 0
               : chance(&p->d, 20) ? 0x7fffffff
                                   : 1 + roll(&p->d, chance(&p->d, 2) ? 10 : 60000));
}

static void put_noise(raw *p) {
    uint8_t bytes[64];
    size_t n = roll(&p->d, sizeof bytes);
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)roll(&p->d, 256);
    if (chance(&p->d, 2)) frame(p, n, (uint8_t)roll(&p->d, 12), (uint8_t)roll(&p->d, 64), a_stream(p));
    put(p, bytes, n);
}

static void put_something(raw *p) {
    switch (roll(&p->d, 16)) {
    case 0:
    case 1:
    case 2:
    case 3: put_request(p); break;
    case 4:
    case 5:
    case 6: put_data(p, a_stream(p)); break;
    case 7:
    case 8:
    case 9: put_update(p, a_stream(p)); break;
    case 10:
        frame(p, 4, 3, 0, a_stream(p));
        put_u32(p, roll(&p->d, 14));
        break;
    case 11: put_settings(p); break;
    case 12:
        frame(p, 8, 6, (uint8_t)roll(&p->d, 2), 0);
        put(p, "12345678", 8);
        break;
    case 13:
        if (!chance(&p->d, 4)) break;
        frame(p, 8, 7, 0, 0);
        put_u32(p, 0);
        put_u32(p, roll(&p->d, 3));
        break;
    case 14:
        frame(p, 5, 2, 0, a_stream(p));
        put(p, "\0\0\0\0\1", 5);
        break;
    default:
        if (chance(&p->d, 6)) put_noise(p);
    }
}

/* ---- HTTP/1 --------------------------------------------------------------------------------------------------- */

static void put_text(raw *p, const char *text) {
    put(p, text, strlen(text));
}

/* Of any size, now and then with more digits than it needs or with an extension. */
static void put_chunks(raw *p) {
    static const char zeros[9000];
    put_text(p, "transfer-encoding: chunked\r\n\r\n");
    for (uint32_t k = roll(&p->d, 5); k > 0; k--) {
        char line[48];
        size_t n = 1 + roll(&p->d, chance(&p->d, 2) ? sizeof zeros : 17);
        snprintf(line, sizeof line, chance(&p->d, 8) ? "%012zX;x=\"y\"\r\n" : "%zx\r\n", n);
        put_text(p, line);
        put(p, zeros, n);
        put_text(p, "\r\n");
    }
    put_text(p, chance(&p->d, 3) ? "000\r\nx-b: c\r\n\r\n" : "0\r\n\r\n");
}

static void put_request_1(raw *p) {
    char head[160];
    request *r = request_new(p->w);
    if (r == NULL) return;
    r->raw = true;
    uint32_t how = roll(&p->d, 6);
    snprintf(head, sizeof head, "%s /%c/%u HTTP/1.%d\r\nhost: a\r\n", how < 2 ? "GET" : "POST",
             "fffpu"[roll(&p->d, 5)], r -> id, chance(&p->d, 5) ? 0 : 1);
    put_text(p, head);
    if (chance(&p->d, 10)) put_text(p, "expect: 100-continue\r\n");
    if (chance(&p->d, 10)) put_text(p, "connection: close\r\n");
    if (chance(&p->d, 20)) put_text(p, "bad header\r\n");
    if (how == 2) put_text(p, "content-length: 5\r\n\r\nhello");
    else if (how == 3)
        put_text(p, "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n3;x=y\r\nabc\r\n0\r\nx-a: b\r\n\r\n");
    else if (how == 4) put_text(p, "content-length: 50000\r\n\r\nnot all of it");
    else if (how == 5) put_chunks(p);
    else put_text(p, "\r\n");
}

/* ---- one peer --------------------------------------------------------------------------------------------------- */

static ebb_status say(ebb_cx *cx, raw *p) {
    size_t n = chance(&p->d, 12) && p->n > 0 ? roll(&p->d, (uint32_t)p->n) : p->n;
    ebb_future *f = ebb_within(cx, ebb_stream_write(cx, p->s, p->out, n), 5 * EBB_MS);
    ebb_status st = n > 0 ? ebb_await(cx, f, NULL) : EBB_OK;
    if (n == 0) (void)ebb_future_cancel(f, EBB_CANCEL_USER), ebb_future_drop(f);
    p->n = 0;
    return st;
}

static ebb_status hear(ebb_cx *cx, raw *p) {
    static uint8_t into[20000];
    ebb_future *f = ebb_stream_read(cx, p->s, into, 1 + roll(&p->d, sizeof into));
    ebb_status st = ebb_await(cx, ebb_within(cx, f, roll(&p->d, 2000) * EBB_US), NULL);
    return st == EBB_TIMEOUT ? EBB_OK : st;
}

static void speak(ebb_cx *cx, raw *p, bool h1) {
    ebb_status st = EBB_OK;
    for (uint32_t n = 2 + roll(&p->d, 20); st == EBB_OK && n > 0; n--) {
        for (uint32_t k = roll(&p->d, 6); k > 0; k--) {
            if (h1) put_request_1(p);
            else put_something(p);
        }
        st = say(cx, p);
        if (st == EBB_OK && chance(&p->d, 2)) st = hear(cx, p);
        if (st == EBB_OK && chance(&p->d, 25)) st = ebb_await(cx, ebb_stream_shutdown(cx, p->s), NULL);
        if (st == EBB_OK && chance(&p->d, 6)) st = nap(cx, roll(&p->d, 3000) * EBB_US);
    }
    while (st == EBB_OK && chance(&p->d, 2)) st = hear(cx, p);
    (void)ebb_stream_close(cx, p->s);
}

ebb_status raw_main(ebb_cx *cx, void *arg) {
    actor *a = arg;
    raw *p = grab(a->world, sizeof *p);
    ebb_value v;
    *p = (raw){.w = a->world, .d = dice_of(a->world, a->number), .next = 1};
    ebb_address to = {"127.0.0.1", a->world->ports[chance(&p->d, 8) && a->world->servers[1] != NULL]};
    if (ebb_await(cx, ebb_tcp_connect(cx, &to), &v) == EBB_OK) {
        p->s = ebb_stream_of(v);
        bool h1 = chance(&p->d, 3);
        if (!h1) put(p, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
        driver_tally.peers++;
        speak(cx, p, h1);
    }
    release(p);
    a->world->actors--;
    return EBB_OK;
}

/* ---- a server that speaks nonsense ------------------------------------------------------------------------------ */

static void answer_1(raw *p) {
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
        "HTTP/1.1 301 Moved\r\nlocation: /f/1\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nto the end",
        "nonsense\r\n\r\n",
        "HTTP/1.1 304 Not\r\ncontent-length: 9\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"};
    put_text(p, answers[roll(&p->d, sizeof answers / sizeof *answers)]);
}

static void answer_2(raw *p) {
    uint32_t stream = 1 + 2 * roll(&p->d, 4);
    switch (roll(&p->d, 10)) {
    case 0:
    case 1:
        frame(p, 1, 1, chance(&p->d, 2) ? 5 : 4, stream);
        put(p, chance(&p->d, 5) ? "\x89" : "\x88", 1);
        break;
    case 2:
    case 3: put_data(p, stream); break;
    case 4:
        frame(p, 4, 3, 0, stream);
        put_u32(p, roll(&p->d, 14));
        break;
    case 5:
        if (!chance(&p->d, 3)) break;
        frame(p, 8, 7, 0, 0);
        put_u32(p, 1 + 2 * roll(&p->d, 4));
        put_u32(p, roll(&p->d, 3));
        break;
    case 6: put_update(p, stream); break;
    case 7: put_settings(p); break;
    case 8:
        frame(p, 8, 6, 0, 0);
        put(p, "12345678", 8);
        break;
    default:
        if (chance(&p->d, 4)) put_noise(p);
    }
}

typedef struct visit {
    world *w;
    uint32_t number;
    ebb_stream s;
} visit;

static ebb_status serve_badly(ebb_cx *cx, void *arg) {
    visit *of = arg;
    raw *p = grab(of->w, sizeof *p);
    *p = (raw){.w = of->w, .d = dice_of(of->w, of->number), .s = of->s, .next = 1};
    uint8_t first[24] = {0};
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_stream_read(cx, p->s, first, sizeof first), &v);
    bool h2 = first[0] == 'P' && first[1] == 'R';
    if (h2) put(p, "\0\0\0\4\0\0\0\0\0", 9);
    for (uint32_t n = 1 + roll(&p->d, 12); st == EBB_OK && n > 0; n--) {
        for (uint32_t k = roll(&p->d, 4); k > 0; k--) {
            if (h2) answer_2(p);
            else answer_1(p);
        }
        st = say(cx, p);
        if (st == EBB_OK) st = hear(cx, p);
    }
    (void)ebb_stream_close(cx, p->s);
    release(p);
    release(of);
    return EBB_OK;
}

ebb_status bad_server_main(ebb_cx *cx, void *arg) {
    world *w = arg;
    ebb_address at = {"127.0.0.1", 0};
    ebb_listener l = ebb_tcp_listen(cx, &at);
    ebb_value v;
    ebb_status st = ebb_listener_address(cx, l, &at);
    w->bad_port = st == EBB_OK ? at.port : 0;
    for (uint32_t n = 50000; st == EBB_OK; n++) {
        st = ebb_await(cx, ebb_listener_accept(cx, l), &v);
        if (st != EBB_OK) break;
        visit *one = grab(w, sizeof *one);
        *one = (visit){w, n, ebb_stream_of(v)};
        ebb_task t = ebb_fiber_spawn(cx, ebb_cx_region(cx), serve_badly, one);
        if (ebb_id_status(t.id) != EBB_OK) release(one);
    }
    return EBB_OK;
}
