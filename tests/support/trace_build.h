/* tests/support/trace_build.h - traces made by hand: a list of records that tests write, doctor and read back
 * as a file. */
#ifndef EBB_TESTS_TRACE_BUILD_H
#define EBB_TESTS_TRACE_BUILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ebb/trace.h>

typedef struct story {
    ebb_record r[400];
    size_t n;
} story;

typedef struct bytes {
    uint8_t *p;
    size_t n;
} bytes;

#define ID(index, generation)          ((uint64_t)(index) << 32 | (generation))
#define CANCEL(severity, epoch_number) ((severity) << 4 | (epoch_number))
#define SAY(s, ...)                    say(s, (ebb_record){__VA_ARGS__})

static inline void *libc_realloc(void *ctx, void *p, size_t old_size, size_t new_size) {
    (void)ctx;
    (void)old_size;
    if (new_size != 0) return realloc(p, new_size);
    free(p);
    return NULL;
}

static inline ebb_allocator libc_allocator(void) {
    return (ebb_allocator){libc_realloc, NULL};
}

static inline void say(story *s, ebb_record r) {
    assert_true(s->n < sizeof s->r / sizeof *s->r);
    s->r[s->n++] = r;
}

/* The nth record of a type, counted from 0. */
static inline size_t where(const story *s, uint8_t type, size_t nth) {
    for (size_t i = 0; i < s->n; i++) {
        if (s->r[i].type == type && nth-- == 0) return i;
    }
    fail_msg("the story has no such record: %s", ebb_event_name(type));
    return 0;
}

static inline ebb_record *nth(story *s, uint8_t type, size_t n) {
    return &s->r[where(s, type, n)];
}

static inline void drop_at(story *s, size_t i) {
    memmove(&s->r[i], &s->r[i + 1], (s->n - i - 1) * sizeof *s->r);
    s->n--;
}

static inline void drop(story *s, uint8_t type, size_t n) {
    drop_at(s, where(s, type, n));
}

static inline void insert_at(story *s, size_t i, ebb_record r) {
    say(s, r);
    memmove(&s->r[i + 1], &s->r[i], (s->n - 1 - i) * sizeof *s->r);
    s->r[i] = r;
}

/* Takes the record at `from` out and puts it so that it stands at `to`. */
static inline void move(story *s, size_t from, size_t to) {
    ebb_record r = s->r[from];
    drop_at(s, from);
    insert_at(s, to, r);
}

