/* Repeats every operation of a journal: the same call with the same arguments, with replayed functions in place of
 * the user's, and a comparison of its result with the recorded one. */
#include "lab/replay.h"

#include "base/text.h"
#include "kernel/admit.h"
#include "kernel/format.h"
#include "kernel/obligation.h"
#include "kernel/reason.h"
#include "kernel/region.h"
#include "kernel/supervisor.h"
#include "kernel/task.h"

/* ---- replayed functions -------------------------------------------------------------------------------- */

static ebb_status replayed_poll(ebb_cx *cx, void *state) {
    return ebb__replay_call_of(state, (ebb__replay_call){.what = EBB__CALL_POLL, .task = ebb_cx_task(cx).id});
}

static ebb_status replayed_closer(ebb_cx *cx, void *state) {
    return ebb__replay_call_of(
        state, (ebb__replay_call){.what = EBB__CALL_POLL, .task = ebb_cx_task(cx).id, .empty = true});
}

static ebb_status replayed_finalizer(ebb_cx *cx, void *arg) {
    ebb__replay *p = arg;
    const ebb__obligation *d = ebb__next_finalizer(p->rt, ebb__task_of(cx));
    return ebb__replay_call_of(p, (ebb__replay_call){.what = EBB__CALL_FINALIZER,
                                                     .task = ebb_cx_task(cx).id,
                                                     .other = ebb__obligation_id(p->rt, d)});
}

static void replayed_closed(void *arg, const ebb_region_report *report) {
    (void)ebb__replay_call_of(arg, (ebb__replay_call){.what = EBB__CALL_CLOSED, .region = report->region.id});
}

typedef struct replayed_hook {
    ebb__replay *replay;
    uint64_t obligation;
} replayed_hook;

static void replayed_abort(void *arg) {
    replayed_hook *g = arg;
    (void)ebb__replay_call_of(g->replay, (ebb__replay_call){.what = EBB__CALL_ABORT, .other = g->obligation});
}

typedef struct replayed_wait {
    ebb_wait wait;
    ebb_wait_kind kind; /* with the name of the original */
    ebb__replay *replay;
    uint32_t number;
} replayed_wait;

static void replayed_cancel(ebb_wait *w) {
    replayed_wait *g = (replayed_wait *)(void *)w; /* `w` is its first member */
    (void)ebb__replay_call_of(g->replay, (ebb__replay_call){.what = EBB__CALL_WAIT, .other = g->number});
}

static void *replayed_new(ebb__replay *p, const ebb__journal_op *op, size_t n) {
    void *g = ebb__arena_zero(&p->arena, n);
    if (g == NULL) ebb__replay_fail(p, EBB_ERR_NOMEM, op, "there is no memory for the replay itself");
    return g;
}

/* ---- results ------------------------------------------------------------------------------------------- */

static void expect_status(ebb__replay *p, const ebb__journal_op *op, ebb_status found) {
    if ((int32_t)op->rec.value != (int32_t)found) {
        ebb__replay_diverged(p, op, op->rec.value, (uint32_t)found);
    }
}

static void expect_id(ebb__replay *p, const ebb__journal_op *op, uint64_t found) {
    if (op->rec.other != found) ebb__replay_diverged(p, op, op->rec.other, found);
}

/* The recorded result of a constructor. If an argument was refused, the replay passes an invalid one too. */
static ebb_status recorded(const ebb__journal_op *op) {
    return ebb_id_status(op->rec.other);
}

/* ---- regions ------------------------------------------------------------------------------------------- */

static void do_open(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    uint32_t flags = op->rec.value;
    struct newer {
        ebb_region_opts known;
        uint64_t unknown;
    } all = {.known = {.parent = {op->rec.region},
                       .policy = flags & 4 ? EBB_FAIL_COLLECT : EBB_FAIL_FAST,
                       .deadline = op->args.task,
                       .priority = op->args.kind,
                       .cleanup = (flags & 2) != 0,
                       .unit = (flags & 16) != 0,
                       .on_closed = flags & 8 ? replayed_closed : NULL,
                       .arg = p},
             .unknown = 1};
    ebb_region_opts *o = &all.known;
    if (recorded(op) == EBB_ERR_VERSION)
        o->size = sizeof all; /* refused, with the same parent in the trace */
    if (recorded(op) == EBB_ERR_INVALID) o->policy = (ebb_failure_policy)(EBB_FAIL_COLLECT + 1);
    const char *site = ebb__replay_site(p, op->text);
    p->refuse = recorded(op) == EBB_ERR_NOMEM;
    expect_id(p, op,
              flags & 32 ? ebb__region_open_apart(cx, o, site).id
                         : ebb_region_open_site(cx, flags & 1 ? o : NULL, site).id);
}

