/* /metrics by the rules of Prometheus' text format and of promtool's lint, which a small checker here holds: it is
 * tried on texts that break each rule, and then on ours. */
#include "tests/support/serve_world.h"

#include "base/text.h"

enum { FAMILIES = 128, NAME = 96 };

typedef struct family {
    char name[NAME], type[16];
    bool helped, typed;
    uint32_t samples;
} family;

typedef struct check {
    family families[FAMILIES];
    size_t n;
    char seen[FAMILIES * 4][200]; /* samples, with their labels */
    size_t seen_n;
    char error[300];
} check;

static bool wrong(check *c, const char *what, const char *line) {
    snprintf(c->error, sizeof c->error, "%s: %.*s", what, (int)strcspn(line, "\n"), line);
    return false;
}

static size_t name_at(const char *s) {
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";
    static const char later[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789";
    return strspn(s, first) == 0 ? 0 : strspn(s, later);
}

static family *family_of(check *c, const char *name, size_t n, bool make) {
    for (size_t i = 0; i < c->n; i++) {
        if (strlen(c->families[i].name) == n && memcmp(c->families[i].name, name, n) == 0)
            return &c->families[i];
    }
    if (!make || c->n == FAMILIES || n >= NAME) return NULL;
    family *f = &c->families[c->n++];
    *f = (family){.type = ""};
    memcpy(f->name, name, n);
    return f;
}

/* "# HELP name text" or "# TYPE name type". */
static bool take_comment(check *c, const char *line) {
    bool help = strncmp(line, "# HELP ", 7) == 0;
    size_t n = name_at(line + 7), end = strcspn(line, "\n");
    if (!help && strncmp(line, "# TYPE ", 7) != 0) return wrong(c, "no comment that is known", line);
    if (n == 0 || line[7 + n] != ' ' || 8 + n >= end) return wrong(c, "no name or no text", line);
    family *f = family_of(c, line + 7, n, true);
    if (f == NULL) return wrong(c, "too many", line);
    if (f->samples > 0 || f != &c->families[c->n - 1]) return wrong(c, "after its samples", line);
    if (help ? f->helped : f->typed) return wrong(c, "given twice", line);
    if (help) f->helped = true;
    else f->typed = snprintf(f->type, sizeof f->type, "%.*s", (int)(end - 8 - n), line + 8 + n) > 0;
    return true;
}

/* {a="b",c="d"}; its length, 0: it is none. */
static size_t labels_at(const char *s) {
    const char *at = s + 1;
    do {
        size_t n = name_at(at);
        if (n == 0 || memchr(at, ':', n) != NULL || at[n] != '=' || at[n + 1] != '"') return 0;
        for (at += n + 2; *at != '"'; at++) {
            if (*at == '\n' || *at == 0) return 0;
            if (*at == '\\' && strchr("\\\"n", *++at) == NULL) return 0;
        }
        at++;
    } while (*at == ',' && *++at != '}');
    return *at == '}' ? (size_t)(at + 1 - s) : 0;
}

static bool take_sample(check *c, const char *line) {
    size_t n = name_at(line), labels = line[n] == '{' ? labels_at(line + n) : 0, whole = n + labels;
    char *end;
    if (n == 0 || (line[n] == '{' && labels == 0) || line[whole] != ' ') return wrong(c, "no sample", line);
    family *f = family_of(c, line, n, false);
    if (f == NULL || !f->helped || !f->typed) return wrong(c, "no HELP and TYPE before it", line);
    if (f != &c->families[c->n - 1]) return wrong(c, "apart from its family", line);
    (void)strtod(line + whole + 1, &end);
    if (end == line + whole + 1 || *end != '\n') return wrong(c, "no value", line);
    for (size_t i = 0; i < c->seen_n; i++) {
        if (strlen(c->seen[i]) == whole && memcmp(c->seen[i], line, whole) == 0)
            return wrong(c, "given twice", line);
    }
    if (c->seen_n == sizeof c->seen / sizeof *c->seen || whole >= sizeof *c->seen)
        return wrong(c, "too many", line);
    snprintf(c->seen[c->seen_n++], sizeof *c->seen, "%.*s", (int)whole, line);
    f->samples++;
    return true;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* What `promtool check metrics` complains of. */
static bool lint(check *c, const family *f) {
    static const char *const units[] = {"_ms", "_ns", "_us",      "_milliseconds", "_kilobytes",
                                        "_kb", "_mb", "_percent", "_minutes"};
    bool counter = strcmp(f->type, "counter") == 0;
    if (!counter && strcmp(f->type, "gauge") != 0) return wrong(c, "no type that is known", f->name);
    if (counter != ends_with(f->name, "_total"))
        return wrong(c, "_total is for counters, and for all of them", f->name);
    if (f->samples == 0) return wrong(c, "no samples", f->name);
    if (strpbrk(f->name, ":ABCDEFGHIJKLMNOPQRSTUVWXYZ") != NULL)
        return wrong(c, "a name in another style", f->name);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strstr(f->name, units[i]) != NULL && name_at(strstr(f->name, units[i])) >= strlen(units[i]) &&
            strchr("_", strstr(f->name, units[i])[strlen(units[i])]) != NULL)
            return wrong(c, "no base unit", f->name);
    }
    return true;
}

static bool is_valid(check *c, const char *text) {
    *c = (check){.n = 0};
    if (*text == 0 || text[strlen(text) - 1] != '\n') return wrong(c, "no newline at its end", text);
    for (const char *line = text; *line != 0; line = strchr(line, '\n') + 1) {
        if (!(*line == '#' ? take_comment(c, line) : take_sample(c, line))) return false;
    }
    for (size_t i = 0; i < c->n; i++) {
        if (!lint(c, &c->families[i])) return false;
    }
    return true;
}

