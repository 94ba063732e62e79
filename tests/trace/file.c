/* Traces and journals as bytes: what is written is read back, and whatever is not whole or not right
 * is an error that says where. */
#include "tests/support/trace_build.h"

#include "base/crc.h"
#include "kernel/format.h"

static bool same_record(const ebb_record *a, const ebb_record *b) {
    return a->type == b->type && a->phase == b->phase && a->kind == b->kind && a->epoch == b->epoch &&
           a->value == b->value && a->task == b->task && a->region == b->region && a->other == b->other;
}

static void crc_32c_has_its_known_values(void **state) {
    (void)state;
    assert_int_equal(ebb__crc(0, "123456789", 9), 0xe3069283);
    assert_int_equal(ebb__crc_by_table(0, "123456789", 9), 0xe3069283);
    assert_int_equal(ebb__crc(0, "", 0), 0);
    uint8_t bytes32[32] = {0};
    assert_int_equal(ebb__crc(0, bytes32, 32), 0x8a9136aa);
    memset(bytes32, 0xff, 32);
    assert_int_equal(ebb__crc(0, bytes32, 32), 0x62a8ab43);
}

static void crc_can_be_taken_in_pieces_and_both_ways(void **state) {
    (void)state;
    uint8_t b[257];
    for (size_t i = 0; i < sizeof b; i++) b[i] = (uint8_t)(i * 37 + i / 7);
    uint32_t whole = ebb__crc_by_table(0, b, sizeof b);
    for (size_t cut = 0; cut <= sizeof b; cut++) {
        assert_int_equal(ebb__crc(ebb__crc(0, b, cut), b + cut, sizeof b - cut), whole);
        assert_int_equal(ebb__crc(0, b + cut, sizeof b - cut), ebb__crc_by_table(0, b + cut, sizeof b - cut));
    }
}

static void the_layout_is_the_documented_one(void **state) {
    (void)state;
    ebb_record r = {EBB_EV_CANCEL_ACKED, 4, 9, 0x31, 0x04030201, 0x0807060504030201, 0x1807060504030211,
                    0x2807060504030221};
    bytes b = file_of(&r, 1, false);
    static const uint8_t start[60] =
        "EBBTRACE\2\0\0\0\7\0\0\0ebb-cancel-v2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x20";
    static const uint8_t block[16] = "EBLK\1\0\0\0\1\0\0\0\0\0\0";
    static const uint8_t record[32] = {35,   4, 9, 0x31, 1, 2, 3, 4,    1,    2, 3, 4, 5, 6, 7, 8,
                                       0x11, 2, 3, 4,    5, 6, 7, 0x18, 0x21, 2, 3, 4, 5, 6, 7, 0x28};
    static const uint8_t zeros[12] = {0};
    assert_int_equal(b.n, 64 + 32 + 32);
    assert_memory_equal(b.p, start, 60);
    assert_memory_equal(b.p + 64, block, 16);
    assert_memory_equal(b.p + 84, zeros, 12);
    assert_memory_equal(b.p + 96, record, 32);
    free(b.p);
}

static void records_are_read_back_as_they_were_put(void **state) {
    (void)state;
    enum { N = 127 * 3 + 5 };
    ebb_record in[N];
    for (uint32_t i = 0; i < N; i++) {
        in[i] = (ebb_record){(uint8_t)(10 + i % 60),
                             (uint8_t)i,
                             (uint8_t)(i * 3),
                             (uint8_t)(i * 5),
                             i * 77,
                             UINT64_MAX - i,
                             (uint64_t)i << 40,
                             i * UINT64_C(0x123456789abc)};
    }
    for (size_t n = 0; n <= N; n += n < 130 ? 1 : 64) {
        bytes b = file_of(in, n, n % 2 == 1);
        ebb_trace_reader r;
        ebb_event ev;
        assert_int_equal(ebb_trace_reader_open(&r, b.p, b.n), EBB_OK);
        assert_int_equal(r.journal, n % 2 == 1);
        assert_int_equal(r.runtime_id, 7);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(ebb_trace_reader_next(&r, &ev), EBB_OK);
            ebb_record out = ebb_event_record(&ev);
            assert_true(same_record(&out, &in[i]));
            assert_int_equal(ev.decision_seq, i + 1);
            assert_int_equal(b.p[ev.offset], in[i].type);
        }
        assert_int_equal(ebb_trace_reader_next(&r, &ev), EBB_PENDING);
        assert_int_equal(ebb_trace_reader_next(&r, &ev), EBB_PENDING);
        free(b.p);
    }
}

