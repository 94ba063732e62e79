/* A mix of orchestrations that together use every kind of step, and how each instance of it must end, whatever becomes of
 * the processes that run it. Needs no cmocka: worker processes have it too. */
#ifndef EBB_TESTS_DURABLE_MIX_H
#define EBB_TESTS_DURABLE_MIX_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ebb/durable.h>

typedef struct mix_pace { /* how long things take: virtual time has more of it than a test */
    uint64_t work, timer;
} mix_pace;

/* ---- activities: `arg` is the mix_pace --------------------------------------------------------------------------- */

static inline ebb_status mix_echo(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    const mix_pace *p = ebb_activity_arg(a);
    ebb_sleeper nap = {0};
    *out = in;
    return ebb_sleep(cx, &nap, p->work);
}

/* Runs until it is cancelled. */
static inline ebb_status mix_hang(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    ebb_sleeper nap = {0};
    (void)a;
    (void)in;
    (void)out;
    return ebb_sleep(cx, &nap, 100000 * EBB_SECOND);
}

/* Only its third attempt succeeds, and says so. */
static inline ebb_status mix_flaky(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    static const ebb_failure why = {.code = "flaky"};
    (void)cx;
    (void)in;
    if (ebb_activity_attempt(a) < 3) return ebb_activity_fail(a, &why);
    *out = ebb_blob_text("third");
    return EBB_OK;
}

/* ---- orchestrations: the input is the span of their timers in ns, in digits ----------------------------------------- */

static inline uint64_t mix_span(ebb_blob in) {
    char digits[24] = "";
    memcpy(digits, in.at, in.n < sizeof digits ? in.n : sizeof digits - 1);
    return strtoull(digits, NULL, 10);
}

static inline ebb_status mix_sequence(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = EBB_OK;
    ebb_blob last = ebb_blob_text("s");
    for (int i = 0; i < 3 && st == EBB_OK; i++) {
        st = ebb_orch_await(o, ebb_orch_call(o, "echo", last, NULL), &last);
        if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_timer(o, mix_span(in)), NULL);
    }
    *out = last;
    return st;
}

static inline ebb_status mix_fan(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    enum { N = 6 };
    ebb_step all[N];
    char *text = ebb_orch_alloc(o, N + 1);
    (void)in;
    for (int i = 0; i < N; i++) {
        const char letter[] = {(char)('a' + i), 0};
        all[i] = ebb_orch_call(o, "echo", ebb_blob_text(letter), NULL);
    }
    ebb_status st = ebb_orch_join(o, N, all);
    for (int i = 0; i < N && st == EBB_OK; i++) {
        ebb_blob one;
        st = ebb_orch_await(o, all[i], &one);
        if (st == EBB_OK && one.n == 1) text[i] = *(const char *)one.at;
    }
    *out = ebb_blob_text(text);
    return st;
}

/* A timer wins against an activity and against a child that never end. */
static inline ebb_status mix_race(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    char *id = ebb_orch_alloc(o, 300);
    (void)snprintf(id, 300, "%s.loser", ebb_orch_id(o));
    const ebb_step all[] = {ebb_orch_call(o, "hang", in, NULL), ebb_orch_timer(o, mix_span(in)),
                            ebb_orch_child(o, "waits", in, &(ebb_child_opts){.id = id})};
    size_t won;
    ebb_status st = ebb_orch_select(o, 3, all, &won);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_call(o, "echo", ebb_blob_text("raced"), NULL), out);
    return st == EBB_OK && won != 1 ? EBB_FAILED : st;
}

static inline ebb_status mix_waits(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)in;
    return ebb_orch_await(o, ebb_orch_event(o, "never"), out);
}

static inline ebb_status mix_parent(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    char *id = ebb_orch_alloc(o, 300);
    (void)snprintf(id, 300, "%s.child", ebb_orch_id(o));
    return ebb_orch_await(o, ebb_orch_child(o, "sequence", in, &(ebb_child_opts){.id = id}), out);
}

