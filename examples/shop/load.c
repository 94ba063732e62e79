/* The load: clients that order over HTTP/2, as many times a second as the switch says.
 *
 *   GET /shop/load                               200 {"orders_per_second":2,"ordered":...,"refused":...,"open":...}
 *   POST /shop/load {"orders_per_second":20}     the same; 0 is off
 *
 * Its requests are in a region of their own, "load": cancel that on the dashboard, and the load is off. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shop.h"

static const uint64_t tick = 20 * EBB_MS;

static ebb_status buy(ebb_cx *cx, void *arg) {
    static const char *const bodies[] = {"{\"item\":\"kettle\"}", "{\"item\":\"lamp\"}",
                                         "{\"item\":\"clock\"}"};
    static const ebb_http_field headers[] = {{"content-type", "application/json"}};
    shop *s = arg;
    ebb_value v;
    const char *body = bodies[s->load.ordered % 3];
    const ebb_http_call call = {.method = "POST",
                                .url = s->load.url,
                                .headers = headers,
                                .headers_n = 1,
                                .body = body,
                                .body_n = strlen(body)};
    ebb_status st = ebb_await(cx, ebb_http_fetch(cx, s->load.client, &call), &v);
    const bool made = st == EBB_OK && ebb_http_response_of(&v)->status == 201;
    if (st == EBB_OK) ebb_value_discard(cx, v);
    s->load.ordered += made;
    s->load.refused += !made;
    s->load.buying--;
    return EBB_OK;
}

/* What finds too many requests under way is not sent: a client that can't keep up does not queue. False: the region was
 * cancelled. */
static bool send_owed(ebb_cx *cx, shop *s, ebb_region region, uint64_t *owed) {
    for (; *owed >= EBB_SECOND; *owed -= EBB_SECOND) {
        if (s->load.buying == SHOP_BUYERS) continue;
        const ebb_task buyer = ebb_fiber_spawn(cx, region, buy, s);
        if (ebb_id_status(buyer.id) != EBB_OK) return false;
        s->load.buying++;
    }
    return true;
}

/* From on to off. Whoever cancels its region switches it off. */
static ebb_status run_once(ebb_cx *cx, shop *s) {
    const ebb_region region = ebb_region_open(cx, &(ebb_region_opts){.name = "load"});
    ebb_sleeper nap = {0};
    uint64_t last = ebb_now(cx), owed = EBB_SECOND;
    ebb_status st = ebb_id_status(region.id);
    while (st == EBB_OK && s->load.orders_per_second != 0 && !ebb_stopping(cx)) {
        if (!send_owed(cx, s, region, &owed)) s->load.orders_per_second = 0;
        st = ebb_sleep(cx, &nap, tick);
        owed += (ebb_now(cx) - last) * s->load.orders_per_second;
        last = ebb_now(cx);
    }
    return st == EBB_OK && ebb_region_join(cx, region) == EBB_ERR_NOMEM ? EBB_ERR_NOMEM : st;
}

static ebb_status run(ebb_cx *cx, void *arg) {
    shop *s = arg;
    ebb_status st = EBB_OK;
    while (st == EBB_OK && s->load.orders_per_second != 0 && !ebb_stopping(cx)) st = run_once(cx, s);
    s->load.runs = false;
    s->load.orders_per_second = 0;
    return st == EBB_CANCELLED ? EBB_OK : st;
}

static ebb_status set(ebb_cx *cx, shop *s, uint32_t rate) {
    ebb_status st = EBB_OK;
    if (rate != 0 && !s->load.runs) {
        ebb_cx *host = ebb_runtime_host(ebb_cx_runtime(cx)); /* the load outlives this task */
        st = ebb_id_status(ebb_fiber_spawn(host, s->region, run, s).id);
        s->load.runs = st == EBB_OK;
    }
    if (st == EBB_OK) s->load.orders_per_second = rate;
    return st;
}

/* ---- the switch -------------------------------------------------------------------------------------------------------- */

ebb_status shop_load_show(ebb_cx *cx, ebb_http *x, void *arg) {
    const shop *s = arg;
    return shop_answer(cx, x, 200, "{s:i, s:I, s:I, s:I, s:i}", "orders_per_second",
                       (int)s->load.orders_per_second, "ordered", (json_int_t)s->load.ordered, "refused",
                       (json_int_t)s->load.refused, "open", (json_int_t)s->open, "machines",
                       (int)s->machines_n);
}

ebb_status shop_load_set(ebb_cx *cx, ebb_http *x, void *arg) {
    shop *s = arg;
    json_t *body;
    int rate = -1;
    ebb_status st;
    if (!shop_body(cx, x, &body, &st)) return st;
    const bool valid = json_unpack(body, "{s:i}", "orders_per_second", &rate) == 0;
    json_decref(body);
    if (!valid || rate < 0 || rate > SHOP_LOAD_MOST)
        return shop_answer(cx, x, 400, "{s:s, s:i}", "error", "expected orders_per_second, 0 or more",
                           "limit", SHOP_LOAD_MOST);
    st = set(cx, s, (uint32_t)rate);
    return st == EBB_OK ? shop_load_show(cx, x, arg) : st;
}

/* It begins with EBB_SHOP_LOAD orders a second, 0 if that is not set. */
ebb_status shop_load_open(ebb_cx *cx, shop *s, ebb_http_server *server) {
    const char *rate = getenv("EBB_SHOP_LOAD");
    ebb_address at;
    ebb_status st = ebb_http_server_address(cx, server, &at);
    if (st != EBB_OK) return st;
    const bool v6 = strchr(at.ip, ':') != NULL;
    (void)snprintf(s->load.url, sizeof s->load.url, "http://%s%s%s:%u/shop/orders", v6 ? "[" : "", at.ip,
                   v6 ? "]" : "", at.port);
    st = ebb_http_client_new(cx, &(ebb_http_client_opts){.prior_knowledge = true}, &s->load.client);
    const unsigned long n = rate != NULL ? strtoul(rate, NULL, 10) : 0;
    return st == EBB_OK ? set(cx, s, n < SHOP_LOAD_MOST ? (uint32_t)n : SHOP_LOAD_MOST) : st;
}
