/* machine/port.h - the two ends of a link between machines of different runtimes, as machines see them. An adapter above
 * moves what goes between them.
 *
 * A *proxy* is a machine that stands for one of another runtime. Its mailbox has as many places as the link has credits.
 * What it is sent it hands to the adapter, and the place stays in use: it is a credit that comes back when the message
 * has left the mailbox of the other machine, or with the answer of a request. A proxy holds the capability of each
 * request until its answer comes. A fault ends the dispatch, but not the proxy.
 *
 * A *port* is a number of places that is reserved in the mailbox of a machine for what comes over a link. So what a
 * proxy has accepted finds its place.
 *
 * These functions are called outside of dispatches, except where they say otherwise. */
#ifndef EBB_MACHINE_PORT_H
#define EBB_MACHINE_PORT_H

#include <ebb/machine.h>

/* ---- both ends -------------------------------------------------------------------------------------------- */

/* NULL: it was freed. */
ebb_runtime *ebb__machines_runtime(const ebb_machines *ms);
/* What may cross: bytes of a kind without references. EBB_ERR_INVALID: there is no such kind. EBB_ERR_FOREIGN: it has
 * references. EBB_ERR_LIMIT: more than `most` bytes. */
ebb_status ebb__machine_crosses(const ebb_machines *ms, uint16_t kind, size_t size, uint32_t most);

/* ---- the proxy -------------------------------------------------------------------------------------------- */

typedef struct ebb__proxy_ops {
    /* In a dispatch: moves a message or a request on. EBB_ERR_CLOSED: the other end takes nothing any more. */
    ebb_status (*forward)(void *link, const ebb_message *m);
    /* How many credits have come back since it was called last. May be called in a dispatch. */
    uint32_t (*credits)(void *link);
    /* The proxy has ended; the last call. May be called in a dispatch, and when the runtime was freed. */
    void (*ended)(void *link);
} ebb__proxy_ops;

/* Spawns and starts a proxy. It returns an id as ebb_machine_spawn does, and calls nothing of `ops` after an error. */
ebb_machine ebb__proxy_new(ebb_machines *ms, const ebb__proxy_ops *ops, void *link, uint16_t credits,
                           uint32_t most);
/* The answer to a request that the proxy has forwarded, and its credit. `failure` 0: a reply. A reply that can't be
 * delivered fails the request as FAULTED. */
void ebb__proxy_answer(ebb_machines *ms, ebb_machine proxy, ebb_request request, uint8_t failure,
                       uint16_t kind, const void *payload, uint32_t size);
/* The other end takes nothing any more: sends are refused with EBB_ERR_NOT_RUNNING from now on. */
void ebb__proxy_shut(ebb_machines *ms, ebb_machine proxy);
/* Stops it: the other end is gone. `lost` messages did not arrive there: each is a dead letter without a payload. */
void ebb__proxy_stop(ebb_machines *ms, ebb_machine proxy, uint32_t lost);

/* ---- the port --------------------------------------------------------------------------------------------- */

typedef struct ebb__port_ops {
    /* A message that was sent through the port has left the mailbox. May be called in a dispatch. */
    void (*taken)(void *link);
    /* Nothing more is to be sent through it: its machine has ended, or the machines drain. The adapter closes the port
     * when all that is under way has come. Called once; may be called in a dispatch. */
    void (*shut)(void *link);
    /* The machines end without waiting; the last call. What is still sent is a dead letter; the port is closed when this
     * returns. May be called when the runtime is freed. */
    void (*gone)(void *link);
} ebb__port_ops;

/* A request that came over the link; the adapter's, until it is answered. */
typedef struct ebb__port_call {
    void (*answered)(void *call,
                     const ebb_message *m); /* with the answer, as `answered` of ebb_machine_call */
    uint32_t most;                          /* bytes of a reply */
    uint32_t port;                          /* set by ebb__port_request */
} ebb__port_call;

/* Reserves places in the mailbox of a machine. EBB_ERR_MAILBOX_FULL: it has not so many free. EBB_ERR_NOT_RUNNING,
 * EBB_ERR_UNKNOWN_MACHINE, EBB_ERR_CLOSED, EBB_ERR_NOMEM. A drain waits until the port is closed. */
ebb_status ebb__port_open(ebb_machines *ms, ebb_machine machine, uint16_t places, const ebb__port_ops *ops,
                          void *link, uint32_t *port);
/* Gives the places back. */
void ebb__port_close(ebb_machines *ms, uint32_t port);
/* `shut` was called. */
bool ebb__port_is_shut(const ebb_machines *ms, uint32_t port);
/* Delivers a message from the machine `from` of another runtime. An error: it is a dead letter. */
ebb_status ebb__port_send(ebb_machines *ms, uint32_t port, ebb_machine from, uint16_t kind,
                          const void *payload, uint32_t size);
/* Delivers a request. If it can't be delivered it is a dead letter, and the call returns the failure that the requester
 * has to get; `call->answered` is not called then. 0: it was delivered. */
uint8_t ebb__port_request(ebb_machines *ms, uint32_t port, ebb_machine from, uint16_t kind,
                          const void *payload, uint32_t size, ebb__port_call *call);
/* An answer that found nobody any more: a dead letter. */
void ebb__port_late(ebb_machines *ms, const ebb_message *m);

#endif
