/* cli/files_serve.h - the files that `ebb files` has open.
 *
 * Requests for one file share one descriptor. It stays open for a moment after the last of them, so that a file that
 * is requested often is opened once. A file is identified by its device and inode, which no other file gets while it
 * is open: a name that leads to another inode is another file. Whether a request may read the file is decided by its
 * lookup, each time. */
#ifndef EBB_CLI_FILES_SERVE_H
#define EBB_CLI_FILES_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <ebb/ebb.h>

enum {
    EBB__FILES_KEPT = 64
}; /* unused files at most; the one that was unused for the longest time is closed first */

typedef struct ebb__served_file {
    struct ebb__served_file *next;
    int fd;
    dev_t device;
    ino_t inode;
    uint32_t users;
    uint64_t released_at; /* when the last user released it */
} ebb__served_file;

typedef struct ebb__files {
    ebb__served_file *first; /* most recently used first */
    uint32_t unused;
    uint32_t most_unused; /* EBB__FILES_KEPT; 0: unused files are closed at once */
} ebb__files;

/* Adds a user to a file that is open. NULL: the file is not open. */
ebb__served_file *ebb__files_take(ebb__files *all, dev_t device, ino_t inode);
/* Adds a file that was opened, with its first user. Takes the descriptor even on failure. NULL: no memory. */
ebb__served_file *ebb__files_add(ebb__files *all, int fd, dev_t device, ino_t inode);
void ebb__files_leave(ebb__files *all, ebb__served_file *f, uint64_t now);
/* Closes the files that were not used since `before`. */
void ebb__files_sweep(ebb__files *all, uint64_t before);

/* Reads at `offset` what the page cache has. EBB_PENDING: the read would wait for the disk; EBB_ERR_EOF;
 * EBB_ERRNO(errno). */
ebb_status ebb__file_read_now(int fd, void *into, size_t n, uint64_t offset, size_t *got);

/* The same in the pool: an ebb_pool_fn. `arg` and its bytes must stay valid until it has ended. */
typedef struct ebb__file_read_job {
    int fd;
    void *into;
    size_t n, got;
    uint64_t offset;
} ebb__file_read_job;
ebb_status ebb__file_read_run(void *arg, ebb_value *v);

#endif
