/* http_test_server: what the HTTP tests talk to. It uses the public headers alone, and says on stdout what its
 * handlers live through, one event a line:
 *
 *   port N                       it listens
 *   begin ID PATH                a handler has begun; ID is the query's id=, else #1, #2, ...
 *   cancelled ID KIND MESSAGE    it was told to stop: the root cause of its region
 *   at ID NS                     before that, if the query has stamp=1: CLOCK_MONOTONIC
 *   failed ID STATUS             it ends with a failure
 *   cleaned ID                   its finalizer has run (of a future: its cleanup)
 *   closed ID                    the finalizer of its region has
 *   wrote-after-cancel ID WHAT   what it tried after the cancel did not say EBB_ERR_CLOSED: a bug of the server
 *   drained                      the service has ended
 *
 * Each route stands under /f (a fiber), /p (a poll function) and /u (a function that returns a future):
 *
 *   /hello                       "hello\n"
 *   /slow?ms=N                   "slow\n" after that (100)
 *   /hang                        waits for an hour
 *   /stubborn?ms=N               waits for an hour, and when it is cancelled cleans up for so long (not /u)
 *   /fan?n=N                     waits until the service was asked to stop; then N tasks (4) of a region of its own
 *                                wait for a timer or ask the upstream, if there is one; "fan\n" when all are done
 *   /echo                        the body, piece by piece
 *   /upload                      "LENGTH ADLER32\n" of the body; its trailer x-sum comes back as one. /f reads pieces
 *                                of 10,400 bytes, the others of 40,000
 *   /big?n=BYTES&piece=N         a, b, c ... z, a, b, ...; /f writes it in pieces of N bytes (10,400, the most);
 *                                with sized=1 its length is told
 *   /events?n=N&ms=M             N events, M ms (0) apart; not /u
 *   /headers                     the request, line by line; not /u
 *   /status?n=N                  answers so, with a text; not /u
 *   /fail /fault /silent /cut    returns EBB_FAILED, EBB_FAULTED, EBB_OK without an answer, EBB_FAILED in the
 *                                middle of one; not /u but for /fail
 *   /users/:id/files/...         "ID REST\n"; not /u
 *   /stats                       JSON; also without a prefix
 *
 * usage: http_test_server [--port N] [--tls CERT KEY] [--ca CA] [--limit NAME=VALUE]... [--budget-ms N]
 *                         [--quiet] [--access] [--audit FILE] [--upstream URL]
 *
 * A limit is a field of ebb_http_limits. --quiet says only the port and what is a bug; /stats counts all
 * the same. --audit is where the shutdown workflow writes its log. --access prints the access log to stderr. With
 * EBB_TEST_GC=1 every allocation collects the heap, and what is wrong with it ends the process. */
#include <ebb/ebb.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ALPHABET 26
#define PIECE    10400 /* a multiple of it */
#define UPLOAD   40000 /* more than what a read straight to it needs */
#define HOUR     (3600 * EBB_SECOND)

static char letters[PIECE]; /* what /big sends, again and again */
static bool quiet;

static struct tally { uint64_t begun, cancelled, cleaned, closed, wrote; } tally;

typedef struct setup {
    ebb_address address;
    ebb_tls_opts tls;
    ebb_http_limits limits;
    uint64_t budget_ns;
    bool access;
    const char *audit_file, *upstream;
    ebb_audit *audit;
    ebb_http_client *client; /* of the upstream */
    ebb_http_server *server;
} setup;

/* What a handler needs, whatever its kind; a poll function's own state too. It is the exchange's. */
typedef struct job {
    EBB_TASK_STATE;
    ebb_http *x;
    char id[24];
    ebb_future *wait;
    ebb_value got;
    uint8_t *bytes; /* PIECE of them, or UPLOAD */
    uint64_t n, i;
    uint32_t sum;
    ebb_status st;
    ebb_region fan;
    struct branch *branches;
    setup *setup;
    char text[80];
} job;

static void say(const char *format, ...) {
    va_list args;
    if (quiet) return;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fflush(stdout);
}

/* ---- the life of a handler ---------------------------------------------------------------------------- */

/* What stands after "name=" in the query; NULL: it is not there. */
static const char *asked(const ebb_http *x, const char *name) {
    size_t n = strlen(name);
    for (const char *at = ebb_http_query(x); *at != 0; at += strcspn(at, "&"), at += *at == '&') {
        if (strncmp(at, name, n) == 0 && at[n] == '=') return at + n + 1;
    }
    return NULL;
}

static uint64_t number(const ebb_http *x, const char *name, uint64_t otherwise) {
    const char *at = asked(x, name);
    return at == NULL ? otherwise : strtoull(at, NULL, 10);
}

static ebb_status cleaned(ebb_cx *cx, void *arg) {
    const job *j = arg;
    (void)cx;
    tally.cleaned++;
    say("cleaned %s\n", j->id);
    return EBB_OK;
}

