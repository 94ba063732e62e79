/* serve/chrome_flow.c - one connected picture of a request: from the header traceparent through the exchange, the turns of an
 * instance and its activities to the machines that they ask.
 *
 * An instance, an activity and a machine have a lane each, a thread of the format, whose slices are turns, the run of the
 * activity and dispatches. Arrows go from who gives a context to who takes it: their id is the span, so they join files of
 * several processes. Others go to the first poll of the task that does the work, from an activity to the turn that it
 * wakes, from a turn to the next, and from a message to its dispatch. */
#define _POSIX_C_SOURCE 200809L
#include "serve/chrome.h"

#include "kernel/layer.h"
#include "trace/event.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HEX_TRACE = 32, HEX_SPAN = 16, AT_TRACE = 3, AT_SPAN = 36, ID_ROOM = 64, NAME_ROOM = 120 };

/* Something with a lane. */
typedef struct piece {
    uint64_t since; /* of the turn or the activity that is open; 0: none is */
    uint64_t last;  /* of an instance: when its last turn began; 0: it had none */
    uint64_t done;  /* of an instance: the activity that has ended since; 0: none */
    uint64_t lane;
    char name[NAME_ROOM];
    char trace[HEX_TRACE + 1];
} piece;

typedef struct picture {
    ebb__map instances, activities; /* piece, by number, and by the other of the event */
    ebb__map starts; /* task -> what its first poll is started by: the sequence number of an event */
} picture;

void ebb__picture_begin(ebb__story *s) {
    picture *p = calloc(1, sizeof *p);
    s->picture = p;
    if (p == NULL) {
        s->no_memory = true;
        return;
    }
    ebb__map_init(&p->instances, s->allocator, sizeof(piece));
    ebb__map_init(&p->activities, s->allocator, sizeof(piece));
    ebb__map_init(&p->starts, s->allocator, sizeof(uint64_t));
}

/* ---- lanes ------------------------------------------------------------------------------------------------ */

/* Tasks have numbers below 2^45. */
static uint64_t lane_of_machine(uint64_t id) {
    return UINT64_C(1) << 45 | ebb__chrome_thread(id);
}
static uint64_t lane_of_instance(uint64_t other) {
    return UINT64_C(1) << 46 | (other & UINT32_MAX);
}
static uint64_t lane_of_activity(uint64_t other) {
    return UINT64_C(1) << 47 | (other >> 32 & 0x7fff) << 32 | (other & UINT32_MAX);
}

/* The piece of an event, with its lane named if it is new. NULL: no memory. */
static piece *piece_of(FILE *out, ebb__story *s, ebb__map *map, uint64_t key, uint64_t lane, const char *what,
                       const char *name) {
    piece *p = ebb__map_put(map, key);
    if (p == NULL) s->no_memory = true;
    if (p == NULL || p->lane != 0) return p;
    p->lane = lane;
    snprintf(p->name, sizeof p->name, "%s %.*s", what, NAME_ROOM - 16, name);
    ebb__make_plain(p->name);
    ebb__chrome_thread_name(out, s, lane, p->name);
    return p;
}

static piece *instance_of(FILE *out, ebb__story *s, const ebb__line *line) {
    picture *p = s->picture;
    const uint64_t other = line->event.other;
    return piece_of(out, s, &p->instances, other & UINT32_MAX, lane_of_instance(other), "instance",
                    line->text);
}

static void close_piece(FILE *out, const ebb__story *s, piece *p, const char *category, const char *name,
                        uint64_t at) {
    if (p->since == 0) return;
    if (at < p->since + EBB__SHORT_NS) at = p->since + EBB__SHORT_NS;
    ebb__chrome_slice(out, s, p->lane, category, name, p->since, at, p->trace);
    p->since = 0;
}

/* Between two lanes, both of this file. */
static void join(FILE *out, const ebb__story *s, const char *category, uint64_t from, uint64_t from_at,
                 uint64_t to, uint64_t to_at, uint64_t number) {
    char id[ID_ROOM];
    snprintf(id, sizeof id, "%s:%u:%" PRIx64, category, s->process, number);
    ebb__chrome_arrow(out, s, "s", category, from, id, from_at);
    ebb__chrome_arrow(out, s, "f", category, to, id, to_at);
}

/* The first poll of the task is started by this event, on this lane. */
static void starts(FILE *out, ebb__story *s, const ebb_event *ev, uint64_t lane, uint64_t at) {
    picture *p = s->picture;
    char id[ID_ROOM];
    uint64_t *by = ev->task_id == 0 ? NULL : ebb__map_put(&p->starts, ev->task_id);
    if (by == NULL) return;
    *by = ev->decision_seq;
    snprintf(id, sizeof id, "start:%u:%" PRIx64, s->process, ev->decision_seq);
    ebb__chrome_arrow(out, s, "s", "start", lane, id, at);
}

