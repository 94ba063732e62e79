/* Budgets: what a bucket gives, and which one an address has. */
#include <stdio.h>

#include <openssl/evp.h>

#include "http/rate_limit.h"
#include "tests/support/trace_build.h"

/* How many single tokens there are at this time. */
static uint32_t drain(ebb__bucket *b, uint64_t now, uint32_t most, uint32_t per_second) {
    uint32_t n = 0;
    while (ebb__bucket_take(b, now, most, per_second, 1)) n++;
    return n;
}

static void a_burst_is_the_most_and_then_so_many_each_second(void **state) {
    ebb__bucket b = {0};
    (void)state;
    assert_int_equal(drain(&b, 5 * EBB_SECOND, 200, 50), 200);
    for (uint64_t s = 6; s < 1000; s++) assert_int_equal(drain(&b, s * EBB_SECOND, 200, 50), 50);
    assert_int_equal(drain(&b, 1003 * EBB_SECOND, 200, 50), 200); /* four seconds later it is full again */
    assert_int_equal(drain(&b, 1003 * EBB_SECOND, 200, 50), 0);
}

/* A rate that divides no second evenly, asked at times that divide nothing: after an hour not one is lost,
 * and none was there too early. */
static void nothing_drifts(void **state) {
    ebb__bucket b = {0};
    uint64_t start = 123456789, now = start, got = 0;
    (void)state;
    assert_true(ebb__bucket_take(&b, now, 10, 7, 10));
    while (now < start + 3600 * EBB_SECOND) {
        now += 1000003 * 17;
        uint32_t there = (uint32_t)((now - start) * 7 / EBB_SECOND - got);
        ebb__bucket copy = b;
        assert_false(ebb__bucket_take(&copy, now, 10, 7, there + 1));
        assert_true(ebb__bucket_take(&b, now, 10, 7, there));
        got += there;
    }
    assert_int_equal(got, 3600 * 7);
}

static void a_token_comes_at_its_nanosecond_and_not_before(void **state) {
    ebb__bucket b = {0};
    (void)state;
    assert_true(ebb__bucket_take(&b, 0, 1, 3, 1));
    for (uint64_t now = 333333300; now < 333333334; now++) {
        ebb__bucket copy = b;
        assert_false(ebb__bucket_take(&copy, now, 1, 3, 1));
    }
    assert_true(ebb__bucket_take(&b, 333333334, 1, 3, 1));
    assert_false(ebb__bucket_take(&b, 666666666, 1, 3, 1)); /* that one is lost: it is empty now */
    assert_true(ebb__bucket_take(&b, 1000000000, 1, 3, 1));
}

static void what_is_not_there_empties_it(void **state) {
    ebb__bucket b = {0};
    (void)state;
    assert_true(ebb__bucket_take(&b, 1, 10, 0, 4));
    assert_false(ebb__bucket_take(&b, 1, 10, 0, 7));
    assert_false(ebb__bucket_take(&b, 1, 10, 0, 1));
    assert_true(ebb__bucket_take(&b, 1, 10, 0, 0));
    b = (ebb__bucket){0};
    assert_true(ebb__bucket_take(&b, 1, 10, 0, 10));
    b = (ebb__bucket){0};
    assert_false(ebb__bucket_take(&b, 1, 10, 5, 11)); /* more than it ever holds */
    assert_int_equal(drain(&b, EBB_SECOND + 1, 10, 5), 5);
    b = (ebb__bucket){0};
    assert_false(ebb__bucket_take(&b, EBB_FOREVER, 0, 5, 1));
}

static void a_budget_that_shrinks_shrinks_the_bucket(void **state) {
    ebb__bucket b = {0};
    (void)state;
    assert_true(ebb__bucket_take(&b, 1, 1000, 0, 900));
    assert_true(ebb__bucket_take(&b, 1, 10, 0, 0));
    assert_false(ebb__bucket_take(&b, 1, 10, 0, 1));
    assert_int_equal(drain(&b, 1 + EBB_SECOND, 10, 3), 3);
}

