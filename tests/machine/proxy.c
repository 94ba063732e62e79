/* A machine of another runtime, through its proxy: messages, requests, credits, and each way in which either end ends.
 * One thread runs both runtimes. */
#include "tests/machine/proxy.h"
#include "tests/support/world.h"

#include <stdlib.h>

enum { NEAR, HOME };

typedef struct side {
    world *w;
    ebb_machines *ms;
    ebb_machine m;
    bool rung;
    uint32_t dead[8];   /* dead letters, by reason */
    uint32_t dead_puts; /* of these, PUT */
    uint32_t faults, overflows;
} side;

typedef struct stage {
    side side[2];
    ebb_machine proxy;
} stage;

static void on_rung(void *arg) {
    ((side *)arg)->rung = true;
}
static void on_dead(void *arg, const ebb_dead_letter *dead) {
    ((side *)arg)->dead[dead->reason]++;
    ((side *)arg)->dead_puts += dead->kind == PUT;
}
static void on_fault(void *arg, ebb_machine m, uint16_t kind, ebb_status st) {
    (void)m;
    (void)kind;
    (void)st;
    ((side *)arg)->faults++;
}
static void on_overflow(void *arg, ebb_machine m, uint16_t kind) {
    (void)m;
    (void)kind;
    ((side *)arg)->overflows++;
}

static void receive(side *s) {
    s->rung = false;
    ebb_inbox_receive(s->w->rt);
    world_settle(s->w);
}

static void settle(stage *s) {
    for (uint32_t i = 0; i < 2; i++)
        if (s->side[i].w != NULL) receive(&s->side[i]);
    if ((s->side[0].w != NULL && s->side[0].rung) || (s->side[1].w != NULL && s->side[1].rung)) settle(s);
}

static void side_begin(side *s, uint8_t id, const ebb_machine_type *type) {
    s->w = world_new(&(ebb_runtime_opts){.runtime_id = id}, true);
    assert_int_equal(ebb_inbox_on_wake(s->w->rt, on_rung, s), EBB_OK);
    ebb_machines_opts o = {.n_kinds = KINDS,
                           .kinds = proxy_kinds,
                           .dead_letter = on_dead,
                           .fault = on_fault,
                           .overflow = on_overflow,
                           .arg = s};
    assert_int_equal(ebb_machines_open(s->w->host, &s->ms, &o), EBB_OK);
    s->m = ebb_machine_spawn(s->ms, type, 0, NULL);
    assert_int_equal(ebb_id_status(s->m.id), EBB_OK);
}

static ebb_machine_remote *export(stage *s, uint32_t credits) {
    ebb_machine_remote *r;
    assert_int_equal(ebb_machine_remote_new(s->side[HOME].ms, s->side[HOME].m,
                                            &(ebb_machine_remote_opts){.credits = credits}, &r),
                     EBB_OK);
    return r;
}

/* The machine at home is Created. */
static void begin(stage *s, uint32_t credits) {
    memset(s, 0, sizeof *s);
    proxy_roles_reset();
    side_begin(&s->side[NEAR], 1, &near_type);
    side_begin(&s->side[HOME], 2, &home_type);
    assert_int_equal(ebb_machine_start(s->side[NEAR].ms, s->side[NEAR].m), EBB_OK);
    if (credits == 0) return;
    s->proxy = ebb_machine_remote_import(s->side[NEAR].ms, export(s, credits));
    assert_int_equal(ebb_id_status(s->proxy.id), EBB_OK);
    settle(s);
}

static void start_home(stage *s) {
    assert_int_equal(ebb_machine_start(s->side[HOME].ms, s->side[HOME].m), EBB_OK);
    settle(s);
}

static void drained(const side *s) {
    ebb_machines_stats st;
    ebb_machines_stats_of(s->ms, &st);
    assert_int_equal(st.machines, 0);
    assert_int_equal(st.queued, 0);
    assert_int_equal(st.pending, 0);
    assert_int_equal(st.cells, 0);
}

