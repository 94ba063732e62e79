/* Guide: timeouts, retries, deadlines, the first of several, and how many run at once. */
#include <ebb/ebb.h>
#include <stdio.h>

/* Stands for a peer that answers after a while. */
static ebb_future *ask(ebb_cx *cx, uint64_t latency) {
    return ebb_after(cx, latency);
}

static ebb_status ask_with_timeout(ebb_cx *cx) {
    ebb_future *answer = ask(cx, 60 * EBB_SECOND);
    return ebb_await(cx, ebb_within(cx, answer, 10 * EBB_MS), NULL); /* EBB_TIMEOUT */
}

/* `n` counts from 0. The first two attempts fail, as a busy server would. */
static ebb_future *attempt(ebb_cx *cx, uint32_t n, void *arg) {
    (void)arg;
    printf("attempt %u\n", n + 1);
    return n < 2 ? ebb_future_failed(cx, EBB_ERR_BUSY) : ask(cx, EBB_MS);
}

static ebb_status ask_again(ebb_cx *cx) {
    ebb_retry_opts opts = {.attempts = 5, .pause = EBB_MS, .factor = 2, .max_pause = EBB_SECOND};
    return ebb_await(cx, ebb_retry(cx, &opts, attempt, NULL), NULL);
}

static ebb_status slow(ebb_cx *cx, void *arg) {
    (void)arg;
    return ebb_await(cx, ask(cx, 60 * EBB_SECOND), NULL); /* EBB_CANCELLED at the deadline */
}

/* The deadline holds for the region and for everything that is ever started below it. */
static ebb_status all_by_a_deadline(ebb_cx *cx) {
    ebb_region_opts opts = {.deadline = ebb_now(cx) + 20 * EBB_MS};
    ebb_region region = ebb_region_open(cx, &opts);
    for (int i = 0; i < 3; i++) ebb_fiber_spawn(cx, region, slow, NULL);
    return ebb_region_join(cx, region); /* EBB_CANCELLED: a task was */
}

/* `which` is the index of the first to end; the others are cancelled. */
static ebb_status first_of_two(ebb_cx *cx, size_t *which) {
    ebb_future *both[] = {ask(cx, 60 * EBB_SECOND), ask(cx, EBB_MS)};
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_select(cx, 2, both), &v);
    if (st != EBB_OK) return st;
    *which = ebb_selected_of(&v)->index;
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static ebb_future *ask_one(ebb_cx *cx, size_t i, void *arg) {
    (void)i;
    (void)arg;
    return ask(cx, EBB_MS);
}

/* Twelve questions, never more than four under way. */
static ebb_status ask_all(ebb_cx *cx) {
    return ebb_await(cx, ebb_traverse(cx, 12, 4, ask_one, NULL), NULL);
}

static ebb_status child_with_timeout(ebb_cx *cx) {
    const char *const args[] = {"sleep", "60", NULL};
    ebb_process p = ebb_process_spawn(cx, NULL, &(ebb_process_opts){.file = "sleep", .args = args});
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_within(cx, ebb_process_wait(cx, p), 20 * EBB_MS), &v);
    if (st == EBB_TIMEOUT) st = ebb_await(cx, ebb_process_wait(cx, p), &v);
    if (st == EBB_OK) printf("ended by signal %d\n", ebb_process_exit_signal(v));
    return st;
}

static ebb_status run(ebb_cx *cx, void *arg) {
    size_t which = 0;
    (void)arg;
    printf("with a timeout: %s\n", ebb_status_name(ask_with_timeout(cx)));
    printf("up to 5 times: %s\n", ebb_status_name(ask_again(cx)));
    printf("by a deadline: %s\n", ebb_status_name(all_by_a_deadline(cx)));
    ebb_status st = first_of_two(cx, &which);
    printf("the first of two: %s, number %zu\n", ebb_status_name(st), which);
    printf("four at once: %s\n", ebb_status_name(ask_all(cx)));
    return child_with_timeout(cx);
}

int main(void) {
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    ebb_loop *loop;
    ebb_status st = ebb_loop_new(&opts, run, NULL, &loop);
    if (st == EBB_OK) st = ebb_loop_join(loop);
    return st == EBB_OK ? 0 : 1;
}
