/* The verifier: what is planted, it finds. Built twice: tests/future/tests.cmake links it with the library that
 * has planted bugs, where a collection forgets a root. */
#include "tests/future/heap_world.h"

static void expect(heap_world *w, const char *what) {
    char text[160] = "";
    assert_int_equal(ebb_heap_verify(w->rt, text, sizeof text), EBB_ERR_CORRUPT);
    if (strstr(text, what) == NULL) fail_msg("expected \"%s\", found \"%s\"", what, text);
    assert_int_equal(ebb_heap_verify(w->rt, NULL, 0), EBB_ERR_CORRUPT);
}

static ebb_value one_more(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)arg;
    return ebb_value_int(v->as.i + 1);
}

static void no_callback(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
}

/* A field that is wrong for as long as the verifier looks. */
#define WHILE(field, is, what)                                                                               \
    do {                                                                                                     \
        __typeof__(field) was = (field);                                                                     \
        (field) = (is);                                                                                      \
        expect(&w, what);                                                                                    \
        (field) = was;                                                                                       \
        heap_verify(&w);                                                                                     \
    } while (0)

static void every_kind_of_damage_is_named(void **state) {
    (void)state;
    heap_world w;
    heap_world_begin(&w, (ebb_heap_opts){0});
    ebb_future *f = ebb_promise_new(w.host, NULL, NULL);
    ebb_future *g = ebb_map(w.host, ebb_future_keep(f), one_more, NULL);
    heap_object *o = heap_object_new(w.host, NULL);
    ebb_future *full = ebb_future_ready(w.host, ebb_value_object(o));
    assert_int_equal(ebb_future_on_cleanup(f, no_callback, NULL), EBB_OK);
    heap_verify(&w);
    ebb__single *node = (ebb__single *)(void *)g;

    WHILE(f->cell.type, NULL, "a member of a region was freed");
    WHILE(f->cell.member, 7, "a member has a wrong index");
    WHILE(f->hooks->cell.type, NULL, "its callback was freed");
    WHILE(((ebb__cell *)(void *)o - 1)->type, NULL, "its value was freed");
    WHILE(node->edge.prev, NULL, "its ring of waiters is broken");
    WHILE(node->edge.input, 0, "a waiter waits for another future");
    WHILE(full->flags, (uint16_t)(full->flags & ~EBB__F_QUEUED), "a queued future is not flagged as queued");
    WHILE(f->flags, f->flags | EBB__F_FINISHED, "a pending future is finished");
    heap_pump(&w);
    WHILE(full->waiters, &node->edge, "a finished future has waiters");
    heap_world_end(&w);
}

static void a_free_cell_that_is_in_use_is_found(void **state) {
    (void)state;
    heap_world w;
    heap_world_begin(&w, (ebb_heap_opts){0});
    (void)heap_object_new(w.host, NULL); /* its page stays */
    ebb_value_discard(w.host, ebb_value_object(heap_object_new(w.host, NULL)));
    heap_collect(&w);
    ebb__class *k = &w.heap->classes[EBB__SIZES + ebb__class_of(sizeof(ebb__cell) + sizeof(heap_object))];
    assert_non_null(k->free);
    WHILE(k->free->type, &heap_plain, "a cell on a free list is in use");
    heap_world_end(&w);
}

static void a_sound_heap_passes_in_every_phase(void **state) {
    (void)state;
    heap_world w;
    heap_world_begin(&w, (ebb_heap_opts){.step = 1});
    for (int i = 0; i < 100; i++) {
        ebb_future *f = ebb_map(w.host, ebb_future_never(w.host), one_more, NULL);
        assert_int_equal(ebb_future_on_cleanup(f, no_callback, NULL), EBB_OK);
        assert_int_equal(ebb_future_hold(f, heap_object_new(w.host, NULL)), EBB_OK);
        if (i % 3 == 0) ebb_future_drop(f);
    }
    for (int round = 0; round < 3; round++) {
        do {
            heap_step(&w);
            heap_verify(&w);
        } while (w.heap->phase != EBB__GC_IDLE);
        heap_pump(&w);
    }
    heap_world_end(&w);
}

#ifdef EBB_MUTANTS
static void a_root_that_is_forgotten_is_found(void **state) {
    (void)state;
    heap_world w;
    heap_world_begin(&w, (ebb_heap_opts){.verify = true});
    heap_object *o = heap_object_new(w.host, NULL); /* the first member */
    (void)heap_object_new(w.host, NULL);
    heap_collect(&w);
    heap_object_is_there(o);
    w.heap->skip_a_root = true;
    assert_int_equal(ebb_gc_collect(w.rt), EBB_OK);
    expect(&w, "a member of a region was freed");
    assert_true(w.misuses > 0); /* opts.verify reported it */
    assert_int_equal(w.misuse, EBB_ERR_CORRUPT);
    assert_non_null(strstr(w.what, "a member of a region was freed"));
    ebb_runtime_free(w.rt);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_damage_is_named),
        cmocka_unit_test(a_free_cell_that_is_in_use_is_found),
        cmocka_unit_test(a_sound_heap_passes_in_every_phase),
#ifdef EBB_MUTANTS
        cmocka_unit_test(a_root_that_is_forgotten_is_found),
#endif
    };
    return cmocka_run_group_tests_name("heap_verifier", tests, NULL, NULL);
}
