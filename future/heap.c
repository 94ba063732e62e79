/* Pages and cells. collect.c decides what is collected, and when. */
#include "future/heap.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "future/region_futures.h"

enum {
    DEFAULT_TRIGGER = 4 << 20,
    DEFAULT_STEP = 16384,
    SWEEP_A_REFILL = 8,
    CHUNK_BYTES = (EBB__CHUNK_PAGES + 1) * EBB__PAGE_SIZE
};

const void *ebb__this_thread(void) {
    static _Thread_local char here;
    return &here;
}

/* ---- life ------------------------------------------------------------------------------------------------- */

static ebb__heap *heap_new(ebb_runtime *rt) {
    ebb__heap *h = ebb__alloc(ebb__rt_allocator(rt), sizeof *h);
    if (h == NULL) return NULL;
    memset(h, 0, sizeof *h);
    h->rt = rt;
    h->allocator = *ebb__rt_allocator(rt);
    h->opts.trigger = h->trigger = DEFAULT_TRIGGER;
    h->opts.step = DEFAULT_STEP;
    h->thread = ebb__this_thread();
    atomic_init(&h->refs, 1);
    atomic_init(&h->inbound, NULL);
    atomic_init(&h->woken, 0);
    for (uint32_t i = 1; i < EBB__SIZES; i++) {
        uint32_t size = i <= EBB__SMALL_MAX / 8 ? i * 8 : (i - EBB__SMALL_MAX / 8) * 512;
        if (size < EBB__CELL_MIN) size = EBB__CELL_MIN;
        h->classes[i].size = h->classes[EBB__SIZES + i].size = size;
    }
    ebb__map_init(&h->ends, h->allocator, sizeof(void *));
    ebb_status st = ebb__layer_add(rt, &ebb__future_layer, h);
    assert(st == EBB_OK);
    (void)st;
    return h;
}

ebb__heap *ebb__heap_get(ebb_runtime *rt) {
    ebb__heap *h = ebb__heap_at(rt);
    return EBB__LIKELY(h != NULL) ? h : heap_new(rt);
}

static void free_large(ebb__heap *h, ebb__page *b) {
    h->stats.bytes -= b->bytes;
    ebb__free(&h->allocator, b->memory, b->bytes);
}

void ebb__heap_release(ebb__heap *h) {
    /* Release: the last holder sees what the others did. Acquire: for the last holder. */
    if (atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) != 1) return;
    for (ebb__page *b = h->large, *next; b != NULL; b = next) {
        next = b->next;
        free_large(h, b);
    }
    for (ebb__chunk *c = h->chunks, *next; c != NULL; c = next) {
        next = c->next;
        ebb_allocator a = h->allocator;
        ebb__free(&a, c->memory, c->bytes);
        ebb__free(&a, c, sizeof *c);
    }
    ebb__free(&h->allocator, h->regions, h->regions_room * sizeof(ebb__region_futures *));
    ebb_allocator a = h->allocator;
    ebb__free(&a, h, sizeof *h);
}

void ebb__misuse(ebb__heap *h, ebb_status st, const char *what, const char *site) {
    if (h != NULL && h->opts.misuse != NULL) h->opts.misuse(h->opts.ctx, st, what, site);
}

ebb_status ebb_heap_setup(ebb_runtime *rt, const ebb_heap_opts *opts) {
    ebb_heap_opts o;
    if (opts == NULL) return EBB_ERR_INVALID;
    ebb_status st = EBB__OPTS_COPY(&o, opts);
    if (st != EBB_OK) return st;
    if (o.max_bytes != 0 && o.max_bytes < CHUNK_BYTES) return EBB_ERR_INVALID;
    ebb__heap *h = ebb__heap_get(rt);
    if (h != NULL && h->stats.allocated != 0) return EBB_ERR_BUSY;
    if (h == NULL) return EBB_ERR_NOMEM;
    h->opts = o;
    if (h->opts.trigger == 0) h->opts.trigger = DEFAULT_TRIGGER;
    h->trigger = h->opts.trigger;
    if (h->opts.step == 0) h->opts.step = DEFAULT_STEP;
    return EBB_OK;
}

