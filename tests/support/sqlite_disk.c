/* A disk of a test below SQLite. */
#include "tests/support/sqlite_disk.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "durable/sqlite.h"

enum { FILES = 32, SECTOR = 512 };

typedef struct change {
    sqlite3_int64 at; /* -1: truncation to n */
    size_t n;
    uint8_t *bytes;
} change;

typedef struct tracked {
    char name[512];
    uint8_t *image; /* what is on the disk for certain */
    size_t size, room;
    uint64_t length; /* of the file as it is */
    bool there;      /* its name is on the disk */
    change *changes; /* since the last sync */
    size_t changes_n, changes_room;
} tracked;

typedef struct file {
    sqlite3_file base;
    tracked *t;
    sqlite3_file *real;
} file;

static struct {
    pthread_mutex_t lock;
    sqlite3_vfs vfs, *real;
    tracked files[FILES];
    uint32_t n;
    uint64_t seed, ops, cut_at, fail_n, fail_at, failures, room;
    unsigned fail_ops;
    int fail_code;
    bool forever, cut;
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void must(bool holds) {
    if (!holds) abort();
}

static uint64_t chance(void) {
    disk.seed ^= disk.seed << 13;
    disk.seed ^= disk.seed >> 7;
    disk.seed ^= disk.seed << 17;
    return disk.seed;
}

/* ---- images -------------------------------------------------------------------------------------------------------- */

static void image_put(tracked *t, sqlite3_int64 at, const uint8_t *bytes, size_t n) {
    const size_t end = (size_t)at + n;
    if (n == 0) return;
    if (end > t->room) {
        const size_t room = 2 * end;
        t->image = realloc(t->image, room);
        must(t->image != NULL);
        memset(t->image + t->room, 0, room - t->room);
        t->room = room;
    }
    memcpy(t->image + at, bytes, n);
    if (end > t->size) t->size = end;
}

static void image_apply(tracked *t, const change *c, size_t n) {
    if (c->at >= 0) {
        image_put(t, c->at, c->bytes, n);
    } else if (c->n < t->size) {
        memset(t->image + c->n, 0, t->size - c->n);
        t->size = c->n;
    }
}

static void forget(tracked *t) {
    for (size_t i = 0; i < t->changes_n; i++) free(t->changes[i].bytes);
    t->changes_n = 0;
}

static void remember(tracked *t, sqlite3_int64 at, const void *bytes, size_t n) {
    if (t->changes_n == t->changes_room) {
        t->changes_room = 2 * t->changes_room + 16;
        t->changes = realloc(t->changes, t->changes_room * sizeof *t->changes);
        must(t->changes != NULL);
    }
    change *c = &t->changes[t->changes_n++];
    *c = (change){at, n, NULL};
    if (at < 0) return;
    c->bytes = malloc(n + 1);
    must(c->bytes != NULL);
    memcpy(c->bytes, bytes, n);
}

/* What is left of each write that was not synced. */
static void lose(tracked *t) {
    if (!t->there && chance() % 2 == 0) t->there = true;
    for (size_t i = 0; i < t->changes_n; i++) {
        const change *c = &t->changes[i];
        const uint64_t fate = chance() % 3;
        if (fate == 0) continue;
        image_apply(t, c, fate == 1 || c->at < 0 ? c->n : chance() % (c->n / SECTOR + 1) * SECTOR);
    }
    forget(t);
}

/* ---- operations: all with the lock ----------------------------------------------------------------------------------- */

static bool fails(disk_op op) {
    if (disk.fail_at == 0 || (disk.fail_ops & op) == 0) return false;
    disk.fail_n++;
    if (disk.fail_n != disk.fail_at && !(disk.forever && disk.fail_n > disk.fail_at)) return false;
    disk.failures++;
    return true;
}

/* SQLITE_OK, or how the operation fails. A write that the power cut falls on is one that is not synced. */
static int may(tracked *t, disk_op op, sqlite3_int64 at, const void *bytes, size_t n) {
    if (disk.cut) return SQLITE_IOERR;
    if (fails(op)) return disk.fail_code;
    if (op == DISK_READ) return SQLITE_OK;
    if (op == DISK_WRITE) remember(t, at, bytes, n);
    if (op == DISK_TRUNCATE) remember(t, -1, NULL, n);
    if (disk.cut_at == 0 || ++disk.ops != disk.cut_at) return SQLITE_OK;
    disk.cut = true;
    for (uint32_t i = 0; i < disk.n; i++) lose(&disk.files[i]);
    return SQLITE_IOERR;
}

static int disk_read(sqlite3_file *at, void *into, int n, sqlite3_int64 offset) {
    file *f = (file *)at;
    (void)pthread_mutex_lock(&disk.lock);
    const int rc = may(f->t, DISK_READ, offset, NULL, (size_t)n);
    (void)pthread_mutex_unlock(&disk.lock);
    return rc != SQLITE_OK ? rc : f->real->pMethods->xRead(f->real, into, n, offset);
}

static uint64_t used(void) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < disk.n; i++) n += disk.files[i].length;
    return n;
}

