/* The power is cut at the n-th write or sync, for each n, with several fates of what was not synced: with
 * EBB_DURABILITY_FULL everything that was acknowledged is there, with NORMAL a first part of it, and nothing is half done. */
#include <stdlib.h>

#include "tests/support/sqlite_disk.h"
#include "tests/support/sqlite_scene.h"

enum { INSTANCES = 6, ACKS = 64 };

/* What was acknowledged: SQL that must give 1 from then on. In order. */
typedef struct record {
    char sql[ACKS][160];
    uint32_t n;
} record;

static void note(record *r, ebb_status st, const char *format, uint32_t i) {
    if (st != EBB_OK) return;
    assert_true(r->n < ACKS);
    (void)snprintf(r->sql[r->n++], sizeof r->sql[0], format, i);
}

static void start(scene *s, record *r, uint32_t i) {
    char id[16];
    (void)snprintf(id, sizeof id, "i%u", i);
    note(r, scene_start(s, id), "SELECT count(*) FROM inst WHERE id = 'i%u'", i);
}

/* The first turn of each that is ready, all in one batch: with an activity each. */
static void turns(scene *s, record *r) {
    static const ebb_provider_work work = {.activity = 2, .queue = "charge", .session = "", .name = "charge"};
    ebb_provider_fetch_turns_call *f = scene_fetch(s, INSTANCES);
    ebb_future *acks[INSTANCES];
    for (size_t i = 0; i < f->items_n; i++) {
        ebb_provider_ack_turn_call *c = scene_ack(s, &f->items[i], "turn");
        c->work = &work;
        c->work_n = f->items[i].turn == 0;
        acks[i] = scene_begin(s, c);
    }
    for (size_t i = 0; i < f->items_n; i++) {
        ebb_provider_call *c = scene_end_call(s, acks[i]);
        note(r, c->status,
             f->items[i].turn == 0
                 ? "SELECT count(*) FROM hist JOIN inst ON key = inst WHERE turn = 1 AND id = 'i%u'"
                 : "SELECT count(*) FROM hist JOIN inst ON key = inst WHERE turn = 2 AND id = 'i%u'",
             (uint32_t)atoi(f->items[i].id + 1));
        ebb__call_free(c);
    }
    ebb__call_free(&f->call);
}

static void activities(scene *s, record *r) {
    const ebb_blob message = ebb_blob_text("charged");
    ebb_provider_fetch_work_call *w = scene_fetch_work(s, INSTANCES);
    for (size_t i = 0; i < w->items_n; i++)
        note(
            r, scene_status(s, scene_ack_work(s, &w->items[i], &message)),
            "SELECT count(*) FROM hist h JOIN inst ON key = inst WHERE turn = 1 AND id = 'i%u' AND NOT EXISTS"
            "(SELECT 1 FROM work w WHERE w.inst = key)",
            (uint32_t)atoi(w->items[i].id + 1));
    ebb__call_free(&w->call);
}

static void work(scene *s, record *r) {
    if (scene_join(s) != EBB_OK) return;
    for (uint32_t i = 0; i < INSTANCES; i++) start(s, r, i);
    turns(s, r);
    activities(s, r);
    turns(s, r);
    start(s, r, INSTANCES);
}

/* Nothing is half done: what one transaction wrote is there as a whole. */
static const char *const whole[] = {
    "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
    /* a start: the row, its input and its message */
    "SELECT count(*) FROM inst WHERE NOT EXISTS(SELECT 1 FROM data WHERE inst = key AND what = 1)",
    "SELECT count(*) FROM inst WHERE NOT EXISTS(SELECT 1 FROM inbox WHERE inst = key AND kind = 1)"
    " AND NOT EXISTS(SELECT 1 FROM hist WHERE inst = key)",
    /* a turn: the message is gone, and the activity is there or has ended with a message or the next turn */
    "SELECT count(*) FROM hist JOIN inbox USING(inst) WHERE kind = 1",
    "SELECT count(*) FROM hist h WHERE turn = 1 AND NOT EXISTS(SELECT 1 FROM work w WHERE w.inst = h.inst)"
    " AND NOT EXISTS(SELECT 1 FROM inbox m WHERE m.inst = h.inst AND kind = 2)"
    " AND NOT EXISTS(SELECT 1 FROM hist g WHERE g.inst = h.inst AND g.turn = 2)",
    "SELECT count(*) FROM work w JOIN inbox m USING(inst) WHERE kind = 2",
    "SELECT count(*) FROM hist h WHERE turn = 2 AND NOT EXISTS(SELECT 1 FROM hist g WHERE g.inst = h.inst "
    "AND g.turn = 1)",
};

static void verify(scene *s, const record *r, bool full, uint64_t n, uint64_t seed) {
    bool lost = false;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        const int64_t bad = scene_number(s, "a.db", whole[i]);
        if (bad != 0) fail_msg("cut at %d, seed %d: %s: %d", (int)n, (int)seed, whole[i], (int)bad);
    }
    for (uint32_t i = 0; i < r->n; i++) {
        const bool there = scene_number(s, "a.db", r->sql[i]) == 1;
        if (full && !there) fail_msg("cut at %d, seed %d: lost: %s", (int)n, (int)seed, r->sql[i]);
        if (lost && there)
            fail_msg("cut at %d, seed %d: kept after a loss: %s", (int)n, (int)seed, r->sql[i]);
        lost |= !there;
    }
}

/* False: the power was not cut any more. */
static bool cut_once(world *w, ebb_durability d, uint64_t n, uint64_t seed) {
    scene *s = scene_new(w), *after = scene_new(w);
    static record r;
    memset(&r, 0, sizeof r);
    disk_begin(seed);
    ebb__sqlite_use_log(16, 48); /* so that both kinds of checkpoints come often */
    disk_cut_at(n);
    if (scene_open(s, "a.db", d) == EBB_OK) work(s, &r);
    scene_close(s);
    const bool cut = disk_is_cut();
    if (cut) disk_survive(after->dir);
    disk_end();
    ebb__sqlite_use_log(0, 0);
    if (cut) {
        assert_int_equal(scene_open(after, "a.db", d), EBB_OK);
        verify(after, &r, d == EBB_DURABILITY_FULL, n, seed);
        assert_int_equal(scene_join(after), EBB_OK);
        static record rest;
        memset(&rest, 0, sizeof rest);
        work(after, &rest); /* it goes on where it was */
        assert_true(rest.n > 0);
    }
    scene_end(s);
    scene_end(after);
    return cut;
}

static void cut_everywhere(world *w, ebb_durability d) {
    const char *step = getenv("EBB_POWER_STEP"); /* soak: 1 */
    const uint64_t by = step != NULL ? (uint64_t)atoi(step) : 3;
    uint64_t n = 1, cuts = 0;
    for (; cut_once(w, d, n, n); n += by) cuts++;
    print_message("%d cuts of the power in %d writes and syncs\n", (int)cuts, (int)n);
    assert_in_range(cuts, 20, 10000);
}

static void full_loses_nothing_that_was_acknowledged(void **state) {
    cut_everywhere(*state, EBB_DURABILITY_FULL);
}

static void normal_loses_the_last_ones_only(void **state) {
    cut_everywhere(*state, EBB_DURABILITY_NORMAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_UNTRACED_WORLD(full_loses_nothing_that_was_acknowledged),
        IN_UNTRACED_WORLD(normal_loses_the_last_ones_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
