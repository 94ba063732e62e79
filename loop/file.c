/* Files, in libuv's thread pool. A pool thread that works on a file can't be stopped. So it works on a buffer of the
 * request, and bytes are copied to and from the caller's memory only while the future is pending. */
#define _POSIX_C_SOURCE 200809L
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "loop/uv_request.h"

static const ebb_operation open_op = {"open", ebb__request_cancel, NULL},
                           read_op = {"file read", ebb__request_cancel, NULL},
                           write_op = {"file write", ebb__request_cancel, NULL},
                           sync_op = {"file sync", ebb__request_cancel, NULL},
                           rename_op = {"rename", ebb__request_cancel, NULL},
                           unlink_op = {"unlink", ebb__request_cancel, NULL},
                           stat_op = {"stat", ebb__request_cancel, NULL};

static int result_of(uv_fs_t *uv) {
    ssize_t n = uv->result;
    ((ebb__uv_request *)uv->data)->loop->os->fs_req_cleanup(uv);
    return (int)n;
}

/* If the start failed, libuv does not call the callback: this does. */
static ebb_future *started(ebb__uv_request *r, int code, uv_fs_cb callback) {
    ebb_future *f = r->future;
    if (code >= 0) return f;
    r->uv.fs.result = code;
    callback(&r->uv.fs);
    return f;
}

/* ---- closing ------------------------------------------------------------------------------------------- */

static void closer_ends(ebb__handle *h, ebb_status st) {
    ebb_future *f = h->as.file.closer;
    h->as.file.closer = NULL;
    if (f == NULL) return;
    if (st == EBB_OK) (void)ebb__settle(h->loop, f, ebb_value_none());
    else ebb__reject(h->loop, f, st);
}

static void file_free(ebb__handle *h) {
    ebb__request_free(h->as.file.own);
    ebb__handle_free(h);
}

static void on_close(uv_fs_t *uv) {
    ebb__uv_request *r = uv->data;
    ebb__handle *h = r->handle;
    int code = result_of(uv);
    closer_ends(h, code == 0 ? EBB_OK : ebb__uv_status(code));
    file_free(h);
}

static void close_descriptor(ebb__handle *h) {
    assert(h->as.file.busy == 0 && h->as.file.fd >= 0 && h->state == EBB__HANDLE_CLOSING);
    ebb__uv_request *r = h->as.file.own;
    (void)started(r, h->loop->os->fs_close(h->loop->uv, &r->uv.fs, h->as.file.fd, on_close), on_close);
}

void ebb__file_stop(ebb__handle *h) {
    if (h->as.file.busy == 0) close_descriptor(h);
}

/* An operation has stopped using the file. */
static void file_release(ebb__handle *h) {
    assert(h->as.file.busy > 0);
    if (--h->as.file.busy == 0 && h->state == EBB__HANDLE_CLOSING) close_descriptor(h);
}

static void close_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    (void)cx;
    (void)f;
    closer_ends(arg, EBB_CANCELLED);
}

static const ebb_operation close_op = {"file close", close_cancel, NULL};

static ebb_status file_find(const ebb_cx *cx, ebb_file f, ebb__handle **out) {
    return ebb__handle_find(cx, f.id, EBB__FILE, EBB__FILE, out);
}

