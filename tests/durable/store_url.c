/* URLs of stores. */
#include "tests/support/world.h"

#include "durable/provider.h"

static char text[256];

static ebb_status parse(world *w, ebb__arena *a, const char *url, ebb__store_url *u) {
    ebb__arena_init(a, w->allocator, 256);
    text[0] = 0;
    return ebb__store_url_parse(a, url, u, text, sizeof text);
}

static void all_parts_are_read(void **state) {
    world *w = *state;
    ebb__arena a;
    ebb__store_url u;
    assert_int_equal(
        parse(w, &a, "postgres://al%20ice:p@s%3Ass@db.local:5433/or%2Fders?x=1&empty&y=a%26b", &u), EBB_OK);
    assert_string_equal(u.scheme, "postgres");
    assert_string_equal(u.user, "al ice");
    assert_string_equal(u.password, "p@s:ss");
    assert_string_equal(u.host, "db.local");
    assert_int_equal(u.port, 5433);
    assert_string_equal(u.path, "/or/ders");
    assert_int_equal(u.options, 3);
    assert_string_equal(ebb__store_url_option(&u, "y"), "a&b");
    assert_string_equal(ebb__store_url_option(&u, "empty"), "");
    assert_null(ebb__store_url_option(&u, "z"));
    ebb__arena_free(&a);
}

static void a_path_alone_is_enough(void **state) {
    world *w = *state;
    ebb__arena a;
    ebb__store_url u;
    assert_int_equal(parse(w, &a, "sqlite:/var/lib/a@b:c.db", &u), EBB_OK);
    assert_string_equal(u.path, "/var/lib/a@b:c.db");
    assert_string_equal(u.host, "");
    ebb__arena_free(&a);
    assert_int_equal(parse(w, &a, "lab:", &u), EBB_OK);
    assert_string_equal(u.path, "");
    ebb__arena_free(&a);
    assert_int_equal(parse(w, &a, "postgres://[::1]:1/x", &u), EBB_OK);
    assert_string_equal(u.host, "::1");
    assert_int_equal(u.port, 1);
    ebb__arena_free(&a);
}

static void a_bad_part_is_named(void **state) {
    static const struct {
        const char *url, *says;
    } rows[] = {
        {"", "no scheme"},
        {"orders.db", "no scheme"},
        {":x", "no scheme"},
        {"sqlite:a%2", "its path has a %"},
        {"sqlite:a%00b", "its path has a %"},
        {"postgres://h:65536/x", "its port"},
        {"postgres://h:5x/x", "its port"},
        {"postgres://[::1/x", "no ']'"},
        {"postgres://[::1]x/x", "behind the ']'"},
        {"postgres://u:%zz@h/x", "its password"},
        {"lab:?=1", "an option has no name"},
        {"lab:?a&a&a&a&a&a&a&a&a&a&a&a&a&a&a&a&a", "more than 16 options"},
    };
    world *w = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ebb__arena a;
        ebb__store_url u;
        assert_int_equal(parse(w, &a, rows[i].url, &u), EBB_ERR_INVALID);
        if (strstr(text, rows[i].says) == NULL) fail_msg("%s: %s", rows[i].url, text);
        ebb__arena_free(&a);
    }
}

static void the_password_is_not_shown(void **state) {
    char out[128];
    (void)state;
    ebb__store_url_say("postgres://alice:p@ss@db/x?y=1", out, sizeof out);
    assert_string_equal(out, "postgres://alice:***@db/x?y=1");
    ebb__store_url_say("postgres://alice@db/x", out, sizeof out);
    assert_string_equal(out, "postgres://alice@db/x");
    ebb__store_url_say("sqlite:a:b@c", out, sizeof out);
    assert_string_equal(out, "sqlite:a:b@c");
}

static void without_memory_it_says_so(void **state) {
    world *w = *state;
    ebb__arena a;
    ebb__store_url u;
    for (uint64_t n = 1;; n++) {
        assert_true(n < 10);
        w->memory.fail_at = w->memory.calls + n;
        ebb_status st = parse(w, &a, "postgres://u:p@h:1/x?a=b", &u);
        w->memory.fail_at = 0;
        ebb__arena_free(&a);
        if (st == EBB_OK) break;
        assert_int_equal(st, EBB_ERR_NOMEM);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(all_parts_are_read),        IN_WORLD(a_path_alone_is_enough),
        IN_WORLD(a_bad_part_is_named),       IN_WORLD(the_password_is_not_shown),
        IN_WORLD(without_memory_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
