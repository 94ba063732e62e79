/* lang/lang.h - a compilation: its memory, sources, names and diagnostics. Every file of lang/ stands on this.
 *
 * Memory. Small objects come from an arena and are never freed one by one. When the host has no memory, `oom` is set
 * and a reserve that was allocated at the start is handed out, so that no caller of ebb__lang_new checks for NULL:
 * every loop over the source looks at `oom` and stops. Arrays (ebb__vec) do check, and drop what does not fit.
 *
 * Names. An identifier is interned when it is lexed; equal names have equal numbers, and 0 is no name. */
#ifndef EBB_LANG_LANG_H
#define EBB_LANG_LANG_H

#include <ebb/lang.h>

#include "base/arena.h"

typedef uint32_t ebb__name; /* index into ebb_lang.names */

/* An array that grows. `at` has room for `room` elements of `size` bytes. */
typedef struct ebb__vec {
    void *at;
    uint32_t n, room, size;
} ebb__vec;

#define EBB__VEC_AT(v, type, i) (&((type *)(v)->at)[i])

typedef struct ebb__token {
    uint32_t at, n;
    ebb__name name; /* of an identifier or keyword; 0: another token */
    uint8_t kind;   /* enum ebb__tok */
} ebb__token;

/* One file. Node 0 is a dummy for what is missing; the tree begins at `root`. */
typedef struct ebb__source {
    const char *path, *module; /* `module` is the path that imports name; "" for the root file */
    const char *text;
    uint32_t n, id;
    ebb__vec tokens; /* ebb__token; the last is T_END */
    ebb__vec nodes;  /* ebb__node */
    uint32_t root;
    uint32_t *lines; /* offset of each line's start */
    uint32_t n_lines;
    struct ebb__scope *scope; /* the module's declarations, by name */
    bool loading, broken;     /* being loaded; has a syntax error */
} ebb__source;

typedef struct ebb__span {
    uint32_t source, at, n;
} ebb__span;

struct ebb_lang {
    ebb_allocator allocator;
    ebb__arena arena;
    uint8_t *reserve;
    size_t reserve_used;
    bool oom, used;
    ebb_lang_opts opts;
    ebb__vec sources; /* ebb__source * */
    ebb__vec names;   /* ebb__name_entry */
    ebb__name *name_slots;
    uint32_t name_room;
    ebb__vec diagnostics; /* ebb_lang_diagnostic * */
    uint32_t errors;
    bool muted; /* the errors' limit is reached */
    struct ebb__diag *scratch;
    struct ebb__check *check; /* the state of the checker */
};

/* ---- memory ---- */

enum { EBB__LANG_RESERVE = 256 << 10 };

/* Zeroed memory; never NULL. */
void *ebb__lang_new(ebb_lang *c, size_t n);
#define EBB__NEW(c, type) ((type *)ebb__lang_new((c), sizeof(type)))

/* The same for an array of a size that the source decides. NULL if there is no memory; `oom` is then set. */
void *ebb__lang_array(ebb_lang *c, size_t n, size_t size);

/* Appends an element, zeroed. NULL if there is no memory; `oom` is then set. */
void *ebb__vec_push(ebb_lang *c, ebb__vec *v);
void ebb__vec_free(ebb_lang *c, ebb__vec *v);

/* A copy that ends in 0. */
const char *ebb__lang_text(ebb_lang *c, const char *s, size_t n);

/* ---- names ---- */

typedef struct ebb__name_entry {
    const char *text;
    uint32_t n, hash;
} ebb__name_entry;

ebb__name ebb__name_of(ebb_lang *c, const char *s, size_t n);
ebb__name ebb__name_str(ebb_lang *c, const char *s);
const char *ebb__name_text(const ebb_lang *c, ebb__name name);

/* ---- text ---- */

/* A text in the arena. %s a string, %n a name, %t a type, %d an int64_t, %%. */
const char *ebb__format(ebb_lang *c, const char *format, ...);

#endif
