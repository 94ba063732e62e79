/* Random graphs of futures and objects in several regions, with collections in small steps in between,
 * against a table that knows what must be there.
 *
 * The table has every handle that the program holds and every object that it was given. What these refer to
 * is read from the heap itself, so whatever was freed too early or written over is met on the way. When
 * everything has come to rest, what was not met must have been freed, each once. EBB_HEAP_SEED and
 * EBB_HEAP_EPISODES choose what and how much; with EBB_HEAP_SOAK it goes on for EBB_SOAK_SECONDS. */
#include "tests/future/heap_world.h"

#include <stdio.h>
#include <time.h>

#include "future/promise.h"

enum { REGIONS = 4, OBJECTS = 600, FUTURES = 1500, WAITERS = 100, OPS = 500 };

typedef struct model model;

/* An object that the program has made. `freed` is where the object itself counts its end. */
typedef struct m_object {
    uint32_t freed;
    heap_object *at;   /* NULL: it is gone */
    int held[REGIONS]; /* how often each region holds it */
    bool shared;       /* it was given to several; a move need not let go of it then: it may linger */
    bool reached;      /* by the last walk, from what the program holds */
    uint32_t met;      /* by the walk of this number */
} m_object;

/* A future that the program has made. Its name is its site: so the heap tells which one it is. */
typedef struct m_future {
    char name[16];
    model *m;
    ebb_future *at;
    int region;
    int uses; /* handles that the program has left */
    bool is_promise, op, settled;
    bool reached;             /* by the last walk, not only as what has a producer */
    bool pending;             /* before the last steps of a collection */
    bool has_cleanup, forced; /* of a region that was forced: its callbacks need not run */
    uint32_t cleanups;
    ebb_remote *remote;
    uint32_t met;
} m_future;

typedef struct m_region {
    model *m;
    bool open, forced;
    ebb_region id;
    ebb_task actor;
    int todo; /* operations that its actor has to do */
} m_region;

typedef struct m_waiter {
    m_region *region;
    m_future *of;
    ebb_value value;
    bool waits;
} m_waiter;

struct model {
    heap_world w;
    uint64_t seed, random, ops;
    bool exact;    /* only what the walk can see the insides, and the end, of */
    bool pumping;  /* objects may end now */
    bool quitting; /* the runtime is being freed */
    int depth;     /* of callbacks */
    m_region region[REGIONS];
    m_object object[OBJECTS];
    m_future future[FUTURES];
    m_waiter waiter[WAITERS];
    uint32_t objects, futures, waiters, walk;
    struct {
        const void *at;
        const char *by; /* who refers to it */
        bool is_future;
    } stack[8 * (OBJECTS + FUTURES)];
    uint32_t stack_n;
    const char *by;
    char last[8][80];
};

static model *the_model; /* for an object's end, which is told nothing else */

/* ---- chance --------------------------------------------------------------------------------------------- */

static uint32_t below(model *m, uint32_t n) {
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (uint32_t)(m->random >> 11) % n;
}

static bool chance(model *m, uint32_t percent) {
    return below(m, 100) < percent;
}

static void note(model *m, const char *what, const char *name) {
    memmove(m->last[1], m->last[0], sizeof m->last - sizeof m->last[0]);
    snprintf(m->last[0], sizeof m->last[0], "%s%s %s", m->depth > 0 ? "in a callback: " : "", what, name);
}

/* Aborts: from inside a callback there is no way back to cmocka. */
__attribute__((noreturn, format(printf, 2, 3))) static void wrong(model *m, const char *format, ...) {
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "EBB_HEAP_SEED=%llu EBB_HEAP_EPISODES=1, operation %llu: %s\nthe last ones:\n",
            (unsigned long long)m->seed, (unsigned long long)m->ops, text);
    for (size_t i = 0; i < 8; i++) fprintf(stderr, "  %s\n", m->last[i]);
    abort();
}

static bool is_held(const m_object *o) {
    for (int i = 0; i < REGIONS; i++) {
        if (o->held[i] > 0) return true;
    }
    return false;
}

/* ---- looking -------------------------------------------------------------------------------------------- */

static void push(model *m, bool is_future, const void *at) {
    if (at == NULL || (is_future && ebb__is_static(at))) return;
    m->stack[m->stack_n].at = at;
    m->stack[m->stack_n].by = m->by;
    m->stack[m->stack_n++].is_future = is_future;
}

static void push_value(model *m, const ebb_value *v) {
    if (v->type != NULL && v->type->size != 0) push(m, v->type->reserved & EBB__TYPE_FUTURE, v->as.p);
}

/* A link leads to a cell if it is a future, and behind its header if it is an object. */
static void push_link(model *m, const void *at) {
    if (at != NULL) push(m, ebb__is_static(at) || (const void *)ebb__cell_of(at) == at, at);
}

