/* docs/guide.md shows parts of this: what orchestrations know, and a test by script. */
#include <ebb/durable.h>
#include <ebb/ebb.h>

#include <stdio.h>

static ebb_status parcel(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    /* The time of the turn, the id and ebb_orch_random are the same in each replay. */
    const uint64_t pickup = ebb_orch_now(o) + 24 * 3600 * EBB_SECOND;
    char label[37], line[400];
    ebb_blob had;
    ebb_orch_new_id(o, label);
    if (!ebb_orch_get(o, "label", &had)) (void)ebb_orch_set(o, "label", ebb_blob_text(label));
    ebb_step race[] = {ebb_orch_keep(o, ebb_orch_call(o, "weigh", in, NULL)),
                       ebb_orch_timer(o, 60 * EBB_SECOND)};
    size_t won;
    /* The call may lose, and goes on: it is kept. */
    ebb_status st = ebb_orch_select(o, 2, race, &won);
    if (st == EBB_OK) st = ebb_orch_await(o, race[0], out);
    (void)snprintf(line, sizeof line, "%s, execution %d of version %u", ebb_orch_id(o),
                   (int)ebb_orch_execution(o), ebb_orch_version(o));
    ebb_orch_log(o, EBB_DURABLE_INFO, line); /* once, however often the code runs */
    if (st == EBB_OK) st = ebb_orch_set_status(o, ebb_blob_text("weighed"));
    const uint64_t left = pickup - ebb_orch_now(o);
    ebb_step sent[] = {ebb_orch_event(o, "sent"), ebb_orch_timer(o, left)};
    if (st == EBB_OK) st = ebb_orch_select(o, 2, sent, &won);
    /* There is time to clean up until ebb_orch_cleanup_by. */
    if (st == EBB_CANCELLED && ebb_orch_cancelled(o))
        ebb_orch_log(o, EBB_DURABLE_INFO, ebb_orch_cancel_reason(o));
    return st;
}

/* The code has changed while instances run: those that are past this point go on without the insurance. */
static ebb_status insured(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    if (ebb_orch_patched(o, "insurance")) {
        ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "insure", in, NULL), NULL);
        if (st != EBB_OK) return st;
    }
    return parcel(o, in, out);
}

static void answer(void *arg, ebb_test_call *call) {
    (void)arg;
    call->after = 61 * EBB_SECOND; /* later than the timer */
    call->output = ebb_blob_text("2 kg");
}

static ebb_status test_parcels(void) {
    const ebb_test_signal sent = {.at = 3600 * EBB_SECOND, .name = "sent"};
    const ebb_orch_test_opts opts = {
        .allocator = ebb_libc_allocator(), .fn = insured, .answer = answer, .signals = &sent, .signals_n = 1};
    ebb_orch_test_result r;
    const ebb_status st = ebb_orch_test(&opts, &r);
    printf("%s with %s, %s\n", ebb_instance_state_name(r.state), r.output,
           st == EBB_OK ? "in each run" : r.difference);
    ebb_orch_test_free(&opts, &r);
    return st;
}

int main(void) {
    return test_parcels() == EBB_OK ? 0 : 1;
}
