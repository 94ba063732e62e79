/* What a run is made of: chance, memory, sides, ids. */
#include "tests/driver/program/driver.h"

#include <stdarg.h>
#include <unistd.h>

#include "sched/pump.h"

const char *driver_program = "driver.random";
bool driver_talks;

/* ---- chance ----------------------------------------------------------------------------------------------- */

uint64_t dice_next(uint64_t *dice) { /* SplitMix64 */
    *dice += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *dice;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint32_t pick(side *s, uint32_t n) {
    return (uint32_t)((dice_next(&s->dice) >> 32) * n >> 32);
}

bool one_in(side *s, uint32_t n) {
    return pick(s, n) == 0;
}

/* ---- failing ---------------------------------------------------------------------------------------------- */

void failed(const hub *h, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "seed %llu: ", (unsigned long long)h->seed);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nto repeat it: %s --seed %llu\n", driver_program, (unsigned long long)h->seed);
    fflush(NULL);
    _exit(1);
}

/* ---- memory ----------------------------------------------------------------------------------------------- */

struct block {
    block *next;
    max_align_t bytes[];
};

void *fresh(hub *h, size_t n) {
    block *b = calloc(1, sizeof *b + n);
    if (b == NULL) abort();
    pthread_mutex_lock(&h->lock);
    b->next = h->blocks;
    h->blocks = b;
    pthread_mutex_unlock(&h->lock);
    return b->bytes;
}

void free_all(hub *h) {
    while (h->blocks != NULL) {
        block *b = h->blocks;
        h->blocks = b->next;
        free(b);
    }
    free((void *)h->words);
}

static bool refuses(memory *m) {
    if (m->dice == 0 || m->off) return false;
    pthread_mutex_lock(&m->lock);
    bool no = dice_next(&m->dice) % m->one_in == 0;
    pthread_mutex_unlock(&m->lock);
    if (no) atomic_fetch_add(&m->refused, 1);
    return no;
}

static void *side_alloc(void *ctx, void *p, size_t old_size, size_t new_size) {
    memory *m = ctx;
    if (new_size == 0) {
        if (p != NULL) atomic_fetch_sub(&m->live, 1);
        free(p);
        return NULL;
    }
    if (new_size > old_size && refuses(m)) return NULL;
    void *q = realloc(p, new_size);
    if (q == NULL) abort();
    if (p == NULL) atomic_fetch_add(&m->live, 1);
    return q;
}

ebb_allocator side_allocator(side *s) {
    return (ebb_allocator){side_alloc, &s->memory};
}

/* ---- values ----------------------------------------------------------------------------------------------- */

static void free_word(void *p) {
    word *w = p;
    if (atomic_fetch_add(&w->freed, 1) != 0) failed(w->hub, "a word was freed twice");
}
const ebb_type word_type = {.name = "word", .free = free_word};

ebb_value some_word(hub *h) {
    word *w = fresh(h, sizeof *w);
    w->hub = h;
    pthread_mutex_lock(&h->lock);
    if (h->n_words == h->room_words) {
        h->room_words = h->room_words * 2 + 64;
        h->words = realloc((void *)h->words, h->room_words * sizeof(void *));
        if (h->words == NULL) abort();
    }
    h->words[h->n_words++] = w;
    pthread_mutex_unlock(&h->lock);
    return ebb_value_owned(&word_type, w);
}

/* ---- a side ----------------------------------------------------------------------------------------------- */

static void append(uint8_t **to, size_t *n, size_t *room, const void *bytes, size_t more) {
    if (*n + more > *room) {
        *room = (*n + more) * 2;
        *to = realloc(*to, *room);
        if (*to == NULL) abort();
    }
    memcpy(*to + *n, bytes, more);
    *n += more;
}

static void keep_trace(void *ctx, const void *bytes, size_t n) {
    side *s = ctx;
    append(&s->trace, &s->trace_n, &s->trace_room, bytes, n);
}

static void keep_journal(void *ctx, const void *bytes, size_t n) {
    side *s = ctx;
    append(&s->journal, &s->journal_n, &s->journal_room, bytes, n);
}

