/* A thousand parts at once, and a cancel half-way: one commit deletes what is left, and no part of it starts.
 *
 *     example_durable_fanout [STORE] */
#include <ebb/durable.h>
#include <ebb/ebb.h>

#include <stdio.h>

enum { PARTS = 1000, HALF = 500 };

typedef struct count {
    unsigned done;
    ebb_sem half; /* a permit when half of the parts are done */
} count;

static ebb_status part(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    count *c = ebb_activity_arg(a);
    ebb_sleeper nap = {0};
    (void)in;
    (void)out;
    ebb_status st = ebb_sleep(cx, &nap, EBB_MS);
    if (st == EBB_OK && ++c->done == HALF) ebb_sem_release(cx, &c->half);
    return st;
}

static ebb_status fan(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step *parts = ebb_orch_alloc(o, PARTS * sizeof *parts);
    (void)out;
    if (parts == NULL) return EBB_ERR_NOMEM;
    for (size_t i = 0; i < PARTS; i++) parts[i] = ebb_orch_call(o, "part", in, NULL);
    return ebb_orch_join(o, PARTS, parts); /* EBB_CANCELLED after the cancel */
}

static ebb_status run(ebb_cx *cx, ebb_store *s, count *c) {
    ebb_value v;
    ebb_wait wait = {0};
    const ebb_start_opts start = {.id = "fan-1", .name = "fan"};
    ebb_status st = ebb_await(cx, ebb_instance_start(cx, s, &start), NULL);
    if (st == EBB_OK) st = ebb_sem_acquire(cx, &c->half, &wait);
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_cancel(cx, s, "fan-1", "half is enough"), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_wait(cx, s, "fan-1"), &v);
    if (st != EBB_OK) return st;
    const ebb_instance_info *i = ebb_instance_info_of(&v);
    printf("%s: %s, %s\n", i->id, ebb_instance_state_name(i->state), i->text);
    printf("%s of the parts were done\n", c->done < PARTS ? "not all" : "all");
    ebb_value_discard(cx, v);
    st = ebb_await(cx, ebb_instance_history(cx, s, "fan-1", &(ebb_history_opts){.verify = true}), &v);
    if (st != EBB_OK) return st;
    size_t n;
    (void)ebb_history_of(&v, &n);
    printf("its history is sound, with %s events\n", n > PARTS ? "a thousand and more" : "too few");
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static ebb_status main_task(ebb_cx *cx, void *url) {
    count c = {0};
    ebb_worker *w;
    ebb_value v;
    ebb_sem_init(&c.half, 0);
    ebb_status st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = url}), &v);
    if (st != EBB_OK) return st;
    ebb_store *s = ebb_store_of(&v);
    st = ebb_worker_open(cx, s, NULL, &w);
    if (st != EBB_OK) return st;
    st = ebb_worker_orch(w, "fan", 1, fan);
    if (st == EBB_OK) st = ebb_worker_activity(w, "part", part, &c, NULL);
    if (st == EBB_OK) st = ebb_worker_begin(w);
    if (st == EBB_OK) st = run(cx, s, &c);
    ebb_region_cancel(cx, ebb_worker_region(w), EBB_CANCEL_SHUTDOWN, "done");
    (void)ebb_await(cx, ebb_region_closed(cx, ebb_worker_region(w)), NULL); /* its activities use `c` */
    return st;
}

int main(int argc, char **argv) {
    ebb_loop *loop;
    char lab[] = "lab:";
    const ebb_loop_opts opts = {.runtime = {.allocator = ebb_libc_allocator()}};
    ebb_status st = ebb_loop_new(&opts, main_task, argc > 1 ? argv[1] : lab, &loop);
    if (st == EBB_OK) st = ebb_loop_join(loop);
    if (st != EBB_OK) fprintf(stderr, "fanout: %s\n", ebb_status_text(st));
    return st == EBB_OK ? 0 : 1;
}
