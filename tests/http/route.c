/* Routes: which pattern answers a path, what its names stand for, and what may be asked instead. */
#include <stdio.h>
#include <time.h>

#include "http/route.h"
#include "tests/support/trace_build.h"

/* Handlers are told apart by their arguments only: none of them is ever called here. */
static ebb_status a_fiber(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)cx;
    (void)x;
    (void)arg;
    return EBB_OK;
}

static ebb_future *a_future(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)cx;
    (void)x;
    (void)arg;
    return NULL;
}

static ebb__arena sites; /* freed when all tests have ended */

static ebb_status add(ebb__routes *r, const char *method, const char *pattern) {
    bool whole = method != NULL && pattern != NULL;
    size_t n = whole ? strlen(method) + strlen(pattern) + 2 : 1;
    char *site = ebb__arena_alloc(&sites, n);
    assert_non_null(site);
    snprintf(site, n, "%s %s", whole ? method : "", whole ? pattern : "");
    return ebb__routes_add(r, method, pattern,
                           (ebb__handler){.kind = EBB__FIBER, .as.fn = a_fiber, .site = site});
}

/* Patterns "METHOD /path", NULL behind the last. */
static ebb__routes *routes_of(const char *const *all) {
    ebb__routes *r = ebb__routes_new(libc_allocator());
    for (; *all != NULL; all++) {
        char method[32];
        size_t n = strcspn(*all, " ");
        memcpy(method, *all, n);
        method[n] = 0;
        assert_int_equal(add(r, method, *all + n + 1), EBB_OK);
    }
    return r;
}
#define ROUTES(...) routes_of((const char *const[]){__VA_ARGS__, NULL})

/* "GET /users/:id id=7", "405 GET, HEAD" or "404". */
static const char *found(const ebb__routes *r, const char *method, const char *path) {
    static char text[1024];
    ebb__match m;
    ebb__routes_find(r, method, path, strlen(path), &m);
    if (m.handler == NULL) {
        assert_int_equal(m.params_n, 0);
        snprintf(text, sizeof text, "%s%s", m.path_known ? "405 " : "404", m.allow);
        return text;
    }
    size_t n = (size_t)snprintf(text, sizeof text, "%s", m.handler->site);
    for (uint32_t i = 0; i < m.params_n; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, " %s=%.*s", m.params[i].name,
                              (int)m.params[i].value_n, m.params[i].value);
    }
    return text;
}

/* ---- finding ------------------------------------------------------------------------------------------- */

static void a_literal_path_is_found_as_a_whole(void **state) {
    ebb__routes *r = ROUTES("GET /", "GET /users", "GET /users/", "GET /users/list", "GET /a//b");
    (void)state;
    assert_string_equal(found(r, "GET", "/"), "GET /");
    assert_string_equal(found(r, "GET", "/users"), "GET /users");
    assert_string_equal(found(r, "GET", "/users/"), "GET /users/");
    assert_string_equal(found(r, "GET", "/users/list"), "GET /users/list");
    assert_string_equal(found(r, "GET", "/a//b"), "GET /a//b");
    assert_string_equal(found(r, "GET", "/a/b"), "404");
    assert_string_equal(found(r, "GET", "/a/"), "404");
    assert_string_equal(found(r, "GET", "//"), "404");
    assert_string_equal(found(r, "GET", "/user"), "404");
    assert_string_equal(found(r, "GET", "/users/lists"), "404");
    assert_string_equal(found(r, "GET", "/Users"), "404");
    assert_string_equal(found(r, "GET", "/users//"), "404");
    ebb__routes_free(r);
}

static void what_does_not_begin_with_a_slash_is_nowhere(void **state) {
    ebb__routes *r = ROUTES("GET /", "* /*all");
    ebb__match m;
    (void)state;
    assert_string_equal(found(r, "OPTIONS", "*"), "404");
    assert_string_equal(found(r, "GET", "x"), "404");
    ebb__routes_find(r, "GET", "/", 0, &m);
    assert_null(m.handler);
    ebb__routes_free(r);
}

