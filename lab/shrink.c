/* lab/shrink.c - reduces a failing case while it fails in the same way.
 *
 * Delta debugging: a list loses a piece, and if the case still fails the piece stays out; pieces are halves at
 * first and single items at last. This is applied to the lines of the script, to the steps within a line, and to
 * the choices, which are left out or set to 0. Each success may enable another, so all of it is repeated until
 * nothing more can be removed. A shorter script is preferred even if it needs more choices. */
#include "lab/lab.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

typedef struct shrink {
    ebb_lab *lab;
    ebb_lab_case *c;
    uint64_t runs, steps, limit;
    ebb_status status; /* EBB_ERR_NOMEM ends it */
    void (*progress)(void *ctx, uint64_t done, uint64_t of);
    void *ctx;
} shrink;

/* A run of few decisions counts as one; long runs use up the limit sooner. */
static bool may_go_on(const shrink *s) {
    enum { STEPS_A_RUN = 100 };
    return s->status == EBB_OK && s->runs + s->steps / STEPS_A_RUN < s->limit;
}

/* True if a case fails as the original does; it then becomes the current case. */
static bool still_fails(shrink *s, const ebb_lab_case *candidate) {
    ebb_lab_result r;
    if (!may_go_on(s)) return false;
    (void)ebb_lab_run(s->lab, candidate, NULL, &r);
    s->runs++;
    s->steps += r.steps;
    if (s->progress != NULL) s->progress(s->ctx, s->runs, s->limit);
    if (r.status == EBB_ERR_NOMEM) s->status = EBB_ERR_NOMEM;
    if (r.status == EBB_OK || strcmp(r.failure, s->c->failure) != 0) return false;
    s->status = ebb_lab_capture(s->lab, s->c);
    return s->status == EBB_OK;
}

/* ---- the script ---------------------------------------------------------------------------------------- */

/* The offset of item `i` of a text whose items end with `mark`; the end of the text if there is none. */
static size_t item_start(const char *text, size_t n, char mark, size_t i) {
    size_t at = 0;
    for (; i > 0 && at < n; at++) i -= text[at] == mark;
    return at;
}

static size_t count_items(const char *text, size_t n, char mark) {
    size_t items = n > 0 && text[n - 1] != mark;
    for (size_t i = 0; i < n; i++) items += text[i] == mark;
    return items;
}

/* A shorter script may need other choices: tries none, the current ones, and random ones. */
static bool fails_somehow(shrink *s, const ebb_lab_case *candidate) {
    enum { SEEDS = 6 };
    ebb_lab_case other = *candidate;
    other.n_choices = 0;
    if (still_fails(s, &other)) return true;
    if (candidate->n_choices > 0 && still_fails(s, candidate)) return true;
    other.recorded = false;
    for (other.seed = 0; other.seed < SEEDS; other.seed++) {
        if (still_fails(s, &other)) return true;
    }
    return false;
}

/* Tries the case without the bytes from `from` to `to` of its script. */
static bool try_without(shrink *s, size_t from, size_t to) {
    const ebb_lab_case *c = s->c;
    size_t n = c->script_n - (to - from);
    assert(to <= c->script_n);
    if (to <= from || n == 0) return false;
    char *script = ebb__alloc(&s->lab->allocator, n);
    if (script == NULL) {
        s->status = EBB_ERR_NOMEM;
        return false;
    }
    memcpy(script, c->script, from);
    memcpy(script + from, c->script + to, c->script_n - to);
    ebb_lab_case candidate = *c;
    candidate.script = script;
    candidate.script_n = n;
    bool failed = fails_somehow(s, &candidate);
    ebb__free(&s->lab->allocator, script, n);
    return failed;
}

static bool drop_lines(shrink *s) {
    bool any = false;
    for (size_t piece = (count_items(s->c->script, s->c->script_n, '\n') + 1) / 2; piece > 0; piece /= 2) {
        /* From the end: later items depend on earlier ones. */
        for (size_t left = count_items(s->c->script, s->c->script_n, '\n'); left > 0 && may_go_on(s);) {
            size_t at = left > piece ? left - piece : 0;
            const ebb_lab_case *c = s->c;
            any |= try_without(s, item_start(c->script, c->script_n, '\n', at),
                               item_start(c->script, c->script_n, '\n', left));
            left = at;
        }
    }
    return any;
}

