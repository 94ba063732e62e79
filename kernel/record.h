/* The recorder: a ring of blocks that the kernel fills and the host empties. One for the trace, one
 * for the journal. Never allocates after its start and never waits: with every block full it counts
 * what it drops, and the first record that has room again is a gap. */
#ifndef EBB__RECORD_H
#define EBB__RECORD_H

#include "kernel/rt.h"

enum { EBB__BLOCK_RECORDS = 127, EBB__BLOCK_BYTES = 4096 };

struct ebb__recorder {
    uint8_t *blocks;           /* each: 32 bytes for the header, 127 records */
    uint64_t *first_seq;       /* of each block */
    uint32_t count;            /* blocks */
    uint32_t head;             /* the oldest block that is not taken */
    uint32_t full;             /* full blocks */
    ebb_record *at, *end;      /* in the block in hand; equal: it is full */
    uint64_t seq;              /* of the next record */
    uint64_t lost;             /* since the last gap record */
    uint64_t now, turn, batch; /* as last recorded; turn 0: never */
    uint8_t last;              /* the type of the last record */
    bool header_taken, journal;
    ebb_write_fn sink; /* takes every block as it gets full, so that nothing is lost; NULL: nobody */
    void *sink_ctx;
};

/* A place for the next record, or NULL with it counted as lost. */
ebb_record *ebb__record_slot_slow(ebb_rt *rt, ebb__recorder *rec);

static inline ebb_record *ebb__record_slot(ebb_rt *rt, ebb__recorder *rec) {
    if (EBB__LIKELY(rec->at != rec->end && rec->lost == 0)) {
        rec->seq++;
        return rec->at++;
    }
    return ebb__record_slot_slow(rt, rec);
}

void ebb__recorder_free(ebb_rt *rt, ebb__recorder *rec);

/* Hands the trace over as it is written, for those who need all of it however much it is. */
void ebb__trace_sink(ebb_rt *rt, ebb_write_fn write, void *ctx);

/* ---- trace ------------------------------------------------------------------------------------ */

void ebb__emit_task_slow(ebb_rt *rt, uint8_t type, const ebb__task *t, uint32_t value, uint64_t other);
void ebb__emit_region_slow(ebb_rt *rt, uint8_t type, const ebb__region *r, uint64_t task, uint32_t value,
                           uint64_t other);
void ebb__emit_plain_slow(ebb_rt *rt, uint8_t type, uint64_t task, uint64_t region, uint32_t value,
                          uint64_t other);
void ebb__emit_text_slow(ebb_rt *rt, const char *text);

/* What happened to a task. Off, this is one branch. */
static inline void ebb__emit_task(ebb_rt *rt, uint8_t type, const ebb__task *t, uint32_t value,
                                  uint64_t other) {
    if (EBB__UNLIKELY(rt->trace != NULL)) ebb__emit_task_slow(rt, type, t, value, other);
}

static inline void ebb__emit_region(ebb_rt *rt, uint8_t type, const ebb__region *r, uint64_t task,
                                    uint32_t value, uint64_t other) {
    if (EBB__UNLIKELY(rt->trace != NULL)) ebb__emit_region_slow(rt, type, r, task, value, other);
}

static inline void ebb__emit_plain(ebb_rt *rt, uint8_t type, uint64_t task, uint64_t region, uint32_t value,
                                   uint64_t other) {
    if (EBB__UNLIKELY(rt->trace != NULL)) ebb__emit_plain_slow(rt, type, task, region, value, other);
}

static inline void ebb__emit_text(ebb_rt *rt, const char *text) {
    if (EBB__UNLIKELY(rt->trace != NULL)) ebb__emit_text_slow(rt, text);
}

/* ---- journal ---------------------------------------------------------------------------------- */

/* Operations. A record's `phase` is 1 if the host asked; else it was the task that is being polled, or
 * the one that an ASKER record before it names. What has a result is recorded after it was done; what
 * has none, and ABORT and PUMP, which call user code, before. Calls into user code stand around what
 * that code asked for. The first five records are START, LIMITS and CLEANUP for each severity. */
