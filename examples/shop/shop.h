/* The shop: a program that `ebb serve` loads. `make run` starts it.
 *
 *   POST /shop/orders      orders.c       HTTP: a request, its body, its answer
 *        price and stock   quote.c        futures: a race, all of two, a timeout
 *        the order         order.c        a durable orchestration: reserve, pay, ship, or undo all of it
 *        its activities    activities.c   what takes time and may fail; bank.c has the bank that ignores a cancel
 *        its machine       machine.c      a typestate machine, for as long as the order is under way
 *   POST /shop/load        load.c         clients that order, as many times a second as the switch says
 *                          count.c        how many orders are under way: past a limit new ones are refused
 *   GET /shop/             page.c         the page
 *
 * app.c has what `ebb serve` looks for. */
#ifndef SHOP_H
#define SHOP_H

#include <ebb/ebb.h>

enum {
    SHOP_BODY = 4096,     /* bytes of a request's body */
    SHOP_OPEN = 10000,    /* orders that may be under way; past it a new one is answered 503 */
    SHOP_BUYERS = 256,    /* requests of the load at a time */
    SHOP_LOAD_MOST = 5000 /* orders a second */
};

typedef struct shop_load {
    uint32_t orders_per_second; /* 0: off */
    uint32_t buying;            /* requests under way */
    uint64_t ordered, refused;  /* so far: answered 201, and not */
    bool runs;                  /* its fiber lives */
    ebb_http_client *client;
    char url[96];
} shop_load;

/* One of a process, and of one loop. */
typedef struct shop {
    ebb_region region; /* where all of it lives: what a stop of the service closes */
    ebb_store *store;
    ebb_machines *machines;     /* NULL: it runs without HTTP, and has none */
    struct shop_entry *entries; /* the machines by order */
    uint32_t machines_n;
    uint64_t open; /* orders under way, as last counted */
    shop_load load;
} shop;

/* json.c: a request's body, and answers. False: *st is the end of an answer that refuses it. */
struct json_t;
bool shop_body(ebb_cx *cx, ebb_http *x, struct json_t **out, ebb_status *st);
/* Answers with what `format` makes of the rest, as json_pack of jansson does. */
ebb_status shop_answer(ebb_cx *cx, ebb_http *x, int status, const char *format, ...);

/* orders.c, page.c, load.c: requests. */
ebb_status shop_order_new(ebb_cx *cx, ebb_http *x, void *arg);
ebb_status shop_order_show(ebb_cx *cx, ebb_http *x, void *arg);
ebb_status shop_order_cancel(ebb_cx *cx, ebb_http *x, void *arg);
ebb_status shop_page(ebb_cx *cx, ebb_http *x, void *arg);
ebb_status shop_load_show(ebb_cx *cx, ebb_http *x, void *arg);
ebb_status shop_load_set(ebb_cx *cx, ebb_http *x, void *arg);
ebb_status shop_load_open(ebb_cx *cx, shop *s, ebb_http_server *server);

/* quote.c: the price of an item. EBB_ERR_INVALID: there is no such item. EBB_TIMEOUT: nobody has said in time. */
ebb_status shop_quote(ebb_cx *cx, const char *item, uint64_t *cents);

/* order.c, activities.c: what the worker runs. */
ebb_status shop_order(ebb_orch *o, ebb_blob in, ebb_blob *out);
ebb_status shop_activities(ebb_worker *w, shop *s);

/* bank.c: pays at a bank that takes a minute, whatever it is told. A cancel frees the caller at once. What is left at the
 * bank is a workflow of its own that drains, with a budget that an operator extends or ends. */
ebb_status shop_slow_bank(ebb_cx *cx, shop *s, const char *order);

/* count.c: counts the orders under way every second, and forgets orders that ended a quarter of an hour ago. */
ebb_status shop_count_open(ebb_cx *cx, shop *s);

/* machine.c: what has happened to an order moves its machine on. The first event makes the machine, the last ends it. */
typedef enum shop_event {
    SHOP_RESERVED = 1,
    SHOP_PAID,
    SHOP_SHIPPED,
    SHOP_REFUSED,  /* out of stock */
    SHOP_UNDONE,   /* cancelled, or not paid: what was done is undone */
    SHOP_FORGOTTEN /* nothing was heard of it for long: an operator has terminated it */
} shop_event;
ebb_status shop_machines_open(ebb_cx *cx, shop *s);
void shop_happened(shop *s, const char *order, shop_event event);
const char *shop_machine_state(const shop *s, const char *order); /* NULL: it has none */

#endif
