/* ST-03 and ST-04: graphs of futures that are built, ended and cancelled at random for a number of seconds of
 * real time, in virtual time. No callback is lost or comes twice, nothing leaks, memory stays flat.
 *
 * usage: future.soak ID SECONDS [SEED] */
#include "tests/support/future_world.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    LEVELS = 100,
    NODES = 400,
    WARM_UP = 50,       /* rounds */
    SLACK = 2 * 1 << 20 /* bytes: a chunk of the heap, and what libc keeps */
};

static double seconds = 1;
static uint64_t seed = 1;

/* ---- chance --------------------------------------------------------------------------------------------- */

static uint64_t dice;

static uint32_t roll(uint32_t n) { /* 0 to n - 1; xorshift64* */
    dice ^= dice >> 12;
    dice ^= dice << 25;
    dice ^= dice >> 27;
    return (uint32_t)((dice * UINT64_C(2685821657736338717)) >> 33) % n;
}

/* ---- memory --------------------------------------------------------------------------------------------- */

static bool rss_counts(void) {
    if (EBB_EMULATED) return false;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return false;
#endif
#endif
    return true;
}

static size_t rss(void) {
    size_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL) return 0;
    if (fscanf(f, "%*s %zu", &pages) != 1) pages = 0;
    (void)fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- a graph ---------------------------------------------------------------------------------------------- */

/* Every future that is made has a probe; a promise is settled by the graph, sooner or later. */
typedef struct graph {
    future_world *fw;
    probe p[NODES];
    uint32_t probes;
    ebb_future *promise[NODES];
    bool settled[NODES];
    uint32_t promises;
    uint64_t ends, finals;
} graph;

static ebb_future *watched(graph *g, ebb_future *f) {
    if (g->probes == NODES) return f;
    return probe_on(&g->p[g->probes++], f);
}

static const ebb_operation op = {"soak", NULL, NULL};

static ebb_future *leaf(graph *g, ebb_cx *cx) {
    switch (roll(8)) {
    case 0: return watched(g, ebb_future_ready(cx, ebb_value_int(roll(100))));
    case 1: return watched(g, ebb_future_failed(cx, roll(2) == 0 ? EBB_FAILED : EBB_CANCELLED));
    case 2: return watched(g, ebb_after(cx, roll(20) * EBB_MS));
    case 3: return watched(g, ebb_future_never(cx));
    default: break;
    }
    if (g->promises == NODES) return watched(g, ebb_future_never(cx));
    g->settled[g->promises] = false;
    ebb_future *f = ebb_promise_new(cx, roll(2) == 0 ? &op : NULL, NULL);
    g->promise[g->promises++] = f;
    return watched(g, f);
}

static ebb_future *then(ebb_cx *cx, ebb_value *v, void *arg) {
    return roll(3) == 0 ? leaf(arg, cx) : ebb_future_ready(cx, ebb_value_int(v->as.i));
}
static ebb_value map(ebb_cx *cx, ebb_value *v, void *arg) {
    if (roll(4) == 0) return ebb_value_future(leaf(arg, cx));
    return ebb_value_int(v->as.i + 1);
}
static ebb_future *caught(ebb_cx *cx, ebb_status st, void *arg) {
    (void)st;
    return leaf(arg, cx);
}
static ebb_future *at_last(ebb_cx *cx, void *arg) {
    graph *g = arg;
    g->finals++;
    return roll(3) == 0 ? ebb_after(cx, roll(3) * EBB_MS) : NULL;
}
static ebb_future *release(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    return at_last(cx, arg);
}
static ebb_future *each(ebb_cx *cx, size_t i, void *arg) {
    (void)i;
    return leaf(arg, cx);
}
static ebb_future *attempt(ebb_cx *cx, uint32_t i, void *arg) {
    (void)i;
    return leaf(arg, cx);
}
static ebb_future *repeat(ebb_cx *cx, uint64_t n, void *arg) {
    (void)arg;
    return ebb_future_ready(cx, n < roll(4) ? ebb_value_none() : ebb_value_int(1));
}

