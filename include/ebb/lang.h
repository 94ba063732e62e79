/* ebb/lang.h - the compiler of .ebb files: text to a checked program, and everything that is wrong with it.
 *
 * A compilation is one object. It reads nothing but what it is given, has no globals, never exits and keeps all of its
 * memory until it is freed. It belongs to one thread at a time. docs/language.md is the reference of the language. */
#ifndef EBB_LANG_H
#define EBB_LANG_H

#include <ebb/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Limits of every compilation. A program that exceeds one gets the diagnostic E0109, E0110 or E0111. */
#define EBB_LANG_MAX_DEPTH  200        /* nested constructs; a chain of n operators counts n */
#define EBB_LANG_MAX_BYTES  (16 << 20) /* of one file */
#define EBB_LANG_MAX_ERRORS 100        /* the default */

typedef struct ebb_lang ebb_lang;

/* Gives the text of a module that a file imports. `module` is its path with slashes and without a suffix: "net/auth".
 * The text must stay valid until the compilation is freed. Any status but EBB_OK: there is no such module. */
typedef ebb_status ebb_lang_load_fn(void *ctx, const char *module, const char **text, size_t *n);

typedef struct ebb_lang_opts {
    uint32_t size;           /* sizeof(ebb_lang_opts) of the caller; 0: this one */
    uint32_t max_errors;     /* later errors and warnings are not reported. 0: EBB_LANG_MAX_ERRORS */
    ebb_allocator allocator; /* required */
    ebb_lang_load_fn *load;  /* NULL: nothing can be imported */
    void *load_ctx;          /* the first argument of `load` */
} ebb_lang_opts;

typedef enum ebb_lang_severity { EBB_LANG_ERROR, EBB_LANG_WARNING } ebb_lang_severity;

/* A place in a file that a diagnostic points at. Offsets are inside the file: at + n <= its size. */
typedef struct ebb_lang_label {
    const char *file;
    uint32_t at, n;        /* bytes */
    uint32_t line, column; /* of `at`, from 1; the column counts bytes */
    const char *text;      /* may be empty */
} ebb_lang_label;

/* Replaces `n` bytes at `at` by `text`. */
typedef struct ebb_lang_edit {
    uint32_t at, n;
    const char *text;
} ebb_lang_edit;

enum { EBB_LANG_LABELS = 4, EBB_LANG_EDITS = 4 };

/* One mistake. The first label is the primary one. If there are edits, applying them to the primary file repairs it;
 * they are in the order of their offsets and do not overlap. */
typedef struct ebb_lang_diagnostic {
    const char *code; /* "E0506", "W0901" */
    ebb_lang_severity severity;
    const char *message;
    ebb_lang_label labels[EBB_LANG_LABELS];
    uint32_t n_labels; /* at least 1 */
    const char *note;  /* "": none */
    const char *help;  /* "": none */
    ebb_lang_edit edits[EBB_LANG_EDITS];
    uint32_t n_edits;
} ebb_lang_diagnostic;

/* Takes text that the compiler writes. */
typedef void ebb_lang_write_fn(void *ctx, const char *text, size_t n);

/* Makes a compilation. EBB_ERR_NOMEM, EBB_ERR_VERSION, or EBB_ERR_INVALID without an allocator. */
ebb_status ebb_lang_new(const ebb_lang_opts *opts, ebb_lang **out);

/* Frees a compilation and everything that it returned. NULL is allowed. */
void ebb_lang_free(ebb_lang *c);

/* Compiles a program: the file `path` with `text`, and what it imports. Called once for each compilation; `path` and
 * `text` must stay valid until it is freed. EBB_OK: no errors, perhaps warnings. EBB_FAILED: there are errors.
 * EBB_ERR_NOMEM: diagnostics may be missing. EBB_ERR_RESOLVED: it was called before. */
ebb_status ebb_lang_compile(ebb_lang *c, const char *path, const char *text, size_t n);

/* Returns the diagnostics, ordered by file and place. They are valid until the compilation is freed. */
const ebb_lang_diagnostic *const *ebb_lang_diagnostics(const ebb_lang *c, size_t *n);

/* Writes a diagnostic for people, with the source lines; or for programs, as one JSON object without a newline. */
void ebb_lang_render(const ebb_lang *c, const ebb_lang_diagnostic *d, ebb_lang_write_fn *write, void *ctx);
void ebb_lang_render_json(const ebb_lang_diagnostic *d, ebb_lang_write_fn *write, void *ctx);

/* Formats a file: the same tokens and comments, with the spacing of docs/language.md. Call it instead of
 * ebb_lang_compile; the diagnostics are then those of the syntax. EBB_FAILED: the text has a syntax error, and nothing
 * was written. The result may be passed in again and comes back unchanged. */
ebb_status ebb_lang_format(ebb_lang *c, const char *path, const char *text, size_t n,
                           ebb_lang_write_fn *write, void *ctx);

/* The meaning of a code. The strings are static. */
typedef struct ebb_lang_code {
    const char *code, *title;
    const char *text; /* why the language has the rule, and what to do about it */
} ebb_lang_code;
/* Looks a code up. NULL: there is no such code. */
const ebb_lang_code *ebb_lang_explain(const char *code);

/* Returns the i-th code, in order; NULL after the last. */
const ebb_lang_code *ebb_lang_code_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
