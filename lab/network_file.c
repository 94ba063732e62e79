/* Files of the machines, in memory. Every directory exists. A file that was removed lives until it is closed. */
#define _POSIX_C_SOURCE 200809L
#include "lab/network.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { BLOCK = 4096, BIGGEST = 1 << 30 };

struct ebb__net_file {
    uint32_t machine;
    char *path; /* NULL: removed */
    char *bytes;
    size_t n, room;
    int mode;
    struct timespec modified;
    ebb__net_file *next;
};

struct ebb__net_open_file {
    ebb__net_file *file;
    ebb__net_program *program;
    int flags;
    size_t at;
};

/* ---- the disk ------------------------------------------------------------------------------------------ */

/* "./a" is "a". */
static const char *plain(const char *path) {
    while (path[0] == '.' && path[1] == '/') path += 2;
    return path;
}

static ebb__net_file *file_at(const ebb__net *net, uint32_t machine, const char *path) {
    ebb__net_file *f = net->files;
    while (f != NULL && (f->machine != machine || f->path == NULL || strcmp(f->path, plain(path)) != 0))
        f = f->next;
    return f;
}

static void touch(ebb__net_file *f) {
    ebb__net_platform.wall_clock(&f->modified);
}

static ebb__net_file *file_new(ebb__net *net, uint32_t machine, const char *path, int mode) {
    ebb__net_file *f = ebb_lab_alloc(net->lab, sizeof *f);
    if (f == NULL) return NULL;
    *f = (ebb__net_file){.machine = machine, .path = ebb__net_copy(net, plain(path)), .mode = mode};
    touch(f);
    f->next = net->files;
    net->files = f;
    return f->path == NULL ? NULL : f;
}

/* The bytes of the other files of the machine. A removed file that is still open does not count. */
static uint64_t used_beside(const ebb__net *net, const ebb__net_file *mine) {
    uint64_t n = 0;
    for (const ebb__net_file *f = net->files; f != NULL; f = f->next)
        n += f != mine && f->machine == mine->machine && f->path != NULL ? f->n : 0;
    return n;
}

/* The old block stays until the end of the run. */
static bool grow(ebb__net *net, ebb__net_file *f, size_t n) {
    if (n <= f->room) return true;
    size_t room = f->room == 0 ? BLOCK : f->room;
    while (room < n) room *= 2;
    char *bytes = ebb_lab_alloc(net->lab, room);
    if (bytes == NULL) return false;
    if (f->n > 0) memcpy(bytes, f->bytes, f->n);
    f->bytes = bytes;
    f->room = room;
    return true;
}

/* How many bytes fit on the disk, -ENOSPC, or -EFBIG. A gap is filled with zeros: the block may have bytes from before the file
 * was truncated. */
static int put(ebb__net *net, ebb__net_file *f, size_t at, const char *from, size_t n) {
    uint64_t most = net->limits->disk_bytes, end = at + n;
    if (n == 0) return 0;
    if (end > BIGGEST || at > BIGGEST) return -EFBIG;
    if (most != 0 && end > f->n) {
        uint64_t others = used_beside(net, f), left = most > others ? most - others : 0;
        if (end > left) {
            end = left > at ? left : at;
            net->disturbed = true;
        }
        if (end == at) return -ENOSPC;
    }
    assert(end > at && end <= BIGGEST && f->n <= f->room);
    if (!grow(net, f, end)) return -ENOMEM;
    if (at > f->n) memset(f->bytes + f->n, 0, at - f->n);
    memcpy(f->bytes + at, from, end - at);
    if (end > f->n) f->n = end;
    touch(f);
    return (int)(end - at);
}

/* ---- requests ------------------------------------------------------------------------------------------ */

static ebb__net *net_of(const ebb__net_request *r) {
    return r->loop->program->net;
}

static uv_fs_t *fs_of(const ebb__net_request *r) {
    return (uv_fs_t *)r->uv;
}

static ebb__net_open_file *open_file_of(const ebb__net_request *r) {
    const ebb__net_descriptor *d = ebb__net_fd(r->loop->program, r->as.fs.fd);
    return d == NULL ? NULL : d->file;
}

/* An operation of the disk fails: with EIO, or as if the disk were full. */
static int disk_error(ebb__net_request *r, bool writes) {
    if (!ebb__net_fault_now(net_of(r), EBB__NET_FILE_ERROR)) return 0;
    return writes && ebb__choose(net_of(r)->lab, 2) == 1 ? -ENOSPC : -EIO;
}

static void fs_back(ebb__net_request *r) {
    if (r->cancelled) fs_of(r)->result = UV_ECANCELED;
    r->as.fs.callback(fs_of(r));
}

