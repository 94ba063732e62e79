/* The lock of a file, PATH.lock: one process has it. It also keeps which instances are claimed, so that one whose code
 * kills the process is charged for it at the next open: eight bytes a claim, written into the page cache and not synced,
 * since a process that dies leaves it. The lock is that of flock, which the kernel drops with the process.
 *
 *     0   "PID\n" of the owner, padded
 *     64  slots: keys of instances, 0: free. Slot 0 is not used */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "durable/sqlite.h"

enum { SLOTS_AT = 64, SLOTS = 8192 };

static ebb_status busy(int fd, const char *path, char *text, size_t room) {
    char pid[32] = "";
    const ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
    pid[n > 0 ? n : 0] = 0;
    (void)snprintf(text, room, "%.160s is owned by process %ld: one process opens a file", path, atol(pid));
    return EBB_ERR_BUSY;
}

static bool put(int fd, const void *from, size_t n, off_t at) {
    return pwrite(fd, from, n, at) == (ssize_t)n;
}

/* The slots' bytes are there from now on, so that a full disk can't refuse a claim. */
static bool write_head(int fd) {
    char head[SLOTS_AT] = "";
    (void)snprintf(head, sizeof head, "%ld\n", (long)getpid());
    return posix_fallocate(fd, 0, SLOTS_AT + 8 * SLOTS) == 0 && put(fd, head, sizeof head, 0);
}

ebb_status ebb__sqlite_lock_take(ebb__sqlite_lock *l, const char *path, char *text, size_t room) {
    char name[4200];
    memset(l, 0, sizeof *l);
    l->fd = -1;
    (void)snprintf(name, sizeof name, "%.4095s.lock", path);
    const int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        (void)snprintf(text, room, "%.160s.lock can't be opened: %s", path, strerror(errno));
        return errno == ENOSPC || errno == EDQUOT ? EBB_ERR_UNAVAILABLE : EBB_ERR_STORE;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const ebb_status st = busy(fd, path, text, room);
        (void)close(fd);
        return st;
    }
    l->free = malloc(SLOTS * sizeof *l->free);
    if (l->free == NULL || !write_head(fd)) {
        (void)snprintf(text, room, "%.160s.lock can't be written: %s", path, strerror(errno));
        free(l->free);
        (void)close(fd);
        return EBB_ERR_UNAVAILABLE;
    }
    for (uint32_t i = SLOTS - 1; i > 0; i--) l->free[l->free_n++] = i;
    l->fd = fd;
    return EBB_OK;
}

void ebb__sqlite_lock_claimed(ebb__sqlite_lock *l, void (*fn)(void *arg, uint64_t key), void *arg) {
    for (uint32_t i = 1; i < SLOTS; i++) {
        uint64_t key = 0;
        if (pread(l->fd, &key, sizeof key, SLOTS_AT + 8 * (off_t)i) != (ssize_t)sizeof key) return;
        if (key == 0) continue;
        fn(arg, key);
        key = 0;
        (void)put(l->fd, &key, sizeof key, SLOTS_AT + 8 * (off_t)i);
    }
}

uint32_t ebb__sqlite_lock_claim(ebb__sqlite_lock *l, uint64_t key) {
    if (l->free_n == 0) return 0;
    const uint32_t slot = l->free[l->free_n - 1];
    if (!put(l->fd, &key, sizeof key, SLOTS_AT + 8 * (off_t)slot)) return 0;
    l->free_n--;
    return slot;
}

void ebb__sqlite_lock_release(ebb__sqlite_lock *l, uint32_t slot) {
    const uint64_t none = 0;
    if (slot == 0) return;
    (void)put(l->fd, &none, sizeof none, SLOTS_AT + 8 * (off_t)slot);
    l->free[l->free_n++] = slot;
}

/* The file stays: who deletes a lock may delete that of another. */
void ebb__sqlite_lock_drop(ebb__sqlite_lock *l) {
    if (l->fd < 0) return;
    (void)close(l->fd);
    free(l->free);
    l->fd = -1;
}
