/* The state machines of exchanges and connections: every pair of a state and a trigger. */
#include <ebb/http.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The transitions are driven without asserts, as in a release build. */
#define NDEBUG
#include "http/http.h"

/* What the tables should be, written down once more: a row is a trigger, a column a state, and '.' is illegal. The
 * letter is the index of the next state. */
typedef struct expected {
    ebb__machine_id id;
    const char *rows[12];
} expected;

static const expected all[] = {
    /*              HEAD BODY ENDED */
    {EBB__M_IN, {"b..", "cc.", "aaa"}},
    /*              NONE OPEN LAST CUT RESETS ENDED */
    {EBB__M_OUT, {"b.....", "fff...", ".a...a", ".c....", ".ddd..", ".eeee.", "....d."}},
    /*              NOTHING SOME ALL */
    {EBB__M_SENT, {"b..", ".cc", "aaa"}},
    /*              OPEN RESET ENDED LOST */
    {EBB__M_STREAM, {"bb..", "cc..", "dd..", "aa.."}},
    /*              NONE QUEUED RUNNING RETURNED CLOSED SKIPPED */
    {EBB__M_WORK, {"b.....", ".c....", ".f....", "..d...", "..ee.."}},
    /*              NONE YOUNG WAITING LATE LEAVING */
    {EBB__M_PLACE, {"b....", "ccc..", ".aa..", "ddd..", "..e..", "....d"}},
    /*              MADE NEW OPEN CLOSING DRAINING ENDING NOTIFIED LINGERING ENDED RELEASED */
    {EBB__M_CONN,
     {"b.........", ".c........", ".dd.......", ".eee......", ".ffff.....", ".....g....", ".....hh...",
      ".iiiiiii..", "........j."}},
    /*              FREELY HELD DELAYED NOTIFIED BROKEN */
    {EBB__M_READS, {"b....", "c....", ".aa..", "d..d.", "eeeee"}},
    /*              NONE RUNS CANCELLED STOPPING CLOSED */
    {EBB__M_UNIT, {"b....", ".c...", "..d..", ".eee."}},
};
enum { ALL = sizeof all / sizeof *all };

static ebb__address address;

static ebb__conn *new_conn(void) {
    ebb__conn *c = calloc(1, sizeof *c);
    assert_non_null(c);
    address = (ebb__address){.queued = 10};
    c->from = &address;
    c->open = c->working = 10;
    return c;
}

static void step(ebb__conn *c, ebb_http *x, ebb__machine_id id, unsigned t) {
    switch (id) {
    case EBB__M_IN: ebb__in_step(x, (ebb__in_trigger)t); break;
    case EBB__M_OUT: ebb__out_step(x, (ebb__out_trigger)t); break;
    case EBB__M_SENT: ebb__sent_step(x, (ebb__sent_trigger)t); break;
    case EBB__M_STREAM: ebb__stream_step(x, (ebb__stream_trigger)t); break;
    case EBB__M_WORK: ebb__work_step(x, (ebb__work_trigger)t); break;
    case EBB__M_PLACE: ebb__place_step(x, (ebb__place_trigger)t); break;
    case EBB__M_CONN: ebb__conn_step(c, (ebb__conn_trigger)t); break;
    case EBB__M_READS: ebb__reads_step(c, (ebb__reads_trigger)t); break;
    case EBB__M_UNIT: ebb__unit_step(c, (ebb__unit_trigger)t); break;
    case EBB__MACHINES: fail();
    }
}

static uint8_t *state_of(ebb__conn *c, ebb_http *x, ebb__machine_id id) {
    uint8_t *const at[EBB__MACHINES] = {&x->in,    &x->out,   &x->sent,  &x->stream_state, &x->work,
                                        &x->place, &c->state, &c->reads, &c->unit};
    return at[id];
}

static void check_pair(const expected *e, unsigned state, unsigned t) {
    const ebb__machine *m = &ebb__machines[e->id];
    ebb__conn *c = new_conn();
    ebb_http x = {.conn = c};
    char at[64];
    *state_of(c, &x, e->id) = (uint8_t)state;
    step(c, &x, e->id, t);
    const char *text = ebb_http_error();
    unsigned now = *state_of(c, &x, e->id);
    char to = e->rows[t][state];
    snprintf(at, sizeof at, "'%s' in state '%s'", m->triggers[t], m->states[state]);
    if (to == '.') {
        if (now != state || !c->illegal) fail_msg("%s: %s was not refused", m->name, at);
        if (strstr(text, at) == NULL || strstr(text, m->name) == NULL) fail_msg("%s: said '%s'", at, text);
        assert_true(c->open == 10 && c->working == 10 && address.queued == 10);
    } else {
        if (now != (unsigned)(to - 'a')) fail_msg("%s: %s led to '%s'", m->name, at, m->states[now]);
        assert_false(c->illegal);
    }
    free(c);
}

static void every_pair_does_what_its_table_says(void **state) {
    (void)state;
    assert_int_equal(ALL, EBB__MACHINES);
    for (size_t i = 0; i < ALL; i++) {
        const ebb__machine *m = &ebb__machines[all[i].id];
        for (unsigned t = 0; t < m->triggers_n; t++) {
            assert_non_null(all[i].rows[t]);
            assert_int_equal(strlen(all[i].rows[t]), m->states_n);
            for (unsigned s = 0; s < m->states_n; s++) check_pair(&all[i], s, t);
        }
        assert_null(all[i].rows[m->triggers_n]);
    }
}

static void transitions_keep_the_counters(void **state) {
    ebb__conn *c = new_conn();
    ebb_http x = {.conn = c}, skipped = {.conn = c}, unsent = {.client = true};
    (void)state;
    ebb__work_step(&x, EBB__WORK_QUEUES);
    ebb__work_step(&skipped, EBB__WORK_QUEUES);
    assert_int_equal(address.queued, 12);
    ebb__work_step(&x, EBB__WORK_STARTS);
    ebb__work_step(&skipped, EBB__WORK_IS_SKIPPED);
    assert_int_equal(address.queued, 10);
    assert_int_equal(c->working, 11);
    ebb__stream_step(&x, EBB__STREAM_ENDS);
    ebb__stream_step(&skipped, EBB__STREAM_BREAKS);
    assert_int_equal(c->open, 8);
    ebb__stream_step(&unsent, EBB__STREAM_BREAKS); /* a call that never had a connection */
    assert_true(ebb__exchange_is_gone(&unsent) && ebb__exchange_is_lost(&unsent));
    free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_does_what_its_table_says),
        cmocka_unit_test(transitions_keep_the_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
