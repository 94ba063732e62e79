/* The machines of the runtime: page by page, one with its queue and what it waits for, and a stop. A page is made without
 * a wait, of at most SCAN slots, whatever the filter leaves out; so it holds the loop for a few ms at most, and machines
 * that go between two pages do no harm. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "durable/info_json.h"
#include "serve/machines.h"

enum { PAGE = 50, SCAN = 16384, QUEUE = 100, FIELDS_MOST = 16384, EXPLAIN_LINES = 1500 };

/* ---- JSON --------------------------------------------------------------------------------------------------------- */

void ebb__json_put(bool *ok, json_t *object, const char *name, json_t *j) {
    if (*ok) *ok = json_object_set_new(object, name, j) == 0;
    else json_decref(j);
}

static json_t *id_json(uint64_t id) {
    char text[48];
    (void)snprintf(text, sizeof text, "%" PRIu64 ".%" PRIu64 ".%" PRIu64, id >> 56, id >> 32 & 0xffffff,
                   id & UINT32_MAX);
    return json_string(text);
}

const char *ebb__kind_name(const ebb_machines *ms, uint16_t kind, char out[24]) {
    const ebb_machine_kind *k = ebb_machines_kind(ms, kind);
    if (kind == EBB_MACHINE_REQUEST_FAILED) return "RequestFailed";
    if (k != NULL && k->name != NULL) return k->name;
    (void)snprintf(out, 24, "kind %u", kind);
    return out;
}

static const char *lifecycle_of(const ebb__machine *m) {
    static const char *const names[] = {"?", "Created", "Running", "Faulted", "Stopped"};
    return names[m->lifecycle <= EBB_MACHINE_STOPPED ? m->lifecycle : 0];
}

static const char *type_of(const ebb__machine *m) {
    return m->type->t.name != NULL ? m->type->t.name : "machine";
}

static const char *state_of(const ebb__machine *m, char out[24]) {
    const char *name = m->type->t.states[m->state].name;
    if (name != NULL) return name;
    (void)snprintf(out, 24, "%u", m->state);
    return out;
}

/* What costs the same for each machine, whatever it has in its mailbox. */
static json_t *row_of(const ebb_machines *ms, uint32_t i) {
    const ebb__machine *m = ebb__machine_at(ms, i);
    const ebb__machine_past *past = ebb__machine_past_at(ms, i);
    const uint64_t now = ebb__now(ms->rt), age = now > past->spawned_at ? now - past->spawned_at : 0;
    char state[24];
    json_t *j = json_object();
    bool ok = j != NULL;
    ebb__json_put(&ok, j, "id", id_json(ebb__machine_id(ms, i)));
    ebb__json_put(&ok, j, "program", ebb__text_json(ebb__machines_name(ms)));
    ebb__json_put(&ok, j, "type", ebb__text_json(type_of(m)));
    ebb__json_put(&ok, j, "state", ebb__text_json(state_of(m, state)));
    ebb__json_put(&ok, j, "lifecycle", json_string(lifecycle_of(m)));
    ebb__json_put(&ok, j, "places", json_integer(m->places));
    ebb__json_put(&ok, j, "mailbox", json_integer(m->mailbox));
    ebb__json_put(&ok, j, "pending", json_integer(m->more != NULL ? m->more->n_made : 0));
    ebb__json_put(&ok, j, "owed", json_integer(m->more != NULL ? m->more->n_held : 0));
    ebb__json_put(&ok, j, "timers", json_integer(m->more != NULL ? m->more->n_alarms : 0));
    ebb__json_put(&ok, j, "faults", json_integer(past->faults));
    ebb__json_put(&ok, j, "dropped", json_integer(past->dropped));
    ebb__json_put(&ok, j, "age_ms", json_integer((json_int_t)(age / EBB_MS)));
    if (ok) return j;
    json_decref(j);
    return NULL;
}

/* ---- pages -------------------------------------------------------------------------------------------------------- */

