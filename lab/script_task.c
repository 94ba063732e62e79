/* The tasks of a script: each task and each finalizer interprets its own steps. Operations that host and tasks
 * share are here too. */
#include "lab/script_op.h"

typedef struct actor {
    ebb__script *script;
    const ebb__script_body *body;
    uint32_t at;  /* index of the current step */
    bool cleanup; /* it is in the steps after the `|` */
    bool begun;   /* the current step has already waited */
    bool ignoring;
    ebb_status last; /* the status of the previous step */
    ebb_sleeper nap;
} actor;

/* ---- operations of host and tasks ---------------------------------------------------------------------- */

static uint64_t after(ebb_cx *cx, uint64_t span) {
    uint64_t now = ebb_now(cx);
    return span > EBB_FOREVER - now ? EBB_FOREVER : now + span;
}

static ebb_status do_open(ebb__script *s, ebb_cx *cx, const ebb__script_op *op) {
    ebb_region_opts o = {.policy = op->collect ? EBB_FAIL_COLLECT : EBB_FAIL_FAST,
                         .priority = op->priority,
                         .cleanup = op->cleanup,
                         .unit = op->unit,
                         .deadline = op->timed ? after(cx, op->span) : 0};
    ebb_status st = EBB_OK;
    if (op->in != NULL) st = ebb__script_find(op->in, EBB__REGION, &o.parent.id);
    ebb__thing *thing;
    if (st == EBB_OK) st = ebb__script_thing(s, &thing);
    if (st != EBB_OK) return st;
    return ebb__script_bind(s, op->name, thing, EBB__REGION,
                            ebb_region_open_site(cx, &o, ebb__script_site(s, op->name)).id);
}

static ebb_status do_cancel(ebb_cx *cx, ebb_region r, const ebb__script_op *op) {
    if (op->timed || op->polls != 0) {
        ebb_budget b = {.deadline = op->timed ? after(cx, op->span) : EBB_FOREVER,
                        .polls = op->polls != 0 ? op->polls : EBB_POLLS_UNBOUNDED,
                        .priority = op->priority};
        ebb_region_cancel_within(cx, r, (ebb_cancel_kind)op->kind, op->message, b);
    } else {
        ebb_region_cancel(cx, r, (ebb_cancel_kind)op->kind, op->message);
    }
    return EBB_OK;
}

static ebb_status do_region(ebb_cx *cx, const ebb__script_op *op) {
    ebb_region r;
    ebb_status st = ebb__script_find(op->name, EBB__REGION, &r.id);
    if (st != EBB_OK) return st;
    switch (op->verb) {
    case V_CLOSE: ebb_region_close(cx, r); return EBB_OK;
    case V_FORCE: ebb_region_force(cx, r); return EBB_OK;
    case V_CANCEL: return do_cancel(cx, r, op);
    default: return ebb_region_join(cx, r);
    }
}

static ebb_status do_task(ebb_cx *cx, const ebb__script_op *op) {
    ebb_task t;
    ebb_status st = ebb__script_find(op->name, EBB__TASK, &t.id);
    if (st != EBB_OK) return st;
    switch (op->verb) {
    case V_CANCEL_TASK: ebb_task_cancel(cx, t, (ebb_cancel_kind)op->kind, op->message); return EBB_OK;
    case V_FORCE_TASK: ebb_task_force(cx, t); return EBB_OK;
    case V_WAKE: return ebb_task_wake(cx, t);
    default: return ebb_task_join(cx, t);
    }
}

static void count_abort(void *arg) {
    ebb__thing *thing = arg;
    thing->aborts++;
}

static ebb_status do_reserve(ebb__script *s, ebb_cx *cx, const ebb__script_op *op) {
    ebb_obligation_kind kind = (ebb_obligation_kind)op->kind;
    const char *site = ebb__script_site(s, op->name);
    ebb_region r = {0};
    ebb_status st = op->in == NULL ? EBB_OK : ebb__script_find(op->in, EBB__REGION, &r.id);
    ebb__thing *thing;
    if (st == EBB_OK) st = ebb__script_thing(s, &thing);
    if (st != EBB_OK) return st;
    ebb_obligation o = op->in == NULL ? ebb_obligation_reserve_site(cx, kind, count_abort, thing, site)
                                      : ebb_region_reserve_site(cx, r, kind, count_abort, thing, site);
    return ebb__script_bind(s, op->name, thing, EBB__OBLIGATION, o.id);
}

