/* base/text.c - short texts; see base/text.h. */
#include "base/text.h"

#include <assert.h>
#include <string.h>

ebb__text ebb__text_in(char *out, size_t room) {
    assert(room >= 4);
    out[0] = 0;
    return (ebb__text){out, room, 0};
}

void ebb__text_bytes(ebb__text *t, const char *s, size_t n) {
    size_t left = t->room - 1 - t->n;
    size_t fits = n < left ? n : left;
    memcpy(t->out + t->n, s, fits);
    t->n += fits;
    t->out[t->n] = 0;
    if (fits < n) memcpy(t->out + t->room - 4, "...", 4);
}

void ebb__text_str(ebb__text *t, const char *s) {
    ebb__text_bytes(t, s, strlen(s));
}

static void digits_of(ebb__text *t, uint64_t x, unsigned base, unsigned at_least) {
    char digits[64];
    size_t at = sizeof digits;
    for (; x != 0 || sizeof digits - at < at_least; x /= base) {
        digits[--at] = "0123456789abcdef"[x % base];
    }
    ebb__text_bytes(t, digits + at, sizeof digits - at);
}

void ebb__text_u64(ebb__text *t, uint64_t x) {
    digits_of(t, x, 10, 1);
}

void ebb__text_i64(ebb__text *t, int64_t x) {
    if (x < 0) ebb__text_str(t, "-");
    digits_of(t, x < 0 ? 0 - (uint64_t)x : (uint64_t)x, 10, 1);
}

void ebb__text_hex(ebb__text *t, uint64_t x, unsigned digits) {
    digits_of(t, x, 16, digits < 1 ? 1 : digits < 16 ? digits : 16);
}

void ebb__text_id(ebb__text *t, uint64_t id) {
    ebb__text_u64(t, id >> 56);
    ebb__text_str(t, ".");
    ebb__text_u64(t, id >> 32 & 0xffffff);
    ebb__text_str(t, ".");
    ebb__text_u64(t, id & 0xffffffff);
}
