/* lab/lab.c - one run in the lab.
 *
 * A run is a list of decisions. Before each, the lab lists the possible next steps: the scenario's next step, the
 * arrival of a message, a turn of a runtime that has work, an advance of the time; the chooser picks one. After
 * each, the oracles check the new events. The first possibility is always the most ordinary one, so a case with
 * few choices is easy to read: steps in their order, then messages, then work, and time only when nothing else is
 * left. */
#include "lab/lab.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "base/text.h"
#include "kernel/lane.h"
#include "kernel/record.h"
#include "kernel/runtime.h"
#include "sched/pump.h"

enum {
    TRACE_BYTES =
        1024 * 1024, /* a full block is read at once, so that one decision may make any number of events */
    MAX_STEPS = 50000,
    MAX_POLLS = 4,         /* in one turn */
    TURNS_A_MOMENT = 256,  /* then the time advances, otherwise a spinning task would stop the clock */
    PATIENCE = 400,        /* decisions after the last step, before the lab ends a round itself */
    PATIENCE_CLOSING = 200 /* decisions while closing, before it cancels */
};
#define HORIZON (UINT64_C(1) << 62) /* the lab does not wait for anything due later */

/* ---- life ------------------------------------------------------------------------------------------------ */

static void end_round(ebb_lab *lab) {
    ebb__lab_blocks_free(lab, &lab->blocks);
    lab->state = NULL;
}

ebb_lab *ebb_lab_new(ebb_allocator a) {
    ebb_lab *lab = ebb__alloc(&a, sizeof *lab);
    if (lab == NULL) return NULL;
    memset(lab, 0, sizeof *lab);
    lab->allocator = a;
    lab->pool = ebb__lab_pool_new(a);
    if (lab->pool != NULL) return lab;
    ebb__free(&a, lab, sizeof *lab);
    return NULL;
}

void ebb_lab_free(ebb_lab *lab) {
    if (lab == NULL) return;
    ebb_allocator a = lab->allocator;
    ebb__lab_pool_leave(lab->pool);
    for (uint32_t i = 0; i < EBB_LAB_RUNTIMES; i++) {
        ebb__free(&a, lab->runtime[i].bytes, lab->runtime[i].room);
    }
    ebb__free(&a, lab->chooser.taken, lab->chooser.room * sizeof *lab->chooser.taken);
    ebb__free(&a, lab->chooser.of, lab->chooser.room * sizeof *lab->chooser.of);
    ebb__free(&a, lab->bag, lab->bag_room * sizeof *lab->bag);
    ebb__free(&a, lab->script, lab->script_room);
    ebb__free(&a, lab, sizeof *lab);
}

/* ---- failing ------------------------------------------------------------------------------------------- */

static bool going(const ebb_lab *lab) {
    return lab->result.status == EBB_OK;
}

void ebb__lab_stop(ebb_lab *lab, ebb_status st, const char *failure, const char *text) {
    assert(st != EBB_OK);
    if (!going(lab)) return;
    lab->result.status = st;
    ebb__text name = ebb__text_in(lab->result.failure, sizeof lab->result.failure);
    ebb__text_str(&name, failure);
    ebb__text t = ebb__text_in(lab->result.text, sizeof lab->result.text);
    if (text != NULL) ebb__text_str(&t, text);
}

void ebb_lab_fail(ebb_lab *lab, const char *text) {
    ebb_lab_fail_as(lab, "check", text);
}

void ebb_lab_fail_as(ebb_lab *lab, const char *failure, const char *text) {
    ebb__lab_stop(lab, EBB_FAILED, failure, text);
}

static void violated(ebb_lab *lab, uint32_t i, const ebb_checker *c) {
    const ebb_violation *v = ebb_checker_violation(c);
    if (v == NULL) {
        ebb__lab_stop(lab, EBB_ERR_NOMEM, "", NULL);
    } else if (going(lab)) {
        ebb__lab_stop(lab, EBB_ERR_ORACLE, ebb_oracle_name(v->oracle), v->text);
        lab->result.runtime = i;
        lab->result.event = v->event;
    }
}

/* ---- oracles ------------------------------------------------------------------------------------------- */

typedef struct taker {
    ebb_lab *lab;
    uint32_t i;
} taker;