static void close_side(side *s) {
    ebb_region_close(s->w->host, ebb_machines_region(s->ms));
}
static void cancel_side(side *s) {
    ebb_region_cancel(s->w->host, ebb_machines_region(s->ms), EBB_CANCEL_USER, NULL);
}

/* Frees a runtime of machines that has drained, and its runtime; the world checks the trace. */
static void side_end(side *s) {
    if (s->w == NULL) return;
    drained(s);
    assert_int_equal(ebb_machines_free(s->ms), EBB_OK);
    world_end(s->w);
    s->w = NULL;
}

/* Frees the runtime of a side as it is. Its memory is checked when the other side has ended, too. */
static world *side_freed(side *s) {
    world *w = s->w;
    ebb_runtime_free(w->rt);
    assert_int_equal(ebb_machines_free(s->ms), EBB_OK);
    s->w = NULL;
    return w;
}

static void world_freed(world *w) {
    assert_int_equal(w->memory.live, 0);
    free((void *)w->kept);
    free(w->trace);
    free(w);
}

static void end(stage *s) {
    for (uint32_t i = 0; i < 2; i++)
        if (s->side[i].w != NULL) cancel_side(&s->side[i]);
    settle(s);
    side_end(&s->side[NEAR]);
    side_end(&s->side[HOME]);
}

static ebb_status put(stage *s, uint64_t n) {
    return ebb_machine_send(s->side[NEAR].ms, s->proxy, PUT, &n, sizeof n);
}

static ebb_status ask_of(stage *s, uint16_t kind, uint64_t n, uint64_t within) {
    order o = {.to = s->proxy, .number = n, .within = within, .kind = kind, .asks = true};
    assert_int_equal(ebb_machine_send(s->side[NEAR].ms, s->side[NEAR].m, DO, &o, sizeof o), EBB_OK);
    settle(s);
    return at_near.st;
}

static uint32_t reserved(const side *s, ebb_machine m) {
    ebb_machine_info info;
    assert_int_equal(ebb_machine_info_of(s->ms, m, &info), EBB_OK);
    return info.reserved;
}

static ebb_machine_lifecycle life(const side *s, ebb_machine m) {
    ebb_machine_info info;
    assert_int_equal(ebb_machine_info_of(s->ms, m, &info), EBB_OK);
    return info.lifecycle;
}

/* ---- messages and credits ------------------------------------------------------------------------------------ */

static void a_message_has_its_credit_until_it_has_left_the_mailbox(void **unused) {
    stage s;
    (void)unused;
    begin(&s, 3);
    for (uint64_t n = 0; n < 3; n++) assert_int_equal(put(&s, n), EBB_OK);
    settle(&s);
    assert_int_equal(put(&s, 9),
                     EBB_ERR_MAILBOX_FULL); /* they are in the mailbox of a machine that was not started */
    assert_int_equal(s.side[NEAR].overflows, 1);
    assert_int_equal(reserved(&s.side[NEAR], s.proxy), 3);
    start_home(&s);
    assert_int_equal(at_home.got_n, 3);
    for (uint64_t n = 0; n < 3; n++) assert_int_equal(at_home.got[n], n);
    assert_int_equal(at_home.from.id, 0);
    for (uint64_t n = 3; n < 200; n++) {
        assert_int_equal(put(&s, n), EBB_OK);
        if (n % 3 == 2) settle(&s);
    }
    settle(&s);
    assert_int_equal(at_home.got_n, 200);
    for (uint64_t n = 0; n < 200; n++) assert_int_equal(at_home.got[n], n);
    assert_int_equal(reserved(&s.side[NEAR], s.proxy), 0);
    assert_int_equal(reserved(&s.side[HOME], s.side[HOME].m), 3);
    end(&s);
}

