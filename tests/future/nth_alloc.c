/* Every combinator with its n-th allocation refused, for each n: alone, and with all that follow; once the
 * host's allocations, once the heap's cells. Everything ends, nothing leaks, cleanups run once, every word is
 * let go of once.
 *
 * Cells are counted by standing in for ebb__alloc_slow, which a heap with `every_time` calls for each; the
 * program is linked with --wrap for that. */
#include "tests/support/future_world.h"
#include "tests/support/share.h"

#include <stdlib.h>

#include "future/heap.h"

enum { WATCHED = 256, FDS = 200, TURNS_MAX = 100000 };

/* From each n to the next that is tried; the endings begin at different ones. */
enum { N_STEP = SHARE(1, 5) };

/* ---- cells ------------------------------------------------------------------------------------------------ */

static uint64_t cells, cell_fails_at;
static bool cells_fail_after;

void *__real_ebb__alloc_slow(ebb__heap *h, const ebb_type *type, size_t n);
void *__wrap_ebb__alloc_slow(ebb__heap *h, const ebb_type *type, size_t n);
void *__wrap_ebb__alloc_slow(ebb__heap *h, const ebb_type *type, size_t n) {
    cells++;
    if (cell_fails_at != 0 && (cells == cell_fails_at || (cells_fail_after && cells > cell_fails_at))) {
        return NULL;
    }
    return __real_ebb__alloc_slow(h, type, n);
}

/* ---- a run -------------------------------------------------------------------------------------------------- */

typedef struct waiter {
    EBB_TASK_STATE;
    struct run *run;
    ebb_future *f;
    ebb_value v;
    ebb_status st;
    bool over;
} waiter;

typedef struct run {
    ebb_runtime *rt;
    ebb_cx *host;
    ebb_region inner;
    ebb_failing memory;
    uint8_t fds[FDS];
    uint32_t fds_made;
    uint32_t cleanups[WATCHED], ends[WATCHED];
    uint32_t watched;
    ebb_future *promise[64];
    uint32_t promises;
    ebb_chan *chan;
    ebb_broadcast *broadcast;
    ebb_sem sem;
    waiter waiter[8];
    uint32_t waiters;
    uint32_t corrupt;
    char what[160];
} run;

static void note_misuse(void *ctx, ebb_status st, const char *what, const char *site) {
    run *r = ctx;
    (void)site;
    if (st != EBB_ERR_CORRUPT || r->corrupt++ > 0) return;
    snprintf(r->what, sizeof r->what, "%s", what);
}

static void close_fd(void *p) {
    ++*(uint8_t *)p;
}

static const ebb_type fd_type = {"fd", 0, NULL, close_fd, 0};

static ebb_value fd(run *r) {
    return ebb_value_owned(&fd_type, &r->fds[r->fds_made++]);
}

static void count(ebb_cx *cx, void *arg) {
    (void)cx;
    ++*(uint32_t *)arg;
}
static void count_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)st;
    (void)v;
    count(cx, arg);
}
static void count_cancel(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    (void)kind;
    count(cx, arg);
}

/* Only what could be attached is expected. */
static ebb_future *watch(run *r, ebb_future *f) {
    uint32_t i = r->watched;
    if (ebb_future_on_cleanup(f, count, &r->cleanups[i]) != EBB_OK) return f;
    r->watched++;
    bool both = ebb_future_on_done(f, count_done, &r->ends[i]) == EBB_OK;
    if (!both || ebb_future_on_cancel(f, count_cancel, &r->ends[i]) != EBB_OK) r->ends[i] = 1000;
    return f;
}

static const ebb_operation op = {"work", NULL, NULL};

static ebb_future *promise(run *r, ebb_cx *cx, bool is_work) {
    ebb_future *f = ebb_promise_new(cx, is_work ? &op : NULL, NULL);
    r->promise[r->promises++] = f;
    return watch(r, f);
}

/* ---- callbacks ------------------------------------------------------------------------------------------------- */

static ebb_value same(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)arg;
    return ebb_value_take(cx, v);
}
static ebb_value nested(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    return ebb_value_future(ebb_future_ready(cx, fd(arg)));
}
static ebb_future *then(ebb_cx *cx, ebb_value *v, void *arg) {
    return watch(arg, ebb_future_ready(cx, ebb_value_take(cx, v)));
}
static ebb_future *caught(ebb_cx *cx, ebb_status st, void *arg) {
    (void)st;
    return ebb_future_ready(cx, fd(arg));
}
static ebb_future *later(ebb_cx *cx, void *arg) {
    return watch(arg, ebb_after(cx, EBB_MS));
}
static ebb_future *release(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    return later(cx, arg);
}
static ebb_future *each(ebb_cx *cx, size_t i, void *arg) {
    return i % 2 == 0 ? ebb_future_ready(cx, fd(arg)) : ebb_map(cx, ebb_after(cx, EBB_MS), nested, arg);
}
static ebb_future *attempt(ebb_cx *cx, uint32_t i, void *arg) {
    if (i < 2) return ebb_within(cx, ebb_future_never(cx), EBB_MS);
    return ebb_future_ready(cx, fd(arg));
}
static ebb_future *repeat(ebb_cx *cx, uint64_t n, void *arg) {
    (void)arg;
    return ebb_future_ready(cx, n < 2 ? ebb_value_none() : ebb_value_int(1));
}