static void time_that_goes_back_brings_nothing(void **state) {
    ebb__bucket b = {0};
    (void)state;
    assert_int_equal(drain(&b, 100 * EBB_SECOND, 20, 10), 20);
    assert_int_equal(drain(&b, 90 * EBB_SECOND, 20, 10), 0);
    assert_int_equal(drain(&b, 0, 20, 10), 0);
    assert_int_equal(drain(&b, 100 * EBB_SECOND, 20, 10), 0);
    assert_int_equal(drain(&b, 101 * EBB_SECOND, 20, 10), 10);
}

static void the_largest_numbers_do_not_overflow(void **state) {
    ebb__bucket b = {0};
    (void)state;
    assert_true(ebb__bucket_take(&b, 0, UINT32_MAX, UINT32_MAX, UINT32_MAX));
    assert_false(ebb__bucket_take(&b, 0, UINT32_MAX, UINT32_MAX, 1));
    assert_true(ebb__bucket_take(&b, 1, UINT32_MAX, UINT32_MAX, 4)); /* one nanosecond's */
    assert_false(ebb__bucket_take(&b, 1, UINT32_MAX, UINT32_MAX, 1));
    assert_true(ebb__bucket_take(&b, UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX));
    assert_false(ebb__bucket_take(&b, UINT64_MAX, UINT32_MAX, UINT32_MAX, 1));
    b = (ebb__bucket){0};
    assert_true(ebb__bucket_take(&b, 0, UINT32_MAX, 1, UINT32_MAX));
    assert_false(ebb__bucket_take(&b, UINT32_MAX * EBB_SECOND - 1, UINT32_MAX, 1, UINT32_MAX));
}

static uint64_t next_random(uint64_t *x) {
    *x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
    return *x;
}

/* The same rules in numbers that are wide enough for anything. */
typedef struct model {
    unsigned __int128 held, at;
    bool begun;
} model;

static bool model_take(model *m, uint64_t now, uint32_t most, uint32_t per_second, uint32_t n) {
    unsigned __int128 full = (unsigned __int128)most * EBB_SECOND, wanted = (unsigned __int128)n * EBB_SECOND;
    if (!m->begun) m->held = full;
    m->begun = true;
    if (now > m->at) m->held += (now - m->at) * per_second, m->at = now;
    if (m->held > full) m->held = full;
    bool enough = wanted <= m->held;
    m->held = enough ? m->held - wanted : 0;
    return enough;
}

static void a_bucket_agrees_with_wide_arithmetic(void **state) {
    uint64_t x = 88172645463325252u, taken = 0, refused = 0;
    (void)state;
    for (int round = 0; round < 2000; round++) {
        ebb__bucket b = {0};
        model m = {0};
        uint32_t most = (uint32_t)(next_random(&x) >> next_random(&x) % 64);
        uint32_t per_second = (uint32_t)(next_random(&x) >> next_random(&x) % 64);
        uint64_t now = next_random(&x) >> next_random(&x) % 64;
        for (int i = 0; i < 100; i++) {
            uint32_t n =
                (uint32_t)(next_random(&x) % 4 == 0 ? next_random(&x) : next_random(&x) % (most / 8 + 2));
            uint64_t step = next_random(&x) >> next_random(&x) % 64;
            now = next_random(&x) % 8 == 0 ? now - step % (now + 1) : now + step;
            bool right = model_take(&m, now, most, per_second, n);
            assert_true(ebb__bucket_take(&b, now, most, per_second, n) == right);
            taken += right, refused += !right;
        }
    }
    assert_true(taken > 20000 && refused > 20000);
}

/* ---- addresses ----------------------------------------------------------------------------------------- */

static void parts_of_a_token_add_up(void **state) {
    ebb__bucket b = {0};
    (void)state;
    for (int i = 0; i < 64; i++) assert_true(ebb__bucket_take_parts(&b, 1, 2, 0, EBB_SECOND / 32));
    assert_false(ebb__bucket_take_parts(&b, 1, 2, 0, 1));
    assert_true(ebb__bucket_take_parts(&b, 1, 2, 0, 0));
    assert_true(ebb__bucket_take_parts(&b, 1 + EBB_SECOND / 32, 2, 1, EBB_SECOND / 32));
    assert_false(ebb__bucket_take_parts(&b, 1 + EBB_SECOND / 32, 2, 1, EBB_SECOND / 32));
}

