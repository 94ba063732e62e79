/* All that a client does, again and again: with the n-th allocation failing, and cancelled after the n-th turn,
 * for each n. Nothing may be left, and whatever fails says why. The server is a process of its own, so that
 * memory and descriptors are the client's alone. */
#include <netdb.h>
#include <netinet/in.h>
#include <sys/wait.h>

#include "tests/http/tls_certificates.h"
#include "tests/support/http_client_world.h"

typedef struct sweep {
    uv_loop_t uv;
    ebb_failing memory;
    ebb_loop *loop;
    ebb_cx *cx;
    ebb_region region;
    uint32_t turns, cancel_at; /* 0: never */
    ebb_http_client *client;
    char text[128];
    bool odd; /* a status that nothing explains */
    nudge nudge;
} sweep;

/* How the client reaches the server. */
typedef struct way {
    const char *scheme;
    bool prior_knowledge;
} way;
static const way ways[] = {{"http", false}, {"http", true}, {"https", false}};
static const way *by;

/* ---- names ------------------------------------------------------------------------------------------------ */

static struct sockaddr_in addresses[3];
static struct addrinfo found[3];

/* A name with three addresses, of which the last is the server's: the others refuse. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out) {
    (void)service;
    (void)hints;
    if (strcmp(name, "localhost") != 0) return EAI_NONAME;
    for (uint32_t i = 0; i < 3; i++) {
        addresses[i] = (struct sockaddr_in){.sin_family = AF_INET,
                                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (i < 2 ? 2 + i : 0))};
        found[i] = (struct addrinfo){.ai_family = AF_INET,
                                     .ai_addrlen = sizeof addresses[i],
                                     .ai_addr = (struct sockaddr *)&addresses[i],
                                     .ai_next = i < 2 ? &found[i + 1] : NULL};
    }
    *out = found;
    return 0;
}

void freeaddrinfo(struct addrinfo *list) {
    (void)list;
}

/* ---- the server ------------------------------------------------------------------------------------------- */

static pid_t server_pid;
static uint16_t port_plain, port_tls;

static void serve_for_ever(int fd) {
    uv_loop_t uv;
    ebb_loop *l;
    ebb_http_server *s[2];
    ebb_address at[2];
    http_world h = {0};
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    ebb_tls_opts tls = {.cert_file = file("leaf.pem"), .key_file = file("leaf.key")};
    if (uv_loop_init(&uv) != 0 || ebb_loop_attach(&uv, &opts, &l) != EBB_OK) _exit(1);
    for (int i = 0; i < 2; i++) {
        /* It is the client that is tested here, and it resets more than a server would let it. */
        ebb_http_server_opts o = {.address = {"127.0.0.1", 0}, .tls = i == 0 ? NULL : &tls};
        o.limits.resets = o.limits.resets_second = 1000000;
        o.limits.requests = 5; /* then GOAWAY: what was on its way is sent again by another connection */
        if (ebb_http_listen(ebb_loop_cx(l), &o, &s[i]) != EBB_OK) _exit(1);
        if (http_routes(s[i], &h) != EBB_OK) _exit(1);
        (void)ebb_http_server_address(ebb_loop_cx(l), s[i], &at[i]);
    }
    uint16_t ports[2] = {at[0].port, at[1].port};
    if (write(fd, ports, sizeof ports) != sizeof ports) _exit(1);
    uv_run(&uv, UV_RUN_DEFAULT);
    _exit(0);
}

static int server_start(void **state) {
    int fd[2];
    uint16_t ports[2];
    if (make_certificates(state) != 0 || pipe(fd) != 0) return -1;
    server_pid = fork();
    if (server_pid == 0) serve_for_ever(fd[1]);
    close(fd[1]);
    assert_int_equal(read(fd[0], ports, sizeof ports), sizeof ports);
    close(fd[0]);
    port_plain = ports[0];
    port_tls = ports[1];
    return 0;
}

static int server_end(void **state) {
    kill(server_pid, SIGKILL);
    waitpid(server_pid, NULL, 0);
    return remove_certificates(state);
}

/* ---- the scenario ----------------------------------------------------------------------------------------- */

static bool explained(const sweep *s, ebb_status st) {
    if (st == EBB_OK || st == EBB_TIMEOUT) return true;
    if (st == EBB_CANCELLED) return s->cancel_at != 0;
    /* No memory, and what follows from that: a connection that is lost, TLS that is not made. */
    return s->memory.failures > 0 || s->cancel_at != 0;
}

static ebb_status note(sweep *s, ebb_status st, const char *what) {
    if (explained(s, st)) return st;
    s->odd = true;
    print_error("%s: %s\n", what, ebb_status_text(st));
    return st;
}

#define TRY(s, cx, f, v) note((s), ebb_await((cx), (f), (v)), #f)

static uint16_t server_port(void) {
    return strcmp(by->scheme, "https") == 0 ? port_tls : port_plain;
}

