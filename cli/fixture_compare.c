/* cli/fixture_compare.c - compares the expectation with the run, and finds the first difference. */
#include "cli/fixture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- comparing -------------------------------------------------------------------------------- */

/* An expected event may leave out trailing parts: "cancel_acked" or "cancel_acked(worker)" stand for
 * "cancel_acked(worker) USER polite epoch 1". */
static bool event_matches(const char *expected, const char *actual) {
    size_t n = strlen(expected);
    return strncmp(expected, actual, n) == 0 && (actual[n] == 0 || actual[n] == ' ' || actual[n] == '(');
}

static const char *text_at(const json_t *array, size_t i) {
    const char *s = json_string_value(json_array_get(array, i));
    return s == NULL ? "nothing" : s;
}

/* The first event that differs, from 0; the number of events if none does. */
static size_t first_event(const json_t *expected, const json_t *actual, bool *differs) {
    size_t n = json_array_size(expected), m = json_array_size(actual), i = 0;
    while (i < n && i < m && event_matches(text_at(expected, i), text_at(actual, i))) i++;
    *differs = i < n || i < m;
    return i;
}

/* The first line after which the fingerprints differ, from 1; 0: none. */
static size_t first_line(const json_t *expected, const json_t *actual) {
    size_t n = json_array_size(actual);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(text_at(expected, i), text_at(actual, i)) != 0) return i + 1;
    }
    return 0;
}

static size_t line_of_event(const ebb__fixture_run *run, size_t i) {
    return (size_t)json_integer_value(json_array_get(run->lines, i));
}

/* ---- printing --------------------------------------------------------------------------------- */

/* Shared by all parts of a comparison. Without `out` they only compare. */
typedef struct report {
    const ebb__fixture *f;
    const ebb__fixture_run *run;
    const ebb__fixture_how *how;
    FILE *out;
    bool own_seed;
} report;

static void print_value(FILE *out, const json_t *v) {
    char *text = v == NULL ? NULL : json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
    fputs(text == NULL ? "nothing" : text, out);
    free(text);
}

static bool report_member(const report *t, const char *part, const char *key, const json_t *expected,
                          const json_t *actual) {
    if (expected != NULL && actual != NULL && json_equal(expected, actual)) return true;
    if (t->out == NULL) return false;
    fprintf(t->out, "  %s.%s: expected ", part, key);
    print_value(t->out, expected);
    fputs(", found ", t->out);
    print_value(t->out, actual);
    fputc('\n', t->out);
    return false;
}

/* Compares each member of two objects. A member that is missing on either side differs. */
static bool same_members(const report *t, const char *part) {
    json_t *expected = json_object_get(t->f->expect, part), *actual = json_object_get(t->run->actual, part);
    const char *key;
    json_t *v;
    bool same = true;
    json_object_foreach(expected, key, v) {
        same &= report_member(t, part, key, v, json_object_get(actual, key));
    }
    json_object_foreach(actual, key, v) {
        if (json_object_get(expected, key) == NULL) same &= report_member(t, part, key, NULL, v);
    }
    return same;
}

/* Compares what does not depend on the scheduler's order. */
static bool same_ends(const report *t) {
    static const char *const parts[] = {"phases", "outcomes", "closure", "results", "chains"};
    bool same = true;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) same &= same_members(t, parts[i]);
    return same;
}

static bool same_hash(const report *t, const char *name) {
    json_t *expected = json_object_get(t->f->expect, name);
    json_t *actual = json_object_get(t->run->actual, name);
    bool same = json_equal(expected, actual) != 0;
    if (!same && t->out != NULL) {
        fprintf(t->out, "  %s: expected %s, found %s\n", name, json_string_value(expected),
                json_string_value(actual));
    }
    return same;
}

static bool same_order(const report *t) {
    bool differs;
    (void)first_event(json_object_get(t->f->expect, "events"), json_object_get(t->run->actual, "events"),
                      &differs);
    bool same = same_hash(t, "fingerprint");
    same &= same_hash(t, "parity");
    size_t line =
        first_line(json_object_get(t->f->expect, "steps"), json_object_get(t->run->actual, "steps"));
    return !differs && same && line == 0;
}

