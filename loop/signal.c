/* Signals. */
#define _POSIX_C_SOURCE 200809L
#include "loop/handle.h"

static void waiter_ends(ebb__handle *h, ebb_status st) {
    ebb_future *f = h->as.watch.waiter;
    h->as.watch.waiter = NULL;
    if (f != NULL) ebb__reject(h->loop, f, st);
}

void ebb__signal_stop(ebb__handle *h) {
    waiter_ends(h, EBB_ERR_CLOSED);
    ebb__handle_let_go(h);
}

static void wait_cancelled(ebb__handle *h) {
    waiter_ends(h, EBB_CANCELLED);
    if (h->as.watch.once) ebb__handle_close(h);
}

/* The wait, if it is not cancelled. */
static ebb_future *waiter_of(ebb__handle *h) {
    ebb_future *f = h->as.watch.waiter;
    if (f != NULL && !ebb__is_wanted(f)) wait_cancelled(h);
    return h->as.watch.waiter;
}

/* If another thread has just cancelled the wait, the count goes to the next one. */
static void on_signal(uv_signal_t *uv, int signum) {
    ebb__handle *h = uv->data;
    ebb__watch *w = &h->as.watch;
    (void)signum;
    w->count++;
    ebb_future *f = waiter_of(h);
    if (f == NULL) return;
    w->waiter = NULL;
    if (ebb__settle(h->loop, f, ebb_value_int((int64_t)w->count)) == EBB_OK) w->count = 0;
    if (w->once) ebb__handle_close(h);
}

static ebb__handle *watch(ebb_cx *cx, int signum, const char *site, ebb_status *st) {
    ebb_loop *l;
    *st = ebb__loop_admit(cx, &l);
    ebb__handle *h = *st == EBB_OK ? ebb__handle_new(l, ebb_cx_region(cx), EBB__SIGNAL, site, st) : NULL;
    if (h == NULL) return NULL;
    int code = l->os->signal_init(l->uv, &h->uv.signal);
    if (code != 0) {
        *st = ebb__uv_status(code);
        ebb__handle_free(h);
        return NULL;
    }
    ebb__handle_ready(h);
    code = l->os->signal_start(&h->uv.signal, on_signal, signum);
    if (code == 0) return h;
    *st = ebb__uv_status(code);
    ebb__handle_close(h);
    return NULL;
}

static void wait_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    (void)cx;
    (void)f;
    wait_cancelled(arg);
}

static const ebb_operation wait_op = {"signal", wait_cancel, NULL};

ebb_future *ebb_signal_wait_site(ebb_cx *cx, int signum, const char *site) {
    ebb_status st;
    ebb_future *failed;
    ebb__handle *h = watch(cx, signum, site, &st);
    if (h == NULL) return ebb__loop_failed(cx, st, site);
    ebb_future *f = h->as.watch.waiter = ebb__begin(h->loop, cx, &wait_op, h, site, &failed);
    h->as.watch.once = true;
    if (f == NULL) ebb__handle_close(h);
    return f != NULL ? f : failed;
}

static ebb_status signal_find(const ebb_cx *cx, ebb_signal s, ebb__handle **out) {
    return ebb__handle_find(cx, s.id, EBB__SIGNAL, EBB__SIGNAL, out);
}

ebb_signal ebb_signal_open_site(ebb_cx *cx, int signum, const char *site) {
    ebb_status st;
    const ebb__handle *h = watch(cx, signum, site, &st);
    return (ebb_signal){h != NULL ? ebb__handle_id(h) : ebb__handle_error(cx, st)};
}

ebb_future *ebb_signal_next_site(ebb_cx *cx, ebb_signal s, const char *site) {
    ebb__handle *h;
    ebb_future *failed;
    ebb_status st = signal_find(cx, s, &h);
    if (st == EBB_OK) st = ebb__admit_operation(cx);
    if (st == EBB_OK && waiter_of(h) != NULL) st = EBB_ERR_BUSY;
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    ebb_future *f = ebb__begin(h->loop, cx, &wait_op, h, site, &failed);
    if (f == NULL) return failed;
    if (h->as.watch.count > 0) {
        (void)ebb__settle(h->loop, f, ebb_value_int((int64_t)h->as.watch.count));
        h->as.watch.count = 0;
    } else {
        h->as.watch.waiter = f;
    }
    return f;
}

ebb_status ebb_signal_close(ebb_cx *cx, ebb_signal s) {
    ebb__handle *h;
    ebb_status st = signal_find(cx, s, &h);
    if (st == EBB_OK) ebb__handle_close(h);
    return st;
}
