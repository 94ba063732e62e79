/* Budgets for frames and resets that ask for nothing: token buckets, one for each connection and one for each peer
 * address.
 *
 * Buckets of addresses are in a table of fixed size, indexed by a keyed hash. Addresses with the same slot share a
 * budget, and an attacker with many addresses can't make the table larger. IPv6 addresses count by their /64. */
#ifndef EBB__HTTP_RATE_LIMIT_H
#define EBB__HTTP_RATE_LIMIT_H

#include <ebb/loop.h>

typedef struct ebb__bucket {
    uint64_t at;    /* when it was last refilled, ns */
    uint64_t spent; /* missing tokens, in units of 1/EBB_SECOND token; 0: full */
} ebb__bucket;

/* Takes n tokens from a bucket that holds `most` and gains `per_second` tokens each second. False: there were fewer,
 * and the bucket is empty now. A zeroed bucket is full. The count is exact; a time before the last one adds nothing. */
bool ebb__bucket_take(ebb__bucket *b, uint64_t now, uint32_t most, uint32_t per_second, uint32_t n);

/* The same for parts of a token, of which EBB_SECOND are one. */
bool ebb__bucket_take_parts(ebb__bucket *b, uint64_t now, uint32_t most, uint32_t per_second, uint64_t parts);

/* How many whole tokens it has. */
uint32_t ebb__bucket_left(ebb__bucket *b, uint64_t now, uint32_t most, uint32_t per_second);
/* Returns n tokens, up to `most`. */
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
/* Each connection that ended because of its peer delays the next ones of its address by EBB__DELAY_STEP_MS more, up to
 * EBB__DELAY_MOST_MS. An attacker that reconnects at once gets 200 connections a second in all, or 20 at a time at the
 * maximum. An honest client of the address waits no longer than that. */
enum { EBB__DELAY_STEP_MS = 5, EBB__DELAY_MOST_MS = 100 };
void ebb__rate_limit_add_delay(ebb__rate_limit *a, uint64_t now);
/* The entry of an address; `ip` is as in ebb_address, and its zone is ignored. An IPv4 address in IPv6 notation is the
 * IPv4 address. All texts that are no address share an entry. */
ebb__rate_limit *ebb__rate_limit_of(ebb__rate_limits *c, const char *ip);

#endif
