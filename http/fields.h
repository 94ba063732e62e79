/* A list of header fields in an arena, in either direction. */
#ifndef EBB__HTTP_FIELDS_H
#define EBB__HTTP_FIELDS_H

#include "base/arena.h"
#include <ebb/http.h>

typedef struct ebb__field {
    const char *name, *value; /* 0-terminated; the name in lower case */
    uint32_t name_n, value_n;
} ebb__field;

typedef struct ebb__fields {
    ebb__field *at;
    uint32_t n, room;
    uint32_t bytes;   /* names and values, and 32 each: what RFC 9113 calls the size of the list */
    uint32_t lengths; /* bit `name_n % 32` of each name so far: most lookups need no search */
} ebb__fields;

enum { EBB__FIELD_EXTRA = 32 };

/* Appends a copy of a field, with its name in lower case. EBB_ERR_NOMEM. */
ebb_status ebb__fields_add(ebb__fields *f, ebb__arena *arena, const char *name, size_t name_n,
                           const char *value, size_t value_n);
/* The same for strings that outlive the list, with the name in lower case: they are not copied. */
ebb_status ebb__fields_add_constant(ebb__fields *f, ebb__arena *arena, const char *name, size_t name_n,
                                    const char *value, size_t value_n);
static inline bool ebb__fields_may_have(const ebb__fields *f, size_t name_n) {
    return f->lengths >> name_n % 32 & 1;
}
const ebb__field *ebb__fields_search(const ebb__fields *f, const char *name, size_t name_n);
/* The first field of a name (in any case); NULL: none. */
static inline const ebb__field *ebb__fields_find(const ebb__fields *f, const char *name, size_t name_n) {
    return ebb__fields_may_have(f, name_n) ? ebb__fields_search(f, name, name_n) : NULL;
}
/* Removes all fields of a name (in any case). */
void ebb__fields_remove(ebb__fields *f, const char *name, size_t name_n);
/* Joins all fields of a name (in lower case), with `between` between their values. EBB_ERR_NOMEM: nothing is changed.
 *  */
ebb_status ebb__fields_join(ebb__fields *f, ebb__arena *arena, const char *name, size_t name_n,
                            const char *between);
/* A token of RFC 9110, not empty. */
bool ebb__is_token(const char *at, size_t n);
/* A field value: no control characters but tab, and no spaces around it. */
bool ebb__is_field_value(const char *at, size_t n);
/* A field that users may not set, because the layer does: content-length, connection, transfer-encoding, upgrade,
 * keep-alive, proxy-connection, te, trailer, host, date, and pseudo fields. In any case. */
bool ebb__field_is_ours(const char *name, size_t n);
/* A list ("close, TE") has this token, in any case. */
bool ebb__has_token(const char *list, const char *token);
/* Digits only, without overflow. */
bool ebb__parse_u64(const char *at, size_t n, uint64_t *out);
bool ebb__same_name(const char *a, size_t a_n, const char *b, size_t b_n); /* ignoring case */

#endif
