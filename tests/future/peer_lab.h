/* Runtimes of the lab that send each other messages. The wake of a runtime is a message of the lab, so the
 * chooser decides when its messages are taken in, and what happens before. */
#ifndef EBB_TESTS_PEER_LAB_H
#define EBB_TESTS_PEER_LAB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ebb/ebb.h>

#include "tests/support/replay_run.h"
#include "tests/support/share.h"

/* One a runtime, in the scenario's state: they live until the runtimes are freed. */
typedef struct lab_peer {
    ebb_lab *lab;
    uint32_t number;
    ebb_peer *peer;
} lab_peer;

static inline void lab_wake(void *ctx) {
    lab_peer *p = ctx;
    ebb_runtime *rt = ebb_lab_runtime(p->lab, p->number);
    ebb_msg m = {.verb = EBB_MSG_WORD, .target = ebb_runtime_root(rt).id, .to_region = true};
    ebb_lab_send(p->lab, ebb_runtime_host(rt), &m);
}

/* All runtimes of the scenario get a peer. */
static inline ebb_status lab_peers(ebb_lab *lab, lab_peer *peers, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        peers[i] = (lab_peer){lab, i, NULL};
        ebb_runtime *rt = ebb_lab_runtime(lab, i);
        ebb_status st = ebb_inbox_on_wake(rt, lab_wake, &peers[i]);
        if (st == EBB_OK) st = ebb_peer_of(rt, &peers[i].peer);
        if (st != EBB_OK) return st;
    }
    return EBB_OK;
}

static inline void lab_peers_release(lab_peer *peers, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) ebb_peer_release(peers[i].peer);
}

/* scenario->received of all of them. */
static inline void lab_take_in(ebb_lab *lab, const ebb_msg *msg) {
    ebb_inbox_receive(ebb_lab_runtime(lab, (uint32_t)(msg->target >> 56) - 1));
}

typedef struct lab_records {
    bytes trace[EBB_LAB_RUNTIMES], journal[EBB_LAB_RUNTIMES];
} lab_records;

static inline void lab_keep_trace(void *ctx, uint32_t runtime, const void *p, size_t n) {
    bytes_add(&((lab_records *)ctx)->trace[runtime], p, n);
}

static inline void lab_keep_journal(void *ctx, uint32_t runtime, const void *p, size_t n) {
    bytes_add(&((lab_records *)ctx)->journal[runtime], p, n);
}

/* What came from other runtimes is in the journal: each runtime replays to its own trace, alone. */
static inline void lab_replays(const ebb_lab_scenario *s, uint64_t seeds) {
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        lab_records r = {.trace = {{0}}};
        ebb_lab_case c = {.scenario = s, .seed = seed};
        ebb_lab_opts o = {.trace = lab_keep_trace, .journal = lab_keep_journal, .ctx = &r};
        ebb_lab_result result;
        assert_int_equal(ebb_lab_run(lab, &c, &o, &result), EBB_OK);
        for (uint32_t i = 0; i < s->runtimes; i++) {
            assert_replays(&r.journal[i], &r.trace[i]);
            free(r.trace[i].p);
            free(r.journal[i].p);
        }
    }
    ebb_lab_free(lab);
    print_message("%s: %llu runs replayed\n", s->name, (unsigned long long)seeds);
}

/* The lab has one thread: it takes a share of the runs also under AddressSanitizer. */
#if defined(__SANITIZE_ADDRESS__)
enum { LAB_SHARE = 4 };
#else
enum { LAB_SHARE = SHARE(20, 5) };
#endif

/* Explores a scenario, at random and then every way of the first decisions, and prints how much. `after` (may
 * be NULL) looks at what is left once all runtimes of a run are freed. */
static inline void lab_explore(const ebb_lab_scenario *s, uint64_t seeds, uint32_t depth, uint64_t schedules,
                               void (*after)(void *ctx, uint64_t done, uint64_t of)) {
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    ebb_lab *lab = ebb_lab_new(ebb_failing_allocator(&memory));
    assert_non_null(lab);
    const ebb_lab_explore_opts ways[] = {
        {.schedules = seeds / LAB_SHARE, .progress = after},
        {.schedules = schedules / LAB_SHARE, .depth = depth, .progress = after}};
    for (size_t i = 0; i < 2; i++) {
        ebb_lab_case c = {.scenario = s, .seed = 1};
        ebb_lab_explore_result r;
        (void)ebb_lab_explore(lab, &c, &ways[i], &r);
        if (r.failure.status != EBB_OK) {
            print_error("%s, schedule %llu: %s: %s (runtime %u, event %u)\n", s->name,
                        (unsigned long long)r.schedules, r.failure.failure, r.failure.text, r.failure.runtime,
                        r.failure.event.type);
        }
        assert_int_equal(r.failure.status, EBB_OK);
        print_message("%s: %llu schedules, %s%s\n", s->name, (unsigned long long)r.schedules,
                      i == 0 ? "at random" : "depth first", r.exhausted ? ", all" : "");
        ebb_lab_case_free(lab, &c);
    }
    ebb_lab_free(lab);
    assert_int_equal(memory.live, 0);
}

#endif