static void who_is_ended_again_and_again_waits_up_to_the_most(void **state) {
    ebb__rate_limit a = {0};
    uint64_t now = 7 * EBB_SECOND;
    (void)state;
    for (uint64_t n = 1; n <= EBB__DELAY_MOST_MS / EBB__DELAY_STEP_MS; n++) {
        ebb__rate_limit_add_delay(&a, now);
        assert_int_equal(a.quiet_until, now + n * EBB__DELAY_STEP_MS * EBB_MS);
    }
    ebb__rate_limit_add_delay(&a, now);
    assert_int_equal(a.quiet_until, now + EBB__DELAY_MOST_MS * EBB_MS);
    now += EBB_SECOND;
    ebb__rate_limit_add_delay(&a, now); /* what is past does not count */
    assert_int_equal(a.quiet_until, now + EBB__DELAY_STEP_MS * EBB_MS);
}

static ebb__rate_limits limits = {.key = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};

static bool share(const char *a, const char *b) {
    bool same = ebb__rate_limit_of(&limits, a) == ebb__rate_limit_of(&limits, b);
    for (uint64_t i = 1; i < 8 && same; i++) { /* two that only meet do so under one key */
        ebb__rate_limits *other = malloc(sizeof *other);
        other->key[0] = i * UINT64_C(0x9e3779b97f4a7c15);
        other->key[1] = ~i;
        same = ebb__rate_limit_of(other, a) == ebb__rate_limit_of(other, b);
        free(other);
    }
    return same;
}

static void an_address_counts_by_its_network(void **state) {
    (void)state;
    assert_true(share("127.0.0.1", "127.0.0.1"));
    assert_false(share("127.0.0.1", "127.0.0.2"));
    assert_true(share("::ffff:127.0.0.1", "127.0.0.1"));
    assert_true(share("::ffff:7f00:1", "127.0.0.1"));
    assert_false(share("::ffff:127.0.0.1", "::ffff:127.0.0.2"));
    assert_false(share("::127.0.0.1", "127.0.0.1")); /* what was once called compatible is not the same */
    assert_true(share("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"));
    assert_true(share("2001:db8:1:2::1", "2001:0DB8:0001:0002:0:0:0:0"));
    assert_false(share("2001:db8:1:2::1", "2001:db8:1:3::1"));
    assert_false(share("2001:db8:1:2::1", "2002:db8:1:2::1"));
    assert_true(share("fe80::1%eth0", "fe80::2%lo"));
    assert_true(share("fe80::1%a-name-of-an-interface-that-is-long-enough-for-this", "fe80::1"));
    assert_false(share("::1", "0.0.0.1")); /* both are 1 */
    assert_false(share("0.0.0.0", "::"));
    assert_true(share("", "not an address"));
    assert_true(share("", "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18.19.20.21.22.23"));
    assert_false(share("", "0.0.0.0"));
}

static void crowd_address(char *text, size_t room, uint32_t i) {
    snprintf(text, room, "10.%u.%u.%u", i >> 16 & 255, i >> 8 & 255, i & 255);
}

/* Neighbours spread as chance would have it: 10 a slot, and a slot with 40 comes once in 10^8 tables. */
static void addresses_spread_over_the_table(void **state) {
    static uint32_t count[EBB__RATE_LIMIT_SLOTS];
    uint32_t worst = 0, empty = 0;
    char ip[32];
    (void)state;
    for (uint32_t i = 0; i < 10 * EBB__RATE_LIMIT_SLOTS; i++) {
        crowd_address(ip, sizeof ip, i);
        size_t slot = (size_t)(ebb__rate_limit_of(&limits, ip) - limits.address);
        assert_true(slot < EBB__RATE_LIMIT_SLOTS);
        count[slot]++;
    }
    for (size_t i = 0; i < EBB__RATE_LIMIT_SLOTS; i++) {
        if (count[i] > worst) worst = count[i];
        empty += count[i] == 0;
    }
    assert_in_range(worst, 15, 40);
    assert_in_range(empty, 0, 5);
}

