/* A part of docs/guide.md: a machine by C roles, asked by a fiber. */
#include <ebb/ebb.h>
#include <stdio.h>

enum { TAKE = 1, TAKEN, SOLD_OUT, PRICE, KINDS };

typedef struct stock {
    uint32_t left, price;
} stock;

/* Works on a copy of the fields. EBB_OK commits it, and what was staged; anything else undoes both. */
static ebb_status on_take(ebb_machines *ms, void *self, const ebb_message *m) {
    stock *s = self;
    uint32_t wanted = *(const uint32_t *)m->payload;
    if (s->left < wanted) return ebb_machine_reply(ms, m->request, SOLD_OUT, NULL, 0);
    s->left -= wanted;
    return ebb_machine_reply(ms, m->request, TAKEN, &s->left, sizeof s->left);
}

/* Called when the machine is started. */
static ebb_status on_open(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    (void)m;
    return ebb_machine_subscribe(ms, PRICE, 0);
}

/* A price of 0: no more of these. */
static ebb_status on_price(ebb_machines *ms, void *self, const ebb_message *m) {
    stock *s = self;
    s->price = *(const uint32_t *)m->payload;
    return s->price == 0 ? ebb_machine_unsubscribe(ms, PRICE, 0) : EBB_OK;
}

static const ebb_machine_rule rules[1][KINDS] = {
    {[TAKE] = {on_take, NULL, EBB_MACHINE_HANDLE}, [PRICE] = {on_price, NULL, EBB_MACHINE_HANDLE}}};
static const ebb_machine_state states[1] = {{.name = "Open", .entry = on_open}};
static const ebb_machine_type stock_type = {.name = "Stock",
                                            .states = states,
                                            .table = &rules[0][0],
                                            .fields = sizeof(stock),
                                            .n_states = 1,
                                            .columns = KINDS};

static ebb_status take(ebb_cx *cx, ebb_machines *ms, ebb_machine shelf, uint32_t n) {
    ebb_value v;
    ebb_future *asked = ebb_machine_ask(cx, ms, shelf, TAKE, &n, sizeof n, 100 * EBB_MS);
    ebb_status st = ebb_await(cx, asked, &v); /* EBB_TIMEOUT, EBB_FAULTED, ... */
    if (st != EBB_OK) return st;
    const ebb_machine_answer *answer = v.as.p;
    if (answer->kind == TAKEN) printf("took %u, %u left\n", n, *(const uint32_t *)answer->payload);
    else printf("%u are not there\n", n);
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static ebb_status set_price(ebb_cx *cx, ebb_machines *ms, uint32_t price) {
    ebb_status st = ebb_machine_publish(ms, PRICE, 0, &price, sizeof price); /* to all shelves, or to none */
    while (st == EBB_OK && !ebb_machines_is_idle(ms)) st = ebb_fiber_yield(cx);
    return st;
}

static void say(void *ctx, const char *text, size_t n) {
    (void)ctx;
    printf("%.*s", (int)n, text);
}

static void look(const ebb_machines *ms, ebb_machine shelf) {
    ebb_machine_info info;
    ebb_machines_stats all;
    if (ebb_machine_info_of(ms, shelf, &info) != EBB_OK) return;
    ebb_machines_stats_of(ms, &all);
    const stock *s = info.fields;
    printf("%u left at %u, %u queued; %u machines, %u dispatches\n", s->left, s->price, info.queued,
           all.machines, (unsigned)all.dispatched);
    (void)ebb_machine_explain(ms, shelf, say, NULL); /* what it waits for */
}

static ebb_status run(ebb_cx *cx, void *arg) {
    ebb_machines *ms;
    (void)arg;
    ebb_status st = ebb_machines_open(cx, &ms, &(ebb_machines_opts){.n_kinds = KINDS});
    if (st != EBB_OK) return st;
    ebb_machine shelf = ebb_machine_spawn(ms, &stock_type, 0, &(stock){.left = 5});
    st = ebb_machine_start(ms, shelf);
    if (st == EBB_OK) st = take(cx, ms, shelf, 3);
    if (st == EBB_OK) st = set_price(cx, ms, 7);
    if (st == EBB_OK) look(ms, shelf);
    if (st == EBB_OK) st = take(cx, ms, shelf, 3);
    ebb_region_close(cx, ebb_machines_region(ms)); /* what is queued is handled, then the machines stop */
    ebb_status joined = ebb_region_join(cx, ebb_machines_region(ms));
    ebb_machines_free(ms);
    return st == EBB_OK ? joined : st;
}

int main(void) {
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    ebb_loop *loop;
    ebb_status st = ebb_loop_new(&opts, run, NULL, &loop);
    if (st == EBB_OK) st = ebb_loop_join(loop);
    return st == EBB_OK ? 0 : 1;
}
