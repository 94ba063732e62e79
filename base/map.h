/* base/map.h - a hash map from a 64-bit key to a value of fixed size, with the host's allocator.
 *
 * Open addressing with linear probing; a removal shifts the following entries back, so there are no tombstones.
 * Invariants: `room` is 0 or a power of two, at most 3/4 of it is used, a slot is a key and then the value, and
 * the key 0 marks an empty slot, so it is no valid key. */
#ifndef EBB_BASE_MAP_H
#define EBB_BASE_MAP_H

#include <ebb/base.h>

typedef struct ebb__map {
    ebb_allocator allocator;
    uint8_t *slots;
    size_t slot_size, room, n;
} ebb__map;

/* Allocates nothing yet. Values are aligned to 8 bytes. */
void ebb__map_init(ebb__map *m, ebb_allocator a, size_t value_size);
void ebb__map_free(ebb__map *m);

/* The value, or NULL. It does not move until the next put or remove. */
void *ebb__map_find(const ebb__map *m, uint64_t key);

/* The value, zeroed if the key is new. NULL: no memory, and nothing has changed. */
void *ebb__map_put(ebb__map *m, uint64_t key);

void ebb__map_remove(ebb__map *m, uint64_t key);

/* Iterates over the values: start with `*at` 0; NULL after the last. The order depends only on the puts and
 * removes so far. Do not put or remove during the iteration. */
void *ebb__map_next(const ebb__map *m, size_t *at);

#endif
