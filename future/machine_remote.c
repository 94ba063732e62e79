/* Machines of other runtimes. machine/ knows no threads: this file moves what its proxies and ports (machine/port.h) hand
 * over, and owns the record between the two.
 *
 * The machine's runtime is the *home*. `out` carries messages and requests there, `back` answers. Both are bridges with as
 * many places as there are credits, and both can't be full: an item of `out` uses a credit until its message has left the
 * mailbox, or its request was answered; and an answer uses that of its request. Credits of messages do not travel: the
 * proxy reads `credited` when it has none left.
 *
 * The end begins at either side. The proxy ends: it seals `out`. The home takes nothing any more: it asks for the seal.
 * The home then receives what was sent before; the rest it makes dead letters, if the machine has ended. When `out` is
 * empty and the last request is answered, the home seals `back`, and the proxy stops. So what the proxy has accepted is
 * handled or a dead letter. If the home could not take it any more, since its runtime was freed or forced, the proxy knows
 * how many messages did not arrive, and reports these. */
#include <ebb/future.h>
#include <ebb/machine.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "future/peer.h"
#include "machine/port.h"

#include <assert.h>

enum { CREDITS = 16, MESSAGE = 64 }; /* the defaults */

/* What a bridge carries. */
typedef struct item {
    uint64_t from;    /* of `out`: the sender */
    uint64_t request; /* the requester's id of it; 0: a message */
    uint32_t size;
    uint16_t kind;
    uint8_t failure; /* of `back`: ebb_request_failure, 0: a reply */
    _Alignas(max_align_t) unsigned char bytes[];
} item;

/* A request that came and is not answered. */
typedef struct call {
    ebb__port_call call;
    ebb_machine_remote *remote;
    uint64_t request; /* the requester's id */
    uint32_t next;    /* in the free list: 1 + the index of the next one */
} call;

/* Once there is a proxy, the record is shared by two threads: each side has its own fields. `arrival` is posted once, by
 * who had the handle: with the bridges, or to say that there will be no proxy. */
struct ebb_machine_remote {
    ebb__message arrival;
    _Atomic uint32_t refs;  /* of the handle, later the proxy; of the home; of `arrival` */
    _Atomic uint32_t state; /* NEW, IMPORTED, OVER */
    _Atomic uint32_t
        received; /* messages that were taken out of `out`, modulo 2^32; the home's side writes it */
    _Atomic uint32_t credited; /* those that have left the mailbox; as before */
    ebb__heap *home;
    ebb_bridge *out, *back;
    uint32_t credits, message;
    uint32_t item_size;

    /* of the proxy's side */
    ebb_machines *near;
    ebb_machine proxy;
    uint32_t sent; /* messages, modulo 2^32 */
    uint32_t seen; /* of `credited` */
    bool has_proxy;
    item *near_item;

    /* of the home's side */
    ebb_machines *machines;
    uint32_t port;
    bool port_open, attached, finished;
    uint32_t free_call, calls; /* 1 + the first free one; how many are in use */
    item *home_item;
    call call[];
};

enum { NEW, IMPORTED, OVER };

static void release(ebb_machine_remote *r) {
    /* Release: the thread that frees it sees what the others did. Acquire: for that thread. */
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1) return;
    ebb__heap *home = r->home;
    ebb_allocator a = home->allocator;
    ebb__free(&a, r->near_item, (size_t)r->item_size * 2);
    ebb__free(&a, r, sizeof *r + r->credits * sizeof(call));
    ebb__heap_release(home);
}

/* NULL: the runtime is being freed, and its bridges are closed. */
static ebb_cx *host_of(const ebb_machines *ms) {
    ebb_runtime *rt = ebb__machines_runtime(ms);
    return rt == NULL || ebb__heap_at(rt) == NULL ? NULL : ebb_runtime_host(rt);
}

static void set_payload(item *it, uint16_t kind, const void *payload, uint32_t size) {
    it->kind = kind;
    it->size = size;
    if (size > 0) memcpy(it->bytes, payload, size);
}

/* ---- the home's side -------------------------------------------------------------------------------------------- */

/* Nothing comes any more, and nothing has to be answered: the proxy stops when it has the last answer. */
static void maybe_finish(ebb_machine_remote *r, ebb_cx *host) {
    if (r->port_open || r->calls > 0 || r->finished) return;
    r->finished = true;
    if (r->attached) {
        ebb__bridge_watch(r->out, true, NULL, NULL);
        if (host != NULL) {
            (void)ebb_bridge_close(host, r->out);
            (void)ebb_bridge_close(host, r->back);
        }
        ebb_bridge_release(r->out);
        ebb_bridge_release(r->back);
    }
    release(r);
}

