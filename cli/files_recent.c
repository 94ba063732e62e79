/* cli/files_recent.c - what the requests of this turn of the loop have found. */
#include "cli/files_recent.h"

#include <string.h>

#include "loop/loop.h"

/* FNV-1a */
static size_t place_of(const char *path) {
    uint32_t hash = 2166136261u;
    for (; *path != 0; path++) hash = (hash ^ (uint8_t)*path) * 16777619u;
    return (hash ^ hash >> 16) % EBB__RECENT_PLACES;
}

uint64_t ebb__recent_turn(const ebb_cx *cx) {
    ebb_loop *l;
    return ebb__loop_of(cx, &l) == EBB_OK ? l->turns + 1 : 0;
}

const ebb__recent *ebb__recent_find(const ebb__recents *all, const char *path, uint64_t turn) {
    const ebb__recent *r = &all->at[place_of(path)];
    return turn != 0 && r->turn >= turn && strcmp(r->path, path) == 0 ? r : NULL;
}

ebb__recent *ebb__recent_take(ebb__recents *all, const char *path) {
    size_t n = strlen(path);
    if (n > EBB__RECENT_PATH) return NULL;
    ebb__recent *r = &all->at[place_of(path)];
    r->turn = 0;
    r->bytes_n = 0;
    memcpy(r->path, path, n + 1);
    return r;
}
