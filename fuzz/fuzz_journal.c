/* fuzz/fuzz_journal.c - journals: the reader on anything, and the replay on anything that it reads.
 *
 * The first byte decides what the rest is: the blocks of a journal; its records, which are put into a
 * file with right checksums and replayed; or a program, which is run and recorded. That one's replay
 * gives the same trace, and whatever one of its records is changed to, the replay ends. */
#include <ebb/ebb.h>

#include <stdlib.h>
#include <string.h>

#include "kernel/format.h"
#include "tests/support/random_program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool holds) {
    if (!holds) abort();
}

/* The header is put in front, so that the blocks are reached. */
static void as_blocks(const uint8_t *data, size_t n) {
    uint8_t *file = malloc(64 + n);
    require(file != NULL);
    ebb__file_header(file, true, 3);
    if (n > 0) memcpy(file + 64, data, n);
    ebb_trace_reader r;
    ebb_event ev;
    ebb_status st = ebb_trace_reader_open(&r, file, 64 + n);
    require(st == EBB_OK && r.journal && r.runtime_id == 3);
    while ((st = ebb_trace_reader_next(&r, &ev)) == EBB_OK) {
        uint8_t encoded[32];
        ebb_record record = ebb_event_record(&ev);
        ebb__record_encode(encoded, &record);
        require(ev.offset + 32 <= 64 + n && memcmp(encoded, file + ev.offset, 32) == 0);
    }
    require(st == EBB_PENDING || (r.error != NULL && r.error_offset <= 64 + n));
    require(ebb_trace_reader_next(&r, &ev) == st);
    free(file);
}

static ebb_status replay(const bytes *journal, bytes *trace) {
    ebb_journal_replay_result result;
    trace->n = 0;
    ebb_status st =
        ebb_journal_replay(ebb_libc_allocator(), journal->p, journal->n, bytes_add, trace, &result);
    require(memchr(result.message, 0, sizeof result.message) != NULL);
    require((st == EBB_OK) == (result.message[0] == 0));
    return st;
}

static void as_records(const uint8_t *data, size_t n) {
    static ebb_trace_writer w;
    bytes journal = {NULL, 0, 0}, trace = {NULL, 0, 0};
    ebb_trace_writer_begin(&w, true, 1, bytes_add, &journal);
    for (size_t i = 0; i + 32 <= n; i += 32) {
        ebb_record record;
        memcpy(&record, data + i, 32);
        if (record.type == EBB_EV_GAP) record.other &= 0xffff;
        ebb_trace_writer_put(&w, &record);
    }
    ebb_trace_writer_end(&w);
    (void)replay(&journal, &trace);
    free(journal.p);
    free(trace.p);
}

/* The same journal with one byte of one record changed. */
static bytes changed(const bytes *journal, size_t which, uint8_t to) {
    static ebb_trace_writer w;
    bytes out = {NULL, 0, 0};
    ebb_trace_reader r;
    ebb_event ev;
    require(ebb_trace_reader_open(&r, journal->p, journal->n) == EBB_OK);
    ebb_trace_writer_begin(&w, true, r.runtime_id, bytes_add, &out);
    for (size_t at = 0; ebb_trace_reader_next(&r, &ev) == EBB_OK; at += sizeof(ebb_record)) {
        ebb_record record = ebb_event_record(&ev);
        if (which - at < sizeof record) ((uint8_t *)&record)[which - at] = to;
        if (record.type == EBB_EV_GAP) record.other &= 0xffff;
        ebb_trace_writer_put(&w, &record);
    }
    ebb_trace_writer_end(&w);
    return out;
}

static void as_program(const uint8_t *data, size_t n) {
    enum { CHANGES = 8 };
    bytes trace = {NULL, 0, 0}, journal = {NULL, 0, 0}, again = {NULL, 0, 0};
    if (n < CHANGES * 3) return;
    program_opts o = {.src = {.at = data + CHANGES * 3, .end = data + n},
                      .max_ops = 300,
                      .allocator = ebb_libc_allocator()};
    require(run_program(&o, &trace, &journal));
    require(replay(&journal, &again) == EBB_OK);
    require(again.n == trace.n && memcmp(again.p, trace.p, trace.n) == 0);
    for (size_t i = 0; i < CHANGES; i++) {
        size_t which = (size_t)(data[i * 3] << 8 | data[i * 3 + 1]) % journal.n;
        bytes other = changed(&journal, which, data[i * 3 + 2]);
        (void)replay(&other, &again);
        free(other.p);
    }
    free(trace.p);
    free(journal.p);
    free(again.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n == 0) return 0;
    switch (data[0] % 4) {
    case 0: as_blocks(data + 1, n - 1); break;
    case 1: as_records(data + 1, n - 1); break;
    default: as_program(data + 1, n - 1); break;
    }
    return 0;
}
