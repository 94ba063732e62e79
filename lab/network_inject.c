/* Injection in a network: the same case again and again, each time with another action at another suspension point. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>

#include "base/opts.h"
#include "lab/lab.h"

typedef struct injector {
    ebb_lab *lab;
    ebb_lab_case *c;
    ebb_lab_inject_opts opts;
    ebb_lab_inject_result *out;
    uint64_t of; /* runs in all */
} injector;

/* False: the run has failed, and is captured. */
static bool run(injector *in, ebb_lab_action action, uint64_t point) {
    ebb_lab_case try = *in->c;
    ebb_lab_result *r = &in->out->failure;
    try.action = action;
    try.point = point;
    (void)ebb_lab_run(in->lab, &try, NULL, r);
    in->out->runs++;
    if (in->opts.progress != NULL) in->opts.progress(in->opts.ctx, in->out->runs, in->of);
    if (r->status == EBB_OK) return true;
    in->c->action = action;
    in->c->point = point;
    if (r->status != EBB_ERR_NOMEM && ebb_lab_capture(in->lab, in->c) != EBB_OK) r->status = EBB_ERR_NOMEM;
    return false;
}

static uint64_t count(uint64_t actions) {
    uint64_t n = 0;
    for (int i = 1; i < EBB_LAB_ACTIONS; i++) n += actions >> i & 1;
    return n;
}

static bool run_point(injector *in, uint64_t point) {
    bool holds = true;
    for (int i = 1; i < EBB_LAB_ACTIONS && holds; i++) {
        if (in->opts.actions >> i & 1) holds = run(in, (ebb_lab_action)i, point);
    }
    return holds;
}

ebb_status ebb_lab_inject(ebb_lab *lab, ebb_lab_case *c, const ebb_lab_inject_opts *opts,
                          ebb_lab_inject_result *out) {
    injector in = {.lab = lab, .c = c, .out = out};
    *out = (ebb_lab_inject_result){.failure.status = EBB__OPTS_COPY(&in.opts, opts)};
    if (out->failure.status != EBB_OK) return out->failure.status;
    if (c->scenario == NULL || c->scenario->network == NULL) {
        (void)snprintf(out->failure.text, sizeof out->failure.text, "the scenario has no network");
        return out->failure.status = EBB_ERR_INVALID;
    }
    if (in.opts.actions == 0) in.opts.actions = UINT64_MAX;
    if (in.opts.every == 0) in.opts.every = 1;
    bool holds = run(&in, EBB_LAB_NOTHING, 0);
    out->points = out->failure.polls;
    in.of = 1 + (out->points + in.opts.every - 1) / in.opts.every * count(in.opts.actions);
    for (uint64_t point = 1; holds && point <= out->points; point += in.opts.every)
        holds = run_point(&in, point);
    return out->failure.status;
}
