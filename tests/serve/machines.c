/* The machines of the runtime over HTTP: pages of them, one, its type, a stop, and the counters. */
#include "tests/support/program_served.h"

enum { GO = 1, PUT_OFF, DROP, KINDS, MANY = 10000, MOST_SCANNED = 16384 };

static ebb_status go(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    (void)m;
    return ebb_machine_become(ms, 1, NULL);
}

static const ebb_machine_rule table[2 * KINDS] = {[GO] = {go, NULL, EBB_MACHINE_HANDLE},
                                                  [PUT_OFF] = {NULL, NULL, EBB_MACHINE_DEFER},
                                                  [DROP] = {NULL, NULL, EBB_MACHINE_IGNORE}};
static const ebb_machine_state states[2] = {{.name = "Shut"}, {.name = "Open"}};
static const ebb_machine_type till = {
    .name = "Till", .states = states, .table = table, .n_states = 2, .columns = KINDS, .mailbox = 5};
static const ebb_machine_kind kinds[KINDS] = {[GO] = {.name = "Go"}, [PUT_OFF] = {.name = "PutOff"}};

static const char text[] = "type Go = { n: i64 }\n"
                           "type Break = {}\n"
                           "typestate Light {\n"
                           "  fields { name: string }\n"
                           "  fn new(name: string) -> Off { Off { name } }\n"
                           "  state Off { on Go -> On { On } on Break { assert(false, \"broken\"); } }\n"
                           "  state On { on Go(g) -> Off | stay { if g.n == 1 { return; } Off } after 60s -> "
                           "Gone { Gone } defer Break; }\n"
                           "  @final state Gone;\n"
                           "}\n"
                           "fn main() {}\n";

typedef struct stage {
    serve_world *s;
    served x;
} stage;

static int up(void **state) {
    stage *g = calloc(1, sizeof *g);
    void *s;
    (void)serve_up(&s);
    g->s = s;
    ebb_machines_opts opts = {.n_kinds = KINDS, .kinds = kinds, .name = "tills"};
    assert_int_equal(ebb_machines_open(ebb_loop_cx(g->s->w->loop), &g->x.ms, &opts), EBB_OK);
    program_in(g->s, &g->x, (ebb_program_opts){.name = "lights"}, text);
    *state = g;
    return 0;
}

static int down(void **state) {
    stage *g = *state;
    void *s = g->s;
    served_end(g->s, &g->x);
    (void)serve_down(&s);
    free(g);
    return 0;
}

#define TOLD(test) cmocka_unit_test_setup_teardown(test, up, down)

static ebb_machine a_till(stage *g) {
    ebb_machine m = ebb_machine_spawn(g->x.ms, &till, 0, NULL);
    assert_int_equal(ebb_id_status(m.id), EBB_OK);
    assert_int_equal(ebb_machine_start(g->x.ms, m), EBB_OK);
    return m;
}

static ebb_machine a_light(stage *g) {
    const ebb_program_field name = {.name = "name", .bytes = "hall", .n = 4};
    ebb_machine m = ebb_program_spawn(g->x.p, "Light", &name, 1);
    assert_int_equal(ebb_id_status(m.id), EBB_OK);
    assert_int_equal(ebb_machine_start(ebb_program_machines(g->x.p), m), EBB_OK);
    return m;
}

static const char *path_of(ebb_machine m, const char *rest) {
    static char out[80];
    (void)snprintf(out, sizeof out, "/api/v1/machines/%u.%u.%u%s", (unsigned)(m.id >> 56),
                   (unsigned)(m.id >> 32 & 0xffffff), (unsigned)m.id, rest);
    return out;
}

static size_t listed(stage *g, const char *query) {
    char path[200];
    (void)snprintf(path, sizeof path, "/api/v1/machines%s", query);
    assert_int_equal(look(g->s, path), 200);
    return json_array_size(member(g->s->said, "machines"));
}

static void settle(stage *g) {
    for (int i = 0; i < 3; i++) (void)look(g->s, "/healthz");
}

