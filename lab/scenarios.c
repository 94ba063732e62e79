/* lab/scenarios.c - the scenarios of the lab that use one runtime.
 *
 * Besides the oracles, each checks a result of its own that must hold for every schedule and every cancel. The
 * time may pass any budget, so no scenario relies on a cleanup being in time. */
#include "lab/lab.h"

static const ebb_cancel_kind some_kinds[] = {EBB_CANCEL_USER, EBB_CANCEL_TIMEOUT, EBB_CANCEL_SHUTDOWN};

static ebb_cancel_kind choose_kind(ebb_lab *lab) {
    return some_kinds[ebb_lab_choose(lab, 3)];
}

static ebb_status ok_if_id(uint64_t id) {
    return ebb_id_status(id);
}

/* ---- race: the first to send wins, the others are cancelled and drained -------------------------------- */

enum { RACERS = 4 };

typedef struct racer {
    EBB_TASK_STATE;
    struct race *race;
    ebb_wait wait;
    uint32_t number, naps;
} racer;

typedef struct race {
    EBB_TASK_STATE;
    ebb_lab *lab;
    ebb_chan *line;
    ebb_wait wait;
    ebb_region heat;
    ebb_task judge;
    uint32_t winner, i;
    uint32_t entered, drained;
    racer racer[RACERS];
} race;

static ebb_status racer_drained(ebb_cx *cx, void *state) {
    (void)cx;
    ((racer *)state)->race->drained++;
    return EBB_OK;
}

static ebb_status racer_poll(ebb_cx *cx, void *state) {
    racer *r = state;
    ebb_status st;
    EBB_BEGIN(r);
    if (ebb_defer(cx, racer_drained, r) == EBB_OK) r->race->entered++;
    for (; r->naps > 0; r->naps--) {
        if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
        EBB_YIELD(cx, r);
    }
    EBB_AWAIT(r, st, ebb_chan_send(cx, r->race->line, &r->wait, &r->number));
    if (st != EBB_OK) return st;
    EBB_END(r);
}

static ebb_status judge_poll(ebb_cx *cx, void *state) {
    race *r = state;
    ebb_status st;
    EBB_BEGIN(r);
    r->heat = ebb_region_open(cx, NULL);
    for (r->i = 0; r->i < RACERS; r->i++) {
        r->racer[r->i] = (racer){.race = r, .number = r->i, .naps = ebb_lab_choose(r->lab, 3)};
        (void)ebb_spawn(cx, r->heat, racer_poll, &r->racer[r->i]);
    }
    EBB_AWAIT(r, st, ebb_chan_recv(cx, r->line, &r->wait, &r->winner));
    if (st != EBB_OK) return st;
    ebb_region_cancel(cx, r->heat, EBB_CANCEL_RACE_LOST, "somebody was faster");
    EBB_AWAIT(r, st, ebb_region_join(cx, r->heat));
    if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
    if (r->drained != r->entered) ebb_lab_fail(r->lab, "the race was joined before its losers had ended");
    EBB_END(r);
}

static ebb_status race_setup(ebb_lab *lab) {
    race *r = ebb_lab_state(lab);
    ebb_runtime *rt = ebb_lab_runtime(lab, 0);
    r->lab = lab;
    ebb_status st = ebb_chan_new(rt, 1, sizeof(uint32_t), &r->line);
    if (st != EBB_OK) return st;
    r->judge = ebb_spawn(ebb_runtime_host(rt), ebb_lab_region(lab, 0), judge_poll, r);
    return ok_if_id(r->judge.id);
}

static void race_step(ebb_lab *lab, uint32_t n) {
    race *r = ebb_lab_state(lab);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    (void)n;
    switch (ebb_lab_choose(lab, 4)) {
    case 1: ebb_task_cancel(host, r->judge, choose_kind(lab), "called off"); break;
    case 2: (void)ebb_task_wake(host, r->judge); break;
    case 3: ebb_region_cancel(host, ebb_lab_region(lab, 0), choose_kind(lab), "called off"); break;
    default: break;
    }
}

