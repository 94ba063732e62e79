/* How long it takes from the commit of the turn that cancels an activity until the activity knows, beside a bare signal of
 * the same kind, taking turns with it. One loop has the orchestrations, another (a thread or a process) the activities.
 * Needs no cmocka: the benchmark has it too. */
#ifndef EBB_TESTS_DURABLE_LATENCY_H
#define EBB_TESTS_DURABLE_LATENCY_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <ebb/ebb.h>
#include <uv.h>

#include "durable/sqlite.h"
#include "durable/store.h"

enum { LATENCY_MOST = 2000 };

/* In memory that processes share. Times are those of the wall, since a server's commits have no other; 0: not yet. */
typedef struct latency {
    char url[400], listen_url[400]; /* the second: of the store of the activities; "": the same */
    unsigned n;                     /* samples, at most LATENCY_MOST */
    bool together;                  /* one worker has both, and there is no second loop */
    void (*ping)(void *arg);        /* a bare signal, which stores `heard` when it arrives */
    void *arg;
    atomic_uint begun;   /* activities */
    atomic_uint counted; /* cancels in the statistics of their worker */
    atomic_bool ready, stop;
    bool has_turn; /* the transaction of the writer does */
    _Atomic uint64_t committed, cancelled, heard;
    /* Samples. Without a hook at the commit `committed` stays 0, and `ours` has the time of the cancel. */
    uint64_t ours[LATENCY_MOST], bare[LATENCY_MOST];
} latency;

static inline latency *latency_new(const char *url, unsigned n) {
    latency *l = mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (l == MAP_FAILED || n > LATENCY_MOST) abort();
    (void)snprintf(l->url, sizeof l->url, "%s", url);
    l->n = n;
    return l;
}

static inline void latency_free(latency *l) {
    (void)munmap(l, sizeof *l);
}

static inline uint64_t latency_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * EBB_SECOND + (uint64_t)t.tv_nsec;
}

