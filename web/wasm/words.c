#include "web/wasm/words.h"

#include "web/wasm/abi.h"

#include <string.h>

uint8_t web_scratch_bytes[SCRATCH] __attribute__((aligned(8)));

words words_begin(void) {
    return (words){web_scratch_bytes};
}

/* wasm is little-endian. */
void put_u64(words *w, uint64_t value) {
    memcpy(w->at, &value, sizeof value);
    w->at += sizeof value;
}

void put_u32(words *w, uint32_t value) {
    memcpy(w->at, &value, sizeof value);
    w->at += sizeof value;
}

void put_message(words *w, const char *message) {
    memcpy(w->at, message, EBB_MESSAGE_MAX + 1);
    w->at += EBB_MESSAGE_MAX + 1;
}

void put_witness(words *w, const ebb_witness *witness) {
    put_u64(w, witness->task.id);
    put_u64(w, witness->region.id);
    put_u64(w, witness->budget.deadline);
    put_u32(w, witness->epoch);
    put_u32(w, witness->phase);
    put_u32(w, witness->severity);
    put_u32(w, witness->kind);
    put_u32(w, witness->budget.polls);
    put_u32(w, witness->budget.priority);
}

uint64_t get_u64(words *w) {
    uint64_t value;
    memcpy(&value, w->at, sizeof value);
    w->at += sizeof value;
    return value;
}

uint32_t get_u32(words *w) {
    uint32_t value;
    memcpy(&value, w->at, sizeof value);
    w->at += sizeof value;
    return value;
}

ebb_witness get_witness(words *w) {
    ebb_witness out = {.task = {get_u64(w)}, .region = {get_u64(w)}, .budget.deadline = get_u64(w)};
    out.epoch = (uint8_t)get_u32(w);
    out.phase = (uint8_t)get_u32(w);
    out.severity = (uint8_t)get_u32(w);
    out.kind = (uint8_t)get_u32(w);
    out.budget.polls = get_u32(w);
    out.budget.priority = (uint8_t)get_u32(w);
    return out;
}

const char *scratch_text(void) {
    web_scratch_bytes[SCRATCH - 1] = 0;
    return (const char *)web_scratch_bytes;
}