/* Where a page begins: a place of the runtime, and a slot there. */
typedef struct cursor {
    uint32_t set, slot;
} cursor;

static uint32_t set_of(const ebb_machines *ms) {
    return (uint32_t)(ms->set - ms->set->layer->sets);
}

/* "2.4096". */
static bool cursor_of(const char *text, cursor *out) {
    char *end;
    if (strspn(text, "0123456789.") != strlen(text) || strchr(text, '.') == text) return false;
    unsigned long set = strtoul(text, &end, 10);
    if (*end != '.' || end[1] < '0' || end[1] > '9' || set >= EBB_MACHINES_MAX) return false;
    unsigned long slot = strtoul(end + 1, &end, 10);
    *out = (cursor){(uint32_t)set, (uint32_t)slot};
    return *end == 0 && slot <= EBB__SLAB_MAX_INDEX;
}

/* What the filter of a request says; NULL: anything. */
typedef struct filter {
    const char *program, *type, *state;
} filter;

static bool is_wanted(const filter *f, const ebb_machines *ms, const ebb__machine *m) {
    char number[24];
    if (f->program != NULL && strcmp(f->program, ebb__machines_name(ms)) != 0) return false;
    if (f->type != NULL && strcmp(f->type, type_of(m)) != 0) return false;
    if (f->state == NULL) return true;
    return strcmp(f->state, state_of(m, number)) == 0 || strcmp(f->state, lifecycle_of(m)) == 0;
}

static bool is_there(const ebb__machine *m) {
    return m->type != NULL && m->lifecycle != EBB_MACHINE_STOPPED && !(m->flags & EBB__M_UNCOMMITTED);
}

typedef struct page {
    json_t *rows;
    size_t most;
    uint32_t scan; /* slots that may still be looked at */
    bool ok;
    cursor at; /* behind the last slot that was looked at */
} page;

static bool is_full(const page *p) {
    return !p->ok || p->scan == 0 || json_array_size(p->rows) == p->most;
}

static void scan(page *p, const filter *f, const ebb_machines *ms) {
    for (; p->at.slot < ms->machines.used && !is_full(p); p->at.slot++, p->scan--) {
        const ebb__machine *m = ebb__machine_at(ms, p->at.slot);
        if (!is_there(m) || !is_wanted(f, ms, m)) continue;
        p->ok = json_array_append_new(p->rows, row_of(ms, p->at.slot)) == 0;
    }
}

/* Returns whether there may be more. */
static bool fill(page *p, const filter *f, const ebb_runtime *rt) {
    for (ebb_machines *ms = NULL; (ms = ebb__machines_next(rt, ms)) != NULL;) {
        if (set_of(ms) < p->at.set) continue;
        if (set_of(ms) > p->at.set) p->at = (cursor){set_of(ms), 0};
        if (p->at.slot == 0) p->at.slot = 1;
        scan(p, f, ms);
        if (p->at.slot < ms->machines.used) return true;
        p->at = (cursor){set_of(ms) + 1, 0};
        if (is_full(p) && ebb__machines_next(rt, ms) != NULL) return true;
    }
    return false;
}

static const char *text_of(const ebb__ask *a, const char *name) {
    const ebb__given *g = ebb__given_of(a, name);
    return g->is ? g->text : NULL;
}

ebb_status ebb__serve_machines(ebb__ask *a) {
    const filter f = {text_of(a, "program"), text_of(a, "type"), text_of(a, "state")};
    const ebb__given *most = ebb__given_of(a, "most");
    const char *after = text_of(a, "after");
    page p = {.rows = json_array(), .most = most->is ? (size_t)most->number : PAGE, .scan = SCAN};
    char next[32];
    if (after != NULL && !cursor_of(after, &p.at)) {
        json_decref(p.rows);
        (void)ebb__problem_set(a, 400, "bad_value", "query parameter 'after'", "the 'next' of a page",
                               "'after' is %.40s", after);
        return ebb__answer_problem(a);
    }
    p.ok = p.rows != NULL;
    bool more = p.ok && fill(&p, &f, ebb__rt_of(a->cx));
    (void)snprintf(next, sizeof next, "%" PRIu32 ".%" PRIu32, p.at.set, p.at.slot);
    json_t *j = json_object();
    bool ok = p.ok && j != NULL;
    ebb__json_put(&ok, j, "machines", p.rows);
    ebb__json_put(&ok, j, "next", more ? json_string(next) : json_null());
    if (!ok) json_decref(j);
    return ebb__answer(a, 200, ok ? j : NULL);
}

