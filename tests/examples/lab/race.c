/* A proxy with a bug that depends on time, as a user might write it: an answer is written to the seat of who has asked,
 * after that one has left and another has sat down. The lab finds it.
 *
 *   lab_race explore race        finds it, cuts it down and prints the command that replays it
 *   lab_race explore fixed       the same proxy, repaired, holds */
#include <ebb/ebb.h>
#include <ebb/lab.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEATS = 4, TEXT = 16, QUESTIONS = 4 };

typedef struct seat {
    bool used;
    unsigned guest; /* counts those who have sat here */
    ebb_stream stream;
} seat;

typedef struct question {
    seat *from;
    unsigned guest;
    char text[TEXT];
    size_t n;
} question;

static seat seats[SEATS];
static bool repaired;

/* ---- the proxy ----------------------------------------------------------------------------------------- */

static ebb_status answer(ebb_cx *cx, const question *q, const char *text, size_t n) {
    if (!q->from->used || (repaired && q->from->guest != q->guest)) return EBB_OK;
    return ebb_await(cx, ebb_stream_write(cx, q->from->stream, text, n), NULL);
}

/* In the region of the service, not in that of the connection: so it outlives it. */
static ebb_status relay(ebb_cx *cx, void *arg) {
    question *q = arg;
    char text[TEXT];
    ebb_value v, n;
    ebb_status st = ebb_await(cx, ebb_tcp_connect(cx, &(ebb_address){"10.0.0.1", 9}), &v);
    if (st == EBB_OK) {
        ebb_stream s = ebb_stream_of(v);
        st = ebb_await(cx, ebb_stream_write(cx, s, q->text, q->n), NULL);
        if (st == EBB_OK) st = ebb_await(cx, ebb_stream_read(cx, s, text, sizeof text), &n);
        if (st == EBB_OK) (void)answer(cx, q, text, n.as.u);
        (void)ebb_stream_close(cx, s);
    }
    free(q);
    return EBB_OK;
}

static ebb_status attend(ebb_cx *cx, void *arg) {
    seat *at = arg;
    ebb_value n;
    question *q = malloc(sizeof *q);
    if (q == NULL) return EBB_ERR_NOMEM;
    *q = (question){.from = at, .guest = at->guest};
    ebb_status st = ebb_await(cx, ebb_stream_read(cx, at->stream, q->text, sizeof q->text), &n);
    q->n = st == EBB_OK ? n.as.u : 0;
    if (st != EBB_OK || ebb_id_status(ebb_fiber_spawn(cx, ebb_cx_region(cx), relay, q).id) != EBB_OK) free(q);
    char more;
    while (st == EBB_OK) st = ebb_await(cx, ebb_stream_read(cx, at->stream, &more, 1), &n);
    (void)ebb_stream_close(cx, at->stream);
    at->used = false;
    return EBB_OK;
}

static ebb_status accept_all(ebb_cx *cx, void *arg) {
    ebb_listener l = ebb_tcp_listen(cx, &(ebb_address){"0.0.0.0", 8});
    ebb_value v;
    ebb_status st = ebb_id_status(l.id);
    (void)arg;
    memset(seats, 0, sizeof seats);
    while (st == EBB_OK && (st = ebb_await(cx, ebb_listener_accept(cx, l), &v)) == EBB_OK) {
        seat *at = seats;
        while (at < seats + SEATS && at->used) at++;
        if (at == seats + SEATS) {
            (void)ebb_stream_close(cx, ebb_stream_of(v));
            continue;
        }
        *at = (seat){true, at->guest + 1, ebb_stream_of(v)};
        (void)ebb_fiber_spawn(cx, ebb_cx_region(cx), attend, at);
    }
    return st == EBB_ERR_CLOSED ? EBB_OK : st;
}

static int proxy_main(int argc, char **argv) {
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator()};
    repaired = argc > 1 && strcmp(argv[1], "repaired") == 0;
    return ebb_service_run(&opts, accept_all, NULL);
}

