#include "kernel/admit.h"

#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/task.h"

/* ---- who may still add work ---------------------------------------------------------------------------- */

/* True if `r` is `top` or below it. */
static bool is_inside(const ebb_runtime *rt, const ebb__region *r, const ebb__region *top) {
    while (ebb__cold_of(r)->depth > ebb__cold_of(top)->depth) r = ebb__region_at(rt, r->parent);
    return r == top;
}

static bool is_caller_inside(const ebb_runtime *rt, const ebb__task *t, uint32_t gate) {
    return t->index != 0 && is_inside(rt, ebb__region_at(rt, t->region), ebb__region_at(rt, gate));
}

ebb_status ebb__admit_refused(ebb_runtime *rt, ebb__task *t, ebb__region *r) {
    if (rt->layers.call.admission != NULL) rt->layers.call.admission(rt, r, true);
    if (t->index == 0 || t->request == 0) return EBB_ERR_CLOSED;
    (void)ebb__acknowledge(&t->cx);
    return EBB_CANCELLED;
}

ebb_status ebb__admit_slow(ebb_runtime *rt, ebb__task *t, ebb__region *r) {
    if (r->state != EBB_REGION_OPEN) return ebb__admit_refused(rt, t, r);
    if (!is_caller_inside(rt, t, ebb__cold_of(r)->gate)) return ebb__admit_refused(rt, t, r);
    if (rt->layers.call.admission != NULL) rt->layers.call.admission(rt, r, false);
    return EBB_OK;
}

ebb_status ebb__admit_own(ebb_runtime *rt, ebb__task *t) {
    ebb__region *r = ebb__region_at(rt, t->region);
    if (t->index == 0) return ebb__admit(rt, t, r);
    if (ebb__is_finalized(t)) return EBB_ERR_CLOSED;
    return ebb_cancelled(&t->cx) ? ebb__admit_refused(rt, t, r) : EBB_OK;
}

/* ---- operations of layers above ------------------------------------------------------------------------ */

static ebb_status inbound(ebb_runtime *rt, ebb__task *t) {
    ebb__region *r = ebb__region_at(rt, t->region);
    ebb_status st = ebb__admit_own(rt, t);
    if (st != EBB_OK || t->index == 0) return st;
    return ebb__is_closing(r) || t->request != 0 ? ebb__admit_refused(rt, t, r) : EBB_OK;
}

static ebb_status admit_and_record(ebb_cx *cx, bool from_outside) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__task *t = ebb__task_of(cx);
    ebb_status st = from_outside ? inbound(rt, t) : ebb__admit_own(rt, t);
    if (EBB__LIKELY(st == EBB_OK)) return st;
    uint64_t region = ebb__region_id(rt, ebb__region_at(rt, t->region));
    ebb__emit_plain(rt, EBB_EV_REFUSED, ebb__task_id(t), region, (uint32_t)st, 0);
    ebb__journal(rt, cx, (ebb_record){.type = J_ADMIT, .kind = from_outside, .value = (uint32_t)st});
    return st;
}

ebb_status ebb__admit_operation(ebb_cx *cx) {
    const ebb__task *t = ebb__task_of(cx);
    if (ebb__is_confined(cx)) return EBB_ERR_DURABLE_CONTEXT;
    bool plain = t->index != 0 && !(t->flags & F_RETURNED) && !ebb_cancelled(cx);
    return EBB__LIKELY(plain) ? EBB_OK : admit_and_record(cx, false);
}

ebb_status ebb__admit_inbound(ebb_cx *cx) {
    return ebb__is_confined(cx) ? EBB_ERR_DURABLE_CONTEXT : admit_and_record(cx, true);
}

/* ---- a close from above -------------------------------------------------------------------------------- */

/* No task inside the unit owns it: the owner is the host or a task outside, which may not add to it any more. */
static bool ends(const ebb_runtime *rt, const ebb__region *r) {
    return ebb__cold_of(r)->gate == r->index || r->owner == 0 ||
           !is_caller_inside(rt, ebb__task_at(rt, r->owner), ebb__cold_of(r)->gate);
}

static void stopping(ebb_runtime *rt, ebb__region *r, uint32_t gate) {
    assert(r->state == EBB_REGION_OPEN && gate != 0);
    ebb__cold_of(r)->gate = gate;
    r->flags |= R_STOPPING;
    if (ends(rt, r)) r->flags |= R_ENDS;
}

void ebb__region_stop(ebb_runtime *rt, ebb__region *r) {
    const ebb__region *parent = ebb__region_at(rt, r->parent);
    bool at_edge = parent->state != EBB_REGION_OPEN; /* every region above it is closed */
    if (at_edge && !(r->flags & R_UNIT)) {
        ebb__region_shut(rt, r);
        return;
    }
    bool first = !(r->flags & R_STOPPING);
    stopping(rt, r, at_edge ? r->index : ebb__cold_of(parent)->gate);
    if (first) ebb__emit_region(rt, EBB_EV_REGION_STOPPING, r, 0, 0, 0);
}

void ebb__region_stop_new(ebb_runtime *rt, ebb__region *r) {
    stopping(rt, r, ebb__cold_of(ebb__region_at(rt, r->parent))->gate);
}
