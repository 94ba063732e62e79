/* The heap: one for each runtime, precise, non-moving, collected in steps by the runtime's thread.
 *
 * Pages of 32 KiB, aligned to their size, hold cells of one size, so that a cell's address gives its page and the
 * heap. A cell is free if its type is NULL. An allocation takes a cell from the free list of its class or advances
 * `cur` through a new page. Only the runtime's thread does either, so there is no lock. An object larger than
 * EBB__CELL_MAX has a page of its own.
 *
 * A collection is snapshot-at-the-beginning: it marks all cells that were reachable when it began, and cells made
 * meanwhile are born marked. So code that removes a reference has to call ebb__shade while `phase` is not IDLE. Gray
 * cells are bits in their page, and gray pages are a list: marking needs no stack and no memory. Users' objects may
 * change without a call to ebb__shade, so they are traced last, all in one step.
 *
 * Roots are exports, and members that are held, queued or still produced. A pending member that was not marked is
 * cancelled as dropped, which queues and so marks it. */
#ifndef EBB__FUTURE_HEAP_H
#define EBB__FUTURE_HEAP_H

#include <stdatomic.h>

#include "base/map.h"
#include "kernel/layer.h"
#include <ebb/future.h>

_Static_assert(sizeof(void *) == 8, "the faces of kernel/layer.h have the layout of 64-bit machines");

typedef struct ebb__heap ebb__heap;
typedef struct ebb__region_futures ebb__region_futures;
typedef struct ebb__page ebb__page;

/* The header of every object on the heap. */
typedef struct ebb__cell {
    const ebb_type *type; /* NULL: free */
    uint32_t member;      /* index in its region's `members`, from 1 on; 0: not a member */
    uint32_t region;      /* index of its region in `regions`, with EBB__CELL_FLAGS for an object */
} ebb__cell;
_Static_assert(sizeof(void *) != 8 || sizeof(ebb__cell) == 16, "what ebb_gc_new adds to an object");

/* Flags in `region` of an object. SHARED: other regions hold it too, by cells of their own. COPIED: two futures may
 * refer to it. */
#define EBB__CELL_SHARED (UINT32_C(1) << 31)
#define EBB__CELL_COPIED (UINT32_C(1) << 30)
#define EBB__CELL_FLAGS  (EBB__CELL_SHARED | EBB__CELL_COPIED)

/* ebb_type.reserved of the library's own types, which are traced in steps. LETS_GO: a future whose `cancelled` is
 * called at any end. */
enum {
    EBB__TYPE_OWN = 1,
    EBB__TYPE_FUTURE = 2,
    EBB__TYPE_SINGLE = 4,
    EBB__TYPE_MANY = 8,
    EBB__TYPE_LETS_GO = 16,
    EBB__TYPE_AT_HOME = 32, /* a word that is valid in its own runtime only */
    EBB__TYPE_KEEPS = 64    /* a future whose kind has `kept` */
};

enum {
    EBB__PAGE_SIZE = 32768,
    EBB__CHUNK_PAGES = 32,
    EBB__HIGHS = 3,
    EBB__CELL_MIN = 32,
    EBB__SMALL_MAX = 512, /* size classes in steps of 8 bytes up to here, then of 512 */
    EBB__CELL_MAX = 8192, /* larger objects have a page of their own */
    EBB__SIZES = EBB__SMALL_MAX / 8 + EBB__CELL_MAX / 512 + 1,
    EBB__CLASSES = 2 * EBB__SIZES, /* for the library's types, then for users' */
    EBB__MARK_WORDS = EBB__PAGE_SIZE / EBB__CELL_MIN / 64
};

typedef struct ebb__class {
    char *cur, *end; /* unused cells of `page` */
    ebb__cell *free; /* linked through `member` and `region` as one pointer: see ebb__free_link */
    uint32_t size;
    ebb__page *page;    /* the page that `cur` is in */
    ebb__page *pages;   /* all other pages of this class */
    ebb__page *unswept; /* pages to be swept: none of their free cells is in `free` */
} ebb__class;

/* One allocation from the host, cut into pages. Freed when a collection finds all of its pages free. */
typedef struct ebb__chunk {
    struct ebb__chunk *next;
    void *memory;
    size_t bytes;
    uint32_t free; /* pages */
} ebb__chunk;

struct ebb__page {
    ebb__heap *heap;
    ebb__class *cls;                  /* NULL: the page of a large object */
    ebb__page *next;                  /* in the list of its class, of free pages or of large pages */
    ebb__page *gray_next;             /* NULL: not gray; the last of the list points to itself */
    uint32_t cell_size, cells, first; /* `first`: offset of cell 0 */
    uint32_t inverse;                 /* 2^32 / cell_size, rounded up */
    bool unswept;
    uint32_t number; /* no other page of the heap has or had it */
    ebb__chunk *chunk;
    size_t bytes; /* of a large one, including the waste of alignment */
    void *memory; /* of a large one, as allocated */
    uint64_t mark[EBB__MARK_WORDS], gray[EBB__MARK_WORDS];
};

