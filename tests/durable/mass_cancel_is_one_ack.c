/* 10,000 activities are cancelled in one ack, and between two commits no row of them is left. */
#include "tests/support/durable_world.h"

enum { MANY = 9999 }; /* and a timer: the most actions of a turn */

static ebb_status fan(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step *all = ebb_orch_alloc(o, (MANY + 1) * sizeof *all);
    size_t won;
    (void)out;
    for (size_t i = 0; i < MANY; i++) all[i] = ebb_orch_call(o, "elsewhere", in, NULL);
    all[MANY] = ebb_orch_timer(o, 10 * EBB_SECOND);
    ebb_status st = ebb_orch_select(o, MANY + 1, all, &won);
    if (st != EBB_OK || won != MANY) return EBB_FAILED;
    return ebb_orch_await(o, ebb_orch_timer(o, 10 * EBB_SECOND), NULL);
}

typedef struct seen {
    int acks;
    size_t cancelled;
} seen;

static void committed(void *arg, const ebb_provider_call *c) {
    seen *s = arg;
    if (c->op != EBB_PROVIDER_ACK_TURN) return;
    const ebb_provider_ack_turn_call *a = (const ebb_provider_ack_turn_call *)c;
    s->acks += a->cancelled_n > 0;
    s->cancelled += a->cancelled_n;
}

static void ten_thousand_go_in_one_ack(void **state) {
    world *w = *state;
    ebb__lab_world *lab;
    seen s = {0, 0};
    assert_int_equal(ebb__lab_world_new(w->allocator, &lab), EBB_OK);
    ebb__lab_world_use(w->rt, lab);
    ebb__lab_world_set_committed(lab, committed, &s);
    durable *d = durable_new(w, &(ebb_worker_opts){.double_run = 1000});
    assert_int_equal(ebb_worker_orch(d->worker, "fan", 1, fan), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "fan", "");
    durable_pass(d, 5 * EBB_SECOND);
    assert_string_equal(durable_rows(d, "a"), "work 9999 claimed 0 timers 1 messages 0");
    durable_pass(d, 6 * EBB_SECOND);
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 1 messages 0");
    assert_int_equal(s.acks, 1);
    assert_int_equal(s.cancelled, MANY);
    durable_pass(d, 10 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed");
    ebb_region_cancel(w->host, w->root, EBB_CANCEL_SHUTDOWN, "");
    durable_pass(d, EBB_SECOND);
    ebb__lab_world_free(lab);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_UNTRACED_WORLD(ten_thousand_go_in_one_ack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
