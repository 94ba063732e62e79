#include "kernel/supervisor.h"

#include "kernel/admit.h"
#include "kernel/cascade.h"
#include "kernel/lane.h"
#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/task.h"

static ebb__supervisor refused(const ebb_runtime *rt, ebb_status st) {
    return (ebb__supervisor){{ebb__id_error(rt, st)}, {ebb__id_error(rt, st)}};
}

static ebb__supervisor supervisor_new(ebb_runtime *rt, ebb_cx *cx, ebb_region region, ebb_poll_fn poll,
                                      void *state,
                                      void (*on_closed)(void *arg, const ebb_region_report *report),
                                      const char *site) {
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (st == EBB_OK) st = ebb__admit(rt, ebb__task_of(cx), r);
    if (st == EBB_OK && r->flags & R_SUPERVISED) st = EBB_ERR_BUSY;
    if (st == EBB_OK && on_closed != NULL && !(r->flags & R_ROOT)) st = EBB_ERR_INVALID;
    if (st == EBB_OK) st = ebb__task_room(rt);
    if (st == EBB_OK && !ebb__timed_admit(rt)) st = EBB_ERR_NOMEM;
    if (st != EBB_OK) { /* as if the drain region was refused: a replay may fail to allocate another part */
        ebb__emit_plain(rt, EBB_EV_REFUSED, ebb__task_id(ebb__task_of(cx)), region.id, (uint32_t)st, 0);
        return refused(rt, st);
    }
    ebb__supervisor s = {.region = ebb__drain_region_open(cx, region, site)};
    st = ebb_id_status(s.region.id);
    if (st != EBB_OK) return refused(rt, st);
    ebb__region *drain = ebb__region_at(rt, (uint32_t)(s.region.id >> 32) & 0xffffff);
    s.task = ebb__supervisor_spawn(rt, cx, drain, poll, state, site);
    ebb__cold_of(r)->supervisor = ebb__cold_of(drain)->supervisor = (uint32_t)(s.task.id >> 32) & 0xffffff;
    r->flags |= R_SUPERVISED;
    drain->flags |= R_SUPERVISED;
    if (on_closed != NULL) {
        ebb__cold_of(r)->on_closed = on_closed;
        ebb__cold_of(r)->arg = state;
        r->flags |= R_HOOK;
    }
    return s;
}

ebb__supervisor ebb__supervisor_new(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                                    void (*on_closed)(void *arg, const ebb_region_report *report),
                                    const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__supervisor s = supervisor_new(rt, cx, region, poll, state, on_closed, site);
    ebb__journal(
        rt, cx,
        (ebb_record){
            .type = J_SUPERVISOR, .region = region.id, .other = s.task.id, .value = on_closed != NULL});
    ebb__journal_text(rt, site);
    return s;
}

void ebb__supervisor_ended(ebb_runtime *rt, ebb__region *drain) {
    ebb__region *r = ebb__region_at(rt, drain->parent);
    assert(drain->flags & r->flags & R_SUPERVISED);
    drain->flags &= ~(uint32_t)R_SUPERVISED;
    r->flags &= ~(uint32_t)R_SUPERVISED;
    ebb__cold_of(drain)->supervisor = ebb__cold_of(r)->supervisor = 0;
}

void ebb__supervisor_alarm(ebb_cx *cx, ebb_task supervisor, uint64_t at) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__task *t;
    ebb__journal(rt, cx, (ebb_record){.type = J_ALARM, .task = supervisor.id, .other = at});
    if (ebb__find_task(rt, supervisor, &t) != EBB_OK || !ebb__is_supervisor(rt, t)) return;
    ebb__region *drain = ebb__region_at(rt, t->region);
    if (!(drain->flags & R_FORCED)) ebb__region_arm(rt, drain, at);
}

static ebb_region operators_open(ebb_runtime *rt, ebb_cx *cx, ebb_region drain, const char *site) {
    ebb__region *a;
    ebb_status st = ebb__find_region(rt, drain, &a);
    if (st == EBB_OK && !ebb__is_drain_region(a)) st = EBB_ERR_INVALID;
    if (st == EBB_OK && a->flags & R_APART) st = EBB_ERR_BUSY;
    if (st != EBB_OK) return (ebb_region){ebb__id_error(rt, st)};
    ebb_region id = ebb__drain_region_open(cx, drain, site);
    if (ebb_id_status(id.id) != EBB_OK) return id;
    ebb__region_at(rt, (uint32_t)(id.id >> 32) & 0xffffff)->flags |= R_OPERATOR;
    a->flags |= R_APART;
    return id;
}

ebb_region ebb__operators_open(ebb_cx *cx, ebb_region drain, const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb_region id = operators_open(rt, cx, drain, site);
    ebb__journal(rt, cx, (ebb_record){.type = J_OPERATORS, .region = drain.id, .other = id.id});
    ebb__journal_text(rt, site);
    return id;
}

void ebb__operators_release(ebb_cx *cx, ebb_region operators, uint64_t deadline) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    ebb__journal(rt, cx, (ebb_record){.type = J_RELEASE, .region = operators.id, .other = deadline});
    if (ebb__find_region(rt, operators, &r) != EBB_OK || !(r->flags & R_OPERATOR)) return;
    if (r->state == EBB_REGION_CLOSED) return;
    ebb__region *drain = ebb__region_at(rt, r->parent);
    drain->flags &= ~(uint32_t)R_APART;
    if (r->request != 0 || deadline >= r->deadline) return; /* it has an earlier one */
    r->deadline = deadline;
    ebb__region_arm(rt, r, deadline);
}

void ebb__region_joining(ebb_cx *cx, ebb_region region) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    ebb__journal(rt, cx, (ebb_record){.type = J_JOINING, .region = region.id});
    if (ebb__find_region(rt, region, &r) != EBB_OK || r->state == EBB_REGION_CLOSED) return;
    r->flags |= R_JOINING;
    ebb__region_advance(rt, r);
}
