/* cli/files_lookup.c - which file a request may read.
 *
 * Links may lead to other files below the directory, and never out of it. A path that is checked (realpath) and then
 * opened may have changed in between. So the file is opened first, and then the kernel is asked for its path. It is
 * opened as a location only (O_PATH), which has no effect on a device and does not wait for the writer of a FIFO. It
 * is opened for reading through that descriptor, so that the file that was checked, with its size, is the one that
 * is sent. */
#define _GNU_SOURCE /* O_PATH */
#include "cli/files_lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "http/route.h"

ebb_status ebb__lookup_root(const char *dir, char root[PATH_MAX]) {
    struct stat s;
    if (realpath(dir, root) == NULL || stat(root, &s) != 0) return EBB_ERRNO(errno);
    return S_ISDIR(s.st_mode) ? EBB_OK : EBB_ERRNO(ENOTDIR);
}

/* ---- the path of a request --------------------------------------------------------------------------- */

/* The n bytes of a segment, decoded, with a final 0. */
static int take_segment(char *to, const char *from, size_t n) {
    if (ebb__percent_decode(to, from, n) == SIZE_MAX) return 400; /* rejects a NUL too */
    if (strchr(to, '/') != NULL || strcmp(to, "..") == 0) return 400;
    return to[0] == 0 || to[0] == '.' ? 404 : 0;
}

/* Only the last segment may be empty: in the target of a redirect, "//host" names a host. So does "/\host" for
 * browsers, and a URL contains a backslash only escaped. */
static int take_segments(char *to, const char *requested) {
    static const char index[] = "index.html";
    if (strchr(requested, '\\') != NULL) return 400;
    while (*requested == '/') {
        size_t n = strcspn(++requested, "/");
        bool is_last = requested[n] == 0;
        if (n == 0 && is_last) {
            memcpy(to, index, sizeof index);
            return 0;
        }
        int status = take_segment(to, requested, n);
        if (status != 0) return status;
        if (is_last) return 0;
        to += strlen(to);
        *to++ = '/';
        requested += n;
    }
    return 400;
}

int ebb__lookup_new(const char *root, const char *requested, ebb__lookup **out) {
    size_t root_n = strcmp(root, "/") == 0 ? 0 : strlen(root);
    size_t room = root_n + strlen(requested) + sizeof "/index.html";
    ebb__lookup *l = calloc(1, sizeof *l + room);
    if (l == NULL) return 500;
    l->fd = l->read_fd = -1;
    l->root_n = root_n;
    memcpy(l->path, root, root_n);
    l->path[root_n] = '/';
    int status = take_segments(l->path + root_n + 1, requested);
    if (status == 0) *out = l;
    else free(l);
    return status;
}

/* ---- the file ---------------------------------------------------------------------------------------- */

/* A link may lead to a name that starts with a dot: that is not served either. */
static bool is_inside(const ebb__lookup *l) {
    char real[PATH_MAX];
    ssize_t n = readlink(l->held, real, sizeof real);
    if (n < 0 || (size_t)n == sizeof real) return false;
    real[n] = 0;
    if (strncmp(real, l->path, l->root_n) != 0) return false;
    const char *rest = real + l->root_n;
    return (*rest == 0 || *rest == '/') && strstr(rest, "/.") == NULL;
}

/* Checks the open file. A path without a link has no "..": its file is inside. */
static ebb_status look(ebb__lookup *l) {
    struct stat s;
    if (fstat(l->fd, &s) != 0) return EBB_ERRNO(errno);
    l->folder = S_ISDIR(s.st_mode);
    l->size = (uint64_t)s.st_size;
    l->device = s.st_dev;
    l->inode = s.st_ino;
    return (l->folder || S_ISREG(s.st_mode)) && (l->straight || is_inside(l)) ? EBB_OK : EBB_ERRNO(ENOENT);
}

/* Takes the open location, and checks it. */
static ebb_status hold(ebb__lookup *l, int fd) {
    if (fd < 0) return EBB_ERRNO(errno);
    l->fd = fd;
    snprintf(l->held, sizeof l->held, "/proc/self/fd/%d", l->fd);
    return look(l);
}

static int open_cached(const ebb__lookup *l, uint64_t resolve) {
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED | resolve};
    return (int)syscall(SYS_openat2, AT_FDCWD, l->path, &how, sizeof how);
}

/* If the kernel does not know the call or its flag, or has not all names in its cache, the lookup is done in the
 * pool. */
ebb_status ebb__lookup_now(ebb__lookup *l) {
    int fd = open_cached(l, RESOLVE_NO_SYMLINKS);
    l->straight = fd >= 0;
    if (fd < 0 && errno == ELOOP) fd = open_cached(l, 0);
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR) return EBB_PENDING;
    return hold(l, fd);
}

ebb_status ebb__lookup_run(void *arg, ebb_value *v) {
    ebb__lookup *l = arg;
    (void)v;
    return hold(l, open(l->path, O_PATH | O_CLOEXEC));
}

ebb_status ebb__lookup_open(void *arg, ebb_value *v) {
    ebb__lookup *l = arg;
    (void)v;
    l->read_fd = open(l->held, O_RDONLY | O_CLOEXEC);
    return l->read_fd < 0 ? EBB_ERRNO(errno) : EBB_OK;
}

void ebb__lookup_free(ebb__lookup *l) {
    if (l->fd >= 0) close(l->fd);
    if (l->read_fd >= 0) close(l->read_fd);
    free(l);
}
