#include "tests/support/orch_script.h"

enum { PAINT = 0xA5 };

static void on_parked(void *arg) {
    ((script *)arg)->parked++;
}

static void on_log(void *arg, ebb_durable_level level, const char *id, const char *text) {
    script *s = arg;
    (void)level;
    (void)id;
    strncat(s->log, text, sizeof s->log - strlen(s->log) - 1);
    strncat(s->log, "|", sizeof s->log - strlen(s->log) - 1);
}

static ebb__orch_run *run_of(script *s, ebb_orch_fn fn, bool exact) {
    ebb__orch_run_opts o = {.fn = fn,
                            .version = 1,
                            .id = "order-7",
                            .key = 7,
                            .execution = 1,
                            .region = s->region,
                            .paint = exact ? PAINT : EBB__UNPAINTED,
                            .exact = exact,
                            .log = on_log,
                            .arg = s,
                            .parked = on_parked};
    ebb__orch_run *r = ebb__orch_run_new(s->world->host, &o);
    assert_non_null(r);
    return r;
}

script *script_new(world *w, ebb_orch_fn fn, const char *input) {
    script *s = world_keep(w, sizeof *s);
    s->world = w;
    s->fn = fn;
    s->now = UINT64_C(1700000000) * EBB_SECOND;
    s->region = ebb_region_open(w->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    s->run = run_of(s, fn, false);
    s->shadow = run_of(s, fn, true);
    ebb__event e = {.kind = EBB__EVENT_STARTED, .name = {"order", 5}, .body = ebb_blob_text(input)};
    memset(e.seed.at, 42, sizeof e.seed.at);
    script_give(s, EBB_PROVIDER_MESSAGE_START, &e);
    return s;
}

static ebb_blob keep(script *s, ebb_blob b) {
    void *at = world_keep(s->world, b.n + 1);
    if (b.n != 0) memcpy(at, b.at, b.n);
    return (ebb_blob){at, b.n};
}

void script_give(script *s, ebb_provider_message_kind kind, const ebb__event *e) {
    ebb__arena arena;
    ebb__arena_init(&arena, s->world->allocator, 1024);
    ebb_provider_message *m = &s->inbox[s->inbox_n++];
    *m = (ebb_provider_message){.at = {(uint8_t)kind, s->inbox_n}, .step = e->step};
    if (kind != EBB_PROVIDER_MESSAGE_TIMER) m->body = keep(s, ebb__event_encode(&arena, e));
    else m->at.seq = e->step;
    ebb__arena_free(&arena);
}

void script_complete(script *s, uint64_t activity, const char *output) {
    const ebb__event e = {
        .kind = EBB__EVENT_ACTIVITY_COMPLETED, .step = activity, .body = ebb_blob_text(output)};
    script_give(s, EBB_PROVIDER_MESSAGE_ACTIVITY, &e);
}

void script_fail(script *s, uint64_t activity, ebb_status st, const char *code, bool final) {
    const ebb__event e = {.kind = EBB__EVENT_ACTIVITY_FAILED,
                          .step = activity,
                          .status = st,
                          .code = {code, strlen(code)},
                          .flags = final ? EBB__FLAG_FINAL : 0};
    script_give(s, EBB_PROVIDER_MESSAGE_ACTIVITY, &e);
}

void script_fire(script *s, uint64_t timer) {
    const ebb__event e = {.kind = EBB__EVENT_TIMER_FIRED, .step = timer};
    script_give(s, EBB_PROVIDER_MESSAGE_TIMER, &e);
}

void script_signal(script *s, const char *name, const char *body) {
    const ebb__event e = {
        .kind = EBB__EVENT_SIGNALLED, .name = {name, strlen(name)}, .body = ebb_blob_text(body)};
    script_give(s, EBB_PROVIDER_MESSAGE_SIGNAL, &e);
}

void script_cancel(script *s, const char *reason) {
    const ebb__event e = {.kind = EBB__EVENT_CANCEL_REQUESTED, .text = {reason, strlen(reason)}};
    script_give(s, EBB_PROVIDER_MESSAGE_CANCEL, &e);
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

static void add(uint64_t *rows, size_t *n, uint64_t row) {
    assert_true(*n < SCRIPT_ROWS);
    rows[(*n)++] = row;
}

static void remove_row(uint64_t *rows, size_t *n, uint64_t row) {
    for (size_t i = 0; i < *n; i++) {
        if (rows[i] != row) continue;
        rows[i] = rows[--*n];
        return;
    }
}

static bool has(const uint64_t *rows, size_t n, uint64_t row) {
    for (size_t i = 0; i < n; i++) {
        if (rows[i] == row) return true;
    }
    return false;
}

bool script_has_work(const script *s, uint64_t activity) {
    return has(s->work, s->work_n, activity);
}

bool script_has_timer(const script *s, uint64_t timer) {
    return has(s->timers, s->timers_n, timer);
}

static void took(script *s) {
    for (size_t i = 0; i < s->inbox_n; i++) {
        if (s->inbox[i].at.kind == EBB_PROVIDER_MESSAGE_ACTIVITY)
            remove_row(s->work, &s->work_n, s->inbox[i].step);
        if (s->inbox[i].at.kind == EBB_PROVIDER_MESSAGE_TIMER)
            remove_row(s->timers, &s->timers_n, s->inbox[i].step);
    }
    s->inbox_n = 0;
}

static void apply(script *s) {
    const ebb_provider_ack_turn_call *a = &s->ack;
    for (size_t i = 0; i < a->cancelled_n; i++) remove_row(s->work, &s->work_n, a->cancelled[i].activity);
    for (size_t i = 0; i < a->timers_cancelled_n; i++)
        remove_row(s->timers, &s->timers_n, a->timers_cancelled[i]);
    for (size_t i = 0; i < a->work_n; i++) add(s->work, &s->work_n, a->work[i].activity);
    for (size_t i = 0; i < a->timers_n; i++) add(s->timers, &s->timers_n, a->timers[i].step);
    if (a->all_work) s->work_n = 0;
    if (a->all_timers) s->timers_n = 0;
}

static void say_outgoing(script *s) {
    char *said = world_keep(s->world, 4096);
    for (size_t i = 0; i < s->ack.outgoing_n; i++) {
        const ebb_provider_outgoing *o = &s->ack.outgoing[i];
        const size_t n = strlen(said);
        (void)snprintf(said + n, 4096 - n, "%d %s|", o->kind, o->id);
    }
    s->said = said;
}

static void replay_shadow(script *s) {
    const ebb_provider_turn_row *row = &s->turns[s->turns_n - 1];
    if (s->no_shadow) return;
    ebb_status st = ebb__orch_run_replay(s->world->host, s->shadow, row);
    world_settle(s->world);
    if (st == EBB_OK) st = ebb__orch_run_outcome(s->shadow);
    if (st != EBB_OK) print_error("%s\n", ebb__orch_run_difference(s->shadow));
    assert_int_equal(st, EBB_OK);
}

ebb_status script_turn(script *s, uint64_t span) {
    const int parked = s->parked;
    s->now += span;
    ebb_status st = ebb__orch_run_turn(s->world->host, s->run, s->now, s->inbox, s->inbox_n);
    world_settle(s->world);
    if (st == EBB_OK) st = ebb__orch_run_outcome(s->run);
    if (st != EBB_OK) return st;
    assert_int_equal(s->parked, parked + 1);
    s->ack = (ebb_provider_ack_turn_call){.turn = 0};
    st = ebb__orch_run_commit(s->run, &s->ack);
    if (st != EBB_OK) return st;
    took(s);
    apply(s);
    say_outgoing(s);
    assert_true(s->turns_n < SCRIPT_TURNS);
    s->turns[s->turns_n++] = (ebb_provider_turn_row){1, s->ack.turn, s->ack.at, keep(s, s->ack.body)};
    replay_shadow(s);
    return EBB_OK;
}

ebb_status script_evict(script *s, ebb_orch_fn fn) {
    ebb__orch_run_free(s->world->host, s->run);
    if (fn != NULL) s->fn = fn;
    s->run = run_of(s, s->fn, false);
    ebb_status st = EBB_OK;
    for (size_t i = 0; i < s->turns_n && st == EBB_OK; i++) {
        st = ebb__orch_run_replay(s->world->host, s->run, &s->turns[i]);
        world_settle(s->world);
        if (st == EBB_OK) st = ebb__orch_run_outcome(s->run);
    }
    return st;
}

void script_refused(script *s, uint64_t span) {
    assert_int_equal(ebb__orch_run_turn(s->world->host, s->run, s->now + span, s->inbox, s->inbox_n), EBB_OK);
    world_settle(s->world);
    assert_int_equal(ebb__orch_run_outcome(s->run), EBB_OK);
    assert_int_equal(script_evict(s, NULL), EBB_OK);
}

/* ---- what it shows ------------------------------------------------------------------------------------------------- */

const char *script_events(script *s) {
    char *text = world_keep(s->world, 1 << 16);
    ebb__event_reader r;
    ebb__event e;
    assert_int_equal(ebb__event_reader_open(&r, s->turns[s->turns_n - 1].body), EBB_OK);
    while (ebb__event_read(&r, &e) == EBB_OK) {
        size_t n = strlen(text);
        (void)ebb__event_say(&e, text + n, (1 << 16) - n - 1);
        strcat(text, "\n");
    }
    return text;
}

const char *script_output(script *s) {
    ebb__event_reader r;
    ebb__event e;
    assert_int_equal(s->ack.ends, EBB_INSTANCE_COMPLETED);
    ebb__event_reader_list(&r, s->ack.result);
    assert_int_equal(ebb__event_read(&r, &e), EBB_OK);
    return keep(s, e.body).at;
}

void script_end(script *s) {
    ebb__orch_run_free(s->world->host, s->run);
    ebb__orch_run_free(s->world->host, s->shadow);
    s->run = s->shadow = NULL;
    (void)ebb_region_join(s->world->host, s->region);
}
