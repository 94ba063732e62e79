/* A name with several addresses: all are tried, a new one every 250 ms or when one fails, and the first that answers
 * is taken (RFC 8305). And how long a connection may take.
 *
 * What such a name stands for is a machine's own affair, so the system's lookup is replaced here: libuv finds this one
 * first. All addresses are of the loopback network. One that does not answer has a full backlog: the system drops who
 * comes. One of the other family is an IPv4 address mapped to IPv6, which needs no route. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <semaphore.h>

#include "tests/http/raw_server.h"
#include "tests/http/tls_certificates.h"

enum { ADDRESSES = 16, STEP_MS = 250 };

static const char *names[ADDRESSES + 1]; /* "127.0.0.1", "::ffff:127.0.0.1"; NULL after the last */
static struct sockaddr_storage addresses[ADDRESSES];
static struct addrinfo found[ADDRESSES];
static _Atomic int freed;
static sem_t *hold; /* a lookup waits for it; NULL: it does not */

static void set_address(int i) {
    struct sockaddr_in *four = (struct sockaddr_in *)(void *)&addresses[i];
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&addresses[i];
    bool is_six = strchr(names[i], ':') != NULL;
    memset(&addresses[i], 0, sizeof addresses[i]);
    addresses[i].ss_family = is_six ? AF_INET6 : AF_INET;
    assert_int_equal(inet_pton(addresses[i].ss_family, names[i],
                               is_six ? (void *)&six->sin6_addr : (void *)&four->sin_addr),
                     1);
    found[i] = (struct addrinfo){.ai_family = addresses[i].ss_family,
                                 .ai_socktype = SOCK_STREAM,
                                 .ai_addrlen = is_six ? sizeof *six : sizeof *four,
                                 .ai_addr = (struct sockaddr *)&addresses[i]};
    if (i > 0) found[i - 1].ai_next = &found[i];
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out) {
    (void)service;
    (void)hints;
    if (hold != NULL) sem_wait(hold);
    if (strcmp(name, "several.test") != 0) return EAI_NONAME;
    for (int i = 0; names[i] != NULL; i++) set_address(i);
    *out = found;
    return 0;
}

void freeaddrinfo(struct addrinfo *list) {
    assert_ptr_equal(list, found);
    freed++;
}

static void stands_for(const char *const *which) {
    int n = 0;
    for (; which[n] != NULL; n++) names[n] = which[n];
    names[n] = NULL;
    freed = 0;
}
#define STANDS_FOR(...) stands_for((const char *const[]){__VA_ARGS__, NULL})

static ebb_future *get_named(http_world *h, const char *name, uint16_t port) {
    char text[64];
    snprintf(text, sizeof text, "http://%s:%u/hello", name, port);
    return ebb_http_get(http_cx(h), h->client, text);
}

static ebb_status named_status(http_world *h, const char *name, uint16_t port) {
    return loop_await(h->w, get_named(h, name, port), NULL);
}