/* ---- one ---------------------------------------------------------------------------------------------------------- */

/* The machine in the path. False: answered already, with *st. */
static bool take_machine(ebb__ask *a, ebb_machine *machine, ebb_machines **ms, ebb_status *st) {
    ebb_machine_info info;
    if (!ebb__ask_id(a, "machine", &machine->id, st)) return false;
    *ms = ebb__machines_of(ebb__rt_of(a->cx), machine->id);
    ebb_status is = *ms != NULL ? ebb_machine_info_of(*ms, *machine, &info) : EBB_ERR_UNKNOWN_MACHINE;
    if (is == EBB_OK && info.type == NULL) is = EBB_ERR_NOT_RUNNING;
    if (is == EBB_OK) return true;
    *st = ebb__answer_failure(a, is, NULL);
    return false;
}

static const char *what_of(uint8_t what) {
    static const char *const names[] = {
        [EBB__MESSAGE] = "message", [EBB__REQUEST] = "request", [EBB__REPLY] = "reply",
        [EBB__FAILED] = "failure",  [EBB__EXPIRY] = "timer",    [EBB__STALE] = "timer that has ended"};
    return what < sizeof names / sizeof *names && names[what] != NULL ? names[what] : "message";
}

static json_t *cell_json(const ebb_machines *ms, const ebb__cell *c, bool deferred) {
    char name[24];
    json_t *j = json_object();
    bool ok = j != NULL;
    ebb__json_put(&ok, j, "what", json_string(what_of(c->what)));
    ebb__json_put(&ok, j, "kind", ebb__text_json(ebb__kind_name(ms, c->kind, name)));
    ebb__json_put(&ok, j, "from", c->from != 0 ? id_json(c->from) : json_null());
    ebb__json_put(&ok, j, "deferred", json_boolean(deferred));
    if (ok) return j;
    json_decref(j);
    return NULL;
}

static json_t *queue_json(const ebb_machines *ms, const ebb__machine *m) {
    json_t *all = json_array();
    const ebb__cell *c = m->last == NULL ? NULL : m->last->next;
    bool deferred = m->mark != NULL;
    for (size_t n = 0; n < QUEUE && c != NULL && all != NULL; n++) {
        if (json_array_append_new(all, cell_json(ms, c, deferred)) != 0) {
            json_decref(all);
            return NULL;
        }
        if (c == m->mark) deferred = false;
        c = c == m->last ? NULL : c->next;
    }
    return all;
}

/* Lines of an explanation. */
typedef struct lines {
    json_t *all;
    bool ok;
} lines;

static void add_line(void *ctx, const char *text, size_t n) {
    lines *l = ctx;
    while (n > 0 && *text == ' ') text++, n--;
    if (n > 0 && text[n - 1] == '\n') n--;
    if (!l->ok || json_array_size(l->all) == EXPLAIN_LINES) return;
    json_t *line = json_stringn(text, n);
    l->ok = json_array_append_new(l->all, line != NULL ? line : json_string("(not UTF-8)")) == 0;
}

static json_t *explain_json(const ebb_machines *ms, ebb_machine machine) {
    lines l = {.all = json_array()};
    l.ok = l.all != NULL;
    if (l.ok) (void)ebb_machine_explain(ms, machine, add_line, &l);
    if (l.ok) return l.all;
    json_decref(l.all);
    return NULL;
}

