/* Admission of operations: every kind that a loop and HTTP have, asked for by everybody who can ask, in a plain region
 * and in a unit of work, after every verb. What has to come of it is computed from the rules alone (docs/kernel.md,
 * "Admission"). What was refused has had no effect: no file, no connection, no process, no call. */
#include "tests/support/loop_world.h"

#include <arpa/inet.h>
#include <ebb/http.h>
#include <netinet/in.h>

/* ---- the rules ---------------------------------------------------------------------------------------- */

typedef enum guise { PLAIN, MASKED, FINALIZER, IN_SCOPE, CALLBACK, HOST, GUISES } guise;
typedef enum kind {
    PROCESS,
    FILE_OPEN,
    FILE_RENAME,
    CONNECT,
    RESOLVE,
    BLOCKING,
    READ,
    WRITE,
    SIGNAL_WAIT,
    HTTP_CALL,
    LISTEN, /* from here on: they bring work in */
    ACCEPT,
    HTTP_LISTEN,
    KINDS
} kind;
typedef enum verb { STILL_OPEN, CLOSED_AROUND, CLOSED, CANCELLED, VERBS } verb;

typedef struct cell {
    guise guise;
    kind kind;
    verb verb;
    bool in_unit;
} cell;

static const char *const guises[] = {
    "a task", "a masked task", "a finalizer", "a task in a cleanup scope", "a callback", "the host"};
static const char *const kinds[] = {"process",  "file",   "rename",     "connect", "resolve",
                                    "blocking", "read",   "write",      "signal",  "HTTP call",
                                    "listen",   "accept", "HTTP listen"};
static const char *const verbs[] = {"open", "closed around", "closed", "cancelled"};

/* The verbs do not reach the host, nor into a cleanup scope. */
static ebb_status expected(const cell *c) {
    if (c->verb == STILL_OPEN || c->guise == HOST || c->guise == IN_SCOPE) return EBB_OK;
    bool told = c->verb == CANCELLED;
    if (c->kind >= LISTEN) return told ? EBB_CANCELLED : EBB_ERR_CLOSED;
    return told && c->guise == PLAIN ? EBB_CANCELLED : EBB_OK;
}

/* ---- a run -------------------------------------------------------------------------------------------- */

typedef struct stage {
    loop_world *w;
    cell c;
    ebb_region service, place;
    ebb_future *go; /* of the host's: a plain asker waits for it */
    ebb_region scope;
    ebb_listener listener;
    ebb_stream stream;
    ebb_http_client *client;
    int tcp, other; /* who would see a connection; the other end of `stream` */
    uint16_t port;
    bool asked;
    atomic_bool ran; /* the blocking function */
    ebb_status got;
    char bytes[4];
} stage;

static ebb_status runs(void *arg, ebb_value *v) {
    (void)v;
    atomic_store(&((stage *)arg)->ran, true);
    return EBB_OK;
}

/* What was begun is ended at once: cleanup would be waited for until its budget is over. */
static ebb_status of_future(ebb_future *f) {
    ebb_status st = ebb_future_status_of(f);
    (void)ebb_future_cancel(f, EBB_CANCEL_USER);
    ebb_future_drop(f);
    return st == EBB_PENDING ? EBB_OK : st;
}

static ebb_status ask_http(stage *s, ebb_cx *cx) {
    char url[64];
    ebb_http_server *server;
    if (s->c.kind == HTTP_LISTEN) {
        ebb_status st = ebb_http_listen(cx, &(ebb_http_server_opts){.address = {"127.0.0.1", 0}}, &server);
        if (st == EBB_OK)
            ebb_region_cancel(cx, ebb_http_server_region(server), EBB_CANCEL_USER, "it was only asked");
        return st;
    }
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", s->port);
    return of_future(ebb_http_get(cx, s->client, url));
}