static void walk_object(model *m, const heap_object *o) {
    const ebb__cell *c = (const ebb__cell *)(const void *)o - 1;
    if (c->type == NULL) wrong(m, "an object was freed that %s refers to", m->by);
    if (c->type->trace != heap_object_trace) return; /* the library's */
    if (o->magic != HEAP_MAGIC) wrong(m, "an object was written over");
    m_object *known = (m_object *)(void *)o->freed;
    if (known->at != o) wrong(m, "an object stands where another one was");
    if (known->met == m->walk) return;
    known->met = m->walk;
    m->by = "an object";
    for (int i = 0; i < HEAP_LINKS; i++) push_link(m, o->link[i]);
}

static void walk_hooks(model *m, const ebb__hook *k) {
    for (; k != NULL; k = k->next) {
        if (k->cell.type == NULL) wrong(m, "a callback was freed before its time");
        if (k->fn.cleanup == NULL) push_link(m, k->arg); /* of ebb_future_hold */
    }
}

static void walk_edges(model *m, const ebb_future *f) {
    uint32_t kind = f->cell.type->reserved;
    if (kind & EBB__TYPE_SINGLE) {
        push(m, true, ebb__edge_input(&((const ebb__single *)(const void *)f)->edge));
    }
    if (!(kind & EBB__TYPE_MANY)) return;
    for (const ebb__edges *p = ((const ebb__many *)(const void *)f)->edges; p != NULL; p = p->next) {
        if (p->cell.type == NULL) wrong(m, "the edges of a node were freed");
        for (uint32_t i = 0; i < p->n; i++) push(m, true, ebb__edge_input(&p->item[i].edge));
    }
}

static m_future *future_known(model *m, const ebb_future *f) {
    uintptr_t offset = (uintptr_t)f->site - (uintptr_t)m->future;
    return offset < sizeof m->future ? &m->future[offset / sizeof(m_future)] : NULL;
}

static void walk_future(model *m, const ebb_future *f) {
    if (f->cell.type == NULL) wrong(m, "a future was freed that %s refers to", m->by);
    if (!(f->cell.type->reserved & EBB__TYPE_FUTURE)) wrong(m, "a future stands where none was");
    m_future *known = future_known(m, f);
    if (known != NULL) {
        if (known->at != f) wrong(m, "%s stands where another one was", known->name);
        if (known->met == m->walk) return;
        known->met = m->walk;
    }
    m->by = known != NULL ? known->name : "a future";
    if (ebb__has_ended(f)) push_value(m, &f->value);
    walk_hooks(m, f->hooks);
    walk_edges(m, f);
}

static void walk_on(model *m) {
    while (m->stack_n > 0) {
        m->stack_n--;
        m->by = m->stack[m->stack_n].by;
        if (m->stack[m->stack_n].is_future) walk_future(m, m->stack[m->stack_n].at);
        else walk_object(m, m->stack[m->stack_n].at);
    }
}

/* Its producer has not settled it yet, and may do so. */
static bool is_produced(const m_future *f) {
    return f->is_promise && !f->settled;
}

/* What the program holds leads to these: they may not even be cancelled. */
static void walk_handles(model *m) {
    for (uint32_t i = 0; i < m->futures; i++) {
        const m_future *f = &m->future[i];
        m->by = f->uses > 0 ? "a handle" : "an export";
        if (f->uses > 0 || f->remote != NULL) push(m, true, f->at);
        walk_on(m);
    }
    for (uint32_t i = 0; i < m->waiters; i++) {
        m->by = "a task";
        if (m->waiter[i].waits) push(m, true, m->waiter[i].of->at);
        walk_on(m);
    }
    for (uint32_t i = 0; i < m->objects; i++) {
        m->by = "a region";
        if (is_held(&m->object[i])) push(m, false, m->object[i].at);
        walk_on(m);
    }
}

/* Meets everything that must be there. */
static void walk(model *m) {
    m->walk++;
    walk_handles(m);
    for (uint32_t i = 0; i < m->futures; i++) m->future[i].reached = m->future[i].met == m->walk;
    for (uint32_t i = 0; i < m->objects; i++) m->object[i].reached = m->object[i].met == m->walk;
    for (uint32_t i = 0; i < m->futures; i++) {
        m->by = "a producer";
        if (is_produced(&m->future[i])) push(m, true, m->future[i].at);
        walk_on(m);
    }
    char text[160] = "";
    if (ebb_heap_verify(m->w.rt, text, sizeof text) != EBB_OK) wrong(m, "the verifier: %s", text);
    if (m->w.misuses != 0) wrong(m, "%s: %s", ebb_status_name(m->w.misuse), m->w.what);
}

