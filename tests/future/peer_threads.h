/* Runtimes on threads of their own: each pumps, and sleeps on a condition variable until somebody wakes it or
 * something is due. Everything is traced, and the trace is checked when the thread has ended. */
#ifndef EBB_TESTS_PEER_THREADS_H
#define EBB_TESTS_PEER_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <ebb/ebb.h>

#if defined(__SANITIZE_THREAD__)
#define SLOW_BUILD 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLOW_BUILD 1
#endif
#endif
#ifndef SLOW_BUILD
#define SLOW_BUILD 0
#endif

typedef struct loop {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool rung; /* by `lock` */
    ebb_runtime *rt;
    ebb_peer *peer;
    bool traced;
    bool abrupt; /* the runtime is freed as it is, when it was told to stop */
    bool lazy;   /* who wakes it takes some time for that */
    bool spins;  /* does not sleep: so what races does so within nanoseconds */
    uint32_t idle;
    _Atomic bool stop;
    ebb_poll_fn task; /* the first of the runtime's root; NULL: none */
    void *arg;
    uint8_t *trace;
    size_t trace_n, trace_room;
} loop;

static inline uint64_t clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * EBB_SECOND + (uint64_t)t.tv_nsec;
}

static inline void loop_wake(void *ctx) {
    loop *l = ctx;
    if (l->lazy) sched_yield();
    pthread_mutex_lock(&l->lock);
    l->rung = true;
    pthread_cond_signal(&l->woken);
    pthread_mutex_unlock(&l->lock);
}

static inline void loop_keep(void *ctx, const void *bytes, size_t n) {
    loop *l = ctx;
    if (l->trace_n + n > l->trace_room) {
        l->trace_room = 2 * (l->trace_n + n);
        l->trace = realloc(l->trace, l->trace_room);
        assert_non_null(l->trace);
    }
    memcpy(l->trace + l->trace_n, bytes, n);
    l->trace_n += n;
}

static inline void loop_sleep(loop *l, uint64_t until) {
    struct timespec t = {(time_t)(until / EBB_SECOND), (long)(until % EBB_SECOND)};
    pthread_mutex_lock(&l->lock);
    while (!l->rung) {
        if (until == EBB_FOREVER) pthread_cond_wait(&l->woken, &l->lock);
        else if (pthread_cond_timedwait(&l->woken, &l->lock, &t) != 0) break;
    }
    l->rung = false;
    pthread_mutex_unlock(&l->lock);
}

static inline bool loop_closed(loop *l) {
    ebb_region_state s;
    return ebb_region_state_of(ebb_runtime_host(l->rt), ebb_runtime_root(l->rt), &s) == EBB_OK &&
           s == EBB_REGION_CLOSED;
}

/* True if it is over: it was told to stop, and all has ended. */
static inline bool loop_turn(loop *l) {
    if (l->stop) {
        if (l->abrupt) return true;
        ebb_region_close(ebb_runtime_host(l->rt), ebb_runtime_root(l->rt));
    }
    ebb_inbox_receive(l->rt);
    ebb_runtime_advance(l->rt, clock_now());
    ebb_status st = ebb_runtime_pump(l->rt, 32);
    if (l->traced) ebb_trace_take(l->rt, false, loop_keep, l);
    if (loop_closed(l)) return true;
    if (st == EBB_OK && !l->spins) loop_sleep(l, ebb_runtime_next_due(l->rt));
    if (st == EBB_OK && l->spins && ++l->idle % 256 == 0) sched_yield(); /* the other may need the core */
    return false;
}

static inline void *loop_run(void *arg) {
    loop *l = arg;
    (void)ebb_runtime_adopt(l->rt);
    if (l->task != NULL) (void)ebb_spawn(ebb_runtime_host(l->rt), ebb_runtime_root(l->rt), l->task, l->arg);
    while (!loop_turn(l)) continue;
    if (l->traced) ebb_trace_take(l->rt, true, loop_keep, l);
    ebb_runtime_free(l->rt);
    return NULL;
}

static inline void loop_new(loop *l, uint8_t id, bool traced) {
    memset(l, 0, sizeof *l);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->woken, &attr);
    pthread_condattr_destroy(&attr);
    ebb_runtime_opts opts = {.allocator = ebb_libc_allocator(), .runtime_id = id, .now = clock_now()};
    assert_int_equal(ebb_runtime_new(&opts, &l->rt), EBB_OK);
    l->traced = traced;
    if (traced) assert_int_equal(ebb_trace_start(l->rt, 1 << 20), EBB_OK);
    assert_int_equal(ebb_inbox_on_wake(l->rt, loop_wake, l), EBB_OK);
    assert_int_equal(ebb_peer_of(l->rt, &l->peer), EBB_OK);
}

static inline void loop_start(loop *l, ebb_poll_fn task, void *arg) {
    l->task = task;
    l->arg = arg;
    assert_int_equal(pthread_create(&l->thread, NULL, loop_run, l), 0);
}

static inline void loop_stop(loop *l) {
    l->stop = true;
    loop_wake(l);
}

/* The trace is the caller's to free. */
static inline void loop_join(loop *l) {
    pthread_join(l->thread, NULL);
    ebb_peer_release(l->peer);
    pthread_cond_destroy(&l->woken);
    pthread_mutex_destroy(&l->lock);
}

static inline void loop_check(const loop *l) {
    ebb_checker *c = ebb_checker_new(ebb_libc_allocator());
    ebb_trace_reader reader;
    ebb_event ev;
    assert_int_equal(ebb_trace_reader_open(&reader, l->trace, l->trace_n), EBB_OK);
    while (ebb_trace_reader_next(&reader, &ev) == EBB_OK && ebb_checker_event(c, &ev) == EBB_OK) continue;
    if (ebb_checker_violation(c) == NULL) (void)ebb_checker_end(c, true);
    if (ebb_checker_violation(c) != NULL) fail_msg("%s", ebb_checker_violation(c)->text);
    ebb_checker_free(c);
}

static inline uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Some time that no clock has to measure. */
static inline void dawdle(uint64_t *random) {
    for (volatile uint32_t i = (uint32_t)(next_random(random) % 4096); i > 0; i--) continue;
}

#endif
