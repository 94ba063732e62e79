/* The files that this process owns. Stores of all loops on one file, by device and inode, share it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "durable/sqlite.h"

/* Held for the whole of an open and a close, which are on threads of their own; no loop waits for it. */
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static ebb__sqlite_file *files;
static const char *_Atomic test_vfs;
static _Atomic int test_passive, test_most;

void ebb__sqlite_use_vfs(const char *name) {
    atomic_store(&test_vfs, name);
}

void ebb__sqlite_use_log(int passive, int most) {
    atomic_store(&test_passive, passive);
    atomic_store(&test_most, most);
}

/* ---- clock and hints -------------------------------------------------------------------------------------------------- */

uint64_t ebb__sqlite_clock(ebb__sqlite_file *f) {
    const ebb_provider_host *h = f->stores->host;
    return f->clock_base + (h->boot(h->ctx) - f->boot_base);
}

void ebb__sqlite_hint(ebb__sqlite_file *f, const ebb_provider_hint *h) {
    (void)pthread_mutex_lock(&f->lock);
    for (const ebb__sqlite_store *s = f->stores; s != NULL; s = s->next) s->host->hint(s->host->ctx, h);
    (void)pthread_mutex_unlock(&f->lock);
}

/* ---- paths -------------------------------------------------------------------------------------------------------------- */

static ebb_status refuse(ebb__sqlite_wish *w, ebb_status st, const char *why) {
    (void)snprintf(w->text, sizeof w->text, "%.160s %.120s", w->path, why);
    return st;
}

/* Makes the file if it may, and names it by its canonical path. */
static ebb_status locate(ebb__sqlite_wish *w, char *path, struct stat *at) {
    if (stat(w->path, at) != 0) {
        if (errno != ENOENT) return refuse(w, EBB_ERR_STORE, strerror(errno));
        if (w->no_create || w->read_only)
            return refuse(w, EBB_ERR_SCHEMA, "does not exist, and may not be made");
        const int fd = open(w->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0 && errno != EEXIST)
            return refuse(w, errno == ENOSPC ? EBB_ERR_UNAVAILABLE : EBB_ERR_STORE, strerror(errno));
        if (fd >= 0) (void)close(fd);
        if (stat(w->path, at) != 0) return refuse(w, EBB_ERR_STORE, strerror(errno));
    }
    if (!S_ISREG(at->st_mode)) return refuse(w, EBB_ERR_STORE, "is no file");
    return realpath(w->path, path) != NULL ? EBB_OK : refuse(w, EBB_ERR_STORE, strerror(errno));
}

/* The names of new files are on the disk too. */
static void sync_directory(const char *path) {
    char name[PATH_MAX];
    (void)snprintf(name, sizeof name, "%s", path);
    const int fd = open(dirname(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    (void)close(fd);
}

/* ---- open --------------------------------------------------------------------------------------------------------------- */

static void charge(void *file, uint64_t key) {
    ebb__sqlite_file *f = file;
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INST_CHARGE, "i", key);
}

static uint64_t meta(ebb__sqlite_file *f, const char *name) {
    uint64_t v = 0;
    if (ebb__sqlite_run(&f->db, EBB__SQL_META, "t", name) == SQLITE_ROW) {
        v = ebb__sqlite_u64(ebb__sqlite_at(&f->db, EBB__SQL_META), 0);
        ebb__sqlite_end(&f->db, EBB__SQL_META);
    }
    return v;
}

/* All claims have ended with the last process. Instances that it was running are charged: one may have killed it. */
static ebb_status take_over(ebb__sqlite_file *f, ebb__sqlite_store *s) {
    const uint64_t stored = meta(f, "clock"), wall = s->host->wall(s->host->ctx);
    f->boot_base = s->host->boot(s->host->ctx);
    f->clock_base = f->now = stored > wall ? stored : wall;
    f->last = f->now;
    f->reserved = f->now + EBB_SECOND;
    const bool unclean = meta(f, "open") != 0;
    (void)ebb__sqlite_run(&f->db, EBB__SQL_BEGIN, "");
    if (unclean) (void)ebb__sqlite_run(&f->db, EBB__SQL_WORK_FREE_ALL, "");
    (void)ebb__sqlite_run(&f->db, EBB__SQL_WORK_DISOWN_ALL, "");
    if (f->db.failed == 0) ebb__sqlite_lock_claimed(&f->claims, charge, f);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_OPEN_SET, "i", (uint64_t)1);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_CLOCK_SET, "i", f->reserved);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_COMMIT, "");
    ebb__sqlite_ready_load(f);
    return ebb__sqlite_status(&f->db);
}