static void a_message_has_the_id_of_its_sender(void **unused) {
    stage s;
    (void)unused;
    begin(&s, 2);
    start_home(&s);
    order o = {.to = s.proxy, .number = 5, .kind = PUT};
    assert_int_equal(ebb_machine_send(s.side[NEAR].ms, s.side[NEAR].m, DO, &o, sizeof o), EBB_OK);
    settle(&s);
    assert_int_equal(at_home.got[0], 5);
    assert_int_equal(at_home.from.id, s.side[NEAR].m.id);
    uint64_t n = 1; /* which belongs to the other runtime */
    assert_int_equal(ebb_machine_send(s.side[HOME].ms, at_home.from, PUT, &n, sizeof n),
                     EBB_ERR_UNKNOWN_MACHINE);
    end(&s);
}

static void a_deferred_message_keeps_its_credit(void **unused) {
    stage s;
    uint64_t n = 7;
    (void)unused;
    begin(&s, 1);
    start_home(&s);
    assert_int_equal(ebb_machine_send(s.side[NEAR].ms, s.proxy, LATER, &n, sizeof n), EBB_OK);
    settle(&s);
    assert_int_equal(put(&s, 8), EBB_ERR_MAILBOX_FULL);
    assert_int_equal(ebb_machine_send(s.side[HOME].ms, s.side[HOME].m, WAKE, NULL, 0), EBB_OK);
    settle(&s);
    assert_int_equal(at_home.got[0], 7);
    assert_int_equal(put(&s, 8), EBB_OK);
    end(&s);
}

static void places_of_a_link_are_nobody_elses(void **unused) {
    stage s;
    ebb_machine_remote *r;
    uint64_t n = 0;
    (void)unused;
    begin(&s, 5);
    for (uint32_t i = 0; i < 3; i++) /* its mailbox has 8 */
        assert_int_equal(ebb_machine_send(s.side[HOME].ms, s.side[HOME].m, PUT, &n, sizeof n), EBB_OK);
    assert_int_equal(ebb_machine_send(s.side[HOME].ms, s.side[HOME].m, PUT, &n, sizeof n),
                     EBB_ERR_MAILBOX_FULL);
    for (uint32_t i = 0; i < 5; i++) assert_int_equal(put(&s, i), EBB_OK);
    settle(&s);
    ebb_machine_remote_opts one = {.credits = 1};
    assert_int_equal(ebb_machine_remote_new(s.side[HOME].ms, s.side[HOME].m, &one, &r), EBB_ERR_MAILBOX_FULL);
    assert_null(r);
    assert_int_equal(ebb_machine_stop(s.side[NEAR].ms, s.proxy),
                     EBB_OK); /* the link ends; its messages keep places */
    settle(&s);
    assert_int_equal(reserved(&s.side[HOME], s.side[HOME].m), 8);
    start_home(&s);
    assert_int_equal(reserved(&s.side[HOME], s.side[HOME].m), 0);
    assert_int_equal(at_home.got_n, 8);
    end(&s);
}

/* ---- requests ------------------------------------------------------------------------------------------------- */

static void a_request_is_answered_with_its_label_and_origin(void **unused) {
    stage s;
    (void)unused;
    begin(&s, 2);
    start_home(&s);
    for (uint64_t n = 1; n <= 10; n++) {
        assert_int_equal(ask_of(&s, ASK, n, 0), EBB_OK);
        assert_int_equal(at_near.heard_n, n);
        assert_int_equal(at_near.heard[n - 1], 100 + n);
        assert_int_equal(at_near.label, 77);
        assert_int_equal(at_near.origin, n);
        assert_int_equal(at_near.from.id, s.proxy.id);
    }
    assert_int_equal(reserved(&s.side[NEAR], s.proxy), 0);
    end(&s);
}

