/* Rounds of the mix of orchestrations (durable_mix.h), run by processes that may be killed at any time. The *client* starts
 * them, again and again from the first when it was killed itself: starts and signals that were done before change nothing.
 * In the end it looks at every instance and its history. */
#ifndef EBB_TESTS_DURABLE_CROWD_H
#define EBB_TESTS_DURABLE_CROWD_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ebb/ebb.h>

#include "tests/support/durable_mix.h"

#define CROWD_LEASE EBB_SECOND

/* Between the processes. */
typedef struct crowd {
    char url[400];
    atomic_uint rounds; /* begun so far */
    atomic_bool last;   /* no more rounds are begun */
    atomic_uint ended;  /* instances that were looked at, and are as they should be */
    atomic_bool stop;   /* workers end */
    mix_pace pace;
} crowd;

static inline crowd *crowd_new(const char *url) {
    crowd *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED) return NULL;
    (void)snprintf(c->url, sizeof c->url, "%s", url);
    c->pace = (mix_pace){20 * EBB_MS, 40 * EBB_MS};
    return c;
}

static inline void crowd_free(crowd *c) {
    (void)munmap(c, sizeof *c);
}

static inline ebb_status crowd_nap(ebb_cx *cx, uint64_t ns) {
    ebb_sleeper nap = {0};
    return ebb_sleep(cx, &nap, ns);
}

/* What can't be done while the store is away is done when it is back. */
static inline bool crowd_may_retry(ebb_cx *cx, ebb_status st) {
    const bool may = st == EBB_ERR_UNAVAILABLE || st == EBB_ERR_BUSY;
    if (may) (void)crowd_nap(cx, 50 * EBB_MS);
    return may;
}

static inline ebb_status crowd_open(ebb_cx *cx, const crowd *c, ebb_store **out) {
    ebb_value v;
    ebb_status st;
    do {
        st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = c->url}), &v);
        if (st == EBB_OK) *out = ebb_store_of(&v);
    } while (crowd_may_retry(cx, st));
    if (st != EBB_OK) (void)fprintf(stderr, "open: %s: %s\n", ebb_status_name(st), ebb_durable_error());
    return st;
}

static inline void crowd_say(ebb_status st, const char *what, const char *id) {
    (void)fprintf(stderr, "%s of %s: %s: %s\n", what, id, ebb_status_name(st), ebb_durable_error());
}

static inline void crowd_id(char out[64], const mix_kind *k, unsigned round) {
    (void)snprintf(out, 64, "%s-%u", k->name, round);
}

/* ---- the client --------------------------------------------------------------------------------------------------- */

static inline ebb_status crowd_start(ebb_cx *cx, ebb_store *s, const crowd *c, const mix_kind *k,
                                     unsigned round) {
    char id[64], span[24];
    ebb_status st;
    crowd_id(id, k, round);
    (void)snprintf(span, sizeof span, "%llu", (unsigned long long)c->pace.timer);
    const ebb_start_opts o = {.id = id, .name = k->name, .input = ebb_blob_text(span)};
    do st = ebb_await(cx, ebb_instance_start(cx, s, &o), NULL);
    while (crowd_may_retry(cx, st));
    if (st != EBB_OK) crowd_say(st, "start", id);
    return st;
}

static inline ebb_status crowd_signal(ebb_cx *cx, ebb_store *s, unsigned round, const char *body) {
    char id[64];
    ebb_status st;
    (void)snprintf(id, sizeof id, "signals-%u", round);
    const ebb_signal_opts o = {.id = id, .name = "go", .body = ebb_blob_text(body), .dedup = body};
    do st = ebb_await(cx, ebb_instance_signal(cx, s, &o), NULL);
    while (crowd_may_retry(cx, st));
    if (st == EBB_ERR_UNKNOWN_INSTANCE) return EBB_OK; /* it has ended with both */
    if (st != EBB_OK) crowd_say(st, "signal", id);
    return st;
}

static inline ebb_status crowd_cancel(ebb_cx *cx, ebb_store *s, unsigned round) {
    char id[64];
    ebb_status st;
    (void)snprintf(id, sizeof id, "saga-%u", round);
    do st = ebb_await(cx, ebb_instance_cancel(cx, s, id, NULL), NULL);
    while (crowd_may_retry(cx, st));
    if (st == EBB_ERR_UNKNOWN_INSTANCE) return EBB_OK;
    if (st != EBB_OK) crowd_say(st, "cancel", id);
    return st;
}