/* ---- who it asks, and who asks it ---------------------------------------------------------------------- */

static ebb_status think(ebb_cx *cx, void *arg) {
    ebb_stream s = {(uintptr_t)arg};
    char text[TEXT];
    ebb_value n;
    ebb_status st = ebb_await(cx, ebb_stream_read(cx, s, text, sizeof text), &n);
    if (st == EBB_OK) st = ebb_await(cx, ebb_after(cx, 20 * EBB_MS), NULL);
    if (st == EBB_OK) (void)ebb_await(cx, ebb_stream_write(cx, s, text, n.as.u), NULL);
    (void)ebb_stream_close(cx, s);
    return EBB_OK;
}

static ebb_status backend(ebb_cx *cx, void *arg) {
    ebb_listener l = ebb_tcp_listen(cx, &(ebb_address){"0.0.0.0", 9});
    ebb_value v;
    ebb_status st = ebb_id_status(l.id);
    (void)arg;
    while (st == EBB_OK && (st = ebb_await(cx, ebb_listener_accept(cx, l), &v)) == EBB_OK)
        (void)ebb_fiber_spawn(cx, ebb_cx_region(cx), think, v.as.p);
    return st == EBB_ERR_CLOSED ? EBB_OK : st;
}

static int backend_main(int argc, char **argv) {
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator()};
    (void)argc;
    (void)argv;
    return ebb_service_run(&opts, backend, NULL);
}

/* Asks again and again. Who has no answer after a while leaves. A byte of an answer is in no other's. */
static ebb_status ask(ebb_cx *cx, void *arg) {
    const char *name = arg;
    char in[TEXT];
    ebb_value v;
    for (int i = 0; i < QUESTIONS; i++) {
        if (ebb_await(cx, ebb_tcp_connect(cx, &(ebb_address){"10.0.0.2", 8}), &v) != EBB_OK) continue;
        ebb_stream s = ebb_stream_of(v);
        (void)ebb_await(cx, ebb_stream_write(cx, s, name, strlen(name)), NULL);
        ebb_status st = ebb_await(cx, ebb_within(cx, ebb_stream_read(cx, s, in, sizeof in), 60 * EBB_MS), &v);
        if (st == EBB_OK && in[0] != name[0]) ebb_lab_fail(ebb_lab_here(), "an answer to another's question");
        (void)ebb_stream_close(cx, s);
    }
    return EBB_OK;
}

static const char *const repaired_args[] = {"repaired", NULL};
static char anna[] = "anna", bert[] = "bert";
#define PROGRAMS(arguments)                                                                                  \
    {.name = "backend", .ip = "10.0.0.1", .main = backend_main},                                             \
        {.name = "proxy", .ip = "10.0.0.2", .main = proxy_main, .args = (arguments)},                        \
        {.name = "anna", .ip = "10.0.0.3", .fn = ask, .arg = anna}, {                                        \
        .name = "bert", .ip = "10.0.0.4", .fn = ask, .arg = bert                                             \
    }
static const ebb_lab_program race_programs[] = {PROGRAMS(NULL)}, fixed_programs[] = {PROGRAMS(repaired_args)};
enum { PROGRAMS_N = sizeof race_programs / sizeof *race_programs };
static const ebb_lab_network race_net = {.programs = race_programs, .n = PROGRAMS_N},
                             fixed_net = {.programs = fixed_programs, .n = PROGRAMS_N};

int main(int argc, char **argv) {
    static const ebb_lab_scenario race = {.name = "race",
                                          .about = "an answer goes to another who asks",
                                          .play = ebb_lab_network_play,
                                          .network = &race_net},
                                  fixed = {.name = "fixed",
                                           .about = "the same, repaired",
                                           .play = ebb_lab_network_play,
                                           .network = &fixed_net};
    static const ebb_lab_scenario *const all[] = {&race, &fixed, NULL};
    return ebb_lab_main(ebb_libc_allocator(), argc, argv, all);
}