static ebb_status do_resolve(ebb_cx *cx, const ebb__script_op *op) {
    ebb_obligation o;
    ebb_status st = ebb__script_find(op->name, EBB__OBLIGATION, &o.id);
    if (st != EBB_OK) return st;
    return op->verb == V_COMMIT ? ebb_obligation_commit(cx, o) : ebb_obligation_abort(cx, o);
}

ebb_status ebb__script_do(ebb__script *s, ebb_cx *cx, const ebb__script_op *op) {
    switch (op->verb) {
    case V_OPEN: return do_open(s, cx, op);
    case V_SPAWN: return ebb__script_spawn(s, cx, op);
    case V_DEFER: return ebb__script_defer(s, cx, op);
    case V_RESERVE: return do_reserve(s, cx, op);
    case V_COMMIT:
    case V_ABORT: return do_resolve(cx, op);
    case V_CANCEL_TASK:
    case V_FORCE_TASK:
    case V_WAKE:
    case V_JOIN_TASK: return do_task(cx, op);
    case V_PUMP: return ebb_runtime_pump(s->rt, op->number == 0 ? EBB__SCRIPT_PUMP : (uint32_t)op->number);
    default: return do_region(cx, op);
    }
}

/* ---- steps --------------------------------------------------------------------------------------------- */

static const ebb__script_op *steps_of(const actor *a, uint32_t *n) {
    *n = a->cleanup ? a->body->n_cleanup : a->body->n_steps;
    return a->cleanup ? a->body->cleanup : a->body->steps;
}

static void go_on(actor *a, ebb_status answer) {
    a->last = answer;
    a->begun = false;
    a->at++;
}

/* The task learns that it is cancelled: it goes on to its cleanup steps, unless it is there already. */
static void be_cancelled(actor *a) {
    if (a->cleanup) {
        go_on(a, EBB_CANCELLED);
        return;
    }
    a->cleanup = true;
    a->begun = false;
    a->at = 0;
    a->last = EBB_CANCELLED;
}

typedef enum outcome { GOES_ON, WAITS, ENDS } outcome;

/* After a wait or a checkpoint returned `st`. The awaited object may have been cancelled instead of this task, so
 * the task checks itself. */
static outcome answered(actor *a, ebb_cx *cx, ebb_status st) {
    if (st == EBB_CANCELLED && ebb_checkpoint(cx) == EBB_CANCELLED) be_cancelled(a);
    else go_on(a, st);
    return GOES_ON;
}

static outcome step_park(actor *a, ebb_cx *cx) {
    if (!a->begun) {
        a->begun = true;
        return WAITS;
    }
    return answered(a, cx, ebb_checkpoint(cx));
}

static outcome step_yield(actor *a, ebb_cx *cx) {
    if (!a->begun) {
        a->begun = true;
        (void)ebb_task_wake(cx, ebb_cx_task(cx));
        return WAITS;
    }
    go_on(a, EBB_OK);
    return GOES_ON;
}

static outcome step_await(actor *a, ebb_cx *cx, const ebb__script_op *op) {
    ebb_status st =
        op->verb == V_SLEEP ? ebb_sleep(cx, &a->nap, op->span) : ebb__script_do(a->script, cx, op);
    return st == EBB_PENDING ? WAITS : answered(a, cx, st);
}

static outcome step_expect(actor *a, const ebb__script_op *op, ebb_status *end) {
    if (a->last == (ebb_status)op->status) {
        a->at++; /* another `expect` may follow */
        return GOES_ON;
    }
    *end = EBB_FAULTED;
    return ENDS;
}

