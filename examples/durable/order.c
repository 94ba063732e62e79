/* An order: the seat is reserved, the payment has 30 s, and what was done is undone if it does not come.
 *
 *     example_durable_order [STORE]          "lab:" (in memory), or "sqlite:orders.db"
 *
 * Kill it in the middle and start it again: it goes on where it was. */
#include <ebb/durable.h>
#include <ebb/ebb.h>

#include <stdio.h>
#include <string.h>

/* ---- activities: ordinary tasks, run at least once -------------------------------------------------------------- */

static ebb_status reserve(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    (void)cx;
    printf("reserve %.*s, key %s\n", (int)in.n, (const char *)in.at,
           *ebb_activity_key(a) != 0 ? "given" : "missing");
    *out = ebb_blob_text("\"seat 4\"");
    return EBB_OK;
}

static ebb_status charge(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    ebb_sleeper nap = {0};
    (void)a;
    (void)out;
    const bool slow = in.n == 6 && memcmp(in.at, "\"slow\"", 6) == 0;
    ebb_status st = ebb_sleep(cx, &nap, slow ? EBB_FOREVER / 4 : 10 * EBB_MS); /* the bank */
    printf("charge %.*s: %s\n", (int)in.n, (const char *)in.at, ebb_status_name(st));
    return st;
}

static ebb_status release(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    (void)cx;
    (void)a;
    (void)out;
    printf("release %.*s\n", (int)in.n, (const char *)in.at);
    return EBB_OK;
}

/* ---- the orchestration: deterministic, its every step in the history --------------------------------------------- */

static ebb_status order(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_blob seat;
    size_t won;
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "reserve", in, NULL), &seat);
    if (st != EBB_OK) return st;
    ebb_step race[] = {ebb_orch_call(o, "charge", in, NULL), ebb_orch_timer(o, 300 * EBB_MS)};
    st = ebb_orch_select(o, 2, race, &won); /* the loser's row goes in the commit of this turn */
    if (st == EBB_OK) st = won == 0 ? ebb_orch_await(o, race[0], NULL) : EBB_TIMEOUT;
    if (st == EBB_OK) {
        *out = seat;
        return EBB_OK;
    }
    (void)ebb_orch_await(o, ebb_orch_call(o, "release", seat, NULL), NULL); /* also after a cancel */
    if (st == EBB_CANCELLED) return st;
    const ebb_failure why = {.code = "not_paid", .message = "the payment did not come in time"};
    return ebb_orch_fail(o, &why);
}

/* ---- the program ---------------------------------------------------------------------------------------------------- */

static ebb_status buy(ebb_cx *cx, ebb_store *s, const char *id, const char *how) {
    ebb_value v;
    const ebb_start_opts start = {.id = id, .name = "order", .input = ebb_blob_text(how)};
    ebb_status st = ebb_await(cx, ebb_instance_start(cx, s, &start), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_wait(cx, s, id), &v);
    if (st != EBB_OK) return st;
    const ebb_instance_info *i = ebb_instance_info_of(&v);
    printf("%s: %s %.*s%s\n", id, ebb_instance_state_name(i->state), (int)i->output.n,
           i->output.n != 0 ? (const char *)i->output.at : "",
           i->failure.code != NULL ? i->failure.code : "");
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static ebb_status shop(ebb_cx *cx, void *url) {
    ebb_worker *w;
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = url}), &v);
    if (st != EBB_OK) return st;
    ebb_store *s = ebb_store_of(&v);
    st = ebb_worker_open(cx, s, NULL, &w);
    if (st != EBB_OK) return st;
    st = ebb_worker_orch(w, "order", 1, order);
    if (st == EBB_OK) st = ebb_worker_activity(w, "reserve", reserve, NULL, NULL);
    if (st == EBB_OK) st = ebb_worker_activity(w, "charge", charge, NULL, NULL);
    if (st == EBB_OK) st = ebb_worker_activity(w, "release", release, NULL, NULL);
    if (st == EBB_OK) st = ebb_worker_begin(w);
    if (st == EBB_OK) st = buy(cx, s, "order-1", "\"quick\"");
    if (st == EBB_OK) st = buy(cx, s, "order-2", "\"slow\"");
    ebb_region_close(cx, ebb_worker_region(w)); /* else it goes on */
    return st;
}

int main(int argc, char **argv) {
    ebb_loop *loop;
    char lab[] = "lab:";
    const ebb_loop_opts opts = {.runtime = {.allocator = ebb_libc_allocator()}};
    ebb_status st = ebb_loop_new(&opts, shop, argc > 1 ? argv[1] : lab, &loop);
    if (st == EBB_OK) st = ebb_loop_join(loop);
    if (st != EBB_OK) fprintf(stderr, "order: %s\n", ebb_status_text(st));
    return st == EBB_OK ? 0 : 1;
}
