/* Guide: waiting for ends, offering without waiting, the latest value or the end. */
#include <ebb/ebb.h>
#include <stdio.h>

static ebb_status work(ebb_cx *cx, void *span) {
    return ebb_await(cx, ebb_after(cx, *(uint64_t *)span), NULL);
}

/* The index of the first to end. How it ended is for whoever joins it. */
static ebb_status first_to_end(ebb_cx *cx, ebb_task a, ebb_task b, size_t *which) {
    ebb_future *ends[] = {ebb_task_ended(cx, a), ebb_task_ended(cx, b)};
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_select(cx, 2, ends), &v);
    if (st != EBB_OK) return st;
    *which = ebb_selected_of(&v)->index;
    ebb_value_discard(cx, v);
    return EBB_OK;
}

/* Asks a workflow to stop, gives it a moment, and then forces it. */
static ebb_status stop_in_time(ebb_cx *cx, ebb_workflow wf, ebb_workflow_report *report) {
    (void)ebb_workflow_request(cx, wf, EBB_CANCEL_USER, "not needed any more");
    ebb_status st = ebb_await(cx, ebb_within(cx, ebb_workflow_ended(cx, wf), 10 * EBB_MS), NULL);
    if (st == EBB_TIMEOUT) (void)ebb_workflow_force(cx, wf, "took too long");
    return ebb_workflow_join(cx, wf, report);
}

/* A sample that finds no place is dropped, and counted. */
static ebb_status offer(ebb_cx *cx, ebb_chan *samples, int sample, int *dropped) {
    ebb_status st = ebb_chan_try_send(cx, samples, &sample);
    if (st == EBB_PENDING) ++*dropped;
    return st == EBB_PENDING ? EBB_OK : st;
}

static int sum_of_all(ebb_cx *cx, ebb_chan *samples) {
    int sum = 0, sample;
    while (ebb_chan_try_recv(cx, samples, &sample) == EBB_OK) sum += sample;
    return sum;
}

/* A value that is newer than `*seen`, or EBB_ERR_CLOSED when the region closes. */
static ebb_status next_level(ebb_cx *cx, ebb_broadcast *levels, uint64_t *seen, int *level) {
    ebb_future *either[] = {ebb_broadcast_next_future(cx, levels, *seen), ebb_closing(cx)};
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_select(cx, 2, either), &v);
    if (st != EBB_OK) return st;
    bool closes = ebb_selected_of(&v)->index == 1;
    ebb_value_discard(cx, v);
    if (closes) return EBB_ERR_CLOSED;
    *seen = ebb_broadcast_get(levels, level);
    return EBB_OK;
}

static ebb_status with_values(ebb_cx *cx) {
    ebb_chan *samples = NULL;
    ebb_broadcast *levels = NULL;
    int dropped = 0, level = 5;
    uint64_t seen = 0;
    ebb_status st = ebb_chan_new(ebb_cx_runtime(cx), 2, sizeof(int), &samples);
    if (st == EBB_OK) st = ebb_broadcast_new(ebb_cx_runtime(cx), sizeof(int), &levels);
    for (int i = 1; i <= 5 && st == EBB_OK; i++) st = offer(cx, samples, i, &dropped);
    if (st == EBB_OK) printf("%d dropped, the others are %d\n", dropped, sum_of_all(cx, samples));
    if (st == EBB_OK) st = ebb_broadcast_set(cx, levels, &level);
    if (st == EBB_OK) st = next_level(cx, levels, &seen, &level);
    printf("level %d: %s\n", level, ebb_status_name(st));
    ebb_broadcast_free(levels);
    ebb_chan_free(samples);
    return st;
}

static ebb_status start(ebb_cx *cx, void *arg) {
    static uint64_t spans[] = {EBB_MS, 60 * EBB_SECOND};
    ebb_workflow_report report;
    size_t which = 9;
    (void)arg;
    ebb_workflow wf =
        ebb_workflow_open(cx, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .name = "v7"});
    ebb_region region = ebb_workflow_region(cx, wf);
    ebb_task quick = ebb_fiber_spawn(cx, region, work, &spans[0]),
             slow = ebb_fiber_spawn(cx, region, work, &spans[1]);
    ebb_status st = first_to_end(cx, quick, slow, &which);
    printf("first: %s %zu\n", ebb_status_name(st), which);
    st = stop_in_time(cx, wf, &report);
    printf("workflow: %s\n", ebb_workflow_state_name(report.state));
    return with_values(cx);
}

int main(void) {
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator()};
    return ebb_service_run(&opts, start, NULL);
}