static void check_object_gone(model *m, const m_object *o) {
    if (o->at != NULL && o->met != m->walk) wrong(m, "object %u was never freed", (unsigned)(o - m->object));
}

static void check_future_gone(model *m, m_future *f) {
    if (f->at == NULL || f->met == m->walk) return;
    if (f->has_cleanup && !f->forced && f->cleanups != 1) {
        wrong(m, "%s is gone and was cleaned up %u times", f->name, f->cleanups);
    }
    f->at = NULL;
}

/* ---- objects -------------------------------------------------------------------------------------------- */

static void object_ends(void *object) {
    model *m = the_model;
    m_object *o = (m_object *)(void *)((heap_object *)object)->freed;
    if (o->at != object) wrong(m, "what is freed is not what it was");
    if (m->w.heap != NULL && m->w.heap->collecting) wrong(m, "an object ended inside a collection");
    if (!m->pumping && !m->quitting) wrong(m, "an object ended outside the pump");
    if (is_held(o) && !m->quitting)
        wrong(m, "object %u was freed while it was held", (unsigned)(o - m->object));
    if (o->freed++ > 0) wrong(m, "object %u was freed twice", (unsigned)(o - m->object));
    o->at = NULL;
}

/* The end of the last one is told to nobody. */
static const ebb_type types[] = {
    {"counted", sizeof(heap_object), heap_object_trace, object_ends, 0},
    {"counted100", 100, heap_object_trace, object_ends, 0},
    {"counted3000", 3000, heap_object_trace, object_ends, 0},
    {"large", 9000, heap_object_trace, object_ends, 0},
    {"plain", sizeof(heap_object), heap_object_trace, NULL, 0},
};
enum { TYPES = sizeof types / sizeof *types };

static m_object *object_new(model *m, ebb_cx *cx, int region) {
    if (m->objects == OBJECTS) return NULL;
    heap_object *at = ebb_gc_new(cx, &types[below(m, m->exact ? TYPES - 1 : TYPES)]);
    if (at == NULL) return NULL; /* its region closes */
    m_object *o = &m->object[m->objects++];
    *o = (m_object){.at = at};
    o->held[region] = 1;
    *at = (heap_object){.magic = HEAP_MAGIC, .freed = &o->freed};
    return o;
}

/* One that is held, or, if the last walk still stands, one that was reached. */
static m_object *any_object(model *m) {
    for (int tries = 0; m->objects > 0 && tries < 8; tries++) {
        m_object *o = &m->object[below(m, m->objects)];
        if (o->at != NULL && (is_held(o) || (!m->pumping && o->reached))) return o;
    }
    return NULL;
}

static m_object *any_held_by(model *m, int region) {
    for (int tries = 0; m->objects > 0 && tries < 12; tries++) {
        m_object *o = &m->object[below(m, m->objects)];
        if (o->at != NULL && o->held[region] > 0) return o;
    }
    return NULL;
}

/* A region moves it on. */
static void moved(m_object *o, int region) {
    if (o->held[region] > 0) o->held[region]--;
}

static void moved_value(const ebb_value *v, int region) {
    if (v->type == NULL || v->type->trace != heap_object_trace) return;
    moved((m_object *)(void *)((heap_object *)v->as.p)->freed, region);
}

/* A value came to the program: an object of ours is now held by that region. */
static void given(model *m, const ebb_value *v, int region) {
    if (v->type == NULL || v->type->trace != heap_object_trace || v->as.p == NULL) return;
    m_object *o = (m_object *)(void *)((heap_object *)v->as.p)->freed;
    if (((heap_object *)v->as.p)->magic != HEAP_MAGIC || o->at != v->as.p)
        wrong(m, "a value is not what it was");
    if (is_held(o) || !m->region[region].open) o->shared = true;
    if (m->region[region].open) o->held[region]++;
}

/* ---- futures -------------------------------------------------------------------------------------------- */

static void operate(model *m, ebb_cx *cx, int region);

/* What callbacks do besides. */
static void meddle(model *m, ebb_cx *cx, const m_future *f) {
    if (m->w.heap->collecting) wrong(m, "a callback of %s ran inside a collection", f->name);
    if (!m->pumping) wrong(m, "a callback of %s ran outside the pump", f->name);
    if (!chance(m, 20) || !m->region[f->region].open || m->depth > 2) return;
    m->depth++;
    operate(m, cx, f->region);
    m->depth--;
}

static void heard_cleanup(ebb_cx *cx, void *arg) {
    m_future *f = arg;
    if (f->cleanups++ > 0) wrong(f->m, "%s was cleaned up twice", f->name);
    meddle(f->m, cx, f);
}

