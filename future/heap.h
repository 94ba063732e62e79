/* The heap: one a runtime, precise, non-moving, collected in steps by its own thread.
 *
 * Pages of 32 KiB, aligned to their size, hold cells of one size; so a cell's page, and with it the heap, is
 * found from its address. A cell is free if its type is NULL. Allocation takes from the class's free list or
 * moves `cur` through a new page; both belong to the thread, so there is nothing to lock. What is larger than
 * a page takes has a page of its own.
 *
 * A collection is snapshot-at-the-beginning: what could be reached when it began is marked, and what is made
 * meanwhile is born marked. So whoever removes a reference says so (ebb__shade) while `phase` is not IDLE.
 * Gray cells are bits in their page and gray pages are a list: marking needs no stack and no memory.
 * Users' objects may change without telling: they are looked at last, all in one step.
 *
 * Roots are the members of scopes that are held, queued or still produced and exports. A member
 * that is pending and was not marked is cancelled as dropped, which queues and so marks it. */
#ifndef EBB__FUTURE_HEAP_H
#define EBB__FUTURE_HEAP_H

#include <stdatomic.h>

#include "kernel/layer.h"
#include <ebb/future.h>

typedef struct ebb__heap ebb__heap;
typedef struct ebb__scope ebb__scope;
typedef struct ebb__page ebb__page;

/* What every object on the heap begins with. */
typedef struct ebb__cell {
    const ebb_type *type; /* NULL: free */
    uint32_t member;      /* its place among the scope's members, from 1 on; 0: it is none */
    uint32_t scope;       /* index of its scope */
} ebb__cell;
_Static_assert(sizeof(void *) != 8 || sizeof(ebb__cell) == 16, "what ebb_gc_new adds to an object");

/* In `scope` of an object: other regions hold it too, by cells of their own; two futures may refer to it. */
#define EBB__SCOPE_SHARED (UINT32_C(1) << 31)
#define EBB__SCOPE_COPIED (UINT32_C(1) << 30)
#define EBB__SCOPE_FLAGS  (EBB__SCOPE_SHARED | EBB__SCOPE_COPIED)

/* ebb_type.reserved of types that are the library's own: traced in steps. LETS_GO: a future whose
 * `cancelled` is called at any end. */
enum {
    EBB__TYPE_OWN = 1,
    EBB__TYPE_FUTURE = 2,
    EBB__TYPE_SINGLE = 4,
    EBB__TYPE_MANY = 8,
    EBB__TYPE_LETS_GO = 16,
    EBB__TYPE_AT_HOME = 32, /* a word that means something to its own runtime only */
    EBB__TYPE_KEEPS = 64    /* a future whose kind has `kept` */
};

enum {
    EBB__PAGE_SIZE = 32768,
    EBB__CHUNK_PAGES = 32,
    EBB__HIGHS = 3,
    EBB__CELL_MIN = 32,
    EBB__SMALL_MAX = 512, /* classes of 8 bytes apart up to here, then of 512 */
    EBB__CELL_MAX = 8192, /* larger ones have a page of their own */
    EBB__SIZES = EBB__SMALL_MAX / 8 + EBB__CELL_MAX / 512 + 1,
    EBB__CLASSES = 2 * EBB__SIZES, /* the library's own, then users' */
    EBB__MARK_WORDS = EBB__PAGE_SIZE / EBB__CELL_MIN / 64
};

typedef struct ebb__class {
    char *cur, *end; /* what is left of the page in hand */
    ebb__cell *free; /* chained by `member` and `scope` as one pointer: see ebb__free_link */
    uint32_t size;
    ebb__page *page;    /* in hand */
    ebb__page *pages;   /* all of this class but those */
    ebb__page *unswept; /* that are to be swept: none of their free cells is in `free` */
} ebb__class;

/* One allocation of the host's, cut into pages. Given back when a collection finds all of them free. */
typedef struct ebb__chunk {
    struct ebb__chunk *next;
    void *memory;
    size_t bytes;
    uint32_t free; /* pages */
} ebb__chunk;

struct ebb__page {
    ebb__heap *heap;
    ebb__class *cls;                  /* NULL: a large object's own */
    ebb__page *next;                  /* of its class; among the free ones; among the large ones */
    ebb__page *gray_next;             /* NULL: not gray; the last points to itself */
    uint32_t cell_size, cells, first; /* `first`: offset of cell 0 */
    uint32_t inverse;                 /* 2^32 / cell_size, rounded up */
    bool unswept;
    ebb__chunk *chunk;
    size_t bytes; /* of a large one, with what its alignment wastes */
    void *memory; /* of a large one, as it was allocated */
    uint64_t mark[EBB__MARK_WORDS], gray[EBB__MARK_WORDS];
};

typedef enum ebb__phase_of_collection {
    EBB__GC_IDLE = 0,
    EBB__GC_ROOTS,  /* the members of scope `at_scope` below `at_member` are not looked at yet */
    EBB__GC_MARK,   /* gray pages are left */
    EBB__GC_DROPS,  /* members that were not marked, as ROOTS */
    EBB__GC_REMARK, /* what the dropped refer to; then users' objects, and the end */
    EBB__GC_SWEEP
} ebb__phase_of_collection;