void ebb__picture_polled(FILE *out, ebb__story *s, uint64_t task, uint64_t at) {
    picture *p = s->picture;
    const uint64_t *by = p == NULL ? NULL : ebb__map_find(&p->starts, task);
    char id[ID_ROOM];
    if (by == NULL) return;
    snprintf(id, sizeof id, "start:%u:%" PRIx64, s->process, *by);
    ebb__chrome_arrow(out, s, "f", "start", ebb__chrome_thread(task), id, at);
    ebb__map_remove(&p->starts, task);
}

/* ---- contexts --------------------------------------------------------------------------------------------- */

static void span_of(const ebb__line *line, char id[ID_ROOM]) {
    snprintf(id, ID_ROOM, "trace:%.*s:%.*s", HEX_TRACE, line->text + AT_TRACE, HEX_SPAN,
             line->text + AT_SPAN);
}

/* A request begins where the host reads it. */
static void request(FILE *out, ebb__story *s, const ebb__line *line, uint64_t at) {
    const ebb__thing *r = ebb__story_region(s, line->event.region_id);
    char trace[HEX_TRACE + 1];
    snprintf(trace, sizeof trace, "%.*s", HEX_TRACE, line->text + AT_TRACE);
    ebb__chrome_slice(out, s, 0, "request", r != NULL && r->label[0] != 0 ? r->label : "request", at,
                      at + EBB__SHORT_NS, trace);
    starts(out, s, &line->event, 0, at);
}

static void taken(FILE *out, ebb__story *s, const ebb__line *line, uint64_t at) {
    const ebb_event *ev = &line->event;
    picture *p = s->picture;
    char id[ID_ROOM];
    piece *of = NULL;
    uint64_t lane = 0;
    if (ev->value == EBB__TRACE_REQUEST) {
        request(out, s, line, at);
    } else if (ev->value == EBB__TRACE_INSTANCE) {
        of = ebb__map_find(&p->instances, ev->other & UINT32_MAX);
        lane = lane_of_instance(ev->other);
    } else {
        of = ebb__map_find(&p->activities, ev->other);
        lane = lane_of_activity(ev->other);
    }
    if (of != NULL) snprintf(of->trace, sizeof of->trace, "%.*s", HEX_TRACE, line->text + AT_TRACE);
    span_of(line, id);
    ebb__chrome_arrow(out, s, "f", "trace", lane, id, of != NULL && of->since > at ? of->since : at);
}

/* An instance gives in a turn, others in a poll. */
static void given(FILE *out, ebb__story *s, const ebb__line *line, uint64_t at) {
    const ebb_event *ev = &line->event;
    const uint64_t lane = ev->other != 0 ? lane_of_instance(ev->other) : ebb__chrome_running(s);
    char id[ID_ROOM];
    span_of(line, id);
    if (lane == 0) ebb__chrome_slice(out, s, 0, "host", "trace", at, at + EBB__SHORT_NS, "");
    ebb__chrome_arrow(out, s, "s", "trace", lane, id, at);
}

/* ---- instances and activities ----------------------------------------------------------------------------- */

static void turn_begun(FILE *out, ebb__story *s, const ebb__line *line, uint64_t at) {
    const ebb_event *ev = &line->event;
    picture *p = s->picture;
    piece *i = instance_of(out, s, line);
    if (i == NULL) return;
    if (i->last != 0) join(out, s, "turn", i->lane, i->last, i->lane, at, ev->other);
    const piece *done = i->done == 0 ? NULL : ebb__map_find(&p->activities, i->done);
    if (done != NULL) join(out, s, "done", done->lane, done->last, i->lane, at, i->done);
    if (done != NULL) ebb__map_remove(&p->activities, i->done);
    i->done = 0;
    i->since = i->last = at;
    starts(out, s, ev, i->lane, at);
}

static void turn_ended(FILE *out, ebb__story *s, const ebb_event *ev, uint64_t at) {
    piece *i = ebb__map_find(&((picture *)s->picture)->instances, ev->other & UINT32_MAX);
    char name[64];
    snprintf(name, sizeof name, "turn %" PRIu64 "%s", ev->other >> 32,
             ev->type == EBB_EV_DURABLE_TURN_FENCED ? " fenced" : "");
    if (i != NULL) close_piece(out, s, i, "turn", name, at);
}