static void a_name_stands_for_one_segment_that_is_not_empty(void **state) {
    ebb__routes *r = ROUTES("GET /users/:id", "GET /users/:id/posts/:post", "GET /:a");
    (void)state;
    assert_string_equal(found(r, "GET", "/users/7"), "GET /users/:id id=7");
    assert_string_equal(found(r, "GET", "/users/7/posts/a%20b"),
                        "GET /users/:id/posts/:post id=7 post=a%20b");
    assert_string_equal(found(r, "GET", "/users"), "GET /:a a=users");
    assert_string_equal(found(r, "GET", "/users/"), "404");
    assert_string_equal(found(r, "GET", "/users//posts/1"), "404");
    assert_string_equal(found(r, "GET", "/users/7/"), "404");
    assert_string_equal(found(r, "GET", "/"), "404");
    ebb__routes_free(r);
}

static void a_star_stands_for_the_rest_which_may_be_empty(void **state) {
    ebb__routes *r = ROUTES("GET /files/*path", "GET /:user/*rest");
    (void)state;
    assert_string_equal(found(r, "GET", "/files/a"), "GET /files/*path path=a");
    assert_string_equal(found(r, "GET", "/files/a/b//c/"), "GET /files/*path path=a/b//c/");
    assert_string_equal(found(r, "GET", "/files/"), "GET /files/*path path=");
    assert_string_equal(found(r, "GET", "/files//"), "GET /files/*path path=/");
    assert_string_equal(found(r, "GET", "/files"), "404");
    assert_string_equal(found(r, "GET", "/me/x/y"), "GET /:user/*rest user=me rest=x/y");
    ebb__routes_free(r);
}

static void a_literal_goes_before_a_name_and_that_before_a_star(void **state) {
    ebb__routes *r = ROUTES("GET /*all", "GET /:one", "GET /lit", "GET /x/*all", "GET /x/:one", "GET /x/lit");
    (void)state;
    assert_string_equal(found(r, "GET", "/lit"), "GET /lit");
    assert_string_equal(found(r, "GET", "/other"), "GET /:one one=other");
    assert_string_equal(found(r, "GET", "/lit/more"), "GET /*all all=lit/more");
    assert_string_equal(found(r, "GET", "/"), "GET /*all all=");
    assert_string_equal(found(r, "GET", "/x/lit"), "GET /x/lit");
    assert_string_equal(found(r, "GET", "/x/other"), "GET /x/:one one=other");
    assert_string_equal(found(r, "GET", "/x/lit/"), "GET /x/*all all=lit/");
    assert_string_equal(found(r, "GET", "/x"), "GET /:one one=x");
    ebb__routes_free(r);
}

static void a_search_that_went_wrong_goes_back(void **state) {
    ebb__routes *r = ROUTES("GET /a/:x/c", "GET /a/b/d", "GET /a/b/c/e", "GET /:p/b/c/f", "GET /*all");
    (void)state;
    assert_string_equal(found(r, "GET", "/a/b/c"), "GET /a/:x/c x=b");
    assert_string_equal(found(r, "GET", "/a/b/d"), "GET /a/b/d");
    assert_string_equal(found(r, "GET", "/a/b/c/e"), "GET /a/b/c/e");
    assert_string_equal(found(r, "GET", "/a/b/c/f"), "GET /:p/b/c/f p=a");
    assert_string_equal(found(r, "GET", "/a/b/c/g"), "GET /*all all=a/b/c/g");
    assert_string_equal(found(r, "GET", "/a/b"), "GET /*all all=a/b");
    ebb__routes_free(r);
}

/* ---- methods ------------------------------------------------------------------------------------------- */

