/* Scenes of the model in the lab: its chooser picks the scene, the order in which slots end and the result is
 * cancelled, when which runtime runs, and when what crosses between them arrives. The model is told what
 * happens as it is heard, so it knows the end whatever the order was.
 *
 * usage: future.lab [SCHEDULES [SEED]] */
#include "tests/future/stage/stage.h"
#include "tests/support/future_world.h"
#include "tests/support/share.h"

#include <stdlib.h>

enum { STEPS = 10 };

typedef struct play {
    ebb_lab *lab;
    ebb_task builder;
    scene scene;
    stage stage;
    model model;
    bool built, begun, cancelled; /* `cancelled`: by a step, and that was what ended it */
    bool compared;
    struct inbound {
        struct play *play;
        uint32_t to;
    } inbound[2];
} play;

/* ---- what crosses ------------------------------------------------------------------------------------------------ */

/* A runtime is told by a message that there is something to take in; the lab decides when it arrives. */
static void call(void *ctx) {
    const struct inbound *in = ctx;
    play *p = in->play;
    ebb_msg msg = {.verb = EBB_MSG_WORD, .target = ebb_runtime_root(ebb_lab_runtime(p->lab, in->to)).id};
    ebb_lab_send(p->lab, ebb_runtime_host(ebb_lab_runtime(p->lab, 1 - in->to)), &msg);
}

static void received(ebb_lab *lab, const ebb_msg *msg) {
    for (uint32_t i = 0; i < 2; i++) {
        if (msg->target == ebb_runtime_root(ebb_lab_runtime(lab, i)).id)
            ebb_inbox_receive(ebb_lab_runtime(lab, i));
    }
}

/* ---- the model follows --------------------------------------------------------------------------------------------- */

/* Its region is asked to end: that explains any cancel. */
static bool is_ending(const play *p) {
    ebb_runtime *rt = ebb_lab_runtime(p->lab, 0);
    ebb_region_state root, region;
    if (ebb_region_state_of(ebb_runtime_host(rt), ebb_runtime_root(rt), &root) != EBB_OK) return true;
    if (ebb_region_state_of(ebb_runtime_host(rt), ebb_lab_region(p->lab, 0), &region) != EBB_OK) return true;
    return root != EBB_REGION_OPEN || region != EBB_REGION_OPEN;
}

static void catch_up(play *p) {
    if (p->begun || p->stage.calls == 0) return;
    p->begun = true;
    model_begins(&p->model);
    if (p->scene.what == DELAY || p->scene.what == SCHEDULE) model_time_is_over(&p->model);
}

static void wrong(play *p, const char *what) {
    char text[400];
    int n;
    scene_text(&p->scene, text, sizeof text);
    n = (int)strlen(text);
    (void)snprintf(text + n, sizeof text - (size_t)n, ": %s", what);
    ebb_lab_fail(p->lab, text);
}

static bool has_completed(const slot *l, place where) {
    if (!l->made || !l->settled) return false;
    return where == HERE || (l->near != NULL && ebb_remote_state(l->near) == EBB_FUTURE_COMPLETED);
}

/* What has completed when the cancel is carried out can't be cancelled any more, and was acquired. */
static void follow_cancel(play *p) {
    for (int i = 0; i < SLOTS; i++) {
        plan how = p->scene.plan[i];
        if ((how == COMPLETES_NOW || how == COMPLETES_LATER) &&
            has_completed(&p->stage.slot[i], p->scene.where)) {
            model_ends(&p->model, i);
        }
    }
    model_cancel(&p->model, EBB_CANCEL_DISCONNECT);
}

static void result_ended(play *p) {
    const heard *h = &p->stage.result_heard;
    if (p->cancelled) follow_cancel(p);
    else if (p->scene.what == WITHIN && h->status == EBB_TIMEOUT) model_time_is_over(&p->model);
    if (is_ending(p) && !p->cancelled) return;
    p->compared = true;
    const ending *e = &p->model.result;
    if (h->status != e->status) wrong(p, "the result has another status");
    else if (h->kind != e->kind) wrong(p, "the result was cancelled for another reason");
}

static void ended(stage *s, int number) {
    play *p = s->driver;
    catch_up(p);
    if (number == NOBODY) {
        result_ended(p);
        return;
    }
    bool by_plan = s->slot[number].settled && s->slot[number].heard.kind <= EBB_CANCEL_USER;
    if (!by_plan || is_ending(p)) return;
    /* One that has ended hears of nothing more, also if nobody was told of that yet. */
    if (ebb_future_state_of(s->result) == EBB_FUTURE_PENDING) model_hears(&p->model, number);
    else model_ends(&p->model, number);
}

/* ---- the scenario ---------------------------------------------------------------------------------------------------- */

static plan choose_plan(ebb_lab *lab) {
    return (plan)ebb_lab_choose(lab, NOTHING);
}

static void choose_scene(ebb_lab *lab, scene *sc) {
    *sc = (scene){.what = (combinator)ebb_lab_choose(lab, COMBINATORS)};
    bool makes = sc->what == TRAVERSE || sc->what == RETRY || sc->what == DELAY || sc->what == SCHEDULE;
    sc->inputs = makes ? 0 : sc->what >= ALL ? INPUTS : 1;
    for (int i = 0; i < SLOTS; i++) sc->plan[i] = choose_plan(lab);
    if (ebb_lab_choose(lab, 4) == 0) sc->plan[RELEASE] = NOTHING;
    sc->at_once = 1 + (int)ebb_lab_choose(lab, INPUTS);
    sc->cancel = ebb_lab_choose(lab, 2) == 0 ? NOT_AT_ALL : BETWEEN;
    sc->where = (place)ebb_lab_choose(lab, PLACES);
}