static void all_machines_of_the_runtime_are_listed(void **state) {
    stage *g = *state;
    assert_int_equal(listed(g, ""), 0);
    ebb_machine t = a_till(g);
    (void)a_till(g);
    (void)a_light(g);
    assert_int_equal(ebb_machine_send(g->x.ms, t, GO, NULL, 0), EBB_OK);
    settle(g);
    assert_int_equal(ebb_machine_send(g->x.ms, t, DROP, NULL, 0),
                     EBB_OK); /* which this state has no rule for */
    settle(g);
    assert_int_equal(listed(g, ""), 3);
    assert_string_equal(said(g->s, "machines.0.program"), "tills");
    assert_string_equal(said(g->s, "machines.0.type"), "Till");
    assert_string_equal(said(g->s, "machines.0.state"), "Open");
    assert_string_equal(said(g->s, "machines.0.lifecycle"), "Running");
    assert_int_equal(said_number(g->s, "machines.0.mailbox"), 5);
    assert_int_equal(said_number(g->s, "machines.0.dropped"), 1);
    assert_string_equal(said(g->s, "machines.2.program"), "lights");
    assert_string_equal(said(g->s, "machines.2.type"), "Light");
    assert_true(json_is_null(member(g->s->said, "next")));
    assert_int_equal(listed(g, "?program=lights"), 1);
    assert_int_equal(listed(g, "?type=Till&state=Shut"), 1);
    assert_int_equal(listed(g, "?state=Running"), 3);
    assert_int_equal(listed(g, "?state=Faulted"), 0);
    assert_int_equal(listed(g, "?most=2"), 2);
    assert_int_equal(listed(g, "?most=2&after=0.3"), 1); /* the light */
}

static void a_query_that_is_not_valid_is_refused(void **state) {
    stage *g = *state;
    static const char *const bad[] = {"?after=1",
                                      "?after=.17",
                                      "?after=1.x",
                                      "?after=64.1",
                                      "?after=1.",
                                      "?after=1.2.3",
                                      "?after=0.99999999999",
                                      "?after=-1.1",
                                      "?most=0",
                                      "?most=201",
                                      "?most=1&most=1",
                                      "?type=",
                                      "?kind=x",
                                      "?after=%2e%2e1",
                                      "?state=%00"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[100];
        (void)snprintf(path, sizeof path, "/api/v1/machines%s", bad[i]);
        if (look(g->s, path) != 400) fail_msg("%s", path);
    }
}

/* Each once, whatever the page; and a filter that leaves all out looks at a bounded number of them. */
static void ten_thousand_are_listed_page_by_page(void **state) {
    stage *g = *state;
    for (int i = 0; i < MANY; i++) (void)a_till(g);
    (void)a_light(g);
    char query[64] = "?most=200";
    uint64_t sum = 0;
    size_t n = 0, pages = 0;
    for (;; pages++) {
        n += listed(g, query);
        const json_t *one;
        size_t i;
        json_array_foreach(member(g->s->said, "machines"), i, one) {
            unsigned index = 0;
            (void)sscanf(json_string_value(json_object_get(one, "id")), "%*u.%u", &index);
            sum += index;
        }
        if (json_is_null(member(g->s->said, "next"))) break;
        (void)snprintf(query, sizeof query, "?most=200&after=%s", said(g->s, "next"));
    }
    assert_int_equal(n, MANY + 1);
    assert_int_equal(pages, MANY / 200);
    assert_int_equal(sum, (uint64_t)MANY * (MANY + 1) / 2 + 1);
    for (int i = MANY; i < 2 * MOST_SCANNED; i++) (void)a_till(g);
    (void)snprintf(query, sizeof query, "?type=Light");
    for (n = 0, pages = 1; listed(g, query) == 0; pages++)
        (void)snprintf(query, sizeof query, "?type=Light&after=%s", said(g->s, "next"));
    assert_int_equal(pages, 3); /* of 32,768 tills, then the light */
    assert_int_equal(listed(g, query), 1);
}

/* Between two pages machines stop, others take their slots, and a whole runtime of machines is freed. */
static void machines_that_go_between_two_pages_do_no_harm(void **state) {
    stage *g = *state;
    ebb_machine all[10];
    for (int i = 0; i < 10; i++) all[i] = a_till(g);
    (void)a_light(g);
    assert_int_equal(listed(g, "?most=4"), 4);
    assert_string_equal(said(g->s, "next"), "0.5");
    for (int i = 0; i < 8; i++) assert_int_equal(ebb_machine_stop(g->x.ms, all[i]), EBB_OK);
    settle(g);
    assert_int_equal(listed(g, "?after=0.5"), 3); /* two tills, and the light */
    served_close(g->s, g->x.ms);
    loop_until(g->s->w, served_machines_are_freed, &g->x);
    assert_int_equal(listed(g, "?after=0.5"), 1);
    assert_int_equal(look(g->s, path_of(all[9], "")), 404);
    assert_int_equal(look(g->s, "/api/v1/machines/types/Till"), 404);
    served_close(g->s, ebb_program_machines(g->x.p));
    loop_until(g->s->w, served_program_is_freed, &g->x);
    assert_int_equal(listed(g, "?after=1.1"), 0);
    assert_int_equal(listed(g, ""), 0);
}

