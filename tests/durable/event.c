/* The bytes of events: what is written is read, one event has one form, and no damage is taken for an event. */
#include "tests/support/world.h"

#include "durable/event.h"

static const uint8_t kinds[] = {
#define EBB__KIND(NAME, value, name, class, fields) value,
#include "durable/event.def"
#undef EBB__KIND
};
enum { KINDS = sizeof kinds };

static ebb__arena arena_of(world *w) {
    ebb__arena a;
    ebb__arena_init(&a, w->allocator, 512);
    return a;
}

static ebb__event full(uint8_t kind) {
    ebb__event e;
    memset(&e, 0, sizeof e);
    e.kind = (ebb__event_kind)kind;
#define SET_NUMBER(f)                e.f = 300 + sizeof #f;
#define SET_TEXT(f)                  e.f = (ebb__event_text){#f, sizeof #f - 1};
#define SET_STATUS(f)                e.f = EBB_ERR_GONE;
#define SET_BLOB(f)                  e.f = (ebb_blob){#f "\0{}", sizeof #f + 2};
#define SET_EVENTS(f)                SET_BLOB(f)
#define SET_SEED(f)                  memcpy(e.f.at, "0123456789abcdef", 16);
#define EBB__FIELD(name, NAME, type) SET_##type(name)
#include "durable/event.def"
#undef EBB__FIELD
    return e;
}

static ebb_blob encoded(ebb__arena *a, const ebb__event *e) {
    ebb_blob b = ebb__event_encode(a, e);
    assert_non_null(b.at);
    return b;
}

static void assert_same(ebb_blob a, ebb_blob b) {
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.at, b.at, a.n);
}

/* All kinds in one turn. */
static ebb_blob turn_of_all(ebb__arena *a) {
    ebb__event_writer w = {.arena = a, .first = 7};
    for (size_t i = 0; i < KINDS; i++) {
        ebb__event e = full(kinds[i]);
        assert_int_equal(ebb__event_write(&w, &e), 7 + i);
    }
    ebb_blob b = ebb__event_turn(&w, 3);
    assert_non_null(b.at);
    return b;
}

static void what_is_written_is_read(void **state) {
    ebb__arena a = arena_of(*state);
    ebb__event_reader r;
    assert_int_equal(ebb__event_reader_open(&r, turn_of_all(&a)), EBB_OK);
    assert_int_equal(r.semantics, 3);
    for (size_t i = 0; i < KINDS; i++) {
        ebb__event e, sent = full(kinds[i]);
        assert_int_equal(ebb__event_read(&r, &e), EBB_OK);
        assert_int_equal(e.kind, kinds[i]);
        assert_int_equal(e.number, 7 + i);
        assert_true(ebb__event_class_of(e.kind) != 0);
        assert_string_not_equal(ebb__event_name(e.kind), "unknown");
        assert_true(ebb__event_matches(&e, &sent));
        assert_same(encoded(&a, &e), encoded(&a, &sent)); /* no field was lost */
    }
    ebb__event none;
    assert_int_equal(ebb__event_read(&r, &none), EBB_ERR_EOF);
    ebb__arena_free(&a);
}

/* Histories are read by later versions, on other machines: these bytes may not change. */
static void the_bytes_are_fixed(void **state) {
    static const char bytes[] = "\xEB\x01" /* a turn, layout 1 */
                                "\x01\x05" /* semantics 1, the first event is number 5 */
                                "\x03\x1E" /* activity_failed, 30 bytes */
                                "\x04\x0B"
                                "EBB_TIMEOUT\x04late\x07too low\x02{}\x01";
    ebb__arena a = arena_of(*state);
    ebb__event_writer w = {.arena = &a, .first = 5};
    ebb__event e = {
        .kind = EBB__EVENT_ACTIVITY_FAILED, .step = 4, .status = EBB_TIMEOUT, .flags = EBB__FLAG_FINAL};
    e.code = (ebb__event_text){"late", 4};
    e.text = (ebb__event_text){"too low", 7};
    e.details = (ebb_blob){"{}", 2};
    assert_int_equal(ebb__event_write(&w, &e), 5);
    ebb_blob turn = ebb__event_turn(&w, 1);
    assert_int_equal(turn.n, sizeof bytes - 1 + 4);
    assert_memory_equal(turn.at, bytes, sizeof bytes - 1);
    ebb__arena_free(&a);
}

static void a_flipped_bit_is_found(void **state) {
    ebb__arena a = arena_of(*state);
    ebb_blob turn = turn_of_all(&a);
    uint8_t *copy = world_keep(*state, turn.n);
    for (size_t i = 0; i < turn.n * 8; i++) {
        ebb__event_reader r;
        memcpy(copy, turn.at, turn.n);
        copy[i / 8] ^= (uint8_t)(1u << i % 8);
        assert_int_not_equal(ebb__event_reader_open(&r, (ebb_blob){copy, turn.n}), EBB_OK);
        assert_true(r.text[0] != 0);
    }
    for (size_t n = 0; n < turn.n; n++) {
        ebb__event_reader r;
        assert_int_equal(ebb__event_reader_open(&r, (ebb_blob){turn.at, n}), EBB_ERR_CORRUPT);
    }
    ebb__arena_free(&a);
}