static void cleaned_future(ebb_cx *cx, void *arg) {
    (void)cleaned(cx, arg);
}

static ebb_status closed(ebb_cx *cx, void *arg) {
    const job *j = arg;
    (void)cx;
    tally.closed++;
    say("closed %s\n", j->id);
    return EBB_OK;
}

static void name(job *j) {
    const char *id = asked(j->x, "id");
    if (id == NULL) snprintf(j->id, sizeof j->id, "#%" PRIu64, tally.begun);
    else snprintf(j->id, sizeof j->id, "%.*s", (int)strcspn(id, "&"), id);
}

/* The same for every poll of a handler; the first one begins it. NULL: no memory, or it was cancelled before. */
static job *begin(ebb_cx *cx, ebb_http *x) {
    job *j = ebb_http_state(x, sizeof *j);
    if (j == NULL || j->x != NULL) return j;
    if (ebb_region_defer(cx, ebb_cx_region(cx), closed, j) != EBB_OK) return NULL;
    j->x = x;
    tally.begun++;
    name(j);
    say("begin %s %s\n", j->id, ebb_http_path(x));
    return j;
}

static job *begin_task(ebb_cx *cx, ebb_http *x) {
    uint64_t before = tally.begun;
    job *j = begin(cx, x);
    if (j != NULL && tally.begun != before && ebb_defer(cx, cleaned, j) != EBB_OK) return NULL;
    return j;
}

static void caught(const job *j, const char *what, ebb_status st) {
    if (st == EBB_ERR_CLOSED) return;
    tally.wrote++;
    printf("wrote-after-cancel %s %s: %s\n", j->id, what, ebb_status_name(st));
    fflush(stdout);
}

/* Tries everything that a cancelled handler may not. */
static void try_to_write(ebb_cx *cx, const job *j) {
    caught(j, "reply", ebb_http_reply(cx, j->x, 200, NULL, "late", 4));
    caught(j, "start", ebb_http_start(cx, j->x, 200));
    ebb_future *late = ebb_http_write(cx, j->x, letters, ALPHABET);
    caught(j, "write", ebb_future_status_of(late));
    ebb_future_drop(late);
    caught(j, "end", ebb_http_end(cx, j->x));
}

static void told_to_stop(ebb_cx *cx, const job *j) {
    ebb_region_cause chain[EBB_CHAIN_DEPTH];
    uint32_t n = 0;
    bool truncated;
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    tally.cancelled++;
    if (asked(j->x, "stamp") != NULL)
        say("at %s %" PRIu64 "\n", j->id, (uint64_t)t.tv_sec * EBB_SECOND + (uint64_t)t.tv_nsec);
    (void)ebb_region_causes(cx, ebb_cx_region(cx), chain, EBB_CHAIN_DEPTH, &n, &truncated);
    const ebb_reason *why = n > 0 ? &chain[n - 1].reason : &(ebb_reason){0};
    say("cancelled %s %s %s\n", j->id, ebb_cancel_kind_name(why->kind), why->message);
    try_to_write(cx, j);
}

/* The status that a handler returns. */
static ebb_status ended(ebb_cx *cx, const job *j, ebb_status st) {
    if (st == EBB_CANCELLED) told_to_stop(cx, j);
    else if (st != EBB_OK) say("failed %s %s\n", j->id, ebb_status_name(st));
    return st;
}

/* ---- handlers that wait: as stackless tasks these are fibers as well ------------------------------------ */

static ebb_status hello(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    (void)arg;
    return j == NULL ? EBB_ERR_NOMEM : ended(cx, j, ebb_http_text(cx, x, 200, "hello\n"));
}

static ebb_status wait_then_say(ebb_cx *cx, ebb_http *x, uint64_t ns) {
    job *j = begin_task(cx, x);
    ebb_status st;
    if (j == NULL) return EBB_ERR_NOMEM;
    EBB_BEGIN(j);
    j->wait = ebb_after(cx, ns);
    EBB_AWAIT(j, st, ebb_await(cx, j->wait, NULL));
    if (st != EBB_OK) return ended(cx, j, st);
    return ended(cx, j, ebb_http_text(cx, x, 200, "slow\n"));
    EBB_END(j);
}

static ebb_status slow(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    return wait_then_say(cx, x, number(x, "ms", 100) * EBB_MS);
}

static ebb_status hang(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    return wait_then_say(cx, x, HOUR);
}

/* Its cleanup is masked, and so it is not cut short before its budget is over. */
static ebb_status stubborn(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    ebb_status st;
    (void)arg;
    if (j == NULL) return EBB_ERR_NOMEM;
    EBB_BEGIN(j);
    j->wait = ebb_after(cx, HOUR);
    EBB_AWAIT(j, j->st, ebb_await(cx, j->wait, NULL));
    (void)ended(cx, j, j->st);
    (void)ebb_mask(cx);
    j->wait = ebb_after(cx, number(x, "ms", 100) * EBB_MS);
    EBB_AWAIT(j, st, ebb_await(cx, j->wait, NULL));
    (void)ebb_unmask(cx);
    if (j->st == EBB_CANCELLED) try_to_write(cx, j);
    return j->st;
    EBB_END(j);
}