static void get_answers_head_unless_head_does(void **state) {
    ebb__routes *r = ROUTES("GET /a", "GET /b", "HEAD /b", "* /c", "POST /d", "GET /e", "* /e");
    (void)state;
    assert_string_equal(found(r, "HEAD", "/a"), "GET /a");
    assert_string_equal(found(r, "HEAD", "/b"), "HEAD /b");
    assert_string_equal(found(r, "HEAD", "/c"), "* /c");
    assert_string_equal(found(r, "HEAD", "/d"), "405 POST");
    assert_string_equal(found(r, "HEAD", "/e"), "GET /e");
    assert_string_equal(found(r, "PATCH", "/e"), "* /e");
    assert_string_equal(found(r, "get", "/a"), "405 GET, HEAD"); /* methods have a case */
    ebb__routes_free(r);
}

static void a_pattern_without_the_method_lets_the_next_answer(void **state) {
    ebb__routes *r =
        ROUTES("GET /a/b", "POST /a/:x", "* /a/*rest", "PUT /z/b", "DELETE /z/:x", "PUT /z/*rest");
    (void)state;
    assert_string_equal(found(r, "GET", "/a/b"), "GET /a/b");
    assert_string_equal(found(r, "POST", "/a/b"), "POST /a/:x x=b");
    assert_string_equal(found(r, "PUT", "/a/b"), "* /a/*rest rest=b");
    assert_string_equal(found(r, "DELETE", "/z/b"), "DELETE /z/:x x=b");
    assert_string_equal(found(r, "GET", "/z/b"), "405 PUT, DELETE");
    assert_string_equal(found(r, "GET", "/z/c"), "405 DELETE, PUT");
    assert_string_equal(found(r, "GET", "/z/c/d"), "405 PUT");
    ebb__routes_free(r);
}

static void what_is_allowed_is_listed_once_as_far_as_there_is_room(void **state) {
    ebb__routes *r = ROUTES("GET /a", "HEAD /a", "PUT /a", "PUT /:x", "POST /:x", "GET /*rest", "SET /a");
    char method[64];
    (void)state;
    assert_string_equal(found(r, "DELETE", "/a"), "405 GET, HEAD, PUT, SET, POST");
    ebb__routes_free(r);
    r = ebb__routes_new(libc_allocator());
    for (int i = 0; i < 20; i++) {
        snprintf(method, sizeof method, "METHOD-%02d", i);
        assert_int_equal(add(r, method, "/"), EBB_OK);
    }
    const char *text = found(r, "GET", "/");
    assert_int_equal(strlen(text), 4 + 11 * 11 - 2);
    assert_string_equal(text + strlen(text) - 11, ", METHOD-10");
    memset(method, 'M', 63);
    method[63] = 0;
    assert_int_equal(add(r, method, "/long"), EBB_OK);
    method[0] = 'N';
    assert_int_equal(add(r, method, "/long"), EBB_OK);
    assert_int_equal(add(r, "PUT", "/long"), EBB_OK);
    text = found(r, "GET",
                 "/long"); /* 63 + 2 + 63 and the 0 are one too many, but there is room for a shorter one */
    assert_int_equal(strlen(text), 4 + 63 + 5);
    assert_string_equal(text + 4 + 63, ", PUT");
    ebb__routes_free(r);
}

/* ---- adding -------------------------------------------------------------------------------------------- */

static void a_pattern_that_is_none_is_refused(void **state) {
    static const char *const wrong[] = {"",       "a",      "a/b",  "/:",   "/*",    "/a/:/b",  "/a/*",
                                        "/*a/b",  "/a/*b/", "/a?b", "/a#b", "/a b",  "/a\tb",   "/\x7f",
                                        "/:x/:x", "/:x/*x", "*",    "*x",   "/:a/:", "/a/*b/c", "/\n"};
    ebb__routes *r = ROUTES("GET /");
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (add(r, "GET", wrong[i]) != EBB_ERR_INVALID) fail_msg("'%s' is none", wrong[i]);
    }
    assert_int_equal(add(r, "GET", NULL), EBB_ERR_INVALID);
    assert_int_equal(add(r, NULL, "/a"), EBB_ERR_INVALID);
    assert_int_equal(add(r, "", "/a"), EBB_ERR_INVALID);
    assert_int_equal(add(r, "GET IT", "/a"), EBB_ERR_INVALID);
    assert_int_equal(ebb__routes_add(r, "GET", "/a", (ebb__handler){.kind = EBB__FIBER}), EBB_ERR_INVALID);
    assert_int_equal(ebb__routes_add(r, "GET", "/a", (ebb__handler){.kind = EBB__FUTURE}), EBB_ERR_INVALID);
    assert_string_equal(found(r, "GET", "/a"), "404");
    ebb__routes_free(r);
}