static ebb_status awaits(ebb_cx *cx, void *state) {
    waiter *w = state;
    EBB_BEGIN(w);
    EBB_AWAIT(w, w->st, ebb_await(cx, w->f, &w->v));
    if (w->st == EBB_OK) ebb_value_discard(cx, w->v);
    if (w->st == EBB_ERR_NOT_AWAITED || w->st == EBB_ERR_NOT_TASK)
        ebb_future_drop(w->f); /* it was not consumed */
    w->over = true;
    EBB_END(w);
}

static ebb_status naps(ebb_cx *cx, void *state) {
    return ebb_sleep(cx, state, 2 * EBB_MS);
}

/* ---- the scenario ------------------------------------------------------------------------------------------------- */

static void await_in_task(run *r, ebb_cx *cx, ebb_region region, ebb_future *f) {
    waiter *w = &r->waiter[r->waiters++];
    *w = (waiter){.run = r, .f = f, .st = EBB_PENDING};
    if (ebb_id_status(ebb_spawn(cx, region, awaits, w).id) == EBB_OK) return;
    w->over = true;
    ebb_future_drop(f);
}

static void singles(run *r, ebb_cx *cx) {
    ebb_future *f = ebb_map(cx, ebb_then(cx, promise(r, cx, false), then, r), same, NULL);
    f = watch(r, ebb_catch(cx, watch(r, f), caught, r));
    f = watch(r, ebb_finally(cx, f, later, r));
    f = watch(r, ebb_bracket(cx, f, then, release, r));
    await_in_task(r, cx, ebb_runtime_root(r->rt), ebb_within(cx, f, 50 * EBB_MS));
    await_in_task(r, cx, ebb_runtime_root(r->rt), ebb_map(cx, ebb_future_ready(cx, fd(r)), nested, r));
    ebb_future_drop(watch(r, ebb_within(cx, promise(r, cx, true), EBB_MS)));
    ebb_future_drop(watch(r, ebb_catch(cx, ebb_future_failed(cx, EBB_FAILED), caught, r)));
}

static void several(run *r, ebb_cx *cx) {
    ebb_future *(*const make[])(ebb_cx *, size_t, ebb_future *const *, const char *) = {
        ebb_all_site, ebb_all_settled_site, ebb_race_site, ebb_any_site, ebb_select_site};
    ebb_future *results[5];
    for (int i = 0; i < 5; i++) {
        ebb_future *fs[70]; /* two pieces of edges */
        for (int k = 0; k < 70; k++)
            fs[k] = k % 10 == 0 ? ebb_future_ready(cx, fd(r)) : ebb_future_ready(cx, ebb_value_none());
        ebb_future_drop(fs[3]);
        ebb_future_drop(fs[69]);
        fs[3] = promise(r, cx, false);
        fs[69] = i == 2 ? watch(r, ebb_future_never(cx)) : promise(r, cx, true);
        results[i] = watch(r, make[i](cx, 70, fs, EBB_SITE));
    }
    await_in_task(r, cx, ebb_runtime_root(r->rt), ebb_all_settled(cx, 5, results));
}

static void made(run *r, ebb_cx *cx) {
    const ebb_retry_opts o = {.attempts = 4, .factor = 2, .pause = EBB_MS};
    ebb_future *fs[] = {
        watch(r, ebb_retry(cx, &o, attempt, r)),
        watch(r, ebb_traverse(cx, 9, 3, each, r)),
        watch(r, ebb_future_delay(cx, EBB_MS, later, r)),
        watch(r, ebb_future_repeat(cx, EBB_MS, repeat, r)),
    };
    await_in_task(r, cx, ebb_runtime_root(r->rt), ebb_all(cx, 4, fs));
}