static ebb_future *next_event(ebb_cx *cx, const job *j) {
    char id[24], text[48];
    ebb_http_event e = {.data = text, .id = id, .event = "tick"};
    snprintf(id, sizeof id, "%" PRIu64, j->i);
    snprintf(text, sizeof text, "event %" PRIu64 "\nof %" PRIu64, j->i, j->n);
    return ebb_http_send_event(cx, j->x, &e);
}

static ebb_status events(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    ebb_status st;
    (void)arg;
    if (j == NULL) return EBB_ERR_NOMEM;
    EBB_BEGIN(j);
    j->n = number(x, "n", 3);
    for (j->i = 0; j->i < j->n; j->i++) {
        j->wait = next_event(cx, j);
        EBB_AWAIT(j, st, ebb_await(cx, j->wait, NULL));
        if (st != EBB_OK) return ended(cx, j, st);
        j->wait = ebb_after(cx, number(x, "ms", 0) * EBB_MS);
        EBB_AWAIT(j, st, ebb_await(cx, j->wait, NULL));
        if (st != EBB_OK) return ended(cx, j, st);
    }
    EBB_END(j);
}

/* ---- fan out, after the service was asked to stop ----------------------------------------------------------- */

#define LOOK_AGAIN (5 * EBB_MS)

/* One of the tasks of a fan. */
typedef struct branch {
    EBB_TASK_STATE;
    const setup *setup;
    uint64_t i;
    ebb_future *wait;
    ebb_value got;
} branch;

/* Every other one asks the upstream. */
static ebb_future *branch_begin(ebb_cx *cx, const setup *s, uint64_t i) {
    if (s->client == NULL || i % 2 == 0) return ebb_after(cx, (i + 1) * LOOK_AGAIN);
    return ebb_http_get(cx, s->client, s->upstream);
}

static ebb_status branch_end(const ebb_value *v) {
    const ebb_http_response *r = ebb_http_response_of(v);
    return r == NULL || r->status == 200 ? EBB_OK : EBB_FAILED;
}

static ebb_status branch_run(ebb_cx *cx, void *arg) {
    branch *b = arg;
    ebb_status st;
    EBB_BEGIN(b);
    b->wait = branch_begin(cx, b->setup, b->i);
    EBB_AWAIT(b, st, ebb_await(cx, b->wait, &b->got));
    if (st != EBB_OK) return st;
    st = branch_end(&b->got);
    ebb_value_discard(cx, b->got);
    return st;
    EBB_END(b);
}

static ebb_status fan_out(ebb_cx *cx, job *j, const setup *s) {
    j->n = number(j->x, "n", 4);
    j->branches = ebb_http_alloc(j->x, j->n * sizeof *j->branches);
    if (j->branches == NULL) return EBB_ERR_NOMEM;
    j->fan = ebb_region_open(cx, NULL);
    for (uint64_t i = 0; i < j->n; i++) {
        j->branches[i] = (branch){.setup = s, .i = i};
        ebb_task t = i / 2 % 2 == 0 ? ebb_spawn(cx, j->fan, branch_run, &j->branches[i])
                                    : ebb_fiber_spawn(cx, j->fan, branch_run, &j->branches[i]);
        if (ebb_id_status(t.id) != EBB_OK) return ebb_id_status(t.id);
    }
    return EBB_OK;
}

static ebb_status fan(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    ebb_status st;
    if (j == NULL) return EBB_ERR_NOMEM;
    EBB_BEGIN(j);
    while (!ebb_stopping(cx)) {
        j->wait = ebb_after(cx, LOOK_AGAIN);
        EBB_AWAIT(j, st, ebb_await(cx, j->wait, NULL));
        if (st != EBB_OK) return ended(cx, j, st);
    }
    st = fan_out(cx, j, arg);
    if (st != EBB_OK) return ended(cx, j, st);
    EBB_AWAIT(j, st, ebb_region_join(cx, j->fan));
    return ended(cx, j, st == EBB_OK ? ebb_http_text(cx, x, 200, "fan\n") : st);
    EBB_END(j);
}

/* ---- bodies, by fibers: their bytes are on the fiber's stack --------------------------------------------- */

static ebb_status echo_all(ebb_cx *cx, ebb_http *x) {
    uint8_t bytes[PIECE];
    ebb_value got;
    ebb_status st = ebb_http_start(cx, x, 200);
    while (st == EBB_OK) {
        st = ebb_await(cx, ebb_http_read(cx, x, bytes, sizeof bytes), &got);
        if (st == EBB_OK) st = ebb_await(cx, ebb_http_write(cx, x, bytes, got.as.u), NULL);
    }
    return st == EBB_ERR_EOF ? EBB_OK : st;
}

