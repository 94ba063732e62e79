/* Channels: in order, bounded, and safe to cancel at any point. */
#include "tests/support/world.h"

/* A task that sends the numbers first .. first + n - 1, or receives n of them. */
typedef struct mover {
    ebb_chan *ch;
    uint64_t first, n, done;
    uint64_t got[64];
    ebb_status last; /* what the last operation said */
    bool permit;     /* sends in two phases, with a poll between them */
    ebb_obligation place;
    ebb_wait wait;
    ebb_task id;
} mover;

static ebb_status send_once(ebb_cx *cx, mover *m, const uint64_t *item) {
    if (!m->permit) return ebb_chan_send(cx, m->ch, &m->wait, item);
    if (m->place.id == 0) {
        ebb_status st = ebb_chan_reserve(cx, m->ch, &m->wait, &m->place);
        if (st != EBB_OK) {
            m->place.id = 0;
            return st;
        }
        (void)ebb_task_wake(cx, ebb_cx_task(cx));
        return EBB_PENDING;
    }
    ebb_obligation place = m->place;
    m->place.id = 0;
    return ebb_chan_send_reserved(cx, m->ch, place, item);
}

static ebb_status sender_poll(ebb_cx *cx, void *state) {
    mover *m = state;
    while (m->done < m->n) {
        uint64_t item = m->first + m->done;
        m->last = send_once(cx, m, &item);
        if (m->last != EBB_OK) return m->last;
        m->done++;
    }
    return EBB_OK;
}

static ebb_status receiver_poll(ebb_cx *cx, void *state) {
    mover *m = state;
    while (m->done < m->n) {
        m->last = ebb_chan_recv(cx, m->ch, &m->wait, &m->got[m->done]);
        if (m->last != EBB_OK) return m->last;
        m->done++;
    }
    return EBB_OK;
}

static mover *move_in(world *w, ebb_region r, ebb_poll_fn poll, mover m) {
    mover *copy = world_keep(w, sizeof *copy);
    *copy = m;
    copy->id = ebb_spawn(w->host, r, poll, copy, &(ebb_task_opts){.keep = true});
    assert_int_equal(ebb_id_status(copy->id.id), EBB_OK);
    return copy;
}

/* Channels are freed in the order of the rules: first the region of those who use it closes. */
static ebb_chan *chan_of(world *w, uint32_t capacity) {
    ebb_chan *ch;
    assert_int_equal(ebb_chan_new(w->rt, capacity, sizeof(uint64_t), &ch), EBB_OK);
    return ch;
}

static void end_region(world *w, ebb_region r, ebb_chan *ch) {
    ebb_region_cancel(w->host, r, EBB_CANCEL_SHUTDOWN, NULL);
    world_pass(w, 550 * EBB_MS);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    ebb_chan_free(ch);
}

static void items_come_in_the_order_they_were_sent(void **state) {
    world *w = *state;
    for (uint32_t capacity = 1; capacity <= 5; capacity++) {
        for (int permit = 0; permit < 2; permit++) {
            ebb_chan *ch = chan_of(w, capacity);
            ebb_region r = open_region(w, w->root);
            mover *from =
                move_in(w, r, sender_poll, (mover){.ch = ch, .first = 100, .n = 50, .permit = permit});
            mover *to = move_in(w, r, receiver_poll, (mover){.ch = ch, .n = 50});
            world_settle(w);
            assert_int_equal(info_of(w, from->id).status, EBB_OK);
            assert_int_equal(info_of(w, to->id).status, EBB_OK);
            for (uint64_t i = 0; i < 50; i++) assert_int_equal(to->got[i], 100 + i);
            assert_int_equal(ebb_chan_length(ch), 0);
            end_region(w, r, ch);
        }
    }
}

