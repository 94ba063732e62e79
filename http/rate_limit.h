/* Budgets for what a peer may do to us without asking for anything: token buckets, one a connection and one
 * a peer address.
 *
 * Those of addresses stand in a table of fixed size, by a keyed hash: addresses that meet share a budget, and
 * an attacker with many makes the table no larger. IPv6 addresses count by their /64. */
#ifndef EBB__HTTP_RATE_LIMIT_H
#define EBB__HTTP_RATE_LIMIT_H

#include <ebb/loop.h>

typedef struct ebb__bucket {
    uint64_t at;    /* when it was last filled up, ns */
    uint64_t spent; /* what is missing, in parts of which EBB_SECOND are a token; 0: it is full */
} ebb__bucket;

/* Takes n tokens of a bucket that holds `most` and gets `per_second` more each second. False: there were not
 * so many, and it is empty now. A zeroed bucket is full. Exact; a time before the last brings nothing. */
bool ebb__bucket_take(ebb__bucket *b, uint64_t now, uint32_t most, uint32_t per_second, uint32_t n);

/* The same of parts of a token, of which EBB_SECOND are one. */
bool ebb__bucket_take_parts(ebb__bucket *b, uint64_t now, uint32_t most, uint32_t per_second, uint64_t parts);

/* How many whole tokens it has. */
uint32_t ebb__bucket_left(ebb__bucket *b, uint64_t now, uint32_t most, uint32_t per_second);
/* Gives n back, up to what it holds. */
static inline void ebb__bucket_give(ebb__bucket *b, uint32_t n) {
    uint64_t parts = n * EBB_SECOND;
    b->spent = b->spent > parts ? b->spent - parts : 0;
}

typedef struct ebb__rate_limit {
    ebb__bucket resets;
    uint64_t quiet_until; /* new connections of the address are not read before that, ns */
} ebb__rate_limit;

enum { EBB__RATE_LIMIT_SLOTS = 4096 };
typedef struct ebb__rate_limits {
    uint64_t key[2];
    ebb__rate_limit address[EBB__RATE_LIMIT_SLOTS];
} ebb__rate_limits;
/* Each connection that had to be ended keeps the next ones of its address waiting for EBB__DELAY_STEP_MS longer, for
 * EBB__DELAY_MOST_MS at most: an attacker that comes back at once gets 200 connections a second, by however many it
 * comes, until they are 20 at a time; and an honest client of that address waits no longer than that. */
enum { EBB__DELAY_STEP_MS = 5, EBB__DELAY_MOST_MS = 100 };
void ebb__rate_limit_add_delay(ebb__rate_limit *a, uint64_t now);
/* The entry of an address; `ip` as in ebb_address, without regard to its zone. An IPv4 address that is
 * written as an IPv6 one is the IPv4 one; all that is no address is one. */
ebb__rate_limit *ebb__rate_limit_of(ebb__rate_limits *c, const char *ip);

#endif