static void one_place_has_one_name_and_one_handler_a_method(void **state) {
    ebb__routes *r = ROUTES("GET /a/:x", "GET /b/*x", "GET /c");
    (void)state;
    assert_int_equal(add(r, "GET", "/a/:x"), EBB_ERR_BUSY);
    assert_int_equal(add(r, "GET", "/c"), EBB_ERR_BUSY);
    assert_int_equal(add(r, "POST", "/a/:y"), EBB_ERR_INVALID);
    assert_int_equal(add(r, "GET", "/a/:y/z"), EBB_ERR_INVALID);
    assert_int_equal(add(r, "GET", "/a/:xx"), EBB_ERR_INVALID);
    assert_int_equal(add(r, "POST", "/b/*y"), EBB_ERR_INVALID);
    assert_int_equal(add(r, "POST", "/a/:x"), EBB_OK);
    assert_int_equal(add(r, "*", "/a/:x"), EBB_OK);
    assert_int_equal(add(r, "*", "/a/:x"), EBB_ERR_BUSY);
    assert_int_equal(add(r, "GET", "/a/*y"), EBB_OK);
    assert_int_equal(add(r, "GET", "/b/:y"), EBB_OK);
    assert_int_equal(add(r, "GET", "/:a/:x"), EBB_OK);
    assert_string_equal(found(r, "POST", "/a/1"), "POST /a/:x x=1");
    assert_string_equal(found(r, "GET", "/b/1"), "GET /b/:y y=1");
    assert_string_equal(found(r, "GET", "/q/1"), "GET /:a/:x a=q x=1");
    ebb__routes_free(r);
}

static void a_pattern_has_at_most_sixteen_names(void **state) {
    char pattern[128] = "", path[128] = "";
    ebb__routes *r = ebb__routes_new(libc_allocator());
    (void)state;
    for (int i = 0; i < EBB__PARAMS; i++) {
        snprintf(pattern + strlen(pattern), sizeof pattern - strlen(pattern), "/:n%d", i);
        snprintf(path + strlen(path), sizeof path - strlen(path), "/%d", i);
    }
    assert_int_equal(add(r, "GET", pattern), EBB_OK);
    ebb__match m;
    ebb__routes_find(r, "GET", path, strlen(path), &m);
    assert_int_equal(m.params_n, EBB__PARAMS);
    assert_string_equal(m.params[15].name, "n15");
    assert_memory_equal(m.params[15].value, "15", m.params[15].value_n);
    assert_string_equal(m.params[0].name, "n0");
    strcat(pattern, "/*rest");
    assert_int_equal(add(r, "GET", pattern), EBB_ERR_LIMIT);
    ebb__routes_free(r);
}