static void items_may_have_any_size(void **state) {
    world *w = *state;
    for (uint32_t size = 0; size <= 24; size++) {
        ebb_chan *ch;
        ebb_wait wait = {0};
        uint8_t sent[24], got[24];
        assert_int_equal(ebb_chan_new(w->rt, 3, size, &ch), EBB_OK);
        for (uint8_t i = 0; i < 20; i++) { /* two are in it, so that it wraps */
            memset(sent, i, sizeof sent);
            assert_int_equal(ebb_chan_send(w->host, ch, &wait, sent), EBB_OK);
            if (i == 0) continue;
            memset(got, 0xff, sizeof got);
            memset(sent, 0xff, sizeof sent);
            memset(sent, i - 1, size);
            assert_int_equal(ebb_chan_recv(w->host, ch, &wait, got), EBB_OK);
            assert_memory_equal(got, sent, sizeof got);
        }
        ebb_chan_free(ch);
    }
}

static void a_full_channel_makes_the_sender_wait_and_an_empty_one_the_receiver(void **state) {
    world *w = *state;
    ebb_chan *ch = chan_of(w, 3);
    ebb_region r = open_region(w, w->root);
    mover *from = move_in(w, r, sender_poll, (mover){.ch = ch, .n = 5});
    world_settle(w);
    assert_int_equal(from->done, 3);
    assert_int_equal(from->last, EBB_PENDING);
    assert_int_equal(ebb_chan_length(ch), 3);
    mover *to = move_in(w, r, receiver_poll, (mover){.ch = ch, .n = 6});
    world_settle(w);
    assert_int_equal(phase_of(w, from->id), EBB_TASK_COMPLETED);
    assert_int_equal(to->done, 5);
    assert_int_equal(to->last, EBB_PENDING);
    end_region(w, r, ch);
}

static void waiters_are_served_first_come_first_served_and_nobody_overtakes(void **state) {
    world *w = *state;
    ebb_chan *ch = chan_of(w, 1);
    ebb_region r = open_region(w, w->root);
    mover *to[4];
    for (int i = 0; i < 3; i++) to[i] = move_in(w, r, receiver_poll, (mover){.ch = ch, .n = 1});
    world_settle(w);
    (void)move_in(w, r, sender_poll, (mover){.ch = ch, .first = 7, .n = 1});
    (void)ebb_runtime_pump(w->rt, 1); /* sent and promised to the first; a newcomer must not get it */
    to[3] = move_in(w, r, receiver_poll, (mover){.ch = ch, .n = 1});
    world_settle(w);
    assert_int_equal(to[0]->done, 1);
    assert_int_equal(to[3]->done, 0);
    (void)move_in(w, r, sender_poll, (mover){.ch = ch, .first = 8, .n = 3});
    world_settle(w);
    for (int i = 0; i < 4; i++) assert_int_equal(to[i]->got[0], 7 + (uint64_t)i);
    end_region(w, r, ch);
}

static void a_reserved_place_is_nobody_elses(void **state) {
    world *w = *state;
    ebb_chan *ch = chan_of(w, 2);
    ebb_region r = open_region(w, w->root);
    mover *two_phase = move_in(w, r, sender_poll, (mover){.ch = ch, .first = 1, .n = 1, .permit = true});
    (void)ebb_runtime_pump(w->rt, 1);
    assert_int_not_equal(two_phase->place.id, 0);
    mover *rest = move_in(w, r, sender_poll, (mover){.ch = ch, .first = 2, .n = 2});
    (void)ebb_task_cancel(w->host, two_phase->id, EBB_CANCEL_USER, NULL);
    (void)ebb_task_wake(w->host, rest->id);
    assert_int_equal(stats_of(w).obligations, 1);
    (void)rest;
    world_settle(w);
    /* The permit was sent with or leaked: either way nothing is lost and the place is not. */
    mover *to = move_in(w, r, receiver_poll, (mover){.ch = ch, .n = 3});
    world_settle(w);
    assert_int_equal(to->done, two_phase->done + 2);
    end_region(w, r, ch);
}

static ebb_status leaks_a_permit(ebb_cx *cx, void *state) {
    mover *m = state;
    return m->last = ebb_chan_reserve(cx, m->ch, &m->wait, &m->place);
}

