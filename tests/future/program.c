/* The host spawns machines of a program, asks them by the names of their messages, and reads the answers as JSON. */
#include "tests/support/future_world.h"
#include "tests/support/program_world.h"

static const char text[] =
    "type Note = { text: string }\n"
    "type Plain = {}\n"
    "protocol Shop {\n"
    "  msg Pay = { cents: i64, card: string }\n"
    "  msg Paid = { total: u64, by: string, raw: bytes, left: duration, list: [i64], map: [string: bool],\n"
    "    pairs: [i64: string], either: Note | Plain, other: Note | Plain, order: Machine<Order> }\n"
    "  msg Refused\n"
    "  msg Wait\n"
    "  msg Break\n"
    "  msg Ship = { note: string, to: Machine<Order> }\n"
    "  req Customer -> Order: Pay => Paid | Refused\n"
    "  req Customer -> Order: Break => Refused\n"
    "  req Customer -> Order: Wait => Refused within 5s\n"
    "  role Customer { state Only; }\n"
    "  role Order { state Open { on Pay { effects: [reply Paid | Refused] } on Break { effects: [reply "
    "Refused] }\n"
    "    on Wait; on Ship@System -> Done; } state Done; }\n"
    "}\n"
    "typestate Order : Shop::Order {\n"
    "  fields { n: i64, who: string }\n"
    "  fn new(n: i64, who: string) -> Open { assert(n > 0, \"n is too small\"); Open { n, who } }\n"
    "  state Open {\n"
    "    on Pay(p) {\n"
    "      if p.cents < 0 { reply(Refused); }\n"
    "      else { reply(Paid { total: 12, by: p.card, raw: b\"\\x00\\xff\", left: 90s, list: [1, -2], map: "
    "[\"a\": true],\n"
    "        pairs: [7: \"x\"], either: Note { text: self.who }, other: Plain {}, order: self }); }\n"
    "    }\n"
    "    on Break { print(f\"{1 / (self.n - self.n)}\"); reply(Refused); }\n"
    "    defer Wait;\n"
    "    on Ship(s) -> Done { print(f\"{s.note} {s.to}\"); Done }\n"
    "  }\n"
    "  state Done;\n"
    "}\n"
    "typestate Other { fn new() -> On { On } state On; }\n"
    "fn main() {}\n";

typedef struct stage {
    future_world *fw;
    program_world x;
} stage;

static void begin(stage *s, void **state) {
    s->fw = *state;
    s->x = (program_world){
        .w = s->fw->world, .c = program_compile("shop.ebb", text, sizeof text - 1), .said = lang_empty()};
    ebb_program_opts opts = program_opts(&s->x);
    opts.name = "shop";
    assert_int_equal(ebb_program_new(s->x.c, &opts, &s->x.p), EBB_OK);
    assert_int_equal(ebb_program_open(s->fw->host, s->x.p), EBB_OK);
    assert_int_equal(ebb_program_start(s->x.p), EBB_OK);
}

static void end(stage *s) {
    ebb_region_cancel(s->fw->host, ebb_machines_region(ebb_program_machines(s->x.p)), EBB_CANCEL_USER,
                      "test");
    future_settle(s->fw);
    future_collect(s->fw);
    assert_int_equal(s->x.p->blocks, 0);
    assert_int_equal(ebb_program_free(s->x.p), EBB_OK);
    ebb_lang_free(s->x.c);
    free(s->x.said.s);
}

static ebb_machine spawn(stage *s, int64_t n) {
    const ebb_program_field arguments[] = {{.name = "who", .bytes = "an\"n\n", .n = 5},
                                           {.name = "n", .i64 = n}};
    return ebb_program_spawn(s->x.p, "Order", arguments, 2);
}

static ebb_machine order(stage *s) {
    ebb_machine m = spawn(s, 1);
    assert_int_equal(ebb_id_status(m.id), EBB_OK);
    assert_int_equal(ebb_machine_start(ebb_program_machines(s->x.p), m), EBB_OK);
    return m;
}

static ebb_future *pay(stage *s, ebb_machine m, int64_t cents, const char *card) {
    const ebb_program_field fields[] = {{.name = "cents", .i64 = cents},
                                        {.name = "card", .bytes = card, .n = strlen(card)}};
    return ebb_program_ask(s->fw->host, s->x.p, m, "Pay", fields, 2, 0);
}

