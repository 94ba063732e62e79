/* Reading journals. docs/journal.md lists the operations. */
#include "trace/journal.h"

#include <string.h>

#include "base/alloc.h"

static const struct {
    const char *name;
    uint32_t fields;
} ops[J_END] = {
    [J_START] = {"start", EBB__OP_TURN | EBB__OP_NUMBER | EBB__OP_VALUE},
    [J_LIMITS] = {"limits", EBB__OP_VALUE | EBB__OP_NUMBER},
    [J_CLEANUP] = {"cleanup", EBB__OP_VALUE},
    [J_OPEN] = {"region_open", EBB__OP_REGION | EBB__OP_OTHER | EBB__OP_VALUE},
    [J_CLOSE] = {"region_close", EBB__OP_REGION},
    [J_CANCEL] = {"region_cancel", EBB__OP_REGION | EBB__OP_KIND},
    [J_CANCEL_WITHIN] = {"region_cancel_within", EBB__OP_REGION | EBB__OP_KIND},
    [J_FORCE] = {"region_force", EBB__OP_REGION},
    [J_REGION_JOIN] = {"region_join", EBB__OP_REGION | EBB__OP_RESULT | EBB__OP_WAITS},
    [J_SPAWN] = {"spawn", EBB__OP_REGION | EBB__OP_OTHER | EBB__OP_VALUE},
    [J_TASK_JOIN] = {"task_join", EBB__OP_TASK | EBB__OP_RESULT | EBB__OP_WAITS},
    [J_WAKE] = {"wake", EBB__OP_TASK},
    [J_TASK_CANCEL] = {"task_cancel", EBB__OP_TASK | EBB__OP_KIND},
    [J_TASK_FORCE] = {"task_force", EBB__OP_TASK},
    [J_CHECKPOINT] = {"checkpoint", EBB__OP_RESULT},
    [J_MASK] = {"mask", EBB__OP_RESULT},
    [J_UNMASK] = {"unmask", EBB__OP_RESULT},
    [J_RESERVE] = {"reserve", EBB__OP_REGION | EBB__OP_OTHER | EBB__OP_VALUE},
    [J_COMMIT] = {"commit", EBB__OP_OTHER | EBB__OP_RESULT},
    [J_ABORT] = {"abort", EBB__OP_OTHER | EBB__OP_RESULT},
    [J_DEFER] = {"defer", EBB__OP_REGION | EBB__OP_RESULT},
    [J_ADVANCE] = {"advance", EBB__OP_NUMBER},
    [J_PUMP] = {"pump", EBB__OP_VALUE},
    [J_TURN] = {"turn", EBB__OP_TURN},
    [J_TIMER_ARM] = {"timer_arm", EBB__OP_TASK | EBB__OP_OTHER | EBB__OP_DUE},
    [J_TIMER_DISARM] = {"timer_disarm", EBB__OP_OTHER | EBB__OP_RESULT},
    [J_RECEIVE] = {"receive", EBB__OP_TASK | EBB__OP_REGION | EBB__OP_VALUE | EBB__OP_NUMBER},
    [J_CHOICE] = {"choice", EBB__OP_VALUE | EBB__OP_NUMBER},
    [J_CHAIN] = {"cause_chain", EBB__OP_REGION | EBB__OP_VALUE},
    [J_WAIT_BEGIN] = {"wait_begin", EBB__OP_VALUE | EBB__OP_WAITS},
    [J_WAIT_END] = {"wait_end", EBB__OP_VALUE},
    [J_CALL] = {"call", EBB__OP_TASK | EBB__OP_REGION},
    [J_RETURN] = {"return", EBB__OP_RESULT},
    [J_SUPERVISOR] = {"supervisor", EBB__OP_REGION | EBB__OP_OTHER | EBB__OP_VALUE},
    [J_ALARM] = {"alarm", EBB__OP_TASK | EBB__OP_NUMBER},
    [J_JOINING] = {"joining", EBB__OP_REGION},
    [J_ADMIT] = {"admit", EBB__OP_RESULT},
    [J_CLOCK] = {"clock", EBB__OP_NUMBER},
    [J_OPERATION] = {"operation", EBB__OP_REGION | EBB__OP_RESULT},
    [J_OBSERVE] = {"observe", EBB__OP_TASK | EBB__OP_REGION},
    [J_DISCARD] = {"task_discard", EBB__OP_TASK | EBB__OP_RESULT},
    [J_NOTE] = {"note", EBB__OP_TASK | EBB__OP_REGION | EBB__OP_VALUE | EBB__OP_NUMBER},
    [J_OPERATORS] = {"operators", EBB__OP_REGION | EBB__OP_OTHER},
    [J_RELEASE] = {"release", EBB__OP_REGION | EBB__OP_NUMBER},
};