/* Listens at an address of 127.0.0.0/8, at the server's port. */
static int listen_at(http_world *h, const char *ip) {
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(h->port), .sin_addr.s_addr = inet_addr(ip)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

typedef struct deaf {
    int fd;
    black_hole hole;
} deaf;

static void deaf_up(deaf *d, http_world *h, const char *ip) {
    d->fd = listen_at(h, ip);
    fill_backlog(&d->hole, d->fd);
}

static void deaf_down(deaf *d) {
    empty_backlog(&d->hole);
    close(d->fd);
}

static uint64_t ms_since(uint64_t begin) {
    return (uv_hrtime() - begin) / EBB_MS;
}

/* ---- several addresses ---------------------------------------------------------------------------------------- */

/* Nobody listens at the first ones, and they say so: if each took its 250 ms, this would take four seconds. */
static void an_address_that_refuses_is_followed_by_the_next_at_once(void **state) {
    http_world *h = *state;
    uint64_t begin = uv_hrtime();
    STANDS_FOR("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7", "127.0.0.8",
               "127.0.0.9", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7", "127.0.0.8",
               "127.0.0.9", "127.0.0.1");
    assert_int_equal(named_status(h, "several.test", h->port), EBB_OK);
    assert_true(ms_since(begin) < 15 * STEP_MS);
    assert_int_equal(server_stats(h).accepted, 1);
}

static void the_last_says_why_none_would_do(void **state) {
    http_world *h = *state;
    STANDS_FOR("127.0.0.2", "127.0.0.3");
    assert_int_equal(named_status(h, "several.test", 1), EBB_ERRNO(ECONNREFUSED));
    assert_int_equal(freed, 1);
    assert_int_equal(named_status(h, "none.test", 1), EBB_UV(UV_EAI_NONAME));
    assert_int_equal(freed, 1);
}

/* libuv opens a descriptor for itself with the first stream of a loop. */
static int descriptors_after_a_call(http_world *h) {
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
    return open_descriptors();
}

static bool has_descriptors(void *n) {
    return open_descriptors() == *(const int *)n;
}

static void an_address_that_does_not_answer_is_not_waited_for(void **state) {
    http_world *h = *state;
    deaf two, three;
    deaf_up(&two, h, "127.0.0.2");
    deaf_up(&three, h, "127.0.0.3");
    STANDS_FOR("127.0.0.2", "127.0.0.3", "127.0.0.1");
    int both_ends = descriptors_after_a_call(h) + 2; /* of one connection: the other attempts are closed */
    uint64_t begin = uv_hrtime();
    assert_int_equal(named_status(h, "several.test", h->port), EBB_OK);
    assert_true(ms_since(begin) >= 2 * STEP_MS); /* each had its time */
    loop_until(h->w, has_descriptors, &both_ends);
    deaf_down(&two);
    deaf_down(&three);
}

/* The second attempt refuses while the first hangs: the third has its turn at once, and wins. */
static void a_failure_beside_an_attempt_that_hangs_starts_the_next(void **state) {
    http_world *h = *state;
    deaf two;
    deaf_up(&two, h, "127.0.0.2");
    STANDS_FOR("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7", "127.0.0.8",
               "127.0.0.9", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7", "127.0.0.8",
               "127.0.0.9", "127.0.0.1");
    uint64_t begin = uv_hrtime();
    assert_int_equal(named_status(h, "several.test", h->port), EBB_OK);
    assert_true(ms_since(begin) >= STEP_MS && ms_since(begin) < 15 * STEP_MS);
    deaf_down(&two);
}

static bool has_ipv6(void) {
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

/* The third comes second, because it is of the other family. At the second somebody listens who never answers. */
static void families_alternate(void **state) {
    http_world *h = *state;
    deaf two;
    if (!has_ipv6()) skip();
    deaf_up(&two, h, "127.0.0.2");
    int three = listen_at(h, "127.0.0.3");
    STANDS_FOR("::ffff:127.0.0.2", "::ffff:127.0.0.3", "127.0.0.1");
    assert_int_equal(named_status(h, "several.test", h->port), EBB_OK);
    assert_true(accept(three, NULL, NULL) < 0);
    close(three);
    deaf_down(&two);
}

/* ---- giving up ------------------------------------------------------------------------------------------------ */

static void a_call_may_be_cancelled_at_any_attempt(void **state) {
    http_world *h = *state;
    deaf two;
    deaf_up(&two, h, "127.0.0.2");
    STANDS_FOR("127.0.0.3", "127.0.0.2", "127.0.0.1");
    for (int turns = 0; turns < 20; turns++) {
        ebb_future *f = get_named(h, "several.test", h->port);
        loop_turns(h->w, turns);
        ebb_future_cancel(f, EBB_CANCEL_USER);
        ebb_future_drop(f);
        loop_turns(h->w, 3);
    }
    deaf_down(&two);
}

static void a_call_that_is_cancelled_closes_its_attempts(void **state) {
    http_world *h = *state;
    deaf two;
    deaf_up(&two, h, "127.0.0.2");
    STANDS_FOR("127.0.0.2", "127.0.0.2", "127.0.0.2");
    int fds = descriptors_after_a_call(h);
    ebb_future *f = get_named(h, "several.test", h->port);
    while (open_descriptors() < fds + 2) { /* two attempts are under way */
        (void)ebb_loop_cx(h->w->loop);
        uv_run(&h->w->uv, UV_RUN_ONCE);
    }
    ebb_future_cancel(f, EBB_CANCEL_USER);
    assert_int_equal(loop_await(h->w, f, NULL), EBB_CANCELLED);
    loop_until(h->w, has_descriptors, &fds);
    deaf_down(&two);
}

/* What the world does at its end: the region of the client is cancelled in the middle of it. */
static void a_client_may_end_while_it_dials(void **state) {
    http_world *h = *state;
    deaf two;
    deaf_up(&two, h, "127.0.0.2");
    STANDS_FOR("127.0.0.2", "127.0.0.2");
    int fds = descriptors_after_a_call(h);
    ebb_future *f = get_named(h, "several.test", h->port);
    while (open_descriptors() < fds + 1) loop_turns(h->w, 1);
    ebb_region_cancel(h->w->cx, ebb_runtime_root(h->w->rt), EBB_CANCEL_USER, "test");
    loop_until(h->w, root_is_closed, h->w);
    assert_int_equal(ebb_future_status_of(f), EBB_CANCELLED);
    deaf_down(&two);
}

/* ---- the time for it ------------------------------------------------------------------------------------------ */

enum { LIMIT_MS = 300 };

static void limit_time(http_world *h, uint64_t ms) {
    ebb_http_client_opts opts = {.connect_ns = ms * EBB_MS, .tls.ca_file = file("ca.pem")};
    h->client = http_client(h, opts);
}

static void connecting_has_its_time(void **state) {
    http_world *h = *state;
    deaf two;
    deaf_up(&two, h, "127.0.0.2");
    STANDS_FOR("127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.2");
    limit_time(h, LIMIT_MS);
    uint64_t begin = uv_hrtime();
    assert_int_equal(named_status(h, "several.test", h->port), EBB_ERR_HTTP_CONNECT);
    assert_true(ms_since(begin) >= LIMIT_MS);
    assert_int_equal(named_status(h, "127.0.0.2", h->port), EBB_ERR_HTTP_CONNECT);
    deaf_down(&two);
}

static void looking_up_counts(void **state) {
    http_world *h = *state;
    sem_t held;
    assert_int_equal(sem_init(&held, 0, 0), 0);
    STANDS_FOR("127.0.0.1");
    limit_time(h, LIMIT_MS);
    hold = &held;
    uint64_t begin = uv_hrtime();
    assert_int_equal(named_status(h, "several.test", h->port), EBB_ERR_HTTP_CONNECT);
    assert_true(ms_since(begin) >= LIMIT_MS);
    assert_int_equal(sem_post(&held), 0);
    while (freed == 0) loop_turns(h->w, 1); /* it ends, and nobody wants what it found */
    hold = NULL;
    assert_int_equal(sem_destroy(&held), 0);
}

/* It accepts, and says nothing. */
static void a_handshake_counts(void **state) {
    http_world *h = *state;
    raw_server s;
    char text[64];
    raw_listen(&s, h);
    limit_time(h, LIMIT_MS);
    snprintf(text, sizeof text, "https://127.0.0.1:%u/", h->port);
    uint64_t begin = uv_hrtime();
    ebb_future *f = ebb_http_get(http_cx(h), h->client, text);
    peer *p = raw_accept(&s);
    assert_int_equal(loop_await(h->w, f, NULL), EBB_ERR_HTTP_CONNECT);
    assert_true(ms_since(begin) >= LIMIT_MS);
    assert_true(hears_the_end(p));
    peer_close(p);
    raw_end(&s);
}

/* The time for connecting is not that for an answer. */
static void an_answer_may_take_longer(void **state) {
    enum { LONG_MS = 2000 }; /* for a machine that is busy */
    http_world *h = *state;
    raw_server s;
    raw_listen(&s, h);
    limit_time(h, LONG_MS);
    ebb_future *f = get(h, "/");
    peer *p = raw_accept(&s);
    loop_await(h->w, ebb_after(http_cx(h), (LONG_MS + 500) * EBB_MS), NULL);
    assert_int_equal(ebb_future_status_of(f), EBB_PENDING);
    say(p, "HTTP/1.1 204 No Content\r\n\r\n");
    assert_int_equal(loop_await(h->w, f, NULL), EBB_OK);
    peer_close(p);
    raw_end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OVER(an_address_that_refuses_is_followed_by_the_next_at_once),
        OVER(the_last_says_why_none_would_do),
        OVER_1(an_address_that_does_not_answer_is_not_waited_for),
        OVER_1(a_failure_beside_an_attempt_that_hangs_starts_the_next),
        OVER_1(families_alternate),
        OVER_1(a_call_may_be_cancelled_at_any_attempt),
        OVER_1(a_call_that_is_cancelled_closes_its_attempts),
        OVER_1(a_client_may_end_while_it_dials),
        OVER(connecting_has_its_time),
        OVER_1(looking_up_counts),
        OVER_1(a_handshake_counts),
        OVER_1(an_answer_may_take_longer),
    };
    return cmocka_run_group_tests_name("http_client_names", tests, make_certificates, remove_certificates);
}