static inline ebb_status mix_signals(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    char *text = ebb_orch_alloc(o, 3);
    ebb_status st = EBB_OK;
    (void)in;
    for (int i = 0; i < 2 && st == EBB_OK; i++) {
        ebb_blob one;
        st = ebb_orch_await(o, ebb_orch_event(o, "go"), &one);
        if (st == EBB_OK && one.n == 1) text[i] = *(const char *)one.at;
    }
    *out = ebb_blob_text(text);
    return st;
}

static inline ebb_status mix_retry(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_call_opts thrice = {.attempts = 3, .backoff = EBB_BACKOFF_FIXED, .pause = mix_span(in)};
    return ebb_orch_await(o, ebb_orch_call(o, "flaky", in, &thrice), out);
}

/* Three executions, each of which leaves an activity and a timer behind. */
static inline ebb_status mix_again(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_blob v;
    const bool has = ebb_orch_get(o, "round", &v);
    const char round[] = {has && v.n == 1 ? (char)(*(const char *)v.at + 1) : '1', 0};
    (void)ebb_orch_call(o, "hang", in, NULL);
    (void)ebb_orch_timer(o, 1000000 * EBB_SECOND);
    ebb_status st = ebb_orch_set(o, "round", ebb_blob_text(round));
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_call(o, "echo", ebb_blob_text(round), NULL), out);
    if (st != EBB_OK || *round == '3') return st;
    return ebb_orch_continue_as_new(o, in, 0);
}

/* Is cancelled from outside, and compensates. */
static inline ebb_status mix_saga(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_step all[] = {ebb_orch_call(o, "hang", in, NULL), ebb_orch_timer(o, 1000000 * EBB_SECOND)};
    size_t won;
    ebb_status st = ebb_orch_select(o, 2, all, &won);
    (void)out;
    if (st != EBB_CANCELLED) return EBB_FAILED;
    st = ebb_orch_await(o, ebb_orch_call(o, "echo", ebb_blob_text("undone"), NULL), NULL);
    return st == EBB_OK ? EBB_CANCELLED : st;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

typedef struct mix_kind {
    const char *name;
    ebb_orch_fn fn;
    ebb_instance_state state; /* in which it ends; 0: it is not started by itself */
    const char *output;
    uint64_t executions;
    const char *other; /* another instance that it leaves behind, by the end of its id; NULL: none */
    ebb_instance_state other_state;
} mix_kind;

static const mix_kind mix_kinds[] = {
    {"sequence", mix_sequence, EBB_INSTANCE_COMPLETED, "s", 1, NULL, 0},
    {"fan", mix_fan, EBB_INSTANCE_COMPLETED, "abcdef", 1, NULL, 0},
    {"race", mix_race, EBB_INSTANCE_COMPLETED, "raced", 1, ".loser", EBB_INSTANCE_CANCELLED},
    {"parent", mix_parent, EBB_INSTANCE_COMPLETED, "s", 1, ".child", EBB_INSTANCE_COMPLETED},
    {"signals", mix_signals, EBB_INSTANCE_COMPLETED, "xy", 1, NULL, 0},
    {"retry", mix_retry, EBB_INSTANCE_COMPLETED, "third", 1, NULL, 0},
    {"again", mix_again, EBB_INSTANCE_COMPLETED, "3", 3, NULL, 0},
    {"saga", mix_saga, EBB_INSTANCE_CANCELLED, "", 1, NULL, 0},
    {"waits", mix_waits, 0, "", 0, NULL, 0},
};
enum { MIX_KINDS = sizeof mix_kinds / sizeof *mix_kinds, MIX_STARTED = MIX_KINDS - 1 };

/* EBB_OK if all could be registered. `pace` must live as long as the worker. */
static inline ebb_status mix_register(ebb_worker *w, mix_pace *pace) {
    ebb_status st = ebb_worker_activity(w, "echo", mix_echo, pace, NULL);
    if (st == EBB_OK) st = ebb_worker_activity(w, "hang", mix_hang, pace, NULL);
    if (st == EBB_OK) st = ebb_worker_activity(w, "flaky", mix_flaky, pace, NULL);
    for (int i = 0; i < MIX_KINDS && st == EBB_OK; i++)
        st = ebb_worker_orch(w, mix_kinds[i].name, 1, mix_kinds[i].fn);
    return st;
}

#endif
