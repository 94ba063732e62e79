/* A region with children on three other threads, cancelled from a fifth thread, again and again: it closes
 * every time, and in the traces every parent is cancelled before its children. */
#include "tests/future/peer_threads.h"

enum { CHILDREN = 3, ROUNDS = 10000 };

typedef struct voyage voyage;

/* One far child of one round. */
typedef struct child {
    EBB_TASK_STATE;
    uint32_t temper;
} child;

struct voyage {
    EBB_TASK_STATE;
    loop loops[1 + CHILDREN]; /* the parent's is the first */
    child child[CHILDREN];
    ebb_future *future[CHILDREN];
    ebb_region region;
    ebb_task driver;
    uint32_t round, i, closed;
    bool is_closed;
    _Atomic(ebb_remote *) offered; /* to the fifth thread: cancelling it cancels the region */
    _Atomic bool done;
    pthread_t fifth;
};

/* Takes a step or two before it ends; one in four has ended before it is asked to. */
static ebb_status child_body(ebb_cx *cx, void *state) {
    child *c = state;
    ebb_status st;
    EBB_BEGIN(c);
    if (c->temper % 4 == 0) return EBB_OK;
    EBB_AWAIT(c, st, ebb_checkpoint(cx) == EBB_OK ? EBB_PENDING : EBB_OK);
    (void)st;
    if (c->temper % 4 == 1) EBB_YIELD(cx, c);
    return EBB_CANCELLED;
    EBB_END(c);
}

static ebb_status captain(ebb_cx *cx, void *state) {
    voyage *v = state;
    for (uint32_t i = 0; i < CHILDREN && v->future[i] == NULL; i++) {
        v->child[i] = (child){.temper = v->round + i};
        v->future[i] = ebb_peer_run(cx, v->loops[1 + i].peer, child_body, &v->child[i]);
    }
    return ebb_checkpoint(cx) == EBB_OK ? EBB_PENDING : EBB_CANCELLED;
}

static void region_closed(void *arg, const ebb_region_report *report) {
    voyage *v = arg;
    assert_int_equal(report->abandoned, 0);
    v->is_closed = true;
    v->closed++;
    (void)ebb_task_wake(ebb_runtime_host(v->loops[0].rt), v->driver);
}

static void cancel_region(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    voyage *v = arg;
    ebb_region_cancel(cx, v->region, kind, "from the fifth thread");
}

static void offer(ebb_cx *cx, voyage *v) {
    ebb_future *bell = ebb_promise_new(cx, NULL, NULL);
    ebb_remote *r;
    assert_int_equal(ebb_future_on_cancel(bell, cancel_region, v), EBB_OK);
    assert_int_equal(ebb_remote_new(bell, &r), EBB_OK);
    ebb_future_drop(bell);
    atomic_store(&v->offered, r);
}

static ebb_status drive(ebb_cx *cx, void *state) {
    voyage *v = state;
    ebb_status st;
    EBB_BEGIN(v);
    v->driver = ebb_cx_task(cx);
    for (v->round = 0; v->round < ROUNDS; v->round++) {
        v->is_closed = false;
        memset(v->future, 0, sizeof v->future);
        v->region = ebb_region_open(cx, &(ebb_region_opts){.on_closed = region_closed, .arg = v});
        assert_int_equal(ebb_id_status(ebb_spawn(cx, v->region, captain, v).id), EBB_OK);
        offer(cx, v);
        EBB_AWAIT(v, st, v->is_closed ? EBB_OK : EBB_PENDING);
        (void)st;
    }
    for (uint32_t i = 0; i <= CHILDREN; i++) loop_stop(&v->loops[i]);
    EBB_END(v);
}

static void *be_fifth(void *arg) {
    voyage *v = arg;
    uint64_t random = 88172645463325252u;
    while (!v->done) {
        ebb_remote *r = atomic_exchange(&v->offered, NULL);
        if (r == NULL) {
            sched_yield();
            continue;
        }
        dawdle(&random);
        assert_true(ebb_remote_cancel(r, next_random(&random) % 2 ? EBB_CANCEL_USER : EBB_CANCEL_TIMEOUT));
        ebb_remote_release(r);
    }
    return NULL;
}

/* ---- the traces --------------------------------------------------------------------------------------------- */

/* What a trace says of the n-th region that was opened after the root. */
typedef struct story {
    uint64_t region, received, word, cancelled;
} story;

static story *find_region(story *s, uint32_t n, uint64_t id) {
    for (uint32_t i = n; i-- > 0;) {
        if (s[i].region == id) return &s[i];
        if (i + 8 < n) break; /* only the last few are alive */
    }
    return NULL;
}

static story *read_trace(const loop *l, uint32_t *n) {
    story *all = calloc(ROUNDS + 1, sizeof *all);
    ebb_trace_reader reader;
    ebb_event ev;
    *n = 0;
    assert_int_equal(ebb_trace_reader_open(&reader, l->trace, l->trace_n), EBB_OK);
    while (ebb_trace_reader_next(&reader, &ev) == EBB_OK) {
        story *s = find_region(all, *n, ev.region_id);
        if (ev.type == EBB_EV_REGION_OPENED && ev.other != 0) all[(*n)++].region = ev.region_id;
        if (s == NULL) continue;
        if (ev.type == EBB_EV_RECEIVED && ev.value == EBB_MSG_CANCEL && s->received == 0) {
            s->received = ev.decision_seq;
            s->word = ev.other & ((UINT64_C(1) << 56) - 1); /* without the id of the sender */
        }
        if (ev.type == EBB_EV_REGION_CANCELLED && s->cancelled == 0) s->cancelled = ev.decision_seq;
    }
    return all;
}

static void parents_come_before_children(voyage *v) {
    uint32_t parents, children, both = 0;
    story *parent = read_trace(&v->loops[0], &parents);
    assert_int_equal(parents, ROUNDS);
    for (uint32_t i = 1; i <= CHILDREN; i++) {
        story *far = read_trace(&v->loops[i], &children);
        assert_int_equal(children, ROUNDS);
        for (uint32_t n = 0; n < ROUNDS; n++) {
            assert_true(parent[n].cancelled != 0);
            if (far[n].cancelled == 0) continue; /* it had ended before */
            assert_true(far[n].received != 0 && far[n].received < far[n].cancelled);
            assert_true(parent[n].cancelled < far[n].word);
            both++;
        }
        free(far);
    }
    free(parent);
    print_message("%u regions cancelled, %u of their children after them\n", parents, both);
    assert_true(both > ROUNDS);
}

static void a_region_cancelled_from_a_fifth_thread_closes_after_its_far_children(void **state) {
    (void)state;
    voyage *v = calloc(1, sizeof *v);
    for (uint32_t i = 0; i <= CHILDREN; i++) loop_new(&v->loops[i], (uint8_t)(i + 1), true);
    for (uint32_t i = 1; i <= CHILDREN; i++) loop_start(&v->loops[i], NULL, NULL);
    assert_int_equal(pthread_create(&v->fifth, NULL, be_fifth, v), 0);
    loop_start(&v->loops[0], drive, v);
    for (uint32_t i = 0; i <= CHILDREN; i++) loop_join(&v->loops[i]);
    v->done = true;
    pthread_join(v->fifth, NULL);
    assert_int_equal(v->closed, ROUNDS);
    for (uint32_t i = 0; i <= CHILDREN; i++) loop_check(&v->loops[i]);
    parents_come_before_children(v);
    for (uint32_t i = 0; i <= CHILDREN; i++) free(v->loops[i].trace);
    free(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_cancelled_from_a_fifth_thread_closes_after_its_far_children),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