static void trace_piece(void *ctx, const void *bytes, size_t n) {
    taker *t = ctx;
    ebb__lab_runtime *r = &t->lab->runtime[t->i];
    if (t->lab->opts.trace != NULL) t->lab->opts.trace(t->lab->opts.ctx, t->i, bytes, n);
    if (!ebb__lab_grow(t->lab, (void **)(void *)&r->bytes, &r->room, r->n + n, 1)) return;
    assert(r->room - r->n >= n);
    memcpy(r->bytes + r->n, bytes, n);
    r->n += n;
}

static void journal_piece(void *ctx, const void *bytes, size_t n) {
    taker *t = ctx;
    t->lab->opts.journal(t->lab->opts.ctx, t->i, bytes, n);
}

/* Lets the reader continue with the next piece of the trace. */
static ebb_status continue_reading(ebb__lab_runtime *r) {
    if (!r->started) {
        r->started = true;
        return ebb_trace_reader_open(&r->reader, r->bytes, r->n);
    }
    r->reader.bytes = r->bytes;
    r->reader.n = r->n;
    r->reader.offset = 0;
    return EBB_OK;
}

/* The kernel refused a transition that no caller can request: a bug of the kernel. */
static void illegal(ebb_lab *lab, uint32_t i, const ebb_event *ev) {
    ebb__lab_stop(lab, EBB_ERR_ORACLE, ebb_oracle_name(EBB_ORACLE_PHASE),
                  "the kernel tried an illegal transition");
    lab->result.runtime = i;
    lab->result.event = *ev;
}

static void check_events(ebb_lab *lab, uint32_t i) {
    ebb__lab_runtime *r = &lab->runtime[i];
    if (r->n == 0) return;
    ebb_event ev;
    ebb_status st = continue_reading(r);
    while (st == EBB_OK && (st = ebb_trace_reader_next(&r->reader, &ev)) == EBB_OK) {
        lab->result.events++;
        if (ev.type == EBB_EV_TASK_POLLED) r->polled = ev.task_id;
        if (ebb_checker_event(r->check, &ev) != EBB_OK) violated(lab, i, r->check);
        else if (ev.type == EBB_EV_ILLEGAL) illegal(lab, i, &ev);
        else continue;
        break;
    }
    if (st != EBB_OK && st != EBB_PENDING) {
        ebb__lab_stop(lab, EBB_ERR_ORACLE, ebb_oracle_name(EBB_ORACLE_FORMAT), r->reader.error);
    }
    r->n = 0;
}

/* A block is full, in the middle of a decision. */
static void trace_full(void *ctx, const void *bytes, size_t n) {
    ebb__lab_runtime *r = ctx;
    taker t = {r->lab, (uint32_t)(r - r->lab->runtime)};
    if (r->rt == NULL) return; /* it is not watched any more */
    trace_piece(&t, bytes, n);
    check_events(r->lab, t.i);
}

static void journal_full(void *ctx, const void *bytes, size_t n) {
    ebb__lab_runtime *r = ctx;
    taker t = {r->lab, (uint32_t)(r - r->lab->runtime)};
    if (r->rt != NULL) journal_piece(&t, bytes, n);
}

/* A file consists of whole blocks; without a file, each event is checked as soon as possible. */
static void take(ebb_lab *lab, uint32_t i, bool flush) {
    taker t = {lab, i};
    if (lab->runtime[i].rt == NULL) return;
    ebb_trace_take(lab->runtime[i].rt, flush || lab->opts.trace == NULL, trace_piece, &t);
    if (lab->opts.journal != NULL) ebb_journal_take(lab->runtime[i].rt, flush, journal_piece, &t);
    check_events(lab, i);
}

void ebb__lab_take_all(ebb_lab *lab, bool flush) {
    for (uint32_t i = 0; i < lab->runtimes; i++) take(lab, i, flush);
}

/* A task with a cancel request has a deadline. If no timer is left, nothing will ever force it: a leak that events
 * alone do not show, as long as the task could still be woken. */
static void check_forgotten(ebb_lab *lab, uint32_t i) {
    ebb_runtime *rt = lab->runtime[i].rt;
    for (uint32_t k = 1; k < rt->tasks.used && going(lab); k++) {
        const ebb__task *t = ebb__task_at(rt, k);
        if (t->phase < EBB_TASK_CANCEL_REQUESTED || t->phase > EBB_TASK_FINALIZING) continue;
        if (ebb__cleanup_deadline(rt, t) == EBB_FOREVER) continue;
        char text[80];
        ebb__text say = ebb__text_in(text, sizeof text);
        ebb__text_str(&say, "task ");
        ebb__text_id(&say, ebb__task_id(t));
        ebb__text_str(&say, " was asked to stop; it waits, and no timer will force it");
        ebb__lab_stop(lab, EBB_ERR_ORACLE, ebb_oracle_name(EBB_ORACLE_TASK_LEAK), text);
        lab->result.runtime = i;
    }
}

