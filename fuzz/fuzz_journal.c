/* fuzz/fuzz_journal.c - the reader on anything that claims to be a journal: every event that it gives
 * is inside the file, becomes the same record again, and errors stay where they are. */
#include <ebb/kernel.h>

#include <stdlib.h>
#include <string.h>

#include "kernel/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool holds) {
    if (!holds) abort();
}

/* The header is put in front, so that the blocks are reached. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    uint8_t *file = malloc(64 + n);
    require(file != NULL);
    ebb__file_header(file, true, 3);
    if (n > 0) memcpy(file + 64, data, n);
    ebb_reader r;
    ebb_event ev;
    ebb_status st = ebb_reader_open(&r, file, 64 + n);
    require(st == EBB_OK && r.journal && r.runtime_id == 3);
    while ((st = ebb_reader_next(&r, &ev)) == EBB_OK) {
        uint8_t bytes[32];
        ebb_record record = ebb_event_record(&ev);
        ebb__record_encode(bytes, &record);
        require(ev.offset + 32 <= 64 + n && memcmp(bytes, file + ev.offset, 32) == 0);
    }
    require(st == EBB_PENDING || (r.error != NULL && r.error_offset <= 64 + n));
    require(ebb_reader_next(&r, &ev) == st);
    free(file);
    return 0;
}
