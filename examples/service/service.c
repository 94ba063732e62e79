#include "service.h"

#include <stdio.h>
#include <string.h>

/* The part of the shutdown that is left once each workflow has seen to its own: every token is back. */
static ebb_status collect_tokens(ebb_cx *cx, ebb_drain *d, void *arg) {
    service *s = arg;
    char text[80];
    uint32_t back = 0;
    for (uint32_t i = 0; i < RESOURCES; i++) {
        ebb_wait wait = {0};
        if (ebb_sem_acquire(cx, &s->resources[i].turn, &wait) != EBB_OK) break; /* the time is over */
        ebb_sem_release(cx, &s->resources[i].turn);
        ebb_drain_progress(d, ++back, RESOURCES);
    }
    snprintf(text, sizeof text, "%u of %u are free", back, (unsigned)RESOURCES);
    ebb_drain_evidence(d, "fencing_tokens", text);
    return EBB_OK;
}

ebb_status service_open(ebb_cx *cx, service *s, ebb_workflow lifecycle) {
    static const char *const names[RESOURCES] = {"stages", "records", "participants"};
    s->lifecycle = lifecycle;
    s->region = ebb_workflow_region(cx, lifecycle);
    for (uint32_t i = 0; i < RESOURCES; i++) {
        s->resources[i].name = names[i];
        ebb_sem_init(&s->resources[i].turn, 1);
    }
    ebb_status st = ebb_workflow_on_drain_fiber(cx, lifecycle, "fencing tokens", collect_tokens, s);
    return st == EBB_OK ? health_open(cx, s) : st;
}

/* ---- what is left ------------------------------------------------------------------------------------ */

/* All stages have the same version, nothing is staged, and all participants are in the service's epoch. */
static bool is_whole(const service *s) {
    bool whole = true;
    for (uint32_t i = 1; i < STAGES; i++) whole = whole && strcmp(s->running[i], s->running[0]) == 0;
    for (uint32_t i = 0; i < RECORDS; i++) whole = whole && s->staged[i][0] == 0;
    for (uint32_t i = 0; i < PARTICIPANTS; i++) whole = whole && s->member_epoch[i] == s->epoch;
    return whole;
}

ebb_status service_check(const service *s) {
    bool forced = false;
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        const operation *op = &s->operations[i];
        if (op->begun > 0 && !op->forced) return EBB_FAILED;
        forced = forced || op->forced;
    }
    for (uint32_t i = 0; i < RESOURCES; i++) {
        if (s->resources[i].turn.free != 1) return EBB_FAILED; /* somebody has kept a token */
    }
    return s->health.told && (forced || is_whole(s)) ? EBB_OK : EBB_FAILED;
}
