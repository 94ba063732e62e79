/* A loop from inside: how a runtime and libuv take turns, and what the files of this layer share.
 *
 * libuv's callbacks run nobody's code: they end futures, and the pump runs in the check phase right after
 * them, once for all that came. What is left to do before libuv sleeps (closed handles, the host's own
 * callbacks) is pumped in the prepare phase. After `polls` polls of tasks sockets have their turn: then an
 * idle handle keeps libuv from sleeping. Timers stand behind one uv_timer_t, which may ring too early but
 * not too late. None of these handles, nor those of users, counts as work for libuv: only `async` does, for
 * as long as something goes on. */
#ifndef EBB__LOOP_H
#define EBB__LOOP_H

#ifndef _POSIX_C_SOURCE
#error "uv.h needs POSIX: define _POSIX_C_SOURCE before the first header"
#endif
#include <uv.h>

#include "base/map.h"
#include "base/slab.h"
#include "future/future.h"
#include "kernel/layer.h"
#include <ebb/loop.h>

typedef struct ebb__owner ebb__owner;
typedef struct ebb__share ebb__share;

struct ebb_loop {
    uint8_t id; /* the runtime's */
    uv_loop_t *uv;
    ebb_runtime *rt;
    ebb_allocator allocator;
    const void *thread;
    ebb_peer *peer;      /* one reference, until the memory of the loop goes */
    ebb_loop *next_here; /* of the loops of this thread */
    uint32_t polls;
    uint32_t pending;  /* operations whose futures are not settled */
    bool idling;       /* `idle` is active */
    bool alive;        /* `async` keeps uv_run going */
    bool entered;      /* the host has come in since the last turn: it may have changed that */
    uint64_t armed_ms; /* when `timer` rings, by libuv's clock; EBB_FOREVER: it does not */
    uint64_t kill_at;  /* the first process is killed then */
    uv_async_t async;
    uv_timer_t timer;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;
    uint32_t internals; /* of these five, not closed yet */
    ebb__slab handles, requests;
    ebb__map nests;                              /* by region */
    struct ebb__handle *listeners;               /* those that are to be looked at again at some time */
    uint64_t listen_at;                          /* the first of these times */
    bool descriptor_freed;                       /* since they were looked at */
    uint32_t position;                           /* of the loops of a service; the first has 0 */
    ebb__share *share;                           /* places that it shares with other loops; NULL: none */
    struct ebb__raw_stream *dirty, **dirty_last; /* wires that have something to send */
    char *wire_room;                             /* what comes by a wire is read into this; NULL: not yet */
    uint32_t wires_read;                         /* wires that have read something since the last turn, */
    uint32_t wires_read_last;                    /* and before the last turn that followed such a read */
    ebb__owner *owner;                           /* of a loop on a thread of its own; NULL: it was attached */
};

/* Called from any thread when there is something to take in. Its context is the loop, so it also tells
 * runtimes that have one. */
void ebb__loop_wake(void *loop);

/* The loop of a context, if this is its thread. EBB_ERR_THREAD, EBB_ERR_INVALID. */
static inline ebb_status ebb__loop_of(const ebb_cx *cx, ebb_loop **out) {
    const ebb__heap *h = ebb__heap_at(ebb__rt_of(cx));
    *out = NULL;
    if (EBB__UNLIKELY(h == NULL || h->wake != ebb__loop_wake)) return EBB_ERR_INVALID;
    if (EBB__UNLIKELY(h->thread != ebb__this_thread())) return EBB_ERR_THREAD;
    *out = h->wake_ctx;
    return EBB_OK;
}
/* The same, for an operation that begins now: refused with EBB_CANCELLED or EBB_ERR_CLOSED before it has an effect. */
static inline ebb_status ebb__loop_admit(ebb_cx *cx, ebb_loop **out) {
    ebb_status st = ebb__loop_of(cx, out);
    return st == EBB_OK ? ebb__admit_operation(cx) : st;
}

/* The loop of this thread whose runtime has this id; NULL: there is none. */
ebb_loop *ebb__loop_here(uint8_t runtime_id);

/* The time now, for a span that begins in the middle of a turn. */
static inline uint64_t ebb__loop_now(ebb_loop *l) {
    ebb__clock_refresh(l->rt);
    return ebb__now(l->rt);
}

/* In the parts that a loop on its own thread needs: a loop at `l`, zeroed; and all of it but the memory of
 * `l`, whose internal handles are then closed by libuv's next turn. */
ebb_status ebb__loop_init(ebb_loop *l, uv_loop_t *uv, const ebb_loop_opts *opts);
void ebb__loop_fini(ebb_loop *l, uv_close_cb closed);
ebb_status ebb__loop_take_opts(ebb_loop_opts *o, const ebb_loop_opts *given);
/* Has a task, or an operation that somebody produces. */
bool ebb__loop_is_busy(const ebb_loop *l);
/* wire.c: has the wires send what they have. */
void ebb__raw_streams_flush(ebb_loop *l);
void ebb__raw_streams_fini(ebb_loop *l);
/* listen.c: looks at the listeners whose time has come, and at all that wait for a descriptor if one is free. */
void ebb__listeners_look(ebb_loop *l);
/* thread.c: what a loop of our own does after each turn. */
void ebb__owner_turn(ebb_loop *l);
/* As ebb_loop_stop, whose result is *st, but does not wait for what libuv can't stop, a function in the pool. False:
 * there is such, and the thread and the loop are left to it. */
bool ebb__loop_leave(ebb_loop *l, ebb_status *st);

/* ---- futures ------------------------------------------------------------------------------------------ */

/* A status for what libuv says, below 0. */
ebb_status ebb__uv_status(int code);
/* A failed future of any status. */
ebb_future *ebb__loop_failed(ebb_cx *cx, ebb_status st, const char *site);
/* A future of an operation, which is to end by one of the two below. NULL: *failed is what to return. */
ebb_future *ebb__begin(ebb_loop *l, ebb_cx *cx, const ebb_operation *op, void *arg, const char *site,
                       ebb_future **failed);
/* EBB_CANCELLED: a cancel was first, and the value was disposed of. */
ebb_status ebb__settle(ebb_loop *l, ebb_future *f, ebb_value v);
void ebb__reject(ebb_loop *l, ebb_future *f, ebb_status st);

/* For what is mostly over before anybody can wait for it: a future is made first, so that nothing is done if
 * there is no memory for it, and then ends at once, without a turn of its region's callback runner, or becomes that
 * of an operation. The value is not an object. NULL: *failed is what to return. */
ebb_future *ebb__begin_now(ebb_cx *cx, const char *site, ebb_future **failed);
ebb_future *ebb__end_now(ebb_future *f, ebb_status st, ebb_value v);
void ebb__end_later(ebb_loop *l, ebb_future *f, const ebb_operation *op, void *arg);

/* ---- blocks --------------------------------------------------------------------------------------------- */

/* Memory of the host's that a value owns; its type's free is ebb__block_free. NULL: no memory. */
void *ebb__block_new(const ebb_allocator *a, size_t n);
void ebb__block_free(void *at);

#endif