static ebb_status begin(stage *s, ebb_cx *cx) {
    loop_world *w = s->w;
    const char *args[] = {"touch", path_in(w, "made"), NULL};
    char from[128];
    switch (s->c.kind) {
    case PROCESS:
        return ebb_id_status(
            ebb_process_spawn(cx, NULL, &(ebb_process_opts){.file = "touch", .args = args}).id);
    case FILE_OPEN: return of_future(ebb_file_open(cx, path_in(w, "made"), O_CREAT | O_WRONLY, 0600));
    case FILE_RENAME:
        snprintf(from, sizeof from, "%s", path_in(w, "there"));
        return of_future(ebb_file_rename(cx, from, path_in(w, "made")));
    case CONNECT: return of_future(ebb_tcp_connect(cx, &(ebb_address){"127.0.0.1", s->port}));
    case RESOLVE: return of_future(ebb_dns_resolve(cx, "127.0.0.1", 1));
    case BLOCKING: return of_future(ebb_pool_run(cx, runs, s));
    case READ: return of_future(ebb_stream_read(cx, s->stream, s->bytes, sizeof s->bytes));
    case WRITE: return of_future(ebb_stream_write(cx, s->stream, "x", 1));
    case SIGNAL_WAIT: return of_future(ebb_signal_wait(cx, SIGUSR2));
    case LISTEN: return ebb_id_status(ebb_pipe_listen(cx, path_in(w, "made")).id);
    case ACCEPT: return of_future(ebb_listener_accept(cx, s->listener));
    default: return ask_http(s, cx);
    }
}

static void ask(stage *s, ebb_cx *cx) {
    assert_false(s->asked);
    s->got = begin(s, cx);
    s->asked = true;
}

static ebb_status asks(ebb_cx *cx, void *arg) {
    ask(arg, cx);
    return EBB_OK;
}

static ebb_status asks_in_scope(ebb_cx *cx, void *arg) {
    stage *s = arg;
    if (s->scope.id == 0) {
        s->scope = ebb_region_open(cx, &(ebb_region_opts){.cleanup = true});
        assert_int_equal(ebb_id_status(ebb_spawn(cx, s->scope, asks, s).id), EBB_OK);
    }
    return ebb_region_join(cx, s->scope);
}

static void asks_in_callback(ebb_cx *cx, void *arg) {
    ask(arg, cx);
}

static ebb_status asker(ebb_cx *cx, void *arg) {
    stage *s = arg;
    ebb_poll_fn last = s->c.guise == FINALIZER ? asks : s->c.guise == IN_SCOPE ? asks_in_scope : NULL;
    if (s->c.guise == MASKED) assert_int_equal(ebb_mask(cx), EBB_OK);
    if (last != NULL) assert_int_equal(ebb_defer(cx, last, s), EBB_OK);
    ebb_future *wait = ebb_promise_new(cx, NULL, NULL);
    if (s->c.guise == CALLBACK) assert_int_equal(ebb_future_on_cleanup(wait, asks_in_callback, s), EBB_OK);
    ebb_status st = ebb_await(cx, ebb_future_keep(s->go), NULL);
    if (st == EBB_OK) (void)ebb_promise_settle(wait, ebb_value_none());
    ebb_future_drop(wait);
    if (s->c.guise == PLAIN || s->c.guise == MASKED) ask(s, cx);
    if (s->c.guise == MASKED) (void)ebb_unmask(cx);
    return EBB_OK;
}

/* ---- a cell ------------------------------------------------------------------------------------------- */

