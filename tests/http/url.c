/* URLs: what is one of ours, and its parts. */
#include "http/url.h"
#include "tests/support/trace_build.h"

static const struct {
    const char *text;
    bool tls;
    const char *host, *authority;
    uint16_t port;
    const char *path;
} RIGHT[] = {
    {"http://example.org", false, "example.org", "example.org", 80, "/"},
    {"https://example.org", true, "example.org", "example.org", 443, "/"},
    {"HTTPS://Example.ORG/A?b", true, "Example.ORG", "Example.ORG", 443, "/A?b"},
    {"http://example.org/", false, "example.org", "example.org", 80, "/"},
    {"http://example.org:8080/a/b?c=d&e=f", false, "example.org", "example.org:8080", 8080, "/a/b?c=d&e=f"},
    {"http://example.org/a#b?c", false, "example.org", "example.org", 80, "/a"},
    {"http://example.org/a?b#", false, "example.org", "example.org", 80, "/a?b"},
    {"http://a?b", false, "a", "a", 80, "?b"},
    {"http://a:8080?b/c?d#e", false, "a", "a:8080", 8080, "?b/c?d"},
    {"http://a?", false, "a", "a", 80, "?"},
    {"http://example.org#/a", false, "example.org", "example.org", 80, "/"},
    {"http://example.org:8080#a", false, "example.org", "example.org:8080", 8080, "/"},
    {"https://127.0.0.1:65535/", true, "127.0.0.1", "127.0.0.1:65535", 65535, "/"},
    {"https://[::1]:443/", true, "::1", "[::1]:443", 443, "/"},
    {"http://[2001:db8::FF]", false, "2001:db8::FF", "[2001:db8::FF]", 80, "/"},
    {"http://[::ffff:127.0.0.1]/x", false, "::ffff:127.0.0.1", "[::ffff:127.0.0.1]", 80, "/x"},
    {"http://a:/x", false, "a", "a", 80, "/x"},
    {"https://[::1]:/x", true, "::1", "[::1]", 443, "/x"},
    {"http://a:0080/", false, "a", "a:0080", 80, "/"},
    {"http://a_b-c.d./", false, "a_b-c.d.", "a_b-c.d.", 80, "/"},
    {"http://a/b@c:d//e/../%zz?f/g?h", false, "a", "a", 80, "/b@c:d//e/../%zz?f/g?h"},
};

static void assert_part(const char *at, size_t n, const char *expected) {
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(at, expected, n);
}

static void the_parts_of_a_url_are_found(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof RIGHT / sizeof *RIGHT; i++) {
        ebb__url u;
        if (!ebb__url_parse(RIGHT[i].text, &u)) fail_msg("'%s' is one", RIGHT[i].text);
        assert_true(u.tls == RIGHT[i].tls);
        assert_int_equal(u.port, RIGHT[i].port);
        assert_part(u.host, u.host_n, RIGHT[i].host);
        assert_part(u.authority, u.authority_n, RIGHT[i].authority);
        assert_part(u.path, u.path_n, RIGHT[i].path);
    }
}

static const char *const WRONG[] = {
    "",
    "/",
    "example.org",
    "//example.org/",
    "http",
    "http:",
    "http:/example.org/",
    "http:///a",
    "http://",
    "http://?a",
    "http://#a",
    "https://",
    "httpss://a/",
    "htt://a/",
    "ftp://a/",
    "ws://a/",
    "http//a/",
    " http://a/",
    "http://a/ ",
    "http://a b/",
    "http://a/b c",
    "http://a/\r\nhost: b",
    "http://a/\t",
    "http://a/\x7f",
    "http://a/#\x01",
    "http://\xc3\xa9.org/",
    "http://a/\xc3\xa9",
    "http://user@a/",
    "http://user:secret@a/",
    "http://@a/",
    "http://:80/",
    "http://a:b/",
    "http://a:-1/",
    "http://a:+80/",
    "http://a:0/",
    "http://a:65536/",
    "http://a:80:80/",
    "http://a:99999999999999999999/",
    "http://a\\b/",
    "http://a%41/",
    "http://a,b/",
    "http://*/",
    "http://[::1/",
    "http://::1/",
    "http://[]/",
    "http://[::1]a/",
    "http://[::1]]/",
    "http://[::1]:x/",
    "http://[127.0.0.1]/",
    "http://[fe80::1%25eth0]/",
    "http://[1:2:3:4:5:6:7:8:9]/",
    "http://[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]/",
};

