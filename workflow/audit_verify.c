/* Verifies from a log alone that the protocol was kept. It reads the log line by line, keeps a record of each
 * workflow, and checks every line against that record. Each rule is a function; the first broken rule ends the
 * verification. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "workflow/audit_read.h"

#define THREE_PHASE    "three-phase"
#define NO_NEW_WORK    "no-new-work"
#define DRAIN_BOUNDED  "drain-bounded"
#define FINALIZE_CLEAN "finalize-clean"
#define IDEMPOTENT     "idempotent"
#define AUDIT_COMPLETE "audit-complete"

/* The state of a workflow after the lines read so far. */
typedef struct life {
    ebb__hash title; /* hash of type and name */
    char type[32];   /* for messages, truncated */
    uint64_t parent;
    /* The process that opened it, counted by `started`. */
    uint64_t run;
    uint64_t line;                                        /* number of its last line */
    uint64_t elapsed, budget, in_flight, inside, refused; /* values of that line */
    uint64_t epoch;
    ebb_reason reason;
    ebb_workflow_state state;
    bool requested;
    ebb__wf_event end; /* how it ended; NONE: not yet */
    uint64_t nested;   /* open workflows inside */
    /* Since the request. */
    uint64_t leaks, absorbed;
    bool cancelled;
    bool timed_out; /* there was a CAN-004 */
    bool overdue;   /* not extended since the CAN-004 */
} life;

typedef struct verifier {
    ebb_allocator allocator;
    ebb_audit_verdict *out;
    life *lives; /* the record of workflow i + 1 */
    size_t n, room;
    uint64_t run;
    uint64_t stale; /* open workflows of an earlier process */
    uint8_t hash[EBB__AUDIT_HASH];
} verifier;

/* ---- errors --------------------------------------------------------------------------------------- */

/* Text from a log must not send control sequences to a terminal. So it is reduced to plain ASCII. */
static void tame(char *text) {
    for (; *text != 0; text++) {
        if (*text < 0x20 || *text > 0x7e) *text = '?';
    }
}

__attribute__((format(printf, 4, 5))) static bool broken(verifier *v, const ebb__audit_line *line,
                                                         const char *invariant, const char *format, ...) {
    char *text = v->out->text;
    size_t room = sizeof v->out->text, n = 0;
    v->out->line = v->out->lines;
    snprintf(v->out->invariant, sizeof v->out->invariant, "%s", invariant);
    if (line != NULL && line->number != 0) {
        int k = snprintf(text, room, "workflow %" PRIu64 " (%.48s): ", line->number, line->type);
        n = k < 0 ? 0 : (size_t)k;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, room - n, format, args);
    va_end(args);
    tame(text);
    return false;
}

static const char *event_of(const ebb__audit_line *line) {
    return ebb__wf_events[line->event].name;
}

static const char *state(ebb_workflow_state s) {
    return ebb_workflow_state_name(s);
}

/* A time as the log writes it. */
typedef struct ms_text {
    char text[32];
} ms_text;

static ms_text ms(uint64_t ns) {
    ms_text t;
    snprintf(t.text, sizeof t.text, "%" PRIu64 ".%03u ms", ns / EBB_MS, (unsigned)(ns % EBB_MS / EBB_US));
    return t;
}

/* ---- rules about one line ------------------------------------------------------------------------- */

static bool nothing_lost(verifier *v, const ebb__audit_line *line) {
    if (line->lost == 0) return true;
    return broken(v, line, AUDIT_COMPLETE,
                  "expected no line to be lost; %" PRIu64 " could not be written before this one",
                  line->lost);
}

static bool is_refusal(const char *code) {
    return code != NULL && (strcmp(code, "ERR_CANCEL_INVALID_PHASE") == 0 ||
                            strcmp(code, "ERR_CANCEL_ALREADY_FINAL") == 0 || strcmp(code, "ERR_LIMIT") == 0);
}