static void heard_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    m_future *f = arg;
    if (st == EBB_CANCELLED) wrong(f->m, "%s was cancelled, and its on_done ran", f->name);
    if (v->type != NULL && v->type->trace == heap_object_trace) walk_object(f->m, v->as.p);
    f->m->stack_n = 0;
    meddle(f->m, cx, f);
}

static void heard_cancel(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    m_future *f = arg;
    (void)kind;
    meddle(f->m, cx, f);
}

static m_future *reserve(model *m, int region) {
    m_future *f = &m->future[m->futures++];
    *f = (m_future){.m = m, .region = region, .forced = m->region[region].forced};
    snprintf(f->name, sizeof f->name, "f%u", (unsigned)(f - m->future));
    return f;
}

/* The handle that a constructor gave. NULL if that could make nothing. */
static m_future *made(model *m, m_future *f, ebb_future *at) {
    if (ebb__is_static(at)) {
        f->at = NULL;
        return NULL;
    }
    f->at = at;
    f->uses = 1;
    if (chance(m, 80)) f->has_cleanup = ebb_future_on_cleanup(at, heard_cleanup, f) == EBB_OK;
    if (chance(m, 30)) (void)ebb_future_on_done(at, heard_done, f);
    if (chance(m, 30)) (void)ebb_future_on_cancel(at, heard_cancel, f);
    return f;
}

static const ebb_operation some_op = {"op", NULL, NULL};

static m_future *promise_new(model *m, ebb_cx *cx, int region, bool op) {
    m_future *f = reserve(m, region);
    f->is_promise = true;
    f->op = op;
    f->settled = true; /* until it is there */
    if (made(m, f, ebb_promise_new_site(cx, op ? &some_op : NULL, NULL, f->name)) == NULL) return NULL;
    f->settled = false;
    return f;
}

static bool has_room(const model *m) {
    return m->futures + 16 < FUTURES;
}

static m_future *any_future(model *m, bool promise) {
    for (int tries = 0; m->futures > 0 && tries < 12; tries++) {
        uint32_t near = m->futures < 60 ? m->futures : 60; /* the old ones are mostly gone */
        m_future *f = &m->future[m->futures - 1 - below(m, near)];
        if (f->uses > 0 && (!promise || (f->is_promise && !f->settled))) return f;
    }
    return NULL;
}

static ebb_future *use(m_future *f) {
    f->uses--;
    return f->at;
}

/* An end that the program does not hold: an operation that ends later, or one that has ended. */
static ebb_future *something(model *m, ebb_cx *cx, const m_future *node) {
    if (!has_room(m) || chance(m, 30)) return ebb_future_ready(cx, ebb_value_int(1));
    m_future *f = promise_new(m, cx, node->region, true);
    return f == NULL ? ebb_future_failed(cx, EBB_FAILED) : use(f);
}

static ebb_value map_cb(ebb_cx *cx, ebb_value *v, void *arg) {
    m_future *f = arg;
    meddle(f->m, cx, f);
    if (v->type == NULL || chance(f->m, 25)) return ebb_value_int(7);
    if (chance(f->m, 30)) return *v;
    ebb_value taken = ebb_value_take(cx, v);
    given(f->m, &taken, f->region);
    if (chance(f->m, 50)) return ebb_value_none(); /* it stays the region's */
    moved_value(&taken, f->region);
    return taken;
}

static ebb_future *then_cb(ebb_cx *cx, ebb_value *v, void *arg) {
    m_future *f = arg;
    meddle(f->m, cx, f);
    if (v->type == NULL || chance(f->m, 50)) return something(f->m, cx, f);
    ebb_value taken = ebb_value_take(cx, v);
    given(f->m, &taken, f->region);
    moved_value(&taken, f->region);
    return ebb_future_ready(cx, taken);
}

static ebb_future *catch_cb(ebb_cx *cx, ebb_status st, void *arg) {
    m_future *f = arg;
    (void)st;
    meddle(f->m, cx, f);
    return something(f->m, cx, f);
}

static ebb_future *finally_cb(ebb_cx *cx, void *arg) {
    m_future *f = arg;
    meddle(f->m, cx, f);
    return chance(f->m, 40) ? NULL : something(f->m, cx, f);
}

static ebb_future *release_cb(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    return finally_cb(cx, arg);
}

static ebb_future *make_cb(ebb_cx *cx, void *arg) {
    m_future *f = arg;
    meddle(f->m, cx, f);
    return something(f->m, cx, f);
}

/* ---- operations ----------------------------------------------------------------------------------------- */

static void op_promise(model *m, ebb_cx *cx, int region) {
    if (has_room(m)) (void)promise_new(m, cx, region, chance(m, 30));
}

