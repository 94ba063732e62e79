/* A pool of workers over a channel, stopped in the two ways there are.
 *
 *   close    the producer closes the channel, the workers empty it and go home: every job is done
 *   cancel   the workers stop at once; a job in hand goes back, so that none is lost
 *
 * Run twice with the same jobs. What was done and what was left always adds up. */
#include <ebb/ebb.h>
#include <stdio.h>

enum { WORKERS = 3, JOBS = 12, ROOM = 4, JOB_MS = 10 };

typedef struct pool {
    ebb_chan *jobs;
    int sent, done, put_back;
} pool;

typedef struct producer {
    EBB_TASK_STATE;
    ebb_wait wait;
    pool *pool;
} producer;

/* The channel has room for a few jobs only: who sends faster than the pool works has to wait. */
static ebb_status producer_poll(ebb_cx *cx, void *state) {
    producer *p = state;
    ebb_status st;
    EBB_BEGIN(p);
    while (p->pool->sent < JOBS) {
        EBB_AWAIT(p, st, ebb_chan_send(cx, p->pool->jobs, &p->wait, &p->pool->sent));
        if (st != EBB_OK) return st; /* cancelled: this one was not sent and is still ours */
        p->pool->sent++;
    }
    ebb_chan_close(cx, p->pool->jobs);
    EBB_END(p);
}

typedef struct worker {
    EBB_TASK_STATE;
    ebb_wait wait;
    ebb_sleeper nap;
    pool *pool;
    int job;
} worker;

static ebb_status worker_poll(ebb_cx *cx, void *state) {
    worker *w = state;
    ebb_status st;
    EBB_BEGIN(w);
    for (;;) {
        EBB_AWAIT(w, st, ebb_chan_recv(cx, w->pool->jobs, &w->wait, &w->job));
        if (st == EBB_ERR_CLOSED) return EBB_OK; /* closed and empty: the work is done */
        if (st != EBB_OK) return st;             /* cancelled: no job was taken out */
        EBB_AWAIT(w, st, ebb_sleep(cx, &w->nap, JOB_MS * EBB_MS));
        if (st != EBB_OK) break;
        w->pool->done++;
    }
    w->pool->put_back++; /* cancelled with a job in hand */
    return st;
    EBB_END(w);
}

/* Virtual time: on to where something happens next, but not past `until`. */
static void run(ebb_runtime *rt, uint64_t until) {
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING || ebb_runtime_next_due(rt) < until) {
        ebb_runtime_advance(rt, ebb_runtime_next_due(rt));
    }
}

/* Works until `cancel_at`, if that comes before the end. True if nothing was lost. */
static bool work(ebb_runtime *rt, const char *how, uint64_t cancel_at, ebb_status expected) {
    pool p = {0};
    if (ebb_chan_new(rt, ROOM, sizeof(int), &p.jobs) != EBB_OK) return false;
    producer boss = {.pool = &p};
    worker workers[WORKERS];
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_region shift = ebb_region_open(host, NULL);
    ebb_spawn(host, shift, producer_poll, &boss);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (worker){.pool = &p};
        ebb_spawn(host, shift, worker_poll, &workers[i]);
    }
    run(rt, cancel_at);
    ebb_region_cancel(host, shift, EBB_CANCEL_USER, "the shift is over");
    run(rt, EBB_FOREVER);

    int left = (int)ebb_chan_length(p.jobs);
    ebb_status st = ebb_region_join(host, shift); /* all have ended: nobody uses the channel now */
    ebb_chan_free(p.jobs);
    printf("%-6s %2d sent = %2d done + %d put back + %d still in the channel; %s\n", how, p.sent, p.done,
           p.put_back, left, ebb_status_text(st));
    return st == expected && p.sent == p.done + p.put_back + left;
}

int main(void) {
    ebb_runtime *rt;
    if (ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_libc_allocator()}, &rt) != EBB_OK) return 1;
    bool ok = work(rt, "close", EBB_FOREVER, EBB_OK);
    ok = work(rt, "cancel", ebb_now(ebb_runtime_host(rt)) + 25 * EBB_MS, EBB_CANCELLED) && ok;
    ebb_runtime_free(rt);
    return ok ? 0 : 1;
}