static ebb_status echo_fiber(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    (void)arg;
    return j == NULL ? EBB_ERR_NOMEM : ended(cx, j, echo_all(cx, x));
}

/* Adler-32, as zlib has it. */
static void count(job *j, const uint8_t *bytes, uint64_t n) {
    uint32_t a = j->sum & 0xffff, b = j->sum >> 16;
    for (uint64_t i = 0; i < n; i++) {
        a = (a + bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    j->sum = b << 16 | a;
    j->n += n;
}

static ebb_status tell_count(ebb_cx *cx, job *j) {
    const char *sum = ebb_http_trailer(j->x, "x-sum");
    ebb_status st = sum == NULL ? EBB_OK : ebb_http_set_trailer(j->x, "x-sum", sum);
    snprintf(j->text, sizeof j->text, "%" PRIu64 " %" PRIu32 "\n", j->n, j->sum);
    return st == EBB_OK ? ebb_http_text(cx, j->x, 200, j->text) : st;
}

static ebb_status upload_all(ebb_cx *cx, job *j) {
    uint8_t bytes[PIECE];
    ebb_value got;
    ebb_status st = EBB_OK;
    while (st == EBB_OK) {
        st = ebb_await(cx, ebb_http_read(cx, j->x, bytes, sizeof bytes), &got);
        if (st == EBB_OK) count(j, bytes, got.as.u);
    }
    return st == EBB_ERR_EOF ? tell_count(cx, j) : st;
}

static ebb_status upload_fiber(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    (void)arg;
    if (j == NULL) return EBB_ERR_NOMEM;
    j->sum = 1;
    return ended(cx, j, upload_all(cx, j));
}

/* What is left of n bytes, at most one piece. */
static size_t piece(uint64_t left) {
    return left < PIECE ? (size_t)left : PIECE;
}

static ebb_status start_big(ebb_cx *cx, ebb_http *x) {
    char n[24];
    ebb_status st = EBB_OK;
    snprintf(n, sizeof n, "%" PRIu64, number(x, "n", 1000000));
    if (number(x, "sized", 0) != 0) st = ebb_http_set_header(x, "content-length", n);
    return st == EBB_OK ? ebb_http_start(cx, x, 200) : st;
}

static ebb_status big_fiber(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    char bytes[PIECE];
    (void)arg;
    if (j == NULL) return EBB_ERR_NOMEM;
    memcpy(bytes, letters, PIECE);
    ebb_status st = start_big(cx, x);
    uint64_t all = number(x, "n", 1000000), most = number(x, "piece", PIECE);
    for (uint64_t sent = 0, n; st == EBB_OK && sent < all; sent += n) {
        size_t at = (size_t)(sent % ALPHABET);
        n = piece(all - sent);
        if (n > most) n = most;
        if (n > PIECE - at) n = PIECE - at;
        st = ebb_await(cx, ebb_http_write(cx, x, bytes + at, (size_t)n), NULL);
    }
    return ended(cx, j, st);
}

/* ---- the same, by poll functions: their bytes are the exchange's ------------------------------------------ */

static ebb_status echo_poll(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    ebb_status st;
    (void)arg;
    if (j == NULL) return EBB_ERR_NOMEM;
    EBB_BEGIN(j);
    j->bytes = ebb_http_alloc(x, PIECE);
    st = j->bytes == NULL ? EBB_ERR_NOMEM : ebb_http_start(cx, x, 200);
    if (st != EBB_OK) return ended(cx, j, st);
    for (;;) {
        j->wait = ebb_http_read(cx, x, j->bytes, PIECE);
        EBB_AWAIT(j, st, ebb_await(cx, j->wait, &j->got));
        if (st == EBB_ERR_EOF) break;
        if (st != EBB_OK) return ended(cx, j, st);
        j->wait = ebb_http_write(cx, x, j->bytes, j->got.as.u);
        EBB_AWAIT(j, st, ebb_await(cx, j->wait, NULL));
        if (st != EBB_OK) return ended(cx, j, st);
    }
    return ended(cx, j, ebb_http_end(cx, x));
    EBB_END(j);
}

static ebb_status upload_poll(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    ebb_status st;
    (void)arg;
    if (j == NULL) return EBB_ERR_NOMEM;
    EBB_BEGIN(j);
    j->sum = 1;
    j->bytes = ebb_http_alloc(x, UPLOAD);
    if (j->bytes == NULL) return ended(cx, j, EBB_ERR_NOMEM);
    for (;;) {
        j->wait = ebb_http_read(cx, x, j->bytes, UPLOAD);
        EBB_AWAIT(j, st, ebb_await(cx, j->wait, &j->got));
        if (st == EBB_ERR_EOF) return ended(cx, j, tell_count(cx, j));
        if (st != EBB_OK) return ended(cx, j, st);
        count(j, j->bytes, j->got.as.u);
    }
    EBB_END(j);
}

static ebb_status big_poll(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    ebb_status st;
    (void)arg;
    if (j == NULL) return EBB_ERR_NOMEM;
    EBB_BEGIN(j);
    st = start_big(cx, x);
    if (st != EBB_OK) return ended(cx, j, st);
    for (j->n = number(x, "n", 1000000); j->n > 0; j->n -= j->i) {
        j->i = piece(j->n);
        j->wait = ebb_http_write(cx, x, letters, (size_t)j->i);
        EBB_AWAIT(j, st, ebb_await(cx, j->wait, NULL));
        if (st != EBB_OK) return ended(cx, j, st);
    }
    return ended(cx, j, ebb_http_end(cx, x));
    EBB_END(j);
}

/* ---- and by futures ------------------------------------------------------------------------------------------ */

static void future_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)v;
    (void)ended(cx, arg, st);
}

