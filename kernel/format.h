/* kernel/format.h - the layout of trace and journal files. The recorder writes it, trace/file.c reads it.
 *
 * A file is a header of 64 bytes and then blocks; a block is a header of 32 bytes and 1 to 127 records of 32. Every
 * byte is covered by a checksum or compared with its required value. All numbers are little-endian. docs/trace.md has
 * the layout.
 *
 * decision_seq starts at 1 and rises by one a record; a gap record says how many numbers the next one skips. A
 * block's first_seq repeats the number of its first record. Records of type EBB_EV_TIME, _TURN, _GAP and _TEXT
 * mean the same in a journal. */
#ifndef EBB_KERNEL_FORMAT_H
#define EBB_KERNEL_FORMAT_H

#include <ebb/kernel.h>

enum {
    EBB__FILE_HEADER_BYTES = 64,
    EBB__FILE_BLOCK_BYTES = 32,
    EBB__FILE_RECORD_BYTES = 32,
    EBB__FILE_BLOCK_MAX = 127, /* records in a block */
    EBB__FILE_VERSION = 1
};

/* Offsets in the file's header. */
enum {
    EBB__AT_VERSION = 8,
    EBB__AT_RUNTIME = 12,
    EBB__AT_CONTRACT = 16,
    EBB__AT_RECORD_SIZE = 48,
    EBB__AT_RESERVED = 52,
    EBB__AT_CRC = 60,
    EBB__CONTRACT_BYTES = 32
};

/* Offsets in a block's header. */
enum {
    EBB__AT_BLOCK_N = 4,
    EBB__AT_BLOCK_SEQ = 8,
    EBB__AT_BLOCK_CRC = 16, /* of the bytes from EBB__AT_BLOCK_N to here, then the records */
    EBB__AT_BLOCK_RESERVED = 20
};

#define EBB__TRACE_MAGIC   "EBBTRACE" /* 8 bytes */
#define EBB__JOURNAL_MAGIC "EBBJRNL"  /* 8 bytes, including the 0 */
#define EBB__BLOCK_MAGIC   "EBLK"     /* 4 bytes */

void ebb__file_header(uint8_t out[64], bool journal, uint8_t runtime_id);

/* Fills in the header of a block of `n` records, which are in memory in the byte order of the host. */
void ebb__block_seal(uint8_t header[32], const ebb_record *records, uint32_t n, uint64_t first_seq);

/* Encodes a record for a file. On a little-endian host this is a copy. */
void ebb__record_encode(uint8_t out[32], const ebb_record *record);

#endif