/* ---- possible next steps ------------------------------------------------------------------------------- */

typedef enum way_kind { STEP, DELIVER, RUN, ADVANCE, ENOUGH } way_kind;

typedef struct way {
    way_kind kind;
    size_t which; /* the runtime, or the message in the bag */
} way;

enum { WAYS = EBB_LAB_RUNTIMES * EBB_LAB_RUNTIMES + EBB_LAB_RUNTIMES + 3 };

/* The first message of each pair of runtimes may arrive next. */
static uint32_t ways_to_deliver(const ebb_lab *lab, way *w) {
    bool seen[EBB_LAB_RUNTIMES][EBB_LAB_RUNTIMES] = {{false}};
    uint32_t n = 0;
    for (size_t k = 0; k < lab->bag_n; k++) {
        bool *pair = &seen[lab->bag[k].from][lab->bag[k].to];
        if (!*pair) w[n++] = (way){DELIVER, k};
        *pair = true;
    }
    return n;
}

static uint32_t ways_to_run(const ebb_lab *lab, way *w) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < lab->runtimes; i++) {
        if (ebb_runtime_next_due(lab->runtime[i].rt) <= lab->now) w[n++] = (way){RUN, i};
    }
    return n;
}

/* When the next timer fires that is not due yet, even if its runtime is busy. */
static uint64_t next_moment(const ebb_lab *lab) {
    uint64_t at = EBB_FOREVER;
    for (uint32_t i = 0; i < lab->runtimes; i++) {
        const ebb__wheel *w = &lab->runtime[i].rt->wheel;
        uint64_t due = ebb__wheel_next(w);
        if (due < w->quiet_until) due = w->quiet_until;
        if (due > lab->now && due < at) at = due;
    }
    return at < HORIZON ? at : EBB_FOREVER;
}

static uint32_t list_ways(const ebb_lab *lab, way *w, bool may_end) {
    uint32_t n = 0;
    if (lab->next_step < lab->steps) w[n++] = (way){STEP, 0};
    n += ways_to_deliver(lab, w + n);
    n += ways_to_run(lab, w + n);
    bool idle = n == 0, timers = next_moment(lab) != EBB_FOREVER;
    if (timers && lab->since_advance >= TURNS_A_MOMENT) {
        w[0] = (way){ADVANCE, 0};
        return 1;
    }
    if (timers) w[n++] = (way){ADVANCE, 0};
    if (timers && idle && may_end) w[n++] = (way){ENOUGH, 0};
    assert(n <= WAYS);
    return n;
}

/* ---- taking a step ------------------------------------------------------------------------------------- */

static void deliver(ebb_lab *lab, size_t which) {
    assert(which < lab->bag_n);
    ebb__flying f = lab->bag[which];
    lab->bag_n--;
    memmove(&lab->bag[which], &lab->bag[which + 1], (lab->bag_n - which) * sizeof f);
    const ebb_lab_scenario *s = lab->c->scenario;
    if (s->received != NULL) s->received(lab, &f.msg);
    (void)ebb_msg_deliver(lab->runtime[f.to].rt, &f.msg);
}

static void run(ebb_lab *lab, size_t i) {
    ebb__lab_runtime *r = &lab->runtime[i];
    ebb_runtime_set_turn(r->rt, ++r->turn, 1);
    if (r->rt->now < lab->now) ebb_runtime_advance(r->rt, lab->now);
    (void)ebb_runtime_pump(r->rt, 1 + ebb__choose(lab, MAX_POLLS));
    if (r->rt->now > lab->now) lab->now = r->rt->now;
    lab->since_advance++;
}

static void do_step(ebb_lab *lab) {
    const ebb_lab_scenario *s = lab->c->scenario;
    if (s->step != NULL) s->step(lab, lab->next_step);
    lab->next_step++;
    for (uint32_t i = 0; i < lab->runtimes; i++) { /* a step may have advanced a clock */
        if (lab->runtime[i].rt->now > lab->now) lab->now = lab->runtime[i].rt->now;
    }
}

