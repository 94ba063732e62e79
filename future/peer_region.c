/* A child region on another runtime.
 *
 * A proxy task stands for the far region, in the region that asked for it. The proxy learns of each close, cancel and
 * force of its region and forwards it as a verb. The verbs posted are a set of bits that only grows. Each verb has a
 * record for its details, written once before its bit is set. One message makes the other runtime read the bits, and
 * it is posted only if it is not under way. So any number of verbs needs no memory, and a stronger verb does not
 * overtake a weaker one. The first receipt opens the far region. When that region has closed, or could not be opened,
 * the `closed` message comes back, exactly once, and the proxy ends as the region did.
 *
 * The far region of a unit of work is a part of the unit. A close from above that leaves the unit open to work from
 * inside must leave the far region open too. So the far region is then a unit inside another region, and the outer
 * one is closed.
 *
 * Invariants: the region here does not close before `closed` was received, unless the proxy was abandoned. `refs`
 * counts three: this side, until the proxy has ended and `closed` was received; the other side, whose reference
 * passes to `closed`; and the message of verbs while it is under way. */
#include "base/alloc.h"
#include "future/peer.h"
#include <ebb/sched.h>

/* The verbs. VERB_STOP: a close that left the unit around the proxy open. A cancel has one verb for each severity. */
enum { VERB_STOP, VERB_CLOSE, VERB_CANCEL, VERB_FORCE = VERB_CANCEL + EBB_SEVERITY_FORCED, VERBS };
#define UNDER_WAY (UINT32_C(1) << 31)

typedef struct verb_detail {
    uint64_t stamp;
    ebb_cancel_kind kind;
    uint64_t left; /* what is left of the cleanup budget here, in ns; `polls`: its polls */
    uint32_t polls;
    char message[EBB_MESSAGE_MAX + 1];
} verb_detail;

typedef struct far {
    ebb__message verbs, closed;
    ebb__tie here, there;
    _Atomic uint32_t refs;
    _Atomic uint32_t posted; /* one bit for each verb, and UNDER_WAY */
    verb_detail detail[VERBS];
    ebb__heap *home, *peer;
    ebb_poll_fn body;
    void *arg;
    const char *site;
    uint64_t asked_stamp; /* ebb__stamp when the far region was asked for */
    bool in_unit;         /* the proxy is in a unit of work */
    /* Of this side. */
    ebb_task proxy;    /* 0: not polled yet */
    uint32_t sent;     /* verbs that the proxy has posted */
    bool closed_taken; /* `closed` was received */
    /* Of the other side. */
    bool opened; /* the region was opened, or could not be */
    uint32_t applied;
    ebb_region region;
    ebb_region inside; /* region of the body: `region`, or a unit in it */
    ebb_status ended;  /* status of that unit */
    /* Written before `closed` is posted. */
    ebb_status status;
    uint64_t stamp;
} far;

static far *of_closed(ebb__message *m) {
    return (far *)(void *)((char *)m - offsetof(far, closed));
}

static void release(far *a) {
    /* Release: the thread that frees it sees what the other side did. Acquire: for that thread. */
    if (atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) != 1) return;
    ebb__heap *home = a->home;
    ebb__heap_release(a->peer);
    ebb_allocator allocator = home->allocator;
    ebb__free(&allocator, a, sizeof *a);
    ebb__heap_release(home);
}

/* ---- the far side ----------------------------------------------------------------------------------------- */

/* The far region has closed, or could not be opened. */
static void post_closed(far *a, ebb_status st, uint64_t stamp) {
    ebb__tie_remove(&a->there);
    a->region.id = a->inside.id = 0;
    a->status = st;
    a->stamp = stamp;
    if (!ebb__post(a->home, &a->closed)) release(a);
}

static void region_closed(void *arg, const ebb_region_report *report) {
    far *a = arg;
    post_closed(a, a->in_unit ? a->ended : report->status, ebb__stamp(a->peer->rt));
}

static void unit_closed(void *arg, const ebb_region_report *report) {
    far *a = arg;
    a->ended = report->status;
    a->inside.id = 0;
    ebb_region_close(ebb_runtime_host(a->peer->rt), a->region);
}

static void gone_there(ebb__tie *tie) {
    post_closed((far *)(void *)((char *)tie - offsetof(far, there)), EBB_ERR_CLOSED, 0);
}

static ebb_status run_body(ebb_cx *cx, void *state) {
    far *a = state;
    ebb_status st = a->body(cx, a->arg);
    if (st != EBB_PENDING && (a->in_unit || !ebb_stopping(cx))) ebb_region_close(cx, a->inside);
    return st;
}

