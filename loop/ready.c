/* Readiness of descriptors, and the wall clock. Each wait has a handle of its own, which closes with it: the descriptor
 * is watched only while somebody waits. */
#define _POSIX_C_SOURCE 200809L
#include "loop/handle.h"

_Static_assert((int)EBB_FD_READABLE == (int)UV_READABLE && (int)EBB_FD_WRITABLE == (int)UV_WRITABLE,
               "events are passed on as they are");

static void wait_ends(ebb__handle *h, ebb_status st) {
    ebb_future *f = h->as.watch.waiter;
    h->as.watch.waiter = NULL;
    if (f != NULL) ebb__reject(h->loop, f, st);
}

void ebb__ready_stop(ebb__handle *h) {
    wait_ends(h, EBB_ERR_CLOSED);
    ebb__handle_let_go(h);
}

static void on_ready(uv_poll_t *uv, int status, int events) {
    ebb__handle *h = uv->data;
    ebb_future *f = h->as.watch.waiter;
    if (status < 0) {
        wait_ends(h, ebb__uv_status(status));
    } else if (f != NULL) {
        h->as.watch.waiter = NULL;
        (void)ebb__settle(h->loop, f, ebb_value_int(events));
    }
    ebb__handle_close(h);
}

static void wait_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    (void)cx;
    (void)f;
    wait_ends(arg, EBB_CANCELLED);
    ebb__handle_close(arg);
}

static const ebb_operation wait_op = {"readiness", wait_cancel, NULL};

/* libuv has one watcher for a descriptor, whoever it belongs to. */
static ebb_status status_of(int code) {
    return code == UV_EEXIST ? EBB_ERR_BUSY : code == 0 ? EBB_OK : ebb__uv_status(code);
}

static ebb__handle *watch(ebb_cx *cx, int fd, int events, const char *site, ebb_status *st) {
    ebb_loop *l;
    *st = ebb__loop_admit(cx, &l);
    const int known = EBB_FD_READABLE | EBB_FD_WRITABLE;
    if (*st == EBB_OK && (fd < 0 || events == 0 || (events & ~known) != 0)) *st = EBB_ERR_INVALID;
    ebb__handle *h = *st == EBB_OK ? ebb__handle_new(l, ebb_cx_region(cx), EBB__READINESS, site, st) : NULL;
    if (h == NULL) return NULL;
    *st = status_of(l->os->poll_init(l->uv, &h->uv.poll, fd));
    if (*st != EBB_OK) {
        ebb__handle_free(h);
        return NULL;
    }
    ebb__handle_ready(h);
    *st = status_of(l->os->poll_start(&h->uv.poll, events, on_ready));
    if (*st == EBB_OK) return h;
    ebb__handle_close(h);
    return NULL;
}

ebb_future *ebb_fd_ready_site(ebb_cx *cx, int fd, int events, const char *site) {
    ebb_status st;
    ebb_future *failed;
    ebb__handle *h = watch(cx, fd, events, site, &st);
    if (h == NULL) return ebb__loop_failed(cx, st, site);
    ebb_future *f = h->as.watch.waiter = ebb__begin(h->loop, cx, &wait_op, h, site, &failed);
    if (f != NULL) return f;
    ebb__handle_close(h);
    return failed;
}

uint64_t ebb_wall_now(ebb_cx *cx) {
    ebb_loop *l;
    struct timespec t;
    if (ebb__loop_of(cx, &l) != EBB_OK) return 0;
    l->os->wall_clock(&t);
    return (uint64_t)t.tv_sec * EBB_SECOND + (uint64_t)t.tv_nsec;
}