static uint64_t max_steps(const ebb_lab *lab) {
    return lab->opts.max_steps != 0 ? lab->opts.max_steps : MAX_STEPS;
}

/* Fails a run that does not end. If a task still runs long after the end was requested, the failure is named after
 * that leak. */
static void give_up(ebb_lab *lab) {
    for (uint32_t i = 0; i < lab->runtimes && lab->ending; i++) {
        const ebb_checker *c = lab->runtime[i].check;
        ebb__lab_take_all(lab, true);
        if (ebb_checker_end(lab->runtime[i].check, true) != EBB_OK) violated(lab, i, c);
    }
    char room[64];
    ebb__text text = ebb__text_in(room, sizeof room);
    ebb__text_str(&text, "it has not ended after ");
    ebb__text_u64(&text, max_steps(lab));
    ebb__text_str(&text, " decisions");
    ebb__lab_stop(lab, EBB_ERR_LIMIT, "livelock", room);
}

/* One decision. False if there is nothing left to decide, or the decision was to end. */
static bool decide(ebb_lab *lab, bool may_end) {
    way w[WAYS];
    uint32_t n = list_ways(lab, w, may_end);
    if (n == 0) return false;
    way chosen = w[ebb__choose(lab, n)];
    lab->result.steps++;
    if (++lab->round_steps > max_steps(lab)) {
        give_up(lab);
        return false;
    }
    switch (chosen.kind) {
    case STEP: do_step(lab); break;
    case DELIVER: deliver(lab, chosen.which); break;
    case RUN: run(lab, chosen.which); break;
    case ADVANCE:
        lab->now = next_moment(lab);
        lab->since_advance = 0;
        break;
    case ENOUGH: return false;
    }
    ebb__lab_take_all(lab, false);
    return going(lab);
}

/* Decides until nothing is left, or until `limit` decisions after the last step. */
static void decide_all(ebb_lab *lab, bool may_end, uint32_t limit) {
    uint32_t late = 0;
    while (going(lab) && late < limit && decide(lab, may_end)) late += lab->next_step == lab->steps;
    way w[WAYS];
    if (!going(lab) || list_ways(lab, w, false) > 0) return;
    for (uint32_t i = 0; i < lab->runtimes; i++) check_forgotten(lab, i);
}

/* ---- rounds -------------------------------------------------------------------------------------------- */

typedef enum ending { END_USER, END_CLOSE, END_SHUTDOWN, ENDINGS } ending;

static void end_region(ebb_runtime *rt, ebb_region region, ending how) {
    if (how == END_CLOSE) ebb_region_close(ebb_runtime_host(rt), region);
    else
        ebb_region_cancel(ebb_runtime_host(rt), region,
                          how == END_USER ? EBB_CANCEL_USER : EBB_CANCEL_SHUTDOWN, "the end");
}

static void end_regions(ebb_lab *lab, ending how, bool roots) {
    for (uint32_t i = 0; i < lab->runtimes; i++) {
        ebb_runtime *rt = lab->runtime[i].rt;
        end_region(rt, roots ? ebb_runtime_root(rt) : lab->runtime[i].region, how);
    }
    ebb__lab_take_all(lab, false);
}

/* A close waits for tasks that never end by themselves, so a cancel follows. */
static void end_all(ebb_lab *lab, bool roots) {
    ending how = (ending)ebb__choose(lab, ENDINGS);
    lab->ending = true;
    end_regions(lab, how, roots);
    if (how == END_CLOSE) {
        decide_all(lab, true, PATIENCE_CLOSING);
        if (going(lab)) end_regions(lab, END_USER, roots);
    }
    decide_all(lab, false, UINT32_MAX);
}

/* After the root has closed every slot must be free, except for the records of the root's report. */
static void check_slots(ebb_lab *lab, uint32_t i) {
    const ebb_runtime *rt = lab->runtime[i].rt;
    const ebb__region *root = ebb__region_at(rt, rt->root);
    ebb_oracle o = EBB_ORACLES;
    if (rt->regions.live != 1) o = EBB_ORACLE_REGION_LEAK;
    if (rt->tasks.live != 0 && ebb__cold_of(root)->kept == 0) o = EBB_ORACLE_TASK_LEAK;
    if (rt->obligations.live != 0 && ebb__cold_of(root)->leaks == 0) o = EBB_ORACLE_OBLIGATION_LEAK;
    if (rt->reasons.live != 0 && ebb__cold_of(root)->kept == 0) o = EBB_ORACLE_TASK_LEAK;
    if (o == EBB_ORACLES) return;
    ebb__lab_stop(lab, EBB_ERR_ORACLE, ebb_oracle_name(o),
                  "a slot is still taken after everything has ended");
    lab->result.runtime = i;
}

