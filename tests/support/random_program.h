/* A program that does anything the API allows, as a source of bytes tells it: for the replay's tests and
 * fuzzing. Every task keeps the API's rules (one wait in use at a time, memory that outlives it); what
 * ids it uses, in which order, and what it returns are random. */
#ifndef EBB_TESTS_RANDOM_PROGRAM_H
#define EBB_TESTS_RANDOM_PROGRAM_H

#include <string.h>

#include "kernel/layer.h"
#include "sched/pump.h"
#include <ebb/ebb.h>

enum { IDS = 24, NODES = 400 };

/* Bytes from memory, zeros after the last; or from a seed without end. */
typedef struct byte_source {
    const uint8_t *at, *end;
    uint64_t seed;
} byte_source;

typedef struct bytes {
    uint8_t *p;
    size_t n, room;
} bytes;

typedef struct world world;

/* One task, finalizer or hook. What it waits for is `await`. */
typedef struct node {
    world *w;
    ebb_cx *cx; /* of the task that made it, for its abort hook; NULL: the host's */
    int await;
    ebb_sleeper nap;
    ebb_wait wait;
    ebb_region region;
    ebb_task task;
    uint64_t item;
    ebb_obligation permit;
    int polls;
    bool stubborn; /* does not end, whatever it is told */
} node;

struct world {
    byte_source src;
    ebb_runtime *rt;
    ebb_chan *chan;
    ebb_sem sem;
    uint64_t now;
    uint64_t task[IDS], region[IDS], obligation[IDS], timer[IDS];
    uint32_t tasks, regions, obligations, timers; /* made so far; the last IDS are known */
    node nodes[NODES];
    uint32_t n_nodes;
    int ops, max_ops;
    int hooks; /* nested calls of abort hooks */
};

