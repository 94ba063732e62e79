/* cli/fixture_run.c - runs a fixture's script in a new runtime and records the result in the form of the file's
 * expectation. */
#include "cli/fixture.h"

#include "kernel/layer.h"
#include "kernel/names.h"
#include "lab/lab.h"
#include "lab/script.h"
#include "sched/pump.h"
#include "trace/event.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TRACE_BYTES = 1 << 20, EVENT_TEXT = 256, NAME_TEXT = 128 };

typedef struct runner {
    const ebb__fixture *fixture;
    ebb__fixture_run *run;
    ebb_runtime *rt;
    ebb__script *script;
    ebb_checker *check;
    ebb_fingerprint *fingerprint, *parity;
    ebb_trace_reader reader;
    bool reading;
    uint64_t random;
    ebb_witness *witnesses; /* the last witness of each thing that is a task */
    size_t n_witnesses;
    size_t line; /* from 1 */
} runner;

/* Only the first problem is kept. */
static void problem(runner *r, const char *text) {
    if (r->run->problem[0] != 0) return;
    snprintf(r->run->problem, sizeof r->run->problem, "%s", text);
    r->run->problem_line = r->line;
}

static json_t *member(const runner *r, const char *name) {
    return json_object_get(r->run->actual, name);
}

static uint32_t choose(void *ctx, uint32_t n) {
    runner *r = ctx;
    return (uint32_t)(ebb__random(&r->random) % n);
}

/* ---- events ----------------------------------------------------------------------------------- */

static bool is_watched(const ebb__fixture *f, uint32_t type) {
    size_t i;
    json_t *item;
    if (ebb_event_is_cancel(type)) return true;
    json_array_foreach(f->watch, i, item) {
        if (strcmp(json_string_value(item), ebb_event_name(type)) == 0) return true;
    }
    return false;
}

static void note_event(runner *r, const ebb_event *ev) {
    char text[EVENT_TEXT];
    if (!is_watched(r->fixture, ev->type)) return;
    ebb__fixture_event(r->script, ev, text, sizeof text);
    json_array_append_new(member(r, "events"), json_string(text));
    json_array_append_new(r->run->lines, json_integer((json_int_t)r->line));
}

/* Records where a task reached a phase: the line, and the event. */
static void note_position(runner *r, const char *task, const ebb_event *ev) {
    char text[EVENT_TEXT];
    ebb__fixture_event(r->script, ev, text, sizeof text);
    json_t *positions = json_object_get(r->run->positions, task);
    if (positions == NULL) {
        positions = json_array();
        json_object_set_new(r->run->positions, task, positions);
    }
    json_array_append_new(positions, json_pack("[I, s]", (json_int_t)r->line, text));
}

static void note_phase(runner *r, const ebb_event *ev) {
    char name[NAME_TEXT];
    if (ev->task_id == 0 || ev->phase == 0 || ebb__event_is_region(ev->type)) return;
    ebb__fixture_task_name(r->script, ev, name, sizeof name);
    json_t *phases = json_object_get(member(r, "phases"), name);
    if (phases == NULL) {
        phases = json_array();
        json_object_set_new(member(r, "phases"), name, phases);
    }
    const char *phase = ebb__phase_name(ev->phase);
    size_t n = json_array_size(phases);
    const char *last = n == 0 ? "" : json_string_value(json_array_get(phases, n - 1));
    if (strcmp(last, phase) != 0) {
        json_array_append_new(phases, json_string(phase));
        note_position(r, name, ev);
    }
    bool ends = ev->type == EBB_EV_COMPLETED || ev->type == EBB_EV_DISCARDED || ev->type == EBB_EV_FINALIZED;
    if (!ends) return;
    const char *status = ebb_status_name((ebb_status)(int32_t)ev->value);
    json_object_set_new(member(r, "outcomes"), name, json_string(status));
}

/* An abort that follows a leak does not replace it. */
static void note_obligation(runner *r, const ebb_event *ev) {
    const char *end = ev->type == EBB_EV_OBLIGATION_COMMITTED  ? "committed"
                      : ev->type == EBB_EV_OBLIGATION_ABORTED  ? "aborted"
                      : ev->type == EBB_EV_OBLIGATION_LEAKED   ? "leaked"
                      : ev->type == EBB_EV_OBLIGATION_RESERVED ? "reserved"
                                                               : NULL;
    const char *name = end == NULL ? NULL : ebb__script_name(r->script, EBB__OBLIGATION, ev->other);
    if (name == NULL) return;
    const char *before = json_string_value(json_object_get(member(r, "closure"), name));
    if (before != NULL && strcmp(before, "leaked") == 0) return;
    json_object_set_new(member(r, "closure"), name, json_string(end));
}

