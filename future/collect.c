/* A collection in steps: roots, marking, drops, marking again, users' objects, sweeping. heap.h says why this is
 * sufficient. Nothing here allocates, and of user code only trace functions run. */
#include <assert.h>

#include "base/alloc.h"
#include "future/future.h"
#include "future/region_futures.h"
#include "future/remote.h"

struct ebb_gc_marker {
    ebb__heap *heap;
    uint32_t work;
};

/* ---- gray ------------------------------------------------------------------------------------------------- */

static void gray_push(ebb__heap *h, ebb__page *b, const ebb__cell *c) {
    if (b->gray_next != NULL) return;
    /* by type, as for size classes */
    ebb__page **list = c->type->reserved & EBB__TYPE_OWN ? &h->gray_own : &h->gray_users;
    b->gray_next = *list != NULL ? *list : b;
    *list = b;
}

static ebb__page *gray_pop(ebb__page **list) {
    ebb__page *b = *list;
    if (b == NULL) return NULL;
    *list = b->gray_next == b ? NULL : b->gray_next;
    b->gray_next = NULL;
    return b;
}

void ebb__shade_value(ebb__heap *h, const ebb_value *v) {
    if (h->phase != EBB__GC_IDLE && ebb__value_cell(v) != NULL) ebb__shade_slow(ebb__value_cell(v));
}

bool ebb__is_marked(const ebb__cell *c) {
    const ebb__page *b = ebb__page_of(c);
    uint32_t i = ebb__cell_index(b, c);
    return b->mark[i / 64] >> (i % 64) & 1;
}

void ebb__shade_slow(ebb__cell *c) {
    if (c->type == NULL || ebb__is_static(c)) return;
    ebb__page *b = ebb__page_of(c);
    uint32_t i = ebb__cell_index(b, c);
    uint64_t bit = UINT64_C(1) << (i % 64);
    if (b->mark[i / 64] & bit) return;
    b->mark[i / 64] |= bit;
    if (b->heap->phase > EBB__GC_MARK) b->heap->revived = true;
    b->heap->marked_bytes += b->cls == NULL ? b->bytes : b->cell_size;
    if (c->type->trace == NULL) return;
    b->gray[i / 64] |= bit;
    gray_push(b->heap, b, c);
}

/* A cell made during a collection is not traced, because it refers to marked cells only. A user's object is traced,
 * because changes to its references are not announced. */
void ebb__mark_new(ebb__cell *c) {
    ebb__page *b = ebb__page_of(c);
    uint32_t i = ebb__cell_index(b, c);
    uint64_t bit = UINT64_C(1) << (i % 64);
    if (!(c->type->reserved & EBB__TYPE_OWN) && b->heap->phase != EBB__GC_SWEEP) {
        b->mark[i / 64] &= ~bit; /* the bit may be from the cell's last user */
        ebb__shade_slow(c);
    } else {
        b->mark[i / 64] |= bit;
    }
}

void ebb_gc_mark(ebb_gc_marker *t, const void *object_or_future) {
    if (object_or_future == NULL) return;
    t->work++;
    ebb__shade_slow(ebb__cell_of(object_or_future));
}

void ebb__trace_cell(ebb_gc_marker *t, const void *cell) {
    if (cell == NULL) return;
    t->work++;
    ebb__shade_slow((ebb__cell *)(uintptr_t)cell);
}

void ebb_gc_mark_value(ebb_gc_marker *t, const ebb_value *v) {
    ebb__cell *c = ebb__value_cell(v);
    if (c != NULL) ebb__trace_cell(t, c);
}

/* ---- marking ---------------------------------------------------------------------------------------------- */

static void trace_page(ebb_gc_marker *t, ebb__page *b) {
    uint32_t words = (b->cells + 63) / 64;
    for (uint32_t w = 0; w < words; w++) {
        while (b->gray[w] != 0) {
            uint32_t bit = (uint32_t)__builtin_ctzll(b->gray[w]);
            b->gray[w] &= b->gray[w] - 1;
            ebb__cell *c = ebb__cell_at(b, w * 64 + bit);
            t->work++;
            if (c->type == NULL || c->type->trace == NULL) continue; /* freed since it became gray */
            void *object = c->type->reserved & EBB__TYPE_OWN ? (void *)c : (void *)(c + 1);
            c->type->trace(object, t);
        }
    }
}

