/* docs/guide.md shows parts of this: work that outlives the process. */
#include <ebb/durable.h>
#include <ebb/ebb.h>

#include <stdio.h>
#include <string.h>

static bool transferring; /* for activities: orchestrations have no such state */

static ebb_status book(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    (void)cx;
    printf("%s %.*s\n", ebb_activity_name(a), (int)in.n, (const char *)in.at);
    *out = in;
    return EBB_OK;
}

/* A transfer may take a minute. It learns why it is cancelled, and has 5 s for its own cleanup. */
static ebb_status transfer(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    ebb_sleeper minute = {0};
    *(bool *)ebb_activity_arg(a) = true;
    *out = in;
    ebb_status st = ebb_sleep(cx, &minute, 60 * EBB_SECOND);
    if (st != EBB_OK) printf("transfer %s\n", ebb_cancel_kind_name(ebb_activity_reason(a).kind));
    return st;
}

static ebb_status trip(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_call_opts thrice = {.attempts = 3, .backoff = EBB_BACKOFF_EXPONENTIAL, .pause = EBB_SECOND};
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "seat", in, &thrice), out);
    if (st != EBB_OK) return st;
    st = ebb_orch_await(o, ebb_orch_call(o, "transfer", in, NULL), NULL);
    if (st != EBB_OK) (void)ebb_orch_await(o, ebb_orch_call(o, "give-back", *out, NULL), NULL);
    return st; /* EBB_CANCELLED: the instance is cancelled, after what it has undone */
}

static ebb_status approval(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    size_t won;
    ebb_step race[] = {ebb_orch_event(o, "decision"), ebb_orch_timer(o, 72 * 3600 * EBB_SECOND)};
    (void)in;
    ebb_status st = ebb_orch_select(o, 2, race, &won); /* the loser is gone with this turn's commit */
    if (st != EBB_OK) return st;
    return won == 0 ? ebb_orch_await(o, race[0], out) : EBB_TIMEOUT;
}

static ebb_status nightly(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = ebb_orch_await(o, ebb_orch_timer(o, 10 * EBB_MS), NULL);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_call(o, "report", in, NULL), out);
    if (st != EBB_OK || in.n == 3) return st;
    char *next = ebb_orch_alloc(o, in.n + 1);
    if (next == NULL) return EBB_ERR_NOMEM;
    memset(next, 'I', in.n + 1);
    const ebb_blob more = {next, in.n + 1};
    return ebb_orch_continue_as_new(o, more, 0); /* signals and state go over, the history does not */
}

static ebb_status serve(ebb_cx *cx, ebb_store *s, ebb_worker **w) {
    static const char *const args[] = {"sh", "-c", "cat >/dev/null; printf '\"printed\"'", NULL};
    const ebb_process_opts print = {.file = "/bin/sh", .args = args};
    ebb_status st = ebb_worker_open(cx, s, &(ebb_worker_opts){.activities = 16}, w);
    if (st == EBB_OK) st = ebb_worker_orch(*w, "trip", 1, trip);
    if (st == EBB_OK) st = ebb_worker_orch(*w, "approval", 1, approval);
    if (st == EBB_OK) st = ebb_worker_orch(*w, "nightly", 1, nightly);
    if (st == EBB_OK) st = ebb_worker_activity(*w, "seat", book, NULL, NULL);
    if (st == EBB_OK) st = ebb_worker_activity(*w, "give-back", book, NULL, NULL);
    if (st == EBB_OK) st = ebb_worker_activity(*w, "transfer", transfer, &transferring, NULL);
    if (st == EBB_OK) st = ebb_worker_command(*w, "report", &print, NULL);
    return st == EBB_OK ? ebb_worker_begin(*w) : st;
}

static ebb_status start(ebb_cx *cx, ebb_store *s, const char *id, const char *name, const char *input) {
    const ebb_start_opts o = {.id = id, .name = name, .input = ebb_blob_text(input)};
    return ebb_await(cx, ebb_instance_start(cx, s, &o), NULL); /* the same start again changes nothing */
}

static ebb_status wait_and_tell(ebb_cx *cx, ebb_store *s, const char *id) {
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_instance_wait(cx, s, id), &v);
    if (st != EBB_OK) return st;
    const ebb_instance_info *i = ebb_instance_info_of(&v);
    printf("%s: %s in execution %d, %.*s%s\n", id, ebb_instance_state_name(i->state), (int)i->execution,
           (int)i->output.n, i->output.n != 0 ? (const char *)i->output.at : "", i->text);
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static ebb_status decide(ebb_cx *cx, ebb_store *s) {
    const ebb_signal_opts yes = {
        .id = "expense-9", .name = "decision", .body = ebb_blob_text("yes"), .dedup = "click-1"};
    return ebb_await(cx, ebb_instance_signal(cx, s, &yes), NULL);
}

static ebb_status guide(ebb_cx *cx, void *arg) {
    ebb_worker *w = NULL;
    ebb_sleeper nap = {0};
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = arg}), &v);
    if (st != EBB_OK) return st;
    ebb_store *s = ebb_store_of(&v);
    st = serve(cx, s, &w);
    if (st == EBB_OK) st = start(cx, s, "trip-7", "trip", "Oslo");
    while (st == EBB_OK && !transferring) st = ebb_sleep(cx, &nap, EBB_MS);
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_cancel(cx, s, "trip-7", "it rains"), NULL);
    if (st == EBB_OK) st = wait_and_tell(cx, s, "trip-7");
    if (st == EBB_OK) st = start(cx, s, "expense-9", "approval", "");
    if (st == EBB_OK) st = decide(cx, s);
    if (st == EBB_OK) st = wait_and_tell(cx, s, "expense-9");
    if (st == EBB_OK) st = start(cx, s, "nightly", "nightly", "I");
    if (st == EBB_OK) st = wait_and_tell(cx, s, "nightly");
    if (w != NULL) ebb_region_close(cx, ebb_worker_region(w)); /* else it goes on */
    return st;
}

int main(void) {
    ebb_loop *loop;
    static char url[] = "lab:"; /* "sqlite:trips.db" survives the process */
    const ebb_loop_opts opts = {.runtime = {.allocator = ebb_libc_allocator()}};
    ebb_status st = ebb_loop_new(&opts, guide, url, &loop);
    return st == EBB_OK && ebb_loop_join(loop) == EBB_OK ? 0 : 1;
}
