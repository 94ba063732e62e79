/* A future of another runtime as one of this one's.
 *
 * The import is a record between the two. Its `subscribe` letter goes to the other runtime when it is made,
 * and puts its edge into the ring of the remote future there; when that ends, or can't any more, the `ended`
 * letter comes back with the outcome, exactly once, and ends the future here. A cancel here cancels the
 * remote future at once, and the answer follows from that. One that is shared or shielded is only let go of,
 * by the third letter, since who else wants it is known over there only.
 *
 * What holds: `ended` is posted once, by whoever takes the edge out of the ring or could not put it there;
 * from then on the record is the home's. `refs` counts that letter, wherever it is, and `let_go` while it is
 * under way. The letters are part of the record: nothing is allocated once it is made. */
#include "base/alloc.h"
#include "future/peer.h"
#include "future/promise.h"

typedef struct import {
    ebb__message subscribe, let_go, ended;
    ebb__tie there, here;
    ebb__edge edge; /* in the ring of the remote future, as long as `there` is tied */
    _Atomic uint32_t refs;
    ebb_cancel_kind wanted; /* written before `let_go` is posted */
    ebb_remote *remote;
    ebb__heap *home;
    ebb_future *future; /* of the home */
    /* The outcome, written before `ended` is posted. */
    ebb_status status;
    ebb_cancel_kind kind;
    ebb_value value;
} import;

static import *of_let_go(ebb__message *l) {
    return (import *)(void *)((char *)l - offsetof(import, let_go));
}

static import *of_ended(ebb__message *l) {
    return (import *)(void *)((char *)l - offsetof(import, ended));
}

static void release(import *im) {
    /* Release, so that what the other side did comes before; acquire for whoever frees it. */
    if (atomic_fetch_sub_explicit(&im->refs, 1, memory_order_acq_rel) != 1) return;
    ebb__heap *home = im->home;
    ebb_remote_release(im->remote);
    ebb_allocator a = home->allocator;
    ebb__free(&a, im, sizeof *im);
    ebb__heap_release(home);
}

/* ---- over there ------------------------------------------------------------------------------------------------- */

/* Nobody there can ask for the value again but this import. */
static bool is_last_reader(const ebb_future *f) {
    return f->owners == 0 && f->holds == 0 && f->hooks == NULL;
}

static void read_value(import *im, ebb_future *f) {
    ebb_value v = f->value;
    if (v.type == &ebb__moved_type) {
        im->status = EBB_ERR_CONSUMED;
    } else if (v.type != NULL && (v.type->size != 0 || v.type->reserved & EBB__TYPE_AT_HOME)) {
        im->status = EBB_ERR_INVALID; /* an object of that heap, or a handle of that loop */
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
    else if (im->status == EBB_PENDING) im->status = EBB_ERR_CLOSED; /* its region is over */
}

static void answer(import *im) {
    if (ebb__post(im->home, &im->ended)) return;
    ebb__dispose(im->value);
    release(im);
}

static void take_subscribe(ebb_runtime *rt, ebb__message *l) {
    import *im = (import *)(void *)l; /* its first member */
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
    ebb__edge_drop(ebb__heap_of(f), e); /* exported: that does not free it */
    read_end(im, f);
    answer(im);
}

static void take_let_go(ebb_runtime *rt, ebb__message *l) {
    import *im = of_let_go(l);
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

/* ---- here ------------------------------------------------------------------------------------------------------- */

/* Nobody here wants it any more: it is said once, by its cancel or by the end of the runtime. */
static void let_go(import *im, ebb_cancel_kind kind) {
    ebb__tie_remove(&im->here);
    if (!im->remote->spared) {
        (void)ebb_remote_cancel(im->remote, kind);
        return;
    }
    im->wanted = kind;
    atomic_fetch_add_explicit(&im->refs, 1, memory_order_relaxed); /* `ended` has one */
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

static void take_ended(ebb_runtime *rt, ebb__message *l) {
    import *im = of_ended(l);
    if (rt != NULL) end_here(im);
    else ebb__dispose(im->value);
    release(im);
}

static const ebb_operation import_op = {"import", import_cancel, NULL};

/* What could not be imported has no reader here. */
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
