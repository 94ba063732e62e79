/* cli/summary.c - `ebb trace summary`: who ran longest, who waited longest and for what, what each drain waited for, and
 * how much of everything there was. As text for people, or as JSON for programs. */
#include "cli/summary.h"

#include "cli/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TOP = 10, HELD = 5, DEPTH = 256 };

/* A task that has ended, or is alive at the end; kept among the first of a ranking. */
typedef struct ranked {
    uint64_t key;
    ebb__thing thing;
    char title[200], wait[200];
} ranked;

typedef struct ranking {
    ranked top[TOP];
    size_t n;
} ranking;

/* A task that a drain waits for when the trace ends. */
typedef struct holder {
    bool cleanup; /* in a cleanup scope or a drain region: it watches over the drain, or cleans up */
    uint64_t age;
    char title[200], wait[200];
} holder;

/* A region that was asked to end while work was in it, and the work that ended last. A region below it that is asked to end
 * later is part of its drain. */
typedef struct drain {
    uint64_t region, from, took;
    char title[200];
    char held[HELD][200]; /* the last first */
    uint64_t ended[HELD];
    size_t n;
    bool over;
    holder holder[HELD]; /* of one that is not over: work before cleanup, the oldest first */
    size_t alive;        /* how many there are */
} drain;

struct ebb__summary {
    uint64_t events, count[EBB_EV_MAX], from, to;
    uint32_t files;
    ranking ran, longest, waited;
    drain *drains[TOP]; /* those that are not over first, then the longest */
    size_t drains_n;
    ebb__map alive; /* region -> drain *, of this file */
};

ebb__summary *ebb__summary_new(void) {
    ebb__summary *m = calloc(1, sizeof *m);
    if (m != NULL) ebb__map_init(&m->alive, ebb__cli_allocator(), sizeof(drain *));
    return m;
}

static void forget_alive(ebb__summary *m) {
    size_t at = 0;
    for (drain **d; (d = ebb__map_next(&m->alive, &at)) != NULL;) free(*d);
    ebb__map_free(&m->alive);
}

void ebb__summary_free(ebb__summary *m) {
    if (m == NULL) return;
    for (size_t i = 0; i < m->drains_n; i++) free(m->drains[i]);
    forget_alive(m);
    free(m);
}

/* ---- collecting ------------------------------------------------------------------------------------------- */

static void rank(ranking *r, const ebb__story *s, const ebb__thing *t, uint64_t key, bool wait) {
    if (key == 0 || (r->n == TOP && key <= r->top[TOP - 1].key)) return;
    size_t i = r->n < TOP ? r->n++ : TOP - 1;
    for (; i > 0 && r->top[i - 1].key < key; i--) r->top[i] = r->top[i - 1];
    r->top[i].key = key;
    r->top[i].thing = *t;
    ebb__story_title(s, t, r->top[i].title, sizeof r->top[i].title);
    r->top[i].wait[0] = 0;
    if (wait) snprintf(r->top[i].wait, sizeof r->top[i].wait, "%s", t->longest_for);
}

static void task_counts(ebb__summary *m, const ebb__story *s, const ebb__thing *t) {
    if (t->flags & 7 & ~1u) return; /* the runtime's own */
    rank(&m->ran, s, t, t->ran, false);
    rank(&m->longest, s, t, t->longest, false);
    rank(&m->waited, s, t, t->longest_wait, true);
}

static drain *drain_of(const ebb__summary *m, uint64_t region) {
    drain **d = region == 0 ? NULL : ebb__map_find(&m->alive, region);
    return d == NULL ? NULL : *d;
}

/* The drain that the region above is part of. */
static uint64_t drain_above(const ebb__story *s, const ebb__thing *r) {
    const ebb__thing *above = ebb__story_region(s, r->region);
    return above == NULL ? 0 : above->drain;
}

static void region_opens(const ebb__story *s, uint64_t region) {
    ebb__thing *r = ebb__story_region(s, region);
    if (r != NULL) r->drain = drain_above(s, r);
}

static void drain_begins(ebb__summary *m, ebb__story *s, uint64_t region, uint64_t at) {
    ebb__thing *r = ebb__story_region(s, region);
    if (r == NULL || r->drain != 0) return;
    r->drain = drain_above(s, r);
    if (r->drain != 0) return;
    drain *d = calloc(1, sizeof *d), **place = d == NULL ? NULL : ebb__map_put(&m->alive, region);
    if (place == NULL) {
        s->no_memory = true;
        free(d);
        return;
    }
    *place = d;
    r->drain = d->region = region;
    d->from = at;
    ebb__story_title(s, r, d->title, sizeof d->title);
}