static void op_object(model *m, ebb_cx *cx, int region) {
    (void)object_new(m, cx, region);
}

static void op_link(model *m, ebb_cx *cx, int region) {
    m_object *from = any_object(m), *to = any_object(m);
    (void)cx;
    (void)region;
    if (from == NULL) return;
    const void **link = &from->at->link[below(m, HEAP_LINKS)];
    m_future *f = chance(m, 20) ? any_future(m, false) : NULL;
    if (f != NULL && f->uses == 1) { /* from now on only the object refers to it */
        *link = f->at;
        ebb_future_drop(use(f));
    } else {
        *link = to != NULL && !chance(m, 30) ? to->at : NULL;
    }
}

static void op_discard(model *m, ebb_cx *cx, int region) {
    m_object *o = any_held_by(m, region);
    if (o == NULL) return;
    o->held[region]--;
    ebb_value_discard(cx, ebb_value_object(o->at));
}

static void op_hold(model *m, ebb_cx *cx, int region) {
    m_object *o = any_held_by(m, region);
    m_future *f = any_future(m, false);
    (void)cx;
    if (o != NULL && f != NULL && ebb_future_hold(f->at, o->at) == EBB_OK) moved(o, region);
}

static void op_settle(model *m, ebb_cx *cx, int region) {
    m_future *f = any_future(m, true), *inner = chance(m, 20) ? any_future(m, false) : NULL;
    m_object *o = chance(m, 60) ? any_held_by(m, region) : NULL;
    (void)cx;
    if (f == NULL) return;
    note(m, "settle", f->name);
    f->settled = true;
    if (chance(m, 15)) {
        (void)ebb_promise_reject(f->at, EBB_FAILED);
    } else if (inner != NULL && inner->uses > (inner == f)) {
        (void)ebb_promise_settle(f->at, ebb_value_future(use(inner)));
    } else if (o != NULL) {
        moved(o, region);
        (void)ebb_promise_settle(f->at, ebb_value_object(o->at));
    } else {
        (void)ebb_promise_settle(f->at, ebb_value_int(1));
    }
}

/* Operations end some time, whether anybody still holds them or not. */
static void op_produce(model *m, ebb_cx *cx, int region) {
    (void)cx;
    (void)region;
    for (uint32_t i = 0; i < m->futures; i++) {
        m_future *f = &m->future[i];
        if (!f->op || f->settled || !chance(m, 30)) continue;
        note(m, "produce", f->name);
        f->settled = true;
        (void)ebb_promise_settle(f->at, ebb_value_int(1));
        if (m->pumping) return;
    }
}

static void op_cancel(model *m, ebb_cx *cx, int region) {
    m_future *f = any_future(m, false);
    (void)cx;
    (void)region;
    if (f != NULL) (void)ebb_future_cancel(f->at, EBB_CANCEL_USER);
}

static void op_drop(model *m, ebb_cx *cx, int region) {
    m_future *f = any_future(m, false);
    (void)cx;
    (void)region;
    if (f == NULL) return;
    note(m, "drop", f->name);
    ebb_future_drop(use(f));
}

static void op_keep(model *m, ebb_cx *cx, int region) {
    m_future *f = any_future(m, false);
    (void)cx;
    (void)region;
    if (f == NULL || f->uses > 3) return;
    (void)ebb_future_keep(f->at);
    f->uses++;
    if (chance(m, 40)) (void)(chance(m, 70) ? ebb_future_share(f->at) : ebb_future_shield(f->at));
}

static void op_single(model *m, ebb_cx *cx, int region) {
    m_future *f = any_future(m, false);
    if (f == NULL || !has_room(m)) return;
    m_future *n = reserve(m, region);
    note(m, "node over", f->name);
    ebb_future *in = use(f), *at;
    switch (below(m, m->exact ? 4 : 6)) {
    case 0: at = ebb_map_site(cx, in, map_cb, n, n->name); break;
    case 1: at = ebb_then_site(cx, in, then_cb, n, n->name); break;
    case 2: at = ebb_catch_site(cx, in, catch_cb, n, n->name); break;
    case 3: at = ebb_within_site(cx, in, chance(m, 30) ? EBB_FOREVER : below(m, 20) * EBB_MS, n->name); break;
    case 4: at = ebb_finally_site(cx, in, finally_cb, n, n->name); break;
    default: at = ebb_bracket_site(cx, in, then_cb, release_cb, n, n->name); break;
    }
    (void)made(m, n, at);
}