static void future_cancelled(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    (void)kind;
    told_to_stop(cx, arg);
}

/* The future of a handler, with everybody who wants to know of its end. */
static ebb_future *watched(job *j, ebb_future *f) {
    if (ebb_future_on_done(f, future_done, j) != EBB_OK ||
        ebb_future_on_cancel(f, future_cancelled, j) != EBB_OK ||
        ebb_future_on_cleanup(f, cleaned_future, j) != EBB_OK) {
        fprintf(stderr, "http_test_server: no memory for callbacks\n");
        abort();
    }
    return f;
}

static ebb_future *as_future(ebb_cx *cx, ebb_status st) {
    return st == EBB_OK ? ebb_future_ready(cx, ebb_value_none()) : ebb_future_failed(cx, st);
}

static ebb_future *say_slow(ebb_cx *cx, ebb_value *v, void *arg) {
    const job *j = arg;
    (void)v;
    return as_future(cx, ebb_http_text(cx, j->x, 200, "slow\n"));
}

static ebb_future *slow_future(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin(cx, x);
    (void)arg;
    if (j == NULL) return ebb_future_failed(cx, EBB_ERR_NOMEM);
    return watched(j, ebb_then(cx, ebb_after(cx, number(x, "ms", 100) * EBB_MS), say_slow, j));
}

static ebb_future *hang_future(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin(cx, x);
    (void)arg;
    return j == NULL ? ebb_future_failed(cx, EBB_ERR_NOMEM) : watched(j, ebb_after(cx, HOUR));
}

static ebb_future *hello_future(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin(cx, x);
    (void)arg;
    if (j == NULL) return ebb_future_failed(cx, EBB_ERR_NOMEM);
    return watched(j, as_future(cx, ebb_http_text(cx, x, 200, "hello\n")));
}

static ebb_future *fail_future(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin(cx, x);
    (void)arg;
    return j == NULL ? ebb_future_failed(cx, EBB_ERR_NOMEM) : watched(j, ebb_future_failed(cx, EBB_FAILED));
}

static ebb_future *echo_next(ebb_cx *cx, ebb_value *v, void *arg);

static ebb_future *echo_back(ebb_cx *cx, ebb_value *v, void *arg) {
    job *j = arg;
    return ebb_then(cx, ebb_http_write(cx, j->x, j->bytes, v->as.u), echo_next, j);
}

static ebb_future *echo_next(ebb_cx *cx, ebb_value *v, void *arg) {
    job *j = arg;
    (void)v;
    return ebb_then(cx, ebb_http_read(cx, j->x, j->bytes, PIECE), echo_back, j);
}

static ebb_future *echo_end(ebb_cx *cx, ebb_status st, void *arg) {
    const job *j = arg;
    return as_future(cx, st == EBB_ERR_EOF ? ebb_http_end(cx, j->x) : st);
}

static ebb_future *echo_future(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin(cx, x);
    (void)arg;
    if (j == NULL || (j->bytes = ebb_http_alloc(x, PIECE)) == NULL)
        return ebb_future_failed(cx, EBB_ERR_NOMEM);
    ebb_status st = ebb_http_start(cx, x, 200);
    ebb_future *all = st == EBB_OK ? echo_next(cx, NULL, j) : ebb_future_failed(cx, st);
    return watched(j, ebb_catch(cx, all, echo_end, j));
}

static ebb_future *count_next(ebb_cx *cx, ebb_value *v, void *arg) {
    job *j = arg;
    if (v != NULL) count(j, j->bytes, v->as.u);
    return ebb_then(cx, ebb_http_read(cx, j->x, j->bytes, UPLOAD), count_next, j);
}

static ebb_future *count_end(ebb_cx *cx, ebb_status st, void *arg) {
    return as_future(cx, st == EBB_ERR_EOF ? tell_count(cx, arg) : st);
}

static ebb_future *upload_future(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin(cx, x);
    (void)arg;
    if (j == NULL || (j->bytes = ebb_http_alloc(x, UPLOAD)) == NULL)
        return ebb_future_failed(cx, EBB_ERR_NOMEM);
    j->sum = 1;
    return watched(j, ebb_catch(cx, count_next(cx, NULL, j), count_end, j));
}