static void drain_loses(drain *d, const ebb__story *s, const ebb__thing *t, uint64_t at) {
    memmove(d->held[1], d->held[0], sizeof d->held - sizeof d->held[0]);
    memmove(&d->ended[1], &d->ended[0], sizeof d->ended - sizeof d->ended[0]);
    ebb__story_title(s, t, d->held[0], sizeof d->held[0]);
    d->ended[0] = at - d->from;
    if (d->n < HELD) d->n++;
}

/* The drains that a task is part of, from its region up. The depth is bounded: a doctored trace may have a cycle. */
typedef struct ascent {
    const ebb__thing *region;
    uint32_t depth;
} ascent;

static drain *next_drain(const ebb__summary *m, const ebb__story *s, ascent *a) {
    drain *d = NULL;
    while (d == NULL && a->region != NULL && a->depth++ < DEPTH) {
        const ebb__thing *r = a->region;
        d = drain_of(m, r->drain);
        if (d != NULL) r = ebb__story_region(s, d->region);
        a->region = r == NULL ? NULL : ebb__story_region(s, r->region);
    }
    return d;
}

/* A task has ended: the last of these in a region that drains, or below it, are what the drain waited for. */
static void drains_lose(const ebb__summary *m, const ebb__story *s, const ebb__thing *t, uint64_t at) {
    ascent a = {ebb__story_region(s, t->region), 0};
    if (t->flags & 6) return;
    for (drain *d; (d = next_drain(m, s, &a)) != NULL;) drain_loses(d, s, t, at);
}

static bool holds_before(const holder *a, const holder *b) {
    return a->cleanup != b->cleanup ? b->cleanup : a->age > b->age;
}

static void drain_keeps(drain *d, const holder *h) {
    size_t i = d->alive++;
    if (i >= HELD && !holds_before(h, &d->holder[HELD - 1])) return;
    if (i >= HELD) i = HELD - 1;
    for (; i > 0 && holds_before(h, &d->holder[i - 1]); i--) d->holder[i] = d->holder[i - 1];
    d->holder[i] = *h;
}

/* A task is alive when the trace ends: the drains above it wait for it. */
static void drains_keep(const ebb__summary *m, const ebb__story *s, const ebb__thing *t) {
    ascent a = {ebb__story_region(s, t->region), 0};
    if (t->flags & 6 || a.region == NULL) return;
    holder h = {.cleanup = a.region->cleanup, .age = s->now - t->since};
    ebb__story_title(s, t, h.title, sizeof h.title);
    ebb__story_wait(s, t->waits_for, t->awaits, h.wait, sizeof h.wait);
    for (drain *d; (d = next_drain(m, s, &a)) != NULL;) drain_keeps(d, &h);
}

static bool ranks_before(const drain *a, const drain *b) {
    return a->over != b->over ? b->over : a->took > b->took;
}

/* Keeps it if it is one of the first and has waited for something. */
static void rank_drain(ebb__summary *m, drain *d) {
    if (d->n + d->alive == 0 || (m->drains_n == TOP && !ranks_before(d, m->drains[TOP - 1]))) {
        free(d);
        return;
    }
    if (m->drains_n == TOP) free(m->drains[TOP - 1]);
    else m->drains_n++;
    size_t i = m->drains_n - 1;
    for (; i > 0 && ranks_before(d, m->drains[i - 1]); i--) m->drains[i] = m->drains[i - 1];
    m->drains[i] = d;
}

static void drain_ends(ebb__summary *m, uint64_t region, uint64_t at) {
    drain *d = drain_of(m, region);
    if (d == NULL) return;
    d->took = at - d->from;
    d->over = true;
    ebb__map_remove(&m->alive, region);
    rank_drain(m, d);
}

void ebb__summary_take(ebb__summary *m, ebb__story *s, const ebb__line *line) {
    const ebb_event *ev = &line->event;
    uint64_t at = ebb__story_time(s, ev);
    m->events += line->records;
    if (ev->type < EBB_EV_MAX) m->count[ev->type]++;
    if (ev->type >= EBB_EV_REGION_OPENED && (m->from == 0 || at < m->from)) m->from = at;
    if (at > m->to) m->to = at;
    ebb__story_take(s, line);
    switch (ev->type) {
    case EBB_EV_REGION_OPENED: region_opens(s, ev->region_id); break;
    case EBB_EV_REGION_CLOSING:
    case EBB_EV_REGION_CANCELLED: drain_begins(m, s, ev->region_id, at); break;
    case EBB_EV_REGION_CLOSED: drain_ends(m, ev->region_id, at); break;
    case EBB_EV_COMPLETED:
    case EBB_EV_DISCARDED:
    case EBB_EV_FINALIZED: {
        ebb__thing *t = ebb__story_task(s, ev->task_id);
        if (t == NULL) break;
        drains_lose(m, s, t, at);
        task_counts(m, s, t);
        break;
    }
    default: break;
    }
}

