/* Random orchestrations through the public API on the lab store: what a script of bytes says is done by a tree of steps, and
 * operators cancel, signal, terminate and reset at random. The same seed gives the same histories, byte by byte, with every
 * size of the cache. Between two commits: rows of work and timers belong to what the history has outstanding, and none to what has
 * ended. EBB_RANDOM_SEEDS: how many. */
#include "durable/lab_rows.h"
#include "durable/run.h"
#include "tests/support/durable_world.h"

enum { INSTANCES = 6, STEPS = 12, OPERATIONS = 14 };

typedef struct play {
    durable *d;
    ebb__lab_world *lab;
    uint64_t seed;
} play;

/* ---- orchestrations: chance is the instance's own ------------------------------------------------------------------ */

static ebb_step some_step(ebb_orch *o, ebb_blob in) {
    const ebb_call_opts flaky = {.attempts = 3,
                                 .backoff = EBB_BACKOFF_LINEAR,
                                 .pause = ebb_orch_random(o) % (3 * EBB_SECOND),
                                 .timeout = 1 + ebb_orch_random(o) % (4 * EBB_SECOND),
                                 .retry_timeouts = ebb_orch_random(o) % 2 == 0};
    switch (ebb_orch_random(o) % 7) {
    case 0: return ebb_orch_call(o, "echo", in, NULL);
    case 1: return ebb_orch_call(o, "fails", in, &flaky);
    case 2: return ebb_orch_call(o, "hang", in, &flaky);
    case 3: return ebb_orch_timer(o, ebb_orch_random(o) % (5 * EBB_SECOND));
    case 4: return ebb_orch_event(o, ebb_orch_random(o) % 2 == 0 ? "red" : "blue");
    case 5: return ebb_orch_child(o, "leaf", in, &(ebb_child_opts){.detached = ebb_orch_random(o) % 4 == 0});
    default: return ebb_orch_call(o, "hang", in, NULL);
    }
}

static ebb_status some_wait(ebb_orch *o, ebb_blob in) {
    ebb_step all[4];
    size_t won, n = 1 + ebb_orch_random(o) % 4;
    for (size_t i = 0; i < n; i++) {
        all[i] = some_step(o, in);
        if (ebb_orch_random(o) % 8 == 0) all[i] = ebb_orch_keep(o, all[i]);
        if (ebb_orch_random(o) % 16 == 0) all[i] = ebb_orch_shield(o, all[i]);
    }
    /* a timer, so that nothing hangs for ever */
    all[n == 4 ? 3 : n] = ebb_orch_timer(o, ebb_orch_random(o) % (20 * EBB_SECOND));
    n += n < 4;
    if (ebb_orch_random(o) % 3 == 0) (void)ebb_orch_set(o, "k", in);
    const ebb_status st = ebb_orch_select(o, n, all, &won);
    if (st != EBB_OK) return st;
    (void)ebb_orch_await(o, all[won], NULL);
    return EBB_OK;
}

static ebb_status wild(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const uint64_t n = 1 + ebb_orch_random(o) % STEPS;
    ebb_status st = EBB_OK;
    ebb_blob got;
    for (uint64_t i = 0; i < n && st == EBB_OK; i++) st = some_wait(o, in);
    while (ebb_orch_receive(o, "red", &got) == EBB_OK) {}
    if (st == EBB_CANCELLED && ebb_orch_random(o) % 2 == 0) /* it compensates */
        (void)ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), NULL);
    if (st == EBB_OK && ebb_orch_execution(o) < 3 && ebb_orch_random(o) % 3 == 0)
        return ebb_orch_continue_as_new(o, in, 0);
    *out = in;
    return st == EBB_OK && ebb_orch_random(o) % 5 == 0 ? EBB_FAILED : st;
}

static ebb_status leaf(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_step all[] = {ebb_orch_call(o, "echo", in, NULL),
                            ebb_orch_timer(o, ebb_orch_random(o) % (2 * EBB_SECOND))};
    size_t won;
    *out = in;
    return ebb_orch_select(o, 2, all, &won);
}

