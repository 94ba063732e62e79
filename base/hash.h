/* base/hash.h - a 128-bit mixing hash over 64-bit words.
 *
 * The constants are fixed and the hash works on numbers, not on memory, so every host gets the same result. It
 * distinguishes runs; it is not cryptographic, and collisions can be constructed. */
#ifndef EBB_BASE_HASH_H
#define EBB_BASE_HASH_H

#include <stdint.h>

typedef struct ebb__hash {
    uint64_t hi, lo;
} ebb__hash;

/* The start of a chain; `domain` separates chains with different meanings. */
ebb__hash ebb__hash_start(uint64_t domain);

/* The chain `h` with one more word. For a given word it is a bijection of h. */
ebb__hash ebb__hash_mix(ebb__hash h, uint64_t word);

/* The chain `h` with another hash in it. */
ebb__hash ebb__hash_fold(ebb__hash h, ebb__hash with);

/* Spreads the last words over all bits. Finish a chain before it is summed or compared. */
ebb__hash ebb__hash_finish(ebb__hash h);

/* The sum modulo 2^128, which does not depend on the order. */
ebb__hash ebb__hash_add(ebb__hash a, ebb__hash b);

/* A 64-bit number spread over all bits; a bijection. For hash tables. */
uint64_t ebb__hash_word(uint64_t x);

#endif
