/* fuzz/fuzz_script.c - any text as a script: whatever it says, no oracle is violated on the way, and
 * when the root is cancelled at the end everything ends. */
#include "lab/script.h"

#include <ebb/ebb.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { INPUT_MAX = 4096, LINES_MAX = 64, TRACE_BYTES = 1 << 20, TURNS_MAX = 64 };

typedef struct world {
    ebb_runtime *rt;
    ebb_checker *check;
    ebb_trace_reader reader;
    size_t n;
    bool started;
    uint8_t bytes[TRACE_BYTES + 4096];
} world;

static void require(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void append(void *ctx, const void *bytes, size_t n) {
    world *w = ctx;
    require(n <= sizeof w->bytes - w->n, "more than the buffer of the trace");
    memcpy(w->bytes + w->n, bytes, n);
    w->n += n;
}

/* A script can say more than the buffer holds; what follows a gap can't be checked. */
static bool check(world *w) {
    ebb_runtime_stats stats;
    ebb_event ev;
    ebb_status st;
    ebb_runtime_stats_of(w->rt, &stats);
    if (stats.trace_lost > 0) return false;
    if (w->started) w->n = 0;
    ebb_trace_take(w->rt, true, append, w);
    if (!w->started) require(ebb_trace_reader_open(&w->reader, w->bytes, w->n) == EBB_OK, "the header");
    else w->reader.offset = 0;
    w->started = true;
    w->reader.bytes = w->bytes;
    w->reader.n = w->n;
    while ((st = ebb_trace_reader_next(&w->reader, &ev)) == EBB_OK) {
        if (ebb_checker_event(w->check, &ev) == EBB_OK) continue;
        const ebb_violation *v = ebb_checker_violation(w->check);
        require(v != NULL, "no memory");
        fprintf(stderr, "%s: %s\n", ebb_oracle_name(v->oracle), v->text);
        abort();
    }
    require(st == EBB_PENDING, "its own trace is not readable");
    return true;
}

static bool run_lines(world *w, ebb__script *s, const uint8_t *data, size_t n) {
    const char *at = (const char *)data, *end = at + n;
    for (int line = 0; at < end && line < LINES_MAX; line++) {
        char message[EBB__SCRIPT_MESSAGE];
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) stop = end;
        ebb_status st = ebb__script_line(s, at, (size_t)(stop - at), message);
        require(st == EBB_OK || (st == EBB_ERR_SYNTAX && memchr(message, 0, sizeof message) != NULL),
                "status");
        if (!check(w)) return false;
        at = stop + 1;
    }
    return true;
}

/* A task that spins has a budget of polls, one that waits a deadline: neither holds the root open. */
static void finish(world *w) {
    ebb_region_state state = EBB_REGION_OPEN;
    ebb_region_cancel(ebb_runtime_host(w->rt), ebb_runtime_root(w->rt), EBB_CANCEL_SHUTDOWN, "the end");
    for (int turn = 0; turn < TURNS_MAX && state != EBB_REGION_CLOSED; turn++) {
        (void)ebb_runtime_pump(w->rt, EBB__SCRIPT_PUMP);
        if (!check(w)) return;
        ebb_runtime_advance(w->rt, ebb_now(ebb_runtime_host(w->rt)) + EBB_SECOND);
        require(ebb_region_state_of(ebb_runtime_host(w->rt), ebb_runtime_root(w->rt), &state) == EBB_OK,
                "the root");
    }
    ebb_runtime_stats stats;
    ebb_runtime_stats_of(w->rt, &stats);
    if (stats.spawned > EBB__SCRIPT_PUMP) return; /* more than the turns above can poll */
    require(state == EBB_REGION_CLOSED, "the root did not close");
    require(ebb_checker_end(w->check, true) == EBB_OK, "something is left");
    require(stats.tasks == 0 && stats.obligations == 0, "the counts say that something is left");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    ebb_runtime_opts opts = {.allocator = ebb_libc_allocator()};
    static world w;
    if (n > INPUT_MAX) return 0;
    w.n = 0;
    w.started = false;
    require(ebb_runtime_new(&opts, &w.rt) == EBB_OK && ebb_trace_start(w.rt, TRACE_BYTES) == EBB_OK,
            "no memory");
    w.check = ebb_checker_new(opts.allocator);
    ebb__script *s = ebb__script_new(w.rt, opts.allocator);
    require(w.check != NULL && s != NULL, "no memory");
    if (run_lines(&w, s, data, n)) finish(&w);
    ebb__script_free(s);
    ebb_checker_free(w.check);
    ebb_runtime_free(w.rt);
    return 0;
}