static ebb_future *single(graph *g, ebb_cx *cx, ebb_future *f) {
    switch (roll(6)) {
    case 0: return watched(g, ebb_then(cx, f, then, g));
    case 1: return watched(g, ebb_map(cx, f, map, g));
    case 2: return watched(g, ebb_catch(cx, f, caught, g));
    case 3: return watched(g, ebb_finally(cx, f, at_last, g));
    case 4: return watched(g, ebb_within(cx, f, roll(30) * EBB_MS));
    default: return watched(g, ebb_bracket(cx, f, then, release, g));
    }
}

static ebb_future *several(graph *g, ebb_cx *cx, size_t n, ebb_future **fs) {
    switch (roll(5)) {
    case 0: return watched(g, ebb_all(cx, n, fs));
    case 1: return watched(g, ebb_all_settled(cx, n, fs));
    case 2: return watched(g, ebb_race(cx, n, fs));
    case 3: return watched(g, ebb_any(cx, n, fs));
    default: return watched(g, ebb_select(cx, n, fs));
    }
}

static ebb_future *made(graph *g, ebb_cx *cx) {
    const ebb_retry_opts o = {.attempts = 1 + roll(4), .factor = roll(3), .pause = roll(3) * EBB_MS};
    switch (roll(3)) {
    case 0: return watched(g, ebb_traverse(cx, roll(6), 1 + roll(3), each, g));
    case 1: return watched(g, ebb_retry(cx, &o, attempt, g));
    default: return watched(g, ebb_future_repeat(cx, EBB_MS, repeat, g));
    }
}

/* ---- what happens to it ------------------------------------------------------------------------------------- */

static void settle_one(graph *g, uint32_t i) {
    if (g->settled[i]) return;
    g->settled[i] = true;
    uint32_t how = roll(4);
    if (how < 2) (void)ebb_promise_settle(g->promise[i], ebb_value_int(roll(50)));
    else (void)ebb_promise_reject(g->promise[i], how == 2 ? EBB_TIMEOUT : EBB_CANCELLED);
}

static void something_happens(graph *g) {
    switch (roll(4)) {
    case 0:
        if (g->promises > 0) settle_one(g, roll(g->promises));
        break;
    case 1: future_pass(g->fw, roll(5) * EBB_MS); break;
    case 2: (void)ebb_runtime_pump(g->fw->rt, roll(4)); break;
    default: future_settle(g->fw); break;
    }
}

/* Everything ends: the result is let go of, all producers are done. */
static void end(graph *g, ebb_future *result) {
    if (ebb_future_state_of(result) == EBB_FUTURE_PENDING) (void)ebb_future_cancel(result, EBB_CANCEL_USER);
    ebb_future_drop(result);
    for (int again = 0; again < 3; again++) {
        for (uint32_t i = 0; i < g->promises; i++) settle_one(g, i);
        future_pass(g->fw, 100 * EBB_MS);
    }
}

/* What nobody could reach is dropped by a collection at the latest. */
static void check(graph *g) {
    future_collect(g->fw);
    for (uint32_t i = 0; i < g->probes; i++) {
        const probe *p = &g->p[i];
        if (p->done + p->cancels != 1 || p->cleanups != 1) {
            fail_msg("round of seed %llu: future %u of %u: %u ends, %u cancels, %u cleanups",
                     (unsigned long long)seed, (unsigned)i, (unsigned)g->probes, (unsigned)p->done,
                     (unsigned)p->cancels, (unsigned)p->cleanups);
        }
        g->ends++;
    }
    if (future_stats(g->fw).live != 0) {
        fail_msg("seed %llu: %zu objects are left", (unsigned long long)seed, future_stats(g->fw).live);
    }
}