static void race_check(ebb_lab *lab) {
    race *r = ebb_lab_state(lab);
    if (r->entered != r->drained) ebb_lab_fail(lab, "a racer was not finalized exactly once");
}

static void race_teardown(ebb_lab *lab) {
    ebb_chan_free(((race *)ebb_lab_state(lab))->line);
}

/* ---- pipeline: numbers pass through bounded channels, in order, none twice ----------------------------- */

enum { STAGES = 4, ITEMS = 10 };

typedef struct stage {
    EBB_TASK_STATE;
    struct pipeline *p;
    ebb_chan *in, *out;
    ebb_wait wait;
    ebb_obligation place;
    uint32_t item;
} stage;

typedef struct pipeline {
    ebb_lab *lab;
    ebb_chan *chan[STAGES - 1];
    stage stage[STAGES];
    ebb_task task[STAGES];
    uint32_t got;
    bool disturbed, sunk;
} pipeline;

static ebb_status source_poll(ebb_cx *cx, void *state) {
    stage *s = state;
    ebb_status st;
    EBB_BEGIN(s);
    for (s->item = 1; s->item <= ITEMS; s->item++) {
        EBB_AWAIT(s, st, ebb_chan_send(cx, s->out, &s->wait, &s->item));
        if (st != EBB_OK) return st;
    }
    ebb_chan_close(cx, s->out);
    EBB_END(s);
}

/* Sends in two phases with a pause between them, where a cancel could leak the place. */
static ebb_status stage_poll(ebb_cx *cx, void *state) {
    stage *s = state;
    ebb_status st;
    EBB_BEGIN(s);
    for (;;) {
        EBB_AWAIT(s, st, ebb_chan_recv(cx, s->in, &s->wait, &s->item));
        if (st == EBB_ERR_CLOSED) break;
        if (st != EBB_OK) return st;
        EBB_AWAIT(s, st, ebb_chan_reserve(cx, s->out, &s->wait, &s->place));
        if (st != EBB_OK) return st;
        EBB_YIELD(cx, s);
        if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
        if (ebb_chan_send_reserved(cx, s->out, s->place, &s->item) != EBB_OK) return EBB_FAILED;
    }
    ebb_chan_close(cx, s->out);
    EBB_END(s);
}

static ebb_status sink_poll(ebb_cx *cx, void *state) {
    stage *s = state;
    ebb_status st;
    EBB_BEGIN(s);
    for (;;) {
        EBB_AWAIT(s, st, ebb_chan_recv(cx, s->in, &s->wait, &s->item));
        if (st == EBB_ERR_CLOSED) break;
        if (st != EBB_OK) return st;
        if (s->item != ++s->p->got) ebb_lab_fail(s->p->lab, "an item was lost, doubled or overtaken");
    }
    s->p->sunk = true;
    EBB_END(s);
}

static ebb_status pipeline_setup(ebb_lab *lab) {
    pipeline *p = ebb_lab_state(lab);
    ebb_runtime *rt = ebb_lab_runtime(lab, 0);
    p->lab = lab;
    for (uint32_t i = 0; i + 1 < STAGES; i++) {
        ebb_status st = ebb_chan_new(rt, 1 + i % 2, sizeof(uint32_t), &p->chan[i]);
        if (st != EBB_OK) return st;
    }
    for (uint32_t i = 0; i < STAGES; i++) {
        bool first = i == 0, last = i == STAGES - 1;
        p->stage[i] = (stage){.p = p, .in = first ? NULL : p->chan[i - 1], .out = last ? NULL : p->chan[i]};
        p->task[i] = ebb_spawn(ebb_runtime_host(rt), ebb_lab_region(lab, 0),
                               first  ? source_poll
                               : last ? sink_poll
                                      : stage_poll,
                               &p->stage[i]);
        if (ok_if_id(p->task[i].id) != EBB_OK) return ok_if_id(p->task[i].id);
    }
    return EBB_OK;
}

