/* cli/files.c - `ebb files`: the files below a directory, over HTTP/2 and HTTP/1.1 on this machine.
 *
 * Each request is a fiber that looks up its file, and then reads and writes a piece at a time: bytes that the client
 * has not taken delay the next read. Lookups and reads that the kernel's caches can answer are done on the loop's
 * thread; the pool is for those that have to wait for the disk. A small file is read and answered in one piece, and
 * requests that are received together share what the first of them has found. A finalizer releases the file, however the
 * request ends. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <ebb/ebb.h>

#include "cli/cli.h"
#include "cli/files_lookup.h"
#include "cli/files_recent.h"
#include "cli/files_serve.h"
#include "cli/help.h"
#include "cli/service.h"
#include "serve/serve.h"

const ebb__help ebb__help_files = {
    .name = "files",
    .what = "serve the files of a directory over HTTP",
    .text =
        "Serves the files below DIR to this machine, over HTTP/2 (with prior knowledge) and HTTP/1.1, and "
        "prints its address: http://127.0.0.1:8008/. A path that ends with / is the index.html there; "
        "directories are not listed, names that start with a dot are not served, and no link leads out of "
        "DIR.\n\n"
        "SIGTERM or SIGINT (Ctrl-C) stops it: responses have 3 s to finish; a second one stops it at once.",
    .forms = (const ebb__help_form[]){{NULL, "DIR", ""}, {0}},
    .options = (const ebb__help_option[]){{"--port", "N", NULL, 0, "Default 8008; 0 is any free port."}, {0}},
    .exits = (const ebb__help_row[]){{"0", "it was stopped"},
                                     {"2", "wrong arguments, no such directory, or the port is taken"},
                                     {"3-5", "as of any service, see docs/workflow.md"},
                                     {0}},
};

/* PIECE: with its frames it fits into one write to the socket. */
enum { PIECE = 60 * 1024, PORT = 8008 };

/* How long an unused file stays open at least; at most twice that. */
static const uint64_t kept_ns = 100 * EBB_MS;

typedef struct site {
    char root[PATH_MAX]; /* the real path */
    uint64_t port;
    ebb__cli_service run;
    ebb__files files;
    ebb__recents recents;
    ebb_future *unused; /* the sweeper waits for an unused file; NULL: it does not wait */
} site;

/* The result of a request's lookup. */
typedef struct found {
    const char *type;
    bool folder;
    uint64_t size;
    dev_t device;
    ino_t inode;
    ebb__served_file *file; /* NULL for a directory */
} found;

/* ---- headers ----------------------------------------------------------------------------------------- */

/* TypeScript has no registered type: it is sent as plain text. */
static const struct {
    const char *extension, *type;
} types[] = {
    {"html", "text/html; charset=utf-8"},
    {"css", "text/css; charset=utf-8"},
    {"js", "text/javascript; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"map", "application/json"},
    {"wasm", "application/wasm"},
    {"svg", "image/svg+xml"},
    {"png", "image/png"},
    {"ico", "image/x-icon"},
    {"txt", "text/plain; charset=utf-8"},
    {"md", "text/markdown; charset=utf-8"},
    {"ts", "text/plain; charset=utf-8"},
};

static const char *type_of(const char *path) {
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof types / sizeof *types; i++) {
        if (strcasecmp(dot + 1, types[i].extension) == 0) return types[i].type;
    }
    return "application/octet-stream";
}

static ebb_status set_length(ebb_http *x, uint64_t n) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, n);
    return ebb_http_set_header(x, "content-length", text);
}

/* ---- responses --------------------------------------------------------------------------------------- */

static ebb_status refuse(ebb_cx *cx, ebb_http *x, int status) {
    return ebb_http_text(cx, x, status, status == 400 ? "not a path\n" : "not found\n");
}

