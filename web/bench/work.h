/* The work of the web rows of `make bench`: the same C in the wasm module and in a native program, so that what is
 * compared is the machine it runs on. Each is set up first, and only its run is timed. */
#ifndef EBB__WEB_BENCH_WORK_H
#define EBB__WEB_BENCH_WORK_H

#include <ebb/sched.h>

typedef enum bench_work {
    BENCH_POLL = 0,  /* a poll of one of 1000 tasks that wake themselves */
    BENCH_SPAWN = 1, /* a task that ends at once */
    BENCH_CANCEL = 2 /* a parked task of a region that is cancelled, until it has ended */
} bench_work;

/* Makes a runtime for n operations of that kind. EBB_ERR_NOMEM. */
ebb_status bench_prepare(bench_work work, uint32_t n, ebb_allocator a);
/* Does them, and frees the runtime. How many there were. */
uint64_t bench_run(void);

#endif
