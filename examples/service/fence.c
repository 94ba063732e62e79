#include "service.h"

/* Runs when the obligation is aborted, by its holder or because it was forgotten: the next one has its
 * turn. */
static void given_up(void *arg) {
    fence *f = arg;
    f->token = 0;
    ebb_sem_release(ebb_runtime_host(f->rt), &f->resource->turn);
}

ebb_status fence_take(ebb_cx *cx, fence *f, resource *r, ebb_region region) {
    ebb_wait wait = {0};
    ebb_status st = ebb_sem_acquire(cx, &r->turn, &wait);
    if (st != EBB_OK) return st;
    *f = (fence){.resource = r, .rt = ebb_cx_runtime(cx), .token = ++r->last_token};
    f->owed = ebb_region_reserve(cx, region, EBB_OBLIGATION_FENCE, given_up, f);
    st = ebb_id_status(f->owed.id);
    if (st == EBB_OK) return EBB_OK;
    given_up(f); /* the region admits nothing any more */
    return st;
}

void fence_give_back(ebb_cx *cx, fence *f, bool done) {
    if (f->token == 0) return;
    if (!done) {
        (void)ebb_obligation_abort(cx, f->owed);
        return;
    }
    (void)ebb_obligation_commit(cx, f->owed);
    f->token = 0;
    ebb_sem_release(cx, &f->resource->turn);
}
