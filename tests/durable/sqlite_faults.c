/* A disk that fails at the n-th read, write or sync, for each n, and one that is full: what was acknowledged stays, failures
 * are named and of the right class, and the store goes on when the disk does. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/sqlite_disk.h"
#include "tests/support/sqlite_scene.h"

enum { STARTS = 6, TRIES = 400 };

static void pause_ms(long ms) {
    const struct timespec t = {0, ms * 1000000};
    (void)nanosleep(&t, NULL);
}

/* Starts an instance, again and again as long as the failure may pass. */
static ebb_status insist(scene *s, const char *id) {
    ebb_status st = EBB_ERR_UNAVAILABLE;
    for (int i = 0; i < TRIES && ebb_provider_class_of(st) == EBB_PROVIDER_RETRYABLE; i++) {
        st = scene_start(s, id);
        if (st == EBB_OK) break;
        assert_true(s->text[0] != 0 || st == EBB_ERR_NOMEM);
        pause_ms(10);
    }
    return st;
}

static ebb_status ask_instance(scene *s, const char *id) {
    ebb_status st = EBB_ERR_UNAVAILABLE;
    for (int i = 0; i < TRIES && ebb_provider_class_of(st) == EBB_PROVIDER_RETRYABLE; i++) {
        ebb_provider_instance_call *c = scene_call(s, EBB_PROVIDER_INSTANCE);
        c->id = id;
        st = scene_status(s, c);
    }
    return st;
}

/* One run with the fault at n. False: the fault was not reached. */
static bool fail_once(world *w, uint64_t n, unsigned ops, int code) {
    scene *s = scene_new(w);
    uint32_t acked = 0;
    bool fatal = false;
    disk_begin(n);
    ebb__sqlite_use_log(12, 30);
    disk_fail_at(n, ops, code, false);
    ebb_status st = scene_open(s, "a.db", EBB_DURABILITY_FULL);
    if (st != EBB_OK) {
        assert_true(s->text[0] != 0);
        assert_true(disk_failures() > 0);
        st = scene_open(s, "a.db", EBB_DURABILITY_FULL); /* the failure is over */
    }
    if (st != EBB_OK) fail_msg("%d: %s", (int)n, s->text);
    for (uint32_t i = 0; i < STARTS && !fatal; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "i%u", i);
        st = insist(s, id);
        fatal = st == EBB_ERR_STORE;
        if (fatal) assert_non_null(strstr(s->text, "can't be used any more"));
        else assert_int_equal(st, EBB_OK);
        if (!fatal) acked++;
        if (!fatal) st = ask_instance(s, id);
        fatal |= st == EBB_ERR_STORE && (ops & DISK_SYNC) != 0; /* of a checkpoint, meanwhile */
        if (!fatal) assert_int_equal(st, EBB_OK);
    }
    if (fatal) assert_true((ops & DISK_SYNC) != 0); /* nothing but a sync is the end */
    scene_close(s);
    const bool reached = disk_failures() > 0;
    disk_end();
    ebb__sqlite_use_log(0, 0);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_FULL), EBB_OK);
    assert_true(scene_number(s, "a.db", "SELECT count(*) FROM inst") >= acked);
    assert_int_equal(
        scene_number(s, "a.db", "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"),
        0);
    scene_end(s);
    return reached;
}

static void fail_everywhere(world *w, unsigned ops, int code) {
    const char *step = getenv("EBB_FAULT_STEP"); /* soak: 1 */
    const uint64_t by = step != NULL ? (uint64_t)atoi(step) : 2;
    uint64_t n = 1;
    for (; fail_once(w, n, ops, code); n += by) assert_true(n < 10000);
    print_message("%d operations\n", (int)n);
    assert_true(n > 6);
}

static void a_write_that_fails_is_repeated(void **state) {
    fail_everywhere(*state, DISK_WRITE, SQLITE_IOERR_WRITE);
}

static void a_full_disk_at_the_nth_write_is_waited_for(void **state) {
    fail_everywhere(*state, DISK_WRITE, SQLITE_FULL);
}

static void a_read_that_fails_is_no_damage(void **state) {
    fail_everywhere(*state, DISK_READ, SQLITE_IOERR_READ);
}

static void a_sync_that_fails_is_the_end_of_the_store(void **state) {
    fail_everywhere(*state, DISK_SYNC, SQLITE_IOERR_FSYNC);
}

/* A read whose failure SQLite takes for damage: the file is looked at, and is sound. */
static void what_only_looks_damaged_is_read_again(void **state) {
    fail_everywhere(*state, DISK_READ, SQLITE_CORRUPT);
}

