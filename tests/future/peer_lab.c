/* Imports in the lab: a future ends on one runtime and is cancelled on another, in every order. What is seen
 * there is what happened here; each word that somebody owns is freed once; no region waits for ever. */
#include "tests/future/peer_lab.h"

enum { IMPORTS = 4, WORDS = 4096 };

/* ---- words that are owned: counted over the whole run ----------------------------------------------- */

static uint32_t words_made;
static uint32_t word_freed[WORDS];

static void free_word(void *p) {
    word_freed[(uintptr_t)p]++;
}

static const ebb_type word_type = {"word", 0, NULL, free_word, 0};

static ebb_value new_word(void) {
    return ebb_value_owned(&word_type, (void *)(uintptr_t)words_made++);
}

static void every_word_was_freed_once(void *ctx, uint64_t done, uint64_t of) {
    (void)ctx;
    (void)done;
    (void)of;
    for (uint32_t i = 0; i < words_made; i++) assert_int_equal(word_freed[i], 1);
    memset(word_freed, 0, words_made * sizeof *word_freed);
    words_made = 0;
}

/* ---- the scenario ------------------------------------------------------------------------------------ */

typedef struct harbour harbour;

typedef struct ship {
    EBB_TASK_STATE;
    harbour *h;
    ebb_future *source; /* of runtime 0; kept to the end */
    ebb_remote *remote, *spare;
    ebb_task task; /* of runtime 1, which awaits it */
    ebb_future *import;
    ebb_value value;
    bool held, producing;
    bool settled; /* by its producer: so it was not cancelled before */
    ebb_status settled_as;
    uint64_t word; /* and what with */
} ship;

struct harbour {
    ebb_lab *lab;
    lab_peer peers[2];
    ship ship[IMPORTS];
    bool disturbed;
    bool withdrawn; /* nobody settles, all imports are cancelled */
    bool ended;     /* and the region that has them has closed */
    ebb_region region;
};

/* A producer that is told to stop, and needs some time for it. */
static ebb_status wind_down(ebb_cx *cx, void *state) {
    ship *s = state;
    EBB_BEGIN(s);
    EBB_YIELD(cx, s);
    if (s->producing) {
        s->producing = false;
        (void)ebb_promise_reject(s->source, EBB_CANCELLED);
    }
    EBB_END(s);
}

static void stop_producing(ebb_cx *cx, ebb_future *f, void *arg) {
    ship *s = arg;
    (void)f;
    s->ebb_line = 0;
    if (ebb_id_status(ebb_spawn(cx, ebb_cx_region(cx), wind_down, s).id) == EBB_OK) return;
    s->producing = false;
    (void)ebb_promise_reject(s->source, EBB_CANCELLED);
}

static const ebb_operation production = {"production", stop_producing, NULL};

static ebb_status settle_as(ship *s, uint32_t how) {
    switch (how) {
    case 0:
        s->settled_as = EBB_OK;
        return ebb_promise_settle(s->source, ebb_value_int((int64_t)(s->word = 1000 + how)));
    case 1: {
        ebb_value v = new_word();
        s->settled_as = EBB_OK;
        s->word = v.as.u;
        return ebb_promise_settle(s->source, v);
    }
    default: s->settled_as = EBB_FAILED; return ebb_promise_reject(s->source, EBB_FAILED);
    }
}

static void settle_one(ebb_lab *lab, ship *s) {
    if (!s->producing) return;
    s->producing = false;
    s->settled = settle_as(s, ebb_lab_choose(lab, 3)) == EBB_OK;
}

/* The producer of runtime 0: settles all, one a poll. */
typedef struct producer {
    harbour *h;
    uint32_t i;
} producer;

