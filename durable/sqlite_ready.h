/* durable/sqlite_ready.h - which instances have messages, and who holds them. In memory only: one process owns a file, so
 * a claim of an instance needs no row, and all claims end with the process.
 *
 * An *entry* is an instance that has messages or is held. It is in at most one list, in the order of `seq`:
 *
 *     fresh      its name and version are not known yet: the next fetch looks
 *     a type's   of its name and version
 *     suspects   claimed twice without an end
 *     a node's   held for the next turn by a node that keeps it hot
 *
 * Invariants: an entry with messages that is not `running` is in a list; one that is neither running nor kept nor in a
 * list is freed; a running or kept one has a node, and is in its `held`. All of it is the writer's thread's, but the
 * nodes' `runs`, which readers look at under the lock of the file. */
#ifndef EBB_DURABLE_SQLITE_READY_H
#define EBB_DURABLE_SQLITE_READY_H

#include <pthread.h>

#include "base/map.h"
#include "durable/provider.h"

typedef struct ebb__sqlite_entry ebb__sqlite_entry;
typedef struct ebb__sqlite_type ebb__sqlite_type;
typedef struct ebb__sqlite_node ebb__sqlite_node;

typedef struct ebb__sqlite_list {
    ebb__sqlite_entry *first, *last;
} ebb__sqlite_list;

struct ebb__sqlite_entry {
    uint64_t key, seq; /* seq: of its oldest message, as far as it is known */
    ebb__sqlite_entry *prev, *next;
    ebb__sqlite_list *in;                     /* NULL: in none */
    ebb__sqlite_type *type;                   /* NULL: not known */
    ebb__sqlite_node *node;                   /* that holds it; NULL: none */
    ebb__sqlite_entry *held_prev, *held_next; /* of the node */
    ebb_provider_token token;                 /* of the claim */
    bool running;                             /* given, and neither acked nor abandoned */
    bool again;                               /* running, and there are messages that it was not given */
    bool due;                                 /* a timer of it may be due */
    uint32_t given;                           /* messages of the claim */
    uint32_t attempts, unread;                /* of the row, while it is running */
    uint32_t signals;                         /* at least as many as are in the inbox, if `counted` */
    bool counted;
    bool known; /* execution and turn are those of the row */
    uint64_t execution, turn;
    uint32_t slot; /* of the lock file, where its claim stands; 0: none */
};

struct ebb__sqlite_type {
    ebb__sqlite_type *next;
    ebb__sqlite_list list;
    uint32_t version, used; /* used: by entries. Freed with the last */
    char name[];
};

struct ebb__sqlite_node {
    ebb__sqlite_node *next;
    uint64_t id, epoch, until, lease;
    ebb__sqlite_list own;
    ebb__sqlite_entry *held;
    ebb_provider_runs *runs; /* one block with its names */
    size_t runs_n;
};

typedef struct ebb__sqlite_ready {
    ebb__map entries; /* key -> ebb__sqlite_entry * */
    ebb__sqlite_list fresh, suspects;
    ebb__sqlite_type *types;
    ebb__sqlite_node *nodes;
    pthread_mutex_t *lock; /* of the file, for `nodes` */
    bool lost;             /* there was no memory for an entry: what is ready has to be read again */
} ebb__sqlite_ready;

/* Of the process, since a file outlives the runtimes that opened it. */
ebb_allocator ebb__sqlite_heap(void);

void ebb__sqlite_ready_init(ebb__sqlite_ready *r, pthread_mutex_t *lock);
void ebb__sqlite_ready_fini(ebb__sqlite_ready *r);

/* ---- nodes ---- */

/* NULL: no memory. */
ebb__sqlite_node *ebb__sqlite_node_new(ebb__sqlite_ready *r, const ebb_provider_join_call *c, uint64_t id,
                                       uint64_t now);
/* The node with its epoch; NULL: there is none. */
ebb__sqlite_node *ebb__sqlite_node_find(const ebb__sqlite_ready *r, ebb_provider_node n);
/* Ends a node: what it holds is ready for others. `charge` is called for each entry that was running, may be NULL. */
void ebb__sqlite_node_end(ebb__sqlite_ready *r, ebb__sqlite_node *n,
                          void (*charge)(void *arg, ebb__sqlite_entry *e), void *arg);
bool ebb__sqlite_node_runs(const ebb__sqlite_node *n, const char *name, uint64_t version);
/* Whether a live node runs it. Any thread. */
bool ebb__sqlite_served(ebb__sqlite_ready *r, const char *name, uint64_t version, uint64_t now);
/* Whether a live node fetches work from this queue. Any thread. */
bool ebb__sqlite_fetched(ebb__sqlite_ready *r, const char *queue, uint64_t now);

/* ---- entries ---- */

ebb__sqlite_entry *ebb__sqlite_entry_find(const ebb__sqlite_ready *r, uint64_t key);
/* The instance has a message, or with `due` a timer: it is ready, or will be when its turn has ended. */
void ebb__sqlite_entry_wake(ebb__sqlite_ready *r, uint64_t key, uint64_t seq, bool due);
/* What is known of its row is not so any more: at once, since a member that is undone harms nothing by it. */
void ebb__sqlite_entry_unknow(const ebb__sqlite_ready *r, uint64_t key);
/* Names its type; NULL as the name: not known any more. */
void ebb__sqlite_entry_type(ebb__sqlite_ready *r, ebb__sqlite_entry *e, const char *name, uint32_t version);
/* Puts it into the list where it belongs: own, suspects, type or fresh. */
void ebb__sqlite_entry_place(ebb__sqlite_ready *r, ebb__sqlite_entry *e);
void ebb__sqlite_entry_take(ebb__sqlite_entry *e); /* out of its list */
void ebb__sqlite_entry_claim(ebb__sqlite_entry *e, ebb__sqlite_node *n, ebb_provider_token token);
/* Ends a claim. `keep`: the node goes on holding it. It is ready again if it has messages; else it may be freed. */
void ebb__sqlite_entry_release(ebb__sqlite_ready *r, ebb__sqlite_entry *e, bool keep);
void ebb__sqlite_entry_free(ebb__sqlite_ready *r, ebb__sqlite_entry *e);
/* The ready entry with the lowest seq that the node may have. NULL: none. */
ebb__sqlite_entry *ebb__sqlite_ready_first(ebb__sqlite_ready *r, ebb__sqlite_node *n);
/* The same of the suspects. */
ebb__sqlite_entry *ebb__sqlite_ready_suspect(ebb__sqlite_ready *r, const ebb__sqlite_node *n);

#endif