static void across(run *r, ebb_cx *cx) {
    static ebb_sleeper nap;
    nap = (ebb_sleeper){.due = 0};
    r->inner = ebb_region_open(cx, NULL);
    ebb_future *shared = ebb_future_share(promise(r, cx, false));
    ebb_future *task = ebb_go(cx, r->inner, naps, &nap);
    ebb_future *two[] = {ebb_future_keep(shared), watch(r, task)};
    await_in_task(r, cx, r->inner, ebb_race(cx, 2, two));
    ebb_future *wrapped = ebb_promise_new(cx, NULL, NULL);
    (void)ebb_promise_settle(wrapped, ebb_value_future(ebb_future_shield(ebb_future_keep(shared))));
    await_in_task(r, cx, ebb_runtime_root(r->rt), watch(r, wrapped));
    ebb_remote *remote = NULL;
    if (ebb_remote_new(shared, &remote) == EBB_OK) (void)ebb_remote_state(remote);
    ebb_remote_release(remote);
    ebb_future_drop(shared);
}

/* What waits in queues of other things. Nobody takes the item, so it has to be there in the end. */
static void queued(run *r, ebb_cx *cx) {
    uint64_t item = 1;
    ebb_sem_init(&r->sem, 1);
    if (ebb_chan_new(r->rt, 1, sizeof item, &r->chan) != EBB_OK) return;
    if (ebb_broadcast_new(r->rt, sizeof item, &r->broadcast) != EBB_OK) return;
    (void)ebb_chan_try_send(cx, r->chan, &item);
    ebb_future *fs[9];
    for (int i = 0; i < 2; i++) {
        fs[i] = watch(r, ebb_chan_recv_future(cx, r->chan));
        fs[2 + i] = watch(r, ebb_sem_acquire_future(cx, &r->sem));
        fs[4 + i] = watch(r, ebb_broadcast_next_future(cx, r->broadcast, 0));
    }
    fs[6] = watch(r, ebb_within(cx, ebb_chan_send_future(cx, r->chan), EBB_MS));
    fs[7] = watch(r, ebb_region_closed(cx, r->inner));
    fs[8] = watch(r, ebb_task_ended(cx, (ebb_task){0}));
    ebb_future *first[] = {ebb_race(cx, 4, fs), ebb_all_settled(cx, 5, fs + 4)};
    await_in_task(r, cx, ebb_runtime_root(r->rt), ebb_all_settled(cx, 2, first));
}

static void pump(run *r) {
    for (int i = 0; i < TURNS_MAX; i++) {
        ebb_inbox_receive(r->rt);
        if (ebb_runtime_pump(r->rt, 64) == EBB_OK) return;
    }
    fail_msg("it never stops");
}

static void pass(run *r, uint64_t span) {
    uint64_t end = ebb_now(r->host) + span;
    pump(r);
    for (uint64_t due; (due = ebb_runtime_next_due(r->rt)) <= end && due > ebb_now(r->host);) {
        ebb_runtime_advance(r->rt, due);
        pump(r);
    }
    ebb_runtime_advance(r->rt, end);
    pump(r);
}

static void settle_promises(run *r) {
    if (r->chan != NULL) ebb_chan_close(r->host, r->chan);
    if (r->broadcast != NULL) ebb_broadcast_close(r->host, r->broadcast);
    for (uint32_t i = 0; i < r->promises; i++) {
        if (i % 3 < 2) (void)ebb_promise_settle(r->promise[i], fd(r));
        else (void)ebb_promise_reject(r->promise[i], i % 2 == 0 ? EBB_TIMEOUT : EBB_CANCELLED);
    }
}

/* ---- the oracle ----------------------------------------------------------------------------------------------------- */

static bool is_closed(run *r) {
    ebb_region_state s;
    ebb_status st = ebb_region_state_of(r->host, ebb_runtime_root(r->rt), &s);
    return st == EBB_ERR_STALE || s == EBB_REGION_CLOSED;
}

static void judge(run *r, uint64_t n, bool forced) {
    char text[160] = "";
    if (!is_closed(r)) fail_msg("allocation %u: the root is not closed", (unsigned)n);
    (void)ebb_gc_collect(r->rt);
    if (ebb_heap_verify(r->rt, text, sizeof text) != EBB_OK) fail_msg("allocation %u: %s", (unsigned)n, text);
    if (r->corrupt != 0) fail_msg("allocation %u: %s", (unsigned)n, r->what);
    for (uint32_t i = 0; i < r->watched && !forced; i++) {
        if (r->cleanups[i] != 1) fail_msg("allocation %u: %u cleanups of %u", (unsigned)n, r->cleanups[i], i);
        if (r->ends[i] % 1000 > 1 || r->ends[i] == 0)
            fail_msg("allocation %u: %u ends of %u", (unsigned)n, r->ends[i], i);
    }
    for (uint32_t i = 0; i < r->waiters && !forced; i++) {
        if (!r->waiter[i].over) fail_msg("allocation %u: task %u waits for ever", (unsigned)n, i);
    }
}

