/* Units of work that wait for instances. */
#include "durable/units.h"

#include "kernel/layer.h"

enum { FEW = 64 };

void ebb__units_init(ebb__units *u, ebb_runtime *rt, ebb_allocator a) {
    u->rt = rt;
    u->most = FEW;
    ebb__map_init(&u->regions, a, sizeof(ebb_region));
}

void ebb__units_fini(ebb__units *u) {
    ebb__map_free(&u->regions);
}

ebb_region ebb__unit_of(ebb_cx *cx) {
    ebb_runtime *rt = ebb_cx_runtime(cx);
    const ebb__region *r = ebb__region_of(cx);
    while (r != NULL && !ebb__region_is(rt, r, EBB__REGION_UNIT)) r = ebb__region_parent(rt, r);
    return r != NULL ? ebb__region_name(rt, r) : (ebb_region){0};
}

/* It, or a region below it, has tasks. */
static bool is_alive(ebb_runtime *rt, ebb_region unit) {
    ebb__region *top, *r;
    if (ebb__region_get(rt, unit, &top) != EBB_OK) return false;
    for (r = top; r != NULL; r = ebb__region_next(rt, r, top, true)) {
        if (ebb__region_tasks(rt, r) > 0) return true;
    }
    return false;
}

static void take_ended_out(ebb__units *u) {
    ebb__map left;
    const ebb_region *at;
    ebb__map_init(&left, u->regions.allocator, sizeof(ebb_region));
    for (size_t i = 0; (at = ebb__map_next(&u->regions, &i)) != NULL;) {
        ebb_region *to = is_alive(u->rt, *at) ? ebb__map_put(&left, at->id) : NULL;
        if (to != NULL) *to = *at;
    }
    ebb__map_free(&u->regions);
    u->regions = left;
    u->most = 2 * left.n > FEW ? 2 * left.n : FEW;
}

void ebb__units_add(ebb__units *u, ebb_region unit) {
    if (ebb__map_find(&u->regions, unit.id) != NULL) return;
    if (u->regions.n >= u->most) take_ended_out(u);
    ebb_region *at = ebb__map_put(&u->regions, unit.id);
    if (at != NULL) *at = unit;
}

static bool contains(ebb_runtime *rt, ebb_region unit, ebb_region region) {
    ebb__region *r;
    if (ebb__region_get(rt, region, &r) != EBB_OK) return false;
    for (const ebb__region *at = r; at != NULL; at = ebb__region_parent(rt, at)) {
        if (ebb__region_name(rt, at).id == unit.id) return true;
    }
    return false;
}

bool ebb__units_wait(const ebb__units *u, ebb_region region) {
    const ebb_region *at;
    for (size_t i = 0; (at = ebb__map_next(&u->regions, &i)) != NULL;) {
        if (is_alive(u->rt, *at) && !contains(u->rt, *at, region)) return true;
    }
    return false;
}
