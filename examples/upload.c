/* Files that are whole or not there: POST /files/:name streams a body into one, GET gives it back.
 *
 *   build/release/examples/upload 8080 /tmp
 *   curl --data-binary @photo.jpg http://127.0.0.1:8080/files/photo.jpg
 *
 * A body goes to a temporary file, a piece at a time: what the disk has not taken yet stays with the client. It gets
 * its name when it is whole. If the handler ends before, whatever the reason, a finalizer removes the file. */
#include <ebb/ebb.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 16384, NAME_MOST = 255, NEW = O_CREAT | O_TRUNC | O_WRONLY };

/* Memory of the exchange: it is there until the last finalizer has run. */
typedef struct upload {
    char temporary[40];
    bool kept;
    ebb_future *removing;
} upload;

/* Those that start with a dot are ours. */
static bool is_name(const char *name) {
    return name != NULL && name[0] != '.' && strchr(name, '/') == NULL && strlen(name) <= NAME_MOST;
}

/* It runs when the handler has ended, however that was, and is polled like a task. */
static ebb_status remove_temporary(ebb_cx *cx, void *arg) {
    upload *u = arg;
    if (u->kept) return EBB_OK;
    if (u->removing == NULL) u->removing = ebb_file_unlink(cx, u->temporary);
    return ebb_await(cx, u->removing, NULL);
}

static ebb_status receive(ebb_cx *cx, ebb_http *x, ebb_file file) {
    char bytes[PIECE];
    ebb_value n;
    ebb_status st;
    while ((st = ebb_await(cx, ebb_http_read(cx, x, bytes, sizeof bytes), &n)) == EBB_OK) {
        st = ebb_await(cx, ebb_file_write(cx, file, bytes, n.as.u, EBB_FILE_HERE), NULL);
        if (st != EBB_OK) return st;
    }
    return st == EBB_ERR_EOF ? ebb_await(cx, ebb_file_sync(cx, file), NULL) : st;
}

static ebb_status take(ebb_cx *cx, ebb_http *x, void *arg) {
    static unsigned number;
    const char *name = ebb_http_param(x, "name");
    upload *u = ebb_http_state(x, sizeof *u);
    ebb_value v;
    (void)arg;
    if (u == NULL) return EBB_ERR_NOMEM;
    if (!is_name(name)) return ebb_http_text(cx, x, 400, "no name\n");
    snprintf(u->temporary, sizeof u->temporary, ".%d-%u", (int)getpid(), ++number);
    ebb_status st = ebb_defer(cx, remove_temporary, u);
    (void)ebb_mask(cx); /* a cancel waits: the file must not be made after its finalizer has looked for it */
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_open(cx, u->temporary, NEW, 0644), &v);
    (void)ebb_unmask(cx);
    if (st == EBB_OK) st = receive(cx, x, ebb_file_of(v));
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_rename(cx, u->temporary, name), NULL);
    if (st != EBB_OK) return st;
    u->kept = true;
    return ebb_http_text(cx, x, 201, "kept\n");
}

static ebb_status set_size(ebb_cx *cx, ebb_http *x, const char *name) {
    char size[24];
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_file_stat(cx, name), &v);
    if (st != EBB_OK) return st;
    snprintf(size, sizeof size, "%" PRIu64, ebb_file_info_of(&v)->size);
    ebb_value_discard(cx, v);
    return ebb_http_set_header(x, "content-length", size);
}

static ebb_status give(ebb_cx *cx, ebb_http *x, void *arg) {
    const char *name = ebb_http_param(x, "name");
    char bytes[PIECE];
    ebb_value v;
    (void)arg;
    ebb_status st = is_name(name) ? set_size(cx, x, name) : EBB_ERRNO(ENOENT);
    if (st == EBB_ERRNO(ENOENT)) return ebb_http_text(cx, x, 404, "no such file\n");
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_open(cx, name, O_RDONLY, 0), &v);
    if (st != EBB_OK) return st; /* that is a 500 */
    ebb_file file = ebb_file_of(v);
    for (st = ebb_http_start(cx, x, 200); st == EBB_OK;) {
        st = ebb_await(cx, ebb_file_read(cx, file, bytes, sizeof bytes, EBB_FILE_HERE), &v);
        if (st == EBB_OK) st = ebb_await(cx, ebb_http_write(cx, x, bytes, v.as.u), NULL);
    }
    return st == EBB_ERR_EOF ? EBB_OK : st;
}

static void log_request(void *ctx, const char *line, size_t n) {
    (void)fwrite(line, 1, n, ctx);
}

static ebb_status serve(ebb_cx *cx, void *port) {
    ebb_address at = {"127.0.0.1", (uint16_t)atoi(port)};
    ebb_http_server_opts opts = {.address = at, .access = log_request, .ctx = stderr};
    ebb_http_server *server;
    ebb_status st = ebb_http_listen(cx, &opts, &server);
    if (st == EBB_OK) st = ebb_http_on(server, "POST", "/files/:name", take, NULL);
    if (st == EBB_OK) st = ebb_http_on(server, "GET", "/files/:name", give, NULL);
    if (st == EBB_OK) st = ebb_http_server_address(cx, server, &at);
    if (st == EBB_OK) fprintf(stderr, "listening on %s port %u\n", at.ip, at.port);
    else fprintf(stderr, "upload: port %u: %s\n", at.port, ebb_status_text(st));
    return st;
}

int main(int argc, char **argv) {
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator()};
    if (argc == 3 && chdir(argv[2]) == 0) return ebb_service_run(&opts, serve, argv[1]);
    fprintf(stderr, "usage: upload PORT DIRECTORY\n");
    return 2;
}
