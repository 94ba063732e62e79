/* Orchestrations and clients on a loop of their own, by the public functions alone, but for the counters of the store. */
#include "bench/durable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "durable/store.h"

enum { PARALLEL = 5, SEQUENCE = 10, PLACES = 512, WARM = 32, EMPTY = 100, EVENTS = 1000, HOT = 1000 };

static uint64_t now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * EBB_SECOND + (uint64_t)t.tv_nsec;
}

static ebb_blob input(void) {
    static const char bytes[DURABLE_INPUT] = "input";
    return (ebb_blob){bytes, sizeof bytes};
}

/* ---- orchestrations ------------------------------------------------------------------------------------------------ */

static ebb_status echo(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    (void)cx;
    (void)a;
    *out = in;
    return EBB_OK;
}

static ebb_status parallel(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step all[PARALLEL];
    for (size_t i = 0; i < PARALLEL; i++) all[i] = ebb_orch_call(o, "echo", in, NULL);
    ebb_status st = ebb_orch_join(o, PARALLEL, all);
    for (size_t i = 0; i < PARALLEL && st == EBB_OK; i++) st = ebb_orch_await(o, all[i], out);
    return st;
}

static ebb_status in_sequence(ebb_orch *o, ebb_blob in, unsigned n, ebb_blob *out) {
    ebb_status st = EBB_OK;
    *out = in;
    for (unsigned i = 0; i < n && st == EBB_OK; i++)
        st = ebb_orch_await(o, ebb_orch_call(o, "echo", *out, NULL), out);
    return st;
}

static ebb_status empty(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)o;
    *out = in;
    return EBB_OK;
}

static ebb_status sequence(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return in_sequence(o, in, SEQUENCE, out);
}

/* A scheduled and a completed event a call. */
static ebb_status history(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_status st = in_sequence(o, in, EVENTS / 2, out);
    ebb_orch_set_status(o, ebb_blob_text("long"));
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_event(o, "go"), out) : st;
}

static ebb_status waits(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)in;
    return ebb_orch_await(o, ebb_orch_event(o, "go"), out);
}

/* ---- a loop with a worker -------------------------------------------------------------------------------------------- */

typedef struct session {
    const char *url;
    ebb_durability durability;
    uint32_t cache;
    void (*body)(ebb_cx *cx, struct session *s);
    void *arg;
    ebb_store *store;
    ebb_worker *worker;
} session;

static ebb_status session_main(ebb_cx *cx, void *arg) {
    session *s = arg;
    ebb_value v;
    const ebb_store_opts open = {.url = s->url, .durability = s->durability};
    const ebb_worker_opts opts = {.turns = PLACES, .activities = PLACES, .cache = s->cache};
    const ebb_status st = ebb_await(cx, ebb_store_open(cx, &open), &v);
    if (st != EBB_OK) fprintf(stderr, "ebb-bench: %s: %s\n", s->url, ebb_durable_error());
    bench_must(st == EBB_OK);
    s->store = ebb_store_of(&v);
    bench_must(ebb_worker_open(cx, s->store, &opts, &s->worker) == EBB_OK);
    bench_must(ebb_worker_orch(s->worker, "empty", 1, empty) == EBB_OK &&
               ebb_worker_orch(s->worker, "parallel", 1, parallel) == EBB_OK &&
               ebb_worker_orch(s->worker, "sequence", 1, sequence) == EBB_OK &&
               ebb_worker_orch(s->worker, "history", 1, history) == EBB_OK &&
               ebb_worker_orch(s->worker, "waits", 1, waits) == EBB_OK &&
               ebb_worker_activity(s->worker, "echo", echo, NULL, NULL) == EBB_OK &&
               ebb_worker_begin(s->worker) == EBB_OK);
    s->body(cx, s);
    ebb_region_close(cx, ebb_worker_region(s->worker));
    return EBB_OK;
}

static void session_run(session *s) {
    ebb_loop *loop = NULL;
    const ebb_loop_opts opts = {.runtime = {.allocator = ebb_libc_allocator()}};
    bench_must(ebb_loop_new(&opts, session_main, s, &loop) == EBB_OK && ebb_loop_join(loop) == EBB_OK);
}

static void start(ebb_cx *cx, session *s, const char *id, const char *name) {
    const ebb_start_opts o = {.id = id, .name = name, .input = input()};
    bench_must(ebb_await(cx, ebb_instance_start(cx, s->store, &o), NULL) == EBB_OK);
}

static void wait_for(ebb_cx *cx, session *s, const char *id) {
    ebb_value v;
    bench_must(ebb_await(cx, ebb_instance_wait(cx, s->store, id), &v) == EBB_OK);
    bench_must(ebb_instance_info_of(&v)->state == EBB_INSTANCE_COMPLETED);
    ebb_value_discard(cx, v);
}

static void go(ebb_cx *cx, session *s, const char *id) {
    const ebb_signal_opts o = {.id = id, .name = "go"};
    bench_must(ebb_await(cx, ebb_instance_signal(cx, s->store, &o), NULL) == EBB_OK);
}

static void nap(ebb_cx *cx, uint64_t until) {
    ebb_sleeper n = {0};
    const uint64_t now = now_ns();
    if (until > now) bench_must(ebb_sleep(cx, &n, until - now) == EBB_OK);
}

/* ---- runs ---------------------------------------------------------------------------------------------------------- */