static ebb_status produce(ebb_cx *cx, void *state) {
    producer *p = state;
    if (p->i == IMPORTS) return EBB_OK;
    settle_one(p->h->lab, &p->h->ship[p->i++]);
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

static void saw(ship *s, ebb_status st) {
    harbour *h = s->h;
    if (st == EBB_CANCELLED) {
        if (!h->disturbed) ebb_lab_fail(h->lab, "an import waited for ever");
        return;
    }
    if (!s->settled || s->settled_as != st) ebb_lab_fail(h->lab, "an import ended in another way");
    if (st == EBB_OK && s->value.as.u != s->word) ebb_lab_fail(h->lab, "an import has another value");
}

static ebb_status await_import(ebb_cx *cx, void *state) {
    ship *s = state;
    ebb_status st = ebb_await(cx, s->import, &s->value);
    if (st == EBB_PENDING) return st;
    s->import = NULL;
    saw(s, st);
    if (st == EBB_OK) ebb_value_discard(cx, s->value);
    return st == EBB_CANCELLED ? st : EBB_OK;
}

static ebb_status import_and_await(ebb_cx *cx, void *state) {
    ship *s = state;
    if (s->import == NULL && s->remote != NULL) {
        s->import = ebb_remote_import(cx, s->remote);
        s->remote = NULL;
    }
    return await_import(cx, s);
}

/* Each in another way: with an operation or without, shared, shielded, held by the region there. */
static ebb_status launch(ebb_lab *lab, ship *s, uint32_t i) {
    ebb_cx *here = ebb_runtime_host(ebb_lab_runtime(lab, 0)),
           *there = ebb_runtime_host(ebb_lab_runtime(lab, 1));
    s->producing = true;
    s->source = ebb_promise_new(here, i % 2 == 0 ? &production : NULL, s);
    if (i == 2) ebb_future_share(s->source);
    if (i == 3) ebb_future_shield(s->source);
    ebb_status st = ebb_remote_new(s->source, &s->remote);
    if (st != EBB_OK) return st;
    s->spare = ebb_remote_keep(s->remote);
    s->held = i == 1;
    if (!s->held) ebb_future_drop(s->source);
    s->task = ebb_spawn(there, s->h->region, import_and_await, s);
    return ebb_id_status(s->task.id);
}

static void misused(void *ctx, ebb_status st, const char *what, const char *site) {
    (void)st;
    (void)site;
    ebb_lab_fail(ctx, what);
}

static void imports_closed(void *arg, const ebb_region_report *report) {
    harbour *h = arg;
    h->ended = report->abandoned == 0;
}

/* The lab ends what is left when nothing happens any more. */
static ebb_status watch(ebb_cx *cx, void *state) {
    harbour *h = state;
    if (!ebb_stopping(cx)) return EBB_PENDING;
    if (h->withdrawn && !h->ended) ebb_lab_fail(h->lab, "a cancelled import waited for ever");
    return EBB_OK;
}

static ebb_status harbour_setup(ebb_lab *lab) {
    harbour *h = ebb_lab_state(lab);
    h->lab = lab;
    ebb_cx *there = ebb_runtime_host(ebb_lab_runtime(lab, 1));
    h->region = ebb_region_open(there, &(ebb_region_opts){.parent = ebb_lab_region(lab, 1),
                                                          .policy = EBB_FAIL_COLLECT,
                                                          .on_closed = imports_closed,
                                                          .arg = h});
    (void)ebb_spawn(there, ebb_lab_region(lab, 1), watch, h);
    ebb_status st = lab_peers(lab, h->peers, 2);
    const ebb_heap_opts opts = {.every_time = true, .verify = true, .misuse = misused, .ctx = lab};
    for (uint32_t i = 0; i < 2 && st == EBB_OK; i++) st = ebb_heap_setup(ebb_lab_runtime(lab, i), &opts);
    for (uint32_t i = 0; i < IMPORTS && st == EBB_OK; i++) {
        h->ship[i].h = h;
        st = launch(lab, &h->ship[i], i);
    }
    producer *p = ebb_lab_alloc(lab, sizeof *p);
    if (st != EBB_OK || p == NULL) return st;
    p->h = h;
    if (h->withdrawn) return EBB_OK;
    return ebb_id_status(
        ebb_spawn(ebb_runtime_host(ebb_lab_runtime(lab, 0)), ebb_lab_region(lab, 0), produce, p).id);
}

static ebb_status withdrawn_setup(ebb_lab *lab) {
    harbour *h = ebb_lab_state(lab);
    h->withdrawn = h->disturbed = true;
    return harbour_setup(lab);
}

/* One after the other, and then the region, which has to close. */
static void withdraw(ebb_lab *lab, uint32_t n) {
    harbour *h = ebb_lab_state(lab);
    ebb_cx *there = ebb_runtime_host(ebb_lab_runtime(lab, 1));
    if (n == IMPORTS) ebb_region_close(there, h->region);
    else ebb_task_cancel(there, h->ship[n].task, EBB_CANCEL_USER, "a step");
}

static void harbour_step(ebb_lab *lab, uint32_t n) {
    harbour *h = ebb_lab_state(lab);
    ship *s = &h->ship[ebb_lab_choose(lab, IMPORTS)];
    ebb_cx *here = ebb_runtime_host(ebb_lab_runtime(lab, 0)),
           *there = ebb_runtime_host(ebb_lab_runtime(lab, 1));
    uint32_t what = ebb_lab_choose(lab, 8);
    (void)n;
    h->disturbed |= what >= 2;
    switch (what) {
    case 1: settle_one(lab, s); break;
    case 2:
        if (s->held) (void)ebb_future_cancel(s->source, EBB_CANCEL_USER);
        else (void)ebb_remote_cancel(s->spare, EBB_CANCEL_USER);
        break;
    case 3: (void)ebb_remote_cancel(s->spare, EBB_CANCEL_TIMEOUT); break;
    case 4: ebb_task_cancel(there, s->task, EBB_CANCEL_USER, "a step"); break;
    case 5: ebb_region_cancel(there, h->region, EBB_CANCEL_DISCONNECT, "a step"); break;
    case 6: ebb_region_force(there, h->region); break;
    case 7: ebb_region_force(here, ebb_lab_region(lab, 0)); break;
    default: break;
    }
}

static void harbour_check(ebb_lab *lab) {
    harbour *h = ebb_lab_state(lab);
    for (uint32_t i = 0; i < IMPORTS; i++) {
        if (ebb_remote_state(h->ship[i].spare) < EBB_FUTURE_COMPLETED) {
            ebb_lab_fail(lab, "a source is still pending");
        }
    }
    char text[160];
    for (uint32_t i = 0; i < 2; i++) {
        if (ebb_heap_verify(ebb_lab_runtime(lab, i), text, sizeof text) != EBB_OK) ebb_lab_fail(lab, text);
    }
}

static void harbour_teardown(ebb_lab *lab) {
    harbour *h = ebb_lab_state(lab);
    for (uint32_t i = 0; i < IMPORTS; i++) {
        ebb_remote_release(h->ship[i].remote);
        ebb_remote_release(h->ship[i].spare);
    }
    lab_peers_release(h->peers, 2);
}

static const ebb_lab_scenario flow = {.name = "import_flow",
                                      .about = "four imports whose sources are settled",
                                      .runtimes = 2,
                                      .state_size = sizeof(harbour),
                                      .setup = harbour_setup,
                                      .received = lab_take_in,
                                      .check = harbour_check,
                                      .teardown = harbour_teardown};

static const ebb_lab_scenario withdrawn = {.name = "import_withdrawn",
                                           .about = "four imports that are cancelled, and nobody settles",
                                           .runtimes = 2,
                                           .steps = IMPORTS + 1,
                                           .state_size = sizeof(harbour),
                                           .setup = withdrawn_setup,
                                           .step = withdraw,
                                           .received = lab_take_in,
                                           .check = harbour_check,
                                           .teardown = harbour_teardown};

static const ebb_lab_scenario storm = {.name = "import_storm",
                                       .about = "the same, cancelled and forced on both sides",
                                       .runtimes = 2,
                                       .steps = 5,
                                       .state_size = sizeof(harbour),
                                       .setup = harbour_setup,
                                       .step = harbour_step,
                                       .received = lab_take_in,
                                       .check = harbour_check,
                                       .teardown = harbour_teardown};

static void imports_end_as_their_sources_whatever_the_schedule(void **state) {
    (void)state;
    lab_explore(&flow, 4000, 12, 4000, every_word_was_freed_once);
}

static void a_cancelled_import_is_over_soon_whoever_owns_its_source(void **state) {
    (void)state;
    lab_explore(&withdrawn, 4000, 10, 4000, every_word_was_freed_once);
}

static void cancels_race_ends_and_every_word_is_freed_once(void **state) {
    (void)state;
    lab_explore(&storm, 8000, 8, 8000, every_word_was_freed_once);
}

static void each_runtime_replays_alone(void **state) {
    (void)state;
    lab_replays(&storm, 200);
    every_word_was_freed_once(NULL, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(imports_end_as_their_sources_whatever_the_schedule),
        cmocka_unit_test(a_cancelled_import_is_over_soon_whoever_owns_its_source),
        cmocka_unit_test(cancels_race_ends_and_every_word_is_freed_once),
        cmocka_unit_test(each_runtime_replays_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
