/* Guide: stop on SIGTERM with a log of it, and ask why something does not stop.
 *
 *   service AUDIT_FILE [SOCKET [TRACE_FILE]] */
#include <ebb/ebb.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static ebb_sem ready; /* the worker waits for it, and the drain handler releases it */

static ebb_status work(ebb_cx *cx, void *arg) {
    ebb_wait wait = {0};
    (void)arg;
    return ebb_sem_acquire(cx, &ready, &wait);
}

static void print(void *ctx, const char *text, size_t n) {
    fwrite(text, 1, n, ctx);
}

/* Runs when the service is asked to stop, beside what is in flight. */
static ebb_status drain(ebb_cx *cx, ebb_drain *d, void *arg) {
    (void)arg;
    (void)ebb_workflow_explain(cx, ebb_drain_workflow(d), print, stdout); /* what it waits for */
    ebb_sem_release(cx, &ready);
    ebb_drain_evidence(d, "released", "the worker");
    return EBB_OK;
}

static ebb_status start(ebb_cx *cx, void *arg) {
    (void)arg;
    ebb_status st = ebb_workflow_on_drain(cx, ebb_workflow_of(cx), "release", drain, NULL);
    if (st != EBB_OK) return st;
    ebb_fiber_spawn(cx, ebb_cx_region(cx), work, NULL, &(ebb_task_opts){.name = "the worker"});
    return kill(getpid(), SIGTERM) == 0 ? EBB_OK : EBB_FAILED; /* in place of an operator */
}

int main(int argc, char **argv) {
    ebb_audit *audit;
    if (argc < 2 || argc > 4) return 2;
    ebb_sem_init(&ready, 0);
    ebb_status st = ebb_audit_open(ebb_libc_allocator(), argv[1], &audit);
    if (st != EBB_OK) fprintf(stderr, "%s: %s\n", argv[1], ebb_status_text(st));
    if (st != EBB_OK) return EBB_SERVICE_FAILED;
    ebb_workflow_report report = {0};
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator(),
                             .shutdown = {.name = "guide", .budget = 30 * EBB_SECOND, .audit = audit},
                             .report = &report};
    opts.inspect = argv[2]; /* a path; "": `ebb top PID` finds it; NULL: nobody can look */
    if (argc > 3) opts.loop.trace_file = argv[3];
    int status = ebb_service_run(&opts, start, NULL);
    printf("%s, exit status %d\n", ebb_workflow_state_name(report.state), status);
    ebb_audit_close(audit);
    return status;
}