static void a_leaked_permit_is_named_and_its_place_is_free_again(void **state) {
    world *w = *state;
    ebb_chan *ch = chan_of(w, 1);
    ebb_region r = open_region(w, w->root);
    mover *leaky = move_in(w, r, leaks_a_permit, (mover){.ch = ch});
    mover *waits = move_in(w, r, sender_poll, (mover){.ch = ch, .first = 5, .n = 1});
    world_settle(w);
    assert_int_equal(leaky->last, EBB_OK);
    assert_int_equal(stats_of(w).leaks, 1);
    assert_int_equal(event_of(w, EBB_EV_OBLIGATION_LEAKED, leaky->place.id).value, EBB_OBLIGATION_PERMIT);
    assert_int_equal(waits->done, 1);
    assert_int_equal(ebb_chan_send_reserved(w->host, ch, leaky->place, &(uint64_t){1}), EBB_ERR_RESOLVED);
    assert_int_equal(ebb_chan_length(ch), 1);
    end_region(w, r, ch);
}

static void a_permit_of_another_channel_or_another_promise_is_refused(void **state) {
    world *w = *state;
    ebb_chan *a = chan_of(w, 1), *b = chan_of(w, 1);
    ebb_region r = open_region(w, w->root);
    ebb_obligation of_a, lease = ebb_obligation_reserve(w->host, EBB_OBLIGATION_LEASE, NULL, NULL);
    assert_int_equal(ebb_chan_reserve(w->host, a, &(ebb_wait){0}, &of_a), EBB_OK);
    uint64_t item = 3;
    assert_int_equal(ebb_chan_send_reserved(w->host, b, of_a, &item), EBB_ERR_INVALID);
    assert_int_equal(ebb_chan_send_reserved(w->host, b, lease, &item), EBB_ERR_INVALID);
    assert_int_equal(ebb_chan_length(b), 0);
    assert_int_equal(ebb_obligation_commit(w->host, lease), EBB_OK); /* both are still to be resolved */
    assert_int_equal(ebb_chan_send_reserved(w->host, a, of_a, &item), EBB_OK);
    assert_int_equal(ebb_chan_length(a), 1);
    ebb_chan_free(a);
    end_region(w, r, b);
}

/* ---- cancel-safety ------------------------------------------------------------------------------ */

typedef struct flow {
    uint32_t capacity;
    bool permit, second; /* who is cancelled: the first receiver or the second */
    bool force;
    uint32_t after; /* polls before the cancel */
} flow;

/* One sends 1 .. 12, two receive; one of them is cancelled after some polls. True if there were that
 * many polls. */
static bool nothing_is_lost_or_doubled(world *w, flow f) {
    enum { ITEMS = 12 };
    ebb_chan *ch = chan_of(w, f.capacity);
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    mover *to[2], *rest;
    for (int i = 0; i < 2; i++) to[i] = move_in(w, r, receiver_poll, (mover){.ch = ch, .n = ITEMS});
    mover *from = move_in(w, r, sender_poll, (mover){.ch = ch, .first = 1, .n = ITEMS, .permit = f.permit});
    ebb_status more = EBB_PENDING;
    for (uint32_t i = 0; i < f.after && more == EBB_PENDING; i++) more = ebb_runtime_pump(w->rt, 1);
    mover *victim = to[f.second ? 1 : 0];
    ebb_task_cancel(w->host, victim->id, EBB_CANCEL_RACE_LOST, NULL);
    if (f.force) ebb_task_force(w->host, victim->id);
    world_settle(w);
    assert_int_equal(phase_of(w, victim->id), EBB_TASK_COMPLETED);
    rest = move_in(w, r, receiver_poll, (mover){.ch = ch, .n = ITEMS});
    world_settle(w);
    assert_int_equal(from->done, ITEMS);
    bool seen[ITEMS + 1] = {false};
    mover *all[] = {to[0], to[1], rest};
    uint32_t count = 0;
    for (int k = 0; k < 3; k++) {
        for (uint64_t i = 0; i < all[k]->done; i++, count++) {
            assert_in_range(all[k]->got[i], 1, ITEMS);
            assert_false(seen[all[k]->got[i]]);
            seen[all[k]->got[i]] = true;
            if (i > 0) assert_true(all[k]->got[i - 1] < all[k]->got[i]);
        }
    }
    assert_int_equal(count, ITEMS);
    end_region(w, r, ch);
    return more == EBB_PENDING;
}

