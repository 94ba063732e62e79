/* Requests: memory that libuv points to until its callback, and that an operation needs until then. Requests belong
 * to the loop, because the task that waits may end before the callback.
 *
 * `future` is NULL once it was settled. If it was cancelled, that may be long before libuv calls back. */
#ifndef EBB__LOOP_UV_REQUEST_H
#define EBB__LOOP_UV_REQUEST_H

#include "loop/handle.h"

struct ebb__uv_request {
    uint32_t link, generation; /* the slab's */
    uint32_t index;            /* 0: the slot is free */
    ebb_loop *loop;
    ebb_future *future;
    ebb__handle *handle;     /* NULL: the request has no handle */
    const char *what, *site; /* what NULL: a file keeps the request for its close */
    ebb_region region;
    ebb__uv_request *next, *prev; /* in the queue of a stream's writes */
    union {
        uv_req_t any;
        uv_connect_t connect;
        uv_shutdown_t shutdown;
        uv_fs_t fs;
        uv_getaddrinfo_t dns;
        uv_work_t work;
    } uv;
    union {
        struct {
            const char *from; /* the caller's bytes that are not sent yet */
            size_t n, all;
            bool shut; /* a shutdown, not a write */
        } write;
        struct {
            char *piece; /* the request's buffer, used by the pool thread */
            size_t piece_n;
            char *into; /* the caller's memory */
            const char *from;
            size_t n, all;
            uint64_t offset;
        } file;
        struct {
            ebb_pool_fn fn;
            void *arg;
            ebb_value value;
            ebb_status status;
        } work;
        uint16_t port;
    } as;
};

/* A request and its future. NULL: return *failed. */
ebb__uv_request *ebb__request_new(ebb_cx *cx, ebb_loop *l, ebb__handle *h, const ebb_operation *op,
                                  const char *site, ebb_future **failed);
/* A request without a future. Its slot was reserved. */
ebb__uv_request *ebb__request_take(ebb_cx *cx, ebb_loop *l, ebb__handle *h, const ebb_operation *op,
                                   const char *site);
ebb_status ebb__request_reserve(ebb_loop *l);
void ebb__request_free(ebb__uv_request *r);
/* Ends the future, if it has not ended. EBB_CANCELLED as ebb__settle. */
ebb_status ebb__request_settle(ebb__uv_request *r, ebb_value v);
void ebb__request_reject(ebb__uv_request *r, ebb_status st);
/* The cancel hook of an ebb_operation: asks libuv to drop the request if it has not begun. The callback is called in
 * any case. */
void ebb__request_cancel(ebb_cx *cx, ebb_future *f, void *request);

#endif
