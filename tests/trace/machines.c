/* The rules of machines: a trace that keeps them passes, and each doctored one fails by the name of its rule. */
#include "tests/support/trace_build.h"

enum { A_MESSAGE = 1u << 16, A_REQUEST = 2u << 16, A_REPLY = 3u << 16 };
#define A ID(1, 1)
#define B ID(2, 1)
#define Q ID(1, 3) /* a request */

/* A asks B, B defers a message and recalls it when its state changes, A faults. */
static void tell(story *s) {
    s->n = 0;
    SAY(s, EBB_EV_TURN, .task = 1, .region = 1);
    SAY(s, EBB_EV_MACHINE_SPAWNED, .task = A, .value = 0, .other = 1);
    SAY(s, EBB_EV_MACHINE_SPAWNED, .task = B, .value = 0, .other = 1);
    SAY(s, EBB_EV_MACHINE_STARTED, .task = A);
    SAY(s, EBB_EV_MACHINE_QUEUED, .task = A, .other = 1, .value = A_MESSAGE | 1);
    SAY(s, EBB_EV_MACHINE_QUEUED, .task = B, .other = 2, .value = A_MESSAGE | 2);
    SAY(s, EBB_EV_MACHINE_STARTED, .task = B);
    SAY(s, EBB_EV_MACHINE_COMMITTED, .task = A, .other = 1, .region = 1, .value = 0);
    SAY(s, EBB_EV_MACHINE_REQUESTED, .task = A, .region = B, .other = Q, .value = 3);
    SAY(s, EBB_EV_MACHINE_QUEUED, .task = B, .region = A, .other = 3, .value = A_REQUEST | 3);
    SAY(s, EBB_EV_MACHINE_DEFERRED, .task = B, .other = 2);
    SAY(s, EBB_EV_MACHINE_COMMITTED, .task = B, .other = 3, .region = 1, .value = 0u << 16 | 1);
    SAY(s, EBB_EV_MACHINE_REQUEST_ENDED, .task = A, .other = Q, .value = 0);
    SAY(s, EBB_EV_MACHINE_QUEUED, .task = A, .region = B, .other = 4, .value = A_REPLY | 4);
    SAY(s, EBB_EV_MACHINE_ROLLED_BACK, .task = A, .other = 4, .value = (uint32_t)EBB_FAILED);
    SAY(s, EBB_EV_MACHINE_FAULTED, .task = A);
    SAY(s, EBB_EV_MACHINE_COMMITTED, .task = B, .other = 2, .value = 1u << 16 | 1);
    SAY(s, EBB_EV_MACHINE_STOPPED, .task = B, .value = 1);
    SAY(s, EBB_EV_MACHINE_STOPPED, .task = A);
}

typedef struct verdict {
    ebb_status status;
    ebb_oracle oracle;
    char text[160];
} verdict;

static verdict judge(const story *s, ebb_allocator a) {
    verdict v = {.status = EBB_ERR_NOMEM};
    ebb_checker *c = ebb_checker_new(a);
    if (c == NULL) return v;
    v.status = EBB_OK;
    for (size_t i = 0; i < s->n && v.status == EBB_OK; i++) {
        const ebb_record *r = &s->r[i];
        ebb_event ev = {.type = r->type,
                        .decision_seq = i + 1,
                        .host_turn_id = 1,
                        .microtask_batch_id = 1,
                        .task_id = r->task,
                        .region_id = r->region,
                        .other = r->other,
                        .value = r->value};
        v.status = ebb_checker_event(c, &ev);
    }
    if (v.status == EBB_OK) v.status = ebb_checker_end(c, true);
    const ebb_violation *found = ebb_checker_violation(c);
    if (found != NULL) {
        v.oracle = found->oracle;
        memcpy(v.text, found->text, sizeof v.text);
    }
    ebb_checker_free(c);
    return v;
}