typedef enum ending { BY_CLOSE, BY_CANCEL, BY_FORCE } ending;

/* Once all producers are done everything ends by itself. */
static void ends_by_itself(run *r, uint64_t n) {
    settle_promises(r);
    pass(r, 200 * EBB_MS);
    for (uint32_t i = 0; i < r->watched; i++) {
        if (r->cleanups[i] != 1) fail_msg("allocation %u: future %u does not end", (unsigned)n, i);
    }
    for (uint32_t i = 0; i < r->waiters; i++) {
        if (!r->waiter[i].over) fail_msg("allocation %u: task %u is not told", (unsigned)n, i);
    }
}

static void end(run *r, ending how, uint64_t n) {
    if (how == BY_CLOSE) ends_by_itself(r, n);
    if (how == BY_CLOSE) ebb_region_close(r->host, ebb_runtime_root(r->rt));
    if (how == BY_CANCEL) ebb_region_cancel(r->host, ebb_runtime_root(r->rt), EBB_CANCEL_SHUTDOWN, "over");
    if (how == BY_FORCE) ebb_region_force(r->host, ebb_runtime_root(r->rt));
    if (how != BY_CLOSE) settle_promises(r);
    pass(r, EBB_SECOND);
}

static void judge_queues(run *r, uint64_t n) {
    uint64_t item;
    if (r->broadcast != NULL) {
        if (ebb_chan_try_recv(NULL, r->chan, &item) != EBB_OK)
            fail_msg("allocation %u: an item is lost", (unsigned)n);
        if (r->sem.free != 1) fail_msg("allocation %u: there are %u permits", (unsigned)n, r->sem.free);
    }
    ebb_broadcast_free(r->broadcast);
    ebb_chan_free(r->chan);
}

/* The number of allocations of the host, or of cells. */
static uint64_t go(uint64_t n, bool after, bool of_cells, ending how) {
    run *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->memory.inner = ebb_libc_allocator();
    if (!of_cells) {
        r->memory.fail_at = n;
        r->memory.fail_after = after;
    }
    cells = 0;
    cell_fails_at = of_cells ? n : 0;
    cells_fail_after = after;
    ebb_runtime_opts opts = {.allocator = ebb_failing_allocator(&r->memory)};
    if (ebb_runtime_new(&opts, &r->rt) == EBB_OK) {
        ebb_heap_opts o = {.every_time = of_cells || future_test_gc(),
                           .verify = !of_cells, /* else at the end only: it is slow */
                           .debug = future_test_gc(),
                           .misuse = note_misuse,
                           .ctx = r};
        (void)ebb_heap_setup(r->rt, &o);
        r->host = ebb_runtime_host(r->rt);
        singles(r, r->host);
        several(r, r->host);
        made(r, r->host);
        across(r, r->host);
        queued(r, r->host);
        pass(r, 3 * EBB_MS);
        end(r, how, n);
        judge(r, n, how == BY_FORCE);
        ebb_runtime_free(r->rt);
        judge_queues(r, n);
    }
    for (uint32_t i = 0; i < r->fds_made; i++) {
        if (r->fds[i] != 1)
            fail_msg("allocation %u: word %u was let go of %u times", (unsigned)n, i, r->fds[i]);
    }
    if (r->memory.live != 0) fail_msg("allocation %u: %d blocks leaked", (unsigned)n, (int)r->memory.live);
    uint64_t calls = of_cells ? cells : r->memory.calls;
    free(r);
    return calls;
}

static void sweep(bool of_cells, bool after) {
    uint64_t runs = 0;
    for (ending how = BY_CLOSE; how <= BY_FORCE; how++) {
        uint64_t calls = go(0, false, of_cells, how);
        runs++;
        for (uint64_t n = 1 + how % N_STEP; n <= calls; n += N_STEP, runs++)
            (void)go(n, after, of_cells, how);
    }
    print_message("%u runs\n", (unsigned)runs);
}

static void one_allocation_of_the_host_fails(void **state) {
    (void)state;
    sweep(false, false);
}
static void all_allocations_of_the_host_fail_from_there(void **state) {
    (void)state;
    sweep(false, true);
}
static void one_cell_fails(void **state) {
    (void)state;
    sweep(true, false);
}
static void all_cells_fail_from_there(void **state) {
    (void)state;
    sweep(true, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_allocation_of_the_host_fails),
        cmocka_unit_test(all_allocations_of_the_host_fail_from_there),
        cmocka_unit_test(one_cell_fails),
        cmocka_unit_test(all_cells_fail_from_there),
    };
    if (future_test_gc())
        cmocka_set_test_filter("*host*"); /* cells are counted with a collection each anyway */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
