/* Regions in regions: whoever cancels the outer one need not know what is inside. */
#include "tour.h"

typedef struct job {
    EBB_TASK_STATE;
    ebb_sleeper nap;
    unsigned goodbye_ms;
} job;

/* Works until it is told to stop, then needs some time to say goodbye. */
static ebb_status job_poll(ebb_cx *cx, void *state) {
    job *j = state;
    ebb_status st;
    EBB_BEGIN(j);
    do {
        EBB_AWAIT(j, st, ebb_sleep(cx, &j->nap, 15 * EBB_MS));
    } while (st == EBB_OK);
    (void)ebb_mask(cx); /* a cleanup that waits does so masked */
    EBB_AWAIT(j, st, ebb_sleep(cx, &j->nap, j->goodbye_ms * EBB_MS));
    (void)ebb_unmask(cx);
    EBB_END(j);
}

/* A region's finalizer: runs when all that was in the region has ended. */
static ebb_status flush_log(ebb_cx *cx, void *state) {
    return ebb_sleep(cx, state, 10 * EBB_MS);
}

/* True if the sessions know why: told by their parent, which was told by the operator. */
static bool chain_is_right(stage *s, ebb_region sessions, ebb_region server) {
    ebb_region_cause chain[EBB_CHAIN_DEPTH];
    uint32_t n;
    bool cut;
    return ebb_region_causes(stage_host(s), sessions, chain, EBB_CHAIN_DEPTH, &n, &cut) == EBB_OK && n == 2 &&
           !cut && chain[0].reason.kind == EBB_CANCEL_PARENT && chain[1].reason.kind == EBB_CANCEL_USER &&
           chain[1].region.id == server.id;
}

static void play(stage *s) {
    ebb_cx *host = stage_host(s);
    job listener = {.goodbye_ms = 5}, upload = {.goodbye_ms = 20};
    ebb_sleeper log = {0};
    ebb_region server = ebb_region_open(host, NULL);
    ebb_region sessions = ebb_region_open(host, &(ebb_region_opts){.parent = server});
    ebb_status deferred = ebb_region_defer(host, server, flush_log, &log);
    stage_show_region(s, server, "server");
    stage_show_region(s, sessions, "sessions");
    stage_show_task(s, ebb_spawn(host, server, job_poll, &listener), "listener");
    stage_show_task(s, ebb_spawn(host, sessions, job_poll, &upload), "upload");

    stage_run_to(s, 20);
    ebb_region_cancel(host, server, EBB_CANCEL_USER, "a new version goes out");
    bool told = chain_is_right(s, sessions, server);
    bool late = ebb_id_status(ebb_spawn(host, sessions, job_poll, &upload).id) == EBB_ERR_CLOSED;
    stage_run_out(s);

    stage_expect(s, told, "the sessions know the cause: PARENT, and there USER");
    stage_expect(s, late, "no new session was let in after that");
    stage_expect(s, deferred == EBB_OK && ebb_region_join(host, server) == EBB_CANCELLED,
                 "the server closed last, and its join says cancelled");
}

const chapter nested = {"nested", "Nested regions: cancel the outermost, all of it goes in order", play};