static inline void bytes_add(void *ctx, const void *p, size_t n) {
    bytes *b = ctx;
    if (b->n + n > b->room) {
        b->room = (b->n + n) * 2;
        b->p = realloc(b->p, b->room);
        if (b->p == NULL) abort();
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

static inline uint8_t next_byte(byte_source *s) {
    if (s->at != NULL) return s->at == s->end ? 0 : *s->at++;
    s->seed += 0x9e3779b97f4a7c15u;
    uint64_t z = s->seed;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint8_t)(z >> 56);
}

/* Never two of these in one expression: their order would be the compiler's. */
static inline uint32_t pick(world *w, uint32_t n) {
    return next_byte(&w->src) % n;
}

/* One that was made once, or an id of nothing: 0, foreign, an error. */
static inline uint64_t some_id(world *w, const uint64_t *ids, uint32_t made) {
    static const uint64_t odd[] = {0, (uint64_t)200 << 56 | (uint64_t)1 << 32 | 1, (uint64_t)14 << 32,
                                   (uint64_t)7 << 56 | (uint64_t)9999 << 32 | 3};
    uint32_t k = pick(w, 240);
    uint32_t known = made < IDS ? made : IDS;
    if (known == 0 || k >= 230) return odd[k % 4];
    if (k % 2) return ids[(made - 1 - k / 2 % (known < 4 ? known : 4)) % IDS]; /* one of the last */
    return ids[k % known];
}

/* Mostly what names something. */
static inline void remember(world *w, uint64_t *ids, uint32_t *made, uint64_t id) {
    if (ebb_id_status(id) == EBB_OK || pick(w, 8) == 0) ids[(*made)++ % IDS] = id;
}

static inline ebb_task some_task(world *w) {
    return (ebb_task){some_id(w, w->task, w->tasks)};
}

static inline ebb_region some_region(world *w) {
    if (pick(w, 3) == 0) return ebb_runtime_root(w->rt);
    return (ebb_region){some_id(w, w->region, w->regions)};
}

/* The end of the root is the end of the program: not often. */
static inline ebb_region some_target(world *w) {
    ebb_region r = some_region(w);
    if (r.id == ebb_runtime_root(w->rt).id && pick(w, 20) != 0) r.id = some_id(w, w->region, w->regions);
    return r;
}

static inline node *new_node(world *w, ebb_cx *cx) {
    if (w->n_nodes == NODES) return NULL;
    node *n = &w->nodes[w->n_nodes++];
    *n = (node){.w = w, .cx = cx, .stubborn = pick(w, 12) == 0};
    return n;
}

static inline uint64_t soon(world *w) {
    return w->now + (uint64_t)pick(w, 200) * 17 * EBB_MS;
}

static inline const char *some_text(world *w) {
    static const char *const texts[] = {NULL, "", "short", "exactly twenty-four byte",
                                        "a message that is longer than the forty-seven bytes of a reason"};
    return texts[pick(w, 5)];
}

static inline void any_op(world *w, ebb_cx *cx, bool may_wait);

static inline void on_abort(void *arg) {
    node *n = arg;
    world *w = n->w;
    if (w->hooks == 3) return;
    w->hooks++;
    ebb_cx *cx = n->cx != NULL ? n->cx : ebb_runtime_host(w->rt);
    if (pick(w, 2) == 0) (void)ebb_task_wake(cx, some_task(w));
    if (pick(w, 3) == 0) any_op(w, ebb_runtime_host(w->rt), false);
    w->hooks--;
}

static inline void on_closed(void *arg, const ebb_region_report *report) {
    node *n = arg;
    (void)report;
    if (pick(n->w, 2) == 0) any_op(n->w, ebb_runtime_host(n->w->rt), false);
}

/* ---- what a task does ------------------------------------------------------------------------- */

enum { NOTHING, SLEEP, SEND, RECV, ACQUIRE, PLACE, JOIN_REGION, JOIN_TASK, AWAITS };

static inline ebb_status some_status(world *w) {
    static const ebb_status ends[] = {EBB_FAILED, EBB_CANCELLED, EBB_FAULTED, (ebb_status)-1234, EBB_TIMEOUT};
    uint32_t k = pick(w, 20);
    return k < 5 ? ends[k] : EBB_OK;
}

static inline ebb_status go_on_waiting(node *n, ebb_cx *cx) {
    world *w = n->w;
    switch (n->await) {
    case SLEEP: return ebb_sleep(cx, &n->nap, (uint64_t)(n->item % 100) * 10 * EBB_MS);
    case SEND: return ebb_chan_send(cx, w->chan, &n->wait, &n->item);
    case RECV: return ebb_chan_recv(cx, w->chan, &n->wait, &n->item);
    case ACQUIRE: return ebb_sem_acquire(cx, &w->sem, &n->wait);
    case PLACE: return ebb_chan_reserve(cx, w->chan, &n->wait, &n->permit);
    case JOIN_REGION: return ebb_region_join(cx, n->region);
    case JOIN_TASK: return ebb_task_join(cx, n->task);
    default: return EBB_OK;
    }
}

static inline void waited(node *n, ebb_cx *cx, ebb_status st) {
    world *w = n->w;
    if (n->await == ACQUIRE && st == EBB_OK && pick(w, 4) != 0) ebb_sem_release(cx, &w->sem);
    if (n->await == PLACE && st == EBB_OK) {
        uint32_t k = pick(w, 4);
        if (k == 0) (void)ebb_obligation_abort(cx, n->permit);
        else if (k == 1) remember(w, w->obligation, &w->obligations, n->permit.id);
        else (void)ebb_chan_send_reserved(cx, w->chan, n->permit, &n->item);
    }
    n->await = NOTHING;
}

static inline ebb_status step(ebb_cx *cx, node *n) {
    world *w = n->w;
    bool patient = ++n->polls < 30 && w->ops < w->max_ops;
    if (n->stubborn && n->await == NOTHING && n->polls > 3) return EBB_PENDING;
    if (n->await != NOTHING) {
        ebb_status st = go_on_waiting(n, cx);
        if (st == EBB_PENDING && patient && pick(w, 12) != 0) return EBB_PENDING;
        if (st == EBB_PENDING) return some_status(w); /* with its wait in use */
        waited(n, cx, st);
    }
    for (uint32_t k = pick(w, 4); k > 0; k--) any_op(w, cx, true);
    if (patient && pick(w, 2) == 0) {
        n->await = (int)pick(w, AWAITS);
        n->item = pick(w, 256);
        n->region = some_region(w);
        n->task = some_task(w);
        ebb_status st = go_on_waiting(n, cx);
        if (st == EBB_PENDING) return EBB_PENDING;
        waited(n, cx, st);
    }
    if (ebb_checkpoint(cx) == EBB_CANCELLED && !n->stubborn && pick(w, 3) != 0) return EBB_CANCELLED;
    if (patient && pick(w, 3) != 0) {
        if (pick(w, 4) != 0) (void)ebb_task_wake(cx, ebb_cx_task(cx));
        return EBB_PENDING;
    }
    return some_status(w);
}

static inline ebb_status task_poll(ebb_cx *cx, void *state) {
    return step(cx, state);
}

/* A finalizer is a task that may also clean up in a scope of its own. */
static inline ebb_status finalizer_poll(ebb_cx *cx, void *arg) {
    node *n = arg;
    if (n->polls == 0 && pick(n->w, 3) == 0) {
        ebb_region r = ebb_region_open(cx, &(ebb_region_opts){.cleanup = true});
        remember(n->w, n->w->region, &n->w->regions, r.id);
        node *child = new_node(n->w, NULL);
        if (child != NULL) (void)ebb_spawn(cx, r, task_poll, child);
        n->await = JOIN_REGION;
        n->region = r;
    }
    return step(cx, n);
}

/* ---- every operation --------------------------------------------------------------------------- */

static inline void op_open(world *w, ebb_cx *cx) {
    node *n = new_node(w, NULL);
    ebb_region_opts o = {.policy = pick(w, 2) ? EBB_FAIL_COLLECT : EBB_FAIL_FAST};
    o.priority = (uint8_t)pick(w, 4);
    if (pick(w, 2)) o.parent = some_region(w);
    if (pick(w, 3) == 0) o.deadline = soon(w);
    if (pick(w, 4) == 0) o.cleanup = ebb_cancelled(cx) || pick(w, 4) == 0;
    if (pick(w, 20) == 0) o.policy = (ebb_failure_policy)9;
    if (pick(w, 40) == 0) o.size = 3;
    if (n != NULL && pick(w, 4) == 0) {
        o.on_closed = on_closed;
        o.arg = n;
    }
    ebb_region r = ebb_region_open(cx, pick(w, 5) == 0 ? NULL : &o);
    remember(w, w->region, &w->regions, r.id);
}

static inline void op_spawn(world *w, ebb_cx *cx) {
    node *n = new_node(w, NULL);
    if (n == NULL) return;
    ebb_region r = some_region(w);
    ebb_task_opts o = {.keep = pick(w, 2) != 0};
    o.priority = (uint8_t)pick(w, 3);
    if (pick(w, 3) == 0) o.deadline = soon(w);
    if (pick(w, 4) == 0) o.polls = 1 + pick(w, 9);
    if (pick(w, 40) == 0) o.size = 3;
    ebb_poll_fn poll = pick(w, 20) == 0 ? NULL : task_poll;
    ebb_task t = pick(w, 2) ? ebb_spawn(cx, r, poll, n) : ebb_spawn(cx, r, poll, n, &o);
    remember(w, w->task, &w->tasks, t.id);
}

static inline void op_reserve(world *w, ebb_cx *cx) {
    bool own = pick(w, 2) != 0;
    node *n = new_node(w, own && cx != ebb_runtime_host(w->rt) ? cx : NULL);
    if (n == NULL) return;
    ebb_obligation_kind kind = (ebb_obligation_kind)pick(w, 8);
    void (*hook)(void *) = pick(w, 3) == 0 ? NULL : on_abort;
    ebb_obligation o = own ? ebb_obligation_reserve(cx, kind, hook, n)
                           : ebb_region_reserve(cx, some_region(w), kind, hook, n);
    remember(w, w->obligation, &w->obligations, o.id);
}

static inline void op_defer(world *w, ebb_cx *cx) {
    node *n = new_node(w, NULL);
    if (n == NULL) return;
    ebb_poll_fn fn = pick(w, 10) == 0 ? NULL : finalizer_poll;
    if (pick(w, 2)) (void)ebb_defer(cx, fn, n);
    else (void)ebb_region_defer(cx, some_region(w), fn, n);
}

static inline void op_receive(world *w) {
    ebb_msg m = {.verb = (ebb_msg_verb)pick(w, 7), .message = "from afar"};
    m.kind = (ebb_cancel_kind)pick(w, 12);
    m.word = pick(w, 256);
    m.to_region = pick(w, 2) != 0;
    m.target = m.to_region ? some_target(w).id : some_task(w).id;
    (void)ebb_msg_deliver(w->rt, &m);
}

static inline void op_cancel(world *w, ebb_cx *cx) {
    ebb_cancel_kind kind = (ebb_cancel_kind)pick(w, 12);
    ebb_region r = some_target(w);
    switch (pick(w, 9)) {
    case 0: ebb_region_close(cx, r); break;
    case 1:
    case 2: ebb_region_cancel(cx, r, kind, some_text(w)); break;
    case 3: {
        ebb_budget b = {.deadline = soon(w)};
        b.polls = 1 + pick(w, 9);
        b.priority = (uint8_t)pick(w, 4);
        ebb_region_cancel_within(cx, r, kind, some_text(w), b);
        break;
    }
    case 4: ebb_region_force(cx, r); break;
    case 5: ebb_task_force(cx, some_task(w)); break;
    case 6: (void)ebb__task_discard(cx, some_task(w)); break;
    default: {
        ebb_task t = some_task(w);
        ebb_task_cancel(cx, t, kind, some_text(w));
        break;
    }
    }
}

static inline void op_look(world *w, ebb_cx *cx) {
    ebb_region_cause chain[EBB_CHAIN_DEPTH];
    uint32_t n;
    bool cut;
    ebb_task_info info;
    ebb_region r = some_region(w);
    (void)ebb_region_causes(cx, r, chain, 1 + pick(w, 3), &n, &cut);
    (void)ebb_task_info_of(cx, some_task(w), &info);
}

static inline void any_op(world *w, ebb_cx *cx, bool may_wait) {
    if (w->ops++ >= w->max_ops) return;
    switch (pick(w, 22)) {
    case 0:
    case 1: op_open(w, cx); break;
    case 2:
    case 3:
    case 4:
    case 5: op_spawn(w, cx); break;
    case 6:
    case 7: op_reserve(w, cx); break;
    case 8:
        (void)ebb_obligation_commit(cx, (ebb_obligation){some_id(w, w->obligation, w->obligations)});
        break;
    case 9:
        (void)ebb_obligation_abort(cx, (ebb_obligation){some_id(w, w->obligation, w->obligations)});
        break;
    case 10: op_defer(w, cx); break;
    case 11: op_cancel(w, cx); break;
    case 12: (void)ebb_task_wake(cx, some_task(w)); break;
    case 13: {
        ebb_task t = some_task(w);
        remember(w, w->timer, &w->timers, ebb_timer_arm(cx, t, soon(w)).id);
        break;
    }
    case 14: (void)ebb_timer_disarm(cx, (ebb_timer){some_id(w, w->timer, w->timers)}); break;
    case 15:
        if (may_wait) (void)(pick(w, 3) ? ebb_mask(cx) : ebb_unmask(cx));
        break;
    case 16: op_receive(w); break;
    case 17: op_look(w, cx); break;
    case 18: {
        uint32_t turn = 1 + pick(w, 5);
        ebb_runtime_set_turn(w->rt, turn, 1 + pick(w, 3));
        break;
    }
    case 19: ebb_sem_release(cx, &w->sem); break;
    case 20:
        if (pick(w, 10) == 0) ebb_chan_close(cx, w->chan);
        break;
    default:
        if (cx == ebb_runtime_host(w->rt)) {
            (void)ebb_region_join(cx, some_region(w));
            (void)ebb_task_join(cx, some_task(w));
        } else {
            (void)ebb_runtime_pump(w->rt, 3);
        }
    }
}

/* ---- the host ---------------------------------------------------------------------------------- */

static inline uint32_t any_choice(void *ctx, uint32_t n) {
    return pick(ctx, n);
}

typedef struct program_opts {
    byte_source src;
    int max_ops;
    ebb_allocator allocator;
    void (*started)(void *ctx); /* recording has begun; NULL: nobody is told */
    void *ctx;
} program_opts;

static inline void play(world *w, bytes *trace, bytes *journal) {
    for (int i = 0; i < 3; i++) op_open(w, ebb_runtime_host(w->rt));
    for (int i = 0; i < 8; i++) op_spawn(w, ebb_runtime_host(w->rt));
    for (uint32_t round = 30 + pick(w, 40); round > 0; round--) {
        for (uint32_t k = pick(w, 4); k > 0; k--) any_op(w, ebb_runtime_host(w->rt), false);
        uint64_t span = pick(w, 60);
        w->now += span * (pick(w, 10) == 0 ? 100 : 3) * EBB_MS;
        ebb_runtime_advance(w->rt, w->now);
        (void)ebb_runtime_pump(w->rt, 1 + pick(w, 30));
        if (pick(w, 4) == 0) ebb_trace_take(w->rt, false, bytes_add, trace);
        if (pick(w, 4) == 0) ebb_journal_take(w->rt, false, bytes_add, journal);
    }
    ebb_region_cancel(ebb_runtime_host(w->rt), ebb_runtime_root(w->rt), EBB_CANCEL_SHUTDOWN, "over");
    for (int i = 0; i < 20; i++) {
        w->now += 150 * EBB_MS;
        ebb_runtime_advance(w->rt, w->now);
        (void)ebb_runtime_pump(w->rt, 500);
    }
}

static inline ebb_cleanup_budget some_cleanup(world *w, uint32_t polls) {
    ebb_cleanup_budget b = {.time_ns = pick(w, 200) * EBB_MS};
    b.polls = pick(w, polls);
    return b;
}

/* Runs a program and records it. False if the runtime could not be made. The bytes are the caller's. */
static inline bool run_program(const program_opts *o, bytes *trace, bytes *journal) {
    world *w = calloc(1, sizeof *w);
    if (w == NULL) abort();
    w->src = o->src;
    w->max_ops = o->max_ops;
    w->now = (uint64_t)pick(w, 100) * 7777777;
    ebb_runtime_opts opts = {.allocator = o->allocator, .runtime_id = 7, .now = w->now};
    if (pick(w, 3) == 0) opts.max_tasks = 4 + pick(w, 30);
    if (pick(w, 3) == 0) opts.max_regions = 2 + pick(w, 8);
    if (pick(w, 2) == 0) opts.cleanup[EBB_SEVERITY_POLITE] = some_cleanup(w, 20);
    if (pick(w, 2) == 0) opts.cleanup[EBB_SEVERITY_FORCED] = some_cleanup(w, 9);
    bool ok = ebb_runtime_new(&opts, &w->rt) == EBB_OK;
    ok = ok && ebb_chan_new(w->rt, 1 + pick(w, 2), sizeof(uint64_t), &w->chan) == EBB_OK;
    ebb_sem_init(&w->sem, pick(w, 2));
    bool trace_first = pick(w, 2) != 0;
    ok = ok && (!trace_first || ebb_trace_start(w->rt, 1 << 18) == EBB_OK);
    ok = ok && ebb_journal_start(w->rt, 1 << 18) == EBB_OK;
    ok = ok && (trace_first || ebb_trace_start(w->rt, 1 << 18) == EBB_OK);
    if (ok && pick(w, 2)) ebb__set_chooser(w->rt, any_choice, w);
    if (ok && o->started != NULL) o->started(o->ctx);
    if (ok) {
        play(w, trace, journal);
        ebb_trace_take(w->rt, true, bytes_add, trace);
        ebb_journal_take(w->rt, true, bytes_add, journal);
    }
    if (w->rt != NULL) ebb_chan_free(w->chan);
    ebb_runtime_free(w->rt);
    free(w);
    return ok;
}

#endif
