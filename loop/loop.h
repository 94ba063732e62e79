/* A loop from inside: how a runtime and libuv take turns, and what the files of this layer share.
 *
 * libuv's callbacks do not run code of the program: they settle futures, and the pump runs in the check phase right
 * after them, once for all of them. Raw streams are the exception: when the bytes of one have been processed, its tasks
 * are pumped and their answers sent before the next one is read. So thousands of requests that are received in one turn
 * use the memory of a hundred again and again, which stays in the caches. Work that appears before libuv sleeps (closed
 * handles, callbacks of the host) is pumped in the prepare phase. After `polls` polls of tasks libuv looks at the
 * sockets; an idle handle keeps it from sleeping meanwhile. All timers share one uv_timer_t, which may expire early but
 * not late. None of these handles, nor those of the program, keeps uv_run going: only `async` does, if there is work. */
#ifndef EBB__LOOP_H
#define EBB__LOOP_H

#include "base/map.h"
#include "base/slab.h"
#include "future/future.h"
#include "kernel/layer.h"
#include "loop/platform.h"
#include <ebb/loop.h>

typedef struct ebb__owner ebb__owner;
typedef struct ebb__share ebb__share;
typedef struct ebb__recording ebb__recording;

typedef struct ebb__counters ebb__counters;

struct ebb_loop {
    uint8_t id; /* the runtime's */
    const ebb__platform *os;
    uv_loop_t *uv;
    ebb_runtime *rt;
    ebb_allocator allocator;
    const void *thread;
    ebb_peer *peer;      /* one reference, until the memory of the loop is freed */
    ebb_loop *next_here; /* the next loop of this thread */
    uint32_t polls;
    uint32_t pending;  /* operations whose futures are not settled */
    bool idling;       /* `idle` is active */
    bool backlog;      /* the last pump has used up its polls */
    bool alive;        /* `async` keeps uv_run going */
    uint64_t turns;    /* that have ended */
    bool entered;      /* the host has used the loop since the last turn, and may have added work */
    uint64_t armed_ms; /* when `timer` expires, by libuv's clock; EBB_FOREVER: it is not set */
    uint64_t kill_at;  /* when the next process is to be killed */
    uv_async_t async;
    uv_timer_t timer;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;
    uint32_t internals; /* how many of these five are not closed yet */
    ebb__slab handles, requests;
    ebb__map by_region;                          /* the handles of each region */
    struct ebb__handle *listeners;               /* listeners with a time to look at them again */
    uint64_t listen_at;                          /* the earliest of these times */
    bool descriptor_freed;                       /* since the listeners were looked at */
    uint32_t position;                           /* among the loops of a service; the first has 0 */
    ebb__share *share;                           /* listen addresses shared with other loops; NULL: none */
    struct ebb__raw_stream *dirty, **dirty_last; /* raw streams that have something to send */
    char *raw_buffer;                            /* raw streams read into this; NULL: none yet */
    uint32_t raw_reads;                          /* raw streams that have read since the last turn */
    uint32_t raw_reads_last;                     /* the last count that was not 0 */
    ebb__counters *counters;                     /* of layers above, for whoever looks: loop/counters.h */
    ebb__owner *owner;                           /* of a loop on its own thread; NULL: it was attached */
    uint32_t numbered;                           /* connections and exchanges in the trace so far */
    struct ebb__loop_text *texts;                /* those of ebb__loop_text */
    ebb__recording *recording;                   /* NULL: nothing is recorded to a file */
};

/* Called from any thread when the inbox has something to receive. It also identifies runtimes with a loop: their
 * wake context is the loop. */
void ebb__loop_wake(void *loop);

/* The loop of a context, if this is the loop's thread. EBB_ERR_THREAD, EBB_ERR_INVALID. */
static inline ebb_status ebb__loop_of(const ebb_cx *cx, ebb_loop **out) {
    const ebb__heap *h = ebb__heap_at(ebb__rt_of(cx));
    *out = NULL;
    if (EBB__UNLIKELY(h == NULL || h->wake != ebb__loop_wake)) return EBB_ERR_INVALID;
    if (EBB__UNLIKELY(h->thread != ebb__this_thread())) return EBB_ERR_THREAD;
    *out = h->wake_ctx;
    return EBB_OK;
}
/* The same, for an operation that begins now. It is refused with EBB_CANCELLED or EBB_ERR_CLOSED before it has an
 * effect. */
