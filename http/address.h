/* Places that the connections of one peer address share.
 *
 * An exchange that waits for its peer holds a stack, perhaps a file, and memory of its handler. So an address may have
 * limits.stalled of them. An exchange that has just started counts too, since it may become one. An exchange whose
 * handler waits for something else is not counted, however long that takes.
 *
 * At the limit a new request takes the place of the exchange that has stalled longest, if one has stalled. Otherwise
 * the request waits, and eight times as many may wait. A connection without a counted exchange may always start one,
 * so that honest clients of an attacker's address are served.
 *
 * The table has the size and the hash of the table of rate limits (rate_limit.h): addresses with the same slot share
 * their places. */
#ifndef EBB__HTTP_ADDRESS_H
#define EBB__HTTP_ADDRESS_H

#include <ebb/http.h>

typedef struct ebb__address {
    uint32_t connections;             /* number of connections: it is freed with the last */
    uint32_t slot;                    /* index in the table */
    struct ebb__address *prev, *next; /* in the list of addresses that have connections */
    uint32_t waiting;                 /* exchanges that wait for their peer */
    uint32_t young;                   /* exchanges that have just started */
    uint32_t leaving;                 /* exchanges that were ended for others, and whose handler still runs */
    uint32_t queued;                  /* exchanges with a complete head that have not started */
    /* Waiting exchanges, the one without progress for longest first; and young ones, the oldest first. */
    struct ebb__exchanges {
        ebb_http *first, *last;
    } waits, starts;
    uint64_t look_at;    /* no search before that: none had stalled */
    ebb_http *look_from; /* in `waits`: where the second search continues; NULL: after the first search */
    struct ebb__conn *blocked, **blocked_last; /* connections that wait for a place, in order */
} ebb__address;

#endif
