/* base/map.c - the hash map of base/map.h. */
#include "base/map.h"

#include "base/hash.h"

#include <assert.h>
#include <string.h>

#define FIRST_ROOM 16u

void ebb__map_init(ebb__map *m, ebb_allocator a, size_t value_size) {
    *m = (ebb__map){.allocator = a, .slot_size = sizeof(uint64_t) + (value_size + 7) / 8 * 8};
}

void ebb__map_free(ebb__map *m) {
    if (m->slots != NULL) m->allocator.fn(m->allocator.ctx, m->slots, m->room * m->slot_size, 0);
    m->slots = NULL;
    m->room = m->n = 0;
}

static uint64_t *slot_at(const ebb__map *m, size_t i) {
    return (uint64_t *)(void *)(m->slots + i * m->slot_size);
}

static size_t home_of(const ebb__map *m, uint64_t key) {
    return (size_t)ebb__hash_word(key) & (m->room - 1);
}

/* The slot that has the key, or the empty one where it belongs. */
static uint64_t *probe(const ebb__map *m, uint64_t key) {
    size_t i = home_of(m, key);
    while (*slot_at(m, i) != key && *slot_at(m, i) != 0) i = (i + 1) & (m->room - 1);
    return slot_at(m, i);
}

static bool grow(ebb__map *m) {
    ebb__map bigger = *m;
    bigger.room = m->room == 0 ? FIRST_ROOM : m->room * 2;
    if (bigger.room > SIZE_MAX / 2 / m->slot_size) return false;
    bigger.slots = m->allocator.fn(m->allocator.ctx, NULL, 0, bigger.room * m->slot_size);
    if (bigger.slots == NULL) return false;
    memset(bigger.slots, 0, bigger.room * m->slot_size);
    for (size_t i = 0; i < m->room; i++) {
        const uint64_t *from = slot_at(m, i);
        if (*from != 0) memcpy(probe(&bigger, *from), from, m->slot_size);
    }
    ebb__map_free(m);
    *m = bigger;
    return true;
}

void *ebb__map_find(const ebb__map *m, uint64_t key) {
    if (m->n == 0 || key == 0) return NULL;
    uint64_t *slot = probe(m, key);
    return *slot == key ? slot + 1 : NULL;
}

void *ebb__map_put(ebb__map *m, uint64_t key) {
    assert(key != 0);
    if ((m->n + 1) * 4 > m->room * 3) {
        void *there = ebb__map_find(m, key);
        if (there != NULL) return there;
        if (!grow(m)) return NULL;
    }
    uint64_t *slot = probe(m, key);
    if (*slot == 0) {
        *slot = key;
        m->n++;
    }
    return slot + 1;
}

void ebb__map_remove(ebb__map *m, uint64_t key) {
    if (ebb__map_find(m, key) == NULL) return;
    size_t mask = m->room - 1;
    size_t hole = (size_t)((uint8_t *)probe(m, key) - m->slots) / m->slot_size;
    for (size_t i = (hole + 1) & mask; *slot_at(m, i) != 0; i = (i + 1) & mask) {
        /* An entry may fill the hole unless its home lies between the hole and itself. */
        if (((i - home_of(m, *slot_at(m, i))) & mask) >= ((i - hole) & mask)) {
            memcpy(slot_at(m, hole), slot_at(m, i), m->slot_size);
            hole = i;
        }
    }
    memset(slot_at(m, hole), 0, m->slot_size);
    m->n--;
}

void *ebb__map_next(const ebb__map *m, size_t *at) {
    while (*at < m->room) {
        uint64_t *slot = slot_at(m, (*at)++);
        if (*slot != 0) return slot + 1;
    }
    return NULL;
}
