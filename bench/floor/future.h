/* bench/floor/future*.c: what a future, a heap and a collection cost in bare C, and in libgc. */
#ifndef EBB_BENCH_FLOOR_FUTURE_H
#define EBB_BENCH_FLOOR_FUTURE_H

/* Nodes of 128 bytes from a free list, callbacks through a queue. */
double floor_future_bytes(void);
double floor_future_then(void);
double floor_future_then_1m(void);
double floor_future_resolve_chain(void);
double floor_future_cancel_chain(void);
double floor_future_cancel_fan(void);

/* 128 bytes, zeroed: from a buffer by moving a pointer; by malloc, and given back. */
double floor_bump(void);
double floor_malloc_free(void);

#ifdef EBB_BENCH_LIBGC
/* 128 bytes by GC_malloc; a whole collection with so many of them alive, in us. */
double floor_gc_malloc(void);
double floor_gc_pause_200k(void);
double floor_gc_pause_1m(void);
double floor_gc_pause_2m(void);
#endif

#endif
