/* The ends of a link to another runtime: the proxy, which machines here send to, and the port, through which what was
 * sent to a proxy elsewhere comes into a mailbox here. */
#include "machine/machine.h"

#include <assert.h>

ebb_runtime *ebb__machines_runtime(const ebb_machines *ms) {
    return ms->rt;
}

ebb_status ebb__machine_crosses(const ebb_machines *ms, uint16_t kind, size_t size, uint32_t most) {
    if (kind == EBB_MACHINE_REQUEST_FAILED || kind >= ms->opts.n_kinds) return EBB_ERR_INVALID;
    const ebb_machine_kind *k = ebb_machines_kind(ms, kind);
    if (k != NULL && (k->keep != NULL || k->drop != NULL)) return EBB_ERR_FOREIGN;
    return size > most ? EBB_ERR_LIMIT : EBB_OK;
}

/* What begins an operation of the adapter: one from outside, that a close does not refuse. */
static void enter(ebb_machines *ms, ebb_machine from) {
    assert(ms->running == NULL && ms->log == NULL);
    ms->self = from.id;
    ms->staged_bytes = ms->effects = 0;
    ms->now_read = false;
}

/* Reports a message that is in no cell. */
static void report(ebb_machines *ms, const ebb_dead_letter *dead) {
    bool outer = ms->hooking;
    ms->stats.dead++;
    ebb__machine_note(ms, EBB_EV_MACHINE_DROPPED, dead->to.id, dead->from.id, (uint32_t)dead->reason, 0);
    if (ms->opts.dead_letter == NULL) return;
    ms->hooking = true;
    ms->opts.dead_letter(ms->opts.arg, dead);
    ms->hooking = outer;
}

/* ---- the proxy ---------------------------------------------------------------------------------------------------- */

/* The fields of a proxy. */
typedef struct proxy {
    const ebb__proxy_ops *ops;
    void *link;
    uint32_t most; /* bytes of a payload */
} proxy;

/* The last step is the forwarding, which can't be taken back. */
static ebb_status forward(ebb_machines *ms, void *self, const ebb_message *m) {
    const proxy *p = self;
    ebb_status st = m->request.id == 0 ? EBB_OK : ebb_id_status(ebb_machine_hold(ms).id);
    if (st == EBB_OK) st = p->ops->forward(p->link, m);
    if (st == EBB_ERR_CLOSED && m->request.id != 0) return EBB_OK; /* fails as STOPPED when the proxy stops */
    if (st == EBB_OK) ms->running->places++;
    return st;
}

const ebb_machine_rule ebb__proxy_rule = {forward, NULL, EBB_MACHINE_HANDLE};

static void settle(const ebb_machine_type *type, bool committed, uint32_t old_state, void *old,
                   uint32_t now_state, void *now) {
    const proxy *p = old;
    (void)type;
    (void)committed;
    (void)old_state;
    (void)now_state;
    if (now == NULL && p->ops != NULL) p->ops->ended(p->link);
}

static const ebb_machine_state open_state = {.name = "Open"};
static const ebb_machine_type proxy_type = {
    .name = "Proxy", .states = &open_state, .fields = sizeof(proxy), .n_states = 1, .settle = settle};

ebb_status ebb__proxy_admits(const ebb_machines *ms, const ebb__machine *m, uint16_t kind, size_t size) {
    const proxy *p = m->fields;
    if (m->flags & EBB__M_SHUT) return EBB_ERR_NOT_RUNNING;
    return ebb__machine_crosses(ms, kind, size, p->most);
}

ebb_status ebb__proxy_looks_again(ebb__machine *m) {
    const proxy *p = m->fields;
    uint32_t back = p->ops->credits(p->link);
    assert(back <= m->places);
    m->places = (uint16_t)(m->places - back);
    return back > 0 ? EBB_OK : EBB_ERR_MAILBOX_FULL;
}

/* The index of a proxy that has not stopped, or 0. */
static uint32_t find_proxy(const ebb_machines *ms, ebb_machine id) {
    uint32_t i;
    if (ms->rt == NULL || ms->cx == NULL || ebb__machine_receiver(ms, id, &i) != EBB_OK) return 0;
    assert(ebb__machine_at(ms, i)->flags & EBB__M_PROXY);
    return i;
}

