/* Orchestrations in tests: a store, activities and clients by script, in virtual time and on a runtime of their own.
 *
 * A *play* is one run of the whole: the orchestration and its children, each an instance with rows of its own. Every turn is
 * also fed to a second run with other paint. A play may be disturbed after turn n of the first instance: its run is
 * discarded (evicted; or a crash after the commit), its turn is run again (a crash before the commit), or it is
 * cancelled. Invariant: what is pending is in one list, ordered by time, then by the order of its making. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "durable/run.h"

enum { CHUNK = 16384, PAINT = 0xA5, TURNS_MOST = 10000 };
#define BEGIN (UINT64_C(1700000000) * EBB_SECOND)

typedef enum disturbance { PLAIN, EVICTED, CRASHED_BEFORE, CRASHED_AFTER, CANCELLED } disturbance;
static const char *const disturbances[] = {"the plain run", "evicted after turn",
                                           "crashed before the commit of turn",
                                           "crashed after the commit of turn", "cancelled after turn"};

typedef struct instance {
    struct instance *next;
    const char *id;
    ebb_orch_fn fn;
    ebb__orch_run *run, *shadow;
    ebb__list turns; /* ebb_provider_turn_row */
    uint64_t execution;
    bool ended;
    ebb_instance_state state;
    ebb__event end;
} instance;

/* A message on its way, or a row that will be one. */
typedef struct pending {
    struct pending *next;
    uint64_t at;
    instance *to;
    uint64_t execution, work, timer; /* work, timer: its row; 0: it is neither */
    bool runs_on;                    /* shielded work of an execution that has ended */
    ebb_provider_message message;
} pending;

typedef struct nth {
    const char *name;
    uint32_t n;
} nth;

typedef struct play {
    const ebb_orch_test_opts *opts;
    ebb_runtime *rt;
    ebb_cx *host;
    ebb_region region;
    ebb__arena arena;
    instance *first;
    pending *pendings;
    ebb__list calls; /* nth */
    uint64_t now;
    disturbance how;
    uint32_t after, turns;
    bool disturbed;
    char text[700]; /* what differed */
} play;

static ebb_status differs(play *p, const char *what) {
    if (p->text[0] == 0) (void)snprintf(p->text, sizeof p->text, "%s", what);
    return EBB_ERR_DIVERGED;
}

static void *list_add(play *p, ebb__list *l, size_t size) {
    if (l->n == l->room) {
        const size_t room = l->room != 0 ? 2 * l->room : 16;
        void *at = ebb__arena_alloc(&p->arena, room * size);
        if (at == NULL) return NULL;
        if (l->n != 0) memcpy(at, l->at, l->n * size);
        l->at = at;
        l->room = room;
    }
    return (char *)l->at + l->n++ * size;
}

static ebb_blob copied(play *p, ebb_blob b) {
    void *at = ebb__arena_alloc(&p->arena, b.n + 1);
    if (at != NULL && b.n != 0) memcpy(at, b.at, b.n);
    return (ebb_blob){at, b.n};
}

/* ---- what is pending --------------------------------------------------------------------------------------------- */

static bool put(play *p, pending with, const ebb__event *e) {
    pending *q = ebb__arena_alloc(&p->arena, sizeof *q);
    pending **at = &p->pendings;
    if (q == NULL) return false;
    *q = with;
    if (e != NULL) q->message.body = ebb__event_encode(&p->arena, e);
    if (e != NULL && q->message.body.at == NULL) return false;
    while (*at != NULL && (*at)->at <= q->at) at = &(*at)->next;
    q->next = *at;
    *at = q;
    return true;
}

static void drop(play *p, const instance *of, uint64_t work, uint64_t timer) {
    for (pending **at = &p->pendings; *at != NULL;) {
        const pending *q = *at;
        const bool is = q->to == of && ((work != 0 && q->work == work) || (timer != 0 && q->timer == timer));
        if (is) *at = q->next;
        else at = &(*at)->next;
    }
}

static void drop_all(play *p, const instance *of, bool work, bool timers) {
    for (pending **at = &p->pendings; *at != NULL;) {
        const pending *q = *at;
        if (q->to == of && ((work && q->work != 0) || (timers && q->timer != 0))) *at = q->next;
        else at = &(*at)->next;
    }
}