typedef enum ebb__phase_of_collection {
    EBB__GC_IDLE = 0,
    EBB__GC_ROOTS,  /* members below `at_member` of region `at_region` are yet to be visited */
    EBB__GC_MARK,   /* gray pages are being traced */
    EBB__GC_DROPS,  /* unmarked members are being dropped; position as in ROOTS */
    EBB__GC_REMARK, /* tracing from dropped futures; then users' objects, in one step */
    EBB__GC_SWEEP
} ebb__phase_of_collection;

struct ebb__heap {
    ebb_runtime *rt; /* NULL: the runtime was freed, and only exports refer to the memory */
    ebb_allocator allocator;
    ebb_heap_opts opts;
    const void *thread;
    ebb__class classes[EBB__CLASSES];
    uint8_t phase;
    uint64_t limited_at; /* stats.allocated at the last collection that was forced by the limit */
    bool limited;        /* the last refusal was for opts.max_bytes */
    bool collecting;     /* a step runs: no user code, no allocation */
    /* bytes allocated since the last collection began, less those that were freed early */
    int64_t since;
    size_t trigger;           /* value of `since` at which the next collection begins */
    size_t live_bytes;        /* bytes that the last collection marked */
    size_t lives[EBB__HIGHS]; /* `live_bytes` of the collections before */
    uint32_t postponed;       /* polls for which the next collection has waited */
    size_t marked_bytes;
    bool revived;     /* a cell was marked after users' objects were traced */
    uint64_t step_at; /* stats.polls of the runtime at the last step */
    uint32_t at_region, at_member;
    uint32_t sweep_class;
    ebb__page *gray_own, *gray_users; /* lists of gray pages */
    ebb__page *free_pages, *large;
    uint32_t in_use, high;      /* pages of chunks in use; and the most since the last collection */
    uint32_t highs[EBB__HIGHS]; /* `high` at each of the last collections */
    ebb__chunk *chunks;
    uint32_t numbered;  /* pages so far */
    ebb__cell *burying; /* the one of `dying` whose free runs */
    ebb__cell *dying;   /* unreachable, but their free has to run first; linked as free cells */

    ebb__region_futures **regions; /* by index; [0] is not used */
    uint32_t regions_n, regions_room, regions_free;
    struct ebb_remote *exports; /* doubly linked */
    ebb__map ends;              /* futures that wait for the end of a task or region; see ended.c */
    struct ebb__tie *ties;      /* records to notify of the runtime's end; see peer.h */

    ebb_heap_stats stats;

    /* Used by other threads. */
    _Atomic(struct ebb__message *) inbound; /* last in, first out; see remote.h */
    _Atomic uint32_t refs;                  /* the runtime, exports, peers, bridges, imports */
    _Atomic uint64_t woken;                 /* calls of `wake` that have returned */
    uint64_t taken;                         /* times that `inbound` was taken: as many as calls of `wake` */
    void (*wake)(void *ctx);
    void *wake_ctx;
};

/* ---- addresses -------------------------------------------------------------------------------------------- */

static inline ebb__page *ebb__page_of(const void *cell) {
    return (ebb__page *)((uintptr_t)cell & ~(uintptr_t)(EBB__PAGE_SIZE - 1));
}

static inline ebb__heap *ebb__heap_of(const void *cell) {
    return ebb__page_of(cell)->heap;
}

static inline uint32_t ebb__cell_index(const ebb__page *b, const void *cell) {
    uint32_t offset = (uint32_t)((uintptr_t)cell & (EBB__PAGE_SIZE - 1)) - b->first;
    return (uint32_t)((uint64_t)offset * b->inverse >> 32);
}

static inline ebb__cell *ebb__cell_at(ebb__page *b, uint32_t i) {
    return (ebb__cell *)(void *)((char *)b + b->first + (size_t)i * b->cell_size);
}

static inline void ebb__free_link(ebb__cell *c, ebb__cell *next) {
    uintptr_t word = (uintptr_t)next;
    memcpy(&c->member, &word, sizeof word);
}

static inline ebb__cell *ebb__free_next(const ebb__cell *c) {
    uintptr_t word;
    memcpy(&word, &c->member, sizeof word);
    return (ebb__cell *)word;
}

/* An address that identifies the calling thread. */
const void *ebb__this_thread(void);

/* ---- life ------------------------------------------------------------------------------------------------- */

