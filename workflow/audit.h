/* The audit log: JSON lines, each with its own hash and the hash of the line before. docs/workflow.md lists the
 * fields. One function writes all lines; the sink stores them. */
#ifndef EBB__AUDIT_H
#define EBB__AUDIT_H

#include <pthread.h>

#include "workflow/phase.h"

#define EBB__AUDIT_VERSION "ebb-audit-v2"
enum {
    EBB__AUDIT_LINE = 32768, /* bytes of a line at most */
    EBB__AUDIT_VALUE = 1024, /* bytes of a string at most, escapes included; a longer one is cut */
    EBB__AUDIT_HASH = 32,
    EBB__AUDIT_FACTS = 8
};

/* A field of a line's evidence: a number, or a text. */
typedef struct ebb__fact {
    const char *key;
    const char *text; /* NULL: a number */
    uint64_t number;
} ebb__fact;

typedef struct ebb__audit_entry {
    ebb__wf_event event;
    const char *code; /* NULL: the code of the event */
    const char *type, *name;
    uint64_t number, parent; /* of the workflow, and of its parent; 0: none */
    uint64_t at;             /* set with the number: where the line is in the log's file */
    ebb_workflow_state from, to;
    uint64_t elapsed, budget; /* ns */
    const ebb_reason *chain;  /* the workflow's own reason first, the root cause last */
    uint32_t chain_n;
    uint8_t epoch;
    uint64_t in_flight, inside, refused;
    ebb__fact facts[EBB__AUDIT_FACTS]; /* ends at the first without a key */
} ebb__audit_entry;

/* The loops of a service write to one log. `lock` guards it from the first line on. */
struct ebb_audit {
    pthread_mutex_t lock;
    ebb_allocator allocator;
    ebb_audit_sink sink;
    uint64_t seq;    /* of the last line */
    uint64_t number; /* of the last workflow */
    uint8_t prev[EBB__AUDIT_HASH];
    struct evp_md_st *sha256;
    uint64_t lost; /* lines that could not be written since the last line */
    int fd;        /* of the log file; -1: none */
    ebb_audit_unfinished *unfinished;
    size_t unfinished_n;
    size_t n; /* bytes in `line` */
    char line[EBB__AUDIT_LINE];
};

/* A log that writes to `sink`, without lines yet. NULL: no memory. */
ebb_audit *ebb__audit_new(ebb_allocator a, const ebb_audit_sink *sink);

/* Writes a line. A line that opens a workflow sets its number. EBB_ERR_NOMEM or the sink's status: the line is lost,
 * and the next line says so. */
ebb_status ebb__audit_write(ebb_audit *audit, ebb__audit_entry *e);

/* Writes the first line of a process, which names the format. `dropped`: bytes of an incomplete last line. */
ebb_status ebb__audit_start(ebb_audit *audit, uint64_t dropped);

/* The hash of a line whose first `n` bytes precede its own hash. False: no memory. */
bool ebb__audit_hash(const char *line, size_t n, uint8_t out[EBB__AUDIT_HASH]);

/* Closes the log's file, if it has one. */
void ebb__audit_file_close(ebb_audit *audit);
/* The bytes of its complete lines; 0: there is no file. Under the lock. */
uint64_t ebb__audit_file_size(const ebb_audit *audit);

/* A page of the lines of a workflow, in order. */
typedef struct ebb__audit_page {
    uint64_t number; /* of the workflow */
    uint64_t at;     /* where a line begins; afterwards, where the next page does */
    uint32_t most;   /* lines */
    bool end;        /* set: the log has nothing more */
    void (*line)(void *ctx, const char *line, size_t n);
    void *ctx;
} ebb__audit_page;
/* Reads one. It may have fewer lines than there are, or none, and not be the end: a read is bounded. The log has a file.
 * EBB_ERR_INVALID: no line begins at `at`. EBB_ERR_NOMEM; EBB_ERRNO(errno). */
ebb_status ebb__audit_lines(ebb_audit *audit, ebb__audit_page *page);

#endif
