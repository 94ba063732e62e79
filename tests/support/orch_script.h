/* An orchestration by script, without a store: the test plays store and activities, turn by turn. It applies each ack
 * to rows of its own, checks what holds of them, and feeds every turn that was committed to a second run with another
 * paint, which must do the same, byte by byte. */
#ifndef EBB_TESTS_ORCH_SCRIPT_H
#define EBB_TESTS_ORCH_SCRIPT_H

#include "durable/engine.h"
#include "durable/store.h"
#include "tests/support/world.h"

enum { SCRIPT_ROWS = 2048, SCRIPT_TURNS = 256 };

typedef struct script {
    world *world;
    ebb_orch_fn fn;
    ebb_region region;
    ebb__orch_run *run, *shadow;
    int parked;
    bool no_shadow;
    uint64_t now;
    char log[512];
    ebb_provider_message inbox[SCRIPT_ROWS];
    size_t inbox_n;
    uint64_t work[SCRIPT_ROWS], timers[SCRIPT_ROWS]; /* rows */
    size_t work_n, timers_n;
    ebb_provider_turn_row turns[SCRIPT_TURNS];
    size_t turns_n;
    ebb_provider_ack_turn_call ack; /* the last */
    const char *said;               /* its outgoing messages, in short */
} script;

script *script_new(world *w, ebb_orch_fn fn, const char *input);
/* Discards the fibers. Each test does it in the end. */
void script_end(script *s);
/* Messages for the next turn. */
void script_give(script *s, ebb_provider_message_kind kind, const ebb__event *e);
void script_complete(script *s, uint64_t activity, const char *output);
void script_fail(script *s, uint64_t activity, ebb_status st, const char *code, bool final);
void script_fire(script *s, uint64_t timer);
void script_signal(script *s, const char *name, const char *body);
void script_cancel(script *s, const char *reason);
/* Runs a turn `span` later, and commits it. Returns how it came out. */
ebb_status script_turn(script *s, uint64_t span);
/* Runs it but commits nothing: the run is discarded, as after a refused ack. */
void script_refused(script *s, uint64_t span);
/* Discards the run and makes a new one from the turns, with `fn` (NULL: the same). Returns how the replay came out. */
ebb_status script_evict(script *s, ebb_orch_fn fn);
bool script_has_work(const script *s, uint64_t activity);
bool script_has_timer(const script *s, uint64_t timer);
/* The last turn's events, one a line. */
const char *script_events(script *s);
/* The output of a completed one; fails if it is not. */
const char *script_output(script *s);

#endif
