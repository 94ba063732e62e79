/* Every combinator x how and when each of its inputs, and what its callbacks return, end x when the result is
 * cancelled x whether they live in the same loop, or another; each compared with the model, with the heap verified and
 * nothing left behind. Prints how many there were.
 *
 * With EBB_MATRIX_CASE=N only the N-th is run. */
#include "tests/future/stage/stage.h"
#include "tests/support/future_world.h"
#include "tests/support/share.h"

#include <stdlib.h>

/* From each case to the next that is run; a prime, so that it meets every choice of each loop. */
enum { CASE_STEP = SHARE(1, 7) };

typedef struct theatre {
    future_world *here, *there;
    uint64_t cases, only;
    uint64_t of[COMBINATORS], in[PLACES];
} theatre;

/* ---- running ------------------------------------------------------------------------------------------------ */

static void run_both(theatre *t, place where) {
    future_settle(t->here);
    for (int i = 0; where != HERE && i < 6; i++) { /* there, here, and the answer */
        future_settle(t->there);
        future_settle(t->here);
    }
}

static void time_passes(theatre *t) {
    ebb_runtime_advance(t->here->rt, ebb_now(t->here->host) + 10 * EBB_MS);
    ebb_runtime_advance(t->there->rt, ebb_now(t->there->host) + 10 * EBB_MS);
}

/* What has ended before anybody looked is heard of in order. What was made together comes together from the
 * other loop: all of it has ended when the first is heard of. */
static void model_hears_now(model *m, bool *told) {
    bool fresh[SLOTS], any = true;
    while (any) {
        any = false;
        for (int i = 0; i < SLOTS; i++) {
            fresh[i] = m->made[i] && !told[i] && plan_is_now(m->scene->plan[i]);
            if (fresh[i]) model_ends(m, i);
            any = any || fresh[i];
        }
        for (int i = 0; i < SLOTS; i++) {
            if (!fresh[i]) continue;
            told[i] = true;
            model_hears(m, i);
        }
    }
}

static int next_later(const stage *s) {
    for (int i = 0; i < INPUTS; i++) {
        int k = s->scene->backwards ? INPUTS - 1 - i : i;
        if (s->slot[k].made && !s->slot[k].settled && plan_is_later(s->scene->plan[k])) return k;
    }
    for (int i = INPUTS; i < SLOTS; i++) {
        if (s->slot[i].made && !s->slot[i].settled && plan_is_later(s->scene->plan[i])) return i;
    }
    return NOBODY;
}

static void later_ones_end(theatre *t, stage *s, model *m, bool *told) {
    for (int i; (i = next_later(s)) != NOBODY;) {
        stage_end_slot(s, i);
        run_both(t, s->scene->where);
        model_hears(m, i);
        model_hears_now(m, told);
    }
}

static void cancel(theatre *t, stage *s, model *m, bool *told) {
    (void)ebb_future_cancel(s->result, EBB_CANCEL_DISCONNECT);
    run_both(t, s->scene->where);
    model_cancel(m, EBB_CANCEL_DISCONNECT);
    model_hears_now(m, told);
}

static void play(theatre *t, stage *s, model *m, const scene *sc) {
    bool told[SLOTS] = {false};
    stage_inputs(s, sc, t->here->host, t->there->host);
    run_both(t, sc->where);
    stage_result(s);
    model_start(m, sc);
    for (int i = 0; i < sc->inputs; i++) {
        if (plan_is_now(sc->plan[i])) model_ends(m, i);
    }
    if (sc->cancel == BEFORE) {
        (void)ebb_future_cancel(s->result, EBB_CANCEL_DISCONNECT);
        model_cancel(m, EBB_CANCEL_DISCONNECT);
    }
    run_both(t, sc->where);
    model_begins(m);
    model_hears_now(m, told);
    if (sc->cancel == BETWEEN) cancel(t, s, m, told);
    if (sc->late) {
        time_passes(t);
        run_both(t, sc->where);
        model_time_is_over(m);
        model_hears_now(m, told);
    }
    later_ones_end(t, s, m, told);
    if (sc->cancel == AFTER) cancel(t, s, m, told);
    later_ones_end(t, s, m, told);
}

static void wrong(const theatre *t, const scene *sc, const char *what) {
    char text[300];
    scene_text(sc, text, sizeof text);
    fail_msg("case %llu: %s: %s", (unsigned long long)t->cases, text, what);
}

static void nothing_is_left(theatre *t, stage *s, future_world *fw) {
    char text[200] = "";
    assert_int_equal(ebb_gc_collect(fw->rt), EBB_OK);
    run_both(t, BY_REMOTE);
    assert_int_equal(ebb_gc_collect(fw->rt), EBB_OK);
    if (ebb_heap_verify(fw->rt, text, sizeof text) != EBB_OK) wrong(t, s->scene, text);
    if (fw->misuses != 0) wrong(t, s->scene, fw->what);
    if (future_stats(fw).live == 0) return;
    snprintf(text, sizeof text, "%zu objects are left", future_stats(fw).live);
    wrong(t, s->scene, text);
}