static const char *target(sweep *s, const char *host, const char *path) {
    snprintf(s->text, sizeof s->text, "%s://%s:%u%s", by->scheme, host, server_port(), path);
    return s->text;
}

static void fetch_some(ebb_cx *cx, sweep *s) {
    static const char body[3000] = "body";
    ebb_http_field field = {"x-name", "value"};
    ebb_value v;
    if (TRY(s, cx, ebb_http_get(cx, s->client, target(s, "127.0.0.1", "/hello")), &v) == EBB_OK) {
        const ebb_http_response *r = ebb_http_response_of(&v);
        if (r->status == 200 && r->body_n != 5) s->odd = true;
        ebb_value_discard(cx, v);
    }
    ebb_http_call call = {.method = "POST",
                          .url = target(s, "127.0.0.1", "/echo"),
                          .headers = &field,
                          .headers_n = 1,
                          .body = body,
                          .body_n = sizeof body};
    if (TRY(s, cx, ebb_http_fetch(cx, s->client, &call), &v) != EBB_OK) return;
    const ebb_http_response *r = ebb_http_response_of(&v);
    if (r->body_n != sizeof body || memcmp(r->body, body, sizeof body) != 0) s->odd = true;
    ebb_value_discard(cx, v);
}

static void fetch_many(ebb_cx *cx, sweep *s) {
    enum { MANY = 8 };
    ebb_future *all[MANY];
    ebb_value v;
    for (int i = 0; i < MANY; i++) {
        all[i] = ebb_http_get(cx, s->client, target(s, "127.0.0.1", i == 3 ? "/bytes/100000" : "/hello"));
    }
    if (TRY(s, cx, ebb_all(cx, MANY, all), &v) == EBB_OK) ebb_value_discard(cx, v);
}

static void fetch_late(ebb_cx *cx, sweep *s) {
    ebb_http_call call = {.url = target(s, "127.0.0.1", "/wait"), .deadline = ebb_now(cx) + 2 * EBB_MS};
    ebb_value v;
    if (TRY(s, cx, ebb_http_fetch(cx, s->client, &call), &v) == EBB_OK) ebb_value_discard(cx, v); /* a 503 */
}

static void look_up(ebb_cx *cx, sweep *s) {
    ebb_value v;
    if (TRY(s, cx, ebb_http_get(cx, s->client, target(s, "localhost", "/hello")), &v) == EBB_OK) {
        ebb_value_discard(cx, v);
    }
}

static void converse(ebb_cx *cx, sweep *s) {
    ebb_http_call call = {.method = "POST", .url = target(s, "127.0.0.1", "/echo"), .streams = true};
    ebb_value v;
    char heard[16];
    if (TRY(s, cx, ebb_http_open(cx, s->client, &call), &v) != EBB_OK) return;
    ebb_http *x = ebb_http_of(cx, v);
    if (TRY(s, cx, ebb_http_write(cx, x, "word", 4), NULL) == EBB_OK &&
        TRY(s, cx, ebb_http_response_head(cx, x), NULL) == EBB_OK) {
        (void)TRY(s, cx, ebb_http_read(cx, x, heard, sizeof heard), NULL);
    }
    (void)ebb_http_end(cx, x);
    ebb_http_close(cx, x);
}

/* Takes a part of a body, and leaves the rest to the region. */
static void take_a_part(ebb_cx *cx, sweep *s) {
    static char part[1000];
    ebb_http_call call = {.url = target(s, "127.0.0.1", "/bytes/1000000")};
    ebb_value v;
    if (TRY(s, cx, ebb_http_open(cx, s->client, &call), &v) != EBB_OK) return;
    ebb_http *x = ebb_http_of(cx, v);
    if (x != NULL) (void)TRY(s, cx, ebb_http_read(cx, x, part, sizeof part), NULL);
}

/* To another origin, and the body goes along. */
static void be_redirected(ebb_cx *cx, sweep *s) {
    char path[64];
    snprintf(path, sizeof path, "/go/small/307?//localhost:%u/show/a", server_port());
    ebb_http_field field = {"cookie", "a=b"};
    ebb_http_call call = {.method = "POST",
                          .url = target(s, "127.0.0.1", path),
                          .headers = &field,
                          .headers_n = 1,
                          .body = "body",
                          .body_n = 4,
                          .redirects = 2};
    ebb_value v;
    if (TRY(s, cx, ebb_http_fetch(cx, s->client, &call), &v) != EBB_OK) return;
    const ebb_http_response *r = ebb_http_response_of(&v);
    if (r->status == 200 && strcmp(r->body, "POST /show/a? [body]") != 0) s->odd = true;
    ebb_value_discard(cx, v);
}

