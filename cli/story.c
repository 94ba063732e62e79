#include "cli/story.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void ebb__story_begin(ebb__story *s, uint8_t runtime_id) {
    memset(s, 0, sizeof *s);
    s->runtime_id = runtime_id;
    ebb__map_init(&s->tasks, ebb__cli_allocator(), sizeof(ebb__thing));
    ebb__map_init(&s->regions, ebb__cli_allocator(), sizeof(ebb__thing));
    ebb__map_init(&s->futures, ebb__cli_allocator(), sizeof(ebb__made));
}

void ebb__story_end(ebb__story *s) {
    for (size_t i = 0; i < EBB__STORY_STRINGS; i++) free(s->strings[i]);
    ebb__map_free(&s->tasks);
    ebb__map_free(&s->regions);
    ebb__map_free(&s->futures);
}

uint64_t ebb__story_time(const ebb__story *s, const ebb_event *ev) {
    if (ev->type == EBB_EV_POLL_ENDED && ev->other > ev->time) return ev->other;
    return ev->time > s->poll_end ? ev->time : s->poll_end;
}

const char *ebb__story_string(const ebb__story *s, uint32_t number) {
    bool known = number != 0 && number < EBB__STORY_STRINGS && s->strings[number] != NULL;
    return known ? s->strings[number] : "";
}

ebb__thing *ebb__story_task(const ebb__story *s, uint64_t id) {
    return ebb__map_find(&s->tasks, id);
}

ebb__thing *ebb__story_region(const ebb__story *s, uint64_t id) {
    return ebb__map_find(&s->regions, id);
}

ebb__made *ebb__story_future(const ebb__story *s, uint64_t number) {
    return ebb__map_find(&s->futures, number);
}

static void add_id(char *out, size_t room, const char *before, uint64_t id) {
    snprintf(out, room, "%s#%" PRIu64 ".%" PRIu64 ".%" PRIu64, before, id >> 56, id >> 32 & 0xffffff,
             id & UINT32_MAX);
}

void ebb__story_title(const ebb__story *s, const ebb__thing *t, char *out, size_t room) {
    const char *name = ebb__story_string(s, t->name), *site = ebb__story_string(s, t->site);
    char head[160];
    if (t->label[0] != 0) name = t->label;
    snprintf(head, sizeof head, "%s%s%s ", name[0] != 0 ? name : site, t->flags & 4 ? " callbacks" : "",
             t->flags & 2 ? " finalizers" : "");
    add_id(out, room, head, t->id);
}

void ebb__story_wait(const ebb__story *s, uint32_t what, uint64_t future, char *out, size_t room) {
    const ebb__made *f = ebb__story_future(s, future);
    if (f != NULL) {
        snprintf(out, room, "%s begun at %s",
                 ebb__story_string(s, f->operation != 0 ? f->operation : f->what),
                 ebb__story_string(s, f->site));
    } else {
        const char *kind = ebb__story_string(s, what);
        snprintf(out, room, "%s", kind[0] != 0 ? kind : "a wake-up");
    }
}

/* ---- events ----------------------------------------------------------------------------------------------- */

static ebb__thing *begun(ebb__story *s, ebb__map *map, uint64_t id, const ebb_event *ev) {
    ebb__thing *t = id == 0 ? NULL : ebb__map_put(map, id);
    if (t == NULL) {
        s->no_memory = s->no_memory || id != 0;
        return NULL;
    }
    memset(t, 0, sizeof *t);
    t->id = id;
    t->site = ev->site;
    t->since = t->phase_since = ebb__story_time(s, ev);
    t->phase = ev->phase;
    t->runtime = s->runtime_id;
    return t;
}

static void take_polled(ebb__story *s, const ebb_event *ev) {
    ebb__thing *t = ebb__story_task(s, ev->task_id);
    s->polling = ev->task_id;
    s->poll_from = ebb__story_time(s, ev);
    if (t == NULL) return;
    t->polls++;
    uint64_t waited = t->parked_at != 0 && s->poll_from > t->parked_at ? s->poll_from - t->parked_at : 0;
    t->waited += waited;
    if (waited > t->longest_wait) {
        t->longest_wait = waited;
        ebb__story_wait(s, t->waits_for, t->awaits, t->longest_for, sizeof t->longest_for);
    }
    t->parked_at = 0;
    const ebb__made *f = ebb__story_future(s, t->awaits);
    if (t->awaits != 0 && (f == NULL || f->ended)) t->awaits = t->waits_for = 0;
}

static void take_poll_ended(ebb__story *s, const ebb_event *ev) {
    ebb__thing *t = ebb__story_task(s, ev->task_id);
    uint64_t ran = ev->other > s->poll_from ? ev->other - s->poll_from : 0;
    if (ev->other > s->poll_end) s->poll_end = ev->other;
    s->polling = 0;
    if (t == NULL) return;
    t->ran += ran;
    if (ran > t->longest) t->longest = ran;
    t->parked_at = ev->other;
}