static bool start_threads(ebb__sqlite_file *f) {
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&f->writer, NULL, ebb__sqlite_writer, f) == 0;
    f->threads = started;
    for (int i = 0; i < EBB__SQLITE_READERS && started; i++) {
        started = pthread_create(&f->readers[i], NULL, ebb__sqlite_reader, f) == 0;
        f->threads += started;
    }
    if (started) ebb__sqlite_server_start(f);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static void stop_threads(ebb__sqlite_file *f) {
    (void)pthread_mutex_lock(&f->lock);
    f->stopping = true;
    (void)pthread_cond_broadcast(&f->written);
    (void)pthread_cond_broadcast(&f->asked);
    (void)pthread_mutex_unlock(&f->lock);
    if (f->threads > 0) (void)pthread_join(f->writer, NULL);
    for (uint32_t i = 1; i < f->threads; i++) (void)pthread_join(f->readers[i - 1], NULL);
}

static ebb__sqlite_file *file_new(const char *path, const struct stat *at) {
    ebb__sqlite_file *f = calloc(1, sizeof *f);
    char *copy = f != NULL ? strdup(path) : NULL;
    pthread_condattr_t monotonic;
    if (copy == NULL) {
        free(f);
        return NULL;
    }
    f->path = copy;
    f->vfs = atomic_load(&test_vfs);
    f->wal_passive = atomic_load(&test_passive);
    f->wal_most = atomic_load(&test_most);
    if (f->wal_passive == 0) f->wal_passive = EBB__SQLITE_WAL_PASSIVE;
    if (f->wal_most == 0) f->wal_most = EBB__SQLITE_WAL_MOST;
    f->dev = (uint64_t)at->st_dev;
    f->ino = (uint64_t)at->st_ino;
    f->owner = getpid();
    f->claims.fd = -1;
    f->held_next = f->timer_next = UINT64_MAX;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_cond_init(&f->written, &monotonic);
    (void)pthread_cond_init(&f->asked, NULL);
    (void)pthread_cond_init(&f->idle, NULL);
    (void)pthread_condattr_destroy(&monotonic);
    ebb__sqlite_ready_init(&f->ready, &f->lock);
    ebb__map_init(&f->held, ebb__sqlite_heap(), sizeof(ebb__sqlite_held));
    ebb__map_init(&f->sessions, ebb__sqlite_heap(), sizeof(uint64_t));
    ebb__arena_init(&f->arena, ebb__sqlite_heap(), 65536);
    return f;
}

static void file_free(ebb__sqlite_file *f) {
    if (f->db.at != NULL) ebb__sqlite_db_close(&f->db);
    ebb__sqlite_lock_drop(&f->claims);
    ebb__sqlite_ready_fini(&f->ready);
    ebb__map_free(&f->held);
    ebb__map_free(&f->sessions);
    ebb__arena_free(&f->arena);
    (void)pthread_mutex_destroy(&f->lock);
    (void)pthread_cond_destroy(&f->written);
    (void)pthread_cond_destroy(&f->asked);
    (void)pthread_cond_destroy(&f->idle);
    free(f->effects);
    free(f->path);
    free(f);
}