static void print_line(const report *t, size_t line) {
    fprintf(t->out, "line %zu `%s`", line, text_at(t->f->script, line - 1));
}

/* The first diverging line, from 1: the line of the first fingerprint or event that differs. */
static size_t diverging_line(const report *t, size_t event, bool differs) {
    size_t line =
        first_line(json_object_get(t->f->expect, "steps"), json_object_get(t->run->actual, "steps"));
    size_t at = 0;
    if (differs && event < json_array_size(t->run->lines)) at = line_of_event(t->run, event);
    else if (differs && line == 0) at = json_array_size(t->f->script); /* the expected event is missing */
    return line == 0 || (at != 0 && at < line) ? at : line;
}

/* ---- where a task diverges ------------------------------------------------------------------------- */

/* A task's phase, or its outcome after all phases, that is not the expected one. */
typedef struct divergence {
    size_t line;  /* 0: none */
    bool missing; /* the task never reached the phase: `line` is that of its last phase */
    const char *task, *event, *expected, *found;
} divergence;

/* Sets the line and the event of phase `i`, or of the last phase. */
static void set_position(const report *t, divergence *p, size_t i) {
    const json_t *positions = json_object_get(t->run->positions, p->task);
    size_t n = json_array_size(positions);
    const json_t *position = n == 0 ? NULL : json_array_get(positions, i < n ? i : n - 1);
    p->line = position == NULL ? json_array_size(t->f->script)
                               : (size_t)json_integer_value(json_array_get(position, 0));
    p->event = position == NULL ? "no event of it" : json_string_value(json_array_get(position, 1));
}

static divergence phase_divergence(const report *t, const char *task, const json_t *expected) {
    const json_t *actual = json_object_get(json_object_get(t->run->actual, "phases"), task);
    size_t n = json_array_size(expected), m = json_array_size(actual), i = 0;
    divergence p = {.task = task};
    while (i < n && i < m && strcmp(text_at(expected, i), text_at(actual, i)) == 0) i++;
    if (i == n && i == m) return p;
    p.expected = text_at(expected, i);
    p.found = text_at(actual, i);
    p.missing = i == m;
    set_position(t, &p, i);
    return p;
}

static divergence outcome_divergence(const report *t, const char *task) {
    const char *expected =
        json_string_value(json_object_get(json_object_get(t->f->expect, "outcomes"), task));
    const char *found = json_string_value(json_object_get(json_object_get(t->run->actual, "outcomes"), task));
    divergence p = {.task = task};
    p.expected = expected == NULL ? "no outcome" : expected;
    p.found = found == NULL ? "no outcome" : found;
    p.missing = found == NULL;
    if (strcmp(p.expected, p.found) != 0) set_position(t, &p, SIZE_MAX);
    return p;
}

/* The divergence that comes first in the script. A task that exists on one side only is one too. */
static divergence first_divergence(const report *t) {
    const json_t *sides[] = {t->f->expect, t->run->actual};
    divergence first = {.line = 0};
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        const char *task;
        json_t *phases;
        json_object_foreach(json_object_get(sides[i], "phases"), task, phases) {
            const json_t *expected = json_object_get(json_object_get(t->f->expect, "phases"), task);
            divergence p = phase_divergence(t, task, expected);
            if (p.line == 0) p = outcome_divergence(t, task);
            if (p.line != 0 && (first.line == 0 || p.line < first.line)) first = p;
        }
    }
    return first;
}

static void print_task_divergence(const report *t, const divergence *p) {
    print_line(t, p->line);
    fprintf(t->out, ", %s: task %s: expected %s, found %s\n", p->event, p->task, p->expected, p->found);
}

/* ---- the report --------------------------------------------------------------------------------- */

