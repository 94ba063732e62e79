/* cli/together.c - rules between the traces of several runtimes.
 *
 * A message carries a stamp: the id of its sender, and how many events the sender's trace had. The files are read side by
 * side; one whose next event is a message waits until the sender's file was read up to the stamp. If all wait, each for
 * another, an event came before its cause. */
#include "cli/together.h"

#include <ebb/sched.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STAMP_MASK ((UINT64_C(1) << 56) - 1)

typedef struct side {
    const ebb__cli_file *file;
    ebb_trace_reader in;
    ebb_event next;
    bool has_next;
    uint64_t read; /* number of the last event that was read */
    uint64_t first_close, first_cancel, first_force,
        first_closed; /* numbers of the first such events; 0: none */
} side;

static void advance(side *s) {
    s->has_next = ebb_trace_reader_next(&s->in, &s->next) == EBB_OK;
}

static void first(uint64_t *at, uint64_t seq) {
    if (*at == 0) *at = seq;
}

static void pass(side *s) {
    uint64_t seq = s->next.decision_seq;
    s->read = seq;
    switch (s->next.type) {
    case EBB_EV_REGION_CANCELLED:
    case EBB_EV_CANCEL_REQUESTED: first(&s->first_cancel, seq); /* a cancel closes too */ /* fallthrough */
    case EBB_EV_REGION_CLOSING:
    case EBB_EV_REGION_STOPPING: first(&s->first_close, seq); break;
    case EBB_EV_REGION_FORCED:
    case EBB_EV_TASK_FORCED: first(&s->first_force, seq); break;
    case EBB_EV_REGION_CLOSED: first(&s->first_closed, seq); break;
    default: break;
    }
    advance(s);
}

static side *sender_of(side *sides[256], const side *s) {
    uint8_t id = (uint8_t)(s->next.other >> 56);
    bool message = s->next.type == EBB_EV_RECEIVED && id != 0 && id != s->in.runtime_id;
    return message ? sides[id] : NULL;
}

static bool wrong(const side *s, const char *what, const side *from) {
    ebb__cli_error("%s: event %" PRIu64 ": a message %s event %" PRIu64 " of %s", s->file->path,
                   s->next.decision_seq, what, s->next.other & STAMP_MASK, from->file->path);
    return false;
}

/* The event at the sender that must stand before the stamp, by the verb of the message. */
static bool was_caused(const side *s, const side *from) {
    uint64_t stamp = s->next.other & STAMP_MASK, cause = 1;
    switch ((ebb_msg_verb)s->next.value) {
    case EBB_MSG_CLOSE: cause = from->first_close; break;
    case EBB_MSG_CANCEL: cause = from->first_cancel; break;
    case EBB_MSG_FORCE: cause = from->first_force; break;
    default: break;
    }
    if (cause != 0 && cause < stamp) return true;
    return wrong(s,
                 s->next.value == EBB_MSG_CLOSE    ? "closes, but nothing was closed before"
                 : s->next.value == EBB_MSG_CANCEL ? "cancels, but nothing was cancelled before"
                                                   : "forces, but nothing was forced before",
                 from);
}

/* Reads a file as far as it can be. *moved: at least one event. */
static bool read_on(side *s, side *sides[256], bool *moved) {
    while (s->has_next) {
        const side *from = sender_of(sides, s);
        if (from != NULL) {
            uint64_t stamp = s->next.other & STAMP_MASK;
            if (from->read + 1 < stamp) {
                if (from->has_next) return true;
                return wrong(s, "was sent after", from);
            }
            if (!was_caused(s, from)) return false;
        }
        pass(s);
        *moved = true;
    }
    return true;
}

bool ebb__verify_together(const ebb__cli_file *files, size_t n) {
    side *all = calloc(n, sizeof *all), *by_id[256] = {NULL};
    bool ok = all != NULL;
    if (!ok) ebb__cli_error("no memory");
    for (size_t i = 0; ok && i < n; i++) {
        all[i].file = &files[i];
        ok = ebb_trace_reader_open(&all[i].in, files[i].bytes, files[i].n) == EBB_OK;
        uint8_t id = all[i].in.runtime_id;
        if (ok && by_id[id] != NULL) {
            ebb__cli_error("%s and %s are of the same runtime, %u", by_id[id]->file->path, files[i].path, id);
            ok = false;
        }
        by_id[id] = &all[i];
        if (ok) advance(&all[i]);
    }
    for (bool moved = true; ok && moved;) {
        moved = false;
        for (size_t i = 0; ok && i < n; i++) ok = read_on(&all[i], by_id, &moved);
    }
    for (size_t i = 0; ok && i < n; i++) {
        if (all[i].has_next) ok = wrong(&all[i], "came before its cause,", sender_of(by_id, &all[i]));
    }
    free(all);
    return ok;
}