/* Memory never says more than the file: an ack that was not written can be repeated, and work that was claimed stays. */
static void a_commit_that_fails_changes_nothing_in_memory(void **state) {
    static const ebb_provider_work work = {.activity = 2, .queue = "charge", .session = "", .name = "charge"};
    const ebb_blob message = ebb_blob_text("charged");
    scene *s = scene_new(*state);
    disk_begin(1);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    assert_int_equal(scene_join(s), EBB_OK);
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 1);
    ebb_provider_ack_turn_call *c = scene_ack(s, &f->items[0], "turn");
    c->work = &work;
    c->work_n = 1;
    assert_int_equal(scene_status(s, c), EBB_OK);
    ebb__call_free(&f->call);
    ebb_provider_fetch_work_call *w = scene_fetch_work(s, 1);
    assert_int_equal(w->items_n, 1);
    const uint32_t hints = atomic_load(&s->hints[EBB_PROVIDER_HINT_TURNS]);
    for (int i = 0; i < 2; i++) {
        disk_fail_at(1, DISK_WRITE, i == 0 ? SQLITE_IOERR_WRITE : SQLITE_FULL, false);
        assert_int_equal(scene_status(s, scene_ack_work(s, &w->items[0], &message)), EBB_ERR_UNAVAILABLE);
        assert_true(s->text[0] != 0);
    }
    assert_int_equal(atomic_load(&s->hints[EBB_PROVIDER_HINT_TURNS]), hints);
    assert_int_equal(scene_status(s, scene_ack_work(s, &w->items[0], &message)), EBB_OK);
    assert_int_equal(atomic_load(&s->hints[EBB_PROVIDER_HINT_TURNS]), hints + 1);
    ebb__call_free(&w->call);
    scene_close(s);
    disk_end();
    scene_end(s);
}

static void a_full_disk_can_be_cleaned_up(void **state) {
    scene *s = scene_new(*state);
    char id[16];
    uint32_t n = 0;
    disk_begin(1);
    ebb__sqlite_use_log(50, 100);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    assert_int_equal(scene_join(s), EBB_OK);
    disk_room(disk_used() + 300000);
    ebb_status st = EBB_OK;
    for (; st == EBB_OK && n < 10000; n++) {
        (void)snprintf(id, sizeof id, "i%u", n);
        st = scene_start(s, id);
    }
    assert_int_equal(st, EBB_ERR_UNAVAILABLE);
    st = scene_start(s, "one more");
    assert_int_equal(st, EBB_ERR_UNAVAILABLE);
    assert_non_null(strstr(s->text, "is full"));
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 16); /* turns go on: the ballast has given them room */
    assert_int_equal(f->items_n, 16);
    uint64_t keys[16];
    for (size_t i = 0; i < f->items_n; i++) {
        keys[i] = f->items[i].key;
        assert_int_equal(scene_status(s, scene_ack(s, &f->items[i], "turn")), EBB_OK);
    }
    ebb_provider_remove_call *r = scene_call(s, EBB_PROVIDER_REMOVE);
    r->keys = keys;
    r->keys_n = 16;
    r->force = true;
    r = scene_ask(s, r);
    assert_int_equal(r->call.status, EBB_OK);
    assert_int_equal(r->removed, 16);
    ebb__call_free(&r->call);
    ebb__call_free(&f->call);
    assert_int_equal(scene_start(s, "still full"), EBB_ERR_UNAVAILABLE);
    disk_room(0); /* somebody has made space */
    assert_int_equal(insist(s, "goes on"), EBB_OK);
    assert_true(disk_used() > EBB__SQLITE_BALLAST); /* and the ballast is back */
    scene_close(s);
    disk_end();
    ebb__sqlite_use_log(0, 0);
    scene_end(s);
}

static void hold_readers(scene *s, bool back) {
    ebb__sqlite_file *f = ((ebb__sqlite_store *)s->gate.self)->file;
    (void)pthread_mutex_lock(&f->lock);
    f->held_back = back;
    (void)pthread_cond_broadcast(&f->asked);
    (void)pthread_mutex_unlock(&f->lock);
}

/* The disk would fail the first read: that of the first call whose answer is awaited. */
static void a_read_that_nobody_waits_for_is_not_made(void **state) {
    scene *s = scene_new(*state);
    disk_begin(1);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    hold_readers(s, true); /* as during a checkpoint */
    for (int i = 0; i < 4; i++) {
        ebb_provider_instance_call *c = scene_call(s, EBB_PROVIDER_INSTANCE);
        c->id = "a";
        assert_true(ebb_future_cancel(scene_begin(s, c), EBB_CANCEL_USER));
    }
    disk_fail_at(1, DISK_READ, SQLITE_IOERR_READ, false);
    hold_readers(s, false);
    for (int i = 0; i < TRIES * 100 && s->gate.begun > 0; i++) {
        pause_ms(1);
        ebb_inbox_receive(s->w->rt);
    }
    assert_int_equal(s->gate.begun, 0);
    assert_int_equal(disk_failures(), 0);
    assert_int_equal(ask_instance(s, "a"), EBB_OK);
    assert_int_equal(disk_failures(), 1);
    scene_close(s);
    disk_end();
    scene_end(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_UNTRACED_WORLD(a_write_that_fails_is_repeated),
        IN_UNTRACED_WORLD(a_full_disk_at_the_nth_write_is_waited_for),
        IN_UNTRACED_WORLD(a_read_that_fails_is_no_damage),
        IN_UNTRACED_WORLD(a_sync_that_fails_is_the_end_of_the_store),
        IN_UNTRACED_WORLD(what_only_looks_damaged_is_read_again),
        IN_UNTRACED_WORLD(a_commit_that_fails_changes_nothing_in_memory),
        IN_UNTRACED_WORLD(a_full_disk_can_be_cleaned_up),
        IN_UNTRACED_WORLD(a_read_that_nobody_waits_for_is_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
