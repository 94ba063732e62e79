/* Two workers, one region, and the three things that matter: start, stop, and all is over. */
#include <ebb/ebb.h>
#include <stdio.h>

typedef struct worker {
    EBB_TASK_STATE; /* where it goes on; what must live across a wait stands in here too */
    ebb_sleeper nap;
    int items;
} worker;

static ebb_status worker_poll(ebb_cx *cx, void *state) {
    worker *w = state;
    ebb_status st;
    EBB_BEGIN(w);
    do {
        EBB_AWAIT(w, st, ebb_sleep(cx, &w->nap, 10 * EBB_MS)); /* an item takes 10 ms */
        if (st == EBB_OK) w->items++;
    } while (st == EBB_OK);
    (void)ebb_mask(cx); /* asked to stop; cleaning up takes 5 ms, and no cancel cuts it short */
    EBB_AWAIT(w, st, ebb_sleep(cx, &w->nap, 5 * EBB_MS));
    printf("%d items, and cleaned up at %d ms\n", w->items, (int)(ebb_now(cx) / EBB_MS));
    EBB_END(w);
}

/* Time is what the host says it is: this one jumps to where something happens next. */
static void run(ebb_runtime *rt, uint64_t until) {
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING || ebb_runtime_next_due(rt) < until) {
        ebb_runtime_advance(rt, ebb_runtime_next_due(rt));
    }
    if (until != EBB_FOREVER) ebb_runtime_advance(rt, until);
}

int main(void) {
    ebb_runtime *rt;
    if (ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_libc_allocator()}, &rt) != EBB_OK) return 1;
    worker a = {0}, b = {0};
    ebb_region shop = ebb_region_open(ebb_runtime_host(rt), NULL);
    ebb_spawn(ebb_runtime_host(rt), shop, worker_poll, &a);
    ebb_spawn(ebb_runtime_host(rt), shop, worker_poll, &b);
    run(rt, 35 * EBB_MS);
    ebb_region_cancel(ebb_runtime_host(rt), shop, EBB_CANCEL_USER, "closing time");
    run(rt, EBB_FOREVER);
    ebb_status st = ebb_region_join(ebb_runtime_host(rt), shop);
    printf("the shop is closed: %s\n", ebb_status_text(st));
    ebb_runtime_free(rt);
    return st == EBB_CANCELLED && a.items + b.items == 6 ? 0 : 1;
}
