/* Masks: a cancel waits outside of them. */
#include "tests/support/world.h"

typedef struct section {
    ebb_status in[EBB_MASK_MAX + 1], out[EBB_MASK_MAX + 2];
    ebb_status checked;
    bool saw, stopping;
    bool leave;
} section;

static void masks_once(ebb_cx *cx, puppet *p) {
    section *s = p->arg;
    if (p->polls == 1) s->in[0] = ebb_mask(cx);
    s->checked = ebb_checkpoint(cx);
    s->saw = ebb_cancelled(cx);
    s->stopping = ebb_stopping(cx);
    if (!s->leave) return;
    s->out[0] = ebb_unmask(cx);
    s->checked = ebb_checkpoint(cx);
    p->returns = s->checked;
}

static puppet *masking(world *w, ebb_region r, void (*act)(ebb_cx *, puppet *)) {
    return puppet_start(w, r,
                        (puppet){.act = act, .arg = world_keep(w, sizeof(section)), .returns = EBB_PENDING});
}

static void cancelling_a_masked_task_waits_for_the_unmask(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *p = masking(w, r, masks_once);
    section *s = p->arg;
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    for (int i = 0; i < 5; i++) { /* it holds across awaits */
        (void)ebb_task_wake(w->host, p->id);
        world_pass(w, 10 * EBB_MS);
        assert_int_equal(s->checked, EBB_OK);
        assert_false(s->saw);
        assert_true(s->stopping);
        assert_int_equal(phase_of(w, p->id), EBB_TASK_CANCEL_REQUESTED);
    }
    assert_int_equal(count_events(w, EBB_EV_CANCEL_ACKED, p->id.id), 0);
    s->leave = true;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_int_equal(s->checked, EBB_CANCELLED);
    assert_int_equal(info_of(w, p->id).status, EBB_CANCELLED);
    assert_true(event_of(w, EBB_EV_UNMASKED, p->id.id).decision_seq <
                event_of(w, EBB_EV_CANCEL_ACKED, p->id.id).decision_seq);
}

static void nests_too_deep(ebb_cx *cx, puppet *p) {
    section *s = p->arg;
    s->out[0] = ebb_unmask(cx);
    for (int i = 0; i <= EBB_MASK_MAX; i++) s->in[i] = ebb_mask(cx);
    s->checked = ebb_checkpoint(cx);
    for (int i = 1; i <= EBB_MASK_MAX + 1; i++) {
        s->saw = ebb_cancelled(cx);
        s->out[i] = ebb_unmask(cx);
    }
    s->stopping = ebb_cancelled(cx);
    p->returns = EBB_OK;
}

static void masks_nest_to_32_and_the_33rd_is_an_error(void **state) {
    world *w = *state;
    puppet *p = masking(w, w->root, nests_too_deep);
    section *s = p->arg;
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(s->out[0], EBB_ERR_MASK_UNDERFLOW);
    for (int i = 0; i < EBB_MASK_MAX; i++) assert_int_equal(s->in[i], EBB_OK);
    assert_int_equal(s->in[EBB_MASK_MAX], EBB_ERR_MASK_DEPTH);
    assert_int_equal(s->checked, EBB_OK);
    for (int i = 1; i <= EBB_MASK_MAX; i++) assert_int_equal(s->out[i], EBB_OK);
    assert_int_equal(s->out[EBB_MASK_MAX + 1], EBB_ERR_MASK_UNDERFLOW);
    assert_true(s->stopping); /* only the outermost unmask lets it through */
    assert_int_equal(count_events(w, EBB_EV_MASKED, p->id.id), EBB_MASK_MAX);
    ebb_event deepest;
    assert_true(find_event(w, EBB_EV_MASKED, p->id.id, EBB_MASK_MAX - 1, &deepest));
    assert_int_equal(deepest.value, EBB_MASK_MAX);
}

static void the_depth_is_seen_from_outside(void **state) {
    world *w = *state;
    puppet *p = masking(w, w->root, masks_once);
    world_settle(w);
    assert_int_equal(info_of(w, p->id).mask_depth, 1);
}

static void the_host_can_not_be_masked(void **state) {
    world *w = *state;
    assert_int_equal(ebb_mask(w->host), EBB_ERR_NOT_TASK);
    assert_int_equal(ebb_unmask(w->host), EBB_ERR_NOT_TASK);
    assert_int_equal(ebb_checkpoint(w->host), EBB_OK);
}

static void sleeps_masked(ebb_cx *cx, puppet *p) {
    section *s = p->arg;
    if (p->polls == 1) s->in[0] = ebb_mask(cx);
    s->checked = ebb_sleep(cx, &p->nap, 100 * EBB_MS);
    p->returns = s->checked;
}

static void an_await_in_a_masked_section_is_not_cut_short(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *p = masking(w, r, sleeps_masked);
    section *s = p->arg;
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_SHUTDOWN, NULL);
    world_pass(w, 99 * EBB_MS);
    assert_int_equal(s->checked, EBB_PENDING);
    world_pass(w, EBB_MS);
    assert_int_equal(s->checked, EBB_OK);
    assert_int_equal(info_of(w, p->id).status, EBB_OK); /* it never acknowledged */
}

static void peels_its_mask(ebb_cx *cx, puppet *p) {
    section *s = p->arg;
    s->in[0] = ebb_mask(cx);
    s->out[0] = ebb_unmask(cx);
    s->out[1] = ebb_unmask(cx);
    s->checked = ebb_checkpoint(cx);
}

static void defers_peeling(ebb_cx *cx, puppet *p) {
    puppet *fin = puppet_new(p->world, (puppet){.act = peels_its_mask, .arg = p->arg});
    (void)ebb_defer(cx, puppet_poll, fin);
    p->returns = ebb_checkpoint(cx);
}

static void a_finalizer_is_masked_and_can_not_unmask_that(void **state) {
    world *w = *state;
    puppet *p = masking(w, w->root, defers_peeling);
    section *s = p->arg;
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
    assert_int_equal(s->in[0], EBB_OK);
    assert_int_equal(s->out[0], EBB_OK);
    assert_int_equal(s->out[1], EBB_ERR_MASK_UNDERFLOW);
    assert_int_equal(s->checked, EBB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(cancelling_a_masked_task_waits_for_the_unmask),
        IN_WORLD(masks_nest_to_32_and_the_33rd_is_an_error),
        IN_WORLD(the_depth_is_seen_from_outside),
        IN_WORLD(the_host_can_not_be_masked),
        IN_WORLD(an_await_in_a_masked_section_is_not_cut_short),
        IN_WORLD(a_finalizer_is_masked_and_can_not_unmask_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
