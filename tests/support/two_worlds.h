/* Two runtimes of one thread that know each other, each a world of its own. */
#ifndef EBB_TESTS_TWO_WORLDS_H
#define EBB_TESTS_TWO_WORLDS_H

#include "tests/support/world.h"

typedef struct two {
    world *a, *b;
    ebb_peer *to_a, *to_b;
    uint32_t woken_a, woken_b;
} two;

static inline void count_wake(void *ctx) {
    ++*(uint32_t *)ctx;
}

/* Runs one of them for as long as it has something to do. */
static inline void turn(world *w) {
    ebb_inbox_receive(w->rt);
    world_settle(w);
}

/* Runs both until their messages have arrived, and the answers. */
static inline void meet(two *t) {
    for (int i = 0; i < 6; i++) {
        turn(t->a);
        turn(t->b);
    }
}

static inline int two_up(void **state) {
    two *t = calloc(1, sizeof *t);
    t->a = world_new(&(ebb_runtime_opts){.runtime_id = 1}, true);
    t->b = world_new(&(ebb_runtime_opts){.runtime_id = 2}, true);
    assert_int_equal(ebb_inbox_on_wake(t->a->rt, count_wake, &t->woken_a), EBB_OK);
    assert_int_equal(ebb_inbox_on_wake(t->b->rt, count_wake, &t->woken_b), EBB_OK);
    assert_int_equal(ebb_peer_of(t->a->rt, &t->to_a), EBB_OK);
    assert_int_equal(ebb_peer_of(t->b->rt, &t->to_b), EBB_OK);
    *state = t;
    return 0;
}

/* Frees the runtime of one of them at once, in whatever state. */
static inline void doom(world *w) {
    ebb_runtime_free(w->rt);
    w->rt = NULL;
}

static inline void world_after_doom(world *w) {
    assert_int_equal(w->memory.live, 0);
    for (size_t i = 0; i < w->kept_n; i++) free(w->kept[i]);
    free((void *)w->kept);
    free(w->trace);
    free(w);
}

/* Ends both in good order, but those that are doomed. */
static inline int two_down(void **state) {
    two *t = *state;
    world *worlds[] = {t->a, t->b};
    for (int i = 0; i < 2; i++) {
        world *w = worlds[i];
        if (w->rt == NULL) continue;
        ebb_region_cancel(w->host, w->root, EBB_CANCEL_SHUTDOWN, "the test is over");
        turn(w);
    }
    for (int i = 0; i < 2; i++) { /* what takes no notice is forced */
        if (worlds[i]->rt != NULL) world_pass(worlds[i], 550 * EBB_MS);
    }
    if (t->a->rt != NULL && t->b->rt != NULL) meet(t);
    ebb_peer_release(t->to_a);
    ebb_peer_release(t->to_b);
    bool doomed[] = {t->a->rt == NULL, t->b->rt == NULL};
    for (int i = 0; i < 2; i++) {
        if (!doomed[i]) world_end(worlds[i]);
    }
    for (int i = 0; i < 2; i++) { /* what they have allocated may have been the other's until then */
        if (doomed[i]) world_after_doom(worlds[i]);
    }
    free(t);
    return 0;
}

#define IN_TWO_WORLDS(test) cmocka_unit_test_setup_teardown(test, two_up, two_down)

/* A task that awaits a future and keeps what it gets. */
typedef struct reader {
    ebb_future *future;
    ebb_status st;
    ebb_value value;
    ebb_task id;
} reader;

static inline ebb_status read_it(ebb_cx *cx, void *state) {
    reader *r = state;
    r->st = ebb_await(cx, r->future, &r->value);
    return r->st == EBB_PENDING || r->st == EBB_CANCELLED ? r->st : EBB_OK;
}

static inline reader *reader_start(world *w, ebb_region region, ebb_future *f) {
    reader *r = world_keep(w, sizeof *r);
    *r = (reader){.future = f, .st = EBB_PENDING};
    r->id = ebb_spawn(w->host, region, read_it, r);
    assert_int_equal(ebb_id_status(r->id.id), EBB_OK);
    return r;
}

#endif
