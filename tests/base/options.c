/* Options of other versions: for each struct of options and each function that takes it, every older size is accepted
 * with defaults for the rest, and a field of a newer version is refused. The blocks are exactly as long as the size
 * says, so that AddressSanitizer sees a read beyond it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ebb/ebb.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

typedef struct scene {
    uv_loop_t uv;
    ebb_loop *loop;
    ebb_cx *cx;
    ebb_region root;
    ebb_http_client *client;
} scene;

#define MEMORY                                                                                               \
    { ebb_libc_realloc, NULL }

static ebb_workflow_report report;
static const ebb_machine_state only = {.name = "Only"};

/* ---- each function that takes options ---------------------------------------------------------------------- */

static ebb_status ends(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return EBB_OK;
}

static ebb_runtime *runtime(void) {
    ebb_runtime *rt;
    assert_int_equal(ebb_runtime_new(&(ebb_runtime_opts){.allocator = MEMORY}, &rt), EBB_OK);
    return rt;
}

static ebb_status rt_new(scene *s, const void *opts) {
    ebb_runtime *rt;
    (void)s;
    ebb_status st = ebb_runtime_new(opts, &rt);
    ebb_runtime_free(rt);
    return st;
}

static ebb_status region_open(scene *s, const void *opts) {
    return ebb_id_status(ebb_region_open(s->cx, opts).id);
}

static ebb_status spawn(scene *s, const void *opts) {
    return ebb_id_status(ebb_spawn(s->cx, s->root, ends, NULL, opts).id);
}

static ebb_status fiber_spawn(scene *s, const void *opts) {
    return ebb_id_status(ebb_fiber_spawn(s->cx, s->root, ends, NULL, opts).id);
}

static ebb_future *attempt(ebb_cx *cx, uint32_t n, void *arg) {
    (void)n;
    (void)arg;
    return ebb_future_ready(cx, ebb_value_none());
}

static ebb_status retry(scene *s, const void *opts) {
    ebb_future *f = ebb_retry(s->cx, opts, attempt, NULL);
    ebb_status st = ebb_future_status_of(f);
    ebb_future_drop(f);
    return st == EBB_PENDING ? EBB_OK : st;
}

static ebb_status heap_setup(scene *s, const void *opts) {
    (void)s;
    ebb_runtime *rt = runtime();
    ebb_status st = ebb_heap_setup(rt, opts);
    ebb_runtime_free(rt);
    return st;
}

static ebb_status fiber_setup(scene *s, const void *opts) {
    (void)s;
    ebb_runtime *rt = runtime();
    ebb_status st = ebb_fiber_setup(rt, opts);
    ebb_runtime_free(rt);
    return st;
}

static ebb_status lab_run(scene *s, const void *opts) {
    (void)s;
    ebb_lab *lab = ebb_lab_new((ebb_allocator)MEMORY);
    ebb_lab_result result;
    ebb_lab_case c = {.scenario = ebb_lab_scenario_at(0), .seed = 1};
    ebb_status st = ebb_lab_run(lab, &c, opts, &result);
    ebb_lab_free(lab);
    return st;
}

static ebb_status lab_explore(scene *s, const void *opts) {
    (void)s;
    ebb_lab *lab = ebb_lab_new((ebb_allocator)MEMORY);
    ebb_lab_explore_result result;
    ebb_lab_case c = {.scenario = ebb_lab_scenario_at(0), .seed = 1};
    ebb_status st = ebb_lab_explore(lab, &c, opts, &result);
    ebb_lab_case_free(lab, &c);
    ebb_lab_free(lab);
    return st;
}

/* No scenario of ours has a network: what is left of valid options is EBB_ERR_INVALID. */
static ebb_status lab_inject(scene *s, const void *opts) {
    (void)s;
    ebb_lab *lab = ebb_lab_new((ebb_allocator)MEMORY);
    ebb_lab_inject_result result;
    ebb_lab_case c = {.scenario = ebb_lab_scenario_at(0), .seed = 1};
    ebb_status st = ebb_lab_inject(lab, &c, opts, &result);
    ebb_lab_free(lab);
    return st;
}