static void each_failure_of_a_request_crosses(void **unused) {
    stage s;
    (void)unused;
    begin(&s, 2);
    start_home(&s);
    assert_int_equal(ask_of(&s, UNKNOWN, 1, 0), EBB_OK);
    assert_int_equal(at_near.heard[0], EBB_REQUEST_UNHANDLED);
    assert_int_equal(ask_of(&s, HANG, 2, 5 * EBB_MS), EBB_OK);
    world_pass(s.side[NEAR].w, 9 * EBB_MS);
    assert_int_equal(at_near.heard[1], EBB_REQUEST_TIMEOUT);
    assert_int_equal(reserved(&s.side[NEAR], s.proxy), 1); /* until it is answered */
    assert_int_equal(ebb_machine_reply(s.side[HOME].ms, at_home.held[0], SUM, NULL, 0), EBB_OK);
    settle(&s);
    assert_int_equal(at_near.heard_n, 2);
    assert_int_equal(s.side[NEAR].dead[EBB_DEAD_LATE], 1);
    assert_int_equal(reserved(&s.side[NEAR], s.proxy), 0);
    assert_int_equal(ask_of(&s, HANG, 3, 0), EBB_OK);
    assert_int_equal(ask_of(&s, BREAK, 4, 0), EBB_OK);
    assert_int_equal(at_near.heard_n, 4);
    assert_int_equal(at_near.heard[2], EBB_REQUEST_FAULTED);
    assert_int_equal(at_near.heard[3], EBB_REQUEST_FAULTED);
    assert_int_equal(life(&s.side[NEAR], s.proxy), EBB_MACHINE_STOPPED);
    assert_int_equal(put(&s, 1), EBB_ERR_NOT_RUNNING);
    assert_int_equal(life(&s.side[HOME], s.side[HOME].m), EBB_MACHINE_FAULTED);
    end(&s);
}

static void a_held_capability_is_answered_later_by_the_program(void **unused) {
    stage s;
    uint64_t n = 11;
    (void)unused;
    begin(&s, 4);
    start_home(&s);
    for (uint64_t i = 0; i < 4; i++) assert_int_equal(ask_of(&s, HANG, i, 0), EBB_OK);
    assert_int_equal(ask_of(&s, HANG, 4, 0), EBB_ERR_MAILBOX_FULL);
    for (uint32_t i = 4; i-- > 0;) {
        assert_int_equal(ebb_machine_reply(s.side[HOME].ms, at_home.held[i], SUM, &n, sizeof n), EBB_OK);
        n++;
    }
    settle(&s);
    assert_int_equal(at_near.heard_n, 4);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(at_near.heard[i], 111 + i);
    assert_int_equal(ask_of(&s, ASK, 1, 0), EBB_OK);
    assert_int_equal(at_near.heard[4], 101);
    end(&s);
}

/* ---- what can't cross ------------------------------------------------------------------------------------------- */

static void what_does_not_fit_is_refused_where_it_is_sent(void **unused) {
    stage s;
    unsigned char big[65] = {0};
    (void)unused;
    begin(&s, 2);
    start_home(&s);
    assert_int_equal(ebb_machine_send(s.side[NEAR].ms, s.proxy, PUT, big, 64), EBB_OK);
    assert_int_equal(ebb_machine_send(s.side[NEAR].ms, s.proxy, PUT, big, 65), EBB_ERR_LIMIT);
    assert_int_equal(ebb_machine_send(s.side[NEAR].ms, s.proxy, BAG, big, 8), EBB_ERR_FOREIGN);
    assert_int_equal(ebb_machine_send(s.side[NEAR].ms, s.proxy, KINDS, big, 8), EBB_ERR_INVALID);
    assert_int_equal(ask_of(&s, BAG, 1, 0), EBB_ERR_FOREIGN);
    at_home.reply_size = 64;
    assert_int_equal(ask_of(&s, ASK, 1, 0), EBB_OK);
    assert_int_equal(at_near.heard[0], 101);
    at_home.reply_size = 65;
    assert_int_equal(ask_of(&s, ASK, 1, 0), EBB_OK);
    assert_int_equal(at_home.reply, EBB_ERR_LIMIT);
    assert_int_equal(at_near.heard[1], EBB_REQUEST_FAULTED);
    end(&s);
    begin(&s, 2);
    start_home(&s);
    at_home.reply_kind = BAG;
    assert_int_equal(ask_of(&s, ASK, 1, 0), EBB_OK);
    assert_int_equal(at_home.reply, EBB_ERR_FOREIGN);
    end(&s);
}

