/* The recorder: a ring of blocks that the kernel fills and the host empties. There is one for the trace and one
 * for the journal. It never allocates after its start and never waits: while every block is full it counts the
 * dropped records, and writes a gap record as soon as there is room. */
#ifndef EBB__RECORD_H
#define EBB__RECORD_H

#include "kernel/format.h"
#include "kernel/journal_op.h"
#include "kernel/rt.h"
#include "kernel/strings.h"

enum { EBB__BLOCK_RECORDS = 127, EBB__BLOCK_BYTES = 4096 };

struct ebb__recorder {
    uint8_t *blocks;           /* each: 32 bytes for the header, 127 records */
    uint64_t *first_seq;       /* of each block */
    uint32_t count;            /* blocks */
    uint32_t head;             /* the oldest block that the host has not taken */
    uint32_t full;             /* full blocks */
    ebb_record *at, *end;      /* next place in the current block, and its end; equal: it is full */
    uint64_t seq;              /* of the next record */
    uint64_t lost;             /* since the last gap record */
    uint64_t now, turn, batch; /* as last recorded; turn 0: never */
    uint8_t last;              /* the type of the last record */
    bool header_taken, journal;
    ebb_write_fn sink; /* takes every block when it is full, so that nothing is lost; NULL: none */
    void *sink_ctx;
    ebb__strings *strings; /* of a trace */
};

/* The place for the next record; NULL if it is lost, which is counted. */
ebb_record *ebb__record_slot_slow(ebb_runtime *rt, ebb__recorder *rec);

static inline ebb_record *ebb__record_slot(ebb_runtime *rt, ebb__recorder *rec) {
    if (EBB__LIKELY(rec->at != rec->end && rec->lost == 0)) {
        rec->seq++;
        return rec->at++;
    }
    return ebb__record_slot_slow(rt, rec);
}

/* Starts a recording into `bytes`, in place of the one before. EBB_ERR_NOMEM, EBB_ERR_INVALID: nothing has changed. */
ebb_status ebb__recorder_start(ebb_runtime *rt, ebb__recorder **where, bool journal, size_t bytes);
void ebb__recorder_free(ebb_runtime *rt, ebb__recorder *rec);

/* Passes the trace on while it is written, for a caller that needs all of it. */
void ebb__trace_sink(ebb_runtime *rt, ebb_write_fn write, void *ctx);

/* Starts what the options of a runtime ask for, and ends it: the last blocks go to the sinks. */
ebb_status ebb__record_by(ebb_runtime *rt, const ebb_recording *trace, const ebb_recording *journal);
void ebb__record_rest(ebb_runtime *rt);

/* ---- trace ------------------------------------------------------------------------------------ */

void ebb__emit_task_slow(ebb_runtime *rt, uint8_t type, const ebb__task *t, uint32_t value, uint64_t other);
void ebb__emit_region_slow(ebb_runtime *rt, uint8_t type, const ebb__region *r, uint64_t task, uint32_t value,
                           uint64_t other);
void ebb__emit_plain_slow(ebb_runtime *rt, uint8_t type, uint64_t task, uint64_t region, uint32_t value,
                          uint64_t other);
void ebb__emit_text_slow(ebb_runtime *rt, const char *text);

/* Records an event of a task. Without a trace this is one branch. */
static inline void ebb__emit_task(ebb_runtime *rt, uint8_t type, const ebb__task *t, uint32_t value,
                                  uint64_t other) {
    if (EBB__UNLIKELY(rt->trace != NULL)) ebb__emit_task_slow(rt, type, t, value, other);
}

static inline void ebb__emit_region(ebb_runtime *rt, uint8_t type, const ebb__region *r, uint64_t task,
                                    uint32_t value, uint64_t other) {
    if (EBB__UNLIKELY(rt->trace != NULL)) ebb__emit_region_slow(rt, type, r, task, value, other);
}

/* The same with a site, for the types of EBB__STRINGS_SITE. */
void ebb__emit_task_at_slow(ebb_runtime *rt, uint8_t type, const ebb__task *t, uint32_t value, uint64_t other,
                            const char *site);
void ebb__emit_region_at_slow(ebb_runtime *rt, uint8_t type, const ebb__region *r, uint64_t task,
                              uint32_t value, uint64_t other, const char *site);
static inline void ebb__emit_task_at(ebb_runtime *rt, uint8_t type, const ebb__task *t, uint32_t value,
                                     uint64_t other, const char *site) {
    if (EBB__UNLIKELY(rt->trace != NULL)) ebb__emit_task_at_slow(rt, type, t, value, other, site);
}
static inline void ebb__emit_region_at(ebb_runtime *rt, uint8_t type, const ebb__region *r, uint64_t task,
                                       uint32_t value, uint64_t other, const char *site) {
    if (EBB__UNLIKELY(rt->trace != NULL)) ebb__emit_region_at_slow(rt, type, r, task, value, other, site);
}

/* The number of a string in the trace, which must be on. A new one is recorded first. */
uint32_t ebb__string_number(ebb_runtime *rt, const char *text);

static inline void ebb__emit_plain(ebb_runtime *rt, uint8_t type, uint64_t task, uint64_t region,
                                   uint32_t value, uint64_t other) {
    if (EBB__UNLIKELY(rt->trace != NULL)) ebb__emit_plain_slow(rt, type, task, region, value, other);
}

static inline void ebb__emit_text(ebb_runtime *rt, const char *text) {
    if (EBB__UNLIKELY(rt->trace != NULL)) ebb__emit_text_slow(rt, text);
}

/* ---- journal ---------------------------------------------------------------------------------- */

void ebb__journal_slow(ebb_runtime *rt, const ebb_cx *cx, ebb_record rec);
void ebb__journal_text_slow(ebb_runtime *rt, const char *text);

/* A macro, so that the record is built only if there is a journal. */
#define ebb__journal(rt, cx, ...)                                                                            \
    (EBB__UNLIKELY((rt)->journal != NULL) ? ebb__journal_slow((rt), (cx), __VA_ARGS__) : (void)0)

static inline void ebb__journal_text(ebb_runtime *rt, const char *text) {
    if (EBB__UNLIKELY(rt->journal != NULL)) ebb__journal_text_slow(rt, text);
}

#endif