/* Opened and freed in a runtime of its own, which can have one. */
static ebb_status machines_open(scene *s, const void *opts) {
    (void)s;
    ebb_runtime *rt = runtime();
    ebb_machines *ms;
    ebb_status st = ebb_machines_open(ebb_runtime_host(rt), &ms, opts);
    ebb_runtime_free(rt);
    assert_int_equal(ebb_machines_free(ms), EBB_OK);
    return st;
}

static ebb_status lang_new(scene *s, const void *opts) {
    (void)s;
    ebb_lang *lang;
    ebb_status st = ebb_lang_new(opts, &lang);
    ebb_lang_free(lang);
    return st;
}

/* The type of a machine is a struct of options too: it is copied when the first machine of it is spawned. */
static ebb_status machine_spawn(scene *s, const void *type) {
    (void)s;
    ebb_runtime *rt = runtime();
    ebb_machines *ms;
    assert_int_equal(ebb_machines_open(ebb_runtime_host(rt), &ms, &(ebb_machines_opts){.n_kinds = 1}),
                     EBB_OK);
    ebb_status st = ebb_id_status(ebb_machine_spawn(ms, type, 0, NULL).id);
    ebb_runtime_free(rt);
    assert_int_equal(ebb_machines_free(ms), EBB_OK);
    return st;
}

static ebb_status program_new(scene *s, const void *opts) {
    static const char text[] = "fn main() {}\n";
    ebb_lang *lang;
    ebb_program *p = NULL;
    (void)s;
    assert_int_equal(ebb_lang_new(&(ebb_lang_opts){.allocator = MEMORY}, &lang), EBB_OK);
    assert_int_equal(ebb_lang_compile(lang, "main.ebb", text, sizeof text - 1), EBB_OK);
    ebb_status st = ebb_program_new(lang, opts, &p);
    if (st == EBB_OK) assert_int_equal(ebb_program_free(p), EBB_OK);
    ebb_lang_free(lang);
    return st;
}

static void leave(uv_loop_t *uv, ebb_loop *l) {
    ebb_cx *cx = ebb_loop_cx(l);
    ebb_region root = ebb_runtime_root(ebb_loop_runtime(l));
    ebb_region_state state;
    ebb_region_cancel(cx, root, EBB_CANCEL_USER, "the test is over");
    while (ebb_region_state_of(cx, root, &state) == EBB_OK && state != EBB_REGION_CLOSED) {
        (void)ebb_loop_cx(l);
        uv_run(uv, UV_RUN_ONCE);
    }
    uv_run(uv, UV_RUN_DEFAULT);
    assert_int_equal(ebb_loop_close(l, NULL, 0, NULL), EBB_OK);
    uv_run(uv, UV_RUN_DEFAULT);
}

static ebb_status attach(scene *s, const void *opts) {
    uv_loop_t uv;
    ebb_loop *l;
    (void)s;
    assert_int_equal(uv_loop_init(&uv), 0);
    ebb_status st = ebb_loop_attach(&uv, opts, &l);
    if (st == EBB_OK) leave(&uv, l);
    assert_int_equal(uv_loop_close(&uv), 0);
    return st;
}

static ebb_status loop_new(scene *s, const void *opts) {
    ebb_loop *l;
    (void)s;
    ebb_status st = ebb_loop_new(opts, ends, NULL, &l);
    return st == EBB_OK ? ebb_loop_join(l) : st;
}

static ebb_status process_spawn(scene *s, const void *opts) {
    return ebb_id_status(ebb_process_spawn(s->cx, NULL, opts).id);
}

static ebb_status workflow_open(scene *s, const void *opts) {
    return ebb_id_status(ebb_workflow_open(s->cx, opts).id);
}

