/* Calls of a store as futures: whichever thread answers, each ends once and is freed; who gives way when the queue is
 * full; and the faults that tests inject. The provider here only keeps the calls that it gets. */
#include "tests/support/world.h"

#include <pthread.h>

#include "durable/store.h"

typedef struct scene {
    ebb__call_gate gate;
    ebb__call_queue held;
    ebb__store_fault fault;
    uint64_t fault_at;
    int crashes, idle, depth, deepest;
    bool at_once;
} scene;

static void keep(void *self, ebb_provider_call *c) {
    scene *s = self;
    if (!s->at_once) {
        ebb__call_queue_push(&s->held, c);
        return;
    }
    s->depth++;
    if (s->depth > s->deepest) s->deepest = s->depth;
    ebb_provider_done(c, EBB_OK, NULL);
    s->depth--;
}

static void on_instance(void *self, ebb_provider_instance_call *c) {
    keep(self, &c->call);
}

static void on_leave(void *self, ebb_provider_leave_call *c) {
    keep(self, &c->call);
}

static void on_send(void *self, ebb_provider_send_call *c) {
    keep(self, &c->call);
}

static const ebb_provider provider = {
    .size = sizeof provider, .scheme = "test", .instance = on_instance, .leave = on_leave, .send = on_send};

static void on_idle(ebb__call_gate *g) {
    ((scene *)g->self)->idle++;
}

static scene *scene_new(world *w) {
    scene *s = world_keep(w, sizeof *s);
    (void)ebb_future_failed(w->host, EBB_FAILED); /* the heap is made with the first future */
    s->gate.provider = &provider;
    s->gate.self = s;
    s->gate.heap = ebb__heap_at(w->rt);
    s->gate.allocator = w->allocator;
    s->gate.most = 2;
    s->gate.reserve = 1;
    s->gate.idle = on_idle;
    return s;
}

static ebb_future *ask(world *w, scene *s, ebb_provider_op op) {
    ebb_provider_call *c = ebb__call_new(&s->gate, op);
    assert_non_null(c);
    return ebb__call_begin(w->host, c, EBB_SITE);
}

static void answer(scene *s, ebb_status st, const char *text) {
    ebb_provider_done(ebb__call_queue_pop(&s->held), st, text);
}

/* Awaits a future that has ended: how the provider has answered. */
static ebb_status answered(world *w, ebb_future *f, char *text) {
    ebb_value v;
    world_settle(w);
    ebb_status st = ebb_await(w->host, f, &v);
    if (st != EBB_OK) return st;
    ebb_provider_call *c = ebb__call_of(&v);
    assert_non_null(c);
    st = c->status;
    if (text != NULL) strcpy(text, c->text);
    ebb_value_discard(w->host, v);
    return st;
}

static void a_call_ends_as_the_provider_says(void **state) {
    world *w = *state;
    scene *s = scene_new(w);
    char text[512];
    ebb_future *f = ask(w, s, EBB_PROVIDER_INSTANCE);
    world_settle(w);
    assert_int_equal(ebb_future_state_of(f), EBB_FUTURE_PENDING);
    assert_int_equal(s->gate.begun, 1);
    answer(s, EBB_ERR_STORE, "no table inst");
    assert_int_equal(answered(w, f, text), EBB_ERR_STORE);
    assert_string_equal(text, "no table inst");
    assert_int_equal(s->idle, 1);
    s->at_once = true;
    assert_int_equal(answered(w, ask(w, s, EBB_PROVIDER_INSTANCE), text), EBB_OK);
    assert_string_equal(text, "");
}

static void *answer_there(void *arg) {
    answer(arg, EBB_OK, "of another thread");
    return NULL;
}