static bool has_its_code(verifier *v, const ebb__audit_line *line) {
    const char *code = ebb__wf_events[line->event].code, *found = line->code == NULL ? "" : line->code;
    bool refused = line->event == EBB__WE_REFUSED;
    if (refused ? is_refusal(line->code) : strcmp(code, found) == 0) return true;
    return broken(v, line, AUDIT_COMPLETE, "the code of %s is %s, found %.40s", event_of(line),
                  refused        ? "ERR_CANCEL_INVALID_PHASE, ERR_CANCEL_ALREADY_FINAL or ERR_LIMIT"
                  : code[0] == 0 ? "null"
                                 : code,
                  line->code == NULL ? "null" : line->code);
}

/* The evidence that each kind of line must have. A line may have more. */
enum { NEEDS = 6 };
typedef struct need {
    const char *key;
    bool number;
} need;

static const need needs[EBB__WF_EVENTS][NEEDS] = {
    [EBB__WE_STARTED] = {{"audit", false}, {"contract", false}},
    [EBB__WE_OPENED] = {{"site", false}},
    [EBB__WE_ABSORBED] = {{"kind", false}, {"message", false}},
    [EBB__WE_EVIDENCE] = {{"handler", false}, {"key", false}, {"value", false}},
    [EBB__WE_HANDLER_DONE] = {{"handler", false}, {"status", false}, {"done", true}, {"total", true}},
    [EBB__WE_DRAIN_FORCED] = {{"by", false}},
    [EBB__WE_FINALIZE_FORCED] = {{"by", false}},
    [EBB__WE_EXTENDED] = {{"by_ms", true}},
    [EBB__WE_LEAK] = {{"what", false},
                      {"kind", false},
                      {"id", false},
                      {"owner", false},
                      {"region", false},
                      {"site", false}},
    [EBB__WE_FINALIZED] = {{"left", true},
                           {"drain_timed_out", true},
                           {"cancelled", true},
                           {"absorbed", true},
                           {"status", false}},
    [EBB__WE_LEAK_DETECTED] = {{"left", true},
                               {"drain_timed_out", true},
                               {"cancelled", true},
                               {"absorbed", true},
                               {"status", false},
                               {"error", false}},
    [EBB__WE_REFUSED] = {{"trigger", false}},
    [EBB__WE_INTERRUPTED] = {{"line", true}},
};

static bool has_its_evidence(verifier *v, const ebb__audit_line *line) {
    for (size_t i = 0; i < NEEDS && needs[line->event][i].key != NULL; i++) {
        const need *e = &needs[line->event][i];
        const json_t *fact = json_object_get(line->evidence, e->key);
        if (e->number ? json_is_integer(fact) : json_is_string(fact)) continue;
        return broken(v, line, AUDIT_COMPLETE, "the evidence of %s has a %s \"%s\", found %s", event_of(line),
                      e->number ? "number" : "text", e->key, fact == NULL ? "none" : "another kind of value");
    }
    return true;
}

static const char *text_fact(const ebb__audit_line *line, const char *key) {
    const char *text = json_string_value(json_object_get(line->evidence, key));
    return text == NULL ? "" : text;
}

static bool explains_itself(verifier *v, const ebb__audit_line *line) {
    bool requested = line->to != EBB_WORKFLOW_IDLE;
    if (requested == (json_array_size(line->reason) > 0)) return true;
    return broken(v, line, AUDIT_COMPLETE, "expected %s in %s, found %zu",
                  requested ? "a reason" : "no reason", state(line->to), json_array_size(line->reason));
}

static bool (*const line_rules[])(verifier *v, const ebb__audit_line *line) = {
    nothing_lost,
    has_its_code,
    has_its_evidence,
};

/* ---- processes ------------------------------------------------------------------------------------ */

static bool take_start(verifier *v, const ebb__audit_line *line) {
    const char *version = text_fact(line, "audit");
    if (strcmp(version, EBB__AUDIT_VERSION) != 0)
        return broken(v, line, AUDIT_COMPLETE, "expected a log of version %s, found %.40s",
                      EBB__AUDIT_VERSION, version);
    v->run++;
    v->stale = v->out->unfinished;
    return true;
}