static void run_scene(theatre *t, const scene *sc) {
    t->cases++;
    if (t->only != 0 ? t->cases != t->only : t->cases % CASE_STEP != 0) return;
    t->of[sc->what]++;
    t->in[sc->where]++;
    char text[200];
    stage *s = calloc(1, sizeof *s);
    model m;
    play(t, s, &m, sc);
    const char *what = stage_differs(s, &m, text, sizeof text);
    if (what != NULL) wrong(t, sc, what);
    for (int i = 0; i < SLOTS; i++) {
        stage_close(s);
        run_both(t, sc->where);
    }
    stage_free(s);
    run_both(t, sc->where);
    nothing_is_left(t, s, t->here);
    if (sc->where != HERE) nothing_is_left(t, s, t->there);
    if (stage_leaks(s, text, sizeof text) != NULL) wrong(t, sc, text);
    free(s);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void in_every_moment_and_loop(theatre *t, scene sc) {
    for (place where = HERE; where < PLACES; where++) {
        for (moment when = NOT_AT_ALL; when < MOMENTS; when++) {
            sc.cancel = when;
            sc.where = where;
            run_scene(t, &sc);
        }
    }
}

static void with_every_plan_of_three(theatre *t, scene sc) {
    for (plan a = 0; a < NOTHING; a++) {
        for (plan b = 0; b < NOTHING; b++) {
            for (plan c = 0; c < NOTHING; c++) {
                sc.plan[0] = a;
                sc.plan[1] = b;
                sc.plan[2] = c;
                in_every_moment_and_loop(t, sc);
            }
        }
    }
}

static void several(theatre *t, combinator what) {
    scene sc = {.what = what, .inputs = INPUTS, .plan = {[INNER] = NOTHING, [RELEASE] = NOTHING}};
    for (int backwards = 0; backwards < 2; backwards++) {
        sc.backwards = backwards;
        with_every_plan_of_three(t, sc);
    }
}

static void traverses(theatre *t) {
    scene sc = {.what = TRAVERSE, .plan = {[INNER] = NOTHING, [RELEASE] = NOTHING}};
    for (sc.at_once = 1; sc.at_once <= INPUTS; sc.at_once++) {
        for (int backwards = 0; backwards < 2; backwards++) {
            sc.backwards = backwards;
            with_every_plan_of_three(t, sc);
        }
    }
}

/* One input, what the callback returns, what the release returns; those that are not asked for are NOTHING. */
static void singles(theatre *t, combinator what, int inputs, plan inners, plan releases) {
    scene sc = {.what = what, .inputs = inputs, .late = what == DELAY || what == SCHEDULE};
    for (plan a = 0; a < (inputs > 0 ? NOTHING : 1); a++) {
        for (plan b = inners == 0 ? NOTHING : 0; b < (inners == 0 ? PLANS : inners); b++) {
            for (plan c = releases == 0 ? NOTHING : 0; c < PLANS; c++) {
                sc.plan[0] = a;
                sc.plan[1] = sc.plan[2] = NOTHING;
                sc.plan[INNER] = b;
                sc.plan[RELEASE] = c;
                in_every_moment_and_loop(t, sc);
            }
        }
    }
}

static void withins(theatre *t) {
    scene sc = {.what = WITHIN, .inputs = 1, .plan = {[INNER] = NOTHING, [RELEASE] = NOTHING}};
    for (plan a = 0; a < NOTHING; a++) {
        for (int late = 0; late < 2; late++) {
            sc.plan[0] = a;
            sc.late = late;
            in_every_moment_and_loop(t, sc);
        }
    }
}

static void each_combinator_does_as_its_table_says(void **state) {
    theatre *t = *state;
    singles(t, THEN, 1, PLANS, 0);
    singles(t, MAP, 1, NOTHING, 0);
    singles(t, CATCH, 1, PLANS, 0);
    singles(t, FINALLY, 1, 0, PLANS);
    singles(t, BRACKET, 1, PLANS, PLANS);
    singles(t, NESTED, 1, 0, 0);
    singles(t, DELAY, 0, PLANS, 0);
    singles(t, SCHEDULE, 0, PLANS, 0);
    withins(t);
    for (combinator what = ALL; what <= SELECT; what++) several(t, what);
    traverses(t);
    with_every_plan_of_three(t, (scene){.what = RETRY, .plan = {[INNER] = NOTHING, [RELEASE] = NOTHING}});
    uint64_t run = 0;
    for (int i = 0; i < COMBINATORS; i++) {
        print_message("%-12s %6llu\n", combinator_names[i], (unsigned long long)t->of[i]);
        run += t->of[i];
    }
    print_message("%llu cases: %llu here, %llu by remote, %llu by import\n", (unsigned long long)run,
                  (unsigned long long)t->in[HERE], (unsigned long long)t->in[BY_REMOTE],
                  (unsigned long long)t->in[BY_IMPORT]);
}

static int up(void **state) {
    theatre *t = calloc(1, sizeof *t);
    const char *only = getenv("EBB_MATRIX_CASE");
    t->here = future_world_new(false, NULL);
    t->there = future_world_new(false, NULL);
    t->only = only != NULL ? strtoull(only, NULL, 10) : 0;
    *state = t;
    return 0;
}

static int down(void **state) {
    theatre *t = *state;
    future_world_end(t->here);
    future_world_end(t->there);
    free(t);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_combinator_does_as_its_table_says, up, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