static void pipeline_step(ebb_lab *lab, uint32_t n) {
    pipeline *p = ebb_lab_state(lab);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    (void)n;
    uint32_t what = ebb_lab_choose(lab, 4);
    p->disturbed |= what == 1 || what == 2;
    switch (what) {
    case 1: {
        ebb_task task = p->task[ebb_lab_choose(lab, STAGES)];
        ebb_task_cancel(host, task, choose_kind(lab), "a stage");
        break;
    }
    case 2: ebb_region_cancel(host, ebb_lab_region(lab, 0), choose_kind(lab), "all stages"); break;
    case 3: (void)ebb_task_wake(host, p->task[ebb_lab_choose(lab, STAGES)]); break;
    default: break;
    }
}

static void pipeline_check(ebb_lab *lab) {
    pipeline *p = ebb_lab_state(lab);
    if (p->sunk && !p->disturbed && p->got != ITEMS) ebb_lab_fail(lab, "the pipeline ended with items in it");
}

static void pipeline_teardown(ebb_lab *lab) {
    pipeline *p = ebb_lab_state(lab);
    for (uint32_t i = 0; i + 1 < STAGES; i++) ebb_chan_free(p->chan[i]);
}

/* ---- nested: regions in regions, each task cleans up in a scope of its own ----------------------------- */

enum { DEPTH = 6 };

typedef struct level {
    EBB_TASK_STATE;
    struct nest *nest;
    uint32_t depth;
    ebb_region region, scope;
    uint32_t opened; /* finalizers added */
    uint32_t done;   /* finalizers run; they must run last first */
} level;

typedef struct nest {
    ebb_lab *lab;
    uint32_t depth;
    level level[DEPTH];
} nest;

static ebb_status level_finalize(ebb_cx *cx, void *state) {
    level *l = state;
    (void)cx;
    l->done++;
    return EBB_OK;
}

static ebb_status cleaner_poll(ebb_cx *cx, void *state) {
    level *l = state;
    if (ebb_defer(cx, level_finalize, l) == EBB_OK) l->opened++;
    return EBB_OK;
}

static ebb_status level_poll(ebb_cx *cx, void *state) {
    level *l = state;
    ebb_status st;
    EBB_BEGIN(l);
    for (int i = 0; i < 2; i++) {
        if (ebb_defer(cx, level_finalize, l) == EBB_OK) l->opened++;
    }
    l->region = ebb_region_open(cx, NULL);
    if (ebb_region_defer(cx, l->region, level_finalize, l) == EBB_OK) l->opened++;
    if (l->depth + 1 < l->nest->depth)
        (void)ebb_spawn(cx, l->region, level_poll, &l->nest->level[l->depth + 1]);
    else (void)ebb_spawn(cx, l->region, cleaner_poll, l);
    EBB_AWAIT(l, st, ebb_region_join(cx, l->region));
    if (ebb_checkpoint(cx) == EBB_OK) return st == EBB_CANCELLED ? EBB_OK : st;
    (void)ebb_mask(cx);
    l->scope = ebb_region_open(cx, &(ebb_region_opts){.cleanup = true});
    (void)ebb_spawn(cx, l->scope, cleaner_poll, l);
    EBB_AWAIT(l, st, ebb_region_join(cx, l->scope));
    (void)ebb_unmask(cx);
    return EBB_CANCELLED;
    EBB_END(l);
}

static ebb_status nested_setup(ebb_lab *lab) {
    nest *n = ebb_lab_state(lab);
    n->lab = lab;
    n->depth = 2 + ebb_lab_choose(lab, DEPTH - 1);
    for (uint32_t i = 0; i < DEPTH; i++) n->level[i] = (level){.nest = n, .depth = i};
    return ok_if_id(
        ebb_spawn(ebb_runtime_host(ebb_lab_runtime(lab, 0)), ebb_lab_region(lab, 0), level_poll, &n->level[0])
            .id);
}