static void a_machine_tells_its_queue_and_what_it_waits_for(void **state) {
    stage *g = *state;
    ebb_machine m = a_till(g);
    for (int i = 0; i < 3; i++) assert_int_equal(ebb_machine_send(g->x.ms, m, PUT_OFF, NULL, 0), EBB_OK);
    settle(g);
    assert_int_equal(look(g->s, path_of(m, "")), 200);
    assert_int_equal(said_number(g->s, "queued"), 3);
    assert_int_equal(said_number(g->s, "deferred"), 3);
    assert_int_equal(said_number(g->s, "places"), 3);
    assert_string_equal(said(g->s, "queue.2.kind"), "PutOff");
    assert_string_equal(said(g->s, "queue.2.what"), "message");
    assert_true(said_true(g->s, "queue.2.deferred"));
    assert_true(json_is_null(member(g->s->said, "queue.0.from")));
    assert_true(json_is_null(member(g->s->said, "fields"))); /* of C: bytes */
    assert_non_null(strstr(said(g->s, "explain.0"), "Running in Shut, 3 queued (3 deferred)"));
    assert_string_equal(said(g->s, "explain.1"), "deferred message PutOff");
    assert_true(json_is_null(member(g->s->said, "fault")));
}

static void a_machine_of_a_program_tells_its_fields_and_its_fault(void **state) {
    stage *g = *state;
    ebb_machine m = a_light(g);
    assert_int_equal(look(g->s, path_of(m, "")), 200);
    assert_string_equal(said(g->s, "fields.name"), "hall");
    assert_false(said_true(g->s, "fields_cut"));
    assert_int_equal(ebb_program_send(g->x.p, m, "Break", NULL, 0), EBB_OK);
    settle(g);
    assert_int_equal(look(g->s, path_of(m, "")), 200);
    assert_string_equal(said(g->s, "lifecycle"), "Faulted");
    assert_string_equal(said(g->s, "fault.code"), "ASSERT");
    assert_string_equal(said(g->s, "fault.message"),
                        "Light faulted on Break: an assertion does not hold: broken");
    assert_string_equal(said(g->s, "fault.where"), "shop.ebb:6:45");
    assert_int_equal(said_number(g->s, "faults"), 1);
}

static void what_is_no_machine_is_not_found(void **state) {
    stage *g = *state;
    ebb_machine m = a_till(g);
    assert_int_equal(look(g->s, path_of((ebb_machine){m.id + 1}, "")), 404);
    assert_int_equal(look(g->s, "/api/v1/machines/1.2"), 400);
    assert_int_equal(look(g->s, "/api/v1/machines/1.2.3.4"), 400);
    assert_int_equal(look(g->s, "/api/v1/machines/255.16777215.4294967295"), 404);
    assert_int_equal(look(g->s, "/api/v1/machines/..%2f1"), 400);
    assert_int_equal(look(g->s, "/api/v1/machines/types/Tell"), 404);
    assert_int_equal(look(g->s, "/api/v1/machines/types/Till?program=lights"), 404);
}

static void a_stop_needs_the_token_and_stops(void **state) {
    stage *g = *state;
    ebb_machine m = a_till(g);
    assert_int_equal(ask(g->s, "POST", path_of(m, "/stop"), (serve_ask){.body = "{}"}), 401);
    assert_int_equal(change(g->s, path_of(m, "/stop"), "{\"x\":1}"), 400);
    assert_int_equal(listed(g, ""), 1);
    assert_int_equal(change(g->s, path_of(m, "/stop"), NULL), 202);
    assert_int_equal(listed(g, ""), 0);
    assert_int_equal(change(g->s, path_of(m, "/stop"), NULL), 410);
    assert_int_equal(look(g->s, path_of(m, "")), 410);
}

