/* Files of programs in a network of the lab: in memory, one disk for each machine, which may be full. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <ebb/ebb.h>
#include <ebb/lab.h>

static ebb_status saw; /* what a client wants its test to see */

static ebb_status use_files(ebb_cx *cx, void *arg) {
    char piece[100] = {'b'};
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_file_open(cx, "a", O_CREAT | O_RDWR, 0600), &v);
    ebb_file f = ebb_file_of(v);
    (void)arg;
    for (int i = 0; i < 10 && st == EBB_OK; i++)
        st = ebb_await(cx, ebb_file_write(cx, f, piece, sizeof piece, EBB_FILE_HERE), NULL);
    saw = st;
    if (st != EBB_OK) return EBB_OK;
    saw = ebb_await(cx, ebb_file_rename(cx, "a", "./b"), NULL);
    if (saw == EBB_OK && ebb_await(cx, ebb_file_open(cx, "a", O_RDONLY, 0), NULL) != EBB_ERRNO(ENOENT))
        saw = EBB_FAILED;
    if (saw == EBB_OK) saw = ebb_await(cx, ebb_file_read(cx, f, piece, sizeof piece, 990), &v);
    if (saw == EBB_OK && (v.as.u < 1 || v.as.u > 10)) saw = EBB_FAILED;
    if (saw == EBB_OK && ebb_await(cx, ebb_file_read(cx, f, piece, 1, 1000), &v) != EBB_ERR_EOF)
        saw = EBB_FAILED;
    if (saw == EBB_OK) saw = ebb_await(cx, ebb_file_close(cx, f), NULL);
    return EBB_OK;
}

static ebb_lab_result play_alone(ebb_status (*fn)(ebb_cx *, void *), ebb_lab_network net, uint64_t seed) {
    const ebb_lab_program programs[] = {{.name = "alone", .ip = "10.0.0.2", .fn = fn}};
    net.programs = programs;
    net.n = 1;
    ebb_lab_scenario s = {.name = "alone", .play = ebb_lab_network_play, .network = &net};
    ebb_lab_case c = {.scenario = &s, .seed = seed};
    ebb_lab_result r;
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    assert_non_null(lab);
    (void)ebb_lab_run(lab, &c, NULL, &r);
    ebb_lab_free(lab);
    return r;
}

static void must_hold(const ebb_lab_result *r) {
    if (r->status != EBB_OK) fail_msg("%s: %s", r->failure, r->text);
}

static void files_are_in_memory_and_may_be_full(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 50; seed++) {
        ebb_lab_result r = play_alone(use_files, (ebb_lab_network){.latency = 0}, seed);
        must_hold(&r);
        assert_int_equal(saw, EBB_OK);
        r = play_alone(use_files, (ebb_lab_network){.disk_bytes = 500}, seed);
        must_hold(&r);
        assert_int_equal(saw, EBB_ERRNO(ENOSPC));
        r = play_alone(use_files, (ebb_lab_network){.descriptors = 3}, seed);
        must_hold(&r);
        assert_int_equal(saw, EBB_ERRNO(EMFILE));
    }
}

/* What is read at `at`, one byte; 255: it could not be. */
static unsigned char byte_at(ebb_cx *cx, ebb_file f, uint64_t at) {
    unsigned char byte;
    return ebb_await(cx, ebb_file_read(cx, f, &byte, 1, at), NULL) == EBB_OK ? byte : 255;
}

static ebb_status leave_gaps(ebb_cx *cx, void *arg) {
    ebb_value v;
    (void)arg;
    ebb_status st = ebb_await(cx, ebb_file_open(cx, "a", O_CREAT | O_RDWR, 0600), &v);
    ebb_file f = ebb_file_of(v);
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_write(cx, f, "old", 3, 0), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_close(cx, f), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_open(cx, "a", O_RDWR | O_TRUNC, 0600), &v);
    f = ebb_file_of(v);
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_write(cx, f, "n", 1, 3), NULL);
    for (uint64_t i = 0; i < 3 && st == EBB_OK; i++) st = byte_at(cx, f, i) == 0 ? EBB_OK : EBB_FAILED;
    if (st == EBB_OK && byte_at(cx, f, 3) != 'n') st = EBB_FAILED;
    if (st == EBB_OK &&
        ebb_await(cx, ebb_file_write(cx, f, "far", 3, UINT64_C(1) << 60), NULL) != EBB_ERRNO(EFBIG))
        st = EBB_FAILED;
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_close(cx, f), NULL);
    saw = st;
    return EBB_OK;
}

static void a_gap_is_filled_with_zeros(void **state) {
    (void)state;
    ebb_lab_result r = play_alone(leave_gaps, (ebb_lab_network){.latency = 0}, 1);
    must_hold(&r);
    assert_int_equal(saw, EBB_OK);
}

/* The file has no name any more, but there is room on the disk. */
static ebb_status write_removed(ebb_cx *cx, void *arg) {
    ebb_value v;
    (void)arg;
    ebb_status st = ebb_await(cx, ebb_file_open(cx, "a", O_CREAT | O_RDWR, 0600), &v);
    ebb_file f = ebb_file_of(v);
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_write(cx, f, "one", 3, 0), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_unlink(cx, "a"), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_write(cx, f, "two", 3, 3), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_close(cx, f), NULL);
    saw = st;
    return EBB_OK;
}

static void a_removed_file_that_is_open_can_be_written(void **state) {
    (void)state;
    ebb_lab_result r = play_alone(write_removed, (ebb_lab_network){.disk_bytes = 500}, 1);
    must_hold(&r);
    assert_int_equal(saw, EBB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_in_memory_and_may_be_full),
        cmocka_unit_test(a_gap_is_filled_with_zeros),
        cmocka_unit_test(a_removed_file_that_is_open_can_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