static void handles_that_can_not_be_made_or_used_say_why(void **unused) {
    stage s;
    ebb_machine_remote *r;
    (void)unused;
    begin(&s, 0);
    side *home = &s.side[HOME], *near = &s.side[NEAR];
    const ebb_machine_remote_opts wide = {.credits = 65536}, large = {.message = EBB_MACHINE_MESSAGE_MAX + 1};
    const ebb_machine_remote_opts many = {.credits = 9};
    assert_int_equal(ebb_machine_remote_new(home->ms, home->m, &wide, &r), EBB_ERR_INVALID);
    assert_int_equal(ebb_machine_remote_new(home->ms, home->m, &large, &r), EBB_ERR_INVALID);
    assert_int_equal(ebb_machine_remote_new(home->ms, home->m, &many, &r), EBB_ERR_MAILBOX_FULL);
    assert_int_equal(ebb_machine_remote_new(home->ms, near->m, NULL, &r), EBB_ERR_UNKNOWN_MACHINE);
    r = export(&s, 8);
    assert_int_equal(reserved(home, home->m), 8);
    ebb_machine_remote_release(r);
    settle(&s);
    assert_int_equal(reserved(home, home->m), 0);
    assert_int_equal(ebb_id_status(ebb_machine_remote_import(home->ms, export(&s, 2)).id), EBB_ERR_INVALID);
    settle(&s);
    assert_int_equal(reserved(home, home->m), 0);
    s.proxy = ebb_machine_remote_import(near->ms, export(&s, 2));
    assert_int_equal(ebb_machine_remote_new(near->ms, s.proxy, NULL, &r), EBB_ERR_INVALID);
    r = export(&s, 2);
    assert_int_equal(ebb_machine_stop(home->ms, home->m), EBB_OK);
    assert_int_equal(ebb_id_status(ebb_machine_remote_import(near->ms, r).id), EBB_ERR_CLOSED);
    assert_int_equal(ebb_machine_remote_new(home->ms, home->m, NULL, &r), EBB_ERR_NOT_RUNNING);
    settle(&s);
    assert_int_equal(life(near, s.proxy), EBB_MACHINE_STOPPED);
    end(&s);
}

static void a_publish_reaches_the_machines_of_one_runtime(void **unused) {
    stage s;
    uint64_t n = 1;
    (void)unused;
    begin(&s, 2);
    start_home(&s);
    assert_int_equal(ebb_machine_publish(s.side[NEAR].ms, PUT, 1, &n, sizeof n), EBB_OK);
    settle(&s);
    assert_int_equal(s.side[NEAR].dead[EBB_DEAD_NOBODY], 1);
    assert_int_equal(at_home.got_n, 0);
    end(&s);
}

/* ---- ends --------------------------------------------------------------------------------------------------------- */

static void a_machine_that_stops_stops_its_proxy_and_what_is_under_way_is_a_dead_letter(void **unused) {
    stage s;
    (void)unused;
    begin(&s, 4);
    start_home(&s);
    assert_int_equal(ask_of(&s, HANG, 1, 0), EBB_OK);
    assert_int_equal(put(&s, 1), EBB_OK);
    world_settle(s.side[NEAR].w); /* it is on the bridge when the machine stops */
    assert_int_equal(ebb_machine_stop(s.side[HOME].ms, s.side[HOME].m), EBB_OK);
    settle(&s);
    assert_int_equal(s.side[HOME].dead[EBB_DEAD_STOPPED], 1);
    assert_int_equal(at_near.heard[0], EBB_REQUEST_STOPPED);
    assert_int_equal(life(&s.side[NEAR], s.proxy), EBB_MACHINE_STOPPED);
    assert_int_equal(put(&s, 2), EBB_ERR_NOT_RUNNING);
    end(&s);
}