/* Without the report there is only the exit. */
static ebb_status service_run(scene *s, const void *opts) {
    (void)s;
    report = (ebb_workflow_report){.status = EBB_PENDING};
    int code = ebb_service_run(opts, ends, NULL);
    return report.status == EBB_ERR_VERSION ? EBB_ERR_VERSION : (ebb_status)code;
}

static ebb_status listen_with(scene *s, const void *opts) {
    ebb_http_server *server;
    ebb_status st = ebb_http_listen(s->cx, opts, &server);
    if (st == EBB_OK) ebb_region_cancel(s->cx, ebb_http_server_region(server), EBB_CANCEL_USER, "");
    return st;
}

static ebb_status tls_server(scene *s, const void *opts) {
    return listen_with(s, &(ebb_http_server_opts){.address = {"127.0.0.1", 0}, .tls = opts});
}

static ebb_status client_new(scene *s, const void *opts) {
    ebb_http_client *client;
    return ebb_http_client_new(s->cx, opts, &client);
}

static ebb_status drop(ebb_future *f) {
    ebb_status st = ebb_future_status_of(f);
    ebb_future_drop(f);
    return st;
}

static ebb_status fetch(scene *s, const void *opts) {
    return drop(ebb_http_fetch(s->cx, s->client, opts));
}

static ebb_status open_call(scene *s, const void *opts) {
    return drop(ebb_http_open(s->cx, s->client, opts));
}

/* ---- the cases --------------------------------------------------------------------------------------------- */

typedef struct option_case {
    const char *name;
    size_t size, align;
    size_t first; /* its size in 0.1, where pointers have 64 bits */
    ebb_status (*call)(scene *s, const void *opts);
    const void *valid;
} option_case;

