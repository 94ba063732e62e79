/* The verifier: checks every cell and every reference of the heap, without trusting the collector's bits. */
#include "base/text.h"
#include "future/future.h"
#include "future/remote.h"

typedef struct verdict {
    ebb__text text;
    bool bad;
} verdict;

static void wrong(verdict *v, const char *what, const ebb__cell *c) {
    if (v->bad) return;
    v->bad = true;
    ebb__text_str(&v->text, what);
    if (c == NULL || c->type == NULL) return;
    ebb__text_str(&v->text, ", at a ");
    ebb__text_str(&v->text, c->type->name);
    if (c->type->reserved & EBB__TYPE_FUTURE && ((const ebb_future *)(const void *)c)->site != NULL) {
        ebb__text_str(&v->text, " made at ");
        ebb__text_str(&v->text, ((const ebb_future *)(const void *)c)->site);
    }
}

static bool is_cell(const ebb__heap *h, const ebb__cell *c) {
    if (ebb__is_static(c)) return true;
    const ebb__page *b = ebb__page_of(c);
    return b->heap == h && ebb__cell_at((ebb__page *)(uintptr_t)b, ebb__cell_index(b, c)) == c;
}

/* A cell that something refers to must be allocated. */
static void check_reference(verdict *v, const ebb__heap *h, const void *to, const ebb__cell *from,
                            const char *what) {
    const ebb__cell *c = to;
    if (c == NULL) return;
    if (!is_cell(h, c)) wrong(v, what, from);
    else if (c->type == NULL) wrong(v, what, from);
}

static void check_members(verdict *v, ebb__heap *h, ebb__region_futures *s) {
    for (uint32_t i = 0; i < s->members_n; i++) {
        ebb__cell *c = ebb__member_cell(s->members[i]);
        if (!is_cell(h, c) || c->type == NULL) {
            wrong(v, "a member of a region was freed", NULL);
            return;
        }
        if (c->member != i + 1 || (c->region & ~EBB__CELL_FLAGS) != s->index)
            wrong(v, "a member has a wrong index", c);
    }
    for (ebb_future *f = s->first; f != NULL; f = f->local_next) {
        if (f->cell.type == NULL) {
            wrong(v, "a queued future was freed", NULL);
            return;
        }
        if (f->cell.member == 0) wrong(v, "a queued future is not a member", &f->cell);
        if (!(f->flags & EBB__F_QUEUED)) wrong(v, "a queued future is not flagged as queued", &f->cell);
    }
}

static void check_ring(verdict *v, ebb__heap *h, ebb_future *f) {
    ebb__edge *e = f->waiters;
    if (e == NULL) return;
    do {
        if (ebb__edge_input(e) != f) wrong(v, "a waiter waits for another future", &f->cell);
        if (e->next == NULL || e->next->prev != e) {
            wrong(v, "its ring of waiters is broken", &f->cell);
            return;
        }
        if (v->bad) return;
        if (!(e->input & EBB__EDGE_AWAIT))
            check_reference(v, h, ebb__edge_node(e), &f->cell, "a waiter was freed");
        e = e->next;
    } while (e != f->waiters);
}

static void check_future(verdict *v, ebb__heap *h, ebb_future *f) {
    ebb_future_state state = ebb__state_of(f);
    bool ended = state >= EBB_FUTURE_COMPLETED;
    if (state == EBB_FUTURE_PENDING && f->cell.member == 0)
        wrong(v, "a pending future is not a member", &f->cell);
    if (f->holds > 0 && f->cell.member == 0) wrong(v, "a future that is held is not a member", &f->cell);
    if (f->flags & EBB__F_FINISHED && !ended) wrong(v, "a pending future is finished", &f->cell);
    if (f->flags & EBB__F_FINISHED && !(f->flags & EBB__F_QUEUED) && f->waiters != NULL) {
        wrong(v, "a finished future has waiters", &f->cell);
    }
    check_reference(v, h, f->hooks, &f->cell, "its callback was freed");
    if (ended) check_reference(v, h, ebb__value_cell(&f->value), &f->cell, "its value was freed");
    uint32_t kind = f->cell.type->reserved;
    if (kind & EBB__TYPE_SINGLE) {
        check_reference(v, h, ebb__edge_input(&((ebb__single *)(void *)f)->edge), &f->cell,
                        "its input was freed");
    }
    if (kind & EBB__TYPE_MANY) {
        for (ebb__edges *p = ((ebb__many *)(void *)f)->edges; p != NULL && !v->bad; p = p->next) {
            check_reference(v, h, p, &f->cell, "its edges were freed");
            for (uint32_t i = 0; i < p->n; i++) {
                check_reference(v, h, ebb__edge_input(&p->item[i].edge), &f->cell,
                                "one of its inputs was freed");
            }
        }
    }
    if (!v->bad) check_ring(v, h, f);
}

static void check_page(verdict *v, ebb__heap *h, ebb__page *b) {
    const char *end = b->cls != NULL && b == b->cls->page ? b->cls->cur : (char *)b + EBB__PAGE_SIZE;
    for (uint32_t i = 0; i < b->cells && !v->bad; i++) {
        ebb__cell *c = ebb__cell_at(b, i);
        if ((char *)c >= end) return;
        if (b->unswept && !ebb__is_marked(c)) continue; /* unreachable, and so may be its references */
        if (c->type != NULL && c->type->reserved & EBB__TYPE_FUTURE)
            check_future(v, h, (ebb_future *)(void *)c);
    }
}

static void check_pages(verdict *v, ebb__heap *h, ebb__page *b) {
    for (; b != NULL && !v->bad; b = b->next) check_page(v, h, b);
}

static void check_free(verdict *v, const ebb__heap *h, const ebb__class *k) {
    for (const ebb__cell *c = k->free; c != NULL && !v->bad; c = ebb__free_next(c)) {
        if (!is_cell(h, c) || c->type != NULL) wrong(v, "a cell on a free list is in use", NULL);
    }
}

static void check_heap(verdict *v, ebb__heap *h) {
    for (uint32_t i = 1; i < h->regions_n && !v->bad; i++) {
        if (ebb__region_futures_at(h, i) != NULL) check_members(v, h, ebb__region_futures_at(h, i));
    }
    for (ebb_remote *r = h->exports; r != NULL && !v->bad; r = r->next) {
        check_reference(v, h, r->future, NULL, "an exported future was freed");
    }
    for (uint32_t i = 1; i < EBB__CLASSES && !v->bad; i++) {
        check_free(v, h, &h->classes[i]);
        check_pages(v, h, h->classes[i].pages);
        check_pages(v, h, h->classes[i].unswept);
        if (h->classes[i].page != NULL && !h->classes[i].page->unswept) check_page(v, h, h->classes[i].page);
    }
    check_pages(v, h, h->large);
}

ebb_status ebb_heap_verify(ebb_runtime *rt, char *text, size_t room) {
    char own[160];
    verdict v = {
        ebb__text_in(text != NULL && room > 0 ? text : own, text != NULL && room > 0 ? room : sizeof own),
        false};
    if (ebb__heap_at(rt) == NULL) return EBB_OK;
    if (ebb__heap_at(rt)->thread != ebb__this_thread()) return EBB_ERR_THREAD;
    check_heap(&v, ebb__heap_at(rt));
    return v.bad ? EBB_ERR_CORRUPT : EBB_OK;
}

void ebb__verify_and_report(ebb__heap *h) {
    char text[160];
    if (ebb_heap_verify(h->rt, text, sizeof text) != EBB_OK) ebb__misuse(h, EBB_ERR_CORRUPT, text, NULL);
}
