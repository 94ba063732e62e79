#include "kernel/record.h"

#include "kernel/format.h"

#include <assert.h>

_Static_assert(sizeof(ebb_record) == 32, "a record is 32 bytes in buffers and files");

static ebb_record *records_of(const ebb__recorder *rec, uint32_t block) {
    return (ebb_record *)(void *)(rec->blocks + (size_t)block * EBB__BLOCK_BYTES + 32);
}

static void open_block(ebb__recorder *rec) {
    uint32_t b = (rec->head + rec->full) % rec->count;
    rec->at = records_of(rec, b);
    rec->end = rec->at + EBB__BLOCK_RECORDS;
    rec->first_seq[b] = rec->seq;
}

static void put(ebb__recorder *rec, ebb_record r) {
    assert(rec->at != NULL && rec->at != rec->end);
    rec->seq++;
    *rec->at++ = r;
    rec->last = r.type;
}

/* Writes how many records were lost, then turn and time, which later records rely on. The caller has checked that
 * three records fit. */
static void put_gap(ebb__recorder *rec) {
    put(rec, (ebb_record){.type = EBB_EV_GAP, .other = rec->lost});
    rec->seq += rec->lost;
    rec->lost = 0;
    put(rec, (ebb_record){.type = EBB_EV_TURN, .task = rec->turn, .region = rec->batch});
    put(rec, (ebb_record){.type = EBB_EV_TIME, .other = rec->now});
}

static void take(ebb_runtime *rt, ebb__recorder *rec, bool flush, ebb_write_fn write, void *ctx);

/* Called when the current block is full or events were lost. */
ebb_record *ebb__record_slot_slow(ebb_runtime *rt, ebb__recorder *rec) {
    if (rec->at == rec->end && rec->sink != NULL) take(rt, rec, false, rec->sink, rec->sink_ctx);
    if (rec->at == rec->end && rec->full < rec->count) {
        rec->full++;
        if (rec->full < rec->count) open_block(rec);
    }
    if (rec->at == rec->end || (rec->lost > 0 && rec->end - rec->at < 4)) {
        rec->lost++;
        rt->stats.trace_lost += !rec->journal;
        return NULL;
    }
    if (rec->lost > 0) put_gap(rec);
    rec->seq++;
    return rec->at++;
}

static void start(ebb_runtime *rt, ebb__recorder *rec, bool journal, uint32_t count) {
    *rec = (ebb__recorder){.blocks = rec->blocks,
                           .first_seq = rec->first_seq,
                           .count = count,
                           .seq = 1,
                           .journal = journal,
                           .strings = rec->strings};
    open_block(rec);
    if (journal) return;
    ebb__strings_init(rec->strings);
    rec->turn = rt->turn;
    rec->batch = rt->batch;
    rec->now = rt->now;
    put(rec, (ebb_record){.type = EBB_EV_TURN, .task = rt->turn, .region = rt->batch});
    put(rec, (ebb_record){.type = EBB_EV_TIME, .other = rt->now});
}

ebb_status ebb__recorder_start(ebb_runtime *rt, ebb__recorder **where, bool journal, size_t bytes) {
    if (bytes == 0) {
        ebb__recorder_free(rt, *where);
        *where = NULL;
        rt->recorded = rt->trace != NULL || rt->journal != NULL;
        rt->observed = rt->watched || rt->recorded;
        return EBB_OK;
    }
    if (bytes > SIZE_MAX / 2 || bytes / EBB__BLOCK_BYTES > UINT32_MAX / 2) return EBB_ERR_INVALID;
    size_t count = (bytes + EBB__BLOCK_BYTES - 1) / EBB__BLOCK_BYTES;
    if (count < 2) count = 2;
    ebb__recorder *rec = ebb__alloc(&rt->allocator, sizeof *rec);
    if (rec == NULL) return EBB_ERR_NOMEM;
    rec->count = (uint32_t)count;
    rec->blocks = ebb__alloc(&rt->allocator, count * EBB__BLOCK_BYTES);
    rec->first_seq = ebb__alloc(&rt->allocator, count * sizeof *rec->first_seq);
    rec->strings = journal ? NULL : ebb__alloc(&rt->allocator, sizeof *rec->strings);
    if (rec->blocks == NULL || rec->first_seq == NULL || (rec->strings == NULL && !journal)) {
        ebb__recorder_free(rt, rec);
        return EBB_ERR_NOMEM;
    }
    ebb__recorder_free(rt, *where);
    start(rt, rec, journal, (uint32_t)count);
    *where = rec;
    rt->recorded = rt->observed = true;
    return EBB_OK;
}

