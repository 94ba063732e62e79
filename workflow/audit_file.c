/* An audit log in a file. The existing lines are read once, from the start, before any line is added.
 *
 * The file has only complete lines, except for the rest of one if a process died during a write. A write that fails
 * half way is undone at once. While undoing fails too, nothing else is written. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE /* flock */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/map.h"
#include "loop/platform.h"
#include "workflow/audit_read.h"

typedef struct log_file {
    int fd;
    bool torn;  /* there are bytes after the last complete line */
    off_t size; /* the end of the last complete line */
} log_file;

/* ---- appending ------------------------------------------------------------------------------------ */

static ebb_status mend(log_file *f) {
    f->torn = ftruncate(f->fd, f->size) != 0;
    return f->torn ? EBB_ERRNO(errno) : EBB_OK;
}

static ebb_status append(void *ctx, const char *line, size_t n) {
    log_file *f = ctx;
    assert(n > 0 && line[n - 1] == '\n'); /* the file has only complete lines */
    ebb_status st = f->torn ? mend(f) : EBB_OK;
    size_t done = 0;
    while (st == EBB_OK && done < n) {
        ssize_t got = write(f->fd, line + done, n - done);
        if (got > 0) done += (size_t)got;
        else if (got == 0) st = EBB_ERRNO(EIO);
        else if (errno != EINTR) st = EBB_ERRNO(errno);
    }
    if (st == EBB_OK) f->size += (off_t)n;
    else if (done > 0) (void)mend(f);
    return st;
}

static uint64_t now(void *ctx) {
    struct timespec t;
    (void)ctx;
    ebb__platform_here()->wall_clock(&t);
    if (t.tv_sec < 0) return 0;
    return (uint64_t)t.tv_sec * EBB_SECOND + (uint64_t)t.tv_nsec;
}

/* ---- the file ------------------------------------------------------------------------------------- */

/* Opens and locks the file. Only a regular file can be read from its start and truncated. */
static ebb_status file_open(const char *path, log_file *out) {
    struct stat s;
    if (path == NULL) return EBB_ERRNO(EINVAL);
    do out->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
    while (out->fd < 0 && errno == EINTR);
    if (out->fd < 0) return EBB_ERRNO(errno);
    if (fstat(out->fd, &s) != 0) return EBB_ERRNO(errno);
    if (!S_ISREG(s.st_mode)) return EBB_ERRNO(EINVAL);
    if (flock(out->fd, LOCK_EX | LOCK_NB) == 0) return EBB_OK;
    return errno == EWOULDBLOCK ? EBB_ERR_BUSY : EBB_ERRNO(errno);
}

static ebb_status read_at(int fd, char *to, size_t n, off_t at, size_t *got) {
    *got = 0;
    while (*got < n) {
        ssize_t k = pread(fd, to + *got, n - *got, at + (off_t)*got);
        if (k == 0) break;
        if (k > 0) *got += (size_t)k;
        else if (errno != EINTR) return EBB_ERRNO(errno);
    }
    return EBB_OK;
}

/* ---- existing lines ------------------------------------------------------------------------------- */

/* The last line of a workflow that has not ended. */
typedef struct pending {
    uint64_t number, line;
    off_t at;
    size_t n;
} pending;

/* `audit` has the number and hash of the last line that was read. Its buffer is used for reading. */
typedef struct past {
    ebb_audit *audit;
    log_file *file;
    ebb__map pending; /* by number */
    uint64_t dropped; /* bytes of an incomplete last line */
} past;

static ebb_status remember(past *p, const ebb__audit_line *line, size_t n) {
    if (line->number == 0) return EBB_OK;
    if (line->number > p->audit->number) p->audit->number = line->number;
    pending *w = ebb__map_find(&p->pending, line->number);
    if (ebb__audit_is_end(line->event)) {
        if (w != NULL) ebb__map_remove(&p->pending, line->number);
        return EBB_OK;
    }
    if (line->event == EBB__WE_OPENED) w = ebb__map_put(&p->pending, line->number);
    if (w == NULL) return line->event == EBB__WE_OPENED ? EBB_ERR_NOMEM : EBB_OK;
    *w = (pending){line->number, line->seq, p->file->size, n};
    return EBB_OK;
}

