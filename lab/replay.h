/* A replay: a new runtime, driven by a journal, with ghosts in place of everybody's code.
 *
 * The journal is read strictly forwards. Whoever needs the next operation takes it: the driver at the
 * top, a ghost for what its original asked for, the chooser for its answer. So there is nothing to
 * look up, and the first thing that does not fit is the place where the two runs part. From then on
 * `status` is not EBB_OK, nothing more is read, ghosts end at once and the trace is closed. */
#ifndef EBB__REPLAY_H
#define EBB__REPLAY_H

#include "base/arena.h"
#include "base/map.h"
#include "kernel/layer.h"
#include "trace/journal.h"
#include <ebb/lab.h>

/* Abort hooks may abort other obligations, whose hooks may: this deep, and no deeper, since every level
 * is one of the C stack. */
enum { EBB__REPLAY_DEPTH = 200 };

typedef struct ebb__replay {
    ebb__journal_reader in;
    ebb__journal_op op; /* the next one, if `loaded` */
    bool loaded;
    ebb_runtime *rt;
    ebb_status status;
    uint32_t depth; /* of calls */
    ebb_journal_replay_result *out;
    ebb_write_fn trace;
    void *trace_ctx;

    ebb_allocator host;
    bool refuse;  /* memory is refused to the operation at hand, as it was to the original */
    bool ran_out; /* the host has none */

    ebb__arena arena;         /* sites and ghosts */
    ebb__map sites;           /* hash of a site -> the site */
    ebb__map waits;           /* number -> ghost_wait * */
    uint32_t begun;           /* waits so far: the number of the last */
    ebb__callbacks callbacks; /* of every callback runner's region */
    uint64_t reading;         /* of the clock, that the operation to come reads; 0: none */
} ebb__replay;

/* Calls into user code, as the journal names them. */
typedef struct ebb__replay_call {
    uint32_t what; /* EBB__CALL_* */
    uint64_t task, region, other;
    bool empty; /* what is called is the kernel's own: it asks for nothing and returns EBB_OK */
} ebb__replay_call;

/* Takes the next operation. False: the replay is over, because of an error or because the journal ends. */
bool ebb__replay_take(ebb__replay *p, ebb__journal_op *out);

/* Does what the original did when it was called so: all up to its return. Gives what it returned. */
ebb_status ebb__replay_call_of(ebb__replay *p, ebb__replay_call call);

/* Does one operation with the replay's runtime and compares what comes of it. */
void ebb__replay_op(ebb__replay *p, const ebb__journal_op *op);

/* The end. The text says what was expected and what was found; the first one stands. */
void ebb__replay_fail(ebb__replay *p, ebb_status st, const ebb__journal_op *op, const char *text);
/* The two are ids or statuses, and differ. */
void ebb__replay_diverged(ebb__replay *p, const ebb__journal_op *op, uint64_t expected, uint64_t found);

/* The site's text, for as long as the replay; NULL also if there is no memory, which fails the replay. */
const char *ebb__replay_site(ebb__replay *p, const char *text);

#endif