static void a_proxy_that_is_stopped_ends_the_link_but_not_what_was_sent(void **unused) {
    stage s;
    uint64_t n = 4;
    (void)unused;
    begin(&s, 4);
    start_home(&s);
    assert_int_equal(ask_of(&s, HANG, 1, 0), EBB_OK);
    assert_int_equal(put(&s, 2), EBB_OK);
    world_settle(s.side[NEAR].w);
    assert_int_equal(ebb_machine_stop(s.side[NEAR].ms, s.proxy), EBB_OK);
    settle(&s);
    assert_int_equal(at_near.heard[0], EBB_REQUEST_STOPPED);
    assert_int_equal(at_home.got[0], 2);
    assert_int_equal(life(&s.side[HOME], s.side[HOME].m), EBB_MACHINE_RUNNING);
    assert_int_equal(reserved(&s.side[HOME], s.side[HOME].m), 0);
    assert_int_equal(ebb_machine_reply(s.side[HOME].ms, at_home.held[0], SUM, &n, sizeof n), EBB_OK);
    settle(&s);
    assert_int_equal(s.side[HOME].dead[EBB_DEAD_LATE], 1);
    end(&s);
}

static void machines_that_close_answer_what_has_come_first(void **unused) {
    stage s;
    uint64_t n = 4;
    (void)unused;
    begin(&s, 4);
    start_home(&s);
    assert_int_equal(ask_of(&s, HANG, 1, 0), EBB_OK);
    assert_int_equal(put(&s, 2), EBB_OK);
    world_settle(s.side[NEAR].w);
    close_side(&s.side[HOME]);
    settle(&s);
    assert_int_equal(at_home.got[0], 2);
    assert_int_equal(put(&s, 3), EBB_ERR_NOT_RUNNING);
    assert_int_equal(life(&s.side[NEAR], s.proxy), EBB_MACHINE_RUNNING);
    assert_int_equal(at_near.heard_n, 0);
    assert_int_equal(ebb_machine_reply(s.side[HOME].ms, at_home.held[0], SUM, &n, sizeof n), EBB_OK);
    settle(&s);
    assert_int_equal(at_near.heard[0], 104);
    drained(&s.side[HOME]);
    assert_int_equal(life(&s.side[NEAR], s.proxy), EBB_MACHINE_STOPPED);
    end(&s);
}

/* It closes before it has looked at the bridge. */
static void a_drain_waits_for_what_is_on_the_bridge(void **unused) {
    stage s;
    (void)unused;
    begin(&s, 4);
    start_home(&s);
    assert_int_equal(put(&s, 2), EBB_OK);
    world_settle(s.side[NEAR].w);
    close_side(&s.side[HOME]);
    world_settle(s.side[HOME].w);
    settle(&s);
    assert_int_equal(at_home.got_n, 1);
    assert_int_equal(s.side[HOME].dead_puts, 0);
    drained(&s.side[HOME]);
    end(&s);
}

static void a_close_here_waits_for_the_answer_from_home(void **unused) {
    stage s;
    uint64_t n = 4;
    ebb_machines_stats st;
    (void)unused;
    begin(&s, 4);
    start_home(&s);
    assert_int_equal(ask_of(&s, HANG, 1, 0), EBB_OK);
    close_side(&s.side[NEAR]);
    settle(&s);
    ebb_machines_stats_of(s.side[NEAR].ms, &st);
    assert_int_equal(st.machines, 2);
    assert_int_equal(ebb_machine_reply(s.side[HOME].ms, at_home.held[0], SUM, &n, sizeof n), EBB_OK);
    settle(&s);
    assert_int_equal(at_near.heard[0], 104);
    drained(&s.side[NEAR]);
    assert_int_equal(reserved(&s.side[HOME], s.side[HOME].m), 0);
    end(&s);
}

