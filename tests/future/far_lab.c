/* Far regions in the lab: a region with children on two other runtimes is closed, cancelled and forced while
 * they finish, fail or take no notice, and while their own runtimes shut down. It closes after its children,
 * no child is told before it, and what is said only gets stronger. */
#include "tests/future/peer_lab.h"

enum { CHILDREN = 3, RUNTIMES = 3 };

/* What a child does: the first three end by themselves. */
typedef enum temper { FINISHES, FAILS, GATHERS, HEEDS, SLOWLY, DEAF, TEMPERS } temper;

typedef struct voyage voyage;

typedef struct child {
    EBB_TASK_STATE;
    voyage *v;
    temper temper;
    ebb_future *future; /* held by the parent's region until that closes */
    uint32_t running;   /* tasks of it that have begun and not ended */
    uint8_t severity;   /* of what it was told */
    ebb_sleeper nap;
    bool helped;
} child;

struct voyage {
    EBB_TASK_STATE;
    ebb_lab *lab;
    lab_peer peers[RUNTIMES];
    ebb_region region; /* the parent, on runtime 0 */
    child child[CHILDREN];
    uint32_t i;
    bool disturbed; /* or a child does not end by itself */
    bool cancelled; /* one of the futures was */
    bool closed, waited;
    bool must_close; /* without help of the lab, which ends what is left when nothing happens any more */
};

/* ---- children ------------------------------------------------------------------------------------------ */

static ebb_status over(ebb_cx *cx, void *state) {
    child *c = state;
    (void)cx;
    c->running--;
    return EBB_OK;
}

static void begin(ebb_cx *cx, child *c) {
    if (ebb_defer(cx, over, c) == EBB_OK) c->running++;
    if (c->v->closed && c->v->waited) ebb_lab_fail(c->v->lab, "a child began after its parent had closed");
}

static bool is_open(ebb_cx *cx, ebb_region region) {
    ebb_region_state s = EBB_REGION_CLOSED;
    return ebb_region_state_of(cx, region, &s) == EBB_OK && s == EBB_REGION_OPEN;
}

/* A cancel comes from the parent or from the runtime that it lives on; and it never gets weaker. */
static void look(ebb_cx *cx, child *c) {
    if (!ebb_cancelled(cx)) return;
    ebb_cx *parent = ebb_runtime_host(ebb_lab_runtime(c->v->lab, 0));
    if (!c->v->cancelled && is_open(cx, ebb_runtime_root(ebb_cx_runtime(cx))) &&
        is_open(parent, c->v->region)) {
        ebb_lab_fail(c->v->lab, "a child was cancelled before its parent");
    }
    ebb_task_info info;
    (void)ebb_task_info_of(cx, ebb_cx_task(cx), &info);
    if (info.reason.severity < c->severity) ebb_lab_fail(c->v->lab, "a cancel became weaker");
    c->severity = info.reason.severity;
}

static ebb_status heed(ebb_cx *cx) {
    if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
    return ebb_stopping(cx) ? EBB_OK : EBB_PENDING;
}

static ebb_status helper(ebb_cx *cx, void *state) {
    child *c = state;
    if (!c->helped) begin(cx, c);
    c->helped = true;
    return heed(cx);
}

static ebb_status child_body(ebb_cx *cx, void *state) {
    child *c = state;
    ebb_status st;
    look(cx, c);
    EBB_BEGIN(c);
    begin(cx, c);
    if (c->temper == GATHERS) (void)ebb_spawn(cx, ebb_cx_region(cx), helper, c);
    if (c->temper == DEAF) EBB_AWAIT(c, st, EBB_PENDING);
    if (c->temper <= GATHERS) {
        EBB_YIELD(cx, c);
        EBB_YIELD(cx, c);
        if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
        return c->temper == FAILS ? EBB_FAILED : EBB_OK;
    }
    EBB_AWAIT(c, st, heed(cx));
    if (c->temper == SLOWLY) {
        (void)ebb_mask(cx);
        EBB_AWAIT(c, st, ebb_sleep(cx, &c->nap, 10 * EBB_MS));
        (void)ebb_unmask(cx);
    }
    return ebb_cancelled(cx) ? EBB_CANCELLED : EBB_OK;
    EBB_END(c);
}

