/* What the files about streams share. */
#ifndef EBB__LOOP_STREAM_H
#define EBB__LOOP_STREAM_H

#include "loop/uv_request.h"

/* A new stream of a region, not connected yet. NULL: see *st. */
ebb__handle *ebb__stream_new(ebb_loop *l, ebb_region region, ebb__handle_kind kind, const char *site,
                             ebb_status *st);
ebb_status ebb__stream_find(const ebb_cx *cx, ebb_stream s, ebb__handle **out);
/* Fails the queued writes. */
void ebb__writes_fail(ebb__handle *h, ebb_status st);

/* EBB_ERR_INVALID: the address is not numeric. */
ebb_status ebb__address_parse(const ebb_address *a, struct sockaddr_storage *out);
ebb_status ebb__address_format(const struct sockaddr *from, ebb_address *out);
/* Checks the path of a Unix socket: libuv would truncate a long one. */
ebb_status ebb__path_check(const char *path);

#endif