static bool has_rows(const play *p, const instance *of) {
    for (const pending *q = p->pendings; q != NULL; q = q->next) {
        if (q->to == of && ((q->work != 0 && !q->runs_on) || q->timer != 0)) return true;
    }
    return false;
}

/* ---- instances --------------------------------------------------------------------------------------------------------- */

static instance *find(const play *p, const char *id) {
    instance *i = p->first;
    while (i != NULL && strcmp(i->id, id) != 0) i = i->next;
    return i;
}

static ebb__orch_run *run_new(play *p, const instance *i, bool exact) {
    const ebb__orch_run_opts o = {.fn = i->fn,
                                  .version = 1,
                                  .id = i->id,
                                  .key = 1,
                                  .execution = i->execution,
                                  .region = p->region,
                                  .paint = exact ? PAINT : EBB__UNPAINTED,
                                  .exact = exact};
    return ebb__orch_run_new(p->host, &o);
}

static void discard(play *p, instance *i) {
    ebb__orch_run_free(p->host, i->run);
    ebb__orch_run_free(p->host, i->shadow);
    i->run = i->shadow = NULL;
}

static instance *instance_new(play *p, const char *id, ebb_orch_fn fn) {
    instance **at = &p->first;
    const ebb_blob copy = copied(p, (ebb_blob){id, strlen(id) + 1});
    instance *i = ebb__arena_zero(&p->arena, sizeof *i);
    if (i == NULL || copy.at == NULL) return NULL;
    i->id = copy.at;
    i->fn = fn;
    i->execution = 1;
    while (*at != NULL) at = &(*at)->next;
    *at = i;
    return i;
}

static ebb_status settle(play *p, const ebb__orch_run *r, ebb_status fed) {
    while (ebb_runtime_pump(p->rt, 1000) == EBB_PENDING) continue;
    return fed == EBB_OK ? ebb__orch_run_outcome(r) : fed;
}

/* A run that has seen all turns. */
static ebb_status warm(play *p, const instance *i, ebb__orch_run **run, bool exact) {
    const ebb_provider_turn_row *rows = i->turns.at;
    ebb_status st = EBB_OK;
    if (*run == NULL) *run = run_new(p, i, exact);
    if (*run == NULL) return EBB_ERR_NOMEM;
    for (size_t n = (size_t)ebb__orch_run_turns(*run); n < i->turns.n && st == EBB_OK; n++)
        st = settle(p, *run, ebb__orch_run_replay(p->host, *run, &rows[n]));
    return st;
}

/* ---- what a commit does --------------------------------------------------------------------------------------------------- */

static uint32_t count(play *p, const char *name) {
    nth *all = p->calls.at;
    for (size_t i = 0; i < p->calls.n; i++) {
        if (strcmp(all[i].name, name) == 0) return all[i].n++;
    }
    nth *one = list_add(p, &p->calls, sizeof *one);
    if (one != NULL) *one = (nth){copied(p, (ebb_blob){name, strlen(name) + 1}).at, 1};
    return 0;
}

static ebb__event answer_event(const ebb_provider_work *w, const ebb_test_call *c) {
    if (c->status == EBB_OK)
        return (ebb__event){.kind = EBB__EVENT_ACTIVITY_COMPLETED, .step = w->activity, .body = c->output};
    ebb__event e = {.kind = EBB__EVENT_ACTIVITY_FAILED,
                    .step = w->activity,
                    .status = c->status,
                    .details = c->failure.details};
    if (c->failure.code != NULL) e.code = ebb__text_of(c->failure.code);
    if (c->failure.message != NULL) e.text = ebb__text_of(c->failure.message);
    if (c->failure.final) e.flags = EBB__FLAG_FINAL;
    return e;
}

static bool call(play *p, instance *i, const ebb_provider_work *w) {
    ebb_test_call c = {.name = w->name, .input = w->input, .attempt = w->attempt, .nth = count(p, w->name)};
    if (p->opts->answer != NULL) p->opts->answer(p->opts->arg, &c);
    const ebb__event e = answer_event(w, &c);
    pending q = {.at = c.after == EBB_FOREVER ? EBB_FOREVER : p->now + c.after,
                 .to = i,
                 .execution = i->execution,
                 .work = w->activity};
    q.message = (ebb_provider_message){.at = {EBB_PROVIDER_MESSAGE_ACTIVITY, 0}, .step = w->activity};
    return put(p, q, &e);
}

