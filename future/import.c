/* A future of another runtime, imported into this one.
 *
 * The import is a record between the two runtimes. Its `subscribe` message goes to the other runtime when the import
 * is made, and puts the import's edge into the ring of the remote future. When that future ends, or can no longer
 * end, the `ended` message comes back with the outcome, exactly once, and ends the future here. A cancel here cancels
 * the remote future at once, and `ended` follows. A shared or shielded remote future is only dropped, by the `let_go`
 * message, because only its own runtime knows its other owners.
 *
 * Invariants: `ended` is posted once, by the code that takes the edge out of the ring or could not put it there. From
 * then on the record belongs to the home runtime. `refs` counts `ended`, wherever it is, and `let_go` while it is
 * under way. The messages are part of the record: nothing is allocated after it was made. */
#include "base/alloc.h"
#include "future/peer.h"
#include "future/promise.h"

typedef struct import {
    ebb__message subscribe, let_go, ended;
    ebb__tie there, here;
    ebb__edge edge; /* in the ring of the remote future, while `there` is tied */
    _Atomic uint32_t refs;
    ebb_cancel_kind wanted; /* written before `let_go` is posted */
    ebb_remote *remote;
    ebb__heap *home;
    ebb_future *future; /* in the home runtime */
    /* The outcome, written before `ended` is posted. */
    ebb_status status;
    ebb_cancel_kind kind;
    ebb_value value;
} import;

static import *of_let_go(ebb__message *m) {
    return (import *)(void *)((char *)m - offsetof(import, let_go));
}

static import *of_ended(ebb__message *m) {
    return (import *)(void *)((char *)m - offsetof(import, ended));
}

static void release(import *im) {
    /* Release: the thread that frees it sees what the other side did. Acquire: for that thread. */
    if (atomic_fetch_sub_explicit(&im->refs, 1, memory_order_acq_rel) != 1) return;
    ebb__heap *home = im->home;
    ebb_remote_release(im->remote);
    ebb_allocator a = home->allocator;
    ebb__free(&a, im, sizeof *im);
    ebb__heap_release(home);
}

/* ---- the remote side -------------------------------------------------------------------------------------- */

/* This import is the only reader of the value. */
static bool is_last_reader(const ebb_future *f) {
    return f->owners == 0 && f->holds == 0 && f->hooks == NULL;
}

static void read_value(import *im, ebb_future *f) {
    ebb_value v = f->value;
    if (v.type == &ebb__moved_type) {
        im->status = EBB_ERR_CONSUMED;
    } else if (v.type != NULL && (v.type->size != 0 || v.type->reserved & EBB__TYPE_AT_HOME)) {
        im->status = EBB_ERR_INVALID; /* an object of the other heap, or a handle of the other loop */
    } else {
        if (v.type != NULL && is_last_reader(f)) f->value.type = &ebb__moved_type;
        else v.type = NULL;
        im->value = v;
    }
}

static void read_end(import *im, ebb_future *f) {
    im->status = ebb__status_of(f);
    if (im->status == EBB_OK) read_value(im, f);
    else if (im->status == EBB_CANCELLED) im->kind = ebb__kind_of_cancel(f);
    else if (im->status == EBB_PENDING) im->status = EBB_ERR_CLOSED; /* its region is closed */
}

static void answer(import *im) {
    if (ebb__post(im->home, &im->ended)) return;
    ebb__dispose(im->value);
    release(im);
}

static void take_subscribe(ebb_runtime *rt, ebb__message *m) {
    import *im = (import *)(void *)m; /* the message is the first member */
    ebb_future *f = im->remote->future;
    if (rt == NULL) {
        im->status = EBB_ERR_CLOSED;
        answer(im);
    } else if ((f->flags & EBB__F_FINISHED && f->hooks == NULL) || f->cell.member == 0) {
        read_end(im, f);
        answer(im);
    } else {
        ebb__hold_again(f);
        ebb__edge_attach(NULL, &im->edge, f, EBB__EDGE_IMPORT, f->site);
        ebb__tie_add(ebb__heap_at(rt), &im->there);
    }
}

