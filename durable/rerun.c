/* A history is fed to a run turn by turn, as a worker feeds that of a cold instance. */
#include "durable/rerun.h"

#include <stdio.h>
#include <string.h>

enum { PAGE_TURNS = 1000, PAGE_BYTES = 1 << 20 };

typedef struct rerun {
    ebb_store *store;
    ebb_runtime *rt;
    ebb_task task; /* that feeds */
    bool parked;   /* the turn that was fed is over */
    ebb__orch_run *run;
    ebb__rerun *out;
} rerun;

static void on_parked(void *arg) {
    rerun *r = arg;
    r->parked = true;
    (void)ebb_task_wake(ebb_runtime_host(r->rt), r->task);
}

static ebb_status feed(ebb_cx *cx, rerun *r, const ebb_provider_turn_row *row) {
    r->parked = false;
    const ebb_status st = ebb__orch_run_replay(cx, r->run, row);
    if (st != EBB_OK) return st;
    while (!r->parked && !ebb_cancelled(cx)) (void)ebb_fiber_park(cx);
    return r->parked ? ebb__orch_run_outcome(r->run) : ebb_checkpoint(cx);
}

/* The turn of an operator who has terminated the instance: no code saw it. */
static bool is_terminate(const ebb_provider_turn_row *row) {
    ebb__event_reader r;
    ebb__event e;
    bool inputs = false, terminated = false;
    ebb_status st = ebb__event_reader_open(&r, row->body);
    while (st == EBB_OK && (st = ebb__event_read(&r, &e)) == EBB_OK) {
        inputs |= ebb__event_class_of(e.kind) == EBB__CLASS_INPUT;
        terminated |= e.kind == EBB__EVENT_TERMINATED;
    }
    return st == EBB_ERR_EOF && terminated && !inputs;
}

static ebb_provider_history_call *page(ebb_cx *cx, rerun *r, const ebb_provider_instance_row *row,
                                       ebb_status *st) {
    ebb_provider_history_call *c = ebb__call_new(ebb__store_gate(r->store), EBB_PROVIDER_HISTORY);
    *st = EBB_ERR_NOMEM;
    if (c == NULL) return NULL;
    c->key = row->key;
    c->id = ebb__call_text(&c->call, row->id);
    c->execution = row->execution;
    c->after = r->out->turns;
    c->most = PAGE_TURNS;
    c->bytes = PAGE_BYTES;
    return ebb__client_ask(cx, &c->call, st);
}

static ebb_status feed_all(ebb_cx *cx, rerun *r, const ebb_provider_instance_row *row) {
    ebb_status st = EBB_OK;
    bool over = false;
    while (st == EBB_OK && !over && r->out->turns < row->turn) {
        ebb_provider_history_call *c = page(cx, r, row, &st);
        if (c == NULL) return st;
        if (c->turns_n == 0)
            st = ebb__durable_say(EBB_ERR_CORRUPT, "turn %llu of %s is not there",
                                  (unsigned long long)r->out->turns + 1, row->id);
        for (size_t i = 0; st == EBB_OK && !over && i < c->turns_n; i++) {
            over = is_terminate(&c->turns[i]);
            if (!over) st = feed(cx, r, &c->turns[i]);
            if (st == EBB_OK) r->out->turns = c->turns[i].turn;
        }
        ebb__call_free(&c->call);
    }
    return st;
}

/* A difference names its turn. */
static ebb_status explain(const rerun *r, const ebb_provider_instance_row *row, ebb_status st) {
    const char *text = ebb__orch_run_difference(r->run);
    if (*text == 0) text = *ebb_durable_error() != 0 ? ebb_durable_error() : ebb_status_text(st);
    (void)snprintf(r->out->text, sizeof r->out->text, "%s", text);
    if (st == EBB_ERR_NONDETERMINISM) return st;
    return ebb__durable_say(st, "%s, execution %llu, turn %llu: %s", row->id,
                            (unsigned long long)row->execution, (unsigned long long)r->out->turns + 1,
                            r->out->text);
}

static ebb_status run(ebb_cx *cx, rerun *r, const ebb__registered_orch *of,
                      const ebb_provider_instance_row *row) {
    const ebb_region_opts own = {
        .parent = ebb_cx_region(cx), .policy = EBB_FAIL_COLLECT, .name = "history run again"};
    const ebb_region region = ebb_region_open(cx, &own);
    ebb_status st = ebb_id_status(region.id);
    if (st != EBB_OK) return st;
    const ebb__orch_run_opts o = {.fn = of->fn,
                                  .version = of->version,
                                  .id = row->id,
                                  .key = row->key,
                                  .execution = row->execution,
                                  .region = region,
                                  .paint = EBB__UNPAINTED,
                                  .arg = r,
                                  .parked = on_parked};
    r->run = ebb__orch_run_new(cx, &o);
    st = r->run != NULL ? feed_all(cx, r, row) : EBB_ERR_NOMEM;
    if (st != EBB_OK && r->run != NULL) st = explain(r, row, st);
    ebb__orch_run_free(cx, r->run);
    ebb_region_close(cx, region);
    return st;
}

ebb_status ebb__rerun_instance(ebb_cx *cx, ebb_store *s, const ebb_worker *w, const char *id,
                               ebb__rerun *out) {
    rerun r = {.store = s, .rt = ebb_cx_runtime(cx), .task = ebb_cx_task(cx), .out = out};
    memset(out, 0, sizeof *out);
    ebb_status st = ebb__client_check_id(id);
    ebb_provider_instance_call *c =
        st == EBB_OK ? ebb__call_new(ebb__store_gate(s), EBB_PROVIDER_INSTANCE) : NULL;
    if (c == NULL) return st != EBB_OK ? st : EBB_ERR_NOMEM;
    c->id = ebb__call_text(&c->call, id);
    c = ebb__client_ask(cx, &c->call, &st);
    if (c == NULL) return st;
    const ebb__registered_orch *of = ebb__orch_of(w, c->row.name, c->row.version);
    (void)snprintf(out->name, sizeof out->name, "%s", c->row.name);
    out->version = of != NULL ? of->version : c->row.version;
    out->execution = c->row.execution;
    if (of != NULL) st = run(cx, &r, of, &c->row);
    else
        st = ebb__durable_say(EBB_ERR_INVALID,
                              "%s is of orchestration %s, version %u, which is not registered", id,
                              c->row.name, c->row.version);
    ebb__call_free(&c->call);
    return st;
}
