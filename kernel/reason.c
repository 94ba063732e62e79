#include "kernel/reason.h"

#include "kernel/record.h"

static const struct {
    const char *name;
    uint8_t severity;
} kinds[EBB_CANCEL_KINDS] = {
    [EBB_CANCEL_NONE] = {"NONE", 0},
    [EBB_CANCEL_USER] = {"USER", EBB_SEVERITY_POLITE},
    [EBB_CANCEL_RACE_LOST] = {"RACE_LOST", EBB_SEVERITY_POLITE},
    [EBB_CANCEL_DISCONNECT] = {"DISCONNECT", EBB_SEVERITY_POLITE},
    [EBB_CANCEL_TIMEOUT] = {"TIMEOUT", EBB_SEVERITY_URGENT},
    [EBB_CANCEL_BUDGET] = {"BUDGET", EBB_SEVERITY_URGENT},
    [EBB_CANCEL_SIBLING_FAILED] = {"SIBLING_FAILED", EBB_SEVERITY_URGENT},
    [EBB_CANCEL_LEASE_LOST] = {"LEASE_LOST", EBB_SEVERITY_URGENT},
    [EBB_CANCEL_RESOURCE] = {"RESOURCE", EBB_SEVERITY_URGENT},
    [EBB_CANCEL_SHUTDOWN] = {"SHUTDOWN", EBB_SEVERITY_FORCED},
    [EBB_CANCEL_PARENT] = {"PARENT", 0},
};

const char *ebb_cancel_kind_name(ebb_cancel_kind kind) {
    if (kind == EBB_CANCEL_DROPPED) return "DROPPED";
    return (unsigned)kind < EBB_CANCEL_KINDS ? kinds[kind].name : "?";
}

ebb_severity ebb_cancel_kind_severity(ebb_cancel_kind kind) {
    return (ebb_severity)((unsigned)kind < EBB_CANCEL_KINDS ? kinds[kind].severity : 0);
}

/* Below 0: a is stronger. Zero only if all fields are equal. */
static int compare(const ebb_reason *a, const ebb_reason *b) {
    if (a->severity != b->severity) return a->severity > b->severity ? -1 : 1;
    if (a->sequence != b->sequence) return a->sequence < b->sequence ? -1 : 1;
    if (a->runtime != b->runtime) return a->runtime < b->runtime ? -1 : 1;
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->origin != b->origin) return a->origin < b->origin ? -1 : 1;
    return memcmp(a->message, b->message, sizeof a->message);
}

ebb_reason ebb_reason_strengthen(const ebb_reason *a, const ebb_reason *b) {
    if (a->kind == EBB_CANCEL_NONE) return *b;
    if (b->kind == EBB_CANCEL_NONE) return *a;
    return compare(a, b) <= 0 ? *a : *b;
}

ebb_budget ebb_budget_combine(ebb_budget a, ebb_budget b) {
    return (ebb_budget){
        .deadline = a.deadline < b.deadline ? a.deadline : b.deadline,
        .polls = a.polls < b.polls ? a.polls : b.polls,
        .priority = a.priority > b.priority ? a.priority : b.priority,
    };
}

static uint64_t later(uint64_t t, uint64_t by) {
    return by > EBB_FOREVER - t ? EBB_FOREVER : t + by;
}

ebb_budget ebb__cleanup_budget(const ebb_runtime *rt, uint8_t severity, uint8_t priority) {
    const ebb_cleanup_budget *c = &rt->cleanup[severity & 3];
    return (ebb_budget){later(rt->now, c->time_ns), c->polls, priority};
}

uint64_t ebb__force_at(uint64_t now, uint64_t deadline) {
    if (deadline <= now || deadline == EBB_FOREVER) return deadline;
    uint64_t kept = ebb__kept_of(deadline - now) / EBB__KEPT_UNIT;
    if (kept > UINT32_MAX) kept = UINT32_MAX;
    assert(kept * EBB__KEPT_UNIT <= deadline - now);
    return deadline - kept * EBB__KEPT_UNIT;
}

