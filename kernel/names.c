/* kernel/names.c - names of phases, states, severities, lanes and kinds of obligations. */
#include "kernel/names.h"

#define NAME_IN(names, i) ((i) < sizeof(names) / sizeof *(names) ? (names)[i] : "?")

const char *ebb__phase_name(uint32_t phase) {
    static const char *const names[] = {"none",       "Created",    "Running",  "CancelRequested",
                                        "Cancelling", "Finalizing", "Completed"};
    return NAME_IN(names, phase);
}

const char *ebb__region_state_name(uint32_t state) {
    static const char *const names[] = {"none", "Open", "Closing", "Draining", "Finalizing", "Closed"};
    return NAME_IN(names, state);
}

const char *ebb__severity_name(uint32_t severity) {
    static const char *const names[] = {"none", "polite", "urgent", "forced"};
    return NAME_IN(names, severity);
}

const char *ebb__lane_name(uint32_t lane) {
    static const char *const names[] = {"none", "cancel", "timed", "ready"};
    return NAME_IN(names, lane);
}

const char *ebb__obligation_kind_name(uint32_t kind) {
    static const char *const names[] = {"none", "permit", "ack", "lease", "fence", "io", "transaction"};
    return NAME_IN(names, kind);
}
