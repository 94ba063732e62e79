/* Leaks: the kernel reports each when it happens, and every enclosing workflow logs it. */
#include "kernel/names.h"
#include "workflow/workflow.h"

static const char *what_of(ebb__leak_kind what) {
    switch (what) {
    case EBB__LEAK_TASK: return "task";
    case EBB__LEAK_FINALIZER: return "finalizer";
    case EBB__LEAK_OBLIGATION: return "obligation";
    case EBB__LEAK_OPERATION: return "operation";
    default: return "aborted";
    }
}

static bool room(ebb__wf *wf) {
    assert(wf->leaks_n <= wf->leaks_room && wf->leaks_n < wf->leak_count); /* counted before it is kept */
    if (wf->leaks_n < wf->leaks_room) return true;
    uint32_t more = wf->leaks_room == 0 ? 4 : 2 * wf->leaks_room;
    ebb_workflow_leak *leaks = ebb__resize(ebb__rt_allocator(wf->rt), wf->leaks,
                                           wf->leaks_room * sizeof *leaks, more * sizeof *leaks);
    if (leaks == NULL) return false;
    wf->leaks = leaks;
    wf->leaks_room = more;
    return true;
}

static void id_text(char *out, size_t n, uint64_t id) {
    ebb__text t = ebb__text_in(out, n);
    if (id == 0) ebb__text_str(&t, "its region");
    else ebb__text_id(&t, id);
}

static void name(ebb__wf *wf, const ebb_workflow_leak *leak) {
    char id[40], owner[40], region[40];
    id_text(id, sizeof id, leak->id);
    id_text(owner, sizeof owner, leak->owner);
    id_text(region, sizeof region, leak->region.id);
    ebb__fact facts[] = {{"what", leak->what, 0}, {"kind", leak->kind, 0},
                         {"id", id, 0},           {"owner", owner, 0},
                         {"region", region, 0},   {"site", leak->site == NULL ? "?" : leak->site, 0},
                         {"name", leak->name, 0}};
    ebb__wf_remark(wf, EBB__WE_LEAK, facts, leak->name[0] == 0 ? 6 : 7);
}

static const char *kind_of(const ebb__leak *g) {
    if (g->what == EBB__LEAK_OPERATION) return g->operation;
    return g->kind == 0 ? "" : ebb__obligation_kind_name(g->kind);
}

/* A leak before the request is logged, but does not count against the workflow's outcome. */
void ebb__wf_leaked(ebb_runtime *rt, const ebb__leak *g) {
    ebb_workflow_leak leak = {.what = what_of(g->what),
                              .kind = kind_of(g),
                              .id = g->id,
                              .owner = g->owner,
                              .region = ebb__region_name(rt, g->region),
                              .site = g->site};
    if (g->name != NULL) ebb__message_copy(leak.name, g->name);
    for (ebb__wf *wf = ebb__wf_around(rt, g->region); wf != NULL; wf = ebb__wf_parent(wf)) {
        if (wf->ended) continue;
        if (wf->state != EBB_WORKFLOW_IDLE || wf->completing) {
            wf->leak_count++;
            if (room(wf)) wf->leaks[wf->leaks_n++] = leak;
        }
        name(wf, &leak);
    }
}

ebb_status ebb_workflow_leak_at(ebb_cx *cx, ebb_workflow workflow, uint32_t i, ebb_workflow_leak *out) {
    ebb__wf *wf = NULL;
    ebb_status st = ebb__wf_find(cx, workflow, &wf);
    if (st != EBB_OK) return st;
    if (i >= wf->leaks_n) return EBB_ERR_INVALID;
    *out = wf->leaks[i];
    return EBB_OK;
}