static void time_and_turn_hold_until_the_next(void **state) {
    (void)state;
    const ebb_record in[] = {
        {.type = EBB_EV_IDLE},
        {.type = EBB_EV_TURN, .task = 5, .region = 6},
        {.type = EBB_EV_TIME, .other = 99},
        {.type = EBB_EV_IDLE},
    };
    bytes b = file_of(in, 4, false);
    ebb_trace_reader r;
    ebb_event ev;
    ebb_trace_reader_open(&r, b.p, b.n);
    ebb_trace_reader_next(&r, &ev);
    assert_true(ev.host_turn_id == 0 && ev.microtask_batch_id == 0 && ev.time == 0);
    ebb_trace_reader_next(&r, &ev);
    assert_true(ev.host_turn_id == 5 && ev.microtask_batch_id == 6 && ev.time == 0);
    ebb_trace_reader_next(&r, &ev);
    ebb_trace_reader_next(&r, &ev);
    assert_true(ev.host_turn_id == 5 && ev.microtask_batch_id == 6 && ev.time == 99);
    free(b.p);
}

static void a_gap_makes_the_numbers_jump(void **state) {
    (void)state;
    ebb_record in[130] = {{.type = EBB_EV_IDLE}, {.type = EBB_EV_GAP, .other = 1000}};
    for (size_t i = 2; i < 130; i++) in[i].type = EBB_EV_IDLE;
    bytes b = file_of(in, 130, false);
    ebb_trace_reader r;
    ebb_event ev;
    ebb_trace_reader_open(&r, b.p, b.n);
    for (uint64_t i = 0; i < 130; i++) {
        assert_int_equal(ebb_trace_reader_next(&r, &ev), EBB_OK);
        assert_int_equal(ev.decision_seq, i < 2 ? i + 1 : i + 1001);
    }
    free(b.p);
}

static void a_gap_that_would_wrap_is_corrupt(void **state) {
    (void)state;
    ebb_record in = {.type = EBB_EV_GAP, .other = UINT64_MAX - 1};
    bytes b = file_of(&in, 1, false);
    ebb_trace_reader r;
    ebb_event ev;
    ebb_trace_reader_open(&r, b.p, b.n);
    assert_int_equal(ebb_trace_reader_next(&r, &ev), EBB_ERR_CORRUPT);
    assert_int_equal(r.error_offset, 96);
    free(b.p);
}

static void a_text_is_24_bytes_at_most_and_ends_in_a_zero(void **state) {
    (void)state;
    ebb_record in[] = {
        {EBB_EV_TEXT, .value = 24}, {EBB_EV_TEXT, .value = 3}, {EBB_EV_TEXT, .value = UINT32_MAX}};
    for (size_t i = 0; i < 3; i++) memcpy(&in[i].task, "abcdefghijklmnopqrstuvwx", 24);
    bytes b = file_of(in, 3, false);
    ebb_trace_reader r;
    ebb_event ev;
    ebb_trace_reader_open(&r, b.p, b.n);
    ebb_trace_reader_next(&r, &ev);
    assert_string_equal(ev.text, "abcdefghijklmnopqrstuvwx");
    ebb_trace_reader_next(&r, &ev);
    assert_string_equal(ev.text, "abc");
    ebb_trace_reader_next(&r, &ev);
    assert_string_equal(ev.text, "abcdefghijklmnopqrstuvwx");
    free(b.p);
}

/* Reads to the end or the first error; checks that the error stays the same. */
static ebb_status read_all(const bytes *b, uint64_t *events, size_t *offset) {
    ebb_trace_reader r;
    ebb_event ev;
    *events = 0;
    ebb_status st = ebb_trace_reader_open(&r, b->p, b->n);
    if (st == EBB_OK) {
        while ((st = ebb_trace_reader_next(&r, &ev)) == EBB_OK) ++*events;
        if (st != EBB_PENDING) assert_int_equal(ebb_trace_reader_next(&r, &ev), st);
    } else {
        assert_int_equal(ebb_trace_reader_next(&r, &ev), EBB_ERR_FORMAT);
    }
    *offset = r.error_offset;
    if (st != EBB_PENDING) assert_non_null(r.error);
    return st;
}

/* A copy on the heap of exactly these bytes, so that a sanitizer sees a read past its end. */
static bytes copy_of(const uint8_t *p, size_t n) {
    bytes copy = {malloc(n == 0 ? 1 : n), n};
    assert_non_null(copy.p);
    memcpy(copy.p, p, n);
    return copy;
}