static ebb_status build(ebb_cx *cx, void *state) {
    play *p = state;
    if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
    p->stage.ended = ended;
    p->stage.driver = p;
    model_start(&p->model, &p->scene);
    stage_inputs(&p->stage, &p->scene, cx, ebb_runtime_host(ebb_lab_runtime(p->lab, 1)));
    stage_result(&p->stage);
    p->built = true;
    return EBB_OK;
}

static void note_misuse(void *ctx, ebb_status st, const char *what, const char *site) {
    (void)site;
    if (st == EBB_ERR_CORRUPT) wrong(ctx, what);
}

static ebb_status setup(ebb_lab *lab) {
    play *p = ebb_lab_state(lab);
    p->lab = lab;
    choose_scene(lab, &p->scene);
    for (uint32_t i = 0; i < 2; i++) {
        ebb_runtime *rt = ebb_lab_runtime(lab, i);
        ebb_heap_opts o = future_heap_opts();
        o.misuse = note_misuse;
        o.ctx = p;
        p->inbound[i] = (struct inbound){p, i};
        ebb_status st = ebb_heap_setup(rt, &o);
        if (st == EBB_OK) st = ebb_inbox_on_wake(rt, call, &p->inbound[i]);
        if (st != EBB_OK) return st;
    }
    p->builder = ebb_spawn(ebb_runtime_host(ebb_lab_runtime(lab, 0)), ebb_lab_region(lab, 0), build, p);
    return ebb_id_status(p->builder.id);
}

static void end_a_slot(play *p) {
    int first = (int)ebb_lab_choose(p->lab, SLOTS);
    for (int k = 0; k < SLOTS; k++) {
        int i = (first + k) % SLOTS;
        const slot *l = &p->stage.slot[i];
        if (!l->made || l->settled || !plan_is_later(p->scene.plan[i])) continue;
        stage_end_slot(&p->stage, i);
        return;
    }
}

static void step(ebb_lab *lab, uint32_t n) {
    play *p = ebb_lab_state(lab);
    (void)n;
    if (!p->built) return;
    switch (ebb_lab_choose(lab, 6)) {
    case 0:
        if (p->scene.cancel != NOT_AT_ALL && ebb_future_cancel(p->stage.result, EBB_CANCEL_DISCONNECT))
            p->cancelled = true;
        break;
    case 1: (void)ebb_gc_collect(ebb_lab_runtime(lab, ebb_lab_choose(lab, 2))); break;
    default: end_a_slot(p); break;
    }
}

static uint64_t compared, abandoned;

/* Time may pass so fast that a callback runner has to be abandoned: then its callbacks do not run. */
static void check_once(play *p, const heard *h) {
    ebb_runtime_stats stats;
    ebb_runtime_stats_of(ebb_lab_runtime(p->lab, 0), &stats);
    if (stats.abandoned > 0 && h->ends + h->cleanups == 0) abandoned++;
    else if (h->ends != 1 || h->cleanups != 1) wrong(p, "an end or a cleanup was lost, or came twice");
}

static void check(ebb_lab *lab) {
    play *p = ebb_lab_state(lab);
    if (!p->built) return;
    check_once(p, &p->stage.result_heard);
    for (int i = 0; i < SLOTS; i++) {
        if (p->stage.slot[i].made) check_once(p, &p->stage.slot[i].heard);
    }
    if (!p->compared) return;
    if (p->stage.calls != p->model.calls) wrong(p, "callbacks were called more or less often");
    if (p->stage.releases != p->model.releases) wrong(p, "it was not released once");
}

static void teardown(ebb_lab *lab) {
    play *p = ebb_lab_state(lab);
    for (uint32_t i = 0; i < 2; i++) (void)ebb_inbox_on_wake(ebb_lab_runtime(lab, i), NULL, NULL);
    if (p->built) stage_free(&p->stage);
    compared += p->compared;
}

static const ebb_lab_scenario combinators = {
    .name = "combinators",
    .about = "a combinator, its inputs here or in another runtime, against a model",
    .runtimes = 2,
    .steps = STEPS,
    .state_size = sizeof(play),
    .setup = setup,
    .step = step,
    .received = received,
    .check = check,
    .teardown = teardown,
};

/* ---- running ----------------------------------------------------------------------------------------------------------- */

static uint64_t schedules = 10000 / SHARE(10, 5), seed = 1;

static void combinators_do_as_the_model_says_under_every_schedule(void **state) {
    (void)state;
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    assert_non_null(lab);
    ebb_lab_case c = {.scenario = &combinators, .seed = seed};
    ebb_lab_explore_result r;
    (void)ebb_lab_explore(lab, &c, &(ebb_lab_explore_opts){.schedules = schedules}, &r);
    if (r.failure.status != EBB_OK) {
        fail_msg("seed %llu: %s: %s", (unsigned long long)c.seed, r.failure.failure, r.failure.text);
    }
    print_message("%llu schedules, %llu of them ended by themselves, %llu futures were abandoned\n",
                  (unsigned long long)r.schedules, (unsigned long long)compared,
                  (unsigned long long)abandoned);
    assert_true(compared * 2 > schedules && abandoned * 100 < schedules);
    ebb_lab_case_free(lab, &c);
    ebb_lab_free(lab);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(combinators_do_as_the_model_says_under_every_schedule),
    };
    if (argc > 1) schedules = strtoull(argv[1], NULL, 10);
    if (argc > 2) seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