void ebb__recorder_free(ebb_runtime *rt, ebb__recorder *rec) {
    if (rec == NULL) return;
    ebb__free(&rt->allocator, rec->blocks, (size_t)rec->count * EBB__BLOCK_BYTES);
    ebb__free(&rt->allocator, rec->first_seq, rec->count * sizeof *rec->first_seq);
    ebb__free(&rt->allocator, rec->strings, sizeof *rec->strings);
    ebb__free(&rt->allocator, rec, sizeof *rec);
}

ebb_status ebb_trace_start(ebb_runtime *rt, size_t bytes) {
    ebb_status st = ebb__recorder_start(rt, &rt->trace, false, bytes);
    if (st == EBB_OK)
        ebb__emit_region_at(rt, EBB_EV_REGION_OPENED, ebb__region_at(rt, rt->root), 0, 2, 0, "root");
    return st;
}

/* True if the runtime's state is still that of its start. */
static bool untouched(const ebb_runtime *rt) {
    return rt->tasks.used == 1 && rt->regions.used == 2 && rt->obligations.used == 1 &&
           rt->timers.used == 1 && rt->sequence == 0 && rt->waits == 0 &&
           ebb__region_at(rt, rt->root)->state == EBB_REGION_OPEN;
}

/* Records everything from outside that determines the runtime's behaviour. */
static void journal_beginning(ebb_runtime *rt) {
    ebb__recorder *rec = rt->journal;
    put(rec, (ebb_record){.type = J_START,
                          .value = untouched(rt) ? 0 : 1,
                          .task = rt->turn,
                          .region = rt->batch,
                          .other = rt->now});
    put(rec, (ebb_record){.type = J_LIMITS,
                          .kind = rt->short_pumps,
                          .value = rt->tasks.limit,
                          .task = (uint64_t)rt->chain_depth << 32 | rt->chain_bytes,
                          .region = rt->regions.limit,
                          .other = rt->wheel.tick});
    for (uint32_t i = EBB_SEVERITY_POLITE; i <= EBB_SEVERITY_FORCED; i++) {
        put(rec, (ebb_record){.type = J_CLEANUP,
                              .kind = (uint8_t)i,
                              .task = rt->cleanup[i].time_ns,
                              .value = rt->cleanup[i].polls});
    }
}

ebb_status ebb_journal_start(ebb_runtime *rt, size_t bytes) {
    ebb_status st = ebb__recorder_start(rt, &rt->journal, true, bytes);
    if (st == EBB_OK && rt->journal != NULL) journal_beginning(rt);
    return st;
}

static void give_block(ebb__recorder *rec, uint32_t block, uint32_t n, ebb_write_fn write, void *ctx) {
    uint8_t *bytes = rec->blocks + (size_t)block * EBB__BLOCK_BYTES;
    ebb__block_seal(bytes, records_of(rec, block), n, rec->first_seq[block]);
    write(ctx, bytes, 32 + (size_t)n * sizeof(ebb_record));
}

static void take(ebb_runtime *rt, ebb__recorder *rec, bool flush, ebb_write_fn write, void *ctx) {
    if (rec == NULL) return;
    if (!rec->header_taken) {
        uint8_t header[64];
        ebb__file_header(header, rec->journal, rt->id);
        write(ctx, header, sizeof header);
        rec->header_taken = true;
    }
    bool was_full = rec->at == rec->end;
    if (was_full && rec->full < rec->count) rec->full++;
    uint32_t hand = (rec->head + rec->full) % rec->count;
    uint32_t hand_n = was_full ? 0 : (uint32_t)(rec->at - records_of(rec, hand));
    for (; rec->full > 0; rec->full--) {
        give_block(rec, rec->head, EBB__BLOCK_RECORDS, write, ctx);
        rec->head = (rec->head + 1) % rec->count;
    }
    if (flush && hand_n > 0) give_block(rec, hand, hand_n, write, ctx);
    if ((flush && hand_n > 0) || was_full) open_block(rec);
    if (flush && rec->lost > 0) { /* without it, a file that ends here would look complete */
        put_gap(rec);
        take(rt, rec, true, write, ctx);
    }
}

