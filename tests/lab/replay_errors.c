/* A journal that is damaged, not whole, or not what happened: an error that says which operation, what
 * was expected and what was found; never a crash. */
#include "tests/support/replay_run.h"

#include "lab/replay.h"

enum { RECORDS_MAX = 20000 };

/* ---- journals to damage ------------------------------------------------------------------------- */

static ebb_status naps(ebb_cx *cx, void *state) {
    return ebb_sleep(cx, state, 5 * EBB_MS);
}

static void nothing(void *arg) {
    (void)arg;
}

/* One of nearly everything, in few records. */
static bytes small_journal(void) {
    run r = record(NULL);
    ebb_sleeper nap = {.due = 0};
    ebb_region region = ebb_region_open(r.host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    ebb_task kept = ebb_spawn(r.host, region, ends_at_once, NULL, &(ebb_task_opts){.keep = true});
    (void)ebb_spawn(r.host, region, naps, &nap);
    (void)ebb_region_defer(r.host, region, ends_at_once, NULL);
    ebb_obligation o = ebb_region_reserve(r.host, region, EBB_OBLIGATION_ACK, nothing, NULL);
    at_pump(&r, 1);
    (void)ebb_task_join(r.host, kept);
    (void)ebb_obligation_abort(r.host, o);
    ebb_region_cancel(r.host, region, EBB_CANCEL_USER, "enough");
    at_pump(&r, 2);
    (void)ebb_region_join(r.host, region);
    stop(&r);
    free(r.trace.p);
    return r.journal;
}

typedef struct records {
    ebb_record r[RECORDS_MAX];
    size_t n;
} records;

static void read_records(const bytes *file, records *out) {
    ebb_trace_reader in;
    ebb_event ev;
    out->n = 0;
    assert_int_equal(ebb_trace_reader_open(&in, file->p, file->n), EBB_OK);
    while (ebb_trace_reader_next(&in, &ev) == EBB_OK) {
        assert_true(out->n < RECORDS_MAX);
        out->r[out->n++] = ebb_event_record(&ev);
    }
}

static bytes write_records(const records *in) {
    static ebb_trace_writer w;
    bytes file = {NULL, 0, 0};
    ebb_trace_writer_begin(&w, true, 3, bytes_add, &file);
    for (size_t i = 0; i < in->n; i++) ebb_trace_writer_put(&w, &in->r[i]);
    ebb_trace_writer_end(&w);
    return file;
}

static ebb_status replay(const bytes *journal, ebb_journal_replay_result *out) {
    bytes trace = {NULL, 0, 0};
    ebb_status st = ebb_journal_replay(ebb_libc_allocator(), journal->p, journal->n, bytes_add, &trace, out);
    assert_non_null(memchr(out->message, 0, sizeof out->message));
    assert_true((st == EBB_OK) == (out->message[0] == 0));
    ebb_trace_reader in; /* what was written before the error is a trace too */
    if (trace.n > 0) assert_int_equal(ebb_trace_reader_open(&in, trace.p, trace.n), EBB_OK);
    free(trace.p);
    return st;
}

static ebb_record *nth(records *all, uint8_t type, size_t n) {
    for (size_t i = 0; i < all->n; i++) {
        if (all->r[i].type == type && n-- == 0) return &all->r[i];
    }
    fail_msg("there is no such record");
    return NULL;
}

static void assert_says(const records *all, ebb_status st, const char *a, const char *b) {
    ebb_journal_replay_result result;
    bytes file = write_records(all);
    assert_int_equal(replay(&file, &result), st);
    if (strstr(result.message, a) == NULL || strstr(result.message, b) == NULL) {
        fail_msg("'%s' has no '%s' or no '%s'", result.message, a, b);
    }
    free(file.p);
}

/* ---- one record changed ------------------------------------------------------------------------- */

static records *fixture(void) {
    static records all;
    bytes file = small_journal();
    read_records(&file, &all);
    free(file.p);
    return &all;
}

static void an_id_that_is_not_the_same_diverges(void **state) {
    (void)state;
    records *all = fixture();
    nth(all, J_SPAWN, 1)->other += (uint64_t)1 << 32;
    assert_says(all, EBB_ERR_DIVERGED, "operation 8 (spawn)", "expected 3.3.1, found 3.2.1");
}

static void a_result_that_is_not_the_same_diverges(void **state) {
    (void)state;
    records *all = fixture();
    nth(all, J_TASK_JOIN, 0)->value = (uint32_t)EBB_FAILED;
    assert_says(all, EBB_ERR_DIVERGED, "(task_join)", "expected EBB_FAILED, found EBB_OK");
}

static void a_refusal_that_does_not_come_diverges(void **state) {
    (void)state;
    records *all = fixture();
    nth(all, J_OPEN, 0)->other = (uint64_t)3 << 56 | (uint64_t)14 << 32;
    assert_says(all, EBB_ERR_DIVERGED, "(region_open)", "expected EBB_ERR_CLOSED, found 3.2.1");
}

static void another_task_that_is_polled_diverges(void **state) {
    (void)state;
    records *all = fixture();
    nth(all, J_CALL, 0)->task += (uint64_t)7 << 32;
    assert_says(all, EBB_ERR_DIVERGED, "expected a call of the poll of task 3.8.1",
                "found a call of the poll of task 3.1.1");
}

static void another_obligation_whose_hook_runs_diverges(void **state) {
    (void)state;
    records *all = fixture();
    for (size_t i = 0; i < all->n; i++) {
        if (all->r[i].type == J_CALL && all->r[i].value == EBB__CALL_ABORT) all->r[i].other += 1;
    }
    assert_says(all, EBB_ERR_DIVERGED, "expected a call of the abort hook 3.2.2",
                "found a call of the abort hook 3.2.1");
}

static void a_task_that_is_not_polled_can_wait_for_nothing(void **state) {
    (void)state;
    records *all = fixture();
    ebb_record *at = nth(all, J_TASK_JOIN, 0); /* between two pumps; then ABORT */
    at[0] = (ebb_record){.type = J_ASKER, .task = nth(all, J_SPAWN, 1)->other};
    at[1] = (ebb_record){.type = J_WAIT_BEGIN, .value = 2};
    assert_says(all, EBB_ERR_INVALID, "(wait_begin)", "not being polled");
    at[1] = (ebb_record){.type = J_MASK};
    at[0].task += 1;
    assert_says(all, EBB_ERR_DIVERGED, "(mask)", "is alive");
    at[0] = (ebb_record){.type = J_ADVANCE, .phase = 1};
    assert_says(all, EBB_ERR_DIVERGED, "(mask)", "expected a task that is being polled, found none");
    at[1] = (ebb_record){.type = J_WAIT_BEGIN, .phase = 1, .value = 2};
    assert_says(all, EBB_ERR_DIVERGED, "(wait_begin)", "found the host");
    at[1] = (ebb_record){.type = J_WAIT_END, .phase = 1, .value = 2};
    assert_says(all, EBB_ERR_DIVERGED, "(wait_end)", "found none");
}

static void a_poll_that_ends_instead_of_waiting_diverges_later(void **state) {
    (void)state;
    records *all = fixture();
    nth(all, J_RETURN, 1)->value = 0;
    assert_says(all, EBB_ERR_DIVERGED, "operation ", "expected ");
}

static void an_operation_that_is_missing_diverges(void **state) {
    (void)state;
    records *all = fixture();
    ebb_record *pump = nth(all, J_PUMP, 0);
    memmove(pump, pump + 1, (size_t)(&all->r[all->n] - pump - 1) * sizeof *pump);
    all->n--;
    assert_says(all, EBB_ERR_DIVERGED, "(call)", "found no such operation");
}

static void a_pump_that_polls_less_leaves_calls_over(void **state) {
    (void)state;
    records *all = fixture();
    nth(all, J_PUMP, 0)->value = 1;
    assert_says(all, EBB_ERR_DIVERGED, "(call)", "found no such operation");
}

static void another_choice_diverges(void **state) {
    (void)state;
    records *all = fixture();
    *nth(all, J_CALL, 0) = (ebb_record){.type = J_CHOICE, .other = 7};
    assert_says(all, EBB_ERR_DIVERGED, "(choice)", "expected one of 7 tasks, found one of 2");
}

/* Whatever one record is changed to, the replay ends: with the same run, or with an error. */
static void any_record_may_be_anything(void **state) {
    (void)state;
    records *all = fixture();
    size_t ended[2] = {0, 0};
    for (size_t i = 0; i < all->n; i++) {
        ebb_record was = all->r[i];
        for (unsigned how = 0; how < 400; how++) {
            uint64_t h = (i * 400 + how) * 0x9e3779b97f4a7c15u;
            uint8_t *byte = (uint8_t *)&all->r[i];
            byte[h >> 59] = (uint8_t)(h >> 40);
            if (how % 4 == 0) all->r[i].type = (uint8_t)(how / 4 % (J_END + 1));
            if (all->r[i].type == EBB_EV_GAP) all->r[i].other = 1;
            bytes file = write_records(all);
            ebb_journal_replay_result result;
            ended[replay(&file, &result) == EBB_OK]++;
            free(file.p);
            all->r[i] = was;
        }
    }
    assert_true(ended[0] > 1000 && ended[1] > 100);
}

/* ---- not whole ---------------------------------------------------------------------------------- */

static void every_flipped_byte_is_an_error(void **state) {
    (void)state;
    bytes file = small_journal();
    ebb_journal_replay_result result;
    assert_int_equal(replay(&file, &result), EBB_OK);
    for (size_t i = 0; i < file.n; i++) {
        for (int bit = 0; bit < 8; bit++) {
            file.p[i] ^= (uint8_t)(1 << bit);
            assert_true(replay(&file, &result) < 0);
            assert_non_null(strstr(result.message, "offset "));
            file.p[i] ^= (uint8_t)(1 << bit);
        }
    }
    free(file.p);
}

static void a_journal_that_is_cut_is_an_error(void **state) {
    (void)state;
    bytes file = small_journal();
    size_t whole = file.n;
    ebb_journal_replay_result result;
    for (file.n = 0; file.n < whole; file.n++) assert_true(replay(&file, &result) < 0);
    free(file.p);
    records *all = fixture();
    for (size_t n = all->n - 1; n > 0; n--) {
        uint8_t last = all->r[n - 1].type;
        all->n = n;
        bytes cut = write_records(all);
        ebb_status st = replay(&cut, &result);
        /* Between operations of the host it is the journal of a shorter run; inside a call it is not. */
        assert_true(st == EBB_OK || st == EBB_ERR_TRUNCATED || st == EBB_ERR_DIVERGED);
        if (n < 5 || last == J_CALL) assert_int_equal(st, EBB_ERR_TRUNCATED);
        if (last == J_CALL) assert_non_null(strstr(result.message, "the journal ends inside a call of the "));
        free(cut.p);
    }
}

static void a_gap_is_an_error(void **state) {
    (void)state;
    records *all = fixture();
    *nth(all, J_ADVANCE, 0) = (ebb_record){.type = EBB_EV_GAP, .other = 12};
    assert_says(all, EBB_ERR_INVALID, "after operation ", "expected no gap");
}

static void what_a_full_buffer_lost_at_the_end_is_known(void **state) {
    (void)state;
    run r = {.rt = NULL};
    ebb_runtime_opts opts = {.allocator = ebb_libc_allocator(), .runtime_id = 3};
    assert_int_equal(ebb_runtime_new(&opts, &r.rt), EBB_OK);
    assert_int_equal(ebb_journal_start(r.rt, 1), EBB_OK);
    for (uint32_t i = 0; i < 2 * EBB__BLOCK_RECORDS; i++)
        ebb_runtime_advance(r.rt, i); /* five more than fit */
    ebb_journal_take(r.rt, true, bytes_add, &r.journal);
    assert_int_equal(count(&r.journal, J_ADVANCE), 2 * EBB__BLOCK_RECORDS - 5);
    assert_int_equal(count(&r.journal, EBB_EV_GAP), 1);
    ebb_journal_replay_result result;
    assert_int_equal(replay(&r.journal, &result), EBB_ERR_INVALID);
    ebb_runtime_free(r.rt);
    forget(&r);
}

static void a_trace_is_not_a_journal(void **state) {
    (void)state;
    run r = record(NULL);
    stop(&r);
    ebb_journal_replay_result result;
    assert_int_equal(replay(&r.trace, &result), EBB_ERR_FORMAT);
    assert_non_null(strstr(result.message, "not of a trace"));
    assert_int_equal(result.operations, 0);
    forget(&r);
}

static void a_journal_that_was_not_started_first_is_an_error(void **state) {
    (void)state;
    run r = {.rt = NULL};
    ebb_runtime_opts opts = {.allocator = ebb_libc_allocator()};
    assert_int_equal(ebb_runtime_new(&opts, &r.rt), EBB_OK);
    (void)ebb_region_open(ebb_runtime_host(r.rt), NULL);
    assert_int_equal(ebb_journal_start(r.rt, 1 << 16), EBB_OK);
    ebb_journal_take(r.rt, true, bytes_add, &r.journal);
    ebb_journal_replay_result result;
    assert_int_equal(replay(&r.journal, &result), EBB_ERR_INVALID);
    assert_non_null(strstr(result.message, "was used before"));
    ebb_runtime_free(r.rt);
    forget(&r);
}

static void a_journal_without_its_options_is_an_error(void **state) {
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        records *all = fixture();
        all->r[i].type = J_TURN;
        assert_says(all, EBB_ERR_INVALID, i == 0 ? "(start)" : i == 1 ? "(limits)" : "(cleanup)", "missing");
    }
}