static void nested_step(ebb_lab *lab, uint32_t i) {
    nest *n = ebb_lab_state(lab);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    level *l = &n->level[ebb_lab_choose(lab, n->depth)];
    (void)i;
    switch (ebb_lab_choose(lab, 4)) {
    case 1: ebb_region_cancel(host, l->region, choose_kind(lab), "from outside"); break;
    case 2: ebb_region_close(host, l->region); break;
    case 3: ebb_region_force(host, l->region); break;
    default: break;
    }
}

static void nested_check(ebb_lab *lab) {
    nest *n = ebb_lab_state(lab);
    for (uint32_t i = 0; i < n->depth; i++) {
        if (n->level[i].opened != n->level[i].done) ebb_lab_fail(lab, "a finalizer did not run exactly once");
    }
}

/* ---- masked: a cancel waits for the end of a masked section -------------------------------------------- */

enum { MASKERS = 3, SECTIONS = 3 };

typedef struct masker {
    EBB_TASK_STATE;
    ebb_lab *lab;
    ebb_sleeper nap;
    uint32_t i;
} masker;

typedef struct masks {
    masker masker[MASKERS];
    ebb_task task[MASKERS];
} masks;

static void expect_masked(ebb_cx *cx, ebb_lab *lab) {
    ebb_task_info info;
    if (ebb_task_info_of(cx, ebb_cx_task(cx), &info) != EBB_OK || info.forced) return;
    if (ebb_checkpoint(cx) != EBB_OK)
        ebb_lab_fail(lab, "a masked task learned of its cancel before it was forced");
}

static ebb_status masker_poll(ebb_cx *cx, void *state) {
    masker *m = state;
    ebb_status st;
    EBB_BEGIN(m);
    for (m->i = 0; m->i < SECTIONS; m->i++) {
        (void)ebb_mask(cx);
        (void)ebb_mask(cx);
        expect_masked(cx, m->lab);
        EBB_AWAIT(m, st, ebb_sleep(cx, &m->nap, (1 + m->i) * EBB_MS));
        (void)ebb_unmask(cx);
        expect_masked(cx, m->lab);
        EBB_YIELD(cx, m);
        (void)ebb_unmask(cx);
        if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
    }
    EBB_END(m);
}

static ebb_status masked_setup(ebb_lab *lab) {
    masks *m = ebb_lab_state(lab);
    for (uint32_t i = 0; i < MASKERS; i++) {
        m->masker[i].lab = lab;
        m->task[i] = ebb_spawn(ebb_runtime_host(ebb_lab_runtime(lab, 0)), ebb_lab_region(lab, 0), masker_poll,
                               &m->masker[i]);
        if (ok_if_id(m->task[i].id) != EBB_OK) return ok_if_id(m->task[i].id);
    }
    return EBB_OK;
}

static void masked_step(ebb_lab *lab, uint32_t n) {
    masks *m = ebb_lab_state(lab);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    ebb_task task = m->task[ebb_lab_choose(lab, MASKERS)];
    (void)n;
    switch (ebb_lab_choose(lab, 4)) {
    case 1: ebb_task_cancel(host, task, choose_kind(lab), "one"); break;
    case 2: ebb_region_cancel(host, ebb_lab_region(lab, 0), choose_kind(lab), "all"); break;
    case 3: ebb_task_force(host, task); break;
    default: break;
    }
}

/* ---- obligations: each is committed, or aborted with its hook, exactly once ---------------------------- */

enum { DEBTORS = 3, DEBTS = 3 };

typedef struct debt {
    ebb_obligation id;
    uint32_t committed, aborted;
    bool reserved;
} debt;

typedef struct debtor {
    EBB_TASK_STATE;
    ebb_lab *lab;
    debt debt[DEBTS];
    uint32_t i;
} debtor;

typedef struct debts {
    debtor debtor[DEBTORS];
    debt own; /* of the region */
} debts;

static void debt_aborted(void *arg) {
    ((debt *)arg)->aborted++;
}

static void settle(ebb_cx *cx, debt *d, uint32_t how) {
    if (!d->reserved) return;
    if (how == 1 && ebb_obligation_commit(cx, d->id) == EBB_OK) d->committed++;
    if (how == 2) (void)ebb_obligation_abort(cx, d->id);
}

