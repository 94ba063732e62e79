/* ebb/fiber.h - tasks written as plain sequential C, each with a stack of its own.
 *
 * A fiber is a task of the kernel: phases, masks, budgets, regions, finalizers, trace and journal are the same. But its
 * body runs once, from start to end, instead of being polled, and *every await waits in place* when the running fiber
 * calls it: ebb_region_join, ebb_task_join, ebb_sleep, ebb_chan_send, ebb_chan_recv, ebb_chan_reserve, ebb_sem_acquire
 * and the awaits of other layers never return EBB_PENDING there.
 *
 *     static ebb_status greet(ebb_cx *cx, void *arg) {
 *         for (int i = 0; i < 3; i++) {
 *             ebb_sleeper nap = {0};
 *             ebb_status st = ebb_sleep(cx, &nap, 10 * EBB_MS);
 *             if (st != EBB_OK) return st;
 *             puts(arg);
 *         }
 *         return EBB_OK;
 *     }
 *     ...
 *     ebb_fiber_spawn(cx, region, greet, "hello");
 *
 * The rules at the head of ebb/kernel.h apply, and these:
 *  - Threads: a fiber runs on the thread that pumps its runtime. Pump from the same thread as long as fibers are alive:
 *    compilers keep the addresses of thread-local variables, also that of errno, across an await.
 *  - An abandoned fiber is never resumed, and its frames are not unwound. The frames stay in place until its waits,
 *    regions, finalizers and abort hooks are done.
 *  - When `fn` returns, its locals are gone, as in any C function. Tasks that still drain, finalizers and abort hooks
 *    must not point to them. Join such tasks under a mask, or keep the data elsewhere.
 *  - Finalizers and hooks are not fibers: an await in them returns EBB_PENDING, as in any poll function. An abort hook
 *    that the fiber itself calls by ebb_obligation_abort must not await.
 *  - setjmp and longjmp: within one fiber only.
 *  - A stack overflow prints a message on stderr that names the fiber, and ends the process with SIGSEGV. To detect it,
 *    the first fiber of the process installs a SIGSEGV handler, which passes other faults to the previous handler. Each
 *    thread that runs fibers gets an alternate signal stack, if it has none.
 *  - Machines: x86-64 and AArch64. On others the limit is 0: ebb_fiber_setup and ebb_fiber_spawn give EBB_ERR_LIMIT. */
#ifndef EBB_FIBER_H
#define EBB_FIBER_H

#include <ebb/future.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The body of a fiber. Returns the task's outcome; EBB_PENDING is turned into EBB_ERR_INVALID. The body runs even if
 * the task is cancelled before: its first await then returns EBB_CANCELLED. One exception: the body of an
 * ebb_fiber_spawn does not run if the task's own deadline passes before its first poll. */
typedef ebb_status (*ebb_fiber_fn)(ebb_cx *cx, void *arg);

/* Starts a fiber in `region`. Returns the id of its task, or an id that carries an error. The fiber does not run before
 * this returns. Its stack is allocated now, so that no later step can fail for lack of one. An optional fifth argument
 * is an ebb_task_opts, as of ebb_spawn. Errors as ebb_spawn, and EBB_ERR_LIMIT if `max` fibers are alive, EBB_ERR_NOMEM
 * if the system has no stack. Both are also the region's failure. */
#define ebb_fiber_spawn(...) EBB_WITH_OPTS(EBB_FIBER_SPAWN_, ebb_fiber_spawn_site, __VA_ARGS__)
#define EBB_FIBER_SPAWN_(cx, region, fn, arg, site)                                                          \
    ebb_fiber_spawn_site((cx), (region), (fn), (arg), NULL, (site))
ebb_task ebb_fiber_spawn_site(ebb_cx *cx, ebb_region region, ebb_fiber_fn fn, void *arg,
                              const ebb_task_opts *opts, const char *site);

/* Starts a fiber and returns a future of its outcome: ebb_go for a body that waits in place. EBB_ERR_LIMIT and
 * EBB_ERR_NOMEM for a stack are the future's failure only. */
#define ebb_fiber_go(...)                        EBB_WITH_OPTS(EBB_FIBER_GO_, ebb_fiber_go_site, __VA_ARGS__)
#define EBB_FIBER_GO_(cx, region, fn, arg, site) ebb_fiber_go_site((cx), (region), (fn), (arg), NULL, (site))
ebb_future *ebb_fiber_go_site(ebb_cx *cx, ebb_region region, ebb_fiber_fn fn, void *arg,
                              const ebb_task_opts *opts, const char *site);

/* To build awaits: suspends the running fiber, which must be `cx`'s, until its task is polled again, after a wake-up or
 * a cancel. Check again then what you wait for, as in a poll function. Not a checkpoint. EBB_ERR_INVALID: `cx` is not
 * the running fiber. */
ebb_status ebb_fiber_park(ebb_cx *cx);

/* Lets other tasks run first; a checkpoint. EBB_ERR_INVALID: `cx` is not the running fiber. */
ebb_status ebb_fiber_yield(ebb_cx *cx);

#define EBB_FIBER_STACK_BYTES 65536     /* the default of `stack_bytes` */
#define EBB_FIBER_STACK_LEAST 16384     /* the least `stack_bytes` */
#define EBB_FIBER_STACK_MOST  (1 << 30) /* the most `stack_bytes` */
#define EBB_FIBER_MAX         30000 /* the default of `max`: a fiber needs two maps, and Linux allows 65,530 */

typedef struct ebb_fiber_opts {
    uint32_t size;        /* sizeof(ebb_fiber_opts) of the caller; 0: this one */
    uint32_t stack_bytes; /* of each fiber, rounded up to pages. 0: the default */
    uint32_t max;         /* most fibers alive at a time in this runtime. 0: the default */
} ebb_fiber_opts;

/* Sets the options of a runtime's fibers. Optional. EBB_ERR_INVALID: a fiber of the runtime is alive, `stack_bytes` is
 * out of bounds, or `opts` is NULL. EBB_ERR_NOMEM, EBB_ERR_VERSION. On an error nothing changed. */
ebb_status ebb_fiber_setup(ebb_runtime *rt, const ebb_fiber_opts *opts);

typedef struct ebb_fiber_stats {
    uint32_t alive;  /* fibers spawned and not ended */
    uint32_t peak;   /* the most that were alive at a time */
    uint32_t pooled; /* stacks kept for later fibers */
    /* Memory of the alive and pooled stacks: pages that were touched. Measured when a stack is new or is deeper at a
     * wait than before, and at every 64th end of a fiber. */
    uint64_t bytes;
} ebb_fiber_stats;
void ebb_fiber_stats_of(const ebb_runtime *rt, ebb_fiber_stats *out);

#ifdef __cplusplus
}
#endif
#endif
