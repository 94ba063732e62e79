/* What an order does in the world: ordinary tasks that take time and may fail. An activity runs at least once, so each
 * would pass its key on to whom it asks. Here nobody is asked: times and failures are drawn from the key. */
#include <jansson.h>
#include <string.h>

#include "shop.h"

/* A number below n, the same for all runs of an attempt. */
static uint64_t draw(const ebb_activity *a, uint64_t n) {
    uint64_t h = 14695981039346656037u;
    for (const char *k = ebb_activity_key(a); *k != 0; k++) h = (h ^ (unsigned char)*k) * 1099511628211u;
    return (h ^ h >> 32) % n;
}

static ebb_status work(ebb_cx *cx, const ebb_activity *a, uint64_t least_ms, uint64_t most_ms) {
    ebb_sleeper nap = {0};
    return ebb_sleep(cx, &nap, (least_ms + draw(a, most_ms - least_ms)) * EBB_MS);
}

static bool is_at_slow_bank(ebb_blob in) {
    const char *bank = "";
    json_t *order = json_loadb(in.at, in.n, 0, NULL);
    const bool is = json_unpack(order, "{s:s}", "bank", &bank) == 0 && strcmp(bank, "slow") == 0;
    json_decref(order);
    return is;
}

/* ---- forward --------------------------------------------------------------------------------------------------------- */

static ebb_status reserve(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    const ebb_failure none = {.code = "out_of_stock", .message = "the shelf is empty", .final = true};
    const bool is_there = is_at_slow_bank(in) || draw(a, 50) != 0;
    (void)out;
    ebb_status st = work(cx, a, 5, 30);
    if (st != EBB_OK) return st;
    shop_happened(ebb_activity_arg(a), ebb_activity_instance(a), is_there ? SHOP_RESERVED : SHOP_REFUSED);
    return is_there ? EBB_OK : ebb_activity_fail(a, &none);
}

static ebb_status charge(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    const ebb_failure declined = {.code = "card_declined", .message = "the bank says no", .final = true};
    shop *s = ebb_activity_arg(a);
    const bool hangs = draw(a, 100) == 7; /* until its order has waited long enough, and cancels it */
    (void)out;
    ebb_status st = is_at_slow_bank(in) ? shop_slow_bank(cx, s, ebb_activity_instance(a))
                                        : work(cx, a, hangs ? 10000 : 30, hangs ? 20000 : 150);
    if (st != EBB_OK) return st;
    if (draw(a, 25) == 3) return ebb_activity_fail(a, &declined);
    shop_happened(s, ebb_activity_instance(a), SHOP_PAID);
    return EBB_OK;
}

static ebb_status ship(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    const ebb_failure late = {.code = "no_van",
                              .message = "there is no van"}; /* perhaps there is one later */
    (void)in;
    ebb_status st = work(cx, a, 50, 200);
    if (st != EBB_OK) return st;
    if (draw(a, 20) == 5) return ebb_activity_fail(a, &late);
    shop_happened(ebb_activity_arg(a), ebb_activity_instance(a), SHOP_SHIPPED);
    *out = ebb_blob_text("\"on its way\"");
    return EBB_OK;
}

/* ---- back ------------------------------------------------------------------------------------------------------------ */

static ebb_status refund(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    (void)in;
    (void)out;
    return work(cx, a, 20, 60);
}

static ebb_status release(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    (void)in;
    (void)out;
    ebb_status st = work(cx, a, 10, 40);
    if (st == EBB_OK) shop_happened(ebb_activity_arg(a), ebb_activity_instance(a), SHOP_UNDONE);
    return st;
}

ebb_status shop_activities(ebb_worker *w, shop *s) {
    /* A stop of the service waits for no bank: another worker charges, with the same key. */
    const ebb_activity_opts handed_over = {.handover = true};
    const struct {
        const char *name;
        ebb_activity_fn fn;
    } all[] = {
        {"reserve", reserve}, {"charge", charge}, {"ship", ship}, {"refund", refund}, {"release", release}};
    ebb_status st = EBB_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && st == EBB_OK; i++)
        st = ebb_worker_activity(w, all[i].name, all[i].fn, s, all[i].fn == charge ? &handed_over : NULL);
    return st;
}