static void overtakes(story *s) {
    nth(s, EBB_EV_MACHINE_COMMITTED, 1)->other = 2; /* the deferred one, before its state changes */
}
static void skips_one(story *s) {
    drop(s, EBB_EV_MACHINE_DEFERRED, 0);
}
static void numbers_go_back(story *s) {
    nth(s, EBB_EV_MACHINE_QUEUED, 2)->other = 1;
}
static void from_another_mailbox(story *s) {
    nth(s, EBB_EV_MACHINE_COMMITTED, 0)->other = 2;
}
static void not_recalled(story *s) {
    nth(s, EBB_EV_MACHINE_COMMITTED, 1)->value = 0;
    nth(s, EBB_EV_MACHINE_COMMITTED, 2)->value = 0;
}
static void commits_twice(story *s) {
    insert_at(s, where(s, EBB_EV_MACHINE_COMMITTED, 2), *nth(s, EBB_EV_MACHINE_COMMITTED, 1));
}
static void commits_and_rolls_back(story *s) {
    ebb_record r = *nth(s, EBB_EV_MACHINE_ROLLED_BACK, 0);
    r.type = EBB_EV_MACHINE_COMMITTED;
    r.value = 0;
    insert_at(s, where(s, EBB_EV_MACHINE_ROLLED_BACK, 0), r);
}
static void state_jumps(story *s) {
    nth(s, EBB_EV_MACHINE_COMMITTED, 2)->value = 2u << 16 | 1;
}
static void ends_twice(story *s) {
    insert_at(s, where(s, EBB_EV_MACHINE_REQUEST_ENDED, 0), *nth(s, EBB_EV_MACHINE_REQUEST_ENDED, 0));
}
static void never_ends(story *s) {
    drop(s, EBB_EV_MACHINE_REQUEST_ENDED, 0);
}
static void queued_after_the_fault(story *s) {
    insert_at(s, where(s, EBB_EV_MACHINE_COMMITTED, 2),
              (ebb_record){EBB_EV_MACHINE_QUEUED, .task = A, .other = 5, .value = A_MESSAGE | 1});
}
static void started_after_the_stop(story *s) {
    say(s, (ebb_record){EBB_EV_MACHINE_STARTED, .task = B});
}
static void stops_with_a_message(story *s) {
    drop(s, EBB_EV_MACHINE_COMMITTED, 2);
}
static void does_not_stop(story *s) {
    drop(s, EBB_EV_MACHINE_STOPPED, 1);
}
static void dispatched_before_its_start(story *s) {
    drop(s, EBB_EV_MACHINE_STARTED, 1);
}
static void unknown(story *s) {
    nth(s, EBB_EV_MACHINE_STARTED, 0)->task = ID(9, 1);
}
static void spawned_twice(story *s) {
    nth(s, EBB_EV_MACHINE_SPAWNED, 1)->task = A;
}

static const struct {
    const char *name;
    void (*doctor)(story *s);
    ebb_oracle oracle;
} doctored[] = {
    {"overtakes", overtakes, EBB_ORACLE_MAILBOX_FIFO},
    {"skips_one", skips_one, EBB_ORACLE_MAILBOX_FIFO},
    {"numbers_go_back", numbers_go_back, EBB_ORACLE_MAILBOX_FIFO},
    {"from_another_mailbox", from_another_mailbox, EBB_ORACLE_MAILBOX_FIFO},
    {"not_recalled", not_recalled, EBB_ORACLE_MAILBOX_FIFO},
    {"commits_twice", commits_twice, EBB_ORACLE_TRANSACTION},
    {"commits_and_rolls_back", commits_and_rolls_back, EBB_ORACLE_TRANSACTION},
    {"state_jumps", state_jumps, EBB_ORACLE_TRANSACTION},
    {"ends_twice", ends_twice, EBB_ORACLE_REQUEST_END},
    {"never_ends", never_ends, EBB_ORACLE_REQUEST_END},
    {"queued_after_the_fault", queued_after_the_fault, EBB_ORACLE_STOPPED},
    {"started_after_the_stop", started_after_the_stop, EBB_ORACLE_STOPPED},
    {"stops_with_a_message", stops_with_a_message, EBB_ORACLE_STOPPED},
    {"does_not_stop", does_not_stop, EBB_ORACLE_STOPPED},
    {"dispatched_before_its_start", dispatched_before_its_start, EBB_ORACLE_PHASE},
    {"unknown", unknown, EBB_ORACLE_FORMAT},
    {"spawned_twice", spawned_twice, EBB_ORACLE_FORMAT},
};

static void a_trace_of_machines_that_keeps_the_rules_passes(void **state) {
    (void)state;
    story s;
    tell(&s);
    verdict v = judge(&s, libc_allocator());
    if (v.status != EBB_OK) fail_msg("%s: %s", ebb_oracle_name(v.oracle), v.text);
}

static void each_doctored_trace_of_machines_breaks_its_rule(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof doctored / sizeof *doctored; i++) {
        story s;
        tell(&s);
        doctored[i].doctor(&s);
        verdict v = judge(&s, libc_allocator());
        if (v.status != EBB_ERR_ORACLE || v.oracle != doctored[i].oracle)
            fail_msg("%s: expected %s, found %s: %s", doctored[i].name, ebb_oracle_name(doctored[i].oracle),
                     v.status == EBB_ERR_ORACLE ? ebb_oracle_name(v.oracle) : "nothing", v.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_of_machines_that_keeps_the_rules_passes),
        cmocka_unit_test(each_doctored_trace_of_machines_breaks_its_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
