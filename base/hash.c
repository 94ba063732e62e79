/* base/hash.c - the 128-bit mixing hash: two lanes that are rotated, multiplied by odd constants and
 * added to each other for each word. Changing a constant changes every fingerprint ever recorded. */
#include "base/hash.h"

#define MIX_A UINT64_C(0x9e3779b97f4a7c15)
#define MIX_B UINT64_C(0xc2b2ae3d27d4eb4f)
#define MIX_C UINT64_C(0xff51afd7ed558ccd)
#define MIX_D UINT64_C(0xc4ceb9fe1a85ec53)

static uint64_t rotate(uint64_t x, unsigned by) {
    return x << by | x >> (64 - by);
}

uint64_t ebb__hash_word(uint64_t x) {
    x = (x ^ x >> 33) * MIX_C;
    x = (x ^ x >> 33) * MIX_D;
    return x ^ x >> 33;
}

ebb__hash ebb__hash_start(uint64_t domain) {
    return ebb__hash_mix((ebb__hash){MIX_A, MIX_B}, domain);
}

ebb__hash ebb__hash_mix(ebb__hash h, uint64_t word) {
    uint64_t lo = h.lo ^ ebb__hash_word(word + MIX_A);
    uint64_t hi = h.hi ^ rotate(word * MIX_B, 32);
    lo = rotate(lo, 27) * MIX_A + hi;
    hi = rotate(hi, 31) * MIX_B + lo;
    return (ebb__hash){hi, lo};
}

ebb__hash ebb__hash_fold(ebb__hash h, ebb__hash with) {
    return ebb__hash_mix(ebb__hash_mix(h, with.hi), with.lo);
}

ebb__hash ebb__hash_finish(ebb__hash h) {
    uint64_t lo = h.lo + h.hi, hi = h.hi + lo;
    lo = ebb__hash_word(lo);
    hi = ebb__hash_word(hi);
    lo += hi;
    return (ebb__hash){hi + lo, lo};
}

ebb__hash ebb__hash_add(ebb__hash a, ebb__hash b) {
    uint64_t lo = a.lo + b.lo;
    return (ebb__hash){a.hi + b.hi + (lo < a.lo ? 1u : 0u), lo};
}