/* Traces until nothing is gray or `limit` is reached. True if nothing is gray. */
static bool mark_own(ebb_gc_marker *t, uint32_t limit) {
    ebb__page *b;
    while (t->work < limit && (b = gray_pop(&t->heap->gray_own)) != NULL) trace_page(t, b);
    return t->heap->gray_own == NULL;
}

/* Traces users' objects, and everything that only they refer to. */
static void mark_users(ebb_gc_marker *t) {
    ebb__page *b;
    for (;;) {
        while ((b = gray_pop(&t->heap->gray_users)) != NULL) trace_page(t, b);
        if (mark_own(t, UINT32_MAX) && t->heap->gray_users == NULL) return;
    }
}

/* ---- members ---------------------------------------------------------------------------------------------- */

/* Visits the members of all regions, the last first. A removed member's place is taken by the last one, which has
 * been visited, so that none is missed. */
static bool each_member(ebb_gc_marker *t, uint32_t limit,
                        void (*visit)(ebb_gc_marker *t, ebb__region_futures *s, uintptr_t m)) {
    ebb__heap *h = t->heap;
    for (; h->at_region < h->regions_n; h->at_region++, h->at_member = UINT32_MAX) {
        ebb__region_futures *s = ebb__region_futures_at(h, h->at_region);
        if (s == NULL) continue;
        if (h->at_member > s->members_n) h->at_member = s->members_n;
        while (h->at_member > 0) {
            if (t->work >= limit) return false;
            t->work++;
            visit(t, s, s->members[--h->at_member]);
        }
    }
    return true;
}

static void mark_root(ebb_gc_marker *t, ebb__region_futures *s, uintptr_t m) {
    (void)t;
    (void)s;
    ebb__cell *c = ebb__member_cell(m);
    if (ebb__member_is_root(m)) ebb__shade_slow(c);
}

static void drop_member(ebb_gc_marker *t, ebb__region_futures *s, uintptr_t m) {
    ebb__cell *c = ebb__member_cell(m);
    if (ebb__is_marked(c) || !(c->type->reserved & EBB__TYPE_FUTURE)) return;
    ebb_future *f = (ebb_future *)(void *)c;
    (void)s;
    if (ebb__cancel_as(f, EBB_CANCEL_DROPPED)) t->heap->stats.dropped++;
    else ebb__shade_slow(c); /* another thread has just ended it, and its message is to come */
}

static void mark_exports(ebb__heap *h) {
    for (ebb_remote *r = h->exports; r != NULL; r = r->next) ebb__shade_slow(&r->future->cell);
}

/* ---- sweeping --------------------------------------------------------------------------------------------- */

static bool is_owned_word(const ebb_value *v) {
    return v->type != NULL && v->type->size == 0 && v->type->free != NULL;
}

/* True if a future owns a word besides its value. */
static bool keeps_word(ebb_future *f) {
    ebb_value *v;
    if (!(f->cell.type->reserved & EBB__TYPE_KEEPS)) return false;
    for (uint32_t i = 0; (v = ebb__kind_of(f)->kept(f, i)) != NULL; i++) {
        if (is_owned_word(v)) return true;
    }
    return false;
}

/* True if a type's free has to be called before the cell is freed. */
static bool needs_free(ebb__cell *c) {
    if (c->type->reserved & EBB__TYPE_FUTURE) {
        ebb_future *f = (ebb_future *)(void *)c;
        return is_owned_word(&f->value) || keeps_word(f);
    }
    return !(c->type->reserved & EBB__TYPE_OWN) && c->type->free != NULL;
}

/* A read after the free finds bytes of 0xEB and a type of NULL. */
static void poison(ebb__page *b, ebb__cell *c) {
    c->type = NULL;
#ifdef NDEBUG
    if (!b->heap->opts.debug && !b->heap->opts.every_time) return;
#endif
    if (b->cls != NULL) memset(c + 1, 0xEB, b->cell_size - sizeof *c);
}

