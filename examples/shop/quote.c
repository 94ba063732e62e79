/* What an item costs, if it is there. Price and stock are asked for at the same time, the price at two places of which
 * the faster counts, and all of it has half a second. What loses or comes too late is cancelled, down to its timer. */
#include <string.h>

#include "shop.h"

static const struct {
    const char *name;
    uint64_t cents;
} items[] = {{"kettle", 3900}, {"lamp", 5400}, {"clock", 2100}};

static ebb_future *answer(ebb_cx *cx, void *arg) {
    return ebb_future_ready(cx, ebb_value_pointer(arg));
}

/* Somebody else's service: it answers after a time. */
static ebb_future *ask(ebb_cx *cx, uint64_t most_ms, const uint64_t *says) {
    const uint64_t span = (5 + ebb_now(cx) / 1000 % most_ms) * EBB_MS;
    return ebb_future_delay(cx, span, answer, (void *)(uintptr_t)says);
}

static ebb_future *quote(ebb_cx *cx, const uint64_t *cents) {
    ebb_future *prices[] = {ask(cx, 40, cents), ask(cx, 25, cents)};
    ebb_future *both[] = {ebb_any(cx, 2, prices), ask(cx, 20, cents)};
    return ebb_within(cx, ebb_all(cx, 2, both), 500 * EBB_MS);
}

ebb_status shop_quote(ebb_cx *cx, const char *item, uint64_t *cents) {
    ebb_value v;
    size_t i = 0, n;
    while (i < sizeof items / sizeof *items && strcmp(items[i].name, item) != 0) i++;
    if (i == sizeof items / sizeof *items) return EBB_ERR_INVALID;
    ebb_status st = ebb_await(cx, quote(cx, &items[i].cents), &v);
    if (st != EBB_OK) return st;
    *cents = *(const uint64_t *)ebb_outcomes_of(&v, &n)[0].value.as.p;
    ebb_value_discard(cx, v);
    return EBB_OK;
}