static ebb_status open_new(ebb__sqlite_file *f, ebb__sqlite_store *s, ebb__sqlite_wish *w) {
    ebb_status st = ebb__sqlite_lock_take(&f->claims, f->path, w->text, sizeof w->text);
    if (st != EBB_OK) return st;
    f->stores = s;
    (void)ebb__sqlite_open_writer(f);
    if (f->db.at != NULL)
        st = ebb__sqlite_schema(&f->db, f->path, !w->no_create && !w->read_only, w->text, sizeof w->text);
    if (st == EBB_OK && f->db.failed == 0) st = take_over(f, s);
    if (st == EBB_OK) st = ebb__sqlite_status(&f->db);
    if (st != EBB_OK && w->text[0] == 0) (void)refuse(w, st, f->db.text);
    if (st != EBB_OK) return st;
    sync_directory(f->path);
    f->full = !ebb__sqlite_ballast_make(f->path, f->vfs);
    f->full_sync = w->full;
    ebb__sqlite_count(f);
    if (start_threads(f)) return EBB_OK;
    stop_threads(f);
    return refuse(w, EBB_ERR_UNAVAILABLE, "needs threads, and there are none");
}

static void attach(ebb__sqlite_file *f, ebb__sqlite_store *s, const ebb__sqlite_wish *w) {
    (void)pthread_mutex_lock(&f->lock);
    s->next = f->stores;
    f->stores = s;
    f->full_sync |= w->full;
    (void)pthread_mutex_unlock(&f->lock);
}

static bool is_file(const ebb__sqlite_file *f, const struct stat *at) {
    return f->dev == (uint64_t)at->st_dev && f->ino == (uint64_t)at->st_ino && f->owner == getpid();
}

static ebb_status find_or_open(ebb__sqlite_store *s, ebb__sqlite_wish *w) {
    char path[PATH_MAX];
    struct stat at;
    ebb_status st = locate(w, path, &at);
    if (st != EBB_OK) return st;
    ebb__sqlite_file *f = files;
    while (f != NULL && !is_file(f, &at)) f = f->next;
    if (f != NULL) {
        attach(f, s, w);
    } else {
        f = file_new(path, &at);
        if (f == NULL) return EBB_ERR_NOMEM;
        st = open_new(f, s, w);
        if (st != EBB_OK) {
            file_free(f);
            return st;
        }
        f->next = files;
        files = f;
    }
    f->refs++;
    s->file = f;
    return EBB_OK;
}

ebb_status ebb__sqlite_file_open(ebb__sqlite_store *s, ebb__sqlite_wish *w) {
    (void)pthread_mutex_lock(&registry);
    const ebb_status st = find_or_open(s, w);
    (void)pthread_mutex_unlock(&registry);
    return st;
}

/* ---- close -------------------------------------------------------------------------------------------------------------- */

/* What is claimed still goes back, so that the next open need not look for it. No time was used that is after the clock that
 * is left: opens that follow each other do not make it fast. */
static void close_last(ebb__sqlite_file *f) {
    ebb__sqlite_server_stop(f);
    stop_threads(f);
    if (f->db.at != NULL && f->fatal[0] == 0) {
        (void)ebb__sqlite_run(&f->db, EBB__SQL_BEGIN, "");
        if (f->held.n != 0) (void)ebb__sqlite_run(&f->db, EBB__SQL_WORK_FREE_ALL, "");
        (void)ebb__sqlite_run(&f->db, EBB__SQL_OPEN_SET, "i", (uint64_t)0);
        (void)ebb__sqlite_run(&f->db, EBB__SQL_CLOCK_SET, "i", ebb__sqlite_number(f));
        (void)ebb__sqlite_run(&f->db, EBB__SQL_COMMIT, "");
    }
    file_free(f);
}

void ebb__sqlite_file_close(ebb__sqlite_store *s) {
    ebb__sqlite_file *f = s->file;
    (void)pthread_mutex_lock(&registry);
    const bool last = --f->refs == 0;
    if (last) {
        ebb__sqlite_file **at = &files;
        while (*at != f) at = &(*at)->next;
        *at = f->next;
        close_last(f);
    } else {
        (void)pthread_mutex_lock(&f->lock);
        ebb__sqlite_store **at = &f->stores;
        while (*at != s) at = &(*at)->next;
        *at = s->next;
        (void)pthread_mutex_unlock(&f->lock);
    }
    (void)pthread_mutex_unlock(&registry);
}