static void another_thread_may_answer(void **state) {
    world *w = *state;
    scene *s = scene_new(w);
    char text[512];
    pthread_t t;
    ebb_future *f = ask(w, s, EBB_PROVIDER_INSTANCE);
    assert_int_equal(pthread_create(&t, NULL, answer_there, s), 0);
    pthread_join(t, NULL);
    assert_int_equal(s->gate.begun, 1);
    ebb_inbox_receive(w->rt);
    assert_int_equal(s->gate.begun, 0);
    assert_int_equal(answered(w, f, text), EBB_OK);
    assert_string_equal(text, "of another thread");
}

static void a_cancelled_reader_leaves_the_call_to_its_end(void **state) {
    world *w = *state;
    scene *s = scene_new(w);
    ebb_future *f = ask(w, s, EBB_PROVIDER_INSTANCE);
    assert_true(ebb__call_is_wanted(s->held.first));
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    assert_false(ebb__call_is_wanted(s->held.first));
    world_settle(w);
    assert_int_equal(s->gate.begun, 1);
    answer(s, EBB_OK, NULL);
    assert_int_equal(s->gate.begun, 0);
    assert_int_equal(answered(w, f, NULL), EBB_CANCELLED);
}

static void a_forced_region_may_be_gone_before_the_answer(void **state) {
    world *w = *state;
    scene *s = scene_new(w);
    (void)ask(w, s, EBB_PROVIDER_INSTANCE);
    ebb_region_force(w->host, ebb_runtime_root(w->rt));
    world_pass(w, 60 * EBB_SECOND);
    answer(s, EBB_OK, NULL);
    assert_int_equal(s->gate.begun, 0);
}

static void starts_give_way_and_acks_have_a_reserve(void **state) {
    world *w = *state;
    scene *s = scene_new(w);
    ebb_future *a = ask(w, s, EBB_PROVIDER_INSTANCE);
    ebb_future *b = ask(w, s, EBB_PROVIDER_INSTANCE);
    assert_int_equal(answered(w, ask(w, s, EBB_PROVIDER_SEND), NULL), EBB_ERR_BUSY);
    assert_string_equal(ebb_durable_error(),
                        "2 operations of the store are in flight (2); send was not begun");

    ebb_provider_send_call *cancel = ebb__call_new(&s->gate, EBB_PROVIDER_SEND);
    assert_non_null(cancel);
    cancel->kind = EBB_PROVIDER_MESSAGE_CANCEL;
    ebb_future *c = ebb__call_begin(w->host, &cancel->call, EBB_SITE);
    ebb_future *d = ask(w, s, EBB_PROVIDER_LEAVE);
    ebb_future *e = ask(w, s, EBB_PROVIDER_LEAVE);
    assert_int_equal(s->held.calls, 3); /* the reserve is used: d and e wait, and are not refused */
    answer(s, EBB_OK, NULL);
    assert_int_equal(s->held.calls, 3);
    while (s->held.calls > 0) answer(s, EBB_OK, NULL);
    ebb_future *all[] = {a, b, c, d, e};
    for (size_t i = 0; i < 5; i++) assert_int_equal(answered(w, all[i], NULL), EBB_OK);
    assert_int_equal(s->gate.begun, 0);
}

static void waiting_calls_of_a_provider_that_answers_at_once_do_not_recurse(void **state) {
    world *w = *state;
    scene *s = scene_new(w);
    enum { MANY = 100 };
    ebb_future **f = world_keep(w, MANY * sizeof(ebb_future *));
    for (int i = 0; i < MANY; i++) f[i] = ask(w, s, EBB_PROVIDER_LEAVE);
    s->at_once = true;
    answer(s, EBB_OK, NULL);
    assert_int_equal(s->gate.begun, 2);
    assert_int_equal(s->deepest, 1);
    answer(s, EBB_OK, NULL);
    answer(s, EBB_OK, NULL);
    assert_int_equal(s->gate.begun, 0);
    for (int i = 0; i < MANY; i++) assert_int_equal(answered(w, f[i], NULL), EBB_OK);
}

