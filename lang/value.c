/* lang/value.c - objects: making, changing, lists and maps. */
#include "lang/host.h"

#include <assert.h>
#include <string.h>

/* ---- memory ---- */

static bool has_room(const ebb__run *run, size_t bytes) {
    if (run->message != NULL) return bytes <= EBB_MACHINE_DISPATCH_MAX - run->ms->staged_bytes;
    return bytes <= (size_t)EBB__MAIN_FACTOR * EBB_MACHINE_DISPATCH_MAX - run->program->main_bytes;
}

void *ebb__run_alloc(ebb__run *run, size_t bytes) {
    void *p = NULL;
    bool fits = has_room(run, bytes);
    if (fits && run->message != NULL) p = ebb_machine_alloc(run->ms, bytes);
    else if (fits) p = ebb__arena_alloc(&run->program->arena, bytes);
    if (p == NULL) (void)ebb__run_trap(run, fits ? EBB__TRAP_NO_MEMORY : EBB__TRAP_MEMORY, (ebb__span){0});
    else if (run->message == NULL) run->program->main_bytes += bytes;
    return p;
}

static ebb__object *make(ebb__run *run, uint32_t type, uint32_t slots) {
    size_t bytes = sizeof(ebb__object) + (size_t)slots * sizeof(ebb__value);
    ebb__object *o = ebb__run_alloc(run, bytes);
    if (o == NULL) return NULL;
    memset(o, 0, bytes);
    o->type = (uint16_t)type;
    return o;
}

ebb__object *ebb__object_make(ebb__run *run, uint32_t type) {
    const ebb__shape *s = &run->shapes[type];
    ebb__object *o = make(run, type, s->n_refs + s->n_words);
    if (o == NULL) return NULL;
    o->n_refs = o->words_at = s->n_refs;
    o->n = s->n_words;
    return o;
}

ebb__object *ebb__object_box(ebb__run *run, uint32_t type, uint64_t word) {
    if (run->shapes[type].constant != NULL) return run->shapes[type].constant;
    ebb__object *o = make(run, type, 1);
    if (o == NULL) return NULL;
    o->n = 1;
    o->slots[0].word = word;
    return o;
}

static size_t bytes_slots(size_t n) {
    return (n + 7) / 8;
}

ebb__object *ebb__bytes_new(ebb__run *run, uint32_t type, const void *bytes, size_t n) {
    if (n > EBB__MAIN_FACTOR * EBB_MACHINE_DISPATCH_MAX) {
        (void)ebb__run_trap(run, EBB__TRAP_MEMORY, (ebb__span){0});
        return NULL;
    }
    ebb__object *o = ebb__run_alloc(run, sizeof *o + 8 * bytes_slots(n));
    if (o == NULL) return NULL;
    *o = (ebb__object){.type = (uint16_t)type, .n = (uint32_t)n};
    if (n > 0) o->slots[bytes_slots(n) - 1].word = 0;
    if (bytes != NULL && n > 0) memcpy(ebb__object_bytes(o), bytes, n);
    return o;
}

static ebb__object *copy(ebb__run *run, ebb__object *o) {
    ebb__object *c = make(run, o->type, o->n_refs + o->n);
    if (c == NULL) return NULL;
    c->n_refs = c->words_at = o->n_refs;
    c->n = o->n;
    memcpy(c->slots, o->slots, o->n_refs * sizeof *o->slots);
    memcpy(c->slots + c->words_at, o->slots + o->words_at, o->n * sizeof *o->slots);
    for (uint32_t i = 0; i < o->n_refs; i++) {
        if (o->slots[i].ref != NULL) ebb__object_share(o->slots[i].ref);
    }
    return c;
}

/* Strings and bytes never change. */
ebb__object *ebb__object_own(ebb__run *run, ebb__object *o) {
    if (o->type == EBB__TY_STRING || o->type == EBB__TY_BYTES) return o;
    return o->flags & (EBB__SHARED | EBB__FROZEN) ? copy(run, o) : o;
}

/* ---- lists ---- */

static uint32_t room_of(const ebb__object *o) {
    return o->room == 0 ? 0 : UINT32_C(1) << (o->room - 1);
}

/* log2 of the room for n elements, plus 1. */
static uint8_t room_for(uint32_t n) {
    uint8_t log = 2;
    while ((UINT64_C(1) << log) < n) log++;
    return (uint8_t)(log + 1);
}

uint32_t ebb__array_len(const ebb__object *o) {
    return o->n_refs + o->n;
}

ebb__value *ebb__array_at(ebb__object *o, uint32_t i) {
    assert(i < o->n_refs + o->n);
    return &o->slots[i];
}

static bool list_of_refs(const ebb__run *run, const ebb__object *o) {
    return run->shapes[run->shapes[o->type].of[0]].is_ref;
}

ebb__object *ebb__array_new(ebb__run *run, uint32_t type, uint32_t n) {
    ebb__object *o = make(run, type, n);
    if (o == NULL) return NULL;
    if (list_of_refs(run, o)) o->n_refs = n;
    else o->n = n;
    return o;
}