/* No two activities end at the same instant: whose message comes first then is a matter of the fetches. */
static ebb_status takes_its_time(ebb_cx *cx, const ebb_activity *a) {
    ebb_sleeper nap = {0};
    uint64_t sum = 1;
    const char *number = strchr(ebb_activity_key(a), '-'); /* and execution; keys of instances may differ */
    for (const char *p = ebb_activity_instance(a); *p != 0; p++) sum = ebb__mixed(sum + (uint8_t)*p);
    for (const char *p = number; *p != 0; p++) sum = ebb__mixed(sum + (uint8_t)*p);
    return ebb_sleep(cx, &nap, 1 + sum % (2 * EBB_SECOND));
}

static ebb_status echo(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    *out = in;
    return takes_its_time(cx, a);
}

static ebb_status fails(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    const ebb_status st = takes_its_time(cx, a);
    (void)in;
    (void)out;
    return st == EBB_OK && ebb_activity_attempt(a) < 3 ? EBB_FAILED : st;
}

/* ---- between commits ---------------------------------------------------------------------------------------------- */

static bool has_step(const ebb__outstanding *o, uint64_t number, ebb__event_kind kind) {
    for (size_t i = 0; i < o->n; i++) {
        if (o->steps[i].number == number && o->steps[i].kind == kind) return true;
    }
    return false;
}

/* The first thing that was wrong. A commit is on a fiber, where no test may fail. */
static char wrong[300];

static void is_wrong(const ebb__lab_instance *i, const char *text) {
    if (*wrong != 0) return;
    (void)snprintf(wrong, sizeof wrong, "%s %s, turn %llu", i != NULL ? i->id->at : "the store", text,
                   i != NULL ? (unsigned long long)i->turn : 0);
}

/* Calls that were shielded when their execution ended run on. */
typedef struct shielded {
    uint64_t number[64];
    size_t n;
} shielded;

static void read_shielded(const ebb_provider_turn_row *row, shielded *to) {
    ebb__event_reader r;
    ebb__event e;
    if (ebb__event_reader_open(&r, row->body) != EBB_OK) return;
    while (ebb__event_read(&r, &e) == EBB_OK) {
        if (e.kind != EBB__EVENT_STEP_CANCELLED || e.cause != EBB__CAUSE_SHIELDED) continue;
        if (to->n < 64) to->number[to->n++] = e.step;
    }
}

static bool is_shielded(const shielded *s, uint64_t number) {
    for (size_t i = 0; i < s->n; i++) {
        if (s->number[i] == number) return true;
    }
    return false;
}

static void check_rows(const ebb__lab_instance *i, const ebb__outstanding *o, const shielded *runs_on) {
    for (ebb__lab_links *at = i->work.first; at != NULL; at = at->next) {
        const ebb__lab_work *w = EBB__LAB_OF(ebb__lab_work, links, at);
        if (w->execution == i->execution && !has_step(o, w->activity, EBB__EVENT_ACTIVITY_SCHEDULED) &&
            !(o->ended && is_shielded(runs_on, w->activity)))
            is_wrong(i, "has a row of work that its history has not");
    }
    for (ebb__lab_links *at = i->timers.first; at != NULL; at = at->next) {
        const ebb__lab_timer *t = EBB__LAB_OF(ebb__lab_timer, links, at);
        if (t->execution != i->execution || !has_step(o, t->step, EBB__EVENT_TIMER_CREATED))
            is_wrong(i, "has a timer that its history has not");
    }
}

static bool has_row(const ebb__lab_instance *i, const ebb__event *step) {
    for (ebb__lab_links *at = i->work.first; at != NULL; at = at->next) {
        const ebb__lab_work *w = EBB__LAB_OF(ebb__lab_work, links, at);
        if (w->execution == i->execution && w->activity == step->number) return true;
    }
    for (ebb__lab_links *at = i->messages.first; at != NULL; at = at->next) {
        const ebb__lab_message *m = EBB__LAB_OF(ebb__lab_message, links, at);
        if (m->kind == EBB_PROVIDER_MESSAGE_ACTIVITY && m->step == step->number) return true;
    }
    for (ebb__lab_links *at = i->timers.first; at != NULL; at = at->next) {
        if (EBB__LAB_OF(ebb__lab_timer, links, at)->step == step->number) return true;
    }
    return step->kind != EBB__EVENT_ACTIVITY_SCHEDULED && step->kind != EBB__EVENT_TIMER_CREATED;
}

