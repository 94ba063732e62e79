/* The orchestrations of the recorded histories beside this file, which together ask for everything that an orchestration
 * can. histories.py builds it with several compilers, and each has to do what is recorded. Never change what it does:
 * record new histories of a new file instead. */
#include <ebb/durable.h>
#include <ebb/ebb.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEGS = 7, FAN = 4 };

/* ---- activities -------------------------------------------------------------------------------------------------- */

static ebb_status echo(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    (void)cx;
    (void)a;
    *out = in;
    return EBB_OK;
}

static ebb_status flaky(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    static const ebb_failure why = {.code = "flaky", .message = "not yet"};
    (void)cx;
    *out = in;
    return ebb_activity_attempt(a) < 3 ? ebb_activity_fail(a, &why) : EBB_OK;
}

static ebb_status hang(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    ebb_sleeper nap = {0};
    (void)a;
    (void)in;
    (void)out;
    return ebb_sleep(cx, &nap, 100000 * EBB_SECOND);
}

/* ---- what compilers may do in their own way ------------------------------------------------------------------------ */

typedef struct leg {
    char from;
    double length;
    uint16_t tolls;
} leg;

static int by_length(const void *a, const void *b) {
    const leg *x = a, *y = b;
    return (x->length > y->length) - (x->length < y->length);
}

/* Floating point, a sort, structs with padding, shifts: as JSON, with all digits. */
static ebb_blob plan_of(ebb_orch *o, ebb_blob in) {
    leg legs[LEGS];
    double sum = 0;
    uint64_t mixed = 1469598103934665603u;
    char *text = ebb_orch_alloc(o, 200);
    for (int i = 0; i < LEGS; i++) {
        memset(&legs[i], 0, sizeof legs[i]);
        legs[i].from = (char)('a' + i);
        legs[i].length = (double)(i * 37 % 11) * 0.1 + 1.0 / (i + 3);
        legs[i].tolls = (uint16_t)(i * 40503u >> 3);
    }
    qsort(legs, LEGS, sizeof *legs, by_length);
    for (int i = 0; i < LEGS; i++) {
        sum = sum * 1.0000001 + legs[i].length * legs[i].length;
        mixed = (mixed ^ (uint8_t)legs[i].from ^ (uint64_t)legs[i].tolls << 7) * 1099511628211u;
    }
    (void)snprintf(text, 200, "{\"order\":%.*s,\"sum\":%.17g,\"mixed\":\"%016" PRIx64 "\",\"first\":\"%c\"}",
                   (int)in.n, (const char *)in.at, sum, mixed, legs[0].from);
    return ebb_blob_text(text);
}

/* ---- orchestrations ------------------------------------------------------------------------------------------------ */

static ebb_status kid(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), out);
}

static ebb_status calls(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_call_opts thrice = {.attempts = 3, .backoff = EBB_BACKOFF_LINEAR, .pause = EBB_MS};
    ebb_step fan[FAN];
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "echo", plan_of(o, in), NULL), out);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_call(o, "flaky", in, &thrice), NULL);
    for (size_t i = 0; i < FAN; i++) fan[i] = ebb_orch_call(o, "echo", in, NULL);
    return st == EBB_OK ? ebb_orch_join(o, FAN, fan) : st;
}

static ebb_status races(ebb_orch *o, ebb_blob in) {
    size_t won = 9;
    const ebb_step all[] = {ebb_orch_call(o, "hang", in, NULL), ebb_orch_timer(o, EBB_MS),
                            ebb_orch_event(o, "never")};
    ebb_status st = ebb_orch_select(o, 3, all, &won);
    if (st == EBB_OK && won != 1) st = EBB_FAILED;
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_timer(o, EBB_MS), NULL);
    return st;
}

