/* cli/doctor_service.c - what `ebb doctor` looks at for one service: its directory, token, address and store. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/doctor.h"
#include "durable/provider.h"
#include "serve/serve.h"

/* ---- the directory ----------------------------------------------------------------------------------- */

static uint64_t now_us(void) {
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Writes a block to a new file, and syncs it, as a store does for each commit. Returns an errno, or 0. */
static int write_block(const char *dir, uint64_t *took_us) {
    char path[PATH_MAX + 32];
    static const char block[4096];
    const uint64_t begin = now_us();
    (void)snprintf(path, sizeof path, "%s/.doctor-XXXXXX", dir);
    const int fd = mkstemp(path);
    if (fd < 0) return errno;
    (void)unlink(path); /* now, so that a signal leaves nothing */
    const ssize_t n = write(fd, block, sizeof block);
    int failed = n == (ssize_t)sizeof block ? 0 : n < 0 ? errno : ENOSPC;
    if (failed == 0 && fsync(fd) != 0) failed = errno;
    *took_us = now_us() - begin;
    (void)close(fd);
    return failed;
}

static void check_write(ebb__doctor *d, const char *dir) {
    enum { SLOW_US = 50000 };
    static const char slow[] =
        "Every commit of a store waits for one. Use a local disk rather than one over a network.";
    uint64_t took = 0;
    const int failed = write_block(dir, &took);
    if (failed != 0)
        ebb__doctor_say(d, EBB__DOCTOR_FAIL, "write", "The service's user must be able to write there.",
                        "%s: %s", dir, strerror(failed));
    else
        ebb__doctor_say(d, took > SLOW_US ? EBB__DOCTOR_WARN : EBB__DOCTOR_OK, "write", slow,
                        "4 KiB were written and synced in %" PRIu64 " us", took);
}

static void check_space(ebb__doctor *d, const char *dir) {
    static const char advice[] = "A store that can't grow refuses work. Make room, or choose another disk.";
    struct statvfs is;
    if (statvfs(dir, &is) != 0) return;
    const uint64_t mib = (uint64_t)is.f_bavail * is.f_frsize >> 20;
    ebb__doctor_say(d,
                    mib < 64     ? EBB__DOCTOR_FAIL
                    : mib < 1024 ? EBB__DOCTOR_WARN
                                 : EBB__DOCTOR_OK,
                    "space", advice, "%" PRIu64 " MiB are free", mib);
}

static void check_rights(ebb__doctor *d, const char *dir, const struct stat *is) {
    static const char advice[] =
        "Whoever may write there may put another token in its place: `ebb serve` does not begin. "
        "Make it the service's own, with mode 0700.";
    const bool fit = S_ISDIR(is->st_mode) && is->st_uid == geteuid() && (is->st_mode & 022) == 0;
    if (!S_ISDIR(is->st_mode))
        ebb__doctor_say(d, EBB__DOCTOR_FAIL, "directory", advice, "%s is not a directory", dir);
    else
        ebb__doctor_say(d, fit ? EBB__DOCTOR_OK : EBB__DOCTOR_FAIL, "directory", advice,
                        "%s has mode %04o and is owned by user %u; this is user %u", dir,
                        (unsigned)is->st_mode & 07777, (unsigned)is->st_uid, (unsigned)geteuid());
}

/* The directory in which one that is missing would be made. */
static void parent_of(const char *path, char out[PATH_MAX]) {
    (void)snprintf(out, PATH_MAX, "%s", path);
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/') out[--n] = 0;
    char *slash = strrchr(out, '/');
    if (slash == NULL) (void)snprintf(out, PATH_MAX, ".");
    else slash[slash == out] = 0;
}

static void check_directory(ebb__doctor *d) {
    struct stat is;
    char parent[PATH_MAX];
    const char *dir = d->daemon.dir;
    if (stat(dir, &is) == 0) {
        check_rights(d, dir, &is);
    } else if (errno == ENOENT && lstat(dir, &is) != 0) { /* nor is it a link to what is missing */
        ebb__doctor_say(d, EBB__DOCTOR_OK, "directory", NULL, "%s is not there; `ebb serve` makes it", dir);
        parent_of(dir, parent);
        dir = parent;
    } else {
        ebb__doctor_say(d, EBB__DOCTOR_FAIL, "directory", "Choose another by --dir.", "%s: %s", dir,
                        strerror(errno));
        return;
    }
    check_write(d, dir);
    check_space(d, dir);
}

static void check_token(ebb__doctor *d) {
    static const char advice[] =
        "Make it a file of the service's user with mode 0600 and a first line of 16 to 256 "
        "printable characters; or remove it, and `ebb serve` makes one.";
    uint8_t digest[EBB__DIGEST];
    const char *path = d->daemon.token;
    struct stat is;
    if (lstat(path, &is) != 0 && errno == ENOENT) {
        ebb__doctor_say(d, EBB__DOCTOR_OK, "token", NULL, "%s is not there; `ebb serve` makes it", path);
        return;
    }
    const ebb_status st = ebb__token_read(path, digest);
    if (st == EBB_OK)
        ebb__doctor_say(d, EBB__DOCTOR_OK, "token", NULL, "%s can be read, by its owner alone", path);
    else ebb__doctor_say(d, EBB__DOCTOR_FAIL, "token", advice, "%s", ebb_dashboard_error());
}

/* ---- the address ------------------------------------------------------------------------------------- */

static socklen_t address_of(const ebb_address *a, struct sockaddr_storage *out) {
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(a->port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(a->port)};
    const bool is_four = inet_pton(AF_INET, a->ip, &four.sin_addr) == 1;
    memset(out, 0, sizeof *out);
    if (is_four) memcpy(out, &four, sizeof four);
    else if (inet_pton(AF_INET6, a->ip, &six.sin6_addr) == 1) memcpy(out, &six, sizeof six);
    return is_four ? sizeof four : sizeof six;
}

/* As libuv binds: an address that a connection has just left is free. */
static int bind_to(const ebb_address *a) {
    struct sockaddr_storage to;
    const socklen_t n = address_of(a, &to);
    const int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    int failed = 0;
    if (fd < 0) return errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (const struct sockaddr *)&to, n) != 0 || listen(fd, 1) != 0)
        failed = errno;
    (void)close(fd);
    return failed;
}