void side_record(side *s, bool flush) {
    if (s->recorded) ebb_trace_take(s->rt, flush, keep_trace, s);
    if (s->journaled) ebb_journal_take(s->rt, flush, keep_journal, s);
}

static void heap_says(void *ctx, ebb_status st, const char *what, const char *site) {
    side *s = ctx;
    TALK("heap: %s: %s (%s)\n", ebb_status_name(st), what, site == NULL ? "?" : site);
    if (st == EBB_ERR_RESOLVED) return; /* a remote came first */
    if (st == EBB_ERR_NOT_TASK) return; /* a finalizer that a callback has added awaits */
    if (s->wrong[0] == 0) {
        snprintf(s->wrong, sizeof s->wrong, "%s: %s (%s)", ebb_status_name(st), what,
                 site == NULL ? "?" : site);
    }
}

static uint32_t choose(void *ctx, uint32_t n) {
    return pick(ctx, n);
}

static void wake_side(void *ctx) {
    side *s = ctx;
    atomic_store(&s->inbound, true);
}

static ebb_status append_line(void *ctx, const char *line, size_t n) {
    side *s = ctx;
    append((uint8_t **)(void *)&s->log, &s->log_n, &s->log_room, line, n);
    return EBB_OK;
}

static ebb_cleanup_budget some_cleanup(side *s) {
    ebb_cleanup_budget b = {.time_ns = (1 + pick(s, 200)) * EBB_MS};
    b.polls = 1 + pick(s, 40);
    return b;
}

/* Time passes in the middle of a turn. */
static uint64_t read_clock(void *ctx) {
    side *s = ctx;
    s->now += pick(s, 4) * EBB_MS / 8;
    return s->now;
}

void side_advance(side *s) {
    s->advanced = s->now;
    ebb_runtime_advance(s->rt, s->now);
}

static bool start(side *s) {
    ebb_runtime_opts o = {
        .allocator = side_allocator(s), .runtime_id = (uint8_t)(s->number + 1), .now = s->now};
    if (one_in(s, 4)) o.max_tasks = 8 + pick(s, 60);
    if (one_in(s, 4)) o.max_regions = 4 + pick(s, 16);
    if (one_in(s, 2)) o.cleanup[EBB_SEVERITY_POLITE] = some_cleanup(s);
    if (one_in(s, 3)) o.cleanup[EBB_SEVERITY_URGENT] = some_cleanup(s);
    if (one_in(s, 2)) o.cleanup[EBB_SEVERITY_FORCED] = some_cleanup(s);
    if (one_in(s, 3)) o.chain_depth = 1 + pick(s, 4);
    if (one_in(s, 3)) o.chain_bytes = 1 + pick(s, 200);
    o.watched = s->watched = one_in(s, 4);
    if (one_in(s, 3)) {
        o.clock = read_clock;
        o.clock_ctx = s;
    }
    if (ebb_runtime_new(&o, &s->rt) != EBB_OK) return false;
    if (one_in(s, 4)) (void)ebb_fiber_setup(s->rt, &(ebb_fiber_opts){.stack_bytes = 1 << 18, .max = 5});
    bool journal_first = one_in(s, 2), journal = !one_in(s, 3);
    if (journal && journal_first) s->journaled = ebb_journal_start(s->rt, 1 << 17) == EBB_OK;
    s->recorded = ebb_trace_start(s->rt, 1 << 17) == EBB_OK;
    if (journal && !journal_first) s->journaled = ebb_journal_start(s->rt, 1 << 17) == EBB_OK;
    if (one_in(s, 2)) ebb__set_chooser(s->rt, choose, s);
    ebb_heap_opts heap = {.verify = true, .misuse = heap_says, .ctx = s};
    heap.every_time = one_in(s, 3);
    heap.debug = one_in(s, 3);
    if (one_in(s, 3)) heap.step = 1 + pick(s, 64);
    if (one_in(s, 2)) heap.trigger = 4096;
    if (one_in(s, 6)) heap.max_bytes = 1081344;
    (void)ebb_heap_setup(s->rt, &heap);
    if (ebb_inbox_on_wake(s->rt, wake_side, s) != EBB_OK) return true;
    if (ebb_peer_of(s->rt, &s->peer) != EBB_OK) s->peer = NULL;
    return true;
}