static void op_many(model *m, ebb_cx *cx, int region) {
    ebb_future *in[80], *at;
    uint32_t n = chance(m, 5) ? 70 : below(m, 5), k = 0;
    if (!has_room(m)) return;
    m_future *node = reserve(m, region);
    for (uint32_t i = 0; i < n; i++) {
        m_future *f = any_future(m, false);
        if (f != NULL) in[k++] = f->uses > 1 || chance(m, 50) ? use(f) : ebb_future_keep(f->at);
    }
    note(m, "many as", node->name);
    switch (below(m, m->exact ? 2 : 5)) {
    case 0: at = ebb_race_site(cx, k, in, node->name); break;
    case 1: at = ebb_any_site(cx, k, in, node->name); break;
    case 2: at = ebb_select_site(cx, k, in, node->name); break;
    case 3: at = ebb_all_site(cx, k, in, node->name); break;
    default: at = ebb_all_settled_site(cx, k, in, node->name); break;
    }
    (void)made(m, node, at);
}

static void op_time(model *m, ebb_cx *cx, int region) {
    if (!has_room(m)) return;
    m_future *f = reserve(m, region);
    uint64_t span = below(m, 20) * EBB_MS;
    (void)made(m, f,
               chance(m, 50) ? ebb_after_site(cx, span, f->name)
                             : ebb_future_delay_site(cx, span, make_cb, f, f->name));
}

static void op_export(model *m, ebb_cx *cx, int region) {
    m_future *f = any_future(m, false);
    (void)cx;
    (void)region;
    if (f != NULL && f->remote == NULL) (void)ebb_remote_new(f->at, &f->remote);
}

static void op_remote(model *m, ebb_cx *cx, int region) {
    (void)cx;
    (void)region;
    for (uint32_t i = 0; i < m->futures; i++) {
        m_future *f = &m->future[i];
        if (f->remote == NULL || chance(m, 50)) continue;
        note(m, "remote", f->name);
        uint32_t what = below(m, 4);
        if (what == 0) (void)ebb_remote_cancel(f->remote, EBB_CANCEL_USER);
        if (what > 1 && is_produced(f)) { /* whether it is the first to end it or not */
            f->settled = true;
            (void)(what == 2 ? ebb_remote_settle(f->remote, ebb_value_int(1))
                             : ebb_remote_reject(f->remote, EBB_FAILED));
        }
        ebb_remote *r = f->remote;
        f->remote = NULL;
        ebb_remote_release(r);
        return;
    }
}

static ebb_status wait_poll(ebb_cx *cx, void *arg) {
    m_waiter *w = arg;
    ebb_status st = ebb_await(cx, w->of->at, &w->value);
    if (st == EBB_PENDING) return EBB_PENDING;
    w->waits = false;
    if (st == EBB_OK) given(w->region->m, &w->value, (int)(w->region - w->region->m->region));
    return EBB_OK;
}

/* In the region that the future belongs to: so the handle is good until the task has run. */
static void op_wait(model *m, ebb_cx *cx, int region) {
    m_future *f = any_future(m, false);
    (void)region;
    if (f == NULL || m->waiters == WAITERS) return;
    m_waiter *w = &m->waiter[m->waiters];
    *w = (m_waiter){.region = &m->region[f->region], .of = f, .waits = true};
    if (ebb_id_status(ebb_spawn(cx, w->region->id, wait_poll, w).id) != EBB_OK) return;
    note(m, "a task waits for", f->name);
    m->waiters++;
    f->uses--;
}

static const struct {
    uint32_t weight;
    void (*fn)(model *m, ebb_cx *cx, int region);
    const char *name;
} table[] = {
    {10, op_promise, "promise"}, {10, op_object, "object"}, {12, op_link, "link"},
    {6, op_discard, "discard"},  {4, op_hold, "hold"},      {8, op_settle, "settle"},
    {3, op_produce, "produce"},  {4, op_cancel, "cancel"},  {6, op_drop, "drop"},
    {6, op_keep, "keep"},        {12, op_single, "single"}, {5, op_many, "many"},
    {4, op_time, "time"},        {3, op_export, "export"},  {3, op_remote, "remote"},
    {4, op_wait, "wait"},
};

static void operate(model *m, ebb_cx *cx, int region) {
    uint32_t sum = 0, at;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) sum += table[i].weight;
    at = below(m, sum);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (at < table[i].weight) {
            note(m, table[i].name, "");
            table[i].fn(m, cx, region);
            return;
        }
        at -= table[i].weight;
    }
}

/* ---- regions -------------------------------------------------------------------------------------------- */

static ebb_status act(ebb_cx *cx, void *arg) {
    m_region *r = arg;
    if (ebb_stopping(cx)) return EBB_OK;
    for (; r->todo > 0; r->todo--) operate(r->m, cx, (int)(r - r->m->region));
    return EBB_PENDING;
}