static void a_cancel_at_home_makes_dead_letters_of_what_is_under_way(void **unused) {
    stage s;
    (void)unused;
    begin(&s, 4);
    start_home(&s);
    assert_int_equal(ask_of(&s, HANG, 1, 0), EBB_OK);
    assert_int_equal(put(&s, 2), EBB_OK);
    assert_int_equal(put(&s, 3), EBB_OK);
    world_settle(s.side[NEAR].w);
    cancel_side(&s.side[HOME]);
    settle(&s);
    assert_int_equal(s.side[HOME].dead[EBB_DEAD_STOPPED], 2);
    assert_int_equal(at_near.heard[0], EBB_REQUEST_STOPPED);
    assert_int_equal(life(&s.side[NEAR], s.proxy), EBB_MACHINE_STOPPED);
    drained(&s.side[HOME]);
    end(&s);
}

/* The other end never says that it has agreed. */
static void a_cancel_at_home_ends_within_its_budget_if_the_other_end_sleeps(void **unused) {
    stage s;
    (void)unused;
    begin(&s, 4);
    start_home(&s);
    assert_int_equal(put(&s, 1), EBB_OK);
    cancel_side(&s.side[HOME]);
    for (uint32_t i = 0; i < 100; i++) world_pass(s.side[HOME].w, EBB_SECOND);
    drained(&s.side[HOME]);
    world *gone = side_freed(&s.side[HOME]);
    settle(&s);
    assert_int_equal(life(&s.side[NEAR], s.proxy), EBB_MACHINE_STOPPED);
    end(&s);
    world_freed(gone);
}

static void a_runtime_that_is_freed_ends_its_links(void **unused) {
    for (uint32_t who = 0; who < 2; who++) {
        for (uint32_t how = 0; how < 4; how++) { /* imported or not; settled or not */
            stage s;
            ebb_machine_remote *r = NULL;
            (void)unused;
            begin(&s, 2);
            start_home(&s);
            assert_int_equal(ask_of(&s, HANG, 1, 0), EBB_OK);
            if (how < 2) r = export(&s, 2);
            else (void)ebb_machine_remote_import(s.side[NEAR].ms, export(&s, 2));
            assert_int_equal(put(&s, 1), EBB_OK);
            if (how % 2 == 1) world_settle(s.side[NEAR].w);
            side *lives = &s.side[1 - who];
            world *gone = side_freed(&s.side[who]);
            settle(&s);
            if (who == HOME) {
                assert_int_equal(at_near.heard[0], EBB_REQUEST_STOPPED);
                assert_int_equal(life(lives, s.proxy), EBB_MACHINE_STOPPED);
            }
            if (r != NULL && who == HOME)
                assert_int_equal(ebb_id_status(ebb_machine_remote_import(lives->ms, r).id), EBB_ERR_CLOSED);
            if (r != NULL && who == NEAR) ebb_machine_remote_release(r);
            settle(&s);
            if (who == HOME) assert_int_equal(reserved(lives, lives->m), 0);
            end(&s);
            world_freed(gone);
        }
    }
}

/* ---- memory ------------------------------------------------------------------------------------------------------- */

static uint32_t answers, replies;
static void on_answered(void *arg, const ebb_message *m) {
    (void)arg;
    answers++;
    replies += m->failure == 0;
}

typedef struct tally {
    uint32_t put, called; /* that were accepted */
    bool told;            /* somebody was told of a failure */
} tally;

static bool went_well(tally *t, ebb_status st) {
    t->told |= st != EBB_OK;
    return st == EBB_OK;
}

/* Payloads of 64 bytes have blocks of their own. */
static void talk(stage *s, tally *t) {
    unsigned char big[64] = {1};
    side *near = &s->side[NEAR];
    for (uint32_t round = 0; round < 2; round++) {
        t->put += went_well(t, ebb_machine_send(near->ms, s->proxy, PUT, big, sizeof big));
        t->put += went_well(t, ebb_machine_send(near->ms, s->proxy, PUT, big, 8));
        for (uint16_t kind = ASK; kind <= HANG; kind++) {
            ebb_request r = ebb_machine_call(near->ms, s->proxy, kind, big, sizeof big, 0, on_answered, NULL);
            t->called += went_well(t, ebb_id_status(r.id));
        }
        settle(s);
        for (uint32_t i = 0; i < at_home.held_n; i++)
            (void)went_well(t, ebb_machine_reply(s->side[HOME].ms, at_home.held[i], SUM, big, sizeof big));
        at_home.held_n = 0;
        settle(s);
    }
}

