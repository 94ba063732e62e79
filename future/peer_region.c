/* A child region on another runtime.
 *
 * Here, a proxy task stands for the far region in the region that asked for it: what is said to that region
 * reaches the proxy as signals, and the proxy says it on. What was said is a set of bits that only grows;
 * each has a place for its words, written once before the bit is set. One letter tells the other runtime to
 * look at the bits, and is posted only if it is not under way: so any number of verbs need no memory, and a
 * stronger one overtakes nothing. The first look opens the region. When that has closed, or could not be
 * opened, the `closed` letter comes back, exactly once, and the proxy ends as the region did.
 *
 * What a unit of work has far away is a part of it: a close from above that leaves the unit open has to leave that
 * open too, to what is asked for from inside. So it is a unit there, in a region that can be closed around it.
 *
 * What holds: the region here does not close before `closed` was taken in, unless the proxy was abandoned.
 * `refs` counts three: this side, until the proxy has ended and `closed` was taken; the other side, which
 * goes over into `closed`; and the letter of verbs while it is under way. */
#include "base/alloc.h"
#include "future/peer.h"
#include <ebb/sched.h>

/* What can be said. SAY_STOP: a close that left the unit around it open. A cancel has a bit for each severity. */
enum { SAY_STOP, SAY_CLOSE, SAY_CANCEL, SAY_FORCE = SAY_CANCEL + EBB_SEVERITY_FORCED, SAYINGS };
#define UNDER_WAY (UINT32_C(1) << 31)

typedef struct saying {
    uint64_t stamp;
    ebb_cancel_kind kind;
    uint64_t left; /* of the cleanup budget here, and its polls */
    uint32_t polls;
    char message[EBB_MESSAGE_MAX + 1];
} saying;

typedef struct far {
    ebb__message verbs, closed;
    ebb__tie here, there;
    _Atomic uint32_t refs;
    _Atomic uint32_t said; /* a bit a saying, and UNDER_WAY */
    saying saying[SAYINGS];
    ebb__heap *home, *peer;
    ebb_poll_fn body;
    void *arg;
    const char *site;
    uint64_t asked; /* stamp */
    bool in_unit;   /* here */
    /* This side's. */
    ebb_task proxy; /* 0: it was not polled yet */
    uint32_t say;   /* what it has said */
    bool over;      /* `closed` was taken */
    /* The other side's. */
    bool opened; /* or refused */
    uint32_t heard;
    ebb_region region;
    ebb_region inside; /* where the body is: the same, or a unit in it */
    ebb_status ended;  /* of that unit */
    /* Written before `closed` is posted. */
    ebb_status status;
    uint64_t stamp;
} far;

static far *of_closed(ebb__message *l) {
    return (far *)(void *)((char *)l - offsetof(far, closed));
}

static void release(far *a) {
    /* Release, so that what the other side did comes before; acquire for whoever frees it. */
    if (atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) != 1) return;
    ebb__heap *home = a->home;
    ebb__heap_release(a->peer);
    ebb_allocator allocator = home->allocator;
    ebb__free(&allocator, a, sizeof *a);
    ebb__heap_release(home);
}

/* ---- over there ------------------------------------------------------------------------------------------------- */

/* The region there is no more, or never was. */
static void answer(far *a, ebb_status st, uint64_t stamp) {
    ebb__tie_remove(&a->there);
    a->region.id = a->inside.id = 0;
    a->status = st;
    a->stamp = stamp;
    if (!ebb__post(a->home, &a->closed)) release(a);
}

static void region_closed(void *arg, const ebb_region_report *report) {
    far *a = arg;
    answer(a, a->in_unit ? a->ended : report->status, ebb__stamp(a->peer->rt));
}

static void unit_closed(void *arg, const ebb_region_report *report) {
    far *a = arg;
    a->ended = report->status;
    a->inside.id = 0;
    ebb_region_close(ebb_runtime_host(a->peer->rt), a->region);
}

static void gone_there(ebb__tie *tie) {
    answer((far *)(void *)((char *)tie - offsetof(far, there)), EBB_ERR_CLOSED, 0);
}

static ebb_status run_body(ebb_cx *cx, void *state) {
    far *a = state;
    ebb_status st = a->body(cx, a->arg);
    if (st != EBB_PENDING && (a->in_unit || !ebb_stopping(cx))) ebb_region_close(cx, a->inside);
    return st;
}

/* Returns where the body runs, or an id that carries the error. */
static ebb_region open_inside(ebb_cx *host, far *a) {
    if (!a->in_unit) return a->region;
    const ebb_region_opts opts = {.parent = a->region, .unit = true, .on_closed = unit_closed, .arg = a};
    return ebb_region_open_site(host, &opts, a->site);
}

