/* Each event that a run makes: written in a new turn, compared with the record in a recorded one. */
#include "durable/run.h"

#include <stdio.h>
#include <string.h>

static uint64_t differs(ebb_orch *r, const ebb__event *recorded, const ebb__event *asked, const char *site) {
    char is[220] = "has no more events", wants[220] = "waits";
    if (recorded != NULL) {
        (void)snprintf(is, sizeof is, "has event ");
        (void)ebb__event_say(recorded, is + strlen(is), sizeof is - strlen(is));
    }
    if (asked != NULL) {
        (void)snprintf(wants, sizeof wants, "asks for ");
        (void)ebb__event_say(asked, wants + strlen(wants), sizeof wants - strlen(wants));
    }
    (void)snprintf(r->difference, sizeof r->difference, "turn %llu %s; the code %s%s%s",
                   (unsigned long long)r->turn, is, wants, site != NULL ? " at " : "",
                   site != NULL ? site : "");
    ebb__durable_say(EBB_ERR_NONDETERMINISM, "%s: %s", r->opts.id, r->difference);
    ebb__run_fail(r, EBB_ERR_NONDETERMINISM);
    return 0;
}

/* Marks are the engine's: they must be about the same step. A double run compares all bytes. */
static bool is_same(ebb_orch *r, const ebb__event_reader *before, const ebb__event *recorded,
                    const ebb__event *asked) {
    if (!ebb__event_matches(recorded, asked)) return false;
    if (recorded->kind == EBB__EVENT_STEP_CANCELLED && recorded->step != asked->step) return false;
    if (!r->opts.exact) return true;
    const ebb_blob bytes = ebb__event_encode(&r->scratch, asked);
    if (bytes.at == NULL) {
        ebb__run_fail(r, EBB_ERR_NOMEM);
        return false;
    }
    return bytes.n == (size_t)(r->record.at - before->at) && memcmp(bytes.at, before->at, bytes.n) == 0;
}

static uint64_t compare(ebb_orch *r, const ebb__event *asked, const char *site) {
    const ebb__event_reader before = r->record;
    ebb__event recorded;
    ebb_status st = ebb__event_read(&r->record, &recorded);
    if (st == EBB_ERR_EOF) return differs(r, NULL, asked, site);
    if (st != EBB_OK) {
        ebb__run_fail(r, st);
        return 0;
    }
    if (!is_same(r, &before, &recorded, asked))
        return r->outcome == EBB_OK ? differs(r, &recorded, asked, site) : 0;
    return r->event = recorded.number;
}

uint64_t ebb__run_emit(ebb_orch *r, const ebb__event *e, const char *site) {
    if (r->outcome != EBB_OK) return 0;
    if (r->replaying) return compare(r, e, site);
    const uint64_t number = ebb__event_write(&r->writer, e);
    if (number == 0) ebb__run_fail(r, r->writer.status);
    else r->event = number;
    return number;
}

bool ebb__run_next_is_patch(const ebb_orch *r, ebb__event_text name, bool *answer) {
    ebb__event_reader ahead = r->record;
    ebb__event e;
    if (!r->replaying || ebb__event_read(&ahead, &e) != EBB_OK) return false;
    *answer = (e.flags & EBB__FLAG_PATCHED) != 0;
    return e.kind == EBB__EVENT_PATCHED && ebb__same_text(e.name, name);
}

static void too_long(ebb_orch *r) {
    (void)snprintf(r->difference, sizeof r->difference, "the execution has %llu events (%d)",
                   (unsigned long long)r->event, EBB_DURABLE_EVENTS);
    ebb__run_fail(r, EBB_ERR_LIMIT);
}

void ebb__run_check_end(ebb_orch *r) {
    ebb__event e;
    if (r->outcome != EBB_OK) return;
    if (!r->replaying) {
        if (r->event > EBB_DURABLE_EVENTS && r->ends == 0 && !r->continues) too_long(r);
        return;
    }
    ebb_status st = ebb__event_read(&r->record, &e);
    if (st == EBB_OK) (void)differs(r, &e, NULL, NULL);
    else if (st != EBB_ERR_EOF) ebb__run_fail(r, st);
}
