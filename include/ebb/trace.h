/* ebb/trace.h - reading what a runtime has recorded: traces and journals, the names of events, fingerprints,
 * and the checker with its oracles.
 *
 * ebb_trace_start and ebb_journal_start of ebb/kernel.h record. Nothing here needs a runtime: it reads bytes
 * and events, on any thread, with one thread at a time for each reader, fingerprint or checker. */
#ifndef EBB_TRACE_H
#define EBB_TRACE_H

#include <ebb/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- events ---------------------------------------------------------------------------------- */

const char *ebb_event_name(uint32_t type); /* "cancel_acked"; NULL if there is none of that number */
bool ebb_event_is_cancel(uint32_t type);

/* ---- files ----------------------------------------------------------------------------------- */

/* Reading: a trace or a journal in memory. Survives anything: what is not whole or not right is an
 * error with the offset of the block and what was expected there. */
typedef struct ebb_trace_reader {
    const uint8_t *bytes;
    size_t n;
    size_t offset;  /* of the next block */
    size_t record;  /* next record in the block in hand */
    size_t records; /* in the block in hand */
    const uint8_t *block;
    bool journal;
    uint8_t runtime_id;
    uint64_t seq; /* decision_seq of the next record */
    uint64_t now, turn, batch;
    size_t error_offset; /* where the error is */
    const char *error;   /* what was expected there */
} ebb_trace_reader;

/* An event with everything that a record only implies. */
typedef struct ebb_event {
    uint32_t type;
    uint64_t decision_seq, host_turn_id, microtask_batch_id, time;
    uint64_t task_id, region_id, other;
    uint32_t value;
    uint8_t phase, cancel_kind, cancel_epoch, severity;
    char text[25]; /* of a text record, 0-terminated */
    size_t offset; /* in the file */
} ebb_event;

ebb_status ebb_trace_reader_open(ebb_trace_reader *r, const void *bytes, size_t n);
/* EBB_OK and an event; EBB_PENDING at the end; EBB_ERR_CORRUPT, EBB_ERR_TRUNCATED. */
ebb_status ebb_trace_reader_next(ebb_trace_reader *r, ebb_event *out);
/* The record of an event that was read; the inverse of ebb_trace_reader_next. */
ebb_record ebb_event_record(const ebb_event *ev);

/* Writes records as a file, for tools and tests: header, blocks, checksums. */
typedef struct ebb_trace_writer {
    ebb_write_fn write;
    void *ctx;
    uint64_t seq;
    uint32_t n;
    ebb_record block[127];
} ebb_trace_writer;
void ebb_trace_writer_begin(ebb_trace_writer *w, bool journal, uint8_t runtime_id, ebb_write_fn write,
                            void *ctx);
void ebb_trace_writer_put(ebb_trace_writer *w, const ebb_record *record);
void ebb_trace_writer_end(ebb_trace_writer *w);

/* ---- fingerprint ----------------------------------------------------------------------------- */

/* The fingerprint of a trace: 128 bits that agree for runs which differ only in the order of
 * independent steps. Feed it every event in order. Allocates; EBB_ERR_NOMEM sticks until the end. */
typedef struct ebb_fingerprint ebb_fingerprint;
typedef struct ebb_hash {
    uint64_t hi, lo;
} ebb_hash;
ebb_fingerprint *ebb_fingerprint_new(ebb_allocator a); /* NULL: no memory */
/* The parity fingerprint: cancel, obligation, finalizer and end events only. Hosts whose wakes, polls and masks
 * differ must still agree on it. NULL: no memory. */
ebb_fingerprint *ebb_fingerprint_new_parity(ebb_allocator a);
void ebb_fingerprint_event(ebb_fingerprint *f, const ebb_event *ev);
ebb_status ebb_fingerprint_end(ebb_fingerprint *f, ebb_hash *out); /* EBB_ERR_INVALID: it has a gap */
void ebb_fingerprint_free(ebb_fingerprint *f);

/* ---- oracles ---------------------------------------------------------------------------------- */

/* The rules that every run keeps, checked on its events alone. `ebb trace verify --strict` is this
 * over a file, the lab is this over a live runtime, and so can your tests be. */
typedef enum ebb_oracle {
#define EBB_ORACLE(name, text) name,
#include <ebb/oracle.def>
#undef EBB_ORACLE
    EBB_ORACLES
} ebb_oracle;

const char *ebb_oracle_name(ebb_oracle o); /* "ack_only_unmasked" */

typedef struct ebb_violation {
    ebb_oracle oracle;
    ebb_event event; /* the event that breaks the rule; its type is 0 at the end of the run */
    char text[160];  /* what was expected and what was found */
} ebb_violation;

typedef struct ebb_checker ebb_checker;
ebb_checker *ebb_checker_new(ebb_allocator a); /* NULL: no memory */
/* EBB_OK; EBB_ERR_ORACLE from the first violation on; EBB_ERR_NOMEM. */
ebb_status ebb_checker_event(ebb_checker *c, const ebb_event *ev);
/* At the end of a run: `quiescent` if everything was meant to have ended (nothing may be left). */
ebb_status ebb_checker_end(ebb_checker *c, bool quiescent);
const ebb_violation *ebb_checker_violation(const ebb_checker *c); /* NULL: none */
uint64_t ebb_checker_events(const ebb_checker *c);
void ebb_checker_free(ebb_checker *c);

#ifdef __cplusplus
}
#endif
#endif
