/* cli/modules.c - the files of a program, and what the compiler says about them. */
#include "cli/modules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void print(void *ctx, const char *s, size_t n) {
    fwrite(s, 1, n, ctx);
}

ebb_status ebb__modules_load(void *ctx, const char *module, const char **out, size_t *n) {
    ebb__modules *m = ctx;
    size_t room = strlen(m->directory) + strlen(module) + sizeof ".ebb";
    char *path = malloc(room);
    ebb__cli_file *files = realloc(m->files, (m->n + 1) * sizeof *files);
    if (files != NULL) m->files = files;
    if (path == NULL || files == NULL) {
        free(path);
        return EBB_ERR_NOMEM;
    }
    snprintf(path, room, "%s%s.ebb", m->directory, module);
    FILE *in = fopen(path, "rb"); /* that it is missing is a diagnostic, not a message */
    bool there = in != NULL;
    if (there) fclose(in);
    there = there && ebb__cli_read_most(path, EBB_LANG_MAX_BYTES, &m->files[m->n]);
    free(path);
    if (!there) return EBB_ERR_INVALID;
    *out = (const char *)m->files[m->n].bytes;
    *n = m->files[m->n].n;
    if (*out == NULL) *out = "";
    m->n++;
    return EBB_OK;
}

bool ebb__modules_open(ebb__modules *m, const char *path) {
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    *m = (ebb__modules){.directory = calloc(1, n + 1)};
    if (m->directory == NULL) return false;
    memcpy(m->directory, path, n);
    return true;
}

void ebb__modules_free(ebb__modules *m) {
    for (size_t i = 0; i < m->n; i++) free(m->files[i].bytes);
    free(m->files);
    free(m->directory);
}

/* The diagnostics of a compilation. Returns how many are errors. */
size_t ebb__cli_show(const ebb_lang *c, FILE *out, bool json) {
    size_t n, errors = 0;
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &n);
    for (size_t i = 0; i < n; i++) {
        errors += all[i]->severity == EBB_LANG_ERROR;
        if (json) ebb_lang_render_json(all[i], print, out);
        else ebb_lang_render(c, all[i], print, out);
        fputc('\n', out);
    }
    return errors;
}

const char *ebb__cli_text(const ebb__cli_file *f) {
    return f->n == 0 ? "" : (const char *)f->bytes;
}

/* ---- a whole program ---- */

static int compile(ebb__compiled *c) {
    ebb_lang_opts opts = {
        .allocator = ebb__cli_allocator(), .load = ebb__modules_load, .load_ctx = &c->modules};
    ebb_status st = ebb__modules_open(&c->modules, c->path) ? ebb_lang_new(&opts, &c->lang) : EBB_ERR_NOMEM;
    if (st == EBB_OK) {
        st = ebb_lang_compile(c->lang, c->path, ebb__cli_text(&c->file), c->file.n);
        (void)ebb__cli_show(c->lang, stderr, false);
    }
    if (st == EBB_OK) return EBB__EXIT_OK;
    if (st == EBB_FAILED) return EBB__EXIT_BAD;
    ebb__cli_error("%s: %s", c->path, ebb_status_text(st));
    return EBB__EXIT_USAGE;
}

int ebb__compiled_open(ebb__compiled *c, const char *path) {
    *c = (ebb__compiled){.path = path};
    return ebb__cli_read_most(path, EBB_LANG_MAX_BYTES, &c->file) ? compile(c) : EBB__EXIT_USAGE;
}

void ebb__compiled_close(ebb__compiled *c) {
    ebb_lang_free(c->lang);
    ebb__modules_free(&c->modules);
    free(c->file.bytes);
}

void ebb__compiled_limit(const ebb_program_event *e) {
    char place[256] = "";
    if (e->file[0] != 0)
        (void)snprintf(place, sizeof place, "%s:%" PRIu32 ":%" PRIu32 ": ", e->file, e->line, e->column);
    ebb__cli_error("%s%s has %s", place, e->name, e->why);
}

int ebb__compiled_program(const ebb__compiled *c, const ebb_program_opts *opts, ebb_program **out) {
    ebb_status st = ebb_program_new(c->lang, opts, out);
    if (st == EBB_OK) return EBB__EXIT_OK;
    if (st == EBB_ERR_LIMIT) return EBB__EXIT_BAD; /* it was reported */
    ebb__cli_error("%s: %s", c->path, st == EBB_ERR_INVALID ? "there is no `fn main`" : ebb_status_text(st));
    return st == EBB_ERR_NOMEM ? EBB__EXIT_USAGE : EBB__EXIT_BAD;
}
