#include "durable/context.h"

#include <string.h>

#include "base/hash.h"

enum { MARK_BYTES = 2, VERSION = 1, AT_TRACE = 3, AT_SPAN = 19, AT_FLAGS = 27 };
static const uint8_t mark[MARK_BYTES] = {0xEB, 'T'};

static bool has_mark(ebb_blob b) {
    return b.n >= MARK_BYTES && memcmp(b.at, mark, MARK_BYTES) == 0;
}

ebb_blob ebb__context_wrap(ebb__arena *arena, const ebb_traceparent *t, ebb_blob input) {
    static const ebb_traceparent none;
    if (t == NULL && !has_mark(input)) return input;
    if (t == NULL) t = &none;
    uint8_t *at = ebb__arena_alloc(arena, EBB__WRAP_BYTES + input.n);
    if (at == NULL) return (ebb_blob){NULL, EBB__WRAP_BYTES + input.n};
    memcpy(at, mark, MARK_BYTES);
    at[MARK_BYTES] = VERSION;
    memcpy(at + AT_TRACE, t->trace, sizeof t->trace);
    memcpy(at + AT_SPAN, t->span, sizeof t->span);
    at[AT_FLAGS] = t->flags;
    if (input.n != 0) memcpy(at + EBB__WRAP_BYTES, input.at, input.n);
    return (ebb_blob){at, EBB__WRAP_BYTES + input.n};
}

bool ebb__context_unwrap(ebb_blob row, ebb_traceparent *t, ebb_blob *input) {
    static const uint8_t zeros[sizeof t->trace];
    const uint8_t *at = row.at;
    *input = row;
    if (row.n < EBB__WRAP_BYTES || !has_mark(row) || at[MARK_BYTES] != VERSION) return false;
    memcpy(t->trace, at + AT_TRACE, sizeof t->trace);
    memcpy(t->span, at + AT_SPAN, sizeof t->span);
    t->flags = at[AT_FLAGS];
    *input = (ebb_blob){at + EBB__WRAP_BYTES, row.n - EBB__WRAP_BYTES};
    return memcmp(t->trace, zeros, sizeof zeros) != 0;
}

bool ebb__context_of(const ebb__event *e, ebb_traceparent *out) {
    return e->trace.n != 0 && ebb_traceparent_parse(e->trace.at, e->trace.n, out) == EBB_OK;
}

uint64_t ebb__instance_name(uint64_t key, uint64_t upper) {
    uint32_t number = (uint32_t)ebb__hash_word(key);
    return upper << 32 | (number != 0 ? number : 1);
}
