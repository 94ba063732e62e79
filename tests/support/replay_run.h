/* A run that is recorded, and what its replay has to give. */
#ifndef EBB_TESTS_REPLAY_RUN_H
#define EBB_TESTS_REPLAY_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernel/record.h"
#include "tests/support/random_program.h"

typedef struct run {
    ebb_runtime *rt;
    ebb_cx *host;
    bytes trace, journal;
} run;

static inline run record(const ebb_runtime_opts *opts) {
    ebb_runtime_opts o = opts != NULL ? *opts : (ebb_runtime_opts){.runtime_id = 3};
    if (o.allocator.fn == NULL) o.allocator = ebb_libc_allocator();
    run r = {.rt = NULL};
    assert_int_equal(ebb_runtime_new(&o, &r.rt), EBB_OK);
    assert_int_equal(ebb_trace_start(r.rt, 1 << 22), EBB_OK);
    assert_int_equal(ebb_journal_start(r.rt, 1 << 22), EBB_OK);
    r.host = ebb_runtime_host(r.rt);
    return r;
}

static inline void stop(run *r) {
    ebb_trace_take(r->rt, true, bytes_add, &r->trace);
    ebb_journal_take(r->rt, true, bytes_add, &r->journal);
    ebb_runtime_free(r->rt);
    r->rt = NULL;
}

static inline void forget(run *r) {
    free(r->trace.p);
    free(r->journal.p);
}

static inline void at_pump(run *r, uint64_t now) {
    ebb_runtime_advance(r->rt, now);
    while (ebb_runtime_pump(r->rt, 1000) == EBB_PENDING) {}
}

static inline void assert_replays(const bytes *journal, const bytes *trace) {
    bytes again = {NULL, 0, 0};
    ebb_journal_replay_result result;
    ebb_status st =
        ebb_journal_replay(ebb_libc_allocator(), journal->p, journal->n, bytes_add, &again, &result);
    if (st != EBB_OK) fail_msg("%s: %s", ebb_status_name(st), result.message);
    assert_int_equal(again.n, trace->n);
    assert_memory_equal(again.p, trace->p, trace->n);
    assert_string_equal(result.message, "");
    assert_true(result.operations > 0);
    assert_int_equal(ebb_journal_replay(ebb_libc_allocator(), journal->p, journal->n, NULL, NULL, &result),
                     EBB_OK);
    free(again.p);
}

static inline void stop_and_compare(run *r) {
    stop(r);
    assert_replays(&r->journal, &r->trace);
    forget(r);
}

static inline size_t count(const bytes *file, uint32_t type) {
    ebb_trace_reader in;
    ebb_event ev;
    size_t n = 0;
    assert_int_equal(ebb_trace_reader_open(&in, file->p, file->n), EBB_OK);
    while (ebb_trace_reader_next(&in, &ev) == EBB_OK) n += ev.type == type;
    return n;
}

static inline ebb_status ends_at_once(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_OK;
}

static inline ebb_status never_ends(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_PENDING;
}

#endif
