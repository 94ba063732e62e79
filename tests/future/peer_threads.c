/* Imports on real threads: a future ends on its own thread, is cancelled by the importer and by a third
 * thread, and runtimes are freed meanwhile. Each word that somebody owns is freed once. */
#include "tests/future/peer_threads.h"

enum { ROUNDS = SLOW_BUILD ? 2000 : 10000, LIVES = SLOW_BUILD ? 150 : 1000, EACH = 8 };

/* ---- words that somebody owns ------------------------------------------------------------------------------ */

static _Atomic uint64_t words_made, words_freed;

static void free_word(void *p) {
    assert_true(*(uint32_t *)p == 1);
    free(p);
    words_freed++;
}

static const ebb_type word_type = {"word", 0, NULL, free_word, 0};

static ebb_value new_word(void) {
    uint32_t *p = malloc(sizeof *p);
    *p = 1;
    words_made++;
    return ebb_value_owned(&word_type, p);
}

/* ---- ends and cancels race ------------------------------------------------------------------------------------ */

/* A box by which one thread gives another a remote handle. */
typedef _Atomic(ebb_remote *) box;

typedef struct traffic {
    EBB_TASK_STATE;
    loop source, home;
    box to_home, to_third, answered; /* answered: any non-NULL; the round is over */
    ebb_future *future, *import;     /* the source's, the home's */
    ebb_value value;
    uint32_t round;
    uint64_t random, home_random;
    uint32_t completed, failed, cancelled;
    _Atomic bool done;
    pthread_t third;
} traffic;

static ebb_remote *const token = (ebb_remote *)(uintptr_t)8;