struct ebb__heap {
    ebb_runtime *rt; /* NULL: the runtime is gone, only exports still refer to the memory */
    ebb_allocator allocator;
    ebb_heap_opts opts;
    const void *thread;
    ebb__class classes[EBB__CLASSES];
    uint8_t phase;
    uint64_t limited_at; /* stats.allocated at the last collection that the limit has asked for */
    bool limited;        /* the last refusal was for opts.max_bytes */
    bool collecting;     /* a step runs: no user code, no allocation */
    int64_t since;     /* bytes allocated since the last collection began, less those that were freed early */
    size_t trigger;    /* of these, when the next begins */
    size_t live_bytes; /* that the last collection has reached */
    size_t lives[EBB__HIGHS]; /* and those before */
    uint32_t postponed;       /* polls for which a collection has waited */
    size_t marked_bytes;
    bool revived;     /* something was reached after all users' objects were looked at */
    uint64_t step_at; /* stats.polls of the runtime at the last step */
    uint32_t at_scope, at_member;
    uint32_t sweep_class;
    ebb__page *gray_own, *gray_users; /* lists of gray pages */
    ebb__page *free_pages, *large;
    uint32_t in_use, high;      /* pages of chunks; and the most since the last collection */
    uint32_t highs[EBB__HIGHS]; /* and before each of the last ones */
    ebb__chunk *chunks;
    ebb__cell *burying; /* of these, the one whose code runs */
    ebb__cell *dying;   /* swept, but user code has to run before they are freed; chained as free ones */

    ebb__scope **scopes; /* by index; [0] is not used */
    uint32_t scopes_n, scopes_room, scopes_free;
    struct ebb_remote *exports; /* doubly linked */
    struct ebb__tie *ties;      /* who hears of the runtime's end; see peer.h */

    ebb_heap_stats stats;

    /* What other threads touch. */
    _Atomic(struct ebb__message *) inbound; /* the last first; see remote.h */
    _Atomic uint32_t refs;                  /* the runtime's, and one an export */
    _Atomic uint64_t woken;                 /* calls of wake that are over */
    uint64_t taken;                         /* stacks that were taken: so often it has to be called */
    void (*wake)(void *ctx);
    void *wake_ctx;
#ifdef EBB_MUTANTS
    bool skip_a_root;
#endif
};

/* ---- where things are ------------------------------------------------------------------------------- */

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

/* An address that is this thread's alone. */
const void *ebb__this_thread(void);

/* ---- life -------------------------------------------------------------------------------------------- */

/* The slot of this layer's record, the heap. */
enum { EBB__FUTURE_SLOT = 1 };

/* The runtime's heap; NULL: it has none. */
static inline ebb__heap *ebb__heap_at(const ebb_runtime *rt) {
    return ebb__layer_record(rt, EBB__FUTURE_SLOT);
}

/* The runtime's heap, made if there is none. NULL: no memory. */
ebb__heap *ebb__heap_get(ebb_runtime *rt);
/* One reference less: the last one frees all pages. Any thread. */
void ebb__heap_release(ebb__heap *h);
/* Calls misuse(), if there is one. */
void ebb__misuse(ebb__heap *h, ebb_status st, const char *what, const char *site);

/* ---- allocation --------------------------------------------------------------------------------------- */

static inline uint32_t ebb__class_of(size_t n) {
    return n <= EBB__SMALL_MAX ? (uint32_t)(n + 7) / 8 : EBB__SMALL_MAX / 8 + (uint32_t)(n + 511) / 512;
}

void *ebb__alloc_slow(ebb__heap *h, const ebb_type *type, size_t n);
/* Why that was NULL. */
static inline ebb_status ebb__refusal(const ebb__heap *h) {
    return h->limited ? EBB_ERR_LIMIT : EBB_ERR_NOMEM;
}
void ebb__mark_new(ebb__cell *c);

/* A zeroed cell of `n` bytes, its header included, with its type set, which is one of the library's own
 * (users' types: ebb__alloc_slow). NULL: no memory, or the limit. */
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
    if (EBB__UNLIKELY(b->cls == NULL || h->opts.debug)) { /* a large one goes with the next collection */
        return;
    }
    c->type = NULL;
    h->since -= b->cell_size;
    h->stats.freed_early++;
    if (EBB__UNLIKELY(b->unswept)) return; /* the sweep will find it */
    ebb__free_link(c, b->cls->free);
    b->cls->free = c;
}

/* ---- collection ---------------------------------------------------------------------------------------- */

/* Marks a cell and makes it gray, if it is neither. */
void ebb__shade_slow(ebb__cell *c);
static inline void ebb__shade(ebb__heap *h, void *cell) {
    if (EBB__UNLIKELY(h->phase != EBB__GC_IDLE) && cell != NULL) ebb__shade_slow(cell);
}
/* The same for an object that a value refers to. */
void ebb__shade_value(ebb__heap *h, const ebb_value *v);

bool ebb__is_marked(const ebb__cell *c);

/* A collection should begin, or goes on. */
static inline bool ebb__wants_step(const ebb__heap *h) {
    return EBB__UNLIKELY(h->phase != EBB__GC_IDLE || h->since >= (int64_t)h->trigger);
}
/* A step of at most opts.step objects, or so. True if the collection is over. */
bool ebb__collect_step(ebb__heap *h);
void ebb__collect_all(ebb__heap *h);
/* Frees the cells of the next page of a class that were not marked. False: there is none. */
bool ebb__sweep_page(ebb__heap *h, ebb__class *k);
/* Gives chunks back that were not used for a while; `all`: that are not used. */
void ebb__heap_trim(ebb__heap *h, bool all);
/* Calls the free of an object, or of the words that a future still has. */
void ebb__cell_end(ebb__cell *c);
/* The same of the words that a future has besides its value. */
void ebb__kept_end(ebb__cell *c);
/* Runs what user code the dead still need, and frees them. */
void ebb__bury(ebb__heap *h);

#endif