void ebb_heap_stats_of(const ebb_runtime *rt, ebb_heap_stats *out) {
    const ebb__heap *h = ebb__heap_at(rt);
    if (h == NULL) {
        *out = (ebb_heap_stats){0};
        return;
    }
    *out = h->stats;
    out->live = (size_t)(out->allocated - out->freed_early - out->swept);
}

ebb_status ebb_runtime_adopt(ebb_runtime *rt) {
    ebb__heap *h = ebb__heap_get(rt);
    if (h == NULL) return EBB_ERR_NOMEM;
    h->thread = ebb__this_thread();
    return EBB_OK;
}

/* ---- pages ------------------------------------------------------------------------------------------------ */

static bool within_limit(ebb__heap *h, size_t more) {
    h->limited = h->opts.max_bytes != 0 && h->stats.bytes + more > h->opts.max_bytes;
    return !h->limited;
}

static bool more_pages(ebb__heap *h) {
    size_t bytes = CHUNK_BYTES;
    if (!within_limit(h, bytes)) return false;
    ebb__chunk *c = ebb__alloc(&h->allocator, sizeof *c);
    void *memory = c == NULL ? NULL : ebb__alloc(&h->allocator, bytes);
    if (memory == NULL) {
        ebb__free(&h->allocator, c, sizeof *c);
        return false;
    }
    *c = (ebb__chunk){h->chunks, memory, bytes, EBB__CHUNK_PAGES};
    h->chunks = c;
    h->stats.bytes += bytes;
    char *at = (char *)(((uintptr_t)memory + EBB__PAGE_SIZE - 1) & ~(uintptr_t)(EBB__PAGE_SIZE - 1));
    for (int i = EBB__CHUNK_PAGES - 1; i >= 0; i--) { /* so that the lowest page is taken first */
        ebb__page *b = (ebb__page *)(void *)(at + (size_t)i * EBB__PAGE_SIZE);
        b->heap = h;
        b->chunk = c;
        b->next = h->free_pages;
        h->free_pages = b;
    }
    return true;
}

static void page_init(ebb__heap *h, ebb__page *b, ebb__class *k, size_t cell_size) {
    ebb__chunk *chunk = k == NULL ? NULL : b->chunk;
    memset(b, 0, sizeof *b);
    b->heap = h;
    b->number = ++h->numbered;
    b->chunk = chunk;
    b->cls = k;
    b->cell_size = (uint32_t)cell_size;
    b->first = (uint32_t)((sizeof *b + 63) & ~(size_t)63);
    b->cells = k == NULL ? 1 : (uint32_t)((EBB__PAGE_SIZE - b->first) / cell_size);
    b->inverse = (uint32_t)((UINT64_C(1) << 32) / cell_size + 1);
}

/* Gets cells for a class, from swept pages first. False: no memory, or the limit. */
static bool refill(ebb__heap *h, ebb__class *k) {
    for (int i = 0; i < SWEEP_A_REFILL && h->phase == EBB__GC_SWEEP && k->free == NULL; i++) {
        if (!ebb__sweep_page(h, k)) break;
    }
    if (k->free != NULL) return true;
    if (h->free_pages == NULL && !more_pages(h)) return false;
    ebb__page *b = h->free_pages;
    h->free_pages = b->next;
    b->chunk->free--;
    if (++h->in_use > h->high) h->high = h->in_use;
    page_init(h, b, k, k->size);
    if (k->page != NULL) {
        k->page->next = k->pages;
        k->pages = k->page;
    }
    k->page = b;
    k->cur = (char *)b + b->first;
    k->end = k->cur + (size_t)b->cells * k->size;
    return true;
}

/* The most pages in use at a time over the last collections: a recent load is likely to return. */
static uint32_t pages_to_keep(ebb__heap *h) {
    uint32_t most = h->high;
    for (int i = EBB__HIGHS - 1; i >= 0; i--) {
        if (h->highs[i] > most) most = h->highs[i];
        h->highs[i] = i > 0 ? h->highs[i - 1] : h->high;
    }
    h->high = h->in_use;
    return most;
}