static bool is_start(const ebb__audit_line *line) {
    const char *version = json_string_value(json_object_get(line->evidence, "audit"));
    return line->event == EBB__WE_STARTED && version != NULL && strcmp(version, EBB__AUDIT_VERSION) == 0;
}

static ebb_status take_line(past *p, const char *bytes, size_t n) {
    ebb_audit *a = p->audit;
    assert(!p->file->torn); /* nothing follows a torn line */
    ebb__audit_line line;
    char why[EBB__AUDIT_WHY];
    ebb_status st = ebb__audit_line_read(bytes, n, &line, why);
    if (st != EBB_OK) return st;
    bool known = a->seq > 0 || is_start(&line);
    st = known && ebb__audit_line_follows(&line, a->seq, a->prev, why) ? remember(p, &line, n)
                                                                       : EBB_ERR_CORRUPT;
    a->seq = line.seq;
    memcpy(a->prev, line.hash, sizeof a->prev);
    p->file->size += (off_t)n + 1;
    ebb__audit_line_free(&line);
    return st;
}

/* An incomplete last line must be the start of the expected next line. Otherwise the file is not an audit log, and
 * must not be cut. */
static ebb_status take_rest(past *p, const char *bytes, size_t n) {
    if (!ebb__audit_is_torn(bytes, n, p->audit->seq)) return EBB_ERR_CORRUPT;
    p->dropped = n;
    p->file->torn = n > 0;
    return EBB_OK;
}

/* The buffer holds a line of any length, so a full buffer without a newline is not a log. */
static ebb_status take_all(past *p) {
    char *buffer = p->audit->line;
    size_t room = sizeof p->audit->line, got;
    for (;;) {
        ebb_status st = read_at(p->file->fd, buffer, room, p->file->size, &got);
        const char *at = buffer, *end = buffer + got, *stop;
        while (st == EBB_OK && (stop = memchr(at, '\n', (size_t)(end - at))) != NULL) {
            st = take_line(p, at, (size_t)(stop - at));
            at = stop + 1;
        }
        if (st != EBB_OK) return st;
        if (got < room) return take_rest(p, at, (size_t)(end - at));
        if (at == buffer) return EBB_ERR_CORRUPT;
    }
}

/* ---- unfinished workflows ------------------------------------------------------------------------- */

static ebb_status read_again(past *p, const pending *w, ebb__audit_line *out) {
    char why[EBB__AUDIT_WHY];
    size_t got;
    ebb_status st = read_at(p->file->fd, p->audit->line, w->n, w->at, &got);
    if (st != EBB_OK) return st;
    return got == w->n ? ebb__audit_line_read(p->audit->line, got, out, why) : EBB_ERR_CORRUPT;
}

static void tell(const ebb__audit_line *line, ebb_audit_unfinished *out) {
    *out = (ebb_audit_unfinished){.number = line->number, .state = line->to, .line = line->seq};
    snprintf(out->workflow, sizeof out->workflow, "%s", line->type);
    snprintf(out->name, sizeof out->name, "%s", line->name);
}

static ebb_status note(ebb_audit *a, const ebb__audit_line *line) {
    ebb_reason chain[EBB_CHAIN_DEPTH];
    ebb__audit_entry e = {.event = EBB__WE_INTERRUPTED,
                          .type = line->type,
                          .name = line->name,
                          .number = line->number,
                          .parent = line->parent,
                          .from = line->to,
                          .to = line->to,
                          .elapsed = line->elapsed,
                          .budget = line->budget,
                          .chain = chain,
                          .epoch = (uint8_t)line->epoch,
                          .in_flight = line->in_flight,
                          .inside = line->inside,
                          .refused = line->refused,
                          .facts = {{"line", NULL, line->seq}}};
    while (e.chain_n < EBB_CHAIN_DEPTH && ebb__audit_reason(line, e.chain_n, &chain[e.chain_n])) e.chain_n++;
    return ebb__audit_write(a, &e);
}