/* Returns the region of the body, or an id that carries the error. */
static ebb_region open_inside(ebb_cx *host, far *a) {
    if (!a->in_unit) return a->region;
    const ebb_region_opts opts = {.parent = a->region, .unit = true, .on_closed = unit_closed, .arg = a};
    return ebb_region_open_site(host, &opts, a->site);
}

static void open_region(ebb_runtime *rt, far *a) {
    ebb_cx *host = ebb_runtime_host(rt);
    const ebb_region_opts opts = {.parent = ebb_runtime_root(rt), .on_closed = region_closed, .arg = a};
    (void)ebb_msg_deliver(
        rt, &(ebb_msg){
                .verb = EBB_MSG_WORD, .target = opts.parent.id, .to_region = true, .word = a->asked_stamp});
    a->opened = true;
    a->region = ebb_region_open_site(host, &opts, a->site);
    ebb_status st = ebb_id_status(a->region.id);
    if (st != EBB_OK) {
        post_closed(a, st, ebb__stamp(rt));
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
    /* which reports the error of the spawn */
    if (ebb_id_status(task.id) != EBB_OK) ebb_region_close(host, a->inside);
}

static void apply(ebb_runtime *rt, far *a, uint32_t i) {
    const verb_detail *s = &a->detail[i];
    ebb_msg m = {.verb = i <= VERB_CLOSE   ? EBB_MSG_CLOSE
                         : i == VERB_FORCE ? EBB_MSG_FORCE
                                           : EBB_MSG_CANCEL,
                 .kind = s->kind,
                 .target = i == VERB_STOP ? a->region.id : a->inside.id,
                 .to_region = true,
                 .word = s->stamp,
                 .left = s->left,
                 .polls = s->polls};
    memcpy(m.message, s->message, sizeof m.message);
    (void)ebb_msg_deliver(rt, &m);
}

static void apply_new(ebb_runtime *rt, far *a) {
    /* Acquire: the details were written before their bits were set. Release: a verb that is posted after this posts
     * the message again, which was received before. */
    uint32_t posted = atomic_fetch_and_explicit(&a->posted, ~UNDER_WAY, memory_order_acq_rel);
    for (uint32_t i = 0; i < VERBS && a->inside.id != 0; i++) {
        if ((posted & ~a->applied) >> i & 1) apply(rt, a, i);
    }
    a->applied |= posted;
}

static void take_verbs(ebb_runtime *rt, ebb__message *m) {
    far *a = (far *)(void *)m; /* the message is the first member */
    if (rt == NULL) {
        if (!a->opened) post_closed(a, EBB_ERR_CLOSED, 0);
    } else {
        if (!a->opened) open_region(rt, a);
        apply_new(rt, a);
    }
    release(a);
}

/* ---- this side -------------------------------------------------------------------------------------------- */

/* Drops this side's reference. */
static void leave(far *a) {
    ebb__tie_remove(&a->here);
    release(a);
}

static void post_verbs(far *a, uint32_t bits) {
    a->sent |= bits;
    /* Release: the details are written before their bits. Acquire: if the message is posted, the other side is done
     * with it. */
    uint32_t before = atomic_fetch_or_explicit(&a->posted, bits | UNDER_WAY, memory_order_acq_rel);
    if (before & UNDER_WAY) return;
    atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed); /* this side has a reference */
    if (!ebb__post(a->peer, &a->verbs)) release(a);               /* the `closed` message reports it */
}

/* The reason to forward. For a region that was cancelled with its parent it is the root cause. */
static ebb_reason cause_of(ebb_cx *cx, ebb_budget *budget) {
    ebb_task_info info;
    (void)ebb_task_info_of(cx, ebb_cx_task(cx), &info);
    *budget = info.budget;
    if (info.reason.kind != EBB_CANCEL_PARENT) return info.reason;
    const ebb_runtime *rt = ebb__rt_of(cx);
    const ebb__region *cause = ebb__region_cause(rt, ebb__region_of(cx));
    info.reason.kind = ebb__region_request(cause);
    memcpy(info.reason.message, ebb__region_message(cause), sizeof info.reason.message);
    return info.reason;
}

static uint32_t record(far *a, uint32_t i, uint64_t stamp, const ebb_reason *why) {
    if (a->sent >> i & 1) return 0;
    verb_detail *s = &a->detail[i];
    s->stamp = stamp;
    s->kind = why == NULL ? EBB_CANCEL_NONE : (ebb_cancel_kind)why->kind;
    if (why != NULL) memcpy(s->message, why->message, sizeof s->message);
    return 1u << i;
}

/* The clocks of two runtimes differ, so a deadline travels as a span. 1 ns if no time is left. */
static uint64_t left_of(ebb_cx *cx, uint64_t deadline) {
    uint64_t now = ebb_now(cx);
    if (deadline == EBB_FOREVER) return EBB_FOREVER;
    return deadline > now ? deadline - now : 1;
}

