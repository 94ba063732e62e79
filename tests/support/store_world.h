/* A store in a world of virtual time: opened, asked and answered by the host. */
#ifndef EBB_TESTS_STORE_WORLD_H
#define EBB_TESTS_STORE_WORLD_H

#include "durable/lab_store.h"
#include "durable/store.h"
#include "tests/support/world.h"

/* Settles, and receives what other threads, and hints, have sent. */
static inline void store_settle(world *w) {
    for (int i = 0; i < 4; i++) {
        ebb_inbox_receive(w->rt);
        world_settle(w);
    }
}

static inline ebb_store *open_store(world *w, const char *url) {
    ebb_value v;
    ebb_future *f = ebb_store_open(w->host, &(ebb_store_opts){.url = url});
    store_settle(w);
    assert_int_equal(ebb_await(w->host, f, &v), EBB_OK);
    assert_non_null(ebb_store_of(&v));
    return ebb_store_of(&v);
}

static inline void close_store(world *w, ebb_store *s) {
    ebb_future *f = ebb_store_close(w->host, s);
    store_settle(w);
    assert_int_equal(ebb_await(w->host, f, NULL), EBB_OK);
}

static inline void *new_call(ebb_store *s, ebb_provider_op op) {
    void *c = ebb__call_new(ebb__store_gate(s), op);
    assert_non_null(c);
    return c;
}

/* Asks and waits, for a provider that answers at once. The call stays valid until free_call. */
static inline void *ask_store(world *w, void *call) {
    ebb_value v;
    ebb_future *f = ebb__call_begin(w->host, call, EBB_SITE);
    store_settle(w);
    assert_int_equal(ebb_await(w->host, f, &v), EBB_OK);
    return ebb__call_of(&v);
}

static inline void free_call(void *call) {
    ebb__call_free(call);
}

#endif
