/* The requests of buyers: to order, to look, to call it off.
 *
 *   POST /shop/orders {"item":"kettle"}           201 {"id":...,"cents":3900}; "bank":"slow" is for trying things out
 *   GET /shop/orders/ID                           200 {"id":...,"state":"Running","stage":"paid",...}
 *   POST /shop/orders/ID/cancel {}                202
 *
 * An order that was answered 201 is in the store, and no crash loses it. A client that has had no answer sends the order
 * again with the id that it gave it: it is made once. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "shop.h"

enum { ID = 64, ITEM = 32, INPUT = 256 };

typedef struct wanted {
    char id[ID], item[ITEM];
    bool slow; /* at the bank that ignores a cancel */
} wanted;

/* Copies a text. False: it is empty or too long, or has bytes that would need an escape. */
static bool take(char *to, size_t room, const char *text) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const size_t n = strlen(text);
    if (n == 0 || n >= room || strspn(text, plain) != n) return false;
    memcpy(to, text, n + 1);
    return true;
}

static bool read_wanted(const json_t *body, wanted *w) {
    const char *item = "", *id = NULL, *bank = "";
    *w = (wanted){.slow = false};
    if (json_unpack((json_t *)(uintptr_t)body, "{s:s, s?s, s?s}", "item", &item, "id", &id, "bank", &bank) !=
        0)
        return false;
    w->slow = strcmp(bank, "slow") == 0;
    return take(w->item, sizeof w->item, item) && (id == NULL || take(w->id, sizeof w->id, id));
}

/* ---- POST /shop/orders --------------------------------------------------------------------------------------------- */

static ebb_status refuse(ebb_cx *cx, ebb_http *x, ebb_status st) {
    if (st == EBB_CANCELLED) return st;
    if (st == EBB_ERR_INVALID) return shop_answer(cx, x, 404, "{s:s}", "error", "there is no such item");
    if (st == EBB_TIMEOUT) return shop_answer(cx, x, 504, "{s:s}", "error", "nobody has said what it costs");
    if (st == EBB_ERR_EXISTS) return shop_answer(cx, x, 409, "{s:s}", "error", "the id is another order's");
    return shop_answer(cx, x, 503, "{s:s}", "error", ebb_status_text(st));
}

static ebb_status start(ebb_cx *cx, shop *s, wanted *w, uint64_t cents) {
    char input[INPUT];
    ebb_value v;
    (void)snprintf(input, sizeof input, "{\"item\":\"%s\",\"cents\":%llu,\"bank\":\"%s\"}", w->item,
                   (unsigned long long)cents, w->slow ? "slow" : "good");
    const ebb_start_opts opts = {
        .id = w->id[0] != 0 ? w->id : NULL, .name = "order", .input = ebb_blob_text(input)};
    ebb_status st = ebb_await(cx, ebb_instance_start(cx, s->store, &opts), &v);
    if (st != EBB_OK) return st;
    (void)snprintf(w->id, sizeof w->id, "%s", ebb_instance_info_of(&v)->id);
    ebb_value_discard(cx, v);
    return EBB_OK;
}

ebb_status shop_order_new(ebb_cx *cx, ebb_http *x, void *arg) {
    shop *s = arg;
    wanted w;
    json_t *body;
    uint64_t cents = 0;
    ebb_status st;
    if (!shop_body(cx, x, &body, &st)) return st;
    const bool valid = read_wanted(body, &w);
    json_decref(body);
    if (!valid) return shop_answer(cx, x, 400, "{s:s}", "error", "expected {\"item\": ..., \"id\": ...}");
    if (s->open >= SHOP_OPEN)
        return shop_answer(cx, x, 503, "{s:s, s:i}", "error", "too many orders are under way", "limit",
                           SHOP_OPEN);
    st = shop_quote(cx, w.item, &cents);
    if (st == EBB_OK) st = start(cx, s, &w, cents);
    if (st != EBB_OK) return refuse(cx, x, st);
    return shop_answer(cx, x, 201, "{s:s, s:I}", "id", w.id, "cents", (json_int_t)cents);
}

/* ---- GET /shop/orders/ID ------------------------------------------------------------------------------------------- */

/* A stage is a JSON text, "paid", as the orchestration has set it. */
static ebb_status show(ebb_cx *cx, ebb_http *x, const shop *s, const ebb_instance_info *i) {
    json_t *stage = json_loadb(i->custom.n != 0 ? i->custom.at : "null", i->custom.n != 0 ? i->custom.n : 4,
                               JSON_DECODE_ANY, NULL);
    return shop_answer(cx, x, 200, "{s:s, s:s, s:o?, s:s?, s:s?}", "id", i->id, "state",
                       ebb_instance_state_name(i->state), "stage", stage, "machine",
                       shop_machine_state(s, i->id), "failure", i->failure.code);
}

ebb_status shop_order_show(ebb_cx *cx, ebb_http *x, void *arg) {
    shop *s = arg;
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_instance_status(cx, s->store, ebb_http_param(x, "id")), &v);
    if (st == EBB_ERR_UNKNOWN_INSTANCE)
        return shop_answer(cx, x, 404, "{s:s}", "error", "there is no such order");
    if (st != EBB_OK) return refuse(cx, x, st);
    st = show(cx, x, s, ebb_instance_info_of(&v));
    ebb_value_discard(cx, v);
    return st;
}

/* ---- POST /shop/orders/ID/cancel ------------------------------------------------------------------------------------ */

ebb_status shop_order_cancel(ebb_cx *cx, ebb_http *x, void *arg) {
    shop *s = arg;
    json_t *body;
    ebb_status st;
    if (!shop_body(cx, x, &body, &st)) return st;
    json_decref(body);
    const char *id = ebb_http_param(x, "id");
    st = ebb_await(cx, ebb_instance_cancel(cx, s->store, id, "the buyer has called it off"), NULL);
    if (st == EBB_ERR_UNKNOWN_INSTANCE)
        return shop_answer(cx, x, 404, "{s:s}", "error", "no such order is under way");
    return st == EBB_OK ? shop_answer(cx, x, 202, "{s:b}", "accepted", 1) : refuse(cx, x, st);
}
