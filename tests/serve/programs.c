/* Programs of typestate machines over HTTP: what System may send, typed by what the messages declare. */
#include <inttypes.h>

#include "tests/support/program_served.h"

static const char text[] =
    "type Note = { text: string }\n"
    "type Plain = {}\n"
    "protocol Shop {\n"
    "  msg Pay = { cents: i64, card: string }\n"
    "  msg Paid = { total: u64, by: string }\n"
    "  msg Refused\n"
    "  msg Wait\n"
    "  msg Break\n"
    "  msg Ship = { note: string, n: u64, yes: bool, raw: bytes, left: duration, list: [i64], map: [string: "
    "bool],\n"
    "    pairs: [i64: string], either: Note | Plain, to: Machine<Order> }\n"
    "  msg Never\n"
    "  msg Hidden\n"
    "  req Customer -> Order: Pay => Paid | Refused\n"
    "  req Customer -> Order: Break => Refused\n"
    "  req Customer -> Order: Wait => Refused\n"
    "  req Customer -> Order: Never => Refused\n"
    "  role Customer { state Only; }\n"
    "  role Order {\n"
    "    state Open { on Pay { effects: [reply Paid | Refused] } on Break { effects: [reply Refused] }\n"
    "      on Wait; on Ship@System -> Done; on Hidden@Customer; }\n"
    "    state Done { on Never { effects: [reply Refused] } }\n"
    "  }\n"
    "}\n"
    "typestate Order : Shop::Order {\n"
    "  fields { n: i64 }\n"
    "  fn new(n: i64) -> Open { Open { n } }\n"
    "  state Open {\n"
    "    on Pay(p) { if p.cents < 0 { reply(Refused); } else { reply(Paid { total: 12, by: p.card }); } }\n"
    "    on Break { print(f\"{1 / (self.n - self.n)}\"); reply(Refused); }\n"
    "    defer Wait;\n"
    "    on Ship(s) -> Done { print(f\"{s}\"); Done }\n"
    "    on Hidden {}\n"
    "  }\n"
    "  state Done { on Never { reply(Refused); } }\n"
    "}\n"
    "typestate Other { fn new() -> On { On } state On; }\n"
    "fn main() { let o = Other::spawn(); start(o); }\n";

typedef struct stage {
    serve_world *s;
    served x;
} stage;

static char printed[1024];

static void print(void *ctx, const char *line, size_t n) {
    (void)ctx;
    (void)snprintf(printed, sizeof printed, "%.*s", (int)n, line);
}

static ebb_machine order(stage *g) {
    const ebb_program_field n = {.name = "n", .i64 = 1};
    ebb_machine m = ebb_program_spawn(g->x.p, "Order", &n, 1);
    assert_int_equal(ebb_id_status(m.id), EBB_OK);
    assert_int_equal(ebb_machine_start(ebb_program_machines(g->x.p), m), EBB_OK);
    return m;
}