static int by_number(const void *x, const void *y) {
    const ebb_audit_unfinished *a = x, *b = y;
    return (a->number > b->number) - (a->number < b->number);
}

/* Allocates the list of unfinished workflows and fills it. Nothing is written yet. */
static ebb_status collect(past *p) {
    ebb_audit *a = p->audit;
    const pending *w;
    size_t at = 0;
    if (p->pending.n == 0) return EBB_OK;
    a->unfinished = ebb__alloc(&a->allocator, p->pending.n * sizeof *a->unfinished);
    if (a->unfinished == NULL) return EBB_ERR_NOMEM;
    a->unfinished_n = p->pending.n;
    for (size_t i = 0; (w = ebb__map_next(&p->pending, &at)) != NULL; i++) {
        ebb__audit_line line;
        ebb_status st = read_again(p, w, &line);
        if (st != EBB_OK) return st;
        tell(&line, &a->unfinished[i]);
        ebb__audit_line_free(&line);
    }
    qsort(a->unfinished, a->unfinished_n, sizeof *a->unfinished, by_number);
    return EBB_OK;
}

static ebb_status interrupt_all(past *p) {
    ebb_status st = EBB_OK;
    for (size_t i = 0; st == EBB_OK && i < p->audit->unfinished_n; i++) {
        ebb__audit_line line;
        st = read_again(p, ebb__map_find(&p->pending, p->audit->unfinished[i].number), &line);
        if (st != EBB_OK) break;
        st = note(p->audit, &line);
        ebb__audit_line_free(&line);
    }
    return st;
}

/* ---- opening -------------------------------------------------------------------------------------- */

static ebb_status go_on(ebb_audit *a, log_file *f) {
    past p = {.audit = a, .file = f};
    ebb__map_init(&p.pending, a->allocator, sizeof(pending));
    ebb_status st = take_all(&p);
    if (st == EBB_OK) st = collect(&p);
    if (st == EBB_OK) st = ebb__audit_start(a, p.dropped);
    if (st == EBB_OK) st = interrupt_all(&p);
    ebb__map_free(&p.pending);
    return st;
}

static void release(ebb_allocator a, log_file *f, ebb_audit *audit) {
    if (f->fd >= 0) (void)close(f->fd);
    ebb__free(&a, f, sizeof *f);
    ebb_audit_close(audit);
}

ebb_status ebb_audit_open(ebb_allocator a, const char *path, ebb_audit **out) {
    log_file *f = ebb__alloc(&a, sizeof *f);
    if (f == NULL) return EBB_ERR_NOMEM;
    *f = (log_file){.fd = -1};
    ebb_audit *audit = ebb__audit_new(a, &(ebb_audit_sink){append, now, f});
    ebb_status st = audit == NULL ? EBB_ERR_NOMEM : file_open(path, f);
    if (st == EBB_OK) st = go_on(audit, f);
    if (st != EBB_OK) {
        release(a, f, audit);
        return st;
    }
    audit->fd = f->fd;
    *out = audit;
    return EBB_OK;
}

uint64_t ebb__audit_file_size(const ebb_audit *audit) {
    const log_file *f = audit->sink.ctx;
    return audit->fd >= 0 ? (uint64_t)f->size : 0;
}

void ebb__audit_file_close(ebb_audit *audit) {
    if (audit->fd < 0) return;
    (void)close(audit->fd);
    ebb__free(&audit->allocator, audit->sink.ctx, sizeof(log_file));
}