static void open_region(ebb_runtime *rt, far *a) {
    ebb_cx *host = ebb_runtime_host(rt);
    const ebb_region_opts opts = {.parent = ebb_runtime_root(rt), .on_closed = region_closed, .arg = a};
    (void)ebb_msg_deliver(
        rt, &(ebb_msg){.verb = EBB_MSG_WORD, .target = opts.parent.id, .to_region = true, .word = a->asked});
    a->opened = true;
    a->region = ebb_region_open_site(host, &opts, a->site);
    ebb_status st = ebb_id_status(a->region.id);
    if (st != EBB_OK) {
        answer(a, st, ebb__stamp(rt));
        return;
    }
    ebb__tie_add(ebb__heap_at(rt), &a->there);
    a->inside = open_inside(host, a);
    a->ended = ebb_id_status(a->inside.id);
    if (a->ended != EBB_OK) {
        a->inside.id = 0;
        ebb_region_close(host, a->region);
        return;
    }
    ebb_task task = ebb_spawn_site(host, a->inside, run_body, a, a->site);
    if (ebb_id_status(task.id) != EBB_OK) ebb_region_close(host, a->inside); /* which fails as the spawn */
}

static void hear(ebb_runtime *rt, far *a, uint32_t i) {
    const saying *s = &a->saying[i];
    ebb_msg m = {.verb = i <= SAY_CLOSE   ? EBB_MSG_CLOSE
                         : i == SAY_FORCE ? EBB_MSG_FORCE
                                          : EBB_MSG_CANCEL,
                 .kind = s->kind,
                 .target = i == SAY_STOP ? a->region.id : a->inside.id,
                 .to_region = true,
                 .word = s->stamp,
                 .left = s->left,
                 .polls = s->polls};
    memcpy(m.message, s->message, sizeof m.message);
    (void)ebb_msg_deliver(rt, &m);
}

static void hear_all(ebb_runtime *rt, far *a) {
    /* Acquire: what the bits stand for was written before they were set. Release: whoever sets one after
     * this posts the letter again, which was out of the stack before. */
    uint32_t said = atomic_fetch_and_explicit(&a->said, ~UNDER_WAY, memory_order_acq_rel);
    for (uint32_t i = 0; i < SAYINGS && a->inside.id != 0; i++) {
        if ((said & ~a->heard) >> i & 1) hear(rt, a, i);
    }
    a->heard |= said;
}

static void take_verbs(ebb_runtime *rt, ebb__message *l) {
    far *a = (far *)(void *)l; /* its first member */
    if (rt == NULL) {
        if (!a->opened) answer(a, EBB_ERR_CLOSED, 0);
    } else {
        if (!a->opened) open_region(rt, a);
        hear_all(rt, a);
    }
    release(a);
}

/* ---- here ------------------------------------------------------------------------------------------------------- */

/* This side has no more to do with it. */
static void leave(far *a) {
    ebb__tie_remove(&a->here);
    release(a);
}

static void post_verbs(far *a, uint32_t bits) {
    a->say |= bits;
    /* Release: what the bits stand for comes before them. Acquire: if the letter is posted, the other side
     * has let go of it. */
    uint32_t before = atomic_fetch_or_explicit(&a->said, bits | UNDER_WAY, memory_order_acq_rel);
    if (before & UNDER_WAY) return;
    atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed); /* this side has one */
    if (!ebb__post(a->peer, &a->verbs)) release(a);               /* `closed` tells of it */
}

/* What is said of a region that was cancelled with its parent is why that was. */
static ebb_reason cause_of(ebb_cx *cx, ebb_budget *budget) {
    ebb_task_info info;
    (void)ebb_task_info_of(cx, ebb_cx_task(cx), &info);
    *budget = info.budget;
    if (info.reason.kind != EBB_CANCEL_PARENT) return info.reason;
    const ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region_view cause = ebb__region_look(rt, ebb__region_cause(rt, ebb__region_of(cx)));
    info.reason.kind = cause.request;
    memcpy(info.reason.message, cause.message, sizeof info.reason.message);
    return info.reason;
}

static uint32_t put(far *a, uint32_t i, uint64_t stamp, const ebb_reason *why) {
    if (a->say >> i & 1) return 0;
    saying *s = &a->saying[i];
    s->stamp = stamp;
    s->kind = why == NULL ? EBB_CANCEL_NONE : (ebb_cancel_kind)why->kind;
    if (why != NULL) memcpy(s->message, why->message, sizeof s->message);
    return 1u << i;
}

/* The clocks of two runtimes are not the same: a span is. What has no time left has 1 ns. */
static uint64_t left_of(ebb_cx *cx, uint64_t deadline) {
    uint64_t now = ebb_now(cx);
    if (deadline == EBB_FOREVER) return EBB_FOREVER;
    return deadline > now ? deadline - now : 1;
}

/* Or does the region, of those that are stopping, still admit what is asked for from inside its unit? */
static bool is_shut(ebb_cx *cx) {
    return ebb__region_state(ebb__region_of(cx)) != EBB_REGION_OPEN;
}