static void a_closed_gate_begins_nothing(void **state) {
    world *w = *state;
    scene *s = scene_new(w);
    s->gate.closed = true;
    assert_int_equal(answered(w, ask(w, s, EBB_PROVIDER_LEAVE), NULL), EBB_ERR_CLOSED);
    assert_int_equal(s->held.calls, 0);
}

static void without_memory_nothing_is_begun_and_nothing_lost(void **state) {
    world *w = *state;
    scene *s = scene_new(w);
    bool whole = false;
    for (uint64_t n = 1; !whole; n++) {
        assert_true(n < 100);
        w->memory.fail_at = w->memory.calls + n;
        ebb_provider_send_call *c = ebb__call_new(&s->gate, EBB_PROVIDER_SEND);
        if (c != NULL) {
            static char large[4096] = "x";
            c->id = ebb__call_text(&c->call, "order-7");
            c->body = ebb__call_blob(&c->call, (ebb_blob){large, sizeof large});
            ebb_future *f = ebb__call_begin(w->host, &c->call, EBB_SITE);
            w->memory.fail_at = 0;
            whole = s->held.calls == 1;
            if (whole) answer(s, EBB_OK, NULL);
            ebb_status st = answered(w, f, NULL);
            assert_int_equal(st, whole ? EBB_OK : EBB_ERR_NOMEM);
        }
        w->memory.fail_at = 0;
        assert_int_equal(s->gate.begun, 0);
    }
}

static ebb__store_fault fault_at(void *arg, uint64_t n, const ebb_provider_call *c) {
    scene *s = arg;
    (void)c;
    return n == s->fault_at ? s->fault : EBB__FAULT_NONE;
}

static void crashed(void *arg) {
    ((scene *)arg)->crashes++;
}

static void faults_happen_at_the_nth_call(void **state) {
    world *w = *state;
    scene *s = scene_new(w);
    const ebb__store_faults faults = {fault_at, crashed, s};
    s->gate.faults = &faults;
    s->fault = EBB__FAULT_BEFORE;
    assert_int_equal(answered(w, ask(w, s, EBB_PROVIDER_LEAVE), NULL), EBB_ERR_UNAVAILABLE);
    assert_int_equal(s->held.calls, 0);
    s->fault = EBB__FAULT_LOST_REPLY;
    s->fault_at = 1;
    ebb_future *f = ask(w, s, EBB_PROVIDER_LEAVE);
    answer(s, EBB_OK, NULL);
    assert_int_equal(answered(w, f, NULL), EBB_ERR_UNAVAILABLE);
    s->fault = EBB__FAULT_CRASH_AFTER;
    s->fault_at = 2;
    f = ask(w, s, EBB_PROVIDER_LEAVE);
    answer(s, EBB_OK, NULL);
    ebb_future *late = ask(w, s, EBB_PROVIDER_LEAVE);
    world_settle(w);
    assert_int_equal(s->crashes, 1);
    assert_int_equal(s->held.calls, 0);
    assert_int_equal(ebb_future_state_of(f), EBB_FUTURE_PENDING);
    assert_int_equal(ebb_future_state_of(late), EBB_FUTURE_PENDING);
    ebb_region_force(w->host, ebb_runtime_root(w->rt)); /* as the host that has crashed */
    world_pass(w, 60 * EBB_SECOND);
    ebb__call_gate_fini(&s->gate);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_call_ends_as_the_provider_says),
        IN_WORLD(another_thread_may_answer),
        IN_WORLD(a_cancelled_reader_leaves_the_call_to_its_end),
        IN_WORLD(a_forced_region_may_be_gone_before_the_answer),
        IN_WORLD(starts_give_way_and_acks_have_a_reserve),
        IN_UNTRACED_WORLD(waiting_calls_of_a_provider_that_answers_at_once_do_not_recurse),
        IN_WORLD(a_closed_gate_begins_nothing),
        IN_WORLD(without_memory_nothing_is_begun_and_nothing_lost),
        IN_WORLD(faults_happen_at_the_nth_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