static void do_close(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    (void)p;
    ebb_region_close(cx, (ebb_region){op->rec.region});
}

/* A cancel reads the clock and so the journal, which overwrites the text: keep a copy. */
static void do_cancel(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    const char *message = ebb__replay_site(p, op->text);
    ebb_region_cancel(cx, (ebb_region){op->rec.region}, (ebb_cancel_kind)op->rec.kind, message);
}

static void do_cancel_within(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    ebb_budget budget = {op->args.task, op->args.value, op->args.kind};
    const char *message = ebb__replay_site(p, op->text);
    ebb_region_cancel_within(cx, (ebb_region){op->rec.region}, (ebb_cancel_kind)op->rec.kind, message,
                             budget);
}

static void do_force(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    (void)p;
    ebb_region_force(cx, (ebb_region){op->rec.region});
}

static void do_region_join(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    expect_status(p, op, ebb_region_join(cx, (ebb_region){op->rec.region}));
}

static void do_chain(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    (void)p;
    uint32_t n;
    bool truncated;
    (void)ebb__cause_chain(cx, (ebb_region){op->rec.region}, NULL, op->rec.value, &n, &truncated);
}

/* ---- tasks --------------------------------------------------------------------------------------------- */

static void do_spawn(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    ebb_task_opts o = {.deadline = op->args.task,
                       .polls = op->args.value,
                       .priority = op->args.kind,
                       .keep = (op->rec.value & 1) != 0};
    if (recorded(op) == EBB_ERR_VERSION) o.size = 1;
    ebb_poll_fn poll = recorded(op) == EBB_ERR_INVALID ? NULL : replayed_poll;
    const char *site = ebb__replay_site(p, op->text);
    p->refuse = recorded(op) == EBB_ERR_NOMEM;
    ebb_region r = {op->rec.region};
    if (op->rec.value & 4 && r.id == 0) r = ebb_cx_region(cx); /* as in older journals */
    ebb_task id = op->rec.value & 16  ? ebb__spawn_apart(cx, r, poll, p, op->rec.value & 2 ? &o : NULL, site)
                  : op->rec.value & 8 ? ebb__spawn_refused(cx, r, recorded(op), site)
                  : op->rec.value & 4 ? ebb__runner_new(cx, r, poll, p, &p->callbacks, site)
                  : op->rec.value & 2 ? ebb_spawn_opts_site(cx, r, poll, p, &o, site)
                                      : ebb_spawn_site(cx, r, poll, p, site);
    expect_id(p, op, id.id);
}

static void do_task_join(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    expect_status(p, op, ebb_task_join(cx, (ebb_task){op->rec.task}));
}

static void do_wake(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    (void)p;
    (void)ebb_task_wake(cx, (ebb_task){op->rec.task});
}

static void do_task_cancel(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    const char *message = ebb__replay_site(p, op->text);
    ebb_task_cancel(cx, (ebb_task){op->rec.task}, (ebb_cancel_kind)op->rec.kind, message);
}

static void do_task_force(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    (void)p;
    ebb_task_force(cx, (ebb_task){op->rec.task});
}

static void do_discard(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    expect_status(p, op, ebb__task_discard(cx, (ebb_task){op->rec.task}));
}

static void do_checkpoint(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    expect_status(p, op, ebb_checkpoint_slow(cx));
}

static void do_mask(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    expect_status(p, op, ebb_mask(cx));
}

static void do_unmask(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    expect_status(p, op, ebb_unmask(cx));
}

/* ---- obligations and finalizers ------------------------------------------------------------------------ */

