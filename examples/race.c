/* Two mirrors race over a channel. The loser is not forgotten: it is told, it cleans up, and only
 * then does the race end. Time is virtual, so the program does not really wait. */
#include <ebb/ebb.h>
#include <stdio.h>

typedef struct mirror {
    EBB_TASK_STATE; /* where the task goes on; what lives across a wait stands here too */
    ebb_sleeper nap;
    ebb_wait wait;
    ebb_chan *answers;
    unsigned number, latency_ms;
} mirror;

static ebb_status mirror_poll(ebb_cx *cx, void *state) {
    mirror *m = state;
    ebb_status st;
    EBB_BEGIN(m);
    EBB_AWAIT(m, st, ebb_sleep(cx, &m->nap, m->latency_ms * EBB_MS));
    if (st == EBB_OK) EBB_AWAIT(m, st, ebb_chan_send(cx, m->answers, &m->wait, &m->number));
    if (st == EBB_OK) return EBB_OK;
    (void)ebb_mask(cx); /* a cleanup that waits does so masked: it has its own budget */
    EBB_AWAIT(m, st, ebb_sleep(cx, &m->nap, 5 * EBB_MS));
    printf("%2u ms: mirror %u has cleaned up\n", (unsigned)(ebb_now(cx) / EBB_MS), m->number);
    EBB_END(m);
}

typedef struct race {
    EBB_TASK_STATE;
    ebb_wait wait;
    ebb_region region;
    ebb_chan *answers;
    mirror mirrors[2];
    unsigned winner;
} race;

static ebb_status race_poll(ebb_cx *cx, void *state) {
    race *r = state;
    ebb_status st;
    EBB_BEGIN(r);
    r->region = ebb_region_open(cx, NULL); /* an error would stick to the id and show at the join */
    for (int i = 0; i < 2; i++) ebb_spawn(cx, r->region, mirror_poll, &r->mirrors[i]);
    EBB_AWAIT(r, st, ebb_chan_recv(cx, r->answers, &r->wait, &r->winner));
    ebb_region_cancel(cx, r->region, EBB_CANCEL_RACE_LOST, "the other one was faster");
    EBB_AWAIT(r, st, ebb_region_join(cx, r->region)); /* EBB_CANCELLED, as the loser was */
    printf("%2u ms: mirror %u has won\n", (unsigned)(ebb_now(cx) / EBB_MS), r->winner);
    EBB_END(r);
}

int main(void) {
    ebb_runtime *rt;
    ebb_chan *answers;
    if (ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_libc_allocator()}, &rt) != EBB_OK) return 1;
    if (ebb_chan_new(rt, 1, sizeof(unsigned), &answers) != EBB_OK) return 1;
    race r = {.answers = answers,
              .mirrors = {{.answers = answers, .number = 1, .latency_ms = 10},
                          {.answers = answers, .number = 2, .latency_ms = 30}}};
    ebb_spawn(ebb_runtime_host(rt), ebb_runtime_root(rt), race_poll, &r);
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING || ebb_runtime_next_due(rt) != EBB_FOREVER) {
        ebb_runtime_advance(rt, ebb_runtime_next_due(rt));
    }
    ebb_chan_free(answers);
    ebb_runtime_free(rt);
    return r.winner == 1 ? 0 : 1;
}
