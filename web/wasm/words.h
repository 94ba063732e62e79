/* Structs as the scratch has them: little-endian words, one after the other, no padding. */
#ifndef EBB__WEB_WORDS_H
#define EBB__WEB_WORDS_H

#include <ebb/kernel.h>

extern uint8_t web_scratch_bytes[];

typedef struct words {
    uint8_t *at;
} words;

words words_begin(void);
void put_u64(words *w, uint64_t value);
void put_u32(words *w, uint32_t value);
void put_message(words *w, const char *message);
void put_witness(words *w, const ebb_witness *witness);

uint64_t get_u64(words *w);
uint32_t get_u32(words *w);
ebb_witness get_witness(words *w);

/* The message that the host has written there. */
const char *scratch_text(void);

#endif