/* Everything should have ended. The leak oracles report the rest. */
static void check_end(ebb_lab *lab, uint32_t i, bool roots) {
    ebb__lab_runtime *r = &lab->runtime[i];
    ebb_runtime_stats stats;
    if (!roots) (void)ebb_region_join(ebb_runtime_host(r->rt), r->region);
    ebb_runtime_stats_of(r->rt, &stats);
    bool quiet = stats.tasks == 0 && stats.regions == (roots ? 0 : 1);
    if (quiet && !roots) return;
    take(lab, i, true);
    if (ebb_checker_end(r->check, true) != EBB_OK) violated(lab, i, r->check);
    if (quiet && going(lab)) check_slots(lab, i);
    if (quiet || !going(lab)) return;
    ebb__lab_stop(lab, EBB_ERR_ORACLE, ebb_oracle_name(EBB_ORACLE_REGION_LEAK),
                  "the root's state at the end: expected Closed");
    lab->result.runtime = i;
}

static void check_quiet(ebb_lab *lab, bool roots) {
    ebb__lab_take_all(lab, roots);
    for (uint32_t i = 0; i < lab->runtimes && going(lab); i++) check_end(lab, i, roots);
}

void ebb__lab_check_quiet(ebb_lab *lab, uint32_t i) {
    take(lab, i, true);
    if (going(lab)) check_end(lab, i, true);
}