void ebb__cap_by_deadline(const ebb_runtime *rt, uint64_t own, uint64_t *deadline, uint64_t *force_at) {
    if (own == EBB_FOREVER || own < rt->now) return;
    uint64_t end = later(own, rt->cleanup[EBB_SEVERITY_URGENT].time_ns);
    uint64_t force = ebb__force_at(own, end);
    if (end < *deadline) *deadline = end;
    if (force < *force_at) *force_at = force;
}

void ebb__message_copy(char out[EBB_MESSAGE_MAX + 1], const char *message) {
    size_t n = 0;
    if (message == NULL) message = "";
    while (n < EBB_MESSAGE_MAX && message[n] != 0) n++;
    bool whole = message[n] == 0;
    if (!whole) n -= 3;
    while (!whole && n > 0 && ((unsigned char)message[n] & 0xc0) == 0x80) n--; /* not inside a character */
    memset(out, 0, EBB_MESSAGE_MAX + 1);
    memcpy(out, message, n);
    if (!whole) memcpy(out + n, "...", sizeof "...");
}

ebb_reason ebb__region_reason(const ebb_runtime *rt, const ebb__region *r) {
    ebb_reason reason = {0};
    if (r->request == 0) return reason;
    reason.kind = ebb__request_kind(r->request);
    reason.severity = ebb__request_severity(r->request);
    reason.runtime = rt->id;
    reason.origin = r->origin;
    reason.sequence = r->sequence;
    const char *message = ebb__cold_of(r)->message;
    if (message[0] != 0) memcpy(reason.message, message, sizeof reason.message);
    return reason;
}

/* ---- the cause chain ----------------------------------------------------------------------------------- */

static size_t link_bytes(const ebb__region *r) {
    size_t n = 32;
    for (const char *c = ebb__cold_of(r)->message; *c != 0; c++) n++;
    return n;
}

/* The first region above `r`, or `r` itself, whose request did not come from its parent. */
static ebb__region *root_cause(const ebb_runtime *rt, ebb__region *r) {
    while (ebb__request_kind(r->request) == EBB_CANCEL_PARENT && r->parent != 0)
        r = ebb__region_at(rt, r->parent);
    return r;
}

static void put_link(const ebb_runtime *rt, ebb_region_cause *out, uint32_t *n, const ebb__region *r) {
    if (out != NULL) out[*n] = (ebb_region_cause){{ebb__region_id(rt, r)}, ebb__region_reason(rt, r)};
    ++*n;
}

/* The root cause always has a place in `out`. */
static uint32_t read_chain(const ebb_runtime *rt, ebb__region *r, ebb_region_cause *out, uint32_t room) {
    ebb__region *root = root_cause(rt, r);
    size_t bytes = link_bytes(root);
    uint32_t n = 0;
    for (; r != root && n + 1 < room; r = ebb__region_at(rt, r->parent)) {
        bytes += link_bytes(r);
        if (bytes > rt->chain_bytes) break;
        put_link(rt, out, &n, r);
    }
    put_link(rt, out, &n, root);
    return n;
}

ebb_status ebb__cause_chain(ebb_cx *cx, ebb_region region, ebb_region_cause *out, uint32_t room, uint32_t *n,
                            bool *truncated) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    *n = 0;
    *truncated = false;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (st != EBB_OK) return st;
    if (room > rt->chain_depth) room = rt->chain_depth;
    ebb__journal(rt, cx, (ebb_record){.type = J_CHAIN, .region = region.id, .value = room});
    if (r->request == 0 || room == 0) return EBB_OK;
    *n = read_chain(rt, r, out, room);
    *truncated = ebb__cold_of(root_cause(rt, r))->depth + *n - 1 != ebb__cold_of(r)->depth;
    if (*truncated) ebb__emit_region(rt, EBB_EV_CHAIN_TRUNCATED, r, 0, *n, 0);
    return EBB_OK;
}

ebb_status ebb_region_causes(ebb_cx *cx, ebb_region region, ebb_region_cause *out, uint32_t room, uint32_t *n,
                             bool *truncated) {
    return ebb__cause_chain(cx, region, out, room, n, truncated);
}