/* The lines about unfinished workflows of the process before must come first. */
static bool follows_a_start(verifier *v, const ebb__audit_line *line) {
    if (v->run == 0)
        return broken(v, line, AUDIT_COMPLETE, "expected started as the first line, found %s",
                      event_of(line));
    if (v->stale == 0 || line->event == EBB__WE_INTERRUPTED) return true;
    return broken(
        v, line, AUDIT_COMPLETE,
        "%" PRIu64
        " of the process before %s unfinished: expected interrupted for each after started, found %s",
        v->stale, v->stale == 1 ? "is" : "are", event_of(line));
}

/* ---- opening -------------------------------------------------------------------------------------- */

static ebb__hash mix_text(ebb__hash h, const char *text) {
    for (; *text != 0; text++) h = ebb__hash_mix(h, (uint64_t)(unsigned char)*text + 1);
    return ebb__hash_mix(h, 0);
}

static ebb__hash title_of(const ebb__audit_line *line) {
    return mix_text(mix_text(ebb__hash_start(0), line->type), line->name);
}

static bool may_open(verifier *v, const ebb__audit_line *line) {
    if (line->number != v->n + 1)
        return broken(v, line, AUDIT_COMPLETE, "each is opened once, one after the other: expected id %zu",
                      v->n + 1);
    if (line->parent == 0) return true;
    if (line->parent > v->n)
        return broken(v, line, AUDIT_COMPLETE, "its parent %" PRIu64 " was never opened", line->parent);
    const life *p = &v->lives[line->parent - 1];
    uint64_t in_unit = 0; /* while a unit is in flight, the work that it begins inside is not new work */
    bool unit = ebb__audit_fact(line, "in_unit", &in_unit) && in_unit == 1 && p->in_flight > 0;
    if (p->end == EBB__WE_NONE && (!p->requested || unit)) return true;
    return broken(v, line, NO_NEW_WORK,
                  "opened in workflow %" PRIu64 " (%s), which takes no new work: expected IDLE, found %s%s",
                  line->parent, p->type, state(p->state), p->end == EBB__WE_NONE ? "" : ", ended");
}

/* Adds a record for a workflow that was just opened. EBB_ERR_NOMEM. */
static ebb_status add_life(verifier *v, const ebb__audit_line *line) {
    if (v->n == v->room) {
        size_t room = v->room == 0 ? 16 : 2 * v->room;
        life *lives = ebb__resize(&v->allocator, v->lives, v->room * sizeof *lives, room * sizeof *lives);
        if (lives == NULL) return EBB_ERR_NOMEM;
        v->lives = lives;
        v->room = room;
    }
    v->lives[v->n] =
        (life){.title = title_of(line), .parent = line->parent, .run = v->run, .state = EBB_WORKFLOW_IDLE};
    snprintf(v->lives[v->n].type, sizeof v->lives[v->n].type, "%s", line->type);
    v->lives[v->n].budget = line->budget;
    v->out->workflows = ++v->n;
    v->out->unfinished++;
    if (line->parent != 0) v->lives[line->parent - 1].nested++;
    return EBB_OK;
}

/* ---- rules about one workflow --------------------------------------------------------------------- */

static bool is_the_same(verifier *v, const life *w, const ebb__audit_line *line) {
    ebb__hash title = title_of(line);
    if (title.hi != w->title.hi || title.lo != w->title.lo)
        return broken(v, line, AUDIT_COMPLETE, "it was opened as a %s with another workflow or name",
                      w->type);
    if (line->parent == w->parent) return true;
    return broken(v, line, AUDIT_COMPLETE, "its parent was %" PRIu64 ", found %" PRIu64, w->parent,
                  line->parent);
}

static bool is_requested_once(verifier *v, const life *w, const ebb__audit_line *line) {
    if (line->event != EBB__WE_REQUESTED || !w->requested) return true;
    return broken(v, line, IDEMPOTENT,
                  "a stop was requested before: expected absorbed, found a second requested");
}