static void answer(ebb_machine_remote *r, uint64_t request, uint8_t failure, const ebb_message *m) {
    ebb_cx *host = host_of(r->machines);
    item *it = r->home_item;
    it->from = m == NULL ? 0 : m->from.id;
    it->request = request;
    it->failure = failure;
    if (failure == 0) set_payload(it, m->kind, m->payload, m->size);
    else set_payload(it, EBB_MACHINE_REQUEST_FAILED, NULL, 0);
    ebb_status st = host == NULL ? EBB_ERR_CLOSED : ebb_bridge_try_send(host, r->back, it);
    assert(st != EBB_PENDING); /* it has the credit of its request */
    if (st != EBB_OK && failure == 0) ebb__port_late(r->machines, m);
}

static void answered(void *arg, const ebb_message *m) {
    call *c = arg;
    ebb_machine_remote *r = c->remote;
    answer(r, c->request, m->failure, m);
    c->next = r->free_call;
    r->free_call = 1 + (uint32_t)(c - r->call);
    r->calls--;
    maybe_finish(r, host_of(r->machines));
}

static void deliver_request(ebb_machine_remote *r, const item *it) {
    assert(r->free_call != 0); /* the requester had a credit */
    call *c = &r->call[r->free_call - 1];
    r->free_call = c->next;
    r->calls++;
    *c = (call){.call = {.answered = answered, .most = r->message}, .remote = r, .request = it->request};
    uint8_t failure = ebb__port_request(r->machines, r->port, (ebb_machine){it->from}, it->kind, it->bytes,
                                        it->size, &c->call);
    if (failure == 0) return;
    answered(c, &(ebb_message){.failure = failure});
}

static void count(_Atomic uint32_t *n) {
    /* Release: the proxy's side that sees a credit sees the free place of the bridge, too. Only this side writes it. */
    atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_release);
}

static void taken(void *link) {
    count(&((ebb_machine_remote *)link)->credited);
}

static void deliver(ebb_machine_remote *r, const item *it) {
    if (it->request != 0) {
        deliver_request(r, it);
        return;
    }
    count(&r->received);
    ebb_status st =
        ebb__port_send(r->machines, r->port, (ebb_machine){it->from}, it->kind, it->bytes, it->size);
    if (st != EBB_OK) taken(r); /* a dead letter */
}

static void keep(ebb_machine_remote *r) {
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed); /* the caller has one already */
}

/* The watch of `out`. Hooks of the program may run in it, which may end the machines. */
static void home_receive(void *arg) {
    ebb_machine_remote *r = arg;
    ebb_status st = EBB_OK;
    keep(r);
    while (r->port_open && st == EBB_OK) {
        ebb_cx *host = host_of(r->machines);
        st = ebb_bridge_try_recv(host, r->out, r->home_item);
        if (st == EBB_OK) deliver(r, r->home_item);
        if (st != EBB_ERR_CLOSED) continue;
        r->port_open = false;
        ebb__port_close(r->machines, r->port);
        maybe_finish(r, host);
    }
    release(r);
}

