/* A publish that is called off half way: the file at hand is completed, and all are rolled back. */
#include <ebb/ebb.h>
#include <stdio.h>

typedef struct publish {
    ebb_task staging;
    uint64_t staged; /* files */
} publish;

/* In flight. It hears of the request by ebb_stopping; nobody cuts the file short that it is at. */
static ebb_status stage(ebb_cx *cx, void *arg) {
    publish *p = arg;
    ebb_sleeper nap = {0};
    while (p->staged < 100 && !ebb_stopping(cx)) {
        ebb_status st = ebb_sleep(cx, &nap, 10 * EBB_MS); /* EBB_CANCELLED: it was still here at cancel_at */
        if (st != EBB_OK) return st;
        p->staged++;
    }
    return EBB_OK;
}

/* A drain handler. It runs beside what is in flight, so it waits for that first. */
static ebb_status roll_back(ebb_cx *cx, ebb_drain *d, void *arg) {
    publish *p = arg;
    ebb_sleeper nap = {0};
    ebb_status st = ebb_task_join(cx, p->staging);
    for (uint64_t i = 0; i < p->staged && !ebb_cancelled(cx); i++) {
        st = ebb_sleep(cx, &nap, EBB_MS);
        ebb_drain_progress(d, i + 1, p->staged);
    }
    if (st == EBB_OK) ebb_drain_evidence(d, "release", "still v41");
    return st;
}

static ebb_status serve(ebb_cx *cx, void *arg) {
    publish p = {0};
    ebb_sleeper nap = {0};
    ebb_workflow_report report = {0};
    (void)arg;
    ebb_workflow wf =
        ebb_workflow_open(cx, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .name = "v42"});
    ebb_region region = ebb_workflow_region(cx, wf);
    ebb_status st = ebb_workflow_on_drain_fiber(cx, wf, "roll back", roll_back, &p);
    if (st != EBB_OK) return st;
    p.staging = ebb_fiber_spawn(cx, region, stage, &p, &(ebb_task_opts){.keep = true});
    (void)ebb_sleep(cx, &nap, 55 * EBB_MS);
    (void)ebb_workflow_request(cx, wf, EBB_CANCEL_USER, "wrong tag");
    (void)ebb_mask(cx); /* `p` lives on this stack: wait for all that uses it, come what may */
    st = ebb_workflow_join(cx, wf, &report);
    (void)ebb_unmask(cx);
    printf("v42 is %s: %s\n", ebb_workflow_state_name(report.state), ebb_status_text(st));
    return st;
}

int main(int argc, char **argv) {
    ebb_audit *audit = NULL;
    ebb_status st = argc > 1 ? ebb_audit_open(ebb_libc_allocator(), argv[1], &audit) : EBB_OK;
    if (st != EBB_OK) {
        fprintf(stderr, "publish: %s: %s\n", argv[1], ebb_status_text(st));
        return EBB_SERVICE_FAILED;
    }
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator(), .shutdown.audit = audit};
    int status = ebb_service_run(&opts, serve, NULL);
    ebb_audit_close(audit);
    return status;
}