/* A wait that has not ended counts up to the end of the trace. */
static void wait_goes_on(const ebb__story *s, ebb__thing *t) {
    uint64_t so_far = t->parked_at != 0 && s->now > t->parked_at ? s->now - t->parked_at : 0;
    if (so_far <= t->longest_wait) return;
    char wait[64];
    ebb__story_wait(s, t->waits_for, t->awaits, wait, sizeof wait);
    t->longest_wait = so_far;
    snprintf(t->longest_for, sizeof t->longest_for, "%s, to the end", wait);
}

void ebb__summary_file(ebb__summary *m, ebb__story *s) {
    size_t at = 0;
    for (ebb__thing *t; (t = ebb__map_next(&s->tasks, &at)) != NULL;) {
        if (t->id == s->ended_task) continue; /* it is counted */
        wait_goes_on(s, t);
        task_counts(m, s, t);
        drains_keep(m, s, t);
    }
    at = 0;
    for (drain **d; (d = ebb__map_next(&m->alive, &at)) != NULL;) {
        (*d)->took = s->now - (*d)->from;
        rank_drain(m, *d);
    }
    ebb__map_free(&m->alive);
    m->files++;
}

/* ---- printing --------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t begun, ended;
} kinds[] = {
    {"regions", EBB_EV_REGION_OPENED, EBB_EV_REGION_CLOSED},
    {"tasks", EBB_EV_TASK_SPAWNED, 0},
    {"polls", EBB_EV_TASK_POLLED, 0},
    {"wake-ups", EBB_EV_TASK_WOKEN, 0},
    {"cancel requests", EBB_EV_CANCEL_REQUESTED, EBB_EV_CANCEL_ACKED},
    {"abandoned", EBB_EV_ABANDONED, 0},
    {"discarded", EBB_EV_DISCARDED, 0},
    {"refused", EBB_EV_REFUSED, 0},
    {"timers", EBB_EV_TIMER_ARMED, EBB_EV_TIMER_FIRED},
    {"futures", EBB_EV_FUTURE_MADE, EBB_EV_FUTURE_SETTLED},
    {"operations", EBB_EV_OPERATION_BEGUN, EBB_EV_OPERATION_ENDED},
    {"connections", EBB_EV_CONNECTION_OPENED, EBB_EV_CONNECTION_CLOSED},
    {"exchanges", EBB_EV_EXCHANGE_BEGUN, EBB_EV_EXCHANGE_ENDED},
    {"processes", EBB_EV_PROCESS_STARTED, EBB_EV_PROCESS_EXITED},
    {"instances", EBB_EV_DURABLE_INSTANCE_STARTED, EBB_EV_DURABLE_INSTANCE_ENDED},
    {"turns", EBB_EV_DURABLE_TURN_BEGUN, EBB_EV_DURABLE_TURN_COMMITTED},
    {"replays", EBB_EV_DURABLE_REPLAYED, 0},
    {"evictions", EBB_EV_DURABLE_EVICTED, 0},
    {"activities", EBB_EV_DURABLE_ACTIVITY_STARTED, EBB_EV_DURABLE_ACTIVITY_ENDED},
    {"workflow steps", EBB_EV_WORKFLOW, 0},
    {"messages received", EBB_EV_RECEIVED, 0},
};

static void print_ms(FILE *out, uint64_t ns) {
    fprintf(out, "%10.3f ms", (double)ns / 1e6);
}

static void print_ranking(FILE *out, const char *title, const ranking *r, bool wait) {
    if (r->n > 0) fprintf(out, "\n%s\n", title);
    for (size_t i = 0; i < r->n; i++) {
        const ranked *k = &r->top[i];
        print_ms(out, k->key);
        if (wait) fprintf(out, "  %s, for %s\n", k->title, k->wait);
        else fprintf(out, "  %s, %" PRIu64 " polls\n", k->title, k->thing.polls);
    }
}

static void print_holders(FILE *out, const drain *d) {
    size_t shown = d->alive < HELD ? d->alive : HELD;
    for (size_t k = 0; k < shown; k++) {
        fputs("            alive ", out);
        print_ms(out, d->holder[k].age);
        fprintf(out, "  %s, waits for %s\n", d->holder[k].title, d->holder[k].wait);
    }
    if (d->alive > shown) fprintf(out, "            and %zu more\n", d->alive - shown);
}

static void print_text(FILE *out, const ebb__summary *m) {
    fprintf(out, "%" PRIu64 " events in %.3f s of %u runtime%s\n\n", m->events,
            (double)(m->to - m->from) / 1e9, m->files, m->files == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (m->count[kinds[i].begun] == 0) continue;
        fprintf(out, "%12" PRIu64 "  %s", m->count[kinds[i].begun], kinds[i].name);
        if (kinds[i].ended != 0)
            fprintf(out, ", %" PRIu64 " %s", m->count[kinds[i].ended],
                    strrchr(ebb_event_name(kinds[i].ended), '_') + 1);
        fputc('\n', out);
    }
    print_ranking(out, "Ran longest, in all polls:", &m->ran, false);
    print_ranking(out, "Ran longest, in one poll:", &m->longest, false);
    print_ranking(out, "Waited longest at a time:", &m->waited, true);
    if (m->drains_n > 0) fprintf(out, "\nWhat drains waited for, the last to end first:\n");
    for (size_t i = 0; i < m->drains_n; i++) {
        const drain *d = m->drains[i];
        print_ms(out, d->took);
        fprintf(out, "  region %s%s\n", d->title, d->over ? "" : ", not closed yet");
        for (size_t k = 0; k < d->n; k++) {
            fputs("            after ", out);
            print_ms(out, d->ended[k]);
            fprintf(out, "  %s\n", d->held[k]);
        }
        print_holders(out, d);
    }
}

static void json_ranking(FILE *out, const char *name, const ranking *r, bool wait) {
    fprintf(out, ",\n\"%s\":[", name);
    for (size_t i = 0; i < r->n; i++) {
        fprintf(out, "%s\n{\"task\":", i == 0 ? "" : ",");
        ebb__print_json_string(out, r->top[i].title);
        fprintf(out, ",\"ns\":%" PRIu64 ",\"polls\":%" PRIu64, r->top[i].key, r->top[i].thing.polls);
        if (wait) {
            fputs(",\"for\":", out);
            ebb__print_json_string(out, r->top[i].wait);
        }
        fputc('}', out);
    }
    fputc(']', out);
}

static void json_drains(FILE *out, const ebb__summary *m) {
    fputs(",\n\"drains\":[", out);
    for (size_t i = 0; i < m->drains_n; i++) {
        const drain *d = m->drains[i];
        fprintf(out, "%s\n{\"region\":", i == 0 ? "" : ",");
        ebb__print_json_string(out, d->title);
        fprintf(out, ",\"ns\":%" PRIu64 ",\"closed\":%s,\"waited_for\":[", d->took,
                d->over ? "true" : "false");
        for (size_t k = 0; k < d->n; k++) {
            fprintf(out, "%s{\"task\":", k == 0 ? "" : ",");
            ebb__print_json_string(out, d->held[k]);
            fprintf(out, ",\"after_ns\":%" PRIu64 "}", d->ended[k]);
        }
        fprintf(out, "],\"alive\":%zu,\"waits_for\":[", d->alive);
        for (size_t k = 0; k < HELD && k < d->alive; k++) {
            fprintf(out, "%s{\"task\":", k == 0 ? "" : ",");
            ebb__print_json_string(out, d->holder[k].title);
            fputs(",\"for\":", out);
            ebb__print_json_string(out, d->holder[k].wait);
            fprintf(out, ",\"age_ns\":%" PRIu64 "}", d->holder[k].age);
        }
        fputs("]}", out);
    }
    fputc(']', out);
}

static void print_json(FILE *out, const ebb__summary *m) {
    fprintf(out, "{\"events\":%" PRIu64 ",\"runtimes\":%u,\"ns\":%" PRIu64 ",\n\"counts\":{", m->events,
            m->files, m->to - m->from);
    bool first = true;
    for (uint32_t i = 0; i < EBB_EV_MAX; i++) {
        if (m->count[i] == 0 || ebb_event_name(i) == NULL) continue;
        fprintf(out, "%s\"%s\":%" PRIu64, first ? "" : ",", ebb_event_name(i), m->count[i]);
        first = false;
    }
    fputc('}', out);
    json_ranking(out, "ran", &m->ran, false);
    json_ranking(out, "longest_poll", &m->longest, false);
    json_ranking(out, "waited", &m->waited, true);
    json_drains(out, m);
    fputs("}\n", out);
}

void ebb__summary_print(FILE *out, const ebb__summary *m, bool json) {
    if (json) print_json(out, m);
    else print_text(out, m);
}
