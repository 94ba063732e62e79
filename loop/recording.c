#define _DEFAULT_SOURCE /* flock */
#define _POSIX_C_SOURCE 200809L
#include "loop/recording.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

enum { TRACE = 0, JOURNAL = 1, FILES = 2, RING_BYTES = 4 << 20, HEADER_BYTES = 64 };
#define QUIET_NS EBB_SECOND

/* `lock` guards `full`, `n` and `stop`. The loop fills one buffer while the thread writes the other. */
typedef struct sheet {
    int fd; /* -1: not recorded */
    char *full, *writing;
    size_t n, room; /* bytes in `full`; of each buffer */
} sheet;

struct ebb__recording {
    ebb_allocator allocator;
    uv_thread_t thread;
    uv_mutex_t lock;
    uv_cond_t more;
    bool stop;
    uint64_t due;       /* when a block that is not full is handed over; EBB_FOREVER: there is none */
    ebb_status status;  /* the thread's, until it has ended */
    ebb_status *report; /* may be NULL */
    sheet sheet[FILES];
};

/* ---- the thread --------------------------------------------------------------------------------------- */

/* After an error nothing more is written: a file with a hole would be taken for damaged. */
static void write_all(ebb__recording *r, int fd, const char *bytes, size_t n) {
    while (n > 0 && r->status == EBB_OK) {
        ssize_t k = write(fd, bytes, n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) r->status = EBB_ERRNO(errno);
        if (k <= 0) return;
        bytes += k;
        n -= (size_t)k;
    }
}

static bool has_work(const ebb__recording *r) {
    return r->sheet[TRACE].n > 0 || r->sheet[JOURNAL].n > 0;
}

static void thread_main(void *arg) {
    ebb__recording *r = arg;
    uv_mutex_lock(&r->lock);
    while (!r->stop || has_work(r)) {
        if (!has_work(r)) {
            uv_cond_wait(&r->more, &r->lock);
            continue;
        }
        size_t n[FILES];
        for (int i = 0; i < FILES; i++) {
            sheet *s = &r->sheet[i];
            char *full = s->full;
            s->full = s->writing;
            s->writing = full;
            n[i] = s->n;
            s->n = 0;
        }
        uv_mutex_unlock(&r->lock);
        for (int i = 0; i < FILES; i++) write_all(r, r->sheet[i].fd, r->sheet[i].writing, n[i]);
        uv_mutex_lock(&r->lock);
    }
    uv_mutex_unlock(&r->lock);
}

/* ---- the loop ----------------------------------------------------------------------------------------- */

static void append(void *ctx, const void *bytes, size_t n) {
    sheet *s = ctx;
    assert(n <= s->room - s->n); /* a buffer has room for the whole ring */
    if (n > s->room - s->n) return;
    memcpy(s->full + s->n, bytes, n);
    s->n += n;
}

static void take(sheet *s, ebb_runtime *rt, bool journal, bool flush) {
    if (s->fd < 0) return;
    if (journal) ebb_journal_take(rt, flush, append, s);
    else ebb_trace_take(rt, flush, append, s);
}

void ebb__recording_turn(ebb__recording *r, ebb_runtime *rt) {
    bool full[FILES] = {ebb__rt_has_blocks(rt, false), ebb__rt_has_blocks(rt, true)};
    bool quiet = r->due <= ebb__now(rt);
    if (quiet || full[TRACE] || full[JOURNAL]) {
        uv_mutex_lock(&r->lock);
        for (int i = 0; i < FILES; i++) {
            if ((quiet || full[i]) && r->sheet[i].n == 0) take(&r->sheet[i], rt, i == JOURNAL, quiet);
        }
        uv_cond_signal(&r->more);
        uv_mutex_unlock(&r->lock);
        r->due = EBB_FOREVER;
    }
    if (r->due == EBB_FOREVER && (ebb__rt_has_records(rt, false) || ebb__rt_has_records(rt, true)))
        r->due = ebb__now(rt) + QUIET_NS;
}

uint64_t ebb__recording_due(const ebb__recording *r) {
    return r->due;
}

/* ---- life --------------------------------------------------------------------------------------------- */