/* ---- limits ------------------------------------------------------------------------------------- */

typedef struct link {
    run *r;
    ebb_obligation next;
} link;

static void aborts_the_next(void *arg) {
    link *l = arg;
    if (l->next.id != 0) (void)ebb_obligation_abort(l->r->host, l->next);
}

static ebb_status nested_aborts(size_t n, ebb_journal_replay_result *result) {
    run r = record(NULL);
    link *links = calloc(n, sizeof *links);
    assert_non_null(links);
    ebb_obligation last = {0};
    for (size_t i = 0; i < n; i++) {
        links[i] = (link){&r, last};
        last = ebb_obligation_reserve(r.host, EBB_OBLIGATION_FENCE, aborts_the_next, &links[i]);
    }
    (void)ebb_obligation_abort(r.host, last);
    stop(&r);
    ebb_status st = replay(&r.journal, result);
    free(links);
    forget(&r);
    return st;
}

static void calls_nest_to_their_limit(void **state) {
    (void)state;
    ebb_journal_replay_result result;
    assert_int_equal(nested_aborts(EBB__REPLAY_DEPTH, &result), EBB_OK);
    assert_int_equal(nested_aborts(EBB__REPLAY_DEPTH + 1, &result), EBB_ERR_LIMIT);
    assert_non_null(strstr(result.message, "deeper than 200"));
}