/* What became of it: a status, or the name of the reply and its JSON. */
static lang_text fate(stage *s, ebb_future *f) {
    lang_text out = lang_empty();
    ebb_value v;
    future_settle(s->fw);
    ebb_status st = ebb_await(s->fw->host, f, &v);
    const char *name = ebb_status_name(st);
    const ebb_machine_answer *a = st == EBB_OK ? v.as.p : NULL;
    if (a != NULL) name = ebb_machines_kind(ebb_program_machines(s->x.p), a->kind)->name;
    lang_write(&out, name, strlen(name));
    if (a == NULL) return out;
    assert_int_equal(ebb_program_json(s->x.p, a->kind, a->payload, lang_write, &out), EBB_OK);
    ebb_value_discard(s->fw->host, v);
    return out;
}

static void assert_fate(stage *s, ebb_future *f, const char *expected) {
    lang_text got = fate(s, f);
    assert_string_equal(got.s, expected);
    free(got.s);
}

static void a_reply_is_read_as_json(void **state) {
    stage s;
    begin(&s, state);
    ebb_machine m = order(&s);
    char expected[400];
    (void)snprintf(
        expected, sizeof expected,
        "Paid{\"total\":12,\"by\":\"visa\\u0001\",\"raw\":\"00ff\",\"left\":90000,\"list\":[1,-2],"
        "\"map\":{\"a\":true},\"pairs\":[[7,\"x\"]],\"either\":{\"Note\":{\"text\":\"an\\\"n\\u000a\"}},"
        "\"other\":\"Plain\",\"order\":\"%u.1.1\"}",
        (unsigned)(m.id >> 56));
    assert_fate(&s, pay(&s, m, 5, "visa\1"), expected);
    assert_fate(&s, pay(&s, m, -5, ""), "Refused{}");
    end(&s);
}

static void what_is_no_request_is_refused(void **state) {
    stage s;
    begin(&s, state);
    ebb_machine m = order(&s);
    ebb_cx *cx = s.fw->host;
    const ebb_program_field ship[] = {{.name = "note", .bytes = "x", .n = 1}, {.name = "to", .u64 = m.id}};
    assert_fate(&s, ebb_program_ask(cx, s.x.p, m, "Nothing", NULL, 0, 0), "EBB_ERR_INVALID");
    assert_fate(&s, ebb_program_ask(cx, s.x.p, m, "Ship", ship, 2, 0), "EBB_ERR_INVALID");
    assert_fate(&s, ebb_program_ask(cx, s.x.p, m, "Pay", NULL, 0, 0), "EBB_ERR_INVALID");
    assert_fate(&s, pay(&s, m, 1, "\xff"), "EBB_ERR_INVALID"); /* no UTF-8 */
    assert_fate(&s, pay(&s, (ebb_machine){m.id + 1}, 1, "x"), "EBB_ERR_UNKNOWN_MACHINE");
    end(&s);
}

static void each_end_of_a_request_has_its_status(void **state) {
    stage s;
    begin(&s, state);
    ebb_machine m = order(&s), full = order(&s);
    ebb_program_event fault;
    assert_false(ebb_program_fault_of(s.x.p, m, &fault));
    ebb_future *late = ebb_program_ask(s.fw->host, s.x.p, m, "Wait", NULL, 0, 0);
    ebb_future *sooner = ebb_program_ask(s.fw->host, s.x.p, m, "Wait", NULL, 0, EBB_SECOND);
    future_pass(s.fw, EBB_SECOND);
    assert_int_equal(ebb_future_status_of(sooner), EBB_TIMEOUT);
    assert_int_equal(ebb_future_status_of(late), EBB_PENDING);
    future_pass(s.fw, 4 * EBB_SECOND);
    assert_fate(&s, sooner, "EBB_TIMEOUT");
    assert_fate(&s, late, "EBB_TIMEOUT");
    assert_fate(&s, ebb_program_ask(s.fw->host, s.x.p, m, "Break", NULL, 0, 0), "EBB_FAULTED");
    assert_true(ebb_program_fault_of(s.x.p, m, &fault));
    assert_string_equal(fault.code, "DIVIDE");
    assert_string_equal(fault.kind, "Break");
    assert_string_equal(fault.file, "shop.ebb");
    assert_int_equal(fault.line, 27);
    assert_fate(&s, pay(&s, m, 1, "x"), "EBB_ERR_NOT_RUNNING");
    for (int i = 0; i < 64; i++)
        ebb_future_drop(ebb_program_ask(s.fw->host, s.x.p, full, "Wait", NULL, 0, 0));
    assert_fate(&s, pay(&s, full, 1, "x"), "EBB_ERR_MAILBOX_FULL");
    end(&s);
}