/* ---- the parent ----------------------------------------------------------------------------------------- */

static void parent_closed(void *arg, const ebb_region_report *report) {
    voyage *v = arg;
    v->closed = true;
    v->waited = report->abandoned == 0;
    for (uint32_t i = 0; i < CHILDREN; i++) {
        v->child[i].future = NULL;
        if (v->waited && v->child[i].running != 0) ebb_lab_fail(v->lab, "the parent closed before its child");
    }
}

static void saw(voyage *v, const child *c, ebb_status st) {
    if (v->disturbed) return;
    if (st == EBB_CANCELLED || st == EBB_ERR_CLOSED)
        ebb_lab_fail(v->lab, "a far region was waited for too long");
    else if (st != (c->temper == FAILS ? EBB_FAILED : EBB_OK))
        ebb_lab_fail(v->lab, "it ended in another way");
}

static ebb_status watch(ebb_cx *cx, void *state) {
    voyage *v = state;
    if (!ebb_stopping(cx)) return EBB_PENDING;
    if (v->must_close && !v->closed) ebb_lab_fail(v->lab, "the parent waited for ever");
    return EBB_OK;
}

static ebb_status captain(ebb_cx *cx, void *state) {
    voyage *v = state;
    ebb_status st;
    EBB_BEGIN(v);
    for (v->i = 0; v->i < CHILDREN; v->i++) {
        child *c = &v->child[v->i];
        c->future = ebb_future_keep(ebb_peer_run(cx, v->peers[1 + v->i % 2].peer, child_body, c));
    }
    for (v->i = 0; v->i < CHILDREN; v->i++) {
        EBB_AWAIT(v, st, ebb_await(cx, v->child[v->i].future, NULL));
        saw(v, &v->child[v->i], st);
    }
    ebb_region_close(cx, v->region);
    EBB_END(v);
}

static ebb_status voyage_setup(ebb_lab *lab, uint32_t tempers) {
    voyage *v = ebb_lab_state(lab);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    v->lab = lab;
    v->disturbed = tempers > HEEDS;
    ebb_status st = lab_peers(lab, v->peers, RUNTIMES);
    if (st != EBB_OK) return st;
    for (uint32_t i = 0; i < CHILDREN; i++) {
        v->child[i] = (child){.v = v, .temper = (temper)ebb_lab_choose(lab, tempers)};
    }
    v->region = ebb_region_open(host, &(ebb_region_opts){.parent = ebb_lab_region(lab, 0),
                                                         .policy = EBB_FAIL_COLLECT,
                                                         .on_closed = parent_closed,
                                                         .arg = v});
    st = ebb_id_status(ebb_spawn(host, v->region, captain, v).id);
    if (st != EBB_OK) return st;
    return ebb_id_status(ebb_spawn(host, ebb_lab_region(lab, 0), watch, v).id);
}

static ebb_status flow_setup(ebb_lab *lab) {
    ((voyage *)ebb_lab_state(lab))->must_close = true;
    return voyage_setup(lab, HEEDS);
}

static ebb_status told_setup(ebb_lab *lab) {
    ((voyage *)ebb_lab_state(lab))->must_close = true;
    return voyage_setup(lab, SLOWLY);
}

static ebb_status storm_setup(ebb_lab *lab) {
    return voyage_setup(lab, TEMPERS);
}

static const ebb_cancel_kind kinds[] = {EBB_CANCEL_USER, EBB_CANCEL_TIMEOUT, EBB_CANCEL_SHUTDOWN};

/* Each of these is enough. */
static void told_step(ebb_lab *lab, uint32_t n) {
    voyage *v = ebb_lab_state(lab);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    uint32_t what = ebb_lab_choose(lab, 4);
    (void)n;
    if (v->closed) return;
    if (what == 3) ebb_region_close(host, v->region);
    else ebb_region_cancel(host, v->region, kinds[what], "a step");
}