/* True if the cell was freed. */
static bool sweep_cell(ebb__heap *h, ebb__page *b, ebb__cell *c) {
    if (needs_free(c)) {
        ebb__mark_new(c); /* it stays until its free has run */
        ebb__free_link(c, h->dying);
        h->dying = c;
        return false;
    }
    h->stats.swept++;
    poison(b, c);
    return true;
}

static void release_cell(ebb__page *b, ebb__cell *c) {
    poison(b, c);
    if (b->unswept) return; /* the sweep adds it to the free list */
    ebb__free_link(c, b->cls->free);
    b->cls->free = c;
}

static uint32_t cells_in_use(const ebb__class *k, const ebb__page *b) {
    if (b != k->page) return b->cells;
    return (uint32_t)((size_t)(k->cur - ((const char *)b + b->first)) / k->size);
}

/* Puts a swept page back: to its class, or to the free pages if no cell of it is live. */
static void put_swept(ebb__heap *h, ebb__class *k, ebb__page *b, ebb__cell *first, ebb__cell *last,
                      uint32_t free) {
    b->unswept = false;
    if (free == b->cells && b != k->page) {
        b->next = h->free_pages;
        h->free_pages = b;
        b->chunk->free++;
        h->in_use--;
        return;
    }
    if (last != NULL) {
        ebb__free_link(last, k->free);
        k->free = first;
    }
    b->next = b == k->page ? NULL : k->pages;
    if (b != k->page) k->pages = b;
}

bool ebb__sweep_page(ebb__heap *h, ebb__class *k) {
    ebb__page *b = k->unswept;
    if (b == NULL) return false;
    k->unswept = b->next;
    ebb__cell *first = NULL, *last = NULL;
    uint32_t n = cells_in_use(k, b), free = 0;
    for (uint32_t i = n; i-- > 0;) {
        ebb__cell *c = ebb__cell_at(b, i);
        bool marked = b->mark[i / 64] >> (i % 64) & 1;
        if (c->type != NULL && (marked || !sweep_cell(h, b, c))) continue;
        ebb__free_link(c, first);
        first = c;
        if (last == NULL) last = c;
        free++;
    }
    put_swept(h, k, b, first, last, free);
    return true;
}

static void sweep_large(ebb__heap *h) {
    ebb__page **at = &h->large;
    while (*at != NULL) {
        ebb__page *b = *at;
        ebb__cell *c = ebb__cell_at(b, 0);
        if (b->mark[0] & 1 || !sweep_cell(h, b, c)) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        h->stats.bytes -= b->bytes;
        ebb__free(&h->allocator, b->memory, b->bytes);
    }
}

static bool sweep_some(ebb_gc_marker *t, uint32_t limit) {
    ebb__heap *h = t->heap;
    for (; h->sweep_class < EBB__CLASSES; h->sweep_class++) {
        ebb__class *k = &h->classes[h->sweep_class];
        while (k->unswept != NULL) {
            if (t->work >= limit) return false;
            t->work += k->unswept->cells / 4; /* a live cell costs a look at one bit */
            ebb__sweep_page(h, k);
        }
    }
    return true;
}

/* ---- phases ----------------------------------------------------------------------------------------------- */

static void clear_marks(ebb__page *b) {
    for (; b != NULL; b = b->next) {
        memset(b->mark, 0, sizeof b->mark);
        memset(b->gray, 0, sizeof b->gray);
    }
}

static void mark_only(const ebb__cell *c) {
    ebb__page *b = ebb__page_of(c);
    uint32_t i = ebb__cell_index(b, c);
    b->mark[i / 64] |= UINT64_C(1) << (i % 64);
}

/* Dying cells stay until ebb__bury. They are not traced, since their references may be freed already. */
static void mark_dying(ebb__heap *h) {
    for (ebb__cell *c = h->dying; c != NULL; c = ebb__free_next(c)) mark_only(c);
    if (h->burying != NULL) mark_only(h->burying);
}

