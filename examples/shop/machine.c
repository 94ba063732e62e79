/* The machine of an order: Placed, Reserved, Paid, and an end. It begins with the first event and stops with the last;
 * that of an order which an operator has terminated hears no more, and stops after five minutes. */
#include <stdio.h>
#include <string.h>

#include "shop.h"

enum { PLACED, RESERVED, PAID, SHIPPED, REFUSED, UNDONE, FORGOTTEN, STATES };
enum { KINDS = SHOP_FORGOTTEN + 1, BUCKETS = 4096 };
static const uint64_t forget_after = 300 * EBB_SECOND;

/* An order, and its machine. In a list of those with the same hash. */
typedef struct shop_entry shop_entry;
struct shop_entry {
    shop_entry *next;
    shop *shop;
    ebb_machine machine;
    char order[];
};
static shop_entry *buckets[BUCKETS];

typedef struct fields {
    shop_entry *entry; /* freed when the machine has ended */
} fields;

/* ---- orders and machines -------------------------------------------------------------------------------------------- */

static shop_entry **place_of(const char *order) {
    uint32_t h = 2166136261u;
    for (const char *at = order; *at != 0; at++) h = (h ^ (unsigned char)*at) * 16777619u;
    shop_entry **at = &buckets[h % BUCKETS];
    while (*at != NULL && strcmp((*at)->order, order) != 0) at = &(*at)->next;
    return at;
}

static void forget(shop_entry *e) {
    shop_entry **at = place_of(e->order);
    *at = e->next;
    e->shop->machines_n--;
    free(e);
}

/* ---- the table --------------------------------------------------------------------------------------------------------- */

/* The rule's argument is the state that the event leads to. An event may come twice, after a crash; or without the one
 * before, if another process has had that. */
static ebb_status on_event(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    return ebb_machine_become(ms, *(const uint32_t *)m->arg, NULL);
}

static ebb_status on_entry(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    (void)m;
    return ebb_machine_after(ms, forget_after, SHOP_FORGOTTEN);
}

static const uint32_t to[STATES] = {PLACED, RESERVED, PAID, SHIPPED, REFUSED, UNDONE, FORGOTTEN};
#define TO(state)                                                                                            \
    { on_event, &to[state], EBB_MACHINE_HANDLE }
#define LATE                                                                                                 \
    { NULL, NULL, EBB_MACHINE_IGNORE }
#define ENDS [SHOP_SHIPPED] = TO(SHIPPED), [SHOP_UNDONE] = TO(UNDONE), [SHOP_FORGOTTEN] = TO(FORGOTTEN)

static const ebb_machine_rule rules[STATES][KINDS] = {
    [PLACED] = {[SHOP_RESERVED] = TO(RESERVED), [SHOP_PAID] = TO(PAID), [SHOP_REFUSED] = TO(REFUSED), ENDS},
    [RESERVED] = {[SHOP_RESERVED] = LATE, [SHOP_PAID] = TO(PAID), ENDS},
    [PAID] = {[SHOP_RESERVED] = LATE, [SHOP_PAID] = LATE, ENDS}};

static const ebb_machine_state states[STATES] = {
    [PLACED] = {.name = "Placed", .entry = on_entry},  [RESERVED] = {.name = "Reserved", .entry = on_entry},
    [PAID] = {.name = "Paid", .entry = on_entry},      [SHIPPED] = {.name = "Shipped", .final = true},
    [REFUSED] = {.name = "Refused", .final = true},    [UNDONE] = {.name = "Undone", .final = true},
    [FORGOTTEN] = {.name = "Forgotten", .final = true}};

static void settle(const ebb_machine_type *type, bool committed, uint32_t old_state, void *old,
                   uint32_t now_state, void *now) {
    (void)type;
    (void)committed;
    (void)old_state;
    (void)now_state;
    if (now == NULL) forget(((fields *)old)->entry); /* the machine has ended */
}

static const ebb_machine_type order_type = {.name = "Order",
                                            .states = states,
                                            .table = &rules[0][0],
                                            .fields = sizeof(fields),
                                            .n_states = STATES,
                                            .columns = KINDS,
                                            .settle = settle};

static const ebb_machine_kind kinds[KINDS] = {
    [SHOP_RESERVED] = {.name = "Reserved"}, [SHOP_PAID] = {.name = "Paid"},
    [SHOP_SHIPPED] = {.name = "Shipped"},   [SHOP_REFUSED] = {.name = "Refused"},
    [SHOP_UNDONE] = {.name = "Undone"},     [SHOP_FORGOTTEN] = {.name = "Forgotten"}};

/* ---- what the shop calls ------------------------------------------------------------------------------------------- */

static shop_entry *make(shop *s, const char *order, shop_entry **at) {
    const size_t n = strlen(order) + 1;
    shop_entry *e = malloc(sizeof *e + n);
    if (e == NULL) return NULL;
    *e = (shop_entry){.next = *at, .shop = s};
    memcpy(e->order, order, n);
    *at = e;
    s->machines_n++;
    e->machine = ebb_machine_spawn(s->machines, &order_type, PLACED, &(fields){e});
    if (ebb_id_status(e->machine.id) == EBB_OK && ebb_machine_start(s->machines, e->machine) == EBB_OK)
        return e;
    if (ebb_id_status(e->machine.id) != EBB_OK) forget(e);
    return NULL;
}

/* Without memory, or while the service stops, an order has no machine; the order goes on. */
void shop_happened(shop *s, const char *order, shop_event event) {
    shop_entry **at = place_of(order), *e = *at;
    if (s->machines == NULL) return;
    if (e == NULL) e = make(s, order, at);
    if (e != NULL) (void)ebb_machine_send(s->machines, e->machine, (uint16_t)event, NULL, 0);
}

const char *shop_machine_state(const shop *s, const char *order) {
    ebb_machine_info info;
    const shop_entry *e = *place_of(order);
    if (e == NULL || ebb_machine_info_of(s->machines, e->machine, &info) != EBB_OK || info.type == NULL)
        return NULL;
    return states[info.state].name;
}

static ebb_status free_machines(ebb_cx *cx, void *arg) {
    (void)cx;
    return ebb_machines_free(arg);
}

ebb_status shop_machines_open(ebb_cx *cx, shop *s) {
    const ebb_machines_opts opts = {.parent = s->region, .kinds = kinds, .n_kinds = KINDS};
    ebb_cx *host = ebb_runtime_host(ebb_cx_runtime(cx)); /* they outlive this task */
    ebb_status st = ebb_machines_open(host, &s->machines, &opts);
    return st == EBB_OK ? ebb_region_defer(cx, s->region, free_machines, s->machines) : st;
}
