/* An order, from its first step to its last. Every decision stands in a history: a crash at any point loses nothing, and
 * the code goes on where it was. So it may use ebb_orch and nothing else: no clock, no network. */
#include "shop.h"

static const uint64_t payment_within = 2 * EBB_SECOND;

/* All activities of an order run in one worker, as long as it lives: the order's machine is there. */
static ebb_step call(ebb_orch *o, const char *name, ebb_blob in, uint32_t attempts) {
    const ebb_call_opts opts = {.attempts = attempts,
                                .backoff = EBB_BACKOFF_EXPONENTIAL,
                                .pause = 200 * EBB_MS,
                                .session = ebb_orch_id(o)};
    return ebb_orch_call(o, name, in, &opts);
}

static void say(ebb_orch *o, const char *stage) {
    (void)ebb_orch_set_status(o, ebb_blob_text(stage)); /* for whoever looks */
}

/* A payment that is not there in time has lost: its row is deleted in this very commit, and the activity is cancelled. */
static ebb_status pay(ebb_orch *o, ebb_blob in) {
    ebb_step race[] = {call(o, "charge", in, 1), ebb_orch_timer(o, payment_within)};
    size_t won;
    ebb_status st = ebb_orch_select(o, 2, race, &won);
    if (st != EBB_OK) return st;
    return won == 0 ? ebb_orch_await(o, race[0], NULL) : EBB_TIMEOUT;
}

/* Nobody knows whether a charge that was cancelled had happened. Both activities undo what there is, and may run twice. */
static ebb_status undo(ebb_orch *o, ebb_blob in, ebb_status why) {
    const ebb_failure late = {.code = "payment_late", .message = "the bank has not answered in time"};
    const ebb_failure failed = why == EBB_FAILED ? *ebb_orch_failure(o) : late;
    say(o, why == EBB_CANCELLED ? "\"cancelling\"" : "\"undoing\"");
    (void)ebb_orch_await(o, call(o, "refund", in, 5), NULL);
    (void)ebb_orch_await(o, call(o, "release", in, 5), NULL);
    say(o, "\"undone\"");
    return why == EBB_CANCELLED ? why : ebb_orch_fail(o, &failed);
}

ebb_status shop_order(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    say(o, "\"placed\"");
    ebb_status st = ebb_orch_await(o, call(o, "reserve", in, 1), NULL);
    if (st == EBB_FAILED)
        return ebb_orch_fail(o, ebb_orch_failure(o)); /* out of stock: there is nothing to undo */
    if (st == EBB_OK) {
        say(o, "\"reserved\"");
        st = pay(o, in);
    }
    if (st == EBB_OK) {
        say(o, "\"paid\"");
        st = ebb_orch_await(o, call(o, "ship", in, 5), out);
    }
    if (st != EBB_OK) return undo(o, in, st);
    say(o, "\"shipped\"");
    return EBB_OK;
}
