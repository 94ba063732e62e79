/* cli/serve_lookup.h - from the path of a request to what lies there below the directory that is served. */
#ifndef EBB_CLI_SERVE_LOOKUP_H
#define EBB_CLI_SERVE_LOOKUP_H

#include <ebb/ebb.h>
#include <limits.h>
#include <sys/types.h>

/* The real path of a directory. EBB_ERRNO(errno): there is none. */
ebb_status ebb__lookup_root(const char *dir, char root[PATH_MAX]);

/* A name below a directory, and what was found there. It is memory of its own, not the request's: a thread of
 * the pool that is looking can't be stopped, and may outlast the request when that is forced. */
typedef struct ebb__lookup {
    int fd;        /* what was found. -1: nothing */
    int read_fd;   /* the same, open for reading, until somebody takes it. -1: it is not */
    char held[32]; /* a path that leads to that, whatever happens meanwhile */
    bool straight; /* no link was followed to it */
    bool folder;   /* a directory, not a regular file */
    uint64_t size; /* of the file */
    dev_t device;
    ino_t inode;
    size_t root_n; /* so much of `path` is the directory that is served */
    char path[];   /* its real path ("" for "/"), a "/", and the name as it was asked for, decoded */
} ebb__lookup;

/* What the path of a request asks for; one that ends with "/" asks for the index.html there. Returns 0; or the
 * status to answer with: 400 for what is no path of a file (a bad escape, an escaped NUL or "/", a backslash, a
 * segment ".."), 404 for what is never served (a segment that starts with a dot, or is empty), 500 without
 * memory. */
int ebb__lookup_new(const char *root, const char *asked, ebb__lookup **out);
void ebb__lookup_free(ebb__lookup *l);

/* Looks it up without a wait for the disk: by names that the kernel has in its cache. EBB_PENDING: it has not all
 * of them, or can't tell; else as ebb__lookup_run. */
ebb_status ebb__lookup_now(ebb__lookup *l);
/* An ebb_pool_fn; arg is the lookup, which is looked up once. EBB_ERRNO(errno); EBB_ERRNO(ENOENT) also for
 * what lies elsewhere and for what is neither a directory nor a regular file. */
ebb_status ebb__lookup_run(void *arg, ebb_value *v);
/* An ebb_pool_fn: opens what was found for reading. */
ebb_status ebb__lookup_open(void *arg, ebb_value *v);

#endif