/* Says on what the proxy is told now and has not said. */
static void say_on(far *a, ebb_cx *cx) {
    uint32_t bits = 0;
    uint64_t stamp = ebb__stamp(ebb__rt_of(cx));
    if (ebb_cancelled(cx)) {
        ebb_budget budget;
        ebb_reason why = cause_of(cx, &budget);
        uint32_t i = SAY_CANCEL + why.severity - 1u;
        if (put(a, i, stamp, &why) != 0) {
            a->saying[i].left = left_of(cx, budget.deadline);
            a->saying[i].polls = budget.polls;
            bits |= 1u << i;
        }
    } else if (ebb_stopping(cx)) {
        bits |= put(a, is_shut(cx) ? SAY_CLOSE : SAY_STOP, stamp, NULL);
    }
    if (ebb__is_overdue(cx)) bits |= put(a, SAY_FORCE, stamp, NULL);
    if (bits != 0) post_verbs(a, bits);
}

static ebb_status proxy_poll(ebb_cx *cx, void *state) {
    far *a = state;
    a->proxy = ebb_cx_task(cx);
    if (a->over) {
        ebb_status st = a->status;
        leave(a);
        return st;
    }
    say_on(a, cx);
    (void)ebb_checkpoint(cx);
    return EBB_PENDING;
}

static bool proxy_lives(const ebb_runtime *rt, const far *a) {
    if (a->proxy.id == 0) return true; /* it is still to be polled */
    const ebb_cx *cx = ebb__task_cx(rt, a->proxy, NULL);
    return cx != NULL && !ebb__has_returned(cx);
}

static void take_closed(ebb_runtime *rt, ebb__message *l) {
    far *a = of_closed(l);
    if (rt != NULL) {
        a->over = true;
        if (!proxy_lives(rt, a)) {
            leave(a);
        } else if (a->proxy.id != 0) {
            (void)ebb_msg_deliver(rt,
                                  &(ebb_msg){.verb = EBB_MSG_WAKE, .target = a->proxy.id, .word = a->stamp});
        }
    }
    release(a);
}

/* Nobody is left here who could cancel it later. */
static void gone_here(ebb__tie *tie) {
    far *a = (far *)(void *)((char *)tie - offsetof(far, here));
    static const ebb_reason why = {.kind = EBB_CANCEL_DISCONNECT,
                                   .severity = EBB_SEVERITY_POLITE,
                                   .message = "its parent's runtime is gone"};
    uint32_t bits = put(a, SAY_CANCEL + EBB_SEVERITY_POLITE - 1, 0, &why);
    if (bits != 0) post_verbs(a, bits);
    release(a);
}

/* A close from above ends at a cleanup scope. */
static bool is_in_unit(ebb_cx *cx) {
    ebb_runtime *rt = ebb__rt_of(cx);
    const uint32_t stops = EBB__REGION_UNIT | EBB__REGION_CLEANUP | EBB__REGION_ROOT;
    const ebb__region *r = ebb__region_of(cx);
    while (!(ebb__region_traits(rt, r) & stops)) r = ebb__region_parent(rt, r);
    return (ebb__region_traits(rt, r) & EBB__REGION_UNIT) != 0;
}

static far *far_new(ebb_cx *cx, ebb_peer *peer, ebb_poll_fn body, void *arg, const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__heap *home = ebb__heap_get(rt);
    far *a = home == NULL ? NULL : ebb__alloc(ebb__rt_allocator(rt), sizeof *a);
    if (a == NULL) return NULL;
    memset(a, 0, sizeof *a);
    a->verbs.take = take_verbs;
    a->closed.take = take_closed;
    a->here.gone = gone_here;
    a->there.gone = gone_there;
    a->home = ebb__heap_keep(home);
    a->peer = ebb__heap_keep(ebb__peer_heap(peer));
    a->body = body;
    a->arg = arg;
    a->site = site;
    a->asked = ebb__stamp(rt);
    a->in_unit = is_in_unit(cx);
    atomic_init(&a->refs, 1);
    atomic_init(&a->said, UNDER_WAY);
    return a;
}

ebb_future *ebb_peer_run_site(ebb_cx *cx, ebb_peer *peer, ebb_poll_fn body, void *arg, const char *site) {
    if (peer == NULL || body == NULL) return ebb__failed(EBB_ERR_INVALID);
    far *a = far_new(cx, peer, body, arg, site);
    if (a == NULL) return ebb__failed(EBB_ERR_NOMEM);
    ebb_future *f = ebb_go_site(cx, ebb_cx_region(cx), proxy_poll, a, NULL, site);
    if (ebb__has_ended(f)) { /* it could not be spawned */
        release(a);
        return f;
    }
    ebb__tie_add(a->home, &a->here);
    atomic_store_explicit(&a->refs, 3, memory_order_relaxed); /* nobody else knows it yet */
    if (!ebb__post(a->peer, &a->verbs)) {
        a->status = EBB_ERR_CLOSED;
        a->over = true;
        atomic_store_explicit(&a->refs, 1, memory_order_relaxed);
    }
    return f;
}