static int up(void **state) {
    stage *g = calloc(1, sizeof *g);
    void *s;
    (void)serve_up(&s);
    g->s = s;
    program_in(g->s, &g->x, (ebb_program_opts){.name = "shop", .print = print}, text);
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

static const char *id_text(ebb_machine m) {
    static char out[40];
    (void)snprintf(out, sizeof out, "%u.%u.%u", (unsigned)(m.id >> 56), (unsigned)(m.id >> 32 & 0xffffff),
                   (unsigned)m.id);
    return out;
}

/* To this machine, with these fields; NULL: none. */
static int tell(stage *g, ebb_machine m, const char *message, const char *fields) {
    char path[200], body[2048];
    (void)snprintf(path, sizeof path, "/api/v1/programs/shop/%s", message);
    (void)snprintf(body, sizeof body, "{\"machine\":\"%s\"%s%s}", id_text(m),
                   fields != NULL ? ",\"fields\":" : "", fields != NULL ? fields : "");
    return change(g->s, path, body);
}

#define PAY "{\"cents\":5,\"card\":\"visa\"}"

static void a_request_is_answered_with_its_reply(void **state) {
    stage *g = *state;
    ebb_machine m = order(g);
    assert_int_equal(tell(g, m, "Pay", PAY), 200);
    assert_string_equal(g->s->text, "{\"reply\":\"Paid\",\"fields\":{\"total\":12,\"by\":\"visa\"}}");
    assert_int_equal(tell(g, m, "Shop::Pay", "{\"cents\":-5,\"card\":\"\"}"), 200);
    assert_string_equal(g->s->text, "{\"reply\":\"Refused\",\"fields\":{}}");
    assert_int_equal(change(g->s, "/api/v1/programs/shop/Pay", "{\"fields\":" PAY "}"),
                     200); /* the only one */
    assert_int_equal(ask(g->s, "POST", "/api/v1/programs/shop/Pay", (serve_ask){.body = "{}"}), 401);
}

static void a_message_has_values_of_every_type(void **state) {
    stage *g = *state;
    ebb_machine m = order(g);
    char fields[1024];
    (void)snprintf(
        fields, sizeof fields,
        "{\"note\":\"\\u00e9\",\"n\":9223372036854775807,\"yes\":true,\"raw\":\"00Ff\",\"left\":90000,"
        "\"list\":[1,-2],\"map\":{\"a\":true},\"pairs\":[[7,\"x\"]],\"either\":{\"Note\":{\"text\":\"t\"}},"
        "\"to\":\"%s\"}",
        id_text(m));
    assert_int_equal(tell(g, m, "Ship", fields), 202);
    (void)look(g->s, "/healthz");
    assert_string_equal(printed,
                        "Ship { note: \"\303\251\", n: 9223372036854775807, yes: true, raw: b\"\\0\\xff\", "
                        "left: 90s, list: [1, -2], map: [\"a\": true], pairs: [7: \"x\"], "
                        "either: Note { text: \"t\" }, to: Order#2 }");
    assert_int_equal(tell(g, m, "Ship", fields), 202); /* its state takes no more: a dead letter */
}

static void a_wrong_field_says_where_and_what_was_expected(void **state) {
    stage *g = *state;
    ebb_machine m = order(g);
    char ship[1024];
    const struct {
        const char *with, *where, *expected;
    } cases[] = {
        {"\"note\":5", "/fields/note", "a string"},
        {"\"note\":\"\",\"n\":-1", "/fields/n", "a whole number from 0 to 9223372036854775807: u64"},
        {"\"note\":\"\",\"n\":1.5", "/fields/n", "a whole number from 0 to 9223372036854775807: u64"},
        {"\"note\":\"\",\"n\":1,\"yes\":1", "/fields/yes", "true or false"},
        {"\"note\":\"\",\"n\":1,\"yes\":true,\"raw\":\"0\"", "/fields/raw",
         "a string of hexadecimal digits, two a byte"},
        {"\"note\":\"\",\"n\":1,\"yes\":true,\"raw\":\"\",\"left\":\"5s\"", "/fields/left",
         "a whole number of 64 bits: milliseconds"},
        {"\"note\":\"\",\"n\":1,\"yes\":true,\"raw\":\"\",\"left\":5,\"list\":[1,true]", "/fields/list/1",
         "a whole number of 64 bits: i64"},
        {"\"note\":\"\",\"n\":1,\"yes\":true,\"raw\":\"\",\"left\":5,\"list\":[],\"map\":{\"k\":1}",
         "/fields/map/k", "true or false"},
        {"\"note\":\"\",\"n\":1,\"yes\":true,\"raw\":\"\",\"left\":5,\"list\":[],\"map\":{},\"pairs\":[[1]]",
         "/fields/pairs/0", "an array of a key and a value"},
        {"\"note\":\"\",\"n\":1,\"yes\":true,\"raw\":\"\",\"left\":5,\"list\":[],\"map\":{},\"pairs\":[],"
         "\"either\":\"Note\"",
         "/fields/either/Note", "an object with a value"},
        {"\"note\":\"\",\"n\":1,\"yes\":true,\"raw\":\"\",\"left\":5,\"list\":[],\"map\":{},\"pairs\":[],"
         "\"either\":\"Plain\","
         "\"to\":\"0.1.1\"",
         "/fields/to", "the id of a machine, as \"1.5.2\": Machine<Order>"},
        {"\"note\":\"\"", "/fields/n", "u64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)snprintf(ship, sizeof ship, "{%s}", cases[i].with);
        assert_int_equal(tell(g, m, "Ship", ship), 400);
        assert_string_equal(said(g->s, "error.code"), "bad_value");
        assert_string_equal(said(g->s, "error.where"), cases[i].where);
        assert_string_equal(said(g->s, "error.expected"), cases[i].expected);
    }
    assert_int_equal(tell(g, m, "Pay", "{\"cents\":5,\"card\":\"\",\"more\":1}"), 400);
    assert_string_equal(said(g->s, "error.code"), "unknown_name");
    assert_string_equal(said(g->s, "error.where"), "/fields/more");
    assert_string_equal(said(g->s, "error.expected"), "cents, card");
    assert_int_equal(tell(g, m, "Pay", "[]"), 400);
    assert_string_equal(said(g->s, "error.where"), "/fields");
    assert_int_equal(tell(g, m, "Break", "{\"x\":1}"), 400);
    assert_string_equal(said(g->s, "error.expected"), "nothing");
}

static void what_can_not_be_is_refused(void **state) {
    stage *g = *state;
    ebb_machine m = order(g);
    assert_int_equal(tell(g, m, "Nothing", NULL), 404);
    assert_string_equal(said(g->s, "error.code"), "no_such_message");
    assert_int_equal(tell(g, m, "Hidden", NULL), 404); /* of another peer */
    assert_int_equal(tell(g, m, "Paid", NULL), 404);   /* of no trigger */
    assert_int_equal(tell(g, m, "..%2f..%2fPay", NULL), 404);
    assert_int_equal(change(g->s, "/api/v1/programs/ship/Pay", "{}"), 404);
    assert_string_equal(said(g->s, "error.code"), "no_such_program");
    assert_int_equal(change(g->s, "/api/v1/programs/shop/Pay", "{\"machine\":\"1.2\"}"), 400);
    assert_int_equal(change(g->s, "/api/v1/programs/shop/Pay", "{\"machine\":\"1.2.3x\"}"), 400);
    char later[200];
    (void)snprintf(later, sizeof later, "{\"machine\":\"%u.%u.%" PRIu64 "\",\"fields\":" PAY "}",
                   (unsigned)(m.id >> 56), (unsigned)(m.id >> 32 & 0xffffff),
                   (m.id & UINT32_MAX) + (UINT64_C(1) << 32));
    assert_int_equal(change(g->s, "/api/v1/programs/shop/Pay", later),
                     400); /* no id of another is that of m */
    assert_int_equal(tell(g, (ebb_machine){m.id + 1}, "Pay", PAY), 404);
    assert_int_equal(tell(g, (ebb_machine){m.id - (UINT64_C(1) << 32)}, "Pay", PAY), 409); /* an Other */
    assert_int_equal(tell(g, m, "Never", NULL), 409); /* not in this state */
    assert_string_equal(said(g->s, "error.code"), "unhandled");
    (void)order(g);
    assert_int_equal(change(g->s, "/api/v1/programs/shop/Pay", "{\"fields\":" PAY "}"), 400); /* which? */
    assert_string_equal(said(g->s, "error.where"), "/machine");
    assert_int_equal(change(g->s, "/api/v1/programs/shop/Pay", "{\"to\":1}"), 400);
    assert_int_equal(change(g->s, "/api/v1/programs/shop/Pay", "{\"within_ms\":30001}"), 400);
}

static void what_becomes_of_a_request_has_its_status(void **state) {
    stage *g = *state;
    ebb_machine m = order(g), full = order(g);
    char late[100];
    (void)snprintf(late, sizeof late, "{\"machine\":\"%s\",\"within_ms\":20}", id_text(m));
    assert_int_equal(change(g->s, "/api/v1/programs/shop/Wait", late), 504);
    assert_string_equal(said(g->s, "error.code"), "timeout");
    assert_int_equal(tell(g, m, "Break", NULL), 500);
    assert_string_equal(said(g->s, "error.code"), "faulted");
    assert_string_equal(said(g->s, "error.fault"), "DIVIDE");
    assert_string_equal(said(g->s, "error.where"), "shop.ebb:29:25");
    assert_int_equal(tell(g, m, "Pay", PAY), 410);
    assert_string_equal(said(g->s, "error.code"), "stopped");
    for (int i = 0; i < 64; i++)
        ebb_future_drop(ebb_program_ask(ebb_loop_cx(g->s->w->loop), g->x.p, full, "Wait", NULL, 0, 0));
    assert_int_equal(tell(g, full, "Pay", PAY), 503);
    assert_string_equal(said(g->s, "error.code"), "mailbox_full");
    assert_int_equal(ebb_machine_stop(ebb_program_machines(g->x.p), full), EBB_OK);
    assert_int_equal(tell(g, full, "Pay", PAY), 410);
}

static void hostile_bodies_are_refused(void **state) {
    stage *g = *state;
    ebb_machine m = order(g);
    char *large = malloc(400000), deep[400];
    size_t n = (size_t)sprintf(large, "{\"machine\":\"%s\",\"fields\":{\"cents\":1,\"card\":\"", id_text(m));
    memset(large + n, 'x', 70000);
    strcpy(large + n + 70000, "\"}}");
    assert_int_equal(change(g->s, "/api/v1/programs/shop/Pay", large), 413);
    n = (size_t)sprintf(
        large,
        "{\"machine\":\"%s\",\"fields\":{\"note\":\"\",\"n\":1,\"yes\":true,\"raw\":\"\",\"left\":1,"
        "\"list\":[1",
        id_text(m));
    for (int i = 0; i < 100000; i++) n += (size_t)sprintf(large + n, ",1");
    strcpy(large + n, "]}}");
    assert_int_equal(change(g->s, "/api/v1/programs/shop/Ship", large), 413);
    assert_string_equal(said(g->s, "error.where"), "/fields/list");
    strcpy(deep, "{\"fields\":");
    for (int i = 0; i < 60; i++) strcat(deep, "{\"a\":");
    assert_int_equal(change(g->s, "/api/v1/programs/shop/Pay", deep), 400); /* it ends there */
    memset(deep + 10, '[', 300);
    deep[310] = 0;
    assert_int_equal(change(g->s, "/api/v1/programs/shop/Pay", deep), 400);
    assert_string_equal(said(g->s, "error.code"), "malformed_body");
    assert_int_equal(tell(g, m, "Pay", "{\"cents\":99999999999999999999,\"card\":\"\"}"), 400);
    assert_int_equal(tell(g, m, "Pay", "{\"cents\":1,\"cents\":2,\"card\":\"\"}"), 400);
    assert_int_equal(tell(g, m, "Pay", "{\"cents\":1,\"card\":\"\\u0000\"}"), 200);
    assert_string_equal(g->s->text, "{\"reply\":\"Paid\",\"fields\":{\"total\":12,\"by\":\"\\u0000\"}}");
    assert_int_equal(tell(g, m, "Pay", PAY), 200); /* it still serves */
    free(large);
}

static const json_t *message_named(serve_world *s, const char *name) {
    const json_t *all = member(s->said, "programs.0.messages"), *one;
    size_t i;
    json_array_foreach(all, i, one) {
        if (strcmp(json_string_value(json_object_get(one, "message")), name) == 0) return one;
    }
    return NULL;
}

static void a_program_tells_what_it_takes(void **state) {
    stage *g = *state;
    assert_int_equal(look(g->s, "/api/v1/programs"), 200);
    assert_string_equal(said(g->s, "programs.0.name"), "shop");
    assert_int_equal(said_number(g->s, "programs.0.machines"), 1);
    const json_t *pay = message_named(g->s, "Pay");
    assert_string_equal(json_string_value(member(pay, "protocol")), "Shop");
    assert_true(json_is_true(member(pay, "request")));
    assert_int_equal(json_array_size(member(pay, "replies")), 2);
    assert_string_equal(json_string_value(member(pay, "fields.0.type")), "i64");
    assert_true(json_is_false(member(message_named(g->s, "Ship"), "request")));
    assert_null(message_named(g->s, "Hidden"));
    assert_null(message_named(g->s, "Paid"));
}

/* The program has ended, but is not freed: nothing more is found. */
static void a_program_that_has_ended_is_not_found(void **state) {
    stage *g = *state;
    ebb_machine m = order(g);
    (void)ebb_region_close(ebb_loop_cx(g->s->w->loop), ebb_machines_region(ebb_program_machines(g->x.p)));
    (void)look(g->s, "/healthz");
    assert_int_equal(tell(g, m, "Pay", PAY), 404);
    assert_int_equal(look(g->s, "/api/v1/programs"), 200);
    assert_int_equal(json_array_size(member(g->s->said, "programs")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TOLD(a_request_is_answered_with_its_reply),
        TOLD(a_message_has_values_of_every_type),
        TOLD(a_wrong_field_says_where_and_what_was_expected),
        TOLD(what_can_not_be_is_refused),
        TOLD(what_becomes_of_a_request_has_its_status),
        TOLD(hostile_bodies_are_refused),
        TOLD(a_program_tells_what_it_takes),
        TOLD(a_program_that_has_ended_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
