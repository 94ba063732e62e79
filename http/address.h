/* What the connections of one peer address hold together.
 *
 * An exchange that waits for its peer has a stack, perhaps a file, and memory of its handler. So there may be
 * limits.stalled of them for an address, and an exchange that has just started counts as well: what it will do
 * is not known yet. One whose handler waits for something of its own is not counted, however long that takes.
 *
 * At the budget a new request takes the place of the exchange of the address that has stalled longest, if one
 * really has; otherwise it waits, and eight times as many may wait. A connection of which nothing is counted may always
 * start one: whoever shares an address with an attacker is served.
 *
 * The table is as large as that of the buckets (calm.h), and by the same hash: addresses that meet there share
 * their budget. */
#ifndef EBB__HTTP_ADDRESS_H
#define EBB__HTTP_ADDRESS_H

#include <ebb/http.h>

typedef struct ebb__address {
    uint32_t connections;             /* that refer to it: it goes with the last */
    uint32_t slot;                    /* its place in the table */
    struct ebb__address *prev, *next; /* among all that have connections */
    uint32_t waiting;                 /* exchanges that wait for their peer */
    uint32_t young;                   /* exchanges that have just started */
    uint32_t leaving; /* exchanges that were ended for others, and whose work has not ended yet */
    uint32_t queued;  /* exchanges whose head is whole and that have not started */
    /* Those that wait, the one that has made no progress for longest first; and the young, the oldest first. */
    struct ebb__exchanges {
        ebb_http *first, *last;
    } waits, starts;
    uint64_t look_at;    /* none has stalled before that */
    ebb_http *look_from; /* of `waits`: where the next look goes on, past the first. NULL: behind the first */
    struct ebb__conn *blocked, **blocked_last; /* connections that wait for room, in order */
} ebb__address;

#endif