static void no_memory_for_the_replay_is_said_and_leaves_nothing(void **state) {
    (void)state;
    bytes trace = {NULL, 0, 0}, journal = {NULL, 0, 0};
    program_opts o = {.src = {.seed = 5}, .max_ops = 300, .allocator = ebb_libc_allocator()};
    assert_true(run_program(&o, &trace, &journal));
    ebb_failing f = {.inner = ebb_libc_allocator()};
    ebb_journal_replay_result result;
    assert_int_equal(ebb_journal_replay(ebb_failing_allocator(&f), journal.p, journal.n, NULL, NULL, &result),
                     EBB_OK);
    uint64_t calls = f.calls;
    assert_true(calls > 20);
    for (uint64_t i = 1; i <= calls; i++) {
        f = (ebb_failing){.inner = ebb_libc_allocator(), .fail_at = i};
        ebb_status st =
            ebb_journal_replay(ebb_failing_allocator(&f), journal.p, journal.n, NULL, NULL, &result);
        assert_int_equal(st, EBB_ERR_NOMEM);
        assert_non_null(strstr(result.message, "no memory"));
        assert_int_equal(f.live, 0);
    }
    free(trace.p);
    free(journal.p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_that_is_not_the_same_diverges),
        cmocka_unit_test(a_result_that_is_not_the_same_diverges),
        cmocka_unit_test(a_refusal_that_does_not_come_diverges),
        cmocka_unit_test(another_task_that_is_polled_diverges),
        cmocka_unit_test(another_obligation_whose_hook_runs_diverges),
        cmocka_unit_test(a_task_that_is_not_polled_can_wait_for_nothing),
        cmocka_unit_test(a_poll_that_ends_instead_of_waiting_diverges_later),
        cmocka_unit_test(an_operation_that_is_missing_diverges),
        cmocka_unit_test(a_pump_that_polls_less_leaves_calls_over),
        cmocka_unit_test(another_choice_diverges),
        cmocka_unit_test(any_record_may_be_anything),
        cmocka_unit_test(every_flipped_byte_is_an_error),
        cmocka_unit_test(a_journal_that_is_cut_is_an_error),
        cmocka_unit_test(a_gap_is_an_error),
        cmocka_unit_test(what_a_full_buffer_lost_at_the_end_is_known),
        cmocka_unit_test(a_trace_is_not_a_journal),
        cmocka_unit_test(a_journal_that_was_not_started_first_is_an_error),
        cmocka_unit_test(a_journal_without_its_options_is_an_error),
        cmocka_unit_test(calls_nest_to_their_limit),
        cmocka_unit_test(no_memory_for_the_replay_is_said_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
