/* Guide: a program under many schedules, and with failing memory. */
#include <ebb/ebb.h>
#include <ebb/lab.h>
#include <stdio.h>

enum { JOBS = 5, ROOM = 2 };

/* What is tested: one task sends, one receives. No job may be lost, whenever they are cancelled. */
typedef struct line {
    ebb_chan *jobs;
    struct side {
        EBB_TASK_STATE;
        ebb_wait wait;
        struct line *line;
        int job;
    } sender, receiver;
    int sent, received;
} line;

static ebb_status send_all(ebb_cx *cx, void *state) {
    struct side *s = state;
    ebb_status st;
    EBB_BEGIN(s);
    for (s->job = 0; s->job < JOBS; s->job++) {
        EBB_AWAIT(s, st, ebb_chan_send(cx, s->line->jobs, &s->wait, &s->job));
        if (st != EBB_OK) return st;
        s->line->sent++;
    }
    ebb_chan_close(cx, s->line->jobs);
    EBB_END(s);
}

static ebb_status receive_all(ebb_cx *cx, void *state) {
    struct side *s = state;
    ebb_status st;
    EBB_BEGIN(s);
    for (;;) {
        EBB_AWAIT(s, st, ebb_chan_recv(cx, s->line->jobs, &s->wait, &s->job));
        if (st != EBB_OK) return st == EBB_ERR_CLOSED ? EBB_OK : st;
        s->line->received++;
    }
    EBB_END(s);
}

static ebb_status begin(line *l, ebb_runtime *rt, ebb_region region) {
    ebb_status st = ebb_chan_new(rt, ROOM, sizeof(int), &l->jobs);
    if (st != EBB_OK) return st;
    l->sender.line = l->receiver.line = l;
    ebb_task sender = ebb_spawn(ebb_runtime_host(rt), region, send_all, &l->sender);
    ebb_task receiver = ebb_spawn(ebb_runtime_host(rt), region, receive_all, &l->receiver);
    return ebb_id_status(sender.id) != EBB_OK ? ebb_id_status(sender.id) : ebb_id_status(receiver.id);
}

static ebb_status setup(ebb_lab *lab) {
    return begin(ebb_lab_state(lab), ebb_lab_runtime(lab, 0), ebb_lab_region(lab, 0));
}

static void cancel(ebb_lab *lab, uint32_t n) {
    (void)n;
    ebb_region_cancel(ebb_runtime_host(ebb_lab_runtime(lab, 0)), ebb_lab_region(lab, 0), EBB_CANCEL_USER, "");
}

static void check(ebb_lab *lab) {
    line *l = ebb_lab_state(lab);
    if (l->sent != l->received + (int)ebb_chan_length(l->jobs)) ebb_lab_fail(lab, "a job is lost");
}

static void teardown(ebb_lab *lab) {
    ebb_chan_free(((line *)ebb_lab_state(lab))->jobs);
}

static bool under_every_schedule(void) {
    ebb_lab_scenario scenario = {.name = "line",
                                 .about = "jobs over a channel",
                                 .steps = 1,
                                 .state_size = sizeof(line),
                                 .setup = setup,
                                 .step = cancel,
                                 .check = check,
                                 .teardown = teardown};
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    ebb_lab_case c = {.scenario = &scenario, .seed = 1};
    ebb_lab_explore_result r;
    if (lab == NULL) return false;
    ebb_status st = ebb_lab_explore(lab, &c, &(ebb_lab_explore_opts){.schedules = 500}, &r);
    printf("%d schedules: %s %s\n", (int)r.schedules, ebb_status_name(st), r.failure.text);
    ebb_lab_case_free(lab, &c);
    ebb_lab_free(lab);
    return st == EBB_OK;
}

/* One whole life of the program, with an allocator that may fail. */
static ebb_status live(ebb_allocator memory) {
    line l = {0};
    ebb_runtime *rt;
    ebb_status st = ebb_runtime_new(&(ebb_runtime_opts){.allocator = memory}, &rt);
    if (st != EBB_OK) return st;
    st = begin(&l, rt, ebb_runtime_root(rt));
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING) continue;
    ebb_chan_free(l.jobs);
    ebb_runtime_free(rt);
    return st;
}

static bool with_failing_memory(void) {
    for (uint64_t n = 1;; n++) {
        ebb_failing memory = {.inner = ebb_libc_allocator(), .fail_at = n};
        ebb_status st = live(ebb_failing_allocator(&memory));
        if (memory.live != 0) return false; /* something was not freed */
        if (memory.failures == 0) return printf("every allocation failed once\n") > 0 && st == EBB_OK;
        if (st != EBB_ERR_NOMEM) return false;
    }
}

int main(void) {
    return under_every_schedule() && with_failing_memory() ? 0 : 1;
}
