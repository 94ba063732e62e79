/* Channels and semaphores as futures: whatever becomes of such a future, the item, the place or the permit is used
 * once, or is there again. */
#include "tests/support/future_world.h"

#include <stdlib.h>

static ebb_chan *chan_of(future_world *fw, uint32_t capacity) {
    ebb_chan *ch = NULL;
    assert_int_equal(ebb_chan_new(fw->rt, capacity, sizeof(uint64_t), &ch), EBB_OK);
    return ch;
}

static void put(future_world *fw, ebb_chan *ch, uint64_t item) {
    assert_int_equal(ebb_chan_try_send(fw->host, ch, &item), EBB_OK);
}

static uint64_t get(future_world *fw, ebb_chan *ch) {
    uint64_t item = 0;
    assert_int_equal(ebb_chan_try_recv(fw->host, ch, &item), EBB_OK);
    return item;
}

static uint64_t take(future_world *fw, ebb_value *claim) {
    uint64_t item = 0;
    assert_int_equal(ebb_chan_take(fw->host, claim, &item), EBB_OK);
    assert_null(claim->type);
    return item;
}

static ebb_value value_of(future_world *fw, ebb_future *f) {
    ebb_value v;
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, f, &v), EBB_OK);
    return v;
}

/* ---- tasks ------------------------------------------------------------------------------------------------ */

/* Awaits a future; at the end it has `st` and `v`. */
typedef struct reader {
    EBB_TASK_STATE;
    ebb_future *f;
    ebb_value v;
    ebb_status st;
} reader;

static ebb_status read_once(ebb_cx *cx, void *state) {
    reader *r = state;
    EBB_BEGIN(r);
    EBB_AWAIT(r, r->st, ebb_await(cx, r->f, &r->v));
    return r->st;
    EBB_END(r);
}

static ebb_task read_in(future_world *fw, ebb_region region, reader *r, ebb_future *f) {
    *r = (reader){.f = f, .st = EBB_PENDING};
    ebb_task t = ebb_spawn(fw->host, region, read_once, r);
    assert_int_equal(ebb_id_status(t.id), EBB_OK);
    return t;
}

/* Receives one item as a task. */
typedef struct receiver {
    ebb_chan *ch;
    ebb_wait wait;
    uint64_t item;
    ebb_status st;
} receiver;

static ebb_status receive_one(ebb_cx *cx, void *state) {
    receiver *r = state;
    r->st = ebb_chan_recv(cx, r->ch, &r->wait, &r->item);
    return r->st;
}

/* ---- channel ---------------------------------------------------------------------------------------------- */

static void try_send_and_try_recv_never_wait(void **state) {
    future_world *fw = *state;
    ebb_chan *ch = chan_of(fw, 2);
    uint64_t item = 7;
    assert_int_equal(ebb_chan_try_recv(fw->host, ch, &item), EBB_PENDING);
    put(fw, ch, 1);
    put(fw, ch, 2);
    assert_int_equal(ebb_chan_try_send(fw->host, ch, &item), EBB_PENDING);
    assert_int_equal(ebb_chan_length(ch), 2);
    assert_int_equal(get(fw, ch), 1);
    ebb_chan_close(fw->host, ch);
    assert_int_equal(ebb_chan_try_send(fw->host, ch, &item), EBB_ERR_CLOSED);
    assert_int_equal(get(fw, ch), 2);
    assert_int_equal(ebb_chan_try_recv(fw->host, ch, &item), EBB_ERR_CLOSED);
    ebb_chan_free(ch);
}

static void a_received_item_is_taken_by_who_reads_the_future(void **state) {
    future_world *fw = *state;
    ebb_chan *ch = chan_of(fw, 4);
    ebb_future *now = NULL, *later = ebb_chan_recv_future(fw->host, ch);
    future_settle(fw);
    assert_int_equal(ebb_future_status_of(later), EBB_PENDING);
    put(fw, ch, 1);
    put(fw, ch, 2);
    now = ebb_chan_recv_future(fw->host, ch);
    assert_int_equal(ebb_chan_length(ch), 2); /* both are granted, and still there */
    uint64_t item;
    assert_int_equal(ebb_chan_try_recv(fw->host, ch, &item), EBB_PENDING);
    ebb_value a = value_of(fw, now), b = value_of(fw, later);
    assert_int_equal(take(fw, &a), 1); /* the oldest goes to who takes first */
    assert_int_equal(take(fw, &b), 2);
    assert_int_equal(ebb_chan_take(fw->host, &a, &item), EBB_ERR_INVALID); /* once */
    ebb_chan_free(ch);
}