ebb__object *ebb__array_push(ebb__run *run, ebb__object *o, ebb__value x) {
    uint32_t n = ebb__array_len(o);
    if (n >= room_of(o)) {
        if (n > EBB__MAIN_FACTOR * EBB_MACHINE_DISPATCH_MAX / 8) n = UINT32_MAX / 32; /* it will not fit */
        uint8_t room = room_for(n + 1);
        ebb__object *grown = make(run, o->type, UINT32_C(1) << (room - 1));
        if (grown == NULL) return NULL;
        memcpy(grown->slots, o->slots, n * sizeof *o->slots);
        grown->room = room;
        grown->n_refs = o->n_refs;
        grown->n = o->n;
        o = grown;
    }
    if (list_of_refs(run, o)) o->n_refs++;
    else o->n++;
    o->slots[n] = x;
    return o;
}

ebb__object *ebb__array_join(ebb__run *run, ebb__object *a, ebb__object *b) {
    uint32_t n = ebb__array_len(a), m = ebb__array_len(b);
    ebb__object *o = ebb__array_new(run, a->type, n + m);
    if (o == NULL) return NULL;
    memcpy(o->slots, a->slots, n * sizeof *o->slots);
    memcpy(o->slots + n, b->slots, m * sizeof *o->slots);
    for (uint32_t i = 0; i < o->n_refs; i++) ebb__object_share(o->slots[i].ref);
    return o;
}

/* ---- maps: sorted by key. A pair of one kind stands together; else keys and values have an array each. ---- */

typedef struct pair {
    bool key, value; /* references */
} pair;

static pair pair_of(const ebb__run *run, const ebb__object *o) {
    const ebb__shape *s = &run->shapes[o->type];
    return (pair){run->shapes[s->of[0]].is_ref, run->shapes[s->of[1]].is_ref};
}

static uint32_t key_slot(pair p, const ebb__object *o, uint32_t i) {
    if (p.key == p.value) return 2 * i;
    return p.key ? i : o->words_at + i;
}

static uint32_t value_slot(pair p, const ebb__object *o, uint32_t i) {
    if (p.key == p.value) return 2 * i + 1;
    return p.value ? i : o->words_at + i;
}

static uint32_t pairs(pair p, const ebb__object *o) {
    return p.key != p.value ? o->n : p.key ? o->n_refs / 2 : o->n / 2;
}

static void set_pairs(pair p, ebb__object *o, uint32_t n) {
    o->n_refs = p.key + p.value == 2 ? 2 * n : p.key || p.value ? n : 0;
    o->n = 2 * n - o->n_refs;
}

uint32_t ebb__dict_len(const ebb__run *run, const ebb__object *o) {
    return pairs(pair_of(run, o), o);
}

ebb__value *ebb__dict_key(const ebb__run *run, ebb__object *o, uint32_t i) {
    return &o->slots[key_slot(pair_of(run, o), o, i)];
}

ebb__value *ebb__dict_value(const ebb__run *run, ebb__object *o, uint32_t i) {
    return &o->slots[value_slot(pair_of(run, o), o, i)];
}

ebb__object *ebb__dict_new(ebb__run *run, uint32_t type, uint32_t n) {
    uint8_t room = room_for(n);
    ebb__object *o = make(run, type, UINT32_C(2) << (room - 1));
    if (o == NULL) return NULL;
    pair p = pair_of(run, o);
    o->room = room;
    o->words_at = p.key != p.value ? room_of(o) : 0;
    return o;
}

bool ebb__dict_find(ebb__run *run, ebb__object *o, ebb__value key, uint32_t *at) {
    pair p = pair_of(run, o);
    uint32_t type = run->shapes[o->type].of[0], low = 0, high = pairs(p, o);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = 0;
        (void)ebb__value_compare(run, type, o->slots[key_slot(p, o, middle)], key, &order);
        if (order == 0) {
            *at = middle;
            return true;
        }
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    *at = low;
    return false;
}

static ebb__object *grow_map(ebb__run *run, pair p, ebb__object *o, uint32_t n) {
    ebb__object *grown = ebb__dict_new(run, o->type, n + 1);
    if (grown == NULL) return NULL;
    set_pairs(p, grown, n);
    memcpy(grown->slots, o->slots, o->n_refs * sizeof *o->slots);
    memcpy(grown->slots + grown->words_at, o->slots + o->words_at, o->n * sizeof *o->slots);
    return grown;
}

/* Moves the pairs from `from` on to `to`. */
static void shift(pair p, ebb__object *o, uint32_t from, uint32_t to, uint32_t n) {
    if (p.key == p.value) {
        memmove(&o->slots[2 * to], &o->slots[2 * from], (size_t)2 * (n - from) * sizeof *o->slots);
        return;
    }
    memmove(&o->slots[to], &o->slots[from], (n - from) * sizeof *o->slots);
    memmove(&o->slots[o->words_at + to], &o->slots[o->words_at + from], (n - from) * sizeof *o->slots);
}

ebb__object *ebb__dict_set(ebb__run *run, ebb__object *o, ebb__value key, ebb__value value) {
    pair p = pair_of(run, o);
    uint32_t n = pairs(p, o), at;
    if (!ebb__dict_find(run, o, key, &at)) {
        if (n >= room_of(o) && (o = grow_map(run, p, o, n)) == NULL) return NULL;
        shift(p, o, at, at + 1, n);
        set_pairs(p, o, n + 1);
        o->slots[key_slot(p, o, at)] = key;
    }
    o->slots[value_slot(p, o, at)] = value;
    return o;
}

void ebb__dict_remove(const ebb__run *run, ebb__object *o, uint32_t at) {
    pair p = pair_of(run, o);
    uint32_t n = pairs(p, o);
    shift(p, o, at + 1, at, n);
    set_pairs(p, o, n - 1);
}
