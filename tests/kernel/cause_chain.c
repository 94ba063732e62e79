/* The limits of a cause chain: both are options of a runtime, both cut, and a cut is marked and traced. */
#include <stdlib.h>

#include "tests/support/world.h"

enum { DEPTH = 100 };

typedef struct nest {
    world *w;
    ebb_region r[DEPTH];
    ebb_region_cause chain[DEPTH];
    uint32_t n;
    bool cut;
} nest;

static nest *nest_new(uint32_t chain_depth, uint32_t chain_bytes, const char *why) {
    nest *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->w = world_new(&(ebb_runtime_opts){.chain_depth = chain_depth, .chain_bytes = chain_bytes}, true);
    for (int i = 0; i < DEPTH; i++) s->r[i] = open_region(s->w, i == 0 ? s->w->root : s->r[i - 1]);
    (void)puppet_start(s->w, s->r[DEPTH - 1], HEEDING);
    ebb_region_cancel(s->w->host, s->r[0], EBB_CANCEL_USER, why);
    return s;
}

static void nest_free(nest *s) {
    world_end(s->w);
    free(s);
}

/* Reads the chain of the region that is `links` deep, and holds it against `kept`. */
static void read_chain(nest *s, uint32_t links, uint32_t kept) {
    uint32_t cuts = count_events(s->w, EBB_EV_CHAIN_TRUNCATED, s->r[links - 1].id);
    assert_int_equal(ebb_region_causes(s->w->host, s->r[links - 1], s->chain, DEPTH, &s->n, &s->cut), EBB_OK);
    if (s->n != kept) fail_msg("of %u links %u are kept, expected %u", links, s->n, kept);
    assert_int_equal(s->cut, kept < links);
    for (uint32_t i = 0; i + 1 < kept; i++) assert_int_equal(s->chain[i].region.id, s->r[links - 1 - i].id);
    assert_int_equal(s->chain[kept - 1].region.id, s->r[0].id); /* the root cause is never what is cut */
    assert_int_equal(s->chain[kept - 1].reason.kind, EBB_CANCEL_USER);
    cuts += kept < links;
    assert_int_equal(count_events(s->w, EBB_EV_CHAIN_TRUNCATED, s->r[links - 1].id), cuts);
    if (kept < links)
        assert_int_equal(event_of(s->w, EBB_EV_CHAIN_TRUNCATED, s->r[links - 1].id).value, kept);
}

static void the_limits_are_24_links_and_1024_bytes_unless_the_options_say_otherwise(void **state) {
    (void)state;
    nest *s = nest_new(0, 0, "why");
    read_chain(s, 24, 24);
    read_chain(s, 25, 24);
    read_chain(s, 100, 24);
    nest_free(s);
    s = nest_new(DEPTH, 0, "why"); /* 31 * 32 + 32 + 3 are more than 1024 */
    read_chain(s, 31, 31);
    read_chain(s, 32, 31);
    nest_free(s);
}

static void the_depth_is_an_option(void **state) {
    (void)state;
    static const uint32_t depths[] = {1, 2, 5, 60};
    for (size_t i = 0; i < 4; i++) {
        nest *s = nest_new(depths[i], 1u << 20, "why");
        read_chain(s, depths[i], depths[i]);
        read_chain(s, depths[i] + 1, depths[i]);
        nest_free(s);
    }
}

static void the_bytes_are_an_option_and_messages_count(void **state) {
    (void)state;
    nest *s = nest_new(0, 5 * 32, "");
    read_chain(s, 5, 5);
    read_chain(s, 6, 5);
    nest_free(s);
    s = nest_new(0, 5 * 32 + 3, "why");
    read_chain(s, 5, 5);
    nest_free(s);
    s = nest_new(0, 5 * 32 + 2, "why");
    read_chain(s, 4, 4);
    read_chain(s, 5, 4);
    nest_free(s);
}

static void the_root_cause_is_given_whatever_the_limit(void **state) {
    (void)state;
    nest *s = nest_new(0, 1, "a message that is longer than the limit");
    read_chain(s, 1, 1);
    read_chain(s, 9, 1);
    assert_string_equal(s->chain[0].reason.message, "a message that is longer than the limit");
    nest_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limits_are_24_links_and_1024_bytes_unless_the_options_say_otherwise),
        cmocka_unit_test(the_depth_is_an_option),
        cmocka_unit_test(the_bytes_are_an_option_and_messages_count),
        cmocka_unit_test(the_root_cause_is_given_whatever_the_limit),
    };
    return cmocka_run_group_tests_name("cause_chain", tests, NULL, NULL);
}