#define CASE(type, first, call, ...)                                                                         \
    {                                                                                                        \
#type " of " #call, sizeof(type), _Alignof(type), first, call, &(const type) {                       \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

static const option_case cases[] = {
    CASE(ebb_runtime_opts, 144, rt_new, .allocator = MEMORY, .chain_bytes = 100),
    CASE(ebb_region_opts, 56, region_open, .policy = EBB_FAIL_COLLECT),
    CASE(ebb_task_opts, 24, spawn, .polls = 5),
    CASE(ebb_task_opts, 24, fiber_spawn, .polls = 5),
    CASE(ebb_retry_opts, 32, retry, .attempts = 2, .pause = EBB_MS),
    CASE(ebb_heap_opts, 56, heap_setup, .max_bytes = 1 << 22),
    CASE(ebb_fiber_opts, 12, fiber_setup, .stack_bytes = EBB_FIBER_STACK_LEAST, .max = 3),
    CASE(ebb_lab_opts, 48, lab_run, .max_steps = 10000),
    CASE(ebb_lab_explore_opts, 40, lab_explore, .schedules = 2),
    CASE(ebb_lab_inject_opts, 40, lab_inject, .every = 2),
    CASE(ebb_machines_opts, 72, machines_open, .n_kinds = 3, .max_machines = 5),
    CASE(ebb_machine_type, 56, machine_spawn, .states = &only, .n_states = 1, .mailbox = 3),
    CASE(ebb_program_opts, 56, program_new, .allocator = MEMORY, .ctx = &report),
    CASE(ebb_lang_opts, 40, lang_new, .allocator = MEMORY, .max_errors = 3),
    CASE(ebb_loop_opts, 168, attach, .runtime.allocator = MEMORY, .polls = 9),
    CASE(ebb_loop_opts, 168, loop_new, .runtime.allocator = MEMORY, .polls = 9),
    CASE(ebb_process_opts, 64, process_spawn, .file = "true", .grace = EBB_SECOND),
    CASE(ebb_workflow_opts, 96, workflow_open, .type = &ebb_workflow_publish_abort, .budget = EBB_SECOND),
    CASE(ebb_service_opts, 304, service_run, .loop.runtime.allocator = MEMORY, .report = &report),
    CASE(ebb_http_server_opts, 208, listen_with, .address = {"127.0.0.1", 0}, .limits.headers = 9),
    CASE(ebb_tls_opts, 32, tls_server, .cert_file = "/nowhere/cert.pem", .key_file = "/nowhere/key.pem"),
    CASE(ebb_http_client_opts, 80, client_new, .connections = 2),
    CASE(ebb_http_call, 80, fetch, .url = "http://127.0.0.1:1/", .redirects = 1),
    CASE(ebb_http_call, 80, open_call, .url = "http://127.0.0.1:1/", .redirects = 1),
};
enum { CASES = sizeof cases / sizeof *cases };

/* Calls it with `n` bytes of the valid options, then `room - n` times `rest`. */
static ebb_status call(scene *s, const option_case *c, size_t n, size_t room, int rest, size_t size) {
    unsigned char *block = malloc(room);
    uint32_t said = (uint32_t)size;
    assert_non_null(block);
    memset(block, rest, room);
    memcpy(block, c->valid, n);
    memcpy(block, &said, sizeof said);
    s->cx = ebb_loop_cx(s->loop);
    ebb_status st = c->call(s, block);
    free(block);
    return st;
}

static void check(const option_case *c, size_t size, ebb_status found, ebb_status wanted) {
    if (found != wanted) fail_msg("%s, size %zu: %d, and not %d", c->name, size, (int)found, (int)wanted);
}

static void older_options_have_defaults_for_the_rest(void **state) {
    for (int i = 0; i < CASES; i++) {
        const option_case *c = &cases[i];
        for (size_t n = c->align; n <= c->size; n += c->align) {
            ebb_status wanted = call(*state, c, n, c->size, 0, 0);
            assert_int_not_equal(wanted, EBB_ERR_VERSION);
            check(c, n, call(*state, c, n, n, 0, n), wanted);
            check(c, n, call(*state, c, n, c->size + 64, 0xff, n), wanted);
        }
    }
}

static void those_of_the_first_version_are_accepted(void **state) {
    for (int i = 0; i < CASES; i++) {
        const option_case *c = &cases[i];
        assert_true(sizeof(void *) != 8 || c->first <= c->size);
        ebb_status wanted = call(*state, c, c->size, c->size, 0, 0);
        check(c, c->first, call(*state, c, c->first, c->first, 0, c->first), wanted);
    }
}

static void newer_options_are_accepted_if_they_set_nothing_new(void **state) {
    for (int i = 0; i < CASES; i++) {
        const option_case *c = &cases[i];
        ebb_status wanted = call(*state, c, c->size, c->size, 0, 0);
        check(c, c->size + 8, call(*state, c, c->size, c->size + 8, 0, c->size + 8), wanted);
        check(c, 4096 / c->align * c->align, call(*state, c, c->size, 4096, 0, 4096 / c->align * c->align),
              wanted);
    }
}

static ebb_status with_byte(scene *s, const option_case *c, size_t at, size_t room) {
    unsigned char *block = calloc(1, room);
    uint32_t said = (uint32_t)room;
    memcpy(block, c->valid, c->size);
    memcpy(block, &said, sizeof said);
    block[at] = 1;
    s->cx = ebb_loop_cx(s->loop);
    ebb_status st = c->call(s, block);
    free(block);
    return st;
}

static void a_field_that_is_not_known_is_refused(void **state) {
    for (int i = 0; i < CASES; i++) {
        const option_case *c = &cases[i];
        for (size_t at = c->size; at < c->size + 24; at++) {
            check(c, at, with_byte(*state, c, at, c->size + 24), EBB_ERR_VERSION);
        }
    }
}

/* Nothing of them is believed: a service tells nobody. */
static void sizes_that_no_version_has_are_refused(void **state) {
    for (int i = 0; i < CASES; i++) {
        const option_case *c = &cases[i];
        const size_t bad[] = {1, 2, 3, c->align + 1, c->size - 1, c->size + 1, 4096 + 8, UINT32_MAX - 7};
        ebb_status wanted = c->call == service_run ? (ebb_status)EBB_SERVICE_FAILED : EBB_ERR_VERSION;
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            check(c, bad[k], call(*state, c, c->size, c->size, 0, bad[k]), wanted);
        }
    }
}

