/* Token buckets in integers: a token has EBB_SECOND parts, so that one nanosecond adds `per_second` parts and nothing
 * is rounded. 2^32 tokens are less than 2^62 parts. */
#define _POSIX_C_SOURCE 200809L
#include "http/rate_limit.h"

#include <arpa/inet.h>
#include <string.h>

/* ---- buckets ------------------------------------------------------------------------------------------- */

/* A time before the last one adds nothing, and no time is counted twice. */
static void fill(ebb__bucket *b, uint64_t now, uint32_t per_second) {
    if (now <= b->at) return;
    uint64_t span = now - b->at;
    b->at = now;
    if (per_second == 0) return;
    if (span > b->spent / per_second) b->spent = 0;
    else b->spent -= span * per_second;
}

bool ebb__bucket_take_parts(ebb__bucket *b, uint64_t now, uint32_t most, uint32_t per_second,
                            uint64_t wanted) {
    uint64_t room = most * EBB_SECOND;
    fill(b, now, per_second);
    if (b->spent <= room && wanted <= room - b->spent) {
        b->spent += wanted;
        return true;
    }
    b->spent = room;
    return wanted == 0;
}

bool ebb__bucket_take(ebb__bucket *b, uint64_t now, uint32_t most, uint32_t per_second, uint32_t n) {
    return ebb__bucket_take_parts(b, now, most, per_second, n * EBB_SECOND);
}

uint32_t ebb__bucket_left(ebb__bucket *b, uint64_t now, uint32_t most, uint32_t per_second) {
    uint64_t room = most * EBB_SECOND;
    fill(b, now, per_second);
    return b->spent < room ? (uint32_t)((room - b->spent) / EBB_SECOND) : 0;
}

/* ---- addresses ----------------------------------------------------------------------------------------- */

/* The part of an address that counts. Two words, so that no IPv4 address equals an IPv6 network. */
typedef struct origin {
    uint64_t family, network;
} origin;

static uint64_t big_endian(const uint8_t *at, size_t n) {
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) x = x << 8 | at[i];
    return x;
}

static origin origin_of_v6(const uint8_t at[16]) {
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (memcmp(at, mapped, sizeof mapped) == 0) return (origin){4, big_endian(at + 12, 4)};
    return (origin){6, big_endian(at, 8)};
}

/* Texts that are no address are one origin: the peers of a Unix socket. */
static origin origin_of(const char *ip) {
    char text[INET6_ADDRSTRLEN];
    uint8_t at[16];
    size_t n = strcspn(ip, "%");
    if (n >= sizeof text) return (origin){0, 0};
    memcpy(text, ip, n);
    text[n] = 0;
    if (inet_pton(AF_INET, text, at) == 1) return (origin){4, big_endian(at, 4)};
    if (inet_pton(AF_INET6, text, at) == 1) return origin_of_v6(at);
    return (origin){0, 0};
}

/* ---- SipHash-2-4, for two words ------------------------------------------------------------------------ */

static uint64_t turn(uint64_t x, unsigned by) {
    return x << by | x >> (64 - by);
}

static void mix(uint64_t v[4], unsigned rounds) {
    while (rounds-- > 0) {
        v[0] += v[1], v[2] += v[3];
        v[1] = turn(v[1], 13) ^ v[0], v[3] = turn(v[3], 16) ^ v[2];
        v[0] = turn(v[0], 32);
        v[2] += v[1], v[0] += v[3];
        v[1] = turn(v[1], 17) ^ v[2], v[3] = turn(v[3], 21) ^ v[0];
        v[2] = turn(v[2], 32);
    }
}

static void absorb(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    mix(v, 2);
    v[0] ^= word;
}

static uint64_t keyed_hash(const uint64_t key[2], origin o) {
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                     key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
    absorb(v, o.family);
    absorb(v, o.network);
    absorb(v, (uint64_t)sizeof o << 56);
    v[2] ^= 0xff;
    mix(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

ebb__rate_limit *ebb__rate_limit_of(ebb__rate_limits *c, const char *ip) {
    return &c->address[keyed_hash(c->key, origin_of(ip)) % EBB__RATE_LIMIT_SLOTS];
}

void ebb__rate_limit_add_delay(ebb__rate_limit *a, uint64_t now) {
    uint64_t from = a->quiet_until > now ? a->quiet_until : now, most = now + EBB__DELAY_MOST_MS * EBB_MS;
    a->quiet_until = from + EBB__DELAY_STEP_MS * EBB_MS;
    if (a->quiet_until > most) a->quiet_until = most;
}