static ebb__net_request *fs_new(uv_loop_t *loop, uv_fs_t *uv, void (*act)(ebb__net_request *r),
                                uv_fs_cb callback) {
    ebb__net_request *r = ebb__net_request_new(loop, uv, act, fs_back);
    if (r == NULL) return NULL;
    uv->result = 0;
    r->as.fs.callback = callback;
    return r;
}

static int with_path(ebb__net_request *r, const char *path, const char *to) {
    if (r == NULL) return UV_ENOMEM;
    r->as.fs.path = ebb__net_copy(net_of(r), path);
    r->as.fs.to = to == NULL ? NULL : ebb__net_copy(net_of(r), to);
    return r->as.fs.path == NULL ? ebb__net_request_drop(r) : 0;
}

void ebb__net_fs_req_cleanup(uv_fs_t *request) {
    (void)request;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

static int open_it(ebb__net_request *r, ebb__net_file *f) {
    ebb__net_program *p = r->loop->program;
    ebb__net_open_file *o = ebb_lab_alloc(p->net->lab, sizeof *o);
    if (o == NULL) return -ENOMEM;
    *o = (ebb__net_open_file){.file = f, .program = p, .flags = r->as.fs.flags};
    return ebb__net_fd_new(p, (ebb__net_descriptor){.file = o});
}

static void open_act(ebb__net_request *r) {
    ebb__net *net = net_of(r);
    uint32_t machine = r->loop->program->machine;
    int flags = r->as.fs.flags, error = disk_error(r, (flags & O_CREAT) != 0);
    ebb__net_file *f = file_at(net, machine, r->as.fs.path);
    if (error == 0 && f == NULL && !(flags & O_CREAT)) error = -ENOENT;
    if (error == 0 && f != NULL && (flags & O_CREAT) && (flags & O_EXCL)) error = -EEXIST;
    if (error == 0 && f == NULL && (f = file_new(net, machine, r->as.fs.path, r->as.fs.mode)) == NULL)
        error = -ENOMEM;
    int fd = error == 0 ? open_it(r, f) : error;
    if (fd >= 0 && (flags & O_TRUNC)) f->n = 0;
    fs_of(r)->result = fd;
}

int ebb__net_fs_open(uv_loop_t *loop, uv_fs_t *request, const char *path, int flags, int mode,
                     uv_fs_cb callback) {
    ebb__net_request *r = fs_new(loop, request, open_act, callback);
    int code = with_path(r, path, NULL);
    if (code != 0) return code;
    r->as.fs.flags = flags;
    r->as.fs.mode = mode;
    return 0;
}

static void close_act(ebb__net_request *r) {
    ebb__net_fd_close(r->loop->program, r->as.fs.fd);
}

int ebb__net_fs_close(uv_loop_t *loop, uv_fs_t *request, uv_file file, uv_fs_cb callback) {
    ebb__net_request *r = fs_new(loop, request, close_act, callback);
    if (r == NULL) return UV_ENOMEM;
    r->as.fs.fd = file;
    return 0;
}

/* ---- reading and writing ------------------------------------------------------------------------------- */

enum { ALTERNATIVES = 8 };

static size_t choose_piece(ebb_lab *lab, size_t n) {
    return n > 1 && ebb__choose(lab, ALTERNATIVES) == ALTERNATIVES - 1 ? (n + 1) / 2 : n;
}

static void read_act(ebb__net_request *r) {
    ebb__net_open_file *o = open_file_of(r);
    int error = o == NULL || (o->flags & O_ACCMODE) == O_WRONLY ? -EBADF : disk_error(r, false);
    fs_of(r)->result = error;
    if (error != 0) return;
    size_t at = r->as.fs.offset < 0 ? o->at : (size_t)r->as.fs.offset;
    size_t left = at < o->file->n ? o->file->n - at : 0, n = r->as.fs.n < left ? r->as.fs.n : left;
    n = choose_piece(net_of(r)->lab, n);
    if (n > 0) memcpy(r->as.fs.bytes, o->file->bytes + at, n);
    if (r->as.fs.offset < 0) o->at += n;
    fs_of(r)->result = (ssize_t)n;
}

static void write_act(ebb__net_request *r) {
    ebb__net_open_file *o = open_file_of(r);
    int got = o == NULL || (o->flags & O_ACCMODE) == O_RDONLY ? -EBADF : disk_error(r, true);
    fs_of(r)->result = got;
    if (got != 0) return;
    bool here = r->as.fs.offset < 0;
    size_t at = (o->flags & O_APPEND) ? o->file->n : here ? o->at : (size_t)r->as.fs.offset;
    got = put(net_of(r), o->file, at, r->as.fs.bytes, choose_piece(net_of(r)->lab, r->as.fs.n));
    if (got > 0 && here) o->at = at + (size_t)got;
    fs_of(r)->result = got;
}

static int with_bytes(ebb__net_request *r, uv_file file, const uv_buf_t bufs[], unsigned n, int64_t offset) {
    if (r == NULL || n != 1) return r == NULL ? UV_ENOMEM : UV_EINVAL;
    r->as.fs.fd = file;
    r->as.fs.bytes = bufs[0].base;
    r->as.fs.n = bufs[0].len;
    r->as.fs.offset = offset;
    return 0;
}

int ebb__net_fs_read(uv_loop_t *loop, uv_fs_t *request, uv_file file, const uv_buf_t bufs[], unsigned n,
                     int64_t offset, uv_fs_cb callback) {
    return with_bytes(fs_new(loop, request, read_act, callback), file, bufs, n, offset);
}

int ebb__net_fs_write(uv_loop_t *loop, uv_fs_t *request, uv_file file, const uv_buf_t bufs[], unsigned n,
                      int64_t offset, uv_fs_cb callback) {
    return with_bytes(fs_new(loop, request, write_act, callback), file, bufs, n, offset);
}

static void fsync_act(ebb__net_request *r) {
    fs_of(r)->result = open_file_of(r) == NULL ? -EBADF : disk_error(r, true);
}

int ebb__net_fs_fsync(uv_loop_t *loop, uv_fs_t *request, uv_file file, uv_fs_cb callback) {
    ebb__net_request *r = fs_new(loop, request, fsync_act, callback);
    if (r == NULL) return UV_ENOMEM;
    r->as.fs.fd = file;
    return 0;
}

/* ---- names of files ------------------------------------------------------------------------------------ */

static void rename_act(ebb__net_request *r) {
    ebb__net *net = net_of(r);
    uint32_t machine = r->loop->program->machine;
    ebb__net_file *f = file_at(net, machine, r->as.fs.path), *old = file_at(net, machine, r->as.fs.to);
    int error = f == NULL ? -ENOENT : disk_error(r, false);
    fs_of(r)->result = error;
    if (error != 0 || f == old) return;
    if (old != NULL) old->path = NULL;
    f->path = ebb__net_copy(net, plain(r->as.fs.to));
}

int ebb__net_fs_rename(uv_loop_t *loop, uv_fs_t *request, const char *from, const char *to,
                       uv_fs_cb callback) {
    return with_path(fs_new(loop, request, rename_act, callback), from, to);
}

static void unlink_act(ebb__net_request *r) {
    ebb__net_file *f = file_at(net_of(r), r->loop->program->machine, r->as.fs.path);
    int error = f == NULL ? -ENOENT : disk_error(r, false);
    if (error == 0) f->path = NULL;
    fs_of(r)->result = error;
}

int ebb__net_fs_unlink(uv_loop_t *loop, uv_fs_t *request, const char *path, uv_fs_cb callback) {
    return with_path(fs_new(loop, request, unlink_act, callback), path, NULL);
}

static void stat_act(ebb__net_request *r) {
    const ebb__net_file *f = file_at(net_of(r), r->loop->program->machine, r->as.fs.path);
    fs_of(r)->result = f == NULL ? -ENOENT : disk_error(r, false);
    if (fs_of(r)->result != 0) return;
    uv_stat_t *s = &fs_of(r)->statbuf;
    memset(s, 0, sizeof *s);
    s->st_size = f->n;
    s->st_mode = (uint64_t)(S_IFREG | f->mode);
    s->st_mtim.tv_sec = f->modified.tv_sec;
    s->st_mtim.tv_nsec = f->modified.tv_nsec;
}

int ebb__net_fs_stat(uv_loop_t *loop, uv_fs_t *request, const char *path, uv_fs_cb callback) {
    return with_path(fs_new(loop, request, stat_act, callback), path, NULL);
}

/* ---- for scenarios ------------------------------------------------------------------------------------- */

ebb_status ebb_lab_file_put(ebb_lab *lab, const char *program, const char *path, const void *bytes,
                            size_t n) {
    ebb__net *net = lab->network;
    const ebb__net_program *p = net == NULL ? NULL : ebb__net_program_named(net, program);
    if (p == NULL) return EBB_ERR_INVALID;
    ebb__net_file *f = file_at(net, p->machine, path);
    if (f == NULL) f = file_new(net, p->machine, path, 0644);
    if (f == NULL || !grow(net, f, n)) return EBB_ERR_NOMEM;
    if (n > 0) memcpy(f->bytes, bytes, n);
    f->n = n;
    return EBB_OK;
}

const void *ebb_lab_file_get(ebb_lab *lab, const char *program, const char *path, size_t *n) {
    ebb__net *net = lab->network;
    const ebb__net_program *p = net == NULL ? NULL : ebb__net_program_named(net, program);
    const ebb__net_file *f = p == NULL ? NULL : file_at(net, p->machine, path);
    *n = f == NULL ? 0 : f->n;
    return f == NULL ? NULL : f->bytes != NULL ? f->bytes : "";
}
