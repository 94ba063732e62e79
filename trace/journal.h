/* A journal as operations: each record with its caller, its arguments and its text. */
#ifndef EBB__JOURNAL_H
#define EBB__JOURNAL_H

#include "kernel/journal_op.h"
#include <ebb/trace.h>

typedef struct ebb__journal_op {
    uint64_t number; /* from 1; asker, argument and text records are not numbered */
    size_t offset;   /* of its record in the file */
    ebb_record rec;
    uint64_t asker;   /* the task of the preceding ASKER record; 0: none */
    ebb_record args;  /* zero if there are none */
    const char *text; /* a site or message, valid until the next operation is read; NULL: none */
} ebb__journal_op;

typedef struct ebb__journal_reader {
    ebb_trace_reader in;
    ebb_allocator allocator;
    char *text;
    size_t room;
    uint64_t operations; /* operations read so far */
} ebb__journal_reader;

/* EBB_ERR_FORMAT if it is no journal, with the expected value in in.error; otherwise as ebb_trace_reader_open. */
ebb_status ebb__journal_open(ebb__journal_reader *j, ebb_allocator a, const void *bytes, size_t n);
void ebb__journal_close(ebb__journal_reader *j);

/* EBB_OK and an operation; EBB_PENDING at the end; EBB_ERR_NOMEM; as ebb_trace_reader_next; EBB_ERR_INVALID
 * for records that are no operation, with in.error and in.error_offset set. */
ebb_status ebb__journal_next(ebb__journal_reader *j, ebb__journal_op *out);

/* "region_open"; "?" for an unknown number. */
const char *ebb__op_name(uint32_t type);
/* "poll", "finalizer", ...: the kind of function called. */
const char *ebb__call_name(uint32_t what);

/* The meaning of the fields of an operation, for printing. */
enum {
    EBB__OP_TASK = 1u << 0,   /* task: a task's id */
    EBB__OP_REGION = 1u << 1, /* region: a region's id */
    EBB__OP_OTHER = 1u << 2,  /* other: an id that was made or named */
    EBB__OP_RESULT = 1u << 3, /* value: a status */
    EBB__OP_VALUE = 1u << 4,  /* value: a number */
    EBB__OP_KIND = 1u << 5,   /* kind: an ebb_cancel_kind */
    EBB__OP_NUMBER = 1u << 6, /* other: a number or a time */
    EBB__OP_DUE = 1u << 7,    /* region: a time */
    EBB__OP_TURN = 1u << 8,   /* task, region: turn and batch */
    EBB__OP_WAITS = 1u << 9   /* the caller waits for it, so it must be running */
};
uint32_t ebb__op_fields(uint32_t type);

#endif
