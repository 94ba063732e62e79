/* Reading an audit log: parses one line into a record, or reports what is wrong with its bytes. Rules about several
 * lines are in audit_verify.c. */
#ifndef EBB__AUDIT_READ_H
#define EBB__AUDIT_READ_H

#include <jansson.h>

#include "workflow/audit.h"

/* Texts point into the JSON value. In a line about the log itself (`started`), all from `number` to `reason` is 0. */
typedef struct ebb__audit_line {
    json_t *json;
    uint64_t seq, lost;
    const char *at;
    const char *code; /* NULL: null */
    ebb__wf_event event;
    const char *type, *name;
    uint64_t number, parent;
    ebb_workflow_state from, to;
    uint64_t elapsed, budget; /* ns */
    uint64_t epoch, in_flight, inside, refused;
    json_t *reason;   /* an array of objects with kind, severity, message */
    json_t *evidence; /* an object of numbers and texts */
    uint8_t prev[EBB__AUDIT_HASH], hash[EBB__AUDIT_HASH];
} ebb__audit_line;

enum { EBB__AUDIT_WHY = 200 };

/* Reads a line, without its newline. EBB_ERR_CORRUPT: `why` says what was expected and what was found;
 * EBB_ERR_NOMEM. In both cases the caller frees nothing. */
ebb_status ebb__audit_line_read(const char *bytes, size_t n, ebb__audit_line *out, char why[EBB__AUDIT_WHY]);
void ebb__audit_line_free(ebb__audit_line *line);

/* Whether the line follows a line with that number and hash; otherwise sets `why`, as above. */
bool ebb__audit_line_follows(const ebb__audit_line *line, uint64_t seq, const uint8_t hash[EBB__AUDIT_HASH],
                             char why[EBB__AUDIT_WHY]);

/* Whether bytes without a newline are the start of the line after that number: the rest of a write that did not
 * complete. */
bool ebb__audit_is_torn(const char *bytes, size_t n, uint64_t seq);

/* A number of the evidence. False: there is no number of that name. */
bool ebb__audit_fact(const ebb__audit_line *line, const char *key, uint64_t *out);

/* The i-th reason. False: there are fewer. */
bool ebb__audit_reason(const ebb__audit_line *line, size_t i, ebb_reason *out);

/* Whether a workflow can have no line but `refused` after one of this kind. */
static inline bool ebb__audit_is_end(ebb__wf_event e) {
    return e == EBB__WE_FINALIZED || e == EBB__WE_LEAK_DETECTED || e == EBB__WE_COMPLETED ||
           e == EBB__WE_INTERRUPTED;
}

#endif