static void a_receive_that_lost_a_race_leaves_its_item(void **state) {
    future_world *fw = *state;
    for (int first = 0; first < 2; first++) { /* both inputs have ended before the race hears of either */
        ebb_chan *ch = chan_of(fw, 2);
        ebb_future *other = ebb_promise_new(fw->host, NULL, NULL);
        ebb_future *inner = ebb_within(fw->host, ebb_chan_recv_future(fw->host, ch), EBB_SECOND);
        ebb_future *fs[] = {ebb_future_keep(other), inner};
        ebb_future *race = ebb_select(fw->host, 2, fs);
        future_settle(fw);
        if (first == 0) (void)ebb_promise_settle(other, ebb_value_none());
        put(fw, ch, 5);
        if (first == 1) (void)ebb_promise_settle(other, ebb_value_none());
        ebb_future_drop(other);
        ebb_value v = value_of(fw, race);
        ebb_selected *s = ebb_selected_of(&v);
        if (s->index == 1) assert_int_equal(take(fw, &s->value), 5);
        else assert_int_equal(get(fw, ch), 5);
        assert_int_equal(ebb_chan_length(ch), 0);
        ebb_value_discard(fw->host, v);
        ebb_chan_free(ch);
    }
}

static void a_selected_item_that_nobody_takes_goes_to_the_next(void **state) {
    future_world *fw = *state;
    ebb_chan *ch = chan_of(fw, 2);
    ebb_future *f = ebb_chan_recv_future(fw->host, ch);
    receiver next = {.ch = ch, .st = EBB_PENDING};
    (void)ebb_spawn(fw->host, fw->root, receive_one, &next);
    future_settle(fw);
    put(fw, ch, 9);
    future_settle(fw);
    assert_int_equal(next.st, EBB_PENDING);
    assert_int_equal(ebb_await(fw->host, f, NULL), EBB_OK); /* without a value: given back */
    future_settle(fw);
    assert_int_equal(next.st, EBB_OK);
    assert_int_equal(next.item, 9);
    ebb_chan_free(ch);
}

static void a_task_that_is_cancelled_before_it_reads_leaves_the_item(void **state) {
    future_world *fw = *state;
    ebb_chan *ch = chan_of(fw, 2);
    ebb_region region = open_region(fw->world, fw->root);
    reader r;
    ebb_task t = read_in(fw, region, &r, ebb_chan_recv_future(fw->host, ch));
    future_settle(fw);
    put(fw, ch, 3); /* granted to the future, */
    ebb_task_cancel(fw->host, t, EBB_CANCEL_USER, "changed its mind");
    future_settle(fw); /* which the task does not read any more */
    assert_int_equal(r.st, EBB_CANCELLED);
    assert_int_equal(get(fw, ch), 3);
    ebb_region_close(fw->host, region);
    future_settle(fw);
    assert_int_equal(ebb_region_join(fw->host, region), EBB_CANCELLED);
    ebb_chan_free(ch);
}

static void futures_and_tasks_wait_in_one_queue(void **state) {
    future_world *fw = *state;
    ebb_chan *ch = chan_of(fw, 4);
    receiver task[2] = {{.ch = ch, .st = EBB_PENDING}, {.ch = ch, .st = EBB_PENDING}};
    ebb_future *f[2];
    for (int i = 0; i < 2; i++) {
        (void)ebb_spawn(fw->host, fw->root, receive_one, &task[i]);
        future_settle(fw);
        f[i] = ebb_chan_recv_future(fw->host, ch);
    }
    put(fw, ch, 1);
    assert_int_equal(ebb_future_status_of(f[0]), EBB_PENDING);
    put(fw, ch, 2);
    assert_int_equal(ebb_future_status_of(f[0]), EBB_OK);
    put(fw, ch, 3);
    assert_int_equal(ebb_future_status_of(f[1]), EBB_PENDING);
    future_settle(fw);
    assert_true(task[0].st == EBB_OK && task[1].st == EBB_OK);
    put(fw, ch, 4);
    assert_int_equal(ebb_future_status_of(f[1]), EBB_OK);
    assert_int_equal(ebb_chan_length(ch), 2);
    for (int i = 0; i < 2; i++) {
        ebb_value v = value_of(fw, f[i]);
        (void)take(fw, &v);
    }
    ebb_chan_free(ch);
}

