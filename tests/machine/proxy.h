/* The roles of tests of proxies: a machine that asks, and one at home in another runtime that is asked. */
#ifndef EBB_TESTS_PROXY_H
#define EBB_TESTS_PROXY_H

#include <ebb/ebb.h>
#include <string.h>

enum { PUT = 1, ASK, HANG, BREAK, LATER, WAKE, DO, SUM, BAG, UNKNOWN, KINDS };
enum { NUMBERS = 256 };

/* What the machine at home has seen. */
static struct at_home {
    uint64_t got[NUMBERS];
    uint32_t got_n;
    ebb_machine from;
    ebb_request held[NUMBERS];
    uint32_t held_n;
    uint16_t reply_kind; /* 0: SUM */
    uint32_t reply_size; /* 0: 8 */
    ebb_status reply;    /* of the last reply */
} at_home;

/* What the asking machine has heard, in order: a failure, or 100 + the reply. */
static struct at_near {
    uint64_t heard[NUMBERS];
    uint32_t heard_n;
    uint32_t label;
    uint64_t origin;
    ebb_machine from;
    ebb_status st; /* of the last send or request */
} at_near;

/* The payload of DO. */
typedef struct order {
    ebb_machine to;
    uint64_t number, within;
    uint16_t kind;
    bool asks;
} order;

/* ---- at home ------------------------------------------------------------------------------------------------ */

static ebb_status on_put(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    (void)self;
    memcpy(&at_home.got[at_home.got_n++ % NUMBERS], m->payload, sizeof(uint64_t));
    at_home.from = m->from;
    return EBB_OK;
}

static ebb_status on_ask(ebb_machines *ms, void *self, const ebb_message *m) {
    unsigned char sum[256] = {0};
    memcpy(sum, m->payload, sizeof(uint64_t));
    at_home.reply = ebb_machine_reply(ms, m->request, at_home.reply_kind != 0 ? at_home.reply_kind : SUM, sum,
                                      at_home.reply_size != 0 ? at_home.reply_size : sizeof(uint64_t));
    (void)self;
    return at_home.reply;
}

static ebb_status on_hang(ebb_machines *ms, void *self, const ebb_message *m) {
    ebb_request r = ebb_machine_hold(ms);
    (void)self;
    (void)m;
    if (ebb_id_status(r.id) == EBB_OK) at_home.held[at_home.held_n++ % NUMBERS] = r;
    return ebb_id_status(r.id);
}

static ebb_status on_break(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    (void)self;
    (void)m;
    return EBB_FAILED;
}

static ebb_status on_wake(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    (void)m;
    return ebb_machine_become(ms, 1, NULL);
}

/* ---- here --------------------------------------------------------------------------------------------------- */

static ebb_status on_do(ebb_machines *ms, void *self, const ebb_message *m) {
    order o;
    (void)self;
    memcpy(&o, m->payload, sizeof o);
    if (!o.asks) {
        at_near.st = ebb_machine_send(ms, o.to, o.kind, &o.number, sizeof o.number);
        return EBB_OK;
    }
    ebb_request r = ebb_machine_request(ms, o.to, o.kind, &o.number, sizeof o.number, o.within, 77);
    at_near.st = ebb_id_status(r.id);
    return EBB_OK;
}

static ebb_status on_answer(ebb_machines *ms, void *self, const ebb_message *m) {
    uint64_t n = 0;
    (void)ms;
    (void)self;
    if (m->failure == 0) memcpy(&n, m->payload, sizeof n);
    at_near.heard[at_near.heard_n++ % NUMBERS] = m->failure != 0 ? m->failure : 100 + n;
    at_near.label = m->label;
    at_near.from = m->from;
    memcpy(&at_near.origin, m->origin, sizeof at_near.origin);
    return EBB_OK;
}

/* ---- types -------------------------------------------------------------------------------------------------- */

#define ON(fn)                                                                                               \
    { fn, NULL, EBB_MACHINE_HANDLE }
static const ebb_machine_rule home_table[2 * KINDS] = {[PUT] = ON(on_put),
                                                       [ASK] = ON(on_ask),
                                                       [HANG] = ON(on_hang),
                                                       [BREAK] = ON(on_break),
                                                       [LATER] = {NULL, NULL, EBB_MACHINE_DEFER},
                                                       [WAKE] = ON(on_wake),
                                                       [KINDS + PUT] = ON(on_put),
                                                       [KINDS + LATER] = ON(on_put)};
static const ebb_machine_rule near_table[KINDS] = {
    [EBB_MACHINE_REQUEST_FAILED] = ON(on_answer), [DO] = ON(on_do), [SUM] = ON(on_answer)};
#undef ON
static const ebb_machine_state home_states[2] = {{.name = "Asleep"}, {.name = "Awake"}};
static const ebb_machine_state near_state = {.name = "Only"};
static const ebb_machine_type home_type = {.name = "Home",
                                           .states = home_states,
                                           .table = home_table,
                                           .n_states = 2,
                                           .columns = KINDS,
                                           .mailbox = 8};
static const ebb_machine_type near_type = {
    .name = "Near", .states = &near_state, .table = near_table, .n_states = 1, .columns = KINDS};

static inline void no_reference(void *payload) {
    (void)payload;
}
static const ebb_machine_kind proxy_kinds[KINDS] = {[BAG] = {"Bag", no_reference, no_reference}};

static inline void proxy_roles_reset(void) {
    memset(&at_home, 0, sizeof at_home);
    memset(&at_near, 0, sizeof at_near);
}

#endif
