/* One run: a service with machines in it plays, then it is ended in one of several ways and judged. */
#include "tests/machine/driver/driver.h"

#include <stdarg.h>

#include "kernel/layer.h"
#include "sched/pump.h"

enum { TRACE_ROOM = 1 << 18, TURNS = 120, SETTLE_MAX = 100000 };

drive d;
totals all;

_Noreturn void failed(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "seed %llu: ", (unsigned long long)d.seed);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nto repeat it: machine.driver --seed %llu\n", (unsigned long long)d.seed);
    abort();
}

static uint64_t next(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t pick(uint32_t n) {
    return (uint32_t)(next(&d.dice) % n);
}

static uint32_t choose(void *ctx, uint32_t n) {
    (void)ctx;
    return pick(n);
}

/* Time passes in the middle of a turn. */
static uint64_t read_clock(void *ctx) {
    (void)ctx;
    d.now += pick(4) * EBB_MS / 8;
    return d.now;
}

static void *allocate(void *ctx, void *p, size_t old_size, size_t new_size) {
    (void)ctx;
    if (new_size == 0) {
        d.live_blocks -= p != NULL;
        free(p);
        return NULL;
    }
    bool refuses = d.refuse_one_in > 0 && !d.ending && next(&d.memory_dice) % d.refuse_one_in == 0;
    if (refuses && new_size > old_size) return NULL;
    void *q = realloc(p, new_size);
    if (q == NULL) abort();
    d.live_blocks += p == NULL;
    return q;
}

/* ---- turns ----------------------------------------------------------------------------------------------------- */

static void keep_trace(void *ctx, const void *bytes, size_t n) {
    (void)ctx;
    if (d.trace_n + n > d.trace_room) {
        d.trace_room = 2 * (d.trace_n + n);
        d.trace = realloc(d.trace, d.trace_room);
        if (d.trace == NULL) abort();
    }
    memcpy(d.trace + d.trace_n, bytes, n);
    d.trace_n += n;
}

static bool pump(uint32_t polls) {
    bool more = ebb_runtime_pump(d.rt, polls) == EBB_PENDING;
    if (d.traced) ebb_trace_take(d.rt, false, keep_trace, NULL);
    return more;
}

static void advance(uint64_t span) {
    d.now += span;
    ebb_runtime_advance(d.rt, d.now);
}

/* Until nothing happens by itself before `until`. */
static void settle(uint64_t until) {
    for (uint32_t i = 0; i < SETTLE_MAX; i++) {
        if (pump(64)) continue;
        uint64_t due = ebb_runtime_next_due(d.rt);
        if (due > until) return;
        advance(due > d.now ? due - d.now : EBB_MS);
    }
    failed("it does not come to rest");
}

/* Outside of dispatches every place that is in use has its message. */
static void judge_places(void) {
    ebb_machine_info info;
    for (uint32_t i = 0; i < IDS && i < d.n_machines; i++) {
        if (ebb_machine_info_of(d.ms, d.machine[i], &info) != EBB_OK) continue;
        if (info.reserved > info.queued)
            failed("a machine has %u messages in %u places", info.queued, info.reserved);
    }
}

static void play(void) {
    for (uint32_t i = 0; i < TURNS; i++) {
        for (uint32_t k = pick(5); k > 0; k--) host_op(d.host);
        if (!one_in(3)) advance(pick(3) * EBB_MS / 2);
        (void)pump(1 + pick(12));
        judge_places();
    }
}

/* ---- the end of the machines ------------------------------------------------------------------------------------ */

static ebb_region_state state_of(ebb_region r) {
    ebb_region_state s;
    return ebb_region_state_of(d.host, r, &s) == EBB_OK ? s : EBB_REGION_CLOSED;
}

static void close_all(void) {
    d.ending = true;
    if (d.chan != NULL) ebb_chan_close(d.host, d.chan);
    ebb_region_close(d.host, d.service);
    for (uint32_t i = 0; i < UNITS; i++) ebb_region_close(d.host, d.unit[i]);
    settle(d.now + 100 * EBB_MS);
    answer_held();
    settle(d.now + 100 * EBB_MS);
}

static void dump(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)fwrite(text, 1, n, stderr);
}

static void judge_close(ebb_region machines) {
    ebb_machines_stats s;
    ebb_machines_stats_of(d.ms, &s);
    if (state_of(machines) == EBB_REGION_CLOSED || s.queued > 0 || s.pending > 0) return;
    for (uint32_t i = 0; i < UNITS; i++)
        if (state_of(d.unit[i]) != EBB_REGION_CLOSED) return;
    ebb_runtime_dump(d.rt, dump, NULL);
    failed("the machines do not close, and nothing is left that they could wait for");
}

static void judge_stats(void) {
    ebb_machines_stats s;
    ebb_machines_stats_of(d.ms, &s);
    all.dispatched += s.dispatched;
    all.rolled_back += s.rolled_back;
    all.requests += s.requests;
    all.dead += s.dead;
    all.refused += s.refused;
    if (s.machines + s.queued + s.pending + s.timers + s.subscriptions + s.cells > 0)
        failed("%u machines, %u messages, %u requests, %u timers, %u subscriptions, %u cells are left",
               s.machines, s.queued, s.pending, s.timers, s.subscriptions, s.cells);
}