static bool is_alive(verifier *v, const life *w, const ebb__audit_line *line) {
    bool late_refusal = line->event == EBB__WE_REFUSED && w->end != EBB__WE_INTERRUPTED;
    if (w->end == EBB__WE_NONE || late_refusal) return true;
    return broken(v, line, THREE_PHASE, "after %s expected nothing%s, found %s", ebb__wf_events[w->end].name,
                  w->end == EBB__WE_INTERRUPTED ? "" : " but refused", event_of(line));
}

static bool is_its_turn(verifier *v, const life *w, const ebb__audit_line *line) {
    if (!ebb__wf_legal(line->from, line->event, line->to))
        return broken(v, line, THREE_PHASE, "%s does not lead from %s to %s", event_of(line),
                      state(line->from), state(line->to));
    if (line->from == w->state) return true;
    return broken(v, line, THREE_PHASE, "%s needs %s, found %s", event_of(line), state(line->from),
                  state(w->state));
}

static bool is_of_its_process(verifier *v, const life *w, const ebb__audit_line *line) {
    if (line->event != EBB__WE_INTERRUPTED) return true;
    uint64_t last = 0;
    (void)ebb__audit_fact(line, "line", &last);
    if (w->run == v->run)
        return broken(v, line, AUDIT_COMPLETE, "interrupted, but its process has not ended");
    if (last == w->line) return true;
    return broken(v, line, AUDIT_COMPLETE, "interrupted after line %" PRIu64 ", but its last is %" PRIu64,
                  last, w->line);
}

/* ---- requests ------------------------------------------------------------------------------------- */

static bool asks_within_reason(verifier *v, const life *w, const ebb__audit_line *line) {
    (void)w;
    bool request = line->event == EBB__WE_REFUSED &&
                   strcmp(text_fact(line, "trigger"), ebb__trigger_name(EBB__T_REQUEST)) == 0;
    bool requested = line->to != EBB_WORKFLOW_IDLE && !ebb__wf_is_final(line->to);
    if (request && requested)
        return broken(v, line, IDEMPOTENT, "a request in %s is absorbed, found refused", state(line->to));
    return true;
}

/* An absorbed request strengthens the reason, or leaves it as it is. */
static bool keeps_its_reason(verifier *v, const life *w, const ebb__audit_line *line) {
    ebb_reason r;
    (void)ebb__audit_reason(line, 0, &r);
    uint64_t epoch = w->epoch + (line->event == EBB__WE_REQUESTED);
    if (line->event != EBB__WE_REQUESTED && r.severity < w->reason.severity)
        return broken(v, line, IDEMPOTENT, "%s weakens the severity of the reason from %u to %u",
                      event_of(line), w->reason.severity, r.severity);
    bool rises = r.severity > w->reason.severity;
    bool may_rise = line->event == EBB__WE_REQUESTED || line->event == EBB__WE_ABSORBED;
    if (rises && line->event == EBB__WE_ABSORBED) epoch++;
    if ((rises && !may_rise) || (!rises && r.kind != w->reason.kind))
        return broken(
            v, line, IDEMPOTENT,
            "only a stronger request changes the reason: expected %s of severity %u, found %s of %u",
            ebb_cancel_kind_name((ebb_cancel_kind)w->reason.kind), w->reason.severity,
            ebb_cancel_kind_name((ebb_cancel_kind)r.kind), r.severity);
    if (line->epoch == epoch) return true;
    return broken(v, line, IDEMPOTENT, "%s: expected epoch %" PRIu64 ", found %" PRIu64, event_of(line),
                  epoch, line->epoch);
}

/* ---- work ----------------------------------------------------------------------------------------- */

static bool must_be_idle(ebb__wf_event e) {
    return e == EBB__WE_DRAIN_COMPLETED || e == EBB__WE_FINALIZED || e == EBB__WE_LEAK_DETECTED ||
           e == EBB__WE_COMPLETED;
}

