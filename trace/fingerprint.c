/* trace/fingerprint.c - 128 bits that are equal for runs which differ only in the order of independent steps.
 *
 * Every object has a logical id, hash(its parent's logical id, its kind, its ordinal there), and a chain that starts
 * with that id. The hash of an event covers its meaning, never slab ids, sequence, turn, time, deadlines, lanes or
 * polls. Then the chains of all objects that the event touches are folded into that hash, and the hash into the
 * chains. The finished chains are summed, so only the order along each chain counts. Two steps are independent when
 * no event of one touches an object of the other.
 *
 * The table below says which objects each event touches. A task's own steps touch the task alone, otherwise no two
 * tasks of a region would be independent; its spawn and its end touch the region too. Any two cancels have a
 * common ancestor, at the latest the root: a cancel that starts somewhere touches the root, and a cancel from a
 * parent touches that parent. */
#include "base/hash.h"
#include "base/map.h"

#include <ebb/trace.h>
#include <string.h>

typedef enum object_kind { TASK, REGION, OBLIGATION, FINALIZER, OBJECT_KINDS } object_kind;

typedef struct object {
    uint64_t id, parent; /* parent: of a region, the region above */
    ebb__hash logical, chain;
    uint32_t ordinals[OBJECT_KINDS]; /* children of each kind so far */
} object;

/* Maps are by slot. An ended object stays until its slot is taken; its chain is then added to `sum`. */
struct ebb_fingerprint {
    ebb_allocator allocator;
    ebb__map objects[OBJECT_KINDS];
    uint64_t root;
    uint64_t strangers; /* objects without a creation event: the trace began after it */
    ebb__hash sum;
    ebb_status status; /* keeps the first error */
    bool parity;       /* hash only the events that are equal on all hosts */
};

/* ---- what an event touches and means ------------------------------------------------------------------- */

enum {
    T = 1 << 0,        /* the task */
    R = 1 << 1,        /* the region */
    OWNER = 1 << 2,    /* the task, or the region if there is none */
    BY = 1 << 3,       /* the task named by `other`, if it is still known */
    UP = 1 << 4,       /* the region's parent */
    CANCEL = 1 << 5,   /* the root, or for PARENT the region's parent */
    O = 1 << 6,        /* the obligation named by `other` */
    F = 1 << 7,        /* the finalizer named by `other` */
    NEW = 1 << 8,      /* the first of those is created by it */
    VALUE = 1 << 9,    /* `value` is hashed: a status, flags, a depth, a kind */
    REQUEST = 1 << 10, /* kind, severity and epoch are hashed */
    OTHER = 1 << 11    /* `other` is hashed */
};

static const uint16_t table[EBB_EV_MAX] = {
    [EBB_EV_REGION_OPENED] = R | UP | T | NEW | VALUE,
    [EBB_EV_REGION_CLOSING] = R,
    [EBB_EV_REGION_CANCELLED] = R | CANCEL | REQUEST,
    [EBB_EV_REGION_STOPPING] = R,
    [EBB_EV_REGION_FORCED] = R,
    [EBB_EV_REGION_DRAINING] = R,
    [EBB_EV_REGION_FINALIZING] = R,
    [EBB_EV_REGION_CLOSED] = R | UP | VALUE | OTHER,
    [EBB_EV_REGION_JOINED] = R | T | VALUE,
    [EBB_EV_CHAIN_TRUNCATED] = R | VALUE,
    [EBB_EV_TASK_SPAWNED] = T | R | BY | NEW | VALUE,
    [EBB_EV_TASK_WOKEN] = T | BY,
    [EBB_EV_CANCEL_REQUESTED] = T | R | CANCEL | REQUEST,
    [EBB_EV_CANCEL_STRENGTHENED] = T | R | CANCEL | REQUEST,
    [EBB_EV_CANCEL_ACKED] = T | REQUEST,
    [EBB_EV_TASK_FORCED] = T | REQUEST,
    [EBB_EV_CLEANUP_DONE] = T | REQUEST,
    [EBB_EV_FINALIZED] = T | R | REQUEST | VALUE,
    [EBB_EV_COMPLETED] = T | R | VALUE,
    [EBB_EV_DISCARDED] = T | R | VALUE,
    [EBB_EV_FAULTED] = T,
    [EBB_EV_ABANDONED] = T | REQUEST,
    [EBB_EV_MASKED] = T | VALUE,
    [EBB_EV_UNMASKED] = T | VALUE,
    [EBB_EV_REFUSED] = T | R | VALUE,
    [EBB_EV_ILLEGAL] = T | R | VALUE,
    [EBB_EV_TASK_JOINED] = T | BY | VALUE,
    [EBB_EV_OBLIGATION_RESERVED] = O | OWNER | NEW | VALUE,
    [EBB_EV_OBLIGATION_COMMITTED] = O | OWNER,
    [EBB_EV_OBLIGATION_ABORTED] = O | OWNER,
    [EBB_EV_OBLIGATION_LEAKED] = O | OWNER,
    [EBB_EV_FINALIZER_ADDED] = F | OWNER | NEW,
    [EBB_EV_FINALIZER_DONE] = F | OWNER | VALUE,
    [EBB_EV_FINALIZER_ABANDONED] = F | OWNER,
    [EBB_EV_TIMER_ARMED] = T,
    [EBB_EV_TIMER_FIRED] = T,
    [EBB_EV_RECEIVED] = T | R | VALUE,
    [EBB_EV_OPERATION_ABANDONED] = R,
};