static bool start_child(play *p, instance *from, const ebb_provider_outgoing *o) {
    ebb_orch_fn fn = p->opts->child != NULL ? p->opts->child(p->opts->arg, o->name) : NULL;
    const bool exists = find(p, o->id) != NULL;
    pending q = {.at = p->now};
    q.message.body = copied(p, exists ? o->exists : o->body);
    q.message.at.kind = exists ? EBB_PROVIDER_MESSAGE_CHILD : EBB_PROVIDER_MESSAGE_START;
    q.to = exists ? from : fn != NULL ? instance_new(p, o->id, fn) : NULL;
    if (!exists && fn == NULL) return true; /* nobody can run it: it waits for ever */
    return q.to != NULL && q.message.body.at != NULL && put(p, q, NULL);
}

static bool send(play *p, instance *from, const ebb_provider_outgoing *o) {
    if (o->kind == EBB_PROVIDER_MESSAGE_START) return start_child(p, from, o);
    pending q = {.at = p->now, .to = find(p, o->id)};
    if (q.to == NULL || q.to->ended) return true;
    q.message =
        (ebb_provider_message){.at = {(uint8_t)o->kind, 0}, .step = o->step, .body = copied(p, o->body)};
    return q.message.body.at != NULL && put(p, q, NULL);
}

static bool begin_next(play *p, instance *i, const ebb_provider_ack_turn_call *a) {
    discard(p, i);
    i->execution++;
    i->turns = (ebb__list){NULL, 0, 0};
    pending q = {.at = p->now, .to = i, .execution = i->execution};
    q.message = (ebb_provider_message){.at = {EBB_PROVIDER_MESSAGE_START, 0}, .body = copied(p, *a->next)};
    return put(p, q, NULL);
}

/* The turn says which work outlives its execution. */
static void leave_shielded(play *p, const instance *i, ebb_blob body) {
    ebb__event_reader r;
    ebb__event e;
    if (ebb__event_reader_open(&r, body) != EBB_OK) return;
    while (ebb__event_read(&r, &e) == EBB_OK) {
        if (e.kind != EBB__EVENT_STEP_CANCELLED || e.cause != EBB__CAUSE_SHIELDED) continue;
        for (pending *q = p->pendings; q != NULL; q = q->next)
            q->runs_on |= q->to == i && q->work == e.step && q->execution == i->execution;
    }
}

static bool apply(play *p, instance *i, const ebb_provider_ack_turn_call *a) {
    bool ok = true;
    for (size_t k = 0; k < a->cancelled_n; k++) drop(p, i, a->cancelled[k].activity, 0);
    for (size_t k = 0; k < a->timers_cancelled_n; k++) drop(p, i, 0, a->timers_cancelled[k]);
    for (size_t k = 0; k < a->work_n && ok; k++) ok = call(p, i, &a->work[k]);
    for (size_t k = 0; k < a->timers_n && ok; k++) {
        pending q = {
            .at = a->timers[k].due - BEGIN, .to = i, .execution = i->execution, .timer = a->timers[k].step};
        q.message = (ebb_provider_message){.at = {EBB_PROVIDER_MESSAGE_TIMER, q.timer}, .step = q.timer};
        ok = put(p, q, NULL);
    }
    for (size_t k = 0; k < a->outgoing_n && ok; k++) ok = send(p, i, &a->outgoing[k]);
    drop_all(p, i, a->all_work, a->all_timers);
    leave_shielded(p, i, a->body);
    return ok && (a->next == NULL || begin_next(p, i, a));
}

/* ---- a turn ------------------------------------------------------------------------------------------------------------------ */

/* Takes what is due for the same instance as the first. NULL: no memory. */
static ebb_provider_message *take_due(play *p, instance *to, size_t *n) {
    ebb__list all = {NULL, 0, 0};
    *n = 0;
    for (pending **at = &p->pendings; *at != NULL && (*at)->at <= p->now;) {
        const pending *q = *at;
        if (q->to != to) {
            at = &(*at)->next;
            continue;
        }
        *at = q->next;
        if (to->ended || (q->execution != 0 && q->execution != to->execution)) continue;
        ebb_provider_message *m = list_add(p, &all, sizeof *m);
        if (m == NULL) return NULL;
        *m = q->message;
    }
    *n = all.n;
    return all.at;
}