static void activity_begun(FILE *out, ebb__story *s, const ebb__line *line, uint64_t at) {
    const ebb_event *ev = &line->event;
    picture *p = s->picture;
    piece *a =
        piece_of(out, s, &p->activities, ev->other, lane_of_activity(ev->other), "activity", line->text);
    if (a == NULL) return;
    a->since = a->last = at;
    starts(out, s, ev, a->lane, at);
}

static void activity_ended(FILE *out, ebb__story *s, const ebb_event *ev, uint64_t at) {
    picture *p = s->picture;
    piece *a = ebb__map_find(&p->activities, ev->other);
    piece *i = ebb__map_find(&p->instances, ev->other & UINT32_MAX);
    if (a == NULL) return;
    close_piece(out, s, a, "activity", a->name, at);
    if (i == NULL) ebb__map_remove(&p->activities, ev->other);
    else i->done = ev->other;
}

/* ---- machines --------------------------------------------------------------------------------------------- */

static void queued(FILE *out, const ebb__story *s, const ebb_event *ev, uint64_t at) {
    const uint64_t from = ev->region_id != 0 ? lane_of_machine(ev->region_id) : ebb__chrome_running(s);
    char id[ID_ROOM];
    snprintf(id, sizeof id, "mailbox:%u:%" PRIx64, s->process, ev->other);
    if (from == 0) ebb__chrome_slice(out, s, 0, "host", "send", at, at + EBB__SHORT_NS, "");
    ebb__chrome_arrow(out, s, "s", "mailbox", from, id, at);
}

static void dispatched(FILE *out, const ebb__story *s, const ebb_event *ev, uint64_t at) {
    const uint64_t lane = lane_of_machine(ev->task_id);
    char id[ID_ROOM];
    ebb__chrome_slice(out, s, lane, "machine",
                      ev->type == EBB_EV_MACHINE_COMMITTED ? "dispatch" : "dispatch, rolled back", at,
                      at + EBB__SHORT_NS, "");
    if (ev->other == 0) return;
    snprintf(id, sizeof id, "mailbox:%u:%" PRIx64, s->process, ev->other);
    ebb__chrome_arrow(out, s, "f", "mailbox", lane, id, at);
}

static void machine_begun(FILE *out, const ebb__story *s, const ebb_event *ev) {
    char name[64];
    snprintf(name, sizeof name, "machine #%" PRIu64 ".%" PRIu64, ev->task_id >> 32 & 0xffffff,
             ev->task_id & UINT32_MAX);
    ebb__chrome_thread_name(out, s, lane_of_machine(ev->task_id), name);
}

/* ---- all --------------------------------------------------------------------------------------------------- */

void ebb__picture_take(FILE *out, ebb__story *s, const ebb__line *line, uint64_t at) {
    const ebb_event *ev = &line->event;
    if (s->picture == NULL) return;
    switch (ev->type) {
    case EBB_EV_TRACE_TAKEN: taken(out, s, line, at); break;
    case EBB_EV_TRACE_GIVEN: given(out, s, line, at); break;
    case EBB_EV_DURABLE_TURN_BEGUN: turn_begun(out, s, line, at); break;
    case EBB_EV_DURABLE_TURN_COMMITTED:
    case EBB_EV_DURABLE_TURN_FENCED: turn_ended(out, s, ev, at); break;
    case EBB_EV_DURABLE_ACTIVITY_STARTED: activity_begun(out, s, line, at); break;
    case EBB_EV_DURABLE_ACTIVITY_ENDED: activity_ended(out, s, ev, at); break;
    case EBB_EV_MACHINE_SPAWNED: machine_begun(out, s, ev); break;
    case EBB_EV_MACHINE_QUEUED: queued(out, s, ev, at); break;
    case EBB_EV_MACHINE_COMMITTED:
    case EBB_EV_MACHINE_ROLLED_BACK: dispatched(out, s, ev, at); break;
    default: break;
    }
}

static void close_all(FILE *out, const ebb__story *s, ebb__map *map, const char *category) {
    size_t at = 0;
    for (piece *p; (p = ebb__map_next(map, &at)) != NULL;) close_piece(out, s, p, category, p->name, s->now);
    ebb__map_free(map);
}

void ebb__picture_end(FILE *out, ebb__story *s) {
    picture *p = s->picture;
    if (p == NULL) return;
    close_all(out, s, &p->instances, "turn");
    close_all(out, s, &p->activities, "activity");
    ebb__map_free(&p->starts);
    free(p);
    s->picture = NULL;
}