typedef struct driver {
    const durable_load *load;
    durable_outcome *out;
    session *session;
    const char *name;            /* of the orchestration */
    unsigned begun, most, ended; /* runs; `most`: of this phase */
} driver;

static void one_run(ebb_cx *cx, driver *d) {
    char id[32];
    const unsigned i = d->begun++;
    (void)snprintf(id, sizeof id, "%c%u", *d->name, i);
    const uint64_t from = now_ns();
    start(cx, d->session, id, d->name);
    wait_for(cx, d->session, id);
    d->out->latency[d->ended++ % DURABLE_SAMPLES] = now_ns() - from;
}

static ebb_status client(ebb_cx *cx, void *arg) {
    driver *d = arg;
    while (d->begun < d->most) one_run(cx, d);
    return EBB_OK;
}

static ebb_status client_once(ebb_cx *cx, void *arg) {
    one_run(cx, arg);
    return EBB_OK;
}

static void drive(ebb_cx *cx, driver *d, const char *name, unsigned runs, double rate) {
    ebb_region r = ebb_region_open(cx, NULL);
    const uint64_t from = now_ns();
    d->name = name;
    d->most += runs;
    d->ended = 0;
    for (unsigned i = 0; rate == 0 && i < d->load->at_once; i++) (void)ebb_fiber_spawn(cx, r, client, d);
    for (unsigned i = 0; rate > 0 && i < runs; i++) {
        (void)ebb_fiber_spawn(cx, r, client_once, d);
        nap(cx, from + (uint64_t)(1e9 / rate * (i + 1)));
    }
    bench_must(ebb_region_join(cx, r) == EBB_OK && d->ended == runs);
}

static int by_time(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void drive_all(ebb_cx *cx, session *s) {
    driver *d = s->arg;
    const durable_load *load = d->load;
    durable_outcome *out = d->out;
    const char *name = load->parallel ? "parallel" : "sequence";
    ebb_worker_stats before, after;
    ebb_provider_stats none, had, has;
    if (load->runs == 0) return; /* only the tables are wanted */
    d->session = s;
    drive(cx, d, name, WARM, 0);
    ebb__store_stats(s->store, &none);
    drive(cx, d, "empty", EMPTY, 0);
    ebb_worker_stats_of(s->worker, &before);
    ebb__store_stats(s->store, &had);
    const uint64_t from = now_ns();
    drive(cx, d, name, load->runs, load->rate);
    out->seconds = (double)(now_ns() - from) / 1e9;
    ebb_worker_stats_of(s->worker, &after);
    ebb__store_stats(s->store, &has);
    out->calls = load->parallel ? PARALLEL : SEQUENCE;
    out->turns = (double)(after.turns - before.turns) / load->runs;
    const double fixed = (double)(had.statements - none.statements) / EMPTY;
    const double step = ((double)(has.statements - had.statements) / load->runs - fixed) / out->calls;
    out->statements =
        (double)(int)(step * 100 + 0.5) / 100; /* the store's clock is written twice a second, too */
    out->members = (double)(has.members - had.members) / (double)(has.commits - had.commits);
    qsort(out->latency, load->runs, sizeof out->latency[0], by_time);
}

void durable_run(const durable_load *load, durable_outcome *out) {
    driver d = {.load = load, .out = out};
    session s = {.url = load->url, .durability = load->durability, .body = drive_all, .arg = &d};
    bench_must(load->runs <= DURABLE_SAMPLES);
    session_run(&s);
}

/* ---- an instance that waits ------------------------------------------------------------------------------------------ */

static void make_long(ebb_cx *cx, session *s) {
    ebb_value v;
    bool is_long = false;
    start(cx, s, "long", "history");
    while (!is_long) {
        nap(cx, now_ns() + 5 * EBB_MS);
        bench_must(ebb_await(cx, ebb_instance_status(cx, s->store, "long"), &v) == EBB_OK);
        is_long = ebb_instance_info_of(&v)->custom.n != 0;
        ebb_value_discard(cx, v);
    }
}

static void end_long(ebb_cx *cx, session *s) {
    const uint64_t from = now_ns();
    go(cx, s, "long");
    wait_for(cx, s, "long");
    *(double *)s->arg = (double)(now_ns() - from);
}

static void make_and_end_long(ebb_cx *cx, session *s) {
    make_long(cx, s);
    end_long(cx, s);
}

double durable_replay(const char *url, bool cold) {
    double ns = 0;
    session s = {.url = url, .body = cold ? make_long : make_and_end_long, .arg = &ns};
    session_run(&s);
    s.body = end_long;
    if (cold) session_run(&s);
    return ns;
}

static void fill(ebb_cx *cx, session *s) {
    ebb_worker_stats stats = {0};
    char id[24];
    for (unsigned i = 0; i < HOT; i++) {
        (void)snprintf(id, sizeof id, "hot%u", i);
        start(cx, s, id, "waits");
    }
    while (stats.hot < HOT) {
        nap(cx, now_ns() + 5 * EBB_MS);
        ebb_worker_stats_of(s->worker, &stats);
    }
    *(double *)s->arg = (double)stats.hot_bytes / stats.hot;
}

double durable_hot_bytes(const char *url) {
    double bytes = 0;
    session s = {.url = url, .body = fill, .arg = &bytes};
    session_run(&s);
    return bytes;
}