bool side_begin(side *s) {
    s->now = (uint64_t)pick(s, 100) * 7777777;
    s->max_ops = 40 + pick(s, one_in(s, 6) ? 3000 : 400);
    s->fibers = !one_in(s, 5);
    s->force = !one_in(s, 3);
    s->early = one_in(s, 5);
    if (one_in(s, 3)) s->memory.dice = dice_next(&s->dice) | 1;
    s->memory.one_in = 4 + pick(s, 100);
    if (ebb_audit_new(side_allocator(s), &(ebb_audit_sink){append_line, NULL, s}, &s->audit) != EBB_OK)
        s->audit = NULL;
    if (!start(s)) return false;
    ebb_sem_init(&s->sem, pick(s, 3));
    if (ebb_chan_new(s->rt, 1 + pick(s, 3), sizeof(uint64_t), &s->chan) != EBB_OK) s->chan = NULL;
    if (ebb_broadcast_new(s->rt, sizeof(uint64_t), &s->broadcast) != EBB_OK) s->broadcast = NULL;
    return true;
}

void side_free(side *s) {
    if (s->rt != NULL) {
        ebb_runtime_stats stats;
        ebb_runtime_stats_of(s->rt, &stats);
        s->abandoned = (uint32_t)stats.abandoned;
        s->polls = stats.polls;
        ebb_heap_stats heap;
        ebb_heap_stats_of(s->rt, &heap);
        s->futures = heap.allocated;
        side_record(s, true);
        s->freed = true;
        ebb_chan_free(s->chan);
        ebb_broadcast_free(s->broadcast);
        ebb_runtime_free(s->rt);
        s->rt = NULL;
        s->chan = NULL;
        s->broadcast = NULL;
    }
    s->freed = true;
}

bool busy(const side *s) {
    return s->ops < s->max_ops && !atomic_load(&s->hub->ending);
}

/* ---- ids -------------------------------------------------------------------------------------------------- */

uint64_t some_id(side *s, const uint64_t *ids, uint32_t made) {
    uint32_t known_ids = made < IDS ? made : IDS, k = pick(s, 240);
    if (known_ids == 0 || k >= 232) {
        const uint64_t odd[] = {0, (uint64_t)200 << 56 | (uint64_t)1 << 32 | 1, (uint64_t)14 << 32,
                                (uint64_t)(s->number + 1) << 56 | (uint64_t)9999 << 32 | 3};
        return odd[k % 4];
    }
    if (k % 2) return ids[(made - 1 - k / 2 % (known_ids < 4 ? known_ids : 4)) % IDS]; /* one of the last */
    return ids[k % known_ids];
}

void remember(side *s, uint64_t *ids, uint32_t *made, uint64_t id) {
    if (ebb_id_status(id) == EBB_OK || one_in(s, 16)) ids[(*made)++ % IDS] = id;
}

ebb_task some_task(side *s) {
    return (ebb_task){some_id(s, s->task, s->tasks)};
}

ebb_region some_region(side *s) {
    if (one_in(s, 3)) return ebb_runtime_root(s->rt);
    return (ebb_region){some_id(s, s->region, s->regions)};
}

/* The end of the root is the end of the side: not often. */
ebb_region some_target(side *s) {
    ebb_region r = some_region(s);
    if (r.id == ebb_runtime_root(s->rt).id && !one_in(s, 30)) r.id = some_id(s, s->region, s->regions);
    return r;
}

uint64_t some_span(side *s) {
    uint64_t n = pick(s, 100);
    return n * (one_in(s, 8) ? 100 : 3) * EBB_MS;
}

ebb_cancel_kind some_kind(side *s) {
    return (ebb_cancel_kind)pick(s, 12);
}

ebb_status some_end(side *s) {
    static const ebb_status ends[] = {EBB_FAILED, EBB_CANCELLED, EBB_FAULTED, (ebb_status)-1234, EBB_TIMEOUT};
    uint32_t k = pick(s, 24);
    return k < 5 ? ends[k] : EBB_OK;
}