static int tcp_listener(uint16_t *port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static void stage_up(stage *s) {
    loop_world *w = s->w;
    ebb_cx *cx = ebb_loop_cx(w->loop);
    int fd = open(path_in(w, "there"), O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    s->service = ebb_region_open(cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    s->place = ebb_region_open(
        cx, &(ebb_region_opts){.parent = s->service, .policy = EBB_FAIL_COLLECT, .unit = s->c.in_unit});
    s->go = ebb_promise_new(cx, NULL, NULL);
    if (s->c.kind == ACCEPT) s->listener = ebb_pipe_listen(cx, path_in(w, "socket"));
    if (s->c.kind == READ || s->c.kind == WRITE) s->stream = stream_pair(w, &s->other);
    if (s->c.kind == HTTP_CALL)
        assert_int_equal(ebb_http_client_new(cx, &(ebb_http_client_opts){0}, &s->client), EBB_OK);
    if (s->c.kind == CONNECT || s->c.kind == HTTP_CALL) s->tcp = tcp_listener(&s->port);
}

static void say(stage *s) {
    ebb_cx *cx = ebb_loop_cx(s->w->loop);
    if (s->c.verb == CLOSED_AROUND) ebb_region_close(cx, s->service);
    if (s->c.verb == CLOSED) ebb_region_close(cx, s->place);
    if (s->c.verb == CANCELLED) ebb_region_cancel(cx, s->service, EBB_CANCEL_USER, "enough");
    if (s->c.guise == HOST) ask(s, cx);
    (void)ebb_promise_settle(s->go, ebb_value_none());
}

static void had_no_effect(const stage *s) {
    char byte;
    assert_int_not_equal(access(path_in(s->w, "made"), F_OK), 0);
    assert_false(atomic_load(&s->ran));
    if (s->tcp > 0) assert_int_equal(accept(s->tcp, NULL, NULL), -1);
    if (s->other > 0) assert_int_equal(recv(s->other, &byte, 1, MSG_DONTWAIT), -1);
}

static void stage_down(stage *s) {
    loop_world *w = s->w;
    ebb_cx *cx = ebb_loop_cx(w->loop);
    ebb_region_cancel(cx, s->service, EBB_CANCEL_USER, "the cell is over");
    while (!region_is_closed(w, s->service)) loop_turns(w, 1);
    (void)ebb_region_join(ebb_loop_cx(w->loop), s->service);
    ebb_future_drop(s->go);
}

static void clear_up(stage *s) {
    ebb_cx *cx = ebb_loop_cx(s->w->loop);
    if (s->listener.id != 0) (void)ebb_listener_close(cx, s->listener);
    if (s->stream.id != 0) (void)ebb_stream_close(cx, s->stream);
    if (s->tcp > 0) close(s->tcp);
    if (s->other > 0) close(s->other);
    (void)unlink(path_in(s->w, "made"));
    (void)unlink(path_in(s->w, "there"));
    (void)unlink(path_in(s->w, "socket"));
}

/* A world of its own, so that nothing of the cell may be left: no memory, no handle, no descriptor. */
static void try(const cell *c) {
    stage s = {.w = loop_world_new(), .c = *c, .got = EBB_PENDING};
    stage_up(&s);
    if (c->guise != HOST)
        assert_int_equal(ebb_id_status(ebb_fiber_spawn(ebb_loop_cx(s.w->loop), s.place, asker, &s).id),
                         EBB_OK);
    loop_turns(s.w, 2);
    say(&s);
    while (!s.asked) loop_turns(s.w, 1); /* what was begun may be nothing to wait for */
    ebb_status wanted = expected(c);
    if (s.got != wanted)
        fail_msg("%s in a %s, %s: %s said %s, expected %s", guises[c->guise], c->in_unit ? "unit" : "region",
                 verbs[c->verb], kinds[c->kind], ebb_status_name(s.got), ebb_status_name(wanted));
    stage_down(&s);
    if (wanted != EBB_OK) had_no_effect(&s);
    clear_up(&s);
    loop_world_end(s.w);
}

static void try_all(guise g) {
    for (int k = 0; k < KINDS; k++)
        for (int v = 0; v < VERBS; v++)
            for (int unit = 0; unit < 2; unit++) try(&(cell){g, (kind)k, (verb)v, unit != 0});
}

static void what_a_task_begins(void **state) {
    (void)state;
    try_all(PLAIN);
}

static void what_a_masked_task_begins(void **state) {
    (void)state;
    try_all(MASKED);
}

static void what_a_finalizer_begins(void **state) {
    (void)state;
    try_all(FINALIZER);
}

static void what_a_task_in_a_cleanup_scope_begins(void **state) {
    (void)state;
    try_all(IN_SCOPE);
}

static void what_a_callback_begins(void **state) {
    (void)state;
    try_all(CALLBACK);
}

static void what_the_host_begins(void **state) {
    (void)state;
    try_all(HOST);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_task_begins),      cmocka_unit_test(what_a_masked_task_begins),
        cmocka_unit_test(what_a_finalizer_begins), cmocka_unit_test(what_a_task_in_a_cleanup_scope_begins),
        cmocka_unit_test(what_a_callback_begins),  cmocka_unit_test(what_the_host_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
