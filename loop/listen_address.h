/* Places to listen at: a TCP address, or the path of a Unix socket.
 *
 * The loops of one service share their places. Each loop that listens at a TCP address gets a socket of its own
 * there (SO_REUSEPORT), and the system spreads the connections over them. A Unix socket has one queue, so its
 * loops share one socket. Loops that belong to no service share nothing: `share` is NULL. */
#ifndef EBB__LOOP_LISTEN_ADDRESS_H
#define EBB__LOOP_LISTEN_ADDRESS_H

#include "loop/loop.h"

typedef struct ebb__listen_address ebb__listen_address;

/* `lock` guards the list and the records in it. It is taken only to begin and to end listening. */
struct ebb__share {
    uv_mutex_t lock;
    ebb_allocator allocator;
    ebb__listen_address *first;
    uint32_t loops; /* that share */
};

ebb_status ebb__share_init(ebb__share *s, ebb_allocator a, uint32_t loops);
/* Nobody listens any more. */
void ebb__share_fini(ebb__share *s);

/* Begins to listen at `at` for loop `l`, which has `*fd` from now on. With port 0 the loops of a service get the
 * same port: the first time all of them the first one, and so on. EBB_ERR_NOMEM, EBB_ERRNO(EADDRINUSE) if anybody else listens there, EBB_ERRNO(errno). */
ebb_status ebb__place_listen(ebb_loop *l, const struct sockaddr_storage *at, int *fd,
                             ebb__listen_address **out);

/* From now on nobody new is queued at `fd`, if the system can do that; those who are queued can be accepted. `*notice`:
 * connections may still come that were half open. Returns how many may be accepted at most: all, UINT32_MAX; as many as
 * the queue holds, if new connections are queued as before; none if other loops serve the queue. */
uint32_t ebb__place_drain(ebb__listen_address *p, int fd, bool *notice);

/* Closes `fd`. The last loop removes the path of a Unix socket. */
void ebb__place_leave(ebb_loop *l, ebb__listen_address *p, int fd);

#endif