/* The library has no number above 2^63; then all are written with a fraction. */
static json_t *load(const char *text, size_t n) {
    json_t *j = json_loadb(text, n, JSON_ALLOW_NUL, NULL);
    return j != NULL ? j : json_loadb(text, n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
}

/* Of a typestate. What C has in its fields has no names, and is not shown. `cut`: they are too large, or too deep. */
static json_t *fields_json(const ebb_machines *ms, const ebb_machine_info *info, bool *cut) {
    ebb_program *p = ebb__program_of(ms);
    *cut = false;
    if (p == NULL || p->dispatching || ebb__typestate_of(info->type) == NULL) return json_null();
    ebb__run run = ebb__host_begin(p);
    const ebb__object *text = ebb__machine_json(&run, info);
    *cut = text == NULL || text->n > FIELDS_MOST;
    json_t *j = *cut ? NULL : load((const char *)ebb__object_bytes(text), text->n);
    *cut = j == NULL;
    ebb__host_end(p);
    return j != NULL ? j : json_null();
}

void ebb__fault_say(const ebb_program_event *e, char *out, size_t room) {
    (void)snprintf(out, room, "%s faulted%s%s: %s%s%s", e->name, e->kind[0] != 0 ? " on " : "", e->kind,
                   e->why, e->text[0] != 0 ? ": " : "", e->text);
}

void ebb__fault_place(const ebb_program_event *e, char *out, size_t room) {
    out[0] = 0;
    if (e->file[0] != 0) (void)snprintf(out, room, "%s:%" PRIu32 ":%" PRIu32, e->file, e->line, e->column);
}

static json_t *fault_json(const ebb_machines *ms, ebb_machine machine) {
    const ebb_program *p = ebb__program_of(ms);
    ebb_program_event e;
    char text[600], place[300];
    if (p == NULL || !ebb_program_fault_of(p, machine, &e)) return json_null();
    ebb__fault_say(&e, text, sizeof text);
    ebb__fault_place(&e, place, sizeof place);
    json_t *j = json_object();
    bool ok = j != NULL;
    ebb__json_put(&ok, j, "code", json_string(e.code));
    ebb__json_put(&ok, j, "message", ebb__text_json(text));
    ebb__json_put(&ok, j, "where", ebb__text_json(place));
    if (ok) return j;
    json_decref(j);
    return NULL;
}

ebb_status ebb__serve_machine(ebb__ask *a) {
    ebb_machine machine;
    ebb_machine_info info;
    ebb_machines *ms;
    ebb_status st;
    bool cut;
    if (!take_machine(a, &machine, &ms, &st)) return st;
    (void)ebb_machine_info_of(ms, machine, &info);
    const uint32_t i = (uint32_t)(machine.id >> 32) & 0xffffff;
    json_t *j = row_of(ms, i), *fields = fields_json(ms, &info, &cut);
    bool ok = j != NULL;
    ebb__json_put(&ok, j, "queued", json_integer(info.queued));
    ebb__json_put(&ok, j, "deferred", json_integer(info.deferred));
    ebb__json_put(&ok, j, "subscriptions", json_integer(info.subscriptions));
    ebb__json_put(&ok, j, "fields", fields);
    ebb__json_put(&ok, j, "fields_cut", json_boolean(cut));
    ebb__json_put(&ok, j, "queue", queue_json(ms, ebb__machine_at(ms, i)));
    ebb__json_put(&ok, j, "explain", explain_json(ms, machine));
    ebb__json_put(&ok, j, "fault", fault_json(ms, machine));
    if (!ok) json_decref(j);
    return ebb__answer(a, 200, ok ? j : NULL);
}

ebb_status ebb__serve_machine_stop(ebb__ask *a) {
    ebb_machine machine;
    ebb_machines *ms;
    ebb_status st;
    if (!take_machine(a, &machine, &ms, &st)) return st;
    st = ebb_machine_stop(ms, machine);
    return st == EBB_OK ? ebb__answer(a, 202, json_pack("{s:b}", "accepted", 1))
                        : ebb__answer_failure(a, st, NULL);
}
