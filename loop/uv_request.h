/* Requests: what libuv keeps a pointer to until its callback, and what an operation needs until then. They
 * are the loop's own: whoever waits may be gone before.
 *
 * `future` is NULL once it was settled, which for a cancelled one may be long before libuv is done. */
#ifndef EBB__LOOP_UV_REQUEST_H
#define EBB__LOOP_UV_REQUEST_H

#include "loop/handle.h"

struct ebb__uv_request {
    uint32_t link, generation; /* the slab's */
    uint32_t index;            /* 0: the slot is free */
    ebb_loop *loop;
    ebb_future *future;
    ebb__handle *handle;     /* NULL: it is about none */
    const char *what, *site; /* what NULL: a file keeps it for its close */
    ebb_region region;
    ebb__uv_request *next, *prev; /* among the writes of a stream */
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
            const char *from; /* what is left of the caller's bytes */
            size_t n, all;
            bool shut; /* not a write but the end of the stream */
        } write;
        struct {
            char *piece; /* ours: what libuv's thread works on */
            size_t piece_n;
            char *into; /* the caller's */
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

/* A request and its future. NULL: *failed is what to return. */
ebb__uv_request *ebb__request_new(ebb_cx *cx, ebb_loop *l, ebb__handle *h, const ebb_operation *op,
                                  const char *site, ebb_future **failed);
/* One without a future; its room was reserved. */
ebb__uv_request *ebb__request_take(ebb_cx *cx, ebb_loop *l, ebb__handle *h, const ebb_operation *op,
                                   const char *site);
ebb_status ebb__request_reserve(ebb_loop *l);
void ebb__request_free(ebb__uv_request *r);
/* Ends its future, if that was not done before. EBB_CANCELLED as ebb__settle. */
ebb_status ebb__request_settle(ebb__uv_request *r, ebb_value v);
void ebb__request_reject(ebb__uv_request *r, ebb_status st);
/* An ebb_operation's cancel: asks libuv to forget what it has not begun; its callback comes in any case. */
void ebb__request_cancel(ebb_cx *cx, ebb_future *f, void *request);

#endif