typedef enum ebb__op {
    J_TEXT = EBB_EV_TEXT, /* a site or message: belongs to the record before */
    J_ARGS = 5,           /* more arguments: task: deadline, value: polls, kind: priority */
    J_START = 6,          /* task: turn, region: batch, other: now, value: 1 if it is not the first thing */
    J_LIMITS = 7,         /* value: max_tasks, region: max_regions, other: tick of the wheel, kind: patient,
                           * task: chain_depth << 32 | chain_bytes */
    J_CLEANUP = 8,        /* kind: severity, task: time_ns, value: polls */
    J_ASKER = 9,          /* task: who asks for what follows */
    J_OPEN = 10,          /* region: parent, other: the new one, value: flags; then ARGS, TEXT */
    J_CLOSE,              /* region */
    J_CANCEL,             /* region, kind; then TEXT */
    J_CANCEL_WITHIN,      /* region, kind; then ARGS, TEXT */
    J_FORCE,              /* region */
    J_REGION_JOIN,        /* region, value: result */
    J_SPAWN,              /* region, other: the new task, value: flags; then ARGS, TEXT */
    J_TASK_JOIN,          /* task, value: result */
    J_WAKE,               /* task */
    J_TASK_CANCEL,        /* task, kind; then TEXT */
    J_TASK_FORCE,         /* task */
    J_CHECKPOINT,         /* value: result */
    J_MASK,               /* value: result */
    J_UNMASK,             /* value: result */
    J_RESERVE,   /* kind, region (0: of the task), value: has a hook, other: the new one; then TEXT */
    J_COMMIT,    /* other, value: result */
    J_ABORT,     /* other, value: result */
    J_DEFER,     /* region (0: of the task), kind: 1 if it is the runtime's own, value: result; then TEXT */
    J_ADVANCE,   /* other: now */
    J_PUMP,      /* value: polls allowed */
    J_TURN,      /* task: turn, region: batch */
    J_TIMER_ARM, /* task, region: due, other: the new one */
    J_TIMER_DISARM, /* other, value: result */
    J_RECEIVE,      /* value: verb, task or region, other: word; then what it asks for, as any other */
    J_CHOICE,       /* value: which, other: of how many */
    J_CHAIN,        /* region, value: room */
    J_WAIT_BEGIN,   /* value: its number */
    J_WAIT_END,     /* value: its number */
    J_CALL,         /* user code is called: value: what (EBB__CALL_*), task, region, other */
    J_RETURN,       /* and has returned: value: status */
    J_SUPERVISOR,   /* region, other: the new task, value: 1: the root's, with on_closed; then TEXT */
    J_ALARM,        /* task: the supervisor, other: due */
    J_JOINING,      /* region */
    J_NOTE,         /* kind: type of the event, task, region, other, value */
    J_ADMIT,        /* an operation was refused: kind: 1 if it brings work in, value: result */
    J_CLOCK,        /* other: now, as read where the kernel started a budget */
    J_OPERATORS,    /* region: the drain, other: the new one; then TEXT */
    J_RELEASE,      /* region: the operators', other: due */
    J_OPERATION,    /* region: an operation of it was abandoned; result: was it kept; then TEXT */
    J_END
} ebb__op;

enum {
    EBB__CALL_POLL = 1,
    EBB__CALL_FINALIZER,
    EBB__CALL_ABORT,
    EBB__CALL_CLOSED,
    EBB__CALL_WAIT,
    EBB__CALL_FUTURES /* a callback runner is over, or the region lets go of its futures */
};

void ebb__journal_slow(ebb_rt *rt, const ebb_cx *cx, ebb_record rec);
void ebb__journal_text_slow(ebb_rt *rt, const char *text);

/* A macro, so that a record is not built on the stack when nobody wants it. */
#define ebb__journal(rt, cx, ...)                                                                            \
    (EBB__UNLIKELY((rt)->journal != NULL) ? ebb__journal_slow((rt), (cx), __VA_ARGS__) : (void)0)

static inline void ebb__journal_text(ebb_rt *rt, const char *text) {
    if (EBB__UNLIKELY(rt->journal != NULL)) ebb__journal_text_slow(rt, text);
}

#endif