static void shut(void *link) {
    ebb_machine_remote *r = link;
    ebb_cx *host = host_of(r->machines);
    uint32_t before = NEW;
    if (r->attached) {
        if (host != NULL)
            (void)ebb_bridge_close(host, r->out); /* CLOSED comes when the proxy's side agrees */
        return;
    }
    /* Relaxed: nothing else was written for the other side. If it fails, the arrival is under way. */
    if (!atomic_compare_exchange_strong_explicit(&r->state, &before, OVER, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    r->port_open = false;
    ebb__port_close(r->machines, r->port);
    maybe_finish(r, host);
}

static void gone(void *link) {
    ebb_machine_remote *r = link;
    ebb_cx *host = host_of(r->machines);
    if (r->attached && host != NULL) {
        (void)ebb_bridge_close(host, r->out);
        while (ebb_bridge_try_recv(host, r->out, r->home_item) == EBB_OK) deliver(r, r->home_item);
    }
    r->port_open = false;
    maybe_finish(r, host);
}

static const ebb__port_ops port_ops = {taken, shut, gone};

static void take_imported(ebb_runtime *rt, ebb__message *m) {
    ebb_machine_remote *r = (ebb_machine_remote *)(void *)m; /* the message is the first member */
    if (r->finished || rt == NULL) {
        if (rt != NULL) {
            (void)ebb_bridge_close(ebb_runtime_host(rt), r->out);
            (void)ebb_bridge_close(ebb_runtime_host(rt), r->back);
        }
        ebb_bridge_release(r->out);
        ebb_bridge_release(r->back);
    } else {
        r->attached = true;
        ebb__bridge_watch(r->out, true, home_receive, r);
        if (ebb__port_is_shut(r->machines, r->port)) (void)ebb_bridge_close(ebb_runtime_host(rt), r->out);
        home_receive(r);
    }
    release(r);
}

static void take_released(ebb_runtime *rt, ebb__message *m) {
    ebb_machine_remote *r = (ebb_machine_remote *)(void *)m;
    if (rt != NULL && r->port_open) {
        r->port_open = false;
        ebb__port_close(r->machines, r->port);
        maybe_finish(r, ebb_runtime_host(rt));
    }
    release(r);
}

/* ---- the proxy's side ------------------------------------------------------------------------------------------- */

static ebb_status forward(void *link, const ebb_message *m) {
    ebb_machine_remote *r = link;
    ebb_cx *host = host_of(r->near);
    item *it = r->near_item;
    it->from = m->from.id;
    it->request = m->request.id;
    it->failure = 0;
    set_payload(it, m->kind, m->payload, m->size);
    ebb_status st = host == NULL ? EBB_ERR_CLOSED : ebb_bridge_try_send(host, r->out, it);
    assert(st != EBB_PENDING); /* it has a credit */
    if (st == EBB_OK && it->request == 0) r->sent++;
    return st;
}

static uint32_t credits(void *link) {
    ebb_machine_remote *r = link;
    /* Acquire: the item of the message was taken out of the bridge. */
    uint32_t now = atomic_load_explicit(&r->credited, memory_order_acquire), back = now - r->seen;
    r->seen = now;
    return back;
}

static void proxy_ended(void *link) {
    ebb_machine_remote *r = link;
    ebb_cx *host = host_of(r->near);
    r->has_proxy = false;
    ebb__bridge_watch(r->out, false, NULL, NULL);
    ebb__bridge_watch(r->back, true, NULL, NULL);
    if (host != NULL) {
        (void)ebb_bridge_close(host, r->out);
        (void)ebb_bridge_close(host, r->back);
    }
    ebb_bridge_release(r->out);
    ebb_bridge_release(r->back);
    release(r);
}

static const ebb__proxy_ops proxy_ops = {forward, credits, proxy_ended};

/* The watch of both bridges. Hooks of the program may run in it, which may stop the proxy. */
static void near_receive(void *arg) {
    ebb_machine_remote *r = arg;
    ebb_status st = EBB_OK;
    keep(r);
    if (ebb__bridge_is_shut(r->out)) ebb__proxy_shut(r->near, r->proxy);
    while (r->has_proxy && st == EBB_OK) {
        const item *it = r->near_item;
        st = ebb_bridge_try_recv(host_of(r->near), r->back, r->near_item);
        if (st == EBB_OK) {
            ebb__proxy_answer(r->near, r->proxy, (ebb_request){it->request}, it->failure, it->kind, it->bytes,
                              it->size);
        } else if (st == EBB_ERR_CLOSED) {
            /* Acquire: as of all that happened before the bridge was closed. */
            ebb__proxy_stop(r->near, r->proxy,
                            r->sent - atomic_load_explicit(&r->received, memory_order_acquire));
        }
    }
    release(r);
}

/* ---- handles ------------------------------------------------------------------------------------------------------ */

static ebb_machine_remote *new_record(ebb__heap *home, uint32_t n, uint32_t message) {
    ebb_allocator *a = &home->allocator;
    uint32_t align = _Alignof(max_align_t);
    uint32_t item_size = (uint32_t)sizeof(item) + (message + align - 1) / align * align;
    ebb_machine_remote *r = ebb__alloc(a, sizeof *r + n * sizeof(call));
    void *items = ebb__alloc(a, (size_t)item_size * 2);
    if (r == NULL || items == NULL) {
        ebb__free(a, r, sizeof *r + n * sizeof(call));
        ebb__free(a, items, (size_t)item_size * 2);
        return NULL;
    }
    memset(r, 0, sizeof *r + n * sizeof(call));
    r->home = ebb__heap_keep(home);
    r->credits = n;
    r->message = message;
    r->item_size = item_size;
    r->near_item = items;
    r->home_item = (item *)(void *)((char *)items + item_size);
    atomic_init(&r->refs, 3);
    atomic_init(&r->state, NEW);
    atomic_init(&r->received, 0);
    atomic_init(&r->credited, 0);
    for (uint32_t i = 0; i < n; i++) r->call[i].next = i + 1 < n ? i + 2 : 0;
    r->free_call = 1;
    return r;
}

ebb_status ebb_machine_remote_new(ebb_machines *ms, ebb_machine machine, const ebb_machine_remote_opts *opts,
                                  ebb_machine_remote **out) {
    ebb_machine_remote_opts known;
    *out = NULL;
    ebb_status st = EBB__OPTS_COPY(&known, opts);
    if (st != EBB_OK) return st;
    if (known.credits == 0) known.credits = CREDITS;
    if (known.message == 0) known.message = MESSAGE;
    if (known.credits > EBB_MACHINE_MAILBOX_MAX || known.message > EBB_MACHINE_MESSAGE_MAX)
        return EBB_ERR_INVALID;
    if (ebb__machines_runtime(ms) == NULL) return EBB_ERR_CLOSED;
    ebb__heap *home = ebb__heap_get(ebb__machines_runtime(ms));
    ebb_machine_remote *r = home == NULL ? NULL : new_record(home, known.credits, known.message);
    if (r == NULL) return EBB_ERR_NOMEM;
    r->machines = ms;
    st = ebb__port_open(ms, machine, (uint16_t)known.credits, &port_ops, r, &r->port);
    if (st != EBB_OK) {
        atomic_store_explicit(&r->refs, 1, memory_order_relaxed); /* nobody else has it */
        release(r);
        return st;
    }
    r->port_open = true;
    *out = r;
    return EBB_OK;
}

/* Says that there will be no proxy, and drops the handle's reference. */
static void say_released(ebb_machine_remote *r) {
    r->arrival.take = take_released;
    if (!ebb__post(r->home, &r->arrival)) release(r);
    release(r);
}

void ebb_machine_remote_release(ebb_machine_remote *r) {
    if (r != NULL) say_released(r);
}

static ebb_status make_bridges(ebb_machine_remote *r, ebb__heap *here) {
    ebb_peer *near = (ebb_peer *)(void *)here, *home = (ebb_peer *)(void *)r->home;
    if ((uint64_t)r->credits * r->item_size > INT32_MAX) return EBB_ERR_LIMIT;
    ebb_status st = ebb_bridge_new(near, home, r->credits, r->item_size, &r->out);
    if (st == EBB_OK) st = ebb_bridge_new(home, near, r->credits, r->item_size, &r->back);
    return st;
}

/* The proxy has the handle's reference from here on. */
static ebb_status make_proxy(ebb_machine_remote *r, ebb_machines *ms) {
    r->near = ms;
    r->proxy = ebb__proxy_new(ms, &proxy_ops, r, (uint16_t)r->credits, r->message);
    ebb_status st = ebb_id_status(r->proxy.id);
    if (st != EBB_OK) return st;
    r->has_proxy = true;
    ebb__bridge_watch(r->out, false, near_receive, r);
    ebb__bridge_watch(r->back, true, near_receive, r);
    (void)ebb_bridge_keep(r->out); /* for the home */
    (void)ebb_bridge_keep(r->back);
    return EBB_OK;
}

static ebb_status import(ebb_machine_remote *r, ebb_machines *ms) {
    ebb__heap *here = ebb__machines_runtime(ms) == NULL ? NULL : ebb__heap_get(ebb__machines_runtime(ms));
    uint32_t before = NEW;
    if (here == NULL) return ebb__machines_runtime(ms) == NULL ? EBB_ERR_CLOSED : EBB_ERR_NOMEM;
    if (here == r->home) return EBB_ERR_INVALID;
    /* Relaxed: as in `shut`. */
    if (!atomic_compare_exchange_strong_explicit(&r->state, &before, IMPORTED, memory_order_relaxed,
                                                 memory_order_relaxed))
        return EBB_ERR_CLOSED;
    ebb_status st = make_bridges(r, here);
    return st == EBB_OK ? make_proxy(r, ms) : st;
}

ebb_machine ebb_machine_remote_import(ebb_machines *ms, ebb_machine_remote *r) {
    ebb_status st = import(r, ms);
    if (st != EBB_OK) {
        ebb_bridge_release(r->out);
        ebb_bridge_release(r->back);
        say_released(r);
        return (ebb_machine){(uint64_t)(uint32_t)-st << 32};
    }
    ebb_machine id = r->proxy;
    keep(r);
    r->arrival.take = take_imported;
    if (!ebb__post(r->home, &r->arrival)) {
        ebb_bridge_release(r->out);
        ebb_bridge_release(r->back);
        release(r);
        ebb__proxy_stop(ms, id, 0);
        id.id = (uint64_t)(uint32_t)-EBB_ERR_CLOSED << 32;
    } else {
        near_receive(r);
    }
    release(r);
    return id;
}