static void region_open(model *m, int i) {
    m_region *r = &m->region[i];
    *r = (m_region){.m = m, .open = true};
    r->id = i == 0 ? ebb_runtime_root(m->w.rt) : ebb_region_open(m->w.host, NULL);
    r->actor = ebb_spawn(m->w.host, r->id, act, r);
    assert_int_equal(ebb_id_status(r->actor.id), EBB_OK);
}

static void pump(model *m, uint32_t polls) {
    m->pumping = true;
    ebb_inbox_receive(m->w.rt);
    (void)ebb_runtime_pump(m->w.rt, polls);
    m->pumping = false;
}

/* From here on its handles and objects are nobody's. */
static void region_shut(model *m, int i, bool forced) {
    for (uint32_t k = 0; k < m->futures; k++) {
        if (m->future[k].region != i) continue;
        m->future[k].uses = 0;
        m->future[k].forced |= forced;
        if (!m->future[k].op) m->future[k].settled = true;
    }
    for (uint32_t k = 0; k < m->objects; k++) {
        if (m->object[k].held[i] > 0) m->object[k].shared = true; /* until it has closed */
        m->object[k].held[i] = 0;
    }
    for (uint32_t k = 0; k < m->waiters; k++) { /* these end with it, and what they wait for */
        if (m->waiter[k].region == &m->region[i]) m->waiter[k].waits = false;
    }
    m->region[i].open = false;
    m->region[i].forced = forced;
    if (forced) ebb_region_force(m->w.host, m->region[i].id);
    else if (chance(m, 50)) ebb_region_cancel(m->w.host, m->region[i].id, EBB_CANCEL_USER, "");
    else ebb_region_close(m->w.host, m->region[i].id);
}

static void try_join(model *m, int i) {
    m_region *r = &m->region[i];
    if (r->open || i == 0 || ebb_region_join(m->w.host, r->id) == EBB_PENDING) return;
    for (uint32_t k = 0; k < m->objects; k++) { /* what its last callbacks were given */
        m->object[k].held[i] = 0;
    }
    for (uint32_t k = 0; k < m->futures; k++) {
        if (m->future[k].region == i) m->future[k].uses = 0;
    }
    region_open(m, i);
}

/* ---- episodes ------------------------------------------------------------------------------------------- */

/* Steps of a collection cancel what nobody can reach, and nothing else. */
static void collect_some(model *m, uint32_t steps) {
    for (uint32_t i = 0; i < m->futures; i++) {
        m_future *f = &m->future[i];
        f->pending = f->at != NULL && f->reached && ebb_future_status_of(f->at) == EBB_PENDING;
    }
    if (steps == 0) assert_int_equal(ebb_gc_collect(m->w.rt), EBB_OK);
    for (; steps > 0; steps--) (void)ebb__collect_step(m->w.heap);
    for (uint32_t i = 0; i < m->futures; i++) {
        const m_future *f = &m->future[i];
        if (f->pending && ebb_future_status_of(f->at) != EBB_PENDING)
            wrong(m, "%s was dropped by nobody", f->name);
    }
}

/* Something that is not an operation: time, steps, regions that come and go. */
static void pass(model *m) {
    uint32_t what = below(m, 100);
    if (what < 35) {
        pump(m, below(m, 12));
    } else if (what < 55) {
        collect_some(m, 1 + below(m, 20));
    } else if (what < 58) {
        collect_some(m, 0);
    } else if (what < 64) {
        ebb_runtime_advance(m->w.rt, ebb_now(m->w.host) + below(m, 10) * EBB_MS);
    } else if (what < 66) {
        int i = 1 + (int)below(m, REGIONS - 1);
        if (m->region[i].open) region_shut(m, i, chance(m, 20));
    } else if (what < 80) {
        try_join(m, 1 + (int)below(m, REGIONS - 1));
    } else {
        m_region *r = &m->region[1 + below(m, REGIONS - 1)];
        r->todo = r->open ? 1 + (int)below(m, 4) : 0;
        (void)ebb_task_wake(m->w.host, r->actor);
    }
}

static void await_one(model *m) {
    m_future *f = any_future(m, false);
    ebb_value v;
    if (f == NULL || ebb_future_status_of(f->at) == EBB_PENDING) return;
    note(m, "await", f->name);
    ebb_status st = ebb_await(m->w.host, f->at, &v);
    if (st == EBB_ERR_NOT_TASK) return; /* others are still to be told of it */
    f->uses--;
    given(m, &v, 0);
}

static void rest(model *m) {
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ebb_gc_collect(m->w.rt), EBB_OK);
        pump(m, UINT32_MAX);
    }
    walk(m);
    for (int i = 0; i < REGIONS; i++) { /* a region that still ends holds what it held */
        if (!m->region[i].open) return;
    }
    if (!m->exact) return;
    for (uint32_t i = 0; i < m->objects; i++) { /* those that linger, and what they refer to */
        if (m->object[i].shared) push(m, false, m->object[i].at);
        walk_on(m);
    }
    for (uint32_t i = 0; i < m->objects; i++) check_object_gone(m, &m->object[i]);
    for (uint32_t i = 0; i < m->futures; i++) check_future_gone(m, &m->future[i]);
}

