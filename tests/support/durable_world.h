/* Workers over the lab store, in virtual time: the host opens them, starts instances and lets time pass. */
#ifndef EBB_TESTS_DURABLE_WORLD_H
#define EBB_TESTS_DURABLE_WORLD_H

#include "tests/support/store_world.h"

typedef struct durable {
    world *world;
    ebb_store *store;
    ebb_worker *worker;
    char log[8192];
    int errors, warnings;
    /* of the activities below */
    int started, ended, cancelled;
    ebb_cancel_kind kind; /* of the last cancel */
    uint64_t at;          /* of that */
} durable;

static inline void durable_log(void *arg, ebb_durable_level level, const char *instance, const char *text) {
    durable *d = arg;
    const size_t n = strlen(d->log);
    d->errors += level == EBB_DURABLE_ERROR;
    d->warnings += level == EBB_DURABLE_WARNING;
    (void)snprintf(d->log + n, sizeof d->log - n, "%s: %s\n", instance, text);
}

/* Until nothing happens any more: each answer of the store comes by the inbox. */
static inline void durable_settle(durable *d) {
    ebb_runtime_stats s;
    uint64_t polls;
    do {
        ebb_runtime_stats_of(d->world->rt, &s);
        polls = s.polls;
        store_settle(d->world);
        ebb_runtime_stats_of(d->world->rt, &s);
    } while (s.polls != polls);
}

/* Lets time pass; hints are delivered whenever something has happened. */
static inline void durable_pass(durable *d, uint64_t span) {
    ebb_runtime *rt = d->world->rt;
    const uint64_t end = ebb_now(d->world->host) + span;
    for (;;) {
        durable_settle(d);
        const uint64_t due = ebb_runtime_next_due(rt);
        if (due > end) break;
        ebb_runtime_advance(rt, due);
    }
    ebb_runtime_advance(rt, end);
    durable_settle(d);
}

static inline ebb_worker *durable_open(durable *d, const ebb_worker_opts *opts) {
    ebb_worker *w;
    ebb_worker_opts o = opts != NULL ? *opts : (ebb_worker_opts){0};
    o.log = durable_log;
    o.arg = d;
    if (o.double_run == 0) o.double_run = 1;
    assert_int_equal(ebb_worker_open(d->world->host, d->store, &o, &w), EBB_OK);
    return w;
}

/* Runs until it is cancelled, and says so. */
static inline ebb_status durable_hang(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    durable *d = ebb_activity_arg(a);
    ebb_sleeper nap = {0};
    (void)in;
    (void)out;
    d->started++;
    ebb_status st = ebb_sleep(cx, &nap, 1000 * EBB_SECOND);
    d->cancelled += st == EBB_CANCELLED;
    d->ended++;
    d->at = ebb_now(cx);
    d->kind = (ebb_cancel_kind)ebb_activity_reason(a).kind;
    return st;
}

/* Returns its input after a second. */
static inline ebb_status durable_echo(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    durable *d = ebb_activity_arg(a);
    ebb_sleeper nap = {0};
    d->started++;
    ebb_status st = ebb_sleep(cx, &nap, EBB_SECOND);
    d->ended++;
    *out = in;
    return st;
}

static inline durable *durable_new(world *w, const ebb_worker_opts *opts) {
    durable *d = world_keep(w, sizeof *d);
    d->world = w;
    d->store = open_store(w, "lab:");
    d->worker = durable_open(d, opts);
    assert_int_equal(ebb_worker_activity(d->worker, "hang", durable_hang, d, NULL), EBB_OK);
    assert_int_equal(ebb_worker_activity(d->worker, "echo", durable_echo, d, NULL), EBB_OK);
    return d;
}

static inline ebb_status durable_await(durable *d, ebb_future *f) {
    store_settle(d->world);
    return ebb_await(d->world->host, f, NULL);
}

static inline void durable_start(durable *d, const char *id, const char *name, const char *input) {
    const ebb_start_opts o = {.id = id, .name = name, .input = ebb_blob_text(input)};
    assert_int_equal(durable_await(d, ebb_instance_start(d->world->host, d->store, &o)), EBB_OK);
}

static inline void durable_signal(durable *d, const char *id, const char *name, const char *body) {
    const ebb_signal_opts o = {.id = id, .name = name, .body = ebb_blob_text(body)};
    assert_int_equal(durable_await(d, ebb_instance_signal(d->world->host, d->store, &o)), EBB_OK);
}

/* "Completed 42", "Failed EBB_FAILED", "Running" */
static inline const char *durable_state(durable *d, const char *id) {
    ebb_value v;
    char *text = world_keep(d->world, 600);
    ebb_future *f = ebb_instance_status(d->world->host, d->store, id);
    store_settle(d->world);
    ebb_status st = ebb_await(d->world->host, f, &v);
    if (st != EBB_OK) return ebb_status_name(st);
    const ebb_instance_info *i = ebb_instance_info_of(&v);
    const char *more = i->failure.code != NULL ? i->failure.code : i->text;
    (void)snprintf(text, 600, "%s%s%.*s%s", ebb_instance_state_name(i->state),
                   i->output.n + strlen(more) > 0 ? " " : "", (int)i->output.n,
                   i->output.n > 0 ? (const char *)i->output.at : "", more);
    ebb_value_discard(d->world->host, v);
    return text;
}

/* Rows of an instance, in one read: work, of these claimed, timers, messages. */
static inline const char *durable_rows(durable *d, const char *id) {
    char *text = world_keep(d->world, 100);
    ebb_provider_outstanding_call *c = new_call(d->store, EBB_PROVIDER_OUTSTANDING);
    c->id = id;
    c = ask_store(d->world, c);
    (void)snprintf(text, 100, "work %d claimed %d timers %d messages %d", (int)c->work, (int)c->claimed,
                   (int)c->timers, (int)c->messages);
    free_call(c);
    return text;
}

static inline ebb_worker_stats durable_stats(const durable *d) {
    ebb_worker_stats s;
    ebb_worker_stats_of(d->worker, &s);
    return s;
}

#endif
