/* durable/engine.h - replay and turns: from messages to what an ack commits. It knows no store, no worker, no lease.
 *
 * A *run* is one execution of an instance on one fiber. It is fed with turns: recorded ones, which must come out as they
 * were, then new ones, whose events, work, timers and cancels it collects. The same functions serve the worker, the double
 * run, ebb_orch_test and `ebb durable replay`.
 *
 * Life of a run:
 *
 *     NEW -> REPLAYING -> WAITING <-> RUNNING -> ENDED
 *                 \___________\__________\_____> DISCARDED      (eviction, a refused commit, a mismatch, a close)
 *
 * Invariants:
 *  - A run's fiber is parked, or it is the one that runs. It is parked in an await of its own steps only.
 *  - `turn` is the last turn that the code has seen. After ebb__orch_run_turn the run is one turn ahead of the store until
 *    the ack is done; if the ack is refused, the run is discarded: nothing is taken back.
 *  - Nothing of the program runs in a discard: the fiber's stack goes to the pool, the arena is freed.
 *  - A step is outstanding, ended, or used up. `outstanding` of the run is what a cancel set takes, less the shielded.
 *  - Event numbers of an execution are 1, 2, ... without a gap, and a step's number is that of its action. */
#ifndef EBB_DURABLE_ENGINE_H
#define EBB_DURABLE_ENGINE_H

#include "durable/event.h"
#include "durable/provider.h"
#include "fiber/fiber.h"

typedef struct ebb_orch ebb__orch_run; /* what the code has as its handle */

/* What a run is of. Copied. */
typedef struct ebb__orch_run_opts {
    ebb_orch_fn fn;
    uint32_t version; /* of fn */
    const char *id;
    uint64_t key, execution;
    ebb_region region; /* of its fiber */
    int paint;         /* the byte that fills its stack: EBB__UNPAINTED, or one of the double run's */
    bool exact;        /* a double run: replays compare all bytes of an event, and nothing is logged */
    void (*log)(void *arg, ebb_durable_level level, const char *id, const char *text);
    void *arg;
    void (*parked)(void *arg); /* the turn that was fed has come to its end; called in the pump */
} ebb__orch_run_opts;

/* Makes a run without a fiber. NULL: no memory. */
ebb__orch_run *ebb__orch_run_new(ebb_cx *cx, const ebb__orch_run_opts *opts);
/* Discards the fiber, if there is one, and frees the run. Not while it is RUNNING. */
void ebb__orch_run_free(ebb_cx *cx, ebb__orch_run *r);

/* Feeds a recorded turn. The code runs until it waits (`parked`), and what it does is compared with the record.
 * EBB_ERR_NONDETERMINISM: see ebb__orch_run_difference. EBB_ERR_CORRUPT, EBB_ERR_VERSION: of the record. */
ebb_status ebb__orch_run_replay(ebb_cx *cx, ebb__orch_run *r, const ebb_provider_turn_row *row);
/* Feeds a new turn: messages in order, and its time, which does not go back. Those of an ended step, or of another execution, are taken as read
 * and ignored. */
ebb_status ebb__orch_run_turn(ebb_cx *cx, ebb__orch_run *r, uint64_t now,
                              const ebb_provider_message *messages, size_t n);
/* After `parked`: EBB_OK, or why the turn failed: EBB_ERR_NONDETERMINISM, EBB_ERR_LIMIT (events), EBB_ERR_NOMEM. */
ebb_status ebb__orch_run_outcome(const ebb__orch_run *r);

/* After a new turn: writes what it commits into an ack: body, work, timers, outgoing, cancel sets, values, custom, ends,
 * next, unread. Node, token, ack id, acked, done and the tokens of work are the caller's. Its memory is the run's, until
 * the next feed. */
/* EBB_ERR_NOMEM, EBB_ERR_LIMIT: nothing can be committed. */
ebb_status ebb__orch_run_commit(ebb__orch_run *r, ebb_provider_ack_turn_call *ack);

/* "turn 4, event 12 is activity_scheduled "charge"; the code asks for timer_created at pay.c:31" */
const char *ebb__orch_run_difference(const ebb__orch_run *r);
uint64_t ebb__orch_run_bytes(const ebb__orch_run *r); /* stack and arena */
uint64_t ebb__orch_run_turns(const ebb__orch_run *r);
uint32_t ebb__orch_run_actions(const ebb__orch_run *r); /* of the last turn */
bool ebb__orch_run_has_ended(const ebb__orch_run *r);
bool ebb__orch_run_is_exact(const ebb__orch_run *r);

/* What a history has outstanding, without running code: for terminate, reset and the verification. Filled turn by turn. */
typedef struct ebb__outstanding {
    ebb__arena *arena; /* texts and blobs of the steps are copied to it */
    ebb__event
        *steps; /* the actions, by rising number. Waits for signals stay, whether they were served or not */
    size_t n, room;
    uint64_t event, turn; /* the last that was read */
    uint64_t at;          /* of that turn */
    bool ended;           /* the last event was an end */
    char text[200];       /* why a history is not sound */
} ebb__outstanding;
/* EBB_ERR_ORACLE: the turn can't follow the others; EBB_ERR_CORRUPT, EBB_ERR_VERSION, EBB_ERR_NOMEM. */
ebb_status ebb__outstanding_add(ebb__outstanding *o, const ebb_provider_turn_row *row);
/* EBB_ERR_ORACLE: it has ended, and a step is neither ended nor cancelled. */
ebb_status ebb__outstanding_check_end(ebb__outstanding *o);

#endif