static void a_place_that_nobody_uses_is_free_again(void **state) {
    future_world *fw = *state;
    ebb_chan *ch = chan_of(fw, 1);
    uint64_t item = 4;
    ebb_value place = value_of(fw, ebb_chan_send_future(fw->host, ch));
    assert_int_equal(ebb_chan_try_send(fw->host, ch, &item), EBB_PENDING);
    ebb_future *next = ebb_chan_send_future(fw->host, ch);
    future_settle(fw);
    assert_int_equal(ebb_future_status_of(next), EBB_PENDING);
    ebb_value_discard(fw->host, place);
    place = value_of(fw, next);
    assert_int_equal(ebb_chan_put(fw->host, &place, &item), EBB_OK);
    assert_int_equal(ebb_chan_put(fw->host, &place, &item), EBB_ERR_INVALID);
    assert_int_equal(get(fw, ch), 4);
    ebb_chan_free(ch);
}

static void a_send_that_was_too_late_has_sent_nothing(void **state) {
    future_world *fw = *state;
    ebb_chan *ch = chan_of(fw, 1);
    put(fw, ch, 1);
    ebb_future *f = ebb_within(fw->host, ebb_chan_send_future(fw->host, ch), EBB_MS);
    future_pass(fw, 2 * EBB_MS);
    assert_int_equal(ebb_await(fw->host, f, NULL), EBB_TIMEOUT);
    assert_int_equal(get(fw, ch), 1);
    put(fw, ch, 2); /* the place is nobody's */
    assert_int_equal(get(fw, ch), 2);
    ebb_chan_free(ch);
}

static void a_close_ends_what_can_never_come(void **state) {
    future_world *fw = *state;
    ebb_chan *ch = chan_of(fw, 1);
    uint64_t item = 1;
    ebb_value place = value_of(fw, ebb_chan_send_future(fw->host, ch));
    ebb_future *send = ebb_chan_send_future(fw->host, ch), *recv = ebb_chan_recv_future(fw->host, ch);
    future_settle(fw);
    ebb_chan_close(fw->host, ch);
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, send, NULL), EBB_ERR_CLOSED);
    assert_int_equal(ebb_await(fw->host, recv, NULL), EBB_ERR_CLOSED);
    assert_int_equal(ebb_chan_put(fw->host, &place, &item), EBB_ERR_CLOSED);
    assert_int_equal(ebb_await(fw->host, ebb_chan_recv_future(fw->host, ch), NULL), EBB_ERR_CLOSED);
    assert_int_equal(ebb_await(fw->host, ebb_chan_send_future(fw->host, ch), NULL), EBB_ERR_CLOSED);
    ebb_chan_free(ch);
}

/* The last item of a closed channel is granted: who waits behind it hears of the end only when it is taken. */
static void a_closed_channel_is_over_when_its_last_item_is_taken(void **state) {
    future_world *fw = *state;
    ebb_chan *ch = chan_of(fw, 1);
    put(fw, ch, 8);
    ebb_future *first = ebb_chan_recv_future(fw->host, ch), *second = ebb_chan_recv_future(fw->host, ch);
    ebb_chan_close(fw->host, ch);
    ebb_value v = value_of(fw, first);
    assert_int_equal(ebb_future_status_of(second), EBB_PENDING);
    ebb_value_discard(fw->host, v);
    v = value_of(fw, second);
    ebb_future *third = ebb_chan_recv_future(fw->host, ch);
    assert_int_equal(take(fw, &v), 8);
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, third, NULL), EBB_ERR_CLOSED);
    ebb_chan_free(ch);
}

static void a_freed_channel_lasts_as_long_as_its_claims(void **state) {
    future_world *fw = *state;
    ebb_chan *ch = chan_of(fw, 1);
    put(fw, ch, 6);
    ebb_value v = value_of(fw, ebb_chan_recv_future(fw->host, ch));
    ebb_future *waits = ebb_chan_recv_future(fw->host, ch), *sends = ebb_chan_send_future(fw->host, ch);
    future_settle(fw);
    ebb_chan_free(ch);
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, waits, NULL), EBB_ERR_CLOSED);
    assert_int_equal(ebb_await(fw->host, sends, NULL), EBB_ERR_CLOSED);
    assert_int_equal(take(fw, &v), 6);
}

