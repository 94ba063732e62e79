/* An epoch transition moves the participants to the next epoch, one by one. The service follows when all
 * are there. Called off before that, it reverts them to the epoch that the service is still in. */
#include "service.h"

static void apply(operation *op, uint32_t participant) {
    op->service->member_epoch[participant] = op->service->epoch + 1;
}

static void undo(operation *op, uint32_t participant) {
    op->service->member_epoch[participant] = op->service->epoch;
}

static void commit(operation *op) {
    op->service->epoch++;
}

const operation_kind epoch_transition = {.name = "epoch",
                                         .type = &ebb_workflow_epoch_transition_cancel,
                                         .resource = 2,
                                         .steps = PARTICIPANTS,
                                         .step_ns = 300 * EBB_MS,
                                         .undo_ns = 100 * EBB_MS,
                                         .apply = apply,
                                         .undo = undo,
                                         .commit = commit,
                                         .evidence = "participants"};