/* Redirects to the same path with a "/": the links in an index.html are relative to that. */
static ebb_status redirect(ebb_cx *cx, ebb_http *x) {
    const char *path = ebb_http_path(x), *query = ebb_http_query(x);
    size_t room = strlen(path) + strlen(query) + sizeof "/?";
    char *to = ebb_http_alloc(x, room);
    if (to == NULL) return EBB_ERR_NOMEM;
    snprintf(to, room, "%s/%s%s", path, query[0] == 0 ? "" : "?", query);
    ebb_status st = ebb_http_set_header(x, "location", to);
    return st == EBB_OK ? ebb_http_text(cx, x, 308, "it is a directory\n") : st;
}

/* Masked: the pool uses the bytes until this await has ended. */
static ebb_status read_later(ebb_cx *cx, int fd, void *into, size_t n, uint64_t at, size_t *got) {
    ebb__file_read_job *job = malloc(sizeof *job + n);
    if (job == NULL) return EBB_ERR_NOMEM;
    *job = (ebb__file_read_job){.fd = fd, .into = job + 1, .n = n, .offset = at};
    (void)ebb_mask(cx);
    ebb_status st = ebb_await(cx, ebb_pool_run(cx, ebb__file_read_run, job), NULL);
    (void)ebb_unmask(cx);
    *got = job->got;
    memcpy(into, job + 1, job->got);
    free(job);
    return st;
}

/* The length was announced. A file that has become shorter ends the response with EBB_ERR_EOF; one that has grown is
 * truncated. */
static ebb_status send_bytes(ebb_cx *cx, ebb_http *x, int fd, uint64_t size) {
    size_t room = size < PIECE ? (size_t)size : PIECE, got;
    char *bytes = ebb_http_alloc(x, room);
    if (bytes == NULL) return EBB_ERR_NOMEM;
    for (uint64_t at = 0; at < size; at += got) {
        size_t most = size - at < room ? (size_t)(size - at) : room;
        ebb_status st = ebb__file_read_now(fd, bytes, most, at, &got);
        if (st == EBB_PENDING) st = read_later(cx, fd, bytes, most, at, &got);
        if (st == EBB_OK) st = ebb_await(cx, ebb_http_write(cx, x, bytes, got), NULL);
        if (st != EBB_OK) return st;
    }
    return EBB_OK;
}

static ebb_status send_file(ebb_cx *cx, ebb_http *x, const found *f) {
    ebb_status st = ebb_http_set_header(x, "content-type", f->type);
    if (st == EBB_OK) st = set_length(x, f->size);
    if (st == EBB_OK) st = ebb_http_start(cx, x, 200);
    if (st != EBB_OK || f->size == 0 || strcmp(ebb_http_method(x), "HEAD") == 0) return st;
    return send_bytes(cx, x, f->file->fd, f->size);
}

/* ---- a request --------------------------------------------------------------------------------------- */

static bool is_not_there(ebb_status st) {
    static const int errors[] = {ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, EACCES};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (st == EBB_ERRNO(errors[i])) return true;
    }
    return false;
}

/* A request's use of a file. The finalizer releases the file. */
typedef struct use {
    site *s;
    ebb__served_file *file;
} use;

static ebb_status leave(ebb_cx *cx, void *arg) {
    const use *u = arg;
    ebb_future *waits = u->s->unused;
    if (u->file == NULL) return EBB_OK;
    ebb__files_leave(&u->s->files, u->file, ebb_now(cx));
    u->s->unused = NULL;
    if (waits != NULL) (void)ebb_promise_settle(waits, ebb_value_none());
    return EBB_OK;
}

static ebb_status open_file(ebb_cx *cx, const ebb__lookup *l, use *u) {
    u->file = ebb__files_take(&u->s->files, l->device, l->inode);
    if (u->file != NULL) return EBB_OK;
    ebb__lookup *opening = (ebb__lookup *)(uintptr_t)l;
    ebb_status st = ebb_await(cx, ebb_pool_run(cx, ebb__lookup_open, opening), NULL);
    if (st != EBB_OK) return st;
    u->file = ebb__files_take(&u->s->files, l->device, l->inode); /* another request was faster */
    if (u->file != NULL) return EBB_OK;
    u->file = ebb__files_add(&u->s->files, l->read_fd, l->device, l->inode);
    opening->read_fd = -1;
    return u->file == NULL ? EBB_ERR_NOMEM : EBB_OK;
}

