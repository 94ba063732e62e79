/* A job for every night: each night is an execution of its own, so that the history does not grow for ever. A night is
 * 50 ms here.
 *
 *     example_durable_nightly [STORE] */
#include <ebb/durable.h>
#include <ebb/ebb.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NIGHT (50 * EBB_MS)

static ebb_status report(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    (void)cx;
    (void)out;
    printf("report of night %.*s, attempt %u\n", (int)in.n, (const char *)in.at, ebb_activity_attempt(a));
    const ebb_failure busy = {.code = "busy", .message = "the printer is busy"};
    return ebb_activity_attempt(a) == 1 && *(const char *)in.at == '2' ? ebb_activity_fail(a, &busy) : EBB_OK;
}

static ebb_status nightly(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_call_opts retry = {.attempts = 5, .backoff = EBB_BACKOFF_EXPONENTIAL, .pause = 10 * EBB_MS};
    char *next = ebb_orch_alloc(o, 24);
    ebb_blob last;
    if (next == NULL) return EBB_ERR_NOMEM;
    ebb_status st = ebb_orch_await(o, ebb_orch_timer(o, NIGHT), NULL);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_call(o, "report", in, &retry), NULL);
    if (st == EBB_OK) st = ebb_orch_set(o, "last", in); /* state goes over, and can be read from outside */
    if (st != EBB_OK) return st;
    if (ebb_orch_receive(o, "stop", &last) == EBB_OK) {
        *out = in;
        return EBB_OK;
    }
    (void)snprintf(next, 24, "%.*s", (int)in.n, (const char *)in.at);
    (void)snprintf(next, 24, "%d", atoi(next) + 1);
    return ebb_orch_continue_as_new(o, ebb_blob_text(next), 0);
}

static ebb_status run(ebb_cx *cx, ebb_store *s) {
    ebb_value v;
    const ebb_start_opts start = {.id = "nightly", .name = "nightly", .input = ebb_blob_text("1")};
    const ebb_signal_opts stop = {.id = "nightly", .name = "stop"};
    ebb_status st = ebb_await(cx, ebb_instance_start(cx, s, &start), NULL);
    for (bool third = false; st == EBB_OK && !third;) {
        ebb_sleeper nap = {0};
        st = ebb_sleep(cx, &nap, NIGHT / 5);
        if (st == EBB_OK) st = ebb_await(cx, ebb_instance_get(cx, s, "nightly", "last"), &v);
        if (st != EBB_OK) break;
        const ebb_blob last = ebb_blob_of(&v);
        third = last.n == 1 && memcmp(last.at, "2", 1) == 0;
        ebb_value_discard(cx, v);
    }
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_signal(cx, s, &stop), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_wait(cx, s, "nightly"), &v);
    if (st != EBB_OK) return st;
    const ebb_instance_info *i = ebb_instance_info_of(&v);
    printf("%s: %s in execution %llu\n", i->id, ebb_instance_state_name(i->state),
           (unsigned long long)i->execution);
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
    st = ebb_worker_orch(w, "nightly", 1, nightly);
    if (st == EBB_OK) st = ebb_worker_activity(w, "report", report, NULL, NULL);
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
    if (st != EBB_OK) fprintf(stderr, "nightly: %s\n", ebb_status_text(st));
    return st == EBB_OK ? 0 : 1;
}