static void check_address(ebb__doctor *d) {
    const ebb_address *a = &d->daemon.address;
    const int failed = bind_to(a);
    const char *advice =
        failed == EADDRINUSE ? "Another process listens there, perhaps the service itself: stop it, or "
                               "choose another address by --listen."
        : failed == EACCES   ? "Ports below 1024 need CAP_NET_BIND_SERVICE; choose a higher one."
                             : "This machine does not have the address; choose another by --listen.";
    if (failed == 0)
        ebb__doctor_say(d, EBB__DOCTOR_OK, "address", NULL, "%s port %u is free", a->ip, a->port);
    else
        ebb__doctor_say(d, EBB__DOCTOR_FAIL, "address", advice, "%s port %u: %s", a->ip, a->port,
                        strerror(failed));
}

/* ---- the store --------------------------------------------------------------------------------------- */

/* A file that is missing is made, but not its directory: only that of the service is. */
static void check_missing(ebb__doctor *d, const char *path) {
    static const char advice[] = "Make that directory, or choose another file by --store.";
    struct stat is;
    char parent[PATH_MAX];
    parent_of(path, parent);
    if (strcmp(parent, d->daemon.dir) == 0 || (stat(parent, &is) == 0 && S_ISDIR(is.st_mode)))
        ebb__doctor_say(d, EBB__DOCTOR_OK, "store", NULL, "%s is not there; it is made with the first start",
                        path);
    else
        ebb__doctor_say(d, EBB__DOCTOR_FAIL, "store", advice, "%s is not there, and neither is %s", path,
                        parent);
}

static void check_sqlite(ebb__doctor *d, const char *path) {
    static const char magic[16] = "SQLite format 3",
                      advice[] = "Choose another file by --store, or restore this one.";
    char head[sizeof magic];
    FILE *in = fopen(path, "r+b");
    if (in == NULL && errno == ENOENT) {
        check_missing(d, path);
        return;
    }
    if (in == NULL) {
        ebb__doctor_say(d, EBB__DOCTOR_FAIL, "store", advice, "%s: %s", path, strerror(errno));
        return;
    }
    const size_t n = fread(head, 1, sizeof head, in);
    const bool fit = n == 0 || (n == sizeof head && memcmp(head, magic, sizeof head) == 0);
    fclose(in);
    ebb__doctor_say(d, fit ? EBB__DOCTOR_OK : EBB__DOCTOR_FAIL, "store", advice, "%s is %s", path,
                    fit ? "a SQLite database, and can be written" : "no SQLite database");
}

/* As the store reads its URL: what is escaped in it, and its options, are no part of the path. */
static void check_file(ebb__doctor *d) {
    ebb__arena arena;
    ebb__store_url u;
    char text[300] = "";
    ebb__arena_init(&arena, ebb__cli_allocator(), 1024);
    const ebb_status st = ebb__store_url_parse(&arena, d->daemon.url, &u, text, sizeof text);
    if (st == EBB_OK && u.path[0] != 0) check_sqlite(d, u.path);
    else
        ebb__doctor_say(d, EBB__DOCTOR_FAIL, "store", "Give sqlite:PATH.", "%s",
                        st == EBB_OK ? "the URL has no path" : text);
    ebb__arena_free(&arena);
}

static void check_store(ebb__doctor *d) {
    const ebb_provider *of = ebb__provider_of(d->daemon.url);
    char shown[100];
    ebb__store_url_say(d->daemon.url, shown, sizeof shown);
    if (of == &ebb__provider_sqlite) check_file(d);
    else if (of == &ebb__provider_postgres) ebb__doctor_postgres(d);
    else if (of == &ebb__provider_lab)
        ebb__doctor_say(d, EBB__DOCTOR_WARN, "store", "It is for tests; give a store by --store.",
                        "lab: is memory, and ends with the process");
    else
        ebb__doctor_say(d, EBB__DOCTOR_FAIL, "store",
                        "Give sqlite:PATH or postgres://USER@HOST:PORT/DATABASE.", "'%s' is no store", shown);
}

void ebb__doctor_service(ebb__doctor *d) {
    check_directory(d);
    check_token(d);
    check_address(d);
    check_store(d);
}