/* The file is closed even if there is no memory for the future. */
ebb_future *ebb_file_close_site(ebb_cx *cx, ebb_file file, const char *site) {
    ebb__handle *h;
    ebb_future *failed;
    ebb_status st = file_find(cx, file, &h);
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    ebb_future *f = h->as.file.closer = ebb__begin(h->loop, cx, &close_op, h, site, &failed);
    ebb__handle_close(h);
    return f != NULL ? f : failed;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static void on_open(uv_fs_t *uv) {
    ebb__uv_request *r = uv->data;
    ebb__handle *h = r->handle;
    int fd = result_of(uv);
    assert(h->as.file.busy == 1 && h->as.file.fd < 0); /* only this request knows it */
    r->what = NULL;
    h->as.file.fd = fd;
    if (fd < 0) {
        ebb__request_reject(r, ebb__uv_status(fd));
        file_free(h);
        return;
    }
    if (h->state == EBB__HANDLE_OPEN) (void)ebb__request_settle(r, ebb__handle_value(h));
    else ebb__request_reject(r, EBB_ERR_CLOSED);
    file_release(h);
}

ebb_future *ebb_file_open_site(ebb_cx *cx, const char *path, int flags, int mode, const char *site) {
    ebb_loop *l;
    ebb_future *failed;
    ebb_status st = ebb__loop_admit(cx, &l);
    if (st == EBB_OK && path == NULL) st = EBB_ERR_INVALID;
    ebb__handle *h = st == EBB_OK ? ebb__handle_new(l, ebb_cx_region(cx), EBB__FILE, site, &st) : NULL;
    if (h == NULL) return ebb__loop_failed(cx, st, site);
    ebb__uv_request *r = ebb__request_new(cx, l, h, &open_op, site, &failed);
    if (r == NULL) {
        ebb__handle_free(h);
        return failed;
    }
    h->as.file = (ebb__open_file){.fd = -1, .busy = 1, .own = r};
    return started(r, l->os->fs_open(l->uv, &r->uv.fs, path, flags, mode, on_open), on_open);
}

/* ---- reading and writing ------------------------------------------------------------------------------- */

static int64_t offset_of(const ebb__uv_request *r) {
    return r->as.file.offset == EBB_FILE_HERE ? -1 : (int64_t)r->as.file.offset;
}

static void piece_over(ebb__uv_request *r) {
    ebb__handle *h = r->handle;
    ebb__free(&r->loop->allocator, r->as.file.piece, r->as.file.piece_n);
    ebb__request_free(r);
    file_release(h);
}

/* A request for n of the caller's bytes, with its buffer. NULL: return *failed. */
static ebb__uv_request *piece_new(ebb_cx *cx, ebb_file file, const ebb_operation *op, size_t n,
                                  uint64_t offset, const char *site, ebb_future **failed) {
    ebb__handle *h;
    ebb_status st = file_find(cx, file, &h);
    if (st == EBB_OK) st = ebb__admit_operation(cx);
    if (st == EBB_OK && (n > INT64_MAX || (offset > INT64_MAX && offset != EBB_FILE_HERE))) {
        st = EBB_ERR_INVALID;
    }
    size_t piece_n = n < EBB_FILE_PIECE ? n : EBB_FILE_PIECE;
    char *piece = st == EBB_OK ? ebb__alloc(&h->loop->allocator, piece_n) : NULL;
    if (piece == NULL) {
        *failed = ebb__loop_failed(cx, st == EBB_OK ? EBB_ERR_NOMEM : st, site);
        return NULL;
    }
    ebb__uv_request *r = ebb__request_new(cx, h->loop, h, op, site, failed);
    if (r == NULL) {
        ebb__free(&h->loop->allocator, piece, piece_n);
        return NULL;
    }
    r->as.file.piece = piece;
    r->as.file.piece_n = piece_n;
    r->as.file.n = r->as.file.all = n;
    r->as.file.offset = offset;
    h->as.file.busy++;
    return r;
}

static void on_read(uv_fs_t *uv) {
    ebb__uv_request *r = uv->data;
    int n = result_of(uv);
    if (n > 0 && ebb__is_wanted(r->future)) {
        memcpy(r->as.file.into, r->as.file.piece, (size_t)n);
        (void)ebb__request_settle(r, ebb_value_int(n));
    } else {
        ebb__request_reject(r, n > 0 ? EBB_CANCELLED : n == 0 ? EBB_ERR_EOF : ebb__uv_status(n));
    }
    piece_over(r);
}

ebb_future *ebb_file_read_site(ebb_cx *cx, ebb_file file, void *into, size_t n, uint64_t offset,
                               const char *site) {
    ebb_future *failed;
    if (into == NULL || n == 0) return ebb__failed(EBB_ERR_INVALID);
    ebb__uv_request *r = piece_new(cx, file, &read_op, n, offset, site, &failed);
    if (r == NULL) return failed;
    r->as.file.into = into;
    uv_buf_t buf = uv_buf_init(r->as.file.piece, (unsigned)r->as.file.piece_n);
    uv_file fd = r->handle->as.file.fd;
    return started(r, r->loop->os->fs_read(r->loop->uv, &r->uv.fs, fd, &buf, 1, offset_of(r), on_read),
                   on_read);
}

static void on_write(uv_fs_t *uv);

static int write_piece(ebb__uv_request *r) {
    size_t n = r->as.file.n < r->as.file.piece_n ? r->as.file.n : r->as.file.piece_n;
    memcpy(r->as.file.piece, r->as.file.from, n);
    uv_buf_t buf = uv_buf_init(r->as.file.piece, (unsigned)n);
    return r->loop->os->fs_write(r->loop->uv, &r->uv.fs, r->handle->as.file.fd, &buf, 1, offset_of(r),
                                 on_write);
}

/* EBB_PENDING: there is more to write. */
static ebb_status wrote(ebb__uv_request *r, int n) {
    if (n < 0) return ebb__uv_status(n);
    if (n == 0) return EBB_ERRNO(EIO);
    r->as.file.from += n;
    r->as.file.n -= (size_t)n;
    if (r->as.file.offset != EBB_FILE_HERE) r->as.file.offset += (uint64_t)n;
    if (r->as.file.n == 0) return EBB_OK;
    return ebb__is_wanted(r->future) ? EBB_PENDING : EBB_CANCELLED;
}

static void on_write(uv_fs_t *uv) {
    ebb__uv_request *r = uv->data;
    ebb_status st = wrote(r, result_of(uv));
    if (st == EBB_PENDING) {
        int code = write_piece(r);
        if (code == 0) return;
        st = ebb__uv_status(code);
    }
    if (st == EBB_OK) (void)ebb__request_settle(r, ebb_value_int((int64_t)r->as.file.all));
    else ebb__request_reject(r, st);
    piece_over(r);
}

ebb_future *ebb_file_write_site(ebb_cx *cx, ebb_file file, const void *from, size_t n, uint64_t offset,
                                const char *site) {
    ebb_future *failed;
    if (from == NULL || n == 0) return ebb__failed(EBB_ERR_INVALID);
    ebb__uv_request *r = piece_new(cx, file, &write_op, n, offset, site, &failed);
    if (r == NULL) return failed;
    r->as.file.from = from;
    return started(r, write_piece(r), on_write);
}

/* ---- operations without bytes -------------------------------------------------------------------------- */

static void on_done(uv_fs_t *uv) {
    ebb__uv_request *r = uv->data;
    ebb__handle *h = r->handle;
    int code = result_of(uv);
    if (code == 0) (void)ebb__request_settle(r, ebb_value_none());
    else ebb__request_reject(r, ebb__uv_status(code));
    ebb__request_free(r);
    if (h != NULL) file_release(h);
}

ebb_future *ebb_file_sync_site(ebb_cx *cx, ebb_file file, const char *site) {
    ebb__handle *h;
    ebb_future *failed;
    ebb_status st = file_find(cx, file, &h);
    if (st == EBB_OK) st = ebb__admit_operation(cx);
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    ebb__uv_request *r = ebb__request_new(cx, h->loop, h, &sync_op, site, &failed);
    if (r == NULL) return failed;
    h->as.file.busy++;
    return started(r, h->loop->os->fs_fsync(h->loop->uv, &r->uv.fs, h->as.file.fd, on_done), on_done);
}

/* A request with paths. NULL: return *failed. */
static ebb__uv_request *path_request(ebb_cx *cx, const ebb_operation *op, const char *path, const char *site,
                                     ebb_future **failed) {
    ebb_loop *l;
    ebb_status st = ebb__loop_admit(cx, &l);
    if (st == EBB_OK && path == NULL) st = EBB_ERR_INVALID;
    if (st == EBB_OK) return ebb__request_new(cx, l, NULL, op, site, failed);
    *failed = ebb__loop_failed(cx, st, site);
    return NULL;
}

ebb_future *ebb_file_rename_site(ebb_cx *cx, const char *from, const char *to, const char *site) {
    ebb_future *failed;
    ebb__uv_request *r = path_request(cx, &rename_op, to == NULL ? to : from, site, &failed);
    if (r == NULL) return failed;
    return started(r, r->loop->os->fs_rename(r->loop->uv, &r->uv.fs, from, to, on_done), on_done);
}

ebb_future *ebb_file_unlink_site(ebb_cx *cx, const char *path, const char *site) {
    ebb_future *failed;
    ebb__uv_request *r = path_request(cx, &unlink_op, path, site, &failed);
    if (r == NULL) return failed;
    return started(r, r->loop->os->fs_unlink(r->loop->uv, &r->uv.fs, path, on_done), on_done);
}

/* ---- stat ---------------------------------------------------------------------------------------------- */

static const ebb_type info_type = {"file info", 0, NULL, ebb__block_free, 0};

static void on_stat(uv_fs_t *uv) {
    ebb__uv_request *r = uv->data;
    uv_stat_t s = uv->statbuf;
    int code = result_of(uv);
    ebb_file_info *info = code == 0 ? ebb__block_new(&r->loop->allocator, sizeof *info) : NULL;
    if (info == NULL) {
        ebb__request_reject(r, code == 0 ? EBB_ERR_NOMEM : ebb__uv_status(code));
    } else {
        uint64_t modified = (uint64_t)s.st_mtim.tv_sec * EBB_SECOND + (uint64_t)s.st_mtim.tv_nsec;
        *info = (ebb_file_info){s.st_size, modified, (uint32_t)s.st_mode};
        (void)ebb__request_settle(r, ebb_value_owned(&info_type, info));
    }
    ebb__request_free(r);
}

ebb_future *ebb_file_stat_site(ebb_cx *cx, const char *path, const char *site) {
    ebb_future *failed;
    ebb__uv_request *r = path_request(cx, &stat_op, path, site, &failed);
    if (r == NULL) return failed;
    return started(r, r->loop->os->fs_stat(r->loop->uv, &r->uv.fs, path, on_stat), on_stat);
}

const ebb_file_info *ebb_file_info_of(const ebb_value *v) {
    return v->type == &info_type ? v->as.p : NULL;
}
