/* Options structs of other versions: every function that takes options reads them through here.
 *
 * A struct of options begins with `uint32_t size`. These rules for changes keep programs that were compiled with
 * other headers valid:
 *  - A field is appended, never inserted, moved or removed, and 0 is its default.
 *  - It begins at or behind the old sizeof, not in the padding at the end, which an older program leaves undefined.
 *  - It leaves no padding at the new end, and the struct's alignment does not grow.
 *  - A struct inside another one, by value, can't grow before a version with another soname. */
#ifndef EBB__OPTS_H
#define EBB__OPTS_H

#include <ebb/base.h>

/* No struct of options is larger than this; a larger size is an error, and nothing is read. */
#define EBB__OPTS_MOST 4096

/* Fills `known`, a struct of this build, from `given`, which may be NULL (all defaults) or of another version.
 * EBB_ERR_VERSION: `given` has a size that no version can have (`known` is then all zero), or it sets a field that
 * this build does not know (`known` has the other fields). */
ebb_status ebb__opts_copy(void *known, size_t known_size, size_t align, const void *given);
#define EBB__OPTS_COPY(known, given)                                                                         \
    ebb__opts_copy((known), sizeof *(known), _Alignof(__typeof__(*(known))), (given))

/* The same in place, for a struct inside a struct that was copied. The outer struct leaves no room for a larger
 * one, so a larger size is an error. */
ebb_status ebb__opts_inner(void *inner, size_t known_size, size_t align);
#define EBB__OPTS_INNER(inner) ebb__opts_inner((inner), sizeof *(inner), _Alignof(__typeof__(*(inner))))

/* The same without a copy where possible: returns `given` (not NULL) if it has the size of this build, otherwise
 * `room`. */
static inline const void *ebb__opts_see(const void *given, void *room, size_t known_size, size_t align,
                                        ebb_status *st) {
    uint32_t size = *(const uint32_t *)given;
    if (size == 0 || size == known_size) return given;
    *st = ebb__opts_copy(room, known_size, align, given);
    return room;
}
#define EBB__OPTS_SEE(given, room, st)                                                                       \
    ebb__opts_see((given), (room), sizeof *(room), _Alignof(__typeof__(*(room))), (st))

#endif
