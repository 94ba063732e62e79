/* lab/explore.c - many runs of one scenario: random ones, or all combinations of the first decisions. */
#include "lab/lab.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "base/text.h"

enum { SCHEDULES = 1000 };

/* ---- cases --------------------------------------------------------------------------------------------- */

void ebb_lab_case_free(ebb_lab *lab, ebb_lab_case *c) {
    ebb__free(&lab->allocator, c->choices, c->n_choices * sizeof *c->choices);
    ebb__free(&lab->allocator, c->script, c->script_n);
    c->choices = NULL;
    c->script = NULL;
    c->n_choices = c->script_n = 0;
}

/* Copies `n` bytes into a block of at least one byte, so that NULL always means no memory. */
static void *copy_of(ebb_lab *lab, const void *bytes, size_t n) {
    void *p = ebb__alloc(&lab->allocator, n == 0 ? 1 : n);
    if (p != NULL && n > 0) memcpy(p, bytes, n);
    return p;
}

/* Trailing choices of 0 are the default and can be left out. */
static size_t choices_that_matter(const ebb__chooser *ch) {
    size_t n = ch->n;
    while (n > 0 && ch->taken[n - 1] == 0) n--;
    return n;
}

ebb_status ebb_lab_capture(ebb_lab *lab, ebb_lab_case *c) {
    size_t n = choices_that_matter(&lab->chooser), script_n = lab->script_n;
    uint16_t *choices = n == 0 ? NULL : copy_of(lab, lab->chooser.taken, n * sizeof *choices);
    char *script = script_n == 0 ? NULL : copy_of(lab, lab->script, script_n);
    if ((choices == NULL && n > 0) || (script == NULL && script_n > 0)) {
        ebb__free(&lab->allocator, choices, n * sizeof *choices);
        ebb__free(&lab->allocator, script, script_n);
        return EBB_ERR_NOMEM;
    }
    ebb_lab_case_free(lab, c);
    c->recorded = true;
    c->choices = choices;
    c->n_choices = n;
    c->script = script;
    c->script_n = script_n;
    memcpy(c->failure, lab->result.failure, sizeof c->failure);
    return EBB_OK;
}

/* ---- exploring ----------------------------------------------------------------------------------------- */

/* Runs `try` once and captures a failure in `c`. False: the exploration has ended. */
static bool run_one(ebb_lab *lab, const ebb_lab_case *try, ebb_lab_case *c, const ebb_lab_explore_opts *o,
                    uint64_t of, ebb_lab_explore_result *out) {
    (void)ebb_lab_run(lab, try, NULL, &out->failure);
    out->schedules++;
    if (o->progress != NULL) o->progress(o->ctx, out->schedules, of);
    if (out->failure.status == EBB_OK) return out->schedules < of;
    c->seed = try->seed;
    if (out->failure.status != EBB_ERR_NOMEM && ebb_lab_capture(lab, c) != EBB_OK) {
        out->failure.status = EBB_ERR_NOMEM;
    }
    return false;
}

static void explore_seeds(ebb_lab *lab, ebb_lab_case *c, const ebb_lab_explore_opts *o, uint64_t of,
                          ebb_lab_explore_result *out) {
    ebb_lab_case try = *c;
    try.recorded = false;
    while (run_one(lab, &try, c, o, of, out)) try.seed++;
}

/* Computes the next prefix of at most `depth` decisions of a depth-first search, from the decisions that the
 * chooser has just taken. False: there is none. */
static bool next_prefix(const ebb__chooser *ch, uint32_t depth, uint16_t *prefix, size_t *n) {
    size_t at = ch->n < depth ? ch->n : depth;
    while (at > 0 && ch->taken[at - 1] + 1 >= ch->of[at - 1]) at--;
    if (at == 0) return false;
    assert(at <= depth && at <= ch->n);
    memcpy(prefix, ch->taken, at * sizeof *prefix);
    prefix[at - 1]++;
    *n = at;
    return true;
}

static void explore_depth(ebb_lab *lab, ebb_lab_case *c, const ebb_lab_explore_opts *o, uint64_t of,
                          ebb_lab_explore_result *out) {
    uint16_t *prefix = ebb__alloc(&lab->allocator, o->depth * sizeof *prefix);
    if (prefix == NULL) {
        out->failure.status = EBB_ERR_NOMEM;
        return;
    }
    ebb_lab_case try = *c;
    try.recorded = true;
    try.choices = prefix;
    try.n_choices = 0;
    bool more = true;
    while (more && run_one(lab, &try, c, o, of, out)) {
        more = next_prefix(&lab->chooser, o->depth, prefix, &try.n_choices);
    }
    out->exhausted = !more || (out->failure.status == EBB_OK &&
                               !next_prefix(&lab->chooser, o->depth, prefix, &try.n_choices));
    ebb__free(&lab->allocator, prefix, o->depth * sizeof *prefix);
}

ebb_status ebb_lab_explore(ebb_lab *lab, ebb_lab_case *c, const ebb_lab_explore_opts *opts,
                           ebb_lab_explore_result *out) {
    ebb_lab_explore_opts o;
    *out = (ebb_lab_explore_result){.failure.status = EBB__OPTS_COPY(&o, opts)};
    if (out->failure.status != EBB_OK) return out->failure.status;
    uint64_t of = o.schedules == 0 ? SCHEDULES : o.schedules;
    if (o.depth == 0) explore_seeds(lab, c, &o, of, out);
    else explore_depth(lab, c, &o, of, out);
    return out->failure.status;
}