static outcome step(actor *a, ebb_cx *cx, const ebb__script_op *op, ebb_status *end) {
    switch (op->verb) {
    case V_PARK: return step_park(a, cx);
    case V_YIELD: return step_yield(a, cx);
    case V_CHECKPOINT: return answered(a, cx, ebb_checkpoint(cx));
    case V_SLEEP:
    case V_JOIN:
    case V_JOIN_TASK: return step_await(a, cx, op);
    case V_EXPECT: return step_expect(a, op, end);
    case V_MASK: go_on(a, ebb_mask(cx)); return GOES_ON;
    case V_UNMASK: go_on(a, ebb_unmask(cx)); return GOES_ON;
    case V_IGNORE: a->ignoring = true; return WAITS;
    case V_LOOP: a->at = 0; return GOES_ON;
    case V_RETURN: *end = (ebb_status)op->status; return ENDS;
    case V_FAULT: *end = EBB_FAULTED; return ENDS;
    default: go_on(a, ebb__script_do(a->script, cx, op)); return GOES_ON;
    }
}

static ebb_status actor_poll(ebb_cx *cx, void *state) {
    actor *a = state;
    if (a->ignoring) return EBB_PENDING;
    for (uint32_t done = 0; done < EBB__SCRIPT_STEPS; done++) {
        uint32_t n;
        const ebb__script_op *steps = steps_of(a, &n);
        if (a->at >= n) return a->cleanup ? EBB_CANCELLED : EBB_OK;
        ebb_status end = EBB_OK;
        switch (step(a, cx, &steps[a->at], &end)) {
        case GOES_ON: break;
        case WAITS: return EBB_PENDING;
        case ENDS: return end;
        }
    }
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

/* ---- spawn and defer ----------------------------------------------------------------------------------- */

static actor *actor_new(ebb__script *s, const ebb__script_body *body) {
    actor *a = ebb__arena_zero(&s->arena, sizeof *a);
    if (a == NULL) return NULL;
    a->script = s;
    a->body = body;
    return a;
}

ebb_status ebb__script_spawn(ebb__script *s, ebb_cx *cx, const ebb__script_op *op) {
    ebb_region r = ebb_cx_region(cx);
    ebb_task_opts o = {.keep = op->keep,
                       .polls = op->polls,
                       .priority = op->priority,
                       .deadline = op->timed ? after(cx, op->span) : 0};
    const ebb__script_body *body = op->as != NULL ? op->as->body : op->body;
    if (body == NULL) return EBB_ERR_INVALID;
    ebb_status st = op->in == NULL ? EBB_OK : ebb__script_find(op->in, EBB__REGION, &r.id);
    ebb__thing *thing;
    if (st == EBB_OK) st = ebb__script_thing(s, &thing);
    if (st != EBB_OK) return st;
    actor *a = actor_new(s, body);
    if (a == NULL) return EBB_ERR_NOMEM;
    ebb_task t = ebb_spawn_opts_site(cx, r, actor_poll, a, &o, ebb__script_site(s, op->name));
    return ebb__script_bind(s, op->name, thing, EBB__TASK, t.id);
}

/* A finalizer that returns EBB_PENDING that many times and wakes itself each time. */
static ebb_status slow_poll(ebb_cx *cx, void *state) {
    uint64_t *left = state;
    if (*left == 0) return EBB_OK;
    --*left;
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

static ebb_status stuck_poll(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_PENDING;
}

/* The function and state of a finalizer. NULL: no memory. */
static void *finalizer_of(ebb__script *s, const ebb__script_op *op, ebb_poll_fn *fn) {
    if (op->as != NULL) {
        *fn = actor_poll;
        return actor_new(s, op->as->body);
    }
    uint64_t *left = ebb__arena_alloc(&s->arena, sizeof *left);
    if (left != NULL) *left = op->number;
    *fn = op->stuck ? stuck_poll : slow_poll;
    return left;
}

ebb_status ebb__script_defer(ebb__script *s, ebb_cx *cx, const ebb__script_op *op) {
    static const char site[] = "defer";
    ebb_region r = {0};
    ebb__thing *thing;
    ebb_poll_fn fn;
    ebb_status st = op->name == NULL ? EBB_OK : ebb__script_find(op->name, EBB__REGION, &r.id);
    if (st == EBB_OK && op->as != NULL && op->as->body == NULL) st = EBB_ERR_INVALID;
    if (st == EBB_OK) st = ebb__script_thing(s, &thing);
    if (st != EBB_OK) return st;
    void *state = finalizer_of(s, op, &fn);
    if (state == NULL) return EBB_ERR_NOMEM;
    return op->name == NULL ? ebb_defer_site(cx, fn, state, site)
                            : ebb_region_defer_site(cx, r, fn, state, site);
}
