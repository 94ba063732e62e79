/* fuzz/fuzz_trace.c - the reader, the checker and the fingerprint on anything.
 *
 * The first byte decides: the rest is a file as it is; or it is records, which are put into a file
 * with right checksums, so that what stands behind the reader is reached, and read back. */
#include <ebb/trace.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

typedef struct buffer {
    uint8_t *p;
    size_t n;
} buffer;

static void *libc_memory(void *ctx, void *p, size_t old_size, size_t new_size) {
    (void)ctx;
    (void)old_size;
    if (new_size != 0) return realloc(p, new_size);
    free(p);
    return NULL;
}

static void require(bool holds) {
    if (!holds) abort();
}

static void append(void *ctx, const void *p, size_t n) {
    buffer *b = ctx;
    b->p = realloc(b->p, b->n + n);
    require(b->p != NULL);
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

static ebb_status read_all(const uint8_t *p, size_t n, size_t *events) {
    ebb_allocator a = {libc_memory, NULL};
    ebb_trace_reader r;
    ebb_event ev;
    *events = 0;
    ebb_status st = ebb_trace_reader_open(&r, p, n);
    if (st != EBB_OK) {
        require(r.error != NULL && r.error_offset <= n);
        return st;
    }
    ebb_checker *c = ebb_checker_new(a);
    ebb_fingerprint *f = ebb_fingerprint_new(a);
    require(c != NULL && f != NULL);
    while ((st = ebb_trace_reader_next(&r, &ev)) == EBB_OK) {
        ++*events;
        require(ev.offset + 32 <= n);
        ebb_fingerprint_event(f, &ev);
        ebb_checker_event(c, &ev);
    }
    require(st == EBB_PENDING || (r.error != NULL && r.error_offset <= n));
    ebb_checker_end(c, true);
    const ebb_violation *v = ebb_checker_violation(c);
    require(v == NULL || memchr(v->text, 0, sizeof v->text) != NULL);
    ebb_hash hash;
    ebb_fingerprint_end(f, &hash);
    ebb_fingerprint_free(f);
    ebb_checker_free(c);
    return st;
}

static void as_records(const uint8_t *data, size_t n) {
    static ebb_trace_writer w;
    buffer b = {NULL, 0};
    bool wraps = false;
    ebb_trace_writer_begin(&w, false, 0, append, &b);
    for (size_t i = 0; i + 32 <= n; i += 32) {
        ebb_record record;
        memcpy(&record, data + i, 32);
        wraps |= record.type == EBB_EV_GAP && record.other > UINT32_MAX;
        ebb_trace_writer_put(&w, &record);
    }
    ebb_trace_writer_end(&w);
    size_t events;
    ebb_status st = read_all(b.p, b.n, &events);
    require(wraps || (st == EBB_PENDING && events == n / 32));
    free(b.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n == 0) return 0;
    size_t events;
    if (data[0] % 2 == 0) {
        read_all(data + 1, n - 1, &events);
    } else {
        as_records(data + 1, n - 1);
    }
    return 0;
}