static inline int latency_compare(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The value that `part` of `all` are not above; the samples are sorted. */
static inline uint64_t latency_quantile(uint64_t *samples, unsigned n, unsigned part, unsigned all) {
    qsort(samples, n, sizeof *samples, latency_compare);
    const unsigned at = (unsigned)((uint64_t)n * part / all);
    return samples[at < n ? at : n - 1];
}

/* ---- a bare loop ------------------------------------------------------------------------------------------------------- */

/* A loop of libuv on a thread of its own that is told something by another thread. */
typedef struct latency_bare {
    latency *of;
    uv_loop_t uv;
    uv_async_t async;
    uv_thread_t thread;
    atomic_bool stop;
} latency_bare;

static inline void latency_heard(uv_async_t *async) {
    latency_bare *b = async->data;
    atomic_store(&b->of->heard, latency_now());
    if (atomic_load(&b->stop)) uv_close((uv_handle_t *)async, NULL);
}

static inline void latency_bare_main(void *arg) {
    (void)uv_run(&((latency_bare *)arg)->uv, UV_RUN_DEFAULT);
}

static inline void latency_bare_ping(void *arg) {
    (void)uv_async_send(&((latency_bare *)arg)->async);
}

static inline void latency_bare_begin(latency_bare *b, latency *of) {
    memset(b, 0, sizeof *b);
    b->of = of;
    b->async.data = b;
    if (uv_loop_init(&b->uv) != 0 || uv_async_init(&b->uv, &b->async, latency_heard) != 0 ||
        uv_thread_create(&b->thread, latency_bare_main, b) != 0)
        abort();
    of->ping = latency_bare_ping;
    of->arg = b;
}

static inline void latency_bare_end(latency_bare *b) {
    atomic_store(&b->stop, true);
    (void)uv_async_send(&b->async);
    (void)uv_thread_join(&b->thread);
    (void)uv_loop_close(&b->uv);
}

/* ---- the activities ---------------------------------------------------------------------------------------------------- */

static inline ebb_status latency_nap(ebb_cx *cx, uint64_t ns) {
    ebb_sleeper nap = {0};
    return ebb_sleep(cx, &nap, ns);
}

static inline ebb_status latency_hang(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    latency *l = ebb_activity_arg(a);
    (void)in;
    (void)out;
    atomic_fetch_add(&l->begun, 1);
    const ebb_status st = latency_nap(cx, 100000 * EBB_SECOND);
    atomic_store(&l->cancelled, latency_now());
    return st;
}

static inline ebb_status latency_open(ebb_cx *cx, const latency *l, const char *listen, ebb_store **out) {
    ebb_value v;
    const ebb_store_opts o = {.url = l->url, .listen_url = *listen != 0 ? listen : NULL};
    const ebb_status st = ebb_await(cx, ebb_store_open(cx, &o), &v);
    if (st == EBB_OK) *out = ebb_store_of(&v);
    else (void)fprintf(stderr, "open: %s: %s\n", ebb_status_name(st), ebb_durable_error());
    return st;
}

/* What was cancelled is not worth a line. */
static inline void latency_log(void *arg, ebb_durable_level level, const char *instance, const char *text) {
    (void)arg;
    if (level == EBB_DURABLE_ERROR) (void)fprintf(stderr, "error: %s: %s\n", instance, text);
}

static inline void latency_count(latency *l, const ebb_worker *w) {
    ebb_worker_stats s;
    ebb_worker_stats_of(w, &s);
    for (size_t i = 0; i < sizeof s.cancel_latency / sizeof s.cancel_latency[0]; i++)
        atomic_fetch_add(&l->counted, (unsigned)s.cancel_latency[i]);
}

static inline ebb_status latency_activities(ebb_cx *cx, void *arg) {
    latency *l = arg;
    ebb_store *s;
    ebb_worker *w = NULL;
    ebb_status st = latency_open(cx, l, l->listen_url, &s);
    if (st == EBB_OK) st = ebb_worker_open(cx, s, &(ebb_worker_opts){.log = latency_log}, &w);
    if (st == EBB_OK) st = ebb_worker_activity(w, "hang", latency_hang, l, NULL);
    if (st == EBB_OK) st = ebb_worker_begin(w);
    atomic_store(&l->ready, true);
    while (st == EBB_OK && !atomic_load(&l->stop)) st = latency_nap(cx, 20 * EBB_MS);
    if (w != NULL) latency_count(l, w);
    if (w != NULL) ebb_region_cancel(cx, ebb_worker_region(w), EBB_CANCEL_SHUTDOWN, "");
    return st;
}

/* ---- the orchestrations ------------------------------------------------------------------------------------------------ */

/* The event wins, and the turn that it gets cancels the call. */
static inline ebb_status latency_race(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step race[] = {ebb_orch_call(o, "hang", in, NULL), ebb_orch_event(o, "stop")};
    size_t won;
    (void)out;
    return ebb_orch_select(o, 2, race, &won);
}

/* Of commits that have a turn: the writer makes others beside. */
static inline int latency_committed(unsigned kind, void *arg, void *statement, void *ns) {
    latency *l = arg;
    const char *sql = sqlite3_sql(statement);
    (void)kind;
    (void)ns;
    if (strstr(sql, "INTO hist") != NULL) l->has_turn = true;
    if (!l->has_turn || strncmp(sql, "COMMIT", 6) != 0) return 0;
    l->has_turn = false;
    atomic_store(&l->committed, latency_now());
    return 0;
}

/* The writer's thread calls `latency_committed` as each of its statements ends. The lock orders this with that thread. */
static inline void latency_hook(latency *l, ebb_store *s, bool on) {
    if (strncmp(l->url, "sqlite:", 7) != 0) return;
    ebb__sqlite_file *f = ((ebb__sqlite_store *)ebb__store_gate(s)->self)->file;
    (void)pthread_mutex_lock(&f->lock);
    (void)sqlite3_trace_v2(f->db.at, on ? SQLITE_TRACE_PROFILE : 0, on ? latency_committed : NULL, l);
    (void)pthread_mutex_unlock(&f->lock);
}

/* Until a time is there. */
static inline ebb_status latency_until(ebb_cx *cx, _Atomic uint64_t *at, uint64_t *out) {
    ebb_status st = EBB_OK;
    while (st == EBB_OK && (*out = atomic_load(at)) == 0) st = latency_nap(cx, EBB_MS / 2);
    return st;
}

static inline ebb_status latency_sample(ebb_cx *cx, ebb_store *s, latency *l, unsigned i) {
    char id[24];
    uint64_t then, at = 0;
    (void)snprintf(id, sizeof id, "i%u", i);
    const unsigned before = atomic_load(&l->begun);
    const ebb_start_opts start = {.id = id, .name = "race"};
    ebb_status st = ebb_await(cx, ebb_instance_start(cx, s, &start), NULL);
    while (st == EBB_OK && atomic_load(&l->begun) == before) st = latency_nap(cx, EBB_MS / 2);
    if (st == EBB_OK) st = latency_nap(cx, 2 * EBB_MS); /* all is at rest, as before a bare signal */
    atomic_store(&l->heard, 0);
    atomic_store(&l->cancelled, 0);
    then = latency_now();
    if (st == EBB_OK && l->ping != NULL) {
        l->ping(l->arg);
        st = latency_until(cx, &l->heard, &at);
        l->bare[i] = at - then;
    }
    const ebb_signal_opts stop = {.id = id, .name = "stop"};
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_signal(cx, s, &stop), NULL);
    if (st == EBB_OK) st = latency_until(cx, &l->cancelled, &at);
    l->ours[i] = st == EBB_OK ? at - atomic_load(&l->committed) : 0;
    return st;
}