/* The n-th allocation of one side fails, 0: none. Returns how many there were. */
static uint64_t talk_without_memory(uint32_t which, uint64_t n) {
    stage s;
    tally t = {0};
    ebb_machine_remote *r;
    begin(&s, 0);
    answers = replies = 0;
    at_home.reply_size = 64;
    start_home(&s);
    ebb_failing *memory = &s.side[which].w->memory;
    uint64_t before = memory->calls;
    if (n > 0) memory->fail_at = before + n;
    if (went_well(&t, ebb_machine_remote_new(s.side[HOME].ms, s.side[HOME].m,
                                             &(ebb_machine_remote_opts){.credits = 4}, &r))) {
        s.proxy = ebb_machine_remote_import(s.side[NEAR].ms, r);
        if (went_well(&t, ebb_id_status(s.proxy.id))) talk(&s, &t);
    }
    uint64_t calls = memory->calls - before;
    uint32_t dead = s.side[NEAR].dead_puts + s.side[HOME].dead_puts;
    assert_int_equal(at_home.got_n + dead, t.put);
    bool noted = t.told || s.side[NEAR].faults + s.side[HOME].faults + dead > 0 || replies < answers;
    if (!noted) assert_int_equal(at_home.got_n + replies, 8);
    if (n == 0) assert_false(noted);
    end(&s); /* which checks that nothing is left, and the memory */
    assert_int_equal(answers, t.called);
    return calls;
}

static void nothing_is_lost_when_an_allocation_fails_at_either_end(void **unused) {
    (void)unused;
    for (uint32_t which = NEAR; which <= HOME; which++) {
        uint64_t calls = talk_without_memory(which, 0);
        assert_true(calls > 4);
        for (uint64_t n = 1; n <= calls; n++) (void)talk_without_memory(which, n);
        print_message("%s: %u allocations\n", which == NEAR ? "the proxy's side" : "the home",
                      (unsigned)calls);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_has_its_credit_until_it_has_left_the_mailbox),
        cmocka_unit_test(a_message_has_the_id_of_its_sender),
        cmocka_unit_test(a_deferred_message_keeps_its_credit),
        cmocka_unit_test(places_of_a_link_are_nobody_elses),
        cmocka_unit_test(a_request_is_answered_with_its_label_and_origin),
        cmocka_unit_test(each_failure_of_a_request_crosses),
        cmocka_unit_test(a_held_capability_is_answered_later_by_the_program),
        cmocka_unit_test(what_does_not_fit_is_refused_where_it_is_sent),
        cmocka_unit_test(handles_that_can_not_be_made_or_used_say_why),
        cmocka_unit_test(a_publish_reaches_the_machines_of_one_runtime),
        cmocka_unit_test(a_machine_that_stops_stops_its_proxy_and_what_is_under_way_is_a_dead_letter),
        cmocka_unit_test(a_proxy_that_is_stopped_ends_the_link_but_not_what_was_sent),
        cmocka_unit_test(machines_that_close_answer_what_has_come_first),
        cmocka_unit_test(a_drain_waits_for_what_is_on_the_bridge),
        cmocka_unit_test(a_close_here_waits_for_the_answer_from_home),
        cmocka_unit_test(a_cancel_at_home_makes_dead_letters_of_what_is_under_way),
        cmocka_unit_test(a_cancel_at_home_ends_within_its_budget_if_the_other_end_sleeps),
        cmocka_unit_test(a_runtime_that_is_freed_ends_its_links),
        cmocka_unit_test(nothing_is_lost_when_an_allocation_fails_at_either_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
