/* A runtime for tests of its heap: memory is counted, what is done wrong fails the test, and objects that
 * know who they are: one that was freed too early, or written over, does not look like itself. */
#ifndef EBB_TESTS_HEAP_WORLD_H
#define EBB_TESTS_HEAP_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "future/future.h"
#include <ebb/ebb.h>

typedef struct heap_world {
    ebb_failing memory;
    ebb_runtime *rt;
    ebb_cx *host;
    ebb__heap *heap;
    uint32_t misuses;
    ebb_status misuse;
    char what[160];
    uint64_t ticks;
} heap_world;

static inline void heap_misuse(void *ctx, ebb_status st, const char *what, const char *site) {
    heap_world *w = ctx;
    (void)site;
    w->misuses++;
    w->misuse = st;
    strncpy(w->what, what, sizeof w->what - 1);
}

/* Every look at the clock is a tick later. */
static inline uint64_t heap_clock(void *ctx) {
    return ++((heap_world *)ctx)->ticks;
}

static inline void heap_world_begin(heap_world *w, ebb_heap_opts opts) {
    *w = (heap_world){.memory = {.inner = ebb_libc_allocator()}};
    ebb_runtime_opts rt_opts = {.allocator = ebb_failing_allocator(&w->memory)};
    assert_int_equal(ebb_runtime_new(&rt_opts, &w->rt), EBB_OK);
    opts.misuse = heap_misuse;
    opts.clock = heap_clock;
    opts.ctx = w;
    assert_int_equal(ebb_heap_setup(w->rt, &opts), EBB_OK);
    w->host = ebb_runtime_host(w->rt);
    w->heap = ebb__heap_at(w->rt);
}

static inline void heap_verify(heap_world *w) {
    char text[160] = "";
    if (ebb_heap_verify(w->rt, text, sizeof text) != EBB_OK) fail_msg("the heap: %s", text);
    if (w->misuses != 0) fail_msg("%s: %s", ebb_status_name(w->misuse), w->what);
}

static inline void heap_pump(heap_world *w) {
    ebb_inbox_receive(w->rt);
    while (ebb_runtime_pump(w->rt, UINT32_MAX) == EBB_PENDING) ebb_inbox_receive(w->rt);
}

/* What nobody refers to is gone after this, and what that has set free. */
static inline void heap_collect(heap_world *w) {
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ebb_gc_collect(w->rt), EBB_OK);
        heap_pump(w);
        heap_verify(w);
    }
}

static inline ebb_heap_stats heap_stats(const heap_world *w) {
    ebb_heap_stats s;
    ebb_heap_stats_of(w->rt, &s);
    return s;
}

/* Frees without closing: whatever state it is in, nothing may leak. */
static inline void heap_world_end(heap_world *w) {
    heap_verify(w);
    ebb_runtime_free(w->rt);
    assert_int_equal(w->memory.live, 0);
}

/* ---- collections by hand ---------------------------------------------------------------------------- */

static inline void heap_step(heap_world *w) {
    (void)ebb__collect_step(w->heap);
}

/* Until that phase, or the next one if it is passed in the middle of a step. */
static inline void heap_steps_until(heap_world *w, ebb__phase_of_collection phase) {
    do heap_step(w);
    while (w->heap->phase != EBB__GC_IDLE && (phase == EBB__GC_IDLE || w->heap->phase < phase));
}

static inline bool heap_is_free(const void *cell) {
    return ((const ebb__cell *)cell)->type == NULL;
}

/* ---- objects ----------------------------------------------------------------------------------------- */

enum { HEAP_LINKS = 3 };
#define HEAP_MAGIC UINT64_C(0x0b1ec7ed0b1ec7ed)

typedef struct heap_object {
    uint64_t magic;
    uint32_t *freed; /* how often; may be NULL */
    const void *link[HEAP_LINKS];
} heap_object;

static inline void heap_object_trace(void *object, ebb_gc_marker *t) {
    heap_object *o = object;
    for (int i = 0; i < HEAP_LINKS; i++) ebb_gc_mark(t, o->link[i]);
}

static inline void heap_object_free(void *object) {
    heap_object *o = object;
    assert_true(o->magic == HEAP_MAGIC);
    ++*o->freed;
}

/* One that counts its end, and one whose end nobody hears of. */
static const ebb_type heap_counted = {"counted", sizeof(heap_object), heap_object_trace, heap_object_free, 0};
static const ebb_type heap_plain = {"plain", sizeof(heap_object), heap_object_trace, NULL, 0};

/* An object of `type`, which begins as a heap_object, held by the region of cx. */
static inline heap_object *heap_object_of(ebb_cx *cx, const ebb_type *type, uint32_t *freed) {
    heap_object *o = ebb_gc_new(cx, type);
    assert_non_null(o);
    *o = (heap_object){.magic = HEAP_MAGIC, .freed = freed};
    return o;
}

static inline heap_object *heap_object_new(ebb_cx *cx, uint32_t *freed) {
    return heap_object_of(cx, freed != NULL ? &heap_counted : &heap_plain, freed);
}

/* One that `from` alone refers to. */
static inline heap_object *heap_object_below(ebb_cx *cx, heap_object *from, uint32_t *freed) {
    heap_object *o = heap_object_new(cx, freed);
    from->link[0] = o;
    ebb_value_discard(cx, ebb_value_object(o));
    return o;
}

static inline void heap_object_is_there(const heap_object *o) {
    assert_true(((const ebb__cell *)(const void *)o - 1)->type != NULL);
    assert_true(o->magic == HEAP_MAGIC);
}

#endif