static ebb_future *big_next(ebb_cx *cx, ebb_value *v, void *arg) {
    job *j = arg;
    size_t n = piece(j->n);
    (void)v;
    if (n == 0) return as_future(cx, ebb_http_end(cx, j->x));
    j->n -= n;
    return ebb_then(cx, ebb_http_write(cx, j->x, letters, n), big_next, j);
}

static ebb_future *big_future(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin(cx, x);
    (void)arg;
    if (j == NULL) return ebb_future_failed(cx, EBB_ERR_NOMEM);
    j->n = number(x, "n", 1000000);
    ebb_status st = start_big(cx, x);
    return watched(j, st == EBB_OK ? big_next(cx, NULL, j) : ebb_future_failed(cx, st));
}

static ebb_future *branch_done(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)arg;
    return as_future(cx, branch_end(v));
}

static ebb_future *branch_future(ebb_cx *cx, size_t i, void *arg) {
    return ebb_then(cx, branch_begin(cx, arg, i), branch_done, NULL);
}

static ebb_future *fan_done(ebb_cx *cx, ebb_value *v, void *arg) {
    const job *j = arg;
    (void)v;
    return as_future(cx, ebb_http_text(cx, j->x, 200, "fan\n"));
}

static ebb_future *fan_when_stopping(ebb_cx *cx, ebb_value *v, void *arg) {
    job *j = arg;
    (void)v;
    if (!ebb_stopping(cx)) return ebb_then(cx, ebb_after(cx, LOOK_AGAIN), fan_when_stopping, j);
    ebb_future *all = ebb_traverse(cx, number(j->x, "n", 4), SIZE_MAX, branch_future, j->setup);
    return ebb_then(cx, all, fan_done, j);
}

static ebb_future *fan_future(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin(cx, x);
    if (j == NULL) return ebb_future_failed(cx, EBB_ERR_NOMEM);
    j->setup = arg;
    return watched(j, fan_when_stopping(cx, NULL, j));
}

/* ---- small answers --------------------------------------------------------------------------------------------- */

static int put(char *text, size_t room, int at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = (size_t)at < room ? vsnprintf(text + at, room - (size_t)at, format, args) : 0;
    va_end(args);
    return at + n;
}

static ebb_status headers(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    char text[32768];
    ebb_http_field f;
    int n = put(text, sizeof text, 0, "%s %s?%s %s %d\n", ebb_http_method(x), ebb_http_path(x),
                ebb_http_query(x), ebb_http_authority(x), ebb_http_version(x));
    (void)arg;
    if (j == NULL) return EBB_ERR_NOMEM;
    for (size_t i = 0; ebb_http_header_at(x, i, &f); i++) {
        n = put(text, sizeof text, n, "%s: %s\n", f.name, f.value);
    }
    return ended(cx, j, ebb_http_text(cx, x, 200, text));
}

static ebb_status status(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    (void)arg;
    if (j == NULL) return EBB_ERR_NOMEM;
    return ended(cx, j, ebb_http_text(cx, x, (int)number(x, "n", 200), "as you wish\n"));
}

static ebb_status files(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    char text[512];
    (void)arg;
    if (j == NULL) return EBB_ERR_NOMEM;
    (void)put(text, sizeof text, 0, "%s %s\n", ebb_http_param(x, "id"), ebb_http_param(x, "rest"));
    return ended(cx, j, ebb_http_text(cx, x, 200, text));
}

/* Returns what it is told to. */
static ebb_status end_as(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    return j == NULL ? EBB_ERR_NOMEM : ended(cx, j, *(const ebb_status *)arg);
}

static ebb_status cut(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = begin_task(cx, x);
    ebb_status st;
    (void)arg;
    if (j == NULL) return EBB_ERR_NOMEM;
    EBB_BEGIN(j);
    j->wait = ebb_http_write(cx, x, letters, ALPHABET);
    EBB_AWAIT(j, st, ebb_await(cx, j->wait, NULL));
    return ended(cx, j, st == EBB_OK ? EBB_FAILED : st);
    EBB_END(j);
}

/* ---- /stats ---------------------------------------------------------------------------------------------------- */

#define STAT(name, value) put(text, room, n, "%s\"%s\":%" PRIu64, n == 1 ? "" : ",", name, (uint64_t)(value))

static int put_http(char *text, size_t room, int n, const ebb_http_server_stats *h) {
    n = STAT("connections", h->connections);
    n = STAT("exchanges", h->exchanges);
    n = STAT("memory", h->memory);
    n = STAT("accepted", h->accepted);
    n = STAT("requests", h->requests);
    n = STAT("cancelled", h->cancelled);
    n = STAT("refused", h->refused);
    n = STAT("rate_limited", h->rate_limited);
    n = STAT("timed_out", h->timed_out);
    n = STAT("evicted", h->evicted);
    n = STAT("bytes_in", h->bytes_in);
    n = STAT("bytes_out", h->bytes_out);
    for (int i = 0; i < 6; i++) {
        char digit[16];
        (void)snprintf(digit, sizeof digit, "%dxx", i);
        n = STAT(digit, h->answered[i]);
    }
    return n;
}