void ebb__trace_sink(ebb_runtime *rt, ebb_write_fn write, void *ctx) {
    rt->trace->sink = write;
    rt->trace->sink_ctx = ctx;
}

static void sink_set(ebb__recorder *rec, const ebb_recording *r) {
    if (rec == NULL) return;
    rec->sink = r->write;
    rec->sink_ctx = r->ctx;
}

ebb_status ebb__record_by(ebb_runtime *rt, const ebb_recording *trace, const ebb_recording *journal) {
    ebb_status st = trace->bytes == 0 ? EBB_OK : ebb_trace_start(rt, trace->bytes);
    if (st == EBB_OK && journal->bytes != 0) st = ebb_journal_start(rt, journal->bytes);
    sink_set(rt->trace, trace);
    sink_set(rt->journal, journal);
    return st;
}

void ebb__record_rest(ebb_runtime *rt) {
    if (rt->trace != NULL && rt->trace->sink != NULL) {
        take(rt, rt->trace, true, rt->trace->sink, rt->trace->sink_ctx);
    }
    if (rt->journal != NULL && rt->journal->sink != NULL) {
        take(rt, rt->journal, true, rt->journal->sink, rt->journal->sink_ctx);
    }
}

bool ebb__rt_has_blocks(const ebb_runtime *rt, bool journal) {
    const ebb__recorder *rec = journal ? rt->journal : rt->trace;
    return rec != NULL && rec->full > 0;
}

bool ebb__rt_has_records(const ebb_runtime *rt, bool journal) {
    const ebb__recorder *rec = journal ? rt->journal : rt->trace;
    if (rec == NULL) return false;
    return rec->full > 0 || rec->lost > 0 || rec->at != records_of(rec, (rec->head + rec->full) % rec->count);
}

void ebb_trace_take(ebb_runtime *rt, bool flush, ebb_write_fn write, void *ctx) {
    take(rt, rt->trace, flush, write, ctx);
}

void ebb_journal_take(ebb_runtime *rt, bool flush, ebb_write_fn write, void *ctx) {
    take(rt, rt->journal, flush, write, ctx);
}

/* ---- trace --------------------------------------------------------------------------------------------- */

static void catch_up(ebb_runtime *rt, ebb__recorder *rec) {
    if (rec->turn != rt->turn || rec->batch != rt->batch) {
        rec->turn = rt->turn;
        rec->batch = rt->batch;
        ebb_record *r = ebb__record_slot(rt, rec);
        if (r != NULL) *r = (ebb_record){.type = EBB_EV_TURN, .task = rt->turn, .region = rt->batch};
    }
    if (rec->now != rt->now) {
        rec->now = rt->now;
        ebb_record *r = ebb__record_slot(rt, rec);
        if (r != NULL) *r = (ebb_record){.type = EBB_EV_TIME, .other = rt->now};
    }
}

static void emit(ebb_runtime *rt, ebb_record r) {
    ebb__recorder *rec = rt->trace;
    if (EBB__UNLIKELY(rec->now != rt->now || rec->turn != rt->turn || rec->batch != rt->batch)) {
        catch_up(rt, rec);
    }
    ebb_record *slot = ebb__record_slot(rt, rec);
    rec->last = r.type;
    if (slot != NULL) *slot = r;
}

static uint8_t epoch_byte(uint8_t request) {
    return (uint8_t)(ebb__request_severity(request) << 4 | ebb__request_epoch(request));
}