const char *ebb__op_name(uint32_t type) {
    return type < J_END && ops[type].name != NULL ? ops[type].name : "?";
}

uint32_t ebb__op_fields(uint32_t type) {
    return type < J_END ? ops[type].fields : 0;
}

const char *ebb__call_name(uint32_t what) {
    static const char *const names[] = {
        [EBB__CALL_POLL] = "poll",
        [EBB__CALL_FINALIZER] = "finalizer",
        [EBB__CALL_ABORT] = "abort hook",
        [EBB__CALL_CLOSED] = "on_closed",
        [EBB__CALL_WAIT] = "wait's cancel hook",
        [EBB__CALL_FUTURES] = "end of the futures",
        [EBB__CALL_OBSERVED] = "hook at the end",
    };
    return what >= EBB__CALL_POLL && what <= EBB__CALL_OBSERVED ? names[what] : "?";
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static ebb_status wrong(ebb__journal_reader *j, ebb_status st, size_t offset, const char *expected) {
    j->in.error_offset = offset;
    j->in.error = expected;
    return st;
}

ebb_status ebb__journal_open(ebb__journal_reader *j, ebb_allocator a, const void *bytes, size_t n) {
    *j = (ebb__journal_reader){.allocator = a};
    ebb_status st = ebb_trace_reader_open(&j->in, bytes, n);
    if (st == EBB_OK && !j->in.journal) {
        st = wrong(j, EBB_ERR_FORMAT, 0, "the magic of a journal (EBBJRNL), not of a trace");
    }
    return st;
}

void ebb__journal_close(ebb__journal_reader *j) {
    ebb__free(&j->allocator, j->text, j->room);
    j->text = NULL;
    j->room = 0;
}

/* Reads the next record if it is of this type; otherwise reads nothing. An error in the record shows when it is
 * read as an operation. */
static bool next_if(ebb__journal_reader *j, uint32_t type, ebb_event *out) {
    ebb_trace_reader ahead = j->in;
    if (ebb_trace_reader_next(&ahead, out) != EBB_OK || out->type != type) return false;
    j->in = ahead;
    return true;
}

static bool text_room(ebb__journal_reader *j, size_t n) {
    if (n <= j->room) return true;
    size_t room = j->room == 0 ? 128 : j->room;
    while (room < n) room *= 2;
    char *bigger = ebb__resize(&j->allocator, j->text, j->room, room);
    if (bigger == NULL) return false;
    j->text = bigger;
    j->room = room;
    return true;
}

/* A text is cut into pieces, all but the last marked by `phase`. */
static ebb_status read_text(ebb__journal_reader *j, ebb__journal_op *out) {
    ebb_event piece = {.phase = 1};
    size_t n = 0;
    while (piece.phase != 0 && next_if(j, J_TEXT, &piece)) {
        size_t more = strlen(piece.text);
        if (!text_room(j, n + more + 1)) return EBB_ERR_NOMEM;
        memcpy(j->text + n, piece.text, more + 1);
        n += more;
    }
    out->text = n > 0 ? j->text : NULL;
    return EBB_OK;
}

ebb_status ebb__journal_next(ebb__journal_reader *j, ebb__journal_op *out) {
    ebb_event ev, more;
    *out = (ebb__journal_op){.number = j->operations + 1};
    if (next_if(j, J_ASKER, &more)) out->asker = more.task_id;
    ebb_status st = ebb_trace_reader_next(&j->in, &ev);
    if (st != EBB_OK) return st;
    out->offset = ev.offset;
    out->rec = ebb_event_record(&ev);
    j->operations++;
    if (ev.type == EBB_EV_GAP) {
        return wrong(j, EBB_ERR_INVALID, ev.offset, "no gap: records were lost to a full buffer");
    }
    if (ev.type >= J_END || ops[ev.type].name == NULL) {
        return wrong(j, EBB_ERR_INVALID, ev.offset, "an operation");
    }
    if (next_if(j, J_ARGS, &more)) out->args = ebb_event_record(&more);
    return read_text(j, out);
}