static int disk_write(sqlite3_file *at, const void *from, int n, sqlite3_int64 offset) {
    file *f = (file *)at;
    const uint64_t end = (uint64_t)offset + (uint64_t)n;
    (void)pthread_mutex_lock(&disk.lock);
    const uint64_t more = end > f->t->length ? end - f->t->length : 0;
    int rc = disk.room != 0 && more != 0 && used() + more > disk.room ? SQLITE_FULL : SQLITE_OK;
    if (rc == SQLITE_OK) rc = may(f->t, DISK_WRITE, offset, from, (size_t)n);
    if (rc == SQLITE_OK && more != 0) f->t->length = end;
    if (rc == SQLITE_OK) rc = f->real->pMethods->xWrite(f->real, from, n, offset);
    (void)pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int disk_truncate(sqlite3_file *at, sqlite3_int64 size) {
    file *f = (file *)at;
    (void)pthread_mutex_lock(&disk.lock);
    int rc = may(f->t, DISK_TRUNCATE, -1, NULL, (size_t)size);
    if (rc == SQLITE_OK) f->t->length = (uint64_t)size;
    if (rc == SQLITE_OK) rc = f->real->pMethods->xTruncate(f->real, size);
    (void)pthread_mutex_unlock(&disk.lock);
    return rc;
}

/* The real sync is left out: nothing here needs it. */
static int disk_sync(sqlite3_file *at, int flags) {
    file *f = (file *)at;
    (void)flags;
    (void)pthread_mutex_lock(&disk.lock);
    const int rc = may(f->t, DISK_SYNC, 0, NULL, 0);
    for (size_t i = 0; rc == SQLITE_OK && i < f->t->changes_n; i++)
        image_apply(f->t, &f->t->changes[i], f->t->changes[i].n);
    if (rc == SQLITE_OK) forget(f->t);
    if (rc == SQLITE_OK) f->t->there = true;
    (void)pthread_mutex_unlock(&disk.lock);
    return rc == SQLITE_IOERR ? SQLITE_IOERR_FSYNC : rc;
}

#define PASS(name, args, call)                                                                               \
    static int disk_##name args {                                                                            \
        file *f = (file *)at;                                                                                \
        return f->real->pMethods->call;                                                                      \
    }
PASS(size, (sqlite3_file * at, sqlite3_int64 *n), xFileSize(f->real, n))
PASS(lock, (sqlite3_file * at, int level), xLock(f->real, level))
PASS(unlock, (sqlite3_file * at, int level), xUnlock(f->real, level))
PASS(reserved, (sqlite3_file * at, int *out), xCheckReservedLock(f->real, out))
PASS(control, (sqlite3_file * at, int op, void *arg), xFileControl(f->real, op, arg))
PASS(sector, (sqlite3_file * at), xSectorSize(f->real))
PASS(traits, (sqlite3_file * at), xDeviceCharacteristics(f->real))
PASS(shm_map, (sqlite3_file * at, int page, int n, int extend, void volatile **out),
     xShmMap(f->real, page, n, extend, out))
PASS(shm_lock, (sqlite3_file * at, int offset, int n, int flags), xShmLock(f->real, offset, n, flags))
PASS(shm_unmap, (sqlite3_file * at, int remove), xShmUnmap(f->real, remove))

static void disk_shm_barrier(sqlite3_file *at) {
    file *f = (file *)at;
    f->real->pMethods->xShmBarrier(f->real);
}

static int disk_close(sqlite3_file *at) {
    file *f = (file *)at;
    return f->real->pMethods->xClose(f->real);
}

static const sqlite3_io_methods methods = {.iVersion = 2,
                                           .xClose = disk_close,
                                           .xRead = disk_read,
                                           .xWrite = disk_write,
                                           .xTruncate = disk_truncate,
                                           .xSync = disk_sync,
                                           .xFileSize = disk_size,
                                           .xLock = disk_lock,
                                           .xUnlock = disk_unlock,
                                           .xCheckReservedLock = disk_reserved,
                                           .xFileControl = disk_control,
                                           .xSectorSize = disk_sector,
                                           .xDeviceCharacteristics = disk_traits,
                                           .xShmMap = disk_shm_map,
                                           .xShmLock = disk_shm_lock,
                                           .xShmBarrier = disk_shm_barrier,
                                           .xShmUnmap = disk_shm_unmap};

/* ---- files ----------------------------------------------------------------------------------------------------------- */

static tracked *find(const char *name) {
    for (uint32_t i = 0; i < disk.n; i++)
        if (strcmp(disk.files[i].name, name) == 0) return &disk.files[i];
    return NULL;
}