/* "Off -Go-> On", and so on. */
static void drawn(const serve_world *s, char *out, size_t room) {
    const json_t *one;
    size_t i, n = 0;
    out[0] = 0;
    json_array_foreach(member(s->said, "transitions"), i, one) {
        char to[200];
        const json_t *targets = json_object_get(one, "to");
        size_t at = 0;
        to[0] = 0;
        for (size_t t = 0; t < json_array_size(targets); t++)
            at += (size_t)snprintf(to + at, sizeof to - at, " %s",
                                   json_string_value(json_array_get(targets, t)));
        n += (size_t)snprintf(
            out + n, room - n, "%s %s %s:%s%s%s; ", json_string_value(json_object_get(one, "from")),
            json_string_value(json_object_get(one, "what")), json_string_value(json_object_get(one, "on")),
            json_is_null(targets) ? " ?" : "", to,
            json_is_true(json_object_get(one, "stays")) ? " stays" : "");
    }
}

static void a_typestate_is_drawn_from_what_was_compiled(void **state) {
    stage *g = *state;
    char out[1000];
    assert_int_equal(look(g->s, "/api/v1/machines/types/Light"), 200);
    drawn(g->s, out, sizeof out);
    assert_string_equal(out, "Off handle Go: On; Off handle Break: stays; On handle Go: Off stays; "
                             "On defer Break: stays; On handle after: Gone; ");
    assert_string_equal(said(g->s, "initial.0"), "Off");
    assert_true(said_true(g->s, "targets_known"));
    assert_true(said_true(g->s, "states.2.final"));
    assert_false(said_true(g->s, "states.1.final"));
}

static void a_type_in_c_is_drawn_from_its_table(void **state) {
    stage *g = *state;
    char out[1000];
    assert_int_equal(look(g->s, "/api/v1/machines/types/Till"), 404); /* none was spawned: nobody knows it */
    (void)a_till(g);
    assert_int_equal(look(g->s, "/api/v1/machines/types/Till"), 200);
    drawn(g->s, out, sizeof out);
    assert_string_equal(out, "Shut handle Go: ?; Shut defer PutOff: ? stays; Shut ignore kind 3: ? stays; ");
    assert_false(said_true(g->s, "targets_known"));
    assert_int_equal(said_number(g->s, "mailbox"), 5);
}

static uint64_t sample(stage *g, const char *name) {
    char start[80];
    assert_int_equal(look(g->s, "/metrics"), 200);
    (void)snprintf(start, sizeof start, "\n%s ", name);
    const char *at = strstr(g->s->text, start);
    assert_non_null(at);
    return strtoull(at + strlen(start), NULL, 10);
}

/* Also of machines that are gone: a counter never falls. */
static void metrics_count_machines(void **state) {
    stage *g = *state;
    ebb_machine m = a_till(g), light = a_light(g);
    for (int i = 0; i < 6; i++) (void)ebb_machine_send(g->x.ms, m, PUT_OFF, NULL, 0);
    assert_int_equal(ebb_program_send(g->x.p, light, "Break", NULL, 0), EBB_OK);
    settle(g);
    assert_int_equal(sample(g, "ebb_machines"), 2);
    assert_int_equal(sample(g, "ebb_machine_queued"), 5);
    assert_int_equal(sample(g, "ebb_machine_mailbox_full_total"), 1);
    assert_int_equal(sample(g, "ebb_machine_faults_total"), 1);
    assert_int_equal(sample(g, "ebb_machine_rolled_back_total"), 1);
    assert_int_equal(sample(g, "ebb_machine_dispatches_total"), 1);
    served_close(g->s, ebb_program_machines(g->x.p));
    loop_until(g->s->w, served_program_is_freed, &g->x);
    assert_int_equal(sample(g, "ebb_machines"), 1);
    assert_int_equal(sample(g, "ebb_machine_faults_total"), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TOLD(all_machines_of_the_runtime_are_listed),
        TOLD(a_query_that_is_not_valid_is_refused),
        TOLD(ten_thousand_are_listed_page_by_page),
        TOLD(machines_that_go_between_two_pages_do_no_harm),
        TOLD(a_machine_tells_its_queue_and_what_it_waits_for),
        TOLD(a_machine_of_a_program_tells_its_fields_and_its_fault),
        TOLD(what_is_no_machine_is_not_found),
        TOLD(a_stop_needs_the_token_and_stops),
        TOLD(a_typestate_is_drawn_from_what_was_compiled),
        TOLD(a_type_in_c_is_drawn_from_its_table),
        TOLD(metrics_count_machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
