#include "tests/support/future_world.h"

#include <stdlib.h>

bool future_test_gc(void) {
    const char *s = getenv("EBB_TEST_GC");
    return s != NULL && strcmp(s, "1") == 0;
}

size_t future_crowd(size_t n, size_t few) {
    return future_test_gc() ? few : n;
}

static void note_misuse(void *ctx, ebb_status st, const char *what, const char *site) {
    future_world *fw = ctx;
    fw->misuses++;
    fw->misuse = st;
    snprintf(fw->what, sizeof fw->what, "%s", what);
    snprintf(fw->site, sizeof fw->site, "%s", site != NULL ? site : "");
}

ebb_heap_opts future_heap_opts(void) {
    bool gc = future_test_gc();
    return (ebb_heap_opts){.size = sizeof(ebb_heap_opts), .every_time = gc, .verify = true, .debug = gc};
}

future_world *future_world_new(bool traced, const ebb_heap_opts *opts) {
    future_world *fw = calloc(1, sizeof *fw);
    assert_non_null(fw);
    fw->world = world_new(NULL, traced);
    fw->rt = fw->world->rt;
    fw->host = fw->world->host;
    fw->root = fw->world->root;
    fw->memory = &fw->world->memory;
    ebb_heap_opts o = opts != NULL ? *opts : future_heap_opts();
    o.misuse = note_misuse;
    o.ctx = fw;
    assert_int_equal(ebb_heap_setup(fw->rt, &o), EBB_OK);
    return fw;
}

static void no_misuse(const future_world *fw) {
    if (fw->misuses != 0) fail_msg("%s: %s (%s)", ebb_status_name(fw->misuse), fw->what, fw->site);
}

/* After a failed assertion inside a poll the pump believes that it still runs. */
static bool may_look(const future_world *fw) {
    return ebb_runtime_pump(fw->rt, 0) != EBB_ERR_REENTERED;
}

void future_world_end(future_world *fw) {
    if (may_look(fw)) {
        future_settle(fw);
        future_verify(fw);
        ebb_region_cancel(fw->host, fw->root, EBB_CANCEL_SHUTDOWN, "the test is over");
        world_pass(fw->world, 500 * EBB_MS);
        assert_int_equal(ebb_gc_collect(fw->rt), EBB_OK);
        future_verify(fw);
    }
    world_end(fw->world);
    no_misuse(fw);
    for (uint32_t i = 0; i < 256; i++) assert_true(fw->fds[i] <= 1);
    free(fw);
}

int future_world_up(void **state) {
    *state = future_world_new(true, NULL);
    return 0;
}

int future_world_up_untraced(void **state) {
    *state = future_world_new(false, NULL);
    return 0;
}

int future_world_down(void **state) {
    future_world_end(*state);
    return 0;
}

void future_settle(future_world *fw) {
    ebb_inbox_receive(fw->rt);
    world_settle(fw->world);
}

void future_pass(future_world *fw, uint64_t span) {
    world_pass(fw->world, span);
}

void future_verify(future_world *fw) {
    char text[160] = "";
    if (ebb_heap_verify(fw->rt, text, sizeof text) != EBB_OK) fail_msg("the heap: %s", text);
}

void future_collect(future_world *fw) {
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ebb_gc_collect(fw->rt), EBB_OK);
        future_settle(fw);
        future_verify(fw);
    }
}

ebb_heap_stats future_stats(const future_world *fw) {
    ebb_heap_stats s;
    ebb_heap_stats_of(fw->rt, &s);
    return s;
}

void future_expect_misuse(future_world *fw, ebb_status st) {
    assert_int_equal(fw->misuses, 1);
    assert_int_equal(fw->misuse, st);
    fw->misuses = 0;
}

/* ---- words ------------------------------------------------------------------------------------------- */

static void close_fd(void *p) {
    ++*(uint8_t *)p;
}

static const ebb_type fd_type = {"fd", 0, NULL, close_fd, 0};

ebb_value future_fd(future_world *fw, uint32_t fd) {
    return ebb_value_owned(&fd_type, &fw->fds[fd]);
}

uint32_t future_fd_freed(const future_world *fw, uint32_t fd) {
    return fw->fds[fd];
}

/* ---- probes ------------------------------------------------------------------------------------------ */

static void heard_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    probe *p = arg;
    (void)cx;
    p->done++;
    p->status = st;
    p->value = v->as.i;
    p->seen = *v;
}

static void heard_cancel(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    probe *p = arg;
    (void)cx;
    p->cancels++;
    p->status = EBB_CANCELLED;
    p->kind = kind;
}

static void heard_cleanup(ebb_cx *cx, void *arg) {
    (void)cx;
    ((probe *)arg)->cleanups++;
}

ebb_future *probe_on(probe *p, ebb_future *f) {
    *p = (probe){.status = EBB_PENDING};
    assert_int_equal(ebb_future_on_done(f, heard_done, p), EBB_OK);
    assert_int_equal(ebb_future_on_cancel(f, heard_cancel, p), EBB_OK);
    assert_int_equal(ebb_future_on_cleanup(f, heard_cleanup, p), EBB_OK);
    return f;
}

static void heard(const probe *p, ebb_status st, uint32_t done, uint32_t cancels, uint32_t cleanups) {
    if (p->status != st) {
        fail_msg("it is %s, not %s", ebb_status_name(p->status), ebb_status_name(st));
    }
    assert_int_equal(p->done, done);
    assert_int_equal(p->cancels, cancels);
    assert_int_equal(p->cleanups, cleanups);
}

void probe_completed(const probe *p, int64_t value) {
    heard(p, EBB_OK, 1, 0, 1);
    assert_int_equal(p->value, value);
}

void probe_failed(const probe *p, ebb_status st) {
    heard(p, st, 1, 0, 1);
}

void probe_cancelled(const probe *p, ebb_cancel_kind kind) {
    heard(p, EBB_CANCELLED, 0, 1, 1);
    if (p->kind != kind) {
        fail_msg("it was cancelled by %s, not %s", ebb_cancel_kind_name(p->kind), ebb_cancel_kind_name(kind));
    }
}

void probe_pending(const probe *p) {
    heard(p, EBB_PENDING, 0, 0, 0);
}