/* Removes a step and the mark after it, or, for the last of its list, the mark before it. */
static bool try_without_step(shrink *s, size_t from, size_t to) {
    const char *text = s->c->script;
    if (to < s->c->script_n && text[to] == ';') return try_without(s, from, to + 1);
    if (from > 0 && text[from - 1] == ';') return try_without(s, from - 1, to);
    return try_without(s, from, to);
}

static bool ends_step(char c) {
    return c == ';' || c == '|' || c == '\n' || c == ':';
}

/* Steps are separated by marks after a line's colon. */
static bool drop_steps(shrink *s) {
    bool any = false;
    for (size_t end = s->c->script_n; end > 0 && may_go_on(s);) {
        size_t from = end;
        while (from > 0 && !ends_step(s->c->script[from - 1])) from--;
        bool is_step = from > 0 && s->c->script[from - 1] != '\n';
        if (is_step && from < end) any |= try_without_step(s, from, end);
        end = from > 0 ? from - 1 : 0;
        if (end > s->c->script_n) end = s->c->script_n;
    }
    return any;
}

/* ---- the choices --------------------------------------------------------------------------------------- */

/* Tries the first `n` choices, with those from `from` to `to` set to 0 or left out. */
static bool try_choices(shrink *s, size_t n, size_t from, size_t to, bool leave_out) {
    const ebb_lab_case *c = s->c;
    ebb_lab_case candidate = *c;
    if (to > n) to = n;
    assert(n <= c->n_choices && from <= to);
    candidate.n_choices = leave_out ? n - (to - from) : n;
    if (candidate.n_choices == 0) return still_fails(s, &candidate);
    candidate.choices = ebb__alloc(&s->lab->allocator, n * sizeof *c->choices);
    if (candidate.choices == NULL) {
        s->status = EBB_ERR_NOMEM;
        return false;
    }
    memcpy(candidate.choices, c->choices, n * sizeof *c->choices);
    if (leave_out) memmove(candidate.choices + from, c->choices + to, (n - to) * sizeof *c->choices);
    else memset(candidate.choices + from, 0, (to - from) * sizeof *c->choices);
    bool failed = still_fails(s, &candidate);
    ebb__free(&s->lab->allocator, candidate.choices, n * sizeof *c->choices);
    return failed;
}

static bool any_but_first(const ebb_lab_case *c, size_t from, size_t to) {
    for (; from < to && from < c->n_choices; from++) {
        if (c->choices[from] != 0) return true;
    }
    return false;
}

static bool shorten_choices(shrink *s) {
    bool any = s->c->n_choices > 0 && try_choices(s, 0, 0, 0, false);
    for (size_t piece = (s->c->n_choices + 1) / 2; piece > 0; piece /= 2) {
        for (size_t at = 0; at < s->c->n_choices && may_go_on(s); at += piece) {
            size_t n = s->c->n_choices;
            if (try_choices(s, n, at, at + piece, true) && s->c->n_choices < n) any = true;
        }
    }
    for (size_t piece = (s->c->n_choices + 1) / 2; piece > 0; piece /= 2) {
        for (size_t at = 0; at < s->c->n_choices && may_go_on(s); at += piece) {
            if (any_but_first(s->c, at, at + piece))
                any |= try_choices(s, s->c->n_choices, at, at + piece, false);
        }
    }
    return any;
}

ebb_status ebb_lab_shrink(ebb_lab *lab, ebb_lab_case *c, uint32_t runs,
                          void (*progress)(void *ctx, uint64_t done, uint64_t of), void *ctx) {
    enum { RUNS = 20000 };
    shrink s = {lab, c, 0, 0, runs == 0 ? RUNS : runs, EBB_OK, progress, ctx};
    if (!c->recorded || c->failure[0] == 0 || !still_fails(&s, c)) {
        return s.status == EBB_OK ? EBB_ERR_INVALID : s.status;
    }
    bool any = true;
    while (any && may_go_on(&s)) {
        any = drop_lines(&s);
        any |= drop_steps(&s);
        any |= shorten_choices(&s);
    }
    return s.status;
}
