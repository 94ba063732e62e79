/* A service on several loops with a crowd of tasks on each, and a ticker that says how long a turn was late.
 *
 *   crowd SOCKET LOOPS TASKS [stuck|hog]
 *
 * stuck: the last loop is held up for 4 s, 1 s after its start. hog: the last task of the crowd computes a lot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ebb/ebb.h>

static uint32_t loops, tasks;
static bool stuck, has_hog;

static ebb_status waits(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return ebb_stopping(cx) ? EBB_OK : EBB_PENDING;
}

/* Prints the worst delay of its 10 ms naps at each SIGTERM. */
static ebb_status hog(ebb_cx *cx, void *arg) {
    ebb_sleeper nap = {0};
    (void)arg;
    while (ebb_sleep(cx, &nap, 5 * EBB_MS) == EBB_OK) {
        uint64_t from = ebb_now(cx);
        while (ebb_now(cx) - from < EBB_MS) {}
    }
    return EBB_OK;
}

static ebb_status tick(ebb_cx *cx, ebb_region crowd) {
    uint64_t worst = 0;
    while (!ebb_stopping(cx)) {
        ebb_sleeper nap = {0};
        uint64_t from = ebb_now(cx);
        if (ebb_sleep(cx, &nap, 10 * EBB_MS) != EBB_OK) break;
        uint64_t took = ebb_now(cx) - from;
        if (took > worst) worst = took;
    }
    printf("worst %llu us\n", (unsigned long long)(worst / 1000));
    fflush(stdout);
    ebb_region_cancel(cx, crowd, EBB_CANCEL_USER, NULL);
    return EBB_OK;
}

static ebb_status first(ebb_cx *cx, void *arg) {
    ebb_region crowd = ebb_region_open(cx, NULL);
    (void)arg;
    for (uint32_t i = 0; i < tasks; i++) ebb_spawn(cx, crowd, waits, NULL);
    if (has_hog) ebb_fiber_spawn(cx, crowd, hog, NULL);
    printf("ready %u\n", ebb_service_loop(cx));
    fflush(stdout);
    if (stuck && ebb_service_loop(cx) == loops - 1) {
        ebb_sleeper nap = {0};
        struct timespec four = {.tv_sec = 4};
        (void)ebb_sleep(cx, &nap, EBB_SECOND);
        (void)nanosleep(&four, NULL);
    }
    return tick(cx, crowd);
}

int main(int argc, char **argv) {
    ebb_workflow_report report = {0};
    if (argc < 4) return 2;
    loops = (uint32_t)strtoul(argv[2], NULL, 10);
    tasks = (uint32_t)strtoul(argv[3], NULL, 10);
    has_hog = argc > 4 && strcmp(argv[4], "hog") == 0;
    stuck = argc > 4 && strcmp(argv[4], "stuck") == 0;
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator(),
                             .loops = loops,
                             .report = &report,
                             .inspect = argv[1]};
    int status = ebb_service_run(&opts, first, NULL);
    if (report.status != EBB_OK) fprintf(stderr, "%s\n", ebb_status_text(report.status));
    return status;
}
