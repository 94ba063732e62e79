/* ebb/trace.h - reads the traces and journals that a runtime records: files, names of events, fingerprints, and the
 * checker with its oracles.
 *
 * ebb_trace_start and ebb_journal_start of ebb/kernel.h record. The functions here need no runtime: they work on bytes
 * and events, on any thread. One thread at a time may use a reader, writer, fingerprint or checker. */
#ifndef EBB_TRACE_H
#define EBB_TRACE_H

#include <ebb/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- events ---------------------------------------------------------------------------------- */

const char *ebb_event_name(uint32_t type); /* "cancel_acked"; NULL: no event has this number. Static */
bool ebb_event_is_cancel(uint32_t type);   /* whether the event is a step of a cancellation */

/* ---- files ----------------------------------------------------------------------------------- */

/* A reader of a trace or journal in memory. It accepts any bytes: for an incomplete or damaged file it gives an error
 * with the offset and what was expected there. It allocates nothing. */
typedef struct ebb_trace_reader {
    const uint8_t *bytes;      /* the file; must stay valid while the reader is used */
    size_t n;                  /* bytes in the file */
    size_t offset;             /* of the next block */
    size_t record;             /* next record in the current block */
    size_t records;            /* records in the current block */
    const uint8_t *block;      /* records of the current block */
    bool journal;              /* a journal, not a trace */
    uint8_t runtime_id;        /* of the runtime that recorded it */
    uint64_t seq;              /* decision_seq of the next record */
    uint64_t now, turn, batch; /* time, turn and batch of the next record */
    size_t error_offset;       /* where the error is */
    const char *error;         /* what was expected there */
} ebb_trace_reader;

/* A record together with its number, time and turn, which the reader computes. */
typedef struct ebb_event {
    uint32_t type;          /* ebb_event_type; of a journal an operation */
    uint64_t decision_seq,  /* number of the record, from 1; a gap counts the lost ones too */
        host_turn_id,       /* see ebb_runtime_set_turn */
        microtask_batch_id, /* see ebb_runtime_set_turn */
        time;               /* of the runtime */
    uint64_t task_id,       /* 0: none */
        region_id,          /* 0: none */
        other;              /* by type: see event.def */
    uint32_t value;         /* by type: see event.def */
    uint8_t phase,          /* as in ebb_record */
        cancel_kind,        /* ebb_cancel_kind */
        cancel_epoch,       /* 0: no cancel request */
        severity;           /* ebb_severity */
    uint32_t site;          /* number of a string of this trace: the place in the program. 0: none */
    uint32_t what;          /* number of a string: the name of what the event is about. 0: none */
    char text[25];          /* of a text record, 0-terminated */
    size_t offset;          /* of the record in the file */
} ebb_event;

/* Checks the file header. EBB_ERR_FORMAT: not a trace or journal of this version and contract. EBB_ERR_TRUNCATED,
 * EBB_ERR_CORRUPT. On an error `error` and `error_offset` are set. */
ebb_status ebb_trace_reader_open(ebb_trace_reader *r, const void *bytes, size_t n);
/* Reads the next event. EBB_PENDING: the end of the file. EBB_ERR_CORRUPT, EBB_ERR_TRUNCATED: `error` and
 * `error_offset` are set; another call gives the same error. EBB_ERR_FORMAT: the reader could not be opened. */
ebb_status ebb_trace_reader_next(ebb_trace_reader *r, ebb_event *out);
/* Returns the record of an event: the inverse of ebb_trace_reader_next. */
ebb_record ebb_event_record(const ebb_event *ev);

/* Writes records as a file, for tools and tests: header, blocks, checksums. It allocates nothing. */
typedef struct ebb_trace_writer {
    ebb_write_fn write;    /* receives the bytes of the file */
    void *ctx;             /* the first argument of `write` */
    uint64_t seq;          /* number of the first record in `block` */
    uint32_t n;            /* records in `block` */
    ebb_record block[127]; /* not written yet */
} ebb_trace_writer;
/* Initializes `w` and writes the file header. */
void ebb_trace_writer_begin(ebb_trace_writer *w, bool journal, uint8_t runtime_id, ebb_write_fn write,
                            void *ctx);
/* Adds a record; writes the block when it is full. */
void ebb_trace_writer_put(ebb_trace_writer *w, const ebb_record *record);
/* Writes the last block. */
void ebb_trace_writer_end(ebb_trace_writer *w);

/* ---- fingerprint ----------------------------------------------------------------------------- */

/* The fingerprint of a trace: 128 bits that are equal for runs which differ only in the order of independent steps. */
typedef struct ebb_fingerprint ebb_fingerprint;
typedef struct ebb_hash {
    uint64_t hi, lo;
} ebb_hash;
/* Makes a fingerprint; free it with ebb_fingerprint_free. NULL: no memory. */
ebb_fingerprint *ebb_fingerprint_new(ebb_allocator a);
/* Makes a parity fingerprint, of cancel, obligation, finalizer and end events only. Hosts whose wake-ups, polls and
 * masks differ must still agree on it. NULL: no memory. */
ebb_fingerprint *ebb_fingerprint_new_parity(ebb_allocator a);
/* Adds an event. Pass every event of the trace, in order. Allocates; ebb_fingerprint_end returns EBB_ERR_NOMEM if that
 * failed. */
void ebb_fingerprint_event(ebb_fingerprint *f, const ebb_event *ev);
/* Writes the fingerprint to `*out`. EBB_ERR_INVALID: the trace has a gap. EBB_ERR_NOMEM. */
ebb_status ebb_fingerprint_end(ebb_fingerprint *f, ebb_hash *out);
void ebb_fingerprint_free(ebb_fingerprint *f); /* NULL is allowed */

/* ---- oracles ---------------------------------------------------------------------------------- */

/* The rules that every run must keep, checked on its events alone. `ebb trace verify --strict` checks a file, the lab
 * checks live runtimes, and your tests can do the same. */
typedef enum ebb_oracle {
#define EBB_ORACLE(name, text) name,
#include <ebb/oracle.def>
#undef EBB_ORACLE
    EBB_ORACLES
} ebb_oracle;

const char *ebb_oracle_name(ebb_oracle o); /* "ack_only_unmasked"; never NULL */

typedef struct ebb_violation {
    ebb_oracle oracle; /* the rule that was broken */
    ebb_event event;   /* the event that breaks it; type 0: found at the end of the run */
    char text[160];    /* what was expected and what was found */
} ebb_violation;

typedef struct ebb_checker ebb_checker;
/* Makes a checker; free it with ebb_checker_free. NULL: no memory. */
ebb_checker *ebb_checker_new(ebb_allocator a);
/* Checks the next event. EBB_OK; EBB_ERR_ORACLE from the first violation on; EBB_ERR_NOMEM from the first failed
 * allocation on. */
ebb_status ebb_checker_event(ebb_checker *c, const ebb_event *ev);
/* Checks the end of a run. With `quiescent` all tasks must have ended and all regions but the root must be closed.
 * Returns as ebb_checker_event. */
ebb_status ebb_checker_end(ebb_checker *c, bool quiescent);
const ebb_violation *ebb_checker_violation(const ebb_checker *c); /* the first; NULL: none */
uint64_t ebb_checker_events(const ebb_checker *c);                /* events checked so far */
void ebb_checker_free(ebb_checker *c);                            /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