static int put_runtime(char *text, size_t room, int n, const ebb_runtime_stats *rt,
                       const ebb_heap_stats *heap) {
    n = STAT("tasks", rt->tasks);
    n = STAT("regions", rt->regions);
    n = STAT("timers", rt->timers);
    n = STAT("obligations", rt->obligations);
    n = STAT("leaks", rt->leaks);
    n = STAT("abandoned", rt->abandoned);
    n = STAT("illegal", rt->illegal);
    n = STAT("heap_live", heap->live);
    n = STAT("handlers_begun", tally.begun);
    n = STAT("handlers_cancelled", tally.cancelled);
    n = STAT("handlers_cleaned", tally.cleaned);
    n = STAT("handlers_closed", tally.closed);
    n = STAT("wrote_after_cancel", tally.wrote);
    return n;
}

/* It tells of itself too: one exchange, one connection. */
static ebb_status stats(ebb_cx *cx, ebb_http *x, void *arg) {
    char text[2048] = "{";
    const setup *s = arg;
    ebb_http_server_stats h;
    ebb_runtime_stats rt;
    ebb_heap_stats heap;
    ebb_http_limits most;
    ebb_http_server_stats_of(s->server, &h);
    ebb_http_server_limits_of(s->server, &most);
    ebb_runtime_stats_of(ebb_cx_runtime(cx), &rt);
    ebb_heap_stats_of(ebb_cx_runtime(cx), &heap);
    size_t room = sizeof text;
    int n = put_http(text, room, 1, &h);
    n = STAT("limit_connections", most.connections);
    n = STAT("limit_stalled", most.stalled);
    n = put_runtime(text, sizeof text, n, &rt, &heap);
    (void)put(text, sizeof text, n, "}\n");
    return ebb_http_reply(cx, x, 200, "application/json", text, strlen(text));
}

/* ---- the service ------------------------------------------------------------------------------------------------ */

static ebb_status failed_st = EBB_FAILED, faulted_st = EBB_FAULTED, ok_st = EBB_OK;

typedef struct place {
    const char *method, *path;
    ebb_http_handler_fn fiber, poll;
    ebb_http_future_fn future;
    void *arg;
} place;

static const place places[] = {
    {"GET", "/hello", hello, hello, hello_future, NULL},
    {"GET", "/slow", slow, slow, slow_future, NULL},
    {"*", "/hang", hang, hang, hang_future, NULL},
    {"*", "/stubborn", stubborn, stubborn, NULL, NULL},
    {"POST", "/echo", echo_fiber, echo_poll, echo_future, NULL},
    {"POST", "/upload", upload_fiber, upload_poll, upload_future, NULL},
    {"PUT", "/upload", upload_fiber, upload_poll, upload_future, NULL},
    {"GET", "/big", big_fiber, big_poll, big_future, NULL},
    {"GET", "/events", events, events, NULL, NULL},
    {"*", "/headers", headers, headers, NULL, NULL},
    {"*", "/status", status, status, NULL, NULL},
    {"GET", "/fail", end_as, end_as, fail_future, &failed_st},
    {"GET", "/fault", end_as, end_as, NULL, &faulted_st},
    {"GET", "/silent", end_as, end_as, NULL, &ok_st},
    {"GET", "/cut", cut, cut, NULL, NULL},
    {"GET", "/users/:id/files/*rest", files, files, NULL, NULL},
};

static ebb_status route(ebb_http_server *s, const place *p) {
    char path[64];
    (void)snprintf(path, sizeof path, "/f%s", p->path);
    ebb_status st = ebb_http_on(s, p->method, path, p->fiber, p->arg);
    path[1] = 'p';
    if (st == EBB_OK) st = ebb_http_on_poll(s, p->method, path, p->poll, p->arg);
    path[1] = 'u';
    if (st == EBB_OK && p->future != NULL) st = ebb_http_on_future(s, p->method, path, p->future, p->arg);
    return st;
}

static ebb_status route_all(setup *s) {
    const place fans = {"GET", "/fan", fan, fan, fan_future, s};
    ebb_status st = route(s->server, &fans);
    if (st == EBB_OK) st = ebb_http_on_poll(s->server, "GET", "/stats", stats, s);
    if (st == EBB_OK) st = ebb_http_on(s->server, "GET", "/f/stats", stats, s);
    if (st == EBB_OK) st = ebb_http_on_poll(s->server, "GET", "/p/stats", stats, s);
    for (size_t i = 0; st == EBB_OK && i < sizeof places / sizeof *places; i++)
        st = route(s->server, &places[i]);
    return st;
}

static void log_access(void *ctx, const char *line, size_t n) {
    (void)ctx;
    (void)fwrite(line, 1, n, stderr);
}