static void files_close(ebb__recording *r) {
    for (int i = 0; i < FILES; i++) {
        sheet *s = &r->sheet[i];
        if (s->fd >= 0 && close(s->fd) != 0 && r->status == EBB_OK) r->status = EBB_ERRNO(errno);
        ebb__free(&r->allocator, s->full, s->room);
        ebb__free(&r->allocator, s->writing, s->room);
    }
}

/* Two recordings in one file would make it a file of neither. What is no file, as a pipe, is its reader's business. */
static ebb_status file_open(const char *path, int *fd) {
    struct stat is;
    *fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (*fd < 0 || fstat(*fd, &is) != 0) return EBB_ERRNO(errno);
    if (!S_ISREG(is.st_mode)) return EBB_OK;
    if (flock(*fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return EBB_ERRNO(EBUSY);
    return ftruncate(*fd, 0) == 0 ? EBB_OK : EBB_ERRNO(errno);
}

static ebb_status sheet_open(ebb__recording *r, sheet *s, const char *path, ebb_recording *wanted) {
    if (path == NULL) return EBB_OK;
    if (wanted->bytes == 0) wanted->bytes = RING_BYTES;
    wanted->write = NULL;
    /* The ring is rounded up to whole blocks, two at least; the last gap has a block of its own. */
    s->room = wanted->bytes + 4 * 4096 + HEADER_BYTES;
    s->full = ebb__alloc(&r->allocator, s->room);
    s->writing = ebb__alloc(&r->allocator, s->room);
    if (s->full == NULL || s->writing == NULL) return EBB_ERR_NOMEM;
    return file_open(path, &s->fd);
}

static ebb_status thread_start(ebb__recording *r) {
    int code = uv_mutex_init(&r->lock);
    if (code != 0) return ebb__uv_status(code);
    code = uv_cond_init(&r->more);
    if (code == 0) {
        code = uv_thread_create(&r->thread, thread_main, r);
        if (code == 0) return EBB_OK;
        uv_cond_destroy(&r->more);
    }
    uv_mutex_destroy(&r->lock);
    return ebb__uv_status(code);
}

ebb_status ebb__recording_new(const ebb_loop_opts *opts, ebb_runtime_opts *rt, ebb__recording **out) {
    *out = NULL;
    if (opts->trace_file == NULL && opts->journal_file == NULL) return EBB_OK;
    bool both = opts->trace_file != NULL && opts->journal_file != NULL;
    if (both && strcmp(opts->trace_file, opts->journal_file) == 0) return EBB_ERR_INVALID;
    const ebb_allocator *a = &opts->runtime.allocator;
    ebb__recording *r = ebb__alloc(a, sizeof *r);
    if (r == NULL) return EBB_ERR_NOMEM;
    *r = (ebb__recording){
        .allocator = *a, .report = opts->recording, .due = EBB_FOREVER, .sheet = {{.fd = -1}, {.fd = -1}}};
    ebb_status st = sheet_open(r, &r->sheet[TRACE], opts->trace_file, &rt->trace);
    if (st == EBB_OK) st = sheet_open(r, &r->sheet[JOURNAL], opts->journal_file, &rt->journal);
    if (st == EBB_OK) st = thread_start(r);
    if (st == EBB_OK) {
        *out = r;
        return EBB_OK;
    }
    files_close(r);
    ebb__free(a, r, sizeof *r);
    return st;
}

void ebb__recording_end(ebb__recording *r, ebb_runtime *rt) {
    if (r == NULL) return;
    uv_mutex_lock(&r->lock);
    r->stop = true;
    uv_cond_signal(&r->more);
    uv_mutex_unlock(&r->lock);
    uv_thread_join(&r->thread);
    for (int i = 0; i < FILES && rt != NULL; i++) {
        sheet *s = &r->sheet[i];
        take(s, rt, i == JOURNAL, true);
        write_all(r, s->fd, s->full, s->n);
    }
    uv_cond_destroy(&r->more);
    uv_mutex_destroy(&r->lock);
    files_close(r);
    if (r->status != EBB_OK && r->report != NULL) *r->report = r->status;
    ebb_allocator a = r->allocator;
    ebb__free(&a, r, sizeof *r);
}