static const char *of_ending(const ebb__audit_line *line) {
    return ebb__wf_is_final(line->to) ? FINALIZE_CLEAN : THREE_PHASE;
}

static bool takes_no_new_work(verifier *v, const life *w, const ebb__audit_line *line) {
    if (w->requested && line->in_flight > w->in_flight)
        return broken(v, line, NO_NEW_WORK,
                      "after the request at most %" PRIu64 " may be in flight, found %" PRIu64, w->in_flight,
                      line->in_flight);
    if (line->inside < w->inside || line->refused < w->refused)
        return broken(v, line, NO_NEW_WORK,
                      "\"inside\" and \"refused\" never fall: expected at least %" PRIu64 " and %" PRIu64
                      ", found %" PRIu64 " and %" PRIu64,
                      w->inside, w->refused, line->inside, line->refused);
    if (line->inside > w->inside && (!w->requested || w->in_flight == 0))
        return broken(v, line, NO_NEW_WORK,
                      "%" PRIu64 " begun inside units, but no unit was in flight after a request",
                      line->inside - w->inside);
    if (!must_be_idle(line->event) || line->in_flight == 0) return true;
    return broken(v, line, of_ending(line), "%s needs 0 in flight, found %" PRIu64, event_of(line),
                  line->in_flight);
}

static bool outlives_what_is_in_it(verifier *v, const life *w, const ebb__audit_line *line) {
    if (!must_be_idle(line->event) || w->nested == 0) return true;
    return broken(v, line, of_ending(line), "%s, but %" PRIu64 " workflow%s in it %s not ended",
                  event_of(line), w->nested, w->nested == 1 ? "" : "s", w->nested == 1 ? "has" : "have");
}

/* ---- time ----------------------------------------------------------------------------------------- */

static bool time_goes_on(verifier *v, const life *w, const ebb__audit_line *line) {
    bool starts = line->to == EBB_WORKFLOW_IDLE || line->event == EBB__WE_REQUESTED;
    if (starts && line->elapsed != 0)
        return broken(v, line, DRAIN_BOUNDED,
                      "time is counted from the request on: expected 0 at %s, found %s", event_of(line),
                      ms(line->elapsed).text);
    if (line->elapsed >= w->elapsed) return true;
    return broken(v, line, DRAIN_BOUNDED, "time went back from %s to %s", ms(w->elapsed).text,
                  ms(line->elapsed).text);
}

static bool keeps_its_budget(verifier *v, const life *w, const ebb__audit_line *line) {
    if (line->event == EBB__WE_EXTENDED) {
        if (line->budget >= line->elapsed) return true;
        return broken(v, line, DRAIN_BOUNDED, "extended to %s, which is over already at %s",
                      ms(line->budget).text, ms(line->elapsed).text);
    }
    if (line->budget <= w->budget) return true;
    return broken(v, line, DRAIN_BOUNDED, "only extended gives more: the budget was %s, %s has %s",
                  ms(w->budget).text, event_of(line), ms(line->budget).text);
}

static bool is_over_at_last(verifier *v, const ebb__audit_line *line) {
    bool stays = line->to == EBB_WORKFLOW_DRAINING;
    if (line->elapsed < line->budget)
        return broken(v, line, DRAIN_BOUNDED, "drain_timeout at %s, before the budget of %s was over",
                      ms(line->elapsed).text, ms(line->budget).text);
    if (!stays || strcmp(text_fact(line, "error"), "ERR_CANCEL_DRAIN_TIMEOUT") == 0) return true;
    return broken(v, line, DRAIN_BOUNDED,
                  "a timeout that does not force says ERR_CANCEL_DRAIN_TIMEOUT, found \"%.40s\"",
                  text_fact(line, "error"));
}

