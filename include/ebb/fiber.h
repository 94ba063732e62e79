/* ebb/fiber.h - tasks written as plain sequential C, each on a stack of its own.
 *
 * A fiber is a task of the kernel in every respect: phases, masks, budgets, regions, finalizers, trace and
 * journal. Only its body is not polled but runs once, from start to end, and *every await waits in place*
 * when it is called by the fiber that runs: ebb_region_join, ebb_task_join, ebb_sleep, ebb_chan_send,
 * ebb_chan_recv, ebb_chan_reserve, ebb_sem_acquire and what other layers add never return EBB_PENDING there.
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
 * The rules at the head of ebb/kernel.h hold here too, and these:
 *  - Threads: a fiber runs on the thread that pumps its runtime. While fibers are alive that should stay the
 *    same thread: compilers keep the addresses of thread-local variables, errno's too, across an await.
 *  - A fiber that is abandoned is never resumed: its frames vanish, nothing in them is unwound. They stay
 *    in place until its waits, regions, finalizers and abort hooks are done.
 *  - When `fn` returns, its locals are gone as in any C function. Tasks that still drain, finalizers and
 *    hooks of obligations may not point at them: join under a mask what does, or keep it elsewhere.
 *  - Finalizers and hooks are no fibers: an await in them says EBB_PENDING, as in any poll function. A hook
 *    that the fiber itself calls by ebb_obligation_abort may not await.
 *  - setjmp and longjmp: within one fiber only.
 *  - A stack overflow ends the process with a message on stderr that names the fiber, then by SIGSEGV. For
 *    that the first fiber of the process installs a SIGSEGV handler, which passes on what is not an
 *    overflow to the handler that was there; and each thread that runs fibers gets an alternate signal
 *    stack, if it has none.
 *  - Machines: x86-64. Elsewhere the limit is 0: setting up and spawning say EBB_ERR_LIMIT. */
#ifndef EBB_FIBER_H
#define EBB_FIBER_H

#include <ebb/future.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The body. What it returns is the task's outcome; EBB_PENDING is none, and becomes EBB_ERR_INVALID. It runs
 * even if the task is cancelled before: then its first await says so. Only a task whose own deadline comes
 * before its first poll ends without. */
typedef ebb_status (*ebb_fiber_fn)(ebb_cx *cx, void *arg);

/* A new fiber in `region`; it does not run before this returns. Takes its stack now, so that no later step
 * of it can fail for lack of one. Errors as ebb_spawn; besides, EBB_ERR_LIMIT if `max` of them are alive and
 * EBB_ERR_NOMEM if the system gives no stack. Both stick to the region as its failure. */
#define ebb_fiber_spawn(...) EBB_WITH_OPTS(EBB_FIBER_SPAWN_, ebb_fiber_spawn_site, __VA_ARGS__)
#define EBB_FIBER_SPAWN_(cx, region, fn, arg, site)                                                          \
    ebb_fiber_spawn_site((cx), (region), (fn), (arg), NULL, (site))
ebb_task ebb_fiber_spawn_site(ebb_cx *cx, ebb_region region, ebb_fiber_fn fn, void *arg,
                              const ebb_task_opts *opts, const char *site);

/* A fiber as a future of its status: ebb_go for a body that waits in place. */
#define ebb_fiber_go(...)                        EBB_WITH_OPTS(EBB_FIBER_GO_, ebb_fiber_go_site, __VA_ARGS__)
#define EBB_FIBER_GO_(cx, region, fn, arg, site) ebb_fiber_go_site((cx), (region), (fn), (arg), NULL, (site))
ebb_future *ebb_fiber_go_site(ebb_cx *cx, ebb_region region, ebb_fiber_fn fn, void *arg,
                              const ebb_task_opts *opts, const char *site);

/* For awaits of your own: suspends the fiber that runs, which must be `cx`'s, until its task is polled again,
 * because somebody woke or cancelled it. Look again then, as in a poll function; it is no checkpoint.
 * EBB_ERR_INVALID: `cx` is not the fiber that runs. */
ebb_status ebb_fiber_park(ebb_cx *cx);

/* Lets others run first, then is a checkpoint. EBB_ERR_INVALID as above. */
ebb_status ebb_fiber_yield(ebb_cx *cx);

#define EBB_FIBER_STACK_BYTES 65536 /* the default */
#define EBB_FIBER_STACK_LEAST 16384
#define EBB_FIBER_STACK_MOST  (1 << 30)
#define EBB_FIBER_MAX         30000 /* the default: two maps each, and Linux grants a process 65,530 */

typedef struct ebb_fiber_opts {
    uint32_t size;        /* sizeof(ebb_fiber_opts) of the caller; 0: this one */
    uint32_t stack_bytes; /* of each, rounded up to pages. 0: the default */
    uint32_t max;         /* alive at a time in this runtime. 0: the default */
} ebb_fiber_opts;

/* Optional, and only while no fiber of the runtime is alive (else EBB_ERR_INVALID, as for a stack out of the
 * bounds above). EBB_ERR_NOMEM and EBB_ERR_VERSION: nothing changed. */
ebb_status ebb_fiber_setup(ebb_runtime *rt, const ebb_fiber_opts *opts);

typedef struct ebb_fiber_stats {
    uint32_t alive;  /* spawned and not ended */
    uint32_t peak;   /* the most that were */
    uint32_t pooled; /* stacks kept for the next ones */
    uint64_t
        bytes; /* memory of all these stacks: pages that were touched. Asked of the system when a stack is
                      * new or gets deeper at a wait, and now and then */
} ebb_fiber_stats;
void ebb_fiber_stats_of(const ebb_runtime *rt, ebb_fiber_stats *out);

#ifdef __cplusplus
}
#endif
#endif
