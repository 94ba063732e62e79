/* What must hold, whatever the program did. */
#include "tests/driver/program/driver.h"

#include <inttypes.h>

/* ---- nobody waits for what has come ----------------------------------------------------------------------- */

static bool is_alive(const side *s, const node *n) {
    ebb_task_info info;
    if (n->ends > 0 || n->self.id == 0) return false;
    if (ebb_task_info_of(ebb_runtime_host(s->rt), n->self, &info) != EBB_OK) return false;
    return info.phase >= EBB_TASK_RUNNING && info.phase <= EBB_TASK_CANCELLING;
}

static bool has_come(const side *s, const node *n) {
    ebb_cx *host = ebb_runtime_host(s->rt);
    ebb_task_info info;
    ebb_region_state state;
    ebb_workflow_report flow;
    uint64_t item;
    switch (n->await) {
    case SLEEP: return n->nap.due != 0 && n->nap.due + EBB_MS <= s->advanced;
    case GRANT: return n->wait.cx != NULL && n->wait.granted != 0;
    case RECV: return ebb_chan_try_recv(host, s->chan, &item) == EBB_OK; /* granted ones are not his */
    case WATCH: return ebb_broadcast_get(s->broadcast, &item) > n->seen;
    case FUTURE: return ebb_future_status_of(n->future.f) != EBB_PENDING;
    case JOIN_TASK:
        return ebb_task_info_of(host, n->task, &info) == EBB_OK && info.phase == EBB_TASK_COMPLETED;
    case ACQUIRE: return s->sem.free > 0;
    case JOIN_REGION:
        return ebb_region_state_of(host, n->region, &state) == EBB_OK && state == EBB_REGION_CLOSED;
    case JOIN_FLOW:
        return ebb_workflow_report_of(host, n->flow, &flow) == EBB_OK && flow.state >= EBB_WORKFLOW_FINALIZED;
    default: return false;
    }
}

void judge_idle(side *s) {
    static const char *const what[] = {"nothing",  "a sleep",  "a send",  "an item",  "a permit",
                                       "a place",  "a region", "a task",  "a future", "a workflow",
                                       "a bridge", "a bridge", "a value", "nothing",  "a grant"};
    ebb_runtime_stats stats;
    char text[160];
    ebb_runtime_stats_of(s->rt, &stats);
    if (s->wrong[0] != 0) failed(s->hub, "side %u, heap: %s", s->number, s->wrong);
    if (ebb_heap_verify(s->rt, text, sizeof text) != EBB_OK)
        failed(s->hub, "side %u, heap: %s", s->number, text);
    if (stats.illegal != 0) failed(s->hub, "side %u tried an illegal transition", s->number);
    for (const node *n = s->nodes; n != NULL; n = n->next) {
        if (!n->waits || !is_alive(s, n) || !has_come(s, n)) continue;
        failed(s->hub, "side %u: a task waits for %s that has come, and nothing will wake it", s->number,
               what[n->await]);
    }
}

/* ---- everything has ended --------------------------------------------------------------------------------- */

static void judge_stats(side *s) {
    ebb_runtime_stats st;
    ebb_runtime_stats_of(s->rt, &st);
    s->abandoned = (uint32_t)st.abandoned;
    if (st.tasks + st.regions + st.obligations + st.runnable != 0) {
        failed(s->hub, "side %u is closed, with %u tasks, %u regions, %u obligations, %u runnable", s->number,
               st.tasks, st.regions, st.obligations, st.runnable);
    }
    if (st.ended != st.spawned) {
        failed(s->hub, "side %u: %" PRIu64 " tasks were spawned, %" PRIu64 " have ended", s->number,
               st.spawned, st.ended);
    }
}

/* Once each. */
static void judge_probes(const side *s) {
    for (const probe *p = s->probes; p != NULL; p = p->next) {
        uint32_t ends = p->done + p->cancels;
        if (ends > 1 || p->cleanups > p->attached) failed(s->hub, "an end was told twice");
        if (p->heard && ends == 0)
            failed(s->hub, "side %u: the end of %p was never told", s->number, (const void *)p);
        if (p->cleanups < p->attached) {
            failed(s->hub, "side %u: %u of %u cleanups ran", s->number, p->cleanups, p->attached);
        }
    }
    for (const call *c = s->calls; c != NULL; c = c->next) {
        if (!c->must) continue;
        if (c->releases == UINT32_MAX && c->uses == 0)
            failed(s->hub, "side %u: a finally never ran", s->number);
        if (c->releases == 0 && c->uses > 0) failed(s->hub, "side %u: a release never ran", s->number);
    }
}

static void judge_nodes(const side *s) {
    for (node *n = s->nodes; n != NULL; n = n->next) {
        uint32_t resolved = (uint32_t)n->committed + atomic_load(&n->aborts);
        if (n->kind == HOOK && n->counts && resolved != 1) {
            failed(s->hub, "side %u: an obligation was resolved %u times", s->number, resolved);
        }
        if (n->own.left > 0) failed(s->hub, "side %u: %u finalizers never ran", s->number, n->own.left);
    }
}

