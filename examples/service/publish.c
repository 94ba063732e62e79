/* A publish stages its records one by one, and then makes them visible at once. Called off before that,
 * it removes what it has staged. */
#include <string.h>

#include "service.h"

static void apply(operation *op, uint32_t record) {
    memcpy(op->service->staged[record], op->name, NAME_MAX_BYTES);
}

static void undo(operation *op, uint32_t record) {
    memset(op->service->staged[record], 0, NAME_MAX_BYTES);
}

static void commit(operation *op) {
    memcpy(op->service->published, op->name, NAME_MAX_BYTES);
    memset(op->service->staged, 0, sizeof op->service->staged);
}

const operation_kind publish = {.name = "publish",
                                .type = &ebb_workflow_publish_abort,
                                .resource = 1,
                                .steps = RECORDS,
                                .step_ns = 250 * EBB_MS,
                                .undo_ns = 50 * EBB_MS,
                                .apply = apply,
                                .undo = undo,
                                .commit = commit,
                                .evidence = "partial_writes"};
