/* base/text.h - builds a short text in the caller's memory, without libc.
 *
 * The text always ends in a 0. A text that does not fit is cut and ends in "...". */
#ifndef EBB_BASE_TEXT_H
#define EBB_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

typedef struct ebb__text {
    char *out;
    size_t room; /* bytes of `out`, including the 0; at least 4 */
    size_t n;    /* bytes of text so far */
} ebb__text;

ebb__text ebb__text_in(char *out, size_t room);
void ebb__text_bytes(ebb__text *t, const char *s, size_t n);
void ebb__text_str(ebb__text *t, const char *s);
void ebb__text_u64(ebb__text *t, uint64_t x);
void ebb__text_i64(ebb__text *t, int64_t x);
void ebb__text_hex(ebb__text *t, uint64_t x, unsigned digits); /* at least so many digits, zero-padded */
void ebb__text_id(ebb__text *t, uint64_t id);                  /* runtime.index.generation */

#endif