/* Behind a checksum that is right, or in the body of a message, which has none. */
static void bad_events_are_refused(void **state) {
    static const struct {
        const char *bytes;
        size_t n;
        ebb_status strict, lenient;
    } rows[] = {
        {"\x04\x01\x05", 3, EBB_OK, EBB_OK},
        {"\x04\x00", 2, EBB_OK, EBB_OK},                           /* fields of an older Ebb */
        {"\x04\x02\x05\x06", 4, EBB_ERR_VERSION, EBB_OK},          /* of a newer */
        {"\xfe\x02\x05\x06", 4, EBB_ERR_VERSION, EBB_OK},          /* a kind of a newer */
        {"\x04", 1, EBB_ERR_CORRUPT, EBB_ERR_CORRUPT},             /* cut */
        {"\x04\x02\x05", 3, EBB_ERR_CORRUPT, EBB_ERR_CORRUPT},     /* cut */
        {"\x04\x02\x85\x00", 4, EBB_ERR_CORRUPT, EBB_ERR_CORRUPT}, /* not the shortest */
        {"\x04\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 12, EBB_ERR_CORRUPT,
         EBB_ERR_CORRUPT}, /* over 64 bits */
        {"\x41\x04\x03"
         "abc",
         6, EBB_ERR_CORRUPT, EBB_ERR_CORRUPT}, /* no status has this name */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int lenient = 0; lenient < 2; lenient++) {
            ebb__event_reader r;
            ebb__event e;
            ebb__event_reader_list(&r, (ebb_blob){rows[i].bytes, rows[i].n});
            r.lenient = lenient != 0;
            ebb_status st = ebb__event_read(&r, &e);
            if (st != (lenient ? rows[i].lenient : rows[i].strict))
                fail_msg("row %zu: %d, %s", i, st, r.text);
        }
    }
}

static void a_message_becomes_an_event_as_it_is(void **state) {
    ebb__arena a = arena_of(*state);
    ebb__event e = full(EBB__EVENT_SIGNALLED);
    ebb_blob message = encoded(&a, &e);
    ebb__event_writer once = {.arena = &a, .first = 1}, twice = {.arena = &a, .first = 1};
    assert_int_equal(ebb__event_write(&once, &e), 1);
    assert_int_equal(ebb__event_write_encoded(&twice, message), 1);
    assert_same(ebb__event_turn(&once, 1), ebb__event_turn(&twice, 1));
    uint8_t two[256];
    memcpy(two, message.at, message.n);
    memcpy(two + message.n, message.at, message.n);
    assert_int_equal(ebb__event_write_encoded(&twice, (ebb_blob){two, message.n * 2}), 0);
    assert_int_equal(twice.status, EBB_ERR_CORRUPT);
    assert_null(ebb__event_turn(&twice, 1).at);
    ebb__arena_free(&a);
}

static void a_replay_compares_kind_name_and_input(void **state) {
    ebb__event a = full(EBB__EVENT_ACTIVITY_SCHEDULED), b = a;
    (void)state;
    b.due++;
    b.attempt++;
    assert_true(ebb__event_matches(&a, &b));
    b.name.n--;
    assert_false(ebb__event_matches(&a, &b));
    b = a;
    b.body.n--;
    assert_false(ebb__event_matches(&a, &b));
    b = a;
    b.kind = EBB__EVENT_CHILD_STARTED;
    assert_false(ebb__event_matches(&a, &b));
}

static void statuses_of_programs_stay(void **state) {
    static const ebb_status sent[] = {EBB_FAILED, (ebb_status)-1234, EBB_ERRNO(2), EBB_ERR_POISONED};
    ebb__arena a = arena_of(*state);
    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
        ebb__event e = {.kind = EBB__EVENT_FAILED, .status = sent[i]}, got;
        ebb__event_reader r;
        ebb__event_reader_list(&r, encoded(&a, &e));
        assert_int_equal(ebb__event_read(&r, &got), EBB_OK);
        assert_int_equal(got.status, sent[i]);
    }
    ebb__arena_free(&a);
}

static void without_memory_nothing_is_half_written(void **state) {
    world *w = *state;
    for (uint64_t n = 1;; n++) {
        ebb__arena a = arena_of(w);
        ebb__event_writer out = {.arena = &a, .first = 1};
        ebb__event e = full(EBB__EVENT_STARTED);
        assert_true(n < 50);
        w->memory.fail_at = w->memory.calls + n;
        for (int i = 0; i < 20; i++) {
            const size_t before = out.n;
            if (ebb__event_write(&out, &e) == 0) assert_int_equal(out.n, before);
        }
        const bool whole = ebb__event_turn(&out, 1).at != NULL;
        w->memory.fail_at = 0;
        assert_int_equal(out.status, whole ? EBB_OK : EBB_ERR_NOMEM);
        ebb__arena_free(&a);
        if (whole) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(what_is_written_is_read),
        IN_WORLD(the_bytes_are_fixed),
        IN_WORLD(a_flipped_bit_is_found),
        IN_WORLD(bad_events_are_refused),
        IN_WORLD(a_message_becomes_an_event_as_it_is),
        IN_WORLD(a_replay_compares_kind_name_and_input),
        IN_WORLD(statuses_of_programs_stay),
        IN_WORLD(without_memory_nothing_is_half_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
