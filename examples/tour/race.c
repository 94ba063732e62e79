/* A race over a channel: the first answer wins, and the race is over when the losers are gone. */
#include "tour.h"

typedef struct mirror {
    EBB_TASK_STATE;
    ebb_sleeper nap;
    ebb_wait wait;
    ebb_chan *answers;
    unsigned latency_ms;
    bool gone;
} mirror;

static ebb_status mirror_poll(ebb_cx *cx, void *state) {
    mirror *m = state;
    ebb_status st;
    EBB_BEGIN(m);
    EBB_AWAIT(m, st, ebb_sleep(cx, &m->nap, m->latency_ms * EBB_MS));
    if (st == EBB_OK) EBB_AWAIT(m, st, ebb_chan_send(cx, m->answers, &m->wait, &m->latency_ms));
    if (st != EBB_OK) {
        (void)ebb_mask(cx);
        EBB_AWAIT(m, st, ebb_sleep(cx, &m->nap, 5 * EBB_MS)); /* closes its connection */
        (void)ebb_unmask(cx);
    }
    m->gone = true;
    EBB_END(m);
}

typedef struct referee {
    EBB_TASK_STATE;
    ebb_wait wait;
    stage *stage;
    ebb_chan *answers;
    ebb_region race;
    mirror mirrors[2];
    unsigned first;
    bool drained;
} referee;

static ebb_status referee_poll(ebb_cx *cx, void *state) {
    referee *r = state;
    ebb_status st;
    EBB_BEGIN(r);
    r->race = ebb_region_open(cx, NULL);
    stage_show_region(r->stage, r->race, "race");
    stage_show_task(r->stage, ebb_spawn(cx, r->race, mirror_poll, &r->mirrors[0]), "near");
    stage_show_task(r->stage, ebb_spawn(cx, r->race, mirror_poll, &r->mirrors[1]), "far");

    EBB_AWAIT(r, st, ebb_chan_recv(cx, r->answers, &r->wait, &r->first));
    if (st != EBB_OK) return st;
    ebb_region_cancel(cx, r->race, EBB_CANCEL_RACE_LOST, "somebody was faster");
    EBB_AWAIT(r, st, ebb_region_join(cx, r->race));
    r->drained = r->mirrors[0].gone && r->mirrors[1].gone;
    EBB_END(r);
}

static void play(stage *s) {
    ebb_chan *answers;
    if (ebb_chan_new(stage_runtime(s), 1, sizeof(unsigned), &answers) != EBB_OK) {
        stage_expect(s, false, "no memory for a channel");
        return;
    }
    referee r = {.stage = s,
                 .answers = answers,
                 .mirrors = {{.answers = answers, .latency_ms = 10}, {.answers = answers, .latency_ms = 40}}};
    ebb_task task = ebb_spawn(stage_host(s), ebb_runtime_root(stage_runtime(s)), referee_poll, &r,
                              &(ebb_task_opts){.keep = true});
    stage_show_task(s, task, "referee");
    stage_run_out(s);
    stage_expect(s, r.first == 10, "the near mirror has won");
    stage_expect(s, r.drained, "when the join returned, the loser had cleaned up");
    stage_expect(s, ebb_task_join(stage_host(s), task) == EBB_OK, "the referee was not cancelled");
    ebb_chan_free(answers);
}

const chapter race = {"race", "A race over a channel: the loser is told, and waited for", play};