static void check_event(runner *r, const ebb_event *ev) {
    char text[256];
    if (ebb_checker_event(r->check, ev) == EBB_OK || r->run->problem[0] != 0) return;
    const ebb_violation *v = ebb_checker_violation(r->check);
    if (v == NULL) {
        problem(r, "the oracles ran out of memory");
        return;
    }
    snprintf(text, sizeof text, "oracle %s at event %" PRIu64 " (%s): %s", ebb_oracle_name(v->oracle),
             ev->decision_seq, ebb_event_name(ev->type), v->text);
    problem(r, text);
}

static void keep_bytes(void *ctx, const void *bytes, size_t n) {
    ebb__fixture_run *run = ctx;
    if (n > run->trace_room - run->trace_n) return; /* the result is a truncated trace */
    memcpy(run->trace + run->trace_n, bytes, n);
    run->trace_n += n;
}

/* Reads the events that the line has added to the trace. */
static void read_trace(runner *r) {
    ebb_event ev;
    ebb_status st = EBB_OK;
    ebb_trace_take(r->rt, true, keep_bytes, r->run);
    if (!r->reading) st = ebb_trace_reader_open(&r->reader, r->run->trace, r->run->trace_n);
    r->reading = true;
    r->reader.n = r->run->trace_n;
    while (st == EBB_OK && (st = ebb_trace_reader_next(&r->reader, &ev)) == EBB_OK) {
        ebb_fingerprint_event(r->fingerprint, &ev);
        ebb_fingerprint_event(r->parity, &ev);
        check_event(r, &ev);
        if (ev.type == EBB_EV_TEXT) continue;
        note_event(r, &ev);
        note_phase(r, &ev);
        note_obligation(r, &ev);
    }
    if (st != EBB_PENDING) problem(r, "its trace is too long or not readable");
}

static void hash_text(ebb_fingerprint *f, char out[33]) {
    ebb_hash h;
    if (ebb_fingerprint_end(f, &h) != EBB_OK) h = (ebb_hash){0, 0};
    snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, h.hi, h.lo);
}

/* ---- after each line -------------------------------------------------------------------------- */

/* A task's witness may only follow its earlier one. */
static void check_witnesses(runner *r) {
    size_t i = 0;
    for (const ebb__thing *t = ebb__script_things(r->script); t != NULL; t = t->next, i++) {
        ebb_witness now;
        if (i == r->n_witnesses) {
            ebb_witness *more = realloc(r->witnesses, (i + 1) * sizeof *more);
            if (more == NULL) return;
            r->witnesses = more;
            memset(&more[r->n_witnesses++], 0, sizeof *more);
        }
        if (t->kind != EBB__TASK ||
            ebb_task_witness(ebb_runtime_host(r->rt), (ebb_task){t->id}, &now) != EBB_OK)
            continue;
        ebb_witness *before = &r->witnesses[i];
        ebb_status st = before->phase == 0 ? EBB_OK : ebb_witness_check(before, &now);
        if (st != EBB_OK) {
            char text[256];
            snprintf(text, sizeof text, "witness of task %s: %s", t->name, ebb_status_text(st));
            problem(r, text);
        }
        *before = now;
    }
}

static void note_result(runner *r) {
    char line[24];
    ebb_status st = ebb__script_result(r->script);
    if (st == EBB_OK) return;
    snprintf(line, sizeof line, "%zu", r->line);
    json_object_set_new(member(r, "results"), line, json_string(ebb_status_name(st)));
}

static void note_chain(runner *r) {
    uint32_t n;
    const ebb_region_cause *c = ebb__script_chain(r->script, &n);
    if (n == 0) return;
    json_t *chains = member(r, "chains");
    char line[24], text[EVENT_TEXT];
    if (chains == NULL) {
        chains = json_object();
        json_object_set_new(r->run->actual, "chains", chains);
    }
    json_t *links = json_array();
    for (uint32_t i = 0; i < n; i++) {
        const char *name = ebb__script_name(r->script, EBB__REGION, c[i].region.id);
        const char *quote = c[i].reason.message[0] == 0 ? "" : "\"";
        snprintf(text, sizeof text, "%s %s %s%s%s%s%s", name == NULL ? "?" : name,
                 ebb_cancel_kind_name((ebb_cancel_kind)c[i].reason.kind),
                 ebb__severity_name(c[i].reason.severity), quote[0] == 0 ? "" : " ", quote,
                 c[i].reason.message, quote);
        json_array_append_new(links, json_string(text));
    }
    snprintf(line, sizeof line, "%zu", r->line);
    json_object_set_new(chains, line, links);
}

static bool run_line(runner *r, const char *line) {
    char message[EBB__SCRIPT_MESSAGE], hash[33];
    ebb_status st = ebb__script_line(r->script, line, strlen(line), message);
    if (st != EBB_OK) {
        ebb__cli_error("%s: script line %zu: %s", r->fixture->path, r->line,
                       st == EBB_ERR_SYNTAX ? message : ebb_status_text(st));
        return false;
    }
    note_result(r);
    note_chain(r);
    check_witnesses(r);
    read_trace(r);
    hash_text(r->fingerprint, hash);
    hash[8] = 0;
    json_array_append_new(member(r, "steps"), json_string(hash));
    return true;
}