void judge_closed(side *s) {
    judge_stats(s);
    judge_probes(s);
    judge_nodes(s);
}

/* ---- the records ------------------------------------------------------------------------------------------ */

static bool has_gap(const side *s, const uint8_t *bytes, size_t n) {
    ebb_trace_reader r;
    ebb_event ev;
    if (ebb_trace_reader_open(&r, bytes, n) != EBB_OK)
        failed(s->hub, "side %u: its record has no header", s->number);
    while (ebb_trace_reader_next(&r, &ev) == EBB_OK) {
        if (ev.type == EBB_EV_GAP) return true;
    }
    return false;
}

static void judge_trace(side *s) {
    ebb_trace_reader r;
    ebb_event ev;
    ebb_hash hash;
    ebb_checker *c = ebb_checker_new(side_allocator(s));
    ebb_fingerprint *print = ebb_fingerprint_new(side_allocator(s));
    ebb_status read = ebb_trace_reader_open(&r, s->trace, s->trace_n), st = EBB_OK;
    while (st == EBB_OK && (read = ebb_trace_reader_next(&r, &ev)) == EBB_OK) {
        st = ebb_checker_event(c, &ev);
        ebb_fingerprint_event(print, &ev);
    }
    if (read < 0) failed(s->hub, "side %u, trace: %s", s->number, r.error);
    if (st == EBB_OK) st = ebb_checker_end(c, s->closed);
    const ebb_violation *v = ebb_checker_violation(c);
    if (v != NULL) {
        failed(s->hub, "side %u, trace: %s at event %" PRIu64 ": %s", s->number, ebb_oracle_name(v->oracle),
               v->event.decision_seq, v->text);
    }
    if (ebb_fingerprint_end(print, &hash) != EBB_OK)
        failed(s->hub, "side %u: its trace has no fingerprint", s->number);
    ebb_fingerprint_free(print);
    ebb_checker_free(c);
}

typedef struct again {
    const side *s;
    size_t n;
    bool differs;
} again;

static void compare(void *ctx, const void *bytes, size_t n) {
    again *a = ctx;
    if (a->n + n > a->s->trace_n || memcmp(a->s->trace + a->n, bytes, n) != 0) a->differs = true;
    a->n += n;
}

static void judge_replay(side *s) {
    again a = {.s = s};
    ebb_journal_replay_result result;
    ebb_status st = ebb_journal_replay(side_allocator(s), s->journal, s->journal_n, compare, &a, &result);
    if (st != EBB_OK)
        failed(s->hub, "side %u, replay: %s: %s", s->number, ebb_status_name(st), result.message);
    driver_tally.replayed++;
    if (a.differs || a.n != s->trace_n) failed(s->hub, "side %u: its replay has another trace", s->number);
}

static void judge_log(side *s) {
    ebb_audit_verdict v;
    if (s->log_n == 0 || atomic_load(&s->memory.refused) > 0)
        return; /* a line that was lost shows for ever */
    if (ebb_audit_verify(side_allocator(s), s->log, s->log_n, &v) == EBB_OK) return;
    TALK("%.*s", (int)s->log_n, s->log);
    failed(s->hub, "side %u, audit line %" PRIu64 ": %s: %s", s->number, v.line, v.invariant, v.text);
}

void judge_records(side *s) {
    s->memory.off = true;
    if (s->recorded && !has_gap(s, s->trace, s->trace_n)) {
        judge_trace(s);
        if (s->journaled && !has_gap(s, s->journal, s->journal_n)) judge_replay(s);
    }
    judge_log(s);
    for (size_t i = 0; i < s->trace_n; i++)
        s->hub->hash = (s->hub->hash ^ s->trace[i]) * UINT64_C(0x100000001b3);
    free(s->trace);
    free(s->journal);
    free(s->log);
}

tally driver_tally;

static void count_side(const side *s) {
    driver_tally.sides++;
    driver_tally.early += s->early;
    driver_tally.polls += s->polls;
    driver_tally.futures += s->futures;
    driver_tally.starved += atomic_load(&s->memory.refused) > 0;
    driver_tally.forced += s->abandoned > 0;
}

/* ---- what is left ----------------------------------------------------------------------------------------- */

void judge_end(hub *h) {
    for (uint32_t i = 0; i < h->sides; i++) {
        side *s = &h->side[i];
        long long live = atomic_load(&s->memory.live);
        count_side(s);
        if (live != 0) failed(h, "side %u: %lld blocks of memory are left", i, live);
    }
    for (size_t i = 0; i < h->n_words; i++) {
        if (atomic_load(&h->words[i]->freed) == 0) failed(h, "word %zu was never freed", i);
    }
    if (atomic_load(&h->objects) != 0)
        failed(h, "%lld objects were never freed", (long long)atomic_load(&h->objects));
}