/* ---- objects ------------------------------------------------------------------------------------------- */

static uint64_t slot_of(uint64_t id) {
    return (id >> 32) + 1;
}

static object *find(ebb_fingerprint *f, object_kind kind, uint64_t id) {
    object *o = ebb__map_find(&f->objects[kind], slot_of(id));
    return id != 0 && o != NULL && o->id == id ? o : NULL;
}

/* An id whose slot has a later generation has ended; no object is made for it. */
static void create(ebb_fingerprint *f, object_kind kind, uint64_t id, object *parent) {
    ebb__hash logical;
    if (parent != NULL) {
        logical = ebb__hash_mix(parent->logical, ++parent->ordinals[kind]);
    } else {
        logical = ebb__hash_mix(ebb__hash_start(1), f->strangers++);
    }
    logical = ebb__hash_mix(logical, kind);
    uint64_t parent_id = parent == NULL ? 0 : parent->id;
    object *o = ebb__map_put(&f->objects[kind], slot_of(id));
    if (o == NULL) {
        f->status = EBB_ERR_NOMEM;
        return;
    }
    if ((uint32_t)o->id > (uint32_t)id) return;
    if (o->id != 0) f->sum = ebb__hash_add(f->sum, ebb__hash_finish(o->chain));
    *o = (object){.id = id, .parent = parent_id, .logical = logical, .chain = logical};
}

static void meet(ebb_fingerprint *f, object_kind kind, uint64_t id) {
    if (id != 0 && find(f, kind, id) == NULL) create(f, kind, id, NULL);
}

/* Creates every object that the event touches first, so that pointers found later stay valid. */
static void create_touched(ebb_fingerprint *f, const ebb_event *ev, uint32_t touches) {
    bool opens = ev->type == EBB_EV_REGION_OPENED;
    if (opens) meet(f, REGION, ev->other);
    if (opens && find(f, REGION, ev->region_id) == NULL) {
        create(f, REGION, ev->region_id, find(f, REGION, ev->other));
        if (ev->other == 0) f->root = ev->region_id;
    }
    if (touches & (R | OWNER)) meet(f, REGION, ev->region_id);
    if (ev->type == EBB_EV_TASK_SPAWNED && find(f, TASK, ev->task_id) == NULL) {
        create(f, TASK, ev->task_id, find(f, REGION, ev->region_id));
    }
    if (touches & (T | OWNER)) meet(f, TASK, ev->task_id);
    if ((touches & (O | F)) != 0) {
        object_kind kind = touches & O ? OBLIGATION : FINALIZER;
        object *owner = find(f, TASK, ev->task_id);
        if (owner == NULL) owner = find(f, REGION, ev->region_id);
        if (touches & NEW && ev->other != 0 && find(f, kind, ev->other) == NULL) {
            create(f, kind, ev->other, owner);
        }
        meet(f, kind, ev->other);
    }
}

/* ---- chains -------------------------------------------------------------------------------------------- */

typedef struct touched {
    object *of[5];
    size_t n;
} touched;

static void add(touched *set, object *o) {
    for (size_t i = 0; i < set->n; i++) {
        if (set->of[i] == o) return;
    }
    if (o != NULL) set->of[set->n++] = o;
}

static object *above(ebb_fingerprint *f, uint64_t region_id) {
    const object *region = find(f, REGION, region_id);
    return region == NULL ? NULL : find(f, REGION, region->parent);
}

