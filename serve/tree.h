/* The tree of a loop for one reader of a stream: what is new or has changed since it was told last, and what has gone.
 *
 * A round visits every region and task, up to EBB__TREE_NODES, and writes at most EBB__TREE_STEP of them. What is left over
 * waits for the next round, so that ten thousand regions cost the loop a few milliseconds at a time, and nothing but the
 * visit when nothing changes. A node is told before what is in it. */
#ifndef EBB__SERVE_TREE_H
#define EBB__SERVE_TREE_H

#include "workflow/inspect.h"

enum { EBB__TREE_NODES = 32768, EBB__TREE_STEP = 500 };

/* What the reader knows of a node. */
typedef struct ebb__known {
    uint64_t id;     /* 0: the place is empty */
    uint32_t digest; /* of what it was told */
    uint32_t seen;   /* twice the round in which it was visited last; of a task, and 1 */
} ebb__known;

/* `known` is a hash table with open addresses, at most half full: its places are a power of two. */
typedef struct ebb__tree {
    const ebb_allocator *allocator;
    ebb__known *known;
    uint32_t places, n;
    uint32_t round;
    uint32_t visited; /* in the last round */
    bool more;        /* the last round has left something over */
} ebb__tree;

/* Writes what the reader has to be told as a JSON object. False: nothing, or no memory, which t->failed says. */
bool ebb__tree_say(ebb__tree *tree, ebb__inspect_text *t, ebb_cx *cx);
void ebb__tree_free(ebb__tree *tree);

#endif