static void chain_of_100_levels(graph *g) {
    ebb_future *f = leaf(g, g->fw->host), *at[LEVELS];
    for (int i = 0; i < LEVELS; i++) {
        at[i] = ebb_future_keep(f);
        f = single(g, g->fw->host, f);
        if (roll(20) == 0) something_happens(g);
    }
    uint32_t events = roll(10);
    for (uint32_t i = 0; i < events; i++) something_happens(g);
    if (roll(3) > 0) (void)ebb_future_cancel(roll(2) == 0 ? f : at[roll(LEVELS)], EBB_CANCEL_DISCONNECT);
    for (uint32_t i = 0; i < events; i++) something_happens(g);
    for (int i = 0; i < LEVELS; i++) ebb_future_drop(at[i]);
    end(g, f);
}

static void mixed(graph *g) {
    ebb_future *bag[16];
    uint32_t n = 4 + roll(12), steps = 20 + roll(40);
    for (uint32_t i = 0; i < n; i++) bag[i] = leaf(g, g->fw->host);
    for (uint32_t i = 0; i < steps && n > 1; i++) {
        uint32_t k = roll(n), many = 1 + roll(n < 4 ? n : 4);
        switch (roll(6)) {
        case 0:
        case 1: bag[k] = single(g, g->fw->host, bag[k]); break;
        case 2:
            n -= many;
            bag[n] = several(g, g->fw->host, many, &bag[n]);
            n++;
            break;
        case 3:
            if (n < 16) bag[n++] = made(g, g->fw->host);
            break;
        case 4: (void)ebb_future_cancel(bag[k], EBB_CANCEL_DISCONNECT); break;
        default: something_happens(g); break;
        }
    }
    ebb_future *all = several(g, g->fw->host, n, bag);
    for (uint32_t i = 0; i < 10; i++) something_happens(g);
    end(g, all);
}

static void run_for_a_while(future_world *fw, void (*round)(graph *g)) {
    graph *g = world_keep(fw->world, sizeof *g);
    double until = now() + seconds;
    size_t rounds = 0, warm = 0;
    int64_t warm_bytes = 0, most_bytes = 0;
    uint64_t first = seed, ends = 0;
    for (; now() < until || rounds <= WARM_UP; rounds++, seed++) {
        memset(g, 0, sizeof *g);
        g->fw = fw;
        dice = seed * UINT64_C(0x9E3779B97F4A7C15);
        round(g);
        check(g);
        ends += g->ends;
        int64_t bytes = fw->memory->live_bytes;
        if (bytes > most_bytes) most_bytes = bytes;
        if (rounds == WARM_UP) {
            warm = rss();
            warm_bytes = most_bytes;
        }
    }
    print_message("%zu rounds from seed %llu, %llu futures ended, RSS %zu KiB then %zu KiB\n", rounds,
                  (unsigned long long)first, (unsigned long long)ends, warm / 1024, rss() / 1024);
    if (most_bytes > warm_bytes + SLACK) {
        fail_msg("memory grew from %lld to %lld bytes", (long long)warm_bytes, (long long)most_bytes);
    }
    if (rss_counts() && rss() > warm + SLACK) fail_msg("RSS grew from %zu to %zu", warm, rss());
}

static void deep_chains_with_cancellation(void **state) {
    run_for_a_while(*state, chain_of_100_levels);
}

static void mixed_success_failure_and_cancel(void **state) {
    run_for_a_while(*state, mixed);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        {"ST-03 deep_chains_with_cancellation", deep_chains_with_cancellation, future_world_up_untraced,
         future_world_down, NULL},
        {"ST-04 mixed_success_failure_and_cancel", mixed_success_failure_and_cancel, future_world_up_untraced,
         future_world_down, NULL},
    };
    char filter[16];
    if (argc > 1) {
        snprintf(filter, sizeof filter, "%s*", argv[1]);
        cmocka_set_test_filter(filter);
    }
    if (argc > 2) seconds = atof(argv[2]);
    if (argc > 3) seed = strtoull(argv[3], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
