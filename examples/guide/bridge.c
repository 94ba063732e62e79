/* Guide: items for another thread, waited for together with other things. */
#include <ebb/ebb.h>
#include <stdio.h>

typedef struct line {
    ebb_peer *second;
    ebb_bridge *items;
    int sum;
} line;

/* On the second thread. EBB_ERR_CLOSED: no more will come; EBB_TIMEOUT: none came in time, and none is lost. */
static ebb_status next_item(ebb_cx *cx, ebb_bridge *items, int *item) {
    ebb_value claim;
    ebb_status st = ebb_await(cx, ebb_within(cx, ebb_bridge_recv_future(cx, items), 10 * EBB_SECOND), &claim);
    return st == EBB_OK ? ebb_bridge_take(cx, &claim, item) : st;
}

static ebb_status sum_up(ebb_cx *cx, void *arg) {
    line *l = arg;
    int item;
    ebb_status st;
    while ((st = next_item(cx, l->items, &item)) == EBB_OK) {
        do l->sum += item;
        while (ebb_bridge_try_recv(cx, l->items, &item) == EBB_OK); /* those that are there already */
    }
    return st == EBB_ERR_CLOSED ? EBB_OK : st;
}

/* The body of a far region is a poll function. What waits in place is a fiber, which the region waits for. */
static ebb_status far(ebb_cx *cx, void *arg) {
    return ebb_id_status(ebb_fiber_spawn(cx, ebb_cx_region(cx), sum_up, arg).id);
}

/* On the first thread. EBB_ERR_CLOSED: the region closes, and the item was not sent. */
static ebb_status send_unless_closing(ebb_cx *cx, ebb_bridge *items, int item) {
    ebb_status st = ebb_bridge_try_send(cx, items, &item);
    if (st != EBB_PENDING) return st;
    ebb_future *either[] = {ebb_bridge_send_future(cx, items), ebb_closing(cx)};
    ebb_value v;
    st = ebb_await(cx, ebb_select(cx, 2, either), &v);
    if (st != EBB_OK) return st;
    ebb_selected *first = ebb_selected_of(&v);
    st = first->index == 0 ? ebb_bridge_put(cx, &first->value, &item) : EBB_ERR_CLOSED;
    ebb_value_discard(cx, v);
    return st;
}

static ebb_status run(ebb_cx *cx, void *arg) {
    line *l = arg;
    ebb_peer *here;
    ebb_status st = ebb_peer_of(ebb_cx_runtime(cx), &here);
    if (st == EBB_OK) st = ebb_bridge_new(here, l->second, 2, sizeof(int), &l->items);
    if (st != EBB_OK) return st;
    ebb_peer_release(here);
    ebb_future *summed = ebb_peer_run(cx, l->second, far, l);
    for (int i = 1; i <= 100 && st == EBB_OK; i++) st = send_unless_closing(cx, l->items, i);
    (void)ebb_bridge_close(cx, l->items);
    return st == EBB_OK ? ebb_await(cx, summed, NULL) : st;
}

static ebb_status stay(ebb_cx *cx, void *arg) {
    (void)arg;
    return ebb_await(cx, ebb_closing(cx), NULL);
}

int main(void) {
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    ebb_loop *first, *second;
    ebb_status st = ebb_loop_new(&opts, stay, NULL, &second);
    if (st != EBB_OK) return 1;
    line l = {.second = ebb_loop_peer(second)};
    st = ebb_loop_new(&opts, run, &l, &first);
    if (st == EBB_OK) st = ebb_loop_join(first);
    (void)ebb_loop_stop(second);
    ebb_bridge_release(l.items); /* both loops are gone */
    printf("%s: %d\n", ebb_status_name(st), l.sum);
    return st == EBB_OK ? 0 : 1;
}
