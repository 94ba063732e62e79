/* trace/check_status.c - rules of statuses: a region closes with the outcome of its tasks, and a join returns the
 * status of what it joins. */
#include "trace/check.h"

typedef ebb__region_entry region;

bool ebb__check_is_failure(int32_t status) {
    return status != EBB_OK && status != EBB_CANCELLED;
}

/* The first failure counts; without one, the first cancelled task. */
void ebb__check_ended(region *r, int32_t status) {
    if (ebb__check_is_failure(r->status) || status == EBB_OK) return;
    if (ebb__check_is_failure(status) || r->status == EBB_OK) r->status = status;
}

/* ---- refusals ------------------------------------------------------------------------------------------ */

/* A spawn without memory fails its region. The event comes after that, and the region may have closed meanwhile. */
bool ebb__check_refused(ebb_checker *c, const ebb_event *ev) {
    int32_t status = (int32_t)ev->value;
    region *r = ebb__check_region(c, ev->region_id);
    if (c->unexplained != 0 && c->unexplained == ev->region_id && c->refusal == status) c->unexplained = 0;
    if (r == NULL) return true; /* the id is an argument and may be wrong */
    if (status == EBB_ERR_NOMEM) r->no_memory = true;
    if (status == EBB_ERR_LIMIT) r->at_limit = true;
    return true;
}

bool ebb__check_refusals_traced(ebb_checker *c) {
    if (c->unexplained == 0) return true;
    return ebb__check_fail_names(c, EBB_ORACLE_FORMAT, "region", c->unexplained,
                                 "closed as if something was refused; the event for it", "refused", "none");
}

static bool was_refused(const region *r, int32_t status) {
    return (status == EBB_ERR_NOMEM && r->no_memory) || (status == EBB_ERR_LIMIT && r->at_limit);
}

/* ---- regions ------------------------------------------------------------------------------------------- */

/* The failure of a child that was not joined becomes its parent's. */
static bool has_failed_child(const ebb_checker *c, const region *r, int32_t status) {
    size_t at = 0;
    for (const region *child; (child = ebb__map_next(&c->regions, &at)) != NULL;) {
        if (child->parent == r->id && child->state == EBB_REGION_CLOSED && !child->joined &&
            child->status == status) {
            return true;
        }
    }
    return false;
}

bool ebb__check_closed_status(ebb_checker *c, const region *r, int32_t status) {
    if (status == r->status || was_refused(r, status)) return true;
    bool failed = ebb__check_is_failure(r->status);
    if (!failed && ebb__check_is_failure(status)) {
        if (has_failed_child(c, r, status)) return true;
    }
    if ((status == EBB_ERR_NOMEM || status == EBB_ERR_LIMIT) && c->unexplained == 0) {
        c->unexplained = r->id;
        c->refusal = status;
        return true;
    }
    return ebb__check_fail_names(c, EBB_ORACLE_FORMAT, "region", r->id, "status of what was in it",
                                 ebb_status_name((ebb_status)r->status), ebb_status_name((ebb_status)status));
}

bool ebb__check_joined_status(ebb_checker *c, const char *noun, uint64_t id, int32_t ended, int32_t joined) {
    if (ended == joined) return true;
    return ebb__check_fail_names(c, EBB_ORACLE_FORMAT, noun, id, "status at its join",
                                 ebb_status_name((ebb_status)ended), ebb_status_name((ebb_status)joined));
}
