/* The fibers' rows of the cost table, by the public API: a switch is half of what it takes to leave a fiber
 * and come back through the pump. The floor does as much with the C library's own contexts. */
#define _DEFAULT_SOURCE /* ucontext's stacks */
#include "bench/bench.h"

#include <ebb/ebb.h>
#include <ebb/fiber.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { SWITCHES = 2000000, FIBERS = 500000, CONTEXT_STACK = 65536 };

/* ---- ours ---------------------------------------------------------------------------------------- */

static ebb_status yields(ebb_cx *cx, void *arg) {
    for (int *left = arg; *left > 0; --*left) {
        if (ebb_fiber_yield(cx) != EBB_OK) return EBB_FAILED;
    }
    return EBB_OK;
}

static double switches(void) {
    ebb_runtime *rt = bench_runtime();
    int left = SWITCHES / 2;
    ebb_fiber_spawn(ebb_runtime_host(rt), ebb_runtime_root(rt), yields, &left);
    bench_must(ebb_runtime_pump(rt, 1) == EBB_PENDING);
    double t0 = bench_cpu_ns();
    while (ebb_runtime_pump(rt, UINT32_MAX) == EBB_PENDING) {}
    double ns = (bench_cpu_ns() - t0) / SWITCHES;
    bench_must(left == 0);
    ebb_runtime_free(rt);
    return ns;
}

static ebb_status ends_at_once(ebb_cx *cx, void *arg) {
    (void)cx;
    ++*(int *)arg;
    return EBB_OK;
}

static double spawn_end(void) {
    ebb_runtime *rt = bench_runtime();
    int ended = 0;
    double t0 = bench_cpu_ns();
    for (int i = 0; i < FIBERS; i++) {
        ebb_fiber_spawn(ebb_runtime_host(rt), ebb_runtime_root(rt), ends_at_once, &ended);
        ebb_runtime_pump(rt, UINT32_MAX);
    }
    double ns = (bench_cpu_ns() - t0) / FIBERS;
    bench_must(ended == FIBERS);
    ebb_runtime_free(rt);
    return ns;
}

/* ---- the C library's ----------------------------------------------------------------------------- */

static ucontext_t outside, inside;
static int count;

static void swaps(void) {
    while (count > 0) {
        count--;
        swapcontext(&inside, &outside);
    }
}

static void counts(void) {
    count++;
}

static void context_make(void (*fn)(void), char *stack) {
    getcontext(&inside);
    inside.uc_stack = (stack_t){.ss_sp = stack, .ss_size = CONTEXT_STACK};
    inside.uc_link = &outside;
    makecontext(&inside, fn, 0);
}

static double context_switches(void) {
    char *stack = malloc(CONTEXT_STACK);
    bench_must(stack != NULL);
    count = SWITCHES / 2;
    context_make(swaps, stack);
    double t0 = bench_cpu_ns();
    while (count > 0) swapcontext(&outside, &inside);
    double ns = (bench_cpu_ns() - t0) / SWITCHES;
    free(stack);
    return ns;
}

static double context_make_end(void) {
    char *stack = malloc(CONTEXT_STACK);
    bench_must(stack != NULL);
    count = 0;
    double t0 = bench_cpu_ns();
    for (int i = 0; i < FIBERS; i++) {
        context_make(counts, stack);
        swapcontext(&outside, &inside);
    }
    double ns = (bench_cpu_ns() - t0) / FIBERS;
    bench_must(count == FIBERS);
    free(stack);
    return ns;
}

const bench_row bench_fiber_rows[] = {
    {"fiber.switch", "ns", switches, context_switches, 30, 0},
    {"fiber.spawn_end", "ns", spawn_end, context_make_end, 0, 0},
};
const size_t bench_fiber_count = sizeof bench_fiber_rows / sizeof *bench_fiber_rows;