static void a_handler_stays_where_it_is(void **state) {
    ebb__routes *r = ebb__routes_new(libc_allocator());
    int arg;
    ebb__match m;
    char pattern[32];
    (void)state;
    ebb__handler h = {.kind = EBB__FUTURE, .as.future = a_future, .arg = &arg, .site = "GET /keep/:name"};
    assert_int_equal(ebb__routes_add(r, "GET", "/keep/:name", h), EBB_OK);
    ebb__routes_find(r, "GET", "/keep/it", 8, &m);
    for (int i = 0; i < 2000; i++) {
        snprintf(pattern, sizeof pattern, i % 2 ? "/keep/%d" : "/%d", i);
        assert_int_equal(add(r, "GET", pattern), EBB_OK);
    }
    ebb__match again;
    ebb__routes_find(r, "GET", "/keep/it", 8, &again);
    assert_ptr_equal(again.handler, m.handler);
    assert_true(m.handler->kind == EBB__FUTURE && m.handler->as.future == a_future && m.handler->arg == &arg);
    assert_string_equal(m.handler->site, "GET /keep/:name");
    assert_string_equal(m.params[0].name, "name");
    for (int i = 0; i < 2000; i++) {
        snprintf(pattern, sizeof pattern, i % 2 ? "GET /keep/%d" : "GET /%d", i);
        assert_string_equal(found(r, "GET", pattern + 4), pattern);
    }
    ebb__routes_free(r);
}

/* The n-th allocation fails, for each n: what was not added has left nothing, not even a name. */
static void a_pattern_without_memory_changes_nothing(void **state) {
    static const char *const patterns[] = {"/a/:x/c/d/e/f/g", "/a/b",     "/:p/q",
                                           "/s/*t",           "/a/:x/c2", "/a/b/c/d/:y/z"};
    enum { N = sizeof patterns / sizeof *patterns };
    bool failed = true;
    (void)state;
    for (uint64_t n = 1; failed; n++) {
        ebb_failing memory = {.inner = libc_allocator(), .fail_at = n};
        ebb__routes *r = ebb__routes_new(ebb_failing_allocator(&memory));
        for (size_t i = 0; r != NULL && i < 200 * N; i++) {
            char pattern[300], other[300];
            snprintf(pattern, sizeof pattern, "/%zu-%0100zu%s", i / N, i / N, patterns[i % N]);
            ebb_status st = add(r, "GET", pattern);
            if (st == EBB_OK) continue;
            assert_int_equal(st, EBB_ERR_NOMEM);
            assert_string_equal(found(r, "GET", pattern), "404");
            if (i % N == 0) { /* all of it was new, so that even other names may stand there */
                strcpy(other, pattern);
                char *colon = strchr(other, ':');
                colon[1] = 'z';
                assert_int_equal(add(r, "GET", other), EBB_OK);
                colon[1] = 'x';
                assert_int_equal(add(r, "GET", other), EBB_ERR_INVALID);
                colon[1] = 'z';
                assert_memory_equal(found(r, "GET", other), "GET /", 5);
                break;
            }
            assert_int_equal(add(r, "GET", pattern), EBB_OK);
        }
        failed = memory.failures > 0;
        ebb__routes_free(r);
        assert_int_equal(memory.live, 0);
    }
    ebb__routes_free(NULL);
}

/* ---- a model: every pattern is tried, and the best of those that fit is the answer --------------------- */

enum { PATTERNS = 40, SEGMENTS = 5 };

static uint64_t next_random(uint64_t *x) {
    *x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
    return *x;
}

/* Of few words, so that much collides. `name` numbers the place: all patterns call it the same. */
static void random_pattern(uint64_t *x, char *out) {
    size_t n = 1 + next_random(x) % SEGMENTS;
    out[0] = 0;
    for (size_t i = 0; i < n; i++) {
        static const char *const words[] = {"a", "b", "", "aa", "ab"};
        uint64_t what = next_random(x) % 8;
        if (what < 5) sprintf(out + strlen(out), "/%s", words[what]);
        else if (what < 7 || i + 1 < n) sprintf(out + strlen(out), "/:n%zu", i);
        else sprintf(out + strlen(out), "/*n%zu", i);
    }
}

static void random_path(uint64_t *x, char *out) {
    static const char *const words[] = {"a", "b", "", "aa", "ab", "c"};
    size_t n = 1 + next_random(x) % (SEGMENTS + 1);
    out[0] = 0;
    for (size_t i = 0; i < n; i++) sprintf(out + strlen(out), "/%s", words[next_random(x) % 6]);
}