static bool drains_in_time(verifier *v, const life *w, const ebb__audit_line *line) {
    if (line->event == EBB__WE_DRAIN_TIMEOUT) return is_over_at_last(v, line);
    bool says_so = line->event == EBB__WE_DRAIN_FORCED || line->event == EBB__WE_INTERRUPTED;
    /* The kernel may report what it abandoned before the supervisor reports the timeout. */
    bool by_force = line->event == EBB__WE_LEAK;
    if (line->from != EBB_WORKFLOW_DRAINING || w->overdue || says_so || by_force ||
        line->elapsed <= line->budget)
        return true;
    if (line->event == EBB__WE_DRAIN_COMPLETED)
        return broken(v, line, DRAIN_BOUNDED,
                      "drain_completed at %s, after the budget of %s, without CAN-004",
                      ms(line->elapsed).text, ms(line->budget).text);
    return broken(v, line, DRAIN_BOUNDED, "still drains at %s, after the budget of %s, without CAN-004",
                  ms(line->elapsed).text, ms(line->budget).text);
}

static bool is_cancelled_once(verifier *v, const life *w, const ebb__audit_line *line) {
    if (line->event != EBB__WE_DRAIN_CANCELLED || !w->cancelled) return true;
    return broken(v, line, THREE_PHASE,
                  "what was in flight was cancelled already, found a second drain_cancelled");
}

/* ---- the end -------------------------------------------------------------------------------------- */

static bool agrees(verifier *v, const ebb__audit_line *line, const char *key, uint64_t expected,
                   const char *invariant) {
    uint64_t found = 0;
    (void)ebb__audit_fact(line, key, &found);
    if (found == expected) return true;
    return broken(v, line, invariant, "%s says \"%s\":%" PRIu64 ", the lines before it say %" PRIu64,
                  event_of(line), key, found, expected);
}

static bool ends_as_it_was(verifier *v, const life *w, const ebb__audit_line *line) {
    bool leak = line->event == EBB__WE_LEAK_DETECTED;
    if (line->event != EBB__WE_FINALIZED && !leak) return true;
    if (!leak && w->leaks > 0)
        return broken(v, line, FINALIZE_CLEAN,
                      "finalized (CAN-005) with %" PRIu64 " leaks: expected leak_detected (CAN-006)",
                      w->leaks);
    if (leak && w->leaks == 0)
        return broken(v, line, FINALIZE_CLEAN, "leak_detected (CAN-006), but no line names a leak");
    return agrees(v, line, "left", w->leaks, FINALIZE_CLEAN) &&
           agrees(v, line, "drain_timed_out", w->timed_out, DRAIN_BOUNDED) &&
           agrees(v, line, "cancelled", w->cancelled, AUDIT_COMPLETE) &&
           agrees(v, line, "absorbed", w->absorbed, IDEMPOTENT);
}

static bool (*const rules[])(verifier *v, const life *w, const ebb__audit_line *line) = {
    is_the_same,       is_requested_once, is_alive,
    is_its_turn,       is_of_its_process, asks_within_reason,
    keeps_its_reason,  takes_no_new_work, outlives_what_is_in_it,
    time_goes_on,      keeps_its_budget,  drains_in_time,
    is_cancelled_once, ends_as_it_was,
};

/* ---- what a line changes -------------------------------------------------------------------------- */

static void count(life *w, const ebb__audit_line *line) {
    switch (line->event) {
    case EBB__WE_ABSORBED: w->absorbed++; break;
    case EBB__WE_LEAK: w->leaks += w->requested; break;
    case EBB__WE_DRAIN_CANCELLED: w->cancelled = true; break;
    case EBB__WE_EXTENDED: w->overdue = false; break;
    case EBB__WE_DRAIN_TIMEOUT:
    case EBB__WE_DRAIN_FORCED: w->timed_out = w->overdue = true; break;
    default: break;
    }
}

static void end(verifier *v, life *w, const ebb__audit_line *line) {
    w->end = line->event;
    v->out->unfinished--;
    if (w->parent != 0) v->lives[w->parent - 1].nested--;
    if (w->run != v->run) v->stale--;
}

