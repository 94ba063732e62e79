/* Tasks, and what they have to do: each export asks the kernel in somebody's name, each callback finds the
 * host's function by its slot. */
#include "kernel/names.h"
#include "web/wasm/abi.h"
#include "web/wasm/host.h"
#include "web/wasm/words.h"

ebb_cx *web_cx(uint64_t asker) {
    return asker == 0 ? ebb_runtime_host(web_rt) : ebb__task_cx(web_rt, (ebb_task){asker}, NULL);
}

ebb_status web_missing(uint64_t asker) {
    ebb_status st;
    (void)ebb__task_cx(web_rt, (ebb_task){asker}, &st);
    return st == EBB_OK ? EBB_ERR_STALE : st;
}

void *web_slot_state(int32_t slot) {
    return (void *)(uintptr_t)(uint32_t)slot;
}

static int32_t slot_of(const void *state) {
    return (int32_t)(uintptr_t)state;
}

/* ---- callbacks ------------------------------------------------------------------------------------------- */

static int32_t signal_of(const ebb_cx *cx) {
    return (int32_t)cx->signal | (ebb__is_overdue(cx) ? SIGNAL_OVERDUE : 0);
}

static ebb_status poll(ebb_cx *cx, void *state) {
    return (ebb_status)host_poll(slot_of(state), signal_of(cx));
}

ebb_status web_finalize(ebb_cx *cx, void *state) {
    return (ebb_status)host_finalize(slot_of(state), signal_of(cx), ebb_cx_task(cx).id);
}

void web_aborted(void *state) {
    host_aborted(slot_of(state));
}

void web_task_ended(ebb_cx *cx, ebb_status status) {
    ebb_witness last;
    if (!ebb__task_runs(cx, poll)) return; /* the kernel's own: it runs a region's finalizers */
    (void)ebb_task_witness(ebb_runtime_host(web_rt), ebb_cx_task(cx), &last);
    words w = words_begin();
    put_witness(&w, &last);
    host_ended(slot_of(ebb__task_state(cx, poll)), status);
}

/* ---- tasks ----------------------------------------------------------------------------------------------- */

uint64_t web_spawn(uint64_t asker, uint64_t region, uint64_t deadline, uint32_t polls, int32_t priority,
                   int32_t slot, const char *site) {
    ebb_cx *cx = web_cx(asker);
    if (cx == NULL) return ebb__id_error(web_rt, web_missing(asker));
    ebb_task_opts opts = {.deadline = deadline, .polls = polls, .priority = (uint8_t)priority};
    ebb_task id = ebb_spawn_opts_site(cx, (ebb_region){region}, poll, web_slot_state(slot), &opts, site);
    ebb_cx *task = ebb__task_cx(web_rt, id, NULL);
    if (task != NULL) ebb__task_watch(task);
    return id.id;
}

int32_t web_wake(uint64_t asker, uint64_t task) {
    ebb_cx *cx = web_cx(asker);
    return cx == NULL ? web_missing(asker) : ebb_task_wake(cx, (ebb_task){task});
}

void web_task_cancel(uint64_t asker, uint64_t task, int32_t kind) {
    ebb_cx *cx = web_cx(asker);
    if (cx == NULL) cx = ebb_runtime_host(web_rt); /* a verb can't fail */
    ebb_task_cancel(cx, (ebb_task){task}, (ebb_cancel_kind)kind, scratch_text());
}

void web_task_force(uint64_t task) {
    ebb_task_force(ebb_runtime_host(web_rt), (ebb_task){task});
}

int32_t web_checkpoint(uint64_t asker) {
    ebb_cx *cx = web_cx(asker);
    return cx == NULL ? web_missing(asker) : ebb_checkpoint(cx);
}

int32_t web_mask(uint64_t asker) {
    ebb_cx *cx = web_cx(asker);
    return cx == NULL ? web_missing(asker) : ebb_mask(cx);
}

int32_t web_unmask(uint64_t asker) {
    ebb_cx *cx = web_cx(asker);
    return cx == NULL ? web_missing(asker) : ebb_unmask(cx);
}

int32_t web_signal(uint64_t task) {
    ebb_cx *cx = web_cx(task);
    return cx == NULL ? web_missing(task) : signal_of(cx);
}

int32_t web_task_info(uint64_t task) {
    ebb_task_info i;
    ebb_status st = ebb_task_info_of(ebb_runtime_host(web_rt), (ebb_task){task}, &i);
    if (st != EBB_OK) return st;
    words w = words_begin();
    put_u64(&w, i.region.id);
    put_u64(&w, i.budget.deadline);
    put_u32(&w, i.phase);
    put_u32(&w, i.mask_depth);
    put_u32(&w, i.lane);
    put_u32(&w, i.epoch);
    put_u32(&w, i.reason.kind);
    put_u32(&w, i.reason.severity);
    put_u32(&w, i.forced);
    put_u32(&w, i.budget.polls);
    put_u32(&w, i.budget.priority);
    put_message(&w, i.reason.message);
    return EBB_OK;
}

int32_t web_witness(uint64_t task) {
    ebb_witness seen;
    ebb_status st = ebb_task_witness(ebb_runtime_host(web_rt), (ebb_task){task}, &seen);
    if (st != EBB_OK) return st;
    words w = words_begin();
    put_witness(&w, &seen);
    return EBB_OK;
}

int32_t web_witness_check(void) {
    words w = words_begin();
    ebb_witness earlier = get_witness(&w), later = get_witness(&w);
    return ebb_witness_check(&earlier, &later);
}

/* ---- what a task has to do, and waits for ---------------------------------------------------------------- */

uint64_t web_reserve(uint64_t asker, int32_t kind, int32_t slot, const char *site) {
    ebb_cx *cx = web_cx(asker);
    if (cx == NULL) return ebb__id_error(web_rt, web_missing(asker));
    return ebb_obligation_reserve_site(cx, (ebb_obligation_kind)kind, web_aborted, web_slot_state(slot), site)
        .id;
}

int32_t web_commit(uint64_t asker, uint64_t obligation) {
    ebb_cx *cx = web_cx(asker);
    return cx == NULL ? web_missing(asker) : ebb_obligation_commit(cx, (ebb_obligation){obligation});
}

int32_t web_abort(uint64_t asker, uint64_t obligation) {
    ebb_cx *cx = web_cx(asker);
    return cx == NULL ? web_missing(asker) : ebb_obligation_abort(cx, (ebb_obligation){obligation});
}

int32_t web_defer(uint64_t asker, int32_t slot, const char *site) {
    ebb_cx *cx = web_cx(asker);
    return cx == NULL ? web_missing(asker) : ebb_defer_site(cx, web_finalize, web_slot_state(slot), site);
}

uint64_t web_timer_arm(uint64_t task, uint64_t due) {
    return ebb_timer_arm(ebb_runtime_host(web_rt), (ebb_task){task}, due).id;
}

int32_t web_timer_disarm(uint64_t timer) {
    return ebb_timer_disarm(ebb_runtime_host(web_rt), (ebb_timer){timer});
}
