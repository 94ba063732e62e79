/* The kernel's rows of the cost table: what a user of the public API pays. */
#define _POSIX_C_SOURCE 200809L
#include "bench/bench.h"

#include <ebb/ebb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MILLION = 1000000 };

static ebb_status end_at_once(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_OK;
}

static ebb_status until_cancelled(ebb_cx *cx, void *state) {
    (void)state;
    return ebb_cancelled(cx) ? EBB_CANCELLED : EBB_PENDING;
}

static double spawn_end_seq(void) {
    ebb_runtime *rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_region root = ebb_runtime_root(rt);
    double t0 = bench_cpu_ns();
    for (int i = 0; i < MILLION; i++) {
        ebb_spawn(host, root, end_at_once, NULL);
        ebb_runtime_pump(rt, UINT32_MAX);
    }
    double ns = (bench_cpu_ns() - t0) / MILLION;
    ebb_runtime_stats s;
    ebb_runtime_stats_of(rt, &s);
    bench_must(s.ended == MILLION);
    ebb_runtime_free(rt);
    return ns;
}

/* The memory stays from round to round, as in a server that has been up for a while, and in the floor. */
static double spawn_end_1m(void) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_region root = ebb_runtime_root(rt);
    double t0 = bench_cpu_ns();
    for (int i = 0; i < MILLION; i++) ebb_spawn(host, root, end_at_once, NULL);
    bench_pump_all(rt);
    double ns = (bench_cpu_ns() - t0) / MILLION;
    ebb_runtime_stats s;
    ebb_runtime_stats_of(rt, &s);
    bench_must(s.tasks == 0);
    return ns;
}

static double region_open_close(void) {
    ebb_runtime *rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    double t0 = bench_cpu_ns();
    for (int i = 0; i < MILLION; i++) {
        ebb_region r = ebb_region_open(host, NULL);
        ebb_region_close(host, r);
        if (ebb_region_join(host, r) != EBB_OK) abort();
    }
    double ns = (bench_cpu_ns() - t0) / MILLION;
    ebb_runtime_free(rt);
    return ns;
}

static double parked_bytes(int n) {
    long before = bench_rss_bytes();
    ebb_runtime *rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    for (int i = 0; i < n; i++) ebb_spawn(host, ebb_runtime_root(rt), until_cancelled, NULL);
    bench_pump_all(rt);
    double bytes = (double)(bench_rss_bytes() - before) / n;
    ebb_runtime_stats s;
    ebb_runtime_stats_of(rt, &s);
    bench_must(s.tasks == (uint32_t)n && s.runnable == 0);
    ebb_runtime_free(rt);
    return bytes;
}

static double task_bytes(void) {
    return parked_bytes(MILLION);
}

static double task_bytes_10m(void) {
    return parked_bytes(10 * MILLION);
}

/* A runtime whose free slots are in random order: the next tasks lie scattered in memory. Half of all
 * slots are taken by tasks in random order of ending. */
static void scatter(ebb_runtime *rt) {
    ebb_cx *host = ebb_runtime_host(rt);
    uint64_t seed = 88172645463325252u;
    ebb_task *ids = malloc(MILLION * sizeof *ids);
    for (int i = 0; i < MILLION; i++) ids[i] = ebb_spawn(host, ebb_runtime_root(rt), until_cancelled, NULL);
    bench_pump_all(rt);
    for (int i = MILLION - 1; i > 0; i--) {
        uint64_t j = bench_random(&seed) % (uint64_t)(i + 1);
        ebb_task t = ids[i];
        ids[i] = ids[j];
        ids[j] = t;
    }
    for (int i = 0; i < MILLION; i++) ebb_task_cancel(host, ids[i], EBB_CANCEL_USER, NULL);
    bench_pump_all(rt);
    free(ids);
}

static double cancel_fan_1m(void) {
    static ebb_runtime *rt;
    if (rt == NULL) {
        rt = bench_runtime();
        scatter(rt);
    }
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_region r = ebb_region_open(host, NULL);
    for (int i = 0; i < MILLION; i++) ebb_spawn(host, r, until_cancelled, NULL);
    bench_pump_all(rt);
    double t0 = bench_cpu_ns();
    ebb_region_cancel(host, r, EBB_CANCEL_USER, "all of you");
    bench_pump_all(rt);
    double ns = (bench_cpu_ns() - t0) / MILLION;
    bench_must(ebb_region_join(host, r) == EBB_CANCELLED);
    return ns;
}

