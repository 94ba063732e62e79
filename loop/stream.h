/* What the files about streams share. */
#ifndef EBB__LOOP_STREAM_H
#define EBB__LOOP_STREAM_H

#include "loop/uv_request.h"

/* A stream of a region, as libuv has it before it is connected. NULL and *st. */
ebb__handle *ebb__stream_new(ebb_loop *l, ebb_region region, ebb__handle_kind kind, const char *site,
                             ebb_status *st);
ebb_status ebb__stream_find(const ebb_cx *cx, ebb_stream s, ebb__handle **out);
/* Ends the writes that wait. */
void ebb__writes_fail(ebb__handle *h, ebb_status st);

/* EBB_ERR_INVALID: it is no number. */
ebb_status ebb__address_parse(const ebb_address *a, struct sockaddr_storage *out);
ebb_status ebb__address_format(const struct sockaddr *from, ebb_address *out);
/* Of a Unix socket: libuv would cut it. */
ebb_status ebb__path_check(const char *path);

#endif
