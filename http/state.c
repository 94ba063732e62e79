/* The state machines by name, and the report of an illegal transition. */
#define _POSIX_C_SOURCE 200809L
#include "http/state.h"

#include "http/http.h"

#define NAMES(...) ((const char *const[]){__VA_ARGS__})

const ebb__machine ebb__machines[EBB__MACHINES] = {
    [EBB__M_IN] = {"receiving", ebb__in_moves, NAMES("head", "body", "ended"),
                   NAMES("gets head", "ends", "renews"), EBB__IN_STATES, EBB__IN_TRIGGERS},
    [EBB__M_OUT] = {"writing", ebb__out_moves, NAMES("none", "open", "last", "cut", "resets", "ended"),
                    NAMES("starts", "ends", "fails", "returns", "is cut", "resets later", "is staged"),
                    EBB__OUT_STATES, EBB__OUT_TRIGGERS},
    [EBB__M_SENT] = {"sending", ebb__sent_moves, NAMES("nothing", "some", "all"),
                     NAMES("a byte", "the last", "renews"), EBB__SENT_STATES, EBB__SENT_TRIGGERS},
    [EBB__M_STREAM] = {"stream", ebb__stream_moves, NAMES("open", "reset", "ended", "lost"),
                       NAMES("resets", "ends", "breaks", "renews"), EBB__STREAM_STATES, EBB__STREAM_TRIGGERS},
    [EBB__M_WORK] = {"handler", ebb__work_moves,
                     NAMES("none", "queued", "running", "returned", "closed", "skipped"),
                     NAMES("queues", "starts", "is skipped", "returns", "closes"), EBB__WORK_STATES,
                     EBB__WORK_TRIGGERS},
    [EBB__M_PLACE] = {"place", ebb__place_moves, NAMES("none", "young", "waiting", "late", "leaving"),
                      NAMES("starts", "waits", "rests", "too late", "evicts", "is left"), EBB__PLACE_STATES,
                      EBB__PLACE_TRIGGERS},
    [EBB__M_CONN] = {"connection", ebb__conn_moves,
                     NAMES("made", "new", "open", "closing", "draining", "ending", "notified", "lingering",
                           "ended", "released"),
                     NAMES("attaches", "opens", "closes", "drains", "ends", "notifies", "lingers", "drops",
                           "is released"),
                     EBB__CONN_STATES, EBB__CONN_TRIGGERS},
    [EBB__M_READS] = {"reading", ebb__reads_moves, NAMES("freely", "held", "delayed", "notified", "broken"),
                      NAMES("are held", "are delayed", "go on", "end", "break"), EBB__READS_STATES,
                      EBB__READS_TRIGGERS},
    [EBB__M_UNIT] = {"unit", ebb__unit_moves, NAMES("none", "runs", "cancelled", "stopping", "closed"),
                     NAMES("opens", "is cancelled", "stops", "closes"), EBB__UNIT_STATES, EBB__UNIT_TRIGGERS},
};

void ebb__conn_illegal(ebb__conn *c, ebb__machine_id id, unsigned state, unsigned trigger) {
    const ebb__machine *m = &ebb__machines[id];
    ebb__http_say("a bug in Ebb: %s: '%s' in state '%s'", m->name, m->triggers[trigger], m->states[state]);
    if (c == NULL) return;
    c->illegal = true;
    ebb__conn_touch(c);
}
