/* kernel/file.h - the bytes of traces and journals, for those who write them.
 *
 * A file is a header of 64 bytes and then blocks; a block is a header of 32 bytes and 1 to 127
 * records of 32. Every byte is covered by a checksum or compared with what it must be. All numbers
 * are little-endian. docs/trace.md has the layout.
 *
 * decision_seq starts at 1 and rises by one a record; a gap record says how many numbers the next one
 * skips. A block's first_seq repeats the number of its first record. Records of type EBB_EV_TIME,
 * _TURN, _GAP and _TEXT mean the same in a journal. */
#ifndef EBB_KERNEL_FILE_H
#define EBB_KERNEL_FILE_H

#include <ebb/kernel.h>

enum {
    EBB__FILE_HEADER_BYTES = 64,
    EBB__FILE_BLOCK_BYTES = 32,
    EBB__FILE_RECORD_BYTES = 32,
    EBB__FILE_BLOCK_MAX = 127, /* records in a block */
    EBB__FILE_VERSION = 1
};

void ebb__file_header(uint8_t out[64], bool journal, uint8_t runtime_id);

/* Fills in the header of a block of `n` records that are in memory as the host has them. */
void ebb__block_seal(uint8_t header[32], const ebb_record *records, uint32_t n, uint64_t first_seq);

/* A record as it stands in a file. On a little-endian host this copies. */
void ebb__record_encode(uint8_t out[32], const ebb_record *record);

#endif