static inline ebb_status crowd_round(ebb_cx *cx, ebb_store *s, const crowd *c, unsigned round) {
    ebb_status st = EBB_OK;
    for (int i = 0; i < MIX_STARTED && st == EBB_OK; i++) st = crowd_start(cx, s, c, &mix_kinds[i], round);
    if (st == EBB_OK) st = crowd_signal(cx, s, round, "x");
    if (st == EBB_OK) st = crowd_cancel(cx, s, round);
    return st == EBB_OK ? crowd_signal(cx, s, round, "y") : st;
}

/* Waits for its end. False: it has ended otherwise than it should. */
static inline bool crowd_is_right(ebb_cx *cx, ebb_store *s, const char *id, ebb_instance_state state,
                                  const char *output, uint64_t executions) {
    ebb_value v;
    ebb_status st;
    do st = ebb_await(cx, ebb_instance_wait(cx, s, id), &v);
    while (crowd_may_retry(cx, st));
    if (st != EBB_OK) {
        crowd_say(st, "wait", id);
        return false;
    }
    const ebb_instance_info *i = ebb_instance_info_of(&v);
    const bool right = i->state == state && i->output.n == strlen(output) &&
                       (i->output.n == 0 || memcmp(i->output.at, output, i->output.n) == 0) &&
                       i->execution == executions;
    if (!right)
        (void)fprintf(stderr, "%s: %s '%.*s', execution %llu, %s %s %s\n", id,
                      ebb_instance_state_name(i->state), (int)i->output.n, (const char *)i->output.at,
                      (unsigned long long)i->execution, i->text,
                      i->failure.code != NULL ? i->failure.code : "",
                      i->failure.message != NULL ? i->failure.message : "");
    ebb_value_discard(cx, v);
    return right;
}

static inline bool crowd_verifies(ebb_cx *cx, ebb_store *s, const char *id, uint64_t executions) {
    ebb_status st = EBB_OK;
    for (uint64_t e = 1; e <= executions && st == EBB_OK; e++) {
        const ebb_history_opts o = {.execution = e, .verify = true};
        do st = ebb_await(cx, ebb_instance_history(cx, s, id, &o), NULL);
        while (crowd_may_retry(cx, st));
    }
    if (st != EBB_OK) crowd_say(st, "history", id);
    return st == EBB_OK;
}

static inline bool crowd_look_at(ebb_cx *cx, ebb_store *s, crowd *c, const mix_kind *k, unsigned round) {
    char id[64], other[80];
    crowd_id(id, k, round);
    bool good = crowd_is_right(cx, s, id, k->state, k->output, k->executions) &&
                crowd_verifies(cx, s, id, k->executions);
    if (good && k->other != NULL) {
        const char *output = k->other_state == EBB_INSTANCE_COMPLETED ? "s" : "";
        (void)snprintf(other, sizeof other, "%s%s", id, k->other);
        good = crowd_is_right(cx, s, other, k->other_state, output, 1) && crowd_verifies(cx, s, other, 1);
    }
    atomic_fetch_add(&c->ended, good);
    return good;
}

/* EBB_OK: all rounds have ended, and every instance is as it should be. */
static inline ebb_status crowd_client(ebb_cx *cx, ebb_store *s, crowd *c) {
    ebb_status st = EBB_OK;
    bool good = true;
    unsigned round = 0;
    for (; st == EBB_OK; round++) {
        if (round >= atomic_load(&c->rounds)) {
            if (atomic_load(&c->last)) break;
            atomic_store(&c->rounds, round + 1);
        }
        st = crowd_round(cx, s, c, round);
        if (st == EBB_OK && round + 1 == atomic_load(&c->rounds)) st = crowd_nap(cx, 150 * EBB_MS);
    }
    atomic_store(&c->ended, 0);
    for (unsigned r = 0; r < round && st == EBB_OK; r++) {
        for (int i = 0; i < MIX_STARTED; i++) good &= crowd_look_at(cx, s, c, &mix_kinds[i], r);
    }
    return st == EBB_OK && !good ? EBB_ERR_ORACLE : st;
}

