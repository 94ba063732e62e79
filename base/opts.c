/* See opts.h. */
#include "base/opts.h"

#include <string.h>

static uint32_t size_of(const void *opts, size_t known_size) {
    uint32_t size;
    memcpy(&size, opts, sizeof size);
    return size != 0 ? size : (uint32_t)known_size;
}

static void set_size(void *opts, size_t size) {
    uint32_t whole = (uint32_t)size;
    memcpy(opts, &whole, sizeof whole);
}

static bool is_zero(const unsigned char *at, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (at[i] != 0) return false;
    }
    return true;
}

ebb_status ebb__opts_copy(void *known, size_t known_size, size_t align, const void *given) {
    memset(known, 0, known_size);
    if (given == NULL) return EBB_OK;
    size_t size = size_of(given, known_size);
    if (size % align != 0 || size > EBB__OPTS_MOST) return EBB_ERR_VERSION;
    memcpy(known, given, size < known_size ? size : known_size);
    set_size(known, known_size);
    if (size <= known_size) return EBB_OK;
    return is_zero((const unsigned char *)given + known_size, size - known_size) ? EBB_OK : EBB_ERR_VERSION;
}

ebb_status ebb__opts_inner(void *inner, size_t known_size, size_t align) {
    size_t size = size_of(inner, known_size);
    if (size % align != 0 || size > known_size) return EBB_ERR_VERSION;
    memset((unsigned char *)inner + size, 0, known_size - size);
    set_size(inner, known_size);
    return EBB_OK;
}