/* One digit a segment, 0 a literal, 1 a name, 2 a star; false: it does not fit. */
static bool fits(const char *pattern, const char *path, char *rank) {
    while (*pattern == '/' && *path == '/') {
        size_t p = strcspn(pattern + 1, "/"), s = strcspn(path + 1, "/");
        char kind = pattern[1] == '*' ? '2' : pattern[1] == ':' ? '1' : '0';
        *rank++ = kind;
        *rank = 0;
        if (kind == '2') return true;
        if (kind == '1' && s == 0) return false;
        if (kind == '0' && (p != s || memcmp(pattern + 1, path + 1, p) != 0)) return false;
        pattern += 1 + p;
        path += 1 + s;
    }
    return *pattern == 0 && *path == 0;
}

static const char *METHODS[] = {"GET", "POST", "*"};

typedef struct model {
    char pattern[PATTERNS][64];
    const char *method[PATTERNS];
    size_t n;
} model;

static bool answers(const char *mine, const char *asked) {
    return strcmp(mine, asked) == 0 || strcmp(mine, "*") == 0 ||
           (strcmp(asked, "HEAD") == 0 && strcmp(mine, "GET") == 0);
}

/* The best rank; of the same pattern a method that is named goes before "*". SIZE_MAX: none. */
static size_t best_of(const model *m, const char *method, const char *path, bool *known) {
    char best[SEGMENTS + 2] = "3", rank[SEGMENTS + 2];
    size_t found_at = SIZE_MAX;
    *known = false;
    for (size_t i = 0; i < m->n; i++) {
        if (!fits(m->pattern[i], path, rank)) continue;
        *known = true;
        if (!answers(m->method[i], method)) continue;
        int order = strcmp(rank, best);
        if (order > 0 || (order == 0 && strcmp(m->method[i], "*") == 0)) continue;
        strcpy(best, rank);
        found_at = i;
    }
    return found_at;
}

static void expect_as_the_model(const model *m, const ebb__routes *r, const char *method, const char *path) {
    bool known;
    ebb__match match;
    char site[128];
    size_t best = best_of(m, method, path, &known);
    ebb__routes_find(r, method, path, strlen(path), &match);
    assert_true((match.handler != NULL) == (best != SIZE_MAX));
    assert_true(match.path_known == known);
    if (best == SIZE_MAX) return;
    snprintf(site, sizeof site, "%s %s", m->method[best], m->pattern[best]);
    assert_string_equal(match.handler->site, site);
}

/* What each name stands for, put in its place, makes the path again. */
static void expect_params_of(const ebb__routes *r, const char *method, const char *path) {
    ebb__match m;
    char again[128] = "";
    uint32_t used = 0;
    ebb__routes_find(r, method, path, strlen(path), &m);
    if (m.handler == NULL) return;
    for (const char *at = strchr(m.handler->site, '/'); *at == '/';) {
        size_t n = strcspn(at + 1, "/");
        bool named = at[1] == ':' || at[1] == '*';
        strcat(again, "/");
        if (named) {
            assert_int_equal(strlen(m.params[used].name), n - 1);
            assert_memory_equal(m.params[used].name, at + 2, n - 1);
            strncat(again, m.params[used].value, m.params[used].value_n);
            used++;
        } else strncat(again, at + 1, n);
        at += 1 + n;
    }
    assert_string_equal(again, path);
    assert_int_equal(m.params_n, used);
}

