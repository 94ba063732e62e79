/* The disk under a file: its log, which has to stay bounded, and what is done when the disk is full or a read has failed. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "durable/sqlite.h"

/* ---- ballast -------------------------------------------------------------------------------------------------------- */

static sqlite3_file *ballast_open(const char *path, sqlite3_vfs *vfs) {
    enum { FLAGS = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_SUPER_JOURNAL };
    sqlite3_file *file = calloc(1, (size_t)vfs->szOsFile + strlen(path) + 16);
    if (file == NULL) return NULL;
    char *name = (char *)file + vfs->szOsFile; /* must live as long as the file, and end in two 0 */
    (void)sprintf(name, "%s.ballast", path);
    if (vfs->xOpen(vfs, name, file, FLAGS, NULL) == SQLITE_OK) return file;
    free(file);
    return NULL;
}

static void ballast_close(sqlite3_file *file) {
    (void)file->pMethods->xClose(file);
    free(file);
}

static bool fill(sqlite3_file *file) {
    static const char zeros[1 << 16];
    for (sqlite3_int64 at = 0; at < EBB__SQLITE_BALLAST; at += (sqlite3_int64)sizeof zeros)
        if (file->pMethods->xWrite(file, zeros, (int)sizeof zeros, at) != SQLITE_OK) return false;
    return file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) == SQLITE_OK;
}

bool ebb__sqlite_ballast_make(const char *path, const char *vfs) {
    sqlite3_int64 size = 0;
    sqlite3_vfs *v = sqlite3_vfs_find(vfs);
    sqlite3_file *file = v != NULL ? ballast_open(path, v) : NULL;
    if (file == NULL) return false;
    bool there = file->pMethods->xFileSize(file, &size) == SQLITE_OK && size >= EBB__SQLITE_BALLAST;
    if (!there) there = fill(file);
    if (!there) (void)file->pMethods->xTruncate(file, 0);
    ballast_close(file);
    return there;
}

void ebb__sqlite_ballast_use(const char *path, const char *vfs) {
    sqlite3_vfs *v = sqlite3_vfs_find(vfs);
    sqlite3_file *file = v != NULL ? ballast_open(path, v) : NULL;
    if (file == NULL) return;
    (void)file->pMethods->xTruncate(file, 0);
    ballast_close(file);
}

bool ebb__sqlite_space(ebb__sqlite_file *f) {
    (void)pthread_mutex_lock(&f->lock);
    const uint64_t now = ebb__sqlite_clock(f);
    (void)pthread_mutex_unlock(&f->lock);
    if (now < f->ballast_next) return false;
    f->ballast_next = now + EBB_SECOND / 4;
    if (ebb__sqlite_ballast_make(f->path, f->vfs)) return true;
    if (f->db.at == NULL) return false;
    const int64_t pages = ebb__sqlite_number_of(&f->db, "PRAGMA freelist_count");
    ebb__sqlite_forgive(&f->db);
    return pages * 4096 > 2 * EBB__SQLITE_BALLAST; /* deleted rows have left room in the file itself */
}

/* ---- connection of the writer ----------------------------------------------------------------------------------------- */

static int on_commit(void *file, sqlite3 *db, const char *name, int frames) {
    ebb__sqlite_file *f = file;
    (void)db;
    (void)name;
    if (frames < f->wal_frames) f->wal_next = f->wal_passive; /* the log began anew */
    f->wal_frames = frames;
    return SQLITE_OK;
}

int ebb__sqlite_open_writer(ebb__sqlite_file *f) {
    const uint64_t statements = f->db.statements;
    const int rc = ebb__sqlite_db_open(&f->db, f->path, f->vfs, false);
    f->db.statements = statements;
    if (rc != SQLITE_OK) return rc;
    (void)sqlite3_wal_hook(f->db.at, on_commit, f); /* takes the place of the automatic checkpoint */
    f->syncs = true;                                /* SQLite's default is FULL */
    f->wal_next = f->wal_passive;
    return ebb__sqlite_exec(&f->db, "PRAGMA synchronous = FULL");
}

ebb_status ebb__sqlite_reopen(ebb__sqlite_file *f, bool check) {
    if (f->db.at != NULL) ebb__sqlite_db_close(&f->db);
    ebb_status st = EBB_OK;
    if (ebb__sqlite_open_writer(f) != SQLITE_OK) st = EBB_ERR_UNAVAILABLE;
    else if (check && !ebb__sqlite_is_sound(&f->db)) st = EBB_ERR_STORE;
    if (f->db.failed != 0) ebb__sqlite_db_close(&f->db);
    ebb__sqlite_forgive(&f->db);
    return st;
}

/* ---- the log ------------------------------------------------------------------------------------------------------------ */

/* No reader is at work between these, so that the whole log can be copied and begun anew. */
static void hold_readers(ebb__sqlite_file *f, bool hold) {
    (void)pthread_mutex_lock(&f->lock);
    f->held_back = hold;
    while (hold && f->reading > 0) (void)pthread_cond_wait(&f->idle, &f->lock);
    if (!hold) (void)pthread_cond_broadcast(&f->asked);
    (void)pthread_mutex_unlock(&f->lock);
}

/* Another program may read the file for as long as it likes: nobody waits for it, and the log grows meanwhile. */
void ebb__sqlite_checkpoint(ebb__sqlite_file *f) {
    int log = 0, done = 0;
    if (f->wal_frames < f->wal_next) return;
    const bool whole = f->wal_frames >= f->wal_most;
    if (whole) hold_readers(f, true);
    (void)sqlite3_busy_timeout(f->db.at, 0);
    const int rc =
        ebb__sqlite_wal(&f->db, whole ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE, &log, &done);
    (void)sqlite3_busy_timeout(f->db.at, EBB__SQLITE_BUSY_MS);
    if (whole) hold_readers(f, false);
    if (whole && rc == SQLITE_OK) f->wal_frames = 0;
    f->wal_next = f->wal_frames + f->wal_passive;
}