static void wrong_arguments_have_names(void **state) {
    future_world *fw = *state;
    ebb_chan *ch = chan_of(fw, 1);
    ebb_value none = ebb_value_none(), place = value_of(fw, ebb_chan_send_future(fw->host, ch));
    uint64_t item = 0;
    ebb_runtime *other = NULL;
    ebb_runtime_opts o = {.allocator = ebb_libc_allocator(), .runtime_id = 77};
    assert_int_equal(ebb_runtime_new(&o, &other), EBB_OK);
    assert_int_equal(ebb_await(fw->host, ebb_chan_recv_future(fw->host, NULL), NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_await(fw->host, ebb_sem_acquire_future(fw->host, NULL), NULL), EBB_ERR_INVALID);
    ebb_cx *host = ebb_runtime_host(other);
    assert_int_equal(ebb_await(host, ebb_chan_send_future(host, ch), NULL), EBB_ERR_FOREIGN);
    assert_int_equal(ebb_chan_take(fw->host, &none, &item), EBB_ERR_INVALID);
    assert_int_equal(ebb_chan_take(fw->host, &place, &item), EBB_ERR_INVALID); /* a place is no item */
    assert_int_equal(ebb_chan_put(fw->host, NULL, &item), EBB_ERR_INVALID);
    ebb_value_discard(fw->host, place);
    ebb_runtime_free(other);
    ebb_chan_free(ch);
}

/* ---- semaphore -------------------------------------------------------------------------------------------- */

static ebb_future *use_permit(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    assert_int_equal(((ebb_sem *)arg)->free, 0);
    return ebb_after(cx, EBB_MS);
}

static ebb_future *release_nothing(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)v;
    (void)arg;
    return NULL;
}

static void a_permit_is_free_when_its_claim_is_discarded(void **state) {
    future_world *fw = *state;
    ebb_sem s;
    ebb_sem_init(&s, 1);
    ebb_value v = value_of(fw, ebb_sem_acquire_future(fw->host, &s));
    ebb_future *late = ebb_within(fw->host, ebb_sem_acquire_future(fw->host, &s), EBB_MS);
    ebb_future *next = ebb_sem_acquire_future(fw->host, &s);
    future_pass(fw, 2 * EBB_MS);
    assert_int_equal(ebb_await(fw->host, late, NULL), EBB_TIMEOUT);
    assert_int_equal(s.free, 0);
    ebb_value_discard(fw->host, v);
    ebb_value_discard(fw->host, value_of(fw, next));
    assert_int_equal(s.free, 1);
}

static void a_bracket_releases_the_permit_that_it_has_acquired(void **state) {
    future_world *fw = *state;
    for (int cancel = 0; cancel < 2; cancel++) {
        ebb_sem s;
        ebb_sem_init(&s, 1);
        ebb_future *f =
            ebb_bracket(fw->host, ebb_sem_acquire_future(fw->host, &s), use_permit, release_nothing, &s);
        future_settle(fw);
        assert_int_equal(s.free, 0);
        if (cancel) (void)ebb_future_cancel(f, EBB_CANCEL_USER);
        future_pass(fw, 2 * EBB_MS);
        assert_int_equal(ebb_await(fw->host, f, NULL), cancel ? EBB_CANCELLED : EBB_OK);
        assert_int_equal(s.free, 1);
    }
}

/* ---- broadcast -------------------------------------------------------------------------------------------- */

static void a_version_is_waited_for_until_it_comes(void **state) {
    future_world *fw = *state;
    ebb_broadcast *b = NULL;
    uint64_t item = 5;
    assert_int_equal(ebb_broadcast_new(fw->rt, sizeof item, &b), EBB_OK);
    ebb_future *f[2] = {ebb_broadcast_next_future(fw->host, b, 0), ebb_broadcast_next_future(fw->host, b, 0)};
    ebb_future *late = ebb_within(fw->host, ebb_broadcast_next_future(fw->host, b, 0), EBB_MS);
    future_pass(fw, 2 * EBB_MS);
    assert_int_equal(ebb_await(fw->host, late, NULL), EBB_TIMEOUT);
    assert_int_equal(ebb_broadcast_set(fw->host, b, &item), EBB_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(value_of(fw, f[i]).as.i, 1);
    assert_int_equal(value_of(fw, ebb_broadcast_next_future(fw->host, b, 0)).as.i, 1);
    f[0] = ebb_broadcast_next_future(fw->host, b, 1);
    future_settle(fw);
    assert_int_equal(ebb_future_status_of(f[0]), EBB_PENDING);
    f[1] = ebb_broadcast_next_future(fw->host, b, 1);
    (void)ebb_future_cancel(f[1], EBB_CANCEL_USER);
    ebb_broadcast_free(b); /* it is there as long as somebody waits */
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, f[0], NULL), EBB_ERR_CLOSED);
    ebb_future_drop(f[1]);
}