/* What is different in every execution, and the same in its replays. */
static ebb_status luck(ebb_orch *o, ebb_blob *out) {
    char id[37], *text = ebb_orch_alloc(o, 200);
    ebb_orch_new_id(o, id);
    const bool patched = ebb_orch_patched(o, "second hand");
    (void)snprintf(
        text, 200,
        "{\"id\":\"%s\",\"random\":\"%" PRIu64 "\",\"now\":%" PRIu64 ",\"patched\":%s,\"at\":%" PRIu64 "}",
        id, ebb_orch_random(o), ebb_orch_now(o), patched ? "true" : "false", ebb_orch_execution(o));
    ebb_status st = ebb_orch_set(o, "luck", ebb_blob_text(text));
    if (st == EBB_OK) st = ebb_orch_set_status(o, ebb_blob_text("\"had luck\""));
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_call(o, "echo", ebb_blob_text(text), NULL), out);
    return st;
}

static ebb_status all(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_blob said = {NULL, 0}, more = ebb_blob_text("null"), plan = {NULL, 0}, one;
    ebb_status st = calls(o, in, &plan);
    if (st == EBB_OK) st = races(o, in);
    if (st == EBB_OK) st = luck(o, out);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_event(o, "go"), &said);
    if (st != EBB_OK) return st;
    while ((st = ebb_orch_receive(o, "more", &one)) == EBB_OK) more = one;
    if (st == EBB_PENDING) st = ebb_orch_await(o, ebb_orch_child(o, "kid", plan, NULL), &plan);
    if (st == EBB_OK && !ebb_orch_get(o, "luck", out)) st = EBB_FAILED;
    if (st != EBB_OK) return st;
    char *text = ebb_orch_alloc(o, 1000);
    (void)snprintf(text, 1000, "[%.*s,%.*s,%.*s,%.*s]", (int)said.n, (const char *)said.at, (int)more.n,
                   (const char *)more.at, (int)plan.n, (const char *)plan.at, (int)out->n,
                   (const char *)out->at);
    *out = ebb_blob_text(text);
    return EBB_OK;
}

static ebb_status again(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = luck(o, out);
    if (st != EBB_OK || ebb_orch_execution(o) == 3) return st;
    (void)ebb_orch_call(o, "hang", in, NULL);
    return ebb_orch_continue_as_new(o, in, 0);
}

/* Is cancelled, and compensates. */
static ebb_status saga(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_step kept = ebb_orch_shield(o, ebb_orch_call(o, "flaky", in, NULL));
    (void)out;
    (void)ebb_orch_await(o, kept, NULL);
    (void)ebb_orch_set_status(o, ebb_blob_text("\"holds\""));
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "hang", in, NULL), NULL);
    if (st != EBB_CANCELLED || !ebb_orch_cancelled(o)) return EBB_FAILED;
    st = ebb_orch_await(o, ebb_orch_call(o, "echo", ebb_blob_text(ebb_orch_cancel_reason(o)), NULL), NULL);
    return st == EBB_OK ? EBB_CANCELLED : st;
}

static ebb_status fails(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_failure why = {.code = "no_luck", .message = "none at all", .details = in, .final = true};
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "flaky", in, NULL), out);
    return st == EBB_FAILED ? ebb_orch_fail(o, &why) : EBB_OK;
}

ebb_status ebb_app(ebb_cx *cx, ebb_worker *w);
ebb_status ebb_app(ebb_cx *cx, ebb_worker *w) {
    static const struct {
        const char *name;
        ebb_orch_fn fn;
    } orchs[] = {{"all", all}, {"again", again}, {"saga", saga}, {"fails", fails}, {"kid", kid}};
    ebb_status st = ebb_worker_activity(w, "echo", echo, NULL, NULL);
    (void)cx;
    if (st == EBB_OK) st = ebb_worker_activity(w, "flaky", flaky, NULL, NULL);
    if (st == EBB_OK) st = ebb_worker_activity(w, "hang", hang, NULL, NULL);
    for (size_t i = 0; i < sizeof orchs / sizeof *orchs && st == EBB_OK; i++)
        st = ebb_worker_orch(w, orchs[i].name, 1, orchs[i].fn);
    return st;
}
