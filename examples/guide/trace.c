/* Guide: record a trace, check it in the program, and keep it as a file.
 *
 *   trace TRACE_FILE */
#include <ebb/ebb.h>
#include <stdio.h>

enum { MOST = 65536 };

typedef struct bytes {
    unsigned char at[MOST];
    size_t n;
} bytes;

static ebb_status nap(ebb_cx *cx, void *state) {
    return ebb_sleep(cx, state, 10 * EBB_MS);
}

/* Virtual time: on to where something happens next, until nothing does. */
static void run(ebb_runtime *rt) {
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING || ebb_runtime_next_due(rt) != EBB_FOREVER)
        ebb_runtime_advance(rt, ebb_runtime_next_due(rt));
}

static void append(void *ctx, const void *from, size_t n) {
    bytes *b = ctx;
    const unsigned char *p = from;
    for (size_t i = 0; i < n && b->n < MOST; i++) b->at[b->n++] = p[i];
}

static ebb_status record(bytes *out) {
    ebb_runtime *rt;
    ebb_sleeper sleeper = {0};
    ebb_status st = ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_libc_allocator()}, &rt);
    if (st != EBB_OK) return st;
    st = ebb_trace_start(rt, MOST); /* first of all: a trace tells the whole story */
    if (st == EBB_OK) {
        ebb_cx *host = ebb_runtime_host(rt);
        ebb_spawn(host, ebb_runtime_root(rt), nap, &sleeper);
        (void)ebb_runtime_pump(rt, 1);
        ebb_region_cancel(host, ebb_runtime_root(rt), EBB_CANCEL_USER, "enough");
        run(rt);
        ebb_trace_take(rt, true, append, out);
    }
    ebb_runtime_free(rt);
    return st;
}

static ebb_status check(const bytes *trace) {
    ebb_trace_reader reader;
    ebb_event event;
    ebb_checker *checker = ebb_checker_new(ebb_libc_allocator());
    if (checker == NULL) return EBB_ERR_NOMEM;
    ebb_status st = ebb_trace_reader_open(&reader, trace->at, trace->n);
    while (st == EBB_OK && (st = ebb_trace_reader_next(&reader, &event)) == EBB_OK)
        st = ebb_checker_event(checker, &event);
    if (st == EBB_PENDING) st = ebb_checker_end(checker, true); /* true: everything was to have ended */
    const ebb_violation *wrong = ebb_checker_violation(checker);
    if (wrong != NULL) printf("%s: %s\n", ebb_oracle_name(wrong->oracle), wrong->text);
    else if (st == EBB_OK) printf("%d events keep every rule\n", (int)ebb_checker_events(checker));
    ebb_checker_free(checker);
    return st;
}

/* Equal for runs that differ only in the order of steps which do not depend on each other. */
static ebb_status fingerprint(const bytes *trace, ebb_hash *out) {
    ebb_trace_reader reader;
    ebb_event event;
    ebb_fingerprint *f = ebb_fingerprint_new(ebb_libc_allocator());
    if (f == NULL) return EBB_ERR_NOMEM;
    ebb_status st = ebb_trace_reader_open(&reader, trace->at, trace->n);
    while (st == EBB_OK && (st = ebb_trace_reader_next(&reader, &event)) == EBB_OK)
        ebb_fingerprint_event(f, &event);
    if (st == EBB_PENDING) st = ebb_fingerprint_end(f, out);
    ebb_fingerprint_free(f);
    return st;
}

static ebb_status compare(const bytes *trace) {
    static bytes again;
    ebb_hash one, other;
    ebb_status st = record(&again);
    if (st == EBB_OK) st = fingerprint(trace, &one);
    if (st == EBB_OK) st = fingerprint(&again, &other);
    if (st == EBB_OK && (one.hi != other.hi || one.lo != other.lo)) st = EBB_FAILED;
    if (st == EBB_OK) printf("two runs, one fingerprint\n");
    return st;
}

static bool keep(const bytes *trace, const char *path) {
    FILE *file = fopen(path, "wb");
    if (file == NULL) return false;
    bool whole = fwrite(trace->at, 1, trace->n, file) == trace->n;
    return fclose(file) == 0 && whole;
}

int main(int argc, char **argv) {
    static bytes trace;
    if (argc != 2) return 2;
    ebb_status st = record(&trace);
    if (st == EBB_OK) st = check(&trace);
    if (st == EBB_OK) st = compare(&trace);
    return st == EBB_OK && keep(&trace, argv[1]) ? 0 : 1;
}