ebb_machine ebb__proxy_new(ebb_machines *ms, const ebb__proxy_ops *ops, void *link, uint16_t credits,
                           uint32_t most) {
    if (ms->rt == NULL) return (ebb_machine){(uint64_t)(uint32_t)-EBB_ERR_CLOSED << 32};
    if (ms->running != NULL) return (ebb_machine){ebb__id_error(ms->rt, EBB_ERR_INVALID)};
    ebb_machine id = ebb_machine_spawn(ms, &proxy_type, 0, NULL);
    ebb_status st = ebb_id_status(id.id);
    if (st != EBB_OK) return id;
    st = ebb_machine_start(ms, id);
    uint32_t i = (uint32_t)(id.id >> 32) & 0xffffff;
    if (st != EBB_OK) {
        ebb__machine_end(ms, i, EBB_MACHINE_STOPPED);
        return (ebb_machine){ebb__id_error(ms->rt, st)};
    }
    ebb__machine *m = ebb__machine_at(ms, i);
    *(proxy *)m->fields = (proxy){ops, link, most};
    m->mailbox = credits;
    m->flags |= EBB__M_PROXY;
    return id;
}

/* The request that a proxy holds; false: it holds it no more. */
static bool find_held(const ebb_machines *ms, uint32_t proxy_index, ebb_request id, uint32_t *i) {
    if (ebb__lookup(ms->rt, &ms->pendings, id.id, i) != EBB_OK) return false;
    const ebb__pending *p = ebb__pending_at(ms, *i);
    return p->flags & EBB__HELD && p->responder == proxy_index;
}

void ebb__proxy_answer(ebb_machines *ms, ebb_machine id, ebb_request request, uint8_t failure, uint16_t kind,
                       const void *payload, uint32_t size) {
    uint32_t i = find_proxy(ms, id), k;
    if (i == 0) return;
    ebb__machine_at(ms, i)->places--;
    if (failure == 0) {
        ebb_status st = ebb__machine_crosses(ms, kind, size, EBB_MACHINE_MESSAGE_MAX);
        if (st == EBB_OK) st = ebb_machine_reply(ms, request, kind, payload, size);
        if (st == EBB_OK) return;
        failure = EBB_REQUEST_FAULTED;
    }
    enter(ms, id);
    if (find_held(ms, i, request, &k)) ebb__pending_lost(ms, k, (ebb_request_failure)failure);
    ebb__stage_leave(ms);
}

void ebb__proxy_shut(ebb_machines *ms, ebb_machine id) {
    uint32_t i = find_proxy(ms, id);
    if (i == 0) return;
    ebb__machine_at(ms, i)->flags |= EBB__M_SHUT;
}

void ebb__proxy_stop(ebb_machines *ms, ebb_machine id, uint32_t lost) {
    uint32_t i = find_proxy(ms, id);
    if (i == 0) return;
    enter(ms, id);
    while (lost-- > 0) report(ms, &(ebb_dead_letter){.reason = EBB_DEAD_STOPPED, .to = id});
    if (find_proxy(ms, id) != 0)
        ebb__machine_end(ms, i, EBB_MACHINE_STOPPED); /* a hook may have stopped it */
    ebb__stage_leave(ms);
}

/* ---- ports: open and close ------------------------------------------------------------------------------------------ */

static ebb__port *port_at(const ebb_machines *ms, uint32_t i) {
    return ebb__slab_at(&ms->ports, i);
}

static void link_port(ebb_machines *ms, uint32_t *first, uint32_t i) {
    port_at(ms, i)->next = *first;
    if (*first != 0) port_at(ms, *first)->prev = i;
    *first = i;
}