static void cancelling_a_receiver_at_any_point_neither_loses_nor_doubles_an_item(void **state) {
    world *w = *state;
    uint32_t runs = 0;
    for (uint32_t variant = 0; variant < 24; variant++) {
        flow f = {.capacity = 1 + variant % 3,
                  .permit = variant / 3 % 2,
                  .second = variant / 6 % 2,
                  .force = variant / 12 % 2};
        for (f.after = 0; nothing_is_lost_or_doubled(w, f); f.after++) runs++;
    }
    assert_true(runs > 24 * 10);
}

static void cancelling_a_sender_at_any_point_loses_nothing_that_was_sent(void **state) {
    world *w = *state;
    for (int permit = 0; permit < 2; permit++) {
        bool more = true;
        for (uint32_t after = 0; more; after++) {
            ebb_chan *ch = chan_of(w, 2);
            ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
            mover *a = move_in(w, r, sender_poll, (mover){.ch = ch, .first = 0, .n = 6, .permit = permit});
            mover *b = move_in(w, r, sender_poll, (mover){.ch = ch, .first = 100, .n = 6, .permit = permit});
            mover *to = move_in(w, r, receiver_poll, (mover){.ch = ch, .n = 20});
            ebb_status st = EBB_PENDING;
            for (uint32_t i = 0; i < after && st == EBB_PENDING; i++) st = ebb_runtime_pump(w->rt, 1);
            more = st == EBB_PENDING;
            ebb_task_cancel(w->host, a->id, EBB_CANCEL_USER, NULL);
            world_settle(w);
            assert_int_equal(b->done, 6);
            assert_int_equal(to->done, a->done + 6);
            uint64_t next[2] = {0, 100};
            for (uint64_t i = 0; i < to->done; i++) assert_int_equal(to->got[i], next[to->got[i] >= 100]++);
            end_region(w, r, ch);
        }
    }
}