static void the_trie_agrees_with_a_list_of_patterns(void **state) {
    uint64_t x = 88172645463325252u, hits = 0;
    static const char *const asked[] = {"GET", "POST", "HEAD", "PUT"};
    (void)state;
    for (int round = 0; round < 300; round++) {
        model m = {.n = 0};
        ebb__routes *r = ebb__routes_new(libc_allocator());
        for (int i = 0; i < PATTERNS; i++) {
            random_pattern(&x, m.pattern[m.n]);
            m.method[m.n] = METHODS[next_random(&x) % 3];
            ebb_status st = add(r, m.method[m.n], m.pattern[m.n]);
            if (st != EBB_OK) assert_int_equal(st, EBB_ERR_BUSY);
            else m.n++;
        }
        for (int i = 0; i < 300; i++) {
            char path[64];
            const char *method = asked[next_random(&x) % 4];
            random_path(&x, path);
            expect_as_the_model(&m, r, method, path);
            expect_params_of(r, method, path);
            hits += strcmp(found(r, method, path), "404") != 0;
        }
        ebb__routes_free(r);
    }
    assert_in_range(hits, 30000, 85000);
}

/* ---- bounds -------------------------------------------------------------------------------------------- */

/* Seconds of the processor for one lookup. */
static double cost_of(const ebb__routes *r, const char *path) {
    enum { TIMES = 300 };
    ebb__match m;
    clock_t from = clock();
    for (int i = 0; i < TIMES; i++) ebb__routes_find(r, "GET", path, strlen(path), &m);
    return (double)(clock() - from + 1) / CLOCKS_PER_SEC / TIMES;
}

/* All 2^DEEP patterns of two choices a segment that end in "/x": whoever asks for another end makes the
 * search meet every node, and no more. One that finds its way meets DEEP + 1. */
static void a_path_without_an_answer_costs_no_more_than_the_trie(void **state) {
    enum { DEEP = 10 };
    ebb__routes *r = ebb__routes_new(libc_allocator());
    char pattern[128], path[128] = "";
    (void)state;
    for (uint32_t i = 0; i < 1u << DEEP; i++) {
        pattern[0] = 0;
        for (uint32_t d = 0; d < DEEP; d++) {
            char name[8];
            snprintf(name, sizeof name, "/:%u", d);
            strcat(pattern, i >> d & 1 ? name : "/a");
        }
        strcat(pattern, "/x");
        assert_int_equal(add(r, "GET", pattern), EBB_OK);
    }
    for (uint32_t d = 0; d < DEEP; d++) strcat(path, "/a");
    strcat(path, "/y");
    assert_string_equal(found(r, "GET", path), "404");
    path[strlen(path) - 1] = 'x';
    assert_string_equal(found(r, "GET", path), "GET /a/a/a/a/a/a/a/a/a/a/x");
    path[1] = path[19] = 'b';
    assert_string_equal(found(r, "GET", path), "GET /:0/a/a/a/a/a/a/a/a/:9/x 0=b 9=b");
    path[1] = path[19] = 'a';
    double straight = cost_of(r, path) / (DEEP + 1);
    path[strlen(path) - 1] = 'y';
    uint32_t nodes = 2 * (1u << DEEP) - 2 + (1u << DEEP);
    assert_true(cost_of(r, path) < 10 * nodes * straight);
    ebb__routes_free(r);
}

/* A megabyte of slashes is neither a stack nor a walk through all of it. */
static void a_path_of_any_depth_is_looked_up(void **state) {
    enum { LONG = 1 << 20 };
    ebb__routes *r = ROUTES("GET /:a/:b/:c", "GET /f/*rest", "GET /:a/b/*rest");
    char *path = malloc(LONG);
    ebb__match m;
    (void)state;
    memset(path, '/', LONG);
    ebb__routes_find(r, "GET", path, LONG, &m);
    assert_null(m.handler);
    path[1] = 'f';
    ebb__routes_find(r, "GET", path, LONG, &m);
    assert_string_equal(m.handler->site, "GET /f/*rest");
    assert_int_equal(m.params[0].value_n, LONG - 3);
    memset(path + 1, 'x', LONG - 1);
    ebb__routes_find(r, "GET", path, LONG, &m);
    assert_null(m.handler);
    free(path);
    ebb__routes_free(r);
}