static void what_is_no_url_of_ours_is_refused(void **state) {
    (void)state;
    ebb__url u;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        if (ebb__url_parse(WRONG[i], &u)) fail_msg("'%s' is none", WRONG[i]);
    }
    assert_false(ebb__url_parse(NULL, &u));
}

static void a_url_and_its_host_have_a_longest(void **state) {
    static char text[8192 + 2];
    ebb__url u;
    (void)state;
    memset(text, 'a', 8193);
    memcpy(text, "http://a/", 9);
    assert_false(ebb__url_parse(text, &u));
    text[8192] = 0;
    assert_true(ebb__url_parse(text, &u));
    assert_int_equal(u.path_n, 8192 - 8);
    text[8] = 'a';
    text[7 + 256] = 0;
    assert_false(ebb__url_parse(text, &u));
    text[7 + 255] = 0;
    assert_true(ebb__url_parse(text, &u));
    assert_int_equal(u.host_n, 255);
}

/* Each URL cut at each place, and with each byte changed: it is one or not, and its parts are inside it. */
static void parts_are_never_outside_the_text(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof RIGHT / sizeof *RIGHT; i++) {
        size_t n = strlen(RIGHT[i].text);
        for (size_t cut = 0; cut < n; cut++) {
            for (int byte = 0; byte < 128; byte++) {
                char *text = malloc(cut + 2); /* no longer than it must be, for the sanitizer to see */
                memcpy(text, RIGHT[i].text, cut);
                text[cut] = (char)byte;
                text[cut + 1] = 0;
                ebb__url u;
                if (ebb__url_parse(text, &u)) {
                    assert_true(u.host >= text + 7 && u.host + u.host_n <= text + strlen(text));
                    assert_true((u.path[0] == '/' || u.path[0] == '?') && u.port > 0 && u.host_n > 0);
                }
                free(text);
            }
        }
    }
}

static void the_authority_of_a_request_is_a_host_and_perhaps_a_port(void **state) {
    static const char *const right[] = {"",
                                        "a",
                                        "a:",
                                        "a:0",
                                        "a:65535",
                                        "a:080",
                                        "A.b-c_d~e",
                                        "a%20b",
                                        "a!$&'()*+;=",
                                        "127.0.0.1:80",
                                        "[::1]",
                                        "[::1]:443",
                                        "[::ffff:1.2.3.4]",
                                        "[::1]:"};
    static const char *const wrong[] = {"user@a", "user:pw@a", "a,b",   "a, b",     "[::1",
                                        "::1",    "[::1]x",    "[]",    "[a]",      "[::1%lo]",
                                        "[::1]]", "a:b",       "a:1:2", "a:65536",  "a:-1",
                                        "a:+1",   "a:1 ",      ":80",   ":",        "a/b",
                                        "a?b",    "a#b",       "a%2",   "a%zz",     "a b",
                                        "a\tb",   "a\\b",      "a\"b",  "\xc3\xa4", "a:99999999999999999999"};
    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        if (!ebb__is_authority(right[i], strlen(right[i]))) fail_msg("'%s' is refused", right[i]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (ebb__is_authority(wrong[i], strlen(wrong[i]))) fail_msg("'%s' is taken", wrong[i]);
    }
}

static void authorities_are_compared_by_host_and_port(void **state) {
    (void)state;
    assert_true(ebb__same_authority("Example.org", "example.ORG", false));
    assert_true(ebb__same_authority("a:80", "a", false));
    assert_true(ebb__same_authority("a:", "a:0080", false));
    assert_true(ebb__same_authority("a:443", "a", true));
    assert_true(ebb__same_authority("[::1]:8080", "[::1]:8080", true));
    assert_false(ebb__same_authority("a:443", "a", false));
    assert_false(ebb__same_authority("a:80", "a", true));
    assert_false(ebb__same_authority("a", "b", false));
    assert_false(ebb__same_authority("a", "a.", false));
    assert_false(ebb__same_authority("a:1", "a:2", false));
    assert_false(ebb__same_authority("a", "", false));
}

