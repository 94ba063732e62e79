/* The model test: random programs run by the kernel and by the model at once, one operation at a time,
 * and after each the two must agree in everything. The tasks are puppets: what a poll does is drawn
 * when it is polled, so both worlds see the same program.
 *
 * EBB_MODEL_OPS: operations a seed (default below). EBB_MODEL_SEED: only this one. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/rt.h"
#include "tests/kernel/model/driver.h"
#include "tests/support/share.h"

enum { SEEDS = 12, OPS = 100000 / SHARE(4, 5), EPISODE_STEPS = 900, DRAIN_STEPS = 20000 };

/* ---- puppets -------------------------------------------------------------------------------------- */

static ebb_status some_end(driver *d) {
    static const ebb_status ends[] = {EBB_OK,     EBB_OK,      EBB_OK, EBB_OK, EBB_CANCELLED,
                                      EBB_FAILED, EBB_FAULTED, EBB_OK, EBB_OK, (ebb_status)-1001};
    return ends[driver_random(d, sizeof ends / sizeof ends[0])];
}

/* A few operations, then an end or another wait. */
static ebb_status act(driver *d, ebb_cx *cx, int who) {
    for (uint32_t n = driver_random(d, 5); n > 0; n--) driver_operate(d, cx, who);
    bool asked = ebb_checkpoint(cx) != EBB_OK;
    (void)model_checkpoint(d->m, who);
    ebb_status st = driver_chance(d, asked || d->draining ? 60 : 20) ? some_end(d) : EBB_PENDING;
    driver_note(d, "%d returns %s", who, ebb_status_name(st));
    model_returned(d->m, st);
    return st;
}

static void expect_call(driver *d, m_what what, int number) {
    const m_call *c = &d->m->call;
    int expected = c->what == M_POLL ? c->task : c->what == M_FINALIZER ? c->owed : 0;
    if (c->what == what && expected == number) return;
    driver_fail(d, "%s %d is called, expected %s %d", what == M_POLL ? "task" : "finalizer", number,
                c->what == M_POLL        ? "task"
                : c->what == M_FINALIZER ? "finalizer"
                                         : "nothing",
                expected);
}

ebb_status model_puppet_poll(ebb_cx *cx, void *state) {
    puppet *p = state;
    driver_note(p->d, "task %d is polled", p->number);
    expect_call(p->d, M_POLL, p->number);
    driver_compare(p->d);
    return act(p->d, cx, p->number);
}

ebb_status model_puppet_finalize(ebb_cx *cx, void *state) {
    puppet *p = state;
    driver_note(p->d, "finalizer %d of task %d is polled", p->number, p->d->m->call.task);
    expect_call(p->d, M_FINALIZER, p->number);
    driver_compare(p->d);
    return act(p->d, cx, p->d->m->call.task);
}

static void saw(driver *d, int what) {
    if (d->seen_n == M_LOG) driver_fail(d, "too many hooks at once");
    d->seen[d->seen_n++] = what;
}

void model_puppet_abort(void *arg) {
    puppet *p = arg;
    saw(p->d, p->number);
}

void model_puppet_closed(void *arg, const ebb_region_report *report) {
    puppet *p = arg;
    const m_region *r = &p->d->m->region[p->number];
    saw(p->d, -p->number);
    if (report->status != r->status || report->abandoned != r->abandoned || report->leaked != r->leaked) {
        driver_fail(p->d, "the report of region %d differs", p->number);
    }
}

/* ---- the host ------------------------------------------------------------------------------------- */

static void keep_trace(void *ctx, const void *bytes, size_t n) {
    driver *d = ctx;
    if (d->trace_n + n > d->trace_room) {
        d->trace_room = (d->trace_n + n) * 2;
        d->trace = realloc(d->trace, d->trace_room);
        if (d->trace == NULL) abort();
    }
    memcpy(d->trace + d->trace_n, bytes, n);
    d->trace_n += n;
}

static void pump(driver *d) {
    driver_note(d, "pump");
    model_pump(d->m, d->rt->now >= d->rt->wheel.quiet_until);
    ebb_status st = ebb_runtime_pump(d->rt, 1);
    if (d->m->call.what != M_NOTHING) {
        driver_fail(d, "nothing was called, expected task %d, finalizer %d", d->m->call.task,
                    d->m->call.owed);
    }
    model_pump_end(d->m);
    ebb_status expected = model_pump_status(d->m);
    if (st != expected)
        driver_fail(d, "pump: %s, expected %s", ebb_status_name(st), ebb_status_name(expected));
    if (d->traced) ebb_trace_take(d->rt, false, keep_trace, d);
    driver_compare(d);
}

static void advance(driver *d) {
    static const uint32_t spans_ms[] = {1, 20, 200, 3000};
    uint64_t due = ebb_runtime_next_due(d->rt);
    uint64_t to = d->m->now + driver_random(d, spans_ms[driver_random(d, 4)] * 1000) * EBB_US;
    if (driver_chance(d, 50) && due != EBB_FOREVER) to = due;
    driver_note(d, "the time is %" PRIu64, to);
    model_advance(d->m, to);
    ebb_runtime_advance(d->rt, to);
}