/* The source's own task: waits for a while, and ends it. */
static ebb_status produce(ebb_cx *cx, traffic *t) {
    if (ebb_future_is_cancelled(t->future) || next_random(&t->random) % 8 == 0) {
        if (next_random(&t->random) % 3 == 0) (void)ebb_promise_reject(t->future, EBB_FAILED);
        else (void)ebb_promise_settle(t->future, new_word());
        return EBB_OK;
    }
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

static void nothing_to_stop(ebb_cx *cx, ebb_future *f, void *arg) {
    (void)cx;
    (void)f;
    (void)arg;
}

static const ebb_operation production = {"production", nothing_to_stop, NULL};

static ebb_status await_box(ebb_cx *cx, box *b) {
    if (atomic_exchange(b, NULL) != NULL) return EBB_OK;
    sched_yield();
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

static ebb_status offer_futures(ebb_cx *cx, void *state) {
    traffic *t = state;
    ebb_status st;
    ebb_remote *r;
    EBB_BEGIN(t);
    for (t->round = 0; t->round < ROUNDS; t->round++) {
        t->future = ebb_promise_new(cx, &production, NULL);
        if (t->round % 16 == 0) ebb_future_share(t->future);
        if (t->round % 16 == 1) ebb_future_shield(t->future);
        assert_int_equal(ebb_remote_new(t->future, &r), EBB_OK);
        if (t->round % 4 != 3) ebb_future_drop(t->future);
        if (t->round % 2 == 0) ebb_remote_release(atomic_exchange(&t->to_third, ebb_remote_keep(r)));
        atomic_store(&t->to_home, r);
        EBB_AWAIT(t, st, produce(cx, t));
        EBB_AWAIT(t, st, await_box(cx, &t->answered));
        if (t->round % 4 == 3) ebb_future_drop(t->future);
    }
    (void)st;
    t->done = true;
    loop_stop(&t->source);
    loop_stop(&t->home);
    EBB_END(t);
}

static ebb_status take_future(ebb_cx *cx, traffic *t) {
    ebb_remote *r = atomic_exchange(&t->to_home, NULL);
    if (r == NULL) {
        if (t->done) return EBB_CANCELLED;
        sched_yield();
        (void)ebb_task_wake(cx, ebb_cx_task(cx));
        return EBB_PENDING;
    }
    t->import = ebb_remote_import(cx, r);
    if (next_random(&t->home_random) % 3 == 0) {
        dawdle(&t->home_random);
        (void)ebb_future_cancel(t->import, EBB_CANCEL_USER);
    }
    return EBB_OK;
}

typedef struct importer {
    EBB_TASK_STATE;
    traffic *t;
} importer;

static ebb_status import_futures(ebb_cx *cx, void *state) {
    importer *i = state;
    traffic *t = i->t;
    ebb_status st;
    EBB_BEGIN(i);
    for (;;) {
        EBB_AWAIT(i, st, take_future(cx, t));
        if (st != EBB_OK) return EBB_OK;
        EBB_AWAIT(i, st, ebb_await(cx, t->import, &t->value));
        t->completed += st == EBB_OK;
        t->failed += st == EBB_FAILED;
        t->cancelled += st == EBB_CANCELLED;
        if (st == EBB_OK) ebb_value_discard(cx, t->value);
        atomic_store(&t->answered, token);
    }
    EBB_END(i);
}

static void *cancel_some(void *arg) {
    traffic *t = arg;
    uint64_t random = 424242424242;
    while (!t->done) {
        ebb_remote *r = atomic_exchange(&t->to_third, NULL);
        if (r == NULL) {
            sched_yield();
            continue;
        }
        dawdle(&random);
        if (next_random(&random) % 2 == 0) (void)ebb_remote_cancel(r, EBB_CANCEL_DISCONNECT);
        ebb_remote_release(r);
    }
    return NULL;
}

static void ends_and_cancels_from_three_threads_agree(void **state) {
    (void)state;
    traffic *t = calloc(1, sizeof *t);
    importer i = {.t = t};
    t->random = 7777777;
    t->home_random = 99999999;
    loop_new(&t->source, 1, false);
    loop_new(&t->home, 2, false);
    assert_int_equal(pthread_create(&t->third, NULL, cancel_some, t), 0);
    loop_start(&t->home, import_futures, &i);
    loop_start(&t->source, offer_futures, t);
    loop_join(&t->source);
    loop_join(&t->home);
    pthread_join(t->third, NULL);
    ebb_remote_release(atomic_load(&t->to_third));
    print_message("%u completed, %u failed, %u cancelled; %llu words\n", t->completed, t->failed,
                  t->cancelled, (unsigned long long)words_made);
    assert_int_equal(t->completed + t->failed + t->cancelled, ROUNDS);
    assert_int_equal(words_made, words_freed);
    free(t);
}

/* ---- runtimes come and go --------------------------------------------------------------------------------------- */

/* A runtime that lives for a moment, with futures that others know. */
typedef struct moth {
    loop loop;
    ebb_remote *remote[EACH], *twin[EACH];
    uint64_t random;
    pthread_t third;
} moth;

typedef struct holder {
    EBB_TASK_STATE;
    loop home;
    moth *moth;
    ebb_future *import[EACH];
    ebb_value value;
    uint32_t life, i, closed, ended;
    uint64_t random;
} holder;

/* Settles or cancels from outside, while the runtime may be on its way out. */
static void *touch(void *arg) {
    moth *m = arg;
    uint64_t random = m->random ^ 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < EACH; i++) {
        dawdle(&random);
        uint64_t what = next_random(&random) % 3;
        if (what == 0) (void)ebb_remote_settle(m->twin[i], new_word());
        if (what == 1) (void)ebb_remote_cancel(m->twin[i], EBB_CANCEL_USER);
        ebb_remote_release(m->twin[i]);
    }
    return NULL;
}

static moth *hatch(uint64_t *random) {
    moth *m = calloc(1, sizeof *m);
    loop_new(&m->loop, 3, false);
    m->loop.abrupt = m->loop.lazy = true;
    m->random = next_random(random);
    ebb_cx *host = ebb_runtime_host(m->loop.rt);
    for (uint32_t i = 0; i < EACH; i++) {
        assert_int_equal(ebb_remote_new(ebb_promise_new(host, NULL, NULL), &m->remote[i]), EBB_OK);
        m->twin[i] = ebb_remote_keep(m->remote[i]);
    }
    loop_start(&m->loop, NULL, NULL);
    assert_int_equal(pthread_create(&m->third, NULL, touch, m), 0);
    return m;
}

static void bury(moth *m) {
    pthread_join(m->third, NULL);
    loop_join(&m->loop);
    free(m);
}

static ebb_status keep_moths(ebb_cx *cx, void *state) {
    holder *k = state;
    ebb_status st;
    EBB_BEGIN(k);
    for (k->life = 0; k->life < LIVES; k->life++) {
        k->moth = hatch(&k->random);
        for (k->i = 0; k->i < EACH; k->i++) {
            if (k->i == EACH / 2) loop_stop(&k->moth->loop);
            k->import[k->i] = ebb_remote_import(cx, k->moth->remote[k->i]);
            if (next_random(&k->random) % 4 == 0) (void)ebb_future_cancel(k->import[k->i], EBB_CANCEL_USER);
        }
        for (k->i = 0; k->i < EACH; k->i++) {
            EBB_AWAIT(k, st, ebb_await(cx, k->import[k->i], &k->value));
            if (st == EBB_OK) ebb_value_discard(cx, k->value);
            k->closed += st == EBB_ERR_CLOSED;
            k->ended++;
        }
        bury(k->moth);
    }
    loop_stop(&k->home);
    EBB_END(k);
}

static void a_runtime_that_is_freed_among_others_leaves_nobody_waiting(void **state) {
    (void)state;
    holder *k = calloc(1, sizeof *k);
    k->random = 123456789;
    words_made = words_freed = 0;
    loop_new(&k->home, 1, true);
    loop_start(&k->home, keep_moths, k);
    loop_join(&k->home);
    loop_check(&k->home);
    print_message("%u imports, %u of them closed; %llu words\n", k->ended, k->closed,
                  (unsigned long long)words_made);
    assert_int_equal(k->ended, LIVES * EACH);
    assert_int_equal(words_made, words_freed);
    free(k->home.trace);
    free(k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_and_cancels_from_three_threads_agree),
        cmocka_unit_test(a_runtime_that_is_freed_among_others_leaves_nobody_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