static void begin(ebb__heap *h) {
    for (uint32_t i = 1; i < EBB__CLASSES; i++) {
        clear_marks(h->classes[i].pages);
        clear_marks(h->classes[i].page);
    }
    clear_marks(h->large);
    h->stats.collections++;
    h->since = 0;
    h->marked_bytes = 0;
    h->revived = false;
    h->at_region = 1;
    h->at_member = UINT32_MAX;
    h->phase = EBB__GC_ROOTS;
    mark_dying(h);
    mark_exports(h);
}

/* Marks all pages of a class as unswept. Until its sweep a page has no cells in the free list. */
static void unsweep(ebb__class *k) {
    k->free = NULL;
    k->unswept = k->pages;
    k->pages = NULL;
    if (k->page != NULL) {
        k->page->next = k->unswept;
        k->unswept = k->page;
    }
    for (ebb__page *b = k->unswept; b != NULL; b = b->next) b->unswept = true;
}

/* A user's object may have got a reference to a cell that was marked after the object was traced. So all users'
 * objects are traced again. */
static void regray_users(ebb__heap *h, ebb__page *b) {
    for (; b != NULL; b = b->next) {
        if (b->cls == NULL && ebb__cell_at(b, 0)->type->reserved & EBB__TYPE_OWN) continue;
        memcpy(b->gray, b->mark, sizeof b->gray);
        if (b->gray_next != NULL) continue;
        b->gray_next = h->gray_users != NULL ? h->gray_users : b;
        h->gray_users = b;
    }
}

