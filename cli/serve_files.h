/* cli/serve_files.h - the files that `ebb serve` has open.
 *
 * Requests for one file share one descriptor. It stays open for a moment after the last of them, so that a file
 * that is asked for again and again is opened once. A file is told by its device and inode, which nobody else
 * gets while it is open: a name that leads elsewhere by now is another file. Whether a request may have it is not
 * decided here, but by its lookup, each time. */
#ifndef EBB_CLI_SERVE_FILES_H
#define EBB_CLI_SERVE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <ebb/ebb.h>

enum {
    EBB__FILES_KEPT = 64
}; /* that nobody uses; the one that was not used for the longest time goes first */

typedef struct ebb__served_file {
    struct ebb__served_file *next;
    int fd;
    dev_t device;
    ino_t inode;
    uint32_t users;
    uint64_t left; /* when the last user left */
} ebb__served_file;

typedef struct ebb__files {
    ebb__served_file *first; /* the one that was used last comes first */
    uint32_t unused;
    uint32_t most_unused; /* EBB__FILES_KEPT; 0: none is kept any more */
} ebb__files;

/* One more user of a file that is open. NULL: it is not. */
ebb__served_file *ebb__files_take(ebb__files *all, dev_t device, ino_t inode);
/* A file that was opened, with its first user. Takes the descriptor, also if there is no memory: NULL. */
ebb__served_file *ebb__files_add(ebb__files *all, int fd, dev_t device, ino_t inode);
void ebb__files_leave(ebb__files *all, ebb__served_file *f, uint64_t now);
/* Closes those that nobody has used since `before`. */
void ebb__files_sweep(ebb__files *all, uint64_t before);

/* Reads at `offset` what the page cache has. EBB_PENDING: it would have to wait for the disk; EBB_ERR_EOF;
 * EBB_ERRNO(errno). */
ebb_status ebb__file_read_now(int fd, void *into, size_t n, uint64_t offset, size_t *got);

/* The same in the pool: an ebb_pool_fn. `arg` and its bytes must stay until it has ended. */
typedef struct ebb__file_read_job {
    int fd;
    void *into;
    size_t n, got;
    uint64_t offset;
} ebb__file_read_job;
ebb_status ebb__file_read_run(void *arg, ebb_value *v);

#endif