static ebb_status debtor_poll(ebb_cx *cx, void *state) {
    debtor *b = state;
    EBB_BEGIN(b);
    for (b->i = 0; b->i < DEBTS; b->i++) {
        debt *d = &b->debt[b->i];
        d->id =
            ebb_obligation_reserve(cx, (ebb_obligation_kind)(EBB_OBLIGATION_PERMIT + b->i), debt_aborted, d);
        d->reserved = ebb_id_status(d->id.id) == EBB_OK;
        EBB_YIELD(cx, b);
        if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
        settle(cx, &b->debt[b->i], ebb_lab_choose(b->lab, 3));
    }
    for (b->i = 0; b->i < DEBTS; b->i++) settle(cx, &b->debt[b->i], ebb_lab_choose(b->lab, 3));
    EBB_END(b);
}

static ebb_status obligations_setup(ebb_lab *lab) {
    debts *d = ebb_lab_state(lab);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    for (uint32_t i = 0; i < DEBTORS; i++) {
        d->debtor[i].lab = lab;
        ebb_task t = ebb_spawn(host, ebb_lab_region(lab, 0), debtor_poll, &d->debtor[i]);
        if (ok_if_id(t.id) != EBB_OK) return ok_if_id(t.id);
    }
    d->own.id = ebb_region_reserve(host, ebb_lab_region(lab, 0), EBB_OBLIGATION_LEASE, debt_aborted, &d->own);
    d->own.reserved = ebb_id_status(d->own.id.id) == EBB_OK;
    return ok_if_id(d->own.id.id);
}

static void obligations_step(ebb_lab *lab, uint32_t n) {
    debts *d = ebb_lab_state(lab);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    (void)n;
    switch (ebb_lab_choose(lab, 4)) {
    case 1: settle(host, &d->own, 1 + ebb_lab_choose(lab, 2)); break;
    case 2: ebb_region_cancel(host, ebb_lab_region(lab, 0), choose_kind(lab), "all"); break;
    case 3: settle(host, &d->debtor[ebb_lab_choose(lab, DEBTORS)].debt[0], 2); break;
    default: break;
    }
}

static void expect_settled(ebb_lab *lab, const debt *d) {
    if (d->reserved && d->committed + d->aborted != 1) {
        ebb_lab_fail(lab, "an obligation was not committed or aborted exactly once");
    }
}

static void obligations_check(ebb_lab *lab) {
    debts *d = ebb_lab_state(lab);
    expect_settled(lab, &d->own);
    for (uint32_t i = 0; i < DEBTORS; i++) {
        for (uint32_t k = 0; k < DEBTS; k++) expect_settled(lab, &d->debtor[i].debt[k]);
    }
}

/* ---- timers: no task wakes early, and no timer outlives its task --------------------------------------- */

enum { SLEEPERS = 4, NAPS = 3 };

typedef struct napper {
    EBB_TASK_STATE;
    ebb_lab *lab;
    ebb_sleeper nap;
    uint64_t due;
    uint32_t i;
} napper;

typedef struct naps {
    napper napper[SLEEPERS];
    ebb_task task[SLEEPERS];
} naps;

static ebb_status napper_poll(ebb_cx *cx, void *state) {
    napper *s = state;
    ebb_status st;
    EBB_BEGIN(s);
    for (s->i = 0; s->i < NAPS; s->i++) {
        s->due = ebb_now(cx) + (1 + ebb_lab_choose(s->lab, 4) * 40) * EBB_MS;
        EBB_AWAIT(s, st, ebb_sleep(cx, &s->nap, s->due - ebb_now(cx)));
        if (st != EBB_OK) return st;
        if (ebb_now(cx) < s->due) ebb_lab_fail(s->lab, "a sleep ended before its time");
    }
    EBB_END(s);
}

