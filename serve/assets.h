/* Files that are served from memory. CMake writes them into assets.inc: cmake/ebb_assets.cmake. */
#ifndef EBB__SERVE_ASSETS_H
#define EBB__SERVE_ASSETS_H

#include <stddef.h>

typedef struct ebb__asset {
    const char *name, *type; /* "main.js", "text/javascript; charset=utf-8" */
    const unsigned char *at;
    size_t n;
} ebb__asset;

/* NULL: there is none of that name. */
const ebb__asset *ebb__asset_of(const char *name);

#endif