/* What the history has outstanding has its row, or its end stands in the inbox; and no other row is there. */
static void check_instance(const ebb__lab_instance *i) {
    ebb__arena arena;
    shielded runs_on = {.n = 0};
    ebb__arena_init(&arena, ebb_libc_allocator(), 4096);
    ebb__outstanding o = {.arena = &arena};
    for (ebb__lab_links *at = i->turns.first; at != NULL; at = at->next) {
        const ebb__lab_turn *t = EBB__LAB_OF(ebb__lab_turn, links, at);
        const ebb_provider_turn_row row = {t->execution, t->turn, t->at, {t->body.at, t->body.n}};
        if (t->execution != i->execution) continue;
        if (ebb__outstanding_add(&o, &row) != EBB_OK) is_wrong(i, o.text);
        read_shielded(&row, &runs_on);
    }
    if (ebb__outstanding_check_end(&o) != EBB_OK) is_wrong(i, o.text);
    check_rows(i, &o, &runs_on);
    for (size_t k = 0; k < o.n && !o.ended; k++) {
        if (!has_row(i, &o.steps[k])) is_wrong(i, "has a step without its row");
    }
    ebb__arena_free(&arena);
}

static void committed(void *arg, const ebb_provider_call *c) {
    play *p = arg;
    char text[200];
    if (!ebb__lab_world_check(p->lab, text, sizeof text)) is_wrong(NULL, text);
    if (c->op != EBB_PROVIDER_ACK_TURN && c->op != EBB_PROVIDER_RESET) return;
    const ebb__lab_data *d = ebb__lab_world_stores(p->lab);
    for (ebb__lab_links *at = d->instances.first; at != NULL; at = at->next)
        check_instance(EBB__LAB_OF(ebb__lab_instance, links, at));
}

/* ---- a run ----------------------------------------------------------------------------------------------------------- */

static uint64_t chance(uint64_t *state) {
    *state = ebb__mixed(*state + UINT64_C(0x9e3779b97f4a7c15));
    return *state;
}

static ebb_status operate(play *p, uint64_t *state) {
    ebb_cx *cx = p->d->world->host;
    char id[16];
    (void)snprintf(id, sizeof id, "i%u", (unsigned)(chance(state) % INSTANCES));
    const ebb_signal_opts red = {.id = id, .name = "red", .body = ebb_blob_text("r")};
    const ebb_signal_opts blue = {.id = id, .name = "blue", .body = ebb_blob_text("b")};
    switch (chance(state) % 8) {
    case 0: return durable_await(p->d, ebb_instance_cancel(cx, p->d->store, id, "chance"));
    case 1: return durable_await(p->d, ebb_instance_terminate(cx, p->d->store, id, "chance"));
    case 2:
    case 3: return durable_await(p->d, ebb_instance_reset(cx, p->d->store, id, 1 + chance(state) % 30));
    case 4:
    case 5: return durable_await(p->d, ebb_instance_signal(cx, p->d->store, &red));
    default: return durable_await(p->d, ebb_instance_signal(cx, p->d->store, &blue));
    }
}

static void begin(play *p, uint32_t cache) {
    durable *d = p->d;
    d->store = open_store(d->world, "lab:");
    d->worker = durable_open(d, &(ebb_worker_opts){.cache = cache});
    assert_int_equal(ebb_worker_activity(d->worker, "echo", echo, d, NULL), EBB_OK);
    assert_int_equal(ebb_worker_activity(d->worker, "hang", durable_hang, d, NULL), EBB_OK);
    assert_int_equal(ebb_worker_activity(d->worker, "fails", fails, d, NULL), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "wild", 1, wild), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "leaf", 1, leaf), EBB_OK);
    /* The worker's store draws tokens, and fewer with a cache. Seeds of operators come from another. */
    d->store = open_store(d->world, "lab:");
    for (int i = 0; i < INSTANCES; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "i%d", i);
        durable_start(d, id, "wild", "7");
    }
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
}

static uint64_t mixed_in(uint64_t sum, const void *at, size_t n) {
    for (size_t i = 0; i < n; i++) sum = (sum ^ ((const uint8_t *)at)[i]) * UINT64_C(1099511628211);
    return sum;
}

static unsigned inputs_of(const ebb__lab_turn *t) {
    ebb__event_reader r;
    ebb__event e;
    unsigned n = 0;
    assert_int_equal(ebb__event_reader_open(&r, t->body), EBB_OK);
    while (ebb__event_read(&r, &e) == EBB_OK) n += ebb__event_class_of(e.kind) == EBB__CLASS_INPUT;
    return n;
}