static bool is_closed(ebb_runtime *rt) {
    ebb_region_state s = EBB_REGION_CLOSED;
    (void)ebb_region_state_of(ebb_runtime_host(rt), ebb_runtime_root(rt), &s);
    return s == EBB_REGION_CLOSED;
}

static void voyage_step(ebb_lab *lab, uint32_t n) {
    voyage *v = ebb_lab_state(lab);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    uint32_t what = ebb_lab_choose(lab, 6);
    ebb_runtime *other = ebb_lab_runtime(lab, 1 + n % 2);
    child *c = &v->child[n % CHILDREN];
    if (what == 5 ? is_closed(other) : v->closed) return;
    switch (what) {
    case 1: ebb_region_close(host, v->region); break;
    case 2: ebb_region_cancel(host, v->region, kinds[ebb_lab_choose(lab, 3)], "a step"); break;
    case 3: ebb_region_force(host, v->region); break;
    case 4:
        v->cancelled = true;
        if (c->future != NULL) (void)ebb_future_cancel(c->future, EBB_CANCEL_RACE_LOST);
        break;
    case 5:
        ebb_region_cancel(ebb_runtime_host(other), ebb_runtime_root(other), EBB_CANCEL_SHUTDOWN, "a step");
        break;
    default: break;
    }
}

static void voyage_check(ebb_lab *lab) {
    voyage *v = ebb_lab_state(lab);
    if (!v->closed) ebb_lab_fail(lab, "the parent has not closed");
    for (uint32_t i = 0; i < CHILDREN; i++) {
        if (v->child[i].running != 0) ebb_lab_fail(lab, "a child still runs");
    }
}

static void voyage_teardown(ebb_lab *lab) {
    voyage *v = ebb_lab_state(lab);
    lab_peers_release(v->peers, RUNTIMES);
}

static const ebb_lab_scenario flow = {.name = "far_flow",
                                      .about = "three far regions that end by themselves",
                                      .runtimes = RUNTIMES,
                                      .state_size = sizeof(voyage),
                                      .setup = flow_setup,
                                      .received = lab_take_in,
                                      .check = voyage_check,
                                      .teardown = voyage_teardown};

static const ebb_lab_scenario told = {.name = "far_told",
                                      .about = "three far regions that heed what is said to their parent",
                                      .runtimes = RUNTIMES,
                                      .steps = 2,
                                      .state_size = sizeof(voyage),
                                      .setup = told_setup,
                                      .step = told_step,
                                      .received = lab_take_in,
                                      .check = voyage_check,
                                      .teardown = voyage_teardown};

static const ebb_lab_scenario storm = {.name = "far_storm",
                                       .about = "three far regions, and all verbs from all sides",
                                       .runtimes = RUNTIMES,
                                       .steps = 4,
                                       .state_size = sizeof(voyage),
                                       .setup = storm_setup,
                                       .step = voyage_step,
                                       .received = lab_take_in,
                                       .check = voyage_check,
                                       .teardown = voyage_teardown};

static void far_regions_end_and_are_waited_for_whatever_the_schedule(void **state) {
    (void)state;
    lab_explore(&flow, 4000, 12, 4000, NULL);
}

static void what_is_said_to_the_parent_reaches_the_children(void **state) {
    (void)state;
    lab_explore(&told, 4000, 10, 4000, NULL);
}

static void parents_close_after_their_children_and_are_told_before_them(void **state) {
    (void)state;
    lab_explore(&storm, 12000, 9, 12000, NULL);
}

static void each_runtime_replays_alone(void **state) {
    (void)state;
    lab_replays(&storm, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(far_regions_end_and_are_waited_for_whatever_the_schedule),
        cmocka_unit_test(what_is_said_to_the_parent_reaches_the_children),
        cmocka_unit_test(parents_close_after_their_children_and_are_told_before_them),
        cmocka_unit_test(each_runtime_replays_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