static void release_remotes(model *m) {
    for (uint32_t i = 0; i < m->futures; i++) {
        ebb_remote *r = m->future[i].remote;
        m->future[i].remote = NULL;
        ebb_remote_release(r);
    }
}

static void end_in_order(model *m) {
    release_remotes(m);
    region_shut(m, 0, false);
    for (int i = 1; i < REGIONS; i++) {
        if (m->region[i].open) region_shut(m, i, false);
    }
    ebb_region_state root = EBB_REGION_OPEN;
    for (int i = 0; i < 1000 && root != EBB_REGION_CLOSED; i++) {
        for (uint32_t k = 0; k < m->futures; k++) { /* operations end */
            m_future *f = &m->future[k];
            if (f->op && !f->settled) (void)ebb_promise_settle(f->at, ebb_value_none());
            f->settled = true;
            f->uses = 0;
        }
        pump(m, UINT32_MAX);
        ebb_runtime_advance(m->w.rt, ebb_now(m->w.host) + 5 * EBB_MS);
        if (i == 20)
            ebb_region_cancel(m->w.host, m->region[0].id, EBB_CANCEL_USER, ""); /* some wait for ever */
        for (int k = 1; k < REGIONS; k++) (void)ebb_region_join(m->w.host, m->region[k].id);
        (void)ebb_region_state_of(m->w.host, m->region[0].id, &root);
    }
    if (root != EBB_REGION_CLOSED) wrong(m, "the root does not close");
    for (uint32_t i = 0; i < m->futures; i++) {
        const m_future *f = &m->future[i];
        if (f->has_cleanup && !f->forced && f->cleanups != 1) {
            wrong(m, "%s was cleaned up %u times in the end", f->name, f->cleanups);
        }
    }
}

static void end(model *m) {
    if (chance(m, 70)) end_in_order(m);
    m->quitting = true;
    ebb_runtime_free(m->w.rt);
    m->w.heap = NULL;
    release_remotes(m);
    for (uint32_t i = 0; i < m->objects; i++) {
        m_object *o = &m->object[i];
        if (o->freed > 1) wrong(m, "object %u was freed %u times", i, o->freed);
    }
    if (m->w.memory.live != 0) wrong(m, "%lld blocks were not freed", (long long)m->w.memory.live);
}

static void begin(model *m, uint64_t seed) {
    memset(m, 0, sizeof *m);
    m->seed = seed;
    m->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    the_model = m;
    heap_world_begin(&m->w, (ebb_heap_opts){.step = 1 + below(m, 50),
                                            .trigger = chance(m, 50) ? 1 : 65536,
                                            .every_time = chance(m, 20),
                                            .debug = false,
                                            .verify = true});
    m->exact = chance(m, 50);
    for (int i = 0; i < REGIONS; i++) region_open(m, i);
}

static void episode(model *m, uint64_t seed) {
    begin(m, seed);
    for (m->ops = 0; m->ops < OPS; m->ops++) {
        if (chance(m, 45)) pass(m);
        else if (chance(m, 8)) await_one(m);
        else operate(m, m->w.host, 0);
        walk(m);
        if (chance(m, 2)) rest(m);
    }
    rest(m);
    end(m);
}

static uint64_t from_environment(const char *name, uint64_t otherwise) {
    const char *s = getenv(name);
    return s != NULL ? strtoull(s, NULL, 10) : otherwise;
}

/* How many seconds are left of a soak; 0 if it is none. */
static double seconds_left(time_t begun) {
    if (getenv("EBB_HEAP_SOAK") == NULL) return 0;
    return (double)from_environment("EBB_SOAK_SECONDS", 60) - difftime(time(NULL), begun);
}

static void random_graphs_lose_nothing_and_keep_nothing(void **state) {
    (void)state;
    uint64_t seed = from_environment("EBB_HEAP_SEED", 1), n = from_environment("EBB_HEAP_EPISODES", 300);
    time_t begun = time(NULL);
    model *m = malloc(sizeof *m);
    assert_non_null(m);
    uint64_t i = 0;
    for (; i < n || seconds_left(begun) > 0; i++) episode(m, seed + i);
    printf("%llu episodes of %d operations\n", (unsigned long long)i, OPS);
    free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_lose_nothing_and_keep_nothing),
    };
    return cmocka_run_group_tests_name("heap_model", tests, NULL, NULL);
}