/* Virtual time goes by ms. Of two messages of one ms the fetches decide which is first, and whether they share a turn. */
static bool had_two_at_once(const ebb__lab_instance *i) {
    const ebb__lab_turn *last = NULL;
    for (ebb__lab_links *at = i->turns.first; at != NULL; at = at->next) {
        const ebb__lab_turn *t = EBB__LAB_OF(ebb__lab_turn, links, at);
        if (inputs_of(t) > 1 || (last != NULL && last->execution == t->execution && last->at == t->at))
            return true;
        last = t;
    }
    return false;
}

/* Of all histories, in whatever order the instances were made. */
static uint64_t sum_of(const play *p, bool *two) {
    const ebb__lab_data *d = ebb__lab_world_stores(p->lab);
    uint64_t sum = 0;
    for (ebb__lab_links *at = d->instances.first; at != NULL; at = at->next) {
        const ebb__lab_instance *i = EBB__LAB_OF(ebb__lab_instance, links, at);
        uint64_t one = mixed_in(1, i->id->at, i->id->n);
        if (i->state == EBB_INSTANCE_RUNNING || i->state == EBB_INSTANCE_SUSPENDED)
            fail_msg("seed %llu: %s is %s: %s", (unsigned long long)p->seed, i->id->at,
                     ebb_instance_state_name(i->state), i->text != NULL ? i->text->at : "");
        for (ebb__lab_links *t = i->turns.first; t != NULL; t = t->next) {
            const ebb__lab_turn *turn = EBB__LAB_OF(ebb__lab_turn, links, t);
            one = mixed_in(one, &turn->execution, 8);
            one = mixed_in(one, &turn->at, 8);
            one = mixed_in(one, turn->body.at, turn->body.n);
        }
        sum += one;
        *two |= had_two_at_once(i);
    }
    return sum;
}

static uint64_t run_with(uint64_t seed, uint32_t cache, size_t *instances, bool *two) {
    world *w = world_new(NULL, false);
    play p = {.d = world_keep(w, sizeof *p.d), .seed = seed};
    uint64_t state = seed, statuses = 0;
    p.d->world = w;
    assert_int_equal(ebb__lab_world_new(ebb_libc_allocator(), &p.lab), EBB_OK);
    assert_int_equal(ebb__lab_world_use(w->rt, p.lab), EBB_OK);
    ebb__lab_world_set_committed(p.lab, committed, &p);
    ebb_runtime_advance(w->rt, seed * EBB_SECOND); /* the store's own chance begins there */
    begin(&p, cache);
    for (int i = 0; i < OPERATIONS; i++) {
        durable_pass(p.d, chance(&state) % (8 * EBB_SECOND));
        const ebb_status st = operate(&p, &state);
        statuses = statuses * 31 + (uint64_t)(uint32_t)st;
    }
    durable_pass(p.d, 3000 * EBB_SECOND);
    if (*wrong != 0) fail_msg("seed %llu: %s", (unsigned long long)seed, wrong);
    if (p.d->errors != 0) fail_msg("seed %llu: %s", (unsigned long long)seed, p.d->log);
    const uint64_t sum = sum_of(&p, two) + statuses;
    *instances = ebb__lab_world_stores(p.lab)->instances.n;
    world_end(w);
    ebb__lab_world_free(p.lab);
    return sum;
}

static void every_size_of_the_cache_gives_the_same_histories(void **state) {
    const char *text = getenv("EBB_RANDOM_SEEDS");
    const uint64_t seeds = text != NULL ? strtoull(text, NULL, 10) : 15;
    const uint32_t caches[] = {1, 0};
    size_t all = 0, n = 0;
    uint64_t others = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        bool two = false;
        const uint64_t none = run_with(seed, EBB_WORKER_NO_CACHE, &n, &two);
        for (int i = 0; i < 2; i++) {
            if (run_with(seed, caches[i], &n, &two) == none) continue;
            if (!two)
                fail_msg("seed %llu: a cache of %u differs from none", (unsigned long long)seed, caches[i]);
            others++;
        }
        all += n;
    }
    print_message("%zu instances of %llu seeds; messages of one instant had another order %llu times\n", all,
                  (unsigned long long)seeds, (unsigned long long)others);
    assert_true(others <= 1 + seeds / 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_size_of_the_cache_gives_the_same_histories)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