static void host_step(driver *d) {
    uint32_t dice = driver_random(d, 100);
    if (dice < 55) {
        pump(d);
    } else if (dice < 63) {
        advance(d);
    } else {
        driver_operate(d, ebb_runtime_host(d->rt), 0);
    }
}

/* ---- episodes ------------------------------------------------------------------------------------- */

static void begin(driver *d) {
    ebb_runtime_opts opts = {.allocator = ebb_libc_allocator(), .runtime_id = 3, .now = 77 * EBB_SECOND};
    assert_int_equal(ebb_runtime_new(&opts, &d->rt), EBB_OK);
    model_init(d->m, opts.now);
    memset(d->task, 0, sizeof d->task);
    memset(d->task_gone, 0, sizeof d->task_gone);
    memset(d->region_gone, 0, sizeof d->region_gone);
    d->region[M_ROOT] = ebb_runtime_root(d->rt);
    d->seen_n = 0;
    d->draining = false;
    d->profile = (int)(d->episode & 1);
    d->traced = (d->episode & 2) != 0;
    d->trace_n = 0;
    if (d->traced) assert_int_equal(ebb_trace_start(d->rt, 1 << 18), EBB_OK);
}

/* The root is ended by one of the verbs, and then nothing is left, however the puppets behave. */
static void end_root(driver *d) {
    ebb_cx *host = ebb_runtime_host(d->rt);
    d->draining = true;
    driver_note(d, "the root is ended");
    if (driver_chance(d, 30)) {
        model_close(d->m, M_ROOT);
        ebb_region_close(host, d->region[M_ROOT]);
    } else if (driver_chance(d, 30)) {
        model_force(d->m, M_ROOT);
        ebb_region_force(host, d->region[M_ROOT]);
    }
    model_cancel(d->m, M_ROOT, EBB_CANCEL_SHUTDOWN, NULL);
    ebb_region_cancel(host, d->region[M_ROOT], EBB_CANCEL_SHUTDOWN, "the end");
    driver_compare(d);
}

static void drain(driver *d) {
    for (int i = 0; i < DRAIN_STEPS; i++) {
        if (d->m->region[M_ROOT].state == EBB_REGION_CLOSED && model_pump_status(d->m) == EBB_OK) return;
        if (driver_chance(d, 10)) advance(d);
        pump(d);
    }
    driver_fail(d, "the root does not close");
}

static void check_trace(driver *d) {
    ebb_trace_reader reader;
    ebb_event ev;
    if (!d->traced) return;
    ebb_trace_take(d->rt, true, keep_trace, d);
    assert_int_equal(ebb_trace_reader_open(&reader, d->trace, d->trace_n), EBB_OK);
    ebb_checker *c = ebb_checker_new(ebb_libc_allocator());
    assert_non_null(c);
    ebb_status st = EBB_OK;
    while (st == EBB_OK && ebb_trace_reader_next(&reader, &ev) == EBB_OK) st = ebb_checker_event(c, &ev);
    if (st == EBB_OK) st = ebb_checker_end(c, true);
    if (st != EBB_OK) {
        const ebb_violation *v = ebb_checker_violation(c);
        driver_fail(d, "oracle %s, event %" PRIu64 ": %s", ebb_oracle_name(v->oracle), v->event.decision_seq,
                    v->text);
    }
    ebb_checker_free(c);
}

static void episode(driver *d) {
    begin(d);
    for (int i = 0; i < EPISODE_STEPS && d->m->region[M_ROOT].state == EBB_REGION_OPEN; i++) host_step(d);
    end_root(d);
    drain(d);
    pump(d);
    check_trace(d);
    ebb_runtime_free(d->rt);
    d->rt = NULL;
}

static uint64_t number_from(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static driver *driving; /* what a failed test leaves behind */

static int clear(void **state) {
    (void)state;
    if (driving == NULL) return 0;
    ebb_runtime_free(driving->rt);
    free(driving->trace);
    free(driving->m);
    free(driving);
    driving = NULL;
    return 0;
}

static uint64_t run_seed(uint64_t seed, uint64_t ops) {
    driver *d = driving = calloc(1, sizeof *d);
    assert_non_null(d);
    d->m = malloc(sizeof *d->m);
    assert_non_null(d->m);
    d->seed = seed;
    d->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int i = 0; i < 8; i++) (void)driver_random(d, 2);
    for (d->episode = 0; d->ops < ops; d->episode++) episode(d);
    uint64_t done = d->ops;
    (void)clear(NULL);
    return done;
}

static void kernel_and_model_agree_after_every_operation(void **state) {
    (void)state;
    uint64_t ops = number_from("EBB_MODEL_OPS", OPS), only = number_from("EBB_MODEL_SEED", 0), done = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        if (only == 0) done += run_seed(seed, ops);
    }
    if (only != 0) done = run_seed(only, ops);
    print_message("%" PRIu64 " operations\n", done);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(kernel_and_model_agree_after_every_operation, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
