/* Worker processes that a test stops, continues and ends, and what they say of themselves in shared memory. Each runs the
 * orchestration "order", which calls the activity "charge": it goes on until it is told to return, and its output is the
 * name of its process. Needs a Unix, and durable_crowd.h for what processes do in common. */
#ifndef EBB_TESTS_DURABLE_STAGE_H
#define EBB_TESTS_DURABLE_STAGE_H

#include "durable/worker.h"
#include "tests/support/durable_crowd.h"

enum { STAGE_ACTORS = 2 };

/* One process. The times are ns of CLOCK_MONOTONIC, which all processes share. */
typedef struct stage_actor {
    struct stage *stage;
    const char *name;
    uint64_t lease;
    bool handover;     /* of the activity */
    bool serves;       /* a service, which SIGTERM ends; else it ends with `stage.over` */
    atomic_bool go;    /* the activity may return */
    atomic_bool stops; /* it stops its own process first, and returns at once when that goes on */
    atomic_uint begun, cancelled, returned; /* activities */
    atomic_ullong begun_at, cancelled_at;   /* the last */
    atomic_ullong until;                    /* of its lease, by CLOCK_BOOTTIME; 0: it has none */
    atomic_uint late_acks, lease_lost;      /* of its worker */
} stage_actor;

typedef struct stage {
    crowd crowd;
    atomic_bool over;
    stage_actor actors[STAGE_ACTORS];
    atomic_bool started; /* the client has started the instance */
    atomic_uint completions,
        ordered; /* events of its history: activities that have completed, and were scheduled */
    char output[16];
} stage;

static inline stage *stage_new(const char *url) {
    static const char *const names[STAGE_ACTORS] = {"a", "b"};
    stage *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) return NULL;
    (void)snprintf(s->crowd.url, sizeof s->crowd.url, "%s", url);
    for (int i = 0; i < STAGE_ACTORS; i++) {
        s->actors[i].stage = s;
        s->actors[i].name = names[i];
        s->actors[i].lease = EBB_SECOND;
    }
    return s;
}

static inline void stage_free(stage *s) {
    (void)munmap(s, sizeof *s);
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

static inline ebb_status stage_order(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "charge", in, NULL), out);
}

static inline ebb_status stage_charge(ebb_cx *cx, ebb_activity *activity, ebb_blob in, ebb_blob *out) {
    stage_actor *a = ebb_activity_arg(activity);
    ebb_status st = EBB_OK;
    (void)in;
    atomic_store(&a->begun_at, crowd_now());
    atomic_fetch_add(&a->begun, 1);
    if (atomic_exchange(&a->stops, false)) (void)raise(SIGSTOP);
    else
        while (st == EBB_OK && !atomic_load(&a->go)) st = crowd_nap(cx, 10 * EBB_MS);
    atomic_fetch_add(&a->returned, 1);
    *out = ebb_blob_text(a->name);
    if (st != EBB_OK) atomic_store(&a->cancelled_at, crowd_now());
    if (st != EBB_OK) atomic_fetch_add(&a->cancelled, 1);
    return st;
}

static inline ebb_status stage_begin(ebb_cx *cx, stage_actor *a, ebb_worker **out) {
    ebb_store *s;
    ebb_status st = crowd_open(cx, &a->stage->crowd, &s);
    const ebb_worker_opts o = {.name = a->name, .lease = a->lease, .log = crowd_log};
    if (st == EBB_OK) st = ebb_worker_open(cx, s, &o, out);
    if (st == EBB_OK) st = ebb_worker_orch(*out, "order", 1, stage_order);
    if (st == EBB_OK)
        st = ebb_worker_activity(*out, "charge", stage_charge, a,
                                 &(ebb_activity_opts){.handover = a->handover});
    return st == EBB_OK ? ebb_worker_begin(*out) : st;
}

static inline ebb_status stage_serve(ebb_cx *cx, void *actor) {
    ebb_worker *w;
    return stage_begin(cx, actor, &w);
}

