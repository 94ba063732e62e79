/* Listen addresses: a TCP address, or the path of a Unix socket.
 *
 * The loops of one service share their listen addresses. Each loop that listens at a TCP address gets its own socket
 * there (SO_REUSEPORT), and the system spreads the connections over the sockets. A Unix socket has one queue, so its
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
    uint32_t loops; /* number of loops that share */
};

ebb_status ebb__share_init(ebb__share *s, ebb_allocator a, uint32_t loops);
/* Frees the lock. No loop may listen any more. */
void ebb__share_fini(ebb__share *s);

/* Begins to listen at `at` for loop `l`, which owns `*fd` from now on. With port 0 the loops of a service get the
 * same port: the n-th call of each loop gets the n-th port. EBB_ERR_NOMEM, EBB_ERRNO(EADDRINUSE) if another process
 * or service listens there, EBB_ERRNO(errno). */
ebb_status ebb__listen_address_open(ebb_loop *l, const struct sockaddr_storage *at, int *fd,
                                    ebb__listen_address **out);

/* Stops the queueing of new connections at `fd`, if the system can. Queued connections can still be accepted.
 * `*notice`: half-open connections may still be established. Returns how many connections may be accepted at most:
 * UINT32_MAX for all; the length of the queue, if new connections are queued as before; 0 if other loops serve the
 * queue. */
uint32_t ebb__listen_address_drain(ebb__listen_address *p, int fd, bool *notice);

/* Closes `fd`. The last loop removes the path of a Unix socket. */
void ebb__listen_address_close(ebb_loop *l, ebb__listen_address *p, int fd);

#endif