/* The examples of RFC 3986, 5.4, as far as they are http, and some of its edges. */
static const char *const REFERENCES[][2] = {
    {"http://g/h", "http://g/h"},
    {"g", "http://a/b/c/g"},
    {"./g", "http://a/b/c/g"},
    {"g/", "http://a/b/c/g/"},
    {"/g", "http://a/g"},
    {"//g", "http://g/"},
    {"?y", "http://a/b/c/d;p?y"},
    {"g?y", "http://a/b/c/g?y"},
    {"#s", "http://a/b/c/d;p?q"},
    {"g#s", "http://a/b/c/g"},
    {"g?y#s", "http://a/b/c/g?y"},
    {";x", "http://a/b/c/;x"},
    {"g;x?y#s", "http://a/b/c/g;x?y"},
    {"", "http://a/b/c/d;p?q"},
    {".", "http://a/b/c/"},
    {"./", "http://a/b/c/"},
    {"..", "http://a/b/"},
    {"../", "http://a/b/"},
    {"../g", "http://a/b/g"},
    {"../..", "http://a/"},
    {"../../", "http://a/"},
    {"../../g", "http://a/g"},
    {"../../../g", "http://a/g"},
    {"../../../../g", "http://a/g"},
    {"/./g", "http://a/g"},
    {"/../g", "http://a/g"},
    {"g.", "http://a/b/c/g."},
    {".g", "http://a/b/c/.g"},
    {"g..", "http://a/b/c/g.."},
    {"..g", "http://a/b/c/..g"},
    {"./../g", "http://a/b/g"},
    {"./g/.", "http://a/b/c/g/"},
    {"g/./h", "http://a/b/c/g/h"},
    {"g/../h", "http://a/b/c/h"},
    {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
    {"g;x=1/../y", "http://a/b/c/y"},
    {"g?y/./x", "http://a/b/c/g?y/./x"},
    {"g?y/../x", "http://a/b/c/g?y/../x"},
    {"HTTPS://g:8/../h?i#j", "HTTPS://g:8/h?i"},
    {"http://g?h", "http://g/?h"},
    {"//g/..", "http://g/"},
    {"g:h", "g:/h"},
    {"/b//c/../d", "http://a/b//d"},
};

static void a_reference_stands_for_a_url(void **state) {
    const ebb__url base = {.authority = "a", .authority_n = 1, .path = "/b/c/d;p?q", .path_n = 10};
    char text[EBB__URL_BYTES + 1];
    (void)state;
    for (size_t i = 0; i < sizeof REFERENCES / sizeof *REFERENCES; i++) {
        assert_true(ebb__url_resolve(&base, REFERENCES[i][0], text));
        if (strcmp(text, REFERENCES[i][1]) != 0) print_error("'%s'\n", REFERENCES[i][0]);
        assert_string_equal(text, REFERENCES[i][1]);
    }
}

static void a_reference_that_is_too_long_is_refused(void **state) {
    const ebb__url base = {.tls = true, .authority = "a", .authority_n = 1, .path = "/", .path_n = 1};
    char *reference = malloc(2 * EBB__URL_BYTES), *text = malloc(EBB__URL_BYTES + 1);
    (void)state;
    for (size_t n = EBB__URL_BYTES - 20; n < EBB__URL_BYTES + 20; n++) {
        memset(reference, 'r', n);
        reference[n] = 0;
        assert_int_equal(ebb__url_resolve(&base, reference, text),
                         n + strlen("https://a/") <= EBB__URL_BYTES);
    }
    free(reference);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_of_a_url_are_found),
        cmocka_unit_test(what_is_no_url_of_ours_is_refused),
        cmocka_unit_test(a_url_and_its_host_have_a_longest),
        cmocka_unit_test(parts_are_never_outside_the_text),
        cmocka_unit_test(the_authority_of_a_request_is_a_host_and_perhaps_a_port),
        cmocka_unit_test(authorities_are_compared_by_host_and_port),
        cmocka_unit_test(a_reference_stands_for_a_url),
        cmocka_unit_test(a_reference_that_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
