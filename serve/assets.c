#include "serve/assets.h"

#include <string.h>

#include "assets.inc"

const ebb__asset *ebb__asset_of(const char *name) {
    for (size_t i = 0; i < sizeof assets / sizeof *assets; i++) {
        if (strcmp(assets[i].name, name) == 0) return &assets[i];
    }
    return NULL;
}