static void a_machine_is_spawned_with_the_arguments_of_its_new(void **state) {
    stage s;
    begin(&s, state);
    const ebb_program_field other[] = {{.name = "who", .bytes = "x", .n = 1}, {.name = "m", .i64 = 1}};
    ebb_program_event fault;
    assert_ptr_equal(ebb_program_find(s.fw->host, "shop"), s.x.p);
    assert_null(ebb_program_find(s.fw->host, "ship"));
    assert_int_equal(ebb_id_status(ebb_program_spawn(s.x.p, "Nothing", NULL, 0).id), EBB_ERR_INVALID);
    assert_int_equal(ebb_id_status(ebb_program_spawn(s.x.p, "Order", NULL, 0).id), EBB_ERR_INVALID);
    assert_int_equal(ebb_id_status(ebb_program_spawn(s.x.p, "Order", other, 2).id), EBB_ERR_INVALID);
    assert_int_equal(ebb_id_status(spawn(&s, 0).id), EBB_ERR_TRAP);
    assert_string_equal(s.x.said.s, "! fault Order -: an assertion does not hold: n is too small\n");
    assert_true(ebb_program_fault_of(s.x.p, (ebb_machine){0}, &fault));
    assert_string_equal(fault.text, "n is too small");
    end(&s);
}

static void a_handle_is_that_of_a_machine_of_its_type(void **state) {
    stage s;
    begin(&s, state);
    ebb_machine m = order(&s), other = ebb_program_spawn(s.x.p, "Other", NULL, 0);
    ebb_program_field ship[] = {{.name = "note", .bytes = "to", .n = 2}, {.name = "to", .u64 = other.id}};
    assert_int_equal(ebb_program_send(s.x.p, m, "Ship", ship, 2), EBB_ERR_INVALID);
    ship[1].u64 = 7;
    assert_int_equal(ebb_program_send(s.x.p, m, "Ship", ship, 2), EBB_ERR_INVALID);
    ship[1].u64 = m.id;
    assert_int_equal(ebb_program_send(s.x.p, m, "Ship", ship, 2), EBB_OK);
    future_settle(s.fw);
    assert_string_equal(s.x.said.s, "to Order#1\n");
    end(&s);
}

/* Whatever could not be allocated, nothing is left over, and the next one is answered. */
static void a_failed_allocation_leaves_nothing(void **state) {
    stage s;
    begin(&s, state);
    ebb_machine m = order(&s);
    for (uint64_t n = 1, failed = 1; failed > 0; n++) {
        const uint64_t before = s.fw->memory->failures;
        s.fw->memory->fail_at = s.fw->memory->calls + n;
        ebb_machine made = spawn(&s, 1);
        lang_text got = fate(&s, pay(&s, m, 5, "visa"));
        failed = s.fw->memory->failures - before;
        s.fw->memory->fail_at = 0;
        bool answered = strncmp(got.s, "Paid{", 5) == 0;
        assert_true(answered || strcmp(got.s, "EBB_ERR_NOMEM") == 0 || strcmp(got.s, "EBB_FAULTED") == 0);
        if (strcmp(got.s, "EBB_FAULTED") == 0) m = order(&s);
        if (ebb_id_status(made.id) == EBB_OK)
            assert_int_equal(ebb_machine_stop(ebb_program_machines(s.x.p), made), EBB_OK);
        else assert_int_equal(ebb_id_status(made.id), EBB_ERR_NOMEM);
        free(got.s);
    }
    end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FUTURES(a_reply_is_read_as_json),
        IN_FUTURES(what_is_no_request_is_refused),
        IN_FUTURES(each_end_of_a_request_has_its_status),
        IN_FUTURES(a_machine_is_spawned_with_the_arguments_of_its_new),
        IN_FUTURES(a_handle_is_that_of_a_machine_of_its_type),
        IN_FUTURES(a_failed_allocation_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
