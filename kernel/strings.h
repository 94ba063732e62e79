/* Strings of a trace: names and sites, which stand in it once and have a number from then on.
 *
 * A string is known by its address, so looking one up is a hash of the pointer. The first time that an address is
 * seen, its text is compared with those that have a number: the number depends on the texts alone, and a replay,
 * where they have other addresses, gives the same. The table is allocated with the recorder and never grows. A string
 * that it has no place for has the number 0. */
#ifndef EBB__STRINGS_H
#define EBB__STRINGS_H

#include <stdint.h>

#include <ebb/kernel.h>

enum {
    EBB__STRINGS_MOST = 1023, /* strings of a trace: a number has 10 bits */
    EBB__STRING_PLACES = 2048,
    EBB__STRING_CACHED = EBB__STRING_PLACES * 3 / 4
};

typedef struct ebb__strings {
    struct {
        const char *text; /* NULL: free */
        uint32_t number;
    } place[EBB__STRING_PLACES]; /* by address, open */
    uint32_t cached;             /* places in use */
    uint32_t n;                  /* the last number */
    const char *text[EBB__STRINGS_MOST + 1];
    uint32_t hash[EBB__STRINGS_MOST + 1]; /* of each text */
} ebb__strings;

static inline uint32_t ebb__string_place(const char *text) {
    uint64_t at = (uint64_t)(uintptr_t)text * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(at >> 53); /* 11 bits: EBB__STRING_PLACES */
}

void ebb__strings_init(ebb__strings *s);
/* The number of a string; 0: NULL, or no place. *fresh: it has just got the number. */
uint32_t ebb__string_slow(ebb__strings *s, const char *text, bool *fresh);

static inline uint32_t ebb__string(ebb__strings *s, const char *text, bool *fresh) {
    uint32_t i = ebb__string_place(text);
    if (text != NULL && s->place[i].text == text) return s->place[i].number;
    return ebb__string_slow(s, text, fresh);
}

#endif
