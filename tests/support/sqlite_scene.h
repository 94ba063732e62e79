/* The SQLite provider asked directly: a gate of calls, real threads, and a clock that the test owns. A temporary directory
 * has the files; it is deleted at the end. */
#ifndef EBB_TESTS_SQLITE_SCENE_H
#define EBB_TESTS_SQLITE_SCENE_H

#include <stdatomic.h>

#include "durable/sqlite.h"
#include "durable/store.h"
#include "tests/support/world.h"

typedef struct scene {
    world *w;
    ebb__call_gate gate;
    ebb_provider_host host;
    bool open;
    char dir[64];
    char text[512]; /* of the last failure */
    ebb_provider_node node;
    uint64_t acks;               /* for ack ids */
    _Atomic uint64_t boot, wall; /* ns; the test's */
    _Atomic uint32_t hints[6];
    _Atomic uint32_t gone_cause;
} scene;

/* A scene without a store. */
scene *scene_new(world *w);
void scene_end(scene *s);
/* One of a directory that another process owns. */
scene *scene_at(world *w, const char *dir);
/* Another one of the same directory: a second loop. It does not delete the directory. */
scene *scene_beside(scene *s);

/* PATH of a file of the scene, in a buffer of its own that the next call reuses. */
const char *scene_path(const scene *s, const char *name);
ebb_status scene_open(scene *s, const char *name, ebb_durability d);
ebb_status scene_open_with(scene *s, const ebb_store_opts *opts);
void scene_close(scene *s);

void *scene_call(scene *s, ebb_provider_op op);
/* Begins a call without waiting. */
ebb_future *scene_begin(scene *s, void *call);
/* Waits for it. The call is the caller's: ebb__call_free. */
void *scene_end_call(scene *s, ebb_future *f);
void *scene_ask(scene *s, void *call);
/* The same, and frees it; `text` of the scene has the text. */
ebb_status scene_status(scene *s, void *call);

/* Calls as tests need them. */
ebb_status scene_join(scene *s);
ebb_status scene_start(scene *s, const char *id);
ebb_status scene_signal(scene *s, const char *id, const char *body, const char *dedup);
ebb_provider_fetch_turns_call *scene_fetch(scene *s, uint32_t most);
ebb_provider_fetch_work_call *scene_fetch_work(scene *s, uint32_t most);
/* An ack of the item's next turn, with its messages; fill in more, and ask. */
ebb_provider_ack_turn_call *scene_ack(scene *s, const ebb_provider_turn_item *item, const char *body);
ebb_provider_ack_work_call *scene_ack_work(scene *s, const ebb_provider_work_item *item,
                                           const ebb_blob *message);
/* A number from a connection of its own, read only. */
int64_t scene_number(scene *s, const char *name, const char *sql);

#endif
