/* trace/file.c - traces and journals as files: a reader that withstands any input, and a writer for tools.
 *
 * The reader checks lengths before it reads and checksums before it decodes. At an error it keeps its position, so
 * a further call returns the same error. */
#include <ebb/trace.h>

#include <string.h>

#include "base/crc.h"
#include "kernel/format.h"

static uint32_t get32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get64(const uint8_t *p) {
    return (uint64_t)get32(p) | (uint64_t)get32(p + 4) << 32;
}

static bool all_zero(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (p[i] != 0) return false;
    }
    return true;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static ebb_status wrong(ebb_trace_reader *r, ebb_status st, size_t offset, const char *expected) {
    r->error_offset = offset;
    r->error = expected;
    return st;
}

static ebb_status check_header(ebb_trace_reader *r, const uint8_t *p, size_t n) {
    if (n < 8 || (memcmp(p, EBB__TRACE_MAGIC, 8) != 0 && memcmp(p, EBB__JOURNAL_MAGIC, 8) != 0)) {
        return wrong(r, EBB_ERR_FORMAT, 0, "the magic of a trace (EBBTRACE) or a journal (EBBJRNL)");
    }
    if (n < EBB__FILE_HEADER_BYTES) {
        return wrong(r, EBB_ERR_TRUNCATED, 0, "a file header of 64 bytes");
    }
    if (get32(p + EBB__AT_CRC) != ebb__crc(0, p, EBB__AT_CRC)) {
        return wrong(r, EBB_ERR_CORRUPT, EBB__AT_CRC, "the checksum of the file header");
    }
    uint32_t version = get32(p + EBB__AT_VERSION);
    if (version < EBB__FILE_OLDEST || version > EBB__FILE_VERSION) {
        return wrong(r, EBB_ERR_FORMAT, EBB__AT_VERSION, "format version 1 or 2");
    }
    if (get32(p + EBB__AT_RUNTIME) > UINT8_MAX) {
        return wrong(r, EBB_ERR_FORMAT, EBB__AT_RUNTIME, "a runtime id of at most 255");
    }
    char contract[EBB__CONTRACT_BYTES] = EBB_CONTRACT;
    if (memcmp(p + EBB__AT_CONTRACT, contract, EBB__CONTRACT_BYTES) != 0) {
        return wrong(r, EBB_ERR_FORMAT, EBB__AT_CONTRACT, "the contract " EBB_CONTRACT);
    }
    if (get32(p + EBB__AT_RECORD_SIZE) != EBB__FILE_RECORD_BYTES) {
        return wrong(r, EBB_ERR_FORMAT, EBB__AT_RECORD_SIZE, "a record size of 32");
    }
    if (!all_zero(p + EBB__AT_RESERVED, EBB__AT_CRC - EBB__AT_RESERVED)) {
        return wrong(r, EBB_ERR_FORMAT, EBB__AT_RESERVED, "zeros in the reserved bytes");
    }
    return EBB_OK;
}

ebb_status ebb_trace_reader_open(ebb_trace_reader *r, const void *bytes, size_t n) {
    memset(r, 0, sizeof *r);
    const uint8_t *p = bytes;
    ebb_status st = check_header(r, p, n);
    if (st != EBB_OK) return st;
    r->bytes = p;
    r->n = n;
    r->offset = EBB__FILE_HEADER_BYTES;
    r->journal = memcmp(p, EBB__JOURNAL_MAGIC, 8) == 0;
    r->runtime_id = (uint8_t)get32(p + EBB__AT_RUNTIME);
    r->seq = 1;
    return EBB_OK;
}

static ebb_status enter_block(ebb_trace_reader *r) {
    size_t left = r->n - r->offset;
    const uint8_t *p = r->bytes + r->offset;
    if (left < EBB__FILE_BLOCK_BYTES) {
        return wrong(r, EBB_ERR_TRUNCATED, r->offset, "a block header of 32 bytes");
    }
    if (get32(p) != EBB__BLOCK_MAGIC) {
        return wrong(r, EBB_ERR_CORRUPT, r->offset, "the magic of a block (EBLK)");
    }
    uint32_t n = get32(p + EBB__AT_BLOCK_N);
    if (n < 1 || n > EBB__FILE_BLOCK_MAX) {
        return wrong(r, EBB_ERR_CORRUPT, r->offset + EBB__AT_BLOCK_N, "1 to 127 records in the block");
    }
    if (!all_zero(p + EBB__AT_BLOCK_RESERVED, EBB__FILE_BLOCK_BYTES - EBB__AT_BLOCK_RESERVED)) {
        return wrong(r, EBB_ERR_CORRUPT, r->offset + EBB__AT_BLOCK_RESERVED, "zeros in the reserved bytes");
    }
    size_t size = (size_t)n * EBB__FILE_RECORD_BYTES;
    if (left - EBB__FILE_BLOCK_BYTES < size) {
        return wrong(r, EBB_ERR_TRUNCATED, r->offset, "a whole block");
    }
    uint32_t crc = ebb__crc(0, p + EBB__AT_BLOCK_N, EBB__AT_BLOCK_CRC - EBB__AT_BLOCK_N);
    if (get32(p + EBB__AT_BLOCK_CRC) != ebb__crc(crc, p + EBB__FILE_BLOCK_BYTES, size)) {
        return wrong(r, EBB_ERR_CORRUPT, r->offset, "the checksum of the block");
    }
    if (get64(p + EBB__AT_BLOCK_SEQ) != r->seq) {
        return wrong(r, EBB_ERR_CORRUPT, r->offset + EBB__AT_BLOCK_SEQ,
                     "a first sequence number that continues the block before");
    }
    r->block = p + EBB__FILE_BLOCK_BYTES;
    r->record = 0;
    r->records = n;
    r->offset += EBB__FILE_BLOCK_BYTES + size;
    return EBB_OK;
}