/* ---- at the end ------------------------------------------------------------------------------- */

/* An aborted obligation has run its hook once, a committed one never. */
static void check_hooks(runner *r) {
    for (const ebb__thing *t = ebb__script_things(r->script); t != NULL; t = t->next) {
        if (t->kind != EBB__OBLIGATION) continue;
        const char *end = json_string_value(json_object_get(member(r, "closure"), t->name));
        uint32_t due = end != NULL && (strcmp(end, "aborted") == 0 || strcmp(end, "leaked") == 0) ? 1 : 0;
        if (t->aborts == due) continue;
        char text[256];
        snprintf(text, sizeof text, "obligation %s is %s; its abort hook ran %" PRIu32 " times", t->name,
                 end == NULL ? "lost" : end, t->aborts);
        problem(r, text);
    }
}

static void note_ids(runner *r) {
    static const char *const kinds[] = {"", "task", "region", "obligation"};
    char text[NAME_TEXT];
    for (const ebb__thing *t = ebb__script_things(r->script); t != NULL; t = t->next) {
        snprintf(text, sizeof text, "%s %s %" PRIu64 ".%" PRIu64 ".%" PRIu64, kinds[t->kind], t->name,
                 t->id >> 56, t->id >> 32 & 0xffffff, t->id & 0xffffffff);
        json_array_append_new(r->run->ids, json_string(text));
    }
}

static void finish(runner *r) {
    char hash[33], text[256];
    if (ebb_checker_end(r->check, true) != EBB_OK && r->run->problem[0] == 0) {
        const ebb_violation *v = ebb_checker_violation(r->check);
        snprintf(text, sizeof text, "oracle %s at the end of the run: %s",
                 v == NULL ? "?" : ebb_oracle_name(v->oracle), v == NULL ? "no memory" : v->text);
        problem(r, text);
    }
    check_hooks(r);
    hash_text(r->fingerprint, hash);
    json_object_set_new(r->run->actual, "fingerprint", json_string(hash));
    hash_text(r->parity, hash);
    json_object_set_new(r->run->actual, "parity", json_string(hash));
    note_ids(r);
}

static bool start(runner *r) {
    ebb_runtime_opts opts = {.allocator = ebb__cli_allocator()};
    if (ebb_runtime_new(&opts, &r->rt) != EBB_OK || ebb_trace_start(r->rt, TRACE_BYTES) != EBB_OK)
        return false;
    r->script = ebb__script_new(r->rt, opts.allocator);
    r->check = ebb_checker_new(opts.allocator);
    r->fingerprint = ebb_fingerprint_new(opts.allocator);
    r->parity = ebb_fingerprint_new_parity(opts.allocator);
    r->run->trace = malloc(TRACE_BYTES);
    r->run->trace_room = TRACE_BYTES;
    r->run->lines = json_array();
    r->run->ids = json_array();
    r->run->positions = json_object();
    r->run->actual = json_pack("{s:{}, s:[], s:{}, s:{}, s:{}, s:[]}", "phases", "events", "outcomes",
                               "closure", "results", "steps");
    if (r->random != 0) ebb__set_chooser(r->rt, choose, r); /* seed 0: first come, first served */
    return r->script != NULL && r->check != NULL && r->fingerprint != NULL && r->parity != NULL &&
           r->run->trace != NULL && r->run->lines != NULL && r->run->ids != NULL &&
           r->run->positions != NULL && r->run->actual != NULL;
}

static void stop(runner *r) {
    free(r->witnesses);
    ebb_fingerprint_free(r->fingerprint);
    ebb_fingerprint_free(r->parity);
    ebb_checker_free(r->check);
    ebb__script_free(r->script);
    ebb_runtime_free(r->rt);
}

bool ebb__fixture_run_it(const ebb__fixture *f, const ebb__fixture_how *how, ebb__fixture_run *out) {
    *out = (ebb__fixture_run){.actual = NULL};
    runner r = {.fixture = f, .run = out, .random = how->seed};
    bool ok = start(&r);
    if (!ok) ebb__cli_error("%s: out of memory", f->path);
    for (size_t i = 0; ok && i < json_array_size(f->script); i++) {
        r.line = i + 1;
        ok = run_line(&r, json_string_value(json_array_get(f->script, i)));
    }
    if (ok) finish(&r);
    stop(&r);
    return ok;
}

void ebb__fixture_run_free(ebb__fixture_run *run) {
    json_decref(run->actual);
    json_decref(run->lines);
    json_decref(run->ids);
    json_decref(run->positions);
    free(run->trace);
}
