/* lang/lang.c - memory and names of a compilation, and the texts that it makes. */
#include "lang/lang.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "lang/format.h"
#include "lang/type.h"

enum { VEC_FIRST = 16 };

/* ---- memory ---- */

/* What is asked for after the memory is gone. The loops over the source stop at `oom`, and the depth of recursion is
 * bounded, so the reserve is not used up; if it ever were, it would begin anew rather than be NULL. */
static void *from_reserve(ebb_lang *c, size_t n) {
    n = (n + 15) / 16 * 16;
    c->oom = true;
    if (c->reserve_used + n > EBB__LANG_RESERVE) c->reserve_used = 0;
    void *p = c->reserve + c->reserve_used;
    c->reserve_used += n;
    memset(p, 0, n);
    return p;
}

void *ebb__lang_new(ebb_lang *c, size_t n) {
    void *p = c->oom ? NULL : ebb__arena_zero(&c->arena, n);
    return p != NULL ? p : from_reserve(c, n);
}

void *ebb__lang_array(ebb_lang *c, size_t n, size_t size) {
    void *p = c->oom || n > SIZE_MAX / size ? NULL : ebb__arena_zero(&c->arena, n * size);
    if (p == NULL) c->oom = true;
    return p;
}

void *ebb__vec_push(ebb_lang *c, ebb__vec *v) {
    if (v->n == v->room) {
        uint32_t room = v->room == 0 ? VEC_FIRST : v->room * 2;
        void *at = c->oom || room > UINT32_MAX / 2
                       ? NULL
                       : ebb__resize(&c->allocator, v->at, (size_t)v->room * v->size, (size_t)room * v->size);
        if (at == NULL) {
            c->oom = true;
            return NULL;
        }
        v->at = at;
        v->room = room;
    }
    void *p = (uint8_t *)v->at + (size_t)v->n++ * v->size;
    memset(p, 0, v->size);
    return p;
}

void ebb__vec_free(ebb_lang *c, ebb__vec *v) {
    ebb__free(&c->allocator, v->at, (size_t)v->room * v->size);
    v->at = NULL;
    v->n = v->room = 0;
}

const char *ebb__lang_text(ebb_lang *c, const char *s, size_t n) {
    char *p = ebb__lang_array(c, n + 1, 1);
    if (p == NULL) return "";
    memcpy(p, s, n);
    return p;
}

/* ---- names ---- */

static bool grow_names(ebb_lang *c) {
    uint32_t room = c->name_room == 0 ? 512 : c->name_room * 2;
    ebb__name *slots = c->oom ? NULL : ebb__alloc(&c->allocator, room * sizeof *slots);
    if (slots == NULL) {
        c->oom = true;
        return false;
    }
    memset(slots, 0, room * sizeof *slots);
    for (uint32_t i = 1; i < c->names.n; i++) {
        uint32_t at = EBB__VEC_AT(&c->names, ebb__name_entry, i)->hash & (room - 1);
        while (slots[at] != 0) at = (at + 1) & (room - 1);
        slots[at] = i;
    }
    ebb__free(&c->allocator, c->name_slots, c->name_room * sizeof *slots);
    c->name_slots = slots;
    c->name_room = room;
    return true;
}

static uint32_t hash_of(const char *s, size_t n) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)s[i]) * 16777619u;
    return h ^ h >> 15;
}

ebb__name ebb__name_of(ebb_lang *c, const char *s, size_t n) {
    if (c->names.n >= c->name_room / 2 && !grow_names(c)) return 0;
    uint32_t hash = hash_of(s, n), at = hash & (c->name_room - 1);
    for (; c->name_slots[at] != 0; at = (at + 1) & (c->name_room - 1)) {
        const ebb__name_entry *e = EBB__VEC_AT(&c->names, ebb__name_entry, c->name_slots[at]);
        if (e->hash == hash && e->n == n && memcmp(e->text, s, n) == 0) return c->name_slots[at];
    }
    if (c->names.n == 0 && ebb__vec_push(c, &c->names) == NULL) return 0; /* 0 is no name */
    ebb__name_entry *e = ebb__vec_push(c, &c->names);
    if (e == NULL) return 0;
    *e = (ebb__name_entry){ebb__lang_text(c, s, n), (uint32_t)n, hash};
    if (c->oom) e->n = 0;
    c->name_slots[at] = c->names.n - 1;
    return c->names.n - 1;
}

ebb__name ebb__name_str(ebb_lang *c, const char *s) {
    return ebb__name_of(c, s, strlen(s));
}

const char *ebb__name_text(const ebb_lang *c, ebb__name name) {
    return name == 0 || name >= c->names.n ? "?" : EBB__VEC_AT(&c->names, ebb__name_entry, name)->text;
}

/* ---- text ---- */

enum { FORMAT_MAX = 1024 };

static void format_one(ebb_lang *c, ebb__text *t, char directive, va_list *args) {
    switch (directive) {
    case 's': ebb__text_str(t, va_arg(*args, const char *)); break;
    case 'n': ebb__text_str(t, ebb__name_text(c, va_arg(*args, ebb__name))); break;
    case 't': ebb__type_print(c, t, va_arg(*args, uint32_t)); break;
    case 'd': ebb__text_i64(t, va_arg(*args, int64_t)); break;
    default: ebb__text_bytes(t, "%", 1);
    }
}

const char *ebb__vformat(ebb_lang *c, const char *format, va_list *args) {
    char room[FORMAT_MAX];
    ebb__text t = ebb__text_in(room, sizeof room);
    for (const char *at = format; *at != 0;) {
        const char *stop = at;
        while (*stop != 0 && *stop != '%') stop++;
        ebb__text_bytes(&t, at, (size_t)(stop - at));
        if (*stop == 0) break;
        format_one(c, &t, stop[1], args);
        at = stop + 2;
    }
    return ebb__lang_text(c, room, t.n);
}

const char *ebb__format(ebb_lang *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = ebb__vformat(c, format, &args);
    va_end(args);
    return text;
}
