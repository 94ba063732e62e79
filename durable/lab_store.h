/* durable/lab_store.h - the lab provider: a store in memory, for tests in virtual time.
 *
 * Its data lives outside of its stores: a *world* has named stores, so that two hosts (two runtimes of one thread) see the
 * same rows, and a host that crashes leaves them. Every call is done within the function or, with a delay, by a timer of
 * the store's region. One thread only.
 *
 * A call makes its rows before it changes anything, so that one without memory changes nothing. Invariants: no row of a turn,
 * work, timer or message without its instance; a claimed row has a token that is not 0; indices and rows agree
 * (ebb__lab_world_check, which tests call after every commit). */
#ifndef EBB_DURABLE_LAB_STORE_H
#define EBB_DURABLE_LAB_STORE_H

#include "durable/provider.h"

typedef struct ebb__lab_world ebb__lab_world;

/* Without a world of its own a runtime's "lab:" stores are in one that is freed with the last of them. */
ebb_status ebb__lab_world_new(ebb_allocator a, ebb__lab_world **out);
void ebb__lab_world_free(ebb__lab_world *w);
/* Stores that `rt` opens from now on are in this world. NULL: in the runtime's own. EBB_ERR_NOMEM. */
ebb_status ebb__lab_world_use(ebb_runtime *rt, ebb__lab_world *w);
/* Its stores, the last made first: for tests that look at rows. */
struct ebb__lab_data *ebb__lab_world_stores(const ebb__lab_world *w);
/* The clock of the stores: ns since 1970; it moves with the runtime's time, and this many ns further. */
void ebb__lab_world_advance(ebb__lab_world *w, uint64_t ns);
/* How long calls take: ns, chosen for each call by `delay`. NULL: done within the function. */
void ebb__lab_world_set_delay(ebb__lab_world *w, uint64_t (*delay)(void *arg, const ebb_provider_call *c),
                              void *arg);
/* Called after each commit, to look at the rows between commits. */
void ebb__lab_world_set_committed(ebb__lab_world *w, void (*fn)(void *arg, const ebb_provider_call *c),
                                  void *arg);
/* Prints all rows, in order, for tests that compare stores. */
void ebb__lab_world_dump(const ebb__lab_world *w, void (*write)(void *ctx, const char *text, size_t n),
                         void *ctx);
/* Whether rows and indices agree; `text` says what does not. */
bool ebb__lab_world_check(const ebb__lab_world *w, char *text, size_t room);

#endif