static ebb_status serve(ebb_cx *cx, void *arg) {
    setup *s = arg;
    ebb_http_server_opts opts = {.address = s->address,
                                 .tls = s->tls.cert_file != NULL ? &s->tls : NULL,
                                 .limits = s->limits,
                                 .access = s->access ? log_access : NULL};
    ebb_http_client_opts client = {.prior_knowledge = true};
    ebb_status st = ebb_http_listen(cx, &opts, &s->server);
    if (st == EBB_OK && s->upstream != NULL) st = ebb_http_client_new(cx, &client, &s->client);
    if (st == EBB_OK) st = route_all(s);
    if (st == EBB_OK) st = ebb_http_server_address(cx, s->server, &s->address);
    if (st != EBB_OK) return st;
    printf("port %u\n", s->address.port);
    fflush(stdout);
    return EBB_OK;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

#define LIMIT(field)                                                                                         \
    { #field, offsetof(ebb_http_limits, field), sizeof(((ebb_http_limits *)0)->field) }
static const struct limit {
    const char *name;
    size_t at, size;
} limits[] = {LIMIT(connections),   LIMIT(streams),     LIMIT(requests),      LIMIT(headers),
              LIMIT(header_bytes),  LIMIT(block_bytes), LIMIT(body_bytes),    LIMIT(write_bytes),
              LIMIT(memory_bytes),  LIMIT(idle_ns),     LIMIT(header_ns),     LIMIT(body_ns),
              LIMIT(write_ns),      LIMIT(resets),      LIMIT(resets_second), LIMIT(frames),
              LIMIT(frames_second), LIMIT(body_rate),   LIMIT(write_rate),    LIMIT(stalled)};

static void wrong(const char *what) {
    fprintf(stderr, "http_test_server: %s: not understood; see the head of tests/http/programs/server.c\n",
            what);
    exit(2);
}

static void set_limit(ebb_http_limits *out, const char *text) {
    size_t n = strcspn(text, "=");
    uint64_t value = text[n] == '=' ? strtoull(text + n + 1, NULL, 10) : 0;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (strlen(limits[i].name) != n || memcmp(limits[i].name, text, n) != 0) continue;
        if (limits[i].size == 8) memcpy((char *)out + limits[i].at, &value, 8);
        else memcpy((char *)out + limits[i].at, &(uint32_t){(uint32_t)value}, 4);
        return;
    }
    wrong(text);
}

static void read_arguments(setup *s, char **at) {
    while (*at != NULL) {
        const char *what = *at++;
        if (strcmp(what, "--quiet") == 0) quiet = true;
        else if (strcmp(what, "--access") == 0) s->access = true;
        else if (*at == NULL) wrong(what);
        else if (strcmp(what, "--port") == 0) s->address.port = (uint16_t)atoi(*at++);
        else if (strcmp(what, "--limit") == 0) set_limit(&s->limits, *at++);
        else if (strcmp(what, "--budget-ms") == 0) s->budget_ns = strtoull(*at++, NULL, 10) * EBB_MS;
        else if (strcmp(what, "--ca") == 0) s->tls.ca_file = *at++;
        else if (strcmp(what, "--audit") == 0) s->audit_file = *at++;
        else if (strcmp(what, "--upstream") == 0) s->upstream = *at++;
        else if (strcmp(what, "--tls") == 0 && at[1] != NULL)
            s->tls.cert_file = *at++, s->tls.key_file = *at++;
        else wrong(what);
    }
}

static void misused(void *ctx, ebb_status st, const char *what, const char *site) {
    (void)ctx;
    fprintf(stderr, "http_test_server: %s: %s %s\n", ebb_status_name(st), what, site == NULL ? "" : site);
    abort();
}

int main(int argc, char **argv) {
    setup s = {.address = {"127.0.0.1", 0}};
    ebb_workflow_report report = {0};
    (void)argc;
    for (int i = 0; i < PIECE; i++) letters[i] = (char)('a' + i % ALPHABET);
    read_arguments(&s, argv + 1);
    bool collects = getenv("EBB_TEST_GC") != NULL;
    ebb_heap_opts heap = {.every_time = collects, .verify = collects, .misuse = misused};
    ebb_status st =
        s.audit_file == NULL ? EBB_OK : ebb_audit_open(ebb_libc_allocator(), s.audit_file, &s.audit);
    if (st != EBB_OK) wrong(s.audit_file);
    ebb_service_opts opts = {
        .loop.runtime.allocator = ebb_libc_allocator(),
        .loop.heap = &heap,
        .shutdown = {.name = "http_test_server", .budget = s.budget_ns, .audit = s.audit},
        .report = &report};
    int exit_status = ebb_service_run(&opts, serve, &s);
    if (exit_status == EBB_SERVICE_FAILED) {
        fprintf(stderr, "http_test_server: %s %s\n", ebb_status_text(report.status), ebb_http_error());
    }
    say("drained\n");
    ebb_audit_close(s.audit);
    return exit_status;
}
