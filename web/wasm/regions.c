/* Regions: the three verbs, and what is known of one. */
#include "web/wasm/abi.h"
#include "web/wasm/host.h"
#include "web/wasm/words.h"

static void closed(void *state, const ebb_region_report *r) {
    host_closed((int32_t)(uintptr_t)state, r->status, (int32_t)r->abandoned, (int32_t)r->leaked);
}

/* A verb can't fail: it is the host's if who asked has ended meanwhile. */
static ebb_cx *asking(uint64_t asker) {
    ebb_cx *cx = web_cx(asker);
    return cx != NULL ? cx : ebb_runtime_host(web_rt);
}

uint64_t web_root(void) {
    return ebb_runtime_root(web_rt).id;
}

uint64_t web_region_open(uint64_t asker, uint64_t parent, int32_t flags, uint64_t deadline, int32_t priority,
                         int32_t slot, const char *site) {
    ebb_cx *cx = web_cx(asker);
    ebb_region_opts opts = {.parent = {parent},
                            .policy = flags & REGION_COLLECT ? EBB_FAIL_COLLECT : EBB_FAIL_FAST,
                            .deadline = deadline,
                            .priority = (uint8_t)priority,
                            .cleanup = (flags & REGION_CLEANUP) != 0,
                            .on_closed = closed,
                            .arg = (void *)(uintptr_t)(uint32_t)slot};
    if (cx == NULL) return ebb__id_error(web_rt, EBB_ERR_STALE);
    return ebb_region_open_site(cx, &opts, site).id;
}

void web_region_join(uint64_t asker, uint64_t region) {
    ebb__region_joining(asking(asker), (ebb_region){region});
}

void web_region_close(uint64_t asker, uint64_t region) {
    ebb_region_close(asking(asker), (ebb_region){region});
}

void web_region_cancel(uint64_t asker, uint64_t region, int32_t kind) {
    ebb_region_cancel(asking(asker), (ebb_region){region}, (ebb_cancel_kind)kind, scratch_text());
}

void web_region_cancel_within(uint64_t asker, uint64_t region, int32_t kind, uint64_t deadline,
                              uint32_t polls) {
    ebb_budget budget = {.deadline = deadline, .polls = polls};
    ebb_region_cancel_within(asking(asker), (ebb_region){region}, (ebb_cancel_kind)kind, scratch_text(),
                             budget);
}

void web_region_force(uint64_t asker, uint64_t region) {
    ebb_region_force(asking(asker), (ebb_region){region});
}

uint64_t web_region_reserve(uint64_t asker, uint64_t region, int32_t kind, int32_t slot, const char *site) {
    ebb_cx *cx = web_cx(asker);
    if (cx == NULL) return ebb__id_error(web_rt, web_missing(asker));
    return ebb_region_reserve_site(cx, (ebb_region){region}, (ebb_obligation_kind)kind, web_aborted,
                                   web_slot_state(slot), site)
        .id;
}

int32_t web_region_defer(uint64_t asker, uint64_t region, int32_t slot, const char *site) {
    ebb_cx *cx = web_cx(asker);
    if (cx == NULL) return web_missing(asker);
    return ebb_region_defer_site(cx, (ebb_region){region}, web_finalize, web_slot_state(slot), site);
}

int32_t web_region_info(uint64_t region) {
    ebb__region *r;
    ebb_status st = ebb__region_get(web_rt, (ebb_region){region}, &r);
    if (st != EBB_OK) return st;
    ebb__region_view v = ebb__region_look(r);
    words w = words_begin();
    put_u64(&w, v.deadline);
    put_u64(&w, v.failed);
    put_u32(&w, (uint32_t)v.status);
    put_u32(&w, v.state);
    put_u32(&w, v.request);
    put_u32(&w, v.severity);
    put_u32(&w, v.epoch);
    put_u32(&w, v.tasks);
    put_u32(&w, v.children);
    put_u32(&w, v.obligations);
    put_u32(&w, v.abandoned);
    put_u32(&w, v.leaked);
    put_message(&w, v.message);
    return EBB_OK;
}

int32_t web_root_message(uint64_t region) {
    ebb__region *r;
    ebb_status st = ebb__region_get(web_rt, (ebb_region){region}, &r);
    if (st != EBB_OK) return st;
    words w = words_begin();
    put_message(&w, ebb__region_message(ebb__region_cause(web_rt, r)));
    return EBB_OK;
}

int32_t web_region_work(uint64_t region, int32_t what, uint32_t i) {
    ebb_work work;
    ebb_status st = what == WORK_ABANDONED
                        ? ebb_region_abandoned_at(ebb_runtime_host(web_rt), (ebb_region){region}, i, &work)
                        : ebb_region_leaked_at(ebb_runtime_host(web_rt), (ebb_region){region}, i, &work);
    if (st != EBB_OK) return st;
    words w = words_begin();
    put_u64(&w, work.id);
    put_u32(&w, (uint32_t)(uintptr_t)work.site);
    return EBB_OK;
}

int32_t web_cause_chain(uint64_t region) {
    ebb_region_cause links[EBB_CHAIN_DEPTH];
    uint32_t n;
    bool cut;
    ebb_status st =
        ebb_region_causes(ebb_runtime_host(web_rt), (ebb_region){region}, links, EBB_CHAIN_DEPTH, &n, &cut);
    if (st != EBB_OK) return st;
    words w = words_begin();
    put_u32(&w, n);
    put_u32(&w, cut);
    for (uint32_t i = 0; i < n; i++) {
        put_u64(&w, links[i].region.id);
        put_u64(&w, links[i].reason.origin);
        put_u32(&w, links[i].reason.kind);
        put_u32(&w, links[i].reason.severity);
        put_message(&w, links[i].reason.message);
    }
    return EBB_OK;
}