/* What a file has before it is opened first has been on the disk for long. */
static tracked *track(const char *name) {
    uint8_t block[4096];
    tracked *t = find(name);
    if (t != NULL) return t;
    must(disk.n < FILES);
    t = &disk.files[disk.n++];
    memset(t, 0, sizeof *t);
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    FILE *from = fopen(name, "rb");
    for (size_t n; from != NULL && (n = fread(block, 1, sizeof block, from)) > 0;)
        image_put(t, (sqlite3_int64)t->size, block, n);
    t->there = from != NULL;
    t->length = t->size;
    if (from != NULL) (void)fclose(from);
    return t;
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *at, int flags, int *out) {
    file *f = (file *)at;
    (void)vfs;
    f->base.pMethods = NULL;
    f->real = (sqlite3_file *)(void *)(f + 1);
    (void)pthread_mutex_lock(&disk.lock);
    int rc = disk.cut ? SQLITE_CANTOPEN : SQLITE_OK;
    f->t = rc == SQLITE_OK ? track(name != NULL ? name : "temporary") : NULL;
    if (rc == SQLITE_OK) rc = disk.real->xOpen(disk.real, name, f->real, flags, out);
    (void)pthread_mutex_unlock(&disk.lock);
    if (rc == SQLITE_OK) f->base.pMethods = &methods;
    return rc;
}

/* A deletion is on the disk at once. */
static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync) {
    (void)vfs;
    (void)pthread_mutex_lock(&disk.lock);
    tracked *t = find(name);
    int rc = disk.cut ? SQLITE_IOERR_DELETE : disk.real->xDelete(disk.real, name, sync);
    if (rc == SQLITE_OK && t != NULL) {
        forget(t);
        t->size = 0;
        t->length = 0;
        t->there = false;
        if (t->image != NULL) memset(t->image, 0, t->room);
    }
    (void)pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out) {
    (void)vfs;
    return disk.real->xAccess(disk.real, name, flags, out);
}

static int vfs_full_name(sqlite3_vfs *vfs, const char *name, int n, char *out) {
    (void)vfs;
    return disk.real->xFullPathname(disk.real, name, n, out);
}

/* ---- for tests --------------------------------------------------------------------------------------------------------- */

void disk_begin(uint64_t seed) {
    (void)pthread_mutex_lock(&disk.lock);
    if (disk.real == NULL) {
        disk.real = sqlite3_vfs_find(NULL);
        disk.vfs = *disk.real;
        disk.vfs.pNext = NULL;
        disk.vfs.zName = DISK_VFS;
        disk.vfs.szOsFile = (int)sizeof(file) + disk.real->szOsFile;
        disk.vfs.xOpen = vfs_open;
        disk.vfs.xDelete = vfs_delete;
        disk.vfs.xAccess = vfs_access;
        disk.vfs.xFullPathname = vfs_full_name;
        must(sqlite3_vfs_register(&disk.vfs, 0) == SQLITE_OK);
    }
    disk.seed = seed * 0x9e3779b97f4a7c15u + 1;
    disk.ops = disk.cut_at = disk.fail_n = disk.fail_at = disk.failures = disk.room = 0;
    disk.cut = false;
    (void)pthread_mutex_unlock(&disk.lock);
    ebb__sqlite_use_vfs(DISK_VFS);
}

void disk_end(void) {
    ebb__sqlite_use_vfs(NULL);
    (void)pthread_mutex_lock(&disk.lock);
    for (uint32_t i = 0; i < disk.n; i++) {
        forget(&disk.files[i]);
        free(disk.files[i].changes);
        free(disk.files[i].image);
    }
    disk.n = 0;
    (void)pthread_mutex_unlock(&disk.lock);
}

void disk_cut_at(uint64_t n) {
    (void)pthread_mutex_lock(&disk.lock);
    disk.ops = 0;
    disk.cut_at = n;
    (void)pthread_mutex_unlock(&disk.lock);
}

bool disk_is_cut(void) {
    (void)pthread_mutex_lock(&disk.lock);
    const bool cut = disk.cut;
    (void)pthread_mutex_unlock(&disk.lock);
    return cut;
}

void disk_survive(const char *dir) {
    char name[1100];
    for (uint32_t i = 0; i < disk.n; i++) {
        const tracked *t = &disk.files[i];
        const char *base = strrchr(t->name, '/');
        if (!t->there || base == NULL) continue;
        (void)snprintf(name, sizeof name, "%s%s", dir, base);
        FILE *to = fopen(name, "wb");
        must(to != NULL);
        must(t->size == 0 || fwrite(t->image, 1, t->size, to) == t->size);
        (void)fclose(to);
    }
}

void disk_fail_at(uint64_t n, unsigned ops, int code, bool forever) {
    (void)pthread_mutex_lock(&disk.lock);
    disk.fail_n = disk.failures = 0;
    disk.fail_at = n;
    disk.fail_ops = ops;
    disk.fail_code = code;
    disk.forever = forever;
    (void)pthread_mutex_unlock(&disk.lock);
}

uint64_t disk_failures(void) {
    (void)pthread_mutex_lock(&disk.lock);
    const uint64_t n = disk.failures;
    (void)pthread_mutex_unlock(&disk.lock);
    return n;
}

void disk_room(uint64_t bytes) {
    (void)pthread_mutex_lock(&disk.lock);
    disk.room = bytes;
    (void)pthread_mutex_unlock(&disk.lock);
}

uint64_t disk_used(void) {
    (void)pthread_mutex_lock(&disk.lock);
    const uint64_t n = used();
    (void)pthread_mutex_unlock(&disk.lock);
    return n;
}
