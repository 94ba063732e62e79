/* kernel/format.c - the bytes of file headers, block headers and records. */
#include "kernel/format.h"

#include <assert.h>
#include <string.h>

#include "base/crc.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HOST_IS_LITTLE 1
#else
#define HOST_IS_LITTLE 0
#endif

_Static_assert(sizeof(ebb_record) == EBB__FILE_RECORD_BYTES, "a record is its bytes");
_Static_assert(offsetof(ebb_record, value) == 4 && offsetof(ebb_record, task) == 8 &&
                   offsetof(ebb_record, region) == 16 && offsetof(ebb_record, other) == 24,
               "a record has no padding");
_Static_assert(sizeof EBB_CONTRACT <= 32, "the contract's name fits the header");

static void put32(uint8_t *p, uint32_t x) {
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(x >> 8 * i);
}

static void put64(uint8_t *p, uint64_t x) {
    for (int i = 0; i < 8; i++) p[i] = (uint8_t)(x >> 8 * i);
}

void ebb__file_header(uint8_t out[64], bool journal, uint8_t runtime_id) {
    memset(out, 0, EBB__FILE_HEADER_BYTES);
    memcpy(out, journal ? EBB__JOURNAL_MAGIC : EBB__TRACE_MAGIC, 8);
    put32(out + EBB__AT_VERSION, EBB__FILE_VERSION);
    put32(out + EBB__AT_RUNTIME, runtime_id);
    memcpy(out + EBB__AT_CONTRACT, EBB_CONTRACT, sizeof EBB_CONTRACT - 1);
    put32(out + EBB__AT_RECORD_SIZE, EBB__FILE_RECORD_BYTES);
    put32(out + EBB__AT_CRC, ebb__crc(0, out, EBB__AT_CRC));
}

void ebb__record_encode(uint8_t out[32], const ebb_record *record) {
    if (HOST_IS_LITTLE) {
        memcpy(out, record, EBB__FILE_RECORD_BYTES);
        return;
    }
    out[0] = record->type;
    out[1] = record->phase;
    out[2] = record->kind;
    out[3] = record->epoch;
    put32(out + 4, record->value);
    put64(out + 8, record->task);
    put64(out + 16, record->region);
    put64(out + 24, record->other);
}

static uint32_t crc_records(uint32_t crc, const ebb_record *records, uint32_t n) {
    if (HOST_IS_LITTLE) return ebb__crc(crc, records, (size_t)n * sizeof *records);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t bytes[EBB__FILE_RECORD_BYTES];
        ebb__record_encode(bytes, &records[i]);
        crc = ebb__crc(crc, bytes, sizeof bytes);
    }
    return crc;
}

void ebb__block_seal(uint8_t header[32], const ebb_record *records, uint32_t n, uint64_t first_seq) {
    assert(n >= 1 && n <= EBB__FILE_BLOCK_MAX);
    memset(header, 0, EBB__FILE_BLOCK_BYTES);
    put32(header, EBB__BLOCK_MAGIC);
    put32(header + EBB__AT_BLOCK_N, n);
    put64(header + EBB__AT_BLOCK_SEQ, first_seq);
    uint32_t crc = ebb__crc(0, header + EBB__AT_BLOCK_N, EBB__AT_BLOCK_CRC - EBB__AT_BLOCK_N);
    put32(header + EBB__AT_BLOCK_CRC, crc_records(crc, records, n));
}
