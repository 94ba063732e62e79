/* The allocator that fails on demand. It is part of the library, so that users of Ebb can test their own code with
 * a failing allocator too. */
#include "base/alloc.h"

static void *failing(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    ebb_failing *f = ctx;
    if (new_size > old_size || ptr == NULL) {
        f->calls++;
        if (f->fail_at != 0 && (f->calls == f->fail_at || (f->fail_after && f->calls > f->fail_at))) {
            f->failures++;
            return NULL;
        }
    }
    void *p = f->inner.fn(f->inner.ctx, ptr, old_size, new_size);
    if (new_size != 0 && p == NULL) return NULL;
    if (ptr == NULL) f->live++;
    if (new_size == 0) f->live--;
    f->live_bytes += (int64_t)new_size - (int64_t)old_size;
    return p;
}

ebb_allocator ebb_failing_allocator(ebb_failing *state) {
    return (ebb_allocator){failing, state};
}