/* ---- ends of regions, crowds ------------------------------------------------------------------------------ */

typedef struct held {
    ebb_chan *ch;
    ebb_sem sem;
} held;

/* Makes one of each, pending, and one that has its claim, in the region of cx; then waits. */
static ebb_status hold_some(ebb_cx *cx, void *state) {
    held *h = state;
    if (ebb_chan_length(h->ch) == 0) {
        uint64_t item = 1;
        (void)ebb_chan_try_send(cx, h->ch, &item);
        for (int i = 0; i < 2; i++) {
            (void)ebb_chan_recv_future(cx, h->ch);
            (void)ebb_sem_acquire_future(cx, &h->sem);
            (void)ebb_chan_send_future(cx, h->ch);
        }
    }
    return ebb_checkpoint(cx) != EBB_OK || ebb_stopping(cx) ? EBB_OK : EBB_PENDING;
}

static void whatever_way_a_region_ends_nothing_is_lost(void **state) {
    future_world *fw = *state;
    for (int how = 0; how < 3; how++) {
        held h = {.ch = chan_of(fw, 2)};
        ebb_sem_init(&h.sem, 1);
        ebb_region region = open_region(fw->world, fw->root);
        (void)ebb_spawn(fw->host, region, hold_some, &h);
        future_settle(fw);
        assert_int_equal(h.sem.free, 0);
        if (how == 0) ebb_region_close(fw->host, region);
        if (how == 1) ebb_region_cancel(fw->host, region, EBB_CANCEL_USER, "over");
        if (how == 2) ebb_region_force(fw->host, region);
        future_settle(fw);
        assert_int_equal(state_of(fw->world, region), EBB_REGION_CLOSED);
        assert_int_equal(h.sem.free, 1);
        put(fw, h.ch, 2); /* of two places one is taken */
        assert_int_equal(get(fw, h.ch), 1);
        assert_int_equal(get(fw, h.ch), 2);
        (void)ebb_region_join(fw->host, region);
        ebb_chan_free(h.ch);
    }
}

static ebb_status wait_at_last(ebb_cx *cx, void *state) {
    (void)ebb_chan_recv_future(cx, state);
    return EBB_OK;
}

static ebb_value defer_it(ebb_cx *cx, ebb_value *v, void *arg) {
    assert_int_equal(ebb_defer(cx, wait_at_last, arg), EBB_OK);
    return *v;
}

static ebb_status call_back(ebb_cx *cx, void *state) {
    (void)ebb_map(cx, ebb_future_ready(cx, ebb_value_none()), defer_it, state);
    return EBB_OK;
}

/* It is made by a finalizer of the callback runner, when nothing else lives in the region. */
static void a_receive_that_a_finalizer_leaves_behind_leaves_the_queue(void **state) {
    future_world *fw = *state;
    ebb_chan *ch = chan_of(fw, 1);
    ebb_region region = open_region(fw->world, fw->root);
    (void)ebb_spawn(fw->host, region, call_back, ch);
    future_settle(fw);
    ebb_region_close(fw->host, region);
    future_settle(fw);
    assert_int_equal(ebb_region_join(fw->host, region), EBB_OK);
    future_collect(fw);
    ebb_future *next =
        ebb_chan_recv_future(fw->host, ch); /* has its memory, and is the only one in the queue */
    put(fw, ch, 5);
    ebb_value v = value_of(fw, next);
    assert_int_equal(take(fw, &v), 5);
    put(fw, ch, 6);
    assert_int_equal(get(fw, ch), 6);
    ebb_chan_free(ch);
}

static void a_dropped_receive_leaves_the_queue_with_the_collection(void **state) {
    future_world *fw = *state;
    ebb_chan *ch = chan_of(fw, 1);
    ebb_future_drop(ebb_chan_recv_future(fw->host, ch));
    future_collect(fw);
    put(fw, ch, 5);
    assert_int_equal(get(fw, ch), 5);
    ebb_chan_free(ch);
}