/* Masked: the pool uses the lookup until these awaits have ended. If the fiber is forced in between, the lookup is
 * not freed, because the pool may still use it. */
static ebb_status find(ebb_cx *cx, ebb__lookup *l, use *u, found *out) {
    (void)ebb_mask(cx);
    ebb_status st = ebb__lookup_now(l);
    if (st == EBB_PENDING) st = ebb_await(cx, ebb_pool_run(cx, ebb__lookup_run, l), NULL);
    if (st == EBB_OK && !l->folder) st = open_file(cx, l, u);
    (void)ebb_unmask(cx);
    *out = (found){type_of(l->path), l->folder, l->size, l->device, l->inode, u->file};
    ebb__lookup_free(l);
    return st;
}

/* Keeps what was found at the path for the other requests of the turn, with the bytes of a small file, unless they have to
 * be waited for. NULL: it is not kept. */
static const ebb__recent *keep(site *s, const char *path, uint64_t turn, const found *f) {
    ebb__recent *r = ebb__recent_take(&s->recents, path);
    size_t got = 0;
    if (r == NULL) return NULL;
    if (f->size <= EBB__RECENT_BYTES)
        (void)ebb__file_read_now(f->file->fd, r->bytes, (size_t)f->size, 0, &got);
    r->bytes_n = got == f->size ? (uint32_t)got : 0;
    r->type = f->type;
    r->size = f->size;
    r->device = f->device;
    r->inode = f->inode;
    r->turn = turn;
    return r;
}

static ebb_status send_small(ebb_cx *cx, ebb_http *x, const ebb__recent *r) {
    return ebb_http_reply(cx, x, 200, r->type, r->bytes, r->bytes_n);
}

/* The file that this turn has found, if it is still open. False: it has to be looked up. */
static bool take_recent(const ebb__recent *r, use *u, found *out) {
    u->file = ebb__files_take(&u->s->files, r->device, r->inode);
    *out = (found){r->type, false, r->size, r->device, r->inode, u->file};
    return u->file != NULL;
}

static ebb_status give_file(ebb_cx *cx, ebb_http *x, use *u, uint64_t turn) {
    const char *path = ebb_http_path(x);
    ebb__lookup *l;
    found f;
    int status = ebb__lookup_new(u->s->root, path, &l);
    if (status != 0) return status == 500 ? EBB_ERR_NOMEM : refuse(cx, x, status);
    ebb_status st = find(cx, l, u, &f);
    if (is_not_there(st)) return refuse(cx, x, 404);
    if (st != EBB_OK) return st;
    if (f.folder) return path[strlen(path) - 1] == '/' ? refuse(cx, x, 404) : redirect(cx, x);
    const ebb__recent *r =
        ebb__recent_find(&u->s->recents, path, turn); /* another has been faster to open it */
    if (r == NULL) r = keep(u->s, path, turn, &f);
    return r != NULL && r->bytes_n > 0 ? send_small(cx, x, r) : send_file(cx, x, &f);
}

static ebb_status give(ebb_cx *cx, ebb_http *x, site *s) {
    uint64_t turn = ebb__recent_turn(cx);
    const ebb__recent *r = ebb__recent_find(&s->recents, ebb_http_path(x), turn);
    found f;
    if (r != NULL && r->bytes_n > 0) return send_small(cx, x, r);
    use *u = ebb_http_state(x, sizeof *u);
    if (u == NULL) return EBB_ERR_NOMEM;
    u->s = s;
    ebb_status st = ebb_defer(cx, leave, u);
    if (st != EBB_OK) return st;
    if (r != NULL && take_recent(r, u, &f)) return send_file(cx, x, &f);
    return give_file(cx, x, u, turn);
}

