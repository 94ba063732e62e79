/* Crowds that another thread cancels while their owner is busy: all are cancelled, none is dropped, nothing is
 * allocated. */
#include "tests/support/future_world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { CHAIN = 1000 * 1000, FAN = 100 * 1000 };

typedef struct crowd {
    future_world *fw;
    ebb_remote **remote;
    size_t n;
    _Atomic bool started, over;
    size_t won;
    uint64_t cancels, others; /* that were told */
} crowd;

static void one_cancelled(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    crowd *c = arg;
    (void)cx;
    if (kind == EBB_CANCEL_DISCONNECT) c->cancels++;
    else c->others++;
}

static void one_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)cx;
    (void)st;
    (void)v;
    ((crowd *)arg)->others++;
}

static ebb_future *counted(crowd *c, ebb_future *f) {
    assert_int_equal(ebb_future_on_cancel(f, one_cancelled, c), EBB_OK);
    assert_int_equal(ebb_future_on_done(f, one_done, c), EBB_OK);
    return f;
}

static void *cancels_all(void *arg) {
    crowd *c = arg;
    while (!atomic_load(&c->started)) continue;
    for (size_t i = 0; i < c->n; i++) c->won += ebb_remote_cancel(c->remote[i], EBB_CANCEL_DISCONNECT);
    atomic_store(&c->over, true);
    return NULL;
}

static ebb_status spins(ebb_cx *cx, void *state) {
    ++*(uint64_t *)state;
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return ebb_checkpoint(cx);
}

static void no_more_memory(future_world *fw) {
    fw->memory->fail_at = fw->memory->calls + 1;
    fw->memory->fail_after = true;
}

/* The owner has other work meanwhile; with `turns` it takes in what comes while it comes. */
static void cancel_from_another_thread(crowd *c, bool turns) {
    future_world *fw = c->fw;
    uint64_t spun = 0;
    pthread_t thread;
    ebb_task busy = ebb_spawn(fw->host, fw->root, spins, &spun);
    assert_int_equal(pthread_create(&thread, NULL, cancels_all, c), 0);
    uint64_t calls = fw->memory->calls;
    no_more_memory(fw);
    atomic_store(&c->started, true);
    while (!atomic_load(&c->over)) {
        if (turns) ebb_inbox_receive(fw->rt);
        (void)ebb_runtime_pump(fw->rt, 8);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(spun > 0);
    ebb_task_cancel(fw->host, busy, EBB_CANCEL_USER, "enough");
    future_settle(fw);
    assert_int_equal(fw->memory->calls, calls);
    fw->memory->fail_at = 0;
    assert_int_equal(c->won, c->n);
    assert_int_equal(c->others, 0);
}

static void release_all(crowd *c) {
    for (size_t i = 0; i < c->n; i++) ebb_remote_release(c->remote[i]);
    future_settle(c->fw);
    free((void *)c->remote);
    future_collect(c->fw);
    assert_int_equal(future_stats(c->fw).live, 0);
}

static void export_one(crowd *c, ebb_future *f) {
    if ((c->n & (c->n - 1)) == 0) {
        c->remote = (ebb_remote **)realloc((void *)c->remote, (2 * c->n + 1) * sizeof(void *));
        assert_non_null(c->remote);
    }
    assert_int_equal(ebb_remote_new(f, &c->remote[c->n++]), EBB_OK);
}

static ebb_value same(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)arg;
    return ebb_value_take(cx, v);
}

static void a_chain_of_a_million_is_cancelled_whole_without_memory(void **state) {
    future_world *fw = *state;
    size_t n = future_crowd(CHAIN, 150);
    for (int turns = 0; turns < 2; turns++) {
        crowd c = {.fw = fw};
        ebb_future *f = counted(&c, ebb_future_never(fw->host));
        for (size_t i = 1; i < n; i++) f = counted(&c, ebb_map(fw->host, f, same, NULL));
        export_one(&c, f);
        cancel_from_another_thread(&c, turns);
        assert_int_equal(c.cancels, n);
        ebb_future_drop(f);
        release_all(&c);
    }
}

static void a_fan_of_a_hundred_thousand_is_cancelled_whole_without_memory(void **state) {
    future_world *fw = *state;
    size_t n = future_crowd(FAN, 100);
    ebb_future *(*const make[])(ebb_cx *, size_t, ebb_future *const *, const char *) = {
        ebb_all_site, ebb_race_site, ebb_all_settled_site, ebb_any_site, ebb_select_site};
    ebb_future **fs = calloc(n, sizeof(void *));
    for (int i = 0; i < 5; i++) {
        crowd c = {.fw = fw};
        for (size_t k = 0; k < n; k++) fs[k] = counted(&c, ebb_future_never(fw->host));
        ebb_future *f = counted(&c, make[i](fw->host, n, fs, EBB_SITE));
        export_one(&c, f);
        cancel_from_another_thread(&c, i % 2 == 0);
        assert_int_equal(c.cancels, n + 1);
        ebb_future_drop(f);
        release_all(&c);
    }
    free((void *)fs);
}

static void a_hundred_thousand_that_are_cancelled_one_by_one_are_all_told(void **state) {
    future_world *fw = *state;
    size_t n = future_crowd(FAN, 100);
    ebb_future **fs = calloc(n, sizeof(void *));
    for (int turns = 0; turns < 2; turns++) {
        crowd c = {.fw = fw};
        for (size_t k = 0; k < n; k++) {
            fs[k] = counted(&c, ebb_future_never(fw->host));
            export_one(&c, fs[k]);
        }
        cancel_from_another_thread(&c, turns);
        assert_int_equal(c.cancels, n);
        for (size_t k = 0; k < n; k++) ebb_future_drop(fs[k]);
        release_all(&c);
    }
    free((void *)fs);
}

static void wake_up(void *ctx) {
    atomic_fetch_add((_Atomic uint32_t *)ctx, 1);
}

static void a_batch_wakes_its_owner_once(void **state) {
    future_world *fw = *state;
    _Atomic uint32_t wakes = 0;
    crowd c = {.fw = fw};
    ebb_future *fs[100];
    assert_int_equal(ebb_inbox_on_wake(fw->rt, wake_up, &wakes), EBB_OK);
    for (int i = 0; i < 100; i++) {
        fs[i] = counted(&c, ebb_future_never(fw->host));
        export_one(&c, fs[i]);
    }
    cancel_from_another_thread(&c, false);
    assert_int_equal(wakes, 1);
    for (int i = 0; i < 100; i++) ebb_future_drop(fs[i]);
    release_all(&c);
    assert_int_equal(ebb_inbox_on_wake(fw->rt, NULL, NULL), EBB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_UNTRACED_FUTURES(a_chain_of_a_million_is_cancelled_whole_without_memory),
        IN_UNTRACED_FUTURES(a_fan_of_a_hundred_thousand_is_cancelled_whole_without_memory),
        IN_UNTRACED_FUTURES(a_hundred_thousand_that_are_cancelled_one_by_one_are_all_told),
        IN_UNTRACED_FUTURES(a_batch_wakes_its_owner_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
