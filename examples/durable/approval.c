/* A person decides: the orchestration waits for an event from outside, or for a deadline of its own.
 *
 *     example_durable_approval [STORE] */
#include <ebb/durable.h>
#include <ebb/ebb.h>

#include <stdio.h>

static ebb_status expense(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    size_t won;
    ebb_status st = ebb_orch_set_status(o, ebb_blob_text("\"waits for an approval\""));
    if (st != EBB_OK) return st;
    ebb_step race[] = {ebb_orch_event(o, "decision"), ebb_orch_timer(o, 72 * 3600 * EBB_SECOND)};
    (void)in;
    st = ebb_orch_select(o, 2, race, &won);
    if (st != EBB_OK) return st;
    if (won == 1) return EBB_TIMEOUT;
    return ebb_orch_await(o, race[0], out);
}

static ebb_status run(ebb_cx *cx, ebb_store *s) {
    ebb_value v;
    ebb_sleeper nap = {0};
    const ebb_start_opts start = {
        .id = "expense-9", .name = "expense", .input = ebb_blob_text("{\"amount\":120}")};
    const ebb_signal_opts yes = {
        .id = "expense-9", .name = "decision", .body = ebb_blob_text("\"approved\""), .dedup = "click-1"};
    ebb_status st = ebb_await(cx, ebb_instance_start(cx, s, &start), NULL);
    if (st == EBB_OK) st = ebb_sleep(cx, &nap, 50 * EBB_MS); /* the person thinks */
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_status(cx, s, "expense-9"), &v);
    if (st != EBB_OK) return st;
    const ebb_instance_info *i = ebb_instance_info_of(&v);
    printf("%s: %s, %.*s\n", i->id, ebb_instance_state_name(i->state), (int)i->custom.n,
           (const char *)i->custom.at);
    ebb_value_discard(cx, v);
    st = ebb_await(cx, ebb_instance_signal(cx, s, &yes), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_wait(cx, s, "expense-9"), &v);
    if (st != EBB_OK) return st;
    i = ebb_instance_info_of(&v);
    printf("%s: %s, %.*s\n", i->id, ebb_instance_state_name(i->state), (int)i->output.n,
           (const char *)i->output.at);
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static ebb_status main_task(ebb_cx *cx, void *url) {
    ebb_worker *w;
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = url}), &v);
    if (st != EBB_OK) return st;
    ebb_store *s = ebb_store_of(&v);
    st = ebb_worker_open(cx, s, NULL, &w);
    if (st != EBB_OK) return st;
    st = ebb_worker_orch(w, "expense", 1, expense);
    if (st == EBB_OK) st = ebb_worker_begin(w);
    if (st == EBB_OK) st = run(cx, s);
    ebb_region_close(cx, ebb_worker_region(w)); /* else it goes on */
    return st;
}

int main(int argc, char **argv) {
    ebb_loop *loop;
    char lab[] = "lab:";
    const ebb_loop_opts opts = {.runtime = {.allocator = ebb_libc_allocator()}};
    ebb_status st = ebb_loop_new(&opts, main_task, argc > 1 ? argv[1] : lab, &loop);
    if (st == EBB_OK) st = ebb_loop_join(loop);
    if (st != EBB_OK) fprintf(stderr, "approval: %s\n", ebb_status_text(st));
    return st == EBB_OK ? 0 : 1;
}