static void do_reserve(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    replayed_hook *g = NULL;
    if (op->rec.value != 0 && (g = replayed_new(p, op, sizeof *g)) == NULL) return;
    if (g != NULL) *g = (replayed_hook){p, op->rec.other};
    void (*hook)(void *) = g != NULL ? replayed_abort : NULL;
    ebb_obligation_kind kind = (ebb_obligation_kind)(recorded(op) == EBB_ERR_INVALID ? 0 : op->rec.kind);
    const char *site = ebb__replay_site(p, op->text);
    p->refuse = recorded(op) == EBB_ERR_NOMEM;
    ebb_obligation id = op->rec.region == 0
                            ? ebb_obligation_reserve_site(cx, kind, hook, g, site)
                            : ebb_region_reserve_site(cx, (ebb_region){op->rec.region}, kind, hook, g, site);
    expect_id(p, op, id.id);
}

static void do_commit(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    expect_status(p, op, ebb_obligation_commit(cx, (ebb_obligation){op->rec.other}));
}

static void do_abort(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    expect_status(p, op, ebb_obligation_abort(cx, (ebb_obligation){op->rec.other}));
}

/* The task that runs a region's finalizers has an empty body in the kernel. The journal records its polls like any
 * other, so it becomes a replayed task too. */
static void replay_closer(ebb__replay *p, ebb_region region) {
    ebb__region *r;
    if (ebb__find_region(p->rt, region, &r) != EBB_OK || ebb__cold_of(r)->closer == 0) return;
    ebb__task *t = ebb__task_at(p->rt, ebb__cold_of(r)->closer);
    t->poll = replayed_closer;
    t->state = p;
}

static void do_defer(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    ebb_status want = (ebb_status)(int32_t)op->rec.value;
    ebb_poll_fn fn = want == EBB_ERR_INVALID ? NULL : replayed_finalizer;
    ebb_region region = {op->rec.region};
    const char *site = ebb__replay_site(p, op->text);
    p->refuse = want == EBB_ERR_NOMEM;
    expect_status(p, op,
                  region.id == 0      ? ebb_defer_site(cx, fn, p, site)
                  : op->rec.kind == 0 ? ebb_region_defer_site(cx, region, fn, p, site)
                                      : ebb__region_defer_apart(cx, region, fn, p, site));
    if (region.id == 0 && cx == ebb_runtime_host(p->rt)) region = ebb_runtime_root(p->rt);
    replay_closer(p, region);
}

/* ---- admission ----------------------------------------------------------------------------------------- */

static void do_admit(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    expect_status(p, op, op->rec.kind != 0 ? ebb__admit_inbound(cx) : ebb__admit_operation(cx));
}

/* ---- waits and timers ---------------------------------------------------------------------------------- */

static void do_wait_begin(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    if (cx == ebb_runtime_host(p->rt)) {
        ebb__replay_fail(p, EBB_ERR_DIVERGED, op, "expected a task that waits, found the host");
        return;
    }
    if (op->rec.value != ++p->begun) {
        ebb__replay_fail(p, EBB_ERR_DIVERGED, op, "expected another number of waits begun so far");
        return;
    }
    replayed_wait *g = replayed_new(p, op, sizeof *g);
    if (g == NULL) return;
    replayed_wait **place = ebb__map_put(&p->waits, (uint64_t)op->rec.value + 1);
    if (place == NULL) {
        ebb__replay_fail(p, EBB_ERR_NOMEM, op, "there is no memory for the replay itself");
        return;
    }
    *place = g;
    g->replay = p;
    g->number = op->rec.value;
    g->kind = (ebb_wait_kind){ebb__replay_site(p, op->text), replayed_cancel};
    ebb_wait_begin(cx, &g->wait, &g->kind, p);
}

static void do_wait_end(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    (void)cx;
    replayed_wait **g = ebb__map_find(&p->waits, (uint64_t)op->rec.value + 1);
    if (g == NULL) {
        ebb__replay_fail(p, EBB_ERR_DIVERGED, op, "expected a wait of that number, found none");
        return;
    }
    ebb_wait *w = &(*g)->wait;
    ebb__map_remove(&p->waits, (uint64_t)op->rec.value + 1);
    ebb_wait_end(w);
}

