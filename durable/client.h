/* durable/client.h - what the files of the client share: values with rows of a store, and operations of several calls.
 *
 * An operation of one call is that call's future with its value read into what the program gets. An operation of
 * several is a fiber in the region of its caller, and a future of its end. */
#ifndef EBB_DURABLE_CLIENT_H
#define EBB_DURABLE_CLIENT_H

#include "durable/engine.h"
#include "durable/store.h"
#include "future/future.h"

/* The future of a call whose answer has no value; the statuses of the provider become those of the future. */
ebb_future *ebb__client_done(ebb_cx *cx, ebb_provider_call *c, const char *site);
/* Reads a row; texts and blobs stay the call's, in whose memory the rest is allocated. EBB_ERR_NOMEM. */
ebb_status ebb__client_info(ebb_provider_call *c, const ebb_provider_instance_row *row,
                            ebb_instance_info *out);
/* The value of an info; it owns the call. EBB_ERR_NOMEM: the call was freed. */
ebb_status ebb__client_info_value(ebb_provider_call *c, const ebb_provider_instance_row *row, ebb_value *out);
/* EBB_OK: a valid id of an instance. */
ebb_status ebb__client_check_id(const char *id);

/* On a fiber: asks and waits. NULL: *st says why; else a call to free, which was done with EBB_OK. */
void *ebb__client_ask(ebb_cx *cx, ebb_provider_call *c, ebb_status *st);

/* An operation of several calls: `run` on a fiber; `value` (may be NULL) makes its value afterwards; then `free`. */
typedef struct ebb__client_op ebb__client_op;
struct ebb__client_op {
    ebb_store *store;
    ebb_allocator allocator;
    ebb__arena arena; /* of the operation; freed with it */
    const char *id;
    ebb_status (*run)(ebb_cx *cx, ebb__client_op *op);
    ebb_value (*value)(ebb_cx *cx, ebb__client_op *op);
    size_t bytes;                 /* of the record that begins with this */
    bool kept;                    /* the value owns the record, and not the future */
    uint8_t refs;                 /* the fiber, and the future or value; until the begin 0 */
    char text[EBB__FAILURE_TEXT]; /* of its failure */
};
/* A zeroed record of `bytes`, which begins with an ebb__client_op. NULL: no memory. */
void *ebb__client_op_new(ebb_store *s, size_t bytes);
void ebb__client_op_free(void *op);
const char *ebb__client_op_text(ebb__client_op *op,
                                const char *text); /* a copy; NULL: there was none, or no memory */
ebb_future *ebb__client_op_begin(ebb_cx *cx, void *op, const char *site);

#endif
