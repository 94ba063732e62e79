#include "base/u32s.h"

#include <string.h>

bool ebb__u32s_grow(ebb__u32s *v, const ebb_allocator *a) {
    uint32_t cap = v->cap <= 2 ? 8 : v->cap * 2;
    bool was_inline = v->cap <= 2;
    uint32_t *p =
        ebb__resize(a, was_inline ? NULL : v->at.heap, was_inline ? 0 : v->cap * sizeof *p, cap * sizeof *p);
    if (p == NULL) return false;
    if (was_inline) memcpy(p, v->at.inl, v->n * sizeof *p);
    v->at.heap = p;
    v->cap = cap;
    return true;
}