static bool begin_round(ebb_lab *lab) {
    const ebb_lab_scenario *s = lab->c->scenario;
    lab->round_steps = 0;
    lab->next_step = 0;
    lab->ending = false;
    lab->steps = s->steps;
    for (uint32_t i = 0; i < lab->runtimes; i++) {
        ebb__lab_runtime *r = &lab->runtime[i];
        r->region = ebb_region_open(ebb_runtime_host(r->rt), &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
        ebb_status st = ebb_id_status(r->region.id);
        if (st == EBB_ERR_CLOSED) return false; /* the previous round has closed the only root */
        if (st != EBB_OK) ebb__lab_stop(lab, st, "", NULL);
    }
    lab->state = ebb_lab_alloc(lab, s->state_size == 0 ? 1 : s->state_size);
    if (!going(lab)) return false;
    ebb_status st = s->setup != NULL ? s->setup(lab) : EBB_OK;
    if (st != EBB_OK) ebb__lab_stop(lab, st, st == EBB_ERR_NOMEM ? "" : "check", ebb_status_text(st));
    ebb__lab_take_all(lab, false);
    return going(lab);
}

/* The last round ends with the close of the roots. */
static bool one_round(ebb_lab *lab, bool last) {
    const ebb_lab_scenario *s = lab->c->scenario;
    bool begun = begin_round(lab);
    if (begun) decide_all(lab, !s->until_quiet, s->until_quiet ? UINT32_MAX : PATIENCE);
    if (begun && going(lab) && !last && s->finish != NULL) s->finish(lab);
    if (begun && going(lab)) end_all(lab, last);
    if (begun && going(lab)) check_quiet(lab, last);
    if (begun && going(lab) && s->check != NULL) s->check(lab);
    if (lab->state != NULL && s->teardown != NULL) s->teardown(lab);
    lab->result.rounds++;
    return begun && going(lab);
}

/* ---- a run --------------------------------------------------------------------------------------------- */

static uint32_t choose_task(void *ctx, uint32_t n) {
    return ebb__choose(ctx, n);
}

ebb_status ebb__lab_watch(ebb_lab *lab, uint32_t i, ebb_runtime *rt) {
    ebb__lab_runtime *r = &lab->runtime[i];
    ebb__rt_set_stepped(rt, true);
    r->rt = rt;
    r->n = 0;
    r->turn = 1;
    r->started = false;
    r->polled = 0;
    if (lab->runtimes <= i) lab->runtimes = i + 1;
    ebb__set_chooser(rt, choose_task, lab);
    r->check = ebb_checker_new(lab->allocator);
    if (r->check == NULL) return EBB_ERR_NOMEM;
    r->lab = lab;
    const ebb_recording trace = {TRACE_BYTES, trace_full, r};
    const ebb_recording journal = {lab->opts.journal == NULL ? 0 : TRACE_BYTES, journal_full, r};
    return ebb__record_by(rt, &trace, &journal);
}

void ebb__lab_unwatch(ebb_lab *lab, uint32_t i) {
    ebb_checker_free(lab->runtime[i].check);
    lab->runtime[i].check = NULL;
    lab->runtime[i].rt = NULL;
}

static ebb_status start_runtime(ebb_lab *lab, uint32_t i) {
    ebb_runtime *rt;
    ebb_status st = ebb_runtime_new(
        &(ebb_runtime_opts){.allocator = ebb__lab_pool_allocator(lab->pool), .runtime_id = (uint8_t)(i + 1)},
        &rt);
    return st == EBB_OK ? ebb__lab_watch(lab, i, rt) : st;
}

static void start(ebb_lab *lab, const ebb_lab_case *c, const ebb_lab_opts *opts) {
    lab->c = c;
    lab->opts = *opts;
    lab->result = (ebb_lab_result){.status = EBB_OK};
    lab->chooser.random = c->seed;
    lab->chooser.recorded = c->recorded;
    lab->chooser.given = c->choices;
    lab->chooser.n_given = c->n_choices;
    lab->chooser.n = 0;
    lab->chooser.shown = NULL;
    lab->now = 0;
    lab->bag_n = 0;
    lab->since_advance = 0;
    lab->script_n = 0;
    lab->runtimes = 0;
    lab->winding_down = false;
    uint32_t n = c->scenario->runtimes == 0 ? 1 : c->scenario->runtimes;
    if (c->scenario->play != NULL) n = 0;
    for (uint32_t i = 0; i < n && going(lab); i++) {
        ebb_status st = start_runtime(lab, i);
        if (st != EBB_OK) ebb__lab_stop(lab, st, "", NULL);
    }
}

static void stop(ebb_lab *lab) {
    for (uint32_t i = 0; i < lab->runtimes; i++) {
        ebb_runtime *rt = lab->runtime[i].rt;
        ebb__lab_unwatch(lab, i);
        ebb_runtime_free(rt);
    }
    end_round(lab);
    ebb__lab_blocks_free(lab, &lab->strings);
    lab->result.choices = lab->chooser.n;
}

ebb_status ebb_lab_run(ebb_lab *lab, const ebb_lab_case *c, const ebb_lab_opts *opts, ebb_lab_result *out) {
    *out = (ebb_lab_result){.status = EBB_ERR_INVALID};
    if (c->scenario == NULL || c->scenario->runtimes > EBB_LAB_RUNTIMES) return EBB_ERR_INVALID;
    ebb_lab_opts whole;
    out->status = EBB__OPTS_COPY(&whole, opts);
    if (out->status != EBB_OK) return out->status;
    start(lab, c, &whole);
    if (c->scenario->play != NULL) {
        c->scenario->play(lab);
        stop(lab);
        *out = lab->result;
        return out->status;
    }
    bool many = lab->opts.min_events > 0;
    while (going(lab) && one_round(lab, !many) && lab->result.events < lab->opts.min_events) end_round(lab);
    if (going(lab) && many) {
        end_all(lab, true);
        check_quiet(lab, true);
    }
    ebb__lab_take_all(lab, true);
    stop(lab);
    *out = lab->result;
    return out->status;
}

/* ---- for scenarios ------------------------------------------------------------------------------------- */

ebb_runtime *ebb_lab_runtime(ebb_lab *lab, uint32_t i) {
    return lab->runtime[i].rt;
}

ebb_region ebb_lab_region(const ebb_lab *lab, uint32_t i) {
    return lab->runtime[i].region;
}

void *ebb_lab_state(ebb_lab *lab) {
    return lab->state;
}

void *ebb_lab_arg(const ebb_lab *lab) {
    return lab->c->scenario->arg;
}

void ebb_lab_send(ebb_lab *lab, ebb_cx *from, const ebb_msg *msg) {
    uint32_t to = (uint32_t)(msg->target >> 56) - 1;
    if (to >= lab->runtimes) {
        ebb_lab_fail(lab, "a message is for a runtime that does not exist");
    } else if (ebb__lab_grow(lab, (void **)(void *)&lab->bag, &lab->bag_room, lab->bag_n + 1,
                             sizeof *lab->bag)) {
        lab->bag[lab->bag_n++] = (ebb__flying){(uint32_t)ebb_cx_runtime(from)->id - 1, to, *msg};
    }
}