static touched gather(ebb_fingerprint *f, const ebb_event *ev, uint32_t touches) {
    touched set = {.n = 0};
    object *task = find(f, TASK, ev->task_id), *region = find(f, REGION, ev->region_id);
    if (touches & T) add(&set, task);
    if (touches & R) add(&set, region);
    if (touches & OWNER) add(&set, task != NULL ? task : region);
    if (touches & BY) add(&set, find(f, TASK, ev->other));
    if (touches & UP) add(&set, above(f, ev->region_id));
    if (touches & CANCEL) {
        bool passed_down = ev->cancel_kind == EBB_CANCEL_PARENT;
        add(&set, passed_down ? above(f, ev->region_id) : find(f, REGION, f->root));
    }
    if (touches & O) add(&set, find(f, OBLIGATION, ev->other));
    if (touches & F) add(&set, find(f, FINALIZER, ev->other));
    return set;
}

static ebb__hash meaning(const ebb_event *ev, uint32_t touches) {
    ebb__hash h = ebb__hash_mix(ebb__hash_start(2), ev->type);
    h = ebb__hash_mix(h, ev->phase);
    if (touches & VALUE) h = ebb__hash_mix(h, ev->value);
    if (touches & OTHER) h = ebb__hash_mix(h, ev->other);
    if (touches & REQUEST) {
        h = ebb__hash_mix(h,
                          (uint64_t)ev->cancel_kind << 16 | (uint64_t)ev->severity << 8 | ev->cancel_epoch);
    }
    return h;
}

/* Cancel, obligation, finalizer and end events. Other events still create objects, since the ordinals must be
 * equal on all hosts. */
static bool is_of_parity(uint32_t type) {
    bool owed = type >= EBB_EV_OBLIGATION_RESERVED && type <= EBB_EV_FINALIZER_ABANDONED;
    bool end = type == EBB_EV_COMPLETED || type == EBB_EV_DISCARDED || type == EBB_EV_FAULTED ||
               type == EBB_EV_REGION_CLOSED;
    return owed || end || ebb_event_is_cancel(type);
}

void ebb_fingerprint_event(ebb_fingerprint *f, const ebb_event *ev) {
    if (f->status != EBB_OK) return;
    if (ev->type == EBB_EV_GAP) f->status = EBB_ERR_INVALID;
    uint32_t touches = ev->type < EBB_EV_MAX ? table[ev->type] : 0;
    if (touches == 0) return;
    create_touched(f, ev, touches);
    if (f->status != EBB_OK || (f->parity && !is_of_parity(ev->type))) return;
    touched set = gather(f, ev, touches);
    ebb__hash event = meaning(ev, touches);
    for (size_t i = 0; i < set.n; i++) event = ebb__hash_fold(event, set.of[i]->chain);
    if (set.n == 0) f->sum = ebb__hash_add(f->sum, ebb__hash_finish(event));
    for (size_t i = 0; i < set.n; i++) {
        set.of[i]->chain = ebb__hash_fold(ebb__hash_mix(set.of[i]->chain, i), event);
    }
}

/* ---- creating and freeing ------------------------------------------------------------------------------ */

ebb_fingerprint *ebb_fingerprint_new(ebb_allocator a) {
    ebb_fingerprint *f = a.fn(a.ctx, NULL, 0, sizeof *f);
    if (f == NULL) return NULL;
    memset(f, 0, sizeof *f);
    f->allocator = a;
    for (size_t i = 0; i < OBJECT_KINDS; i++) ebb__map_init(&f->objects[i], a, sizeof(object));
    return f;
}

ebb_fingerprint *ebb_fingerprint_new_parity(ebb_allocator a) {
    ebb_fingerprint *f = ebb_fingerprint_new(a);
    if (f != NULL) f->parity = true;
    return f;
}

ebb_status ebb_fingerprint_end(ebb_fingerprint *f, ebb_hash *out) {
    *out = (ebb_hash){0, 0};
    if (f->status != EBB_OK) return f->status;
    ebb__hash sum = f->sum;
    for (size_t i = 0; i < OBJECT_KINDS; i++) {
        size_t at = 0;
        for (const object *o; (o = ebb__map_next(&f->objects[i], &at)) != NULL;) {
            sum = ebb__hash_add(sum, ebb__hash_finish(o->chain));
        }
    }
    *out = (ebb_hash){sum.hi, sum.lo};
    return EBB_OK;
}

void ebb_fingerprint_free(ebb_fingerprint *f) {
    if (f == NULL) return;
    for (size_t i = 0; i < OBJECT_KINDS; i++) ebb__map_free(&f->objects[i]);
    f->allocator.fn(f->allocator.ctx, f, sizeof *f, 0);
}
