/* What `ebb serve --load shop.so` looks for: ebb_app registers what runs, ebb_app_http the routes of the server. */
#include "shop.h"

static shop the_shop; /* a program is loaded once, and never unloaded */

ebb_status ebb_app(ebb_cx *cx, ebb_worker *w);
ebb_status ebb_app(ebb_cx *cx, ebb_worker *w) {
    (void)cx;
    ebb_status st = ebb_worker_orch(w, "order", 1, shop_order);
    return st == EBB_OK ? shop_activities(w, &the_shop) : st;
}

static ebb_status add_routes(ebb_http_server *server, shop *s) {
    const struct {
        const char *method, *pattern;
        ebb_http_handler_fn fn;
    } routes[] = {{"GET", "/", shop_page},
                  {"GET", "/shop/", shop_page},
                  {"GET", "/shop/:file", shop_page},
                  {"POST", "/shop/orders", shop_order_new},
                  {"GET", "/shop/orders/:id", shop_order_show},
                  {"POST", "/shop/orders/:id/cancel", shop_order_cancel},
                  {"GET", "/shop/load", shop_load_show},
                  {"POST", "/shop/load", shop_load_set}};
    ebb_status st = EBB_OK;
    for (size_t i = 0; i < sizeof routes / sizeof *routes && st == EBB_OK; i++)
        st = ebb_http_on(server, routes[i].method, routes[i].pattern, routes[i].fn, s);
    return st;
}

ebb_status ebb_app_http(ebb_cx *cx, ebb_http_server *server, ebb_store *store);
ebb_status ebb_app_http(ebb_cx *cx, ebb_http_server *server, ebb_store *store) {
    shop *s = &the_shop;
    s->region = ebb_cx_region(cx);
    s->store = store;
    ebb_status st = shop_machines_open(cx, s);
    if (st == EBB_OK) st = add_routes(server, s);
    if (st == EBB_OK) st = shop_count_open(cx, s);
    return st == EBB_OK ? shop_load_open(cx, s, server) : st;
}