static inline ebb_status ebb__loop_admit(ebb_cx *cx, ebb_loop **out) {
    ebb_status st = ebb__loop_of(cx, out);
    return st == EBB_OK ? ebb__admit_operation(cx) : st;
}

/* The loop of this thread whose runtime has this id; NULL: there is none. */
ebb_loop *ebb__loop_here(uint8_t runtime_id);

/* The time now, for a timeout that starts in the middle of a turn. */
static inline uint64_t ebb__loop_now(ebb_loop *l) {
    ebb__clock_refresh(l->rt);
    return ebb__now(l->rt);
}

/* The parts of attach and close that a loop on its own thread needs. Init takes a zeroed `l`. Fini releases all but
 * the memory of `l`; libuv closes the internal handles in its next turn. */
ebb_status ebb__loop_init(ebb_loop *l, uv_loop_t *uv, const ebb_loop_opts *opts);
void ebb__loop_fini(ebb_loop *l, uv_close_cb closed);
/* Completes and closes the files that the loop records to. */
void ebb__loop_record_end(ebb_loop *l);
ebb_status ebb__loop_take_opts(ebb_loop_opts *o, const ebb_loop_opts *given);
/* A copy of a text that stays until the runtime is freed, as what names tasks has to; the same for the same text. NULL:
 * no memory. */
const char *ebb__loop_text(ebb_loop *l, const char *text);
void ebb__loop_texts_free(ebb_loop *l);
/* Whether the loop has a task or a pending operation. */
bool ebb__loop_is_busy(const ebb_loop *l);
/* raw_stream.c: calls `flush` of the dirty raw streams. */
void ebb__raw_streams_flush(ebb_loop *l);
void ebb__raw_streams_fini(ebb_loop *l);
/* For raw streams, whose bytes have been processed: pumps and flushes now instead of in the check phase, unless the
 * last pump has left work for the next turn. */
void ebb__loop_pump_early(ebb_loop *l);
/* Between the flushes of a raw stream: pumps. False: there is work left for the next turn. */
bool ebb__loop_pump_again(ebb_loop *l);
/* listen.c: looks at the listeners whose time has come, and if a descriptor was freed at all that wait for one. */
void ebb__listeners_look(ebb_loop *l);
/* thread.c: called after each turn of a loop on its own thread. */
void ebb__owner_turn(ebb_loop *l);
/* As ebb_loop_stop, whose result is *st, but does not wait for functions in the pool, which libuv can't stop. False:
 * one still runs, and the thread and the loop are not freed. */
bool ebb__loop_leave(ebb_loop *l, ebb_status *st);

/* ---- futures ------------------------------------------------------------------------------------------ */

/* The status of a libuv error, which is below 0. */
ebb_status ebb__uv_status(int code);
/* A failed future with this status. */
ebb_future *ebb__loop_failed(ebb_cx *cx, ebb_status st, const char *site);
/* A future of an operation, to be ended by one of the two functions below. NULL: return *failed. */
ebb_future *ebb__begin(ebb_loop *l, ebb_cx *cx, const ebb_operation *op, void *arg, const char *site,
                       ebb_future **failed);
/* EBB_CANCELLED: the future was cancelled before, and the value was disposed of. */
ebb_status ebb__settle(ebb_loop *l, ebb_future *f, ebb_value v);
void ebb__reject(ebb_loop *l, ebb_future *f, ebb_status st);

/* For operations that mostly end before the caller can await them. The future is made first, so that nothing is done
 * if there is no memory for it. Then it ends at once, without a turn of its region's callback runner, or becomes the
 * future of an operation. The value is not an object. NULL: return *failed. */
ebb_future *ebb__begin_now(ebb_cx *cx, const char *site, ebb_future **failed);
ebb_future *ebb__end_now(ebb_future *f, ebb_status st, ebb_value v);
void ebb__end_later(ebb_loop *l, ebb_future *f, const ebb_operation *op, void *arg);

/* ---- blocks --------------------------------------------------------------------------------------------- */

/* Memory of the host's allocator that a value owns; its type's free is ebb__block_free. NULL: no memory. */
void *ebb__block_new(const ebb_allocator *a, size_t n);
void ebb__block_free(void *at);

#endif
