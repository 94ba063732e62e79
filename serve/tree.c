#include "serve/tree.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/text.h"
#include "fiber/fiber.h"
#include "future/future.h"
#include "kernel/layer.h"

enum { PLACES = 256, ID = 40 };

/* ---- what the reader knows --------------------------------------------------------------------------------------- */

static bool is_task(const ebb__known *k) {
    return (k->seen & 1) != 0;
}

/* The place of a node, or an empty one for it. */
static ebb__known *place_of(const ebb__tree *tree, uint64_t id, bool task) {
    uint64_t h = (id ^ task) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t i = (uint32_t)(h >> 32) & (tree->places - 1);
    while (tree->known[i].id != 0 && (tree->known[i].id != id || is_task(&tree->known[i]) != task)) {
        i = (i + 1) & (tree->places - 1);
    }
    return &tree->known[i];
}

static size_t bytes_of(uint32_t places) {
    return places * sizeof(ebb__known);
}

/* Moves what was visited in this round, or all, to a table of its own. The rest is forgotten. */
static bool rehash(ebb__tree *tree, uint32_t places, bool all) {
    ebb__tree fresh = *tree;
    fresh.known = ebb__alloc(tree->allocator, bytes_of(places));
    if (fresh.known == NULL) return false;
    memset(fresh.known, 0, bytes_of(places));
    fresh.places = places;
    fresh.n = 0;
    for (uint32_t i = 0; i < tree->places; i++) {
        const ebb__known *k = &tree->known[i];
        if (k->id == 0 || (!all && k->seen >> 1 != tree->round)) continue;
        *place_of(&fresh, k->id, is_task(k)) = *k;
        fresh.n++;
    }
    ebb__tree_free(tree);
    *tree = fresh;
    return true;
}

void ebb__tree_free(ebb__tree *tree) {
    ebb__free(tree->allocator, tree->known, bytes_of(tree->places));
    tree->known = NULL;
    tree->places = 0;
}

/* ---- a round ------------------------------------------------------------------------------------------------------ */

typedef struct turn {
    ebb__tree *tree;
    ebb__inspect_text *t;
    ebb_runtime *rt;
    uint32_t depth;          /* of the region whose tasks are visited */
    uint32_t regions, tasks; /* visited */
    uint32_t written, gone;
} turn;

static uint32_t mix(uint32_t h, uint64_t value) {
    return (uint32_t)(((h ^ value) * UINT64_C(0x9e3779b97f4a7c15)) >> 29);
}

/* Of what a reader sees change. Texts are told apart by their place: they are literals, or live as long as the region. */
static uint32_t digest_of_region(const ebb_runtime *rt, const ebb__region *r) {
    const ebb__region_view v = ebb__region_look(r);
    uint32_t h = mix(v.state, ebb__region_is(rt, r, EBB__REGION_CLOSING));
    h = mix(h, v.request);
    h = mix(h, ((uint64_t)v.tasks << 32) | v.children);
    h = mix(h, v.obligations);
    h = mix(h, v.deadline);
    return mix(h, (uintptr_t)v.message);
}

static uint32_t digest_of_task(const ebb__task_view *v) {
    const char *doing = v->doing, *begun = NULL;
    (void)ebb__await_look(v->wait, &doing, &begun);
    uint32_t h = mix(v->phase, v->masked);
    h = mix(h, v->waits);
    h = mix(h, (uintptr_t)doing);
    return mix(h, (uintptr_t)begun);
}

/* Notes that a node is there. True: it is to be written now. */
static bool meet(turn *now, uint64_t id, bool task, uint32_t digest) {
    ebb__tree *tree = now->tree;
    ebb__known *k = place_of(tree, id, task);
    const bool knows = k->id != 0, full = now->written == EBB__TREE_STEP;
    if (knows) k->seen = tree->round << 1 | task;
    if (knows && k->digest == digest) return false;
    tree->more |= full;
    if (full) return false;
    if (!knows && 2 * (tree->n + 1) > tree->places) {
        if (!rehash(tree, 2 * tree->places, true)) {
            now->t->failed = true;
            return false;
        }
        k = place_of(tree, id, task);
    }
    tree->n += !knows;
    *k = (ebb__known){id, digest, tree->round << 1 | task};
    ebb__inspect_say(now->t, "%s", now->written++ == 0 ? "" : ",");
    return true;
}

static void visit_task(void *ctx, const ebb__task_view *v) {
    turn *now = ctx;
    if (meet(now, v->id, true, digest_of_task(v))) ebb__inspect_task(now->t, now->rt, v, now->depth + 1);
}

static void visit_region(turn *now, const ebb__region *r) {
    now->depth = ebb__region_look(r).depth;
    if (meet(now, ebb__region_name(now->rt, r).id, false, digest_of_region(now->rt, r)))
        ebb__inspect_region(now->t, now->rt, r);
}

static void visit_all(turn *now) {
    ebb__region *root = NULL;
    if (ebb__region_get(now->rt, ebb_runtime_root(now->rt), &root) != EBB_OK) root = NULL;
    for (ebb__region *r = root; r != NULL && now->regions + now->tasks < EBB__TREE_NODES;) {
        visit_region(now, r);
        now->regions++;
        now->tasks +=
            ebb__tasks_some(now->rt, r, EBB__TREE_NODES - now->regions - now->tasks, visit_task, now);
        r = ebb__region_next(now->rt, r, root, true);
    }
}

static void say_gone(turn *now) {
    char text[ID];
    for (uint32_t i = 0; i < now->tree->places; i++) {
        const ebb__known *k = &now->tree->known[i];
        if (k->id == 0 || k->seen >> 1 == now->tree->round) continue;
        ebb__text id = ebb__text_in(text, ID);
        ebb__text_id(&id, k->id);
        ebb__inspect_say(now->t, "%s{\"%s\":\"%s\"}", now->gone++ == 0 ? "" : ",",
                         is_task(k) ? "task" : "region", text);
    }
}

static void say_left_out(turn *now) {
    ebb_runtime_stats all;
    ebb_runtime_stats_of(now->rt, &all);
    ebb__inspect_say(now->t, "],\"left_out\":{\"regions\":%" PRIu32 ",\"tasks\":%" PRIu32 "},\"more\":%s}",
                     all.regions > now->regions ? all.regions - now->regions : 0,
                     all.tasks > now->tasks ? all.tasks - now->tasks : 0, now->tree->more ? "true" : "false");
}

bool ebb__tree_say(ebb__tree *tree, ebb__inspect_text *t, ebb_cx *cx) {
    turn now = {.tree = tree, .t = t, .rt = ebb__rt_of(cx)};
    if (tree->known == NULL && !rehash(tree, PLACES, true)) {
        t->failed = true;
        return false;
    }
    tree->round++;
    tree->more = false;
    ebb__inspect_say(t, "{\"first\":%s,\"nodes\":[", tree->round == 1 ? "true" : "false");
    visit_all(&now);
    tree->visited = now.regions + now.tasks;
    ebb__inspect_say(t, "],\"gone\":[");
    say_gone(&now);
    say_left_out(&now);
    if (now.gone > 0 && !rehash(tree, tree->places, false)) t->failed = true;
    return !t->failed && (now.written > 0 || now.gone > 0);
}