/* A page of any origin can have its name pointed at this machine, and would then read the files as its own. */
static ebb_status answer(ebb_cx *cx, ebb_http *x, void *s) {
    if (!ebb__host_is_plain(ebb_http_authority(x)))
        return ebb_http_text(cx, x, 421, "the host is no address, and not localhost\n");
    ebb_status st = ebb_http_set_header(x, "cache-control", "no-cache");
    if (st == EBB_OK) st = ebb_http_set_header(x, "x-content-type-options", "nosniff");
    return st == EBB_OK ? give(cx, x, s) : st;
}

/* ---- the service ------------------------------------------------------------------------------------- */

/* False: the service closes. The promise is settled by the next request that releases its file. */
static bool wait_for_unused(ebb_cx *cx, site *s) {
    ebb_future *two[2] = {ebb_closing(cx), NULL};
    bool some = s->files.unused > 0;
    two[1] = some ? ebb_after(cx, kept_ns) : (s->unused = ebb_promise_new(cx, NULL, NULL));
    ebb_status st = ebb_await(cx, ebb_race(cx, 2, two), NULL);
    s->unused = NULL;
    return st == EBB_OK && !ebb_stopping(cx);
}

/* Closes files that were not used for a while. Once the service closes, no unused file is kept. */
static ebb_status sweep(ebb_cx *cx, void *arg) {
    site *s = arg;
    while (wait_for_unused(cx, s)) ebb__files_sweep(&s->files, ebb_now(cx) - kept_ns);
    s->files.most_unused = 0;
    ebb__files_sweep(&s->files, EBB_FOREVER);
    return EBB_OK;
}

static ebb_status serve(ebb_cx *cx, void *arg) {
    site *s = arg;
    ebb_http_server_opts opts = {.address = {"127.0.0.1", (uint16_t)s->port}};
    ebb_http_server *server;
    ebb_status st = ebb_http_listen(cx, &opts, &server);
    if (st == EBB_OK) st = ebb_http_on(server, "GET", "/*path", answer, s);
    if (st == EBB_OK) st = ebb_http_server_address(cx, server, &opts.address);
    if (st == EBB_OK) st = ebb_id_status(ebb_fiber_spawn(cx, ebb_cx_region(cx), sweep, s).id);
    if (st != EBB_OK) {
        ebb__cli_error("can't listen on 127.0.0.1 port %" PRIu64 ": %s", s->port, ebb_status_text(st));
        return st;
    }
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", opts.address.port);
    printf("%s\n", url);
    fflush(stdout); /* main reports a failure of stdout */
    ebb__cli_service_begin(&s->run, url);
    return EBB_OK;
}

static int run(site *s) {
    ebb_service_opts opts = {.loop.runtime.allocator = ebb__cli_allocator()};
    int code = ebb__cli_service_run(&s->run, &opts, serve, s);
    return s->run.begun ? code : EBB__EXIT_USAGE;
}

/* ---- arguments --------------------------------------------------------------------------------------- */

static bool parse(site *s, int argc, char **argv) {
    const char *dir = NULL;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--port") == 0) {
            if (++i == argc) {
                ebb__cli_error("--port needs a value");
                return false;
            }
            if (!ebb__cli_number("--port", argv[i], 0, UINT16_MAX, &s->port)) return false;
        } else if (argv[i][0] == '-') {
            ebb__cli_error("unknown option '%s'", argv[i]);
            return false;
        } else if (dir != NULL) {
            ebb__cli_error("files takes one directory: %s or %s", dir, argv[i]);
            return false;
        } else {
            dir = argv[i];
        }
    }
    if (dir == NULL) {
        ebb__cli_error("files takes a directory");
        return false;
    }
    ebb_status st = ebb__lookup_root(dir, s->root);
    if (st != EBB_OK) ebb__cli_error("can't serve %s: %s", dir, ebb_status_text(st));
    return st == EBB_OK;
}

int ebb__cmd_files(int argc, char **argv) {
    site s = {.port = PORT, .files.most_unused = EBB__FILES_KEPT};
    if (ebb__help_wanted(argc, argv)) return ebb__help_show(&ebb__help_files);
    if (argc == 1) return ebb__help_refuse(&ebb__help_files);
    return parse(&s, argc - 1, argv + 1) ? run(&s) : EBB__EXIT_USAGE;
}
