/* A proxy between two threads: all messages arrive in order, all requests are answered, with few credits and with many, and
 * whichever side ends first. */
#include "tests/future/peer_threads.h"

/* Between two looks at the inbox it may find the mailbox full 2,048 times. */
enum { NAP_EVERY = 64 };
enum { ITEMS = 20000, LIVES = SLOW_BUILD ? 20 : 50 };
enum { PUT = 1, ASK, GO, SUM, KINDS };

typedef struct side {
    loop loop;
    ebb_machines *ms;
    ebb_machine m;
    uint32_t dead;
} side;

typedef struct pair {
    side near, home;
    ebb_machine_remote *handle;
    ebb_machine proxy; /* of the near thread */
    _Atomic bool imported;
    uint64_t limit;             /* messages and requests */
    uint64_t put, asked, heard; /* of the near thread */
    uint64_t got;               /* of the home thread */
    uint32_t full;              /* times the mailbox of the near thread was */
    uint64_t stop_at;           /* the machine stops itself after so many messages; 0: never */
} pair;

/* The other thread may need the core. */
static void nap(void) {
    nanosleep(&(struct timespec){0, 20000}, NULL);
}

static void on_dead(void *arg, const ebb_dead_letter *dead) {
    ((side *)arg)->dead += dead->kind == PUT || dead->payload == NULL;
}

/* ---- home --------------------------------------------------------------------------------------------------------- */

static ebb_status on_put(ebb_machines *ms, void *self, const ebb_message *m) {
    pair *p = *(pair **)self;
    uint64_t n;
    memcpy(&n, m->payload, sizeof n);
    assert_int_equal(n, ++p->got);
    return p->got == p->stop_at ? ebb_machine_stop(ms, m->self) : EBB_OK;
}

static ebb_status on_ask(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    return ebb_machine_reply(ms, m->request, SUM, m->payload, m->size);
}

/* ---- near --------------------------------------------------------------------------------------------------------- */

static ebb_status on_answer(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    (void)m;
    (*(pair **)self)->heard++;
    return EBB_OK;
}

/* Every fifth is a request. */
static ebb_status stage_one(ebb_machines *ms, pair *p) {
    uint64_t n = p->put + 1;
    bool asks = (p->put + p->asked) % 5 == 4;
    ebb_status st = asks ? ebb_id_status(ebb_machine_request(ms, p->proxy, ASK, &n, sizeof n, 0, 0).id)
                         : ebb_machine_send(ms, p->proxy, PUT, &n, sizeof n);
    if (st == EBB_OK && asks) p->asked++;
    else if (st == EBB_OK) p->put++;
    return st;
}

/* Goes on until the limit, or until the proxy has stopped. */
static ebb_status on_go(ebb_machines *ms, void *self, const ebb_message *m) {
    pair *p = *(pair **)self;
    ebb_status st = EBB_OK;
    for (uint32_t i = 0; i < 16 && st == EBB_OK; i++) {
        if (p->put + p->asked == p->limit) return EBB_OK;
        st = stage_one(ms, p);
    }
    if (st != EBB_OK && st != EBB_ERR_MAILBOX_FULL) return EBB_OK;
    if (st == EBB_ERR_MAILBOX_FULL && ++p->full % NAP_EVERY == 0) nap();
    return ebb_machine_send(ms, m->self, GO, NULL, 0);
}

static const ebb_machine_rule home_table[KINDS] = {
    [PUT] = {on_put, NULL, EBB_MACHINE_HANDLE}, [ASK] = {on_ask, NULL, EBB_MACHINE_HANDLE}};
static const ebb_machine_rule near_table[KINDS] = {
    [EBB_MACHINE_REQUEST_FAILED] = {on_answer, NULL, EBB_MACHINE_HANDLE},
    [GO] = {on_go, NULL, EBB_MACHINE_HANDLE},
    [SUM] = {on_answer, NULL, EBB_MACHINE_HANDLE}};
static const ebb_machine_state only = {.name = "Only"};
static const ebb_machine_type home_type = {.name = "Home",
                                           .states = &only,
                                           .table = home_table,
                                           .fields = sizeof(pair *),
                                           .n_states = 1,
                                           .columns = KINDS,
                                           .mailbox = 1024};
static const ebb_machine_type near_type = {.name = "Near",
                                           .states = &only,
                                           .table = near_table,
                                           .fields = sizeof(pair *),
                                           .n_states = 1,
                                           .columns = KINDS};

/* ---- a life ------------------------------------------------------------------------------------------------------- */