/* ---- a process ---------------------------------------------------------------------------------------------------- */

static inline void crowd_log(void *arg, ebb_durable_level level, const char *instance, const char *text) {
    (void)arg;
    if (level == EBB_DURABLE_ERROR) (void)fprintf(stderr, "error: %s: %s\n", instance, text);
}

static inline ebb_status crowd_work(ebb_cx *cx, ebb_store *s, crowd *c, ebb_worker **out) {
    const ebb_worker_opts o = {.lease = CROWD_LEASE, .double_run = 3, .cache = 20, .log = crowd_log};
    ebb_status st = ebb_worker_open(cx, s, &o, out);
    if (st == EBB_OK) st = mix_register(*out, &c->pace);
    return st == EBB_OK ? ebb_worker_begin(*out) : st;
}

static inline ebb_status crowd_worker_main(ebb_cx *cx, void *arg) {
    crowd *c = arg;
    ebb_store *s;
    ebb_worker *w;
    ebb_status st = crowd_open(cx, c, &s);
    if (st == EBB_OK) st = crowd_work(cx, s, c, &w);
    while (st == EBB_OK && !atomic_load(&c->stop)) st = crowd_nap(cx, 50 * EBB_MS);
    if (st == EBB_OK) ebb_region_cancel(cx, ebb_worker_region(w), EBB_CANCEL_SHUTDOWN, "the test is over");
    return st;
}

static inline ebb_status crowd_client_main(ebb_cx *cx, void *arg) {
    ebb_store *s;
    ebb_status st = crowd_open(cx, arg, &s);
    if (st == EBB_OK) st = crowd_client(cx, s, arg);
    if (st == EBB_OK) atomic_store(&((crowd *)arg)->stop, true);
    return st;
}

/* This process from here on: a loop with the client, if it has that, and loops with workers. */
static inline void crowd_process(crowd *c, int workers, bool client) {
    ebb_loop *loops[9];
    int n = 0;
    ebb_status st = EBB_OK, one;
    const ebb_loop_opts opts = {.runtime = {.allocator = ebb_libc_allocator()}};
    for (int i = 0; i < workers && st == EBB_OK; i++)
        st = ebb_loop_new(&opts, crowd_worker_main, c, &loops[n++]);
    if (client && st == EBB_OK) st = ebb_loop_new(&opts, crowd_client_main, c, &loops[n++]);
    while (n > 0) {
        one = loops[--n] != NULL ? ebb_loop_join(loops[n]) : EBB_OK;
        if (st == EBB_OK) st = one;
    }
    if (st != EBB_OK) (void)fprintf(stderr, "a process of the crowd: %s\n", ebb_status_name(st));
    _exit(st == EBB_OK ? 0 : 1);
}

static inline pid_t crowd_fork(crowd *c, int workers, bool client) {
    const pid_t pid = fork();
    if (pid == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it must not outlive a test that its alarm has ended */
    if (pid == 0) crowd_process(c, workers, client);
    return pid;
}

static inline uint64_t crowd_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * EBB_SECOND + (uint64_t)t.tv_nsec;
}

static inline void crowd_pause(uint64_t ns) {
    (void)nanosleep(&(struct timespec){(time_t)(ns / EBB_SECOND), (long)(ns % EBB_SECOND)}, NULL);
}

static inline uint64_t crowd_random(uint64_t *state, uint64_t below) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % below;
}

/* EBB_CRASH_SECONDS: how long processes are killed. */
static inline uint64_t crowd_span(void) {
    const char *text = getenv("EBB_CRASH_SECONDS");
    return (text != NULL ? strtoull(text, NULL, 10) : 12) * EBB_SECOND;
}

static inline uint64_t crowd_seed(void) {
    const char *text = getenv("EBB_CRASH_SEED");
    return text != NULL ? (uint64_t)strtoull(text, NULL, 10) : (uint64_t)getpid();
}

/* Kills it. False: it had ended by itself, and not well. */
static inline bool crowd_kill(pid_t pid) {
    int status = 0;
    (void)kill(pid, SIGKILL);
    if (waitpid(pid, &status, 0) != pid) return false;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

#endif