static inline ebb_status stage_work(ebb_cx *cx, void *actor) {
    stage_actor *a = actor;
    ebb_worker *w;
    ebb_status st = stage_begin(cx, a, &w);
    while (st == EBB_OK && !atomic_load(&a->stage->over)) {
        ebb_worker_stats stats;
        ebb_worker_stats_of(w, &stats);
        atomic_store(&a->late_acks, (unsigned)stats.late_acks);
        atomic_store(&a->lease_lost, (unsigned)stats.lease_lost);
        atomic_store(&a->until, w->work_node.node.id != 0 ? w->work_node.until : 0);
        st = crowd_nap(cx, 10 * EBB_MS);
    }
    if (st == EBB_OK) ebb_region_cancel(cx, ebb_worker_region(w), EBB_CANCEL_SHUTDOWN, "the test is over");
    return st;
}

/* ---- the client ---------------------------------------------------------------------------------------------------- */

static inline void stage_count(stage *s, const ebb_value *history) {
    size_t n;
    const ebb_history_event *e = ebb_history_of(history, &n);
    for (size_t i = 0; i < n; i++) {
        atomic_fetch_add(&s->completions, strcmp(e[i].kind, "activity_completed") == 0);
        atomic_fetch_add(&s->ordered, strcmp(e[i].kind, "activity_scheduled") == 0);
    }
}

/* Starts the instance, waits for its end, and looks at its history. */
static inline ebb_status stage_buy(ebb_cx *cx, void *arg) {
    stage *g = arg;
    ebb_store *s;
    ebb_value v;
    ebb_status st = crowd_open(cx, &g->crowd, &s);
    if (st != EBB_OK) return st;
    do st = ebb_await(cx, ebb_instance_start(cx, s, &(ebb_start_opts){.id = "one", .name = "order"}), NULL);
    while (crowd_may_retry(cx, st));
    atomic_store(&g->started, st == EBB_OK);
    if (st == EBB_OK) do
            st = ebb_await(cx, ebb_instance_wait(cx, s, "one"), &v);
        while (crowd_may_retry(cx, st));
    if (st != EBB_OK) return st;
    const ebb_instance_info *i = ebb_instance_info_of(&v);
    (void)snprintf(g->output, sizeof g->output, "%.*s", (int)i->output.n, (const char *)i->output.at);
    ebb_value_discard(cx, v);
    do st = ebb_await(cx, ebb_instance_history(cx, s, "one", &(ebb_history_opts){.verify = true}), &v);
    while (crowd_may_retry(cx, st));
    if (st != EBB_OK) return st;
    stage_count(g, &v);
    ebb_value_discard(cx, v);
    return EBB_OK;
}

/* ---- processes ------------------------------------------------------------------------------------------------------ */

static inline pid_t stage_fork(ebb_fiber_fn fn, void *arg, bool serves) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it must not outlive a test that was ended by its alarm */
    const ebb_loop_opts opts = {.runtime = {.allocator = ebb_libc_allocator()}};
    if (serves) {
        const ebb_service_opts service = {
            .loop = opts, .shutdown = {.budget = 60 * EBB_SECOND, .cancel_at = EBB_SECOND / 2}};
        _exit(ebb_service_run(&service, fn, arg));
    }
    ebb_loop *loop;
    ebb_status st = ebb_loop_new(&opts, fn, arg, &loop);
    if (st == EBB_OK) st = ebb_loop_join(loop);
    if (st != EBB_OK) (void)fprintf(stderr, "a process: %s: %s\n", ebb_status_name(st), ebb_durable_error());
    _exit(st == EBB_OK ? 0 : 1);
}

static inline pid_t stage_actor_fork(stage_actor *a) {
    return stage_fork(a->serves ? stage_serve : stage_work, a, a->serves);
}

/* Another process changes it. The alarm of the test is the limit. */
static inline void stage_until(const atomic_uint *n, unsigned least) {
    while (atomic_load(n) < least) crowd_pause(5 * EBB_MS);
}

/* Whether it has stopped (SIGSTOP), and not ended. */
static inline bool stage_has_stopped(pid_t pid) {
    int status = 0;
    return waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status);
}

static inline bool stage_ended_well(pid_t pid) {
    int status = -1;
    return waitpid(pid, &status, 0) == pid && status == 0;
}

#endif