static void end_machines(void) {
    ebb_region machines = ebb_machines_region(d.ms);
    if (one_in(2)) {
        close_all();
        judge_close(machines);
    }
    d.ending = true;
    if (state_of(machines) != EBB_REGION_CLOSED) {
        all.cancelled++;
        if (one_in(3)) ebb_region_force(d.host, d.service);
        else ebb_region_cancel(d.host, d.service, EBB_CANCEL_SHUTDOWN, NULL);
    }
    settle(d.now + 1000 * EBB_MS);
    if (state_of(machines) != EBB_REGION_CLOSED) {
        ebb_runtime_dump(d.rt, dump, NULL);
        failed("the machines do not end");
    }
    judge_stats();
    if (ebb_machines_free(d.ms) != EBB_OK) failed("the machines have ended and can't be freed");
    d.ms = NULL;
    d.ending = false;
}

/* ---- judging ------------------------------------------------------------------------------------------------------ */

static void judge_trace(bool quiescent) {
    ebb_trace_reader r;
    ebb_event ev;
    ebb_checker *c = ebb_checker_new(ebb_libc_allocator());
    ebb_status st = ebb_trace_reader_open(&r, d.trace, d.trace_n);
    while (st == EBB_OK && (st = ebb_trace_reader_next(&r, &ev)) == EBB_OK &&
           ebb_checker_event(c, &ev) == EBB_OK) {}
    if (st < 0) failed("trace: %s", r.error);
    if (ebb_checker_violation(c) == NULL) (void)ebb_checker_end(c, quiescent);
    const ebb_violation *v = ebb_checker_violation(c);
    if (v != NULL)
        failed("trace: %s at event %llu: %s", ebb_oracle_name(v->oracle),
               (unsigned long long)v->event.decision_seq, v->text);
    ebb_checker_free(c);
}

static void judge_calls(void) {
    for (call *c = d.calls, *after; c != NULL; c = after) {
        after = c->next;
        if (c->answers + c->forgotten != c->made) failed("a call was answered %u times", c->answers);
        free(c);
    }
}

/* ---- a run --------------------------------------------------------------------------------------------------------- */

static bool begin(uint64_t seed) {
    d = (drive){.seed = seed, .dice = seed, .memory_dice = seed * 3 + 1, .now = seed % 1000 * 7777};
    if (one_in(3)) d.refuse_one_in = 4 + pick(60);
    d.energy = 200 + pick(2000);
    ebb_runtime_opts o = {.allocator = {allocate, NULL}, .now = d.now, .runtime_id = 1};
    if (one_in(3)) o.max_tasks = 8 + pick(30);
    if (one_in(3)) o.clock = read_clock;
    for (uint32_t i = 0; i < 3; i++)
        if (one_in(3))
            o.cleanup[i] = (ebb_cleanup_budget){.time_ns = (1 + pick(50)) * EBB_MS, .polls = 1 + pick(20)};
    if (ebb_runtime_new(&o, &d.rt) != EBB_OK) return false;
    d.host = ebb_runtime_host(d.rt);
    (void)ebb_fiber_setup(d.rt, &(ebb_fiber_opts){.stack_bytes = 1 << 18, .max = 12});
    d.traced = ebb_trace_start(d.rt, TRACE_ROOM) == EBB_OK;
    if (one_in(3)) ebb__rt_set_stepped(d.rt, true);
    if (one_in(2)) ebb__set_chooser(d.rt, choose, NULL);
    if (ebb_chan_new(d.rt, 2, sizeof(uint64_t), &d.chan) != EBB_OK) d.chan = NULL;
    return true;
}

/* A service with machines, as often as the seed says. True: it was ended. */
static bool rounds(void) {
    for (uint32_t n = 1 + pick(3); n > 0; n--) {
        d.service = ebb_region_open(d.host, NULL);
        memset(d.unit, 0, sizeof d.unit);
        if (ebb_id_status(d.service.id) != EBB_OK || open_machines() != EBB_OK) continue;
        play();
        if (n == 1 && one_in(6)) return false;
        end_machines();
    }
    return true;
}

static void shut_down(void) {
    d.ending = true;
    drop_handles(one_in(2));
    if (d.chan != NULL) ebb_chan_close(d.host, d.chan);
    ebb_region_cancel(d.host, ebb_runtime_root(d.rt), EBB_CANCEL_SHUTDOWN, "the end");
    settle(d.now + 3000 * EBB_MS);
    if (state_of(ebb_runtime_root(d.rt)) != EBB_REGION_CLOSED) {
        ebb_runtime_dump(d.rt, dump, NULL);
        failed("the root does not close");
    }
}

void run(uint64_t seed) {
    if (begin(seed)) {
        bool ended = rounds();
        if (ended) shut_down();
        d.ending = true;
        if (d.traced) ebb_trace_take(d.rt, true, keep_trace, NULL);
        ebb_chan_free(d.chan);
        ebb_runtime_free(d.rt);
        if (ebb_machines_free(d.ms) != EBB_OK) failed("the machines of a freed runtime can't be freed");
        judge_calls();
        if (d.traced) judge_trace(ended);
    }
    if (d.references != 0) failed("%lld references are left", (long long)d.references);
    if (d.live_blocks != 0) failed("%lld blocks are left", (long long)d.live_blocks);
    free(d.trace);
    all.seeds++;
}