static void take_all(ebb_cx *cx, sweep *s) {
    ebb_http_call call = {.url = target(s, "127.0.0.1", "/bytes/100000")};
    ebb_value v;
    if (TRY(s, cx, ebb_http_open(cx, s->client, &call), &v) != EBB_OK) return;
    ebb_http *x = ebb_http_of(cx, v);
    if (x != NULL && TRY(s, cx, ebb_http_body(cx, x, 100000), &v) == EBB_OK &&
        ebb_http_body_of(&v)->n != 100000)
        s->odd = true;
    ebb_http_close(cx, x);
}

static ebb_status use_client(ebb_cx *cx, void *arg) {
    sweep *s = arg;
    ebb_http_client_opts opts = {
        .prior_knowledge = by->prior_knowledge, .connections = 2, .tls.ca_file = file("ca.pem")};
    if (note(s, ebb_http_client_new(cx, &opts, &s->client), "client") != EBB_OK) return EBB_OK;
    fetch_some(cx, s);
    fetch_many(cx, s);
    fetch_late(cx, s);
    look_up(cx, s);
    converse(cx, s);
    take_all(cx, s);
    be_redirected(cx, s);
    take_a_part(cx, s);
    return EBB_OK;
}

/* ---- one run ---------------------------------------------------------------------------------------------- */

static void take_turns(sweep *s) {
    for (;;) {
        (void)ebb_loop_cx(s->loop);
        uv_run(&s->uv, UV_RUN_ONCE);
        if (++s->turns == s->cancel_at) ebb_region_cancel(s->cx, s->region, EBB_CANCEL_USER, NULL);
        if (ebb_region_join(s->cx, s->region) != EBB_PENDING) return;
    }
}

static ebb_status run(sweep *s) {
    ebb_heap_opts heap = {.every_time = getenv("EBB_TEST_GC") != NULL, .verify = true};
    ebb_loop_opts opts = {.runtime = {.allocator = ebb_failing_allocator(&s->memory)}, .heap = &heap};
    s->memory.inner = ebb_libc_allocator();
    ebb_status st = ebb_loop_attach(&s->uv, &opts, &s->loop);
    if (st != EBB_OK) return st;
    s->cx = ebb_loop_cx(s->loop);
    s->region = ebb_region_open(s->cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    ebb_fiber_spawn(s->cx, s->region, use_client, s);
    if (ebb_id_status(s->region.id) == EBB_OK) take_turns(s);
    uv_run(&s->uv, UV_RUN_DEFAULT);
    size_t n = 0;
    ebb_loop_leftover left[1] = {{.what = ""}};
    st = ebb_loop_close(s->loop, left, 1, &n);
    if (st != EBB_OK) fail_msg("%zu left, %s of %s", n, left[0].what, left[0].site);
    return st;
}

static void run_once(sweep *s, uint64_t fail_at, uint32_t cancel_at) {
    memset(s, 0, sizeof *s);
    alarm(ALARM_S);
    s->memory.fail_at = fail_at;
    s->cancel_at = cancel_at;
    assert_int_equal(uv_loop_init(&s->uv), 0);
    assert_int_equal(uv_loop_close(&s->uv), 0);
    int fds = open_descriptors();
    assert_int_equal(uv_loop_init(&s->uv), 0);
    nudge_start(&s->nudge, &s->uv);
    ebb_status st = run(s);
    assert_true(st == EBB_OK || (st == EBB_ERR_NOMEM && s->memory.failures > 0));
    nudge_end(&s->nudge);
    uv_run(&s->uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->uv), 0);
    if (s->memory.live != 0) print_error("fail_at %" PRIu64 " cancel_at %u\n", fail_at, cancel_at);
    assert_int_equal(s->memory.live, 0);
    assert_int_equal(open_descriptors(), fds);
    assert_false(s->odd);
}

static void all_goes_well_if_nothing_fails(void **state) {
    sweep s;
    by = *state;
    run_once(&s, 0, 0);
    assert_int_equal(s.memory.failures, 0);
}

static void the_nth_allocation_fails(void **state) {
    sweep s;
    uint64_t n = 0;
    by = *state;
    do run_once(&s, ++n, 0);
    while (s.memory.failures > 0);
    print_message("%" PRIu64 " runs\n", n);
    assert_true(n > 30);
}

static void everything_is_cancelled_after_the_nth_turn(void **state) {
    sweep s;
    uint32_t n = 0;
    by = *state;
    do run_once(&s, 0, ++n);
    while (s.turns >= n && n < 300);
    print_message("%" PRIu32 " runs\n", n);
    assert_true(n > 5);
}

#define BY(test, i)                                                                                          \
    { #test " (way " #i ")", test, NULL, NULL, (void *)(uintptr_t)&ways[i] }
#define BY_ALL(test) BY(test, 0), BY(test, 1), BY(test, 2)

int main(void) {
    const struct CMUnitTest tests[] = {
        BY_ALL(all_goes_well_if_nothing_fails),
        BY_ALL(the_nth_allocation_fails),
        BY_ALL(everything_is_cancelled_after_the_nth_turn),
    };
    return cmocka_run_group_tests_name("http_client_sweep", tests, server_start, server_end);
}