static void do_timer_arm(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    p->refuse = recorded(op) == EBB_ERR_NOMEM;
    expect_id(p, op, ebb_timer_arm(cx, (ebb_task){op->rec.task}, op->rec.region).id);
}

static void do_timer_disarm(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    expect_status(p, op, ebb_timer_disarm(cx, (ebb_timer){op->rec.other}));
}

/* ---- supervisors --------------------------------------------------------------------------------------- */

static void do_supervisor(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    ebb__supervisor s;
    bool root = op->rec.value != 0;
    const char *site = ebb__replay_site(p, op->text);
    p->refuse = recorded(op) == EBB_ERR_NOMEM;
    s = ebb__supervisor_new(cx, (ebb_region){op->rec.region}, replayed_poll, p, root ? replayed_closed : NULL,
                            site);
    expect_id(p, op, s.task.id);
}

static void do_alarm(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    ebb__task *t;
    if (ebb__find_task(p->rt, (ebb_task){op->rec.task}, &t) != EBB_OK || !ebb__is_supervisor(p->rt, t)) {
        ebb__replay_fail(p, EBB_ERR_DIVERGED, op, "expected a supervisor, found none");
        return;
    }
    ebb__supervisor_alarm(cx, (ebb_task){op->rec.task}, op->rec.other);
}

static void do_operators(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    const char *site = ebb__replay_site(p, op->text);
    p->refuse = recorded(op) == EBB_ERR_NOMEM;
    expect_id(p, op, ebb__operators_open(cx, (ebb_region){op->rec.region}, site).id);
}

static void do_release(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    (void)p;
    ebb__operators_release(cx, (ebb_region){op->rec.region}, op->rec.other);
}

static void do_joining(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    (void)p;
    ebb__region_joining(cx, (ebb_region){op->rec.region});
}

/* Takes one of the texts of a note; NULL: it is empty. */
static char *next_part(char **rest) {
    char *part = *rest, *end = part;
    while (*end != 0 && *end != EBB__NOTE_END[0]) end++;
    *rest = *end == 0 ? end : end + 1;
    *end = 0;
    return *part == 0 ? NULL : part;
}

static void do_observe(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    ebb_status st = op->rec.task != 0 ? ebb__task_observe(cx, (ebb_task){op->rec.task})
                                      : ebb__region_observe(cx, (ebb_region){op->rec.region});
    if (st != EBB_OK) ebb__replay_fail(p, EBB_ERR_DIVERGED, op, "there is nothing that can end");
}

static void do_note(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    (void)cx;
    if (!ebb__event_is_note(op->rec.kind)) {
        ebb__replay_fail(p, EBB_ERR_INVALID, op, "expected an event that a layer may record");
        return;
    }
    char texts[EBB__NOTE_BYTES], *rest = texts, *part[3] = {NULL, NULL, NULL};
    ebb__text t = ebb__text_in(texts, sizeof texts);
    ebb__text_str(&t, op->text == NULL ? "" : op->text);
    for (size_t i = 0; i < 3 && op->text != NULL && *rest != 0; i++) part[i] = next_part(&rest);
    ebb__note_slow(p->rt, &(ebb__note){.type = op->rec.kind,
                                       .value = op->rec.value,
                                       .task = op->rec.task,
                                       .region = op->rec.region,
                                       .other = op->rec.other,
                                       .what = ebb__replay_site(p, part[0]),
                                       .site = ebb__replay_site(p, part[1]),
                                       .text = part[2]});
}

static void do_operation(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    const char *text = ebb__replay_site(p, op->text);
    p->refuse = (ebb_status)(int32_t)op->rec.value == EBB_ERR_NOMEM;
    ebb__operation_abandoned(cx, (ebb_region){op->rec.region}, text == NULL ? "" : text, NULL, NULL,
                             op->rec.other);
}

/* ---- the host ------------------------------------------------------------------------------------------ */

static void do_advance(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    (void)cx;
    ebb_runtime_advance(p->rt, op->rec.other);
}

/* The reading of an operation that is recorded after it was done: the operation takes it from here. */
static void do_clock(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    (void)cx;
    p->reading = op->rec.other;
}

