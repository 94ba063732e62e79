/* What providers share: classes of statuses, tokens, formatted failures, states by name, queues of calls. */
#include "durable/provider.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

ebb_provider_class ebb_provider_class_of(ebb_status st) {
    switch (st) {
    case EBB_OK: return EBB_PROVIDER_OK;
    case EBB_ERR_UNAVAILABLE:
    case EBB_ERR_NOMEM:
    case EBB_ERR_BUSY: return EBB_PROVIDER_RETRYABLE;
    default: return EBB_PROVIDER_PERMANENT;
    }
}

void ebb__provider_fail(ebb_provider_call *c, ebb_status st, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ebb_provider_done(c, st, text);
}

ebb_provider_token ebb__token_new(const ebb_provider_host *host) {
    ebb_provider_token t;
    do {
        host->random(host->ctx, &t, sizeof t);
    } while (ebb__token_is_none(t));
    return t;
}

/* ---- states ------------------------------------------------------------------------------------------------- */

static const char *const states[] = {
    [EBB_INSTANCE_RUNNING] = "Running",     [EBB_INSTANCE_SUSPENDED] = "Suspended",
    [EBB_INSTANCE_COMPLETED] = "Completed", [EBB_INSTANCE_FAILED] = "Failed",
    [EBB_INSTANCE_CANCELLED] = "Cancelled", [EBB_INSTANCE_TERMINATED] = "Terminated",
};

enum { STATES = sizeof states / sizeof states[0] };

const char *ebb_instance_state_name(ebb_instance_state s) {
    return (unsigned)s < STATES && states[s] != NULL ? states[s] : "unknown";
}

ebb_status ebb__instance_state_of(const char *name, ebb_instance_state *out) {
    for (unsigned i = 1; i < STATES; i++) {
        if (strcmp(states[i], name) != 0) continue;
        *out = (ebb_instance_state)i;
        return EBB_OK;
    }
    return EBB_ERR_CORRUPT;
}

/* ---- queues ------------------------------------------------------------------------------------------------- */

void ebb__call_queue_push(ebb__call_queue *q, ebb_provider_call *c) {
    c->next = NULL;
    if (q->last != NULL) q->last->next = c;
    else q->first = c;
    q->last = c;
    q->calls++;
    q->bytes += c->bytes;
}

ebb_provider_call *ebb__call_queue_pop(ebb__call_queue *q) {
    ebb_provider_call *c = q->first;
    if (c == NULL) return NULL;
    q->first = c->next;
    if (q->first == NULL) q->last = NULL;
    q->calls--;
    q->bytes -= c->bytes;
    c->next = NULL;
    return c;
}

void ebb__call_queue_take(ebb__call_queue *from, ebb__call_queue *to, uint32_t most, uint64_t bytes) {
    while (from->first != NULL && to->calls < most) {
        if (to->calls > 0 && to->bytes + from->first->bytes > bytes) return;
        ebb__call_queue_push(to, ebb__call_queue_pop(from));
    }
}
