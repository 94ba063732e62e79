#include "web/lab/judge.h"

#include "web/lab/lab.h"
#include "web/wasm/alloc.h"
#include "web/wasm/host.h"
#include "web/wasm/words.h"

#include <string.h>

static ebb_checker *check;
static ebb_fingerprint *fingerprint;
static ebb_trace_reader reader;
static uint8_t *trace; /* a reader needs all of it in one piece */
static size_t trace_n;
static bool cut;

ebb_status judge_begin(void) {
    check = ebb_checker_new(web_allocator());
    fingerprint = ebb_fingerprint_new(web_allocator());
    trace = web_allocate(TRACE_MOST);
    return check == NULL || fingerprint == NULL || trace == NULL ? EBB_ERR_NOMEM : EBB_OK;
}

static void keep(void *ctx, const void *bytes, size_t n) {
    (void)ctx;
    cut |= n > TRACE_MOST - trace_n;
    if (cut) return;
    memcpy(trace + trace_n, bytes, n);
    trace_n += n;
}

int32_t web_lab_take(void) {
    ebb_event ev;
    ebb_status st = EBB_OK;
    size_t before = trace_n;
    ebb_trace_take(web_rt, true, keep, NULL);
    host_bytes(BYTES_TRACE, trace + before, trace_n - before);
    if (cut) return EBB_ERR_LIMIT;
    if (before == 0) st = ebb_trace_reader_open(&reader, trace, trace_n);
    reader.n = trace_n;
    while (st == EBB_OK && (st = ebb_trace_reader_next(&reader, &ev)) == EBB_OK) {
        ebb_fingerprint_event(fingerprint, &ev);
        (void)ebb_checker_event(check, &ev); /* sticks: lab_violation has it */
    }
    return st == EBB_PENDING ? EBB_OK : st;
}

static int32_t put_hash(ebb_fingerprint *f) {
    ebb_hash hash;
    ebb_status st = ebb_fingerprint_end(f, &hash);
    if (st != EBB_OK) return st;
    words w = words_begin();
    put_u64(&w, hash.hi);
    put_u64(&w, hash.lo);
    return EBB_OK;
}

int32_t web_lab_fingerprint(void) {
    return put_hash(fingerprint);
}

int32_t web_lab_parity(const void *bytes, size_t n) {
    ebb_trace_reader r;
    ebb_event ev;
    ebb_fingerprint *f = ebb_fingerprint_new_parity(web_allocator());
    if (f == NULL) return EBB_ERR_NOMEM;
    ebb_status st = ebb_trace_reader_open(&r, bytes, n);
    while (st == EBB_OK && (st = ebb_trace_reader_next(&r, &ev)) == EBB_OK) ebb_fingerprint_event(f, &ev);
    if (st == EBB_PENDING) st = put_hash(f);
    ebb_fingerprint_free(f);
    return st;
}

int32_t web_lab_check_end(void) {
    return ebb_checker_end(check, true);
}

static void put_text(words *w, const char *text) {
    put_u32(w, (uint32_t)(uintptr_t)text);
}

int32_t web_lab_violation(void) {
    const ebb_violation *v = ebb_checker_violation(check);
    if (v == NULL) return EBB_ERR_INVALID;
    words w = words_begin();
    put_u64(&w, v->event.type == 0 ? 0 : v->event.decision_seq);
    put_text(&w, ebb_oracle_name(v->oracle));
    put_text(&w, ebb_event_name(v->event.type));
    put_text(&w, v->text);
    return EBB_OK;
}
