/* docs/guide.md shows parts of this: what operators do. */
#include <ebb/durable.h>
#include <ebb/ebb.h>

#include <stdio.h>

static ebb_status weigh(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    char *text = ebb_activity_alloc(a, 300); /* freed after its end; *out is copied before */
    (void)cx;
    (void)in;
    if (text == NULL) return EBB_ERR_NOMEM;
    out->n =
        (size_t)snprintf(text, 300, "2 kg for %s, claim %u", ebb_activity_instance(a), ebb_activity_claim(a));
    out->at = text;
    return EBB_OK;
}

static ebb_status parcel(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "weigh", in, NULL), out);
    if (st == EBB_OK) st = ebb_orch_set_status(o, ebb_blob_text("weighed"));
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_event(o, "sent"), NULL) : st;
}

static ebb_status until_weighed(ebb_cx *cx, ebb_store *s, const char *id) {
    ebb_sleeper nap = {0};
    ebb_status st = EBB_OK;
    for (bool waits = false; st == EBB_OK && !waits;) {
        ebb_value v;
        st = ebb_await(cx, ebb_instance_status(cx, s, id), &v);
        if (st != EBB_OK) return st;
        waits = ebb_instance_info_of(&v)->custom.n != 0;
        ebb_value_discard(cx, v);
        if (!waits) st = ebb_sleep(cx, &nap, EBB_MS);
    }
    return st;
}

static ebb_status show_all(ebb_cx *cx, ebb_store *s, const ebb_instance_filter *which) {
    ebb_value v;
    size_t n;
    ebb_status st = ebb_await(cx, ebb_instance_list(cx, s, which), &v); /* a page; `after` gives the next */
    if (st != EBB_OK) return st;
    const ebb_instance_info *all = ebb_instances_of(&v, &n);
    for (size_t i = 0; i < n; i++) printf("%s %s\n", all[i].id, ebb_instance_state_name(all[i].state));
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static ebb_status cancel_ours(ebb_cx *cx, ebb_store *s, const ebb_instance_filter *ours) {
    const ebb_bulk_opts why = {.reason = "strike"};
    ebb_value n;
    ebb_status st = ebb_await(cx, ebb_instance_cancel_all(cx, s, ours, &why), &n);
    if (st == EBB_OK) printf("cancelled %d\n", (int)n.as.i);
    return st;
}

/* Once more from the turn of event 2 on; and not, after all. */
static ebb_status again(ebb_cx *cx, ebb_store *s, const char *id) {
    ebb_status st = ebb_await(cx, ebb_instance_reset(cx, s, id, 2), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_terminate(cx, s, id, "lost"), NULL);
    if (st != EBB_OK) return st;
    st = ebb_await(cx, ebb_instance_resume(cx, s, id), NULL); /* of one that is suspended */
    if (st != EBB_OK) printf("%s\n", ebb_durable_error());
    return ebb_await(cx, ebb_instance_delete(cx, s, id, false), NULL);
}

/* Deletes those of ours that have ended. */
static ebb_status tidy(ebb_cx *cx, ebb_store *s, const ebb_instance_filter *ours) {
    ebb_value n;
    ebb_status st = ebb_await(cx, ebb_instance_prune(cx, s, ours, NULL), &n);
    if (st == EBB_OK) printf("deleted %d more\n", (int)n.as.i);
    return st;
}

static ebb_status operate(ebb_cx *cx, ebb_store *s) {
    const ebb_instance_filter ours = {.prefix = "parcel-"};
    ebb_status st = cancel_ours(cx, s, &ours);
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_wait(cx, s, "parcel-1"), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_wait(cx, s, "parcel-2"), NULL);
    if (st == EBB_OK) st = show_all(cx, s, &ours);
    if (st == EBB_OK) st = again(cx, s, "parcel-1");
    return st == EBB_OK ? tidy(cx, s, &ours) : st;
}

static ebb_status guide(ebb_cx *cx, void *arg) {
    ebb_worker *w;
    ebb_worker_stats stats;
    ebb_value v;
    (void)arg;
    ebb_status st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = "lab:"}), &v);
    ebb_store *s = st == EBB_OK ? ebb_store_of(&v) : NULL;
    if (st == EBB_OK) st = ebb_worker_open(cx, s, NULL, &w);
    if (st != EBB_OK) return st;
    st = ebb_worker_orch(w, "parcel", 1, parcel);
    if (st == EBB_OK) st = ebb_worker_activity(w, "weigh", weigh, NULL, NULL);
    if (st == EBB_OK) st = ebb_worker_begin(w);
    static const char *const ids[] = {"parcel-1", "parcel-2"};
    for (size_t i = 0; i < 2 && st == EBB_OK; i++) {
        st =
            ebb_await(cx, ebb_instance_start(cx, s, &(ebb_start_opts){.id = ids[i], .name = "parcel"}), NULL);
        if (st == EBB_OK) st = until_weighed(cx, s, ids[i]);
    }
    if (st == EBB_OK) st = operate(cx, s);
    ebb_worker_stats_of(w, &stats);
    if (stats.completed >= 2) printf("both were weighed\n");
    const ebb_region of_worker = ebb_worker_region(w);
    ebb_region_close(cx, of_worker);
    if (st == EBB_OK) st = ebb_await(cx, ebb_region_closed(cx, of_worker), NULL);
    return st == EBB_OK ? ebb_await(cx, ebb_store_close(cx, s), NULL)
                        : st; /* with its region, if nobody does */
}

int main(void) {
    ebb_loop *loop;
    const ebb_loop_opts opts = {.runtime = {.allocator = ebb_libc_allocator()}};
    ebb_status st = ebb_loop_new(&opts, guide, NULL, &loop);
    return st == EBB_OK && ebb_loop_join(loop) == EBB_OK ? 0 : 1;
}
