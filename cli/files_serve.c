/* cli/files_serve.c - the files that `ebb files` has open. */
#define _GNU_SOURCE /* preadv2 */
#include "cli/files_serve.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- open files -------------------------------------------------------------------------------------- */

ebb__served_file *ebb__files_take(ebb__files *all, dev_t device, ino_t inode) {
    for (ebb__served_file **at = &all->first, *f; (f = *at) != NULL; at = &f->next) {
        if (f->inode != inode || f->device != device) continue;
        *at = f->next;
        f->next = all->first;
        all->first = f;
        if (f->users++ == 0) all->unused--;
        return f;
    }
    return NULL;
}

ebb__served_file *ebb__files_add(ebb__files *all, int fd, dev_t device, ino_t inode) {
    ebb__served_file *f = malloc(sizeof *f);
    if (f == NULL) {
        close(fd);
        return NULL;
    }
    *f = (ebb__served_file){.next = all->first, .fd = fd, .device = device, .inode = inode, .users = 1};
    all->first = f;
    return f;
}

static void close_at(ebb__files *all, ebb__served_file **at) {
    ebb__served_file *f = *at;
    *at = f->next;
    all->unused--;
    close(f->fd);
    free(f);
}

/* The last unused file in the list. */
static ebb__served_file **oldest(ebb__files *all) {
    ebb__served_file **found = NULL;
    for (ebb__served_file **at = &all->first; *at != NULL; at = &(*at)->next) {
        if ((*at)->users == 0) found = at;
    }
    return found;
}

void ebb__files_leave(ebb__files *all, ebb__served_file *f, uint64_t now) {
    if (--f->users > 0) return;
    f->released_at = now;
    all->unused++;
    while (all->unused > all->most_unused) close_at(all, oldest(all));
}

void ebb__files_sweep(ebb__files *all, uint64_t before) {
    ebb__served_file **at = &all->first;
    while (*at != NULL) {
        if ((*at)->users == 0 && (*at)->released_at < before) close_at(all, at);
        else at = &(*at)->next;
    }
}

/* ---- reading ----------------------------------------------------------------------------------------- */

/* A file system that can't read without waiting is read in the pool. */
ebb_status ebb__file_read_now(int fd, void *into, size_t n, uint64_t offset, size_t *got) {
    struct iovec piece = {into, n};
    ssize_t done = preadv2(fd, &piece, 1, (off_t)offset, RWF_NOWAIT);
    *got = done > 0 ? (size_t)done : 0;
    if (done > 0) return EBB_OK;
    if (done == 0) return EBB_ERR_EOF;
    return errno == EAGAIN || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR ? EBB_PENDING
                                                                                       : EBB_ERRNO(errno);
}

ebb_status ebb__file_read_run(void *arg, ebb_value *v) {
    ebb__file_read_job *job = arg;
    ssize_t n;
    (void)v;
    do n = pread(job->fd, job->into, job->n, (off_t)job->offset);
    while (n < 0 && errno == EINTR);
    if (n < 0) return EBB_ERRNO(errno);
    job->got = (size_t)n;
    return n > 0 ? EBB_OK : EBB_ERR_EOF;
}
