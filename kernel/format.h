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
    EBB__FILE_VERSION = 2,
    EBB__FILE_OLDEST = 1 /* has no strings, and no events of layers but workflows */
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

#define EBB__TRACE_MAGIC   "EBBTRACE"           /* 8 bytes */
#define EBB__JOURNAL_MAGIC "EBBJRNL"            /* 8 bytes, including the 0 */
#define EBB__BLOCK_MAGIC   UINT32_C(0x4b4c4245) /* "EBLK", little-endian */

/* Where the value of a record has the numbers of strings. */
typedef enum ebb__strings_at {
    EBB__STRINGS_NONE = 0,
    EBB__STRINGS_SITE, /* above 8 bits for the value: a site */
    EBB__STRINGS_BOTH  /* above 12 bits for the value: 10 for a site, 10 for a name */
} ebb__strings_at;
enum { EBB__SITE_BITS = 8, EBB__SITE_ABOVE = 12, EBB__WHAT_ABOVE = 22, EBB__STRING_MASK = 1023 };

static inline ebb__strings_at ebb__strings_in(uint32_t type) {
    switch (type) {
    case EBB_EV_PRESENT:
    case EBB_EV_REGION_OPENED:
    case EBB_EV_TASK_SPAWNED:
    case EBB_EV_OBLIGATION_RESERVED:
    case EBB_EV_FINALIZER_ADDED: return EBB__STRINGS_SITE;
    case EBB_EV_NAMED:
    case EBB_EV_WAITING:
    case EBB_EV_OPERATION_BEGUN:
    case EBB_EV_FUTURE_MADE:
    case EBB_EV_CONNECTION_OPENED:
    case EBB_EV_PROCESS_STARTED: return EBB__STRINGS_BOTH;
    default: return EBB__STRINGS_NONE;
    }
}

/* Whether the event comes as a note: from a layer above the kernel, or because it is no consequence of the kernel's
 * inputs. */
static inline bool ebb__event_is_note(uint32_t type) {
    return type == EBB_EV_NAMED || type == EBB_EV_POLL_ENDED || type == EBB_EV_WORKFLOW ||
           type == EBB_EV_OPERATION_BEGUN || type == EBB_EV_OPERATION_ENDED ||
           (type >= EBB_EV_FUTURE_MADE && type < EBB_EV_MAX);
}

void ebb__file_header(uint8_t out[64], bool journal, uint8_t runtime_id);

/* Fills in the header of a block of `n` records, which are in memory in the byte order of the host. */
void ebb__block_seal(uint8_t header[32], const ebb_record *records, uint32_t n, uint64_t first_seq);

/* Encodes a record for a file. On a little-endian host this is a copy. */
void ebb__record_encode(uint8_t out[32], const ebb_record *record);

#endif