/* References of dying cells may be freed already. */
static void ungray(const ebb__cell *c) {
    ebb__page *b = ebb__page_of(c);
    uint32_t i = ebb__cell_index(b, c);
    b->gray[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

static void regray_all_users(ebb__heap *h) {
    for (uint32_t i = EBB__SIZES; i < EBB__CLASSES; i++) {
        regray_users(h, h->classes[i].pages);
        regray_users(h, h->classes[i].page);
    }
    regray_users(h, h->large);
    for (const ebb__cell *c = h->dying; c != NULL; c = ebb__free_next(c)) ungray(c);
    if (h->burying != NULL) ungray(h->burying);
}

static void begin_sweep(ebb_gc_marker *t) {
    ebb__heap *h = t->heap;
    if (h->revived) regray_all_users(h);
    mark_users(t);
    h->phase = EBB__GC_SWEEP;
    h->sweep_class = 1;
    for (uint32_t i = 1; i < EBB__CLASSES; i++) unsweep(&h->classes[i]);
    sweep_large(h);
}

/* The next collection begins when as much was allocated as was recently live. Dropped futures do not count as live,
 * though only the next collection frees them. */
static void note_live(ebb__heap *h) {
    h->live_bytes = h->marked_bytes;
    h->trigger = h->opts.trigger > h->live_bytes ? h->opts.trigger : h->live_bytes;
    for (int i = EBB__HIGHS - 1; i >= 0; i--) {
        if (h->lives[i] > h->trigger) h->trigger = h->lives[i];
        h->lives[i] = i > 0 ? h->lives[i - 1] : h->live_bytes;
    }
}

/* Works on one phase until `limit`. False: the step ends. */
static bool phase_step(ebb_gc_marker *t, uint32_t limit) {
    ebb__heap *h = t->heap;
    switch (h->phase) {
    case EBB__GC_ROOTS:
        if (!each_member(t, limit, mark_root)) return false;
        h->phase = EBB__GC_MARK;
        return true;
    case EBB__GC_MARK:
        if (!mark_own(t, limit)) return false;
        mark_users(t);
        note_live(h);
        h->phase = EBB__GC_DROPS;
        h->at_region = 1;
        h->at_member = UINT32_MAX;
        return true;
    case EBB__GC_DROPS:
        if (!each_member(t, limit, drop_member)) return false;
        h->phase = EBB__GC_REMARK;
        return true;
    case EBB__GC_REMARK:
        if (!mark_own(t, limit)) return false;
        begin_sweep(t);
        return true;
    case EBB__GC_SWEEP:
        if (!sweep_some(t, limit)) return false;
        ebb__heap_trim(h, false);
        h->phase = EBB__GC_IDLE;
        return false;
    default: begin(h); return true;
    }
}

static void wake_to_bury(ebb__heap *h);

static void note_pause(ebb__heap *h, uint64_t ns) {
    uint32_t i = ns == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(ns);
    h->stats.pause[i < 32 ? i : 31]++;
    if (ns > h->stats.pause_max) h->stats.pause_max = ns;
}

static void step(ebb__heap *h, uint32_t limit) {
    assert(!h->collecting);
    ebb_gc_marker t = {h, 0};
    uint64_t from = h->opts.clock != NULL ? h->opts.clock(h->opts.ctx) : 0;
    h->collecting = true;
    h->stats.steps++;
    while (phase_step(&t, limit)) continue;
    h->collecting = false;
    if (h->opts.clock != NULL) note_pause(h, h->opts.clock(h->opts.ctx) - from);
}

bool ebb__collect_step(ebb__heap *h) {
    /* Doubles the work for each time that the heap has grown by the live bytes, so that allocation cannot outrun the
     * collection. */
    uint64_t behind = h->live_bytes > 0 && h->since > 0 ? (uint64_t)h->since / h->live_bytes : 0;
    uint64_t limit = (uint64_t)h->opts.step << (behind < 6 ? behind : 6);
    step(h, limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX);
    if (h->phase != EBB__GC_IDLE) return false;
    if (h->opts.verify) ebb__verify_and_report(h);
    return true;
}

void ebb__collect_all(ebb__heap *h) {
    while (h->phase != EBB__GC_IDLE) step(h, UINT32_MAX);
    do step(h, UINT32_MAX);
    while (h->phase != EBB__GC_IDLE);
    wake_to_bury(h);
    if (h->opts.verify) ebb__verify_and_report(h);
}

/* ---- frees of unreachable cells --------------------------------------------------------------------------- */

static void word_end(ebb_value *at) {
    ebb_value v = *at;
    if (!is_owned_word(&v)) return;
    *at = ebb_value_none();
    v.type->free(v.as.p);
}

void ebb__kept_end(ebb__cell *c) {
    ebb_future *f = (ebb_future *)(void *)c;
    ebb_value *v;
    if (!(c->type->reserved & EBB__TYPE_KEEPS)) return;
    for (uint32_t i = 0; (v = ebb__kind_of(f)->kept(f, i)) != NULL; i++) word_end(v);
}

void ebb__cell_end(ebb__cell *c) {
    if (!needs_free(c)) return;
    if (c->type->reserved & EBB__TYPE_FUTURE) {
        word_end(&((ebb_future *)(void *)c)->value);
        ebb__kept_end(c);
    } else {
        const ebb_type *type = c->type;
        c->type = &ebb__dead_type; /* so that free is called once */
        type->free(c + 1);
    }
}

void ebb__bury(ebb__heap *h) {
    if (h->burying != NULL) return; /* called by a free function that runs below */
    while (h->dying != NULL) {
        ebb__cell *c = h->burying = h->dying;
        h->dying = ebb__free_next(c);
        c->member = c->region = 0;
        ebb__cell_end(c);
        h->burying = NULL;
        c->type = &ebb__dead_type;
        if (ebb__page_of(c)->cls == NULL) continue; /* a large one is freed by the next collection */
        h->stats.swept++;
        release_cell(ebb__page_of(c), c);
    }
}

/* Wakes one callback runner, which calls ebb__bury in the pump. */
static void wake_to_bury(ebb__heap *h) {
    for (uint32_t i = 1; h->dying != NULL && i < h->regions_n; i++) {
        ebb__region_futures *s = ebb__region_futures_at(h, i);
        if (s == NULL || s->cx == NULL) continue;
        ebb__region_futures_wake(s);
        return;
    }
}

ebb_status ebb_gc_collect(ebb_runtime *rt) {
    ebb__heap *h = ebb__heap_at(rt);
    if (h == NULL) return EBB_OK;
    if (h->thread != ebb__this_thread()) return EBB_ERR_THREAD;
    if (h->collecting) return EBB_ERR_REENTERED;
    ebb__collect_all(h);
    ebb__heap_trim(h, true);
    return EBB_OK;
}
