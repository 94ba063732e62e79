/* Guide: a bounded queue, a bound on how many tasks run at once, stopping workers, cleanup that is not cut. */
#include <ebb/ebb.h>
#include <stdio.h>

enum { JOBS = 10, ROOM = 4, WORKERS = 3, AT_ONCE = 2 };

typedef struct shop {
    ebb_chan *jobs; /* of int */
    ebb_sem slots;
    int done, busy, most;
} shop;

/* A send waits while the queue is full: that is the backpressure. */
static ebb_status produce(ebb_cx *cx, void *arg) {
    shop *s = arg;
    ebb_wait wait = {0};
    for (int i = 0; i < JOBS; i++) {
        ebb_status st = ebb_chan_send(cx, s->jobs, &wait, &i);
        if (st != EBB_OK) return st; /* cancelled: this job was not sent */
    }
    ebb_chan_close(cx, s->jobs);
    return EBB_OK;
}

static ebb_status do_job(ebb_cx *cx, shop *s) {
    ebb_sleeper nap = {0};
    s->busy++;
    if (s->busy > s->most) s->most = s->busy;
    ebb_status st = ebb_sleep(cx, &nap, EBB_MS);
    s->busy--;
    if (st == EBB_OK) s->done++;
    return st;
}

/* At most AT_ONCE tasks are between the acquire and the release. */
static ebb_status do_job_in_a_slot(ebb_cx *cx, shop *s) {
    ebb_wait wait = {0};
    ebb_status st = ebb_sem_acquire(cx, &s->slots, &wait);
    if (st != EBB_OK) return st;
    st = do_job(cx, s);
    ebb_sem_release(cx, &s->slots);
    return st;
}

static ebb_status work(ebb_cx *cx, void *arg) {
    shop *s = arg;
    ebb_wait wait = {0};
    int job;
    ebb_status st;
    while ((st = ebb_chan_recv(cx, s->jobs, &wait, &job)) == EBB_OK) {
        st = do_job_in_a_slot(cx, s);
        if (st != EBB_OK) return st;
    }
    return st == EBB_ERR_CLOSED ? EBB_OK : st; /* closed and empty: all is done */
}

static ebb_status all_jobs(ebb_cx *cx, shop *s) {
    ebb_region region = ebb_region_open(cx, NULL);
    ebb_fiber_spawn(cx, region, produce, s);
    for (int i = 0; i < WORKERS; i++) ebb_fiber_spawn(cx, region, work, s);
    return ebb_region_join(cx, region);
}

/* A finalizer. It runs after the task, however that ended. */
static ebb_status put_tools_away(ebb_cx *cx, void *arg) {
    (void)cx;
    printf("%s\n", (const char *)arg);
    return EBB_OK;
}

static ebb_status careful(ebb_cx *cx, void *arg) {
    ebb_status st = ebb_defer(cx, put_tools_away, arg);
    if (st != EBB_OK) return st;
    st = ebb_await(cx, ebb_after(cx, 60 * EBB_SECOND), NULL); /* EBB_CANCELLED */
    (void)ebb_mask(cx);                                       /* from here on a cancel waits */
    if (ebb_await(cx, ebb_after(cx, EBB_MS), NULL) == EBB_OK) printf("saved\n");
    (void)ebb_unmask(cx);
    return st;
}

static ebb_status stop_a_worker(ebb_cx *cx) {
    static char tools[] = "tools put away";
    ebb_region region = ebb_region_open(cx, NULL);
    ebb_fiber_spawn(cx, region, careful, tools);
    ebb_status st = ebb_await(cx, ebb_after(cx, EBB_MS), NULL); /* it has begun */
    if (st != EBB_OK) return st;
    ebb_region_cancel(cx, region, EBB_CANCEL_USER, "the shop closes");
    return ebb_region_join(cx, region); /* returns when the cleanup is done */
}

static ebb_status run(ebb_cx *cx, void *arg) {
    shop s = {0};
    (void)arg;
    ebb_status st = ebb_chan_new(ebb_cx_runtime(cx), ROOM, sizeof(int), &s.jobs);
    if (st != EBB_OK) return st;
    ebb_sem_init(&s.slots, AT_ONCE);
    (void)ebb_mask(cx); /* `s` is on this stack: wait for all that use it */
    st = all_jobs(cx, &s);
    (void)ebb_unmask(cx);
    ebb_chan_free(s.jobs);
    printf("%s: %d jobs, %d at once\n", ebb_status_name(st), s.done, s.most);
    printf("stopped: %s\n", ebb_status_name(stop_a_worker(cx)));
    return EBB_OK;
}

int main(void) {
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    ebb_loop *loop;
    ebb_status st = ebb_loop_new(&opts, run, NULL, &loop);
    if (st == EBB_OK) st = ebb_loop_join(loop);
    return st == EBB_OK ? 0 : 1;
}