ebb_status ebb__port_open(ebb_machines *ms, ebb_machine machine, uint16_t places, const ebb__port_ops *ops,
                          void *link, uint32_t *port) {
    uint32_t i;
    if (ms->cx == NULL || ms->cancelled || ebb_stopping(ms->cx)) return EBB_ERR_CLOSED;
    if (ms->running != NULL) return EBB_ERR_INVALID;
    ebb_status st = ebb__machine_receiver(ms, machine, &i);
    if (st != EBB_OK) return st;
    ebb__machine *m = ebb__machine_at(ms, i);
    if (m->flags & EBB__M_PROXY) return EBB_ERR_INVALID;
    if (m->mailbox - m->places < places) return EBB_ERR_MAILBOX_FULL;
    if ((st = ebb__slab_reserve(&ms->ports, &ms->allocator)) != EBB_OK) return st;
    uint32_t *first = ebb__map_put(&ms->port_of, i);
    if (first == NULL) return EBB_ERR_NOMEM;
    uint32_t k = *port = ebb__slab_take(&ms->ports);
    ebb__port *p = port_at(ms, k);
    *p = (ebb__port){.generation = p->generation,
                     .machine = i,
                     .places = places,
                     .ops = ops,
                     .arg = link,
                     .id = machine.id};
    link_port(ms, first, k);
    m->places = (uint16_t)(m->places + places);
    m->flags |= EBB__M_PORTED;
    ms->open_ports++;
    return EBB_OK;
}

static void unlink_port(ebb_machines *ms, const ebb__port *p) {
    if (p->next != 0) port_at(ms, p->next)->prev = p->prev;
    if (p->prev != 0) port_at(ms, p->prev)->next = p->next;
    else if (p->next != 0) *(uint32_t *)ebb__map_find(&ms->port_of, p->machine) = p->next;
    else ebb__map_remove(&ms->port_of, p->machine);
}

static void leave_machine(ebb_machines *ms, ebb__port *p) {
    unlink_port(ms, p);
    if (ebb__map_find(&ms->port_of, p->machine) == NULL)
        ebb__machine_at(ms, p->machine)->flags &= (uint8_t)~EBB__M_PORTED;
    p->machine = 0;
}

static void maybe_free(ebb_machines *ms, uint32_t port) {
    const ebb__port *p = port_at(ms, port);
    if (p->ops == NULL && p->queued == 0) ebb__slab_give(&ms->ports, port);
}

/* The places of messages that are still in the mailbox are given back when these are taken out. */
static void close_port(ebb_machines *ms, uint32_t port) {
    ebb__port *p = port_at(ms, port);
    p->ops = NULL;
    ms->open_ports--;
    if (p->machine != 0) {
        ebb__machine *m = ebb__machine_at(ms, p->machine);
        m->places = (uint16_t)(m->places - (p->places - p->queued));
        if (p->queued == 0) leave_machine(ms, p);
    }
    maybe_free(ms, port);
}

void ebb__port_close(ebb_machines *ms, uint32_t port) {
    close_port(ms, port);
    if (ms->cx != NULL && ebb_stopping(ms->cx)) ebb__dispatcher_wake(ms);
}

bool ebb__port_is_shut(const ebb_machines *ms, uint32_t port) {
    return port_at(ms, port)->shut;
}

/* ---- ports: what the machines say ------------------------------------------------------------------------------------ */

static void shut(ebb__port *p) {
    if (p->shut) return;
    p->shut = true;
    p->ops->shut(p->arg);
}

static uint32_t port_of(const ebb_machines *ms, const ebb__cell *c) {
    if (c->what != EBB__REQUEST) return c->ref;
    return ((const ebb__port_call *)ebb__pending_more_at(ms, c->ref)->arg)->port;
}

void ebb__port_taken(ebb_machines *ms, const ebb__cell *c) {
    uint32_t i = port_of(ms, c);
    ebb__port *p = port_at(ms, i);
    p->queued--;
    if (p->ops != NULL) {
        if (c->what == EBB__MESSAGE) p->ops->taken(p->arg);
        return;
    }
    ebb__machine_at(ms, p->machine)->places--;
    if (p->queued == 0) leave_machine(ms, p);
    maybe_free(ms, i);
}

