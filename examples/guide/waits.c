/* Guide: waiting for anything with anything, telling watchers, a retry of some failures only. */
#include <ebb/ebb.h>
#include <stdio.h>

/* EBB_ERR_CLOSED: the region closes, and no job was taken. A job that came at the same moment is still in the queue. */
static ebb_status next_job(ebb_cx *cx, ebb_chan *jobs, int *job) {
    ebb_future *either[] = {ebb_chan_recv_future(cx, jobs), ebb_closing(cx)};
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_select(cx, 2, either), &v);
    if (st != EBB_OK) return st;
    ebb_selected *first = ebb_selected_of(&v);
    st = first->index == 0 ? ebb_chan_take(cx, &first->value, job) : EBB_ERR_CLOSED;
    ebb_value_discard(cx, v);
    return st;
}

/* EBB_TIMEOUT: there was no place in time, and nothing was sent. */
static ebb_status send_in_time(ebb_cx *cx, ebb_chan *jobs, int job) {
    ebb_value place;
    ebb_status st = ebb_await(cx, ebb_within(cx, ebb_chan_send_future(cx, jobs), EBB_MS), &place);
    return st == EBB_OK ? ebb_chan_put(cx, &place, &job) : st;
}

static ebb_status watch(ebb_cx *cx, void *arg) {
    ebb_broadcast *level = arg;
    ebb_wait wait = {0};
    uint64_t seen = 0; /* the version that was seen last */
    int now = 0;
    ebb_status st;
    while ((st = ebb_broadcast_next(cx, level, &wait, &seen, &now)) == EBB_OK) printf("level %d\n", now);
    return st == EBB_ERR_CLOSED ? EBB_OK : st;
}

static ebb_status tell_watchers(ebb_cx *cx, ebb_broadcast *level) {
    ebb_region region = ebb_region_open(cx, NULL);
    int value = 7;
    ebb_fiber_spawn(cx, region, watch, level);
    ebb_status st = ebb_broadcast_set(cx, level, &value);
    ebb_broadcast_close(cx, level); /* watchers get what they have not seen, and then the end */
    return st != EBB_OK ? st : ebb_region_join(cx, region);
}

/* Lets the work of a region end by itself for a moment, and then cancels it. */
static ebb_status join_in_time(ebb_cx *cx, ebb_region region) {
    ebb_status st = ebb_await(cx, ebb_within(cx, ebb_region_closed(cx, region), 10 * EBB_MS), NULL);
    if (st == EBB_TIMEOUT) ebb_region_cancel(cx, region, EBB_CANCEL_TIMEOUT, "took too long");
    return ebb_region_join(cx, region);
}

static bool is_passing(ebb_status st, void *arg) {
    (void)arg;
    return st == EBB_ERR_BUSY;
}

static ebb_future *attempt(ebb_cx *cx, uint32_t n, void *arg) {
    (void)arg;
    return ebb_future_failed(cx, n == 0 ? EBB_ERR_BUSY : EBB_ERR_INVALID);
}

/* The second failure is not worth a third attempt. */
static ebb_status ask_while_busy(ebb_cx *cx) {
    ebb_retry_opts opts = {.attempts = 5, .pause = EBB_MS, .again = is_passing};
    return ebb_await(cx, ebb_retry(cx, &opts, attempt, NULL), NULL);
}

static ebb_status stay(ebb_cx *cx, void *arg) {
    (void)arg;
    return ebb_await(cx, ebb_after(cx, 60 * EBB_SECOND), NULL);
}

static ebb_status run(ebb_cx *cx, void *arg) {
    ebb_chan *jobs = NULL;
    ebb_broadcast *level = NULL;
    int job = 0;
    (void)arg;
    ebb_status st = ebb_chan_new(ebb_cx_runtime(cx), 1, sizeof(int), &jobs);
    if (st == EBB_OK) st = ebb_broadcast_new(ebb_cx_runtime(cx), sizeof(int), &level);
    if (st != EBB_OK) return st;
    st = send_in_time(cx, jobs, 4);
    printf("sent: %s, %s\n", ebb_status_name(st), ebb_status_name(send_in_time(cx, jobs, 5)));
    st = next_job(cx, jobs, &job);
    printf("job %d: %s\n", job, ebb_status_name(st));
    (void)tell_watchers(cx, level);
    ebb_region region = ebb_region_open(cx, NULL);
    ebb_fiber_spawn(cx, region, stay, NULL);
    printf("region: %s\n", ebb_status_name(join_in_time(cx, region)));
    printf("retry: %s\n", ebb_status_name(ask_while_busy(cx)));
    ebb_chan_free(jobs);
    ebb_broadcast_free(level);
    return EBB_OK;
}

int main(void) {
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    ebb_loop *loop;
    ebb_status st = ebb_loop_new(&opts, run, NULL, &loop);
    if (st == EBB_OK) st = ebb_loop_join(loop);
    return st == EBB_OK ? 0 : 1;
}