static inline void append_bytes(void *ctx, const void *p, size_t n) {
    bytes *b = ctx;
    b->p = realloc(b->p, b->n + n);
    assert_non_null(b->p);
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

static inline bytes file_of(const ebb_record *r, size_t n, bool journal) {
    bytes b = {NULL, 0};
    ebb_trace_writer *w = malloc(sizeof *w);
    assert_non_null(w);
    ebb_trace_writer_begin(w, journal, 7, append_bytes, &b);
    for (size_t i = 0; i < n; i++) ebb_trace_writer_put(w, &r[i]);
    ebb_trace_writer_end(w);
    free(w);
    return b;
}

static inline ebb_hash fed(ebb_fingerprint *f, const story *s) {
    bytes b = file_of(s->r, s->n, false);
    ebb_trace_reader reader;
    ebb_event ev;
    ebb_hash hash;
    assert_int_equal(ebb_trace_reader_open(&reader, b.p, b.n), EBB_OK);
    while (ebb_trace_reader_next(&reader, &ev) == EBB_OK) ebb_fingerprint_event(f, &ev);
    assert_int_equal(ebb_fingerprint_end(f, &hash), EBB_OK);
    ebb_fingerprint_free(f);
    free(b.p);
    return hash;
}

static inline ebb_hash fingerprint_of(const story *s) {
    return fed(ebb_fingerprint_new(libc_allocator()), s);
}

static inline ebb_hash parity_of(const story *s) {
    return fed(ebb_fingerprint_new_parity(libc_allocator()), s);
}

/* ---- a run that keeps every rule -------------------------------------------------------------- */

enum { KEEP = 1, CLOSER = 2, CLEANUP = 1 };
#define ROOT            ID(1, 1)
#define OUTER           ID(2, 1)
#define INNER           ID(3, 1)
#define SCOPE           ID(4, 1)
#define POLITE          ID(1, 1) /* a task that acknowledges, cleans up and has finalizers */
#define STRICT          ID(2, 1) /* one that is masked when the request comes, and told twice */
#define STUCK           ID(3, 1) /* one that never returns */
#define HOLDER          ID(4, 1) /* one in the cleanup scope */
#define CLOSES          ID(5, 1) /* the closer of OUTER */
#define LOSER           ID(6, 1) /* one that has lost a race */
#define FIRST_DEFERRED  ID(1, 1)
#define SECOND_DEFERRED ID(2, 1)
#define REGION_DEFERRED ID(3, 1)
#define KEPT_PROMISE    ID(4, 1)
#define LEAKED_PROMISE  ID(5, 1)
#define SCOPE_PROMISE   ID(6, 1)
#define STATUS(st)      ((uint32_t)(int32_t)(st))

static inline void text(story *s, const char *t) {
    ebb_record r = {.type = EBB_EV_TEXT, .value = (uint32_t)strlen(t)};
    memcpy(&r.task, t, strlen(t) < 8 ? strlen(t) : 8);
    say(s, r);
}

static inline void spawn(story *s, uint64_t task, uint64_t region, uint32_t flags) {
    SAY(s, EBB_EV_TASK_SPAWNED, EBB_TASK_CREATED, .task = task, .region = region, .value = flags);
}

static inline void poll(story *s, uint64_t task, uint64_t region, uint8_t phase, uint32_t lane) {
    SAY(s, EBB_EV_TASK_POLLED, phase, .task = task, .region = region, .value = lane, .other = 1);
}

static inline void cancel_says(story *s, uint8_t type, uint8_t phase, uint8_t kind, int epoch, uint64_t task,
                               uint64_t region, uint64_t deadline, uint32_t polls) {
    SAY(s, type, phase, kind, (uint8_t)epoch, polls, task, region, deadline);
}

static inline void region_moves(story *s, uint8_t type, uint8_t state, uint64_t region) {
    SAY(s, type, state, .region = region);
}

static inline void begin_story(story *s) {
    s->n = 0;
    SAY(s, EBB_EV_TURN, .task = 1, .region = 1);
    SAY(s, EBB_EV_TIME, .other = 1000);
    SAY(s, EBB_EV_REGION_OPENED, EBB_REGION_OPEN, .region = ROOT);
    SAY(s, EBB_EV_REGION_OPENED, EBB_REGION_OPEN, .region = OUTER, .other = ROOT);
}

static inline void good_start(story *s) {
    begin_story(s);
    spawn(s, POLITE, OUTER, KEEP);
    spawn(s, STRICT, OUTER, 0);
    poll(s, POLITE, OUTER, EBB_TASK_RUNNING, EBB_LANE_READY);
    SAY(s, EBB_EV_REGION_OPENED, EBB_REGION_OPEN, .region = INNER, .other = OUTER, .task = POLITE);
    spawn(s, STUCK, INNER, 0);
    spawn(s, LOSER, INNER, 0);
    SAY(s, EBB_EV_FINALIZER_ADDED, .task = POLITE, .region = OUTER, .other = FIRST_DEFERRED);
    SAY(s, EBB_EV_FINALIZER_ADDED, .task = POLITE, .region = OUTER, .other = SECOND_DEFERRED);
    SAY(s, EBB_EV_FINALIZER_ADDED, .region = OUTER, .other = REGION_DEFERRED);
    SAY(s, EBB_EV_OBLIGATION_RESERVED, .task = POLITE, .region = OUTER, .other = KEPT_PROMISE,
        .value = EBB_OBLIGATION_ACK);
    SAY(s, EBB_EV_OBLIGATION_COMMITTED, .task = POLITE, .region = OUTER, .other = KEPT_PROMISE,
        .value = EBB_OBLIGATION_ACK);
    poll(s, STRICT, OUTER, EBB_TASK_RUNNING, EBB_LANE_READY);
    SAY(s, EBB_EV_OBLIGATION_RESERVED, .task = STRICT, .region = OUTER, .other = LEAKED_PROMISE,
        .value = EBB_OBLIGATION_LEASE);
    SAY(s, EBB_EV_MASKED, EBB_TASK_RUNNING, .task = STRICT, .region = OUTER, .value = 1);
    SAY(s, EBB_EV_TASK_WOKEN, EBB_TASK_RUNNING, .task = POLITE, .region = OUTER, .value = EBB_LANE_READY,
        .other = STRICT);
    poll(s, STUCK, INNER, EBB_TASK_RUNNING, EBB_LANE_READY);
    poll(s, LOSER, INNER, EBB_TASK_RUNNING, EBB_LANE_READY);
    poll(s, POLITE, OUTER, EBB_TASK_RUNNING, EBB_LANE_READY);
    SAY(s, .type = EBB_EV_IDLE);
}

static inline void good_cancel(story *s) {
    SAY(s, EBB_EV_TIME, .other = 2000);
    cancel_says(s, EBB_EV_CANCEL_REQUESTED, EBB_TASK_CANCEL_REQUESTED, EBB_CANCEL_RACE_LOST, CANCEL(1, 1),
                LOSER, INNER, 9000, 64);
    region_moves(s, EBB_EV_REGION_CLOSING, EBB_REGION_CLOSING, OUTER);
    cancel_says(s, EBB_EV_REGION_CANCELLED, EBB_REGION_CLOSING, EBB_CANCEL_USER, CANCEL(1, 1), 0, OUTER, 7000,
                64);
    text(s, "by hand");
    region_moves(s, EBB_EV_REGION_CLOSING, EBB_REGION_CLOSING, INNER);
    cancel_says(s, EBB_EV_REGION_CANCELLED, EBB_REGION_CLOSING, EBB_CANCEL_PARENT, CANCEL(1, 1), 0, INNER,
                7000, 64);
    cancel_says(s, EBB_EV_CANCEL_REQUESTED, EBB_TASK_CANCEL_REQUESTED, EBB_CANCEL_USER, CANCEL(1, 1), POLITE,
                OUTER, 7000, 64);
    cancel_says(s, EBB_EV_CANCEL_REQUESTED, EBB_TASK_CANCEL_REQUESTED, EBB_CANCEL_USER, CANCEL(1, 1), STRICT,
                OUTER, 7000, 64);
    cancel_says(s, EBB_EV_CANCEL_REQUESTED, EBB_TASK_CANCEL_REQUESTED, EBB_CANCEL_PARENT, CANCEL(1, 1), STUCK,
                INNER, 7000, 64);
    cancel_says(s, EBB_EV_CANCEL_STRENGTHENED, EBB_TASK_CANCEL_REQUESTED, EBB_CANCEL_RACE_LOST, CANCEL(1, 1),
                LOSER, INNER, 7000, 64);
    region_moves(s, EBB_EV_REGION_DRAINING, EBB_REGION_DRAINING, OUTER);
    region_moves(s, EBB_EV_REGION_DRAINING, EBB_REGION_DRAINING, INNER);
}

static inline void good_cleanup(story *s) {
    poll(s, POLITE, OUTER, EBB_TASK_CANCEL_REQUESTED, EBB_LANE_CANCEL);
    cancel_says(s, EBB_EV_CANCEL_ACKED, EBB_TASK_CANCELLING, EBB_CANCEL_USER, CANCEL(1, 1), POLITE, OUTER,
                6000, 64);
    SAY(s, EBB_EV_REGION_OPENED, EBB_REGION_OPEN, .region = SCOPE, .other = OUTER, .task = POLITE,
        .value = CLEANUP);
    spawn(s, HOLDER, SCOPE, 0);
    poll(s, STRICT, OUTER, EBB_TASK_CANCEL_REQUESTED, EBB_LANE_CANCEL);
    SAY(s, EBB_EV_UNMASKED, EBB_TASK_CANCEL_REQUESTED, .task = STRICT, .region = OUTER, .value = 0);
    cancel_says(s, EBB_EV_CANCEL_ACKED, EBB_TASK_CANCELLING, EBB_CANCEL_USER, CANCEL(1, 1), STRICT, OUTER,
                6000, 64);
    poll(s, LOSER, INNER, EBB_TASK_CANCEL_REQUESTED, EBB_LANE_CANCEL);
    SAY(s, EBB_EV_COMPLETED, EBB_TASK_COMPLETED, .task = LOSER, .region = INNER, .value = STATUS(EBB_OK));
    poll(s, STUCK, INNER, EBB_TASK_CANCEL_REQUESTED, EBB_LANE_CANCEL);
    poll(s, HOLDER, SCOPE, EBB_TASK_RUNNING, EBB_LANE_READY);
    SAY(s, EBB_EV_OBLIGATION_RESERVED, .task = HOLDER, .region = SCOPE, .other = SCOPE_PROMISE,
        .value = EBB_OBLIGATION_IO);
    SAY(s, EBB_EV_OBLIGATION_ABORTED, .task = HOLDER, .region = SCOPE, .other = SCOPE_PROMISE,
        .value = EBB_OBLIGATION_IO);
    SAY(s, EBB_EV_FAULTED, EBB_TASK_RUNNING, .task = HOLDER, .region = SCOPE);
    SAY(s, EBB_EV_COMPLETED, EBB_TASK_COMPLETED, .task = HOLDER, .region = SCOPE,
        .value = STATUS(EBB_FAULTED));
    region_moves(s, EBB_EV_REGION_CLOSING, EBB_REGION_CLOSING, SCOPE);
    region_moves(s, EBB_EV_REGION_FINALIZING, EBB_REGION_FINALIZING, SCOPE);
    SAY(s, EBB_EV_REGION_CLOSED, EBB_REGION_CLOSED, .region = SCOPE, .value = STATUS(EBB_FAULTED));
    SAY(s, EBB_EV_REGION_JOINED, EBB_REGION_CLOSED, .region = SCOPE, .task = POLITE,
        .value = STATUS(EBB_FAULTED));
    SAY(s, EBB_EV_TASK_WOKEN, EBB_TASK_CANCELLING, EBB_CANCEL_USER, CANCEL(1, 1), EBB_LANE_CANCEL, POLITE,
        OUTER, HOLDER);
    poll(s, POLITE, OUTER, EBB_TASK_CANCELLING, EBB_LANE_CANCEL);
    cancel_says(s, EBB_EV_CLEANUP_DONE, EBB_TASK_FINALIZING, EBB_CANCEL_USER, CANCEL(1, 1), POLITE, OUTER, 0,
                0);
    SAY(s, EBB_EV_FINALIZER_DONE, .task = POLITE, .region = OUTER, .other = SECOND_DEFERRED);
    SAY(s, EBB_EV_FINALIZER_DONE, .task = POLITE, .region = OUTER, .other = FIRST_DEFERRED);
    cancel_says(s, EBB_EV_FINALIZED, EBB_TASK_COMPLETED, EBB_CANCEL_USER, CANCEL(1, 1), POLITE, OUTER, 0,
                STATUS(EBB_CANCELLED));
    SAY(s, .type = EBB_EV_IDLE);
}

static inline void good_shutdown(story *s) {
    SAY(s, EBB_EV_TURN, .task = 2, .region = 1);
    SAY(s, EBB_EV_TIME, .other = 3000);
    cancel_says(s, EBB_EV_REGION_CANCELLED, EBB_REGION_DRAINING, EBB_CANCEL_SHUTDOWN, CANCEL(3, 2), 0, OUTER,
                5000, 16);
    cancel_says(s, EBB_EV_REGION_CANCELLED, EBB_REGION_DRAINING, EBB_CANCEL_PARENT, CANCEL(3, 2), 0, INNER,
                5000, 16);
    cancel_says(s, EBB_EV_CANCEL_STRENGTHENED, EBB_TASK_CANCELLING, EBB_CANCEL_SHUTDOWN, CANCEL(3, 2), STRICT,
                OUTER, 5000, 16);
    cancel_says(s, EBB_EV_CANCEL_STRENGTHENED, EBB_TASK_CANCEL_REQUESTED, EBB_CANCEL_PARENT, CANCEL(3, 2),
                STUCK, INNER, 5000, 16);
    SAY(s, EBB_EV_TASK_WOKEN, EBB_TASK_CANCELLING, EBB_CANCEL_SHUTDOWN, CANCEL(3, 2), EBB_LANE_CANCEL, STRICT,
        OUTER, 0);
    poll(s, STRICT, OUTER, EBB_TASK_CANCELLING, EBB_LANE_CANCEL);
    cancel_says(s, EBB_EV_CLEANUP_DONE, EBB_TASK_FINALIZING, EBB_CANCEL_SHUTDOWN, CANCEL(3, 2), STRICT, OUTER,
                0, 0);
    SAY(s, EBB_EV_OBLIGATION_LEAKED, .task = STRICT, .region = OUTER, .other = LEAKED_PROMISE,
        .value = EBB_OBLIGATION_LEASE);
    text(s, "lease.c");
    SAY(s, EBB_EV_OBLIGATION_ABORTED, .task = STRICT, .region = OUTER, .other = LEAKED_PROMISE,
        .value = EBB_OBLIGATION_LEASE);
    cancel_says(s, EBB_EV_FINALIZED, EBB_TASK_COMPLETED, EBB_CANCEL_SHUTDOWN, CANCEL(3, 2), STRICT, OUTER, 0,
                STATUS(EBB_CANCELLED));
    region_moves(s, EBB_EV_REGION_FORCED, EBB_REGION_DRAINING, OUTER);
    cancel_says(s, EBB_EV_TASK_FORCED, EBB_TASK_CANCEL_REQUESTED, EBB_CANCEL_PARENT, CANCEL(3, 2), STUCK,
                INNER, 0, 8);
    poll(s, STUCK, INNER, EBB_TASK_CANCEL_REQUESTED, EBB_LANE_CANCEL);
    cancel_says(s, EBB_EV_ABANDONED, EBB_TASK_CANCEL_REQUESTED, EBB_CANCEL_PARENT, CANCEL(3, 2), STUCK, INNER,
                0, 0);
    SAY(s, EBB_EV_COMPLETED, EBB_TASK_COMPLETED, .task = STUCK, .region = INNER,
        .value = STATUS(EBB_CANCELLED));
}

static inline void good_end(story *s) {
    region_moves(s, EBB_EV_REGION_FINALIZING, EBB_REGION_FINALIZING, INNER);
    SAY(s, EBB_EV_REGION_CLOSED, EBB_REGION_CLOSED, .region = INNER, .value = STATUS(EBB_CANCELLED),
        .other = ID(1, 0));
    region_moves(s, EBB_EV_REGION_FINALIZING, EBB_REGION_FINALIZING, OUTER);
    spawn(s, CLOSES, OUTER, CLOSER);
    poll(s, CLOSES, OUTER, EBB_TASK_RUNNING, EBB_LANE_READY);
    SAY(s, EBB_EV_FINALIZER_DONE, .region = OUTER, .other = REGION_DEFERRED);
    SAY(s, EBB_EV_COMPLETED, EBB_TASK_COMPLETED, .task = CLOSES, .region = OUTER, .value = STATUS(EBB_OK));
    SAY(s, EBB_EV_REGION_CLOSED, EBB_REGION_CLOSED, .region = OUTER, .value = STATUS(EBB_CANCELLED),
        .other = 1);
    SAY(s, EBB_EV_TASK_JOINED, EBB_TASK_COMPLETED, .task = POLITE, .region = OUTER,
        .value = STATUS(EBB_CANCELLED));
    SAY(s, EBB_EV_REGION_JOINED, EBB_REGION_CLOSED, .region = OUTER, .value = STATUS(EBB_CANCELLED));
    SAY(s, EBB_EV_STALE_WAKE, .task = STRICT);
    SAY(s, .type = EBB_EV_IDLE);
}

static inline story *good_story(void) {
    story *s = malloc(sizeof *s);
    assert_non_null(s);
    good_start(s);
    good_cancel(s);
    good_cleanup(s);
    good_shutdown(s);
    good_end(s);
    return s;
}

#endif
