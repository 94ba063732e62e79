/* Runs one program again and again with bytecode that was changed, in a runtime that stays. After each run all machines
 * are stopped, and nothing may be left: no machine, cell, request or block. For tests and for the fuzz target. */
#ifndef EBB_TESTS_BYTECODE_RUN_H
#define EBB_TESTS_BYTECODE_RUN_H

#include <ebb/ebb.h>
#include <stdio.h>
#include <string.h>

#include "lang/host.h"
#include "lang/vm.h"

typedef struct bytecode_run {
    ebb_runtime *rt;
    ebb_cx *host;
    ebb_lang *c;
    ebb_program *p;
    uint64_t faults; /* so far */
} bytecode_run;

static inline void bytecode_require(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static inline void bytecode_report(void *ctx, const ebb_program_event *e) {
    bytecode_run *r = ctx;
    if (e->what == EBB_PROGRAM_FAULT) r->faults++;
}

static inline void bytecode_print(void *ctx, const char *text, size_t n) {
    volatile char sum = 0; /* reads it */
    (void)ctx;
    for (size_t i = 0; i < n; i++) sum = (char)(sum ^ text[i]);
}

/* `r` stays where it is. */
static inline void bytecode_open(bytecode_run *r, const char *text, size_t n, int64_t budget) {
    ebb_runtime_opts rt_opts = {.allocator = ebb_libc_allocator()};
    ebb_lang_opts lang_opts = {.allocator = ebb_libc_allocator()};
    ebb_program_opts opts = {
        .allocator = ebb_libc_allocator(), .print = bytecode_print, .report = bytecode_report, .ctx = r};
    bytecode_require(ebb_runtime_new(&rt_opts, &r->rt) == EBB_OK, "runtime");
    r->host = ebb_runtime_host(r->rt);
    bytecode_require(ebb_lang_new(&lang_opts, &r->c) == EBB_OK, "no memory");
    bytecode_require(ebb_lang_compile(r->c, "x.ebb", text, n) == EBB_OK, "it does not compile");
    bytecode_require(ebb_program_new(r->c, &opts, &r->p) == EBB_OK, "no program");
    bytecode_require(ebb_program_open(r->host, r->p) == EBB_OK, "not opened");
    r->p->budget = budget;
}

static inline void bytecode_close(bytecode_run *r) {
    (void)ebb_region_close(r->host, ebb_machines_region(r->p->ms));
    while (ebb_runtime_pump(r->rt, 1000) == EBB_PENDING) {}
    bytecode_require(ebb_program_free(r->p) == EBB_OK, "not freed");
    ebb_lang_free(r->c);
    ebb_runtime_free(r->rt);
}

static inline void bytecode_stop_all(bytecode_run *r) {
    ebb_machines *ms = r->p->ms;
    ebb_machines_stats stats;
    while (ms->youngest != 0) (void)ebb_machine_stop(ms, (ebb_machine){ebb__machine_id(ms, ms->youngest)});
    while (ebb_runtime_pump(r->rt, 1000) == EBB_PENDING) {}
    ebb_machines_stats_of(ms, &stats);
    bytecode_require(stats.machines == 0 && stats.pending == 0 && stats.queued == 0 && stats.cells == 0,
                     "a machine, message or request is left");
    bytecode_require(stats.timers == 0 && stats.subscriptions == 0, "a timer or subscription is left");
    bytecode_require(r->p->blocks == r->p->n_specs, "a block is left");
}

/* Main and some turns of the machines. */
static inline void bytecode_run_once(bytecode_run *r) {
    r->p->end = (ebb_program_end){.main = EBB_PENDING};
    (void)ebb_program_start(r->p);
    for (int i = 0; i < 4; i++) {
        (void)ebb_runtime_pump(r->rt, 4);
        uint64_t due = ebb_runtime_next_due(r->rt);
        if (due != EBB_FOREVER && due > ebb_now(r->host)) ebb_runtime_advance(r->rt, due);
    }
    bytecode_stop_all(r);
}

#endif