void ebb__heap_trim(ebb__heap *h, bool all) {
    uint32_t keep = pages_to_keep(h), have = 0;
    if (all) keep = h->in_use;
    for (ebb__chunk *c = h->chunks; c != NULL; c = c->next) have += EBB__CHUNK_PAGES;
    for (ebb__chunk *c = h->chunks; c != NULL && have >= keep + 2 * EBB__CHUNK_PAGES; c = c->next) {
        if (c->free < EBB__CHUNK_PAGES) continue;
        c->free = UINT32_MAX; /* to be freed */
        have -= EBB__CHUNK_PAGES;
    }
    for (ebb__page **at = &h->free_pages; *at != NULL;) {
        if ((*at)->chunk->free == UINT32_MAX) *at = (*at)->next;
        else at = &(*at)->next;
    }
    for (ebb__chunk **at = &h->chunks; *at != NULL;) {
        ebb__chunk *c = *at;
        if (c->free != UINT32_MAX) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        h->stats.bytes -= c->bytes;
        ebb__free(&h->allocator, c->memory, c->bytes);
        ebb__free(&h->allocator, c, sizeof *c);
    }
}

/* ---- allocation ------------------------------------------------------------------------------------------- */

static void *alloc_large(ebb__heap *h, const ebb_type *type, size_t n) {
    size_t head = (sizeof(ebb__page) + 63) & ~(size_t)63;
    if (n > SIZE_MAX - head - EBB__PAGE_SIZE) return NULL;
    size_t bytes = head + n + EBB__PAGE_SIZE;
    if (!within_limit(h, bytes)) return NULL;
    char *memory = ebb__alloc(&h->allocator, bytes);
    if (memory == NULL) return NULL;
    ebb__page *b = (void *)(((uintptr_t)memory + EBB__PAGE_SIZE - 1) & ~(uintptr_t)(EBB__PAGE_SIZE - 1));
    page_init(h, b, NULL, EBB__PAGE_SIZE);
    b->bytes = bytes;
    b->memory = memory;
    b->next = h->large;
    h->large = b;
    h->stats.bytes += bytes;
    ebb__cell *c = ebb__cell_at(b, 0);
    memset(c, 0, n);
    c->type = type;
    return c;
}

static ebb__cell *alloc_small(ebb__heap *h, const ebb_type *type, size_t n) {
    if (n < EBB__CELL_MIN) n = EBB__CELL_MIN;
    ebb__class *k = &h->classes[ebb__class_of(n) + (type->reserved & EBB__TYPE_OWN ? 0 : EBB__SIZES)];
    if (k->free == NULL && k->cur == k->end && !refill(h, k)) return NULL;
    ebb__cell *c = k->free;
    if (c != NULL) {
        k->free = ebb__free_next(c);
    } else {
        c = (ebb__cell *)(void *)k->cur;
        k->cur += k->size;
    }
    memset(c, 0, n);
    c->type = type;
    return c;
}

/* At the limit a whole collection runs once, and again when an eighth of the live cells were allocated since. In
 * between, callback runners collect in steps. */
static bool worth_collecting(ebb__heap *h) {
    uint64_t live = h->stats.allocated - h->stats.freed_early - h->stats.swept;
    h->since = (int64_t)h->trigger;
    if (h->limited_at != 0 && h->stats.allocated - h->limited_at <= live / 8) return false;
    h->limited_at = h->stats.allocated;
    return true;
}

void *ebb__alloc_slow(ebb__heap *h, const ebb_type *type, size_t n) {
    assert(!h->collecting);
    if (h->opts.every_time) ebb__collect_all(h);
    ebb__cell *c = n > EBB__CELL_MAX ? alloc_large(h, type, n) : alloc_small(h, type, n);
    if (c == NULL && h->limited && worth_collecting(h)) { /* garbage must not count against the limit */
        ebb__collect_all(h);
        c = n > EBB__CELL_MAX ? alloc_large(h, type, n) : alloc_small(h, type, n);
    }
    if (c == NULL) return NULL;
    h->since += (int64_t)n;
    h->stats.allocated++;
    if (h->phase != EBB__GC_IDLE) ebb__mark_new(c);
    return c;
}
