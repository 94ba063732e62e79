#include "serve/assets.h"

#include "assets.inc"

const size_t ebb__asset_openapi_n = sizeof ebb__asset_openapi;