static void do_pump(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    (void)cx;
    if (ebb_runtime_pump(p->rt, op->rec.value) == EBB_ERR_REENTERED) {
        ebb__replay_fail(p, EBB_ERR_DIVERGED, op, "expected a pump that was not running yet");
    }
}

static void do_turn(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    (void)cx;
    ebb_runtime_set_turn(p->rt, op->rec.task, op->rec.region);
}

/* The operation that the message causes comes next, as an operation of the host. */
static void do_receive(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op) {
    (void)cx;
    ebb__emit_plain(p->rt, EBB_EV_RECEIVED, op->rec.task, op->rec.region, op->rec.value, op->rec.other);
}

/* ---- dispatch ------------------------------------------------------------------------------------------ */

typedef void (*do_fn)(ebb__replay *p, ebb_cx *cx, const ebb__journal_op *op);

static const do_fn operations[J_END] = {
    [J_OPEN] = do_open,
    [J_CLOSE] = do_close,
    [J_CANCEL] = do_cancel,
    [J_CANCEL_WITHIN] = do_cancel_within,
    [J_FORCE] = do_force,
    [J_REGION_JOIN] = do_region_join,
    [J_SPAWN] = do_spawn,
    [J_TASK_JOIN] = do_task_join,
    [J_WAKE] = do_wake,
    [J_TASK_CANCEL] = do_task_cancel,
    [J_TASK_FORCE] = do_task_force,
    [J_DISCARD] = do_discard,
    [J_CHECKPOINT] = do_checkpoint,
    [J_MASK] = do_mask,
    [J_UNMASK] = do_unmask,
    [J_RESERVE] = do_reserve,
    [J_COMMIT] = do_commit,
    [J_ABORT] = do_abort,
    [J_DEFER] = do_defer,
    [J_ADVANCE] = do_advance,
    [J_PUMP] = do_pump,
    [J_TURN] = do_turn,
    [J_TIMER_ARM] = do_timer_arm,
    [J_TIMER_DISARM] = do_timer_disarm,
    [J_RECEIVE] = do_receive,
    [J_CHAIN] = do_chain,
    [J_WAIT_BEGIN] = do_wait_begin,
    [J_WAIT_END] = do_wait_end,
    [J_SUPERVISOR] = do_supervisor,
    [J_ALARM] = do_alarm,
    [J_JOINING] = do_joining,
    [J_OBSERVE] = do_observe,
    [J_NOTE] = do_note,
    [J_ADMIT] = do_admit,
    [J_CLOCK] = do_clock,
    [J_OPERATORS] = do_operators,
    [J_RELEASE] = do_release,
    [J_OPERATION] = do_operation,
};

/* The caller; NULL if it can't have been the caller, which fails the replay. */
static ebb_cx *asker_of(ebb__replay *p, const ebb__journal_op *op) {
    ebb__task *t = p->rt->current;
    if (op->rec.phase != 0) return ebb_runtime_host(p->rt);
    if (op->asker == 0) {
        if (t == NULL)
            ebb__replay_fail(p, EBB_ERR_DIVERGED, op, "expected a task that is being polled, found none");
        return t == NULL ? NULL : &t->cx;
    }
    if (ebb__find_task(p->rt, (ebb_task){op->asker}, &t) != EBB_OK || t->phase == EBB_TASK_COMPLETED) {
        ebb__replay_fail(p, EBB_ERR_DIVERGED, op, "expected a caller that is alive");
        return NULL;
    }
    if (t != p->rt->current && ebb__op_fields(op->rec.type) & EBB__OP_WAITS) {
        ebb__replay_fail(p, EBB_ERR_INVALID, op, "the caller is not being polled");
        return NULL;
    }
    return &t->cx;
}

void ebb__replay_op(ebb__replay *p, const ebb__journal_op *op) {
    do_fn replay = operations[op->rec.type];
    if (replay == NULL) {
        ebb__replay_fail(p, EBB_ERR_DIVERGED, op, "expected here, found no such operation");
        return;
    }
    ebb_cx *cx = asker_of(p, op);
    if (cx != NULL) replay(p, cx, op);
    p->refuse = false;
}
