/* Files that are served from memory. CMake writes them into assets.inc. */
#ifndef EBB__SERVE_ASSETS_H
#define EBB__SERVE_ASSETS_H

#include <stddef.h>

extern const unsigned char ebb__asset_openapi[];
extern const size_t ebb__asset_openapi_n;

#endif