static double chain(int scattered) {
    static ebb_runtime *in_order, *mixed;
    ebb_runtime **where = scattered ? &mixed : &in_order;
    if (*where == NULL) *where = bench_runtime();
    ebb_runtime *rt = *where;
    ebb_cx *host = ebb_runtime_host(rt);
    if (scattered) {
        static int done;
        if (!done) scatter(rt);
        done = 1;
    }
    ebb_region top = ebb_region_open(host, NULL), r = top;
    for (int i = 0; i < MILLION; i++) {
        ebb_spawn(host, r, until_cancelled, NULL);
        if (i + 1 < MILLION) r = ebb_region_open(host, &(ebb_region_opts){.parent = r});
    }
    bench_pump_all(rt);
    double t0 = bench_cpu_ns();
    ebb_region_cancel(host, top, EBB_CANCEL_USER, "from the top");
    bench_pump_all(rt);
    double ns = (bench_cpu_ns() - t0) / MILLION;
    bench_must(ebb_region_join(host, top) == EBB_CANCELLED);
    return ns;
}

static double cancel_chain_1m(void) {
    return chain(0);
}

static double cancel_chain_scattered(void) {
    return chain(1);
}

static double check_ns;
static ebb_status check_often(ebb_cx *cx, void *state) {
    const long n = 100000000;
    long seen = 0;
    (void)state;
    double t0 = bench_cpu_ns();
    for (long i = 0; i < n; i++) {
        if (__builtin_expect(ebb_cancelled(cx), 0)) seen++;
        __asm__ volatile("" ::: "memory");
    }
    check_ns = (bench_cpu_ns() - t0) / (double)n;
    return seen == 0 ? EBB_OK : EBB_FAILED;
}

static double cancelled_check(void) {
    ebb_runtime *rt = bench_runtime();
    ebb_spawn(ebb_runtime_host(rt), ebb_runtime_root(rt), check_often, NULL);
    bench_pump_all(rt);
    ebb_runtime_free(rt);
    return check_ns;
}

typedef struct player {
    EBB_TASK_STATE;
    ebb_chan *in, *out;
    ebb_wait wait;
    uint64_t value;
    bool serves;
} player;

static ebb_status play(ebb_cx *cx, void *state) {
    player *p = state;
    ebb_status st;
    EBB_BEGIN(p);
    if (p->serves) {
        EBB_AWAIT(p, st, ebb_chan_send(cx, p->out, &p->wait, &p->value));
        if (st != EBB_OK) return st;
    }
    for (;;) {
        EBB_AWAIT(p, st, ebb_chan_recv(cx, p->in, &p->wait, &p->value));
        if (st != EBB_OK) return EBB_OK;
        if (++p->value >= MILLION) {
            ebb_chan_close(cx, p->in);
            ebb_chan_close(cx, p->out);
            return EBB_OK;
        }
        EBB_AWAIT(p, st, ebb_chan_send(cx, p->out, &p->wait, &p->value));
        if (st != EBB_OK) return st;
    }
    EBB_END(p);
}

static double channel_msg(void) {
    ebb_runtime *rt = bench_runtime();
    ebb_chan *there, *back;
    if (ebb_chan_new(rt, 1, sizeof(uint64_t), &there) != EBB_OK) abort();
    if (ebb_chan_new(rt, 1, sizeof(uint64_t), &back) != EBB_OK) abort();
    player a = {.in = back, .out = there, .serves = true}, b = {.in = there, .out = back};
    ebb_spawn(ebb_runtime_host(rt), ebb_runtime_root(rt), play, &a);
    ebb_spawn(ebb_runtime_host(rt), ebb_runtime_root(rt), play, &b);
    double t0 = bench_cpu_ns();
    bench_pump_all(rt);
    double ns = (bench_cpu_ns() - t0) / MILLION;
    ebb_runtime_stats s;
    ebb_runtime_stats_of(rt, &s);
    bench_must(s.tasks == 0);
    ebb_chan_free(there);
    ebb_chan_free(back);
    ebb_runtime_free(rt);
    return ns;
}