/* Who does not know the key can't find addresses that meet: those of one table do not in another. */
static void the_key_decides_who_meets_whom(void **state) {
    ebb__rate_limits *other = calloc(1, sizeof *other);
    ebb__rate_limit *mine = ebb__rate_limit_of(&limits, "10.0.0.0");
    uint32_t here = 0, there = 0;
    char ip[32];
    (void)state;
    other->key[1] = 1;
    for (uint32_t i = 1; i < 20 * EBB__RATE_LIMIT_SLOTS; i++) {
        crowd_address(ip, sizeof ip, i);
        if (ebb__rate_limit_of(&limits, ip) != mine) continue;
        here++;
        there += ebb__rate_limit_of(other, ip) == ebb__rate_limit_of(other, "10.0.0.0");
    }
    assert_in_range(here, 5, 50);
    assert_in_range(there, 0, 2);
    free(other);
}

/* OpenSSL's, of the two words that stand for an address. */
static uint64_t siphash(uint64_t family, uint64_t network) {
    uint8_t key[16], data[16], out[8];
    uint64_t words[2] = {family, network}, hash = 0;
    size_t n;
    for (size_t i = 0; i < 16; i++) {
        key[i] = (uint8_t)(limits.key[i / 8] >> 8 * (i % 8));
        data[i] = (uint8_t)(words[i / 8] >> 8 * (i % 8));
    }
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
    EVP_MAC_CTX *cx = EVP_MAC_CTX_new(mac);
    size_t size = sizeof out;
    OSSL_PARAM params[] = {OSSL_PARAM_construct_size_t("size", &size), OSSL_PARAM_construct_end()};
    assert_int_equal(EVP_MAC_init(cx, key, sizeof key, params), 1);
    assert_int_equal(EVP_MAC_update(cx, data, sizeof data), 1);
    assert_int_equal(EVP_MAC_final(cx, out, &n, sizeof out), 1);
    for (size_t i = 8; i > 0; i--) hash = hash << 8 | out[i - 1];
    EVP_MAC_CTX_free(cx);
    EVP_MAC_free(mac);
    return hash;
}

static void the_hash_is_siphash(void **state) {
    (void)state;
    assert_ptr_equal(ebb__rate_limit_of(&limits, "1.2.3.4"),
                     &limits.address[siphash(4, 0x01020304) % EBB__RATE_LIMIT_SLOTS]);
    assert_ptr_equal(ebb__rate_limit_of(&limits, "2001:db8:1:2::1"),
                     &limits.address[siphash(6, UINT64_C(0x20010db800010002)) % EBB__RATE_LIMIT_SLOTS]);
    assert_ptr_equal(ebb__rate_limit_of(&limits, ""), &limits.address[siphash(0, 0) % EBB__RATE_LIMIT_SLOTS]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_is_the_most_and_then_so_many_each_second),
        cmocka_unit_test(nothing_drifts),
        cmocka_unit_test(a_token_comes_at_its_nanosecond_and_not_before),
        cmocka_unit_test(what_is_not_there_empties_it),
        cmocka_unit_test(a_budget_that_shrinks_shrinks_the_bucket),
        cmocka_unit_test(time_that_goes_back_brings_nothing),
        cmocka_unit_test(the_largest_numbers_do_not_overflow),
        cmocka_unit_test(a_bucket_agrees_with_wide_arithmetic),
        cmocka_unit_test(an_address_counts_by_its_network),
        cmocka_unit_test(addresses_spread_over_the_table),
        cmocka_unit_test(the_key_decides_who_meets_whom),
        cmocka_unit_test(parts_of_a_token_add_up),
        cmocka_unit_test(who_is_ended_again_and_again_waits_up_to_the_most),
        cmocka_unit_test(the_hash_is_siphash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