static bool is_hit(const play *p, disturbance how) {
    return p->how == how && !p->disturbed && p->turns == p->after;
}

static ebb_status run_turn(play *p, instance *i, const ebb_provider_message *messages, size_t n,
                           ebb_provider_ack_turn_call *a) {
    ebb_status st = warm(p, i, &i->run, false);
    if (st == EBB_OK)
        st = settle(p, i->run, ebb__orch_run_turn(p->host, i->run, BEGIN + p->now, messages, n));
    if (st == EBB_OK) st = ebb__orch_run_commit(i->run, a);
    if (st == EBB_ERR_NONDETERMINISM) return differs(p, ebb__orch_run_difference(i->run));
    return st;
}

static ebb_status doubled(play *p, instance *i) {
    const ebb_status st = warm(p, i, &i->shadow, true);
    return st == EBB_ERR_NONDETERMINISM ? differs(p, ebb__orch_run_difference(i->shadow)) : st;
}

static ebb_status keep_end(play *p, instance *i, const ebb_provider_ack_turn_call *a) {
    ebb__event_reader r;
    i->ended = true;
    i->state = a->ends;
    ebb__event_reader_list(&r, copied(p, a->result));
    return ebb__event_read(&r, &i->end);
}

static bool cancel(play *p, instance *i, const char *reason, size_t n, uint64_t at) {
    const ebb__event e = {.kind = EBB__EVENT_CANCEL_REQUESTED, .text = {reason, n}};
    pending q = {.at = at, .to = i};
    q.message.at.kind = EBB_PROVIDER_MESSAGE_CANCEL;
    return put(p, q, &e);
}

static ebb_status commit(play *p, instance *i, const ebb_provider_ack_turn_call *a) {
    const bool first = i == p->first;
    ebb_provider_turn_row *row = list_add(p, &i->turns, sizeof *row);
    if (row == NULL) return EBB_ERR_NOMEM;
    *row = (ebb_provider_turn_row){i->execution, a->turn, a->at, copied(p, a->body)};
    if (row->body.at == NULL) return EBB_ERR_NOMEM;
    ebb_status st = doubled(p, i);
    if (st != EBB_OK) return st;
    if (a->ends != 0) st = keep_end(p, i, a);
    if (st != EBB_OK || !apply(p, i, a)) return st != EBB_OK ? st : EBB_ERR_NOMEM;
    if (first && (is_hit(p, EVICTED) || is_hit(p, CRASHED_AFTER))) {
        discard(p, i);
        p->disturbed = true;
    } else if (first && is_hit(p, CANCELLED)) {
        p->disturbed = true;
        if (!i->ended && !cancel(p, i, "of the test", 11, p->now)) return EBB_ERR_NOMEM;
    }
    if (i->ended) discard(p, i);
    return EBB_OK;
}

static ebb_status turn(play *p, instance *i) {
    size_t n;
    ebb_provider_ack_turn_call a = {.turn = 0};
    const ebb_provider_message *messages = take_due(p, i, &n);
    if (messages == NULL) return n == 0 ? EBB_OK : EBB_ERR_NOMEM;
    if (i == p->first && ++p->turns > TURNS_MOST) return differs(p, "it has 10,000 turns and does not end");
    ebb_status st = run_turn(p, i, messages, n, &a);
    if (st == EBB_OK && i == p->first && is_hit(p, CRASHED_BEFORE)) {
        discard(p, i);
        p->disturbed = true;
        a = (ebb_provider_ack_turn_call){.turn = 0};
        st = run_turn(p, i, messages, n, &a);
    }
    return st == EBB_OK ? commit(p, i, &a) : st;
}

/* ---- a play -------------------------------------------------------------------------------------------------------------------- */