/* Takes all samples. */
static inline ebb_status latency_orchestrations(ebb_cx *cx, void *arg) {
    latency *l = arg;
    ebb_store *s;
    ebb_worker *w = NULL;
    ebb_status st = latency_open(cx, l, "", &s);
    if (st == EBB_OK) st = ebb_worker_open(cx, s, &(ebb_worker_opts){.log = latency_log}, &w);
    if (st == EBB_OK) st = ebb_worker_orch(w, "race", 1, latency_race);
    if (st == EBB_OK && l->together) st = ebb_worker_activity(w, "hang", latency_hang, l, NULL);
    if (st == EBB_OK) st = ebb_worker_begin(w);
    while (st == EBB_OK && !l->together && !atomic_load(&l->ready)) st = latency_nap(cx, 5 * EBB_MS);
    if (st == EBB_OK) latency_hook(l, s, true);
    for (unsigned i = 0; i < l->n && st == EBB_OK; i++) st = latency_sample(cx, s, l, i);
    if (st == EBB_OK) latency_hook(l, s, false);
    if (w != NULL) latency_count(l, w);
    atomic_store(&l->stop, true);
    if (w != NULL) ebb_region_cancel(cx, ebb_worker_region(w), EBB_CANCEL_SHUTDOWN, "");
    return st;
}

static inline ebb_status latency_loop(ebb_fiber_fn fn, latency *l) {
    ebb_loop *loop = NULL;
    const ebb_loop_opts opts = {.runtime = {.allocator = ebb_libc_allocator()}};
    const ebb_status st = ebb_loop_new(&opts, fn, l, &loop);
    return st == EBB_OK ? ebb_loop_join(loop) : st;
}

/* Both loops on threads of this process. */
static inline ebb_status latency_threads(latency *l) {
    ebb_loop *loops[2] = {NULL, NULL};
    ebb_status st = EBB_OK, one;
    const ebb_loop_opts opts = {.runtime = {.allocator = ebb_libc_allocator()}};
    if (!l->together) st = ebb_loop_new(&opts, latency_activities, l, &loops[0]);
    if (st == EBB_OK) st = ebb_loop_new(&opts, latency_orchestrations, l, &loops[1]);
    for (int i = 1; i >= 0; i--) {
        one = loops[i] != NULL ? ebb_loop_join(loops[i]) : EBB_OK;
        if (st == EBB_OK) st = one;
    }
    return st;
}

#endif