void ebb__emit_task_slow(ebb_runtime *rt, uint8_t type, const ebb__task *t, uint32_t value, uint64_t other) {
    uint64_t region = t->region == 0 ? 0 : ebb__region_id(rt, ebb__region_at(rt, t->region));
    emit(rt, (ebb_record){type, t->phase, ebb__request_kind(t->request), epoch_byte(t->request), value,
                          ebb__task_id(t), region, other});
}

void ebb__emit_region_slow(ebb_runtime *rt, uint8_t type, const ebb__region *r, uint64_t task, uint32_t value,
                           uint64_t other) {
    emit(rt, (ebb_record){type, r->state, ebb__request_kind(r->request), epoch_byte(r->request), value, task,
                          ebb__region_id(rt, r), other});
}

void ebb__emit_plain_slow(ebb_runtime *rt, uint8_t type, uint64_t task, uint64_t region, uint32_t value,
                          uint64_t other) {
    emit(rt, (ebb_record){type, 0, 0, 0, value, task, region, other});
}

uint32_t ebb__string_number(ebb_runtime *rt, const char *text) {
    bool fresh = false;
    uint32_t number = ebb__string(rt->trace->strings, text, &fresh);
    if (EBB__LIKELY(!fresh)) return number;
    ebb__emit_plain_slow(rt, EBB_EV_STRING, 0, 0, number, 0);
    ebb__emit_text_slow(rt, text);
    return number;
}

void ebb__emit_task_at_slow(ebb_runtime *rt, uint8_t type, const ebb__task *t, uint32_t value, uint64_t other,
                            const char *site) {
    value |= ebb__string_number(rt, site) << EBB__SITE_BITS;
    ebb__emit_task_slow(rt, type, t, value, other);
}

void ebb__emit_region_at_slow(ebb_runtime *rt, uint8_t type, const ebb__region *r, uint64_t task,
                              uint32_t value, uint64_t other, const char *site) {
    value |= ebb__string_number(rt, site) << EBB__SITE_BITS;
    ebb__emit_region_slow(rt, type, r, task, value, other);
}

/* A text is cut into pieces of 24 bytes; all but the last are marked. */
static bool next_piece(ebb_record *r, const char **text) {
    char piece[24] = {0};
    uint32_t n = 0;
    while (n < sizeof piece && (*text)[n] != 0) {
        piece[n] = (*text)[n];
        n++;
    }
    *text += n;
    *r = (ebb_record){.type = EBB_EV_TEXT, .phase = **text != 0, .value = n};
    memcpy(&r->task, piece, sizeof r->task);
    memcpy(&r->region, piece + 8, sizeof r->region);
    memcpy(&r->other, piece + 16, sizeof r->other);
    return n > 0;
}

void ebb__emit_text_slow(ebb_runtime *rt, const char *text) {
    ebb_record r;
    while (text != NULL && next_piece(&r, &text)) emit(rt, r);
}

void ebb_runtime_set_turn(ebb_runtime *rt, uint64_t host_turn_id, uint64_t microtask_batch_id) {
    if (host_turn_id == 0 || microtask_batch_id == 0) return; /* 0 means a missing field */
    rt->turn = host_turn_id;
    rt->batch = microtask_batch_id;
    ebb__journal(rt, &rt->host.cx,
                 (ebb_record){.type = J_TURN, .task = host_turn_id, .region = microtask_batch_id});
}

/* ---- journal ------------------------------------------------------------------------------------------- */

static void journal_put(ebb_runtime *rt, ebb_record r) {
    ebb_record *slot = ebb__record_slot(rt, rt->journal);
    if (slot != NULL) *slot = r;
}

void ebb__journal_slow(ebb_runtime *rt, const ebb_cx *cx, ebb_record rec) {
    const ebb__task *t = ebb__task_of(cx);
    rec.phase = t == &rt->host;
    if (t != &rt->host && t != rt->current && rec.type != J_ARGS) {
        journal_put(rt, (ebb_record){.type = J_ASKER, .task = ebb__task_id(t)});
    }
    journal_put(rt, rec);
}

void ebb__journal_text_slow(ebb_runtime *rt, const char *text) {
    ebb_record r;
    while (text != NULL && next_piece(&r, &text)) journal_put(rt, r);
}