static void take_made(ebb__story *s, const ebb_event *ev) {
    ebb__made *f = ev->other == 0 ? NULL : ebb__map_put(&s->futures, ev->other);
    if (f == NULL) s->no_memory = true;
    else *f = (ebb__made){ev->other, ev->what, ev->site, 0, ebb__story_time(s, ev), false};
}

static void take_named(ebb__story *s, const ebb_event *ev) {
    ebb__thing *t = ev->task_id != 0 ? ebb__story_task(s, ev->task_id) : ebb__story_region(s, ev->region_id);
    if (t != NULL) t->name = ev->what;
}

/* A phase of a task or a state of a region. */
static void take_phase(ebb__story *s, const ebb_event *ev) {
    bool region = ev->type <= EBB_EV_REGION_STOPPING;
    ebb__thing *t = region ? ebb__story_region(s, ev->region_id) : ebb__story_task(s, ev->task_id);
    if (ev->type < EBB_EV_REGION_OPENED || ev->type > EBB_EV_TASK_JOINED) return;
    if (t == NULL || ev->phase == 0 || ev->phase == t->phase) return;
    t->phase = ev->phase;
    t->phase_since = ebb__story_time(s, ev);
}

static bool is_cleanup(const ebb__story *s, const ebb_event *ev) {
    const ebb__thing *above = ebb__story_region(s, ev->other);
    return (ev->value & 1) != 0 || (above != NULL && above->cleanup);
}

static void forget_ended(ebb__story *s) {
    if (s->ended_task != 0) ebb__map_remove(&s->tasks, s->ended_task);
    if (s->ended_region != 0) ebb__map_remove(&s->regions, s->ended_region);
    s->ended_task = s->ended_region = 0;
}

void ebb__story_take(ebb__story *s, const ebb__line *line) {
    const ebb_event *ev = &line->event;
    ebb__thing *t;
    ebb__made *f;
    forget_ended(s);
    switch (ev->type) {
    case EBB_EV_STRING:
        if (ev->value >= EBB__STORY_STRINGS || s->strings[ev->value] != NULL) break;
        s->strings[ev->value] = strdup(line->text);
        if (s->strings[ev->value] == NULL) s->no_memory = true;
        else ebb__make_plain(s->strings[ev->value]);
        break;
    case EBB_EV_NAMED: take_named(s, ev); break;
    case EBB_EV_PRESENT:
        t = begun(s, ev->value == 1 ? &s->regions : &s->tasks, ev->value == 1 ? ev->region_id : ev->task_id,
                  ev);
        if (t != NULL) t->region = ev->value == 1 ? ev->other : ev->region_id;
        break;
    case EBB_EV_REGION_OPENED:
        t = begun(s, &s->regions, ev->region_id, ev);
        if (t == NULL) break;
        t->region = ev->other;
        t->cleanup = is_cleanup(s, ev);
        break;
    case EBB_EV_TASK_SPAWNED:
        t = begun(s, &s->tasks, ev->task_id, ev);
        if (t == NULL) break;
        t->region = ev->region_id;
        t->flags = ev->value;
        break;
    case EBB_EV_TASK_POLLED: take_polled(s, ev); break;
    case EBB_EV_POLL_ENDED: take_poll_ended(s, ev); break;
    case EBB_EV_WAITING:
        if ((t = ebb__story_task(s, ev->task_id)) == NULL) break;
        t->waits_for = ev->what;
        t->awaits = 0;
        break;
    case EBB_EV_FUTURE_AWAITED:
        if ((t = ebb__story_task(s, ev->task_id)) != NULL) t->awaits = ev->other;
        break;
    case EBB_EV_FUTURE_MADE: take_made(s, ev); break;
    case EBB_EV_FUTURE_SETTLED:
    case EBB_EV_FUTURE_CANCELLED:
    case EBB_EV_FUTURE_DROPPED:
        if ((f = ebb__story_future(s, ev->other)) != NULL) f->ended = true;
        break;
    case EBB_EV_OPERATION_BEGUN:
        if ((f = ebb__story_future(s, ev->other)) != NULL) f->operation = ev->what;
        break;
    case EBB_EV_EXCHANGE_BEGUN:
        t = ebb__story_region(s, ev->region_id);
        if (t == NULL) break;
        snprintf(t->label, sizeof t->label, "%.60s", line->text);
        ebb__make_plain(t->label);
        break;
    case EBB_EV_COMPLETED:
    case EBB_EV_DISCARDED:
    case EBB_EV_FINALIZED: s->ended_task = ev->task_id; break;
    case EBB_EV_REGION_CLOSED: s->ended_region = ev->region_id; break;
    default: break;
    }
    take_phase(s, ev);
    s->now = ebb__story_time(s, ev);
}
