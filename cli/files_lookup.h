/* cli/files_lookup.h - finds the file of a request's path below the served directory. */
#ifndef EBB_CLI_FILES_LOOKUP_H
#define EBB_CLI_FILES_LOOKUP_H

#include <ebb/ebb.h>
#include <limits.h>
#include <sys/types.h>

/* The real path of a directory. EBB_ERRNO(errno): there is none. */
ebb_status ebb__lookup_root(const char *dir, char root[PATH_MAX]);

/* A name below a directory, and the file that was found there. It does not belong to the request: a pool thread
 * can't be stopped, and may outlast a request that is forced. */
typedef struct ebb__lookup {
    int fd;        /* the file that was found; -1: none */
    int read_fd;   /* the same file, open for reading, until a caller takes it; -1: not open */
    char held[32]; /* a path to that file by its descriptor, which renames do not affect */
    bool straight; /* no link was followed */
    bool folder;   /* a directory, not a regular file */
    uint64_t size; /* of the file */
    dev_t device;
    ino_t inode;
    size_t root_n; /* length of the served directory's part of `path` */
    char path[];   /* its real path ("" for "/"), a "/", and the requested name, decoded */
} ebb__lookup;

/* Parses the path of a request; one that ends with "/" names the index.html there. Returns 0 or the status to answer
 * with: 400 for an invalid path (a bad escape, an escaped NUL or "/", a backslash, a segment ".."), 404 for a path
 * that is never served (a segment that starts with a dot, or is empty), 500 without memory. */
int ebb__lookup_new(const char *root, const char *requested, ebb__lookup **out);
void ebb__lookup_free(ebb__lookup *l);

/* Looks the file up without waiting for the disk: by names that the kernel has in its cache. EBB_PENDING: the cache
 * has not all of them, or the kernel can't tell; otherwise as ebb__lookup_run. */
ebb_status ebb__lookup_now(ebb__lookup *l);
/* An ebb_pool_fn; arg is the lookup, which is used once. EBB_ERRNO(errno); EBB_ERRNO(ENOENT) also for a file outside
 * of the directory, and for one that is neither a directory nor a regular file. */
ebb_status ebb__lookup_run(void *arg, ebb_value *v);
/* An ebb_pool_fn: opens the file that was found for reading. */
ebb_status ebb__lookup_open(void *arg, ebb_value *v);

#endif