static void every_flipped_bit_is_an_error_that_names_its_block(void **state) {
    (void)state;
    story *s = good_story();
    s->n = 130;
    for (size_t i = 100; i < 130; i++) s->r[i] = (ebb_record){.type = EBB_EV_IDLE};
    bytes b = file_of(s->r, s->n, false);
    size_t second = 64 + 32 + 127 * 32;
    for (size_t at = 0; at < b.n; at++) {
        for (int bit = 0; bit < 8; bit++) {
            uint64_t events;
            size_t offset;
            b.p[at] ^= (uint8_t)(1 << bit);
            ebb_status st = read_all(&b, &events, &offset);
            b.p[at] ^= (uint8_t)(1 << bit);
            /* More records than the file has look the same as a file that was cut. */
            bool count_of_last = at >= second + 4 && at < second + 8;
            assert_true(st == EBB_ERR_CORRUPT || st == EBB_ERR_FORMAT ||
                        (count_of_last && st == EBB_ERR_TRUNCATED));
            size_t block = at < 64 ? 0 : at < second ? 64 : second;
            assert_true(offset >= block && offset < block + 64);
            assert_int_equal(events, at < second ? 0 : 127);
        }
    }
    free(b.p);
    free(s);
}

static void a_file_cut_anywhere_gives_its_whole_blocks(void **state) {
    (void)state;
    ebb_record in[130];
    for (size_t i = 0; i < 130; i++) in[i] = (ebb_record){.type = EBB_EV_IDLE, .value = (uint32_t)i};
    bytes whole = file_of(in, 130, true);
    size_t second = 64 + 32 + 127 * 32;
    for (size_t n = 0; n < whole.n; n++) {
        bytes b = copy_of(whole.p, n);
        uint64_t events;
        size_t offset;
        ebb_status st = read_all(&b, &events, &offset);
        ebb_status expected = n < 8                    ? EBB_ERR_FORMAT
                              : n == 64 || n == second ? EBB_PENDING
                                                       : EBB_ERR_TRUNCATED;
        assert_int_equal(st, expected);
        assert_int_equal(events, n < second ? 0 : 127);
        if (st == EBB_ERR_TRUNCATED) assert_int_equal(offset, n < 64 ? 0 : n < second ? 64 : second);
        free(b.p);
    }
    free(whole.p);
}

static void a_block_that_is_missing_is_noticed(void **state) {
    (void)state;
    ebb_record in[127 * 3] = {{0}};
    bytes b = file_of(in, sizeof in / sizeof *in, false);
    size_t block = 32 + 127 * 32;
    memmove(b.p + 64 + block, b.p + 64 + 2 * block, block);
    b.n -= block;
    uint64_t events;
    size_t offset;
    assert_int_equal(read_all(&b, &events, &offset), EBB_ERR_CORRUPT);
    assert_int_equal(events, 127);
    assert_int_equal(offset, 64 + block + 8);
    free(b.p);
}

static void another_version_or_contract_is_told_from_damage(void **state) {
    (void)state;
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {{8, 3}, {8, 0}, {13, 1}, {16, 'w'}, {40, 'x'}, {48, 64}, {52, 1}, {59, 1}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        uint8_t header[64];
        ebb__file_header(header, false, 0);
        header[changes[i].at] = changes[i].value;
        uint32_t crc = ebb__crc(0, header, 60);
        for (int k = 0; k < 4; k++) header[60 + k] = (uint8_t)(crc >> 8 * k);
        ebb_trace_reader r;
        assert_int_equal(ebb_trace_reader_open(&r, header, 64), EBB_ERR_FORMAT);
        assert_true(r.error_offset <= changes[i].at && r.error_offset + 32 > changes[i].at);
    }
}

static void what_is_not_ours_is_refused(void **state) {
    (void)state;
    ebb_trace_reader r;
    assert_int_equal(ebb_trace_reader_open(&r, "", 0), EBB_ERR_FORMAT);
    assert_int_equal(ebb_trace_reader_open(&r, "{\"traceEvents\":[]}", 18), EBB_ERR_FORMAT);
    ebb_event ev;
    assert_int_equal(ebb_trace_reader_next(&r, &ev), EBB_ERR_FORMAT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_32c_has_its_known_values),
        cmocka_unit_test(crc_can_be_taken_in_pieces_and_both_ways),
        cmocka_unit_test(the_layout_is_the_documented_one),
        cmocka_unit_test(records_are_read_back_as_they_were_put),
        cmocka_unit_test(time_and_turn_hold_until_the_next),
        cmocka_unit_test(a_gap_makes_the_numbers_jump),
        cmocka_unit_test(a_gap_that_would_wrap_is_corrupt),
        cmocka_unit_test(a_text_is_24_bytes_at_most_and_ends_in_a_zero),
        cmocka_unit_test(every_flipped_bit_is_an_error_that_names_its_block),
        cmocka_unit_test(a_file_cut_anywhere_gives_its_whole_blocks),
        cmocka_unit_test(a_block_that_is_missing_is_noticed),
        cmocka_unit_test(another_version_or_contract_is_told_from_damage),
        cmocka_unit_test(what_is_not_ours_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
