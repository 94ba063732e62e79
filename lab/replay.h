/* A replay: a new runtime, driven by a journal, with replayed tasks in place of user code.
 *
 * The journal is read strictly forwards. Whatever needs the next operation takes it: the driver at the top level,
 * a replayed task for the operations of its original, the chooser for its answer. So no search is needed, and the
 * first operation that does not fit is the place where the two runs differ. From then on `status` is not EBB_OK,
 * nothing more is read, replayed tasks end at once and the trace is closed. */
#ifndef EBB__REPLAY_H
#define EBB__REPLAY_H

#include "base/arena.h"
#include "base/map.h"
#include "kernel/layer.h"
#include "trace/journal.h"
#include <ebb/lab.h>

/* Limit of nested calls: an abort hook may abort another obligation, which calls its hook, and every level uses C
 * stack. */
enum { EBB__REPLAY_DEPTH = 200 };

/* The slot of a replay's record. */
enum { EBB__REPLAY_SLOT = 7 };

typedef struct ebb__replay {
    ebb__journal_reader in;
    ebb__journal_op op; /* the next operation, if `loaded` */
    bool loaded;
    ebb_runtime *rt;
    ebb_status status;
    uint32_t depth; /* of nested calls */
    ebb_journal_replay_result *out;
    ebb_write_fn trace;
    void *trace_ctx;

    ebb_allocator host;
    bool refuse;  /* refuse memory to the current operation, as in the original */
    bool ran_out; /* the host has no memory */

    ebb__arena arena;         /* sites and replayed objects */
    ebb__map sites;           /* hash of a site -> the site */
    ebb__map waits;           /* number -> replayed_wait * */
    uint32_t begun;           /* waits so far: the number of the last one */
    ebb__callbacks callbacks; /* of every region with a callback runner */
    uint64_t reading;         /* of the clock, for the next operation; 0: none */
} ebb__replay;

/* Calls into user code, as the journal names them. */
typedef struct ebb__replay_call {
    uint32_t what; /* EBB__CALL_* */
    uint64_t task, region, other;
    bool empty; /* the called function is the kernel's own: it calls nothing and returns EBB_OK */
} ebb__replay_call;

/* Takes the next operation. False: the replay has ended, because of an error or at the end of the journal. */
bool ebb__replay_take(ebb__replay *p, ebb__journal_op *out);

/* Replays one call: does all operations of the original up to its return, and returns what it returned. */
ebb_status ebb__replay_call_of(ebb__replay *p, ebb__replay_call call);

/* Does one operation with the replay's runtime and compares the result. */
void ebb__replay_op(ebb__replay *p, const ebb__journal_op *op);

/* Ends the replay. The text says what was expected and what was found; only the first call counts. */
void ebb__replay_fail(ebb__replay *p, ebb_status st, const ebb__journal_op *op, const char *text);
/* `expected` and `found` are ids or statuses, and differ. */
void ebb__replay_diverged(ebb__replay *p, const ebb__journal_op *op, uint64_t expected, uint64_t found);

/* The site's text, valid as long as the replay; NULL also if there is no memory, which fails the replay. */
const char *ebb__replay_site(ebb__replay *p, const char *text);

#endif
