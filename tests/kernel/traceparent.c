/* Trace contexts: which headers are valid, and that every span has a number of its own. */
#include "kernel/layer.h"
#include "tests/support/world.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"

static ebb_status parse(const char *text, ebb_traceparent *out) {
    return ebb_traceparent_parse(text, strlen(text), out);
}

static void a_valid_header_is_read_and_written(void **state) {
    static const struct {
        const char *text, *written;
    } valid[] = {
        {"00-" TRACE "-" SPAN "-01", NULL},
        {"00-" TRACE "-" SPAN "-00", NULL},
        {"00-" TRACE "-" SPAN "-03", NULL},
        {"00-" TRACE "-" SPAN "-ff",
         "00-" TRACE "-" SPAN "-03"}, /* flags that nobody knows are not passed on */
        {"cc-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01"}, /* a later version may look the same */
        {"fe-" TRACE "-" SPAN "-01-what-comes", "00-" TRACE "-" SPAN "-01"}, /* and may go on */
        {"01-" TRACE "-" SPAN "-01-", "00-" TRACE "-" SPAN "-01"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) {
        char text[EBB_TRACEPARENT_TEXT + 1];
        ebb_traceparent t;
        assert_int_equal(parse(valid[i].text, &t), EBB_OK);
        ebb_traceparent_text(&t, text);
        assert_string_equal(text, valid[i].written != NULL ? valid[i].written : valid[i].text);
    }
}

static void what_is_not_valid_is_refused_and_changes_nothing(void **state) {
    static const char *const bad[] = {
        "",
        "00",
        "00-" TRACE "-" SPAN,
        "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-01-",
        "00-" TRACE "-" SPAN "-01-more",
        "00-" TRACE "-" SPAN "-012",
        "01-" TRACE "-" SPAN "-01.what",
        "ff-" TRACE "-" SPAN "-01",
        "0-" TRACE "-" SPAN "-001",
        ".0-" TRACE "-" SPAN "-01",
        "0A-" TRACE "-" SPAN "-01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
        "00-" TRACE "-b7AD6b7169203331-01",
        "00-" TRACE "-" SPAN "-0A",
        "00-" TRACE "-" SPAN "-0x",
        "00-" TRACE "-b7ad6b716920333g-01",
        "00_" TRACE "-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01",
        "00-" TRACE "-" SPAN "_01",
        " 00-" TRACE "-" SPAN "-01",
        "00-" TRACE "-" SPAN "-01 ",
        "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ebb_traceparent t, before;
        memset(&before, 0x5a, sizeof before);
        t = before;
        assert_int_equal(parse(bad[i], &t), EBB_ERR_FORMAT);
        assert_memory_equal(&t, &before, sizeof t);
    }
    assert_int_equal(ebb_traceparent_parse(NULL, 0, NULL), EBB_ERR_FORMAT);
    /* A character of every value at every place: the read never goes past the text, and only digits pass. */
    for (size_t at = 0; at < EBB_TRACEPARENT_TEXT; at++) {
        for (int c = 0; c < 256; c++) {
            char text[EBB_TRACEPARENT_TEXT + 1] = "00-" TRACE "-" SPAN "-01";
            ebb_traceparent t;
            bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
            bool dash = at == 2 || at == 35 || at == 52;
            text[at] = (char)c;
            ebb_status st = ebb_traceparent_parse(text, EBB_TRACEPARENT_TEXT, &t);
            assert_int_equal(st == EBB_OK, dash ? c == '-' : digit);
        }
    }
}

/* ---- regions ------------------------------------------------------------------------------------------- */

static void regions_below_have_the_context_and_others_have_none(void **state) {
    world *w = *state;
    ebb__trace_context c = {.given = 0};
    ebb__region *r;
    (void)parse("00-" TRACE "-" SPAN "-01", &c.at);
    ebb_region above = ebb_region_open(w->host, NULL);
    ebb_region with = ebb_region_open(w->host, &(ebb_region_opts){.parent = above});
    ebb__region_set_trace(w->rt, with, &c);
    ebb_region below = ebb_region_open(w->host, &(ebb_region_opts){.parent = with});
    ebb_region deep = ebb_region_open(w->host, &(ebb_region_opts){.parent = below});
    ebb_region beside = ebb_region_open(w->host, &(ebb_region_opts){.parent = above});
    const struct {
        ebb_region region;
        const ebb__trace_context *has;
    } regions[] = {{above, NULL}, {with, &c}, {below, &c}, {deep, &c}, {beside, NULL}};
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++) {
        assert_int_equal(ebb__region_get(w->rt, regions[i].region, &r), EBB_OK);
        assert_ptr_equal(ebb__region_trace(r), regions[i].has);
    }
    ebb_traceparent none;
    assert_false(ebb_cx_traceparent(w->host, &none));
    ebb_region_close(w->host, above);
}

static void every_span_is_another_and_keeps_its_trace(void **state) {
    world *w = *state;
    enum { MANY = 1000 };
    ebb__trace_context c = {.given = 0};
    uint8_t spans[MANY][8];
    (void)parse("00-" TRACE "-" SPAN "-01", &c.at);
    for (size_t i = 0; i < MANY; i++) {
        ebb_traceparent t = ebb__trace_next(w->rt, &c);
        assert_memory_equal(t.trace, c.at.trace, sizeof t.trace);
        assert_int_equal(t.flags, 1);
        memcpy(spans[i], t.span, sizeof t.span);
        assert_memory_not_equal(t.span, c.at.span, sizeof t.span);
        for (size_t k = 0; k < i; k++) assert_memory_not_equal(spans[k], spans[i], sizeof t.span);
    }
}

/* A replay on another machine has to give the same: the numbers stand in histories. */
static void the_span_of_a_number_never_changes(void **state) {
    char text[EBB_TRACEPARENT_TEXT + 1];
    ebb_traceparent t;
    (void)state;
    (void)parse("00-" TRACE "-" SPAN "-01", &t);
    t = ebb__trace_child(&t, 2);
    ebb_traceparent_text(&t, text);
    assert_string_equal(text, "00-" TRACE "-188a2223d4292727-01");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_valid_header_is_read_and_written),
        cmocka_unit_test(what_is_not_valid_is_refused_and_changes_nothing),
        IN_WORLD(regions_below_have_the_context_and_others_have_none),
        IN_WORLD(every_span_is_another_and_keeps_its_trace),
        cmocka_unit_test(the_span_of_a_number_never_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