void ebb__ports_ended(ebb_machines *ms, uint32_t machine, bool faulted) {
    uint32_t next = *(const uint32_t *)ebb__map_find(&ms->port_of, machine);
    ebb__map_remove(&ms->port_of, machine);
    ebb__machine_at(ms, machine)->flags &= (uint8_t)~EBB__M_PORTED;
    for (uint32_t i; (i = next) != 0;) {
        ebb__port *p = port_at(ms, i);
        next = p->next;
        assert(p->ops != NULL && p->queued == 0); /* the mailbox is empty */
        p->machine = 0;
        p->faulted = faulted;
        shut(p); /* may close it */
    }
}

bool ebb__ports_drain(ebb_machines *ms) {
    for (uint32_t i = 1; i < ms->ports.used; i++)
        if (port_at(ms, i)->ops != NULL) shut(port_at(ms, i));
    return ms->open_ports > 0;
}

void ebb__ports_gone(ebb_machines *ms) {
    for (uint32_t i = 1; i < ms->ports.used; i++) {
        ebb__port *p = port_at(ms, i);
        if (p->ops == NULL) continue;
        p->gone = true;
        p->ops->gone(p->arg);
        close_port(ms, i);
    }
}

/* ---- ports: what comes ---------------------------------------------------------------------------------------------- */

static ebb_dead_reason reason_of(const ebb__port *p, ebb_status st) {
    if (st == EBB_ERR_NOT_RUNNING) return p->faulted ? EBB_DEAD_FAULTED : EBB_DEAD_STOPPED;
    return st == EBB_ERR_NOMEM ? EBB_DEAD_FAULTED : EBB_DEAD_UNHANDLED;
}

static uint8_t failure_of(ebb_dead_reason why) {
    if (why == EBB_DEAD_STOPPED) return EBB_REQUEST_STOPPED;
    return why == EBB_DEAD_FAULTED ? EBB_REQUEST_FAULTED : EBB_REQUEST_UNHANDLED;
}

static ebb_dead_reason refuse(ebb_machines *ms, uint32_t port, ebb_machine from, uint16_t kind,
                              const void *payload, uint32_t size, ebb_status st) {
    const ebb__port *p = port_at(ms, port);
    ebb_dead_reason why = reason_of(p, st);
    report(ms, &(ebb_dead_letter){why, {p->id}, from, payload, size, kind});
    ebb__stage_leave(ms);
    return why;
}

static ebb_status check(const ebb_machines *ms, uint32_t port, uint16_t kind, uint32_t size) {
    if (port_at(ms, port)->machine == 0 || port_at(ms, port)->gone) return EBB_ERR_NOT_RUNNING;
    return ebb__machine_crosses(ms, kind, size, EBB_MACHINE_MESSAGE_MAX);
}

ebb_status ebb__port_send(ebb_machines *ms, uint32_t port, ebb_machine from, uint16_t kind,
                          const void *payload, uint32_t size) {
    enter(ms, from);
    ebb_status st = check(ms, port, kind, size);
    ebb__cell *c = st == EBB_OK ? ebb__cell_new(ms, kind, payload, size, &st) : NULL;
    if (c == NULL) {
        (void)refuse(ms, port, from, kind, payload, size, st);
        return st;
    }
    c->flags |= EBB__PORTED;
    c->ref = port;
    port_at(ms, port)->queued++;
    ebb__stage(ms, c, EBB__MESSAGE, port_at(ms, port)->machine);
    ebb__stage_leave(ms);
    return EBB_OK;
}

static void answered(void *arg, const ebb_message *m) {
    ebb__port_call *call = arg;
    call->answered(call, m);
}

uint8_t ebb__port_request(ebb_machines *ms, uint32_t port, ebb_machine from, uint16_t kind,
                          const void *payload, uint32_t size, ebb__port_call *call) {
    enter(ms, from);
    call->port = port;
    ebb_status st = check(ms, port, kind, size);
    if (st == EBB_OK)
        st = ebb__pending_call(ms, port_at(ms, port)->machine, kind, payload, size, answered, call);
    if (st != EBB_OK) return failure_of(refuse(ms, port, from, kind, payload, size, st));
    port_at(ms, port)->queued++;
    ebb__stage_leave(ms);
    return 0;
}

void ebb__port_late(ebb_machines *ms, const ebb_message *m) {
    report(ms, &(ebb_dead_letter){EBB_DEAD_LATE, {0}, m->from, m->payload, m->size, m->kind});
}