static void decode(const ebb_trace_reader *r, const uint8_t *p, ebb_event *out) {
    *out = (ebb_event){
        .type = p[0],
        .decision_seq = r->seq,
        .host_turn_id = r->turn,
        .microtask_batch_id = r->batch,
        .time = r->now,
        .task_id = get64(p + 8),
        .region_id = get64(p + 16),
        .other = get64(p + 24),
        .value = get32(p + 4),
        .phase = p[1],
        .cancel_kind = p[2],
        .cancel_epoch = p[3] & 15,
        .severity = p[3] >> 4,
        .offset = (size_t)(p - r->bytes),
    };
    ebb__strings_at strings = r->journal ? EBB__STRINGS_NONE : ebb__strings_in(out->type);
    if (strings == EBB__STRINGS_SITE) {
        out->site = out->value >> EBB__SITE_BITS;
        out->value &= (1u << EBB__SITE_BITS) - 1;
    } else if (strings == EBB__STRINGS_BOTH) {
        out->what = out->value >> EBB__WHAT_ABOVE;
        out->site = out->value >> EBB__SITE_ABOVE & EBB__STRING_MASK;
        out->value &= (1u << EBB__SITE_ABOVE) - 1;
    }
    if (out->type == EBB_EV_TEXT) memcpy(out->text, p + 8, out->value < 24 ? out->value : 24);
}

ebb_status ebb_trace_reader_next(ebb_trace_reader *r, ebb_event *out) {
    if (r->bytes == NULL) return EBB_ERR_FORMAT;
    if (r->record == r->records) {
        if (r->offset == r->n) return EBB_PENDING;
        ebb_status st = enter_block(r);
        if (st != EBB_OK) return st;
    }
    const uint8_t *p = r->block + r->record * EBB__FILE_RECORD_BYTES;
    uint64_t skipped = p[0] == EBB_EV_GAP ? get64(p + 24) : 0;
    if (skipped > UINT64_MAX - 1 - r->seq) {
        return wrong(r, EBB_ERR_CORRUPT, (size_t)(p - r->bytes), "sequence numbers that do not wrap");
    }
    if (p[0] == EBB_EV_TIME) r->now = get64(p + 24);
    if (p[0] == EBB_EV_TURN) {
        r->turn = get64(p + 8);
        r->batch = get64(p + 16);
    }
    decode(r, p, out);
    r->seq += 1 + skipped;
    r->record++;
    return EBB_OK;
}

static uint32_t value_of(const ebb_event *ev) {
    switch (ebb__strings_in(ev->type)) {
    case EBB__STRINGS_SITE: return ev->value | ev->site << EBB__SITE_BITS;
    case EBB__STRINGS_BOTH: return ev->value | ev->site << EBB__SITE_ABOVE | ev->what << EBB__WHAT_ABOVE;
    default: return ev->value;
    }
}

ebb_record ebb_event_record(const ebb_event *ev) {
    return (ebb_record){
        .type = (uint8_t)ev->type,
        .phase = ev->phase,
        .kind = ev->cancel_kind,
        .epoch = (uint8_t)(ev->severity << 4 | (ev->cancel_epoch & 15)),
        .value = value_of(ev),
        .task = ev->task_id,
        .region = ev->region_id,
        .other = ev->other,
    };
}

/* ---- writing ------------------------------------------------------------------------------------------- */

void ebb_trace_writer_begin(ebb_trace_writer *w, bool journal, uint8_t runtime_id, ebb_write_fn write,
                            void *ctx) {
    w->write = write;
    w->ctx = ctx;
    w->seq = 1;
    w->n = 0;
    uint8_t header[EBB__FILE_HEADER_BYTES];
    ebb__file_header(header, journal, runtime_id);
    write(ctx, header, sizeof header);
}

void ebb_trace_writer_put(ebb_trace_writer *w, const ebb_record *record) {
    w->block[w->n++] = *record;
    if (w->n == EBB__FILE_BLOCK_MAX) ebb_trace_writer_end(w);
}

void ebb_trace_writer_end(ebb_trace_writer *w) {
    if (w->n == 0) return;
    uint8_t bytes[EBB__FILE_BLOCK_BYTES];
    ebb__block_seal(bytes, w->block, w->n, w->seq);
    w->write(w->ctx, bytes, sizeof bytes);
    for (uint32_t i = 0; i < w->n; i++) {
        ebb__record_encode(bytes, &w->block[i]);
        w->write(w->ctx, bytes, EBB__FILE_RECORD_BYTES);
        w->seq += 1 + (w->block[i].type == EBB_EV_GAP ? w->block[i].other : 0);
    }
    w->n = 0;
}
