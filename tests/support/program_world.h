/* What the tests of running programs share: a program in a world, in virtual time, and all that it says as one text. */
#ifndef EBB_TESTS_PROGRAM_WORLD_H
#define EBB_TESTS_PROGRAM_WORLD_H

#include "tests/support/lang_world.h"
#include "tests/support/world.h"

#include "lang/host.h"
#include "lang/vm.h"

typedef struct program_world {
    world *w;
    ebb_lang *c;
    ebb_program *p;
    lang_text said; /* what it prints; lines about faults and dead letters begin with "! " */
    bool silent;    /* no such lines */
} program_world;

static inline void program_print(void *ctx, const char *text, size_t n) {
    program_world *x = ctx;
    lang_write(&x->said, text, n);
    lang_write(&x->said, "\n", 1);
}

static inline void program_report(void *ctx, const ebb_program_event *e) {
    static const char *const what[] = {"", "fault", "dead", "full", "limit"};
    program_world *x = ctx;
    char line[512];
    if (x->silent) return;
    int n =
        snprintf(line, sizeof line, "! %s %s %s: %s%s%s\n", what[e->what], e->name[0] == 0 ? "-" : e->name,
                 e->kind[0] == 0 ? "-" : e->kind, e->why, e->text[0] == 0 ? "" : ": ", e->text);
    lang_write(&x->said, line, (size_t)n);
}

/* A compiled text. It must be free of errors. */
static inline ebb_lang *program_compile(const char *path, const char *text, size_t n) {
    ebb_lang *c = lang_new(NULL);
    ebb_status st = ebb_lang_compile(c, path, text, n);
    if (st != EBB_OK) {
        lang_text out = lang_empty();
        size_t count;
        const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &count);
        for (size_t i = 0; i < count; i++) ebb_lang_render(c, all[i], lang_write, &out);
        fail_msg("%s", out.s);
    }
    return c;
}

static inline ebb_program_opts program_opts(program_world *x) {
    return (ebb_program_opts){
        .allocator = x->w->allocator, .print = program_print, .report = program_report, .ctx = x};
}

/* Runs main and what comes of it, until nothing happens any more. */
static inline void program_run(program_world *x) {
    (void)ebb_program_start(x->p);
    world_finish(x->w);
}

/* Closes, or cancels what waits for ever, and frees; nothing is left. */
static inline void program_stop(program_world *x, ebb_program_end *end) {
    ebb_program_end e = {0};
    ebb_program_end_of(x->p, &e);
    if (end != NULL) *end = e;
    if (ebb_program_machines(x->p) != NULL) {
        ebb_region r = ebb_machines_region(ebb_program_machines(x->p));
        if (e.waiting > 0 || e.queued > 0) ebb_region_cancel(x->w->host, r, EBB_CANCEL_USER, "test");
        else (void)ebb_region_close(x->w->host, r);
        world_finish(x->w);
    }
    assert_int_equal(x->p->blocks, x->p->n_specs);
    assert_int_equal(ebb_program_free(x->p), EBB_OK);
    x->p = NULL;
}

static inline program_world program_new(const char *path, const char *text, size_t n) {
    program_world x = {.w = world_new(NULL, true), .c = program_compile(path, text, n), .said = lang_empty()};
    return x;
}

static inline void program_open(program_world *x) {
    ebb_program_opts opts = program_opts(x);
    assert_int_equal(ebb_program_new(x->c, &opts, &x->p), EBB_OK);
    assert_int_equal(ebb_program_open(x->w->host, x->p), EBB_OK);
}

static inline void program_end(program_world *x) {
    ebb_lang_free(x->c);
    free(x->said.s);
    world_end(x->w);
}

/* What a program says from its start to its end. */
static inline lang_text program_says(const char *path, const char *text, size_t n, ebb_program_end *end) {
    program_world x = program_new(path, text, n);
    program_open(&x);
    program_run(&x);
    program_stop(&x, end);
    lang_text said = x.said;
    x.said = lang_empty();
    program_end(&x);
    return said;
}

/* The lines of a program that begin with "//> ", which is what it says. */
static inline lang_text program_expects(const lang_text *text) {
    lang_text out = lang_empty();
    for (const char *at = text->s; at != NULL && *at != 0;) {
        const char *stop = strchr(at, '\n');
        size_t n = stop == NULL ? strlen(at) : (size_t)(stop - at);
        if (n >= 4 && memcmp(at, "//> ", 4) == 0) {
            lang_write(&out, at + 4, n - 4);
            lang_write(&out, "\n", 1);
        }
        at = stop == NULL ? NULL : stop + 1;
    }
    return out;
}

#endif