/* Some have a deadline, some a limit of polls. */
static ebb_status timers_setup(ebb_lab *lab) {
    naps *s = ebb_lab_state(lab);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    ebb_region late = ebb_region_open(host, &(ebb_region_opts){.parent = ebb_lab_region(lab, 0),
                                                               .policy = EBB_FAIL_COLLECT,
                                                               .deadline = ebb_now(host) + 100 * EBB_MS});
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        ebb_task_opts o = {.deadline = i == 1 ? ebb_now(host) + 20 * EBB_MS : 0, .polls = i == 2 ? 2 : 0};
        s->napper[i].lab = lab;
        s->task[i] = ebb_spawn(host, i == 3 ? late : ebb_lab_region(lab, 0), napper_poll, &s->napper[i], &o);
        if (ok_if_id(s->task[i].id) != EBB_OK) return ok_if_id(s->task[i].id);
    }
    return EBB_OK;
}

static void timers_step(ebb_lab *lab, uint32_t n) {
    naps *s = ebb_lab_state(lab);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    ebb_task task = s->task[ebb_lab_choose(lab, SLEEPERS)];
    (void)n;
    switch (ebb_lab_choose(lab, 4)) {
    case 1: (void)ebb_task_wake(host, task); break;
    case 2: ebb_task_cancel(host, task, choose_kind(lab), "one"); break;
    case 3: {
        ebb_timer t = ebb_timer_arm(host, task, ebb_now(host) + 5 * EBB_MS);
        if (ebb_lab_choose(lab, 2) == 1) (void)ebb_timer_disarm(host, t);
        break;
    }
    default: break;
    }
}

static void timers_check(ebb_lab *lab) {
    naps *s = ebb_lab_state(lab);
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        if (s->napper[i].nap.wait.cx != NULL) ebb_lab_fail(lab, "a sleeper has ended and still waits");
    }
}

/* ---- all of them --------------------------------------------------------------------------------------- */

static const ebb_lab_scenario race_scenario = {
    .name = "race",
    .about = "racers over a channel; the losers are cancelled and drained",
    .steps = 3,
    .state_size = sizeof(race),
    .setup = race_setup,
    .step = race_step,
    .check = race_check,
    .teardown = race_teardown};
static const ebb_lab_scenario pipeline_scenario = {
    .name = "pipeline",
    .about = "stages over bounded channels, cancelled in the middle",
    .steps = 2,
    .state_size = sizeof(pipeline),
    .setup = pipeline_setup,
    .step = pipeline_step,
    .check = pipeline_check,
    .teardown = pipeline_teardown};
static const ebb_lab_scenario nested_scenario = {.name = "nested",
                                                 .about = "deep regions, cleanup scopes and finalizers",
                                                 .steps = 3,
                                                 .state_size = sizeof(nest),
                                                 .setup = nested_setup,
                                                 .step = nested_step,
                                                 .check = nested_check};
static const ebb_lab_scenario masked_scenario = {.name = "masked",
                                                 .about = "cancels and forces that meet masked sections",
                                                 .steps = 4,
                                                 .state_size = sizeof(masks),
                                                 .setup = masked_setup,
                                                 .step = masked_step};
static const ebb_lab_scenario obligations_scenario = {
    .name = "obligations",
    .about = "what is reserved is committed, aborted or leaked, once",
    .steps = 3,
    .state_size = sizeof(debts),
    .setup = obligations_setup,
    .step = obligations_step,
    .check = obligations_check};
static const ebb_lab_scenario timers_scenario = {.name = "timers",
                                                 .about = "sleeps, deadlines and poll budgets",
                                                 .steps = 4,
                                                 .state_size = sizeof(naps),
                                                 .setup = timers_setup,
                                                 .step = timers_step,
                                                 .check = timers_check};

const ebb_lab_scenario *ebb_lab_scenario_at(size_t i) {
    static const ebb_lab_scenario *const all[] = {
        &ebb__scenario_storm, &race_scenario,        &pipeline_scenario, &nested_scenario,
        &masked_scenario,     &obligations_scenario, &timers_scenario,   &ebb__scenario_pingpong2};
    return i < sizeof all / sizeof all[0] ? all[i] : NULL;
}
