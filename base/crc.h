/* base/crc.h - CRC-32C, the checksum of trace and journal blocks. */
#ifndef EBB_BASE_CRC_H
#define EBB_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of `n` bytes. `seed` is 0, or the result of an earlier call for the bytes before these. */
uint32_t ebb__crc(uint32_t seed, const void *bytes, size_t n);

/* The same by tables alone, on every processor; for tests. */
uint32_t ebb__crc_by_table(uint32_t seed, const void *bytes, size_t n);

#endif
