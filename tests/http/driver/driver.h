/* A randomised driver over the HTTP layer: servers, clients and raw peers in one process, on one libuv loop.
 *
 * A run is one seed. Every actor (a handler, a client, a raw peer) draws from dice of its own, which the seed and its
 * number make, so what it does depends on the real clock as little as possible. The actors keep the rules of ebb/http.h
 * and free their bytes as soon as these rules allow it. What must hold is checked where it is seen, by `must`, and for
 * each request at the end of the run, in world.c. */
#ifndef EBB_TESTS_DRIVER_HTTP_H
#define EBB_TESTS_DRIVER_HTTP_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ebb/ebb.h>
#include <ebb/http.h>
#include <uv.h>

enum { REQUESTS = 512, SIDES = 2, SERVERS = 2, CLIENTS = 2 };

typedef struct dice {
    uint64_t state;
} dice;

uint32_t roll(dice *d, uint32_t n); /* 0 to n - 1 */
static inline bool chance(dice *d, uint32_t one_in) {
    return roll(d, one_in) == 0;
}

/* One request: what its handler has done and what its client has seen. */
typedef struct request {
    struct world *world;
    uint32_t id;
    uint32_t runs;        /* of its handler */
    bool events;          /* the body is not the pattern */
    bool echo;            /* the body is that of the request */
    bool cut;             /* the handler has left the body short: nobody may take it for whole */
    bool ended;           /* the response was ended by the handler */
    bool cancelled;       /* the handler knows that it was cancelled */
    uint32_t body_n;      /* of the response, if it is whole */
    uint32_t sent_n;      /* of the client's body */
    bool raw;             /* a raw peer has sent it */
    bool whole;           /* the client took a whole response of 200 */
    bool head;            /* by HEAD */
    uint32_t got_n;       /* and it had so many bytes */
    uint32_t calls, ends; /* futures of calls, and how often they have ended */
} request;

/* A runtime with what is counted of it. */
typedef struct side {
    ebb_failing memory;
    ebb_loop *loop;
    ebb_runtime *rt;
    ebb_cx *cx;
    ebb_region region; /* of servers or of clients and peers */
    uint32_t misuse;
} side;

typedef struct world {
    uint64_t seed;
    dice dice;
    uv_loop_t uv;
    uv_timer_t tick;
    side sides[SIDES];
    side *serving, *calling;           /* may be the same */
    ebb_http_server *servers[SERVERS]; /* plain, TLS; NULL: not made */
    ebb_region server_regions[SERVERS];
    uint16_t ports[SERVERS];
    uint16_t bad_port;                 /* of a server that speaks nonsense */
    ebb_http_client *clients[CLIENTS]; /* of `calling`: HTTP/1 and HTTP/2 in plain text */
    ebb_http_client *inner;            /* of `serving`, for handlers */
    uint32_t requests_n;
    request requests[REQUESTS];
    bool still;   /* it ends when all actors have */
    bool stopped; /* somebody was asked to stop */
    bool starved; /* memory was refused */
    struct block *blocks;
    uint32_t actors; /* fibers of clients and raw peers that have not ended */
} world;

/* What was done, over all seeds. */
typedef struct tally {
    uint64_t seeds, handlers, cancelled, calls, whole, failed, peers, starved, still;
} tally;
extern tally driver_tally;
extern const char *driver_cert, *driver_key, *driver_ca;
extern bool driver_talks;

/* Memory of actors. What an actor that is abandoned has not released goes with the world. */
void *grab(world *w, size_t n);
void release(void *p);

void must(const world *w, bool holds, const char *what, uint64_t value);
void talk(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* NULL: there are enough. */
request *request_new(world *w);
dice dice_of(const world *w, uint32_t number);
/* The bytes of a body by position: of requests (1) and responses (0). */
uint8_t byte_at(uint32_t id, int up, size_t at);
void fill(uint8_t *into, uint32_t id, int up, size_t from, size_t n);
bool fits(const void *bytes, uint32_t id, int up, size_t from, size_t n);
uint32_t size_of_body(dice *d);
/* Of a buffer: mostly small. */
size_t size_of_piece(dice *d);
/* Bytes of the response to r, from `from` on. */
bool answers(const request *r, const void *bytes, size_t from, size_t n);

ebb_status nap(ebb_cx *cx, uint64_t ns);

ebb_status add_routes(world *w, ebb_http_server *s);
ebb_status client_main(ebb_cx *cx, void *arg); /* arg: an actor */
ebb_status raw_main(ebb_cx *cx, void *arg);
ebb_status bad_server_main(ebb_cx *cx, void *arg); /* arg: the world */

typedef struct actor {
    world *world;
    uint32_t number;
} actor;

void drive(uint64_t seed);
void tell_world(void); /* on stderr */

#endif