static void a_pattern_of_any_depth_is_kept(void **state) {
    enum { DEEP = 20000 };
    ebb__routes *r = ROUTES("GET /:x");
    char *pattern = malloc(2 * DEEP + 1);
    ebb__match m;
    (void)state;
    for (size_t i = 0; i < DEEP; i++) memcpy(pattern + 2 * i, "/a", 2);
    pattern[2 * DEEP] = 0;
    assert_int_equal(add(r, "GET", pattern), EBB_OK);
    ebb__routes_find(r, "GET", pattern, 2 * DEEP, &m);
    assert_non_null(m.handler);
    ebb__routes_find(r, "GET", pattern, 2 * DEEP - 2, &m);
    assert_null(m.handler);
    free(pattern);
    ebb__routes_free(r);
}

/* ---- decoding ------------------------------------------------------------------------------------------ */

static void percent_signs_are_decoded(void **state) {
    static const struct {
        const char *from, *to; /* NULL: not right */
    } texts[] = {
        {"", ""},
        {"abc", "abc"},
        {"a%20b", "a b"},
        {"%41%4a%4A", "AJJ"},
        {"a+b", "a+b"},
        {"%2F%2f", "//"},
        {"%25", "%"},
        {"%2541", "%41"},
        {"%c3%a9", "\xc3\xa9"},
        {"%ff\xff", "\xff\xff"},
        {"%", NULL},
        {"%4", NULL},
        {"a%", NULL},
        {"%g1", NULL},
        {"%1g", NULL},
        {"%%41", NULL},
        {"%00", NULL},
        {"abc%00def", NULL},
        {"%-1", NULL},
        {"% 1", NULL},
        {"%0x", NULL},
        {"%4%41", NULL},
        {"a%2", NULL},
    };
    char out[32];
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t n = ebb__percent_decode(out, texts[i].from, strlen(texts[i].from));
        if (texts[i].to == NULL) assert_true(n == SIZE_MAX);
        else assert_string_equal(out, texts[i].to);
        if (texts[i].to != NULL) assert_int_equal(n, strlen(texts[i].to));
    }
    assert_int_equal(ebb__percent_decode(out, "a\0b", 3), SIZE_MAX);
    assert_int_equal(ebb__percent_decode(out, "%41%42", 4), SIZE_MAX); /* the end counts, not a 0 behind it */
    assert_int_equal(ebb__percent_decode(out, "%41%42", 3), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_literal_path_is_found_as_a_whole),
        cmocka_unit_test(what_does_not_begin_with_a_slash_is_nowhere),
        cmocka_unit_test(a_name_stands_for_one_segment_that_is_not_empty),
        cmocka_unit_test(a_star_stands_for_the_rest_which_may_be_empty),
        cmocka_unit_test(a_literal_goes_before_a_name_and_that_before_a_star),
        cmocka_unit_test(a_search_that_went_wrong_goes_back),
        cmocka_unit_test(get_answers_head_unless_head_does),
        cmocka_unit_test(a_pattern_without_the_method_lets_the_next_answer),
        cmocka_unit_test(what_is_allowed_is_listed_once_as_far_as_there_is_room),
        cmocka_unit_test(a_pattern_that_is_none_is_refused),
        cmocka_unit_test(one_place_has_one_name_and_one_handler_a_method),
        cmocka_unit_test(a_pattern_has_at_most_sixteen_names),
        cmocka_unit_test(a_handler_stays_where_it_is),
        cmocka_unit_test(a_pattern_without_memory_changes_nothing),
        cmocka_unit_test(the_trie_agrees_with_a_list_of_patterns),
        cmocka_unit_test(a_path_without_an_answer_costs_no_more_than_the_trie),
        cmocka_unit_test(a_path_of_any_depth_is_looked_up),
        cmocka_unit_test(a_pattern_of_any_depth_is_kept),
        cmocka_unit_test(percent_signs_are_decoded),
    };
    ebb__arena_init(&sites, libc_allocator(), 1 << 16);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ebb__arena_free(&sites);
    return failed;
}
