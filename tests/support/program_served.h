/* Programs of typestate machines, and machines in C, beside a server with a dashboard. */
#ifndef EBB_TESTS_PROGRAM_SERVED_H
#define EBB_TESTS_PROGRAM_SERVED_H

#include "tests/support/serve_world.h"

#include <ebb/program.h>

typedef struct served {
    ebb_lang *lang;
    ebb_program *p;
    ebb_machines *ms; /* in C */
} served;

/* Compiles, opens and starts a program. */
LOOP_UNUSED void program_in(serve_world *s, served *x, ebb_program_opts run, const char *text) {
    ebb_lang_opts opts = {.allocator = ebb_libc_allocator()};
    size_t n;
    run.allocator = ebb_libc_allocator();
    assert_int_equal(ebb_lang_new(&opts, &x->lang), EBB_OK);
    if (ebb_lang_compile(x->lang, "shop.ebb", text, strlen(text)) != EBB_OK) {
        const ebb_lang_diagnostic *d = ebb_lang_diagnostics(x->lang, &n)[0];
        fail_msg("line %u: %s", d->labels[0].line, d->message);
    }
    assert_int_equal(ebb_program_new(x->lang, &run, &x->p), EBB_OK);
    assert_int_equal(ebb_program_open(ebb_loop_cx(s->w->loop), x->p), EBB_OK);
    assert_int_equal(ebb_program_start(x->p), EBB_OK);
}

LOOP_UNUSED bool served_program_is_freed(void *arg) {
    served *x = arg;
    if (ebb_program_free(x->p) != EBB_OK) return false;
    x->p = NULL;
    return true;
}

LOOP_UNUSED bool served_machines_are_freed(void *arg) {
    served *x = arg;
    if (ebb_machines_free(x->ms) != EBB_OK) return false;
    x->ms = NULL;
    return true;
}

LOOP_UNUSED void served_close(serve_world *s, ebb_machines *ms) {
    if (ms != NULL)
        ebb_region_cancel(ebb_loop_cx(s->w->loop), ebb_machines_region(ms), EBB_CANCEL_USER, "test");
}

/* Before serve_down: the world counts what lives. */
LOOP_UNUSED void served_end(serve_world *s, served *x) {
    if (x->p != NULL) served_close(s, ebb_program_machines(x->p));
    served_close(s, x->ms);
    loop_until(s->w, served_program_is_freed, x);
    loop_until(s->w, served_machines_are_freed, x);
    ebb_lang_free(x->lang);
}

#endif