/* Index of this layer's record in a runtime. The record is the heap. */
enum { EBB__FUTURE_SLOT = 1 };

/* The runtime's heap; NULL: it has none. */
static inline ebb__heap *ebb__heap_at(const ebb_runtime *rt) {
    return ebb__layer_record(rt, EBB__FUTURE_SLOT);
}

/* The runtime's heap, made if there is none. NULL: no memory. */
ebb__heap *ebb__heap_get(ebb_runtime *rt);
/* Drops a reference; the last one frees all pages. Any thread. */
void ebb__heap_release(ebb__heap *h);
/* Calls opts.misuse, if it is set. */
void ebb__misuse(ebb__heap *h, ebb_status st, const char *what, const char *site);

/* ---- allocation ------------------------------------------------------------------------------------------- */

static inline uint32_t ebb__class_of(size_t n) {
    return n <= EBB__SMALL_MAX ? (uint32_t)(n + 7) / 8 : EBB__SMALL_MAX / 8 + (uint32_t)(n + 511) / 512;
}

void *ebb__alloc_slow(ebb__heap *h, const ebb_type *type, size_t n);
/* Why the last allocation returned NULL. */
static inline ebb_status ebb__refusal(const ebb__heap *h) {
    return h->limited ? EBB_ERR_LIMIT : EBB_ERR_NOMEM;
}
void ebb__mark_new(ebb__cell *c);

/* A zeroed cell of `n` bytes including its header, for a type of the library (users' types: ebb__alloc_slow). NULL:
 * no memory, or the limit. */
EBB__INLINE void *ebb__heap_alloc(ebb__heap *h, const ebb_type *type, size_t n) {
    if (EBB__UNLIKELY(n > EBB__SMALL_MAX || h->opts.every_time)) return ebb__alloc_slow(h, type, n);
    if (n < EBB__CELL_MIN) n = EBB__CELL_MIN;
    ebb__class *k = &h->classes[(n + 7) / 8];
    ebb__cell *c = k->free;
    if (c != NULL) {
        k->free = ebb__free_next(c);
    } else {
        c = (ebb__cell *)(void *)k->cur;
        if (EBB__UNLIKELY(k->cur == k->end)) return ebb__alloc_slow(h, type, n);
        k->cur += k->size;
    }
    memset(c, 0, n);
    c->type = type;
    h->since += (int64_t)n;
    h->stats.allocated++;
    if (EBB__UNLIKELY(h->phase != EBB__GC_IDLE)) ebb__mark_new(c);
    return c;
}

/* Frees a cell that nothing refers to. */
static inline void ebb__heap_free_cell(ebb__heap *h, ebb__cell *c) {
    ebb__page *b = ebb__page_of(c);
    if (EBB__UNLIKELY(b->cls == NULL || h->opts.debug)) { /* a large one is freed by the next collection */
        return;
    }
    c->type = NULL;
    h->since -= b->cell_size;
    h->stats.freed_early++;
    if (EBB__UNLIKELY(b->unswept)) return; /* the sweep adds it to the free list */
    ebb__free_link(c, b->cls->free);
    b->cls->free = c;
}

/* ---- collection ------------------------------------------------------------------------------------------- */

/* Marks a cell and makes it gray, unless it is marked. */
void ebb__shade_slow(ebb__cell *c);
static inline void ebb__shade(ebb__heap *h, void *cell) {
    if (EBB__UNLIKELY(h->phase != EBB__GC_IDLE) && cell != NULL) ebb__shade_slow(cell);
}
/* The same for the object of a value. */
void ebb__shade_value(ebb__heap *h, const ebb_value *v);

bool ebb__is_marked(const ebb__cell *c);

/* True if a collection should begin or continue. */
static inline bool ebb__wants_step(const ebb__heap *h) {
    return EBB__UNLIKELY(h->phase != EBB__GC_IDLE || h->since >= (int64_t)h->trigger);
}
/* One step of about opts.step objects. True if the collection has ended. */
bool ebb__collect_step(ebb__heap *h);
void ebb__collect_all(ebb__heap *h);
/* Frees the unmarked cells of the next page of a class. False: no page is left. */
bool ebb__sweep_page(ebb__heap *h, ebb__class *k);
/* Frees chunks that were not used recently; with `all`, every unused chunk. */
void ebb__heap_trim(ebb__heap *h, bool all);
/* Calls the type's free for an object, or for the words that a future still has. */
void ebb__cell_end(ebb__cell *c);
/* The same for the words that a future has besides its value. */
void ebb__kept_end(ebb__cell *c);
/* Calls the free of all cells in `dying`, and frees the cells. */
void ebb__bury(ebb__heap *h);

#endif