static void the_checker_finds_what_is_wrong(void **state) {
#define HEAD "# HELP a_total text\n# TYPE a_total counter\n"
    check *c = calloc(1, sizeof *c);
    static const char *const bad[] = {"",
                                      HEAD "a_total 1",
                                      HEAD,
                                      "a_total 1\n",
                                      "# TYPE a_total counter\na_total 1\n",
                                      HEAD "a_total x\n",
                                      HEAD "a_total{b=\"1} 1\n",
                                      HEAD "a_total{b} 1\n",
                                      HEAD "a_total{1b=\"\"} 1\n",
                                      HEAD "a_total 1\na_total 2\n",
                                      HEAD "a_total{b=\"1\"} 1\na_total{b=\"1\"} 1\n",
                                      HEAD "a_total{b=\"\\x\"} 1\n",
                                      HEAD HEAD "a_total 1\n",
                                      "# HELP a_total\n# TYPE a_total counter\na_total 1\n",
                                      "# HELP a text\n# TYPE a counter\na 1\n",
                                      "# HELP a_total text\n# TYPE a_total gauge\na_total 1\n",
                                      "# HELP a_ms text\n# TYPE a_ms gauge\na_ms 1\n",
                                      "# HELP aB text\n# TYPE aB gauge\naB 1\n",
                                      "# HELP a text\n# TYPE a meter\na 1\n",
                                      HEAD "a_total 1 2 3\n",
                                      HEAD
                                      "a_total 1\n# HELP b text\n# TYPE b gauge\nb 1\na_total{c=\"1\"} 1\n",
                                      HEAD "\na_total 1\n",
                                      "# what\n"};
    (void)state;
    assert_non_null(c);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (is_valid(c, bad[i])) fail_msg("it finds nothing wrong with %s", bad[i]);
    }
    assert_true(is_valid(
        c,
        HEAD "a_total 1\na_total{b=\"x\\\"y\",c=\"\"} 1.5e9\n# HELP b_msg t\n# TYPE b_msg gauge\nb_msg 1\n"));
    free(c);
}

static double value_of(const serve_world *s, const char *sample) {
    const size_t n = strlen(sample);
    for (const char *line = s->text; *line != 0; line = strchr(line, '\n') + 1) {
        if (strncmp(line, sample, n) == 0 && line[n] == ' ') return strtod(line + n + 1, NULL);
    }
    fail_msg("there is no %s", sample);
    return 0;
}

static void our_metrics_are_valid_and_count(void **state) {
    serve_world *s = *state;
    check *c = calloc(1, sizeof *c);
    assert_non_null(c);
    assert_int_equal(look(s, "/metrics"), 200);
    if (!is_valid(c, s->text)) fail_msg("%s", c->error);
    assert_true(value_of(s, "ebb_http_requests_total") == 1);
    assert_true(value_of(s, "ebb_dashboard_requests_total") == 1);
    assert_true(value_of(s, "ebb_dashboard_refused_total{why=\"token\"}") == 0);
    assert_true(value_of(s, "ebb_tasks") >= 2);
    assert_true(value_of(s, "ebb_workflows{state=\"IDLE\"}") == 0);
    assert_int_equal(ask(s, "POST", "/api/v1/cancel", (serve_ask){0}), 401);
    ebb_workflow_opts opts = {.type = &ebb_workflow_publish_abort};
    assert_int_equal(ebb_id_status(ebb_workflow_open(ebb_loop_cx(s->w->loop), &opts).id), EBB_OK);
    assert_int_equal(look(s, "/metrics"), 200);
    if (!is_valid(c, s->text)) fail_msg("%s", c->error);
    assert_true(value_of(s, "ebb_http_requests_total") == 3);
    assert_true(value_of(s, "ebb_http_responses_total{class=\"4xx\"}") == 1);
    assert_true(value_of(s, "ebb_dashboard_refused_total{why=\"token\"}") == 1);
    assert_true(value_of(s, "ebb_workflows{state=\"IDLE\"}") == 1);
    free(c);
}

static bool has_ended(void *world) {
    serve_world *s = world;
    return look(s, "/api/v1/instances/one") == 200 && strcmp(said(s, "state"), "Completed") == 0;
}

static void those_of_a_worker_end_with_it(void **state) {
    serve_world *s = *state;
    assert_int_equal(change(s, "/api/v1/instances", "{\"name\":\"order\",\"id\":\"one\"}"), 201);
    assert_int_equal(change(s, "/api/v1/instances/one/signal", "{\"name\":\"go\",\"body\":7}"), 202);
    loop_until(s->w, has_ended, s);
    check *c = calloc(1, sizeof *c);
    assert_non_null(c);
    assert_int_equal(look(s, "/metrics"), 200);
    if (!is_valid(c, s->text)) fail_msg("%s", c->error);
    assert_true(value_of(s, "ebb_worker_turns_total") >= 1);
    const ebb_region r = ebb_worker_region(s->worker);
    char id[40], path[80];
    ebb__text t = ebb__text_in(id, sizeof id);
    ebb__text_id(&t, r.id);
    snprintf(path, sizeof path, "/api/v1/regions/%s/cancel", id);
    assert_int_equal(change(s, path, NULL), 409); /* it would run nothing any more, and look ready */
    assert_string_equal(said(s, "error.code"), "has_the_worker");
    ebb_region_close(ebb_loop_cx(s->w->loop), r);
    while (!region_is_closed(s->w, r)) loop_turns(s->w, 1);
    assert_int_equal(look(s, "/metrics"), 200);
    assert_null(strstr(s->text, "ebb_worker"));
    free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checker_finds_what_is_wrong),
        SERVED(our_metrics_are_valid_and_count),
        DURABLE(those_of_a_worker_end_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
