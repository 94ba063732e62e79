/* The audit log: JSON lines, each with the hash of the one before and its own. docs/workflow.md says what
 * stands in them. One place writes a line, whatever it is about; where it goes is the sink's business. */
#ifndef EBB__AUDIT_H
#define EBB__AUDIT_H

#include <pthread.h>

#include "workflow/phase.h"

#define EBB__AUDIT_VERSION "ebb-audit-v2"
enum {
    EBB__AUDIT_LINE = 32768, /* no line is longer */
    EBB__AUDIT_VALUE = 1024, /* of bytes that a string has in it, escapes included; then it is cut */
    EBB__AUDIT_HASH = 32,
    EBB__AUDIT_FACTS = 8
};

/* Something that a line says besides its fixed fields: a number, or a text. */
typedef struct ebb__fact {
    const char *key;
    const char *text; /* NULL: it is a number */
    uint64_t number;
} ebb__fact;

typedef struct ebb__audit_entry {
    ebb__wf_event event;
    const char *code; /* NULL: that of the event */
    const char *type, *name;
    uint64_t number, parent; /* of the workflow, and of the one around it; 0: none */
    ebb_workflow_state from, to;
    uint64_t elapsed, budget; /* ns */
    const ebb_reason *chain;  /* its own reason first, the root cause last */
    uint32_t chain_n;
    uint8_t epoch;
    uint64_t in_flight, inside, refused;
    ebb__fact facts[EBB__AUDIT_FACTS]; /* up to the first without a key */
} ebb__audit_entry;

/* The loops of a service write to one log: `lock` guards it from the first line on. */
struct ebb_audit {
    pthread_mutex_t lock;
    ebb_allocator allocator;
    ebb_audit_sink sink;
    uint64_t seq;    /* of the last line */
    uint64_t number; /* of the last workflow */
    uint8_t prev[EBB__AUDIT_HASH];
    struct evp_md_st *sha256;
    uint64_t lost; /* lines since the last one that could not be written */
    int fd;        /* of a file; -1 */
    ebb_audit_unfinished *unfinished;
    size_t unfinished_n;
    size_t n; /* bytes in `line` */
    char line[EBB__AUDIT_LINE];
};

/* A log that goes to `sink`, of which nothing is written yet. NULL: no memory. */
ebb_audit *ebb__audit_new(ebb_allocator a, const ebb_audit_sink *sink);

/* Writes a line. One that opens a workflow gives it its number. EBB_ERR_NOMEM, or what the sink says: the line is lost, and the next one says so. */
ebb_status ebb__audit_write(ebb_audit *audit, ebb__audit_entry *e);

/* The first line of a process: which log this is. `dropped`: bytes of a last line that was not whole. */
ebb_status ebb__audit_start(ebb_audit *audit, uint64_t dropped);

/* The hash of a line that is `n` bytes long up to its own hash. False: no memory. */
bool ebb__audit_hash(const char *line, size_t n, uint8_t out[EBB__AUDIT_HASH]);

/* For closing: lets go of the file, if there is one. */
void ebb__audit_file_close(ebb_audit *audit);

#endif