void ebb__import_ended(ebb__edge *e) {
    import *im = (import *)(void *)((char *)e - offsetof(import, edge));
    ebb_future *f = ebb__edge_input(e);
    ebb__tie_remove(&im->there);
    ebb__edge_drop(ebb__heap_of(f), e); /* an exported future is not freed by this */
    read_end(im, f);
    answer(im);
}

static void take_let_go(ebb_runtime *rt, ebb__message *m) {
    import *im = of_let_go(m);
    if (rt != NULL && im->there.at != NULL) {
        ebb__tie_remove(&im->there);
        ebb__edge_cancel(ebb__heap_at(rt), &im->edge, im->wanted);
        im->status = EBB_CANCELLED;
        im->kind = im->wanted;
        answer(im);
    }
    release(im);
}

static void gone_there(ebb__tie *tie) {
    import *im = (import *)(void *)((char *)tie - offsetof(import, there));
    ebb__edge_drop(ebb__heap_of(ebb__edge_input(&im->edge)), &im->edge);
    im->status = EBB_ERR_CLOSED;
    answer(im);
}

/* ---- the home side ---------------------------------------------------------------------------------------- */

/* The import is not wanted any more. Called once: by its cancel or by the end of the runtime. */
static void let_go(import *im, ebb_cancel_kind kind) {
    ebb__tie_remove(&im->here);
    if (!im->remote->spared) {
        (void)ebb_remote_cancel(im->remote, kind);
        return;
    }
    im->wanted = kind;
    atomic_fetch_add_explicit(&im->refs, 1, memory_order_relaxed); /* `ended` has a reference */
    if (!ebb__post(im->remote->heap, &im->let_go)) release(im);
}

static void import_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    (void)cx;
    let_go(arg, ebb__kind_of_cancel(f));
}

static void gone_here(ebb__tie *tie) {
    let_go((import *)(void *)((char *)tie - offsetof(import, here)), EBB_CANCEL_DISCONNECT);
}

static void end_here(import *im) {
    ebb__tie_remove(&im->here);
    if (im->status == EBB_OK) {
        (void)ebb_promise_settle(im->future, im->value);
        return;
    }
    if (im->status == EBB_CANCELLED) (void)ebb__cancel_as(im->future, im->kind);
    (void)ebb_promise_reject(im->future, im->status);
}

static void take_ended(ebb_runtime *rt, ebb__message *m) {
    import *im = of_ended(m);
    if (rt != NULL) end_here(im);
    else ebb__dispose(im->value);
    release(im);
}

static const ebb_operation import_op = {"import", import_cancel, NULL};

/* Cancels a future that could not be imported, since it has no reader here. */
static ebb_future *refuse(ebb_remote *remote, ebb_status st) {
    if (!remote->spared) (void)ebb_remote_cancel(remote, EBB_CANCEL_RESOURCE);
    ebb_remote_release(remote);
    return ebb__failed(st);
}

ebb_future *ebb_remote_import_site(ebb_cx *cx, ebb_remote *remote, const char *site) {
    if (remote == NULL) return ebb__failed(EBB_ERR_INVALID);
    ebb_runtime *rt = ebb__rt_of(cx);
    import *im = ebb__alloc(ebb__rt_allocator(rt), sizeof *im);
    if (im == NULL) return refuse(remote, EBB_ERR_NOMEM);
    ebb_future *f = ebb_promise_new_site(cx, &import_op, im, site);
    if (ebb__is_static(f)) {
        ebb__free(ebb__rt_allocator(rt), im, sizeof *im);
        return refuse(remote, ebb__status_of(f));
    }
    *im = (import){.subscribe = {NULL, take_subscribe},
                   .let_go = {NULL, take_let_go},
                   .ended = {NULL, take_ended},
                   .there.gone = gone_there,
                   .here.gone = gone_here,
                   .remote = remote,
                   .home = ebb__heap_keep(ebb__heap_at(rt)),
                   .future = f};
    atomic_init(&im->refs, 1);
    ebb__tie_add(ebb__heap_at(rt), &im->here);
    if (!ebb__post(remote->heap, &im->subscribe)) {
        im->status = EBB_ERR_CLOSED;
        end_here(im);
        release(im);
    }
    return f;
}
