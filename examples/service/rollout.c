/* A rollout brings a version to one stage after the other. Called off, it completes the stage that it is
 * at, and then gives every stage its version back, the last one first. */
#include <string.h>

#include "service.h"

static void apply(operation *op, uint32_t stage) {
    memcpy(op->before[stage], op->service->running[stage], NAME_MAX_BYTES);
    memcpy(op->service->running[stage], op->name, NAME_MAX_BYTES);
}

static void undo(operation *op, uint32_t stage) {
    bool applied = strcmp(op->service->running[stage], op->name) == 0;
    if (applied) memcpy(op->service->running[stage], op->before[stage], NAME_MAX_BYTES);
}

static void commit(operation *op) {
    (void)op; /* the last stage was the last step */
}

const operation_kind rollout = {.name = "rollout",
                                .type = &ebb_workflow_rollout_cancel,
                                .resource = 0,
                                .steps = STAGES,
                                .step_ns = 400 * EBB_MS,
                                .undo_ns = 100 * EBB_MS,
                                .apply = apply,
                                .undo = undo,
                                .commit = commit,
                                .evidence = "terminal_state"};