static void open_side(pair *p, side *s, uint8_t id, const ebb_machine_type *type) {
    ebb_machines_opts o = {.n_kinds = KINDS, .dead_letter = on_dead, .arg = s};
    loop_new(&s->loop, id, !SLOW_BUILD && p->limit < 2000);
    assert_int_equal(ebb_machines_open(ebb_runtime_host(s->loop.rt), &s->ms, &o), EBB_OK);
    s->m = ebb_machine_spawn(s->ms, type, 0, &p);
    assert_int_equal(ebb_machine_start(s->ms, s->m), EBB_OK);
}

static ebb_status begin_near(ebb_cx *cx, void *arg) {
    pair *p = arg;
    (void)cx;
    p->proxy = ebb_machine_remote_import(p->near.ms, p->handle);
    if (ebb_id_status(p->proxy.id) == EBB_OK)
        assert_int_equal(ebb_machine_send(p->near.ms, p->near.m, GO, NULL, 0), EBB_OK);
    p->imported = true;
    return EBB_OK;
}

static void begin(pair *p, uint32_t credits) {
    open_side(p, &p->near, 1, &near_type);
    open_side(p, &p->home, 2, &home_type);
    ebb_machine_remote_opts o = {.credits = credits};
    assert_int_equal(ebb_machine_remote_new(p->home.ms, p->home.m, &o, &p->handle), EBB_OK);
    loop_start(&p->home.loop, NULL, NULL);
    loop_start(&p->near.loop, begin_near, p);
}

static void join(side *s) {
    loop_join(&s->loop);
    if (s->loop.traced && !s->loop.abrupt) loop_check(&s->loop);
    free(s->loop.trace);
    assert_int_equal(ebb_machines_free(s->ms), EBB_OK);
}

static void wait_until_imported(pair *p) {
    while (!p->imported) nap();
}

static void all_crosses(uint64_t limit, uint32_t credits) {
    pair *p = calloc(1, sizeof *p);
    p->limit = limit;
    begin(p, credits);
    wait_until_imported(p);
    loop_stop(&p->near.loop);
    join(&p->near);
    loop_stop(&p->home.loop);
    join(&p->home);
    assert_int_equal(p->put + p->asked, limit);
    assert_int_equal(p->got, p->put);
    assert_int_equal(p->heard, p->asked);
    assert_int_equal(p->near.dead + p->home.dead, 0);
    free(p);
}

static void all_messages_and_requests_cross_in_order(void **state) {
    (void)state;
    all_crosses(ITEMS, 512);
    all_crosses(ITEMS / 20, 16); /* each exhausted credit is a switch between threads */
    all_crosses(ITEMS / 300, 1);
}

/* The sides are told to stop in any order, at any time, while the machine stops itself. */
static void whoever_ends_first_each_message_has_one_end(void **state) {
    uint64_t random = 271828182845;
    (void)state;
    for (uint32_t i = 0; i < LIVES; i++) {
        pair *p = calloc(1, sizeof *p);
        p->limit = 1 + next_random(&random) % 200;
        if (next_random(&random) % 2 == 0) p->stop_at = 1 + next_random(&random) % 100;
        side *first = next_random(&random) % 2 == 0 ? &p->near : &p->home;
        begin(p, 1 + (uint32_t)(next_random(&random) % 32));
        if (next_random(&random) % 4 != 0) wait_until_imported(p);
        dawdle(&random);
        loop_stop(&first->loop);
        dawdle(&random);
        loop_stop(first == &p->near ? &p->home.loop : &p->near.loop);
        join(&p->near);
        join(&p->home);
        assert_int_equal(p->got + p->near.dead + p->home.dead, p->put);
        assert_int_equal(p->heard, p->asked);
        free(p);
    }
}

static void a_runtime_may_be_freed_at_any_time(void **state) {
    uint64_t random = 314159265358;
    (void)state;
    for (uint32_t i = 0; i < LIVES; i++) {
        pair *p = calloc(1, sizeof *p);
        p->limit = 1 + next_random(&random) % 200;
        side *freed = next_random(&random) % 2 == 0 ? &p->near : &p->home;
        begin(p, 1 + (uint32_t)(next_random(&random) % 32));
        freed->loop.abrupt = true;
        if (next_random(&random) % 4 != 0) wait_until_imported(p);
        dawdle(&random);
        loop_stop(&freed->loop);
        dawdle(&random);
        if (freed == &p->home) wait_until_imported(p);
        loop_stop(freed == &p->near ? &p->home.loop : &p->near.loop);
        join(&p->near);
        join(&p->home);
        assert_true(p->got + p->near.dead + p->home.dead <= p->put);
        if (freed == &p->home) assert_int_equal(p->heard, p->asked);
        if (!p->imported) ebb_machine_remote_release(p->handle);
        free(p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_messages_and_requests_cross_in_order),
        cmocka_unit_test(whoever_ends_first_each_message_has_one_end),
        cmocka_unit_test(a_runtime_may_be_freed_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
