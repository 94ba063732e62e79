/* lang/compile.c - a compilation from its beginning to its end. */
#include <string.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "lang/check.h"
#include "lang/source.h"

enum { CHUNK = 64 << 10 };

static bool start(ebb_lang *c) {
    ebb__arena_init(&c->arena, c->allocator, CHUNK);
    c->reserve = ebb__alloc(&c->allocator, EBB__LANG_RESERVE);
    c->sources.size = sizeof(ebb__source *);
    c->diagnostics.size = sizeof(ebb__diag *);
    if (c->reserve == NULL) return false;
    c->names.size = sizeof(ebb__name_entry);
    c->scratch = EBB__NEW(c, ebb__diag);
    c->check = EBB__NEW(c, struct ebb__check);
    c->check->decls.size = c->check->typestates.size = c->check->protocols.size = c->check->fns.size =
        sizeof(void *);
    c->check->calls.size = sizeof(ebb__call);
    ebb__names_init(c);
    ebb__types_init(c);
    ebb__builtins_init(c);
    return !c->oom;
}

ebb_status ebb_lang_new(const ebb_lang_opts *given, ebb_lang **out) {
    ebb_lang_opts opts;
    ebb_status st = EBB__OPTS_COPY(&opts, given);
    *out = NULL;
    if (st != EBB_OK) return st;
    if (opts.allocator.fn == NULL) return EBB_ERR_INVALID;
    ebb_lang *c = ebb__alloc(&opts.allocator, sizeof *c);
    if (c == NULL) return EBB_ERR_NOMEM;
    memset(c, 0, sizeof *c);
    c->allocator = opts.allocator;
    c->opts = opts;
    if (!start(c)) {
        ebb_lang_free(c);
        return EBB_ERR_NOMEM;
    }
    *out = c;
    return EBB_OK;
}

static void free_check(ebb_lang *c, struct ebb__check *k) {
    for (uint32_t i = 0; i < k->typestates.n; i++) {
        ebb__typestate *ts = *EBB__VEC_AT(&k->typestates, ebb__typestate *, i);
        for (uint32_t j = 0; j <= ts->n_states; j++) {
            ebb__state *st = j < ts->n_states ? ts->states[j] : NULL;
            ebb__vec *handlers = st != NULL ? &st->handlers : &ts->handlers;
            for (uint32_t h = 0; h < handlers->n; h++) ebb__vec_free(c, &ebb__handler_at(handlers, h)->sent);
            ebb__vec_free(c, handlers);
            ebb__vec_free(c, st != NULL ? &st->methods : &ts->fns);
            ebb__vec_free(c, st != NULL ? &st->invariants : &ts->invariants);
        }
    }
    ebb__vec *all[] = {&k->types, &k->decls, &k->typestates, &k->protocols, &k->fns, &k->calls};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ebb__vec_free(c, all[i]);
    ebb__map_free(&k->builtins.map);
    ebb__map_free(&k->type_of);
}

void ebb_lang_free(ebb_lang *c) {
    if (c == NULL) return;
    ebb_allocator allocator = c->allocator;
    if (c->check != NULL) free_check(c, c->check);
    for (uint32_t i = 0; i < c->sources.n; i++) {
        ebb__source *s = ebb__source_at(c, i);
        if (s->scope != NULL) ebb__map_free(&s->scope->map);
        ebb__source_free(c, s);
    }
    ebb__vec_free(c, &c->sources);
    ebb__vec_free(c, &c->diagnostics);
    ebb__vec_free(c, &c->names);
    ebb__free(&allocator, c->name_slots, c->name_room * sizeof *c->name_slots);
    ebb__free(&allocator, c->reserve, EBB__LANG_RESERVE);
    ebb__arena_free(&c->arena);
    ebb__free(&allocator, c, sizeof *c);
}

static void check(ebb_lang *c, ebb__source *root) {
    static void (*const steps[])(ebb_lang *) = {
        ebb__signatures,       ebb__bodies,      ebb__check_purity, ebb__check_protocols,
        ebb__check_provenance, ebb__check_reach, ebb__check_unused};
    ebb__resolve(c, root);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !c->oom; i++) steps[i](c);
    if (c->errors == 0 && !c->oom) ebb__program_build(c);
}

static bool in_broken_item(const ebb_lang *c, const ebb__diag *d) {
    const ebb__source *s = ebb__source_at(c, d->source);
    uint32_t where = d->out.labels[0].at;
    for (uint32_t item = s->broken ? ebb__syntax_at(s, s->root)->child : 0; item != 0;
         item = ebb__syntax_at(s, item)->next) {
        ebb__span at = ebb__node_span(s, item);
        if (where >= at.at && where < at.at + at.n)
            return (ebb__syntax_at(s, item)->flags & EBB__FLAG_BROKEN) != 0;
    }
    return false;
}

/* A warning beside an error, and what an item lacks that has a syntax error, are mostly consequences. */
static void drop_consequences(ebb_lang *c) {
    ebb__diag **v = c->diagnostics.at;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->diagnostics.n; i++) {
        bool syntax = v[i]->code <= EBB__E0111, error = v[i]->out.severity == EBB_LANG_ERROR;
        if (syntax || (error && !in_broken_item(c, v[i]))) v[kept++] = v[i];
    }
    c->diagnostics.n = kept;
}

ebb_status ebb_lang_compile(ebb_lang *c, const char *path, const char *text, size_t n) {
    if (c->used) return EBB_ERR_RESOLVED;
    c->used = true;
    ebb__source *root = ebb__source_add(c, path, "", text, n);
    if (root != NULL) check(c, root);
    if (c->errors > 0) drop_consequences(c);
    ebb__diag_sort(c);
    return c->oom ? EBB_ERR_NOMEM : c->errors > 0 ? EBB_FAILED : EBB_OK;
}
