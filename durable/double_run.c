/* Replays of a worker: of cold instances, and of each n-th turn on a second fiber with other paint, where code that is
 * not deterministic does something else. */
#include "durable/worker.h"

#include "fiber/fiber.h"

enum { PAINT = 0xA5, PAGE_BYTES = 1 << 20, PAGE_TURNS = 1000 };

static void on_parked(void *arg) {
    ebb__hot *h = arg;
    h->parked = true;
    (void)ebb_task_wake(ebb_runtime_host(h->worker->rt), h->task);
}

static void on_log(void *arg, ebb_durable_level level, const char *id, const char *text) {
    ebb__worker_log(((ebb__hot *)arg)->worker, level, id, "%s", text);
}

ebb__orch_run *ebb__hot_run_new(ebb_cx *cx, ebb__hot *h, const ebb__registered_orch *of, bool exact) {
    const ebb__orch_run_opts o = {.fn = of->fn,
                                  .version = of->version,
                                  .id = h->id,
                                  .key = h->key,
                                  .execution = h->execution,
                                  .region = h->worker->unit,
                                  .paint = exact ? PAINT : EBB__UNPAINTED,
                                  .exact = exact,
                                  .log = on_log,
                                  .arg = h,
                                  .parked = on_parked};
    return ebb__orch_run_new(cx, &o);
}

ebb_status ebb__hot_parked(ebb_cx *cx, ebb__hot *h, ebb__orch_run *r, ebb_status fed) {
    if (fed != EBB_OK) return fed;
    while (!h->parked && !ebb_cancelled(cx)) (void)ebb_fiber_park(cx);
    if (!h->parked) return ebb_checkpoint(cx);
    return ebb__orch_run_outcome(r);
}

static ebb_status feed(ebb_cx *cx, ebb__hot *h, ebb__orch_run *r, const ebb_provider_turn_row *row) {
    h->parked = false;
    return ebb__hot_parked(cx, h, r, ebb__orch_run_replay(cx, r, row));
}

static ebb_provider_history_call *read_page(ebb_cx *cx, ebb__hot *h, uint64_t after, ebb_status *st) {
    ebb_provider_history_call *c = ebb__call_new(h->worker->gate, EBB_PROVIDER_HISTORY);
    *st = EBB_ERR_NOMEM;
    if (c == NULL) return NULL;
    c->key = h->key;
    c->id = "";
    c->execution = h->execution;
    c->after = after;
    c->most = PAGE_TURNS;
    c->bytes = PAGE_BYTES;
    return ebb__worker_insist(cx, h->worker, &c->call, st);
}

ebb_status ebb__hot_replay(ebb_cx *cx, ebb__hot *h, ebb__orch_run *r, uint64_t upto) {
    ebb_status st = EBB_OK;
    while (st == EBB_OK && ebb__orch_run_turns(r) < upto) {
        ebb_provider_history_call *c = read_page(cx, h, ebb__orch_run_turns(r), &st);
        if (st == EBB_OK && c->turns_n == 0)
            st = ebb__durable_say(EBB_ERR_CORRUPT, "turn %llu of %s is not there",
                                  (unsigned long long)ebb__orch_run_turns(r) + 1, h->id);
        else if (st != EBB_OK && c != NULL) (void)ebb__durable_say(st, "%s", c->call.text);
        for (size_t i = 0; st == EBB_OK && i < c->turns_n && ebb__orch_run_turns(r) < upto; i++)
            st = feed(cx, h, r, &c->turns[i]);
        if (c != NULL) ebb__call_free(&c->call);
    }
    return st;
}

ebb_status ebb__double_run(ebb_cx *cx, ebb__hot *h, const ebb_provider_ack_turn_call *ack) {
    const ebb_provider_turn_row row = {ack->execution, ack->turn, ack->at, ack->body};
    ebb_status st = ebb__hot_replay(cx, h, h->shadow, ack->turn - 1);
    return st == EBB_OK ? feed(cx, h, h->shadow, &row) : st;
}
