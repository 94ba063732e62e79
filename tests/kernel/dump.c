/* The dump: the live tree as people read it. */
#include "tests/support/world.h"

typedef struct text {
    char *p;
    size_t n, room;
} text;

static void add(void *ctx, const char *piece, size_t n) {
    text *t = ctx;
    if (t->n + n + 1 > t->room) {
        t->room = 2 * (t->n + n + 1);
        t->p = realloc(t->p, t->room);
        assert_non_null(t->p);
    }
    memcpy(t->p + t->n, piece, n);
    t->n += n;
    t->p[t->n] = 0;
}

static text dump(world *w) {
    text t = {NULL, 0, 0};
    ebb_runtime_dump(w->rt, add, &t);
    assert_non_null(t.p);
    return t;
}

static void waits_for_a_permit(ebb_cx *cx, puppet *p) {
    if (p->polls == 1) {
        (void)ebb_mask(cx);
        (void)ebb_obligation_reserve_site(cx, EBB_OBLIGATION_LEASE, NULL, NULL, "lease.c:7");
        (void)ebb_defer_site(cx, puppet_poll, puppet_new(p->world, (puppet){0}), "final.c:8");
        (void)ebb_sem_acquire(cx, p->arg, &p->wait);
    }
}

static void joins_its_region(ebb_cx *cx, puppet *p) {
    if (p->number == 0) {
        ebb_region r = ebb_region_open_site(cx, NULL, "inner.c:3");
        p->number = r.id;
        (void)ebb_spawn_site(cx, r, puppet_poll, puppet_new(p->world, IGNORING), "child.c:4");
    }
    p->returns = ebb_region_join(cx, (ebb_region){p->number});
}

static void a_small_tree_reads_like_this(void **state) {
    (void)state;
    ebb_runtime_opts o = {.runtime_id = 2, .now = EBB_SECOND};
    world *w = world_new(&o, true);
    ebb_sem *sem = world_keep(w, sizeof *sem);
    ebb_sem_init(sem, 0);
    ebb_region r = ebb_region_open_site(w->host, NULL, "outer.c:1");
    puppet *a = puppet_new(w, (puppet){.act = waits_for_a_permit, .arg = sem, .returns = EBB_PENDING});
    (void)ebb_spawn_site(w->host, r, puppet_poll, a, "waiter.c:2");
    puppet *b = puppet_new(w, (puppet){.act = joins_its_region});
    (void)ebb_spawn_site(w->host, w->root, puppet_poll, b, "joiner.c:5");
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_DISCONNECT, "gone");
    ebb_runtime_advance(w->rt, EBB_SECOND + 250 * EBB_MS);
    (void)ebb_spawn_site(w->host, w->root, puppet_poll, puppet_new(w, IGNORING), "new.c:6");
    text t = dump(w);
    static const char expected[] =
        "region 2.1.1 Open, at root\n"
        "  task 2.2.1 Running, joins, at joiner.c:5\n"
        "  task 2.4.1 Created, in lane ready, at new.c:6\n"
        "  region 2.2.1 Draining, DISCONNECT epoch 1, 4750 ms left \"gone\", at outer.c:1\n"
        "    task 2.1.1 CancelRequested, DISCONNECT epoch 1, 4750 ms left, masked 1, in lane cancel, at "
        "waiter.c:2\n"
        "      finalizer 2.2.1, at final.c:8\n"
        "      obligation 2.1.1 lease, at lease.c:7\n"
        "  region 2.3.1 Open, at inner.c:3\n"
        "    task 2.3.1 Running, parked, at child.c:4\n";
    assert_string_equal(t.p, expected);
    free(t.p);
    world_settle(w);
    t = dump(w);
    assert_non_null(strstr(t.p, "masked 1, waits for semaphore, at waiter.c:2\n"));
    free(t.p);
    world_end(w);
}

static void a_deep_tree_is_printed_without_a_deep_stack(void **state) {
    world *w = *state;
    enum { DEPTH = 100 * 1000 };
    ebb_region r = w->root;
    for (int i = 0; i < DEPTH; i++)
        r = ebb_region_open_site(w->host, &(ebb_region_opts){.parent = r}, "deep.c:1");
    (void)ebb_spawn_site(w->host, r, puppet_poll, puppet_new(w, IGNORING), "bottom.c:2");
    w->memory.fail_at = w->memory.calls + 1;
    w->memory.fail_after = true;
    text t = dump(w);
    w->memory.fail_at = 0;
    size_t lines = 0, longest = 0, start = 0;
    for (size_t i = 0; i < t.n; i++) {
        if (t.p[i] != '\n') continue;
        if (i - start > longest) longest = i - start;
        start = i + 1;
        lines++;
    }
    assert_int_equal(lines, DEPTH + 2);
    assert_true(longest < 256);
    assert_non_null(strstr(t.p, "bottom.c:2"));
    assert_int_equal(w->memory.failures, 0);
    free(t.p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_tree_reads_like_this),
        IN_UNTRACED_WORLD(a_deep_tree_is_printed_without_a_deep_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