static void a_place_granted_to_a_sender_that_is_then_cancelled_goes_to_the_next(void **state) {
    world *w = *state;
    ebb_chan *ch = chan_of(w, 1);
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    uint64_t item = 1;
    assert_int_equal(ebb_chan_send(w->host, ch, &(ebb_wait){0}, &item), EBB_OK); /* full */
    mover *a = move_in(w, r, sender_poll, (mover){.ch = ch, .first = 2, .n = 1});
    mover *b = move_in(w, r, sender_poll, (mover){.ch = ch, .first = 3, .n = 1});
    world_settle(w);
    assert_int_equal(ebb_chan_recv(w->host, ch, &(ebb_wait){0}, &item), EBB_OK); /* granted to the first */
    assert_int_equal(ebb_chan_send(w->host, ch, &(ebb_wait){0}, &item),
                     EBB_ERR_NOT_TASK); /* and nobody else's */
    ebb_task_cancel(w->host, a->id, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(a->last, EBB_CANCELLED);
    assert_int_equal(b->done, 1);
    assert_int_equal(ebb_chan_recv(w->host, ch, &(ebb_wait){0}, &item), EBB_OK);
    assert_int_equal(item, 3);
    end_region(w, r, ch);
}

/* ---- close -------------------------------------------------------------------------------------- */

static void a_closed_channel_gives_what_is_in_it_and_takes_nothing_more(void **state) {
    world *w = *state;
    ebb_chan *ch = chan_of(w, 2);
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    mover *from = move_in(w, r, sender_poll, (mover){.ch = ch, .first = 1, .n = 5});
    world_settle(w);
    ebb_chan_close(w->host, ch);
    ebb_chan_close(w->host, ch);
    world_settle(w);
    assert_int_equal(from->last, EBB_ERR_CLOSED);
    assert_int_equal(from->done, 2);
    mover *to = move_in(w, r, receiver_poll, (mover){.ch = ch, .n = 5});
    world_settle(w);
    assert_int_equal(to->done, 2);
    assert_int_equal(to->last, EBB_ERR_CLOSED);
    end_region(w, r, ch);
}

static void closing_wakes_everybody_who_waits(void **state) {
    world *w = *state;
    ebb_chan *ch = chan_of(w, 1);
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    mover *to[3];
    for (int i = 0; i < 3; i++) to[i] = move_in(w, r, receiver_poll, (mover){.ch = ch, .n = 1});
    world_settle(w);
    ebb_chan_close(w->host, ch);
    world_settle(w);
    for (int i = 0; i < 3; i++) assert_int_equal(to[i]->last, EBB_ERR_CLOSED);
    end_region(w, r, ch);
}

static void a_permit_for_a_closed_channel_is_aborted(void **state) {
    world *w = *state;
    ebb_chan *ch = chan_of(w, 1);
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    mover *m = move_in(w, r, sender_poll, (mover){.ch = ch, .n = 1, .permit = true});
    (void)ebb_runtime_pump(w->rt, 1);
    ebb_chan_close(w->host, ch);
    world_settle(w);
    assert_int_equal(m->last, EBB_ERR_CLOSED);
    assert_int_equal(stats_of(w).obligations, 0);
    assert_int_equal(stats_of(w).leaks, 0);
    end_region(w, r, ch);
}

static void closed_is_said_only_when_nothing_is_left_that_could_come(void **state) {
    (void)state;
    for (int cancel = 0; cancel < 2; cancel++) {
        world *w = world_new(NULL, true);
        ebb_chan *ch = chan_of(w, 1);
        ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
        mover *first = move_in(w, r, receiver_poll, (mover){.ch = ch, .n = 1});
        world_settle(w);
        (void)move_in(w, r, sender_poll, (mover){.ch = ch, .first = 9, .n = 1});
        (void)ebb_runtime_pump(w->rt, 1); /* the item is promised to the first, and still in the queue */
        ebb_chan_close(w->host, ch);
        mover *second = world_keep(w, sizeof *second);
        *second = (mover){.ch = ch, .n = 1};
        second->id = ebb_spawn(w->host, r, receiver_poll, second,
                               &(ebb_task_opts){.deadline = EBB_SECOND, .keep = true});
        (void)ebb_runtime_pump(w->rt, 1); /* the timed lane comes before the ready one */
        assert_int_equal(first->done, 0);
        assert_int_equal(second->last, EBB_PENDING);
        uint64_t item;
        assert_int_equal(ebb_chan_recv(w->host, ch, &(ebb_wait){0}, &item), EBB_ERR_NOT_TASK);
        if (cancel) ebb_task_cancel(w->host, first->id, EBB_CANCEL_RACE_LOST, NULL);
        world_settle(w);
        assert_int_equal(first->done, cancel ? 0 : 1);
        assert_int_equal(second->done, cancel ? 1 : 0);
        assert_int_equal((cancel ? second : first)->got[0], 9);
        assert_int_equal(second->last, cancel ? EBB_OK : EBB_ERR_CLOSED);
        end_region(w, r, ch);
        world_end(w);
    }
}

static void a_channel_of_nothing_and_one_that_is_too_big_are_refused(void **state) {
    world *w = *state;
    ebb_chan *ch;
    assert_int_equal(ebb_chan_new(w->rt, 0, 8, &ch), EBB_ERR_INVALID);
    assert_null(ch);
    assert_int_equal(ebb_chan_new(w->rt, UINT32_MAX, 8, &ch), EBB_ERR_INVALID);
    w->memory.fail_at = w->memory.calls + 1;
    assert_int_equal(ebb_chan_new(w->rt, 4, 8, &ch), EBB_ERR_NOMEM);
    assert_null(ch);
    assert_int_equal(ebb_chan_new(w->rt, 4, 0, &ch), EBB_OK); /* items without bytes are signals */
    assert_int_equal(ebb_chan_send(w->host, ch, &(ebb_wait){0}, NULL), EBB_OK);
    assert_int_equal(ebb_chan_recv(w->host, ch, &(ebb_wait){0}, NULL), EBB_OK);
    ebb_chan_free(ch);
    ebb_chan_free(NULL);
}

static void the_host_may_send_and_receive_but_not_wait(void **state) {
    world *w = *state;
    ebb_chan *ch = chan_of(w, 1);
    ebb_wait wait = {0};
    ebb_obligation permit = {0};
    uint64_t item = 5;
    assert_int_equal(ebb_chan_recv(w->host, ch, &wait, &item), EBB_ERR_NOT_TASK);
    assert_int_equal(ebb_chan_send(w->host, ch, &wait, &item), EBB_OK);
    assert_int_equal(ebb_chan_send(w->host, ch, &wait, &item), EBB_ERR_NOT_TASK);
    assert_int_equal(ebb_chan_reserve(w->host, ch, &wait, &permit), EBB_ERR_NOT_TASK);
    item = 0;
    assert_int_equal(ebb_chan_recv(w->host, ch, &wait, &item), EBB_OK);
    assert_int_equal(item, 5);
    ebb_chan_close(w->host, ch);
    assert_int_equal(ebb_chan_send(w->host, ch, &wait, &item), EBB_ERR_CLOSED);
    assert_int_equal(ebb_chan_recv(w->host, ch, &wait, &item), EBB_ERR_CLOSED);
    ebb_chan_free(ch);
}

static void a_channel_may_outlive_its_runtime(void **state) {
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    ebb_runtime *rt;
    ebb_chan *ch;
    uint64_t item = 1;
    ebb_wait wait = {0};
    (void)state;
    assert_int_equal(ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_failing_allocator(&memory)}, &rt),
                     EBB_OK);
    assert_int_equal(ebb_chan_new(rt, 4, sizeof item, &ch), EBB_OK);
    assert_int_equal(ebb_chan_send(ebb_runtime_host(rt), ch, &wait, &item), EBB_OK);
    ebb_runtime_free(rt);
    ebb_chan_free(ch);
    assert_int_equal(memory.live, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(items_come_in_the_order_they_were_sent),
        IN_WORLD(items_may_have_any_size),
        IN_WORLD(a_full_channel_makes_the_sender_wait_and_an_empty_one_the_receiver),
        IN_WORLD(waiters_are_served_first_come_first_served_and_nobody_overtakes),
        IN_WORLD(a_reserved_place_is_nobody_elses),
        IN_WORLD(a_leaked_permit_is_named_and_its_place_is_free_again),
        IN_WORLD(a_permit_of_another_channel_or_another_promise_is_refused),
        IN_WORLD(cancelling_a_receiver_at_any_point_neither_loses_nor_doubles_an_item),
        IN_WORLD(cancelling_a_sender_at_any_point_loses_nothing_that_was_sent),
        IN_WORLD(a_place_granted_to_a_sender_that_is_then_cancelled_goes_to_the_next),
        IN_WORLD(a_closed_channel_gives_what_is_in_it_and_takes_nothing_more),
        IN_WORLD(closing_wakes_everybody_who_waits),
        IN_WORLD(a_permit_for_a_closed_channel_is_aborted),
        cmocka_unit_test(closed_is_said_only_when_nothing_is_left_that_could_come),
        IN_WORLD(a_channel_of_nothing_and_one_that_is_too_big_are_refused),
        IN_WORLD(the_host_may_send_and_receive_but_not_wait),
        cmocka_unit_test(a_channel_may_outlive_its_runtime),
        /* Without a recorder, most sends and receives take a shorter way. */
        IN_UNTRACED_WORLD(items_come_in_the_order_they_were_sent),
        IN_UNTRACED_WORLD(a_full_channel_makes_the_sender_wait_and_an_empty_one_the_receiver),
        IN_UNTRACED_WORLD(waiters_are_served_first_come_first_served_and_nobody_overtakes),
        IN_UNTRACED_WORLD(a_reserved_place_is_nobody_elses),
        IN_UNTRACED_WORLD(a_permit_of_another_channel_or_another_promise_is_refused),
        IN_UNTRACED_WORLD(cancelling_a_receiver_at_any_point_neither_loses_nor_doubles_an_item),
        IN_UNTRACED_WORLD(cancelling_a_sender_at_any_point_loses_nothing_that_was_sent),
        IN_UNTRACED_WORLD(a_place_granted_to_a_sender_that_is_then_cancelled_goes_to_the_next),
        IN_UNTRACED_WORLD(a_closed_channel_gives_what_is_in_it_and_takes_nothing_more),
        IN_UNTRACED_WORLD(closing_wakes_everybody_who_waits),
        IN_UNTRACED_WORLD(a_permit_for_a_closed_channel_is_aborted),
        IN_UNTRACED_WORLD(the_host_may_send_and_receive_but_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