/* The first diverging step: a line of the script, and the event if it is listed. */
static void print_divergence(const report *t) {
    const json_t *expected = json_object_get(t->f->expect, "events");
    const json_t *actual = json_object_get(t->run->actual, "events");
    bool differs;
    size_t event = first_event(expected, actual, &differs);
    size_t line = diverging_line(t, event, differs);
    divergence p = first_divergence(t);
    bool is_first = !t->own_seed || line == 0 || (!p.missing && p.line < line);
    if (t->run->problem[0] != 0 && t->run->problem_line <= p.line) is_first = false;
    fputs("first diverging step: ", t->out);
    if (p.line != 0 && is_first) {
        print_task_divergence(t, &p);
    } else if (t->run->problem[0] != 0 && (!t->own_seed || line == 0 || t->run->problem_line <= line)) {
        print_line(t, t->run->problem_line);
        fprintf(t->out, ": %s\n", t->run->problem);
    } else if (!t->own_seed) {
        fprintf(t->out, "unknown: seed %" PRIu64 " gives another order\n", t->how->seed);
    } else if (line == 0) {
        fputs("none: only the items below differ\n", t->out);
    } else if (differs) {
        print_line(t, line);
        fprintf(t->out, ", event %zu: expected %s, found %s\n", event + 1, text_at(expected, event),
                text_at(actual, event));
    } else {
        print_line(t, line);
        fputs(": an event that is not listed; write the trace with --trace-dir and compare\n", t->out);
    }
}

#define NO_MARK SIZE_MAX

static void print_events(const report *t, const char *title, const json_t *events, bool with_lines,
                         size_t mark) {
    size_t i;
    json_t *item;
    fprintf(t->out, "%s trace:\n", title);
    json_array_foreach(events, i, item) {
        fprintf(t->out, "  %c %3zu  ", i == mark ? '>' : ' ', i + 1);
        if (with_lines) fprintf(t->out, "line %-3zu ", line_of_event(t->run, i));
        fprintf(t->out, "%s\n", json_string_value(item));
    }
    if (mark != NO_MARK && mark >= json_array_size(events)) fputs("  > end\n", t->out);
}

static void print_ids(const report *t) {
    size_t i;
    json_t *item;
    fputs("ids: ", t->out);
    json_array_foreach(t->run->ids, i, item) {
        fprintf(t->out, "%s%s", i == 0 ? "" : ", ", json_string_value(item));
    }
    fputc('\n', t->out);
}

static void print_failure(const report *t) {
    const json_t *expected = json_object_get(t->f->expect, "events");
    const json_t *actual = json_object_get(t->run->actual, "events");
    bool differs;
    size_t mark = first_event(expected, actual, &differs);
    if (!differs || !t->own_seed) mark = NO_MARK;
    fprintf(t->out, "FAILED %s\nid: %s, seed %" PRIu64 " (%s)\n", t->f->id, t->f->id, t->how->seed,
            t->f->path);
    print_ids(t);
    print_divergence(t);
    print_events(t, "expected", expected, false, mark);
    print_events(t, "actual", actual, true, mark);
    fputs("differs:\n", t->out);
    if (t->run->problem[0] != 0) fprintf(t->out, "  line %zu: %s\n", t->run->problem_line, t->run->problem);
    (void)same_ends(t);
    if (t->own_seed) (void)same_order(t);
    fprintf(t->out, "repro: ebb fixture run %s --seed %" PRIu64, t->f->id, t->how->seed);
    if (t->how->dir != NULL) {
        fputs(" --dir ", t->out);
        ebb__cli_quote(t->out, t->how->dir);
    }
    fputc('\n', t->out);
}

bool ebb__fixture_compare(const ebb__fixture *f, const ebb__fixture_how *how, const ebb__fixture_run *run,
                          FILE *out) {
    report t = {.f = f, .run = run, .how = how, .out = NULL, .own_seed = how->seed == f->seed};
    if (run->problem[0] == 0 && same_ends(&t) && (!t.own_seed || same_order(&t))) return true;
    t.out = out;
    print_failure(&t);
    return false;
}