static bool put_signals(play *p) {
    for (size_t k = 0; k < p->opts->signals_n; k++) {
        const ebb_test_signal *g = &p->opts->signals[k];
        const ebb__event e = {.kind = EBB__EVENT_SIGNALLED,
                              .name = ebb__text_of(g->name != NULL ? g->name : ""),
                              .body = g->body};
        pending q = {.at = g->at, .to = p->first};
        q.message.at.kind = EBB_PROVIDER_MESSAGE_SIGNAL;
        if (g->name == NULL ? !cancel(p, p->first, g->body.at, g->body.n, g->at) : !put(p, q, &e))
            return false;
    }
    return true;
}

static bool begin(play *p) {
    ebb__event e = {.kind = EBB__EVENT_STARTED, .name = {"test", 4}, .body = p->opts->input};
    memset(e.seed.at, 0x5E, sizeof e.seed.at);
    instance *i = instance_new(p, "test", p->opts->fn);
    pending q = {.to = i, .execution = 1};
    q.message.at.kind = EBB_PROVIDER_MESSAGE_START;
    return i != NULL && put(p, q, &e) && put_signals(p);
}

static ebb_status play_new(play *p, const ebb_orch_test_opts *opts, disturbance how, uint32_t after) {
    *p = (play){.opts = opts, .how = how, .after = after};
    ebb__arena_init(&p->arena, opts->allocator, CHUNK);
    ebb_status st = ebb_runtime_new(&(ebb_runtime_opts){.allocator = opts->allocator}, &p->rt);
    if (st != EBB_OK) return st;
    p->host = ebb_runtime_host(p->rt);
    p->region = ebb_region_open(p->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    st = ebb_id_status(p->region.id);
    return st == EBB_OK && !begin(p) ? EBB_ERR_NOMEM : st;
}

static void play_free(play *p) {
    for (instance *i = p->first; i != NULL; i = i->next) discard(p, i);
    ebb_runtime_free(p->rt);
    ebb__arena_free(&p->arena);
}

/* Until nothing will come. */
static ebb_status play_on(play *p) {
    ebb_status st = EBB_OK;
    while (st == EBB_OK && p->pendings != NULL && p->pendings->at != EBB_FOREVER) {
        if (p->pendings->at > p->now) p->now = p->pendings->at;
        st = turn(p, p->pendings->to);
    }
    return st;
}

/* ---- compared ----------------------------------------------------------------------------------------------------------------------- */

static bool same_turns(const instance *a, const instance *b) {
    const ebb_provider_turn_row *x = a->turns.at, *y = b->turns.at;
    if (strcmp(a->id, b->id) != 0 || a->turns.n != b->turns.n || a->execution != b->execution) return false;
    for (size_t i = 0; i < a->turns.n; i++) {
        if (x[i].at != y[i].at || x[i].body.n != y[i].body.n ||
            memcmp(x[i].body.at, y[i].body.at, x[i].body.n) != 0)
            return false;
    }
    return true;
}

static bool same(const play *a, const play *b) {
    const instance *x = a->first, *y = b->first;
    while (x != NULL && y != NULL && same_turns(x, y)) {
        x = x->next;
        y = y->next;
    }
    return x == NULL && y == NULL;
}

static ebb_status check_cancelled(play *p) {
    for (const instance *i = p->first; i != NULL; i = i->next) {
        if (!i->ended && i == p->first) return differs(p, "it does not end");
        if (i->ended && has_rows(p, i)) return differs(p, "it leaves rows behind");
    }
    return EBB_OK;
}

static ebb_status disturbed(const ebb_orch_test_opts *opts, const play *plain, disturbance how,
                            uint32_t after, char text[700]) {
    play p;
    ebb_status st = play_new(&p, opts, how, after);
    if (st == EBB_OK) st = play_on(&p);
    if (st == EBB_OK && how == CANCELLED) st = check_cancelled(&p);
    else if (st == EBB_OK && !same(plain, &p)) st = differs(&p, "the histories differ");
    if (st == EBB_ERR_DIVERGED) (void)snprintf(text, 700, "%s %u: %.600s", disturbances[how], after, p.text);
    if (p.rt != NULL) play_free(&p);
    else ebb__arena_free(&p.arena);
    return st;
}

/* ---- the result ---------------------------------------------------------------------------------------------------------------------- */

static const char *text_new(const ebb_orch_test_opts *o, const char *at, size_t n) {
    char *to = ebb__alloc(&o->allocator, n + 1);
    if (to == NULL) return NULL;
    if (n != 0) memcpy(to, at, n);
    to[n] = 0;
    return to;
}

static const char *history_of(play *p, const instance *i) {
    const ebb_provider_turn_row *rows = i->turns.at;
    ebb__list text = {NULL, 0, 0};
    for (size_t n = 0; n < i->turns.n; n++) {
        ebb__event_reader r;
        ebb__event e;
        if (ebb__event_reader_open(&r, rows[n].body) != EBB_OK) break;
        while (ebb__event_read(&r, &e) == EBB_OK) {
            char line[400];
            const size_t said = ebb__event_say(&e, line, sizeof line - 1);
            line[said] = '\n';
            for (size_t k = 0; k <= said; k++) {
                char *to = list_add(p, &text, 1);
                if (to == NULL) return NULL;
                *to = line[k];
            }
        }
    }
    return text_new(p->opts, text.at, text.n);
}

static ebb_status tell(play *p, ebb_orch_test_result *out) {
    const instance *i = p->first;
    out->state = i->ended ? i->state : EBB_INSTANCE_RUNNING;
    out->status = !i->ended ? EBB_PENDING : i->state == EBB_INSTANCE_FAILED ? i->end.status : EBB_OK;
    if (i->ended && (i->state == EBB_INSTANCE_CANCELLED || i->state == EBB_INSTANCE_TERMINATED))
        out->status = EBB_CANCELLED;
    out->turns = p->turns;
    out->output_n = i->ended && i->state == EBB_INSTANCE_COMPLETED ? i->end.body.n : 0;
    out->output = text_new(p->opts, i->end.body.at, out->output_n);
    out->history = history_of(p, i);
    return out->output != NULL && out->history != NULL ? EBB_OK : EBB_ERR_NOMEM;
}

static ebb_status play_all(const ebb_orch_test_opts *o, play *plain, ebb_orch_test_result *out,
                           char text[700]) {
    ebb_status st = play_on(plain);
    out->runs = 1;
    if (st == EBB_ERR_DIVERGED) (void)snprintf(text, 700, "%s: %.600s", disturbances[PLAIN], plain->text);
    if (st == EBB_OK || st == EBB_ERR_DIVERGED) {
        const ebb_status told = tell(plain, out);
        if (told != EBB_OK) st = told;
    }
    for (uint32_t n = 1; !o->plain_only && n <= plain->turns; n++) {
        for (disturbance how = EVICTED; st == EBB_OK && how <= CANCELLED; how++, out->runs++)
            st = disturbed(o, plain, how, n, text);
    }
    return st;
}

ebb_status ebb_orch_test(const ebb_orch_test_opts *opts, ebb_orch_test_result *out) {
    ebb_orch_test_opts o;
    play plain;
    char text[700] = "";
    memset(out, 0, sizeof *out);
    if (opts == NULL) return ebb__durable_say(EBB_ERR_INVALID, "a test needs its options");
    ebb_status st = EBB__OPTS_COPY(&o, opts);
    if (st == EBB_OK && (o.fn == NULL || o.allocator.fn == NULL))
        st = ebb__durable_say(EBB_ERR_INVALID, "a test needs an orchestration and an allocator");
    if (st != EBB_OK) return st;
    st = play_new(&plain, &o, PLAIN, 0);
    if (st == EBB_OK) st = play_all(&o, &plain, out, text);
    if (plain.rt != NULL) play_free(&plain);
    else ebb__arena_free(&plain.arena);
    out->difference = text_new(&o, text, strlen(text));
    return out->difference != NULL ? st : EBB_ERR_NOMEM;
}

static void text_free(const ebb_allocator *a, const char *text, size_t n) {
    union {
        const char *from;
        void *to;
    } u = {text};
    ebb__free(a, u.to, n + 1);
}

void ebb_orch_test_free(const ebb_orch_test_opts *opts, ebb_orch_test_result *r) {
    if (r->output != NULL) text_free(&opts->allocator, r->output, r->output_n);
    if (r->history != NULL) text_free(&opts->allocator, r->history, strlen(r->history));
    if (r->difference != NULL) text_free(&opts->allocator, r->difference, strlen(r->difference));
    memset(r, 0, sizeof *r);
}