/* ---- structs inside of structs ------------------------------------------------------------------------------- */

static void options_inside_of_options_may_be_older(void **state) {
    scene *s = *state;
    ebb_loop_opts loop = {
        .runtime = {.size = 24, .allocator = MEMORY, .runtime_id = 1, .max_regions = UINT32_MAX}};
    assert_int_equal(attach(s, &loop), EBB_OK); /* its id is beyond the size, and so 0: any */
    ebb_http_client_opts client = {.tls = {.size = 8, .ca_file = "/nowhere/ca.pem"}};
    assert_int_equal(client_new(s, &client), EBB_OK);
    ebb_service_opts service = {.loop = {.size = 32, .runtime = {.allocator = MEMORY}, .polls = 1},
                                .shutdown = {.size = 16, .budget = EBB_FOREVER},
                                .report = &report};
    assert_int_equal(service_run(s, &service), EBB_SERVICE_OK);
}

static void options_inside_of_options_are_not_newer(void **state) {
    scene *s = *state;
    ebb_loop_opts loop = {.runtime = {.size = sizeof(ebb_runtime_opts) + 8, .allocator = MEMORY}};
    assert_int_equal(attach(s, &loop), EBB_ERR_VERSION);
    assert_int_equal(loop_new(s, &loop), EBB_ERR_VERSION);
    ebb_http_client_opts client = {.tls.size = sizeof(ebb_tls_opts) + 8};
    assert_int_equal(client_new(s, &client), EBB_ERR_VERSION);
    ebb_service_opts service = {
        .loop.runtime.allocator = MEMORY, .shutdown.size = sizeof(ebb_workflow_opts) + 8, .report = &report};
    assert_int_equal(service_run(s, &service), EBB_ERR_VERSION);
    service.shutdown.size = 0;
    service.loop.size = sizeof(ebb_loop_opts) + 8;
    assert_int_equal(service_run(s, &service), EBB_ERR_VERSION);
    service.loop.size = 0;
    service.loop.runtime.size = sizeof(ebb_runtime_opts) + 8;
    assert_int_equal(service_run(s, &service), EBB_ERR_VERSION);
    ebb_heap_opts heap = {.size = 3};
    loop = (ebb_loop_opts){.runtime.allocator = MEMORY, .heap = &heap};
    assert_int_equal(attach(s, &loop), EBB_ERR_VERSION);
}

/* ------------------------------------------------------------------------------------------------------------- */

static int up(void **state) {
    scene *s = calloc(1, sizeof *s);
    ebb_loop_opts opts = {.runtime.allocator = MEMORY};
    assert_non_null(s);
    assert_int_equal(uv_loop_init(&s->uv), 0);
    assert_int_equal(ebb_loop_attach(&s->uv, &opts, &s->loop), EBB_OK);
    s->cx = ebb_loop_cx(s->loop);
    s->root = ebb_runtime_root(ebb_loop_runtime(s->loop));
    assert_int_equal(ebb_http_client_new(s->cx, NULL, &s->client), EBB_OK);
    *state = s;
    return 0;
}

static int down(void **state) {
    scene *s = *state;
    leave(&s->uv, s->loop);
    assert_int_equal(uv_loop_close(&s->uv), 0);
    free(s);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(older_options_have_defaults_for_the_rest),
        TEST(those_of_the_first_version_are_accepted),
        TEST(newer_options_are_accepted_if_they_set_nothing_new),
        TEST(a_field_that_is_not_known_is_refused),
        TEST(sizes_that_no_version_has_are_refused),
        TEST(options_inside_of_options_may_be_older),
        TEST(options_inside_of_options_are_not_newer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