static void learn(verifier *v, life *w, const ebb__audit_line *line) {
    count(w, line);
    if (line->event == EBB__WE_REQUESTED) {
        w->requested = true;
        v->out->stopped++;
    }
    if (ebb__audit_is_end(line->event)) end(v, w, line);
    w->state = line->to;
    w->line = line->seq;
    w->elapsed = line->elapsed;
    w->budget = line->budget;
    w->in_flight = line->in_flight;
    w->inside = line->inside;
    w->refused = line->refused;
    w->epoch = line->epoch;
    (void)ebb__audit_reason(line, 0, &w->reason);
}

/* ---- lines ---------------------------------------------------------------------------------------- */

static ebb_status take_workflow(verifier *v, const ebb__audit_line *line) {
    if (!follows_a_start(v, line) || !explains_itself(v, line)) return EBB_ERR_ORACLE;
    if (line->event == EBB__WE_OPENED) {
        if (!may_open(v, line)) return EBB_ERR_ORACLE;
        ebb_status st = add_life(v, line);
        if (st != EBB_OK) return st;
    } else if (line->number > v->n) {
        (void)broken(v, line, AUDIT_COMPLETE, "%s, but it was never opened", event_of(line));
        return EBB_ERR_ORACLE;
    }
    life *w = &v->lives[line->number - 1];
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (!rules[i](v, w, line)) return EBB_ERR_ORACLE;
    }
    learn(v, w, line);
    return EBB_OK;
}

static ebb_status take(verifier *v, const ebb__audit_line *line) {
    for (size_t i = 0; i < sizeof line_rules / sizeof *line_rules; i++) {
        if (!line_rules[i](v, line)) return EBB_ERR_ORACLE;
    }
    if (line->event != EBB__WE_STARTED) return take_workflow(v, line);
    return take_start(v, line) ? EBB_OK : EBB_ERR_ORACLE;
}

static ebb_status take_bytes(verifier *v, const char *bytes, size_t n) {
    char why[EBB__AUDIT_WHY] = "";
    ebb__audit_line line;
    ebb_status st = ebb__audit_line_read(bytes, n, &line, why);
    uint64_t seq = v->out->lines++;
    if (st == EBB_OK && !ebb__audit_line_follows(&line, seq, v->hash, why)) {
        ebb__audit_line_free(&line);
        st = EBB_ERR_CORRUPT;
    }
    if (st == EBB_ERR_CORRUPT) (void)broken(v, NULL, AUDIT_COMPLETE, "%s", why);
    if (st != EBB_OK) return st == EBB_ERR_CORRUPT ? EBB_ERR_ORACLE : st;
    memcpy(v->hash, line.hash, sizeof v->hash);
    st = take(v, &line);
    ebb__audit_line_free(&line);
    return st;
}

/* The rest of an incomplete write is accepted; any other bytes are not. */
static ebb_status take_tail(verifier *v, const char *bytes, size_t n) {
    if (ebb__audit_is_torn(bytes, n, v->out->lines)) return EBB_OK;
    v->out->lines++;
    (void)broken(v, NULL, AUDIT_COMPLETE, "the last %zu bytes are no line, nor the start of one", n);
    return EBB_ERR_ORACLE;
}

ebb_status ebb_audit_verify(ebb_allocator a, const char *bytes, size_t n, ebb_audit_verdict *out) {
    verifier v = {.allocator = a, .out = out};
    ebb_status st = EBB_OK;
    *out = (ebb_audit_verdict){.lines = 0};
    while (st == EBB_OK && n > 0) {
        const char *stop = memchr(bytes, '\n', n);
        out->cut = stop == NULL;
        if (out->cut) {
            st = take_tail(&v, bytes, n);
            break;
        }
        st = take_bytes(&v, bytes, (size_t)(stop - bytes));
        n -= (size_t)(stop - bytes) + 1;
        bytes = stop + 1;
    }
    ebb__free(&a, v.lives, v.room * sizeof *v.lives);
    return st;
}
