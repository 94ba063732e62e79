/* The runtime of this instance: its start, time, the pump, and what is known of it. */
#include "web/wasm/host.h"

#include <ebb/trace.h>

#include "kernel/names.h"
#include "web/wasm/abi.h"
#include "web/wasm/alloc.h"
#include "web/wasm/words.h"

ebb_runtime *web_rt;

static const ebb__layer layer = {.slot = 3, .hooks = {.task_ended = web_task_ended}};

int32_t web_abi_version(void) {
    return ABI_VERSION;
}

void *web_scratch(void) {
    return web_scratch_bytes;
}

/* An instance that did not start. One that did goes with its memory, when nobody has it any more. */
static void give_up(void) {
    ebb_runtime_free(web_rt);
    web_rt = NULL;
}

int32_t web_start(int32_t runtime_id, uint64_t now, uint32_t trace, uint32_t journal, int32_t patient) {
    if (web_rt != NULL || runtime_id < 0 || runtime_id > 255) return EBB_ERR_INVALID;
    ebb_runtime_opts opts = {.allocator = web_allocator(), .runtime_id = (uint8_t)runtime_id, .now = now};
    words w = words_begin();
    for (uint32_t i = EBB_SEVERITY_POLITE; i <= EBB_SEVERITY_FORCED; i++) {
        opts.cleanup[i].time_ns = get_u64(&w);
        opts.cleanup[i].polls = get_u32(&w);
    }
    ebb_status st = ebb_runtime_new(&opts, &web_rt);
    if (st == EBB_OK) ebb__rt_set_short_pumps(web_rt, patient != 0);
    if (st == EBB_OK && trace != 0) st = ebb_trace_start(web_rt, trace);
    if (st == EBB_OK && journal != 0) st = ebb_journal_start(web_rt, journal);
    if (st == EBB_OK) st = ebb__layer_add(web_rt, &layer, &web_rt);
    if (st != EBB_OK) give_up();
    return st;
}

void web_advance(uint64_t now) {
    ebb_runtime_advance(web_rt, now);
}

void web_turn(uint64_t host_turn, uint64_t batch) {
    ebb_runtime_set_turn(web_rt, host_turn, batch);
}

int32_t web_pump(uint32_t max_polls) {
    return ebb_runtime_pump(web_rt, max_polls);
}

uint64_t web_next_due(void) {
    return ebb_runtime_next_due(web_rt);
}

uint32_t web_runnable(void) {
    ebb_runtime_stats s;
    ebb_runtime_stats_of(web_rt, &s);
    return s.runnable;
}

static void hand_over(void *what, const void *bytes, size_t n) {
    host_bytes((int32_t)(intptr_t)what, bytes, n);
}

static void hand_over_text(void *what, const char *text, size_t n) {
    hand_over(what, text, n);
}

void web_take_trace(int32_t flush) {
    ebb_trace_take(web_rt, flush != 0, hand_over, (void *)BYTES_TRACE);
}

void web_take_journal(int32_t flush) {
    ebb_journal_take(web_rt, flush != 0, hand_over, (void *)BYTES_JOURNAL);
}

void web_dump(void) {
    ebb_runtime_dump(web_rt, hand_over_text, (void *)BYTES_DUMP);
}

void web_stats(void) {
    ebb_runtime_stats s;
    ebb_runtime_stats_of(web_rt, &s);
    words w = words_begin();
    put_u64(&w, s.polls);
    put_u64(&w, s.spawned);
    put_u64(&w, s.ended);
    put_u64(&w, s.stale_wakes);
    put_u64(&w, s.leaks);
    put_u64(&w, s.abandoned);
    put_u64(&w, s.illegal);
    put_u64(&w, s.trace_lost);
    put_u32(&w, s.tasks);
    put_u32(&w, s.regions);
    put_u32(&w, s.obligations);
    put_u32(&w, s.timers);
    put_u32(&w, s.runnable);
    put_u32(&w, s.retired);
    for (int i = 0; i < 3; i++) put_u32(&w, s.worst_wait[i]);
}

const char *web_name(int32_t table, int32_t value) {
    switch (table) {
    case NAME_STATUS: return ebb_status_name((ebb_status)value);
    case NAME_STATUS_TEXT: return ebb_status_text((ebb_status)value);
    case NAME_CANCEL_KIND: return ebb_cancel_kind_name((ebb_cancel_kind)value);
    case NAME_EVENT: return ebb_event_name((uint32_t)value);
    case NAME_PHASE: return ebb__phase_name((uint32_t)value);
    case NAME_REGION_STATE: return ebb__region_state_name((uint32_t)value);
    case NAME_SEVERITY: return ebb__severity_name((uint32_t)value);
    case NAME_LANE: return ebb__lane_name((uint32_t)value);
    case NAME_OBLIGATION: return ebb__obligation_kind_name((uint32_t)value);
    default: return NULL;
    }
}

int32_t web_id_status(uint64_t id) {
    return ebb_id_status(id);
}
