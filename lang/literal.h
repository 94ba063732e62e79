/* lang/literal.h - what literals stand for: numbers, durations, escapes, UTF-8. */
#ifndef EBB_LANG_LITERAL_H
#define EBB_LANG_LITERAL_H

#include "lang/lexer.h"

typedef struct ebb__number {
    uint64_t value;                   /* of a duration: milliseconds */
    bool is_duration, is_i64, is_u64; /* by their suffix */
    enum { EBB__NUMBER_OK, EBB__NUMBER_RANGE, EBB__NUMBER_FORM } error;
} ebb__number;

ebb__number ebb__number_read(const char *s, uint32_t n);

/* The length of the character at `s`, 1 to 4; 0: not UTF-8. */
uint32_t ebb__utf8_length(const char *s, uint32_t n);

/* Checks the character or escape at `s`, gives its length, and says what is wrong with it; NULL: nothing. */
const char *ebb__escape_check(const char *s, uint32_t n, bool bytes, uint32_t *length);

#endif
