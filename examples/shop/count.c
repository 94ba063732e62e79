/* How many orders are under way, whichever process runs them. Orders that the worker can't keep up with wait in the
 * store; past SHOP_OPEN of them new ones are refused, so that the queue is bounded and whoever orders knows. */
#include "shop.h"

static const uint64_t every = EBB_SECOND, keep = 900 * EBB_SECOND;
enum { PRUNE_EVERY = 60 }; /* counts */

static ebb_status count(ebb_cx *cx, shop *s) {
    const ebb_instance_filter filter = {.name = "order", .states = 1u << EBB_INSTANCE_RUNNING, .most = 1000};
    ebb_value v;
    ebb_status st =
        ebb_await(cx, ebb_instance_cancel_all(cx, s->store, &filter, &(ebb_bulk_opts){.dry_run = true}), &v);
    if (st == EBB_OK) s->open = v.as.u;
    return st;
}

static ebb_status prune(ebb_cx *cx, shop *s) {
    const ebb_instance_filter filter = {
        .name = "order", .ended_before = ebb_wall_now(cx) - keep, .most = 100};
    return ebb_await(cx, ebb_instance_prune(cx, s->store, &filter, NULL), NULL);
}

/* Until the service stops. A store that can't be reached is asked again. */
static ebb_status run(ebb_cx *cx, void *arg) {
    shop *s = arg;
    ebb_status st = EBB_OK;
    for (uint64_t n = 1; st != EBB_CANCELLED && !ebb_stopping(cx); n++) {
        st = count(cx, s);
        if (st == EBB_OK && n % PRUNE_EVERY == 0) st = prune(cx, s);
        if (st != EBB_CANCELLED) st = ebb_await(cx, ebb_within(cx, ebb_closing(cx), every), NULL);
    }
    return EBB_OK;
}

ebb_status shop_count_open(ebb_cx *cx, shop *s) {
    return ebb_id_status(ebb_fiber_spawn(cx, s->region, run, s).id);
}
