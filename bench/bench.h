/* The benchmark's own small parts: CPU time, memory, rounds of "ours" and "floor" in turn, rows. */
#ifndef EBB_BENCH_H
#define EBB_BENCH_H

#include <stddef.h>
#include <stdint.h>

enum { BENCH_ROUNDS = 7 };

/* One round of something: returns nanoseconds (or bytes) for each of its operations. */
typedef double (*bench_fn)(void);

typedef struct bench_row {
    const char *name; /* "kernel.cancel_fan_1m" */
    const char *unit; /* "ns", "bytes" */
    bench_fn ours;
    bench_fn floor; /* NULL: there is nothing to compare with */
    double target;  /* the most that ours may be, in the unit; 0: only printed */
    double
        target_floor; /* what the floor was where the target was set: the ratio is what counts. 1: only that */
} bench_row;

double bench_cpu_ns(void);
long bench_rss_bytes(void);
uint64_t bench_random(uint64_t *state);

struct ebb_runtime; /* the floors know nothing of it */
/* A runtime on malloc; all that it has to do now; what has to hold, or the numbers mean nothing. */
struct ebb_runtime *bench_runtime(void);
void bench_pump_all(struct ebb_runtime *rt);
void bench_must(int ok);

/* The rows of each file, in the order of the table. */
#define BENCH_GROUPS(X)                                                                                      \
    X(kernel)                                                                                                \
    X(future) X(fiber) X(bridge) X(loop) X(workflow) X(machine) X(lang) X(program) X(sqlite) X(durable)
#define BENCH_DECLARE(group)                                                                                 \
    extern const bench_row bench_##group##_rows[];                                                           \
    extern const size_t bench_##group##_count;
BENCH_GROUPS(BENCH_DECLARE)
#undef BENCH_DECLARE

/* bench/floor: the same work in bare C, without error paths, ids or checks. */
double floor_spawn_end_seq(void);
double floor_spawn_end_1m(void);
double floor_task_bytes(void);
double floor_cancel_fan_1m(void);
double floor_cancel_chain_1m(void);
double floor_cancelled_check(void);
double floor_channel_msg(void);
double floor_timer_arm_cancel_1m(void);
double floor_machine_message(void);
double floor_machine_ring_100k(void);

#endif