static double timer_arm_cancel_1m(void) {
    static ebb_runtime *rt;
    static ebb_timer *timers;
    static uint32_t *due;
    static ebb_task task;
    if (rt == NULL) {
        uint64_t seed = 88172645463325252u;
        rt = bench_runtime();
        timers = malloc(MILLION * sizeof *timers);
        due = malloc(MILLION * sizeof *due);
        for (int i = 0; i < MILLION; i++) due[i] = (uint32_t)(bench_random(&seed) % 1000000);
        task = ebb_spawn(ebb_runtime_host(rt), ebb_runtime_root(rt), until_cancelled, NULL);
        bench_pump_all(rt);
    }
    ebb_cx *host = ebb_runtime_host(rt);
    double t0 = bench_cpu_ns();
    for (int i = 0; i < MILLION; i++) timers[i] = ebb_timer_arm(host, task, due[i] * EBB_MS + EBB_SECOND);
    for (int i = 0; i < MILLION; i++) {
        if (ebb_timer_disarm(host, timers[i]) != EBB_OK) abort();
    }
    return (bench_cpu_ns() - t0) / MILLION;
}

static void discard(void *ctx, const void *bytes, size_t n) {
    (void)bytes;
    *(size_t *)ctx += n;
}

/* What tracing adds: the same work with and without it, by events. With a clock the end of each poll has its time. */
static double trace_cost(uint64_t (*clock)(void *ctx)) {
    double ns[2];
    uint64_t events = 0;
    for (int on = 0; on < 2; on++) {
        ebb_runtime *rt;
        ebb_runtime_opts opts = {.allocator = ebb_libc_allocator(), .runtime_id = 1, .clock = clock};
        bench_must(ebb_runtime_new(&opts, &rt) == EBB_OK);
        ebb_cx *host = ebb_runtime_host(rt);
        size_t bytes = 0;
        if (on && ebb_trace_start(rt, 1 << 20) != EBB_OK) abort();
        double t0 = bench_cpu_ns();
        for (int i = 0; i < MILLION; i++) {
            ebb_spawn(host, ebb_runtime_root(rt), end_at_once, NULL);
            ebb_runtime_pump(rt, UINT32_MAX);
            if (i % 1000 == 999) ebb_trace_take(rt, false, discard, &bytes);
        }
        ns[on] = bench_cpu_ns() - t0;
        ebb_trace_take(rt, true, discard, &bytes);
        events = bytes / 32;
        ebb_runtime_free(rt);
    }
    return (ns[1] - ns[0]) / (double)events;
}

static double trace_event(void) {
    return trace_cost(NULL);
}

static uint64_t monotonic(void *ctx) {
    struct timespec t;
    (void)ctx;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * EBB_SECOND + (uint64_t)t.tv_nsec;
}

static double trace_event_clock(void) {
    return trace_cost(monotonic);
}

const bench_row bench_kernel_rows[] = {
    {"kernel.spawn_end_seq", "ns", spawn_end_seq, floor_spawn_end_seq, 20, 9},
    {"kernel.spawn_end_1m", "ns", spawn_end_1m, floor_spawn_end_1m, 45, 16},
    {"kernel.region_open_close", "ns", region_open_close, NULL, 40, 0},
    {"kernel.task_bytes", "bytes", task_bytes, floor_task_bytes, 128, 0},
    {"kernel.task_bytes_10m", "bytes", task_bytes_10m, floor_task_bytes, 128, 0},
    {"kernel.cancel_fan_1m", "ns", cancel_fan_1m, floor_cancel_fan_1m, 45, 22},
    {"kernel.cancel_chain_1m", "ns", cancel_chain_1m, floor_cancel_chain_1m, 40, 20},
    {"kernel.cancel_chain_scattered", "ns", cancel_chain_scattered, NULL, 0, 0},
    {"kernel.cancelled_check", "ns", cancelled_check, floor_cancelled_check, 1, 0.5},
    {"kernel.channel_msg", "ns", channel_msg, floor_channel_msg, 15, 5},
    {"kernel.timer_arm_cancel_1m", "ns", timer_arm_cancel_1m, floor_timer_arm_cancel_1m, 30, 14},
    {"kernel.trace_event", "ns", trace_event, NULL, 25, 0},
    {"kernel.trace_event_clock", "ns", trace_event_clock, NULL, 25, 0},
};
const size_t bench_kernel_count = sizeof bench_kernel_rows / sizeof *bench_kernel_rows;
