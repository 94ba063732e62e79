/* base/crc.c - CRC-32C: eight bytes a step by tables, or by the processor's own instruction where it has one. The
 * recorder seals a block of 4 KB with it on the hot path; with the instruction that costs a few nanoseconds an
 * event. Both give the same result on every host. */
#include "base/crc.h"

#include "base/crc_table.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define EBB_CRC_SSE42 1
#else
#define EBB_CRC_SSE42 0
#endif

static uint32_t load32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t ebb__crc_by_table(uint32_t seed, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    uint32_t crc = ~seed;
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t lo = load32(p) ^ crc, hi = load32(p + 4);
        crc = crc_table[7][lo & 255] ^ crc_table[6][lo >> 8 & 255] ^ crc_table[5][lo >> 16 & 255] ^
              crc_table[4][lo >> 24] ^ crc_table[3][hi & 255] ^ crc_table[2][hi >> 8 & 255] ^
              crc_table[1][hi >> 16 & 255] ^ crc_table[0][hi >> 24];
    }
    for (; n > 0; n--, p++) crc = crc >> 8 ^ crc_table[0][(crc ^ *p) & 255];
    return ~crc;
}

#if EBB_CRC_SSE42
__attribute__((target("sse4.2"))) static uint32_t crc_by_instruction(uint32_t seed, const void *bytes,
                                                                     size_t n) {
    const uint8_t *p = bytes;
    uint64_t crc = ~seed;
    for (; n >= 8; n -= 8, p += 8) {
        crc = __builtin_ia32_crc32di(crc, (uint64_t)load32(p) | (uint64_t)load32(p + 4) << 32);
    }
    uint32_t tail = (uint32_t)crc;
    for (; n > 0; n--, p++) tail = __builtin_ia32_crc32qi(tail, *p);
    return ~tail;
}
#endif

uint32_t ebb__crc(uint32_t seed, const void *bytes, size_t n) {
#if EBB_CRC_SSE42
    if (__builtin_cpu_supports("sse4.2")) return crc_by_instruction(seed, bytes, n);
#endif
    return ebb__crc_by_table(seed, bytes, n);
}