/* True if the region admits no work from inside either. A stopping region may still admit work from inside its unit. */
static bool is_shut(ebb_cx *cx) {
    return ebb__region_state(ebb__region_of(cx)) != EBB_REGION_OPEN;
}

/* Forwards the verbs that apply to the proxy now and were not posted yet. */
static void forward(far *a, ebb_cx *cx) {
    uint32_t bits = 0;
    uint64_t stamp = ebb__stamp(ebb__rt_of(cx));
    if (ebb_cancelled(cx)) {
        ebb_budget budget;
        ebb_reason why = cause_of(cx, &budget);
        uint32_t i = VERB_CANCEL + why.severity - 1u;
        if (record(a, i, stamp, &why) != 0) {
            a->detail[i].left = left_of(cx, budget.deadline);
            a->detail[i].polls = budget.polls;
            bits |= 1u << i;
        }
    } else if (ebb_stopping(cx)) {
        bits |= record(a, is_shut(cx) ? VERB_CLOSE : VERB_STOP, stamp, NULL);
    }
    if (ebb__is_overdue(cx)) bits |= record(a, VERB_FORCE, stamp, NULL);
    if (bits != 0) post_verbs(a, bits);
}

static ebb_status proxy_poll(ebb_cx *cx, void *state) {
    far *a = state;
    a->proxy = ebb_cx_task(cx);
    if (a->closed_taken) {
        ebb_status st = a->status;
        leave(a);
        return st;
    }
    forward(a, cx);
    (void)ebb_checkpoint(cx);
    return EBB_PENDING;
}

static bool proxy_lives(const ebb_runtime *rt, const far *a) {
    if (a->proxy.id == 0) return true; /* not polled yet */
    const ebb_cx *cx = ebb__task_cx(rt, a->proxy, NULL);
    return cx != NULL && !ebb__has_returned(cx);
}

static void take_closed(ebb_runtime *rt, ebb__message *m) {
    far *a = of_closed(m);
    if (rt != NULL) {
        a->closed_taken = true;
        if (!proxy_lives(rt, a)) {
            leave(a);
        } else if (a->proxy.id != 0) {
            (void)ebb_msg_deliver(rt,
                                  &(ebb_msg){.verb = EBB_MSG_WAKE, .target = a->proxy.id, .word = a->stamp});
        }
    }
    release(a);
}

/* This runtime is being freed, so nothing here could cancel the far region later: cancels it now. */
static void gone_here(ebb__tie *tie) {
    far *a = (far *)(void *)((char *)tie - offsetof(far, here));
    static const ebb_reason why = {.kind = EBB_CANCEL_DISCONNECT,
                                   .severity = EBB_SEVERITY_POLITE,
                                   .message = "its parent's runtime is gone"};
    uint32_t bits = record(a, VERB_CANCEL + EBB_SEVERITY_POLITE - 1, 0, &why);
    if (bits != 0) post_verbs(a, bits);
    release(a);
}

/* A close from above stops at a cleanup scope. */
static bool is_in_unit(ebb_cx *cx) {
    ebb_runtime *rt = ebb__rt_of(cx);
    const ebb__region *r = ebb__region_of(cx);
    while (!ebb__region_is(rt, r, EBB__REGION_UNIT)) {
        if (ebb__region_is(rt, r, EBB__REGION_CLEANUP) || ebb__region_is(rt, r, EBB__REGION_ROOT))
            return false;
        r = ebb__region_parent(rt, r);
    }
    return true;
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
    a->asked_stamp = ebb__stamp(rt);
    a->in_unit = is_in_unit(cx);
    atomic_init(&a->refs, 1);
    atomic_init(&a->posted, UNDER_WAY);
    return a;
}

ebb_future *ebb_peer_run_site(ebb_cx *cx, ebb_peer *peer, ebb_poll_fn body, void *arg, const char *site) {
    if (peer == NULL || body == NULL) return ebb__failed(EBB_ERR_INVALID);
    far *a = far_new(cx, peer, body, arg, site);
    if (a == NULL) return ebb__failed(EBB_ERR_NOMEM);
    ebb_future *f = ebb_go_site(cx, ebb_cx_region(cx), proxy_poll, a, NULL, site);
    if (ebb__has_ended(f)) { /* the proxy was not spawned */
        release(a);
        return f;
    }
    ebb__tie_add(a->home, &a->here);
    atomic_store_explicit(&a->refs, 3, memory_order_relaxed); /* not shared with another thread yet */
    if (!ebb__post(a->peer, &a->verbs)) {
        a->status = EBB_ERR_CLOSED;
        a->closed_taken = true;
        atomic_store_explicit(&a->refs, 1, memory_order_relaxed);
    }
    return f;
}