/* Cancelled, and not told yet: the grant passes all of them by, without recursion. */
static void a_grant_passes_a_crowd_that_is_cancelled(void **state) {
    future_world *fw = *state;
    size_t n = future_crowd(300000, 300);
    ebb_chan *ch = chan_of(fw, 1);
    ebb_future **crowd = calloc(n, sizeof(ebb_future *));
    assert_non_null(crowd);
    for (size_t i = 0; i < n; i++) crowd[i] = ebb_chan_recv_future(fw->host, ch);
    ebb_future *last = ebb_chan_recv_future(fw->host, ch);
    for (size_t i = 0; i < n; i++) assert_true(ebb_future_cancel(crowd[i], EBB_CANCEL_USER));
    put(fw, ch, 5);
    assert_int_equal(ebb_future_status_of(last), EBB_OK);
    ebb_value v = value_of(fw, last);
    assert_int_equal(take(fw, &v), 5);
    for (size_t i = 0; i < n; i++) ebb_future_drop(crowd[i]);
    future_settle(fw);
    ebb_chan_free(ch);
    free(crowd);
}

static void a_remote_handle_cancels_a_receive_and_loses_no_item(void **state) {
    future_world *fw = *state;
    ebb_chan *ch = chan_of(fw, 1);
    for (int granted = 0; granted < 2; granted++) {
        ebb_future *f = ebb_chan_recv_future(fw->host, ch);
        ebb_remote *remote = NULL;
        assert_int_equal(ebb_remote_new(f, &remote), EBB_OK);
        future_settle(fw);
        if (granted) put(fw, ch, 2);
        assert_int_equal(ebb_remote_cancel(remote, EBB_CANCEL_USER), !granted);
        ebb_future_drop(f);
        if (!granted) put(fw, ch, 2);
        ebb_remote_release(remote);
        future_settle(fw);
        future_collect(fw);
        assert_int_equal(get(fw, ch), 2);
    }
    ebb_chan_free(ch);
}

static void what_a_runtime_leaves_behind_is_no_danger_to_the_channel(void **state) {
    (void)state;
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    ebb_runtime_opts o = {.allocator = ebb_failing_allocator(&memory)};
    for (int freed_first = 0; freed_first < 2; freed_first++) {
        ebb_runtime *rt = NULL;
        ebb_chan *ch = NULL;
        assert_int_equal(ebb_runtime_new(&o, &rt), EBB_OK);
        ebb_cx *host = ebb_runtime_host(rt);
        assert_int_equal(ebb_chan_new(rt, 1, sizeof(uint64_t), &ch), EBB_OK);
        uint64_t item = 1;
        assert_int_equal(ebb_chan_try_send(host, ch, &item), EBB_OK);
        for (int i = 0; i < 2; i++) (void)ebb_chan_recv_future(host, ch); /* one has a claim, one waits */
        ebb_remote *remote = NULL;
        assert_int_equal(ebb_remote_new(ebb_chan_send_future(host, ch), &remote), EBB_OK);
        if (freed_first) ebb_chan_free(ch);
        ebb_runtime_free(rt);
        if (!freed_first) ebb_chan_free(ch);
        ebb_remote_release(remote);
        assert_int_equal(memory.live, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FUTURES(try_send_and_try_recv_never_wait),
        IN_FUTURES(a_received_item_is_taken_by_who_reads_the_future),
        IN_FUTURES(a_receive_that_lost_a_race_leaves_its_item),
        IN_FUTURES(a_selected_item_that_nobody_takes_goes_to_the_next),
        IN_FUTURES(a_task_that_is_cancelled_before_it_reads_leaves_the_item),
        IN_FUTURES(futures_and_tasks_wait_in_one_queue),
        IN_FUTURES(a_place_that_nobody_uses_is_free_again),
        IN_FUTURES(a_send_that_was_too_late_has_sent_nothing),
        IN_FUTURES(a_close_ends_what_can_never_come),
        IN_FUTURES(a_closed_channel_is_over_when_its_last_item_is_taken),
        IN_FUTURES(a_freed_channel_lasts_as_long_as_its_claims),
        IN_FUTURES(wrong_arguments_have_names),
        IN_FUTURES(a_permit_is_free_when_its_claim_is_discarded),
        IN_FUTURES(a_bracket_releases_the_permit_that_it_has_acquired),
        IN_FUTURES(a_version_is_waited_for_until_it_comes),
        IN_FUTURES(whatever_way_a_region_ends_nothing_is_lost),
        IN_FUTURES(a_receive_that_a_finalizer_leaves_behind_leaves_the_queue),
        IN_FUTURES(a_dropped_receive_leaves_the_queue_with_the_collection),
        IN_UNTRACED_FUTURES(a_grant_passes_a_crowd_that_is_cancelled),
        IN_FUTURES(a_remote_handle_cancels_a_receive_and_loses_no_item),
        cmocka_unit_test(what_a_runtime_leaves_behind_is_no_danger_to_the_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
